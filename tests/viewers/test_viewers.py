#!/usr/bin/env python3
"""dlctl trace: its file in Perfetto's page and in that of chrome://tracing, also beside a profile of torch."""
import collections
import gzip
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, case, equal, main
from traces import check_rules, load, ns, spans
from viewers import ChromeTracing, Perfetto

STEPS = "random_resized_crop(96) hflip(0.5) color_jitter(0.4,0.4,0.4,0.1) to(float32)"
SLICES = """select process.pid, thread.tid, slice.name, slice.ts, slice.dur, slice.depth from slice
    join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid)"""
COUNTERS = """select process.pid, track.name, count(*), max(counter.value) from counter
    join process_counter_track as track on counter.track_id = track.id join process using (upid) group by track.id"""
COMPLAINTS = "select name, value from stats where severity != 'info' and value > 0"


def traced(box, name, seconds="1"):
    """A trace of two trainers, each a rank of a job, of whom one is slow; and their processes."""
    daemon = box.daemon({"p": box.folder_of_pictures("p", 60, width=320, height=240)})
    readers = [daemon.reader("p", job="train", world=2, rank=rank, batch=8, epochs=100000, delay_ms=delay_ms, pipeline=STEPS)
               for rank, delay_ms in enumerate((5, 40))]
    for reader in readers:
        reader.wait_lines(10)
    path = box.path(name)
    result = daemon.dlctl("trace", "--seconds", seconds, "-o", path)
    equal(result.returncode, 0, result.stderr)
    return path, daemon.pid, [reader.process.pid for reader in readers]


def named(trace, what):
    return {(event["pid"], event["tid"]): event["args"]["name"] for event in trace["traceEvents"] if event["name"] == what}


def nested(rows):
    """(pid, tid, name, begin, duration, depth) of each event, in ns."""
    found = []
    for (pid, tid), row in rows.items():
        open_until = []
        for begin, end, event in sorted(row, key=lambda item: (item[0], -item[1])):
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            found.append((pid, tid, event["name"], begin, end - begin, len(open_until)))
            open_until.append(end)
    return sorted(found)


def counted(trace):
    """(pid, counter, series): its values."""
    counters = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "C":
            (series, value), = event["args"].items()
            counters[event["pid"], event["name"], series].append(value)
    return counters


def check_perfetto(page, trace):
    """It has understood all of the file, and has nothing to complain of."""
    equal(page.rows(COMPLAINTS), [], "what Perfetto complains of")
    processes = {(pid, 0): name for pid, name in page.rows("select pid, name from process where pid > 0")}
    equal(processes, named(trace, "process_name"), "processes")
    threads = {(pid, tid): name for pid, tid, name in
               page.rows("select pid, tid, thread.name from thread join process using (upid) where thread.name is not null")}
    equal(threads, named(trace, "thread_name"), "threads")
    slices = sorted(tuple(row) for row in page.rows(SLICES))
    # An event without duration at the end of another one is in it or after it: both are right.
    equal([row[:5] for row in slices], [row[:5] for row in nested(check_rules(trace))], "slices")
    equal([row for row in slices if row[4] > 0], [row for row in nested(check_rules(trace)) if row[4] > 0], "how slices lie in each other")
    equal(sorted(tuple(row) for row in page.rows(COUNTERS)),
          sorted((pid, f"{name} {series}", len(values), max(values)) for (pid, name, series), values in counted(trace).items()), "counters")


def check_chrome_tracing(model, trace):
    equal(model["warnings"], [], "what chrome://tracing warns of")
    equal({(process["pid"], 0): process["name"] for process in model["processes"]}, named(trace, "process_name"), "processes")
    threads = {(process["pid"], thread["tid"]): thread for process in model["processes"] for thread in process["threads"]}
    equal({place: thread["name"] for place, thread in threads.items()}, named(trace, "thread_name"), "threads")
    base = min(event["ts"] for event in trace["traceEvents"] if "ts" in event)  # from there on it counts, in ms
    for place, row in check_rules(trace).items():
        got = sorted((name, begin_ms * 1000 + base, dur_ms * 1000) for name, begin_ms, dur_ms in threads[place]["slices"])
        expected = sorted((event["name"], event["ts"], event["dur"]) for _, _, event in row)
        equal(len(got), len(expected), f"slices of {place}")
        for one, other in zip(got, expected):  # it counts in doubles, in ms
            assert one[0] == other[0] and abs(one[1] - other[1]) < 0.1 and abs(one[2] - other[2]) < 0.1, (place, one, other)
    counters = {(process["pid"], counter["name"], *counter["series"]) for process in model["processes"] for counter in process["counters"]}
    equal(counters, set(counted(trace)), "counters")


