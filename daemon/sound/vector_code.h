/* sound/vector_code.h: frames of a sound -> columns of a spectrum, LANES frames at once; and what is done to these.
 *
 * The code itself, included by one file for each instruction set (code_plain.c, code_avx2.c), which defines TARGET and
 * PRODUCTS. A frame has a lane of its own from the beginning to the end, and no operation is fused or reordered: so the
 * result is the same for each instruction set, and does not depend on which frames it is computed with. */
#pragma once

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "daemon/sound/code.h"
#include "daemon/sound/spectrum.h"

#define CODE  static TARGET
#define QUICK static inline __attribute__((always_inline)) TARGET

/* A line of lanes may begin at any float. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));
typedef uint32_t lane_words __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));
typedef uint64_t lane_wides __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));
typedef int32_t lane_ints __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

struct pair { /* a complex number in each lane */
        lanes re, im;
};

QUICK const lanes *lanes_at(const float *at) {
        return (const lanes *)(const void *)at;
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

#define UNPACK_LOW(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define UNPACK_HIGH(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define PAIRS_LOW(a, b)   __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define PAIRS_HIGH(a, b)  __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define FOURS_LOW(a, b)   __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define FOURS_HIGH(a, b)  __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)

/* Eight numbers of each of eight frames: rows become columns. */
QUICK void turn(lanes v[LANES]) {
        lanes two[LANES], four[LANES];

        for (int i = 0; i < 4; i++) {
                two[2 * i] = UNPACK_LOW(v[2 * i], v[2 * i + 1]);
                two[2 * i + 1] = UNPACK_HIGH(v[2 * i], v[2 * i + 1]);
        }
        for (int i = 0; i < 2; i++) {
                four[4 * i] = PAIRS_LOW(two[4 * i], two[4 * i + 2]);
                four[4 * i + 1] = PAIRS_HIGH(two[4 * i], two[4 * i + 2]);
                four[4 * i + 2] = PAIRS_LOW(two[4 * i + 1], two[4 * i + 3]);
                four[4 * i + 3] = PAIRS_HIGH(two[4 * i + 1], two[4 * i + 3]);
        }
        for (int i = 0; i < 4; i++) {
                v[i] = FOURS_LOW(four[i], four[i + 4]);
                v[i + 4] = FOURS_HIGH(four[i], four[i + 4]);
        }
}

/* Times the window, as lines of lanes. Of the window only what is not zero by its length is read. */
CODE void take_frames(const struct spectrum *spectrum, const float *const frames[LANES], lanes *out) {
        const float *window = spectrum->window;
        uint32_t i = spectrum->window_begin, end = i + spectrum->window_length;

        memset(out, 0, i * sizeof(*out));
        memset(out + end, 0, (spectrum->fft.n - end) * sizeof(*out));
        for (; i + LANES <= end; i += LANES) {
                lanes v[LANES], weights = *lanes_at(window + i);

                for (unsigned lane = 0; lane < LANES; lane++)
                        v[lane] = *lanes_at(frames[lane] + i) * weights;
                turn(v);
                for (unsigned k = 0; k < LANES; k++)
                        out[i + k] = v[k];
        }
        for (; i < end; i++)
                for (unsigned lane = 0; lane < LANES; lane++)
                        out[i][lane] = frames[lane][i] * window[i];
}

/* ---- the transform ----------------------------------------------------------------------------------------------- */

QUICK void put(struct pair *to, const lanes *re, const lanes *im, const float *twist, bool twists) {
        if (twists) {
                lanes turned = *re * twist[0] - *im * twist[1];

                to->im = *re * twist[1] + *im * twist[0];
                to->re = turned;
        } else {
                to->re = *re;
                to->im = *im;
        }
}

/* The butterflies: numbers that are `step` apart become numbers that are `stride` apart. */
QUICK void two(const struct pair *a, uint64_t step, struct pair *b, uint64_t stride, const float *twist, bool twists) {
        struct pair x = a[0], y = a[step];
        lanes re = x.re - y.re, im = x.im - y.im;

        b[0] = (struct pair){ x.re + y.re, x.im + y.im };
        put(&b[stride], &re, &im, twist, twists);
}

QUICK void three(const struct pair *a, uint64_t step, struct pair *b, uint64_t stride, const float *twist,
                 bool twists) {
        static const float SINE = 0.866025403784438647f; /* of a third of a turn */
        struct pair x = a[0], y = a[step], z = a[2 * step];
        struct pair sum = { y.re + z.re, y.im + z.im };
        lanes half_re = x.re - 0.5f * sum.re, half_im = x.im - 0.5f * sum.im;
        lanes side_re = SINE * (y.im - z.im), side_im = SINE * (z.re - y.re);
        lanes re = half_re + side_re, im = half_im + side_im;

        b[0] = (struct pair){ x.re + sum.re, x.im + sum.im };
        put(&b[stride], &re, &im, twist, twists);
        re = half_re - side_re;
        im = half_im - side_im;
        put(&b[2 * stride], &re, &im, twist + 2, twists);
}

QUICK void four(const struct pair *a, uint64_t step, struct pair *b, uint64_t stride, const float *twist, bool twists) {
        struct pair p = a[0], q = a[step], r = a[2 * step], s = a[3 * step];
        struct pair sum = { p.re + r.re, p.im + r.im }, rest = { p.re - r.re, p.im - r.im };
        struct pair odd = { q.re + s.re, q.im + s.im }, side = { q.im - s.im, s.re - q.re };
        lanes re = rest.re + side.re, im = rest.im + side.im;

        b[0] = (struct pair){ sum.re + odd.re, sum.im + odd.im };
        put(&b[stride], &re, &im, twist, twists);
        re = sum.re - odd.re;
        im = sum.im - odd.im;
        put(&b[2 * stride], &re, &im, twist + 2, twists);
        re = rest.re - side.re;
        im = rest.im - side.im;
        put(&b[3 * stride], &re, &im, twist + 4, twists);
}

QUICK void five(const struct pair *a, uint64_t step, struct pair *b, uint64_t stride, const float *twist, bool twists) {
        static const float COS_1 = 0.309016994374947424f, COS_2 = -0.809016994374947424f; /* of fifths of a turn */
        static const float SIN_1 = 0.951056516295153572f, SIN_2 = 0.587785252292473129f;
        struct pair x = a[0], p = a[step], q = a[2 * step], r = a[3 * step], s = a[4 * step];
        struct pair outer = { p.re + s.re, p.im + s.im }, inner = { q.re + r.re, q.im + r.im };
        struct pair wide = { p.im - s.im, s.re - p.re }, narrow = { q.im - r.im, r.re - q.re };
        struct pair first = { x.re + COS_1 * outer.re + COS_2 * inner.re, x.im + COS_1 * outer.im + COS_2 * inner.im };
        struct pair second = { x.re + COS_2 * outer.re + COS_1 * inner.re, x.im + COS_2 * outer.im + COS_1 * inner.im };
        struct pair one = { SIN_1 * wide.re + SIN_2 * narrow.re, SIN_1 * wide.im + SIN_2 * narrow.im };
        struct pair other = { SIN_2 * wide.re - SIN_1 * narrow.re, SIN_2 * wide.im - SIN_1 * narrow.im };
        lanes re = first.re + one.re, im = first.im + one.im;

        b[0] = (struct pair){ x.re + outer.re + inner.re, x.im + outer.im + inner.im };
        put(&b[stride], &re, &im, twist, twists);
        re = second.re + other.re;
        im = second.im + other.im;
        put(&b[2 * stride], &re, &im, twist + 2, twists);
        re = second.re - other.re;
        im = second.im - other.im;
        put(&b[3 * stride], &re, &im, twist + 4, twists);
        re = first.re - one.re;
        im = first.im - one.im;
        put(&b[4 * stride], &re, &im, twist + 6, twists);
}

/* Any other factor: its square is what it costs. */
CODE void many(const struct fft_pass *pass, const struct pair *a, uint64_t step, struct pair *b, const float *twist) {
        for (uint64_t j = 0; j < pass->factor; j++) {
                lanes re = { 0 }, im = { 0 };

                for (uint64_t k = 0; k < pass->factor; k++) {
                        const float *root = pass->roots + 2 * (j * k % pass->factor);
                        const struct pair *x = &a[k * step];

                        re += x->re * root[0] - x->im * root[1];
                        im += x->re * root[1] + x->im * root[0];
                }
                put(&b[j * pass->stride], &re, &im, twist + 2 * (j - (j > 0)), j > 0);
        }
}

#define BUTTERFLIES(name)                                                                                              \
        CODE void pass_of_##name(const struct fft_pass *pass, const struct pair *from, struct pair *to) {              \
                uint64_t stride = pass->stride, step = stride * pass->count;                                           \
                                                                                                                       \
                for (uint64_t q = 0; pass->count == 1 && q < stride; q++)                                              \
                        name(from + q, step, to + q, stride, NULL, false);                                             \
                for (uint64_t p = 0; pass->count > 1 && p < pass->count; p++) {                                        \
                        const float *twist = pass->twists + 2 * p * (pass->factor - 1);                                \
                                                                                                                       \
                        for (uint64_t q = 0; q < stride; q++)                                                          \
                                name(from + stride * p + q, step, to + stride * pass->factor * p + q, stride, twist,   \
                                     true);                                                                            \
                }                                                                                                      \
        }

