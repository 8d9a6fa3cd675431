"""A loader's devices: one for each of its ranks, and what receives the batches there."""
from __future__ import annotations

from typing import Any, Callable, List, Optional

from .._batches.batch import State
from .._batches.form import Form
from .._errors import OptionError
from .._lease import Handle
from . import library as _cuda
from .device import Device
from .memory import Memory
from .rank import DeviceRank
from .wish import ANY, DeviceWish


class Receivers:
    """Made before anything is attached: what cannot work is said first."""

    def __init__(self, wish: DeviceWish, framework: str, into: Any, copy: str) -> None:
        self._library = _cuda.load()
        self._indices = [ANY if index is None else index for index in wish.indices]
        if into is not None and len(self._indices) > 1:
            raise OptionError("into: with several ranks in a process, open a loader for each that is to have buffers")
        self._memories = [memory_of(framework, into, copy) for _ in self._indices]
        self._indices = [memory.choose(index) for memory, index in zip(self._memories, self._indices)]
        self.bus_ids = [self._library.bus_id(index) for index in self._indices]
        self.names: List[str] = []  # "cuda:0", of each rank

    def rank(self, i: int, handle: Handle, epoch: int, position: int, form: Form,
             state: Callable[[object], State]) -> DeviceRank:
        """Opens the device of the i-th rank."""
        self._memories[i].form = form
        device = Device(self._library, handle, self._indices[i], self._memories[i])
        self._indices[i] = device.index  # the same one, should the rank be attached again
        self.names[i:] = [f"cuda:{device.index}"]
        return DeviceRank(handle, device, epoch, position, form, state)


def memory_of(framework: str, into: Any, copy: str) -> Memory:
    """What receives the batches of one rank."""
    if into is not None and framework != "torch":
        raise OptionError("into: batches are written to tensors of the program's own with framework=\"torch\"")
    if framework == "torch":
        from .torch import TorchMemory
        return TorchMemory(into)
    if framework == "jax":
        from .jax import JaxMemory
        return JaxMemory()
    if framework == "tensorflow":
        raise OptionError("device: TensorFlow takes no memory of others on a stream of its own: open the loader with "
                          "framework=\"numpy\", and give batch[\"image\"].__dlpack__() to "
                          "tf.experimental.dlpack.from_dlpack(), or leave device= out")
    if copy == "all":
        raise OptionError("copy: True; arrays on a device that no framework owns cannot be copied here: open the "
                          "loader with framework=\"torch\" or \"jax\", whose arrays may be kept, or copy them with "
                          "CuPy")
    return Memory()


def receivers_of(device: object, n_ranks: int, framework: str, into: Any, copy: str) -> Optional[Receivers]:
    """The options device and into. None: batches stay in the CPU's memory."""
    wish = DeviceWish(device, n_ranks)
    if wish.is_cuda:
        return Receivers(wish, framework, into, copy)
    if into is not None:
        raise OptionError("into: batches are written to tensors of the program's own on a GPU: give device=\"cuda\" as "
                          "well")
    return None
