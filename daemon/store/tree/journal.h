/* store/tree/journal.h: which chunks of a version have been written on this node, and the digest of each as it was
 * written.
 *
 *   header   magic, number of chunks, state of the plan, check          64 bytes, put in place by rename
 *   records  number of a chunk, XXH3 of its bytes, check                 32 bytes each, appended
 *
 * A record is a claim, not a proof: it is written when the chunk's bytes are in the page cache, and may reach the disk
 * before them. Whoever opens a journal reads each chunk again and believes the digest, never the record. So nothing is
 * lost when the process is killed, no record has to wait for the disk, and a power cut costs what was not yet there.
 *
 * Each record is checked by itself: one that is torn or damaged costs its chunk alone. The last one of a chunk counts.
 * The journal of another plan, or of another format, is none. One process at a time (the lock of the place). */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "daemon/store/plan/digest.h"
#include "daemon/store/plan/plan.h"
#include "proto/base/why.h"

struct journal {
        pthread_mutex_t lock; /* a leaf; held for a write of 32 bytes */
        int fd;               /* -1: not open; records go nowhere */
        uint64_t end;         /* where the next record goes: what a failed write left is written over */
        uint64_t seed;        /* of all checks: binds records to their journal */
};

#define JOURNAL_NONE ((struct journal){ .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 })

/* Reads what an earlier run noted: into digests[n_chunks], all zero before. Returns the number of records, those that
 * say nothing (any more) included; 0 if there is no journal of this plan; an errno. */
int64_t journal_read(const char *path, const char *plan_state, uint64_t n_chunks, struct digest128 *digests,
                     struct why *why);

/* Begins a journal that says just this (those that are known), in place of the one that is there: at every moment one
 * of the two is there. Blocks for the disk. 0 or an errno; `journal` is open then. */
int journal_begin(struct journal *journal, const char *path, const char *plan_state, uint64_t n_chunks,
                  const struct digest128 *digests, struct why *why);

/* Goes on with the journal that was read. */
int journal_continue(struct journal *journal, const char *path, const char *plan_state, uint64_t n_chunks,
                     struct why *why);

/* Notes a chunk; a digest that is not known takes it back. Any thread. 0 or an errno: it is not noted then. */
int journal_note(struct journal *journal, uint64_t idx_chunk, struct digest128 digest);

void journal_close(struct journal *journal);
