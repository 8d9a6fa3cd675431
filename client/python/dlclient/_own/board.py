"""A piece of memory that the trainer, its foreman and its worker processes share. A place belongs to a
worker process, or to one of the threads of the only one.

The trainer writes where the daemon is and the ticket of its rank, which change when the daemon restarts. Each worker
process writes at which sample it is and since when, so that the foreman sees one that hangs, and the traceback of the
last function that failed, which the trainer shows with its exception: the daemon keeps a line of it only."""
from __future__ import annotations

import fcntl
import mmap
import os
import struct
import time
from typing import Iterator, Optional, Tuple

TRACEBACK_BYTES = 8192
_HEADER_BYTES = 8192
_NOTE = 4096            # of the header: what the foreman has to say to the trainer
_PLACE_BYTES = 4096 + TRACEBACK_BYTES
_TEXT = 1024            # of the header: where a text begins
_TEXT_BYTES = 3000
_AT = struct.Struct("<dQQQ")        # of a worker: since when, sample, epoch, orders so far
_THREAD = 128                       # of a worker: the kernel's number of its thread, if it is one of several
_BEAT = 16                          # of the header: when the main thread of a process with several was last at work
_FAILED = struct.Struct("<QQI")     # at 64: sample, epoch, bytes of the traceback
_GENERATION = struct.Struct("<QB")  # of the header: of the text, and whether the end is asked for


class Board:
    """`descriptor`: that of an existing one; None: a new one is made."""

    def __init__(self, n_workers: int, descriptor: Optional[int] = None) -> None:
        self.n_workers = n_workers
        size = _HEADER_BYTES + n_workers * _PLACE_BYTES
        if descriptor is None:
            descriptor = os.memfd_create("dlclient-workers", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(descriptor, size)
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)  # a function may truncate what is open
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, size)

    def close(self) -> None:
        """Only the descriptor: the memory goes with the object."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    # -- the trainer and the foreman

    def tell(self, socket: str, ticket: str) -> None:
        """There is a new ticket."""
        text = f"{socket}\n{ticket}".encode("utf-8", "surrogateescape")[:_TEXT_BYTES]
        generation, is_closing = _GENERATION.unpack_from(self._memory, 0)
        struct.pack_into("<I", self._memory, _TEXT, len(text))
        self._memory[_TEXT + 4:_TEXT + 4 + len(text)] = text
        _GENERATION.pack_into(self._memory, 0, generation + 1, is_closing)

    def told(self) -> Tuple[int, str, str]:
        """The generation of the ticket, where the daemon is, and the ticket."""
        generation, _ = _GENERATION.unpack_from(self._memory, 0)
        n, = struct.unpack_from("<I", self._memory, _TEXT)
        socket, _, ticket = self._memory[_TEXT + 4:_TEXT + 4 + n].decode("utf-8", "surrogateescape").partition("\n")
        return generation, socket, ticket

    def put_note(self, text: str) -> None:
        """Of the foreman, for the trainer to show. The first one stays."""
        if self.note() == "":
            data = text.encode("utf-8", "backslashreplace")[:_TEXT_BYTES]
            self._memory[_NOTE + 4:_NOTE + 4 + len(data)] = data
            struct.pack_into("<I", self._memory, _NOTE, len(data))

    def note(self) -> str:
        n, = struct.unpack_from("<I", self._memory, _NOTE)
        return self._memory[_NOTE + 4:_NOTE + 4 + n].decode("utf-8", "replace")

    def ask_for_end(self) -> None:
        generation, _ = _GENERATION.unpack_from(self._memory, 0)
        _GENERATION.pack_into(self._memory, 0, generation, 1)

    @property
    def is_ending(self) -> bool:
        return bool(self._memory[8])

    # -- a worker process

    def _place(self, place: int) -> int:
        return _HEADER_BYTES + place * _PLACE_BYTES

    def clear(self, place: int) -> None:
        """Before another process takes the place."""
        _AT.pack_into(self._memory, self._place(place), 0.0, 0, 0, 0)
        self.introduce(place, 0)

    def introduce(self, place: int, thread: int) -> None:
        struct.pack_into("<Q", self._memory, self._place(place) + _THREAD, thread)

    def thread_of(self, place: int) -> int:
        """0: its process has one thread."""
        return int(struct.unpack_from("<Q", self._memory, self._place(place) + _THREAD)[0])

    def beat(self) -> None:
        """The interpreter of a process with several threads runs: none of them holds it up."""
        struct.pack_into("<d", self._memory, _BEAT, time.monotonic())

    def last_beat(self) -> float:
        return float(struct.unpack_from("<d", self._memory, _BEAT)[0])

    def begin(self, place: int, sample: int, epoch: int, n_orders: int, now: float) -> None:
        """`now`: of time.monotonic()."""
        _AT.pack_into(self._memory, _HEADER_BYTES + place * _PLACE_BYTES, now, sample, epoch, n_orders)

    def end(self, place: int) -> None:
        struct.pack_into("<d", self._memory, self._place(place), 0.0)

    def at(self, place: int) -> Tuple[float, int, int, int]:
        """Since when it is at its sample (0: it waits), sample, epoch, orders so far."""
        return _AT.unpack_from(self._memory, self._place(place))  # type: ignore[return-value]

    def put_traceback(self, place: int, sample: int, epoch: int, text: str) -> None:
        data = text.encode("utf-8", "backslashreplace")
        if len(data) > TRACEBACK_BYTES:  # its end says what happened
            data = b"...\n" + data[len(data) - TRACEBACK_BYTES + 4:]
        begin = self._place(place)
        self._memory[begin + 4096:begin + 4096 + len(data)] = data
        _FAILED.pack_into(self._memory, begin + 64, sample, epoch, len(data))

    def tracebacks(self) -> Iterator[Tuple[int, str]]:
        """The last one of each process, with its sample."""
        for place in range(self.n_workers):
            begin = self._place(place)
            sample, _, n = _FAILED.unpack_from(self._memory, begin + 64)
            if n:
                yield sample, self._memory[begin + 4096:begin + 4096 + n].decode("utf-8", "backslashreplace")
