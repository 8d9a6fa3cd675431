#!/usr/bin/env python3
"""Folders of shards of mosaicml-streaming: those of its own writer in tests/vectors/mds, sample by sample as its own reader reads
them; and what is refused, with shard and sample."""
import hashlib
import json
import os
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, equal, main, write
from vector_sets import check_set_in_full, expected_in

VECTORS = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors", "mds"))


def mds(path):
    return {"path": path, "format": "mds"}


@case("every column of the writer's own shards is what its own reader reads, in torch's order, for one rank and for three")
def _(box):
    daemon = box.daemon({name: mds(os.path.join(VECTORS, name)) for name in ("all", "fixed")})
    for name in ("all", "fixed"):
        check_set_in_full(daemon, name, expected_in(os.path.join(VECTORS, f"{name}.jsonl")))


@case("pictures are decoded without being named, and numbers come with them")
def _(box):
    shutil.copytree(os.path.join(VECTORS, "all"), box.path("d"))
    daemon = box.daemon({"d": mds(box.path("d"))})
    lines = daemon.read("d", pipeline="image: resize(8); label; half", shuffle=False)
    equal([line["fields"]["label"]["value"] for line in lines], [1000 - 300 * i for i in range(8)], "labels")
    equal([line["fields"]["half"]["value"] for line in lines], [i / 4 for i in range(8)], "halves")


def shard(samples, table=None, n=None):
    """A shard of one column "x" of bytes and one "y" of int."""
    items = [struct.pack("<I", len(x)) + x + struct.pack("<q", y) for x, y in samples]
    config = b'{"version": 2}'
    begins = [4 * (len(items) + 2) + len(config)]
    for item in items:
        begins.append(begins[-1] + len(item))
    table = begins if table is None else table(begins)
    head = struct.pack(f"<I{len(table)}I", len(items) if n is None else n, *table)
    return head + config + b"".join(items)


def index_of(content, samples=3, **changes):
    one = {"column_encodings": ["bytes", "int"], "column_names": ["x", "y"], "column_sizes": [None, 8], "compression": None,
           "format": "mds", "hashes": [], "raw_data": {"basename": "s.mds", "bytes": len(content), "hashes": {}},
           "samples": samples, "size_limit": 1 << 26, "version": 2, "zip_data": None}
    one.update(changes)
    return {"version": 2, "shards": [one]}


GOOD = [(b"one", 1), (b"", 2), (b"three", 3)]


@case("what is damaged or cannot be served is refused with shard and sample, and what to do")
def _(box):
    good = shard(GOOD)
    longer = good[:36] + struct.pack("<I", 2 ** 32 - 1) + good[40:]
    cases = {
        "cut": (good[:-1], index_of(good), "s.mds", "index.json says"),
        "count": (shard(GOOD, n=2), index_of(good), "s.mds", "has 2 samples, but index.json says 3"),
        "many": (good, index_of(good, samples=2 ** 32 - 1), "s.mds", "index.json says"),
        "table": (shard(GOOD, table=lambda t: [t[0], t[2], t[1], t[3]]), index_of(good), "sample 2", "outside"),
        "beyond": (shard(GOOD, table=lambda t: t[:-1] + [2 ** 32 - 1]), index_of(good), "outside"),
        "before": (shard(GOOD, table=lambda t: [0] + t[1:]), index_of(good), "sample 0", "outside"),
        "sizes": (shard(GOOD, table=lambda t: [t[0], t[1] + 1] + t[2:]), index_of(good), "sample 0", "shorter than itself"),
        "pickle": (good, index_of(good, column_encodings=["pkl", "int"]), "column x", "pickled", "ndarray"),
        "snappy": (None, index_of(good, compression="snappy", zip_data={"basename": "s.mds.snappy", "bytes": 3, "hashes": {}}),
                   "compressed (snappy)", "compression=None", "does not unpack"),
        "packed": (None, index_of(good, compression="zstd:7", zip_data={"basename": "s.mds.zstd", "bytes": 3, "hashes": {}}),
                   "compressed (zstd:7)", "compression=None"),
        "unknown": (good, index_of(good, column_encodings=["mine", "int"]), 'encoding "mine"'),
        "size": (good, index_of(good, column_sizes=[None, 4]), "column y", "4 bytes"),
        "missing": (None, index_of(good), "s.mds", "No such file"),
        "climbs": (good, index_of(good, raw_data={"basename": "../s.mds", "bytes": len(good), "hashes": {}}), "../s.mds",
                   "not a path within"),
        "absolute": (good, index_of(good, raw_data={"basename": "/etc/passwd", "bytes": 1, "hashes": {}}), "not a path within"),
        "version": (good, {**index_of(good), "version": 3}, "version 3"),
        "other": (good, index_of(good, format="json"), 'format "json"'),
        "none": (good, {"version": 2, "shards": []}, "names no shard"),
        "twice": (good, index_of(good, column_names=["x", "x"]), "two columns"),
        "shape": (good, index_of(good, column_encodings=["bytes", "ndarray:float32:9999999999,9999999999"]), "column y"),
    }
    datasets = {}
    for name, (content, index, *_) in cases.items():
        if content is not None:
            write(box.path("d", name, "s.mds"), content)
        write(box.path("d", name, "index.json"), json.dumps(index).encode())
        datasets[name] = mds(box.path("d", name))
    write(box.path("d", "longer", "s.mds"), longer)
    write(box.path("d", "longer", "index.json"), json.dumps(index_of(longer)).encode())
    write(box.path("d", "text", "index.json"), b"[1, 2")
    os.makedirs(box.path("d", "empty"))
    daemon = box.daemon({**datasets, **{name: mds(box.path("d", name)) for name in ("longer", "text", "empty")}})
    for name, (_, _, *words) in cases.items():
        daemon.refused(name, *words, pipeline="x; y")
    daemon.refused("longer", "sample 0")
    daemon.refused("text", "index.json")
    daemon.refused("empty", "index.json", "No such file")


