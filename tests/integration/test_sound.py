#!/usr/bin/env python3
"""Sound in archives and in listings: the samples that python-soundfile read (tests/vectors/sound), cropped or whole; a
sound that is damaged does not stop the others."""
import hashlib
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, contains, equal, indices, main, write
from tars import archive, web

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors", "sound")


def vector(name):
    with open(os.path.join(VECTORS, name), "rb") as file:
        return file.read()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def digests(lines, field):
    return [line["fields"][field]["sha256"] for line in lines]


@case("FLAC in archives: whole, cropped in the middle and padded; the stored bytes without a step")
def _(box):
    sound, samples = vector("s16.flac"), vector("s16.flac.f32")
    archive(box.path("d", "all.tar"), [(f"{i:03d}.{kind}", content) for i in range(8)
                                       for kind, content in (("flac", sound), ("cls", b"%d" % i))])
    daemon = box.daemon({"d": web(box.path("d"))})
    for steps, wanted in (("raw", sound), ("audio(max_seconds=1)", samples),
                          ("audio(rate=16000, seconds=0.05, crop=center)", samples[400 * 4:1200 * 4]),
                          ("audio(rate=16000, seconds=0.2)", samples + bytes(1600 * 4))):
        lines = daemon.read("d", pipeline=f"flac: {steps}; cls", batch=4, seed=1)
        equal(digests(lines, "flac"), [sha256(wanted)] * 8, steps)
        equal([line["fields"]["cls"]["value"] for line in lines], indices(lines), "classes")


@case("files of a listing, in three formats; one that is cut is a damaged sample, and dlctl says where")
def _(box):
    names = ["s16.wav", "float.wav", "u8.wav", "s16.flac"]
    for name in names:
        write(box.path("d", name), vector(name))
    write(box.path("d", "cut.flac"), vector("s16.flac")[:1500])
    rows = [{"path": name, "text": name} for name in names[:2] + ["cut.flac"] + names[2:]]
    write(box.path("d", "l.jsonl"), "".join(json.dumps(row) + "\n" for row in rows).encode())
    daemon = box.daemon({"d": {"path": box.path("d"), "format": "jsonl", "files": "audio=path"}})
    lines = daemon.read("d", pipeline="audio: audio(max_seconds=1); text", shuffle=False, on_error="skip", batch=2)
    equal([line["fields"]["text"]["text"] for line in lines], names, "texts")
    equal(digests(lines, "audio"), [sha256(vector(name + ".f32")) for name in names], "samples")
    contains(daemon.dlctl("errors", "d").stdout, "l.jsonl:2", "cut short")


main()
