#!/usr/bin/env python3
"""Archives that the installed webdataset writes, and a list of them as wids-index makes it: the samples that wids reads, in
its sequence."""
import hashlib
import importlib.metadata
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = "/tmp/_wids_cache"
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from harness import case, equal, main
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


main()
