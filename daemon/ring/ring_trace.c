#include "daemon/ring/ring_trace.h"

#include "proto/base/clock.h"
#include "proto/meter.h"

static struct trace_subject subject_of(const struct ring *ring, const struct slot *slot) {
        return (struct trace_subject){ .word = atomic_load_explicit(&ring->traced, memory_order_relaxed),
                                       .rank = ring->rank,
                                       .lane = (uint16_t)slot->idx };
}

static void write_wait(const struct trace_subject *subject, const struct dlp_slot_story *story) {
        if (story->waited_until_ns > story->asked_ns)
                trace_write(subject, DLP_TRACE_WAIT, DLP_TRACE_DONE, story->asked_ns, story->waited_until_ns, 0);
}

/* A batch that was taken before the trace began has no times of its own: only when it was filled is known. */
void ring_trace_slot(struct ring *ring, const struct slot *slot, bool is_back) {
        const struct dlp_slot_record *record = slot->record;
        struct trace_subject subject = subject_of(ring, slot);
        uint64_t now_ns = clock_now_ns();
        struct dlp_slot_story story;
        bool is_taken;

        if (subject.word == 0)
                return;
        subject.epoch = record->epoch;
        subject.step = record->step;
        is_taken = dlp_meter_story(
                ring->page, slot->idx,
                &(struct dlp_story_bounds){
                        .made_ns = ring->made_ns, .ready_ns = record->ready_ns, .now_ns = now_ns, .is_back = is_back },
                &story);
        trace_write(&subject, DLP_TRACE_FILLING, DLP_TRACE_DONE, slot->planned_ns, record->ready_ns, record->n_samples);
        if (is_taken) {
                trace_write(&subject, DLP_TRACE_READY, DLP_TRACE_DONE, record->ready_ns, story.taken_ns,
                            record->n_samples);
                trace_write(&subject, DLP_TRACE_HELD, is_back ? DLP_TRACE_DONE : DLP_TRACE_OPEN, story.taken_ns,
                            story.released_ns, record->n_samples);
                write_wait(&subject, &story);
        } else if (!is_back && slot->sequence >= atomic_load_explicit(&ring->page->n_taken, memory_order_relaxed)) {
                trace_write(&subject, DLP_TRACE_READY, DLP_TRACE_OPEN, record->ready_ns, now_ns, record->n_samples);
        }
}

/* The record of such a slot is being written, so its place in the epoch is not told. */
static void tell_filling(const struct ring *ring, const struct slot *slot, uint64_t now_ns) {
        struct trace_subject subject = subject_of(ring, slot);

        trace_write(&subject, DLP_TRACE_FILLING, DLP_TRACE_OPEN, slot->planned_ns, now_ns, 0);
}

/* What the trainer waits for at this moment. */
static void ring_trace_tell_wait(const struct ring *ring, uint64_t now_ns) {
        struct trace_subject subject = { .word = atomic_load_explicit(&ring->traced, memory_order_relaxed),
                                         .rank = ring->rank };
        uint64_t since_ns = atomic_load_explicit(&ring->page->waiting_since_ns, memory_order_relaxed);

        if (since_ns >= ring->made_ns && since_ns < now_ns)
                trace_write(&subject, DLP_TRACE_WAIT, DLP_TRACE_OPEN, since_ns, now_ns, 0);
}

void ring_trace(struct ring *ring, uint64_t word) {
        pthread_mutex_lock(&ring->lock);
        atomic_store_explicit(&ring->traced, word, memory_order_relaxed);
        dlp_meter_trace(ring->control, true);
        pthread_mutex_unlock(&ring->lock);
}

void ring_trace_end(struct ring *ring) {
        uint64_t now_ns;

        pthread_mutex_lock(&ring->lock);
        now_ns = clock_now_ns(); /* after all that is under way has begun */
        for (uint32_t i = 0; i < ring->n_slots && ring->traced != 0; i++) {
                if (ring->slots[i].state == SLOT_READY)
                        ring_trace_slot(ring, &ring->slots[i], false);
                else if (ring->slots[i].state != SLOT_FREE)
                        tell_filling(ring, &ring->slots[i], now_ns);
        }
        if (ring->traced != 0)
                ring_trace_tell_wait(ring, now_ns);
        atomic_store_explicit(&ring->traced, 0, memory_order_relaxed);
        dlp_meter_trace(ring->control, false);
        pthread_mutex_unlock(&ring->lock);
}
