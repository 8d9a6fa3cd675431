#!/usr/bin/env python3
"""A run that stops in the middle of an epoch goes on there, at any world and batch size: each sample comes once."""
import collections
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import (HandClient, Table, case, check_bytes, check_sequence, contains, equal, expected_order, field, indices, main, request,
                     samples_of, whole_order)

PARTITIONS = ("pad", "drop", "exact")
DEALINGS = ("strided", "chunk", "batch")
N_CHAINS = 14


def position_behind(position, n, world, batch, n_steps):
    """What a token says after so many steps of all ranks."""
    return min(position + n_steps * world * batch, n)


def read_part(daemon, position, world, batch, n_steps, **terms):
    """All ranks of one run read so many batches each, or to the epoch's end. Returns all indices and the new position."""
    n = len(samples_of(daemon.datasets["d"]))
    parts = daemon.read_ranks("d", world, batch=batch, limit=n_steps, first_position=position, **terms)
    for rank, lines in enumerate(parts):
        expected = expected_order(n, world, rank, terms["seed"], terms["first_epoch"], terms["shuffle"],
                                  terms["partition"], terms["order"], position, dealing=terms["dealing"], batch=batch)
        equal(indices(lines), expected[:n_steps * batch], f"rank {rank} of {world} behind {position}")
        equal([line["step"] for line in lines], [place // batch for place in range(len(lines))], "steps")
    return sum(map(indices, parts), []), position_behind(position, n, world, batch, n_steps)


def random_terms(chance):
    return {"seed": chance.randrange(2**64), "first_epoch": chance.choice([0, 1, chance.randrange(2**32)]),
            "shuffle": chance.random() < 0.8, "order": chance.choice(["torch", "tdperm"]),
            "partition": chance.choice(PARTITIONS)}


@case("chains of resumes at worlds and batch sizes chosen at random deal out each sample of the epoch once")
def _(box):
    chance = random.Random()
    for n in (1 + chance.randrange(8), 53, 64):
        daemon = box.daemon({"d": box.folder_of_files(f"d{n}", n)}, name=f"daemon of {n}")
        for _ in range(N_CHAINS // 3 + 1):
            check_chain(daemon, n, chance)
        daemon.stop()


def check_chain(daemon, n, chance):
    terms, position, seen, story, round_max = random_terms(chance), 0, [], [], 1
    for part in range(4):  # three resumes; the last one reads to the end
        world, batch, terms["dealing"] = chance.randrange(1, 5), chance.randrange(1, 9), chance.choice(DEALINGS)
        round_max = max(round_max, world * (1 if terms["dealing"] == "strided" else batch))
        n_steps = n if part == 3 else chance.randrange(n // (world * batch) + 2)
        story.append((position, world, batch, n_steps, terms["dealing"]))
        try:
            got, position = read_part(daemon, position, world, batch, n_steps, **terms)
        except AssertionError as error:
            raise AssertionError(f"{n} samples, {terms}, (position, world, batch, steps, dealing) {story}: {error}") from error
        seen += got
    check_union(n, seen, terms["partition"], round_max, f"{n} samples, {terms}, {story}")


def check_union(n, seen, partition, round_max, what):
    """"exact" has each once; only the part that reached the end pads, or drops, fewer than a round of its ranks."""
    counts = collections.Counter(seen)
    equal(sorted(set(counts) - set(range(n))), [], f"samples that there are; {what}")
    missing, extra = n - len(counts), len(seen) - len(counts)
    if partition == "drop":
        equal((missing < round_max, extra), (True, 0), f"{missing} samples are missing; {what}")
    else:
        equal((missing, extra < (round_max if partition == "pad" else 1)), (0, True), f"missing, and {extra} too many; {what}")


@case("at the same world and batch size a resumed rank goes on exactly as the run that did not stop")
def _(box):
    chance = random.Random()
    daemon = box.daemon({"d": box.folder_of_files("d", 47)})
    for partition in PARTITIONS:
        for order in ("torch", "tdperm"):
            world, batch = chance.randrange(1, 4), chance.randrange(1, 7)
            terms = {"world": world, "seed": 5, "partition": partition, "order": order,
                     "dealing": chance.choice(DEALINGS)}
            drop_last = chance.random() < 0.5
            stop = chance.randrange(1, 47 // (world * batch) + 1)
            for rank in range(world):
                first = daemon.read("d", rank=rank, batch=batch, limit=stop, drop_last=drop_last, **terms)
                rest = daemon.read("d", rank=rank, batch=batch, epochs=2, first_position=stop * world * batch,
                                   drop_last=drop_last, **terms)
                whole = daemon.read("d", rank=rank, batch=batch, epochs=2, drop_last=drop_last, **terms)
                equal([(line["epoch"], line["index"], line["fields"]) for line in first + rest],
                      [(line["epoch"], line["index"], line["fields"]) for line in whole],
                      f"rank {rank}, batch {batch}, stopped after {stop}, {terms}, drop_last={drop_last}")


@case("a resumed epoch is followed by whole ones, and the samples are the files that they say they are")
def _(box):
    folder = box.folder_of_files("d", 50, 3)
    daemon = box.daemon({"d": folder})
    for order in ("torch", "tdperm"):
        terms = {"world": 3, "order": order, "seed": 2**64 - 5, "partition": "exact"}
        parts = daemon.read_ranks("d", batch=4, epochs=3, first_epoch=7, first_position=31, **terms)
        for rank, lines in enumerate(parts):
            check_sequence(lines, 50, batch=4, epochs=3, first_epoch=7, first_position=31, rank=rank, **terms)
            check_bytes(lines, samples_of(folder))


@case("behind the last position an epoch has no batches, and the next one comes by itself")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 20)})
    for partition in PARTITIONS:
        equal(daemon.read("d", first_position=20, partition=partition), [], f"nothing is left; {partition}")
        lines = daemon.read("d", first_position=20, partition=partition, epochs=2, batch=3)
        check_sequence(lines, 20, batch=3, epochs=2, first_position=20, partition=partition)


@case("ranks that loaded different states are refused; one that loaded a newer state of the same run is taken up")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 300)})
    terms = {"world": 3, "batch": 5, "job": "run", "first_epoch": 3}
    first = daemon.reader("d", rank=0, first_position=100, delay_ms=150, **terms)
    first.wait_lines(5)
    daemon.refused("d", "position", "rank 0", "run", "epoch 3", "100", "131", "same state", rank=1, first_position=131,
                   **terms)
    lines = daemon.read("d", rank=1, first_position=130, **terms)
    equal(indices(lines), expected_order(300, 3, 1, epoch=3, position=100)[10:], "two batches later")
    lines = daemon.read("d", rank=2, first_position=131, limit=2, **dict(terms, first_epoch=4))
    equal(indices(lines), expected_order(300, 3, 2, epoch=4, position=131)[:10], "another epoch is another matter")
    equal(indices(first.good()), expected_order(300, 3, 0, epoch=3, position=100), "the first one goes on")


