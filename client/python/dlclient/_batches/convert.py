"""Arrays of other frameworks. A framework is imported only when it is requested. Whatever shares memory with an array
keeps that array alive, and with it the batch's slot."""
from __future__ import annotations

import difflib
import importlib
from typing import Any, Callable, Dict, cast

import numpy

from .._errors import FrameworkMissing, OptionError

_NAMES = {"torch": "torch", "jax": "jax.numpy", "tensorflow": "tensorflow"}


def module(framework: str) -> Any:
    """Imports a framework's module."""
    try:
        return importlib.import_module(_NAMES[framework])
    except ImportError as error:
        raise FrameworkMissing(f"framework: {framework!r} was requested and cannot be imported ({error}); install it, "
                               f"or take NumPy arrays (framework=\"numpy\")") from error


# The bits of bfloat16 where ml_dtypes is not installed. The mark tells them from an array of uint16.
_BITS = cast(Any, numpy.dtype)("<u2", metadata={"dlclient": "bfloat16"})  # numpy's own hints lack the argument


def bfloat16(array: Any) -> Any:
    """uint16 bits as ml_dtypes' bfloat16 if that is installed; else the bits themselves, marked."""
    try:
        return array.view(importlib.import_module("ml_dtypes").bfloat16)
    except ImportError:
        return array.view(_BITS)


def _is_bfloat16(array: Any) -> bool:
    return bool(array.dtype.name == "bfloat16" or (array.dtype.metadata or {}).get("dlclient") == "bfloat16")


def on_host(array: Any) -> Any:
    """An array of any framework as NumPy's. What lies on a device is copied; what lies in memory is not."""
    if isinstance(array, numpy.ndarray):
        return array
    if hasattr(array, "detach"):  # torch's, which also has an interface of a device
        array = array.detach().cpu()
        is_bfloat16 = str(array.dtype) == "torch.bfloat16"
        return bfloat16(array.view(module("torch").int16).numpy()) if is_bfloat16 else array.numpy()
    return numpy.asarray(array)


def is_on_device(array: Any) -> bool:
    """Is it one of ours on a device? A framework takes it over by DLPack."""
    return hasattr(array, "used_on")


def _torch(array: Any) -> Any:
    """No copy."""
    torch = module("torch")
    if isinstance(array, torch.Tensor):
        return array
    if is_on_device(array):
        return torch.from_dlpack(array)
    if _is_bfloat16(array):
        return torch.from_numpy(array.view(numpy.int16)).view(torch.bfloat16)
    try:
        return torch.from_numpy(array)
    except TypeError as error:  # uint16, uint32 and uint64 before torch 2.3
        raise FrameworkMissing(f"framework: torch {torch.__version__} has no {array.dtype.name}: install torch 2.3 or "
                               f"later, or take NumPy arrays (framework=\"numpy\")") from error


def _jax(array: Any) -> Any:
    """On a CPU JAX may share the memory; elsewhere it copies, and holds the array until the copy is done."""
    jnp = module("jax")
    if is_on_device(array):
        return jnp.from_dlpack(array)
    if _is_bfloat16(array) and not hasattr(array, "devices"):
        return jnp.asarray(array.view(jnp.bfloat16.dtype))
    return jnp.asarray(array)


def _tensorflow(array: Any) -> Any:
    tensorflow = module("tensorflow")
    if _is_bfloat16(array):
        return tensorflow.bitcast(tensorflow.convert_to_tensor(array.view(numpy.uint16)), tensorflow.bfloat16)
    return tensorflow.convert_to_tensor(array)


CONVERTERS: Dict[str, Callable[[Any], Any]] = {
    "numpy": on_host,
    "torch": _torch,
    "jax": _jax,
    "tensorflow": _tensorflow,
}


_MEANT = {"pytorch": "torch", "pt": "torch", "th": "torch", "lightning": "torch", "np": "numpy", "tf": "tensorflow",
          "keras": "tensorflow", "jnp": "jax", "flax": "jax"}


def converter(framework: str) -> Callable[[Any], Any]:
    """The function from a NumPy array to the framework's; imports it now, so that a missing one is noticed at once."""
    if framework not in CONVERTERS:
        meant = _MEANT.get(framework.lower()) or next(iter(difflib.get_close_matches(framework.lower(), CONVERTERS, 1)),
                                                      None)
        raise OptionError(f"framework: {framework!r}{f'; did you mean {meant!r}?' if meant else ''}; "
                          f"{', '.join(map(repr, CONVERTERS))} are allowed")
    if framework != "numpy":
        module(framework)
    return CONVERTERS[framework]
