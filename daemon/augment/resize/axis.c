#include "daemon/augment/resize/axis.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* ---- filters ------------------------------------------------------------------------------------------------- */

/* Operations and their sequence are Pillow's, including the odd float constants of the Hamming window: another sequence
 * would change the last bits. This file must not be compiled with contraction to fused operations. */

static const double PI = 3.14159265358979323846;

const char *const RESIZE_FILTER_NAMES[N_RESIZE_FILTERS] = {
        [RESIZE_NEAREST] = "nearest", [RESIZE_BOX] = "box",         [RESIZE_BILINEAR] = "bilinear",
        [RESIZE_HAMMING] = "hamming", [RESIZE_BICUBIC] = "bicubic", [RESIZE_LANCZOS] = "lanczos",
};

/* Half the filter's width, in output pixels or source pixels, whichever are larger. */
static const double SUPPORT[N_RESIZE_FILTERS + 2] = {
        [RESIZE_BOX] = 0.5,     [RESIZE_BILINEAR] = 1.0, [RESIZE_HAMMING] = 1.0,
        [RESIZE_BICUBIC] = 2.0, [RESIZE_LANCZOS] = 3.0,
};

/* Weights of these two filters may be negative. */
ALWAYS_INLINE bool is_signed(enum resize_filter filter) {
        return filter == RESIZE_BICUBIC || filter == RESIZE_LANCZOS;
}

ALWAYS_INLINE double bilinear(double x) {
        x = fabs(x);
        return x < 1.0 ? 1.0 - x : 0.0;
}

static double hamming(double x) {
        x = fabs(x);
        if (x == 0)
                return 1.0;
        if (x >= 1.0)
                return 0.0;
        x = x * PI;
        return sin(x) / x * ((double)0.54f + (double)0.46f * cos(x));
}

ALWAYS_INLINE double bicubic(double x) {
        const double a = -0.5;

        x = fabs(x);
        if (x < 1.0)
                return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
        if (x < 2.0)
                return (((x - 5) * x + 8) * x - 4) * a;
        return 0.0;
}

static double sinc(double x) {
        if (x == 0)
                return 1.0;
        x = x * PI;
        return sin(x) / x;
}

/* Inlined with a constant filter: choosing the filter for each weight would cost more than most filters do. */
ALWAYS_INLINE double filter_weight(enum resize_filter filter, double x) {
        switch (filter) {
        case RESIZE_BOX:
                return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
        case RESIZE_BILINEAR:
                return bilinear(x);
        case RESIZE_HAMMING:
                return hamming(x);
        case RESIZE_BICUBIC:
                return bicubic(x);
        default:
                return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
        }
}

/* ---- memory -------------------------------------------------------------------------------------------------- */

void axis_fini(struct axis *axis) {
        free(axis->weights.first);
        free(axis->weights.count);
        free(axis->weights.whole);
        free(axis->weights.split);
        free(axis->unscaled);
        *axis = (struct axis){};
}

size_t axis_bytes(const struct axis *axis) {
        return axis->n_outputs_max * 2 * sizeof(uint32_t) +
               axis->n_weights_max * (sizeof(int32_t) + 2 * sizeof(int16_t)) + axis->n_taps_max * sizeof(double);
}

/* Replaces an array by one of n elements. The old content is lost, even if there is no memory for the new array. */
static int replace(void *array, size_t n, size_t size) {
        void **pointer = array;

        free(*pointer);
        *pointer = calloc(n, size);
        return *pointer ? 0 : -ENOMEM;
}

/* The number of outputs, including the extra ones that rows() writes. */
static size_t padded_outputs(const struct axis_key *key) {
        return ((size_t)key->window_n + RESIZE_OUTPUTS_AT_ONCE - 1) / RESIZE_OUTPUTS_AT_ONCE * RESIZE_OUTPUTS_AT_ONCE;
}

static int reserve_outputs(struct axis *axis, size_t n_outputs) {
        struct resize_axis *weights = &axis->weights;

        if (n_outputs <= axis->n_outputs_max)
                return 0;
        axis->n_outputs_max = 0;
        if (replace(&weights->first, n_outputs, sizeof(*weights->first)) < 0 ||
            replace(&weights->count, n_outputs, sizeof(*weights->count)) < 0)
                return -ENOMEM;
        axis->n_outputs_max = n_outputs;
        return 0;
}

