#!/usr/bin/env python3
"""States of the Python client: a run that was stopped anywhere goes on as if it had not been, at another world size and
batch size too; a state that does not belong here is refused, with the field and both values."""
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import Table, case, equal, expected_order, main
from pyclient import trainer

SIZES = (1, 7, 23, 64)

# One link of a chain: all ranks of a world side by side, in lockstep, from a state; `steps` None: to the epoch's end.
# Gives the samples of the epoch that it began in, in the order of their positions, and the state behind them.
CHAIN = """
    def through_json(state):
        return json.loads(json.dumps(state))

    def separate(name, world, **options):
        job = os.urandom(8).hex()
        return [dlclient.Loader(name, rank=rank, world_size=world, job=job, **options) for rank in range(world)]

    def link(name, world, batch, steps, state, together, late, **options):
        options.update(batch_size=batch)
        if state is not None and not late:
            options.update(state=state)
        if together:
            loaders = [dlclient.Loader(name, ranks=range(world), world_size=world, **options)]
        else:
            loaders = separate(name, world, **options)
        if state is not None and late:
            for loader in loaders:
                loader.load_state_dict(state)
        seen, iterators, epoch = [], [iter(loader) for loader in loaders], loaders[0].epoch
        while steps is None or steps > 0:
            row = [next(iterator, None) for iterator in iterators]
            if together:
                row = row[0] or ()
            row = [batch.indices.tolist() for batch in row if batch is not None]
            if not row:
                break
            for i in range(batch):
                seen += [indices[i] for indices in row if i < len(indices)]
            del row
            if steps is not None:
                steps -= 1
        state = through_json(loaders[0].state_dict())
        for loader in loaders:
            if loader.state_dict()["epoch"] == state["epoch"]:
                assert loader.state_dict() == state, (loader.state_dict(), state)
            loader.close()
        return epoch, seen, state
"""


def chains(count):
    """Random runs: how the epoch is made, then links of (world, batch, steps)."""
    draw = random.Random(4)
    for _ in range(count):
        links = [dict(world=draw.randint(1, 4), batch=draw.randint(1, 7), together=draw.random() < 0.5,
                      late=draw.random() < 0.5, steps=draw.randint(0, 4)) for _ in range(draw.randint(0, 3))]
        links.append(dict(world=draw.randint(1, 4), batch=draw.randint(1, 7), together=draw.random() < 0.5,
                          late=draw.random() < 0.5, steps=None))
        yield dict(n=draw.choice(SIZES), links=links, seed=draw.choice((0, 3)), shuffle=draw.random() < 0.8,
                   order=draw.choice(("torch", "tdperm")), partition=draw.choice(("pad", "drop", "exact")))


@case("a chain of runs at other worlds and batch sizes sees each sample of the epoch once, whatever the stops")
def _(box):
    daemon = box.daemon({f"n{n}": box.folder_of_files(f"n{n}", n, size=20) for n in SIZES}, memory_limit="2GiB")
    rows = list(chains(60))
    got = trainer(box, daemon, CHAIN + """
    import ast
    for row in ast.literal_eval(sys.argv[1]):
        links, name, state, told = row.pop("links"), "n" + str(row.pop("n")), None, []
        for terms in links:
            if state is not None and (state["epoch"] > 0 or state["position"] == state["samples"]):
                break                                       # the epoch ended before its last link
            epoch, seen, state = link(name, state=state, **terms, **row)
            told.append([epoch, seen, state["position"]])
        out(told)
    """, repr(rows), seconds=120)
    equal(len(got), len(rows), "rows")
    table = Table()
    for row, told in zip(rows, got):
        with table.row(row):
            check_chain(row, told)
    table.done()


