/* cuda/events.c: an event is a place in a stream's work, taken again by each record. */
#include "tests/cuda/inside.h"

int cuEventCreate(void **ret_event, unsigned flags) {
        ENTER(cuEventCreate);
        struct event *event;

        if (!ret_event || flags > (CUDA_EVENT_BLOCKING_SYNC | CUDA_EVENT_DISABLE_TIMING | CUDA_EVENT_INTERPROCESS) ||
            ((flags & CUDA_EVENT_INTERPROCESS) && !(flags & CUDA_EVENT_DISABLE_TIMING)))
                return CUDA_ERROR_INVALID_VALUE;
        event = object_new(EVENT, sizeof(*event), entered.context);
        *ret_event = event->object.handle;
        return CUDA_SUCCESS;
}

/* Event and stream must be of one context. */
int cuEventRecord(void *event, void *stream) {
        ENTER(cuEventRecord);
        struct event *found = object_find(entered.name, event, EVENT);
        struct stream *in = stream_find(&entered, stream);

        if (!found || !in || found->object.context != in->object.context)
                return CUDA_ERROR_INVALID_HANDLE;
        found->recorded = stream_push(in, NULL, NULL, (struct moment){});
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
