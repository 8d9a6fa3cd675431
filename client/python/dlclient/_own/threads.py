"""A worker process whose threads take samples, each with a connection to the daemon and generators of its own. What the
functions keep is there once: a Dataset object, its caches, what they have imported."""
from __future__ import annotations

import queue
import sys
import threading
from typing import Any, FrozenSet, Optional

from .. import _library
from . import worker
from .begin import Task
from .board import Board
from .turns import Sample, Turn, Turns

BEAT_SECONDS = 0.1
NOT_OPEN = -1       # of a thread: it has no connection


class Threads:
    def __init__(self, task: Task, board: Board, number: int, timeout: Optional[float],
                 suspects: FrozenSet[Sample]) -> None:
        self._task = task
        self._board = board
        self._number = number
        self._timeout = timeout
        self._library = _library.load()
        self._turns = Turns(suspects)
        self._ended: queue.SimpleQueue[int] = queue.SimpleQueue()  # with which status

    def _work(self, place: int) -> int:
        self._board.introduce(place, threading.get_native_id())
        _, socket, ticket = self._board.told()
        if not worker.begin(self._task, self._board, place, self._number + place, True):
            return NOT_OPEN
        try:
            work = worker.open_work(self._library, socket, ticket, self._number + place, False, self._timeout)
        except OSError as error:
            self._board.put_traceback(place, 2**64 - 1, 0, str(error.strerror or error))
            return NOT_OPEN
        if work is None:
            return worker.GONE
        return worker.Worker(self._library, self._task.functions, self._board, place, Turn(self._turns)).run(work)

    def _run(self, place: int) -> None:
        status = 1
        try:
            status = self._work(place)
        except BaseException:  # pylint: disable=broad-except
            sys.excepthook(*sys.exc_info())
        finally:
            self._ended.put(status)

    def run(self) -> int:
        """Until one of them ends; returns the exit status. The main thread only shows that the interpreter runs."""
        n_threads = self._board.n_workers
        for place in range(n_threads):
            threading.Thread(target=self._run, args=(place,), name=f"dlclient-worker-{place}", daemon=True).start()
        while True:
            self._board.beat()
            try:
                status = self._ended.get(timeout=BEAT_SECONDS)
            except queue.Empty:
                continue
            n_threads -= 1
            if status == NOT_OPEN and n_threads > 0:  # such as a limit on connections: the others go on
                continue
            return worker.REFUSED if status == NOT_OPEN else status


def main(task: Task, board: Board, number: int, stack: Any, timeout: Optional[float],
         suspects: FrozenSet[Sample]) -> int:
    """The process from its beginning to its end. `number`: the first thread's; each has one of its own."""
    worker.prepare(stack)
    try:
        return Threads(task, board, number, timeout, suspects).run()
    finally:
        worker.flush()
