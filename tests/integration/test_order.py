#!/usr/bin/env python3
"""dlctl order: the sequences that torch gives, and our own, without a daemon."""
import json
import os
import random
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import DLCTL, ROOT, Skip, block_order, case, contains, equal, expected_order, main, whole_order

N_RANDOM = 60


def order(*arguments, status=0):
    done = subprocess.run([DLCTL, "order"] + [str(argument) for argument in arguments], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=300)
    equal(done.returncode, status, f"exit status of order {arguments}: {done.stderr}")
    return [int(line) for line in done.stdout.split()] if status == 0 else done.stderr


def arguments_of(n, world, rank, seed, epoch, shuffle, partition, name="torch", position=0, dealing="strided", batch=1):
    return ["--samples", n, "--world", world, "--rank", rank, "--seed", seed, "--epoch", epoch, "--partition",
            partition, "--order", name, "--position", position, "--dealing", dealing, "--batch", batch] + \
        ([] if shuffle else ["--no-shuffle"])


def random_terms(chance):
    world = chance.choice([1, 1, 2, 3, 7, 8, 64])
    return (chance.choice([1, 2, 3, 10, 100, 1000, 1 + chance.randrange(5000)]), world, chance.randrange(world),
            chance.choice([0, 1, chance.randrange(2**32), 2**64 - 1 - chance.randrange(1000)]),
            chance.choice([0, 1, chance.randrange(1000)]), chance.random() < 0.85)


@case("every vector of DistributedSampler comes out of dlctl order")
def _(box):
    n_checked = 0
    with open(os.path.join(ROOT, "tests", "vectors", "distributed.jsonl"), encoding="utf-8") as vectors:
        for line in vectors:
            vector = json.loads(line)
            got = order(*arguments_of(vector["n"], vector["replicas"], vector["rank"], vector["seed"] % 2**64,
                                      vector["epoch"], vector["shuffle"], "drop" if vector["drop_last"] else "pad"))
            equal(len(got), vector["len"], f"length for {line[:90]}")
            if "indices" in vector:
                equal(got, vector["indices"], line[:90])
            else:
                n_ends = len(vector["first"])
                equal((got[:n_ends], got[-n_ends:]), (vector["first"], vector["last"]), line[:90])
            n_checked += 1
    equal(n_checked > 300, True, "enough vectors")


@case("parameters chosen at random give what the definition gives, for all dealings and partitions")
def _(box):
    chance = random.Random()
    for _ in range(N_RANDOM):
        n, world, rank, seed, epoch, shuffle = random_terms(chance)
        partition = chance.choice(["pad", "drop", "exact"])
        dealing, batch = chance.choice(["strided", "chunk", "batch"]), chance.choice([1, 2, 5, 64, n, 65536])
        terms = (n, world, rank, seed, epoch, shuffle, partition, chance.choice(["torch", "tdperm", "buffer"]),
                 chance.choice([0, 0, n, chance.randrange(n)]))
        equal(order(*arguments_of(*terms, dealing, batch)), expected_order(*terms, dealing=dealing, batch=batch),
              f"order of {terms} with {dealing} {batch}")


@case("parameters chosen at random give what the installed torch's DistributedSampler gives")
def _(box):
    try:
        import torch.utils.data.distributed as distributed
    except ImportError as error:
        raise Skip("torch is not installed for this python3") from error
    chance = random.Random()
    for _ in range(N_RANDOM):
        n, world, rank, seed, epoch, shuffle = random_terms(chance)
        seed %= 2**63  # torch adds the epoch to it and takes no more than 64 bits
        drop = chance.random() < 0.3
        sampler = distributed.DistributedSampler(range(n), num_replicas=world, rank=rank, shuffle=shuffle, seed=seed,
                                                 drop_last=drop)
        sampler.set_epoch(epoch)
        terms = (n, world, rank, seed, epoch, shuffle, "drop" if drop else "pad")
        equal(order(*arguments_of(*terms)), list(sampler), f"order of {terms}")


@case("a shuffle buffer of any size gives what WebDataset's shuffle() gives with these draws")
def _(box):
    chance = random.Random()
    for _ in range(N_RANDOM):
        n, seed, epoch = chance.choice([1, 2, 99, 100, 101, 1000, 3001]), chance.randrange(2**40), chance.randrange(5)
        size = chance.choice([1, 2, 3, 50, 99, 100, 101, 999, 1000, 5000])
        equal(order("--samples", n, "--seed", seed, "--epoch", epoch, "--order", "buffer", "--shuffle-buffer", size),
              whole_order(n, seed, epoch, order="buffer", shuffle_buffer=size), f"{n} samples, a buffer of {size}")


