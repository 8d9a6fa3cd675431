/* Jobs: what the ranks of one run must agree on, and how long a run lives. */

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/pipeline/jobs/job.h"

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct jobs jobs;
static struct users users;

static struct job_terms terms_of_first(void) {
        return (struct job_terms){
                .dataset = "photos",
                .digest = "aaaa",
                .pipeline = "center_crop(224)",
                .world = 4,
                .batch_size = 64,
                .seed = 18446744073709551615ull,
                .n_samples = 1000,
                .max_errors = 0.5,
                .shuffle = true,
        };
}

static int join_as(uid_t uid, const char *name, const struct job_terms *terms, uint32_t rank, struct job **ret_job,
                   struct job_member **ret_member) {
        return job_join(&jobs, job_find(&jobs, uid, name), household_get(user_get(&users, uid), 0), name, terms, NULL,
                        rank, 1000 + rank, ret_job, ret_member, NULL);
}

static int join(const char *name, const struct job_terms *terms, uint32_t rank, struct job **ret_job,
                struct job_member **ret_member, struct why *why) {
        return job_join(&jobs, job_find(&jobs, 7, name), household_get(user_get(&users, 7), 0), name, terms, NULL, rank,
                        1000 + rank, ret_job, ret_member, why);
}

/* ---- agreement ----------------------------------------------------------------------------------------------- */

static void other_dataset(struct job_terms *terms) {
        strcpy(terms->dataset, "sketches");
}
static void other_digest(struct job_terms *terms) {
        strcpy(terms->digest, "bbbb");
}
static void other_world(struct job_terms *terms) {
        terms->world = 8;
}
static void other_batch_size(struct job_terms *terms) {
        terms->batch_size = 63;
}
static void other_pipeline(struct job_terms *terms) {
        strcpy(terms->pipeline, "raw");
}
static void other_seed(struct job_terms *terms) {
        terms->seed = 18446744073709551614ull;
}
static void other_buffer(struct job_terms *terms) {
        terms->shuffle_buffer = 7;
}

static void other_draws(struct job_terms *terms) {
        terms->draws = 7;
}
static void other_shuffle(struct job_terms *terms) {
        terms->shuffle = false;
}
static void other_partition(struct job_terms *terms) {
        terms->partition = DLP_PARTITION_EXACT;
}
static void other_dealing(struct job_terms *terms) {
        terms->dealing = DLP_DEALING_BATCH;
}
static void other_drop_last(struct job_terms *terms) {
        terms->drop_last = true;
}
static void other_order(struct job_terms *terms) {
        terms->order = DLP_ORDER_TDPERM;
}
static void other_window(struct job_terms *terms) {
        terms->order = DLP_ORDER_BLOCKS;
        terms->window = 16;
}
static void other_on_error(struct job_terms *terms) {
        terms->on_error = ON_ERROR_SUBSTITUTE;
}

static void other_n_samples(struct job_terms *terms) {
        terms->n_samples = 1001;
}
static void other_max_errors(struct job_terms *terms) {
        terms->max_errors = 10;
}

static const struct {
        void (*change)(struct job_terms *terms);
        const char *field, *theirs, *mine;
} DIFFERENCES[] = {
        { other_dataset, "dataset:", "runs with photos", "asks for sketches" },
        { other_digest, "dataset digest:", "runs with aaaa", "asks for bbbb" },
        { other_world, "world_size:", "runs with 4", "asks for 8" },
        { other_batch_size, "batch_size:", "runs with 64", "asks for 63" },
        { other_pipeline, "pipeline:", "runs with center_crop(224)", "asks for raw" },
        { other_seed, "seed:", "runs with 18446744073709551615", "asks for 18446744073709551614" },
        { other_buffer, "shuffle_buffer:", "runs with 0", "asks for 7" },
        { other_draws, "draws:", "runs with 0", "asks for 7" },
        { other_shuffle, "shuffle:", "runs with true", "asks for false" },
        { other_partition, "partition:", "runs with pad", "asks for exact" },
        { other_dealing, "dealing:", "runs with strided", "asks for batch" },
        { other_drop_last, "drop_last:", "runs with false", "asks for true" },
        { other_order, "order:", "runs with torch", "asks for tdperm" },
        { other_window, "order:", "runs with torch", "asks for blocks(window=16)" },
        { other_on_error, "on_error:", "runs with fail", "asks for substitute" },
        { other_n_samples, "dataset samples:", "runs with 1000", "asks for 1001" },
        { other_max_errors, "max_errors:", "runs with 0.5", "asks for 10" },
};

