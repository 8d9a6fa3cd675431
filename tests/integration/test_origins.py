#!/usr/bin/env python3
"""Origins: what a manifest, a list, a store's listing, a folder or a file is surveyed as, from real servers that fail."""
import bz2
import contextlib
import gzip
import hashlib
import http.server
import json
import lzma
import os
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import certificates
import faulty_server
from harness import Table, case, contains, equal, main, patience
from surveys import TOOL, plan, refused, store, write


def line(path, data, **more):
    return json.dumps({"path": path, "size": len(data), "sha256": hashlib.sha256(data).hexdigest(), **more}) + "\n"


# ---- manifests ------------------------------------------------------------------------------------------------------

@case("a manifest is the same plan wherever it lies, and its files lie beside it")
def _(box):
    data = write(box, "d/train/a b%.jpg", b"12345")
    text = line("train/a b%.jpg", data) + line("z", b"", urls=["http://mirror/z", "https://mirror/z"], colour="red")
    write(box, "d/m.jsonl", text.encode())
    write(box, "plain", text.encode())
    with faulty_server.start(box.path("origin")) as server:
        over_http = plan(server.url("d/m.jsonl"))
        equal(list(over_http.files), ["train/a b%.jpg", "z"], "paths")
        equal(over_http.files["train/a b%.jpg"]["urls"], [server.url("d/train/a b%.jpg")], "URL")
        equal(over_http.files["z"]["urls"], ["http://mirror/z", "https://mirror/z"], "mirrors")
        equal(server.total()["requests"], 1, "requests")
        named = plan(server.url("plain"), "manifest")
        equal(named.digest, over_http.digest, "digest of the same manifest elsewhere")
        server.fault("/moved.jsonl", "redirect", to=server.url("d/m.jsonl"))
        moved = plan(server.url("moved.jsonl"))
        equal(moved.text, over_http.text, "behind a redirect")
    local = plan("file://" + box.path("origin", "d/m.jsonl"))
    equal(local.digest, over_http.digest, "digest from the disk")
    equal(local.files["train/a b%.jpg"]["urls"], ["file://" + box.path("origin", "d/train/a%20b%25.jpg")], "URL on the disk")


@case("what is written is read again as the same plan, archives too")
def _(box):
    for name in ("a.tar", "b.zip", "c"):
        write(box, name, name.encode())
    write(box, "m.jsonl", (line("a.tar", b"a.tar") + line("b.zip", b"b.zip", unpack=False) + line("c", b"c")).encode())
    url = "file://" + box.path("origin", "m.jsonl")
    first = plan(url, "manifest", "yes")
    equal([first.files[name].get("unpack") for name in ("a.tar", "b.zip", "c")], [True, False, None], "unpack")
    write(box, "again.jsonl", first.text.encode())
    again = plan("file://" + box.path("origin", "again.jsonl"), "manifest", "yes")
    equal((again.text, again.digest), (first.text, first.digest), "the second time")
    if plan(url).digest == first.digest:
        raise AssertionError("unpacked or not is the same digest")


@case("a server that fails or answers something else is named, and why")
def _(box):
    write(box, "m.jsonl", line("a", b"a").encode())
    write(box, "bad.jsonl", line("a", b"a").encode() + b"{\"path\": \"../../etc/passwd\", \"size\": 1}\n")
    rows = [
        ("m.jsonl", ("html", {}), ["EINVAL", "HTML"]),
        ("m.jsonl", ("status", {"code": 404}), ["ENOENT"]),
        ("m.jsonl", ("status", {"code": 403}), ["EACCES"]),
        ("m.jsonl", ("status", {"code": 500}), ["EPROTO", "500"]),
        ("m.jsonl", ("close", {}), []),
        ("m.jsonl", ("cut", {"at": 10}), []),
        ("m.jsonl", ("loop", {}), ["redirect"]),
        ("m.jsonl", ("redirect", {"to": "file:///etc/passwd"}), []),
        ("m.jsonl", ("gzip", {}), []),
        ("bad.jsonl", None, ["EINVAL", "bad.jsonl:2:", "../../etc/passwd"]),
        ("nothing.jsonl", None, ["ENOENT", "nothing.jsonl"]),
    ]
    table = Table()
    with faulty_server.start(box.path("origin")) as server:
        for name, fault, says in rows:
            with table.row((name, fault)):
                server.clear()
                if fault:
                    server.fault("*", fault[0], **fault[1])
                refused(server.url(name) + "?token=hush", says=[server.url(name).split("/", 3)[2], *says])
        server.clear()
        server.fault("*", "status", code=503, times=3)
        with table.row("503 three times"):
            plan(server.url("m.jsonl"), n_tries=6)
    table.done()


