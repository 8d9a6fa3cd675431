#!/usr/bin/env python3
"""Listings: JSON Lines, CSV and text files, cell by cell as Python's own readers see them, in torch's order; files that a listing
names; what is damaged, and what is refused."""
import csv
import json
import os
import random
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import (ROOT, case, check_sequence, contains, equal, expected_order, identity_pixels, indices, main, png, sha256_of,
                     within, write)
from listings import (read_csv, read_jsonl, shape_of, told_bytes, told_csv, told_json, told_text, without_text)

VECTORS = os.path.join(ROOT, "tests", "vectors", "listings")
CHARACTERS = ["a", "é", "\U0001F600", "\"", "\\", "/", "\n", "\t", "\x7f", "\u2028", ",", ";", " ", "中", "\x00", "\r"]


def listing(path, kind, **more):
    return {"path": path, "format": kind, **more}


def pipeline_of(names):
    return "; ".join(names)


def check(lines, told, **terms):
    equal(indices(lines), expected_order(len(told), **terms), "order")
    for line in lines:
        equal(without_text(line["fields"]), told[line["index"]], f"sample {line['index']}")


def text_of(dice, characters=CHARACTERS):
    return "".join(dice.choices(characters, k=dice.randrange(12)))


def members(dice):
    """A sample of a listing: every kind of value, in any order, some missing."""
    row = {"id": dice.randrange(-2 ** 63, 2 ** 63), "text": text_of(dice), "score": dice.choice([dice.uniform(-9, 9), 7, 1e300]),
           "ok": dice.random() < 0.5, "tokens": [dice.randrange(-5, 50000) for _ in range(dice.randrange(6))],
           "vector": [dice.uniform(-1, 1) for _ in range(3)], "boxes": [[1, 2.5, dice.random()]] * dice.randrange(1, 4),
           "flags": [dice.random() < 0.5 for _ in range(2)], "meta": {"é": [1, {"b": text_of(dice)}], "n": None},
           "words": [text_of(dice) for _ in range(2)], "naïve \"name\"": text_of(dice)}
    for name in ("meta", "ok", "tokens", "text", "score"):
        if dice.random() < 0.2:
            row[name] = None
        elif dice.random() < 0.2:
            del row[name]
    pairs = list(row.items())
    dice.shuffle(pairs)
    return dict(pairs)


@case("each member of each line of JSON arrives as Python reads it, for one rank and for three, from several files")
def _(box):
    dice = random.Random(3)
    for number in range(3):
        lines = [json.dumps(members(dice), ensure_ascii=bool(number), separators=((",", ":") if number == 2 else None))
                 for _ in range(60)]
        write(box.path("d", f"part-{number}.jsonl"), ("\r\n" if number == 1 else "\n").join(lines).encode() + b"\n" * number)
    told = told_json([row for number in range(3) for row in read_jsonl(box.path("d", f"part-{number}.jsonl"))])
    names = [name for name in told[0] if '"' not in name]
    told = [{name: row[name] for name in names} for row in told]
    daemon = box.daemon({"d": listing(box.path("d"), "jsonl")})
    check(daemon.read("d", batch=16, pipeline=pipeline_of(names)), told)
    for rank in range(3):
        check(daemon.read("d", batch=7, pipeline=pipeline_of(names), world=3, rank=rank, seed=5), told, world=3, rank=rank,
              seed=5)


@case("each cell of a table arrives as Python's csv module reads it, whatever quotes and delimiters it was written with")
def _(box):
    dice = random.Random(4)
    datasets, told = {}, {}
    for number, terms in enumerate([{}, {"quoting": csv.QUOTE_ALL}, {"delimiter": ";", "lineterminator": "\n"},
                                    {"delimiter": "|", "quoting": csv.QUOTE_NONNUMERIC}]):
        path = box.path(f"{number}.csv")
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, **terms)
            writer.writerow(["id", "text", "score", "zip", "ok"])
            for i in range(80):
                text = text_of(dice, [each for each in CHARACTERS if each not in "\x00\r"])
                writer.writerow([i, text + "x", dice.choice([dice.uniform(-9, 9), 3, ""]), f"{i:04d}", dice.random() < 0.5])
        delimiter = terms.get("delimiter", ",")
        datasets[f"d{number}"] = listing(path, "csv", **({} if delimiter == "," else {"delimiter": delimiter}))
        told[f"d{number}"] = told_csv(read_csv(path, delimiter=delimiter))
    daemon = box.daemon(datasets)
    for name, rows in told.items():
        check(daemon.read(name, batch=9, pipeline=pipeline_of(rows[0])), rows)


