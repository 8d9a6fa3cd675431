"""The options of a Loader. Types and ranges are checked here, where the option's name is known; whether a dataset,
pipeline or policy is valid is checked by the daemon."""
from __future__ import annotations

import ctypes
import difflib
import math
import operator
import os
import reprlib
from typing import Any, List, Mapping, Optional, Sequence, Union, cast

from . import _launch, _library
from ._answers import keywords as _keywords
from ._answers.transforms import pipeline_text
from ._columns import Columns
from ._errors import OptionError
from ._own import functions as _functions
from ._own.begin import Task
from ._own.draws import process_seed
from ._waiting import Teller

OneDataset = Union[str, "os.PathLike[str]", Mapping[str, Any]]
DatasetWish = Union[OneDataset, Sequence[OneDataset]]

MS_MAX = 2**31 - 1


def integer(name: str, value: object, least: int, most: int) -> int:
    """A whole number of any kind that Python takes as an index (NumPy's too), but not a bool."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise OptionError(f"{name}: {value!r} is not a whole number")
    number = operator.index(cast(Any, value))
    if not least <= number <= most:
        raise OptionError(f"{name}: {number}; {least} to {most} are allowed")
    return number


def flag(name: str, value: object) -> bool:
    if value not in (True, False):
        raise OptionError(f"{name}: {value!r}; expected True or False")
    return bool(value)


def text(name: str, value: object) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise OptionError(f"{name}: {value!r} is not a string")
    string = os.fspath(value)
    if not isinstance(string, str) or "\0" in string:
        raise OptionError(f"{name}: {value!r} contains a zero byte, or is bytes and not a string")
    return string


def optional_text(name: str, value: object) -> Optional[str]:
    return None if value is None else text(name, value)


def _quoted(value: str) -> str:
    """As the library reads it between quotes."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _dataset_value(key: str, value: object) -> str:
    """A value of a dict: text, a number, a flag, or several numbers."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)) or hasattr(value, "__index__"):
        return str(value)
    if isinstance(value, (list, tuple)):
        return ",".join(_dataset_value(key, part) for part in value)
    return text(f"dataset: {key}", value)


def _dataset_of_dict(wish: Mapping[str, object]) -> str:
    """The keys of a dataset section of dataloaderd.conf, and the path."""
    if "path" not in wish:
        raise OptionError(f"dataset: {dict(wish)!r} has no \"path\"; expected {{\"path\": \"/data/photos\", ...}} with "
                          "keys of a dataset section of dataloaderd.conf")
    for key in wish:
        if not isinstance(key, str) or not key.replace("_", "a").isalpha() or not key.islower():
            raise OptionError(f"dataset: {key!r} is not a key of a dataset; dataloaderd.conf(5) lists them")
    words = [f"{key}={_quoted(_dataset_value(key, value))}" for key, value in wish.items() if value is not None]
    return "{" + " ".join(words) + "}"


def _one_dataset(value: object) -> str:
    """A name, a path, or a path with options."""
    if isinstance(value, Mapping):
        return _dataset_of_dict(value)
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise OptionError(f"dataset: {reprlib.repr(value)} is neither a path nor a name. The daemon reads files, and "
                          f"not what a program has in memory: write it with numpy.save(), and give the file's path")
    string = text("dataset", value)
    is_path = isinstance(value, os.PathLike) or (
        "/" in string and ("*" in string or "?" in string or os.path.lexists(os.path.expanduser(string))))
    return "{path=" + _quoted(string) + "}" if is_path else string


def dataset_names(value: object) -> str:
    """One dataset, or several as the library wants them: "a + b"."""
    if isinstance(value, (list, tuple)):
        if not value:
            raise OptionError("dataset: the list has no name in it")
        return " + ".join(_one_dataset(one) for one in value)
    if isinstance(value, str) and not value.strip():
        raise OptionError("dataset: the text is empty; give a path, such as \"/data/photos\" or \"./photos\", or the "
                          "name of a dataset of the daemon's configuration")
    return text("dataset", value) if isinstance(value, str) else _one_dataset(value)


def seconds(name: str, value: object) -> Optional[float]:
    """None, or a time that is not negative."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise OptionError(f"{name}: {value!r}; seconds (0 or more) or None for no limit are allowed")
    return None if math.isinf(value) else float(value)


