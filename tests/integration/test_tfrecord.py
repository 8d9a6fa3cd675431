#!/usr/bin/env python3
"""TFRecord files: those of TensorFlow's own writer in tests/vectors/tfrecord, sample by sample as its own parsers read them;
order, resume and several ranks; and what is refused, with file and record."""
import gzip
import hashlib
import os
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, equal, expected_order, identity_pixels, indices, main, png, write
from tfrecords import example, floats, ints, record_file, texts, unpacked_ints
from vector_sets import check_set_in_full, expected_in

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors", "tfrecord")


def tfrecord(path):
    return {"path": path, "format": "tfrecord"}


@case("every feature of TensorFlow's own files is what its own parsers read, in torch's order, for one rank and for three")
def _(box):
    sets = ("photos", "tokens", "sequences", "several", "lines")
    folders = {name: os.path.realpath(os.path.join(VECTORS, name)) for name in sets}
    daemon = box.daemon({name: tfrecord(folders[name]) for name in sets})
    for name in sets:
        check_set_in_full(daemon, name, expected_in(os.path.join(VECTORS, name, "expected.jsonl")))


@case("of several values that are not all text, the step text makes a list of texts, and names the record that has none")
def _(box):
    folder = os.path.realpath(os.path.join(VECTORS, "several"))
    daemon = box.daemon({"d": tfrecord(folder)})
    daemon.read("d", pipeline="id", limit=1)
    kinds = {field["field"]: field["kind"] for field in daemon.objects("datasets", "d")[0]["fields"]}
    equal(kinds, {"digests": "bytes", "id": "value", "mixed": "bytes", "names": "texts", "tags": "texts", "__key__": "name"}, "kinds")
    daemon.refused("d", "several.tfrecord-00001-of-00002:3", "field mixed", "text 1 of its list is not UTF-8", pipeline="mixed: text", batch=8)
    lines = daemon.read("d", pipeline="mixed: text; tags: text", on_error="skip", shuffle=False, batch=3)
    equal(indices(lines), [0, 1, 2, 3, 4, 6, 7], "the others")
    for line in lines:
        equal(line["fields"]["mixed"]["texts"], ["a", "b"], "texts")
    daemon.refused("d", "only text and raw apply", pipeline="tags: json(a)")


@case("lists of empty texts, and empty lists, have room in batches of any size")
def _(box):
    rows = [example(t=texts(*[b""] * (i % 7))) for i in range(40)]
    write(box.path("d", "x.tfrecord"), record_file(rows))
    write(box.path("e", "x.tfrecord"), record_file([example(n=ints(i), t=texts(*[b""] * (2 if i == 0 else 0))) for i in range(300)]))
    daemon = box.daemon({"d": tfrecord(box.path("d")), "e": tfrecord(box.path("e"))})
    for batch in (1, 3, 40):
        for on_error in ("fail", "substitute"):
            lines = daemon.read("d", batch=batch, on_error=on_error)
            equal([line["fields"]["t"]["texts"] for line in lines], [[""] * (i % 7) for i in expected_order(40)], "texts")
    lines = daemon.read("e", batch=300)
    equal([line["fields"]["t"]["shape"] for line in lines], [[2 if i == 0 else 0] for i in expected_order(300)], "shapes")


@case("a field comes in whole batches: numbers stacked, what varies ragged, what is absent as null")
def _(box):
    rows = [example(n=ints(i), box=floats(*range(4 * (i % 3))), name=texts(b"n%d" % i),
                    **({"maybe": ints(i, i)} if i % 2 else {})) for i in range(10)]
    write(box.path("d", "x.tfrecord"), record_file(rows))
    daemon = box.daemon({"d": tfrecord(box.path("d"))})
    lines = daemon.read("d", pipeline="n; box; name; maybe", batch=4)
    equal([line["fields"]["n"]["value"] for line in lines], expected_order(10), "numbers")
    for line in lines:
        i, fields = line["index"], line["fields"]
        equal(fields["box"], told("float32", struct.pack(f"<{4 * (i % 3)}f", *range(4 * (i % 3))), [4 * (i % 3)]), "box")
        equal(fields["name"]["text"], f"n{i}", "name")
        equal(fields["maybe"], told("int64", struct.pack("<2q", i, i), [2]) if i % 2 else None, "maybe")


def told(dtype, elements, shape):
    return {"dtype": dtype, "shape": shape, "sha256": hashlib.sha256(elements).hexdigest()}


