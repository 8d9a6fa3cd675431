#!/usr/bin/env python3
"""The disk of index and ledger is full, fails, or its files are cut: the log names the thing, jobs get every sample, and
nothing half-written is ever taken for whole."""
# run: limit=240
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from failing_fs import FailingFs, SmallDisk  # noqa: E402
from harness import (Table, case, check_bytes, check_sequence, contains, equal, indices, main,  # noqa: E402
                     samples_of, within)
from packing import pack, packed  # noqa: E402
from staging import OSERR, Staging, make_files, photos_sizes  # noqa: E402

PAGE = 4096
N = 300
BAD = (3, 40, 41, 250)
GOOD = [index for index in range(N) if index not in BAD]
RANK = {"shuffle": False, "batch": 10}


def names(folder):
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def listed(daemon):
    """The damaged samples that the daemon lists; None if it did not answer in time."""
    done = daemon.dlctl("--format", "json", "errors")
    return sorted(json.loads(line)["index"] for line in done.stdout.splitlines()) if done.returncode == 0 else None


def is_ready(daemon):
    done = daemon.dlctl("--format", "json", "datasets")
    return done.returncode == 0 and json.loads(done.stdout.splitlines()[0])["state"] == "ready"


def entries(ledger):
    """The samples that a ledger lists."""
    with open(ledger, encoding="utf-8", errors="replace") as file:
        return [int(line.split("\t")[0]) for line in file if line[:1].isdigit() and line.count("\t") == 6]


def check_whole(lines, folder, n=N, **terms):
    check_sequence(lines, n, batch=10, shuffle=False, **terms)
    check_bytes(lines, samples_of(folder))


def index_dir_of(daemon):
    return daemon.settings["index_dir"]


def index_is_whole(box, daemon, name):
    """Another daemon takes the index that lies there, or there is none."""
    kept = os.path.join(index_dir_of(daemon), "d.index")
    if not os.path.exists(kept):
        return False
    shutil.copytree(index_dir_of(daemon), box.path(name + "-copy"))
    other = box.daemon(daemon.datasets, name=name, index_dir=box.path(name + "-copy"))
    within(30, lambda: is_ready(other), "it is opened")
    log = other.log()
    other.stop()
    contains(log, "d: opened in")
    return True


def spoil(folder):
    """Cuts some samples in place, which the folder does not show. Their entries are what a ledger holds."""
    paths = [path for path, _ in samples_of(folder)]
    for number in BAD:
        os.truncate(paths[number], 1)


@case("an index folder whose files cannot be read back: the index is kept in memory, and the daemon goes on")
def _(box):
    folder = box.folder_of_files("d", N)
    os.mkdir(box.path("state"))
    disk = FailingFs(box, box.path("state"))
    disk.fail("*", "EIO", ops="read")
    daemon = box.daemon({"d": folder}, index_dir=disk.path)
    check_whole(daemon.read("d", **RANK), folder)
    contains(daemon.log(), disk.path + "/d.index", "Input/output error")
    equal([name for name in names(box.path("state")) if "index" in name], [], "what it left")



@case("a disk that is full at any moment of writing an index: it is said with the file's name, all is served, and what lies there is whole")
def _(box):
    folder = box.folder_of_files("d", N)
    disk = SmallDisk(box, 64 * PAGE)
    table = Table()
    kept = []
    for n_pages in range(0, 6):  # it takes five
        with table.row(f"{n_pages} pages free"):
            index_dir = os.path.join(disk.path, f"index{n_pages}")
            if n_pages % 2:
                os.mkdir(index_dir)
            disk.fill(n_pages * PAGE)
            daemon = box.daemon({"d": folder}, name=f"daemon{n_pages}", index_dir=index_dir)
            check_whole(daemon.read("d", **RANK), folder)
            whole = index_is_whole(box, daemon, f"other{n_pages}")
            if not whole:
                contains(daemon.log(), index_dir, "No space left on device", "will be built again")
                equal(names(index_dir), [], "what it left")
            kept.append(whole)
            daemon.stop()
            shutil.rmtree(index_dir, ignore_errors=True)
    table.done()
    equal((kept[0], kept[-1]), (False, True), f"with no room and with enough: {kept}")


@case("a disk that fills up under running jobs: damaged samples are kept in memory, said once, and written when there is room")
def _(box):
    folder = box.folder_of_files("d", N)
    disk = SmallDisk(box, 64 * PAGE)
    daemon = box.daemon({"d": folder}, index_dir=os.path.join(disk.path, "index"))
    ledger = os.path.join(disk.path, "index", "d.errors")
    within(30, lambda: is_ready(daemon), "it is opened")
    spoil(folder)
    disk.fill(0)
    for number in range(2):
        equal(indices(daemon.read("d", on_error="skip", job=f"job{number}", **RANK)), GOOD, "samples")
    daemon.wait_log("cannot be saved")
    contains(daemon.log(), ledger, "No space left on device")
    equal(daemon.log().count("cannot be saved"), 1, "how often it was said")
    within(30, lambda: listed(daemon) == list(BAD), "all are known")

    another = box.folder_of_files("another", 30)
    daemon.datasets["another"] = another
    daemon.write_config()
    daemon.signal(1)
    check_sequence(daemon.read("another", **RANK), 30, batch=10, shuffle=False)
    daemon.wait_log("another: the index could not be saved")

    disk.empty()
    daemon.stop()
    daemon.start()
    within(30, lambda: listed(daemon) == list(BAD), "all are known to the next daemon")


