#!/usr/bin/env python3
"""`dlctl stage` of what lies elsewhere: all of it is brought into the daemon's cache, once, and jobs then ask for nothing."""
import gzip
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import DLCTL, case, contains, equal, few, main, patience, within, write
from private import Home
from tars import archive
from web_origin import Nginx, bytes_of, check_images, list_of, make_images, make_mds, noise

PICTURES = ' {format="imagefolder"}'
MIB = 1 << 20


def sent(server, kind):
    return [row for row in server.seen() if row[0] == "GET" and row[3].startswith(f"/{kind}/")]


def staged(done):
    equal(done.returncode, 0, done.stderr)
    return json.loads(done.stdout)


@case("a URL: each byte leaves the origin once, of small files and of shards; then a job, and another run, ask for nothing")
def _(box):
    root = box.path("origin")
    make_images(root, few(300, 60))
    make_mds(root, 3, 40, 300000)
    server = Nginx(box, root)
    home = Home(box)
    for kind, form in (("images", PICTURES), ("mds", "")):
        url, n_bytes = list_of(server, root, kind) + form, bytes_of(os.path.join(root, kind))
        record = staged(home.dlctl("--private", "--format", "json", "stage", url))
        equal((record["cached_bytes"], record["total_bytes"]), (n_bytes, n_bytes), "staged")
        n_asked = len(sent(server, kind))
        n_sent = sum(row[2] for row in sent(server, kind))
        equal(n_bytes <= n_sent <= n_bytes * 1.01 + 3 * 128 * 1024, True, f"{n_sent} bytes of {n_bytes}")
        equal(staged(home.dlctl("--format", "json", "stage", url))["cached_bytes"], n_bytes, "staged again")
        if kind == "images":
            check_images(home.read(url, batch=4, seed=1), os.path.join(root, kind), batch=4, seed=1)
        else:
            equal(len(home.read(url, batch=4, pipeline="x; y")), 120, "samples")
        equal(len(sent(server, kind)), n_asked, "requests in all")


@case("a dataset of the configuration, by its name; one that lies here, and one with an origin, are told apart")
def _(box):
    root = box.path("origin")
    make_images(root)
    server = Nginx(box, root)
    daemon = box.daemon({"far": {"path": list_of(server, root, "images"), "format": "imagefolder"},
                         "here": {"path": os.path.join(root, "images"), "format": "imagefolder"}})
    daemon.wait_log("dataset: far: indexed", 20)
    equal(daemon.objects("stage", "far")[0]["cached_bytes"], bytes_of(os.path.join(root, "images")), "staged")
    contains(Home(box).good("--private", "stage", os.path.join(root, "images") + PICTURES), "lies on this node")
    contains(daemon.dlctl("stage", "here").stderr, "dataloaderd.conf")  # of dataloaderd-stage, which looks for its origin
    done = daemon.dlctl("stage", "--verify", "http://x/y")
    equal(done.returncode, 2, done.stderr)
    contains(done.stderr, "--verify", "dlctl plan")


@case("a cache that is too small: what fits is fetched, the rest said; a job has every sample")
def _(box):
    root = box.path("origin")
    make_images(root, 40, size=1 * MIB)
    server = Nginx(box, root)
    home = Home(box, DATALOADERD_PRIVATE=f"cache_limit={16 * MIB}")
    url = list_of(server, root, "images") + PICTURES
    done = home.dlctl("--private", "stage", url)
    equal(done.returncode, 1, done.stdout)
    contains(done.stderr, "cache is full", "cache_limit", "order=\"blocks\"")
    n_sent = sum(row[2] for row in sent(server, "images"))
    equal(12 * MIB <= n_sent <= 24 * MIB, True, f"{n_sent} bytes were fetched into 16 MiB")
    check_images(home.read(url, batch=4, seed=1), os.path.join(root, "images"), batch=4, seed=1)


@case("a file that has gone: the others are fetched, and it is named")
def _(box):
    root = box.path("origin")
    make_images(root, 30)
    server = Nginx(box, root)
    home = Home(box)
    url = list_of(server, root, "images") + PICTURES
    home.good("datasets", url)
    gone = os.path.join(root, "images", "a cat", "0000 x%.jpg")
    n_bytes = bytes_of(os.path.join(root, "images")) - os.path.getsize(gone)
    os.unlink(gone)
    done = home.dlctl("--private", "--format", "json", "stage", url)
    equal(done.returncode, 1, done.stdout)
    contains(done.stderr, "not all could be fetched", "0000")
    equal(json.loads(done.stdout)["cached_bytes"], n_bytes, "of the others")