START_TEST(each_disagreement_is_refused_with_the_field_and_both_values) {
        struct job_terms terms = terms_of_first(), other = terms_of_first();
        struct job_member *member, *none = NULL;
        struct job *job, *nothing = NULL;
        struct why why;

        LIST_INIT(&jobs);
        ck_assert_int_eq(join("run", &terms, 0, &job, &member, &why), 0);
        DIFFERENCES[_i].change(&other);
        ck_assert_int_eq(join("run", &other, 1, &nothing, &none, &why), -EINVAL);
        ck_assert_ptr_null(nothing);
        ck_assert_ptr_null(none);
        ck_assert_msg(strncmp(why.text, DIFFERENCES[_i].field, strlen(DIFFERENCES[_i].field)) == 0, "%s", why.text);
        ck_assert_msg(strstr(why.text, DIFFERENCES[_i].theirs) != NULL, "%s", why.text);
        ck_assert_msg(strstr(why.text, DIFFERENCES[_i].mine) != NULL, "%s", why.text);
        ck_assert_ptr_nonnull(strstr(why.text, "job \"run\" runs with "));
        ck_assert_ptr_nonnull(strstr(why.text, ", as rank 0 (process 1000) asked; rank 1 asks for "));

        /* Another run may be what it likes, and the first one when it is alone again. */
        ck_assert_int_eq(join("another", &other, 1, &nothing, &none, &why), 0);
        job_leave(nothing, none);
        job_leave(job, member);
        ck_assert(LIST_EMPTY(&jobs));
        ck_assert_int_eq(join("run", &other, 1, &job, &member, &why), 0);
        job_leave(job, member);
}
END_TEST

START_TEST(a_job_remembers_which_ranks_came_also_after_all_have_left) {
        struct job_terms terms = terms_of_first();
        struct job_member *first, *second;
        struct job *job, *same;
        char name[32];

        LIST_INIT(&jobs);
        ck_assert_int_eq(join("attended", &terms, 2, &job, &first, NULL), 0);
        ck_assert_int_eq(join("attended", &terms, 0, &same, &second, NULL), 0);
        ck_assert_uint_eq(job->attendance.n_ranks, 2);
        job_leave(same, second);
        ck_assert_int_eq(join("attended", &terms, 0, &same, &second, NULL), 0); /* again: it counts once */
        ck_assert_uint_eq(job->attendance.n_ranks, 2);
        job_leave(same, second);
        job_leave(job, first);
        for (int i = 0; i < 100; i++) { /* others come and go */
                snprintf(name, sizeof(name), "other%d", i);
                ck_assert_int_eq(join(name, &terms, 3, &job, &first, NULL), 0);
                ck_assert_uint_eq(job->attendance.n_ranks, 1);
                job_leave(job, first);
        }
        ck_assert_int_eq(join("attended", &terms, 1, &job, &first, NULL), 0);
        ck_assert_uint_eq(job->attendance.n_ranks, 3);
        ck_assert_uint_eq(job->attendance.ranks[0], 2);
        ck_assert_uint_eq(job->attendance.ranks[2], 1);
        job_leave(job, first);
        for (int i = 0; i < 200; i++) { /* the newest are remembered, and no more */
                snprintf(name, sizeof(name), "newer%d", i);
                ck_assert_int_eq(join(name, &terms, 3, &job, &first, NULL), 0);
                job_leave(job, first);
        }
        ck_assert_int_eq(join("attended", &terms, 1, &job, &first, NULL), 0);
        ck_assert_uint_eq(job->attendance.n_ranks, 1);
        job_leave(job, first);
}
END_TEST

