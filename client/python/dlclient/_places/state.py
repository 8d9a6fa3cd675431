"""Where a run stands, as a small plain dict that JSON and torch.save take as it is.

    version    1
    dataset, digest, samples         which data: the name, the daemon's digest of it, how many samples (-1: a stream)
    pipeline, order, shuffle, seed   what makes the sequence of samples and what is done to them
    parts      if there are several datasets: name, digest and samples of each
    draws      the stream of draws, if it is not 0
    shuffle_buffer   its size, if one was given
    blocks     where the dataset's blocks end, as a digest, if the order goes by them
    sampler, columns, batch_size     steps that make the order, the digest of their columns, and the batch size if the
                     order depends on it, if there are any
    epoch, position                  global positions below it were consumed by all ranks together
    virtual    where the loop stands, if one `for` is not one epoch: None, or
               {"steps_per_epoch": N, "epoch": v, "step": i} or {"epochs": N, "done": k}
    check      short checksum over all that, so that a state that was cut or edited is noticed

World size, batch size, partition and rank are not in it: positions are global, and the ranks that load it deal out
what is left among themselves."""
from __future__ import annotations

import hashlib
import json
import reprlib
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

from .._errors import StateError

VERSION = 1
STREAM = -1  # the number of samples of a stream, which is the same before and after its end

_KINDS: Dict[str, Any] = {
    "version": int, "dataset": str, "digest": str, "samples": int, "pipeline": str, "order": str, "shuffle": bool,
    "seed": int, "epoch": int, "position": int, "virtual": (dict, type(None)), "check": str,
}
_LATER: Dict[str, Any] = {"draws": int, "shuffle_buffer": int, "sampler": str, "columns": str, "batch_size": int,
                          "blocks": str}
_LOOPS = ({"steps_per_epoch", "epoch", "step"}, {"epochs", "done"})


class Place(NamedTuple):
    """A place between two batches. `lap` and `done` say where in which loop it is: with steps_per_epoch the virtual
    epoch and its batches so far, else 0 and the number of real epochs that the loop has completed."""

    epoch: int
    position: int
    lap: int = 0
    done: int = 0


class Identity(NamedTuple):
    """The properties of a loader that a state must agree with."""

    dataset: str
    digest: str
    samples: int
    pipeline: str
    order: str
    shuffle: bool
    seed: int
    draws: int = 0
    shuffle_buffer: int = 0
    parts: Tuple[Tuple[str, str, int], ...] = ()  # name, digest, samples; of one dataset none
    sampler: str = ""
    columns: str = ""
    batch_size: int = 0
    blocks: str = ""

    def told(self) -> Dict[str, Any]:
        """As a state has it."""
        fields = self._asdict()
        for name, kind in _LATER.items():
            if fields[name] == kind():  # states without it look as they did before it existed
                del fields[name]
        fields["parts"] = [list(part) for part in self.parts]
        if not self.parts:
            del fields["parts"]
        return fields


def _checksum(state: Mapping[str, Any]) -> str:
    plain = {name: value for name, value in state.items() if name != "check"}
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def make(identity: Identity, place: Place, loop: Optional[Dict[str, int]]) -> Dict[str, Any]:
    state: Dict[str, Any] = {"version": VERSION}
    state.update(identity.told())
    state.update(epoch=place.epoch, position=place.position, virtual=loop)
    state["check"] = _checksum(state)
    return state


def _is_kind(value: object, kind: Any) -> bool:
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _shown(value: object) -> str:
    """Any value as text for a message, however long or deep it is."""
    try:
        return reprlib.repr(value)
    except Exception:  # an int of thousands of digits, a __repr__ that fails
        return f"something of the type {type(value).__name__}"


def _check_shape(state: object) -> Dict[str, Any]:
    """Version first, since a newer one may look otherwise."""
    if not isinstance(state, Mapping):
        raise StateError(f"state: {type(state).__name__} is not a dict; load what state_dict() returned")
    version: Any = state.get("version")
    if not _is_kind(version, int):
        raise StateError(f"state: version: {_shown(version)}; this is not what state_dict() returned")
    if version != VERSION:
        raise StateError(f"state: version: the state has {_shown(version)}, this dlclient understands {VERSION}: "
                         f"{'install the version that saved it' if version > VERSION else 'it cannot be used'}")
    for name, kind in _KINDS.items():
        if name not in state:
            raise StateError(f"state: {name}: is missing; the state was truncated")
        if not _is_kind(state[name], kind):
            raise StateError(f"state: {name}: {_shown(state[name])} is of the wrong type")
    for name, kind in _LATER.items():
        if not _is_kind(state.get(name, kind()), kind):
            raise StateError(f"state: {name}: {_shown(state[name])} is of the wrong type")
    parts = state.get("parts", [])
    if not _is_kind(parts, (list, tuple)) or not all(_is_part(part) for part in parts):
        raise StateError(f"state: parts: {_shown(parts)} is of the wrong type")
    return {name: state[name] for name in state}


