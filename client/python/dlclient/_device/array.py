"""An array on a device: a piece of a batch, for whoever takes memory of others: CuPy and Numba by
__cuda_array_interface__, torch, JAX and others by DLPack."""
from __future__ import annotations

import ctypes
import weakref
from typing import Any, Dict, NoReturn, Optional, Tuple

import numpy

from .._batches import convert as _convert
from .._errors import BatchReleased
from .._lease import BFLOAT16, TYPES, Lease, view

CUDA = 2             # kDLCUDA
LEGACY_STREAM = 1    # as both interfaces number it

# dlc_dtype -> code and bits of DLPack, in the order of TYPES
_CODES = ((1, 8), (1, 8), (0, 32), (0, 64), (2, 16), (4, 16), (2, 32), (2, 64), (6, 8), (0, 8), (0, 16), (1, 16),
          (1, 32), (1, 64))


class _DLTensor(ctypes.Structure):
    """The beginning of DLManagedTensor; see dlpack.h."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def stream_of(stream: Any) -> int:
    """A CUstream as a number: of torch, CuPy, Numba, whoever has __cuda_stream__, or the number itself."""
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    for name in ("cuda_stream", "ptr"):  # torch, CuPy
        number = getattr(stream, name, None)
        if isinstance(number, int):
            return number
    handle = getattr(stream, "handle", None)  # Numba
    if handle is not None:
        return int(getattr(handle, "value", handle) or 0)
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    raise TypeError(f"{stream!r} is not a stream of CUDA: give one of torch, CuPy or Numba, or its number")


class DeviceArray:
    """A field of a batch on a device. The batch stays held while this, or what was made of it, is alive.

        cupy.asarray(array), torch.from_dlpack(array), jax.dlpack.from_dlpack(array)    without a copy

    Work that is queued on the default stream, or on a stream that blocks, needs no care. A stream that does not block
    is told by used_on(); DLPack does that by itself."""

    __slots__ = ("lease", "index", "pointer", "kind", "shape", "strides", "__weakref__")

    def __init__(self, lease: Lease, index: int, field: str, pointer: int, kind: int, shape: Tuple[int, ...],
                 strides: Tuple[int, ...]) -> None:
        self.lease = lease
        self.index = index        # of the device
        self.pointer = pointer    # address on the device
        self.kind = kind          # dlc_dtype
        self.shape = shape
        self.strides = strides    # in bytes
        lease.views.append((weakref.ref(self), field))

    @property
    def dtype(self) -> Any:
        """NumPy's; bfloat16 is that of ml_dtypes if it is installed."""
        empty = numpy.empty(0, TYPES[self.kind])
        return _convert.bfloat16(empty).dtype if self.kind == BFLOAT16 else empty.dtype

    @property
    def device(self) -> str:
        """"cuda:0", as torch names it."""
        return f"cuda:{self.index}"

    @property
    def ndim(self) -> int:
        """Dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Elements."""
        return int(numpy.prod(self.shape, dtype=numpy.int64))

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * int(numpy.dtype(TYPES[self.kind]).itemsize)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a number has no length")
        return self.shape[0]

    def __getitem__(self, place: Any) -> DeviceArray:
        if isinstance(place, slice) and place.step in (None, 1) and self.shape:
            begin, end, _ = place.indices(len(self))
            return DeviceArray(self.lease, self.index, "a piece", self.pointer + begin * self.strides[0], self.kind,
                               (max(end - begin, 0), *self.shape[1:]), self.strides)
        if not hasattr(place, "__index__") or not self.shape:
            raise TypeError("only places of the first dimension can be named here, one or several on end: hand the "
                            "array to a framework, as by cupy.asarray(array) or torch.from_dlpack(array)")
        at = place.__index__()
        at += len(self) if at < 0 else 0
        if not 0 <= at < len(self):
            raise IndexError(f"{place} of {len(self)}")
        return DeviceArray(self.lease, self.index, "a piece", self.pointer + at * self.strides[0], self.kind,
                           self.shape[1:], self.strides[1:])

    # -- for others

    def used_on(self, stream: Any) -> None:
        """A stream that does not block uses the array: the stream waits until the batch is there, and the batch's
        memory for what is queued on the stream until the array dies."""
        number = stream_of(stream)
        if number > 2:  # the default streams are in order with the library's
            self._usable().use(self.lease.address, number)

    def _usable(self) -> Any:
        """The device of the loader."""
        self.lease.handle.check_here()
        if self.lease.released and self.lease.handle.out.value != self.lease.address:  # else it is not handed out yet
            raise BatchReleased(f"{self.lease.label} was released: use its arrays before that")
        return self.lease.handle.device

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        self._usable()
        kind = "<V2" if self.kind == BFLOAT16 else TYPES[self.kind]
        return {"version": 3, "data": (self.pointer, False), "typestr": kind, "shape": self.shape,
                "strides": self.strides, "stream": LEGACY_STREAM}

    def __dlpack_device__(self) -> Tuple[int, int]:
        return CUDA, self.index

    def __dlpack__(self, *, stream: Any = None, max_version: Optional[Tuple[int, int]] = None,
                   dl_device: Optional[Tuple[int, int]] = None, copy: Optional[bool] = None) -> Any:
        """A capsule that keeps the batch held until the one who takes it is done. NumPy makes it, of an array that is
        never looked into: so a deleter of NumPy's takes the interpreter's lock, from whatever thread."""
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError(f"a batch on {self.device} is handed over where it lies and without a copy")
        device = self._usable()
        if stream is not None and stream > 2:  # -1: nothing is to wait; 1 and 2: the default streams
            device.use(self.lease.address, int(stream))
        shadow = view(self.lease, "an export", self.pointer, self.kind, self.shape, self.strides)
        if shadow.dtype == bool:
            shadow = shadow.view("|u1")
        capsule = shadow.__dlpack__()
        tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
        tensor.device_type, tensor.device_id = CUDA, self.index
        tensor.code, tensor.bits = _CODES[self.kind]
        return capsule

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"this array lies on {self.device} and NumPy cannot read it: cupy.asarray(array).get() or "
                        f"torch.from_dlpack(array).cpu() copies it to the host")

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"this array lies on {self.device}, in memory of its batch, and cannot be pickled or copied "
                        f"here: cupy.asarray(array).copy() or torch.from_dlpack(array).clone() does it")

    def __repr__(self) -> str:
        return f"<DeviceArray {self.dtype.name} {list(self.shape)} on {self.device}>"
