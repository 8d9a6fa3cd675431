"""Who owns what, until when.

    array -> Memory -> Lease -> Handle

A Handle is the library's loader. A Lease is one batch's slot. A Memory is a piece of a slot that an array was made of;
the array has it as its base, and so has whatever is made of the array: slices, torch.from_numpy(), DLPack capsules.
Each keeps the next one alive and nothing points back, so that reference counting is sufficient: when the last array
of a batch and the batch itself are gone the slot goes back, when the last lease of a closed loader is gone its memory
does.

A batch is *delivered* by one store (`handle.out.value = None`): before it the slot belongs to the handle, which offers
it again if a signal's exception came in between, and a lease that dies gives nothing back.

Python may run a signal handler at the beginning of a destructor, and its exception then ends the destructor. So what
was delivered is recorded in `handle.leases`, and sweep() releases slots that no longer have a lease."""
from __future__ import annotations

import ctypes
import functools
import os
import threading
import weakref
from typing import Any, Dict, List, Optional, Tuple

import numpy

from ._errors import ForkedLoader, LoaderClosed
from ._library import Info, Library
from ._waiting import Teller

# dlc_dtype -> NumPy's spelling. Encoded bytes are uint8. NumPy has no bfloat16: bfloat16() of _batches/convert.py marks
# its 16 bits.
TYPES = ("|u1", "|u1", "<i4", "<i8", "<f2", "<u2", "<f4", "<f8", "|b1", "|i1", "<i2", "<u2", "<u4", "<u8")
TEXT = 14  # a dtype
TEXTS = 15
BFLOAT16 = 5
ABSENT = 2**64 - 1  # the offset of a ragged sample that does not have the field

_call = functools.partial.__call__


class _Forks:
    """How many forks lie between this process and the one that imported the package."""

    n = 0

    @classmethod
    def count(cls) -> None:
        cls.n += 1


os.register_at_fork(after_in_child=_Forks.count)


class Handle:
    """The library's loader of one rank. It is closed when nothing refers to it any more."""

    __slots__ = ("library", "pointer", "out", "out_reference", "info", "refusal", "detached", "leases", "ending",
                 "forks", "teller", "freed", "released_by", "device", "crew", "__weakref__")

    def __init__(self, library: Library, pointer: int) -> None:
        self.library = library
        self.pointer = pointer
        self.out = ctypes.c_void_p()  # the batch that dlc_next() returned and that is not delivered yet
        self.out_reference = ctypes.byref(self.out)
        self.info: Info = library.get_info(pointer).contents  # lives as long as the pointer; some of it changes
        self.refusal: Optional[str] = None  # why it cannot be used any more
        self.detached = False
        self.leases: Dict[object, Tuple[weakref.ref[Lease], int]] = {}  # delivered and not released: lease, address
        self.ending = self.ending_by(functools.partial(library.quick.release, pointer))
        self.forks = _Forks.n
        self.teller: Optional[Teller] = None  # the library tells it what it waits for
        self.freed: Any = None  # a queue: a thread waits for a slot (_slots.py)
        self.released_by: Optional[int] = None  # the thread that released a slot last
        self.crew: Any = None  # a weak reference to its worker processes: _own.crew.Crew
        self.device: Any = None  # the batches go to a GPU: _device.device.Device

    @property
    def is_here(self) -> bool:
        """Was it opened in this process, and not before a fork()?"""
        return self.forks == _Forks.n

    def check_here(self) -> None:
        """Raises in the child of a fork(): the memory of held batches is not mapped there."""
        if self.forks != _Forks.n:
            raise ForkedLoader("this loader was opened before a fork(): only the parent can use it. Open one in the "
                               "child instead")

    def check(self) -> None:
        """Raises if the handle cannot be used here and now."""
        self.check_here()
        if self.refusal is not None:
            raise LoaderClosed(self.refusal)

    def look_at_crew(self) -> None:
        """Between two slices of a wait: the daemon may have restarted, and the worker processes need to know."""
        crew = self.crew() if self.crew is not None else None
        if crew is not None:
            crew.look(self.info)

    def refuse(self, why: str) -> None:
        """From now on check() raises; a thread that waits for a batch notices within its slice."""
        if self.refusal is None:
            self.refusal = why

    def raise_trouble(self) -> None:
        """What happened in a function that the library called while it waited."""
        if self.teller is not None:
            self.teller.raise_trouble()

    def end_bar(self) -> None:
        """The wait is over."""
        if self.teller is not None:
            self.teller.bar.end()

    def detach(self) -> None:
        """Releases the rank; nobody is using the handle. Arrays that are alive stay as they are."""
        if not self.detached:
            self.detached = True
            if self.forks == _Forks.n:
                if self.device is not None and not self.is_held():
                    self.device.close()
                self.library.detach(self.pointer)

    def ending_by(self, release: functools.partial[int]) -> Tuple[functools.partial[Any], functools.partial[Any]]:
        """What give_back() calls, in this sequence."""
        return functools.partial(self.leases.pop), release

    def held(self) -> List[Lease]:
        """The leases of batches that are alive, themselves or an array of them."""
        return [lease for lease in [reference() for reference, _ in list(self.leases.values())] if lease is not None]

    def is_held(self) -> bool:
        return len(self.held()) > 0

    def __del__(self) -> None:
        """The garbage collector may end it before the leases of batches that were unreachable together with it: their
        slots went with the memory."""
        self.leases.clear()
        if self.pointer and self.device is not None:
            self.device.leave(self.pointer)
        elif self.pointer:
            self.library.quick.close(self.pointer)  # in a child this frees only the copy


