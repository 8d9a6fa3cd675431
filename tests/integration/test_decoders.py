#!/usr/bin/env python3
"""Who decodes JPEG changes no pixel, and the daemon says who did."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, equal, main, photos, within

N_PHOTOS, N_CLASSES = 40, 4
PIPELINES = ("random_resized_crop(224) hflip(0.5)", "resize(64) center_crop(48)", "center_crop(600)")


def pixels(daemon):
    """Of each sample in each pipeline: the hash."""
    return [(pipeline, line["index"], line["fields"]["image"]["sha256"]) for pipeline in PIPELINES
            for line in daemon.read("photos", pipeline=pipeline, batch=8, seed=5)]


def counted(daemon):
    counters = {counter["name"]: int(counter["value"]) for counter in daemon.status()["counters"]}
    return tuple(counters[name] for name in ("n_jpeg_own", "n_jpeg_libjpeg", "n_jpeg_handed_over", "n_samples"))


@case("decoder = libjpeg gives the pixels of decoder = auto, and status says who decoded")
def _(box):
    folder = photos(N_PHOTOS, N_CLASSES)
    auto, libjpeg = box.daemon({"photos": folder}), box.daemon({"photos": folder}, decoder="libjpeg")
    lines = pixels(auto)
    equal(len(lines), N_PHOTOS * len(PIPELINES), "samples")
    equal(lines, pixels(libjpeg), "samples and their pixels")
    for daemon in (auto, libjpeg):      # what was begun when the reader left is counted a moment later
        within(5, lambda: sum(counted(daemon)[:2]) == counted(daemon)[3], "each sample was decoded by one or the other")
        equal(counted(daemon)[2], 0, "photographs that were handed over half-way")
    with open("/proc/cpuinfo", encoding="ascii") as cpus:
        if " avx2 " in cpus.read():     # without it our own decoder is not used
            equal(counted(auto)[0] > counted(auto)[1], True, f"most by our own decoder: {counted(auto)}")
    equal(counted(libjpeg)[0], 0, "decoded by our own decoder in spite of decoder = libjpeg")


main()