def check_chain(row, told):
    """Each sample once; with "pad" the last world's ranks are evened out by repeating, with "drop" by leaving out."""
    n, world = row["n"], row["links"][len(told) - 1]["world"]
    seen = sum((samples for _, samples, _ in told), [])
    equal([epoch for epoch, _, _ in told], [0] * len(told), "epochs")
    left = n - sum(len(samples) for _, samples, _ in told[:-1])
    wanted = {"exact": n, "pad": n - left + -(-max(left, 0) // world) * world, "drop": n - left + left // world * world}
    if told[-1][2] == 0 and left > 0:
        equal(len(seen), wanted[row["partition"]], "how many samples")
    equal(len(set(seen)), min(len(seen), n), "how many different ones")
    if row["order"] == "torch":
        order = expected_order(n, seed=row["seed"], shuffle=row["shuffle"])
        equal(seen[:n], order[:len(seen)], "the epoch's order")


@case("at the same sizes the batches behind a stop are those that would have come, across epochs and virtual epochs")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 23, size=20)}, memory_limit="2GiB")
    trainer(box, daemon, """
        import random
        draw = random.Random(9)
        def take(loader, n):
            result = []
            while len(result) < n:
                for batch in loader:
                    result.append((loader.epoch, batch.epoch, batch.indices.tolist()))
                    if len(result) == n: break
            return result
        KINDS = [dict(epochs=1), dict(epochs=3), dict(epochs=None), dict(steps_per_epoch=5), dict(steps_per_epoch=1),
                 dict(steps_per_epoch=17)]
        for trial in range(40):
            options = dict(draw.choice(KINDS), batch_size=draw.randint(1, 6), order=draw.choice(("torch", "tdperm")),
                           drop_last=draw.random() < 0.3, world_size=3, rank=draw.randrange(3), job=f"j{trial}",
                           partition=draw.choice(("pad", "drop")),
                           dealing=draw.choice(("strided", "chunk", "batch")))
            whole = dlclient.Loader("f", **options)
            length = draw.randint(2, 25)
            expected, stop = take(whole, length), draw.randint(1, length - 1)
            whole.close()
            first = dlclient.Loader("f", **options)
            begun = take(first, stop)
            state = json.loads(json.dumps(first.state_dict()))
            first.close()
            second = dlclient.Loader("f", state=state, **options) if trial % 2 else dlclient.Loader("f", **options)
            second.load_state_dict(state)
            assert second.state_dict() == state
            assert len(second) == len(first) if options.get("epochs", 1) else True
            rest = take(second, length - stop)
            assert begun + rest == expected, (options, stop, begun, rest, expected)
            second.close()
    """, seconds=120)


@case("the state counts what the loop was given; after the loop it says the next epoch; batches taken ahead have their own")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 10, size=20)})
    lines = trainer(box, daemon, """
        loader = dlclient.Loader("f", batch_size=4)
        def place(state=None):
            state = state or loader.state_dict()
            return state["epoch"], state["position"]
        out(place())
        out([place() for batch in loader])
        out(place())
        iterator = iter(loader)
        ahead = [next(iterator) for _ in range(3)]
        out([place(batch.state_dict()) for batch in ahead])
        batch_state = state = ahead[0].state_dict()
        second = ahead[1].indices.tolist()
        del ahead, iterator
        loader.load_state_dict(state)
        assert next(iter(loader)).indices.tolist() == second
        state = None
        for batch in dlclient.Loader("f", batch_size=4):
            state = batch.state_dict()                      # in the body of the last batch
        resumed = dlclient.Loader("f", batch_size=4, state=state)
        out([[batch.epoch for batch in resumed], [batch.epoch for batch in resumed]])
        for epoch, wanted in ((0, []), (3, [3, 3, 3])):      # as Lightning does it: iter() first, set_epoch() behind it
            resumed.load_state_dict(state)
            iterator = iter(resumed)
            resumed.set_epoch(epoch)
            got = [batch.epoch for batch in iterator]
            assert got == wanted, (epoch, got)
        running = iter(resumed)
        next(running)
        resumed.load_state_dict(state)
        refused(dlclient.Error, lambda: next(running), "state was loaded")
        loader.load_state_dict(state := batch_state)
        for _ in range(2):
            iter(loader)                                    # a loop that takes nothing leaves the place as it is
        assert loader.state_dict() == state, loader.state_dict()
        assert next(iter(loader)).indices.tolist() == second
        laps = dlclient.Loader("f", batch_size=2, steps_per_epoch=2)
        iter(laps), iter(laps)
        assert [batch.step for batch in laps] == [0, 1] and laps.epoch == 1, laps.epoch
        loader.close()
        out(place())                                        # can still be saved
    """)
    equal(lines, [[0, 0], [[0, 4], [0, 8], [0, 10]], [1, 0], [[1, 4], [1, 8], [1, 10]], [[1, 1, 1], [2, 2, 2]], [1, 8]], "places")


