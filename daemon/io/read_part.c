/* io/read_part.c: a part of a file that is kept open, with plain system calls.
 *
 * The pool reads parts in this way, and io_uring uses it for the first read of a file: it opens the file and finds out
 * whether it can be read past the page cache. A read that fails goes to read_file(), which opens the file again and
 * says what is wrong. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/io/reader_private.h"
#include "proto/base/cleanup.h"

static void say_refused(struct reader *reader, const struct read_request *request, int error) {
        if (!atomic_exchange(&reader->has_said_refused, true))
                log_warning("reader",
                            "%s cannot be read past the page cache (%s); reading it and others like it through",
                            request->path, strerrorname_np(-error));
}

/* Opens the request's file, with O_DIRECT if that is wanted and works. Blocks as opening does. */
static struct kept_file *open_and_keep(struct reader *reader, const struct read_request *request) {
        _cleanup_(closep) int fd = -1;
        bool is_direct = request->past_cache;
        struct kept_file *file;
        int r, refused = 0;

        r = read_file_open(request, is_direct ? O_DIRECT : 0, &fd);
        if (r < 0 && is_direct) {
                refused = r;
                is_direct = false;
                r = read_file_open(request, 0, &fd);
        }
        if (r < 0)
                return NULL;
        if (refused < 0)
                say_refused(reader, request, refused);
        fcntl(fd, F_SETFL, is_direct ? O_DIRECT : 0); /* without O_NONBLOCK: it is a regular file, and may block */
        file = kept_files_add(&reader->kept, request, fd, is_direct);
        if (file)
                take_fd(&fd);
        return file;
}

bool read_kept_look(struct kept_file *file, const struct read_request *request) {
        struct stat status;

        /* Before the look, so that others do not look as well. */
        atomic_store_explicit(&file->looked_ns, clock_now_ns(), memory_order_relaxed);
        if (fstat(file->fd, &status) == 0 && !read_file_is_doubtful(request, &status))
                return true;
        atomic_store_explicit(&file->looked_ns, 0, memory_order_relaxed);
        return false;
}

/* Reads what the kernel returns in one call, which is all unless the file ends there. */
static bool read_part_read_once(int fd, const struct read_request *request, uint64_t n_wanted, int *ret_error) {
        ssize_t n;

        do {
                n = pread(fd, request->buffer, n_wanted, (off_t)request->offset);
        } while (n < 0 && errno == EINTR);
        *ret_error = n < 0 ? -errno : 0;
        return n >= 0 && (uint64_t)n >= request->length;
}

static bool read_kept(struct reader *reader, struct kept_file *file, struct read_request *request) {
        bool is_direct = atomic_load_explicit(&file->is_direct, memory_order_relaxed);
        int error;

        if ((is_direct && !read_request_is_aligned(request)) ||
            (read_kept_is_due(file, request) && !read_kept_look(file, request)))
                return false;
        if (read_part_read_once(file->fd, request, is_direct ? read_request_blocks(request) : request->length,
                                &error)) {
                reader_count(&reader->counts.n_direct, is_direct);
                return true;
        }
        if (is_direct && error == -EINVAL) { /* O_DIRECT was accepted by open(), but needs blocks of another size */
                say_refused(reader, request, error);
                atomic_store_explicit(&file->is_direct, false, memory_order_relaxed);
                fcntl(file->fd, F_SETFL, 0);
        }
        return false;
}

void read_part(struct reader *reader, struct read_request *request) {
        struct kept_file *file;
        bool is_read = false;

        if (request->length > 0 && read_request_fits(request)) {
                file = kept_files_find(&reader->kept, request);
                if (!file)
                        file = open_and_keep(reader, request);
                if (file) {
                        is_read = read_kept(reader, file, request);
                        if (kept_files_put(&reader->kept, file))
                                kept_files_close(&reader->kept);
                }
        }
        if (!is_read) {
                read_file(request);
                return;
        }
        request->n_bytes = request->length;
        request->result = 0;
}