@case("listings that datasets and pandas wrote hold what their own readers read")
def _(box):
    kinds = {"datasets.jsonl": "jsonl", "pandas.jsonl": "jsonl", "datasets.csv": "csv", "pandas.tsv": "csv", "lines.txt": "text"}
    folder = shutil.copytree(VECTORS, box.path("v"))
    daemon = box.daemon({name.replace(".", "-"): listing(os.path.join(folder, name), kind) for name, kind in kinds.items()})
    for name, kind in kinds.items():
        with open(os.path.join(folder, name + ".expected.json"), encoding="utf-8") as file:
            rows = json.load(file)
        if kind == "jsonl":  # objects are bytes here: what they hold is compared below
            told = told_json([{key: (value, json.dumps(value)) for key, value in row.items() if key != "meta"}
                              for row in rows])
            raw = [{"meta": told_bytes(row["meta"][1].encode())}
                   for row in read_jsonl(os.path.join(folder, name))]
            equal([row["meta"][0] for row in read_jsonl(os.path.join(folder, name))],
                  [row["meta"] for row in rows], "JSON of objects")
            told = [{**one, **other} for one, other in zip(told, raw)]
        else:
            if name == "datasets.csv":  # pandas makes floats of whole numbers where a cell is empty; they stay whole here
                rows = [{**row, "maybe": row["maybe"] and int(row["maybe"])} for row in rows]
            told = told_json([{key: (value, "") for key, value in row.items()} for row in rows])
        check(daemon.read(name.replace(".", "-"), batch=8, pipeline=pipeline_of(told[0])), told)


@case("a sample is a line of a text, or a whole file")
def _(box):
    texts = {"b.txt": "one\ntwo é\n\nfour\n", "a.txt": "first\r\nsecond"}
    for name, text in texts.items():
        write(box.path("d", name), text.encode())
    write(box.path("d", "README.md"), b"not a part")
    daemon = box.daemon({"lines": listing(box.path("d"), "text"), "files": listing(box.path("d"), "text", sample="file")})
    check(daemon.read("lines", batch=4, pipeline="text"),
          [{"text": told_text(line)} for line in ("first", "second", "one", "two é", "", "four")])
    lines = daemon.read("files", batch=1, pipeline="text; __key__", shuffle=False)
    equal([line["fields"]["text"]["text"] for line in lines], [texts["a.txt"], texts["b.txt"]], "files")
    lines = daemon.read("lines", pipeline="__key__", shuffle=False)
    equal([line["fields"]["__key__"]["sha256"] for line in lines],
          [told_bytes(name.encode())["sha256"] for name in ("a.txt:0", "a.txt:1", "b.txt:0", "b.txt:1", "b.txt:2", "b.txt:3")],
          "names")


@case("ImageNet's list of the validation set, and CelebA's attributes: cells between blanks, pictures in a folder beside the list")
def _(box):
    dice = random.Random(8)
    names = [f"ILSVRC2012_val_{i + 1:08d}.JPEG" for i in range(20)]
    labels = [dice.randrange(1000) for _ in names]
    for i, name in enumerate(names):
        write(box.path("imagenet", "val", name), png(9, 7, identity_pixels(i, 9, 7)))
    write(box.path("imagenet", "val.txt"), "".join(f"{name} {label}\n" for name, label in zip(names, labels)).encode())
    attributes = ["5_o_Clock_Shadow", "Smiling", "Young"]
    faces = [[dice.choice([-1, 1]) for _ in attributes] for _ in range(10)]
    for i in range(10):
        write(box.path("celeba", "img_align_celeba", f"{i + 1:06d}.jpg"), png(9, 7, identity_pixels(i, 9, 7)))
    write(box.path("celeba", "list_attr_celeba.txt"), ("10\n" + " ".join(attributes) + " \n" + "".join(
        f"{i + 1:06d}.jpg " + " ".join(f"{value:2d}" for value in faces[i]) + "\n" for i in range(10))).encode())
    daemon = box.daemon({
        "val": listing(box.path("imagenet", "val.txt"), "csv", delimiter="blank", columns="name, label",
                       files="image=val/{name}"),
        "faces": listing(box.path("celeba", "list_attr_celeba.txt"), "csv", delimiter="blank", skip_lines="2",
                         columns="name, " + ", ".join(attributes), files="image=img_align_celeba/{name}")})
    lines = daemon.read("val", pipeline="image: raw; name; label", seed=3, batch=4)
    equal(indices(lines), expected_order(20, seed=3), "order")
    for line in lines:
        i = line["index"]
        equal(line["fields"]["image"]["sha256"], sha256_of(box.path("imagenet", "val", names[i])), f"picture {i}")
        equal((line["fields"]["label"]["value"], line["fields"]["name"]["text"]), (labels[i], names[i]), f"sample {i}")
    for line in daemon.read("faces", pipeline="image: raw; " + "; ".join(attributes), shuffle=False):
        i = line["index"]
        equal(line["fields"]["image"]["sha256"], sha256_of(box.path("celeba", "img_align_celeba", f"{i + 1:06d}.jpg")), "picture")
        equal([line["fields"][name]["value"] for name in attributes], faces[i], f"attributes of {i}")
    check_sequence(daemon.read("val", pipeline="image: center_crop(7); label", world=2, rank=1), 20, world=2, rank=1)


