#!/usr/bin/env python3
"""Chunks of LitData whose items are compressed within, in batches or one by one, which `prepare = "convert"` decompresses: what
is damaged is refused with its name, and what is no such chunk stays as it is. That the samples are the right ones is said in
test_convert.py."""
import json
import os
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, Skip, case, contains, equal, main, write
from staging import Staging, files_of
from vector_sets import check_set, expected_in

VECTORS = os.path.join(ROOT, "tests", "vectors", "litdata")
REFUSED, TOO_MUCH = 78, 76
CHUNK = "chunk-0-1.bin"
PYTHON = {"DATALOADERD_PYTHON": sys.executable}


def zstd(data, *terms):
    """A frame that says how long it is."""
    if not shutil.which("zstd"):
        raise Skip("there is no zstd")
    return subprocess.run(["zstd", "-qc", f"--stream-size={len(data)}", *terms], input=data, stdout=subprocess.PIPE, check=True).stdout


def content_of(*names):
    with open(os.path.join(VECTORS, *names), "rb") as file:
        return file.read()


def items_of(chunk):
    n, = struct.unpack_from("<I", chunk)
    ends = struct.unpack_from(f"<{n + 1}I", chunk, 4)
    return [chunk[begin:end] for begin, end in zip(ends, ends[1:])]


def chunk_of(items, n=None):
    ends = [4 * (len(items) + 2)]
    for item in items:
        ends.append(ends[-1] + len(item))
    return struct.pack(f"<I{len(ends)}I", len(items) if n is None else n, *ends) + b"".join(items)


def batches_of(items, batches, magic=b"LDFZ01\0\0", version=1, flags=0, **said):
    """A chunk of batches: (first item, number of items, frame). What is said of the batch that `at` numbers may be something
    else: first, n_items, offset, n_packed, n_bytes; and the ends of items."""
    ends = [0]
    for item in items:
        ends.append(ends[-1] + len(item))
    place = 24 + 4 * len(ends) + 24 * len(batches)
    table, frames = b"", b""
    for i, (first, n_items, frame) in enumerate(batches):
        row = {"first": first, "n_items": n_items, "offset": place + len(frames), "n_packed": len(frame),
               "n_bytes": ends[first + n_items] - ends[first]}
        if i == said.get("at"):
            row.update((name, value) for name, value in said.items() if name in row)
        table += struct.pack("<IIQII", *row.values())
        frames += frame
    ends = said.get("ends", ends)
    return magic + struct.pack("<HHIII", version, flags, len(items), 2, len(batches)) + struct.pack(f"<{len(ends)}I", *ends) + table + frames


def stage(box, name, chunk, like="records-batch", status=REFUSED, **settings):
    """Stages the vectors with another second chunk."""
    folder = shutil.copytree(os.path.join(VECTORS, like), box.path("origin", name))
    write(os.path.join(folder, CHUNK), chunk)
    staging = Staging(box, "file://" + folder, name=name, format="auto", prepare="convert", **settings)
    return staging, staging.run(status=status, environment=PYTHON)


def serve(box, staging, name):
    return box.daemon({"set": staging.dataset()}, name=f"of-{name}")


@case("a chunk of any batches gives the plain one byte by byte; so do items of any effort, with checksums")
def _(box):
    plain = content_of("records", CHUNK)
    items = items_of(plain)
    chunks = {"writer": content_of("records-batch", CHUNK),
              "single": batches_of(items, [(i, 1, zstd(item, "--no-check")) for i, item in enumerate(items)]),
              "whole": batches_of(items, [(0, 3, zstd(b"".join(items), "-19", "--check"))]),
              "items": chunk_of([zstd(item, "--check") for item in items]),
              "plain": plain}
    for name, chunk in chunks.items():
        staging, _ = stage(box, name, chunk, status=0)
        equal(content_of(staging.path, CHUNK) == plain, True, f"the chunk of {name}")
    check_set(serve(box, staging, "plain"), "set", expected_in(os.path.join(VECTORS, "records.jsonl")))


