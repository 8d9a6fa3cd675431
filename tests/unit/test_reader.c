/* tests/unit/test_reader.c: what the reader delivers and refuses, each test for io_uring and for threads. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/userfaultfd.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/threads/thread.h"
#include "daemon/io/reader_private.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "tests/support/reading.h"

/* Starts a reader of the loop's backend with changed options, or leaves the test where there is none. */
#define START(reading, ...)                                                                                            \
        const char *backend = reading_backend(_i);                                                                     \
        struct reader_options options;                                                                                 \
                                                                                                                       \
        if (!backend)                                                                                                  \
                return;                                                                                                \
        reading_init(&(reading));                                                                                      \
        options = reading_options(&(reading), backend);                                                                \
        __VA_ARGS__;                                                                                                   \
        reading_start(&(reading), &options)

static bool is_uring(const struct reading *reading) {
        return strcmp(reader_report(reading->reader)->backend, "io_uring") == 0;
}

static void expect(struct reading *reading, struct read_request request, int result, const char *text) {
        ck_assert_msg(reading_read(reading, &request) == result, "%s: %d, \"%s\"", request.path, request.result,
                      request.why.text);
        ck_assert_str_eq(request.why.text, text);
        if (result < 0)
                ck_assert_uint_eq(request.n_bytes, 0);
}

/* ---- good files ---------------------------------------------------------------------------------------------- */

START_TEST(files_of_every_size_arrive_as_they_are) {
        static const uint32_t SIZES[] = { 0,    1,     2,     511,    512,    513,    4095,   4096,   4097,
                                          8191, 65535, 65536, 110000, 130000, 131071, 131072, 131073, 300001 };
        enum {
                N_FILES = 360
        };
        static char names[N_FILES][32];
        struct read_request requests[READING_DEPTH];
        struct reader_counts counts;
        struct reading reading;
        uint64_t n_bytes = 0;

        START(reading, );
        for (uint32_t i = 0; i < N_FILES; i++) {
                file_write(&reading, i, SIZES[i % ARRAY_SIZE(SIZES)]);
                file_name(names[i], i);
        }

        for (uint32_t first = 0; first < N_FILES; first += READING_DEPTH) {
                uint32_t n = N_FILES - first < READING_DEPTH ? N_FILES - first : READING_DEPTH;

                for (uint32_t i = 0; i < n; i++) {
                        uint32_t size = SIZES[(first + i) % ARRAY_SIZE(SIZES)];
                        struct read_request request = reading_request(&reading, names[first + i], size, i);

                        if (size >= READING_BUFFER_BYTES) { /* too large: memory of its own, of no byte too many */
                                request.buffer = malloc(size + 1);
                                request.capacity = size + 1;
                                request.idx_buffer = -1;
                        }
                        requests[i] = request;
                        reader_submit(reading.reader, &requests[i]);
                }
                reading_wait(&reading, first + n);

                for (uint32_t i = 0; i < n; i++) {
                        ck_assert_msg(requests[i].result == 0, "%s", requests[i].why.text);
                        ck_assert_uint_eq(requests[i].n_bytes, requests[i].length);
                        ck_assert(file_is(requests[i].buffer, first + i, 0, requests[i].length));
                        n_bytes += requests[i].n_bytes;
                        if (requests[i].idx_buffer < 0)
                                free(requests[i].buffer);
                }
        }

        reader_counts(reading.reader, &counts);
        ck_assert_uint_eq(counts.n_reads, N_FILES);
        ck_assert_uint_eq(counts.n_bytes, n_bytes);
        ck_assert_uint_eq(counts.n_errors, 0);
        ck_assert_uint_eq(counts.n_short, 0);
        if (is_uring(&reading)) /* the empty files alone */
                ck_assert_uint_eq(counts.n_slow, N_FILES / ARRAY_SIZE(SIZES));
        reading_fini(&reading);
}
END_TEST

