"""The loops of a loader: what one `for` gives, how long it is, and where it stands."""
from __future__ import annotations

import ctypes
import weakref
from typing import Any, Dict, Iterator, Optional, Tuple

from . import _launch, _library, _opening, _options
from ._attached import Attached
from ._dataset import known
from ._errors import Error, OptionError, RingFull, error_of, let_go
from ._places import state as _state
from ._places.epochs import EpochIterator, Span
from ._places.state import Place
from ._slots import SlotWait


class Loops(Attached):
    """Takes batches from the ranks."""

    _span: Span
    _iterator: Optional[weakref.ref[EpochIterator]]
    _persistent: bool
    _is_stream: bool
    _is_made: bool          # the order, by a sampler's steps
    _epoch_batches: int
    _has_ended: bool        # an epoch, for the first time

    # -- iterating

    def __iter__(self) -> Iterator[Any]:
        """Begins the next epoch (or what `epochs` and steps_per_epoch make of it), or the place that set_epoch() or
        load_state_dict() chose. It ends the previous iterator. Until the first batch is taken, set_epoch() still
        applies to this loop."""
        with self._guard():
            self._end_iterator("a newer iter() of this loader has begun, which ended this one: a loader has one loop "
                               "at a time; open a second loader for a loop within a loop")
            self._course.aim()
            iterator = EpochIterator(self)
            self._iterator = weakref.ref(iterator)
            return iterator

    def _next(self, iterator: EpochIterator) -> Any:
        """The next batch of the loop, or None at its end. A thread that waits for another one to release a slot holds
        no lock meanwhile."""
        wait: Optional[SlotWait] = None
        try:
            while True:
                try:
                    with self._guard():
                        return self._next_locked(iterator)
                except RingFull as full:
                    wait = wait or SlotWait([rank.handle for rank in self._ranks()], self._timeout)
                    wait.bear(full)
        finally:
            if wait is not None:
                wait.end()

    def _next_locked(self, iterator: EpochIterator) -> Any:
        if not iterator.begun:
            self._begin_loop(iterator)
        n_ends = 0
        while not self._span.over(self._course.place):
            batches = self._take()
            if batches is not None:
                return batches
            self._course.place = self._span.after_epoch(self._course.place)
            if not self._has_ended:  # once: a rank that was released and attached again would ask again
                self._has_ended = True
                self._warn()
            n_ends += 1
            if n_ends > 2:
                self._check_not_empty(n_ends)
        self._leave_loop()
        return None

    def _begin_loop(self, iterator: EpochIterator) -> None:
        if not self._wish.is_told and not self._has_ended:
            _launch.check(self.rank, self.world_size)
        self._ranks()
        assert self._team is not None
        place = self._course.place
        if not self._span.over(place):  # as set_epoch() may have chosen it: a virtual epoch that is complete
            self._team.go_to(place.epoch, place.position)
        self._course.begin()
        iterator.begun = True

    def _take(self) -> Any:
        """Takes one step and records its place."""
        assert self._team is not None
        if self._wish.ranks is None:
            batch = self._team.ranks[0].take(self._timeout)
            if batch is None:
                return None
            self._course.place = batch.place = self._span.after_batch(self._course.place, batch.epoch, batch.position)
            try:
                return self._form.given(batch)
            except Error as error:
                del batch
                let_go(error)
                raise
        batches = self._team.take(self._timeout)
        if batches is None:
            return None
        there = [batch for batch in batches if batch is not None]
        place = self._span.after_batch(self._course.place, there[0].epoch, min(batch.position for batch in there))
        self._course.place = place
        for batch in there:
            batch.place = place
        try:
            return tuple(map(self._form.given, batches))
        except Error as error:
            del batches, batch, there
            let_go(error)
            raise

    def _check_not_empty(self, n_ends: int) -> None:
        """An endless loop must not look for its first batch for ever."""
        if self._span.epochs is None or self._span.steps is not None:
            raise Error(f"{n_ends} epochs on end had no batch: {self.dataset.name} has {self.dataset.n_samples} "
                        f"samples, {len(self.sampler)} of them for this rank, with batch_size={self._wish.batch_size}, "
                        f"drop_last={self.drop_last}")

    def _leave_loop(self) -> None:
        self._iterator = None
        if not self._persistent:
            self._give_back("the rank was given back at the end of the loop (persistent=False)")

    def _end_iterator(self, why: str) -> None:
        iterator = self._iterator() if self._iterator is not None else None
        if iterator is not None:
            iterator.end(why)
        self._iterator = None

    def _running(self) -> Optional[EpochIterator]:
        """The iterator of the running loop, if anybody still has it."""
        iterator = self._iterator() if self._iterator is not None else None
        return iterator if iterator is not None and iterator.live else None

    # -- how long it is

    def __len__(self) -> int:
        """How many batches a whole loop gives this rank; TypeError if it has no end."""
        if self._span.steps is not None:
            return self._span.steps
        if self._span.epochs is None:
            raise TypeError("a Loader with epochs=None has no end and so no len()")
        if self._is_made:
            self._stand_at_loop()
        if self._is_stream or self._is_made:
            self._epoch_batches = self._count_batches()
        return known(self._epoch_batches, f"the dataset {self.dataset.name}") * self._span.epochs

    def _stand_at_loop(self) -> None:
        """Goes where the running loop is or the next one begins, as its first batch would: the daemon knows how long
        that epoch is."""
        with self._guard():
            running = self._running()
            if running is not None and running.begun:
                return
            place = self._course.here(running is not None)
            self._ranks()
            assert self._team is not None
            if not self._span.over(place):
                self._team.go_to(place.epoch, place.position)
                for rank in self._team.ranks:
                    rank.leave_ended()

    def _count_batches(self) -> int:
        """Batches of an epoch; UNKNOWN of a stream that has not ended. A sampler's epoch is the one that is running, or
        the one that comes: its order has to be made first."""
        if self._is_made:
            for rank in self._ranks():
                rank.await_length(self._timeout)
        return max(int(rank.handle.info.epoch_batches) for rank in self._ranks())

    # -- where it stands

    @property
    def step(self) -> int:
        """How many batches of the loop that is running, or of the one that comes, lie before the place where it stands:
        0, unless a state was loaded. For progress bars: tqdm(loader, initial=loader.step) begins there and ends at
        len(loader)."""
        place = self._here()
        if self._span.steps is not None:
            return place.done
        left, whole = ctypes.c_uint64(), ctypes.c_uint64()
        handle = self._first_handle()
        for number, position in ((left, place.position), (whole, 0)):
            result = self._library.quick.batches_from(handle.pointer, position, ctypes.byref(number))
            if result < 0:
                raise error_of(int(result), self._library.error_text())
        known(left.value, f"the dataset {self.dataset.name}")
        return place.done * whole.value + whole.value - left.value if not self._span.over(place) else len(self)

    @property
    def remaining(self) -> int:
        """How many batches are left of that loop: len(loader) - loader.step."""
        return len(self) - self.step

    def _here(self) -> Place:
        """Where the running loop is, or the coming one begins."""
        return self._course.here(self._running() is not None)

    def _real_epoch(self) -> int:
        return self._here().epoch

    @property
    def epoch(self) -> int:
        """The epoch of the loop that is running or was left before its end; after a loop that ended, or after loading a
        state, the epoch that the next iter() begins. With steps_per_epoch it is the virtual epoch."""
        return self._span.number(self._here())

    @epoch.setter
    def epoch(self, _: int) -> None:
        raise OptionError("epoch: cannot be set; set_epoch() chooses the epoch of the next loop")

    def _after(self, epoch: int, position: int, n_batches: int) -> Tuple[int, int]:
        """The place of the run after each rank has taken n_batches more; the library's epoch plan computes it."""
        return _opening.cursor_after(self._library, self._wish, self.rank, self.world_size, self._samples(),
                                     (epoch, position), n_batches)

    def _samples(self) -> int:
        """Positions of an epoch; UNKNOWN of a stream that has not ended, and of a sampler, whose epochs differ."""
        if self._is_made:
            return _library.UNKNOWN
        return int(self._first_handle().info.dataset_samples) if self._is_stream else self._identity.samples

    def set_epoch(self, epoch: int) -> None:
        """Chooses the epoch of the next loop, or of a loop that has taken no batch yet; a loop that has taken batches
        continues unchanged. After load_state_dict() of the same epoch the place within it is kept: if the state was
        saved at the epoch's last batch, nothing of the epoch is left and the loop is empty."""
        epoch = _options.integer("epoch", epoch, 0, 2**32 - 1)
        with self._guard():
            running = self._running()
            self._course.choose(epoch, running is not None and not running.begun)

    def state_dict(self) -> Dict[str, Any]:
        """The place where a run that loads it continues: after the batches that the loop has received. It is small,
        plain (JSON can hold it) and costs nothing; it can be loaded at another world size and batch size. A state that
        was saved in the loop body of an epoch's last batch continues with the next epoch, as one that was saved after
        the loop does."""
        return self._saver(self._course.current(self._running() is not None))

    def load_state_dict(self, state: Dict[str, Any], allow_growth: bool = False) -> None:
        """The next iter() continues where state_dict() was called. StateError, with the field and both values, for a
        state of other data, of another order or pipeline, or one that was edited; the loader is then left unchanged.

        With allow_growth the datasets may have other samples than when the state was saved, for a run whose data grow
        from epoch to epoch: if the state is at an epoch's end, the next epoch begins with the samples that there are
        now. Their names must be the same."""
        with self._guard():
            known = _state.verify(state, self._identity, _options.flag("allow_growth", allow_growth))
            place = self._span.restored(known)
            if known["digest"] != self._identity.digest and place.position > 0:  # after the last of the old samples
                place = self._span.after_epoch(place)
                place = self._span.following(place) if self._span.over(place) else place
            self._end_iterator("a state was loaded: begin a new loop to go on there")
            self._course.resume(place)
