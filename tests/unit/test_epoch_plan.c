/* Which positions each batch of each rank holds, where a resume begins, and what daemon and client make of it.
 *
 * tests/vectors/epoch_plan.jsonl keeps digests over random plans of what planner, client, dlctl and Python answered
 * when each of them still had an arithmetic of its own. */

#include "client/lib/loader.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pipeline/feed.h"
#include "proto/limits.h"
#include "proto/order/epoch_plan.h"
#include "proto/order/sampler.h"
#include "tests/support/suite.h"
#include "tests/support/vectors.h"

#define PLANS_A_LINE 64u
#define SHUFFLED_MAX 3000u /* samples of a dataset whose orders are looked at as well */
#define STEPS_MAX    12u   /* batches of a rank that are looked at */

/* ---- random plans -------------------------------------------------------------------------------------------- */

struct terms {
        uint64_t n_samples, base, seed, epoch;
        uint32_t world, batch_size;
        enum dlp_partition partition;
        bool drop_last;
};

/* splitmix64: a few lines that give the same numbers for ever. */
static uint64_t draw(uint64_t *state) {
        uint64_t z = *state += 0x9e3779b97f4a7c15ull;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ z >> 27) * 0x94d049bb133111ebull;
        return z ^ z >> 31;
}

static uint64_t below(uint64_t *state, uint64_t n) {
        return n ? draw(state) % n : 0;
}

static struct terms draw_terms(uint64_t *state) {
        static const uint64_t SAMPLES[] = { 3, 60, 60, 500, 3000, 100000, 1ull << 33, DLP_SAMPLES_MAX };
        static const uint32_t WORLDS[] = { 1, 4, 9, 9, 70, 1024, DLP_WORLD_MAX };
        static const uint32_t BATCHES[] = { 1, 4, 9, 9, 64, 300, 65536 };
        struct terms terms;

        terms.n_samples = below(state, SAMPLES[below(state, 8)] + 1);
        terms.world = 1 + (uint32_t)below(state, WORLDS[below(state, 7)]);
        terms.batch_size = 1 + (uint32_t)below(state, BATCHES[below(state, 7)]);
        terms.partition = (enum dlp_partition)below(state, 3);
        terms.drop_last = below(state, 2);
        terms.seed = draw(state);
        terms.epoch = below(state, DLP_EPOCH_MAX);
        switch (below(state, 4)) {
        case 0:
                terms.base = below(state, terms.n_samples + 1);
                break;
        case 1: /* of a run with these terms */
                terms.base = below(state, 20) * terms.world * terms.batch_size;
                if (terms.base > terms.n_samples)
                        terms.base = terms.n_samples;
                break;
        default:
                terms.base = 0;
        }
        return terms;
}

/* ---- the digest ---------------------------------------------------------------------------------------------- */

struct digest {
        uint64_t fnv;
};

static void add(struct digest *digest, uint64_t value) {
        for (int i = 0; i < 8; i++)
                digest->fnv = (digest->fnv ^ (value >> 8 * i & 0xff)) * 0x100000001b3ull;
}

/* ---- what the plan says -------------------------------------------------------------------------------------- */

static struct dlp_epoch_plan plan_of(const struct terms *terms, uint32_t rank) {
        const struct dlp_epoch_terms epoch = { .n_positions = terms->n_samples,
                                               .world = terms->world,
                                               .batch_size = terms->batch_size,
                                               .partition = terms->partition,
                                               .drop_last = terms->drop_last };

        return dlp_epoch_plan_make(&epoch, rank, terms->base);
}

/* ---- what the client says ------------------------------------------------------------------------------------ */

static void add_client(struct digest *digest, const struct terms *terms, uint32_t rank, const uint64_t *steps,
                       uint32_t n_steps) {
        struct dlc_loader *loader = aligned_alloc(_Alignof(struct dlc_loader), sizeof(*loader));

        ck_assert_ptr_nonnull(loader);
        memset(loader, 0, sizeof(*loader));
        loader->info.dataset_samples = terms->n_samples;
        loader->info.rank = rank;
        loader->options.world_size = (int)terms->world;
        loader->options.batch_size = (int)terms->batch_size;
        loader->options.partition = dlp_partition_name(terms->partition);
        loader->options.dealing = "strided";
        loader->options.order = "torch";
        loader->options.drop_last = terms->drop_last;
        dli_cursor_set(loader, terms->epoch, terms->base);
        add(digest, loader->epoch);
        add(digest, loader->step);
        add(digest, loader->plan.base);
        add(digest, loader->plan.n_batches);
        add(digest, loader->plan.n_steps);
        for (uint32_t i = 0; i < n_steps; i++)
                add(digest, dlp_epoch_plan_position_after(&loader->plan, steps[i]));
        free(loader);
}

