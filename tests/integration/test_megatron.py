#!/usr/bin/env python3
"""Token files that Megatron-core wrote: its own GPT samples token for token, alone, in parts and in blends; from memory, from the disk
and over a network file system; what happens when a file is cut meanwhile; and what is refused."""
import glob
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from failing_fs import FailingFs
from harness import ROOT, case, contains, equal, expected_order, indices, main, within
from token_files import Tokens, blend_of, dataset_of, gpt_samples, lines_of_gpt, samples_of, told, write_tokens

VECTORS = os.path.join(ROOT, "tests", "vectors", "megatron")


def check(lines, samples, **terms):
    equal(indices(lines), expected_order(len(samples), **terms), "order")
    for line in lines:
        equal(line["fields"], {"tokens": told(samples[line["index"]])}, f"sample {line['index']}")


def n_bytes_read(daemon):
    return int({row["name"]: row["value"] for row in daemon.status()["counters"]}["n_bytes_read"])


def least_read(daemon, name):
    """The bytes that are read for an epoch of what is in memory. The kernel may drop files at any time, so it is tried again."""
    least = None
    for _ in range(5):
        for file in glob.glob(os.path.join(VECTORS, "*.bin")):
            with open(file, "rb") as tokens:
                tokens.read()
        before = n_bytes_read(daemon)
        daemon.read(name, batch=50)
        least = n_bytes_read(daemon) - before
        if least == 0:
            break
    return least


@case("samples of Megatron's own datasets, token for token: parts, epochs, blends with and without weights")
def _(box):
    lines = lines_of_gpt(VECTORS)
    daemon = box.daemon({f"d{i}": dataset_of(line, VECTORS) for i, line in enumerate(lines)})
    for i, line in enumerate(lines):
        check(daemon.read(f"d{i}", batch=50, shuffle=False), samples_of(line, VECTORS), shuffle=False)
    equal(least_read(daemon, "d0"), 0, "bytes that were read though all tokens are in memory")


@case("torch's order over them, for one rank and for three")
def _(box):
    line = lines_of_gpt(VECTORS)[12]
    samples = samples_of(line, VECTORS)
    daemon = box.daemon({"d": dataset_of(line, VECTORS)})
    check(daemon.read("d", batch=16, seed=3, epochs=1), samples, seed=3)
    for rank, lines in enumerate(daemon.read_ranks("d", 3, batch=7, seed=5)):
        check(lines, samples, seed=5, world=3, rank=rank)


@case("the path is a prefix, one of its files or their folder; a blend names files below it or anywhere")
def _(box):
    sequences = [[1, 2, 3], [4, 5], [6, 7, 8, 9], [], [10, 11]]
    prefix = write_tokens(box.path("d", "x"), sequences)
    other = write_tokens(box.path("e", "y"), [[100 * token for token in sequence] for sequence in sequences], code="i")
    keys = {"format": "megatron", "sequence_length": "3"}
    paths = {"prefix": prefix, "idx": prefix + ".idx", "bin": prefix + ".bin", "folder": box.path("d")}
    daemon = box.daemon({**{name: {"path": path, **keys} for name, path in paths.items()},
                         "blend": {"path": box.path("d"), "blend": f"2 x 1 {other}.idx", "num_samples": "9", **keys}})
    samples = gpt_samples(Tokens(prefix), "1", "train", 3, None, 1234)
    for name in paths:
        check(daemon.read(name, batch=2, shuffle=False), samples, shuffle=False)
    check(daemon.read("blend", batch=2, shuffle=False), blend_of([("d/x", 2), ("e/y", 1)], box.path(), length=3, wanted=9),
          shuffle=False)
    equal({row["name"]: row["n_samples"] for row in daemon.objects("datasets")}["blend"], 9, "samples of the blend")
    digests = {row["name"]: row["digest"] for row in daemon.objects("datasets")}
    equal(len({digests[name] for name in paths}), 1, "digests of the same samples")
    assert digests["blend"] != digests["prefix"]


