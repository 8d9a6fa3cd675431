/* order/making/order_draws.h: what steps draw from torch's generator, beside whole words (order/torch_random.h). */
#pragma once

#include "proto/order/making/making.h"

/* torch.rand(dtype=float64), uniform in [0, 1): the low 53 bits of two words. */
static inline double dlp_draw_f64(struct dlp_torch_random *random) {
        return (double)(dlp_torch_u64(random) & ((1ull << 53) - 1)) * 0x1p-53;
}

/* torch.rand(): the low 24 bits of a word. */
static inline float dlp_draw_f32(struct dlp_torch_random *random) {
        return (float)(dlp_torch_u32(random) & ((1u << 24) - 1)) * 0x1p-24f;
}

/* torch.randperm(n) of a generator that has perhaps been drawn from, which is left where torch leaves it. The caller
 * owns the order. -ENOMEM, -ECANCELED. */
int dlp_making_randperm(struct dlp_making *making, struct dlp_torch_random *random, uint64_t n,
                        struct dlp_order *ret_order);

/* The natural logarithm of x, 0 < x <= 1, from additions, multiplications and divisions alone: unlike the C library's
 * it is the same on all machines. Within two units of the last place. */
double dlp_logarithm(double x);

/* e to the power of x, -700 <= x <= 0, in the same way. */
double dlp_exponential(double x);
