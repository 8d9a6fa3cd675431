"""A worker process: takes samples from the daemon, several at a time where they are quick, and applies the trainer's
functions to them one by one."""
from __future__ import annotations

import ctypes
import errno
import faulthandler
import os
import signal
import struct
import sys
import time
import traceback
from typing import Any, Dict, List, Optional, Tuple

import numpy

from .. import _library
from . import begin as _begin
from .board import Board
from .functions import Applier, as_array, described
from .room import Room
from .several import Writer, Wrong
from .turns import Turn

GONE = 75        # exit status: the rank has left or the daemon has ended
REFUSED = 74     # exit status: the daemon does not let it connect, or no more
SLICE_MS = 500
LIMIT_MORE_MS = 30000  # after which the daemon gives up a process that its foreman should have ended
FLUSH_EVERY = 64  # samples after which what functions print is seen, at the latest
RUN_SECONDS = 0.02  # that several samples may take; the rest is given back, as another process may be idle


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
_STEP = struct.Struct("=24xQ72sQ72s16x")  # of _library.WorkStep: data and form of input and output
_FORM = struct.Struct("=II8q")            # dtype, n_dims and shape of _library.Array


class Worker:
    """`stack`: a file that faulthandler writes to when the foreman asks where it hangs."""

    def __init__(self, library: _library.Library, functions: Dict[str, _begin.Function], board: Board, place: int,
                 turn: Optional[Turn] = None) -> None:
        self._library = library
        self._applier = Applier(functions, turn is not None)
        self._turn = turn       # of a thread beside others
        self._board = board
        self._place = place
        self._pid = os.getpid()
        self._n_orders = 0
        self._n_flushed = 0
        self._mark: Any = None                   # where the number of a sample is written that is begun
        self._steps: Any = None                  # where the steps of the run's first sample lie
        self._strides: Tuple[List[int], List[int]] = ([], [])  # of their inputs and outputs
        self._calls: List[Tuple[bytes, int, List[str]]] = []   # function, its first step, what it calls its fields
        self._key = 0                            # a step that has another place in each sample
        self._arrays: Dict[Any, Any] = {}
        self._writer: Optional[Writer] = None    # it makes all fields
        self._outs: Dict[int, List[Any]] = {}    # of each place of the ring, for the writer
        self._rooms: Dict[int, Room] = {}        # of each step whose result varies in size: then a run is one sample

    def _learn(self, work: Any, run: Any, order: Any) -> None:
        """What is the same in all orders. Steps lie at the same place, too: their numbers are read from there at once,
        since each look at a ctypes struct takes as long as a quick function."""
        n = order.n_steps
        steps = [order.steps[i] for i in range(n)]
        self._mark = ctypes.c_uint64.from_address(ctypes.addressof(run.begun.contents))
        self._steps = (ctypes.c_char * (n * _STEP.size)).from_address(ctypes.addressof(order.steps.contents))
        self._strides = run.input_strides[:n], run.output_strides[:n]
        for i, step in enumerate(steps):
            if step.n_fields:
                self._calls.append((step.function, i, [steps[j].parameter.decode()
                                                       for j in range(i, i + step.n_fields)]))
        self._key = max(range(n), key=lambda i: self._strides[1][i])
        self._find_rooms(work, order)
        if len(self._calls) == 1:
            self._writer = self._applier.writer_of(self._calls[0][0])

    def _array(self, data: int, form: bytes) -> Any:
        """A view of an array that is made once for each place: a function may set the shape of what it gets."""
        found = self._arrays.get((data, form))
        if found is None:
            if len(self._arrays) >= ARRAYS_MAX:
                self._arrays.clear()
            dtype, n_dims, *shape = _FORM.unpack(form)
            found = self._arrays[data, form] = as_array(data, dtype, tuple(shape[:n_dims]))
        return found.view()

    def _field(self, i: int, k: int) -> Tuple[Any, Any]:
        """What a function is given of sample k, and where what it delivers belongs; None: to the same place."""
        given, given_form, output, output_form = _STEP.unpack_from(self._steps, i * _STEP.size)
        array = self._array(given + k * self._strides[0][i], given_form)
        if i in self._rooms:
            return array, self._rooms[i]
        return array, None if given == output else self._array(output + k * self._strides[1][i], output_form)

    @staticmethod
    def _whole_field(order: Any, i: int) -> Tuple[Any, Any]:
        """The same of a whole batch: an array of all samples, or a list where they differ in size."""
        def made(one: Any) -> Any:
            return as_array(one.data, one.dtype, tuple(one.shape[:one.n_dims]))
        given, output = order.steps[i].input, order.steps[i].output
        if order.lists[i]:
            return [made(order.lists[i][k]) for k in range(order.n_samples)], made(output)
        return made(given), None if given.data == output.data else made(output)

    def _apply_to_whole(self, order: Any, done: List[int]) -> None:
        """Orders for whole batches have steps of their own, and what they draw takes longer than looking at these."""
        samples = numpy.array(order.samples[:order.n_samples], numpy.int64)
        if self._turn is not None:
            self._take(self._turn, order.sample, order.epoch)
        self._board.begin(self._place, order.sample, order.epoch, self._n_orders + 1, time.monotonic())
        i = 0
        while i < order.n_steps:
            step = order.steps[i]
            fields = {order.steps[j].parameter.decode(): self._whole_field(order, j)
                      for j in range(i, i + step.n_fields)}
            self._applier.apply_to_whole(step.function, step.seed, order.epoch, samples, fields)
            i += max(step.n_fields, 1)
        if os.getpid() == self._pid:
            done[0] = 1

    def _apply(self, seeds: List[int], epoch: int, k: int, sample: int) -> None:
        """`seeds`: of the steps of sample k."""
        applier = self._applier
        for function, i, parameters in self._calls:
            if len(parameters) == 1:
                applier.apply(function, seeds[i], epoch, sample, *self._field(i, k))
            else:
                fields = {parameter: self._field(j, k) for j, parameter in enumerate(parameters, i)}
                applier.apply_to_several(function, seeds[i], epoch, sample, fields)

    def _places_of(self, k: int) -> List[Any]:
        """The arrays of sample k that a writer fills, which nobody else has."""
        if len(self._outs) >= ARRAYS_MAX:
            self._outs.clear()
        outs: List[Any] = []
        for i, stride in enumerate(self._strides[1]):
            _, _, output, output_form = _STEP.unpack_from(self._steps, i * _STEP.size)
            dtype, n_dims, *shape = _FORM.unpack(output_form)
            outs.append(self._rooms.get(i) or as_array(output + k * stride, dtype, tuple(shape[:n_dims])))
            if i == self._key:
                self._outs[output + k * stride] = outs
        return outs

    def _find_rooms(self, work: Any, order: Any) -> None:
        """Which results vary in size: the same for all samples."""
        for i in range(order.n_steps):
            output = order.steps[i].output
            varies = [self._library.work_varies(work, i, k) for k in range(output.n_dims)]
            if any(varies):
                self._rooms[i] = Room(output.data, output.dtype, output.shape[:output.n_dims], varies)

    def _tell_sizes(self, work: Any, done: List[int]) -> None:
        for i, room in self._rooms.items():
            if self._library.quick.work_deliver(work, i, (ctypes.c_int64 * len(room.shape))(*room.shape)) < 0:
                done[0] = 0
                raise Wrong(self._library.error_text())

    def _take(self, turn: Turn, sample: int, epoch: int) -> float:
        """Another thread may have to be alone before: meanwhile this one is at no sample. Returns when it may begin."""
        if turn.is_needed:
            self._board.end(self._place)
            turn.end()
            turn.begin(sample, epoch)
        return time.monotonic()

    def _write(self, run: Any, order: Any, writer: Writer, done: List[int]) -> None:
        """All samples of a run, in as few steps as can be: each may take microseconds. `done` has their number."""
        n, number, epoch, n_orders = run.n_samples, order.number, order.epoch, self._n_orders
        mark, begin, place, found, pid = self._mark, self._board.begin, self._place, self._outs, self._pid
        write, monotonic, getpid, name = self._applier.write, time.monotonic, os.getpid, self._calls[0][0]
        seeds = run.seeds[:n * order.n_steps:order.n_steps]
        data, stride = order.steps[self._key].output.data, self._strides[1][self._key]
        until, turn = monotonic() + RUN_SECONDS, self._turn
        for k, sample in enumerate(run.samples[:n]):
            now = monotonic()
            if now > until and k:
                return
            if turn is not None:
                now = self._take(turn, sample, epoch)
            mark.value = number + k
            begin(place, sample, epoch, n_orders + k + 1, now)
            write(name, writer, seeds[k], epoch, sample, found.get(data + k * stride) or self._places_of(k))
            if getpid() != pid:
                return
            done[0] = k + 1

    def _apply_to_all(self, run: Any, order: Any, done: List[int]) -> None:
        """The same for other functions."""
        number, epoch, n_steps, until = order.number, order.epoch, order.n_steps, time.monotonic() + RUN_SECONDS
        turn = self._turn
        for k, sample in enumerate(run.samples[:run.n_samples]):
            now = time.monotonic()
            if now > until and k:
                return
            if turn is not None:
                now = self._take(turn, sample, epoch)
            self._mark.value = number + k
            self._board.begin(self._place, sample, epoch, self._n_orders + k + 1, now)
            self._apply(run.seeds[k * n_steps:(k + 1) * n_steps], epoch, k, sample)
            if os.getpid() != self._pid:
                return
            done[0] = k + 1

    def _work_on_samples(self, work: Any, run: Any, order: Any, done: List[int]) -> None:
        if self._mark is None:
            self._learn(work, run, order)
        for i, room in self._rooms.items():
            room.address = order.steps[i].output.data
        if self._writer is not None:
            self._write(run, order, self._writer, done)
        else:
            self._apply_to_all(run, order, done)
        if self._rooms:
            self._tell_sizes(work, done)

    def _work_on(self, work: Any, run: Any) -> Tuple[int, Any]:
        """How many samples are done, and what is wrong with the next one, in a line; None: nothing is."""
        order, done, text = run.first.contents, [0], None
        try:
            if order.n_samples:
                self._apply_to_whole(order, done)
            else:
                self._work_on_samples(work, run, order, done)
        except BaseException as error:  # pylint: disable=broad-except
            if os.getpid() != self._pid:  # raised in a child that the function forked
                os._exit(1)
            text = self._told(error, run.samples[done[0]], order.epoch)
            del error
        if os.getpid() != self._pid:  # the function forked, and its child came back from it
            os._exit(0)
        self._n_orders += done[0] + (text is not None)
        if self._turn is None:
            self._board.end(self._place)
        return done[0], text

    def _told(self, error: BaseException, sample: int, epoch: int) -> str:
        """What the sample's error says; the whole traceback goes to the board."""
        if isinstance(error, Wrong):
            return str(error)
        try:
            self._board.put_traceback(self._place, sample, epoch, traceback.format_exc())
            return described(error)
        except Exception:  # pylint: disable=broad-except
            return f"raised {type(error).__name__}, which cannot be shown"

    def run(self, work: Any) -> int:
        """Until the rank leaves; returns the exit status."""
        library, out = self._library, ctypes.c_void_p()
        reference = ctypes.byref(out)
        while True:
            result = library.work_next_run(work, SLICE_MS, reference)
            if result in (-errno.ETIMEDOUT, -errno.EINTR):
                flush()
                continue
            if result < 0:
                return GONE if result == -errno.ECONNRESET else REFUSED
            if self._n_orders - self._n_flushed >= FLUSH_EVERY:
                self._n_flushed = self._n_orders
                flush()
            n, text = self._work_on(work, _library.Run.from_address(out.value or 0))
            told = None if text is None else text.encode("utf-8", "backslashreplace")
            result = library.quick.work_run_done(work, n, told)
            if result < 0:  # refused: the function has closed the socket, as one does that closes all descriptors
                return GONE if result in (-errno.ECONNRESET, -errno.ESHUTDOWN) else REFUSED
            if self._turn is not None:  # not before: a function that closes its connection is at fault
                self._board.end(self._place)
                self._turn.end()


