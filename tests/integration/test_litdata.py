#!/usr/bin/env python3
"""Folders of chunks of LitData: those of its own writer in tests/vectors/litdata, sample by sample as its own reader reads them; and
what is refused, with chunk and item."""
import json
import os
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, equal, main, write
from vector_sets import check_set_in_full, expected_in

VECTORS = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors", "litdata"))


def litdata(path, **options):
    return {"path": path, "format": "litdata", **options}


@case("every leaf of the writer's own items is what its own reader reads, in torch's order, for one rank and for three")
def _(box):
    names = ("records", "pairs", "numbers")
    daemon = box.daemon({name: litdata(os.path.join(VECTORS, name)) for name in names})
    for name in names:
        check_set_in_full(daemon, name, expected_in(os.path.join(VECTORS, f"{name}.jsonl")))


@case("items of text and numbers alone, which the writer stores as Arrow tables, also compressed ones")
def _(box):
    names = ("rows", "rows-zstd", "rows-many")
    daemon = box.daemon({name: litdata(os.path.join(VECTORS, name)) for name in names})
    for name in names:
        check_set_in_full(daemon, name, expected_in(os.path.join(VECTORS, f"{name}.jsonl")))


@case("tokens are documents, or the blocks that LitData's TokensLoader cuts")
def _(box):
    folder = os.path.join(VECTORS, "tokens")
    daemon = box.daemon({"tokens": litdata(folder), "blocks": litdata(folder, block_size=4),
                         "named": litdata(folder, fields="c = tokens"), "named-blocks": litdata(folder, block_size=4, fields="c = tokens"),
                         "other": litdata(folder, fields="c = 0")})
    for name in ("tokens", "blocks"):
        check_set_in_full(daemon, name, expected_in(os.path.join(VECTORS, f"{name}.jsonl")))
    for name, like in (("named", "tokens"), ("named-blocks", "blocks")):
        equal([line["fields"]["c"] for line in daemon.read(name, shuffle=False)],
              [line["fields"]["tokens"] for line in daemon.read(like, shuffle=False)], name)
    daemon.refused("other", "fields", "tokens")


@case("pictures are decoded, and numbers come with them")
def _(box):
    daemon = box.daemon({"d": litdata(os.path.join(VECTORS, "records"))})
    lines = daemon.read("d", pipeline="image: resize(8); label; of.a", shuffle=False)
    equal([line["fields"]["label"]["value"] for line in lines], [7 - i for i in range(7)], "labels")
    equal([line["fields"]["of.a"]["value"] for line in lines], [i * i for i in range(7)], "nested")


def chunk(items):
    begins = [4 * (len(items) + 2)]
    for item in items:
        begins.append(begins[-1] + len(item))
    return struct.pack(f"<I{len(begins)}I", len(items), *begins) + b"".join(items)


def item(*leaves):
    return struct.pack(f"<{len(leaves)}I", *map(len, leaves)) + b"".join(leaves)


def index_of(content, data_format, keys=None, n_items=2, dim=None, **config):
    leaf = {"type": None, "context": None, "children_spec": []}
    spec = {"type": "builtins.dict", "context": json.dumps(keys), "children_spec": [leaf] * len(keys)} if keys else leaf
    return {"chunks": [{"chunk_bytes": len(content), "chunk_size": n_items, "dim": dim, "filename": "c.bin"}],
            "config": {"compression": None, "encryption": None, "data_format": data_format,
                       "data_spec": json.dumps([1, spec]), **config}}