static int reserve_weights(struct axis *axis, size_t n_outputs, size_t n_taps) {
        struct resize_axis *weights = &axis->weights;
        size_t n = n_outputs * n_taps;

        if (n > axis->n_weights_max) {
                n += n / 4; /* extra room: random crops would otherwise allocate often */
                axis->n_weights_max = 0;
                if (replace(&weights->whole, n, sizeof(*weights->whole)) < 0 ||
                    replace(&weights->split, n, 2 * sizeof(*weights->split)) < 0)
                        return -ENOMEM;
                axis->n_weights_max = n;
        }
        if (n_taps > axis->n_taps_max) {
                axis->n_taps_max = 0;
                if (replace(&axis->unscaled, n_taps, sizeof(*axis->unscaled)) < 0)
                        return -ENOMEM;
                axis->n_taps_max = n_taps;
        }
        return 0;
}

/* ---- windows: the pixels of an output ------------------------------------------------------------------------ */

/* Lengths in source pixels. */
struct scaling {
        double scale;   /* of an output pixel */
        double support; /* on either side of an output's centre */
        double inverse; /* of a distance, to what filter_weight() takes */
};

static struct scaling scaling_of(const struct axis_key *key) {
        double scale = (double)(float)key->n_source / key->n_outputs; /* Pillow's boxes are float32 */
        double filter_scale = scale < 1.0 ? 1.0 : scale;

        return (struct scaling){ scale, SUPPORT[key->filter] * filter_scale, 1.0 / filter_scale };
}

static uint32_t place_of_output(const struct axis_key *key, uint32_t x) {
        return key->flip ? key->window_n - 1 - x : x;
}

static double center_of(const struct axis_key *key, const struct scaling *scaling, uint32_t x) {
        return (key->window_first + x + 0.5) * scaling->scale;
}

/* The pixels from..to-1 of one output. */
ALWAYS_INLINE void find_window(const struct axis_key *key, const struct scaling *scaling, uint32_t x,
                               uint32_t *ret_from, uint32_t *ret_to) {
        double center = center_of(key, scaling, x);
        double begin = center - scaling->support + 0.5, end = center + scaling->support + 0.5;

        *ret_from = begin > 0 ? (uint32_t)begin : 0;
        *ret_to = end < key->n_source ? (uint32_t)end : key->n_source;
}

/* Returns the largest number of source pixels of any output. */
static uint32_t find_windows(struct axis *axis, const struct scaling *scaling) {
        const struct axis_key *key = &axis->key;
        uint32_t max = 0;

        for (uint32_t x = 0; x < key->window_n; x++) {
                uint32_t idx_output = place_of_output(key, x), from, to;

                find_window(key, scaling, x, &from, &to);
                axis->weights.first[idx_output] = from;
                axis->weights.count[idx_output] = to - from;
                if (to - from > max)
                        max = to - from;
        }
        return max;
}

/* ---- weights ------------------------------------------------------------------------------------------------- */

/* Stores two coefficients in the layout of split[]. */
ALWAYS_INLINE void split_pair(const int32_t *whole, int16_t *split) {
        int32_t high_0 = (whole[0] + (1 << (RESIZE_SPLIT - 1))) >> RESIZE_SPLIT;
        int32_t high_1 = (whole[1] + (1 << (RESIZE_SPLIT - 1))) >> RESIZE_SPLIT;

        split[0] = (int16_t)high_0;
        split[1] = (int16_t)high_1;
        split[2] = (int16_t)(whole[0] - high_0 * (1 << RESIZE_SPLIT));
        split[3] = (int16_t)(whole[1] - high_1 * (1 << RESIZE_SPLIT));
}

/* Stores one output's weights as integers that add up to about RESIZE_ONE. */
ALWAYS_INLINE void store_weights(struct axis *axis, enum resize_filter filter, uint32_t idx_output,
                                 const double *unscaled, double sum, uint32_t n_taps) {
        int32_t *whole = axis->weights.whole + (size_t)idx_output * n_taps;
        int16_t *split = axis->weights.split + (size_t)idx_output * n_taps * 2;

        if (sum == 0.0)
                sum = 1.0; /* Pillow then leaves them unchanged; so does a division by 1 */
        for (uint32_t i = 0; i < n_taps; i++) {
                double weight = unscaled[i] / sum;

                whole[i] = (int32_t)((is_signed(filter) && weight < 0 ? -0.5 : 0.5) + weight * RESIZE_ONE);
        }
        for (uint32_t i = 0; i < n_taps; i += 2)
                split_pair(whole + i, split + (size_t)i * 2);
}

