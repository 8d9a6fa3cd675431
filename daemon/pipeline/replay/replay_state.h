/* pipeline/replay/replay_state.h: how far the replay of a rank's batches is (pipeline/replay/replay.h). The planner
 * owns it, workers make the copies; members that other threads may read are atomic. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/pipeline/replay/batch_copy.h"

#define REPLAY_KEPT_MAX  10u
#define REPLAY_TOTAL_MAX 100000u

enum replay_state {
        REPLAY_NOTHING,
        REPLAY_KEEPING,
        REPLAY_WAITING,
        REPLAY_SERVING,
        REPLAY_DONE, /* all are planned; the trainer may still have to take some */
};

/* Why it ended early. */
enum replay_end {
        REPLAY_WHOLE,
        REPLAY_ASKED,     /* whoever began it, or another one, asked for its end */
        REPLAY_NO_MEMORY, /* not even one batch of a rank could be kept */
        REPLAY_LEFT,      /* a rank left, or moved to another place */
        REPLAY_AT_END,    /* a rank has no batch left */
};

/* Of one feed. */
struct replay {
        _Atomic uint32_t state;      /* enum replay_state; relaxed, as all of these */
        _Atomic uint32_t end;        /* enum replay_end */
        _Atomic uint32_t n_asked;    /* main thread: for the next FEED_REPLAY; 0: the planner has seen it */
        _Atomic uint32_t n_total;    /* batches to be served again */
        _Atomic uint32_t n_planned;  /* of these */
        _Atomic uint32_t n_finished; /* batches that were to be kept, whether they could be or not */
        _Atomic uint32_t n_kept;
        _Atomic uint32_t n_using;        /* batches under way that use `kept` */
        _Atomic uint64_t first_sequence; /* of the ring: the first batch that was served again */

        bool is_due;      /* it was commanded, and has not begun yet */
        uint32_t n_begun; /* batches that are to be kept */
        uint64_t round;   /* the same for all ranks that are served at one place; 0: it is not chosen yet */
        uint64_t epoch;   /* where serving begins: */
        uint64_t step;
        struct batch_copy kept[REPLAY_KEPT_MAX];
};
