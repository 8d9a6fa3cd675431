#!/usr/bin/env python3
"""dlctl trace: its file is what viewers expect, and tells what was done."""
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import DLCTL, Skip, case, contains, equal, few, main, patience, within, write
from traces import check_rules, load, ns, spans

STEPS = "random_resized_crop(96) hflip(0.5) color_jitter(0.4,0.4,0.4,0.1) to(float32)"
NO_THREAD = 1 << 22  # pid_max of Linux: numbers from here on are rows that are no thread


def steady(box, delay_ms=10, n_lines=40, **terms):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 60, width=64, height=48)})
    reader = daemon.reader("p", job="steady", batch=4, epochs=100000, delay_ms=delay_ms, pipeline=STEPS, **terms)
    reader.wait_lines(n_lines)
    return daemon, reader


def total_ns(trace, name):
    return sum(ns(event["dur"]) for event in spans(trace, name))


@case("everybody is seen at work, and the rows are well formed")
def _(box):
    daemon, _ = steady(box)
    path = box.path("t.json.gz")
    before = time.time()
    result = daemon.dlctl("trace", "--seconds", "1", "-o", path)
    after = time.time()
    equal(result.returncode, 0, result.stderr)
    contains(result.stdout, path, "dropped", "events")
    trace = load(path)
    rows = check_rules(trace)
    for name in ("sample", "decode", "random_resized_crop", "color_jitter", "convert", "header", "collate", "read", "turn",
                 "plan", "epoch", "order", "filling", "ready", "held"):
        assert spans(trace, name), f"no {name}"
    names = {event["args"]["name"] for event in trace["traceEvents"] if event["name"] in ("process_name", "thread_name")}
    for name in ("dataloaderd", "trainer: job steady, rank 0", "worker-0", "planner", "reads 1", "rank 0 slot 0"):
        assert name in names, (name, names)
    counters = {(event["name"], *event["args"]) for event in trace["traceEvents"] if event["ph"] == "C"}
    equal(counters, {("reads", "under way"), ("queued", "samples"), ("rank 0: ready", "batches")}, "counters")
    threads = set(os.listdir(f"/proc/{daemon.pid}/task"))
    for pid, tid in rows:
        assert pid != daemon.pid or tid >= NO_THREAD or str(tid) in threads, (pid, tid)
    # In the clock of the day: what torch's profiler writes lies beside it.
    begin_s = min(event["ts"] for event in spans(trace)) / 1e6 + trace["baseTimeNanoseconds"] / 1e9
    assert before - 5 < begin_s < after, (before, begin_s, after)
    first = spans(trace, "sample")[0]["args"]
    assert first["job"] == "steady" and first["rank"] == 0 and 0 <= first["sample"] < 60 and first["bytes"] > 0, first


@case("stages fill their samples, and sums are those that jobs shows")
def _(box):
    daemon, _ = steady(box)
    path = box.path("t.json")

    def counted():
        job = daemon.objects("jobs")[0]
        return {stage["name"]: stage["taken_ns"] for stage in job["stages"]}, job["counts"]["n_samples"]

    before, n_before = counted()
    equal(daemon.dlctl("trace", "--seconds", "2", "-o", path).returncode, 0, "exit code")
    after, n_after = counted()
    trace = load(path)
    stages = [event for event in spans(trace) if event["cat"] == "stage"]
    took = total_ns(trace, "sample")
    within_samples = sum(ns(event["dur"]) for event in stages)
    # A sample that was under way when the trace began has lost some of its stages: one for each worker at most.
    assert 0.9 * took <= within_samples <= 1.1 * took, (within_samples, took)
    n = len(spans(trace, "sample"))
    assert 0 < n <= n_after - n_before + 10, (n, n_before, n_after)
    for name in ("decode", "color_jitter", "header"):
        traced = total_ns(trace, name)
        assert 0 < traced <= after[name] - before[name] + 10**8, (name, traced, before, after)


@case("a trainer that waits is seen waiting, also if the wait is not over")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 12, width=60, height=40)}, workers=1)
    daemon.reader("p", job="hungry", batch=8, epochs=1000, pipeline="resize(500:700) color_jitter(0.4,0.4,0.4,0.1)")
    path = box.path("t.json")

    def waits():
        equal(daemon.dlctl("trace", "--seconds", "1", "--force", "-o", path).returncode, 0, "exit code")
        trace = load(path)
        check_rules(trace)
        return [event for event in spans(trace, "wait") if event["dur"] > 0] and spans(trace, "held")

    within(30, waits, "waits in the trace")


