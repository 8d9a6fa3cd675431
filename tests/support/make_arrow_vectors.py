#!/usr/bin/env python3
"""Makes tests/vectors/arrow/: small files that pyarrow and datasets wrote, and what is in them.

    python3 make_arrow_vectors.py FOLDER

It needs pyarrow, datasets, numpy and Pillow of PyPI; their versions are noted in FOLDER/versions.txt. FOLDER/values.jsonl (and, of
compressed files, compressed.jsonl) has a line for each column of each file: its rows as hexadecimal bytes, little-endian, null for a row without a value."""
import io
import json
import os
import shutil
import sys

import datasets
import numpy
import pyarrow
from PIL import Image
from pyarrow import feather, ipc

N = 37
NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")


def with_nulls(values, every):
    return [None if every and i % every == every - 1 else value for i, value in enumerate(values)]


def texts(n=N, scale=1):
    return [f"row {i} " + "äöü€𝄞"[i % 5] * (i % 9 * scale) for i in range(n)]


def numbers(name, n=N):
    values = numpy.arange(n, dtype="int64") * 7 - (0 if name.startswith("u") else 60)
    return values.astype(name)


def scalars(every):
    columns = {}
    for name in NUMBERS:
        columns[name] = pyarrow.array([None if v is None else v for v in with_nulls(list(numbers(name)), every)],
                                      type=getattr(pyarrow, name)())
    columns["flag"] = pyarrow.array(with_nulls([i % 3 == 0 for i in range(N)], every))
    columns["date"] = pyarrow.array(with_nulls(list(range(N)), every), type=pyarrow.date32())
    columns["when"] = pyarrow.array(with_nulls([i * 10 ** 9 for i in range(N)], every), type=pyarrow.timestamp("us", "UTC"))
    columns["took"] = pyarrow.array(with_nulls(list(range(N)), every), type=pyarrow.duration("ns"))
    return pyarrow.table(columns)


def strings(every):
    columns = {
        "text": pyarrow.array(with_nulls(texts(), every)),
        "large": pyarrow.array(with_nulls(texts(), every), type=pyarrow.large_string()),
        "view": pyarrow.array(with_nulls(texts(scale=3), every), type=pyarrow.string_view()),
        "bytes": pyarrow.array(with_nulls([text.encode()[::-1] for text in texts()], every)),
        "large_bytes": pyarrow.array(with_nulls([bytes([i]) * i for i in range(N)], every), type=pyarrow.large_binary()),
        "bytes_view": pyarrow.array(with_nulls([bytes([i]) * i for i in range(N)], every), type=pyarrow.binary_view()),
        "fixed": pyarrow.array(with_nulls([bytes([i, 2 * i, 3]) for i in range(N)], every), type=pyarrow.binary(3)),
        "word": pyarrow.array(with_nulls([f"class {i % 5}" for i in range(N)], every)).dictionary_encode(),
        "code": pyarrow.DictionaryArray.from_arrays(
            pyarrow.array(with_nulls([i % 4 for i in range(N)], every), type=pyarrow.uint8()),
            pyarrow.array([1000, -5, 7, 1 << 40], type=pyarrow.int64())),
    }
    return pyarrow.table(columns)


def lists(every):
    values = [list(range(i % 6)) for i in range(N)]
    boxes = [[[k, k + 1, k + 2, k + i] for k in range(i % 4)] for i in range(N)]
    columns = {
        "tokens": pyarrow.array(with_nulls(values, every), type=pyarrow.list_(pyarrow.int32())),
        "large": pyarrow.array(with_nulls(values, every), type=pyarrow.large_list(pyarrow.uint16())),
        "view": pyarrow.array(with_nulls(values, every), type=pyarrow.list_view(pyarrow.float32())),
        "pair": pyarrow.array(with_nulls([[i, -i] for i in range(N)], every), type=pyarrow.list_(pyarrow.int64(), 2)),
        "boxes": pyarrow.array(with_nulls(boxes, every), type=pyarrow.list_(pyarrow.list_(pyarrow.float32(), 4))),
        "loose": pyarrow.array(with_nulls(boxes, every), type=pyarrow.list_(pyarrow.list_(pyarrow.float64()))),
        "matrix": pyarrow.array(with_nulls([[[i, 1, 2], [3, 4, i]] for i in range(N)], every),
                                type=pyarrow.list_(pyarrow.list_(pyarrow.int16(), 3), 2)),
    }
    return pyarrow.table(columns)


