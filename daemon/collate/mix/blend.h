/* collate/mix/blend.h: elements of two samples, mixed: a * lam + b * (1 - lam).
 *
 * Each product is rounded to the dtype, and so is their sum: what torch's x.mul(lam).add(y.mul(1 - lam)) does on a CPU,
 * to the bit. uint8, which torch refuses to multiply so, is computed in float32 and rounded once, to the nearest, ties
 * to even: what timm's FastCollateMixup does. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/layout.h"

/* `n` elements, none of which needs to be aligned further than its dtype. `to` gets the result; `with` stays. */
typedef void (*blend_function)(void *to, const void *with, size_t n, double lam);

/* The function of a dtype: uint8, float16, bfloat16, float32 or float64; NULL: it cannot be mixed. */
blend_function blend_of(enum dlp_dtype dtype);

/* float16 on a CPU that converts it; NULL: this one does not. And on any. Both give the same bits, except of NaNs. */
blend_function blend_half_f16c(void);
void blend_half(void *to, const void *with, size_t n, double lam);
