/* The nodes of a run: one alone, who is late among several, and how a process finds out that it is one of several. What
 * needs several processes is in tests/integration/test_cluster.py. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/staging/nodes/cluster.h"
#include "daemon/staging/nodes/cluster_guard.h"
#include "daemon/staging/nodes/cluster_watch.h"
#include "tests/support/suite.h"

#define S       1000000000ull
#define STALL_S 60u
#define N_NODES 4u

/* ---- started how ------------------------------------------------------------------------------------------------- */

static const struct {
        const char *environment[3]; /* NAME=value */
        bool launched;
} STARTS[] = {
        { { NULL }, false },
        { { "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=4" }, true },
        { { "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1" }, false },
        { { "PMI_RANK=3", "PMI_SIZE=4" }, true },
        { { "PMIX_RANK=3" }, true },
        { { "PMIX_RANK=0", "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1" }, false },
        { { "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=8" }, true },
        { { "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=1" }, false }, /* srun --pty bash */
        { { "SLURM_PROCID=0", "SLURM_NTASKS=8" }, false },         /* in a batch script */
        { { "OMPI_COMM_WORLD_SIZE=4" }, false },                   /* no rank: somebody's script */
        { { "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=many" }, false },
        { { "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=-1" }, false },
};

static void forget_launchers(void) {
        static const char *const NAMES[] = {
                "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "PMIX_RANK", "SLURM_PROCID",
                "SLURM_NTASKS",         "SLURM_STEP_NUM_TASKS"
        };

        for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
                unsetenv(NAMES[i]);
}

START_TEST(a_process_knows_from_its_environment_whether_it_is_one_of_several) {
        char words[3][64];

        forget_launchers();
        for (size_t i = 0; i < 3 && STARTS[_i].environment[i]; i++) {
                snprintf(words[i], sizeof(words[i]), "%s", STARTS[_i].environment[i]);
                ck_assert_int_eq(putenv(words[i]), 0);
        }
        ck_assert_msg(cluster_is_launched() == STARTS[_i].launched, "row %d", _i);
        forget_launchers();
}
END_TEST

/* ---- alone ------------------------------------------------------------------------------------------------------- */

START_TEST(alone_everything_is_where_it_should_be_at_once) {
        struct node_progress news = { .n_bytes_done = 17, .doing = "reading" };
        uint8_t me[] = { 1 }, nobody[] = { 0 }, bytes[] = "of one node";
        char all[sizeof(bytes)] = "", host[PROGRESS_NAME_SIZE] = "";
        struct cluster_group *group = NULL, *none = (struct cluster_group *)me;
        struct cluster_options options = { .stall_s = 1 };
        struct cluster_spread *spread = NULL;
        struct cluster *cluster = NULL;
        struct why why;

        forget_launchers();
        ck_assert_int_eq(cluster_join(&options, &cluster, &why), 0);
        gethostname(host, sizeof(host) - 1);
        ck_assert_uint_eq(cluster_n_nodes(cluster), 1);
        ck_assert_uint_eq(cluster_node(cluster), 0);
        ck_assert_str_eq(cluster_name(cluster, 0), host);
        ck_assert_int_eq(cluster_gather(cluster, bytes, sizeof(bytes), all, &why), 0);
        ck_assert_str_eq(all, "of one node");
        ck_assert_int_eq(cluster_gather(cluster, NULL, 0, NULL, &why), 0);
        ck_assert_int_eq(cluster_share(cluster, 0, bytes, sizeof(bytes), &why), 0);
        ck_assert_int_eq(cluster_group_new(cluster, nobody, &none, &why), 0);
        ck_assert_ptr_null(none);
        ck_assert_int_eq(cluster_group_new(cluster, me, &group, &why), 0);
        ck_assert_int_eq(spread_start(group, 0, bytes, sizeof(bytes), &spread, &why), 0);
        ck_assert_int_eq(spread_test(spread, &why), 0);
        ck_assert_str_eq((char *)bytes, "of one node");
        ck_assert_int_eq(cluster_tell(cluster, &news, &why), 0);
        ck_assert_uint_eq(cluster_news(cluster, 0)->n_bytes_done, 17);
        cluster_group_free(group);
        cluster_group_free(NULL);
        cluster_leave(cluster);
        cluster_leave(NULL);
}
END_TEST