/* Taps that are padding have weight 0, and their zeros change neither the sum nor the other weights. */
ALWAYS_INLINE void weigh_taps(struct axis *axis, const struct scaling *scaling, enum resize_filter filter,
                              double *unscaled, uint32_t n_taps) {
        const struct axis_key *key = &axis->key;

        for (uint32_t x = 0; x < key->window_n; x++) {
                uint32_t idx_output = place_of_output(key, x), count = axis->weights.count[idx_output];
                double center = center_of(key, scaling, x), from = axis->weights.first[idx_output], sum = 0;

                for (uint32_t i = 0; i < n_taps; i++) {
                        double distance = from + i - center + 0.5;

                        unscaled[i] = i < count ? filter_weight(filter, distance * scaling->inverse) : 0.0;
                        sum += unscaled[i];
                }
                store_weights(axis, filter, idx_output, unscaled, sum, n_taps);
        }
}

/* Unrolled for the default filter and the usual numbers of taps: most pictures need two axes that are not in memory
 * yet. */
static void weigh_bilinear(struct axis *axis, const struct scaling *scaling) {
        double few[4];

        if (axis->weights.n_taps == 2)
                weigh_taps(axis, scaling, RESIZE_BILINEAR, few, 2);
        else if (axis->weights.n_taps == 4)
                weigh_taps(axis, scaling, RESIZE_BILINEAR, few, 4);
        else
                weigh_taps(axis, scaling, RESIZE_BILINEAR, axis->unscaled, axis->weights.n_taps);
}

static void axis_weigh(struct axis *axis, const struct scaling *scaling) {
        uint32_t n_taps = axis->weights.n_taps;

        switch (axis->key.filter) {
        case RESIZE_BOX:
                weigh_taps(axis, scaling, RESIZE_BOX, axis->unscaled, n_taps);
                break;
        case RESIZE_BILINEAR:
                weigh_bilinear(axis, scaling);
                break;
        case RESIZE_HAMMING:
                weigh_taps(axis, scaling, RESIZE_HAMMING, axis->unscaled, n_taps);
                break;
        case RESIZE_BICUBIC:
                weigh_taps(axis, scaling, RESIZE_BICUBIC, axis->unscaled, n_taps);
                break;
        default:
                weigh_taps(axis, scaling, RESIZE_LANCZOS, axis->unscaled, n_taps);
        }
}

/* ---- an axis ------------------------------------------------------------------------------------------------- */

/* Fills the extra outputs that rows() computes: they use the pixels of the last real output. */
static void pad_outputs(struct axis *axis) {
        struct resize_axis *weights = &axis->weights;
        size_t n_last = weights->n_outputs - 1, n_padded = padded_outputs(&axis->key);

        for (size_t i = n_last + 1; i < n_padded; i++) {
                weights->first[i] = weights->first[n_last];
                weights->count[i] = weights->count[n_last];
                memset(weights->whole + i * weights->n_taps, 0, weights->n_taps * sizeof(*weights->whole));
                memset(weights->split + i * weights->n_taps * 2, 0, weights->n_taps * 2 * sizeof(*weights->split));
        }
}

static size_t axis_read_bytes(const struct resize_axis *weights) {
        uint32_t a = weights->first[0], b = weights->first[weights->n_outputs - 1];
        size_t n_read = (weights->n_taps + RESIZE_READ_TAPS - 1) / RESIZE_READ_TAPS * RESIZE_READ_TAPS;

        return ((a > b ? a : b) + n_read) * PIXEL_BYTES + RESIZE_READ_SLACK;
}

static bool is_same_length(const struct axis_key *key) {
        return key->n_source == key->n_outputs;
}

/* Choosing pixels: each output is one source pixel. Pillow adds up the positions in the source; (x + 0.5) * step would
 * give another pixel in some places. (Rounding cannot carry the sum past the end of the last pixel.) */
static void choose_pixels(struct axis *axis) {
        const struct axis_key *key = &axis->key;
        double step = (double)(float)key->n_source / key->n_outputs, place = step * 0.5;

        for (uint32_t x = 0; x < key->window_first + key->window_n; x++, place += step) {
                uint32_t idx_output;

                if (x < key->window_first)
                        continue;
                idx_output = place_of_output(key, x - key->window_first);
                axis->weights.first[idx_output] = is_same_length(key) ? x : (uint32_t)place;
                axis->weights.count[idx_output] = 1;
        }
}

/* torch's, in its float32. */
static void choose_floor(struct axis *axis) {
        const struct axis_key *key = &axis->key;
        float step = (float)key->n_source / (float)key->n_outputs;

        for (uint32_t x = 0; x < key->window_n; x++) {
                uint32_t place = (uint32_t)((float)(key->window_first + x) * step),
                         idx_output = place_of_output(key, x);

                axis->weights.first[idx_output] = place < key->n_source ? place : key->n_source - 1;
                axis->weights.count[idx_output] = 1;
        }
}

