/* What holds up a job: counters are made up, and the cause that is in them must be named. */

#include <check.h>
#include <math.h>
#include <string.h>

#include "client/lib/diagnose/verdict.h"
#include "proto/order/philox.h"
#include "proto/wait_reason.h"
#include "tests/support/suite.h"

#define SECOND 1000000000ull
#define RANKS  4
#define STAGES 3

/* A moment of a job with up to RANKS ranks and STAGES stages. */
struct moment {
        Dlp__Job job;
        Dlp__Node node;
        Dlp__Rank ranks[RANKS], *rank_pointers[RANKS];
        Dlp__Waiting waitings[RANKS];
        Dlp__Stage stages[STAGES], *stage_pointers[STAGES];
        struct look look;
};

static char stage_names[STAGES][24] = { "decode", "color_jitter", "collate" };

static void begin(struct moment *m, uint32_t n_ranks) {
        memset(m, 0, sizeof(*m));
        dlp__job__init(&m->job);
        dlp__node__init(&m->node);
        m->job.batch_size = 32;
        m->job.now_ns = m->node.now_ns = 1000 * SECOND;
        m->node.n_workers = 2;
        m->node.cpus_milli = 2000;
        m->node.read_depth = 64;
        for (uint32_t i = 0; i < n_ranks; i++) {
                dlp__rank__init(&m->ranks[i]);
                dlp__waiting__init(&m->waitings[i]);
                m->ranks[i].rank = i;
                m->ranks[i].n_slots = 4;
                m->ranks[i].age_ns = 900 * SECOND;
                m->ranks[i].waiting = &m->waitings[i];
                m->rank_pointers[i] = &m->ranks[i];
        }
        for (uint32_t i = 0; i < STAGES; i++) {
                dlp__stage__init(&m->stages[i]);
                m->stages[i].name = stage_names[i];
                m->stage_pointers[i] = &m->stages[i];
        }
        m->job.ranks = m->rank_pointers;
        m->job.n_ranks = n_ranks;
        m->job.stages = m->stage_pointers;
        m->job.n_stages = STAGES;
        m->look = (struct look){ &m->job, &m->node };
}

static void copy(struct moment *to, const struct moment *from) {
        *to = *from;
        for (uint32_t i = 0; i < RANKS; i++) {
                to->ranks[i].waiting = &to->waitings[i];
                to->rank_pointers[i] = &to->ranks[i];
        }
        for (uint32_t i = 0; i < STAGES; i++)
                to->stage_pointers[i] = &to->stages[i];
        to->job.ranks = to->rank_pointers;
        to->job.stages = to->stage_pointers;
        to->look = (struct look){ &to->job, &to->node };
}

static void pass(struct moment *m, double seconds) {
        m->job.now_ns += (uint64_t)(seconds * 1e9);
        m->node.now_ns += (uint64_t)(seconds * 1e9);
        for (size_t i = 0; i < m->job.n_ranks; i++)
                m->ranks[i].age_ns += (uint64_t)(seconds * 1e9);
}

/* In `seconds` that pass() counts apart, a rank waits and takes batches. */
static void take(struct moment *m, uint32_t rank, double seconds, double wait_share, uint64_t n_batches) {
        m->waitings[rank].wait_ns += (uint64_t)(seconds * wait_share * 1e9);
        m->waitings[rank].busy_ns += (uint64_t)(seconds * (1 - wait_share) * 1e9);
        m->waitings[rank].n_batches += n_batches;
        m->ranks[rank].n_batches += n_batches;
        m->ranks[rank].n_samples += n_batches * m->job.batch_size;
        m->job.n_samples += n_batches * m->job.batch_size;
        m->node.n_samples += n_batches * m->job.batch_size;
}

/* Workers are busy with samples of the job, each stage for its part of that. */
static void work(struct moment *m, double seconds, double decode, double jitter) {
        double parts[STAGES] = { decode, jitter, 1 - decode - jitter };

        for (uint32_t i = 0; i < STAGES; i++)
                m->stages[i].taken_ns += (uint64_t)(seconds * parts[i] * 1e9);
        m->job.worker_ns += (uint64_t)(seconds * 1e9);
        m->node.worker_ns += (uint64_t)(seconds * 1e9);
        m->node.worker_cpu_ns += (uint64_t)(seconds * 1e9);
}

