#include "daemon/ring/batch_ring.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/ring/ring_trace.h"
#include "daemon/ring/step_waits.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/shown/amounts.h"
#include "proto/ring.h"

/* The part of a ring that gets memory when the ring is made: enough to see which kind of pages it has. The rest of the
 * first batch is touched by the workers as they write it, in parallel. So attaching takes as long for a large slot as
 * for a small one. */
#define TOUCH_FIRST_BYTES (2ull << 20)

static int ring_make_segments(struct ring *ring, const struct ring_options *options, uint64_t control_bytes,
                              uint64_t payload_bytes, struct why *why) {
        struct segment_options memory = options->memory;
        int r;

        memory.name = "dataloaderd-payload";
        memory.n_bytes = payload_bytes;
        memory.n_bytes_first = TOUCH_FIRST_BYTES;
        r = segment_init(&ring->payload_segment, &memory, why);
        if (r < 0)
                return r;

        memory.name = "dataloaderd-control";
        memory.n_bytes = control_bytes;
        memory.huge_pages = SEGMENT_NO; /* small, and its pages are checked one by one */
        memory.sparse = false;
        memory.n_bytes_first = 0;
        r = segment_init(&ring->control_segment, &memory, why);
        if (r < 0)
                return r;

        ring->control = (struct dlp_control *)ring->control_segment.base;
        ring->page = (struct dlp_client_page *)ring->payload_segment.base;
        dlp_layout_make(&options->geometry, ring->control, &control_bytes, &payload_bytes);
        ring->control->generation = options->generation;

        r = segment_seal(&ring->payload_segment, false, why);
        if (r < 0)
                return r;
        r = segment_seal(&ring->control_segment, true, why);
        if (r < 0)
                return r;
        r = ring->payload_segment.lent_fd = lent_open(ring->payload_segment.fd, O_RDWR, why);
        if (r < 0)
                return r;
        r = ring->control_segment.lent_fd = lent_open(ring->control_segment.fd, O_RDONLY, why);
        return r < 0 ? r : 0;
}

static void slots_init(struct ring *ring) {
        for (uint32_t i = 0; i < ring->n_slots; i++) {
                struct slot *slot = &ring->slots[i];

                slot->idx = i;
                slot->base = ring->payload_segment.base + dlp_slot_offset(ring->control, i);
                slot->record = dlp_slot_record(ring->control, i);
                slot->columns = dlp_columns(ring->control, i);
                slot->places = dlp_places(ring->control, i, 0);
        }
}

static int batch_ring_refuse_size(const struct ring_options *options, int error, struct why *why) {
        char size[BYTES_TEXT_MAX], most[BYTES_TEXT_MAX];

        return why_set(why, error,
                       "batch_size: %u slots of %s pass the limit of %s a ring; ask for smaller batches or fewer slots",
                       options->geometry.n_slots, format_bytes(size, options->geometry.slot_bytes),
                       format_bytes(most, DLP_PAYLOAD_MAX));
}

int ring_new(const struct ring_options *options, struct ring **ret_ring, struct why *why) {
        uint64_t control_bytes, payload_bytes, charge;
        struct ring *ring;
        int r;

        r = dlp_layout_make(&options->geometry, NULL, &control_bytes, &payload_bytes);
        if (r < 0)
                return batch_ring_refuse_size(options, r, why);

        charge = control_bytes + payload_bytes; /* even if it is sparse: all that it may ever take */
        r = budget_reserve(options->budget, charge, "this rank's ring", why);
        if (r < 0)
                return r;

        ring = calloc(1, sizeof(*ring) + options->geometry.n_slots * sizeof(struct slot));
        if (!ring) {
                budget_release(options->budget, charge);
                return why_errno(why, -ENOMEM, "ring");
        }
        ring->n_slots = options->geometry.n_slots;
        ring->budget = options->budget;
        ring->held = options->held;
        ring->waits = options->waits;
        ring->rank = options->rank;
        ring->control_bytes = control_bytes;
        ring->payload_bytes = payload_bytes;
        snprintf(ring->whose, sizeof(ring->whose), "%s", options->whose);
        pthread_mutex_init(&ring->lock, NULL);

        r = ring_make_segments(ring, options, control_bytes, payload_bytes, why);
        if (r < 0) {
                ring_free(ring);
                return r;
        }
        slots_init(ring);
        ring->made_ns = ring->released_at_ns = clock_now_ns();
        *ret_ring = ring;
        return 0;
}

