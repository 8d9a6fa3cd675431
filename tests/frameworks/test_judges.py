#!/usr/bin/env python3
"""Tests that others have written, run against our Loader: torch's of DataLoader, and what torchdata's ask of
StatefulDataLoader. README.md beside this file lists them, with those that do not apply."""
import ast
import importlib.util
import json
import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
from harness import ROOT, Skip, case, equal, main
from trainers import dlclient, need

THEIRS = os.path.join(ROOT, "build", "frameworks", "torch_tests", "test_dataloader.py")
CLASSES = ("TestDataLoader", "TestDataLoaderPersistentWorkers")  # whose tests the page names one by one
N = 100


# ---- torch ----------------------------------------------------------------------------------------------------------

def listed(title):
    """The names in the first column of the table with this title."""
    names, inside = [], False
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as page:
        for line in page:
            cells = line.strip().strip("|").split("|") if line.startswith("|") else [""]
            inside = cells[0].strip() == title or (inside and line.startswith("|"))
            if inside:
                names += re.findall(r"`(\w+)`", cells[0])
    return names


def tests_of_file():
    """{class: [test, ...]}, as the file says; a class has its parent's too, which are not repeated."""
    if not os.path.exists(THEIRS):
        raise Skip("torch's test_dataloader.py was not fetched (tests/frameworks/fetch_torch_tests.sh)")
    with open(THEIRS, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            tests = [item.name for item in node.body if isinstance(item, ast.FunctionDef) and item.name.startswith("test_")]
            if tests:
                found[node.name] = tests
    return found


def load(path):
    """Their module. What it imports and today's torch no longer has is only used by tests that are not run."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("torch"):
            try:
                module = importlib.import_module(node.module)
            except ImportError:
                continue
            for name in node.names:
                if not hasattr(module, name.name) and importlib.util.find_spec(node.module + "." + name.name) is None:
                    setattr(module, name.name, type(name.name, (), {}))
    sys.path.insert(0, os.path.dirname(path))  # it imports itself, by its name
    return importlib.import_module("test_dataloader")


@case("each test of torch's file stands on the page once, as one that runs or as one that does not")
def _(box):
    found, named = tests_of_file(), sorted(listed("these run") + listed("these do not"))
    singly = {test for name in CLASSES for test in found[name]}
    equal(named, sorted(set(named)), "names")
    equal(named, sorted(singly | (set(found) - set(CLASSES))), "tests and classes")


@case("torch's own tests of DataLoader pass when our Loader is what they get")
def _(box):
    need("torch", "expecttest")
    found = tests_of_file()
    import shim
    module = load(THEIRS)
    module.DataLoader = shim.make(shim.Server(box, dlclient()))
    names = [f"{name}.{test}" for name in CLASSES for test in listed("these run")]
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=0).run(
        unittest.defaultTestLoader.loadTestsFromNames(names, module))
    wrong = [f"{test.id()}: {text}" for test, text in result.failures + result.errors + result.skipped]
    equal(wrong, [], "tests that fail or skip")
    equal(result.testsRun, len(names), "tests")
    print(f"{result.testsRun} of their tests pass; {len(found)} classes are in the file")


# ---- torchdata ------------------------------------------------------------------------------------------------------

class Theirs:
    """A StatefulDataLoader. Over a StatefulDistributedSampler a state of an epoch's end gives an empty epoch, so it has one
    only where it needs one."""

    def __init__(self, _, batch_size=10, world=1, rank=0, shuffle=False, drop=False, workers=0, persistent=False):
        from torchdata.stateful_dataloader import StatefulDataLoader
        from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler
        sampler = None
        if world > 1 or shuffle:
            sampler = StatefulDistributedSampler(range(N), world, rank, shuffle=shuffle, seed=13, drop_last=drop)
        self.loader = StatefulDataLoader(range(N), batch_size=batch_size, sampler=sampler, num_workers=workers,
                                         persistent_workers=persistent and workers > 0)
        self.state_dict, self.load_state_dict = self.loader.state_dict, self.loader.load_state_dict

    def __iter__(self):
        return (batch.tolist() for batch in self.loader)  # made now, and not by the first next()

    def __len__(self):
        return len(self.loader)


class Ours:
    def __init__(self, socket, batch_size=10, world=1, rank=0, shuffle=False, drop=False, workers=0, persistent=False):
        self.loader = dlclient().Loader("data", socket=socket, batch_size=batch_size, pipeline="data;", shuffle=shuffle,
                                        seed=13, world_size=world, rank=rank, partition="drop" if drop else "pad",
                                        job=f"job{id(self)}", persistent=persistent)
        self.state_dict, self.load_state_dict = self.loader.state_dict, self.loader.load_state_dict

    def __iter__(self):
        return (batch["data"].tolist() for batch in iter(self.loader))

    def __len__(self):
        return len(self.loader)


def goes_on(make, n_batches, through=lambda state: state, **options):
    """Takes some batches and a state; returns what the old loader gives then. A new one must give the same."""
    old = make(**options)
    iterator = iter(old)
    begun = [next(iterator) for _ in range(n_batches)]
    state = through(old.state_dict())
    rest = list(iterator)
    new = make(**options)
    new.load_state_dict(state)
    equal(list(new), rest, f"what comes after {n_batches} batches, {options}")
    return begun + rest


def after_any_number_of_batches(make):
    given = []
    for options in ({}, {"batch_size": 7}, {"batch_size": 7, "shuffle": True}, {"world": 3, "rank": 1, "shuffle": True},
                    {"batch_size": 7, "workers": 2}, {"batch_size": 7, "workers": 2, "persistent": True}):
        given += [goes_on(make, n, **options) for n in (0, 1, 3)]
    return given + [goes_on(make, 10, batch_size=7)]


def through_json(make):
    return [goes_on(make, 4, lambda state: json.loads(json.dumps(state)), workers=workers) for workers in (0, 2)]


def before_the_first_batch(make):
    given = []
    for options in ({}, {"shuffle": True}, {"shuffle": True, "workers": 2, "persistent": True}):
        loader = make(**options)
        iterator = iter(loader)
        state = loader.state_dict()
        whole = list(iterator)
        loader.load_state_dict(state)
        equal(list(loader), whole, f"the epoch again, {options}")
        given.append(whole)
    return given


def in_the_middle_and_from_the_beginning(make):
    given = []
    for workers in (0, 2):
        loader = make(shuffle=True, workers=workers)
        iterator = iter(loader)
        beginning = loader.state_dict()
        whole = [next(iterator) for _ in range(4)]
        loader.load_state_dict(loader.state_dict())
        whole += list(loader)
        loader.load_state_dict(beginning)
        equal(list(loader), whole, "the epoch again")
        given.append(whole)
    return given


def at_the_end(make):
    given = []
    for workers in (0, 2):
        loader = make(batch_size=4, workers=workers)
        whole = list(loader)
        state = loader.state_dict()
        after = list(loader)
        other = make(batch_size=4, workers=workers)
        iterator = iter(other)
        next(iterator), next(iterator)
        other.load_state_dict(state)
        equal(list(other), after, "the next epoch")
        given.append((whole, after))
    return given


def soon_after_another_state(make):
    loader = make(batch_size=4, shuffle=True, workers=2, persistent=True)
    iterator = iter(loader)
    begun = [next(iterator) for _ in range(11)]
    state = loader.state_dict()
    next(iterator), next(iterator)
    rest = list(iterator)
    loader.load_state_dict(state)
    iterator = iter(loader)
    next(iterator), next(iterator)
    other = make(batch_size=4, shuffle=True, workers=2)
    other.load_state_dict(loader.state_dict())
    equal(list(other), rest, "what comes two batches after a state")
    return begun + rest


def two_at_once(make):
    one, other = make(shuffle=True, workers=2), make(shuffle=True)
    pairs = list(zip(one, other))
    equal([a for a, _ in pairs], [b for _, b in pairs], "batches of two loaders")
    return pairs


def ranks(make):
    given = []
    for world, drop, shuffle in ((3, True, False), (3, False, False), (5, False, False), (5, False, True)):
        parts = [sum(make(world=world, rank=rank, drop=drop, shuffle=shuffle), []) for rank in range(world)]
        equal({len(part) for part in parts}, {N // world if drop else -(-N // world)}, f"lengths of {world} ranks")
        equal(set(sum(parts, [])) == set(range(N)) or drop, True, "all samples")
        given.append(parts)
    return given


STATEFUL = (after_any_number_of_batches, through_json, before_the_first_batch, in_the_middle_and_from_the_beginning,
            at_the_end, soon_after_another_state, two_at_once, ranks)


@case("what torchdata's tests ask of StatefulDataLoader holds for it and for our Loader, with the same batches")
def _(box):
    need("torch", "torchdata")
    import numpy
    numpy.save(box.path("data.npy"), numpy.arange(N))
    daemon = box.daemon({"data": {"path": box.path("data.npy"), "format": "npy"}})
    for ask in STATEFUL:
        given = [ask(lambda maker=maker, **options: maker(daemon.socket, **options)) for maker in (Theirs, Ours)]
        equal(given[1], given[0], ask.__name__)
        print(f"the same: {ask.__name__}")


main()
