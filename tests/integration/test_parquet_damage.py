#!/usr/bin/env python3
"""Parquet files that no writer writes: each number that may lie does so, and is refused with the file, the row group and the column."""
import gzip
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, equal, main, write
from parquet_bytes import (BYTE_ARRAY, DATA_2, DICTIONARY, FIXED, GZIP, INT32, INT64, OPTIONAL, REPEATED, REQUIRED, RLE_DICTIONARY,
                           SNAPPY, binary, column, counted, element, file, i32, i64, numbers, page, record, row, run, texts, varint)
from resident import Resident

BROTLI, LZ4_RAW = 4, 7


def refuse(box, files):
    """Each is {name: (bytes, parts of the message)}."""
    for name, (data, _) in files.items():
        write(box.path(f"{name}.parquet"), data)
    daemon = box.daemon({name: {"path": box.path(f"{name}.parquet"), "format": "parquet"} for name in files})
    for name, (_, parts) in files.items():
        daemon.refused(name, f"{name}.parquet", *parts)
    return daemon


def values_of(box, data, pipeline=None):
    write(box.path("good.parquet"), data)
    lines = box.daemon({"d": {"path": box.path("good.parquet"), "format": "parquet"}}).read("d", batch=1, shuffle=False, pipeline=pipeline)
    return [{name: field and field.get("value", field.get("text", field)) for name, field in line["fields"].items()} for line in lines]


def plain(values, **more):
    return column("x", page(numbers(values), len(values)), len(values), **more)


