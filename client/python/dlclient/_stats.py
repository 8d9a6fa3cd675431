"""Counters of a loader, and what limits the loop."""
from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass
from typing import List, Optional, Tuple

from . import _library
from ._errors import error_of
from ._lease import Handle, sweep

NOTHING_SHARE = 0.02   # of the time since the last call: a loop that waits less is limited by the trainer
_SECOND = 1e9


@dataclass(frozen=True)
class Stats:
    """Counted since the loader was opened, unless noted otherwise; sums over the ranks of the loader."""

    batches: int
    samples: int
    substituted: int        # samples that were replaced by another one
    skipped: int            # samples that were left out
    waits: int              # next() calls that found no batch ready
    waited_s: float         # seconds spent in these calls, including restarts
    restarts: int           # of the daemon
    restart_s: float        # seconds without a daemon
    hold_s: float           # seconds for which the dataset could not be read
    on_hold: str            # why it cannot be read now; "" if it can
    ready: int              # batches that are ready now
    held: int               # batches that are held now, by the batch itself or by arrays
    slots: int
    wait_share: float       # of the time since the last stats() (or the opening) that was spent waiting, 0 to 1
    limit: str              # what limits the loop: "trainer", "reading", "decoding", "restart", "outage", "nothing yet"
    advice: str             # a sentence that says what would help


_ADVICE = {
    "nothing yet": "no batch was asked for since the last call of stats()",
    "trainer": "batches are ready before the loop asks for them: the training step takes the time",
    "reading": "the loop waits for bytes: put the dataset on a faster disk or into memory, or read less of it",
    "decoding": "the loop waits for decoding and augmentation: give the daemon more workers or CPUs, or store smaller "
                "pictures",
    "outage": "the loop waited for a dataset that could not be read: look at its mount or server; dlctl jobs says more",
    "restart": "the loop waited for a restart of the daemon: look into its log (journalctl -u dataloaderd)",
}


class StatsTaker:
    """Remembers the last call, so that shares refer to the time since then."""

    def __init__(self) -> None:
        self._last: Optional[Tuple[float, _library.Stats]] = None
        self._opened = time.monotonic()

    def take(self, handles: List[Handle]) -> Stats:
        now, sums, on_hold = time.monotonic(), _library.Stats(), ""
        for handle in handles:
            sweep(handle)  # slots that a signal's exception kept from being released do not count as held
            one = _library.Stats()
            result = handle.library.quick.get_stats(handle.pointer, ctypes.byref(one), ctypes.sizeof(one))
            if result < 0:
                raise error_of(result, handle.library.error_text())
            for name, _ in _library.Stats._fields_:
                setattr(sums, name, getattr(sums, name) + getattr(one, name))
            on_hold = on_hold or _library.text_of(handle.library.quick.hold(handle.pointer) or b"")
        begin, before = self._last if self._last is not None else (self._opened, _library.Stats())
        self._last = (now, sums)
        share = (sums.waited_ns - before.waited_ns) / _SECOND / max(now - begin, 1e-9) / max(len(handles), 1)
        limit = _limit(sums, before, share)
        return Stats(batches=sums.n_batches, samples=sums.n_samples, substituted=sums.n_substituted,
                     skipped=sums.n_skipped, waits=sums.n_waits, waited_s=sums.waited_ns / _SECOND,
                     restarts=sums.n_restarts, restart_s=sums.restart_ns / _SECOND,
                     hold_s=sums.hold_ns / _SECOND, on_hold=on_hold, ready=sums.n_ready,
                     held=sums.n_held, slots=sums.n_slots, wait_share=min(max(share, 0.0), 1.0), limit=limit,
                     advice=_ADVICE[limit])


def _limit(now: _library.Stats, before: _library.Stats, share: float) -> str:
    waited = now.waited_ns - before.waited_ns
    if now.n_batches == before.n_batches and waited == 0:
        return "nothing yet"
    if share < NOTHING_SHARE:
        return "trainer"
    if now.restart_ns - before.restart_ns > waited / 2:
        return "restart"
    if now.hold_ns - before.hold_ns > waited / 2:
        return "outage"
    reading = now.read_ns - before.read_ns
    decoding = now.queued_ns - before.queued_ns + now.decode_ns - before.decode_ns
    return "reading" if reading > decoding else "decoding"
