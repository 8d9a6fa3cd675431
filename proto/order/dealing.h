/* order/dealing.h: which positions of an epoch each rank gets.
 *
 * An epoch is a row of positions. A dealing gives each rank some of them, in a sequence. Today there is one, the
 * strided dealing of torch's DistributedSampler: rank r of W takes r, r + W, r + 2W, ... The partition says what
 * happens at the end of the row if its length is not a multiple of the world.
 *
 * Positions count from where the epoch begins: from its start, or from the position at which it is resumed. A resume at
 * another world size needs nothing more: what is left is dealt out anew. Only the epoch plan (order/epoch_plan.h) calls
 * these functions; all other code asks the plan.
 *
 * Free of overflow for numbers of samples <= DLP_SAMPLES_MAX and world <= DLP_WORLD_MAX. libc only, no state.
 *
 * To come: the dealings "chunk" (Megatron: a micro-batch is a piece of the row) and "batch" (Accelerate: whole batches
 * in turn). They need the batch size, so they will take it here; nothing above the plan changes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What happens if the number of positions is not a multiple of the world. The values are sent in messages and tokens.
 */
enum dlp_partition {
        DLP_PARTITION_PAD = 0,   /* all ranks get ceil(n / W); the last ones repeat samples (DistributedSampler) */
        DLP_PARTITION_DROP = 1,  /* all ranks get floor(n / W); the rest is left out (its drop_last=True) */
        DLP_PARTITION_EXACT = 2, /* each position once; ranks differ by at most one (for evaluation) */
};

/* "pad", "drop", "exact"; NULL for a value that is none of them. Static text. */
const char *dlp_partition_name(enum dlp_partition partition);

/* From the name to the value. Returns 0 or -EINVAL. */
int dlp_partition_from_name(const char *name, enum dlp_partition *ret_partition);

/* How many of n positions `rank` gets; 0 if rank >= world. No rank gets more than rank 0. */
uint64_t dlp_dealing_count(uint64_t n, uint32_t world, uint32_t rank, enum dlp_partition partition);

/* The position that is a rank's number k, from 0. With DLP_PARTITION_PAD it may be beyond the end of the row. */
static inline uint64_t dlp_dealing_position(uint64_t k, uint32_t world, uint32_t rank) {
        return k * world + rank;
}

/* The first position that no rank has had after each rank has had k. */
static inline uint64_t dlp_dealing_after(uint64_t k, uint32_t world) {
        return k * world;
}

/* Do two ranks take the same positions from an epoch that one resumes at `a` and the other at `b`? */
bool dlp_dealing_is_alike(uint64_t a, uint64_t b, uint32_t world);
