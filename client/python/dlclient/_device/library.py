"""libdlclient-cuda.so.0 through ctypes. The structs mirror dlclient-cuda.h; tests/integration/test_python.py compares
every offset. Functions come twice, as those of _library."""
from __future__ import annotations

import ctypes
import errno
import functools
import os
import threading
from typing import Any, Callable, List, Optional, Tuple

from .. import _library
from .._errors import DeviceFailed, DeviceMemoryFull, DeviceNotFound, Error, LibraryNotFound, VersionMismatch, error_of
from .._version import __version__

SONAME = "libdlclient-cuda.so.0"
BUS_ID_MAX = 17

AllocateFunction = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_library.Tensor), ctypes.c_size_t,
                                    ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
FreeFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def called_by_library(function: Callable[[Tuple[Any, ...]], Any], n_arguments: int) -> Callable[..., Any]:
    """For ctypes: calls a function of C (a method of a built-in type) with a tuple of the arguments, by way of C alone.

    Python runs signal handlers at the first instruction of a function of Python, outside of its `try`, and ctypes can
    only print the exception of one that raises, such as Ctrl-C's. A generator that is resumed is within its `try`."""
    call: Any = ctypes.pythonapi["PyObject_CallFunction"]
    call.restype = ctypes.py_object
    call.argtypes = [ctypes.py_object, ctypes.c_char_p] + [ctypes.py_object] * n_arguments
    return functools.partial(call, function, b"((" + b"O" * n_arguments + b"))")


class CudaOptions(ctypes.Structure):
    """struct dlc_cuda_options"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("device", ctypes.c_int),
        ("n_batches", ctypes.c_int),
        ("allocate", AllocateFunction),
        ("free", FreeFunction),
        ("userdata", ctypes.c_void_p),
    ]


class CudaBatch(ctypes.Structure):
    """struct dlc_cuda_batch"""

    _fields_ = [("batch", _library.Batch), ("host_tensors", ctypes.c_uint64)]


class CudaInfo(ctypes.Structure):
    """struct dlc_cuda_info"""

    _fields_ = [
        ("device", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("bus_id", ctypes.c_char_p),
        ("driver_version", ctypes.c_int),
        ("registered_bytes", ctypes.c_uint64),
        ("remark", ctypes.c_char_p),
        ("n_copied", ctypes.c_uint64),
        ("copied_bytes", ctypes.c_uint64),
        ("n_ahead", ctypes.c_uint64),
    ]


_CUDA = ctypes.c_void_p
_BATCH = ctypes.c_void_p
_STREAM = ctypes.c_void_p
_OUT = ctypes.POINTER(ctypes.c_void_p)

# name, result, arguments
_FUNCTIONS: List[Tuple[str, Any, List[Any]]] = [
    ("dlc_cuda_get_bus_id", ctypes.c_int, [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]),
    ("dlc_cuda_open", ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(CudaOptions), _OUT]),
    ("dlc_cuda_close", None, [_CUDA]),
    ("dlc_cuda_next", ctypes.c_int, [_CUDA, ctypes.c_int, _STREAM, _OUT]),
    ("dlc_cuda_use", ctypes.c_int, [_CUDA, _BATCH, _STREAM]),
    ("dlc_cuda_sample_error", ctypes.c_char_p, [_CUDA, _BATCH, ctypes.c_uint32]),
    ("dlc_cuda_set_epoch", ctypes.c_int, [_CUDA, ctypes.c_uint64]),
    ("dlc_cuda_seek", ctypes.c_int, [_CUDA, ctypes.c_uint64, ctypes.c_uint64]),
    ("dlc_cuda_get_info", ctypes.c_int, [_CUDA, ctypes.POINTER(CudaInfo), ctypes.c_size_t]),
    ("dlc_cuda_last_error", ctypes.c_char_p, []),
]


class CudaFunctions:
    """The library's functions under their names without dlc_cuda_, for one of the two ways of calling them."""

    get_bus_id: Any
    open: Any
    close: Any
    next: Any
    use: Any
    sample_error: Any
    set_epoch: Any
    seek: Any
    get_info: Any
    last_error: Any
    release: Any  # (cuda, batch) for the legacy default stream, with which all streams that block are in order

    def __init__(self, library: ctypes.CDLL, path: str) -> None:
        try:
            for name, result, arguments in _FUNCTIONS:
                function = library[name]
                function.restype = result
                function.argtypes = arguments
                setattr(self, name[len("dlc_cuda_"):], function)
            prototype = ctypes.PYFUNCTYPE(ctypes.c_int, _CUDA, _BATCH, _STREAM)
            self.release = prototype(("dlc_cuda_release", library), ((1, "cuda"), (1, "batch"), (1, "stream", None)))
        except AttributeError as error:
            raise VersionMismatch(f"{path} is older than this package, dlclient {__version__} ({error}): install the "
                                  f"library of the same version") from None


class CudaLibrary(CudaFunctions):
    """The loaded library. Its calls drop the interpreter's lock; those of `quick` keep it."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(ctypes.CDLL(path), path)
        self.quick = CudaFunctions(ctypes.PyDLL(path), path)

    def bus_id(self, index: int) -> str:
        """Where a device is; finds out whether there is one. It opens no context."""
        text = ctypes.create_string_buffer(BUS_ID_MAX)
        result = self.get_bus_id(index, text, BUS_ID_MAX)
        if result < 0:
            raise device_error_of(result, f"device: {self.error_text()}")
        return _library.text_of(text.value)

    def error_text(self) -> str:
        """The error text of this thread's last call."""
        return _library.text_of(self.quick.last_error())


_CLASSES = {errno.ENODEV: DeviceNotFound, errno.ENOMEM: DeviceMemoryFull, errno.EIO: DeviceFailed}


def device_error_of(result: int, text: str) -> Error:
    """As error_of(), for a result of this library."""
    kind = _CLASSES.get(-result)
    return kind(text, -result) if kind is not None else error_of(result, text)


_lock = threading.Lock()
_loaded: Optional[CudaLibrary] = None


def load() -> CudaLibrary:
    """The library, loaded once a process, from the folder of libdlclient.so.0 or where the system looks."""
    global _loaded
    with _lock:
        if _loaded is None:
            _loaded = _find()
        return _loaded


def _find() -> CudaLibrary:
    refusals = []
    folder = os.path.dirname(_library.load().path)
    for path in ([os.path.join(folder, SONAME)] if folder else []) + [SONAME]:
        if os.path.isabs(path) and not os.path.exists(path):
            continue
        try:
            return CudaLibrary(path)
        except OSError as error:
            refusals.append(f"{path} ({error})")
    raise LibraryNotFound(f"device: libdlclient-cuda cannot be loaded; tried {', '.join(refusals)}. Install "
                          f"dataloaderd's wheel or the package libdlclient-cuda0, or leave device= out for batches in "
                          f"the CPU's memory")
