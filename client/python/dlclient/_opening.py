"""Attaches ranks as the options say. Calls of the library wait in slices, between which signals are handled. An older
loader of this process that is in the way of its own successor (a notebook's cell that runs again) is closed."""
from __future__ import annotations

import ctypes
import errno
import logging
import os
import sys
import time
import uuid
import warnings
import weakref
from typing import Any, Dict, List, Optional, Tuple

from . import _launch, _library
from ._errors import DaemonGone, DaemonTimeout, Error, JobMismatch, LoaderWarning, OptionError, RankTaken, error_of
from ._lease import Handle
from ._options import Wish
from ._waiting import Bar, ProgressWish, Teller, bar_is_wanted

log = logging.getLogger("dlclient")

SLICE_MS = 500
ANSWER_SECONDS = 30.0  # a call that took this much longer than its slice has waited for a daemon that does not answer
PAUSE_SECONDS = 0.1     # between two looks for a daemon that is away

# Errors that mean the daemon is away, and errors that pass by themselves after that; as in the library's own restart.
_AWAY = (errno.ECONNREFUSED, errno.ECONNRESET, errno.ESHUTDOWN)
_PASSING = _AWAY + (errno.EADDRINUSE, errno.ETIMEDOUT, errno.ENOMEM, errno.EMFILE, errno.ENFILE)

Key = Tuple[Optional[str], Optional[str], int]
_opened: Dict[Key, weakref.ref[Any]] = {}  # loaders of this process that named their job


def _open_once(library: _library.Library, options: _library.Options) -> Tuple[int, Optional[Handle]]:
    out = ctypes.c_void_p()
    handle = None
    try:
        result = library.open(ctypes.byref(options), ctypes.byref(out))
        if result == 0 and out.value:
            handle = Handle(library, out.value)
        return result, handle
    except BaseException:
        if handle is None and out.value:  # a signal's exception came first
            library.quick.close(out.value)
        raise


def open_rank(library: _library.Library, wish: Wish, rank: int, job: Optional[str], epoch: int, position: int,
              progress: ProgressWish) -> Handle:
    """Attaches one rank; waits for the dataset's index as long as open_timeout says."""
    number = rank if rank >= 0 else int(_launch.launch(library).rank)
    teller = Teller(progress, wish.open_timeout, Bar(library, bar_is_wanted(progress, number)))
    options = wish.options(rank, job, epoch, position, teller)
    try:
        handle = _open_patiently(library, wish, options, teller)
    finally:
        teller.bar.end()
    teller.is_open, teller.options = True, options  # the loop asks by itself: see Rank._look_for_hold()
    handle.teller = teller
    return handle


def _open_patiently(library: _library.Library, wish: Wish, options: _library.Options, teller: Teller) -> Handle:
    begin = time.monotonic()
    while True:
        now = time.monotonic()
        left = None if wish.open_timeout is None else max(wish.open_timeout - (now - begin), 0.0)
        options.open_timeout_ms = SLICE_MS if left is None else min(int(left * 1000), SLICE_MS)
        result, handle = _open_once(library, options)
        text = library.error_text() if result < 0 else ""
        teller.raise_trouble()
        if handle is not None:
            return handle
        if result == -errno.EINTR:
            continue
        if result != -errno.ETIMEDOUT or time.monotonic() - now > ANSWER_SECONDS:
            raise error_of(result, text)
        if left is not None and left * 1000 <= SLICE_MS:
            waited_for = text.partition(": ")[2] or text
            raise DaemonTimeout(f"gave up after open_timeout={wish.open_timeout:g} s: {waited_for}", errno.ETIMEDOUT)


def cursor_after(library: _library.Library, wish: Wish, rank: int, world: int, n_samples: int, place: Tuple[int, int],
                 n_batches: int) -> Tuple[int, int]:
    """The place of a run after each rank has taken n_batches more, whether it is attached or not."""
    options = wish.options(rank, None, 0, 0, None)
    options.world_size = world
    epoch, position = ctypes.c_uint64(), ctypes.c_uint64()
    if n_batches >= 2**64:
        raise OptionError(f"epoch: batch {n_batches} of a run is out of range")
    result = library.quick.cursor_after(ctypes.byref(options), n_samples, place[0], place[1], n_batches,
                                        ctypes.byref(epoch), ctypes.byref(position))
    if result < 0:
        raise error_of(result, library.error_text())
    return epoch.value, position.value