def flush() -> None:
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


def prepare(stack: Any) -> None:
    """What a process is to do with signals and threads of libraries. `stack`: the file that faulthandler writes to."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the trainer's; it ends its worker processes itself
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    faulthandler.register(signal.SIGUSR1, file=stack, all_threads=False, chain=False)
    _one_thread()


def begin(task: _begin.Task, board: Board, place: int, number: int, is_thread: bool) -> bool:
    """What comes before the first sample, of a process or a thread of one. False: it failed."""
    try:
        _begin.begin(task, place, board.n_workers, number, is_thread)
        return True
    except BaseException as error:  # pylint: disable=broad-except
        board.put_traceback(place, 2**64 - 1, 0, f"worker_init_fn raised {described(error)}")
        return False


def main(task: _begin.Task, board: Board, place: int, number: int, stack: Any, timeout: Optional[float]) -> int:
    """The process from its beginning to its end."""
    prepare(stack)
    _, socket, ticket = board.told()
    library = _library.load()
    if not begin(task, board, place, number, False):
        flush()
        return REFUSED
    try:
        work = open_work(library, socket, ticket, number, False, timeout)
    except OSError as error:
        board.put_traceback(place, 2**64 - 1, 0, str(error.strerror or error))
        return REFUSED
    if work is None:
        return GONE
    try:
        return Worker(library, task.functions, board, place).run(work)
    finally:
        flush()