START_TEST(which_ranks_came_is_remembered_for_each_user_apart) {
        struct job_terms terms = terms_of_first();
        struct job_member *member;
        struct job *job;
        char name[32];

        LIST_INIT(&jobs);
        ck_assert_int_eq(join_as(7, "same", &terms, 2, &job, &member), 0);
        job_leave(job, member);
        ck_assert_int_eq(join_as(8, "same", &terms, 1, &job, &member), 0);
        ck_assert_uint_eq(job->attendance.n_ranks, 1);
        ck_assert_uint_eq(job->attendance.ranks[0], 1);
        job_leave(job, member);
        for (int i = 0; i < 1000; i++) { /* nor does another user's coming and going push it out */
                snprintf(name, sizeof(name), "many%d", i);
                ck_assert_int_eq(join_as(8, name, &terms, 3, &job, &member), 0);
                job_leave(job, member);
        }
        ck_assert_int_eq(join_as(7, "same", &terms, 0, &job, &member), 0);
        ck_assert_uint_eq(job->attendance.n_ranks, 2);
        ck_assert_uint_eq(job->attendance.ranks[0], 2);
        job_leave(job, member);
}
END_TEST

/* A struct that grows by a term must grow by a comparison: nothing but the padding may differ unnoticed. */
START_TEST(no_term_is_left_out_of_the_comparison) {
        struct job_terms terms = terms_of_first();
        size_t n_text = sizeof(terms.dataset) + sizeof(terms.digest) + sizeof(terms.pipeline);
        size_t n_numbers = sizeof(terms.world) + sizeof(terms.batch_size) + sizeof(terms.seed) + sizeof(terms.draws) +
                           sizeof(terms.n_samples) + sizeof(terms.max_errors) + sizeof(terms.shuffle_buffer) +
                           sizeof(terms.window);
        size_t n_choices = sizeof(terms.dealing) + sizeof(terms.partition) + sizeof(terms.on_error);
        size_t truths = offsetof(struct job_terms, shuffle), behind = offsetof(struct job_terms, dealing);
        struct job_member *member, *second;
        struct job *job, *same;
        size_t n_unnoticed = 0;

        LIST_INIT(&jobs);
        ck_assert_int_eq(join("run", &terms, 0, &job, &member, NULL), 0);
        for (size_t i = n_text; i < sizeof(terms); i++) {
                struct job_terms other = terms;

                if (i >= truths && i < behind)
                        continue; /* truth values and what pads them: a row each in the table above */
                ((uint8_t *)&other)[i] ^= 1;
                if (join("run", &other, 1, &same, &second, NULL) == 0) {
                        n_unnoticed++;
                        job_leave(same, second);
                }
        }
        ck_assert_uint_eq(n_unnoticed, sizeof(terms) - n_text - n_numbers - n_choices - (behind - truths));
        job_leave(job, member);
}
END_TEST

START_TEST(two_long_pipelines_do_not_push_each_other_out_of_the_message) {
        struct job_terms terms = terms_of_first(), other = terms_of_first();
        struct job_member *member;
        struct job *job;
        struct why why;

        LIST_INIT(&jobs);
        memset(terms.pipeline, 'a', DLP_PIPELINE_MAX - 1);
        memset(other.pipeline, 'b', DLP_PIPELINE_MAX - 1);
        ck_assert_int_eq(join("run", &terms, 0, &job, &member, &why), 0);
        ck_assert_int_eq(join("run", &other, 1, &job, &member, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "runs with aaaa"));
        ck_assert_ptr_nonnull(strstr(why.text, "asks for bbbb"));
        job_leave(job, member);
}
END_TEST

/* ---- ranks --------------------------------------------------------------------------------------------------- */