/* Samples are read for `seconds`, summed over them. */
static void read_bytes(struct moment *m, double seconds, uint64_t n) {
        m->job.read_ns += (uint64_t)(seconds * 1e9);
        m->node.read_ns += (uint64_t)(seconds * 1e9);
        m->job.n_reads += n;
        m->job.n_bytes_read += n * 1000;
        m->node.n_bytes_read += n * 1000;
}

static struct moment before, now;
static struct verdict v;

static void judge(void) {
        verdict_make(&before.look, &now.look, &v);
        ck_assert_msg(v.sentence[0] && v.advice[0], "says nothing");
}

/* Ten seconds of a job with one rank. */
static void ten_seconds(double wait_share, uint64_t n_batches, double worked, double jitter, double reading) {
        begin(&before, 1);
        copy(&now, &before);
        pass(&now, 10);
        take(&now, 0, 10, wait_share, n_batches);
        work(&now, worked, 0.9 - jitter, jitter);
        read_bytes(&now, reading, n_batches * 32);
        judge();
}

static void near(double value, double expected) {
        ck_assert_msg(fabs(value - expected) <= 0.01 * fabs(expected), "%g, expected %g", value, expected);
}

static void says(const char *text, const char *words) {
        ck_assert_msg(strstr(text, words) != NULL, "\"%s\" does not say \"%s\"", text, words);
}

START_TEST(a_trainer_that_does_not_wait_is_the_limit) {
        ten_seconds(0.02, 100, 5, 0.1, 0.5);
        ck_assert_str_eq(verdict_limit_name(v.limit), "trainer");
        ck_assert_str_eq(verdict_bound_name(v.bound), "not");
        near(v.wait_share, 0.02);
        near(v.rate, 320);
        near(v.demand, 320 / 0.98);
        near(v.predicted, 320 / 0.98);
        near(v.supply_workers, 320 * 4);
        near(v.worker_share, 0.25);
        says(v.sentence, "not input-bound");
        says(v.advice, "4 times as much");
}
END_TEST

START_TEST(the_thresholds_are_those_that_people_know) {
        ten_seconds(0.049, 100, 19, 0.1, 0.5);
        ck_assert_str_eq(verdict_bound_name(v.bound), "not");
        ten_seconds(0.051, 100, 19, 0.1, 0.5);
        ck_assert_str_eq(verdict_bound_name(v.bound), "moderately");
        ten_seconds(0.199, 100, 19, 0.1, 0.5);
        ck_assert_str_eq(verdict_bound_name(v.bound), "moderately");
        ten_seconds(0.201, 100, 19, 0.1, 0.5);
        ck_assert_str_eq(verdict_bound_name(v.bound), "highly");
}
END_TEST

START_TEST(busy_workers_are_named_and_more_of_them_advised) {
        ten_seconds(0.5, 100, 19.4, 0.1, 2);
        ck_assert_str_eq(verdict_limit_name(v.limit), "decoding");
        ck_assert_uint_eq(v.n_workers_advised, 2); /* as many as CPUs already */
        near(v.predicted, 640);                    /* with twice the CPUs, and no more than is wanted */
        says(v.sentence, "highly input-bound");
        says(v.sentence, "decode");
        says(v.advice, "more CPUs");
}
END_TEST

START_TEST(workers_are_advised_up_to_the_cpus_and_to_what_is_wanted) {
        begin(&before, 1);
        before.node.cpus_milli = 16000;
        copy(&now, &before);
        pass(&now, 10);
        take(&now, 0, 10, 0.75, 100);
        work(&now, 20, 0.8, 0.1);
        judge();
        ck_assert_str_eq(verdict_limit_name(v.limit), "decoding");
        ck_assert_uint_eq(v.n_workers_advised, 8); /* the trainer would take four times as much */
        near(v.predicted, 1280);
        says(v.advice, "dlctl workers 8");
        before.node.cpus_milli = now.node.cpus_milli = 3000;
        judge();
        ck_assert_uint_eq(v.n_workers_advised, 3);
        near(v.predicted, 480);
        says(v.advice, "dlctl workers 3");
}
END_TEST

