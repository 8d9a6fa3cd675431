#!/usr/bin/env python3
"""Arrow files that pyarrow and datasets wrote (tests/vectors/arrow): each value of each row, splits, pictures inside and outside, and what
is refused."""
import hashlib
import json
import os
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, case, equal, expected_order, identity_pixels, indices, main, png, within, write
from pyclient import trainer
from resident import Resident

VECTORS = os.environ.get("ARROW_VECTORS", os.path.join(ROOT, "tests", "vectors", "arrow"))  # written anew by check-formats


def arrow(path, **more):
    return {"path": path, "format": "arrow", **more}


def copy(box, name):
    """A file or folder of the vectors, where it may be changed."""
    path = box.path(name)
    if os.path.exists(path):
        return path
    if os.path.isdir(os.path.join(VECTORS, name)):
        shutil.copytree(os.path.join(VECTORS, name), path)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(os.path.join(VECTORS, name), path)
    return path


def values(name):
    """What pyarrow reads of a file: the bytes of each row, column by column."""
    lines = []
    for listed in ("values.jsonl", "compressed.jsonl"):
        with open(os.path.join(VECTORS, listed), encoding="utf-8") as file:
            lines += [json.loads(line) for line in file]
    return {line["column"]: [None if row is None else bytes.fromhex(row) for row in line["rows"]] for line in lines
            if line["file"] == name}


def check_bytes(lines, columns):
    """Every field as its stored bytes; a scalar by its value."""
    for line in lines:
        for name, field in line["fields"].items():
            wanted = columns[name][line["index"]]
            if wanted is None or field is None:
                equal(field, wanted, f"{name} of sample {line['index']}")
            elif "sha256" in field:
                equal(field["sha256"], hashlib.sha256(wanted).hexdigest(), f"{name} of sample {line['index']}")
            else:
                equal(field["value"], scalar(wanted, field["dtype"]), f"{name} of sample {line['index']}")


def scalar(raw, dtype):
    kinds = {"bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I",
             "uint64": "Q", "float16": "e", "float32": "f", "float64": "d"}
    return struct.unpack("<" + kinds[dtype], raw)[0]


def saved(folder):
    """The rows of a folder of datasets, as the script that made it says."""
    rows = []
    for n, begin in {"saved": ((25, 0),), "splits/train": ((9, 0),), "splits/test": ((4, 50),)}[folder]:
        rows += [{"text": f"row {i} " + "äöü€𝄞"[i % 5] * (i % 9), "label": (begin + i) % 3, "score": i / 4,
                  "ids": list(range(begin, begin + i % 5))} for i in range(n)]
    return rows


def check_saved(lines, rows, **terms):
    equal(indices(lines), expected_order(len(rows), **terms), "order")
    for line in lines:
        row, fields = rows[line["index"]], line["fields"]
        equal([fields["label"]["value"], fields["score"]["value"]], [row["label"], row["score"]], "label, score")
        equal(fields["text"]["text"], row["text"], "text")
        ids = struct.pack(f"<{len(row['ids'])}i", *row["ids"])
        equal(fields["ids"]["sha256"], hashlib.sha256(ids).hexdigest(), "ids")


@case("numbers, text, bytes, lists, also of bools and of up to five levels, of both containers, with nulls, sliced, compressed, in several batches")
def _(box):
    names = [f"{kind}{variant}.arrow" for kind in ("scalars", "strings", "lists", "nested", "deep")
             for variant in ("", "-nulls", "-sliced", "-lz4", "-zstd")]
    names += ["replaced.arrow", "delta.arrow", "old.arrow", "old-file.arrow", "plain.feather", "lz4.feather", "zstd.feather"]
    daemon = box.daemon({name: arrow(copy(box, name)) for name in names})
    for name in names:
        columns = values(name)
        n = len(next(iter(columns.values())))
        lines = daemon.read(name, batch=7, seed=3)
        equal(indices(lines), expected_order(n, seed=3), "order")
        equal(set(lines[0]["fields"]), set(columns), "fields")
        check_bytes(lines, columns)


