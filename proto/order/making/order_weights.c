#include "proto/order/making/order_weights.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "proto/order/making/order_draws.h"

#define BLOCK    DLP_WEIGHTS_BLOCK
#define LANES    8u
#define AT_ONCE  32u    /* draws whose cache misses overlap */
#define PUBLISH  16384u /* draws: a few milliseconds */
#define LOOK     16384u /* blocks between two looks at whether the order is still wanted: the same */
#define GUIDE_AT 4u     /* blocks a guide */

/* ---- where weights come from ----------------------------------------------------------------------------------- */

static const double *order_weights_read_column(const void *userdata, uint64_t i, uint64_t n, double *buffer) {
        const struct dlp_column *column = userdata;

        if (column->dtype == DLP_DTYPE_FLOAT64)
                return (const double *)column->values + i;
        dlp_column_reals(column, i, n, buffer);
        return buffer;
}

struct dlp_weights_source dlp_weights_of_column(const char *step, const struct dlp_column *column) {
        return (struct dlp_weights_source){ .read = order_weights_read_column,
                                            .userdata = column,
                                            .memory = column->values,
                                            .n_bytes = (uint32_t)dlp_dtype_bytes(column->dtype),
                                            .step = step,
                                            .name = column->name };
}

int dlp_weights_check(struct dlp_making *making, const struct dlp_weights_source *source, uint64_t i, double weight) {
        if (weight >= 0 && weight <= 0x1.fffffffffffffp+1023)
                return 0;
        return why_set(making->why, -EINVAL,
                       "%s: \"%s\" has the weight %g at sample %llu; a weight is a finite number, 0 or more",
                       source->step, source->name, weight, (unsigned long long)i);
}

int dlp_weights_refuse_total(struct dlp_making *making, const struct dlp_weights_source *source, uint64_t n,
                             double total) {
        if (total > 0)
                return why_set(making->why, -EINVAL, "%s: the %llu weights of \"%s\" have an infinite sum",
                               source->step, (unsigned long long)n, source->name);
        return why_set(making->why, -EINVAL, "%s: all %llu weights of \"%s\" are 0", source->step,
                       (unsigned long long)n, source->name);
}

/* ---- sums ------------------------------------------------------------------------------------------------------ */

static uint64_t block_length(const struct dlp_weights *weights, uint64_t block) {
        uint64_t n_left = weights->n - block * BLOCK;

        return n_left < BLOCK ? n_left : BLOCK;
}

typedef double lanes_t __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double))));
typedef int64_t marks_t __attribute__((vector_size(LANES * sizeof(int64_t))));