@case("without sequence_length a sample is a document, of several sequences too; with modes and of fairseq's file a sequence")
def _(box):
    names = ("small", "wide", "sentences", "pictures", "fairseq")
    daemon = box.daemon({name: {"path": os.path.join(VECTORS, name), "format": "megatron"} for name in names})
    for name in names:
        tokens = Tokens(os.path.join(VECTORS, name))
        rows = tokens.sequences if name in ("pictures", "fairseq") else tokens.documents
        lines = daemon.read(name, batch=7, seed=2)
        equal(indices(lines), expected_order(len(rows), seed=2), f"order of {name}")
        for line in lines:
            i = line["index"]
            fields = {"tokens": told(rows[i], tokens.code, tokens.dtype)}
            if tokens.modes:
                fields["mode"] = {"dtype": "int8", "shape": [], "value": tokens.modes[i]}
            equal(line["fields"], fields, f"sample {i} of {name}")
    equal([line["fields"]["tokens"]["dtype"] for line in daemon.read("small", batch=3, limit=1, pipeline="tokens: to(int64)")],
          ["int64"] * 3, "dtype after to(int64)")
    write_tokens(box.path("d", "apart"), [[1, 2], [3], [4, 5]], documents=[0, 2, 3],
                 change=lambda idx: idx[:46] + struct.pack("<qqq", 0, 8, 4) + idx[70:])
    other = box.daemon({"d": {"path": box.path("d", "apart"), "format": "megatron"},
                        "e": {"path": box.path("d", "apart"), "format": "megatron", "part": "train"}})
    other.refused("d", "document 0: its sequences 0 and 1 do not lie side by side")
    other.refused("e", "part: is about GPT samples; set sequence_length")


@case("tokens in the type that the pipeline asks for; one that does not fit is damage, and names the number")
def _(box):
    prefix = write_tokens(box.path("d", "x"), [list(range(40000, 40100)), [1, 2, 3] * 100])
    dataset = {"path": prefix, "format": "megatron", "sequence_length": "50"}
    samples = gpt_samples(Tokens(prefix), "1", "train", 50, None, 1234)
    daemon = box.daemon({"d": dataset})
    for dtype, code in (("uint16", "H"), ("int32", "i")):
        for line in daemon.read("d", batch=3, shuffle=False, pipeline=f"tokens: to({dtype})"):
            equal(line["fields"], {"tokens": told(samples[line["index"]], code, dtype)}, f"as {dtype}")
    fits = [i for i, sample in enumerate(samples) if max(sample) < 128]
    lines = daemon.read("d", batch=3, shuffle=False, pipeline="tokens: to(int8)", on_error="skip")
    equal(indices(lines), fits, "samples that fit int8")
    contains(daemon.log(), "does not fit int8")
    daemon.refused("d", "put together from several places", pipeline="tokens: raw")


def large(box, n=4000, seed=1):
    """Some MB of tokens, of sequences of any length."""
    dice = random.Random(seed)
    sequences = [[dice.randrange(65536) for _ in range(dice.randrange(1200))] for _ in range(n)]
    return write_tokens(box.path("d", "x"), sequences)