/* Two ranks that wait in turn, a second each in ten, in different steps or in the same ones. */
static void two_in_turn(double longest_waits, uint64_t apart) {
        begin(&before, 2);
        copy(&now, &before);
        pass(&now, 10);
        for (uint32_t rank = 0; rank < 2; rank++)
                take(&now, rank, 10, 0.2, 100);
        now.job.step_wait_ns += (uint64_t)(longest_waits * 1e9);
        now.ranks[0].step = before.ranks[0].step = 500;
        now.ranks[1].step = before.ranks[1].step = 500 + apart;
        work(&now, 20, 0.9, 0);
        judge();
}

START_TEST(ranks_that_wait_for_each_other_lose_the_longest_wait_of_each_step) {
        two_in_turn(4, 1);
        near(v.wait_share, 0.4);
        near(v.demand, v.rate / 0.6);
        near(v.mean_wait_share, 0.2);
        two_in_turn(2, 1); /* both wait in the same steps */
        near(v.wait_share, 0.2);
        two_in_turn(4, 3); /* ranks that do not keep step lose their own waits only */
        near(v.wait_share, 0.2);
        two_in_turn(0, 0); /* a daemon that does not count it */
        near(v.wait_share, 0.2);
        two_in_turn(1e6, 0); /* nonsense */
        ck_assert(v.wait_share <= 1 && isfinite(v.demand));
}
END_TEST

START_TEST(a_heavy_step_is_named_and_what_it_costs) {
        ten_seconds(0.8, 100, 20, 0.6, 2);
        ck_assert_str_eq(verdict_limit_name(v.limit), "step");
        ck_assert_str_eq(v.stage, "color_jitter");
        near(v.stage_share, 0.6);
        near(v.predicted, 320 / 0.4);
        says(v.sentence, "color_jitter");
        says(v.advice, "800 samples/s instead of 320");
}
END_TEST

START_TEST(storage_is_named_where_samples_are_being_read) {
        ten_seconds(0.9, 100, 2, 0.1, 630); /* 63 of 64 samples under way are being read */
        ck_assert_str_eq(verdict_limit_name(v.limit), "reading");
        near(v.reading_share, 63.0 / 64);
        near(v.read_ms, 630.0 / 3200 * 1000);
        near(v.supply_storage, 320 * 64 / 63.0);
        near(v.predicted, 3200); /* in memory: the workers could do that, and so much is wanted */
        says(v.sentence, "for bytes");
        says(v.advice, "faster disk");
}
END_TEST

START_TEST(storage_with_a_short_ring_is_still_storage) {
        begin(&before, 1);
        before.job.batch_size = 4; /* 3 free slots of 4 samples: depth 12, not 64 */
        before.ranks[0].n_leased = 1;
        copy(&now, &before);
        pass(&now, 10);
        take(&now, 0, 10, 0.9, 100);
        work(&now, 1, 0.8, 0.1);
        read_bytes(&now, 115, 400);
        judge();
        ck_assert_str_eq(verdict_limit_name(v.limit), "reading");
}
END_TEST

START_TEST(uneven_batches_ask_for_more_slots) {
        ten_seconds(0.2, 100, 6, 0.1, 20);
        ck_assert_str_eq(verdict_limit_name(v.limit), "latency");
        near(v.predicted, 400);
        says(v.advice, "slots");
}
END_TEST

/* Of what the other job leaves to it, this one takes a third. */
START_TEST(no_slots_are_advised_beside_a_greedy_neighbour) {
        begin(&before, 1);
        copy(&now, &before);
        pass(&now, 10);
        take(&now, 0, 10, 0.9, 20);
        work(&now, 1, 0.9, 0);
        now.node.worker_ns += 17 * SECOND;
        now.node.worker_cpu_ns += 17 * SECOND;
        judge();
        ck_assert_int_eq(v.limit, VERDICT_DECODING);
        near(v.other_share, 0.85);
        ck_assert_msg(strstr(v.advice, "end other jobs") && !strstr(v.advice, "slots"), "%s", v.advice);
}
END_TEST

START_TEST(advice_is_for_the_kind_of_data) {
        static const char *const FIRST[] = { "decode", "tokens", "audio" }, *const HAS[] = { "smaller pictures",
                                                                                             "store tokens",
                                                                                             "more CPUs" };

        for (unsigned i = 0; i < 3; i++) {
                strcpy(stage_names[0], FIRST[i]);
                ten_seconds(0.5, 100, 19, 0, 1);
                ck_assert_int_eq(v.limit, VERDICT_DECODING);
                ck_assert_msg(strstr(v.advice, HAS[i]), "%s", v.advice);
                ck_assert_msg(!strstr(v.advice, "pictures") == (i != 0), "%s", v.advice);
        }
        strcpy(stage_names[0], "decode");
}
END_TEST