START_TEST(aborting_ends_the_process_with_the_status) {
        struct cluster_options options = { .stall_s = 1 };
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                struct cluster *cluster = NULL;

                forget_launchers();
                if (cluster_join(&options, &cluster, NULL) == 0)
                        cluster_abort(cluster, 71);
                _exit(1);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 71);
}
END_TEST

START_TEST(a_call_that_does_not_come_back_ends_the_process) {
        pid_t pid = fork();
        struct guard guard;
        int status;

        if (pid == 0) {
                guard_begin(&guard, 1, 71, NULL);
                for (;;)
                        pause();
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 71);

        guard_begin(&guard, 3600, 71, "a test"); /* and one that does come back does not */
        guard_end(&guard);
}
END_TEST

/* ---- who is late ------------------------------------------------------------------------------------------------- */

struct fixture {
        struct watch *watch;
        uint64_t now_ns;
        struct node_progress news[N_NODES];
        bool waits[N_NODES], is_gone[N_NODES];
        struct why why;
};

static char names[N_NODES][PROGRESS_NAME_SIZE] = { "ant", "bee", "cat", "dog" };

static void setup(struct fixture *f, uint32_t node) {
        *f = (struct fixture){ .now_ns = 1000 * S };
        ck_assert_int_eq(cluster_watch_new(node, N_NODES, (const char(*)[PROGRESS_NAME_SIZE])names, STALL_S, f->now_ns,
                                           &f->watch),
                         0);
}

/* Lets time go by as the first node sees it; those that are not gone tell their news twice a second. Returns what the
 * last look said. */
