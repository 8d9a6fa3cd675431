#!/usr/bin/env python3
"""dlctl web: what it serves, to whom, and that nobody who asks it badly is noticed by others."""
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import DLCTL, VARIANT, HandClient, Skip, Table, case, contains, equal, main, patience, within
from web import Web, no_requests

STRANGER = 54321  # a user that is neither root nor ours


def attached(box, daemon, name, ranks=2, **terms):
    clients = []
    for rank in range(ranks):
        client = HandClient(daemon.socket)
        box.cleanups.append(client.close)
        client.attach(name, world=ranks, rank=rank, batch=4, **terms)
        clients.append(client)
    return clients


def as_stranger(*command, **keywords):
    if os.geteuid() != 0:
        raise Skip("needs root, to be another user")
    return subprocess.run(["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"] + list(command),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=patience(60), check=False,
                          **keywords)


ASK = ("import http.client, sys; c = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2])); c.request('GET', '/status.json');"
       "r = c.getresponse(); print(r.status, r.read().decode()[:200])")


@case("the page and its document: jobs with their ranks, datasets, damaged samples, and the last minutes by the second")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 60), "gone": box.path("nothing")})
    attached(box, daemon, "d", job="train")
    web = Web(box, daemon.socket)
    status, page, headers = web.get("/")
    equal((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"), "the page")
    contains(page, "<title>dataloaderd</title>", "</html>")
    contains(headers["Content-Security-Policy"], "default-src 'none'", "script-src 'sha256-", "connect-src 'self'")
    if "unsafe" in headers["Content-Security-Policy"] or "http" in headers["Content-Security-Policy"]:
        raise AssertionError(headers["Content-Security-Policy"])
    document = web.until(lambda it: len(it["seconds"]) > 2 and it.get("datasets"), "seconds of history")
    equal((document["away"], document["status"]["state"], document["socket"]), ("", "serving", daemon.socket), "the daemon")
    equal([(job["name"], [rank["rank"] for rank in job["ranks"]]) for job in document["jobs"]], [("train", [0, 1])], "jobs")
    equal({one["name"]: one["state"] for one in document["datasets"]}, {"d": "ready", "gone": "failed"}, "datasets")
    numbers = [second["n"] for second in document["seconds"]]
    equal(numbers, list(range(1, numbers[-1] + 1)), "seconds")
    equal(len(document["seconds"][-1]["jobs"][0]["ranks"]), 2, "ranks in a second")
    later = web.status(since=numbers[-2], datasets=document["datasets_version"], errors=document["errors_version"])
    if later["seconds"][0]["n"] != numbers[-1] or "datasets" in later or "errors" in later:
        raise AssertionError(f"more than the news: {json.dumps(later)[:500]}")
    equal(web.get("/", "HEAD")[:2], (200, ""), "HEAD")
    equal(web.interrupt(), 0, "exit status after Ctrl-C")
    equal(web.errors(), "", "what it says")


@case("what is no request, has another path, method or host, or is too long is answered with a sentence")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 4)})
    web = Web(box, daemon.socket, "--host", "node7.example")
    host = f"Host: localhost:{web.port}\r\n".encode()
    rows = [
        (b"GET / HTTP/1.1\r\n" + host + b"Connection: close\r\n\r\n", 200, "<title>"),
        (b"GET / HTTP/1.0\nHost: 127.0.0.1\n\n", 200, "<title>"),
        (b"GET /?x=1&since=abc HTTP/1.0\r\nhOST: [::1]:1\r\n\r\n", 200, "<title>"),
        (b"GET / HTTP/1.0\r\nHost: NODE7.example\r\n\r\n", 200, "<title>"),
        (b"GET /status.json?since=99999999999999999999&errors=-1 HTTP/1.0\r\nHost: localhost\r\n\r\n", 200, '"seconds":['),
        (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403, "does not answer to the name \"evil.example\""),
        (b"GET / HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", 403, "--host NAME"),
        (b"GET / HTTP/1.1\r\nHost: localhost:9750@evil.example\r\n\r\n", 403, "--host"),
        (b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 403, "--host"),
        (b"GET / HTTP/1.1\r\nHost: <script>\x01\xff\r\n\r\n", 403, "<script>??"),
        (b"GET / HTTP/1.1\r\n\r\n", 400, "which host"),
        (b"GET / HTTP/1.1\r\nHost: evil\r\n" + host + b"\r\n", 403, "--host"),
        (b"GET /nothing HTTP/1.1\r\n" + host + b"Connection: close\r\n\r\n", 404, "no such page"),
        (b"GET /../../etc/passwd HTTP/1.0\r\n" + host + b"\r\n", 404, "no such page"),
        (b"GET http://localhost/ HTTP/1.1\r\n" + host + b"\r\n", 404, "no such page"),
        (b"GET /\xff HTTP/1.1\r\n" + host + b"\r\n", 404, "no such page"),
        (b"POST / HTTP/1.1\r\n" + host + b"\r\n", 405, "GET and HEAD"),
        (b"OPTIONS /status.json HTTP/1.1\r\n" + host + b"\r\n", 405, "GET and HEAD"),
        (b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 5\r\n\r\nhello", 405, "GET and HEAD"),
        (b"PUT / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 405, "GET and HEAD"),
        (b"DELETE / HTTP/1.1\r\n" + host + b"Content-Length: 5\r\n\r\nhello", 405, "GET and HEAD"),
        (b"GET / HTTP/1.1\r\n" + host + b"Content-Length: 5\r\n\r\nhello", 200, "<title>"),
        (b"GET / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 200, "<title>"),
    ]
    table = Table()
    for data, status, sentence in rows:
        with table.row(data[:100]):
            head, _, body = web.send(data).decode().partition("\r\n\r\n")
            equal(head.split(" ")[1], str(status), f"status; {body[:200]}")
            contains(body, sentence)
            contains(head, "nosniff", "frame-ancestors 'none'")
            if status != 200:
                contains(head, "text/plain")
    for data, statuses in no_requests(host):
        with table.row(data[:100]):
            status = web.send(data)[9:12].decode()
            equal(status in statuses, True, f"status {status!r}")
    table.done()
    back = web.send((b"GET /nothing HTTP/1.1\r\n" + host + b"\r\n") * 5 + b"GET / HTTP/1.0\r\n" + host + b"\r\n")
    equal((back.count(b"HTTP/1.1 404"), back.count(b"HTTP/1.1 200")), (5, 1), "answers to six requests at once")


@case("another user's process is refused, unless it is allowed by name or number; root and the own user are not")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 4)})
    web = Web(box, daemon.socket)
    said = as_stranger(sys.executable, "-c", ASK, "127.0.0.1", str(web.port)).stdout
    contains(said, "403", f"user with number {STRANGER}", "--user")
    said = as_stranger(sys.executable, "-c", ASK, "::ffff:127.0.0.1", str(web.port)).stdout
    contains(said, "403", f"user with number {STRANGER}")
    equal(web.get("/")[0], 200, "status for the own user")
    web = Web(box, daemon.socket, "--user", str(STRANGER))
    contains(as_stranger(sys.executable, "-c", ASK, "127.0.0.1", str(web.port)).stdout, "200 {")
    web = Web(box, daemon.socket, "--address", "::1")
    contains(web.url, "http://[::1]:")
    contains(as_stranger(sys.executable, "-c", ASK, "::1", str(web.port)).stdout, "403")
    equal(web.get("/")[0], 200, "status for the own user, ::1")
    os.chmod(daemon.socket, 0o666)
    for folder in (box.folder, os.path.dirname(daemon.socket)):
        os.chmod(folder, 0o755)
    web = Web(box, daemon.socket, program=["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"])
    contains(as_stranger(sys.executable, "-c", ASK, "127.0.0.1", str(web.port)).stdout, "200 {")
    equal(web.get("/")[0], 200, "status for root, of another user's page")


