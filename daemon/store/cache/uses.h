/* store/cache/uses.h: when ranks will need what, as far as their orders say: what should stay when the cache is full.
 *
 * A rank's uses are two tables: for each chunk, which of the rank's samples of this epoch needs it first, and which of
 * the next one. With how far the rank is, and how long a sample takes, that is a time. After its last epoch it needs
 * nothing.
 *
 * With several jobs that share an origin, the chunk that all of them need last makes room (L. Belady's rule, over all
 * jobs): of chosen ones, as looking at all would take long. A chunk that came when the cache was full is compared with
 * them when nobody needs it soon any more: then it stays in place of one that is needed later, or goes itself. For one
 * job nothing that is here makes room, which is the best that can be had. Any thread. */
#pragma once

#include <stdint.h>

#include "daemon/store/cache/cache.h"

struct cached_uses;

/* Is it worth while? The cache is full, and there are several jobs. n_bytes of memory are what the tables take. */
bool cached_wants_uses(struct cached *cached, uint64_t *ret_n_bytes);

/* The tables of a rank, empty. NULL: no memory. It must be freed before the origin is given back. */
struct cached_uses *cached_uses_new(struct cached *cached);
void cached_uses_free(struct cached_uses *uses); /* NULL is fine */

/* Sample number `k` of the rank's epoch (the first is 0), or of the next one, needs this part of a file, as in
 * cached_want(). In ascending order of k. */
void cached_uses_add(struct cached_uses *uses, bool is_next_epoch, const char *folder, const char *path,
                     uint64_t offset, uint64_t n_bytes, uint32_t k);

/* The next epoch has begun. */
void cached_uses_turn(struct cached_uses *uses);

/* Where the rank is. */
void cached_uses_at(struct cached_uses *uses, const struct dlp_uses_place *place);

/* ---- what would go next ---- */

enum cached_going_rule {
        CACHED_GOING_NOTHING, /* all origins that are open have room */
        CACHED_GOING_PASSING, /* what is here stays; what comes now goes once it was read */
        CACHED_GOING_LAST,    /* what all jobs need last */
};

struct cached_going_chunk {
        uint64_t chunk, next_ns; /* until somebody needs it; UINT64_MAX: nobody does, as far as is known */
        const char *path;        /* of its file: the origin's, */
        uint64_t offset;         /* where it begins, and its length */
        uint32_t n_bytes;
};

#define CACHED_GOING_MAX 3u

struct cached_going {
        enum cached_going_rule rule;
        uint32_t n;
        struct cached_going_chunk chunks[CACHED_GOING_MAX]; /* the first to go before the others */
};

/* What makes room for what comes: about, as that is chosen among some, at random. Texts are valid as long as `cached`.
 */
void cached_going(struct cached *cached, struct cached_going *ret_going);
