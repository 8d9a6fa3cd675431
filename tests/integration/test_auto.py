#!/usr/bin/env python3
"""`format = "auto"`: the format is told by the files, doubt is an error with the candidates, and a folder of mixed
things is never guessed."""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, case, equal, identity_pixels, main, png, within, write
from tars import archive

VECTORS = os.path.join(ROOT, "tests", "vectors")


def keep(box, name, *kept):
    """A copy of kept files of a format's own writer, in a folder of their own."""
    for path in kept:
        there = os.path.join(VECTORS, path)
        if os.path.isdir(there):
            shutil.copytree(there, box.path(name), dirs_exist_ok=True)
        else:
            os.makedirs(box.path(name), exist_ok=True)
            shutil.copy(there, box.path(name))
    return box.path(name)


def found(daemon):
    return {row["name"]: row["format"] for row in daemon.objects("datasets")}


@case("files of every format's own writer are told, as folders and as single files, and are served")
def _(box):
    archive(box.path("tars", "a.tar"), [("0.png", png(4, 4, identity_pixels(0, 4, 4))), ("0.cls", b"1")])
    folders = {"arrow": keep(box, "arrow", "arrow/saved"), "mds": keep(box, "mds", "mds/fixed"),
               "parquet": keep(box, "parquet", "parquet/hub/data/test-00000-of-00001.parquet"),
               "litdata": keep(box, "litdata", "litdata/numbers"), "tfrecord": keep(box, "tfrecord", *(f"tfrecord/photos/photos.tfrecord-0000{k}-of-00002" for k in range(2))),
               "jsonl": keep(box, "jsonl", "listings/datasets.jsonl"), "csv": keep(box, "csv", "listings/datasets.csv"),
               "text": keep(box, "text", "listings/lines.txt"), "webdataset": box.path("tars"),
               "imagefolder": box.folder_of_pictures("f", 6, n_classes=2)}
    files = {"arrow": os.path.join(VECTORS, "arrow", "scalars.arrow"), "csv": os.path.join(VECTORS, "listings", "pandas.tsv"),
             "jsonl": os.path.join(VECTORS, "listings", "pandas.jsonl"), "webdataset": box.path("tars", "a.tar"),
             "text": os.path.join(VECTORS, "listings", "lines.txt"),
             "parquet": os.path.join(VECTORS, "parquet", "strings-snappy.parquet")}
    datasets = {name: {"path": path, "format": "auto"} for name, path in folders.items()}
    datasets.update({f"{name}-file": {"path": path, "format": "auto"} for name, path in files.items()})
    daemon = box.daemon(datasets)
    for name in datasets:
        lines = daemon.read(name, limit=1, batch=1, pipeline="raw" if name in ("imagefolder", "webdataset") else None)
        equal(len(lines), 1, f"{name}: a sample")
    equal(found(daemon), {name: name.split("-")[0] for name in datasets}, "formats that were found")
    daemon.stop()
    daemon.start()
    within(30, lambda: all(row["state"] == "ready" for row in daemon.objects("datasets")), "all are ready again")
    equal([line for line in daemon.log().splitlines() if "indexed again" in line], [], "an index that is made at each start")


@case("what two formats recognise, or none, is refused with what to write; a named format settles it")
def _(box):
    archive(box.path("both", "a.tar"), [("0.txt", b"x")])
    write(box.path("both", "b.jsonl"), json.dumps({"a": 1}).encode() + b"\n")
    write(box.path("none", "a.xyz"), b"?")
    os.makedirs(box.path("empty"))
    daemon = box.daemon({"both": {"path": box.path("both"), "format": "auto"}, "none": {"path": box.path("none"), "format": "auto"},
                         "empty": {"path": box.path("empty"), "format": "auto"},
                         "said": {"path": box.path("both"), "format": "webdataset"}})
    daemon.refused("both", "several formats recognise it", "jsonl, webdataset", "set format")
    daemon.refused("none", "no format recognises it", "set format")
    daemon.refused("empty", "no format recognises it")
    equal(len(daemon.read("said", pipeline="txt: text")), 1, "samples of the named format")


