/* Batches that are served again (pipeline/replay/): every rank gets as many, at the same place, and nothing else of
 * what it gets changes. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/serving.h"

#define SOON_MS 60000
#define WORLD   3u
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ROUNDS 20u
#else
#define ROUNDS 60u
#endif

static struct serving serving;

/* A rank and what it has had. */
struct eater {
        struct rank rank;
        uint64_t epoch, step; /* of its next own batch */
        uint32_t n_again;
        uint64_t again_epoch, again_step; /* where they stood */
        uint64_t had[64][2];              /* its latest own batches, by their number */
        uint64_t n_own;
};

static uint32_t state_of(const struct eater *eater) {
        const struct replay *replay = &eater->rank.feed->replay;

        return atomic_load(&replay->n_asked) > 0 ? REPLAY_KEEPING : atomic_load(&replay->state);
}

/* The planner may still be on its way to it. */
static void check_done(const struct eater *eater, enum replay_end end) {
        for (uint32_t i = 0; i < SOON_MS && state_of(eater) != REPLAY_DONE; i++)
                nap_ms(1);
        ck_assert_uint_eq(state_of(eater), REPLAY_DONE);
        ck_assert_int_eq(atomic_load(&eater->rank.feed->replay.end), end);
}

/* Is it one of the batches that the rank had before? */
static void check_again(struct eater *eater, const struct taken *taken) {
        uint64_t first = (uint64_t)taken->columns.indices[0];
        bool is_known = false;

        ck_assert_uint_eq(taken->record->epoch, eater->epoch);
        ck_assert_uint_eq(taken->record->step, eater->step);
        for (uint64_t i = 0; i < eater->n_own && i < 64 && !is_known; i++)
                is_known = expected_index(&eater->rank, eater->had[i][0],
                                          eater->had[i][1] * eater->rank.options.batch_size) == first;
        ck_assert_msg(is_known, "sample %llu was not served before", (unsigned long long)first);
        for (uint32_t i = 0; i < taken->record->n_samples; i++)
                check_picture(taken, i, (uint32_t)taken->columns.indices[i]);
        if (eater->n_again++ > 0) {
                ck_assert_uint_eq(eater->again_epoch, eater->epoch);
                ck_assert_uint_eq(eater->again_step, eater->step);
        }
        eater->again_epoch = eater->epoch;
        eater->again_step = eater->step;
}

/* Takes a batch, checks it, spoils it as a trainer that works in place does, and gives it back. Returns whether it was
 * one of the rank's own. */
static bool eat(struct eater *eater) {
        struct taken taken;
        bool is_own;

        ck_assert(rank_next(&eater->rank, SOON_MS, &taken));
        is_own = taken.record->status != DLP_BATCH_REPLAY;
        if (is_own) {
                rank_check(&eater->rank, &taken, eater->epoch, eater->step);
                eater->had[eater->n_own % 64][0] = eater->epoch;
                eater->had[eater->n_own++ % 64][1] = eater->step;
                if (++eater->step == rank_batches(&eater->rank, eater->epoch)) {
                        eater->epoch++;
                        eater->step = 0;
                }
        } else {
                check_again(eater, &taken);
        }
        memset((uint8_t *)(uintptr_t)taken.images, 0, taken.record->n_samples * 3 * PICTURE_SIDE * PICTURE_SIDE);
        rank_release(&eater->rank, &taken);
        return is_own;
}

static void begin(struct eater eaters[WORLD], const struct rank_options *options) {
        for (uint32_t i = 0; i < WORLD; i++) {
                struct rank_options own = *options;

                own.world = WORLD;
                own.rank = i;
                eaters[i] = (struct eater){ .epoch = 0 };
                rank_attach(&eaters[i].rank, &serving, &own);
        }
}

static void ask(struct eater eaters[WORLD], uint32_t n_batches) {
        struct feed *feeds[WORLD];

        for (uint32_t i = 0; i < WORLD; i++)
                feeds[i] = eaters[i].rank.feed;
        pipeline_replay(serving.pipeline, feeds, WORLD, n_batches);
}

static bool are_done(const struct eater eaters[WORLD], uint32_t n_batches) {
        for (uint32_t i = 0; i < WORLD; i++)
                if (state_of(&eaters[i]) != REPLAY_DONE || eaters[i].n_again < n_batches)
                        return false;
        return true;
}

/* All take turns. */
static void eat_until_done(struct eater eaters[WORLD], uint32_t n_batches) {
        while (!are_done(eaters, n_batches))
                for (uint32_t i = 0; i < WORLD; i++) {
                        eat(&eaters[i]);
                        ck_assert_uint_le(eaters[i].n_again, n_batches);
                }
}

