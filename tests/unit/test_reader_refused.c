/* tests/unit/test_reader_refused.c: what the reader does where the system gives less: io_uring filtered away, too few
 * descriptors, no locked memory, no permission, impossible options. A restriction cannot be taken back, so each is
 * tried in a child process, which tells its verdict by its exit status. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "tests/support/reading.h"

#define NOBODY 65534

/* In a child: a failed check is said on stderr and ends it. */
#define CHECK(condition, text)                                                                                         \
        do {                                                                                                           \
                if (!(condition)) {                                                                                    \
                        fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, text);                      \
                        _exit(1);                                                                                      \
                }                                                                                                      \
        } while (0)

/* Runs it in a child. No thread runs in the parent, or the child could not start any under ThreadSanitizer. */
static int in_child(void (*body)(struct reading *), struct reading *reading) {
        pid_t child;
        int status;

        fflush(NULL);
        child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
                body(reading);
                _exit(0);
        }
        while (waitpid(child, &status, 0) < 0)
                ck_assert_int_eq(errno, EINTR);
        return status;
}

/* From now on this system call fails with that error, in all threads. */
static void refuse_call(unsigned number, unsigned error) {
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { .len = ARRAY_SIZE(code), .filter = code };

        CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, strerror(errno));
        CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, strerror(errno));
}

static void become_nobody(void) {
        CHECK(setgroups(0, NULL) == 0, strerror(errno));
        CHECK(setgid(NOBODY) == 0, strerror(errno));
        CHECK(setuid(NOBODY) == 0, strerror(errno));
}

/* Starts a reader, reads file 1 (5,000 bytes) with it, and returns it. */
static struct reader *start_and_read(struct reading *reading, const struct reader_options *options) {
        struct read_request request;
        struct why why = { 0 };
        char name[32];

        CHECK(reader_start(options, &reading->reader, &why) == 0, why.text);
        file_name(name, 1);
        request = reading_request(reading, name, 5000, 0);
        CHECK(reading_read(reading, &request) == 0, request.why.text);
        CHECK(file_is(request.buffer, 1, 0, 5000), "other bytes");
        return reading->reader;
}

static void expect_threads(struct reading *reading, const char *backend_why) {
        struct reader_options options = reading_options(reading, "auto");
        const struct reader_report *report;
        struct why why = { 0 };

        report = reader_report(start_and_read(reading, &options));
        CHECK(strcmp(report->backend, "threads") == 0, report->backend);
        CHECK(strcmp(report->backend_why.text, backend_why) == 0, report->backend_why.text);
        CHECK(report->n_threads == 4, "n_threads");
        CHECK(!report->has_fixed_buffers, "buffers");
        CHECK(reader_stop(reading->reader) == 0, "stop");

        /* Who insists is told. */
        options.backend = "io_uring";
        CHECK(reader_start(&options, &reading->reader, &why) < 0, "started");
        CHECK(strncmp(why.text, "reader: ", 8) == 0 && strcmp(why.text + 8, backend_why) == 0, why.text);
}

static void without_setup(struct reading *reading) {
        refuse_call(SYS_io_uring_setup, EPERM);
        expect_threads(reading, "io_uring refused at setup (EPERM: seccomp or kernel.io_uring_disabled?)");
}

static void without_the_calls(struct reading *reading) {
        refuse_call(SYS_io_uring_setup, ENOSYS);
        expect_threads(reading, "io_uring refused at setup (ENOSYS: a kernel before 5.19?)");
}

static void without_register(struct reading *reading) {
        refuse_call(SYS_io_uring_register, EPERM);
        expect_threads(reading, "io_uring refused at registering files (EPERM: seccomp or kernel.io_uring_disabled?)");
}

static void without_enter(struct reading *reading) {
        refuse_call(SYS_io_uring_enter, EACCES);
        expect_threads(reading, "io_uring refused at opening a file (EACCES: seccomp or kernel.io_uring_disabled?)");
}

static void with_few_descriptors(struct reading *reading) {
        struct rlimit limit = { .rlim_cur = READING_DEPTH - 1, .rlim_max = READING_DEPTH - 1 };

        CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, strerror(errno));
        expect_threads(reading, "io_uring refused at registering files (EMFILE: more files than RLIMIT_NOFILE allows)");
}