/* ---- what the daemon says ------------------------------------------------------------------------------------ */

static void add_stream(struct digest *digest, const struct terms *terms, const struct job_terms *job_terms,
                       uint32_t rank, uint64_t step) {
        struct feed *feed = aligned_alloc(_Alignof(struct feed), sizeof(*feed));
        struct job *job = aligned_alloc(_Alignof(struct job), sizeof(*job));

        ck_assert(feed && job);
        memset(feed, 0, sizeof(*feed));
        memset(job, 0, sizeof(*job));
        job->terms = *job_terms;
        feed->job = job;
        feed->rank = rank;
        feed->n_samples = feed->length = terms->n_samples;
        feed->end_epoch = terms->epoch + 2;
        feed_go_to(feed, &(struct cursor){ .epoch = terms->epoch, .position = terms->base, .step = step });
        add(digest, feed->epoch);
        add(digest, feed->step);
        add(digest, feed->plan.base);
        add(digest, feed->plan.n_samples);
        add(digest, feed->plan.n_batches);
        add(digest, feed->is_ended);
        free(feed);
        free(job);
}

static void add_places(struct digest *digest, const struct terms *terms, const struct job_terms *job_terms,
                       uint32_t rank, uint64_t other) {
        struct cursor mine = { .epoch = terms->epoch, .position = terms->base }, begin, bad;
        struct job *job = aligned_alloc(_Alignof(struct job), sizeof(*job));
        struct job_member first = { .rank = 0, .process = PROCESS_NONE },
                          second = { .rank = 1, .process = PROCESS_NONE };
        struct why why;

        ck_assert_ptr_nonnull(job);
        memset(job, 0, sizeof(*job));
        job->terms = *job_terms;
        LIST_INSERT_HEAD(&job->members, &first, entry);
        LIST_INSERT_HEAD(&job->members, &second, entry);
        begin = cursor_begin(&mine, job_terms, terms->n_samples);
        add(digest, begin.epoch);
        add(digest, begin.position);
        ck_assert_int_eq(job_place(job, &first, &mine, &why), 0);
        add(digest, (uint64_t)job_place(job, &second, &(struct cursor){ terms->epoch, other, 0 }, &why));

        add(digest, (uint64_t)cursor_check(&mine, job_terms, rank, terms->n_samples, &why));
        bad = (struct cursor){ .position = terms->base, .step = plan_of(terms, rank).n_batches };
        add(digest, (uint64_t)cursor_check(&bad, job_terms, rank, terms->n_samples, &why));
        bad.step++;
        add(digest, (uint64_t)cursor_check(&bad, job_terms, rank, terms->n_samples, &why));
        bad = (struct cursor){ .position = terms->n_samples + 1 };
        add(digest, (uint64_t)cursor_check(&bad, job_terms, rank, terms->n_samples, &why));
        free(job);
}

/* ---- all of it ----------------------------------------------------------------------------------------------- */

/* The order of the terms' epoch, as a table. */
static uint64_t *order_of(const struct terms *terms, enum dlp_order_kind kind) {
        uint64_t n = terms->n_samples, *order = malloc((n + 1) * sizeof(*order));
        void *table = calloc(n + 1, dlp_shuffle_element_bytes(n));
        struct dlp_sampler sampler;

        ck_assert(order && table);
        dlp_sampler_init(
                &sampler,
                &(struct dlp_sampler_terms){
                        .n_samples = n, .seed = terms->seed, .epoch = terms->epoch, .shuffle = true, .kind = kind },
                kind == DLP_ORDER_TORCH ? table : NULL);
        dlp_sampler_advance(&sampler, n);
        for (uint64_t i = 0; i < n; i++)
                order[i] = dlp_sampler_at(&sampler, i);
        free(table);
        return order;
}

/* All batches of a few, else the first and last ones and some between. */
static uint32_t choose_steps(uint64_t *state, uint64_t n_batches, uint64_t *ret_steps) {
        uint32_t n = 0;

        if (n_batches <= STEPS_MAX) {
                for (; n < n_batches; n++)
                        ret_steps[n] = n;
                return n;
        }
        for (; n < STEPS_MAX; n++)
                ret_steps[n] = n < 3 ? n : n < 6 ? n_batches - n + 2 : below(state, n_batches);
        return n;
}