/* A whole block in lanes. *is_bad: some weight is negative; infinite ones and NaN are seen in the total. */
static double sum_in_lanes(const double *values, bool *is_bad) {
        const lanes_t *rows = (const lanes_t *)values, none = { 0 };
        lanes_t sum = { 0 };
        marks_t bad = { 0 };
        int64_t any_bad = 0;

        for (unsigned i = 0; i < BLOCK / LANES; i++) {
                sum += rows[i];
                bad |= rows[i] < none;
        }
        for (unsigned i = 0; i < LANES; i++)
                any_bad |= bad[i];
        *is_bad = any_bad != 0;
        return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

/* `sum` and the weights of a block, one after the other. */
static double sum_in_sequence(double sum, const double *values, uint64_t n, bool *is_bad) {
        bool bad = false;

        for (uint64_t i = 0; i < n; i++) {
                bad |= !(values[i] >= 0);
                sum += values[i];
        }
        *is_bad = bad;
        return sum;
}

static int find_bad(struct dlp_making *making, const struct dlp_weights *weights) {
        double buffer[BLOCK];
        int r = 0;

        for (uint64_t i = 0; r == 0 && i < weights->n; i++)
                r = dlp_weights_check(making, weights->source, i,
                                      *weights->source->read(weights->source->userdata, i, 1, buffer));
        return r;
}

static int order_weights_add_up(struct dlp_making *making, struct dlp_weights *weights) {
        const struct dlp_weights_source *source = weights->source;
        double sum = 0, buffer[BLOCK];
        bool any_bad = false, is_bad;

        for (uint64_t block = 0; block < weights->n_blocks; block++) {
                uint64_t n = block_length(weights, block);
                const double *values = source->read(source->userdata, block * BLOCK, n, buffer);

                if (weights->is_torch || n < BLOCK)
                        sum = sum_in_sequence(sum, values, n, &is_bad);
                else
                        sum += sum_in_lanes(values, &is_bad);
                any_bad |= is_bad;
                weights->ends[block] = sum;
                if (block % LOOK == LOOK - 1 && !making->go_on(making, 0, weights->n))
                        return -ECANCELED;
        }
        if (any_bad || !isfinite(sum)) {
                int r = find_bad(making, weights);

                if (r < 0)
                        return r;
        }
        if (!(sum > 0) || !isfinite(sum))
                return dlp_weights_refuse_total(making, source, weights->n, sum);
        weights->total = sum;
        return 0;
}

/* ---- from a draw to its block ---------------------------------------------------------------------------------- */

static double order_weights_step_of(double value, int64_t by) {
        uint64_t bits;

        memcpy(&bits, &value, sizeof(bits));
        bits += (uint64_t)by;
        memcpy(&value, &bits, sizeof(bits));
        return value;
}

/* The smallest sum that the draw u is not beyond. torch compares u with sums that are divided by the total; division is
 * monotonic, so there is a smallest sum that passes, and it is next to u * total. */
static double threshold(const struct dlp_weights *weights, double u) {
        double sum = u * weights->total;

        if (!weights->is_torch)
                return order_weights_step_of(sum, 1); /* the first sum above it */
        while (sum / weights->total < u)
                sum = order_weights_step_of(sum, 1);
        while (sum > 0 && order_weights_step_of(sum, -1) / weights->total >= u)
                sum = order_weights_step_of(sum, -1);
        return sum;
}

static int make_guides(struct dlp_making *making, struct dlp_weights *weights) {
        uint64_t block = 0, last = weights->n_blocks - 1;

        for (uint64_t i = 0; i < weights->n_guides; i++) {
                double sum = threshold(weights, (double)i / (double)weights->n_guides);

                while (block < last && weights->ends[block] < sum)
                        block++;
                weights->guides[i] = (uint32_t)block;
                if (i % (1u << 20) == (1u << 20) - 1 && !making->go_on(making, 0, weights->n))
                        return -ECANCELED;
        }
        weights->guides[weights->n_guides] = (uint32_t)last;
        return 0;
}

/* The first block whose end reaches `sum`; the last one, if rounding lets none do so. */
static uint64_t order_weights_block_of(const struct dlp_weights *weights, uint64_t guide, double sum) {
        uint64_t low = weights->guides[guide], high = weights->guides[guide + 1];

        while (low < high) {
                uint64_t middle = low + (high - low) / 2;

                if (weights->ends[middle] >= sum)
                        high = middle;
                else
                        low = middle + 1;
        }
        return low;
}

/* The first sample of the block at which the sum is reached. Where sums are of lanes, they may differ in the last bit
 * from the sum up to here: then it is the last sample that has a weight. */
static uint64_t sample_in(const struct dlp_weights *weights, uint64_t block, double sum, double buffer[BLOCK]) {
        uint64_t n = block_length(weights, block), last = n - 1;
        double at = block > 0 ? weights->ends[block - 1] : 0;
        const double *values = weights->source->read(weights->source->userdata, block * BLOCK, n, buffer);

        for (uint64_t i = 0; i < n; i++) {
                at += values[i];
                if (at >= sum)
                        return block * BLOCK + i;
        }
        while (!weights->is_torch && last > 0 && !(values[last] > 0))
                last--;
        return block * BLOCK + last;
}

/* ---- public ---------------------------------------------------------------------------------------------------- */

static uint64_t n_blocks_of(uint64_t n) {
        return (n + BLOCK - 1) / BLOCK;
}

static uint64_t n_guides_of(uint64_t n) {
        uint64_t n_guides = 1;

        while (n_guides < n_blocks_of(n) / GUIDE_AT)
                n_guides *= 2;
        return n_guides;
}

uint64_t dlp_weights_bytes(uint64_t n) {
        return n_blocks_of(n) * sizeof(double) + (n_guides_of(n) + 1) * sizeof(uint32_t);
}

int dlp_weights_init(struct dlp_making *making, const struct dlp_weights_source *source, uint64_t n,
                     struct dlp_weights *ret_weights) {
        struct dlp_weights weights = { .source = source,
                                       .n = n,
                                       .n_blocks = n_blocks_of(n),
                                       .n_guides = n_guides_of(n),
                                       .is_torch = n <= DLP_WEIGHTS_TORCH_MAX };
        int r;

        if (weights.n_blocks > UINT32_MAX)
                return why_set(making->why, -EINVAL, "%s: %llu weights; at most %llu are allowed", source->step,
                               (unsigned long long)n, (unsigned long long)UINT32_MAX * BLOCK);
        r = dlp_making_allocate(making, weights.n_blocks, sizeof(double), &weights.ends);
        if (r == 0)
                r = dlp_making_allocate(making, weights.n_guides + 1, sizeof(uint32_t), &weights.guides);
        if (r == 0)
                r = order_weights_add_up(making, &weights);
        if (r == 0)
                r = make_guides(making, &weights);
        *ret_weights = weights;
        return r;
}

void dlp_weights_fini(struct dlp_making *making, struct dlp_weights *weights) {
        making->release(making, weights->ends, weights->n_blocks * sizeof(double));
        making->release(making, weights->guides, (weights->n_guides + 1) * sizeof(uint32_t));
        *weights = (struct dlp_weights){ 0 };
}

static void prefetch_block(const struct dlp_weights_source *source, uint64_t block) {
        const uint8_t *memory = (const uint8_t *)source->memory + block * BLOCK * source->n_bytes;

        for (uint32_t i = 0; i < BLOCK * source->n_bytes; i += 64)
                __builtin_prefetch(memory + i);
}

/* Draws n <= AT_ONCE samples. What each needs next is asked of the memory before the first of them is looked at. */
static void draw_some(const struct dlp_weights *weights, struct dlp_torch_random *random, uint64_t n,
                      uint64_t *ret_samples) {
        double sums[AT_ONCE], buffer[BLOCK];
        uint64_t guides[AT_ONCE], blocks[AT_ONCE];

        for (uint64_t i = 0; i < n; i++) {
                double u = dlp_draw_f64(random);

                sums[i] = threshold(weights, u);
                guides[i] = (uint64_t)(u * (double)weights->n_guides);
                __builtin_prefetch(&weights->guides[guides[i]]);
        }
        for (uint64_t i = 0; i < n; i++)
                __builtin_prefetch(&weights->ends[weights->guides[guides[i]]]);
        for (uint64_t i = 0; i < n; i++) {
                blocks[i] = order_weights_block_of(weights, guides[i], sums[i]);
                prefetch_block(weights->source, blocks[i]);
        }
        for (uint64_t i = 0; i < n; i++)
                ret_samples[i] = sample_in(weights, blocks[i], sums[i], buffer);
}

int dlp_weights_draw(struct dlp_making *making, const struct dlp_weights *weights, struct dlp_torch_random *random,
                     const struct dlp_order *order) {
        uint64_t samples[AT_ONCE];

        for (uint64_t i = 0; i < order->n_positions; i += AT_ONCE) {
                uint64_t n_left = order->n_positions - i, n = n_left < AT_ONCE ? n_left : AT_ONCE;

                draw_some(weights, random, n, samples);
                for (uint64_t k = 0; k < n; k++)
                        dlp_order_set_sample(order, i + k, samples[k]);
                if ((i + AT_ONCE) % PUBLISH > 0 && n_left > AT_ONCE)
                        continue;
                making->publish(making, order, i + n);
                if (!making->go_on(making, i + n, order->n_positions))
                        return -ECANCELED;
        }
        return 0;
}
