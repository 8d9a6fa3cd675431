#include "daemon/pipeline/replay/replay.h"

static uint32_t replay_get(const _Atomic uint32_t *word) {
        return atomic_load_explicit(word, memory_order_relaxed);
}

static void replay_set(_Atomic uint32_t *word, uint32_t value) {
        atomic_store_explicit(word, value, memory_order_relaxed);
}

static bool replay_is_under_way(const struct replay *replay) {
        uint32_t state = replay_get(&replay->state);

        return state == REPLAY_KEEPING || state == REPLAY_WAITING || state == REPLAY_SERVING;
}

static void free_kept(struct feed *feed) {
        for (uint32_t i = 0; i < REPLAY_KEPT_MAX; i++)
                batch_copy_free(&feed->replay.kept[i], feed->budget);
}

/* ---- beginning and ending ---------------------------------------------------------------------------------------- */

/* Of a rank that is served again already, or whose copies are still in use, this is tried again later. */
static void begin(struct feed *feed) {
        struct replay *replay = &feed->replay;
        uint32_t n_asked = replay_get(&replay->n_asked);

        if (n_asked == 0 || replay_is_under_way(replay) ||
            atomic_load_explicit(&replay->n_using, memory_order_acquire) > 0)
                return;
        feed->replay.is_due = false;
        free_kept(feed);
        replay_set(&replay->n_total, n_asked);
        replay_set(&replay->n_planned, 0);
        replay_set(&replay->n_finished, 0);
        replay_set(&replay->n_kept, 0);
        replay_set(&replay->end, REPLAY_WHOLE);
        replay->n_begun = 0;
        replay->round = 0;
        replay_set(&replay->state, REPLAY_KEEPING);
        atomic_store_explicit(&replay->n_asked, 0, memory_order_release); /* the state counts from now on */
}

static void replay_conclude(struct replay *replay, enum replay_end end) {
        replay_set(&replay->end, end);
        replay_set(&replay->state, REPLAY_DONE);
}

void replay_begin(struct feed *feed) {
        feed->replay.is_due = true;
        begin(feed);
}

/* How often the rank was served again that has had most of this round. It may be done already. */
static uint32_t most_planned(const struct feeds *feeds, const struct feed *feed) {
        uint32_t n_most = 0;
        struct feed *other;

        if (feed->replay.round == 0) /* no place was chosen yet */
                return 0;
        TAILQ_FOREACH(other, feeds, entry)
                if (other->job == feed->job && other->replay.round == feed->replay.round &&
                    replay_get(&other->replay.n_planned) > n_most)
                        n_most = replay_get(&other->replay.n_planned);
        return n_most;
}

/* Those that have been served as many as the one that has had most are done, the others go on until then. A feed that
 * is still waiting for its place is served when it gets there, like the others. */
void replay_end(struct feeds *feeds, struct feed *feed, enum replay_end end) {
        uint32_t n_most = most_planned(feeds, feed);
        struct feed *other;

        if (!replay_is_under_way(&feed->replay))
                return;
        TAILQ_FOREACH(other, feeds, entry) {
                struct replay *replay = &other->replay;

                if (other->job != feed->job || !replay_is_under_way(replay))
                        continue;
                replay_set(&replay->n_total, n_most);
                if (replay_get(&replay->n_planned) == n_most || other->is_removed || other->is_ended)
                        replay_conclude(replay, end);
                else
                        replay_set(&replay->end, end);
        }
}

void replay_fini(struct feed *feed) {
        free_kept(feed);
}

/* ---- the common place -------------------------------------------------------------------------------------------- */

/* The place of the batch that the feed begins next. Returns false if it has none left. */
static bool next_place(const struct feed *feed, uint64_t *ret_epoch, uint64_t *ret_step) {
        uint64_t step = feed->step + (feed->batch ? 1 : 0);
        bool is_over = dlp_epoch_plan_is_over(&feed->plan, step);

        if (feed->is_ended || (is_over && feed->epoch + 1 >= feed->end_epoch))
                return false;
        *ret_epoch = is_over ? feed->epoch + 1 : feed->epoch;
        *ret_step = is_over ? 0 : step;
        return true;
}

static bool is_after(uint64_t epoch, uint64_t step, uint64_t other_epoch, uint64_t other_step) {
        return epoch > other_epoch || (epoch == other_epoch && step > other_step);
}

/* What the ranks of one job have come to, found in one pass. */
struct ranks_seen {
        uint32_t n_there; /* ranks that take part, or will in a moment */
        uint32_t n_ready; /* of these: whose batches are kept */
        bool lacks_memory, is_at_end;
        uint64_t epoch, step; /* the furthest place of all */
};

static struct ranks_seen replay_see_ranks(const struct feeds *feeds, const struct job *job) {
        struct ranks_seen seen = { 0 };
        struct feed *feed;

