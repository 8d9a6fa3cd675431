/* What lies on the disk is read again: what a killed run left, and everything for `--verify`. Several
 * threads, each with a `checking` of its own and a large file or a chunk of small ones at a time. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/machine/cpus.h"
#include "daemon/base/machine/disk.h"
#include "daemon/base/work/crew.h"
#include "daemon/store/tree/tree_private.h"
#include "proto/base/cleanup.h"

#define THREADS_MAX 4u /* four hash as fast as most disks read, and hold a chunk each */
#define LOOK_NS     1000000000ull

int checking_init(struct checking *checking, struct tree *tree) {
        *checking = (struct checking){ .tree = tree };
        roots_init(&checking->roots, tree);
        checking->buffer = malloc(CHUNK_BYTES);
        return checking->buffer ? sha256_init(&checking->sha) : -ENOMEM;
}

void checking_fini(struct checking *checking) {
        roots_fini(&checking->roots);
        sha256_fini(&checking->sha);
        free(checking->buffer);
}

static void say_good(const struct checking *checking, uint64_t n_bytes) {
        if (!checking->is_silent)
                tree_tell(checking->tree, TREE_KEPT, n_bytes, NULL);
}

static void say_bad(const struct checking *checking, uint64_t n_bytes, const struct why *text) {
        if (!checking->is_silent)
                tree_tell(checking->tree, TREE_BAD, n_bytes, text->text);
}

void why_digests(struct why *why, const struct plan_file *file, const uint8_t *expected, const uint8_t *found) {
        char should[SHA256_TEXT_SIZE], is[SHA256_TEXT_SIZE];

        sha256_text(expected, should);
        sha256_text(found, is);
        why_set(why, 0, "%s: its SHA-256 should be %s and is %s", file->path, should, is);
}

static void say_digests(struct checking *checking, const struct plan_file *file, const uint8_t *expected,
                        const uint8_t *found) {
        struct why text;

        why_digests(&text, file, expected, found);
        say_bad(checking, file->n_bytes, &text);
}

/* ---- large files --------------------------------------------------------------------------------------------- */

/* One chunk. Returns 0 if it is what was written; else it is missing. */
static int check_part(struct checking *checking, int fd, const struct plan_file *file, uint64_t idx_chunk,
                      const struct chunk *chunk) {
        struct tree *tree = checking->tree;
        struct digest128 digest, noted = state_digest(&tree->state, idx_chunk);
        struct why text;
        int r;

        r = fd < 0 ? fd : disk_read_at(fd, checking->buffer, chunk->n_bytes, chunk->offset);
        if (r == 0) {
                digest = digest128_of(checking->buffer, chunk->n_bytes);
                if (!digest128_is_known(noted)) {
                        state_set_present(&tree->state, idx_chunk, digest);
                        (void)journal_note(&tree->journal, idx_chunk, digest); /* else it is found out again */
                } else if (!digest128_equal(digest, noted))
                        r = -EBADMSG;
        }
        if (r == 0) {
                say_good(checking, chunk->n_bytes);
                return 0;
        }
        state_set_missing(&tree->state, idx_chunk);
        why_errno(&text, r, "%s: %u bytes from byte %llu on", file->path, chunk->n_bytes,
                  (unsigned long long)chunk->offset);
        say_bad(checking, chunk->n_bytes, &text);
        return r;
}

/* All of it was read, and each chunk is as it was written. */
static int check_judge_large(struct checking *checking, uint64_t idx_file) {
        struct tree *tree = checking->tree;
        const struct plan_file *file = plan_file(tree->plan, idx_file);
        const uint8_t *expected = state_expected(&tree->state, idx_file);
        uint8_t found[SHA256_BYTES];

        sha256_end(&checking->sha, found);
        if (!expected || memcmp(found, expected, sizeof(found)) == 0) {
                state_set_whole(&tree->state, idx_file, found);
                return 0;
        }
        say_digests(checking, file, expected, found);
        tree_forget_file(tree, idx_file);
        return 1;
}

/* Hands over what is hashed of a file that is not whole. */
static void check_hand_over(struct checking *checking, uint64_t idx_file, uint64_t n_hashed) {
        struct sha256 fresh = { 0 };

        if (sha256_init(&fresh) < 0)
                return; /* it will be read again */
        growing_begin(checking->tree, idx_file, &checking->sha, n_hashed);
        checking->sha = fresh;
}