def indices(values, dictionary, n_dictionary=None, width=8, pages=1):
    raw = bytes([width]) + b"".join(run(value, 1, (width + 7) // 8) for value in values)
    head = page(numbers(dictionary), len(dictionary) if n_dictionary is None else n_dictionary, kind=DICTIONARY) * pages
    about = {9: i64(4 + len(head)), 11: i64(4)}
    return column("x", head + page(raw, len(values), RLE_DICTIONARY), len(values), about=about)


def named(name, values, form="<q", **more):
    return column(name, page(numbers(values, form), len(values)), len(values), **more)


@case("files may have their columns in another sequence, more or fewer of them, and numbers of other widths; another type is refused by name")
def _(box):
    words = {"kind": BYTE_ARRAY, "schema": [element("c", BYTE_ARRAY, s6=i32(0))]}
    for name, columns in {
            "a": [named("a", [1, 2], "<i", kind=INT32), named("b", [1 << 40, 4]), column("c", page(texts([b"x", b"y"]), 2), 2, **words),
                  named("d", [8, 9])],
            "b": [named("e", [0]), column("c", page(texts([b"z"]), 1), 1, **words), named("a", [-(1 << 40)]), named("b", [-5], "<i", kind=INT32),
                  column("d", page(texts([b"no"]), 1), 1, kind=BYTE_ARRAY)],
            "c": [named("b", [6])]}.items():
        write(box.path("set", f"{name}.parquet"), file(columns, len(columns[0]["pages"]) and {"a": 2, "b": 1, "c": 1}[name]))
    daemon = box.daemon({"d": {"path": box.path("set"), "format": "parquet"}})
    lines = daemon.read("d", batch=1, pipeline="a; b; c", shuffle=False)
    equal([[(field or {}).get("value", (field or {}).get("text")) for field in (line["fields"][name] for name in "abc")] for line in lines],
          [[1, 1 << 40, "x"], [2, 4, "y"], [-(1 << 40), -5, "z"], [None, 6, None]], "values")
    equal({line["fields"]["b"]["dtype"] for line in lines}, {"int64"}, "the wider type")
    daemon.refused("d", 'field "d" cannot be served', "b.parquet: column", "another type than in the first file", pipeline="b; d")


@case("what the helper writes is served when nothing in it lies")
def _(box):
    equal(values_of(box, file([plain([1, -2, 3])], 3)), [{"x": 1}, {"x": -2}, {"x": 3}], "plain")
    equal(values_of(box, file([indices([1, 0, 1], [5, 6])], 3)), [{"x": 6}, {"x": 5}, {"x": 6}], "a dictionary")
    equal(values_of(box, file([column("t", page(texts([b"a", b"bc"]), 2), 2, BYTE_ARRAY, schema=[element("t", BYTE_ARRAY, s6=i32(0))])], 2)),
          [{"t": "a"}, {"t": "bc"}], "text")


@case("places, lengths and counts of the footer")
def _(box):
    good = [1, 2, 3]
    refuse(box, {
        "offset": (file([plain(good, about={9: i64(10 ** 12)})], 3), ["row group 0", 'column "x"', "outside the file"]),
        "negative": (file([plain(good, about={9: i64(-8)})], 3), ["outside the file"]),
        "bytes": (file([plain(good, about={7: i64(1 << 62)})], 3), ["outside the file"]),
        "no-bytes": (file([plain(good, about={7: None})], 3), ["outside the file"]),
        "values": (file([plain(good, about={5: i64(-1)})], 3), ["contradicts the schema"]),
        "type": (file([plain(good, about={1: i32(INT32)})], 3), ["contradicts the schema"]),
        "more-rows": (file([plain(good)], 4), ["has fewer rows than its row group"]),
        "fewer-rows": (file([plain(good)], 2), ["has more rows than its row group"]),
        "sum": (file([plain(good)], 3, footer={3: i64(5)}), ["said to have 5 rows", "its row groups have 3"]),
        "huge": (file([plain(good)], 1 << 40), ["claims to have 1099511627776 rows"]),
        "below-zero": (file([plain(good)], 3, group={3: i64(-3)}), ["no number of rows"]),
        "no-chunks": (file([plain(good)], 3, group={1: None}), ["no list of columns"]),
        "two-chunks": (file([plain(good)], 3, group={1: row([record({}), record({})])}), ["has 2 columns, but the schema has 1"]),
        "codec": (file([plain(good, codec=3)], 3), ["compressed with LZO"]),
        "unknown-codec": (file([plain(good, codec=77)], 3), ["compressed with something unknown"]),
        "key": (file([plain(good, chunk={8: record({}), 3: None})], 3), ["is encrypted"]),
        "elsewhere": (file([plain(good, chunk={1: binary("/etc/passwd")})], 3), ["lies in another file"]),
        "encrypted": (file([plain(good)], 3, footer={8: record({1: record({})})}), ["is encrypted"])})


def group(name, n, repetition=REQUIRED, **more):
    return {3: i32(repetition), 4: binary(name), 5: i32(n), **{int(key[1:]): value for key, value in more.items()}}


def nested(depth):
    kind, raw = record({})
    for _ in range(depth):
        kind, raw = record({1: (kind, raw)})
    return kind, raw


@case("the schema: children that are not there, groups within groups, types and widths that do not exist")
def _(box):
    leaf = element("x", INT64)
    deep = [group(f"g{i}", 1) for i in range(50)] + [leaf]
    refuse(box, {
        "children": (file([plain([1])], 1, n_columns=7), ["schema is not complete"]),
        "negative": (file([plain([1])], 1, n_columns=-1), ["group of -1 columns"]),
        "huge": (file([plain([1])], 1, n_columns=1 << 30), ["group of 1073741824 columns"]),
        "roots": (file([plain([1], schema=[leaf, leaf])], 1), ["several roots"]),
        "deep": (file([plain([1], schema=deep)], 1), ["more than 32 levels"]),
        "bottom": (file([plain([1])], 1, footer={9: nested(5000)}), ["footer cannot be read"]),
        "type": (file([plain([1], schema=[element("x", 9)])], 1), ["unknown type 9"]),
        "width": (file([plain([1], schema=[element("x", FIXED, s2=i32(0))])], 1), ["values of 0 bytes"]),
        "wide": (file([plain([1], schema=[element("x", FIXED, s2=i32(1 << 30))])], 1), ["values of 1073741824 bytes"]),
        "repetition": (file([plain([1], schema=[element("x", INT64, 3)])], 1), ["no repetition"]),
        "name": (file([plain([1], schema=[element(b"\xff", INT64)])], 1), ["not UTF-8"]),
        "twice": (file([plain([1]), plain([2])], 1), ['two columns have the name "x"']),
        "list-of-groups": (file([plain([1], schema=[group("x", 1, s6=i32(3)), group("array", 1, REPEATED), leaf])], 1),
                           ['column "x" is a list of', "cannot be served"])})


@case("pages: lengths, counts, indices, levels and checksums")
def _(box):
    three = numbers([1, 2, 3])

    def one(raw, n=3, **more):
        return file([column("x", raw, n, **more)], 3)

    levels = {"repetition": OPTIONAL}
    refuse(box, {
        "long": (one(page(three, 3, more={2: i32(1 << 30), 3: i32(1 << 30)})), ["more than its column"]),
        "other": (one(page(three, 3, more={2: i32(99)})), ["page at byte 4 is damaged"]),
        "minus": (one(page(three, 3, more={3: i32(-1)})), ["page at byte 4 is damaged"]),
        "count": (one(page(three, 9)), ["more values than its column"]),
        "few": (one(page(three[:-1], 3)), ["too few values"]),
        "none": (one(b""), ["page at byte"]),
        "sum": (one(page(three, 3, more={4: i32(12345)})), ["does not have its checksum"]),
        "index": (file([indices([2], [5, 6])], 1), ["a value is not in its dictionary"]),
        "indices": (file([indices([1, 1], [5, 6], width=40)], 2), ["more than 32 bits"]),
        "dictionary": (file([indices([1], [5, 6], n_dictionary=9)], 1), ["the dictionary is shorter"]),
        "dictionaries": (file([indices([1], [5, 6], pages=2)], 1), ["two dictionaries"]),
        "no-dictionary": (one(page(b"\1" + run(0, 3), 3, RLE_DICTIONARY)), ["a value is not in its dictionary"]),
        "encoding": (one(page(three, 3, 42)), ["is encoded as an unknown encoding"]),
        "level": (one(page(counted(b"\x07"), 3), **levels), ["its levels are wrong"]),
        "levels": (one(page(struct.pack("<I", 99) + three, 3), **levels), ["levels are longer than it"]),
        "bits": (one(page(counted(run(1, 3)) + three, 3, inner={3: i32(4)}), **levels), ["encoded as BIT_PACKED", 'prepare = "convert"']),
        "levels-2": (one(page(three, 3, kind=DATA_2, inner={5: i32(100)}), **levels), ["page at byte 4 is damaged"]),
        "array": (one(page(texts([b"a", b"b"]) + b"\xff\xff\xff\x7fc", 3), kind=BYTE_ARRAY), ["said to be longer than it"]),
        "delta": (one(page(b"\x00\x00\x00\x00", 3, 5)), ["its values cannot be unpacked"]),
        "delta-width": (one(page(varint(128) + varint(4) + varint(3) + b"\0\0\xff\xff\xff\xff", 3, 5)), ["too few values"]),
        "delta-length": (one(page(varint(128) + varint(4) + varint(3) + b"\x80\x80\x02\0" + bytes(4), 3, 6), kind=BYTE_ARRAY),
                         ["a value is longer than it"]),
        "stream": (one(page(three[:-1], 3, 9)), ["its values cannot be unpacked"])})


@case("what is unpacked: lengths that are wrong, bombs, numbers that do not fit, text that is not UTF-8")
def _(box):
    three = numbers([1, 2, 3])
    packed = gzip.compress(three)
    many = (1 << 30) - 1
    bomb = counted(run(0, 1) + run(1, many - 1)) + counted(run(1, many)) + b"\0"
    most = (1 << 31) - 1
    inner = counted(run(0, 1) + run(2, most - 1)) + counted(run(2, most))
    lz4 = b"\x1f\0\1\0" + b"\xff" * 4000 + b"\0" + b"\x50" + bytes(5)  # a zero, that zero a million times, five more
    lengths = varint(1 << 20) + varint(1) + varint(most) + b"\0" * (1 + 2 * 2048)
    refuse(box, {
        "inner-bomb": (file([column("x", page(inner, most), most, schema=[group("x", 1, REQUIRED, s6=i32(3)), group("list", 1, REPEATED),
                                    group("element", 1, REQUIRED, s6=i32(3)), group("list", 1, REPEATED), element("e", INT64)])], 1),
                       ["a list of more than 256 MiB"]),
        "lengths-bomb": (file([column("t", page(lengths, 3, 6), 3, BYTE_ARRAY, schema=[element("t", BYTE_ARRAY, s6=i32(0))])], 3),
                         ["its values cannot be unpacked"]),
        "gzip": (file([column("x", page(three, 3, packed=packed[:-9]), 3, codec=GZIP)], 3), ["a page cannot be unpacked"]),
        "gzip-longer": (file([column("x", page(three + b"\0", 3, packed=packed), 3, codec=GZIP)], 3), ["a page cannot be unpacked"]),
        "gzip-shorter": (file([column("x", page(three[:-1], 3, packed=packed), 3, codec=GZIP)], 3), ["a page cannot be unpacked"]),
        "snappy": (file([column("x", page(three, 3, packed=b"\xff\xff\xff\xff\x0f"), 3, codec=SNAPPY)], 3), ["a page cannot be unpacked"]),
        "bomb": (file([column("x", page(three, 3, packed=packed, more={2: i32(1 << 30)}), 3, codec=GZIP)], 3), ["are allowed: write smaller pages"]),
        "lz4": (file([column("x", page(three, 3, packed=lz4), 3, codec=LZ4_RAW)], 3), ["a page cannot be unpacked"]),
        "lz4-bomb": (file([column("x", page(three, 3, packed=lz4, more={2: i32(1 << 30)}), 3, codec=LZ4_RAW)], 3),
                     ["are allowed: write smaller pages"]),
        "lz4-cut": (file([column("x", page(three, 3, packed=lz4[:3]), 3, codec=LZ4_RAW)], 3), ["a page cannot be unpacked"]),
        "brotli": (file([column("x", page(three, 3, packed=b"\x0b\xff"), 3, codec=BROTLI)], 3), ["Brotli, which is not supported"]),
        "list-bomb": (file([column("x", page(numbers([7]), 1, kind=DICTIONARY) + page(bomb, many, RLE_DICTIONARY), many, about={9: i64(4)},
                                   schema=[group("x", 1, s6=i32(3)), element("e", INT64, REPEATED)])], 1), ["a list of more than 256 MiB"]),
        "int8": (file([column("x", page(numbers([1, 300], "<i"), 2), 2, INT32, schema=[element("x", INT32, s6=i32(15))])], 2),
                 ["a number that does not fit int8"]),
        "utf-8": (file([column("t", page(texts([b"a\xff"]), 1, packed=gzip.compress(texts([b"a\xff"]))), 1, BYTE_ARRAY, codec=GZIP,
                               schema=[element("t", BYTE_ARRAY, s6=i32(0))])], 1), ['column "t"', "a text is not UTF-8"]),
        "null": (file([column("x", page(numbers([1], "<i"), 1), 1, INT32, schema=[element("x", INT32, s10=record({11: record({})}))])], 1),
                 ["of the type null, but has a value"])})


@case("pages that unpack to more than memory_limit has room for are refused before memory is taken, however many there are")
def _(box):
    small, large = texts([b"a" * (4 << 20)]), texts([b"a" * (200 << 20)])
    zipped = {len(raw): gzip.compress(raw) for raw in (small, large)}
    for name, raw, n in (("pages", small, 64), ("page", large, 1)):
        pages = page(raw, 1, packed=zipped[len(raw)]) * n
        write(box.path(name + ".parquet"), file([column("t", pages, n, BYTE_ARRAY, codec=GZIP, schema=[element("t", BYTE_ARRAY, s6=i32(0))])], n))
    note = record({1: binary("huggingface"), 2: binary("[" + "0," * (1 << 21) + "0]")})
    write(box.path("note.parquet"), file([plain([1])], 1, footer={5: row([note])}))
    for name, *words in (("note", "making the index with the schema's note \"huggingface\", needs more than"),
                         ("pages", "pages.parquet", "more than 8 MiB"), ("page", "page.parquet", "more than 16 MiB")):
        # By a daemon of its own: an index that is made beside others has what they leave, and may be refused for that.
        daemon = box.daemon({name: {"path": box.path(name + ".parquet"), "format": "parquet"}}, memory_limit="64MiB")
        with Resident(daemon, 64):
            daemon.refused(name, *words, "raise memory_limit")
        daemon.stop()


@case("columns that are damaged in one place are found in one more pass, each with its own reason")
def _(box):
    n = 5000
    columns = [column(f"b{i}", page(numbers(range(n - 1)), n), n) for i in range(100)]
    columns += [column(f"g{i}", page(numbers(range(n)), n), n) for i in range(20)]
    write(box.path("d.parquet"), file(columns, n))
    daemon = box.daemon({"d": {"path": box.path("d.parquet"), "format": "parquet"}})
    for name in ("b0", "b99"):
        daemon.refused("d", f'row group 0: column "{name}": a page is damaged', pipeline=f"g0; {name}")


@case("lists: rows that begin within a list, lists that differ from their Arrow type, nothing but nulls")
def _(box):
    three = [group("x", 1, OPTIONAL, s6=i32(3)), group("list", 1, REPEATED), element("e", INT64, OPTIONAL)]

    def lists(repeated, defined, values, n):
        raw = counted(b"".join(run(level, 1) for level in repeated)) + counted(b"".join(run(level, 1) for level in defined))
        return column("x", page(raw + numbers(values), n), n, schema=three)

    good = lists([0, 1, 0, 0], [3, 3, 1, 0], [4, 5], 4)
    rows = values_of(box, file([good], 3))
    equal([line["x"] and line["x"]["shape"] for line in rows], [[2], [0], None], "shapes")
    refuse(box, {
        "within": (file([lists([1, 0], [3, 3], [1, 2], 2)], 1), ["a row begins within a list"]),
        "empty": (file([lists([0, 1], [1, 3], [2], 2)], 1), ["an empty list has elements"]),
        "missing": (file([lists([0, 1], [3, 2], [2], 2)], 1), ["missing or empty elements"]),
        "rows": (file([lists([0, 1], [3, 3], [1, 2], 2)], 2), ["has fewer rows"]),
        "utf-8": (file([column("x", page(counted(b"".join(run(level, 1) for level in (0, 0, 1))) + counted(run(1, 3)) +
                                         texts([b"a", b"b", b"\xff"]), 3), 3, BYTE_ARRAY,
                               schema=[group("x", 1, s6=i32(3)), element("e", BYTE_ARRAY, REPEATED, s6=i32(0))])], 2),
                  ['column "x": row 1 of the file', "text 1 of its list is not UTF-8"])})
    nothing = column("x", page(counted(run(0, 5)), 5), 5, repetition=OPTIONAL)
    equal(values_of(box, file([nothing], 5)), [{"x": None}] * 5, "nulls")


main()