@case("a folder, one of its files, and a pattern; files are taken by name, what lies beside them is not, and samples have names")
def _(box):
    for k in range(3):
        write(box.path("d", f"train-{k:05d}-of-00003"), record_file(example(n=ints(10 * k + i)) for i in range(4)))
        write(box.path("d", f"train-{k:05d}-of-00003.idx"), b"0 30\n30 30\n")
    write(box.path("d", "README.txt"), b"not a record")
    write(box.path("d", ".x.tfrecord.tmp"), b"not a record")
    write(box.path("d", "dataset_info.tfrecord.json"), b"{}")
    write(box.path("d", "zzz.tfrecords"), record_file([]))
    daemon = box.daemon({"all": tfrecord(box.path("d")), "one": tfrecord(box.path("d", "train-00001-of-00003")),
                         "two": tfrecord(box.path("d", "train-0000{2,0}-of-00003"))})

    def numbers(name):
        lines = daemon.read(name, pipeline="n; __key__", shuffle=False)
        return [(line["fields"]["n"]["value"], line["fields"]["__key__"]["sha256"]) for line in lines]

    def expected(shards):
        return [(10 * k + i, hashlib.sha256(f"train-{k:05d}-of-00003:{i}".encode()).hexdigest()) for k in shards for i in range(4)]

    equal(numbers("all"), expected(range(3)), "the folder")
    equal(numbers("one"), expected([1]), "one file")
    equal(numbers("two"), expected([2, 0]), "a pattern")


@case("pictures are decoded without being named, and a damaged one is an error of its sample")
def _(box):
    photos = [identity(i) for i in range(6)]
    write(box.path("d", "x.tfrecord"), record_file(
        example(**{"image/encoded": texts(photo), "image/class/label": ints(i)}) for i, photo in enumerate(photos)))
    broken = photos[2][:40]
    write(box.path("e", "x.tfrecord"), record_file(
        example(**{"image/encoded": texts(photo if i != 2 else broken), "image/class/label": ints(i)})
        for i, photo in enumerate(photos)))
    for i, photo in enumerate(photos):
        write(box.path("f", "c", f"{i}.png"), photo)
    daemon = box.daemon({"d": tfrecord(box.path("d")), "e": tfrecord(box.path("e")), "f": box.path("f")})
    plain = daemon.read("f", pipeline="random_resized_crop(4)", seed=3)
    lines = daemon.read("d", pipeline="random_resized_crop(4)", seed=3)
    equal([line["fields"]["image/encoded"]["sha256"] for line in lines],
          [line["fields"]["image"]["sha256"] for line in plain], "pixels")
    equal([line["fields"]["image/class/label"]["value"] for line in lines], indices(lines), "labels")
    daemon.refused("e", "x.tfrecord", pipeline="random_resized_crop(4)", on_error="fail")


def identity(number):
    return png(9, 7, identity_pixels(number, 9, 7))


@case("what is damaged or cannot be served is refused with file and record, and what to do")
def _(box):
    good = [example(n=ints(i), t=texts(b"text")) for i in range(3)]
    whole = record_file(good)
    n = len(whole) // 3
    many = range(100)
    cases = {
        "flipped": (whole[:n + 20] + bytes([whole[n + 20] ^ 1]) + whole[n + 21:], "record 1 at byte", "checksum of its data"),
        "length": (whole[:n] + b"\xff" + whole[n + 1:], "record 1 at byte", "checksum of its length"),
        "cut": (whole[:-1], "record 2", "was cut"),
        "gzip": (gzip.compress(whole), "gzip", "gunzip"),
        "zlib": (zlib.compress(whole), "zlib"),
        "other": (b"this is not a TFRecord file at all", "not a TFRecord file"),
        "types": (record_file([example(n=ints(1)), example(n=floats(1))]), "record 1", "feature n holds floats", "record 0",
                  "integers"),
        "plain": (whole + record_file([b"a line"]), "record 3", "neither a tf.train.Example"),
        "unpacked": (record_file([example(n=unpacked_ints(*many))]), "record 0", "not packed"),
        "empty": (b"", "no record"),
    }
    datasets = {}
    for name, (content, *_) in cases.items():
        write(box.path("d", name, "x.tfrecord"), content)
        datasets[name] = tfrecord(box.path("d", name))
    os.makedirs(box.path("d", "none"))
    write(box.path("d", "none", "readme.txt"), b"x")
    daemon = box.daemon({**datasets, "none": tfrecord(box.path("d", "none"))})
    for name, (_, *words) in cases.items():
        daemon.refused(name, "x.tfrecord" if name != "empty" else "1 files", *words)
    daemon.refused("none", "TFRecord file", "train-00000-of-00010")


main()
