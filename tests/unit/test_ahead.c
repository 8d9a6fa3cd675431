/* Files are read ahead by several threads: the caller gets what one thread would have read, and the errors in order. */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "daemon/data/files/ahead.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"

#define N_FILES 120u
#define LONGEST (21u * AHEAD_WINDOW) /* longer than the ring */

/* All files are the begin of one, and some say that they are longer. */
static struct {
        int fd;
        uint64_t n_bytes[N_FILES]; /* of each file, as open() says */
        size_t bad, worse;         /* files that cannot be opened; N_FILES: none */
        size_t slow;               /* whose opening takes longer than that of all others */
        bool is_uneven;            /* opening takes some time, each another */
        _Atomic uint32_t n_opened[N_FILES];
} set = { .fd = -1 };

static struct ahead *ahead;
static uint32_t seed;

static uint8_t byte_at(uint64_t at) {
        return (uint8_t)(at * 2654435761u >> 11 ^ at >> 18);
}

static uint32_t some(uint32_t n) {
        seed = seed * 1664525 + 1013904223;
        return (seed >> 8) % n;
}

static void pause_us(long us) {
        nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL);
}

static int open_one(void *userdata, size_t idx, int64_t *settled_ns, struct stat *ret_status, struct why *why) {
        char path[64];
        int fd;

        ck_assert_ptr_eq(userdata, &set);
        ck_assert_int_ge(*settled_ns, 0);
        atomic_fetch_add(&set.n_opened[idx], 1);
        if (idx == set.slow)
                pause_us(30000);
        else if (set.is_uneven)
                pause_us((long)(idx * 7919 % 5) * 100);
        if (idx == set.bad || idx == set.worse)
                return why_set(why, -EACCES, "file %zu", idx);
        /* Not a duplicate: the descriptors of one test are counted. */
        snprintf(path, sizeof(path), "/proc/self/fd/%d", set.fd);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        ck_assert_int_ge(fd, 0);
        *ret_status = (struct stat){ .st_size = (off_t)set.n_bytes[idx] };
        return fd;
}

/* ---- checks ----------------------------------------------------------------------------------------------------- */

static int n_descriptors(void) {
        DIR *dir = opendir("/proc/self/fd");
        int n = 0;

        ck_assert_ptr_nonnull(dir);
        while (readdir(dir))
                n++;
        closedir(dir);
        return n;
}

static int n_before;

static void begin(uint32_t n_threads) {
        if (set.fd < 0) {
                uint8_t *bytes = malloc(LONGEST);

                set.fd = memfd_create("ahead", MFD_CLOEXEC);
                for (size_t i = 0; i < LONGEST; i++)
                        bytes[i] = byte_at(i);
                ck_assert_int_eq(write(set.fd, bytes, LONGEST), LONGEST);
                free(bytes);
        }
        n_before = n_descriptors();
        seed = 1;
        set.bad = set.worse = set.slow = N_FILES;
        set.is_uneven = false;
        for (size_t i = 0; i < N_FILES; i++) {
                set.n_bytes[i] = some(5) ? some(3000) : 0;
                atomic_store(&set.n_opened[i], 0);
        }
        ck_assert_int_eq(ahead_new(n_threads, &ahead), 0);
}

static void end(void) {
        ahead_free(ahead);
        ck_assert_int_eq(n_descriptors(), n_before);
}

static void begin_files(size_t n) {
        ck_assert_int_eq(ahead_begin(ahead, &(struct cuts_files){ .n = n, .open = open_one, .userdata = &set }), 0);
}

static void next_file(uint64_t n_bytes) {
        struct stat status;
        struct why why;

        ck_assert_int_eq(ahead_next_file(ahead, &status, &why), 0);
        ck_assert_uint_eq((uint64_t)status.st_size, n_bytes);
}

static void look_at(uint64_t at, size_t n) {
        const uint8_t *bytes;

        ck_assert_int_eq(ahead_bytes(ahead, at, n, &bytes), 0);
        for (size_t i = 0; i < n; i += i < 64 || n - i < 66 ? 1 : 61)
                ck_assert(bytes[i] == byte_at(at + i));
        ck_assert(bytes[n - 1] == byte_at(at + n - 1));
}

/* Pieces of up to n_most bytes; before some of them, a part of theirs. */
static void read_file(uint64_t n_bytes, uint32_t n_most) {
        for (uint64_t at = 0; at < n_bytes;) {
                size_t n = 1 + some(some(4) ? n_most : 100);

                n = n < n_bytes - at ? n : (size_t)(n_bytes - at);
                if (some(3) == 0)
                        look_at(at, 1 + some((uint32_t)n));
                look_at(at, n);
                at += n;
        }
}