START_TEST(a_file_of_unknown_length_is_read_to_its_end_or_refused_as_too_large) {
        struct read_request request;
        struct reading reading;
        char name[32];

        START(reading, );
        file_name(name, 7);
        for (uint32_t size = 998; size <= 1002; size++) {
                file_write(&reading, 7, size);
                request = reading_request(&reading, name, READER_LENGTH_UNKNOWN, 0);
                request.capacity = 1000;
                if (size <= 1000) {
                        ck_assert_int_eq(reading_read(&reading, &request), 0);
                        ck_assert_uint_eq(request.n_bytes, size);
                        ck_assert(file_is(request.buffer, 7, 0, size));
                } else {
                        ck_assert_int_eq(reading_read(&reading, &request), -EFBIG);
                        ck_assert_ptr_nonnull(strstr(request.why.text, "the file has 100"));
                }
        }

        request = reading_request(&reading, name, 1002, 0);
        request.capacity = 1002; /* not the one byte more */
        expect(&reading, request, -EFBIG, "file000007.jpg: 1003 bytes wanted, the buffer has 1002");
        reading_fini(&reading);
}
END_TEST

START_TEST(a_part_of_a_file_is_read_where_it_lies) {
        static const struct {
                uint64_t offset, length;
        } PARTS[] = { { 0, 1 }, { 0, 10000 }, { 1, 9999 }, { 4096, 4096 }, { 9999, 1 }, { 123, 4567 }, { 10000, 0 } };
        struct read_request request;
        struct reading reading;
        char name[32];

        START(reading, );
        file_write(&reading, 3, 10000);
        file_name(name, 3);

        for (size_t i = 0; i < ARRAY_SIZE(PARTS); i++) {
                request = reading_request(&reading, name, PARTS[i].length, 0);
                request.offset = PARTS[i].offset;
                request.is_part = true;
                request.capacity = PARTS[i].length; /* no byte more is needed */
                memset(request.buffer, 0xaa, READING_BUFFER_BYTES);
                ck_assert_msg(reading_read(&reading, &request) == 0, "%s", request.why.text);
                ck_assert_uint_eq(request.n_bytes, PARTS[i].length);
                ck_assert(file_is(request.buffer, 3, PARTS[i].offset, PARTS[i].length));
                ck_assert_uint_eq(request.buffer[PARTS[i].length], 0xaa);
        }

        request = reading_request(&reading, name, 10, 0);
        request.is_part = true;
        request.offset = 9991;
        expect(&reading, request, -EBADMSG,
               "file000003.jpg: changed: bytes 9991 to 10001 were expected, the file ends at 10000");
        request.offset = UINT64_MAX; /* "where the file stands", to the kernel */
        expect(&reading, request, -EINVAL, "file000003.jpg: no file has a byte 18446744073709551615 + 10");
        reading_fini(&reading);
}
END_TEST

/* ---- files that are not what the index says ------------------------------------------------------------------ */

START_TEST(a_file_of_another_length_is_named_with_both_lengths) {
        static const struct {
                uint32_t length, has;
                const char *text;
        } CASES[] = {
                { 1000, 999, "file000005.jpg: changed: 1000 bytes were expected, the file has 999" },
                { 1000, 0, "file000005.jpg: changed: 1000 bytes were expected, the file has 0" },
                { 1000, 1001, "file000005.jpg: changed: 1000 bytes were expected, the file has 1001" },
                { 1000, 5000, "file000005.jpg: changed: 1000 bytes were expected, the file has 5000" },
                { 4096, 4095, "file000005.jpg: changed: 4096 bytes were expected, the file has 4095" },
                { 4096, 4097, "file000005.jpg: changed: 4096 bytes were expected, the file has 4097" },
                { 0, 1, "file000005.jpg: changed: 0 bytes were expected, the file has 1" },
        };
        struct reader_counts counts;
        struct reading reading;
        char name[32];

        START(reading, );
        file_name(name, 5);
        for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
                file_write(&reading, 5, CASES[i].has);
                expect(&reading, reading_request(&reading, name, CASES[i].length, 0), -EBADMSG, CASES[i].text);
        }
        reader_counts(reading.reader, &counts);
        ck_assert_uint_eq(counts.n_errors, ARRAY_SIZE(CASES));
        if (is_uring(&reading))
                ck_assert_uint_eq(counts.n_short, ARRAY_SIZE(CASES) - 1); /* an empty one needs no chain */
        reading_fini(&reading);
}
END_TEST

static void make_socket(const char *folder) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
        ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

