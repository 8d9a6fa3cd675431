#!/usr/bin/env python3
"""Files of one dataset that differ: in the sequence of their columns, in which ones they have, in the types of numbers, texts and lists, and
in columns that have no value and so no type. What pyarrow joins is joined, with its types; anything else is listed."""
import hashlib
import json
import os
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, case, contains, equal, main, write

VECTORS = os.path.join(ROOT, "tests", "vectors", "differing")
FORMS = {"number": "q", "small": "h", "real": "d", "only_first": "b", "flag": "?", "both.x": "q"}
DTYPES = {"q": "int64", "h": "int16", "d": "float64", "b": "int8", "?": "bool"}


def rows():
    with open(os.path.join(VECTORS, "rows.jsonl"), encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            both = row.pop("both") or {"x": None, "y": None}
            yield {**row, **{f"both.{name}": value for name, value in both.items()}}


def check(field, name, value, what):
    if value is None:
        equal(field, None, what)
    elif name in FORMS:
        equal((field["value"], field["dtype"]), (value, DTYPES[FORMS[name]]), what)
    elif name == "list":
        equal((field["dtype"], field["shape"], field["sha256"]),
              ("int64", [len(value)], hashlib.sha256(struct.pack(f"<{len(value)}q", *value)).hexdigest()), what)
    elif name == "texts":
        equal(field["texts"], value, what)
    else:
        equal(field["text"], value, what)


@case("files of Arrow and of Parquet that differ are one dataset, with the types that pyarrow gives them together, in any sequence of files")
def _(box):
    columns = ("word", "number", "small", "real", "only_first", "nothing", "list", "texts", "both.x", "both.y", "flag")
    datasets = {}
    for kind in ("arrow", "parquet"):
        shutil.copytree(os.path.join(VECTORS, kind), box.path(kind))
        os.makedirs(box.path(f"{kind}-turned"))
        for i in range(2):
            shutil.copy(os.path.join(VECTORS, kind, f"{i}.{kind}"), box.path(f"{kind}-turned", f"{1 - i}.{kind}"))
        datasets.update({name: {"path": box.path(name), "format": kind} for name in (kind, f"{kind}-turned")})
    daemon = box.daemon(datasets)
    wanted = list(rows())
    for name in datasets:
        turned = name.endswith("turned")
        named = [column for column in columns if not turned or column != "only_first"]
        lines = daemon.read(name, batch=1, pipeline="; ".join(named), shuffle=False)
        for line, row in zip(lines, wanted[2:4] + wanted[:2] if turned else wanted):
            for column in named:
                check(line["fields"][column], column, row[column], f"{column} of row {line['index']} of {name}")
        equal(len(lines), 4 if turned else 6, name)
        for column, reason in (("clash", "another type than in the first file"), ("when", "another type than in the first file"),
                               ("lossy", "one of its numbers is not exact")):
            daemon.refused(name, f'field "{column}" cannot be served', reason, f".{name.split('-')[0]}", pipeline=f"word; {column}")
            contains(daemon.dlctl("datasets", name).stdout, column, reason)


@case("files of csv that differ are one dataset: columns in any sequence, that a file does not have, and of other types of numbers")
def _(box):
    write(box.path("t", "a.csv"), b'n,word,only\n1,one,1\n2,"",2\n')
    write(box.path("t", "b.csv"), b"word,x,n\nthree,5,3\n,,4\n")
    write(box.path("t", "c.csv"), b"x,n\nsix,5.5\n")
    write(box.path("other", "a.csv"), b"n\n1\n")
    write(box.path("other", "b.csv"), b"id,name\n1,x\n")
    write(box.path("unnamed", "a.csv"), b"a,b,c,\n1,2,3,\n")
    write(box.path("unnamed", "b.csv"), b"4,5,6,\n7,8,9,\n")
    daemon = box.daemon({name: {"path": box.path(name), "format": "csv"} for name in ("t", "other", "unnamed")})
    lines = [line["fields"] for line in daemon.read("t", batch=1, pipeline="n; word; x; only", shuffle=False)]
    equal([(line["n"]["value"], line["n"]["dtype"]) for line in lines], [(i, "float64") for i in (1, 2, 3, 4, 5.5)], "n")
    for name, values in (("word", ["one", "", "three", "", None]), ("x", [None, None, "5", "", "six"])):
        equal([line[name] and line[name]["text"] for line in lines], values, name)
    equal([line["only"] and line["only"]["value"] for line in lines], [1, 2, None, None, None], "only")
    for name in ("other", "unnamed"):  # an empty cell is no name that both files have
        daemon.refused(name, "b.csv", "another table")


@case("values of a dictionary are read by its own type alone: structs of one, in some files or all, and a dictionary of two types are refused")
def _(box):
    daemon = box.daemon({name: {"path": os.path.join(VECTORS, name), "format": "arrow"} for name in ("structs", "media", "shared")})
    for name, ids in (("structs", [5, 7, 6, 8]), ("media", [5, 6])):
        equal([line["fields"]["id"]["value"] for line in daemon.read(name, batch=1, pipeline="id", shuffle=False)], ids, name)
    daemon.refused("structs", 'field "a.x" cannot be served', "another type than in the first file", pipeline="id; a.x")
    daemon.refused("media", 'field "image" cannot be served', pipeline="id; image")
    daemon.refused("shared", "columns of different types use dictionary 0", pipeline="c1")


main()
