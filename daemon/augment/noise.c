#include "daemon/augment/noise.h"

#include "proto/order/making/draws.h"

#include <math.h>

uint64_t noise_seed(struct dlp_philox *philox) {
        uint64_t high = dlp_philox_u32(philox);

        return high << 32 | dlp_philox_u32(philox);
}

void noise_begin(uint64_t seed, struct dlp_philox *ret_philox) {
        dlp_philox_init(ret_philox, seed, 0, 0, 0);
}

uint8_t noise_byte(struct noise_bytes *bytes) {
        uint8_t byte;

        if (bytes->n_left == 0) {
                bytes->word = dlp_philox_u32(bytes->philox);
                bytes->n_left = 4;
        }
        byte = (uint8_t)bytes->word;
        bytes->word >>= 8;
        bytes->n_left--;
        return byte;
}

/* Wichura 1988, "Algorithm AS 241: The percentage points of the normal distribution", function PPND16: three quotients
 * of polynomials, for the middle, for the tails, and for what is far away. Coefficients from the highest power down. */
#define N_COEFFICIENTS 8

struct quotient {
        double above[N_COEFFICIENTS], below[N_COEFFICIENTS];
};

static const struct quotient MIDDLE = {
        { 2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
          1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0 },
        { 5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
          5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0 },
};

static const struct quotient TAIL = {
        { 7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
          3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0 },
        { 1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
          6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0 },
};

static const struct quotient FAR = {
        { 2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
          2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0 },
        { 2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
          1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0 },
};

static double quotient_at(const struct quotient *quotient, double x) {
        double above = quotient->above[0], below = quotient->below[0];

        for (int i = 1; i < N_COEFFICIENTS; i++) {
                above = above * x + quotient->above[i];
                below = below * x + quotient->below[i];
        }
        return above / below;
}

double noise_quantile(double p) {
        double q = p - 0.5, r;

        if (fabs(q) <= 0.425)
                return q * quotient_at(&MIDDLE, 0.180625 - q * q);
        r = sqrt(-dlp_logarithm(q < 0 ? p : 1 - p));
        r = r <= 5 ? quotient_at(&TAIL, r - 1.6) : quotient_at(&FAR, r - 5);
        return q < 0 ? -r : r;
}

float noise_of_word(uint32_t word) {
        return (float)noise_quantile((word + 0.5) * 0x1p-32);
}

float noise_normal(struct dlp_philox *philox) {
        return noise_of_word(dlp_philox_u32(philox));
}
