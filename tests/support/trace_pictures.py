#!/usr/bin/env python3
"""The picture of a trace in the documentation: a job of two ranks, of whom one waits for data, in Perfetto's page.

    trace_pictures.py FOLDER [NAME]...

makes FOLDER/trace.png. With the name trace-chrome it shows the same in chrome://tracing: look at both after a change of rows,
names or colours. It needs the viewers of `make check-viewers`.
"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import pyclient  # noqa: E402
from harness import Box, end, photos  # noqa: E402
from status_pictures import HEAVY, N_CLASSES, N_PHOTOS, TRAINER, shrink  # noqa: E402
from traces import load, spans  # noqa: E402
from viewers import ChromeTracing, Perfetto  # noqa: E402

SHOWN_US = 200000
RANKS_HOLD = 0.01, 0.09  # seconds that each has a batch: the first one asks for more than two workers can do


def record(box):
    daemon = box.daemon({"photos": photos(N_PHOTOS, N_CLASSES)}, memory_limit="2GiB")
    for rank, hold in enumerate(RANKS_HOLD):
        terms = ("photos", "resnet50", 2, 4, hold, HEAVY, "fail")
        box.start([sys.executable, "-c", pyclient.PRELUDE + TRAINER.format(terms, [rank])], env=pyclient.environment_of(daemon))
    time.sleep(6)
    path = box.path("trace.json")
    said = daemon.dlctl("trace", "--seconds", "2", "-o", path)
    if said.returncode != 0:
        raise SystemExit(said.stderr)
    for process in box.processes:
        end(process)
    return path


def moment(path):
    """From the middle of the trace on, when all is as usual."""
    begins = sorted(event["ts"] for event in spans(load(path), "sample"))
    begin_us = begins[len(begins) // 2]
    return round(begin_us * 1000), round((begin_us + SHOWN_US) * 1000)


def in_perfetto(box, path, picture):
    page = Perfetto(box, path, 1400, 1110)
    begin_ns, end_ns = moment(path)
    page.command("dev.perfetto.ExpandAllGroups")
    page.browser.value(f"app.trace.timeline.setViewportTime({begin_ns}n, {end_ns}n), 0")
    time.sleep(3)
    page.browser.picture(picture)
    shrink(picture)


def in_chrome_tracing(box, path, picture):
    page = ChromeTracing(box, path, 1400, 1300)
    time.sleep(3)
    page.browser.picture(picture)
    shrink(picture)


PICTURES = {"trace": in_perfetto, "trace-chrome": in_chrome_tracing}


def main():
    folder = os.path.abspath(sys.argv[1])
    box = Box()
    try:
        path = record(box)
        for name in sys.argv[2:] or ["trace"]:
            PICTURES[name](box, path, os.path.join(folder, f"{name}.png"))
    finally:
        for process in box.processes:
            end(process)
        for remark in box.close():
            print(remark)


if __name__ == "__main__":
    main()