START_TEST(what_is_no_file_is_refused_and_never_hangs) {
        struct reading reading;
        uint64_t began_ns;

        START(reading, );
        ck_assert_int_eq(mkdirat(reading.dir_fd, "folder", 0755), 0);
        ck_assert_int_eq(mkfifoat(reading.dir_fd, "fifo", 0644), 0);
        ck_assert_int_eq(symlinkat("/dev/zero", reading.dir_fd, "zero"), 0);
        ck_assert_int_eq(symlinkat("loop", reading.dir_fd, "loop"), 0);
        make_socket(reading.root);
        file_write(&reading, 1, 10);

        began_ns = clock_now_ns();
        for (int i = 0; i < 2; i++) {
                /* Once as io_uring's chain meets it, once as the pool does. */
                uint64_t length = i == 0 ? 100 : READER_LENGTH_UNKNOWN;

                expect(&reading, reading_request(&reading, "absent", length, 0), -ENOENT,
                       "absent: No such file or directory");
                expect(&reading, reading_request(&reading, "absent/too", length, 0), -ENOENT,
                       "absent/too: No such file or directory");
                expect(&reading, reading_request(&reading, "file000001.jpg/x", length, 0), -ENOTDIR,
                       "file000001.jpg/x: Not a directory");
                expect(&reading, reading_request(&reading, "folder", length, 0), -EISDIR, "folder: Is a directory");
                expect(&reading, reading_request(&reading, "fifo", length, 0), -EINVAL, "fifo: not a regular file");
                expect(&reading, reading_request(&reading, "zero", length, 0), -EINVAL, "zero: not a regular file");
                expect(&reading, reading_request(&reading, "socket", length, 0), -ENXIO,
                       "socket: No such device or address");
                expect(&reading, reading_request(&reading, "loop", length, 0), -ELOOP,
                       "loop: Too many levels of symbolic links");
        }
        ck_assert_uint_lt(clock_now_ns() - began_ns, 60000000000u);
        ck_assert_uint_eq(count_ring_files(), 0);
        reading_fini(&reading);
}
END_TEST

START_TEST(a_fifo_with_a_silent_writer_holds_up_only_its_own_request) {
        _cleanup_(closep) int writer = -1;
        struct read_request fifos[4], good;
        struct reading reading;
        char name[32];

        START(reading, options.stall_ms = 400);
        ck_assert_int_eq(mkfifoat(reading.dir_fd, "fifo", 0644), 0);
        writer = openat(reading.dir_fd, "fifo", O_RDWR | O_CLOEXEC);
        ck_assert_int_ge(writer, 0);
        file_write(&reading, 1, 5000);
        file_name(name, 1);

        for (uint32_t i = 0; i < ARRAY_SIZE(fifos); i++) {
                fifos[i] = reading_request(&reading, "fifo", 100, i);
                reader_submit(reading.reader, &fifos[i]);
        }
        if (!is_uring(&reading)) /* fstat says it before a read could hang */
                reading_wait(&reading, ARRAY_SIZE(fifos));
        for (uint32_t i = 0; i < 100; i++) {
                good = reading_request(&reading, name, 5000, READING_DEPTH - 1);
                ck_assert_int_eq(reading_read(&reading, &good), 0);
                ck_assert(file_is(good.buffer, 1, 0, 5000));
        }
        if (is_uring(&reading))
                ck_assert_uint_eq(count_ring_files(), ARRAY_SIZE(fifos)); /* while they hang, that is what they cost */

        reading_wait(&reading, 100 + ARRAY_SIZE(fifos));
        for (uint32_t i = 0; i < ARRAY_SIZE(fifos); i++) {
                ck_assert_int_eq(fifos[i].result, -EINVAL);
                ck_assert_str_eq(fifos[i].why.text, "fifo: not a regular file");
        }
        ck_assert_uint_eq(count_ring_files(), 0);
        reading_fini(&reading);
}
END_TEST

START_TEST(a_slow_disk_is_no_stall) {
        enum {
                N_FILES = 64
        };
        static char names[N_FILES][32];
        struct read_request requests[READING_DEPTH];
        struct reading reading;

        START(reading, options.stall_ms = 1); /* so impatient that it calls back reads that are only cold */
        for (uint32_t i = 0; i < N_FILES; i++) {
                int fd;

                file_write(&reading, i, 100000);
                file_name(names[i], i);
                fd = openat(reading.dir_fd, names[i], O_RDONLY | O_CLOEXEC);
                ck_assert_int_eq(fsync(fd), 0);
                posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
                close(fd);
        }

        for (uint32_t first = 0; first < N_FILES; first += READING_DEPTH) {
                for (uint32_t i = 0; i < READING_DEPTH; i++) {
                        requests[i] = reading_request(&reading, names[first + i], 100000, i);
                        reader_submit(reading.reader, &requests[i]);
                }
                reading_wait(&reading, first + READING_DEPTH);
                for (uint32_t i = 0; i < READING_DEPTH; i++) {
                        ck_assert_msg(requests[i].result == 0, "%s", requests[i].why.text);
                        ck_assert(file_is(requests[i].buffer, first + i, 0, 100000));
                }
        }
        ck_assert_uint_eq(count_ring_files(), 0);
        reading_fini(&reading);
}
END_TEST