START_TEST(where_io_uring_is_refused_threads_take_over_and_the_report_says_why) {
        static void (*const BODIES[])(struct reading *) = { without_setup, without_the_calls, without_register,
                                                            without_enter, with_few_descriptors };
        struct reading reading;

        if (!reading_has_uring())
                return;
        reading_init(&reading);
        file_write(&reading, 1, 5000);
        ck_assert_int_eq(in_child(BODIES[_i], &reading), 0);
        reading_fini(&reading);
}
END_TEST

START_TEST(auto_always_finds_a_way_and_says_what_it_missed) {
        struct reader_options options;
        const struct reader_report *report;
        struct reading reading;

        reading_init(&reading);
        options = reading_options(&reading, "auto");
        reading_start(&reading, &options);
        report = reader_report(reading.reader);
        if (strcmp(report->backend, "io_uring") == 0) {
                ck_assert_str_eq(report->backend_why.text, "");
        } else {
                ck_assert_str_eq(report->backend, "threads");
                ck_assert_str_ne(report->backend_why.text, "");
        }
        ck_assert_int_eq(report->has_fixed_buffers, report->buffers_why.text[0] == '\0');
        reading_fini(&reading);
}
END_TEST

static void with_memory_to_lock(struct reading *reading) {
        struct reader_options options = reading_options(reading, "io_uring");
        struct rlimit limit = { .rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY };
        const struct reader_report *report;

        setrlimit(RLIMIT_MEMLOCK, &limit); /* or CAP_IPC_LOCK does it */
        report = reader_report(start_and_read(reading, &options));
        CHECK(report->has_fixed_buffers, report->buffers_why.text);
        CHECK(report->buffers_why.text[0] == '\0', report->buffers_why.text);
        CHECK(reader_stop(reading->reader) == 0, "stop");
}

static void lock_at_most(rlim_t n_bytes) {
        struct rlimit limit = { .rlim_cur = n_bytes, .rlim_max = n_bytes };

        CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0, strerror(errno));
        become_nobody();
}

/* Enough for the ring, not for the buffers. */
static void with_little_memory_to_lock(struct reading *reading) {
        struct reader_options options = reading_options(reading, "io_uring");
        const struct reader_report *report;

        lock_at_most(1 << 20);
        report = reader_report(start_and_read(reading, &options));
        CHECK(!report->has_fixed_buffers, "registered");
        CHECK(strcmp(report->buffers_why.text,
                     "2.0 MiB refused, RLIMIT_MEMLOCK is 1.0 MiB; raise it, or reading is a little "
                     "slower: Cannot allocate memory") == 0,
              report->buffers_why.text);
        CHECK(reader_stop(reading->reader) == 0, "stop");
}

/* Newer kernels count the ring itself, older ones only the buffers: either way the file is read. */
static void without_memory_to_lock(struct reading *reading) {
        struct reader_options options = reading_options(reading, "auto");
        const struct reader_report *report;

        lock_at_most(0);
        report = reader_report(start_and_read(reading, &options));
        CHECK(!report->has_fixed_buffers, "registered");
        if (strcmp(report->backend, "threads") == 0)
                CHECK(strcmp(report->backend_why.text, "io_uring refused at setup (ENOMEM: RLIMIT_MEMLOCK?)") == 0,
                      report->backend_why.text);
        CHECK(reader_stop(reading->reader) == 0, "stop");
}

START_TEST(buffers_are_registered_where_memory_may_be_locked_and_else_read_into_plainly) {
        struct reading reading;

        if (!reading_has_uring())
                return;
        if (geteuid() != 0) {
                printf("skip: locked memory: needs root to give up\n");
                return;
        }
        reading_init(&reading);
        file_write(&reading, 1, 5000);
        ck_assert_int_eq(in_child(with_memory_to_lock, &reading), 0);
        ck_assert_int_eq(in_child(with_little_memory_to_lock, &reading), 0);
        ck_assert_int_eq(in_child(without_memory_to_lock, &reading), 0);
        reading_fini(&reading);
}
END_TEST

static int loop_index;

static void read_the_unreadable(struct reading *reading) {
        struct reader_options options = reading_options(reading, reading_backend(loop_index));
        struct read_request request;
        char name[32];

        if (geteuid() == 0)
                become_nobody();
        start_and_read(reading, &options);
        file_name(name, 2);
        request = reading_request(reading, name, 5000, 0);
        CHECK(reading_read(reading, &request) == -EACCES, request.why.text);
        CHECK(strcmp(request.why.text, "file000002.jpg: Permission denied") == 0, request.why.text);
        CHECK(reader_stop(reading->reader) == 0, "stop");
}

