/* buckets(column=length, edges=64:128:256, tokens=8192): batches of samples that are about as long as each other.
 *
 * A sample goes into the first bucket whose edge is not below its length. A bucket gives a batch when it is full, so
 * batches come in the sequence in which they get full: with `tokens` when the longest of them, rounded up to
 * `multiple`, times their number would be more than that with one more; with `sizes` when it has the number of samples
 * given there; else when it has batch_size. What is left comes at the end, as smaller batches from the first bucket to
 * the last. */
#include <errno.h>

#include "proto/order/grouping/grouping.h"
#include "proto/order/grouping/lengths.h"
#include "proto/order/steps/sampler_step.h"

enum {
        COLUMN,
        EDGES,
        TOKENS,
        SIZES,
        MAX,
        MULTIPLE,
        LONG,
        LAST,
        SHUFFLE,
};

enum {
        LONG_ERROR,
        LONG_TRUNCATE,
        LONG_SKIP,
};

enum {
        LAST_KEEP,
        LAST_DROP,
};

struct bucket {
        uint64_t n_samples; /* of the batch at hand */
        uint64_t longest;   /* of it, rounded up */
        uint32_t unit;
};

struct buckets {
        const struct dlp_step *step;
        uint32_t batch_size;
        uint32_t limit; /* no longer sample fits into any batch */
        struct dlp_lengths lengths;
        struct dlp_grouping grouping;
        struct bucket buckets[KIND_LIST_MAX];
};

/* ---- what the arguments say ------------------------------------------------------------------------------------ */

static uint64_t buckets_rounded(const struct dlp_step *step, uint64_t length) {
        uint64_t multiple = step->values[MULTIPLE].whole;

        return (length > 0 ? (length + multiple - 1) / multiple : 1) * multiple;
}

static uint32_t n_buckets(const struct dlp_step *step) {
        return step->values[EDGES].n_list;
}

static uint32_t edge(const struct dlp_step *step, uint32_t idx) {
        return (uint32_t)step->values[EDGES].list[idx];
}

/* The longest sample that fits into the last bucket and, rounded up, into the budget. */
static uint32_t buckets_limit_of(const struct dlp_step *step) {
        uint64_t multiple = step->values[MULTIPLE].whole, limit = edge(step, n_buckets(step) - 1);
        uint64_t budget = step->values[TOKENS].whole / multiple * multiple;

        return (uint32_t)(step->values[TOKENS].is_set && budget < limit ? budget : limit);
}

/* Samples of a batch of a bucket at most, whatever their lengths are. */
static uint64_t n_samples_max(const struct dlp_step *step, uint32_t idx, uint32_t batch_size) {
        const struct value *values = step->values;

        if (values[SIZES].is_set)
                return (uint64_t)values[SIZES].list[idx];
        if (values[TOKENS].is_set)
                return values[MAX].is_set ? values[MAX].whole : UINT64_MAX;
        return batch_size > 0 ? batch_size : 1;
}

static bool is_above_budget(const struct dlp_step *step, uint64_t n_samples, uint64_t longest) {
        return step->values[TOKENS].is_set && n_samples * longest > step->values[TOKENS].whole;
}

static int check(const struct dlp_step *step, struct why *why) {
        const struct value *values = step->values;

        for (uint32_t i = 1; i < n_buckets(step); i++)
                if (edge(step, i) <= edge(step, i - 1))
                        return why_set(why, -EINVAL, "edges: %u is not above %u; they must grow", edge(step, i),
                                       edge(step, i - 1));
        if (values[TOKENS].is_set && values[SIZES].is_set)
                return why_set(why, -EINVAL, "choose one of tokens and sizes");
        if (values[SIZES].is_set && values[SIZES].n_list != n_buckets(step))
                return why_set(why, -EINVAL, "sizes has %u numbers, edges has %u; as many are needed",
                               values[SIZES].n_list, n_buckets(step));
        if (values[MAX].is_set && !values[TOKENS].is_set)
                return why_set(why, -EINVAL, "max is the most samples of a batch where tokens is given");
        if (values[TOKENS].is_set && values[TOKENS].whole < values[MULTIPLE].whole)
                return why_set(why, -EINVAL, "tokens=%llu is less than multiple=%llu: no sample would fit",
                               (unsigned long long)values[TOKENS].whole, (unsigned long long)values[MULTIPLE].whole);
        return 0;
}

/* ---- bounds ---------------------------------------------------------------------------------------------------- */

static void buckets_find_shortest(void *userdata, const uint32_t *lengths, uint64_t n) {
        uint32_t *shortest = userdata;

        for (uint64_t i = 0; i < n; i++)
                if (lengths[i] < *shortest)
                        *shortest = lengths[i];
}

