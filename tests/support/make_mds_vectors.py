#!/usr/bin/env python3
"""Writes tests/vectors/mds: small folders of mosaicml-streaming's own writer, and what its own reader reads from them.

    pip install mosaicml-streaming
    tests/support/make_mds_vectors.py [FOLDER]

Beside each folder is NAME.jsonl: a line a sample, as dlctl read prints its fields. fixed-zstd and the like have the
samples of fixed.
"""
import hashlib
import importlib.metadata
import json
import os
import shutil
import sys
from decimal import Decimal

import numpy
from PIL import Image
from streaming import MDSWriter
from streaming.base.format import reader_from_json

HERE = os.path.dirname(os.path.abspath(__file__))

COLUMNS = {
    "image": "jpeg", "mask": "png", "label": "int", "caption": "str", "blob": "bytes", "meta": "json", "price": "str_decimal",
    "big": "str_int", "ratio": "float32", "small": "uint8", "half": "float16", "matrix": "ndarray:float32:2,3",
    "tokens": "ndarray:int32", "any": "ndarray", "pil": "pil",
}


FIXED = {"x": "int", "y": "ndarray:float64:4"}


def sample(i):
    pixels = numpy.full((6 + i, 9, 3), 25 * i, numpy.uint8)
    return {
        "image": Image.fromarray(pixels), "mask": Image.fromarray(pixels[:, :, 0]), "label": 1000 - 300 * i,
        "caption": f"größe {i} " * i, "blob": bytes([0xff, i]) * i, "meta": {"i": i, "of": [1, 2.5, None]},
        "price": Decimal(f"{i}.25"), "big": 10 ** (2 * i) - 3, "ratio": numpy.float32(i / 3), "small": numpy.uint8(i),
        "half": numpy.float16(i / 4), "matrix": numpy.arange(6, dtype=numpy.float32).reshape(2, 3) + i,
        "tokens": numpy.arange(3 + 100 * i, dtype=numpy.int32) - i,
        "any": numpy.arange(8 * (i + 1), dtype=numpy.int64).reshape(i + 1, 4, 2), "pil": Image.fromarray(pixels),
    }


def fixed(i):
    return {"x": i, "y": numpy.arange(4, dtype=numpy.float64) * i}


def told(encoding, value, data):
    if encoding == "str_int":
        return {"dtype": "int64", "shape": [], "value": value}
    if encoding in ("str", "json", "str_decimal"):
        return {"dtype": "text", "shape": [len(data)], "sha256": hashlib.sha256(data).hexdigest(),
                "text": data.decode()[:200]}
    if encoding in ("bytes", "jpeg", "png", "pil"):
        return {"dtype": "bytes", "shape": [len(data)], "sha256": hashlib.sha256(data).hexdigest()}
    value = numpy.asarray(value)
    if value.ndim == 0:
        return {"dtype": value.dtype.name, "shape": [], "value": value.item()}
    return {"dtype": value.dtype.name, "shape": list(value.shape), "sha256": hashlib.sha256(value.tobytes()).hexdigest()}


def raw_columns(reader, data):
    """The bytes of each column, for those that are served as they are."""
    sizes, at = [], 0
    for size in reader.column_sizes:
        if not size:
            size, at = int(numpy.frombuffer(data[at:at + 4], numpy.uint32)[0]), at + 4
        sizes.append(size)
    for name, size in zip(reader.column_names, sizes):
        yield name, data[at:at + size]
        at += size


def write(folder, name, columns, samples):
    where = os.path.join(folder, name)
    shutil.rmtree(where, ignore_errors=True)
    with MDSWriter(out=where, columns=columns, size_limit=9000, hashes=["xxh64"]) as writer:
        for one in samples:
            writer.write(one)
    with open(os.path.join(where, "index.json"), encoding="utf-8") as file:
        shards = json.load(file)["shards"]
    with open(os.path.join(folder, f"{name}.jsonl"), "w", encoding="utf-8") as file:
        for shard in shards:
            reader = reader_from_json(where, "", shard)
            for i in range(reader.samples):
                data = reader.get_sample_data(i)
                values = reader.decode_sample(data)
                entries = {key: told(columns[key], values[key], raw) for key, raw in raw_columns(reader, data)}
                file.write(json.dumps(dict(sorted(entries.items()))) + "\n")
    return len(shards)


def write_packed(folder, compression):
    """The same samples as those of "fixed", in compressed shards."""
    where = os.path.join(folder, f"fixed-{compression}")
    shutil.rmtree(where, ignore_errors=True)
    with MDSWriter(out=where, columns=FIXED, size_limit=1000, compression=compression, hashes=["sha1"]) as writer:
        for i in range(50):
            writer.write(fixed(i))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "..", "vectors", "mds")
    os.makedirs(folder, exist_ok=True)
    assert write(folder, "all", COLUMNS, (sample(i) for i in range(8))) > 1
    assert write(folder, "fixed", FIXED, (fixed(i) for i in range(50))) == 1
    for compression in ("zstd", "gz", "bz2", "br"):
        write_packed(folder, compression)
    with open(os.path.join(folder, "WRITER"), "w", encoding="utf-8") as file:
        file.write(f"mosaicml-streaming {importlib.metadata.version('mosaicml-streaming')}\n")


if __name__ == "__main__":
    main()
