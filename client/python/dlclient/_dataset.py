"""`loader.dataset` and `loader.sampler`, with the attributes that other libraries look for."""
from __future__ import annotations

import ctypes
import errno
import os
import re
import weakref
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, NoReturn, Optional, Sequence, Tuple, Union, overload

import numpy

from . import _library
from ._answers.attributes import DATASET, missing
from ._errors import Error, LoaderClosed, OptionError, error_of
from ._fixed import Frozen
from ._lease import BFLOAT16, TYPES
from ._library import SAMPLES_ASKED_MAX


def _call(method: weakref.WeakMethod[Any], *arguments: object) -> Any:
    """Calls a method of the loader. Objects that belong to the loader do not keep it alive."""
    function = method()
    if function is None:
        raise LoaderClosed("the loader that this belonged to is gone: keep it in a variable")
    return function(*arguments)


def known(number: int, what: str) -> int:
    """A length that may not be known yet. TypeError is what len() of an iterable dataset raises in torch, too."""
    if number == _library.UNKNOWN:
        raise TypeError(f"{what} is a stream that has not ended, so it has no len() yet")
    return number


def patiently(handle: Any, function: Any, *arguments: Any) -> None:
    """Calls a function of the library until no signal interrupts it; the exception of a signal's handler ends it."""
    result = -errno.EINTR
    while result == -errno.EINTR:
        result = function(handle.pointer, *arguments)
    if result < 0:
        raise error_of(int(result), handle.library.error_text())


_PATH = re.compile(r"(/.*?)(?: \{[a-z_]+=.*\})?$", re.S)  # and its options, as the daemon's name of a path has them


class Part(NamedTuple):
    """One of the datasets of a loader. Its samples have the indices from `first` on."""

    name: str
    digest: str
    first: int
    n_samples: int


def _parts(handle: Any) -> Tuple[Part, ...]:
    part = _library.Part()
    parts: List[Part] = []
    while handle.library.quick.get_part(handle.pointer, len(parts), ctypes.byref(part), ctypes.sizeof(part)) == 0:
        parts.append(Part(_library.text_of(part.name), _library.text_of(part.digest), int(part.first),
                          int(part.n_samples)))
    return tuple(parts)


