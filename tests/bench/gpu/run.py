#!/usr/bin/env python3
"""`make bench-gpu`: libdlclient-cuda on the first GPU. One line a result, `name value unit`, with its goal.

    run.py [NAME...]     parts or results whose names begin so; several names stand between blanks or commas

    link         copies out of the ring's memory, out of the driver's own, out of ordinary memory, in turns
    kernel       bytes a second that the finishing kernels read and write
    next         us of dlc_cuda_next() of a batch that is ready
    end_to_end   images/s from batches that are ready to the GPU, alone and beside matrix products
    daemon       the same from photographs through the daemon
    lifetime     is what a trainer reads late still what was sent?
    peers        other loaders that end on the GPU, each at its best, in processes of their own (trials.py)

goals.py has all names, units and goals. Without a GPU every line says that it was not run, and the exit status is 77. Over
the tests' driver (LD_LIBRARY_PATH=build/release/cuda) everything runs and each line says that it is not a measurement.

Results lie in build/bench/gpu-TIME.jsonl; a run of everything on a GPU writes the table of docs/performance.md as well.
GPU_KEYS="batch=64 repeats=3" is for the program, see main.c. Over the tests' driver all is small unless it is set.
"""
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path[1:1] = [os.path.join(HERE, "..", "peers")]
import card
import goals
import machine
import trials

BUILD = os.path.join(ROOT, os.environ.get("DLP_BUILD", "build/release"))
OUT = os.environ.get("BENCH_OUT") or os.path.join(ROOT, "build", "bench")
DOCUMENT = os.path.join(ROOT, "docs", "performance.md")
PROGRAM = os.path.join(BUILD, "bench", "gpu")
KEYS = os.environ.get("GPU_KEYS", "").split()
SMALL = "batch=4 side=32 slots=4 matmul=64 seconds=0.2 repeats=2 copies=4 n=24 kinds=7 work_ms=30 pace=200".split()
LIMIT_S = 600  # of a part
NO_GPU, SKIPPED = 3, 77


class Failed(Exception):
    """A part could not be measured; the text says why."""


def key(name, otherwise):
    """A key's number, as the program gets it."""
    return next((int(text.partition("=")[2]) for text in KEYS if text.startswith(name + "=")), otherwise)


