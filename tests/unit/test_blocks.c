/* unit/test_blocks.c: the order of blocks is the one that was defined, each sample comes once, and what comes later in the
 * sequence of blocks has no influence on what comes before. */
#include "proto/order/blocks.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/order/sampler.h"

#define N_BLOCKS_MAX 100u

/* Blocks of the sizes that people have: of one sample, of a round, of several, all alike or not. */
static uint64_t fill_ends(int i, uint64_t *ends, uint32_t n) {
        static const uint64_t EACH[] = { 1, 2, 100, 1024, 1025, 5000 };
        uint64_t end = 0;

        for (uint32_t b = 0; b < n; b++)
                ends[b] = end += i < 6 ? EACH[i] : 1 + (b * 2654435761u) % 3000 * (b % 3);
        return end;
}

struct made {
        uint64_t ends[N_BLOCKS_MAX];
        struct dlp_blocks blocks;
        struct dlp_sampler_terms terms;
        struct dlp_sampler sampler;
        void *table;
};

static struct made *made_new(int sizes, uint32_t n_blocks, uint32_t window, uint64_t seed) {
        struct made *made = aligned_alloc(_Alignof(struct made), sizeof(*made));

        ck_assert_ptr_nonnull(made);
        memset(made, 0, sizeof(*made));
        made->blocks = (struct dlp_blocks){ .ends = made->ends, .n = n_blocks };
        made->terms = (struct dlp_sampler_terms){ .n_samples = fill_ends(sizes, made->ends, n_blocks),
                                                  .seed = seed,
                                                  .epoch = seed % 7,
                                                  .shuffle = true,
                                                  .kind = DLP_ORDER_BLOCKS,
                                                  .window = window,
                                                  .blocks = &made->blocks };
        made->table = calloc(1, dlp_sampler_table_bytes(&made->terms));
        ck_assert_ptr_nonnull(made->table);
        dlp_sampler_init(&made->sampler, &made->terms, made->table);
        return made;
}

static void made_free(struct made *made) {
        free(made->table);
        free(made);
}

static const struct {
        uint32_t n_blocks, window;
} CASES[] = {
        { 1, 1 }, { 1, 8 }, { 2, 1 }, { 7, 3 }, { 8, 8 }, { 9, 8 }, { 20, 7 }, { 40, 8 }, { 40, 40 }, { 40, 1024 }
};
#define N_SIZES 7
#define N_CASES (N_SIZES * (int)(sizeof(CASES) / sizeof(CASES[0])))

/* As the header defines it, in its own words and without a table. */
START_TEST(the_order_is_the_one_of_the_definition) {
        uint32_t n = CASES[_i / N_SIZES].n_blocks, window = CASES[_i / N_SIZES].window;
        struct made *made = made_new(_i % N_SIZES, n, window, (uint64_t)_i * 1000003);
        const struct dlp_sampler_terms *terms = &made->terms;
        uint64_t position = 0, *window_of = calloc(terms->n_samples, sizeof(*window_of));
        struct dlp_tdperm sequence, shuffled;

        ck_assert_ptr_nonnull(window_of);
        while (dlp_sampler_advance(&made->sampler, 100) < terms->n_samples)
                ;
        dlp_tdperm_init(&sequence, terms->seed, terms->epoch, 0, n);
        for (uint64_t group = 0; group * window < n; group++) {
                uint64_t first = group * window, n_open = n - first < window ? n - first : window;
                uint64_t share = (uint64_t)window * 1024 / n_open, n_window = 1;

                for (uint64_t round = 0; n_window > 0; round++) {
                        n_window = 0;
                        for (uint64_t s = first; s < first + n_open; s++) {
                                uint64_t block = dlp_tdperm_at(&sequence, s);
                                uint64_t begin = (block > 0 ? made->ends[block - 1] : 0) + round * share;

                                for (uint64_t i = begin; i < begin + share && i < made->ends[block]; i++)
                                        window_of[n_window++] = i;
                        }
                        if (n_window > 0)
                                dlp_tdperm_init(&shuffled, terms->seed, terms->epoch, (group << 32 | round) + 1,
                                                n_window);
                        for (uint64_t p = 0; p < n_window; p++)
                                ck_assert_uint_eq(dlp_sampler_at(&made->sampler, position++),
                                                  window_of[dlp_tdperm_at(&shuffled, p)]);
                }
        }
        ck_assert_uint_eq(position, terms->n_samples);
        free(window_of);
        made_free(made);
}
END_TEST