START_TEST(a_file_without_permission_is_named) {
        struct reading reading;

        if (!reading_backend(_i))
                return;
        loop_index = _i;
        reading_init(&reading);
        file_write(&reading, 1, 5000);
        file_write(&reading, 2, 5000);
        ck_assert_int_eq(fchmodat(reading.dir_fd, "file000002.jpg", 0, 0), 0);
        ck_assert_int_eq(in_child(read_the_unreadable, &reading), 0);
        reading_fini(&reading);
}
END_TEST

/* done() is held up, on each of four threads at most; that many have ceased to be outstanding, and then one more. */
#define TOO_MANY (READING_DEPTH + 4 + 1)

static void submit_too_many(struct reading *reading) {
        struct reader_options options = reading_options(reading, reading_backend(loop_index));
        struct read_request requests[TOO_MANY];
        struct rlimit no_core = { 0, 0 };
        char name[32];

        setrlimit(RLIMIT_CORE, &no_core);
        CHECK(freopen("/dev/null", "w", stderr), "stderr");
        pthread_mutex_lock(&reading->lock); /* nothing can be done() */
        CHECK(reader_start(&options, &reading->reader, NULL) == 0, "start");
        file_name(name, 1);
        for (uint32_t i = 0; i < TOO_MANY; i++) {
                requests[i] = reading_request(reading, name, 5000, i % READING_DEPTH);
                reader_submit(reading->reader, &requests[i]);
        }
}

START_TEST(more_than_depth_outstanding_is_caught) {
        struct reading reading;
        int status;

        if (!reading_backend(_i))
                return;
        loop_index = _i;
        reading_init(&reading);
        file_write(&reading, 1, 5000);
        status = in_child(submit_too_many, &reading);
        ck_assert(WIFSIGNALED(status));
        ck_assert_int_eq(WTERMSIG(status), SIGABRT);
        reading_fini(&reading);
}
END_TEST

START_TEST(impossible_options_are_refused_with_what_is_allowed) {
        struct reading reading;
        struct reader_options options;
        struct why why;

        reading_init(&reading);

        options = reading_options(&reading, "aio");
        ck_assert_int_eq(reader_start(&options, &reading.reader, &why), -EINVAL);
        ck_assert_str_eq(why.text, "reader: \"aio\" is not allowed; choose one of: auto io_uring threads");

        options = reading_options(&reading, "auto");
        options.depth = 0;
        ck_assert_int_eq(reader_start(&options, &reading.reader, &why), -EINVAL);
        ck_assert_str_eq(why.text, "reader: a depth of 0 is not between 1 and 4096");
        options.depth = READER_DEPTH_MAX + 1;
        ck_assert_int_eq(reader_start(&options, &reading.reader, &why), -EINVAL);

        options = reading_options(&reading, "threads");
        options.n_threads = 100000;
        ck_assert_int_eq(reader_start(&options, &reading.reader, &why), -EINVAL);
        ck_assert_ptr_null(reading.reader);
        reading_fini(&reading);
}
END_TEST

START_TEST(the_largest_depth_starts_and_reads) {
        struct reader_options options;
        struct reading reading;
        struct read_request request;
        char name[32];

        if (!reading_backend(_i))
                return;
        reading_init(&reading);
        file_write(&reading, 1, 5000);
        file_name(name, 1);
        options = reading_options(&reading, _i == 0 ? "auto" : "threads"); /* few descriptors: threads, fine */
        options.depth = READER_DEPTH_MAX;
        reading_start(&reading, &options);
        request = reading_request(&reading, name, 5000, 0);
        ck_assert_int_eq(reading_read(&reading, &request), 0);
        reading_fini(&reading);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("reader, refused");
        TCase *refused = tcase_create("refused");
        SRunner *runner;
        int n_failed;

        tcase_set_timeout(refused, 60);
        tcase_add_loop_test(refused, where_io_uring_is_refused_threads_take_over_and_the_report_says_why, 0, 5);
        tcase_add_test(refused, auto_always_finds_a_way_and_says_what_it_missed);
        tcase_add_test(refused, buffers_are_registered_where_memory_may_be_locked_and_else_read_into_plainly);
        tcase_add_loop_test(refused, a_file_without_permission_is_named, 0, 2);
        tcase_add_loop_test(refused, more_than_depth_outstanding_is_caught, 0, 2);
        tcase_add_test(refused, impossible_options_are_refused_with_what_is_allowed);
        tcase_add_loop_test(refused, the_largest_depth_starts_and_reads, 0, 2);
        suite_add_tcase(suite, refused);

        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed == 0 ? 0 : 1;
}
