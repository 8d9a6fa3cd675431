"""A Dataset object of the trainer's as the source of a loader: anything with __len__ and __getitem__, such as torch's
map-style Datasets, NumPy's arrays, lists.

To the daemon it is as many numbers (its format "numbers"), in whatever order, rank and epoch; the worker processes of
the loader make the samples of them. So everything of a loader works as for a dataset of files."""
from __future__ import annotations

import contextlib
import random
import re
import sys
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Union

import numpy

from .._answers.keywords import is_map_style
from .._errors import OptionError
from .._options import integer
from .generators import kept_state
from .kinds import Unfit, check_dtype
from .room import Misfit
from .several import Writer, Wrong
from .structure import (
    FIELDS_MAX, MAX_BYTES, NAME_MAX, RESERVED, SIDE_MAX, Field, Taker, check_shape, fields_of, rebuilder)

SAMPLES_MAX = 2**40
PIPELINE_MAX = 4000     # characters; the daemon takes a few more, for its own spelling
_NAME = re.compile(r"[A-Za-z0-9_.-]+")

Fields = Union[Sequence[str], Mapping[str, Any], None]


class Fetch(Writer):
    """The function that the worker processes apply: makes the sample of a number."""

    def __init__(self, dataset: Any, title: str, fields: Sequence[Field]) -> None:
        self.dataset = dataset
        self.title = title
        self.taker = Taker(fields)

    def write(self, sample: int, outs: Sequence[Any]) -> None:
        """Writes its fields to where they belong in the batch."""
        result = self.dataset[sample]
        try:
            self.taker.put(result, outs)
        except Unfit as unfit:
            raise Wrong(f"returned a sample that differs from the first: {unfit}. A field has one dtype and shape in "
                        f"all samples: crop, resize, pad or convert in the dataset") from None
        except Misfit as misfit:
            raise Wrong(f"returned a sample that is too large: {misfit}. from_dataset() has max_bytes= for texts, and "
                        f"the most of a field in fields=") from None

    def __call__(self, *arguments: Any) -> None:
        raise Wrong("from_dataset() is not a function of a pipeline")


def _length(dataset: Any) -> int:
    """A __len__ may return nonsense, for which len() has its own errors."""
    try:
        n = len(dataset)
    except Exception as error:
        raise OptionError(f"from_dataset: len() of the {type(dataset).__name__} fails: {type(error).__name__}: {error}"
                          ) from error
    if n == 0:
        raise OptionError(f"from_dataset: the {type(dataset).__name__} is empty: its len() is 0")
    if n > SAMPLES_MAX:
        raise OptionError(f"from_dataset: len() of the {type(dataset).__name__} is {n}; {SAMPLES_MAX} samples are the "
                          f"limit")
    return n


@contextlib.contextmanager
def _generators_kept(dataset: Any) -> Iterator[None]:
    """What the first sample draws changes nothing for the training process."""
    undo = kept_state("", dataset)
    torch = sys.modules.get("torch")
    states = random.getstate(), numpy.random.get_state(), torch.get_rng_state() if torch is not None else None
    try:
        yield
    finally:
        for function in undo:
            function()
        random.setstate(states[0])
        numpy.random.set_state(states[1])
        if torch is not None:
            torch.set_rng_state(states[2])


def _name_of(dtype: Any) -> str:
    """By which NumPy finds it again: the names of texts are other ones."""
    return str(dtype.str if dtype.kind in "USV" else dtype.name)


def _told_text(name: str, form: Any, max_bytes: int) -> Optional[Field]:
    """str, or (str, 1000): a text, and the most bytes that it has. None: the form is another one."""
    kind, *most = form if isinstance(form, tuple) and form else (form,)
    if kind is not str and not (isinstance(kind, str) and kind == "text"):
        return None
    if len(most) > 1 or not all(isinstance(n, int) and 0 < n <= SIDE_MAX for n in most):
        raise OptionError(f"fields: {name!r}: {form!r}; expected str, or (str, 1000) for texts of up to 1000 bytes")
    return Field(name, (name,), "text", (-1,), most[0] if most else max_bytes)


