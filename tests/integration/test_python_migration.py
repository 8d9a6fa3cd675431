#!/usr/bin/env python3
"""docs/migration.md: its programs are the files of docs/migration/, and each of them does what the page says.

They run with the interpreter that runs this test: Debian's torch in `make check`, today's packages in `make
check-frameworks`. What is not installed is skipped."""
import collections
import os
import re
import signal
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import warm
from harness import ROOT, case, contains, equal, main, photos, within
from private import Home
from trainers import environment, need, python_command, run, run_torch, torchrun_command

PAGE = os.path.join(ROOT, "docs", "migration.md")
PROGRAMS = os.path.join(ROOT, "docs", "migration")
N_PHOTOS, N_CLASSES = 241, 6  # no world but 1 divides it


def program(name):
    return os.path.join(PROGRAMS, name + ".py")


def served(box):
    """The folder, and a home where the first loader starts a daemon."""
    return photos(N_PHOTOS, N_CLASSES), Home(box)


def losses(lines):
    """{(rank, epoch): [loss, ...]} of lines such as "rank 0 epoch 1 loss 0.5"; rank and epoch may be missing."""
    found = collections.defaultdict(list)
    for line in lines:
        match = re.search(r"(?:rank (\d+) )?(?:(?:epoch|part) (\d+) )?loss ([\d.]+)$", line)
        if match:
            found[int(match.group(1) or 0), int(match.group(2) or 0)].append(float(match.group(3)))
    return found


def learned(lines, least=0.85):
    """The loss of the last epoch is clearly below that of the first."""
    epochs = losses(lines)
    first, last = min(epochs), max(epochs)
    begin, end = epochs[first][0], statistics.mean(epochs[last])
    assert end < least * begin, f"the loss went from {begin} to {end} only:\n" + "\n".join(lines)


@case("every program of the page is a file of docs/migration/, and every file stands on the page")
def _(_box):
    with open(PAGE, encoding="utf-8") as page:
        blocks = re.findall(r"^```python\n(.*?)^```$", page.read(), re.M | re.S)
    files = {}
    for name in os.listdir(PROGRAMS):
        if name.endswith(".py"):
            with open(os.path.join(PROGRAMS, name), encoding="utf-8") as file:
                files[file.read()] = name
    equal(sorted(files.values()), sorted(set(files.values())), "files")
    equal([block.splitlines()[:1] for block in blocks if block not in files], [], "blocks that are no file's text")
    equal([name for text, name in files.items() if text not in blocks], [], "files that are not on the page")
    for name in files.values():
        assert name == "model.py" or name.replace("_after", "_before") in files.values(), f"{name} has no other half"


@case("torch: both programs train")
def _(box):
    need("torch", "torchvision")
    folder, home = served(box)
    for lines in (run_torch(box, program("torch_before"), folder),
                  run_torch(box, program("torch_after"), folder, daemon=home)):
        equal(sorted(losses(lines)), [(0, 0), (0, 1)], "epochs")


@case("torchrun: two processes learn the classes, with the same loss at every step before and after, bit for bit")
def _(box):
    need("torch", "torchvision")
    folder, home = served(box)
    before = run_torch(box, program("torchrun_before"), folder, processes=2)
    after = run(box, torchrun_command(box, program("torchrun_after"), folder), home)
    learned(before)
    learned(after)
    ours, theirs = losses(after), losses(before)
    equal({place: len(values) for place, values in ours.items()},
          {(rank, epoch): 8 for rank in range(2) for epoch in range(3)}, "batches of every rank and epoch")
    equal(ours, theirs, "losses of every rank, epoch and step, to the last bit")


