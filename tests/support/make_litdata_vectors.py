#!/usr/bin/env python3
"""Writes tests/vectors/litdata: small folders of LitData's own writer, and what its own reader reads from them.

    pip install litdata
    tests/support/make_litdata_vectors.py [FOLDER]

Beside each folder is NAME.jsonl: a line a sample, as dlctl read prints its fields. records-zstd and the others whose chunks are
compressed have the samples of records, which LitData's own reader is asked for as well.
"""
import hashlib
import importlib.metadata
import io
import json
import os
import shutil
import sys
import tempfile

import numpy
import torch
from litdata import StreamingDataset, TokensLoader
from litdata.streaming.cache import Cache
from litdata.streaming.serializers import Serializer
from PIL import Image

PACKED = {"zstd": {"compression": "zstd", "compression_level": "chunk"}, "zstd9": {"compression": "zstd:9", "compression_level": "chunk"},
          "batch": {"compression": "zstd", "compression_batch_size": 2}, "sample": {"compression": "zstd", "compression_level": "sample"}}
HERE = os.path.dirname(os.path.abspath(__file__))


class Raw(Serializer):
    """Gives the bytes as they are stored."""

    def serialize(self, item):
        raise NotImplementedError

    def deserialize(self, data):
        return bytes(data)

    def can_serialize(self, data):
        return False


def jpeg(i):
    file = io.BytesIO()
    Image.new("RGB", (8 + i, 6), (30 * i, 2, 3)).save(file, "JPEG")
    return Image.open(io.BytesIO(file.getvalue()))


def record(i):
    return {"image": jpeg(i), "label": 7 - i, "text": f"größe {i}", "score": i / 3, "ok": i % 2 == 0, "blob": b"\xff" * i,
            "vector": numpy.arange(i + 1, dtype=numpy.float32), "matrix": numpy.arange(6 * (i + 1)).reshape(i + 1, 2, 3) - i,
            "ids": torch.arange(i), "fixed": torch.arange(6, dtype=torch.float64).reshape(2, 3) * i,
            "of": {"a": i * i, "b": f"b{i}"}, "pil": Image.new("L", (3, 2))}


def row(i):
    """Nothing but text, numbers and lists of them: LitData writes an Arrow table."""
    return {"text": f"größe {i} " * (i % 4), "n": i * 10 ** 9, "score": i / 3, "ok": i % 3 == 0, "ids": list(range(i % 6)),
            "words": [f"w{k}" * k for k in range(i % 4)], "of": {"a": i * i, "b": f"b{i}"}, "late": None if i % 5 == 1 else f"l{i}"}


def told(value):
    if isinstance(value, (bytes, bytearray, memoryview)):
        value = bytes(value)
        return {"dtype": "bytes", "shape": [len(value)], "sha256": hashlib.sha256(value).hexdigest()}
    if isinstance(value, str):
        data = value.encode()
        return {"dtype": "text", "shape": [len(data)], "sha256": hashlib.sha256(data).hexdigest(), "text": value}
    value = numpy.asarray(value)
    if value.ndim == 0:
        return {"dtype": value.dtype.name, "shape": [], "value": value.item()}
    return {"dtype": value.dtype.name, "shape": list(value.shape), "sha256": hashlib.sha256(value.tobytes()).hexdigest()}


def leaves(item, name=""):
    if not isinstance(item, (dict, tuple, list)):
        return {name or "data": told(item)}
    found = {}
    for key, value in item.items() if isinstance(item, dict) else enumerate(item):
        found.update(leaves(value, f"{name}.{key}" if name else str(key)))
    return found


def rows(item, name=""):
    """As leaves(), but a list is a value."""
    found = {}
    for key, value in item.items():
        key = f"{name}.{key}" if name else key
        if isinstance(value, dict):
            found.update(rows(value, key))
        elif isinstance(value, list) and key == "words":
            data = b"".join(text.encode() + b"\0" for text in value)
            found[key] = {"dtype": "texts", "shape": [len(value)], "sha256": hashlib.sha256(data).hexdigest(), "texts": value}
        else:
            found[key] = None if value is None else told(numpy.array(value, numpy.int64) if isinstance(value, list) else value)
    return found


def write(folder, name, items, **terms):
    where = os.path.join(folder, name)
    shutil.rmtree(where, ignore_errors=True)
    os.makedirs(where)
    cache = Cache(where, **terms)
    for i, item in enumerate(items):
        cache[i] = item
    cache.done()
    cache.merge()
    path = os.path.join(where, "index.json")
    with open(path, encoding="utf-8") as file:
        index = json.load(file)
    index["updated_at"] = "0"  # the same bytes each time
    with open(path, "w", encoding="utf-8") as file:
        json.dump(index, file, sort_keys=True)
    return where


def expect(folder, name, entries):
    with open(os.path.join(folder, f"{name}.jsonl"), "w", encoding="utf-8") as file:
        for entry in entries:
            file.write(json.dumps(dict(sorted(entry.items()))) + "\n")


def read(where):
    raw = {"jpeg": Raw(), "pil": Raw()}
    dataset = StreamingDataset(where, serializers=raw)
    return [leaves(dataset[i]) for i in range(len(dataset))]


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "..", "vectors", "litdata")
    os.makedirs(folder, exist_ok=True)
    records = read(write(folder, "records", map(record, range(7)), chunk_size=3))
    expect(folder, "records", records)
    for name, terms in PACKED.items():
        where = write(folder, f"records-{name}", map(record, range(7)), chunk_size=3, **terms)
        with tempfile.TemporaryDirectory() as copy:  # the reader decompresses chunks in their place
            if read(shutil.copytree(where, os.path.join(copy, name))) != records:
                sys.exit(f"records-{name} has not the samples of records")
    expect(folder, "pairs", read(write(folder, "pairs", ((i, f"x{i}") for i in range(5)), chunk_size=2)))
    expect(folder, "numbers", read(write(folder, "numbers", range(4), chunk_size=3)))
    for name, terms in {"rows": {}, "rows-zstd": {"compression": "zstd"}}.items():
        where = write(folder, name, map(row, range(30)), chunk_size=13, **terms)
        expect(folder, name, map(rows, StreamingDataset(where)))
    where = write(folder, "rows-many", ({"n": i, "text": f"t{i}"} for i in range(280)), chunk_size=270)
    expect(folder, "rows-many", map(rows, StreamingDataset(where)))
    documents = [torch.arange(20 * i, 20 * i + 5 + i, dtype=torch.int32) for i in range(9)]
    where = write(folder, "tokens", documents, chunk_size=24, item_loader=TokensLoader(block_size=4))
    expect(folder, "tokens", ({"tokens": told(document)} for document in documents))
    blocks = StreamingDataset(where, item_loader=TokensLoader(block_size=4))
    expect(folder, "blocks", ({"tokens": told(blocks[i])} for i in range(len(blocks))))
    with open(os.path.join(folder, "WRITER"), "w", encoding="utf-8") as file:
        file.write(f"litdata {importlib.metadata.version('litdata')}\n")


if __name__ == "__main__":
    main()
