#!/usr/bin/env python3
"""Samplers and their columns in Python: what is taken as a column, what is refused, how long epochs are, and that every place
between two batches can be continued at another world size."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, equal, main, write
from pyclient import Trainer, need, trainer

N = 60


def serve(box):
    path = box.path("t.jsonl")
    write(path, "".join(json.dumps({"label": i % 3, "length": 1 + i * 7 % 19, "x": i}) + "\n" for i in range(N)).encode())
    return box.daemon({"t": {"path": path, "format": "jsonl"}})


COLUMNS = """
    import array
    def order(values, **more):
        with dlclient.Loader("t", batch_size=7, pipeline="x", seed=3, sampler="weighted(column=w, n=50)", columns={"w": values},
                             **more) as loader:
            return sum((batch.indices.tolist() for batch in loader), [])
    plain = [float(i % 4) for i in range(60)]
    expected = order(plain)
    assert len(expected) == 50 and all(plain[i] > 0 for i in expected)
    wide = numpy.zeros((60, 2))
    wide[:, 0] = plain
    for values in (tuple(plain), array.array("d", plain), numpy.array(plain), numpy.array(plain, "f4"), numpy.array(plain, "i8"),
                   numpy.array(plain, "u1"), numpy.array(plain, ">f8"), numpy.array(plain, ">i4"), wide[:, 0],
                   numpy.array(plain)[::-1][::-1], memoryview(numpy.array(plain))):
        assert order(values) == expected, values
    frozen = numpy.array(plain)
    frozen.flags.writeable = False
    assert order(frozen) == expected
    assert order([value > 0 for value in plain]) == order(numpy.array(plain) > 0)
    class Likes:
        def __array__(self, dtype=None, copy=None):
            return numpy.array(plain)
    assert order(Likes()) == expected
    out("done")
"""

TENSORS = """
    import torch
    def order(values):
        with dlclient.Loader("t", batch_size=7, pipeline="x", sampler="weighted(column=w, n=50)", columns={"w": values}) as loader:
            return sum((batch.indices.tolist() for batch in loader), [])
    plain = [float(i % 4) for i in range(60)]
    expected = order(plain)
    tensor = torch.tensor(plain)
    for values in (tensor, tensor.double(), tensor.long(), torch.stack([tensor, tensor], 1)[:, 1], torch.nn.Parameter(tensor).data):
        assert order(values) == expected, values
    refused(dlclient.OptionError, lambda: order(torch.nn.Parameter(tensor)), "columns", "w", "grad")
    refused(dlclient.OptionError, lambda: order(tensor.half()), "columns", "w", "float16", "float32")
    refused(dlclient.OptionError, lambda: order(tensor.bfloat16()), "columns", "w")
    refused(dlclient.OptionError, lambda: order(tensor.reshape(6, 10)), "columns", "w", "[6, 10]")
    out("done")
