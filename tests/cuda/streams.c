/* cuda/streams.c: the calls about streams. */
#include "tests/cuda/inside.h"

static int create(struct context *context, void **ret_stream, unsigned flags) {
        if (!ret_stream || flags > CUDA_STREAM_NON_BLOCKING)
                return CUDA_ERROR_INVALID_VALUE;
        *ret_stream = stream_new(context, flags != CUDA_STREAM_NON_BLOCKING)->object.handle;
        return CUDA_SUCCESS;
}

int cuStreamCreate(void **ret_stream, unsigned flags) {
        ENTER(cuStreamCreate);

        return create(entered.context, ret_stream, flags);
}

/* A priority out of the device's range is taken as the nearest one; here they all mean the same. */
int cuStreamCreateWithPriority(void **ret_stream, unsigned flags, int priority) {
        ENTER(cuStreamCreateWithPriority);

        return create(entered.context, ret_stream, flags);
}

/* Returns at once; what is queued is still executed. The special streams cannot be destroyed. */
int cuStreamDestroy_v2(void *stream) {
        ENTER(cuStreamDestroy);
        struct stream *found = object_find(entered.name, stream, STREAM);

        if (!found)
                return CUDA_ERROR_INVALID_HANDLE;
        object_destroy(&found->object);
        found->closing = true;
        pthread_cond_broadcast(&the_condition);
        return CUDA_SUCCESS;
}

int cuStreamSynchronize(void *stream) {
        ENTER(cuStreamSynchronize);
        struct stream *found = stream_find(&entered, stream);

        if (!found)
                return CUDA_ERROR_INVALID_HANDLE;
        moment_wait((struct moment){ found, found->n_queued });
        return call_settled();
}

int cuStreamQuery(void *stream) {
        ENTER(cuStreamQuery);
        struct stream *found = stream_find(&entered, stream);

        if (!found)
                return CUDA_ERROR_INVALID_HANDLE;
        return found->n_done == found->n_queued ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

/* Waits for the latest record of the event that was made before this call; of later ones it knows nothing, and an event
 * that was never recorded is not waited for. The two may be of different contexts. */
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
        ENTER(cuStreamWaitEvent);
        struct stream *found = stream_find(&entered, stream);
        struct event *awaited = object_find(entered.name, event, EVENT);

        if (!found || !awaited)
                return CUDA_ERROR_INVALID_HANDLE;
        if (flags != 0)
                return CUDA_ERROR_INVALID_VALUE;
        stream_push(found, NULL, NULL, awaited->recorded);
        return CUDA_SUCCESS;
}

int cuStreamGetCtx(void *stream, void **ret_context) {
        ENTER(cuStreamGetCtx);
        struct stream *found = stream_find(&entered, stream);

        if (!found || !ret_context)
                return ret_context ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
        *ret_context = found->object.context->object.handle;
        return CUDA_SUCCESS;
}

struct host_call {
        void (*function)(void *);
        void *argument;
};

/* Not called after an error of the context: whatever it was to release stays. */
static void run_host_call(struct stream *stream, void *argument, bool executes) {
        const struct host_call *call = argument;

        if (!executes)
                return;
        call_from_host_function(true);
        call->function(call->argument);
        call_from_host_function(false);
}

int cuLaunchHostFunc(void *stream, void (*function)(void *), void *argument) {
        ENTER(cuLaunchHostFunc);
        struct stream *found = stream_find(&entered, stream);
        struct host_call *call;

        if (!found || !function)
                return function ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
        call = must_alloc(sizeof(*call));
        *call = (struct host_call){ function, argument };
        stream_push(found, run_host_call, call, (struct moment){});
        return CUDA_SUCCESS;
}
