/* Units are what TRL, Grain, fairseq and torchvision's references make of the same lengths, and buckets what a second
 * program makes of them (tests/vectors/); of any lengths no unit has more than it may, and no sample is lost. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "proto/order/grouping/number_set.h"
#include "tests/support/maker.h"
#include "tests/support/suite.h"
#include "tests/support/vectors.h"

#define N_CASES 25000 /* of each of four properties */
#define N_MOST  90

static struct maker maker;

/* ---- help ------------------------------------------------------------------------------------------------------ */

static void must_make(const char *text) {
        int r = maker_order(&maker, text);

        if (r < 0)
                ck_abort_msg("%s: %s", text, maker.why.text);
}

static void must_refuse(const char *text, const char *reason) {
        int r = maker_order(&maker, text);

        if (r != -EINVAL)
                ck_abort_msg("%s: %d instead of -EINVAL", text, r);
        ck_assert_str_eq(maker.why.text, reason);
}

static const struct dlp_order *order(void) {
        return &maker.order;
}

/* Numbers for tests, the same in each run. */
static uint64_t drawn;

static uint64_t draw(uint64_t n) {
        drawn = drawn * 6364136223846793005ull + 1442695040888963407ull;
        return (drawn >> 33) % n;
}

/* Samples in their own sequence, with these lengths. */
static void begin(uint64_t n, const int64_t *lengths) {
        maker_init(&maker, n);
        maker.terms.base.shuffle = false;
        maker_column(&maker, "c", DLP_DTYPE_INT64, lengths, n);
}

/* The samples, and of packs the pieces, as "3[0+5] 2[0+1] | 0[5+6]" or "3 2 | 0". */
static const char *shown(void) {
        static char text[4096];
        size_t n = 0;

        text[0] = '\0';
        for (uint64_t u = 0; u < order()->n_units; u++)
                for (uint64_t i = dlp_order_start(order(), u); i < dlp_order_start(order(), u + 1); i++) {
                        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%llu",
                                              i == 0                             ? ""
                                              : i == dlp_order_start(order(), u) ? " | "
                                                                                 : " ",
                                              (unsigned long long)dlp_order_sample(order(), i));
                        if (order()->pieces)
                                n += (size_t)snprintf(text + n, sizeof(text) - n, "[%u+%u]", order()->pieces[i].begin,
                                                      order()->pieces[i].n_elements);
                }
        return text;
}

/* ---- what others make ------------------------------------------------------------------------------------------ */

static void must_equal_list(const struct vectors *vectors, const char *key, uint64_t n, uint64_t at, uint64_t got) {
        const cJSON *list;
        size_t n_listed;

        list = vector_array(vectors->line, key, &n_listed);
        ck_assert_msg(n_listed == n, "line %u: %llu %s instead of %zu", vectors->number, (unsigned long long)n, key,
                      n_listed);
        if (at < n)
                ck_assert_msg((uint64_t)vector_item(list, at) == got, "line %u: %s %llu", vectors->number, key,
                              (unsigned long long)at);
}

static void check_vector(const struct vectors *vectors) {
        size_t n;
        const cJSON *list = vector_array(vectors->line, "lengths", &n), *item;
        double *values = calloc(n + 1, sizeof(*values));
        uint64_t i = 0;

        cJSON_ArrayForEach(item, list) values[i++] = item->valuedouble;
        maker_init(&maker, n);
        maker.terms.base.shuffle = false;
        maker.terms.batch_size = (uint32_t)vector_int(vectors->line, "batch");
        maker_column(&maker, "c", DLP_DTYPE_FLOAT64, values, n);
        must_make(vector_string(vectors->line, "sampler"));
        for (i = 0; i <= order()->n_units; i++)
                must_equal_list(vectors, "starts", order()->n_units + 1, i, dlp_order_start(order(), i));
        for (i = 0; i < order()->n_positions; i++) {
                must_equal_list(vectors, "samples", order()->n_positions, i, dlp_order_sample(order(), i));
                if (order()->pieces) {
                        must_equal_list(vectors, "begins", order()->n_positions, i, order()->pieces[i].begin);
                        must_equal_list(vectors, "elements", order()->n_positions, i, order()->pieces[i].n_elements);
                }
        }
        maker_fini(&maker);
        free(values);
}

