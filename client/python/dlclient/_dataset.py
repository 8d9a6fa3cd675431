"""`loader.dataset` and `loader.sampler`, with the attributes that other libraries look for."""
from __future__ import annotations

import ctypes
import errno
import weakref
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import _library
from ._errors import LoaderClosed, error_of
from ._fixed import Frozen


def _call(method: weakref.WeakMethod[Any], *arguments: object) -> Any:
    """Calls a method of the loader. Objects that belong to the loader do not keep it alive."""
    function = method()
    if function is None:
        raise LoaderClosed("the loader that this belonged to is gone")
    return function(*arguments)


def known(number: int, what: str) -> int:
    """A length that may not be known yet. TypeError is what len() of an iterable dataset raises in torch, too."""
    if number == _library.UNKNOWN:
        raise TypeError(f"{what} is a stream that has not ended, so it has no len() yet")
    return number


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


class Dataset(Frozen):
    """The dataset as the daemon serves it. len() is its number of samples; only the loader delivers them. `parts` are
    the datasets that it is made of, in their sequence; one dataset is its only part."""

    def __init__(self, name: str, handle: weakref.WeakMethod[Any], lock: Any) -> None:
        info = _call(handle).info
        self.parts = _parts(_call(handle))
        self.name = " + ".join(part.name for part in self.parts) if len(self.parts) > 1 else name
        self.digest = _library.text_of(info.dataset_digest)
        self._n_samples = int(info.dataset_samples)
        self.is_stream = bool(info.is_stream)
        self._handle = handle
        self._lock = lock
        self._classes: Optional[List[str]] = None
        self._settled = True

    def __len__(self) -> int:
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

    def __repr__(self) -> str:
        if self.is_stream:
            return f"<Dataset {self.name!r}, a stream, digest {self.digest[:12]}>"
        return f"<Dataset {self.name!r}, {len(self)} samples, digest {self.digest[:12]}>"


class Sampler(Frozen):
    """Takes the place of torch's DistributedSampler: len() is the number of samples that the rank gets in an epoch."""

    def __init__(self, handle: weakref.WeakMethod[Any], rank: int, world_size: int,
                 set_epoch: weakref.WeakMethod[Any]) -> None:
        info = _call(handle).info
        self.rank = rank
        self.num_replicas = world_size
        self._n_samples = int(info.epoch_samples)
        self._is_stream = bool(info.is_stream)
        self._handle = handle
        self._set_epoch = set_epoch
        self._settled = True

    def set_epoch(self, epoch: int) -> None:
        """As Loader.set_epoch()."""
        _call(self._set_epoch, epoch)

    def __len__(self) -> int:
        return known(self._n_samples if not self._is_stream else int(_call(self._handle).info.epoch_samples),
                     "the dataset")
