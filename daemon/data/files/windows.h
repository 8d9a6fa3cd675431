/* data/files/windows.h: windows of files, one after the other, which several threads read before the caller needs them.
 *
 * Windows are numbered from the first of the first file on; a file begins a new one. They lie in a ring: window k and
 * k + 1 lie together, except where the ring ends. When the window that the caller waits for has not been begun, his
 * thread reads as the others do. So a single thread is enough; the others are started after the first few reads: as
 * many as there are CPUs, and more of them when reads have to wait for a disk or a server, unless there is a limit on
 * threads. Which one was faster is not seen: errors wait for their turn, too. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "proto/base/why.h"

#define WINDOWS_THREADS 8u           /* as many as are useful, the caller's among them */
#define WINDOWS_BYTES   (256u << 10) /* of a window; fewer at the end of a file */
#define WINDOWS_RING    16u          /* windows */
#define WINDOWS_FILES   16u          /* that are open, or have been and are not needed yet */

struct windows;

struct windows_files {
        size_t n;
        /* Opens file idx, which is regular, in any thread, several of them at once. Returns a descriptor, which is
         * closed when the file is read, and its status; or an errno with `why`. `settled_ns`: of this thread, as in
         * index_stamp.h. */
        int (*open)(void *userdata, size_t idx, int64_t *settled_ns, struct stat *ret_status, struct why *why);
        void *userdata;
};

/* Reads with up to n_threads threads, 1 to WINDOWS_THREADS. Returns 0 or -ENOMEM. */
int windows_new(uint32_t n_threads, struct windows **ret_windows);

/* Takes NULL, and waits for reads that were begun. */
void windows_free(struct windows *windows);

/* Begins with the first of these files, also when others were begun before. Waits for reads that were begun. */
void windows_begin(struct windows *windows, const struct windows_files *files);

/* The file idx: the one of the last call or the one after it, when all windows of that one were given up; the first one
 * at first. Returns 0 and the status that it had when it was opened, or what open() returned. Blocks for the file
 * system. */
int windows_file(struct windows *windows, size_t idx, struct stat *ret_status, struct why *why);

/* Waits until all windows of this file up to this one are read, for which the ring has room after those that were given
 * up. Returns 0; -ENODATA if the file has become shorter; or another errno, and then the same for all later windows.
 * Blocks for the disk. */
int windows_know(struct windows *windows, uint64_t window);

/* Where a known window lies that was not given up. */
const uint8_t *windows_bytes(const struct windows *windows, uint64_t window);

/* Windows before this one, all of them known, are not needed any more. */
void windows_give_up(struct windows *windows, uint64_t window);
