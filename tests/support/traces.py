"""Files of dlctl trace: what is in them, and what the Trace Event Format asks for."""
import collections
import gzip
import json

from harness import equal

STRETCH_S = 7889238  # torch's profiler counts from a multiple of this


def load(path):
    return json.load(gzip.open(path) if path.endswith(".gz") else open(path, encoding="utf-8"))


def ns(us):
    return round(us * 1000)


def spans(trace, name=None):
    return [event for event in trace["traceEvents"] if event["ph"] == "X" and name in (None, event["name"])]


def check_rules(trace):
    """What the format asks for, and viewers silently draw wrongly."""
    named, rows, counters = set(), collections.defaultdict(list), collections.defaultdict(list)
    for event in trace["traceEvents"]:
        assert event["ph"] in "XCM", event
        if event["ph"] == "M":
            named.add((event["name"], event["pid"], event.get("tid")))
            assert event["args"]["sort_index" if event["name"].endswith("_sort_index") else "name"], event
        elif event["ph"] == "C":
            counters[event["pid"], event["name"]].append((ns(event["ts"]), list(event["args"].values())[0]))
        else:
            assert event["ts"] >= 0 and event["dur"] >= 0 and event["name"] and event["cat"], event
            rows[event["pid"], event["tid"]].append((ns(event["ts"]), ns(event["ts"]) + ns(event["dur"]), event))
    for (pid, tid), row in rows.items():
        assert ("thread_name", pid, tid) in named, f"row {pid}/{tid} has no name"
        assert ("process_name", pid, 0) in named, f"process {pid} has no name"
        open_until = []
        for begin, end, event in sorted(row, key=lambda item: (item[0], -item[1])):
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            assert not open_until or end <= open_until[-1], f"{event} overlaps another one of its row"
            open_until.append(end)
    for name, values in counters.items():
        assert all(value >= 0 for _, value in values), name
        equal(values, sorted(values, key=lambda item: item[0]), f"{name} in order")
    equal(trace["baseTimeNanoseconds"] % (STRETCH_S * 10**9), 0, "what times are counted from")
    return rows
