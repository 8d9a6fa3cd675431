#!/usr/bin/env python3
"""Nodes that fetch for each other: what all of them need leaves its origin once, and whatever becomes of one of them, the
others serve every sample with its own bytes."""
import ctypes
import hashlib
import http.client
import http.server
import os
import re
import signal
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import Table, case, contains, equal, few, main, within, write
from tars import archive
from web_origin import Nginx, bytes_of, check_images, list_of, make_images, make_mds, noise, paths_below

KIB = 1 << 10
CHUNK = 8 << 20
FORMATS = {"images": "imagefolder", "mds": "mds", "tars": "webdataset"}


def counted(daemon, name):
    """A number of the node: peer_bytes, ..."""
    return int(float(re.search(rf"^dataloaderd_node_{name}_total (\S+)$", daemon.dlctl("metrics").stdout, re.M).group(1)))


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def xxh3(content):
    function = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
    function.restype, function.argtypes = ctypes.c_uint64, (ctypes.c_char_p, ctypes.c_size_t)
    return function(content, len(content))


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Nodes:
    """Daemons that share a folder and serve the dataset "d", which a web server has."""

    def __init__(self, box, n=4, kind="images", name="run", make=None, **settings):
        self.box = box
        self.kind = kind
        self.folder = box.path(name)
        self.root = box.path(f"origin-{name}")
        (make or (lambda root: make_images(root, few(400, 100))))(self.root)
        self.data = os.path.join(self.root, kind)
        self.server = Nginx(box, self.root, f"nginx-{name}")
        self.url = list_of(self.server, self.root, kind)
        self.settings = {"peers": self.folder, "peer_listen": "127.0.0.1:0", **settings}
        self.daemons = [self.start(number) for number in range(n)]
        self.wait(n - 1)

    def start(self, number, **settings):
        return self.box.daemon({"d": {"path": self.url, "format": FORMATS[self.kind]}},
                               name=f"{os.path.basename(self.folder)}{number}", **{**self.settings, **settings})

    def wait(self, n_others, daemons=None):
        """They know each other, and have the dataset open."""
        for daemon in daemons or self.daemons:
            if n_others > 0:
                daemon.wait_log(f"peers: {n_others} other nodes", 60)
            within(60, lambda at=daemon: at.objects("datasets")[0]["state"] not in ("indexing", "unknown"), "indexed")

    def readers(self, daemons=None, **terms):
        """Each reads all of it, in an order of its own, at the same time as the others."""
        return [(seed, daemon.reader("d", **{"batch": 4, "seed": seed, **terms}))
                for seed, daemon in enumerate(daemons or self.daemons)]

    def check(self, lines, **terms):
        check_images(lines, self.data, **{"batch": 4, **terms})

    def sent(self):
        """How many requests the origin has answered, and with how many bytes."""
        rows = [row for row in self.server.seen() if row[0] == "GET" and row[3].startswith(f"/{self.kind}/")]
        return len(rows), sum(row[2] for row in rows)

    def check_once(self, most=1.01, more=0):
        n_bytes, n_sent = bytes_of(self.data), self.sent()[1]
        equal(n_sent <= most * n_bytes + more, True, f"the origin sent {n_sent} bytes of {n_bytes}, {n_sent / n_bytes:.4f} of them")


# ---- once -----------------------------------------------------------------------------------------------------------

@case("four nodes that each read all of it, each in its own order, have the origin send each object once; so do four ranks of one job")
def _(box):
    nodes = Nodes(box)
    n = len(paths_below(nodes.data))
    for seed, reader in nodes.readers():
        nodes.check(reader.good(), seed=seed)
    nodes.check_once()
    equal(nodes.sent()[0], n, "requests")
    for name in ("peer_bytes", "peer_sent_bytes"):
        equal(sum(counted(daemon, name) for daemon in nodes.daemons), 3 * nodes.sent()[1], name)
    equal([counted(daemon, "peer_failures") for daemon in nodes.daemons], [0] * 4, "failures")
    readers = [daemon.reader("d", batch=4, world=4, rank=rank, epochs=2, job="all") for rank, daemon in enumerate(nodes.daemons)]
    for rank, reader in enumerate(readers):
        nodes.check(reader.good(), world=4, rank=rank, epochs=2)
    equal(nodes.sent()[0], n, "requests to the origin once all of it is somewhere")


