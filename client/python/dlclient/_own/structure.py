"""What a Dataset's __getitem__ returns, as fields of a batch: tuples, dicts and named tuples of arrays and numbers, one
within the other. The same structure is made again of a batch's fields."""
from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy

from .._errors import OptionError
from .kinds import TEXT, Unfit, check_dtype, of_tensor
from .room import Misfit, Room

Path = Tuple[Any, ...]      # keys and places from the result to one of its leaves

NAME_MAX = 31               # characters of a field's name
DIMS_MAX = 7
SIDE_MAX = 2**31 - 1
FIELDS_MAX = 32
DEPTH_MAX = 8
ONE = "data"                # the field of a result that is one array
RESERVED = ("dtype", "shape", "max")  # python(f) has arguments of these names
MAX_BYTES = 16384           # of a text, if the caller says nothing

class Field(NamedTuple):
    """A leaf of the result. `dtype` is NumPy's name, or bfloat16, whose elements are 16 bits here, or text. A dimension
    of -1 differs from sample to sample, and has up to `most` elements."""

    name: str
    path: Path
    dtype: str
    shape: Tuple[int, ...]
    most: int = 0

    @property
    def varies(self) -> bool:
        return -1 in self.shape

    @property
    def form(self) -> str:
        """As a pipeline has it."""
        return f"{self.dtype}[{':'.join(f'..{self.most}' if n < 0 else str(n) for n in self.shape)}]"

    @property
    def told(self) -> str:
        if self.dtype == "text":
            return f"text of up to {self.most} bytes"
        return self.form if self.varies else f"{self.dtype} {self.shape}"


def shown(path: Path) -> str:
    """As one writes it after the result: [1]["boxes"]."""
    return "".join(f"[{key!r}]" for key in path)


def _is_named_tuple(value: object) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _advice(value: object) -> str:
    if isinstance(value, (str, bytes)):
        return f"is {'text' if isinstance(value, str) else 'bytes'}: {TEXT}, or leave it out"
    if value is None:
        return "is None: return an array or a number in its place, or leave it out"
    return (f"is a {type(value).__name__}: return arrays, tensors, pictures of PIL, numbers, and tuples and dicts of "
            f"these")


def as_array(value: Any) -> Any:
    """A leaf as an array of NumPy, and its dtype's name."""
    kind = type(value)
    if kind is numpy.ndarray:
        array = value
    elif kind is bool or kind is int or kind is float:
        array = numpy.array(value)
        if array.dtype == object:
            raise Unfit(f"is {value}, which has more than 64 bits")
    elif hasattr(value, "detach"):
        array, name = of_tensor(value)
        if name == "bfloat16":
            return array, name
    elif isinstance(value, (str, bytes)) or not (hasattr(value, "__array__") or hasattr(value, "__array_interface__")):
        raise Unfit(_advice(value))
    else:
        array = numpy.asarray(value)
    dtype = array.dtype
    if not dtype.isnative:
        array = array.astype(dtype.newbyteorder("="))
        dtype = array.dtype
    check_dtype(dtype)
    return array, dtype.name


def check_shape(shape: Tuple[int, ...]) -> None:
    """Can a sample of a field have it?"""
    if len(shape) > DIMS_MAX:
        raise Unfit(f"has {len(shape)} dimensions, {DIMS_MAX} are allowed")
    if min(shape, default=1) < 1:
        raise Unfit(f"has the shape {shape}, and a field has one element or more: leave it out")
    if max(shape, default=1) > SIDE_MAX:
        raise Unfit(f"has {max(shape)} elements in a dimension, {SIDE_MAX} are allowed")


