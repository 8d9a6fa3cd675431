/* What a client reports about its waiting, and what the daemon makes of it whatever the client writes. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proto/meter.h"
#include "proto/order/philox.h"
#include "tests/support/suite.h"

static struct dlp_client_page page;

static struct dlp_meter read_at(uint64_t made_ns, uint64_t now_ns, uint64_t n_published) {
        struct dlp_meter_bounds bounds = { made_ns, now_ns, n_published };
        struct dlp_meter meter;

        dlp_meter_read(&page, &bounds, &meter);
        return meter;
}

static void setup(void) {
        memset(&page, 0, sizeof(page));
}

START_TEST(a_trainer_that_never_waits_is_busy_all_the_time) {
        struct dlp_meter meter;

        setup();
        for (uint64_t i = 0; i < 10; i++)
                dlp_meter_take(&page, 1000 + i, 0);
        meter = read_at(500, 101000, 20);
        ck_assert_uint_eq(meter.n_batches, 10);
        ck_assert_uint_eq(meter.n_waits + meter.wait_ns + meter.empty_ns + meter.first_wait_ns, 0);
        ck_assert_uint_eq(meter.busy_ns, 100000); /* since the first batch was ready */
        ck_assert_uint_eq(meter.waits[0], 9);     /* the first one is apart */
}
END_TEST

START_TEST(waits_are_summed_without_the_first_one) {
        struct dlp_meter meter;

        setup();
        dlp_meter_wait(&page, 10000);
        dlp_meter_take(&page, 19000, 20000); /* the first */
        dlp_meter_empty(&page, 20000);
        dlp_meter_wait(&page, 30000);
        dlp_meter_take(&page, 34000, 35000);
        meter = read_at(5000, 50000, 2);
        ck_assert_uint_eq(meter.first_wait_ns, 10000);
        ck_assert_uint_eq(meter.n_waits, 1);
        ck_assert_uint_eq(meter.wait_ns, 5000);
        ck_assert_uint_eq(meter.busy_ns, 25000);
        ck_assert_uint_eq(meter.empty_ns, 14000); /* from taking the first until the second was ready */
        ck_assert_uint_eq(meter.waits[3], 1);     /* 4 to 8 microseconds */
        ck_assert_uint_eq(meter.waiting_ns, 0);
}
END_TEST

START_TEST(a_wait_under_way_counts_and_calls_that_give_up_do_not_end_it) {
        struct dlp_meter meter;

        setup();
        dlp_meter_take(&page, 10000, 0);
        dlp_meter_wait(&page, 20000);
        dlp_meter_wait(&page, 25000); /* a later call for the same batch */
        meter = read_at(5000, 30000, 1);
        ck_assert_uint_eq(meter.waiting_ns, 10000);
        ck_assert_uint_eq(meter.wait_ns, 10000);
        ck_assert_uint_eq(meter.busy_ns, 10000);
        dlp_meter_take(&page, 40000, 0); /* found by a call that came long after it was ready */
        meter = read_at(5000, 90000, 2);
        ck_assert_uint_eq(meter.wait_ns, 20000);
        ck_assert_uint_eq(meter.waiting_ns, 0);
}
END_TEST

START_TEST(a_ring_that_is_filled_before_the_trainer_asks_was_empty_without_a_wait) {
        struct dlp_meter meter;

        setup();
        dlp_meter_take(&page, 10000, 0);
        dlp_meter_empty(&page, 11000);
        dlp_meter_take(&page, 16000, 0);
        meter = read_at(5000, 20000, 2);
        ck_assert_uint_eq(meter.empty_ns, 5000);
        ck_assert_uint_eq(meter.n_waits, 0);
}
END_TEST

START_TEST(the_wait_for_a_slots_batch_is_told_of_that_batch_alone) {
        setup();
        dlp_meter_wait(&page, 1000);
        dlp_meter_note_wait(&page, 3, 0, 9000, 0);
        dlp_meter_take(&page, 9000, 0);
        ck_assert_uint_eq(dlp_meter_slot_wait(&page, 3, 0, UINT64_MAX), 0); /* the first one */
        dlp_meter_wait(&page, 100000);
        dlp_meter_note_wait(&page, 3, 70, 4000000, 5100000);
        dlp_meter_take(&page, 4000000, 5100000);
        ck_assert_uint_eq(dlp_meter_slot_wait(&page, 3, 70, UINT64_MAX), 5000000);
        ck_assert_uint_eq(dlp_meter_slot_wait(&page, 3, 70, 1000), 1000);
        ck_assert_uint_eq(dlp_meter_slot_wait(&page, 3, 71, UINT64_MAX), 0); /* that one was there */
        dlp_meter_note_wait(&page, 3, 71, 9000000, 0);
        ck_assert_uint_eq(dlp_meter_slot_wait(&page, 3, 70, UINT64_MAX), 5000000);
        memset(&page, 0xff, sizeof(page));
        for (uint64_t sequence = 0; sequence < 100; sequence++)
                ck_assert_uint_le(dlp_meter_slot_wait(&page, 63, sequence, 77), 77);
}
END_TEST

START_TEST(waits_are_sorted_by_powers_of_two_of_a_microsecond) {
        ck_assert_uint_eq(dlp_wait_bucket(0), 0);
        ck_assert_uint_eq(dlp_wait_bucket(999), 0);
        ck_assert_uint_eq(dlp_wait_bucket(1000), 1);
        ck_assert_uint_eq(dlp_wait_bucket(1999), 1);
        ck_assert_uint_eq(dlp_wait_bucket(2000), 2);
        ck_assert_uint_eq(dlp_wait_bucket(1000000), 10);
        ck_assert_uint_eq(dlp_wait_bucket(UINT64_MAX), DLP_WAIT_BUCKETS - 1);
}
END_TEST

