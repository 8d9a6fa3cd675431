/* augment/operations/mirror.h: what is seen beyond the edges of a picture that is mirrored without its outermost pixel,
 * and mirrored again further out. */
#pragma once

#include <stdint.h>

/* The place of n that is seen at `place`. */
static inline uint32_t mirrored(int64_t place, uint32_t n) {
        int64_t period = 2 * ((int64_t)n - 1);

        if (place < 0 && place > -(int64_t)n) /* mirrored once, as nearly all are: no division */
                place = -place;
        else if (place >= n && place <= period)
                place = period - place;
        if (place >= 0 && place < n)
                return (uint32_t)place;
        if (period == 0)
                return 0;
        place = (place % period + period) % period;
        return (uint32_t)(place < n ? place : period - place);
}
