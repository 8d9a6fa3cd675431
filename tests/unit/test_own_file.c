/* Files in memory that nobody can change: sealing waits for whoever holds their pages. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/machine/own_file.h"
#include "daemon/base/threads/thread.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"

#define N_BYTES 8192u

static void *let_go(void *mapping) {
        const struct timespec while_held = { .tv_nsec = 200000000 };

        nanosleep(&while_held, NULL);
        munmap(mapping, N_BYTES);
        return NULL;
}

static int make(void **ret_mapping) {
        int fd = -1;

        ck_assert_int_eq(own_file_make("test", &fd), 0);
        ck_assert(ftruncate(fd, N_BYTES) == 0);
        *ret_mapping = mmap(NULL, N_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ck_assert(*ret_mapping != MAP_FAILED);
        return fd;
}

START_TEST(a_file_whose_pages_are_held_for_a_moment_is_sealed_after_it) {
        void *mapping;
        _cleanup_(closep) int fd = make(&mapping);
        pthread_t thread;

        ck_assert(thread_start(&thread, "holder", let_go, mapping) == 0);
        ck_assert_int_eq(own_file_seal(fd), 0);
        thread_join(thread);
        ck_assert_int_eq(own_file_kind(fd), OWN_FILE_MEMORY);
        ck_assert(write(fd, "x", 1) < 0 && errno == EPERM);
}
END_TEST

START_TEST(a_file_that_stays_held_is_not_sealed) {
        void *mapping;
        _cleanup_(closep) int fd = make(&mapping);

        ck_assert_int_eq(own_file_seal(fd), -EBUSY);
        ck_assert_int_ne(own_file_kind(fd), OWN_FILE_MEMORY);
        munmap(mapping, N_BYTES);
        ck_assert_int_eq(own_file_seal(fd), 0);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "seal", a_file_whose_pages_are_held_for_a_moment_is_sealed_after_it },
                { "seal", a_file_that_stays_held_is_not_sealed },
        };

        return suite_run("own_file", rows, ARRAY_SIZE(rows));
}
