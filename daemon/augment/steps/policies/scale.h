/* augment/steps/policies/scale.h: magnitudes, numbers of a scale with equal distances. Private to this floor. */
#pragma once

#include <stdint.h>

/* Number idx of n on a scale. */
struct policy_magnitude {
        uint32_t idx, n;
};

/* As torch.linspace(from, to, n)[idx]: in float32, with one rounding for product and sum, from the nearer end. */
double policy_on_scale(double from, double to, struct policy_magnitude magnitude);
