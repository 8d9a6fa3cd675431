/* cuda/calls.h: the calls that the stand-in for CUDA's driver knows, one row each.
 *
 *     X(name that is asked for, symbol that is exported, what must be there before, version that brought the symbol)
 *
 * The names are those that cuGetProcAddress() takes: without "_v2". A client that asks for "cuMemAlloc_v2" there gets
 * CUDA_ERROR_NOT_FOUND. What must be there:
 *
 *     NOTHING   works before cuInit(), after a fork and after a sticky error
 *     LOADED    works before cuInit()
 *     STARTED   cuInit()
 *     CURRENT   cuInit() and a current context */
#pragma once

#define CUDA_CALLS(X)                                                                                                  \
        X(cuGetProcAddress, cuGetProcAddress_v2, NOTHING, 12000)                                                       \
        X(cuGetErrorName, cuGetErrorName, NOTHING, 6000)                                                               \
        X(cuGetErrorString, cuGetErrorString, NOTHING, 6000)                                                           \
        X(cuDriverGetVersion, cuDriverGetVersion, NOTHING, 2020)                                                       \
        X(cuInit, cuInit, LOADED, 2000)                                                                                \
        X(cuDeviceGetCount, cuDeviceGetCount, STARTED, 2000)                                                           \
        X(cuDeviceGet, cuDeviceGet, STARTED, 2000)                                                                     \
        X(cuDeviceGetName, cuDeviceGetName, STARTED, 2000)                                                             \
        X(cuDeviceGetAttribute, cuDeviceGetAttribute, STARTED, 2000)                                                   \
        X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, STARTED, 4010)                                                     \
        X(cuDeviceGetUuid, cuDeviceGetUuid_v2, STARTED, 11040)                                                         \
        X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, STARTED, 7000)                                           \
        X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, STARTED, 11000)                                     \
        X(cuCtxPushCurrent, cuCtxPushCurrent_v2, STARTED, 4000)                                                        \
        X(cuCtxPopCurrent, cuCtxPopCurrent_v2, STARTED, 4000)                                                          \
        X(cuCtxGetCurrent, cuCtxGetCurrent, STARTED, 4000)                                                             \
        X(cuCtxSetCurrent, cuCtxSetCurrent, STARTED, 4000)                                                             \
        X(cuCtxGetDevice, cuCtxGetDevice, CURRENT, 2000)                                                               \
        X(cuCtxSynchronize, cuCtxSynchronize, CURRENT, 2000)                                                           \
        X(cuMemHostRegister, cuMemHostRegister_v2, CURRENT, 6050)                                                      \
        X(cuMemHostUnregister, cuMemHostUnregister, CURRENT, 4000)                                                     \
        X(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2, CURRENT, 3020)                                      \
        X(cuMemHostAlloc, cuMemHostAlloc, CURRENT, 2020)                                                               \
        X(cuMemFreeHost, cuMemFreeHost, CURRENT, 2000)                                                                 \
        X(cuMemAlloc, cuMemAlloc_v2, CURRENT, 3020)                                                                    \
        X(cuMemFree, cuMemFree_v2, CURRENT, 3020)                                                                      \
        X(cuMemAllocAsync, cuMemAllocAsync, CURRENT, 11020)                                                            \
        X(cuMemFreeAsync, cuMemFreeAsync, CURRENT, 11020)                                                              \
        X(cuPointerGetAttribute, cuPointerGetAttribute, CURRENT, 4000)                                                 \
        X(cuMemcpyHtoD, cuMemcpyHtoD_v2, CURRENT, 3020)                                                                \
        X(cuMemcpyDtoH, cuMemcpyDtoH_v2, CURRENT, 3020)                                                                \
        X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, CURRENT, 3020)                                                      \
        X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, CURRENT, 3020)                                                      \
        X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, CURRENT, 3020)                                                      \
        X(cuMemsetD8Async, cuMemsetD8Async, CURRENT, 3020)                                                             \
        X(cuStreamCreate, cuStreamCreate, CURRENT, 2000)                                                               \
        X(cuStreamCreateWithPriority, cuStreamCreateWithPriority, CURRENT, 5050)                                       \
        X(cuStreamDestroy, cuStreamDestroy_v2, CURRENT, 4000)                                                          \
        X(cuStreamSynchronize, cuStreamSynchronize, CURRENT, 2000)                                                     \
        X(cuStreamQuery, cuStreamQuery, CURRENT, 2000)                                                                 \
        X(cuStreamWaitEvent, cuStreamWaitEvent, CURRENT, 3020)                                                         \
        X(cuStreamGetCtx, cuStreamGetCtx, CURRENT, 9020)                                                               \
        X(cuEventCreate, cuEventCreate, CURRENT, 2000)                                                                 \
        X(cuEventRecord, cuEventRecord, CURRENT, 2000)                                                                 \
        X(cuEventQuery, cuEventQuery, CURRENT, 2000)                                                                   \
        X(cuEventSynchronize, cuEventSynchronize, CURRENT, 2000)                                                       \
        X(cuEventElapsedTime, cuEventElapsedTime, CURRENT, 2000)                                                       \
        X(cuEventDestroy, cuEventDestroy_v2, CURRENT, 4000)                                                            \
        X(cuModuleLoadData, cuModuleLoadData, CURRENT, 2000)                                                           \
        X(cuModuleLoadDataEx, cuModuleLoadDataEx, CURRENT, 2010)                                                       \
        X(cuModuleUnload, cuModuleUnload, CURRENT, 2000)                                                               \
        X(cuModuleGetFunction, cuModuleGetFunction, CURRENT, 2000)                                                     \
        X(cuLaunchKernel, cuLaunchKernel, CURRENT, 4000)                                                               \
        X(cuLaunchHostFunc, cuLaunchHostFunc, CURRENT, 10000)