"""

REFUSED = """
    def bad(columns, *words, sampler="weighted(column=w)", kind=dlclient.OptionError):
        return refused(kind, lambda: dlclient.Loader("t", pipeline="x", sampler=sampler, columns=columns), *words)
    ones = [1.0] * 60
    bad([1, 2], "columns", "list", "dict")
    bad({"w": 3.0}, "columns", "w", "shape")
    bad({"w": [ones]}, "columns", "w", "[1, 60]")
    bad({"w": [[1], [2, 3]]}, "columns", "w")
    bad({"w": ["a"] * 60}, "columns", "w", "dtype")
    bad({"w": [None] * 60}, "columns", "w", "dtype")
    bad({"w": numpy.ones(60, "c16")}, "columns", "w", "complex")
    bad({"w": numpy.ones(60, "M8[s]")}, "columns", "w", "dtype")
    bad({1: ones}, "columns", "name")
    bad({"": ones}, "columns", "name")
    bad({"w\\0": ones}, "columns", "name")
    bad({"w" * 200: ones}, "columns", "127")
    bad({f"c{i}": ones for i in range(17)}, "columns", "17", "16")
    for i, (columns, *words) in enumerate((({"w": []}, "w", "no values"), ({"w": ones[1:]}, "59", "60"), ({"w": ones + [1]}, "61", "60"),
                                ({"w": [float("nan")] + ones[1:]}, "nan"), ({"w": [-1.0] + ones[1:]}, "-1"),
                                ({"w": [float("inf")] + ones[1:]}, "inf"), ({"w": [0.0] * 60}, "0"), (None, "w", "column"),
                                ({"v": ones}, "w", "column"), ({"w\\x1b": ones}, "columns", "control"))):
        try:
            with dlclient.Loader("t", pipeline="x", sampler="weighted(column=w)", columns=columns, job=f"j{i}") as loader:
                for batch in loader:
                    pass
        except dlclient.Error as error:
            missing = [word for word in words if word not in str(error).lower()]
            assert not missing, (columns, missing, str(error))
            out([type(error).__name__, str(error)])
        else:
            raise AssertionError(f"{columns} was taken")
    refused(dlclient.OptionError, lambda: dlclient.Loader("t", sampler=[1, 2, 3]), "sampler", "list", "indices=")
    refused(dlclient.OptionError, lambda: dlclient.Loader("t", pipeline="x", sampler="repeat(2)", steps_per_epoch=5),
            "steps_per_epoch", "sampler")
"""


@case("a column is any sequence of numbers that NumPy takes, of any of these dtypes, strides and orders of bytes")
def _(box):
    equal(trainer(box, serve(box), COLUMNS), ["done"], "the trainer")


@case("a column is a tensor on the CPU, too")
def _(box):
    need("torch")
    equal(trainer(box, serve(box), TENSORS), ["done"], "the trainer")


@case("what is no column is refused with its name, and values that cannot be used with the value")
def _(box):
    equal(len(trainer(box, serve(box), REFUSED)), 10, "refusals of the daemon")


LENGTHS = """
    text = "repeat_factor(column=label, t=0.9)"
    with dlclient.Loader("t", batch_size=2, pipeline="x", seed=5, sampler=text, columns={"label": [0] * 10 + [1] * 50}) as loader:
        told, taken = [], []
        for epoch in range(6):
            loader.set_epoch(epoch)
            told.append(len(loader))
            taken.append(sum(1 for _ in loader))
        assert told == taken and len(set(told)) > 1, (told, taken)
        loader.set_epoch(0)
        said = []
        for epoch in range(6):   # one after the other, and asked again in the loop
            said.append(len(loader))
            assert [len(loader) for _ in loader] == [told[epoch]] * told[epoch]
        assert said == told, (said, told)
        loader.set_epoch(3)
        assert len(loader) == told[3]
        loader.set_epoch(1)
        assert (len(loader), sum(1 for _ in loader)) == (told[1], told[1])
    with dlclient.Loader("t", batch_size=2, pipeline="x", seed=5, sampler=text, columns={"label": [0] * 10 + [1] * 50},
                         epochs=3) as loader:
        assert sum(1 for _ in loader) == sum(told[:3])
    out(told)
"""


@case("the epochs of a sampler may differ in length, and len() is that of the epoch that comes")
def _(box):
    equal(len(trainer(box, serve(box), LENGTHS)[0]), 6, "epochs")


RANKS = """
    rank, world, n_steps = (int(word) for word in sys.argv[1:4])
    text, path = sys.argv[4], sys.argv[5]
    state = json.load(open(path)) if os.path.exists(path) else None
    seen, kept = [], None
    with dlclient.Loader("t", batch_size=2, pipeline="x", seed=8, sampler=text, columns={"w": numpy.arange(60) % 5 + 0.5},
                         rank=rank, world_size=world, partition="exact", job=f"{text} {world}", state=state) as loader:
        for batch in loader:
            seen += batch.indices.tolist()
            kept = batch.state_dict()
            n_steps -= 1
            if n_steps == 0:
                break
    if len(sys.argv) > 6:
        json.dump(kept, open(sys.argv[6], "w"))
    out(seen)