def pil(mode, width, height, pixels):
    return struct.pack("<3I", width, height, len(mode)) + mode.encode() + bytes(pixels)


@case("pixels of a picture that was made in memory, in the modes of Pillow, are decoded as Pillow converts them; what does not fit is damaged")
def _(box):
    wide = [300, 7, 65535, 0, 255, 256]
    modes = {  # the bytes of 3 by 2 pixels, and what they are as RGB
        "RGB": (range(18), list(range(18))),
        "L": ([9, 8, 7, 6, 5, 4], [level for level in (9, 8, 7, 6, 5, 4) for _ in range(3)]),
        "1": ([0b10100000, 0b01000000], [level for level in (255, 0, 255, 0, 255, 0) for _ in range(3)]),
        "RGBA": ([part for i in range(6) for part in (i, 2 * i, 3 * i, 77 + i)], [part for i in range(6) for part in (i, 2 * i, 3 * i)]),
        "LA": ([part for i in range(6) for part in (i, 200 + i)], [i for i in range(6) for _ in range(3)]),
        "CMYK": ([part for i in range(6) for part in (0, 255, 0, i)], [part for i in range(6) for part in (255 - i, 0, 255 - i)]),
        "I;16": (struct.pack("<6H", *wide), [min(level, 255) for level in wide for _ in range(3)]),
    }
    contents = {mode: pil(mode, 3, 2, pixels) for mode, (pixels, _) in modes.items()}
    bad = {"palette": (pil("P", 3, 2, range(6)), "palette that was not stored"), "cut": (contents["RGB"][:-1], "unknown picture format"),
           "longer": (contents["L"] + b"x", "unknown picture format"), "none": (pil("L", 0, 0, []), "unknown picture format"),
           "bomb": (pil("1", 2 ** 32 - 8, 1, bytes(9)), "unknown picture format"), "mode": (pil("F", 1, 1, bytes(4)), "unknown picture format")}
    datasets = {}
    for name, content in {**contents, **{name: content for name, (content, _) in bad.items()}}.items():
        name = name.replace(";", "-")
        write(box.path("d", name, "s.mds"), shard([(content, 1)]))
        write(box.path("d", name, "index.json"), json.dumps(index_of(shard([(content, 1)]), samples=1, column_encodings=["pil", "int"])).encode())
        datasets[name] = mds(box.path("d", name))
    daemon = box.daemon(datasets)
    for mode, (_, pixels) in modes.items():
        line = daemon.read(mode.replace(";", "-"), pipeline="x: decode; y")[0]["fields"]
        equal(line["x"], {"dtype": "uint8", "shape": [2, 3, 3], "sha256": hashlib.sha256(bytes(pixels)).hexdigest()}, mode)
        line = daemon.read(mode.replace(";", "-"), pipeline="x: center_crop(1:2)")[0]["fields"]
        equal(line["x"]["sha256"], hashlib.sha256(bytes(pixels[0:6])).hexdigest(), f"a crop of {mode}")
    alpha = [part for i in range(6) for part in (i, 2 * i, 3 * i, 77 + i)]
    equal(daemon.read("RGBA", pipeline="x: decode(mode=RGBA)")[0]["fields"]["x"]["sha256"], hashlib.sha256(bytes(alpha)).hexdigest(), "alpha")
    equal(daemon.read("palette", pipeline="x: decode(mode=P)")[0]["fields"]["x"]["sha256"], hashlib.sha256(bytes(range(6))).hexdigest(), "indices")
    equal(daemon.read("I-16", pipeline="x: decode(mode=I;16)")[0]["fields"]["x"]["sha256"], hashlib.sha256(struct.pack("<6H", *wide)).hexdigest(), "16 bits")
    for name, (_, words) in bad.items():
        daemon.refused(name, words, pipeline="x: decode")


