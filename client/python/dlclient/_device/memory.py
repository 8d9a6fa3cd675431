"""Who owns the memory on a device that batches are written to. Here: the library; its arrays hold their batch."""
from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any, List, Optional, Tuple

from .. import _library
from .._batches.form import Form
from .array import DeviceArray

if TYPE_CHECKING:
    from .source import DeviceSource

N_BATCHES = 4  # that a loop may hold, with memory on the device for each


class Memory:
    """The library's own."""

    owns = False     # True: arrays outlive their batch, which is released when it is handed out
    allocates = False  # True: allocate() and free() are called
    n_batches = N_BATCHES

    def __init__(self) -> None:
        self.index = 0  # of the device
        self.form: Optional[Form] = None  # of the loader, set when it is open
        self.trouble: Optional[BaseException] = None  # of a function that the library called

    def choose(self, index: int) -> int:
        """The device that `index` means, or ANY."""
        return index

    def begin(self, index: int) -> None:
        """The device is open."""
        self.index = index

    def stream(self) -> int:
        """The stream on which the program uses what comes next. The legacy default stream: streams that block, as those
        of CuPy and Numba do, are in order with it."""
        return 0

    def piece(self, source: DeviceSource, name: str, tensor: _library.Tensor, data: int, shape: Tuple[int, ...],
              strides: Tuple[int, ...]) -> Any:
        """A tensor, or a sample of one, as the program gets it."""
        return DeviceArray(source.lease, self.index, name, data, tensor.dtype, shape, strides)

    def moved(self, array: Any) -> Any:
        """A NumPy array of the program's own (targets=) where the others are."""
        return array

    def allocate(self, tensor: _library.Tensor, n_bytes: int) -> int:
        """Memory for a tensor of a coming batch: its address on the device."""
        raise NotImplementedError

    def free(self, pointer: int) -> None:
        """Nobody will get this batch."""
        raise NotImplementedError

    def delivered(self, source: DeviceSource) -> List[Any]:
        """The batch is the caller's from here on. Returns what still reads it: is_read() says when that is done."""
        return []

    def is_read(self, readers: List[Any]) -> bool:
        """Have they read all?"""
        return True

    def await_read(self, readers: List[Any]) -> None:
        """Waits until they have."""

    # -- called by the library

    def on_allocate(self, _: Optional[int], tensor: Any, n_bytes: int, __: Optional[int], ret_data: Any) -> int:
        """An exception must not pass through the library: it is raised when that has returned."""
        try:
            ret_data[0] = self.allocate(tensor.contents, n_bytes)
            return 0
        except BaseException as error:  # pylint: disable=broad-except
            self.trouble = error
            return -errno.ENOMEM

    def on_free(self, _: Optional[int], data: Optional[int], __: Optional[int]) -> None:
        try:
            self.free(data or 0)
        except BaseException as error:  # pylint: disable=broad-except
            self.trouble = error
