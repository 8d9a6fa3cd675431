/* tests/unit/test_reader_parts.c: parts of large files that are kept open, each test for io_uring and for threads. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/threads/thread.h"
#include "daemon/io/kept_files.h"
#include "proto/base/cleanup.h"
#include "tests/support/reading.h"
#include "tests/support/suite.h"

#define FILE_BYTES 1000000u /* not a multiple of a block: the last one is read as far as it goes */

static const int OWNER, OTHER_OWNER; /* only their addresses count */

/* Starts a reader of the loop's backend, or leaves the test where there is none. */
#define START(reading)                                                                                                 \
        const char *backend = reading_backend(_i);                                                                     \
        struct reader_options options;                                                                                 \
                                                                                                                       \
        if (!backend)                                                                                                  \
                return;                                                                                                \
        reading_init(&(reading));                                                                                      \
        options = reading_options(&(reading), backend);                                                                \
        reading_start(&(reading), &options)

static struct read_request part(struct reading *reading, const char *name, uint32_t idx_file, uint64_t offset,
                                uint64_t length, uint32_t idx_buffer) {
        struct read_request request = reading_request(reading, name, length, idx_buffer);

        request.offset = offset;
        request.is_part = true;
        request.owner = &OWNER;
        request.idx_file = idx_file;
        request.past_cache = true;
        return request;
}

static void expect_good(struct reading *reading, struct read_request *request, uint32_t number) {
        ck_assert_msg(reading_read(reading, request) == 0, "%s", request->why.text);
        ck_assert_uint_eq(request->n_bytes, request->length);
        ck_assert(file_is(request->buffer, number, request->offset, request->length));
}

static void expect_bad(struct reading *reading, struct read_request *request, int error, const char *text) {
        ck_assert_msg(reading_read(reading, request) == error, "%d: %s", request->result, request->why.text);
        ck_assert_str_eq(request->why.text, text);
        ck_assert_uint_eq(request->n_bytes, 0);
}

/* A thread of the reader closes what was forgotten. */
static void wait_for_descriptors(unsigned n) {
        for (int i = 0; count_descriptors() != n; i++) {
                ck_assert_msg(i < 10000, "%u descriptors, not %u, within 10 s", count_descriptors(), n);
                usleep(1000);
        }
}

START_TEST(parts_arrive_as_they_are_and_the_file_is_opened_once) {
        static const uint32_t LENGTHS[] = { 1, 511, 512, 4095, 4096, 4097, 65536, 110000, READING_BUFFER_BYTES };
        struct reader_counts counts;
        struct read_request request;
        struct reading reading;
        unsigned n_before;
        uint32_t n = 0;
        char name[32];

        START(reading);
        file_write(&reading, 3, FILE_BYTES);
        file_name(name, 3);
        n_before = count_descriptors();
        for (uint64_t offset = 0; offset < FILE_BYTES; offset += 10 * READER_ALIGN)
                for (size_t i = 0; i < ARRAY_SIZE(LENGTHS); i++) {
                        if (LENGTHS[i] > FILE_BYTES - offset)
                                continue;
                        request = part(&reading, name, 0, offset, LENGTHS[i], n % READING_DEPTH);
                        expect_good(&reading, &request, 3);
                        ck_assert_uint_eq(count_descriptors(), n_before + 1);
                        n++;
                }
        request = part(&reading, name, 0, FILE_BYTES / READER_ALIGN * READER_ALIGN, FILE_BYTES % READER_ALIGN, 0);
        expect_good(&reading, &request, 3);
        request.past_cache = false; /* and beside it the other way, with a descriptor of its own */
        expect_good(&reading, &request, 3);
        ck_assert_uint_eq(count_descriptors(), n_before + 2);

        reader_counts(reading.reader, &counts);
        ck_assert_uint_eq(counts.n_direct, n + 1);
        ck_assert_uint_eq(counts.n_slow + counts.n_short + counts.n_errors, 0);
        ck_assert_uint_eq(count_ring_files(), 0);
        reader_forget(reading.reader, &OTHER_OWNER);
        ck_assert_uint_eq(count_descriptors(), n_before + 2);
        reader_forget(reading.reader, &OWNER);
        wait_for_descriptors(n_before);
        expect_good(&reading, &request, 3); /* it may come back */
        reading_fini(&reading);
}
END_TEST

