#include "tests/support/reading.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "tests/support/temporary.h"

#define WAIT_SECONDS 60

void reading_init(struct reading *reading) {
        memset(reading, 0, sizeof(*reading));
        temporary_folder(reading->root, sizeof(reading->root));
        ck_assert_int_eq(chmod(reading->root, 0755), 0); /* tests without privileges look in, too */
        reading->dir_fd = open(reading->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ck_assert_int_ge(reading->dir_fd, 0);
        reading->buffers = aligned_alloc(4096, (size_t)READING_DEPTH * READING_BUFFER_BYTES);
        ck_assert_ptr_nonnull(reading->buffers);
        pthread_mutex_init(&reading->lock, NULL);
        pthread_cond_init(&reading->came, NULL);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where) {
        return remove(path);
}

void reading_fini(struct reading *reading) {
        ck_assert_int_eq(reader_stop(reading->reader), 0);
        pthread_cond_destroy(&reading->came);
        pthread_mutex_destroy(&reading->lock);
        free(reading->buffers);
        close(reading->dir_fd);
        nftw(reading->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

struct reader_options reading_options(struct reading *reading, const char *backend) {
        return (struct reader_options){
                .depth = READING_DEPTH,
                .buffers = reading->buffers,
                .buffer_bytes = READING_BUFFER_BYTES,
                .n_buffers = READING_DEPTH,
                .backend = backend,
                .n_threads = 4,
                .done = reading_done,
        };
}

void reading_start(struct reading *reading, const struct reader_options *options) {
        struct why why;

        ck_assert_msg(reader_start(options, &reading->reader, &why) == 0, "%s", why.text);
}

static void ignore(struct read_request *request) {
}

bool reading_has_uring(void) {
        struct reader_options options = { .depth = 1, .backend = "io_uring", .done = ignore };
        static bool was_said;
        struct reader *reader;
        struct why why;

        if (reader_start(&options, &reader, &why) == 0) {
                reader_stop(reader);
                return true;
        }
        if (!was_said)
                printf("skip: tests of io_uring: %s\n", why.text);
        was_said = true;
        return false;
}

const char *reading_backend(int i) {
        if (i == 1)
                return "threads";
        return reading_has_uring() ? "io_uring" : NULL;
}

/* A file's number and place, mixed until neighbours look nothing alike. */
uint8_t file_byte(uint32_t number, uint64_t offset) {
        uint64_t x = ((uint64_t)number << 40) + offset + 1;

        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
        x = (x ^ x >> 27) * 0x94d049bb133111ebull;
        return (uint8_t)(x >> 56);
}

void file_name(char name[32], uint32_t number) {
        snprintf(name, 32, "file%06" PRIu32 ".jpg", number);
}

void file_write(struct reading *reading, uint32_t number, uint64_t length) {
        _cleanup_(freep) uint8_t *bytes = malloc(length + 1);
        _cleanup_(closep) int fd = -1;
        char name[32];

        ck_assert_ptr_nonnull(bytes);
        for (uint64_t i = 0; i < length; i++)
                bytes[i] = file_byte(number, i);

        file_name(name, number);
        fd = openat(reading->dir_fd, "new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, bytes, length), (ssize_t)length);
        ck_assert_int_eq(renameat(reading->dir_fd, "new", reading->dir_fd, name), 0);
}

bool file_is(const uint8_t *bytes, uint32_t number, uint64_t offset, uint64_t length) {
        for (uint64_t i = 0; i < length; i++)
                if (bytes[i] != file_byte(number, offset + i))
                        return false;
        return true;
}

void reading_done(struct read_request *request) {
        struct reading *reading = request->userdata;

        pthread_mutex_lock(&reading->lock);
        reading->n_done++;
        pthread_cond_broadcast(&reading->came);
        pthread_mutex_unlock(&reading->lock);
}

uint32_t reading_n_done(struct reading *reading) {
        uint32_t n_done;

        pthread_mutex_lock(&reading->lock);
        n_done = reading->n_done;
        pthread_mutex_unlock(&reading->lock);
        return n_done;
}

void reading_wait(struct reading *reading, uint32_t n) {
        struct timespec deadline;
        uint32_t n_done;
        int r = 0;

        clock_gettime(CLOCK_REALTIME, &deadline);
        deadline.tv_sec += WAIT_SECONDS;

        pthread_mutex_lock(&reading->lock);
        while (reading->n_done < n && r == 0)
                r = pthread_cond_timedwait(&reading->came, &reading->lock, &deadline);
        n_done = reading->n_done;
        pthread_mutex_unlock(&reading->lock);
        ck_assert_msg(n_done >= n, "%" PRIu32 " of %" PRIu32 " requests were done within %d s", n_done, n,
                      WAIT_SECONDS);
}

int reading_read(struct reading *reading, struct read_request *request) {
        uint32_t n = reading_n_done(reading) + 1;

        reader_submit(reading->reader, request);
        reading_wait(reading, n);
        return request->result;
}

struct read_request reading_request(struct reading *reading, const char *path, uint64_t length, uint32_t idx) {
        return (struct read_request){
                .dir_fd = reading->dir_fd,
                .path = path,
                .may_leave = true,
                .length = length,
                .buffer = reading->buffers + (size_t)idx * READING_BUFFER_BYTES,
                .capacity = READING_BUFFER_BYTES,
                .idx_buffer = (int32_t)idx,
                .userdata = reading,
        };
}

unsigned count_descriptors(void) {
        DIR *folder = opendir("/proc/self/fd");
        unsigned n = 0;

        ck_assert_ptr_nonnull(folder);
        while (readdir(folder))
                n++;
        closedir(folder);
        return n;
}

/* The kernel lists a ring's files after "UserFiles: N", a line each ("    3: path"), up to "UserBufs:". */
static unsigned count_files_of(const char *name) {
        char path[300], line[512];
        bool is_list = false;
        unsigned n = 0;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", name);
        file = fopen(path, "re");
        if (!file)
                return 0;
        while (fgets(line, sizeof(line), file)) {
                if (strncmp(line, "UserFiles:", 10) == 0)
                        is_list = true;
                else if (strncmp(line, "UserBufs:", 9) == 0)
                        is_list = false;
                else if (is_list && !strstr(line, "<none>"))
                        n++;
        }
        fclose(file);
        return n;
}

unsigned count_ring_files(void) {
        DIR *folder = opendir("/proc/self/fd");
        struct dirent *entry;
        char target[64];
        unsigned n = 0;

        ck_assert_ptr_nonnull(folder);
        while ((entry = readdir(folder))) {
                ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);

                if (length <= 0)
                        continue;
                target[length] = '\0';
                if (strstr(target, "io_uring"))
                        n += count_files_of(entry->d_name);
        }
        closedir(folder);
        return n;
}