@case("frames of several blocks, and those that say with 1, 2 or 4 bytes how long they are")
def _(box):
    sizes = (0, 3, 251, 252, 296, 65_787, 65_788, 700_000, 400_000)
    items = [struct.pack("<I", n) + (os.urandom(n) if n == sizes[-1] else bytes([n % 251]) * n) for n in sizes]
    index = {"chunks": [{"chunk_bytes": 1, "chunk_size": len(items), "dim": None, "filename": "chunk-0-0.bin"}],
             "config": {"compression": "zstd", "compression_level": "batch", "encryption": None, "data_format": ["bytes"],
                        "data_spec": json.dumps([1, {"type": None, "context": None, "children_spec": []}])}}
    for name, chunk in {"batch": batches_of(items, [(0, 4, zstd(b"".join(items[:4]))), (4, 5, zstd(b"".join(items[4:])))]),
                        "sample": chunk_of([zstd(item) for item in items])}.items():
        write(box.path("origin", name, "chunk-0-0.bin"), chunk)
        write(box.path("origin", name, "index.json"), json.dumps(index).encode())
        staging = Staging(box, "file://" + box.path("origin", name), name=name, format="auto", prepare="convert")
        staging.run(environment=PYTHON)
        equal(content_of(staging.path, "chunk-0-0.bin") == chunk_of(items), True, f"the chunk of {name}")
        lines = serve(box, staging, name).read("set", shuffle=False, pipeline="data: raw", batch=1)
        equal([line["fields"]["data"]["shape"] for line in lines], [[n] for n in sizes], "bytes of the samples")