@case("CUB-200's tables are joined by their ids: class names, boxes and the parts of the set; a table that changes is noticed")
def _(box):
    dice = random.Random(9)
    classes = ["001.Black_footed_Albatross", "002.Laysan_Albatross", "003.Sooty_Albatross"]
    images = [(i + 1, dice.randrange(3), f"Bird_{i:04d}_{dice.randrange(999)}.jpg") for i in range(12)]
    boxes = [[dice.randrange(999) / 2 for _ in range(4)] for _ in images]
    parts = [dice.randrange(2) for _ in images]
    path = lambda image: f"{classes[image[1]]}/{image[2]}"
    for image in images:
        write(box.path("cub", "images", *path(image).split("/")), png(9, 7, identity_pixels(image[0], 9, 7)))
    tables = {"images.txt": [f"{image[0]} {path(image)}" for image in images],
              "image_class_labels.txt": [f"{image[0]} {image[1] + 1}" for image in images],
              "classes.txt": [f"{i + 1} {name}" for i, name in enumerate(classes)],
              "bounding_boxes.txt": [f"{image[0]} " + " ".join(f"{x:.1f}" for x in one) for image, one in zip(images, boxes)],
              "train_test_split.txt": [f"{image[0]} {part}" for image, part in zip(images, parts)]}
    for name, lines in tables.items():
        write(box.path("cub", name), "".join(line + "\n" for line in lines).encode())
    daemon = box.daemon({"cub": listing(
        box.path("cub", "images.txt"), "csv", delimiter="blank", columns="id, path", files="image=images/{path}", label="class",
        join="image_class_labels.txt(id, class_id), classes.txt(class_id, class), bounding_boxes.txt(id, x, y, w, h), "
             "train_test_split.txt(id, is_training)")})
    pipeline = "image: raw; label; class; class_id; x; y; w; h; is_training"
    lines = daemon.read("cub", pipeline=pipeline, batch=4)
    equal(indices(lines), expected_order(12), "order")
    for line in lines:
        i, fields = line["index"], line["fields"]
        equal(fields["image"]["sha256"], sha256_of(box.path("cub", "images", *path(images[i]).split("/"))), f"picture {i}")
        equal((fields["label"]["value"], fields["class"]["text"], fields["class_id"]["value"], fields["is_training"]["value"]),
              (images[i][1], classes[images[i][1]], images[i][1] + 1, parts[i]), f"sample {i}")
        equal([fields[name]["value"] for name in "xywh"], boxes[i], f"box of {i}")
    write(box.path("cub", "train_test_split.txt"), "".join(f"{image[0]} 7\n" for image in images).encode())
    within(60, lambda: [line["fields"]["is_training"]["value"] for line in daemon.read("cub", pipeline=pipeline)] == [7] * 12,
           "the change of a joined table")