@case("a ledger that is cut, or cannot be read or written, under a running daemon costs no sample and no entry")
def _(box):
    os.mkdir(box.path("state"))
    disk = FailingFs(box, box.path("state"))
    table = Table()
    for what, harm in (("quota", lambda path: disk.fail("*.errors", "EDQUOT", ops="write")),
                       ("reads", lambda path: disk.fail("*.errors", "EIO", ops="read")),
                       ("short", lambda path: disk.short("*.errors", 0)),
                       ("cut in its header", lambda path: os.truncate(path, 70)),
                       ("cut in a line", lambda path: os.truncate(path, os.path.getsize(path) - 30))):
        with table.row(what):
            folder = box.folder_of_files(what, N)
            index_dir = os.path.join(disk.path, what)
            ledger = os.path.join(index_dir, "d.errors")
            daemon = box.daemon({"d": folder}, name="daemon-" + what, index_dir=index_dir)
            within(30, lambda: is_ready(daemon), "it is opened")
            spoil(folder)
            daemon.read("d", on_error="skip", job="first", limit=10, **RANK)
            within(20, lambda: os.path.exists(ledger) and len(entries(ledger)) == 3, "the first entries are there")
            harm(ledger)
            equal(indices(daemon.read("d", on_error="skip", job="all", **RANK)), GOOD, "samples")
            within(30, lambda: listed(daemon) == list(BAD), "all are known")
            if "cut" not in what:
                daemon.wait_log("cannot be saved: " + ledger)
            disk.clear()
            daemon.stop()
            known = set(entries(ledger))
            equal(known >= ({250} if "cut" in what else set(BAD)), True, f"entries in the file: {known}")
            daemon.start()
            within(30, lambda: is_ready(daemon), "opened again")
            equal(indices(daemon.read("d", on_error="skip", **RANK)), GOOD, "samples in the next daemon")
            within(30, lambda: listed(daemon) == list(BAD), "all are known to the next daemon")
            daemon.stop()
        disk.clear()
    table.done()


@case("shards and an index that are read in pieces, or not at all, on a disk that fails: every sample, or an error by name")
def _(box):
    folder = box.folder_of_files("d", N)
    pack(folder, box.path("shards"))
    os.mkdir(box.path("state"))
    state = FailingFs(box, box.path("state"), name="state-disk")
    disk = FailingFs(box, box.path("shards"))
    daemon = box.daemon({"p": packed(disk.path)}, index_dir=state.path)
    within(30, lambda: is_ready(daemon), "it is opened")  # what is open already would end where a short read ends
    disk.short("*.shard", 700)
    lines = daemon.read("p", **RANK)
    check_sequence(lines, N, batch=10, shuffle=False)
    check_bytes(lines, samples_of(folder))
    daemon.stop()

    state.short("*.index", 0)
    daemon.start()
    lines = daemon.read("p", **RANK)
    check_bytes(lines, samples_of(folder))
    contains(daemon.log(), state.path, "p.index", "indexed again")
    shard = sorted(name for name in os.listdir(disk.path) if name.endswith(".shard"))[1]
    os.truncate(os.path.join(disk.path, shard), 100)
    reader = daemon.reader("p", on_error="fail", job="cut", **RANK)
    status, _ = reader.finish(60)
    equal(status, 1, "a shard is cut")
    contains(reader.errors(), shard)


@case("a staging that meets a quota beside a running job names the file and takes nothing from the job; then the next is served")
def _(box):
    os.mkdir(box.path("place"))
    disk = FailingFs(box, box.path("place"))
    folder = make_files(box.path("origin"), photos_sizes())
    staging = Staging(box, "file://" + folder, path=os.path.join(disk.path, "data", "photos"))
    equal(staging.run().result, "staged", "the first version")
    first = box.path("first")
    shutil.copytree(folder, first)
    daemon = box.daemon({"photos": staging.dataset()})
    reader = daemon.reader("photos", slots=2, delay_ms=20, epochs=3, job="running", **RANK)
    reader.wait_lines(10)

    make_files(folder, {"class1/new.jpg": 3 << 20}, seed=2)
    disk.fail("*/new.jpg*", "EDQUOT", ops="write,fallocate")
    done = staging.run(status=OSERR)
    contains(done.text, "new.jpg", "Disk quota exceeded")
    check_bytes(reader.good(), samples_of(first))
    check_bytes(daemon.read("photos", job="later", **RANK), samples_of(first))

    disk.clear()
    equal(staging.run().result, "staged", "with room")
    within(30, lambda: len(daemon.read("photos", job="new", **RANK)) == len(samples_of(folder)), "it is served")
    check_bytes(daemon.read("photos", job="newest", **RANK), samples_of(folder))


main()
