/* data/files/ahead.h: the bytes of files from the first to the last, one file after the other, which several threads
 * read before the caller asks for them (data/files/cuts.h): window by window, into a ring. A file begins a new window;
 * window k and k + 1 lie together, except where the ring ends.
 *
 * What the caller sees is what one thread would have read, in the same order, and so are the errors: that of a file, or
 * of a place in it, is reported when the caller comes there, and never if something before it made him stop.
 *
 * What the caller asks for is rarely copied: only if it goes over the end of the ring of windows, or is longer than it.
 * Memory: the ring of 4 MiB, and the longest piece that the caller asks for. At most 16 files are open. */
#pragma once

#include "daemon/data/files/cuts.h"

#define AHEAD_THREADS 8u           /* as many as are useful, the caller's among them */
#define AHEAD_WINDOW  (256u << 10) /* bytes; fewer at the end of a file */
#define AHEAD_RING    16u          /* windows */

/* Positive outcome of ahead_next_file(): there is no further file. */
#define AHEAD_END 1

struct ahead;

/* Reads with up to n_threads threads, 1 to AHEAD_THREADS. Returns 0 or -ENOMEM. */
int ahead_new(uint32_t n_threads, struct ahead **ret_ahead);

/* Takes NULL, and waits for reads that were begun. */
void ahead_free(struct ahead *ahead);

/* Goes to the begin of the first of these files; also when others, or the same ones, were begun before. Waits for reads
 * that were begun. Returns 0 or -ENOMEM. */
int ahead_begin(struct ahead *ahead, const struct cuts_files *files);

/* Goes to the next file, when all bytes of the one before were asked for (asserted). Returns 0 and the status that it
 * had when it was opened; AHEAD_END; or what open() returned. After an error only begin and free are possible. Blocks
 * for the file system. */
int ahead_next_file(struct ahead *ahead, struct stat *ret_status, struct why *why);

/* The n bytes (1 or more) at this offset of the file, which end within st_size (asserted); valid until the next call.
 * What lies before `at` is given up; `at` is at most the end of what was asked for until then. Returns 0; -ENODATA if
 * the file has become shorter; -ENOMEM or another errno, and then the same again for these bytes. Blocks for the disk.
 */
int ahead_bytes(struct ahead *ahead, uint64_t at, size_t n, const uint8_t **ret_bytes);
