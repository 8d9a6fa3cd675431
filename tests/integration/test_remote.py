#!/usr/bin/env python3
"""Datasets that lie elsewhere: what a rank gets of a web server or a store is what it gets of the same files here, whatever
happens to the server, the daemon and the disk meanwhile; and what is here is not fetched again."""
import json
import os
import shutil
import signal
import struct
import sys
import time
import urllib.parse
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import faulty_server
import s3_server
from failing_fs import SmallDisk
from harness import DLCTL, Skip, Table, case, contains, equal, few, indices, main, patience, randperm, samples_of, within, write
from parquet_bytes import BINARY, BYTE_ARRAY, I32, binary, column, i32, i64, page, record, row, texts
from parquet_bytes import file as parquet_file
from private import Home
from pyclient import need, trainer
from tars import archive
from web_origin import Nginx, bytes_of, check_images, list_of, make_images, make_mds, noise, paths_below

KIB = 1 << 10
VECTORS = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors"))

def npy(shape, number):
    head = str({"descr": "<f4", "fortran_order": False, "shape": shape})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\0" + len(head).to_bytes(2, "little") + head.encode() + noise(number, shape[0] * shape[1] * 4)


def make_all(root):
    make_images(root)
    for shard in range(3):
        archive(os.path.join(root, "tars", f"{shard:03d}.tar"),
                [(f"{shard}{number:03d}.{what}", noise(number, 2000 + number) if what == "bin" else b"%d" % number)
                 for number in range(20) for what in ("bin", "cls")])
    for shard in range(2):
        write(os.path.join(root, "text", f"{shard}.jsonl"), b"".join(
            json.dumps({"text": f"line {shard} {number} \u00e9", "n": number}).encode() + b"\n" for number in range(50)))
    os.makedirs(os.path.join(root, "parquet"))
    shutil.copy(os.path.join(VECTORS, "parquet", "nested-plain.parquet"), os.path.join(root, "parquet"))
    shutil.copytree(os.path.join(VECTORS, "mds", "fixed"), os.path.join(root, "mds"))
    write(os.path.join(root, "arrays", "x.npy"), npy((64, 9), 1))


PICTURES = ' {format="imagefolder"}'
KINDS = {"images": ("imagefolder", "raw"), "tars": ("webdataset", "bin; cls"), "text": ("auto", "text; n"), "parquet": ("auto", None),
         "mds": ("mds", "x; y"), "arrays": ("auto", None)}


def at(path, kind):
    return {"path": path, "format": KINDS[kind][0]}


def terms_of(kind, **more):
    return {**({"pipeline": KINDS[kind][1]} if KINDS[kind][1] else {}), **more}


# ---- all formats ----------------------------------------------------------------------------------------------------

@case("two epochs of each format are what the same files give here; the second one, and a daemon started anew, ask for nothing")
def _(box):
    root = box.path("origin")
    make_all(root)
    server = Nginx(box, root)
    lists = {kind: list_of(server, root, kind) for kind in KINDS}
    daemon = box.daemon({**{f"here-{kind}": at(os.path.join(root, kind), kind) for kind in KINDS},
                         **{f"there-{kind}": at(lists[kind], kind) for kind in KINDS}})
    table = Table()
    for kind in KINDS:
        with table.row(kind):
            here = daemon.read(f"here-{kind}", **terms_of(kind, epochs=2, batch=4, seed=5))
            there = daemon.read(f"there-{kind}", **terms_of(kind, epochs=1, batch=4, seed=5, job=kind))
            n_cold = sum(row[3].startswith(f"/{kind}/") for row in server.seen())  # others are indexed meanwhile
            there += daemon.read(f"there-{kind}", **terms_of(kind, epochs=1, first_epoch=1, batch=4, seed=5, job=kind + "2"))
            equal(there, here, "lines")
            equal(sum(row[3].startswith(f"/{kind}/") for row in server.seen()), n_cold, "requests after the second epoch")
            fetched = sum(n for method, _, n, path in server.seen() if method == "GET" and path.startswith(f"/{kind}/"))
            n_bytes = bytes_of(os.path.join(root, kind))
            equal(fetched <= n_bytes * 1.01 + 128 * KIB, True, f"{fetched} bytes were fetched of {n_bytes}")
    daemon.stop()
    daemon.start()
    n_before = len(server.seen())
    for kind in KINDS:
        with table.row(kind + ", another daemon"):
            equal(daemon.read(f"there-{kind}", **terms_of(kind, epochs=2, batch=4, seed=5)),
                  daemon.read(f"here-{kind}", **terms_of(kind, epochs=2, batch=4, seed=5)), "lines")
    asked = [row for row in server.seen()[n_before:] if row[0] == "GET" and not row[3].endswith(".txt") and row[2] > 1]
    equal(asked, [], "what was fetched again")
    table.done()


