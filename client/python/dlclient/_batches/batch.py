"""A batch as the loop gets it: named arrays over the memory into which the daemon has decoded, without a copy."""
from __future__ import annotations

import sys
from opcode import opmap
from typing import Any, Callable, Dict, Iterator, List, Mapping, NoReturn, Optional, Tuple

import numpy

from .._answers.attributes import BATCH
from .._errors import BatchReleased, StillInUse
from .._lease import TEXT, TEXTS, Lease, column
from . import convert as _convert
from .form import Converter, Form, as_it_is
from .layout import channels_last, is_picture
from .ragged import Ragged
from .source import Source, TextLists, Texts

State = Dict[str, Any]

_MINE = Form()  # of batches that a program makes
_UNPACKING = tuple(opmap[name] for name in ("UNPACK_SEQUENCE", "UNPACK_EX") if name in opmap)


def _is_unpacked(depth: int) -> bool:
    """Is iter() called by `a, b = batch`, or by `for a, b in loader`? Python's own code for that tells: names are
    rarely what is wanted there."""
    try:
        frame = sys._getframe(depth + 1)
        return frame.f_code.co_code[frame.f_lasti] in _UNPACKING
    except (AttributeError, IndexError, ValueError):
        return False


def _put(function: Converter, value: Any) -> Any:
    if value is None or isinstance(value, (str, list)):  # also a single sample's text
        return value
    if isinstance(value, numpy.generic):  # a single sample's number
        value = numpy.asarray(value)
    return value.moved(function) if isinstance(value, Ragged) else function(value)


def _own(array: Any) -> Any:
    return numpy.array(_convert.on_host(array), copy=True)


def _owned(value: Any) -> Any:
    return value.copy() if isinstance(value, Ragged) else _put(_own, value)