@case("a chunk that is cut, whose lengths lie or which zstd cannot decompress ends the staging with its name and what is wrong")
def _(box):
    items = items_of(content_of("records", CHUNK))
    first, second = zstd(b"".join(items[:2])), zstd(items[2])
    batches = [(0, 2, first), (2, 1, second)]
    good, n_second = batches_of(items, batches), len(items[2])
    ends = [0, len(items[0]), len(items[0] + items[1]), len(b"".join(items))]
    lying = first[:5] + struct.pack("<H", struct.unpack_from("<H", first, 5)[0] + 1) + first[7:]
    spoiled = bytearray(second)
    spoiled[len(second) // 2] ^= 0xff
    unsaid = subprocess.run(["zstd", "-qc"], input=items[0], stdout=subprocess.PIPE, check=True).stdout
    more = [(0, 2, lying), (2, 1, second)]
    huge = struct.pack("<IBI", 0xFD2FB528, 0xa0, 2 ** 32 - 1) + struct.pack("<I", (0xfffff << 3 | 3))[:3] + b"x"
    cases = {
        "table": (good[:50], "it is cut at byte 50"),
        "cut": (good[:-1], "batch 1 is not a frame of zstd within the file"),
        "version": (batches_of(items, batches, version=2), "compressed as version 2 with flags 0"),
        "flags": (batches_of(items, batches, flags=4), "compressed as version 1 with flags 4"),
        "after": (good + b"x", f"end at byte {len(good)} of {len(good) + 1}"),
        "gap": (batches_of(items, batches, at=1, first=1), "batch 1 does not follow"),
        "none": (batches_of(items, batches, at=0, n_items=0), "batch 0 does not follow"),
        "many": (batches_of(items, batches, at=1, n_items=2 ** 31), "batch 1 does not follow"),
        "far": (batches_of(items, batches, at=1, offset=2 ** 62), "batch 1 does not follow"),
        "short": (batches_of(items, batches, at=1, n_packed=len(second) - 1), "batch 1 does not end where the table says"),
        "long": (batches_of(items, batches, at=0, n_packed=len(first) + 1), "batch 0 does not end where the table says"),
        "size": (batches_of(items, batches, at=1, n_bytes=n_second + 1), f"batch 1 is said to have {n_second + 1} bytes"),
        "both": (batches_of(items, batches, at=1, n_bytes=n_second + 1, ends=ends[:3] + [ends[3] + 1]),
                 f"batch 1 has {n_second} bytes, and is said to have {n_second + 1}"),
        "back": (batches_of(items, batches, ends=[0, ends[2] + 1, *ends[2:]]), "does not say where item 1 lies"),
        "begin": (batches_of(items, batches, ends=[1, *ends[1:]]), "batch 0 is said to have"),
        "few": (batches_of(items, batches[:1]), "its batches have 2 of 3 items"),
        "lying": (batches_of(items, more, at=0, n_bytes=ends[2] + 1, ends=[0, ends[1], ends[2] + 1, ends[3] + 1]), "zstd ended with status 1"),
        "spoiled": (batches_of(items, [batches[0], (2, 1, bytes(spoiled))]), "zstd ended with status 1"),
        "other": (batches_of(items, [batches[0], (2, 1, b"x" + second[1:])]), "batch 1 is not a frame of zstd"),
        "unsaid": (chunk_of([unsaid, second]), "item 0 does not say how long it is"),
        "item": (chunk_of([zstd(item) for item in items])[:-5], "item 2 is not a frame of zstd within the file"),
        "items": (chunk_of([zstd(items[0]), items[1]]), "item 1 is not a frame of zstd within the file"),
        "rest": (chunk_of([zstd(item) for item in items]) + b"x", "its last item ends at byte"),
        "bombs": (chunk_of([huge, huge]), "longer than 4 GiB"),
    }
    for name, (chunk, words) in cases.items():
        _, done = stage(box, name, chunk)
        contains(done.text, f"{CHUNK}: its command ended with status 1: not converted: ", words)
    _, done = stage(box, "head", good[:7], status=None)  # like no chunk at all: it is copied
    equal(done.result, "failed", "staging what is no chunk")
    contains(done.text, CHUNK, "has 7 bytes, too few for the 3 items")


@case("what a chunk becomes is limited, and it is told that zstd is missing")
def _(box):
    items = [bytes(20_000_000)] * 2
    _, done = stage(box, "limit", chunk_of([zstd(item) for item in items]), status=TOO_MUCH, unpack_limit="30000000")
    contains(done.text, f"{CHUNK}: its command writes more than 30000000 bytes; if that is right, raise unpack_limit")
    where = box.path("programs")
    os.makedirs(where)
    os.symlink(shutil.which("cat"), os.path.join(where, "cat"))
    folder = shutil.copytree(os.path.join(VECTORS, "records-batch"), box.path("without"))
    staging = Staging(box, "file://" + folder, name="without", format="auto", prepare="convert")
    done = staging.run(status=REFUSED, environment={"PATH": where, **PYTHON})
    contains(done.text, "not converted: the program zstd is not installed")


@case("chunks that are not converted are refused with their name and the advice; so are those that were cut since, and other levels")
def _(box):
    def changed(name, like, chunk=None, **config):
        folder = shutil.copytree(os.path.join(VECTORS, like), box.path("d", name))
        with open(os.path.join(folder, "index.json"), encoding="utf-8") as file:
            index = json.load(file)
        index["config"].update(config)
        write(os.path.join(folder, "index.json"), json.dumps(index).encode())
        if chunk is not None:
            write(os.path.join(folder, CHUNK), chunk)
        return {"path": folder, "format": "litdata"}

    plain = content_of("records", CHUNK)
    good = changed("good", "records", compression="zstd", compression_level="batch")
    cases = {"batch": (changed("batch", "records-batch"), "chunk-0-0.bin: batches of its items have compression", 'prepare = "convert"'),
             "sample": (changed("sample", "records-sample"), "chunk-0-0.bin: its items have compression", 'prepare = "convert"'),
             "level": (changed("level", "records-batch", compression_level="other"), '"compression_level" that is not known'),
             "number": (changed("number", "records-batch", compression_level=3), '"compression_level" that is not known')}
    daemon = box.daemon({**{name: dataset for name, (dataset, *_) in cases.items()}, "good": good})
    for name, (_, *words) in cases.items():
        daemon.refused(name, *words)
    check_set(daemon, "good", expected_in(os.path.join(VECTORS, "records.jsonl")))
    daemon.stop()
    for name, chunk, words in (("cut", plain[:-1], "lies outside of the shard"), ("tiny", plain[:10], "too few for the 3 items"),
                               ("packed", content_of("records-batch", CHUNK), "batches of its items"), ("long", plain + b"x", "bytes after its last item")):
        write(os.path.join(good["path"], CHUNK), chunk)
        box.daemon({"good": good}, name=name).refused("good", CHUNK, words)


@case("a plain folder of LitData is staged as it is; other .bin files beside an index.json, and chunks without one, are left alone")
def _(box):
    for like in ("records", "rows", "tokens"):
        folder = shutil.copytree(os.path.join(VECTORS, like), box.path("plain", like))
        staging = Staging(box, "file://" + folder, name=like, format="auto", prepare="convert")
        staging.run(environment=PYTHON)
        equal({name: content_of(like, name) for name in os.listdir(folder)}, {name: content_of(staging.path, name) for name in files_of(staging.path)}, "files")
        check_set(serve(box, staging, like), "set", expected_in(os.path.join(VECTORS, f"{like}.jsonl")))
    packed = content_of("records-batch", CHUNK)
    folder = shutil.copytree(os.path.join(VECTORS, "records-batch"), box.path("mixed"))
    others = ("chunk-7.bin", "corpus.bin", "a/chunk-0-0.bin", "xchunk-0-0.bin", "chunk-0-0.bin.txt")
    for name in others:
        write(os.path.join(folder, name), packed)
    write(os.path.join(folder, "chunk-7.idx"), b"MMIDIDX\0\0")
    staging = Staging(box, "file://" + folder, name="mixed", format="litdata", prepare="convert")
    staging.run(environment=PYTHON)
    for name in others:
        equal(content_of(staging.path, name) == packed, True, f"{name} is as it was")
    check_set(serve(box, staging, "mixed"), "set", expected_in(os.path.join(VECTORS, "records.jsonl")))


main()
