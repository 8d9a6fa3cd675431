"""One attached rank: takes its batches, one after the other.

A batch that is ready is taken by a call that keeps the interpreter's lock: dropping and taking it again costs more than
the call. Only if none is ready is the lock dropped, for slices of a fifth of a second, between which Python runs signal
handlers (Ctrl-C), another thread may close the loader, and the daemon's end and return are reported."""
from __future__ import annotations

import errno
import gc
import logging
import time
from typing import Callable, Optional, Tuple

from . import _library
from ._batches.batch import Batch, State
from ._batches.form import Form
from ._batches.source import Source
from ._errors import DaemonTimeout, Error, FunctionTraceback, JobFailed, RingFull, SampleDamaged, error_of
from ._lease import Handle, Lease, deliver, held_by, sweep

log = logging.getLogger("dlclient")

SLICE_MS = 200
HOLD_TELL_SECONDS = 1.0
_AGAIN = (-errno.EAGAIN, -errno.ETIMEDOUT, -errno.EINTR)


class Rank:
    """A handle and its place. `at` is the place (epoch, position) whose batch dlc_next() would return."""

    def __init__(self, handle: Handle, epoch: int, position: int, form: Form,
                 state: Callable[[object], State]) -> None:
        self.handle = handle
        self.library = handle.library
        self.at: Tuple[int, int] = (epoch, position)
        self.number = int(handle.info.rank)
        self.is_stream = bool(handle.info.is_stream)
        self.batch_size = int(handle.info.batch_size)
        self.slots = int(handle.info.n_slots)
        self.name = f"rank {self.number} of job {_library.text_of(handle.info.job)}"
        self._form = form
        self._state = state
        self._restarts = 0
        self._gone_since: Optional[float] = None
        self._on_hold = False
        self._hold_told = 0.0
        self._has_failed = False  # the job, and it was told

    def go_to(self, epoch: int, position: int) -> None:
        """Moves to the place; the daemon is asked only if it would not come there by itself."""
        handle = self.handle
        handle.check()
        if self.at == (epoch, position):
            return
        if handle.out.value is not None:  # a batch that an exception kept from being delivered: it is of another place
            self._drop(int(handle.out.value))
        if position == 0 and epoch != self.at[0]:
            result = self._set_epoch(epoch)
        else:
            result = self._seek(epoch, position)
        if result < 0:
            raise self._error(result)
        self.at = (epoch, position)

    # What differs between batches in the ring and batches on a device (_device/rank.py): the calls of the library, and
    # how a batch is made of what they return.

    def _set_epoch(self, epoch: int) -> int:
        return int(self.library.set_epoch(self.handle.pointer, epoch))

    def _seek(self, epoch: int, position: int) -> int:
        return int(self.library.seek(self.handle.pointer, epoch, position))

    def _next(self, timeout_ms: int) -> int:
        """dlc_next(); with a timeout of 0 it never waits, and the interpreter's lock is kept."""
        handle = self.handle
        functions = handle.library if timeout_ms else handle.library.quick
        return int(functions.next(handle.pointer, timeout_ms, handle.out_reference))

    def _deliver(self) -> Batch:
        """The batch that _next() returned, which from here on is the caller's."""
        handle = self.handle
        address = int(handle.out.value or 0)
        record = _library.Batch.from_address(address)
        lease = Lease(handle, address, record.epoch, record.step)
        batch = Batch._of(Source(lease, record, self._form), self._state)
        self.at = (batch.epoch, batch.position)
        deliver(lease)
        if self._form.copies_all:
            batch._detach_from_slot()
        return batch

    def _drop(self, address: int) -> None:
        """Gives back the batch that _next() returned: its lease dies at once."""
        deliver(Lease(self.handle, address, 0, 0))

    def _text(self) -> str:
        return self.library.error_text()

    def leave_ended(self) -> None:
        """After an epoch that has ended the library tells the length of that one until the next one begins."""
        handle = self.handle
        if self.at[1] == 0 and handle.out.value is None:  # at the start of an epoch already: this does nothing
            result = self._set_epoch(self.at[0])
            if result < 0:
                raise self._error(result)

    def take(self, timeout: Optional[float]) -> Optional[Batch]:
        """The next batch, or None at the end of the epoch."""
        handle = self.handle
        handle.check()
        if handle.out.value is None:  # else a batch is left that an exception kept from being delivered
            result = self._next(0)
            if result < 0:
                try:
                    result = self._wait(result, timeout)
                finally:
                    handle.end_bar()
            if result == _library.END_OF_EPOCH:
                self.at = (self.at[0] + 1, 0)
                return None
            if self._gone_since is not None:
                self._tell_return()
            if self._on_hold:
                self._look_for_hold()
        return self._deliver()

    def _error(self, result: int) -> Error:
        """The exception for a negative result. A loop that goes on after each SampleDamaged must come to an end: there
        is none where damaged samples are tolerated, nor for whoever asks again after the job has ended."""
        error = error_of(result, self._text())
        if isinstance(error, SampleDamaged):
            self._add_traceback(error)
            if self._form.raises or self._has_failed:
                cause = error.__cause__
                error = JobFailed(f"the job has ended: {error}", error.errno)
                error.__cause__ = cause
            self._has_failed = True
        return error

    def _add_traceback(self, error: Error) -> None:
        """If it is a function of the pipeline that failed, the whole traceback of its process goes with the error."""
        crew = self.handle.crew() if self.handle.crew is not None else None
        text = crew.traceback_of(str(error)) if crew is not None else None
        if text is not None:
            error.__cause__ = FunctionTraceback(text)

    # -- waiting

    def await_length(self, timeout: Optional[float]) -> None:
        """Waits until it is known how many batches the current epoch has, where a sampler makes the order."""
        try:
            self._await_length(timeout)
        finally:
            self.handle.end_bar()

    def _await_length(self, timeout: Optional[float]) -> None:
        handle = self.handle
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            handle.check()
            result = handle.library.await_length(handle.pointer, SLICE_MS)
            handle.raise_trouble()
            if result == 0:
                return
            if result not in _AGAIN:
                raise self._error(result)
            if deadline is not None and time.monotonic() >= deadline:
                raise DaemonTimeout(f"the order of the epoch is not made within timeout={timeout:g} s", errno.ETIMEDOUT)
            self._look_for_hold()

    def _wait(self, result: int, timeout: Optional[float]) -> int:
        handle = self.handle
        deadline = None if timeout is None else time.monotonic() + timeout
        collected = False
        sweep(handle)
        while True:
            if result == -errno.ENOBUFS:
                if collected:
                    raise self._ring_full()
                collected = True
                gc.collect()  # arrays may be alive only in a cycle, such as an exception's traceback
            elif result not in _AGAIN:
                raise self._error(result)
            slice_ms = SLICE_MS
            if deadline is not None:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise DaemonTimeout(f"no batch within timeout={timeout:g} s", errno.ETIMEDOUT)
                slice_ms = max(1, min(SLICE_MS, int(left * 1000)))
            result = self._next(slice_ms)
            handle.check()
            handle.raise_trouble()
            self._look_for_daemon()
            handle.look_at_crew()
            if result >= 0:
                return result
            self._look_for_hold()

    def _ring_full(self) -> RingFull:
        held = [lease for lease in self.handle.held() if not lease.released]
        return RingFull(f"{len(held)} of {self.slots} slots are held by batches and arrays that are alive: "
                        f"{held_by(held)}. To collect batches, as list(loader) does, open the loader with copy=True; "
                        f"else del them, keep copies (batch.copy()), or open the loader with "
                        f"slots={min(64, 2 * self.slots)}", errno.ENOBUFS)

    def _look_for_daemon(self) -> None:
        """Reports once that the daemon is gone, and once that it is back."""
        info = self.handle.info
        if info.is_waiting and self._gone_since is None:
            self._gone_since = time.monotonic()
            log.warning("the daemon is gone; waiting for its return (%s)", self.name)

    def _look_for_hold(self) -> None:
        """Reports why no batch comes if the dataset cannot be read: once in the log, and once a second to the user's
        function, whose exceptions end the wait."""
        text = self.library.quick.hold(self.handle.pointer)
        if not text:
            if self._on_hold:
                self._on_hold = False
                log.info("%s (%s)", "batches come again" if self.is_stream else "the dataset can be read again",
                         self.name)
            return
        sentence, now = _library.sentence_of(text), time.monotonic()
        if not self._on_hold:
            self._on_hold = True
            self._hold_told = 0.0
            log.warning("%s (%s)", sentence, self.name)
        teller = self.handle.teller
        progress = teller.progress if teller is not None else None
        if callable(progress) and now - self._hold_told >= HOLD_TELL_SECONDS:
            self._hold_told = now
            progress(sentence)

    def _tell_return(self) -> None:
        since, self._gone_since = self._gone_since, None
        if since is not None and not self.handle.info.is_waiting:
            log.info("the daemon is back after %.1f s; continuing after the last batch (%s)", time.monotonic() - since,
                     self.name)
        else:
            self._gone_since = since
