/* data/formats/listing/parts.h: the files of a listing, read by several threads: each reads a piece (data/files/cuts.h)
 * into a part, which is a listing of its own, and the parts are added to the listing in their order.
 *
 * The result, errors and messages included, is exactly that of one thread. For this a part is added only if its first
 * record begins where the last record before it ended, and only if adding it needs no decision: everything else (an
 * error, a new column, a record that is too long, a guess about quotes that was wrong) is thrown away, and the caller's
 * thread reads that piece itself, as if there were no parts. */
#pragma once

#include "daemon/data/files/cuts.h"
#include "daemon/data/formats/listing/listing.h"

/* Positive outcome of take(): the caller's thread is to read the piece. Nothing that it reads will differ. */
#define PARTS_AGAIN 1

/* A part is a struct of the format that begins with its text_listing: it is its own `userdata`. */
struct listing_parts {
        /* A part for this listing, without records; NULL: no memory. In any thread; what belongs to the listing itself
         * (not what it was opened with) may change meanwhile. */
        struct text_listing *(*make)(const void *userdata);
        void (*free)(struct text_listing *part);
        void (*clear)(struct text_listing *part); /* keeps its memory */

        /* Goes to the first record of the piece, whose bytes are in the part's window from the one before it on, or
         * from the file's first one on (is_inside says it). Returns 0 or an errno. NULL: records are lines. */
        int (*find)(struct text_listing *part, struct cuts *cuts, const struct cut *cut);

        listing_read read; /* for the listing and for its parts */

        /* Adds the records of a part. What the part calls line 1 is line 1 + line_base of the file that is read.
         * Returns 0; PARTS_AGAIN; or an errno with the listing's `why`. */
        int (*take)(void *userdata, struct text_listing *part, uint64_t line_base);
};

/* Reads all files that were found. Returns 0 or an errno with `why`. Blocks until all are read. */
int parts_walk(struct text_listing *listing, const struct listing_parts *parts, void *userdata);