START_TEST(other_jobs_take_their_part) {
        begin(&before, 1);
        copy(&now, &before);
        pass(&now, 10);
        take(&now, 0, 10, 0.6, 100);
        work(&now, 10, 0.8, 0.1);
        now.node.worker_ns += 10 * SECOND; /* another job's */
        now.node.worker_cpu_ns += 10 * SECOND;
        judge();
        ck_assert_str_eq(verdict_limit_name(v.limit), "decoding");
        near(v.worker_share, 1);
        near(v.other_share, 0.5);
        says(v.advice, "other jobs");
        now.node.cpus_milli = 16000; /* with CPUs to spare, workers are what the jobs share */
        judge();
        near(v.worker_share, 1);
}
END_TEST

START_TEST(workers_without_cpus_are_still_decoding) {
        begin(&before, 1);
        copy(&now, &before);
        pass(&now, 10);
        take(&now, 0, 10, 0.6, 100);
        work(&now, 20, 0.8, 0.1);
        now.node.worker_cpu_ns -= 12 * SECOND;
        judge();
        ck_assert_str_eq(verdict_limit_name(v.limit), "decoding");
        near(v.cpu_share, 0.4);
        says(v.advice, "other programs");
}
END_TEST

START_TEST(samples_that_wait_for_idle_workers_wait_for_their_cpus) {
        begin(&before, 1);
        copy(&now, &before);
        pass(&now, 10);
        take(&now, 0, 10, 0.9, 100);
        work(&now, 6, 0.8, 0.1);
        read_bytes(&now, 30, 3200);
        now.job.queued_ns = now.node.queued_ns = 500 * SECOND;
        judge();
        ck_assert_str_eq(verdict_limit_name(v.limit), "decoding");
        near(v.queued_share, 50.0 / 64);
}
END_TEST

START_TEST(one_rank_that_waits_is_named) {
        begin(&before, RANKS);
        copy(&now, &before);
        pass(&now, 10);
        for (uint32_t i = 0; i < RANKS; i++)
                take(&now, i, 10, i == 2 ? 0.4 : 0.01, 100);
        work(&now, 19, 0.8, 0.1);
        judge();
        ck_assert_int_eq(v.rank, 2);
        near(v.wait_share, 0.4);
        near(v.mean_wait_share, 0.43 / 4);
        ck_assert_str_eq(verdict_limit_name(v.limit), "decoding"); /* that is why it waits */
        near(v.predicted, 1280 / 0.6);
        says(v.sentence, "rank 2 waits");
}
END_TEST

START_TEST(ranks_that_all_wait_are_not_named) {
        begin(&before, RANKS);
        copy(&now, &before);
        pass(&now, 10);
        for (uint32_t i = 0; i < RANKS; i++)
                take(&now, i, 10, i == 2 ? 0.4 : 0.3, 100);
        work(&now, 19, 0.8, 0.1);
        judge();
        ck_assert_int_eq(v.rank, -1);
}
END_TEST

START_TEST(one_rank_that_is_slow_itself_is_named_whatever_the_others_wait_for) {
        begin(&before, RANKS);
        copy(&now, &before);
        pass(&now, 10);
        for (uint32_t i = 0; i < RANKS; i++)
                take(&now, i, 10, i == 3 ? 0 : 0.9, i == 3 ? 20 : 100);
        work(&now, 19, 0.8, 0.1);
        judge();
        ck_assert_str_eq(verdict_limit_name(v.limit), "rank");
        ck_assert_int_eq(v.rank, 3);
        ck_assert_str_eq(verdict_bound_name(v.bound), "not");
        says(v.sentence, "rank 3");
}
END_TEST

START_TEST(states_come_first) {
        static char detail[] = "the disk\nis gone", failure[] = "too many damaged samples";
        Dlp__WaitReason reason = DLP__WAIT_REASON__INIT;
        Dlp__Progress progress = DLP__PROGRESS__INIT;

        ten_seconds(0.9, 100, 19, 0.1, 1);
        now.job.progress = &progress;
        judge();
        ck_assert_str_eq(verdict_limit_name(v.limit), "order");
        now.ranks[0].n_ready = 1; /* it is a later epoch's */
        judge();
        ck_assert_str_eq(verdict_limit_name(v.limit), "decoding");
        reason.reason = DLP_WAIT_OUTAGE;
        reason.detail = detail;
        now.job.wait_reason = &reason;
        judge();
        ck_assert_str_eq(verdict_limit_name(v.limit), "outage");
        says(v.sentence, "the disk?is gone");
        now.job.failure = failure;
        judge();
        ck_assert_str_eq(verdict_limit_name(v.limit), "ended");
        says(v.sentence, failure);
}
END_TEST

