"""The Loader: one rank's share of one dataset, batch after batch. Here are its options and how it opens; what a `for`
does is in _loops, and what it holds of the daemon in _attached."""
from __future__ import annotations

import threading
import weakref
from typing import Any, Callable, Dict, Mapping, NoReturn, Optional, Sequence, Union

from . import _library, _options, _order
from ._answers.attributes import LOADER, missing
from ._answers.keywords import answers_torch
from ._answers.transforms import pipeline_text
from ._attached import Saver, opened
from ._batches import convert as _convert, form as _form, layout as _layout, names as _names, views as _views
from ._dataset import Dataset, Sampler
from ._device.receivers import receivers_of
from ._errors import OptionError
from ._fixed import refuse_names, settle
from ._loops import Loops
from ._own.dataset import FromDataset, pipeline_of
from ._pipeline import parts_of
from ._places import state as _state
from ._places.course import Course
from ._places.epochs import EpochIterator, Span
from ._places.state import Identity
from ._ranks import Team
from ._stats import Stats, take
from ._waiting import ProgressWish


class Loader(Loops):
    """Batches of a dataset that dataloaderd serves.

        with dlclient.Loader("/data/photos", batch_size=64, pipeline="random_resized_crop(224) hflip(0.5)") as loader:
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
                        names it, which one a sample is of. Or a Dataset object of your own: dlclient.from_dataset()
        batch_size      samples in a batch; None: single samples, whose fields have no dimension of the batch
        pipeline        the steps applied to a sample, see dataloaderd-pipeline(7); None: "raw", the bytes as stored
        views           2 to 16: that many pictures of each sample, with draws of their own, for contrastive training;
                        batch["image"] is then a list, and with as_tuple=True `for (a, b), labels in loader` works. The
                        same as views(2) at the end of the steps
        framework       the type of the fields: "numpy", "torch", "jax" or "tensorflow"; None: "torch" for a Dataset of
                        torch's (from_dataset()) and with names=, else "numpy"
        as_tuple        True: a batch is a tuple of its fields, for `for images, labels in loader`; or a list of names:
                        ["image", "label"]. None: as False; of from_dataset() the structure of a sample
        names           "transformers": a batch is a dict for model(**batch): input_ids, attention_mask, labels,
                        position_ids, pixel_values; other fields keep their names, and their masks are left out, as are
                        cu_seqlens and segments. A padded label or label_ids becomes labels, a copy that holds -100
                        where it was padded; if its type cannot hold that, it keeps its name and its mask. framework is
                        then "torch" by default. None: a batch has the fields' own names
        device          None: fields are in the CPU's memory. "cuda": on the GPU of this process, which is torch's
                        current one, or that of its place on the node (LOCAL_RANK); "cuda:1" or torch.device("cuda", 1):
                        on that one. With several ranks a list of one for each, or "cuda": one after the other. The
                        pipeline's last steps, flips, color_jitter, grayscale, to, normalize and layout, are done there,
                        with the same numbers. Fields are torch's or JAX's own tensors, or without a framework
                        DeviceArrays, of which those of four batches may be alive; text and bytes stay on the host.
                        docs/gpu.md has the rest
        into            {"image": tensor}: batches are written to these torch tensors on the device, for CUDA graphs;
                        two such dicts are written in turn, and save a copy. Each name must be that of a field
        copy            "small": numbers and short rows (labels, values: [n], and [n, k] up to 64 KiB) are copies, other
                        fields share the daemon's memory; True: all fields are copies; False: none is
        targets         numbers of your own, a row for each sample of the dataset: they are the field "label" of a
                        batch, in place of the dataset's; {"age": array} gives other names

    Order
        seed, shuffle   seed of order and augmentation; the order is that of torch's samplers. Two loaders with the same
                        seed and pipeline also have the same crops. "torch": the seed of torch.manual_seed(). None: one
                        is drawn, in a run of one process, and loader.seed has it. What the program does not say of
                        seed, draws, shuffle, order, shuffle_buffer and sampler is taken from `state`; without one they
                        are 0, 0, True, "torch", None and None
        draws           0, 1, ...: another number gives other crops of the same samples in the same order: those of the
                        later views of a loader that has views
        indices         the numbers of the samples that an epoch has, as torch's Subset and SubsetRandomSampler
        order           "torch", or "tdperm" for datasets of 10^8 samples and more; "buffer": a shuffle buffer, as
                        streams always have it; "blocks": the dataset's shards in random sequence, 8 of them shuffled
                        together, or "blocks(window=16)", for data that are far away: docs/orders.md says what it costs
        shuffle_buffer  how many samples that holds; None: 1000
        drop_last       leave out a rank's last batch if it is incomplete
        dealing         how samples are dealt to the ranks: "strided" (one by one, as DistributedSampler), "batch"
                        (whole batches in turn, as Accelerate and the Trainer), or "chunk" (the same, as Megatron
                        has it)
        sampler         steps that make an epoch's order: "weighted(column=w)", see dataloaderd-samplers(7). Then
                        epochs may differ in length, and len() is that of the current one
        columns         numbers that these steps need and the dataset does not have: {"w": array}, one a sample
        partition       "pad" (all ranks get the same number of samples, as with DistributedSampler), "drop", or "exact"
                        (each sample once)

    Own functions
        workers         {"my": function}: the functions that the pipeline names, as in "center_crop(224) python(my)".
                        Each is called with an array, a sample's field, and changes it or returns another one; in
                        "image, label: center_crop(224) python(my)" it is my(image, label). It may have parameters
                        rng, sample and epoch, too. With python(my, batch=true) it is called once for a batch. They run
                        in processes that the loader starts; docs/own-code.md has the rest
        n_workers       how many processes that are, for each rank; None: as many as CPUs, 8 at most
        worker_timeout  seconds that a function may take for a sample; then its process is killed and another one tries.
                        None: no limit
        worker_start    "fork": the processes are forked when the loader opens, so any function can be used; "spawn":
                        they begin with a fresh interpreter, and the functions are sent by cloudpickle, or by pickle;
                        "threads": there is one process, forked, with n_workers threads, and a function draws from its
                        parameter rng only. None: "threads" in an interpreter without a global lock, if all functions
                        have rng, else "fork"
        worker_init_fn  a function that each process calls before its first sample, with its number from 0 on, as
                        torch's DataLoader does; dlclient.get_worker_info() says the rest there

    Ranks
        rank, world_size    None: from torch.distributed if it is initialised, else from the environment (torchrun, MPI,
                        a step of Slurm), else 0 and 1
        ranks           several ranks in this process: a `for` gives tuples with a batch for each rank, None for a rank
                        that has none
        job             the name under which the ranks of a run find each other; None: the run's id

    Loops
        epochs          real epochs that one `for` covers; None: it never ends
        steps_per_epoch divides an endless stream into virtual epochs of this number of batches. Like epochs it must be
                        the same on all ranks, which nobody compares: a saved state is one place for all of them, and
                        a rank that took more or fewer batches would get some again, or never
        state           the result of state_dict(): the loader attaches at that place
        timeout         the most seconds to wait for the next batch; then DaemonTimeout. None or 0: no limit
        persistent      False: the rank and its memory are released between loops

    Trouble
        on_error        at a damaged sample: "fail" (the job ends), "substitute" (the next one of the order), "skip"
                        (batches get smaller, and a rank may get one batch fewer: not for ranks that must step together)
                        or "raise" (SampleDamaged with its name; next() continues after that batch)
        max_errors      how many damaged samples are tolerated: a number, or, below 1, a share of the dataset; None: any
                        number. One more ends the job: TooManyErrors
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

    @answers_torch
    def __init__(self, dataset: Union[_options.DatasetWish, FromDataset], batch_size: Optional[int] = 1, *,
                 pipeline: Optional[str] = None, seed: Union[int, str, None] = _order.UNSAID,
                 draws: Optional[int] = None, shuffle: Optional[bool] = None, drop_last: bool = False,
                 dealing: str = "strided",
                 partition: str = "pad", order: Optional[str] = None, shuffle_buffer: Optional[int] = None,
                 rank: Optional[int] = None, world_size: Optional[int] = None, ranks: Optional[Sequence[int]] = None,
                 job: Optional[str] = None, socket: Optional[str] = None, epochs: Optional[int] = 1,
                 steps_per_epoch: Optional[int] = None, state: Optional[Dict[str, Any]] = None, on_error: str = "fail",
                 max_errors: Union[int, float, None] = None, on_restart: str = "wait",
                 restart_timeout: Optional[float] = 300.0, slots: Optional[int] = None, framework: Optional[str] = None,
                 copy: Union[bool, str] = "small", timeout: Optional[float] = None,
                 open_timeout: Optional[float] = None, persistent: bool = True,
                 progress: ProgressWish = None, sampler: Optional[str] = None,
                 columns: Optional[Mapping[str, Any]] = None, indices: Any = None, targets: Any = None,
                 as_tuple: Union[bool, Sequence[str], None] = None, views: Optional[int] = None, device: Any = None,
                 into: Any = None, workers: Optional[Mapping[str, Any]] = None, n_workers: Optional[int] = None,
                 worker_timeout: Optional[float] = 60.0, worker_start: Optional[str] = None,
                 worker_init_fn: Optional[Callable[[int], Any]] = None, names: Optional[str] = None) -> None:
        self._closed = "the loader was never opened"
        self._crews = []
        source, dataset = (dataset, dataset.source) if isinstance(dataset, FromDataset) else (None, dataset)
        if source is not None:
            pipeline, workers = pipeline_of(source, pipeline, workers, views), source.workers
        rename = _names.check(names, as_tuple not in (None, False) or source is not None)
        if framework is None:
            framework = "torch" if rename is not None or (source is not None and source.is_torch) else "numpy"
        self._wish = _options.Wish(dataset=dataset, batch_size=1 if batch_size is None else batch_size,
                                   pipeline=_views.with_views(pipeline_text(pipeline), views),
                                   drop_last=drop_last, dealing=dealing, partition=partition,
                                   rank=rank, world_size=world_size, ranks=ranks, job=job, socket=socket,
                                   on_error=_options.at_damage(on_error), max_errors=max_errors,
                                   on_restart=on_restart, restart_timeout=restart_timeout, slots=slots,
                                   open_timeout=open_timeout, workers=workers, n_workers=n_workers,
                                   worker_timeout=worker_timeout, worker_start=worker_start,
                                   worker_init_fn=worker_init_fn,
                                   **_order.completed(state, indices, columns, seed=seed, draws=draws, shuffle=shuffle,
                                                      order=order, shuffle_buffer=shuffle_buffer, sampler=sampler))
        self._n_chosen = None if indices is None else len(indices)
        self._span = Span(None if epochs is None else _options.integer("epochs", epochs, 1, 2**32 - 1),
                          None if steps_per_epoch is None else _options.integer("steps_per_epoch", steps_per_epoch, 1,
                                                                                2**40))
        if steps_per_epoch is not None and epochs not in (1, None):
            raise OptionError("epochs and steps_per_epoch exclude each other: virtual epochs are cut from an endless "
                              "stream")
        self._targets = _form.Targets(targets)
        self._form = _form.Form(_convert.converter(_options.text("framework", framework)), _form.copies(copy),
                                self._targets, _form.tuple_of(as_tuple), batch_size is None, on_error == "raise")
        if source is not None and as_tuple is None:
            self._form.rebuild = source.rebuild
        if rename is not None:
            self._form.rebuild = rename
        self._framework = framework
        n_ranks = 1 if self._wish.ranks is None else len(self._wish.ranks)
        self._receivers = receivers_of(device, n_ranks, framework, into, self._form.copy)
        if self._receivers is not None and framework == "numpy":
            self._form.convert = _form.as_it_is  # its arrays are not NumPy's
        self._wish.devices = self._receivers.bus_ids if self._receivers is not None else None
        self._timeout = _options.seconds("timeout", timeout) or None  # 0: wait without end, as torch does
        self._persistent = _options.flag("persistent", persistent)
        if progress is not None and progress is not False and not callable(progress):
            raise OptionError(f"progress: {progress!r} is neither a function nor False")
        self._progress = progress
        self._saver = Saver(self._span)
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
               order=_library.text_of(info.order), shuffle_buffer=wish.shuffle_buffer, num_workers=0, pin_memory=False,
               batch_sampler=None, timeout=self._timeout or 0, device=self._device_names(),
               dataset=Dataset(wish.dataset, weakref.WeakMethod(self._first_handle), self._lock, self._n_chosen),
               sampler=Sampler(weakref.WeakMethod(self._first_handle), ranks[0].number, world,
                               weakref.WeakMethod(self.set_epoch), weakref.WeakMethod(self._real_epoch), self._lock))
        self._form.names_of = self.dataset.names_of
        said = parts_of(self.pipeline)
        self._form.views = _views.Views(said)
        if self._framework == "torch":
            self._form.channels_last = _layout.ChannelsLast(said)
        self._is_stream = ranks[0].is_stream
        self._is_made = bool(info.is_made)
        self._refuse_steps()
        self._check_targets()
        self._epoch_batches = self._count_batches()
        parts = tuple((part.name, part.digest, part.n_samples) for part in self.dataset.parts)
        self._saver.identity = self._identity = Identity(self.dataset.name, self.dataset.digest,
                                                         _state.STREAM if self._is_stream else self.dataset.n_samples,
                                                         self.pipeline, self.order, self.shuffle, self.seed, self.draws,
                                                         self.shuffle_buffer, parts if len(parts) > 1 else (),
                                                         _library.text_of(info.sampler),
                                                         _library.text_of(info.columns_digest),
                                                         wish.batch_size if info.uses_batch_size else 0,
                                                         _library.text_of(info.blocks_digest))
        self._course = Course(self._span, weakref.WeakMethod(self._after))
        if state is not None:
            try:
                self.load_state_dict(state)
            except BaseException:
                self.close()
                raise
        opened.add(self)
        self._has_ended = False  # an epoch, for the first time
        self._warn()

    def _device_names(self) -> Any:
        if self._receivers is None:
            return None
        return self._receivers.names if self._wish.ranks is not None else self._receivers.names[0]

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
            self._targets.check(_library.UNKNOWN if self._is_stream else self.dataset.n_samples, self._is_stream,
                                self.pipeline)
        except BaseException:
            self.close()
            raise

    # -- looking at it

    def stats(self) -> Stats:
        """What was counted since the loader was opened, and what holds up the loop; see Stats."""
        with self._guard():
            return take([rank.handle for rank in self._ranks()])

    def __repr__(self) -> str:
        if self._closed:
            return f"<Loader {self._wish.dataset!r}, closed>"
        ranks = f"ranks {self._wish.ranks}" if self._wish.ranks is not None else f"rank {self.rank}"
        return (f"<Loader {self.dataset.name!r}: {ranks} of {self.world_size}, batches of {self.batch_size}, "
                f"{self.pipeline!r}, epoch {self.epoch}>")

    def __getattr__(self, name: str) -> NoReturn:
        raise missing("a Loader", name, LOADER)

    def __getitem__(self, index: object) -> NoReturn:
        raise TypeError("a Loader is iterated over and takes the place of torch's DataLoader: do not wrap it in one, "
                        "write `for batch in loader`")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Loader is a connection of this process to the daemon and cannot be pickled or copied: open "
                        "one in the other process (with mp.spawn, in the function that it runs), and send it "
                        "state_dict() if it is to continue there")

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


refuse_names(Loader)
