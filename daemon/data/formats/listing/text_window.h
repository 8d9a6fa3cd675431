/* data/formats/listing/text_window.h: a file read from front to back, of which the bytes that are needed now are in memory.
 *
 * Memory is bounded by the longest record (a line, a row, a string of JSON), not by the file. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/data/growing.h"
#include "proto/base/why.h"

#define TEXT_WINDOW_RECORD_MAX (256u << 20) /* bytes of a record: as many as have to be in memory at once */

/* Positive outcome: the file has no further line. */
#define TEXT_WINDOW_END 1

/* All zeroes but fd and n_file before the first call. */
struct text_window {
        int fd;          /* the caller's */
        uint64_t n_file; /* bytes of the file; what was appended since is not read */
        uint8_t *bytes;  /* in `memory` */
        size_t n_bytes;
        size_t at;       /* of the next line; bytes before it are not needed any more */
        uint64_t offset; /* of bytes[0] in the file */
        bool is_last;    /* the file ends with these bytes */
        struct growing memory;
        uint64_t n_lines; /* that text_window_line() has given */
        size_t n_scanned; /* of the line that begins at `at`: looked at already */
        uint64_t stop;    /* no line is given that begins at this byte of the file or after it; 0: all are */
        size_t n_read;    /* bytes that are read at once; 0: 1 MiB */
        uint64_t n_max;   /* a record is shorter; 0: TEXT_WINDOW_RECORD_MAX */
};

void text_window_fini(struct text_window *window);

/* Drops the bytes before `at` and reads on; so bytes[] moves, and `at` becomes 0. Not to be called when is_last is set
 * (asserted). Returns 0; -ECANCELED; -E2BIG if a record is longer than TEXT_WINDOW_RECORD_MAX; -ENODATA if the file is
 * shorter than n_file; -ENOMEM or another errno. `why` does not name the file. Blocks for the disk. */
int text_window_read_on(struct text_window *window, struct why *why);

/* Skips the byte order mark that some programs write in front of UTF-8. Refuses what is compressed, or UTF-16, with a
 * word what to do (-ENOTSUP). To be called first. */
int text_window_begin(struct text_window *window, struct why *why);

/* Where the next record begins in the file. */
static inline uint64_t text_window_place(const struct text_window *window) {
        return window->offset + window->at;
}

/* Does the next record begin at `stop` or after it, if there is one? */
static inline bool text_window_is_over(const struct text_window *window) {
        return window->stop > 0 && text_window_place(window) >= window->stop;
}

/* Goes to the first line that begins at byte `at` of the file or after it; where it may be beyond `stop`, the place is
 * not exact. `offset` is at - 1, and nothing was read yet. Returns as text_window_read_on(). */
int text_window_find_line(struct text_window *window, struct why *why);

/* The next line, without the "\n" or "\r\n" that ends it; valid until the next call. The last line may have no end.
 * Returns 0, TEXT_WINDOW_END, or as text_window_read_on(). */
int text_window_line(struct text_window *window, const uint8_t **ret_line, size_t *ret_n_bytes, uint64_t *ret_offset,
                     struct why *why);
