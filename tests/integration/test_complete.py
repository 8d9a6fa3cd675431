#!/usr/bin/env python3
"""Files whose names say how many there are: a dataset of which some are missing is refused with their names, in each format
of several files; allow_missing serves it as it is."""
import glob
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import DAEMON, ROOT, case, contains, equal, indices, main, write
from tars import archive
from tfrecords import framed

VECTORS = os.path.join(ROOT, "tests", "vectors")


def numbered(folder, stem, ending, make, numbers, total):
    for number in numbers:
        path = os.path.join(folder, f"{stem}-{number:05d}-of-{total:05d}{ending}")
        os.makedirs(folder, exist_ok=True)
        make(path, number)
    return folder


def jsonl(path, number):
    write(path, b'{"x": %d}\n' % number)


def csv(path, number):
    write(path, b"x\n%d\n" % number)


def text(path, number):
    write(path, b"%d\n" % number)


def tar(path, number):
    archive(path, [(f"{number}.cls", b"%d" % number)])


def tfrecord(path, number):
    write(path, framed(b"%d" % number))


def copied(name):
    def make(path, number):
        shutil.copy(sorted(glob.glob(os.path.join(VECTORS, name)))[0], path)
    return make


KINDS = {"jsonl": (".jsonl", jsonl, "jsonl"), "csv": (".csv", csv, "csv"), "text": (".txt", text, "text"),
         "tar": (".tar", tar, "webdataset"), "tfrecord": ("", tfrecord, "tfrecord"),
         "parquet": (".parquet", copied("parquet/hub/data/train-*.parquet"), "parquet"),
         "arrow": (".arrow", copied("arrow/*/data-00000-of-*.arrow"), "arrow")}


@case("a folder, or a pattern, of which a numbered file is missing is refused with its name, in each format")
def _(box):
    datasets = {}
    for kind, (ending, make, form) in KINDS.items():
        folder = numbered(box.path(kind), "train", ending, make, (0, 2), 3)
        datasets[kind] = {"path": folder, "format": form}
        datasets[f"{kind}-all"] = {"path": os.path.join(folder, "*"), "format": form}
        datasets[f"{kind}-one"] = {"path": os.path.join(folder, f"train-00002-of-00003{ending}"), "format": form}
        datasets[f"{kind}-two"] = {"path": os.path.join(folder, f"train-0000{{2,0}}-of-00003{ending}"), "format": form}
        datasets[f"{kind}-allowed"] = {"path": folder, "format": form, "allow_missing": "yes"}
    daemon = box.daemon(datasets)
    for kind, (ending, make, form) in KINDS.items():
        for name in (kind, f"{kind}-all"):
            daemon.refused(name, f"1 is missing: train-00001-of-00003{ending}", "allow_missing")
        one, two, allowed = (len(daemon.read(f"{kind}-{which}")) for which in ("one", "two", "allowed"))
        equal((two, allowed), (2 * one, 2 * one), f"samples of {kind}")
        numbered(box.path(kind), "train", ending, make, (1,), 3)
        equal(len(daemon.read(kind)), 3 * one, f"{kind}, when the file has come")


