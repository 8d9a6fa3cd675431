"""The foreman: the process that starts a loader's worker processes, and others in place of those that end.

The trainer starts it once, before anything else is in its process (or with a fresh interpreter), so nothing is forked
from a trainer that uses its GPU or has threads. It is one thread and applies no function itself. It ends with the
trainer, and its worker processes end with it. To the daemon it says how a process ended; a process that stays with one
sample for too long it asks where it is, and kills it."""
from __future__ import annotations

import ctypes
import errno
import fcntl
import gc
import os
import re
import select
import signal
import socket as sockets
import sys
import tempfile
import time
from typing import Any, Dict, List, Optional

from .. import _library
from . import worker
from .board import Board
from .functions import PLACES_SHOWN, Function

TICK_MS = 100
F_SEAL_FUTURE_WRITE = 0x10  # linux/fcntl.h; fcntl does not have it
STACK_SECONDS = 0.5     # for a process that is asked where it is
PAUSE_SECONDS = 5.0     # before another one is started where EARLY_ENDS have ended and other processes are at work
EARLY_ENDS = 10         # processes in a row that ended without having had a sample: no other one is started
_PR_SET_PDEATHSIG = 1
_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')


def die_with_parent(parent: int) -> None:
    """The kernel ends this process when the one that started it ends. Only for a parent with one thread."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def leave_sockets(path: str) -> None:
    """Closes what was inherited of the trainer's connections to the daemon: else its rank would not end with it."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                continue
            with sockets.socket(fileno=os.dup(int(name))) as copy:
                is_ours = copy.family == sockets.AF_UNIX and copy.getpeername() == path
            if is_ours:
                os.close(int(name))
        except OSError:
            continue


def ended_text(status: int) -> str:
    """How a process ended, from waitpid()."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            return f"it was killed by signal {number} ({signal.Signals(number).name})"
        except ValueError:
            return f"it was killed by signal {number}"
    return f"it ended with exit status {os.WEXITSTATUS(status)}"


def place_in_stack(text: str) -> str:
    """Where a function is, of what faulthandler wrote: the innermost place first. What follows the call of the function
    are the frames of this package and, in a forked process, those in which the trainer opened its loader."""
    shown = []
    for match in filter(None, map(_FRAME.match, text.splitlines())):
        if match[1] == worker.__file__:
            break
        if not match[1].startswith(_PACKAGE):
            shown.append(f"{os.path.basename(match[1])}:{match[2]} in {match[3]}")
    return ", from ".join(shown[:PLACES_SHOWN])


class Place:
    """A worker process, and after it the next one."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pid = 0                # 0: none runs
        self.worker = 0             # the number that the daemon knows
        self.generation = 0         # of the ticket that it has
        self.not_before = 0.0
        self.asked_at = 0.0         # when it was asked where it hangs; 0: it was not
        self.says = ""              # what is told beside how it ended
        self.stack: Any = None      # the file where it says it


