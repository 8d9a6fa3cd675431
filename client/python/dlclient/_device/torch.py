"""Batches in tensors of torch's own: its allocator gives the memory, on the stream that is current when a batch is
taken, and takes it back in the order of that stream. So a tensor may be kept, changed or dropped at any time, as any
other."""
from __future__ import annotations

from typing import Any, Dict, List, Tuple

from .. import _library
from .._batches import convert as _convert
from .._errors import DeviceMemoryFull, DeviceNotFound, ForkedLoader, FrameworkMissing, OptionError
from .buffers import Buffers
from .memory import Memory
from .device_source import DeviceSource

# dlc_dtype -> torch's name, in the order of _lease.TYPES
NAMES = ("uint8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool", "int8", "int16",
         "uint16", "uint32", "uint64")


class TorchMemory(Memory):
    """`into`: the loader's option."""

    owns = True
    allocates = True
    n_batches = 2  # a batch is released when it is handed out: one of these, and the one that is copied ahead

    def __init__(self, into: Any) -> None:
        super().__init__()
        self._torch = _convert.module("torch")
        self._device: Any = None
        self._given: Dict[int, Tuple[Any, int]] = {}  # bytes of tensors that were allocated, by address; their stream
        self._leaving: List[int] = []  # of these: addresses of the batch that is being handed out
        self._stream = 0  # of this call
        self._dtypes: Dict[int, Tuple[Any, int]] = {}
        self._buffers = Buffers(self._torch, into) if into is not None else None

    def choose(self, index: int) -> int:
        torch = self._torch
        if not torch.cuda.is_available():
            built = "for AMD's GPUs" if getattr(torch.version, "hip", None) else \
                "without CUDA" if not torch.version.cuda else f"with CUDA {torch.version.cuda}"
            raise DeviceNotFound(f"device: torch {torch.__version__} was built {built} and finds no GPU of NVIDIA's "
                                 f"here. Leave device= out for batches in the CPU's memory")
        if getattr(torch.version, "hip", None):
            raise DeviceNotFound(f"device: torch {torch.__version__} was built for AMD's GPUs, and only NVIDIA's are "
                                 f"supported: leave device= out")
        if getattr(torch.cuda, "_is_in_bad_fork", bool)():  # else torch's own error comes from the next call
            raise ForkedLoader("device: this process was forked from one that had used CUDA, which cannot be used here "
                               "any more: start processes with spawn")
        if index < 0 and torch.cuda.current_device() > 0:  # the program has chosen: torch.cuda.set_device()
            return int(torch.cuda.current_device())
        return index

    def begin(self, index: int) -> None:
        super().begin(index)
        self._device = self._torch.device("cuda", index)
        if self._buffers is not None:
            self._buffers.check_device(self._device)

    def stream(self) -> int:
        self._stream = int(self._torch.cuda.current_stream(self._device).cuda_stream)
        return self._stream

    # -- memory for the library

    def allocate(self, tensor: _library.Tensor, n_bytes: int, ret_data: Any) -> None:
        torch = self._torch
        name, flat = tensor.name.decode(), None
        if self._buffers is not None:
            assert self.form is not None
            self.form.channels_last.settle(name)  # the first field that lies on a device is the picture
            flat = self._buffers.give(name, tensor, n_bytes, self._dtype(tensor)[0], self._given,
                                      self.form.channels_last.has(name))
        if flat is None:
            try:
                with torch.inference_mode(False):  # the batch may be handed out after a block of inference has ended
                    flat = torch.empty(n_bytes, dtype=torch.uint8, device=self._device)
            except torch.cuda.OutOfMemoryError as error:
                raise DeviceMemoryFull(f"no memory on {self._device} for {name!r} of a batch: {error}") from error
        pointer = int(flat.data_ptr())
        ret_data[0] = pointer  # first: if a signal's exception comes now, the library gives back what it was told
        self._given[pointer] = (flat, self._stream)

    def free(self, pointer: int) -> None:
        self._given.pop(pointer, None)

    def drop(self, source: DeviceSource) -> List[Any]:
        self._leaving = self._addresses(source)
        if self._buffers is not None:
            self._buffers.drop()
        return []

    def ready(self, source: DeviceSource) -> List[Any]:
        self._leaving = self._addresses(source)
        if self._buffers is not None and source.record.n_samples > 0:
            self._buffers.check_filled(source.names())
        return []

    def _addresses(self, source: DeviceSource) -> List[int]:
        found = [self._flat_at(source.address(tensor) or 0) for tensor in source.fields().values()]
        return [base for base, flat, _ in found if flat is not None]

    def delivered(self) -> None:
        """The batch's tensors hold their memory now."""
        while self._leaving:
            self._given.pop(self._leaving[-1], None)
            self._leaving.pop()
        if self._buffers is not None:
            self._buffers.delivered()

    # -- tensors

    def piece(self, source: DeviceSource, name: str, tensor: _library.Tensor, data: int, shape: Tuple[int, ...],
              strides: Tuple[int, ...]) -> Any:
        torch = self._torch
        dtype, n_element = self._dtypes.get(tensor.dtype) or self._dtype(tensor)
        base, flat, stream = self._flat_at(data)
        if flat is None or 0 in shape:
            return torch.empty(shape, dtype=dtype, device=self._device)
        if stream != self._stream:  # allocated on one stream, and used on another
            flat.record_stream(torch.cuda.current_stream(self._device))
        n_bytes = n_element + sum((n - 1) * stride for n, stride in zip(shape, strides))
        if data != base or flat.numel() != n_bytes:
            flat = flat[data - base:data - base + n_bytes]
        values = flat.view(dtype).as_strided(shape, [stride // n_element for stride in strides])
        if self._buffers is not None and not (tensor.places and not tensor.is_whole):
            return self._buffers.placed(name, values, source.form.channels_last.has(name))
        return values

    def moved(self, name: str, array: Any) -> Any:
        try:
            values = _convert.converter("torch")(array).to(self._device)
        except self._torch.cuda.OutOfMemoryError as error:
            raise DeviceMemoryFull(f"no memory on {self._device} for {name!r} of a batch: {error}") from error
        return self._buffers.placed(name, values, False) if self._buffers is not None and array.size > 0 else values

    def _flat_at(self, address: int) -> Tuple[int, Any, int]:
        """The memory that was allocated there: its address, its bytes as a tensor, its stream."""
        for base, (flat, stream) in self._given.items():
            if base <= address < base + int(flat.numel()):
                return base, flat, stream
        return 0, None, 0

    def _dtype(self, tensor: _library.Tensor) -> Tuple[Any, int]:
        """torch's, and its bytes."""
        name = NAMES[tensor.dtype]
        dtype = getattr(self._torch, name, None)
        if dtype is None:
            raise FrameworkMissing(f"framework: torch {self._torch.__version__} has no {name}, the dtype of "
                                   f"{tensor.name.decode()!r}: install torch 2.3 or later, or convert the field, as by "
                                   f"to(int64)")
        self._dtypes[tensor.dtype] = (dtype, int(self._torch.empty(0, dtype=dtype).element_size()))
        return self._dtypes[tensor.dtype]