def _walk(value: Any, path: Path, leaves: List[Tuple[Path, Any]]) -> None:
    if len(path) > DEPTH_MAX:
        raise Unfit(f"is nested more than {DEPTH_MAX} levels deep")
    if isinstance(value, (tuple, list, Mapping)) and len(value) == 0:
        raise Unfit(f"{shown(path)} has nothing in it: leave it out".strip())
    if isinstance(value, Mapping):
        for key in value:
            _walk(value[key], (*path, key), leaves)
    elif isinstance(value, (tuple, list)):
        for i, one in enumerate(value):
            _walk(one, (*path, i), leaves)
    else:
        leaves.append((path, value))


def _name(path: Path, value: Any, taken: Sequence[str]) -> str:
    """Of the keys on the way to a leaf, in letters that a pipeline takes."""
    words = []
    for key in path:
        words.append(str(value._fields[key]) if _is_named_tuple(value) else str(key))
        value = value[key]
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", ".".join(words))[-NAME_MAX:] or ONE
    n = 2
    while name in taken or name in RESERVED:
        name = f"{name[:NAME_MAX - 4]}_{n}"
        n += 1
    return name


def fields_of(result: Any, names: Optional[Sequence[str]] = None, max_bytes: int = MAX_BYTES) -> List[Field]:
    """The leaves of a result. `names` are theirs, in its sequence. Unfit: what cannot be a field, with its place."""
    leaves: List[Tuple[Path, Any]] = []
    _walk(result, (), leaves)
    if not leaves:
        raise Unfit("has nothing in it")
    if len(leaves) > FIELDS_MAX:
        raise Unfit(f"has {len(leaves)} fields, and a batch has {FIELDS_MAX} at most: put those of one kind into one "
                    f"array")
    if names is not None and len(names) != len(leaves):
        raise OptionError(f"fields: {len(names)} names, and a sample has {len(leaves)} fields: "
                          f"{', '.join(shown(path) or 'itself' for path, _ in leaves)}")
    fields: List[Field] = []
    for i, (path, value) in enumerate(leaves):
        name = names[i] if names is not None else _name(path, result, [field.name for field in fields])
        if isinstance(value, str):
            fields.append(Field(name, path, "text", (-1,), max_bytes))
            continue
        try:
            array, dtype = as_array(value)
            check_shape(tuple(array.shape))
        except Unfit as unfit:
            raise Unfit(f"{shown(path)} {unfit}".strip()) from None
        fields.append(Field(name, path, dtype, tuple(array.shape)))
    return fields


class _Leaf:
    """Where a field is in a result, and what it has to be."""

    def __init__(self, field: Field) -> None:
        self.field = field
        self.path = field.path
        self.dtype = numpy.dtype({"bfloat16": "uint16", "text": "uint8"}.get(field.dtype, field.dtype))
        self.shape = field.shape
        number = {"int64": int, "float64": float, "bool": bool}.get(field.dtype)
        self.number = number if field.shape == () else None  # the type of Python's that it may be, too
        self.is_bfloat16 = field.dtype == "bfloat16"
        self.torch_dtype = f"torch.{field.dtype}"

    def put(self, value: Any, out: Any) -> None:
        """Copies it to its place. The usual kinds are tried first: a sample may have cost a microsecond."""
        kind = type(value)
        if kind is self.number:
            out[()] = value
            return
        if type(out) is Room:
            self._put_into_room(value, out)
            return
        array = value
        if kind is not numpy.ndarray and not self.is_bfloat16 and kind.__name__ == "Tensor":
            if self.shape == () and value.shape == () and str(value.dtype) == self.torch_dtype:
                out[()] = value.item()  # half the time of an array of it
                return
            try:
                array = value.numpy()
            except (RuntimeError, TypeError):  # of one with a gradient, or on a device
                array = None
        if type(array) is numpy.ndarray and array.dtype == self.dtype and array.shape == self.shape and (
                not self.is_bfloat16):
            out[...] = array
            return
        try:
            array, dtype = as_array(value)
        except Unfit as unfit:
            raise Unfit(f"{shown(self.path)} {unfit}".strip()) from None
        if array.shape != self.shape or dtype != self.field.dtype:
            raise Unfit(f"{shown(self.path) or 'it'} is {dtype} {array.shape}, and {self.field.told} is expected")
        out[...] = array


    def _put_into_room(self, value: Any, room: Room) -> None:
        """The same of what differs in size. Misfit: it is too large."""
        where = shown(self.path) or "it"
        try:
            array = room.text_of(value) if isinstance(value, str) and room.is_text else as_array(value)[0]
        except Unfit as unfit:
            raise Unfit(f"{where} {unfit}") from None
        if not (isinstance(value, str) and room.is_text) and (array.dtype != self.dtype or array.ndim != len(self.shape)
                                                              or room.is_text):
            raise Unfit(f"{where} is {array.dtype} {array.shape}, and {self.field.told} is expected")
        try:
            room.put(array, str)
        except Misfit as misfit:
            raise Misfit(f"{where} {misfit}") from None


