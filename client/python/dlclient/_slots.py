"""What a thread does when all slots are held and it wants a further batch: it waits if another thread may release one,
as the consumer of a prefetch thread does, and raises RingFull if it would wait for itself.

Nobody can know what another thread will release. A thread that is not the main one is taken for a prefetch thread, and
so is any thread whose slots were last released by another one. The main thread waits for a moment, in case other
threads work on batches that it gave them."""
from __future__ import annotations

import logging
import queue
import threading
import time
from typing import List, Optional

from ._errors import RingFull
from ._lease import Handle

log = logging.getLogger("dlclient")

GRACE_SECONDS = 5.0     # of the main thread, while no other thread has released anything yet
TELL_SECONDS = 10.0
TELL_AGAIN_SECONDS = 60.0
SLICE_SECONDS = 0.2
AGAIN_SECONDS = 2.0     # a destructor that a signal's exception ended tells nothing: look again from time to time


class SlotWait:
    """One wait for a slot, until end(). The caller holds no lock meanwhile: the thread that is to release the slot may
    want it."""

    def __init__(self, handles: List[Handle], timeout: Optional[float]) -> None:
        self._handles = handles
        self._timeout = timeout
        self._began = time.monotonic()
        self._tell_at = self._began + TELL_SECONDS
        self._has_looked = False
        self._freed: "queue.SimpleQueue[None]" = queue.SimpleQueue()  # a destructor may call its put() at any time
        for handle in handles:
            handle.freed = self._freed

    def end(self) -> None:
        for handle in self._handles:
            if handle.freed is self._freed:
                handle.freed = None

    def bear(self, full: RingFull) -> None:
        """Returns when it is worth trying again; raises `full` if nobody would ever release a slot, or if the option
        timeout has passed."""
        self._give_up(full)
        if not self._has_looked:  # a slot may have been released before the queue was there
            self._has_looked = True
            return
        again_at = time.monotonic() + AGAIN_SECONDS
        while time.monotonic() < again_at:
            try:
                self._freed.get(timeout=SLICE_SECONDS)
                return
            except queue.Empty:
                pass
            for handle in self._handles:
                handle.check()  # another thread may have closed the loader
            self._give_up(full)

    def _give_up(self, full: RingFull) -> None:
        now, me = time.monotonic(), threading.get_ident()
        waited = now - self._began
        if threading.active_count() <= 1 or (self._timeout is not None and waited >= self._timeout):
            raise full
        takes_ahead = threading.current_thread() is not threading.main_thread() or \
            any(handle.released_by not in (None, me) for handle in self._handles)
        if not takes_ahead and waited >= GRACE_SECONDS:
            raise full
        if now >= self._tell_at:
            self._tell_at = now + TELL_AGAIN_SECONDS
            log.warning("waiting for another thread to release a batch: %s", full)