@case("one large file that threads read at several places while it is filled: its times change, and it has not changed")
def _(box):
    root, n, size = box.path("origin"), 40, 500000
    pages = page(texts([noise(number, size + number) for number in range(n)]), n)

    def group(begin):
        about = record({1: i32(BYTE_ARRAY), 2: row([i32(0)], I32), 3: row([binary("x")], BINARY), 4: i32(0), 5: i64(n),
                        6: i64(len(pages)), 7: i64(len(pages)), 9: i64(begin)})
        return record({1: row([record({2: i64(begin), 3: about})]), 2: i64(len(pages)), 3: i64(n)})

    groups = row([group(4 + k * len(pages)) for k in range(3)])
    write(os.path.join(root, "one", "x.parquet"), parquet_file([column("x", pages * 3, n, kind=BYTE_ARRAY)], 3 * n, footer={4: groups}))
    arrays = {f"{name}.npy": npy((64, 30000), number) for number, name in enumerate("abc")}
    os.makedirs(os.path.join(root, "packed"))
    with zipfile.ZipFile(os.path.join(root, "packed", "x.npz"), "w") as archived:
        for name, content in arrays.items():
            archived.writestr(name, content)
    server = Nginx(box, root)
    for path in ("one/x.parquet", "packed/x.npz"):
        home = Home(box)
        equal(home.read(server.url(path), batch=4, seed=2), home.read(os.path.join(root, path), batch=4, seed=2), path)


@case("below a store's prefix, with the user's keys, and two jobs with other seeds at once: each has its own order; a third one asks for no object")
def _(box):
    root = box.path("origin")
    make_images(root, few(120, 30))
    try:
        store = s3_server.start(box.path("store"))
    except s3_server.Absent as absent:
        raise Skip(str(absent)) from None
    box.releases.append(store.stop)
    for path in paths_below(root):
        with open(os.path.join(root, path), "rb") as file:
            store.put("bucket", path, file.read())
    home = Home(box, AWS_ENDPOINT_URL=store.endpoint, AWS_ACCESS_KEY_ID=store.access_key,
                AWS_SECRET_ACCESS_KEY=store.secret_key, AWS_REGION="us-east-1")
    readers = [home.reader("s3://bucket/images", batch=4, seed=seed, epochs=2, delay_ms=1) for seed in (1, 2)]
    for seed, reader in zip((1, 2), readers):
        check_images(reader.good(), os.path.join(root, "images"), epochs=2, batch=4, seed=seed)
    n_before = store.n_requests()
    check_images(home.read("s3://bucket/images", batch=4, seed=3), os.path.join(root, "images"), batch=4, seed=3)
    equal(store.n_requests() - n_before <= 2, True, f"{store.n_requests() - n_before} requests of the third job")


@case("an index of MDS is made of index.json and the shards' heads: one column's length follows from the others'")
def _(box):
    root = box.path("origin")
    make_mds(root, 12, 24, 40000)
    server = Nginx(box, root)
    daemon = box.daemon({"there": at(list_of(server, root, "mds"), "mds"), "here": at(os.path.join(root, "mds"), "mds")})
    daemon.wait_log("dataset: there: indexed", 20)
    asked = [row for row in server.seen() if row[0] == "GET" and row[3].endswith(".mds")]
    equal(len(asked) <= 12 and sum(row[2] for row in asked) <= 12 * 64 * KIB, True, f"requests for heads alone: {asked}")
    terms = {"pipeline": "x; y", "batch": 8, "seed": 3}
    equal(daemon.read("there", **terms), daemon.read("here", **terms), "lines")


