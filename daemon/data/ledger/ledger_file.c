#include "daemon/data/ledger/ledger_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/data/growing.h"
#include "proto/base/cleanup.h"

#define REPETITION_MIN 1000u        /* useless lines before the file is rewritten */
#define CHUNK_BYTES    (256u << 10) /* written at once */
#define FILE_BYTES_MAX (1ull << 30) /* a longer file is not one of our ledgers */
#define HEADER_MAX     256u
#define TORN_LINE_END  "\t\t\t\t\t\t\n" /* more columns than a line has: a torn line does not become an entry */

static int ledger_file_write_all(int fd, const void *bytes, size_t n_bytes) {
        const uint8_t *at = bytes;

        while (n_bytes > 0) {
                ssize_t n = write(fd, at, n_bytes);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                at += n;
                n_bytes -= (size_t)n;
        }
        return 0;
}

/* ---- appending ----------------------------------------------------------------------------------------------- */

static bool ledger_file_take(struct ledger_file *file, enum ledger_state at_least, uint32_t *idx,
                             struct ledger_entry *ret_entry) {
        bool taken;

        pthread_mutex_lock(file->lock);
        taken = ledger_book_take(file->book, at_least, idx, ret_entry);
        pthread_mutex_unlock(file->lock);
        return taken;
}

static void unwrite(struct ledger_file *file) {
        pthread_mutex_lock(file->lock);
        ledger_book_unwrite(file->book);
        pthread_mutex_unlock(file->lock);
}

/* Writes all entries that are due, after `first`. */
static int ledger_file_write_lines(struct ledger_file *file, int fd, enum ledger_state at_least,
                                   struct growing *first) {
        char line[LEDGER_LINE_MAX], path[INDEX_PATH_SIZE];
        struct ledger_entry entry;
        uint32_t idx = 0;
        int r;

        while (ledger_file_take(file, at_least, &idx, &entry)) {
                source_name(file->index, entry.sample, path);
                r = growing_append(first, line, ledger_line_print(line, &entry, path));
                if (r == 0 && first->n_bytes >= CHUNK_BYTES) {
                        r = ledger_file_write_all(fd, first->bytes, first->n_bytes);
                        growing_clear(first);
                }
                if (r < 0)
                        return r;
        }
        return ledger_file_write_all(fd, first->bytes, first->n_bytes);
}

/* Is the file empty, or was it cut within its header? Then it holds no entry. `n_read` bytes could be read of it. They
 * alone do not decide: if a disk returns less than the file holds, its entries must not be lost. A device has the size
 * 0 and counts as empty, although it can be read. */
static bool is_cut_header(const struct ledger_file *file, const char *text, size_t n_read, off_t size) {
        char header[LEDGER_LINE_MAX];
        size_t n = ledger_header_print(header, file->digest);

        return size == 0 || (n_read == (size_t)size && n_read < n && memcmp(text, header, n_read) == 0);
}

/* Writes what must come before the first new line: a header in an empty file, or a line end after a torn line. Returns
 * 1 if the file is empty. */
static int ledger_file_begin(struct ledger_file *file, int fd, off_t size, struct growing *first) {
        char header[HEADER_MAX + 1] = "", last = '\0', line[LEDGER_LINE_MAX];
        ssize_t n_read = pread(fd, header, HEADER_MAX, 0);
        int r;

        if (n_read < 0 || (size > 0 && pread(fd, &last, 1, size - 1) < 0))
                return -errno;
        if (is_cut_header(file, header, (size_t)n_read, size)) {
                if (size > 0 && ftruncate(fd, 0) < 0)
                        return -errno;
                r = growing_append(first, line, ledger_header_print(line, file->digest));
                return r < 0 ? r : 1;
        }
        if (!ledger_header_matches(header, file->digest))
                return -ESTALE;
        return last == '\n' ? 0 : growing_append(first, TORN_LINE_END, strlen(TORN_LINE_END));
}

static int append_to(struct ledger_file *file, int fd, enum ledger_state at_least) {
        struct growing first = { 0 };
        struct stat status;
        int r;

        if (fstat(fd, &status) < 0)
                return -errno;
        r = ledger_file_begin(file, fd, status.st_size, &first);
        if (r > 0) {
                unwrite(file);
                at_least = LEDGER_NEW;
        }
        if (r >= 0)
                r = ledger_file_write_lines(file, fd, at_least, &first);
        growing_fini(&first);
        /* A partial line on a full disk is removed. If that fails too, it is a torn line, which the next append
         * repairs. */
        if (r < 0 && r != -ESTALE && ftruncate(fd, status.st_size) < 0)
                return r;
        return r;
}

