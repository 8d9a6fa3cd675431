#!/usr/bin/env python3
"""`make bench-peers BENCH=dlio`: how many accelerators of RetinaNet a core keeps busy, under DLIO, with our loader and with
DLIO's own for torch. One line a result: the median of the repeats, then the lowest and the highest.

    accelerators.py        REPEATS (3)

    dlio_dlclient, dlio_torch    accelerators a core, held at a utilisation of 85 % or more
    dlio_ratio                   ours over DLIO's, repeat by repeat

The workload is MLPerf Storage's: files that DLIO makes for a record_length of 322957, batches of 24, 47.55 ms of
computation for each; here they are in the page cache. An accelerator is a process that asks for a batch and sleeps. One process stands
for x of them if it sleeps 47.55 ms / x, so that x need not be a whole number. A trial is a run of DLIO's own program with
one x, and DLIO says the utilisation. First x is made too large, which shows how long a batch takes; from what follows from
that, x is changed in steps of 5 % until the largest is found that holds. torch's loader has the number of workers with which it is
fastest, ours has the daemon with a worker for each CPU. Trials of both take turns.

Results lie in build/bench/dlio-TIME.jsonl, and in docs/dlio.md."""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "peers")]
import document
import environment
import machine
import trial
from environment import ROOT, say

OUT = os.path.join(ROOT, "build", "bench")
DATA = os.path.join(OUT, "dlio-retinanet")
PAGE = os.path.join(ROOT, "docs", "dlio.md")
REPEATS = int(os.environ.get("REPEATS", "3"))
N_FILES, BATCH, RECORD, COMPUTATION_S, WANTED = 1920, 24, 322957, 0.04755, 85.0
EPOCHS = {"dlclient": 3, "torch": 1}    # as long a trial for the faster one
FAST = 40.0                             # accelerators that nobody serves here
STEP, STEPS_MAX = 1.05, 8
TIMEOUT_S = 240

WORKLOAD = """
model: retinanet
framework: pytorch
workflow: {{generate_data: {generate}, train: {train}}}
dataset: {{data_folder: {data}, format: jpeg, num_files_train: {n}, num_samples_per_file: 1, record_length: {record}}}
reader:
  data_loader: pytorch
  batch_size: {batch}
  read_threads: {workers}
  file_shuffle: seed
  sample_shuffle: seed
{ours}
train: {{epochs: {epochs}, computation_time: {computation}}}
metric: {{au: 0.85}}
output: {{folder: {out}}}
"""
CONFIG = """socket = "{folder}/s"
index_dir = "{index}"
workers = {workers}
memory_limit = "2GiB"
dataset "retinanet" {{ path = "{photos}" format = "folder" pattern = "{{name}}.jpeg" }}
"""
OURS = """  data_loader_classname: retinanet.Loader
  data_loader_sampler: iterative
"""


