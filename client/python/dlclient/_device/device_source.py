"""The fields of a batch on a device. Text and bytes are on the host, as are all numbers of samples."""
from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy

from .. import _library
from .._batches.form import Form
from .._batches.source import Source
from .._lease import ABSENT, Lease, column
from .library import CudaBatch
from .memory import Memory


class DeviceSource(Source):
    """A batch that dlc_cuda_next() returned."""

    __slots__ = ("memory", "on_host")

    def __init__(self, lease: Lease, record: CudaBatch, form: Form, memory: Memory) -> None:
        super().__init__(lease, record.batch, form)
        self.memory = memory
        tensors = record.batch.tensors
        self.on_host = {tensors[i].name for i in range(record.batch.n_tensors) if record.host_tensors >> i & 1}

    def piece(self, name: str, tensor: _library.Tensor, data: int, shape: Tuple[int, ...], strides: Tuple[int, ...],
              may_copy: bool = False) -> Any:
        if tensor.name not in self.on_host:
            return self.memory.piece(self, name, tensor, data, shape, strides)
        array = super().piece(name, tensor, data, shape, strides, may_copy)
        return numpy.array(array, copy=True) if self.memory.owns else array

    def address(self, tensor: _library.Tensor) -> Optional[int]:
        """Where the first element is; None: there is none on the device."""
        data = tensor.data or 0
        if tensor.name in self.on_host:
            return None
        if not tensor.places or tensor.is_whole:
            return data or None
        return next((data + place.offset for place in tensor.places[:self.record.n_samples]
                     if place.offset != ABSENT and place.n_bytes > 0), None)

    def target(self, name: str) -> Any:
        return self.memory.moved(name, self.form.targets[name][column(self.record.served, self.record.n_samples)])

    def error(self, i: int) -> Optional[bytes]:
        text: Optional[bytes] = self.lease.handle.device.sample_error(self.lease.address, i)
        return text
