/* cuda/memory.c: the calls that allocate and free device memory, and tell what a pointer is. */
#include <string.h>

#include "tests/cuda/inside.h"

static int allocate(struct context *context, uint64_t *ret_pointer, size_t n_bytes) {
        struct block *block;
        int r;

        if (!ret_pointer)
                return CUDA_ERROR_INVALID_VALUE;
        r = block_new(context, n_bytes, &block);
        if (r == CUDA_SUCCESS)
                *ret_pointer = block->at;
        return r;
}

int cuMemAlloc_v2(uint64_t *ret_pointer, size_t n_bytes) {
        ENTER(cuMemAlloc);

        return allocate(entered.context, ret_pointer, n_bytes);
}

/* The memory may be used by work that comes later in the same stream; here it is there at once. */
int cuMemAllocAsync(uint64_t *ret_pointer, size_t n_bytes, void *stream) {
        ENTER(cuMemAllocAsync);

        if (!stream_find(&entered, stream))
                return CUDA_ERROR_INVALID_HANDLE;
        return allocate(entered.context, ret_pointer, n_bytes);
}

/* The block that begins there and may be freed. */
static struct block *freeable(const struct entered *entered, uint64_t pointer) {
        struct block *block = block_holding(pointer, 1);

        if (!block || block->at != pointer || block->freeing) {
                violation("%s: there is no allocation at %#lx, or it was freed before", entered->name,
                          (unsigned long)pointer);
                return NULL;
        }
        return block;
}

/* Waits for all that is queued in the context, for it may use the memory. */
int cuMemFree_v2(uint64_t pointer) {
        ENTER(cuMemFree);
        struct block *block = freeable(&entered, pointer);

        if (!block)
                return CUDA_ERROR_INVALID_VALUE;
        block->freeing = true;
        context_drain(block->context);
        block_free(block);
        return call_settled();
}

static void run_free(struct stream *stream, void *argument, bool executes) {
        struct block *const *block = argument;

        pthread_mutex_lock(&the_lock);
        block_free(*block);
        pthread_mutex_unlock(&the_lock);
}

/* Freed in the stream's order: work of other streams is the caller's to order. */
int cuMemFreeAsync(uint64_t pointer, void *stream) {
        ENTER(cuMemFreeAsync);
        struct stream *found = stream_find(&entered, stream);
        struct block *block = found ? freeable(&entered, pointer) : NULL;
        struct block **argument;

        if (!block)
                return found ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
        block->freeing = true;
        argument = must_alloc(sizeof(*argument));
        *argument = block;
        stream_push(found, run_free, argument, (struct moment){});
        return CUDA_SUCCESS;
}

/* With unified addressing a host pointer of pinned memory is its device pointer too. Memory that the driver does not
 * know, and an attribute that a kind of memory lacks, are an invalid value. */
int cuPointerGetAttribute(void *ret_value, int attribute, uint64_t pointer) {
        ENTER(cuPointerGetAttribute);
        const struct block *block = block_holding(pointer, 1);
        bool overlaps;
        const struct pinned *pinned = block ? NULL : pinned_holding(pointer, 1, &overlaps);
        const struct context *context = block ? block->context : pinned ? pinned->context : NULL;
        uint64_t start = block ? block->at : pinned ? pinned->at : 0;
        size_t n_bytes = block ? block->n_bytes : pinned ? pinned->n_bytes : 0;
        unsigned type = block ? CUDA_MEMORY_DEVICE : CUDA_MEMORY_HOST;

        if (!ret_value || !context)
                return CUDA_ERROR_INVALID_VALUE;
        switch (attribute) {
        case CUDA_POINTER_CONTEXT:
                memcpy(ret_value, &context->object.handle, sizeof(context->object.handle));
                return CUDA_SUCCESS;
        case CUDA_POINTER_MEMORY_TYPE:
                memcpy(ret_value, &type, sizeof(type));
                return CUDA_SUCCESS;
        case CUDA_POINTER_HOST_POINTER:
                if (block)
                        return CUDA_ERROR_INVALID_VALUE;
                memcpy(ret_value, &pointer, sizeof(pointer));
                return CUDA_SUCCESS;
        case CUDA_POINTER_DEVICE_POINTER:
                memcpy(ret_value, &pointer, sizeof(pointer));
                return CUDA_SUCCESS;
        case CUDA_POINTER_DEVICE_ORDINAL:
                memcpy(ret_value, &context->device, sizeof(context->device));
                return CUDA_SUCCESS;
        case CUDA_POINTER_RANGE_START:
                memcpy(ret_value, &start, sizeof(start));
                return CUDA_SUCCESS;
        case CUDA_POINTER_RANGE_SIZE:
                memcpy(ret_value, &n_bytes, sizeof(n_bytes));
                return CUDA_SUCCESS;
        default:
                return CUDA_ERROR_INVALID_VALUE;
        }
}
