/* Files that were made on this node: shards, and what came out of archives. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/disk.h"
#include "daemon/staging/tree/private.h"

/* Hashes it; of a large file the chunks, too: `digests` of each, to be noted when it is in place. */
static int hash_file(struct tree *tree, int fd, const struct plan_file *file, struct digest128 *digests,
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
                tree_tell_waiting(tree);
                if (tree_is_cancelled(tree))
                        return -ECANCELED;
        }
        sha256_end(&tree->sha, found);
        return 0;
}

static int put_in_place(struct tree *tree, const struct plan_file *file, const char *from_path, int from_fd) {
        const char *name;
        int dir, r;

        dir = paths_folder_of(roots_for(&tree->write_roots, file), file->path, true, &name);
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

static int note(struct tree *tree, uint64_t idx_chunk, struct digest128 digest, struct why *why) {
        int r = journal_note(&tree->journal, idx_chunk, digest);

        if (r < 0)
                return why_errno(why, r, "%s: its journal", tree->root_path);
        state_set_present(tree, idx_chunk, digest);
        return 0;
}

/* The last file of a chunk: its digest is over all of them. */
static int note_small(struct tree *tree, uint64_t idx_chunk, struct why *why) {
        struct chunk chunk = chunks_get(tree->chunks, idx_chunk);
        uint8_t *at = tree->scratch;

        if (!state_files_are_whole(tree, &chunk))
                return 0;
        for (uint32_t i = 0; i < chunk.n_files; i++) {
                const struct plan_file *file = plan_file(tree->plan, chunk.first_file + i);
                int r = read_file_bytes(&tree->write_roots, file, FROM_ANYWHERE, at);

                if (r < 0) {
                        state_set_broken(tree, chunk.first_file + i);
                        return why_errno(why, r, "%s", file->path);
                }
                at += file->n_bytes;
        }
        return note(tree, idx_chunk, digest128_of(tree->scratch, chunk.n_bytes), why);
}

static int adopt(struct tree *tree, uint64_t idx_file, const char *from_path, int fd, struct digest128 *digests,
                 struct why *why) {
        const struct plan_file *file = plan_file(tree->plan, idx_file);
        uint64_t first, n = chunks_of_file(tree->chunks, idx_file, &first);
        uint8_t found[SHA256_BYTES];
        int r;

        r = hash_file(tree, fd, file, digests, found);
        if (r < 0)
                return why_errno(why, r, "%s", from_path);
        if (file->sha256 && memcmp(found, file->sha256, sizeof(found)) != 0)
                return why_set(why, -EBADMSG, "%s: its SHA-256 is not that of %s in the plan", from_path, file->path);
        r = put_in_place(tree, file, from_path, fd);
        if (r < 0)
                return why_errno(why, r, "%s", file->path);
        growing_drop(tree, idx_file);
        state_set_whole(tree, idx_file, found);
        syncer_add(&tree->syncer, file->n_bytes);
        if (!file_is_large(file))
                return note_small(tree, first, why);
        for (uint64_t i = 0; i < n && r == 0; i++)
                r = note(tree, first + i, digests[i], why);
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
                return why_set(why, -EBADMSG, "%s is no file of %llu bytes, as %s is in the plan", from_path,
                               (unsigned long long)file->n_bytes, file->path);
        digests = calloc(file->n_bytes / CHUNK_BYTES + 1, sizeof(*digests));
        if (!digests)
                return -ENOMEM;
        return adopt(tree, idx_file, from_path, fd, digests, why);
}