BUTTERFLIES(two)
BUTTERFLIES(three)
BUTTERFLIES(four)
BUTTERFLIES(five)

CODE void pass_of_many(const struct fft_pass *pass, const struct pair *from, struct pair *to) {
        uint64_t stride = pass->stride;

        for (uint64_t p = 0; p < pass->count; p++)
                for (uint64_t q = 0; q < stride; q++)
                        many(pass, from + stride * p + q, stride * pass->count, to + stride * pass->factor * p + q,
                             pass->twists + 2 * p * (pass->factor - 1));
}

/* From one buffer to the other and back. Returns the one that has the result. */
CODE struct pair *transform(const struct fft *fft, struct pair *from, struct pair *to) {
        for (uint32_t i = 0; i < fft->n_passes; i++) {
                const struct fft_pass *pass = &fft->passes[i];
                struct pair *done = to;

                if (pass->factor == 2)
                        pass_of_two(pass, from, to);
                else if (pass->factor == 3)
                        pass_of_three(pass, from, to);
                else if (pass->factor == 4)
                        pass_of_four(pass, from, to);
                else if (pass->factor == 5)
                        pass_of_five(pass, from, to);
                else
                        pass_of_many(pass, from, to);
                to = from;
                from = done;
        }
        return from;
}

/* ---- powers ------------------------------------------------------------------------------------------------------ */

