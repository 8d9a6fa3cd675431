#!/usr/bin/env python3
"""client/examples: the programs in Python train, here on the CPU, and say that there is no GPU.

They run with the interpreter that runs this test. What is not installed is skipped."""
import inspect
import math
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, Skip, case, contains, equal, main, patience, photos
from private import Home
from trainers import dlclient, need, python_command, run, start_torch, torchrun_command

EXAMPLES = os.path.join(ROOT, "client", "examples")
N_PHOTOS, N_CLASSES = 50, 3
BATCH = ("--batch-size", 16)


def program(name):
    return os.path.join(EXAMPLES, name + ".py")


def need_device():
    if "device" not in inspect.signature(dlclient().Loader.__init__).parameters:
        raise Skip("the client does not know device= yet")


def run_both(box, command, home, status=0):
    """A trainer's standard output and error, after its end."""
    process = start_torch(box, command, home)
    out, err = process.communicate(timeout=patience(180))
    equal(process.returncode, status, err[-3000:])
    return out.splitlines(), err


def epochs(lines):
    """{(rank, epoch)} of the lines; each has a loss that is a number."""
    found = set()
    for line in lines:
        match = re.fullmatch(r"(?:rank (\d+) )?epoch (\d+) loss (\S+)", line)
        assert match and math.isfinite(float(match[3])), line
        found.add((int(match[1] or 0), int(match[2])))
    return found


@case("torch_trainer.py: alone and under torchrun")
def _(box):
    need("torch")
    need_device()
    folder, home = photos(N_PHOTOS, N_CLASSES), Home(box)
    lines, errors = run_both(box, python_command(program("torch_trainer"), folder, *BATCH), home)
    equal(epochs(lines), {(0, 0), (0, 1)}, "epochs")
    contains(errors, "torch finds no GPU: training on the CPU")
    lines = run(box, torchrun_command(box, program("torch_trainer"), folder, *BATCH, "--epochs", 1), home)
    equal(epochs(lines), {(0, 0), (1, 0)}, "ranks")


@case("torch_graph_trainer.py: the same step without a graph, and batches of one size alone")
def _(box):
    need("torch")
    need_device()
    folder, home = photos(N_PHOTOS, N_CLASSES), Home(box)
    lines, errors = run_both(box, python_command(program("torch_graph_trainer"), folder, *BATCH), home)
    equal(epochs(lines), {(0, 0), (0, 1)}, "epochs")
    contains(errors, "torch finds no GPU: training on the CPU, without a graph")
    _, errors = run_both(box, python_command(program("torch_graph_trainer"), folder, "--batch-size", N_PHOTOS + 1), home, status=1)
    contains(errors, f"fewer than {N_PHOTOS + 1} pictures")


@case("jax_trainer.py: a step of one shape, compiled once")
def _(box):
    need("jax")
    need_device()
    folder, home = photos(N_PHOTOS, N_CLASSES), Home(box)
    lines, errors = run_both(box, python_command(program("jax_trainer"), folder, *BATCH), home)
    equal(epochs(lines), {(0, 0), (0, 1)}, "epochs")
    contains(errors, "JAX finds no GPU: training on the CPU")


if __name__ == "__main__":
    main()
