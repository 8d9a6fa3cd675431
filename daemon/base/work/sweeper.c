#include "daemon/base/work/sweeper.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "daemon/base/threads/thread.h"

#define PIECE_BYTES (2ull << 20)

static struct {
        pthread_mutex_t lock;
        pthread_cond_t came;
        pthread_t thread;
        STAILQ_HEAD(, sweep) waiting;
        _Atomic uint32_t n_waiting;
        bool is_on;
} sweeper = { .lock = PTHREAD_MUTEX_INITIALIZER,
              .came = PTHREAD_COND_INITIALIZER,
              .waiting = STAILQ_HEAD_INITIALIZER(sweeper.waiting) };

static void *sweeper_main(void *userdata) {
        struct sweep *sweep;

        pthread_mutex_lock(&sweeper.lock);
        for (;;) {
                sweep = STAILQ_FIRST(&sweeper.waiting);
                if (!sweep && !sweeper.is_on)
                        break;
                if (!sweep) {
                        pthread_cond_wait(&sweeper.came, &sweeper.lock);
                        continue;
                }
                STAILQ_REMOVE_HEAD(&sweeper.waiting, entry);
                pthread_mutex_unlock(&sweeper.lock);
                sweep->work(sweep->userdata);
                atomic_fetch_sub_explicit(&sweeper.n_waiting, 1, memory_order_release);
                pthread_mutex_lock(&sweeper.lock);
        }
        pthread_mutex_unlock(&sweeper.lock);
        return NULL;
}

int sweeper_start(struct why *why) {
        int r;

        pthread_mutex_lock(&sweeper.lock);
        assert(!sweeper.is_on);
        r = thread_start(&sweeper.thread, "sweeper", sweeper_main, NULL);
        sweeper.is_on = r == 0; /* before the thread looks, which ends when it is off */
        pthread_mutex_unlock(&sweeper.lock);
        return r < 0 ? why_errno(why, r, "sweeper: starting its thread") : 0;
}

void sweeper_stop(void) {
        bool was_on;

        pthread_mutex_lock(&sweeper.lock);
        was_on = sweeper.is_on;
        sweeper.is_on = false;
        pthread_cond_signal(&sweeper.came);
        pthread_mutex_unlock(&sweeper.lock);
        if (was_on)
                thread_join(sweeper.thread);
}

void sweeper_free(struct sweep *sweep, uint64_t n_bytes, void (*work)(void *userdata), void *userdata) {
        bool is_mine = n_bytes < SWEEP_BYTES;

        if (!is_mine) {
                pthread_mutex_lock(&sweeper.lock);
                is_mine = !sweeper.is_on;
                if (!is_mine) {
                        *sweep = (struct sweep){ .work = work, .userdata = userdata };
                        atomic_fetch_add_explicit(&sweeper.n_waiting, 1, memory_order_relaxed);
                        STAILQ_INSERT_TAIL(&sweeper.waiting, sweep, entry);
                        pthread_cond_signal(&sweeper.came);
                }
                pthread_mutex_unlock(&sweeper.lock);
        }
        if (is_mine)
                work(userdata);
}

uint32_t sweeper_n_waiting(void) {
        return atomic_load_explicit(&sweeper.n_waiting, memory_order_acquire);
}

void sweeper_unmap(void *base, uint64_t n_bytes) {
        for (uint64_t at = 0; at < n_bytes; at += PIECE_BYTES)
                munmap((uint8_t *)base + at, n_bytes - at < PIECE_BYTES ? n_bytes - at : PIECE_BYTES);
}