#define POWER_OF(re, im) ((re) * (re) + (im) * (im))

/* Even and odd numbers of a frame were transformed as real and imaginary parts: takes them apart again. */
CODE void powers_of_halves(const struct fft *fft, const struct pair *z, lanes *powers) {
        uint32_t half = fft->n_complex;
        lanes sum = z[0].re + z[0].im, difference = z[0].re - z[0].im;

        powers[0] = sum * sum;
        powers[half] = difference * difference;
        for (uint32_t k = 1; k <= half - k; k++) {
                struct pair x = z[k], y = z[half - k];
                const float *root = fft->halves + 2 * (uint64_t)k;
                lanes even_re = 0.5f * (x.re + y.re), even_im = 0.5f * (x.im - y.im);
                lanes odd_re = 0.5f * (x.im + y.im), odd_im = 0.5f * (y.re - x.re);
                lanes re = odd_re * root[0] - odd_im * root[1], im = odd_re * root[1] + odd_im * root[0];

                powers[half - k] = POWER_OF(even_re - re, even_im - im);
                powers[k] = POWER_OF(even_re + re, even_im + im);
        }
}

CODE void powers_of_all(const struct fft *fft, const struct pair *z, lanes *powers) {
        for (uint32_t k = 0; k <= fft->n / 2; k++)
                powers[k] = POWER_OF(z[k].re, z[k].im);
}

/* Magnitudes, or what else the exponent makes of them. */
CODE void raise_powers(float *powers, uint64_t n, float exponent) {
        if (exponent == 2)
                return;
        for (uint64_t i = 0; i < n; i++)
                powers[i] = sqrtf(powers[i]);
        for (uint64_t i = 0; exponent != 1 && i < n; i++)
                powers[i] = powf(powers[i], exponent);
}

