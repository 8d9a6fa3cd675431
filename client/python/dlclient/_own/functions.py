"""The functions that a loader is given, and how one is applied to a sample."""
from __future__ import annotations

import ctypes
import difflib
import inspect
import os
import re
import sys
import traceback
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, cast

import numpy

from .._errors import OptionError
from .._lease import TYPES
from .draws import Draws
from .room import Room
from .several import GIVEN, GIVEN_WHOLE, Several, Writer, Wrong, is_in_place, of_single, put

Function = Callable[..., Any]

PLACES_SHOWN = 3

_NAME = re.compile(r"\bpython\(\s*([A-Za-z_][A-Za-z0-9_]*)")


def names_in(pipeline: str) -> List[str]:
    """The functions that a pipeline names, each once."""
    return list(dict.fromkeys(_NAME.findall(pipeline)))


def checked(workers: object) -> Dict[str, Function]:
    """The loader's option workers."""
    if workers is None:
        return {}
    if not isinstance(workers, Mapping):
        raise OptionError(f"workers: {workers!r}; expected the functions that the pipeline names, as in workers="
                          f"{{\"my\": function}} for python(my); their number of processes is n_workers")
    for name, function in workers.items():
        if not isinstance(name, str) or not name.isidentifier() or not name.isascii() or len(name) > 63:
            raise OptionError(f"workers: {name!r} cannot be the name of a function; expected letters, digits and _")
        if not callable(function):
            raise OptionError(f"workers: {name!r} is {function!r}, which cannot be called")
    return dict(workers)


def start_of(value: object, functions: Dict[str, Function]) -> str:
    """The loader's option worker_start. Without a global lock threads are the default, if all functions draw from their
    own generator: the common ones cannot be seeded for each of several threads."""
    if value is None:
        is_locked = getattr(sys, "_is_gil_enabled", lambda: True)()
        return "threads" if not is_locked and functions and all(map(_takes_rng, functions.values())) else "fork"
    if value not in ("fork", "spawn", "threads"):
        raise OptionError(f"worker_start: {value!r}; \"fork\", \"spawn\" and \"threads\" are allowed")
    return str(value)


def _takes_rng(function: Function) -> bool:
    try:
        return not isinstance(function, Writer) and "rng" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def needed(functions: Dict[str, Function], pipeline: str) -> None:
    """Does the loader have what its pipeline names, and nothing else?"""
    named = names_in(pipeline)
    for name in named:
        if name not in functions:
            near = difflib.get_close_matches(name, list(functions), 1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise OptionError(f"pipeline: python({name}) needs a function, and workers has none of this name{hint}; "
                              f"write workers={{\"{name}\": function}}")
    for name in functions:
        if name not in named:
            raise OptionError(f"workers: {name!r} is not in the pipeline {pipeline!r}; write python({name}) after the "
                              f"steps of a field, as in \"center_crop(224) python({name})\"")


class Call:
    """One function, with what it wants to be given."""

    def __init__(self, function: Function, whole: bool = False) -> None:
        self.function = function
        self.wants: Tuple[str, ...] = ()
        try:
            parameters = inspect.signature(function).parameters
        except (TypeError, ValueError):  # of some built-in functions nobody knows
            return
        others = list(parameters)[1:]
        if whole:
            of_single(parameters[name] for name in others)
        self.wants = tuple(name for name in others if name in (GIVEN_WHOLE if whole else GIVEN))


def place_of(error: BaseException) -> str:
    """Where it happened, the innermost place first: "a.py:12 in f, from a.py:30 in my"."""
    here = os.path.dirname(os.path.abspath(__file__))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if os.path.dirname(os.path.abspath(frame.filename)) != here]
    return places(frames)


def places(frames: Sequence[traceback.FrameSummary]) -> str:
    shown = [f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}" for frame in reversed(frames)]
    more = ["..."] if len(shown) > PLACES_SHOWN else []
    return ", from ".join(shown[:PLACES_SHOWN] + more)


def described(error: BaseException) -> str:
    """An exception in a line."""
    text = "".join(traceback.format_exception_only(type(error), error)).strip().replace("\n", "; ")
    where = place_of(error)
    return f"{text[:240]}, at {where}" if where else text[:300]


def as_array(address: int, dtype: int, shape: Tuple[int, ...]) -> Any:
    """An array of NumPy over the rank's memory."""
    kind = numpy.dtype(TYPES[dtype])
    n_bytes = kind.itemsize
    for n in shape:
        n_bytes *= n
    return numpy.ndarray(shape, kind, cast(Any, (ctypes.c_char * n_bytes).from_address(address)))


