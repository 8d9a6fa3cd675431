"""The Loader: one rank's share of one dataset, batch after batch."""
from __future__ import annotations

import atexit
import ctypes
import errno
import threading
import weakref
from typing import Any, Dict, Iterator, List, Mapping, NoReturn, Optional, Sequence, Tuple, Union

from . import _convert, _form, _launch, _library, _opening, _options, _order, _state
from ._course import Course
from ._dataset import Dataset, Sampler, known
from ._epochs import EpochIterator, Span
from ._errors import DatasetChanged, Error, LoaderClosed, OptionError, RingFull, error_of
from ._fixed import Fixed, refuse_names, settle
from ._lease import Handle
from ._rank import Rank
from ._ranks import Team
from ._slots import SlotWait
from ._state import Identity, Place
from ._stats import Stats, StatsTaker
from ._torch_words import answers_torch
from ._waiting import ProgressWish

_open: weakref.WeakSet[Loader] = weakref.WeakSet()


class _Saver:
    """Makes states for the loader and its batches; a batch must not keep its loader alive."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.identity: Optional[Identity] = None

    def __call__(self, place: Any) -> Dict[str, Any]:
        assert self.identity is not None
        return _state.make(self.identity, place, self.span.told(place))


class Loader:
    """Batches of a dataset that dataloaderd serves.

        with dlclient.Loader("photos", batch_size=64, pipeline="random_resized_crop(224) hflip(0.5)") as loader:
            for epoch in range(2):
                loader.set_epoch(epoch)
                for batch in loader:            # batch["image"] uint8 [64, 224, 224, 3], batch["label"] int64 [64]
                    ...

    Data
        dataset         a path, which needs no configuration: "/data/photos", "./photos", a pathlib.Path, or, with keys
                        of a dataset section of dataloaderd.conf, {"path": "/data/photos", "split": "0:90%"}; it is
                        served by a daemon of your own, which starts by itself. Or the name of a dataset of the daemon's
                        configuration. Or several, one after the other as with torch's ConcatDataset: ["a", "b"] or
                        "a + b"; loader.dataset.parts says where each begins, and the field __dataset__, if the pipeline
                        names it, which one a sample is of
        batch_size      samples in a batch; None: single samples, whose fields have no dimension of the batch
        pipeline        the steps applied to a sample, see dataloaderd(8); None: "raw", the bytes as stored
        framework       the type of the fields: "numpy", "torch", "jax" or "tensorflow"
        as_tuple        True: a batch is a tuple of its fields, for `for images, labels in loader`; or a list of names:
                        ["image", "label"]
        copy            "small": numbers and short rows (labels, values: [n], and [n, k] up to 64 KiB) are copies, other
                        fields share the daemon's memory; True: all fields are copies; False: none is
        targets         numbers of your own, a row for each sample of the dataset: they are the field "label" of a
                        batch, in place of the dataset's; {"age": array} gives other names

    Order
        seed, shuffle   seed of order and augmentation; the order is that of torch's samplers. Two loaders with the same
                        seed and pipeline also have the same crops. "torch": the seed of torch.manual_seed(). What the
                        program does not say of seed, draws, shuffle, order, shuffle_buffer and sampler is taken from
                        `state`; without one they are 0, 0, True, "torch", None and None
        draws           0, 1, ...: another number gives other crops of the same samples in the same order, for several
                        views of each sample
        indices         the numbers of the samples that an epoch has, as torch's Subset and SubsetRandomSampler
        order           "torch", or "tdperm" for datasets of 10^8 samples and more; "buffer": a shuffle buffer, as
                        streams always have it
        shuffle_buffer  how many samples that holds; None: 1000
        drop_last       leave out a rank's last batch if it is incomplete
        dealing         how samples are dealt to the ranks: "strided" (one by one, as DistributedSampler), "batch"
                        (whole batches in turn, as Accelerate and the Trainer), or "chunk" (the same, as Megatron
                        has it)
        sampler         steps that make the order of an epoch, such as "weighted(column=w)", see dataloaderd(8). Then
                        epochs may differ in length, and len() is that of the current one
        columns         numbers that these steps need and the dataset does not have: {"w": array}, one a sample
        partition       "pad" (all ranks get the same number of samples, as with DistributedSampler), "drop", or "exact"
                        (each sample once)

    Ranks
        rank, world_size    None: from torch.distributed if it is initialised, else from the environment (torchrun, MPI,
                        a step of Slurm), else 0 and 1
        ranks           several ranks in this process: a `for` gives tuples with a batch for each rank, None for a rank
                        that has none
        job             the name under which the ranks of a run find each other; None: the run's id

    Loops
        epochs          real epochs that one `for` covers; None: it never ends
        steps_per_epoch divides an endless stream into virtual epochs of this number of batches
        state           the result of state_dict(): the loader attaches at that place
        timeout         the most seconds to wait for the next batch; then DaemonTimeout. None or 0: no limit
        persistent      False: the rank and its memory are released between loops

    Trouble
        on_error        at a damaged sample: "fail" (the job ends), "substitute" (the next one of the order), "skip"
                        (batches get smaller, and a rank may get one batch fewer: not for ranks that must step together)
                        or "raise" (SampleDamaged with its name; next() continues after that batch)
        max_errors      how many damaged samples are tolerated: a number, or, below 1, a share of the dataset; None: any
                        number
        on_restart      when the daemon ends: "wait" up to restart_timeout seconds and continue, or "raise" DaemonGone
        open_timeout    seconds to wait for an index that is being built, or for a dataset that is not staged, also if
                        its staging failed; None: as long as it takes
        progress        while an index is built, a dataset is staged or an order is made: None: on a terminal rank 0
                        shows a bar on stderr; elsewhere sentences are logged at INFO, and at WARNING once a minute if
                        opening takes more than three seconds. A function: it is called with the sentences instead, at
                        most once a second, also while the dataset cannot be read. False: no bar

    Memory
        slots           how many batches may be prepared ahead or held at once; None: the daemon's setting
        socket          None: DATALOADERD_SOCKET, else for names /run/dataloaderd/dataloaderd.sock, and for a path the
                        daemon that serves it

    All options are fixed when the loader opens: setting one later, such as loader.batch_size, is an error.
    Several threads may use a loader; they take turns. One that takes batches ahead of the others waits while all slots
    are held."""

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

    @answers_torch
    def __init__(self, dataset: _options.DatasetWish, batch_size: Optional[int] = 1, *,
                 pipeline: Optional[str] = None, seed: Union[int, str, None] = None, draws: Optional[int] = None,
                 shuffle: Optional[bool] = None, drop_last: bool = False, dealing: str = "strided",
                 partition: str = "pad", order: Optional[str] = None, shuffle_buffer: Optional[int] = None,
                 rank: Optional[int] = None, world_size: Optional[int] = None, ranks: Optional[Sequence[int]] = None,
                 job: Optional[str] = None, socket: Optional[str] = None, epochs: Optional[int] = 1,
                 steps_per_epoch: Optional[int] = None, state: Optional[Dict[str, Any]] = None, on_error: str = "fail",
                 max_errors: Union[int, float, None] = None, on_restart: str = "wait",
                 restart_timeout: Optional[float] = 300.0, slots: Optional[int] = None, framework: str = "numpy",
                 copy: Union[bool, str] = "small", timeout: Optional[float] = None,
                 open_timeout: Optional[float] = None, persistent: bool = True,
                 progress: ProgressWish = None, sampler: Optional[str] = None,
                 columns: Optional[Mapping[str, Any]] = None, indices: Any = None, targets: Any = None,
                 as_tuple: Union[bool, Sequence[str]] = False) -> None:
        self._closed = "the loader was never opened"
        self._wish = _options.Wish(dataset=dataset, batch_size=1 if batch_size is None else batch_size,
                                   pipeline=pipeline, drop_last=drop_last, dealing=dealing, partition=partition,
                                   rank=rank, world_size=world_size, ranks=ranks, job=job, socket=socket,
                                   on_error="substitute" if on_error == "raise" else on_error, max_errors=max_errors,
                                   on_restart=on_restart, restart_timeout=restart_timeout, slots=slots,
                                   open_timeout=open_timeout,
                                   **_order.completed(state, indices, columns, seed=seed, draws=draws, shuffle=shuffle,
                                                      order=order, shuffle_buffer=shuffle_buffer, sampler=sampler))
        self._span = Span(None if epochs is None else _options.integer("epochs", epochs, 1, 2**32 - 1),
                          None if steps_per_epoch is None else _options.integer("steps_per_epoch", steps_per_epoch, 1,
                                                                                2**40))
        if steps_per_epoch is not None and epochs not in (1, None):
            raise OptionError("epochs and steps_per_epoch exclude each other: virtual epochs are cut from an endless "
                              "stream")
        self._targets = _form.Targets(targets)
        self._form = _form.Form(_convert.converter(_options.text("framework", framework)), _form.copies(copy),
                                self._targets, _form.tuple_of(as_tuple), batch_size is None, on_error == "raise")
        self._timeout = _options.seconds("timeout", timeout) or None  # 0: wait without end, as torch does
        self._persistent = _options.flag("persistent", persistent)
        if progress is not None and progress is not False and not callable(progress):
            raise OptionError(f"progress: {progress!r} is neither a function nor False")
        self._progress = progress
        self._saver = _Saver(self._span)
        self._lock = threading.RLock()
        self._library = _library.load()
        self._wish.settle(self._library)
        self._iterator: Optional[weakref.ref[EpochIterator]] = None
        self._team: Optional[Team] = None
        self._begin_at(state)

    # -- opening

    def _begin_at(self, state: Optional[Dict[str, Any]]) -> None:
        """Attaches; with a state directly at its place. Whether the state fits is verified after that."""
        epoch, position = _state.peek(state) if state is not None else (0, 0)
        self._closed = ""
        self._job = self._wish.job
        try:
            self._attach(epoch, position)
        except OptionError:
            if state is None:
                raise
            self._attach(0, 0)  # these data have no such place: the state is refused below, with a better text
        ranks = self._ranks()
        info = ranks[0].handle.info
        self._job = _library.text_of(info.job)
        world, wish = int(info.world_size), self._wish
        settle(self, pipeline=_library.text_of(info.pipeline), world_size=world, rank=ranks[0].number,
               batch_size=None if self._form.is_single else wish.batch_size, seed=wish.seed, draws=wish.draws,
               shuffle=wish.shuffle, drop_last=wish.drop_last, dealing=wish.dealing, partition=wish.partition,
               order=wish.order, shuffle_buffer=wish.shuffle_buffer, num_workers=0, pin_memory=False,
               batch_sampler=None, dataset=Dataset(wish.dataset, weakref.WeakMethod(self._first_handle), self._lock),
               sampler=Sampler(weakref.WeakMethod(self._first_handle), ranks[0].number, world,
                               weakref.WeakMethod(self.set_epoch), weakref.WeakMethod(self._real_epoch),
                               wish.partition != "exact"))
        self._form.names_of = self.dataset.names_of
        self._is_stream = ranks[0].is_stream
        self._is_made = bool(info.is_made)
        self._refuse_steps()
        self._check_targets()
        self._epoch_batches = self._count_batches()
        parts = tuple((part.name, part.digest, part.n_samples) for part in self.dataset.parts)
        self._saver.identity = self._identity = Identity(self.dataset.name, self.dataset.digest,
                                                         _state.STREAM if self._is_stream else len(self.dataset),
                                                         self.pipeline, self.order, self.shuffle, self.seed, self.draws,
                                                         self.shuffle_buffer, parts if len(parts) > 1 else (),
                                                         _library.text_of(info.sampler),
                                                         _library.text_of(info.columns_digest),
                                                         wish.batch_size if info.uses_batch_size else 0)
        self._stats = StatsTaker()
        self._course = Course(self._span, weakref.WeakMethod(self._after))
        if state is not None:
            try:
                self.load_state_dict(state)
            except BaseException:
                self.close()
                raise
        _open.add(self)
        self._has_ended = False  # an epoch, for the first time
        self._warn()

    def _refuse_steps(self) -> None:
        """steps_per_epoch counts batches from epoch to epoch, so all epochs must have the same number."""
        if self._span.steps is None:
            return
        if self.partition == "exact" and self.world_size > 1:
            self.close()
            raise OptionError("steps_per_epoch: with partition=\"exact\" ranks have epochs of different lengths; take "
                              "\"pad\" or \"drop\"")
        if self._is_made:
            self.close()
            raise OptionError("steps_per_epoch: the epochs of a sampler may differ in length; say in the sampler how "
                              "many samples an epoch has, such as random(n=100000), or break out of the loop")

    def _check_targets(self) -> None:
        try:
            self._targets.check(_library.UNKNOWN if self._is_stream else len(self.dataset), self._is_stream)
        except BaseException:
            self.close()
            raise

    def _warn(self) -> None:
        """Shows the library's warnings, each sentence once."""
        for rank in self._team.ranks if self._team is not None else []:
            _opening.warn(self._library, rank.handle)

    def _attach(self, epoch: int, position: int) -> None:
        handles = _opening.open_all(self, self._library, self._wish, self._job, epoch, position, self._progress)
        self._team = Team([Rank(handle, epoch, position, self._form, self._saver) for handle in handles])

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
            return self._form.given(batch)
        batches = self._team.take(self._timeout)
        if batches is None:
            return None
        there = [batch for batch in batches if batch is not None]
        place = self._span.after_batch(self._course.place, there[0].epoch, min(batch.position for batch in there))
        self._course.place = place
        for batch in there:
            batch.place = place
        return tuple(map(self._form.given, batches))

    def _check_not_empty(self, n_ends: int) -> None:
        """An endless loop must not look for its first batch for ever."""
        if self._span.epochs is None or self._span.steps is not None:
            raise Error(f"{n_ends} epochs on end had no batch: {self.dataset.name} has {len(self.dataset)} samples, "
                        f"{len(self.sampler)} of them for this rank, with batch_size={self._wish.batch_size}, "
                        f"drop_last={self.drop_last}")

    def _leave_loop(self) -> None:
        self._iterator = None
        if not self._persistent:
            self._give_back("the rank was given back at the end of the loop (persistent=False)")

    def _give_back(self, why: str) -> None:
        for rank in self._team.ranks if self._team is not None else []:
            rank.handle.refuse(why)
            rank.handle.detach()
        self._team = None

    def _end_iterator(self, why: str) -> None:
        iterator = self._iterator() if self._iterator is not None else None
        if iterator is not None:
            iterator.end(why)
        self._iterator = None

    def _running(self) -> Optional[EpochIterator]:
        """The iterator of the running loop, if anybody still has it."""
        iterator = self._iterator() if self._iterator is not None else None
        return iterator if iterator is not None and iterator.live else None

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

    # -- looking at it

    @property
    def job(self) -> str:
        """The job's name."""
        return self._job or ""

    def stats(self) -> Stats:
        """What was counted since the loader was opened, and what the loop waits for; see Stats."""
        with self._guard():
            return self._stats.take([rank.handle for rank in self._ranks()])

    def __repr__(self) -> str:
        if self._closed:
            return f"<Loader {self._wish.dataset!r}, closed>"
        ranks = f"ranks {self._wish.ranks}" if self._wish.ranks is not None else f"rank {self.rank}"
        return (f"<Loader {self.dataset.name!r}: {ranks} of {self.world_size}, batches of {self.batch_size}, "
                f"{self.pipeline!r}, epoch {self.epoch}>")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Loader is a connection of this process to the daemon and cannot be pickled or copied: open "
                        "one in the other process (with mp.spawn, in the function that it runs), and send it "
                        "state_dict() if it is to continue there")

    # -- closing

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

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


refuse_names(Loader)


@atexit.register
def _close_all() -> None:
    """Releases the ranks at exit. A rank that a daemon thread may be using ends with the process, like the thread."""
    if threading.active_count() == 1:
        for loader in list(_open):
            loader.close()
