#!/usr/bin/env python3
"""Compressed files in the order of blocks: the first batch comes when the first of them have begun, and what each rank gets is what
the definition says, whatever has been unpacked by then."""
import gzip
import json
import os
import random
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import faulty_server
from harness import Skip, case, contains, equal, expected_order, few, main, whole_order, within, write
from private import Home
from tars import archive
from tfrecords import example, ints, record_file, texts
from web_origin import Nginx

MIB = 1 << 20
SIZES = [20000, 40, 5000, 1, 6000, 7, 2100, 9000, 5, 1025, 333]
N = sum(SIZES)


def zstd(data):
    if not shutil.which("zstd"):
        raise Skip("zstd is not installed")
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def lines_of(n, first=0, fill=60):
    return b"".join(b'{"n": %d, "text": "%s"}\n' % (first + i, (b"%x" % (i * 2654435761 % 2**64)) * (fill // 8)) for i in range(n))


def make(folder, sizes=None, ending=".jsonl.zst", compress=zstd):
    first = 0
    for number, size in enumerate(sizes or SIZES):
        write(os.path.join(folder, f"x-{number:03d}{ending}"), compress(lines_of(size, first)))
        first += size


def terms(**more):
    return {"pipeline": "n", "batch": 64, "order": "blocks", "partition": "exact", **more}


def numbers(lines, epoch=None):
    return [line["fields"]["n"]["value"] for line in lines if epoch is None or line["epoch"] == epoch]


def check_arrived(home):
    """It was not only served when all was there, as any dataset is."""
    contains(home.log(), "served while its files arrive")
    equal("has changed" in home.log(), False, "was unpacked again")
    equal("it is served once all files are there" in home.log(), False, "had to wait for all files")


def read_ranks(home, path, world, **options):
    readers = [home.reader(path, world=world, rank=rank, job="ranks", **options) for rank in range(world)]
    return [reader.good() for reader in readers]


@case("two ranks share two epochs as the definition says, for several windows, cold and with all unpacked; so does a run with another world "
      "that goes on")
def _(box):
    make(box.path("d"))
    for window in (8, 2):
        home, order = Home(box), f"blocks(window={window})"
        for when in ("cold", "another daemon"):
            for rank, lines in enumerate(read_ranks(home, box.path("d"), 2, seed=7, epochs=2, **terms(order=order))):
                for epoch in range(2):
                    equal(numbers(lines, epoch), expected_order(N, world=2, rank=rank, seed=7, epoch=epoch, partition="exact",
                                                                order=order, blocks=SIZES), f"{when}, {order}, rank {rank}, epoch {epoch}")
            if when == "cold":
                home.stop()
        check_arrived(home)
    home = Home(box)
    first = [home.reader(box.path("d"), world=2, rank=rank, job="a", seed=3, limit=60, **terms()) for rank in range(2)]
    parts = [numbers(reader.good()) for reader in first]
    seen = [number for k in range(60 * 64) for number in (parts[0][k], parts[1][k])]
    home.stop()
    shutil.rmtree(os.path.join(home.folder, ".cache"))
    rest = [home.reader(box.path("d"), world=3, rank=rank, job="b", seed=3, first_position=len(seen), **terms(batch=10))
            for rank in range(3)]
    parts = [numbers(reader.good()) for reader in rest]
    for place in range(max(map(len, parts))):
        seen += [part[place] for part in parts if place < len(part)]
    equal(seen, whole_order(N, 3, order="blocks", blocks=SIZES), "both runs together, with nothing of the first one's cache")


@case("all other orders of the same files are served as well, at the same time, with their own numbers")
def _(box):
    make(box.path("d"), SIZES[:5])
    n, home = sum(SIZES[:5]), Home(box)
    blocks = home.reader(box.path("d"), job="blocks", seed=1, **terms())
    torch = home.reader(box.path("d"), job="torch", seed=1, **terms(order="torch"))
    equal(numbers(torch.good()), whole_order(n, 1), "torch's order")
    equal(numbers(blocks.good()), whole_order(n, 1, order="blocks", blocks=SIZES[:5]), "blocks")
    equal(numbers(home.read(box.path("d"), job="plain", shuffle=False, **terms(order="torch"))), list(range(n)), "without shuffling")


@case("the first batches come while a server holds the rest of each file back; then the others come")
def _(box):
    noise = random.Random(1)
    for shard in range(2):
        lines = b"".join(b'{"n": %d, "text": "%s"}\n' % (40000 * shard + i, noise.randbytes(200).hex().encode()) for i in range(40000))
        write(box.path("origin", f"x-{shard}.jsonl.gz"), gzip.compress(lines, 1))
    n_bytes = sum(os.path.getsize(box.path("origin", f"x-{shard}.jsonl.gz")) for shard in range(2))
    equal(n_bytes > 2 * 8 * MIB, True, "several chunks a file")
    with faulty_server.start(box.path("origin")) as server:
        home = Home(box)
        server.fault("*.gz", "stall", method="GET", at=3 * MIB // 2, seconds=1)  # no chunk is ever whole
        reader = home.reader(server.url("") + "x-{0..1}.jsonl.gz", seed=5, **terms())
        reader.wait_lines(64)
        server.clear()
        check_arrived(home)
        equal(numbers(reader.good()), whole_order(80000, 5, order="blocks", blocks=[40000, 40000]), "the whole epoch")


def noisy_lines(n, first):
    """Short ones, of which the first windows are made, and then long ones, which are several chunks when they are compressed."""
    noise = random.Random(first)
    return b"".join(b'{"n": %d, "text": "%s"}\n' % (first + i, noise.randbytes(120 if i < n // 2 else 5000).hex().encode()) for i in range(n))


def holds(home):
    listed = home.dlctl("--private", "--format", "json", "jobs")
    return [json.loads(line).get("hold") or "" for line in listed.stdout.splitlines()]


@case("an origin that is down while its files arrive holds the job, which says so, and it goes on when that is back; nobody waits for it "
      "who leaves, and after outage_timeout the job ends")
def _(box):
    size, n_shards = 8000, 3
    for shard in range(n_shards):
        write(box.path("origin", f"x-{shard}.jsonl.gz"), gzip.compress(noisy_lines(size, shard * size), 1))
    equal(os.path.getsize(box.path("origin", "x-0.jsonl.gz")) > 16 * MIB, True, "several chunks a file")
    server = Nginx(box, box.path("origin"))
    url = server.url("") + "x-{0..2}.jsonl.gz"
    for how in ("it comes back", "the daemon is stopped", "the job ends"):
        home = Home(box, DATALOADERD_PRIVATE="fetch_limit=12MiB outage_timeout=" + ("3" if how == "the job ends" else "600"))
        reader = home.reader(url, seed=5, on_error="fail", on_restart="raise", **terms())
        reader.wait_lines(64)
        server.stop()
        if how == "the job ends":
            equal(reader.finish()[0], 1, "exit status")
            contains(reader.errors(), "could not be read for", "outage_timeout", str(server.port))
            server.start()
            continue
        within(60, lambda home=home: any("waiting for the origin" in hold and "127.0.0.1" in hold for hold in holds(home)), "it says why it waits")
        if how == "it comes back":
            server.start()
            equal(numbers(reader.good(120)), whole_order(n_shards * size, 5, order="blocks", blocks=[size] * n_shards), "the whole epoch")
            check_arrived(home)
            continue
        home.stop()
        reader.finish()
        server.start()


def plain_shard(kind, rows, n_bytes):
    noise = random.Random(rows[0])
    if kind == "jsonl":
        return b"".join(b'{"n": %d, "x": "%s"}\n' % (row, noise.randbytes((n_bytes + row) // 2).hex().encode()) for row in rows)
    if kind == "tfrecord":
        return record_file([example(n=ints(row), x=texts(noise.randbytes(n_bytes + row))) for row in rows])
    return None


def make_plain(root, kind, n_shards, n, n_bytes):
    """Shards of n samples each."""
    for shard in range(n_shards):
        rows, path = range(shard * n, (shard + 1) * n), os.path.join(root, kind, f"x-{shard:02d}.{kind}")
        if kind == "tar":
            noise = random.Random(shard)
            archive(path, [(f"{row:06d}.{what}", b"%d" % row if what == "cls" else noise.randbytes(n_bytes + row))
                           for row in rows for what in ("cls", "bin")])
        else:
            write(path, plain_shard(kind, rows, n_bytes))


@case("files of a web server that are not compressed are served while they are read through: each sample is the one of the same files "
      "here, also from a cache that holds a part of them; the first batch comes before half of the bytes have left the server")
def _(box):
    root, n_shards = box.path("origin"), 24
    server = Nginx(box, root)
    for kind in ("jsonl", "tar", "tfrecord"):
        make_plain(root, kind, n_shards, few(80, 40), 60000)
        url, options = server.url(kind) + "/x-{00..23}." + kind, {"pipeline": "x=bin; n=cls" if kind == "tar" else "x; n"}
        n_bytes = sum(os.path.getsize(os.path.join(root, kind, name)) for name in os.listdir(os.path.join(root, kind)))
        here = Home(box).read(os.path.join(root, kind), seed=8, epochs=2, **terms(order="blocks(window=2)", **options))
        equal(len(here), 2 * n_shards * few(80, 40), "samples")
        for cache, n_epochs in (("1GiB", 1), ("24MiB", 2)):
            home = Home(box, DATALOADERD_PRIVATE=f"cache_limit={cache}")
            n_before = sum(row[2] for row in server.seen() if row[0] == "GET")
            if n_epochs == 1:
                reader = home.reader(url, seed=8, limit=1, delay_ms=2000, **terms(order="blocks(window=2)", batch=8, **options))
                reader.wait_lines(1)
                server.stop()
                n_sent = sum(row[2] for row in server.seen() if row[0] == "GET") - n_before
                server.start()
                reader.good()
                equal(n_sent < n_bytes // 2, True, f"{kind}: {n_sent} of {n_bytes} bytes before the first batch")
            lines = home.read(url, seed=8, epochs=n_epochs, seconds=120, **terms(order="blocks(window=2)", **options))
            equal([line["fields"] for line in lines], [line["fields"] for line in here[:len(lines)]], f"{kind}, {cache}")
            equal(len(lines), n_epochs * n_shards * few(80, 40), "samples")
            check_arrived(home)
            home.stop()
        shutil.rmtree(os.path.join(root, kind))


@case("archives and files of records arrive as lines do: what is not whole yet is left out, and comes later")
def _(box):
    sizes, noise = [2500, 30, 1800], random.Random(2)
    bounds = [sum(sizes[:k]) for k in range(len(sizes) + 1)]
    for kind in ("tar", "tfrecord"):
        for k in range(len(sizes)):
            plain, rows = box.path("plain", f"x-{k}.{kind}"), range(bounds[k], bounds[k + 1])
            if kind == "tar":
                archive(plain, [(f"{row:06d}.{what}", b"%d" % row if what == "cls" else noise.randbytes(700 + row % 500))
                                for row in rows for what in ("cls", "bin")])
            else:
                write(plain, record_file([example(n=ints(row), x=texts(noise.randbytes(500 + row % 300))) for row in rows]))
            with open(plain, "rb") as file:
                write(box.path(kind, f"x-{k}.{kind}.gz"), gzip.compress(file.read(), 1))
        home = Home(box)
        equal(os.path.getsize(box.path("plain", f"x-0.{kind}")) > MIB, True, "more than is looked at first")
        for when in ("cold", "there"):
            lines = home.read(box.path(kind), seed=6, **terms(pipeline="n=cls; bin" if kind == "tar" else "n"))
            equal([int(line["fields"]["n"]["value"]) for line in lines], whole_order(sum(sizes), 6, order="blocks", blocks=sizes),
                  f"{kind}, {when}")
            equal([line["index"] for line in lines if kind == "tar" and not line["fields"]["bin"].get("sha256")], [], "without their bytes")
        check_arrived(home)
        home.stop()


@case("a file that is damaged, or has other fields, ends the job that comes to it with its name; what came before is right")
def _(box):
    good, rest = lines_of(30000, 0, fill=160), lines_of(250000, 30000)
    table = {"cut": (zstd(good) + zstd(rest)[:-100], ("x-1.jsonl.zst", "cannot be decompressed")),
             "not json": (zstd(good + b"nonsense\n" * 400000), ("x-1.jsonl", "nonsense")),
             "another type": (zstd(good + b'{"n": "seven", "text": "x"}\n' * 200000), ("x-1.jsonl", "its field n", "another order"))}
    for name, (content, words) in table.items():
        folder, home = box.path(name.replace(" ", "-")), Home(box)
        write(os.path.join(folder, "x-0.jsonl.zst"), zstd(lines_of(8192, 10**6)))
        write(os.path.join(folder, "x-1.jsonl.zst"), content)
        for on_error in ("fail", "skip"):
            reader = home.reader(folder, seed=2, on_error=on_error, **terms())
            status, lines = reader.finish()
            equal(status, 1, f"{name}: exit status")
            contains(reader.errors(), *words)
            got = numbers(lines)
            equal((len(set(got)), all(n < 280000 or n >= 10**6 for n in got)), (len(got), True), f"{name}: what came before")
        home.stop()


@case("a file without a sample is an empty block: the others are served")
def _(box):
    make(box.path("d"), [5000, 0, 70])
    got = numbers(Home(box).read(box.path("d"), seed=9, **terms()))
    equal(got, whole_order(5070, 9, order="blocks", blocks=[5000, 0, 70]), "the epoch")


@case("a daemon that is killed in the middle of a cold epoch loses nothing, and a file that was replaced is another dataset")
def _(box):
    make(box.path("d"))
    home = Home(box)
    reader = home.reader(box.path("d"), seed=4, delay_ms=1, on_restart="wait", **terms())
    reader.wait_lines(64 * 20)
    for pid in home.pids():
        os.kill(pid, 9)
    equal(numbers(reader.good()), whole_order(N, 4, order="blocks", blocks=SIZES), "the epoch")
    write(box.path("d", "x-001.jsonl.zst"), zstd(lines_of(77, 10**6)))
    got = numbers(home.read(box.path("d"), seed=4, **terms()))
    equal((len(got), sum(n >= 10**6 for n in got)), (N - 40 + 77, 77), "samples, and those of the new file")


if __name__ == "__main__":
    main()