@case("pictures without class folders, and folders of parts, are told, and what the message says to write works")
def _(box):
    for i, name in enumerate(("a.jpg", "b.png", "c.png")):
        write(box.path("flat", name), png(4, 4, identity_pixels(i, 4, 4)))
        write(box.path("same", f"{i}.PNG"), png(4, 4, identity_pixels(i, 4, 4)))
        write(box.path("parts", "train", "cat", f"{i}.png"), png(4, 4, identity_pixels(i, 4, 4)))
        write(box.path("parts", "val", "cat", f"{i}.png"), png(4, 4, identity_pixels(i, 4, 4)))
    daemon = box.daemon({name: {"path": box.path(name), "format": "auto"} for name in ("flat", "same", "parts")} | {
        "flat-said": {"path": box.path("flat"), "format": "folder", "pattern": "{name}.*"},
        "same-said": {"path": box.path("same"), "format": "folder", "pattern": "{name}.PNG"},
        "part-said": {"path": box.path("parts", "train")}, "alone": {"path": box.path("flat", "b.png"), "format": "auto"},
        "keys": {"path": box.path("parts", "train"), "format": "auto", "label": "class"}})
    daemon.refused("flat", "pictures such as", "a folder for each class", 'pattern = "{name}.*"')
    daemon.refused("same", 'format = "folder" and pattern = "{name}.PNG"',
                   '{"path": "%s", "format": "folder", "pattern": "{name}.PNG"}' % box.path("same"))
    daemon.refused("parts", "no folder in it, such as train", f"such as {box.path('parts', 'train')}")
    daemon.refused("keys", "by its files, the format imagefolder does not take label")
    daemon.refused("alone", "a picture alone is not a dataset")
    for name in ("flat-said", "same-said", "part-said"):
        equal(len(daemon.read(name, pipeline="image: center_crop(4)")), 3, name)


@case("files that are empty, damaged or compressed are told by their names, and the message says what is wrong")
def _(box):
    write(box.path("gaps", "0.jsonl"), b"")
    write(box.path("gaps", "1.jsonl"), b'{"a": 1}\n')
    write(box.path("beside", "labels.csv"), b"file_name,n\n0.png,7\n")
    write(box.path("beside", "0.png"), png(4, 4, identity_pixels(0, 4, 4)))
    wrong = {"bad.jsonl": (b'{"a": 1,}\n', "bad.jsonl: line 1"), "nothing.csv": (b"", "nothing.csv"),
             "wide.jsonl": ('{"a": 1}\n'.encode("utf-16"), "UTF-16"), "x.tfrecord": (b"\1" * 40, "checksum of its length"),
             "gz.tfrecord": (b"\x1f\x8b\x08\0" + bytes(40), "compressed (gzip)"), "cut.arrow": (b"ARR", "cut.arrow"), "p.parquet": (b"PAR", "p.parquet"),
             "a.jsonl.br": (b"\x0b", "a.jsonl.br: is compressed, so that no sample can be read by itself; decompress it"),
             "a.zip": (b"PK\3\4", "a.zip: is compressed, so that no sample can be read by itself; decompress it"),
             "a.jsonl.gz": (b"\x1f\x8b\x08\0" + bytes(40), "a.jsonl.gz: cannot be decompressed"),
             "two/a.csv": (b"", "several formats recognise it: csv, jsonl")}
    for name, (content, _) in wrong.items():
        write(box.path("w", name), content)
    write(box.path("w", "two", "b.jsonl"), b"")
    paths = {name.replace("/", "-"): os.path.dirname(box.path("w", name)) if "/" in name else box.path("w", name) for name in wrong}
    daemon = box.daemon({name: {"path": path, "format": "auto"} for name, path in {**paths, "gaps": box.path("gaps"), "beside": box.path("beside")}.items()})
    for name, (_, words) in wrong.items():
        daemon.refused(name.replace("/", "-"), words)
    equal([line["fields"]["a"]["value"] for line in daemon.read("gaps")], [1], "what the second file has")
    equal(daemon.read("beside", pipeline="image: raw; n")[0]["fields"]["n"]["value"], 7, "a table beside its pictures")


@case("a key that one format alone takes tells the format")
def _(box):
    box.folder_of_pictures("f", 2)
    write(box.path("f", "notes.json"), json.dumps({"images": [], "annotations": [], "categories": []}).encode())
    daemon = box.daemon({"d": {"path": box.path("f"), "format": "auto", "annotations": box.path("f", "notes.json")}})
    message = daemon.refused("d", "notes.json")  # read as annotations, in which there are no pictures
    equal("recognise" in message, False, "it was told")


if __name__ == "__main__":
    main()