@case("what is damaged or cannot be served is refused with chunk and item, and what to do")
def _(box):
    number = struct.pack("<q", 5)
    good = chunk([item(b"one", number), item(b"two", number)])
    short = chunk([item(b"one", number), item(b"two", b"xx")])
    lying = chunk([item(b"one", number), struct.pack("<2I", 2 ** 32 - 1, 8) + b"two" + number])

    def numpy_of(kind, *shape, data=b""):
        return struct.pack(f"<{2 + len(shape)}I", kind, len(shape), *shape) + data

    shapes = chunk([item(numpy_of(4, 2, 2, data=b"abcd")), item(numpy_of(4, 2, 3, data=b"abcdef"))])
    bomb = chunk([item(numpy_of(4, *[2 ** 31] * 4, data=b"a")), item(b"")])
    deep = chunk([item(numpy_of(4, *[1] * 9, data=b"a")), item(b"")])
    cases = {
        "cut": (good[:-1], index_of(good, ["bytes", "int"], ["x", "y"]), "c.bin", "index.json says"),
        "short": (short, index_of(short, ["bytes", "int"], ["x", "y"]), "item 1", "y has 2 bytes"),
        "lying": (lying, index_of(lying, ["bytes", "int"], ["x", "y"]), "item 1", "longer than itself"),
        "shapes": (shapes, index_of(shapes, ["numpy"], ["m"]), "c.bin: item 1: the array m is uint8 [2, 3], and uint8 [2, 2] before it",
                   "pad", "write it as bytes"),
        "bomb": (bomb, index_of(bomb, ["numpy"], ["m"]), "item 0", "array m"),
        "deep": (deep, index_of(deep, ["numpy"], ["m"]), "item 0", "array m"),
        "pickle": (good, index_of(good, ["pickle", "int"], ["x", "y"]), "the leaf x of an item", "pickled"),
        "unknown": (good, index_of(good, ["mine", "int"], ["x", "y"]), 'stored as "mine"'),
        "packed": (good, index_of(good, ["bytes", "int"], ["x", "y"], compression="zstd"), "compression", "without it"),
        "secret": (good, index_of(good, ["bytes", "int"], ["x", "y"], encryption={"algorithm": "fernet"}), "encryption"),
        "leaves": (good, index_of(good, ["bytes"], ["x", "y"]), "more leaves"),
        "names": (good, index_of(good, ["bytes", "int"], ["x", "x"]), "two leaves of an item have the name x"),
        "long": (good, index_of(good, ["bytes", "int"], ["x", "y" * 300]), "at most 255 bytes"),
        "tokens": (good, index_of(good, ["bytes", "int"], ["x", "y"], dim=3), "not arrays"),
        "spec": (good, index_of(good, ["bytes", "int"], data_spec="[1"), "index.json"),
        "climbs": (good, {**index_of(good, ["bytes", "int"], ["x", "y"]), "chunks": [
            {"chunk_bytes": 1, "chunk_size": 1, "dim": None, "filename": "../c.bin"}]}, "not a path within"),
    }
    datasets = {}
    for name, (content, index, *_) in cases.items():
        write(box.path("d", name, "c.bin"), content)
        write(box.path("d", name, "index.json"), json.dumps(index).encode())
        datasets[name] = litdata(box.path("d", name))
    shutil.copytree(os.path.join(VECTORS, "pairs"), box.path("d", "blocks"))
    daemon = box.daemon({**datasets, "blocks": litdata(box.path("d", "blocks"), block_size=4)})
    for name, (_, _, *words) in cases.items():
        daemon.refused(name, *words, pipeline={"pickle": "x;", "unknown": "x;", "short": "y;"}.get(name, ""))
    daemon.refused("blocks", "block_size is for chunks of tokens")


@case("leaves that fields leaves out may be stored in any way")
def _(box):
    good = chunk([item(b"one", struct.pack("<q", 1)), item(b"", struct.pack("<q", 2))])
    write(box.path("d", "c.bin"), good)
    write(box.path("d", "index.json"), json.dumps(index_of(good, ["pickle", "int"], ["x", "y"])).encode())
    daemon = box.daemon({name: {**litdata(box.path("d")), **more} for name, more in (("all", {}), ("some", {"fields": "n=y"}), ("it", {"fields": "x"}))})
    for refused, pipeline in (("all", "x; y"), ("it", "")):
        daemon.refused(refused, "the leaf x of an item", "pickled", pipeline=pipeline)
    equal([line["fields"]["n"]["value"] for line in daemon.read("some", shuffle=False)], [1, 2], "numbers")


