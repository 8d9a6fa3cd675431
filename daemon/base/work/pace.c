#include "daemon/base/work/pace.h"

#include "daemon/base/threads/thread.h"
#include "proto/base/clock.h"

void pace_init(struct pace *pace) {
        *pace = (struct pace){ 0 };
        pthread_mutex_init(&pace->lock, NULL);
        pthread_cond_init(&pace->changed, NULL);
}

void pace_fini(struct pace *pace) {
        pthread_cond_destroy(&pace->changed);
        pthread_mutex_destroy(&pace->lock);
}

void pace_set(struct pace *pace, uint64_t milli) {
        pthread_mutex_lock(&pace->lock);
        atomic_store_explicit(&pace->milli, milli, memory_order_relaxed);
        pace->paid_at_ns = 0;
        pace->n_set++;
        pthread_mutex_unlock(&pace->lock);
        pthread_cond_broadcast(&pace->changed);
}

void pace_stop(struct pace *pace) {
        pthread_mutex_lock(&pace->lock);
        pace->is_stopped = true;
        pthread_mutex_unlock(&pace->lock);
        pthread_cond_broadcast(&pace->changed);
}

uint64_t pace_charge(struct pace *pace, uint64_t now_ns, uint64_t spent_ns) {
        uint64_t milli = atomic_load_explicit(&pace->milli, memory_order_relaxed);

        if (milli == 0)
                return now_ns;
        if (pace->paid_at_ns + PACE_CREDIT_NS < now_ns)
                pace->paid_at_ns = now_ns - PACE_CREDIT_NS;
        pace->paid_at_ns += spent_ns * 1000 / milli;
        return pace->paid_at_ns;
}

/* Returns how far the thread's clock advanced since the last call; 0 at the first call. */
static uint64_t clock_advance(uint64_t *clock_ns) {
        uint64_t before = *clock_ns;

        *clock_ns = clock_thread_ns();
        return before ? *clock_ns - before : 0;
}

bool pace_is_set(const struct pace *pace) {
        return atomic_load_explicit(&pace->milli, memory_order_relaxed) > 0;
}

void pace_rest(struct pace *pace, uint64_t *clock_ns, uint64_t others_ns) {
        uint64_t spent_ns, until_ns;
        uint32_t n_set;

        if (!pace_is_set(pace)) {
                *clock_ns = 0; /* without a ceiling, used time does not count as debt */
                return;
        }
        spent_ns = clock_advance(clock_ns) + others_ns;
        pthread_mutex_lock(&pace->lock);
        n_set = pace->n_set;
        until_ns = pace_charge(pace, clock_now_ns(), spent_ns);
        while (!pace->is_stopped && pace->n_set == n_set && clock_now_ns() < until_ns)
                thread_wait_until(&pace->changed, &pace->lock, until_ns);
        pthread_mutex_unlock(&pace->lock);
}