static void check_possible(const struct dlp_meter *meter, uint64_t age_ns, uint64_t n_published) {
        uint64_t n = 0;

        ck_assert_uint_le(meter->n_batches, n_published);
        ck_assert_uint_le(meter->n_waits, meter->n_batches);
        ck_assert_uint_le(meter->wait_ns, age_ns);
        ck_assert_uint_le(meter->busy_ns, age_ns - meter->wait_ns);
        ck_assert_uint_le(meter->first_wait_ns, age_ns);
        ck_assert_uint_le(meter->waiting_ns, age_ns);
        ck_assert_uint_le(meter->empty_ns, age_ns);
        for (uint32_t i = 0; i < DLP_WAIT_BUCKETS; i++) {
                ck_assert_uint_le(meter->waits[i], n_published);
                n += meter->waits[i];
        }
        ck_assert_uint_eq(n, meter->n_batches > 0 ? meter->n_batches - 1 : 0);
}

/* Small numbers, numbers around the bounds, and any. */
static uint64_t some_number(struct dlp_philox *philox) {
        static const uint64_t KNOWN[] = { 0, 1, 5, 999, 1000, 2000, 3000, 1ull << 63, UINT64_MAX, UINT64_MAX - 1 };
        uint32_t how = dlp_philox_u32(philox) % 3;

        if (how == 0)
                return KNOWN[dlp_philox_u32(philox) % (sizeof(KNOWN) / sizeof(KNOWN[0]))];
        if (how == 1)
                return dlp_philox_u32(philox) % 5000;
        return (uint64_t)dlp_philox_u32(philox) << 32 | dlp_philox_u32(philox);
}

START_TEST(whatever_a_client_writes_is_made_possible_and_never_decreases) {
        struct dlp_meter kept = { 0 }, before = { 0 }, meter;
        struct dlp_philox philox;

        dlp_philox_init(&philox, 7, 0, 0, 0);
        for (uint64_t round = 0; round < 20000; round++) {
                _Atomic uint64_t *words[] = { &page.n_batches,        &page.n_waits,      &page.wait_ns,
                                              &page.waiting_since_ns, &page.empty_ns,     &page.empty_since_ns,
                                              &page.first_ns,         &page.first_wait_ns };

                for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                        atomic_store(words[i], some_number(&philox));
                for (uint32_t i = 0; i < DLP_WAIT_BUCKETS; i++)
                        atomic_store(&page.waits[i], some_number(&philox));
                meter = read_at(1000, 1000 + round, round / 4);
                check_possible(&meter, round, round / 4);
                dlp_meter_keep(&kept, &meter);
                check_possible(&meter, round, round / 4);
                ck_assert_uint_ge(meter.n_batches, before.n_batches);
                ck_assert_uint_ge(meter.wait_ns, before.wait_ns);
                ck_assert_uint_ge(meter.busy_ns, before.busy_ns);
                ck_assert_uint_ge(meter.waits[5], before.waits[5]);
                before = meter;
        }
}
END_TEST

START_TEST(a_slots_story_is_told_in_sequence_and_an_earlier_batchs_is_not) {
        struct dlp_story_bounds bounds = { .made_ns = 100, .ready_ns = 1000, .now_ns = 2000, .is_back = true };
        struct dlp_slot_times *times = &page.times[3];
        struct dlp_slot_story story;

        atomic_store(&times->asked_ns, 900);
        atomic_store(&times->waited_until_ns, 1100);
        atomic_store(&times->taken_ns, 1100);
        atomic_store(&times->released_ns, 1500);
        ck_assert(dlp_meter_story(&page, 3, &bounds, &story));
        ck_assert_uint_eq(story.asked_ns, 900);
        ck_assert_uint_eq(story.waited_until_ns, 1100);
        ck_assert_uint_eq(story.taken_ns, 1100);
        ck_assert_uint_eq(story.released_ns, 1500);
        bounds.is_back = false; /* the release is of an earlier batch then */
        ck_assert(dlp_meter_story(&page, 3, &bounds, &story));
        ck_assert_uint_eq(story.released_ns, 2000);
        atomic_store(&times->waited_until_ns, 1200); /* it cannot have waited for what it had */
        ck_assert(dlp_meter_story(&page, 3, &bounds, &story));
        ck_assert_uint_eq(story.asked_ns, story.waited_until_ns);
        bounds.ready_ns = 1101;
        ck_assert(!dlp_meter_story(&page, 3, &bounds, &story));
        bounds.ready_ns = 1000;
        bounds.now_ns = 1099;
        ck_assert(!dlp_meter_story(&page, 3, &bounds, &story));
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "meter", a_trainer_that_never_waits_is_busy_all_the_time, 0 },
                { "meter", waits_are_summed_without_the_first_one, 0 },
                { "meter", a_wait_under_way_counts_and_calls_that_give_up_do_not_end_it, 0 },
                { "meter", a_ring_that_is_filled_before_the_trainer_asks_was_empty_without_a_wait, 0 },
                { "meter", the_wait_for_a_slots_batch_is_told_of_that_batch_alone, 0 },
                { "meter", waits_are_sorted_by_powers_of_two_of_a_microsecond, 0 },
                { "hostile", a_slots_story_is_told_in_sequence_and_an_earlier_batchs_is_not, 0 },
                { "hostile", whatever_a_client_writes_is_made_possible_and_never_decreases, 0 },
        };

        return suite_run("meter", rows, sizeof(rows) / sizeof(rows[0]));
}
