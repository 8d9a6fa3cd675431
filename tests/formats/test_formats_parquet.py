#!/usr/bin/env python3
"""Parquet files that the installed pyarrow, datasets, Polars and DuckDB write, served in place and converted at staging, as pyarrow reads
them."""
import hashlib
import io
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from harness import ROOT, case, equal, indices, main, expected_order
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
    equal(sorted(files_of(staging.path)), [f"{number:06d}-{number}.arrow" for number in range(len(ways))], "files")
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


# ---- in place -------------------------------------------------------------------------------------------------------

def in_place(path, **more):
    return {"path": path, "format": "parquet", **more}


@case("in place: files of every codec, page version and dictionary that pyarrow writes: the rows that it reads, in order")
def _(box):
    need("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq
    ways = [{"compression": "none", "use_dictionary": False}, {"compression": "snappy"}, {"compression": "gzip"},
            {"compression": "none", "data_page_version": "2.0"}, {"compression": "zstd", "data_page_version": "2.0"},
            {"compression": "lz4", "use_dictionary": False, "write_page_checksum": True},
            {"compression": "none", "data_page_size": 500, "dictionary_pagesize_limit": 3000, "write_page_index": True},
            {"compression": "snappy", "data_page_size": 500, "data_page_version": "2.0", "write_batch_size": 10},
            {"compression": {"text": "none", "blob": "none", "number": "zstd", "ids": "gzip"}, "store_schema": False},
            {"use_dictionary": False, "data_page_size": 3000, "column_encoding": {
                "text": "DELTA_BYTE_ARRAY", "blob": "DELTA_LENGTH_BYTE_ARRAY", "number": "DELTA_BINARY_PACKED", "real": "BYTE_STREAM_SPLIT"}}]
    for number, way in enumerate(ways):
        for size in (N, 700):
            name = f"{number}-{size}.parquet"
            pq.write_table(pa.Table.from_pylist(rows(number * N, N), schema=schema(pa)), box.path(name), row_group_size=size, **way)
            lines = box.daemon({"d": in_place(box.path(name))}).read("d", batch=64, seed=4)
            check(lines, pq.read_table(box.path(name)).to_pylist(), DTYPES, seed=4)


@case("in place: what Polars, DuckDB, pandas and fastparquet write: the rows that pyarrow reads")
def _(box):
    for name in ("polars", "duckdb", "pandas", "fastparquet"):
        need(name)
    import duckdb
    import fastparquet
    import polars
    import pyarrow.parquet as pq
    frame = polars.DataFrame(rows(0, N), schema_overrides={"real": polars.Float32, "small": polars.UInt8, "pair": polars.Array(polars.Float64, 2)})
    frame.write_parquet(box.path("polars.parquet"))
    frame.write_parquet(box.path("polars-none.parquet"), compression="uncompressed", row_group_size=700)
    frame.write_parquet(box.path("polars-small.parquet"), compression="snappy", data_page_size=1000)
    for name, options in (("duckdb", ""), ("duckdb-none", ", compression uncompressed"), ("duckdb-zstd", ", compression zstd, row_group_size 700"),
                          ("duckdb-v2", ", parquet_version v2")):
        duckdb.sql(f"copy (select * from '{box.path('polars.parquet')}') to '{box.path(name)}.parquet' (format parquet{options})")
    frame.drop("pair").to_pandas().to_parquet(box.path("pandas.parquet"))
    fastparquet.write(box.path("fastparquet.parquet"), frame.select("text", "number", "real", "small").to_pandas(), row_group_offsets=700,
                      compression="GZIP")
    fastparquet.write(box.path("fastparquet-none.parquet"), frame.select("text", "number", "real", "small").to_pandas())
    for name in ("polars", "polars-none", "polars-small", "duckdb", "duckdb-none", "duckdb-zstd", "duckdb-v2", "pandas",
                 "fastparquet", "fastparquet-none"):
        columns = pq.read_schema(box.path(f"{name}.parquet")).names
        dtypes = {key: DTYPES[key] for key in DTYPES if key in columns}
        lines = box.daemon({"d": in_place(box.path(f"{name}.parquet"))}).read("d", batch=64, seed=9)
        check(lines, pq.read_table(box.path(f"{name}.parquet")).to_pylist(), dtypes, seed=9)


@case("in place: a dataset of datasets in shards, as it is pushed to the hub: each picture verbatim, text, numbers, labels")
def _(box):
    datasets = library(box)
    n = 600
    pictures = [{"bytes": hashlib.sha512(b"%d" % i).digest() * (1 + i * 7 % 900), "path": f"{i}.jpg"} for i in range(n)]
    features = datasets.Features({"image": datasets.Image(decode=False), "text": datasets.Value("string"), "id": datasets.Value("int32"),
                                  "label": datasets.ClassLabel(names=["x", "y", "z"])})
    data = datasets.Dataset.from_dict({"image": pictures, "text": [f"text {i}" * (i % 9) for i in range(n)], "id": list(range(n)),
                                       "label": [i % 3 for i in range(n)]}, features=features)
    os.makedirs(box.path("hub", "data"))
    for split, part in data.train_test_split(test_size=0.25, shuffle=False).items():
        for shard in range(3):
            part.shard(3, shard, contiguous=True).to_parquet(box.path("hub", "data", f"{split}-{shard:05d}-of-00003.parquet"))
    daemon = box.daemon({split: in_place(box.path("hub"), split=split) for split in ("train", "test")})
    for split, first, last in (("train", 0, 450), ("test", 450, 600)):
        lines = daemon.read(split, batch=16, seed=3, pipeline="image: raw; text; id; label")
        equal(indices(lines), expected_order(last - first, seed=3), "order")
        for line in lines:
            i, fields = first + line["index"], line["fields"]
            equal(fields["image"]["sha256"], hashlib.sha256(pictures[i]["bytes"]).hexdigest(), f"picture {i}")
            equal([fields["text"]["text"] if i % 9 else "", fields["id"]["value"], fields["label"]["value"]],
                  [f"text {i}" * (i % 9), i, i % 3], f"values of {i}")
    rows_of_classes = [row["n_classes"] for row in daemon.objects("datasets")]
    equal(rows_of_classes, [3, 3], "classes")


@case("in place: every feature that datasets stores in one piece, in shards, with nulls")
def _(box):
    datasets = library(box)
    features = datasets.Features({
        "text": datasets.Value("string"), "large": datasets.Value("large_string"), "blob": datasets.Value("binary"),
        "half": datasets.Value("float16"), "flag": datasets.Value("bool"), "big": datasets.Value("uint64"),
        "ids": datasets.List(datasets.Value("int64")), "pair": datasets.List(datasets.Value("float32"), length=2),
        "grid": datasets.Array2D((2, 3), "int32"), "boxes": datasets.Array2D((None, 4), "float32"),
        "when": datasets.Value("timestamp[us]"), "kind": datasets.ClassLabel(names=["a", "b", "c"])})
    given = [{"text": None if i % 7 == 3 else f"text {i} " * (i % 5), "large": f"é{i}", "blob": bytes([i % 256]) * (i % 9),
              "half": i / 8 % 100, "flag": None if i % 11 == 5 else i % 2 == 0, "big": (1 << 60) + i, "ids": list(range(i % 6)),
              "pair": [i, -i], "grid": [[i, 1, 2], [3, 4, i]], "boxes": [[k, 0, i, 1] for k in range(1 + i % 3)], "when": i * 10 ** 6,
              "kind": i % 3} for i in range(N)]
    data = datasets.Dataset.from_list(given, features=features)
    for shard in range(3):
        data.shard(3, shard, contiguous=True).to_parquet(box.path("d", f"{shard}.parquet"), batch_size=300)
    read = [{**row, "when": int(row["when"].timestamp() * 10 ** 6) if hasattr(row["when"], "timestamp") else row["when"]}
            for row in datasets.Dataset.from_parquet([box.path("d", f"{shard}.parquet") for shard in range(3)])]
    dtypes = {"text": "text", "large": "text", "blob": "bytes", "half": "float16", "flag": "bool", "big": "uint64", "ids": "int64",
              "pair": "float32", "grid": "int32", "boxes": "float32", "when": "int64", "kind": "int64"}
    equal(len(read), N, "rows")
    check(box.daemon({"d": in_place(box.path("d"))}).read("d", batch=64, seed=4), read, dtypes, seed=4)


@case("in place: columns with names that are long, or that a pipeline cannot contain, are chosen and renamed by them")
def _(box):
    need("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq
    names = ["Finding Labels (é)", "steps/observation/natural_language_embedding", "n"]
    table = pa.Table.from_pylist([{name: 10 * i + k for k, name in enumerate(names)} for i in range(20)])
    pq.write_table(table, box.path("d.parquet"))
    daemon = box.daemon({"d": in_place(box.path("d.parquet")), "r": in_place(box.path("d.parquet"), fields=f"label={names[0]}, a={names[1]}")})
    equal([sorted(field["value"] for field in line["fields"].values()) for line in daemon.read("d", shuffle=False)],
          [[10 * i, 10 * i + 1, 10 * i + 2] for i in range(20)], "all of them")
    check(daemon.read("r", seed=3), [{"label": 10 * i, "a": 10 * i + 1} for i in range(20)], {"label": "int64", "a": "int64"}, seed=3)


@case("the files of tests/vectors/parquet, written anew")
def _(box):
    library(box)
    subprocess.run([sys.executable, os.path.join(ROOT, "tests", "support", "make_parquet_vectors.py"), box.path("v")], check=True,
                   env={**os.environ}, stdout=subprocess.DEVNULL)
    subprocess.run([sys.executable, os.path.join(ROOT, "tests", "integration", "test_parquet.py")], check=True,
                   env={**os.environ, "PARQUET_VECTORS": box.path("v")}, stdout=subprocess.DEVNULL)


main(tells_samples=True)
