#!/usr/bin/env python3
"""Makes tests/vectors/differing/: files of one dataset whose columns differ, as Arrow and as Parquet, and the rows that they have together.

    python3 make_differing_vectors.py FOLDER

It needs pyarrow of PyPI. rows.jsonl is what pyarrow itself makes of the Parquet files with promote_options="permissive", without the
columns that it cannot join, or only by changing numbers."""
import json
import os
import struct
import sys

import pyarrow
from pyarrow import ipc, parquet

PLAIN = {"arrow": {}, "parquet": {"compression": "none", "use_dictionary": False, "store_schema": False}}


def tables(kind):
    """The same rows for both; Arrow also has views and dictionaries."""
    view = pyarrow.string_view() if kind == "arrow" else pyarrow.string()
    words = pyarrow.dictionary(pyarrow.int8(), pyarrow.string()) if kind == "arrow" else pyarrow.string()
    return [pyarrow.table({
        "word": pyarrow.array(["one", None], pyarrow.string()),
        "number": pyarrow.array([1, -2], pyarrow.int32()),
        "small": pyarrow.array([200, 1], pyarrow.uint8()),
        "real": pyarrow.array([3, 1 << 53], pyarrow.int64()),
        "only_first": pyarrow.array([7, 8], pyarrow.int8()),
        "nothing": pyarrow.nulls(2),
        "never": pyarrow.nulls(2),
        "list": pyarrow.array([[1, 2], []], pyarrow.list_(pyarrow.int32())),
        "texts": pyarrow.array([["x", "yy"], None], pyarrow.list_(pyarrow.string())),
        "both": pyarrow.array([{"x": 1, "y": None}, None], pyarrow.struct([("x", pyarrow.int16()), ("y", pyarrow.null())])),
        "clash": pyarrow.array([1, 2], pyarrow.int64()),
        "when": pyarrow.array([1, 2], pyarrow.timestamp("ms")),
        "lossy": pyarrow.array([(1 << 60) + 1, 2], pyarrow.int64()),
        "flag": pyarrow.array([True, False]),
    }), pyarrow.table({
        "flag": pyarrow.array([None, True], pyarrow.bool_()),
        "lossy": pyarrow.array([0.5, 2], pyarrow.float64()),
        "both": pyarrow.array([{"y": "why", "x": -70000}, {"y": None, "x": 3}],
                              pyarrow.struct([("y", pyarrow.string()), ("x", pyarrow.int64())])),
        "nothing": pyarrow.array(["some", "thing"], pyarrow.large_string()),
        "extra": pyarrow.array([1, 2]),
        "clash": pyarrow.array(["a", "b"]),
        "word": pyarrow.array(["two", "drei"], pyarrow.large_string()),
        "number": pyarrow.array([1 << 40, 5], pyarrow.int64()),
        "small": pyarrow.array([-5, 6], pyarrow.int8()),
        "real": pyarrow.array([0.25, -1.5], pyarrow.float32()),
        "list": pyarrow.array([[1 << 40], None], pyarrow.large_list(pyarrow.int64())),
        "when": pyarrow.array([1, 2], pyarrow.timestamp("us")),
        "never": pyarrow.nulls(2),
        "texts": pyarrow.array([[], ["z"]], pyarrow.large_list(pyarrow.large_string())),
    }), pyarrow.table({
        "texts": pyarrow.nulls(1), "list": pyarrow.nulls(1), "number": pyarrow.nulls(1),
        "word": pyarrow.array(["a view that is longer than twelve bytes"], view),
    }), pyarrow.table({
        "word": pyarrow.array(["of few"]).cast(words), "small": pyarrow.nulls(1), "both": pyarrow.nulls(1),
        "list": pyarrow.array([[-1, 5]], pyarrow.list_(pyarrow.int64())),
    })]


def write_arrow(path, table):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with ipc.new_file(path, table.schema) as file:
        file.write_table(table)


def write_dictionaries(folder):
    """Structs, plain in one file and as a dictionary in the next; media as a dictionary; two columns that share a dictionary of
    one of them, which no writer makes: number 42 becomes 0."""
    point, media = pyarrow.struct([("x", pyarrow.int64())]), pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    indices = pyarrow.array([0, 1], pyarrow.int64())
    structs = [pyarrow.array([{"x": 1}, {"x": 2}], point),
               pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array([{"x": 100}, {"x": 200}], point))]
    for i, values in enumerate(structs):
        write_arrow(os.path.join(folder, "structs", f"{i}.arrow"), pyarrow.table({"id": pyarrow.array([5 + i, 7 + i]), "a": values}))
    images = pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array([{"bytes": b"one", "path": "1"}, {"bytes": b"two", "path": "2"}], media))
    write_arrow(os.path.join(folder, "media", "0.arrow"), pyarrow.table({"id": pyarrow.array([5, 6]), "image": images}))
    columns = {f"c{i}": pyarrow.array([1, 2], pyarrow.int8()).dictionary_encode() for i in range(42)}
    columns["c42"] = pyarrow.array(["first", "second"]).dictionary_encode()
    shared = os.path.join(folder, "shared", "0.arrow")
    write_arrow(shared, pyarrow.table(columns))
    with open(shared, "rb") as file:
        content = file.read()
    with open(shared, "wb") as file:
        file.write(content.replace(struct.pack("<q", 42), struct.pack("<q", 0)))


def main():
    folder = sys.argv[1]
    write_dictionaries(folder)
    for kind in ("arrow", "parquet"):
        os.makedirs(os.path.join(folder, kind), exist_ok=True)
        for i, table in enumerate(tables(kind)):
            path = os.path.join(folder, kind, f"{i}.{kind}")
            if kind == "parquet":
                parquet.write_table(table, path, **PLAIN[kind])
            else:
                write_arrow(path, table)
    drop = ("clash", "when", "lossy", "extra")
    together = pyarrow.concat_tables([table.drop_columns([name for name in drop if name in table.column_names])
                                      for table in tables("parquet")], promote_options="permissive")
    with open(os.path.join(folder, "rows.jsonl"), "w", encoding="utf-8") as file:
        for row in together.to_pylist():
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    with open(os.path.join(folder, "WRITER"), "w", encoding="utf-8") as file:
        file.write(f"pyarrow {pyarrow.__version__}\n{together.schema.to_string(show_field_metadata=False)}\n")


main()
