#!/usr/bin/env python3
"""Packs and batches by length of `dlctl order` are those that the installed TRL and Grain make of lengths drawn at random, and
torch's permutation of them where an epoch is shuffled."""
import json
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from harness import DLCTL, Skip, case, equal, main
from group_models import grain_packs, trl_packs

ROUNDS = 8


def need(*modules):
    for module in modules:
        try:
            __import__(module)
        except ImportError as error:
            raise Skip(f"{module} cannot be imported: {error}") from error


def units(box, sampler, lengths, *options):
    """What dlctl makes of it: a list of pieces for each unit."""
    path = box.path("lengths")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{length}\n" for length in lengths)
    done = subprocess.run([DLCTL, "order", "--samples", str(len(lengths)), "--sampler", sampler, "--column", f"c={path}",
                           "--format", "json", *options], check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=300)
    equal((done.returncode, done.stderr), (0, ""), sampler)
    found = {}
    for line in done.stdout.splitlines():
        row = json.loads(line)
        found.setdefault(row["unit"], []).append([row["index"], row["begin"], row["elements"]])
    return list(found.values())


def some_lengths(chance, most):
    """From one epoch in two some are empty or too long."""
    low, high = chance.choice([(0, 3 * most), (1, most)])
    return [max(low, min(high, int(chance.lognormvariate(0, 1.2) * most / 5))) for _ in range(chance.randrange(1, 400))]


@case("best fit and wrapped packs are TRL's")
def _(box):
    need("trl", "datasets")
    chance = random.Random()
    for _ in range(ROUNDS):
        size, rows = chance.randrange(2, 200), chance.choice([0, 1000, chance.randrange(2, 50)])
        lengths = [max(1, length) for length in some_lengths(chance, size)]
        for strategy, text in (("bfd", ""), ("bfd_split", ", long=split"), ("wrapped", ", strategy=wrapped")):
            equal(units(box, f"pack({size}, column=c, rows={rows}{text})", lengths, "--no-shuffle"),
                  trl_packs(lengths, size, strategy, rows), f"{strategy} of {lengths} into {size}, {rows} at a time")


@case("a dataset that TRL packed once, under DistributedSampler, has this order of packs")
def _(box):
    need("trl", "datasets", "torch")
    import torch
    chance = random.Random()
    for _ in range(ROUNDS):
        size, seed, epoch = chance.randrange(2, 100), chance.randrange(1000), chance.randrange(9)
        lengths = [max(1, length) for length in some_lengths(chance, size)]
        packs = trl_packs(lengths, size, "bfd", 1000)
        sampler = torch.utils.data.DistributedSampler(packs, num_replicas=2, rank=1, seed=seed)
        sampler.set_epoch(epoch)
        sequence = list(sampler)
        if len(set(sequence)) < len(sequence):
            continue  # a pack that pads the epoch cannot be told from the first time that it comes
        equal(units(box, f"pack({size}, column=c, shuffle=true)", lengths, "--no-shuffle", "--world", "2", "--rank", "1", "--seed",
                    str(seed), "--epoch", str(epoch)), [packs[i] for i in sequence], f"{lengths} into {size}")


@case("first fit packs are Grain's")
def _(box):
    need("grain")
    chance = random.Random()
    for _ in range(ROUNDS):
        size, bins, most = chance.randrange(2, 200), chance.randrange(1, 20), chance.choice([None, chance.randrange(1, 6)])
        lengths = [max(1, min(length, size)) for length in some_lengths(chance, size)]
        equal(units(box, f"pack({size}, column=c, strategy=first_fit, bins={bins}" + (f", max_samples={most})" if most else ")"), lengths,
                    "--no-shuffle"), grain_packs(lengths, size, bins, most), f"{lengths} into {size}, {bins} open, {most} samples")


main()