@case("sets are told apart, numbers may begin at 1, and names that only look so are files like others")
def _(box):
    make = KINDS["jsonl"][1]
    numbered(box.path("split"), "train", ".jsonl", make, (0, 1), 2)
    numbered(box.path("split"), "test", ".jsonl", make, (0, 3), 5)
    numbered(box.path("one"), "model", ".jsonl", make, (1, 2, 3), 3)
    numbered(box.path("gap"), "model", ".jsonl", make, (1, 3), 3)
    others = {"dot": "c4-train.{:05d}-of-00003.jsonl", "bars": "part_{}_of_3.jsonl", "joined": "x-{}of3.jsonl",
              "capital": "x-{:05d}-OF-00003.jsonl", "twice": "a-1-of-2_{}_of_3.jsonl"}
    for name, spelling in others.items():
        for number in (0, 2):
            write(box.path(name, spelling.format(number)), b'{"x": 1}\n')
    for name in ("state-of-00003.jsonl", "x-7-of-3.jsonl", "-of-.jsonl", "a-1-of-.jsonl", "loaf2of3.jsonl", "a-1_of-3.jsonl",
                 "profile-1-off-3.jsonl"):
        write(box.path("names", name), b'{"x": 1}\n')
    for number in (0, 1, 2):
        write(box.path("hashes", f"t-0000{number}-of-00003-{number}abc.jsonl"), b'{"x": %d}\n' % number)
    write(box.path("fold", "fold_1_of_5.jsonl"), b'{"x": 1}\n')
    for number in (1, 2):
        write(box.path("counted", f"x-{number}of3.jsonl"), b'{"x": 1}\n')
    for number, folder in enumerate(("run_1_of_3", "run-1of3", "c4.00000-of-01024", "x-1-OF-2")):
        write(box.path("folders", folder, "a.jsonl"), b'{"x": %d}\n' % number)
    write(box.path("parts", "train-00001-of-00002", "a.jsonl"), b'{"x": 1}\n')
    daemon = box.daemon({**{name: {"path": box.path(name, "*", "*.jsonl"), "format": "jsonl"} for name in ("folders", "parts")},
                         **{name: {"path": box.path(name), "format": "jsonl"} for name in ("fold", "counted")},
                         "split": {"path": box.path("split", "*.jsonl"), "format": "jsonl"},
                         **{name: {"path": box.path(name), "format": "jsonl"} for name in ("one", "gap", "names", "hashes", *others)}})
    for name, spelling in others.items():
        daemon.refused(name, "1 is missing: " + spelling.format(1))
    daemon.refused("split", "of 5 files", "3 are missing: test-00001-of-00005.jsonl, test-00002-of-00005.jsonl, test-00004-of-00005.jsonl")
    daemon.refused("counted", "1 is missing: x-3of3.jsonl")
    daemon.refused("fold", "4 are missing: fold_2_of_5.jsonl, ", 'allow_missing = "yes"')
    daemon.refused("parts", "1 is missing: train-00000-of-00002")
    daemon.refused("gap", "1 is missing: model-00002-of-00003.jsonl")
    for name, n in (("one", 3), ("names", 7), ("hashes", 3), ("folders", 4)):
        equal(indices(daemon.read(name, shuffle=False)), list(range(n)), name)


@case("a saved index does not hide that allow_missing was taken back; another word than yes and no is refused")
def _(box):
    folder = numbered(box.path("d"), "train", ".jsonl", jsonl, (0, 2), 3)
    terms = {"path": folder, "format": "jsonl", "allow_missing": "yes"}
    daemon = box.daemon({"d": terms})
    equal(len(daemon.read("d")), 2, "samples")
    daemon.stop()
    terms["allow_missing"] = "no"
    daemon.write_config()
    daemon.start()
    daemon.refused("d", "train-00001-of-00003.jsonl")
    terms["allow_missing"] = "maybe"
    daemon.write_config()
    run = subprocess.run([DAEMON, "-c", daemon.config, "--check-config"], capture_output=True, text=True, check=False)
    equal(run.returncode, 78, "exit status")
    contains(run.stderr, "allow_missing", '"maybe" is not allowed', "yes or no")


@case("a shard that a list names and that is missing is refused with its name")
def _(box):
    shutil.copytree(sorted(glob.glob(os.path.join(VECTORS, "mds", "*", "index.json")))[0].rsplit("/", 1)[0], box.path("m"))
    shard = sorted(name for name in os.listdir(box.path("m")) if name.startswith("shard."))[-1]
    os.unlink(box.path("m", shard))
    daemon = box.daemon({"m": {"path": box.path("m"), "format": "mds"}})
    daemon.refused("m", shard)


main()
