#include "daemon/augment/noise.h"

#include "daemon/augment/operations/wide.h"
#include "proto/order/making/order_draws.h"

#include <assert.h>
#include <math.h>
#include <string.h>

uint64_t noise_seed(struct dlp_philox *philox) {
        uint64_t high = dlp_philox_u32(philox);

        return high << 32 | dlp_philox_u32(philox);
}

void noise_begin(uint64_t seed, struct dlp_philox *ret_philox) {
        dlp_philox_init(ret_philox, seed, 0, 0, 0);
}

void noise_words(struct dlp_philox *philox, uint32_t *words, size_t n) {
        size_t n_blocks;

        for (; philox->n_left > 0 && n > 0; n--)
                *words++ = dlp_philox_u32(philox);
        if (n == 0)
                return;
        n_blocks = noise_blocks_avx2(philox, words, n / 4);
        philox->counter[0] += (uint32_t)n_blocks;
        for (size_t i = 4 * n_blocks; i < n; i++)
                words[i] = dlp_philox_u32(philox);
}

/* ---- bytes ------------------------------------------------------------------------------------------------------ */

void noise_bytes_begin(struct dlp_philox *philox, uint64_t n_bytes, struct noise_bytes *ret_bytes) {
        ret_bytes->philox = philox;
        ret_bytes->n_words = (n_bytes + 3) / 4;
        ret_bytes->n_left = 0;
}

void noise_bytes_more(struct noise_bytes *bytes) {
        uint32_t n = bytes->n_words < NOISE_WORDS ? (uint32_t)bytes->n_words : NOISE_WORDS;

        assert(n > 0);
        noise_words(bytes->philox, bytes->words + NOISE_WORDS - n, n);
        bytes->n_words -= n;
        bytes->n_left = 4 * n;
}

/* ---- normal numbers --------------------------------------------------------------------------------------------- */

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

static ALWAYS_INLINE double quotient_at(const struct quotient *quotient, double x) {
        double above = quotient->above[0], below = quotient->below[0];

        for (int i = 1; i < N_COEFFICIENTS; i++) {
                above = above * x + quotient->above[i];
                below = below * x + quotient->below[i];
        }
        return above / below;
}

#define MIDDLE_HALF 0.425 /* distance from 1/2 */

/* The quantile of the normal distribution at p, 0 < p < 1: Wichura's algorithm AS 241, which errs by 1e-16 of the
 * result. */
static double noise_quantile(double p) {
        double q = p - 0.5, r;

        if (fabs(q) <= MIDDLE_HALF)
                return q * quotient_at(&MIDDLE, 0.180625 - q * q);
        r = sqrt(-dlp_logarithm(q < 0 ? p : 1 - p));
        r = r <= 5 ? quotient_at(&TAIL, r - 1.6) : quotient_at(&FAR, r - 5);
        return q < 0 ? -r : r;
}

float noise_of_word(uint32_t word) {
        return (float)noise_quantile((word + 0.5) * 0x1p-32);
}

/* ---- many of them: the middle of all, then the tails of those that are there ------------------------------------ */

#define AT_ONCE 256u

static ALWAYS_INLINE double noise_share_of(uint32_t word) {
        return ((double)(int32_t)(word ^ 1u << 31) + 0x1p31 + 0.5) * 0x1p-32; /* vectors convert signed numbers only */
}

static ALWAYS_INLINE void find_middle_loop(const uint32_t *words, size_t n, float *restrict ret_numbers) {
        for (size_t i = 0; i < n; i++) {
                double q = noise_share_of(words[i]) - 0.5;

                ret_numbers[i] = (float)(q * quotient_at(&MIDDLE, 0.180625 - q * q));
        }
}

WIDE(find_middle, (const uint32_t *words, size_t n, float *ret_numbers), (words, n, ret_numbers))

/* dlp_logarithm(), by the bits of a number that is neither 0 nor subnormal. */
static ALWAYS_INLINE double noise_logarithm(double x) {
        const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
        uint64_t bits, is_low;
        int32_t exponent;
        double m, s, square, sum = 0;

        memcpy(&bits, &x, sizeof(bits));
        exponent = (int32_t)(bits >> 52) - 1022;
        bits = (bits & ((1ull << 52) - 1)) | 1022ull << 52;
        memcpy(&m, &bits, sizeof(m));
        is_low = m < 0.70710678118654752;
        bits += is_low << 52;
        exponent -= (int32_t)is_low;
        memcpy(&m, &bits, sizeof(m));
        s = (m - 1) / (m + 1);
        square = s * s;
        for (int k = 23; k >= 3; k -= 2)
                sum = (sum + 1.0 / k) * square;
        return exponent * ln2_high + (2 * s + (2 * s * sum + exponent * ln2_low));
}

/* For words of the lower tail. None is so far out that the third quotient is needed. */
static ALWAYS_INLINE void find_tail_loop(const uint32_t *words, size_t n, float *restrict ret_numbers) {
        for (size_t i = 0; i < n; i++) {
                double r = sqrt(-noise_logarithm(noise_share_of(words[i])));

                ret_numbers[i] = -(float)quotient_at(&TAIL, r - 1.6);
        }
}

WIDE(find_tail, (const uint32_t *words, size_t n, float *ret_numbers), (words, n, ret_numbers))

/* The quantile of 1 - p is that of p with the other sign, and so is what a word gives whose bits are all inverted. */
static void replace_tails(const uint32_t *words, size_t n, float *numbers) {
        const uint32_t first = (uint32_t)((0.5 - MIDDLE_HALF) * 0x1p32);
        uint32_t tails[AT_ONCE], at[AT_ONCE];
        float found[AT_ONCE];
        size_t n_tails = 0;

        for (size_t i = 0; i < n; i++) {
                bool is_upper = words[i] >> 31;
                uint32_t lower = is_upper ? ~words[i] : words[i];

                at[n_tails] = (uint32_t)i << 1 | is_upper;
                tails[n_tails] = lower;
                n_tails += lower < first + 2;
        }
        find_tail(tails, n_tails, found);
        for (size_t i = 0; i < n_tails; i++)
                if (fabs(noise_share_of(tails[i]) - 0.5) > MIDDLE_HALF)
                        numbers[at[i] >> 1] = at[i] & 1 ? -found[i] : found[i];
}

void noise_of_words(const uint32_t *words, size_t n, float *ret_numbers) {
        for (size_t i = 0; i < n; i += AT_ONCE) {
                size_t n_now = n - i < AT_ONCE ? n - i : AT_ONCE;

                find_middle(words + i, n_now, ret_numbers + i);
                replace_tails(words + i, n_now, ret_numbers + i);
        }
}

void noise_normals(struct dlp_philox *philox, size_t n, float *ret_numbers) {
        uint32_t words[AT_ONCE];

        for (size_t i = 0; i < n; i += AT_ONCE) {
                size_t n_now = n - i < AT_ONCE ? n - i : AT_ONCE;

                noise_words(philox, words, n_now);
                noise_of_words(words, n_now, ret_numbers + i);
        }
}
