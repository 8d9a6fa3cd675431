/* Each dealing and partition deals out what it promises, to any world, in batches of any size, and after any resume. */
#include "proto/order/dealing.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/order/epoch_plan.h"
#include "tests/support/suite.h"

#define N_MAX 400u /* positions of an epoch */

/* splitmix64 */
static uint64_t draw(uint64_t *state) {
        uint64_t z = *state += 0x9e3779b97f4a7c15ull;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ z >> 27) * 0x94d049bb133111ebull;
        return z ^ z >> 31;
}

static uint64_t below(uint64_t *state, uint64_t n) {
        return draw(state) % n;
}

static struct dlp_epoch_terms draw_terms(uint64_t *state) {
        static const uint32_t WORLDS[] = { 1, 2, 5, 9, 70 }, BATCHES[] = { 1, 2, 5, 9, 64, 300 };

        return (struct dlp_epoch_terms){
                .n_positions = below(state, below(state, 4) ? 60 : N_MAX),
                .world = 1 + (uint32_t)below(state, WORLDS[below(state, 5)]),
                .batch_size = 1 + (uint32_t)below(state, BATCHES[below(state, 6)]),
                .dealing = (enum dlp_dealing)below(state, 3),
                .partition = (enum dlp_partition)below(state, 3),
                .drop_last = below(state, 2),
        };
}

static uint64_t round_of(const struct dlp_epoch_terms *terms) {
        return (uint64_t)terms->world * (terms->dealing == DLP_DEALING_STRIDED ? 1 : terms->batch_size);
}

/* ---- the definition, written as a person deals cards ----------------------------------------------------------- */

struct hand {
        uint64_t positions[2 * N_MAX + 70 * 300];
        uint64_t n;
};

/* Goes along the row, a position at a time, and gives each to the rank whose turn it is. */
static void deal_by_hand(const struct dlp_epoch_terms *terms, uint64_t base, uint32_t rank, struct hand *ret_hand) {
        uint64_t block = terms->dealing == DLP_DEALING_STRIDED ? 1 : terms->batch_size, end = terms->n_positions;
        uint64_t n_in_block = 0, whole = base + (end - base) / round_of(terms) * round_of(terms);
        uint32_t turn = 0;

        if (whole < end && terms->partition == DLP_PARTITION_PAD)
                end = whole + round_of(terms);
        if (terms->partition == DLP_PARTITION_DROP)
                end = whole;
        ret_hand->n = 0;
        for (uint64_t position = base; position < end; position++) {
                if (turn == rank)
                        ret_hand->positions[ret_hand->n++] = position < terms->n_positions
                                                                     ? position
                                                                     : position % terms->n_positions;
                if (++n_in_block == block) {
                        n_in_block = 0;
                        turn = (turn + 1) % terms->world;
                }
        }
}

START_TEST(each_rank_gets_what_dealing_by_hand_gives_it) {
        static struct hand hand;
        uint64_t state = 3;

        for (int round = 0; round < 20000; round++) {
                struct dlp_epoch_terms terms = draw_terms(&state);
                uint64_t base = below(&state, 2) ? 0 : below(&state, terms.n_positions + 1), n_batches;
                uint32_t rank = (uint32_t)below(&state, terms.world);
                struct dlp_epoch_plan plan = dlp_epoch_plan_make(&terms, rank, base);

                deal_by_hand(&terms, base, rank, &hand);
                ck_assert(plan.n_samples == hand.n);
                for (uint64_t k = 0; k < hand.n; k++)
                        ck_assert(dlp_epoch_plan_position(&plan, k) == hand.positions[k]);
                n_batches = (hand.n + (terms.drop_last ? 0 : terms.batch_size - 1)) / terms.batch_size;
                ck_assert(plan.n_batches == n_batches && plan.n_batches <= plan.n_steps);
        }
}
END_TEST

/* ---- stops and resumes ----------------------------------------------------------------------------------------- */

struct tally {
        unsigned seen[N_MAX];
        uint64_t n_dealt;
};

