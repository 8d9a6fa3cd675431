"""Counters of a loader, and what holds up the loop: the library asks the daemon, as dlctl diagnose does."""
from __future__ import annotations

import ctypes
import errno
from dataclasses import dataclass
from typing import List

from . import _library
from ._errors import error_of
from ._lease import Handle, sweep

_SECOND = 1e9


@dataclass(frozen=True)
class Stats:
    """Counted since the loader was opened, unless noted otherwise; sums over the ranks of the loader. From wait_share
    on they say what `dlctl diagnose` says of the loader's job, about the time since the last stats() or, at first,
    since its ranks attached; the last two, since the job began."""

    batches: int
    samples: int
    substituted: int        # samples that were replaced by another one
    skipped: int            # samples that were left out
    waits: int              # batches that were not ready when they were asked for
    waited_s: float         # seconds spent waiting for them, including restarts
    restarts: int           # of the daemon
    restart_s: float        # seconds without a daemon
    hold_s: float           # seconds for which the dataset could not be read
    on_hold: str            # why it cannot be read now; "" if it can
    ready: int              # batches that are ready now
    held: int               # batches that are held now, by the batch itself or by arrays
    slots: int
    wait_share: float       # of the time, 0 to 1, that the rank of this node that waits most has waited for batches;
                            # while all ranks are at the same step, of each step the longest wait of a rank
    input_bound: str        # "not": below 5 %; "moderately": below 20 %; "highly"
    limit: str              # what limits the job: "trainer", "reading", "origin", "decoding", "step", "latency",
                            # "rank", "order", "outage", "restart", "ended", "nothing yet"; see dlctl(1)
    verdict: str            # a sentence: whether data hold up the job, and what limits it
    advice: str             # a sentence: what to change, and what that would give
    tokens_per_second: float  # of text in the samples that the ranks of this node took; 0: its fields are not tokens
    texts_cut: int          # of all the job's ranks on this node since it began: texts of which max_length of tokens()
                            # left something out,
    tokens_cut: int         # and about how many tokens that were


def _diagnosis(handle: Handle) -> _library.Diagnosis:
    """Of the job; its other ranks in this process have the same."""
    told = _library.Diagnosis()
    result = -errno.EINTR
    while result == -errno.EINTR:  # a signal handler has run; an exception of it would have ended this loop
        result = handle.library.diagnose(handle.pointer, ctypes.byref(told), ctypes.sizeof(told))
    if result < 0:
        raise error_of(result, handle.library.error_text())
    return told


def _counted(handle: Handle) -> _library.Stats:
    sweep(handle)  # slots that a signal's exception kept from being released do not count as held
    counted = _library.Stats()
    result = handle.library.quick.get_stats(handle.pointer, ctypes.byref(counted), ctypes.sizeof(counted))
    if result < 0:
        raise error_of(result, handle.library.error_text())
    return counted


def take(handles: List[Handle]) -> Stats:
    sums, on_hold = _library.Stats(), ""
    for handle in handles:
        counted = _counted(handle)
        for name, _ in _library.Stats._fields_:
            setattr(sums, name, getattr(sums, name) + getattr(counted, name))
        on_hold = on_hold or _library.text_of(handle.library.quick.hold(handle.pointer) or b"")
    told = _diagnosis(handles[0])
    text = _library.text_of
    return Stats(batches=sums.n_batches, samples=sums.n_samples, substituted=sums.n_substituted,
                 skipped=sums.n_skipped, waits=sums.n_waits, waited_s=sums.waited_ns / _SECOND,
                 restarts=sums.n_restarts, restart_s=sums.restart_ns / _SECOND, hold_s=sums.hold_ns / _SECOND,
                 on_hold=on_hold, ready=sums.n_ready, held=sums.n_held, slots=sums.n_slots, wait_share=told.wait_share,
                 input_bound=text(told.input_bound), limit=text(told.limit), verdict=text(told.verdict),
                 advice=text(told.advice), tokens_per_second=told.tokens_per_second,
                 texts_cut=told.n_texts_cut, tokens_cut=told.n_tokens_cut)
