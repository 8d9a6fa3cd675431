"""A worker process: takes samples from the daemon one by one and applies the trainer's functions to them."""
from __future__ import annotations

import ctypes
import errno
import faulthandler
import os
import signal
import sys
import traceback
from typing import Any, Dict, List, Optional, Tuple

from .. import _library
from .board import Board
from .functions import Applier, Function, as_array, described
from .several import Writer, Wrong

GONE = 75        # exit status: the rank has left or the daemon has ended
REFUSED = 74     # exit status: the daemon does not let it connect, or no more
SLICE_MS = 500
LIMIT_MORE_MS = 30000  # after which the daemon gives up a process that its foreman should have ended
FLUSH_EVERY = 64  # samples after which what functions print is seen, at the latest


def open_work(library: _library.Library, socket: str, ticket: str, worker: int, supervises: bool,
              limit: Optional[float] = None) -> Any:
    """Connects: the library's handle, or None if the rank or the daemon is gone. OSError with the daemon's reason.
    `limit`: seconds that a sample may take, for the case that the foreman cannot supervise."""
    options = _library.WorkOptions()
    options.size = ctypes.sizeof(options)
    options.socket = socket.encode("utf-8", "surrogateescape")
    options.ticket = ticket.encode()
    options.worker = worker
    options.supervises = supervises
    options.timeout_ms = 30000
    options.limit_ms = -1 if limit is None else min(int(limit * 1000) + LIMIT_MORE_MS, 2**31 - 1)
    out = ctypes.c_void_p()
    result = library.work_open(ctypes.byref(options), ctypes.byref(out))
    if result == 0:
        return out
    if result in (-errno.ENOENT, -errno.ECONNREFUSED, -errno.ECONNRESET, -errno.ESHUTDOWN):
        return None
    raise OSError(-result, library.error_text())


ARRAYS_MAX = 65536  # places of a ring whose arrays are kept


class Worker:
    """`stack`: a file that faulthandler writes to when the foreman asks where it hangs."""

    def __init__(self, library: _library.Library, functions: Dict[str, Function], board: Board, place: int) -> None:
        self._library = library
        self._applier = Applier(functions)
        self._board = board
        self._place = place
        self._pid = os.getpid()
        self._n_orders = 0
        self._arrays: Dict[Any, Any] = {}
        self._writer: Optional[Writer] = None    # it makes all fields
        self._outs: Dict[int, List[Any]] = {}    # of each place of the ring, for the writer

    def _array(self, array: Any) -> Any:
        """A view of an array that is made once for each place: a function may set the shape of what it gets."""
        key = (array.data, bytes(array.shape) if array.n_dims else b"")
        found = self._arrays.get(key)
        if found is None:
            if len(self._arrays) >= ARRAYS_MAX:
                self._arrays.clear()
            found = self._arrays[key] = as_array(array.data, array.dtype, tuple(array.shape[:array.n_dims]))
        return found.view()

    def _field(self, step: Any) -> Tuple[Any, Any]:
        """What a function is given, and where what it delivers belongs; None: to the same place."""
        given, output = step.input, step.output
        return self._array(given), None if given.data == output.data else self._array(output)

    def _places_of(self, steps: Any, n_steps: int) -> List[Any]:
        if len(self._outs) >= ARRAYS_MAX:
            self._outs.clear()
        arrays = [steps[i].output for i in range(n_steps)]
        outs = [as_array(array.data, array.dtype, tuple(array.shape[:array.n_dims])) for array in arrays]
        self._outs[arrays[0].data] = outs
        return outs

    def _apply(self, order: Any) -> None:
        steps, epoch, sample, applier = order.steps, order.epoch, order.sample, self._applier
        if self._n_orders == 1 and steps[0].n_fields == order.n_steps:
            self._writer = applier.writer_of(steps[0].function)
        if self._writer is not None:
            step = steps[0]
            outs = self._outs.get(step.output.data) or self._places_of(steps, order.n_steps)
            applier.write(self._writer, step.seed, epoch, sample, outs)
            return
        i = 0
        while i < order.n_steps:
            step = steps[i]
            n = step.n_fields
            if n == 1:
                applier.apply(step.function, step.seed, epoch, sample, *self._field(step))
            else:
                fields = {steps[k].parameter.decode(): self._field(steps[k]) for k in range(i, i + n)}
                applier.apply_to_several(step.function, step.seed, epoch, sample, fields)
            i += max(n, 1)

    def _work_on(self, order: Any) -> Any:
        """None, or what is wrong, in a line."""
        self._n_orders += 1
        self._board.begin(self._place, order.sample, order.epoch, self._n_orders)
        text = None
        try:
            self._apply(order)
        except BaseException as error:  # pylint: disable=broad-except
            if os.getpid() != self._pid:  # raised in a child that the function forked
                os._exit(1)
            text = self._told(error, order)
            del error
        if os.getpid() != self._pid:  # the function forked, and its child came back from it
            os._exit(0)
        self._board.end(self._place)
        return text

    def _told(self, error: BaseException, order: Any) -> str:
        """What the sample's error says; the whole traceback goes to the board."""
        if isinstance(error, Wrong):
            return str(error)
        try:
            self._board.put_traceback(self._place, order.sample, order.epoch, traceback.format_exc())
            return described(error)
        except Exception:  # pylint: disable=broad-except
            return f"raised {type(error).__name__}, which cannot be shown"

    def run(self, work: Any) -> int:
        """Until the rank leaves; returns the exit status."""
        library, out = self._library, ctypes.c_void_p()
        reference = ctypes.byref(out)
        while True:
            result = library.work_next(work, SLICE_MS, reference)
            if result in (-errno.ETIMEDOUT, -errno.EINTR):
                _flush()
                continue
            if result < 0:
                return GONE if result == -errno.ECONNRESET else REFUSED
            if self._n_orders % FLUSH_EVERY == 0:
                _flush()
            text = self._work_on(_library.Order.from_address(out.value or 0))
            result = library.quick.work_done(work, None if text is None else text.encode("utf-8", "replace"))
            if result < 0:  # refused: the function has closed the socket, as one does that closes all descriptors
                return GONE if result in (-errno.ECONNRESET, -errno.ESHUTDOWN) else REFUSED


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass


def _one_thread() -> None:
    """torch's own threads did not survive the fork, and every other process computes as well: as in torch's workers."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


def main(functions: Dict[str, Function], board: Board, place: int, number: int, stack: Any,
         timeout: Optional[float]) -> int:
    """The process from its beginning to its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the trainer's; it ends its worker processes itself
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    faulthandler.register(signal.SIGUSR1, file=stack, all_threads=False, chain=False)
    _, socket, ticket = board.told()
    _one_thread()
    library = _library.load()
    try:
        work = open_work(library, socket, ticket, number, False, timeout)
    except OSError as error:
        board.put_traceback(place, 2**64 - 1, 0, str(error.strerror or error))
        return REFUSED
    if work is None:
        return GONE
    try:
        return Worker(library, functions, board, place).run(work)
    finally:
        _flush()
