#!/usr/bin/env python3
"""A packed folder is served as the folder that was packed: the same samples, order, labels and pixels, however its
shards are read; shards that are missing, cut or damaged are named."""
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import (Skip, Table, case, check_bytes, check_sequence, contains, equal, expected_order, identity_bytes, indices,
                     main, samples_of, within, write)
from packing import pack, packed

WAYS = [{"page_cache": page_cache, "reader": reader} for page_cache in ("use", "bypass") for reader in ("auto", "threads")]


def folder_of_sizes(box, name):
    """Files of sizes around what blocks and buffers are; two of them go the way of large files."""
    folder = box.path(name)
    sizes = [1, 2, 511, 512, 4095, 4096, 4097, 8192, 50000, 100000, 262143, 262144, 262145, 300000, 1000001, 777]
    for number, size in enumerate(sizes * 3):
        write(os.path.join(folder, f"class{number // 20}", f"{number:03d}.jpg"), identity_bytes(number, size))
    return folder, len(sizes) * 3


@case("samples, order, labels and bytes are the folder's, through the page cache and past it, with io_uring and threads")
def _(box):
    folder, n = folder_of_sizes(box, "d")
    n_shards, digest = pack(folder, box.path("p"), 500000)
    equal(n_shards > 5, True, f"several shards: {n_shards}")
    table = Table()
    for way in WAYS:
        daemon = box.daemon({"d": folder, "p": packed(box.path("p"))}, **way)
        with table.row(way):
            lines = daemon.read("p", batch=7, epochs=2, seed=5)
            check_sequence(lines, n, batch=7, epochs=2, seed=5)
            check_bytes(lines, samples_of(folder))
            equal(lines, daemon.read("d", batch=7, epochs=2, seed=5), "as from the folder")
            found = {row["name"]: row for row in daemon.objects("datasets")}
            equal(found["p"]["digest"], found["d"]["digest"], "digests")
            equal(found["p"]["digest"], digest, "digest of what was packed")
            equal(found["p"]["format"], "packed", "format")
            daemon.wait_log("past the page cache" if way["page_cache"] == "bypass" else "through the page cache")
            equal(daemon.objects("errors"), [], "damaged samples")
        daemon.stop()
    table.done()


@case("pixels are the folder's")
def _(box):
    folder = box.folder_of_pictures("d", 40, width=37, height=23)
    pack(folder, box.path("p"))
    daemon = box.daemon({"d": folder, "p": packed(box.path("p"))}, page_cache="bypass")
    for pipeline in ("random_resized_crop(16) hflip(0.5)", "resize(20) center_crop(18)"):
        terms = {"batch": 6, "epochs": 2, "seed": 3, "pipeline": pipeline}
        equal(daemon.read("p", **terms), daemon.read("d", **terms), pipeline)


@case("two ranks of packed samples, and one that goes on where the folder's run stopped")
def _(box):
    n = 53
    folder = box.folder_of_files("d", n, size=5000)
    pack(folder, box.path("p"))
    daemon = box.daemon({"d": folder, "p": packed(box.path("p"))}, page_cache="bypass")
    for rank, lines in enumerate(daemon.read_ranks("p", 2, batch=4, seed=9)):
        equal(indices(lines), expected_order(n, 2, rank, 9), f"rank {rank}")
        check_bytes(lines, samples_of(folder))
    first = daemon.read("d", batch=4, seed=9, limit=5)
    rest = daemon.read("p", batch=4, seed=9, first_position=20)
    equal(indices(first) + indices(rest), expected_order(n, seed=9), "together")


def refused_with(daemon, *words):
    """The dataset cannot be opened; whoever asks is told why."""
    within(5, lambda: daemon.objects("datasets")[0]["state"] == "failed", "it is not opened")
    daemon.refused("p", *words)


@case("a folder with a shard that is missing, cut, damaged or of another dataset is refused by its name")
def _(box):
    folder, other = box.folder_of_files("d", 60, size=3000), box.folder_of_files("o", 60, n_classes=3, size=3000)
    pack(folder, box.path("good"))
    pack(other, box.path("strange"))
    def damage(path, at=200):
        with open(path, "r+b") as file:
            file.seek(at)
            byte = file.read(1)
            file.seek(at)
            file.write(bytes([byte[0] ^ 1]))
    wrong = {
        "missing": (lambda shard: os.unlink(shard), ["shard-000003.shard is missing"]),
        "cut": (lambda shard: os.truncate(shard, os.path.getsize(shard) - 4096), ["shard-000003.shard", "says it has"]),
        "table": (lambda shard: damage(shard, os.path.getsize(shard) - 4096), ["shard-000003.shard: its checksum is wrong"]),
        "header": (lambda shard: damage(shard, 40), ["shard-000003.shard:"]),
        "other": (lambda shard: shutil.copy(box.path("strange", "shard-000003.shard"), shard),
                  ["shard-000003.shard is of a dataset of 3 classes", "of 2"]),
        "text": (lambda shard: write(shard, b"no shard" * 1000), ["shard-000003.shard: it is not a shard"]),
    }
    table = Table()
    for name, (spoil, words) in wrong.items():
        with table.row(name):
            shutil.copytree(box.path("good"), box.path(name))
            spoil(box.path(name, "shard-000003.shard"))
            daemon = box.daemon({"p": packed(box.path(name))}, name=f"daemon-{name}")
            refused_with(daemon, *words)
            daemon.stop()
    table.done()