def _items(n: int) -> str:
    return f"{n} item{'' if n == 1 else 's'}"


class Taker:
    """Takes the fields out of results, all of which have the structure of the first."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._leaves = [_Leaf(field) for field in fields]
        self._puts = [leaf.put for leaf in self._leaves]
        self._is_flat = [field.path for field in fields] == [(i,) for i in range(len(fields))]
        self._sizes: Dict[Path, int] = {}   # of each tuple and dict on the way
        for field in fields:
            for depth in range(len(field.path)):
                self._sizes.setdefault(field.path[:depth], 0)
        keys = {field.path[:depth + 1] for field in fields for depth in range(len(field.path))}
        for key in keys:
            self._sizes[key[:-1]] += 1

    def put(self, result: Any, outs: Sequence[Any]) -> None:
        """Copies the fields to their places. Unfit: the result differs from the first."""
        if self._is_flat and type(result) in (tuple, list) and len(result) == len(self._puts):
            for put, value, out in zip(self._puts, result, outs):
                put(value, out)
            return
        for path, size in self._sizes.items():
            value = self._at(result, path) if path else result
            if not isinstance(value, (tuple, list, Mapping)) or len(value) != size:
                is_tree = isinstance(value, (tuple, list, Mapping))
                what = f"has {_items(len(value))}" if is_tree else f"is a {type(value).__name__}"
                raise Unfit(f"{shown(path) or 'it'} {what}, and {_items(size)} {'is' if size == 1 else 'are'} expected")
        for leaf, out in zip(self._leaves, outs):
            leaf.put(self._at(result, leaf.path), out)

    @staticmethod
    def _at(result: Any, path: Path) -> Any:
        for key in path:
            try:
                result = result[key]
            except (KeyError, IndexError, TypeError):
                raise Unfit(f"has no {shown(path)}") from None
        return result


def rebuilder(result: Any, fields: Sequence[Field]) -> Optional[Callable[[Any], Any]]:
    """The function from a batch to the structure of a result with the batch's fields in it; None for a plain dict,
    which a batch is itself."""
    names = {field.path: field.name for field in fields}
    if isinstance(result, Mapping) and all(len(field.path) == 1 and field.path[0] == field.name for field in fields):
        return None
    plan = _plan(result, (), names)
    return lambda batch: plan(batch)  # pylint: disable=unnecessary-lambda


def _plan(value: Any, path: Path, names: Mapping[Path, str]) -> Callable[[Any], Any]:
    if isinstance(value, Mapping):
        members = {key: _plan(value[key], (*path, key), names) for key in value}
        return lambda batch: {key: member(batch) for key, member in members.items()}
    if isinstance(value, (tuple, list)):
        items = [_plan(one, (*path, i), names) for i, one in enumerate(value)]
        if _is_named_tuple(value):
            kind: Any = type(value)  # it may have a __new__ of its own
            return lambda batch: kind._make(item(batch) for item in items)
        make = tuple if isinstance(value, tuple) else list
        return lambda batch: make(item(batch) for item in items)
    name = names[path]
    return lambda batch: batch[name]
