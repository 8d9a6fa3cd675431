/* io/read_file.c: one file with plain system calls.
 *
 * The pool reads files in this way, and for io_uring it is the judge: a request that its chain could not complete comes
 * here. Either this finds the reason (gone, shrunk, grown, not a file), or the read succeeds after all. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/base/machine/file_stamp.h"
#include "daemon/io/reader_private.h"
#include "proto/base/cleanup.h"

#define AGAIN_TRIES_MAX 100 /* a millisecond each; a regular file should never return EAGAIN at all */

/* Another mode or a further link change neither time nor size. What was only touched is doubtful as well: whoever
 * judges the request's error compares its bytes. */
bool read_file_is_doubtful(const struct read_request *request, const struct stat *status) {
        const struct file_stamp is = file_stamp_of(status), *was = request->stamp;

        return was && is.ctime_ns > request->settled_ns && file_stamp_compare(was, &is) == FILE_HAS_CHANGED &&
               (is.inode != was->inode || is.n_bytes <= was->n_bytes);
}

/* O_NONBLOCK: opening a FIFO must not wait for a writer. O_NOCTTY: a terminal must not become ours. */
int read_file_open(const struct read_request *request, int more_flags, int *ret_fd) {
        _cleanup_(closep) int fd = -1;
        struct stat status;

        do {
                fd = beneath_open(request->dir_fd, request->path,
                                  O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | more_flags);
        } while (fd < 0 && errno == EINTR);
        if (fd < 0)
                return -errno;
        if (fstat(fd, &status) < 0)
                return -errno;
        if (S_ISDIR(status.st_mode))
                return -EISDIR;
        if (!S_ISREG(status.st_mode))
                return -EINVAL;
        if (read_file_is_doubtful(request, &status))
                return -EREMCHG;

        *ret_fd = take_fd(&fd);
        return 0;
}

/* Reads until `limit` bytes have arrived or the file ends, however small the pieces are. */
static int read_until(int fd, uint64_t offset, uint8_t *buffer, size_t limit, size_t *ret_n) {
        size_t n = 0;
        int n_again = 0;

        while (n < limit) {
                ssize_t r = pread(fd, buffer + n, limit - n, (off_t)(offset + n));

                if (r == 0)
                        break;
                if (r > 0) {
                        n += (size_t)r;
                } else if (errno == EAGAIN && n_again++ < AGAIN_TRIES_MAX) {
                        fcntl(fd, F_SETFL, 0); /* it is a regular file, so it may block now */
                        usleep(1000);
                } else if (errno != EINTR) {
                        return -errno;
                }
        }

        *ret_n = n;
        return 0;
}

static int read_file_check_room(struct read_request *request) {
        uint64_t limit;

        if (request->length == READER_LENGTH_UNKNOWN)
                limit = request->capacity;
        else
                limit = read_request_wanted(request);

        if (limit > INT64_MAX || request->offset > INT64_MAX - limit)
                return why_set(&request->why, -EINVAL, "%s: no file has a byte %" PRIu64 " + %" PRIu64, request->path,
                               request->offset, limit);
        if (limit > request->capacity)
                return why_set(&request->why, -EFBIG, "%s: %" PRIu64 " bytes wanted, the buffer has %zu", request->path,
                               limit, request->capacity);
        return 0;
}

/* The length is unknown: does the file end where the buffer does? */
static int read_file_check_end(struct read_request *request, int fd, size_t n) {
        struct stat status;
        uint8_t more;
        size_t n_more;
        int r;

        if (n < request->capacity)
                return 0;

        r = read_until(fd, request->offset + n, &more, 1, &n_more);
        if (r < 0)
                return why_errno(&request->why, r, "%s", request->path);
        if (n_more == 0)
                return 0;
        if (fstat(fd, &status) < 0)
                status.st_size = 0;
        return why_set(&request->why, -EFBIG, "%s: the file has %jd bytes, the buffer %zu", request->path,
                       (intmax_t)status.st_size, request->capacity);
}

/* The length is known: the file must have exactly that length. */
static int read_file_check_length(struct read_request *request, int fd, size_t n) {
        struct stat status;
        uint64_t n_has = n;

        if (n == request->length)
                return 0;
        /* The data ends before the size of the file: a server that lost half of its answer. */
        if (fstat(fd, &status) == 0 && n < request->length &&
            (uint64_t)status.st_size >= request->offset + request->length)
                return why_set(&request->why, -EIO, "%s: only %zu of %" PRIu64 " bytes could be read", request->path, n,
                               request->length);
        if (request->is_part)
                return why_set(&request->why, -EBADMSG,
                               "%s: changed: bytes %" PRIu64 " to %" PRIu64 " were expected, the file ends at %" PRIu64,
                               request->path, request->offset, request->offset + request->length, request->offset + n);

        /* Of a file that has grown only one more byte was read; the message gives its full size. */
        if (n > request->length && fstat(fd, &status) == 0 && (uint64_t)status.st_size > n)
                n_has = (uint64_t)status.st_size;
        return why_set(&request->why, -EBADMSG, "%s: changed: %" PRIu64 " bytes were expected, the file has %" PRIu64,
                       request->path, request->length, n_has);
}

static int read_and_judge(struct read_request *request, size_t *ret_n) {
        bool is_unknown = request->length == READER_LENGTH_UNKNOWN;
        _cleanup_(closep) int fd = -1;
        size_t n;
        int r;

        r = read_file_check_room(request);
        if (r < 0)
                return r;

        r = read_file_open(request, 0, &fd);
        if (r == -EINVAL)
                return why_set(&request->why, r, "%s: not a regular file", request->path);
        if (r == -EREMCHG)
                return why_set(&request->why, r,
                               "%s: changed: it was written to, or another file has taken its place, since the dataset "
                               "was opened",
                               request->path);
        if (r < 0)
                return why_errno(&request->why, r, "%s", request->path);

        r = read_until(fd, request->offset, request->buffer,
                       is_unknown ? request->capacity : read_request_wanted(request), &n);
        if (r < 0)
                return why_errno(&request->why, r, "%s", request->path);

        r = is_unknown ? read_file_check_end(request, fd, n) : read_file_check_length(request, fd, n);
        if (r < 0)
                return r;

        *ret_n = n;
        return 0;
}

void read_file(struct read_request *request) {
        size_t n = 0;

        request->result = read_and_judge(request, &n);
        request->n_bytes = n;
}