@case("columns that fields leaves out may hold anything: pickles, unknown encodings, arrays of any shapes")
def _(box):
    arrays = shard([(struct.pack("<BBBB", 34, 2 << 2, 1, i) + bytes(4 * i), i) for i in range(1, 4)])  # 1 by 1, 1 by 2, 1 by 3
    for name, content, encoding in (("pickle", shard(GOOD), "pkl"), ("unknown", shard(GOOD), "mine"), ("arrays", arrays, "ndarray")):
        write(box.path(name, "s.mds"), content)
        write(box.path(name, "index.json"), json.dumps(index_of(content, column_encodings=[encoding, "int"])).encode())
        daemon = box.daemon({"all": mds(box.path(name)), "some": {**mds(box.path(name)), "fields": "n=y"}, "it": {**mds(box.path(name)), "fields": "y, z=x"}})
        for refused, pipeline in (("all", "x; y"), ("it", "")):
            daemon.refused(refused, *(("s.mds: sample 1: the array x is float32 [1, 2], and float32 [1, 1] before it", "pad")
                                      if name == "arrays" else ("column x",)), pipeline=pipeline)
        equal([line["fields"]["y"]["value"] for line in daemon.read("all", shuffle=False, pipeline="y")], [1, 2, 3], name)
        equal([line["fields"] for line in daemon.read("some", shuffle=False)],
              [{"n": {"dtype": "int64", "shape": [], "value": value}} for value in (1, 2, 3)], name)


@case("arrays of one length a shard, and another length in each: the first dimension varies; another second one is refused in its shard")
def _(box):
    def write_set(name, widths):
        shards = [shard([(struct.pack("<BBBB", 34, 2 << 2, 2 + k, width) + bytes(4 * (2 + k) * width), i) for i in range(3)])
                  for k, width in enumerate(widths)]
        whole = index_of(shards[0], column_encodings=["ndarray", "int"])
        whole["shards"] = []
        for k, content in enumerate(shards):
            write(box.path(name, f"s{k}.mds"), content)
            one = index_of(content, column_encodings=["ndarray", "int"])["shards"][0]
            whole["shards"].append({**one, "raw_data": {**one["raw_data"], "basename": f"s{k}.mds"}})
        write(box.path(name, "index.json"), json.dumps(whole).encode())
    write_set("good", [2] * 8)
    write_set("bad", [2] * 5 + [3, 2, 4])
    daemon = box.daemon({name: mds(box.path(name)) for name in ("good", "bad")})
    equal([line["fields"]["x"]["shape"] for line in daemon.read("good", batch=1, shuffle=False)],
          [[2 + k, 2] for k in range(8) for _ in range(3)], "shapes")
    daemon.refused("bad", "s5.mds: sample 0: the array x is float32 [7, 3]", pipeline="x")


