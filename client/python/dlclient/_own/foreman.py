"""The foreman: the process that starts a loader's worker processes, and others in place of those that end.

The trainer starts it once, before anything else is in its process (or with a fresh interpreter), so nothing is forked
from a trainer that uses its GPU or has threads. It is one thread and applies no function itself. It ends with the
trainer, and its worker processes end with it. To the daemon it says how a process ended; a process that stays with one
sample for too long it asks where it is, and kills it.

With threads there is one process that has all places, and which of its samples ended it is found out: see _blame()."""
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
from . import threads, worker
from .begin import Task
from .board import Board
from .functions import PLACES_SHOWN
from .turns import Sample

TICK_MS = 100
F_SEAL_FUTURE_WRITE = 0x10  # linux/fcntl.h; fcntl does not have it
STACK_SECONDS = 0.5     # for a process that is asked where it is
PAUSE_SECONDS = 5.0     # before another one is started where EARLY_ENDS have ended and other processes are at work
EARLY_ENDS = 10         # processes in a row that ended without having had a sample: no other one is started
HANGS_MAX = 6           # for each process, in a row while no sample is made: the function hangs in every call
SUSPECTS_MAX = 4096     # samples that ended a process together with others, and are made alone
HELD_UP_SECONDS = 2.0   # after which a thread keeps the interpreter from all others
_PR_SET_PDEATHSIG = 1
_LIBC = getattr(ctypes.CDLL(None), "tgkill", None)
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
    """A worker process, and after it the next one. One with threads has several places on the board."""

    def __init__(self, number: int, n_threads: int = 1) -> None:
        self.number = number
        self.n_threads = n_threads
        self.pid = 0                # 0: none runs
        self.worker = 0             # the number that the daemon knows; a second thread has the next one
        self.generation = 0         # of the ticket that it has
        self.not_before = 0.0
        self.asked_at = 0.0         # when it was asked where it hangs; 0: it was not
        self.says = ""              # what is told beside how it ended
        self.hung_at: Optional[str] = None  # it is killed because it hung: where
        self.guilty: List[int] = []     # threads because of whose samples it is killed
        self.stack: Any = None      # the file where it says it


