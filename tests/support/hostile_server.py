"""An HTTP server whose answers are chosen by a seed: true ones, and every kind of wrong and odd one.

    with HostileServer(7, {"/a.bin": b"..."}) as server:      # path -> its true content
        server.base                                           # "http://127.0.0.1:PORT"
        server.calm()                                         # from now on all answers are true

A seed chooses a few tricks (the first in turn, others at random) and how often they are played for each method and path
(`n_plays`); then it is answered rightly. The choice depends on seed, method, path and number of the request alone, so a seed
plays the same again. No trick makes wrong
bytes look right: where nobody has a SHA-256, a server that lies consistently cannot be told from a true one. Tricks of
LIES do so, and are for files whose SHA-256 is known.

Also an object store: `buckets` (name -> keys, whose contents are at /name/key) are listed as ListObjectsV2 is.
"""
import gzip
import random
import re
import socket
import struct
import threading
import urllib.parse
from xml.sax.saxutils import escape

SECRET = "hush-of-a-redirect"
PAGE = b"<!DOCTYPE html><html><body>Please log in.</body></html>"
BOMB = gzip.compress(bytes(50 << 20), 1)
TRICKS = {}


def trick(function):
    TRICKS[function.__name__] = function
    return function


class Answer:
    """What is sent: at first the right thing."""

    def __init__(self, server, method, path, data, asked, draw):
        self.server, self.method, self.path, self.data, self.draw = server, method, path, data, draw
        self.first, self.last, self.status = 0, len(data) - 1, b"200 OK"
        self.headers = {"Content-Type": "application/octet-stream", "Accept-Ranges": "bytes", "Connection": None}
        if not server.is_undated:
            self.headers["ETag"] = f'"{len(data)}-{sum(data[:99])}"'
        self.asked = asked
        if asked and asked[0] < len(data):
            self.first, self.last = asked[0], min(asked[1], self.last)
            self.status = b"206 Partial Content"
            self.headers["Content-Range"] = f"bytes {self.first}-{self.last}/{len(data)}"
        self.body = data[self.first:self.last + 1]
        self.headers["Content-Length"] = len(self.body)
        self.before = b""
        self.pieces = None  # in place of head and body
        self.is_last = False

    def chunked(self, body=None, end=b"0\r\n\r\n"):
        del self.headers["Content-Length"]
        self.headers["Transfer-Encoding"] = "chunked"
        body = self.body if body is None else body
        step = max(1, len(body) // 3)
        self.body = b"".join(b"%x\r\n%s\r\n" % (len(body[at:at + step]), body[at:at + step])
                             for at in range(0, len(body), step)) + end

    def head(self):
        lines = [f"{name}: {value}" for name, value in self.headers.items() if value is not None]
        return b"HTTP/1.1 " + self.status + b"\r\n" + "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"

    def replace(self, status, body=b"", **headers):
        self.status, self.body = status, body
        self.headers = {"Content-Length": len(body), **{name.replace("_", "-"): value for name, value in headers.items()}}

    def send(self, connection):
        if self.pieces is not None:
            for piece in self.pieces:
                connection.sendall(piece)
            return False
        connection.sendall(self.before + self.head() + (b"" if self.method == "HEAD" else self.body))
        return not self.is_last


# ---- tricks ---------------------------------------------------------------------------------------------------------

@trick
def length_wrong(answer):
    if answer.method == "HEAD":  # the same in both would be another file
        return
    answer.headers["Content-Length"] = max(0, len(answer.body) + answer.draw.choice((-10, -1, 1, 1000, 1 << 40)))
    answer.is_last = True


@trick
def length_odd(answer):
    answer.headers["Content-Length"] = answer.draw.choice(("-5", "5, 6", "0x10", "99999999999999999999999", "", "one"))
    answer.is_last = True


@trick
def length_missing(answer):
    del answer.headers["Content-Length"]
    answer.is_last = True


@trick
def cut(answer):
    answer.body = answer.body[:answer.draw.randrange(len(answer.body) + 1)]
    answer.is_last = True


@trick
def chunked(answer):
    answer.chunked()


@trick
def chunks_cut(answer):
    half = len(answer.body) // 2
    answer.chunked(answer.body[:half], end=answer.draw.choice((b"", b"ff\r\n" + answer.body[half:half + 2], b"0\r\n")))
    answer.is_last = True


@trick
def chunks_odd(answer):
    answer.chunked(end=answer.draw.choice((b"zz\r\n", b"ffffffffffffffffff\r\n", b"-1\r\n\r\n",
                                           b"0\r\nETag: \"x\"\r\nHTTP/1.1 404 No\r\n\r\n")))
    answer.is_last = True


@trick
def range_short_and_padded(answer):
    """Content-Range names half of it; what follows are zeros that stand nowhere in the file."""
    half = len(answer.body) // 2
    if half:
        answer.status = b"206 Partial Content"
        answer.headers["Content-Range"] = f"bytes {answer.first}-{answer.first + half - 1}/{len(answer.data)}"
        answer.body = answer.body[:half].ljust(len(answer.body), b"\0")


@trick
def range_of_others(answer):
    shift = answer.draw.choice((-7, 7, 4096))
    first = max(0, answer.first + shift)
    answer.status, answer.body = b"206 Partial Content", answer.data[first:answer.last + shift + 1]
    answer.headers["Content-Range"] = f"bytes {first}-{first + len(answer.body) - 1}/{len(answer.data)}"
    answer.headers["Content-Length"] = len(answer.body)
    if shift == 0 or first == answer.first:
        answer.is_last = True


@trick
def range_odd(answer):
    answer.status = b"206 Partial Content"
    answer.headers["Content-Range"] = answer.draw.choice((
        f"items {answer.first}-{answer.last}/{len(answer.data)}", f"bytes {answer.first}-{answer.last}/{len(answer.data) + 1}",
        f"bytes {answer.last}-{answer.first}/5", "bytes */*", "bytes 0-99999999999999999999/3", None, ""))


@trick
def range_ignored(answer):
    answer.status, answer.body = b"200 OK", answer.data
    answer.headers.pop("Content-Range", None)
    answer.headers["Content-Length"] = len(answer.data)


@trick
def whole_in_multipart(answer):
    body = b"--x\r\nContent-Range: bytes 0-1/2\r\n\r\n" + answer.body + b"\r\n--x--"
    answer.replace(b"206 Partial Content", body, Content_Type="multipart/byteranges; boundary=x")


@trick
def endless(answer):
    def pieces():
        yield answer.head().replace(b"Content-Length", b"X-Length")
        yield answer.body
        while True:
            yield bytes(1 << 16)
    if not answer.server.is_document(answer.path):  # their limit is a part of the memory; test_origins.py
        answer.pieces = pieces()


@trick
def drip(answer):
    def pieces():
        for byte in (answer.head() + answer.body)[:200]:
            yield bytes([byte])
            answer.server.over.wait(0.05)
    answer.pieces = pieces()


@trick
def header_long(answer):
    answer.headers["X-Long"] = "x" * answer.draw.choice((8000, 120 << 10))


@trick
def headers_many(answer):
    answer.headers.update({f"X-{number}": "y" for number in range(answer.draw.choice((300, 10 ** 5)))})


@trick
def headers_odd(answer):
    answer.headers.update(answer.draw.choice((
        {"": "x"}, {"X": "\x1b[31m\u0085"}, {"No colon here\r\nETag": "\"\x1b[2Jx\""}, {"X\r\n continued": "1"}, {" Content-Length": "3"},
        {"Last-Modified": "yesterday"}, {"Date": "-1"}, {"Content-Type": "text/html"}, {"Content-Disposition": "x" * 9000})))


@trick
def redirect(answer):
    host = answer.server.base.partition("://")[2]
    to = answer.draw.choice((
        answer.path, "file:///etc/passwd", f"http://localhost:{answer.server.port}{answer.path}", "ftp://127.0.0.1/x",
        "http://127.0.0.1:1/", f"http://user:{SECRET}@{host}{answer.path}", f"https://{host}{answer.path}", "//",
        "http://[::1", "http://\x1b[31m/", "", "?" + "q" * 9000, "gopher://127.0.0.1/", "http://127.0.0.1:99999/", "//" + host + answer.path))
    answer.replace(answer.draw.choice((b"301 Moved", b"302 Found", b"307 Temporary", b"308 Permanent", b"300 Choices")), PAGE, Location=to)


@trick
def retry_after(answer):
    answer.replace(answer.draw.choice((b"429 Too Many", b"503 Busy", b"500 Oops")), Retry_After=answer.draw.choice((
        "0", "-5", "99999999999999999999", "1e3", "Wed, 21 Oct 2099 07:28:00 GMT", "Thu, 01 Jan 1970 00:00:01 GMT", "\x01", "soon")))


@trick
def etag_other(answer):
    answer.headers["ETag"] = answer.draw.choice((
        f'"{answer.draw.random()}"', 'W/"weak"', "no quotes", '"', "", '"' + "e" * 300 + '"', '"\x1b]0;x\x07"', '"a"\r\nETag: "b"'))


@trick
def encoded(answer):
    if answer.draw.random() < 0.5:  # a label that is not true
        answer.headers["Content-Encoding"] = answer.draw.choice(("gzip", "br", "identity", "x, y", "gzip, gzip"))
    else:
        answer.replace(b"200 OK", gzip.compress(answer.body, 1), Content_Encoding="gzip")


@trick
def bomb(answer):
    if answer.method == "HEAD":
        return
    how = answer.draw.choice(("Content_Encoding", "Transfer_Encoding"))
    answer.replace(b"200 OK", BOMB, **{how: "gzip"})
    answer.is_last = True


@trick
def login_page(answer):
    answer.replace(b"200 OK", PAGE, Content_Type=answer.draw.choice(("text/html", "application/xhtml+xml; charset=x")))


@trick
def informational(answer):
    answer.before = answer.draw.choice((b"HTTP/1.1 100 Continue\r\n\r\n",
                                        b"HTTP/1.1 103 Early Hints\r\nETag: \"e\"\r\nContent-Length: 4\r\n\r\n"))
    answer.before *= answer.draw.choice((1, 3, 20000))


@trick
def closes(answer):
    whole = answer.head() + answer.body
    answer.pieces = [whole[:answer.draw.choice((0, 1, 9, 20, len(answer.head()) - 1, len(answer.head())))]]


@trick
def status(answer):
    answer.replace(answer.draw.choice((
        b"204 Nothing", b"304 Not Modified", b"404 Gone", b"403 No", b"401 Who", b"407 Proxy", b"412 Other", b"416 Range", b"418 Tea",
        b"500 Oops", b"599 Odd", b"999 Odd", b"000 Odd", b"20", b"2000 OK", b"206 Partial", b"205 Reset", b"101 Switching")),
        answer.draw.choice((b"", PAGE, b"x" * 300000)))


@trick
def garbage(answer):
    answer.pieces = [answer.draw.choice((b"\0" * 1000, b"220 mail ESMTP\r\n", b"HTTP/0.9 200\r\n\r\n", b"HTTP/3 200 OK\r\n\r\n",
                                         b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"\r\n" * 5000, b"ICY 200 OK\r\n\r\n"))]


@trick
def leaves_rubbish(answer):
    """After a right answer, on a connection that stays."""
    answer.pieces = [answer.head(), b"" if answer.method == "HEAD" else answer.body, b"rubbish \r\n\r\n" * 9]


def bytes_wrong(answer):
    body = bytearray(answer.body)
    if body:
        body[answer.draw.randrange(len(body))] ^= 1 << answer.draw.randrange(8)
    answer.body = bytes(body)


def page_of_equal_size(answer):
    answer.body = PAGE.ljust(len(answer.body))[:len(answer.body)]
    answer.headers["Content-Type"] = "text/html"


LIES = {"bytes_wrong": bytes_wrong, "page_of_equal_size": page_of_equal_size}


# ---- the server -----------------------------------------------------------------------------------------------------

class HostileServer:
    def __init__(self, seed, contents, documents=(), buckets=None, hashed=False, for_ever=False):
        draw = random.Random(f"server {seed}")
        tricks = dict(TRICKS, **(LIES if hashed else {}))
        names = [sorted(tricks)[seed % len(tricks)], *draw.sample(sorted(tricks), draw.choice((0, 0, 0, 1, 3)))]
        self.tricks = {name: tricks[name] for name in names}
        self.n_plays = 1 << 30 if for_ever else draw.choice((1, 1, 2, 3))
        self.share = draw.choice((0.5, 1.0, 1.0))
        self.is_undated = draw.random() < 0.3  # no ETags
        self.seed, self.contents, self.documents, self.buckets = seed, contents, documents, buckets or {}
        self.n_asked, self.lock, self.over, self.is_calm = {}, threading.Lock(), threading.Event(), False
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.base = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def __str__(self):
        return f"seed {self.seed}: {', '.join(self.tricks)}, {self.n_plays} times"

    def calm(self):
        self.is_calm = True

    def is_document(self, path):
        return path in self.documents

    def accept(self):
        while not self.over.is_set():
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        with connection:
            connection.settimeout(30)
            buffer = b""
            try:
                while not self.over.is_set():
                    while b"\r\n\r\n" not in buffer:
                        more = connection.recv(65536)
                        if not more:
                            return
                        buffer += more
                    head, _, buffer = buffer.partition(b"\r\n\r\n")
                    if not self.answer(head.decode("latin-1")).send(connection):
                        if random.Random(f"end {self.seed}").random() < 0.2:
                            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        return
            except (OSError, ValueError):
                pass

    def answer(self, head):
        method, target, _ = head.split("\r\n")[0].split(" ")
        bare, _, query = target.partition("?")
        path = urllib.parse.unquote(bare)
        found = re.search(r"(?im)^range: *bytes=(\d+)-(\d+)", head)
        with self.lock:
            number = self.n_asked[method, path] = self.n_asked.get((method, path), 0) + 1
        draw = random.Random(f"{self.seed} {method} {path} {number}")
        data = self.contents.get(path)
        if data is None and path[1:] in self.buckets and "list-type=2" in query:
            data = self.listing(path[1:], urllib.parse.parse_qs(query))
        answer = Answer(self, method, path, data or b"", found and (int(found[1]), int(found[2])), draw)
        if data is None:
            answer.replace(b"404 Not Found")
        elif not self.is_calm and number <= self.n_plays and draw.random() < self.share:
            names = list(self.tricks)
            self.tricks[names[0] if number == 1 else draw.choice(names)](answer)
        return answer

    def listing(self, bucket, query):
        """Two keys a page."""
        keys = sorted(key for key in self.buckets[bucket] if key.startswith(query.get("prefix", [""])[0]))
        at = int(query.get("continuation-token", ["0"])[0])
        sizes = {key: len(self.contents[f"/{bucket}/{key}"]) for key in keys[at:at + 2]}
        rows = "".join(f"<Contents><Key>{urllib.parse.quote(key)}</Key><Size>{size}</Size></Contents>"
                       for key, size in sizes.items())
        more = at + 2 < len(keys)
        return (f"<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>{str(more).lower()}</IsTruncated>"
                f"{f'<NextContinuationToken>{escape(str(at + 2))}</NextContinuationToken>' if more else ''}{rows}"
                "</ListBucketResult>").encode()