/* How an origin is that answers late. */
static Dlp__Origin *slow_origin(void) {
        static Dlp__Origin origin;
        static char url[] = "s3://bucket/cats", trouble[] = "HTTP 503";

        dlp__origin__init(&origin);
        origin.url = url;
        origin.trouble = trouble;
        origin.n_answers = 400;
        origin.first_byte_ns = 120000000;
        origin.first_byte_late_ns = 2100000000;
        origin.bytes_per_second = 12 << 20;
        origin.n_requests = 400;
        origin.n_retries = 3;
        origin.n_ahead = 40;
        origin.ahead_bytes = 40 << 20;
        origin.n_connections = 64;
        origin.n_files = 100;
        origin.total_bytes = 8ull << 30;
        origin.cached_bytes = 1ull << 30;
        origin.cache_limit = 100ull << 30;
        return &origin;
}

START_TEST(what_comes_from_elsewhere_is_the_origins_with_how_it_answers_and_what_helps) {
        Dlp__WaitReason reason = DLP__WAIT_REASON__INIT;
        Dlp__Origin *origin = slow_origin();
        char detail[] = "cats/7.jpg";

        ten_seconds(0.9, 100, 2, 0.1, 630);
        ck_assert_str_eq(verdict_limit_name(v.limit), "reading");
        now.job.from = origin;
        judge();
        ck_assert_str_eq(verdict_limit_name(v.limit), "reading"); /* most of it was here: the disk is slow */
        now.job.fetch_ns = before.job.fetch_ns + 400 * SECOND;
        judge();
        ck_assert_str_eq(verdict_limit_name(v.limit), "origin");
        says(v.sentence,
             "for the origin s3://bucket/cats: first byte after 120 ms (median; 99.9 % within 2.1 s), 12.0 MiB/s");
        says(v.sentence, "40 requests (40.0 MiB) not answered yet, 3 of 400 requests were retries");
        says(v.sentence, "HTTP 503. 1.0 GiB of 8.0 GiB are in the cache");
        says(v.advice, "order=\"blocks\"");
        ck_assert_ptr_null(strstr(v.advice, "cache_limit"));
        ck_assert_ptr_null(strstr(v.advice, "connections"));
        origin->cache_limit = 2ull << 30;
        origin->n_ahead = 64;
        judge();
        says(v.advice, "raise cache_limit (now 2.0 GiB) to 8.0 GiB");
        says(v.advice, "all 64 connections are in use: try connections = 128");
        origin->n_files = 100000;
        origin->n_paused = 2;
        judge();
        says(v.sentence, "left alone 2 times because it asked for that (429, 503)");
        says(v.advice, "a mirror");
        says(v.advice, "in shards (tar, Parquet, MDS) instead of 100000 files of 83.9 KiB");
        ck_assert_ptr_null(strstr(v.advice, "connections"));
        now.job.fetch_ns = before.job.fetch_ns;
        reason.reason = DLP_WAIT_ORIGIN;
        reason.detail = detail;
        now.job.wait_reason = &reason;
        judge();
        ck_assert_str_eq(verdict_limit_name(v.limit), "origin");
        says(v.sentence, "on hold: the trainer waits for the origin s3://bucket/cats");
}
END_TEST

START_TEST(too_short_a_history_says_so) {
        ten_seconds(0, 4, 1, 0.1, 0.1);
        ck_assert_str_eq(verdict_limit_name(v.limit), "nothing yet");
        says(v.sentence, "4 batches were taken in 10 s");
        says(v.advice, "--seconds");
        begin(&now, 0);
        verdict_make(NULL, &now.look, &v);
        ck_assert_str_eq(verdict_limit_name(v.limit), "nothing yet");
        says(v.sentence, "no rank");
        /* Few batches, and a trainer that waits for each: that tells enough. */
        ten_seconds(0.95, 2, 0.1, 0.1, 600);
        ck_assert_str_eq(verdict_limit_name(v.limit), "reading");
}
END_TEST