START_TEST(a_rank_that_is_taken_is_refused_with_the_process_that_has_it) {
        struct job_terms terms = terms_of_first();
        struct job_member *members[2], *none;
        struct job *job, *same;
        struct why why;

        LIST_INIT(&jobs);
        ck_assert_int_eq(join("run", &terms, 3, &job, &members[0], &why), 0);
        ck_assert_int_eq(job_join(&jobs, job, household_get(user_get(&users, 7), 0), "run", &terms, NULL, 3, 4711,
                                  &same, &none, &why),
                         -EADDRINUSE);
        ck_assert_ptr_nonnull(strstr(why.text, "rank 3"));
        ck_assert_ptr_nonnull(strstr(why.text, "1003"));
        ck_assert_int_eq(join("run", &terms, 2, &same, &members[1], &why), 0);
        ck_assert_ptr_eq(same, job);

        /* Who left may come back. */
        job_leave(job, members[0]);
        ck_assert_int_eq(join("run", &terms, 3, &job, &members[0], &why), 0);
        ck_assert_ptr_eq(same, job);
        job_leave(job, members[0]);
        job_leave(job, members[1]);
        ck_assert(LIST_EMPTY(&jobs));
}
END_TEST

START_TEST(more_ranks_than_a_node_has_are_refused) {
        char limit[16];
        struct job_member *members[DLP_LOCAL_RANKS_MAX], *none;
        struct job_terms terms = terms_of_first();
        struct job *job;
        struct why why;

        LIST_INIT(&jobs);
        terms.world = 100000;
        for (uint32_t i = 0; i < DLP_LOCAL_RANKS_MAX; i++)
                ck_assert_int_eq(join("run", &terms, i * 7, &job, &members[i], &why), 0);
        ck_assert_int_eq(join("run", &terms, 99999, &job, &none, &why), -EUSERS);
        snprintf(limit, sizeof(limit), "%u", DLP_LOCAL_RANKS_MAX);
        ck_assert_ptr_nonnull(strstr(why.text, limit));
        for (uint32_t i = 0; i < DLP_LOCAL_RANKS_MAX; i++)
                job_leave(job, members[i]);
        ck_assert(LIST_EMPTY(&jobs));
}
END_TEST

/* A process of ours that is killed and not yet waited for: as good as any that is ending. */
static struct process ending_process(void) {
        struct process process;
        pid_t pid = fork();

        ck_assert_int_ge(pid, 0);
        if (pid == 0)
                for (;;)
                        pause();
        process = (struct process){ .fd = -1, .pid = pid };
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        return process;
}

START_TEST(who_stands_in_the_way_and_is_ending_is_waited_for) {
        struct process ending = ending_process(), healthy = { .fd = -1, .pid = getpid() };
        struct job_terms terms = terms_of_first(), other = terms_of_first();
        struct job_member *first, *second, *none;
        struct job *job, *same;
        struct why why;

        LIST_INIT(&jobs);
        other.seed = 1;
        ck_assert_int_eq(join("run", &terms, 0, &job, &first, &why), 0);
        ck_assert_int_eq(join("run", &terms, 1, &job, &second, &why), 0);

        /* Nothing is known of either: refused. */
        ck_assert_int_eq(join("run", &terms, 0, &same, &none, &why), -EADDRINUSE);
        ck_assert_int_eq(join("run", &other, 2, &same, &none, &why), -EINVAL);

        /* One of the two is ending: its rank will be free, the job is not. */
        first->process = ending;
        second->process = healthy;
        ck_assert_int_eq(join("run", &terms, 0, &same, &none, &why), -EAGAIN);
        ck_assert_msg(strstr(why.text, "process 1000, which is ending") != NULL, "%s", why.text);
        ck_assert_int_eq(join("run", &terms, 1, &same, &none, &why), -EADDRINUSE);
        ck_assert_int_eq(join("run", &other, 0, &same, &none, &why), -EINVAL);
        ck_assert(job_fail(job, EBADMSG, "sample 5 is damaged"));
        ck_assert_int_eq(join("run", &terms, 2, &same, &none, &why), -EBUSY);

        /* Both: so will be the job, whatever became of it. */
        second->process = ending;
        ck_assert_int_eq(join("run", &terms, 2, &same, &none, &why), -EAGAIN);
        ck_assert_int_eq(join("run", &other, 0, &same, &none, &why), -EAGAIN);
        job_leave(job, first);
        job_leave(job, second);
        ck_assert_int_eq(waitpid(ending.pid, NULL, 0), ending.pid);
}
END_TEST

