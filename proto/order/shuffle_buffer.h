/* order/shuffle_buffer.h: samples shuffled while they arrive, as WebDataset's shuffle(size) does.
 *
 * A buffer takes sample after sample. For each one that leaves it, two come in until the buffer is full, then one. It
 * begins to give samples when it holds DLP_BUFFER_INITIAL of them (or is full), and at the end gives those that are
 * left. The one that leaves is drawn: element k of the n in the buffer, and the last one takes its place.
 *
 * So the order needs neither the number of samples nor a table of them, and no sample comes earlier than about `size`
 * places before its own: good for a dataset that is still being written. But it shuffles only nearby samples; if all
 * samples are known, other orders are better.
 *
 * Draws: dlp_torch_u32() modulo n, one for each sample, which is torch.randint(n, ()) of a generator with that seed.
 * WebDataset draws from Python's random instead, which nobody can repeat: its seed is the time. libc only, no locks;
 * the memory is the caller's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/order/torch_random.h"

#define DLP_BUFFER_DEFAULT 1000u
#define DLP_BUFFER_INITIAL 100u
#define DLP_BUFFER_MAX     (1u << 24) /* samples: 128 MiB */

struct dlp_shuffle_buffer {
        struct dlp_torch_random *random; /* the caller's, seeded; one word is drawn for each sample */
        uint64_t *samples;               /* the caller's, `size` elements */
        uint32_t size;
        uint32_t n;       /* samples in it now */
        uint64_t n_taken; /* samples that have come in: 0 .. n_taken - 1 */
};

/* Prepares; draws nothing. 1 <= size <= DLP_BUFFER_MAX. */
void dlp_shuffle_buffer_init(struct dlp_shuffle_buffer *buffer, struct dlp_torch_random *random, uint64_t *samples,
                             uint32_t size);

/* Gives the next sample of the order. `n_known`: samples that are there; `is_over`: there will be no more. Returns
 * false if it cannot be known yet, or after the last sample. The sequence does not depend on when it is asked. */
bool dlp_shuffle_buffer_next(struct dlp_shuffle_buffer *buffer, uint64_t n_known, bool is_over, uint64_t *ret_sample);
