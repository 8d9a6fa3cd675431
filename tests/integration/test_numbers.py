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
    wrong = {"none": numbers(), "zero": numbers(count="0"), "less": numbers(count="-1"), "more": numbers(count=str(2**40 + 1)),
             "text": numbers(count="ten"), "file": numbers(count="3", path=__file__)}
    for name, words in {"none": "count is missing", "zero": "from 1 to 1099511627776", "less": "from 1 to 1099511627776",
                        "more": "from 1 to 1099511627776", "text": "whole number", "file": "is a folder"}.items():
        daemon = box.daemon({name: wrong[name]})
        daemon.refused(name, words)
        daemon.stop()


main()