@case("a rank with another option is refused with both values and who asked for them; the rest of the job goes on")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 300), "e": box.folder_of_files("e", 30)})
    terms = {"world": 2, "batch": 5, "job": "run", "seed": 7}
    first = daemon.reader("d", rank=0, delay_ms=250, **terms)
    first.wait_lines(5)
    table = Table()
    for change, words in (
            ({"dataset": "e"}, ("dataset", " d,", "asks for e")), ({"seed": 8}, ("seed", "with 7,", "asks for 8")),
            ({"world": 3}, ("world_size", "with 2,", "asks for 3")), ({"batch": 6}, ("batch_size", "with 5,", "asks for 6")),
            ({"shuffle": False}, ("shuffle", "with true,", "asks for false")),
            ({"drop_last": True}, ("drop_last", "with false,", "asks for true")),
            ({"partition": "exact"}, ("partition", "with pad,", "asks for exact")),
            ({"order": "tdperm"}, ("order", "with torch,", "asks for tdperm")),
            ({"dealing": "batch"}, ("dealing", "with strided,", "asks for batch")),
            ({"on_error": "skip"}, ("on_error", "with fail,", "asks for skip")),
            ({"sampler": "random(n=300)"}, ("sampler", "asks for random(")),
            ({"pipeline": "label"}, ("pipeline", "asks for label"))):
        options = {**terms, **change}
        with table.row(change):
            message = daemon.refused(options.pop("dataset", "d"), *words, "as rank 0 (process", "; rank 1 asks for", rank=1,
                                     **options)
            contains(message, f"(process {first.process.pid})")
    table.done()
    lines = daemon.read("d", rank=1, **terms)
    equal(indices(lines), expected_order(300, 2, 1, seed=7), "a rank that agrees")
    equal(indices(first.good()), expected_order(300, 2, 0, seed=7), "the first one goes on")


@case("where whole batches are dealt, ranks must begin whole rounds apart, and must agree on the dealing")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 300)})
    terms = {"world": 3, "batch": 5, "job": "run", "first_epoch": 3, "dealing": "batch"}
    first = daemon.reader("d", rank=0, first_position=100, delay_ms=150, **terms)
    first.wait_lines(5)
    equal(daemon.objects("jobs")[0]["dealing"], "batch", "dlctl jobs")
    daemon.refused("d", "position", "rank 0", "epoch 3", "100", "112", "same state", rank=1, first_position=112, **terms)
    daemon.refused("d", "dealing", "run", "batch", "chunk", rank=1, first_position=100, **dict(terms, dealing="chunk"))
    daemon.refused("d", "dealing", "strided", rank=1, first_position=100, **{name: value for name, value in terms.items()
                                                                             if name != "dealing"})
    lines = daemon.read("d", rank=1, first_position=115, **terms)
    equal(indices(lines), expected_order(300, 3, 1, epoch=3, position=115, dealing="batch", batch=5), "a round later")
    equal(indices(first.good()), expected_order(300, 3, 0, epoch=3, position=100, dealing="batch", batch=5), "goes on")


@case("a seek to a place that is none is refused with what is allowed, and the rank goes on where it was")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 40)})
    client = HandClient(daemon.socket)
    client.send(request("seek", field(3, 5)))
    contains(client.receive().decode("utf-8", "replace"), "attach first")
    client.attach("d", batch=4, order="tdperm")
    for body, words in ((field(3, 41), ("position: 41", "40")), (field(3, 2**64 - 1), ("position",)),
                        (field(2, 11), ("step: 11", "10")), (field(2, 5) + field(3, 24), ("step: 5", "4")),
                        (field(1, 2**32), ("epoch",))):
        client.send(request("seek", body))
        contains(client.receive().decode("utf-8", "replace"), *words)
    for body in (field(3, 40), field(2, 4) + field(3, 24), field(1, 2**32 - 1) + field(3, 40), field(1, 9)):
        client.send(request("seek", body))
        equal(len(client.receive()) < 20, True, "no refusal")
    [job] = daemon.objects("jobs")
    equal(job["order"], "tdperm", "dlctl jobs")
    client.close()


@case("the order of an epoch does not depend on where it is resumed")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 30)})
    for order in ("torch", "tdperm"):
        whole = whole_order(30, 8, 1, order=order)
        for position in (0, 1, 17, 29):
            lines = daemon.read("d", first_position=position, seed=8, first_epoch=1, order=order)
            equal(indices(lines), whole[position:], f"{order} behind {position}")


main()
