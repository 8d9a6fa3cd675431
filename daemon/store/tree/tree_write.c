/* Chunks into files. Several threads do it: SHA-256 takes twice as long as writing to the page cache. The tree's lock
 * is open while one writes or hashes the bytes of a chunk. A large file's SHA-256 is one stream, so the threads that
 * write its chunks hash them in turn. */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/store/tree/tree_private.h"
#include "proto/base/cleanup.h"

static int bad_file(struct tree *tree, const struct plan_file *file, const uint8_t *expected, const uint8_t *found,
                    struct why *why) {
        struct why text;

        why_digests(&text, file, expected, found);
        tree_tell(tree, TREE_BAD, file->n_bytes, text.text);
        return why_set(why, TREE_BAD_FILE, "%s", text.text);
}

/* ---- small files --------------------------------------------------------------------------------------------- */

int part_begin(struct tree *tree) {
        int fd;

        if (unlinkat(tree->folder_fd, tree->part_name, 0) < 0 && errno != ENOENT)
                return -errno;
        fd = openat(tree->folder_fd, tree->part_name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        return fd < 0 ? -errno : fd;
}

int part_put_in_place(struct tree *tree, const struct plan_file *file) {
        const char *name;
        int dir = lookup_folder_of(roots_for(&tree->write_roots, file), file->path, true, &name);

        if (dir < 0)
                return dir;
        return renameat(tree->folder_fd, tree->part_name, dir, name) < 0 ? -errno : 0;
}

/* close() says what a network's file system had to say about the writes. */
static int write_and_close(int fd, const uint8_t *bytes, uint64_t n_bytes) {
        int r = disk_write_at(fd, bytes, n_bytes, 0);

        if (close(fd) < 0 && r == 0 && errno != EINTR)
                r = -errno;
        return r;
}

/* What is there already, whatever it is, is replaced in one step: it may be served, or be another version's, too. */
static int replace_file(struct tree *tree, const struct plan_file *file, const uint8_t *bytes) {
        int fd = part_begin(tree), r;

        if (fd < 0)
                return fd;
        r = write_and_close(fd, bytes, file->n_bytes);
        if (r == 0)
                r = part_put_in_place(tree, file);
        if (r < 0)
                unlinkat(tree->folder_fd, tree->part_name, 0);
        return r;
}

static int tree_write_make_file(struct tree *tree, const struct plan_file *file, const uint8_t *bytes) {
        struct lookup *lookup = roots_for(&tree->write_roots, file);
        const char *name;
        int dir, fd, r;

        dir = lookup_folder_of(lookup, file->path, true, &name);
        if (dir < 0)
                return dir;
        fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0)
                return -errno;
        r = write_and_close(fd, bytes, file->n_bytes);
        if (r < 0)
                unlinkat(dir, name, 0); /* its space may be what the next one needs */
        return r;
}

static int tree_write_write_file(struct tree *tree, const struct plan_file *file, const uint8_t *bytes) {
        int r = tree_write_make_file(tree, file, bytes);

        if (r == -ENOENT) { /* the folder that was kept open has been removed meanwhile */
                lookup_fini(roots_for(&tree->write_roots, file));
                r = tree_write_make_file(tree, file, bytes);
        }
        return r == -EEXIST ? replace_file(tree, file, bytes) : r;
}

static int hash_small(const struct tree *tree, const struct chunk *chunk, const uint8_t *bytes,
                      uint8_t found[CHUNK_FILES_MAX][SHA256_BYTES]) {
        struct sha256 sha;
        int r = sha256_init(&sha);

        for (uint32_t i = 0; i < chunk->n_files && r == 0; i++) {
                const struct plan_file *file = plan_file(tree->plan, chunk->first_file + i);

                sha256_restart(&sha);
                sha256_add(&sha, bytes, file->n_bytes);
                sha256_end(&sha, found[i]);
                bytes += file->n_bytes;
        }
        if (r == 0)
                sha256_fini(&sha);
        return r;
}

/* A file that is whole stays, unless the plan knows nothing of it and it arrives with other bytes now: what the origin
 * says now counts. */
static int write_small(struct tree *tree, uint64_t idx_file, const uint8_t *bytes, const uint8_t *found,
                       struct why *why) {
        const struct plan_file *file = plan_file(tree->plan, idx_file);
        int r = 0;

        if (file->sha256 && memcmp(file->sha256, found, SHA256_BYTES) != 0)
                return bad_file(tree, file, file->sha256, found, why);
        if (!state_is_whole(&tree->state, idx_file) ||
            memcmp(state_expected(&tree->state, idx_file), found, SHA256_BYTES) != 0)
                r = tree_write_write_file(tree, file, bytes);
        if (r < 0)
                return why_errno(why, r, "%s", file->path);
        state_set_whole(&tree->state, idx_file, found);
        return 0;
}

static int write_small_files(struct tree *tree, uint64_t idx_chunk, const struct chunk *chunk, const uint8_t *bytes,
                             struct why *why) {
        uint8_t found[CHUNK_FILES_MAX][SHA256_BYTES];
        const uint8_t *at = bytes;
        struct digest128 digest;
        int r, result = 0;

        pthread_mutex_unlock(&tree->lock);
        r = hash_small(tree, chunk, bytes, found);
        digest = digest128_of(bytes, chunk->n_bytes);
        pthread_mutex_lock(&tree->lock);
        if (r < 0)
                return why_errno(why, r, "a SHA-256");
        for (uint32_t i = 0; i < chunk->n_files && result >= 0; i++) {
                r = write_small(tree, chunk->first_file + i, at, found[i], why);
                result = r != 0 ? r : result;
                at += plan_file(tree->plan, chunk->first_file + i)->n_bytes;
        }
        if (result != 0)
                return result;
        r = journal_note(&tree->journal, idx_chunk, digest);
        if (r < 0)
                return why_errno(why, r, "%s: its journal", tree->root_path);
        state_set_present(&tree->state, idx_chunk, digest);
        return 0;
}

