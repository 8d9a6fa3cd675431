"""The driver of the tests' own (tests/cuda/), for scripts that use the Python client with it: work on streams, and what
lies on the device. A script imports it; gpu.py says how it is found."""
import ctypes

import numpy

cuda = ctypes.CDLL("libcuda.so.1")
NON_BLOCKING = 1


def check(result):
    assert result == 0, f"CUDA: {result}"


def begin(index=0):
    """What a framework does when it starts: the device's context is retained and current."""
    context = ctypes.c_void_p()
    check(cuda.cuInit(0))
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), index))
    check(cuda.cuCtxSetCurrent(context))
    return context


def stream():
    number = ctypes.c_void_p()
    check(cuda.cuStreamCreate(ctypes.byref(number), NON_BLOCKING))
    return number.value


def event():
    number = ctypes.c_void_p()
    check(cuda.cuEventCreate(ctypes.byref(number), 2))
    return number.value


def allocate(n_bytes):
    pointer = ctypes.c_uint64()
    result = cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(n_bytes))
    if result == 2:
        raise MemoryError("CUDA_ERROR_OUT_OF_MEMORY")
    check(result)
    return pointer.value


def free(pointer):
    check(cuda.cuMemFree_v2(ctypes.c_uint64(pointer)))


def copy(to, source, n_bytes, on=0):
    """A program's work: queued, and executed late."""
    check(cuda.cuMemcpyDtoDAsync_v2(ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(n_bytes),
                                    ctypes.c_void_p(on)))


def wait(on=0):
    check(cuda.cuStreamSynchronize(ctypes.c_void_p(on)))


def read(pointer, n_bytes, on=0):
    memory = ctypes.create_string_buffer(n_bytes)
    check(cuda.cuMemcpyDtoHAsync_v2(memory, ctypes.c_uint64(pointer), ctypes.c_size_t(n_bytes), ctypes.c_void_p(on)))
    wait(on)
    return memory.raw


def values(array, on=0):
    """What an array with __cuda_array_interface__ holds, as NumPy's."""
    interface = array.__cuda_array_interface__
    dtype, shape = numpy.dtype(interface["typestr"]), interface["shape"]
    strides = interface["strides"] or numpy.empty(shape, dtype).strides
    if 0 in shape:
        return numpy.empty(shape, dtype)
    n_bytes = dtype.itemsize + sum((n - 1) * stride for n, stride in zip(shape, strides))
    return numpy.ndarray(shape, dtype, read(interface["data"][0], n_bytes, on), strides=strides).copy()


class Counts(ctypes.Structure):
    """The beginning of struct dlt_cuda_counts."""

    _fields_ = [(name, ctypes.c_uint64) for name in (
        "n_calls", "n_failed", "n_contexts", "n_streams", "n_events", "n_modules", "n_allocations", "bytes_allocated",
        "max_bytes_allocated", "n_host_allocations", "n_registrations", "bytes_registered", "max_bytes_registered",
        "n_left", "n_images", "n_launches", "n_copies_late", "n_copies_staged", "bytes_to_device", "bytes_to_host",
        "bytes_on_device", "n_violations")] + [("first_violation", ctypes.c_char * 200)]


def counts():
    found = Counts()
    cuda.dlt_cuda_counts(ctypes.byref(found))
    return found