/* However few steps are made at a time, what is final stays, and is all there is in the end. */
START_TEST(leading_positions_are_final_and_each_sample_comes_once) {
        struct made *made = made_new(_i % N_SIZES, CASES[_i / N_SIZES].n_blocks, CASES[_i / N_SIZES].window, 5);
        uint64_t n = made->terms.n_samples, n_final = 0, *seen = calloc(n, sizeof(*seen));
        uint8_t *times = calloc(n, 1);

        ck_assert(seen && times);
        while (n_final < n) {
                uint64_t now = dlp_sampler_advance(&made->sampler, 1);

                ck_assert_uint_ge(now, n_final);
                for (; n_final < now; n_final++)
                        times[seen[n_final] = dlp_sampler_at(&made->sampler, n_final)]++;
        }
        ck_assert_uint_eq(dlp_sampler_advance(&made->sampler, 1), n);
        for (uint64_t i = 0; i < n; i++) {
                ck_assert_uint_eq(times[i], 1);
                ck_assert_uint_eq(dlp_sampler_at(&made->sampler, i), seen[i]);
        }
        free(times);
        free(seen);
        made_free(made);
}
END_TEST

/* Of the blocks after a group nothing is needed but how many there are: so an epoch can begin before they are here. */
START_TEST(later_blocks_may_have_any_length) {
        struct made *one = made_new(6, 100, 8, 3), *other = made_new(6, 100, 8, 3);
        struct dlp_tdperm sequence;
        uint32_t longer;
        uint64_t n_before = 0;

        dlp_tdperm_init(&sequence, 3, 3, 0, 100);
        longer = (uint32_t)dlp_tdperm_at(&sequence, 40); /* of group 5 */
        for (uint32_t b = longer; b < 100; b++)
                other->ends[b] += 12345;
        other->terms.n_samples += 12345;
        free(other->table);
        other->table = calloc(1, dlp_sampler_table_bytes(&other->terms));
        ck_assert_ptr_nonnull(other->table);
        dlp_sampler_init(&other->sampler, &other->terms, other->table);
        for (uint64_t s = 0; s < 40; s++) {
                uint64_t block = dlp_tdperm_at(&sequence, s);

                n_before += one->ends[block] - (block > 0 ? one->ends[block - 1] : 0);
        }
        dlp_sampler_advance(&one->sampler, UINT64_MAX);
        dlp_sampler_advance(&other->sampler, UINT64_MAX);
        for (uint64_t i = 0; i < n_before; i++) {
                uint64_t a = dlp_sampler_at(&one->sampler, i), b = dlp_sampler_at(&other->sampler, i);

                ck_assert_uint_eq(b, a < one->ends[longer] ? a : a + 12345); /* the same sample of the same block */
        }
        made_free(one);
        made_free(other);
}
END_TEST

START_TEST(seed_epoch_window_and_blocks_each_make_another_order) {
        struct made *made = made_new(2, 50, 8, 1);
        struct dlp_sampler_terms other = made->terms;
        struct dlp_blocks blocks = made->blocks;

        ck_assert(dlp_sampler_is_same(&made->terms, &other));
        other.seed++;
        ck_assert(!dlp_sampler_is_same(&made->terms, &other));
        other = made->terms;
        other.epoch++;
        ck_assert(!dlp_sampler_is_same(&made->terms, &other));
        other = made->terms;
        other.window = 9;
        ck_assert(!dlp_sampler_is_same(&made->terms, &other));
        other.window = 0; /* the usual one, which is 8 */
        ck_assert(dlp_sampler_is_same(&made->terms, &other));
        other.blocks = &blocks;
        ck_assert(!dlp_sampler_is_same(&made->terms, &other));
        made_free(made);
}
END_TEST

/* The samples that come together are of a few blocks, however long these are. */
START_TEST(few_blocks_are_open_at_once) {
        struct made *made = made_new(5, 64, 4, 9); /* of 5,000 samples each: five rounds */

        dlp_sampler_advance(&made->sampler, UINT64_MAX);
        for (uint64_t first = 0; first < made->terms.n_samples; first += 4 * 5000) {
                bool is_open[64] = { false };
                uint32_t n_open = 0;

                for (uint64_t i = first; i < first + 20000; i++)
                        is_open[dlp_sampler_at(&made->sampler, i) / 5000] = true;
                for (uint32_t b = 0; b < 64; b++)
                        n_open += is_open[b];
                ck_assert_uint_eq(n_open, 4);
        }
        made_free(made);
}
END_TEST

