"""Who owns the memory on a device that batches are written to. Here: the library; its arrays hold their batch."""
from __future__ import annotations

import collections
import errno
from typing import TYPE_CHECKING, Any, Deque, Generator, List, Optional, Tuple

from .. import _library
from .._batches.form import Form
from .array import DeviceArray

if TYPE_CHECKING:
    from .device_source import DeviceSource

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
        self.freed: Deque[Tuple[Any, ...]] = collections.deque()  # the arguments of each dlc_cuda_free_fn

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

    def moved(self, name: str, array: Any) -> Any:
        """A NumPy array of the program's own (targets=), as the field of this name where the others are."""
        return array

    def allocate(self, tensor: _library.Tensor, n_bytes: int, ret_data: Any) -> None:
        """Memory for a tensor of a coming batch: its address on the device."""
        raise NotImplementedError

    def free(self, pointer: int) -> None:
        """Nobody will get this batch."""
        raise NotImplementedError

    def settle(self) -> None:
        """After a call of the library: lets go of what that gave back."""
        while self.freed:
            self.free(self.freed[0][1] or 0)
            self.freed.popleft()

    def ready(self, source: DeviceSource) -> List[Any]:
        """All fields of a batch are made, and it is about to be handed out. Returns what still reads it: is_read() says
        when that is done."""
        return []

    def drop(self, source: DeviceSource) -> List[Any]:
        """Instead of ready(): nobody will get this batch, which the library has handed out."""
        return []

    def delivered(self) -> None:
        """That batch is the caller's. Doing it again changes nothing."""

    def is_read(self, readers: List[Any]) -> bool:
        """Have they read all?"""
        return True

    def await_read(self, readers: List[Any]) -> None:
        """Waits until they have."""

    # -- called by the library, which no exception may pass through: it is raised when that has returned

    def allocations(self) -> Generator[int, Tuple[Any, ...], None]:
        """Takes the arguments of each dlc_cuda_allocate_fn and gives its result; see called_by_library()."""
        result = 0
        while True:
            try:
                yield from self._allocate_all(result)
            except GeneratorExit:
                return
            except BaseException as error:  # pylint: disable=broad-except
                self.trouble, result = error, -errno.ENOMEM

    def _allocate_all(self, result: int) -> Generator[int, Tuple[Any, ...], None]:
        """A generator of its own: Python looks for signals at the end of a loop's body too, which counts as within a
        `try` around the loop in some of its versions and in others not."""
        while True:
            _, tensor, n_bytes, _, ret_data = yield result
            self.allocate(tensor.contents, n_bytes, ret_data)
            result = 0