/* ---- parts of large files ------------------------------------------------------------------------------------ */

/* Does this chunk follow what is hashed, or what other threads are about to hash? Then it is hashed after that. If not,
 * it is read again later. What lies before it on the disk and was not hashed yet is read. */
static int claim_turn(struct tree *tree, struct growing_file *growing, const struct chunk *chunk, bool *ret_has_turn) {
        int r = 0;

        while (growing->n_hashed > chunk->offset && growing->n_claimed > 0)
                pthread_cond_wait(&tree->hashed, &tree->lock);
        if (growing->n_hashed > chunk->offset) { /* it is mended: what was hashed may have been what is bad */
                sha256_restart(&growing->sha);
                growing->n_hashed = 0;
        }
        if (growing->n_claimed == 0)
                r = growing_catch_up(tree, growing, chunk->offset);
        *ret_has_turn = r == 0 && growing->n_hashed + growing->n_claimed == chunk->offset;
        if (*ret_has_turn)
                growing->n_claimed += chunk->n_bytes;
        return r;
}

/* A chunk that could not be written takes the turns of those that wait for it, too. */
static void hash_in_turn(struct tree *tree, struct growing_file *growing, const struct chunk *chunk,
                         const uint8_t *bytes, bool is_written) {
        while (growing->n_hashed < chunk->offset && growing->n_hashed + growing->n_claimed > chunk->offset)
                pthread_cond_wait(&tree->hashed, &tree->lock);
        if (growing->n_hashed + growing->n_claimed <= chunk->offset)
                return;
        if (is_written) {
                pthread_mutex_unlock(&tree->lock);
                sha256_add(&growing->sha, bytes, chunk->n_bytes);
                pthread_mutex_lock(&tree->lock);
                growing->n_hashed += chunk->n_bytes;
                growing->n_claimed -= chunk->n_bytes;
        } else {
                growing->n_claimed = 0;
        }
        pthread_cond_broadcast(&tree->hashed);
}

/* No chunk of it is missing: what is its SHA-256? */
static int tree_write_judge_large(struct tree *tree, struct growing_file *growing, struct why *why) {
        uint64_t idx_file = growing->idx_file;
        const struct plan_file *file = plan_file(tree->plan, idx_file);
        const uint8_t *known = state_expected(&tree->state, idx_file);
        uint8_t found[SHA256_BYTES], expected[SHA256_BYTES];
        int r;

        r = growing_catch_up(tree, growing, file->n_bytes);
        if (r < 0)
                return why_errno(why, r, "%s", file->path);
        if (growing->n_hashed < file->n_bytes) /* a chunk could not be read, and is missing again */
                return 0;
        sha256_end(&growing->sha, found);
        growing_drop(tree, idx_file);
        if (!known || memcmp(found, known, sizeof(found)) == 0) {
                state_set_whole(&tree->state, idx_file, found);
                return 0;
        }
        memcpy(expected, known, sizeof(expected));
        tree_forget_file(tree, idx_file);
        return bad_file(tree, file, expected, found, why);
}

static bool is_complete(const struct tree *tree, struct growing_file *growing) {
        uint64_t first, n = chunks_of_file(tree->chunks, growing->idx_file, &first);

        growing->idx_looked = state_first_missing(&tree->state, growing->idx_looked, first + n);
        if (growing->idx_looked < first + n)
                return false;
        growing->idx_looked = state_first_missing(&tree->state, first, first + n);
        return growing->idx_looked == first + n;
}

static int write_part(struct tree *tree, uint64_t idx_chunk, const struct chunk *chunk, const uint8_t *bytes,
                      struct why *why) {
        const struct plan_file *file = plan_file(tree->plan, chunk->first_file);
        struct growing_file *growing;
        struct digest128 digest;
        bool has_turn;
        int r;

        r = growing_get(tree, chunk->first_file, &growing, why);
        if (r < 0)
                return r;
        growing->n_users++;
        r = claim_turn(tree, growing, chunk, &has_turn);
        if (r == 0) {
                pthread_mutex_unlock(&tree->lock);
                r = disk_write_at(growing->fd, bytes, chunk->n_bytes, chunk->offset);
                digest = digest128_of(bytes, chunk->n_bytes);
                pthread_mutex_lock(&tree->lock);
        }
        if (has_turn)
                hash_in_turn(tree, growing, chunk, bytes, r == 0);
        growing->n_users--;
        if (r == 0)
                r = journal_note(&tree->journal, idx_chunk, digest);
        if (r < 0)
                return why_errno(why, r, "%s", file->path);
        state_set_present(&tree->state, idx_chunk, digest);
        return growing->n_users == 0 && is_complete(tree, growing) ? tree_write_judge_large(tree, growing, why) : 0;
}

/* -------------------------------------------------------------------------------------------------------------- */

int tree_write(struct tree *tree, uint64_t idx_chunk, const uint8_t *bytes, struct why *why) {
        struct chunk chunk = chunks_get(tree->chunks, idx_chunk);
        int r;

        assert(state_is_missing(&tree->state, idx_chunk));
        pthread_mutex_lock(&tree->lock);
        if (file_is_large(plan_file(tree->plan, chunk.first_file)))
                r = write_part(tree, idx_chunk, &chunk, bytes, why);
        else
                r = write_small_files(tree, idx_chunk, &chunk, bytes, why);
        pthread_mutex_unlock(&tree->lock);
        syncer_add(&tree->syncer, chunk.n_bytes);
        return r;
}