START_TEST(orders_are_read_and_printed) {
        static const struct {
                const char *text, *printed;
                struct dlp_order_choice choice;
        } GOOD[] = {
                { "torch", "torch", { DLP_ORDER_TORCH, 0 } },
                { "tdperm", "tdperm", { DLP_ORDER_TDPERM, 0 } },
                { "buffer", "buffer", { DLP_ORDER_BUFFER, 0 } },
                { "blocks", "blocks", { DLP_ORDER_BLOCKS, 8 } },
                { "blocks(window=8)", "blocks", { DLP_ORDER_BLOCKS, 8 } },
                { "blocks(16)", "blocks(window=16)", { DLP_ORDER_BLOCKS, 16 } },
                { "blocks ( window = 1024 ) ", "blocks(window=1024)", { DLP_ORDER_BLOCKS, 1024 } },
        };
        static const struct {
                const char *text, *word;
        } BAD[] = {
                { "", "choose one of" },
                { "block", "did you mean \"blocks\"" },
                { "torch(window=3)", "nothing can be said of torch" },
                { "blocks(", "blocks(window=N)" },
                { "blocks()", "blocks(window=N)" },
                { "blocks(window=)", "blocks(window=N)" },
                { "blocks(window=4", "blocks(window=N)" },
                { "blocks(window=4) x", "blocks(window=N)" },
                { "blocks(window=-4)", "blocks(window=N)" },
                { "blocks(size=4)", "blocks(window=N)" },
                { "blocks(window=0)", "1 to 1024" },
                { "blocks(window=1025)", "1 to 1024" },
                { "blocks(window=99999999999999999999999)", "blocks(window=N)" },
        };
        struct dlp_order_choice choice;
        char text[DLP_ORDER_CHOICE_MAX];
        struct why why;

        for (size_t i = 0; i < sizeof(GOOD) / sizeof(GOOD[0]); i++) {
                ck_assert_int_eq(dlp_order_choice_read(GOOD[i].text, &choice, &why), 0);
                ck_assert_int_eq(choice.kind, GOOD[i].choice.kind);
                ck_assert_uint_eq(choice.window, GOOD[i].choice.window);
                dlp_order_choice_print(&choice, text);
                ck_assert_str_eq(text, GOOD[i].printed);
        }
        for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
                ck_assert_int_eq(dlp_order_choice_read(BAD[i].text, &choice, &why), -EINVAL);
                ck_assert_msg(strstr(why.text, BAD[i].word), "%s: %s", BAD[i].text, why.text);
        }
        dlp_order_choice_read("", &choice, &why);
        for (int i = 0; dlp_order_kind_name((enum dlp_order_kind)i); i++)
                ck_assert_ptr_nonnull(strstr(why.text, dlp_order_kind_name((enum dlp_order_kind)i)));
}
END_TEST

/* Blocks that grow in steps, those first that are asked for. The order is the one of their final lengths, also that of
 * what is known before these are. */
START_TEST(blocks_that_grow_have_the_order_of_their_final_lengths) {
        uint32_t n = CASES[_i / N_SIZES].n_blocks, window = CASES[_i / N_SIZES].window;
        struct made *made = made_new(_i % N_SIZES, n, window, 11);
        const struct dlp_sampler_terms *terms = &made->terms;
        _Atomic uint64_t grown[N_BLOCKS_MAX] = { 0 };
        const struct dlp_blocks blocks = { .n = n, .shift = 20, .grown = grown };
        void *table = calloc(1, dlp_block_order_bytes(&blocks, window));
        uint64_t position = 0, lack, n_waits = 0, random = 7;
        struct dlp_block_window found;
        struct dlp_block_order order;
        enum dlp_block_found how;

        ck_assert_ptr_nonnull(table);
        while (dlp_sampler_advance(&made->sampler, 100) < terms->n_samples)
                ;
        dlp_block_order_init(&order, &blocks, window, terms->seed, terms->epoch, table);
        while ((how = dlp_block_order_find(&order, &found, &lack)) != DLP_BLOCKS_OVER) {
                const uint32_t *group;
                uint32_t n_group = dlp_block_order_group(&order, 0, &group);

                for (uint64_t place = 0; how == DLP_BLOCKS_FOUND && place < found.n; place++) {
                        uint64_t sample = dlp_block_order_in(&order, &found, place), block = sample >> 20;

                        ck_assert_uint_lt(block, n);
                        ck_assert_uint_eq((block > 0 ? made->ends[block - 1] : 0) + (sample & ((1u << 20) - 1)),
                                          dlp_sampler_at(&made->sampler, position++));
                }
                for (uint32_t i = 0; how == DLP_BLOCKS_LACK && i < n_group; i++) {
                        uint32_t b = group[i];
                        uint64_t size = made->ends[b] - (b > 0 ? made->ends[b - 1] : 0), now = grown[b] >> 1;

                        random = random * 6364136223846793005u + 1;
                        now += (random >> 40) % (lack + 200);
                        grown[b] = now >= size ? size << 1 | 1 : now << 1;
                        n_waits++;
                }
        }
        ck_assert_uint_eq(position, terms->n_samples);
        ck_assert_uint_gt(n_waits, 0);
        free(table);
        made_free(made);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("blocks");
        TCase *tcase = tcase_create("blocks");
        SRunner *runner;
        int n_failed;

        tcase_add_loop_test(tcase, the_order_is_the_one_of_the_definition, 0, N_CASES);
        tcase_add_loop_test(tcase, leading_positions_are_final_and_each_sample_comes_once, 0, N_CASES);
        tcase_add_loop_test(tcase, blocks_that_grow_have_the_order_of_their_final_lengths, 0, N_CASES);
        tcase_add_test(tcase, later_blocks_may_have_any_length);
        tcase_add_test(tcase, seed_epoch_window_and_blocks_each_make_another_order);
        tcase_add_test(tcase, few_blocks_are_open_at_once);
        tcase_add_test(tcase, orders_are_read_and_printed);
        suite_add_tcase(suite, tcase);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
