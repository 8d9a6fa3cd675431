"""What worker processes are given when they begin, and what each is told of itself."""
from __future__ import annotations

import random
import sys
import threading
from typing import Any, Callable, Dict, NamedTuple, Optional

import numpy

from .several import Writer

Function = Callable[..., Any]


class Task(NamedTuple):
    """Of one rank."""

    functions: Dict[str, Function]
    init: Optional[Callable[[int], Any]]    # the loader's worker_init_fn
    seed: int                               # of what is drawn apart from samples; each process adds its number


class WorkerInfo(NamedTuple):
    """What get_worker_info() says in a worker process, as torch's."""

    id: int             # 0 to num_workers - 1; a process that takes the place of another one has the same
    num_workers: int
    seed: int           # of the common generators when the process began; each process has another one
    dataset: Any        # its copy of the Dataset object; None: the loader was given functions


_here = threading.local()


def get_worker_info() -> Optional[WorkerInfo]:
    """In a worker process of a loader: which one it is. None in any other process. torch.utils.data.get_worker_info()
    says the same there, except in threads."""
    return getattr(_here, "info", None)


def begin(task: Task, place: int, n_workers: int, number: int, is_thread: bool) -> None:
    """Before a process, or a thread of one, takes samples. `number`: no other process of the rank has it."""
    dataset = next((getattr(one, "dataset") for one in task.functions.values() if isinstance(one, Writer)), None)
    seed = (task.seed + number) % 2**63
    _here.info = WorkerInfo(place, n_workers, seed, dataset)
    if not is_thread:   # common generators belong to all threads
        random.seed(seed)
        numpy.random.seed(seed % 2**32)
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.default_generator.manual_seed(seed)
        theirs: Any = sys.modules.get("torch.utils.data._utils.worker")
        if hasattr(theirs, "WorkerInfo") and hasattr(theirs, "_worker_info"):
            setattr(theirs, "_worker_info", theirs.WorkerInfo(**_here.info._asdict()))
    if task.init is not None:
        task.init(place)
