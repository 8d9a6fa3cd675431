/* base/work/work.h: how far a long piece of work is, told by the thread that does it, read by any other.
 *
 * Telling takes an uncontended lock, so tell every few thousand things and not each. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/shown/progress.h"

struct work {
        pthread_mutex_t lock; /* a leaf; covers what follows */
        bool is_under_way;
        struct dlp_pace pace;
        struct dlp_progress told;
};

void work_init(struct work *work);
void work_fini(struct work *work);

/* Begins; what was told before is forgotten. `phase` and `unit` are copied. */
void work_begin(struct work *work, const char *phase, const char *unit);

/* `done` of `total` (0: not known) so far, in `unit`. Nothing happens if it is not under way. */
void work_tell(struct work *work, uint64_t done, uint64_t total, const char *unit);

void work_end(struct work *work);

/* Returns false, and all zeroes, if nothing is under way. */
bool work_read(struct work *work, struct dlp_progress *ret_progress);