static void leave(struct eater *eaters) {
        for (uint32_t i = 0; i < WORLD; i++)
                rank_leave(&eaters[i].rank);
}

START_TEST(all_ranks_are_served_again_at_one_place_wherever_they_were) {
        struct eater eaters[WORLD];
        uint64_t used;

        serving_start(&serving, &(struct serving_options){ .n_samples = 101, .n_classes = 3 });
        begin(eaters, &(struct rank_options){ .batch_size = 4, .shuffle = true, .seed = 5 });
        used = budget_used(&serving.budget);
        for (uint32_t i = 0; i < WORLD; i++)
                for (uint32_t n = 0; n < 1 + 9 * i; n++) /* the last one is in its third epoch */
                        ck_assert(eat(&eaters[i]));
        for (uint32_t round = 0; round < 2; round++) { /* once more when it is over */
                ask(eaters, 37);
                eat_until_done(eaters, 37);
                for (uint32_t i = 0; i < WORLD; i++) {
                        ck_assert_uint_eq(eaters[i].n_again, 37);
                        ck_assert_uint_eq(eaters[i].again_epoch, eaters[0].again_epoch);
                        ck_assert_uint_eq(eaters[i].again_step, eaters[0].again_step);
                        check_done(&eaters[i], REPLAY_WHOLE);
                }
                for (uint32_t i = 0; i < WORLD; i++)
                        eaters[i].n_again = 0;
        }
        for (uint32_t n = 0; n < 30; n++)
                for (uint32_t i = 0; i < WORLD; i++)
                        ck_assert(eat(&eaters[i]));
        ck_assert_uint_eq(budget_used(&serving.budget), used); /* the copies are gone */
        leave(eaters);
        serving_stop(&serving);
}
END_TEST

START_TEST(an_early_end_leaves_no_rank_with_fewer) {
        struct eater eaters[WORLD];

        serving_start(&serving, &(struct serving_options){ .n_samples = 60, .n_classes = 3 });
        for (uint32_t round = 0; round < ROUNDS; round++) {
                uint32_t n_before = round % 12;

                begin(eaters, &(struct rank_options){ .batch_size = 2, .shuffle = true, .seed = round });
                ask(eaters, 1000);
                while (eaters[0].n_again <= n_before && (n_before > 0 || state_of(&eaters[0]) < REPLAY_WAITING))
                        for (uint32_t i = 0; i < WORLD; i++)
                                eat(&eaters[i]);
                for (uint32_t n = 0; n < round % 3; n++)
                        eat(&eaters[1]); /* it has had more than the others */
                pipeline_end_replay(serving.pipeline, eaters[round % WORLD].rank.feed);
                for (uint32_t n_own = 0; n_own < 20 * WORLD;)
                        for (uint32_t i = 0; i < WORLD; i++)
                                n_own += eat(&eaters[i]);
                for (uint32_t i = 0; i < WORLD; i++) {
                        ck_assert_uint_eq(eaters[i].n_again, eaters[0].n_again);
                        check_done(&eaters[i], REPLAY_ASKED);
                }
                ck_assert_uint_lt(eaters[0].n_again, 100);
                leave(eaters);
        }
        serving_stop(&serving);
}
END_TEST

START_TEST(an_early_end_counts_what_a_rank_has_had_that_is_done) {
        struct eater eaters[WORLD];

        serving_start(&serving, &(struct serving_options){ .n_samples = 60, .n_classes = 3 });
        begin(eaters, &(struct rank_options){ .batch_size = 2, .shuffle = true });
        ask(eaters, 20);
        while (state_of(&eaters[0]) < REPLAY_WAITING)
                for (uint32_t i = 0; i < WORLD; i++)
                        eat(&eaters[i]);
        while (state_of(&eaters[0]) != REPLAY_DONE || eaters[0].n_again < 20)
                eat(&eaters[0]);
        pipeline_end_replay(serving.pipeline, eaters[1].rank.feed);
        for (uint32_t i = 1; i < WORLD; i++)
                for (uint32_t n_own = 0; n_own < 60;)
                        n_own += eat(&eaters[i]);
        for (uint32_t i = 0; i < WORLD; i++)
                ck_assert_uint_eq(eaters[i].n_again, 20);
        leave(eaters);
        serving_stop(&serving);
}
END_TEST

