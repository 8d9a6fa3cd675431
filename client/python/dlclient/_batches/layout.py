"""Pictures whose pipeline ends with layout(channels_last), for torch: its memory format of that name is the daemon's
layout nhwc, described as [n, channels, height, width]."""
from __future__ import annotations

import re
from typing import Any, Sequence, Set

from .._pipeline import Part

_VIEW = re.compile(r"_\d+$")


def channels_last(array: Any) -> Any:
    """[n, h, w, c] as [n, c, h, w], of torch or NumPy. No copy."""
    return array.permute(0, 3, 1, 2) if hasattr(array, "permute") else array.transpose(0, 3, 1, 2)


def is_picture(array: Any) -> bool:
    """Has it channels? A mask that is named with its picture has none."""
    return getattr(array, "ndim", 0) == 4


class ChannelsLast:
    """Which fields of a loader's batches are such."""

    def __init__(self, parts: Sequence[Part] = ()) -> None:
        self._fields: Set[str] = set()
        self._has_first = False  # the first field of a batch
        for part in parts:
            if ["layout", "channels_last"] in part.steps:
                self._fields.update(part.fields)
                self._has_first |= not part.fields

    def __bool__(self) -> bool:
        return bool(self._fields) or self._has_first

    def settle(self, first: str) -> None:
        """A batch begins with this field; those of later batches do, too."""
        if self._has_first:
            self._fields.add(first)
            self._has_first = False

    def has(self, name: str) -> bool:
        return name in self._fields or _VIEW.sub("", name) in self._fields
