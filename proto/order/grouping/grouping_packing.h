/* order/grouping/grouping_packing.h: the ways to fill rows of a size with samples of any length.
 *
 * Each goes over an order and makes one whose units are packs: rows of at most `size` elements. A position of a pack
 * holds a piece of its sample (struct dlp_piece). A sample without elements comes in no pack.
 *
 *   best fit    the longest first, each into the fullest pack that it fits into
 *   first fit   in the order's sequence, each into the first of some open packs
 *   wrapped     one after the other, cut wherever a pack is full
 */
#pragma once

#include "proto/order/grouping/grouping.h"
#include "proto/order/grouping/lengths.h"
#include "proto/order/grouping/number_set.h"

#define DLP_PACK_SIZE_MAX DLP_NUMBER_SET_MAX

/* What is done with a sample that is longer than a pack. */
enum dlp_long {
        DLP_LONG_ERROR,
        DLP_LONG_TRUNCATE, /* its end is left out */
        DLP_LONG_SKIP,
        DLP_LONG_SPLIT, /* whole packs of it, and a piece with the rest; wrapped: pieces as they come */
};

struct dlp_packing {
        uint32_t size;
        uint64_t rows;        /* samples that are packed together; 0: all of the epoch */
        uint32_t n_bins;      /* first fit: packs that are open at a time */
        uint32_t max_samples; /* of a pack; 0: any number */
        enum dlp_long on_long;
        bool is_shuffled; /* the packs, once they are made */
        struct dlp_lengths lengths;
};

/* Replaces `order` by one of packs. -EINVAL with `why`, -ENOMEM, -ECANCELED; then `order` is as it was, or empty. */
int dlp_pack_best_fit(struct dlp_making *making, const struct dlp_packing *packing, struct dlp_order *order);
int dlp_pack_first_fit(struct dlp_making *making, const struct dlp_packing *packing, struct dlp_order *order);
int dlp_pack_wrapped(struct dlp_making *making, const struct dlp_packing *packing, struct dlp_order *order);

/* Bytes that it takes beside the orders before and after it, for n positions that become n_pieces. */
uint64_t dlp_pack_best_fit_bytes(const struct dlp_packing *packing, const struct dlp_making_terms *terms, uint64_t n,
                                 uint64_t n_pieces);
uint64_t dlp_pack_first_fit_bytes(const struct dlp_packing *packing, const struct dlp_making_terms *terms,
                                  uint64_t n_pieces);
uint64_t dlp_pack_wrapped_bytes(const struct dlp_making_terms *terms, uint64_t n_pieces);

/* ---- what they share ------------------------------------------------------------------------------------------- */

/* The pieces of a sample: n_whole of `size` elements, then one with the rest, if that is not 0. */
struct dlp_pieces {
        uint32_t n_whole, rest;
};

static inline struct dlp_pieces dlp_packing_cut(const struct dlp_packing *packing, uint32_t length) {
        if (length < packing->size)
                return (struct dlp_pieces){ .rest = length };
        if (length == packing->size || packing->on_long == DLP_LONG_TRUNCATE)
                return (struct dlp_pieces){ .n_whole = 1 };
        if (packing->on_long != DLP_LONG_SPLIT)
                return (struct dlp_pieces){ 0 };
        return (struct dlp_pieces){ .n_whole = length / packing->size, .rest = length % packing->size };
}

/* Takes lengths, as dlp_lengths_take(). -EINVAL also where one is too long and that is an error. */
int dlp_packing_take(const struct dlp_making *making, const struct dlp_packing *packing, const struct dlp_order *order,
                     uint64_t first, uint64_t n, uint32_t *ret_lengths);

/* How many pieces all positions have together. -EINVAL, -ECANCELED. */
int dlp_packing_count(struct dlp_making *making, const struct dlp_packing *packing, const struct dlp_order *order,
                      uint64_t *ret_n_pieces);

/* Makes the order of packs from a grouping, which is freed in any case. */
int dlp_packing_finish(struct dlp_making *making, const struct dlp_packing *packing, struct dlp_grouping *grouping,
                       struct dlp_order *order);
