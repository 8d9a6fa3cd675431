"""One trial: trainers of one peer, started together, watched from outside while they load at full speed.

Images are counted, and CPU time and memory taken, of every process together: trainers, their workers, and the daemon where
there is one. Nothing here knows what a peer does.
"""
import contextlib
import json
import os
import queue
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import time

from environment import HERE, PYTHON, ROOT

BUILD = os.path.join(ROOT, "build", "release")
BATCH, SIZE = 64, 224
LINE_LIMIT_S = 90    # FFCV compiles for ten seconds before its first batch, more on a busy machine
TICK = os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """A peer did not load; the text is what it said last."""


# ---- what the kernel knows of processes -------------------------------------------------------------------------------

def tree(pid):
    """A process and all below it."""
    pids = [pid]
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                for child in file.read().split():
                    pids += tree(int(child))
    return pids


def cpu_seconds(pids):
    """User and kernel time that they and their ended children used."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            ticks += sum(map(int, file.read().rpartition(")")[2].split()[11:15]))
    return ticks / TICK


def pss_bytes(pids):
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
            total += next(int(line.split()[1]) << 10 for line in file if line.startswith("Pss:"))
    return total


# ---- the daemon ---------------------------------------------------------------------------------------------------------

CONFIG = """socket = "{folder}/s"
index_dir = "{index}"
workers = {workers}
memory_limit = "4GiB"
dataset "photos" {{ path = "{photos}" }}
"""


def client_environment(socket):
    return {"DATALOADERD_SOCKET": socket, "DATALOADERD_LIBRARY": os.path.join(BUILD, "libdlclient.so.0"),
            "PYTHONPATH": os.path.join(ROOT, "client", "python")}


@contextlib.contextmanager
def daemon(photos, workers, index, config=CONFIG):
    """A private daemon; gives its pid and what clients need in their environment. Below `index` each folder of photographs
    has an index of its own, that is made once."""
    folder, index = tempfile.mkdtemp(prefix="dlpeers-"), os.path.join(index, os.path.basename(photos))
    os.makedirs(index, exist_ok=True)
    with open(os.path.join(folder, "c"), "w", encoding="utf-8") as file:
        file.write(config.format(folder=folder, index=index, workers=workers, photos=photos))
    with open(os.path.join(folder, "log"), "w", encoding="utf-8") as log:
        process = subprocess.Popen([os.path.join(BUILD, "dataloaderd"), "-c", os.path.join(folder, "c")], stderr=log)
    status = [os.path.join(BUILD, "dlctl"), "--socket", os.path.join(folder, "s"), "status"]
    try:
        deadline = time.monotonic() + 20
        while subprocess.run(status, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            if process.poll() is not None or time.monotonic() > deadline:
                with open(os.path.join(folder, "log"), encoding="utf-8") as log:
                    raise Failed("the daemon does not answer: " + log.read()[-200:])
            time.sleep(0.02)
        yield process.pid, client_environment(os.path.join(folder, "s"))
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def producer():
    """What gives finished batches without reading or decoding; as daemon()."""
    process = subprocess.Popen([os.path.join(BUILD, "bench", "ready_batches"), str(BATCH), str(SIZE)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    try:
        yield process.pid, client_environment(process.stdout.readline().strip())
    finally:
        process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


# ---- a trainer ----------------------------------------------------------------------------------------------------------

class Trainer:
    """A process of trainer.py in a process group of its own, so that its workers can be ended with it."""

    def __init__(self, name, photos, workers, *, seed=0, rank=0, world=1, mode="consume", env=None):
        command = [PYTHON, os.path.join(HERE, "trainer.py"), name, photos, *map(str, (workers, seed, rank, world)), mode]
        more = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore", **(env or {})}
        self.log = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(command, env=dict(os.environ, **more), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True, start_new_session=True)
        self.lines = queue.Queue()
        threading.Thread(target=self._pump, daemon=True).start()

    def _pump(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def line(self):
        """Its next line of JSON; what libraries print besides is not JSON and is passed over."""
        deadline = time.monotonic() + LINE_LIMIT_S
        while True:
            try:
                text = self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise Failed(f"nothing for {LINE_LIMIT_S} s") from None
            if not text:
                raise Failed(self.last_words())
            with contextlib.suppress(ValueError):
                return json.loads(text)

    def last_words(self):
        self.log.seek(0)
        words = [line.strip() for line in self.log.read().splitlines() if line.strip()]
        errors = [line for line in words if re.match(r"[\w.]*(Error|Exception)\b", line)]
        return (errors[:1] or words[-1:] or [f"it ended with status {self.process.poll()} and said nothing"])[0][:200]

    def go(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write("\n")
            self.process.stdin.flush()

    def stop(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def end(self):
        """Whatever is left of it and its workers; the group is its own."""
        self.stop()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.log.close()


# ---- the trial ----------------------------------------------------------------------------------------------------------

def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def rate(ends, begin, end):
    """Batches a second between the first and the last batch of the window, so that its edges cost nobody a part of one."""
    inside = [moment for moment in ends if begin <= moment <= end]
    if len(inside) < 3:
        raise Failed(f"{len(inside)} batches in {end - begin:.1f} s are too few to count")
    return (len(inside) - 1) / (inside[-1] - inside[0])


def figures(rows, begin, end, cpu_s, pss, over):
    batches_per_s = sum(rate(row["ends"], begin, end) for row in rows)
    waits = [(b - a) * 1000 for row in rows for a, b in zip(row["begins"], row["ends"]) if begin <= b <= end]
    return {"images_per_s": batches_per_s * BATCH, "images_per_cpu_s": batches_per_s * BATCH * (end - begin) / cpu_s,
            "cpu_s_per_1000": cpu_s * 1000 / (batches_per_s * BATCH * (end - begin)),
            "first_ms": max(row["first_ms"] for row in rows), "next_p50_ms": statistics.median(waits),
            "next_p99_ms": percentile(waits, 0.99), "pss_mib": pss / 2**20, "pss_over_mib": over / 2**20}


def watch(trainers, seconds, daemon_pid):
    """From imports to the figures of a window in which all of them load."""
    for one in trainers:
        one.line()
    imported = pss_bytes([one.process.pid for one in trainers])
    for one in trainers:
        one.go()
    rows = [one.line() for one in trainers]
    for one in trainers:
        one.line()
    pids = [pid for one in trainers for pid in tree(one.process.pid)] + ([daemon_pid] if daemon_pid else [])
    cpu, begin = cpu_seconds(pids), time.monotonic()
    time.sleep(seconds)
    for one in trainers:
        one.line()                      # long said, but on a slow or busy machine
    cpu, end = cpu_seconds(pids) - cpu, time.monotonic()
    pss = pss_bytes(pids)
    for one in trainers:
        one.stop()
    for row, one in zip(rows, trainers):
        row.update(one.line())
    return {**figures(rows, begin, end, cpu, pss, pss - imported), "processes": len(pids)}


def run(name, photos, workers, index, *, kind="one", seconds=4.0, seed=0):
    """kind: "one" trainer, two "ranks" of one run, two "bare" ranks that import nothing but their loader, or two "jobs" that
    know nothing of each other."""
    n = 1 if kind == "one" else 2
    trainers, ours = [], name.endswith("dlclient")
    with contextlib.ExitStack() as stack:
        pid, env = None, {}
        if name == "transport_dlclient":
            pid, env = stack.enter_context(producer())
        elif ours:
            pid, env = stack.enter_context(daemon(photos, workers, index))
        try:
            for i in range(n):
                env = dict(env, PEER_JOB=f"job{i if kind == 'jobs' else 0}", PEER_BARE="1" if kind == "bare" else "")
                trainers.append(Trainer(name, photos, workers, seed=seed + (i if kind == "jobs" else 0), env=env,
                                        rank=i if kind in ("ranks", "bare") else 0,
                                        world=n if kind in ("ranks", "bare") else 1))
            return watch(trainers, seconds, pid)
        finally:
            for one in trainers:
                one.end()


def pixels(name, photos, index, folder):
    """The file with a batch of whole pictures, see trainer.py."""
    with contextlib.ExitStack() as stack:
        env = stack.enter_context(daemon(photos, 1, index))[1] if name == "dlclient" else {}
        trainer = Trainer(name, photos, 1, mode="pixels", env=dict(env, PEER_FOLDER=folder))
        try:
            trainer.line()
            trainer.go()
            return trainer.line()["pictures"]
        finally:
            trainer.end()


def prepare(name, photos):
    trainer = Trainer(name, photos, 1, mode="prepare")
    try:
        if trainer.process.wait(300) != 0:
            raise Failed(trainer.last_words())
    finally:
        trainer.end()
