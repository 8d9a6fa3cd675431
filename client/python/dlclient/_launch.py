"""Which rank this process is, if the program does not say: torch.distributed is asked first, then the environment.

The environment's rules are the library's (dlc_get_launch()). What torch.distributed knows only this process can tell:
ranks that torch.multiprocessing.spawn() started with init_method="tcp://..." have nothing in their environment, and
would all be rank 0 of 1."""
from __future__ import annotations

import ctypes
import sys
import uuid
from typing import Any, NamedTuple, Optional

from . import _library
from ._errors import OptionError, error_of


class Place(NamedTuple):
    """A rank of a world; -1 means that the library takes it from the environment."""

    rank: int
    world: int
    run: Optional[str] = None  # the run's name, if only torch.distributed knows of the run


_n_named = 0  # loaders of this process that were named after `run`


def launch(library: _library.Library) -> _library.Launch:
    """Rank, world size and run according to the environment."""
    found = _library.Launch()
    result = library.quick.get_launch(ctypes.byref(found), ctypes.sizeof(found))
    if result < 0:
        raise error_of(result, library.error_text())
    return found


def _distributed() -> Optional[Any]:
    """torch.distributed, if it is initialised. It is not imported for this: a program that uses it has imported it."""
    module = sys.modules.get("torch.distributed")
    try:
        return module if module is not None and module.is_available() and module.is_initialized() else None
    except AttributeError:  # another version's layout, or it is being imported right now
        return None


def _name(distributed: Any) -> Optional[str]:
    """A name that all ranks of this run find, and no other run. It uses the store and not a collective operation,
    because a loader may be opened on some ranks only."""
    try:
        store = distributed.distributed_c10d._get_default_store()  # pylint: disable=protected-access
        if store.add("dlclient/named", 1) == 1:
            store.set("dlclient/name", uuid.uuid4().hex[:16])
        return f"torch-{store.get('dlclient/name').decode()}"
    except (AttributeError, RuntimeError):
        return None  # another version of torch: the library asks for the option job


def find(library: _library.Library, rank: int, world: int) -> Place:
    """Completes what is -1. OptionError if torch.distributed and the environment disagree: with one of them ranks would
    train on the wrong samples."""
    distributed = _distributed() if rank < 0 else None
    if distributed is None:
        return Place(rank, world)
    mine = int(distributed.get_rank()), int(distributed.get_world_size())
    told = launch(library)
    theirs = int(told.rank), int(told.world_size)
    if theirs == mine and told.launcher:
        return Place(rank, world)
    if theirs[1] > 1:
        raise OptionError(f"rank: torch.distributed says rank {mine[0]} of {mine[1]}, the environment "
                          f"({_library.text_of(told.launcher)}) says rank {theirs[0]} of {theirs[1]}: give the options "
                          f"rank and world_size, or unset the variables of the launcher that is not meant")
    return Place(mine[0], mine[1] if world < 0 else world, _name(distributed) if mine[1] > 1 else None)


def check(rank: int, world: int) -> None:
    """Runs before the first loop of a loader whose rank was not given: torch.distributed may have been initialised
    after the loader was opened. Then its rank is not the one that the program expects."""
    distributed = _distributed()
    if distributed is None:
        return
    theirs = int(distributed.get_rank()), int(distributed.get_world_size())
    if theirs != (rank, world):
        raise OptionError(f"rank: the loader was opened as rank {rank} of {world}, and torch.distributed, which was "
                          f"initialised after that, says rank {theirs[0]} of {theirs[1]}: open the loader after "
                          f"init_process_group(), or give it rank and world_size")


def next_number() -> int:
    """Of the loader that is being opened, for its name."""
    return _n_named


def count() -> None:
    """The loader is open: its number is used. A loader that could not be opened does not use one, so that ranks stay in
    step."""
    global _n_named
    _n_named += 1
