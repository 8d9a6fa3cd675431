#!/usr/bin/env python3
"""kill -9 of daemon and trainers at random moments: no sample is lost, there twice, or wrong. `make bench
BENCH=kills` is the long form of it."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import VARIANT, case, equal, few, main
from kills import Campaign, c_rank, python_rank


def campaign(box, commands, n_kills, **options):
    seed = time.time_ns()
    print(f"   moments from seed {seed}")
    it = Campaign(box, commands, **options)
    it.run(n_kills, seed)
    counts, sentences = it.faults()
    equal(sentences, [], f"faults after {it.kills}")
    equal(counts["samples"] > n_kills, True, f"they got on: {counts}")
    return counts


# The moments are others in each run, so that sanitizers see many of them over the days.
@case(f"two trainers and their daemon, killed {few(150, 50)} times")
def _(box):
    campaign(box, [c_rank(), c_rank()], few(150, 50))


@case("three ranks that seek all the time, each where it likes, and a daemon that is killed 25 times meanwhile")
def _(box):
    counts = campaign(box, [c_rank()] * 3, 25, daemons=1, mean_seconds=0.15, options=["seeks=398", "slots=4"])
    equal(counts["seeks"] > 25, True, f"seeks: {counts}")


@case("three ranks that seek all the time, killed with their daemon again and again, begin anew after what they wrote down last")
def _(box):
    counts = campaign(box, [c_rank()] * 3, few(60, 25), mean_seconds=0.06, options=["seeks=26", "round=15", "slots=4"])
    equal(counts["seeks"] > 25, True, f"seeks: {counts}")


if VARIANT == "release":  # a sanitizer's runtime would have to be there before the interpreter
    @case("a trainer in Python beside one in C, and their daemon, killed 40 times")
    def _(box):
        campaign(box, [python_rank(), c_rank()], 40, mean_seconds=0.25)


main()
