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
                        name(from + q, step, to + q, stride, pass->twists, false);                                     \
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

#include "daemon/sound/vector_numbers.h"

#define VECTOR_CODE                                                                                                    \
        {                                                                                                              \
                .columns = columns, .logarithms = logarithms, .largest = largest, .raise = raise_all, .mix = mix,      \
                .normals = normals, .energy = energy, .add = add, .scale = scale_all                                   \
        }