#define N_CHURNED   40u
#define CHURN_BYTES 60000u

struct churn {
        struct reading *reading;
        _Atomic bool is_over;
};

/* Removes, writes anew, cuts and lengthens files. Whatever it does, byte i of a file is file_byte(i). */
static void *churn_main(void *argument) {
        struct churn *churn = argument;
        uint32_t random = 1;

        while (!atomic_load(&churn->is_over)) {
                uint32_t number;
                char name[32];
                int fd;

                random = random * 1664525u + 1013904223u;
                number = (random >> 8) % N_CHURNED;
                file_name(name, number);
                switch (random >> 28 & 3) {
                case 0:
                        unlinkat(churn->reading->dir_fd, name, 0);
                        break;
                case 1:
                        fd = openat(churn->reading->dir_fd, name, O_WRONLY | O_CLOEXEC);
                        if (fd >= 0 && ftruncate(fd, (random >> 4) % CHURN_BYTES) == 0)
                                close(fd);
                        break;
                case 2:
                        file_write(churn->reading, number, CHURN_BYTES + 1 + random % 1000);
                        break;
                default:
                        file_write(churn->reading, number, CHURN_BYTES);
                }
                usleep(50);
        }
        return NULL;
}

START_TEST(nothing_leaks_while_files_vanish_shrink_and_grow) {
        static char names[N_CHURNED][32];
        enum {
                N_READS = 10000
        };
        struct read_request requests[READING_DEPTH];
        unsigned n_descriptors, n_good = 0, n_bad = 0;
        struct reader_counts before, after;
        struct churn churn = { 0 };
        struct reading reading;
        pthread_t thread;

        START(reading, );
        for (uint32_t i = 0; i < N_CHURNED; i++) {
                file_name(names[i], i);
                file_write(&reading, i, CHURN_BYTES);
        }
        n_descriptors = count_descriptors();
        churn.reading = &reading;
        ck_assert_int_eq(thread_start(&thread, "churn", churn_main, &churn), 0);

        for (uint32_t first = 0; first < N_READS; first += READING_DEPTH) {
                for (uint32_t i = 0; i < READING_DEPTH; i++) {
                        requests[i] = reading_request(&reading, names[(first * 7 + i) % N_CHURNED], CHURN_BYTES, i);
                        reader_submit(reading.reader, &requests[i]);
                }
                reading_wait(&reading, first + READING_DEPTH);
                for (uint32_t i = 0; i < READING_DEPTH; i++) {
                        int result = requests[i].result;

                        ck_assert_msg(result == 0 || result == -ENOENT || result == -EBADMSG, "%s",
                                      requests[i].why.text);
                        if (result == 0)
                                ck_assert(file_is(requests[i].buffer, (first * 7 + i) % N_CHURNED, 0, CHURN_BYTES));
                        if (result == 0)
                                n_good++;
                        else
                                n_bad++;
                }
        }

        atomic_store(&churn.is_over, true);
        thread_join(thread);
        ck_assert_uint_gt(n_good, 100); /* both really happened */
        ck_assert_uint_gt(n_bad, 100);
        ck_assert_uint_eq(count_descriptors(), n_descriptors);
        ck_assert_uint_eq(count_ring_files(), 0);

        /* And every place of the file table serves: as many at once as there are, none the slow way. */
        reader_counts(reading.reader, &before);
        for (uint32_t i = 0; i < READING_DEPTH; i++) {
                file_write(&reading, i, CHURN_BYTES);
                requests[i] = reading_request(&reading, names[i], CHURN_BYTES, i);
        }
        for (uint32_t i = 0; i < READING_DEPTH; i++)
                reader_submit(reading.reader, &requests[i]);
        reading_wait(&reading, (uint32_t)before.n_reads + READING_DEPTH);
        reader_counts(reading.reader, &after);
        for (uint32_t i = 0; i < READING_DEPTH; i++)
                ck_assert_int_eq(requests[i].result, 0);
        ck_assert_uint_eq(after.n_slow, before.n_slow);
        reading_fini(&reading);
}
END_TEST

