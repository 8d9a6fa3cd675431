"""The same photos as a folder of files and as TFRecord files, and TensorFlow's own reader of these, in turns. It needs
TensorFlow, which `make check-formats` installs.

    tfrecord_index           MB/s of files that an index is made of, page cache warm; all bytes are read, and their checksums
    tfrecord_index_vs_read   the same over reading all of their bytes one after the other, in turns
    tfrecord_rate            images/s that one rank gets with 2 workers: random_resized_crop(224), hflip
    tfrecord_vs_folder       over the folder of files, in turns
    tfrecord_tfdata          images/s of tf.data: parse_single_example, decode_and_crop_jpeg, resize with antialiasing, at its
                             best number of workers
    tfrecord_vs_tfdata       the daemon over tf.data, in turns
"""
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WORKERS = (1, 2, 3)


def tensorflow(python, *arguments):
    run = subprocess.run([python, os.path.join(HERE, "tfrecord_tfdata.py"), *map(str, arguments)], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, check=True, text=True, timeout=1800)
    return run.stdout


def pack(python, photos, out):
    if not os.path.exists(os.path.join(out, "made")):
        shutil.rmtree(out, ignore_errors=True)
        tensorflow(python, "pack", photos, out)
        with open(os.path.join(out, "made"), "w", encoding="utf-8"):
            pass
    return out


def index_ms(build, path):
    run = subprocess.run([os.path.join(build, "tools", "list_index"), "--stats", "--format=tfrecord", path, "/proc/nowhere"],
                         stdout=subprocess.PIPE, check=True, text=True, timeout=300)
    return float(re.match(r"\w+ ([\d.]+) ms", run.stdout).group(1))


def read_ms(folder):
    buffer, n_bytes, begin = memoryview(bytearray(1 << 20)), 0, time.monotonic()
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb", buffering=0) as file:
            while n := file.readinto(buffer):
                n_bytes += n
    return 1000 * (time.monotonic() - begin), n_bytes


def measure_index(build, emit, files, repeats):
    built, read = [], []
    n_bytes = read_ms(files)[1]
    for _ in range(2 * repeats):
        read.append(read_ms(files)[0])
        built.append(index_ms(build, files))
    emit("tfrecord_index", n_bytes / 1000 / statistics.median(built), "MB/s", ms=statistics.median(built), bytes=n_bytes)
    emit("tfrecord_index_vs_read", statistics.median(b / a for a, b in zip(built, read)), "ratio")


def measure_serving(daemon, emit, python, files, repeats, n_batches):
    folder, ours, theirs = [], [], []
    best = max(WORKERS, key=lambda n: json.loads(tensorflow(python, "rate", files, n, n_batches))["images_per_s"])
    with daemon(2) as it, daemon(2, path=files, format="tfrecord") as other:
        it.consume("throughput", 10)
        other.consume("throughput", 10)
        for _ in range(repeats):
            folder.append(it.consume("throughput", n_batches)["images_per_s"])
            ours.append(other.consume("throughput", n_batches)["images_per_s"])
            theirs.append(json.loads(tensorflow(python, "rate", files, best, n_batches))["images_per_s"])
    emit("tfrecord_rate", statistics.median(ours), "images/s", repeats=repeats)
    emit("tfrecord_vs_folder", statistics.median(a / b for a, b in zip(ours, folder)), "ratio")
    emit("tfrecord_tfdata", statistics.median(theirs), "images/s", workers=best)
    emit("tfrecord_vs_tfdata", statistics.median(a / b for a, b in zip(ours, theirs)), "ratio")


def run(daemon, emit, root, build, photos, out, repeats, n_batches):
    python = os.environ.get("TENSORFLOW_PYTHON") or os.path.join(root, "build", "formats", "bin", "python")
    if not os.path.exists(python):
        print("tfrecord: left out; it needs TensorFlow, which `make check-formats` installs", file=sys.stderr)
        return
    files = pack(python, photos, out)
    measure_index(build, emit, files, repeats)
    measure_serving(daemon, emit, python, files, repeats, n_batches)
