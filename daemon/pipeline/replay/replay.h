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
 * How far a rank is says struct replay (pipeline/replay/replay_state.h). */
#pragma once

#include "daemon/pipeline/feed.h"

/* ---- planner ------------------------------------------------------------------------------------------------- */

/* The commands FEED_REPLAY, which does nothing if it was not asked for, and FEED_REPLAY_END, which is for all ranks
 * of the job. */
void replay_begin(struct feed *feed);
void replay_end(struct feeds *feeds, struct feed *feed, enum replay_end end);

/* Once each turn: jobs all of whose ranks have kept enough get their place, and copies that nobody needs are freed.
 * `n_places`: that were chosen so far. */
void replay_look(struct feeds *feeds, uint64_t *n_places);

/* Is the feed, which has no batch to plan, to be served one again now? */
bool replay_is_due(struct feed *feed);

/* A batch of the feed was begun: decides whether it is to be kept. */
void replay_note_begun(struct feed *feed, struct batch *batch);

/* Makes `batch` the next one that is served again. Its slot has been taken. */
void replay_take(struct feed *feed, struct batch *batch);

/* Frees all. Nothing of the feed is under way. */
void replay_fini(struct feed *feed);

/* ---- workers ------------------------------------------------------------------------------------------------- */

/* Copies what is to be served again into the batch's slot. */
void replay_serve(struct batch *batch);

/* The batch is finished, but not published: keeps a copy if that was decided, and lets go of what it used. */
void replay_note_finished(struct batch *batch, bool is_good);