@case("a manifest or list that is compressed, or no UTF-8, is called that")
def _(box):
    text = line("a", b"a")
    rows = [(gzip.compress(text.encode()), "gzip"), (lzma.compress(text.encode()), "xz"), (bz2.compress(b"a"), "bzip2"),
            (b"\x28\xb5\x2f\xfd" + b"a", "zstd"), (b"PK\x03\x04 and more", "zip"), (text.encode("utf-16"), "UTF-16")]
    table = Table()
    with faulty_server.start(box.path("origin")) as server:
        for data, says in rows:
            for kind in ("manifest", "list"):
                with table.row((says, kind)):
                    write(box, "m", data)
                    refused(server.url("m"), kind, says=["EINVAL", server.url("m"), says, "plain text in UTF-8"])
        write(box, "m", text.encode())
        server.fault("*", "gzip")
        with table.row("on its way"):
            refused(server.url("m"), "manifest", says=["EPROTO", server.url("m"), "Content-Encoding", "as it is"])
        for coding in ("utf-8", "aws-chunked", ""):
            with table.row((coding, "says nothing of the bytes")):
                server.clear()
                server.fault("*", "header", headers={"Content-Encoding": coding})
                plan(server.url("m"), "manifest")
        with table.row("compressed before it was uploaded so"):
            server.fault("*", "header", headers={"Content-Encoding": "aws-chunked,GZIP"})
            refused(server.url("m"), "manifest", says=["EPROTO", "Content-Encoding"])
        with table.row("a name that begins as bzip2 does"):
            server.clear()
            write(box, "l", b"BZhou/a\n")
            refused(server.url("l"), "list", says=["EINVAL", "BZhou/a", "is not a URL"])
    table.done()


@case("a server that says nothing is given up in bounded time")
def _(box):
    write(box, "m.jsonl", line("a", b"a").encode())
    with faulty_server.start(box.path("origin")) as server:
        server.fault("*", "hang")
        refused(server.url("m.jsonl"), says=["ETIMEDOUT"], stall_s=1, n_tries=2)


# ---- what a stranger's manifest may send us to ---------------------------------------------------------------------

def as_list(urls):
    return ("\n".join(urls) + "\n").encode()


def as_manifest(urls):
    return "".join(line(f"f{number}", b"x", urls=[url]) for number, url in enumerate(urls)).encode()