uint64_t ring_n_published(const struct ring *ring) {
        return atomic_load_explicit(&ring->control->n_published, memory_order_relaxed);
}

void ring_touch_rest(struct ring *ring, uint32_t n_threads) {
        segment_touch_rest(&ring->payload_segment, n_threads);
}

void ring_was_sent(struct ring *ring) {
        closep(&ring->control_segment.lent_fd);
        closep(&ring->payload_segment.lent_fd);
        ring->control_segment.lent_fd = ring->payload_segment.lent_fd = -1;
}

uint64_t ring_bytes(const struct ring *ring) {
        return ring->control_bytes + ring->payload_bytes;
}

/* Called when both segments have been made, or before any client has seen the ring. */
static void segment_leave(struct ring *ring, struct segment *segment, uint64_t n_bytes) {
        int fd = segment_unmap(segment);

        if (fd >= 0)
                lent_leave(ring->held, ring->budget, fd, n_bytes, ring->whose);
        else
                budget_release(ring->budget, n_bytes);
}

static void batch_ring_free_now(void *userdata) {
        struct ring *ring = userdata;

        segment_leave(ring, &ring->control_segment, ring->control_bytes);
        segment_leave(ring, &ring->payload_segment, ring->payload_bytes);
        pthread_mutex_destroy(&ring->lock);
        free(ring);
}

void ring_free(struct ring *ring) {
        if (ring)
                sweeper_free(&ring->sweep, ring_bytes(ring), batch_ring_free_now, ring);
}

/* How long did the client take for this batch? It began when the batch was ready and the one before was released, so
 * the time in which it waited for us does not count. Only a watched ring reports a release at once. Otherwise the
 * release may have been long before it is noticed, and is assumed to have come at the client's usual pace. */
static void observe_release(struct ring *ring, const struct slot *slot) {
        uint64_t now = clock_now_ns(), ready = slot->record->ready_ns;
        uint64_t begin = ready > ring->released_at_ns ? ready : ring->released_at_ns;

        if (ring->is_watched)
                ring->consume_ns = (3 * ring->consume_ns + (now - begin)) / 4;
        ring->released_at_ns = ring->is_watched || begin + ring->consume_ns > now ? now : begin + ring->consume_ns;
        ring->making_ns = ready - slot->record->planned_ns;
}

/* How long the trainer waited for this batch. */
static void batch_ring_tell_wait(const struct ring *ring, const struct slot *slot) {
        uint64_t wait_ns;

        if (!ring->waits || slot->record->status == DLP_BATCH_REPLAY)
                return;
        wait_ns = dlp_meter_slot_wait(ring->page, slot->idx, slot->sequence, clock_now_ns() - ring->made_ns);
        if (wait_ns > 0)
                step_waits_add(ring->waits, slot->record->epoch, slot->record->step, wait_ns);
}

/* Returns 1 if the slot is free, or has become free. ring->lock is held. */
static int slot_reclaim(struct ring *ring, struct slot *slot) {
        int r;

        if (slot->state == SLOT_FREE)
                return 1;
        if (slot->state != SLOT_READY)
                return 0;
        r = dlp_ring_released(ring->page, slot->idx, slot->word_before, slot->sequence);
        if (r > 0) {
                slot->state = SLOT_FREE;
                slot->word_before = slot->sequence + 1;
                ring->n_released++;
                observe_release(ring, slot);
                batch_ring_tell_wait(ring, slot);
                if (trace_is_on())
                        ring_trace_slot(ring, slot, true);
        }
        return r;
}

static int batch_ring_take_locked(struct ring *ring, struct slot **ret_slot) {
        for (uint32_t i = 0; i < ring->n_slots; i++) {
                /* The oldest slot first: it is the most likely to be free, but the client may release in any order. */
                struct slot *slot = &ring->slots[(ring->next_sequence + i) % ring->n_slots];
                int r = slot_reclaim(ring, slot);

                if (r < 0)
                        return r;
                if (r == 0)
                        continue;
                slot->state = SLOT_FILLING;
                slot->sequence = ring->next_sequence++;
                slot->planned_ns = clock_now_ns();
                *ret_slot = slot;
                return 0;
        }
        return RING_NO_SLOT;
}

