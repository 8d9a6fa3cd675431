#!/usr/bin/env python3
"""Columns with names that are longer than a field's can be, or that a pipeline cannot contain: served, chosen and renamed by the names
that the files have."""
import io
import json
import os
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, contains, equal, main, write
from pyclient import trainer
from tfrecords import example, ints, record_file

LONG = "steps/observation/natural_language_embedding"
OTHER = "steps/observation/natural_language_instruction"  # begins as the first one, as far as both are kept
BLANK = "Finding Labels (é)"
N = 9


def rows():
    return [{LONG: 3 * i, OTHER: 100 - i, "n": i} for i in range(N)]


def values(lines):
    return [{name: field["value"] for name, field in line["fields"].items()} for line in lines]


def tar_of(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


@case("long names are cut and stay different; fields and pipelines find them as the files have them")
def _(box):
    write(box.path("d.jsonl"), "".join(json.dumps(row) + "\n" for row in rows()).encode())
    write(box.path("d.csv"), "".join(",".join(map(str, row)) + "\n" for row in [[LONG, OTHER, "n"], *([*row.values()] for row in rows())]).encode())
    write(box.path("d.tfrecord"), record_file([example(**{name: ints(value) for name, value in row.items()}) for row in rows()]))
    paths = {name: box.path(f"d.{name}") for name in ("jsonl", "csv", "tfrecord")}
    chosen = {f"{name}-chosen": {"path": path, "format": "auto", "fields": f"b={OTHER}, a={LONG}|nothing"} for name, path in paths.items()}
    daemon = box.daemon({**{name: {"path": path, "format": "auto"} for name, path in paths.items()}, **chosen})
    for name in paths:
        read = values(daemon.read(name, shuffle=False))
        cut = sorted(key for key in read[0] if key != "n")
        equal([len(key) for key in cut], [31, 31], f"lengths of {cut}")
        equal([key[:23] for key in cut], ["steps/observation/natu-"] * 2, "beginnings")
        equal(sorted(map(sorted, ([row[key] for key in cut] for row in read))), sorted(sorted([3 * i, 100 - i]) for i in range(N)), "values")
        equal(values(daemon.read(f"{name}-chosen", shuffle=False)), [{"b": 100 - i, "a": 3 * i} for i in range(N)], f"{name}, renamed")
        named = values(daemon.read(name, shuffle=False, pipeline=f"{OTHER}; n"))
        equal([sorted(row.values()) for row in named], [sorted([100 - i, i]) for i in range(N)], f"{name}, named in the pipeline")
    equal({key for name in paths for key in values(daemon.read(name, limit=1))[0]}, {*cut, "n"}, "every format cuts alike")
    contains(daemon.dlctl("look", "csv", "1").stdout, *cut)


@case("Python shows the bytes of a column's name that are not UTF-8 as os.fsdecode() does")
def _(box):
    write(box.path("d.csv"), b"n\xe9,c\xff,c\xfe\n1,2,3\n")
    write(box.path("d.tar"), tar_of([("a.cls", b"4"), (os.fsdecode(b"a.t\xe9xt"), b"hi")]))
    daemon = box.daemon({name: {"path": box.path(f"d.{name}"), "format": "auto"} for name in ("csv", "tar")})
    trainer(box, daemon, """
        def first(name):
            return next(iter(dlclient.Loader(name, batch_size=1)))
        names = [os.fsdecode(name) for name in (b"n\\xe9", b"c\\xff", b"c\\xfe")]
        batch = first("csv")
        assert [batch[name].item() for name in names] == [1, 2, 3] and list(batch.copy()) == names, list(batch.copy())
        assert bytes(first("tar")[os.fsdecode(b"t\\xe9xt")][0]) == b"hi"
    """)


@case("a field that is called like a step is read without a pipeline, by its name, and shown")
def _(box):
    write(box.path("one.jsonl"), "".join(json.dumps({"raw": f"text {i}"}) + "\n" for i in range(N)).encode())
    write(box.path("two.jsonl"), "".join(json.dumps({"raw": i, "decode": f"text {i}"}) + "\n" for i in range(N)).encode())
    write(box.path("tar", "a.tar"), tar_of([(f"{i:03d}.{name}", f"{name} {i}".encode()) for i in range(N) for name in ("raw", "txt")]))
    daemon = box.daemon({**{name: {"path": box.path(f"{name}.jsonl"), "format": "jsonl"} for name in ("one", "two")},
                         "tar": {"path": box.path("tar"), "format": "webdataset", "fields": "raw"}})
    equal([line["fields"]["raw"]["text"] for line in daemon.read("one", shuffle=False)], [f"text {i}" for i in range(N)], "one field")
    equal([sorted(line["fields"]) for line in daemon.read("two", shuffle=False)], [["decode", "raw"]] * N, "two fields")
    equal([line["fields"]["raw"]["shape"] for line in daemon.read("tar", shuffle=False)], [[5]] * N, "stored bytes")
    equal([line["fields"]["raw"]["value"] for line in daemon.read("two", fields="raw", shuffle=False)], [*range(N)], "by --fields")
    equal([line["fields"]["decode"]["text"] for line in daemon.read("two", pipeline="decode;", shuffle=False, limit=1)], ["text 0"], "by name")
    contains(daemon.dlctl("look", "one", "1").stdout, "text 1")
    daemon.refused("one", '"raw()" for the step', '"raw;" for the field', pipeline="raw")


@case("names with blanks and letters of other alphabets are renamed by fields")
def _(box):
    write(box.path("d.csv"), (f",{BLANK}\n" + "".join(f"{i},{i * i}\n" for i in range(N))).encode())
    write(box.path("e.csv"), (f",{BLANK}\n" + "".join(f"{i},{i * i}\n" for i in range(N, 2 * N))).encode())
    daemon = box.daemon({"d": {"path": box.path("{d,e}.csv"), "format": "csv"},
                         "r": {"path": box.path("{d,e}.csv"), "format": "csv", "fields": f"label = {BLANK}, at=column0"}})
    equal(values(daemon.read("d", shuffle=False)), [{"column0": i, BLANK: i * i} for i in range(2 * N)], "a column without a name, as pandas writes it")
    equal(values(daemon.read("r", shuffle=False)), [{"label": i * i, "at": i} for i in range(2 * N)], "renamed")


@case("long endings of an archive's members, and a number that some samples do not have")
def _(box):
    ending = "a_very_long_ending_of_a_member.with.dots.json"
    members = [(f"{i}.{kind}", content) for i in range(N)
               for kind, content in ((ending, b"{}"), *((("cls", b"%d" % i),) if i % 3 else ()))]
    write(box.path("d.tar"), tar_of(members))
    daemon = box.daemon({"d": {"path": box.path("d.tar"), "format": "auto", "fields": f"meta={ending}, cls"}})
    lines = daemon.read("d", pipeline="meta: raw; cls", shuffle=False, batch=4)
    equal([line["fields"]["meta"]["shape"] for line in lines], [[2]] * N, "members")
    equal([line["fields"]["cls"] and line["fields"]["cls"]["value"] for line in lines], [i if i % 3 else None for i in range(N)], "numbers")
    write(box.path("b.tar"), tar_of([("0.cls", b"7"), ("1.txt", b"x"), ("2.cls", b"seven")]))
    daemon = box.daemon({"b": {"path": box.path("b.tar"), "format": "auto"}})
    daemon.refused("b", "2", "field cls", "not a whole number", pipeline="cls", shuffle=False, batch=3)
    equal([line["index"] for line in daemon.read("b", pipeline="cls", shuffle=False, batch=3, on_error="skip")], [0, 1], "the others")


main()
