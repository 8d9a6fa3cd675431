#include "proto/ring.h"

#include <errno.h>

bool dlp_ring_publish(struct dlp_control *control, struct dlp_client_page *page, uint64_t sequence, uint32_t idx_slot) {
        control->queue[sequence % control->n_slots] = idx_slot;
        atomic_store_explicit(&control->n_published, sequence + 1, memory_order_release);
        atomic_thread_fence(memory_order_seq_cst); /* pairs with dlp_ring_wait_begin() */

        /* Looked at before it is taken: an exchange each time would pull the line away from the client. */
        if (!atomic_load_explicit(&page->waiting, memory_order_relaxed))
                return false;
        return atomic_exchange_explicit(&page->waiting, 0, memory_order_relaxed) != 0;
}

int dlp_ring_released(const struct dlp_client_page *page, uint32_t idx_slot, uint64_t word_before, uint64_t sequence) {
        uint64_t word = atomic_load_explicit(&page->released[idx_slot], memory_order_acquire);

        if (word == sequence + 1)
                return 1;
        return word == word_before ? 0 : -EPROTO;
}

void dlp_ring_want_release(struct dlp_control *control, bool want) {
        atomic_store_explicit(&control->want_release, want, memory_order_relaxed);
        if (want)
                atomic_thread_fence(memory_order_seq_cst); /* pairs with dlp_ring_release() */
}

uint64_t dlp_ring_taken(const struct dlp_control *control, const struct dlp_client_page *page) {
        uint64_t n_published = atomic_load_explicit(&control->n_published, memory_order_relaxed);
        uint64_t n_taken = atomic_load_explicit(&page->n_taken, memory_order_relaxed);

        return n_taken < n_published ? n_taken : n_published;
}

bool dlp_ring_ready(const struct dlp_control *control, uint64_t sequence) {
        return atomic_load_explicit(&control->n_published, memory_order_acquire) > sequence;
}

uint32_t dlp_ring_slot(const struct dlp_control *control, uint64_t sequence) {
        uint32_t idx_slot = control->queue[sequence % control->n_slots];

        return idx_slot < control->n_slots ? idx_slot : control->n_slots;
}

void dlp_ring_take(struct dlp_client_page *page, uint64_t sequence) {
        atomic_store_explicit(&page->n_taken, sequence + 1, memory_order_relaxed);
}

bool dlp_ring_wait_begin(const struct dlp_control *control, struct dlp_client_page *page, uint64_t sequence) {
        atomic_store_explicit(&page->waiting, 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst); /* pairs with dlp_ring_publish() */
        return !dlp_ring_ready(control, sequence);
}

void dlp_ring_wait_end(struct dlp_client_page *page) {
        atomic_store_explicit(&page->waiting, 0, memory_order_relaxed);
}

bool dlp_ring_release(const struct dlp_control *control, struct dlp_client_page *page, uint64_t sequence, uint32_t idx_slot) {
        atomic_store_explicit(&page->released[idx_slot], sequence + 1, memory_order_release);
        atomic_thread_fence(memory_order_seq_cst); /* pairs with dlp_ring_want_release() */
        return atomic_load_explicit(&control->want_release, memory_order_relaxed) != 0;
}