        TAILQ_FOREACH(feed, feeds, entry) {
                const struct replay *replay = &feed->replay;
                uint64_t epoch = 0, step = 0;

                if (feed->job != job || feed->is_removed)
                        continue;
                if (replay_get(&replay->state) != REPLAY_KEEPING) {
                        seen.n_there += replay_get(&replay->n_asked) > 0;
                        continue;
                }
                seen.n_there++;
                if (!next_place(feed, &epoch, &step))
                        seen.is_at_end = true;
                if (is_after(epoch, step, seen.epoch, seen.step)) {
                        seen.epoch = epoch;
                        seen.step = step;
                }
                /* acquire: the copies are read */
                if (atomic_load_explicit(&replay->n_finished, memory_order_acquire) < REPLAY_KEPT_MAX)
                        continue;
                seen.n_ready++;
                seen.lacks_memory |= replay_get(&replay->n_kept) == 0;
        }
        return seen;
}

/* All ranks have kept batches: they are served from the furthest place on. */
static void choose_place(const struct feeds *feeds, const struct job *job, const struct ranks_seen *seen,
                         uint64_t number) {
        struct feed *feed;

        TAILQ_FOREACH(feed, feeds, entry) {
                if (feed->job != job || replay_get(&feed->replay.state) != REPLAY_KEEPING)
                        continue;
                feed->replay.round = number;
                feed->replay.epoch = seen->epoch;
                feed->replay.step = seen->step;
                replay_set(&feed->replay.state, REPLAY_WAITING);
        }
}

void replay_look(struct feeds *feeds, uint64_t *n_places) {
        struct feed *feed;

        TAILQ_FOREACH(feed, feeds, entry) {
                struct replay *replay = &feed->replay;
                struct ranks_seen seen;

                if (replay->is_due) /* not before its command: until then other ranks may not be marked */
                        begin(feed);
                /* acquire: what workers did with the copies comes before */
                if (replay_get(&replay->state) == REPLAY_DONE &&
                    atomic_load_explicit(&replay->n_using, memory_order_acquire) == 0)
                        free_kept(feed);
                if (replay_is_under_way(replay) && feed->is_ended)
                        replay_end(feeds, feed, REPLAY_AT_END);
                if (replay_get(&replay->state) != REPLAY_KEEPING)
                        continue;
                seen = replay_see_ranks(feeds, feed->job);
                if (seen.is_at_end)
                        replay_end(feeds, feed, REPLAY_AT_END);
                else if (seen.lacks_memory)
                        replay_end(feeds, feed, REPLAY_NO_MEMORY);
                else if (seen.n_there < feed->job->terms.world)
                        replay_end(feeds, feed, REPLAY_LEFT);
                else if (seen.n_ready == seen.n_there)
                        choose_place(feeds, feed->job, &seen, ++*n_places);
        }
}

/* ---- keeping and serving ------------------------------------------------------------------------------------------
 */

void replay_note_begun(struct feed *feed, struct batch *batch) {
        struct replay *replay = &feed->replay;

        batch->keeps = batch->replays = NULL;
        if (replay_get(&replay->state) != REPLAY_KEEPING || replay->n_begun == REPLAY_KEPT_MAX)
                return;
        batch->keeps = &replay->kept[replay->n_begun++];
        atomic_fetch_add_explicit(&replay->n_using, 1, memory_order_relaxed);
}

bool replay_is_due(struct feed *feed) {
        struct replay *replay = &feed->replay;

        if (replay_get(&replay->state) == REPLAY_WAITING &&
            !is_after(replay->epoch, replay->step, feed->epoch, feed->step)) {
                atomic_store_explicit(&replay->first_sequence, feed->ring->next_sequence, memory_order_relaxed);
                replay_set(&replay->state, REPLAY_SERVING);
        }
        if (replay_get(&replay->state) != REPLAY_SERVING)
                return false;
        if (replay_get(&replay->n_planned) < replay_get(&replay->n_total))
                return true;
        replay_set(&replay->state, REPLAY_DONE);
        return false;
}

/* Copy `number` of those that could be kept. */
static struct batch_copy *nth_kept(struct replay *replay, uint32_t number) {
        for (uint32_t i = 0; i < REPLAY_KEPT_MAX; i++)
                if (replay->kept[i].record && number-- == 0)
                        return &replay->kept[i];
        return NULL;
}

void replay_take(struct feed *feed, struct batch *batch) {
        struct replay *replay = &feed->replay;
        uint32_t n_planned = replay_get(&replay->n_planned);

        batch->keeps = NULL;
        batch->replays = nth_kept(replay, n_planned % replay_get(&replay->n_kept));
        atomic_fetch_add_explicit(&replay->n_using, 1, memory_order_relaxed);
        replay_set(&replay->n_planned, n_planned + 1);
}

void replay_serve(struct batch *batch) {
        batch_copy_put(batch->replays, batch->feed->ring, batch->slot);
}

void replay_note_finished(struct batch *batch, bool is_good) {
        struct replay *replay = &batch->feed->replay;

        if (!batch->keeps && !batch->replays)
                return;
        if (batch->keeps) {
                if (is_good &&
                    batch_copy_take(batch->keeps, batch->feed->ring, batch->slot, batch->feed->budget) == 0 &&
                    batch->keeps->record)
                        atomic_fetch_add_explicit(&replay->n_kept, 1, memory_order_relaxed);
                /* release, as below: the planner reads the copy after it has seen this */
                atomic_fetch_add_explicit(&replay->n_finished, 1, memory_order_release);
        }
        batch->keeps = batch->replays = NULL;
        atomic_fetch_sub_explicit(&replay->n_using, 1, memory_order_release);
}
