/* Files whose bytes are on this node already: made here (shards, what came out of archives), or in the version before.
 *
 * A file that did not change since the version before gets a second name: nothing is read, written or fetched. It is
 * the same if path and size are, and the SHA-256; if the plan does not say one, the same strong ETag. What a stamp
 * vouches for is believed here; the first read for another node, or --verify, looks. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/store/tree/tree_private.h"
#include "proto/base/cleanup.h"

/* ---- copying, where there can be no link --------------------------------------------------------------------- */

static int copy_bytes(struct tree *tree, int from_fd, int to_fd, uint64_t n_bytes) {
        for (uint64_t offset = 0; offset < n_bytes; offset += CHUNK_BYTES) {
                size_t n = n_bytes - offset < CHUNK_BYTES ? (size_t)(n_bytes - offset) : CHUNK_BYTES;
                int r = disk_read_at(from_fd, tree->scratch, n, offset);

                if (r == 0)
                        r = disk_write_at(to_fd, tree->scratch, n, offset);
                if (r < 0)
                        return r;
                if (tree_is_cancelled(tree))
                        return -ECANCELED;
        }
        return 0;
}

static int copy_into_place(struct tree *tree, int from_fd, const struct plan_file *file) {
        int fd = part_begin(tree), r;

        if (fd < 0)
                return fd;
        r = copy_bytes(tree, from_fd, fd, file->n_bytes);
        if (close(fd) < 0 && r == 0 && errno != EINTR)
                r = -errno;
        if (r == 0)
                r = part_put_in_place(tree, file);
        if (r < 0)
                unlinkat(tree->folder_fd, tree->part_name, 0);
        return r;
}

/* ---- files that were made here ----------------------------------------------------------------------------- */

/* Hashes it; of a large file the chunks, too: `digests` of each, to be noted when it is in place. */
static int local_hash_file(struct tree *tree, int fd, const struct plan_file *file, struct digest128 *digests,
                           uint8_t found[SHA256_BYTES]) {
        sha256_restart(&tree->sha);
        for (uint64_t offset = 0, i = 0; offset < file->n_bytes; i++) {
                size_t n = file->n_bytes - offset < CHUNK_BYTES ? (size_t)(file->n_bytes - offset) : CHUNK_BYTES;
                int r = disk_read_at(fd, tree->scratch, n, offset);

                if (r < 0)
                        return r;
                sha256_add(&tree->sha, tree->scratch, n);
                digests[i] = digest128_of(tree->scratch, n);
                offset += n;
                if (tree_is_cancelled(tree))
                        return -ECANCELED;
        }
        sha256_end(&tree->sha, found);
        return 0;
}

static int put_in_place(struct tree *tree, const struct plan_file *file, const char *from_path, int from_fd) {
        const char *name;
        int dir, r;

        dir = lookup_folder_of(roots_for(&tree->write_roots, file), file->path, true, &name);
        if (dir < 0)
                return dir;
        if (renameat(AT_FDCWD, from_path, dir, name) == 0)
                return 0;
        if (errno != EXDEV)
                return -errno;
        r = copy_into_place(tree, from_fd, file);
        if (r == 0)
                unlink(from_path);
        return r;
}

static int local_note(struct tree *tree, uint64_t idx_chunk, struct digest128 digest, struct why *why) {
        int r = journal_note(&tree->journal, idx_chunk, digest);

        if (r < 0)
                return why_errno(why, r, "%s: its journal", tree->root_path);
        state_set_present(&tree->state, idx_chunk, digest);
        return 0;
}

/* The last file of a chunk: its digest is over all of them. */
static int note_small(struct tree *tree, uint64_t idx_chunk, struct why *why) {
        struct chunk chunk = chunks_get(tree->chunks, idx_chunk);
        uint8_t *at = tree->scratch;

        if (!state_files_are_whole(&tree->state, &chunk))
                return 0;
        for (uint32_t i = 0; i < chunk.n_files; i++) {
                const struct plan_file *file = plan_file(tree->plan, chunk.first_file + i);
                int r = read_file_bytes(&tree->write_roots, file, FROM_ANYWHERE, at);

                if (r < 0) {
                        state_set_broken(&tree->state, chunk.first_file + i);
                        return why_errno(why, r, "%s", file->path);
                }
                at += file->n_bytes;
        }
        return local_note(tree, idx_chunk, digest128_of(tree->scratch, chunk.n_bytes), why);
}