def nested(every):
    """Structs of numbers, text and lists, also within each other; null ones whose members say something all the same."""
    null = numpy.array([bool(every) and i % every == every - 2 for i in range(N)])
    size = pyarrow.StructArray.from_arrays([pyarrow.array(range(N), pyarrow.int32()), pyarrow.array(with_nulls([i / 2 for i in range(N)], every))],
                                           ["w", "h"], mask=pyarrow.array(null[::-1].copy()))
    meta = pyarrow.StructArray.from_arrays([pyarrow.array(with_nulls(texts(), every)), size, pyarrow.array([i % 3 == 0 for i in range(N)])],
                                           ["name", "size", "ok"], mask=pyarrow.array(null))
    boxes = [[[k, k + 1, k + 2, k + i] for k in range(i % 4)] for i in range(N)]
    objects = pyarrow.array(with_nulls([{"bbox": boxes[i], "category": [k % 3 for k in range(i % 4)]} for i in range(N)], every),
                            type=pyarrow.struct({"bbox": pyarrow.list_(pyarrow.list_(pyarrow.float32())),
                                                 "category": pyarrow.list_(pyarrow.int64())}))
    return pyarrow.table({"id": pyarrow.array(range(N)), "meta": meta, "objects": objects})


def deep(every):
    """Lists of bools, which are bits, and lists in lists of up to five levels."""
    flags = [[k % 3 == i % 2 for k in range(i * 5 % 23)] for i in range(N)]
    rows = [[[k % 2 == 0, i % 3 == 0, True] for k in range(i % 4)] for i in range(N)]
    three = [[[[i, i % 5], [1, 2], [3, i % 5]]] * 2 for i in range(N)]
    four = [[row] * (i % 3) for i, row in enumerate(three)]
    five = [[[row]] for row in three]
    columns = {
        "flags": pyarrow.array(with_nulls(flags, every), pyarrow.list_(pyarrow.bool_())),
        "view": pyarrow.array(with_nulls(flags, every), pyarrow.large_list_view(pyarrow.bool_())),
        "pair": pyarrow.array(with_nulls([[i % 2 == 0, i % 5 == 0] for i in range(N)], every), pyarrow.list_(pyarrow.bool_(), 2)),
        "rows": pyarrow.array(with_nulls(rows, every), pyarrow.large_list(pyarrow.list_(pyarrow.bool_()))),
        "four": pyarrow.array(with_nulls(four, every)),
        "five": pyarrow.array(with_nulls(five, every), pyarrow.list_(pyarrow.list_(pyarrow.list_(pyarrow.list_(pyarrow.list_(pyarrow.int16(), 2)))))),
    }
    return pyarrow.table(columns)


KINDS = (("scalars", scalars), ("strings", strings), ("lists", lists), ("nested", nested), ("deep", deep))