@case("a state saved in the body of a loop's last batch goes on with the next loop; set_epoch() can still ask for this one")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 10, size=20)})
    trainer(box, daemon, """
        def told(loader):
            return [(batch.epoch, batch.indices.tolist()) for batch in loader]
        for options in (dict(), dict(epochs=2), dict(steps_per_epoch=2), dict(ranks=[0, 1]), dict(copy=True),
                        dict(drop_last=True)):
            def open_one(**more):
                return dlclient.Loader("f", batch_size=4, **options, **more)
            def flat(loop):
                return [(one.epoch, one.indices.tolist()) for step in loop
                        for one in (step if isinstance(step, tuple) else (step,))]
            whole = open_one()
            loops = [flat(whole) for _ in range(3)]
            whole.close()
            first = open_one()
            for batch in first: state = first.state_dict()      # the last one that was saved is the last batch's
            batch = None
            first.close()
            second = open_one(state=state)
            number = 1 if options.get("epochs") != 2 else 2
            assert second.epoch == number, (options, second.epoch)
            assert second.state_dict() == state
            got = [flat(second), flat(second)]
            assert got == loops[1:], (options, got, loops)
            second.load_state_dict(state)
            second.set_epoch(number)                            # what a program does that counts epochs itself
            assert flat(second) == loops[1], options
            second.load_state_dict(state)
            second.set_epoch(second.epoch - number if options.get("epochs") != 2 else 1)
            got = flat(second)                                  # nothing is left of the epoch that the state is in
            assert got == [], (options, got)
            got = flat(second)
            assert got == loops[1], (options, got)
            second.close()
    """)


@case("set_epoch() of the epoch that a state is in keeps the place; of another one it is left")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 10, size=20)})
    order = {epoch: expected_order(10, epoch=epoch) for epoch in range(5)}
    lines = trainer(box, daemon, """
        loader = dlclient.Loader("f", batch_size=3)
        loader.set_epoch(4)
        for batch in loader:
            if batch.step == 1: break
        state = loader.state_dict()
        del batch
        for epoch in (4, 2):
            loader.load_state_dict(state)
            loader.set_epoch(epoch)
            out([i for batch in loader for i in batch.indices.tolist()])
        loader.set_epoch(4)                                 # no state was loaded since: from the start
        out([i for batch in loader for i in batch.indices.tolist()])
        virtual = dlclient.Loader("f", batch_size=3, steps_per_epoch=3)
        for batch in virtual: break
        state = virtual.state_dict()
        del batch
        other = dlclient.Loader("f", batch_size=2, steps_per_epoch=3, state=state)
        other.set_epoch(0)
        out([[i for batch in other for i in batch.indices.tolist()], other.epoch])
        iterator = iter(other)
        other.set_epoch(1)                                  # goes on where the stream stands, at the new size too
        out([i for batch in iterator for i in batch.indices.tolist()])
    """)
    equal(lines, [order[4][6:], order[2], order[4], [order[0][3:7], 1], order[0][7:] + order[1][:2]], "samples")