class Lease:
    """Holds one slot. `views` are the arrays over its memory, each with its field."""

    __slots__ = ("handle", "address", "token", "epoch", "step", "views", "__weakref__")

    def __init__(self, handle: Handle, address: int, epoch: int, step: int) -> None:
        self.handle = handle
        self.address = address
        self.token = object()  # its key: another batch has the same address later
        self.epoch = epoch
        self.step = step
        self.views: List[Tuple[weakref.ref[Any], str]] = []

    @property
    def label(self) -> str:
        return f"batch {self.step} of epoch {self.epoch}"

    def fields(self) -> List[str]:
        """The field of each array that is alive."""
        return [field for memory, field in self.views if memory() is not None]

    @property
    def released(self) -> bool:
        return self.token not in self.handle.leases

    def release(self) -> None:
        """Releases the slot, once. Before it was delivered it is not ours to release."""
        if not self.released:
            give_back(self.handle, self.token, self.address)

    def __del__(self) -> None:
        if give_back is None:  # the interpreter ends and has taken this module down, while a daemon thread had a batch
            return
        try:
            self.release()
        except AttributeError:  # a signal's exception kept it from being made
            pass


def give_back(handle: Handle, token: object, address: int) -> None:
    """Releases a slot and removes it from the list. Both steps are C functions that map() calls: no signal comes
    between. Of several threads that do it the one that removes it releases: without a lock of the interpreter the
    slot may be another batch's as soon as it is released."""
    try:
        list(map(_call, handle.ending, (token, address)))
    except KeyError:  # another thread has done it
        return
    handle.released_by = threading.get_ident()
    if handle.freed is not None:
        handle.freed.put(None)


def deliver(lease: Lease) -> None:
    """From here on the lease owns the slot."""
    lease.handle.leases[lease.token] = weakref.ref(lease), lease.address
    lease.handle.out.value = None


def sweep(handle: Handle) -> None:
    """Releases slots whose lease died without releasing them."""
    for token, (reference, address) in list(handle.leases.items()):
        if reference() is None:
            give_back(handle, token, address)


class Memory:
    """A piece of a slot for NumPy, which keeps this object alive as long as an array uses the memory."""

    __slots__ = ("lease", "__array_interface__", "__weakref__")

    def __init__(self, lease: Lease, field: str, data: int, kind: str, shape: Tuple[int, ...],
                 strides: Optional[Tuple[int, ...]]) -> None:
        self.lease = lease
        self.__array_interface__ = {"version": 3, "data": (data, False), "typestr": kind, "shape": shape,
                                    "strides": strides}
        lease.views.append((weakref.ref(self), field))


def view(lease: Lease, field: str, data: int, dtype: int, shape: Tuple[int, ...],
         strides: Optional[Tuple[int, ...]] = None) -> Any:
    """An array over the slot's own memory, writable; the slot stays held while it lives."""
    return numpy.asarray(Memory(lease, field, data, TYPES[dtype], shape, strides))


def column(address: int, n: int) -> Any:
    """A copy of the n int64 at the address, as an array."""
    return numpy.frombuffer(ctypes.string_at(address, 8 * n), dtype=numpy.int64).copy()


def held_by(leases: List[Lease]) -> str:
    """For people: which batches hold slots, and by how many arrays each."""
    parts = []
    for lease in sorted(leases, key=lambda lease: lease.label):
        fields = lease.fields()
        parts.append(f"{lease.label} ({len(fields)} array{'s' if len(fields) > 1 else ''}: "
                     f"{', '.join(sorted(set(fields)))})" if fields else f"{lease.label} (the batch itself)")
    return "; ".join(parts)
