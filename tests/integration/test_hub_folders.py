#!/usr/bin/env python3
"""Folders as the Hugging Face hub has them: the files of a format lie below the path, in data/, in a folder for each split or for
each configuration. They open by the path of that folder, in each format alike, and streams of them do."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, case, equal, main, within, write
from tars import archive
from tfrecords import example, ints, record_file


def vector(*path):
    with open(os.path.join(ROOT, "tests", "vectors", *path), "rb") as file:
        return file.read()


def tar(path, number):
    archive(path, [(f"{number}.cls", b"%d" % number)])


def made_of(make):
    return lambda path, number: write(path, make(number))


# The ending, what makes a file, and how many samples are in one
KINDS = {"jsonl": (".jsonl", made_of(lambda n: b'{"n": %d}\n' % n), 1), "csv": (".csv", made_of(lambda n: b"n,m\n%d,1\n" % n), 1),
         "tsv": (".tsv", made_of(lambda n: b"n\tm\n%d\t1\n" % n), 1), "text": (".txt", made_of(lambda n: b"%d\n" % n), 1),
         "json": (".json", made_of(lambda n: b'[{"n": %d}]\n' % n), 1), "webdataset": (".tar", tar, 1),
         "tfrecord": (".tfrecord", made_of(lambda n: record_file([example(n=ints(n))])), 1),
         "arrow": (".arrow", made_of(lambda n: vector("differing", "arrow", "0.arrow")), 2),
         "parquet": (".parquet", made_of(lambda n: vector("differing", "parquet", "0.parquet")), 2)}
FORMATS = {"tsv": "csv", "json": "jsonl"}
BESIDE = ("README.md", ".gitattributes", ".cache/huggingface/download/x.lock", "dataset_infos.json")


def beside(folder):
    for name in BESIDE:
        write(os.path.join(folder, name), b"{}\n")
    return folder


def of_kind(kind, path, **keys):
    return {"path": path, "format": FORMATS.get(kind, kind), **keys}


def counts(daemon, names):
    return {name: len(daemon.read(name, batch=1, shuffle=False)) for name in names}


@case("the files of data/, or of the only folder below, whose names say of which split they are, in each format")
def _(box):
    datasets, wanted = {}, {}
    for kind, (ending, make, n) in KINDS.items():
        for layout, folder in (("data", "data"), ("deep", "plain_text/0.0.0/hash")):
            root = beside(box.path(layout, kind))
            for number, name in enumerate(("test-00000-of-00001", "train-00000-of-00002", "train-00001-of-00002")):
                make(os.path.join(root, folder, name + ending), number)
            write(os.path.join(root, folder, f"._train-00000-of-00002{ending}"), b"\0\5\x16\7")
            datasets[f"{kind}-{layout}"] = of_kind(kind, root)
            datasets[f"{kind}-{layout}-train"] = of_kind(kind, root, split="train")
            datasets[f"{kind}-{layout}-test"] = of_kind(kind, root, split="test")
            datasets[f"{kind}-{layout}-held"] = of_kind(kind, root, split="held")
            wanted.update({f"{kind}-{layout}-train": 2 * n, f"{kind}-{layout}-test": n})
    daemon = box.daemon(datasets)
    for kind in KINDS:
        for layout in ("data", "deep"):
            daemon.refused(f"{kind}-{layout}", "has several splits", 'split = "..."', ": test, train;", box.path(layout, kind) + "/")
            daemon.refused(f"{kind}-{layout}-held", 'no split "held"', ": test, train")
    for _ in range(2):
        equal(counts(daemon, wanted), wanted, "samples")
        daemon.stop()
        daemon.start()
    for name in wanted:
        equal(daemon.log().count(f" {name}: indexed"), 1, f"times that {name} was indexed")
    equal(daemon.objects("datasets", "jsonl-deep-train")[0].get("n_hidden_files"), 1, "hidden files")


@case("a folder for each split, also below that of a configuration: split or the path chooses one, a pattern takes all, in each format")
def _(box):
    datasets, wanted, refused = {}, {}, {}
    for kind, (ending, make, n) in KINDS.items():
        root = beside(box.path("splits", kind))
        for number, split in enumerate(("train", "validation")):
            make(os.path.join(root, split, f"0{ending}"), number)
        datasets[f"{kind}-splits"] = of_kind(kind, root)
        datasets[f"{kind}-split"] = of_kind(kind, root, split="validation")
        datasets[f"{kind}-path"] = of_kind(kind, os.path.join(root, "validation"))
        datasets[f"{kind}-all"] = of_kind(kind, f"{root}/*/*{ending}")
        root = beside(box.path("languages", kind))
        for number, folder in enumerate(("de/train", "de/test", "en/train", "en/test")):
            make(os.path.join(root, folder, f"0{ending}"), number)
        datasets[f"{kind}-languages"] = of_kind(kind, root)
        datasets[f"{kind}-train"] = of_kind(kind, root, split="train")
        datasets[f"{kind}-en"] = of_kind(kind, os.path.join(root, "en"), split="train")
        wanted.update({f"{kind}-split": n, f"{kind}-path": n, f"{kind}-all": 2 * n, f"{kind}-en": n})
    daemon = box.daemon(datasets)
    for kind in KINDS:
        root = box.path("splits", kind)
        daemon.refused(f"{kind}-splits", "in several folders", f"{root}/train", 'split = "train"', "train, validation", f"{root}/**/*")
        for name in ("languages", "train"):
            daemon.refused(f"{kind}-{name}", "in several folders", "de/test, de/train, en/test, en/train")
    equal(counts(daemon, wanted), wanted, "samples")


@case("what comes into the folders of a dataset is noticed, at each level, also after a restart")
def _(box):
    write(box.path("d", "data", "en", "a.jsonl"), b'{"n": 1}\n')
    daemon = box.daemon({"d": {"path": box.path("d"), "format": "jsonl"}})
    equal(len(daemon.read("d")), 1, "samples")
    write(box.path("d", "data", "en", "b.jsonl"), b'{"n": 2}\n')
    daemon.stop()
    daemon.start()
    equal(len(daemon.read("d")), 2, "one file more")
    daemon.stop()
    write(box.path("d", "data", "de", "a.jsonl"), b'{"n": 3}\n')
    daemon.start()
    daemon.refused("d", "in several folders", "data/de, data/en")


@case("what a folder has itself comes before folders below it, in the order of names; folders alone may have a file's name")
def _(box):
    for number, name in enumerate(("b", "a", "10", "9")):
        write(box.path("d", f"{name}.jsonl"), b'{"n": %d}\n' % number)
    write(box.path("d", "data", "c.jsonl"), b'{"n": 9}\n')
    write(box.path("mixed", "a.jsonl"), b'{"n": 9}\n')
    write(box.path("mixed", "z.jsonl", "part.jsonl"), b'{"n": 9}\n')
    write(box.path("spark", "x.csv", "part-0.csv"), b"n,m\n5,1\n")
    write(box.path("spark", "x.csv", "_SUCCESS"), b"")
    daemon = box.daemon({name: {"path": box.path(name), "format": kind} for name, kind in (("d", "jsonl"), ("mixed", "jsonl"), ("spark", "csv"))})
    equal([line["fields"]["n"]["value"] for line in daemon.read("d", pipeline="n;", shuffle=False)], [2, 3, 1, 0], "the order")
    daemon.refused("mixed", "z.jsonl: is not a regular file")
    equal(len(daemon.read("spark")), 1, "samples of a folder that Spark wrote")


@case("auto tells a folder of nothing but folders of such files; in doubt it asks")
def _(box):
    for kind, (ending, make, _) in KINDS.items():
        for split in ("train", "test"):
            make(os.path.join(box.path(kind), "data", f"{split}{ending}"), 1)
        write(box.path(kind, "README.md"), b"# a dataset\n")
    write(box.path("mixed", "data", "0.jsonl"), b'{"n": 1}\n')
    write(box.path("mixed", "data", "1.csv"), b"n,m\n1,2\n")
    kinds = [kind for kind in KINDS if kind not in ("json", "text")]
    daemon = box.daemon({name: {"path": box.path(name), "format": "auto", **({} if name == "mixed" else {"split": "train"})}
                         for name in (*kinds, "text", "mixed")})
    daemon.refused("mixed", "no format recognises it")
    daemon.refused("text", "no format recognises it")
    counts(daemon, kinds)
    equal({row["name"]: row["format"] for row in daemon.objects("datasets") if row["name"] in kinds},
          {kind: FORMATS.get(kind, kind) for kind in kinds}, "formats")


@case("a folder of a split that datasets saved is read as its state.json says, also when it is the only one below")
def _(box):
    for folder in ("d/saved", "s/train", "s/data/test"):
        write(box.path(*folder.split("/"), "state.json"), b'{"_data_files": [{"filename": "b.arrow"}]}')
        for name in ("a", "b"):
            write(box.path(*folder.split("/"), f"{name}.arrow"), vector("differing", "arrow", "0.arrow"))
    daemon = box.daemon({"d": {"path": box.path("d"), "format": "arrow"},
                         **{split: {"path": box.path("s"), "format": "arrow", "split": split} for split in ("train", "test")}})
    equal(counts(daemon, ("d", "train", "test")), {"d": 2, "train": 2, "test": 2}, "the rows of the file that was saved")


def stream(path, **keys):
    return {"path": path, "format": "webdataset", "stream": "yes", **keys}


def keys_of(lines):
    return [line["fields"]["cls"]["value"] for line in lines]


@case("a stream is of one split: of several one is chosen, and what comes of another later is left out, also after a restart")
def _(box):
    for number, name in enumerate(("train-0", "train-1", "val-0")):
        tar(box.path("flat", f"{name}.tar"), number)
        tar(box.path("folders", name[:-2], f"{name}.tar"), number)
        tar(box.path("data", "data", f"{name}.tar"), number)
    tar(box.path("one", "train-0.tar"), 0)
    names = ("flat", "folders", "data")
    daemon = box.daemon({"one": stream(box.path("one")), "path": stream(box.path("folders", "val")),
                         "named": stream(box.path("flat", "{train-0,val-0}.tar"), split="val"),
                         **{name: stream(box.path(name)) for name in names},
                         **{f"{name}-{split}": stream(box.path(name), split=split) for name in names for split in ("train", "val")}})
    daemon.refused("flat", "has several splits", "train, val")
    daemon.refused("data", "has several splits", "train, val")
    daemon.refused("folders", "in several folders", 'split = "train"')
    daemon.refused("named", "chooses nothing")
    readers = {f"{name}-train": daemon.reader(f"{name}-train", pipeline="cls", shuffle=False, batch=1) for name in names}
    one = daemon.reader("one", pipeline="cls", shuffle=False, batch=1)
    for reader in (*readers.values(), one):
        reader.wait_lines(1)
    for path in (("flat",), ("folders", "train"), ("data", "data"), ("one",)):
        tar(box.path(*path, "val-5.tar"), 5)
        tar(box.path(*path, "train-7.tar"), 7)
        tar(box.path(*path, "w-9.tar"), 9)
    within(20, lambda: "val-5.tar is of another split" in daemon.log(), "what is left out is named")
    for path in (("flat",), ("folders", "train"), ("folders", "val"), ("data",), ("one",)):
        write(box.path(*path, "_SUCCESS"), b"")
    equal({name: keys_of(reader.good()) for name, reader in readers.items()},
          {"flat-train": [0, 1, 7], "folders-train": [0, 1, 7, 9], "data-train": [0, 1, 7]}, "samples")
    equal(keys_of(one.good()), [0, 7, 9], "of one split alone")
    for _ in range(2):
        equal({name: keys_of(daemon.read(name, pipeline="cls", shuffle=False)) for name in ("flat-val", "folders-val", "data-val", "path")},
              {"flat-val": [2, 5], "folders-val": [2], "data-val": [2, 5], "path": [2]}, "samples of the other split")
        equal(keys_of(daemon.read("folders-train", pipeline="cls", shuffle=False)), [0, 1, 7, 9], "after a restart")
        daemon.stop()
        daemon.start()


@case("a stream waits for the folder and the first shard of its split")
def _(box):
    tar(box.path("s", "val-0.tar"), 1)
    daemon = box.daemon({"s": stream(box.path("s"), split="train")})
    reader = daemon.reader("s", pipeline="cls", shuffle=False, batch=1)
    within(20, lambda: "waits for" in daemon.dlctl("datasets", "s").stdout, "it waits")
    tar(box.path("s", "data", "train-0.tar"), 2)
    reader.wait_lines(1)
    write(box.path("s", "_SUCCESS"), b"")
    equal(keys_of(reader.good()), [2], "samples")


main()
