"""What makes the order of samples: completes what the program does not say with what the state says, else with the
defaults; turns indices= into the step that takes them."""
from __future__ import annotations

import secrets
import sys
from typing import Any, Dict, Mapping, Optional

import numpy

from ._errors import OptionError
from ._places import state as _state

DEFAULTS: Dict[str, Any] = {"seed": 0, "draws": 0, "shuffle": True, "order": "torch", "shuffle_buffer": None,
                            "sampler": None}
INDICES = "indices"  # the name of the column


class _Unsaid:
    """In place of a seed that the program does not say. None is something else: it asks for one that is drawn."""

    def __repr__(self) -> str:
        return "0"


UNSAID: Any = _Unsaid()


def _seed(value: object) -> object:
    if not isinstance(value, str):
        return value
    torch = sys.modules.get("torch")
    if value != "torch":
        raise OptionError(f"seed: {value!r}; a whole number, \"torch\" for the seed of torch.manual_seed(), or None "
                          f"for one that is drawn")
    if torch is None:
        raise OptionError("seed: \"torch\" is the seed of torch.manual_seed(), and torch is not imported: give "
                          "a number")
    return int(torch.initial_seed())


def _indices(value: Any) -> Any:
    try:
        array = numpy.asarray(value if hasattr(value, "__array__") else list(value))
    except TypeError:
        raise OptionError(f"indices: {type(value).__name__}; a list or an array of the numbers of samples is "
                          f"needed") from None
    if array.shape == (0,):
        raise OptionError("indices: the list is empty, and an epoch needs at least one sample; None is all samples")
    if array.dtype == bool:
        raise OptionError("indices: the array is a mask of bools: write indices=numpy.flatnonzero(mask)")
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise OptionError(f"indices: its shape is {list(array.shape)} and its dtype {array.dtype}; a list of whole "
                          f"numbers, at least one, is needed")
    return array


def completed(state: Optional[Dict[str, Any]], indices: object, columns: Optional[Mapping[str, Any]],
              **given: Any) -> Dict[str, Any]:
    """The options of DEFAULTS, and columns. None in `given` means that the program does not say it; of the seed, UNSAID
    does, and None is that of the state, or else one that is drawn."""
    if indices is not None:
        if given["sampler"] is not None:
            raise OptionError("indices and sampler exclude each other: indices are the sampler subset(column=indices)")
        given["sampler"] = f"subset(column={INDICES})"
        columns = {**(columns or {}), INDICES: _indices(indices)}
    told = _state.order_of(state) if state is not None else {}
    is_drawn = given["seed"] is None and "seed" not in told
    given["seed"] = secrets.randbits(63) if is_drawn else None if given["seed"] is UNSAID else given["seed"]
    order = {name: told.get(name, default) if given[name] is None else given[name]
             for name, default in DEFAULTS.items()}
    order["seed"] = _seed(order["seed"])
    return {**order, "columns": columns, "is_seed_drawn": is_drawn}