@case("a column of paths is the pictures, decoded without being named, and its captions; as Hugging Face's metadata.jsonl has it")
def _(box):
    for i in range(12):
        write(box.path("d", "x", f"{i}.png"), png(9, 7, identity_pixels(i, 9, 7)))
        write(box.path("f", "c", f"{i:02d}.png"), png(9, 7, identity_pixels(i, 9, 7)))
    rows = [{"file_name": f"x/{i}.png", "text": f"caption {i}"} for i in range(12)]
    write(box.path("d", "metadata.jsonl"), "".join(json.dumps(row) + "\n" for row in rows).encode())
    write(box.path("d", "metadata.csv"), ("file_name,text\n" + "".join(f"./x/{i}.png,caption {i}\n" for i in range(12))).encode())
    daemon = box.daemon({"j": listing(box.path("d"), "jsonl"), "c": listing(box.path("d"), "csv"),
                         "n": listing(box.path("d"), "jsonl", files="picture=file_name, again=file_name"), "f": box.path("f")})
    plain = [line["fields"]["image"] for line in daemon.read("f", pipeline="random_resized_crop(4)", seed=3)]
    for name in ("j", "c"):
        lines = daemon.read(name, pipeline="image: random_resized_crop(4); text", seed=3)
        equal([line["fields"]["image"] for line in lines], plain, "pixels")
        equal([line["fields"]["text"]["text"] for line in lines], [f"caption {i}" for i in indices(lines)], "captions")
    lines = daemon.read("n", pipeline="picture: raw; again: raw", batch=5)
    for line in lines:
        equal({field["sha256"] for field in line["fields"].values()}, {sha256_of(box.path("d", "x", f"{line['index']}.png"))},
              "bytes of both fields")


@case("a file that is missing, a text that is not UTF-8 and half a surrogate pair are damaged samples; the others come")
def _(box):
    write(box.path("d", "a.wav"), b"sound a")
    rows = [{"p": "a.wav", "t": "x"}, {"p": "none.wav", "t": "y"}, {"p": "a.wav", "t": "\ud800"}, {"p": "a.wav", "t": "z"}]
    write(box.path("d", "l.jsonl"), "".join(json.dumps(row) + "\n" for row in rows).encode())
    write(box.path("t", "l.txt"), b"good\n\xff\xfe bad\nfine\n")
    daemon = box.daemon({"d": listing(box.path("d"), "jsonl", files="sound=p"), "t": listing(box.path("t"), "text")})
    lines = daemon.read("d", pipeline="sound; t", shuffle=False, on_error="skip", batch=4)
    equal([line["fields"]["t"]["text"] for line in lines], ["x", "z"], "texts")
    equal(indices(daemon.read("t", pipeline="text", shuffle=False, on_error="skip", batch=3)), [0, 2], "lines")
    contains(daemon.dlctl("errors", "d").stdout, "l.jsonl:1", "l.jsonl:2", "surrogate")
    contains(daemon.dlctl("errors", "t").stdout, "l.txt:1", "UTF-8")


@case("whole numbers of 2^63 or more are uint64 in JSON and CSV; beside negative numbers they are refused, or text")
def _(box):
    numbers = [7, 2 ** 63, 2 ** 64 - 1, 0, 2 ** 63 - 1]
    write(box.path("d.jsonl"), "".join(json.dumps({"a": n, "b": i - 2}) + "\n" for i, n in enumerate(numbers)).encode())
    write(box.path("d.csv"), "".join(f"{n},{i - 2}\n" for i, n in enumerate(["a", *numbers])).replace("a,-2", "a,b").encode())
    write(box.path("mixed.jsonl"), b'{"a": 9223372036854775808}\n{"a": 1}\n{"a": -1}\n')
    write(box.path("mixed.csv"), b"a\n9223372036854775808\n-1\n")
    daemon = box.daemon({f"{name}-{kind}": listing(box.path(f"{name}.{kind}"), kind) for name in ("d", "mixed") for kind in ("jsonl", "csv")})
    for kind in ("jsonl", "csv"):
        fields = [line["fields"] for line in daemon.read(f"d-{kind}", shuffle=False)]
        equal([(row["a"]["dtype"], row["a"]["value"], row["b"]["dtype"]) for row in fields], [("uint64", n, "int64") for n in numbers], kind)
    daemon.refused("mixed-jsonl", "negative number in mixed.jsonl line 3", "2^63 or more in mixed.jsonl line 1", "raw =")
    equal([line["fields"]["a"]["text"] for line in daemon.read("mixed-csv", shuffle=False)], ["9223372036854775808", "-1"], "text")


