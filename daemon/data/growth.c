#include "daemon/data/growth.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct growth {
        _Atomic uint32_t refs;
        _Atomic uint64_t n_samples;
        atomic_bool is_over; /* published after the last n_samples */

        pthread_mutex_t lock; /* guards what follows; listeners take their own lock under it */
        LIST_HEAD(, growth_listener) listeners;
        struct growth_report report;
};

int growth_new(struct growth **ret_growth) {
        struct growth *growth = calloc(1, sizeof(*growth));

        if (!growth)
                return -ENOMEM;
        atomic_init(&growth->refs, 1);
        pthread_mutex_init(&growth->lock, NULL);
        LIST_INIT(&growth->listeners);
        *ret_growth = growth;
        return 0;
}

struct growth *growth_ref(struct growth *growth) {
        atomic_fetch_add_explicit(&growth->refs, 1, memory_order_relaxed);
        return growth;
}

void growth_unref(struct growth *growth) {
        if (!growth || atomic_fetch_sub_explicit(&growth->refs, 1, memory_order_acq_rel) > 1)
                return;
        pthread_mutex_destroy(&growth->lock);
        free(growth);
}

uint64_t growth_n_samples(const struct growth *growth, bool *ret_is_over) {
        if (ret_is_over) /* first: after it the number does not change any more */
                *ret_is_over = atomic_load_explicit(&growth->is_over, memory_order_acquire);
        return atomic_load_explicit(&growth->n_samples, memory_order_acquire);
}

void growth_listen(struct growth *growth, struct growth_listener *listener) {
        pthread_mutex_lock(&growth->lock);
        LIST_INSERT_HEAD(&growth->listeners, listener, entry);
        pthread_mutex_unlock(&growth->lock);
}

void growth_leave(struct growth *growth, struct growth_listener *listener) {
        pthread_mutex_lock(&growth->lock);
        LIST_REMOVE(listener, entry);
        pthread_mutex_unlock(&growth->lock);
}

void growth_publish(struct growth *growth, uint64_t n_samples, bool is_over) {
        struct growth_listener *listener;

        atomic_store_explicit(&growth->n_samples, n_samples, memory_order_release);
        if (is_over)
                atomic_store_explicit(&growth->is_over, true, memory_order_release);
        pthread_mutex_lock(&growth->lock);
        LIST_FOREACH(listener, &growth->listeners, entry)
                listener->grown(listener);
        pthread_mutex_unlock(&growth->lock);
}

struct growth_report *growth_report_begin(struct growth *growth) {
        pthread_mutex_lock(&growth->lock);
        return &growth->report;
}

void growth_report_end(struct growth *growth) {
        pthread_mutex_unlock(&growth->lock);
}

void growth_report(struct growth *growth, struct growth_report *ret_report) {
        pthread_mutex_lock(&growth->lock);
        *ret_report = growth->report;
        pthread_mutex_unlock(&growth->lock);
        ret_report->n_samples = growth_n_samples(growth, &ret_report->is_over);
}