/* ---- failure ------------------------------------------------------------------------------------------------- */

START_TEST(a_failed_job_takes_nobody_in_until_its_last_rank_has_left) {
        struct job_terms terms = terms_of_first();
        struct job_member *member, *none;
        struct job *job, *other;
        struct why why;

        LIST_INIT(&jobs);
        ck_assert_int_eq(join("run", &terms, 0, &job, &member, &why), 0);
        ck_assert_uint_eq(job_failure(job, &why), 0);
        ck_assert_str_eq(why.text, "");
        ck_assert(job_fail(job, ENOTRECOVERABLE, "sample 5 is damaged"));
        ck_assert(!job_fail(job, EBADMSG, "and so is sample 6"));
        ck_assert_uint_eq(job_failure(job, &why), ENOTRECOVERABLE);
        ck_assert_str_eq(why.text, "sample 5 is damaged");
        ck_assert_int_eq(join("run", &terms, 1, &other, &none, &why), -EBUSY);
        ck_assert_ptr_nonnull(strstr(why.text, "sample 5 is damaged"));

        job_ref(job); /* a feed whose last samples are under way does not keep the name */
        job_leave(job, member);
        ck_assert_int_eq(join("run", &terms, 1, &other, &none, &why), 0);
        ck_assert_ptr_ne(other, job);
        ck_assert(!atomic_load(&other->failed));
        job_leave(other, none);
        job_unref(job);
        job_unref(NULL);
}
END_TEST

static void *fail_main(void *userdata) {
        struct job *job = userdata;
        uintptr_t n_first = 0;
        char text[32];

        for (uint32_t i = 0; i < 1000; i++) {
                struct why why;

                snprintf(text, sizeof(text), "%p", (void *)&n_first);
                n_first += job_fail(job, EBADMSG, text);
                job_failure(job, &why);
                ck_assert_uint_gt(strlen(why.text), 2);
        }
        return (void *)n_first;
}

START_TEST(of_many_failures_at_once_one_is_the_first) {
        struct job_terms terms = terms_of_first();
        struct job_member *member;
        pthread_t threads[4];
        uintptr_t n_first = 0;
        struct job *job;
        void *result;

        LIST_INIT(&jobs);
        ck_assert_int_eq(join("run", &terms, 0, &job, &member, NULL), 0);
        for (uint32_t i = 0; i < 4; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, fail_main, job), 0);
        for (uint32_t i = 0; i < 4; i++) {
                pthread_join(threads[i], &result);
                n_first += (uintptr_t)result;
        }
        ck_assert_uint_eq(n_first, 1);
        job_leave(job, member);
}
END_TEST

START_TEST(policies_have_names) {
        enum on_error on_error;

        for (enum on_error i = ON_ERROR_FAIL; i <= ON_ERROR_SKIP; i++) {
                ck_assert_int_eq(on_error_from_name(on_error_name(i), &on_error), 0);
                ck_assert_int_eq(on_error, i);
        }
        ck_assert_ptr_null(on_error_name((enum on_error)(ON_ERROR_SKIP + 1)));
        ck_assert_int_eq(on_error_from_name("", &on_error), -EINVAL);
        ck_assert_int_eq(on_error_from_name("failure", &on_error), -EINVAL);
}
END_TEST

/* ---- where they begin ---------------------------------------------------------------------------------------- */

