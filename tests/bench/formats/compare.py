#!/usr/bin/env python3
"""`make bench-peers BENCH=formats`: each form of training data beside its own reader, in turns. One line a result.

    compare.py [PREFIX]    formats, or formats_NAME for one of them; REPEATS (5), SECONDS (3) of a turn

    formats_NAME           samples/s of one rank, two workers, through the Python client
    formats_NAME_peer      the same of the reader, at its best of 1, 2 and 3 workers
    formats_NAME_ratio     ours over it, pair by pair: the median, then the lowest and the highest

A reader that cannot be installed or fails is one line, and the rest goes on. Results lie in build/bench/formats-TIME.jsonl; a run of
everything writes docs/performance-formats.md as well.
"""
import glob
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "peers")]
import environment
import machine
import common_bench as bench
import page
import works
from environment import say

SECONDS = float(os.environ.get("SECONDS", "3"))
WORKERS = (1, 2, 3)
TIMEOUT = 300


class Failed(Exception):
    """A loader ended with an error; the text is its last line."""


def rate(env, name, *arguments):
    done = subprocess.run([environment.PYTHON, os.path.join(HERE, "loaders.py"), name, str(SECONDS), *map(str, arguments)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT, env=env, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        raise Failed((done.stderr.strip().splitlines() or ["no word"])[-1])
    return json.loads(lines[-1])["per_s"]


def warm(places):
    """Brings the data into the page cache: the kernel may have dropped them while another side ran."""
    buffer = memoryview(bytearray(1 << 20))
    for place in places:
        inner = [os.path.join(folder, name) for folder, _, names in os.walk(place) for name in names]
        for path in inner or glob.glob(place + "*"):
            with open(path, "rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass


def best_workers(work, arguments):
    warm(arguments)
    rates = {n: rate(os.environ, work.reader, *arguments, n) for n in WORKERS}
    best = max(rates, key=rates.get)
    say(f"{work.reader}: {best} workers of {', '.join(f'{n}: {value:.0f}' for n, value in rates.items())}")
    return best


def turns(work):
    """Pairs of (ours, theirs), and the reader's workers."""
    arguments, options = work.make(environment.PYTHON)
    best, pairs = best_workers(work, arguments), []
    with bench.daemon(2, more=f'dataset "data" {{ {options} }}\n') as it:
        env = dict(it.environment(), PYTHONPATH=os.path.join(bench.ROOT, "client", "python"),
                   DATALOADERD_LIBRARY=os.path.join(bench.BUILD, "libdlclient.so.0"))
        for number in range(bench.REPEATS):
            pair = {}
            warm(arguments)
            for side in ("ours", "theirs") if number % 2 else ("theirs", "ours"):
                pair[side] = rate(env, "ours", "data", work.pipeline, work.batch) if side == "ours" else \
                    rate(os.environ, work.reader, *arguments, best)
            pairs.append((pair["ours"], pair["theirs"]))
    return pairs, best


def compared(work, versions):
    pairs, best = turns(work)
    ratios = [a / b for a, b in pairs]
    row = {"name": work.name, "title": work.title, "unit": work.unit, "reader": work.package, "version": versions.get(work.package, ""),
           "workers": best, "ours": statistics.median(a for a, _ in pairs), "theirs": statistics.median(b for _, b in pairs),
           "ratio": statistics.median(ratios), "low": min(ratios), "high": max(ratios), "pairs": pairs}
    print(f"formats_{work.name} {row['ours']:.0f} {work.unit}\nformats_{work.name}_peer {row['theirs']:.0f} {work.unit} "
          f"({work.package} {row['version']}, {best} workers)\nformats_{work.name}_ratio {row['ratio']:.2f} "
          f"({row['low']:.2f} to {row['high']:.2f})", flush=True)
    return row


def main():
    prefix = sys.argv[1] if len(sys.argv) > 1 else "formats"
    wanted = works.chosen(prefix)
    if not wanted:
        sys.exit(f"bench-peers: nothing begins with {prefix!r}; there are: {', '.join('formats_' + w.name for w in works.WORKS)}")
    load, rows = os.getloadavg()[0], []
    failed = environment.make(["torch", "tensorflow", "formats"])
    for name, why in failed.items():
        say(f"{name} is not installed: {why}")
    versions = environment.versions()
    for work in wanted:
        try:
            rows.append(compared(work, versions))
        except (Failed, subprocess.TimeoutExpired, subprocess.CalledProcessError, RuntimeError) as error:
            print(f"formats_{work.name} skipped: {error}", flush=True)
    path = os.path.join(bench.OUT, time.strftime("formats-%Y%m%d-%H%M%S.jsonl"))
    about = {"kind": "machine", **machine.about(bench.photos(), load)}
    with open(path, "w", encoding="utf-8") as file:
        for row in [about, *rows]:
            file.write(json.dumps(row) + "\n")
    print(f"# results: {os.path.relpath(path, bench.ROOT)}", file=sys.stderr)
    if len(rows) == len(works.WORKS):
        page.write(about, rows)


if __name__ == "__main__":
    main()
