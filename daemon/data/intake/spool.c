#include "daemon/data/intake/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "daemon/base/machine/disk.h"
#include "proto/base/cleanup.h"

#define WINDOW_BYTES (256u << 10)
#define FOLDERS_MAX  16u /* streams with the same spool */

/* ---- the folder ------------------------------------------------------------------------------------------------ */

static void file_name(uint64_t number, char name[32]) {
        snprintf(name, 32, "%" PRIu64 ".tar", number);
}

static bool spool_is_ours(const char *name) {
        size_t n = strspn(name, "0123456789");

        return n > 0 && strcmp(name + n, ".tar") == 0;
}

/* Only files that have our names: the folder may be one that somebody named by mistake. */
static void spool_empty(int fd) {
        int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
        const struct dirent *entry;

        if (!dir) {
                closep(&copy);
                return;
        }
        while ((entry = readdir(dir)))
                if (spool_is_ours(entry->d_name))
                        unlinkat(fd, entry->d_name, 0);
        closedir(dir);
}

/* Returns 1 if another stream has it. */
static int spool_open_folder(struct spool *spool, const char *path, struct why *why) {
        _cleanup_(closep) int fd = -1;

        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return why_errno(why, -errno, "spool: the folder %s cannot be made", path);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return why_errno(why, -errno, "spool: the folder %s cannot be opened", path);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return 1;
        spool->folder = strdup(path);
        if (!spool->folder)
                return why_errno(why, -ENOMEM, "spool");
        spool->fd = take_fd(&fd);
        spool_empty(spool->fd);
        return 0;
}

int spool_open(struct spool *spool, const char *path, uint64_t limit_bytes, struct why *why) {
        char name[PATH_MAX];
        int r = 1;

        *spool = (struct spool){ .fd = -1, .limit_bytes = limit_bytes };
        for (unsigned i = 0; i < FOLDERS_MAX && r == 1; i++) {
                if (snprintf(name, sizeof(name), "%s.%u", path, i) >= (int)sizeof(name) - 64)
                        return why_set(why, -ENAMETOOLONG, "spool: the path %s is too long", path);
                r = spool_open_folder(spool, name, why);
        }
        return r == 1 ? why_set(why, -EBUSY, "spool: %u other streams have %s", FOLDERS_MAX, path) : r;
}

void spool_drop_last(struct spool *spool, uint64_t n_bytes) {
        char name[32];

        file_name(--spool->n_files, name);
        unlinkat(spool->fd, name, 0);
        spool->used_bytes -= n_bytes;
}

void spool_close(struct spool *spool) {
        if (spool->folder) {
                spool_empty(spool->fd);
                rmdir(spool->folder);
        }
        closep(&spool->fd);
        free(spool->folder);
        *spool = (struct spool){ .fd = -1 };
}

/* ---- unpacking ------------------------------------------------------------------------------------------------- */

static const uint8_t GZIP[] = { 0x1f, 0x8b, 0x08 }, ZSTD[] = { 0x28, 0xb5, 0x2f, 0xfd };

static int spool_begins_with(int fd, const uint8_t *bytes, size_t n) {
        uint8_t first[4];
        int r = disk_read_at(fd, first, n, 0);

        if (r == -ENODATA)
                return 0;
        return r < 0 ? r : memcmp(first, bytes, n) == 0;
}

int spool_wants(int fd) {
        int r = spool_begins_with(fd, GZIP, sizeof(GZIP));

        return r != 0 ? r : spool_begins_with(fd, ZSTD, sizeof(ZSTD));
}

struct unpacking {
        const atomic_bool *stop;
        int from, into;
        uint64_t n_read, n_written, n_room;
        size_t n_in; /* bytes of `in` */
        z_stream gzip;
        ZSTD_DStream *zstd; /* NULL: it is gzip */
        uint8_t in[WINDOW_BYTES], out[WINDOW_BYTES];
};

/* The next bytes of the compressed file; 0 at its end. */
static ssize_t spool_fill(struct unpacking *unpacking, struct why *why) {
        ssize_t n;

        if (atomic_load_explicit(unpacking->stop, memory_order_relaxed))
                return why_set(why, -ECANCELED, "unpacking was cancelled");
        n = pread(unpacking->from, unpacking->in, sizeof(unpacking->in), (off_t)unpacking->n_read);
        if (n < 0)
                return why_errno(why, -errno, "at byte %" PRIu64, unpacking->n_read);
        unpacking->n_read += (uint64_t)n;
        unpacking->n_in = (size_t)n;
        return n;
}

static int spool_drain(struct unpacking *unpacking, size_t n, struct why *why) {
        int r;

        if (n > unpacking->n_room - unpacking->n_written)
                return why_set(why, -ENOSPC,
                               "it does not fit into what is left of spool_limit, %" PRIu64
                               " bytes; raise it, or unpack "
                               "the shards",
                               unpacking->n_room);
        r = n > 0 ? disk_write_at(unpacking->into, unpacking->out, n, unpacking->n_written) : 0;
        if (r < 0)
                return why_errno(why, r, "the spool cannot be written");
        unpacking->n_written += n;
        return 0;
}

