"""The generators of random numbers that a function or a Dataset object owns: found once, seeded before each sample.

They are searched where code can name them: attributes and items, closures, defaults, what a method belongs to, the
globals that a function names, and so on from these, the nearest first. What a generator draws for a sample follows from
the sample's 128 bits (draws.py) and from the way that leads to it, so it is the same in each process and differs from
what the next generator draws. Libraries that draw from the common generators are not searched."""
from __future__ import annotations

import collections
import functools
import gc
import hashlib
import itertools
import random
import re
import sys
import types
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Set, Tuple

import numpy

OBJECTS_MAX = 20000     # that a search looks at
ITEMS_MAX = 1000        # of a list or dict
GENERATORS_MAX = 64     # that are seeded: each costs microseconds a sample
_BITS = 2**128 - 1
_UNORDERED = "{...}"    # ends or is within the way to what has no order that is the same in each process
_PLAIN = (str, bytes, bytearray, int, float, complex, type(None), numpy.generic, types.CodeType)
_CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque)
_CACHED = type(functools.lru_cache(maxsize=1)(len))
_NOT_SEARCHED = frozenset(getattr(sys, "stdlib_module_names", ("builtins", "random", "functools", "collections"))) | {
    "numpy", "torch", "torchvision", "torchaudio", "PIL", "cv2", "scipy", "dlclient"}
_LIKE_ONE = re.compile(r"(Generator|RandomState|Random|RNG|Rng)$")

Seeder = Callable[[int], object]    # takes the sample's 128 bits
Way = Tuple[str, Any]               # to an object: how it is called, and the object


# ---- of each kind

def _pcg64(bits: Any, salt: int) -> Seeder:
    inner = {"state": 0, "inc": salt | 1}
    state = {**bits.state, "state": inner, "has_uint32": 0, "uinteger": 0}

    def seed(number: int) -> None:
        inner["state"] = number ^ salt
        bits.state = state
    return seed


def _mt19937(bits: Any, salt: int) -> Seeder:
    seed_it = numpy.random.RandomState(bits).seed
    return lambda number: seed_it((number ^ salt) & 0xffffffff)


def _of_words(bits: Any, words: Any, state: Any, salt: int) -> Seeder:
    """The state has an array of four words, and all that it has beside is fixed."""
    def seed(number: int) -> None:
        number ^= salt
        words[0], words[1], words[2], words[3] = salt & 2**64 - 1, salt >> 64, number & 2**64 - 1, number >> 64
        bits.state = state
    return seed


def _philox(bits: Any, salt: int) -> Seeder:
    words = numpy.zeros(4, numpy.uint64)
    key = numpy.array([salt & 2**64 - 1, salt >> 64], numpy.uint64)
    state = {**bits.state, "state": {"counter": words, "key": key}, "buffer_pos": 4, "has_uint32": 0, "uinteger": 0}
    return _of_words(bits, words, state, 0)


def _sfc64(bits: Any, salt: int) -> Seeder:
    words = numpy.zeros(4, numpy.uint64)
    return _of_words(bits, words, {**bits.state, "state": {"state": words}, "has_uint32": 0, "uinteger": 0}, salt)


_BIT_GENERATORS: Dict[str, Callable[[Any, int], Seeder]] = {
    "PCG64": _pcg64, "PCG64DXSM": _pcg64, "MT19937": _mt19937, "Philox": _philox, "SFC64": _sfc64}


def _random_state(state: Any, salt: int) -> Optional[Seeder]:
    """It keeps the second of two normal numbers, which belongs to the sample before."""
    bits = state._bit_generator
    if type(bits).__name__ == "MT19937":
        return lambda number: state.seed((number ^ salt) & 0xffffffff)
    make = _BIT_GENERATORS.get(type(bits).__name__)
    if make is None:
        return None
    seed_bits = make(bits, salt)

    def seed(number: int) -> None:
        seed_bits(number)
        state.set_state({**bits.state, "has_gauss": 0, "gauss": 0.0})
    return seed


def _seeder_of_bits(bits: Any, salt: int) -> Optional[Seeder]:
    make = _BIT_GENERATORS.get(type(bits).__name__)
    return make(bits, salt) if make is not None else None