def _put(result: Any, output: Any, name: str, whole: bool = False) -> None:
    """Copies what a function of one field returned to where the daemon wants it."""
    def hint(array: Any) -> str:
        shape = ":".join(str(n) for n in array.shape)
        more = f", shape={shape}" if shape else ""
        return f"python({name}, dtype={array.dtype}{more}{', batch=true' if whole else ''})"
    put(result, output, "", hint, whole)


class Applier:
    """Applies functions, in one worker process or one thread of it."""

    def __init__(self, functions: Dict[str, Function], is_thread: bool = False) -> None:
        self._calls = {name.encode(): Call(function) for name, function in functions.items()}
        self._several: Dict[Tuple[bytes, Tuple[str, ...]], Several] = {}
        self._whole_calls: Dict[bytes, Call] = {}  # of functions that get whole batches, likewise the next
        self._whole_several: Dict[Tuple[bytes, Tuple[str, ...]], Several] = {}
        self._draws = Draws(is_thread)

    def _call(self, name: bytes) -> Call:
        call = self._calls.get(name)
        if call is None:
            raise Wrong("the trainer has no function of this name")
        return call

    def _more(self, wants: Tuple[str, ...], seed: int, epoch: int, sample: int) -> Dict[str, Any]:
        """What a function is given beside fields. Without a generator of its own it finds the common ones seeded."""
        if "rng" not in wants:
            self._draws.seed_all(seed, epoch, sample)
        more: Dict[str, Any] = {}
        for name in wants:
            more[name] = (self._draws.rng(seed, epoch, sample) if name == "rng"
                          else sample if name == "sample" else epoch)
        return more

    def apply(self, name: bytes, seed: int, epoch: int, sample: int, given: Any, output: Optional[Any]) -> None:
        """`output` None: the function changes the array in place, or returns another one of its form."""
        call = self._call(name)
        self._call_with_one(call, name.decode(), self._more(call.wants, seed, epoch, sample), given, output)

    def _call_with_one(self, call: Call, name: str, more: Dict[str, Any], given: Any, output: Optional[Any],
                       whole: bool = False) -> None:
        place = given.view() if output is None else output
        result = call.function(given, **more)
        if result is None or (result is given and is_in_place(given, output, place)):
            if output is not None:
                form = output.form if isinstance(output, Room) else f"{output.dtype} {output.shape}"
                raise Wrong(f"returned {'its input' if result is given else 'None'}, and what it delivers has another "
                            f"form than its input: return an array of {form}")
            return
        _put(result, place, name, whole)

    def writer_of(self, name: bytes) -> Optional[Writer]:
        """Does it write all fields itself?"""
        function = self._call(name).function
        return function if isinstance(function, Writer) else None

    def write(self, writer: Writer, seed: int, epoch: int, sample: int, outs: Sequence[Any]) -> None:
        self._draws.seed_all(seed, epoch, sample)
        writer.write(sample, outs)

    def apply_to_several(self, name: bytes, seed: int, epoch: int, sample: int,
                         fields: Dict[str, Tuple[Any, Any]]) -> None:
        """The same for several fields, by the names under which the function gets them."""
        key = name, tuple(fields)
        several = self._several.get(key)
        if several is None:
            several = self._several[key] = Several(name.decode(), self._call(name).function, key[1])
        several.apply(fields, self._more(several.wants, seed, epoch, sample))

    def _more_whole(self, wants: Tuple[str, ...], seed: int, epoch: int, samples: Any) -> Dict[str, Any]:
        """What is drawn belongs to the first sample of the batch."""
        more = self._more(tuple(want for want in wants if want != "samples"), seed, epoch, int(samples[0]))
        return {**more, "samples": samples} if "samples" in wants else more

    def apply_to_whole(self, name: bytes, seed: int, epoch: int, samples: Any,
                       fields: Dict[str, Tuple[Any, Any]]) -> None:
        """The same for a whole batch: what is given of a field is an array of all samples, or a list of theirs."""
        if len(fields) > 1:
            key = name, tuple(fields)
            several = self._whole_several.get(key)
            if several is None:
                several = self._whole_several[key] = Several(name.decode(), self._call(name).function, key[1], True)
            several.apply(fields, self._more_whole(several.wants, seed, epoch, samples))
            return
        call = self._whole_calls.get(name)
        if call is None:
            call = self._whole_calls[name] = Call(self._call(name).function, True)
        (given, output), = fields.values()
        more = self._more_whole(call.wants, seed, epoch, samples)
        self._call_with_one(call, name.decode(), more, given, output, True)
