/* tests/support/fair.h: taking from a fair queue that no other thread uses, without waiting. */
#pragma once

#include "daemon/base/threads/fair_queue.h"

/* The next item, of the thread if it is not NULL; NULL if there is none. Not after stop. */
static inline struct fair_item *fair_next(struct fair_queue *queue, struct fair_thread *thread) {
        return TAILQ_EMPTY(&queue->all.below) ? NULL : fair_queue_pop(queue, thread);
}