def lists_of_text(name):
    """What pyarrow reads of the lists of text of a file, column by column."""
    with open(os.path.join(VECTORS, "texts.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return {line["column"]: line["rows"] for line in lines if line["file"] == name}


def hash_of(texts):
    return hashlib.sha256(b"".join(text.encode() + b"\0" for text in texts)).hexdigest()


@case("lists of text of every kind of list and text, with nulls, sliced, compressed")
def _(box):
    names = [f"texts{variant}.arrow" for variant in ("", "-nulls", "-sliced", "-lz4", "-zstd")]
    daemon = box.daemon({name: arrow(copy(box, name)) for name in names})
    for name in names:
        columns = lists_of_text(name)
        equal(set(columns), {"words", "large", "view", "pair", "tags", "answers.text"}, "columns")
        lines = daemon.read(name, batch=7, seed=3)
        equal(indices(lines), expected_order(len(columns["words"]), seed=3), "order")
        for line in lines:
            for column, rows in columns.items():
                row = rows[line["index"]]
                equal(line["fields"][column], row if row is None else {"dtype": "texts", "shape": [len(row)],
                                                                       "sha256": hash_of(row), "texts": row},
                      f"{name}: {column} of sample {line['index']}")


@case("in Python, a list of text is a list of str, which outlives its batch")
def _(box):
    name = "texts-nulls.arrow"
    daemon = box.daemon({"d": arrow(copy(box, name))})
    read = trainer(box, daemon, """
        for copy in (False, True):
            lists = []
            for batch in dlclient.Loader("d", batch_size=5, shuffle=False, copy=copy):
                words = batch["words"]
                assert isinstance(words, dlclient.TextLists) and len(words) == batch.n_samples
                assert "lists of texts" in repr(batch), repr(batch)
                batch.release()
                lists += words
            out(lists)
    """)
    for lists in read:
        equal(lists, lists_of_text(name)["words"], "Python's lists")


@case("of a list of text, a null and what is not UTF-8 are refused by their row")
def _(box):
    daemon = box.daemon({name: arrow(copy(box, f"{name}.arrow")) for name in ("null-text", "no-utf8")})
    daemon.refused("null-text", 'column "words": row 1 of the batch', "empty text")
    daemon.refused("no-utf8", 'column "words": row 1 of the batch', "text 1 of its list is not UTF-8")


@case("columns that cannot be served are refused by their names")
def _(box):
    daemon = box.daemon({"d": arrow(copy(box, "structs.arrow"))})
    daemon.refused("d", 'field "price" cannot be served', 'column "price" is a decimal', pipeline="number; price")
    equal([line["fields"]["number"]["value"] for line in daemon.read("d", batch=4, pipeline="number", shuffle=False)], [1, 2, 3], "others")
    daemon = box.daemon({name: arrow(box.path("structs.arrow"), fields=fields) for name, fields in
                         {"struct": "both", "member": "x=both.x, both.y, number"}.items()})
    daemon.refused("struct", 'column "both" is a struct', 'as in "both.x"')
    for line in daemon.read("member", batch=2, shuffle=False):
        fields = line["fields"]
        equal((fields["x"]["value"], fields["both.y"]["text"]), (1, "a"), "members of a struct")


@case("fields names the columns that are wanted, and the others may be of any type")
def _(box):
    folder, loose = copy(box, "saved"), copy(box, "structs.arrow")
    daemon = box.daemon({"d": arrow(folder, fields="caption=text"), "none": arrow(folder, fields="txt"),
                         "loose": arrow(loose, fields="number")})
    lines = daemon.read("d", batch=4, seed=6)
    equal([line["fields"] for line in lines], [{"caption": line["fields"]["caption"]} for line in lines], "fields")
    rows = saved("saved")
    equal([line["fields"]["caption"]["text"] for line in lines], [rows[line["index"]]["text"] for line in lines], "texts")
    equal([line["fields"]["number"]["value"] for line in daemon.read("loose", batch=4, shuffle=False)], [1, 2, 3], "numbers")
    daemon.refused("none", "txt")


@case("split names one of several splits, or a part of a dataset")
def _(box):
    folder = copy(box, "splits")
    daemon = box.daemon({"train": arrow(folder, split="train"), "test": arrow(folder, split="test"),
                         "other": arrow(folder, split="validation"), "part": arrow(copy(box, "saved"), split="0:40%"),
                         "none": arrow(copy(box, "saved"), split="train"),
                         "named": arrow(os.path.join(VECTORS, "lists.arrow"), split="train")})
    for name in ("train", "test"):
        check_saved(daemon.read(name, batch=4, seed=5), saved(f"splits/{name}"), seed=5)
    check_saved(daemon.read("part", batch=4, shuffle=False), saved("saved")[:10], shuffle=False)
    daemon.refused("other", "validation", "train, test")
    daemon.refused("none", "no splits")
    daemon.refused("named", "lists.arrow", 'split = "train" chooses nothing')


@case("a rule in brackets after the name of a split: ranges, hashes, lists, torch's random_split; one index serves any rule")
def _(box):
    folder = copy(box, "splits")
    rules = {"first": "train[:60%]", "rest": "train[60%:]", "two": "train[2:4]", "hash": "train[hash(0:50%)]", "other": "train[hash(50%:)]",
             "random": "train[random_split(0.5,0.5; seed=1)[0]]", "half": "test[:50%]"}
    bad = {"far": ("train[0:10]", "of 9 samples"), "empty": ("train[]", 'no split "train[]"'), "open": ("train[0:50%", "choose one of: train, test"),
           "nobody": ("validation[0:50%]", 'no split "validation"'), "none": ("0:50%", "several splits")}
    daemon = box.daemon({name: arrow(folder, split=split) for name, split in [*rules.items(), *((name, split) for name, (split, _) in bad.items())]})
    train, test = saved("splits/train"), saved("splits/test")
    check_saved(daemon.read("first", batch=2, shuffle=False), train[:5], shuffle=False)
    check_saved(daemon.read("rest", batch=2, seed=3), train[5:], seed=3)
    check_saved(daemon.read("two", batch=2, shuffle=False), train[2:4], shuffle=False)
    check_saved(daemon.read("half", batch=2, shuffle=False), test[:2], shuffle=False)
    names = [len(daemon.read(name, batch=2)) for name in ("hash", "other", "random")]
    equal((names[0] + names[1], names[2]), (9, 5), "samples by hash, and of one half")
    for name, (_, words) in bad.items():
        daemon.refused(name, words)
    daemon.stop()
    daemon.datasets["rest"]["split"] = "train[4:]"
    daemon.write_config()
    daemon.start()
    check_saved(daemon.read("rest", batch=2, shuffle=False), train[4:], shuffle=False)
    equal(daemon.log().count(" rest: indexed"), 1, "times that it was indexed")


@case("text of columns that lie far apart is read column by column")
def _(box):
    path, apart = copy(box, "scattered.arrow"), 1 << 22
    columns = values("scattered.arrow")
    move_last_buffer(path, apart)
    daemon = box.daemon({"d": arrow(path)})
    lines = daemon.read("d", batch=7, seed=2)
    equal(indices(lines), expected_order(len(columns["a"]), seed=2), "order")
    check_bytes(lines, columns)
    n = int({row["name"]: row["value"] for row in daemon.status()["counters"]}["n_bytes_read"])
    if n > apart:
        raise AssertionError(f"{n} bytes were read")


def move_last_buffer(path, distance):
    """Puts zeroes in front of the last buffer of the only batch of a stream."""
    with open(path, "rb") as file:
        stream = file.read()
    at = 8 + struct.unpack_from("<i", stream, 4)[0]  # the schema has no body
    n_metadata = struct.unpack_from("<i", stream, at + 4)[0]
    metadata, body = bytearray(stream[at + 8:at + 8 + n_metadata]), stream[at + 8 + n_metadata:-8]
    last = [(begin, i) for i in range(0, n_metadata - 15, 8) for begin, n in [struct.unpack_from("<qq", metadata, i)]
            if n > 0 and begin > 0 and begin + (n + 7) // 8 * 8 == len(body)]
    length = [i for i in range(0, n_metadata - 7, 4) if struct.unpack_from("<q", metadata, i)[0] == len(body)]
    equal([len(last), len(length)], [1, 1], "places in the metadata")
    struct.pack_into("<q", metadata, last[0][1], last[0][0] + distance)
    struct.pack_into("<q", metadata, length[0], len(body) + distance)
    with open(path, "wb") as file:
        file.write(stream[:at + 8] + metadata + body[:last[0][0]] + bytes(distance) + body[last[0][0]:] + stream[-8:])


@case("what save_to_disk() wrote: files in the order of state.json, classes by name, any world size")
def _(box):
    daemon = box.daemon({"d": arrow(copy(box, "saved"))})
    rows = saved("saved")
    check_saved(daemon.read("d", batch=4, seed=1), rows, seed=1)
    for rank in range(3):
        check_saved(daemon.read("d", batch=4, seed=1, world=3, rank=rank), rows, seed=1, world=3, rank=rank)


@case("pictures inside the Arrow file are decoded to the pixels that datasets gives")
def _(box):
    daemon = box.daemon({"d": arrow(copy(box, "pictures"))})
    lines = daemon.read("d", batch=1, pipeline="image: decode; label", shuffle=False)
    for i, line in enumerate(lines):
        width = 8 + i % 3
        pixels = bytes([i * 5 % 256, i, 200]) * (width * 6)
        equal(line["fields"]["image"], {"dtype": "uint8", "shape": [6, width, 3], "sha256": hashlib.sha256(pixels).hexdigest()},
              f"picture {i}")
        equal(line["fields"]["label"]["value"], i, "label")
    equal(len(lines), 12, "samples")


@case("pictures that are files in the dataset's folder; a label of -1 is a number, not a class")
def _(box):
    path = copy(box, "outside.arrow")
    for i in range(6):
        write(box.path("pics", f"{i}.png"), png(8, 5, identity_pixels(i, 8, 5)))
    daemon = box.daemon({"d": arrow(path), "bad": arrow(copy(box, "climbing.arrow"))})
    lines = daemon.read("d", batch=1, pipeline="image: raw; label", shuffle=False)
    for i in range(6):
        with open(box.path("pics", f"{i}.png"), "rb") as file:
            equal(lines[i]["fields"]["image"]["sha256"], hashlib.sha256(file.read()).hexdigest(), f"picture {i}")
        equal(lines[i]["fields"]["label"]["value"], i % 2 - (i == 3) * 2, "label")
    equal([len(lines), lines[6]["fields"]["image"]], [7, None], "the row without a picture")
    daemon.refused("bad", "../0.png", "not within the dataset's folder", pipeline="image: raw")


@case("several splits need a name; files that differ, are cut or are missing are refused, naming them")
def _(box):
    splits, cut, mixed, gone = copy(box, "splits"), copy(box, "saved"), box.path("mixed"), box.path("gone")
    with open(os.path.join(cut, "data-00001-of-00002.arrow"), "r+b") as file:
        file.truncate(600)
    write(os.path.join(mixed, "a.arrow"), read("scalars.arrow"))
    write(os.path.join(mixed, "b.arrow"), read("lists.arrow"))
    write(os.path.join(gone, "state.json"), json.dumps({"_data_files": [{"filename": "../x.arrow"}]}).encode())
    write(box.path("none", "README"), b"")
    paths = {"splits": splits, "cut": cut, "mixed": mixed, "gone": gone, "none": box.path("none"),
             "packed": copy(box, "pictures-zstd.arrow")}
    daemon = box.daemon({name: arrow(path) for name, path in paths.items()})
    daemon.refused("splits", "several splits", "train, test")
    daemon.refused("cut", "data-00001-of-00002.arrow", "is cut")
    daemon.refused("mixed", "b.arrow", "has none of the columns")
    daemon.refused("gone", "../x.arrow", "not a file of the folder")
    daemon.refused("none", "has no Arrow file")
    daemon.refused("packed", "column \"image\" holds pictures", "without compression", pipeline="image: raw")


@case("batches that unpack to more than an eighth of memory_limit are refused before memory is taken, however many there are")
def _(box):
    names = ("bomb-batch", "bomb-batches")
    daemon = box.daemon({name: arrow(copy(box, name + ".arrow")) for name in names}, memory_limit="64MiB")
    with Resident(daemon, 64):
        daemon.refused("bomb-batch", "bomb-batch.arrow", "batch 0", "more than 8 MiB", "raise memory_limit")
        # Which of the two limits comes first, that of copies or that of all memory, depends on how many threads unpack.
        daemon.refused("bomb-batches", "bomb-batches", "more than ", "raise memory_limit")
    daemon.stop()
    daemon = box.daemon({"d": arrow(copy(box, "bomb-batches.arrow"))}, memory_limit="3GiB")
    [lengths] = trainer(box, daemon, """
        out([len(batch["text"][0]) for batch in dlclient.Loader("d", batch_size=1, slots=2, shuffle=False)])
    """)
    equal(lengths, [4 << 20] * 64, "with memory for them")


@case("rows in the sequence of an indices file, as datasets saved them before 1.15: shuffled, selected, of a split")
def _(box):
    folder = os.path.join(ROOT, "tests", "vectors", "arrow_indices")
    shutil.copytree(folder, box.path("d"))
    daemon = box.daemon({"shuffled": arrow(box.path("d", "shuffled")), "selected": arrow(box.path("d", "selected")),
                         "train": arrow(box.path("d", "splits"), split="train"), "test": arrow(box.path("d", "splits"), split="test")})
    for name in daemon.datasets:
        with open(os.path.join(folder, f"{name}.jsonl"), encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        check_saved(daemon.read(name, batch=4, seed=1), rows, seed=1)
    equal([line["index"] for line in daemon.read("selected", pipeline="text", shuffle=False)], [0, 1, 2, 3, 4], "rows that come twice")
    path = box.path("d", "selected", "indices.arrow")
    with open(path, "rb") as file:
        good = file.read()
    for content, words in ((good.replace(struct.pack("<Q", 24), struct.pack("<Q", 25)), ("names the row 25", "has 25 rows")),
                           (good[:-80], ("indices.arrow", "is cut")), (read("scalars.arrow"), ("not one column of uint64",))):
        write(path, content)
        within(30, lambda: all(word in refusal(daemon, "selected") for word in words), f"refused: {words}")
    write(path, good)
    within(30, lambda: not refusal(daemon, "selected"), "served again")
    for change, words in (({"_indices_files": [{"filename": "../x"}]}, ("not a file of the folder",)),
                          ({"_data_files": [{"filename": "dataset.arrow"}] * 2}, ("flatten_indices()",))):
        with open(box.path("d", "shuffled", "state.json"), encoding="utf-8") as file:
            state = {**json.load(file), **change}
        write(box.path("wrong", "state.json"), json.dumps(state).encode())
        box.daemon({"wrong": arrow(box.path("wrong"))}).refused("wrong", *words)


def refusal(daemon, name):
    reader = daemon.reader(name)
    reader.finish(20)
    return reader.errors()


def read(name):
    with open(os.path.join(VECTORS, name), "rb") as file:
        return file.read()


main()
