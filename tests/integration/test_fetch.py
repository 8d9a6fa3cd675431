#!/usr/bin/env python3
"""Origins: files and ranges come whole or not at all, whatever the server does, and no secret is ever told."""
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import certificates
import faulty_server
import s3_server
from harness import BUILD, Skip, Table, case, contains, die_with_parent, end, equal, main, patience, within

TOOL = os.path.join(BUILD, "tools", "fetch_url")
MIB = 1 << 20
SECRET = "hunter2-secret"
PROXY_NAMES = ("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY")
OTHER_NAMES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
               "AWS_SESSION_TOKEN", "AWS_PROFILE")


# ---- what the cases stand on ----------------------------------------------------------------------------------------

def content(name, n_bytes):
    """Bytes that tell which file and which place of it they are."""
    line = hashlib.sha256(name.encode()).hexdigest()
    text = "".join(f"{line} {number:015d}\n" for number in range(n_bytes // 81 + 1))
    return text[:n_bytes].encode()


def folder(box, **files):
    """A folder with files of these sizes; `__` in a name is a slash, `_` a dot."""
    root = box.path("origin")
    for name, n_bytes in files.items():
        write(root, name.replace("__", "/").replace("_", "."), content(name, n_bytes))
    return root


def write(root, path, data):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    return data


def sha(data):
    return hashlib.sha256(data).hexdigest()


def piece(path, size, urls, offset=0, n_bytes=None, etag="-", job=0):
    """A line for `fetch_url fetch`."""
    urls = [urls] if isinstance(urls, str) else urls
    return "\t".join([str(job), path, str(size), str(offset), str(size - offset if n_bytes is None else n_bytes), etag,
                      *urls])


def run_tool(command, lines, environment=None, seconds=60, **options):
    """Runs it. Returns its objects; what it printed must hold no secret."""
    arguments = [TOOL]
    for name, value in options.items():
        arguments += ["--" + name.replace("_", "-"), str(value)]
    env = {name: value for name, value in os.environ.items() if name not in PROXY_NAMES + OTHER_NAMES}
    env.update(environment or {})
    done = subprocess.run(arguments + [command], input="\n".join(lines) + "\n", env=env, check=False, encoding="utf-8",
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=patience(seconds),
                          preexec_fn=die_with_parent)
    if done.stderr:
        raise AssertionError(f"fetch_url: {done.stderr}")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    for line in told:
        for name in ("why", "last"):
            if SECRET in line.get(name, ""):
                raise AssertionError(f"a secret is told: {line}")
    return told


def fetch(lines, **options):
    """Returns (objects of the jobs, counts)."""
    told = run_tool("fetch", lines, **options)
    return told[:-1], told[-1]


def good(lines, expected, **options):
    """All pieces must come, with these contents. Returns the counts."""
    jobs, counts = fetch(lines, **options)
    for job in jobs:
        equal((job["result"], job["why"]), ("0", ""), "result")
    equal([digest for job in jobs for digest in job["sha256"]], [sha(data) for data in expected], "contents")
    return counts


def bad(lines, result, *words, **options):
    """The one job must fail so. Returns the counts."""
    jobs, counts = fetch(lines, **options)
    equal(jobs[0]["result"], result, f"result ({jobs[0]['why']})")
    contains(jobs[0]["why"], *words)
    return counts


# ---- what comes ----------------------------------------------------------------------------------------------------

@case("files and ranges come byte for byte; empty files need no request; connections are kept and bounded")
def _(box):
    big = content("big", 9 * MIB + 77)
    small = [content(f"s{number}", number * 37) for number in range(300)]
    root = box.path("origin")
    write(root, "big", big)
    for number, data in enumerate(small):
        write(root, f"small/é {number}+%.jpg", data)
    with faulty_server.start(root) as server:
        lines = [piece("big", len(big), server.url("big"), at, min(4 * MIB, len(big) - at), job=at)
                 for at in range(0, len(big), 4 * MIB)]
        lines += [piece(f"small/{number}", len(data), server.url(f"small/é {number}+%.jpg"), job=100 + number // 100)
                  for number, data in enumerate(small)]
        expected = [big[at:at + 4 * MIB] for at in range(0, len(big), 4 * MIB)] + small
        counts = good(lines, expected, connections=3)
        total = server.total()
        equal(counts["n_bytes"], sum(map(len, expected)), "bytes received")
        equal(total["bytes"], sum(map(len, expected)), "bytes sent")
        equal(total["requests"], 302, "requests: one a piece, none for the empty file")
        equal(counts["n_requests"], 302, "requests counted")
        equal(total["connections"] <= 3, True, f"connections: {total}")


@case("bodies without a length come whole: chunked, or ended by closing; servers that close each connection are served")
def _(box):
    root = folder(box, a=300000)
    data = content("a", 300000)
    table = Table()
    with faulty_server.start(root) as server:
        for kind, how in (("no-length", {}), ("no-length", {"close": True}), ("last", {})):
            with table.row((kind, how)):
                server.clear()
                server.fault("/a", kind, **how)
                good([piece("a", len(data), server.url("a"))], [data])
                good([piece("a", len(data), server.url("a"), 1000, 50000)], [data[1000:51000]])
        with table.row("a .gz that is labelled as such is the file itself"):
            server.clear()
            server.fault("/a", "header", headers={"Content-Encoding": "gzip", "Content-Type": "text/html"})
            good([piece("a", len(data), server.url("a")), piece("a", len(data), server.url("a"), 7, 9)],
                 [data, data[7:16]])
    table.done()


@case("a server without ranges: parts near the beginning are read past, parts far behind it are refused with a reason")
def _(box):
    size = 40 * MIB
    root = box.path("origin")
    os.makedirs(root)
    data = content("n", 6 * MIB)
    write(root, "n", data)
    with open(os.path.join(root, "long"), "wb") as file:
        file.truncate(size)
    with faulty_server.start(root) as server:
        server.fault("*", "no-ranges")
        good([piece("n", len(data), server.url("n"), 4 * MIB, 2 * MIB)], [data[4 * MIB:]])
        good([piece("n", len(data), server.url("n"), 0, 4 * MIB)], [data[:4 * MIB]])
        counts = bad([piece("long", size, server.url("long"), 36 * MIB, 4 * MIB)], "EBADMSG", "long", "knows no ranges")
        equal(counts["n_requests"], 1, "requests")


@case("file: origins: whole files, ranges, a file that is gone or shorter than it was")
def _(box):
    root = folder(box, a=100000, empty=0)
    data = content("a", 100000)
    url = "file://" + root + "/a"
    good([piece("a", 100000, url), piece("a", 100000, url, 5, 10)], [data, data[5:15]])
    bad([piece("b", 5, url + "b")], "ENOENT", "b: ", url + "b")
    table = Table()
    for size in (100001, 99999, 200000):
        with table.row(size):
            bad([piece("a", size, url)], "EBADMSG", "a: ", url)
    with table.row("a range behind the end"):
        bad([piece("a", 300000, url, 200000, 10)], "EBADMSG", "shorter")
    table.done()
    looks = run_tool("look", [url, "file://" + root + "/empty", "file://" + root])
    equal([look.get("n_bytes") for look in looks[:2]], [100000, 0], "sizes")
    equal(looks[2]["result"], "EISDIR", looks[2]["why"])
    equal(run_tool("look", [url + "b"])[0]["result"], "ENOENT", "a file that is not there")
    equal(run_tool("get", ["file://" + root])[0]["result"], "EISDIR", "a folder is no document")
    bad([piece("a", 4096, "file://" + root)], "EISDIR", "a: ", "Is a directory")


@case("file: origins: what a link leads to is read below the origin's folder only, and a pipe holds up nobody")
def _(box):
    root = folder(box, a=1000, secret=1000)
    inside = box.path("inside")
    os.makedirs(os.path.join(inside, "deep"))
    os.rename(os.path.join(root, "a"), os.path.join(inside, "deep", "a"))
    os.symlink("deep/a", os.path.join(inside, "link"))
    os.symlink(os.path.join(root, "secret"), os.path.join(inside, "out"))
    os.symlink(root, os.path.join(inside, "folder"))
    os.symlink(inside, box.path("way"))
    os.mkfifo(os.path.join(inside, "pipe"))
    below = {"files_below": inside + "/"}
    table = Table()
    for name in ("deep/a", "link", "deep/../deep/a", "folder/../inside/deep/a"):
        with table.row(name):
            good([piece("a", 1000, f"file://{inside}/{name}")], [content("a", 1000)], **below)
    with table.row("a way that is a link"):
        good([piece("a", 1000, "file://" + box.path("way") + "/link")], [content("a", 1000)], **below)
    for url in (f"file://{inside}/out", f"file://{inside}/folder/secret", f"file://{root}/secret", "file:///etc/passwd"):
        with table.row(url):
            good([piece("a", 1000, url)], [content("secret", 1000)]) if "secret" in url else None
            bad([piece("a", 1000, url)], "EXDEV", "a: ", "out of the folder of the origin", **below)
            equal(run_tool("look", [url], **below)[0]["result"], "EXDEV", "look")
            equal(run_tool("get", [url], **below)[0]["result"], "EXDEV", "get")
    with table.row("a folder beside it whose name begins alike"):
        os.rename(inside, inside + "-more")
        os.makedirs(inside)
        bad([piece("a", 1000, f"file://{inside}-more/deep/a")], "EXDEV", **below)
        os.rmdir(inside)
        os.rename(inside + "-more", inside)
    with table.row("a pipe"):
        bad([piece("a", 1000, f"file://{inside}/pipe")], "EINVAL", "a: ", **below)
    table.done()


# ---- faults that pass ------------------------------------------------------------------------------------------------

MENDED = [
    ("status", {"code": 503, "times": 3}), ("status", {"code": 500, "times": 2}), ("status", {"code": 429, "times": 1}),
    ("status", {"code": 408, "times": 1}), ("status", {"code": 504, "times": 1}), ("close", {"times": 2}),
    ("reset", {"at": 100000, "times": 2}), ("cut", {"at": 700000, "times": 2}), ("cut", {"at": 0, "times": 1}),
    ("html", {"times": 1}), ("stall", {"at": 500000, "times": 1}), ("hang", {"times": 1}),
    ("no-length", {"close": True}),
]


@case("faults that pass are passed: storms, resets, cut and stalled bodies, pages in between; and every byte is right")
def _(box):
    size = 2 * MIB
    root = folder(box, a=size)
    data = content("a", size)
    table = Table()
    with faulty_server.start(root) as server:
        for kind, how in MENDED:
            with table.row((kind, how)):
                server.clear()
                server.reset()
                server.fault("/a", kind, **how)
                lines = [piece("a", size, server.url("a"), 0, MIB), piece("a", size, server.url("a"), MIB, MIB)]
                counts = good(lines, [data[:MIB], data[MIB:]], **({"stall": 2} if kind in ("stall", "hang") else {}))
                equal(counts["n_retries"], how.get("times", 0), "tries after the first")
                equal(bool(counts["last"]), counts["n_retries"] > 0, "the last is told")
                # What was there is not fetched again; what was on its way when a connection broke is lost.
                equal(counts["n_bytes"] <= size + 1000, True, f"bytes received: {counts['n_bytes']} of {size}")
    table.done()


@case("a server that cuts or shortens every answer is got to the end of, and one that brings nothing is given up")
def _(box):
    size = 4 * MIB
    root = folder(box, a=size)
    with faulty_server.start(root) as server:
        server.fault("/a", "cut", at=300000)
        counts = good([piece("a", size, server.url("a"))], [content("a", size)], tries=2)
        equal(counts["n_bytes"], size, "bytes received")
        server.clear()
        server.fault("/a", "less", n=300000)
        good([piece("a", size, server.url("a"), 0, MIB)], [content("a", size)[:MIB]], tries=2)
        server.clear()
        server.fault("/a", "cut", at=100)
        counts = bad([piece("a", size, server.url("a"))], "EIO", "a: ", server.url("a"), "tried 3 times", tries=3)
        equal(counts["n_requests"], 3, "requests")


@case("a storm without end ends: after so many tries, with the status, the file and the address named")
def _(box):
    root = folder(box, a=1000, b=1000)
    with faulty_server.start(root) as server:
        server.fault("/a", "status", code=500)
        lines = [piece("a", 1000, server.url("a")), piece("b", 1000, server.url("b"), job=1)]
        jobs, counts = fetch(lines, tries=3)
        equal([job["result"] for job in jobs], ["EPROTO", "0"], "results: one file's storm is not another's")
        contains(jobs[0]["why"], "a: ", server.url("a"), "status 500", "tried 3 times")
        equal(server.count("/a")["requests"], 3, "requests")
        equal(counts["n_retries"], 2, "retries")


@case("Retry-After holds back all that would go to that server; a date counts from the answer's own clock")
def _(box):
    root = folder(box, a=1000, b=1000)
    dates = {"retry_after": "Mon, 01 Jan 2001 00:00:02 GMT", "date": "Mon, 01 Jan 2001 00:00:00 GMT"}
    table = Table()
    for how in ({"retry_after": 2}, dates):
        with faulty_server.start(root) as server, table.row(how):
            server.fault("/a", "status", code=429, times=1, **how)
            lines = [piece(name, 1000, server.url(name), job=number)
                     for number, name in enumerate(("a", "b", "b", "b", "a"))]
            good(lines, [content(name, 1000) for name in "abbba"], connections=1)
            times = [request[0] for request in server.requests()]
            equal(times[1] - times[0] >= 1.9, True, f"the next request of all comes {times[1] - times[0]} s later")
    table.done()
    with faulty_server.start(root) as server:
        server.fault("/a", "status", code=503, retry_after=86400)
        counts = bad([piece("a", 1000, server.url("a"))], "EPROTO", "status 503", "wait for 86400 s")
        equal(counts["n_requests"], 1, "nobody waits a day")


@case("a transfer that stands still or crawls has failed after the time that is set")
def _(box):
    root = folder(box, a=MIB)
    table = Table()
    with faulty_server.start(root) as server:
        for kind, how in (("hang", {}), ("stall", {"at": 1000}), ("drip", {"rate": 100})):
            with table.row(kind):
                server.clear()
                server.fault("/a", kind, **how)
                bad([piece("a", MIB, server.url("a"))], "ETIMEDOUT", "a: ", server.url("a"), stall=1, tries=2)
    table.done()


# ---- faults that stay ------------------------------------------------------------------------------------------------

STAY = [
    ("status", {"code": 404}, "ENOENT", "status 404", 1), ("status", {"code": 410}, "ENOENT", "status 410", 1),
    ("status", {"code": 403}, "EACCES", "status 403", 1), ("status", {"code": 401}, "EACCES", "status 401", 1),
    ("status", {"code": 418}, "EPROTO", "status 418", 1), ("status", {"code": 304}, "EPROTO", "status 304", 1),
    ("short", {"by": 10}, "EBADMSG", "199990 bytes at the origin", 1),
    ("longer", {"by": 10}, "EBADMSG", "200010 bytes at the origin", 1),
    ("etag", {"value": '"other"'}, "EBADMSG", "changed", 1),
    ("etag", {"value": '"other"', "blind": True}, "EBADMSG", 'ETag is "other" and was', 1),
    ("wrong-range", {"shift": 5}, "EBADMSG", "asked for", 1), ("wrong-range", {"shift": -5}, "EBADMSG", "asked for", 1),
    ("wrong-range", {"total": 7777}, "EBADMSG", "7777 bytes", 1), ("gzip", {}, "EBADMSG", "compressed", 1),
    ("html", {}, "EBADMSG", "HTML page", 3), ("loop", {}, "EPROTO", "redirects", 1),
    ("redirect", {"to": "file:///etc/passwd"}, "EPROTO", "redirect may lead to http", 1),
    ("redirect", {"to": "ftp://127.0.0.1/a"}, "EPROTO", "redirect may lead to http", 1),
]


@case("what another try cannot mend fails at once, and says what it is: of whole files and of ranges")
def _(box):
    size = 200000
    root = folder(box, a=size)
    table = Table()
    with faulty_server.start(root) as server:
        etag = run_tool("look", [server.url("a")])[0]["etag"]
        for kind, how, result, words, n_requests in STAY:
            for ranged in (False, True):
                if kind == "wrong-range" and not ranged:
                    continue
                with table.row((kind, how, ranged)):
                    server.clear()
                    server.fault("/a", kind, **how)
                    known = {"offset": 1000, "n_bytes": 5000} if ranged else {}
                    lines = [piece("dir/a", size, server.url("a"), etag=etag, **known)]
                    counts = bad(lines, result, "dir/a: ", server.url("a"), words)
                    equal(counts["n_requests"], n_requests, "requests")
    table.done()


@case("more bytes than were said are never taken, with a length and without")
def _(box):
    size = 100000
    root = folder(box, a=size)
    with faulty_server.start(root) as server:
        server.fault("/a", "longer", by=MIB, lie=True)
        good([piece("a", size, server.url("a"))], [content("a", size)])
        server.clear()
        server.fault("/a", "headers")
        bad([piece("a", size, server.url("a"))], "EPROTO", "a: ", "head of its answer is too large", tries=2)
        server.clear()
        server.fault("/a", "less", n=1000, padded=True)
        bad([piece("a", size, server.url("a"), 500, 5000)], "EBADMSG", "more bytes came than its Content-Range says: 500-1499")
        bad([piece("a", size, server.url("a"), 90000, 10000)], "EBADMSG", "Content-Range says: 90000-90999")
        server.clear()
        server.fault("/a", "no-length")
        bad([piece("a", size - 7, server.url("a"))], "EBADMSG", "more than the 99993 bytes")
        server.clear()
        bad([piece("a", size - 7, server.url("a"))], "EBADMSG", "100000 bytes at the origin; listed were 99993")


@case("a file that changes between two ranges, or between two tries of one, is noticed")
def _(box):
    size = 2 * MIB
    root = folder(box, a=size)
    with faulty_server.start(root) as server:
        etag = run_tool("look", [server.url("a")])[0]["etag"]
        server.fault("/a", "etag", value='"new"', after=1)
        lines = [piece("a", size, server.url("a"), at, MIB, etag=etag, job=at) for at in (0, MIB)]
        jobs, _ = fetch(lines, connections=1)
        equal([job["result"] for job in jobs], ["0", "EBADMSG"], "results")
        contains(jobs[1]["why"], "changed")
        server.clear()
        server.fault("/a", "etag", value='"new"')
        server.fault("/a", "cut", at=MIB, times=1)
        bad([piece("a", size, server.url("a"))], "EBADMSG", "changed")  # the plan says nothing, the first try did
        server.clear()
        server.fault("/a", "etag", value='"new"', blind=True)
        server.fault("/a", "cut", at=MIB, times=1)
        bad([piece("a", size, server.url("a"))], "EBADMSG", 'ETag is "new" and was ' + etag)
        server.clear()
        good([piece("a", size, server.url("a"), etag="W/" + etag)], [content("a", size)])  # weak: the same, but encoded


OLD, NEW = "Sun, 06 Nov 1994 08:49:37 GMT", "Mon, 07 Nov 1994 08:49:37 GMT"


@case("without ETags the date of a file tells that it has changed, unless it is that of the answer")
def _(box):
    size = 2 * MIB
    root = folder(box, a=size)
    said = {name: {"ETag": None, "Last-Modified": name} for name in (OLD, NEW)}
    told = ("EBADMSG", "it has changed", f"Last-Modified is {NEW} and was {OLD}")
    table = Table()
    with faulty_server.start(root) as server:
        with table.row("between two tries"):
            server.fault("/a", "header", headers=said[NEW])
            server.fault("/a", "cut", at=MIB, times=1, headers=said[OLD])
            bad([piece("a", size, server.url("a"))], *told)
        with table.row("between two ranges, of which the plan knows the date"):
            server.clear()
            server.fault("/a", "header", headers=said[NEW])
            server.fault("/a", "header", headers=said[OLD], times=1)
            lines = [piece("a", size, server.url("a"), at, MIB, etag="@" + OLD, job=at) for at in (0, MIB)]
            jobs, _ = fetch(lines, connections=1)
            equal([job["result"] for job in jobs], ["0", "EBADMSG"], "results")
            contains(jobs[1]["why"], *told[1:])
        with table.row("the same date; none; an ETag that agrees; a mirror with its own"):
            server.clear()
            server.fault("/a", "header", headers=said[NEW])
            good([piece("a", size, server.url("a"), etag="@" + NEW)], [content("a", size)])
            good([piece("a", size, [server.url("no"), server.url("a")], etag="@" + OLD)], [content("a", size)])
            server.fault("/a", "header", headers={"ETag": None, "Last-Modified": None})
            good([piece("a", size, server.url("a"), etag="@" + OLD)], [content("a", size)])
            server.clear()
            server.fault("/a", "header", headers={"Last-Modified": NEW})
            server.fault("/a", "cut", at=MIB, times=1, headers={"Last-Modified": OLD})
            good([piece("a", size, server.url("a"))], [content("a", size)])
        with table.row("nodes of one server: one more try goes to another; with a SHA-256 nobody asks"):
            server.clear()
            server.fault("/a", "header", headers=said[OLD])
            server.fault("/a", "header", headers=said[NEW], times=1)
            good([piece("a", size, server.url("a"), etag="@" + OLD)], [content("a", size)])
            server.clear()
            server.fault("/a", "header", headers=said[NEW])
            server.fault("/a", "cut", at=MIB, times=1, headers=said[OLD])
            equal(good([piece("a", size, server.url("a"), etag="#" + OLD)], [content("a", size)])["n_requests"], 2, "requests")
        with table.row("a server that always says: now"):
            server.clear()
            server.fault("/a", "header", headers=dict(said[NEW], Date=NEW))
            server.fault("/a", "cut", at=MIB, times=1, headers=dict(said[OLD], Date=OLD))
            good([piece("a", size, server.url("a"))], [content("a", size)])
    table.done()


@case("heads that are too large or no HTTP are told as that, not as a lack of memory or a redirect")
def _(box):
    root = folder(box, a=1000)
    table = Table()
    with faulty_server.start(root) as server:
        for headers, says in (({"X": "x" * (120 << 10)}, "longer than 100 KiB"),
                              ({f"X-{number}": "x" * 60 for number in range(10 ** 4)}, "is too large")):
            with table.row(says):
                server.fault("/a", "header", headers=headers)
                bad([piece("a", 1000, server.url("a"))], "EPROTO", "a: ", server.url("a"), says, tries=2)
                equal(run_tool("get", [server.url("a")], tries=2)[0]["result"], "EPROTO", "a document")
                server.clear()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = "http://%s:%d/a" % listener.getsockname()

        def talk():
            for _ in range(2):
                with listener.accept()[0] as connection:
                    connection.recv(65536)
                    connection.sendall(b"220 mail.example.org ESMTP\r\n")

        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        with table.row("another protocol"):
            words = bad([piece("a", 1000, url)], "EPROTO", "a: ", url, "its answer is not HTTP", tries=2)
            equal(words["n_retries"], 1, "tries after the first")
        thread.join(patience(30))
    table.done()


@case("mirrors: the next one serves what the first has not, has wrong, or cannot; all of them are asked before it is given up")
def _(box):
    size = 300000
    root = folder(box, a=size)
    data = content("a", size)
    table = Table()
    with faulty_server.start(root) as one, faulty_server.start(root) as other:
        both = [one.url("a"), other.url("a")]
        for kind, how in (("status", {"code": 404}), ("status", {"code": 500}), ("short", {}), ("html", {}),
                          ("cut", {"at": 1000}), ("close", {}), ("redirect", {"to": "file:///etc/passwd"})):
            with table.row((kind, how)):
                one.clear()
                one.reset()
                one.fault("/a", kind, **how)
                good([piece("a", size, both)], [data])
                equal(one.count("/a")["requests"], 1, "requests at the first")
                one.reset()
                good([piece("a", size, both)], [data], mirror=1)
                equal(one.count("/a")["requests"], 0, "requests at the first when the second is to begin")
        one.clear()
        with table.row("mirrors have ETags of their own"):
            etag = run_tool("look", [one.url("a")])[0]["etag"]
            other.fault("/a", "etag", value='"mine"')
            good([piece("a", size, both, etag=etag)], [data], mirror=1)
        with table.row("none has it"):
            other.clear()
            for server in (one, other):
                server.reset()
                server.fault("/a", "status", code=404)
            counts = bad([piece("a", size, both)], "ENOENT", "status 404")
            equal(counts["n_requests"], 2, "requests")
        with table.row("a mirror that is not there at all"):
            other.clear()
            good([piece("a", size, ["http://127.0.0.1:1/a", other.url("a")])], [data])
    table.done()


@case("when one piece of a job cannot be had, the job ends and others go on")
def _(box):
    root = folder(box, **{f"f{number}": 1000 for number in range(40)})
    with faulty_server.start(root) as server:
        server.fault("/f7", "status", code=404)
        server.fault("/f9", "hang")
        lines = [piece(f"f{number}", 1000, server.url(f"f{number}"), job=number // 20) for number in range(40)]
        jobs, _ = fetch(lines, connections=4)
        equal([job["result"] for job in jobs], ["ENOENT", "0"], "results")
        equal(len(jobs[1]["sha256"]), 20, "pieces of the other")


# ---- ending ----------------------------------------------------------------------------------------------------------

@case("a stop ends everything at once, whatever the servers are at: hanging, paused, still to be asked")
def _(box):
    root = folder(box, a=1000, b=1000, c=5 * MIB)
    with faulty_server.start(root) as server:
        server.fault("/a", "hang")
        server.fault("/b", "status", code=503, retry_after=60)
        server.fault("/c", "drip", rate=2000)
        lines = [piece("a", 1000, server.url("a")), piece("c", 5 * MIB, server.url("c"), job=1),
                 piece("b", 1000, server.url("b"), job=2)]
        lines += [piece("c", 5 * MIB, server.url("c"), job=10 + number) for number in range(50)]
        jobs, counts = fetch(lines, connections=3, stop_after=500)
        equal({job["result"] for job in jobs}, {"ECANCELED"}, "results")
        equal(counts["n_done"], 0, "jobs that were done before")
        for path in ("a", "b"):
            for name in ("get", "look"):
                told = run_tool(name, [server.url(path)], stop_after=300)
                equal(told[0]["result"], "ECANCELED", f"{name} {path}: {told[0]['why']}")


# ---- short answers and facts -------------------------------------------------------------------------------------------

@case("documents come with retries and a limit; where redirects led is told")
def _(box):
    root = folder(box, list_txt=3000)
    with faulty_server.start(root) as server:
        server.fault("/moved", "redirect", to=server.url("list.txt"))
        server.fault("/list.txt", "status", code=503, times=2)
        told = run_tool("get", [server.url("moved") + "\tlist-type=2&prefix=a%20b", server.url("none")])
        equal((told[0]["result"], told[0]["n_bytes"], told[0]["url"]), ("0", 3000, server.url("list.txt")), "answer")
        equal(told[0]["body"][:64], hashlib.sha256(b"list_txt").hexdigest(), "body")
        equal(told[1]["result"], "ENOENT", "a document that is not there")
        equal(run_tool("get", [server.url("list.txt")], limit=2999)[0]["result"], "EFBIG", "above the limit")
        equal(run_tool("get", [server.url("list.txt")], limit=3000)[0]["result"], "0", "at the limit")


@case("size, ETag, ranges and kind of a file are known without reading it, however the server makes it hard")
def _(box):
    root = folder(box, a_bin=7 * MIB, empty=0)
    size = 7 * MIB
    table = Table()
    rows = [(None, {}, size), ("no-head", {}, size), ("status", {"code": 403, "method": "HEAD"}, size),
            ("no-length", {}, size), ("status", {"code": 503, "times": 2}, size), ("no-ranges", {}, size),
            ("html", {}, 85)]
    with faulty_server.start(root) as server:
        for kind, how, expected in rows:
            with table.row((kind, how)):
                server.clear()
                server.reset()
                if kind:
                    server.fault("*", kind, **how)
                told = run_tool("look", [server.url("a.bin")])[0]
                equal((told["result"], told["n_bytes"], told["is_html"]), ("0", expected, kind == "html"), "facts")
                equal(told["has_ranges"], kind not in ("no-ranges", "html"), "ranges")
                equal(bool(told["etag"]), kind != "html", "ETag")
                equal(server.total()["bytes"] < MIB, True, "bytes sent")
        with table.row("a server that is without HEAD and without ranges"):
            server.clear()
            server.fault("*", "no-ranges")
            server.fault("*", "no-head", method="HEAD")
            equal(run_tool("look", [server.url("a.bin")])[0]["n_bytes"], size, "size")
        with table.row("an empty file without HEAD"):
            server.clear()
            server.fault("*", "no-head")
            equal(run_tool("look", [server.url("empty")])[0]["n_bytes"], 0, "size")
        with table.row("a thousand looks need no thousand connections"):
            server.clear()
            server.reset()
            told = run_tool("look", [server.url("a.bin")] * 200)
            equal({line["n_bytes"] for line in told}, {size}, "sizes")
            equal(server.total()["connections"], 1, "connections")
    table.done()


# ---- TLS -------------------------------------------------------------------------------------------------------------

@case("certificates: ours with ca_file or the environment's; self-signed, expired and strangers' are refused with the reason")
def _(box):
    root = folder(box, a=100000)
    data = content("a", 100000)
    authority = certificates.Authority(box.path("ca"))
    with faulty_server.start(root, certificate=authority.certificate("localhost")) as server:
        lines = [piece("a", len(data), server.url("a"))]
        good(lines, [data], ca_file=authority.path)
        for name in ("SSL_CERT_FILE", "CURL_CA_BUNDLE"):
            good(lines, [data], environment={name: authority.path})
        bad(lines, "EPROTO", "a: ", "certificate", "ca_file")
    table = Table()
    for certificate, words in ((certificates.self_signed(box.path("ca")), ("self", "ca_file = ")),
                               (authority.certificate("localhost", expired=True), ("expired",)),
                               (authority.certificate("elsewhere.example"), ("127.0.0.1",))):
        with faulty_server.start(root, certificate=certificate) as server, table.row(words):
            counts = bad([piece("a", len(data), server.url("a"))], "EPROTO", *words, ca_file=authority.path)
            equal(counts["n_requests"], 1, "requests")
    table.done()
    told = run_tool("look", ["http://127.0.0.1:1/"], ca_file=box.path("none.pem"))
    equal(told[0]["result"], "ENOENT", "a ca_file that is not there")
    contains(told[0]["why"], "ca_file", "none.pem")


NGINX = """daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/errors warn;
events {{ worker_connections 512; }}
http {{
    log_format seen '$connection $server_protocol $request_uri';
    access_log {folder}/seen seen;
    client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
    uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
    server {{ listen 127.0.0.1:{port} ssl http2; ssl_certificate {certificate}; ssl_certificate_key {certificate};
             root {root}; }}
}}
"""


def nginx(box, root, certificate):
    """A server of HTTP/2. Returns (process, base URL, path of its log)."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin")
    if not program:
        raise Skip("nginx is not installed")
    home = box.path("nginx")
    os.makedirs(home)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    write(home, "conf", NGINX.format(folder=home, port=port, certificate=certificate, root=root).encode())
    process = subprocess.Popen([program, "-p", home, "-c", os.path.join(home, "conf"), "-e", os.path.join(home, "errors")],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               preexec_fn=die_with_parent)

    def answers():
        if process.poll() is not None:
            raise Skip("nginx does not start here: " + open(os.path.join(home, "errors"), encoding="utf-8").read()[-200:])
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0
    within(10, answers, "nginx listens")
    return process, f"https://127.0.0.1:{port}/", os.path.join(home, "seen")


@case("small files go side by side over few HTTP/2 connections, parts of large ones over connections of their own")
def _(box):
    size = 16 * MIB
    root = folder(box, big=size, **{f"s{number}": 1000 + number for number in range(100)})
    os.chmod(box.folder, 0o755)  # its worker is another user
    authority = certificates.Authority(box.path("ca"))
    process, base, seen = nginx(box, root, authority.certificate("localhost"))
    try:
        lines = [piece(f"s{number}", 1000 + number, f"{base}s{number}") for number in range(100)]
        lines += [piece("big", size, base + "big", at, 4 * MIB, job=1 + at) for at in range(0, size, 4 * MIB)]
        data = content("big", size)
        expected = [content(f"s{number}", 1000 + number) for number in range(100)]
        expected += [data[at:at + 4 * MIB] for at in range(0, size, 4 * MIB)]
        good(lines, expected, connections=8, ca_file=authority.path)
        with open(seen, encoding="utf-8") as log:
            rows = [line.split() for line in log]
        # An HTTP/2 connection that is idle is no place for a part, either.
        good(lines[-5:] + lines[:1], expected[-5:] + expected[:1], connections=1, ca_file=authority.path)
        with open(seen, encoding="utf-8") as log:
            last = [line.split()[1:] for line in log][len(rows):]
        equal(last, [["HTTP/2.0", "/s99"]] + [["HTTP/1.1", "/big"]] * 4 + [["HTTP/2.0", "/s0"]], "one after the other")
    finally:
        end(process)
    small = [row for row in rows if row[2] != "/big"]
    large = [row for row in rows if row[2] == "/big"]
    equal((len(small), len(large)), (100, 4), "requests")
    equal({row[1] for row in small}, {"HTTP/2.0"}, "how small files came")
    equal({row[1] for row in large}, {"HTTP/1.1"}, "how parts came")
    equal(len({row[0] for row in small}) <= 2, True, f"connections of small files: {len({row[0] for row in small})}")
    equal(len({row[0] for row in large}) > 1, True, "connections of parts")


# ---- urgent pieces, late answers, servers with too much to do -------------------------------------------------------

def refused_while(server, seconds, pattern="*", **how):
    """The server refuses for so long, then never again."""
    server.fault(pattern, "status", **how)
    timer = threading.Timer(seconds, server.clear)
    timer.start()
    return timer


@case("urgent jobs are begun before all others that were submitted earlier, in their own order")
def _(box):
    names = [f"s{number}" for number in range(60)]
    root = folder(box, **{name: 1000 for name in names})
    with faulty_server.start(root) as server:
        for name in names[:40]:
            server.fault("/" + name, "late", seconds=0.05)
        lines = [piece(name, 1000, server.url(name), job=f"{number}{'!' if number >= 40 else ''}")
                 for number, name in enumerate(names)]
        good(lines, [content(name, 1000) for name in names], connections=1)
        asked = [request[2].lstrip("/") for request in server.requests()]
        urgent = [asked.index(name) for name in names[40:]]
        # Some were begun before the urgent ones were submitted, which takes less than a second.
        equal(urgent[0] < 20, True, f"the first urgent one is the {urgent[0]}th")
        equal(sorted(urgent), urgent, "urgent ones, in their order")
        plain_between = [name for name in asked[urgent[0]:urgent[-1]] if name in names[:40]]
        equal(plain_between, [], "others between them")


@case("while urgent pieces come, a quarter of the connections is left to them; without them none is")
def _(box):
    size = 2 * MIB
    root = folder(box, big=size, u=1000)
    with faulty_server.start(root) as server:
        server.fault("/big", "drip", rate=4 * MIB)
        lines = [piece("big", size, server.url("big"), job=number) for number in range(16)]
        good(lines, [content("big", size)] * 16, connections=8)
        equal(server.total()["open_max"], 8, "connections without urgent ones")
    with faulty_server.start(root) as server:
        server.fault("/big", "drip", rate=MIB)
        server.fault("/u", "stall", at=500, seconds=1, times=1)  # it has one of the connections meanwhile
        lines = [piece("u", 1000, server.url("u"), job="100!")]
        lines += [piece("big", size, server.url("big"), job=number) for number in range(10)]
        good(lines, [content("u", 1000)] + [content("big", size)] * 10, connections=8)
        first = min(request[0] for request in server.requests())
        early = [request for request in server.requests() if request[2] == "/big" and request[0] < first + 1.5]
        equal(len(early), 6, "others that were begun before the first of them has ended")


@case("an urgent answer that is late is asked for once more, the first one counts, and one request in twenty is the most")
def _(box):
    root = folder(box, late=50000, **{f"s{number}": 1000 for number in range(400)})
    many = [f"s{number}" for number in range(400)]
    table = Table()
    with faulty_server.start(root) as server:
        def play(*more, urgent="!", expected=None):
            lines = [piece(name, 1000, server.url(name), job=f"{number}{urgent}") for number, name in enumerate(many)]
            lines += [piece("late", 50000, server.url("late"), job=f"{1000 + number}{urgent}") for number in range(*more)]
            return good(lines, [content(name, 1000) for name in many] + [content("late", 50000)] * len(range(*more)), connections=4)

        def others():
            """Second requests for other files: on a machine that is busy with something else these are late, too."""
            return sum(request[2] != "/late" for request in server.requests()) - len(many)
        for kind, how in (("hang", {}), ("hang", {"seconds": 5}), ("late", {"seconds": 5}), ("late", {"seconds": 0.3})):
            with table.row((kind, how)):
                server.clear()
                server.reset()
                server.fault("/late", kind, times=1, **how)
                counts = play(1)
                equal((counts["n_hedged"] - others(), counts["n_retries"]), (1, 0), "second requests, and tries after a failure")
                equal(server.count("/late")["requests"], 2, f"requests for it: {server.requests()[-5:]}")
                equal(counts["n_requests"] - others(), 402, "requests in all")
        for kind, how, retries in (("cut", {"at": 20000}, 1), ("status", {"code": 500}, 0), ("close", {}, 0),
                                   ("stall", {"at": 20000, "seconds": 1}, 1), ("status", {"code": 503}, 0)):
            with table.row(("the second one has it, too", kind)):
                server.clear()
                server.reset()
                server.fault("/late", kind, times=1, **how)
                server.fault("/late", "hang", times=1, seconds=5 if retries else 1)
                counts = play(1)
                equal(counts["n_hedged"] - others(), 1, "second requests")
                # Who has answered goes on by itself; else the one that is late is waited for, and fails.
                equal(counts["n_retries"], retries, "tries after a failure that the fetcher has seen")
                equal(server.count("/late")["requests"], 3, f"requests for it: {[r for r in server.requests() if r[2] == '/late']}")
        with table.row("both answer, the first one while the second one is on its way, and with other bytes"):
            server.clear()
            server.reset()
            server.fault("/late", "drip", times=1, rate=100000)
            server.fault("/late", "wrong-bytes", times=1, at=0, n=50000, seconds=0.4)
            counts = play(1)
            equal((counts["n_hedged"] - others(), counts["n_retries"]), (1, 0), "second requests, and tries after a failure")
        with table.row("what nobody waits for is not asked for twice"):
            server.clear()
            server.fault("/late", "hang", times=1, seconds=1)
            equal(play(1, urgent="")["n_hedged"], 0, "second requests")
        with table.row("a server that is late with everything"):
            server.clear()
            server.fault("/late", "hang", times=40, seconds=0.3)
            counts = play(40)
            equal(0 < counts["n_hedged"] <= counts["n_requests"] / 20, True, f"second requests: {counts}")
    table.done()


@case("a server that refuses has one clock: its storm costs twice the connections in requests and then one a pause")
def _(box):
    names = [f"s{number}" for number in range(200)]
    root = folder(box, **{name: 1000 for name in names})
    table = Table()
    for code in (503, 429):
        with faulty_server.start(root) as server, table.row(code):
            timer = refused_while(server, 2, code=code)
            lines = [piece(name, 1000, server.url(name), job=number) for number, name in enumerate(names)]
            counts = good(lines, [content(name, 1000) for name in names], connections=32, tries=30)
            timer.join()
            equal(counts["n_retries"] <= 2 * 32 + counts["n_paused"], True, f"requests that were refused: {counts}")
            equal(counts["n_paused"] >= 2, True, f"pauses: {counts}")
            contains(counts["last"], f"status {code}")
    table.done()
    with faulty_server.start(root) as server, faulty_server.start(root) as other:
        server.fault("*", "status", code=503)
        lines = [piece(name, 1000, [server.url(name), other.url(name)], job=number) for number, name in enumerate(names)]
        counts = good(lines, [content(name, 1000) for name in names], connections=8)
        equal(other.total()["requests"], 200, "a mirror serves what the other one refuses")
        equal(server.total()["requests"] <= 2 * 8 + counts["n_paused"], True, f"requests that were refused: {counts}")


@case("a server that refuses for ever is given up after as many pauses as there are tries, by all pieces together")
def _(box):
    names = [f"s{number}" for number in range(20)]
    root = folder(box, **{name: 1000 for name in names})
    with faulty_server.start(root) as server:
        server.fault("*", "status", code=503)
        jobs, counts = fetch([piece(name, 1000, server.url(name), job=number) for number, name in enumerate(names)],
                             connections=8, tries=4)
        equal({job["result"] for job in jobs}, {"EPROTO"}, "results")
        contains(jobs[0]["why"], "status 503", "tried")
        equal(counts["n_requests"] <= 2 * 8 + 4 + 20, True, f"requests: {counts}")


@case("a limit on bytes a second holds over all connections together, and starves none of them")
def _(box):
    size = MIB
    root = folder(box, a=size)
    with faulty_server.start(root) as server:
        lines = [piece("a", size, server.url("a"), job=number) for number in range(4)]
        counts = good(lines, [content("a", size)] * 4, connections=4, max_rate=2 * MIB)
        times = [request[0] for request in server.requests()]
        equal(counts["n_retries"], 0, "retries")
        equal(0 < counts["bytes_per_s"] <= 2.5 * MIB, True, f"the rate that it tells: {counts}")
        equal(len(times), 4, "requests")


@case("how long answers take is told: the median and the slowest thousandth")
def _(box):
    root = folder(box, **{f"s{number}": 100000 for number in range(100)})
    with faulty_server.start(root) as server:
        server.fault("*", "drip", rate=400000)
        lines = [piece(f"s{number}", 100000, server.url(f"s{number}"), job=number) for number in range(100)]
        counts = good(lines, [content(f"s{number}", 100000) for number in range(100)], connections=25)
        equal(0 < counts["median_ns"] <= counts["p999_ns"], True, f"latency: {counts}")
        equal(0 < counts["n_answers"] <= 100, True, f"answers: {counts}")


# ---- credentials -------------------------------------------------------------------------------------------------------

def secret_file(box, text, mode=0o600, name="credentials"):
    path = box.path(name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


@case("credentials go to the server they are for, and to no other: not over a redirect, not to a mirror")
def _(box):
    root = folder(box, a=1000)
    data = content("a", 1000)
    with faulty_server.start(root) as one, faulty_server.start(root) as other:
        path = secret_file(box, f"# ours\n[{one.base}]\ntoken = {SECRET}\n")
        one.fault("/a", "auth", token=SECRET)
        good([piece("a", 1000, one.url("a"))], [data], credentials=path)
        bad([piece("a", 1000, one.url("a"))], "EACCES", "status 401", "credentials")
        other.fault("/a", "auth", token=SECRET)
        bad([piece("a", 1000, other.url("a"))], "EACCES", "status 401", credentials=path)
        one.clear()
        one.fault("/a", "redirect", to=other.url("a"))
        bad([piece("a", 1000, one.url("a"))], "EACCES", "status 401", credentials=path)
        one.clear()
        one.fault("/a", "auth", user="me", password=SECRET)
        path = secret_file(box, f"[{one.base}/]\nuser=me\npassword = {SECRET}\n", 0o400, "other")
        good([piece("a", 1000, one.url("a"))], [data], credentials=path)
        inside = one.url("a").replace("http://", f"http://me:{SECRET}@") + f"?X-Amz-Signature={SECRET}"
        counts = bad([piece("a", 1000, inside)], "EINVAL", "a: " + one.url("a") + "?...: ", "has a user in it")
        equal(counts["n_requests"], 0, "requests")


@case("credentials that others may read, or that are none, are refused; and no value is quoted")
def _(box):
    table = Table()
    text = f"[default]\naws_access_key_id = AKIA\naws_secret_access_key = {SECRET}\n"
    for mode in (0o644, 0o640, 0o604, 0o620, 0o666):
        with table.row(oct(mode)):
            told = run_tool("look", [], credentials=secret_file(box, text, mode))[0]
            # A file of root's may be read by a group.
            if mode == 0o640 and os.geteuid() == 0:
                continue
            equal(told["result"], "EACCES", told["why"])
            contains(told["why"], "chmod 600")
    for text in (f"aws_secret_access_key {SECRET}\n", f"[default\n{SECRET}\n", f"[default]\naws_secret_access_key={SECRET}\n",
                 f"[https://h]\npassword={SECRET}\n", f"[https://h]\ntoken={SECRET}\nuser=x\n", "", "\0\0",
                 f"[https://me:{SECRET}@h/]\ntoken=x\n", f"[https://h]\npasword={SECRET}\n", "x" * 70000):
        with table.row(text):
            told = run_tool("look", [], credentials=secret_file(box, text))[0]
            equal(told["result"], "EINVAL", told["why"])
            contains(told["why"], box.path("credentials"))
    with table.row("a folder"):
        equal(run_tool("look", [], credentials=box.folder)[0]["result"], "EINVAL", "result")
    with table.row("nothing"):
        equal(run_tool("look", [], credentials=box.path("none"))[0]["result"], "ENOENT", "result")
    table.done()


# ---- proxies -----------------------------------------------------------------------------------------------------------

@case("the environment's proxies are used, with their password, and no_proxy is kept to")
def _(box):
    root = folder(box, a=100000)
    data = content("a", 100000)
    authority = certificates.Authority(box.path("ca"))
    with faulty_server.start(root) as plain, faulty_server.Proxy(password=f"me:{SECRET}") as proxy, \
            faulty_server.start(root, certificate=authority.certificate("localhost")) as tls:
        with_password = proxy.url.replace("http://", f"http://me:{SECRET}@")
        environment = {"http_proxy": with_password, "https_proxy": with_password}
        lines = [piece("a", len(data), server.url("a")) for server in (plain, tls)]
        good(lines, [data, data], environment=environment, ca_file=authority.path)
        equal(dict(proxy.asked), {f"127.0.0.1:{plain.port}": 1, f"127.0.0.1:{tls.port}": 1}, "asked for")
        good(lines, [data, data], environment={**environment, "no_proxy": "example.org,127.0.0.1"},
             ca_file=authority.path)
        equal(sum(proxy.asked.values()), 2, "asked for, with no_proxy")
        environment = {"http_proxy": with_password.replace("me:", "you:")}
        bad(lines[:1], "EACCES", "407", environment=environment)


# ---- object stores -----------------------------------------------------------------------------------------------------

KEYS = ["a.jpg", "a b/ü+c=d&e(1)'*!@:,;$~.jpg", "x//y", "x/../y", "per%cent%20", "question?mark#hash", "日本/語.jpg", "dir/",
        "tab\\back|pipe\"quote`<>^{}[]"]


def store(box):
    try:
        return s3_server.start(box.path("store"))
    except s3_server.Absent as absent:
        raise Skip(str(absent)) from None


@case("an object store: every key, ranges, listings and sizes, signed so that the store believes it")
def _(box):
    server = store(box)
    try:
        options = {"endpoint": server.endpoint, "credentials": server.credentials(box.path("keys"))}
        table = Table()
        for key in KEYS:
            with table.row(key):
                data = content(key, 5000)
                etag = server.put("photos", key, data)
                url = "s3://photos/" + key
                good([piece("k", 5000, url, etag=etag), piece("k", 5000, url, 7, 100, etag=etag)],
                     [data, data[7:107]], **options)
                told = run_tool("look", [url], **options)[0]
                equal((told["result"], told["n_bytes"], told["etag"]), ("0", 5000, etag), "facts")
        with table.row("a listing"):
            query = "list-type=2&max-keys=2&prefix=x%2F"
            told = run_tool("get", ["s3://photos\t" + query, "s3://photos/\t" + query], **options)
            for line in told:
                equal(line["result"], "0", line["why"])
                contains(line["body"], "<KeyCount>2</KeyCount>", "<Key>x//y</Key>", "<Key>x/../y</Key>")
        with table.row("virtual-host style"):
            there = {**options, "endpoint": server.endpoint.replace("127.0.0.1", "localhost"), "addressing": "virtual"}
            good([piece("k", 5000, "s3://photos/" + KEYS[1])], [content(KEYS[1], 5000)], **there)
            contains(run_tool("get", ["s3://photos\tlist-type=2&max-keys=1"], **there)[0]["body"], "<KeyCount>1<")
        with table.row("keys of the environment, with a session token"):
            environment = {"AWS_ACCESS_KEY_ID": server.access_key, "AWS_SECRET_ACCESS_KEY": server.secret_key,
                           "AWS_SESSION_TOKEN": "tok/en+=="}
            good([piece("k", 5000, "s3://photos/a.jpg")], [content("a.jpg", 5000)], environment=environment,
                 endpoint=server.endpoint)
        with table.row("another profile"):
            path = secret_file(box, f"[default]\naws_access_key_id = x\naws_secret_access_key = {SECRET}\n[mine]\n"
                               f"region = nowhere\naws_access_key_id={server.access_key}\n"
                               f"aws_secret_access_key={server.secret_key}\n")
            good([piece("k", 5000, "s3://photos/a.jpg")], [content("a.jpg", 5000)], endpoint=server.endpoint,
                 credentials=path, environment={"AWS_PROFILE": "mine"})
            bad([piece("k", 5000, "s3://photos/a.jpg")], "EACCES", "k: s3://photos/a.jpg", "403",
                endpoint=server.endpoint, credentials=path)
        table.done()
    finally:
        server.stop()


@case("an object store's refusals are told in its words: a wrong key, no such object, no such bucket, a changed object")
def _(box):
    server = store(box)
    try:
        server.put("photos", "a", content("a", 100))
        keys = server.credentials(box.path("keys"))
        wrong = secret_file(box, f"[default]\naws_access_key_id = {server.access_key}\naws_secret_access_key = {SECRET}\n")
        here = {"endpoint": server.endpoint}
        table = Table()
        for url, etag, credentials, result, words in (
                ("s3://photos/a", "-", wrong, "EACCES", "SignatureDoesNotMatch"),
                ("s3://photos/b", "-", keys, "ENOENT", "NoSuchKey"),
                ("s3://nowhere/b", "-", keys, "ENOENT", "NoSuchBucket"),
                ("s3://photos/a", '"0123456789abcdef0123456789abcdef"', keys, "EBADMSG", "changed")):
            with table.row((url, words)):
                counts = bad([piece("a", 100, url, 1, 9, etag=etag)], result, "a: " + url, words, credentials=credentials,
                             **here)
                equal(counts["n_requests"], 1, "requests")
        table.done()
    finally:
        server.stop()


@case("without keys an object store is asked unsigned; a bucket of another region is asked there; nonsense is refused")
def _(box):
    root = folder(box, bucket__a=1000)
    with faulty_server.start(root) as server:
        good([piece("a", 1000, "s3://bucket/a")], [content("bucket__a", 1000)], endpoint=server.base + "/")
        server.fault("*", "status", code=301, headers={"x-amz-bucket-region": "eu-west-1", "Location": server.url("x")})
        bad([piece("a", 1000, "s3://bucket/a")], "EPROTO", "301", "in region eu-west-1 and was asked for in eu-west-1",
            endpoint=server.base)
    table = Table()
    for how, words in (({"endpoint": "ftp://x"}, "endpoint"), ({"endpoint": f"http://me:{SECRET}@x"}, "endpoint"),
                       ({"addressing": "sideways"}, "addressing"), ({"region": "no where"}, "region")):
        with table.row(how):
            told = run_tool("look", [], **how)[0]
            equal(told["result"], "EINVAL", "result")
            contains(told["why"], words)
    for url in ("s3://", "s3:///key", "s3://a_b*c/key", "http://", "http:///x", "file://host/x", "gopher://x/", "x", ""):
        with table.row(url):
            equal(run_tool("look", [url])[0]["result"], "EINVAL", "result")
    table.done()


main()