"""


SAME = """
    weights, lengths = [float(i % 4) for i in range(60)], [1 + i * 7 % 19 for i in range(60)]
    columns = {"w": weights, "len": lengths, "some": [3, 1, 59, 3]}
    unequal = 0
    for number, (dataset, pipeline, text, more) in enumerate([
            ("t", "x", "weighted(column=w, n=50)", {}), ("t", "x", "weighted(column=length, n=33)", {}),
            ("t", "x", "class_balanced(label) stratified(label)", {}), ("t", "x", "repeat(2)", {"shuffle": False}),
            ("t", "x", "subset(column=some)", {}), ("t", "x", "length_grouped(length, mega=2)", {}),
            ("t", "x", "buckets(column=length, edges=5:10:20, tokens=40)", {}), ("t", "x", "grouped(column=len, k=3)", {}),
            ("f", None, "length_grouped(image, mega=2)", {}), ("f", None, "buckets(column=image, edges=10:20, tokens=60)", {}),
            ("p", "tokens: pack(32)", None, {"columns": {"tokens": [1 + i * i % 23 for i in range(50)]}}),
            (["t", "again"], "x", "mix(t=0.7, again=0.3, n=80)", {})]):
        for world, partition, dealing in ((1, "pad", "strided"), (3, "exact", "strided"), (2, "pad", "batch"), (2, "drop", "strided")):
            if dealing == "batch" and ("buckets" in (text or "") or "grouped(column" in (text or "") or text is None):
                continue            # these deal units of their own
            loaders = [dlclient.Loader(dataset, 5, pipeline=pipeline, seed=3, sampler=text, rank=rank, world_size=world,
                                       partition=partition, dealing=dealing, job=f"j{number}.{world}.{partition}.{dealing}",
                                       **{"columns": columns if text else None, **more}) for rank in range(world)]
            for epoch in (0, 7):
                said = []
                for loader in loaders:
                    loader.sampler.set_epoch(epoch)
                    said.append(list(loader.sampler))
                    assert len(loader.sampler) == loader.sampler.num_samples == len(said[-1]), (text, world)
                for loader, mine in zip(loaders, said):
                    assert loader.sampler.total_size == sum(map(len, said)), (text, world, epoch)
                    assert sum((batch.indices.tolist() for batch in loader), []) == mine, (text, world, partition, epoch)
                unequal += len(set(map(len, said))) > 1
            for loader in loaders:
                loader.close()
    assert unequal > 0              # ranks whose shares differ in length were among them