@case("what a sampler draws is asked for half a minute ahead, as any order is")
def _(box):
    root = box.path("origin")
    make_images(root, few(400, 400))
    server = Nginx(box, root)
    daemon = box.daemon({"d": at(list_of(server, root, "images"), "images")})
    reader = daemon.reader("d", batch=4, slots=2, delay_ms=500, pipeline="raw", sampler="random(replacement=true)", seed=3)
    reader.wait_lines(4)
    within(30, lambda: sum(row[0] == "GET" and row[3].startswith("/images/") for row in server.seen()) - len(reader.lines) > 100,
           "requests for far more than what has come and what two slots hold")
    reader.process.kill()


@case("fetch_ahead: no more is asked for than what is due by then; and what was asked for outlasts the origin")
def _(box):
    root = box.path("origin")
    make_images(root, 200)
    server = Nginx(box, root)
    url = list_of(server, root, "images")
    asked = lambda: sum(row[0] == "GET" and row[3].startswith("/images/") for row in server.seen())
    near = box.daemon({"d": at(url, "images")}, fetch_ahead=2).reader("d", batch=4, slots=2, delay_ms=500, pipeline="raw")
    near.wait_lines(12)
    n_ahead = asked() - len(near.lines)
    equal(0 < n_ahead <= 100, True, f"2 s at 2 batches of 4 a second, and 10 at most while nothing is measured: {n_ahead} are asked for")
    near.process.kill()
    n_before = asked()
    daemon = box.daemon({"d": at(url, "images")}, fetch_ahead=3600)
    far = daemon.reader("d", batch=4, slots=2, delay_ms=100, job="far")
    within(30, lambda: asked() - n_before == 200, "all is asked for")
    within(10, lambda: daemon.objects("datasets", "d")[0]["cached_bytes"] == bytes_of(os.path.join(root, "images")), "all is here")
    server.stop()
    equal(daemon.objects("jobs", "far")[0]["ranks"][0]["ahead_ns"] > 0, True, "how far it is looked ahead is shown")
    check_images(far.good(), os.path.join(root, "images"), batch=4)


# ---- a daemon that is killed ----------------------------------------------------------------------------------------

