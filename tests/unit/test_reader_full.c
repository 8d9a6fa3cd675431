/* tests/unit/test_reader_full.c: a kernel that takes nothing from the ring for a while (-EBUSY, as without memory).
 *
 * The program's own io_uring_submit_and_wait_timeout() stands before liburing's. While the kernel is busy reads stall,
 * and each stall asks for a recall: the ring must not run over. */
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/reading.h"
#include "tests/support/suite.h"

#define N_DEPTH    2u
#define N_REFUSALS 200 /* at a stall each, far more than the ring has entries */
#define REFUSAL_US 3000
#define STALL_MS   4u

struct io_uring;
struct io_uring_cqe;
struct __kernel_timespec;

static _Atomic int n_refusals;

typedef int submit_function(struct io_uring *ring, struct io_uring_cqe **completion, unsigned n,
                            struct __kernel_timespec *limit, void *signals);

/* Its declaration here is liburing's, without its types. */
int io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **completion, unsigned n,
                                     struct __kernel_timespec *limit, void *signals);

int io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **completion, unsigned n,
                                     struct __kernel_timespec *limit, void *signals) {
        static _Atomic(submit_function *) submit;

        if (!atomic_load(&submit))
                atomic_store(&submit, (submit_function *)dlsym(RTLD_NEXT, __func__));
        if (atomic_load(&n_refusals) > 0) {
                atomic_fetch_sub(&n_refusals, 1);
                usleep(REFUSAL_US);
                return -EBUSY;
        }
        return atomic_load(&submit)(ring, completion, n, limit, signals);
}

START_TEST(a_ring_that_is_not_emptied_for_long_does_not_run_over) {
        struct read_request fifos[N_DEPTH];
        struct reader_options options;
        struct reading reading;
        int writer;

        if (!reading_has_uring())
                return;
        reading_init(&reading);
        options = reading_options(&reading, "io_uring");
        options.depth = N_DEPTH;
        options.n_buffers = N_DEPTH;
        options.stall_ms = STALL_MS;
        reading_start(&reading, &options);
        ck_assert_int_eq(mkfifoat(reading.dir_fd, "fifo", 0644), 0);
        writer = openat(reading.dir_fd, "fifo", O_RDWR | O_CLOEXEC);
        ck_assert_int_ge(writer, 0);

        atomic_store(&n_refusals, N_REFUSALS);
        for (uint32_t i = 0; i < N_DEPTH; i++) {
                fifos[i] = reading_request(&reading, "fifo", 100, i);
                reader_submit(reading.reader, &fifos[i]);
        }
        reading_wait(&reading, N_DEPTH);
        for (uint32_t i = 0; i < N_DEPTH; i++)
                ck_assert_int_eq(fifos[i].result, -EINVAL);
        ck_assert_int_eq(atomic_load(&n_refusals), 0);
        close(writer);
        reading_fini(&reading);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "full", a_ring_that_is_not_emptied_for_long_does_not_run_over, 0 },
        };

        return suite_run("reader_full", rows, sizeof(rows) / sizeof(rows[0]));
}
