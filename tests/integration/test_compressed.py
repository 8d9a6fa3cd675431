#!/usr/bin/env python3
"""Compressed files as datasets: what compressors themselves have written is what the plain files give; what is damaged, cut or
too large is named; and what a kill interrupts is taken up again."""
import bz2
import gzip
import json
import lzma
import os
import shutil
import subprocess
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import faulty_server
from harness import Skip, Table, case, contains, equal, few, main, within, write
from tars import archive

MIB = 1 << 20
VECTORS = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors"))


def by_program(*command):
    def compress(data):
        if not shutil.which(command[0]):
            raise Skip(f"{command[0]} is not installed")
        return subprocess.run([*command, "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout
    return compress


ENDINGS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": by_program("zstd", "-q"), "lz4": by_program("lz4", "-q")}


def lines_of(shard, n):
    return b"".join(json.dumps({"text": f"line {number} of {shard} \u00e9", "n": number}).encode() + b"\n" for number in range(n))


def read(daemon, name, **terms):
    return daemon.read(name, **{"pipeline": "text; n", "shuffle": False, **terms})


def auto(path):
    return {"path": path, "format": "auto"}


# ---- what is right --------------------------------------------------------------------------------------------------

@case("each compression, of one file, of a folder and of a pattern, in one member or several, is what the plain file gives")
def _(box):
    table, data = Table(), [lines_of(shard, 300) for shard in range(3)]
    for shard in range(3):
        write(box.path("plain", f"{shard}.jsonl"), data[shard])
    datasets = {"plain": auto(box.path("plain")), "one": auto(box.path("plain", "0.jsonl"))}
    for ending, compress in ENDINGS.items():
        for shard in range(3):
            half = len(data[shard]) // 2  # in the middle of a line
            write(box.path(ending, f"{shard}.jsonl.{ending}"), compress(data[shard][:half]) + compress(data[shard][half:]))
        datasets[ending] = auto(box.path(ending))
        datasets[ending + "-one"] = auto(box.path(ending, f"0.jsonl.{ending}"))
        datasets[ending + "-pattern"] = auto(box.path(ending, f"*.jsonl.{ending}"))
    daemon = box.daemon(datasets)
    plain, one = read(daemon, "plain", epochs=2), read(daemon, "one")
    for ending in ENDINGS:
        with table.row(ending):
            equal(read(daemon, ending, epochs=2), plain, "the folder")
            equal(read(daemon, ending + "-pattern", epochs=2), plain, "a pattern")
            equal(read(daemon, ending + "-one"), one, "one file")
    table.done()


@case("archives, tables of text and shards of Mosaic's own writer that are compressed are what they are without it")
def _(box):
    members = [(f"{number:03d}.{what}", (b"%d" % number) * (200 if what == "txt" else 1)) for number in range(40) for what in ("txt", "cls")]
    for shard in range(2):
        archive(box.path("plain", f"{shard}.tar"), members[40 * shard:40 * (shard + 1)])
        with open(box.path("plain", f"{shard}.tar"), "rb") as file:
            write(box.path("packed", f"{shard}.tar.gz"), gzip.compress(file.read()))
    table = b"n,text\n" + b"".join(b"%d,word %d\n" % (number, number) for number in range(100))
    write(box.path("table", "t.csv"), table)
    write(box.path("tables", "t.csv.gz"), gzip.compress(table))
    datasets = {"plain": {"path": box.path("plain"), "format": "webdataset"}, "packed": {"path": box.path("packed"), "format": "webdataset"},
                "table": auto(box.path("table", "t.csv")), "tables": auto(box.path("tables", "t.csv.gz"))}
    for how in ("", "-zstd", "-gz", "-bz2"):
        datasets["mds" + how] = {"path": os.path.join(VECTORS, "mds", "fixed" + how), "format": "mds"}
    daemon, rows = box.daemon(datasets), Table()
    with rows.row("webdataset"):
        equal(read(daemon, "packed", pipeline="txt; cls"), read(daemon, "plain", pipeline="txt; cls"), "samples")
    with rows.row("csv"):
        equal(read(daemon, "tables", pipeline="n; text"), read(daemon, "table", pipeline="n; text"), "rows")
    for how in ("-zstd", "-gz", "-bz2"):
        with rows.row("mds" + how):
            equal(read(daemon, "mds" + how, pipeline="x; y"), read(daemon, "mds", pipeline="x; y"), "samples")
    rows.done()


@case("a file that was replaced, added or removed is noticed at the next attach, and only what is new is unpacked")
def _(box):
    for shard in range(3):
        write(box.path("d", f"{shard}.jsonl.gz"), gzip.compress(lines_of(shard, 50)))
    daemon = box.daemon({"d": auto(box.path("d"))})
    texts = [line["fields"]["text"]["text"] for line in read(daemon, "d")]
    equal(len(texts), 150, "samples")
    write(box.path("d", "1.jsonl.gz"), gzip.compress(lines_of("another", 20)))
    texts = [line["fields"]["text"]["text"] for line in read(daemon, "d", job="2")]
    equal((len(texts), sum("another" in text for text in texts)), (120, 20), "after one was replaced")
    os.unlink(box.path("d", "0.jsonl.gz"))
    write(box.path("d", "7.jsonl.gz"), gzip.compress(lines_of("new", 5)))
    for job in ("3", "4"):
        texts = [line["fields"]["text"]["text"] for line in read(daemon, "d", job=job)]
        equal((len(texts), sum(text.endswith(("of 0 \u00e9",)) for text in texts), sum("new" in text for text in texts)), (75, 0, 5),
              "after one was removed and one added")
        daemon.stop()
        daemon.start()


# ---- what is wrong --------------------------------------------------------------------------------------------------

@case("what is damaged, cut, not compressed or too large is named, with what to do, and does not hold up what is whole")
def _(box):
    table, data = Table(), lines_of(0, 3000)
    bad = {}
    for ending, compress in ENDINGS.items():
        whole = compress(data)
        bad[f"cut.jsonl.{ending}"] = whole[:len(whole) * 2 // 3]
        changed = bytearray(whole)
        changed[len(whole) // 2] ^= 0x55
        bad[f"changed.jsonl.{ending}"] = bytes(changed)
        bad[f"plain.jsonl.{ending}"] = data
        bad[f"page.jsonl.{ending}"] = b"<html>not found</html>"
    packed = zlib.compressobj(0, zlib.DEFLATED, 31)
    stored = bytearray(packed.compress(data) + packed.flush())
    stored[600] ^= 1
    bad["stored.jsonl.gz"] = bytes(stored)
    whole = gzip.compress(data)
    bad["sum.jsonl.gz"] = whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:]
    bad["length.jsonl.gz"] = whole[:-1] + bytes([whole[-1] ^ 1])
    bad["trailer.jsonl.gz"] = whole[:-4]
    for name, content in bad.items():
        write(box.path("bad", name), content)
    write(box.path("good.jsonl.gz"), whole)
    daemon = box.daemon({**{name: auto(box.path("bad", name)) for name in bad}, "good": auto(box.path("good.jsonl.gz"))})
    for name in bad:
        with table.row(name):
            contains(daemon.refused(name, name, pipeline="text"), "decompress" if not name.startswith(("plain", "page")) else "compressed")
    with table.row("good"):
        equal(len(read(daemon, "good")), 3000, "samples")
    table.done()


@case("what does not fit into cache_limit is refused with both numbers, and leaves nothing behind")
def _(box):
    for shard in range(4):
        write(box.path("d", f"{shard}.jsonl.gz"), gzip.compress(lines_of(shard, 60000)))
    write(box.path("small.jsonl.gz"), gzip.compress(lines_of(0, 100)))
    daemon = box.daemon({"d": auto(box.path("d")), "small": auto(box.path("small.jsonl.gz"))}, cache_limit="4MiB")
    contains(daemon.refused("d", "cache_limit", pipeline="text"), "4.0 MiB", "raise it")
    equal(len(read(daemon, "small")), 100, "what fits")
    left = [os.path.join(root, name) for root, _, names in os.walk(os.path.join(daemon.folder, "index", "remote")) for name in names
            if name.startswith(".unfinished")]
    equal(left, [], "what is left of it")


@case("killed while it unpacks, the next daemon unpacks the rest alone")
def _(box):
    n = few(12, 6)
    for shard in range(n):
        write(box.path("d", f"{shard}.jsonl.xz"), lzma.compress(lines_of(shard, 8000), preset=0))
    daemon = box.daemon({"d": auto(box.path("d"))}, workers=1)
    cache = os.path.join(daemon.folder, "index", "remote")

    def files():
        return {name: os.stat(os.path.join(root, name)).st_ino for root, _, names in os.walk(cache) for name in names
                if name.endswith(".jsonl")}
    within(30, lambda: len(files()) >= 2, "two are unpacked")
    daemon.kill()
    there = files()
    daemon.start()
    lines = read(daemon, "d")
    equal(len(lines), 8000 * n, "samples")
    now = files()
    kept = sum(now[name] == there[name] for name in there)
    equal(kept >= len(there) - 2, True, f"{kept} of {len(there)} were kept")  # the last ones may not have been noted


@case("compressed files of a web server are unpacked as those here, and not fetched again")
def _(box):
    for shard in range(3):
        write(box.path("origin", "d", f"{shard}.jsonl.zst"), ENDINGS["zst"](lines_of(shard, 300)))
        write(box.path("plain", f"{shard}.jsonl"), lines_of(shard, 300))
    with faulty_server.start(box.path("origin")) as server:
        write(box.path("origin", "d.txt"), "".join(server.url(f"d/{shard}.jsonl.zst") + "\n" for shard in range(3)).encode())
        daemon = box.daemon({"d": auto(server.url("d.txt")), "plain": auto(box.path("plain"))})
        equal(read(daemon, "d", epochs=2), read(daemon, "plain", epochs=2), "lines")
        daemon.stop()
        server.reset()
        daemon.start()
        equal(read(daemon, "d"), read(daemon, "plain"), "lines")
        equal([row[2] for row in server.requests() if row[1] == "GET" and row[2] != "/d.txt"], [], "fetched again")


main()