def lists_of_text(every):
    """Lists of text of every kind of list and text; empty lists, empty texts, null lists."""
    words = with_nulls([[text * (k != 2) for k, text in enumerate(texts(i % 5))] for i in range(N)], every)
    pairs = with_nulls([[f"{i}", "ö" * (i % 3)] for i in range(N)], every)
    answers = [{"text": row, "start": [len(text) for text in row or []]} for row in words]
    return pyarrow.table({
        "words": pyarrow.array(words, pyarrow.list_(pyarrow.string())),
        "large": pyarrow.array(words, pyarrow.large_list(pyarrow.large_string())),
        "view": pyarrow.array(words, pyarrow.list_view(pyarrow.string_view())),
        "pair": pyarrow.array(pairs, pyarrow.list_(pyarrow.string(), 2)),
        "tags": pyarrow.array(words, pyarrow.list_(pyarrow.dictionary(pyarrow.int8(), pyarrow.string()))),
        "answers": pyarrow.array(answers, pyarrow.struct({"text": pyarrow.list_(pyarrow.string()),
                                                          "start": pyarrow.list_(pyarrow.int32())})),
        "number": list(range(N)),
    })


def write_texts(folder):
    """texts*.arrow, and texts.jsonl with the lists of each of their columns; two that are refused."""
    table, some = lists_of_text(0), lists_of_text(5)
    write_stream(f"{folder}/texts.arrow", table.to_batches(max_chunksize=16), table.schema)
    write_file(f"{folder}/texts-nulls.arrow", some.to_batches(), table.schema)
    write_stream(f"{folder}/texts-sliced.arrow", [table.to_batches()[0].slice(13, 9)], table.schema)
    for codec in ("lz4", "zstd"):
        write_stream(f"{folder}/texts-{codec}.arrow", some.to_batches(max_chunksize=30), table.schema, compression=codec)
    with open(f"{folder}/texts.jsonl", "w", encoding="utf-8") as out:
        for name in ("texts", "texts-nulls", "texts-sliced", "texts-lz4", "texts-zstd"):
            table = read(f"{folder}/{name}.arrow").flatten().drop_columns(["answers.start", "number"])
            for column in table.column_names:
                line = {"file": name + ".arrow", "column": column, "rows": table.column(column).to_pylist()}
                out.write(json.dumps(line, ensure_ascii=False) + "\n")
    for name, words in (("null-text", [["a"], ["b", None]]), ("no-utf8", [["a"], ["b", b"\xff"]])):
        kind = pyarrow.string() if name == "null-text" else pyarrow.binary()
        table = pyarrow.table({"words": pyarrow.array(words, pyarrow.list_(kind)).view(pyarrow.list_(pyarrow.string()))})
        write_stream(f"{folder}/{name}.arrow", table.to_batches(), table.schema)


