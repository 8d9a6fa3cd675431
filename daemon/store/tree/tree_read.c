/* Chunks out of files: for nodes that lack them, and for checking. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/store/tree/tree_private.h"
#include "proto/base/cleanup.h"

/* Is this what a damaged disk or folder says, so that writing the file again may help? */
static bool read_error_is_damage(int error) {
        switch (error) {
        case -EBADMSG:
        case -ENODATA:
        case -ENOENT:
        case -ENOTDIR:
        case -EISDIR:
        case -ELOOP:
        case -ENXIO: /* a socket or FIFO in its place */
        case -EIO:   /* a bad sector: another may take its place when it is written */
                return true;
        default:
                return false;
        }
}

int read_file_bytes(struct roots *roots, const struct plan_file *file, enum read_from from, uint8_t *into) {
        _cleanup_(closep) int fd = lookup_open(roots_for(roots, file), file->path, O_RDONLY);
        struct stat status;

        if (fd < 0)
                return fd;
        if (fstat(fd, &status) < 0)
                return -errno;
        if ((uint64_t)status.st_size != file->n_bytes)
                return -EBADMSG;
        if (from == FROM_DISK)
                (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        return disk_read_at(fd, into, file->n_bytes, 0);
}

static int tree_read_damaged(struct tree *tree, uint64_t idx_chunk, const struct plan_file *file, struct why *why) {
        state_set_missing(&tree->state, idx_chunk);
        return why_set(why, -EBADMSG, "%s is damaged on this node's disk", file->path);
}

static int tree_read_failed(struct tree *tree, uint64_t idx_chunk, const struct plan_file *file, int error,
                            struct why *why) {
        if (!read_error_is_damage(error))
                return why_errno(why, error, "%s", file->path);
        return tree_read_damaged(tree, idx_chunk, file, why);
}

/* A file that was linked has no digests of its chunks yet. */
static int learn_digests(struct tree *tree, uint64_t idx_file) {
        struct checking checking;
        int r = checking_init(&checking, tree);

        checking.is_silent = true;
        if (r == 0)
                r = check_large(&checking, idx_file);
        checking_fini(&checking);
        return r;
}

static int tree_read_read_part(struct tree *tree, uint64_t idx_chunk, const struct chunk *chunk, uint8_t *into,
                               struct why *why) {
        const struct plan_file *file = plan_file(tree->plan, chunk->first_file);
        _cleanup_(closep) int fd = -1;
        int r;

        if (!digest128_is_known(state_digest(&tree->state, idx_chunk))) {
                r = learn_digests(tree, chunk->first_file);
                if (r < 0)
                        return why_errno(why, r, "%s", file->path);
                if (state_is_missing(&tree->state, idx_chunk))
                        return tree_read_damaged(tree, idx_chunk, file, why);
        }
        fd = lookup_open(roots_for(&tree->read_roots, file), file->path, O_RDONLY);
        r = fd < 0 ? fd : disk_read_at(fd, into, chunk->n_bytes, chunk->offset);
        if (r == 0 && !digest128_equal(digest128_of(into, chunk->n_bytes), state_digest(&tree->state, idx_chunk)))
                r = -EBADMSG;
        if (r == 0)
                return 0;
        if (read_error_is_damage(r))
                state_set_broken(&tree->state, chunk->first_file);
        return tree_read_failed(tree, idx_chunk, file, r, why);
}

int tree_read_file(struct tree *tree, uint64_t idx_file, uint8_t *into, struct why *why) {
        const struct plan_file *file = plan_file(tree->plan, idx_file);
        const uint8_t *expected = state_expected(&tree->state, idx_file);
        struct sha256 sha = { 0 };
        uint8_t found[SHA256_BYTES];
        uint64_t first;
        int r;

        chunks_of_file(tree->chunks, idx_file, &first);
        if (!state_is_whole(&tree->state, idx_file))
                return why_set(why, -EBADMSG, "%s is not here", file->path);
        r = read_file_bytes(&tree->read_roots, file, FROM_ANYWHERE, into);
        if (r == 0)
                r = sha256_init(&sha);
        if (r == 0) {
                sha256_add(&sha, into, file->n_bytes);
                sha256_end(&sha, found);
                sha256_fini(&sha);
                if (memcmp(found, expected, sizeof(found)) != 0)
                        r = -EBADMSG;
        }
        if (r == 0)
                return 0;
        if (read_error_is_damage(r))
                state_set_broken(&tree->state, idx_file);
        return tree_read_failed(tree, first, file, r, why);
}

/* By the chunk's digest if there is one, which is ten times as fast; if there is none or it does not fit, file by file,
 * which also tells who it is. */
static int tree_read_read_files(struct tree *tree, uint64_t idx_chunk, const struct chunk *chunk, uint8_t *into,
                                struct why *why) {
        uint8_t *at = into;
        int r = 0;

        for (uint32_t i = 0; i < chunk->n_files && r == 0; i++) {
                const struct plan_file *file = plan_file(tree->plan, chunk->first_file + i);

                r = read_file_bytes(&tree->read_roots, file, FROM_ANYWHERE, at);
                at += file->n_bytes;
        }
        if (r == 0 && digest128_equal(digest128_of(into, chunk->n_bytes), state_digest(&tree->state, idx_chunk)))
                return 0;
        at = into;
        for (uint32_t i = 0; i < chunk->n_files; i++) {
                r = tree_read_file(tree, chunk->first_file + i, at, why);
                if (r < 0)
                        return r;
                at += plan_file(tree->plan, chunk->first_file + i)->n_bytes;
        }
        return 0;
}

int tree_read(struct tree *tree, uint64_t idx_chunk, uint8_t *into, struct why *why) {
        struct chunk chunk = chunks_get(tree->chunks, idx_chunk);
        const struct plan_file *file = plan_file(tree->plan, chunk.first_file);

        if (state_is_missing(&tree->state, idx_chunk))
                return why_set(why, -EBADMSG, "%s is not here", file->path);
        if (file_is_large(file))
                return tree_read_read_part(tree, idx_chunk, &chunk, into, why);
        return tree_read_read_files(tree, idx_chunk, &chunk, into, why);
}
