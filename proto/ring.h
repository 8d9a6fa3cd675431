/* proto/ring.h: how a batch changes hands, with every memory order in one place.
 *
 * One producer (the daemon; its publishing is serialised by a lock of its own) and one consumer (the rank's client).
 *
 *   free -> filling -> ready -> leased -> free
 *
 * The daemon takes a free slot and fills it; publishing makes it ready. The client leases the next sequence by counting
 * it, and releases slots, in any order, by writing 1 + sequence into the slot's word of its page.
 *
 * A client that has to wait chooses how it is woken. A client that blocks sleeps on the futex of n_published, which has
 * half the latency of a packet (16 us compared with 30 between two idle CPUs). A futex does not report the daemon's
 * death, so the client sleeps in slices and looks at its socket in between. A client that polls asks for a packet on
 * its socket, for which an event loop can wait. The daemon does only what was asked for.
 *
 * Memory orders
 *   publish    record, samples and payload are written, then n_published with release; the client loads it with
 *              acquire.
 *   release    the client's last read of a slot comes before its released word (release); the daemon loads that with
 *              acquire before it writes the slot again.
 *   sleeping   both directions are the same two-flag handshake: the sleeper sets its flag, then looks again; the other
 *              side makes its change, then looks at the flag. Sequentially consistent fences between the two steps of
 *              each side make it impossible that both miss the other. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/layout.h"

/* ---- the daemon's side --------------------------------------------------------------------------------------- */

/* How the client sleeps. The values are those of its word `waiting`; any other value counts as DLP_WAKE_PACKET. */
enum dlp_wake {
        DLP_WAKE_NOBODY,
        DLP_WAKE_PACKET, /* send DLP_WAKE_BYTE on its socket */
        DLP_WAKE_FUTEX,  /* dlp_ring_wake() */
};

/* Makes `idx_slot` the batch of `sequence`. Its record must be complete. Sequences are published in order 0, 1, 2, ...
 * Returns how to wake the client, to be done once. One thread at a time. */
enum dlp_wake dlp_ring_publish(struct dlp_control *control, struct dlp_client_page *page, uint64_t sequence,
                               uint32_t idx_slot);

/* Wakes a client that sleeps in dlp_ring_sleep(). Any thread. */
void dlp_ring_wake(struct dlp_control *control);

/* Has the client released `sequence`, which it holds (or may hold) in `idx_slot`? Returns 0 not yet, 1 yes, -EPROTO
 * if the word holds anything but `word_before` (what it held when the slot was published: 0 at first) or the release of
 * `sequence`: the client wrote an impossible value. */
int dlp_ring_released(const struct dlp_client_page *page, uint32_t idx_slot, uint64_t word_before, uint64_t sequence);

/* Announces that the daemon waits (or no longer waits) for a release. After setting it, look at the slots once more
 * before sleeping. */
void dlp_ring_want_release(struct dlp_control *control, bool want);

/* How many batches the client says it has leased; clamped to what was published. For people, never for decisions. */
uint64_t dlp_ring_taken(const struct dlp_control *control, const struct dlp_client_page *page);

/* Tells the client why its rank waits; DLP_WAIT_NOTHING: no longer. One thread at a time. */
void dlp_ring_tell_wait(struct dlp_control *control, const struct dlp_wait *wait);

/* Tells the client that its stream has ended with n_samples. Call it before a batch is published that depends on this.
 * Returns how to wake the client, as dlp_ring_publish(). One thread at a time with dlp_ring_publish(). */
enum dlp_wake dlp_ring_set_length(struct dlp_control *control, struct dlp_client_page *page, uint64_t n_samples);

/* ---- the client's side --------------------------------------------------------------------------------------- */

/* Is `sequence` published? If so everything of its slot may be read. */
bool dlp_ring_ready(const struct dlp_control *control, uint64_t sequence);

/* Does the rank wait, and why? Never blocks: what is being written at this moment is read by the next call. Both sides.
 */
bool dlp_ring_waits(const struct dlp_control *control, struct dlp_wait *ret_wait);

/* How many samples the stream has, if it has ended; else UINT64_MAX. To be asked after dlp_ring_ready(): a batch that
 * depends on it was published later. */
uint64_t dlp_ring_length(const struct dlp_control *control);

/* The slot of a published sequence; control->n_slots if the page is damaged. */
uint32_t dlp_ring_slot(const struct dlp_control *control, uint64_t sequence);

/* Counts `sequence` as leased. */
void dlp_ring_take(struct dlp_client_page *page, uint64_t sequence);

/* Sleeps until `sequence`, the next one, is published, but at most timeout_ns (below a second). Returns 1 if it is
 * published; 0 if not: the time has passed, or a spurious wake-up; -EINTR after a signal. */
int dlp_ring_sleep(const struct dlp_control *control, struct dlp_client_page *page, uint64_t sequence,
                   uint64_t timeout_ns);

/* Asks for a packet when `sequence` is published. Returns false if it is already published: then do not wait for one.
 * The request stays in force until dlp_ring_sleep() asks for something else. */
bool dlp_ring_wait_begin(const struct dlp_control *control, struct dlp_client_page *page, uint64_t sequence);

/* Releases a slot. Returns true if the daemon waits for one: then write to the eventfd. */
bool dlp_ring_release(const struct dlp_control *control, struct dlp_client_page *page, uint64_t sequence,
                      uint32_t idx_slot);