static uint64_t n_unit_max(const struct dlp_step *step, const struct dlp_making_terms *terms) {
        const struct dlp_column *column = dlp_lengths_of_terms(terms, step->values[COLUMN].text);
        uint32_t shortest = column ? UINT32_MAX : 0;
        uint64_t n = 0, n_fit;

        for (uint32_t i = 0; i < n_buckets(step); i++)
                if (n_samples_max(step, i, terms->batch_size) > n)
                        n = n_samples_max(step, i, terms->batch_size);
        if (!step->values[TOKENS].is_set)
                return n;
        if (column)
                dlp_lengths_visit(column, buckets_find_shortest, &shortest);
        n_fit = step->values[TOKENS].whole /
                buckets_rounded(step, shortest < buckets_limit_of(step) ? shortest : buckets_limit_of(step));
        return n_fit < n ? n_fit : n;
}

static uint64_t n_elements_max(const struct dlp_step *step, const struct dlp_making_terms *terms) {
        uint64_t most = 0;

        if (step->values[TOKENS].is_set)
                return step->values[TOKENS].whole;
        for (uint32_t i = 0; i < n_buckets(step); i++) {
                uint64_t n = n_samples_max(step, i, terms->batch_size) * buckets_rounded(step, edge(step, i));

                if (n > most)
                        most = n;
        }
        return most;
}

static uint64_t scratch_bytes(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        (void)step;
        return dlp_grouping_bytes(terms, n, false);
}

/* ---------------------------------------------------------------------------------------------------------------- */

static int buckets_refuse(struct dlp_making *making, const struct dlp_step *step, uint64_t sample, uint32_t length) {
        uint32_t last = edge(step, n_buckets(step) - 1);

        if (length > last)
                return why_set(making->why, -EINVAL,
                               "buckets: sample %llu has length %u, the last edge is %u; give a larger one, or choose "
                               "long=truncate or long=skip",
                               (unsigned long long)sample, length, last);
        return why_set(
                making->why, -EINVAL,
                "buckets: sample %llu has length %u, which is padded to %llu, more than tokens=%llu; give more, or "
                "choose long=truncate or long=skip",
                (unsigned long long)sample, length, (unsigned long long)buckets_rounded(step, length),
                (unsigned long long)step->values[TOKENS].whole);
}

static void buckets_end_batch(struct buckets *buckets, struct bucket *bucket) {
        buckets->grouping.sequence[buckets->grouping.n_sequence++] = bucket->unit;
        *bucket = (struct bucket){ 0 };
}

static void buckets_add(struct buckets *buckets, uint64_t sample, uint32_t length) {
        const struct dlp_step *step = buckets->step;
        uint64_t longest = buckets_rounded(step, length), n_max;
        struct bucket *bucket;
        uint32_t idx = 0;

        while (length > edge(step, idx))
                idx++;
        bucket = &buckets->buckets[idx];
        if (longest < bucket->longest)
                longest = bucket->longest;
        if (bucket->n_samples > 0 &&
            is_above_budget(step, bucket->n_samples + 1, longest)) /* as it is longer than all */
                buckets_end_batch(buckets, bucket);
        if (bucket->n_samples == 0)
                bucket->unit = (uint32_t)buckets->grouping.n_units++;
        dlp_grouping_keep(&buckets->grouping, sample, bucket->unit);
        bucket->n_samples++;
        bucket->longest = longest;
        n_max = n_samples_max(step, idx, buckets->batch_size);
        if (bucket->n_samples == n_max || is_above_budget(step, bucket->n_samples + 1, longest))
                buckets_end_batch(buckets, bucket);
}

static int buckets_fill(struct dlp_making *making, struct buckets *buckets, const struct dlp_order *order) {
        uint32_t lengths[DLP_LENGTHS_CHUNK], on_long = buckets->step->values[LONG].choice;

        for (uint64_t i = 0; i < order->n_positions; i += DLP_LENGTHS_CHUNK) {
                uint64_t n_left = order->n_positions - i, n = n_left < DLP_LENGTHS_CHUNK ? n_left : DLP_LENGTHS_CHUNK;
                int r = dlp_lengths_take(making, &buckets->lengths, order, i, n, lengths);

                if (r < 0)
                        return r;
                for (uint64_t k = 0; k < n; k++) {
                        uint64_t sample = dlp_order_sample(order, i + k);

                        if (lengths[k] <= buckets->limit)
                                buckets_add(buckets, sample, lengths[k]);
                        else if (on_long == LONG_TRUNCATE)
                                buckets_add(buckets, sample, buckets->limit);
                        else if (on_long == LONG_ERROR)
                                return buckets_refuse(making, buckets->step, sample, lengths[k]);
                }
                if (!making->go_on(making, i, order->n_positions))
                        return -ECANCELED;
        }
        for (uint32_t i = 0; i < n_buckets(buckets->step) && buckets->step->values[LAST].choice == LAST_KEEP; i++)
                if (buckets->buckets[i].n_samples > 0)
                        buckets_end_batch(buckets, &buckets->buckets[i]);
        return 0;
}

