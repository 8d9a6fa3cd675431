/* tests/support/jpeg_codes.h: looks up codes of a JPEG in rows, as a decoder does. */
#pragma once

#include "proto/jpeg/codes.h"

/* The symbol of the code that `bits` begins with, the first bit topmost of 16, and how many bits it has; -1: there is
 * no such code. */
static inline int jpeg_codes_look(const struct dlp_jpeg_codes *codes, uint32_t bits, uint32_t *ret_n_bits) {
        uint32_t look = codes->looks[bits >> DLP_JPEG_LONG_CODES];

        if (look) {
                *ret_n_bits = look >> 8;
                return look & 255;
        }
        for (uint32_t i = 0; i < DLP_JPEG_LONG_CODES; i++)
                if (bits < codes->limits[i]) {
                        uint32_t n_bits = DLP_JPEG_LOOK_BITS + 1 + i;

                        *ret_n_bits = n_bits;
                        return codes->symbols[((bits >> (DLP_JPEG_CODE_MAX - n_bits)) + codes->firsts[i]) & 255];
                }
        return -1;
}