static int pass(struct fixture *f, uint32_t seconds) {
        for (uint32_t i = 0; i < 2 * seconds; i++) {
                int r;

                f->now_ns += S / 2;
                for (uint32_t node = 0; node < N_NODES; node++)
                        if (!f->is_gone[node])
                                watch_hear(f->watch, node, &f->news[node], 0, f->waits[node], f->now_ns);
                r = watch_judge(f->watch, f->now_ns, &f->why);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* The same, and one of them gets on. */
static int pass_getting_on(struct fixture *f, uint32_t seconds, uint32_t node) {
        for (uint32_t i = 0; i < seconds; i++) {
                int r;

                f->news[node].n_bytes_done++;
                r = pass(f, 1);
                if (r < 0)
                        return r;
        }
        return 0;
}

START_TEST(who_gets_on_while_others_wait_is_left_in_peace) {
        struct fixture f;

        setup(&f, 0);
        f.waits[0] = f.waits[1] = f.waits[2] = true;
        ck_assert_int_eq(pass_getting_on(&f, 20 * STALL_S, 3), 0);
        ck_assert_uint_eq(watch_news(f.watch, 3)->n_bytes_done, 20 * STALL_S);
        cluster_watch_free(f.watch);
}
END_TEST

START_TEST(who_is_not_heard_of_is_named_and_nobody_else) {
        struct fixture f;

        setup(&f, 0);
        strcpy(f.news[2].doing, "writing x.jpg");
        ck_assert_int_eq(pass_getting_on(&f, 10, 1), 0);
        f.is_gone[2] = true;
        ck_assert_int_eq(pass_getting_on(&f, STALL_S, 1), 0);
        ck_assert_int_eq(pass_getting_on(&f, 2, 1), -ETIMEDOUT);
        ck_assert_ptr_nonnull(strstr(f.why.text, "cat (writing x.jpg)"));
        ck_assert_ptr_nonnull(strstr(f.why.text, "60 s"));
        ck_assert_ptr_null(strstr(f.why.text, "bee"));
        ck_assert_ptr_null(strstr(f.why.text, "dog"));
        cluster_watch_free(f.watch);
}
END_TEST

START_TEST(who_is_silent_longest_is_named_first) {
        struct fixture f;
        int r = 0;

        setup(&f, 0);
        for (uint32_t node = 0; node < N_NODES; node++)
                watch_hear(f.watch, node, &f.news[node], 0, false, f.now_ns);
        f.now_ns += S / 10;
        watch_hear(f.watch, 1, &f.news[1], 0, false, f.now_ns); /* the bee's last word, after the cat's */
        f.now_ns += S;
        for (uint32_t i = 0; i < 2 * STALL_S && r == 0; i++) {
                watch_hear(f.watch, 0, &f.news[0], 0, false, f.now_ns);
                watch_hear(f.watch, 3, &f.news[3], i, false, f.now_ns);
                r = watch_judge(f.watch, f.now_ns, &f.why);
                f.now_ns += S + S / 2;
        }
        ck_assert_int_eq(r, -ETIMEDOUT);
        ck_assert_msg(strstr(f.why.text, "no word from cat, bee:") != NULL, "%s", f.why.text);
        cluster_watch_free(f.watch);
}
END_TEST

START_TEST(with_one_that_is_given_up_those_that_are_nearly_as_silent_are_named) {
        struct fixture f;
        int r = 0;

        setup(&f, 0);
        for (uint32_t node = 0; node < N_NODES; node++)
                watch_hear(f.watch, node, &f.news[node], 0, false, f.now_ns);
        for (uint32_t i = 0; i < 2 * STALL_S && r == 0; i++) { /* the bee is heard for 10 s longer than the cat */
                watch_hear(f.watch, 0, &f.news[0], 0, false, f.now_ns);
                watch_hear(f.watch, 3, &f.news[3], i, false, f.now_ns);
                if (i <= 10)
                        watch_hear(f.watch, 1, &f.news[1], i, false, f.now_ns);
                r = watch_judge(f.watch, f.now_ns, &f.why);
                f.now_ns += S;
        }
        ck_assert_int_eq(r, -ETIMEDOUT);
        ck_assert_msg(strstr(f.why.text, "no word from cat, bee:") != NULL, "%s", f.why.text);
        cluster_watch_free(f.watch);
}
END_TEST

START_TEST(at_a_standstill_those_that_do_not_wait_are_named) {
        struct fixture f;

        setup(&f, 0);
        f.waits[0] = f.waits[1] = true;
        strcpy(f.news[2].doing, "waiting for chunk 7");
        strcpy(f.news[3].doing, "writing\x1b[2J y.jpg");
        ck_assert_int_eq(pass_getting_on(&f, 100, 3), 0);
        ck_assert_int_eq(pass(&f, STALL_S - 1), 0);
        ck_assert_int_eq(pass(&f, 3), -ETIMEDOUT);
        ck_assert_ptr_nonnull(strstr(f.why.text, "dog (writing?[2J y.jpg)"));
        ck_assert_ptr_null(strstr(f.why.text, "cat"));
        cluster_watch_free(f.watch);
}
END_TEST

START_TEST(if_all_wait_for_each_other_all_are_named) {
        struct fixture f;

        setup(&f, 0);
        for (uint32_t i = 0; i < N_NODES; i++)
                f.waits[i] = true;
        ck_assert_int_eq(pass(&f, STALL_S + 2), -ETIMEDOUT);
        for (uint32_t i = 0; i < N_NODES; i++)
                ck_assert_ptr_nonnull(strstr(f.why.text, names[i]));
        cluster_watch_free(f.watch);
}
END_TEST

START_TEST(time_in_which_nobody_looked_is_held_against_nobody) {
        struct fixture f;

        setup(&f, 0);
        ck_assert_int_eq(pass(&f, 10), 0);
        f.now_ns += 3600 * S; /* this process was stopped: nothing heard, nothing looked at */
        ck_assert_int_eq(watch_judge(f.watch, f.now_ns, &f.why), 0);
        f.is_gone[1] = true;
        ck_assert_int_eq(pass_getting_on(&f, STALL_S - 2, 0), 0);
        ck_assert_int_eq(pass_getting_on(&f, 5, 0), -ETIMEDOUT);
        ck_assert_ptr_nonnull(strstr(f.why.text, "bee"));
        cluster_watch_free(f.watch);
}
END_TEST

START_TEST(the_others_watch_the_first_alone_and_give_it_more_time) {
        struct fixture f;

        setup(&f, 2);
        for (uint32_t i = 0; i < 10 * STALL_S; i++) {
                f.now_ns += S;
                watch_hear_answer(f.watch, f.now_ns);
                ck_assert_int_eq(watch_judge(f.watch, f.now_ns, &f.why), 0);
        }
        for (uint32_t i = 0; i <= STALL_S; i++) { /* the first itself gives up somebody by now, and says who it is */
                f.now_ns += S;
                ck_assert_int_eq(watch_judge(f.watch, f.now_ns, &f.why), 0);
        }
        for (uint32_t i = 0; i < STALL_S; i++) {
                f.now_ns += S;
                if (watch_judge(f.watch, f.now_ns, &f.why) < 0)
                        break;
        }
        ck_assert_int_eq(watch_judge(f.watch, f.now_ns, &f.why), -ETIMEDOUT);
        ck_assert_ptr_nonnull(strstr(f.why.text, "ant"));
        cluster_watch_free(f.watch);
}
END_TEST

START_TEST(a_thousand_late_nodes_make_a_sentence_that_ends) {
        static char many[1000][PROGRESS_NAME_SIZE];
        struct watch *watch = NULL;
        struct why why;
        int r = 0;

        for (int i = 0; i < 1000; i++)
                snprintf(many[i], sizeof(many[i]), "machine-%03d.of-a-large-cluster.example.org", i);
        ck_assert_int_eq(cluster_watch_new(0, 1000, (const char(*)[PROGRESS_NAME_SIZE])many, STALL_S, S, &watch), 0);
        for (uint64_t now = 1; now < 2 * STALL_S && r == 0; now++)
                r = watch_judge(watch, now * S, &why);
        ck_assert_int_eq(r, -ETIMEDOUT);
        ck_assert_ptr_nonnull(strstr(why.text, "machine-001"));
        ck_assert_ptr_nonnull(strstr(why.text, " more: stopped"));
        ck_assert_ptr_nonnull(strstr(why.text, "60 s"));
        cluster_watch_free(watch);
}
END_TEST

START_TEST(texts_without_an_end_do_no_harm) {
        struct node_progress news;
        struct fixture f;

        setup(&f, 0);
        memset(&news, 'x', sizeof(news));
        watch_hear(f.watch, 1, &news, 1, false, f.now_ns);
        ck_assert_uint_lt(strlen(watch_news(f.watch, 1)->last_error), sizeof(news.last_error));
        f.is_gone[1] = true;
        ck_assert_int_eq(pass_getting_on(&f, STALL_S + 2, 0), -ETIMEDOUT);
        cluster_watch_free(f.watch);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "start", a_process_knows_from_its_environment_whether_it_is_one_of_several,
                  sizeof(STARTS) / sizeof(STARTS[0]) },
                { "alone", alone_everything_is_where_it_should_be_at_once },
                { "alone", aborting_ends_the_process_with_the_status },
                { "alone", a_call_that_does_not_come_back_ends_the_process },
                { "late", who_gets_on_while_others_wait_is_left_in_peace },
                { "late", who_is_not_heard_of_is_named_and_nobody_else },
                { "late", who_is_silent_longest_is_named_first },
                { "late", with_one_that_is_given_up_those_that_are_nearly_as_silent_are_named },
                { "late", at_a_standstill_those_that_do_not_wait_are_named },
                { "late", if_all_wait_for_each_other_all_are_named },
                { "late", time_in_which_nobody_looked_is_held_against_nobody },
                { "late", the_others_watch_the_first_alone_and_give_it_more_time },
                { "late", a_thousand_late_nodes_make_a_sentence_that_ends },
                { "late", texts_without_an_end_do_no_harm },
        };

        return suite_run("cluster", rows, sizeof(rows) / sizeof(rows[0]));
}