START_TEST(units_are_those_of_trl_grain_fairseq_and_torchvision) {
        struct vectors vectors;
        unsigned n = 0;

        vectors_open(&vectors, "groupers.jsonl");
        while (vectors_next(&vectors)) {
                check_vector(&vectors);
                n++;
        }
        ck_assert_uint_ge(n, 170);
}
END_TEST

/* ---- any lengths ----------------------------------------------------------------------------------------------- */

/* A case: lengths, and how often each sample is chosen before it is grouped. */
static int64_t lengths[N_MOST];
static uint32_t chosen[N_MOST];
static uint64_t n_samples;

static void draw_lengths(uint64_t most) {
        uint64_t how = draw(4);

        for (uint64_t i = 0; i < n_samples; i++)
                lengths[i] = (int64_t)(how == 0   ? draw(most + 1)
                                       : how == 1 ? 1 + draw(most < 3 ? most : 3)
                                       : how == 2 ? most - draw(most / 4 + 1)
                                                  : draw(draw(most + 1) + 1));
}

/* Makes a case, and says in `chooser` what comes before the grouper. False: it would choose nothing. */
static bool draw_case(uint64_t most, char *chooser, size_t size) {
        uint32_t *counts;

        n_samples = 1 + draw(draw(4) == 0 ? 3 : N_MOST);
        draw_lengths(most);
        begin(n_samples, lengths);
        maker.terms.base.shuffle = draw(2);
        maker.terms.base.epoch = draw(5);
        maker.terms.batch_size = 1 + (uint32_t)draw(9);
        snprintf(chooser, size, "%s", "");
        for (uint64_t i = 0; i < n_samples; i++)
                chosen[i] = 1;
        if (draw(3) > 0)
                return true;
        snprintf(chooser, size, "random(replacement=true, n=%llu) ", (unsigned long long)(1 + draw(N_MOST)));
        must_make(chooser);
        counts = maker_counts(&maker);
        memcpy(chosen, counts, n_samples * sizeof(*chosen));
        free(counts);
        return true;
}

/* Makes it; an order that would be empty must be refused. False: it was. */
static bool make_or_empty(const char *text, bool is_empty) {
        int r = maker_order(&maker, text);

        if (r < 0 && !is_empty)
                ck_abort_msg("%s: %s", text, maker.why.text);
        ck_assert(r == 0 || r == -EINVAL);
        ck_assert((r < 0) == is_empty);
        return r == 0;
}

static uint64_t length_of(uint64_t position) {
        return (uint64_t)lengths[dlp_order_sample(order(), position)];
}

static uint64_t unit_size(uint64_t unit) {
        return dlp_order_start(order(), unit + 1) - dlp_order_start(order(), unit);
}

/* The bounds that slots are planned by. */
static void check_units(uint64_t n_max) {
        const struct dlp_step *step = dlp_order_text_grouper(&maker.text);
        uint64_t n_promised = step->type->n_unit_max(step, &maker.terms);

        for (uint64_t u = 0; u < order()->n_units; u++)
                ck_assert(unit_size(u) > 0 && unit_size(u) <= n_max && unit_size(u) <= n_promised);
}

/* Each sample's pieces cover its first n elements as often as it was chosen: the squares of where pieces end less those
 * of where they begin add up to n squared only if pieces neither overlap nor leave anything out. */
static void check_pieces(const uint64_t *n_delivered) {
        uint64_t sums[N_MOST] = { 0 }, squares[N_MOST] = { 0 };

        for (uint64_t i = 0; i < order()->n_positions; i++) {
                uint64_t begins = order()->pieces[i].begin, n = order()->pieces[i].n_elements;
                uint64_t sample = dlp_order_sample(order(), i);

                ck_assert(n > 0 && begins + n <= (uint64_t)lengths[sample]);
                sums[sample] += n;
                squares[sample] += (begins + n) * (begins + n) - begins * begins;
        }
        for (uint64_t i = 0; i < n_samples; i++) {
                ck_assert(sums[i] == n_delivered[i] * chosen[i]);
                ck_assert(squares[i] == n_delivered[i] * n_delivered[i] * chosen[i]);
        }
}

static uint64_t fill_of(uint64_t unit) {
        uint64_t n = 0;

        for (uint64_t i = dlp_order_start(order(), unit); i < dlp_order_start(order(), unit + 1); i++)
                n += order()->pieces[i].n_elements;
        return n;
}