def _is_torchs(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(type(value), torch.Generator)


def is_generator(value: Any) -> bool:
    """Of a kind that is known, or one that looks like a generator and shows nothing of itself."""
    kind = type(value)
    if issubclass(kind, (numpy.random.Generator, numpy.random.RandomState, numpy.random.BitGenerator, random.Random)):
        return True
    if _is_torchs(value):
        return True
    return bool(_LIKE_ONE.search(kind.__name__)) and not issubclass(kind, (type, types.GeneratorType)) and (
        hasattr(kind, "seed") or hasattr(kind, "manual_seed") or hasattr(kind, "random")) and not _attributes(value)


def _seeder(generator: Any, way: str) -> Optional[Seeder]:
    """None: it cannot be seeded."""
    salt = int.from_bytes(hashlib.blake2b(way.encode("utf-8", "surrogateescape"), digest_size=16).digest(), "little")
    if isinstance(generator, numpy.random.Generator):
        return _seeder_of_bits(generator.bit_generator, salt)
    if isinstance(generator, numpy.random.RandomState):
        return _random_state(generator, salt)
    if isinstance(generator, numpy.random.BitGenerator):
        return _seeder_of_bits(generator, salt)
    if isinstance(generator, random.Random):
        return None if isinstance(generator, random.SystemRandom) else lambda number: generator.seed(number ^ salt)
    if _is_torchs(generator) and generator.device.type == "cpu":
        return lambda number: generator.manual_seed((number ^ salt) & 2**63 - 1)
    return None


# ---- where they are

def _attributes(value: Any) -> Dict[str, Any]:
    """Without running code of the object's."""
    found: Dict[str, Any] = {}
    try:
        found.update(object.__getattribute__(value, "__dict__"))
    except Exception:   # __dict__ may be a property of the program's
        pass
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            descriptor = kind.__dict__.get(name)
            if type(descriptor) is types.MemberDescriptorType:
                try:
                    found[name] = descriptor.__get__(value)
                except AttributeError:
                    pass
    return found


def _is_searched(thing: Any) -> bool:
    """Is the code of this class or function the program's own, or of a library that may own generators?"""
    return str(getattr(thing, "__module__", None) or "builtins").partition(".")[0] not in _NOT_SEARCHED


def _names_of(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_of(constant)


def _imported_in(names: List[str], space: Dict[str, Any]) -> Iterator[Way]:
    """Modules that a function imports by itself."""
    for name in names:
        module = sys.modules.get(name)
        if type(module) is types.ModuleType and name not in space and name.partition(".")[0] not in _NOT_SEARCHED:
            yield from _named_in(names, vars(module), f"{name}.", 2)


def _named_in(names: List[str], space: Dict[str, Any], before: str, depth: int) -> Iterator[Way]:
    for name in names:
        if name in space:
            value = space[name]
            if type(value) is not types.ModuleType:
                yield before + name, value
            elif depth and value.__name__.partition(".")[0] not in _NOT_SEARCHED:
                yield from _named_in(names, vars(value), f"{before}{name}.", depth - 1)


def _of_function(way: str, function: types.FunctionType) -> Iterator[Way]:
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        try:
            yield f"{way}.{name}", cell.cell_contents
        except ValueError:
            pass    # not set yet
    defaults = function.__defaults__ or ()
    first = code.co_argcount - len(defaults)
    yield from ((f"{way}.{code.co_varnames[first + i]}", value) for i, value in enumerate(defaults))
    others = {**(function.__kwdefaults__ or {}), **vars(function)}
    yield from ((f"{way}.{name}", value) for name, value in others.items())
    if _is_searched(function):
        names = list(dict.fromkeys(_names_of(code)))
        yield from _named_in(names, function.__globals__, "", 3)
        yield from _imported_in(names, function.__globals__)


def _of_container(way: str, value: Any) -> Iterator[Way]:
    """Of a set all have one way: their order differs between processes. Another thread may change it meanwhile."""
    base: Any = next(base for base in _CONTAINERS if issubclass(type(value), base))
    try:    # without running code of a class of the program's
        items = list(itertools.islice(dict.items(value) if base is dict else base.__iter__(value), ITEMS_MAX))
    except RuntimeError:
        return
    if base in (set, frozenset):
        yield from ((f"{way}{_UNORDERED}", item) for item in items)
    else:
        for key, item in items if base is dict else enumerate(items):
            yield f"{way}[{key!r}]" if isinstance(key, (int, str)) else f"{way}[...]", item


def _beyond(way: str, value: Any) -> Iterator[Way]:
    """What can be reached from an object, in one step."""
    kind = type(value)
    if issubclass(kind, _CONTAINERS):
        yield from _of_container(way, value)
    if kind is types.FunctionType:
        yield from _of_function(way, value)
    elif issubclass(kind, functools.partial):
        yield from ((way, value.func), (way, value.args), (way, value.keywords))
    elif kind in (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType):
        yield way, value.__self__
        yield way, getattr(value, "__func__", None)
    elif kind in (staticmethod, classmethod):
        yield way, value.__func__
    elif kind is property:
        yield way, value.fget
    elif kind is types.GeneratorType:
        frame = value.gi_frame
        yield from ((f"{way}.{name}", found) for name, found in (frame.f_locals if frame else {}).items())
    elif issubclass(kind, _CACHED):     # what it remembers is seen by the collector alone
        yield from ((way if found is getattr(value, "__wrapped__", None) else f"{way}{_UNORDERED}", found)
                    for found in gc.get_referents(value))
    elif issubclass(kind, numpy.ndarray):   # the code of a class of the program's is not run, and no large one copied
        items = numpy.ndarray.view(value, numpy.ndarray).flat
        yield from _of_container(way, list(itertools.islice(items, ITEMS_MAX)))
    elif issubclass(kind, type):
        if _is_searched(value):
            yield from ((f"{way}.{name}", found) for name, found in vars(value).items())
    elif kind is not types.ModuleType and kind.__module__.partition(".")[0] != "dlclient":
        yield from ((f"{way}.{name}", found) for name, found in _attributes(value).items())
        yield from ((way, one) for one in kind.__mro__ if _is_searched(one))


def _common() -> List[Any]:
    """Those that draws.py seeds."""
    torch = sys.modules.get("torch")
    found = [getattr(random, "_inst", None), getattr(numpy.random, "mtrand")._rand]
    return found if torch is None else found + [torch.default_generator]


def _is_plain(value: Any) -> bool:
    kind = type(value)
    return issubclass(kind, _PLAIN) or (issubclass(kind, numpy.ndarray) and value.dtype != object)


def search(way: str, root: Any) -> Iterator[Way]:
    """All generators that can be reached, the nearest first, each once."""
    waiting: Deque[Way] = collections.deque([(way, root)])
    kept: List[Any] = _common()     # so that no other object gets the number of one that was seen
    seen: Set[int] = set(map(id, kept))
    while waiting and len(kept) < OBJECTS_MAX:
        way, value = waiting.popleft()
        if _is_plain(value) or id(value) in seen:
            continue
        seen.add(id(value))
        kept.append(value)
        if is_generator(value):
            yield way, value
        else:
            waiting.extend(_beyond(way, value))


class Owned:
    """Those of one function or Dataset object."""

    def __init__(self, way: str, root: Any) -> None:
        self._way = way
        self._root = root
        self._seen: Dict[int, Any] = {}
        self._ways: Set[str] = set()
        self.seeders: List[Seeder] = []
        self.unknown: List[str] = []    # what cannot be seeded, in words
        self.is_settled = False         # a sample was made since, and brought no other ones
        self.look()

    def look(self) -> bool:
        """Searches. Has it found others?"""
        n = len(self.seeders)
        for way, generator in search(self._way, self._root):
            if id(generator) in self._seen:
                continue
            self._seen[id(generator)] = generator
            is_one_of_several = _UNORDERED in way and way in self._ways
            while way in self._ways:
                way += "'"
            self._ways.add(way)
            is_known = len(self.seeders) < GENERATORS_MAX and not is_one_of_several
            seeder = _seeder(generator, way) if is_known else None
            if seeder is not None:
                self.seeders.append(seeder)
            elif len(self.unknown) < 4:
                more = "" if len(self.seeders) < GENERATORS_MAX else f", after {GENERATORS_MAX} others"
                self.unknown.append(f"{way} ({type(generator).__module__}.{type(generator).__qualname__}{more})")
        return len(self.seeders) > n

    def seed(self, number: int) -> None:
        for seeder in self.seeders:
            seeder(number)


def kept_state(way: str, root: Any) -> List[Callable[[], None]]:
    """Functions that give the generators of an object back the states that they have now."""
    undo: List[Callable[[], None]] = []
    for _, one in search(way, root):
        if isinstance(one, random.SystemRandom):
            continue
        if isinstance(one, numpy.random.Generator):
            one = one.bit_generator
        if isinstance(one, numpy.random.BitGenerator):
            undo.append(functools.partial(setattr, one, "state", one.state))
        elif isinstance(one, numpy.random.RandomState):
            undo.append(functools.partial(one.set_state, one.get_state(legacy=False)))
        elif isinstance(one, random.Random):
            undo.append(functools.partial(one.setstate, one.getstate()))
        elif _is_torchs(one):
            undo.append(functools.partial(one.set_state, one.get_state()))
    return undo
