"""One point: a daemon of its own, all the ranks of the point, a window of time in which they take what they get.

What is counted is what the daemon decodes (its own counter), so a window need not begin or end with a batch.
"""
import contextlib
import json
import os
import statistics
import subprocess
import tempfile
import time

from growth import axes, processes

WARM_S, WARM_MAX_S, WINDOW_S = 0.3, 10, 1.5
ORDER_MAX_S, ORDER_BUSY_NS = 60, 1e6
ATTEMPTS_S = 120  # until a dataset of 10^8 samples is there, or the first batch of 4,096 photos
FIGURES = {"cpu_us": "us", "client_cpu_us": "us", "time_us": "us", "attach_ms": "ms", "first_ms": "ms", "load_ms": "ms",
           "memory_mib": "MiB", "file_mib": "MiB", "ring_mib": "MiB"}


class Daemon:
    """Private; ended by end(). `program` goes in front of its command line."""

    def __init__(self, build, folders, point, workers, program=(), reader="auto"):
        folder, self.dataset = folders.prepare(point)
        self.build = build
        self.place = tempfile.TemporaryDirectory(prefix="dlgrowth-")
        self.socket = os.path.join(self.place.name, "s")
        config = os.path.join(self.place.name, "c")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'socket = "{self.socket}"\nindex_dir = "{folders.index_dir}"\nworkers = {workers}\n'
                       f'reader = "{reader}"\nmemory_limit = "16GiB"\nlog_level = "warning"\n'
                       f'dataset "{self.dataset}" {{ path = "{folder}" }}\n')
        begin = time.monotonic()
        self.process = subprocess.Popen([*program, os.path.join(build, "dataloaderd"), "-c", config])
        try:
            self.wait_for_dataset(begin + ATTEMPTS_S)
        except BaseException:
            self.end()
            raise
        self.load_ms = (time.monotonic() - begin) * 1e3

    def ask(self, command):
        """What dlctl says; None while nobody answers."""
        done = subprocess.run([os.path.join(self.build, "dlctl"), "--socket", self.socket, "--format", "json", command],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def wait_for_dataset(self, deadline):
        while (self.ask("datasets") or {}).get("state") != "ready":
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.dataset}: the daemon does not have it")
            time.sleep(0.005)

    def n_samples(self):
        return int(next(row["value"] for row in self.ask("status")["counters"] if row["name"] == "n_samples"))

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.place.cleanup()


def start_rank(daemon, point, job, rank):
    env = dict(os.environ, DATALOADERD_SOCKET=daemon.socket, RANK=str(rank), WORLD_SIZE=str(point.ranks),
               BENCH_JOB=f"growth-{job}")
    command = [os.path.join(daemon.build, "bench", "growth_rank"), daemon.dataset, point.pipeline, str(point.batch),
               str(point.slots), point.order, str(job)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)


@contextlib.contextmanager
def ranks_of(daemon, point):
    """The processes of all ranks and their first lines; killed with the block, as trainers are."""
    ranks = []
    try:
        for job in range(point.jobs):
            for rank in range(point.ranks):
                ranks.append(start_rank(daemon, point, job, rank))
        lines = [rank.stdout.readline() for rank in ranks]
        if "" in lines:
            raise RuntimeError(f"{point}: a rank has ended")
        yield ranks, [json.loads(line) for line in lines]
    finally:
        for rank in ranks:
            rank.kill()
        for rank in ranks:
            rank.wait()
            rank.stdout.close()


def order_ns(daemon):
    return processes.threads_ns(daemon.process.pid).get("order", 0)


def warm_up(daemon, point):
    """Waits until each slot of each ring was filled and, except for the last ones, looked at: the first touch of a page
    costs more than all later ones. Also waits until the order of a large epoch is shuffled, which happens once in the epoch;
    of small epochs there are several in a window, and their shuffling counts."""
    n_rings = point.ranks * point.jobs
    deadline = time.monotonic() + WARM_MAX_S
    while daemon.n_samples() < n_rings * (point.slots + 1) * point.batch and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(WARM_S)
    if point.n_samples < axes.MANY:
        return
    deadline, before = time.monotonic() + ORDER_MAX_S, -1
    while order_ns(daemon) > before + ORDER_BUSY_NS and time.monotonic() < deadline:
        before = order_ns(daemon)
        time.sleep(0.2)


def window(daemon, ranks):
    """What the steady state costs a sample."""
    clients = [rank.pid for rank in ranks]
    n, begin = daemon.n_samples(), time.monotonic()
    threads, theirs = processes.threads_ns(daemon.process.pid), processes.total_ns(clients)
    sleeps = processes.n_sleeps(daemon.process.pid)
    time.sleep(WINDOW_S)
    n, seconds = daemon.n_samples() - n, time.monotonic() - begin
    theirs = processes.total_ns(clients) - theirs
    ours = {name: ns - threads.get(name, 0) for name, ns in processes.threads_ns(daemon.process.pid).items()}
    if n <= 0:
        raise RuntimeError("nothing was decoded")
    return {"time_us": seconds * 1e6 / n, "cpu_us": (sum(ours.values()) + theirs) / 1e3 / n, "client_cpu_us": theirs / 1e3 / n,
            "sleeps": round((processes.n_sleeps(daemon.process.pid) - sleeps) / n, 3),
            "threads_us": {name: round(ns / 1e3 / n, 2) for name, ns in ours.items() if ns}}


def measure(build, folders, point, workers):
    """A dict of FIGURES, and of the daemon's CPU time by thread."""
    daemon = Daemon(build, folders, point, workers)
    try:
        with ranks_of(daemon, point) as (ranks, lines):
            warm_up(daemon, point)
            row = window(daemon, ranks)
            sums = processes.memory([daemon.process.pid] + [rank.pid for rank in ranks])
    finally:
        daemon.end()
    row.update(load_ms=daemon.load_ms, attach_ms=max(line["attach_ms"] for line in lines),
               first_ms=max(line["first_ms"] for line in lines), memory_mib=sums["Pss_Anon"] / 2**20,
               file_mib=sums["Pss_File"] / 2**20, ring_mib=sums["Pss_Shmem"] / 2**20)
    return row


def summary(rows):
    """Medians of what several repeats say; the threads and their sleeps of the one in the middle."""
    rows = sorted(rows, key=lambda row: row["cpu_us"])
    figures = {figure: statistics.median(row[figure] for row in rows) for figure in FIGURES}
    middle = rows[len(rows) // 2]
    return dict(figures, threads_us=middle["threads_us"], sleeps=middle["sleeps"], cpu_low=rows[0]["cpu_us"],
                cpu_high=rows[-1]["cpu_us"])
