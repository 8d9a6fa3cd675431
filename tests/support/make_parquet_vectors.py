#!/usr/bin/env python3
"""Makes tests/vectors/parquet/: small files that pyarrow and datasets wrote, and what is in them.

    python3 make_parquet_vectors.py FOLDER

It needs pyarrow, datasets, numpy and Pillow of PyPI; their versions are noted in FOLDER/versions.txt. FOLDER/values.jsonl has a line
for each column of each table: its rows as hexadecimal bytes, little-endian, null for a row without a value, and the files that hold it."""
import json
import os
import shutil
import sys

import datasets
import numpy
import pyarrow
from pyarrow import parquet

from make_arrow_vectors import N, NUMBERS, as_bytes, lists_of_text, nested, numbers, picture, plain, texts, with_nulls

WAYS = {
    "plain": {"compression": "none", "use_dictionary": False},
    "dictionary": {"compression": "none", "use_dictionary": True},
    "snappy": {"compression": "snappy"},
    "gzip": {"compression": "gzip", "use_dictionary": False, "write_page_checksum": True},
    "zstd-v2": {"compression": "zstd", "data_page_version": "2.0"},
    "lz4": {"compression": "lz4", "use_dictionary": False},
    "plain-v2": {"compression": "none", "use_dictionary": False, "data_page_version": "2.0"},
    "small-pages": {"compression": "none", "use_dictionary": False, "row_group_size": 17, "data_page_size": 40, "write_batch_size": 3},
    "small-dictionary": {"compression": "snappy", "row_group_size": 13, "data_page_size": 40, "write_batch_size": 4,
                         "dictionary_pagesize_limit": 60},
}


def scalars(every):
    columns = {name: pyarrow.array([None if v is None else v for v in with_nulls(list(numbers(name)), every)],
                                   type=getattr(pyarrow, name)()) for name in NUMBERS}
    columns["flag"] = pyarrow.array(with_nulls([i % 3 == 0 for i in range(N)], every))
    columns["date"] = pyarrow.array(with_nulls(list(range(N)), every), type=pyarrow.date32())
    columns["when"] = pyarrow.array(with_nulls([i * 10 ** 9 for i in range(N)], every), type=pyarrow.timestamp("us", "UTC"))
    columns["none"] = pyarrow.array([None] * N, type=pyarrow.null())
    return pyarrow.table(columns)


def strings(every):
    return pyarrow.table({
        "text": pyarrow.array(with_nulls(texts(), every)),
        "long": pyarrow.array(with_nulls(texts(scale=9), every), type=pyarrow.large_string()),
        "bytes": pyarrow.array(with_nulls([bytes([i]) * i for i in range(N)], every)),
        "fixed": pyarrow.array(with_nulls([bytes([i, 2 * i, 3]) for i in range(N)], every), type=pyarrow.binary(3)),
        "word": pyarrow.array(with_nulls([f"class {i % 5}" for i in range(N)], every)).dictionary_encode(),
        "same": pyarrow.array(with_nulls(["always the same"] * N, every)),
    })


def lists(every):
    values = [list(range(i % 6)) for i in range(N)]
    boxes = [[[k, k + 1, k + 2, k + i] for k in range(i % 4)] for i in range(N)]
    return pyarrow.table({
        "tokens": pyarrow.array(with_nulls(values, every), type=pyarrow.list_(pyarrow.int32())),
        "small": pyarrow.array(with_nulls(values, every), type=pyarrow.large_list(pyarrow.uint8())),
        "pair": pyarrow.array(with_nulls([[i, -i] for i in range(N)], every), type=pyarrow.list_(pyarrow.int64(), 2)),
        "grid": pyarrow.array(with_nulls([[[i, 1, 2], [3, 4, i]] for i in range(N)], every),
                              type=pyarrow.list_(pyarrow.list_(pyarrow.int16(), 3), 2)),
        "flags": pyarrow.array(with_nulls([[k % 2 == 0 for k in row] for row in values], every), type=pyarrow.list_(pyarrow.bool_())),
        "boxes": pyarrow.array(with_nulls(boxes, every), type=pyarrow.list_(pyarrow.list_(pyarrow.float32()))),
        "cubes": pyarrow.array(with_nulls([[[[i, 1], [2, 3], [4, i]]] * (i % 3) for i in range(N)], every),
                               type=pyarrow.list_(pyarrow.list_(pyarrow.list_(pyarrow.int16())))),
    })


