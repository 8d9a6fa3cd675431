#include "daemon/store/tree/tree_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int state_init(struct state *state, const struct plan *plan, const struct chunks *chunks) {
        uint64_t n_files = plan_n_files(plan), n_chunks = chunks_count(chunks);
        bool says_all = true;

        pthread_mutex_init(&state->lock, NULL);
        for (uint64_t i = 0; i < n_files && says_all; i++)
                says_all = plan_file(plan, i)->sha256 != NULL;
        state->plan = plan;
        state->chunks = chunks;
        state->missing = calloc(1, n_chunks / 8 + 1);
        state->whole = calloc(1, n_files / 8 + 1);
        state->digests = calloc(n_chunks + 1, sizeof(*state->digests));
        state->sha256s = says_all ? NULL : calloc(n_files, SHA256_BYTES);
        return state->missing && state->whole && state->digests && (says_all || state->sha256s) ? 0 : -ENOMEM;
}

void state_fini(struct state *state) {
        if (!state->chunks)
                return;
        free(state->missing);
        free(state->whole);
        free(state->digests);
        free(state->sha256s);
        pthread_mutex_destroy(&state->lock);
}

/* The bitmaps are changed under the lock and read by anybody: whole bytes at a time. */
static bool bit(const uint8_t *bits, uint64_t idx) {
        return __atomic_load_n(&bits[idx / 8], __ATOMIC_RELAXED) & 1u << idx % 8;
}

static void set_bit(uint8_t *bits, uint64_t idx, bool value) {
        uint8_t mask = (uint8_t)(1u << idx % 8), byte = bits[idx / 8];

        __atomic_store_n(&bits[idx / 8], value ? byte | mask : byte & (uint8_t)~mask, __ATOMIC_RELAXED);
}

bool state_is_missing(const struct state *state, uint64_t idx_chunk) {
        return bit(state->missing, idx_chunk);
}

bool state_is_whole(const struct state *state, uint64_t idx_file) {
        return bit(state->whole, idx_file);
}

struct digest128 state_digest(struct state *state, uint64_t idx_chunk) {
        struct digest128 digest;

        pthread_mutex_lock(&state->lock);
        digest = state->digests[idx_chunk];
        pthread_mutex_unlock(&state->lock);
        return digest;
}

void state_set_present(struct state *state, uint64_t idx_chunk, struct digest128 digest) {
        pthread_mutex_lock(&state->lock);
        state->digests[idx_chunk] = digest;
        set_bit(state->missing, idx_chunk, false);
        pthread_mutex_unlock(&state->lock);
}

void state_set_missing(struct state *state, uint64_t idx_chunk) {
        pthread_mutex_lock(&state->lock);
        state->digests[idx_chunk] = (struct digest128){ 0 };
        set_bit(state->missing, idx_chunk, true);
        pthread_mutex_unlock(&state->lock);
}

void state_set_whole(struct state *state, uint64_t idx_file, const uint8_t sha256[SHA256_BYTES]) {
        pthread_mutex_lock(&state->lock);
        if (state->sha256s)
                memcpy(state->sha256s + idx_file * SHA256_BYTES, sha256, SHA256_BYTES);
        set_bit(state->whole, idx_file, true);
        pthread_mutex_unlock(&state->lock);
}

void state_set_broken(struct state *state, uint64_t idx_file) {
        pthread_mutex_lock(&state->lock);
        set_bit(state->whole, idx_file, false);
        pthread_mutex_unlock(&state->lock);
}

void state_forget_file(struct state *state, uint64_t idx_file) {
        uint64_t first, n = chunks_of_file(state->chunks, idx_file, &first);

        state_set_broken(state, idx_file);
        if (state->sha256s)
                memset(state->sha256s + idx_file * SHA256_BYTES, 0, SHA256_BYTES);
        for (uint64_t i = first; i < first + n; i++)
                state_set_missing(state, i);
}

uint64_t state_first_missing(const struct state *state, uint64_t first, uint64_t end) {
        while (first < end) {
                if (first % 8 == 0 && end - first >= 8 &&
                    __atomic_load_n(&state->missing[first / 8], __ATOMIC_RELAXED) == 0) {
                        first += 8;
                        continue;
                }
                if (bit(state->missing, first))
                        return first;
                first++;
        }
        return end;
}

bool state_files_are_whole(const struct state *state, const struct chunk *chunk) {
        for (uint32_t i = 0; i < chunk->n_files; i++)
                if (!bit(state->whole, chunk->first_file + i))
                        return false;
        return true;
}

const uint8_t *state_expected(const struct state *state, uint64_t idx_file) {
        static const uint8_t UNKNOWN[SHA256_BYTES];
        const struct plan_file *file = plan_file(state->plan, idx_file);
        const uint8_t *found;

        if (file->sha256)
                return file->sha256;
        found = state->sha256s + idx_file * SHA256_BYTES;
        return memcmp(found, UNKNOWN, SHA256_BYTES) != 0 ? found : NULL;
}