static void add_batch(struct digest *digest, uint64_t *state, const struct terms *terms, uint32_t rank, uint64_t step,
                      uint64_t *const orders[2]) {
        struct dlp_epoch_plan plan = plan_of(terms, rank);
        struct dlp_plan_batch batch = dlp_epoch_plan_batch(&plan, step);
        uint32_t n = batch.n_samples;
        uint32_t places[4] = { 0, n - 1, (uint32_t)below(state, n), (uint32_t)below(state, n) };

        add(digest, n);
        for (uint32_t i = 0; i < 4; i++) {
                uint64_t position = dlp_epoch_plan_position(&plan, batch.first + places[i]);

                add(digest, position);
                for (int kind = 0; kind < 2 && orders[kind]; kind++)
                        add(digest, orders[kind][position]);
        }
}

static void add_rank(struct digest *digest, uint64_t *state, const struct terms *terms, uint32_t rank,
                     uint64_t *const orders[2]) {
        const struct job_terms job_terms = { .world = terms->world,
                                             .batch_size = terms->batch_size,
                                             .n_samples = terms->n_samples,
                                             .partition = terms->partition,
                                             .drop_last = terms->drop_last };
        struct dlp_epoch_plan plan = plan_of(terms, rank);
        uint64_t n_batches = plan.n_batches, steps[STEPS_MAX + 3], epoch, position;
        uint32_t n_steps = choose_steps(state, n_batches, steps);

        add(digest, plan.n_samples);
        add(digest, n_batches);
        for (uint32_t i = 0; i < n_steps; i++)
                add_batch(digest, state, terms, rank, steps[i], orders);
        steps[n_steps++] = n_batches;
        steps[n_steps++] = n_batches + 1;
        steps[n_steps++] = 0;
        add_client(digest, terms, rank, steps, n_steps);
        add_stream(digest, terms, &job_terms, rank, below(state, n_batches + 1));
        add_stream(digest, terms, &job_terms, rank, n_batches);
        add_places(digest, terms, &job_terms, rank,
                   below(state, 2) ? terms->base % terms->world : below(state, terms->n_samples + 1));
        dlp_epoch_advance(&plan.terms, 0, 0, below(state, 3 * n_batches + 5), &epoch, &position);
        add(digest, epoch);
        add(digest, position);
}

static void add_plan(struct digest *digest, uint64_t *state, const struct terms *terms) {
        uint64_t *orders[2] = { NULL, NULL };
        uint32_t n_ranks = terms->world <= 8 ? terms->world : 6;

        for (int kind = 0; terms->n_samples <= SHUFFLED_MAX && kind < 2; kind++)
                orders[kind] = order_of(terms, kind ? DLP_ORDER_TDPERM : DLP_ORDER_TORCH);
        for (uint32_t i = 0; i < n_ranks; i++) {
                uint32_t rank = terms->world <= 8 || i == 0 ? i
                                : i == 1                    ? terms->world - 1
                                                            : (uint32_t)below(state, terms->world);

                add_rank(digest, state, terms, rank, orders);
        }
        free(orders[0]);
        free(orders[1]);
}

START_TEST(what_a_batch_holds_and_where_a_resume_begins_is_what_it_always_was) {
        struct vectors vectors;
        unsigned n_lines = 0;

        vectors_open(&vectors, "epoch_plan.jsonl");
        for (; vectors_next(&vectors); n_lines++) {
                uint64_t state = vector_u64(vectors.text, "seed");
                struct digest digest = { 0xcbf29ce484222325ull };

                for (uint32_t i = 0; i < PLANS_A_LINE; i++) {
                        struct terms terms = draw_terms(&state);

                        add_plan(&digest, &state, &terms);
                }
                if (digest.fnv != vector_hex(vector_string(vectors.line, "fnv")))
                        ck_abort_msg("line %u: the %u plans of seed %ju have the digest %016jx", n_lines + 1,
                                     PLANS_A_LINE, (uintmax_t)vector_u64(vectors.text, "seed"), (uintmax_t)digest.fnv);
        }
        ck_assert_uint_eq(n_lines, 64);
}
END_TEST

/* ---- what it promises ---------------------------------------------------------------------------------------- */