def structs(every):
    """The structs of Arrow's vectors, and a list of fixed length within one."""
    pairs = pyarrow.array(with_nulls([{"pair": [i, -i]} for i in range(N)], every),
                          type=pyarrow.struct({"pair": pyarrow.list_(pyarrow.int64(), 2)}))
    return nested(every).append_column("fixed", pairs)


def note(values, table, files):
    while any(pyarrow.types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()  # members are "struct.member", and null where the struct is
    for column in table.column_names:
        data = plain(table.column(column).combine_chunks())
        if pyarrow.types.is_dictionary(data.type):
            data = data.dictionary_decode()
        values.append({"files": files, "column": column, "rows": [as_bytes(value, data.type) for value in data.to_pylist()]})


def write_tables(folder, values):
    for name, make in (("scalars", scalars), ("strings", strings), ("lists", lists), ("nested", structs)):
        for every, ways in ((0, ("dictionary", "gzip", "zstd-v2", "lz4")), (5, set(WAYS) - {"dictionary", "gzip", "zstd-v2", "lz4"})):
            table, files = make(every), []
            for way in sorted(ways):
                files.append(f"{name}-{way}.parquet")
                parquet.write_table(table, f"{folder}/{files[-1]}", **WAYS[way])
            note(values, table, files)


DELTA_LENGTH, DELTA_BYTES, SPLIT = "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"


def encodings(table, is_other):
    """Of each column one that its type can have; of texts and numbers, the other one."""
    chosen = {}
    for field in table.schema:
        kind, name = field.type, field.name
        while pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind) or pyarrow.types.is_fixed_size_list(kind):
            kind, name = kind.value_type, name + ".list.element"
        if pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind) or pyarrow.types.is_binary(kind):
            chosen[name] = DELTA_BYTES if is_other else DELTA_LENGTH
        elif pyarrow.types.is_fixed_size_binary(kind):
            chosen[name] = SPLIT if is_other else DELTA_BYTES
        elif pyarrow.types.is_floating(kind) or (is_other and pyarrow.types.is_integer(kind)):
            chosen[name] = SPLIT
        elif pyarrow.types.is_integer(kind) or pyarrow.types.is_temporal(kind):
            chosen[name] = "DELTA_BINARY_PACKED"
    return chosen