START_TEST(a_wait_for_the_first_batch_counts_while_it_lasts) {
        begin(&before, 1);
        before.waitings[0].waiting_ns = before.waitings[0].first_wait_ns = 2 * SECOND;
        before.ranks[0].age_ns = 3 * SECOND;
        copy(&now, &before);
        pass(&now, 10);
        now.waitings[0].waiting_ns = now.waitings[0].first_wait_ns = 12 * SECOND;
        judge();
        ck_assert_str_eq(verdict_bound_name(v.bound), "highly");
        near(v.wait_share, 1);
        ck_assert(strstr(v.sentence, "0 batches were taken") || strstr(v.sentence, "100 %"));
        /* One look, some time after the rank has attached. */
        verdict_make(NULL, &now.look, &v);
        near(v.wait_share, 1);
        /* It is over: what began the loader is not what holds up the training. */
        now.waitings[0].waiting_ns = 0;
        take(&now, 0, 5, 0.01, 100);
        judge();
        ck_assert_str_eq(verdict_bound_name(v.bound), "not");
}
END_TEST

START_TEST(one_look_judges_since_the_ranks_attached) {
        begin(&now, 1);
        now.ranks[0].age_ns = 100 * SECOND;
        take(&now, 0, 99, 0.5, 1000);
        work(&now, 195, 0.8, 0.1);
        verdict_make(NULL, &now.look, &v);
        ck_assert(v.is_since_attach);
        ck_assert_str_eq(verdict_limit_name(v.limit), "decoding");
        near(v.seconds, 100);
        now.look.node = NULL; /* a daemon that does not say what it has */
        verdict_make(NULL, &now.look, &v);
        ck_assert(v.sentence[0] != '\0');
}
END_TEST

START_TEST(a_rank_that_attached_again_and_a_daemon_that_began_again_are_judged_since_then) {
        begin(&before, 1);
        take(&before, 0, 500, 0.9, 50000);
        work(&before, 500, 0.8, 0.1);
        begin(&now, 1);
        now.job.now_ns += 10 * SECOND;
        now.node.now_ns += 10 * SECOND;
        now.ranks[0].age_ns = 9 * SECOND;
        take(&now, 0, 9, 0.01, 100);
        work(&now, 2, 0.8, 0.1);
        judge();
        ck_assert_str_eq(verdict_limit_name(v.limit), "trainer");
        near(v.wait_share, 0.01);
        ck_assert_uint_eq(v.n_batches, 100);
        near(v.worker_share, 0.1);
        near(v.supply_workers, 3200);
}
END_TEST

static void is_share(double share) {
        ck_assert_msg(share >= 0 && share <= 1, "%g is not a share", share);
}

START_TEST(tokens_are_those_of_the_samples_that_were_taken) {
        begin(&before, 1);
        take(&before, 0, 10, 0.01, 100);
        before.job.n_tokens = 77;
        copy(&now, &before);
        pass(&now, 10);
        take(&now, 0, 10, 0.01, 200);
        now.job.n_tokens += 200 * now.job.batch_size * 512ull;
        verdict_make(&before.look, &now.look, &v);
        ck_assert_double_eq_tol(v.tokens, v.rate * 512, 1e-6);
        ck_assert_double_gt(v.tokens, 0);
        now.job.n_tokens = 0; /* the daemon was restarted */
        verdict_make(&before.look, &now.look, &v);
        ck_assert_double_eq(v.tokens, 0);
}
END_TEST

