"""Which arrays a field can be, and what is said of values that cannot be one."""
from __future__ import annotations

import importlib
from typing import Any

import numpy

KINDS = ("uint8", "int32", "int64", "float16", "float32", "float64", "bool", "int8", "int16", "uint16", "uint32",
         "uint64", "bfloat16")
TEXT = "return numbers in its place (its number, its tokens), or its bytes as an array of uint8, all of one length"


class Unfit(Exception):
    """A value that cannot be a field. The text goes on after its name."""


def _bits_of_bfloat16(tensor: Any) -> Any:
    return tensor.contiguous().view(importlib.import_module("torch").int16).numpy().view(numpy.uint16)


def _why_not(tensor: Any, error: Exception) -> str:
    """Of a tensor of torch's without numbers that NumPy could have."""
    if getattr(tensor, "is_nested", False):
        return "is a nested tensor: return one of a fixed shape, as of torch.nested.to_padded_tensor()"
    if getattr(tensor, "is_quantized", False):
        return "is a quantized tensor: return its numbers, with .dequantize() or .int_repr()"
    if getattr(tensor, "is_meta", False):
        return "is a tensor on the device \"meta\", which has no numbers: return one that has"
    if not str(getattr(tensor, "layout", "torch.strided")).endswith("strided"):
        return "is a sparse tensor: return a dense one, with .to_dense()"
    return f"is a {type(tensor).__name__} that cannot be an array of NumPy ({error}): return an array"


def of_tensor(tensor: Any) -> Any:
    """A tensor of torch's as an array, and its dtype's name: bfloat16 are their bits."""
    try:
        tensor = tensor.detach().cpu()
        if str(tensor.dtype) == "torch.bfloat16":
            return _bits_of_bfloat16(tensor), "bfloat16"
        array = tensor.numpy()
    except (RuntimeError, TypeError, ValueError) as error:  # NotImplementedError is a RuntimeError
        raise Unfit(_why_not(tensor, error)) from None
    return array, array.dtype.name


def check_dtype(dtype: Any) -> None:
    """Can a field have it?"""
    if dtype.name in KINDS:
        return
    if dtype.kind in "USO":
        what = "text" if dtype.kind == "U" else "bytes" if dtype.kind == "S" else "objects of Python"
        raise Unfit(f"is {what} (dtype {dtype}), which a batch cannot have: "
                    + (TEXT if dtype.kind != "O" else "return an array of numbers"))
    more = " (a complex number is two of them: .view() or .real and .imag)" if dtype.kind == "c" else ""
    raise Unfit(f"has the dtype {dtype}, which a field cannot have: convert it to one of {', '.join(sorted(KINDS))}"
                f"{more}")