int check_large(struct checking *checking, uint64_t idx_file) {
        struct tree *tree = checking->tree;
        const struct plan_file *file = plan_file(tree->plan, idx_file);
        uint64_t first, n = chunks_of_file(tree->chunks, idx_file, &first), n_hashed = 0;
        _cleanup_(closep) int fd = lookup_open(roots_for(&checking->roots, file), file->path, O_RDONLY);
        bool is_bad = false;

        if (fd >= 0) {
                (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
                (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
        }
        sha256_restart(&checking->sha);
        for (uint64_t i = first; i < first + n; i++) {
                struct chunk chunk = chunks_get(tree->chunks, i);

                if (tree_is_cancelled(tree))
                        return -ECANCELED;
                if (state_is_missing(&tree->state, i))
                        continue;
                if (check_part(checking, fd, file, i, &chunk) < 0)
                        is_bad = true;
                else if (n_hashed == chunk.offset) {
                        sha256_add(&checking->sha, checking->buffer, chunk.n_bytes);
                        n_hashed += chunk.n_bytes;
                }
        }
        if (n_hashed == file->n_bytes)
                return check_judge_large(checking, idx_file);
        if (is_bad)
                state_set_broken(&tree->state, idx_file);
        if (n_hashed > 0 && checking->may_grow)
                check_hand_over(checking, idx_file, n_hashed);
        return is_bad;
}

/* ---- chunks of small files ----------------------------------------------------------------------------------- */

struct verdicts {
        uint8_t found[CHUNK_FILES_MAX][SHA256_BYTES];
        int results[CHUNK_FILES_MAX];    /* 0; an errno of reading it; 1: not the expected SHA-256 */
        bool is_unsure[CHUNK_FILES_MAX]; /* nothing is known to compare it with */
        uint32_t n_bad, n_unsure;
};

static void read_and_hash(struct checking *checking, const struct chunk *chunk, struct verdicts *verdicts) {
        struct tree *tree = checking->tree;
        uint8_t *at = checking->buffer;

        for (uint32_t i = 0; i < chunk->n_files; i++) {
                const struct plan_file *file = plan_file(tree->plan, chunk->first_file + i);
                const uint8_t *expected = state_expected(&tree->state, chunk->first_file + i);
                int r = read_file_bytes(&checking->roots, file, FROM_DISK, at);

                if (r == 0) {
                        sha256_restart(&checking->sha);
                        sha256_add(&checking->sha, at, file->n_bytes);
                        sha256_end(&checking->sha, verdicts->found[i]);
                        r = expected && memcmp(expected, verdicts->found[i], SHA256_BYTES) != 0;
                }
                verdicts->results[i] = r;
                verdicts->is_unsure[i] = r == 0 && !expected;
                verdicts->n_bad += r != 0;
                verdicts->n_unsure += verdicts->is_unsure[i];
                at += file->n_bytes;
        }
}

static void say_file(struct checking *checking, uint64_t idx_file, const struct verdicts *verdicts, uint32_t i) {
        const struct plan_file *file = plan_file(checking->tree->plan, idx_file);
        struct why text;

        if (verdicts->results[i] > 0) {
                say_digests(checking, file, state_expected(&checking->tree->state, idx_file), verdicts->found[i]);
                return;
        }
        if (verdicts->results[i] < 0)
                why_errno(&text, verdicts->results[i], "%s", file->path);
        else
                why_set(&text, 0, "%s: something near it is damaged, and nothing is known to tell what", file->path);
        say_bad(checking, file->n_bytes, &text);
}

static int check_small(struct checking *checking, uint64_t idx_chunk) {
        struct tree *tree = checking->tree;
        struct chunk chunk = chunks_get(tree->chunks, idx_chunk);
        struct verdicts verdicts = { 0 };
        struct digest128 digest, noted = state_digest(&tree->state, idx_chunk);
        bool is_as_written;
        int n_bad = 0;

        read_and_hash(checking, &chunk, &verdicts);
        digest = digest128_of(checking->buffer, chunk.n_bytes);
        is_as_written = verdicts.n_bad == 0 && (digest128_equal(digest, noted) || verdicts.n_unsure == 0);
        for (uint32_t i = 0; i < chunk.n_files; i++) {
                uint64_t idx_file = chunk.first_file + i;

                if (verdicts.results[i] == 0 && (is_as_written || !verdicts.is_unsure[i])) {
                        state_set_whole(&tree->state, idx_file, verdicts.found[i]);
                        continue;
                }
                say_file(checking, idx_file, &verdicts, i);
                state_set_broken(&tree->state, idx_file);
                n_bad++;
        }
        if (n_bad > 0) {
                state_set_missing(&tree->state, idx_chunk);
                return n_bad;
        }
        if (!digest128_equal(digest, noted)) { /* linked; or the journal is what is damaged */
                state_set_present(&tree->state, idx_chunk, digest);
                (void)journal_note(&tree->journal, idx_chunk, digest);
        }
        say_good(checking, chunk.n_bytes);
        return 0;
}

/* ---- all of it --------------------------------------------------------------------------------------------- */

struct check {
        struct tree *tree;
        pthread_mutex_t lock; /* covers what follows */
        uint64_t next;        /* chunk to begin with */
        int64_t n_bad;
        int result;
};

/* The next large file or chunk of small ones; false at the end. */
static bool check_take_next(struct check *check, uint64_t *ret_idx_chunk, struct chunk *ret_chunk) {
        struct tree *tree = check->tree;
        uint64_t first;
        bool taken;

        pthread_mutex_lock(&check->lock);
        taken = check->result == 0 && check->next < chunks_count(tree->chunks);
        if (taken) {
                *ret_idx_chunk = check->next;
                *ret_chunk = chunks_get(tree->chunks, check->next);
                if (file_is_large(plan_file(tree->plan, ret_chunk->first_file)))
                        check->next += chunks_of_file(tree->chunks, ret_chunk->first_file, &first);
                else
                        check->next++;
        }
        pthread_mutex_unlock(&check->lock);
        return taken;
}

static int check_unit(struct checking *checking, uint64_t idx_chunk, const struct chunk *chunk) {
        struct tree *tree = checking->tree;

        if (tree_is_cancelled(tree))
                return -ECANCELED;
        if (file_is_large(plan_file(tree->plan, chunk->first_file)))
                return check_large(checking, chunk->first_file);
        return state_is_missing(&tree->state, idx_chunk) ? 0 : check_small(checking, idx_chunk);
}

static void check_some(void *userdata) {
        struct check *check = userdata;
        struct checking checking;
        struct chunk chunk;
        uint64_t idx_chunk;
        int64_t n_bad = 0;
        int r = checking_init(&checking, check->tree);

        checking.may_grow = true;
        while (r >= 0 && check_take_next(check, &idx_chunk, &chunk)) {
                r = check_unit(&checking, idx_chunk, &chunk);
                n_bad += r > 0 ? r : 0;
        }
        checking_fini(&checking);
        pthread_mutex_lock(&check->lock);
        check->n_bad += n_bad;
        check->result = r < 0 ? r : check->result;
        pthread_mutex_unlock(&check->lock);
}

static void check_on_tick(void *userdata) {
}

/* The usual beginning: there is nothing to look at. */
static bool check_is_fresh(const struct tree *tree) {
        for (uint64_t i = 0; i < chunks_count(tree->chunks); i++)
                if (!state_is_missing(&tree->state, i))
                        return false;
        return true;
}

int64_t tree_verify(struct tree *tree, struct why *why) {
        struct check check = { .tree = tree };
        struct cpus cpus;
        uint32_t n_threads;
        int r;

        if (check_is_fresh(tree))
                return 0;
        cpus_find(&cpus);
        n_threads = cpus_n_threads(&cpus);
        pthread_mutex_init(&check.lock, NULL);
        r = crew_run("stage-check", n_threads < THREADS_MAX ? n_threads : THREADS_MAX, check_some, LOOK_NS,
                     check_on_tick, &check);
        pthread_mutex_destroy(&check.lock);
        if (r == 0)
                r = check.result;
        if (r == -ECANCELED)
                return r;
        return r < 0 ? why_errno(why, r, "%s: checking what is there", tree->root_path) : check.n_bad;
}