@case("blocks of any sizes and windows give what the definition gives, for all dealings and partitions")
def _(box):
    chance = random.Random()
    for number in range(N_RANDOM):
        kind, n_blocks = chance.choice(["even", "small", "mixed", "long"]), chance.choice([1, 2, 7, 8, 9, 40, 200])
        most = {"even": 1, "small": 30, "mixed": 2500, "long": 20000}[kind]
        sizes = [chance.randrange(1, most + 1) for _ in range(n_blocks if most < 1000 else min(n_blocks, 9))]
        window = chance.choice([1, 2, 3, 8, 64, 1024])
        seed, epoch = chance.choice([0, chance.randrange(2**64)]), chance.choice([0, chance.randrange(2**32)])
        file = os.path.join(box.path(), f"sizes-{number}")
        with open(file, "w", encoding="utf-8") as sink:
            sink.writelines(f"{size}\n" for size in sizes)
        world = chance.choice([1, 1, 2, 5])
        terms = (sum(sizes), world, chance.randrange(world), seed, epoch, True, chance.choice(["pad", "drop", "exact"]),
                 chance.choice(["blocks"] if window == 8 else [f"blocks(window={window})"]),
                 chance.choice([0, chance.randrange(sum(sizes))]), chance.choice(["strided", "chunk"]),
                 chance.choice([1, 3, 64]))
        equal(order(*arguments_of(*terms), "--blocks", file),
              expected_order(*terms[:9], dealing=terms[9], batch=terms[10], blocks=sizes), f"{sizes} under {terms}")


@case("the program in docs/orders.md gives the order of blocks")
def _(box):
    with open(os.path.join(ROOT, "docs", "orders.md"), encoding="utf-8") as page:
        program = re.search(r"```python\n(def philox.*?)```", page.read(), re.DOTALL).group(1)
    theirs, chance = {}, random.Random()
    exec(program, theirs)  # pylint: disable=exec-used
    for sizes, window in (([1], 8), ([2, 1], 8), ([300, 2000, 5, 40], 3), ([9000], 2), ([10] * 30, 8)):
        seed, epoch = chance.randrange(2**64), chance.randrange(2**32)
        equal(theirs["block_order"](sizes, seed, epoch, window), block_order(sizes, seed, epoch, window),
              f"{sizes}, {window} at a time, seed {seed}, epoch {epoch}")


@case("blocks of one size, and those of a dataset without shards")
def _(box):
    for n, each in ((10, 3), (10, 10), (10, 11), (5000, 1), (5000, 999)):
        sizes = [min(each, n - first) for first in range(0, n, each)]
        equal(order("--samples", n, "--order", "blocks", "--blocks", each, "--seed", 3),
              whole_order(n, 3, order="blocks", blocks=sizes), f"{n} samples in blocks of {each}")
    equal(order("--samples", 20000, "--order", "blocks", "--epoch", 4), whole_order(20000, 0, 4, order="blocks"),
          "blocks of 1,024")
    with open(box.path("sizes"), "w", encoding="utf-8") as sink:
        sink.write("3\n0\n\n4\n")
    equal(order("--samples", 7, "--order", "blocks", "--blocks", box.path("sizes")),
          whole_order(7, order="blocks", blocks=[3, 4]), "a shard without samples is no block")


@case("every vector of tdperm comes out of dlctl order")
def _(box):
    n_checked = 0
    with open(os.path.join(ROOT, "tests", "vectors", "own_definitions.jsonl"), encoding="utf-8") as vectors:
        for line in vectors:
            vector = json.loads(line)
            if vector["kind"] != "tdperm1" or vector["n"] > 2**40:
                continue
            for position, index in list(zip(vector["positions"], vector["indices"]))[-3:]:
                got = order("--samples", vector["n"], "--seed", vector["seed"], "--epoch", vector["epoch"], "--order",
                            "tdperm", "--position", position, "--world", 1048576, "--partition", "exact")[:1]
                equal(got, [index], f"position {position} of {line[:90]}")
            n_checked += 1
    equal(n_checked > 40, True, "enough vectors")


