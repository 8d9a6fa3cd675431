/* What an order fetches through a cache: small cases whose numbers can be counted by hand, and what is known of the
 * rest. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "client/dlctl/forecast/forecast.h"
#include "proto/fetching.h"
#include "tests/support/suite.h"

#define SAMPLES_MAX 4096u

struct world {
        struct forecast_places places;
        struct forecast_terms terms;
        uint64_t starts[SAMPLES_MAX + 1];
        struct forecast_part parts[SAMPLES_MAX];
        uint32_t chunk_bytes[SAMPLES_MAX];
        uint32_t order[SAMPLES_MAX];
        uint64_t n_read;
};

static struct world w;

static uint64_t next(void *userdata, uint32_t *ret_job) {
        (void)userdata;
        *ret_job = 0;
        return w.order[w.n_read++];
}

/* Samples of n_bytes, `each` of them in a chunk, read in their own sequence; a cache for all, no rate. */
static void lay_out(uint32_t n_samples, uint32_t n_bytes, uint32_t each) {
        w = (struct world){ .terms = { .n_connections = 4, .n_jobs = 1, .horizon = 64, .horizon_s = 1e9 } };
        for (uint32_t i = 0; i < n_samples; i++) {
                w.starts[i + 1] = i + 1;
                w.parts[i] = (struct forecast_part){ .chunk = i / each, .n_chunks = 1, .n_bytes = n_bytes };
                w.chunk_bytes[i / each] += n_bytes;
                w.order[i] = i;
        }
        w.places = (struct forecast_places){ .n_samples = n_samples,
                                             .starts = w.starts,
                                             .parts = w.parts,
                                             .n_chunks = (n_samples + each - 1) / each,
                                             .chunk_bytes = w.chunk_bytes,
                                             .n_bytes = (uint64_t)n_samples * n_bytes };
        w.terms.cache_bytes = w.places.n_bytes;
}

/* Every sample once, far from the one before. */
static void mix(void) {
        for (uint32_t i = 0; i < w.places.n_samples; i++)
                w.order[i] = (uint32_t)((uint64_t)i * 1597 % w.places.n_samples);
}

static void run(struct forecast_epoch *epochs, uint32_t n_epochs) {
        struct forecast_reads reads = { .n = w.places.n_samples, .n_first = 8, .next = next };
        struct forecast *forecast;

        ck_assert_int_eq(forecast_new(&w.places, &w.terms, &forecast), 0);
        for (uint32_t i = 0; i < n_epochs; i++) {
                w.n_read = 0;
                forecast_epoch(forecast, &reads, &epochs[i]);
                ck_assert_uint_eq(w.n_read, reads.n);
                ck_assert_uint_eq(epochs[i].n_reads, reads.n);
                ck_assert_double_ge(epochs[i].seconds, epochs[i].first_batch_seconds);
        }
        forecast_free(forecast);
}

START_TEST(with_room_for_all_each_chunk_is_asked_for_once_and_never_again) {
        struct forecast_epoch epochs[3];

        lay_out(1000, 1 << 20, 8);
        run(epochs, 3);
        ck_assert_uint_eq(epochs[0].n_requests, 125);
        ck_assert_uint_eq(epochs[0].n_bytes, w.places.n_bytes);
        ck_assert_uint_eq(epochs[0].n_hits, 875);
        for (int i = 1; i < 3; i++) {
                ck_assert_uint_eq(epochs[i].n_requests + epochs[i].n_bytes, 0);
                ck_assert_uint_eq(epochs[i].n_hits, 1000);
        }
}
END_TEST

START_TEST(what_came_first_stays_and_the_rest_passes_through) {
        struct forecast_epoch epochs[3];

        lay_out(1000, 1000, 1);
        mix();
        w.terms.cache_bytes = 342900; /* eight pass through at a time, those of the first batches */
        run(epochs, 3);
        ck_assert_uint_eq(epochs[0].n_requests, 1000);
        ck_assert_uint_eq(epochs[1].n_requests, 666);
        ck_assert_uint_eq(epochs[2].n_bytes, 666 * 1000);
        ck_assert_uint_eq(epochs[2].n_hits, 334);
}
END_TEST

/* Reads in sequence need a chunk for as long as its last sample is foreseen. */
START_TEST(what_passes_through_serves_all_reads_that_were_foreseen_while_it_was_there) {
        struct forecast_epoch epochs[1];

        lay_out(1024, 4 << 20, 2);       /* halves of a chunk: no pieces */
        w.terms.cache_bytes = 256 << 20; /* a sixteenth of all stays, 32 MiB are for what passes */
        run(epochs, 1);
        ck_assert_uint_eq(epochs[0].n_requests, 512);
        mix();
        run(epochs, 1);
        ck_assert_uint_gt(epochs[0].n_requests, 900); /* nearly always the other half is no longer there */
}
END_TEST

