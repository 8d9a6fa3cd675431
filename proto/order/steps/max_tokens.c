/* max_tokens(column=length, tokens=4096): fairseq's batches. The samples, in the order's sequence, go into a batch as
 * long as the longest of them times their number is at most `tokens`, and their number at most `sentences`; its number
 * is below `multiple` or a multiple of it, wherever the next batch can begin earlier. */
#include <errno.h>

#include "proto/order/grouping/grouping.h"
#include "proto/order/grouping/lengths.h"
#include "proto/order/steps/sampler_step.h"

enum {
        COLUMN,
        TOKENS,
        SENTENCES,
        MULTIPLE,
        SHUFFLE,
};

/* The batch at hand, whose number of samples is as it should be, and samples after it whose number is not yet. If the
 * next one does not fit, the batch ends, and those after it are the next batch. */
struct batching {
        uint64_t tokens, sentences, multiple; /* UINT64_MAX: any number */
        uint64_t begin, end;                  /* of the batch; what is after it ends with the sample at hand */
        uint32_t longest, longest_after;
        uint32_t unit;
};

static int check(const struct dlp_step *step, struct why *why) {
        if (!step->values[TOKENS].is_set && !step->values[SENTENCES].is_set)
                return why_set(why, -EINVAL, "lacks tokens or sentences");
        return 0;
}

static struct batching batching_of(const struct dlp_step *step) {
        const struct value *values = step->values;

        return (struct batching){ .tokens = values[TOKENS].is_set ? values[TOKENS].whole : UINT64_MAX,
                                  .sentences = values[SENTENCES].is_set ? values[SENTENCES].whole : UINT64_MAX,
                                  .multiple = values[MULTIPLE].whole };
}

static void max_tokens_find_shortest(void *userdata, const uint32_t *lengths, uint64_t n) {
        uint32_t *shortest = userdata;

        for (uint64_t i = 0; i < n; i++)
                if (lengths[i] < *shortest)
                        *shortest = lengths[i];
}

static uint64_t n_unit_max(const struct dlp_step *step, const struct dlp_making_terms *terms) {
        const struct dlp_column *column = dlp_lengths_of_terms(terms, step->values[COLUMN].text);
        struct batching batching = batching_of(step);
        uint32_t shortest = column ? UINT32_MAX : 0;
        uint64_t n;

        if (column && step->values[TOKENS].is_set)
                dlp_lengths_visit(column, max_tokens_find_shortest, &shortest);
        if (shortest == 0 && step->values[SENTENCES].is_set) /* samples without elements fit in any number */
                return batching.sentences;
        n = batching.tokens / (shortest > 0 ? shortest : 1);
        n = n > 0 ? n : 1;
        return n < batching.sentences ? n : batching.sentences;
}

static uint64_t n_elements_max(const struct dlp_step *step, const struct dlp_making_terms *terms) {
        (void)terms;
        return step->values[TOKENS].is_set ? step->values[TOKENS].whole : 0;
}

static uint64_t scratch_bytes(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        (void)step;
        return dlp_grouping_bytes(terms, n, false);
}

/* ---------------------------------------------------------------------------------------------------------------- */

static int max_tokens_check_length(const struct dlp_making *making, const struct batching *batching, uint64_t sample,
                                   uint32_t length) {
        if (length > batching->tokens)
                return why_set(making->why, -EINVAL,
                               "max_tokens: sample %llu has length %u, tokens is %llu; give more, or leave it out with "
                               "a subset",
                               (unsigned long long)sample, length, (unsigned long long)batching->tokens);
        if (length == 0 && batching->sentences == UINT64_MAX)
                return why_set(making->why, -EINVAL,
                               "max_tokens: sample %llu has length 0, and any number of such samples fit into a batch; "
                               "give sentences",
                               (unsigned long long)sample);
        return 0;
}

static uint32_t max_tokens_longer(uint32_t a, uint32_t b) {
        return a > b ? a : b;
}

static bool does_not_fit(const struct batching *batching, uint64_t n, uint32_t longest) {
        return n * longest > batching->tokens;
}

/* Ends batches so that the sample at `i` fits. */
static void max_tokens_make_room(struct batching *batching, uint64_t i, uint32_t length) {
        batching->begin = batching->end;
        batching->unit++;
        if (does_not_fit(batching, i + 1 - batching->begin, batching->longest_after)) { /* not even with those after */
                batching->begin = i;
                batching->longest_after = length;
                batching->unit++;
        }
}

