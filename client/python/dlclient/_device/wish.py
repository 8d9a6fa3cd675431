"""The option device: on which GPU a rank's batches are to be, and whose arrays they are there."""
from __future__ import annotations

import operator
import re
from typing import Any, List, Optional

from .._errors import OptionError

ANY = -1  # of the devices: the one that belongs to this process by its place on the node (LOCAL_RANK)

_NAME = re.compile(r"(cuda|gpu)(?::(\d{1,4}))?")


def _number(value: Any) -> Optional[int]:
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def _index(value: object) -> Optional[int]:
    """None: the CPU."""
    if value is None:
        return None
    number = _number(value)
    if number is not None and 0 <= number < 10000:
        return number
    if getattr(value, "platform", None) == "cpu":  # jax.Device
        return None
    if getattr(value, "platform", None) in ("gpu", "cuda"):
        theirs: Any = getattr(value, "local_hardware_id", None)
        return int(theirs if theirs is not None else getattr(value, "id"))
    name = str(value).lower()
    match = _NAME.fullmatch(name)
    if match is not None:
        return ANY if match[2] is None else int(match[2])
    if name == "cpu":
        return None
    raise OptionError(f"device: {value!r}; \"cuda\" (the GPU of this process), \"cuda:1\", torch.device(\"cuda\", 1), "
                      f"or None for batches in the CPU's memory are allowed")


class DeviceWish:
    """`indices`: a device for each of the loader's ranks, ANY, or None for a rank whose batches stay on the CPU."""

    def __init__(self, device: object, n_ranks: int) -> None:
        given: List[object] = list(device) if isinstance(device, (list, tuple)) else [device] * n_ranks
        if len(given) != n_ranks:
            raise OptionError(f"device: {len(given)} are named, and the loader has {n_ranks} "
                              f"rank{'s' if n_ranks > 1 else ''}: name one for each of ranks=")
        self.indices = [_index(one) for one in given]
        if n_ranks > 1 and not isinstance(device, (list, tuple)) and self.indices[0] == ANY:
            self.indices = list(range(n_ranks))  # one after the other, as DataParallel has its devices
        on_device = {index is not None for index in self.indices}
        if len(on_device) > 1:
            raise OptionError("device: some ranks on a GPU and some on the CPU: open two loaders")

    @property
    def is_cuda(self) -> bool:
        return self.indices[0] is not None
