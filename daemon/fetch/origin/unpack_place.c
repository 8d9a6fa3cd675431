#include "daemon/fetch/origin/unpack_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "daemon/base/machine/disk.h"
#include "daemon/store/plan/plan.h"
#include "proto/base/cleanup.h"

#define ZEROS_BYTES 65536u

int unpack_place_init(struct unpack_place *place, int root_fd, struct why *why) {
        *place = (struct unpack_place){ .lookup = LOOKUP_OF(root_fd), .fd = -1 };
        /* A name for this thread: several archives may be unpacked into one folder at a time. */
        snprintf(place->unfinished, sizeof(place->unfinished), PLAN_UNFINISHED "unpack-%d-%d", (int)getpid(),
                 (int)gettid());
        return sha256_init(&place->sha) < 0 ? why_errno(why, -ENOMEM, "SHA-256") : 0;
}

void unpack_place_fini(struct unpack_place *place) {
        if (place->fd >= 0)
                unlinkat(place->lookup.root_fd, place->unfinished, 0);
        closep(&place->fd);
        lookup_fini(&place->lookup);
        place->fd = -1;
        sha256_fini(&place->sha);
}

/* ---- folders ------------------------------------------------------------------------------------------------- */

/* The folder that a path lies in, as lookup_folder_of(). A link in its place may be the archive's. */
static int parent_of(struct unpack_place *place, const char *path, const char **ret_name, struct why *why) {
        int fd = lookup_folder_of(&place->lookup, path, true, ret_name);

        if (fd == -ELOOP || fd == -ENOTDIR)
                return why_set(why, -EINVAL, "\"%s\" would lie behind a link or a file", path);
        return fd < 0 ? why_errno(why, fd, "the folder of \"%s\"", path) : fd;
}

/* Gives a finished file its name; it replaces what an earlier run left there. */
static int give_name(struct unpack_place *place, const char *path, struct why *why) {
        const char *name;
        int fd = parent_of(place, path, &name, why);

        if (fd < 0)
                return fd;
        if (renameat(place->lookup.root_fd, place->unfinished, fd, name) < 0)
                return why_errno(why, -errno, "\"%s\" cannot be put in place", path);
        return 0;
}

/* ---- files --------------------------------------------------------------------------------------------------- */

int unpack_place_begin(struct unpack_place *place, bool write, struct why *why) {
        place->n_bytes = 0;
        sha256_restart(&place->sha);
        if (!write)
                return 0;
        unlinkat(place->lookup.root_fd, place->unfinished, 0);
        place->fd = openat(place->lookup.root_fd, place->unfinished,
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        return place->fd < 0 ? why_errno(why, -errno, "a file cannot be made") : 0;
}

static void hash_zeros(struct unpack_place *place, uint64_t n_bytes) {
        static const uint8_t zeros[ZEROS_BYTES];

        for (; n_bytes > 0; n_bytes -= n_bytes < sizeof(zeros) ? n_bytes : sizeof(zeros))
                sha256_add(&place->sha, zeros, n_bytes < sizeof(zeros) ? n_bytes : sizeof(zeros));
}

int unpack_place_bytes(struct unpack_place *place, uint64_t offset, const void *bytes, size_t n_bytes,
                       struct why *why) {
        int r;

        hash_zeros(place, offset - place->n_bytes);
        sha256_add(&place->sha, bytes, n_bytes);
        place->n_bytes = offset + n_bytes;
        r = place->fd >= 0 ? disk_write_at(place->fd, bytes, n_bytes, offset) : 0;
        return r < 0 ? why_errno(why, r, "cannot be written") : 0;
}

/* For all who may read it: the umask says who that is. */
static int make_executable(int fd) {
        struct stat status;

        return fstat(fd, &status) < 0 ? -1 : fchmod(fd, (status.st_mode & 0777) | ((status.st_mode & 0444) >> 2));
}

int unpack_place_end(struct unpack_place *place, const char *path, uint64_t n_bytes, mode_t mode,
                     uint8_t ret_sha256[SHA256_BYTES], struct why *why) {
        bool is_written = place->fd >= 0;
        int r;

        hash_zeros(place, n_bytes - place->n_bytes);
        sha256_end(&place->sha, ret_sha256);
        if (!is_written)
                return 0;
        if (ftruncate(place->fd, (off_t)n_bytes) < 0 || ((mode & S_IXUSR) && make_executable(place->fd) < 0))
                return why_errno(why, -errno, "\"%s\" cannot be written", path);
        r = give_name(place, path, why);
        if (r < 0)
                return r;
        /* Some file systems report only now that there was no space. */
        r = close(take_fd(&place->fd)) < 0 ? -errno : 0;
        return r < 0 ? why_errno(why, r, "\"%s\" cannot be written", path) : 0;
}

/* ---- links --------------------------------------------------------------------------------------------------- */

int unpack_place_link(struct unpack_place *place, const char *path, const char *target, struct why *why) {
        int r;

        unlinkat(place->lookup.root_fd, place->unfinished, 0);
        if (symlinkat(target, place->lookup.root_fd, place->unfinished) < 0)
                return why_errno(why, -errno, "the link \"%s\" cannot be made", path);
        r = give_name(place, path, why);
        if (r < 0)
                unlinkat(place->lookup.root_fd, place->unfinished, 0);
        return r;
}

int unpack_place_hard_link(struct unpack_place *place, const char *path, const char *target, uint64_t *ret_n_bytes,
                           uint8_t ret_sha256[SHA256_BYTES], struct why *why) {
        _cleanup_(closep) int fd = -1;
        struct stat stat;
        const char *name;
        int parent, r;

        parent = parent_of(place, target, &name, why);
        if (parent < 0)
                return parent;
        fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode))
                return why_set(why, -EINVAL,
                               "\"%s\" is a hard link to \"%s\", which is not an earlier file of the archive", path,
                               target);
        r = sha256_file(&place->sha, fd, ret_n_bytes, ret_sha256);
        if (r < 0)
                return why_errno(why, r, "\"%s\" cannot be read", target);
        unlinkat(place->lookup.root_fd, place->unfinished, 0);
        if (linkat(parent, name, place->lookup.root_fd, place->unfinished, 0) < 0)
                return why_errno(why, -errno, "the hard link \"%s\" cannot be made", path);
        r = give_name(place, path, why);
        /* If it was there from an earlier run, both names are one file and rename() leaves both alone. */
        unlinkat(place->lookup.root_fd, place->unfinished, 0);
        return r;
}