/* All ranks take n_steps batches each, or what there is. */
static void take(const struct dlp_epoch_terms *terms, uint64_t position, uint64_t n_steps, struct tally *tally) {
        for (uint32_t rank = 0; rank < terms->world; rank++) {
                struct dlp_epoch_plan plan = dlp_epoch_plan_make(terms, rank, position);

                for (uint64_t step = 0; step < n_steps && !dlp_epoch_plan_is_over(&plan, step); step++) {
                        struct dlp_plan_batch batch = dlp_epoch_plan_batch(&plan, step);

                        ck_assert(batch.n_samples > 0 && batch.n_samples <= terms->batch_size);
                        for (uint32_t i = 0; i < batch.n_samples; i++)
                                tally->seen[dlp_epoch_plan_position(&plan, batch.first + i)]++;
                        tally->n_dealt += batch.n_samples;
                }
        }
}

/* A run that stops and goes on, each time with another world, batch size and dealing, under one partition. Until the
 * last stretch each position comes once; what a partition repeats or leaves out there is less than a round. */
START_TEST(over_any_stops_and_resumes_each_position_comes_as_often_as_the_partition_promises) {
        uint64_t state = 5;

        for (int run = 0; run < 10000; run++) {
                struct dlp_epoch_terms terms = draw_terms(&state);
                enum dlp_partition partition = terms.partition;
                uint64_t n = terms.n_positions, position = 0, round = 1, n_missed = 0;
                struct tally tally = { .n_dealt = 0 };

                while (!dlp_epoch_is_end(&terms, position)) {
                        uint64_t n_steps = 1 + below(&state, 4), after;
                        struct dlp_epoch_plan plan;

                        terms = draw_terms(&state);
                        terms.n_positions = n;
                        terms.partition = partition;
                        terms.drop_last = false;
                        round = round_of(&terms);
                        plan = dlp_epoch_plan_make(&terms, (uint32_t)below(&state, terms.world), position);
                        take(&terms, position, n_steps, &tally);
                        after = dlp_epoch_plan_position_after(&plan, n_steps);
                        ck_assert(after > position);
                        if (after < n) {
                                ck_assert(after - position == n_steps * terms.batch_size * terms.world);
                                ck_assert(tally.n_dealt == after);
                        }
                        position = after;
                }
                for (uint64_t i = 0; i < n; i++) {
                        n_missed += tally.seen[i] == 0;
                        ck_assert(tally.seen[i] == 1 || partition != DLP_PARTITION_EXACT);
                        ck_assert(tally.seen[i] <= 1 || partition == DLP_PARTITION_PAD);
                }
                ck_assert(n_missed == 0 || (partition == DLP_PARTITION_DROP && n_missed < round));
                ck_assert(tally.n_dealt + n_missed >= n && tally.n_dealt + n_missed < n + round);
        }
}
END_TEST

/* A run that keeps its terms stands after a resume where it would stand without: the same batches follow. */
START_TEST(a_resume_with_the_same_terms_changes_no_batch) {
        uint64_t state = 17, n_steps = 0;

        for (int round = 0; round < 20000; round++) {
                struct dlp_epoch_terms terms = draw_terms(&state);
                uint32_t rank = (uint32_t)below(&state, terms.world);
                struct dlp_epoch_plan whole = dlp_epoch_plan_make(&terms, rank, 0), rest;
                uint64_t stop = below(&state, whole.n_steps + 1);

                rest = dlp_epoch_plan_make(&terms, rank, dlp_epoch_plan_position_after(&whole, stop));
                ck_assert(rest.n_batches == (stop < whole.n_batches ? whole.n_batches - stop : 0));
                for (uint64_t step = 0; step < rest.n_batches; step++, n_steps++) {
                        struct dlp_plan_batch a = dlp_epoch_plan_batch(&whole, stop + step),
                                              b = dlp_epoch_plan_batch(&rest, step);

                        ck_assert(a.n_samples == b.n_samples);
                        for (uint32_t i = 0; i < a.n_samples; i++)
                                ck_assert(dlp_epoch_plan_position(&whole, a.first + i) ==
                                          dlp_epoch_plan_position(&rest, b.first + i));
                        ck_assert(dlp_epoch_plan_position_after(&whole, stop + step) ==
                                  dlp_epoch_plan_position_after(&rest, step));
                }
        }
        ck_assert_uint_gt(n_steps, 20000);
}
END_TEST

/* ---- ranks that step together ---------------------------------------------------------------------------------- */

/* With pad and drop no rank ever waits for another one at an epoch's end: all have the same number of batches, and
 * these are of the same sizes. From any place on, at any length that a stream may turn out to have. */
