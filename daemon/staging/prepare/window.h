/* staging/prepare/window.h: samples are made in any sequence by many threads and packed in theirs by one. Private to
 * this floor.
 *
 * Positions 0, 1, ... are handed out to workers, come back finished, and are taken by the packer one after the other.
 * What is between the two takes memory, and the window is what bounds it: whoever needs some asks first, and waits
 * while it does not fit into WINDOW_BYTES. The first position that was not packed yet never waits, however much it
 * needs: all others wait for it. So there is always a way on, and besides the window there is one large sample at most.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/staging/prepare/prepare_block.h"
#include "proto/base/why.h"

#define WINDOW_BYTES (40ull << 20) /* with one sample of MAKER_BYTES 128 MiB */
#define WINDOW_SLOTS 1024u         /* positions between two; small samples */

struct window_result {
        int error;          /* negative errno, `why` says what: the packer ends with it */
        bool is_kept;       /* packed as it is because it could not be prepared; `why` says why */
        struct block block; /* the bytes to be packed */
        uint64_t n_bytes;   /* of them */
        struct why why;
};

struct window {
        pthread_mutex_t lock;    /* a leaf; covers all that follows */
        pthread_cond_t changed;  /* for workers: something was packed, or the end */
        pthread_cond_t finished; /* for the packer: the first position is */
        uint64_t n_positions;
        uint64_t n_taken, n_packed; /* n_taken - n_packed <= WINDOW_SLOTS */
        uint64_t used_bytes;
        _Atomic bool is_stopped;   /* read without the lock as well */
        struct window_slot *slots; /* of position p: p % WINDOW_SLOTS */
};

int window_init(struct window *window, uint64_t n_positions); /* -ENOMEM */

/* Once no worker is left: frees what was not packed. */
void window_fini(struct window *window);

/* ---- workers ------------------------------------------------------------------------------------------------- */

/* The next position. Blocks while too many are under way. False: there is none left, the worker ends. */
bool window_take(struct window *window, uint64_t *ret_position);

/* Asks for more memory for a position. Blocks until it fits. False: the window was stopped. */
bool window_pay(struct window *window, uint64_t position, uint64_t n_bytes);

/* The position is done; the result's block is the window's, and from now on all that it pays for. */
void window_finish(struct window *window, uint64_t position, const struct window_result *result);

/* ---- the packer ---------------------------------------------------------------------------------------------- */

/* Waits until the next position is finished, at most `timeout_ms`. NULL: not yet. The result is the window's, until
 * window_packed(). */
struct window_result *window_next(struct window *window, uint32_t timeout_ms);

/* It was packed: frees its block. */
void window_packed(struct window *window);

/* Sends all workers home, now and later. Any thread. */
void window_stop(struct window *window);

/* Was it? For workers in the middle of something long. */
bool window_is_stopped(const struct window *window);