def dlio(env, **terms):
    """A run of DLIO's program; its metrics."""
    terms = {"generate": False, "train": True, "data": DATA, "n": N_FILES, "record": RECORD, "batch": BATCH, "workers": 0,
             "ours": "", "epochs": 1, "computation": COMPUTATION_S, **terms}
    with tempfile.TemporaryDirectory(prefix="dlio-") as folder:
        os.mkdir(os.path.join(folder, "workload"))
        with open(os.path.join(folder, "workload", "retinanet.yaml"), "w", encoding="utf-8") as file:
            file.write(WORKLOAD.format(out=os.path.join(folder, "out"), **terms))
        # mpirun would tie the process, and the workers that it starts, to one core.
        done = subprocess.run(
            ["mpirun", "--allow-run-as-root", "--bind-to", "none", "-np", "1", environment.PYTHON,
             os.path.join(ROOT, "tests", "frameworks", "dlio_run.py"), "--config-dir", folder, "workload=retinanet",
             f"hydra.run.dir={folder}/out"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, **env, "OMP_NUM_THREADS": "1"}, cwd=folder, timeout=TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise trial.Failed("\n".join(done.stdout.splitlines()[-12:]))
        if not terms["train"]:
            return None
        with open(os.path.join(folder, "out", "summary.json"), encoding="utf-8") as file:
            return json.load(file)["metric"]


def make_files():
    """Once, by DLIO. They are noise of 568 x 568 grey pixels."""
    done = os.path.join(DATA, ".made")
    if not os.path.exists(done):
        say(f"dlio: making {N_FILES} files")
        shutil.rmtree(DATA, ignore_errors=True)
        dlio({}, generate=True, train=False)
        with open(done, "w", encoding="ascii"):
            pass


def warm():
    """The kernel may have dropped them."""
    total = 0
    for name in os.listdir(os.path.join(DATA, "train")):
        with open(os.path.join(DATA, "train", name), "rb") as file:
            total += len(file.read())
    return total


class Side:
    """One of the loaders."""

    def __init__(self, name, env, workers, rows):
        self.name, self.env, self.workers, self.rows = name, env, workers, rows

    def run(self, x, **terms):
        """Utilisation in percent and samples/s with x accelerators."""
        metrics = dlio(self.env, ours=OURS if self.name == "dlclient" else "", workers=self.workers,
                       computation=f"{COMPUTATION_S / x:.6f}", epochs=EPOCHS[self.name], **terms)
        row = {"kind": "trial", "loader": self.name, "workers": self.workers, "accelerators": x,
               "au": metrics["train_au_mean_percentage"], "samples_per_s": metrics["train_throughput_mean_samples_per_second"]}
        self.rows.append(row)
        say(f"dlio: {self.name}: {x:.2f} accelerators, utilisation {row['au']:.1f} %, {row['samples_per_s']:.0f} images/s")
        return row

    def holds(self, x):
        return self.run(x)["au"] >= WANTED

    def most(self):
        """The most accelerators that it holds."""
        full = self.run(FAST)
        x = full["au"] / WANTED * FAST      # a batch takes 1 / (au * FAST) of an accelerator's time
        held = self.holds(x)
        for _ in range(STEPS_MAX):
            after = x * STEP if held else x / STEP
            if self.holds(after) != held:
                return x if held else after
            x = after
        raise trial.Failed(f"{self.name}: no end after {STEPS_MAX} steps; the machine is too busy")


def best_workers(rows):
    """torch's, at full speed."""
    rates = {n: Side("torch", {}, n, rows).run(FAST)["samples_per_s"] for n in (1, 2, 3)}
    return max(sorted(rates), key=rates.get)


def measure(cpus, index):
    rows = []
    workers = best_workers(rows)
    with trial.daemon(os.path.join(DATA, "train"), cpus, index, CONFIG) as (_, env):
        env = {**env, "PYTHONPATH": f"{env['PYTHONPATH']}:{HERE}"}
        sides = [Side("dlclient", env, 0, rows), Side("torch", {}, workers, rows)]
        for repeat in range(REPEATS):
            for side in sides if repeat % 2 == 0 else sides[::-1]:
                warm()
                rows.append({"kind": "most", "loader": side.name, "repeat": repeat, "a_core": side.most() / cpus})
    return rows


def results(rows):
    """Name -> (median, lowest, highest), unit."""
    values = {name: [row["a_core"] for row in rows if row["kind"] == "most" and row["loader"] == name]
              for name in ("dlclient", "torch")}
    values["ratio"] = [ours / theirs for ours, theirs in zip(values["dlclient"], values["torch"])]
    return {f"dlio_{name}": (statistics.median(found), min(found), max(found)) for name, found in values.items()}


def block(about, found, rows):
    workers = next(row["workers"] for row in reversed(rows) if row.get("loader") == "torch" and row["kind"] == "trial")
    titles = {"dlio_dlclient": "`dlclient.dlio.Loader`", "dlio_torch": f"DLIO 2.0.0's own loader for torch, {workers} workers",
              "dlio_ratio": "ours over it, repeat by repeat"}
    busy = ""
    if about["load"] > machine.BUSY:
        busy = (f" The load average before it began was {about['load']:.1f}: something else ran on the machine, and then these "
                "figures are worth little.")
    lines = [[titles[name], f"{median:.2f}", f"{low:.2f} to {high:.2f}"] for name, (median, low, high) in found.items()]
    return (f"Measured on {about['date']}: {about['cpu']}, {about['cpus']} CPUs, Linux {about['kernel']}; {REPEATS} repeats.{busy}\n\n" +
            document.table(["", "accelerators of RetinaNet a core", "lowest to highest"], lines))


def main():
    load = os.getloadavg()[0]
    failed = environment.make(["torch", "dlio"])
    if failed:
        print(f"dlio skipped: not installed: {failed}", flush=True)
        return
    cpus, index = len(os.sched_getaffinity(0)), tempfile.mkdtemp(prefix="dlio-index-")
    try:
        make_files()
        rows = measure(cpus, index)
    except (trial.Failed, subprocess.TimeoutExpired) as error:
        print(f"dlio skipped: {error}", flush=True)
        return
    finally:
        shutil.rmtree(index, ignore_errors=True)
    found = results(rows)
    for name, (median, low, high) in found.items():
        unit = "ratio" if name == "dlio_ratio" else "accelerators/core"
        print(f"{name} {median:.2f} {unit} ({low:.2f} to {high:.2f})", flush=True)
    about = machine.about(os.path.join(DATA, "train"), load)
    path = os.path.join(OUT, time.strftime("dlio-%Y%m%d-%H%M%S.jsonl"))
    with open(path, "w", encoding="utf-8") as file:
        for row in [{"kind": "machine", **about}] + rows:
            file.write(json.dumps(row) + "\n")
    document.write(PAGE, {"dlio": block(about, found, rows)})


if __name__ == "__main__":
    main()