static int spool_damaged(const struct unpacking *unpacking, const char *what, struct why *why) {
        why_set(why, 0, "the compressed data are damaged before byte %" PRIu64 ": %s", unpacking->n_read, what);
        return UNPACKED_DAMAGED;
}

/* A file may consist of several members, as concatenated files do. */
static int spool_unpack_gzip(struct unpacking *unpacking, struct why *why) {
        z_stream *gzip = &unpacking->gzip;
        bool is_within = false;
        int r;

        for (;;) {
                if (gzip->avail_in == 0) {
                        ssize_t n = spool_fill(unpacking, why);

                        if (n <= 0)
                                return n < 0 ? (int)n : is_within ? UNPACKED_CUT : UNPACKED_WHOLE;
                        gzip->next_in = unpacking->in;
                        gzip->avail_in = (uInt)n;
                }
                gzip->next_out = unpacking->out;
                gzip->avail_out = sizeof(unpacking->out);
                r = inflate(gzip, Z_NO_FLUSH);
                if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
                        return r == Z_MEM_ERROR ? why_errno(why, -ENOMEM, "gzip")
                                                : spool_damaged(unpacking, gzip->msg ? gzip->msg : "gzip", why);
                is_within = r != Z_STREAM_END;
                r = spool_drain(unpacking, sizeof(unpacking->out) - gzip->avail_out, why);
                if (r < 0)
                        return r;
                if (!is_within)
                        inflateReset(gzip);
        }
}

static int unpack_zstd(struct unpacking *unpacking, struct why *why) {
        ZSTD_inBuffer in = { 0 };
        size_t n_wanted = 0;

        for (;;) {
                ZSTD_outBuffer out = { .dst = unpacking->out, .size = sizeof(unpacking->out) };
                int r;

                if (in.pos == in.size) {
                        ssize_t n = spool_fill(unpacking, why);

                        if (n <= 0)
                                return n < 0 ? (int)n : n_wanted > 0 ? UNPACKED_CUT : UNPACKED_WHOLE;
                        in = (ZSTD_inBuffer){ .src = unpacking->in, .size = (size_t)n };
                }
                do { /* until it has nothing more to give of what it was given */
                        out.pos = 0;
                        n_wanted = ZSTD_decompressStream(unpacking->zstd, &out, &in);
                        if (ZSTD_isError(n_wanted))
                                return spool_damaged(unpacking, ZSTD_getErrorName(n_wanted), why);
                        r = spool_drain(unpacking, out.pos, why);
                        if (r < 0)
                                return r;
                } while (out.pos == out.size);
        }
}

static int unpack(struct unpacking *unpacking, struct why *why) {
        int r = spool_begins_with(unpacking->from, ZSTD, sizeof(ZSTD));

        if (r < 0)
                return why_errno(why, r, "cannot be read");
        if (r > 0) {
                unpacking->zstd = ZSTD_createDStream();
                r = unpacking->zstd ? unpack_zstd(unpacking, why) : why_errno(why, -ENOMEM, "zstd");
                ZSTD_freeDStream(unpacking->zstd);
                return r;
        }
        if (inflateInit2(&unpacking->gzip, 15 + 16) != Z_OK)
                return why_errno(why, -ENOMEM, "gzip");
        r = spool_unpack_gzip(unpacking, why);
        inflateEnd(&unpacking->gzip);
        return r;
}

int spool_new_file(struct spool *spool, char *ret_path, int *ret_fd, struct why *why) {
        char name[32];
        int fd;

        file_name(spool->n_files, name);
        fd = openat(spool->fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return why_errno(why, -errno, "spool: %s/%s", spool->folder, name);
        spool->n_files++;
        snprintf(ret_path, PATH_MAX, "%s/%s", spool->folder, name);
        *ret_fd = fd;
        return 0;
}

int spool_unpack(struct spool *spool, int fd, const atomic_bool *stop, char *ret_path, int *ret_fd, struct why *why) {
        _cleanup_(freep) struct unpacking *unpacking = calloc(1, sizeof(*unpacking));
        _cleanup_(closep) int into = -1;
        int r;

        if (!unpacking)
                return why_errno(why, -ENOMEM, "unpacking");
        r = spool_new_file(spool, ret_path, &into, why);
        if (r < 0)
                return r;
        unpacking->stop = stop;
        unpacking->from = fd;
        unpacking->into = into;
        unpacking->n_room = spool->limit_bytes - spool->used_bytes;
        r = unpack(unpacking, why);
        spool->used_bytes += unpacking->n_written;
        if (r < 0) {
                spool_drop_last(spool, unpacking->n_written);
                return r;
        }
        *ret_fd = take_fd(&into);
        return r;
}
