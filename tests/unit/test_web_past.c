/* What a verdict of dlctl web is compared with: the earliest look of the last minute. */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/dlctl/web/past.h"
#include "tests/support/suite.h"

#define SECOND 1000000000ull

/* A reply with one job, as if it had come from a daemon: what its clock says tells the replies apart. */
static Dlp__Reply *page_with(const char *user, const char *name, uint64_t now_ns) {
        char user_of_job[16], name_of_job[16];
        Dlp__Job job = DLP__JOB__INIT, *list[] = { &job };
        Dlp__JobsReply jobs = DLP__JOBS_REPLY__INIT;
        Dlp__Reply reply = DLP__REPLY__INIT, *made;
        uint8_t packed[256];

        snprintf(user_of_job, sizeof(user_of_job), "%s", user);
        snprintf(name_of_job, sizeof(name_of_job), "%s", name);
        job.user = user_of_job;
        job.name = name_of_job;
        job.now_ns = now_ns;
        jobs.jobs = list;
        jobs.n_jobs = 1;
        reply.body_case = DLP__REPLY__BODY_JOBS;
        reply.jobs = &jobs;
        ck_assert(dlp__reply__get_packed_size(&reply) <= sizeof(packed));
        made = dlp__reply__unpack(NULL, dlp__reply__pack(&reply, packed), packed);
        ck_assert(made != NULL);
        return made;
}

static void take(struct past *past, uint64_t now_ns, const char *user, const char *name) {
        struct glance *glance = glance_new();

        glance_add(glance, page_with("somebody", "other", now_ns));
        glance_add(glance, page_with(user, name, now_ns));
        past_take(past, now_ns, glance);
}

/* The moment of the look at job "train" of user "me"; 0: there is none. */
static uint64_t found(const struct past *past, uint64_t now_ns) {
        Dlp__Reply *page = page_with("me", "train", now_ns);
        struct look look;
        uint64_t moment = 0;

        if (past_find(past, now_ns, page->jobs->jobs[0], &look))
                moment = look.job->now_ns;
        dlp__reply__free_unpacked(page, NULL);
        return moment;
}

START_TEST(looks_are_ten_seconds_apart_and_the_earliest_is_a_minute_old) {
        struct past past = { .n = 0 };

        ck_assert_uint_eq(found(&past, 100 * SECOND), 0);
        for (uint64_t second = 100; second < 300; second++) {
                take(&past, second * SECOND, "me", "train");
                ck_assert_uint_le(past.n, PAST_LOOKS);
                if (second >= 160) {
                        uint64_t age = second - found(&past, second * SECOND) / SECOND;

                        ck_assert_uint_ge(age, 50);
                        ck_assert_uint_lt(age, 60);
                }
        }
        past_free(&past);
        ck_assert_uint_eq(past.n, 0);
}
END_TEST

START_TEST(a_job_is_known_by_its_user_and_its_name) {
        struct past past = { .n = 0 };

        take(&past, 100 * SECOND, "you", "train");
        take(&past, 110 * SECOND, "me", "trai");
        ck_assert_uint_eq(found(&past, 120 * SECOND), 0);
        take(&past, 120 * SECOND, "me", "train");
        take(&past, 130 * SECOND, "me", "train");
        ck_assert_uint_eq(found(&past, 131 * SECOND), 120 * SECOND);
        past_free(&past);
}
END_TEST

START_TEST(looks_from_before_the_daemon_was_away_do_not_count) {
        struct past past = { .n = 0 };

        take(&past, 100 * SECOND, "me", "train");
        ck_assert_uint_eq(found(&past, 170 * SECOND), 100 * SECOND);
        ck_assert_uint_eq(found(&past, 171 * SECOND), 0);
        take(&past, 500 * SECOND, "me", "train");
        ck_assert_uint_eq(found(&past, 501 * SECOND), 500 * SECOND);
        past_free(&past);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "past", looks_are_ten_seconds_apart_and_the_earliest_is_a_minute_old },
                { "past", a_job_is_known_by_its_user_and_its_name },
                { "past", looks_from_before_the_daemon_was_away_do_not_count },
        };

        return suite_run("web_past", rows, sizeof(rows) / sizeof(rows[0]));
}
