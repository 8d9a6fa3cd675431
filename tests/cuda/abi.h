/* cuda/abi.h: what the driver API looks like to a caller, declared for the tests.
 *
 * A device pointer is a uint64_t, a device and a result are an int, and every handle (context, stream, event, module,
 * function) is a pointer that nobody follows. All results are one of `enum cuda_result`. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CUDA_EXPORT __attribute__((visibility("default")))

enum cuda_result {
        CUDA_SUCCESS = 0,
        CUDA_ERROR_INVALID_VALUE = 1,
        CUDA_ERROR_OUT_OF_MEMORY = 2,
        CUDA_ERROR_NOT_INITIALIZED = 3,
        CUDA_ERROR_DEINITIALIZED = 4,
        CUDA_ERROR_NO_DEVICE = 100,
        CUDA_ERROR_INVALID_DEVICE = 101,
        CUDA_ERROR_INVALID_IMAGE = 200,
        CUDA_ERROR_INVALID_CONTEXT = 201,
        CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
        CUDA_ERROR_OPERATING_SYSTEM = 304,
        CUDA_ERROR_INVALID_HANDLE = 400,
        CUDA_ERROR_NOT_FOUND = 500,
        CUDA_ERROR_NOT_READY = 600,
        CUDA_ERROR_ILLEGAL_ADDRESS = 700,
        CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
        CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
        CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
        CUDA_ERROR_LAUNCH_FAILED = 719,
        CUDA_ERROR_NOT_PERMITTED = 800,
        CUDA_ERROR_NOT_SUPPORTED = 801,
        CUDA_ERROR_UNKNOWN = 999,
};

enum cuda_device_attribute {
        CUDA_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
        CUDA_ATTRIBUTE_INTEGRATED = 18,
        CUDA_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19,
        CUDA_ATTRIBUTE_PCI_BUS_ID = 33,
        CUDA_ATTRIBUTE_PCI_DEVICE_ID = 34,
        CUDA_ATTRIBUTE_ASYNC_ENGINE_COUNT = 40,
        CUDA_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
        CUDA_ATTRIBUTE_PCI_DOMAIN_ID = 50,
        CUDA_ATTRIBUTE_CAPABILITY_MAJOR = 75,
        CUDA_ATTRIBUTE_CAPABILITY_MINOR = 76,
        CUDA_ATTRIBUTE_CAN_USE_HOST_POINTER = 91,
        CUDA_ATTRIBUTE_HOST_REGISTER = 99,
        CUDA_ATTRIBUTE_READ_ONLY_HOST_REGISTER = 113,
        CUDA_ATTRIBUTE_MEMORY_POOLS = 115,
        CUDA_ATTRIBUTE_HOST_NUMA_ID = 134,
};

enum cuda_pointer_attribute {
        CUDA_POINTER_CONTEXT = 1,
        CUDA_POINTER_MEMORY_TYPE = 2,
        CUDA_POINTER_DEVICE_POINTER = 3,
        CUDA_POINTER_HOST_POINTER = 4,
        CUDA_POINTER_DEVICE_ORDINAL = 9,
        CUDA_POINTER_RANGE_START = 11,
        CUDA_POINTER_RANGE_SIZE = 12,
};

enum {
        CUDA_MEMORY_HOST = 1,
        CUDA_MEMORY_DEVICE = 2
};
enum {
        CUDA_STREAM_NON_BLOCKING = 1
};
enum {
        CUDA_EVENT_BLOCKING_SYNC = 1,
        CUDA_EVENT_DISABLE_TIMING = 2,
        CUDA_EVENT_INTERPROCESS = 4
};
enum {
        CUDA_HOST_PORTABLE = 1,
        CUDA_HOST_DEVICE_MAP = 2,
        CUDA_HOST_IO_MEMORY = 4,
        CUDA_HOST_READ_ONLY = 8
};
enum {
        CUDA_LOOKUP_DEFAULT = 0,
        CUDA_LOOKUP_LEGACY_STREAM = 1,
        CUDA_LOOKUP_PER_THREAD_STREAM = 2
};
enum {
        CUDA_LOOKUP_FOUND = 0,
        CUDA_LOOKUP_NO_SYMBOL = 1,
        CUDA_LOOKUP_VERSION_TOO_OLD = 2
};

/* Handles of the streams that need no creation. NULL is the legacy one too. */
#define CUDA_STREAM_LEGACY     ((void *)1)
#define CUDA_STREAM_PER_THREAD ((void *)2)

struct cuda_uuid {
        char bytes[16];
};