/* 64 chunks of 8 MiB over a link of two a second: what is due before its chunk has its turn does not wait for it. */
START_TEST(a_small_part_that_is_due_before_its_chunk_is_a_request_of_its_own_bytes) {
        struct forecast_epoch epochs[2];

        lay_out(4096, 128 << 10, 64);
        mix();
        w.terms.horizon = 4096;
        w.terms.bandwidth = 16 << 20;
        w.terms.rate = 100;
        run(epochs, 2);
        ck_assert_uint_gt(epochs[0].n_pieces, 100);
        ck_assert_uint_eq(epochs[0].n_requests,
                          64 + 2 * epochs[0].n_pieces);         /* each leaves a hole more in its chunk, */
        ck_assert_uint_eq(epochs[0].n_bytes, w.places.n_bytes); /* which does not bring it again */
        ck_assert_uint_eq(epochs[1].n_requests, 0);
        w.terms.rate = 1; /* nobody waits */
        run(epochs, 1);
        ck_assert_uint_le(epochs[0].n_pieces, 64);
        w.terms.bandwidth = 0;
        run(epochs, 1);
        ck_assert_uint_eq(epochs[0].n_pieces, 0);
}
END_TEST

/* Eighths of chunks, one after the other: with the second one a quarter of the chunk is needed soon. */
START_TEST(a_chunk_of_which_a_quarter_is_needed_soon_comes_whole_though_it_cannot_stay) {
        struct forecast_epoch epochs[1];

        lay_out(1024, 1 << 20, 8);
        w.terms.cache_bytes = 128 << 20;
        run(epochs, 1);
        ck_assert_uint_gt(epochs[0].n_pieces, 100);
        ck_assert_uint_lt(epochs[0].n_pieces, 130);
        ck_assert_uint_eq(epochs[0].n_requests, 128 + epochs[0].n_pieces);
}
END_TEST

START_TEST(what_has_no_room_comes_in_pieces_if_it_is_small) {
        struct forecast_epoch epochs[2];

        lay_out(4096, 128 << 10, 64);
        mix();
        w.terms.horizon = 256;
        w.terms.cache_bytes = w.places.n_bytes / 2;
        run(epochs, 2);
        /* Half of them have room: each is needed soon by some, so none makes room for what comes next. */
        ck_assert_uint_eq(epochs[0].n_requests, 32 + epochs[0].n_pieces);
        ck_assert_uint_eq(epochs[1].n_requests, epochs[1].n_pieces);
        ck_assert_uint_eq(epochs[1].n_pieces, 32 * 64);
        ck_assert_uint_eq(epochs[1].n_bytes, 32ull * 64 * (128 << 10));
}
END_TEST

START_TEST(times_are_those_of_connections_latency_link_and_trainer) {
        struct forecast_epoch epochs[1];

        lay_out(1000, 1000, 1);
        w.terms.latency_s = 0.1; /* four connections: 40 a second */
        run(epochs, 1);
        ck_assert_double_eq_tol(epochs[0].seconds, 25, 0.01);
        ck_assert_double_eq_tol(epochs[0].first_batch_seconds, 0.2, 1e-9);
        w.terms.bandwidth = 10000; /* ten a second */
        run(epochs, 1);
        ck_assert_double_eq_tol(epochs[0].seconds, 100, 1);
        w.terms.rate = 5;
        run(epochs, 1);
        ck_assert_double_eq_tol(epochs[0].seconds, 200, 2);
}
END_TEST

START_TEST(a_sample_of_several_parts_needs_the_chunks_of_all) {
        struct forecast_epoch epochs[1];

        lay_out(3, 100, 1);
        w.places.n_samples = 1;
        w.places.n_chunks = 3;
        w.starts[1] = 2;
        w.parts[1] = (struct forecast_part){ .chunk = 1, .n_chunks = 2, .n_bytes = 200 };
        run(epochs, 1);
        ck_assert_uint_eq(epochs[0].n_requests, 3);
        ck_assert_uint_eq(epochs[0].n_hits, 0);
        w.starts[1] = 0; /* and one without any needs nothing */
        run(epochs, 1);
        ck_assert_uint_eq(epochs[0].n_requests, 0);
        ck_assert_uint_eq(epochs[0].n_hits, 1);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "cache", with_room_for_all_each_chunk_is_asked_for_once_and_never_again },
                { "cache", what_came_first_stays_and_the_rest_passes_through },
                { "cache", what_passes_through_serves_all_reads_that_were_foreseen_while_it_was_there },
                { "requests", a_small_part_that_is_due_before_its_chunk_is_a_request_of_its_own_bytes },
                { "requests", a_chunk_of_which_a_quarter_is_needed_soon_comes_whole_though_it_cannot_stay },
                { "requests", what_has_no_room_comes_in_pieces_if_it_is_small },
                { "requests", a_sample_of_several_parts_needs_the_chunks_of_all },
                { "times", times_are_those_of_connections_latency_link_and_trainer },
        };

        return suite_run("forecast", rows, sizeof(rows) / sizeof(rows[0]));
}