@case("Ctrl-C ends it; what had come is not fetched again by the next run")
def _(box):
    root = box.path("origin")
    make_images(root, 60, size=64 * 1024)
    server = Nginx(box, root)
    home = Home(box, DATALOADERD_PRIVATE="fetch_limit=1MiB")
    url = list_of(server, root, "images") + PICTURES
    home.good("datasets", url)
    with subprocess.Popen([DLCTL, "--private", "stage", url], env=home.env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as run:
        within(20, lambda: len(sent(server, "images")) > 10, "ten files have come")
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=patience(10))
    equal(run.returncode in (-signal.SIGINT, 130), True, f"ended with {run.returncode}")
    staged(home.dlctl("--private", "--format", "json", "stage", url))
    equal(len(sent(server, "images")), 60, "requests for 60 files")


@case("an index that is laid beside the data spares reading them, to other nodes too; of other files or options, or damaged, it is passed over")
def _(box):
    root = box.path("origin")
    for shard in range(15):
        archive(os.path.join(root, "tars", f"{shard:03d}.tar"),
                [(f"{shard:02d}{number:03d}.{what}", noise(number, 200000 + number) if what == "bin" else b"%d" % number)
                 for number in range(20) for what in ("bin", "cls")])
    terms = {"pipeline": "bin; cls", "batch": 4, "seed": 3}
    here = Home(box).read(os.path.join(root, "tars"), **terms)
    server = Nginx(box, root)
    url = list_of(server, root, "tars")
    done = subprocess.run([DLCTL, "--private", "index", url], env=Home(box).env, capture_output=True, check=False)
    equal(done.returncode, 0, done.stderr)
    place = os.path.join(root, "tars", ".dataloaderd.index")
    write(place, done.stdout)
    equal(list_of(server, root, "tars"), url, "the list, with the index")

    def opened():
        """Another node. Bytes of the archives that were read to open it; whether its samples are right; what it says."""
        home = Home(box)
        n_before = len(server.seen())
        home.good("datasets", url)
        asked = [row for row in server.seen()[n_before:] if row[0] == "GET" and row[3].endswith(".tar")]
        equal(home.read(url, **terms), here, "lines")
        return sum(row[2] for row in asked), home.log()

    n_read, log = opened()
    contains(log, "with the index beside it")
    # Telling the format reads on in the first file, ahead of which 32 MiB are fetched.
    equal(n_read < 36 * MIB, True, f"{n_read} bytes of 60 MiB were read, where the first ones' heads tell the format")
    write(place, done.stdout[:-1] + bytes([done.stdout[-1] ^ 1]))
    contains(opened()[1], "the index beside it cannot be used")
    write(place, done.stdout)
    archive(os.path.join(root, "tars", "000.tar"), [(f"00{number:03d}.{what}", noise(7, 200) if what == "bin" else b"7")
                                                    for number in range(20) for what in ("bin", "cls")])
    here = Home(box).read(os.path.join(root, "tars"), **terms)
    contains(opened()[1], "the index beside it cannot be used")


@case("who waits for an index that reads all of the data is told how much that is, and that order=\"blocks\" begins at once; of compressed csv, which waits all the same, not")
def _(box):
    root = box.path("origin")
    for shard in range(3):
        archive(os.path.join(root, "tars", f"{shard:03d}.tar"), [(f"{shard}{number}.bin", noise(number, 900000)) for number in range(4)])
        lines = b"".join(json.dumps({"text": noise(number, 2000).decode()}).encode() + b"\n" for number in range(1000))
        write(os.path.join(root, "lines", f"{shard}.jsonl.gz"), gzip.compress(lines, 1))
        write(os.path.join(root, "tables", f"{shard}.csv.gz"), gzip.compress(b"text\n" + noise(shard, 600000), 0))
    server = Nginx(box, root)
    for kind, advised in (("tars", True), ("lines", True), ("tables", False)):
        home = Home(box, DATALOADERD_PRIVATE="fetch_limit=200KiB" if kind != "lines" else "fetch_limit=20KiB")
        waits = home.reader(list_of(server, root, kind))
        within(30, lambda: "dlctl: waiting:" in waits.errors(), "it says that it waits")
        within(30, lambda: " of " in waits.errors() or not advised, "how much there is")
        equal("order=\"blocks\"" in waits.errors(), advised, f"advice of {kind}: {waits.errors()}")
        waits.process.kill()


if __name__ == "__main__":
    main()