START_TEST(a_rank_that_leaves_ends_it_for_the_others_alike) {
        struct eater eaters[WORLD];

        serving_start(&serving, &(struct serving_options){ .n_samples = 60, .n_classes = 3 });
        for (uint32_t round = 0; round < ROUNDS; round++) {
                begin(eaters, &(struct rank_options){ .batch_size = 2, .shuffle = true, .seed = round });
                ask(eaters, 1000);
                for (uint32_t n = 0; n < round; n++)
                        for (uint32_t i = 0; i < WORLD; i++)
                                eat(&eaters[i]);
                rank_leave(&eaters[2].rank);
                for (uint32_t n_own = 0; n_own < 60;)
                        for (uint32_t i = 0; i < 2; i++)
                                n_own += eat(&eaters[i]);
                ck_assert_uint_eq(eaters[0].n_again, eaters[1].n_again);
                check_done(&eaters[0], REPLAY_LEFT);
                rank_leave(&eaters[0].rank);
                rank_leave(&eaters[1].rank);
        }
        serving_stop(&serving);
}
END_TEST

START_TEST(without_memory_for_one_batch_nothing_is_served_again) {
        struct eater eaters[WORLD];
        struct why why;
        uint64_t rest;

        serving_start(&serving, &(struct serving_options){ .n_samples = 60, .n_classes = 3 });
        begin(eaters, &(struct rank_options){ .batch_size = 2 });
        rest = serving.budget.limit_bytes - budget_used(&serving.budget);
        ck_assert_int_eq(budget_reserve(&serving.budget, rest, "all that is left", &why), 0);
        ask(eaters, 10);
        for (uint32_t n = 0; n < 40; n++)
                for (uint32_t i = 0; i < WORLD; i++)
                        ck_assert(eat(&eaters[i]));
        for (uint32_t i = 0; i < WORLD; i++) {
                check_done(&eaters[i], REPLAY_NO_MEMORY);
        }
        budget_release(&serving.budget, rest);
        leave(eaters);
        serving_stop(&serving);
}
END_TEST

START_TEST(at_the_end_of_a_run_nothing_is_served_again) {
        struct eater eaters[WORLD];

        serving_start(&serving, &(struct serving_options){ .n_samples = 60, .n_classes = 3 });
        begin(eaters, &(struct rank_options){ .batch_size = 2, .n_epochs = 2 });
        for (uint32_t n = 0; n < 14; n++)
                for (uint32_t i = 0; i < WORLD; i++)
                        eat(&eaters[i]);
        ask(eaters, 10);
        for (uint32_t n = 14; n < 20; n++)
                for (uint32_t i = 0; i < WORLD; i++)
                        ck_assert(eat(&eaters[i]));
        for (uint32_t i = 0; i < WORLD; i++) {
                check_done(&eaters[i], REPLAY_AT_END);
        }
        leave(eaters);
        serving_stop(&serving);
}
END_TEST

START_TEST(a_seek_ends_it_and_goes_where_it_was_asked_to) {
        struct eater eaters[WORLD];

        serving_start(&serving, &(struct serving_options){ .n_samples = 60, .n_classes = 3 });
        for (uint32_t round = 0; round < ROUNDS; round++) {
                begin(eaters, &(struct rank_options){ .batch_size = 2, .shuffle = true, .seed = round });
                ask(eaters, 1000);
                for (uint32_t n = 0; n < round; n++)
                        for (uint32_t i = 0; i < WORLD; i++)
                                eat(&eaters[i]);
                for (uint32_t i = 0; i < WORLD; i++) {
                        rank_seek(&eaters[i].rank, &(struct cursor){ .epoch = 7 });
                        eaters[i].epoch = 7;
                        eaters[i].step = eaters[i].n_own = eaters[i].n_again = 0;
                }
                for (uint32_t i = 0; i < WORLD; i++) {
                        struct taken taken;

                        do { /* what was begun before the ends of all ranks were known may still come */
                                ck_assert(rank_next(&eaters[i].rank, SOON_MS, &taken));
                                if (taken.record->status != DLP_BATCH_REPLAY)
                                        rank_check(&eaters[i].rank, &taken, 7, 0);
                                rank_release(&eaters[i].rank, &taken);
                        } while (taken.record->status == DLP_BATCH_REPLAY);
                }
                leave(eaters);
        }
        serving_stop(&serving);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("replay");
        TCase *tcase = tcase_create("replay");
        SRunner *runner;
        int n_failed;

        tcase_set_timeout(tcase, 300);
        tcase_add_test(tcase, all_ranks_are_served_again_at_one_place_wherever_they_were);
        tcase_add_test(tcase, an_early_end_leaves_no_rank_with_fewer);
        tcase_add_test(tcase, an_early_end_counts_what_a_rank_has_had_that_is_done);
        tcase_add_test(tcase, a_rank_that_leaves_ends_it_for_the_others_alike);
        tcase_add_test(tcase, without_memory_for_one_batch_nothing_is_served_again);
        tcase_add_test(tcase, at_the_end_of_a_run_nothing_is_served_again);
        tcase_add_test(tcase, a_seek_ends_it_and_goes_where_it_was_asked_to);
        suite_add_tcase(suite, tcase);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
