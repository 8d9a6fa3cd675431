"""The comparisons: what is loaded, from which form, beside which reader."""
import os
import subprocess
from collections import namedtuple

import cached_rows
import coco
import common_bench as bench
import sound
import tfrecord
import webdataset as tars

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(bench.OUT, "formats")
ARROW_ROWS = 100000
CROP = "random_resized_crop(224) hflip(0.5)"

# `make` gets the interpreter, returns the reader's arguments, and the daemon's dataset as options of its configuration.
Work = namedtuple("Work", "name title unit reader package batch pipeline make")


def make_tars(_python):
    shards = tars.pack(bench.photos(), os.path.join(bench.OUT, "webdataset"))
    return [shards], f'path = "{shards}" format = "webdataset"'


def make_records(python):
    files = tfrecord.pack(python, bench.photos(), os.path.join(bench.OUT, "tfrecord"))
    return [files], f'path = "{files}" format = "tfrecord"'


def make_tokens(_python):
    prefix = cached_rows.token_file(os.path.join(bench.OUT, "megatron"))
    return [prefix], f'path = "{prefix}" format = "megatron" sequence_length = "2048"'


def make_arrow(python):
    folder = os.path.join(FOLDER, "arrow")
    if not os.path.exists(os.path.join(folder, "state.json")):
        subprocess.run([python, os.path.join(HERE, "loaders.py"), "make_arrow", folder, str(ARROW_ROWS)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return [folder], f'path = "{folder}" format = "arrow"'


def make_sound(python):
    folder = os.path.join(bench.OUT, "sound")
    sound.make(python, folder)
    return [folder], f'path = "{folder}/metadata.jsonl" format = "jsonl"'


def make_boxes(_python):
    annotations = coco.annotate(bench.photos(), coco.jpeg_size, os.path.join(FOLDER, "coco"))
    return [bench.photos(), annotations], f'path = "{bench.photos()}" format = "coco" annotations = "{annotations}"'


WORKS = [
    Work("webdataset", "photos in tar archives", "images/s", "webdataset", "webdataset", 64, f"jpg: {CROP}; cls", make_tars),
    Work("tfrecord", "photos in TFRecord files", "images/s", "tfdata", "tensorflow-cpu", 64,
         f"image/encoded: {CROP}; image/class/label", make_records),
    Work("coco", "photos and boxes", "images/s", "torchvision", "torchvision", 1,
         "image, boxes, labels: resize(short=800, max=1333) hflip(0.5) sanitize", make_boxes),
    Work("megatron", "rows of 2,049 tokens", "rows/s", "megatron", "megatron-core", 64, "tokens", make_tokens),
    Work("arrow", "text of 1 KB, two integers", "rows/s", "arrow", "datasets", 64, "text: text; label; length", make_arrow),
    Work("sound", "3 s out of 10 s of FLAC", "crops/s", "soundfile", "soundfile", 64, "audio: audio(rate=16000, seconds=3)",
         make_sound),
]


def chosen(prefix):
    return [work for work in WORKS if f"formats_{work.name}".startswith(prefix) or prefix.startswith(f"formats_{work.name}")]
