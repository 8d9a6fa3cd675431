"""What it costs the daemon to be watched: CPU time of its main thread for a scrape of its metrics, 16 ranks attached.

    metrics_scrape       us of a scrape over the metrics socket whose text is new, as every one of Prometheus is
    metrics_scrape_again us of one whose text was just made for another
    metrics_bytes        of the text

The ranks hold full rings, so the main thread has nothing else to do."""
import os
import socket
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from harness import HandClient  # noqa: E402

RANKS = 16
NEW_S = 0.15  # after this a text is made again


def main_thread_ns(pid):
    with open(f"/proc/{pid}/task/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0])


def scrape(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
        text = b""
        while piece := connection.recv(1 << 20):
            text += piece
    return len(text.partition(b"\r\n\r\n")[2])


def run(daemon, emit, repeats):
    path = f"/tmp/dlbench-metrics-{os.getpid()}"
    with daemon(2, more=f'metrics_socket = "{path}"\n') as it:
        ranks = [HandClient(it.socket) for _ in range(RANKS)]
        for number, rank in enumerate(ranks):
            rank.attach("photos", job="watched", world=RANKS, rank=number, batch=2)
        time.sleep(2)
        fresh, again = [], []
        for _ in range(20 * repeats):
            time.sleep(NEW_S)
            times = []
            for _ in range(2):
                before = main_thread_ns(it.process.pid)
                n_bytes = scrape(path)
                times.append((main_thread_ns(it.process.pid) - before) / 1000)
            fresh.append(times[0])
            again.append(times[1])
        for rank in ranks:
            rank.close()
    emit("metrics_scrape", statistics.median(fresh), "us", n=len(fresh), ranks=RANKS)
    emit("metrics_scrape_again", statistics.median(again), "us", n=len(again))
    emit("metrics_bytes", n_bytes, "bytes")
