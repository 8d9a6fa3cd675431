/* cuda/contexts.c: the primary context of each device, and which one is current to a thread. */
#include <string.h>

#include "tests/cuda/inside.h"

#define MAX_DEPTH 16

static struct context *primary[MAX_DEVICES];

/* Each thread has a stack of contexts, and its top is current. */
static _Thread_local struct {
        struct context *stack[MAX_DEPTH];
        uint32_t n;
} current;

bool device_exists(int device) {
        return device >= 0 && device < the.settings.n_devices;
}

struct context *context_current(void) {
        return current.n > 0 ? current.stack[current.n - 1] : NULL;
}

void contexts_restart(void) {
        memset(primary, 0, sizeof(primary));
        memset(&current, 0, sizeof(current));
}

int cuDevicePrimaryCtxRetain(void **ret_context, int device) {
        ENTER(cuDevicePrimaryCtxRetain);

        if (!ret_context)
                return CUDA_ERROR_INVALID_VALUE;
        if (!device_exists(device))
                return CUDA_ERROR_INVALID_DEVICE;
        if (!primary[device]) {
                primary[device] = object_new(CONTEXT, sizeof(struct context), NULL);
                primary[device]->object.context = primary[device];
                primary[device]->device = device;
        }
        primary[device]->n_references++;
        *ret_context = primary[device]->object.handle;
        return CUDA_SUCCESS;
}

/* With the last reference all that was made in the context goes, also what the caller has forgotten. A context that is
 * retained afterwards is a new one. */
int cuDevicePrimaryCtxRelease_v2(int device) {
        ENTER(cuDevicePrimaryCtxRelease);
        struct context *context;

        if (!device_exists(device))
                return CUDA_ERROR_INVALID_DEVICE;
        context = primary[device];
        if (!context) {
                violation("cuDevicePrimaryCtxRelease: device %d has no context that is retained", device);
                return CUDA_ERROR_INVALID_CONTEXT;
        }
        if (--context->n_references > 0)
                return CUDA_SUCCESS;
        primary[device] = NULL;
        context_drain(context);
        streams_end(context);
        the.counts.n_left += objects_destroy(context) + blocks_free(context) + pinned_free(context);
        object_destroy(&context->object);
        return CUDA_SUCCESS;
}

static int push(struct context *context) {
        if (current.n == MAX_DEPTH)
                return CUDA_ERROR_UNKNOWN;
        current.stack[current.n++] = context;
        return CUDA_SUCCESS;
}

int cuCtxPushCurrent_v2(void *context) {
        ENTER(cuCtxPushCurrent);
        struct context *found = context ? object_find(entered.name, context, CONTEXT) : NULL;

        return found ? push(found) : CUDA_ERROR_INVALID_CONTEXT;
}

int cuCtxPopCurrent_v2(void **ret_context) {
        ENTER(cuCtxPopCurrent);

        if (!entered.context)
                return CUDA_ERROR_INVALID_CONTEXT;
        current.n--;
        if (ret_context)
                *ret_context = entered.context->object.handle;
        return CUDA_SUCCESS;
}

int cuCtxGetCurrent(void **ret_context) {
        ENTER(cuCtxGetCurrent);

        if (!ret_context)
                return CUDA_ERROR_INVALID_VALUE;
        *ret_context = entered.context ? entered.context->object.handle : NULL;
        return CUDA_SUCCESS;
}

/* Takes the place of the current one; NULL takes that one off. */
int cuCtxSetCurrent(void *context) {
        ENTER(cuCtxSetCurrent);
        struct context *found = context ? object_find(entered.name, context, CONTEXT) : NULL;

        if (context && !found)
                return CUDA_ERROR_INVALID_CONTEXT;
        if (current.n > 0)
                current.n--;
        return found ? push(found) : CUDA_SUCCESS;
}

int cuCtxGetDevice(int *ret_device) {
        ENTER(cuCtxGetDevice);

        if (!ret_device)
                return CUDA_ERROR_INVALID_VALUE;
        *ret_device = entered.context->device;
        return CUDA_SUCCESS;
}

int cuCtxSynchronize(void) {
        ENTER(cuCtxSynchronize);

        context_drain(entered.context);
        return call_settled();
}
