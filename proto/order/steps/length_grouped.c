/* length_grouped(column=length, mega=50, batch=B): samples of similar length together, so that batches need little
 * padding, and the longest sample first, so that too little memory is seen at once.
 *
 * As Hugging Face's LengthGroupedSampler: the order is cut into slices of `mega` batches; each is sorted by length, the
 * longest first, equal ones in their sequence; then the very first sample and the first one of the slice that has the
 * longest change places. Without `mega` it is 50, or fewer where the order has fewer than 200 batches. */
#include <errno.h>
#include <string.h>

#include "proto/order/making/sorting.h"
#include "proto/order/steps/sampler_step.h"

enum {
        COLUMN,
        MEGA,
        BATCH,
};

#define SLICE_MAX (1u << 24) /* positions: its tables take 24 bytes for each */
#define AHEAD     16u        /* positions whose lengths are asked of the memory in advance */
#define LOOK      16384u     /* positions between two looks at whether the order is still wanted */

static uint64_t batch_of(const struct dlp_step *step, const struct dlp_making_terms *terms) {
        return step->values[BATCH].is_set ? step->values[BATCH].whole : terms->batch_size;
}

/* Positions of a slice. */
static uint64_t slice_of(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        uint64_t batch = batch_of(step, terms), mega = n / (4 * batch);

        mega = mega > 50 ? 50 : mega;
        return batch * (step->values[MEGA].is_set ? step->values[MEGA].whole : mega > 0 ? mega : 1);
}

static uint64_t scratch_bytes(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        uint64_t n_slice = slice_of(step, terms, n);

        return 3 * sizeof(uint64_t) * (n_slice < n ? n_slice : n);
}

struct slices {
        const struct dlp_column *column;
        uint64_t *words, *others; /* of each position of a slice: how much shorter than the longest; its place */
        uint64_t *samples;
        uint64_t n_room;
        uint32_t longest;
        uint64_t longest_at; /* the position of the first sample that is so long, once its slice is sorted */
};

static int length_grouped_refuse_length(const struct dlp_making *making, const struct dlp_column *column,
                                        uint64_t sample, int64_t length) {
        return why_set(making->why, -EINVAL,
                       "length_grouped: \"%s\" has the length %lld at sample %llu; 0 to %u is "
                       "allowed",
                       column->name, (long long)length, (unsigned long long)sample, UINT32_MAX);
}

static void length_grouped_ask(const struct dlp_column *column, uint64_t n_bytes, uint64_t sample) {
        __builtin_prefetch((const uint8_t *)column->values + sample * n_bytes);
}

/* Reads the lengths of n positions from `begin` on. */
static int read_slice(struct dlp_making *making, struct slices *slices, const struct dlp_order *order, uint64_t begin,
                      uint64_t n) {
        uint64_t n_bytes = dlp_dtype_bytes(slices->column->dtype);

        for (uint64_t i = 0; i < n; i++) {
                uint64_t sample = dlp_order_sample(order, begin + i);
                int64_t length;

                if (i + AHEAD < n)
                        length_grouped_ask(slices->column, n_bytes, dlp_order_sample(order, begin + i + AHEAD));
                dlp_column_wholes(slices->column, sample, 1, &length);
                if (length < 0 || length > UINT32_MAX)
                        return length_grouped_refuse_length(making, slices->column, sample, length);
                slices->words[i] = (UINT32_MAX - (uint64_t)length) << 32 | i;
                slices->samples[i] = sample;
                if ((begin + i) % LOOK == 0 && !making->go_on(making, begin + i, order->n_positions))
                        return -ECANCELED;
        }
        return 0;
}