@case("a stranger who opens connections without end takes nobody's place")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 4)})
    web = Web(box, daemon.socket)
    script = ("import socket, sys; c = [socket.create_connection(('127.0.0.1', int(sys.argv[1]))) for _ in range(300)];"
              "[s.send(b'GET / HTTP/1.1\\r\\n') for s in c[-10:]]; print(len(c), flush=True); sys.stdin.read()")
    if os.geteuid() != 0:
        raise Skip("needs root, to be another user")
    other = box.start(["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups", sys.executable, "-c", script, str(web.port)],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    equal(other.stdout.readline(), b"300\n", "connections")
    mine = web.connect()
    for _ in range(20):
        mine.request("GET", "/status.json")
        equal(mine.getresponse().read()[:1], b"{", "an answer")
    if web.n_descriptors() > 40:
        raise AssertionError(f"{web.n_descriptors()} descriptors")
    other.stdin.close()
    other.stdout.close()
    mine.close()


# None waits until it is let in, and none leaves TIME_WAIT behind, or there would soon be no port left.
KNOCK = """import socket, struct, sys
while True:
    visitors = [socket.socket() for _ in range(200)]
    for visitor in visitors:
        visitor.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        visitor.setblocking(False)
        visitor.connect_ex(('127.0.0.1', int(sys.argv[1])))
    for visitor in visitors:
        visitor.close()
"""


@case("while processes of the same user connect as fast as they can, others are served, and the page stays up to date")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 60)})
    attached(box, daemon, "d", job="train")
    web = Web(box, daemon.socket)
    for _ in range(3):
        box.start([sys.executable, "-c", KNOCK, str(web.port)], stderr=subprocess.DEVNULL)
    seen = None

    def something_new():
        try:
            status, text, _ = web.get("/status.json")
        except (ConnectionError, http.client.HTTPException):  # it had to make room
            return None
        equal(status, 200, text)
        document = json.loads(text)
        return document if document["seconds"][-1] != seen else None

    for _ in range(5):
        document = within(20, something_new, "an answer that is new")
        equal((document["away"], [job["name"] for job in document["jobs"]]), ("", ["train"]), "what is shown")
        seen = document["seconds"][-1]


