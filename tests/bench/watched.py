"""What it costs to be watched: `dlctl top`, the status page and a scrape of the metrics, each once a second, all of one daemon
that serves 16 ranks.

    watched_cpu        percent of one CPU: dlctl top, dlctl web, and what the daemon's main thread needs more than unwatched
                       (in turns); _top, _web, _daemon: the three
    watched_vs_alone_1, _2   images/s of one rank at full speed, watched, over unwatched, in turns; 1 and 2 workers
    watched_vs_limit_1, _2   the watched rate over the bare loop's: daemon_vs_limit with all of it on

Prometheus usually asks every 15 s or more seldom. The page is asked as its script asks, by a client without a browser."""
import contextlib
import fcntl
import http.client
import json
import os
import socket
import statistics
import struct
import subprocess
import termios
import threading
import time
import urllib.parse

from training import training

RANKS, SECONDS, PAUSE = 16, 10, 1.0


def cpu_ns(pid, thread=None):
    """Of a process, or of one of its threads."""
    total = 0
    for task in [thread] if thread else os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


class Watchers:
    """All of them at once."""

    def __init__(self, build, it, metrics):
        self.ended, self.metrics = threading.Event(), metrics
        dlctl = [os.path.join(build, "dlctl"), "--socket", it.socket]
        self.top, self.terminal = os.forkpty()
        if self.top == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(dlctl[0], [*dlctl, "top"])
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.web = subprocess.Popen([*dlctl, "--format", "json", "web", "--port", "0"], stdout=subprocess.PIPE, text=True)
        self.url = urllib.parse.urlsplit(json.loads(self.web.stdout.readline())["url"])
        self.threads = [threading.Thread(target=target, daemon=True) for target in (self.look, self.visit, self.scrape)]
        for thread in self.threads:
            thread.start()

    def look(self):
        with contextlib.suppress(OSError):
            while os.read(self.terminal, 1 << 16):
                pass

    def visit(self):
        connection = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=30)
        sequence = datasets = errors = 0
        while not self.ended.wait(PAUSE):
            connection.request("GET", f"/status.json?since={sequence}&datasets={datasets}&errors={errors}")
            reply = json.loads(connection.getresponse().read())
            sequence, datasets, errors = reply["sequence"], reply["datasets_version"], reply["errors_version"]

    def scrape(self):
        while not self.ended.wait(PAUSE):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(self.metrics)
                connection.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
                while connection.recv(1 << 20):
                    pass

    def end(self):
        self.ended.set()
        self.web.terminate()
        os.kill(self.top, 15)
        self.web.wait()
        os.waitpid(self.top, 0)
        for thread in self.threads[1:]:
            thread.join()
        os.close(self.terminal)


@contextlib.contextmanager
def watched(build, it, metrics):
    watchers = Watchers(build, it, metrics)
    try:
        yield watchers
    finally:
        watchers.end()


def spent(it, watchers=None):
    """Percent of one CPU over SECONDS: main thread, top, web."""
    def read():
        return [cpu_ns(it.process.pid, it.process.pid)] + ([cpu_ns(watchers.top), cpu_ns(watchers.web.pid)] if watchers else [])
    before, begin = read(), time.monotonic_ns()
    time.sleep(SECONDS)
    now, end = read(), time.monotonic_ns()
    return [100 * (b - a) / (end - begin) for a, b in zip(before, now)]


def cost(daemon, emit, build, metrics, repeats):
    rows = []
    with daemon(2, more=f'metrics_socket = "{metrics}"\n') as it:
        with training(it, build, [100] * RANKS, "resize(32:32)", batch=4):
            for _ in range(repeats):
                alone = spent(it)
                with watched(build, it, metrics) as watchers:
                    time.sleep(2)
                    main, top, web = spent(it, watchers)
                rows.append((main - alone[0], top, web, alone[0]))
    sums = [sum(row[:3]) for row in rows]
    emit("watched_cpu", statistics.median(sums), "percent", repeats=repeats, ranks=RANKS, lowest=min(sums), highest=max(sums))
    for at, name in enumerate(("daemon", "top", "web", "main_alone")):
        emit(f"watched_cpu_{name}", statistics.median(row[at] for row in rows), "percent")


def rates(daemon, emit, build, metrics, repeats, images, limit):
    for workers in (1, 2):
        rows = []
        with daemon(workers, more=f'metrics_socket = "{metrics}"\n') as it:
            it.consume("throughput", 10)
            for _ in range(repeats):
                bare = limit(workers)["images_per_s"]
                alone = it.consume("throughput", images)["images_per_s"]
                with watched(build, it, metrics):
                    rows.append((it.consume("throughput", images)["images_per_s"], alone, bare))
        emit(f"watched_vs_alone_{workers}", statistics.median(a / b for a, b, _ in rows), "ratio", repeats=repeats)
        emit(f"watched_vs_limit_{workers}", statistics.median(a / c for a, _, c in rows), "ratio",
             alone=statistics.median(b / c for _, b, c in rows))


def run(daemon, emit, build, repeats, images, limit):
    metrics = f"/tmp/dlbench-watched-{os.getpid()}"
    cost(daemon, emit, build, metrics, repeats)
    rates(daemon, emit, build, metrics, repeats, images, limit)
