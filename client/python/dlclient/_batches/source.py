"""Where the fields of a batch come from: its slot, and the form that a loader gives them."""
from __future__ import annotations

import ctypes
import struct
from typing import Any, Dict, List, Optional, Tuple

from .. import _library
from .._lease import ABSENT, BFLOAT16, TEXT, TEXTS, Lease, column, view
from . import convert as _convert
from .form import Form
from .ragged import Ragged


class Texts(List[Optional[str]]):
    """A field of text: a list of str, None for a sample that does not have the field. A copy: it holds no memory of
    the batch."""


class TextLists(List[Optional[List[str]]]):
    """A field of lists of texts: a list of lists of str, None for a sample that does not have the field. A copy: it
    holds no memory of the batch."""


def _text(data: bytes) -> str:
    """A part of a file's name may not be UTF-8: then it is as os.listdir() has it."""
    return data.decode("utf-8", "surrogateescape")


def _split(data: bytes) -> List[str]:
    """The texts of a sample: uint64 n, uint64 ends[n], then the bytes of all of them."""
    n = int.from_bytes(data[:8], "little")
    begin = 8 + 8 * n
    ends = [0, *struct.unpack_from(f"<{n}Q", data, 8)]
    return [_text(data[begin + a:begin + b]) for a, b in zip(ends, ends[1:])]


def added_masks(tensors: List[Tuple[str, _library.Tensor]]) -> Dict[str, str]:
    """The masks that pad has added, by the field: each comes after its field, and before FIELD_labels."""
    found: Dict[str, str] = {}
    for (name, tensor), (mask, _) in zip(tensors, tensors[1:]):
        if tensor.extents and name != f"{next(reversed(found), None)}_labels":
            found[name] = mask
    return found


class Source:
    """A batch in its slot: where each field is, until the batch is released."""

    __slots__ = ("lease", "record", "tensors", "form")

    def __init__(self, lease: Lease, record: _library.Batch, form: Form) -> None:
        self.lease = lease
        self.record = record
        self.form = form
        self.tensors: Optional[Dict[str, _library.Tensor]] = None

    def names(self) -> List[str]:
        return self.form.names(list(self.fields()))

    def has(self, name: object) -> bool:
        return name in self.fields() or name in self.form.targets

    def fields(self) -> Dict[str, _library.Tensor]:
        if self.tensors is None:
            tensors = self.record.tensors
            self.tensors = {}
            for i in range(self.record.n_tensors):
                tensor = tensors[i]
                self.tensors[_text(tensor.name)] = tensor
            self.form.views.settle(list(self.tensors))
            self.form.channels_last.settle(next(iter(self.tensors), ""))
            if not self.form.added_masks:
                self.form.added_masks = added_masks(list(self.tensors.items()))
        return self.tensors

    def array(self, name: str) -> Any:
        """The field as a NumPy array; KeyError if no field has this name."""
        if name in self.form.targets:
            return self.target(name)
        return self.stored(name)

    def target(self, name: str) -> Any:
        """Rows of the program's own numbers."""
        return self.form.targets[name][column(self.record.served, self.record.n_samples)]

    def stored(self, name: str) -> Any:
        """The same of a field that the daemon delivered."""
        tensor = self.fields()[name]
        if tensor.places and not tensor.is_whole:
            return self._ragged(name, tensor)
        n = tensor.n_dims
        shape = tuple(tensor.shape[:n])
        return self.piece(name, tensor, tensor.data, shape, tuple(tensor.strides[:n]), self.form.copy == "small")

    def piece(self, name: str, tensor: _library.Tensor, data: int, shape: Tuple[int, ...], strides: Tuple[int, ...],
              may_copy: bool = False) -> Any:
        """A tensor, or a sample of one, as an array. `may_copy`: if it is small."""
        array = view(self.lease, name, data, tensor.dtype, shape, strides)
        if may_copy and self.form.is_small(shape, array.nbytes):
            array = array.copy()
        return _convert.bfloat16(array) if tensor.dtype == BFLOAT16 else array

    def _ragged(self, name: str, tensor: _library.Tensor) -> Any:
        places = tensor.places[:self.record.n_samples]
        if tensor.dtype == TEXT:
            return Texts([None if place.offset == ABSENT else
                          _text(ctypes.string_at(tensor.data + place.offset, place.n_bytes)) for place in places])
        if tensor.dtype == TEXTS:
            return TextLists([None if place.offset == ABSENT else
                              _split(ctypes.string_at(tensor.data + place.offset, place.n_bytes)) for place in places])
        shape, strides = tensor.shape[1:tensor.n_dims], tensor.strides[1:tensor.n_dims]
        varies = bool(shape) and shape[0] < 0
        return Ragged([None if place.offset == ABSENT else
                       self.piece(name, tensor, (tensor.data or 0) + place.offset,
                                  (place.n_bytes // strides[0], *shape[1:]) if varies else tuple(shape), tuple(strides))
                       for place in places], self._joined(name, tensor, places) if varies else None)

    def _joined(self, name: str, tensor: _library.Tensor, places: Any) -> Any:
        """All samples of a ragged field as one array, if they lie one after the other; else None."""
        end = places[0].offset
        for place in places:
            if place.offset != end or place.offset == ABSENT:
                return None
            end += place.n_bytes
        shape, strides = tensor.shape[1:tensor.n_dims], tuple(tensor.strides[1:tensor.n_dims])
        return self.piece(name, tensor, (tensor.data or 0) + places[0].offset,
                          ((end - places[0].offset) // strides[0], *shape[1:]), strides)

    def errors(self) -> Dict[int, str]:
        """Why samples were substituted: place in the batch -> text."""
        found = {}
        if self.record.n_substituted:
            for i in range(self.record.n_samples):
                text = self.error(i)
                if text is not None:
                    found[i] = _library.sentence_of(text)
        return found

    def error(self, i: int) -> Optional[bytes]:
        handle = self.lease.handle
        text: Optional[bytes] = handle.library.quick.sample_error(handle.pointer, self.lease.address, i)
        return text