START_TEST(packs_hold_every_element_once_and_no_more_than_their_size) {
        const char *const strategies[] = { "bfd", "wrapped", "first_fit" };
        const char *const longs[] = { "error", "truncate", "skip", "split" };

        drawn = 1;
        for (unsigned k = 0; k < N_CASES; k++) {
                uint64_t size = 1 + draw(draw(2) ? 40 : 300), most = size * (1 + draw(4)), strategy = draw(3);
                uint64_t on_long = strategy == 1 ? 2 + draw(2) : 1 + draw(3), n_delivered[N_MOST] = { 0 }, n_all = 0;
                uint64_t max = strategy != 1 && draw(3) == 0 ? 1 + draw(6) : 0;
                char text[256], chooser[64];
                size_t at;

                draw_case(most, chooser, sizeof(chooser));
                at = (size_t)snprintf(text, sizeof(text), "%spack(%llu, column=c, strategy=%s, long=%s", chooser,
                                      (unsigned long long)size, strategies[strategy], longs[on_long]);
                if (strategy == 2)
                        at += (size_t)snprintf(text + at, sizeof(text) - at, ", bins=%u", 1 + (unsigned)draw(9));
                else if (draw(2))
                        at += (size_t)snprintf(text + at, sizeof(text) - at, ", rows=%u", (unsigned)draw(30));
                if (max > 0)
                        at += (size_t)snprintf(text + at, sizeof(text) - at, ", max_samples=%u", (unsigned)max);
                if (draw(2))
                        at += (size_t)snprintf(text + at, sizeof(text) - at, ", shuffle=%s",
                                               draw(2) ? "true" : "false");
                snprintf(text + at, sizeof(text) - at, ")");
                for (uint64_t i = 0; i < n_samples; i++) {
                        uint64_t length = (uint64_t)lengths[i];

                        n_delivered[i] = length <= size || on_long == 3 ? length : on_long == 1 ? size : 0;
                        n_all += n_delivered[i] * chosen[i];
                }
                if (make_or_empty(text, n_all == 0)) {
                        ck_assert(order()->pieces);
                        check_units(max > 0 ? max : size);
                        check_pieces(n_delivered);
                        for (uint64_t u = 0; u < order()->n_units; u++)
                                ck_assert(fill_of(u) <= size);
                }
                maker_fini(&maker);
        }
}
END_TEST

/* The longest of a unit, rounded up, times its samples. */
static uint64_t padded(uint64_t unit, uint64_t multiple, uint64_t limit) {
        uint64_t longest = 1;

        for (uint64_t i = dlp_order_start(order(), unit); i < dlp_order_start(order(), unit + 1); i++)
                if (length_of(i) > longest)
                        longest = length_of(i);
        if (longest > limit)
                longest = limit;
        return (longest + multiple - 1) / multiple * multiple * unit_size(unit);
}

static void check_padded(uint64_t multiple, uint64_t limit, uint64_t budget) {
        const struct dlp_step *step = dlp_order_text_grouper(&maker.text);
        uint64_t n_promised = step->type->n_elements_max(step, &maker.terms);

        for (uint64_t u = 0; u < order()->n_units; u++) {
                uint64_t n = padded(u, multiple, limit);

                ck_assert(n <= budget && (n_promised == 0 || n <= n_promised));
        }
}

static uint64_t bucket_of(const uint64_t *edges, uint64_t length) {
        uint64_t idx = 0;

        while (length > edges[idx])
                idx++;
        return idx;
}

static void check_buckets(const uint64_t *edges, uint64_t limit) {
        for (uint64_t u = 0; u < order()->n_units; u++)
                for (uint64_t i = dlp_order_start(order(), u); i < dlp_order_start(order(), u + 1); i++) {
                        uint64_t length = length_of(i) < limit ? length_of(i) : limit;
                        uint64_t first = length_of(dlp_order_start(order(), u));

                        ck_assert(bucket_of(edges, length) == bucket_of(edges, first < limit ? first : limit));
                        ck_assert(!order()->pieces ||
                                  (order()->pieces[i].begin == 0 && order()->pieces[i].n_elements == length));
                }
}

/* Each sample as often as it was chosen, but those that are too long, if they are left out; none more often. */
static void check_counts(bool is_whole, uint64_t limit) {
        uint32_t *counts = maker_counts(&maker);

        for (uint64_t i = 0; i < n_samples; i++) {
                uint32_t n = (uint64_t)lengths[i] <= limit ? chosen[i] : 0;

                ck_assert(is_whole ? counts[i] == n : counts[i] <= n);
        }
        free(counts);
}