CUDA_EXPORT int cuGetProcAddress_v2(const char *name, void **ret_function, int version, uint64_t flags,
                                    int *ret_status);
CUDA_EXPORT int cuGetErrorName(int error, const char **ret_name);
CUDA_EXPORT int cuGetErrorString(int error, const char **ret_text);
CUDA_EXPORT int cuDriverGetVersion(int *ret_version);
CUDA_EXPORT int cuInit(unsigned flags);

CUDA_EXPORT int cuDeviceGetCount(int *ret_n);
CUDA_EXPORT int cuDeviceGet(int *ret_device, int ordinal);
CUDA_EXPORT int cuDeviceGetName(char *name, int n_bytes, int device);
CUDA_EXPORT int cuDeviceGetAttribute(int *ret_value, int attribute, int device);
CUDA_EXPORT int cuDeviceGetPCIBusId(char *id, int n_bytes, int device);
CUDA_EXPORT int cuDeviceGetUuid_v2(struct cuda_uuid *ret_uuid, int device);

CUDA_EXPORT int cuDevicePrimaryCtxRetain(void **ret_context, int device);
CUDA_EXPORT int cuDevicePrimaryCtxRelease_v2(int device);
CUDA_EXPORT int cuCtxPushCurrent_v2(void *context);
CUDA_EXPORT int cuCtxPopCurrent_v2(void **ret_context);
CUDA_EXPORT int cuCtxGetCurrent(void **ret_context);
CUDA_EXPORT int cuCtxSetCurrent(void *context);
CUDA_EXPORT int cuCtxGetDevice(int *ret_device);
CUDA_EXPORT int cuCtxSynchronize(void);

CUDA_EXPORT int cuMemHostRegister_v2(void *memory, size_t n_bytes, unsigned flags);
CUDA_EXPORT int cuMemHostUnregister(void *memory);
CUDA_EXPORT int cuMemHostGetDevicePointer_v2(uint64_t *ret_pointer, void *memory, unsigned flags);
CUDA_EXPORT int cuMemHostAlloc(void **ret_memory, size_t n_bytes, unsigned flags);
CUDA_EXPORT int cuMemFreeHost(void *memory);
CUDA_EXPORT int cuMemAlloc_v2(uint64_t *ret_pointer, size_t n_bytes);
CUDA_EXPORT int cuMemFree_v2(uint64_t pointer);
CUDA_EXPORT int cuMemAllocAsync(uint64_t *ret_pointer, size_t n_bytes, void *stream);
CUDA_EXPORT int cuMemFreeAsync(uint64_t pointer, void *stream);
CUDA_EXPORT int cuPointerGetAttribute(void *ret_value, int attribute, uint64_t pointer);

CUDA_EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t n_bytes);
CUDA_EXPORT int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t n_bytes);
CUDA_EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n_bytes, void *stream);
CUDA_EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n_bytes, void *stream);
CUDA_EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n_bytes, void *stream);
CUDA_EXPORT int cuMemsetD8Async(uint64_t to, unsigned char value, size_t n_bytes, void *stream);

CUDA_EXPORT int cuStreamCreate(void **ret_stream, unsigned flags);
CUDA_EXPORT int cuStreamCreateWithPriority(void **ret_stream, unsigned flags, int priority);
CUDA_EXPORT int cuStreamDestroy_v2(void *stream);
CUDA_EXPORT int cuStreamSynchronize(void *stream);
CUDA_EXPORT int cuStreamQuery(void *stream);
CUDA_EXPORT int cuStreamWaitEvent(void *stream, void *event, unsigned flags);
CUDA_EXPORT int cuStreamGetCtx(void *stream, void **ret_context);
CUDA_EXPORT int cuEventCreate(void **ret_event, unsigned flags);
CUDA_EXPORT int cuEventRecord(void *event, void *stream);
CUDA_EXPORT int cuEventQuery(void *event);
CUDA_EXPORT int cuEventSynchronize(void *event);
CUDA_EXPORT int cuEventElapsedTime(float *ret_ms, void *begin, void *end);
CUDA_EXPORT int cuEventDestroy_v2(void *event);

CUDA_EXPORT int cuModuleLoadData(void **ret_module, const void *image);
CUDA_EXPORT int cuModuleLoadDataEx(void **ret_module, const void *image, unsigned n_options, int *options,
                                   void **values);
CUDA_EXPORT int cuModuleUnload(void *module);
CUDA_EXPORT int cuModuleGetFunction(void **ret_function, void *module, const char *name);
CUDA_EXPORT int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                               unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **params,
                               void **extra);
CUDA_EXPORT int cuLaunchHostFunc(void *stream, void (*function)(void *), void *argument);