@case("shards may differ in the sequence of their columns, in which ones they have, and in the types of numbers; another encoding is listed")
def _(box):
    shards = [  # encodings and sizes by name; samples
        ({"n": ("int", 8), "text": ("str", None), "x": ("int8", 1), "big": ("int", 8), "odd": ("str", None), "only": ("uint8", 1)},
         [(1, b"one", -3, 1 << 60 | 1, b"a", 7), (-2, b"", 5, 2, b"b", 8)]),
        ({"more": ("bytes", None), "text": ("str", None), "odd": ("int", 8), "x": ("uint8", 1), "big": ("float64", 8), "n": ("int32", 4)},
         [(b"skipped", b"drei", 4, 200, 0.5, -70000)]),
        ({"text": ("str", None), "n": ("int", 8), "x": ("float32", 4), "odd": ("str", None)}, [(b"vier", 1 << 40, 0.25, b"c")]),
        ({"odd": ("pkl", None), "n": ("int", 8)}, [(b"pickled", 9)])]
    forms = {"int": "q", "int8": "b", "uint8": "B", "int32": "i", "float64": "d", "float32": "f"}
    index = {"version": 2, "shards": []}
    for k, (columns, samples) in enumerate(shards):
        items = [b"".join([struct.pack("<I", len(value)) for value in sample if isinstance(value, bytes)] +
                          [value if isinstance(value, bytes) else struct.pack("<" + forms[encoding], value)
                           for value, (encoding, _) in zip(sample, columns.values())]) for sample in samples]
        begins = [4 * (len(items) + 2)]
        for item in items:
            begins.append(begins[-1] + len(item))
        content = struct.pack(f"<I{len(begins)}I", len(items), *begins) + b"".join(items)
        write(box.path("d", f"{k}.mds"), content)
        one = index_of(content, samples=len(items), column_names=list(columns), column_encodings=[encoding for encoding, _ in columns.values()],
                       column_sizes=[size for _, size in columns.values()])["shards"][0]
        index["shards"].append({**one, "raw_data": {**one["raw_data"], "basename": f"{k}.mds"}})
    write(box.path("d", "index.json"), json.dumps(index).encode())
    daemon = box.daemon({"d": mds(box.path("d")), "some": {**mds(box.path("d")), "fields": "words=text, n"}})
    names = ("n", "text", "x", "only")
    lines = daemon.read("d", batch=1, pipeline="; ".join(names), shuffle=False)
    equal([[field and field.get("value", field.get("text")) for field in (line["fields"][name] for name in names)] for line in lines],
          [[1, "one", -3, 7], [-2, "", 5, 8], [-70000, "drei", 200, None], [1 << 40, "vier", 0.25, None], [9, None, None, None]], "values")
    equal([lines[0]["fields"][name]["dtype"] for name in ("n", "x", "only")], ["int64", "float64", "uint8"], "dtypes")
    equal([line["fields"]["words"] and line["fields"]["words"]["text"] for line in daemon.read("some", batch=1, shuffle=False)],
          ["one", "", "drei", "vier", None], "words")
    daemon.refused("d", 'field "odd" cannot be served', "another encoding in shard 1", pipeline="n; odd")
    daemon.refused("d", 'field "big" cannot be served', "one of its numbers is not exact", "0.mds: sample 0", pipeline="n; big")
    daemon.refused("d", "more", pipeline="n; more")


@case("of more columns than a dataset has, the first ones are served, the others are listed, and fields chooses any of them")
def _(box):
    names = [f"c{i}" for i in range(1030)]
    item = struct.pack("<1030B", *(i % 256 for i in range(1030)))
    content = struct.pack("<3I", 1, 12, 12 + len(item)) + item
    write(box.path("d", "s.mds"), content)
    write(box.path("d", "index.json"), json.dumps(index_of(content, samples=1, column_names=names, column_encodings=["uint8"] * 1030,
                                                           column_sizes=[1] * 1030)).encode())
    daemon = box.daemon({"d": mds(box.path("d")), "last": {**mds(box.path("d")), "fields": "c1029, c0"}})
    fields = daemon.read("d", pipeline="c0; c1023")[0]["fields"]
    equal([fields["c0"]["value"], fields["c1023"]["value"]], [0, 255], "the first and the last")
    daemon.refused("d", 'field "c1024" cannot be served', "more than 1024 columns", "fields", pipeline="c0; c1024")
    equal(daemon.read("last")[0]["fields"]["c1029"]["value"], 1029 % 256, "by fields")


@case("of more columns than a dataset has, those that differ in size lie where their own sample says")
def _(box):
    names, ends = [f"c{i}" for i in range(1100)], [("abc", "defgh"), ("ijklm", "nop")]
    items = [struct.pack("<1100I", 200000, *[0] * 1097, len(one), len(two)) + b"x" * 200000 + (one + two).encode() for one, two in ends]
    content = struct.pack("<4I", 2, 16, 16 + len(items[0]), 16 + len(items[0]) + len(items[1])) + b"".join(items)
    write(box.path("d", "s.mds"), content)
    write(box.path("d", "index.json"), json.dumps(index_of(content, samples=2, column_names=names, column_encodings=["str"] * 1100,
                                                           column_sizes=[None] * 1100)).encode())
    daemon = box.daemon({"d": {**mds(box.path("d")), "fields": "c1098, c1099"}})
    equal([tuple(line["fields"][name]["text"] for name in names[-2:]) for line in daemon.read("d", batch=1, shuffle=False)], ends, "texts")


@case("a changed index.json is another dataset")
def _(box):
    write(box.path("d", "s.mds"), shard(GOOD))
    write(box.path("d", "index.json"), json.dumps(index_of(shard(GOOD))).encode())
    daemon = box.daemon({"d": mds(box.path("d"))})
    equal([line["fields"]["y"]["value"] for line in daemon.read("d", pipeline="y", shuffle=False)], [1, 2, 3], "numbers")
    daemon.stop()
    write(box.path("d", "index.json"), json.dumps(index_of(shard(GOOD), column_names=["x", "z"])).encode())
    daemon.start()
    equal([line["fields"]["z"]["value"] for line in daemon.read("d", pipeline="z", shuffle=False)], [1, 2, 3], "numbers")


main()
