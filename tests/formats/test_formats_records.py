#!/usr/bin/env python3
"""TFRecord, MDS and LitData: files that the installed tensorflow, mosaicml-streaming and litdata write, as they read them
themselves. The scripts that made tests/vectors make them."""
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from harness import case, main
from pyclient import need
from staging import Staging
from vector_sets import check_set, check_set_in_full, expected_in


def make(box, name, package):
    """The folder of what the writer wrote."""
    need(package)
    folder = box.path(name)
    subprocess.run([sys.executable, os.path.join(HERE, "..", "support", f"make_{name}_vectors.py"), folder], check=True,
                   timeout=500, stdout=subprocess.DEVNULL, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
    with open(os.path.join(folder, "WRITER"), encoding="utf-8") as file:
        print(f"        {file.read().strip()}")
    return folder


@case("TensorFlow: examples, sequences, long arrays, several values, plain records")
def _(box):
    folder = make(box, "tfrecord", "tensorflow")
    sets = ("photos", "tokens", "sequences", "several", "lines")
    daemon = box.daemon({name: {"path": os.path.join(folder, name), "format": "tfrecord"} for name in sets})
    for name in sets:
        check_set_in_full(daemon, name, expected_in(os.path.join(folder, name, "expected.jsonl")))


@case("mosaicml-streaming: every encoding but pickles")
def _(box):
    folder = make(box, "mds", "streaming")
    daemon = box.daemon({name: {"path": os.path.join(folder, name), "format": "mds"} for name in ("all", "fixed")})
    for name in ("all", "fixed"):
        check_set_in_full(daemon, name, expected_in(os.path.join(folder, f"{name}.jsonl")))


@case("LitData: dictionaries, tuples, single values, rows of text and numbers, tokens as documents and as blocks")
def _(box):
    folder = make(box, "litdata", "litdata")
    datasets = {name: {"path": os.path.join(folder, name), "format": "litdata"}
                for name in ("records", "pairs", "numbers", "tokens", "rows", "rows-zstd", "rows-many")}
    datasets["blocks"] = {**datasets["tokens"], "block_size": 4}
    daemon = box.daemon(datasets)
    for name in datasets:
        check_set_in_full(daemon, name, expected_in(os.path.join(folder, f"{name}.jsonl")))


@case("compressed shards and chunks, staged")
def _(box):
    for form, package, plain, packed in (("mds", "streaming", "fixed", ("fixed-zstd", "fixed-gz", "fixed-bz2", "fixed-br")),
                                         ("litdata", "litdata", "records",
                                          tuple(f"records-{name}" for name in ("zstd", "zstd9", "batch", "sample")))):
        folder = make(box, form, package)
        for name in packed:
            if name.endswith("br") and not shutil.which("brotli"):
                continue
            staging = Staging(box, "file://" + os.path.join(folder, name), name=name, format="auto", prepare="convert")
            staging.run()
            check_set(box.daemon({name: staging.dataset()}, name=f"of-{name}"), name,
                      expected_in(os.path.join(folder, f"{plain}.jsonl")))


main(tells_samples=True)
