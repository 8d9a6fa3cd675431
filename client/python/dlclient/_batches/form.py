"""In which form a loader hands out its batches: which framework's arrays, what is copied, mapping or tuple, whole
batches or single samples, and fields that the program itself has (targets=)."""
from __future__ import annotations

import errno
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

import numpy

from .._answers.kinds_table import MIXES
from .._errors import OptionError, SampleDamaged
from .._pipeline import steps_of
from .layout import ChannelsLast
from .views import Views

Converter = Callable[[Any], Any]

SMALL_BYTES = 65536  # a field of short rows up to this size is copied
_COPIES: Dict[Any, str] = {"small": "small", True: "all", False: "none"}


def as_it_is(array: Any) -> Any:
    return array


def copies(value: object) -> str:
    """The option copy."""
    if not isinstance(value, (bool, str)) or value not in _COPIES:
        raise OptionError(f"copy: {value!r}; True (all fields), \"small\" (numbers and short rows, the default) or "
                          f"False are allowed")
    return _COPIES[value]


def tuple_of(value: object) -> Union[bool, Tuple[str, ...]]:
    """The option as_tuple: None or False, True, or the names of fields."""
    if value is None or isinstance(value, bool):
        return bool(value)
    if isinstance(value, (list, tuple)) and value and all(isinstance(name, str) for name in value):
        return tuple(value)
    raise OptionError(f"as_tuple: {value!r}; True (all fields, in the batch's own order), a list of names such as "
                      f"[\"image\", \"label\"], or False are allowed")


class Targets:
    """Numbers of the program's own, a row for each sample of the dataset, by the field that shows them."""

    def __init__(self, given: object) -> None:
        if not isinstance(given, Mapping):
            given = {} if given is None else {"label": given}
        self.arrays: Dict[str, Any] = {}
        for name, values in given.items():
            if not isinstance(name, str) or not name:
                raise OptionError(f"targets: {name!r} is not the name of a field")
            self.arrays[name] = self._array(name, values)

    @staticmethod
    def _array(name: str, values: object) -> Any:
        try:
            array = numpy.array(values)  # a copy: changing theirs later changes nothing
        except Exception as error:
            raise OptionError(f"targets: {name}: {error}") from None
        if array.ndim == 0 or array.dtype.kind not in "biufc":
            raise OptionError(f"targets: {name}: its shape is {list(array.shape)} and its dtype {array.dtype}; an "
                              f"array of numbers with a row for each sample of the dataset is needed")
        return array

    def check(self, n_samples: int, is_stream: bool, pipeline: str) -> None:
        """Once it is known how many samples there are, and what the pipeline is in its normal spelling."""
        mixes = [name for name, *_ in steps_of(pipeline) if name in MIXES]
        for name, array in self.arrays.items():
            if mixes:
                raise OptionError(f"targets: {mixes[0]} of the pipeline mixes each sample with another one, and "
                                  f"numbers of your own would stay those of one of them: take the labels from the "
                                  f"dataset, or mix the batch in the trainer")
            if is_stream:
                raise OptionError("targets: the dataset is a stream, whose samples have no numbers that are known "
                                  "before they come")
            if len(array) != n_samples:
                raise OptionError(f"targets: {name}: {len(array)} rows; the dataset has {n_samples} samples, and each "
                                  f"needs one (also with indices=)")


class Form:
    """The options of a loader about its batches. It is shared by all of them."""

    __slots__ = ("convert", "copy", "targets", "as_tuple", "is_single", "copies_all", "raises", "names_of", "views",
                 "channels_last", "are_targets_checked", "rebuild", "added_masks")

    def __init__(self, convert: Converter = as_it_is, copy: str = "none", targets: Optional[Targets] = None,
                 as_tuple: Union[bool, Tuple[str, ...]] = False, is_single: bool = False,
                 raises: bool = False) -> None:
        self.convert = convert
        self.copy = copy
        self.copies_all = copy == "all"
        self.targets: Dict[str, Any] = targets.arrays if targets is not None else {}
        self.are_targets_checked = False  # against the fields of the first batch
        self.as_tuple = as_tuple
        self.is_single = is_single
        self.names_of: Optional[Callable[[Any], List[str]]] = None  # set by the loader, which must not be kept alive
        self.views = Views()  # set by the loader, once it is open
        self.channels_last = ChannelsLast()  # the same
        self.rebuild: Optional[Callable[[Any], Any]] = None  # the structure of a Dataset's samples (from_dataset())
        self.added_masks: Dict[str, str] = {}  # by the field that pad has padded, once a batch has come
        self.raises = raises  # on_error="raise": the daemon substitutes, and such a batch is not handed out

    def is_small(self, shape: Tuple[int, ...], n_bytes: int) -> bool:
        """Is a field of this shape copied when it is asked for? One number a sample always is (labels, values), a row
        of numbers if all of them are few."""
        return self.copy == "small" and (len(shape) == 1 or (len(shape) == 2 and n_bytes <= SMALL_BYTES))

    def names(self, stored: List[str]) -> List[str]:
        """Fields of a batch that the daemon made of `stored`."""
        shown = [name for name in stored if name not in self.views.places]
        return shown + [name for name in self.targets if name not in shown]

    def members(self, name: str) -> Optional[Tuple[str, ...]]:
        """The stored fields that this one is a list of; None: it is one field."""
        return None if name in self.targets else self.views.groups.get(name)

    def place(self, name: str) -> Optional[Tuple[str, int]]:
        """The field whose list has this one as a later view, and where."""
        return None if name in self.targets else self.views.places.get(name)

    def check_targets(self, batch: Any) -> None:
        """Once, as long as it is known what the dataset's own fields are."""
        if self.are_targets_checked:
            return
        replaced = batch._replaced()
        if replaced:
            raise OptionError(f"targets: {replaced[0]!r} is a field of the dataset that is not one number or row of "
                              f"numbers for each sample, and yours would take its place: give yours another name")
        self.are_targets_checked = True

    def given(self, batch: Any) -> Any:
        """What the loop gets: the batch itself, or its fields as a tuple, or the exception that takes its place."""
        if batch is None:
            return None
        if self.raises and batch.substitutes is not None:
            raise _damage_of(batch)
        if self.targets:
            self.check_targets(batch)
        if self.as_tuple is False:
            return batch if self.rebuild is None else self.rebuild(batch)
        names = list(batch) if self.as_tuple is True else self.as_tuple
        missing = [name for name in names if name not in batch]
        if missing:
            raise OptionError(f"as_tuple: {missing[0]!r} is not a field of the batch, which has {', '.join(batch)}")
        return tuple(batch[name] for name in names)


def _damage_of(batch: Any) -> SampleDamaged:
    texts = batch.errors
    n = int((batch.substitutes >= 0).sum())
    error = SampleDamaged(f"batch {batch.step} of epoch {batch.epoch} is left out: {n} of its {batch.n_samples} "
                          f"samples cannot be read: {'; '.join(texts.values())}. next() continues after it",
                          errno.EBADMSG)
    error.errors = texts
    return error
