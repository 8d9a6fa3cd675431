/* cuda/events.c: an event is a place in a stream's work, taken again by each record. */
#include "proto/base/clock.h"
#include "tests/cuda/inside.h"

int cuEventCreate(void **ret_event, unsigned flags) {
        ENTER(cuEventCreate);
        struct event *event;

        if (!ret_event || flags > (CUDA_EVENT_BLOCKING_SYNC | CUDA_EVENT_DISABLE_TIMING | CUDA_EVENT_INTERPROCESS) ||
            ((flags & CUDA_EVENT_INTERPROCESS) && !(flags & CUDA_EVENT_DISABLE_TIMING)))
                return CUDA_ERROR_INVALID_VALUE;
        event = object_new(EVENT, sizeof(*event), entered.context);
        event->is_timed = !(flags & CUDA_EVENT_DISABLE_TIMING);
        *ret_event = event->object.handle;
        return CUDA_SUCCESS;
}

static void note_time(struct stream *stream, void *argument, bool executes) {
        struct event **event = argument; /* events stay in memory, see struct object */

        (*event)->at_ns = clock_now_ns();
}

/* Event and stream must be of one context. */
int cuEventRecord(void *event, void *stream) {
        ENTER(cuEventRecord);
        struct event *found = object_find(entered.name, event, EVENT);
        struct stream *in = stream_find(&entered, stream);

        if (!found || !in || found->object.context != in->object.context)
                return CUDA_ERROR_INVALID_HANDLE;
        if (found->is_timed) {
                struct event **argument = must_alloc(sizeof(*argument));

                *argument = found;
                found->recorded = stream_push(in, note_time, argument, (struct moment){});
        } else {
                found->recorded = stream_push(in, NULL, NULL, (struct moment){});
        }
        return CUDA_SUCCESS;
}

/* An event that was never recorded counts as complete. */
int cuEventQuery(void *event) {
        ENTER(cuEventQuery);
        struct event *found = object_find(entered.name, event, EVENT);

        if (!found)
                return CUDA_ERROR_INVALID_HANDLE;
        return moment_passed(found->recorded) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

int cuEventSynchronize(void *event) {
        ENTER(cuEventSynchronize);
        struct event *found = object_find(entered.name, event, EVENT);

        if (!found)
                return CUDA_ERROR_INVALID_HANDLE;
        moment_wait(found->recorded);
        return call_settled();
}

/* Only between events that were made for it and have been recorded. */
int cuEventElapsedTime(float *ret_ms, void *begin, void *end) {
        ENTER(cuEventElapsedTime);
        struct event *first = object_find(entered.name, begin, EVENT), *last = object_find(entered.name, end, EVENT);

        if (!first || !last || !first->is_timed || !last->is_timed || !first->recorded.stream || !last->recorded.stream)
                return CUDA_ERROR_INVALID_HANDLE;
        if (!ret_ms)
                return CUDA_ERROR_INVALID_VALUE;
        if (!moment_passed(first->recorded) || !moment_passed(last->recorded))
                return CUDA_ERROR_NOT_READY;
        *ret_ms = (float)((double)(int64_t)(last->at_ns - first->at_ns) / 1e6);
        return CUDA_SUCCESS;
}

/* Also while the event is still to come: the call does not wait for it, and streams that were told to wait for it do.
 * A client that has lost its mark of when memory is free is caught where it uses that memory. */
int cuEventDestroy_v2(void *event) {
        ENTER(cuEventDestroy);
        struct event *found = object_find(entered.name, event, EVENT);

        if (!found)
                return CUDA_ERROR_INVALID_HANDLE;
        object_destroy(&found->object);
        return CUDA_SUCCESS;
}