@case("a manifest or list from a server may name neither our files nor a bucket, and from https no http")
def _(box):
    secret = "file://" + box.path("secret")
    with open(box.path("secret"), "wb") as file:
        file.write(b"x")
    authority = certificates.Authority(box.path("ca"))
    table = Table()
    with faulty_server.start(box.path("origin")) as plain, \
            faulty_server.start(box.path("origin"), certificate=authority.certificate("localhost")) as tls:
        write(box, "own", b"x")
        for name, make in (("m.jsonl", as_manifest), ("l.txt", as_list)):
            for server, url, words in ((plain, secret, "on this machine"), (tls, secret, "on this machine"),
                                       (plain, "FILE://" + box.path("secret"), "on this machine"),
                                       (plain, "s3://stranger/key", "own bucket"), (tls, "s3://stranger/key", "own bucket"),
                                       (tls, plain.url("own"), "may not name http")):
                with table.row((name, server.base[:5], url)):
                    write(box, name, make([server.url("own"), url]))
                    refused(server.url(name), ca_file=authority.path, says=["EACCES", name, url.partition("?")[0][4:], words])
            with table.row((name, "https to https")):
                write(box, name, make([tls.url("own"), tls.url("own").replace("own", "./own") + "?x"]))
                write(box, name, make([tls.url("own")]))
                equal(len(plan(tls.url(name), ca_file=authority.path).files), 1, "files")
        with table.row("a redirect from https to http"):
            tls.fault("/m.jsonl", "redirect", to=plain.url("m.jsonl"))
            refused(tls.url("m.jsonl"), ca_file=authority.path, says=["EPROTO", "from https to https"])
    table.done()


@case("a manifest on this machine may name anything; one that others may write only what lies beside it")
def _(box):
    write(box, "d/own", b"x")
    write(box, "other", b"x")
    os.symlink("../other", box.path("origin", "d/link"))
    table = Table()
    for name, make in (("d/m.jsonl", as_manifest), ("d/l.txt", as_list)):
        origin = "file://" + box.path("origin", name)
        elsewhere = "file://" + box.path("origin", "other")
        with table.row((name, "ours")):
            write(box, name, make([elsewhere]))
            os.chmod(box.path("origin", name), 0o644)
            equal(len(plan(origin).files), 1, "files")
        os.chmod(box.path("origin", name), 0o666)
        for url in (elsewhere, "file://" + box.path("origin", "d/../other"), "file://" + box.path("origin", "d/link"),
                    "file:///etc/passwd", "s3://bucket/key"):
            with table.row((name, "writable for all", url)):
                write(box, name, make([url]))
                refused(origin, says=["EACCES", "others may write" if url.startswith("file") else "own bucket"])
        with table.row((name, "beside it")):
            write(box, name, make(["file://" + box.path("origin", "d/own")]))
            equal(len(plan(origin).files), 1, "files")
    table.done()


@case("a manifest in a bucket may name objects of that bucket, and https")
def _(box):
    with contextlib.ExitStack() as stack:
        server = store(box, 10)
        stack.callback(server.stop)
        options = {"endpoint": server.endpoint, "credentials": server.credentials(box.path("credentials"))}
        for bucket in ("ours", "theirs"):
            server.put(bucket, "a", b"x")
        server.put("ours", "m.jsonl", as_manifest(["s3://ours/a", "https://elsewhere.invalid/a"]))
        equal(len(plan("s3://ours/m.jsonl", **options).files), 2, "files")
        for url in ("s3://theirs/a", "s3://our/a", "s3://ourss/a", "http://elsewhere.invalid/a", "file:///etc/passwd"):
            server.put("ours", "n.jsonl", as_manifest([url]))
            refused("s3://ours/n.jsonl", **options, says=["EACCES", url])


@case("a server's password is for the origin's own server, not for whatever its list names")
def _(box):
    write(box, "a", b"12345")
    with faulty_server.start(box.path("origin")) as one, faulty_server.start(box.path("origin")) as other:
        path = box.path("passwords")
        with open(path, "w", encoding="ascii") as file:
            file.write("".join(f"[{server.base}]\ntoken = hush\n" for server in (one, other)))
        os.chmod(path, 0o600)
        for server in (one, other):
            server.fault("/a", "auth", token="hush")
        write(box, "l.txt", as_list([one.url("a")]))
        equal(len(plan(one.url("l.txt"), origin=one.url("l.txt"), credentials=path).files), 1, "its own server")
        write(box, "l.txt", as_list([other.url("a")]))
        refused(one.url("l.txt"), origin=one.url("l.txt"), credentials=path, says=["EACCES", "status 401"])
        local = box.path("origin", "l.txt")
        equal(len(plan("file://" + local, credentials=path).files), 1, "a list of our own")