/* Of samples that are truncated, what is left of them is a piece. */
static int buckets_measure(struct dlp_making *making, const struct buckets *buckets, const struct dlp_order *order) {
        uint32_t lengths[DLP_LENGTHS_CHUNK];

        for (uint64_t i = 0; i < order->n_positions; i += DLP_LENGTHS_CHUNK) {
                uint64_t n_left = order->n_positions - i, n = n_left < DLP_LENGTHS_CHUNK ? n_left : DLP_LENGTHS_CHUNK;
                int r = dlp_lengths_take(making, &buckets->lengths, order, i, n, lengths);

                if (r < 0)
                        return r;
                for (uint64_t k = 0; k < n; k++)
                        order->pieces[i + k].n_elements = lengths[k] < buckets->limit ? lengths[k] : buckets->limit;
                if (!making->go_on(making, i, order->n_positions))
                        return -ECANCELED;
        }
        return 0;
}

static int make(struct dlp_making *making, const struct dlp_step *step, struct dlp_order *order) {
        struct buckets buckets = { .step = step,
                                   .limit = buckets_limit_of(step),
                                   .batch_size = making->terms->batch_size };
        int r = dlp_lengths_open(making, "buckets", step->values[COLUMN].text, &buckets.lengths);

        if (r < 0)
                return r;
        r = dlp_grouping_init(making, "buckets", order->n_positions, false, &buckets.grouping);
        if (r == 0)
                r = dlp_grouping_sequence(making, order->n_positions, &buckets.grouping);
        if (r == 0)
                r = buckets_fill(making, &buckets, order);
        if (r < 0) {
                dlp_grouping_free(making, &buckets.grouping);
                return r;
        }
        buckets.grouping.has_pieces = step->values[LONG].choice == LONG_TRUNCATE;
        dlp_making_free(making, order);
        r = dlp_grouping_finish(making, &buckets.grouping, step->values[SHUFFLE].flag, order);
        return r == 0 && order->pieces ? buckets_measure(making, &buckets, order) : r;
}

const struct dlp_step_type dlp_step_buckets = {
        .kind = { .name = "buckets",
                  .doc = "Batches of samples that are about as long as each other. A sample goes, in the order's "
                         "sequence, into the first bucket whose edge is not below its length. A bucket gives a batch "
                         "when it is full, and batches come in the sequence in which they get full: with `tokens` as "
                         "soon as one sample more would make the longest one, rounded up to `multiple`, times the "
                         "number of samples more than that (or the batch has `max` samples); with `sizes`, a number "
                         "for each edge, when it has that number of samples; without both when it has the loader's "
                         "batch size. What is left in the buckets comes at the end, as smaller batches from the first "
                         "bucket to the last; `last=drop` leaves it out. A bucket without samples gives no batch. A "
                         "sample that is longer than the last edge, or rounded up longer than `tokens`, is an error "
                         "with its number and both lengths; `long=skip` leaves it out, and `long=truncate` takes its "
                         "beginning. `shuffle=true` brings the batches into an order of their own: that of as many "
                         "samples with this seed and epoch.",
                  .like = "tf.data.Dataset.bucket_by_sequence_length",
                  .example = "buckets(column=length, edges=64:128:256, tokens=8192)",
                  .arguments = ARGUMENTS(
                          { ARGUMENT_LENGTHS, "column", .form = "lengths of samples" },
                          { ARGUMENT_LIST, "edges", .minimum = 1, .maximum = UINT32_MAX, .is_whole = true },
                          { ARGUMENT_WHOLE, "tokens", .minimum = 1, .maximum = 1ull << 40, .is_optional = true },
                          { ARGUMENT_LIST, "sizes", .minimum = 1, .maximum = 1u << 20, .is_whole = true,
                            .is_optional = true },
                          { ARGUMENT_WHOLE, "max", .minimum = 1, .maximum = 1u << 20, .is_optional = true },
                          { ARGUMENT_WHOLE, "multiple", "1", .minimum = 1, .maximum = 1u << 20 },
                          { ARGUMENT_CHOICE, "long", "error", CHOICES("error", "truncate", "skip") },
                          { ARGUMENT_CHOICE, "last", "keep", CHOICES("keep", "drop") },
                          { ARGUMENT_FLAG, "shuffle", "false" }) },
        .role = DLP_GROUPER,
        .check = check,
        .n_unit_max = n_unit_max,
        .n_elements_max = n_elements_max,
        .is_batch = true,
        .make = make,
        .scratch_bytes = scratch_bytes,
};
