/* collate/mix/mixing.h: mixes the samples of a whole batch with one another, in their places in the slot.
 *
 * It takes no second batch: each stretch of a few thousand elements is mixed in all samples before the next one, so
 * that only that stretch of one sample has to be kept. Elements are computed with and never decide anything: a client
 * that writes into the slot spoils its own batch. */
#pragma once

#include "daemon/collate/collate_layout.h"

/* What the draws of a batch depend on. */
struct mix_key {
        uint64_t seed; /* of the field's part of the pipeline */
        uint32_t epoch;
        uint64_t position; /* of the first sample of the batch */
};

/* Draws that mixing needs room for: one for a whole batch, or one for each sample. 0: nothing is mixed. */
uint32_t mixing_n_draws(const struct layout *layout);

/* Mixes field `idx_field`, if it is to be mixed; `draws` has room for mixing_n_draws(). Blocks for as long as it takes
 * to read and write the batch. Thread: the one that completes the batch, after collating_finish(). */
void mixing_run(const struct layout *layout, uint32_t idx_field, const struct mix_key *key,
                const struct dlp_slot_record *record, uint8_t *slot, struct mix_draw *draws);