START_TEST(what_is_not_aligned_is_read_nevertheless) {
        static const struct {
                uint64_t offset, length;
                size_t shift, capacity; /* of the buffer */
        } PARTS[] = { { 1, 5000, 0, 8192 }, { 4096, 5000, 8, 8192 }, { 4096, 5000, 0, 5000 }, { 8192, 0, 0, 0 } };
        struct read_request request;
        struct reading reading;
        char name[32];

        START(reading);
        file_write(&reading, 3, FILE_BYTES);
        file_name(name, 3);
        for (int turn = 0; turn < 2; turn++)
                for (size_t i = 0; i < ARRAY_SIZE(PARTS); i++) {
                        request = part(&reading, name, 0, PARTS[i].offset, PARTS[i].length, 1);
                        request.buffer += PARTS[i].shift;
                        request.capacity = PARTS[i].capacity;
                        memset(request.buffer, 0xaa, 8192);
                        expect_good(&reading, &request, 3);
                        ck_assert_uint_eq(request.buffer[PARTS[i].length], 0xaa);
                        request = part(&reading, name, 0, 4096, 100, 2); /* open and kept, in the second turn */
                        expect_good(&reading, &request, 3);
                }
        reading_fini(&reading);
}
END_TEST

START_TEST(a_file_that_cannot_be_read_past_the_cache_is_read_through_it) {
        struct read_request request;
        struct reader_counts counts;
        struct reading reading;

        START(reading);
        request = part(&reading, "/proc/version", 0, 0, 5, 0); /* proc refuses O_DIRECT on every kernel */
        for (int i = 0; i < 3; i++) {
                ck_assert_msg(reading_read(&reading, &request) == 0, "%s", request.why.text);
                ck_assert_mem_eq(request.buffer, "Linux", 5);
        }
        reader_counts(reading.reader, &counts);
        ck_assert_uint_eq(counts.n_direct + counts.n_errors, 0);
        reading_fini(&reading);
}
END_TEST

START_TEST(a_shard_that_is_cut_or_gone_is_an_error_of_the_sample) {
        struct read_request request;
        struct reading reading;
        unsigned n_before;
        char name[32];

        START(reading);
        file_write(&reading, 3, FILE_BYTES);
        file_name(name, 3);
        n_before = count_descriptors();
        request = part(&reading, name, 0, 40960, 10000, 0);
        expect_good(&reading, &request, 3);
        {
                _cleanup_(closep) int fd = openat(reading.dir_fd, name, O_WRONLY | O_CLOEXEC);

                ck_assert_int_eq(ftruncate(fd, 45000), 0);
        }
        expect_bad(&reading, &request, -EBADMSG,
                   "file000003.jpg: changed: bytes 40960 to 50960 were expected, the file ends at 45000");
        request.offset = 81920;
        expect_bad(&reading, &request, -EBADMSG,
                   "file000003.jpg: changed: bytes 81920 to 91920 were expected, the file ends at 81920");

        request = part(&reading, "absent", 1, 0, 100, 0);
        expect_bad(&reading, &request, -ENOENT, "absent: No such file or directory");
        ck_assert_int_eq(mkfifoat(reading.dir_fd, "fifo", 0644), 0);
        ck_assert_int_eq(mkdirat(reading.dir_fd, "folder", 0755), 0);
        request = part(&reading, "fifo", 2, 0, 100, 0);
        expect_bad(&reading, &request, -EINVAL, "fifo: not a regular file");
        request = part(&reading, "folder", 3, 0, 100, 0);
        expect_bad(&reading, &request, -EISDIR, "folder: Is a directory");
        ck_assert_uint_eq(count_descriptors(), n_before + 1);

        unlinkat(reading.dir_fd, name, 0); /* what is open stays readable */
        request = part(&reading, name, 0, 40960, 4040, 0);
        expect_good(&reading, &request, 3);
        reader_forget(reading.reader, &OWNER);
        expect_bad(&reading, &request, -ENOENT, "file000003.jpg: No such file or directory");
        reading_fini(&reading);
}
END_TEST

