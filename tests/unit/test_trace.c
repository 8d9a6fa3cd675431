/* Tests of base/trace: buffers of threads, whose events they take, and what is dropped. */
#include <check.h>
#include <errno.h>
#include <pthread.h>

#include "daemon/base/base_trace.h"
#include "tests/support/suite.h"

static struct budget budget;
static struct trace_thread self;
static struct dlp_trace_event events[TRACE_EVENTS];

static void setup(void) {
        budget = (struct budget){ .limit_bytes = 64u << 20 };
        trace_thread_begin(&self, "self");
}

static void teardown(void) {
        trace_end();
        trace_thread_end(&self);
        ck_assert_uint_eq(budget_used(&budget), 0);
}

static void write_one(uint64_t word, uint64_t value) {
        const struct trace_subject subject = { .word = word };

        trace_write(&subject, DLP_TRACE_TURN, DLP_TRACE_DONE, 1, 2, value);
}

START_TEST(without_a_trace_nothing_is_written) {
        setup();
        write_one(TRACE_NOBODY, 1);
        ck_assert(!trace_is_on());
        ck_assert_uint_eq(trace_take(events, TRACE_EVENTS), 0);
        teardown();
}
END_TEST

START_TEST(a_trace_has_only_the_jobs_that_carry_its_number) {
        uint32_t first, second;

        setup();
        ck_assert_int_eq(trace_start(false, &budget, &first, NULL), 0);
        ck_assert_int_eq(trace_start(false, &budget, &second, NULL), -EBUSY);
        trace_end();
        ck_assert_int_eq(trace_start(false, &budget, &second, NULL), 0);
        write_one(0, 1);
        write_one(TRACE_NOBODY, 2);
        write_one(trace_word(first, 7), 3);
        write_one(trace_word(second, 7), 4);
        ck_assert_uint_eq(trace_take(events, TRACE_EVENTS), 1);
        ck_assert_uint_eq(events[0].value, 4);
        ck_assert_uint_eq(events[0].job, 7);
        teardown();
}
END_TEST

START_TEST(what_a_full_buffer_drops_is_counted) {
        uint32_t number;

        setup();
        ck_assert_int_eq(trace_start(true, &budget, &number, NULL), 0);
        for (uint64_t i = 0; i < TRACE_EVENTS + 5; i++)
                write_one(TRACE_NOBODY, i);
        ck_assert_uint_eq(trace_n_dropped(), 5);
        ck_assert_uint_eq(trace_take(events, TRACE_EVENTS), TRACE_EVENTS);
        for (uint64_t i = 0; i < TRACE_EVENTS; i++)
                ck_assert_uint_eq(events[i].value, i);
        write_one(TRACE_NOBODY, 1);
        trace_stop();
        write_one(TRACE_NOBODY, 2);
        ck_assert_uint_eq(trace_take(events, TRACE_EVENTS), 1);
        ck_assert_uint_eq(trace_n_dropped(), 5);
        teardown();
}
END_TEST

START_TEST(an_event_whose_begin_is_not_known_is_left_out) {
        const struct trace_subject nobody = { .word = TRACE_NOBODY };
        uint32_t number;

        setup();
        ck_assert_int_eq(trace_start(true, &budget, &number, NULL), 0);
        trace_write(&nobody, DLP_TRACE_TURN, DLP_TRACE_DONE, UINT64_MAX, 5, 1);
        trace_write(&nobody, DLP_TRACE_TURN, DLP_TRACE_DONE, 5, 5, 2);
        ck_assert_uint_eq(trace_take(events, TRACE_EVENTS), 1);
        ck_assert_uint_eq(events[0].value, 2);
        teardown();
}
END_TEST

/* Samples of this trace and of another one; `written`: the first is over. */
static size_t take_after_samples(uint32_t number, bool is_written) {
        const struct trace_subject sample = { .word = trace_word(number, 7), .rank = 3, .sample = 55 };
        const struct trace_subject stranger = { .word = trace_word(number + 1, 7), .sample = 66 };

        trace_set_subject(&stranger);
        trace_set_subject(&sample);
        if (is_written)
                trace_write(&sample, DLP_TRACE_SAMPLE, DLP_TRACE_DONE, 1, 2, 1000);
        trace_set_subject(NULL);
        trace_stop();
        trace_set_subject(&sample);
        trace_set_subject(NULL);
        return trace_take(events, TRACE_EVENTS);
}