def run_program(*arguments):
    """One part. Returns what it printed."""
    try:
        done = subprocess.run([PROGRAM, *arguments, *KEYS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f"gpu {arguments[0]} took more than {LIMIT_S} s") from None
    words = done.stderr.strip().removeprefix("gpu: ")
    if done.returncode == NO_GPU:
        raise trials.NoGpu(words)
    if done.returncode != 0:
        raise Failed(words or f"gpu {arguments[0]} ended with status {done.returncode}")
    if words:
        print(f"# {words}", flush=True)
    return json.loads(done.stdout)


@contextlib.contextmanager
def ready_batches(kind):
    """Gives batches without reading or decoding; its arguments for the program."""
    command = [os.path.join(BUILD, "bench", "ready_batches"), str(key("batch", 256)), str(key("side", 224)), kind]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield [f"socket={process.stdout.readline().strip()}", f"pid={process.pid}"]
    finally:
        process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


# ---- the parts: what the program, or trials.py, has found -------------------------------------------------------------

def link():
    with ready_batches("still") as arguments:
        found = run_program("link", *arguments)
    if found["registered_bytes"] == 0:
        print("# the ring's memory could not be registered: link_registered is that of ordinary memory", flush=True)
    return found


def kernel():
    return run_program("kernel")


def next_ready():
    with ready_batches("still") as arguments:
        return run_program("next", *arguments)


def end_to_end():
    with ready_batches("still") as arguments:
        return run_program("rate", *arguments)


def daemon():
    photos = trials.photographs(BUILD)
    with tempfile.TemporaryDirectory(prefix="dlgpu-") as index:
        with trials.daemon(photos, len(os.sched_getaffinity(0)), index, BUILD) as (pid, environment):
            return run_program("rate", f"socket={environment['DATALOADERD_SOCKET']}", f"pid={pid}")


def lifetime():
    with ready_batches(str(key("kinds", 61))) as arguments:
        return run_program("lifetime", *arguments)


RUNS = {"link": link, "kernel": kernel, "next": next_ready, "end_to_end": end_to_end, "daemon": daemon, "lifetime": lifetime}
assert sorted([*RUNS, "peers"]) == sorted(goals.PARTS)


# ---- telling ----------------------------------------------------------------------------------------------------------

class Report:
    """Prints each result once and keeps it."""

    def __init__(self, label):
        self.label, self.rows, self.values = label, [], {}

    def tell(self, one, value):
        """value: a number, or a text that says why there is none."""
        met = None if isinstance(value, str) else goals.is_met(one, value)
        line = f"{one.name} {value}" if isinstance(value, str) else f"{one.name} {goals.number(value)} {one.unit}"
        if met is not None and not self.label:
            line += f" ({'goal met' if met else 'goal missed'}: {goals.goal_text(one)})"
        print(line + (f" ({self.label})" if self.label and not isinstance(value, str) else ""), flush=True)
        self.values[one.name] = value
        row = {"kind": "result", "name": one.name, "unit": one.unit, "goal": goals.goal_text(one), "met": met,
               "label": self.label}
        self.rows.append({**row, "skipped" if isinstance(value, str) else "value": value})

    def tell_part(self, part, found):
        """found: what was measured, or a text that says why nothing was."""
        for one in goals.of_part(part):
            if isinstance(found, str):
                self.tell(one, f"skipped: {found}")
            elif one.key in found:
                self.tell(one, found[one.key])
        if not isinstance(found, str):
            self.rows.append({"kind": "details", "part": part, **found})


def run_part(part, report):
    try:
        report.tell_part(part, RUNS[part]())
    except (Failed, trials.Failed, OSError, subprocess.SubprocessError) as error:
        report.tell_part(part, str(error))


def run_peers(report):
    """Each one's results when it has all of them."""
    if report.label:
        report.tell_part("peers", "the tests' driver has no device for torch")
        return
    for peer, found in trials.run(list(goals.PEERS), BUILD):
        for one in goals.of_part("peers"):
            if one.name.rpartition("_")[0] == f"peers_{peer}":
                report.tell(one, f"skipped: {found}" if isinstance(found, str) else found[one.key])
        if not isinstance(found, str):
            report.rows.append({"kind": "details", "part": "peers", "peer": peer, **found})


def about_text(row):
    return (f"Measured on {row['date']} with `make bench-gpu`: {row['gpu']}, driver {row['driver']} (CUDA {row['cuda']}), "
            f"{row['link']}; {row['cpu']}, {row['cpus']} CPUs, Linux {row['kernel']}; dataloaderd {row['dataloaderd']}.")


def save(rows):
    os.makedirs(OUT, exist_ok=True)
    path = os.path.join(OUT, time.strftime("gpu-%Y%m%d-%H%M%S.jsonl"))
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
    print(f"# results: {os.path.relpath(path, ROOT)}", file=sys.stderr)


def main():
    names = [name for argument in sys.argv[1:] for name in argument.replace(",", " ").split()]
    parts = goals.chosen(names)
    load = os.getloadavg()[0]
    try:
        probe = run_program("probe")
    except trials.NoGpu as error:
        print(f"bench-gpu: {error}", flush=True)
        for part in parts:
            for one in goals.of_part(part):
                print(f"{one.name} {goals.NOT_RUN}")
        sys.exit(SKIPPED)
    except Failed as error:
        sys.exit(f"bench-gpu: {error}")
    if probe["is_stand_in"] and not KEYS:  # a CPU stands in for the device: seconds, and not hours
        KEYS.extend(SMALL)
    report = Report(goals.NOT_MEASURED if probe["is_stand_in"] else "")
    row = {"kind": "machine", **machine.about(trials.PHOTOS, load), **card.about(probe), "label": report.label}
    print(f"# {row['gpu']} ({row['bus_id']}), driver {row['driver']}, CUDA {row['cuda']}, {row['link']} (now "
          f"{row['link_now']}), NUMA node {row['numa_node']}; {row['cpu']}, {row['cpus']} CPUs" +
          (f"; {report.label}" if report.label else ""), flush=True)
    try:
        for part in parts:
            if part == "peers":
                run_peers(report)
            else:
                run_part(part, report)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        save([row] + report.rows)
    if parts == goals.PARTS and not report.label:
        goals.write(DOCUMENT, about_text(row), report.values)


if __name__ == "__main__":
    main()