START_TEST(with_pad_and_drop_all_ranks_always_have_the_same_batches) {
        uint64_t state = 23;

        for (int round = 0; round < 20000; round++) {
                struct dlp_epoch_terms terms = draw_terms(&state);
                uint64_t base = below(&state, terms.n_positions + 1);
                struct dlp_epoch_plan first = dlp_epoch_plan_make(&terms, 0, base);

                if (terms.partition == DLP_PARTITION_EXACT)
                        continue;
                for (uint32_t rank = 0; rank < terms.world; rank++) {
                        struct dlp_epoch_plan plan = dlp_epoch_plan_make(&terms, rank, base);

                        ck_assert(plan.n_samples == first.n_samples && plan.n_batches == first.n_batches &&
                                  plan.n_steps == first.n_batches);
                }
                /* Whole batches are dealt, so that no batch is incomplete. */
                if (terms.dealing != DLP_DEALING_STRIDED)
                        ck_assert(first.n_samples == first.n_batches * terms.batch_size);
                if (terms.partition == DLP_PARTITION_PAD && base < terms.n_positions && !terms.drop_last)
                        ck_assert(first.n_batches > 0);
        }
}
END_TEST

/* Memory for the samples of a batch is planned by this: a batch has room for each sample once. */
START_TEST(a_batch_repeats_a_position_only_where_the_terms_say_so) {
        uint64_t state = 31;
        unsigned n_repeating = 0;

        for (int round = 0; round < 20000; round++) {
                struct dlp_epoch_terms terms = draw_terms(&state);
                uint64_t base = below(&state, 2) ? 0 : below(&state, terms.n_positions + 1);
                struct dlp_epoch_plan plan = dlp_epoch_plan_make(&terms, (uint32_t)below(&state, terms.world), base);
                bool repeats = false;

                for (uint64_t step = 0; step < plan.n_batches; step++) {
                        struct dlp_plan_batch batch = dlp_epoch_plan_batch(&plan, step);
                        uint8_t seen[N_MAX] = { 0 };

                        for (uint32_t i = 0; i < batch.n_samples; i++)
                                repeats |= seen[dlp_epoch_plan_position(&plan, batch.first + i)]++ > 0;
                }
                ck_assert(!repeats || dlp_epoch_may_repeat(&terms));
                n_repeating += repeats;
        }
        ck_assert_uint_gt(n_repeating, 500);
}
END_TEST

/* Which rank takes a position is the same from both bases if, and for long epochs only if, they are alike. */
START_TEST(bases_are_alike_if_each_position_goes_to_the_same_rank) {
        for (enum dlp_dealing dealing = DLP_DEALING_STRIDED; dealing <= DLP_DEALING_BATCH; dealing++)
                for (uint32_t world = 2; world < 6; world++)
                        for (uint32_t batch_size = 1; batch_size < 6; batch_size++) {
                                const struct dlp_epoch_terms terms = {
                                        .n_positions = 200,
                                        .world = world,
                                        .batch_size = batch_size,
                                        .dealing = dealing,
                                        .partition = DLP_PARTITION_EXACT,
                                };

                                for (uint64_t b = 0; b < 70; b++) {
                                        unsigned owner_of_a[200] = { 0 }, owner_of_b[200] = { 0 };
                                        uint64_t a = 13;
                                        bool same = true;

                                        for (uint32_t rank = 0; rank < world; rank++) {
                                                struct dlp_epoch_plan of_a = dlp_epoch_plan_make(&terms, rank, a),
                                                                      of_b = dlp_epoch_plan_make(&terms, rank, b);

                                                for (uint64_t k = 0; k < of_a.n_samples; k++)
                                                        owner_of_a[dlp_epoch_plan_position(&of_a, k)] = rank;
                                                for (uint64_t k = 0; k < of_b.n_samples; k++)
                                                        owner_of_b[dlp_epoch_plan_position(&of_b, k)] = rank;
                                        }
                                        for (uint64_t i = a > b ? a : b; i < 200; i++)
                                                same &= owner_of_a[i] == owner_of_b[i];
                                        ck_assert(same == dlp_epoch_is_dealt_alike(&terms, a, b));
                                }
                        }
}
END_TEST

/* ---- limits and names ------------------------------------------------------------------------------------------ */

