"""A function that gets several fields of a sample, by the names of its parameters, and changes or returns them."""
from __future__ import annotations

import abc
import inspect
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Sequence, Tuple

import numpy

from .kinds import Unfit, check_dtype, of_tensor
from .room import Misfit, Room

GIVEN = ("rng", "sample", "epoch")          # parameters that a function may have beside its fields,
GIVEN_WHOLE = ("rng", "samples", "epoch")   # and one that gets whole batches


class Wrong(Exception):
    """What a function returned cannot be taken, or it cannot be called so."""


def form_of(array: Any) -> str:
    """As a pipeline has it: float32[3:224:224]."""
    if isinstance(array, Room):
        return array.form
    return f"{array.dtype}[{':'.join(str(n) for n in array.shape)}]"


def of_single(parameters: Iterable[inspect.Parameter]) -> None:
    """Raises Wrong if a function that gets whole batches wants what only a single sample has."""
    if any(parameter.name == "sample" and parameter.default is parameter.empty for parameter in parameters):
        raise Wrong("it has the parameter sample, and with batch=true it gets a whole batch: the numbers of its "
                    "samples are the parameter samples, an int64 array [n]")


def is_in_place(given: Any, output: Any, place: Any) -> bool:
    """Is what a function returned, which is the array that it was given, what it changed there? `place`: a view of it
    from before the call, since the function may have set its shape or dtype; if `output` is not None, that."""
    if output is not None:
        return not isinstance(output, Room)
    return bool(given.shape == place.shape and given.strides == place.strides and given.dtype == place.dtype)


class Writer(abc.ABC):
    """What makes samples by their numbers and writes all fields of its part itself: from_dataset()."""

    dataset: Any

    @abc.abstractmethod
    def write(self, sample: int, outs: Sequence[Any]) -> None: ...


class Several:
    """What a function wants of the fields of a part of a pipeline, which has this name for it."""

    def __init__(self, name: str, function: Callable[..., Any], fields: Sequence[str], whole: bool = False) -> None:
        self.name = name
        self.function = function
        self.fields = tuple(fields)
        self._whole = whole
        given = GIVEN_WHOLE if whole else GIVEN
        self.wants: Tuple[str, ...] = ()    # of GIVEN
        self.takes: Tuple[str, ...] = ()    # of the fields, in the sequence of a tuple that it returns
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            raise Wrong(f"its parameters are not known, and the part names {self._listed()}: write a function that has "
                        f"parameters with these names and calls it") from None
        if whole and "sample" not in fields:
            of_single(parameters)
        takes, takes_all = [], False
        for parameter in parameters:
            takes_all |= parameter.kind is parameter.VAR_KEYWORD
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            if parameter.name in fields and parameter.kind is not parameter.POSITIONAL_ONLY:
                takes.append(parameter.name)
            elif parameter.name in given:
                self.wants += (parameter.name,)
            elif parameter.default is parameter.empty:
                raise Wrong(f"it has the parameter {parameter.name}, and the part names {self._listed()}: a function "
                            f"that gets several fields has parameters with the fields' names. Rename the parameter, or "
                            f"the field, as in \"{self._example(parameter.name)}\"")
        both = [field for field in takes if field in given]
        if both:
            raise Wrong(f"a field is called {both[0]}, and a parameter of this name is something else: give the field "
                        f"another name, as in \"{self._example('its_' + both[0], both[0])}\"")
        self.takes = tuple(fields) if takes_all else tuple(takes)

    def _listed(self) -> str:
        return ", ".join(self.fields)

    def _example(self, name: str, field: Optional[str] = None) -> str:
        renamed = field or next((field for field in self.fields if not field.isidentifier()), self.fields[0])
        return f"{', '.join(f'{name}={field}' if field == renamed else field for field in self.fields)}: ..."

    def apply(self, arrays: Mapping[str, Tuple[Any, Any]], more: Mapping[str, Any]) -> None:
        """`arrays`: what is given of each field, and where it is to go if that is another place."""
        places = {field: given.view() if output is None else output for field, (given, output) in arrays.items()}
        result = self.function(**{field: arrays[field][0] for field in self.takes}, **more)
        results = self._by_field(result)
        if len(results) > 1:
            self._set_apart(results, arrays)
        for field in self.fields:
            given, output = arrays[field]
            self._deliver(field, results.get(field), given, output, places[field])

    def _by_field(self, result: Any) -> Dict[str, Any]:
        if result is None:
            return {}
        if isinstance(result, Mapping):
            for name in result:
                if name not in self.fields:
                    raise Wrong(f"returned a dict with {name!r}, and the part names {self._listed()}: return these, or "
                                f"those of them that are not changed in place")
            return dict(result)
        if not isinstance(result, (tuple, list)) or len(result) != len(self.takes):
            what = f"{len(result)} results" if isinstance(result, (tuple, list)) else f"a {type(result).__name__}"
            raise Wrong(f"returned {what}, and gets {', '.join(self.takes) or 'no field'}: return a tuple of as many, "
                        f"in this sequence, or a dict such as {{\"{self.fields[0]}\": array}}, or change them in place")
        return dict(zip(self.takes, result))

    @staticmethod
    def _set_apart(results: Dict[str, Any], arrays: Mapping[str, Tuple[Any, Any]]) -> None:
        """What was returned of one field may lie in the array of another, as where two are exchanged: it is copied
        before that is written to."""
        for field, result in results.items():
            if not hasattr(result, "__array__") or result is arrays[field][0]:
                continue
            for other, (place, output) in arrays.items():
                if other == field or output is not None or results.get(other) is None or results[other] is place:
                    continue
                array = _array_of(result, f"field {field}: ")
                if numpy.may_share_memory(array, place):
                    results[field] = array.copy()
                    break

    def _deliver(self, field: str, result: Any, given: Any, output: Any, place: Any) -> None:
        if result is None or (result is given and is_in_place(given, output, place)):
            if output is not None:
                what = "it was not returned" if result is None else "its input was returned"
                form = form_of(output[0]) + " of each sample" if self._whole else form_of(output)
                raise Wrong(f"field {field}: {what}, and what is delivered has another form: return {form}")
            return
        more = ", batch=true" if self._whole else ""
        put(result, place, f"field {field}: ",
            lambda array: f"python({self.name}, {field}={form_of(array)}{more})", self._whole)


