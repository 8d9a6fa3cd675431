#include "proto/ring.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Not _PRIVATE: two processes map the word, and the client's mapping is read-only. */
static long futex(const _Atomic uint64_t *word, int operation, uint32_t value, const struct timespec *timeout) {
        return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

/* How the client wants to be woken after what was stored just now. */
static enum dlp_wake take_wake(struct dlp_client_page *page) {
        atomic_thread_fence(memory_order_seq_cst); /* pairs with dlp_ring_wait_begin() */

        /* A load before the exchange: an exchange each time would take the cache line away from the client. */
        if (!atomic_load_explicit(&page->waiting, memory_order_relaxed))
                return DLP_WAKE_NOBODY;
        switch (atomic_exchange_explicit(&page->waiting, 0, memory_order_relaxed)) {
        case DLP_WAKE_NOBODY:
                return DLP_WAKE_NOBODY;
        case DLP_WAKE_FUTEX:
                return DLP_WAKE_FUTEX;
        default:
                return DLP_WAKE_PACKET;
        }
}

enum dlp_wake dlp_ring_publish(struct dlp_control *control, struct dlp_client_page *page, uint64_t sequence,
                               uint32_t idx_slot) {
        control->queue[sequence % control->n_slots] = idx_slot;
        atomic_store_explicit(&control->n_published, sequence + 1, memory_order_release);
        return take_wake(page);
}

/* A client that goes to sleep at this moment may miss it: it sleeps for a tenth of a second at most, and then looks. */
enum dlp_wake dlp_ring_set_length(struct dlp_control *control, struct dlp_client_page *page, uint64_t n_samples) {
        atomic_store_explicit(&control->n_samples_told, n_samples + 1, memory_order_release);
        return take_wake(page);
}

uint64_t dlp_ring_length(const struct dlp_control *control) {
        return atomic_load_explicit(&control->n_samples_told, memory_order_acquire) - 1;
}

void dlp_ring_wake(struct dlp_control *control) {
        futex(&control->n_published, FUTEX_WAKE, INT_MAX, NULL);
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

int dlp_ring_sleep(const struct dlp_control *control, struct dlp_client_page *page, uint64_t sequence,
                   uint64_t timeout_ns) {
        struct timespec timeout = { .tv_nsec = (long)timeout_ns };
        int error = 0;

        atomic_store_explicit(&page->waiting, DLP_WAKE_FUTEX, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst); /* pairs with dlp_ring_publish() */
        /* While `sequence` is not published, n_published equals it. The kernel compares the low (first) half, so that a
         * publish between our check and our sleep is not missed. */
        if (!dlp_ring_ready(control, sequence) &&
            futex(&control->n_published, FUTEX_WAIT, (uint32_t)sequence, &timeout) < 0)
                error = errno;
        atomic_store_explicit(&page->waiting, DLP_WAKE_NOBODY, memory_order_relaxed);
        if (dlp_ring_ready(control, sequence))
                return 1;
        return error == EINTR ? -EINTR : 0;
}

bool dlp_ring_wait_begin(const struct dlp_control *control, struct dlp_client_page *page, uint64_t sequence) {
        atomic_store_explicit(&page->waiting, DLP_WAKE_PACKET, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst); /* pairs with dlp_ring_publish() */
        return !dlp_ring_ready(control, sequence);
}

bool dlp_ring_release(const struct dlp_control *control, struct dlp_client_page *page, uint64_t sequence,
                      uint32_t idx_slot) {
        atomic_store_explicit(&page->released[idx_slot], sequence + 1, memory_order_release);
        atomic_thread_fence(memory_order_seq_cst); /* pairs with dlp_ring_want_release() */
        return atomic_load_explicit(&control->want_release, memory_order_relaxed) != 0;
}

/* ---- why a rank waits ----------------------------------------------------------------------------------------- */

#define WAIT_WORDS (sizeof(struct dlp_wait) / sizeof(uint64_t))

/* Sequentially consistent throughout, which costs nothing here: once a second, and only while a rank waits. */
void dlp_ring_tell_wait(struct dlp_control *control, const struct dlp_wait *wait) {
        uint64_t words[WAIT_WORDS];

        memcpy(words, wait, sizeof(words));
        atomic_fetch_add(&control->wait_version, 1);
        for (size_t i = 0; i < WAIT_WORDS; i++)
                atomic_store(&control->wait_words[i], words[i]);
        atomic_fetch_add(&control->wait_version, 1);
}

bool dlp_ring_waits(const struct dlp_control *control, struct dlp_wait *ret_wait) {
        uint32_t version = atomic_load(&control->wait_version);
        uint64_t words[WAIT_WORDS];
        struct dlp_wait wait;

        if (version & 1 || (uint32_t)atomic_load(&control->wait_words[0]) == DLP_WAIT_NOTHING)
                return false;
        for (size_t i = 0; i < WAIT_WORDS; i++)
                words[i] = atomic_load(&control->wait_words[i]);
        if (atomic_load(&control->wait_version) != version)
                return false;
        memcpy(&wait, words, sizeof(wait));
        wait.detail[DLP_TEXT_MAX - 1] = '\0';
        *ret_wait = wait;
        return wait.reason != DLP_WAIT_NOTHING;
}
