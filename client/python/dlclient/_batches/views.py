"""Several views of each sample: the option views=, and which fields of a batch are views of one picture. The daemon
delivers them as fields of their own (image, image_2); a batch hands them out as a list under the first one's name."""
from __future__ import annotations

import re
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from .._errors import OptionError
from .._options import integer

VIEWS_MAX = 16

_STEP = re.compile(r"\bviews\s*\(\s*(?:n\s*=\s*)?(\d+)\s*\)")
_LAST = re.compile(r"\bviews\((\d+)\)$")  # as the daemon prints it


def _split(text: str, separator: str) -> List[str]:
    """At separators that are not in parentheses, as the daemon reads a pipeline."""
    parts, depth, begin = [], 0, 0
    for at, character in enumerate(text):
        if character == separator and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
        depth += (character == "(") - (character == ")" and depth > 0)
    return parts + [text[begin:]]


def parts_of(pipeline: str) -> Iterator[Tuple[List[str], str]]:
    """The names of the fields of each part, none if the first field is meant, and its steps."""
    for part in _split(pipeline, ";"):
        named = _split(part, ":")
        names = [name.partition("=")[0].strip() for name in named[0].split(",")]  # NAME=FIELD
        yield (names if len(named) > 1 else [], named[-1])


def with_views(pipeline: Optional[str], views: object) -> Optional[str]:
    """The pipeline with the step that the option views means."""
    if views is None:
        return pipeline
    n = integer("views", views, 2, VIEWS_MAX)
    if pipeline is None:
        raise OptionError("views: without a pipeline the stored bytes are delivered, which have no views: name steps, "
                          "such as pipeline=\"random_resized_crop(224) hflip(0.5)\"")
    written = {int(number) for number in _STEP.findall(pipeline)}
    if written - {n}:
        raise OptionError(f"views: {n}, and the pipeline says views({max(written - {n})}): write one of them")
    if written:
        return pipeline
    parts = _split(pipeline, ";")
    with_steps = [i for i, part in enumerate(parts) if len(_split(part, ":")) > 1]
    if len(parts) > 1 and len(with_steps) != 1:
        raise OptionError(f"views: {len(with_steps)} parts of the pipeline have steps, so it is not known which one is "
                          f"meant: write views({n}) at the end of the picture's part, as in \"image: hflip(0.5) "
                          f"views({n}); label\"")
    chosen = with_steps[0] if with_steps else 0
    parts[chosen] = f"{parts[chosen].rstrip()} views({n})"
    return ";".join(parts)


class Views:
    """Which fields of a loader's batches are views."""

    def __init__(self, pipeline: str = "") -> None:
        self.groups: Dict[str, Tuple[str, ...]] = {}      # "image" -> ("image", "image_2")
        self.places: Dict[str, Tuple[str, int]] = {}      # "image_2" -> ("image", 1)
        self._wanted: Dict[str, int] = {}                 # field -> how many; "": the first field of a batch
        for names, steps in parts_of(pipeline):
            last = _LAST.search(steps.rstrip())
            if last is not None:
                for name in names or [""]:
                    self._wanted[name] = int(last[1])

    def settle(self, fields: Sequence[str]) -> None:
        """A batch has these fields; those of later batches are the same."""
        for name, n in self._wanted.items():
            for added in ("", "_mask"):  # what pad adds to each view
                first = name or fields[0]
                members = (first + added, *(f"{first}_{view}{added}" for view in range(2, n + 1)))
                if all(member in fields for member in members):
                    self.groups[members[0]] = members
                    self.places.update((member, (members[0], at)) for at, member in enumerate(members) if at > 0)
        self._wanted = {}