CODE const lanes *compute_powers(const struct spectrum *spectrum, const float *const frames[LANES], float *scratch) {
        const struct fft *fft = &spectrum->fft;
        struct pair *first = (struct pair *)(void *)scratch, *second = first + fft->n_complex;
        lanes *powers = (lanes *)(void *)(second + fft->n_complex);
        bool is_even = fft->n % 2 == 0;

        if (is_even) {
                take_frames(spectrum, frames, (lanes *)(void *)first);
                powers_of_halves(fft, transform(fft, first, second), powers);
        } else {
                take_frames(spectrum, frames, powers);
                for (uint32_t i = 0; i < fft->n; i++)
                        first[i] = (struct pair){ .re = powers[i], .im = { 0 } };
                powers_of_all(fft, transform(fft, first, second), powers);
        }
        raise_powers((float *)(void *)powers, (fft->n / 2 + 1) * (uint64_t)LANES, spectrum->power);
        return powers;
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

QUICK void put_row(const lanes *row, float *out, uint32_t n_lanes) {
        if (n_lanes == LANES)
                *(lanes *)(void *)out = *row;
        else
                memcpy(out, row, n_lanes * sizeof(float));
}

CODE void columns(const struct spectrum *spectrum, const float *const frames[LANES], uint32_t n_lanes, float *scratch,
                  float *out, uint64_t stride) {
        const lanes *powers = compute_powers(spectrum, frames, scratch);
        const struct filter_bank *bank = &spectrum->bank;

        for (uint32_t k = 0; bank->n_filters == 0 && k <= spectrum->fft.n / 2; k++)
                put_row(&powers[k], out + k * stride, n_lanes);
        for (uint32_t m = 0; m < bank->n_filters; m++) {
                const struct filter *filter = &bank->filters[m];
                lanes sum = { 0 };

                for (uint32_t k = 0; k < filter->n; k++)
                        sum += powers[filter->first + k] * filter->weights[k];
                put_row(&sum, out + m * stride, n_lanes);
        }
}

#define MIXED_ROWS 8u

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* Where the mask is true, the first one. */
QUICK void choose(const lane_ints *mask, const lanes *yes, lanes *no) {
        *no = (lanes)(((lane_ints)*yes & *mask) | ((lane_ints)*no & ~*mask));
}

/* The number is 2^e * m with m around 1, and the logarithm of m a series of (m - 1) / (m + 1). ln 2 and its decimal
 * logarithm have two parts, of which the first one times e is exact. Below FLT_MIN: NaN. */
QUICK void logarithm(lanes *numbers, float scale) {
        static const uint32_t ROOT_HALF = 0x3f3504f3; /* the bits of sqrt(0.5), where m begins */
        lanes x = *numbers, nan = x - x + NAN;
        lane_words bits = (lane_words)x - ROOT_HALF, mantissa = (bits & 0x7fffff) + ROOT_HALF;
        lane_ints exponent = (lane_ints)bits >> 23, is_finite = x <= FLT_MAX, is_small = x < FLT_MIN;
        lanes e = __builtin_convertvector(exponent, lanes), f = (lanes)mantissa - 1.0f;
        lanes s = f / (f + 2.0f), square = s * s;
        lanes series = ((square * (1.0f / 9) + 1.0f / 7) * square + 1.0f / 5) * square + 1.0f / 3;
        lanes log_m = 2.0f * (s + s * square * series), result;

        if (scale == 0)
                result = e * 0.693359375f + (log_m + e * -2.12194440e-4f);
        else
                result = scale * (e * 0.301025390625f + (log_m * 0.434294481903f + e * 4.60503898e-6f));
        choose(&is_finite, &result, &x);
        choose(&is_small, &nan, &x);
        *numbers = x;
}

QUICK void logarithm_of(lanes *x, float offset, float least, float scale) {
        lanes lowest = { 0 }, sum = *x + offset;
        lane_ints is_less;

        lowest += least;
        is_less = sum < lowest;
        choose(&is_less, &lowest, &sum);
        logarithm(&sum, scale);
        *x = sum;
}

CODE void logarithms(float *numbers, uint64_t n, float offset, float least, float scale) {
        uint64_t i = 0;
        lanes last = { 0 };

        for (; i + LANES <= n; i += LANES)
                logarithm_of((lanes *)(void *)(numbers + i), offset, least, scale);
        if (i == n)
                return;
        memcpy(&last, numbers + i, (n - i) * sizeof(float));
        logarithm_of(&last, offset, least, scale);
        memcpy(numbers + i, &last, (n - i) * sizeof(float));
}

CODE float largest(const float *numbers, uint64_t n) {
        lanes most = { 0 };
        lane_ints is_nan = { 0 };
        float result = -INFINITY;
        uint64_t i = 0;

        most -= INFINITY;
        for (; i + LANES <= n; i += LANES) {
                lanes x = *lanes_at(numbers + i);
                lane_ints is_more = x > most;

                choose(&is_more, &x, &most);
                is_nan |= x != x;
        }
        for (unsigned lane = 0; lane < LANES; lane++) {
                if (is_nan[lane])
                        return NAN;
                result = most[lane] > result ? most[lane] : result;
        }
        for (; i < n; i++) {
                if (isnan(numbers[i]))
                        return NAN;
                result = numbers[i] > result ? numbers[i] : result;
        }
        return result;
}

CODE void raise_all(float *numbers, uint64_t n, float least) {
        for (uint64_t i = 0; i < n; i++)
                numbers[i] = numbers[i] < least || isnan(least) ? least : numbers[i];
}

CODE double energy(const float *numbers, uint64_t n_frames, uint64_t stride) {
        double sums[LANES] = { 0 }, sum = 0;
        uint64_t i = 0;

        for (; stride == 1 && i + LANES <= n_frames; i += LANES)
                for (unsigned lane = 0; lane < LANES; lane++)
                        sums[lane] += (double)numbers[i + lane] * (double)numbers[i + lane];
        for (; i < n_frames; i++)
                sums[i % LANES] += (double)numbers[i * stride] * (double)numbers[i * stride];
        for (unsigned lane = 0; lane < LANES; lane++)
                sum += sums[lane];
        return sum;
}

CODE void add(float *numbers, const float *others, uint64_t n_frames, uint64_t stride, float factor) {
        for (uint64_t i = 0; stride == 1 && i < n_frames; i++)
                numbers[i] += factor * others[i];
        for (uint64_t i = 0; stride != 1 && i < n_frames; i++)
                numbers[i * stride] += factor * others[i * stride];
}

CODE void scale_all(float *numbers, uint64_t n, float factor, float limit) {
        for (uint64_t i = 0; i < n; i++) {
                float x = numbers[i] * factor;

                x = x > limit ? limit : x;
                numbers[i] = x < -limit ? -limit : x;
        }
}

/* Eight rows at once: each number of a column is loaded once for all of them. */
QUICK void mix_rows(const float *in, uint64_t in_stride, uint32_t n_in, const float *weights, uint32_t n_rows,
                    float *out, uint64_t out_stride) {
        lanes sums[MIXED_ROWS] = { { 0 } };

        for (uint32_t m = 0; m < n_in; m++) {
                lanes x = *lanes_at(in + m * in_stride);

                for (uint32_t k = 0; k < MIXED_ROWS; k++)
                        sums[k] += x * weights[(k < n_rows ? k : 0) * (uint64_t)n_in + m];
        }
        for (uint32_t k = 0; k < n_rows; k++)
                *(lanes *)(void *)(out + k * out_stride) = sums[k];
}

CODE void mix(const float *in, uint64_t in_stride, uint32_t n_in, const float *weights, uint32_t n_out, uint64_t n,
              float *out, uint64_t out_stride) {
        uint64_t t = 0;

        for (; t + LANES <= n; t += LANES)
                for (uint32_t k = 0; k < n_out; k += MIXED_ROWS)
                        if (k + MIXED_ROWS <= n_out)
                                mix_rows(in + t, in_stride, n_in, weights + k * n_in, MIXED_ROWS,
                                         out + k * out_stride + t, out_stride);
                        else
                                mix_rows(in + t, in_stride, n_in, weights + k * n_in, n_out - k,
                                         out + k * out_stride + t, out_stride);
        for (; t < n; t++)
                for (uint32_t k = 0; k < n_out; k++) {
                        float sum = 0;

                        for (uint32_t m = 0; m < n_in; m++)
                                sum += in[m * in_stride + t] * weights[k * n_in + m];
                        out[k * out_stride + t] = sum;
                }
}

/* ---- noise ------------------------------------------------------------------------------------------------------- */

QUICK void square_roots(lanes *x) {
        float numbers[LANES];

        memcpy(numbers, x, sizeof(numbers));
        for (unsigned lane = 0; lane < LANES; lane++)
                numbers[lane] = sqrtf(numbers[lane]);
        memcpy(x, numbers, sizeof(numbers));
}

/* Box and Muller: the first words say how far from zero a pair of numbers is, the others in which direction. That is a
 * quarter of a turn, of two bits, and an angle of 24 bits around its middle, whose sine and cosine are series. */
QUICK void make_normals(const uint32_t *words, float *out) {
        lane_words far = *(const lane_words *)(const void *)words,
                   where = *(const lane_words *)(const void *)(words + LANES);
        lanes radius = (__builtin_convertvector((lane_ints)(far >> 8), lanes) + 1.0f) * 0x1p-24f;
        lanes x = (__builtin_convertvector((lane_ints)(where << 2 >> 8), lanes) - 0x1p23f) * (float)(M_PI_2 * 0x1p-24);
        lanes square = x * x, one = x * 0.0f + 1.0f;
        lanes sine = x + x * square * (square * (square * (-1.0f / 5040) + 1.0f / 120) - 1.0f / 6);
        lanes cosine = one + square * (square * (square * (square * (1.0f / 40320) - 1.0f / 720) + 1.0f / 24) - 0.5f);
        lane_ints quarter = (lane_ints)(where >> 30), is_odd = (quarter & 1) == 1;
        lane_words negates_cosine = (lane_words)((quarter + 1) >> 1 & 1) << 31,
                   negates_sine = (lane_words)(quarter >> 1) << 31;
        lanes first = cosine, second = sine;

        logarithm(&radius, 0);
        radius *= -2.0f;
        square_roots(&radius);
        choose(&is_odd, &sine, &first);
        choose(&is_odd, &cosine, &second);
        first = (lanes)((lane_words)first ^ negates_cosine);
        second = (lanes)((lane_words)second ^ negates_sine);
        *(lanes *)(void *)out = first * radius;
        *(lanes *)(void *)(out + LANES) = second * radius;
}

/* Both halves of 64 bits of each word times a factor. PRODUCTS multiplies the even ones. */
QUICK void multiply(const lane_words *words, uint32_t factor, lane_words *low, lane_words *high) {
        lane_wides even = PRODUCTS((lane_wides)*words, factor), odd = PRODUCTS((lane_wides)*words >> 32, factor);

        *low = (lane_words)((even & UINT32_MAX) | odd << 32);
        *high = (lane_words)(even >> 32 | (odd & ~(uint64_t)UINT32_MAX));
}

/* proto/order/philox.h: the first words of LANES blocks that follow one another, then the second ones, and so on. */
QUICK void draw_blocks(const uint32_t key[2], uint32_t block, uint32_t words[4 * LANES]) {
        lane_words a = { 0, 1, 2, 3, 4, 5, 6, 7 }, b = { 0 }, c = { 0 }, d = { 0 }, low_0, high_0, low_1, high_1;
        uint32_t key_0 = key[0], key_1 = key[1];

        a += block;
        for (unsigned round = 0; round < 10; round++) {
                multiply(&a, 0xd2511f53u, &low_0, &high_0);
                multiply(&c, 0xcd9e8d57u, &low_1, &high_1);
                a = high_1 ^ b ^ key_0;
                b = low_1;
                c = high_0 ^ d ^ key_1;
                d = low_0;
                key_0 += 0x9e3779b9u;
                key_1 += 0xbb67ae85u;
        }
        memcpy(words, &a, sizeof(a));
        memcpy(words + LANES, &b, sizeof(b));
        memcpy(words + 2 * LANES, &c, sizeof(c));
        memcpy(words + 3 * LANES, &d, sizeof(d));
}

CODE void normals(const uint32_t key[2], uint32_t block, uint64_t n_times, float *out) {
        for (; n_times > 0; n_times--, block += LANES, out += NORMALS_AT_ONCE) {
                uint32_t words[4 * LANES];

                draw_blocks(key, block, words);
                make_normals(words, out);
                make_normals(words + 2 * LANES, out + 2 * LANES);
        }
}

#define VECTOR_CODE                                                                                                    \
        {                                                                                                              \
                .columns = columns, .logarithms = logarithms, .largest = largest, .raise = raise_all, .mix = mix,      \
                .normals = normals, .energy = energy, .add = add, .scale = scale_all                                   \
        }
