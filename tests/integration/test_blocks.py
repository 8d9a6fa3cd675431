#!/usr/bin/env python3
"""The order of blocks: a dataset goes by shard by shard, as the definition says, over ranks, resumes and restarts."""
import io
import json
import os
import tarfile
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, contains, equal, expected_order, indices, main, whole_order, write
from pyclient import need, trainer

SIZES = [1, 40, 1500, 7, 300, 2100, 12, 64, 5, 90, 33]
N = sum(SIZES)


def lines_of(folder, sizes, first=0):
    """A shard of each size; sample i has the number first + i."""
    os.makedirs(folder)
    for number, size in enumerate(sizes):
        write(os.path.join(folder, f"x-{number:03d}.jsonl"),
              "".join(json.dumps({"n": first + i}) + "\n" for i in range(size)).encode())
        first += size
    return {"path": folder, "format": "jsonl"}


def terms(order="blocks", **more):
    return {"pipeline": "n", "batch": 16, "order": order, "partition": "exact", **more}


def numbers(lines, epoch=None):
    """Each sample's own number; that which the daemon gives it is the same."""
    own = [line["fields"]["n"]["value"] for line in lines if epoch is None or line["epoch"] == epoch]
    equal(own, indices(lines, epoch), "numbers of the samples themselves")
    return own


@case("two ranks share an epoch as the definition says, for any window; the next epoch has another order")
def _(box):
    daemon = box.daemon({"d": lines_of(box.path("d"), SIZES)})
    for order in ("blocks", "blocks(window=2)", "blocks(window=100)", "blocks( window = 3 )"):
        for rank, lines in enumerate(daemon.read_ranks("d", 2, seed=7, epochs=2, **terms(order))):
            for epoch in range(2):
                equal(numbers(lines, epoch),
                      expected_order(N, world=2, rank=rank, seed=7, epoch=epoch, partition="exact",
                                     order=order.replace(" ", ""), blocks=SIZES), f"{order}: rank {rank}, epoch {epoch}")
    equal(numbers(daemon.read("d", shuffle=False, **terms())), list(range(N)), "without shuffling")


@case("what is left of an epoch is dealt out among any number of ranks")
def _(box):
    daemon = box.daemon({"d": lines_of(box.path("d"), SIZES)})
    first = [daemon.reader("d", world=2, rank=rank, job="a", seed=3, limit=40, **terms()) for rank in range(2)]
    parts = [numbers(reader.good()) for reader in first]
    seen = [index for pair in zip(*parts) for index in pair]
    position = len(seen)
    equal(position, 2 * 40 * 16, "samples of the first run")
    rest = [daemon.reader("d", world=3, rank=rank, job="b", seed=3, first_position=position, **terms(batch=5))
            for rank in range(3)]
    parts = [numbers(reader.good()) for reader in rest]
    for place in range(max(map(len, parts))):
        seen += [part[place] for part in parts if place < len(part)]
    equal(seen, whole_order(N, 3, order="blocks", blocks=SIZES), "both runs together")


def archives_of(folder, sizes):
    """The same samples in any archives are the same dataset, with the same digest."""
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        os.remove(os.path.join(folder, name))
    first = 0
    for number, size in enumerate(sizes):
        with tarfile.open(os.path.join(folder, f"x-{number:03d}.tar"), "w") as archive:
            for i in range(first, first + size):
                member = tarfile.TarInfo(f"{i:05d}.cls")
                member.size = len(str(i))
                archive.addfile(member, io.BytesIO(str(i).encode()))
        first += size
    return {"path": folder, "format": "webdataset", "fields": "n=cls"}


@case("a daemon that is killed comes back in the middle of an epoch")
def _(box):
    daemon = box.daemon({"d": lines_of(box.path("d"), SIZES)})

    def readers(job):
        return [daemon.reader("d", world=2, rank=rank, job=job, seed=1, on_restart="wait", delay_ms=10, **terms())
                for rank in range(2)]

    running = readers("a")
    for reader in running:
        reader.wait_lines(200)
    daemon.kill()
    daemon.start()
    for rank, reader in enumerate(running):
        equal(numbers(reader.good()), expected_order(N, world=2, rank=rank, seed=1, partition="exact", order="blocks",
                                                     blocks=SIZES), f"rank {rank}")


@case("the same samples in other shards have another order of blocks: a run that waits, and a state, are refused")
def _(box):
    need("numpy")
    daemon = box.daemon({"d": archives_of(box.path("d"), [30] * 20)})
    state = trainer(box, daemon, """
        with dlclient.Loader("d", batch_size=4, pipeline="n", order="blocks") as loader:
            next(iter(loader))
            out(loader.state_dict())
        with dlclient.Loader("d", batch_size=4, pipeline="n") as loader:
            out(loader.state_dict())
    """)
    reader = daemon.reader("d", on_restart="wait", delay_ms=100, **terms(batch=2))
    reader.wait_lines(10)
    daemon.kill()
    archives_of(box.path("d"), [20] * 30)
    daemon.start()
    equal(reader.finish(60)[0], 1, "exit status")
    contains(reader.errors(), "other shards", "open a new loader")
    equal(indices(daemon.read("d", **terms())), whole_order(600, 0, order="blocks", blocks=[20] * 30), "a new run")
    trainer(box, daemon, f"""
        refused(dlclient.StateError, lambda: dlclient.Loader("d", batch_size=4, pipeline="n", state={state[0]!r}),
                "state: blocks:", "other shards", "begin anew")
        with dlclient.Loader("d", batch_size=4, pipeline="n", state={state[1]!r}) as loader:
            assert sum(1 for _ in loader) == 150, "the order of all samples is the same"
    """)


