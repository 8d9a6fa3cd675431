#!/usr/bin/env python3
"""States of the Python client as input: whatever is made of one, it is taken as it was or refused with a StateError."""
import copy
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, case, main
from pyclient import need

sys.path.insert(0, os.path.join(ROOT, "client", "python"))
try:
    from dlclient import StateError
    from dlclient._places import state as _state
except ImportError:
    _state = None  # without NumPy: skipped below

ROUNDS = 10000
SAMPLES = 1000
LOOPS = (None, {"steps_per_epoch": 10, "epoch": 2, "step": 3}, {"epochs": 5, "done": 1})


def deep(levels):
    inner = {}
    for _ in range(levels):
        inner = {"a": inner}
    return inner


def itself():
    loop = {}
    loop["a"] = loop
    return loop


VALUES = (None, True, False, 0, 1, -1, 2**32, 2**64, 10**5000, -10**5000, 1.5, float("nan"), float("inf"), "", "photos", "\ud800",
          b"raw", [], [[]], {}, {1: 2, "a": 3}, {None: 1}, deep(3), deep(5000), itself(), {"epochs": -1, "done": True}, object(),
          {"steps_per_epoch": 1, "epoch": "x", "step": 2.0}, lambda: 0)


def change(state, draw):
    """One of its fields is another one, gone, or new; now and then the checksum is made right again."""
    name = draw.choice([*state, "more", "virtual"])
    kind = draw.randrange(4)
    if kind == 0:
        state.pop(name, None)
    elif kind == 1:
        state[draw.choice((name, "Epoch", 3, None, b"x"))] = draw.choice(VALUES)
    elif isinstance(state.get(name), str) and state[name]:
        place = draw.randrange(len(state[name]))
        state[name] = state[name][:place] + chr(draw.randrange(256)) + state[name][place + draw.randrange(2):]
    else:
        state[name] = draw.choice(VALUES)
    if draw.randrange(3) == 0:
        try:
            state["check"] = _state._checksum(state)
        except (TypeError, ValueError, RecursionError):
            pass


def identity():
    return _state.Identity("photos", "c0ffee", SAMPLES, "raw", "torch", True, 7)


def attempt(state):
    """What it was taken as, or None."""
    try:
        epoch, position = _state.peek(state)
        known = _state.verify(state, identity())
    except StateError as error:
        assert 10 < len(str(error)) < 4000, error
        return None
    assert (epoch, position) == (known["epoch"], known["position"])
    return known


@case("a state that was changed in any way is taken for what it says or refused with a StateError")
def _(_box):
    need("numpy")
    draw = random.Random(11)
    n_taken = 0
    for _ in range(ROUNDS):
        good = _state.make(identity(), _state.Place(draw.randrange(4), draw.randrange(SAMPLES + 1)), copy.copy(draw.choice(LOOPS)))
        assert attempt(good) == good
        changed = dict(good)
        for _ in range(1 + draw.randrange(3)):
            change(changed, draw)
        known = attempt(changed)
        if known is not None:
            n_taken += 1
            assert known["check"] == _state._checksum(known)
            assert 0 <= known["epoch"] < 2**32 and 0 <= known["position"] <= SAMPLES, known
    assert n_taken > 0
    for other in VALUES:
        assert attempt(other) is None


main()
