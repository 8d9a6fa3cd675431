"""A field whose samples have different lengths: a sequence of arrays, and the forms in which others want them."""
from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence, Tuple, Union, overload

import numpy

from .._answers.attributes import RAGGED, missing
from .._errors import FrameworkMissing
from . import convert as _convert


def _is_torch(array: Any) -> bool:
    return type(array).__module__.partition(".")[0] == "torch"


class Ragged(Sequence[Any]):
    """A field whose samples have different lengths, such as the encoded bytes of the pipeline "raw" or the boxes of a
    picture: `field[i]` is the array [n_i, ...] of sample i, or None for a sample that does not have the field. The
    sequence is read-only; each array keeps the batch's memory alive like any other.

        list(field)                a list of arrays
        field.values, .offsets     all samples one after the other, and where each begins: int64 [n + 1]
        field.cu_seqlens           the same as int32, for flash attention
        field.nested()             torch's nested tensor of the layout "jagged"
        field.padded()             one array and a mask; the step `pad` does this in the daemon

    `values` and `nested()` copy nothing if the pipeline says `ragged(joined=true)`."""

    __slots__ = ("_arrays", "_joined")

    def __init__(self, arrays: Sequence[Any], joined: Any = None) -> None:
        self._arrays = list(arrays)
        self._joined = joined  # all of them as one array; None: they lie apart

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> Ragged: ...

    def __getitem__(self, place: Union[int, slice]) -> Any:
        return Ragged(self._arrays[place]) if isinstance(place, slice) else self._arrays[place]

    def __len__(self) -> int:
        return len(self._arrays)

    def __getattr__(self, name: str) -> Any:
        raise missing("a Ragged", name, RAGGED)

    @property
    def lengths(self) -> List[int]:
        """Rows of each sample: the size of its first dimension."""
        return [0 if array is None else len(array) if getattr(array, "ndim", 1) else 1 for array in self._arrays]

    def to_list(self) -> List[Optional[bytes]]:
        """A copy of each sample's bytes; None for a sample that does not have the field."""
        return [None if array is None else bytes(_convert.on_host(array).data) for array in self._arrays]

    def map(self, function: Callable[[Any], Any]) -> Ragged:
        """The same with a function applied to each array."""
        return Ragged([None if array is None else function(array) for array in self._arrays])

    def moved(self, function: Callable[[Any], Any]) -> Ragged:
        """The same elsewhere: for functions that copy or convert rows and leave their number as it is. What is joined
        stays so, and is moved at once."""
        if self._joined is None:
            return self.map(function)
        joined = function(self._joined)
        ends = numpy.cumsum(self.lengths).tolist()
        return Ragged([joined[begin:end] for begin, end in zip([0, *ends], ends)], joined)

    def copy(self) -> Ragged:
        """Arrays of their own, which may be kept."""
        return self.moved(lambda array: numpy.array(_convert.on_host(array), copy=True))

    # -- in other shapes

    def _like(self, array: Any) -> Any:
        known = [each for each in (self._joined, *self._arrays) if each is not None]
        if not known or not _is_torch(known[0]):
            return array
        return _convert.converter("torch")(array).to(known[0].device)

    @property
    def offsets(self) -> Any:
        """Where each sample begins in `values`, and where the last one ends: int64 [n + 1]. A torch tensor if the
        arrays are."""
        return self._like(numpy.concatenate([[0], numpy.cumsum(self.lengths)]).astype(numpy.int64))

    @property
    def cu_seqlens(self) -> Any:
        """The same as int32, as flash attention takes it."""
        return self._like(numpy.concatenate([[0], numpy.cumsum(self.lengths)]).astype(numpy.int32))

    @property
    def values(self) -> Any:
        """The rows of all samples, one sample after the other; a sample that does not have the field has none. Without
        a copy if they lie so: ragged(joined=true)."""
        if self._joined is not None:
            return self._joined
        arrays = [array for array in self._arrays if array is not None]
        if not arrays:
            raise ValueError("no sample of this batch has the field: its values have neither dtype nor shape")
        if not getattr(arrays[0], "ndim", 0):
            raise ValueError("each sample is one number: take numpy.stack(field), samples have no rows here")
        if _is_torch(arrays[0]):
            return _convert.module("torch").cat(arrays)
        return numpy.concatenate([numpy.asarray(array) for array in arrays])

    def nested(self) -> Any:
        """A torch nested tensor of the layout "jagged", over `values` and `offsets`."""
        torch, values, offsets = _convert.module("torch"), self.values, self.offsets
        if not _is_torch(values):
            values, offsets = _convert.converter("torch")(values), _convert.converter("torch")(offsets)
        if not hasattr(torch.nested, "nested_tensor_from_jagged"):
            raise FrameworkMissing(f"torch {torch.__version__} has no nested tensors from values and offsets: install "
                                   f"torch 2.5 or later, or use field.values and field.offsets")
        return torch.nested.nested_tensor_from_jagged(values, offsets)

    def padded(self, value: float = 0, side: str = "right", multiple: int = 1) -> Tuple[Any, Any]:
        """One array in which all samples are as long as the longest, rounded up to a multiple, and a mask that is true
        where they are real; copies. As the step `pad` of a pipeline."""
        if side not in ("right", "left") or multiple < 1:
            raise ValueError(f"side is \"right\" or \"left\" and multiple 1 or more, not {side!r} and {multiple!r}")
        values, lengths = _convert.on_host(self.values), self.lengths
        length = -(-max(1, *lengths) // multiple) * multiple if lengths else multiple
        array = numpy.full((len(lengths), length, *values.shape[1:]), value, values.dtype)
        mask = numpy.zeros((len(lengths), length), bool)
        at = 0
        for i, n in enumerate(lengths):
            place = slice(length - n, length) if side == "left" else slice(0, n)
            array[i, place] = values[at:at + n]
            mask[i, place] = True
            at += n
        return self._like(array), self._like(mask)

    def __repr__(self) -> str:
        lengths = self.lengths or [0]
        return f"Ragged({len(self)} samples of {min(lengths)} to {max(lengths)} elements)"
