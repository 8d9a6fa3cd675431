"""What is known of the dataset: what other libraries look for in `loader.dataset` and `loader.sampler`."""
from __future__ import annotations

import errno
import weakref
from typing import Any, Dict, List, Optional

from . import _library
from ._errors import LoaderClosed, error_of
from ._fixed import Frozen


def _call(method: weakref.WeakMethod[Any], *arguments: object) -> Any:
    """A method of the loader: what hangs on the loader does not keep it alive."""
    function = method()
    if function is None:
        raise LoaderClosed("the loader that this belonged to is gone")
    return function(*arguments)


class Dataset(Frozen):
    """The dataset as the daemon serves it. len() is its number of samples; they come through the loader alone."""

    def __init__(self, name: str, handle: weakref.WeakMethod[Any], lock: Any) -> None:
        info = _call(handle).info
        self.name = name
        self.digest = _library.text_of(info.dataset_digest)
        self._n_samples = int(info.dataset_samples)
        self._handle = handle
        self._lock = lock
        self._classes: Optional[List[str]] = None
        self._settled = True

    def __len__(self) -> int:
        return self._n_samples

    @property
    def classes(self) -> List[str]:
        """Names of the classes; that of label i is classes[i]. Asked of the daemon once; one that is away is
        waited for."""
        if self._classes is None:
            with self._lock:
                handle = _call(self._handle)
                n = -errno.EINTR
                while n == -errno.EINTR:  # a handler of a signal has run: what it raised would have ended this
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
        return f"<Dataset {self.name!r}, {len(self)} samples, digest {self.digest[:12]}>"


class Sampler(Frozen):
    """What stands where torch has a DistributedSampler: len() is the number of samples that the rank gets an epoch."""

    def __init__(self, n_samples: int, rank: int, world_size: int, set_epoch: weakref.WeakMethod[Any]) -> None:
        self.rank = rank
        self.num_replicas = world_size
        self._n_samples = n_samples
        self._set_epoch = set_epoch
        self._settled = True

    def set_epoch(self, epoch: int) -> None:
        """As Loader.set_epoch()."""
        _call(self._set_epoch, epoch)

    def __len__(self) -> int:
        return self._n_samples