@case("two leaves of one name, and those for which a dataset has no room, are listed, and the others are served")
def _(box):
    keys = [f"c{i:04}" for i in range(1030)]
    datasets, more = {}, {"some": {"fields": "c0000, c1029, c1028"}, "pair": {"fields": "x"}}
    for name, names in (("wide", keys), ("some", keys), ("twice", ["x", "y", "x"]), ("pair", ["x", "y", "x"])):
        content = chunk([item(*(f"{i}{key}".encode() for key in names)) for i in range(2)])
        write(box.path(name, "c.bin"), content)
        write(box.path(name, "index.json"), json.dumps(index_of(content, ["str"] * len(names), names)).encode())
        datasets[name] = litdata(box.path(name), **more.get(name, {}))
    daemon = box.daemon(datasets)
    for name, served in (("wide", ["c0000", "c1023"]), ("some", ["c0000", "c1028", "c1029"]), ("twice", ["y"])):
        lines = daemon.read(name, pipeline="; ".join(served) + ";", shuffle=False)
        equal([{key: line["fields"][key]["text"] for key in served} for line in lines], [{key: f"{i}{key}" for key in served} for i in range(2)], name)
    daemon.refused("wide", "more than 1024 columns", 'fields = ', pipeline="c0000; c1024")
    daemon.refused("twice", "two leaves of an item have the name x; rename one", pipeline="x; y")
    daemon.refused("pair", "two leaves of an item have the name x; rename one")


@case("rows that are cut, miscounted, missing or of another kind are refused with the chunk; a changed index.json is read again")
def _(box):
    def changed(name, change):
        folder = shutil.copytree(os.path.join(VECTORS, "rows"), box.path("d", name))
        with open(os.path.join(folder, "chunk-0-1.bin"), "rb") as file:
            content = bytearray(file.read())
        with open(os.path.join(folder, "index.json"), encoding="utf-8") as file:
            index = json.load(file)
        content = change(content, index) or content
        write(os.path.join(folder, "chunk-0-1.bin"), content)
        write(os.path.join(folder, "index.json"), json.dumps(index).encode())
        return litdata(folder)

    def ended(n_table):
        return lambda content, index: content[:-12] + struct.pack("<I", n_table) + content[-8:]

    def miscount(content, index):
        index["chunks"][1]["chunk_size"] += 1

    def hide(content, index):
        index["config"]["encryption"] = {"algorithm": "fernet"}

    with open(os.path.join(VECTORS, "rows-many", "chunk-0-1.bin"), "rb") as file:
        other = file.read()
    cases = {
        "cut": (lambda content, index: content[:-1], "chunk-0-1.bin", "no rows at its end"),
        "long": (ended(1 << 30), "chunk-0-1.bin", "said to take 1073741824 bytes"),
        "short": (ended(64), "chunk-0-1.bin", "Arrow"),
        "none": (ended(0), "chunk-0-1.bin", "said to take 0 bytes"),
        "miscounted": (miscount, "chunk-0-1.bin", "has 13 rows", "says 14"),
        "other": (lambda content, index: other, "chunk-0-1.bin", "has 10 rows"),
        "secret": (hide, "encryption"),
    }
    names = list(cases)
    datasets = {name: changed(name, cases[name][0]) for name in names}
    folder = shutil.copytree(os.path.join(VECTORS, "rows"), box.path("d", "good"))
    daemon = box.daemon({**datasets, "good": litdata(folder), "some": litdata(folder, fields="n, caption=text")})
    for name in names:
        daemon.refused(name, *cases[name][1:])
    line = daemon.read("some", shuffle=False)[7]
    equal(sorted(line["fields"]), ["caption", "n"], "fields that are wanted")
    with open(os.path.join(folder, "index.json"), encoding="utf-8") as file:
        index = json.load(file)
    index["chunks"] = index["chunks"][:1]
    write(os.path.join(folder, "index.json"), json.dumps(index).encode())
    daemon.stop()
    equal(len(box.daemon({"good": litdata(folder)}, name="again").read("good")), 13, "samples of the first chunk alone")


main()
