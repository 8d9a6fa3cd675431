#!/usr/bin/env python3
"""Samplers: what `dlctl order` computes offline is what ranks are served, at any world size and after any resume, and what cannot
be an order is refused with a sentence."""
import collections
import json
import os
import random
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import DLCTL, case, contains, equal, main, patience, within, write

N = 97
CHOSEN = ("random(replacement=true, n=50)", "weighted(column=w, n=120)", "class_balanced(column=label, n=60)", "repeat(3)",
          "repeat_factor(column=label, t=0.9)", "random_split(0.7, 0.3, part=1, seed=3)", "length_grouped(column=length)",
          "stratified(column=label)", "weighted(column=w, n=80) stratified(column=label)")
GROUPED = ("buckets(column=length, edges=4:8:20, tokens=40)", "max_tokens(column=length, tokens=40)",
           "buckets(column=length, edges=4:8:20, sizes=6:4:2)", "grouped(column=w, edges=1:3)",
           "repeat(2) buckets(column=length, edges=4:20, tokens=60)")
PACKED = ("pack(column=length, size=30)", "pack(column=length, size=25, strategy=wrapped)",
          "weighted(column=w, n=200) pack(column=length, size=40, strategy=first_fit)")


def rows():
    return [{"w": i % 5 + 0.25, "length": 1 + i * 7 % 19, "label": i % 3, "text": f"text {i}"} for i in range(N)]


def serve(box, **settings):
    path = box.path("t.jsonl")
    write(path, "".join(json.dumps(row) + "\n" for row in rows()).encode())
    return box.daemon({"t": {"path": path, "format": "jsonl"}}, **settings)


def offline(box, text, world=1, rank=0, batch=4, **terms):
    """What `dlctl order` prints; the columns come out of files."""
    command = [DLCTL, "--format", "json", "order", "--samples", str(N), "--sampler", text, "--world", str(world), "--rank",
               str(rank), "--batch", str(batch)]
    for name in ("w", "length", "label"):
        path = box.path(f"{name}.txt")
        write(path, "".join(f"{row[name]}\n" for row in rows()).encode())
        command += ["--column", f"{name}={path}"]
    for name, value in terms.items():
        command += ["--" + name.replace("_", "-"), str(value)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False,
                          timeout=patience(30))
    equal((done.returncode, done.stderr), (0, ""), text)
    return [json.loads(line) for line in done.stdout.splitlines()]


def expected_batches(lines, text, batch):
    """The lines of an offline order, cut into a rank's batches."""
    if text in CHOSEN:
        return [[line["index"] for line in lines[i:i + batch]] for i in range(0, len(lines), batch)]
    units = collections.OrderedDict()
    for line in lines:
        units.setdefault(line["unit"], []).append(line["index"])
    units = list(units.values())
    if text in GROUPED:
        return units
    return [sum(units[i:i + batch], []) for i in range(0, len(units), batch)]


def batches_of(lines):
    steps = collections.OrderedDict()
    for line in lines:
        steps.setdefault((line["epoch"], line["step"]), []).append(line["index"])
    return list(steps.values())


@case("each sampler serves what `dlctl order` says, in the same batches, epoch after epoch")
def _(box):
    daemon = serve(box)
    for text in CHOSEN + GROUPED + PACKED:
        lines = daemon.read("t", sampler=text, pipeline="w", batch=4, epochs=2, seed=9)
        for epoch in range(2):
            expected = expected_batches(offline(box, text, seed=9, epoch=epoch), text, 4)
            equal(batches_of([line for line in lines if line["epoch"] == epoch]), expected, f"{text}, epoch {epoch}")


@case("the ranks of a world share each sampler's epoch, and a run that stops continues exactly at another world size")
def _(box):
    daemon = serve(box)
    chance = random.Random()
    for text in CHOSEN + GROUPED + PACKED:
        whole = expected_batches(offline(box, text, seed=4, batch=1), text, 1)
        world, n_steps = chance.randrange(1, 4), chance.randrange(1, 4)
        first = daemon.read_ranks("t", world, sampler=text, pipeline="w", batch=1, seed=4, partition="exact", limit=n_steps)
        rest = daemon.read_ranks("t", 2, sampler=text, pipeline="w", batch=1, seed=4, partition="exact",
                                 first_position=n_steps * world)
        got = collections.Counter(line["index"] for part in first + rest for line in part)
        equal(got, collections.Counter(sum(whole, [])), f"{text}, {n_steps} steps of {world} ranks, then 2")