int ring_take(struct ring *ring, struct slot **ret_slot) {
        struct slot *slot;
        int r;

        pthread_mutex_lock(&ring->lock);
        r = batch_ring_take_locked(ring, &slot);
        pthread_mutex_unlock(&ring->lock);
        if (r != 0)
                return r;

        slot->record->sequence = slot->sequence;
        slot->record->planned_ns = slot->planned_ns;
        *ret_slot = slot;
        return 0;
}

void ring_watch(struct ring *ring, bool watch) {
        if (ring->is_watched == watch)
                return;
        ring->is_watched = watch;
        dlp_ring_want_release(ring->control, watch);
}

static struct slot *slot_of_sequence(struct ring *ring, uint64_t sequence) {
        for (uint32_t i = 0; i < ring->n_slots; i++)
                if (ring->slots[i].state == SLOT_COMPLETE && ring->slots[i].sequence == sequence)
                        return &ring->slots[i];
        return NULL;
}

bool ring_complete(struct ring *ring, struct slot *slot) {
        enum dlp_wake wake = DLP_WAKE_NOBODY;

        pthread_mutex_lock(&ring->lock);
        assert(slot->state == SLOT_FILLING);
        slot->state = SLOT_COMPLETE;
        for (struct slot *next = slot; next && next->sequence == ring->next_publish;
             next = slot_of_sequence(ring, ring->next_publish)) {
                next->record->ready_ns = clock_now_ns();
                next->state = SLOT_READY;
                ring->last_epoch = next->record->epoch;
                ring->last_step = next->record->step;
                /* If several batches are published, the first takes the flag; the client sees all of them. */
                wake |= dlp_ring_publish(ring->control, ring->page, next->sequence, next->idx);
                ring->next_publish++;
        }
        pthread_mutex_unlock(&ring->lock);
        if (wake & DLP_WAKE_FUTEX)
                dlp_ring_wake(ring->control);
        return wake & DLP_WAKE_PACKET;
}

bool ring_set_length(struct ring *ring, uint64_t n_samples) {
        enum dlp_wake wake;

        pthread_mutex_lock(&ring->lock);
        wake = dlp_ring_set_length(ring->control, ring->page, n_samples);
        pthread_mutex_unlock(&ring->lock);
        if (wake & DLP_WAKE_FUTEX)
                dlp_ring_wake(ring->control);
        return wake & DLP_WAKE_PACKET;
}

void ring_count(struct ring *ring, struct ring_counts *ret_counts) {
        uint64_t n_taken = dlp_ring_taken(ring->control, ring->page), next = UINT64_MAX;
        struct ring_counts counts = { 0 };

        pthread_mutex_lock(&ring->lock);
        counts.n_released = ring->n_released;
        counts.epoch = ring->last_epoch;
        counts.step = ring->last_step;
        for (uint32_t i = 0; i < ring->n_slots; i++) {
                const struct slot *slot = &ring->slots[i];

                if (slot->state == SLOT_FILLING || slot->state == SLOT_COMPLETE) {
                        counts.n_filling++;
                } else if (slot->state == SLOT_READY && slot->sequence >= n_taken) {
                        counts.n_ready++;
                        if (slot->sequence >= next)
                                continue;
                        next = slot->sequence;
                        counts.epoch = slot->record->epoch; /* not written again before the lock is taken */
                        counts.step = slot->record->step;
                } else if (slot->state == SLOT_READY) {
                        if (dlp_ring_released(ring->page, i, slot->word_before, slot->sequence) == 0)
                                counts.n_leased++;
                        else
                                counts.n_released++; /* the planner has not looked at it yet */
                }
        }
        pthread_mutex_unlock(&ring->lock);
        *ret_counts = counts;
}

void ring_meter(struct ring *ring, uint64_t now_ns, struct dlp_meter *ret_meter) {
        struct dlp_meter_bounds bounds = { .made_ns = ring->made_ns,
                                           .now_ns = now_ns,
                                           .n_published = ring_n_published(ring) };

        dlp_meter_read(ring->page, &bounds, ret_meter);
        dlp_meter_keep(&ring->told, ret_meter);
}