@case("ten thousand requests, readers that do not read, and connections that say nothing: memory stays, others are served")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 60)})
    attached(box, daemon, "d", job="train")
    web = Web(box, daemon.socket)
    good = web.connect()

    def ask(n):
        for _ in range(n):
            good.request("GET", "/status.json")
            equal(json.loads(good.getresponse().read())["away"], "", "away")

    ask(500)
    before = web.resident_kib()
    slow = []
    for _ in range(150):  # more than there are places: the oldest of them give way, the one that asks does not
        connection = socket.create_connection((web.host, web.port))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
        slow.append(connection)
        good.request("GET", "/status.json")
        good.getresponse().read()
    slow += [socket.create_connection((web.host, web.port)) for _ in range(100)]
    good.close()
    good = web.connect()
    ask(1000 if VARIANT != "release" else 9350)
    n = web.n_descriptors()
    if n > 90:
        raise AssertionError(f"{n} descriptors")
    if VARIANT == "release" and web.resident_kib() - before > 16384:
        raise AssertionError(f"{before} KiB before, {web.resident_kib()} KiB after")
    for connection in slow:
        connection.close()
    good.close()


@case("ten thousand requests by another host's name or for a wrong path: a sentence each, and neither the page nor the daemon notices")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 60)})
    attached(box, daemon, "d", job="train")
    web = Web(box, daemon.socket)
    web.until(lambda it: it["jobs"], "the job")
    page = f"GET / HTTP/1.1\r\nHost: evil.example:{web.port}\r\n\r\n".encode()
    wrong = f"GET /../status.json%00?since=1 HTTP/1.1\r\nHost: localhost:{web.port}\r\n\r\n".encode()
    n_rounds = 100 if VARIANT == "release" else 10
    before = None
    for number in range(n_rounds):
        back = web.send(wrong * 50)
        equal((back.count(b"HTTP/1.1 404"), back.count(b"HTTP/1.1 ")), (50, 50), "answers")
        for _ in range(50):
            back = web.send(page)
            equal((back[:12], b"evil.example" in back, b"<title>" in back), (b"HTTP/1.1 403", True, False), "the answer to another name")
        equal(web.get("/status.json", Host="rebound.example")[0], 403, "status for another name")
        if number == n_rounds // 10:
            before = web.resident_kib(), web.n_descriptors(), daemon.n_descriptors()
    after = web.resident_kib(), web.n_descriptors(), daemon.n_descriptors()
    if VARIANT == "release" and (after[0] - before[0] > 4096 or after[1] > before[1] + 4 or after[2] != before[2]):
        raise AssertionError(f"KiB, descriptors, the daemon's descriptors: {before} before, {after} after")
    document = web.status()
    equal((document["away"], [job["name"] for job in document["jobs"]]), ("", ["train"]), "what is shown")


