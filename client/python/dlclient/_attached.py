"""What a loader holds of the daemon: its ranks, which it attaches, attaches again and leaves."""
from __future__ import annotations

import atexit
import errno
import threading
import warnings
import weakref
from typing import Any, Dict, List, Optional

from . import _library, _opening
from ._batches.form import Form
from ._dataset import Dataset, Sampler
from ._device.receivers import Receivers
from ._errors import DatasetChanged, Error, LoaderClosed, LoaderWarning, OptionError
from ._fixed import Fixed
from ._lease import Handle
from ._library import Library
from ._options import Wish
from ._own import functions as _functions
from ._own.crew import Crew
from ._places import state as _state
from ._places.course import Course
from ._places.epochs import Span
from ._places.state import Identity
from ._rank import Rank
from ._ranks import Team
from ._waiting import ProgressWish

opened: weakref.WeakSet[Attached] = weakref.WeakSet()


class Saver:
    """Makes states for the loader and its batches; a batch must not keep its loader alive."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.identity: Optional[Identity] = None

    def __call__(self, place: Any) -> Dict[str, Any]:
        assert self.identity is not None
        return _state.make(self.identity, place, self.span.told(place))


class Attached:
    """The attributes that are fixed when a loader opens, and its ranks."""

    dataset: Fixed[Dataset] = Fixed()
    sampler: Fixed[Sampler] = Fixed()
    batch_size: Fixed[Optional[int]] = Fixed()
    pipeline: Fixed[str] = Fixed()
    seed: Fixed[int] = Fixed()
    draws: Fixed[int] = Fixed()
    shuffle: Fixed[bool] = Fixed()
    drop_last: Fixed[bool] = Fixed()
    dealing: Fixed[str] = Fixed()
    partition: Fixed[str] = Fixed()
    order: Fixed[str] = Fixed()
    shuffle_buffer: Fixed[int] = Fixed()
    rank: Fixed[int] = Fixed()
    world_size: Fixed[int] = Fixed()
    num_workers: Fixed[int] = Fixed()       # these three as libraries look for them on torch's DataLoader
    pin_memory: Fixed[bool] = Fixed()
    batch_sampler: Fixed[None] = Fixed()
    timeout: Fixed[float] = Fixed()         # 0: none
    device: Fixed[Any] = Fixed()            # "cuda:0", or a list of them for several ranks; None: the CPU's memory

    _closed: str            # why it cannot be used; "" if it can
    _wish: Wish
    _job: Optional[str]
    _library: Library
    _lock: Any
    _form: Form
    _saver: Saver
    _timeout: Optional[float]
    _progress: ProgressWish
    _team: Optional[Team]   # None: the ranks were released
    _crews: List[Crew]      # one for each rank, if the pipeline names functions
    _receivers: Optional[Receivers]  # of batches on a device
    _course: Course
    _identity: Identity     # of what it attached to at first

    def _warn(self) -> None:
        """Shows the library's warnings, each sentence once."""
        for rank in self._team.ranks if self._team is not None else []:
            _opening.warn(self._library, rank.handle)

    def _attach(self, epoch: int, position: int) -> None:
        handles = _opening.open_all(self, self._library, self._wish, self._job, epoch, position, self._progress)
        try:
            ranks = [self._rank_of(i, handle, epoch, position) for i, handle in enumerate(handles)]
        except BaseException:
            for handle in handles:
                handle.refuse("the device of this loader could not be opened")
                handle.detach()
            raise
        try:
            self._hire(handles)
        except BaseException:
            for handle in handles:
                handle.refuse("the worker processes of this loader could not be started")
                handle.detach()
            raise
        self._team = Team(ranks)

    def _hire(self, handles: List[Handle]) -> None:
        """Worker processes for the functions of the pipeline; those of an earlier attachment go on with the new one."""
        _functions.needed(self._wish.functions, _library.text_of(handles[0].info.pipeline))
        if not self._crews and self._wish.functions:
            for text in _functions.doubts(self._wish.functions, self._wish.worker_start):
                warnings.warn(text, LoaderWarning, stacklevel=_opening.stack_level())
            for handle in handles:
                self._crews.append(Crew(self._wish.task(handle.info.rank), self._wish.n_workers,
                                        self._wish.worker_timeout, self._wish.worker_start,
                                        _library.text_of(handle.info.socket),
                                        _library.text_of(handle.info.ticket)))
        for handle, crew in zip(handles, self._crews):
            handle.crew = weakref.ref(crew)
            crew.look(handle.info)

    def _rank_of(self, i: int, handle: Handle, epoch: int, position: int) -> Rank:
        if self._receivers is None:
            return Rank(handle, epoch, position, self._form, self._saver)
        return self._receivers.rank(i, handle, epoch, position, self._form, self._saver)

    def _ranks(self) -> List[Rank]:
        """The attached ranks. If the loader released them between two loops, they are attached again."""
        if self._closed:
            raise LoaderClosed(self._closed)
        if self._team is None:
            self._attach_again()
        assert self._team is not None
        return self._team.ranks

    def _attach_again(self) -> None:
        """After the ranks were released; meanwhile the daemon may have ended, or the dataset may have changed."""
        patience = _opening.Patience(self._wish, self._timeout, f"job {self._job}")
        while self._team is None:
            try:
                self._attach(self._course.place.epoch, self._course.place.position)
            except Error as error:
                patience.bear(error)
                if self._closed:  # by another thread, meanwhile
                    raise LoaderClosed(self._closed) from None
        patience.rewarded()
        info = self._team.ranks[0].handle.info
        digest, mine = _library.text_of(info.dataset_digest), self._identity
        if digest != mine.digest:
            self._give_back("its dataset changed")
            raise DatasetChanged(f"{mine.dataset}: the dataset changed between two loops: was {mine.digest} with "
                                 f"{mine.samples} samples, is {digest} with {info.dataset_samples}; open a new loader",
                                 errno.ESTALE)
        columns = _library.text_of(info.columns_digest)
        if columns != mine.columns:
            self._give_back("its columns changed")
            raise OptionError(f"columns: an array was changed between two loops: the digest was {mine.columns}, is "
                              f"{columns}; open a new loader, or give it a copy")

    def _first_handle(self) -> Handle:
        return self._ranks()[0].handle

    def _give_back(self, why: str) -> None:
        for rank in self._team.ranks if self._team is not None else []:
            rank.handle.refuse(why)
            rank.handle.detach()
        self._team = None

    @property
    def job(self) -> str:
        """The job's name."""
        return self._job or ""

    # -- its end

    def _guard(self) -> Any:
        """The lock, for a loader that can be used here. A lock that another thread held at a fork stays held in the
        child, so it is looked at first."""
        if self._closed:
            raise LoaderClosed(self._closed)
        team = self._team
        if team is not None:
            team.ranks[0].handle.check()
        return self._lock

    @property
    def is_here(self) -> bool:
        """Was it opened in this process, and not before a fork()?"""
        return self._team is None or all(rank.handle.is_here for rank in self._team.ranks)

    @property
    def closed(self) -> bool:
        """Whether it was closed or replaced by a newer loader."""
        return bool(self._closed)

    def close(self) -> None:
        """Releases the rank. Arrays that are still alive remain readable. Closing again does nothing."""
        self.close_for("the loader was closed: open a new one")

    def close_for(self, why: str) -> None:
        """close(), with the text of the error that using the loader raises from then on."""
        team, closed = self._team, self._closed
        crews, self._crews = self._crews, []
        for crew in crews:
            crew.close()
        if closed or team is None:
            self._closed = closed or why
            return
        self._closed = why
        for rank in team.ranks:
            rank.handle.refuse(why)  # a thread that waits for a batch gets this error
        if self.is_here:
            with self._lock:
                for rank in team.ranks:
                    rank.handle.detach()
        self._team = None


@atexit.register
def _close_all() -> None:
    """Releases the ranks at exit. A rank that a daemon thread may be using ends with the process, like the thread."""
    if threading.active_count() == 1:
        for loader in list(opened):
            loader.close()