START_TEST(a_turn_that_is_not_over_at_the_end_is_told_until_there) {
        const struct trace_subject nobody = { .word = TRACE_NOBODY };
        uint32_t number;

        setup();
        ck_assert_int_eq(trace_start(true, &budget, &number, NULL), 0);
        trace_open(&nobody, DLP_TRACE_TURN);
        trace_write(&nobody, DLP_TRACE_PLAN, DLP_TRACE_DONE, 1, 2, 0); /* a part of it */
        trace_stop();
        ck_assert_uint_eq(trace_take(events, TRACE_EVENTS), 2);
        ck_assert_uint_eq(events[1].kind, DLP_TRACE_TURN);
        ck_assert_uint_eq(events[1].detail, DLP_TRACE_OPEN);
        ck_assert_uint_ge(events[1].end_ns, events[1].begin_ns);
        trace_end();

        ck_assert_int_eq(trace_start(true, &budget, &number, NULL), 0);
        trace_open(&nobody, DLP_TRACE_TURN);
        trace_write(&nobody, DLP_TRACE_TURN, DLP_TRACE_DONE, 1, 2, 0);
        trace_stop();
        ck_assert_uint_eq(trace_take(events, TRACE_EVENTS), 1); /* once */
        teardown();
}
END_TEST

START_TEST(a_sample_that_is_not_over_at_the_end_is_told_until_there) {
        uint32_t number;

        setup();
        ck_assert_int_eq(trace_start(true, &budget, &number, NULL), 0);
        ck_assert_uint_eq(take_after_samples(number, false), 1);
        ck_assert_uint_eq(events[0].kind, DLP_TRACE_SAMPLE);
        ck_assert_uint_eq(events[0].detail, DLP_TRACE_OPEN);
        ck_assert_uint_eq(events[0].sample, 55);
        ck_assert_uint_eq(events[0].rank, 3);
        ck_assert_uint_eq(events[0].thread, self.id);
        ck_assert_uint_ge(events[0].end_ns, events[0].begin_ns);
        ck_assert_uint_gt(events[0].begin_ns, 0);
        trace_end();

        ck_assert_int_eq(trace_start(true, &budget, &number, NULL), 0);
        ck_assert_uint_eq(take_after_samples(number, true), 1); /* once */
        ck_assert_uint_eq(events[0].detail, DLP_TRACE_DONE);
        trace_end();

        ck_assert_int_eq(trace_start(true, &budget, &number, NULL), 0);
        ck_assert_uint_eq(take_after_samples(number + 1, false), 0); /* of no trace that runs */
        teardown();
}
END_TEST

static void *short_life(void *userdata) {
        struct trace_thread thread;

        trace_thread_begin(&thread, "short");
        write_one(TRACE_NOBODY, 77);
        trace_thread_end(&thread);
        return userdata;
}

START_TEST(what_a_thread_wrote_can_be_taken_after_its_end) {
        uint32_t number, id;
        pthread_t thread;
        char name[16];

        setup();
        ck_assert_int_eq(trace_start(true, &budget, &number, NULL), 0);
        ck_assert_int_eq(pthread_create(&thread, NULL, short_life, NULL), 0);
        pthread_join(thread, NULL);
        ck_assert(trace_tell_thread(&id, name));
        ck_assert_str_eq(name, "self");
        ck_assert(trace_tell_thread(&id, name));
        ck_assert_str_eq(name, "short");
        ck_assert(!trace_tell_thread(&id, name));
        ck_assert_uint_eq(trace_take(events, TRACE_EVENTS), 1);
        ck_assert_uint_eq(events[0].value, 77);
        ck_assert_uint_eq(events[0].thread, id);
        teardown();
}
END_TEST

START_TEST(a_trace_that_does_not_fit_into_memory_is_refused) {
        struct budget small = { .limit_bytes = 1000 };
        uint32_t number;
        struct why why;

        setup();
        ck_assert_int_eq(trace_start(true, &small, &number, &why), -ENOMEM);
        ck_assert(!trace_is_on());
        ck_assert_uint_eq(budget_used(&small), 0);
        teardown();
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "trace", without_a_trace_nothing_is_written, 0 },
                { "trace", a_trace_has_only_the_jobs_that_carry_its_number, 0 },
                { "trace", what_a_full_buffer_drops_is_counted, 0 },
                { "trace", an_event_whose_begin_is_not_known_is_left_out, 0 },
                { "trace", a_sample_that_is_not_over_at_the_end_is_told_until_there, 0 },
                { "trace", a_turn_that_is_not_over_at_the_end_is_told_until_there, 0 },
                { "trace", what_a_thread_wrote_can_be_taken_after_its_end, 0 },
                { "trace", a_trace_that_does_not_fit_into_memory_is_refused, 0 },
        };

        return suite_run("trace", rows, sizeof(rows) / sizeof(rows[0]));
}