def write_stream(path, batches, schema, **options):
    with ipc.new_stream(path, schema, options=ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write_batch(batch)


def write_file(path, batches, schema, **options):
    with ipc.new_file(path, schema, options=ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write_batch(batch)


# ---- what is in them ------------------------------------------------------------------------------------------------

def flat(value):
    if isinstance(value, list):
        return [number for item in value for number in flat(item)]
    return [value]


def element(kind):
    while pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind) or pyarrow.types.is_fixed_size_list(kind) \
            or kind.id in (pyarrow.list_view(pyarrow.int8()).id, pyarrow.large_list_view(pyarrow.int8()).id):
        kind = kind.value_type
    return kind


def as_bytes(value, kind):
    """A row as it is in the file."""
    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode().hex()
    if isinstance(value, bytes):
        return value.hex()
    if pyarrow.types.is_boolean(kind):
        return numpy.array(value, "uint8").tobytes().hex()
    return numpy.array(flat(value), element(kind).to_pandas_dtype()).tobytes().hex()


def plain(column):
    """Dates and times as the whole numbers that they are stored as."""
    kind = column.type
    if pyarrow.types.is_date32(kind) or pyarrow.types.is_time32(kind):
        return column.cast(pyarrow.int32())
    if pyarrow.types.is_temporal(kind):
        return column.cast(pyarrow.int64())
    return column


def note(values, folder, name, table):
    while any(pyarrow.types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()  # members are "struct.member", and null where the struct is
    for column in table.column_names:
        data = plain(table.column(column))
        rows = [as_bytes(value, data.type) for value in data.to_pylist()]
        values.append({"file": name, "column": column, "rows": rows})


def read(path):
    with pyarrow.memory_map(path) as source:
        if source.read(6) == b"ARROW1":
            return ipc.open_file(source).read_all()
        source.seek(0)
        return ipc.open_stream(source).read_all()


# ---- files of pyarrow -----------------------------------------------------------------------------------------------

def write_plain(folder):
    for name, make in KINDS:
        table = make(0)
        write_stream(f"{folder}/{name}.arrow", table.to_batches(max_chunksize=16), table.schema)
        table = make(5)
        write_file(f"{folder}/{name}-nulls.arrow", table.to_batches(), table.schema)
        write_stream(f"{folder}/{name}-sliced.arrow", [table.slice(3, 11).combine_chunks().to_batches()[0],
                                                       table.to_batches()[0].slice(13, 9)], table.schema)
    table = pyarrow.table({"text": texts(), "number": list(range(N))})
    write_stream(f"{folder}/old.arrow", table.to_batches(max_chunksize=20), table.schema, use_legacy_format=True)
    write_file(f"{folder}/old-file.arrow", table.to_batches(max_chunksize=20), table.schema, use_legacy_format=True,
               metadata_version=pyarrow.MetadataVersion.V4)
    feather.write_feather(table, f"{folder}/plain.feather", compression="uncompressed")
    for codec in ("lz4", "zstd"):
        feather.write_feather(table, f"{folder}/{codec}.feather", compression=codec)
        for name, make in KINDS:
            table = make(7)
            write_stream(f"{folder}/{name}-{codec}.arrow", table.to_batches(max_chunksize=30), table.schema, compression=codec)
        table = pyarrow.table({"text": texts(), "number": list(range(N))})
    table = pyarrow.table({"a": texts(), "b": texts()[::-1]})
    write_stream(f"{folder}/scattered.arrow", table.to_batches(), table.schema)
    table = pyarrow.table({"text": [("%02d abcdefg " % i) * 91 for i in range(64)], "a": list(range(64)),
                           "b": pyarrow.array(range(64), pyarrow.int32())})
    write_stream(f"{folder}/kilobytes.arrow", table.to_batches(), table.schema)  # its batch is repeated in measurements
    table = pyarrow.table({"number": [1, 2, 3], "words": [["a"], [], ["b", "c"]], "both": [{"x": 1, "y": "a"}] * 3,
                           "price": pyarrow.array([1, 2, 3], pyarrow.decimal128(9, 2))})
    write_stream(f"{folder}/structs.arrow", table.to_batches(), table.schema)
    first = pyarrow.array(["a", "b", "a"]).dictionary_encode()
    second = pyarrow.array(["b", "c", "a", "d"]).dictionary_encode()
    schema = pyarrow.schema({"word": first.type})
    batches = [pyarrow.record_batch([some], schema) for some in (first, second)]
    write_stream(f"{folder}/replaced.arrow", batches, schema)
    more = pyarrow.DictionaryArray.from_arrays(pyarrow.array([2, 0, 1], pyarrow.int32()), pyarrow.array(["a", "b", "c"]))
    write_stream(f"{folder}/delta.arrow", [pyarrow.record_batch([some], schema) for some in (first, more)], schema,
                 emit_dictionary_deltas=True)


def write_bombs(folder):
    """Text of 256 MiB that takes a few KiB: in one batch, and in many."""
    for name, n_batches in (("bomb-batch", 1), ("bomb-batches", 64)):
        table = pyarrow.table({"text": ["a" * (256 << 20 >> 4) for _ in range(16)] if n_batches == 1 else ["a" * (4 << 20)]})
        write_stream(f"{folder}/{name}.arrow", table.to_batches() * n_batches, table.schema, compression="zstd")


# ---- folders of datasets --------------------------------------------------------------------------------------------

def picture(i):
    out = io.BytesIO()
    Image.new("RGB", (8 + i % 3, 6), (i * 5 % 256, i, 200)).save(out, "PNG")
    return {"bytes": out.getvalue(), "path": f"{i}.png"}


def features():
    return datasets.Features({
        "text": datasets.Value("string"),
        "label": datasets.ClassLabel(names=["cat", "dog", "eel"]),
        "score": datasets.Value("float32"),
        "ids": datasets.List(datasets.Value("int32")),
    })


def rows(n, begin=0):
    return {"text": texts(n), "label": [(begin + i) % 3 for i in range(n)], "score": [i / 4 for i in range(n)],
            "ids": [list(range(begin, begin + i % 5)) for i in range(n)]}


def write_datasets(folder):
    data = datasets.Dataset.from_dict(rows(25), features=features())
    data.save_to_disk(f"{folder}/saved", num_shards=2)
    parts = datasets.DatasetDict({"train": datasets.Dataset.from_dict(rows(9), features=features()),
                                  "test": datasets.Dataset.from_dict(rows(4, 50), features=features())})
    parts.save_to_disk(f"{folder}/splits")
    media = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    pictures = datasets.Dataset.from_dict({"image": [picture(i) for i in range(12)], "label": list(range(12))}, features=media)
    pictures.save_to_disk(f"{folder}/pictures")
    table = pictures.data.table.slice(0, 3)
    write_stream(f"{folder}/pictures-zstd.arrow", table.to_batches(), table.schema, compression="zstd")


def write_outside(folder):
    """Pictures that are files of their own; labels of which one is unknown."""
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["x", "y"])})
    schema = features.arrow_schema
    for name, paths in (("outside", [f"pics/{i}.png" for i in range(6)] + [None]), ("climbing", ["pics/0.png", "../0.png"])):
        table = pyarrow.table({"image": pyarrow.array([path and {"bytes": None, "path": path} for path in paths], schema.field("image").type),
                               "label": pyarrow.array([i % 2 - (i == 3) * 2 for i in range(len(paths))])}, schema=schema)
        write_stream(f"{folder}/{name}.arrow", table.to_batches(), schema)