def _told_varying(name: str, form: Any, dtype: str, shape: Sequence[int], most: Sequence[Any]) -> Field:
    """A first dimension of -1, with the most that it has."""
    if len(most) != 1 or not isinstance(most[0], int) or not 0 < most[0] <= SIDE_MAX:
        raise OptionError(f"fields: {name!r}: {form!r}; -1 is a dimension that differs from sample to sample, and the "
                          f"room for it has to be known: write the most that it has after the shape, as in "
                          f"(\"float32\", (-1, 4), 100)")
    if shape.index(-1) != 0 or any(n < 1 for n in shape[1:]):
        raise OptionError(f"fields: {name!r}: {tuple(shape)}; only the first dimension may be -1, and the others have "
                          f"one element or more")
    return Field(name, (name,), dtype, tuple(shape), most[0])


def _told_fields(given: Mapping[str, Any], max_bytes: int) -> List[Field]:
    """fields= as a dict: {"image": ("float32", (3, 224, 224))}, or of arrays that have the dtype and shape."""
    fields = []
    for name, form in given.items():
        text = _told_text(name, form, max_bytes)
        if text is not None:
            fields.append(text)
            continue
        try:
            dtype, shape, *most = (form.dtype, form.shape) if hasattr(form, "shape") else form
            dtype = str(dtype).rpartition("torch.")[2]
            dtype = dtype if dtype == "bfloat16" else _name_of(numpy.dtype(dtype))
            shape = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
        except (TypeError, ValueError):
            raise OptionError(f"fields: {name!r}: {form!r}; expected a dtype and a shape, as in (\"float32\", (3, 224, "
                              f"224)), or an array that has them") from None
        varying = _told_varying(name, form, dtype, shape, most) if -1 in shape else None
        if any(n < 1 for n in shape[varying is not None:]) or (most and varying is None):
            raise OptionError(f"fields: {name!r}: {shape}; a sample's shape is needed, without that of the "
                              f"batch, each dimension of one element or more")
        try:
            if dtype != "bfloat16":
                check_dtype(numpy.dtype(dtype))
            check_shape(shape if varying is None else (varying.most, *shape[1:]))
        except Unfit as unfit:
            raise OptionError(f"fields: {name!r} {unfit}") from None
        fields.append(varying or Field(name, (name,), dtype, shape))
    if not 0 < len(fields) <= FIELDS_MAX:
        raise OptionError(f"fields: {len(fields)} of them; 1 to {FIELDS_MAX} are allowed")
    return fields


def _check_names(names: Sequence[Any]) -> None:
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > NAME_MAX:
            raise OptionError(f"fields: {name!r} cannot be the name of a field: 1 to {NAME_MAX} letters, digits, _, - "
                              f"and dots are allowed")
        if name in RESERVED:
            raise OptionError(f"fields: {name!r} cannot be the name of a field here: choose another one")
    if len(set(names)) != len(names):
        raise OptionError(f"fields: {', '.join(names)}: each name once")


