"""Several views of each sample: the option views=, and which fields of a batch are views of one picture. The daemon
delivers them as fields of their own (image, image_2); a batch hands them out as a list under the first one's name."""
from __future__ import annotations

from typing import Dict, Optional, Sequence, Tuple

from .._errors import OptionError
from .._options import integer
from .._pipeline import Part, parts_of

VIEWS_MAX = 16


def with_views(pipeline: Optional[str], views: object) -> Optional[str]:
    """The pipeline with the step that the option views means."""
    if views is None:
        return pipeline
    n = integer("views", views, 2, VIEWS_MAX)
    if pipeline is None:
        raise OptionError("views: without a pipeline the stored bytes are delivered, which have no views: name steps, "
                          "such as pipeline=\"random_resized_crop(224) hflip(0.5)\"")
    parts = parts_of(pipeline)
    written = [step[-1].rpartition("=")[2] for part in parts for step in part.steps if step[0] == "views"]
    others = [number for number in written if number != str(n)]
    if others:
        raise OptionError(f"views: {n}, and the pipeline says views({others[0]}): write one of them")
    if written:
        return pipeline
    with_steps = [part for part in parts if part.fields]
    if len(parts) > 1 and len(with_steps) != 1:
        raise OptionError(f"views: {len(with_steps)} parts of the pipeline have steps, so it is not known which one is "
                          f"meant: write views({n}) at the end of the picture's part, as in \"image: hflip(0.5) "
                          f"views({n}); label\"")
    text, end = pipeline.encode("utf-8", "surrogateescape"), (with_steps or parts)[0].end
    return (text[:end].rstrip() + f" views({n})".encode() + text[end:]).decode("utf-8", "surrogateescape")


class Views:
    """Which fields of a loader's batches are views."""

    def __init__(self, parts: Sequence[Part] = ()) -> None:
        self.groups: Dict[str, Tuple[str, ...]] = {}      # "image" -> ("image", "image_2")
        self.places: Dict[str, Tuple[str, int]] = {}      # "image_2" -> ("image", 1)
        self._wanted: Dict[str, int] = {}                 # field -> how many; "": the first field of a batch
        for part in parts:
            if part.steps and part.steps[-1][0] == "views":
                for name in part.fields or [""]:
                    self._wanted[name] = int(part.steps[-1][1])

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