@case("blocks are shards where there are some, cut where a table is long; else 1,024 samples; and parts begin anew")
def _(box):
    need("numpy")
    import numpy
    numpy.save(box.path("a.npy"), numpy.arange(5000))
    own = lines_of(box.path("d"), SIZES)
    daemon = box.daemon({"d": own, "array": {"path": box.path("a.npy"), "format": "npy"},
                         "pictures": box.folder_of_files("pictures", 30),
                         "half": {**own, "split": "1000:3000"}, "some": {**own, "split": "hash(:50%)"},
                         "drawn": {**own, "split": "random_split(0.5, 0.5; seed=0)[0]"},
                         "more": lines_of(box.path("more"), [10, 20])})

    def check(name, sizes, pipeline="raw"):
        n = sum(sizes)
        lines = daemon.read(name, seed=5, pipeline=pipeline, batch=50, partition="exact", order="blocks(window=2)")
        equal(indices(lines), whole_order(n, 5, order="blocks(window=2)", blocks=sizes), name)
        return lines

    check("array", [1024] * 4 + [904], "data")
    check("pictures", [30])
    check("half", [541, 7, 300, 1152], "n")
    chosen = [line["fields"]["n"]["value"] for line in daemon.read("some", pipeline="n", batch=50, shuffle=False)]
    firsts = [sum(SIZES[:i]) for i in range(len(SIZES))]
    counts = [sum(first <= value < first + size for value in chosen) for first, size in zip(firsts, SIZES)]
    check("some", [count for count in counts if count], "n")
    check("drawn", [1024] * (N // 2 // 1024) + [N // 2 % 1024], "n")
    lines = daemon.read("d + more", seed=5, pipeline="n", batch=50, order="blocks(window=2)")
    equal(indices(lines), whole_order(N + 30, 5, order="blocks(window=2)", blocks=SIZES + [10, 20]), "of two datasets")


@case("what cannot be is refused, and ranks must agree on the window")
def _(box):
    daemon = box.daemon({"d": lines_of(box.path("d"), SIZES),
                         "s": {**archives_of(box.path("s"), [10]), "stream": "yes"}})
    daemon.refused("d", "order", "did you mean \"blocks\"", pipeline="n", order="block")
    daemon.refused("d", "order", "1 to 1024", pipeline="n", order="blocks(window=0)")
    daemon.refused("d", "order", "blocks(window=N)", pipeline="n", order="blocks(3")
    daemon.refused("d", "sampler", "random", "\"blocks\"", pipeline="n", order="blocks", sampler="random(n=10)")
    daemon.refused("s", "order", "how many shards", pipeline="raw", order="blocks")
    daemon.refused("d", "shuffle_buffer", "\"blocks\"", pipeline="n", order="blocks", shuffle_buffer=10)
    one = daemon.reader("d", world=2, rank=0, job="j", delay_ms=50, **terms())
    one.wait_lines(1)
    daemon.refused("d", "order", "runs with blocks,", "asks for blocks(window=9)", world=2, rank=1, job="j",
                   **terms("blocks(window=9)"))
    contains(daemon.dlctl("jobs", "j").stdout, "blocks")


@case("steps that arrange the samples take them in the order of blocks; one that shuffles them anew is refused")
def _(box):
    daemon = box.daemon({"d": lines_of(box.path("d"), SIZES)})
    write(box.path("l"), b"4\n" * N)
    column = {"column": f"l={box.path('l')}"}
    lines = daemon.read("d", seed=2, **terms(sampler="pack(size=8, column=l, strategy=wrapped)", **column))
    equal(indices(lines), whole_order(N, 2, order="blocks", blocks=SIZES), "rows of two samples, one after the other")
    reader = daemon.reader("d", seed=2, **terms(sampler="max_tokens(l, 8, shuffle=true)", **column))
    equal(reader.finish(30)[0], 1, "exit status")
    contains(reader.errors(), "order \"blocks\"", "its shuffling")


@case("Python: a state goes on at another world size, also under another spelling; an epoch is known ahead")
def _(box):
    need("numpy")
    folder = box.path("d")
    daemon = box.daemon({"d": lines_of(folder, SIZES)})
    trainer(box, daemon, f"""
        whole = {whole_order(N, 4, order="blocks(window=3)", blocks=SIZES)!r}
        loader = dlclient.Loader("d", batch_size=10, pipeline="n", seed=4, order="blocks( 3 )", ranks=[0, 1],
                                 partition="exact")
        assert loader.order == "blocks(window=3)", loader.order
        seen = []
        for step, pair in enumerate(loader):
            seen += [i for two in zip(*(batch.indices.tolist() for batch in pair)) for i in two]
            if step == 50:
                state = loader.state_dict()
                break
        loader.close()
        assert state["order"] == "blocks(window=3)" and len(state["blocks"]) == 64, state
        with dlclient.Loader("d", batch_size=7, pipeline="n", partition="exact", state=state) as loader:
            assert list(loader.sampler) == whole[:], "all of the epoch, asked for ahead"
            for batch in loader:
                seen += batch.indices.tolist()
        assert seen == whole, "both runs together"
        refused(dlclient.StateError, lambda: dlclient.Loader("d", batch_size=7, pipeline="n", partition="exact",
                                                             order="blocks", state=state), "order", "blocks(window=3)")
    """)


main()
