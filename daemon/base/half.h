/* base/half.h: float32 to the 16-bit types, rounded to the nearest, ties to even, as torch and every GPU do; and back,
 * which is exact. */
#pragma once

#include <stdint.h>

/* Takes and returns bits. A value that is too large becomes infinite, NaN stays NaN. */
uint16_t half_from_float32(uint32_t bits);
uint16_t bfloat16_from_float32(uint32_t bits);

uint32_t float32_from_half(uint16_t bits);
