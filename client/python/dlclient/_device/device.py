"""One rank's device: struct dlc_cuda. It belongs to the rank's handle, which closes it before the loader itself."""
from __future__ import annotations

import collections
import ctypes
import functools
import logging
import threading
import warnings
from typing import Any, Deque, Optional, Tuple

from .. import _library
from .._errors import LoaderWarning
from .._lease import Handle
from .._opening import stack_level
from .library import (AllocateFunction, CudaInfo, CudaLibrary, CudaOptions, FreeFunction, called_by_library,
                      device_error_of)
from .memory import Memory

log = logging.getLogger("dlclient")

# What a thread that is not Python's was the last to hold. Such a thread, which may run a deleter of DLPack, must not
# call CUDA: one of ours does, the next time it comes by.
_left: Deque[Tuple[Any, int, int]] = collections.deque()


def close_left() -> None:
    """Closes what other threads have left."""
    while _left:
        device, pointer, loader = _left.popleft()
        device.close_both(pointer, loader)


class Device:
    """Opens it; the handle refers to it from then on, and not the other way round."""

    __slots__ = ("library", "pointer", "memory", "index", "name", "_loaders", "_callbacks")

    def __init__(self, library: CudaLibrary, handle: Handle, index: int, memory: Memory) -> None:
        close_left()
        self.library = library
        self.pointer: Optional[int] = None
        self.memory = memory
        self._loaders = handle.library
        options = CudaOptions()
        options.size = ctypes.sizeof(options)
        options.device = memory.choose(index)
        options.n_batches = memory.n_batches
        if memory.allocates:
            allocations = memory.allocations()
            next(allocations)
            options.allocate = AllocateFunction(called_by_library(allocations.send, 5))
            options.free = FreeFunction(called_by_library(memory.freed.append, 3))
        self._callbacks = options  # the library calls them as long as it is open
        out = ctypes.c_void_p()
        try:
            result = library.open(handle.pointer, ctypes.byref(options), ctypes.byref(out))
        finally:
            self.pointer = out.value
            handle.device = self
        if result < 0:
            raise device_error_of(result, library.error_text())
        handle.ending = handle.ending_by(functools.partial(library.quick.release, self.pointer))
        info = CudaInfo()
        library.get_info(self.pointer, ctypes.byref(info), ctypes.sizeof(info))
        self.index, self.name = int(info.device), _library.text_of(info.name)
        memory.begin(self.index)
        remark = _library.text_of(info.remark)
        log.info("batches go to cuda:%d, %s (%.1f GB of their memory registered)", self.index, self.name,
                 info.registered_bytes / 1e9)
        if remark:
            warnings.warn(f"each batch is waited for while it is copied to cuda:{self.index}: {remark}", LoaderWarning,
                          stacklevel=stack_level())

    def use(self, batch: int, stream: int) -> None:
        """dlc_cuda_use(). Any thread."""
        result = self.library.quick.use(self.pointer, batch, stream)
        if result < 0:
            raise device_error_of(result, self.library.error_text())

    def sample_error(self, batch: int, i: int) -> Any:
        return self.library.quick.sample_error(self.pointer, batch, i)

    def close(self) -> None:
        """Waits for the device's work with the library's own streams. Nothing holds a batch any more."""
        pointer, self.pointer = self.pointer, None
        if pointer:
            self.library.close(pointer)
            self.memory.settle()

    def close_both(self, pointer: Optional[int], loader: int) -> None:
        """This, and then the loader."""
        if pointer:
            self.library.quick.close(pointer)
            self.memory.settle()
        self._loaders.quick.close(loader)

    def leave(self, loader: int) -> None:
        """The handle dies: closes both, here or where it is allowed."""
        pointer, self.pointer = self.pointer, None
        if pointer and threading.get_ident() not in getattr(threading, "_active", ()):
            _left.append((self, pointer, loader))
            return
        self.close_both(pointer, loader)
