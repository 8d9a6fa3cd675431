#!/usr/bin/env python3
"""Archives that the installed webdataset writes, and a list of them as wids-index makes it: the samples that wids reads, in
its sequence; a stream of archives that it is still writing, in the order of its own shuffle()."""
import hashlib
import importlib.metadata
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = "/tmp/_wids_cache"
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from harness import TorchGenerator, case, equal, expected_order, indices, main, within, write
from pyclient import need


@case("a list of wids-index: samples and their sequence are those of ShardListDataset")
def _(box):
    need("webdataset")
    need("wids")
    import webdataset
    had_cache = os.path.exists(CACHE)
    import wids
    if not had_cache:
        os.rmdir(CACHE)  # importing it makes it
    folder = box.path("d")
    os.makedirs(folder)
    with webdataset.ShardWriter(os.path.join(folder, "x-%03d.tar"), maxcount=7, verbose=0) as writer:
        for i in range(40):
            writer.write({"__key__": f"{i:04d}", "txt": f"text {i}", "cls": i, "json": {"i": i}})
    print("        " + ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("webdataset", "wids")))
    shards = [f"x-{i:03d}.tar" for i in (4, 0, 5, 2)]
    entries = [{"url": name, "md5sum": wids.wids.compute_file_md5sum(os.path.join(folder, name)),
                "nsamples": wids.wids.compute_num_samples(os.path.join(folder, name)),
                "filesize": os.stat(os.path.join(folder, name)).st_size} for name in shards]
    with open(os.path.join(folder, "index.json"), "w", encoding="utf-8") as file:  # the command would write to /tmp/shard.tar
        json.dump({"__kind__": "wids-shard-index-v1", "wids_version": 1, "shardlist": entries, "name": "x"}, file, indent=2)
    theirs = wids.ShardListDataset(os.path.join(folder, "index.json"), transformations=[], keep=True, cache_dir=box.path("cache"))
    daemon = box.daemon({"d": {"path": os.path.join(folder, "index.json"), "format": "auto"}})
    lines = daemon.read("d", pipeline="txt: raw; cls; __key__", batch=4, shuffle=False)
    equal(len(lines), len(theirs), "samples")
    for i, line in enumerate(lines):
        sample = theirs[i]
        equal(line["fields"]["txt"]["sha256"], hashlib.sha256(sample[".txt"].read()).hexdigest(), f"text of sample {i}")
        equal(line["fields"]["cls"]["value"], int(sample[".cls"].read()), f"class of sample {i}")
        equal(line["fields"]["__key__"]["sha256"], hashlib.sha256(sample["__key__"].encode()).hexdigest(), f"key of sample {i}")


@case("a path of several parts with nested braces: archives and samples in the library's sequence")
def _(box):
    need("webdataset")
    import webdataset
    n = 0
    for folder in ("a/deep", "b"):
        os.makedirs(box.path(folder))
        with webdataset.ShardWriter(os.path.join(box.path(folder), "x-%03d.tar"), maxcount=3, verbose=0) as writer:
            for _ in range(15):
                writer.write({"__key__": f"{n:04d}", "cls": n})
                n += 1
    path = box.path("b/x-00{4,{0..2}}.tar") + "::" + box.path("a/deep/x-{000..004..2}.tar") + "::" + box.path("b/x-003.tar")
    theirs = [(sample["__key__"], int(sample["cls"])) for sample in webdataset.WebDataset(path, shardshuffle=False)]
    daemon = box.daemon({"d": {"path": path, "format": "auto"}})
    lines = daemon.read("d", pipeline="cls; __key__", batch=4, shuffle=False)
    equal([line["fields"]["cls"]["value"] for line in lines], [value for _, value in theirs], "classes")
    equal([line["fields"]["__key__"]["sha256"] for line in lines],
          [hashlib.sha256(key.encode()).hexdigest() for key, _ in theirs], "keys")


class Draws:
    """The draws that the daemon documents, for the library's shuffle()."""

    def __init__(self, seed):
        self.generator = TorchGenerator(seed)

    def randint(self, low, high):
        return low + self.generator.word() % (high - low + 1)


@case("a stream that ShardWriter is writing: its bytes, in the order of webdataset's shuffle() with the same draws")
def _(box):
    need("webdataset")
    import webdataset
    from webdataset.filters import _shuffle
    folder, n, seed, epoch = box.path("s"), 230, 7, 1
    os.makedirs(folder)
    daemon = box.daemon({"s": {"path": folder, "format": "webdataset", "stream": "yes"}})
    readers = [daemon.reader("s", world=2, rank=rank, job="j", batch=3, seed=seed, shuffle_buffer=size, epochs=2,
                             pipeline="txt: raw; cls") for size in (40,) for rank in range(2)]
    # it writes under the final names: the daemon must wait for each end mark
    with webdataset.ShardWriter(os.path.join(folder, "x-%03d.tar"), maxcount=30, verbose=0) as writer:
        for i in range(n):
            writer.write({"__key__": f"{i:04d}", "txt": f"text {i} " * 50, "cls": i})
            if i == 150:
                within(20, lambda: all(len(reader.lines) > 12 for reader in readers), "samples come while it writes")
    write(os.path.join(folder, "_SUCCESS"), b"")
    whole = list(_shuffle(iter(range(n)), bufsize=40, initial=100, rng=Draws(seed + epoch)))
    equal(sorted(whole), list(range(n)), "what the library shuffles")
    for rank, reader in enumerate(readers):
        lines = reader.good()
        equal(indices(lines, epoch), whole[rank::2], f"rank {rank} in the library's order")
        equal(indices(lines, 0), expected_order(n, world=2, rank=rank, seed=seed, order="buffer", shuffle_buffer=40),
              f"rank {rank} of the first epoch")
        for line in lines:
            text = (f"text {line['index']} " * 50).encode()
            equal((line["fields"]["cls"]["value"], line["fields"]["txt"]["sha256"]),
                  (line["index"], hashlib.sha256(text).hexdigest()), "sample")


main(tells_samples=True)
