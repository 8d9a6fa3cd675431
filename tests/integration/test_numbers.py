#!/usr/bin/env python3
"""Datasets of the format numbers: no files, samples that are only numbers, of which a function of the trainer's makes the rest."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, contains, equal, main


def numbers(**options):
    return {"path": "/", "format": "numbers", **options}


@case("sample i is the number i, in the order of any other dataset")
def _(box):
    daemon = box.daemon({"n": numbers(count="10"), "huge": numbers(count=str(2**40)), "part": numbers(count="10", split="0:50%")})
    lines = daemon.read("n", epochs=2, seed=4)
    equal(sorted(line["index"] for line in lines[:10]), list(range(10)), "an epoch")
    equal([line["fields"] for line in lines],
          [{"index": {"dtype": "int64", "shape": [], "value": line["index"]}} for line in lines], "fields")
    equal([line["fields"]["index"]["value"] for line in daemon.read("part", shuffle=False)], list(range(5)), "a part of it")
    last = daemon.read("huge", shuffle=False, limit=2, batch=2)
    equal([line["fields"]["index"]["value"] for line in last], [0, 1, 2, 3], "2^40 of them")
    contains(str(daemon.objects("datasets", "n")), "'index'", "numbers")


@case("how many there are must be said, and be possible")
def _(box):
    daemon = box.daemon({"none": numbers(), "file": numbers(count="3", path=__file__)})
    daemon.refused("none", "count is missing")
    daemon.refused("file", "is a folder")
    for count in ("0", "-1", str(2**40 + 1), "ten"):  # no number that it can be: before the daemon begins
        daemon = box.daemon({"n": numbers(count=count)}, wait=False)
        equal(daemon.process.wait(60), 78, f"the status with count = {count}")
        daemon.expected_status = 78
        contains(daemon.log(), "count", "a number from 1 to 1099511627776")


main()
