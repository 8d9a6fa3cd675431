/* order/dealing.h: which positions of an epoch each rank gets.
 *
 * An epoch is a row of positions. It is cut into blocks, and blocks are dealt to the ranks in turn: rank r of W gets
 * the blocks r, r + W, r + 2W, ... A dealing says how long a block is:
 *
 *   strided   one position: rank r takes r, r + W, r + 2W, ... (torch's DistributedSampler)
 *   chunk     as many as a batch of a rank has (Megatron: a global batch is cut into contiguous micro-batches)
 *   batch     the same (Accelerate, and with it Hugging Face's Trainer: whole batches in turn)
 *
 * So chunk and batch are one arithmetic. Both names exist because each is looked for by the users of one of these
 * programs; what differs between the programs is what they do at the end of the row, and that is the partition:
 * Megatron drops, Accelerate pads. A round is a block of each rank; the partition says what happens if the row does not
 * end with a round.
 *
 * Positions count from where the epoch begins: from its start, or from the position at which it is resumed. A resume at
 * another world or batch size needs nothing more: what is left is dealt out anew. Only the epoch plan
 * (order/epoch_plan.h) calls these functions; all other code asks the plan.
 *
 * Free of overflow for numbers of samples <= DLP_SAMPLES_MAX, world <= DLP_WORLD_MAX and blocks <= DLP_BATCH_MAX. libc
 * only, no state. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The values are for this process; messages have the names. */
enum dlp_dealing {
        DLP_DEALING_STRIDED = 0,
        DLP_DEALING_CHUNK = 1,
        DLP_DEALING_BATCH = 2,
};

/* What happens if the row does not end with a round. The values are sent in messages and tokens. */
enum dlp_partition {
        DLP_PARTITION_PAD = 0,   /* the last round is completed with positions from 0 on: all ranks get the same number
                                    (DistributedSampler; Accelerate's even_batches) */
        DLP_PARTITION_DROP = 1,  /* the last round is left out (DistributedSampler's and Megatron's drop_last=True) */
        DLP_PARTITION_EXACT = 2, /* each position once; ranks differ by at most a block (for evaluation) */
};

/* The names of all dealings, for messages. */
extern const char dlp_dealings[];

/* "strided", "chunk", "batch"; "pad", "drop", "exact"; NULL for a value that is none of them. Static text. */
const char *dlp_dealing_name(enum dlp_dealing dealing);
const char *dlp_partition_name(enum dlp_partition partition);

/* From the name to the value. Returns 0 or -EINVAL. */
int dlp_dealing_from_name(const char *name, enum dlp_dealing *ret_dealing);
int dlp_partition_from_name(const char *name, enum dlp_partition *ret_partition);

/* How many positions a block has, >= 1, for batches of batch_size >= 0. */
static inline uint32_t dlp_dealing_block(enum dlp_dealing dealing, uint32_t batch_size) {
        return dealing == DLP_DEALING_STRIDED || batch_size == 0 ? 1 : batch_size;
}

/* How many of n positions `rank` gets; 0 if rank >= world. No rank gets more than rank 0. */
uint64_t dlp_dealing_count(uint64_t n, uint32_t world, uint32_t rank, uint32_t block, enum dlp_partition partition);

/* The position that is a rank's number k, from 0. With DLP_PARTITION_PAD it may be beyond the end of the row. */
static inline uint64_t dlp_dealing_position(uint64_t k, uint32_t world, uint32_t rank, uint32_t block) {
        if (block == 1) /* the usual case, without divisions */
                return k * world + rank;
        return (k / block * world + rank) * block + k % block;
}

/* The first position that no rank has had after each rank has had k, a multiple of the block. */
static inline uint64_t dlp_dealing_after(uint64_t k, uint32_t world) {
        return k * world;
}

/* Do two ranks take the same positions from an epoch that one resumes at `a` and the other at `b`? */
bool dlp_dealing_is_alike(uint64_t a, uint64_t b, uint32_t world, uint32_t block);
