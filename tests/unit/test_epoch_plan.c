/* Which positions each batch of each rank holds, where a resume begins, and what daemon and client make of it, is what
 * it always was: tests/vectors/epoch_plan.jsonl keeps digests over random plans. */

#include "client/lib/loader.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pipeline/stream.h"
#include "proto/limits.h"
#include "proto/order/tdperm.h"
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

static uint64_t rank_samples(const struct terms *terms, uint32_t rank) {
        return dlp_order_rank_samples(terms->n_samples - terms->base, terms->world, rank, terms->partition);
}

static uint64_t rank_batches(const struct terms *terms, uint32_t rank) {
        return dlp_order_rank_batches(rank_samples(terms, rank), terms->batch_size, terms->drop_last);
}

static uint32_t batch_samples(const struct terms *terms, uint32_t rank, uint64_t step) {
        uint64_t n_rest = rank_samples(terms, rank) - step * terms->batch_size;

        return n_rest < terms->batch_size ? (uint32_t)n_rest : terms->batch_size;
}

static uint64_t position_of(const struct terms *terms, uint32_t rank, uint64_t step, uint32_t i) {
        return (terms->base + dlp_order_position(step * terms->batch_size + i, terms->world, rank)) % terms->n_samples;
}

/* Where a run stands that never changed its terms, after `n_batches` of each rank since epoch 0 began. */
static void place_after(const struct terms *terms, uint64_t n_batches, uint64_t *ret_epoch, uint64_t *ret_position) {
        struct terms whole = *terms;
        uint64_t each;

        whole.base = 0;
        each = rank_batches(&whole, 0);
        if (each == 0)
                each = 1;
        *ret_epoch = n_batches / each;
        *ret_position = n_batches % each * terms->batch_size * terms->world;
}

/* ---- what the client says ------------------------------------------------------------------------------------ */

static void add_client(struct digest *digest, const struct terms *terms, uint32_t rank, const uint64_t *steps,
                       uint32_t n_steps) {
        struct dlc_loader *loader = aligned_alloc(_Alignof(struct dlc_loader), sizeof(*loader));

        ck_assert_ptr_nonnull(loader);
        memset(loader, 0, sizeof(*loader));
        loader->info.dataset_samples = loader->n_samples = terms->n_samples;
        loader->info.world_size = terms->world;
        loader->info.rank = rank;
        loader->info.batch_size = terms->batch_size;
        loader->step_samples = (uint64_t)terms->batch_size * terms->world;
        loader->partition = terms->partition;
        loader->options.drop_last = terms->drop_last;
        dli_cursor_set(loader, terms->epoch, terms->base);
        add(digest, loader->epoch);
        add(digest, loader->step);
        add(digest, loader->base);
        add(digest, loader->n_batches);
        add(digest, loader->most_steps);
        for (uint32_t i = 0; i < n_steps; i++)
                add(digest, dli_cursor_position(loader, steps[i]));
        free(loader);
}

/* ---- what the daemon says ------------------------------------------------------------------------------------ */

static void add_stream(struct digest *digest, const struct terms *terms, const struct job_terms *job_terms,
                       uint32_t rank, uint64_t step) {
        struct stream *stream = aligned_alloc(_Alignof(struct stream), sizeof(*stream));
        struct job *job = aligned_alloc(_Alignof(struct job), sizeof(*job));

        ck_assert(stream && job);
        memset(stream, 0, sizeof(*stream));
        memset(job, 0, sizeof(*job));
        job->terms = *job_terms;
        stream->job = job;
        stream->rank = rank;
        stream->n_samples = terms->n_samples;
        stream->end_epoch = terms->epoch + 2;
        stream_go_to(stream, &(struct cursor){ .epoch = terms->epoch, .position = terms->base, .step = step });
        add(digest, stream->epoch);
        add(digest, stream->step);
        add(digest, stream->base);
        add(digest, stream->epoch_samples);
        add(digest, stream->epoch_batches);
        add(digest, stream->is_ended);
        free(stream);
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
        begin = cursor_begin(&mine, terms->n_samples);
        add(digest, begin.epoch);
        add(digest, begin.position);
        ck_assert_int_eq(job_place(job, &first, &mine, &why), 0);
        add(digest, (uint64_t)job_place(job, &second, &(struct cursor){ terms->epoch, other, 0 }, &why));

        add(digest, (uint64_t)cursor_check(&mine, job_terms, rank, terms->n_samples, &why));
        bad = (struct cursor){ .position = terms->base, .step = rank_batches(terms, rank) };
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
        struct dlp_torch_random random;
        struct dlp_shuffle shuffle;
        struct dlp_tdperm tdperm;

        ck_assert(order && table);
        dlp_torch_seed(&random, dlp_order_seed(terms->seed, terms->epoch));
        dlp_shuffle_init(&shuffle, &random, table, n, DLP_TORCH_2_7);
        dlp_shuffle_advance(&shuffle, n);
        dlp_tdperm_init(&tdperm, terms->seed, terms->epoch, n);
        for (uint64_t i = 0; i < n; i++)
                order[i] = kind == DLP_ORDER_TORCH ? dlp_shuffle_element(table, n, i) : dlp_tdperm_at(&tdperm, i);
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
        uint32_t n = batch_samples(terms, rank, step);
        uint32_t places[4] = { 0, n - 1, (uint32_t)below(state, n), (uint32_t)below(state, n) };

        add(digest, n);
        for (uint32_t i = 0; i < 4; i++) {
                uint64_t position = position_of(terms, rank, step, places[i]);

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
        uint64_t n_batches = rank_batches(terms, rank), steps[STEPS_MAX + 3], epoch, position;
        uint32_t n_steps = choose_steps(state, n_batches, steps);

        add(digest, rank_samples(terms, rank));
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
        place_after(terms, below(state, 3 * n_batches + 5), &epoch, &position);
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

int main(void) {
        Suite *suite = suite_create("epoch plan");
        TCase *tcase = tcase_create("vectors");
        SRunner *runner;
        int n_failed;

        tcase_set_timeout(tcase, 60);
        tcase_add_test(tcase, what_a_batch_holds_and_where_a_resume_begins_is_what_it_always_was);
        suite_add_tcase(suite, tcase);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed == 0 ? 0 : 1;
}
