#include "daemon/staging/prepare/sample_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>

#include "daemon/base/machine/disk.h"
#include "proto/base/cleanup.h"

#define PIECE (1u << 20) /* bytes; between two it can be cancelled */

struct reading {
        const struct sample_reader *reader;
        const char *path;
        struct extent place;
        int fd;
};

static bool sample_reader_is_cancelled(const struct sample_reader *reader) {
        return reader->cancel && atomic_load_explicit(reader->cancel, memory_order_relaxed);
}

/* O_NONBLOCK: what is a FIFO by now must not wait for a writer. O_NOCTTY: a terminal must not become ours. */
static int open_sample(struct reading *reading, struct why *why) {
        const struct sample_reader *reader = reading->reader;
        uint64_t end = reading->place.offset + reading->place.length;
        bool is_whole = index_n_files(reader->index) == reader->index->n_samples && reading->place.offset == 0;
        struct stat status;

        reading->fd = openat(reader->root_fd, reading->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        if (reading->fd < 0)
                return why_errno(why, -errno, "cannot open %s", reading->path);
        if (fstat(reading->fd, &status) < 0)
                return why_errno(why, -errno, "cannot look at %s", reading->path);
        if (!S_ISREG(status.st_mode))
                return why_set(why, -EINVAL, "%s is not a regular file; it cannot be packed", reading->path);
        if ((uint64_t)status.st_size < end || (is_whole && (uint64_t)status.st_size != end))
                return why_set(why, -ESTALE,
                               "%s has %" PRIu64 " bytes; %" PRIu64
                               " when its index was made: it was changed meanwhile",
                               reading->path, (uint64_t)status.st_size, end);
        return 0;
}

/* ---- what is too large for memory ---------------------------------------------------------------------------- */

/* With its space reserved: a full disk must be an error here and not a SIGBUS later. */
static int open_spare(const struct sample_reader *reader, uint64_t n_bytes, int *ret_fd) {
        _cleanup_(closep) int fd = openat(reader->spare_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        char name[64];
        int r;

        if (fd < 0) { /* not every file system has files without a name */
                snprintf(name, sizeof(name), ".large-%ld-%p.part", (long)getpid(), (void *)&name);
                fd = openat(reader->spare_fd, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
                if (fd < 0)
                        return -errno;
                unlinkat(reader->spare_fd, name, 0);
        }
        r = posix_fallocate(fd, 0, (off_t)n_bytes);
        if (r > 0)
                return -r;
        *ret_fd = take_fd(&fd);
        return 0;
}

static int make_room_on_disk(const struct reading *reading, struct block *block, struct why *why) {
        _cleanup_(closep) int fd = -1;
        int r = open_spare(reading->reader, reading->place.length, &fd);

        if (r == 0)
                r = block_map(block, fd, reading->place.length);
        return r < 0 ? why_errno(why, r, "no room for a copy of %s (%" PRIu64 " bytes), which is too large for memory",
                                 reading->path, reading->place.length)
                     : 0;
}

/* ---- one sample ---------------------------------------------------------------------------------------------- */

static int sample_reader_read_all(const struct reading *reading, struct block *block, struct why *why) {
        uint64_t length = reading->place.length;

        for (uint64_t at = 0; at < length; at += PIECE) {
                size_t n = length - at < PIECE ? (size_t)(length - at) : PIECE;
                int r;

                if (sample_reader_is_cancelled(reading->reader))
                        return -ECANCELED;
                r = disk_read_at(reading->fd, block->bytes + at, n, reading->place.offset + at);
                if (r == -ENODATA)
                        return why_set(why, -ESTALE, "%s became shorter while it was read", reading->path);
                if (r < 0)
                        return why_errno(why, r, "cannot read %s", reading->path);
        }
        return 0;
}

static bool is_in_memory(uint64_t length) {
        return length <= SAMPLE_IN_MEMORY;
}

uint64_t sample_reader_need(const struct sample_reader *reader, uint64_t sample) {
        struct extent place;

        source_locate(reader->index, sample, 0, &place);
        return is_in_memory(place.length) ? place.length : 0;
}

int sample_reader_read(const struct sample_reader *reader, uint64_t sample, struct block *ret_block, struct why *why) {
        char path[INDEX_PATH_SIZE];
        struct reading reading = { .reader = reader, .path = path, .fd = -1 };
        struct block block = {};
        int r;

        source_name(reader->index, sample, path);
        source_locate(reader->index, sample, 0, &reading.place);
        r = open_sample(&reading, why);
        if (r == 0 && !is_in_memory(reading.place.length))
                r = make_room_on_disk(&reading, &block, why);
        else if (r == 0 && block_grow(&block, reading.place.length) < 0)
                r = why_set(why, -ENOMEM, "no memory for %s (%" PRIu64 " bytes)", path, reading.place.length);
        if (r == 0)
                r = sample_reader_read_all(&reading, &block, why);
        closep(&reading.fd);
        if (r < 0)
                block_free(&block);
        else
                *ret_block = block;
        return r;
}
