#!/usr/bin/env python3
"""Parquet files that pyarrow and datasets wrote (tests/vectors/parquet), served in place: each value of each row, splits, pictures inside
and outside, and what is refused."""
import hashlib
import json
import os
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, case, equal, expected_order, identity_pixels, indices, main, png, write

VECTORS = os.environ.get("PARQUET_VECTORS", os.path.join(ROOT, "tests", "vectors", "parquet"))  # written anew by check-formats
DTYPES = {"bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I",
          "uint64": "Q", "float16": "e", "float32": "f", "float64": "d"}


def parquet(path, **more):
    return {"path": path, "format": "parquet", **more}


def copy(box, name):
    """A file or folder of the vectors, where it may be changed."""
    path = box.path(name)
    if os.path.isdir(os.path.join(VECTORS, name)):
        shutil.copytree(os.path.join(VECTORS, name), path, dirs_exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(os.path.join(VECTORS, name), path)
    return path


def read(name):
    with open(os.path.join(VECTORS, name), "rb") as file:
        return file.read()


def values():
    """What pyarrow reads: for each file, the bytes of each row, column by column."""
    files = {}
    with open(os.path.join(VECTORS, "values.jsonl"), encoding="utf-8") as file:
        for line in map(json.loads, file):
            for name in line["files"]:
                rows = [None if row is None else bytes.fromhex(row) for row in line["rows"]]
                files.setdefault(name, {})[line["column"]] = rows
    return files


def check_bytes(lines, columns):
    """Every field as its bytes; a scalar by its value."""
    for line in lines:
        equal(set(line["fields"]), set(columns), "fields")
        for name, field in line["fields"].items():
            wanted, where = columns[name][line["index"]], f"{name} of sample {line['index']}"
            if wanted is None or field is None:
                equal(field, wanted, where)
            elif "sha256" in field:
                equal(field["sha256"], hashlib.sha256(wanted).hexdigest(), where)
            else:
                equal(field["value"], struct.unpack("<" + DTYPES[field["dtype"]], wanted)[0], where)


@case("numbers, text, bytes and lists, in every codec, page version and encoding, with nulls, in several row groups")
def _(box):
    files = values()
    equal(len(files), 43, "files")
    daemon = box.daemon({name: parquet(os.path.join(VECTORS, name)) for name in files})
    for name, columns in files.items():
        n = len(next(iter(columns.values())))
        lines = daemon.read(name, batch=7, seed=3)
        equal(indices(lines), expected_order(n, seed=3), f"order of {name}")
        check_bytes(lines, columns)


@case("lists within lists are arrays whose inner dimensions are fixed; the outer one is, too, where Arrow's type says so")
def _(box):
    lines = box.daemon({"d": parquet(copy(box, "lists-gzip.parquet"))}).read("d", batch=5, shuffle=False)
    for i in range(3, 37):
        equal({name: lines[i]["fields"][name]["shape"] for name in ("tokens", "boxes", "cubes", "pair", "grid")},
              {"tokens": [i % 6], "boxes": [i % 4, 4], "cubes": [i % 3, 3, 2], "pair": [2], "grid": [2, 3]}, f"shapes of row {i}")


def read_bytes(daemon):
    return int({row["name"]: row["value"] for row in daemon.status()["counters"]}["n_bytes_read"])


@case("the members of structs are fields, named with a dot, of which some may be chosen")
def _(box):
    path, columns = copy(box, "nested-plain.parquet"), values()["nested-plain.parquet"]
    daemon = box.daemon({"all": parquet(path), "some": parquet(path, fields="meta.size.w, boxes=objects.bbox")})
    lines = daemon.read("all", batch=8, shuffle=False)
    equal({name: lines[1]["fields"][name] and lines[1]["fields"][name]["shape"] for name in ("objects.bbox", "objects.category", "fixed.pair")},
          {"objects.bbox": [1, 4], "objects.category": [1], "fixed.pair": [2]}, "shapes")
    lines = daemon.read("some", batch=8, seed=1)
    check_bytes(lines, {"meta.size.w": columns["meta.size.w"], "boxes": columns["objects.bbox"]})


@case("text of uncompressed columns stays in the file, also where pages are indices into a dictionary; else it is in the index")
def _(box):
    daemon = box.daemon({name: parquet(copy(box, f"strings-{name}.parquet")) for name in ("snappy", "dictionary", "plain")})
    for name, is_read in (("snappy", False), ("dictionary", True), ("plain", True)):
        before = read_bytes(daemon)
        daemon.read(name, batch=7, shuffle=False)
        equal(read_bytes(daemon) > before, is_read, f"{name} is read from the file")


def hub_rows(begin, end):
    return [{"label": i % 3, "text": f"row {i} " + "äöü€𝄞"[i % 5] * (i % 9), "size": (8 + i % 3, 6), "color": (i * 5 % 256, i, 200)}
            for i in range(begin, end)]


def check_hub(lines, rows, **terms):
    equal(indices(lines), expected_order(len(rows), **terms), "order")
    for line in lines:
        row, fields = rows[line["index"]], line["fields"]
        width, height = row["size"]
        equal(fields["image"], {"dtype": "uint8", "shape": [height, width, 3],
                                "sha256": hashlib.sha256(bytes(row["color"]) * (width * height)).hexdigest()}, "picture")
        equal([fields["label"]["value"], fields["text"]["text"]], [row["label"], row["text"]], "label and text")


@case("a dataset of the hub: splits by the names of the files, pictures verbatim in the file, classes by name, any world size")
def _(box):
    folder = copy(box, "hub")
    daemon = box.daemon({"train": parquet(folder, split="train"), "test": parquet(folder, split="test"), "none": parquet(folder),
                         "other": parquet(folder, split="validation"), "part": parquet(os.path.join(folder, "data"), split="train"),
                         "pattern": parquet(os.path.join(folder, "data", "train-0000{0,1}-of-00002.parquet")),
                         "file": parquet(os.path.join(folder, "data", "test-00000-of-00001.parquet"))})
    terms = {"batch": 1, "pipeline": "image: decode; label; text"}
    for name in ("train", "part", "pattern"):
        check_hub(daemon.read(name, seed=5, **terms), hub_rows(0, 12), seed=5)
    for rank in range(3):
        check_hub(daemon.read("train", seed=1, world=3, rank=rank, **terms), hub_rows(0, 12), seed=1, world=3, rank=rank)
    for name in ("test", "file"):
        check_hub(daemon.read(name, shuffle=False, **terms), hub_rows(12, 15), shuffle=False)
    daemon.refused("none", "several splits", "test, train")
    daemon.refused("other", "no split \"validation\"", "test, train")


@case("splits may be folders, and format auto tells all of these by their content")
def _(box):
    for i, split in enumerate(("train", "test")):
        write(box.path("folders", "data", split, "0000.parquet"), read(f"hub/data/{split}-0000{0}-of-0000{2 - i}.parquet"))
    write(box.path("folders", "README.md"), b"# a card\n")
    daemon = box.daemon({"train": {"path": box.path("folders"), "format": "auto", "split": "train"},
                         "test": {"path": box.path("folders"), "format": "auto", "split": "test"},
                         "part": {"path": box.path("folders"), "format": "auto", "split": "0:50%"},
                         "hub": {"path": copy(box, "hub"), "format": "auto", "split": "train"},
                         "some": {"path": copy(box, "hub"), "format": "auto", "split": "train[25%:]"},
                         "file": {"path": copy(box, "scalars-plain.parquet"), "format": "auto"}})
    equal([len(daemon.read(name, pipeline=pipeline)) for name, pipeline in
           (("train", "label"), ("test", "label"), ("hub", "label"), ("some", "label"), ("file", None))], [7, 3, 12, 9, 37], "samples")
    equal({row["name"]: row["format"] for row in daemon.objects("datasets")}["hub"], "parquet", "format")
    daemon.refused("part", "Parquet files in several folders", box.path("folders", "data", "test"), "split = \"test\"", "data/test, data/train")


@case("a snapshot of the hub's cache: files are links, and their names may end with a digest or a split of one's own")
def _(box):
    names = {"train_sft-00000-of-00002-0a1b2c.parquet": "train-00000-of-00002", "train_sft-00001-of-00002-9f8e7d.parquet":
             "train-00001-of-00002", "test_sft-00000-of-00001-c0ffee.parquet": "test-00000-of-00001"}
    for i, (name, source) in enumerate(names.items()):
        write(box.path("blobs", str(i)), read(f"hub/data/{source}.parquet"))
        os.makedirs(box.path("snapshot", "data"), exist_ok=True)
        os.symlink(f"../../blobs/{i}", box.path("snapshot", "data", name))
    daemon = box.daemon({split: {"path": box.path("snapshot"), "format": "auto", "split": split, "links": "follow"} for split in
                         ("train_sft", "test_sft", "train")})
    check_hub(daemon.read("train_sft", seed=2, batch=1, pipeline="image: decode; label; text"), hub_rows(0, 12), seed=2)
    check_hub(daemon.read("test_sft", shuffle=False, batch=1, pipeline="image: decode; label; text"), hub_rows(12, 15), shuffle=False)
    daemon.refused("train", 'no split "train"', "test_sft, train_sft")


def hub_cache(box, *paths):
    """A dataset in the hub's cache: a snapshot whose files are links to blobs."""
    cache = box.path("datasets--org--name")
    for i, path in enumerate((*paths, "README.md", ".gitattributes", "dataset_infos.json")):
        vector = "test-00000-of-00001" if "test" in path else "train-00001-of-00002" if "00001-of-00002" in path else "train-00000-of-00002"
        write(os.path.join(cache, "blobs", str(i)), read(f"hub/data/{vector}.parquet") if path.endswith(".parquet") else b"{}")
        link = os.path.join(cache, "snapshots", "8f3a", path)
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.symlink(os.path.relpath(os.path.join(cache, "blobs", str(i)), os.path.dirname(link)), link)
    write(os.path.join(cache, "refs", "main"), b"8f3a")
    return cache, os.path.join(cache, "snapshots", "8f3a")


TWO = ("train-00000-of-00002.parquet", "train-00001-of-00002.parquet", "test-00000-of-00001.parquet")


@case("a snapshot as the hub's cache has it opens by its path, with links = follow; without it the message says to write that")
def _(box):
    cache, snapshot = hub_cache(box, *(f"data/{name}" for name in TWO))
    keys = {"format": "auto", "links": "follow"}
    daemon = box.daemon({"train": {"path": snapshot, "split": "train", **keys}, "all": {"path": snapshot, **keys}, "cache": {"path": cache, **keys},
                         "inside": {"path": snapshot, "format": "auto", "split": "train"},
                         "glob": {"path": os.path.join(snapshot, "data", "train-*.parquet"), "format": "auto"},
                         "follow-glob": {"path": os.path.join(snapshot, "data", "train-*.parquet"), **keys}})
    check_hub(daemon.read("train", batch=1, seed=2, pipeline="image: decode; label; text"), hub_rows(0, 12), seed=2)
    check_hub(daemon.read("follow-glob", batch=1, seed=2, pipeline="image: decode; label; text"), hub_rows(0, 12), seed=2)
    daemon.refused("all", "several splits", "test, train")
    daemon.refused("cache", "is a dataset in the Hugging Face hub's cache", os.path.join(cache, "snapshots"))
    for name in ("inside", "glob"):
        daemon.refused(name, "a link leads out of the dataset's folder", 'links = "follow"')


@case("a hub folder with a folder for each configuration: one is named, the only one is found, and a pattern takes all")
def _(box):
    one, several, converted, words = box.path("one"), box.path("several"), box.path("converted"), "image: decode; label; text"
    for name in TWO:
        vector = read(f"hub/data/{name}")
        write(os.path.join(one, "data", "default", name), vector)
        for config in ("de", "en"):
            write(os.path.join(several, "data", config, name), vector)
            write(os.path.join(converted, config, name.partition("-")[0], name.split("-")[1] + ".parquet"), vector)
    for folder in (one, several, converted):
        write(os.path.join(folder, "README.md"), b"# a card")
        write(os.path.join(folder, "dataset_infos.json"), b"{}")
    auto = {"format": "auto"}
    daemon = box.daemon({"one": {"path": one, "split": "train", **auto}, "splits": {"path": one, **auto}, "bogus": {"path": one, "split": "valid", **auto},
                         "several": {"path": several, **auto}, "split": {"path": several, "split": "train", **auto},
                         "en": {"path": os.path.join(several, "data", "en"), "split": "train", **auto},
                         "all": {"path": os.path.join(several, "data", "*", "train-*.parquet"), **auto},
                         "converted": {"path": converted, "split": "train", **auto},
                         "config": {"path": os.path.join(converted, "de"), "split": "test", **auto}})
    for name in ("one", "en"):
        check_hub(daemon.read(name, batch=1, shuffle=False, pipeline=words), hub_rows(0, 12), shuffle=False)
    check_hub(daemon.read("config", batch=1, shuffle=False, pipeline=words), hub_rows(12, 15), shuffle=False)
    check_hub(daemon.read("all", batch=1, shuffle=False, pipeline=words), hub_rows(0, 12) * 2, shuffle=False)
    daemon.refused("splits", "several splits", "test, train")
    daemon.refused("bogus", 'no split "valid"', "test, train")
    for name in ("several", "split"):
        daemon.refused(name, "Parquet files in several folders", os.path.join(several, "data", "de"), "data/de, data/en", f"{several}/**/*.parquet")
    daemon.refused("converted", "several folders", "de/test, de/train, en/test, en/train")


@case("where folders lie too deep to be looked into, the only one that was found is not taken for all")
def _(box):
    for folder in ("de", "a/b/c/d/e"):
        write(box.path("d", *folder.split("/"), "x.parquet"), read(f"hub/data/{TWO[0]}"))
    box.daemon({"d": {"path": box.path("d"), "format": "parquet"}}).refused("d", "Parquet files in de, and more folders", "choose one in the path")


@case("lists of text in any pages, with nulls; a null among the texts is refused")
def _(box):
    with open(os.path.join(VECTORS, "texts.jsonl"), encoding="utf-8") as file:
        told = [json.loads(line) for line in file]
    names = sorted({line["file"] for line in told})
    equal(len(names), 5, "files")
    daemon = box.daemon({name: parquet(copy(box, name)) for name in [*names, "null-text.parquet"]})
    for name in names:
        columns = {line["column"]: line["rows"] for line in told if line["file"] == name}
        equal(set(columns), {"words", "large", "pair", "answers.text"}, "columns")
        lines = daemon.read(name, batch=7, seed=3)
        equal(indices(lines), expected_order(len(columns["words"]), seed=3), "order")
        for line in lines:
            for column, rows in columns.items():
                row = rows[line["index"]]
                digest = hashlib.sha256(b"".join(text.encode() + b"\0" for text in row or [])).hexdigest()
                equal(line["fields"][column],
                      row if row is None else {"dtype": "texts", "shape": [len(row)], "sha256": digest, "texts": row},
                      f"{name}: {column} of sample {line['index']}")
    daemon.refused("null-text.parquet", "row group 1", 'column "words": row 3 of the file', "replace it by an empty text")


@case("fields names the columns that are wanted, and the others may be of any type or codec")
def _(box):
    daemon = box.daemon({"d": parquet(copy(box, "structs.parquet"), fields="n=number"), "all": parquet(copy(box, "structs.parquet")),
                         "none": parquet(copy(box, "structs.parquet"), fields="x")})
    equal([line["fields"]["n"]["value"] for line in daemon.read("d", batch=4, shuffle=False)], [1, 2, 3], "numbers")
    daemon.refused("all", 'field "price" cannot be served', 'column "price" is a decimal', pipeline="number; price")
    daemon.refused("none", "no column")


@case("what cannot be served is refused by its name, with what to do")
def _(box):
    names = ("int96", "brotli", "empty", "list-missing", "list-ragged", "pictures-snappy")
    daemon = box.daemon({**{name: parquet(copy(box, f"{name}.parquet")) for name in names},
                         **{name: parquet(copy(box, "structs.parquet"), fields=name) for name in ("both", "price", "map")}})
    daemon.refused("int96", 'column "when" is int96', 'prepare = "convert"')
    daemon.refused("brotli", 'column "text": is compressed with Brotli', 'prepare = "convert"')
    daemon.refused("empty", "no rows")
    daemon.refused("list-missing", 'column "list": has lists with missing or empty elements')
    daemon.refused("list-ragged", 'column "list": has inner lists of 1 and of 2 elements')
    daemon.refused("pictures-snappy", 'column "image" holds pictures or sound, and its pages are compressed', 'prepare = "convert"',
                   pipeline="image: raw")
    daemon.refused("both", 'column "both" is a struct, whose members are fields', '"both.x"')
    daemon.refused("price", 'column "price" is a decimal')
    daemon.refused("map", 'column "map" is a map')


@case("pictures that are files in the dataset's folder; a label of -1 is a number, not a class")
def _(box):
    path = copy(box, "outside.parquet")
    for i in range(6):
        write(box.path("pics", f"{i}.png"), png(8, 5, identity_pixels(i, 8, 5)))
    daemon = box.daemon({"d": parquet(path), "bad": parquet(copy(box, "climbing.parquet"))})
    lines = daemon.read("d", batch=1, pipeline="image: raw; label", shuffle=False)
    for i in range(6):
        with open(box.path("pics", f"{i}.png"), "rb") as file:
            equal(lines[i]["fields"]["image"]["sha256"], hashlib.sha256(file.read()).hexdigest(), f"picture {i}")
        equal(lines[i]["fields"]["label"]["value"], i % 3 - (i == 3), "label")
    equal([len(lines), lines[6]["fields"]["image"]], [7, None], "the row without a picture")
    daemon.refused("bad", "../0.png", "not within the dataset's folder", pipeline="image: raw")


@case("several files, of which one is empty; files that differ are refused, naming both")
def _(box):
    for name, source in (("a", "strings-plain"), ("b", "strings-gzip")):
        write(box.path("more", f"{name}.parquet"), read(f"{source}.parquet"))
        write(box.path("mixed", f"{name}.parquet"), read(f"{source}.parquet"))
    write(box.path("mixed", "c.parquet"), read("scalars-plain.parquet"))
    write(box.path("gap", "a.parquet"), read("empty.parquet"))
    write(box.path("gap", "b.parquet"), read("brotli.parquet"))
    write(box.path("none", "README"), b"")
    daemon = box.daemon({name: parquet(box.path(name)) for name in ("more", "mixed", "gap", "none")})
    files = values()
    lines = daemon.read("more", batch=8, seed=2)
    columns = {name: files["strings-plain.parquet"][name] + files["strings-gzip.parquet"][name]
               for name in files["strings-plain.parquet"]}
    equal(indices(lines), expected_order(74, seed=2), "order")
    check_bytes(lines, columns)
    daemon.refused("mixed", "c.parquet", "has none of the columns")
    daemon.refused("gap", "b.parquet", "Brotli")
    daemon.refused("none", "has no Parquet file")


def damaged(box, name, change, source="scalars-plain.parquet"):
    data = bytearray(read(source))
    write(box.path(f"{name}.parquet"), bytes(change(data) or data))
    return parquet(box.path(f"{name}.parquet"))


def replace(offset, new):
    def change(data):
        at = offset % len(data)
        data[at:at + len(new)] = new
    return change


@case("a file that is cut, encrypted, damaged or lies about its lengths is refused with its name")
def _(box):
    n = len(read("scalars-plain.parquet"))
    footer = struct.unpack("<I", read("scalars-plain.parquet")[-8:-4])[0]
    daemon = box.daemon({
        "cut": damaged(box, "cut", lambda data: data[:n // 2]),
        "short": damaged(box, "short", lambda data: data[:9]),
        "magic": damaged(box, "magic", replace(0, b"QAR1")),
        "encrypted": damaged(box, "encrypted", replace(-4, b"PARE")),
        "length": damaged(box, "length", replace(-8, b"\xff\xff\xff\x7f")),
        "footer": damaged(box, "footer", replace(-8 - footer, b"\xff" * 40)),
        "pages": damaged(box, "pages", replace(4, bytes(200))),
        "sum": damaged(box, "sum", replace(60, b"\x00"), "strings-gzip.parquet")})
    for name, text in (("cut", "is cut"), ("short", "only 9 bytes"), ("magic", "does not begin with"), ("encrypted", "is encrypted"),
                       ("length", "more than the file"), ("footer", "damaged")):
        daemon.refused(name, f"{name}.parquet", text)
    for name in ("pages", "sum"):
        daemon.read(name)  # a damaged column says which one it is; the others are served
        line = json.loads(daemon.dlctl("datasets", name, "--format", "json").stdout.splitlines()[1])
        equal((line["kind"], "row group 0" in line["refused"], f"{name}.parquet" in line["refused"]), ("column", True, True), line)
        daemon.refused(name, "row group 0", pipeline=line["name"])


main()