def milliseconds(value: Optional[float]) -> int:
    """As the library has it: -1 means no limit."""
    return -1 if value is None else min(int(math.ceil(value * 1000)), MS_MAX)


_AT_DAMAGE = ("fail", "substitute", "skip", "raise")


def at_damage(value: object) -> str:
    """on_error, as the daemon knows it: for "raise" it substitutes, and such a batch is not handed out."""
    choice = text("on_error", value)
    if choice not in _AT_DAMAGE:
        near = difflib.get_close_matches(choice, _AT_DAMAGE, 1)
        raise OptionError(f"on_error: {choice!r} is not known{f' (did you mean {near[0]}?)' if near else ''}; choose "
                          f"one of: {' '.join(_AT_DAMAGE)}")
    return "substitute" if choice == "raise" else choice


def errors_allowed(value: object) -> float:
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise OptionError(f"max_errors: {value!r}; a number of samples (1 or more), a share of them (below 1), or None "
                          f"for any number is allowed")
    if value >= 1 and value != int(value):
        raise OptionError(f"max_errors: {value!r} is neither a whole number nor a share below 1")
    return float(value)


def sampler_text(value: object) -> str:
    """The steps that make the order; "" for none."""
    if value is None:
        return ""
    if not isinstance(value, str):
        answer = _keywords.sampler_answer(value)
        raise OptionError(f"sampler: {type(value).__name__}; instead of this object, {answer}")
    return text("sampler", value)


def rank_list(ranks: object, rank: object, world: Optional[int]) -> Optional[List[int]]:
    """The ranks that one process serves, or None for a single one."""
    if ranks is None:
        return None
    if rank is not None:
        raise OptionError("rank and ranks exclude each other: rank is the one that this process is, ranks are several")
    if isinstance(ranks, (str, bytes)) or not hasattr(ranks, "__iter__"):
        raise OptionError(f"ranks: {ranks!r}; expected a sequence of whole numbers, such as [0, 1]")
    listed = [integer("ranks", number, 0, 2**31 - 1) for number in cast(Any, ranks)]
    if not listed or len(set(listed)) != len(listed):
        raise OptionError(f"ranks: {listed}; each rank once, and at least one")
    if world is not None and max(listed) >= world:
        raise OptionError(f"ranks: {max(listed)}; 0 to {world - 1} are allowed in a world of {world}")
    return listed


_WORKERS_USUAL = 8


def _n_workers(value: object) -> int:
    """How many processes apply the pipeline's functions; None: as many as CPUs, but not many."""
    if value is None:
        return min(len(os.sched_getaffinity(0)), _WORKERS_USUAL)
    return integer("n_workers", value, 1, 256)


def encoded(value: Optional[str]) -> Optional[bytes]:
    return None if value is None else value.encode("utf-8", "surrogateescape")