# ---- lists ----------------------------------------------------------------------------------------------------------

@case("of a list each file is asked for its size once, and keeps the folder that is its label")
def _(box):
    names = [f"photos/{label}/{number:03d} %.jpg" for label in ("cat", "dog") for number in range(60)]
    for number, name in enumerate(names):
        write(box, name, b"x" * number)
    with faulty_server.start(box.path("origin")) as server:
        write(box, "l.txt", "\r\n".join(["# photographs", ""] + [server.url(name) for name in reversed(names)]).encode())
        result = plan(server.url("l.txt"), n_connections=4)
        equal(list(result.files), [name.partition("/")[2] for name in names], "paths")
        equal([entry["size"] for entry in result.files.values()], list(range(len(names))), "sizes")
        equal(server.total()["requests"], len(names) + 1, "requests")
        for entry in result.files.values():
            if not entry["etag"].startswith('"'):
                raise AssertionError(f"no ETag: {entry}")
        equal(plan(server.url("l.txt"), n_connections=1).digest, result.digest, "digest by one connection")
        os.utime(box.path("origin", names[5]), (1, 1))
        if plan(server.url("l.txt")).digest == result.digest:
            raise AssertionError("a changed file is the same digest")
        server.fault("/photos/*", "header", headers={"ETag": None})
        dated = plan(server.url("l.txt"))
        equal(dated.files[names[5].partition("/")[2]]["http_last_modified"], "Thu, 01 Jan 1970 00:00:01 GMT", "date")
        os.utime(box.path("origin", names[5]), (2, 2))
        equal(plan(server.url("l.txt")).digest, dated.digest, "digest of another date")


@contextlib.contextmanager
def crowd(n):
    """A server that answers HEADs once so many of them wait at the same time. Yields its address."""
    with socket.create_server(("127.0.0.1", 0), backlog=n) as listener:
        def talk():
            connections = []
            with contextlib.suppress(OSError):
                while len(connections) < n:
                    connections.append(listener.accept()[0])
                for connection in connections:
                    connection.recv(65536)
                for connection in connections:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n")
                for connection in connections:
                    connection.close()

        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        yield f"http://localhost:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(patience(60))


@case("of a list many sizes are asked for at once, more than there are threads")
def _(box):
    with crowd(200) as base:
        write(box, "l.txt", as_list(f"{base}/{number:03d}" for number in range(200)))
        equal([entry["size"] for entry in plan("file://" + box.path("origin", "l.txt"), n_connections=200, stall_s=patience(5), n_tries=1).files.values()],
              [7] * 200, "sizes")


@case("servers without HEAD are asked otherwise; one that has a page in place of a file is named")
def _(box):
    for name in ("a.bin", "b.bin"):
        write(box, name, b"12345")
    table = Table()
    with faulty_server.start(box.path("origin")) as server:
        write(box, "l.txt", f"{server.url('a.bin')}\n{server.url('b.bin')}\n".encode())
        server.fault("*", "no-head", method="HEAD")
        with table.row("no HEAD"):
            equal([entry["size"] for entry in plan(server.url("l.txt")).files.values()], [5, 5], "sizes")
        server.clear()
        server.fault("*", "no-length")
        with table.row("no Content-Length: a range says the size, too"):
            equal([entry["size"] for entry in plan(server.url("l.txt")).files.values()], [5, 5], "sizes")
        for fault, says in (("html", ["HTML"]), ("status", ["EPROTO"])):
            server.clear()
            server.fault("/b.bin", fault)
            with table.row(fault):
                refused(server.url("l.txt"), says=["b.bin", *says])
                refused(server.url("b.bin"), says=["b.bin", *says])
        server.clear()
        for number in range(40):
            write(box, f"many/{number:02d}", b"x" * number)
        write(box, "n.txt", as_list(server.url(f"many/{number:02d}") for number in range(40)))
        server.fault("/many/*", "status", code=503, times=2, after=11)
        with table.row("too busy for two of many"):
            equal([entry["size"] for entry in plan(server.url("n.txt"), n_connections=4).files.values()], list(range(40)), "sizes")
        server.clear()
        write(box, "m.txt", (server.url("a.bin") + "\n" + server.url("gone.bin") + "\n").encode())
        with table.row("404"):
            refused(server.url("m.txt"), says=["ENOENT", "gone.bin"])
    table.done()