class Foreman:
    """`pidfd`: of the trainer; `wake`: a descriptor that becomes readable when the board has changed."""

    def __init__(self, board: Board, functions: Dict[str, Function], timeout: Optional[float], pidfd: int,
                 wake: int) -> None:
        self._board = board
        self._functions = functions
        self._timeout = timeout
        self._wake = wake
        self._library = _library.load()
        self._places = [Place(i) for i in range(board.n_workers)]
        self._n_started = 0
        self._n_early = 0
        self._handle: Any = None
        self._handle_generation = 0
        self._has_given_up = False
        self._poll = select.poll()
        self._poll.register(pidfd, select.POLLIN)
        self._poll.register(wake, select.POLLIN)
        self._pidfd = pidfd

    # -- the daemon

    def _supervise(self) -> None:
        """Connects with the newest ticket."""
        generation, socket, ticket = self._board.told()
        if generation == self._handle_generation or not ticket:
            return
        if self._handle is not None:
            self._library.work_close(self._handle)
        self._handle = None
        self._handle_generation = generation
        try:
            self._handle = worker.open_work(self._library, socket, ticket, 0, True)
        except OSError:
            pass  # then it is not said how a process ended, no more
        self._n_early = 0
        self._has_given_up = False

    def _say(self, place: Place, text: str, is_last: bool = False) -> bool:
        """Is the daemon there to be told?"""
        return self._handle is not None and self._library.work_ended(
            self._handle, place.worker, text.encode("utf-8", "replace"), is_last) == 0

    # -- processes

    def _start(self, place: Place) -> None:
        self._n_started += 1
        place.worker, place.says, place.asked_at = self._n_started, "", 0.0
        place.generation, _, _ = self._board.told()
        self._board.clear(place.number)
        if place.stack is None:
            place.stack = tempfile.TemporaryFile()
        place.stack.seek(0)
        place.stack.truncate()
        parent = os.getpid()
        pid = os.fork()
        if pid:
            place.pid = pid
            return
        status = 1
        try:
            die_with_parent(parent)
            if self._handle is not None:  # a function that writes to all descriptors must not reach it
                self._library.work_close(self._handle)
            status = worker.main(self._functions, self._board, place.number, place.worker, place.stack,
                                 self._timeout)
        finally:
            os._exit(status)

    def _start_missing(self) -> None:
        generation, _, ticket = self._board.told()
        now = time.monotonic()
        for place in self._places:
            if place.pid == 0 and ticket and now >= place.not_before and not self._has_given_up and (
                    place.generation != generation or not self._is_gone(place)):
                self._start(place)

    def _is_gone(self, place: Place) -> bool:
        """Has the rank left whose ticket it had? Then the next one comes with another ticket."""
        return place.says == "gone"

    def _note_end(self, place: Place, status: int) -> None:
        since, _, _, n_orders = self._board.at(place.number)
        place.pid = 0
        text = place.says or ended_text(status)
        is_gone = os.WIFEXITED(status) and os.WEXITSTATUS(status) == worker.GONE and not since
        if is_gone:  # else a function ended it
            text = "its connection ended: a function may have closed it"
        if not self._say(place, text) and is_gone:
            place.says = "gone"
            return
        place.says = ""
        self._n_early = 0 if n_orders else self._n_early + 1
        place.not_before = time.monotonic() + min(0.02 * self._n_early, 0.5)
        if self._n_early < EARLY_ENDS:
            return
        if any(other.pid for other in self._places):  # such as a limit on connections: the others go on
            place.not_before = time.monotonic() + PAUSE_SECONDS
        else:
            self._give_up(place, text)

    def _give_up(self, place: Place, text: str) -> None:
        self._has_given_up = True
        for sample, reason in self._board.tracebacks():
            if sample == 2**64 - 1:
                text = reason
        self._say(place, f"worker processes end before they have begun: {text}", True)

    def _reap(self) -> None:
        for place in self._places:
            if place.pid:
                pid, status = os.waitpid(place.pid, os.WNOHANG)
                if pid:
                    self._note_end(place, status)

    # -- those that hang

    def _where(self, place: Place) -> str:
        place.stack.seek(0)
        return place_in_stack(place.stack.read().decode("utf-8", "replace"))

    def _look_for_hanging(self) -> None:
        now = time.monotonic()
        for place in self._places:
            since, _, _, _ = self._board.at(place.number)
            if not place.pid or self._timeout is None:
                continue
            if place.asked_at:
                if now - place.asked_at >= STACK_SECONDS or self._where(place):
                    where = self._where(place)
                    place.says = (f"it did not come back within worker_timeout={self._timeout:g} s"
                                  f"{' and was at ' + where if where else ''}")
                    os.kill(place.pid, signal.SIGKILL)
            elif since and now - since > self._timeout:
                place.asked_at = now
                os.kill(place.pid, signal.SIGUSR1)

    # -- the loop

    def _end(self) -> None:
        for place in self._places:
            if place.pid:
                os.kill(place.pid, signal.SIGKILL)
        for place in self._places:
            if place.pid:
                os.waitpid(place.pid, 0)

    def run(self) -> None:
        """Until the trainer ends, or asks for it."""
        while True:
            self._supervise()
            self._start_missing()
            for descriptor, _ in self._poll.poll(TICK_MS):
                if descriptor == self._wake:
                    os.read(self._wake, 8)
                else:
                    self._end()
                    return
            if self._board.is_ending:
                self._end()
                return
            self._reap()
            self._look_for_hanging()


def main(board: Board, functions: Dict[str, Function], timeout: Optional[float], pidfd: int, wake: int) -> None:
    """The process from its beginning to its end, in the child of a fork or in an interpreter of its own."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    gc.freeze()
    try:  # a function that writes to every descriptor reaches no board: those who need it have mapped it
        fcntl.fcntl(board.descriptor, fcntl.F_ADD_SEALS, F_SEAL_FUTURE_WRITE)
    except OSError:
        pass  # Linux before 5.1
    _, socket, _ = board.told()
    leave_sockets(socket)
    Foreman(board, functions, timeout, pidfd, wake).run()