@case("a sample that a worker still has at the end is drawn up to there, once")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 12, width=60, height=40)}, workers=1)
    daemon.reader("p", job="heavy", batch=8, epochs=1000, pipeline="resize(500:700) color_jitter(0.4,0.4,0.4,0.1)").wait_lines(1)
    path = box.path("t.json")

    def unfinished():
        equal(daemon.dlctl("trace", "--seconds", "0.5", "--force", "-o", path).returncode, 0, "exit code")
        trace = load(path)
        check_rules(trace)
        samples = spans(trace, "sample")
        still = [event for event in samples if event["args"].get("outcome") == "not over"]
        assert len(still) <= 1, still
        if not still:  # the worker was between two samples
            return False
        last = still[0]
        assert "bytes" not in last["args"] and last["args"]["job"] == "heavy", last
        equal(last["ts"], max(event["ts"] for event in samples), "it began last")
        stages = [event for event in spans(trace) if event["cat"] == "stage" and event["ts"] > last["ts"]]
        assert all(event["ts"] + event["dur"] <= last["ts"] + last["dur"] + 0.001 for event in stages), (last, stages)
        return True

    within(30, unfinished, "a sample that is not over")


@case("Ctrl-C ends a trace early, with a whole file; there is one trace at a time")
def _(box):
    daemon, _ = steady(box)
    path = box.path("t.json")
    tracer = subprocess.Popen([DLCTL, "--socket", daemon.socket, "trace", "--seconds", "600", "-o", path], env=daemon.client_environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    daemon.wait_log("begins job=(all)")
    refused = daemon.dlctl("trace", "-o", box.path("other.json"))
    equal(refused.returncode, 1, "a second trace")
    contains(refused.stderr, "one at a time")
    assert not os.path.exists(box.path("other.json"))
    time.sleep(0.5)
    tracer.send_signal(signal.SIGINT)
    tracer.communicate(timeout=60)
    equal(tracer.returncode, 130, "exit code")
    trace = load(path)
    check_rules(trace)
    assert spans(trace, "sample")
    equal(daemon.dlctl("trace", "--seconds", "0.1", "-o", box.path("next.json")).returncode, 0, "the next one")


@case("a trace that has had half a minute gives way to another one, and its file has what there was so far")
def _(box):
    daemon, _ = steady(box, delay_ms=200, n_lines=8)  # half a minute of work need not be much of it
    path = box.path("t.json")
    tracer = subprocess.Popen([DLCTL, "--socket", daemon.socket, "trace", "steady", "--seconds", "3600", "-o", path],
                              env=daemon.client_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    daemon.wait_log("begins job=steady")
    contains(daemon.dlctl("trace", "-o", box.path("other.json")).stderr, "gives way in")
    time.sleep(30)
    equal(daemon.dlctl("trace", "--seconds", "1", "-o", box.path("other.json")).returncode, 0, "the second one")
    _, errors = tracer.communicate(timeout=60)
    equal(tracer.returncode, 0, errors)
    contains(errors, "the trace ends after 3", "another one was asked for")
    for name in ("t.json", "other.json"):
        trace = load(box.path(name))
        check_rules(trace)
        assert spans(trace, "held"), name


@case("many short traces of a daemon that is busy: each is whole, whatever is under way when it begins and ends")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 60, width=64, height=48)})
    readers = [daemon.reader("p", job="train", world=2, rank=rank, batch=2, epochs=1000000, pipeline="random_resized_crop(96)") for rank in range(2)]
    for reader in readers:
        reader.wait_lines(10)
    path = box.path("t.json")
    for _ in range(few(60, 15)):
        result = daemon.dlctl("trace", "--seconds", "0.02", "--force", "-o", path)
        equal(result.returncode, 0, result.stderr)
        check_rules(load(path))