class Batch(Mapping[str, Any]):
    """One batch: a mapping of field names to arrays whose first dimension is the batch.

        batch["image"]      uint8 [n, height, width, 3] with the usual pipelines; also batch.image
        batch["label"]      int64 [n]
        batch["image"]      with views(2) in the pipeline a list: the two views of each sample, [n, ...] each
        batch.served        int64 [n]: which samples of the dataset it holds; look up your own targets by this (a copy)
        batch.indices       int64 [n]: which samples the order asks for: the same, except for substitutes (a copy)
        batch.substitutes   None, or int64 [n]: the sample that was served in place of a damaged one, -1 elsewhere
        batch.paths         their names, a list of str; the daemon is asked for them
        batch.errors        {place in the batch: text} of the damaged samples
        batch.n_skipped     damaged samples that were left out (on_error="skip")
        batch.epoch, batch.n_samples; batch.step counts from where the epoch was begun (or resumed)
        batch.is_replay     an earlier batch once more, beside the epoch's own: somebody runs `dlctl diagnose --confirm`

    Arrays share the daemon's memory, except those of numbers and short rows (labels, values), which are copies: see the
    option copy. The batch's slot of the ring is held as long as the batch, one of its arrays, or anything made from one
    without a copy is alive; nothing has to be released by hand. len(batch) is the number of fields.

    `Batch({...})` makes a batch from your own arrays, for libraries that map a function over a batch's fields."""

    __slots__ = ("_values", "_source", "_form", "_gone", "_state", "_columns", "epoch", "step", "n_samples",
                 "n_skipped", "is_replay", "position", "place", "__weakref__")

    epoch: int
    step: int
    n_samples: int
    n_skipped: int
    is_replay: bool
    position: int  # global position after it, once all ranks have taken their batch of this step
    place: Any  # where the loader's epoch continues after this batch

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._values: Dict[str, Any] = dict(fields)
        self._source: Optional[Source] = None
        self._form = _MINE
        self._gone: Optional[str] = None
        self._state: Optional[Callable[[Any], State]] = None
        self._columns: Optional[Tuple[Any, Any, Dict[int, str], Any]] = None
        self.epoch = self.step = self.n_skipped = self.position = 0
        self.is_replay = False
        self.n_samples = next((len(value) for value in self._values.values() if hasattr(value, "__len__")), 0)
        self.place = None

    @classmethod
    def _of(cls, source: Source, state: Callable[[Any], State]) -> Batch:
        lease, record = source.lease, source.record
        batch = cls.__new__(cls)
        batch._values = {}
        batch._source = source
        batch._form = source.form
        batch._gone = None
        batch._state = state
        batch._columns = None
        batch.epoch = lease.epoch
        batch.step = lease.step
        batch.n_samples = record.n_samples
        batch.n_skipped = record.n_skipped
        batch.is_replay = bool(record.is_replay)
        batch.position = record.position
        batch.place = None
        return batch

    # -- a mapping

    def __getitem__(self, name: str) -> Any:
        values = self._values
        if name in values:
            return values[name]
        source = self._usable()
        is_known = source is not None and source.has(name)
        place = self._form.place(name)  # a later view: known when the source has been asked
        if place is not None:
            return self[place[0]][place[1]]
        if not is_known:
            places = "; as_tuple=True gives fields by their places" if isinstance(name, int) else ""
            raise KeyError(f"{name!r}: this batch has {', '.join(map(repr, self._names()))}{places}")
        value = values[name] = self._field(name, self._form.convert)
        return value

    def __iter__(self) -> Iterator[str]:
        names = self._names()
        if _is_unpacked(1):
            raise TypeError(f"a batch is a mapping with the fields {', '.join(names)}, and would be unpacked into "
                            f"their names: write batch[{names[0] if names else 'image'!r}], or open the loader with "
                            f"as_tuple=True, which gives the tuple ({', '.join(names)})")
        return iter(names)

    def __len__(self) -> int:
        return len(self._names())

    def __contains__(self, name: object) -> bool:
        source = self._usable()
        return source.has(name) if source else name in self._values or self._form.place(str(name)) is not None

    def _names(self) -> List[str]:
        source = self._usable()
        return source.names() if source else list(self._values)

    def _show(self, convert: Converter, name: str, array: Any) -> Any:
        """A field as the loop gets it: of a single sample without the batch's dimension."""
        value = _put(convert, array)
        if self._source is None:  # it is in this shape already
            return value
        if self._form.channels_last and self._form.channels_last.has(name) and is_picture(array):
            value = _put(channels_last, value)
        return value[0] if self._form.is_single else value

    def _field(self, name: str, convert: Converter, prepare: Converter = as_it_is) -> Any:
        """A field as the loop gets it, made of NumPy arrays; one that has views is a list of them."""
        members, source = self._form.members(name), self._source
        if members is None:
            return self._show(convert, name, prepare(source.array(name) if source is not None else self._values[name]))
        arrays = [source.stored(member) for member in members] if source is not None else self._values[name]
        return [self._show(convert, name, prepare(array)) for array in arrays]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            known = f"; {BATCH[name]}" if name in BATCH else ""
            raise AttributeError(f"a batch has no {name!r}; its fields are {', '.join(self._names())}"
                                 f"{known}") from error

    def __dir__(self) -> List[str]:
        return sorted(set(super().__dir__()) | (set() if self._gone else set(self._names())))

    def _replaced(self) -> List[str]:
        """Fields of the daemon that targets= would replace although they are not a number or a row of numbers."""
        source = self._usable()
        fields = source.fields() if source else {}
        return [name for name in self._form.targets if name in fields and
                (fields[name].places or fields[name].dtype in (TEXT, TEXTS) or fields[name].n_dims > 2)]

    # -- what is known of its samples

    def _known(self) -> Tuple[Any, Any, Dict[int, str], Any]:
        if self._columns is None:
            source = self._usable()
            if source is None:
                return None, None, {}, None
            n, record = self.n_samples, source.record
            substitutes = column(record.substitutes, n) if record.substitutes else None
            self._columns = (column(record.indices, n), substitutes, source.errors(), column(record.served, n))
        return self._columns

    @property
    def indices(self) -> Any:
        """int64 [n]: which samples of the dataset the order asks for. A copy, which may be kept. If a damaged sample
        was substituted, the batch holds another one: see `served`."""
        return self._known()[0]

    @property
    def served(self) -> Any:
        """int64 [n]: which samples of the dataset the batch holds: as `indices`, except that for a substituted sample
        it is the substitute. Look up your own targets by this. A copy, which may be kept."""
        return self._known()[3]

    @property
    def paths(self) -> List[str]:
        """The names of the samples that the batch holds: paths within the dataset. The daemon is asked; as long as the
        loader is open."""
        served = self.served
        if served is None or self._form.names_of is None:
            raise BatchReleased("a batch that no loader handed out has no samples of a dataset")
        return self._form.names_of(served)

    @property
    def substitutes(self) -> Any:
        """None if no sample was substituted, else int64 [n]: the sample served in place of a damaged one, or -1."""
        return self._known()[1]

    @property
    def errors(self) -> Dict[int, str]:
        """Why samples were substituted: place in the batch -> text. At most 16 texts are kept for a batch."""
        return dict(self._known()[2])

    # -- in other shapes

    def _mapped(self, function: Converter) -> Dict[str, Any]:
        """The fields as NumPy arrays, with a function applied to each."""
        return {name: self._field(name, function) for name in self._names()}

    def _as(self, framework: str) -> Dict[str, Any]:
        convert = _convert.converter(framework)
        if self._form.convert is convert:
            return {name: self[name] for name in self._names()}
        return self._mapped(convert)

    def numpy(self) -> Dict[str, Any]:
        """The fields as NumPy arrays: without a copy from the CPU's memory, with one from a device, of torch or JAX."""
        return self._as("numpy")

    def torch(self) -> Dict[str, Any]:
        """The fields as torch tensors, in the CPU's memory or on the loader's device, without a copy."""
        return self._as("torch")

    def jax(self) -> Dict[str, Any]:
        """The fields as JAX arrays on JAX's default device."""
        return self._as("jax")

    def tensorflow(self) -> Dict[str, Any]:
        """The fields as TensorFlow tensors."""
        return self._as("tensorflow")

    def to(self, device: Any, non_blocking: bool = False) -> Dict[str, Any]:
        """The fields as torch tensors on a device. What shares the daemon's memory is copied, so the slot is released
        together with the batch; what is on the device already stays as it is. non_blocking is accepted because
        libraries pass it; the copies are complete when this returns."""
        is_in_slot = self._source is not None

        def copied(value: Any) -> Any:
            return _put(lambda tensor: tensor.to(device, copy=is_in_slot), value)

        return {name: copied(value) if self._form.members(name) is None else [copied(view) for view in value]
                for name, value in self.torch().items()}

    def model_inputs(self, field: str = "tokens") -> Dict[str, Any]:
        """A field that `pad` has padded, under the names of Hugging Face's models: input_ids, attention_mask (int64, a
        copy) and, if the pipeline makes them, labels: what DataCollatorWithPadding and
        DataCollatorForLanguageModeling return. For model(**batch.model_inputs()). The mask is FIELD_mask, or the one
        that pad(mask=attention_mask) has named so."""
        names = (f"{field}_mask" if f"{field}_mask" in self else "attention_mask", f"{field}_labels")
        if names[0] not in self:
            raise KeyError(f"'{field}_mask': field {field!r} is not padded; end its part of the pipeline with pad, or "
                           f"with pad(mask=attention_mask)")
        mask = self[names[0]]
        if _convert.is_on_device(mask):
            raise TypeError("these arrays lie on a device and no framework owns them: open the loader with "
                            "framework=\"torch\" or \"jax\"")
        inputs = {"input_ids": self[field],
                  "attention_mask": mask.long() if hasattr(mask, "long") else mask.astype("int64")}
        if names[1] in self:
            inputs["labels"] = self[names[1]]
        return inputs

    def copy(self) -> Dict[str, Any]:
        """Copies of the fields as NumPy arrays, which may be kept."""
        return {name: self._field(name, as_it_is, _owned) for name in self._names()}

    def state_dict(self) -> State:
        """The state that continues after this batch, for programs that take batches ahead of their use: save the state
        of the batch that was used last. As Loader.state_dict()."""
        if self._state is None:
            raise BatchReleased("a batch that no loader handed out has no place in an epoch")
        return self._state(self.place)

    # -- giving it back

    def _usable(self) -> Optional[Source]:
        if self._gone is not None:
            raise BatchReleased(self._gone)
        if self._source is not None:
            self._source.lease.handle.check_here()  # a closed loader's batches stay: their lease keeps the memory
        return self._source

    def _leave(self) -> Optional[Lease]:
        lease = self._source.lease if self._source is not None else None
        self._gone = (f"batch {self.step} of epoch {self.epoch} was released: use its fields before that, or take "
                      f"batch.copy()")
        self._source = None
        self._values = {}
        return lease

    def release(self) -> None:
        """Releases the slot now; the fields are gone. If arrays of the batch are still alive, it raises StillInUse, and
        the slot is released when the last of them dies. Releasing again does nothing."""
        lease = self._leave()
        fields = lease.fields() if lease is not None else []
        if lease is not None and fields:
            label = lease.label
            del lease  # an exception that is kept has the variables of this function
            raise StillInUse(f"{label} cannot be released while arrays of it are alive: "
                             f"{', '.join(sorted(set(fields)))}. del them first, or take batch.copy(); the "
                             f"slot is released with the last of them")
        if lease is not None:
            lease.release()

    def _detach_from_slot(self, owned: Converter = _owned) -> None:
        """Copies all fields and releases the slot: what copy=True does before a batch is handed out."""
        self._keep(owned)
        self._let_slot_go()

    def _keep(self, owned: Converter) -> None:
        """Makes all fields, so that they need the slot no more."""
        source = self._source
        if source is not None:
            if self._form.targets:
                self._form.check_targets(self)
            self._known()
            self._values = {name: self._field(name, self._form.convert, owned) for name in source.names()}

    def _let_slot_go(self) -> None:
        """After _keep()."""
        source, self._source = self._source, None
        if source is not None:
            source.lease.release()

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()  # arrays that are still alive keep the slot until they die

    # A batch is the one that it is: comparing arrays field by field would say nothing useful.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __reduce__(self) -> NoReturn:
        raise TypeError("a batch lies in memory shared with the daemon and cannot be pickled: send batch.copy(), or "
                        "open a loader in the other process")

    def __repr__(self) -> str:
        if self._gone is not None:
            return f"<Batch {self.step} of epoch {self.epoch}, released>"
        try:
            fields = ", ".join(f"{name}: {_describe(self[name])}" for name in self._names())
        except Exception as error:  # pylint: disable=broad-except
            fields = str(error)
        return f"<Batch {self.step} of epoch {self.epoch}, {self.n_samples} samples; {fields}>"


def _describe(value: Any) -> str:
    if isinstance(value, Ragged):
        return repr(value)
    if isinstance(value, Texts):
        return f"{len(value)} texts"
    if type(value) is list and value and hasattr(value[0], "shape"):
        return f"{len(value)} views, {_describe(value[0])}"
    if isinstance(value, TextLists):
        return f"{len(value)} lists of texts"
    return f"{getattr(value, 'dtype', type(value).__name__)} {list(getattr(value, 'shape', ()))}"
