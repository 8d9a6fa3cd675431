#!/usr/bin/env python3
"""Archives with something beside them: lists of shards as wids-index writes them, which may be the path of a dataset, and
indices that DALI reads, which change nothing."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, contains, equal, indices, main, within, write
from tars import archive, check_raw, samples_in


def shard(box, number, n=5):
    """Archive `number` with n samples; returns its entry in a list."""
    path = archive(box.path("d", f"s-{number}.tar"), [(f"{number}{i}.{end}", f"{end} {number} {i}".encode())
                                                      for i in range(n) for end in ("txt", "cls")])
    return {"url": os.path.basename(path), "nsamples": n, "filesize": os.stat(path).st_size, "md5sum": "0" * 32}


def write_list(box, file, **members):
    """As wids-index does."""
    text = {"__kind__": "wids-shard-index-v1", "wids_version": 1, **members}
    write(box.path("d", file), json.dumps(text, indent=2).encode())
    return {"path": box.path("d", file), "format": "auto"}


@case("a list of shards is a dataset: its archives in its sequence, also of several parts, wherever the folder says they are")
def _(box):
    entries = [shard(box, i, n=3 + i) for i in range(4)]
    os.makedirs(box.path("d", "part"))
    os.rename(box.path("d", "s-3.tar"), box.path("d", "part", "s-3.tar"))
    turned = [entries[2], entries[0]]
    few = [{"url": entry["url"]} for entry in turned]
    whole = [{**entries[1], "url": box.path("d", "s-1.tar")}, {**entries[0], "url": "file:" + box.path("d", "s-0.tar")}]
    parts = [{"name": "a", "weight": 2, "shardlist": [entries[1]]}, {"base": "./part", "shardlist": [entries[3]]}]
    datasets = {"turned": (write_list(box, "turned.json", shardlist=turned, name="x", base="https://example.org/"), (2, 0)),
                "few": (write_list(box, "few.json", shardlist=few), (2, 0)),
                "whole": (write_list(box, "whole.json", shardlist=whole), (1, 0)),
                "parts": (write_list(box, "parts.json", shardlist=turned, datasets=parts), (2, 0, 1, 3)),
                "only_parts": (write_list(box, "only.json", datasets=parts), (1, 3))}
    daemon = box.daemon({name: dataset for name, (dataset, _) in datasets.items()})
    for name, (_, numbers) in datasets.items():
        paths = [box.path("d", "part" if i == 3 else "", f"s-{i}.tar") for i in numbers]
        check_raw(daemon, name, samples_in(paths), ["txt", "cls"])
    daemon.stop()
    daemon.start()
    within(30, lambda: all(row["state"] == "ready" for row in daemon.objects("datasets")), "all are ready again")
    equal("indexed again" in daemon.log(), False, "an index is made at each start")
    time.sleep(0.01)
    write_list(box, "turned.json", shardlist=entries[:2])
    within(30, lambda: len(daemon.read("turned", pipeline="txt")) == 7, "the new list is noticed")


@case("a list that does not fit its archives, leads elsewhere or is damaged is refused with what to do")
def _(box):
    good = shard(box, 0)
    wrong = {
        "more": ({"shardlist": [{**good, "nsamples": 6}]}, ("s-0.tar: has 5 samples, and more.json says 6", "wids-index")),
        "size": ({"shardlist": [{**good, "filesize": 7}]}, ("bytes, and size.json says 7",)),
        "away": ({"shardlist": [{**good, "url": "https://example.org/s-0.tar"}]}, ("is not a file: stage", "--nodir")),
        "up": ({"shardlist": [{**good, "url": "../d/s-0.tar"}]}, ("leads out of the list's folder",)),
        "else": ({"shardlist": [{**good, "url": "/elsewhere/s-0.tar"}]}, ("is not in the list's folder",)),
        "twice": ({"shardlist": [good, {**good, "url": "./s-0.tar"}]}, ("s-0.tar is in it twice",)),
        "none": ({"shardlist": []}, ("there is no archive in it",)),
        "gone": ({"shardlist": [{**good, "url": "s-9.tar"}]}, ("s-9.tar", "No such file")),
        "negative": ({"shardlist": [{**good, "nsamples": -1}]}, ("is -1; expected",)),
        "words": ({"shardlist": [{**good, "nsamples": "five"}]}, ("nsamples", "not a whole number")),
        "entry": ({"shardlist": ["s-0.tar"]}, ("an entry of \"shardlist\" is not an object",)),
        "url": ({"shardlist": [{"nsamples": 5}]}, ("url", "not a text")),
        "version": ({"wids_version": 2, "shardlist": [good]}, ("\"wids_version\" is 2",)),
        "source": ({"datasets": [{"source_url": "other.json"}]}, ("source_url", "write its archives into this one")),
        "base": ({"datasets": [{"base": "s3://x", "shardlist": [good]}]}, ("base", "stage the dataset")),
    }
    datasets = {name: write_list(box, f"{name}.json", **members) for name, (members, _) in wrong.items()}
    write(box.path("d", "cut.json"), open(box.path("d", "more.json"), "rb").read()[:-9])
    datasets["cut"] = {"path": box.path("d", "cut.json"), "format": "auto"}
    daemon = box.daemon(datasets)
    for name, (_, words) in wrong.items():
        daemon.refused(name, *words, *([f"{name}.json"] if name != "gone" else []))
    daemon.refused("cut", "cut.json", "byte")


@case("what DALI and wids leave beside archives and records neither becomes samples nor confuses the format")
def _(box):
    entries = [shard(box, i) for i in range(2)]
    for entry in entries:
        write(box.path("d", entry["url"].replace(".tar", ".idx")), b"v1.2 5\ntxt 1024 7 00.txt cls 2048 7 00.cls\n" * 5)
    write_list(box, "index.json", shardlist=entries)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors", "tfrecord", "tokens",
                           "tokens.tfrecord-00000-of-00002"), "rb") as file:
        write(box.path("r", "a.tfrecord"), file.read())
    write(box.path("r", "a.tfrecord.idx"), b"0 120\n120 130\n")
    write(box.path("r", "a.idx"), b"0 120\n120 130\n")
    daemon = box.daemon({name: {"path": box.path(name), "format": "auto"} for name in ("d", "r")})
    check_raw(daemon, "d", samples_in(box.path("d", entry["url"]) for entry in entries), ["txt", "cls"])
    found = {dataset["name"]: dataset for dataset in daemon.objects("datasets")}
    equal(len(daemon.read("r", pipeline="raw")) > 0, True, "records")
    contains(daemon.dlctl("datasets", "r").stdout, "tfrecord")
    equal(found["d"]["n_samples"], 10, "samples")
    equal(indices(daemon.read("d", pipeline="txt", shuffle=False)), list(range(10)), "order")


main()
