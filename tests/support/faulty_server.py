#!/usr/bin/env python3
"""A real HTTP server for tests: it serves a folder, counts what leaves it, and misbehaves where it is told to.

HTTP/1.1 with keep-alive, GET and HEAD, single ranges, strong ETags (of size and time), Last-Modified, If-Match, If-Range,
chunked bodies;
a thread a connection and sendfile, so that it is not a bottleneck (several hundred MB/s). TLS with a certificate of
tests/support/certificates.py.

In a test (the server runs in the test's process):

    with faulty_server.start(folder) as server:                      # port=0, host="127.0.0.1", certificate=None
        server.url("a/b.jpg")                                        # "http://127.0.0.1:PORT/a/b.jpg", percent-encoded
        fault = server.fault("/a/*", "status", code=503, times=3)    # see below; server.clear() takes all of them back
        ...
        server.count("/a/b.jpg")      # {"requests": 4, "bytes": 12345, "statuses": [503, 503, 503, 200], "ranges": [...]}
        server.total()                # the same over all paths, with "connections" (accepted, a Remote's own among them)
        server.reset()                # counts from zero

A proxy that counts, too: with faulty_server.Proxy(password="user:word") as proxy: proxy.url, proxy.asked["host:port"].

On another machine, or in a network namespace: faulty_server.py --root DIR [--host H] [--port P] [--certificate PEM]
[--fault 'PATTERN KIND name=value ...']... prints {"url": ..., "port": ...} and serves until stdin ends (--stay: until it is
ended). Its control is HTTP as well, and Remote(url) has the same methods as the object above:

    GET /_control/total, GET /_control/count?path=/a, GET /_control/requests, POST /_control/reset, POST /_control/clear,
    POST /_control/fault with {"pattern": ..., "kind": ..., ...}

A fault is for paths that match a pattern (fnmatch, without the query, decoded; "*" matches all). The newest that fits wins.
Of every fault: times=N it happens so often and then never again; after=N the first N requests that fit are spared;
method="GET" for those only; ranged=True only for requests with a Range (False: only for those without); headers={...} are
added to the answer, or taken out of it where they are None.

    status       code=500, retry_after="2", date="...", body="...", type="text/plain", headers={...}
                 answers so. Headers of one's own: {"X-Amz-Bucket-Region": "eu-west-1"}
    answer       code=200, body, type, headers: any answer
    html         a page with status 200 in place of the file (size=N: of N bytes)
    redirect     to="http://...", code=302;   loop: redirects to itself
    cut          at=N: says the right length, closes the connection after N bytes of the body
    reset        at=N: the same with a TCP reset
    close        closes the connection without an answer
    hang         seconds=S: says nothing at all for so long (default 3600), then closes
    late         seconds=S: says nothing for so long, then answers rightly
    stall        at=N, seconds=S: N bytes, then nothing for so long, then closes
    drip         rate=BYTES a second, in small pieces
    short        by=N: the file ends N bytes earlier, and the headers agree
    longer       by=N: N zero bytes more after it; headers agree unless lie=True (then the lengths are the right ones and
                 the bytes come nevertheless, with the connection closed at the end)
    wrong-bytes  at=N, n=1: flips n bytes from this offset of the file on; seconds=S: as late
    etag         value='"other"' (None: none at all); blind=True: If-Match is not understood
    no-ranges    Range is not understood: 200 and the whole file
    no-length    chunked; close=True: as in HTTP/1.0, ended by closing
    wrong-range  shift=N: Content-Range and bytes of a range that was not asked for; total=N: another size in it
    less         n=N: of the range that is asked for, N bytes at most; headers agree, unless padded=True (then as many bytes
                 come as were asked for, zeros after those that Content-Range names)
    gzip         compressed, whether one can read it or not
    no-head      405 for HEAD
    auth         user=, password= or token=: 401 without them
    header       the right answer, with its `headers`
    headers      sends header lines without end
    last         answers rightly and closes the connection (no keep-alive)
"""
import argparse
import base64
import collections
import email.utils
import fnmatch
import gzip
import http.client
import json
import os
import re
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse

N_LOGGED = 200000  # requests whose details are kept; counts go on beyond
BLOCK = 1 << 18
TYPES = {".html": "text/html", ".htm": "text/html", ".jpg": "image/jpeg", ".png": "image/png", ".json": "application/json",
         ".txt": "text/plain", ".xml": "application/xml"}
REASONS = http.client.responses


class Closing(Exception):
    """The connection is to be closed now."""