START_TEST(buckets_hold_every_sample_once_within_their_budget) {
        drawn = 2;
        for (unsigned k = 0; k < N_CASES; k++) {
                uint64_t edges[3] = { 1 + draw(20) }, multiple = draw(2) ? 1 : 1 + draw(8), limit, budget = UINT64_MAX;
                uint64_t on_long = 1 + draw(2), max = UINT64_MAX, how = draw(3), n_chosen = 0;
                bool drops = draw(4) == 0;
                char text[320], chooser[64];
                size_t at;

                edges[1] = edges[0] + 1 + draw(30);
                edges[2] = limit = edges[1] + 1 + draw(60);
                draw_case(edges[2] + draw(40), chooser, sizeof(chooser));
                at = (size_t)snprintf(text, sizeof(text), "%sbuckets(column=c, edges=%u:%u:%u, multiple=%u, long=%s",
                                      chooser, (unsigned)edges[0], (unsigned)edges[1], (unsigned)edges[2],
                                      (unsigned)multiple, on_long == 1 ? "truncate" : "skip");
                if (how == 0) {
                        budget = multiple + draw(400);
                        limit = budget / multiple * multiple < limit ? budget / multiple * multiple : limit;
                        max = 1 + draw(20);
                        at += (size_t)snprintf(text + at, sizeof(text) - at, ", tokens=%u, max=%u", (unsigned)budget,
                                               (unsigned)max);
                } else if (how == 1) {
                        max = 9;
                        at += (size_t)snprintf(text + at, sizeof(text) - at, ", sizes=9:%u:1", 1 + (unsigned)draw(8));
                } else {
                        max = maker.terms.batch_size;
                }
                snprintf(text + at, sizeof(text) - at, ", last=%s, shuffle=%s)", drops ? "drop" : "keep",
                         draw(2) ? "true" : "false");
                for (uint64_t i = 0; i < n_samples; i++)
                        n_chosen += on_long == 1 || (uint64_t)lengths[i] <= limit ? chosen[i] : 0;
                if (drops && maker_order(&maker, text) < 0)
                        ck_assert_str_ne(maker.why.text, "");
                else if (make_or_empty(text, n_chosen == 0)) {
                        check_units(max);
                        check_padded(multiple, limit, budget);
                        check_buckets(edges, limit);
                        check_counts(!drops, on_long == 1 ? UINT64_MAX : limit);
                }
                maker_fini(&maker);
        }
}
END_TEST

START_TEST(batches_of_most_tokens_are_within_their_budget_in_sequence) {
        drawn = 3;
        for (unsigned k = 0; k < N_CASES; k++) {
                uint64_t most = 1 + draw(60), tokens = most + draw(400), sentences = 1 + draw(30), how = draw(3);
                uint64_t multiple = draw(2) ? 1 : 1 + draw(9), budget = how == 1 ? UINT64_MAX : tokens;
                char text[256], chooser[64];
                size_t at;
                bool shuffles = draw(2), has_zero = false;

                draw_case(most, chooser, sizeof(chooser));
                at = (size_t)snprintf(text, sizeof(text), "%smax_tokens(column=c, multiple=%u, shuffle=%s", chooser,
                                      (unsigned)multiple, shuffles ? "true" : "false");
                if (how != 1)
                        at += (size_t)snprintf(text + at, sizeof(text) - at, ", tokens=%u", (unsigned)tokens);
                if (how != 0)
                        at += (size_t)snprintf(text + at, sizeof(text) - at, ", sentences=%u", (unsigned)sentences);
                snprintf(text + at, sizeof(text) - at, ")");
                for (uint64_t i = 0; i < n_samples; i++)
                        has_zero |= chosen[i] > 0 && lengths[i] == 0;
                if (make_or_empty(text, how == 0 && has_zero)) {
                        check_units(how == 0 ? UINT64_MAX : sentences);
                        for (uint64_t u = 0; u < order()->n_units && budget != UINT64_MAX; u++)
                                ck_assert(padded(u, 1, UINT64_MAX) <= budget ||
                                          padded(u, 1, UINT64_MAX) == unit_size(u));
                        check_counts(true, UINT64_MAX);
                }
                maker_fini(&maker);
        }
}
END_TEST

