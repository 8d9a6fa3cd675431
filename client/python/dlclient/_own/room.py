"""Where a result belongs whose size differs from sample to sample: a place with room for the largest."""
from __future__ import annotations

import ctypes
from typing import Any, Callable, Optional, Sequence, Tuple, cast

import numpy

from .._lease import TEXT, TYPES


class Misfit(Exception):
    """A result that does not belong there; the text goes on after what it is called."""


class Room:
    """`varies`: which dimensions do. After put() `shape` is that of the result."""

    __slots__ = ("address", "dtype", "most", "varies", "is_text", "shape")

    def __init__(self, address: int, dtype: int, most: Sequence[int], varies: Sequence[bool]) -> None:
        self.address = address
        self.is_text = dtype == TEXT
        self.dtype = numpy.dtype("u1" if self.is_text else TYPES[dtype])
        self.most = tuple(most)
        self.varies = tuple(varies)
        self.shape: Tuple[int, ...] = ()

    @property
    def form(self) -> str:
        """As a pipeline has it: float32[..100:4]."""
        sizes = ":".join(f"{'..' if varies else ''}{n}" for n, varies in zip(self.most, self.varies))
        return f"{'text' if self.is_text else self.dtype}[{sizes}]"

    def text_of(self, result: Any) -> Optional[Any]:
        """Text, and bytes for a row of them, as an array; None: it is something else."""
        if not isinstance(result, str) and not self.is_text and (
                self.dtype != numpy.uint8 or not isinstance(result, (bytes, bytearray, memoryview))):
            return None
        if isinstance(result, str):
            if not self.is_text:
                raise Misfit(f"is text, and {self.form} is declared: write dtype=text, or return an array")
            try:
                result = result.encode()
            except UnicodeEncodeError as error:
                raise Misfit(f"is text that UTF-8 does not have: {error.reason}") from None
        elif self.is_text:
            raise Misfit(f"is a {type(result).__name__}, and {self.form} is declared: return a str")
        return numpy.frombuffer(result, numpy.uint8)

    def put(self, result: Any, hint: Callable[[Any], str]) -> None:
        """Copies an array there. `hint`: what to write to get such an array. Misfit: another dtype or number of
        dimensions, or more elements than declared."""
        if result.dtype != self.dtype or result.ndim != len(self.most):
            raise Misfit(f"is {result.dtype} {result.shape}, and {self.form} is declared: write {hint(result)}, or "
                         f"convert it")
        for n, most, varies in zip(result.shape, self.most, self.varies):
            if n > most or (n != most and not varies):
                what = f"{result.nbytes} bytes of text" if self.is_text else f"{result.dtype} {result.shape}"
                raise Misfit(f"is {what}, and {self.form} is declared"
                             + (": declare more, or return fewer" if varies else ""))
        n_bytes = result.nbytes
        if n_bytes > 0:
            memory = (ctypes.c_char * n_bytes).from_address(self.address)
            numpy.ndarray(result.shape, self.dtype, cast(Any, memory))[...] = result
        self.shape = result.shape
