"""Other loaders that end on the GPU, and ours: each in a process of its own, at its best number of workers.

A trial is a trainer (trainer_on_gpu.py) that loads at full speed, or beside matrix products. Its CPU time is that of all its
processes, and of the daemon where there is one. All are measured in turns, another one first each time."""
import contextlib
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import environment
import figures
import trial
from environment import ROOT, say
from trial import Failed

HERE = os.path.dirname(os.path.abspath(__file__))
PHOTOS = os.environ.get("DATA") or os.path.join(ROOT, "build", "bench", "photos")
N_PHOTOS, N_CLASSES = 2000, 10
REPEATS = int(os.environ.get("REPEATS", "3"))
SECONDS = float(os.environ.get("SECONDS", "3"))
GROUPS = {"dlclient": "torch", "torch": "torch", "torch_gpu": "torch", "dali": "dali", "spdl": "spdl", "ffcv": "ffcv"}


class NoGpu(Exception):
    """The sentence that says why."""


def photographs(build):
    """The folder; the photographs are cut once."""
    if "DATA" not in os.environ:
        cutter = os.path.join(build, "tools", "cut_photos")
        if subprocess.run(["tests/support/photos.sh", PHOTOS, str(N_PHOTOS), str(N_CLASSES), cutter, "--baseline"], cwd=ROOT,
                          check=False, stdout=sys.stderr).returncode != 0:
            raise Failed("no photographs, see above")
    return PHOTOS


def daemon(photos, workers, index, build):
    trial.BUILD = build
    return trial.daemon(photos, workers, index)


class Trainer(trial.Trainer):
    """As among the loaders on the CPU, but another program."""

    def __init__(self, name, photos, workers, mode, env):  # pylint: disable=super-init-not-called
        command = [environment.PYTHON, os.path.join(HERE, "trainer_on_gpu.py"), name, photos, str(workers), mode, str(SECONDS)]
        more = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore", "RANK": "0",
                "WORLD_SIZE": "1", **env}
        self.log = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(command, env=dict(os.environ, **more), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True, start_new_session=True)
        self.lines = queue.Queue()
        threading.Thread(target=self._pump, daemon=True).start()


def watch(trainer, daemon_pid):
    """Its figures, with the CPUs that were taken in its window."""
    for _ in ("imported", "warm"):
        trainer.line()
    pids = trial.tree(trainer.process.pid) + ([daemon_pid] if daemon_pid else [])
    cpu, begin = trial.cpu_seconds(pids), time.monotonic()
    row = trainer.line()
    row["cores"] = (trial.cpu_seconds(pids) - cpu) / (time.monotonic() - begin)
    return row


def run_one(name, workers, mode, index, build):
    """One trial."""
    with contextlib.ExitStack() as stack:
        pid, env = None, {}
        if name == "dlclient":
            pid, env = stack.enter_context(daemon(PHOTOS, workers, index, build))
            env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, (build, os.environ.get("LD_LIBRARY_PATH"))))
        trainer = Trainer(name, PHOTOS, workers, mode, env)
        stack.callback(trainer.end)
        return watch(trainer, pid)


def best_workers(name, index, build):
    """Of half of the CPUs and all of them, the one that gives more. Fails as the last of the trials does."""
    n_cpus, rates, failed = len(os.sched_getaffinity(0)), {}, None
    for workers in sorted({max(1, n_cpus // 2), n_cpus}):
        try:
            rates[workers] = run_one(name, workers, "alone", index, build)["images_per_s"]
        except Failed as error:
            failed = error
    if not rates:
        raise failed
    say(f"{name}: {figures.best_workers(rates)} workers of {rates}")
    return figures.best_workers(rates)


def summary(rows):
    """The medians of a peer's trials."""
    def median(mode, key):
        return statistics.median(row[key] for row in rows if row["mode"] == mode)

    return {"images_per_s": median("alone", "images_per_s"), "cores": median("alone", "cores"),
            "beside_images_per_s": median("beside", "images_per_s"), "gpu_share": median("beside", "gpu_share"),
            "workers": rows[0]["workers"], "repeats": sum(row["mode"] == "alone" for row in rows)}


def run(peers, build):
    """Yields each peer with its figures, or with the sentence why it has none."""
    try:
        photographs(build)
    except Failed as error:
        yield from ((peer, str(error)) for peer in peers)
        return
    failed = environment.make(sorted({GROUPS[peer] for peer in peers}, key=list(environment.SIZES).index))
    skipped = {peer: f"not installed: {failed[GROUPS[peer]]}" for peer in peers if GROUPS[peer] in failed}
    if "ffcv" in peers and "ffcv" not in skipped:
        with contextlib.suppress(Failed):
            trial.prepare("ffcv", PHOTOS)  # if it fails, so do its trials, and say why
    rows = {peer: [] for peer in peers}
    with tempfile.TemporaryDirectory(prefix="dlgpu-") as index:
        workers = {}
        for peer in [peer for peer in peers if peer not in skipped]:
            try:
                workers[peer] = best_workers(peer, index, build)
            except Failed as error:
                skipped[peer] = str(error)
        for number in range(REPEATS):
            for peer in figures.rotated([peer for peer in peers if peer not in skipped], number):
                try:
                    for mode in ("alone", "beside"):
                        row = run_one(peer, workers[peer], mode, index, build)
                        rows[peer].append({**row, "mode": mode, "workers": workers[peer]})
                except Failed as error:
                    skipped[peer] = str(error)
    for peer in peers:
        yield peer, skipped.get(peer) or summary(rows[peer])
