"""`make bench BENCH=profile`: where each microsecond of an image goes, in the daemon and in the bare loop of the same calls.

In turns: the daemon in its steady state (one rank, the pipeline of the other measurements), and the bare loop. Each gives
CPU time by stage, divided by the images that were made meanwhile. Where perf may not be used, or PROFILE=callgrind is set,
instructions are counted instead: of the daemon without its client, and without the kernel.
"""
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

from growth import axes, measure, processes, report
from growth.folders import Folders
from profile_image import instructions, perf, stages

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "peers"))
import document  # noqa: E402

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
REPEATS = int(os.environ.get("REPEATS", "3"))
SECONDS, IMAGES, WORKERS = 4, 2000, 1
COUNTED = 60  # images under valgrind
PLACES_SHOWN = 25


def times(shares, us):
    """Shares of CPU time -> us an image."""
    return {key: share * us for key, share in shares.items()}


def of_daemon(daemon, ranks, path):
    """stage -> us an image, and the same of places. The profiler says the shares; how much there was to share is read from
    the processes, over the time in which the images were counted."""
    pids = [daemon.process.pid] + [rank.pid for rank in ranks]
    n, ns = daemon.n_samples(), processes.total_ns(pids)
    perf.record(path, pids, SECONDS)
    n, ns = daemon.n_samples() - n, processes.total_ns(pids) - ns
    return [times(shares, ns / 1e3 / n) for shares in perf.shares(path, ROOT)]


def of_bare_loop(build, photos, path):
    """The same. Its first thread only looks for the files and waits."""
    said = perf.record_command(path, [os.path.join(build, "bench", "bare_loop"), photos, str(WORKERS), str(IMAGES)])
    us = json.loads(said)["cpu_s_per_1000"] * 1e3
    return [times(shares, us) for shares in perf.shares(path, ROOT, but_first=True)]


def bare_us(build, photos):
    """Of the bare loop without a profiler."""
    done = subprocess.run([os.path.join(build, "bench", "bare_loop"), photos, str(WORKERS), str(IMAGES)], check=True,
                          stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)["cpu_s_per_1000"] * 1e3


def medians(rows):
    return {key: statistics.median(row.get(key, 0.0) for row in rows) for key in {key for row in rows for key in row}}


def measure_turns(build, out, photos):
    """Lists of a turn each: the daemon by stage, the bare loop by stage, the bare loop alone; and the daemon's places."""
    ours, bare, alone, places = [], [], [], []
    daemon = measure.Daemon(build, Folders(out, photos, os.path.join(build, "tools")), axes.BASE, WORKERS)
    try:
        with tempfile.TemporaryDirectory(prefix="dlprofile-") as folder:
            path = os.path.join(folder, "perf.data")
            for _ in range(REPEATS):
                with measure.ranks_of(daemon, axes.BASE) as (ranks, _):
                    time.sleep(1)
                    by_stage, by_place = of_daemon(daemon, ranks, path)
                ours.append(by_stage)
                places.append(by_place)
                bare.append(of_bare_loop(build, photos, path)[0])
                alone.append(bare_us(build, photos))
    finally:
        daemon.end()
    return ours, bare, alone, medians(places)


def count_instructions(build, out, photos):
    """stage -> thousands of instructions an image: of the daemon, of the bare loop."""
    with tempfile.TemporaryDirectory(prefix="dlprofile-") as folder:
        path = os.path.join(folder, "daemon")
        daemon = measure.Daemon(build, Folders(out, photos, os.path.join(build, "tools")), axes.BASE, WORKERS,
                                instructions.command_of_daemon(path), reader="threads")  # valgrind knows no io_uring
        try:
            with measure.ranks_of(daemon, axes.BASE):
                ours = instructions.of_daemon(path, daemon, COUNTED, ROOT)
        finally:
            daemon.end()
        bare = instructions.of_bare_loop(os.path.join(folder, "bare"), build, photos, COUNTED, ROOT)
    return [{stage: count / 1e3 for stage, count in counts.items()} for counts in (ours, bare)]


def lines_of(ours, bare):
    """(stage, of the daemon, of the bare loop), those that are next to nothing left out."""
    rows = [(name, ours.get(name, 0.0), bare.get(name, 0.0)) for name in stages.NAMES]
    return [row for row in rows if max(row[1:]) >= 0.05]


def block(ours, bare, unit, method):
    total, total_bare = sum(ours.values()), sum(bare.values())
    rows = [[name, f"{a:,.1f}", f"{a / total:.1%}", f"{b:,.1f}"] for name, a, b in lines_of(ours, bare)]
    rows.append(["**sum**", f"{total:,.1f}", "100%", f"{total_bare:,.1f}"])
    about = f"Measured on {time.strftime('%Y-%m-%d')} with `make bench BENCH=profile`: {report.cpu_model()}; {method}."
    tail = f"The daemon takes {total / total_bare:.3f} times what the bare calls take."
    return "\n\n".join([about, document.table(["stage", f"daemon, {unit}", "share", f"bare calls, {unit}"], rows), tail])


def tell(emit, ours, bare, unit):
    """A line a stage, and how far their sum is from that of the bare calls."""
    for name, a, b in lines_of(ours, bare):
        emit("profile_" + re.sub("[^a-z]+", "_", name.lower()), a, unit, bare=b)
    emit("profile_sum", sum(ours.values()), unit)
    emit("profile_sum_bare", sum(bare.values()), unit)
    emit("profile_sum_over_bare", sum(ours.values()) / sum(bare.values()), "ratio")


def why_not_perf():
    if os.environ.get("PROFILE") == "callgrind":
        return "PROFILE=callgrind"
    with tempfile.TemporaryDirectory(prefix="dlprofile-") as folder:
        return perf.works(folder)


def by_time(build, out, photos, emit):
    ours, bare, alone, places = measure_turns(build, out, photos)
    ours, bare, alone = medians(ours), medians(bare), statistics.median(alone)
    tell(emit, ours, bare, "us")
    emit("profile_bare_alone", alone, "us")
    for (stage, place), us in sorted(places.items(), key=lambda item: -item[1])[:PLACES_SHOWN]:
        print(f"# {us:8.1f} us  {stage:24} {place}", flush=True)
    return block(ours, bare, "us", f"CPU microseconds an image, the client's among them, medians of {REPEATS} turns; without a "
                                   f"profiler the bare calls take {alone:,.0f}")


def by_instructions(build, out, photos, emit):
    ours, bare = count_instructions(build, out, photos)
    tell(emit, ours, bare, "kinstr")
    return block(ours, bare, "1,000 instructions", "instructions an image, counted by callgrind, since perf was not available; "
                                                   "they are not a time, and the kernel's and the client's are not among them")


def run(build, out, photos, emit):
    reason = why_not_perf()
    if reason and instructions.works():
        print(f"profile skipped: {reason}; {instructions.works()}", flush=True)
        return
    if reason:
        print(f"# instructions instead of time: {reason}", flush=True)
    body = (by_instructions if reason else by_time)(build, out, photos, emit)
    document.write(report.DOCUMENT, {"profile": body})
