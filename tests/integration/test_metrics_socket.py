#!/usr/bin/env python3
"""The metrics over HTTP on a unix socket of the daemon: who gets them, and that no visitor is noticed by others."""
import http.client
import os
import re
import shutil
import socket
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import DAEMON, VARIANT, HandClient, Skip, Table, case, check_sequence, contains, equal, main, patience, within, write
from pages import block
from prometheus import Metrics, promtool
from web import ended_early, no_requests

N_REQUESTS = 10000 if VARIANT == "release" else 1000


class Scraper(http.client.HTTPConnection):
    """A connection to a metrics socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=patience(30))
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)  # blocking: with a timeout it would fail at once when others stand in line
        self.sock.settimeout(patience(30))

    def get(self, path="/metrics", method="GET"):
        self.request(method, path)
        reply = self.getresponse()
        return reply.status, reply.read().decode()


def scrape(path):
    scraper = Scraper(path)
    try:
        status, text = scraper.get()
        equal(status, 200, text[:200])
        return Metrics(text)
    finally:
        scraper.close()


def send(path, data):
    """Bytes as they are; returns all that comes back. It may answer and end before it has read all of them."""
    back = b""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)  # blocking, as above
        connection.settimeout(patience(30))
        with ended_early():
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        with ended_early():
            while piece := connection.recv(65536):
                back += piece
    return back


def serving(box, n_ranks=1, **settings):
    """(a daemon with a job, the path of its metrics socket)"""
    path = box.path("metrics.sock")
    daemon = box.daemon({"d": box.folder_of_files("d", 2 * n_ranks)}, metrics_socket=path, **settings)
    for rank in range(n_ranks):
        client = HandClient(daemon.socket)
        box.cleanups.append(client.close)
        client.attach("d", job="train", world=n_ranks, rank=rank, batch=1)
    return daemon, path


@case("a scraper gets the numbers of the whole node, and promtool is content")
def _(box):
    daemon, path = serving(box)
    seen = scrape(path)
    equal((seen.one("dataloaderd_job_ranks", 'job="train"'), seen.one("dataloaderd_jobs")), (1, 1), "what is seen")
    text = daemon.dlctl("metrics").stdout
    equal(seen.help, Metrics(text).help, "names on both ways")
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o660, "permissions")
    scraper = Scraper(path)
    equal(scraper.get(method="HEAD"), (200, ""), "HEAD")
    equal(scraper.get("/")[0], 404, "another page, on the same connection")
    equal(scraper.get("/metrics?x=1")[0], 200, "with a query")
    scraper.close()
    if shutil.which("curl"):
        command = block("docs/metrics.md", "curl --unix-socket").replace("/run/dataloaderd/metrics.sock", path)
        done = subprocess.run(command.split() + ["-sSi"], stdout=subprocess.PIPE, universal_newlines=True, check=True, timeout=patience(30))
        contains(done.stdout, "200 OK", "Content-Type: text/plain; version=0.0.4; charset=utf-8", "dataloaderd_ring_slots")
    client = HandClient(daemon.socket)
    client.attach("d", job="later", batch=1)
    within(10, lambda: any("later" in key[1] for key in scrape(path).values), "a new job is seen")
    client.close()
    within(10, lambda: not any("later" in key[1] for key in scrape(path).values), "it is gone")
    equal(promtool("check", "metrics", text=Scraper(path).get()[1]), "", "what promtool says")


@case("the lines of configuration in docs/metrics.md are well-formed")
def _(box):
    config = box.path("conf")
    write(config, block("docs/metrics.md", "metrics_socket =").encode())
    done = subprocess.run([DAEMON, "-c", config, "--check-config"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          universal_newlines=True, timeout=patience(30))
    equal(done.returncode, 0, done.stdout)


@case("what is no request, has another path or method, or is too long is answered with a sentence")
def _(box):
    daemon, path = serving(box)
    host = b"Host: localhost\r\n"
    rows = [
        (b"GET /metrics HTTP/1.1\r\n" + host + b"Connection: close\r\n\r\n", 200, "dataloaderd_jobs"),
        (b"GET /metrics HTTP/1.0\nHost: x\n\n", 200, "dataloaderd_jobs"),
        (b"GET /metrics HTTP/1.1\r\n\r\n", 200, "dataloaderd_jobs"),
        (b"GET /metricsx HTTP/1.0\r\n" + host + b"\r\n", 404, "/metrics"),
        (b"GET /../../etc/passwd HTTP/1.0\r\n" + host + b"\r\n", 404, "/metrics"),
        (b"POST /metrics HTTP/1.1\r\n" + host + b"\r\n", 405, "GET and HEAD"),
        (b"POST /metrics HTTP/1.1\r\n" + host + b"Content-Length: 5\r\n\r\nhello", 405, "GET and HEAD"),
        (b"GET /metrics HTTP/1.1\r\n" + host + b"Content-Length: 5\r\n\r\nhello", 200, "dataloaderd_jobs"),
    ]
    table = Table()
    for data, status, sentence in rows:
        with table.row(data[:100]):
            head, _, body = send(path, data).decode().partition("\r\n\r\n")
            equal(head.split(" ")[1], str(status), f"status; {body[:200]}")
            contains(body, sentence)
            equal(int(re.search(r"Content-Length: (\d+)", head)[1]), len(body.encode()), "length")
    for data, statuses in no_requests(host):
        with table.row(data[:100]):
            status = send(path, data)[9:12].decode()
            equal(status in statuses, True, f"status {status!r}")
    table.done()
    back = send(path, (b"GET /x HTTP/1.1\r\n" + host + b"\r\n") * 5 + b"GET /metrics HTTP/1.0\r\n" + host + b"\r\n")
    equal((back.count(b"HTTP/1.1 404"), back.count(b"HTTP/1.1 200")), (5, 1), "answers to six requests at once")
    equal(daemon.dlctl("status").returncode, 0, "the daemon")


@case("visitors that say nothing or do not take their answer make room for others, and no rank notices")
def _(box):
    daemon, path = serving(box, 16)
    before = daemon.n_descriptors()
    visitors = []
    for number in range(200):
        visitor = socket.socket(socket.AF_UNIX)
        visitor.connect(path)
        box.cleanups.append(visitor.close)
        visitor.setblocking(False)
        if number % 2:
            try:
                for _ in range(50):
                    visitor.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
            except OSError:  # it has been sent away, or takes no more
                pass
        visitors.append(visitor)
    equal(scrape(path).one("dataloaderd_ring_slots", 'rank="15"') > 0, True, "another visitor is served")
    assert daemon.n_descriptors() - before <= 32, (before, daemon.n_descriptors())
    check_sequence(daemon.read("d"), 32)
    for visitor in visitors:
        visitor.close()
    within(10, lambda: daemon.n_descriptors() == before, "their descriptors are closed")


KNOCK = """import socket, sys
while True:
    visitors = [socket.socket(socket.AF_UNIX) for _ in range(64)]
    for visitor in visitors:
        visitor.connect(sys.argv[1])
    for visitor in visitors:
        visitor.close()