START_TEST(ranks_that_resume_an_epoch_out_of_step_are_refused) {
        struct job_terms terms = terms_of_first(); /* a world of 4 */
        struct job_member *first, *second;
        struct job *job;
        struct why why;

        LIST_INIT(&jobs);
        terms.n_samples = 1001;
        ck_assert_int_eq(join("run", &terms, 0, &job, &first, &why), 0);
        ck_assert_int_eq(join("run", &terms, 1, &job, &second, &why), 0);
        ck_assert_int_eq(job_place(job, first, &(struct cursor){ .epoch = 3, .position = 100 }, &why), 0);
        ck_assert_int_eq(job_place(job, second, &(struct cursor){ .epoch = 3, .position = 130 }, &why), -EINVAL);
        ck_assert_str_eq(why.text, "position: rank 0 of job \"run\" resumed epoch 3 at 100, this rank asks for 130; "
                                   "all ranks must load the same state");
        ck_assert_int_eq(job_place(job, second, &(struct cursor){ .epoch = 3, .position = 99 }, &why), -EINVAL);

        /* A newer checkpoint of the same run, another epoch, and oneself, whatever one asked for before. */
        ck_assert_int_eq(job_place(job, second, &(struct cursor){ .epoch = 3, .position = 132 }, &why), 0);
        ck_assert_int_eq(job_place(job, second, &(struct cursor){ .epoch = 3, .position = 96 }, &why), 0);
        ck_assert_int_eq(job_place(job, second, &(struct cursor){ .epoch = 4, .position = 7 }, &why), 0);
        ck_assert_int_eq(job_place(job, second, &(struct cursor){ .epoch = 4, .position = 8 }, &why), 0);
        /* After the last sample the next epoch begins; the distance to its start is not a multiple of the world size.
         */
        ck_assert_int_eq(job_place(job, second, &(struct cursor){ .epoch = 3, .position = 1001 }, &why), 0);
        ck_assert_uint_eq(second->cursor.epoch, 4);
        ck_assert_uint_eq(second->cursor.position, 0);
        job_leave(job, first);
        ck_assert_int_eq(job_place(job, second, &(struct cursor){ .epoch = 3, .position = 130 }, &why), 0);
        job_leave(job, second);
}
END_TEST

START_TEST(a_rank_that_opens_late_is_not_compared_with_where_another_has_sought) {
        struct job_terms terms = terms_of_first();
        struct job_member *first, *second;
        struct job *job;
        struct why why;

        LIST_INIT(&jobs);
        ck_assert_int_eq(join("run", &terms, 0, &job, &first, &why), 0);
        ck_assert_int_eq(join("run", &terms, 1, &job, &second, &why), 0);
        ck_assert_int_eq(job_place(job, first, &(struct cursor){ .epoch = 3 }, &why), 0);
        job_move(job, first, &(struct cursor){ .epoch = 3, .position = 101 });
        ck_assert_int_eq(job_place(job, second, &(struct cursor){ .epoch = 3 }, &why), 0);
        job_move(job, second, &(struct cursor){ .epoch = 3, .position = 130 });

        /* One that has loaded a state is. */
        ck_assert_int_eq(job_place(job, second, &(struct cursor){ .epoch = 3, .position = 132 }, &why), -EINVAL);
        ck_assert_int_eq(job_place(job, second, &(struct cursor){ .epoch = 3, .position = 105 }, &why), 0);
        job_leave(job, first);
        job_leave(job, second);
}
END_TEST

START_TEST(places_that_are_none_are_refused_with_what_is_allowed) {
        struct job_terms terms = { .world = 3, .batch_size = 4, .partition = DLP_PARTITION_EXACT };
        struct why why;

        ck_assert_int_eq(cursor_check(&(struct cursor){ .position = 100 }, &terms, 0, 100, &why), 0);
        ck_assert_int_eq(cursor_check(&(struct cursor){ .position = 101 }, &terms, 0, 100, &why), -EINVAL);
        ck_assert_str_eq(why.text, "position: 101 is out of range; the dataset has 100 samples, 0 to 100 are allowed");
        ck_assert_int_eq(cursor_check(&(struct cursor){ .position = UINT64_MAX }, &terms, 0, 100, &why), -EINVAL);

        /* Of the 37 samples from 63 on, rank 0 gets 13 and rank 1 gets 12. */
        ck_assert_int_eq(cursor_check(&(struct cursor){ .position = 63, .step = 4 }, &terms, 0, 100, &why), 0);
        ck_assert_int_eq(cursor_check(&(struct cursor){ .position = 63, .step = 4 }, &terms, 1, 100, &why), -EINVAL);
        ck_assert_str_eq(why.text, "step: 4 is out of range; this rank has 3 batches from position 63 of an epoch on");
        terms.drop_last = true;
        ck_assert_int_eq(cursor_check(&(struct cursor){ .position = 63, .step = 4 }, &terms, 0, 100, &why), -EINVAL);
        ck_assert_int_eq(cursor_check(&(struct cursor){ .step = UINT64_MAX }, &terms, 0, 100, &why), -EINVAL);
}
END_TEST