/* More files than may be kept: those that are read in between are opened and closed, and nothing is left behind. */
START_TEST(open_files_are_bounded) {
        enum {
                N_FILES = 60,
                N_ALLOWED = 100
        };
        static char names[N_FILES][32];
        struct read_request requests[READING_DEPTH];
        struct rlimit before, limit;
        struct reading reading;
        unsigned n_before;
        uint32_t n = 0;

        getrlimit(RLIMIT_NOFILE, &before);
        limit = (struct rlimit){ N_ALLOWED, before.rlim_max };
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
        {
                START(reading);
                for (uint32_t i = 0; i < N_FILES; i++) {
                        file_write(&reading, i, 100000);
                        file_name(names[i], i);
                }
                n_before = count_descriptors();
                for (uint32_t turn = 0; turn < 40; turn++) {
                        for (uint32_t i = 0; i < READING_DEPTH; i++) {
                                uint32_t number = (turn * 7 + i * 11) % N_FILES;

                                requests[i] = part(&reading, names[number], number, i * 4096ull, 20000, i);
                                reader_submit(reading.reader, &requests[i]);
                        }
                        n += READING_DEPTH;
                        reading_wait(&reading, n);
                        for (uint32_t i = 0; i < READING_DEPTH; i++) {
                                ck_assert_msg(requests[i].result == 0, "%s", requests[i].why.text);
                                ck_assert(file_is(requests[i].buffer, requests[i].idx_file, requests[i].offset, 20000));
                        }
                        ck_assert_uint_le(count_descriptors(), n_before + N_ALLOWED / 4);
                }
                ck_assert_uint_eq(count_descriptors(), n_before + N_ALLOWED / 4);
                ck_assert_uint_eq(count_ring_files(), 0);
                reader_forget(reading.reader, &OWNER);
                wait_for_descriptors(n_before);
                reading_fini(&reading);
        }
        setrlimit(RLIMIT_NOFILE, &before);
}
END_TEST

struct forgetting {
        struct reader *reader;
        _Atomic bool is_over;
};

static void *forget_main(void *argument) {
        struct forgetting *forgetting = argument;

        while (!atomic_load(&forgetting->is_over)) {
                reader_forget(forgetting->reader, &OWNER);
                usleep(300);
        }
        return NULL;
}

START_TEST(files_may_be_forgotten_while_they_are_read) {
        enum {
                N_FILES = 5
        };
        static char names[N_FILES][32];
        struct read_request requests[READING_DEPTH];
        struct forgetting forgetting = { 0 };
        struct reading reading;
        unsigned n_before;
        pthread_t thread;
        uint32_t n = 0;

        START(reading);
        for (uint32_t i = 0; i < N_FILES; i++) {
                file_write(&reading, i, 300000);
                file_name(names[i], i);
        }
        n_before = count_descriptors();
        forgetting.reader = reading.reader;
        ck_assert_int_eq(thread_start(&thread, "forget", forget_main, &forgetting), 0);
        for (uint32_t turn = 0; turn < 200; turn++) {
                for (uint32_t i = 0; i < READING_DEPTH; i++) {
                        uint32_t number = (turn + i) % N_FILES;

                        requests[i] = part(&reading, names[number], number, i * 4096ull, 60000, i);
                        requests[i].past_cache = turn % 3 > 0;
                        reader_submit(reading.reader, &requests[i]);
                }
                n += READING_DEPTH;
                reading_wait(&reading, n);
                for (uint32_t i = 0; i < READING_DEPTH; i++) {
                        ck_assert_msg(requests[i].result == 0, "%s", requests[i].why.text);
                        ck_assert(file_is(requests[i].buffer, requests[i].idx_file, requests[i].offset, 60000));
                }
        }
        atomic_store(&forgetting.is_over, true);
        thread_join(thread);
        reader_forget(reading.reader, &OWNER);
        wait_for_descriptors(n_before);
        reading_fini(&reading);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "parts", parts_arrive_as_they_are_and_the_file_is_opened_once, 2 },
                { "parts", what_is_not_aligned_is_read_nevertheless, 2 },
                { "parts", a_file_that_cannot_be_read_past_the_cache_is_read_through_it, 2 },
                { "parts", a_shard_that_is_cut_or_gone_is_an_error_of_the_sample, 2 },
                { "open", open_files_are_bounded, 2 },
                { "open", files_may_be_forgotten_while_they_are_read, 2 },
        };

        return suite_run("reader_parts", rows, ARRAY_SIZE(rows));
}