class Foreman:
    """`pidfd`: of the trainer; `wake`: a descriptor that becomes readable when the board has changed."""

    def __init__(self, board: Board, task: Task, timeout: Optional[float], pidfd: int, wake: int,
                 has_threads: bool) -> None:
        self._board = board
        self._task = task
        self._timeout = timeout
        self._wake = wake
        self._library = _library.load()
        self._has_threads = has_threads
        self._places = [Place(0, board.n_workers)] if has_threads else [Place(i) for i in range(board.n_workers)]
        self._suspects: Dict[Sample, None] = {}     # each is made alone in its process; in the sequence of the ends
        self._n_started = 0
        self._n_early = 0
        self._n_hangs = 0   # processes in a row that were killed because they hung, while no sample was made
        self._n_made = 0    # samples, when the last one was
        self._n_made_before = 0  # by processes that have ended
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

    def _say(self, number: int, text: Optional[str], is_last: bool = False) -> bool:
        """Is the daemon there to be told? `text` None: the sample is not why its process ended."""
        return self._handle is not None and self._library.work_ended(
            self._handle, number, None if text is None else text.encode("utf-8", "backslashreplace"), is_last) == 0

    # -- processes

    def _start(self, place: Place) -> None:
        place.worker, place.says, place.asked_at, place.guilty = self._n_started + 1, "", 0.0, []
        place.hung_at = None
        self._n_started += place.n_threads
        place.generation, _, _ = self._board.told()
        for i in range(place.n_threads):
            self._board.clear(place.number + i)
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
            status = self._work(place)
        finally:
            os._exit(status)

    def _work(self, place: Place) -> int:
        if self._has_threads:
            return threads.main(self._task, self._board, place.worker, place.stack, self._timeout,
                                frozenset(self._suspects))
        return worker.main(self._task, self._board, place.number, place.worker, place.stack, self._timeout)

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

    def _begun(self, place: Place) -> List[int]:
        """The threads of it that are at a sample."""
        return [i for i in range(place.n_threads) if self._board.at(place.number + i)[0]]

    def _blame(self, place: Place, text: str) -> bool:
        """Says of each thread whether it is to blame for the end. If several were at a sample, none is: the samples are
        suspects from now on, and each is made alone, so that it counts the ends that it is the reason for. What was at
        none may have answered a moment ago, or its function closed the connection: the daemon knows. Is it there?"""
        begun = self._begun(place)
        guilty = place.guilty or (begun if len(begun) == 1 else [] if begun else list(range(place.n_threads)))
        if not guilty:
            self._suspects.update((self._board.at(place.number + i)[1:3], None) for i in begun)
            for old in list(self._suspects)[:-SUSPECTS_MAX]:
                del self._suspects[old]
        is_told = True
        for i in range(place.n_threads):
            is_told &= self._say(place.worker + i, text if i in guilty else None)
        return is_told

    def _note_end(self, place: Place, status: int) -> None:
        n_orders = sum(self._board.at(place.number + i)[3] for i in range(place.n_threads))
        has_hung = place.hung_at is not None and self._count_hang(place)
        self._n_made_before += self._made_by(place)
        place.pid = 0
        if has_hung:
            return
        text = place.says or ended_text(status)
        has_closed = os.WIFEXITED(status) and os.WEXITSTATUS(status) == worker.GONE
        is_gone = has_closed and not self._begun(place)
        if is_gone or (has_closed and self._has_threads):  # else a function ended it
            text = "its connection ended: a function may have closed it"
        if not self._blame(place, text) and is_gone:
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
        self._say(place.worker, f"worker processes end before they have begun: {text}", True)

    def _reap(self) -> None:
        for place in self._places:
            if place.pid:
                pid, status = os.waitpid(place.pid, os.WNOHANG)
                if pid:
                    self._note_end(place, status)

    # -- those that hang

    def _where(self, place: Place) -> str:
        place.stack.seek(0)
        return place_in_stack(place.stack.read().decode("utf-8", "backslashreplace"))

    def _overdue(self, place: Place, timeout: float) -> List[int]:
        """The threads of it that are with a sample for too long, the longest first."""
        late = [(self._board.at(place.number + i)[0], i) for i in self._begun(place)]
        return [i for since, i in sorted(late) if since and time.monotonic() - since > timeout]

    def _ask(self, place: Place, thread: int) -> None:
        """faulthandler shows the thread that has the signal, with or without a global lock."""
        number = self._board.thread_of(place.number + thread)
        if number == 0 or _LIBC is None or _LIBC(place.pid, number, int(signal.SIGUSR1)) != 0:
            os.kill(place.pid, signal.SIGUSR1)

    def _end_hanging(self, place: Place, overdue: List[int]) -> None:
        """One thread is known to hang if it is the only one that is overdue, and does not keep the interpreter from the
        others: then the main thread would not come to write when it was last at work."""
        is_held_up = time.monotonic() - self._board.last_beat() > HELD_UP_SECONDS
        if len(self._begun(place)) == 1 or (len(overdue) == 1 and not is_held_up):
            place.guilty = overdue[:1]
        where = self._where(place)
        place.says = (f"it did not come back within worker_timeout={self._timeout:g} s"
                      f"{' and was at ' + where if where else ''}")
        place.hung_at = where or "an unknown place"
        os.kill(place.pid, signal.SIGKILL)
        self._board.put_note(f"python({'/'.join(self._task.functions)}): a worker process was killed, because the "
                             f"function did not come back within worker_timeout={self._timeout:g} s and was at "
                             f"{place.hung_at}. Its sample is given to another process, and is damaged after three of "
                             f"them")

    def _made_by(self, place: Place) -> int:
        """Samples that its process has made: the one that it is at is not."""
        found = [self._board.at(place.number + i) for i in range(place.n_threads)]
        return sum(n_orders - (since != 0) for since, _, _, n_orders in found)

    def _count_hang(self, place: Place) -> bool:
        """After the end of a process that hung. Is that enough to say that the function hangs in every call?"""
        n_made = self._n_made_before + sum(self._made_by(other) for other in self._places)
        self._n_hangs = 1 if n_made > self._n_made else self._n_hangs + 1
        self._n_made = n_made
        if self._n_hangs < HANGS_MAX * len(self._places):
            return False
        self._has_given_up = True
        self._say(place.worker, f"the function hangs: {self._n_hangs} worker processes in a row did not come back "
                                f"within worker_timeout={self._timeout:g} s, and no sample was made; the last one was "
                                f"at {place.hung_at}", True)
        return True

    def _look_for_hanging(self) -> None:
        for place in self._places:
            if not place.pid or self._timeout is None or place.says:
                continue
            overdue = self._overdue(place, self._timeout)
            if overdue and not place.asked_at:
                place.asked_at = time.monotonic()
                self._ask(place, overdue[0])
            elif overdue and (time.monotonic() - place.asked_at >= STACK_SECONDS or self._where(place)):
                self._end_hanging(place, overdue)
            elif place.asked_at and not overdue:  # it came back
                place.asked_at = 0.0
                place.stack.seek(0)
                place.stack.truncate()

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


def main(board: Board, task: Task, timeout: Optional[float], pidfd: int, wake: int,
         has_threads: bool = False) -> None:
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
    Foreman(board, task, timeout, pidfd, wake, has_threads).run()