class Counts:
    """What was asked for and what left, by path."""

    def __init__(self):
        self.lock = threading.Lock()
        self.reset()

    def reset(self):
        with self.lock:
            self.paths = collections.defaultdict(lambda: {"requests": 0, "bytes": 0, "statuses": [], "ranges": []})
            self.log = []
            self.n_requests = self.n_bytes = self.n_connections = 0
            self.open = getattr(self, "open", 0)
            self.open_max = self.open

    def connected(self, change):
        with self.lock:
            self.open += change
            self.n_connections += change > 0
            self.open_max = max(self.open_max, self.open)

    def request(self, method, path, byte_range, status):
        with self.lock:
            self.n_requests += 1
            entry = self.paths[path]
            entry["requests"] += 1
            if len(self.log) < N_LOGGED:
                entry["statuses"].append(status)
                entry["ranges"].append(byte_range)
                self.log.append([round(time.monotonic(), 4), method, path, byte_range, status])

    def body(self, path, n_bytes):
        with self.lock:
            self.n_bytes += n_bytes
            self.paths[path]["bytes"] += n_bytes

    def of(self, path):
        with self.lock:
            entry = self.paths.get(path) or {"requests": 0, "bytes": 0, "statuses": [], "ranges": []}
            return {name: list(value) if isinstance(value, list) else value for name, value in entry.items()}

    def total(self):
        with self.lock:
            return {"requests": self.n_requests, "bytes": self.n_bytes, "connections": self.n_connections,
                    "open": self.open, "open_max": self.open_max}


class Fault:
    def __init__(self, pattern, kind, times=None, after=0, method=None, ranged=None, **how):
        if kind not in KINDS:
            raise ValueError(f"no fault is called {kind!r}; there are {', '.join(sorted(KINDS))}")
        self.pattern, self.kind, self.times, self.after, self.how = pattern, kind, times, after, how
        self.method, self.ranged = method, ranged
        self.n_fitted = self.n_done = 0

    def fits(self, request):
        """Counts as well; called once a request, under the server's lock."""
        if not fnmatch.fnmatchcase(request.path, self.pattern):
            return False
        if self.method not in (None, request.method) or self.ranged not in (None, "range" in request.headers):
            return False
        self.n_fitted += 1
        if self.n_fitted <= self.after or (self.times is not None and self.n_done >= self.times):
            return False
        self.n_done += 1
        return True


KINDS = {"status", "answer", "html", "redirect", "loop", "cut", "reset", "close", "hang", "stall", "drip", "short", "longer",
         "wrong-bytes", "etag", "less", "no-ranges", "no-length", "wrong-range", "gzip", "headers", "no-head", "auth", "header", "last", "late"}


class Request:
    def __init__(self, method, target, headers):
        self.method = method
        self.target = target
        bare, _, self.query = target.partition("?")
        self.path = urllib.parse.unquote(bare)
        self.headers = headers


