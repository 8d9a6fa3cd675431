/* Why a rank waits: the sentence that people read, and its way through the shared page. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pipeline/planner/planner.h"
#include "daemon/pipeline/planner/waits.h"
#include "proto/ring.h"
#include "tests/support/suite.h"

#define SECOND 1000000000ull
#define NOW    (100 * SECOND)

static const struct {
        struct dlp_wait wait;
        const char *sentence;
} CASES[] = {
        { { .reason = DLP_WAIT_NOTHING, .detail = "left over" }, "" },
        { { .reason = DLP_WAIT_SLOT }, "" },
        { { .reason = DLP_WAIT_ORDER }, "" },
        { { .reason = DLP_WAIT_SAMPLES, .detail = "waits for x-3.tar", .n_samples = 12 },
          "photos: the stream waits for x-3.tar; 12 samples so far" },
        { { .reason = DLP_WAIT_SAMPLES }, "photos: the stream is being read; 0 samples so far" },
        { { .reason = DLP_WAIT_MEMORY, .detail = "2 GiB" }, "photos: the stream waits for memory: 2 GiB" },
        { { .reason = DLP_WAIT_ENDING, .since_ns = 93 * SECOND, .detail = "f" },
          "python(f): a worker process has ended, and for 7 s it has not been said how: the process that supervises "
          "may be stopped" },
        { { .reason = DLP_WAIT_FUNCTION,
            .since_ns = 60 * SECOND,
            .until_ns = 120 * SECOND,
            .process = 7,
            .sample = 5,
            .n_samples = 1,
            .detail = "f" },
          "python(f): worker process 7 has been at sample 5 for 40 s; it may for 60 s" },
        { { .reason = DLP_WAIT_FUNCTION,
            .since_ns = 60 * SECOND,
            .until_ns = 120 * SECOND,
            .process = 7,
            .sample = 5,
            .n_samples = 2,
            .detail = "f" },
          "python(f): worker process 7 has been at sample 5 or one after it for 40 s; it may for 60 s" },
        { { .reason = DLP_WAIT_PROCESS, .since_ns = 98 * SECOND, .detail = "f" },
          "python(f): waiting for a worker process of the trainer, for 2 s so far" },
        { { .reason = DLP_WAIT_READ, .since_ns = 94 * SECOND, .detail = "cats/7.jpg" },
          "photos: reading cats/7.jpg has not come back for 6 s" },
        { { .reason = DLP_WAIT_READ, .since_ns = 101 * SECOND, .detail = "cats/7.jpg" },
          "photos: reading cats/7.jpg has not come back for 0 s" },
        { { .reason = DLP_WAIT_ORIGIN,
            .since_ns = 93 * SECOND,
            .detail = "cats/7.jpg of s3://b/p: first byte after 1 ms" },
          "photos: waiting for the origin for 7 s: cats/7.jpg of s3://b/p: first byte after 1 ms" },
        { { .reason = DLP_WAIT_OUTAGE, .until_ns = 101 * SECOND - 1, .detail = "/d: gone" },
          "/d: gone; trying again for 1 s" },
        { { .reason = DLP_WAIT_OUTAGE, .until_ns = 219 * SECOND, .detail = "/d: gone" },
          "/d: gone; trying again for 119 s" },
        { { .reason = DLP_WAIT_OUTAGE, .until_ns = 221 * SECOND, .detail = "/d: gone" },
          "/d: gone; trying again for 3 min" },
        { { .reason = DLP_WAIT_OUTAGE, .until_ns = 99 * SECOND, .detail = "/d: gone" },
          "/d: gone; trying again for 0 s" },
        { { .reason = DLP_N_WAIT_REASONS, .detail = "what a later daemon says" }, "what a later daemon says" },
};

START_TEST(each_reason_has_its_sentence) {
        char text[DLP_TEXT_MAX];

        for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++)
                ck_assert_str_eq(dlp_wait_sentence(&CASES[i].wait, "photos", NOW, text), CASES[i].sentence);
}
END_TEST

START_TEST(a_detail_that_fills_its_place_leaves_the_sentence_its_end) {
        struct dlp_wait wait = { .reason = DLP_WAIT_OUTAGE };
        char text[DLP_TEXT_MAX];

        memset(wait.detail, 'x', sizeof(wait.detail) - 1);
        dlp_wait_sentence(&wait, "photos", NOW, text);
        ck_assert_ptr_nonnull(strstr(text, "...")); /* its middle is left out */
        ck_assert_str_eq(text + strlen(text) - strlen("; trying again for 0 s"), "; trying again for 0 s");
}
END_TEST

START_TEST(the_page_has_what_was_told_last_and_nothing_after_the_wait) {
        struct dlp_control *control = calloc(1, sizeof(*control));
        struct dlp_wait wait;

        ck_assert(!dlp_ring_waits(control, &wait));
        for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
                dlp_ring_tell_wait(control, &CASES[i].wait);
                ck_assert(dlp_ring_waits(control, &wait) == (CASES[i].wait.reason != DLP_WAIT_NOTHING));
                if (CASES[i].wait.reason != DLP_WAIT_NOTHING)
                        ck_assert_mem_eq(&wait, &CASES[i].wait, sizeof(wait));
        }
        atomic_fetch_add(&control->wait_version, 1); /* it is being written */
        ck_assert(!dlp_ring_waits(control, &wait));
        atomic_fetch_add(&control->wait_version, 1);
        dlp_ring_tell_wait(control, &(struct dlp_wait){ 0 });
        ck_assert(!dlp_ring_waits(control, &wait));
        free(control);
}
END_TEST

/* The read has come back, and the next sample is waited for: not worth a word, but the last one is not true any more.
 */
START_TEST(what_was_told_is_over_with_its_reason_also_if_the_next_one_is_not_told) {
        struct dlp_control *control = calloc(1, sizeof(*control));
        struct ring ring = { .control = control };
        struct job job = { .name = "a" };
        struct catalog_dataset dataset = { .name = "photos" };
        struct feed feed = { .job = &job, .ring = &ring, .dataset = &dataset };
        struct planner planner = { 0 };
        struct dlp_wait wait;

        TAILQ_INIT(&planner.feeds);
        TAILQ_INIT(&feed.parked);
        TAILQ_INSERT_TAIL(&planner.feeds, &feed, entry);
        feed.noticed = (struct dlp_wait){ .reason = DLP_WAIT_READ, .since_ns = 1, .detail = "cats/7.jpg" };
        waits_tell(&planner);
        ck_assert(dlp_ring_waits(control, &wait));
        ck_assert_uint_eq(wait.reason, DLP_WAIT_READ);

        feed.noticed.reason = DLP_WAIT_NOTHING;
        feed.stopped_by = DLP_WAIT_SAMPLES;
        waits_tell(&planner);
        ck_assert(!dlp_ring_waits(control, &wait));
        feed.stopped_by = DLP_WAIT_NOTHING;
        waits_tell(&planner);
        ck_assert(!dlp_ring_waits(control, &wait));
        free(control);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "words", each_reason_has_its_sentence },
                { "words", a_detail_that_fills_its_place_leaves_the_sentence_its_end },
                { "page", the_page_has_what_was_told_last_and_nothing_after_the_wait },
                { "page", what_was_told_is_over_with_its_reason_also_if_the_next_one_is_not_told },
        };

        return suite_run("wait_reason", rows, sizeof(rows) / sizeof(rows[0]));
}
