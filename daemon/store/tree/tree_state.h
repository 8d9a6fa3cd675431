/* store/tree/tree_state.h: what is known of each chunk and each file of a version: missing, present, whole.
 *
 * Any thread, but state_init() and state_fini(). Bits are read without the lock. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/plan/chunks.h"
#include "daemon/store/plan/digest.h"
#include "daemon/store/plan/plan.h"

struct state {
        const struct plan *plan;
        const struct chunks *chunks;
        pthread_mutex_t lock;      /* covers what follows; held for some instructions, for one file's bits at most */
        uint8_t *missing;          /* a bit a chunk */
        uint8_t *whole;            /* a bit a file: its SHA-256 was taken and is right */
        struct digest128 *digests; /* a chunk */
        uint8_t *sha256s;          /* SHA256_BYTES a file; NULL if the plan says them all */
};

/* All zero before; plan and chunks must outlive it. 0 or -ENOMEM; state_fini() after both, also of one that is all
 * zero. */
int state_init(struct state *state, const struct plan *plan, const struct chunks *chunks);
void state_fini(struct state *state);

bool state_is_missing(const struct state *state, uint64_t idx_chunk);
bool state_is_whole(const struct state *state, uint64_t idx_file);
struct digest128 state_digest(struct state *state, uint64_t idx_chunk);

/* Written, with this digest (or one that is not known: of a file that was linked). Notes nothing in the journal. */
void state_set_present(struct state *state, uint64_t idx_chunk, struct digest128 digest);
void state_set_missing(struct state *state, uint64_t idx_chunk);
void state_set_whole(struct state *state, uint64_t idx_file, const uint8_t sha256[SHA256_BYTES]);
void state_set_broken(struct state *state, uint64_t idx_file);

/* All of its chunks are missing, and nothing is known of it but the plan's word. */
void state_forget_file(struct state *state, uint64_t idx_file);

/* The first chunk of [first, end) that is missing, or end. */
uint64_t state_first_missing(const struct state *state, uint64_t first, uint64_t end);
bool state_files_are_whole(const struct state *state, const struct chunk *chunk);

/* What the file must have: the plan's word, else what was found when it was whole (until it is forgotten: a file that
 * is fetched from its first byte on may be another one); NULL: nothing is known. */
const uint8_t *state_expected(const struct state *state, uint64_t idx_file);
