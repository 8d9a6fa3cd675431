"""Numbers that a sampler needs, as the library takes them: one array for each name."""
from __future__ import annotations

import ctypes
from typing import Any, List, Mapping, Tuple

import numpy

from . import _library
from ._errors import OptionError

MOST = 16

# enum dlc_dtype
_DTYPES = {"bool": 8, "uint8": 1, "int8": 9, "int16": 10, "uint16": 11, "int32": 2, "uint32": 12, "int64": 3,
           "uint64": 13, "float32": 6, "float64": 7}


class Columns:
    """The arrays of Loader(columns={"w": array}), checked; they are kept as long as the loader's options."""

    def __init__(self, given: object) -> None:
        self._arrays: List[Tuple[bytes, Any]] = []
        if given is not None and not isinstance(given, Mapping):
            raise OptionError(f"columns: {type(given).__name__}; expected a dict of a name and an array each")
        if given is not None and len(given) > MOST:
            raise OptionError(f"columns: {len(given)}; at most {MOST} are allowed")
        for name, values in dict(given or {}).items():
            self._arrays.append((_name(name), _array(name, values)))

    def fill(self, options: _library.Options) -> None:
        """Sets the options; they stay valid as long as this object."""
        table = (_library.Column * max(1, len(self._arrays)))()
        for column, (name, array) in zip(table, self._arrays):
            column.name = name
            column.dtype = _DTYPES[array.dtype.name]
            column.values = array.ctypes.data
            column.n_values = array.size
        self._table = table
        options.columns = ctypes.cast(table, ctypes.POINTER(_library.Column))
        options.n_columns = len(self._arrays)


def _name(name: object) -> bytes:
    if not isinstance(name, str) or not name or "\0" in name:
        raise OptionError(f"columns: {name!r} is not a name")
    return name.encode("utf-8", "surrogateescape")


def _array(name: str, values: object) -> Any:
    """A contiguous array of one dimension, of anything that NumPy takes, also a tensor on the CPU."""
    try:
        array = numpy.asarray(values)
    except Exception as error:
        raise OptionError(f"columns: {name}: {error}") from None
    if array.ndim != 1:
        raise OptionError(f"columns: {name}: its shape is {list(array.shape)}; one number for each sample is needed")
    if array.dtype.name not in _DTYPES:
        raise OptionError(f"columns: {name}: its dtype is {array.dtype}; bool, integers, float32 and float64 are "
                          "allowed")
    return numpy.ascontiguousarray(array, array.dtype.newbyteorder("="))
