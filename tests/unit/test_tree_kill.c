/* kill -9 at random moments: what was written stays written, nothing wrong counts as right, what is served stays whole.
 */

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "tests/support/staged.h"

/* Under the sanitizers a process takes long to begin and to end. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define N_KILLS 8
#else
#define N_KILLS 50
#endif

/* Seen by both processes. */
struct shared {
        _Atomic uint64_t n_opened;
        _Atomic bool is_done;
        _Atomic uint8_t was_written[65536]; /* tree_write() has returned: a chunk each */
};

static struct staged staged;
static struct shared *shared;
static uint8_t *buffer, *should;
static uint64_t longest_ns; /* that a run may take: kills come within it */

static void setup(void) {
        staged_begin(&staged);
        buffer = malloc(CHUNK_BYTES);
        should = malloc(CHUNK_BYTES);
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ck_assert(shared != MAP_FAILED);
        srandom((unsigned)clock_now_ns());
}

static void teardown(void) {
        staged_end(&staged);
        munmap(shared, sizeof(*shared));
        free(buffer);
        free(should);
}

static void fill(void) {
        for (uint64_t i = 0; i < chunks_count(staged.chunks); i++) {
                if (!staged_is_missing(&staged, i))
                        continue;
                staged_chunk(&staged, i, buffer);
                if (tree_write(staged.tree, i, buffer, &staged.why) != 0)
                        _exit(2);
                shared->was_written[i] = 1;
        }
}

/* A run in a process of its own, killed after a while. Returns true if it came to its end before. */
static bool run_and_kill(bool publishes) {
        uint64_t started_ns = clock_now_ns();
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                if (staged_open(&staged) < 0)
                        _exit(3);
                shared->n_opened++;
                fill();
                if (publishes && staged_publish(&staged) < 0)
                        _exit(4);
                shared->is_done = true;
                for (;;)
                        pause();
        }
        if (longest_ns == 0) /* the first one runs to its end, to know how long that takes */
                while (!shared->is_done)
                        usleep(200);
        else
                usleep((useconds_t)((uint64_t)random() % (longest_ns / 1000 + 1)));
        kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFSIGNALED(status));
        if (longest_ns == 0)
                longest_ns = clock_now_ns() - started_ns;
        else if (shared->is_done) /* it is faster now: most kills are to come before the end */
                longest_ns = longest_ns / 4 * 3;
        return shared->is_done;
}

/* Everything that counts as present has the right bytes, by our own reading. */
static void check_present(void) {
        for (uint64_t i = 0; i < chunks_count(staged.chunks); i++) {
                uint32_t n = chunks_get(staged.chunks, i).n_bytes;

                ck_assert_msg(!shared->was_written[i] || !staged_is_missing(&staged, i), "chunk %lu is lost",
                              (unsigned long)i);
                if (staged_is_missing(&staged, i))
                        continue;
                staged_chunk(&staged, i, should);
                ck_assert_int_eq(tree_read(staged.tree, i, buffer, &staged.why), 0);
                ck_assert_mem_eq(buffer, should, n);
        }
}

/* Its files are deleted at the end, with all others: ext4 is slow where many were deleted a moment ago. */
static void forget_version(int number) {
        char old[PATH_MAX + 16];

        staged_close(&staged);
        snprintf(old, sizeof(old), "%s.%d", staged.place.folder, number);
        ck_assert_int_eq(rename(staged.place.folder, old), 0);
        memset(shared, 0, sizeof(*shared));
}

static void plan_files(bool large) {
        static const struct staged_file LARGE[] = { { "one", 6 * CHUNK_BYTES + 1, 1, true, NULL, false },
                                                    { "two", 4 * CHUNK_BYTES, 2, false, NULL, false },
                                                    { "x/three", 70000, 3, true, NULL, false } };

        if (large)
                staged_plan(&staged, LARGE, ARRAY_SIZE(LARGE));
        else
                staged_plan_many(&staged, 3000, 3000, 1);
}

START_TEST(what_was_written_before_a_kill_is_there_after_it) {
        uint64_t n_ends = 0;

        longest_ns = 0;
        plan_files(_i == 0);
        for (int i = 0; i <= N_KILLS; i++) {
                bool is_done = run_and_kill(false);
                int r = staged_open(&staged);

                ck_assert_msg(r == 0, "%d %s", r, staged.why.text);
                check_present();
                n_ends += is_done;
                if (is_done) {
                        ck_assert_uint_eq(staged_n_missing(&staged), 0);
                        staged_check_all(&staged);
                        forget_version(i);
                }
                staged_close(&staged);
        }
        ck_assert_uint_le(n_ends, N_KILLS);
}
END_TEST

/* What the stamp names is whole, and the link leads to a version that is. */
static void check_served(void) {
        char file[PATH_MAX + 64];
        struct stamp stamp;

        ck_assert_int_eq(stamp_read(&staged.place, &stamp, &staged.why), 0);
        for (uint64_t seed = 1; seed <= 2; seed++) {
                char version[PLACE_VERSION_SIZE];

                staged_plan_many(&staged, 400, 3000, seed * 1000);
                place_version(plan_digest(staged.plan), version);
                if (strcmp(version, stamp.version) == 0) {
                        staged_check_all(&staged);
                        ck_assert_str_eq(stamp.manifest, plan_digest(staged.plan));
                }
        }
        snprintf(file, sizeof(file), "%s/many/0003/000399.bin", staged.place.path);
        ck_assert_int_eq(access(file, R_OK), 0);
}

START_TEST(a_kill_while_it_publishes_leaves_one_whole_version_in_service) {
        uint64_t n_ends = 0;

        longest_ns = 0;
        staged_plan_many(&staged, 400, 3000, 1000);
        ck_assert_int_eq(staged_open(&staged), 0);
        fill();
        ck_assert_int_eq(staged_publish(&staged), 0);
        for (int i = 0; i <= N_KILLS; i++) {
                memset(shared, 0, sizeof(*shared));
                staged_plan_many(&staged, 400, 3000, i % 2 == 0 ? 2000 : 1000);
                n_ends += run_and_kill(true);
                check_served();
        }
        ck_assert_uint_le(n_ends, N_KILLS); /* else nothing was interrupted */
        staged_plan_many(&staged, 400, 3000, 2000);
        ck_assert_int_eq(staged_open(&staged), 0);
        fill();
        ck_assert_int_eq(staged_publish(&staged), 0);
        check_served();
}
END_TEST

int main(void) {
        Suite *suite = suite_create("tree_kill");
        TCase *all = tcase_create("all");
        SRunner *runner;
        int n_failed;

        tcase_add_checked_fixture(all, setup, teardown);
        tcase_add_loop_test(all, what_was_written_before_a_kill_is_there_after_it, 0, 2);
        tcase_add_test(all, a_kill_while_it_publishes_leaves_one_whole_version_in_service);
        tcase_set_timeout(all, 300);
        suite_add_tcase(suite, all);

        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
