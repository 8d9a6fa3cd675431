"""The trainer's side of its worker processes: starts their foreman, tells it of a new ticket, and ends it.

A foreman is forked by default, as torch's DataLoader does on Linux: then functions of a notebook, of __main__ and with
closures work as they are. With "spawn" it is a fresh interpreter, to which the functions are sent by cloudpickle if
that is installed, else by pickle. With "threads" the foreman forks one process, which has as many threads as there
would be processes: then a crash still ends neither the trainer nor the loop. Whichever way, it is done when the loader
opens; worker processes that end later are replaced by the foreman, never by the trainer."""
from __future__ import annotations

import ctypes
import errno
import importlib
import io
import os
import pickle
import signal
import subprocess
import sys
import time
import types
import warnings
import weakref
from typing import Any, Optional

from .._errors import LoaderWarning, OptionError, WorkersGone
from .._opening import stack_level
from . import foreman
from .begin import Task
from .board import Board

END_SECONDS = 5.0


class _Pickler(pickle.Pickler):
    """Refuses what a fresh interpreter does not find: pickle writes the names of functions and classes only."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (type, types.FunctionType)) and value.__module__ == "__main__":
            raise OptionError(f"worker_start: {value.__qualname__} is defined in the program itself, and a fresh "
                              f"interpreter (\"spawn\") does not have it: install cloudpickle, define it in a module "
                              f"that the program imports, or take worker_start=\"fork\"")
        return NotImplemented


def _pickled(task: Task) -> bytes:
    try:
        return bytes(importlib.import_module("cloudpickle").dumps(task))
    except ImportError:
        pass
    data = io.BytesIO()
    try:
        _Pickler(data).dump(task)
        return data.getvalue()
    except OptionError:
        raise
    except Exception as error:
        raise OptionError(f"workers: the functions cannot be sent to other processes ({error}); define them in a "
                          f"module, install cloudpickle, or take worker_start=\"fork\"") from error


class _Fork:
    """A child process with the methods of subprocess.Popen that are used here."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._has_ended = False

    def poll(self) -> Optional[int]:
        if not self._has_ended:
            try:
                self._has_ended = os.waitpid(self.pid, os.WNOHANG)[0] != 0
            except ChildProcessError:  # the program waits for all its children itself
                self._has_ended = True
        return 0 if self._has_ended else None

    def kill(self) -> None:
        if not self._has_ended:
            os.kill(self.pid, signal.SIGKILL)


def _fork(board: Board, task: Task, timeout: Optional[float], pidfd: int, wake: int,
          has_threads: bool) -> _Fork:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()  # else both processes would print what is in the buffer
        except (AttributeError, OSError, ValueError):
            pass
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a trainer with threads: the foreman needs none of them
        pid = os.fork()
    if pid:
        return _Fork(pid)
    try:
        foreman.main(board, task, timeout, pidfd, wake, has_threads)
    except BaseException:  # pylint: disable=broad-except
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(0)


def _spawn(board: Board, task: Task, timeout: Optional[float], pidfd: int, wake: int) -> Any:
    data = pickle.dumps((_pickled(task), board.n_workers, board.descriptor, timeout, pidfd, wake, sys.path))
    process = subprocess.Popen([sys.executable, "-m", "dlclient._own"], stdin=subprocess.PIPE,
                               pass_fds=[board.descriptor, pidfd, wake],
                               env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    assert process.stdin is not None
    try:
        process.stdin.write(data)
        process.stdin.close()
    except BrokenPipeError:
        pass  # it has ended: look() says so
    return process


def _end(process: Any, board: Board, wake: int, owner: int) -> None:
    """Ends foreman and worker processes; in a forked child of the trainer there is nothing to end."""
    if os.getpid() != owner:
        return
    board.ask_for_end()
    try:
        os.write(wake, b"\1\0\0\0\0\0\0\0")
    except OSError:
        pass
    deadline = time.monotonic() + END_SECONDS
    while process.poll() is None:
        if time.monotonic() >= deadline:
            process.kill()
            deadline += END_SECONDS
        time.sleep(0.002)
    board.close()
    os.close(wake)


class Crew:
    """The worker processes of one rank. They end with this object."""

    def __init__(self, task: Task, n_workers: int, timeout: Optional[float], start: str, socket: str,
                 ticket: str) -> None:
        self._board = Board(n_workers)
        self._ticket = ticket
        self._board.tell(socket, ticket)
        self._is_note_shown = False
        self._wake = os.eventfd(0, 0x80800) if hasattr(os, "eventfd") else _eventfd()
        pidfd = os.pidfd_open(os.getpid())
        try:
            if start == "spawn":
                self._process = _spawn(self._board, task, timeout, pidfd, self._wake)
            else:
                self._process = _fork(self._board, task, timeout, pidfd, self._wake, start == "threads")
        except BaseException:
            self._board.close()
            os.close(self._wake)
            raise
        finally:
            os.close(pidfd)
        self._finalizer = weakref.finalize(self, _end, self._process, self._board, self._wake, os.getpid())

    def look(self, info: Any) -> None:
        """The rank may have another ticket, and the foreman may have been killed."""
        ticket = (info.ticket or b"").decode()
        if ticket and ticket != self._ticket:
            self._ticket = ticket
            self._board.tell((info.socket or b"").decode("utf-8", "surrogateescape"), ticket)
            os.write(self._wake, b"\1\0\0\0\0\0\0\0")
        note = "" if self._is_note_shown else self._board.note()
        if note:
            self._is_note_shown = True
            warnings.warn(note, LoaderWarning, stacklevel=stack_level())
        if self._process.poll() is not None:
            raise WorkersGone("the process that starts the worker processes of this loader has ended: it was killed, "
                              "or the functions could not be loaded there (its stderr says why). Open a new loader",
                              errno.ECHILD)

    def traceback_of(self, text: str) -> Optional[str]:
        """The whole traceback that belongs to an error of the daemon, which names the sample."""
        for sample, traceback in self._board.tracebacks():
            if f"sample {sample} " in text:
                return traceback
        return None

    def close(self) -> None:
        self._finalizer()


def _eventfd() -> int:
    """os.eventfd() came with Python 3.10."""
    descriptor = int(ctypes.CDLL(None, use_errno=True).eventfd(0, 0x80800))
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "eventfd")
    return descriptor