class Server:
    """Serves until close(). Its methods may be called from any thread."""

    def __init__(self, root, host="127.0.0.1", port=0, certificate=None):
        self.root = os.path.realpath(root)
        self.counts = Counts()
        self.lock = threading.Lock()
        self.faults = []
        self.connections = set()
        self.closed = threading.Event()
        self.tls = None
        if certificate:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(certificate)
        self.listener = socket.create_server((host, port), backlog=256)
        self.port = self.listener.getsockname()[1]
        self.host = host
        self.base = f"{'https' if certificate else 'http'}://{'127.0.0.1' if host == '0.0.0.0' else host}:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    # -- what tests say to it

    def url(self, path=""):
        return f"{self.base}/{urllib.parse.quote(path.lstrip('/'))}"

    def fault(self, pattern, kind, **how):
        fault = Fault(pattern, kind, **how)
        with self.lock:
            self.faults.insert(0, fault)
        return fault

    def clear(self):
        with self.lock:
            self.faults = []

    def reset(self):
        self.counts.reset()

    def count(self, path):
        return self.counts.of(path)

    def total(self):
        return self.counts.total()

    def requests(self):
        """[time, method, path, range, status] of each, in order."""
        with self.counts.lock:
            return list(self.counts.log)

    def close(self):
        """Ends all connections, whatever they are at."""
        self.closed.set()
        # Closing alone would not wake the thread that accepts.
        for end in (lambda: self.listener.shutdown(socket.SHUT_RDWR), self.listener.close):
            try:
                end()
            except OSError:
                pass
        with self.lock:
            connections = list(self.connections)
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- connections

    def _accept(self):
        while not self.closed.is_set():
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connection, args=(connection,), daemon=True).start()

    def _connection(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.counts.connected(1)
        try:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            with self.lock:
                self.connections.add(connection)
            Talk(self, connection).run()
        except (OSError, Closing, ValueError):  # it hung up, or we do
            pass
        finally:
            with self.lock:
                self.connections.discard(connection)
            connection.close()
            self.counts.connected(-1)

    def fault_for(self, request):
        with self.lock:
            return next((fault for fault in self.faults if fault.fits(request)), None)

    def control(self, request, body):
        """(status, object) of a request below /_control/."""
        what = request.path[len("/_control/"):]
        if what == "total":
            return 200, self.total()
        if what == "count":
            return 200, self.count(urllib.parse.parse_qs(request.query)["path"][0])
        if what == "requests":
            return 200, self.requests()
        if what in ("reset", "clear") and request.method == "POST":
            getattr(self, what)()
            return 200, {}
        if what == "fault" and request.method == "POST":
            try:
                self.fault(**json.loads(body))
            except (TypeError, ValueError) as error:
                return 400, {"error": str(error)}
            return 200, {}
        return 404, {"error": f"no control is called {what}"}


class Talk:
    """One connection: requests one after the other."""

    def __init__(self, server, connection):
        self.server = server
        self.connection = connection
        self.buffer = b""
        self.stays = True

    def run(self):
        while self.stays:
            request = self.read_request()
            if request is None:
                return
            if request.path.startswith("/_control/"):
                status, said = self.server.control(request, self.read_body(request))
                self.head(status, {"Content-Type": "application/json"}, json.dumps(said).encode(), request)
            else:
                Answer(self, request, self.server.fault_for(request)).give()

    def read_request(self):
        while b"\r\n\r\n" not in self.buffer:
            more = self.connection.recv(65536)
            if not more or len(self.buffer) > 1 << 20:
                return None
            self.buffer += more
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, version = first.split(" ")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        self.stays = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
        return Request(method, target, headers)

    def read_body(self, request):
        n_bytes = int(request.headers.get("content-length", "0"))
        while len(self.buffer) < n_bytes:
            more = self.connection.recv(65536)
            if not more:
                raise Closing
            self.buffer += more
        body, self.buffer = self.buffer[:n_bytes], self.buffer[n_bytes:]
        return body

    def head(self, status, headers, body=b"", request=None):
        """Sends status and headers, and a short body with its length unless the headers have one."""
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Unknown')}"]
        headers = {"Date": email.utils.formatdate(usegmt=True), **headers}
        names = {name.lower() for name in headers}
        if "content-length" not in names and "transfer-encoding" not in names and headers.get("Connection") != "close":
            headers["Content-Length"] = str(len(body))
        if not self.stays and "Connection" not in headers:
            headers["Connection"] = "close"
        lines += [f"{name}: {value}" for name, value in headers.items() if value is not None]
        if request is not None and request.method == "HEAD":
            body = b""
        self.connection.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)