def forget(path):
    """Takes a file out of the page cache."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


@case("what is not in memory is read piece by piece, by io_uring and by threads")
def _(box):
    prefix = large(box, 1000)
    samples = gpt_samples(Tokens(prefix), "1", "train", 1000, None, 1234)
    dataset = {"path": prefix, "format": "megatron", "sequence_length": "1000"}
    for backend in ("auto", "threads"):
        daemon = box.daemon({"d": dataset}, name=f"with {backend}", reader=backend)
        within(10, lambda opened=daemon: opened.objects("datasets")[0]["state"] == "ready", "it is opened, which reads parts")
        forget(prefix + ".bin")
        check(daemon.read("d", batch=10, seed=1), samples, seed=1)
        if n_bytes_read(daemon) == 0:
            raise AssertionError("nothing was read, though the file was not in memory")
        daemon.stop()


@case("over a file system that may hang nothing is mapped; an error of one read is an outage, and then it goes on")
def _(box):
    prefix = large(box, 300)
    samples = gpt_samples(Tokens(prefix), "1", "train", 500, None, 1234)
    disk = FailingFs(box, box.path("d"))
    daemon = box.daemon({"d": {"path": os.path.join(disk.path, "x"), "format": "megatron", "sequence_length": "500"}})
    daemon.wait_log("d: opened in", 60)  # or its opening would meet the error
    disk.fail("*.bin", "ENOTCONN", ops="read")
    reader = daemon.reader("d", batch=10, seed=2)
    within(30, lambda: "d is on hold" in daemon.log(), "the job is on hold")
    disk.clear()
    check(reader.good(120), samples, seed=2)
    need = sum(len(sample) for sample in samples) * 2
    if n_bytes_read(daemon) < need:
        raise AssertionError(f"{n_bytes_read(daemon)} of {need} bytes were read")


@case("a file that is cut while it is served: no token is wrong, damage is named, and the next job is refused")
def _(box):
    prefix = large(box)
    tokens = Tokens(prefix)
    samples = gpt_samples(tokens, "1", "train", 1000, None, 1234)
    daemon = box.daemon({"d": {"path": prefix, "format": "megatron", "sequence_length": "1000"}})
    reader = daemon.reader("d", batch=10, shuffle=False, epochs=2, slots=2, delay_ms=10, on_error="skip")
    reader.wait_lines(100)
    size = os.path.getsize(prefix + ".bin")
    os.truncate(prefix + ".bin", size - 30000)
    status, lines = reader.finish(120)
    equal(status, 0, f"exit status: {reader.errors()}")
    for line in lines:
        equal(line["fields"], {"tokens": told(samples[line["index"]])}, f"sample {line['index']}")
    last = [line["index"] for line in lines if line["epoch"] == 1]
    if not len(samples) - 60 < len(last) < len(samples):
        raise AssertionError(f"{len(last)} of {len(samples)} samples are left")
    contains(daemon.log(), "x.bin", "were expected, the file ends at")
    daemon.refused("d", "x.idx: sequence ", "the .bin file has", "was cut")


@case("what cannot be served is refused, with the file, the sequence and what to do")
def _(box):
    def spoil(at, form, value):
        return lambda idx: idx[:at] + struct.pack(form, value) + idx[at + struct.calcsize(form):]

    sequences = [[1, 2, 3], [4, 5], [6, 7, 8, 9]]
    gpt = {"sequence_length": "3"}
    refused = {
        "overflow": (spoil(34 + 12 + 8, "<q", -4), gpt, ["sequence 1 has 2 tokens", "write it again"]),
        "outside": (spoil(34 + 8, "<i", 5), gpt, ["sequence 2 has 5 tokens of 2 bytes from byte 10 on", "18 bytes"]),
        "negative": (spoil(34, "<i", -1), gpt, ["sequence 0 has a negative length"]),
        "code": (spoil(17, "<B", 11), gpt, ["unknown dtype code 11"]),
        "cut": (lambda idx: idx[:-3], gpt, ["it was cut"]),
        "magic": (lambda idx: b"TNTIDX\0\0" + idx[8:], gpt, ["does not begin as an index of tokens"]),
        "float": (spoil(17, "<B", 8), {"sequence_length": "20"}, ["has 9 tokens", "a sample takes 21"]),
        "part": (None, {"part": "test", **gpt}, ["the part test", "has none of its 3 sequences"]),
        "splits": (None, {"splits": "9,x", **gpt}, ["is not up to three weights"]),
        "weights": (None, {"blend": "0.5 weights 0.5 weights", **gpt}, ["num_samples must say"]),
        "zero": (None, {"blend": "0 zero 0.5 zero", "num_samples": "5", **gpt}, ["blend: 0, the weight of zero"]),
        "absent": (None, {"blend": "absent nowhere absent", **gpt}, ["nowhere.idx does not exist"]),
        "memory": (None, {"num_samples": "400000000", **gpt}, ["memory_limit"]),
    }
    datasets = {}
    for name, (change, keys, _) in refused.items():
        write_tokens(box.path("d", name), sequences, change=change)
        datasets[name] = {"path": box.path("d") if "blend" in keys else box.path("d", name), "format": "megatron", **keys}
    datasets["several"] = {"path": box.path("d"), "format": "megatron", **gpt}
    daemon = box.daemon(datasets, memory_limit="1GiB")
    for name, (_, _, words) in refused.items():
        daemon.refused(name, *words)
    daemon.refused("several", "has several token files", "blend =")


main()