@contextlib.contextmanager
def endless(line):
    """A server whose documents never end. Yields its address, and a list of how many bytes each client took."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = []

        def talk():
            for _ in range(2):
                connection, _ = listener.accept()
                with connection, contextlib.suppress(OSError):
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
                    taken.append(0)
                    while True:
                        taken[-1] += connection.send(line * 1000)

        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", taken
        thread.join(patience(60))
        equal(thread.is_alive(), False, "the server still sends")


@case("a manifest or list that never ends is refused with its name and the most that it may have")
def _(box):
    limit = 8 << 20
    with endless(b'{"path": "a.bin", "size": 1, "url": "http://127.0.0.1/a.bin"}\n') as (address, taken):
        for name in ("m.jsonl", "l.txt"):
            refused(f"{address}/{name}", says=["EFBIG", name, "more than 8.0 MiB"], n_text_max=limit)
    equal([n < 4 * limit for n in taken], [True, True], f"bytes that were taken: {taken}")


# ---- one file -------------------------------------------------------------------------------------------------------

@case("one file or archive has its size, ETag and name")
def _(box):
    write(box, "x/train set.tar.gz", b"12345")
    with faulty_server.start(box.path("origin")) as server:
        entry = plan(server.url("x/train set.tar.gz") + "?v=1").files["train set.tar.gz"]
        equal((entry["size"], entry["unpack"]), (5, True), "archive")
        equal(entry["urls"], [server.url("x/train set.tar.gz") + "?v=1"], "URL")
        equal(plan(server.url("x/train set.tar.gz"), "auto", "no").files["train set.tar.gz"]["unpack"], False, "kept whole")
        refused(server.url("x/other.tar"), says=["ENOENT", "other.tar"])
        refused(server.url("x/"), says=["EINVAL", "cannot be listed"])
    local = plan("file://" + box.path("origin", "x/train%20set.tar.gz")).files["train set.tar.gz"]
    equal((local["size"], local["unpack"]), (5, True), "on the disk")


# ---- folders --------------------------------------------------------------------------------------------------------

@case("a folder is listed with what its files are; what cannot be staged is named")
def _(box):
    write(box, "cat/1.jpg", b"1")
    write(box, "dog/deep/ü %.jpg", b"22")
    url = "file://" + box.path("origin")
    first = plan(url)
    equal({path: entry["size"] for path, entry in first.files.items()}, {"cat/1.jpg": 1, "dog/deep/ü %.jpg": 2}, "files")
    equal(first.files["dog/deep/ü %.jpg"]["urls"], [url + "/dog/deep/%C3%BC%20%25.jpg"], "URL")
    equal(plan(url + "/").digest, first.digest, "digest with a slash behind it")
    os.symlink("cat/1.jpg", box.path("origin", "link.jpg"))
    equal(plan(url).files["link.jpg"]["size"], 1, "a link inside")
    rows = [
        (lambda path: os.symlink("/etc/hostname", path), "outside the folder"),
        (lambda path: os.symlink(os.path.relpath("/etc/hostname", os.path.dirname(path)), path), "link to something outside"),
        (lambda path: os.symlink("gone", path), "broken link"),
        (os.mkfifo, "pipe"),
        (lambda path: socket.socket(socket.AF_UNIX).bind(path), "socket"),
    ]
    table = Table()
    for make, says in rows:
        with table.row(says):
            make(box.path("origin", "bad"))
            refused(url, says=['"bad"', says])
        os.unlink(box.path("origin", "bad"))
    write(box, b"cat/\xe9.jpg", b"latin")
    with table.row("Latin-1"):
        refused(url, says=["cat/?.jpg", "UTF-8"])
    table.done()


# ---- object stores --------------------------------------------------------------------------------------------------

@case("a store's listing is read page by page, whatever is in its keys")
def _(box):
    server = store(box, page=4)
    try:
        keys = ["a b.jpg", "c+d%41.jpg", "é/x&y<z>\"'.jpg", "deep/er/~(1)!*,;=@$.bin", "q?r#s", "back\\slash"]
        for key in keys:
            server.put("photos", "train/" + key, key.encode())
        for key in ("train/folder/", "train2/other", "train"):
            server.put("photos", key, b"")
        for number in range(19):
            server.put("photos", f"many/{number:04d} +&=", b"x" * (number % 7))
        options = {"endpoint": server.endpoint, "credentials": server.credentials(box.path("credentials"))}
        result = plan("s3://photos/train", **options)
        equal(list(result.files), sorted(keys, key=str.encode), "paths")
        for key in keys:
            equal(result.files[key]["size"], len(key.encode()), f"size of {key}")
            equal(result.files[key]["etag"], f'"{hashlib.md5(key.encode()).hexdigest()}"', f"ETag of {key}")
            equal(result.files[key]["urls"], ["s3://photos/train/" + key], "URL")
        requests = server.n_requests()
        many = plan("s3://photos/many/", **options)
        equal([entry["size"] for entry in many.files.values()], [number % 7 for number in range(19)], "sizes")
        equal(server.n_requests() - requests, 5, "requests")
        equal(plan("s3://photos/train/c+d%41.jpg", "file", **options).files["c+d%41.jpg"]["size"], 10, "one object")
        server.put("photos", "l/m.jsonl", line("../x", b"").replace("../", "").encode())
        equal(plan("s3://photos/l/m.jsonl", **options).files["x"]["urls"], ["s3://photos/l/x"], "beside the manifest")

        for folder in ("my train", "a+b %20&=", " é "):
            server.put("photos", folder + "/x 1.jpg", b"12")
            for url in ("s3://photos/" + folder, f"s3://photos/{folder}/"):
                result = plan(url, **options)
                equal([(path, file["size"], file["urls"]) for path, file in result.files.items()],
                      [("x 1.jpg", 2, [f"s3://photos/{folder}/x 1.jpg"])], f"files below {url!r}")

        refused("s3://photos/nothing", says=["nothing below"], **options)
        refused("s3://nobucket/x", says=["ENOENT", "NoSuchBucket"], **options)
        with open(box.path("credentials"), "w", encoding="utf-8") as file:
            file.write(f"[default]\naws_access_key_id = {server.access_key}\naws_secret_access_key = wrong-hush\n")
        wrong = refused("s3://photos/train", says=["EACCES", "SignatureDoesNotMatch"], **options)
        if "hush" in wrong.words:
            raise AssertionError(f"the key is told: {wrong.words}")
        server.put("photos", "train/../x", b"")
        server.credentials(box.path("credentials"))
        refused("s3://photos/train", says=["EINVAL", '".."'], **options)
    finally:
        server.stop()


LISTING = ('<?xml version="1.0"?><ListBucketResult><IsTruncated>{more}</IsTruncated>'
           "<NextContinuationToken>t</NextContinuationToken>"
           "<Contents><Key>a</Key><Size>1</Size><ETag>&quot;e&quot;</ETag></Contents></ListBucketResult>")
BOMB = ('<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "' + "a" * 1000 + '">'
        + "".join('<!ENTITY %s "%s">' % (b, f"&{a};" * 10) for a, b in zip("abcdef", "bcdefg"))
        + "]><ListBucketResult><Contents><Key>&g;</Key></Contents></ListBucketResult>")


@case("a store that answers something else is not believed")
def _(box):
    rows = [
        (LISTING.format(more="true"), None, ["EPROTO", "begins again"]),
        (BOMB, None, ["EINVAL", "document type"]),
        ("<html></html>", None, ["EINVAL"]),
        ("", None, ["EINVAL"]),
        (LISTING.format(more="false")[:-30], None, ["EINVAL", "XML"]),
        ("<Error><Code>InternalError</Code><Message>Oh</Message></Error>", None, ["EPROTO", "InternalError"]),
        (LISTING.format(more="false"), ("html", {}), ["EINVAL"]),
        (LISTING.format(more="false"), ("cut", {"at": 50}), []),
        (LISTING.format(more="false"), ("status", {"code": 503}), ["503"]),
        (LISTING.format(more="false"), ("status", {"code": 403}), ["EACCES"]),
    ]
    table = Table()
    write(box, "x", b"")
    with faulty_server.start(box.path("origin")) as server:
        endpoint = server.url("").rstrip("/")
        for text, fault, says in rows:
            with table.row((text[:40], fault)):
                server.clear()
                if fault:
                    server.fault("*", fault[0], **fault[1])
                write(box, "bucket", text.encode())
                refused("s3://bucket", says=["s3://bucket", *says], endpoint=endpoint)
        server.clear()
        write(box, "bucket", LISTING.format(more="false").encode())
        server.fault("*", "status", code=503, times=2)
        with table.row("503 twice"):
            equal(list(plan("s3://bucket", endpoint=endpoint, n_tries=5).files), ["a"], "files")
    table.done()


@contextlib.contextmanager
def endless_store(name):
    """A store whose listing goes on for ever, with keys that are all different. Yields its endpoint."""
    class Pages(http.server.BaseHTTPRequestHandler):
        n = 0

        def do_GET(self):
            Pages.n += 1
            keys = "".join("<Contents><Key>" + name.format(Pages.n * 1000 + i) + "</Key><Size>1</Size></Contents>"
                           for i in range(1000))
            page = ("<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>"
                    f"{Pages.n}</NextContinuationToken>{keys}</ListBucketResult>").encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@case("a store whose listing never ends, of files or of folders, is refused with its name and the most that is taken")
def _(box):
    for name in ("x{}", "x{}/"):
        with endless_store(name) as endpoint:
            refused("s3://bucket", says=["EFBIG", "s3://bucket", "does not end"], endpoint=endpoint, n_text_max=1 << 20)


@case("a part is not taken for the whole of a manifest or a list")
def _(box):
    text = write(box, "m.jsonl", line("a", b"a").encode() + line("b", b"b").encode())
    with faulty_server.start(box.path("origin")) as server:
        part = {"Content-Range": f"bytes 0-{len(text) // 2 - 1}/{len(text)}"}
        server.fault("*", "answer", code=206, body=text[:len(text) // 2].decode(), headers=part)
        refused(server.url("m.jsonl"), says=["EPROTO", "m.jsonl", "status 206"])
        refused(server.url("m.jsonl"), "list", says=["EPROTO", "m.jsonl", "status 206"])


# ---- configuration --------------------------------------------------------------------------------------------------

@case("the kind of an origin is seen without asking it")
def _(box):
    rows = [("http://h/m.jsonl", "manifest"), ("s3://b/p", "s3"), ("file://" + box.folder, "folder"), ("http://h/x.zip", "archive")]
    for url, kind in rows:
        equal(plan_kind(url), (0, kind), url)
    status, words = plan_kind("http://me:hush@h/x")
    equal(status, 1, "status")
    contains(words, "credentials file")
    if "hush" in words:
        raise AssertionError(f"the password is told: {words}")


def plan_kind(url):
    process = subprocess.run([TOOL, "kind", url], capture_output=True, text=True, check=False, timeout=patience(30))
    return process.returncode, (process.stdout or process.stderr).strip()


main()