static int adopt(struct tree *tree, uint64_t idx_file, const char *from_path, int fd, struct digest128 *digests,
                 struct why *why) {
        const struct plan_file *file = plan_file(tree->plan, idx_file);
        uint64_t first, n = chunks_of_file(tree->chunks, idx_file, &first);
        uint8_t found[SHA256_BYTES];
        int r;

        r = local_hash_file(tree, fd, file, digests, found);
        if (r < 0)
                return why_errno(why, r, "%s", from_path);
        if (file->sha256 && memcmp(found, file->sha256, sizeof(found)) != 0)
                return why_set(why, -EBADMSG, "%s: its SHA-256 is not that of %s in the plan", from_path, file->path);
        r = put_in_place(tree, file, from_path, fd);
        if (r < 0)
                return why_errno(why, r, "%s", file->path);
        growing_drop(tree, idx_file);
        state_set_whole(&tree->state, idx_file, found);
        syncer_add(&tree->syncer, file->n_bytes);
        if (!file_is_large(file))
                return note_small(tree, first, why);
        for (uint64_t i = 0; i < n && r == 0; i++)
                r = local_note(tree, first + i, digests[i], why);
        return r;
}

int tree_adopt(struct tree *tree, uint64_t idx_file, const char *from_path, struct why *why) {
        const struct plan_file *file = plan_file(tree->plan, idx_file);
        _cleanup_(freep) struct digest128 *digests = NULL;
        _cleanup_(closep) int fd = -1;
        struct stat status;

        fd = open(from_path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &status) < 0)
                return why_errno(why, -errno, "%s", from_path);
        if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size != file->n_bytes)
                return why_set(why, -EBADMSG, "%s is not a file of %llu bytes, which %s has in the plan", from_path,
                               (unsigned long long)file->n_bytes, file->path);
        digests = calloc(file->n_bytes / CHUNK_BYTES + 1, sizeof(*digests));
        if (!digests)
                return -ENOMEM;
        return adopt(tree, idx_file, from_path, fd, digests, why);
}

/* ---- files of the version before --------------------------------------------------------------------------- */

struct reuse {
        struct tree *tree;
        struct roots old;
        uint64_t n_reused;
};

/* W/"..." only says that two contents mean the same. */
static bool is_same_content(const struct plan_file *now, const struct plan_file *then) {
        if (now->n_bytes != then->n_bytes || now->unpack != then->unpack || !then->sha256)
                return false;
        if (now->sha256)
                return memcmp(now->sha256, then->sha256, SHA256_BYTES) == 0;
        return now->etag && then->etag && strncmp(now->etag, "W/", 2) != 0 && strcmp(now->etag, then->etag) == 0;
}

/* Something else has the name here: the link takes its place in one step. */
static int link_over(struct tree *tree, int from_dir, const char *name, const struct plan_file *file) {
        if (unlinkat(tree->folder_fd, tree->part_name, 0) < 0 && errno != ENOENT)
                return -errno;
        if (linkat(from_dir, name, tree->folder_fd, tree->part_name, 0) < 0)
                return -errno;
        return part_put_in_place(tree, file);
}