def noted(cache):
    """Files of one chunk each that the only journal in there has."""
    folder, = (entry.path for entry in os.scandir(cache) if os.path.exists(os.path.join(entry.path, "journal")))
    with open(os.path.join(folder, "listing"), encoding="utf-8") as file:
        paths = sorted((json.loads(line)["path"] for line in file), key=os.fsencode)
    with open(os.path.join(folder, "journal"), "rb") as file:
        records = file.read()[80:]
    return {paths[chunk] for chunk, what, _, _ in struct.iter_unpack("<QQQQ", records[:len(records) // 32 * 32]) if what >> 56 == 0}


@case("killed in the middle of a cold epoch, the daemon goes on with what it has, and each sample comes once")
def _(box):
    root = box.path("origin")
    make_images(root, few(300, 60))
    with faulty_server.start(root) as server:
        daemon = box.daemon({"d": at(list_of(server, root, "images"), "images")})
        server.fault("/images/*", "late", method="GET", seconds=0.3)
        reader = daemon.reader("d", batch=4, delay_ms=5, on_restart="wait")
        reader.wait_lines(8)
        daemon.kill()
        there = noted(os.path.join(daemon.folder, "index", "remote"))
        server.reset()
        daemon.start()
        check_images(reader.good(), os.path.join(root, "images"), batch=4)
        again = {urllib.parse.unquote(row[2]).removeprefix("/images/") for row in server.requests() if row[1] == "GET"}
        equal(len(there) > 0, True, "something was there")
        equal(there & again, set(), "files that were there and were fetched again")


@case("a store of 30 % of the data serves all of it, epoch after epoch, and another dataset beside it")
def _(box):
    root = box.path("origin")
    make_images(root, few(120, 60), size=64 * KIB)
    shutil.copytree(os.path.join(root, "images"), os.path.join(root, "others"))
    server = Nginx(box, root)
    limit = bytes_of(os.path.join(root, "images")) * 3 // 10
    daemon = box.daemon({name: at(list_of(server, root, name), "images") for name in ("images", "others")},
                        cache_limit=f"{limit >> 10}KiB")
    for name, seed in (("images", 1), ("others", 2), ("images", 3), ("others", 4)):
        check_images(daemon.read(name, batch=4, epochs=2, seed=seed), os.path.join(root, name), batch=4, epochs=2, seed=seed)


@case("two jobs of other seeds and a store of 20 %: what both of them need last has gone, so few reads ask for anything")
def _(box):
    need("numpy")
    root, n, n_epochs, n_cold = box.path("origin"), few(1000, 400), 5, 1
    make_images(root, n, size=4 * KIB)
    server = Nginx(box, root)
    limit = bytes_of(os.path.join(root, "images")) // 5
    daemon = box.daemon({"d": at(list_of(server, root, "images"), "images")}, cache_limit=f"{limit >> 10}KiB")
    # Side by side, on any machine. Of seeds that follow each other, one has in an epoch what the other had before.
    n_before, told = trainer(box, daemon, """
        import json, subprocess
        log, n_all, n_cold = sys.argv[1], *map(int, sys.argv[2:4])
        loaders = [dlclient.Loader("d", job=f"job{seed}", batch_size=1, seed=seed, epochs=n_all, slots=4, pipeline="raw")
                   for seed in (1, 1000)]
        loops = [iter(loader) for loader in loaders]
        for k in range(len(loaders[0])):
            if k == n_cold:
                out(open(log).read().count("GET"))
            assert None not in [next(loop, None) for loop in loops]
            if k == len(loaders[0]) // 2:  # in the middle of an epoch, as their number is odd
                out(json.loads(subprocess.run(sys.argv[4:], stdout=subprocess.PIPE, check=True).stdout))
        for loader in loaders:
            loader.close()
    """, os.path.join(server.home, "seen"), n_epochs, n_cold * n, DLCTL, "--socket", daemon.socket, "--format", "json", "datasets", "d")
    n_asked = sum(row[0] == "GET" for row in server.seen()) - n_before
    n_reads = 2 * n * (n_epochs - n_cold)
    print(f"{1 - n_asked / n_reads:.3f} of {n_reads} reads were hits")
    equal(n_asked <= 0.6 * n_reads, True, f"{n_asked} requests for {n_reads} reads")  # 0.82 of them if nothing makes room
    # What would make room then is told: of what was to come in that epoch and the next, it is among the last.
    epoch, uses = n_epochs // 2, {}
    for seed in (1, 1000):
        for k, sample in list(enumerate(randperm(n, seed + epoch) + randperm(n, seed + epoch + 1)))[n // 2 + 10:]:  # without those that slots have
            uses[sample] = min(uses.get(sample, 2 * n), k)
    files = {os.path.relpath(path, os.path.join(root, "images")): uses[i] for i, (path, _) in enumerate(samples_of(os.path.join(root, "images")))}
    equal(told["room"], "what all jobs need last makes room", "what is told of the rule")
    equal(len(told["evicted_next"]), 3, "files that would go next")
    n_later = [sum(use > files[row["file"].removeprefix("images/")] for use in files.values()) for row in told["evicted_next"]]
    equal(max(n_later) <= n // 2, True, f"files that are needed after those that would go, of {n}: {n_later}")
    needed = [row["needed_ns"] for row in told["evicted_next"]]
    equal(needed, sorted(needed, reverse=True), "when they are needed")


@case("a disk that is full long before the limit lowers the limit: it is said, and all of the data are served")
def _(box):
    root = box.path("origin")
    make_images(root, few(120, 60), size=64 * KIB)
    server = Nginx(box, root)
    disk = SmallDisk(box, bytes_of(os.path.join(root, "images")) // 10)  # all are on their way at once
    daemon = box.daemon({"d": at(list_of(server, root, "images"), "images")}, cache_dir=os.path.join(disk.path, "cache"), cache_limit="1GiB")
    check_images(daemon.read("d", batch=4, epochs=3, seed=1), os.path.join(root, "images"), batch=4, epochs=3, seed=1)
    equal(daemon.objects("errors"), [], "damage")
    contains(daemon.log(), "no space left on its disk")


@case("a disk that others fill is said once; when they have made room it is said as well, and all of the data stay")
def _(box):
    root = box.path("origin")
    make_images(root, few(120, 60), size=64 * KIB)
    server = Nginx(box, root)
    n_bytes = bytes_of(os.path.join(root, "images"))
    disk = SmallDisk(box, 3 * n_bytes + (16 << 20))
    disk.fill(n_bytes // 4)
    daemon = box.daemon({"d": at(list_of(server, root, "images"), "images")}, cache_dir=os.path.join(disk.path, "cache"), cache_limit="1GiB")
    check_images(daemon.read("d", batch=4, epochs=2, seed=1), os.path.join(root, "images"), batch=4, epochs=2, seed=1)
    equal(daemon.log().count("no space left on its disk"), 1, "times that it was said")
    disk.empty()
    within(30, lambda: "its disk has room again" in daemon.log(), "that there is room was not said")
    daemon.read("d", batch=4, seed=2, job="fills")
    n_before = len(server.seen())
    check_images(daemon.read("d", batch=4, seed=3, job="reads"), os.path.join(root, "images"), batch=4, seed=3)
    equal([row for row in server.seen()[n_before:] if row[0] == "GET" and row[3].startswith("/images/")], [], "what was fetched again")
    equal(daemon.log().count("no space left on its disk"), 1, "times that it was said in the end")


@case("daemons in one cache_dir have a folder each and keep cache_limit together; what a killed one leaves is found by the next one, and makes room if nobody comes")
def _(box):
    root = box.path("origin")
    make_images(root, few(120, 60), size=64 * KIB)
    shutil.copytree(os.path.join(root, "images"), os.path.join(root, "others"))
    server = Nginx(box, root)
    urls = {name: list_of(server, root, name) for name in ("images", "others")}
    cache, limit = box.path("cache"), bytes_of(os.path.join(root, "images")) * 3 // 2

    def one(name, **terms):
        home = Home(box, DATALOADERD_PRIVATE=f"cache_dir={cache} cache_limit={limit >> 10}KiB")
        reader = home.reader(urls[name] + PICTURES, batch=4, seed=2, **terms)
        return home, reader

    def fact(home, name):
        return next(row for row in home.status()["obtained"] if row["name"] == name)

    def held():
        return sum(os.stat(os.path.join(cache, path)).st_blocks * 512 for path in paths_below(cache) if "/files/" in path)

    first, reader = one("images", epochs=2)
    check_images(reader.good(), os.path.join(root, "images"), epochs=2, batch=4, seed=2)
    second, reader = one("others", epochs=20, delay_ms=10)
    reader.wait_lines(1)
    within(20, lambda: held() < limit * 1.1 and int(fact(second, "cache_used")["value"]) > limit // 4,
           "the first has made room for the second")
    equal(fact(second, "cache_folder")["value"], os.path.join(cache, "2"), "its folder")
    contains(fact(second, "cache_folder")["text"], "1 more daemon uses cache_dir")
    contains(second.log(), f"another daemon uses {cache}")
    check_images(reader.good(), os.path.join(root, "others"), epochs=20, batch=4, seed=2)
    equal(held() <= limit * 1.1, True, f"{held()} bytes are held, cache_limit is {limit}")
    check_images(first.read(urls["images"] + PICTURES, batch=4, seed=3), os.path.join(root, "images"), batch=4, seed=3)
    pid, = second.pids()
    os.kill(pid, signal.SIGKILL)
    within(20, lambda: not second.pids(), "its end")
    n_before = len(server.seen())
    third, reader = one("others", epochs=1)
    check_images(reader.good(), os.path.join(root, "others"), batch=4, seed=2)
    equal(fact(third, "cache_folder")["value"], os.path.join(cache, "2"), "the folder of the killed one")
    n_again = sum(row[0] == "GET" and row[3].startswith("/others/") for row in server.seen()[n_before:])
    equal(n_again < len(samples_of(os.path.join(root, "others"))) * 3 // 4, True, f"{n_again} were fetched again")
    third.stop()

    def is_removed():
        check_images(first.read(urls["images"] + PICTURES, batch=4, seed=4), os.path.join(root, "images"), batch=4, seed=4)
        return not [path for path in paths_below(os.path.join(cache, "2")) if "/files/" in path]
    within(20, is_removed, "what nobody has any more has made room")


@case("fetch_limit: no more comes in a second, however fast the server is; one that is no size is refused")
def _(box):
    root, limit = box.path("origin"), 256 * KIB
    make_images(root, 40, size=24 * KIB)
    server = Nginx(box, root)
    url, n_bytes = list_of(server, root, "images"), bytes_of(os.path.join(root, "images"))
    home = Home(box, DATALOADERD_PRIVATE=f"fetch_limit={limit >> 10}KiB")
    began = time.monotonic()
    check_images(home.read(url + PICTURES), os.path.join(root, "images"))
    most = limit * (time.monotonic() - began + 0.5)  # the slower the machine is, the more may have come
    equal(n_bytes > 2 * limit and n_bytes <= most, True, f"{n_bytes} bytes came, where {most:.0f} may")
    home = Home(box, DATALOADERD_PRIVATE="fetch_limit=fast")
    home.refused(url + PICTURES, "fetch_limit", "fast", status=3)


@case("a listing that has changed: what is the same stays, what is not is fetched, what has gone goes")
def _(box):
    root = box.path("origin")
    make_images(root, 30)
    server = Nginx(box, root)
    url = list_of(server, root, "images")
    daemon = box.daemon({"d": at(url, "images")})
    check_images(daemon.read("d"), os.path.join(root, "images"))
    daemon.stop()
    paths = paths_below(os.path.join(root, "images"))
    write(os.path.join(root, "images", paths[3]), noise(1000, 5000))
    write(os.path.join(root, "images", "a cat", "more.jpg"), noise(1001, 100))
    os.unlink(os.path.join(root, "images", paths[7]))
    list_of(server, root, "images")
    n_before = len(server.seen())
    daemon.start()
    check_images(daemon.read("d", epochs=2), os.path.join(root, "images"), epochs=2)
    fetched = [urllib.parse.unquote(row[3]).removeprefix("/images/") for row in server.seen()[n_before:]
               if row[0] == "GET" and not row[3].endswith(".txt")]
    equal(sorted(fetched), sorted([paths[3], "a cat/more.jpg"]), "fetched")
    there = {path.partition("/files/")[2] for path in paths_below(os.path.join(daemon.folder, "index", "remote")) if "/files/" in path}
    equal(there, set(paths_below(os.path.join(root, "images"))), "files in the cache")


@case("files that somebody has removed or cut in the folder are fetched again; folders of others there are left alone; links lead to it")
def _(box):
    root = box.path("origin")
    make_images(root, 30)
    server = Nginx(box, root)
    url = list_of(server, root, "images")
    write(box.path("disk", "mine", "journal"), b"a diary")
    write(box.path("disk", "mine", "thesis"), b"all of it" * 1000)
    os.symlink(box.path("disk"), box.path("link"))
    daemon = box.daemon({"d": at(url, "images")}, cache_dir=box.path("link"), cache_limit="64KiB")
    check_images(daemon.read("d", epochs=2), os.path.join(root, "images"), epochs=2)
    daemon.stop()
    gone = [path for path in paths_below(box.path("disk")) if "/files/" in path]
    for number, path in enumerate(gone):
        if number % 3 == 0:
            os.unlink(box.path("disk", path))
        elif number % 3 == 1:
            os.truncate(box.path("disk", path), 5)
    daemon.start()
    check_images(daemon.read("d", epochs=2), os.path.join(root, "images"), epochs=2)
    equal(os.path.getsize(box.path("disk", "mine", "thesis")), 9000, "what is not ours")


# ---- an origin that fails -------------------------------------------------------------------------------------------

@case("what is wrong with one object is that sample's damage; what passes is tried again, and nothing is damaged")
def _(box):
    root = box.path("origin")
    make_images(root, 24)
    table = Table()
    with faulty_server.start(root) as server:
        url = list_of(server, root, "images")
        paths = [os.path.relpath(path, root) for path, _ in samples_of(os.path.join(root, "images"))]
        for name, fault, is_damage in (
                ("404", ("status", {"code": 404}), True),
                ("403", ("status", {"code": 403}), True),
                ("another ETag", ("etag", {"value": '"other"'}), True),
                ("shorter", ("short", {"by": 100}), True),
                ("cut once", ("cut", {"at": 1000, "times": 1}), False),
                ("503 with Retry-After", ("status", {"code": 503, "retry_after": "1", "times": 2}), False),
                ("429", ("status", {"code": 429, "retry_after": "1", "times": 1}), False),
                ("stalls", ("stall", {"at": 1000, "seconds": 5, "times": 1}), False),
                ("reset", ("reset", {"at": 10, "times": 2}), False)):
            bad = 0 if is_damage else 5  # the first one is asked for when it is to be known whether the origin answers
            server.clear()
            daemon = box.daemon({"d": at(url, "images")}, name=name.replace(" ", "-"))
            within(20, lambda: daemon.objects("datasets")[0]["state"] not in ("indexing", "unknown"), "indexed")
            server.fault("/" + paths[bad], fault[0], method="GET", **fault[1])
            with table.row(name):
                lines = daemon.read("d", shuffle=False, on_error="skip")
                equal(indices(lines), [index for index in range(24) if index != bad or not is_damage], "samples")
                errors = daemon.objects("errors")
                equal(len(errors), int(is_damage), f"errors: {errors}")
                if is_damage:
                    contains(json.dumps(errors, ensure_ascii=False), os.path.basename(paths[bad]))
            daemon.stop()
    table.done()


@case("an origin that is down in the middle holds the job, which says so, and goes on when it is back")
def _(box):
    root = box.path("origin")
    make_images(root, few(200, 60))
    with faulty_server.start(root) as server:
        url = list_of(server, root, "images")
        daemon = box.daemon({"d": at(url, "images")})
        within(20, lambda: daemon.objects("datasets")[0]["state"] not in ("indexing", "unknown"), "indexed")
        server.fault("*", "close", after=20)
        reader = daemon.reader("d", batch=4, on_error="fail")
        within(90, lambda: any("127.0.0.1" in job["hold"] for job in daemon.objects("jobs")), "it is on hold, and says for whom")
        server.clear()
        check_images(reader.good(120), os.path.join(root, "images"), batch=4)
        equal(daemon.objects("errors"), [], "damage")


@case("a rank that leaves while its origin is silent leaves at once: its job is gone and its memory given back, and others go on when it speaks")
def _(box):
    root = box.path("origin")
    make_images(root, 60)
    table = Table()
    with faulty_server.start(root) as server:
        daemon = box.daemon({"d": at(list_of(server, root, "images"), "images")})
        within(20, lambda: daemon.objects("datasets")[0]["state"] not in ("indexing", "unknown"), "indexed")

        def memory():
            return next(int(fact["value"]) for fact in daemon.status()["obtained"] if fact["name"] == "jobs_and_datasets")
        before = memory()
        for how in ("killed", "ends"):
            with table.row(how):
                server.fault("/images/*", "hang", method="GET")
                reader = daemon.reader("d", batch=32, slots=16, seed=len(how), epochs=20, job=how)
                within(20, lambda how=how: any("waiting for the origin" in line and f"job={how}" in line for line in daemon.log().splitlines()),
                       "it waits for its origin")
                taken = memory() - before
                if how == "killed":
                    reader.process.kill()
                else:
                    reader.process.terminate()
                within(10, lambda taken=taken: not daemon.objects("jobs") and memory() - before < taken // 4, "the job is gone, and so is its memory")
                server.reset()
        server.clear()
        check_images(daemon.read("d", seconds=120, batch=4), os.path.join(root, "images"), batch=4)
        equal(daemon.objects("errors"), [], "damage")
    table.done()


@case("a daemon that is told to end does so while its server is silent, in the middle of a listing and of fetching, and damages nothing")
def _(box):
    root = box.path("origin")
    make_images(root, 60)
    table = Table()
    with faulty_server.start(root) as server:
        url = list_of(server, root, "images")
        for name, pattern, method in (("the list", "/images.txt", None), ("sizes", "/images/*", None), ("fetching", "/images/*", "GET")):
            server.clear()
            daemon = box.daemon({"d": at(url, "images")}, name=name.replace(" ", "-"), wait=False) if method is None else \
                box.daemon({"d": at(url, "images")}, name=name)
            if method:
                within(20, lambda: daemon.objects("datasets")[0]["state"] not in ("indexing", "unknown"), "indexed")
            server.fault(pattern, "hang", **({"method": method} if method else {}))
            if method is None:
                daemon.wait_ready()
            reader = daemon.reader("d", batch=4, on_restart="raise")
            time.sleep(0.5)
            with table.row(name):
                daemon.process.terminate()
                daemon.process.wait(patience(10))  # a silent server is given up after five times ten seconds
                equal(daemon.process.returncode, 0, "exit status")
                reader.finish()
                server.clear()
                daemon.start()
                equal(daemon.objects("errors"), [], "damage")
                check_images(daemon.read("d", job="again"), os.path.join(root, "images"))
            daemon.stop()
    table.done()


main()