def put(result: Any, output: Any, where: str, hint: Callable[[Any], str], whole: bool = False) -> None:
    """Copies what a function returned to where the daemon wants it. `hint`: what to write to get such an array, of a
    single sample."""
    if isinstance(output, Room):
        try:
            text = output.text_of(result)
            output.put(_array_of(result, where) if text is None else text, hint)
        except Misfit as misfit:
            raise Wrong(f"{where}what was returned {misfit}") from None
        return
    array = _array_of(result, where)
    if whole and array.shape[:1] != output.shape[:1]:
        raise Wrong(f"{where}returned {array.dtype} {array.shape}, and the batch has {len(output)} samples: return "
                    f"{output.dtype} {output.shape}")
    if whole and (array.shape != output.shape or array.dtype != output.dtype):
        _refuse(array, output, where, lambda all_samples: hint(all_samples[0]))
    if array.shape != output.shape or array.dtype != output.dtype:
        _refuse(array, output, where, hint)
    output[...] = array


def _array_of(result: Any, where: str) -> Any:
    try:
        if not hasattr(result, "detach"):
            array = numpy.asarray(result)
            return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
        array, dtype = of_tensor(result)
    except Unfit as unfit:
        raise Wrong(f"{where}what it returned {unfit}") from None
    except ValueError as error:
        raise Wrong(f"{where}what it returned, a {type(result).__name__}, cannot be an array ({error})") from None
    if dtype == "bfloat16":  # a field of uint16 would take them for numbers
        raise Wrong(f"{where}what it returned is a tensor of bfloat16, which NumPy does not have: return its bits as "
                    "uint16, .view(torch.int16).numpy().view(\"uint16\"), for a field that is declared as bfloat16")
    return array


def _refuse(array: Any, output: Any, where: str, hint: Callable[[Any], str]) -> None:
    try:
        check_dtype(array.dtype)
    except Unfit as unfit:
        raise Wrong(f"{where}what it returned {unfit}") from None
    what = f"write {hint(array)}, or convert it"
    if 0 in array.shape:
        what = "an array without elements cannot be delivered"
    raise Wrong(f"{where}returned {array.dtype} {array.shape}, and {output.dtype} {output.shape} is declared: {what}")