def warn(library: _library.Library, handle: Handle) -> None:
    """Shows the library's warning about this rank."""
    text = library.warning(handle.pointer)
    while text:
        warnings.warn(_library.sentence_of(text), LoaderWarning, stacklevel=stack_level())
        text = library.warning(handle.pointer)


def stack_level() -> int:
    """How many frames up the program's own line is."""
    frame, level, here = sys._getframe(1), 1, os.path.join(os.path.dirname(__file__), "")
    while frame.f_back is not None and frame.f_code.co_filename.startswith(here):
        frame, level = frame.f_back, level + 1
    return level


def _older(key: Key) -> Any:
    reference = _opened.get(key)
    return reference() if reference is not None else None


def _open_in_place(library: _library.Library, wish: Wish, rank: int, job: Optional[str], epoch: int, position: int,
                   progress: ProgressWish) -> Handle:
    """Opens; if an older loader of this process may be the reason for a refusal, that one is closed first."""
    try:
        return open_rank(library, wish, rank, job, epoch, position, progress)
    except (RankTaken, JobMismatch):
        older = _older((wish.socket, job, rank)) if job is not None else None
        if older is None or older.closed or not older.is_here:
            raise
        older.close_for("a newer Loader of the same job and rank was opened in this process: use that one")
    return open_rank(library, wish, rank, job, epoch, position, progress)


def open_all(loader: Any, library: _library.Library, wish: Wish, job: Optional[str], epoch: int, position: int,
             progress: ProgressWish) -> List[Handle]:
    """Attaches every rank that the options name, under one job."""
    ranks = [wish.rank] if wish.ranks is None else wish.ranks
    if job is None and len(ranks) > 1 and len(ranks) == wish.world:
        job = f"ranks-{uuid.uuid4().hex[:16]}"  # all ranks are in this process: nobody else has to find the job
    is_named_here = job is None and wish.run is not None
    if is_named_here:
        job = f"{wish.run}.{_launch.next_number()}"  # as the library numbers those that it names
    handles: List[Handle] = []
    try:
        for rank in ranks:
            handles.append(_open_in_place(library, wish, rank, job, epoch, position, progress))
            job = job if job is not None else _library.text_of(handles[0].info.job)
    except BaseException:
        for handle in handles:
            handle.refuse("another rank of this loader could not be opened")
            handle.detach()
        raise
    if is_named_here:
        _launch.count()
    if wish.job is not None:
        for rank in ranks:
            _opened[(wish.socket, wish.job, rank)] = weakref.ref(loader)
    return handles


class Patience:
    """Waits for a daemon that is away when ranks that were released between two loops attach again. Within a loop the
    library waits; here nobody is attached, but the same options apply."""

    def __init__(self, wish: Wish, timeout: Optional[float], name: str) -> None:
        self._wish = wish
        self._timeout = timeout
        self._name = name
        self._began: Optional[float] = None

    def bear(self, error: Error) -> None:
        """Waits a moment before the next attempt; raises errors that are final."""
        if error.errno not in (_AWAY if self._began is None else _PASSING):
            raise error
        if self._wish.on_restart == "raise":
            raise DaemonGone(f"the daemon went away between two loops: {error}", errno.ECONNRESET) from error
        now = time.monotonic()
        if self._began is None:
            self._began = now
            log.warning("the daemon is gone; waiting for its return (%s)", self._name)
        limit, timeout = self._wish.restart_timeout, self._timeout
        if limit is not None and now - self._began >= limit:
            raise DaemonGone(f"the daemon went away between two loops and did not come back within "
                             f"restart_timeout={limit:g} s: {error}", errno.ECONNRESET) from error
        if timeout is not None and now - self._began >= timeout:
            raise DaemonTimeout(f"no batch within timeout={timeout:g} s: {error}", errno.ETIMEDOUT) from error
        time.sleep(PAUSE_SECONDS)

    def rewarded(self) -> None:
        """Attached again."""
        if self._began is not None:
            log.info("the daemon is back after %.1f s (%s)", time.monotonic() - self._began, self._name)