static int make_link(struct reuse *reuse, const struct plan_file *file, const struct stat *old) {
        struct tree *tree = reuse->tree;
        const char *name;
        struct stat there;
        int from_dir, to_dir;

        from_dir = lookup_folder_of(roots_for(&reuse->old, file), file->path, false, &name);
        to_dir = lookup_folder_of(roots_for(&tree->write_roots, file), file->path, true, &name);
        if (from_dir < 0 || to_dir < 0)
                return from_dir < 0 ? from_dir : to_dir;
        if (linkat(from_dir, name, to_dir, name, 0) == 0)
                return 0;
        if (errno != EEXIST)
                return -errno;
        if (fstatat(to_dir, name, &there, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        if (there.st_ino == old->st_ino && there.st_dev == old->st_dev)
                return 0; /* an earlier run's */
        return link_over(tree, from_dir, name, file);
}

static int copy_instead(struct reuse *reuse, const struct plan_file *file) {
        _cleanup_(closep) int fd = lookup_open(roots_for(&reuse->old, file), file->path, O_RDONLY);

        return fd < 0 ? fd : copy_into_place(reuse->tree, fd, file);
}

/* 0: it is here. What goes wrong costs no more than fetching the file. */
static int reuse_file(struct reuse *reuse, const struct plan_file *file) {
        struct stat old;
        int r = lookup_stat(roots_for(&reuse->old, file), file->path, &old);

        if (r < 0)
                return r;
        if (!S_ISREG(old.st_mode) || (uint64_t)old.st_size != file->n_bytes)
                return -EBADMSG;
        if (reuse->tree->options.read_only)
                return 0;
        r = make_link(reuse, file, &old);
        if (r == -EXDEV || r == -EMLINK || r == -EPERM || r == -EOPNOTSUPP || r == -ENOSYS)
                r = copy_instead(reuse, file);
        return r;
}

static int look_at_entry(void *userdata, uint64_t idx_file, const struct plan_file *then) {
        struct reuse *reuse = userdata;
        struct tree *tree = reuse->tree;
        const struct plan_file *file = plan_file(tree->plan, idx_file);
        uint64_t first, n;

        if (tree_is_cancelled(tree))
                return -ECANCELED;
        if (state_is_whole(&tree->state, idx_file) || !is_same_content(file, then) || reuse_file(reuse, file) < 0)
                return 0;
        state_set_whole(&tree->state, idx_file, then->sha256);
        if (file_is_large(file)) {
                growing_drop(tree, idx_file);
                n = chunks_of_file(tree->chunks, idx_file, &first);
                for (uint64_t i = first; i < first + n; i++)
                        state_set_present(&tree->state, i, (struct digest128){ 0 });
        }
        reuse->n_reused++;
        tree_tell(tree, TREE_LINKED, file->n_bytes, file->path);
        return 0;
}

static int open_old(const struct tree *tree, const char *version, const char *suffix) {
        char path[PATH_MAX];

        if (place_file(&tree->place, version, suffix, path) < 0)
                return -1;
        return open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int reuse_version(struct reuse *reuse, const char *version, struct why *why) {
        struct tree *tree = reuse->tree;
        _cleanup_(closep) int root_fd = open_old(tree, version, ""), spool_fd = open_old(tree, version, ".spool");
        struct why text;
        int r;

        reuse->old.version = LOOKUP_OF(root_fd);
        reuse->old.spool = LOOKUP_OF(spool_fd);
        r = root_fd < 0 ? -ENOENT : manifest_each(tree, version, look_at_entry, reuse, &text);
        roots_fini(&reuse->old);
        if (r == -EBADMSG)
                tree_tell(tree, TREE_BAD, 0, text.text);
        else if (r < 0 && r != -ENOENT) {
                if (why)
                        *why = text;
                return r;
        }
        return 0;
}

int reuse_versions(struct tree *tree, const struct stamp *stamp, struct why *why) {
        bool is_own_source = strcmp(stamp->version, stamp->source_version) == 0;
        const char *const versions[] = { stamp->version, is_own_source ? "" : stamp->source_version };
        struct reuse reuse = { .tree = tree };

        for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
                int r = 0;

                if (versions[i][0] && strcmp(versions[i], tree->version) != 0)
                        r = reuse_version(&reuse, versions[i], why);
                if (r < 0)
                        return r;
        }
        for (uint64_t i = 0; i < chunks_count(tree->chunks) && reuse.n_reused > 0; i++) {
                struct chunk chunk = chunks_get(tree->chunks, i);

                if (state_is_missing(&tree->state, i) && state_files_are_whole(&tree->state, &chunk))
                        state_set_present(&tree->state, i, (struct digest128){ 0 });
        }
        return 0;
}