START_TEST(batches_of_a_group_are_full_and_of_one_group) {
        drawn = 4;
        for (unsigned k = 0; k < N_CASES; k++) {
                uint64_t edges[3] = { 1 + draw(20) }, n_chosen = 0;
                char text[256], chooser[64];
                uint32_t n_batch;

                edges[1] = edges[0] + 1 + draw(30);
                edges[2] = UINT64_MAX;
                draw_case(edges[1] + 10, chooser, sizeof(chooser));
                n_batch = maker.terms.batch_size;
                snprintf(text, sizeof(text), "%sgrouped(column=c, edges=%u:%u)", chooser, (unsigned)edges[0] + 1,
                         (unsigned)edges[1] + 1); /* a value that is an edge belongs above it */
                for (uint64_t i = 0; i < n_samples; i++)
                        n_chosen += chosen[i];
                if (make_or_empty(text, n_chosen < n_batch)) {
                        ck_assert(order()->n_units == n_chosen / n_batch);
                        for (uint64_t u = 0; u < order()->n_units; u++)
                                ck_assert(unit_size(u) == n_batch);
                        check_units(n_batch);
                        check_buckets(edges, UINT64_MAX);
                }
                maker_fini(&maker);
        }
}
END_TEST

/* ---- what is said ---------------------------------------------------------------------------------------------- */

START_TEST(a_shuffled_epoch_has_the_same_packs_in_another_sequence) {
        const int64_t some[] = { 5, 9, 1, 2, 7, 8, 3, 3, 10, 6 };

        begin(10, some);
        must_make("pack(10, column=c, rows=0)");
        ck_assert_str_eq(shown(), "8[0+10] | 1[0+9] 2[0+1] | 5[0+8] 3[0+2] | 4[0+7] 6[0+3] | 9[0+6] 7[0+3] | 0[0+5]");
        must_make("pack(10, column=c, rows=0, shuffle=true)"); /* torch.randperm(6) of seed 0: 2 5 3 0 1 4 */
        ck_assert_str_eq(shown(), "5[0+8] 3[0+2] | 0[0+5] | 4[0+7] 6[0+3] | 8[0+10] | 1[0+9] 2[0+1] | 9[0+6] 7[0+3]");
        maker.terms.base.shuffle = true;
        must_make("pack(10, column=c, rows=0)");
        ck_assert_uint_eq(order()->n_units, 6);
        ck_assert_str_ne(shown(), "8[0+10] | 1[0+9] 2[0+1] | 5[0+8] 3[0+2] | 4[0+7] 6[0+3] | 9[0+6] 7[0+3] | 0[0+5]");
        maker_fini(&maker);
}
END_TEST

START_TEST(an_order_that_is_no_longer_wanted_ends) {
        const int64_t some[] = { 5, 9, 1, 2, 7, 8, 3, 3, 10, 6 };
        const char *const texts[] = { "pack(10, column=c)",
                                      "pack(10, column=c, strategy=wrapped)",
                                      "pack(10, column=c, strategy=first_fit)",
                                      "pack(4, column=c, long=split)",
                                      "buckets(column=c, edges=10)",
                                      "max_tokens(column=c, tokens=50)" };

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
                for (unsigned k = 0;; k++) {
                        int r;

                        begin(10, some);
                        maker.n_looks_left = k;
                        r = maker_order(&maker, texts[i]);
                        maker_fini(&maker);
                        if (r == 0)
                                break;
                        ck_assert_int_eq(r, -ECANCELED);
                }
}
END_TEST

START_TEST(memory_that_is_not_there_is_an_error) {
        const int64_t some[] = { 5, 9, 1, 2, 7, 8, 3, 3, 10, 6 };
        const char *const texts[] = { "pack(10, column=c, shuffle=true)",
                                      "pack(10, column=c, strategy=wrapped)",
                                      "pack(4, column=c, long=split, max_samples=2)",
                                      "pack(10, column=c, strategy=first_fit)",
                                      "buckets(column=c, edges=8, long=truncate, last=drop, shuffle=true)",
                                      "max_tokens(column=c, tokens=50)",
                                      "grouped(column=c, k=1)" };

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
                for (unsigned k = 0;; k++) {
                        int r;

                        begin(10, some);
                        maker.n_allocations_left = k;
                        r = maker_order(&maker, texts[i]);
                        maker_fini(&maker);
                        if (r == 0)
                                break;
                        ck_assert_int_eq(r, -ENOMEM);
                }
}
END_TEST