/* ---- households ---------------------------------------------------------------------------------------------- */

static uint32_t n_households(const struct user *user) {
        const struct household *household;
        uint32_t n = 0;

        LIST_FOREACH(household, &user->households, entry)
                n++;
        return n;
}

START_TEST(a_household_lasts_as_long_as_its_jobs_and_until_the_next_one_is_made) {
        struct job_terms terms = terms_of_first();
        struct user *user = user_get(&users, 8), *other = user_get(&users, 9);
        struct household *household = household_get(user, 5);
        struct job_member *member;
        struct job *job;

        LIST_INIT(&jobs);
        ck_assert_ptr_eq(household->user, user);
        ck_assert_ptr_ne(household_get(other, 5), household);
        ck_assert_int_eq(job_join(&jobs, NULL, household, "run", &terms, NULL, 0, 1, &job, &member, NULL), 0);
        ck_assert_uint_eq(job->uid, 8);
        ck_assert_ptr_ne(household_get(user, 6), household);
        ck_assert_ptr_ne(household_get(user, 7), household);
        ck_assert_uint_eq(n_households(user), 2); /* 6 had no job */
        ck_assert_ptr_eq(household_get(user, 5), household);
        job_ref(job); /* as a stream of it that is under way */
        job_leave(job, member);
        household_get(user, 8);
        ck_assert_ptr_eq(household_get(user, 5), household);
        job_unref(job);
        ck_assert_ptr_eq(household_get(user, 5), household); /* who comes back at once finds it again */
        household_get(user, 9);
        ck_assert_uint_eq(n_households(user), 1);
        ck_assert_uint_eq(n_households(other), 1);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("job");
        TCase *job = tcase_create("job");
        SRunner *runner = srunner_create(suite);
        int n_failed;

        tcase_add_loop_test(job, each_disagreement_is_refused_with_the_field_and_both_values, 0,
                            (int)ARRAY_LENGTH(DIFFERENCES));
        tcase_add_test(job, no_term_is_left_out_of_the_comparison);
        tcase_add_test(job, a_job_remembers_which_ranks_came_also_after_all_have_left);
        tcase_add_test(job, which_ranks_came_is_remembered_for_each_user_apart);
        tcase_add_test(job, two_long_pipelines_do_not_push_each_other_out_of_the_message);
        tcase_add_test(job, a_rank_that_is_taken_is_refused_with_the_process_that_has_it);
        tcase_add_test(job, who_stands_in_the_way_and_is_ending_is_waited_for);
        tcase_add_test(job, more_ranks_than_a_node_has_are_refused);
        tcase_add_test(job, a_failed_job_takes_nobody_in_until_its_last_rank_has_left);
        tcase_add_test(job, of_many_failures_at_once_one_is_the_first);
        tcase_add_test(job, a_household_lasts_as_long_as_its_jobs_and_until_the_next_one_is_made);
        tcase_add_test(job, policies_have_names);
        tcase_add_test(job, ranks_that_resume_an_epoch_out_of_step_are_refused);
        tcase_add_test(job, a_rank_that_opens_late_is_not_compared_with_where_another_has_sought);
        tcase_add_test(job, places_that_are_none_are_refused_with_what_is_allowed);
        suite_add_tcase(suite, job);

        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