@case("with partition pad all ranks get the same number of batches, whatever their sizes, and a rank without any sees its epochs end")
def _(box):
    daemon = serve(box)
    for text in GROUPED:
        parts = daemon.read_ranks("t", 3, sampler=text, pipeline="w", batch=4, epochs=2, partition="pad")
        equal(len({len(batches_of(part)) for part in parts}), 1, text)
    few = "random(n=1)"
    parts = daemon.read_ranks("t", 3, sampler=few, pipeline="w", batch=4, epochs=3, partition="exact")
    equal([len(part) for part in parts], [3, 0, 0], few)


@case("a run is restarted under a sampler and continues after the last batch")
def _(box):
    daemon = serve(box)
    text = GROUPED[0]
    expected = expected_batches(offline(box, text), text, 4)
    reader = daemon.reader("t", sampler=text, pipeline="w", batch=4, on_restart="wait", slots=2, delay_ms=100)
    reader.wait_lines(8)
    daemon.kill()
    daemon.start()
    equal(batches_of(reader.good(60)), expected, "batches")


@case("a rank that stands still while another goes on for epochs continues where it stood")
def _(box):
    daemon = serve(box)
    text = "buckets(column=length, edges=4:8:20, sizes=6:4:2)"
    terms = {"sampler": text, "pipeline": "w", "batch": 4, "world": 2, "job": "apart", "epochs": 6, "slots": 2}
    slow = daemon.reader("t", rank=0, delay_ms=1, **terms)
    slow.wait_lines(8)
    slow.process.send_signal(signal.SIGSTOP)
    fast = daemon.read("t", rank=1, **terms)
    slow.process.send_signal(signal.SIGCONT)
    for rank, lines in enumerate((slow.good(60), fast)):
        expected = [batch for epoch in range(6)
                    for batch in expected_batches(offline(box, text, world=2, rank=rank, epoch=epoch), text, 4)]
        equal(batches_of(lines), expected, f"rank {rank}")


@case("what cannot be an order is refused with a sentence and its numbers")
def _(box):
    daemon = serve(box, memory_limit="64MiB")
    for text, words in (
            ("weighted(column=nothing)", ("nothing", "w", "label")),
            ("wheighted(column=w)", ("column 1", "wheighted", "weighted")),
            ("weighted(column=text)", ("text",)),
            ("weighted(column=w, n=0)", ("n", "1")),
            ("stratified(column=label) weighted(column=w)", ("first",)),
            ("buckets(column=length, edges=4:8, tokens=40) stratified(column=label)", ("cannot follow",)),
            ("buckets(column=length, edges=4:8, tokens=40)", ("length", "last edge is 8")),
            ("max_tokens(column=length, tokens=5)", ("5",)),
            ("random(replacement=true, n=1000000000)", ("memory",)),
            ("subset(/nowhere/indices.txt)", ("/nowhere/indices.txt",)),
    ):
        daemon.refused("t", *words, sampler=text, pipeline="w")
    bad = box.path("bad.txt")
    write(bad, b"".join(b"%d\n" % (i - 3) for i in range(N)))
    daemon.refused("t", "-3", "0 or more", sampler="weighted(column=v)", pipeline="w", column=f"v={bad}")
    write(bad, b"1\n2\n")
    daemon.refused("t", "2 values", f"{N} samples", sampler="weighted(column=v)", pipeline="w", column=f"v={bad}")
    write(bad, b"1\ntwo\n")
    daemon.refused("t", "line 2", "two", sampler="weighted(column=v)", pipeline="w", column=f"v={bad}")
    write(bad, b"0\n" * N)
    daemon.refused("t", "0", sampler="weighted(column=v)", pipeline="w", column=f"v={bad}")


@case("ranks whose samplers or columns differ do not meet in one job, and the message has both")
def _(box):
    daemon = serve(box)
    write(box.path("one.txt"), b"1\n" * N)
    write(box.path("two.txt"), b"2\n" * N)
    terms = {"world": 2, "job": "j", "pipeline": "w", "delay_ms": 500, "limit": 4}
    reader = daemon.reader("t", rank=0, sampler="weighted(column=v)", column=f"v={box.path('one.txt')}", **terms)
    within(20, lambda: daemon.objects("jobs"), "a job")
    message = daemon.refused("t", "columns", rank=1, sampler="weighted(column=v)", column=f"v={box.path('two.txt')}", **terms)
    contains(message, "digest")
    daemon.refused("t", "sampler", "random", rank=1, sampler="random(n=5)", **terms)
    reader.finish()


main()