"""


def is_served(path):
    try:
        return send(path, b"GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n").endswith(b"\n")
    except ConnectionError:  # it had to make room
        return False


@case("while processes connect as fast as they can, the daemon goes on: ranks, dlctl, another scraper")
def _(box):
    daemon, path = serving(box, 2)
    for _ in range(3):
        box.start([sys.executable, "-c", KNOCK, path], stderr=subprocess.DEVNULL)
    for _ in range(5):
        check_sequence(daemon.read("d"), 4)
        equal(daemon.dlctl("status").returncode, 0, "dlctl status")
        within(20, lambda: is_served(path), "a scraper is served")


@case("10,000 scrapes, each on a connection of its own, leave the daemon as it was")
def _(box):
    daemon, path = serving(box, 4)

    def scrapes(n):
        for _ in range(n):
            assert send(path, b"GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n").endswith(b"\n")

    scrapes(N_REQUESTS // 2)
    before = daemon.n_descriptors(), daemon.rss_kib()
    scrapes(N_REQUESTS // 2)
    equal(daemon.n_descriptors(), before[0], "descriptors")
    if VARIANT == "release":
        assert daemon.rss_kib() - before[1] < 1024, (before, daemon.rss_kib())


@case("a stale socket is replaced; one that is served, is no socket, or cannot be made is an error that names the setting")
def _(box):
    daemon, path = serving(box)
    other = box.daemon({}, metrics_socket=path, wait=False)
    equal(other.process.wait(patience(20)), 69, "exit status of a second daemon on the socket")
    other.expected_status = 69
    contains(other.log(), "metrics_socket", path, "served by another dataloaderd")
    equal(scrape(path).one("dataloaderd_jobs"), 1, "the first one is not disturbed")
    daemon.kill()
    equal(os.path.exists(path), True, "a stale socket")
    daemon.start()
    equal(scrape(path).one("dataloaderd_jobs"), 0, "the next daemon")
    daemon.stop()
    equal((os.path.exists(path), os.path.exists(path + ".lock")), (False, False), "what is left")
    write(box.path("file"), b"x")
    for wrong, words in ((box.path("file"), ("is not a socket",)), (box.path("nothing/here"), ("No such file",)),
                         ("/" + "x" * 120, ("107",))):
        failed = box.daemon({}, metrics_socket=wrong, wait=False)
        failed.expected_status = failed.process.wait(patience(20))
        equal(failed.expected_status in (69, 78), True, f"exit status with {wrong}")
        contains(failed.log(), "metrics_socket", *words)


@case("metrics_mode says who may look: with 0666 any user sees all jobs, with 0660 he is refused by the kernel")
def _(box):
    if os.geteuid() != 0:
        raise Skip("needs root, to be another user")
    os.chmod(box.folder, 0o755)
    ask = ("import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
           "s.sendall(b'GET /metrics HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n'); print(s.makefile().read())")
    for mode, seen in (("0666", True), ("0660", False)):
        daemon, path = serving(box, metrics_mode=mode)
        done = subprocess.run(["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", sys.executable, "-c", ask, path],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=patience(30), check=False)
        equal(('job="train"' in done.stdout, "PermissionError" in done.stderr), (seen, not seen), done.stderr)
        daemon.stop()


if __name__ == "__main__":
    main()
