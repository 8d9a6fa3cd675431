#include <assert.h>
#include <string.h>

#include "daemon/staging/tree/private.h"

/* The bitmaps are changed under the lock and read by anybody: whole bytes at a time. */
static bool bit(const uint8_t *bits, uint64_t idx) {
        return __atomic_load_n(&bits[idx / 8], __ATOMIC_RELAXED) & 1u << idx % 8;
}

static void set_bit(uint8_t *bits, uint64_t idx, bool value) {
        uint8_t mask = (uint8_t)(1u << idx % 8), byte = bits[idx / 8];

        __atomic_store_n(&bits[idx / 8], value ? byte | mask : byte & (uint8_t)~mask, __ATOMIC_RELAXED);
}

bool state_is_missing(const struct tree *tree, uint64_t idx_chunk) {
        return bit(tree->missing, idx_chunk);
}

bool state_is_whole(const struct tree *tree, uint64_t idx_file) {
        return bit(tree->whole, idx_file);
}

struct digest128 state_digest(struct tree *tree, uint64_t idx_chunk) {
        struct digest128 digest;

        pthread_mutex_lock(&tree->lock);
        digest = tree->digests[idx_chunk];
        pthread_mutex_unlock(&tree->lock);
        return digest;
}

static void add_missing_bytes(struct tree *tree, int64_t n_bytes) {
        __atomic_store_n(&tree->n_missing_bytes, tree->n_missing_bytes + (uint64_t)n_bytes, __ATOMIC_RELAXED);
}

void state_set_present(struct tree *tree, uint64_t idx_chunk, struct digest128 digest) {
        pthread_mutex_lock(&tree->lock);
        tree->digests[idx_chunk] = digest;
        if (bit(tree->missing, idx_chunk)) {
                set_bit(tree->missing, idx_chunk, false);
                add_missing_bytes(tree, -(int64_t)chunks_get(tree->chunks, idx_chunk).n_bytes);
        }
        pthread_mutex_unlock(&tree->lock);
}

void state_set_missing(struct tree *tree, uint64_t idx_chunk) {
        pthread_mutex_lock(&tree->lock);
        tree->digests[idx_chunk] = (struct digest128){ 0 };
        if (!bit(tree->missing, idx_chunk)) {
                set_bit(tree->missing, idx_chunk, true);
                add_missing_bytes(tree, chunks_get(tree->chunks, idx_chunk).n_bytes);
        }
        pthread_mutex_unlock(&tree->lock);
}

void state_set_whole(struct tree *tree, uint64_t idx_file, const uint8_t sha256[SHA256_BYTES]) {
        pthread_mutex_lock(&tree->lock);
        if (tree->sha256s)
                memcpy(tree->sha256s + idx_file * SHA256_BYTES, sha256, SHA256_BYTES);
        set_bit(tree->whole, idx_file, true);
        pthread_mutex_unlock(&tree->lock);
}

void state_set_broken(struct tree *tree, uint64_t idx_file) {
        pthread_mutex_lock(&tree->lock);
        set_bit(tree->whole, idx_file, false);
        pthread_mutex_unlock(&tree->lock);
}

void state_forget_file(struct tree *tree, uint64_t idx_file) {
        uint64_t first, n = chunks_of_file(tree->chunks, idx_file, &first);

        state_set_broken(tree, idx_file);
        if (tree->sha256s)
                memset(tree->sha256s + idx_file * SHA256_BYTES, 0, SHA256_BYTES);
        for (uint64_t i = first; i < first + n; i++) {
                if (digest128_is_known(state_digest(tree, i)))
                        (void)journal_note(&tree->journal, i,
                                           (struct digest128){ 0 }); /* else the next run finds out */
                state_set_missing(tree, i);
        }
}

uint64_t state_first_missing(const struct tree *tree, uint64_t first, uint64_t end) {
        while (first < end) {
                if (first % 8 == 0 && end - first >= 8 &&
                    __atomic_load_n(&tree->missing[first / 8], __ATOMIC_RELAXED) == 0) {
                        first += 8;
                        continue;
                }
                if (bit(tree->missing, first))
                        return first;
                first++;
        }
        return end;
}

bool state_files_are_whole(const struct tree *tree, const struct chunk *chunk) {
        for (uint32_t i = 0; i < chunk->n_files; i++)
                if (!bit(tree->whole, chunk->first_file + i))
                        return false;
        return true;
}

const uint8_t *state_expected(const struct tree *tree, uint64_t idx_file) {
        static const uint8_t UNKNOWN[SHA256_BYTES];
        const struct plan_file *file = plan_file(tree->plan, idx_file);
        const uint8_t *found;

        if (file->sha256)
                return file->sha256;
        found = tree->sha256s + idx_file * SHA256_BYTES;
        return memcmp(found, UNKNOWN, SHA256_BYTES) != 0 ? found : NULL;
}

const uint8_t *tree_missing(const struct tree *tree) {
        return tree->missing;
}

uint64_t tree_n_missing_bytes(const struct tree *tree) {
        return __atomic_load_n(&tree->n_missing_bytes, __ATOMIC_RELAXED);
}

bool tree_file_is_whole(const struct tree *tree, uint64_t idx_file) {
        return bit(tree->whole, idx_file);
}

const uint8_t *tree_sha256(const struct tree *tree, uint64_t idx_file) {
        assert(bit(tree->whole, idx_file));
        return state_expected(tree, idx_file);
}
