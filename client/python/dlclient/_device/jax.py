"""Batches in arrays of JAX's own. JAX takes memory of others by DLPack, but may let go of it while its own streams
still read it. So each field is copied once, on the device, to an array that is JAX's; the batch is held until JAX says
that the copy is ready. Such an array may be kept, and donated."""
from __future__ import annotations

import importlib
from typing import Any, List, Tuple

from .. import _library
from .._batches import convert as _convert
from .._errors import DeviceNotFound
from .array import DeviceArray
from .memory import Memory
from .device_source import DeviceSource


class JaxMemory(Memory):
    """JAX's."""

    owns = True

    def __init__(self) -> None:
        super().__init__()
        self._jnp = _convert.module("jax")
        self._made: List[Any] = []  # of the batch that is being handed out
        self._target: Any = None    # jax.Device

    def choose(self, index: int) -> int:
        try:
            self._theirs()
        except RuntimeError as error:
            raise DeviceNotFound(f"device: JAX finds no GPU here ({error}): install JAX for CUDA, or leave device= out "
                                 f"for batches in the CPU's memory") from error
        return index

    @staticmethod
    def _theirs() -> Any:
        return importlib.import_module("jax").local_devices(backend="gpu")

    def begin(self, index: int) -> None:
        super().begin(index)
        self._target = next((device for device in self._theirs()
                             if getattr(device, "local_hardware_id", device.id) == index), None)
        if self._target is None:
            raise DeviceNotFound(f"device: JAX does not use cuda:{index} in this process: name one that it uses")

    def piece(self, source: DeviceSource, name: str, tensor: _library.Tensor, data: int, shape: Tuple[int, ...],
              strides: Tuple[int, ...]) -> Any:
        theirs = self._jnp.from_dlpack(DeviceArray(source.lease, self.index, name, data, tensor.dtype, shape, strides))
        mine = self._jnp.array(theirs, copy=True)
        self._made.append(mine)
        return mine

    def moved(self, name: str, array: Any) -> Any:
        return importlib.import_module("jax").device_put(array, self._target)

    def ready(self, source: DeviceSource) -> List[Any]:
        made, self._made = self._made, []
        return made

    drop = ready

    def is_read(self, readers: List[Any]) -> bool:
        return all(array.is_ready() for array in readers)

    def await_read(self, readers: List[Any]) -> None:
        for array in readers:
            array.block_until_ready()
