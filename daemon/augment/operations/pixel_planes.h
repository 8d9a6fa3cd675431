/* augment/operations/pixel_planes.h: a few pixels of a row as three arrays, for loops that compute with whole colours. Private
 * to this floor. */
#pragma once

#include "daemon/augment/operations/wide.h"

#include <stddef.h>
#include <stdint.h>

#define PLANES_AT_ONCE 64u /* pixels; a loop over all of them needs no rest */

struct planes {
        uint8_t first[PLANES_AT_ONCE], second[PLANES_AT_ONCE], third[PLANES_AT_ONCE];
};

/* n pixels, n <= PLANES_AT_ONCE; the other elements are not touched. */
void planes_take(const uint8_t *pixels, size_t n, struct planes *planes);
void planes_put(const struct planes *planes, size_t n, uint8_t *pixels);

/* Without a branch, which a vector cannot take. */
static ALWAYS_INLINE int choose(int condition, int if_true, int if_false) {
        int mask = -condition;

        return (if_true & mask) | (if_false & ~mask);
}
