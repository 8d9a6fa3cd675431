#!/usr/bin/env python3
"""Arrow files that the installed pyarrow and datasets write, as they read them themselves."""
import hashlib
import io
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from harness import ROOT, case, equal, main
from rows import check, library

N = 2500  # more than the batches of datasets


def arrow(path, **more):
    return {"path": path, "format": "arrow", **more}


@case("every feature that datasets stores in one piece, in shards, with nulls")
def _(box):
    datasets = library(box)
    features = datasets.Features({
        "text": datasets.Value("string"), "large": datasets.Value("large_string"), "blob": datasets.Value("binary"),
        "half": datasets.Value("float16"), "flag": datasets.Value("bool"), "big": datasets.Value("uint64"),
        "ids": datasets.List(datasets.Value("int64")), "pair": datasets.List(datasets.Value("float32"), length=2),
        "grid": datasets.Array2D((2, 3), "int32"), "boxes": datasets.Array2D((None, 4), "float32"),
        "kind": datasets.ClassLabel(names=["a", "b", "c"])})
    rows = [{"text": None if i % 7 == 3 else f"text {i} " * (i % 5), "large": f"é{i}", "blob": bytes([i % 256]) * (i % 9),
             "half": i / 8 % 100, "flag": None if i % 11 == 5 else i % 2 == 0, "big": (1 << 60) + i, "ids": list(range(i % 6)),
             "pair": [i, -i], "grid": [[i, 1, 2], [3, 4, i]], "boxes": [[k, 0, i, 1] for k in range(1 + i % 3)],
             "kind": i % 3} for i in range(N)]
    data = datasets.Dataset.from_list(rows, features=features)
    data.save_to_disk(box.path("d"), num_shards=3)
    read = [dict(row) for row in datasets.load_from_disk(box.path("d"))]
    dtypes = {"text": "text", "large": "text", "blob": "bytes", "half": "float16", "flag": "bool", "big": "uint64", "ids": "int64",
              "pair": "float32", "grid": "int32", "boxes": "float32", "kind": "int64"}
    lines = box.daemon({"d": arrow(box.path("d"))}).read("d", batch=64, seed=4)
    equal(len(read), N, "rows")
    check(lines, read, dtypes, seed=4)


@case("splits by name, and pictures and sound with their bytes inside")
def _(box):
    datasets = library(box)
    from PIL import Image
    pictures = []
    for i in range(30):
        out = io.BytesIO()
        Image.new("RGB", (6 + i % 4, 5), (i, 2 * i, 7)).save(out, "PNG")
        pictures.append({"bytes": out.getvalue(), "path": None})
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["x", "y"])})
    parts = {name: datasets.Dataset.from_dict({"image": pictures[begin:end], "label": [i % 2 for i in range(begin, end)]},
                                              features=features) for name, begin, end in (("train", 0, 20), ("test", 20, 30))}
    datasets.DatasetDict(parts).save_to_disk(box.path("d"))
    daemon = box.daemon({name: arrow(box.path("d"), split=name) for name in parts})
    for name, begin, end in (("train", 0, 20), ("test", 20, 30)):
        lines = daemon.read(name, pipeline="image: decode; label", batch=1, shuffle=False)
        equal(len(lines), end - begin, "samples")
        for line, i in zip(lines, range(begin, end)):
            pixels = bytes([i, 2 * i, 7]) * (5 * (6 + i % 4))
            equal(line["fields"]["image"]["sha256"], hashlib.sha256(pixels).hexdigest(), f"picture {i}")
            equal(line["fields"]["label"]["value"], i % 2, "label")


@case("columns with names that are long, or that a pipeline cannot contain, are chosen and renamed by them")
def _(box):
    datasets = library(box)
    import pyarrow as pa
    names = ["Finding Labels (é)", "steps/observation/natural_language_embedding", "n"]
    table = pa.Table.from_pylist([{name: 10 * i + k for k, name in enumerate(names)} for i in range(20)])
    datasets.Dataset(table).save_to_disk(box.path("d"))
    daemon = box.daemon({"d": arrow(box.path("d")), "r": arrow(box.path("d"), fields=f"label={names[0]}, a={names[1]}")})
    equal([sorted(field["value"] for field in line["fields"].values()) for line in daemon.read("d", shuffle=False)],
          [[10 * i, 10 * i + 1, 10 * i + 2] for i in range(20)], "all of them")
    check(daemon.read("r", seed=3), [{"label": 10 * i, "a": 10 * i + 1} for i in range(20)], {"label": "int64", "a": "int64"}, seed=3)


@case("the files of tests/vectors/arrow, written anew")
def _(box):
    library(box)
    subprocess.run([sys.executable, os.path.join(ROOT, "tests", "support", "make_arrow_vectors.py"), box.path("v")], check=True,
                   env={**os.environ}, stdout=subprocess.DEVNULL)
    subprocess.run([sys.executable, os.path.join(ROOT, "tests", "integration", "test_arrow.py")], check=True,
                   env={**os.environ, "ARROW_VECTORS": box.path("v")}, stdout=subprocess.DEVNULL)


main(tells_samples=True)