@case("a tracer that dies leaves no trace behind")
def _(box):
    daemon, reader = steady(box)
    tracer = subprocess.Popen([DLCTL, "--socket", daemon.socket, "trace", "--seconds", "600", "-o", box.path("t.json")],
                              env=daemon.client_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    daemon.wait_log("begins job=(all)")
    memory = daemon.memory_used()
    tracer.kill()
    tracer.communicate()
    within(30, lambda: daemon.memory_used() < memory, "its buffers given back")
    within(30, lambda: daemon.dlctl("trace", "--seconds", "0.1", "--force", "-o", box.path("u.json")).returncode == 0,
           "another trace")
    reader.wait_lines(len(reader.lines) + 20)


@case("files are not replaced, and a disk that cannot be written is told before anything is traced")
def _(box):
    daemon, _ = steady(box)
    path = box.path("t.json")
    write(path, b"mine")
    refused = daemon.dlctl("trace", "--seconds", "0.1", "-o", path)
    equal(refused.returncode, 1, "exit code")
    contains(refused.stderr, "exists", "--force")
    equal(open(path, "rb").read(), b"mine", "the file")
    equal(daemon.dlctl("trace", "--seconds", "0.1", "-o", path, "--force").returncode, 0, "exit code")
    check_rules(load(path))
    refused = daemon.dlctl("trace", "--seconds", "0.1", "-o", box.path("no", "such", "folder.json"))
    equal(refused.returncode, 1, "exit code")
    contains(refused.stderr, "cannot write", "folder.json", "No such file")
    out = daemon.dlctl("trace", "--seconds", "0.1", "-o", "-")
    check_rules(json.loads(out.stdout))
    full = subprocess.run(f"{DLCTL} --socket {daemon.socket} trace --seconds 0.1 -o - > /dev/full", shell=True, text=True, capture_output=True,
                          env=daemon.client_environment(), check=False)
    equal(full.returncode, 1, full.stderr)
    contains(full.stderr, "No space left")
    equal([name for name in os.listdir(box.path()) if name.startswith(".")], [], "hidden files")


@case("a daemon that dies while it is traced: an error that says so, and a file that can be opened with what had come by then")
def _(box):
    for name in ("t.json", "-"):
        daemon, reader = steady(box)
        path = box.path(name)
        with open(box.path("out"), "wb") as out, open(box.path("err"), "wb") as err:
            traced = box.start([DLCTL, "--socket", daemon.socket, "trace", "--seconds", "60", "-o", path if name != "-" else "-"],
                               stdout=out, stderr=err, env=daemon.client_environment())
            daemon.wait_log("begins job=(all)")
            reader.wait_lines(len(reader.lines) + 100)
            daemon.kill()
            equal(traced.wait(patience(30)), 3, "exit code")
        with open(box.path("err"), encoding="utf-8") as err:
            contains(err.read(), f"the daemon at {daemon.socket} ended while it was traced", "in the output" if name == "-" else path)
        trace = load(path if name != "-" else box.path("out"))
        check_rules(trace)
        assert spans(trace, "sample"), "no sample"
        reader.process.kill()
        reader.process.wait()


def check_nothing_is_left(folder, names, said):
    """A sentence and an exit status, and no file that looks good."""
    equal(said.returncode, 1, said.stderr)
    equal(names, [], f"files in {folder}")
    equal(said.stdout, "", "what it says of the file")


@case("a disk that gets full while the trace is written: it is told, and nothing is left, compressed or not")
def _(box):
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        raise Skip("needs root and unshare: a small file system")
    daemon, _ = steady(box)
    folder = box.path("small")
    os.makedirs(folder)
    script = f"mount -t tmpfs -o size=4k none {folder} || exit 77; \"$@\"; rc=$?; ls -A {folder}; exit $rc"
    for name in ("t.json", "t.json.gz"):
        said = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", DLCTL, "--socket", daemon.socket, "trace", "--seconds", "1", "-o",
                               os.path.join(folder, name)], check=False, text=True, capture_output=True, env=daemon.client_environment())
        if said.returncode == 77 or "unshare:" in said.stderr:
            raise Skip(f"a small file system cannot be mounted here: {said.stderr}")
        check_nothing_is_left(folder, [], said)
        contains(said.stderr, "cannot write", os.path.join(folder, name), "No space left")


@case("so it is where a user's files may not be longer than so")
def _(box):
    daemon, _ = steady(box)
    folder = box.path("short")
    os.makedirs(folder)
    for name in ("t.json", "t.json.gz"):
        path = os.path.join(folder, name)
        said = subprocess.run([DLCTL, "--socket", daemon.socket, "trace", "--seconds", "1", "-o", path], check=False, text=True,
                              capture_output=True, env=daemon.client_environment(),
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
        check_nothing_is_left(folder, os.listdir(folder), said)
        contains(said.stderr, "cannot write", path, "too large")


@case("one job alone; a name that no job has is told, and so is a time that makes no sense")
def _(box):
    daemon, _ = steady(box)
    daemon.reader("p", job="other", batch=4, epochs=100000, delay_ms=10, pipeline=STEPS).wait_lines(20)
    path = box.path("t.json")
    equal(daemon.dlctl("trace", "--seconds", "0.5", "-o", path, "other").returncode, 0, "exit code")
    trace = load(path)
    check_rules(trace)
    equal({event["args"]["job"] for event in spans(trace) if "job" in event["args"]}, {"other"}, "jobs")
    equal(spans(trace, "turn"), [], "what is of no job")
    refused = daemon.dlctl("trace", "-o", box.path("u.json"), "stedy")
    equal(refused.returncode, 1, "exit code")
    contains(refused.stderr, 'no job "stedy"', "steady")
    for seconds in ("0", "-1", "nan", "4000"):
        equal(daemon.dlctl("trace", "--seconds", seconds).returncode, 2, seconds)


main()