class FromDataset:
    """What dlclient.from_dataset() returns, for the first argument of a Loader."""

    def __init__(self, dataset: Any, fields: Fields = None, max_bytes: int = MAX_BYTES) -> None:
        max_bytes = integer("max_bytes", max_bytes, 1, SIDE_MAX)
        if not is_map_style(dataset):
            kind = type(dataset).__name__
            hint = (": a dataset that is only iterated over has no samples with numbers, which order, ranks and resume "
                    "need; give it __getitem__ and __len__" if hasattr(type(dataset), "__iter__") else
                    ": give an object, and not its class" if isinstance(dataset, type) else "")
            raise OptionError(f"from_dataset: a {kind} does not have __len__ and __getitem__{hint}")
        self.dataset = dataset
        self.n_samples = _length(dataset)
        self.title = re.sub(r"[^A-Za-z0-9_]", "_", type(dataset).__name__)[:60]
        self.rebuild: Optional[Callable[[Any], Any]] = None
        self.is_torch = any(kind.__module__.startswith("torch.utils.data") for kind in type(dataset).__mro__)
        if isinstance(fields, Mapping):
            _check_names(list(fields))
            self.fields = _told_fields(fields, max_bytes)
        else:
            self._learn(fields, max_bytes)
        if len(self.pipeline) > PIPELINE_MAX:
            raise OptionError(f"fields: the names and shapes of the {len(self.fields)} fields are a text of "
                              f"{len(self.pipeline)} characters, {PIPELINE_MAX} are allowed: give them shorter "
                              f"names, or put those of one kind into one array")

    def _learn(self, names: Any, max_bytes: int) -> None:
        """The fields of the first sample."""
        if names is not None:
            if isinstance(names, str) or not isinstance(names, Sequence):
                raise OptionError(f"fields: {names!r}; expected names for the fields, as in [\"image\", \"label\"], or "
                                  f"their dtypes and shapes, as in {{\"image\": (\"float32\", (3, 224, 224))}}")
            _check_names(names)
        try:
            with _generators_kept(self.dataset):
                result = self.dataset[0]
        except Exception as error:
            raise OptionError(f"from_dataset: the first sample, {self.title}[0], fails: {type(error).__name__}: "
                              f"{error}") from error
        try:
            self.fields = fields_of(result, names, max_bytes)
        except Unfit as unfit:
            raise OptionError(f"from_dataset: the first sample, {self.title}[0]{'' if str(unfit)[0] == '[' else ' '}"
                              f"{unfit}") from None
        except Exception as error:  # of an object that says how it becomes an array
            raise OptionError(f"from_dataset: the first sample, {self.title}[0], cannot be made into arrays: "
                              f"{type(error).__name__}: {error}") from error
        self.rebuild = rebuilder(result, self.fields)
        torch = sys.modules.get("torch")
        if torch is not None:
            for field in self.fields:
                value = result
                for key in field.path:
                    value = value[key]
                self.is_torch |= isinstance(value, torch.Tensor)

    @property
    def source(self) -> Dict[str, Any]:
        """The dataset as the daemon knows it."""
        return {"path": "/", "format": "numbers", "count": self.n_samples, "title": self.title}

    @property
    def pipeline(self) -> str:
        names = ", ".join(f"{field.name}=index" for field in self.fields)
        return f"{names}: python({self.title}, {', '.join(f'{field.name}={field.form}' for field in self.fields)})"

    @property
    def workers(self) -> Dict[str, Fetch]:
        return {self.title: Fetch(self.dataset, self.title, self.fields)}

    def __len__(self) -> int:
        return self.n_samples

    def __repr__(self) -> str:
        fields = ", ".join(f"{field.name} {field.told}" for field in self.fields)
        return f"<from_dataset of {self.title}: {self.n_samples} samples, {fields}>"


def from_dataset(dataset: Any, fields: Fields = None, max_bytes: int = MAX_BYTES) -> FromDataset:
    """A Dataset object as the source of a loader: whatever has __len__ and __getitem__, such as torch's Datasets.

        loader = dlclient.Loader(dlclient.from_dataset(dataset), batch_size=64, n_workers=4)
        for images, labels in loader:           # as the dataset returns them
            ...

    `n_workers` processes call dataset[i] and write the result to its place in the batch; order, ranks, epochs, resume
    and on_error are the loader's own. A sample may be an array, a tensor, a picture of PIL, a number, a text, or
    tuples, dicts and named tuples of these, and a batch has the same structure; of texts it has a list. dtypes and
    shapes are those of dataset[0], and all samples must have them. What is drawn with random, numpy.random, torch and
    generators that the dataset owns depends on seed, epoch and sample alone.

    `fields`: names for the fields of a sample that is a tuple, in its sequence, as in ["image", "label"]; or, for a
    dict, what each has, so that dataset[0] is not needed: {"image": ("float32", (3, 224, 224)), "label": ("int64",
    ())}. There, str is a text, and -1 a first dimension that differs from sample to sample, with the most that it has:
    {"caption": str, "boxes": ("float32", (-1, 4), 100)}; a batch has them one beside the other, as a Ragged.

    `max_bytes`: that a text has at most, in UTF-8. docs/own-code.md has the rest."""
    return FromDataset(dataset, fields, max_bytes)


def pipeline_of(source: FromDataset, pipeline: Optional[str], workers: Any, views: Optional[int]) -> str:
    """The options of a loader that its source decides about."""
    for option, value in (("pipeline", pipeline), ("workers", workers), ("views", views)):
        if value is not None:
            raise OptionError(f"{option}: the samples of from_dataset() are what {source.title}.__getitem__ returns: "
                              f"do in the dataset what {option}= would do, or name the files by their path and leave "
                              f"the dataset out")
    return source.pipeline