@case("resuming: a run that is ended in mid-epoch goes on there, and each sample is seen once an epoch")
def _(box):
    need("torch")
    folder, home = served(box)
    words = program("resume_after"), folder, box.path("checkpoint")
    output = box.path("output")
    for n_batches in (5, 11, 21):  # of 32
        with open(output, "ab") as out:
            process = warm.start(box, python_command(*words), env=environment(home), cwd=box.folder, stdout=out)
        within(60, lambda n=n_batches: len(read_lines(output)) >= n or process.poll() is not None, "batches")
        equal(process.poll(), None, "exit status before its time")
        process.send_signal(signal.SIGKILL)
        process.wait()
    seen = read_lines(output) + run_torch(box, *words, daemon=home)
    for epoch in range(2):
        batches = [line for line in seen if line.startswith(f"epoch {epoch} ")]
        # Killed between the checkpoint and the line, a batch is not on paper.
        samples = [int(word) for line in batches for word in re.findall(r"\d+", line.partition("samples")[2])]
        equal(len(samples), len(set(samples)), "samples that were seen twice")
        assert len(samples) >= N_PHOTOS - 16 * 3, f"{len(samples)} samples in epoch {epoch}"


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return [line for line in file.read().splitlines(keepends=True) if line.endswith("\n")]


@case("resuming before: torchdata's StatefulDataLoader, for comparison")
def _(box):
    need("torch", "torchvision", "torchdata")
    folder = photos(N_PHOTOS, N_CLASSES)
    lines = run(box, python_command(program("resume_before"), folder, box.path("checkpoint")))
    equal(len(lines), 32, "batches")


@case("validation: every sample is counted once over two processes; before, the padding was counted too")
def _(box):
    need("torch", "torchvision")
    folder, home = served(box)
    before = run_torch(box, program("validation_before"), folder, processes=2)
    after = run_torch(box, program("validation_after"), folder, daemon=home, processes=2)
    contains("\n".join(before), f"of {N_PHOTOS + 1} samples, of which there are {N_PHOTOS}")
    contains("\n".join(after), f"of {N_PHOTOS} samples, of which there are {N_PHOTOS}")


@case("uneven ends: ranks whose numbers of batches differ train to the end, and see each sample once")
def _(box):
    need("torch", "torchvision")
    folder, home = served(box)
    for lines in (run_torch(box, program("uneven_before"), folder, processes=2),
                  run_torch(box, program("uneven_after"), folder, daemon=home, processes=2)):
        told = sorted(line for line in lines if " had " in line)
        equal(told, ["rank 0 had 121 samples in 16 batches", "rank 1 had 120 samples in 15 batches"], "ranks")


@case("DataParallel: one process takes the batches of two ranks")
def _(box):
    need("torch", "torchvision")
    folder, home = served(box)
    equal(len(losses(run_torch(box, program("dataparallel_before"), folder))), 1, "losses before")
    equal(len(losses(run_torch(box, program("dataparallel_after"), folder, daemon=home))), 1, "losses after")


@case("endless: parts of ten steps go on over the ends of epochs")
def _(box):
    need("torch", "torchvision")
    folder, home = served(box)
    for lines in (run_torch(box, program("endless_before"), folder),
                  run_torch(box, program("endless_after"), folder, daemon=home)):
        equal(sorted(losses(lines)), [(0, part) for part in range(4)], "parts")


@case("SimCLR: both programs see two views of each picture")
def _(box):
    need("torch", "torchvision")
    folder, home = served(box)
    for lines in (run_torch(box, program("simclr_before"), folder),
                  run_torch(box, program("simclr_after"), folder, daemon=home)):
        equal(len(losses(lines)[0, 0]), -(-N_PHOTOS // 32), "batches")


def both(box, name, *modules, n_lines):
    need("torch", "torchvision", *modules)
    folder, home = served(box)
    for lines in (run(box, python_command(program(name + "_before"), folder), seconds=200),
                  run(box, python_command(program(name + "_after"), folder), home, seconds=200)):
        equal(len(losses(lines)), n_lines, f"losses in {lines}")


@case("Lightning: both programs train")
def _(box):
    both(box, "lightning", "lightning", n_lines=1)


@case("Accelerate: both programs train")
def _(box):
    both(box, "accelerate", "accelerate", n_lines=2)


@case("the Trainer of transformers: both programs train")
def _(box):
    both(box, "trainer", "transformers", "accelerate", n_lines=1)


@case("JAX: both programs train")
def _(box):
    both(box, "jax", "jax", n_lines=2)


main()