def _is_part(part: object) -> bool:
    return isinstance(part, (list, tuple)) and len(part) == 3 and \
        all(_is_kind(value, kind) for value, kind in zip(part, (str, str, int)))


def _check_loop(state: Dict[str, Any]) -> None:
    loop = state["virtual"]
    if loop is not None and (set(loop) not in _LOOPS or
                             not all(_is_kind(number, int) and number >= 0 for number in loop.values())):
        raise StateError(f"state: virtual: {_shown(loop)} state_dict() never returns such a value")


def peek(state: object) -> Tuple[int, int]:
    """Epoch and position of a state that is not verified yet, for attaching there; (0, 0) if they are not valid."""
    known = _check_shape(state)
    return known["epoch"], known["position"]


def order_of(state: object) -> Dict[str, Any]:
    """What a state that is not verified yet says of the order, as options of a loader."""
    known = _check_shape(state)
    return {name: known[name] for name in ("seed", "draws", "shuffle", "order", "shuffle_buffer", "sampler")
            if name in known}


def _refuse_other_data(known: Dict[str, Any], identity: Identity) -> None:
    """The names are the same and the contents are not. Of several datasets the first one that differs is named."""
    grow = ("; at an epoch's end, load_state_dict(state, allow_growth=True) begins the next epoch with what there is "
            "now"
            if identity.samples != STREAM else "")
    for theirs, mine in zip(known.get("parts", []), identity.parts):
        if tuple(theirs) != mine:
            raise StateError(f"state: digest: dataset {mine[0]} had {theirs[2]} samples with the digest "
                             f"{theirs[1]!r} when the state was saved, now it has {mine[2]} with {mine[1]!r}"
                             f"{_advice('digest')}{grow}")
    same = known["digest"] == identity.digest
    if same and known.get("blocks", "") != identity.blocks:
        raise StateError("state: blocks: the dataset's samples are distributed over other shards than when the state "
                         f"was saved, so its order of blocks is another: begin anew, or restore the shards{grow}")
    name = "samples" if same else "digest"
    raise StateError(f"state: {name}: the state was saved with {known[name]!r}, this loader has "
                     f"{getattr(identity, name)!r}{_advice(name)}{grow}")


def _check_growth(known: Dict[str, Any], identity: Identity) -> None:
    """Data may be others only where no part of an epoch is left: its order was that of the old data."""
    if identity.samples == STREAM or known["samples"] == STREAM:
        raise StateError("state: allow_growth: a stream grows within an epoch, and needs no permission; with another "
                         "digest it is another stream")
    ends = (0,) if known.get("sampler") else (0, known["samples"])
    if known["position"] not in ends:
        raise StateError(f"state: position: the dataset has changed, which is allowed at an epoch's end, and the state "
                         f"is at {known['position']} of the {known['samples']} positions of epoch {known['epoch']}")


def verify(state: object, identity: Identity, allow_growth: bool = False) -> Dict[str, Any]:
    """The state, if it is complete and of these data; StateError with the field and both values if not. With
    allow_growth the contents of the datasets may have changed if the state is at an epoch's end."""
    known = _check_shape(state)
    try:
        check = _checksum(known)
    except (TypeError, ValueError, RecursionError) as error:
        raise StateError(f"state: holds more than plain values: {error}") from None
    if check != known["check"]:
        raise StateError(f"state: check: the state says {_shown(known['check'])}, its fields give {check!r}: "
                         f"it was truncated or edited")
    samples = identity.samples
    for name, mine in identity._asdict().items():
        if name == "parts":
            continue  # the digest is made of theirs
        theirs = known[name] if name in _KINDS else known.get(name, _LATER[name]())
        if theirs != mine and name in ("digest", "samples", "blocks"):
            if not allow_growth:
                _refuse_other_data(known, identity)
            _check_growth(known, identity)
            samples = known["samples"]
        elif theirs != mine:
            raise StateError(f"state: {name}: the state was saved with {theirs!r}, this loader has {mine!r}"
                             f"{_advice(name)}")
    _check_loop(known)
    if not 0 <= known["epoch"] < 2**32:
        raise StateError(f"state: epoch: {known['epoch']}; 0 to {2**32 - 1} are allowed")
    if identity.samples == STREAM:
        if known["position"] < 0:
            raise StateError(f"state: position: {known['position']}; it must not be negative")
    elif identity.sampler and known["position"] >= 0:
        pass  # how many positions the epoch has is known when its order has been made
    elif not 0 <= known["position"] <= samples:
        raise StateError(f"state: position: {known['position']}; 0 to {samples} are allowed")
    return known


def _advice(name: str) -> str:
    if name in ("digest", "samples"):
        return ": the dataset's files are others now, so its order is another; begin anew, or restore the files"
    if name == "dataset":
        return ": open the loader with that dataset"
    return f": open the loader with the {name} that it was saved with"