@case("of shards of several chunks, too, each byte leaves the origin once, also of pieces for who cannot wait for a chunk")
def _(box):
    nodes = Nodes(box, kind="mds", make=lambda root: make_mds(root, 3, few(300, 200), 100 * KIB))
    terms = {"pipeline": "x; y", "batch": 8, "epochs": 2}
    here = box.daemon({"here": {"path": nodes.data, "format": "mds"}})
    n_heads = nodes.sent()[1]  # for the index, asked for by nodes that do not know each other yet
    for seed, reader in nodes.readers(**terms):
        equal(reader.good(120), here.read("here", **terms, seed=seed), "lines")
    nodes.check_once(most=1.001, more=n_heads)
    equal(len([row for row in nodes.server.seen() if 64 * KIB < row[2] < CHUNK // 4]) > 0, True, "there were pieces")


@case("while all bytes of tars are read for their index, one after the other, nodes have them from each other as well")
def _(box):
    def make(root):
        for shard in range(2):
            archive(os.path.join(root, "tars", f"{shard:03d}.tar"),
                    [(f"{shard}{number:04d}.{what}", noise(shard * 300 + number, 100 * KIB + number) if what == "bin" else b"%d" % number)
                     for number in range(few(300, 200)) for what in ("bin", "cls")])
    nodes = Nodes(box, kind="tars", make=make)
    terms = {"pipeline": "bin; cls", "batch": 8}
    here = box.daemon({"here": {"path": nodes.data, "format": "webdataset"}})
    for seed, reader in nodes.readers(**terms):
        equal(reader.good(120), here.read("here", **terms, seed=seed), "lines")
    equal(sum(counted(daemon, "peer_bytes") for daemon in nodes.daemons) > 0, True, "they had some from each other")
    n_before = nodes.sent()
    for seed, reader in nodes.readers(**terms, first_epoch=1):
        equal(reader.good(120), here.read("here", **terms, seed=seed, first_epoch=1), "lines")
    equal(nodes.sent(), n_before, "nothing is asked for twice")


@case("a list of nodes does what a folder does; a node that is none of them asks those, and one that has not the dataset is no loss")
def _(box):
    write(box.path("key"), b"0123456789abcdef0123456789abcdef\n")
    os.chmod(box.path("key"), 0o600)
    ports = [free_port() for _ in range(3)]
    root = box.path("origin")
    make_images(root, 100)
    server = Nginx(box, root)
    url = list_of(server, root, "images")
    settings = {"peers": " ".join(f"localhost:{port}" for port in ports), "peer_key_file": box.path("key")}
    daemons = [box.daemon({"d": url} if number < 2 else {}, name=f"node{number}", peer_listen=f"127.0.0.1:{port}", **settings)
               for number, port in enumerate(ports)]
    guest = box.daemon({"d": url}, name="guest", peer_listen="127.0.0.1:0", **settings)
    contains(guest.log(), "none of them is this node")
    for daemon in (*daemons[:2], guest):
        within(60, lambda at=daemon: at.objects("datasets")[0]["state"] not in ("indexing", "unknown"), "indexed")
    for seed, daemon in enumerate((*daemons[:2], guest)):
        check_images(daemon.read("d", batch=4, seed=seed), os.path.join(root, "images"), batch=4, seed=seed)
    sent = [row for row in server.seen() if row[0] == "GET" and row[3].startswith("/images/")]
    equal(len(sent) <= 110, True, f"{len(sent)} requests of the origin for 100 objects")


# ---- a node that fails ----------------------------------------------------------------------------------------------

@case("a node that is killed in the middle: the others go on with right bytes, and ask each other; it comes again")
def _(box):
    nodes = Nodes(box, make=lambda root: make_images(root, few(600, 150), 20 * KIB))
    dead, alive = nodes.daemons[0], nodes.daemons[1:]
    gone = dead.reader("d", batch=4, seed=7, delay_ms=5, on_restart="raise")
    readers = nodes.readers(alive, delay_ms=5)
    for _, reader in readers:
        reader.wait_lines(5)
    dead.kill()
    gone.finish()
    for seed, reader in readers:
        nodes.check(reader.good(120), seed=seed)
    equal([daemon.objects("errors") for daemon in alive], [[]] * 3, "damage")
    dead.start()
    nodes.wait(3, [dead])
    nodes.check(dead.read("d", batch=4, seed=9), seed=9)
    nodes.check_once(most=1.5)


@case("a node that stops answering, without an end, only slows the others: they are done with right bytes, and it goes on later")
def _(box):
    nodes = Nodes(box, 3, make=lambda root: make_images(root, few(300, 100), 20 * KIB))
    stuck, alive = nodes.daemons[0], nodes.daemons[1:]
    readers = nodes.readers(alive, delay_ms=5)
    os.kill(stuck.pid, signal.SIGSTOP)
    for seed, reader in readers:
        nodes.check(reader.good(120), seed=seed)
    os.kill(stuck.pid, signal.SIGCONT)
    contains("".join(daemon.log() for daemon in alive), "it is not asked for")
    nodes.check(stuck.read("d", batch=4, seed=5), seed=5)
    equal([daemon.objects("errors") for daemon in nodes.daemons], [[]] * 3, "damage")


@case("an object that the origin does not give is that sample's damage on each node, and no node is blamed for it")
def _(box):
    nodes = Nodes(box, 3, make=lambda root: make_images(root, 60))
    bad = paths_below(nodes.data)[7]
    os.unlink(os.path.join(nodes.data, bad))
    for _, reader in nodes.readers(on_error="skip", shuffle=False):
        equal([line["index"] for line in reader.good(60)], [index for index in range(60) if index != 7], "samples")
    equal([len(daemon.objects("errors")) for daemon in nodes.daemons], [1] * 3, "errors")
    equal("is not asked for" in "".join(daemon.log() for daemon in nodes.daemons), False, "somebody is blamed")


@case("a daemon that is told to end does so at once while others wait for it and it waits for others, and leaves the folder")
def _(box):
    nodes = Nodes(box, 3, make=lambda root: make_images(root, few(400, 150), 20 * KIB))
    readers = nodes.readers(delay_ms=5, on_restart="raise")
    for _, reader in readers:
        reader.wait_lines(2)
    nodes.daemons[0].stop()
    readers[0][1].finish()
    equal(len([name for name in os.listdir(nodes.folder) if not name.startswith(".")]), 2, "files in the folder")
    for seed, reader in readers[1:]:
        nodes.check(reader.good(120), seed=seed)


# ---- strangers ------------------------------------------------------------------------------------------------------

@case("with another key nothing is had, and nothing is lost: the origin is asked, and the log says why")
def _(box):
    nodes = Nodes(box, 2, make=lambda root: make_images(root, 60))
    write(box.path("other-key"), b"0123456789abcdef-another\n")
    os.chmod(box.path("other-key"), 0o600)
    other = nodes.start(9, peer_key_file=box.path("other-key"))
    nodes.wait(2, [*nodes.daemons, other])
    for seed, reader in nodes.readers():
        nodes.check(reader.good(), seed=seed)
    n_before = nodes.sent()[0]
    nodes.check(other.read("d", batch=4, seed=3), seed=3)
    equal(nodes.sent()[0] - n_before >= 60 - n_before, True, "it asked the origin")
    equal(counted(other, "peer_failures") > 0, True, "it was refused")
    contains(other.log(), "status 403", "is not asked for")


def port_of(nodes):
    within(10, lambda: any(not name.startswith(".") for name in os.listdir(nodes.folder)), "its file is in the folder")
    name = next(name for name in os.listdir(nodes.folder) if not name.startswith("."))
    with open(os.path.join(nodes.folder, name), encoding="ascii") as file:
        return int(file.read().rpartition(":")[2])


def tell(port, text):
    """Sends it; returns what comes until the end or for a second."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as stranger:
        answer = b""
        try:
            stranger.sendall(text)
            stranger.shutdown(socket.SHUT_WR)
            while part := stranger.recv(1 << 16):
                answer += part
        except OSError:
            pass
        return answer


@case("whatever strangers send is refused, and the daemon goes on; so is what has the key and is no chunk")
def _(box):
    nodes = Nodes(box, 1, make=lambda root: make_images(root, 12))
    nodes.check(nodes.daemons[0].read("d", batch=4))
    port = port_of(nodes)
    with open(os.path.join(nodes.folder, ".key"), encoding="ascii") as file:
        key = file.read().strip()
    equal(os.stat(os.path.join(nodes.folder, ".key")).st_mode & 0o777, 0o600, "mode of the key")
    name = "0" * 32
    table = Table()
    for row, path, authorization, lines, status in (
            ("no key", f"/now/{name}/0", None, "", 403),
            ("a wrong key", f"/now/{name}/0", "Bearer " + "a" * len(key), "", 403),
            ("the beginning of the key", f"/now/{name}/0", "Bearer " + key[:-1], "", 403),
            ("more than the key", f"/now/{name}/0", "Bearer " + key + "0", "", 403),
            ("an empty key", f"/now/{name}/0", "Bearer ", "", 403),
            ("another scheme", f"/now/{name}/0", "Basic " + key, "", 403),
            ("another listing", f"/now/{name}/0", "Bearer " + key, "", 404),
            ("no path", "/", "Bearer " + key, "", 400),
            ("a path that leads out", "/now/../../../etc/passwd", "Bearer " + key, "", 400),
            ("a number that is none", f"/now/{name}/x", "Bearer " + key, "", 400),
            ("a negative number", f"/now/{name}/-1", "Bearer " + key, "", 400),
            ("a number that is too large", f"/now/{name}/{10**30}", "Bearer " + key, "", 400),
            ("more after it", f"/now/{name}/0/0", "Bearer " + key, "", 400),
            ("a range that is none", f"/now/{name}/0", "Bearer " + key, "Range: bytes=a-b\r\n", 400),
            ("a range of other units", f"/now/{name}/0", "Bearer " + key, "Range: items=0-1\r\n", 400),
            ("two ranges", f"/now/{name}/0", "Bearer " + key, "Range: bytes=0-1,4-5\r\n", 400),
            ("a range backwards", f"/now/{name}/0", "Bearer " + key, "Range: bytes=9-1\r\n", 400)):
        with table.row(row):
            head = f"GET {path} HTTP/1.1\r\nHost: x\r\n{lines}"
            head += f"Authorization: {authorization}\r\n" if authorization is not None else ""
            answer = tell(port, (head + "Connection: close\r\n\r\n").encode())
            equal(answer.split(b" ", 2)[1:2], [b"%d" % status], f"status, of {answer[:200]}")
            equal(key.encode() in answer, False, "the key is in the answer")
    for row, text in (("nothing", b""), ("noise", bytes(range(256)) * 64), ("a line without an end", b"GET /" + b"a" * (1 << 20)),
                      ("headers without an end", b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * (1 << 17)),
                      ("a post of much", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n" + b"a" * (1 << 20))):
        with table.row(row):
            answer = tell(port, text)
            equal(answer.startswith(b"HTTP/1.1 2"), False, f"it is served: {answer[:100]}")
    table.done()
    nodes.daemons[0].read("d", batch=4, seed=1)


@case("of a file that is open, only parts of one chunk are given, with the bytes and the digest that they have")
def _(box):
    nodes = Nodes(box, 1, kind="mds", make=lambda root: make_mds(root, 4, 200, 100 * KIB))
    daemon = nodes.daemons[0]
    port = port_of(nodes)
    with open(os.path.join(nodes.folder, ".key"), encoding="ascii") as file:
        key = file.read().strip()
    with Listener() as listener:  # another node that is asked learns what the origin is called
        write(os.path.join(nodes.folder, "listener"), b"127.0.0.1:%d\n" % listener.port)
        nodes.wait(1)
        daemon.read("d", pipeline="x; y", batch=4)
        name = listener.names.pop()
        os.unlink(os.path.join(nodes.folder, "listener"))
    path = os.path.join(nodes.data, "shard.00000.mds")
    with open(path, "rb") as file:
        content = file.read()
    idx = paths_below(nodes.data).index("shard.00000.mds")
    table = Table()
    for row, first, last, status in (("a chunk", 0, CHUNK - 1, 206), ("its end", CHUNK - 100, CHUNK - 1, 206), ("the next", CHUNK, 2 * CHUNK - 1, 206),
                                     ("the last", len(content) // CHUNK * CHUNK, len(content) - 1, 206),
                                     ("across two", CHUNK - 1, CHUNK, 416), ("all", 0, len(content) - 1, 416),
                                     ("beyond the end", len(content) - 1, len(content), 416), ("far beyond", 10**17, 10**17 + 1, 416)):
        with table.row(row):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", f"/now/{name}/{idx}", headers={"Authorization": f"Bearer {key}", "Range": f"bytes={first}-{last}"})
            answer = connection.getresponse()
            equal(answer.status, status, "status")
            body = answer.read()
            if status == 206:
                equal(answer.headers["Content-Range"], f"bytes {first}-{last}/{len(content)}", "Content-Range")
                equal(sha256(body), sha256(content[first:last + 1]), "bytes")
                said = re.search(rb"\r\n0\r\nChunk-XXH3: ([0-9a-f]{16})\r\n\r\n\Z", tell(port, (
                    f"GET /now/{name}/{idx} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nRange: bytes={first}-{last}\r\n"
                    "Connection: close\r\n\r\n").encode()))
                equal(said and int(said[1], 16), xxh3(content[first:last + 1]), "digest")
            connection.close()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", f"/now/{name}/99", headers={"Authorization": f"Bearer {key}"})
    equal(connection.getresponse().status, 416, "a file that it has not")
    connection.close()
    table.done()


class Listener:
    """A node that has nothing: it says so, and remembers what was asked for."""

    def __enter__(self):
        names = self.names = set()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                names.add(self.path.split("/")[2])
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *words):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *what):
        self.server.shutdown()
        self.server.server_close()


class Liar(http.server.BaseHTTPRequestHandler):
    """A node that has the key. What it says is as long as it should be, and wrong."""
    protocol_version = "HTTP/1.1"
    says = b""
    n_asked = 0

    def do_GET(self):
        type(self).n_asked += 1
        size = self.server.sizes[int(self.path.rsplit("/", 1)[1])]
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"%x\r\n" % size + b"x" * size + b"\r\n0\r\n" + self.says + b"\r\n")

    def log_message(self, *words):
        pass


@case("a node that sends wrong bytes of the right length is found out, and left alone: no sample has a byte of it")
def _(box):
    table = Table()
    for name, says in (("none", b""), ("wrong", b"Chunk-XXH3: 0123456789abcdef\r\n"), ("garbage", b"Chunk-XXH3: yes\r\n")):
        with table.row(name), http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar) as liar:
            Liar.says, Liar.n_asked = says, 0
            liar.daemon_threads = True
            threading.Thread(target=liar.serve_forever, daemon=True).start()
            nodes = Nodes(box, 1, name=name, make=lambda root: make_images(root, 60))
            liar.sizes = [os.path.getsize(os.path.join(nodes.data, path))
                          for path in sorted(paths_below(nodes.data), key=str.encode)]
            write(os.path.join(nodes.folder, "liar"), b"127.0.0.1:%d\n" % liar.server_address[1])
            nodes.wait(1)
            nodes.check(nodes.daemons[0].read("d", batch=4))
            equal(Liar.n_asked > 0, True, "it was asked")
            equal(counted(nodes.daemons[0], "peer_failures"), Liar.n_asked, "failures")
            contains(nodes.daemons[0].log(), "it sent other bytes than it says")
            liar.shutdown()
    table.done()


@case("files in the folder that are none, too old, or somebody else's, are no nodes")
def _(box):
    nodes = Nodes(box, 2, make=lambda root: make_images(root, 12))
    for name, content in (("empty", b""), ("noise", bytes(range(256))), ("no-port", b"127.0.0.1\n"), ("long", b"1" * 5000), (".hidden", b"127.0.0.1:1\n")):
        write(os.path.join(nodes.folder, name), content)
    write(os.path.join(nodes.folder, "old"), b"127.0.0.1:1\n")
    os.utime(os.path.join(nodes.folder, "old"), (1, 1))
    os.symlink("/etc/hostname", os.path.join(nodes.folder, "link"))
    os.mkfifo(os.path.join(nodes.folder, "pipe"))
    if os.geteuid() == 0:
        write(os.path.join(nodes.folder, "stranger"), b"127.0.0.1:1\n")
        os.chown(os.path.join(nodes.folder, "stranger"), 1234, 1234)
    third = nodes.start(3)
    nodes.wait(2, [*nodes.daemons, third])
    for daemon in (*nodes.daemons, third):
        equal("3 other nodes" in daemon.log(), False, "somebody is taken for a node")


@case("settings that cannot be are refused with what to do")
def _(box):
    write(box.path("open"), b"0123456789abcdef0123456789abcdef\n")
    os.chmod(box.path("open"), 0o644)
    write(box.path("short"), b"0123\n")
    os.chmod(box.path("short"), 0o600)
    table = Table()
    for row, settings, words in (("a list and no key", {"peers": "a b"}, ("peer_key_file", "openssl rand")),
                                 ("a key that all may read", {"peers": "a b", "peer_key_file": box.path("open")}, ("open", "chmod 600")),
                                 ("a short key", {"peers": "a b", "peer_key_file": box.path("short")}, ("16 to 512 characters",)),
                                 ("a key that is not there", {"peers": "a b", "peer_key_file": box.path("none")}, ("none",)),
                                 ("a list with a hole", {"peers": "a :7433"}, ("HOST",)),
                                 ("no port", {"peers": "a:b"}, ("HOST:PORT",)),
                                 ("a port too high", {"peers": "a:99999"}, ("HOST:PORT",)),
                                 ("two places", {"peers": "/run", "peer_listen": "a b"}, ("one ADDRESS:PORT",)),
                                 ("a folder that cannot be", {"peers": "/proc/none"}, ("/proc/none",)),
                                 ("an address of another machine", {"peers": box.path("run"), "peer_listen": "192.0.2.1:0"}, ("peer_listen", "192.0.2.1"))):
        with table.row(row):
            daemon = box.daemon({}, name=row.replace(" ", "-"), wait=False, **settings)
            daemon.process.wait(60)
            daemon.expected_status = daemon.process.returncode
            equal(daemon.process.returncode != 0, True, "it starts")
            contains(daemon.log(), *words)
    table.done()


main()
