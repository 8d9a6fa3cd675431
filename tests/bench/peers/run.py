#!/usr/bin/env python3
"""`make bench-peers`: dataloaderd beside other loaders, each at its best. One line a result: name value unit.

    run.py [PREFIX]        the results whose names begin so; REPEATS (5), SECONDS (3) of a trial, LIMIT_S (1200) of all

The same photographs, the same random crops and flips, batches of 64 in uint8; page cache warm, queues full, no end of an
epoch within a trial. First the number of workers that gives the most images/s is looked for, peer by peer; then all are
measured in turns, another one first each time, and ratios are taken within a turn. The median is printed, then the
lowest and the highest. A peer that cannot be installed or fails is one line, and the rest goes on.

    ratio_PEER, ratio_cpu_PEER       images/s and images per CPU second (all processes), ours over theirs
    ratio_two_ranks                  two ranks of ours over one, images/s of both
    ratio_ranks_PEER, ratio_jobs_PEER  two ranks of a run, two jobs that know nothing of each other: ours over theirs
    ratio_memory_two_ranks           memory (PSS) of all processes, ours over torch's on Pillow, both trainers with torch;
    ratio_memory_two_ranks_bare      our trainers import nothing but their loader
    ratio_transport, _spdl           batches/s of finished batches of 9.6 MB, looked at byte by byte
    rate_, cpu_, first_batch_, next_p50_, next_p99_, memory_   the figures themselves
    psnr_PEER                        dB to Pillow's pixels, whole pictures made small

Results lie in build/bench/peers-TIME.jsonl; a run of everything writes docs/performance.md (report.py) as well.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import environment
import figures
import machine
import plan
import report
import trial
from environment import ROOT, say

OUT = os.path.join(ROOT, "build", "bench")
PHOTOS = os.path.join(OUT, "photos")
N_PHOTOS, N_CLASSES = 2000, 10
REPEATS = int(os.environ.get("REPEATS", "5"))
SECONDS = float(os.environ.get("SECONDS", "3"))
SWEEP_SECONDS = min(2.0, SECONDS)
LIMIT_S = float(os.environ.get("LIMIT_S", "1200"))
SWEEP_SHARE = 0.35   # of LIMIT_S at most
PIXELS_S = 60        # about what comparing pixels takes, after the repeats


class Comparison:
    """What is measured, what was given up, and where the time is."""

    def __init__(self, items):
        self.items, self.workers, self.rows = items, {}, []
        self.index = tempfile.mkdtemp(prefix="dlpeers-index-")
        self.deadline = time.monotonic() + LIMIT_S

    def give_up(self, item, why):
        print(f"{item.name} skipped: {why}", flush=True)
        self.rows.append({"kind": "skipped", "item": item.name, "why": why})
        self.items = [other for other in self.items if other.name != item.name and other.workers != item.name]

    def trial(self, item, workers, seconds, seed):
        """None if it failed: then it is given up."""
        try:
            return trial.run(item.peer, PHOTOS, workers, self.index, kind=item.kind, seconds=seconds,
                             seed=seed)
        except trial.Failed as error:
            say(f"{item.name}, {workers} workers: {error}")
            return None

    def candidates(self, item):
        """The numbers of workers to try: one, where the sweep has used its share of the time."""
        if len(item.workers) == 1 or time.monotonic() < self.deadline - LIMIT_S * (1 - SWEEP_SHARE):
            return item.workers
        workers = min(item.workers, key=lambda n: abs(n - len(os.sched_getaffinity(0))))
        print(f"# {item.name}: {workers} workers, untried: the sweep has used its share of LIMIT_S={LIMIT_S:.0f}", flush=True)
        return (workers,)

    def sweep(self):
        """The best number of workers of each; a number with which a peer fails is left out."""
        for item in list(self.items):
            if item not in self.items:
                continue                # given up with the one that it takes its workers from
            if isinstance(item.workers, str):
                self.workers[item.name] = self.workers[item.workers]
                continue
            candidates = self.candidates(item)
            if len(candidates) == 1:
                self.workers[item.name] = candidates[0]
                continue
            rates = {}
            for workers in candidates:
                row = self.trial(item, workers, SWEEP_SECONDS, seed=0)
                if row:
                    rates[workers] = row["images_per_s"]
            if rates:
                self.workers[item.name] = figures.best_workers(rates)
                say(f"{item.name}: {self.workers[item.name]} workers of {rates_text(rates)}")
            else:
                self.give_up(item, "it fails with any number of workers, see above")

    def repeat(self, number):
        for item in figures.rotated(list(self.items), number * 5):
            if item not in self.items:
                continue
            row = self.trial(item, self.workers[item.name], SECONDS, seed=number + 1)
            if row is None:
                self.give_up(item, f"it failed in repeat {number + 1}, see above")
                continue
            self.rows.append({"kind": "trial", "item": item.name, "repeat": number, "workers": self.workers[item.name],
                              **row})
            say(f"repeat {number + 1} of {REPEATS}: {item.name} {row['images_per_s']:.0f} images/s")

    def repeats(self):
        """As many as were asked for, or as there is time for."""
        for number in range(REPEATS):
            begin = time.monotonic()
            self.repeat(number)
            took = time.monotonic() - begin
            if number + 1 < REPEATS and time.monotonic() + took + PIXELS_S > self.deadline:
                print(f"# {number + 1} repeats instead of {REPEATS}: the next would end after LIMIT_S={LIMIT_S:.0f}",
                      flush=True)
                break

    def pixels(self):
        """Everyone's pixels beside Pillow's."""
        folder = os.path.join(OUT, "photos-4x3")
        script = [environment.PYTHON, os.path.join(environment.HERE, "pixels.py")]
        subprocess.run([*script, "pick", PHOTOS, folder], check=True)
        with tempfile.TemporaryDirectory(prefix="dlpeers-") as place:
            files = []
            for item in [item for item in self.items if item.kind == "one" and not item.name.startswith("transport")]:
                try:
                    files.append(f"{item.name}={trial.pixels(item.peer, folder, self.index, place)}")
                except trial.Failed as error:
                    print(f"psnr_{item.name} skipped: {error}", flush=True)
            done = subprocess.run([*script, "psnr", folder, *files], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            print("psnr skipped: see above", flush=True)
            return
        for name, value in json.loads(done.stdout).items():
            print(f"psnr_{name} {'equal' if value is None else f'{value:.1f}'} dB", flush=True)
            self.rows.append({"kind": "psnr", "item": name, "db": value})


def rates_text(rates):
    return ", ".join(f"{workers}: {rate:.0f}" for workers, rate in sorted(rates.items()))


def photographs():
    """The photographs, cut once. None is progressive: see decode_limit_mixed of make bench."""
    cutter = os.path.join(trial.BUILD, "tools", "cut_photos")
    if subprocess.run(["tests/support/photos.sh", PHOTOS, str(N_PHOTOS), str(N_CLASSES), cutter, "--baseline"], cwd=ROOT,
                      check=False, stdout=sys.stderr).returncode != 0:
        sys.exit("bench-peers: no photographs, so nothing can be measured")


def installed(comparison, items):
    """Gives up the items whose packages are not available; lets the others prepare themselves."""
    failed = environment.make(sorted({item.group for item in items}, key=list(environment.SIZES).index))
    for item in items:
        if item.group in failed:
            comparison.give_up(item, f"not installed: {failed[item.group]}")
    for item in [item for item in comparison.items if item.peer == "ffcv"]:
        try:
            trial.prepare("ffcv", PHOTOS)
        except trial.Failed as error:
            comparison.give_up(item, str(error))


def emit(comparison, wanted):
    trials = [row for row in comparison.rows if row["kind"] == "trial"]
    for result in wanted:
        if result.theirs:
            value = figures.ratio(trials, result.ours, result.theirs, result.key)
        else:
            value = figures.figure(trials, result.ours, result.key)
        if value is None:
            continue
        median, low, high = value
        digits = 3 if median < 100 else 0
        print(f"{result.name} {median:.{digits}f} {result.unit} ({low:.{digits}f} to {high:.{digits}f})", flush=True)
        comparison.rows.append({"kind": "result", "name": result.name, "value": median, "unit": result.unit, "low": low,
                             "high": high})


def save(rows):
    path = os.path.join(OUT, time.strftime("peers-%Y%m%d-%H%M%S.jsonl"))
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
    print(f"# results: {os.path.relpath(path, ROOT)}", file=sys.stderr)
    return path


def main():
    prefix = sys.argv[1] if len(sys.argv) > 1 else ""
    wanted, items, with_pixels = plan.chosen(prefix)
    if not wanted and not with_pixels:
        sys.exit(f"bench-peers: nothing begins with {prefix!r}; see tests/bench/peers/run.py")
    if not items:
        items = [item for item in plan.items() if item.name in plan.TITLES and not item.name.startswith("transport")]
    load = os.getloadavg()[0]  # before we make our own
    photographs()
    comparison = Comparison(items)
    try:
        installed(comparison, items)
        if not comparison.items:
            sys.exit("bench-peers: nothing is left to be measured")
        comparison.deadline = time.monotonic() + LIMIT_S
        if wanted:
            comparison.sweep()
            comparison.repeats()
            emit(comparison, wanted)
        if with_pixels:
            comparison.pixels()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        shutil.rmtree(comparison.index, ignore_errors=True)
    path = save([{"kind": "machine", **machine.about(PHOTOS, load)}] + comparison.rows)
    if not prefix:
        report.write(path)


if __name__ == "__main__":
    main()