class Answer:
    """The answer to one request, right except for its fault."""

    def __init__(self, talk, request, fault):
        self.talk, self.request, self.fault = talk, request, fault
        self.kind = fault.kind if fault else None
        self.how = fault.how if fault else {}
        self.counts = talk.server.counts
        self.range = request.headers.get("range")

    def give(self):
        early = {"status": self.plain, "answer": self.plain, "html": self.html, "redirect": self.redirect,
                 "loop": self.redirect, "close": self.close, "hang": self.hang, "headers": self.headers_without_end}.get(self.kind)
        if early:
            early()
        elif self.kind == "no-head" and self.request.method == "HEAD":
            self.short_answer(405, {"Allow": "GET"}, b"")
        elif self.kind == "auth" and not self.may_pass():
            self.short_answer(401, {"WWW-Authenticate": 'Basic realm="test"'}, b"who are you?\n")
        elif self.request.method not in ("GET", "HEAD"):
            self.short_answer(405, {"Allow": "GET, HEAD"}, b"")
        else:
            self.file()

    # -- answers without a file

    def short_answer(self, status, headers, body):
        self.counts.request(self.request.method, self.request.path, self.range, status)
        self.talk.head(status, headers, body, self.request)
        if self.request.method != "HEAD":
            self.counts.body(self.request.path, len(body))

    def plain(self):
        headers = {"Content-Type": self.how.get("type", "text/plain"), **self.how.get("headers", {})}
        for name, header in (("retry_after", "Retry-After"), ("date", "Date")):
            if name in self.how:
                headers[header] = str(self.how[name])
        status = int(self.how.get("code", 500 if self.kind == "status" else 200))
        self.short_answer(status, headers, self.how.get("body", "" if self.kind == "answer" else "no\n").encode())

    def html(self):
        page = b"<!DOCTYPE html><html><title>Sorry</title><body>Please come back later.</body></html>\n"
        if "size" in self.how:
            page = page.ljust(int(self.how["size"]), b" ")[:int(self.how["size"])]
        self.short_answer(200, {"Content-Type": "text/html; charset=utf-8"}, page)

    def redirect(self):
        to = self.how.get("to", self.request.target)
        self.short_answer(int(self.how.get("code", 302)), {"Location": to}, b"")

    def close(self):
        self.counts.request(self.request.method, self.request.path, self.range, 0)
        raise Closing

    def headers_without_end(self):
        self.counts.request(self.request.method, self.request.path, self.range, 200)
        self.talk.connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while not self.talk.server.closed.is_set():
            self.talk.connection.sendall(b"X-Header: " + b"h" * 1000 + b"\r\n")

    def hang(self):
        self.counts.request(self.request.method, self.request.path, self.range, 0)
        self.talk.server.closed.wait(float(self.how.get("seconds", 3600)))
        raise Closing

    def may_pass(self):
        if "token" in self.how:
            expected = f"Bearer {self.how['token']}"
        else:
            expected = "Basic " + base64.b64encode(f"{self.how['user']}:{self.how['password']}".encode()).decode()
        return self.request.headers.get("authorization") == expected

    # -- the file

    def file(self):
        path = os.path.realpath(os.path.join(self.talk.server.root, self.request.path.lstrip("/")))
        if not (path + "/").startswith(self.talk.server.root + "/") or not os.path.isfile(path):
            self.short_answer(404, {"Content-Type": "text/plain"}, b"no such file\n")
            return
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            self.size = status.st_size
            self.etag = f'"{self.size:x}-{status.st_mtime_ns:x}"'
            self.modified = email.utils.formatdate(status.st_mtime, usegmt=True)
            if self.kind == "etag":
                self.etag = self.how.get("value", '"other"')
            self.serve(file, path)

    def serve(self, file, path):
        if self.kind == "short":
            self.size = max(0, self.size - int(self.how.get("by", 1)))
        elif self.kind == "longer" and not self.how.get("lie"):
            self.size += int(self.how.get("by", 1))
        if self.kind == "gzip":
            self.gzip(file, path)
            return
        headers = self.headers(path)
        if not self.precondition():
            self.short_answer(412, {"ETag": self.etag}, b"")
            return
        begin, end, n_padding = 0, self.size, 0
        asked = None if self.kind == "no-ranges" else self.asked_range()
        if asked == "none":
            self.short_answer(416, {"Content-Range": f"bytes */{self.size}"}, b"")
            return
        status = 200
        if asked:
            status = 206
            begin, end = asked
            if self.kind == "wrong-range":
                shift = int(self.how.get("shift", 0))
                begin, end = begin + shift, min(end + shift, self.size)
            elif self.kind == "less":
                end = min(end, begin + int(self.how.get("n", 1)))
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{self.how.get('total', self.size)}"
            if self.how.get("padded"):
                n_padding = asked[1] - end
        self.counts.request(self.request.method, self.request.path, self.range, status)
        if self.kind in ("late", "wrong-bytes"):
            self.talk.server.closed.wait(float(self.how.get("seconds", 0)))
        self.body(file, status, headers, begin, end, n_padding)

    def headers(self, path):
        headers = {"Content-Type": TYPES.get(os.path.splitext(path)[1].lower(), "application/octet-stream"),
                   "ETag": self.etag, "Last-Modified": self.modified}
        if self.kind != "no-ranges":
            headers["Accept-Ranges"] = "bytes"
        headers.update(self.how.get("headers", {}))
        if self.kind == "last":
            self.talk.stays = False
        return headers

    def precondition(self):
        wanted = self.request.headers.get("if-match")
        if self.how.get("blind"):
            return True
        return wanted in (None, "*") or (self.etag is not None and self.etag in [one.strip() for one in wanted.split(",")])

    def asked_range(self):
        """(begin, end), None without one, "none" if it cannot be had."""
        if self.range is None or self.request.headers.get("if-range", self.etag) != self.etag:
            return None
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", self.range)
        if not match or not any(match.groups()):
            return None
        first, last = match.groups()
        if not first:
            return max(0, self.size - int(last)), self.size
        if int(first) >= self.size:
            return "none"
        return int(first), min(int(last) + 1 if last else self.size, self.size)

    def gzip(self, file, path):
        content = gzip.compress(file.read())
        self.counts.request(self.request.method, self.request.path, self.range, 200)
        self.talk.head(200, {**self.headers(path), "Content-Encoding": "gzip"}, content, self.request)
        self.counts.body(self.request.path, len(content))

    def body(self, file, status, headers, begin, end, n_padding):
        """Sends the bytes [begin, end) of the file; zeros in place of what is past its end, and some more."""
        n_bytes = end - begin
        chunked = self.kind == "no-length" and not self.how.get("close")
        if chunked:
            headers["Transfer-Encoding"] = "chunked"
        elif self.kind == "no-length":
            headers["Connection"] = "close"
            self.talk.stays = False
        else:
            headers["Content-Length"] = str(n_bytes + n_padding)
        if self.kind == "longer" and self.how.get("lie"):
            n_bytes += int(self.how.get("by", 1))
            self.talk.stays = False
        self.talk.head(status, headers)
        if self.request.method == "HEAD":
            return
        stop = None
        if self.kind in ("cut", "reset", "stall"):
            stop = min(n_bytes, int(self.how.get("at", n_bytes // 2)))
            n_bytes = stop
        send = self.send_chunks if chunked else self.send
        send(file, begin, n_bytes)
        if n_padding:
            self.talk.connection.sendall(bytes(n_padding))
        if stop is not None:
            self.stop()

    def stop(self):
        if self.kind == "stall":
            self.talk.server.closed.wait(float(self.how.get("seconds", 3600)))
        if self.kind == "reset":
            self.talk.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Closing

    def send(self, file, begin, n_bytes):
        if self.kind == "drip":
            self.drip(file, begin, n_bytes)
        elif self.kind == "wrong-bytes" or self.talk.server.tls or self.kind == "longer":
            for offset, block in self.blocks(file, begin, n_bytes):
                self.talk.connection.sendall(self.damaged(offset, block))
                self.counts.body(self.request.path, len(block))
        else:
            self.send_file(file, begin, n_bytes)

    def send_file(self, file, offset, n_bytes):
        end = offset + n_bytes
        while offset < end:
            n = os.sendfile(self.talk.connection.fileno(), file.fileno(), offset, min(end - offset, 1 << 22))
            if n == 0:
                raise Closing
            self.counts.body(self.request.path, n)
            offset += n

    def blocks(self, file, begin, n_bytes, block=BLOCK):
        file.seek(begin)
        while n_bytes > 0:
            wanted = min(block, n_bytes)
            yield begin, file.read(wanted).ljust(wanted, b"\0")
            begin += wanted
            n_bytes -= wanted

    def damaged(self, offset, block):
        if self.kind != "wrong-bytes":
            return block
        block = bytearray(block)
        first = int(self.how.get("at", 0))
        for place in range(max(first, offset), min(first + int(self.how.get("n", 1)), offset + len(block))):
            block[place - offset] ^= 0xff
        return bytes(block)

    def drip(self, file, begin, n_bytes):
        rate = float(self.how.get("rate", 1000))
        piece = max(1, int(rate / 20))
        for _, block in self.blocks(file, begin, n_bytes, piece):
            self.talk.connection.sendall(block)
            self.counts.body(self.request.path, len(block))
            if self.talk.server.closed.wait(len(block) / rate):
                raise Closing

    def send_chunks(self, file, begin, n_bytes):
        for _, block in self.blocks(file, begin, n_bytes, 50000):
            self.talk.connection.sendall(b"%x\r\n%s\r\n" % (len(block), block))
            self.counts.body(self.request.path, len(block))
        self.talk.connection.sendall(b"0\r\n\r\n")


class Proxy:
    """A forward proxy: whole URLs for http, CONNECT for https. Counts requests by server; may want a password."""

    def __init__(self, host="127.0.0.1", password=None):
        self.password = password  # "user:password"
        self.asked = collections.Counter()
        self.listener = socket.create_server((host, 0), backlog=64)
        self.url = f"http://{host}:{self.listener.getsockname()[1]}"
        self.closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.closed = True
        for end in (lambda: self.listener.shutdown(socket.SHUT_RDWR), self.listener.close):
            try:
                end()
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _accept(self):
        while not self.closed:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connection, args=(connection,), daemon=True).start()

    def _connection(self, connection):
        with connection:
            try:
                self._serve(connection)
            except (OSError, ValueError):
                pass

    def _serve(self, connection):
        """One request, or one tunnel, a connection."""
        head = b""
        while b"\r\n\r\n" not in head:
            more = connection.recv(65536)
            if not more:
                return
            head += more
        head, _, rest = head.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        expected = self.password and "Basic " + base64.b64encode(self.password.encode()).decode()
        if expected and not any(line.lower().startswith("proxy-authorization:") and line.endswith(expected)
                                for line in lines):
            connection.sendall(b"HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic realm=\"p\"\r\n"
                               b"Content-Length: 0\r\nConnection: close\r\n\r\n")
            return
        parts = urllib.parse.urlsplit(target if "://" in target else "//" + target)
        self.asked[f"{parts.hostname}:{parts.port}"] += 1
        with socket.create_connection((parts.hostname, parts.port or 80)) as server:
            if method == "CONNECT":
                connection.sendall(b"HTTP/1.1 200 Established\r\n\r\n")
                server.sendall(rest)
            else:
                kept = [line for line in lines if not line.lower().startswith(("proxy-", "connection:"))]
                path = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
                server.sendall("\r\n".join([f"{method} {path} HTTP/1.1", *kept, "Connection: close", "", ""]).encode(
                    "latin-1") + rest)
            back = threading.Thread(target=pump, args=(server, connection), daemon=True)
            back.start()
            pump(connection, server)
            back.join()


def pump(source, sink):
    """Bytes from one socket to another until there are no more."""
    try:
        while True:
            block = source.recv(65536)
            if not block:
                break
            sink.sendall(block)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def start(root, host="127.0.0.1", port=0, certificate=None):
    """Starts one in this process. close() it, or use it with `with`."""
    return Server(root, host, port, certificate)


class Remote:
    """Speaks to a server in another process, with the methods of Server."""

    def __init__(self, base, context=None):
        self.base = base.rstrip("/")
        self.context = context

    def ask(self, method, what, said=None):
        parts = urllib.parse.urlsplit(self.base)
        if parts.scheme == "https":
            connection = http.client.HTTPSConnection(parts.netloc, timeout=30,
                                                     context=self.context or ssl._create_unverified_context())
        else:
            connection = http.client.HTTPConnection(parts.netloc, timeout=30)
        try:
            connection.request(method, "/_control/" + what, json.dumps(said) if said is not None else None)
            answer = connection.getresponse()
            content = json.loads(answer.read())
        finally:
            connection.close()
        if answer.status != 200:
            raise ValueError(content["error"])
        return content

    def url(self, path=""):
        return f"{self.base}/{urllib.parse.quote(path.lstrip('/'))}"

    def fault(self, pattern, kind, **how):
        self.ask("POST", "fault", {"pattern": pattern, "kind": kind, **how})

    def clear(self):
        self.ask("POST", "clear", {})

    def reset(self):
        self.ask("POST", "reset", {})

    def count(self, path):
        return self.ask("GET", "count?path=" + urllib.parse.quote(path))

    def total(self):
        return self.ask("GET", "total")

    def requests(self):
        return self.ask("GET", "requests")


def parse_fault(text):
    """'PATTERN KIND name=value ...'; values are JSON where they can be."""
    pattern, kind, *rest = text.split()
    how = {}
    for part in rest:
        name, _, value = part.partition("=")
        try:
            how[name] = json.loads(value)
        except ValueError:
            how[name] = value
    return pattern, kind, how


def main():
    parser = argparse.ArgumentParser(description="A web server that misbehaves as told")
    parser.add_argument("--root", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--certificate", help="PEM file with certificate and key")
    parser.add_argument("--fault", action="append", default=[], help="'PATTERN KIND name=value ...'")
    parser.add_argument("--stay", action="store_true", help="do not end when stdin does")
    given = parser.parse_args()
    server = Server(given.root, given.host, given.port, given.certificate)
    for text in given.fault:
        pattern, kind, how = parse_fault(text)
        server.fault(pattern, kind, **how)
    print(json.dumps({"url": server.base, "port": server.port}), flush=True)
    try:
        if given.stay:
            threading.Event().wait()
        sys.stdin.buffer.read()
    except KeyboardInterrupt:
        pass
    server.close()


if __name__ == "__main__":
    main()
