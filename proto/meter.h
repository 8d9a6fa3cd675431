/* proto/meter.h: what a client reports about its waiting, in its page, and what the daemon makes of it.
 *
 * The client writes with plain stores and no system call. It reads the clock only when a batch was not there: when the
 * trainer begins and ends to wait, and when it takes the last batch that was ready. So a batch that is ready costs two
 * stores. How long the trainer was busy follows from the rest: it is all the time that it did not wait.
 *
 * For the daemon each value is a claim: the page belongs to another user's process, which may write anything at any
 * time. dlp_meter_read() clamps it to what is possible, and dlp_meter_keep() lets it never decrease. Nothing is decided
 * by it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/layout.h"

/* ---- the client's side: the thread that uses the loader ------------------------------------------------------ */

/* The trainer asked for the next batch at `now_ns`, and it is not there. Later calls for the same batch do nothing. */
void dlp_meter_wait(struct dlp_client_page *page, uint64_t now_ns);

/* The batch that was ready at `ready_ns` is handed out. `now_ns`: the time, if this call has waited for it, else 0. (If
 * only an earlier call asked for it in vain, that wait ended at ready_ns.) */
void dlp_meter_take(struct dlp_client_page *page, uint64_t ready_ns, uint64_t now_ns);

/* After taking a batch: none is ready at `now_ns`. */
void dlp_meter_empty(struct dlp_client_page *page, uint64_t now_ns);

/* While a rank is traced, it also writes when each batch was taken and released. Call it before dlp_meter_take(), with
 * the same times; and before dlp_ring_release(), from any thread. One load of a line that is read anyway, unless it is
 * traced. */
void dlp_meter_note_taken(const struct dlp_control *control, struct dlp_client_page *page, uint32_t idx_slot,
                          uint64_t ready_ns, uint64_t now_ns);
void dlp_meter_note_released(const struct dlp_control *control, struct dlp_client_page *page, uint32_t idx_slot);

/* The same for how long it was waited for, always; nothing if it was there. */
void dlp_meter_note_wait(struct dlp_client_page *page, uint32_t idx_slot, uint64_t sequence, uint64_t ready_ns,
                         uint64_t now_ns);

/* Which of DLP_WAIT_BUCKETS a wait belongs to: bucket 0 is below a microsecond, bucket i below 2^i, the last one has
 * the rest. */
uint32_t dlp_wait_bucket(uint64_t wait_ns);

/* ---- the daemon's side --------------------------------------------------------------------------------------- */

struct dlp_meter {
        uint64_t n_batches;               /* handed out */
        uint64_t n_waits;                 /* for which the trainer waited; without the first batch, as the next two */
        uint64_t wait_ns;                 /* that it waited, the wait under way included */
        uint64_t busy_ns;                 /* that it did not, since it had the first batch */
        uint64_t waiting_ns;              /* for how long it has been waiting now; 0: it does not */
        uint64_t empty_ns;                /* in which no batch was ready */
        uint64_t first_wait_ns;           /* for the first batch */
        uint64_t waits[DLP_WAIT_BUCKETS]; /* all batches but the first: those that were there are in bucket 0 */
};

/* What the daemon knows. */
struct dlp_meter_bounds {
        uint64_t made_ns; /* when it made the page */
        uint64_t now_ns;
        uint64_t n_published;
};

/* Reads the page, and clamps every value to what is possible: no more batches than were published, no more waits than
 * batches, no more time than has passed. */
void dlp_meter_read(const struct dlp_client_page *page, const struct dlp_meter_bounds *bounds,
                    struct dlp_meter *ret_meter);

/* How long the trainer waited for the batch that came in slot i with this sequence; at most `limit_ns`, and 0 for its
 * first batch. */
uint64_t dlp_meter_slot_wait(const struct dlp_client_page *page, uint32_t idx_slot, uint64_t sequence,
                             uint64_t limit_ns);

/* Makes the client write the times of its batches, or no longer. */
void dlp_meter_trace(struct dlp_control *control, bool on);

/* When what happened to the batch that is in a slot, or just was. Times of the client are clamped, so that they follow
 * each other. */
struct dlp_slot_story {
        uint64_t asked_ns, waited_until_ns; /* equal: it was not waited for */
        uint64_t taken_ns;
        uint64_t released_ns; /* or now, if it is not released */
};

struct dlp_story_bounds {
        uint64_t made_ns; /* the page */
        uint64_t ready_ns;
        uint64_t now_ns;
        bool is_back; /* it is released */
};

/* False: it was not taken, or not while the rank was traced. */
bool dlp_meter_story(const struct dlp_client_page *page, uint32_t idx_slot, const struct dlp_story_bounds *bounds,
                     struct dlp_slot_story *ret_story);

/* Changes what `meter` says so that it follows what was said before, `kept`, and keeps it: sums never decrease, and are
 * still possible together. */
void dlp_meter_keep(struct dlp_meter *kept, struct dlp_meter *meter);
