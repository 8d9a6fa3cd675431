/* pipeline/replay/replay.h: serves a job some batches again and again, so that one can see how fast its trainer is when
 * it never waits for data.
 *
 * `dlctl diagnose --confirm` asks for it. Each rank keeps copies of its next batches as they are finished (keeping).
 * When all ranks have some, one place of the epoch is chosen that no rank has passed (waiting). There each rank is
 * served its copies in turn, `n_total` times in all (serving), and then goes on with the batch that comes at this
 * place: no sample is lost, and nothing of the run's place in its epoch changes. All ranks begin at the same place and
 * get the same number, since ranks that train together take each step together: one batch more for one of them, and the
 * others would wait for it at the end. For the same reason an early end does not cut off a rank: all of them are still
 * served as many as the rank that has had most.
 *
 *   nothing -> keeping -> waiting -> serving -> done
 *                  \__________\__________\____-> done, with the reason
 *
 * What is served again costs a copy and neither reading nor decoding. Rejected: holding ready batches back until the
 * ring is full and timing how fast they go (a trainer that gives work to a GPU takes a ring of batches ahead of it, and
 * looks as fast as its launches); handing out the same slot again (what the trainer changed in place would come to it
 * changed).
 *
 * Threads: the planner owns what follows, workers copy. What others may read is atomic. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/pipeline/replay/kept.h"

#define REPLAY_KEPT_MAX  10u
#define REPLAY_TOTAL_MAX 100000u

struct planner;
struct stream;
struct batch;

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

/* Of one stream. */
struct replay {
        _Atomic uint32_t state;      /* enum replay_state; relaxed, as all of these */
        _Atomic uint32_t end;        /* enum replay_end */
        _Atomic uint32_t n_asked;    /* main thread: for the next STREAM_REPLAY; 0: the planner has seen it */
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
        struct kept kept[REPLAY_KEPT_MAX];
};

/* ---- planner ------------------------------------------------------------------------------------------------- */

/* The commands STREAM_REPLAY, which does nothing if it was not asked for, and STREAM_REPLAY_END, which is for all ranks
 * of the job. */
void replay_begin(struct stream *stream);
void replay_end(struct planner *planner, struct stream *stream, enum replay_end end);

/* Once each turn: jobs all of whose ranks have kept enough get their place, and copies that nobody needs are freed. */
void replay_look(struct planner *planner);

/* Is the stream, which has no batch to plan, to be served one again now? */
bool replay_is_due(struct stream *stream);

/* A batch of the stream was begun: decides whether it is to be kept. */
void replay_note_begun(struct stream *stream, struct batch *batch);

/* Makes `batch` the next one that is served again. Its slot has been taken. */
void replay_take(struct stream *stream, struct batch *batch);

/* Frees all. Nothing of the stream is under way. */
void replay_fini(struct stream *stream);

/* ---- workers ------------------------------------------------------------------------------------------------- */

/* Copies what is to be served again into the batch's slot. */
void replay_serve(struct batch *batch);

/* The batch is finished, but not published: keeps a copy if that was decided, and lets go of what it used. */
void replay_note_finished(struct batch *batch, bool is_good);
