/* proto/order/torch_random.h: the random numbers of torch's CPU generator, bit for bit.
 *
 * torch.Generator() on the CPU is a plain MT19937 seeded with the low 32 bits of the seed; everything above it is a
 * rule about how many 32-bit words a draw takes and which of their bits it uses. Those rules are here, named after what
 * torch calls the draw. No draw ever rejects, so the number of words consumed never depends on the values.
 *
 * It lies on the lowest floor because the daemon (order tables), `dlctl order` (offline) and the client (what comes
 * after a resume) all compute with it. libc only, no allocation, no locks: one generator belongs to one thread.
 *
 * Not here: generators of GPUs (another algorithm), the normal distribution. */
#pragma once

#include <stdint.h>

#define DLP_TORCH_BLOCK_WORDS 624u

/* Which release's behaviour is meant, where releases differ. Zero is the newest, so that a cleared struct means it. */
enum dlp_torch_compat {
        DLP_TORCH_2_7,        /* 2.7 and newer: randint takes 64 bits from a range of 2^28 on */
        DLP_TORCH_2_6,        /* 2.6: randperm's second algorithm from 214,748,364 elements on, randint as before */
        DLP_TORCH_BEFORE_2_6, /* 1.x to 2.5 */
};

struct dlp_torch_random {
        uint32_t state[DLP_TORCH_BLOCK_WORDS];
        uint32_t words[DLP_TORCH_BLOCK_WORDS]; /* the current block, tempered: tempering all at once is vectorised */
        uint32_t n_used;                       /* of `words`; DLP_TORCH_BLOCK_WORDS = make the next block first */
};

/* torch.Generator().manual_seed(seed). Only the low 32 bits count; a negative seed is seed + 2^64. */
void dlp_torch_seed(struct dlp_torch_random *random, uint64_t seed);

/* Makes the next 624 words. Only dlp_torch_u32() needs it. */
void dlp_torch_refill(struct dlp_torch_random *random);

/* The next 32-bit word, from which all other draws are made. */
static inline uint32_t dlp_torch_u32(struct dlp_torch_random *random) {
        if (random->n_used == DLP_TORCH_BLOCK_WORDS)
                dlp_torch_refill(random);
        return random->words[random->n_used++];
}

/* Two words; the first drawn is the high half. */
static inline uint64_t dlp_torch_u64(struct dlp_torch_random *random) {
        uint64_t high = dlp_torch_u32(random);

        return high << 32 | dlp_torch_u32(random);
}