START_TEST(what_cannot_be_is_refused_with_its_numbers) {
        const int64_t some[] = { 5, 300, 1 }, negative[] = { 5, -3, 1 }, zero[] = { 0, 0, 0 };
        const double half[] = { 5, 2.5, NAN };

        begin(3, some);
        must_refuse("pack(0, column=c)",
                    "sampler, column 6: size: \"0\" is not allowed; expected a whole number from 1 to 16777216");
        must_refuse("pack(8)", "sampler, column 1: pack needs its column, as in pack(4096, column=tokens)");
        must_refuse("pack(8, column=d)", "pack: there is no column \"d\"");
        must_refuse(
                "pack(8, column=c, long=error)",
                "pack: sample 1 has 300 elements, a pack has 8; choose what to do with such samples: long=truncate, skip or split");
        must_refuse(
                "pack(8, column=c, strategy=first_fit)",
                "pack: sample 1 has 300 elements, a pack has 8; choose what to do with such samples: long=truncate, skip or split");
        must_refuse("pack(8, column=c, bins=3)",
                    "sampler, column 1: pack: bins is for strategy=first_fit, and says how many packs are kept open");
        must_refuse("pack(8, column=c, strategy=first_fit, rows=3)",
                    "sampler, column 1: pack: rows is not for strategy=first_fit; say bins, the packs that are open");
        must_refuse("pack(8, column=c, strategy=wrapped, max_samples=3)",
                    "sampler, column 1: pack: max_samples is not for strategy=wrapped, which fills every pack");
        must_refuse(
                "pack(8, column=c, strategy=wrapped, long=truncate)",
                "sampler, column 1: pack: long=truncate is not for strategy=wrapped; allowed are error, skip, split");
        must_refuse("pack(8, column=c) buckets(column=c, edges=9)",
                    "sampler, column 19: buckets cannot follow pack, which makes batches");
        must_refuse(
                "buckets(column=c, edges=64)",
                "buckets: sample 1 has length 300, the last edge is 64; give a larger one, or choose long=truncate or long=skip");
        must_refuse(
                "buckets(column=c, edges=512, tokens=256)",
                "buckets: sample 1 has length 300, which is padded to 300, more than tokens=256; give more, or choose long=truncate or long=skip");
        must_refuse("buckets(column=c, edges=64:64)",
                    "sampler, column 1: buckets: edges: 64 is not above 64; they must grow");
        must_refuse("buckets(column=c, edges=64:128, sizes=4)",
                    "sampler, column 1: buckets: sizes has 1 numbers, edges has 2; as many are needed");
        must_refuse("buckets(column=c, edges=64, sizes=4, tokens=100)",
                    "sampler, column 1: buckets: choose one of tokens and sizes");
        must_refuse("buckets(column=c, edges=64, max=4)",
                    "sampler, column 1: buckets: max is the most samples of a batch where tokens is given");
        must_refuse("buckets(column=c, edges=64, tokens=4, multiple=8)",
                    "sampler, column 1: buckets: tokens=4 is less than multiple=8: no sample would fit");
        must_refuse("buckets(column=c, edges=4, sizes=3, long=skip, last=drop)",
                    "buckets: no sample is left of the dataset's 3");
        must_refuse("max_tokens(column=c)", "sampler, column 1: max_tokens: lacks tokens or sentences");
        must_refuse("max_tokens(column=c, tokens=256)",
                    "max_tokens: sample 1 has length 300, tokens is 256; give more, or leave it out with a subset");
        must_refuse("grouped(column=c)", "sampler, column 1: grouped: choose one of k and edges");
        must_refuse("grouped(column=c, edges=2:1)",
                    "sampler, column 1: grouped: edges: 1 is not above 2; they must grow");
        must_refuse("grouped(column=c, k=3)", "grouped: 3 samples do not make one batch of 4");
        begin(3, negative);
        must_refuse("pack(8, column=c)", "pack: sample 1 has the length -3 in \"c\"; allowed are 0 to 4294967295");
        begin(3, zero);
        must_refuse("pack(8, column=c)", "pack: no sample is left of the dataset's 3");
        must_refuse(
                "max_tokens(column=c, tokens=256)",
                "max_tokens: sample 0 has length 0, and any number of such samples fit into a batch; give sentences");
        maker_init(&maker, 3);
        maker_column(&maker, "c", DLP_DTYPE_FLOAT64, half, 3);
        must_refuse("buckets(column=c, edges=64)",
                    "buckets: sample 2 has the length nan in \"c\"; allowed are whole numbers from 0 to 4294967295");
        must_refuse("grouped(column=c, k=3)", "grouped: 3 samples do not make one batch of 4");
        maker_init(&maker, 2);
        maker_column(&maker, "c", DLP_DTYPE_FLOAT64, half, 3);
        must_refuse("pack(8, column=c)", "pack: \"c\" has 3 values, but the dataset has 2 samples");
}
END_TEST