int ledger_file_append(struct ledger_file *file, enum ledger_state at_least, struct why *why) {
        _cleanup_(closep) int fd = open(file->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        int r = fd < 0 || fchmod(fd, 0600) < 0 ? -errno : append_to(file, fd, at_least); /* older ones were 0644 */

        if (r < 0) {
                unwrite(file);
                if (r == -ESTALE)
                        return why_set(why, r,
                                       "%s is the ledger of another content of the dataset now, or cannot be "
                                       "read",
                                       file->path);
                return why_errno(why, r, "%s", file->path);
        }
        return 0;
}

/* ---- loading ------------------------------------------------------------------------------------------------- */

/* Returns the number of lines without a (current) entry, or -ENOMEM. */
static int64_t load_lines(struct ledger_file *file, char *text) {
        int64_t n_lines = 0;
        char *line, *end;

        for (line = text; (end = strchr(line, '\n')); line = end + 1) {
                struct ledger_entry entry;
                int r;

                *end = '\0';
                r = ledger_line_parse(line, &entry);
                if (r == 0 && ledger_book_put(file->book, &entry) == -ENOMEM)
                        return -ENOMEM;
                n_lines += r <= 0;
        }
        return n_lines - file->book->n_kept;
}

/* Reads all of the file, with a NUL after it. NULs inside (from a power cut) become line ends. */
static int ledger_file_read_text(int fd, char **ret_text) {
        _cleanup_(freep) char *text = NULL;
        struct stat status;
        size_t n_bytes = 0;

        if (fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size > FILE_BYTES_MAX)
                return -EFBIG;
        text = malloc((size_t)status.st_size + 1);
        if (!text)
                return -ENOMEM;
        while (n_bytes < (size_t)status.st_size) {
                ssize_t n = read(fd, text + n_bytes, (size_t)status.st_size - n_bytes);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                n_bytes += (size_t)n;
        }
        for (size_t i = 0; i < n_bytes; i++)
                if (text[i] == '\0')
                        text[i] = '\n';
        text[n_bytes] = '\0';
        *ret_text = TAKE_PTR(text);
        return 0;
}

/* If anything fails, the old file is still there. */
static int rewrite(struct ledger_file *file) {
        _cleanup_(closep) int fd = -1;
        char temporary[PATH_MAX];
        int r;

        if (snprintf(temporary, sizeof(temporary), "%s.new-XXXXXX", file->path) >= (int)sizeof(temporary))
                return -ENAMETOOLONG;
        fd = mkostemp(temporary, O_CLOEXEC);
        if (fd < 0)
                return -errno;
        r = append_to(file, fd, LEDGER_NEW);
        if (r == 0 && (fdatasync(fd) < 0 || rename(temporary, file->path) < 0))
                r = -errno;
        if (r < 0)
                unlink(temporary);
        return r;
}

/* Marks all entries as written: the file has the same as the book. */
static void believe(struct ledger_file *file) {
        struct ledger_entry entry;
        uint32_t idx = 0;

        while (ledger_file_take(file, LEDGER_REPEATED, &idx, &entry))
                ;
}

static int put_aside(struct ledger_file *file, struct why *why) {
        char aside[PATH_MAX];

        if (snprintf(aside, sizeof(aside), "%s.old", file->path) >= (int)sizeof(aside))
                return why_errno(why, -ENAMETOOLONG, "%s", file->path);
        if (rename(file->path, aside) < 0)
                return why_errno(why, -errno, "%s cannot be moved aside", file->path);
        why_set(why, 0, "the ledger of damaged samples is of another content of the dataset; it was moved to %s",
                aside);
        return LEDGER_PUT_ASIDE;
}

int ledger_file_load(struct ledger_file *file, struct why *why) {
        _cleanup_(closep) int fd = open(file->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        _cleanup_(freep) char *text = NULL;
        int64_t n_useless;
        int r;

        if (fd < 0 && errno == ENOENT)
                return 0;
        r = fd < 0 ? -errno : ledger_file_read_text(fd, &text);
        if (r == -EFBIG)
                return put_aside(file, why);
        if (r < 0)
                return why_errno(why, r, "%s", file->path);
        if (!ledger_header_matches(text, file->digest))
                return put_aside(file, why);

        n_useless = load_lines(file, text);
        if (n_useless < 0)
                return why_errno(why, (int)n_useless, "%s", file->path);
        if (n_useless > (int64_t)(file->book->n_kept + REPETITION_MIN) && rewrite(file) < 0)
                believe(file); /* the file keeps its useless lines */
        return 0;
}