/* Whatever the numbers are, what comes out can be shown. */
START_TEST(nonsense_makes_no_nonsense) {
        static const uint64_t SOME[] = { 0, 1, 7, SECOND, 1000 * SECOND, UINT64_MAX / 2, UINT64_MAX };
        struct dlp_philox chance;
        uint64_t *words[256];
        size_t n = 0;

        dlp_philox_init(&chance, 5, 0, 0, 0);
        begin(&before, RANKS);
        begin(&now, RANKS);
        for (struct moment *m = &before;; m = &now) {
                uint64_t *more[] = { &m->job.now_ns,         &m->job.worker_ns,      &m->job.n_samples,
                                     &m->job.n_reads,        &m->job.n_bytes_read,   &m->job.read_ns,
                                     &m->job.queued_ns,      &m->node.now_ns,        &m->node.cpus_milli,
                                     &m->node.worker_ns,     &m->node.worker_cpu_ns, &m->node.n_bytes_read,
                                     &m->node.read_ns,       &m->node.queued_ns,     &m->node.storage_bytes,
                                     &m->stages[0].taken_ns, &m->stages[1].taken_ns, &m->job.n_tokens };

                for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
                        words[n++] = more[i];
                for (size_t i = 0; i < RANKS; i++) {
                        words[n++] = &m->ranks[i].age_ns;
                        words[n++] = &m->ranks[i].n_samples;
                        words[n++] = &m->waitings[i].n_batches;
                        words[n++] = &m->waitings[i].wait_ns;
                        words[n++] = &m->waitings[i].busy_ns;
                }
                if (m == &now)
                        break;
        }
        for (int round = 0; round < 20000; round++) {
                for (size_t i = 0; i < n; i++)
                        *words[i] = SOME[dlp_philox_below(&chance, sizeof(SOME) / sizeof(SOME[0]))];
                now.node.n_workers = (uint32_t)SOME[dlp_philox_below(&chance, 7)];
                now.node.read_depth = (uint32_t)SOME[dlp_philox_below(&chance, 7)];
                now.job.batch_size = (uint32_t)SOME[dlp_philox_below(&chance, 7)];
                now.ranks[1].n_slots = (uint32_t)SOME[dlp_philox_below(&chance, 7)];
                now.ranks[1].n_leased = (uint32_t)SOME[dlp_philox_below(&chance, 7)];
                now.node.has_storage_bytes = before.node.has_storage_bytes = round % 2;
                verdict_make(round % 3 ? &before.look : NULL, &now.look, &v);
                is_share(v.wait_share);
                is_share(v.mean_wait_share);
                is_share(v.worker_share);
                is_share(v.cpu_share);
                is_share(v.reading_share);
                is_share(v.other_share);
                is_share(v.stage_share);
                ck_assert(v.storage_share == -1 || (v.storage_share >= 0 && v.storage_share <= 1));
                ck_assert(isfinite(v.rate) && isfinite(v.demand) && isfinite(v.predicted) && isfinite(v.seconds) &&
                          isfinite(v.supply_workers) && isfinite(v.supply_storage) && isfinite(v.read_ms) &&
                          isfinite(v.tokens));
                ck_assert(v.rate >= 0 && v.predicted >= 0);
                ck_assert(!strstr(v.sentence, "nan") && !strstr(v.sentence, "inf ") && v.sentence[0] && v.advice[0]);
        }
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "limits", a_trainer_that_does_not_wait_is_the_limit },
                { "limits", the_thresholds_are_those_that_people_know },
                { "limits", busy_workers_are_named_and_more_of_them_advised },
                { "limits", workers_are_advised_up_to_the_cpus_and_to_what_is_wanted },
                { "limits", a_heavy_step_is_named_and_what_it_costs },
                { "ranks", ranks_that_wait_for_each_other_lose_the_longest_wait_of_each_step },
                { "limits", storage_is_named_where_samples_are_being_read },
                { "limits", storage_with_a_short_ring_is_still_storage },
                { "limits", what_comes_from_elsewhere_is_the_origins_with_how_it_answers_and_what_helps },
                { "limits", uneven_batches_ask_for_more_slots },
                { "limits", other_jobs_take_their_part },
                { "limits", no_slots_are_advised_beside_a_greedy_neighbour },
                { "limits", advice_is_for_the_kind_of_data },
                { "limits", workers_without_cpus_are_still_decoding },
                { "limits", tokens_are_those_of_the_samples_that_were_taken },
                { "limits", samples_that_wait_for_idle_workers_wait_for_their_cpus },
                { "ranks", one_rank_that_waits_is_named },
                { "ranks", ranks_that_all_wait_are_not_named },
                { "ranks", one_rank_that_is_slow_itself_is_named_whatever_the_others_wait_for },
                { "states", states_come_first },
                { "states", too_short_a_history_says_so },
                { "states", a_wait_for_the_first_batch_counts_while_it_lasts },
                { "states", one_look_judges_since_the_ranks_attached },
                { "states", a_rank_that_attached_again_and_a_daemon_that_began_again_are_judged_since_then },
                { "claims", nonsense_makes_no_nonsense },
        };

        return suite_run("verdict", rows, sizeof(rows) / sizeof(rows[0]));
}
