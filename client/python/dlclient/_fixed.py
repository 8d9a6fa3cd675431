"""Attributes that are fixed when a loader opens. torch's DataLoader refuses to have its batch_size set later, and so do
we: if setting an attribute changed nothing, the program would train on other batches than it says."""
from __future__ import annotations

from typing import Any, Dict, Generic, NoReturn, Optional, Type, TypeVar, Union, cast, overload

from ._answers.attributes import LOADER, missing
from ._errors import OptionError

T = TypeVar("T")


def refuse(thing: str, name: str, instead: str) -> OptionError:
    return OptionError(f"{name}: cannot be set after {thing} was opened, it would change nothing; {instead}")


class Fixed(Generic[T]):
    """An attribute that is set once, while the loader opens. Python looks here before it looks into the instance."""

    def __init__(self) -> None:
        self.name = ""

    def __set_name__(self, _: Type[Any], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, loader: None, kind: Type[Any]) -> Fixed[T]: ...
    @overload
    def __get__(self, loader: object, kind: Type[Any]) -> T: ...

    def __get__(self, loader: Optional[object], kind: Type[Any]) -> Union[Fixed[T], T]:
        if loader is None:
            return self
        try:
            return cast(T, vars(loader)[self.name])
        except KeyError:
            raise missing("a Loader", self.name, LOADER) from None

    def __set__(self, loader: object, value: T) -> None:
        raise refuse("a loader", self.name, f"open another one, with {self.name}=..."
                     if self.name in _KEYWORDS else "the daemon reads and decodes, and nothing is started here")


# The keywords of Loader.
_KEYWORDS = frozenset("""dataset batch_size pipeline seed draws shuffle drop_last dealing partition order shuffle_buffer
    rank world_size ranks epochs steps_per_epoch on_error max_errors on_restart restart_timeout slots framework copy
    timeout open_timeout persistent progress sampler columns as_tuple indices targets views device into workers
    n_workers worker_timeout worker_start worker_init_fn names""".split())

# Names that are not attributes of a Loader, but that users of its keywords or of torch's DataLoader may try to set.
NAMES = ("ranks", "epochs", "steps_per_epoch", "on_error", "max_errors", "on_restart", "restart_timeout", "slots",
         "framework", "copy", "open_timeout", "persistent", "progress", "columns", "as_tuple", "indices",
         "targets", "views", "into", "names", "workers", "n_workers", "worker_timeout", "worker_start",
         "persistent_workers", "prefetch_factor", "collate_fn", "worker_init_fn", "generator",
         "multiprocessing_context", "pin_memory_device", "in_order")


def refuse_names(kind: Type[Any]) -> None:
    """Makes a class refuse to set NAMES; reading them remains an AttributeError, which says what to read instead."""
    for name in NAMES:
        fixed: Fixed[Any] = Fixed()
        fixed.name = name
        setattr(kind, name, fixed)


def settle(loader: object, **values: object) -> None:
    """Sets the fixed attributes, once."""
    cast(Dict[str, object], vars(loader)).update(values)


class Frozen:
    """A read-only object that belongs to a loader: once it is made, none of its attributes can be set."""

    _settled = False

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} belongs to a loader of this process and cannot be pickled: open a "
                        f"loader in the other process")

    def __setattr__(self, name: str, value: object) -> None:
        if self._settled and not name.startswith("_"):
            raise refuse("the loader", name, "samples are made by the daemon: open a loader with another pipeline or "
                                             "other options")
        object.__setattr__(self, name, value)