@case("Perfetto has every process, row, event and counter, and complains of nothing")
def _(box):
    for name in ("t.json", "t.json.gz"):
        path, daemon, trainers = traced(box, name)
        trace = load(path)
        page = Perfetto(box, path)
        check_perfetto(page, trace)
        equal(sorted(pid for pid, _ in page.rows("select pid, name from process where pid > 0")), sorted([daemon, *trainers]), "processes")
        assert len(spans(trace, "sample")) > 100 and len(spans(trace, "held")) > 10, "too little has happened"


@case("chrome://tracing has them too, without a warning; trainers stand above the daemon, rows in the order of their numbers")
def _(box):
    path, daemon, trainers = traced(box, "t.json")
    model = ChromeTracing(box, path).model()
    check_chrome_tracing(model, load(path))
    processes = sorted(model["processes"], key=lambda process: process["place"])
    equal([process["pid"] for process in processes], sorted(trainers) + [daemon], "processes in their order")
    reads = sorted((thread["place"], thread["name"]) for thread in processes[-1]["threads"] if thread["name"].startswith("reads"))
    equal([name for _, name in reads], [f"reads {number + 1}" for number in range(len(reads))], "rows of reads in their order")
    for process in processes[:-1]:
        rows = [thread["name"] for thread in sorted(process["threads"], key=lambda thread: thread["place"])]
        equal(rows, sorted(rows, key=lambda row: (not row.endswith("waits"), row)), "rows of a rank: its waits first")


def profile_of(pid, base_ns, begin_us):
    """What torch's profiler writes of a trainer: ten steps of a main thread and a GPU."""
    def step(number):
        return [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": pid, "tid": pid, "ts": begin_us + number * 90000,
                 "dur": 80000},
                {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": begin_us + number * 90000 + 100, "dur": 70000}]
    names = [{"name": what, "ph": "M", "ts": begin_us, "pid": process, "tid": thread, "args": arguments}
             for process, thread, label, place in ((pid, pid, "python3", pid), (0, 7, "python3", 5000000))
             for what, arguments in (("process_name", {"name": label}), ("process_labels", {"labels": "CPU" if process else "GPU 0"}),
                                     ("process_sort_index", {"sort_index": place}), ("thread_name", {"name": f"thread {thread}"}),
                                     ("thread_sort_index", {"sort_index": thread}))]
    return {"schemaVersion": 1, "displayTimeUnit": "ms", "baseTimeNanoseconds": base_ns,
            "traceEvents": names + sum((step(number) for number in range(10)), [])}


@case("joined with a profile of torch as the documentation says, ranks are in their trainer's process, at the same time")
def _(box):
    path, _, trainers = traced(box, "loader.json.gz")
    trace = load(path)
    begin_us = min(event["ts"] for event in spans(trace, "sample"))
    with gzip.open(box.path("torch.json.gz"), "wt") as file:
        json.dump(profile_of(trainers[0], trace["baseTimeNanoseconds"], begin_us), file)
    with open(os.path.join(ROOT, "docs", "monitoring.md"), encoding="utf-8") as file:
        script = next(text for text in re.findall(r"```python\n(.*?)```", file.read(), re.S) if "both.json.gz" in text)
    result = subprocess.run([sys.executable, "-c", script], cwd=box.path(), stderr=subprocess.PIPE, text=True, check=False)
    equal(result.returncode, 0, result.stderr)

    page = Perfetto(box, box.path("both.json.gz"))
    equal(page.rows(COMPLAINTS), [], "what Perfetto complains of")
    rows = page.rows(f"""select thread.name, min(ts), count(*) from slice join thread_track on track_id = thread_track.id join thread using (utid)
                         join process using (upid) where pid = {trainers[0]} group by utid""")
    found = {name: (begin_ns, n) for name, begin_ns, n in rows}
    equal(found[f"thread {trainers[0]}"], (ns(begin_us), 10), "the steps of the profile")
    assert abs(found["rank 0 slot 0"][0] - ns(begin_us)) < 10**10, found
    equal(page.rows("select count(*) from slice where name = 'sample'"), [[len(spans(trace, "sample"))]], "samples")


main()
