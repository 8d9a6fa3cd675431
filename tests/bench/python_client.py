"""What the Python client costs: next(), functions of the trainer's own, and Dataset objects as they are."""
import json
import os
import statistics
import subprocess
import tempfile
import time

from common_bench import BATCH, BUILD, HERE, IMAGES, PYTHON, REPEATS, ROOT, daemon, emit, median, photos


def python_client(it, mode):
    """None where there is no NumPy."""
    env = dict(it.environment(), PYTHONPATH=os.path.join(ROOT, "client", "python"),
               DATALOADERD_LIBRARY=os.path.join(BUILD, "libdlclient.so.0"))
    run = subprocess.run([PYTHON, os.path.join(HERE, "python_next.py"), mode], env=env, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    if run.returncode == 77:
        print(f"python_next skipped: {run.stderr.strip()}", flush=True)
        return None
    if run.returncode != 0:
        raise RuntimeError(run.stderr)
    return json.loads(run.stdout)


def python_next():
    with daemon(2) as it:
        runs = [python_client(it, "ready") for _ in range(2)]
        if None in runs:
            return
        times = []
        for _ in range(2 * REPEATS):
            times.append(python_client(it, "first")["ms"])
            time.sleep(0.3)  # the daemon takes the last one's ring down
    emit("python_next_ready", median(runs, "p50"), "us", n=runs[0]["n"])
    emit("python_next_ready_p99", median(runs, "p99"), "us")
    emit("python_next_cold", median(runs, "cold"), "us")
    emit("python_array", median(runs, "array"), "us")
    emit("python_first_batch", statistics.median(times), "ms", repeats=len(times))


def run_step(it, *arguments):
    """python_step.py; None where what it needs is not installed."""
    env = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "client", "python"),
               DATALOADERD_LIBRARY=os.path.join(BUILD, "libdlclient.so.0"))
    if it is not None:
        env.update(it.environment(), DAEMON_PID=str(it.process.pid))
    run = subprocess.run([PYTHON, os.path.join(HERE, "python_step.py"), *map(str, arguments)], env=env, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, check=False)
    if run.returncode == 77:
        print(f"python_step {arguments[0]} skipped: {run.stderr.strip() or 'torch and torchvision are not installed'}",
              flush=True)
        return None
    if run.returncode != 0:
        raise RuntimeError(run.stderr)
    return json.loads(run.stdout)


def python_step():
    costs, pairs = [], []
    with daemon(2, more='dataset "numbers" { path = "/" format = "numbers" count = "1048576" }\n') as it:
        for _ in range(REPEATS):
            costs.append(run_step(it, "cost", 12800))
        if None in costs:
            return
        for _ in range(REPEATS):
            ours = run_step(it, "rate", IMAGES // 2 // BATCH, 2)
            theirs = run_step(None, "torch", photos(), IMAGES // 2 // BATCH, 2)
            pairs.append((ours, theirs))
    for name in ("worker", "seeded", "daemon", "runs_worker", "runs_seeded", "runs_daemon"):
        emit(f"python_step_{name}", median(costs, name), "us", repeats=len(costs))
    emit("python_step_rate", median([ours for ours, _ in pairs], "images_per_s"), "images/s")
    if all(theirs for _, theirs in pairs):
        emit("python_step_torch", median([theirs for _, theirs in pairs], "images_per_s"), "images/s")
        emit("python_step_vs_torch", statistics.median(ours["images_per_s"] / theirs["images_per_s"]
                                                       for ours, theirs in pairs), "", repeats=len(pairs))


def run_from_dataset(folder, *arguments):
    """from_dataset.py; None where what it needs is not installed."""
    env = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "client", "python"), HOME=folder, XDG_RUNTIME_DIR=folder,
               DATALOADERD_LIBRARY=os.path.join(BUILD, "libdlclient.so.0"), DATALOADERD_IDLE="5",
               DATALOADERD_PROGRAM=os.path.join(BUILD, "dataloaderd"))
    env.pop("DATALOADERD_SOCKET", None)
    run = subprocess.run([PYTHON, os.path.join(HERE, "from_dataset.py"), *map(str, arguments)], env=env, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, check=False)
    if run.returncode == 77:
        print(f"from_dataset skipped: {run.stderr.strip()}", flush=True)
        return None
    if run.returncode != 0:
        raise RuntimeError(run.stderr)
    return json.loads(run.stdout)


def from_dataset():
    with tempfile.TemporaryDirectory() as folder:
        for kind, n_samples, *more in (("photos", IMAGES // 2, photos()), ("arrays", 20000), ("rows", 60000)):
            pairs = []
            for _ in range(REPEATS):
                pairs.append([run_from_dataset(folder, whose, kind, n_samples, 2, *more) for whose in ("ours", "torch")])
                if None in pairs[-1]:
                    return
            emit(f"from_dataset_{kind}", median([ours for ours, _ in pairs], "samples_per_s"), "samples/s", repeats=REPEATS)
            emit(f"from_dataset_{kind}_vs_torch",
                 statistics.median(ours["samples_per_s"] / theirs["samples_per_s"] for ours, theirs in pairs), "ratio")
            emit(f"from_dataset_{kind}_cpu_vs_torch",
                 statistics.median(theirs["cpu_us"] / ours["cpu_us"] for ours, theirs in pairs), "ratio")
