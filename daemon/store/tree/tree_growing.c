/* Large files that are not whole yet. Chunks arrive nearly in the order of the files, so few are under way at once. Of
 * those that were used last, the SHA-256 of their beginning is kept, and the file is open. What is dropped is read
 * again when it is needed. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/store/tree/tree_private.h"
#include "proto/base/cleanup.h"

#define GROWING_MAX 64u /* half a KiB and a descriptor each */

static struct growing_file *tree_growing_find(struct tree *tree, uint64_t idx_file) {
        struct growing_file *growing;

        TAILQ_FOREACH(growing, &tree->growing, entry)
                if (growing->idx_file == idx_file)
                        return growing;
        return NULL;
}

static void tree_growing_drop(struct tree *tree, struct growing_file *growing) {
        TAILQ_REMOVE(&tree->growing, growing, entry);
        tree->n_growing--;
        closep(&growing->fd);
        sha256_fini(&growing->sha);
        free(growing);
}

void growing_drop(struct tree *tree, uint64_t idx_file) {
        struct growing_file *growing = tree_growing_find(tree, idx_file);

        if (growing)
                tree_growing_drop(tree, growing);
}

void growing_drop_all(struct tree *tree) {
        while (!TAILQ_EMPTY(&tree->growing))
                tree_growing_drop(tree, TAILQ_FIRST(&tree->growing));
}

/* What was used least recently makes room. */
static struct growing_file *tree_growing_add(struct tree *tree, uint64_t idx_file) {
        struct growing_file *growing = calloc(1, sizeof(*growing));

        if (!growing)
                return NULL;
        if (tree->n_growing >= GROWING_MAX && TAILQ_LAST(&tree->growing, growing_list)->n_users == 0)
                tree_growing_drop(tree, TAILQ_LAST(&tree->growing, growing_list));
        growing->idx_file = idx_file;
        growing->fd = -1;
        chunks_of_file(tree->chunks, idx_file, &growing->idx_looked);
        TAILQ_INSERT_HEAD(&tree->growing, growing, entry);
        tree->n_growing++;
        return growing;
}

void growing_begin(struct tree *tree, uint64_t idx_file, struct sha256 *sha, uint64_t n_hashed) {
        struct growing_file *growing;

        pthread_mutex_lock(&tree->lock); /* the threads that check hand over */
        growing = tree_growing_find(tree, idx_file);
        if (growing)
                tree_growing_drop(tree, growing);
        growing = tree_growing_add(tree, idx_file);
        if (growing) {
                growing->sha = *sha;
                growing->n_hashed = n_hashed;
        } else {
                sha256_fini(sha);
        }
        pthread_mutex_unlock(&tree->lock);
}

/* ---- the file ------------------------------------------------------------------------------------------------ */

/* All of its space, now: a full disk is found before the bytes are fetched. A file system that cannot do that gets a
 * file with holes. */
static int take_space(int fd, uint64_t n_bytes) {
        int r;

        do
                r = fallocate(fd, 0, 0, (off_t)n_bytes) < 0 ? -errno : 0;
        while (r == -EINTR);
        if (r == -EOPNOTSUPP || r == -ENOSYS || r == -EINVAL)
                r = ftruncate(fd, (off_t)n_bytes) < 0 ? -errno : 0;
        return r;
}

static int tree_growing_make_file(struct tree *tree, const struct plan_file *file) {
        _cleanup_(closep) int fd = -1;
        const char *name;
        int dir, r;

        dir = lookup_folder_of(roots_for(&tree->write_roots, file), file->path, true, &name);
        if (dir < 0)
                return dir;
        if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
                return -errno;
        fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0)
                return -errno;
        r = take_space(fd, file->n_bytes);
        if (r < 0) {
                unlinkat(dir, name, 0);
                return r;
        }
        return take_fd(&fd);
}

/* A file of which nothing is known to be right becomes a new one: the old one may have a name in another version. */
static int tree_growing_open_file(struct tree *tree, uint64_t idx_file) {
        const struct plan_file *file = plan_file(tree->plan, idx_file);
        uint64_t first, n = chunks_of_file(tree->chunks, idx_file, &first);
        _cleanup_(closep) int fd = -1;
        struct stat status;
        bool is_known = false;

        for (uint64_t i = first; i < first + n && !is_known; i++)
                is_known = !state_is_missing(&tree->state, i);
        if (!is_known)
                return tree_growing_make_file(tree, file);
        fd = lookup_open(roots_for(&tree->write_roots, file), file->path, O_RDWR);
        if (fd < 0)
                return fd;
        if (fstat(fd, &status) < 0)
                return -errno;
        if ((uint64_t)status.st_size != file->n_bytes && ftruncate(fd, (off_t)file->n_bytes) < 0)
                return -errno;
        return take_fd(&fd);
}

int growing_get(struct tree *tree, uint64_t idx_file, struct growing_file **ret_growing, struct why *why) {
        struct growing_file *growing = tree_growing_find(tree, idx_file);
        int r;

        if (!growing)
                growing = tree_growing_add(tree, idx_file);
        if (!growing)
                return -ENOMEM;
        TAILQ_REMOVE(&tree->growing, growing, entry);
        TAILQ_INSERT_HEAD(&tree->growing, growing, entry);
        r = growing->sha.context ? 0 : sha256_init(&growing->sha);
        if (r == 0 && growing->fd < 0) {
                growing->fd = tree_growing_open_file(tree, idx_file);
                r = growing->fd < 0 ? growing->fd : 0;
        }
        if (r < 0) {
                tree_growing_drop(tree, growing);
                return why_errno(why, r, "%s", plan_file(tree->plan, idx_file)->path);
        }
        *ret_growing = growing;
        return 0;
}

int growing_catch_up(struct tree *tree, struct growing_file *growing, uint64_t end) {
        uint64_t first;

        chunks_of_file(tree->chunks, growing->idx_file, &first);
        while (growing->n_hashed < end) {
                uint64_t idx_chunk = first + growing->n_hashed / CHUNK_BYTES;
                struct chunk chunk = chunks_get(tree->chunks, idx_chunk);

                if (tree_is_cancelled(tree))
                        return -ECANCELED;
                if (state_is_missing(&tree->state, idx_chunk))
                        return 0;
                if (disk_read_at(growing->fd, tree->scratch, chunk.n_bytes, chunk.offset) < 0) {
                        state_set_missing(&tree->state, idx_chunk);
                        return 0;
                }
                sha256_add(&growing->sha, tree->scratch, chunk.n_bytes);
                growing->n_hashed += chunk.n_bytes;
        }
        return 0;
}
