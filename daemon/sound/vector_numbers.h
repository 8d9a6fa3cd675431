/* sound/vector_numbers.h: logarithms, sums and noise, in vectors. A part of vector_code.h, which includes it. */
#pragma once

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
