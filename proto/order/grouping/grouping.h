/* order/grouping/grouping.h: puts positions that belong together next to each other.
 *
 * A grouper goes over an order, keeps samples in the sequence in which they join a unit, and notes for each its unit, a
 * number that it counts up itself. dlp_grouping_finish() then makes an order of it: units one after the other, within a
 * unit the positions as they were kept. That takes 8 bytes a position (samples and units) beside the result, and 4 a
 * unit; 8 more a unit if units are shuffled. */
#pragma once

#include "proto/order/making/making.h"

#define DLP_GROUPING_MAX (UINT32_MAX - 1) /* positions: units have numbers of 32 bits */

struct dlp_grouping {
        struct dlp_order kept; /* its samples; n_positions is what is kept, n_room the memory */
        uint32_t *unit_of;     /* of each kept position */
        uint32_t *begins;      /* of each kept position, what its piece leaves out; NULL: nothing */
        uint64_t n_units;      /* that were counted; each has a position */
        uint32_t *sequence;    /* the units in the sequence in which they come, perhaps not all; NULL: as counted */
        uint64_t n_sequence, n_sequence_room;
        bool has_pieces; /* the result gets pieces, with `begins` in them */
};

/* Room for n positions. `step`: for the message. -EINVAL: more than DLP_GROUPING_MAX; -ENOMEM. */
int dlp_grouping_init(struct dlp_making *making, const char *step, uint64_t n, bool has_begins,
                      struct dlp_grouping *ret_grouping);

/* Room for a sequence of n units. -ENOMEM. */
int dlp_grouping_sequence(struct dlp_making *making, uint64_t n, struct dlp_grouping *grouping);

/* Gives back its memory; takes one of zeroes. */
void dlp_grouping_free(struct dlp_making *making, struct dlp_grouping *grouping);

static inline void dlp_grouping_keep(struct dlp_grouping *grouping, uint64_t sample, uint32_t unit) {
        grouping->unit_of[grouping->kept.n_positions] = unit;
        dlp_order_set_sample(&grouping->kept, grouping->kept.n_positions++, sample);
}

/* Makes the order, and frees the grouping in any case. `is_shuffled`: units come as the permutation of the terms' order
 * with seed + epoch says, as if they were the samples of a dataset. -ENOMEM, -ECANCELED. */
int dlp_grouping_finish(struct dlp_making *making, struct dlp_grouping *grouping, bool is_shuffled,
                        struct dlp_order *ret_order);

/* Bytes that all this takes at most beside the result, for n positions. */
uint64_t dlp_grouping_bytes(const struct dlp_making_terms *terms, uint64_t n, bool has_begins);
