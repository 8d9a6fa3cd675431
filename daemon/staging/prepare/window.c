#include "daemon/staging/prepare/window.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/base/threads/thread.h"
#include "proto/base/clock.h"

struct window_slot {
        bool is_finished;
        uint64_t n_paid; /* bytes of used_bytes */
        struct window_result result;
};

static struct window_slot *window_slot_of(struct window *window, uint64_t position) {
        return &window->slots[position % WINDOW_SLOTS];
}

int window_init(struct window *window, uint64_t n_positions) {
        *window = (struct window){ .n_positions = n_positions };
        window->slots = calloc(WINDOW_SLOTS, sizeof(*window->slots));
        if (!window->slots)
                return -ENOMEM;
        pthread_mutex_init(&window->lock, NULL);
        pthread_cond_init(&window->changed, NULL);
        pthread_cond_init(&window->finished, NULL);
        return 0;
}

void window_fini(struct window *window) {
        if (!window->slots)
                return;
        for (uint32_t i = 0; i < WINDOW_SLOTS; i++)
                block_free(&window->slots[i].result.block);
        free(window->slots);
        pthread_cond_destroy(&window->finished);
        pthread_cond_destroy(&window->changed);
        pthread_mutex_destroy(&window->lock);
}

/* ---- workers ------------------------------------------------------------------------------------------------- */

bool window_take(struct window *window, uint64_t *ret_position) {
        bool is_there;

        pthread_mutex_lock(&window->lock);
        while (!window->is_stopped && window->n_taken < window->n_positions &&
               window->n_taken - window->n_packed == WINDOW_SLOTS)
                pthread_cond_wait(&window->changed, &window->lock);
        is_there = !window->is_stopped && window->n_taken < window->n_positions;
        if (is_there)
                *ret_position = window->n_taken++;
        pthread_mutex_unlock(&window->lock);
        return is_there;
}

static bool window_fits(const struct window *window, uint64_t position, uint64_t n_bytes) {
        return position == window->n_packed ||
               (window->used_bytes <= WINDOW_BYTES && n_bytes <= WINDOW_BYTES - window->used_bytes);
}

bool window_pay(struct window *window, uint64_t position, uint64_t n_bytes) {
        bool goes_on;

        pthread_mutex_lock(&window->lock);
        while (!window->is_stopped && !window_fits(window, position, n_bytes))
                pthread_cond_wait(&window->changed, &window->lock);
        goes_on = !window->is_stopped;
        if (goes_on) {
                window_slot_of(window, position)->n_paid += n_bytes;
                window->used_bytes += n_bytes;
        }
        pthread_mutex_unlock(&window->lock);
        return goes_on;
}

/* What a slot pays for becomes n_bytes. */
static void window_settle(struct window *window, struct window_slot *slot, uint64_t n_bytes) {
        assert(window->used_bytes >= slot->n_paid);
        window->used_bytes = window->used_bytes - slot->n_paid + n_bytes;
        slot->n_paid = n_bytes;
}

void window_finish(struct window *window, uint64_t position, const struct window_result *result) {
        struct window_slot *slot = window_slot_of(window, position);

        pthread_mutex_lock(&window->lock);
        assert(!slot->is_finished && position >= window->n_packed && position < window->n_taken);
        slot->result = *result;
        slot->is_finished = true;
        window_settle(window, slot, result->block.capacity);
        pthread_cond_broadcast(&window->changed);
        if (position == window->n_packed)
                pthread_cond_signal(&window->finished);
        pthread_mutex_unlock(&window->lock);
}

/* ---- the packer ---------------------------------------------------------------------------------------------- */

struct window_result *window_next(struct window *window, uint32_t timeout_ms) {
        uint64_t until_ns = clock_now_ns() + timeout_ms * 1000000ull;
        struct window_slot *slot;
        bool is_finished;
        int r = 0;

        pthread_mutex_lock(&window->lock);
        assert(window->n_packed < window->n_positions);
        slot = window_slot_of(window, window->n_packed);
        while (!slot->is_finished && r == 0)
                r = thread_wait_until(&window->finished, &window->lock, until_ns);
        is_finished = slot->is_finished;
        pthread_mutex_unlock(&window->lock);
        return is_finished ? &slot->result : NULL;
}

void window_packed(struct window *window) {
        struct window_slot *slot = window_slot_of(window, window->n_packed); /* the packer alone changes it */

        block_free(&slot->result.block);
        pthread_mutex_lock(&window->lock);
        slot->is_finished = false;
        window_settle(window, slot, 0);
        window->n_packed++;
        pthread_cond_broadcast(&window->changed);
        pthread_mutex_unlock(&window->lock);
}

void window_stop(struct window *window) {
        pthread_mutex_lock(&window->lock);
        window->is_stopped = true;
        pthread_cond_broadcast(&window->changed);
        pthread_mutex_unlock(&window->lock);
}

bool window_is_stopped(const struct window *window) {
        return atomic_load_explicit(&window->is_stopped, memory_order_relaxed);
}