static void must_end(void) {
        struct stat status;
        struct why why;

        ck_assert_int_eq(ahead_next_file(ahead, &status, &why), AHEAD_END);
        ck_assert_int_eq(ahead_next_file(ahead, &status, &why), AHEAD_END);
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static const uint32_t N_THREADS[] = { 1, 2, AHEAD_THREADS };

/* Also small ones, empty ones, and ones that end with a window. */
START_TEST(the_bytes_of_all_files_come_in_order) {
        static const uint64_t SIZES[] = { AHEAD_WINDOW,     LONGEST,          0,      2 * AHEAD_WINDOW, 1,
                                          AHEAD_WINDOW + 1, AHEAD_WINDOW - 1, LONGEST };

        begin(N_THREADS[_i % 3]);
        set.is_uneven = _i >= 3;
        memcpy(set.n_bytes + N_FILES - ARRAY_SIZE(SIZES), SIZES, sizeof(SIZES));
        for (int round = 0; round < 2; round++) {
                begin_files(N_FILES);
                for (size_t i = 0; i < N_FILES; i++) {
                        next_file(set.n_bytes[i]);
                        read_file(set.n_bytes[i], round ? 3 * AHEAD_WINDOW : 50000);
                }
                must_end();
        }
        for (size_t i = 0; i < N_FILES; i++)
                ck_assert_uint_eq(atomic_load(&set.n_opened[i]), 2);
        begin_files(0);
        must_end();
        end();
}
END_TEST

START_TEST(a_piece_may_be_longer_than_the_ring) {
        begin(N_THREADS[_i]);
        set.n_bytes[0] = set.n_bytes[1] = LONGEST;
        begin_files(2);
        next_file(LONGEST);
        look_at(0, LONGEST);
        next_file(LONGEST);
        look_at(0, 12);
        look_at(0, AHEAD_WINDOW + 12);
        look_at(5, 19 * AHEAD_WINDOW);                         /* copied */
        look_at(AHEAD_WINDOW, 3);                              /* from the copy */
        look_at(AHEAD_WINDOW + 1, LONGEST - AHEAD_WINDOW - 2); /* from the copy, and on */
        look_at(LONGEST - 1, 1);
        must_end();
        end();
}
END_TEST

/* Whichever thread was at which file. */
START_TEST(a_file_that_cannot_be_opened_is_reported_in_its_turn) {
        struct stat status;
        struct why why;

        begin(N_THREADS[_i % 3]);
        set.bad = 60;
        set.worse = 62;
        set.slow = _i < 3 ? 58 : 60;
        begin_files(N_FILES);
        for (size_t i = 0; i < 60; i++) {
                next_file(set.n_bytes[i]);
                read_file(set.n_bytes[i], 1000);
        }
        ck_assert_int_eq(ahead_next_file(ahead, &status, &why), -EACCES);
        ck_assert_str_eq(why.text, "file 60");
        end();
}
END_TEST

/* As when it shrinks after it was opened. What is there of its last window is not given. */
START_TEST(a_file_that_is_shorter_than_it_was_fails_where_it_ends) {
        uint64_t n_there = LONGEST - LONGEST % AHEAD_WINDOW;
        const uint8_t *bytes;

        begin(N_THREADS[_i]);
        set.n_bytes[0] = 77;
        set.n_bytes[1] = LONGEST + 9 * AHEAD_WINDOW;
        begin_files(N_FILES);
        next_file(77);
        read_file(77, 10);
        next_file(LONGEST + 9 * AHEAD_WINDOW);
        read_file(n_there - 5, AHEAD_WINDOW);
        look_at(n_there - 5, 5);
        ck_assert_int_eq(ahead_bytes(ahead, n_there - 5, 6, &bytes), -ENODATA);
        ck_assert_int_eq(ahead_bytes(ahead, n_there - 5, 5 * AHEAD_WINDOW, &bytes), -ENODATA);
        ck_assert_int_eq(ahead_bytes(ahead, n_there, 1, &bytes), -ENODATA);
        begin_files(1);
        next_file(77);
        end();
}
END_TEST

START_TEST(it_may_end_or_begin_anew_at_any_moment) {
        for (uint32_t stop = 0; stop < 2 * N_FILES; stop += 7) {
                begin(AHEAD_THREADS);
                set.is_uneven = true;
                for (size_t i = 0; i < N_FILES; i += 9)
                        set.n_bytes[i] = 5 * AHEAD_WINDOW / 2;
                begin_files(N_FILES);
                for (size_t i = 0; i < stop % N_FILES; i++) {
                        next_file(set.n_bytes[i]);
                        read_file(set.n_bytes[i], 3 * AHEAD_WINDOW);
                }
                if (stop >= N_FILES) {
                        set.n_bytes[0] = 3;
                        begin_files(2);
                        next_file(3);
                        look_at(0, 2);
                }
                end();
        }
        ahead_free(NULL);
}
END_TEST

START_TEST(files_that_nobody_needs_yet_are_not_opened) {
        uint32_t n = 0;

        begin(AHEAD_THREADS);
        begin_files(N_FILES);
        for (size_t i = 0; i < 50; i++) {
                next_file(set.n_bytes[i]);
                read_file(set.n_bytes[i], 1000);
        }
        ahead_free(ahead);
        for (size_t i = 0; i < N_FILES; i++) {
                ck_assert_uint_le(atomic_load(&set.n_opened[i]), 1);
                n += atomic_load(&set.n_opened[i]);
        }
        ck_assert_uint_ge(n, 50);
        ck_assert_uint_le(n, 49 + 16);
        ck_assert_int_eq(n_descriptors(), n_before);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "ahead", the_bytes_of_all_files_come_in_order, 6 },
                { "ahead", a_piece_may_be_longer_than_the_ring, 3 },
                { "ahead", a_file_that_cannot_be_opened_is_reported_in_its_turn, 6 },
                { "ahead", a_file_that_is_shorter_than_it_was_fails_where_it_ends, 3 },
                { "ahead", it_may_end_or_begin_anew_at_any_moment, 0 },
                { "ahead", files_that_nobody_needs_yet_are_not_opened, 0 },
        };

        return suite_run("ahead", rows, sizeof(rows) / sizeof(rows[0]));
}