/* What is after the batch joins it, or is the new one. */
static void max_tokens_join(struct batching *batching, struct dlp_grouping *grouping, uint64_t i, uint32_t longest) {
        for (uint64_t k = batching->end; k <= i; k++)
                grouping->unit_of[k] = k < batching->begin ? batching->unit - 1 : batching->unit;
        batching->end = i + 1;
        batching->longest = longest;
        batching->longest_after = 0;
}

static void max_tokens_add(struct batching *batching, struct dlp_grouping *grouping, uint64_t i, uint32_t length) {
        uint64_t n = i + 1 - batching->begin;
        uint32_t longest;

        batching->longest_after = max_tokens_longer(batching->longest_after, length);
        longest = max_tokens_longer(batching->longest, batching->longest_after);
        if (n > batching->sentences || does_not_fit(batching, n, longest)) {
                max_tokens_make_room(batching, i, length);
                max_tokens_join(batching, grouping, i, batching->longest_after);
        } else if (n < batching->multiple || n % batching->multiple == 0) {
                max_tokens_join(batching, grouping, i, longest);
        }
}

static int max_tokens_group(struct dlp_making *making, const struct dlp_lengths *lengths, struct batching *batching,
                            struct dlp_grouping *grouping, const struct dlp_order *order) {
        uint32_t some[DLP_LENGTHS_CHUNK];

        for (uint64_t i = 0; i < order->n_positions; i += DLP_LENGTHS_CHUNK) {
                uint64_t n_left = order->n_positions - i, n = n_left < DLP_LENGTHS_CHUNK ? n_left : DLP_LENGTHS_CHUNK;
                int r = dlp_lengths_take(making, lengths, order, i, n, some);

                for (uint64_t k = 0; r == 0 && k < n; k++) {
                        uint64_t sample = dlp_order_sample(order, i + k);

                        r = max_tokens_check_length(making, batching, sample, some[k]);
                        if (r < 0)
                                break;
                        dlp_grouping_keep(grouping, sample, 0);
                        max_tokens_add(batching, grouping, i + k, some[k]);
                }
                if (r < 0)
                        return r;
                if (!making->go_on(making, i, order->n_positions))
                        return -ECANCELED;
        }
        if (batching->end < order->n_positions) { /* what is left is a batch of its own */
                batching->begin = batching->end;
                batching->unit++;
                max_tokens_join(batching, grouping, order->n_positions - 1, 0);
        }
        grouping->n_units = order->n_positions > 0 ? batching->unit + 1ull : 0;
        return 0;
}

static int make(struct dlp_making *making, const struct dlp_step *step, struct dlp_order *order) {
        struct batching batching = batching_of(step);
        struct dlp_grouping grouping;
        struct dlp_lengths lengths;
        int r = dlp_lengths_open(making, "max_tokens", step->values[COLUMN].text, &lengths);

        if (r == 0)
                r = dlp_grouping_init(making, "max_tokens", order->n_positions, false, &grouping);
        if (r < 0)
                return r;
        r = max_tokens_group(making, &lengths, &batching, &grouping, order);
        if (r < 0) {
                dlp_grouping_free(making, &grouping);
                return r;
        }
        dlp_making_free(making, order);
        return dlp_grouping_finish(making, &grouping, step->values[SHUFFLE].flag, order);
}

const struct dlp_step_type dlp_step_max_tokens = {
        .kind = { .name = "max_tokens",
                  .doc = "Batches whose tokens, padding included, are at most a number of them: fairseq's "
                         "batch_by_size, bit for bit (0.12): the samples, in the order's sequence, go into a batch as "
                         "long as the longest of them times their number is at most `tokens` and their number at most "
                         "`sentences`, of which one must be given. The number of samples is less than `multiple` or a "
                         "multiple of it, wherever the rest can begin the next batch. A longer sample is an error. "
                         "fairseq sorts samples by length before and shuffles the batches after.",
                  .like = "fairseq.data.data_utils.batch_by_size",
                  .example = "max_tokens(column=length, tokens=4096)",
                  .arguments = ARGUMENTS(
                          { ARGUMENT_LENGTHS, "column", .form = "lengths of samples" },
                          { ARGUMENT_WHOLE, "tokens", .minimum = 1, .maximum = 1ull << 31, .is_optional = true },
                          { ARGUMENT_WHOLE, "sentences", .minimum = 1, .maximum = 1u << 20, .is_optional = true },
                          { ARGUMENT_WHOLE, "multiple", "1", .minimum = 1, .maximum = 1u << 20 },
                          { ARGUMENT_FLAG, "shuffle", "false" }) },
        .role = DLP_GROUPER,
        .check = check,
        .n_unit_max = n_unit_max,
        .n_elements_max = n_elements_max,
        .is_batch = true,
        .make = make,
        .scratch_bytes = scratch_bytes,
};
