#!/usr/bin/env python3
"""The Python client under the frameworks that people train with, in the versions of requirements.txt: they save and load
its place in the epoch by themselves, and whatever they do, no sample is lost or seen twice."""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from harness import case, equal, expected_order, main
from trainers import dlclient, need, python_command, run

N = 50  # samples; 13 batches of 4, the last of 2
BATCHES = 13


def daemon_with_pictures(box):
    return box.daemon({"files": box.folder_of_pictures("files", N)})


def parse(lines):
    """[(epoch, [index, ...]), ...] of lines of numbers; others are the framework's own words."""
    rows = [[int(word) for word in line.split()] for line in lines if re.fullmatch(r"[\d ]+", line.strip())]
    return [(row[0], row[1:]) for row in rows]


def batches(epoch, world=1, rank=0):
    order = expected_order(N, world, rank, seed=9, epoch=epoch)
    return [(epoch, order[begin:begin + 4]) for begin in range(0, len(order), 4)]


# ---- Lightning ------------------------------------------------------------------------------------------------------

def lightning(box, daemon, expected=0, **terms):
    """Runs it; returns the rows of each rank since the last call."""
    terms = dict({"out": box.path("out"), "checkpoints": box.path("checkpoints"), "every": None, "resume": None,
                  "stop_after": None, "devices": 1}, **terms)
    run(box, python_command(os.path.join(HERE, "lightning_run.py"), json.dumps(terms)), daemon, 200, expected)
    rows = []
    for rank in range(terms["devices"]):
        with open(f"{terms['out']}.{rank}", encoding="utf-8") as file:
            rows.append(parse(file))
        os.remove(f"{terms['out']}.{rank}")
    return rows


def checkpoint(box, step):
    return box.path("checkpoints", f"step={step}.ckpt")


@case("Lightning trains epoch after epoch in the order of DistributedSampler")
def _(box):
    need("lightning")
    rows, = lightning(box, daemon_with_pictures(box))
    equal(rows, batches(0) + batches(1) + batches(2), "batches")


@case("Lightning saves the place in mid-epoch by itself and goes on there")
def _(box):
    need("lightning")
    daemon = daemon_with_pictures(box)
    whole = batches(0) + batches(1) + batches(2)
    rows, = lightning(box, daemon, every=7, stop_after=24, expected=3)
    equal(rows, whole[:24], "batches before the end")
    for step in (7, 21):
        rows, = lightning(box, daemon, every=1000, resume=checkpoint(box, step))
        equal(rows, whole[step:], f"batches after resuming at step {step}")


@case("Lightning goes on with the next epoch after a checkpoint in the last batch or at the end of an epoch")
def _(box):
    need("lightning")
    daemon = daemon_with_pictures(box)
    whole = batches(0) + batches(1) + batches(2)
    for every in (BATCHES, None):
        lightning(box, daemon, every=every, stop_after=BATCHES * 2 + 3, expected=3,
                  checkpoints=box.path(f"checkpoints{every}"))
        for step in (BATCHES, BATCHES * 2):
            rows, = lightning(box, daemon, every=1000,
                              resume=box.path(f"checkpoints{every}", f"step={step}.ckpt"))
            equal(rows, whole[step:], f"batches after resuming at step {step}, saved every {every}")


@case("Lightning's two processes get their own shares, and resume in mid-epoch")
def _(box):
    need("lightning")
    daemon = daemon_with_pictures(box)
    expected = [batches(0, 2, rank) + batches(1, 2, rank) + batches(2, 2, rank) for rank in range(2)]
    equal(lightning(box, daemon, devices=2, every=9), expected, "batches of the ranks")
    equal(lightning(box, daemon, devices=2, every=1000, resume=checkpoint(box, 9)), [rows[9:] for rows in expected],
          "batches after resuming")


# ---- others ---------------------------------------------------------------------------------------------------------

def in_two_runs(box, script):
    """A program that saves its state after 17 batches and is run again: no batch is lost or seen twice."""
    daemon = daemon_with_pictures(box)
    folder = box.path("state")
    rows = parse(run(box, python_command(os.path.join(HERE, script), folder, 0, 17), daemon))
    equal(rows, (batches(0) + batches(1))[:17], "batches of the first run")
    rows = parse(run(box, python_command(os.path.join(HERE, script), folder, 17, 0), daemon))
    equal(rows, (batches(0) + batches(1))[17:], "batches of the second run")


@case("Accelerate leaves the loader as it is, and saves and loads its place")
def _(box):
    need("accelerate")
    in_two_runs(box, "accelerate_run.py")


@case("torch.distributed.checkpoint saves and loads its place")
def _(box):
    need("torch")
    in_two_runs(box, "checkpoint_run.py")


@case("transformers' Trainer goes on in mid-epoch where a callback kept the place")
def _(box):
    need("transformers", "accelerate")
    daemon = daemon_with_pictures(box)
    whole = batches(0) + batches(1)
    script = os.path.join(HERE, "trainer_run.py")
    rows = parse(run(box, python_command(script, box.path("run"), 0, 18), daemon, expected=3))
    equal(rows, whole[:18], "batches of the first run")
    rows = parse(run(box, python_command(script, box.path("run"), 1, 0), daemon))
    equal(rows, whole[15:], "batches of the second run")


@case("JAX gets arrays that keep their values")
def _(box):
    need("jax")
    import jax
    import numpy
    daemon = daemon_with_pictures(box)
    package = dlclient()
    arguments = {"socket": daemon.socket, "batch_size": 4, "pipeline": "decode", "seed": 9}
    with package.Loader("files", **arguments) as plain, package.Loader("files", framework="jax", **arguments) as loader:
        kept = []
        for ours, theirs in zip(plain, loader):
            equal((isinstance(theirs["image"], jax.Array), theirs["image"].dtype), (True, numpy.uint8), "image")
            kept += [(numpy.array(ours[name]), theirs[name]) for name in ("image", "label")]
        equal(len(kept), 2 * BATCHES, "arrays")
        for expected, array in kept:  # long after their slots were filled again
            equal(bool((numpy.asarray(array) == expected).all()), True, "values")


main()