"""


@case("loader.sampler gives the samples that come, whichever steps make the order, at any world size and in any epoch")
def _(box):
    path, tokens = box.path("t.jsonl"), box.path("p.jsonl")
    write(path, "".join(json.dumps({"label": i % 3, "length": 1 + i * 7 % 19, "x": i}) + "\n"
                        for i in range(N)).encode())
    write(tokens, "".join(json.dumps({"tokens": list(range(1 + i * i % 23))}) + "\n" for i in range(50)).encode())
    for i in range(N):
        write(box.path(f"f/c/{i:03}.jpg"), b"x" * (6 + i * 5 % 11))
    trainer(box, box.daemon({"t": {"path": path, "format": "jsonl"}, "again": {"path": path, "format": "jsonl"},
                             "p": {"path": tokens, "format": "jsonl"}, "f": box.path("f")}), SAME)


@case("a loop that is left early continues from the last batch's state at another world size, without loss and without repeats")
def _(box):
    daemon = serve(box)
    for number, text in enumerate(("weighted(column=w, n=90)", "repeat(2)", "random_split(0.8, 0.2, part=0)",
                                   "repeat_factor(column=label, t=0.9)", "max_tokens(column=length, tokens=30)",
                                   "buckets(column=length, edges=4:10:20, tokens=40)")):
        whole = trainer(box, daemon, RANKS, 0, 1, 0, text, box.path("none"))[0]
        path, seen = box.path(f"state{number}"), []
        for world, n_steps in ((3, 2), (1, 2), (2, 0)):
            ranks = [Trainer(box, daemon, RANKS, (rank, world, n_steps, text, path) + ((path + ".new",) if rank == 0 else ()))
                     for rank in range(world)]
            seen += sum((rank.finish()[0] for rank in ranks), [])
            os.rename(path + ".new", path)
        equal(sorted(seen), sorted(whole), text)


DIFFERENT = """
    with dlclient.Loader("t", pipeline="x", sampler="weighted(column=w)", columns={"w": [1.0] * 60}, rank=0, world_size=2, job="j") as one:
        text = refused(dlclient.JobMismatch, lambda: dlclient.Loader("t", pipeline="x", sampler="weighted(column=w)",
                       columns={"w": [2.0] * 60}, rank=1, world_size=2, job="j"), "columns", "digest")
        with dlclient.Loader("t", pipeline="x", sampler="weighted(column=w)", columns={"w": [1.0] * 60}, rank=1, world_size=2,
                             job="j") as two:
            assert len(two) == len(one) == sum(1 for _ in two) == sum(1 for _ in one) == 30
    out(text)
"""

STATES = """
    import copy, pickle
    def loader_of(values, sampler="weighted(column=w, n=50)", **more):
        return dlclient.Loader("t", batch_size=4, pipeline="x", sampler=sampler, columns={"w": values}, **more)
    values = numpy.arange(60) % 7 + 1.0
    with loader_of(values) as loader:
        whole = [batch.indices.tolist() for batch in loader]
        loader.set_epoch(0)
        first = []
        for batch in loader:
            first.append(batch.indices.tolist())
            if len(first) == 5:
                break
        state = loader.state_dict()
        assert state == batch.state_dict()
    for again in (pickle.loads(pickle.dumps(state)), json.loads(json.dumps(state)), copy.deepcopy(state)):
        assert again == state
        with loader_of(values.tolist(), state=again) as loader:
            assert first + [batch.indices.tolist() for batch in loader] == whole
    changed = values.copy()
    changed[17] += 1
    refused(dlclient.StateError, lambda: loader_of(changed, state=state), "columns")
    refused(dlclient.StateError, lambda: loader_of(values, "weighted(column=w, n=51)", state=state), "sampler", "n=50", "n=51")
    refused(dlclient.OptionError, lambda: dlclient.Loader("t", batch_size=4, pipeline="x", state=state), "neither a column")
    with dlclient.Loader("t", batch_size=4, pipeline="x", state=state, columns={"w": values}) as loader:  # takes the steps
        assert first + [batch.indices.tolist() for batch in loader] == whole
    text = refused(dlclient.StateError, lambda: loader_of(values, state=dict(state, sampler="repeat(2)")), "check")
    with loader_of(values) as loader:
        order = [batch.indices.tolist() for batch in loader]
        values[:] = 1   # the trainer's own array
        loader.set_epoch(0)
        assert [batch.indices.tolist() for batch in loader] == order
    values = numpy.arange(60) % 7 + 1.0
    with loader_of(values, persistent=False) as loader:
        order = [batch.indices.tolist() for batch in loader]
        loader.set_epoch(0)
        assert [batch.indices.tolist() for batch in loader] == order
        values[17] = 9  # its ranks are attached again, with the array as it is now
        refused(dlclient.OptionError, lambda: list(loader), "columns", "changed", "copy")
    out("done")
"""


@case("ranks with other columns are refused with both digests, and the same ones are not")
def _(box):
    equal("digest" in trainer(box, serve(box), DIFFERENT)[0], True, "the message")


@case("a state is plain data that names sampler and columns, and is refused with others")
def _(box):
    equal(trainer(box, serve(box), STATES), ["done"], "the trainer")


main()