/* Whatever batch size and world a run changes to at a resume, each position of the epoch comes once. */
START_TEST(a_resume_deals_out_what_is_left_at_any_world_and_batch_size) {
        uint64_t state = 7;

        for (int round = 0; round < (int)suite_rounds(2000); round++) {
                struct dlp_epoch_terms terms = { .n_positions = below(&state, 200), .partition = DLP_PARTITION_EXACT };
                uint8_t seen[200] = { 0 };
                uint64_t position = 0;

                while (!dlp_epoch_is_end(&terms, position)) {
                        uint64_t n_steps = 1 + below(&state, 3);
                        struct dlp_epoch_plan plan = { 0 };

                        terms.world = 1 + (uint32_t)below(&state, 5);
                        terms.batch_size = 1 + (uint32_t)below(&state, 5);
                        for (uint32_t rank = 0; rank < terms.world; rank++) {
                                plan = dlp_epoch_plan_make(&terms, rank, position);
                                for (uint64_t step = 0; step < n_steps && !dlp_epoch_plan_is_over(&plan, step);
                                     step++) {
                                        struct dlp_plan_batch batch = dlp_epoch_plan_batch(&plan, step);

                                        ck_assert(batch.n_samples > 0);
                                        for (uint32_t i = 0; i < batch.n_samples; i++)
                                                seen[dlp_epoch_plan_position(&plan, batch.first + i)]++;
                                }
                        }
                        ck_assert(dlp_epoch_plan_position_after(&plan, n_steps) > position);
                        position = dlp_epoch_plan_position_after(&plan, n_steps);
                }
                for (uint64_t i = 0; i < terms.n_positions; i++)
                        ck_assert(seen[i] == 1);
        }
}
END_TEST

/* Step by step, or all at once, from any place: the same place. */
START_TEST(a_run_that_goes_on_by_steps_stands_where_it_would_in_one_go) {
        uint64_t state = 11;

        for (int round = 0; round < (int)suite_rounds(2000); round++) {
                struct dlp_epoch_terms terms = { .n_positions = below(&state, 100),
                                                 .world = 1 + (uint32_t)below(&state, 5),
                                                 .batch_size = 1 + (uint32_t)below(&state, 9),
                                                 .partition = (enum dlp_partition)below(&state, 3),
                                                 .drop_last = below(&state, 2) };
                uint64_t n_steps = below(&state, 40), epoch = 3, position = below(&state, terms.n_positions + 1);
                uint64_t epoch_at_once, position_at_once;

                dlp_epoch_advance(&terms, epoch, position, n_steps, &epoch_at_once, &position_at_once);
                for (uint64_t i = 0; i < n_steps; i++)
                        dlp_epoch_advance(&terms, epoch, position, 1, &epoch, &position);
                dlp_epoch_advance(&terms, epoch, position, 0, &epoch, &position);
                ck_assert(epoch == epoch_at_once && position == position_at_once);
                ck_assert(terms.n_positions == 0 || !dlp_epoch_is_end(&terms, position));
        }
}
END_TEST

START_TEST(an_epoch_of_unknown_length_has_batches_without_end) {
        const struct dlp_epoch_terms terms = { .n_positions = DLP_UNKNOWN, .world = 4, .batch_size = 8 };
        struct dlp_epoch_plan plan = dlp_epoch_plan_make(&terms, 3, 100);

        ck_assert_uint_eq(plan.n_samples, DLP_UNKNOWN);
        ck_assert_uint_eq(plan.n_batches, DLP_UNKNOWN);
        ck_assert(!dlp_epoch_plan_is_over(&plan, 1ull << 40));
        ck_assert_uint_eq(dlp_epoch_plan_batch(&plan, 1000).n_samples, 8);
        ck_assert_uint_eq(dlp_epoch_plan_position(&plan, 10), 100 + 10 * 4 + 3);
        ck_assert_uint_eq(dlp_epoch_plan_position_after(&plan, 1000), 100 + 1000 * 8 * 4);
        ck_assert(!dlp_epoch_is_end(&terms, 1ull << 60));
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "vectors", what_a_batch_holds_and_where_a_resume_begins_is_what_it_always_was },
                { "promises", a_resume_deals_out_what_is_left_at_any_world_and_batch_size },
                { "promises", a_run_that_goes_on_by_steps_stands_where_it_would_in_one_go },
                { "promises", an_epoch_of_unknown_length_has_batches_without_end },
        };

        return suite_run("epoch_plan", rows, sizeof(rows) / sizeof(rows[0]));
}