@case("a port that is taken, an address that others reach, a user that is not there: a sentence")
def _(box):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        rows = [
            (["--port", port], 1, (port, "taken", "--port")),
            (["--port", "70000"], 2, ("--port", "70000", "65535")),
            (["--port", "many"], 2, ("--port", "many")),
            (["--address", "0.0.0.0"], 2, ("0.0.0.0", "127.0.0.1", "ssh -L")),
            (["--address", "192.0.2.1"], 2, ("192.0.2.1", "ssh -L")),
            (["--address", "::"], 2, ("::", "::1")),
            (["--user", "nobody-of-that-name"], 2, ("--user", "nobody-of-that-name")),
            (["page"], 2, ("unexpected argument", "page")),
        ]
        table = Table()
        for arguments, status, words in rows:
            with table.row(arguments):
                done = subprocess.run([DLCTL, "web"] + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                                      timeout=patience(30), check=False)
                equal((done.returncode, done.stdout), (status, ""), f"exit status and output; {done.stderr}")
                contains(done.stderr, *words)
        table.done()


@case("a daemon that is not there, comes, restarts or is stopped: the page says so, answers at once, and comes back by itself")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 40)})
    daemon.stop()
    web = Web(box, daemon.socket)
    document = web.status()
    contains(document["away"], "no daemon at", daemon.socket)
    equal((document["status"], document["jobs"], document["seconds"]), (None, [], []), "what is known")
    equal(web.get("/")[0], 200, "the page")
    daemon.start()
    daemon.wait_ready()
    web.until(lambda it: not it["away"] and it["status"], "the daemon is seen")
    client = attached(box, daemon, "d", ranks=1, job="train")[0]
    document = web.until(lambda it: it["jobs"], "the job is seen")
    daemon.kill()
    gone = web.until(lambda it: it["away"], "the daemon is missed")
    equal(gone["jobs"], document["jobs"], "the jobs as they were last")
    client.close()
    daemon.start()
    daemon.wait_ready()
    back = web.until(lambda it: not it["away"], "the daemon is back")
    if back["run"] != document["run"] or back["sequence"] <= document["sequence"]:
        raise AssertionError("the history was lost")
    daemon.signal(signal.SIGSTOP)
    stopped = web.until(lambda it: it["away"], "the daemon does not answer")
    contains(stopped["away"], "does not answer", f"its process {daemon.pid} is stopped", f"kill -CONT {daemon.pid}")
    begin = time.monotonic()
    for _ in range(20):
        web.status()
    if time.monotonic() - begin > patience(5):
        raise AssertionError("a stopped daemon holds the page up")
    daemon.signal(signal.SIGCONT)
    web.until(lambda it: not it["away"], "the daemon answers again")


@case("an answer is sent at once on a connection that is kept: no piece of it waits for the visitor's confirmation")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 8)})
    web = Web(box, daemon.socket)
    connection = web.connect()
    connection.request("GET", "/")
    equal(len(connection.getresponse().read()) > 20000, True, "a page of several pieces")
    try:
        equal(web.option_of(connection, socket.IPPROTO_TCP, socket.TCP_NODELAY), 1, "TCP_NODELAY of its end")
    except OSError as error:
        raise Skip(f"the kernel gives no copy of another process's socket: {error}") from error
    finally:
        connection.close()


@case("names that are code, no UTF-8 or control characters come as text, in JSON that every reader understands")
def _(box):
    folder = box.folder_of_files("d", 4)
    os.rename(os.path.join(folder, sorted(os.listdir(folder))[0]), os.path.join(folder, "<script>alert(1)<"))
    name = "<img src=x onerror=alert(1)>"
    daemon = box.daemon({name: folder})
    attached(box, daemon, name, ranks=1, job="\"},{\"</script>\u2028")
    web = Web(box, daemon.socket)
    document = web.until(lambda it: it["jobs"] and it.get("datasets"), "the job")
    equal((document["jobs"][0]["name"], document["jobs"][0]["dataset"]), ("\"},{\"</script>\u2028", name), "names")
    shown = daemon.dlctl("--format", "json", "jobs").stdout
    equal(("\u2028" in shown, json.loads(shown)["name"]), (False, "\"},{\"</script>\u2028"), "what a terminal gets")


@case("a hundred jobs at once are all shown")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 8)}, memory_limit="1GiB")
    for number in range(100):
        attached(box, daemon, "d", ranks=1, job=f"job {number}")
    web = Web(box, daemon.socket)
    document = web.until(lambda it: len(it["jobs"]) == 100, "jobs")
    equal({job["name"] for job in document["jobs"]}, {f"job {number}" for number in range(100)}, "names")


main()