@case("a state that was edited, cut, or made elsewhere is refused with the field and both values, and changes nothing")
def _(box):
    folder = box.folder_of_files("f", 10, size=20)
    daemon = box.daemon({"f": folder, "g": folder, "h": box.folder_of_files("h", 10, size=30)})
    trainer(box, daemon, """
        from dlclient._places import state as _state
        def open_it(**options):
            return dlclient.Loader("f", **dict(dict(batch_size=2, seed=1, shuffle=True, order="torch"), **options))
        loader = open_it()
        for batch in loader: break
        del batch
        good = loader.state_dict()
        assert len(json.dumps(good)) < 1000
        def bad(state, *words, kind=dlclient.StateError):
            before = loader.state_dict()
            refused(kind, lambda: loader.load_state_dict(state), *words)
            assert loader.state_dict() == before
            refused(kind, lambda: open_it(state=state), *words)
        def edit(**fields):
            return dict(good, **fields)
        def sign(state):
            return dict(state, check=_state._checksum(state))
        others = {"version": 2, "dataset": "x", "digest": "00", "samples": 11, "pipeline": "decode", "order": "tdperm",
                  "shuffle": False, "seed": 2, "epoch": 7, "position": 4, "virtual": {"epochs": 2, "done": 0}, "check": "0"}
        assert set(others) == set(good), set(good) ^ set(others)
        for name, value in others.items():
            bad(edit(**{name: value}), name if name in ("version",) else "check", *(["2", "1"] if name == "version" else []))
            cut = dict(good); del cut[name]
            bad(cut, name, *([] if name == "version" else ["missing"]))
            for wrong in (None, 1.5, [], True) if name not in ("virtual", "shuffle") else (1.5, []):
                bad(edit(**{name: wrong}), name)
        for name in ("dataset", "digest", "samples", "pipeline", "order", "shuffle", "seed"):
            bad(sign(edit(**{name: others[name]})), name, repr(good[name]), repr(others[name]))
        bad(sign(edit(position=11)), "position", "11", "0 to 10")
        bad(sign(edit(position=-1)), "position")
        bad(sign(edit(epoch=2**32)), "epoch")
        bad(sign(edit(epoch=-1)), "epoch")
        for loop in ({}, {"epochs": 2}, {"epochs": 2, "done": -1}, {"steps_per_epoch": "3", "epoch": 0, "step": 0}):
            bad(sign(edit(virtual=loop)), "virtual")
        bad(edit(more=1), "check")
        for junk in (None, [], "x", b"", 3):
            refused(dlclient.StateError, lambda: loader.load_state_dict(junk), "state_dict()")
        # as they come from other loaders
        for options, name in ((dict(seed=2), "seed"), (dict(shuffle=False), "shuffle"), (dict(order="tdperm"), "order")):
            refused(dlclient.StateError, lambda: open_it(state=good, **options), name)
        refused(dlclient.StateError, lambda: dlclient.Loader("g", seed=1, state=good), "dataset", "'f'", "'g'")
        other = dlclient.Loader("h", seed=1).state_dict()
        refused(dlclient.StateError, lambda: open_it(state=sign(dict(other, dataset="f"))), "digest", good["digest"],
                other["digest"])
        # and one that fits, at other sizes
        again = open_it(batch_size=3, world_size=2, rank=1, job="w", partition="exact", state=good)
        assert again.state_dict() == good
    """)
    del daemon


@case("a stop and a new start in another process, at another world size, lose nothing and repeat nothing")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 50, size=20)})
    first = trainer(box, daemon, """
        loader = dlclient.Loader("f", batch_size=4)
        for batch in loader:
            if batch.step == 4: break
            out(batch.indices.tolist())
            saved = loader.state_dict()
        out(saved)
        os._exit(0)                                         # as a preempted job ends
    """)
    rest = []
    for rank in range(2):
        rest += trainer(box, daemon, """
            loader = dlclient.Loader("f", batch_size=5, partition="exact", state=json.loads(sys.argv[1]))
            for batch in loader: out(batch.indices.tolist())
        """, json.dumps(first[-1]), RANK=str(rank), WORLD_SIZE="2", TORCHELASTIC_RUN_ID="run")
    equal(sorted(sum(first[:-1] + rest, [])), list(range(50)), "samples of both runs")


main()