def write_delta(folder, values):
    for name, make in (("scalars", scalars), ("strings", strings), ("lists", lists)):
        table = make(4)
        files = [f"{name}-delta.parquet", f"{name}-delta-v2.parquet"]
        parquet.write_table(table, f"{folder}/{files[0]}", use_dictionary=False, compression="none", column_encoding=encodings(table, False))
        parquet.write_table(table, f"{folder}/{files[1]}", use_dictionary=False, data_page_version="2.0", compression="zstd",
                            row_group_size=21, column_encoding=encodings(table, True))
        note(values, table, files)
    far = [(i * 0x9E3779B97F4A7C15 + 1) % 2 ** 64 - 2 ** 63 for i in range(300)]
    table = pyarrow.table({"far": far, "near": [i // 3 for i in range(300)], "int32": pyarrow.array([x >> 32 for x in far], pyarrow.int32())})
    parquet.write_table(table, f"{folder}/blocks-delta.parquet", use_dictionary=False,
                        column_encoding={name: "DELTA_BINARY_PACKED" for name in table.column_names})
    note(values, table, ["blocks-delta.parquet"])


def write_others(folder):
    parquet.write_table(pyarrow.table({
        "number": [1, 2, 3], "words": [["a"], [], ["b", "c"]], "both": [{"x": 1, "y": "a"}] * 3,
        "price": pyarrow.array([1, 2, 3], pyarrow.decimal128(9, 2)), "map": pyarrow.array([[("a", 1)]] * 3,
                                                                                          pyarrow.map_("string", "int8")),
    }), f"{folder}/structs.parquet")
    table = pyarrow.table({"when": pyarrow.array([1, 2], pyarrow.timestamp("us"))})
    parquet.write_table(table, f"{folder}/int96.parquet", use_deprecated_int96_timestamps=True)
    table = pyarrow.table({"text": texts(5), "number": list(range(5))})
    parquet.write_table(table, f"{folder}/brotli.parquet", compression="brotli")
    parquet.write_table(table.slice(0, 0), f"{folder}/empty.parquet")
    for n, values in (("missing", [[1, None], [2]]), ("ragged", [[[1], [2, 3]], [[4]]])):
        parquet.write_table(pyarrow.table({"list": values}), f"{folder}/list-{n}.parquet")


def write_datasets(folder):
    media = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog", "eel"]),
                               "text": datasets.Value("string")})
    for name, begin, end in (("train-00000-of-00002", 0, 7), ("train-00001-of-00002", 7, 12), ("test-00000-of-00001", 12, 15)):
        data = datasets.Dataset.from_dict({"image": [picture(i) for i in range(begin, end)], "label": [i % 3 for i in range(begin, end)],
                                           "text": texts(15)[begin:end]}, features=media)
        os.makedirs(f"{folder}/hub/data", exist_ok=True)
        data.to_parquet(f"{folder}/hub/data/{name}.parquet")
    table = data.data.table
    parquet.write_table(table, f"{folder}/pictures-snappy.parquet")
    paths = [f"pics/{i}.png" for i in range(6)] + [None]
    for name, some in (("outside", paths), ("climbing", ["../0.png"])):
        table = pyarrow.table({"image": pyarrow.array([path and {"bytes": None, "path": path} for path in some],
                                                      media.arrow_schema.field("image").type),
                               "label": pyarrow.array([i % 3 - (i == 3) for i in range(len(some))]), "text": some},
                              schema=media.arrow_schema)
        parquet.write_table(table, f"{folder}/{name}.parquet")


def write_sounds(folder):
    """A column of Audio: bytes inside, and a row with neither bytes nor path. Casting needs no decoder, encoding would."""
    here, rows = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors", "sound"), []
    for name in ("u8.wav", "s16.flac"):
        with open(os.path.join(here, name), "rb") as file:
            rows.append({"bytes": file.read(), "path": name})
    features = datasets.Features({"audio": {"bytes": datasets.Value("binary"), "path": datasets.Value("string")}})
    data = datasets.Dataset.from_dict({"audio": rows + [None]}, features=features)
    data.cast_column("audio", datasets.Audio(decode=False)).to_parquet(f"{folder}/sounds.parquet")


def write_texts(folder):
    """texts-*.parquet, and texts.jsonl with the lists of each of their columns; one that is refused."""
    with open(f"{folder}/texts.jsonl", "w", encoding="utf-8") as out:
        for way, every in (("plain", 0), ("small-dictionary", 5), ("zstd-v2", 4), ("small-pages", 5), ("delta", 5)):
            table = lists_of_text(every)
            table = table.drop_columns(["view", "tags"])  # Parquet has no views; dictionaries are read as plain text
            terms = {"use_dictionary": False, "compression": "none", "column_encoding": {
                name: DELTA_BYTES for name in ("words.list.element", "large.list.element", "pair.list.element")}}
            parquet.write_table(table, f"{folder}/texts-{way}.parquet", **(terms if way == "delta" else WAYS[way]))
            table = table.flatten().drop_columns(["answers.start", "number"])
            for column in table.column_names:
                line = {"file": f"texts-{way}.parquet", "column": column, "rows": table.column(column).to_pylist()}
                out.write(json.dumps(line, ensure_ascii=False) + "\n")
    parquet.write_table(pyarrow.table({"words": [["a"], ["b"], ["c"], ["d", None]]}), f"{folder}/null-text.parquet", row_group_size=2)


def main():
    folder, values = sys.argv[1], []
    datasets.disable_progress_bars()
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    write_tables(folder, values)
    write_delta(folder, values)
    write_others(folder)
    write_datasets(folder)
    write_sounds(folder)
    write_texts(folder)
    with open(f"{folder}/values.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in values)
    with open(f"{folder}/versions.txt", "w", encoding="utf-8") as file:
        file.write(f"pyarrow {pyarrow.__version__}\ndatasets {datasets.__version__}\nnumpy {numpy.__version__}\n")


if __name__ == "__main__":
    main()
