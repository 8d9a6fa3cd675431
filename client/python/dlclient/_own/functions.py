"""The functions that a loader is given, and how one is applied to a sample."""
from __future__ import annotations

import ctypes
import difflib
import inspect
import os
import sys
import traceback
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, cast

import numpy

from .._errors import OptionError
from .._lease import TYPES
from .._pipeline import steps_of
from .begin import Function
from .draws import Draws
from .generators import Owned
from .room import Room
from .several import GIVEN, GIVEN_WHOLE, Several, Writer, Wrong, is_in_place, of_single, put

PLACES_SHOWN = 3

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


def init_of(value: object, functions: Dict[str, Function]) -> Optional[Callable[[int], Any]]:
    """The loader's option worker_init_fn."""
    if value is None:
        return None
    if not callable(value):
        raise OptionError(f"worker_init_fn: {value!r} cannot be called; expected a function of one parameter, the "
                          f"number of the worker process")
    if not functions:
        raise OptionError("worker_init_fn: this loader has no worker processes of Python, only workers={...} and "
                          "from_dataset() have some: leave it out. Random draws depend on seed, epoch and sample alone")
    return value


def owned_by(name: str, function: Function) -> Owned:
    """The generators of a function of this name; of from_dataset() those of the object."""
    root: Any = function
    return Owned(name, root.dataset if isinstance(root, Writer) else root)


def doubts(functions: Dict[str, Function], start: str) -> List[str]:
    """What is to be said of the generators that functions own, before anything is drawn."""
    lines = []
    for name, function in functions.items():
        owned = owned_by(name, function)
        if start == "threads" and owned.seeders:
            lines.append(f"{name} draws from generators of its own, which all threads share: its numbers depend on "
                         f"which thread comes first. Draw from the parameter rng, or take worker_start=\"fork\"")
        elif owned.unknown:
            lines.append(f"{name} has generators of random numbers that cannot be seeded for each sample: "
                         f"{', '.join(owned.unknown)}. Processes may draw the same numbers, and another run other "
                         f"ones: draw from the parameter rng of a function, or from dlclient.sample_rng(), from "
                         f"numpy.random.Generator, random.Random or a torch.Generator of the CPU")
    return lines


def _takes_rng(function: Function) -> bool:
    try:
        return not isinstance(function, Writer) and "rng" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def needed(functions: Dict[str, Function], pipeline: str) -> None:
    """Does the loader have what its pipeline names, and nothing else?"""
    named = list(dict.fromkeys(step[1] for step in steps_of(pipeline) if step[0] == "python"))
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


def _each(given: Any, do: Callable[..., Any], *others: Any) -> Any:
    """Of what a function is given: an array, or a list of one for each sample."""
    return [do(*ones) for ones in zip(given, *others)] if isinstance(given, list) else do(given, *others)


def _copy(array: Any) -> Any:
    return array.copy()


def _set(array: Any, values: Any) -> None:
    array[...] = values


class Applier:
    """Applies functions, in one worker process or one thread of it."""

    def __init__(self, functions: Dict[str, Function], is_thread: bool = False) -> None:
        self._calls = {name.encode(): Call(function) for name, function in functions.items()}
        self._several: Dict[Tuple[bytes, Tuple[str, ...]], Several] = {}
        self._whole_calls: Dict[bytes, Call] = {}  # of functions that get whole batches, likewise the next
        self._whole_several: Dict[Tuple[bytes, Tuple[str, ...]], Several] = {}
        self._draws = Draws(is_thread)
        self._is_thread = is_thread  # generators that a function owns belong to all of them
        self._owned: Dict[bytes, Owned] = {}

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

        def make(arrays: List[Any]) -> None:
            self._call_with_one(call, name.decode(), self._more(call.wants, seed, epoch, sample), arrays[0], output)
        self._make(name, (seed, epoch, sample), [given], make)

    def _make(self, name: bytes, place: Tuple[int, int, int], given: List[Any],
              make: Callable[[List[Any]], None]) -> None:
        """Calls a function, whose own generators are the sample's. What it makes of them at its first sample in this
        process is found after that: then the sample is made again. `place`: seed, epoch and sample."""
        owned = self._owned_by(name)
        if owned is None or owned.is_settled:
            if owned is not None and owned.seeders:
                owned.seed(self._draws.number(*place))
            make(given)
            return
        owned.seed(self._draws.number(*place))
        places, kept = [_each(one, lambda array: array.view()) for one in given], [_each(one, _copy) for one in given]
        make(given)
        if owned.look():
            for one, was in zip(places, kept):
                _each(one, _set, was)
            owned.seed(self._draws.number(*place))
            make(places)
        owned.is_settled = True

    def _owned_by(self, name: bytes) -> Optional[Owned]:
        if self._is_thread:
            return None
        owned = self._owned.get(name)
        if owned is None:
            owned = self._owned[name] = owned_by(name.decode(), self._call(name).function)
        return owned

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

    def write(self, name: bytes, writer: Writer, seed: int, epoch: int, sample: int, outs: Sequence[Any]) -> None:
        owned = self._owned_by(name)
        if owned is not None and owned.seeders:
            owned.seed(self._draws.number(seed, epoch, sample))
        self._draws.seed_all(seed, epoch, sample)
        writer.write(sample, outs)
        if owned is not None and not owned.is_settled:
            if owned.look():
                owned.seed(self._draws.number(seed, epoch, sample))
                self._draws.seed_all(seed, epoch, sample)
                writer.write(sample, outs)
            owned.is_settled = True

    def apply_to_several(self, name: bytes, seed: int, epoch: int, sample: int,
                         fields: Dict[str, Tuple[Any, Any]]) -> None:
        """The same for several fields, by the names under which the function gets them."""
        key = name, tuple(fields)
        several = self._several.get(key)
        if several is None:
            several = self._several[key] = Several(name.decode(), self._call(name).function, key[1])
        wants = several.wants
        self._make_several(several, name, (seed, epoch, sample), fields,
                           lambda: self._more(wants, seed, epoch, sample))

    def _make_several(self, several: Several, name: bytes, place: Tuple[int, int, int],
                      fields: Dict[str, Tuple[Any, Any]], more: Callable[[], Dict[str, Any]]) -> None:
        def make(arrays: List[Any]) -> None:
            placed = {field: (array, output) for array, (field, (_, output)) in zip(arrays, fields.items())}
            several.apply(placed, more())
        self._make(name, place, [given for given, _ in fields.values()], make)

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
            wants = several.wants
            self._make_several(several, name, (seed, epoch, int(samples[0])), fields,
                               lambda: self._more_whole(wants, seed, epoch, samples))
            return
        if name not in self._whole_calls:
            self._whole_calls[name] = Call(self._call(name).function, True)
        call = self._whole_calls[name]
        (given, output), = fields.values()

        def make(arrays: List[Any]) -> None:
            more = self._more_whole(call.wants, seed, epoch, samples)
            self._call_with_one(call, name.decode(), more, arrays[0], output, True)
        self._make(name, (seed, epoch, int(samples[0])), [given], make)
