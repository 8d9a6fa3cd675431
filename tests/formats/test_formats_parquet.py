#!/usr/bin/env python3
"""Parquet files that the installed pyarrow and datasets write, converted at staging, as pyarrow reads them."""
import io
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from harness import case, equal, main
from pyclient import need
from rows import check, library
from staging import Staging, files_of

N = 3000
DTYPES = {"text": "text", "blob": "bytes", "number": "int64", "real": "float32", "flag": "bool", "small": "uint8",
          "ids": "int64", "pair": "float64"}


def rows(first, n):
    return [{"text": None if i % 7 == 3 else f"text {i} " * (i % 5), "blob": bytes([i % 256]) * (i % 9), "number": i * 1_000_003,
             "real": i / 8, "flag": None if i % 11 == 5 else i % 2 == 0, "small": i % 256, "ids": list(range(i % 6)),
             "pair": [i, -i]} for i in range(first, first + n)]


def schema(pa):
    return pa.schema([("text", pa.string()), ("blob", pa.binary()), ("number", pa.int64()), ("real", pa.float32()),
                      ("flag", pa.bool_()), ("small", pa.uint8()), ("ids", pa.list_(pa.int64())),
                      ("pair", pa.list_(pa.float64(), 2))])


def staged(box, folder, name):
    staging = Staging(box, "file://" + folder, name=name, format="auto", prepare="convert")
    staging.run(environment={"DATALOADERD_PYTHON": sys.executable})
    return staging


@case("files of every compression, page version and dictionary that pyarrow writes: the rows that it reads, in order")
def _(box):
    need("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq
    folder, all_rows = box.path("tables"), []
    os.makedirs(folder)
    ways = [{"compression": "none", "use_dictionary": False}, {"compression": "snappy"}, {"compression": "gzip"},
            {"compression": "brotli", "data_page_version": "2.0"}, {"compression": "zstd", "data_page_version": "2.0"},
            {"compression": "lz4", "use_dictionary": False, "column_encoding": {"number": "DELTA_BINARY_PACKED"}}]
    for number, way in enumerate(ways):
        part = rows(number * N, N)
        pq.write_table(pa.Table.from_pylist(part, schema=schema(pa)), os.path.join(folder, f"{number}.parquet"),
                       row_group_size=700, **way)
        all_rows += pq.read_table(os.path.join(folder, f"{number}.parquet")).to_pylist()
    staging = staged(box, folder, "tables")
    equal(sorted(files_of(staging.path)), [f"{number:06d}-{number}.parquet.arrow" for number in range(len(ways))], "files")
    lines = box.daemon({"tables": staging.dataset()}).read("tables", batch=64, seed=4)
    check(lines, all_rows, DTYPES, seed=4)


@case("a dataset of datasets, with pictures in it: the pictures and labels are served")
def _(box):
    datasets = library(box)
    from PIL import Image
    pictures = []
    for i in range(40):
        out = io.BytesIO()
        Image.new("RGB", (6 + i % 4, 5), (i, 2 * i, 7)).save(out, "PNG")
        pictures.append({"bytes": out.getvalue(), "path": f"{i}.png"})
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["x", "y"])})
    data = datasets.Dataset.from_dict({"image": pictures, "label": [i % 2 for i in range(40)]}, features=features)
    folder = box.path("hub")
    os.makedirs(os.path.join(folder, "data"))
    data.to_parquet(os.path.join(folder, "data", "train-00000-of-00001.parquet"))
    with open(os.path.join(folder, "README.md"), "w", encoding="utf-8") as file:
        file.write("# a card\n")
    daemon = box.daemon({"hub": staged(box, folder, "hub").dataset()})
    lines = daemon.read("hub", shuffle=False, batch=1, pipeline="decode")
    equal([(line["fields"]["image"]["shape"], line["fields"]["label"]["value"]) for line in lines],
          [([5, 6 + i % 4, 3], i % 2) for i in range(40)], "pictures")


@case("a file that is cut is refused with its name")
def _(box):
    need("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq
    folder = box.path("tables")
    os.makedirs(folder)
    path = os.path.join(folder, "x.parquet")
    pq.write_table(pa.Table.from_pylist(rows(0, 100), schema=schema(pa)), path)
    os.truncate(path, os.path.getsize(path) - 20)
    staging = Staging(box, "file://" + folder, name="cut", format="auto", prepare="convert")
    done = staging.run(status=78, environment={"DATALOADERD_PYTHON": sys.executable})
    equal("x.parquet: its command ended with status 1: not converted: " in done.text, True, done.text)


main()