/* ---- submitting, idling, stopping ---------------------------------------------------------------------------- */

static _Atomic uint32_t n_relayed;

/* Submits itself again until it has been read a thousand times; at a depth of one. */
static void relay_done(struct read_request *request) {
        struct reading *reading = request->userdata;

        if (request->result == 0 && atomic_fetch_add(&n_relayed, 1) < 999)
                reader_submit(reading->reader, request);
        else
                reading_done(request);
}

START_TEST(done_may_submit_the_next) {
        struct read_request request;
        struct reading reading;
        char name[32];

        START(reading, options.depth = 1; options.done = relay_done);
        file_write(&reading, 2, 300);
        file_name(name, 2);
        atomic_store(&n_relayed, 0);

        request = reading_request(&reading, name, 300, 0);
        ck_assert_int_eq(reading_read(&reading, &request), 0);
        ck_assert_uint_eq(atomic_load(&n_relayed), 1000);
        reading_fini(&reading);
}
END_TEST

static uint64_t cpu_us(void) {
        struct rusage usage;

        getrusage(RUSAGE_SELF, &usage);
        return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u +
               (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

START_TEST(an_idle_reader_costs_nothing) {
        struct read_request request;
        struct reading reading;
        uint64_t before_us;
        char name[32];

        START(reading, );
        file_write(&reading, 2, 300);
        file_name(name, 2);
        request = reading_request(&reading, name, 300, 0);
        ck_assert_int_eq(reading_read(&reading, &request), 0);

        before_us = cpu_us();
        usleep(300000);
        ck_assert_uint_lt(cpu_us() - before_us, 100000); /* a loop would have used all of it */
        reading_fini(&reading);
}
END_TEST

static sem_t is_held, may_go_on;

/* The first one holds up the reader's only thread until the test lets it go. */
static void held_done(struct read_request *request) {
        if (request->result == 0) {
                sem_post(&is_held);
                sem_wait(&may_go_on);
        }
        reading_done(request);
}

static void *stop_main(void *argument) {
        struct reading *reading = argument;

        ck_assert_int_eq(reader_stop(reading->reader), 0);
        return NULL;
}

START_TEST(stopping_cancels_what_has_not_begun_and_waits_for_the_rest) {
        struct read_request requests[READING_DEPTH];
        struct reading reading;
        pthread_t thread;
        char name[32];

        START(reading, options.n_threads = 1; options.done = held_done);
        file_write(&reading, 4, 3000);
        file_name(name, 4);
        sem_init(&is_held, 0, 0);
        sem_init(&may_go_on, 0, 0);

        requests[0] = reading_request(&reading, name, 3000, 0);
        reader_submit(reading.reader, &requests[0]);
        sem_wait(&is_held);
        for (uint32_t i = 1; i < READING_DEPTH; i++) {
                requests[i] = reading_request(&reading, name, 3000, i);
                reader_submit(reading.reader, &requests[i]);
        }
        ck_assert_int_eq(thread_start(&thread, "stopper", stop_main, &reading), 0);
        while (!atomic_load(&reading.reader->is_stopping)) /* else the second one would be read, and held up too */
                usleep(1000);
        usleep(50000);
        ck_assert_uint_eq(reading_n_done(&reading), 0);
        sem_post(&may_go_on);
        thread_join(thread);
        reading.reader = NULL;

        reading_wait(&reading, READING_DEPTH);
        ck_assert_uint_eq(reading_n_done(&reading), READING_DEPTH);
        for (uint32_t i = 1; i < READING_DEPTH; i++) {
                ck_assert_int_eq(requests[i].result, -ECANCELED);
                ck_assert_str_eq(requests[i].why.text, "file000004.jpg: not read: the reader was stopped");
        }
        reading_fini(&reading);
}
END_TEST

START_TEST(stopping_does_not_wait_for_a_silent_fifo_for_ever) {
        _cleanup_(closep) int writer = -1;
        struct read_request requests[READING_DEPTH];
        struct reading reading;

        START(reading, options.stall_ms = 60000);
        ck_assert_int_eq(mkfifoat(reading.dir_fd, "fifo", 0644), 0);
        writer = openat(reading.dir_fd, "fifo", O_RDWR | O_CLOEXEC);
        for (uint32_t i = 0; i < READING_DEPTH; i++) {
                requests[i] = reading_request(&reading, "fifo", 100, i);
                reader_submit(reading.reader, &requests[i]);
        }
        usleep(50000);
        ck_assert_int_eq(reader_stop(reading.reader), 0);
        reading.reader = NULL;

        ck_assert_uint_eq(reading_n_done(&reading), READING_DEPTH);
        for (uint32_t i = 0; i < READING_DEPTH; i++)
                ck_assert(requests[i].result == -ECANCELED || requests[i].result == -EINVAL);
        reading_fini(&reading);
}
END_TEST

/* Memory whose first touch waits until somebody serves it: what a read into it does, a dead disk would do as well. */
static int make_hanging_page(void **ret_page) {
        struct uffdio_api api = { .api = UFFD_API };
        struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_MISSING };
        _cleanup_(closep) int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
        void *page;

        if (fd < 0 || ioctl(fd, UFFDIO_API, &api) < 0)
                return -1;
        page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(page, MAP_FAILED);
        area.range.start = (uintptr_t)page;
        area.range.len = 4096;
        ck_assert_int_eq(ioctl(fd, UFFDIO_REGISTER, &area), 0);
        *ret_page = page;
        return take_fd(&fd);
}

START_TEST(a_read_that_hangs_in_the_kernel_does_not_hang_the_stop) {
        struct uffdio_zeropage serve = { .mode = 0 };
        _cleanup_(closep) int fd = -1;
        struct read_request request;
        struct reading reading;
        uint64_t began_ns;
        char name[32];
        void *page;

        fd = make_hanging_page(&page);
        if (fd < 0) {
                printf("skip: a read that hangs: no userfaultfd\n");
                return;
        }
        START(reading, options.stop_limit_ms = 200);
        file_write(&reading, 6, 1000);
        file_name(name, 6);
        request = reading_request(&reading, name, 1000, 0);
        request.buffer = page;
        request.capacity = 4096;
        request.idx_buffer = -1;
        reader_submit(reading.reader, &request);
        usleep(50000);

        began_ns = clock_now_ns();
        ck_assert_int_eq(reader_stop(reading.reader), -ETIMEDOUT);
        ck_assert_uint_lt(clock_now_ns() - began_ns, 60000000000u);
        ck_assert_uint_eq(reading_n_done(&reading), 0);

        serve.range.start = (uintptr_t)page;
        serve.range.len = 4096;
        ck_assert_int_eq(ioctl(fd, UFFDIO_ZEROPAGE, &serve), 0);
        reading_wait(&reading, 1);
        ck_assert_int_eq(request.result, 0);
        ck_assert(file_is(page, 6, 0, 1000));
        munmap(page, 4096);
        reading_fini(&reading); /* stops it again, now with success */
}
END_TEST

int main(void) {
        Suite *suite = suite_create("reader");
        TCase *files = tcase_create("files"), *life = tcase_create("life");
        SRunner *runner;
        int n_failed;

        tcase_set_timeout(files, 60);
        tcase_add_loop_test(files, files_of_every_size_arrive_as_they_are, 0, 2);
        tcase_add_loop_test(files, a_file_of_unknown_length_is_read_to_its_end_or_refused_as_too_large, 0, 2);
        tcase_add_loop_test(files, a_part_of_a_file_is_read_where_it_lies, 0, 2);
        tcase_add_loop_test(files, a_file_of_another_length_is_named_with_both_lengths, 0, 2);
        tcase_add_loop_test(files, what_is_no_file_is_refused_and_never_hangs, 0, 2);
        tcase_add_loop_test(files, a_fifo_with_a_silent_writer_holds_up_only_its_own_request, 0, 2);
        tcase_add_loop_test(files, a_slow_disk_is_no_stall, 0, 2);
        tcase_add_loop_test(files, nothing_leaks_while_files_vanish_shrink_and_grow, 0, 2);
        suite_add_tcase(suite, files);

        tcase_set_timeout(life, 60);
        tcase_add_loop_test(life, done_may_submit_the_next, 0, 2);
        tcase_add_loop_test(life, an_idle_reader_costs_nothing, 0, 2);
        tcase_add_loop_test(life, stopping_cancels_what_has_not_begun_and_waits_for_the_rest, 0, 2);
        tcase_add_loop_test(life, stopping_does_not_wait_for_a_silent_fifo_for_ever, 0, 2);
        tcase_add_loop_test(life, a_read_that_hangs_in_the_kernel_does_not_hang_the_stop, 0, 2);
        suite_add_tcase(suite, life);

        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed == 0 ? 0 : 1;
}
