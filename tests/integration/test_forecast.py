#!/usr/bin/env python3
"""What dlctl plan computes is what a daemon then asks of an origin; and a job that waits for its origin is told so, with how
that answers and what would help."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import faulty_server
from harness import DLCTL, Table, case, contains, equal, few, main, within, write
from pyclient import need, trainer
from tars import archive
from web_origin import Nginx

KIB, MIB = 1 << 10, 1 << 20


def make_images(root, n, size, name="images"):
    """An origin's folder of files that differ in length, and the list of their URLs."""
    for number in range(n):
        write(os.path.join(root, name, "ab"[number % 2], f"{number:05d}.jpg"), b"%08d" % number * ((size + number * 37) // 8))
    return [os.path.join(folder, file) for folder in ("a", "b") for file in sorted(os.listdir(os.path.join(root, name, folder)))]


def list_of(server, root, paths, name="images"):
    write(os.path.join(root, f"{name}.txt"), "".join(server.url(f"{name}/{path}") + "\n" for path in paths).encode())
    return server.url(f"{name}.txt")


def planned(daemon, dataset, *words):
    found = daemon.objects("plan", dataset, *words)
    equal(len(found), 1, "plans")
    return found[0]


def offline(*words):
    return subprocess.run([DLCTL, "plan", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def asked(server):
    """GETs of samples, and the bytes that came."""
    rows = [row for row in server.requests() if row[1] == "GET" and row[2].startswith("/images/") and row[4] in (200, 206)]
    return len(rows), sum(server.count(path)["bytes"] for path in {row[2] for row in rows})


def near(seen, expected, share, what):
    assert abs(seen - expected) <= share * expected + 2, f"{what}: {seen} were seen, {expected} were computed"


# ---- computed and measured ------------------------------------------------------------------------------------------

@case("what is computed of a first and of a later epoch is what the daemon asks for, with room for all of it and for a third")
def _(box):
    root = box.path("origin")
    n = few(300, 90)
    paths = make_images(root, n, 64 * KIB)
    n_bytes = sum(os.path.getsize(os.path.join(root, "images", path)) for path in paths)
    table = Table()
    with faulty_server.start(root) as server:
        url = list_of(server, root, paths)
        for name, limit in (("all", 4 * n_bytes), ("third", n_bytes // 3)):
            daemon = box.daemon({"d": {"path": url, "format": "imagefolder"}}, name=name, cache_limit=f"{limit >> 10}KiB")
            within(20, lambda: daemon.objects("datasets")[0]["state"] == "ready", "indexed")
            plan = planned(daemon, "d", "--cache", f"{limit >> 10}KiB", "--batch", 32, "--seed", 3)
            equal((plan["n_samples"], plan["n_chunks"], plan["dataset_bytes"]), (n, n, n_bytes), "dataset")
            for epoch, row in enumerate(plan["epochs"]):
                with table.row(f"{name}, epoch {epoch}"):
                    server.reset()
                    daemon.read("d", batch=32, seed=3, first_epoch=epoch, epochs=1, job=f"{name}{epoch}", pipeline="raw")
                    n_asked, n_came = asked(server)
                    assert abs(n_asked - row["n_requests"]) <= 0.06 * n + 1, (n_asked, row["n_requests"])
                    assert abs(n_came - row["origin_bytes"]) <= 0.06 * n_bytes, (n_came, row["origin_bytes"])
            daemon.stop()
    table.done()


@case("of two jobs of other seeds, and a cache for a third, it is computed what they ask for side by side: what both need last makes room")
def _(box):
    need("numpy")
    root, n = box.path("origin"), few(600, 300)
    paths = make_images(root, n, 4 * KIB)
    server = Nginx(box, root)
    limit = sum(os.path.getsize(os.path.join(root, "images", path)) for path in paths) // 3
    daemon = box.daemon({"d": {"path": list_of(server, root, paths), "format": "imagefolder"}}, cache_limit=f"{limit >> 10}KiB")
    within(20, lambda: daemon.objects("datasets")[0]["state"] == "ready", "indexed")
    words = ("--cache", f"{limit >> 10}KiB", "--batch", 1, "--seed", 3, "--rate", 1000)
    rows = planned(daemon, "d", "--jobs", 2, *words)["epochs"]
    n_seen = trainer(box, daemon, """
        log, n = sys.argv[1], int(sys.argv[2])
        loaders = [dlclient.Loader("d", job=f"job{seed}", batch_size=1, seed=seed, epochs=2, slots=2, pipeline="raw") for seed in (3, 4)]
        loops = [iter(loader) for loader in loaders]
        for k in range(2 * n):
            assert None not in [next(loop, None) for loop in loops]
            if k % n == n - 1:
                out(sum(line.startswith("GET") and "/images/" in line for line in open(log)))
        for loader in loaders:
            loader.close()
    """, os.path.join(server.home, "seen"), n)
    for seen, row in zip((n_seen[0], n_seen[1] - n_seen[0]), rows):
        print(f"{seen} requests, {row['n_requests']} computed, {row['epoch']}")
    for seen, row in zip((n_seen[0], n_seen[1] - n_seen[0]), rows):
        near(seen, row["n_requests"], 0.07, f"requests of both jobs, {row['epoch']}")


@case("samples of shards count by the chunks of their shard: lines and archives")
def _(box):
    for k in range(3):
        write(box.path("lines", f"{k}.jsonl"), b"".join(b'{"text": "line %d"}\n' % i for i in range(500)))
        archive(box.path("tars", f"{k}.tar"), [(f"{i:04d}.txt", b"text %d" % i) for i in range(300)])
    daemon = box.daemon({name: {"path": box.path(name), "format": "auto"} for name in ("lines", "tars")})
    for name, n_samples in (("lines", 1500), ("tars", 900)):
        within(20, lambda: all(row["state"] == "ready" for row in daemon.objects("datasets")), "indexed")
        plan = planned(daemon, name)
        equal((plan["n_samples"], plan["n_chunks"]), (n_samples, 3), f"samples and chunks of {name}")


@case("without a daemon: sizes of files, shards and blocks, several jobs, and the times of a rate, a latency and a link")
def _(box):
    files, shards = box.path("files"), box.path("shards")
    write(files, b"100000\n" * 1000)
    write(shards, b"%d\n" % (64 * MIB) * 20)
    rows = {}
    for name, words in {"all": ["--files", files, "--epochs", "3"],
                        "half": ["--files", files, "--cache", "50000000"],
                        "none": ["--files", files, "--cache", "0"],
                        "jobs": ["--files", files, "--cache", "0", "--jobs", "2", "--rate", "5"],
                        "node of four": ["--files", files, "--world", "4", "--local", "1"],
                        "rate": ["--files", files, "--rate", "100", "--latency", "10"],
                        "link": ["--files", shards, "--samples", "20000", "--bandwidth", "100MiB", "--latency", "0"],
                        "mixed": ["--files", shards, "--samples", "20000", "--bandwidth", "40MiB", "--rate", "500"],
                        "blocks": ["--files", shards, "--samples", "20000", "--bandwidth", "40MiB", "--rate", "500",
                                   "--order", "blocks(window=2)"]}.items():
        rows[name] = json.loads(offline(*words, "--format", "json").stdout)["epochs"]

    def of(name, key, epoch=0):
        return rows[name][epoch][key]

    equal([of("all", "n_requests", epoch) for epoch in range(3)], [1000, 0, 1000], "all, and three epochs")
    equal([of("half", "n_requests", epoch) for epoch in range(2)], [1000, 563], "half: an eighth of it is for what comes next")
    equal([of("none", "origin_bytes", epoch) for epoch in range(2)], [10**8, 10**8], "none")
    assert 1000 < of("jobs", "n_requests") <= 2000 and of("jobs", "hit_share") > 0, rows["jobs"]
    equal(of("node of four", "n_requests"), 250, "of one rank of four")
    assert 10 <= of("rate", "epoch_seconds") < 10.5 and of("rate", "first_batch_seconds") < 0.1, rows["rate"]
    near(of("link", "epoch_seconds"), 12.8, 0.05, "seconds")
    equal(of("link", "origin_bytes"), 20 * 64 * MIB, "bytes: of all chunks, once, less what pieces have brought")
    for key in ("n_pieces", "n_requests", "epoch_seconds"):
        assert of("blocks", key) < of("mixed", key), (key, rows["blocks"], rows["mixed"])


@case("what cannot be planned is refused with what is allowed")
def _(box):
    files = box.path("files")
    write(files, b"10\n" * 5)
    write(box.path("odd"), b"10\nmany\n")
    write(box.path("empty"), b"0\n0\n")
    table = Table()
    for words, code, says in (([], 2, "DATASET is missing"), (["d", "--files", files], 2, "in place of DATASET"),
                              (["d", "--samples", "4"], 2, "--samples is for --files"),
                              (["--files", files, "--cache", "4 GB"], 2, "such as 40GiB"),
                              (["--files", files, "--bandwidth", "x"], 2, "--bandwidth"),
                              (["--files", files, "--world", "0"], 2, "1 to 1048576"),
                              (["--files", files, "--world", "2", "--local", "3"], 2, "--local: 3"),
                              (["--files", files, "--jobs", "0"], 2, "--jobs: 0"),
                              (["--files", files, "--batch", "0"], 2, "--batch: 0"),
                              (["--files", files, "--rate", "-1"], 2, "--rate"),
                              (["--files", files, "--order", "sorted"], 2, "sorted"),
                              (["--files", box.path("nothing")], 1, "No such file"),
                              (["--files", box.path("odd")], 1, "line 2"),
                              (["--files", box.path("empty")], 1, "no file with a byte"),
                              (["--files", files, "--samples", "30000001"], 1, "at most 30000000"),
                              (["--files", files, "--samples", "10000000", "--jobs", "11"], 1, "take fewer --jobs")):
        with table.row(" ".join(words)):
            found = offline(*words)
            equal((found.returncode, found.stdout), (code, ""), found.stderr)
            contains(found.stderr, says)
    table.done()


@case("of a dataset here it says the same as of its files' sizes; one that there is not, or that is not ready, is refused")
def _(box):
    make_images(box.path("here"), 40, 30 * KIB)
    daemon = box.daemon({"d": box.path("here", "images"), "gone": box.path("nothing")})
    sizes = [os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(box.path("here", "images")) for name in names]
    write(box.path("sizes"), "".join(f"{size}\n" for size in sizes).encode())
    within(20, lambda: daemon.objects("datasets")[0]["state"] == "ready", "indexed")
    own, same = planned(daemon, "d"), json.loads(offline("--files", box.path("sizes"), "--format", "json").stdout)
    equal({**own, "dataset": ""}, {**same, "dataset": ""}, "plan")
    equal(len(planned(daemon, "d", "--order", "blocks")["epochs"]), 2, "epochs")
    for name, says in (("nothing", "nothing"), ("gone", "gone")):
        found = daemon.dlctl("plan", name)
        equal(found.returncode, 1, found.stderr)
        contains(found.stderr, says)


# ---- who waits for the origin ---------------------------------------------------------------------------------------

def job_of(daemon, name):
    return next(job for job in daemon.objects("jobs") if job["name"] == name)


@case("an origin that is slow: diagnose names it, without what is secret in its URL, with how it answers and what would help", sanitized=False)
def _(box):
    root = box.path("origin")
    paths = make_images(root, 3000, 2 * KIB)
    with faulty_server.start(root) as server:
        url = list_of(server, root, paths) + "?signature=hush"
        server.fault("/images/*", "late", method="GET", seconds=0.8)
        daemon = box.daemon({"d": {"path": url, "format": "imagefolder", "connections": 8}}, cache_limit="1MiB", fetch_ahead=1)
        within(60, lambda: daemon.objects("datasets")[0]["state"] == "ready", "indexed")
        reader = daemon.reader("d", job="slow", epochs=1000, batch=4, pipeline="raw")
        reader.wait_lines(12, seconds=60)
        found = daemon.objects("diagnose", "slow", "--seconds", 4)[0]
        equal((found["limit"], found["input_bound"]), ("origin", "highly"), str(found))
        contains(found["verdict"], f"the origin {server.base}", "first byte after", "MiB are in the cache")
        contains(found["advice"], "cache_limit", "shards")
        assert found["first_byte_ns"] > 5e8 and found["fetch_share"] > 0.5 and found["n_requests"] > 0, found
        assert "hush" not in json.dumps(found), found
        equal(job_of(daemon, "slow")["limit"], "origin", "limit in dlctl jobs")
        horizon_ns = daemon.objects("datasets", "d")[0]["horizon_ns"]
        assert horizon_ns >= 4 * 0.8e9, f"where answers are late, it is looked farther ahead than the second that was asked for: {horizon_ns}"
        shown = {fact["name"]: fact["value"] for fact in daemon.status()["obtained"]}
        assert int(shown["fetch_horizon"]) >= 3, shown


@case("an origin that is silent: after 5 s log, jobs, diagnose and the client say that it is the origin, and how it answered")
def _(box):
    root = box.path("origin")
    paths = make_images(root, 60, 2 * KIB)
    with faulty_server.start(root) as server:
        daemon = box.daemon({"d": {"path": list_of(server, root, paths), "format": "imagefolder"}})
        within(20, lambda: daemon.objects("datasets")[0]["state"] == "ready", "indexed")
        silence = [server.fault("/images/" + path, "hang", method="GET", seconds=60) for path in paths[20:]]
        reader = daemon.reader("d", job="silent", batch=4, pipeline="raw", shuffle=False)
        reader.wait_lines(12, seconds=30)
        within(30, lambda: job_of(daemon, "silent")["hold"], "the job says that it waits")
        contains(job_of(daemon, "silent")["hold"], "d: waiting for the origin for ", ".jpg of " + server.base, "first byte after")
        found = daemon.objects("diagnose", "silent", "--seconds", 0.5)[0]
        equal(found["limit"], "origin", str(found))
        contains(found["verdict"], "waits for the origin")
        contains(daemon.log(), "the job waits: d: waiting for the origin")
        equal(len(silence), 40, "faults")
        server.clear()


@case("of a dataset that lies elsewhere it is said from where it comes and how much of it is here")
def _(box):
    root = box.path("origin")
    paths = make_images(root, 30, 20 * KIB)
    with faulty_server.start(root) as server:
        daemon = box.daemon({"d": {"path": list_of(server, root, paths) + "?key=hush", "format": "imagefolder"}})
        within(20, lambda: daemon.objects("datasets")[0]["state"] == "ready", "indexed")
        found = daemon.objects("datasets", "d")[0]
        equal((found["n_origin_files"], found["cached_bytes"], found["room"]), (30, 0, "all of it has room"), str(found))
        daemon.read("d")
        found = daemon.objects("datasets", "d")[0]
        equal(found["cached_bytes"], found["origin_size_bytes"], str(found))
        contains(found["origin"], server.base)
        assert "hush" not in found["origin"] and found["n_requests"] >= 30 , found


main()