@case("samples of a shard that is cut while it is served are told with path and shard; for one that is gone jobs wait")
def _(box):
    folder = box.folder_of_files("d", 60, size=3000)
    pack(folder, box.path("p"))  # seven samples a shard
    paths = [os.path.relpath(path, folder) for path, _ in samples_of(folder)]
    for way in WAYS:
        shutil.rmtree(box.path("q"), ignore_errors=True)
        shutil.copytree(box.path("p"), box.path("q"))
        daemon = box.daemon({"p": packed(box.path("q"))}, name=f"daemon-{way['page_cache']}-{way['reader']}", **way)
        lines = daemon.reader("p", batch=1, epochs=40, shuffle=False, on_error="skip", slots=2, delay_ms=20)
        lines.wait_lines(2)  # from now on the dataset is in use, and nobody looks whether its folder has changed
        os.truncate(box.path("q", "shard-000002.shard"), 4096 * 3 + 100)
        os.rename(box.path("q", "shard-000005.shard"), box.path("away"))
        reader = daemon.reader("p", job="waits", batch=4, shuffle=False, on_error="skip")
        daemon.wait_log("shard-000005.shard: No such file", 20)
        within(20, lambda: any(job["hold"] for job in daemon.objects("jobs")), "it is on hold")
        os.rename(box.path("away"), box.path("q", "shard-000005.shard"))
        got = reader.good()
        bad = list(range(16, 21))
        equal(indices(got), [index for index in range(60) if index not in bad], f"good ones, {way}")
        check_bytes(got, samples_of(folder))
        errors = {error["index"]: error for error in daemon.objects("errors", "p")}
        equal(sorted(errors), bad, "damaged ones")
        equal([errors[index]["path"] for index in bad], [paths[index] for index in bad], "their paths")
        contains(errors[16]["error"], "shard-000002.shard: changed", "file ends at 12388")
        contains(daemon.log(), f"({paths[16]}): shard-000002.shard: changed")
        lines.process.kill()
        lines.process.wait()
        daemon.stop()


@case("a packed sample that cannot be decoded is told with its path and its shard")
def _(box):
    folder = box.folder_of_pictures("d", 20)
    path = samples_of(folder)[12][0]
    write(path, b"no picture")
    pack(folder, box.path("p"))
    daemon = box.daemon({"p": packed(box.path("p"))})
    lines = daemon.read("p", batch=4, pipeline="resize(8) center_crop(8)", on_error="skip")
    equal(len(lines), 19, "good ones")
    [error] = daemon.objects("errors", "p")
    equal((error["index"], error["path"]), (12, os.path.relpath(path, folder)), "which")
    contains(error["error"], "shard-000000.shard: unknown picture format")


@case("shards on a file system in memory are served; open shards are let go with the job")
def _(box):
    if not os.path.isdir("/dev/shm"):
        raise Skip("there is no /dev/shm")
    folder = box.folder_of_files("d", 60, size=3000)
    shm = tempfile.mkdtemp(prefix="dlp-packed-", dir="/dev/shm")
    box.cleanups.append(lambda: shutil.rmtree(shm, ignore_errors=True))
    n_shards, _ = pack(folder, os.path.join(shm, "p"))
    for way in WAYS:
        daemon = box.daemon({"p": packed(os.path.join(shm, "p"))}, name=f"daemon-{way['page_cache']}-{way['reader']}",
                            **way)
        check_bytes(daemon.read("p", batch=4), samples_of(folder))  # the index is made
        before = daemon.n_descriptors()
        reader = daemon.reader("p", batch=4, epochs=50, delay_ms=5)
        reader.wait_lines(120)
        shards = [number for number, link in links(daemon.pid).items() if ".shard" in link]
        equal((len(shards) <= n_shards, len(shards) > 0), (True, True), f"open shards of {n_shards}: {shards}")
        equal(any(is_direct(daemon.pid, link) for link in shards), way["page_cache"] == "bypass" and can_be_direct(shm),
              f"open with O_DIRECT, {way}")
        reader.process.kill()
        reader.process.wait()
        within(3, lambda daemon=daemon, before=before: daemon.n_descriptors() <= before, "they are closed")
        equal([number for number, link in links(daemon.pid).items() if ".shard" in link], [], "open shards")
        daemon.stop()


def links(pid):
    """What its descriptors are open on, by their number."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            found[name] = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:  # closed meanwhile
            continue
    return found


def is_direct(pid, descriptor):
    with open(f"/proc/{pid}/fdinfo/{descriptor}", encoding="ascii") as file:
        flags = next(int(line.split()[1], 8) for line in file if line.startswith("flags:"))
    return flags & os.O_DIRECT != 0


def can_be_direct(folder):
    path = os.path.join(folder, "try")
    write(path, b"")
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        return False
    return True


main()