START_TEST(a_stream_deals_whole_batches_before_its_end_is_known) {
        struct dlp_epoch_terms terms = {
                .n_positions = DLP_UNKNOWN, .world = 4, .batch_size = 8, .dealing = DLP_DEALING_BATCH
        };
        struct dlp_epoch_plan plan = dlp_epoch_plan_make(&terms, 3, 100), known;

        ck_assert_uint_eq(plan.n_batches, DLP_UNKNOWN);
        ck_assert_uint_eq(dlp_epoch_plan_position(&plan, 0), 100 + 3 * 8);
        ck_assert_uint_eq(dlp_epoch_plan_position(&plan, 17), 100 + (2 * 4 + 3) * 8 + 1);
        ck_assert_uint_eq(dlp_epoch_plan_needs(&plan, 1), 100 + 2 * 4 * 8);
        terms.n_positions = dlp_epoch_plan_needs(&plan, 1); /* the least length that may turn out */
        known = dlp_epoch_plan_make(&terms, 3, 100);
        ck_assert_uint_eq(known.n_batches, 2);
        for (uint64_t k = 0; k < 16; k++)
                ck_assert_uint_eq(dlp_epoch_plan_position(&plan, k), dlp_epoch_plan_position(&known, k));
}
END_TEST

/* 2^40 - 1 positions are 16 rounds of 2^20 blocks of 2^16, less one position. */
START_TEST(the_largest_numbers_are_fine) {
        const uint64_t n_samples[] = {
                [DLP_PARTITION_PAD] = 1u << 20, [DLP_PARTITION_DROP] = 15u << 16, [DLP_PARTITION_EXACT] = (1u << 20) - 1
        };

        for (enum dlp_partition partition = DLP_PARTITION_PAD; partition <= DLP_PARTITION_EXACT; partition++) {
                const struct dlp_epoch_terms terms = { .n_positions = DLP_SAMPLES_MAX - 1,
                                                       .world = DLP_WORLD_MAX,
                                                       .batch_size = DLP_BATCH_MAX,
                                                       .dealing = DLP_DEALING_CHUNK,
                                                       .partition = partition };
                struct dlp_epoch_plan plan = dlp_epoch_plan_make(&terms, DLP_WORLD_MAX - 1, 0);

                ck_assert_uint_eq(plan.n_samples, n_samples[partition]);
                if (partition == DLP_PARTITION_PAD) /* the position after the last one */
                        ck_assert_uint_eq(dlp_epoch_plan_position(&plan, plan.n_samples - 1), 0);
                ck_assert_uint_eq(dlp_epoch_plan_make(&terms, DLP_WORLD_MAX, 0).n_samples, 0);
        }
        ck_assert_uint_eq(dlp_dealing_block(DLP_DEALING_BATCH, 0), 1);
}
END_TEST

START_TEST(dealings_have_names) {
        enum dlp_dealing dealing;
        char text[64] = "";

        for (int i = 0; i < 3; i++) {
                const char *name = dlp_dealing_name((enum dlp_dealing)i);

                ck_assert_int_eq(dlp_dealing_from_name(name, &dealing), 0);
                ck_assert_int_eq((int)dealing, i);
                strcat(strcat(text, i ? " " : ""), name);
        }
        ck_assert_str_eq(text, dlp_dealings);
        ck_assert_ptr_null(dlp_dealing_name((enum dlp_dealing)3));
        ck_assert_ptr_null(dlp_dealing_name((enum dlp_dealing) - 1));
        ck_assert_int_eq(dlp_dealing_from_name("Batch", &dealing), -EINVAL);
        ck_assert_int_eq(dlp_dealing_from_name("", &dealing), -EINVAL);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "dealing", each_rank_gets_what_dealing_by_hand_gives_it },
                { "resuming", over_any_stops_and_resumes_each_position_comes_as_often_as_the_partition_promises },
                { "resuming", a_resume_with_the_same_terms_changes_no_batch },
                { "together", with_pad_and_drop_all_ranks_always_have_the_same_batches },
                { "together", a_batch_repeats_a_position_only_where_the_terms_say_so },
                { "together", bases_are_alike_if_each_position_goes_to_the_same_rank },
                { "limits", a_stream_deals_whole_batches_before_its_end_is_known },
                { "limits", the_largest_numbers_are_fine },
                { "limits", dealings_have_names },
        };

        return suite_run("dealing", rows, sizeof(rows) / sizeof(rows[0]));
}