@case("a number of stored JSON that is not finite is a damaged sample; as JSON it comes as it is written")
def _(box):
    write(box.path("d.jsonl"), "".join(json.dumps({"o": {"x": x}}) + "\n" for x in (1.5, float("nan"), 2, [float("inf")])).encode())
    daemon = box.daemon({"d": listing(box.path("d.jsonl"), "jsonl")})
    lines = daemon.read("d", pipeline="o: json(x) to(float32)", shuffle=False, on_error="skip")
    equal([line["index"] for line in lines], [0, 2], "samples")
    contains(daemon.dlctl("errors", "d").stdout, "NaN is not a finite number")
    equal([line["fields"]["o"]["text"] for line in daemon.read("d", pipeline="o: json(x)", shuffle=False)],
          ["1.5", "NaN", "2", "[Infinity]"], "as JSON")


@case("a listing that grew is indexed again, and so is one whose pictures came later")
def _(box):
    write(box.path("d", "a.jsonl"), b'{"p":"x.png"}\n{"p":"y.png"}\n')
    write(box.path("d", "x.png"), png(3, 3, identity_pixels(1, 3, 3)))
    daemon = box.daemon({"d": listing(box.path("d"), "jsonl", files="image=p")})
    equal(indices(daemon.read("d", pipeline="image: raw", shuffle=False, on_error="skip", batch=2)), [0], "before")
    write(box.path("d", "y.png"), png(3, 3, identity_pixels(2, 3, 3)))
    within(20, lambda: indices(daemon.read("d", pipeline="image: raw", shuffle=False, on_error="skip", batch=2)) == [0, 1],
           "the picture that came later")
    with open(box.path("d", "a.jsonl"), "ab") as file:
        file.write(b'{"p":"x.png"}\n')
    within(20, lambda: indices(daemon.read("d", pipeline="image: raw", shuffle=False, on_error="skip", batch=3)) == [0, 1, 2],
           "the line that was added")


@case("what cannot be served is refused with file and line, and what to do; the others are served")
def _(box):
    cases = {
        "json": (b'{"a":1}\n{"a":}\n', "jsonl", {}, "line 2", "a value was expected"),
        "mixed": (b'{"a":1}\n{"a":"x"}\n', "jsonl", {}, "a number", "line 1", "a string", "line 2", "raw ="),
        "huge": (b'{"a":18446744073709551616}\n', "jsonl", {}, "line 1", "64 bits"),
        "rest": (b'[{"a": 1},\n{"a": 2}]\n\0{"a": 3}', "jsonl", {}, "line 3", "byte 0x00 where the end of the file was expected"),
        "nul": (b'[{"a": 1},\n\0]', "jsonl", {}, "line 2", "byte 0"),
        "nan": (json.dumps({"a": float("nan")}).encode(), "jsonl", {}, "line 1", "NaN", "null", "raw ="),
        "within": (json.dumps({"a": [1, float("-inf")]}).encode(), "jsonl", {}, "line 1", "-Infinity", "raw ="),
        "beyond": (b'{"a":[1]}\n{"a":[1e999]}\n', "jsonl", {}, "line 2", "1e999", "raw ="),
        "utf": (b'{"a":"\xff"}\n', "jsonl", {}, "line 1", "UTF-8"),
        "climbs": (b'{"p":"../../etc/passwd"}\n', "jsonl", {"files": "f=p"}, "line 1", '".."'),
        "absolute": (b'{"p":"/etc/passwd"}\n', "jsonl", {"files": "f=p"}, "line 1", "absolute"),
        "nocolumn": (b'{"p":"x"}\n', "jsonl", {"files": "f=q"}, '"q"', "no sample"),
        "gzip": (b"\x1f\x8b\x08\x00", "jsonl", {}, "gzip", "unpack"),
        "deep": (b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}\n", "jsonl", {}, "line 1", "128"),
        "cells": (b"a,b\n1,2\n3\n", "csv", {}, "line 3", "1 cells for 2 columns"),
        "quote": (b'a,b\n1,"x\n', "csv", {}, "line 2", "quote"),
        "twice": (b"a,a\n1,2\n", "csv", {}, "two columns", '"a"'),
        "empty": (b"", "text", {}, "no sample"),
    }
    datasets = {"good": listing(box.path("good.jsonl"), "jsonl")}
    write(box.path("good.jsonl"), b'{"a":1}\n{"a":2}\n')
    for name, (content, kind, more, *_) in cases.items():
        write(box.path(f"{name}.{kind}"), content)
        datasets[name] = listing(box.path(f"{name}.{kind}"), kind, **more)
    daemon = box.daemon(datasets)
    for name, (_, kind, _, *words) in cases.items():
        daemon.refused(name, f"{name}.{kind}" if name != "nocolumn" else "", *words)
    check_sequence(daemon.read("good"), 2)


main()