@case("what is left behind a position is what the whole epoch has there, at any world")
def _(box):
    for name in ("torch", "tdperm", "buffer", "blocks(window=3)"):
        whole = order(*arguments_of(1000, 1, 0, 5, 2, True, "exact", name))
        for position, world in ((0, 3), (1, 1), (333, 4), (997, 7), (1000, 2)):
            parts = [order(*arguments_of(1000, world, rank, 5, 2, True, "exact", name, position)) for rank in range(world)]
            dealt = [parts[place % world][place // world] for place in range(sum(map(len, parts)))]
            equal(dealt, whole[position:], f"{name}: behind {position} among {world}")


@case("the parts of an exact partition are all samples, each once")
def _(box):
    for n, world in ((10, 3), (1, 8), (1000, 7), (5, 5)):
        parts = [order(*arguments_of(n, world, rank, 3, 1, True, "exact")) for rank in range(world)]
        equal(sorted(sum(parts, [])), list(range(n)), f"{n} samples over {world} ranks")
        equal(max(map(len, parts)) - min(map(len, parts)) <= 1, True, "ranks differ by one at most")


@case("with --drop-last the samples of a rank's incomplete batch are left out")
def _(box):
    for n, world, batch in ((10, 3, 2), (11, 1, 4), (3, 1, 4), (64, 2, 4)):
        for rank in range(world):
            whole = order(*arguments_of(n, world, rank, 3, 1, True, "exact", batch=batch))
            equal(order(*arguments_of(n, world, rank, 3, 1, True, "exact", batch=batch), "--drop-last"),
                  whole[:len(whole) // batch * batch], f"{n} samples, {world} ranks, batches of {batch}")


@case("what cannot be is refused, naming the option")
def _(box):
    for arguments, word in ((["--samples", 10, "--world", 2, "--rank", 2], "rank"),
                            (["--samples", 10, "--world", 0], "world"),
                            (["--samples", "ten"], "samples"),
                            (["--samples", -1], "samples"),
                            (["--samples", "9" * 30], "samples"),
                            (["--samples", 10, "--world", 10**9], "world"),
                            (["--samples", 10, "--partition", "half"], "partition"),
                            (["--samples", 10, "--dealing", "cards"], "dealing"),
                            (["--samples", 10, "--dealing", "batch"], "--batch"),
                            (["--samples", 10, "--dealing", "batch", "--batch", 65537], "65536"),
                            (["--samples", 10, "--drop-last"], "--batch"),
                            (["--samples", 10, "--order", "alphabetical"], "order"),
                            (["--samples", 10, "--order", "blocks(window=0)"], "1 to 1024"),
                            (["--samples", 10, "--order", "blocks", "--blocks", 0], "blocks"),
                            (["--samples", 10, "--order", "blocks", "--blocks", "/nowhere"], "/nowhere"),
                            (["--samples", 10, "--order", "blocks", "--blocks", numbers(box, "few", [4, 5])], "9 samples"),
                            (["--samples", 10, "--order", "blocks", "--blocks", numbers(box, "many", [4, 7])], "all blocks"),
                            (["--samples", 10, "--order", "blocks", "--blocks", numbers(box, "half", [9.5, 1])], "9.5"),
                            (["--samples", 10, "--order", "blocks", "--blocks", numbers(box, "less", [-1])], "-1"),
                            (["--samples", 10, "--blocks", 3], "--order blocks"),
                            (["--samples", 10, "--order", "blocks", "--sampler", "random(n=3)"], "order \"blocks\""),
                            (["--samples", 10, "--position", 11], "position"),
                            ([], "samples")):
        done = subprocess.run([DLCTL, "order"] + [str(argument) for argument in arguments], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=300)
        equal((done.returncode in (1, 2), done.stdout), (True, ""), f"order {arguments}")
        contains(done.stderr, word)



def numbers(box, name, values):
    path = box.path(name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(f"{value}\n" for value in values))
    return path


@case("a sampler's mistake is told with the place in its text, the sample and the numbers")
def _(box):
    weights = numbers(box, "w.txt", [1, 2.5, -3, 0])
    labels = numbers(box, "label.txt", [0, 1, 1, 5])
    parts = ["--part", "photos=3", "--part", "sketches=1"]
    for text, arguments, message in (
            ("wieghted(w)", [], "sampler, column 1: unknown sampler \"wieghted\" (did you mean \"weighted\"?)"),
            ("weighted(column=w, m=3)", [], "column 20: weighted has no argument \"m\""),
            ("weighted(n=3)", [], "weighted needs its column"),
            ("weighted(column=w, n=0)", [], "a whole number from 1"),
            ("weighted(w)", [], "there is no column \"w\"; give it as --column w=FILE"),
            ("weighted(w)", ["--column", f"w={weights}"], "the weight -3 at sample 2"),
            ("class_balanced(l)", ["--column", f"l={weights}"], "labels are whole numbers"),
            ("stratified(l) weighted(w)", [], "it must come first"),
            ("repeat(3, n=13)", [], "4 samples, 3 times each, are 12"),
            ("mix(photos=1)", [], "there are no parts to mix"),
            ("mix(pictures=1)", parts, "there is no part \"pictures\"; the parts are: photos sketches"),
            ("random_split(0.5, 0.4, part=0)", [], "must add up to 1"),
            ("curriculum(l, stages=0.5, epochs=2:3)", ["--column", f"l={labels}"], "2 epochs for 1 stages"),
            ("length_grouped(l)", ["--column", f"l={weights}"], "lengths are whole numbers")):
        contains(order("--samples", 4, "--sampler", text, *arguments, status=1), message)


@case("a sampler is dealt to ranks as any order, and resumed at another world size")
def _(box):
    lengths = numbers(box, "length.txt", [random.randrange(1, 100) for _ in range(97)])
    for text in ("weighted(length, n=150)", "length_grouped(length)", "repeat(2)", "class_balanced(length) stratified(length)"):
        arguments = ["--samples", 97, "--sampler", text, "--column", f"length={lengths}", "--seed", 5, "--epoch", 2]
        whole = order(*arguments)
        parts = [order(*arguments, "--world", 3, "--rank", rank, "--partition", "exact") for rank in range(3)]
        equal([parts[i % 3][i // 3] for i in range(len(whole))], whole, f"{text} in three ranks")
        equal(order(*arguments, "--position", 60), whole[60:], f"{text} from position 60")


main()