/* ---- what they stand on ---------------------------------------------------------------------------------------- */

static uint32_t nearest(const bool *has, uint32_t number, uint32_t n, int step) {
        for (int64_t i = number; i >= 0 && i < n; i += step)
                if (has[i])
                        return (uint32_t)i;
        return DLP_NUMBER_NONE;
}

START_TEST(a_set_of_numbers_finds_the_nearest_on_every_level) {
        const uint32_t sizes[] = { 1, 64, 65, 4096, 4097, 262144, 262145, 1u << 20 };
        uint32_t n = sizes[_i];
        struct dlp_number_set set;
        uint64_t *words = calloc(dlp_number_set_plan(&set, n), sizeof(*words));
        bool *has = calloc(n, sizeof(*has));

        drawn = 5;
        dlp_number_set_init(&set, n, words);
        for (unsigned k = 0; k < 600; k++) {
                uint32_t number = (uint32_t)draw(n), at = k % 3 == 0 ? n - 1 : (uint32_t)draw(n);

                if (has[number] || k % 100 > 60) {
                        dlp_number_set_remove(&set, number);
                        has[number] = false;
                } else {
                        dlp_number_set_add(&set, number);
                        has[number] = true;
                }
                ck_assert(dlp_number_set_has(&set, number) == has[number]);
                ck_assert(dlp_number_set_at_least(&set, at) == nearest(has, at, n, 1));
                ck_assert(dlp_number_set_at_most(&set, at) == nearest(has, at, n, -1));
                ck_assert(dlp_number_set_at_least(&set, 0) == nearest(has, 0, n, 1));
        }
        free(has);
        free(words);
}
END_TEST

/* Of more samples than 32 bits can number; nobody reads the lengths of those that are not chosen. */
START_TEST(packs_of_more_samples_than_32_bits_can_number) {
        const uint64_t n = (1ull << 32) + 100;
        const int64_t subset[] = { 1ll << 32, 5, (1ll << 32) + 99, (1ll << 32) + 1 };
        uint8_t *values = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        ck_assert_ptr_ne(values, MAP_FAILED);
        values[1ull << 32] = 3;
        values[5] = 9;
        values[(1ull << 32) + 99] = 7;
        values[(1ull << 32) + 1] = 1;
        maker_init(&maker, n);
        maker.terms.base.shuffle = false;
        maker_column(&maker, "c", DLP_DTYPE_UINT8, values, n);
        maker_column(&maker, "i", DLP_DTYPE_INT64, subset, 4);
        must_make("subset(column=i) pack(10, column=c)");
        ck_assert_str_eq(shown(), "5[0+9] 4294967297[0+1] | 4294967395[0+7] 4294967296[0+3]");
        must_make("subset(column=i) buckets(column=c, edges=4:10, sizes=2:2)");
        ck_assert_str_eq(shown(), "5 4294967395 | 4294967296 4294967297");
        maker_fini(&maker);
        munmap(values, n);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "vectors", units_are_those_of_trl_grain_fairseq_and_torchvision },
                { "any", packs_hold_every_element_once_and_no_more_than_their_size },
                { "any", buckets_hold_every_sample_once_within_their_budget },
                { "any", batches_of_most_tokens_are_within_their_budget_in_sequence },
                { "any", batches_of_a_group_are_full_and_of_one_group },
                { "said", a_shuffled_epoch_has_the_same_packs_in_another_sequence },
                { "said", an_order_that_is_no_longer_wanted_ends },
                { "said", memory_that_is_not_there_is_an_error },
                { "said", what_cannot_be_is_refused_with_its_numbers },
                { "below", a_set_of_numbers_finds_the_nearest_on_every_level, 8 },
                { "below", packs_of_more_samples_than_32_bits_can_number },
        };

        return suite_run("groupers", rows, sizeof(rows) / sizeof(rows[0]));
}