class Paths(Sequence[str]):
    """The names of a dataset's samples, as a sequence: paths within the dataset. The daemon is asked for those that are
    wanted, so that neither a length nor an index costs more than it has to."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return self._dataset.n_samples

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> List[str]: ...

    def __getitem__(self, place: Union[int, slice]) -> Union[str, List[str]]:
        if isinstance(place, slice):
            return self._dataset.names_of(range(*place.indices(len(self))))
        return self._dataset.names_of([range(len(self))[place]])[0]

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), SAMPLES_ASKED_MAX):
            yield from self[first:first + SAMPLES_ASKED_MAX]

    def __repr__(self) -> str:
        return f"<paths of {self._dataset!r}>"


class Dataset(Frozen):
    """The dataset as the daemon serves it. len() is its number of samples, or how many indices= has chosen of them, as
    of torch's Subset; numbers of samples, paths and targets are those of the whole dataset, of n_samples. Only the
    loader delivers samples. `parts` are the datasets that it is made of, in their sequence; one dataset is its only
    part."""

    def __init__(self, name: str, handle: weakref.WeakMethod[Any], lock: Any, n_chosen: Optional[int] = None) -> None:
        info = _call(handle).info
        self.parts = _parts(_call(handle))
        self.name = _library.text_of(info.dataset) or name  # of a path, the whole path and its options
        self.digest = _library.text_of(info.dataset_digest)
        self._n_samples = int(info.dataset_samples)
        self._n_chosen = n_chosen
        self.is_stream = bool(info.is_stream)
        self._handle = handle
        self._lock = lock
        self._classes: Optional[List[str]] = None
        self._targets: Any = None
        self._settled = True

    def __len__(self) -> int:
        return self.n_samples if self._n_chosen is None else self._n_chosen

    @property
    def n_samples(self) -> int:
        """Of the whole dataset, whatever indices= has chosen."""
        return known(self._n_samples if not self.is_stream else int(_call(self._handle).info.dataset_samples),
                     f"the dataset {self.name}")

    @property
    def classes(self) -> List[str]:
        """Names of the classes; that of label i is classes[i]. The daemon is asked once; if it is away, the call waits
        for it."""
        if self._classes is None:
            with self._lock:
                handle = _call(self._handle)
                n = -errno.EINTR
                while n == -errno.EINTR:  # a signal handler has run; an exception of it would have ended this loop
                    n = handle.library.n_classes(handle.pointer)
                if n < 0:
                    raise error_of(int(n), handle.library.error_text())
                name_of = handle.library.class_name
                self._classes = [_library.text_of(name_of(handle.pointer, label)) for label in range(n)]
        return list(self._classes)

    @property
    def class_to_idx(self) -> Dict[str, int]:
        """Label of each class."""
        return {name: label for label, name in enumerate(self.classes)}

    # -- its samples, as torchvision's datasets name them

    @property
    def paths(self) -> Paths:
        """The name of each sample: the path of its file within the dataset, or what else names it. A sequence that asks
        the daemon for what is looked at; list(paths) has all of them."""
        return Paths(self)

    @property
    def targets(self) -> Any:
        """int64 [n]: the label of each sample. The daemon is asked once."""
        if self._targets is None:
            self._targets = self.numbers("label")
        return self._targets.copy()

    @property
    def samples(self) -> List[Tuple[str, int]]:
        """(path, label) of each sample, as ImageFolder.samples; the paths are those within the dataset."""
        return list(zip(self.paths, self.targets.tolist()))

    @property
    def imgs(self) -> List[Tuple[str, int]]:
        """As samples."""
        return self.samples

    @property
    def root(self) -> str:
        """The path, if the loader was opened with one."""
        path = _PATH.match(self.name)
        if len(self.parts) != 1 or path is None:
            raise AttributeError("root")  # the text is that of __getattr__(), which Python then asks
        return path[1]

    def __getattr__(self, name: str) -> Any:
        if name == "root" and "parts" in vars(self):
            what = "made of several" if len(self.parts) > 1 else "a name of the configuration"
            raise AttributeError(f"the dataset has no attribute 'root': {self.name} is {what}, and `dlctl datasets` "
                                 f"says where it is")
        raise missing("the dataset", name, DATASET)

    def __getitem__(self, index: object) -> NoReturn:
        raise TypeError("samples are delivered by the loader alone, which is iterated over; for chosen ones open "
                        "Loader(..., indices=[...], shuffle=False), with batch_size=None for single ones")

    def numbers(self, field: str, samples: Optional[Sequence[int]] = None) -> Any:
        """The numbers of a field that are known without reading the samples (labels, columns of a table), as an array:
        of these samples, or of all."""
        return self._ask(samples, lambda handle, asked: self._ask_numbers(handle, field, asked), numpy.concatenate)

    def names_of(self, samples: Sequence[int]) -> List[str]:
        """Their names, such as names_of(batch.served)."""
        return list(self._ask(samples, self._ask_names, lambda pages: sum(pages, [])))

    def _ask(self, samples: Optional[Sequence[int]], ask: Callable[[Any, Any], Any], join: Callable[[Any], Any]) -> Any:
        """A page at a time; a signal handler may run between two, and its exception ends it."""
        array = numpy.arange(self.n_samples) if samples is None else numpy.asarray(samples)
        if array.ndim != 1 or (len(array) and array.dtype.kind not in "iu") or (len(array) and int(array.min()) < 0):
            raise OptionError("samples: a list of the numbers of samples is needed, from 0 on")
        asked = numpy.ascontiguousarray(array, dtype=numpy.uint64)
        with self._lock:
            handle = _call(self._handle)
            return join([ask(handle, asked[first:first + SAMPLES_ASKED_MAX])
                         for first in range(0, max(1, len(asked)), SAMPLES_ASKED_MAX)])

    def _ask_names(self, handle: Any, asked: Any) -> List[str]:
        names = ctypes.POINTER(ctypes.c_char_p)()
        patiently(handle, handle.library.sample_names, asked.ctypes.data, len(asked), ctypes.byref(names))
        return [_library.text_of(names[i]) for i in range(len(asked))]

    def _ask_numbers(self, handle: Any, field: str, asked: Any) -> Any:
        room, dtype = numpy.empty(len(asked), numpy.uint64), ctypes.c_uint32()
        patiently(handle, handle.library.sample_numbers, os.fsencode(field), asked.ctypes.data,
                  len(asked), room.ctypes.data, ctypes.byref(dtype))
        if dtype.value == BFLOAT16:
            raise OptionError(f"{field}: its numbers are bfloat16, which NumPy does not have")
        return room.view(numpy.uint8).view(TYPES[dtype.value])[:len(asked)].copy()

    def __repr__(self) -> str:
        if self.is_stream:
            return f"<Dataset {self.name!r}, a stream, digest {self.digest[:12]}>"
        chosen = "" if self._n_chosen is None else f", of which indices= names {self._n_chosen}"
        return f"<Dataset {self.name!r}, {self.n_samples} samples{chosen}, digest {self.digest[:12]}>"


class Sampler(Frozen):
    """Takes the place of torch's DistributedSampler: len() is the number of samples that the rank gets in an epoch, and
    iterating over it gives their numbers. Where steps make the order (sampler=, indices=, packed rows), it is made
    here as the daemon makes it; then epochs may differ in length."""

    def __init__(self, handle: weakref.WeakMethod[Any], rank: int, world_size: int,
                 set_epoch: weakref.WeakMethod[Any], epoch: weakref.WeakMethod[Any], lock: Any) -> None:
        self.rank = rank
        self.num_replicas = world_size
        self._epoch = epoch
        self._handle = handle
        self._set_epoch = set_epoch
        self._lock = lock
        self._known: Optional[Tuple[int, int, int]] = None  # epoch, samples of this rank, of all ranks
        info = _call(handle).info
        self._is_fixed = not info.is_stream and not info.is_made  # all epochs are equally long
        if self._is_fixed:
            self._measured(_call(handle), 0)
        self._settled = True

    def set_epoch(self, epoch: int) -> None:
        """As Loader.set_epoch()."""
        _call(self._set_epoch, epoch)

    @property
    def num_samples(self) -> int:
        """As len()."""
        return len(self)

    @property
    def total_size(self) -> int:
        """How many samples all ranks get together, repeated ones included."""
        return self._lengths()[1]

    def __iter__(self) -> Iterator[int]:
        """The samples of this rank in the epoch that is running or comes next, in their order, whole also after a
        resume."""
        with self._lock:
            handle, epoch = _call(self._handle), _call(self._epoch)
            indices = numpy.empty(self._measured(handle, epoch)[0], numpy.int64)
            patiently(handle, handle.library.epoch_order, epoch, indices.ctypes.data, len(indices))
        return iter(indices.tolist())

    def __len__(self) -> int:
        return self._lengths()[0]

    def __repr__(self) -> str:
        try:
            n = f"{len(self)} samples of an epoch"
        except (TypeError, Error):  # a stream; or the loader is closed
            n = "an epoch of unknown length"
        return f"<Sampler of rank {self.rank} of {self.num_replicas}: {n}>"

    def _lengths(self) -> Tuple[int, int]:
        """Of the epoch that is running or comes next."""
        if self._is_fixed and self._known is not None:
            return self._known[1:]
        with self._lock:
            handle, epoch = _call(self._handle), _call(self._epoch)
            known(int(handle.info.dataset_samples), "the dataset")
            if self._known is None or self._known[0] != epoch:
                self._measured(handle, epoch)
            assert self._known is not None
            return self._known[1:]

    def _measured(self, handle: Any, epoch: int) -> Tuple[int, int]:
        n, n_all = ctypes.c_uint64(), ctypes.c_uint64()
        patiently(handle, handle.library.epoch_length, epoch, ctypes.byref(n), ctypes.byref(n_all))
        self._known = (epoch, n.value, n_all.value)
        return n.value, n_all.value
