"""check_steps(): does a pipeline, with functions of the trainer's own, give each sample the same bits whoever makes it,
when, and beside which others? What `dlctl check-steps` asks of the daemon's own steps."""
from __future__ import annotations

import hashlib
import os
import time
from typing import Any, Dict, List, Tuple

import numpy

from .._answers.kinds_table import OF_BATCHES
from .._errors import OptionError
from .._loader import Loader
from .._pipeline import steps_of
from .dataset import FromDataset
from .structure import shown

_NAMED_MAX = 5
_FIXED = ("rank", "world_size", "ranks", "job", "partition", "n_workers", "as_tuple", "copy", "framework", "state",
          "steps_per_epoch", "epochs", "device", "into", "persistent")

Found = Dict[int, List[Tuple[str, str]]]  # of a sample: field and digest


def _digest(value: Any) -> str:
    if isinstance(value, (str, bytes)):
        return hashlib.sha256(repr(value).encode("utf-8", "surrogateescape")).hexdigest()
    if isinstance(value, (list, tuple)):
        return hashlib.sha256("".join(map(_digest, value)).encode()).hexdigest()
    array = numpy.ascontiguousarray(value)
    return hashlib.sha256(f"{array.dtype} {array.shape}".encode() + array.tobytes()).hexdigest()


def _sample_of(field: Any, i: int) -> Any:
    """Several views of a field are a list."""
    return [view[i] for view in field] if type(field) is list else field[i]  # one of text is a list, too


def _read(found: Found, n_samples: int, epoch: int, dataset: Any, batch_size: int, **options: Any) -> Tuple[int, str]:
    """Takes samples until there are as many, or the epoch ends. Returns how many came, and the pipeline's normal text.
    """
    n = 0
    with Loader(dataset, batch_size, as_tuple=False, copy=True, framework="numpy", **options) as loader:
        loader.set_epoch(epoch)
        for batch in loader:
            for i, index in enumerate(numpy.asarray(batch.indices).tolist()):
                if n < n_samples:
                    found.setdefault(index, []).extend((name, _digest(_sample_of(batch[name], i))) for name in batch)
                    n += 1
            if n >= n_samples:
                break
        return n, loader.pipeline


def _told(names: List[str], dataset: Any) -> str:
    """Fields in words. Those of a Dataset object that returns tuples have numbers for names: then their places."""
    places = {field.name: shown(field.path) for field in dataset.fields} if isinstance(dataset, FromDataset) else {}
    words = [f"{places[name]} of what {dataset.title}.__getitem__ returns" if places.get(name) and name[0].isdigit()
             else f"field {name}" for name in names]
    return ", ".join(words)


def _differences(one: Found, other: Found, dataset: Any) -> List[str]:
    lines = []
    for sample in sorted(set(one) | set(other)):
        first, second = sorted(one.get(sample, [])), sorted(other.get(sample, []))
        if first != second:
            fields = sorted({name for name, _ in set(first) ^ set(second)})
            lines.append(f"sample {sample}: {_told(fields, dataset)}" if first and second
                         else f"sample {sample} came in one of the two runs only")
    return lines


def check_steps(dataset: Any, n_samples: int = 64, *, batch_size: int = 4, n_workers: int = 3, epoch: int = 0,
                **options: Any) -> int:
    """Reads the first samples of an epoch twice: as one rank with one worker process; then as two ranks, the second
    before the first, with batches of another size and n_workers processes each. Every sample must have the same bits.
    Other options are those of Loader. Where a sample's result depends on its batch (collations that mix or pad,
    functions with batch=true) the second run has the same batches.

    Returns how many samples were compared. AssertionError: some differ, and which; their function looks at the clock,
    keeps something from one call to the next, or draws from a generator that is not the sample's."""
    for name in _FIXED:
        if name in options:
            raise OptionError(f"check_steps: {name} is set by the comparison itself: leave it out")
    for name, number in (("n_samples", n_samples), ("n_workers", n_workers), ("batch_size", batch_size)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise OptionError(f"check_steps: {name}: {number!r}; expected a number from 1 on")
    job = f"check-steps-{os.getpid()}@{time.time_ns()}"
    own = bool(options.get("workers")) or hasattr(dataset, "workers")
    one: Found = {}
    other: Found = {}
    n, pipeline = _read(one, n_samples, epoch, dataset, batch_size, job=job + ".1", rank=0, world_size=1,
              **({"n_workers": 1} if own else {}), **options)
    more = {"n_workers": n_workers} if own else {}
    options = {**options, "drop_last": False}  # its batches are others, and so would be what is dropped
    if any(name in OF_BATCHES or "batch=true" in arguments for name, *arguments in steps_of(pipeline)):
        _read(other, n, epoch, dataset, batch_size, job=job + ".2", rank=0, world_size=1, **more,
              **{**options, "slots": 2})
    else:
        for rank in (1, 0):
            wanted = n if options.get("on_error") == "skip" else (n + 1 - rank) // 2
            if wanted:
                _read(other, wanted, epoch, dataset, batch_size + 3, job=job + ".2", rank=rank, world_size=2,
                      partition="exact", **more, **options)
    if options.get("on_error") == "skip":  # which of them a rank has first depends on those that are left out
        other = {sample: found for sample, found in other.items() if sample in one}
    lines = _differences(one, other, dataset)
    if lines:
        rest = [f"and {len(lines) - _NAMED_MAX} more"] if len(lines) > _NAMED_MAX else []
        raise AssertionError(f"{len(lines)} of {len(one)} samples differ between two runs of the pipeline: "
                             + "; ".join(lines[:_NAMED_MAX] + rest))
    return n
