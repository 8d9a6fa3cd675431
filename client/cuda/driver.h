/* cuda/driver.h: the functions of NVIDIA's driver that we call, found at run time.
 *
 * libcuda.so.1 comes with the driver and exists only where one is installed, so nothing is linked to it: a program
 * without a GPU starts, and learns why it has none. Names are asked for with the suffix of the version whose arguments
 * are declared here (cuMemAlloc_v2): a driver keeps them for ever, and 64-bit drivers have had these since 2012.
 *
 * The driver's interface and not the runtime's: a runtime call that fails leaves an error, which the next caller, such
 * as torch, reports as its own. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/base/why.h"

typedef int cu_result; /* 0: success */
typedef int cu_device;
typedef uint64_t cu_pointer; /* into device memory */
typedef struct CUctx_st *cu_context;
typedef struct CUstream_st *cu_stream; /* NULL: the legacy default stream */
typedef struct CUevent_st *cu_event;
typedef struct CUmod_st *cu_module;
typedef struct CUfunc_st *cu_function;

enum {
        CU_SUCCESS = 0,
        CU_INVALID_VALUE = 1,
        CU_OUT_OF_MEMORY = 2,
        CU_NOT_INITIALIZED = 3,
        CU_DEINITIALIZED = 4, /* the process is ending */
        CU_NO_DEVICE = 100,
        CU_INVALID_DEVICE = 101,
        CU_NO_BINARY_FOR_GPU = 209,
        CU_NOT_READY = 600,
};

enum {
        CU_ATTRIBUTE_MULTIPROCESSORS = 16,
        CU_STREAM_NON_BLOCKING = 1,
        CU_EVENT_DISABLE_TIMING = 2,
        CU_HOST_REGISTER_PORTABLE = 1,
};

/* A row for each function: how we call it, its name in the library, result and arguments. */
#define CU_FUNCTIONS(F)                                                                                                \
        F(init, "cuInit", (unsigned flags))                                                                            \
        F(driver_version, "cuDriverGetVersion", (int *ret_version))                                                    \
        F(error_name, "cuGetErrorName", (cu_result result, const char **ret_name))                                     \
        F(error_string, "cuGetErrorString", (cu_result result, const char **ret_text))                                 \
        F(device_count, "cuDeviceGetCount", (int *ret_n))                                                              \
        F(device_get, "cuDeviceGet", (cu_device * ret_device, int ordinal))                                            \
        F(device_name, "cuDeviceGetName", (char *name, int size, cu_device device))                                    \
        F(device_bus_id, "cuDeviceGetPCIBusId", (char *text, int size, cu_device device))                              \
        F(device_attribute, "cuDeviceGetAttribute", (int *ret_value, int attribute, cu_device device))                 \
        F(context_retain, "cuDevicePrimaryCtxRetain", (cu_context * ret_context, cu_device device))                    \
        F(context_release, "cuDevicePrimaryCtxRelease_v2", (cu_device device))                                         \
        F(context_push, "cuCtxPushCurrent_v2", (cu_context context))                                                   \
        F(context_pop, "cuCtxPopCurrent_v2", (cu_context * ret_context))                                               \
        F(host_register, "cuMemHostRegister_v2", (void *base, size_t n_bytes, unsigned flags))                         \
        F(host_unregister, "cuMemHostUnregister", (void *base))                                                        \
        F(allocate, "cuMemAlloc_v2", (cu_pointer * ret_pointer, size_t n_bytes))                                       \
        F(release, "cuMemFree_v2", (cu_pointer pointer))                                                               \
        F(copy_in, "cuMemcpyHtoDAsync_v2", (cu_pointer to, const void *from, size_t n_bytes, cu_stream stream))        \
        F(copy_out, "cuMemcpyDtoHAsync_v2", (void *to, cu_pointer from, size_t n_bytes, cu_stream stream))             \
        F(copy_over, "cuMemcpyDtoDAsync_v2", (cu_pointer to, cu_pointer from, size_t n_bytes, cu_stream stream))       \
        F(stream_create, "cuStreamCreate", (cu_stream * ret_stream, unsigned flags))                                   \
        F(stream_destroy, "cuStreamDestroy_v2", (cu_stream stream))                                                    \
        F(stream_wait, "cuStreamWaitEvent", (cu_stream stream, cu_event event, unsigned flags))                        \
        F(stream_synchronize, "cuStreamSynchronize", (cu_stream stream))                                               \
        F(event_create, "cuEventCreate", (cu_event * ret_event, unsigned flags))                                       \
        F(event_record, "cuEventRecord", (cu_event event, cu_stream stream))                                           \
        F(event_query, "cuEventQuery", (cu_event event))                                                               \
        F(event_synchronize, "cuEventSynchronize", (cu_event event))                                                   \
        F(event_destroy, "cuEventDestroy_v2", (cu_event event))                                                        \
        F(module_load, "cuModuleLoadData", (cu_module * ret_module, const void *image))                                \
        F(module_unload, "cuModuleUnload", (cu_module module))                                                         \
        F(module_function, "cuModuleGetFunction", (cu_function * ret_function, cu_module module, const char *name))    \
        F(launch, "cuLaunchKernel",                                                                                    \
          (cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,                  \
           unsigned block_y, unsigned block_z, unsigned shared_bytes, cu_stream stream, void **parameters,             \
           void **extra))

#define CU_MEMBER(name, symbol, arguments) cu_result(*name) arguments;

struct driver {
        CU_FUNCTIONS(CU_MEMBER)
        int version; /* of CUDA, as the driver says: 12080 for 12.8 */
};

/* The driver of this process, found and initialised by the first call that succeeds; it stays until the process ends.
 * -ENODEV: there is none, it is too old, or it finds no device; the text says which, and what to do. -ECHILD: the
 * parent of this process has initialised it, and a driver cannot be used after a fork(). Any thread. */
int driver_find(const struct driver **ret_driver, struct why *why);

/* Writes what a failed call means: "CUDA: copying a batch to the device: an illegal memory access was encountered
 * (CUDA_ERROR_ILLEGAL_ADDRESS)". Returns -ENOMEM if the device's memory is used up, else -EIO; 0 for CU_SUCCESS. */
int driver_refuse(const struct driver *driver, cu_result result, const char *doing, struct why *why);
