#include "daemon/data/growth.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "proto/base/clock.h"

/* What orders need of a block. */
struct block_want {
        uint64_t n_samples[2]; /* [is_ahead] */
        uint64_t since;        /* 0: nothing yet; smaller ones were asked for before */
};

struct growth {
        _Atomic uint32_t refs;
        _Atomic uint64_t n_samples;
        atomic_bool is_over; /* published after the last n_samples */

        pthread_mutex_t lock; /* guards what follows; listeners take their own lock under it */
        LIST_HEAD(, growth_listener) listeners;
        struct growth_report report;

        struct why failure; /* "": none */
        struct dlp_blocks blocks;
        _Atomic uint64_t *grown; /* of each block (blocks.grown); NULL: there are none */
        struct block_want *wants;
        uint64_t n_wants;
        uint32_t n_whole;
        uint64_t n_in_blocks;
        void (*wanted)(void *userdata);
        void *userdata;
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
        free(growth->grown);
        free(growth->wants);
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

/* ---- in blocks ------------------------------------------------------------------------------------------------- */

int growth_new_blocks(uint32_t n, uint32_t shift, void (*wanted)(void *userdata), void *userdata,
                      struct growth **ret_growth) {
        struct growth *growth;
        int r = growth_new(&growth);

        if (r < 0)
                return r;
        growth->grown = calloc(n, sizeof(*growth->grown));
        growth->wants = calloc(n, sizeof(*growth->wants));
        if (!growth->grown || !growth->wants) {
                growth_unref(growth);
                return -ENOMEM;
        }
        growth->blocks = (struct dlp_blocks){ .n = n, .shift = shift, .grown = growth->grown };
        growth->wanted = wanted;
        growth->userdata = userdata;
        *ret_growth = growth;
        return 0;
}

const struct dlp_blocks *growth_blocks(const struct growth *growth) {
        return growth->grown ? &growth->blocks : NULL;
}

void growth_set_block(struct growth *growth, uint32_t block, uint64_t n_samples, bool is_whole) {
        uint64_t n_before = atomic_load_explicit(&growth->grown[block], memory_order_relaxed) >> 1, n;
        bool is_over;

        atomic_store_explicit(&growth->grown[block], n_samples << 1 | is_whole, memory_order_release);
        pthread_mutex_lock(&growth->lock);
        n = growth->n_in_blocks += n_samples - n_before;
        growth->n_whole += is_whole;
        is_over = growth->n_whole == growth->blocks.n;
        growth->report.n_shards = growth->n_whole;
        pthread_mutex_unlock(&growth->lock);
        growth_publish(growth, n, is_over);
}

void growth_want_block(struct growth *growth, uint32_t block, uint64_t n_samples, bool is_ahead) {
        struct block_want *want = &growth->wants[block];
        bool is_whole;

        if (dlp_block_size(&growth->blocks, block, &is_whole) >= n_samples || is_whole)
                return;
        pthread_mutex_lock(&growth->lock);
        if (want->since == 0)
                want->since = ++growth->n_wants;
        if (n_samples > want->n_samples[is_ahead]) {
                want->n_samples[is_ahead] = n_samples;
                if (growth->wanted)
                        growth->wanted(growth->userdata);
        }
        pthread_mutex_unlock(&growth->lock);
}

/* With the lock. Does the block have less than is needed? */
static bool block_lacks(const struct growth *growth, uint32_t block, bool is_ahead) {
        bool is_whole;

        return dlp_block_size(&growth->blocks, block, &is_whole) < growth->wants[block].n_samples[is_ahead] &&
               !is_whole;
}

bool growth_wanted_block(struct growth *growth, const _Atomic uint64_t *taken, const size_t *numbers,
                         uint32_t *ret_block) {
        uint64_t first = UINT64_MAX;

        pthread_mutex_lock(&growth->lock);
        for (int is_ahead = 0; is_ahead < 2 && first == UINT64_MAX && !growth->failure.text[0]; is_ahead++)
                for (uint32_t b = 0; b < growth->blocks.n; b++) {
                        bool is_taken = atomic_load(&taken[numbers[b] / 64]) >> numbers[b] % 64 & 1;

                        if (!is_taken && growth->wants[b].since < first && block_lacks(growth, b, is_ahead)) {
                                first = growth->wants[b].since;
                                *ret_block = b;
                        }
                }
        pthread_mutex_unlock(&growth->lock);
        return first < UINT64_MAX;
}

void growth_fail(struct growth *growth, const struct why *why) {
        pthread_mutex_lock(&growth->lock);
        if (!growth->failure.text[0])
                growth->failure = growth->report.trouble = *why;
        pthread_mutex_unlock(&growth->lock);
        growth_publish(growth, growth_n_samples(growth, NULL), false);
}

bool growth_has_failed(struct growth *growth, struct why *ret_why) {
        bool has_failed;

        pthread_mutex_lock(&growth->lock);
        has_failed = growth->failure.text[0] != '\0';
        if (ret_why)
                *ret_why = growth->failure;
        pthread_mutex_unlock(&growth->lock);
        return has_failed;
}

void growth_set_silent(struct growth *growth, const struct why *why) {
        static const struct why NOTHING = { "" };

        pthread_mutex_lock(&growth->lock);
        growth->report.waiting = why ? *why : NOTHING;
        if (!why || growth->report.silent_ns == 0)
                growth->report.silent_ns = why ? clock_now_ns() : 0;
        pthread_mutex_unlock(&growth->lock);
}

uint64_t growth_silent_ns(struct growth *growth, struct why *ret_why) {
        uint64_t silent_ns;

        pthread_mutex_lock(&growth->lock);
        silent_ns = growth->report.silent_ns;
        if (silent_ns != 0)
                *ret_why = growth->report.waiting;
        pthread_mutex_unlock(&growth->lock);
        return silent_ns;
}

void growth_leave_blocks(struct growth *growth) {
        pthread_mutex_lock(&growth->lock);
        growth->wanted = NULL;
        pthread_mutex_unlock(&growth->lock);
}