class Wish:
    """The options for the daemon, checked. rank and world are -1 until settle() has completed them, and stay -1 if the
    library is to take them from the environment. `run` is the beginning of the job's default name."""

    def __init__(self, *, dataset: object, batch_size: object, pipeline: object, seed: object, draws: object,
                 shuffle: object, drop_last: object, dealing: object, partition: object, order: object,
                 shuffle_buffer: object, rank: object, world_size: object, ranks: object, job: object, socket: object,
                 on_error: object, max_errors: object, on_restart: object, restart_timeout: object, slots: object,
                 open_timeout: object, sampler: object = None, columns: object = None,
                 is_seed_drawn: bool = False, workers: object = None, n_workers: object = None,
                 worker_timeout: object = 60.0, worker_start: object = None, worker_init_fn: object = None) -> None:
        self.dataset = dataset_names(dataset)
        self.batch_size = integer("batch_size", batch_size, 1, 65536)
        self.pipeline = pipeline_text(pipeline)
        self.seed = integer("seed", seed, -2**63, 2**64 - 1) % 2**64  # as torch takes negative ones
        self.draws = integer("draws", draws, 0, 2**64 - 1)
        self.shuffle = flag("shuffle", shuffle)
        self.drop_last = flag("drop_last", drop_last)
        self.dealing = text("dealing", dealing)
        self.partition = text("partition", partition)
        self.order = text("order", order)
        self.shuffle_buffer = 0 if shuffle_buffer is None else integer("shuffle_buffer", shuffle_buffer, 1, 2**24)
        self.world = -1 if world_size is None else integer("world_size", world_size, 1, 2**31 - 1)
        self.rank = -1 if rank is None else integer("rank", rank, 0, 2**31 - 1)
        self.ranks = rank_list(ranks, rank, self.world if self.world > 0 else None)
        self.is_told = rank is not None or world_size is not None or ranks is not None  # which rank it is
        self.run: Optional[str] = None
        self.job = optional_text("job", job)
        self.socket = optional_text("socket", socket)
        self.on_error = text("on_error", on_error)
        self.max_errors = errors_allowed(max_errors)
        self.on_restart = text("on_restart", on_restart)
        self.restart_timeout = seconds("restart_timeout", restart_timeout)
        self.slots = 0 if slots is None else integer("slots", slots, 2, 64)
        self.open_timeout = seconds("open_timeout", open_timeout)
        self.sampler = sampler_text(sampler)
        self.columns = Columns(columns)
        self.is_seed_drawn = is_seed_drawn
        self.functions = _functions.checked(workers)
        self.n_workers = _n_workers(n_workers)
        self.worker_timeout = seconds("worker_timeout", worker_timeout)
        self.worker_start = _functions.start_of(worker_start, self.functions)
        self.worker_init = _functions.init_of(worker_init_fn, self.functions)
        self.devices: Optional[List[str]] = None  # bus ids of those on which the ranks' batches are finished

    def task(self, rank: int) -> Task:
        """Of the worker processes of a rank."""
        return Task(self.functions, self.worker_init, process_seed(self.seed, self.draws, rank))

    def settle(self, library: _library.Library) -> None:
        """Completes rank and world with what only this process can know."""
        if self.ranks is None:
            self.rank, self.world, self.run = _launch.find(library, self.rank, self.world)
        elif self.world < 0:
            told = int(_launch.launch(library).world_size)
            self.world = told if told > 1 else len(self.ranks)
            self.ranks = rank_list(self.ranks, None, self.world)
        if self.is_seed_drawn:
            self._refuse_drawing(self.world if self.world > 0 else int(_launch.launch(library).world_size))

    def _refuse_drawing(self, world: int) -> None:
        """Each process would draw another seed, and all ranks need the same."""
        if world > len(self.ranks or [0]):
            raise OptionError(f"seed: None draws one in each process, and the {world} ranks of a run need the same: "
                              f"give a number, or seed=\"torch\" after torch.manual_seed() of one number on all ranks")

    def options(self, rank: int, job: Optional[str], epoch: int, position: int,
                teller: Optional[Teller]) -> _library.Options:
        """The library's struct for one rank."""
        options = _library.Options()
        options.size = ctypes.sizeof(options)
        options.dataset = encoded(self.dataset)
        options.pipeline = encoded(self.pipeline)
        options.batch_size = self.batch_size
        options.seed = self.seed
        options.draws = self.draws
        options.socket = encoded(self.socket)
        options.job = encoded(job)
        options.rank = rank
        options.world_size = self.world
        options.shuffle = self.shuffle
        options.drop_last = self.drop_last
        options.partition = encoded(self.partition)
        options.order = encoded(self.order)
        options.shuffle_buffer = self.shuffle_buffer
        options.on_error = encoded(self.on_error)
        options.first_epoch = epoch
        options.n_slots = self.slots
        options.open_timeout_ms = -1
        if teller is not None:
            options.on_progress = _library.ProgressFunction(teller.tell)
            options.on_wait = _library.WaitFunction(teller.wait)
        options.first_position = position
        options.on_restart = encoded(self.on_restart)
        options.restart_timeout_ms = milliseconds(self.restart_timeout)
        options.max_errors = self.max_errors
        options.sampler = encoded(self.sampler)
        self.columns.fill(options)
        options.dealing = encoded(self.dealing)
        if self.devices is not None:
            options.leave_forms = options.leave_operations = True
            options.near_device = encoded(self.devices[0 if self.ranks is None else self.ranks.index(rank)])
        return options
