/* data/formats/copied.h: what an index pass copies into memory beside numbers, counted against the limit for it.
 *
 * Threads that read ahead (data/files/parted.h) count what they copy until the caller takes it: all parts together may
 * have a share of the limit. Whatever does not fit is read again by the caller, who has all of it. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "daemon/data/format.h"

/* All parts together have 1 / COPIED_PARTS of what the caller has. */
#define COPIED_PARTS 4u

struct copied {
        uint64_t n_bytes; /* so far */
        uint64_t max;     /* bytes */

        struct copied *whole; /* of a part: where all parts count; else NULL */
        uint64_t n_counted;   /* of a part: as much of the whole's n_ahead is its own */
        _Atomic uint64_t n_ahead;
};

/* `watch` as in format.h; NULL too. */
void copied_begin(struct copied *copied, const struct index_watch *watch);

/* The part of another thread; `whole` must outlive it. */
void copied_begin_part(struct copied *part, struct copied *whole);

/* Is there room for n_bytes more? They are counted in either case. Any thread, one for each part. */
bool copied_add(struct copied *copied, uint64_t n_bytes);

/* Is there room for what a part has copied? Only then it is counted. */
bool copied_take(struct copied *copied, const struct copied *part);

/* A part is gone, or was taken. Does nothing for others. */
void copied_fini(struct copied *copied);
