"""`make bench BENCH=growth`: what a sample costs while ranks, jobs, batches, pictures or the dataset grow.

All points are measured once, then all of them again, so that a machine whose speed drifts changes them alike. Medians are
printed, a line a figure: growth_AXIS_VALUE[_KIND]_FIGURE. The document's block and plots are made from them.

    cpu_us         CPU time a sample, daemon and clients together; client_cpu_us: the clients' part
    time_us        time a sample, all ranks together
    attach_ms      dlc_open() of the slowest rank, all of them attaching at once; first_ms: to its first batch
    load_ms        from the daemon's start until the dataset is there, its index made before
    memory_mib     anonymous memory of daemon and clients, rings apart; file_mib: mapped files, the index among them
    ring_mib       the rings
"""
import os
import sys
import time

from growth import axes, measure, report
from growth.folders import Folders

REPEATS = int(os.environ.get("REPEATS", "3"))
LIMIT_S = float(os.environ.get("GROWTH_SECONDS", "720"))  # no repeat begins that would end later
WORKERS = 2
BUSY = 0.5


def say(text):
    print(f"growth: {text}", file=sys.stderr, flush=True)


def once(build, folders, points, rows):
    for place, point in enumerate(points):
        if place % 10 == 0:
            say(f"{place} of {len(points)} points")
        rows[point].append(measure.measure(build, folders, point, WORKERS))


def run(build, out, photos, emit, wanted=""):
    """wanted: only the points whose name begins so."""
    points = [point for point in axes.all_points() if axes.name_of(point).startswith(wanted) or wanted == "growth"]
    if os.getloadavg()[0] > BUSY:
        say(f"something else runs on this machine (load {os.getloadavg()[0]:.1f}): the figures are worth little")
    folders = Folders(out, photos, os.path.join(build, "tools"))
    rows, begin, longest = {point: [] for point in points}, time.monotonic(), 0.0
    for point in points:
        folders.prepare(point)
    for repeat in range(REPEATS):
        started = time.monotonic()
        if repeat > 0 and started - begin + longest > LIMIT_S:
            say(f"{repeat} of {REPEATS} repeats: the next one would take longer than {LIMIT_S:.0f} s")
            break
        once(build, folders, points, rows)
        longest = max(longest, time.monotonic() - started)
    results = {point: measure.summary(rows[point]) for point in points}
    for point, figures in results.items():
        for figure, unit in measure.FIGURES.items():
            more = {key: figures[key] for key in ("threads_us", "sleeps", "cpu_low", "cpu_high") if figure == "cpu_us"}
            emit(f"{axes.name_of(point)}_{figure}", figures[figure], unit, repeats=len(rows[point]), **more)
    if wanted == "growth":
        report.write(results)