/* Pillow's for samples of 16 bits. */
static void choose_center(struct axis *axis) {
        const struct axis_key *key = &axis->key;
        double step = (double)(float)key->n_source / key->n_outputs;

        for (uint32_t x = 0; x < key->window_n; x++) {
                uint32_t place = (uint32_t)(step * ((double)key->window_first + x + 0.5)),
                         idx_output = place_of_output(key, x);

                axis->weights.first[idx_output] = place < key->n_source ? place : key->n_source - 1;
                axis->weights.count[idx_output] = 1;
        }
}

static void weigh_pixels(struct axis *axis) {
        static const double one[2] = { 1.0, 0.0 };

        for (uint32_t x = 0; x < axis->weights.n_outputs; x++)
                store_weights(axis, RESIZE_NEAREST, x, one, 1.0, 2);
}

/* Makes positions relative to the first source pixel that is given. */
static void count_from_given(struct axis *axis) {
        for (uint32_t x = 0; x < axis->weights.n_outputs; x++)
                axis->weights.first[x] -= axis->key.given_first;
}

static int prepare(struct axis *axis) {
        struct scaling scaling = scaling_of(&axis->key);
        bool is_choice = is_same_length(&axis->key) || resize_chooses(axis->key.filter);
        uint32_t n_taps = 2;
        int r;

        if (is_choice && axis->key.filter == RESIZE_NEAREST_FLOOR && !is_same_length(&axis->key))
                choose_floor(axis);
        else if (is_choice && axis->key.filter == RESIZE_NEAREST_CENTER && !is_same_length(&axis->key))
                choose_center(axis);
        else if (is_choice)
                choose_pixels(axis);
        else
                n_taps = (find_windows(axis, &scaling) + 1) / 2 * 2;
        r = reserve_weights(axis, padded_outputs(&axis->key), n_taps);
        if (r < 0)
                return r;
        axis->weights.n_taps = n_taps;
        if (is_choice)
                weigh_pixels(axis);
        else
                axis_weigh(axis, &scaling);
        if (axis->key.given_first > 0)
                count_from_given(axis);
        pad_outputs(axis);
        axis->weights.n_read_bytes = axis_read_bytes(&axis->weights);
        return 0;
}

static bool same_key(const struct axis_key *a, const struct axis_key *b) {
        return a->n_source == b->n_source && a->n_outputs == b->n_outputs && a->window_first == b->window_first &&
               a->window_n == b->window_n && a->given_first == b->given_first && a->filter == b->filter &&
               a->flip == b->flip;
}

/* Counts like reserve_outputs() and reserve_weights(); the number of taps may be slightly too high. */
uint64_t axis_bytes_needed(const struct axis_key *key, uint32_t *ret_n_taps) {
        struct scaling scaling = scaling_of(key);
        uint64_t n_outputs = padded_outputs(key), n_taps = 2, n_weights;

        if (!is_same_length(key) && !resize_chooses(key->filter))
                n_taps = ((uint64_t)(2 * scaling.support) + 4) / 2 * 2;
        n_weights = n_outputs * n_taps;
        n_weights += n_weights / 4;
        *ret_n_taps = (uint32_t)n_taps;
        return n_outputs * 2 * sizeof(uint32_t) + n_weights * (sizeof(int32_t) + 2 * sizeof(int16_t)) +
               n_taps * sizeof(double);
}

void axis_need(const struct axis_key *key, uint32_t *ret_first, uint32_t *ret_n) {
        struct scaling scaling = scaling_of(key);
        uint32_t first = 0, end = key->n_source, ignored;

        if (is_same_length(key)) {
                first = key->window_first;
                end = first + key->window_n;
        } else if (!resize_chooses(key->filter)) { /* its positions are sums: not worth computing twice */
                find_window(key, &scaling, 0, &first, &ignored);
                find_window(key, &scaling, key->window_n - 1, &ignored, &end);
        }
        *ret_first = first;
        *ret_n = end - first;
}

int axis_prepare(struct axis *axis, const struct axis_key *key) {
        int r;

        if (same_key(&axis->key, key))
                return 0;

        r = reserve_outputs(axis, padded_outputs(key));
        if (r == 0) {
                axis->key = *key;
                axis->weights.n_outputs = key->window_n;
                r = prepare(axis);
        }
        if (r < 0)
                axis->key = (struct axis_key){}; /* nothing is valid */
        return r;
}