def write_sounds(folder):
    """Audio columns: bytes inside, or a file outside; and a row with neither. Casting needs no decoder, encoding would."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors", "sound")
    rows = []
    for name in ("u8.wav", "s16.flac", "opus.opus"):
        with open(os.path.join(here, name), "rb") as file:
            rows.append({"bytes": file.read(), "path": name})
    features = datasets.Features({"audio": {"bytes": datasets.Value("binary"), "path": datasets.Value("string")}})
    for name, some in (("sounds", rows + [None]), ("sounds-outside", [{"bytes": None, "path": "snd/s16.wav"}])):
        data = datasets.Dataset.from_dict({"audio": some}, features=features)
        table = data.cast_column("audio", datasets.Audio(decode=False)).data.table
        write_stream(f"{folder}/{name}.arrow", table.to_batches(), table.schema)


def main():
    folder = sys.argv[1]
    datasets.disable_progress_bars()
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    write_plain(folder)
    write_datasets(folder)
    write_outside(folder)
    write_sounds(folder)
    write_texts(folder)
    write_bombs(folder)
    values = []
    for name in sorted(os.listdir(folder)):
        if name.endswith((".arrow", ".feather")) and not name.startswith(("pictures", "kilobytes", "structs", "outside", "climbing", "sounds",
                                                                            "texts", "null-text", "no-utf8")):
            note(values, folder, name, read(f"{folder}/{name}"))
    for name, is_compressed in (("values", False), ("compressed", True)):
        with open(f"{folder}/{name}.jsonl", "w", encoding="utf-8") as out:
            out.writelines(json.dumps(line) + "\n" for line in values if ("lz4" in line["file"] or "zstd" in line["file"]) == is_compressed)
    with open(f"{folder}/versions.txt", "w", encoding="utf-8") as out:
        out.write(f"pyarrow {pyarrow.__version__}\ndatasets {datasets.__version__}\n")


if __name__ == "__main__":
    main()