static int sort_slice(struct dlp_making *making, struct slices *slices, const struct dlp_order *order, uint64_t begin,
                      uint64_t n) {
        const uint64_t *sorted;
        uint32_t longest;
        int r = read_slice(making, slices, order, begin, n);

        if (r < 0)
                return r;
        sorted = dlp_sort_words(slices->words, slices->others, n, 32);
        for (uint64_t i = 0; i < n; i++)
                dlp_order_set_sample(order, begin + i, slices->samples[(uint32_t)sorted[i]]);
        longest = UINT32_MAX - (uint32_t)(sorted[0] >> 32);
        if (begin == 0 || longest > slices->longest) {
                slices->longest = longest;
                slices->longest_at = begin;
        }
        return 0;
}

static int sort_all(struct dlp_making *making, struct slices *slices, const struct dlp_order *order, uint64_t n_slice) {
        uint64_t n = order->n_positions, first;
        int r = dlp_making_allocate(making, slices->n_room, sizeof(uint64_t), &slices->words);

        if (r == 0)
                r = dlp_making_allocate(making, slices->n_room, sizeof(uint64_t), &slices->others);
        if (r == 0)
                r = dlp_making_allocate(making, slices->n_room, sizeof(uint64_t), &slices->samples);
        for (uint64_t i = 0; r == 0 && i < n; i += n_slice)
                r = sort_slice(making, slices, order, i, n - i < n_slice ? n - i : n_slice);
        if (r < 0)
                return r;
        first = dlp_order_sample(order, 0);
        dlp_order_set_sample(order, 0, dlp_order_sample(order, slices->longest_at));
        dlp_order_set_sample(order, slices->longest_at, first);
        return 0;
}

static int make(struct dlp_making *making, const struct dlp_step *step, struct dlp_order *order) {
        uint64_t n = order->n_positions, n_slice = slice_of(step, making->terms, n);
        struct slices slices = { .n_room = n_slice < n ? n_slice : n };
        int r = dlp_making_column(making, "length_grouped", step->values[COLUMN].text, &slices.column);

        if (r < 0)
                return r;
        if (!dlp_column_is_whole(slices.column))
                return why_set(making->why, -EINVAL, "length_grouped: \"%s\" has %s; lengths are whole numbers",
                               slices.column->name, dlp_dtype_name(slices.column->dtype));
        if (n_slice > SLICE_MAX)
                return why_set(making->why, -EINVAL,
                               "length_grouped: mega = %llu batches of %llu are %llu samples; at most %u are allowed",
                               (unsigned long long)(n_slice / batch_of(step, making->terms)),
                               (unsigned long long)batch_of(step, making->terms), (unsigned long long)n_slice,
                               SLICE_MAX);
        r = sort_all(making, &slices, order, n_slice);
        making->release(making, slices.words, slices.n_room * sizeof(uint64_t));
        making->release(making, slices.others, slices.n_room * sizeof(uint64_t));
        making->release(making, slices.samples, slices.n_room * sizeof(uint64_t));
        return r;
}

const struct dlp_step_type dlp_step_length_grouped = {
        .kind = { .name = "length_grouped",
                  .doc = "Sorts samples by length within shuffled slices, so that batches have little padding. Takes "
                         "lengths. The order is cut into slices of `mega` batches of `batch` samples (default: the "
                         "batch size), each of which is sorted by length, the longest first; then the longest of all "
                         "comes to the front. Without `mega` it is 50, but at most a quarter of the batches. With "
                         "dealing `strided` this is Hugging Face's DistributedLengthGroupedSampler, for whom `batch` "
                         "is the batch size times the accumulation steps.",
                  .like = "transformers.trainer_pt_utils.LengthGroupedSampler",
                  .example = "length_grouped(column=length)",
                  .arguments = ARGUMENTS(
                          { ARGUMENT_LENGTHS, "column", .form = "lengths of samples" },
                          { ARGUMENT_WHOLE, "mega", .minimum = 1, .maximum = SLICE_MAX, .is_optional = true },
                          { ARGUMENT_WHOLE, "batch", .minimum = 1, .maximum = SLICE_MAX, .is_optional = true }) },
        .role = DLP_ARRANGER,
        .scratch_bytes = scratch_bytes,
        .make = make,
};
