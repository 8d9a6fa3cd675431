"""The pass that makes an index of tables and shards of items, in folders of eight files, page cache warm.

    tables_parquet_index    MB/s of Parquet of which an index is made: texts in pages that are compressed with gzip, and numbers
    tables_parquet_vs_read  the same over reading all bytes of the files one after the other, in turns
    tables_parquet_vs_one   over the same pass on one CPU, in turns
    tables_arrow_..., tables_mds_...   the same for Arrow files, texts of a kilobyte and numbers, and for shards of MDS, texts of 100
                            bytes and numbers
"""
import gzip
import json
import os
import random
import statistics
import struct
import sys

from listings import index_ms, read_ms, sentence

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from parquet_bytes import BYTE_ARRAY, GZIP, column, element, file, i32, numbers, page, texts

N_FILES = 8
VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors")


def parquet(draw):
    """20 pages of 5,000 rows of text; its numbers are not compressed."""
    words = texts([sentence(draw, 30).encode() for _ in range(5000)])
    text = page(words, 5000, packed=gzip.compress(words)) * 20
    number = page(numbers(range(100000)), 100000)
    return {f"{i}.parquet": file([column("text", text, 100000, BYTE_ARRAY, codec=GZIP, schema=[element("text", BYTE_ARRAY, s6=i32(0))]),
                                  column("number", number, 100000)], 100000) for i in range(N_FILES)}


def arrow(_):
    """The batch of a small file that pyarrow wrote, many times."""
    with open(os.path.join(VECTORS, "arrow", "kilobytes.arrow"), "rb") as source:
        stream = source.read()
    at = 8 + struct.unpack_from("<i", stream, 4)[0]  # the schema has no body
    whole = stream[:at] + stream[at:-8] * 400 + stream[-8:]
    return {f"{i}.arrow": whole for i in range(N_FILES)}


def mds(draw):
    text = sentence(draw, 16).encode()
    item = struct.pack("<I", len(text)) + text + struct.pack("<q", 7)
    n, config = 200000, b'{"version": 2}'
    first = 4 * (n + 2) + len(config)
    shard = struct.pack("<I", n) + struct.pack(f"<{n + 1}I", *(first + i * len(item) for i in range(n + 1))) + config + item * n
    shards = [{"column_encodings": ["str", "int"], "column_names": ["text", "number"], "column_sizes": [None, 8], "compression": None,
               "format": "mds", "hashes": [], "raw_data": {"basename": f"{i}.mds", "bytes": len(shard), "hashes": {}},
               "samples": n, "size_limit": 1 << 30, "version": 2, "zip_data": None} for i in range(N_FILES)]
    return {**{f"{i}.mds": shard for i in range(N_FILES)},
            "index.json": json.dumps({"version": 2, "shards": shards}).encode()}


def make(folder, files):
    if os.path.exists(folder):
        return
    os.makedirs(folder + ".new")
    for name, content in files(random.Random(7)).items():
        with open(os.path.join(folder + ".new", name), "wb") as out:
            out.write(content)
    os.rename(folder + ".new", folder)


def run(emit, build, out, repeats):
    every = os.sched_getaffinity(0)
    for kind, files in (("parquet", parquet), ("arrow", arrow), ("mds", mds)):
        folder = os.path.join(out, kind)
        make(folder, files)
        paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
        read, one, built = [], [], []
        for _ in range(2 * repeats):
            read.append(sum(read_ms(path) for path in paths))
            one.append(index_ms(build, kind, folder, {min(every)}))
            built.append(index_ms(build, kind, folder, every))
        n_bytes = sum(os.path.getsize(path) for path in paths)
        emit(f"tables_{kind}_index", n_bytes / 1000 / statistics.median(built), "MB/s", ms=statistics.median(built), bytes=n_bytes)
        emit(f"tables_{kind}_vs_read", statistics.median(a / b for a, b in zip(read, built)), "ratio")
        emit(f"tables_{kind}_vs_one", statistics.median(a / b for a, b in zip(one, built)), "ratio")
