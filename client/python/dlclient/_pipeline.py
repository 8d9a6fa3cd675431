"""What the text of a pipeline says, as libdlclient and the daemon read it."""
from __future__ import annotations

import ctypes
from typing import List, NamedTuple

from . import _library
from ._errors import OptionError


class Part(NamedTuple):
    end: int                # byte of the text up to which it goes
    fields: List[str]       # by their names in a batch; none if the first one is meant
    steps: List[List[str]]  # name, arguments


def parts_of(pipeline: str) -> List[Part]:
    library, text = _library.load(), pipeline.encode("utf-8", "surrogateescape")
    buffer = ctypes.create_string_buffer(16 * len(text) + 64)
    if library.quick.pipeline_steps(text, buffer, len(buffer)) < 0:
        raise OptionError(library.error_text())
    parts: List[Part] = []
    for line in _library.text_of(buffer.value).split("\n")[:-1]:
        kind, *words = line.split("\t")
        if kind == "part":
            parts.append(Part(int(words[0]), words[1:], []))
        else:
            parts[-1].steps.append(words)
    return parts


def steps_of(pipeline: str) -> List[List[str]]:
    return [step for part in parts_of(pipeline) for step in part.steps]
