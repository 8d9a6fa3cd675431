#include "daemon/base/work_queue.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

int work_queue_init(struct work_queue *queue, uint32_t capacity) {
        void **items;

        assert(capacity > 0);

        items = calloc(capacity, sizeof(*items));
        if (!items)
                return -ENOMEM;

        *queue = (struct work_queue){ .items = items, .capacity = capacity };
        pthread_mutex_init(&queue->lock, NULL);
        pthread_cond_init(&queue->filled, NULL);
        return 0;
}

void work_queue_fini(struct work_queue *queue) {
        if (!queue->items)
                return;

        pthread_cond_destroy(&queue->filled);
        pthread_mutex_destroy(&queue->lock);
        free(queue->items);
        queue->items = NULL;
}

void work_queue_push(struct work_queue *queue, void *item) {
        bool somebody_sleeps;

        assert(item);

        pthread_mutex_lock(&queue->lock);
        assert(queue->n_items < queue->capacity);
        queue->items[((uint64_t)queue->idx_first + queue->n_items) % queue->capacity] = item;
        queue->n_items++;
        somebody_sleeps = queue->n_waiting > 0;
        pthread_mutex_unlock(&queue->lock);

        /* Outside the lock, or the woken thread's first act would be to wait for it. */
        if (somebody_sleeps)
                pthread_cond_signal(&queue->filled);
}

static void *take_locked(struct work_queue *queue) {
        void *item;

        if (queue->n_items == 0)
                return NULL;

        item = queue->items[queue->idx_first];
        queue->idx_first = (queue->idx_first + 1) % queue->capacity;
        queue->n_items--;
        return item;
}

void *work_queue_pop(struct work_queue *queue) {
        void *item = NULL;

        pthread_mutex_lock(&queue->lock);
        while (queue->n_items == 0 && !queue->is_stopped) {
                queue->n_waiting++;
                pthread_cond_wait(&queue->filled, &queue->lock);
                queue->n_waiting--;
        }
        if (!queue->is_stopped)
                item = take_locked(queue);
        pthread_mutex_unlock(&queue->lock);
        return item;
}

void *work_queue_pop_nowait(struct work_queue *queue) {
        void *item;

        pthread_mutex_lock(&queue->lock);
        item = take_locked(queue);
        pthread_mutex_unlock(&queue->lock);
        return item;
}

void work_queue_stop(struct work_queue *queue) {
        pthread_mutex_lock(&queue->lock);
        queue->is_stopped = true;
        pthread_mutex_unlock(&queue->lock);
        pthread_cond_broadcast(&queue->filled);
}
