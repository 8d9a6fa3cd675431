#!/usr/bin/env python3
"""A file system that is out of order is no damage: jobs wait, say why, and go on exactly where they were."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from failing_fs import FailingFs
from harness import Table, case, contains, equal, indices, main, samples_of, sha256_of, within, write
from prometheus import Metrics
from pyclient import Trainer, need

N = 200
RANK = {"shuffle": False, "batch": 4, "slots": 2, "delay_ms": 5}


def hold_of(daemon):
    """What dlctl jobs says of the one job; "" if it goes on."""
    jobs = daemon.objects("jobs")
    return jobs[0]["hold"] if jobs else ""


def check_whole(lines, folder, n=N):
    """Each sample once, in its order, with its own bytes."""
    equal(indices(lines), list(range(n)), "samples in order")
    equal([line for line in lines if "substitute" in line], [], "each is itself")
    hashes = [sha256_of(path) for path, _ in samples_of(folder)]
    equal([line["fields"]["image"]["sha256"] for line in lines], hashes, "bytes")


@case("errors of the whole file system put a job on hold; it goes on where it was, whatever on_error says")
def _(box):
    source = box.folder_of_files("files", N)
    disk = FailingFs(box, source)
    rows = Table()
    for reading in ("auto", "threads"):
        daemon = box.daemon({"d": disk.path}, name=reading, reader=reading)
        for policy, error, ops in (("fail", "EIO", None), ("substitute", "ESTALE", None), ("skip", "EACCES", "open"),
                                   ("skip", "EIO", "read"), ("skip", "ENOENT", None), ("substitute", "ETIMEDOUT", None)):
            with rows.row(f"{reading} {policy} {error}"):
                reader = daemon.reader("d", on_error=policy, **RANK)
                reader.wait_lines(8)
                disk.fail("*", error, ops=ops)
                within(20, lambda: hold_of(daemon) != "", "it is on hold")
                contains(hold_of(daemon), disk.path, error)
                within(20, lambda: "on hold" in reader.errors(), "the client is told")
                seen = Metrics(daemon.dlctl("metrics").stdout)
                equal(seen.one("dataloaderd_job_on_hold", 'dataset="d"'), 1, "the metric")
                n_lines = len(reader.lines)
                equal(n_lines < N, True, "it waits")
                time.sleep(0.5)
                disk.clear()
                check_whole(reader.good(), source)
                equal(daemon.objects("errors"), [], "nothing of it is damage")
        contains(daemon.log(), "d is on hold", "its jobs continue")
    rows.done()


@case("what lasts longer than outage_timeout ends the job with the reason; nobody is served less than the order says")
def _(box):
    source = box.folder_of_files("files", N)
    disk = FailingFs(box, source)
    daemon = box.daemon({"d": disk.path}, outage_timeout=1)
    reader = daemon.reader("d", on_error="skip", **RANK)
    reader.wait_lines(8)
    disk.fail("*", "EIO")
    status, lines = reader.finish(30)
    equal((status, len(lines) % 4), (1, 0), "it ends behind whole batches")
    equal(indices(lines), list(range(len(lines))), "what was served")
    contains(reader.errors(), "outage_timeout", disk.path, "EIO")
    disk.clear()
    check_whole(daemon.read("d", job="later", **RANK), source)


@case("one file that cannot be read is damage while others can be: EIO after a few looks, EACCES and ENOENT at once")
def _(box):
    source = box.folder_of_files("files", 60)
    disk = FailingFs(box, source)
    daemon = box.daemon({"d": disk.path})
    for number, error in ((7, "EIO"), (30, "EACCES"), (31, "ESTALE"), (55, "ENOENT")):
        disk.fail(f"*{number:06d}.jpg", error, ops="open,read")
    for policy in ("substitute", "skip"):
        lines = daemon.read("d", on_error=policy, **RANK)
        bad = {7: 8, 30: 32, 31: 32, 55: 56}
        expected = [index for index in range(60) if policy == "substitute" or index not in bad]
        equal(indices(lines), expected, f"samples ({policy})")
        equal({line["index"]: line["substitute"] for line in lines if "substitute" in line},
              bad if policy == "substitute" else {}, "substitutes")
    equal(sorted(row["index"] for row in daemon.objects("errors")), [7, 30, 31, 55], "the ledger")
    equal("on hold" in daemon.log(), False, "nobody was on hold")


@case("an error that passes is none: the sample is read again")
def _(box):
    source = box.folder_of_files("files", N)
    disk = FailingFs(box, source)
    daemon = box.daemon({"d": disk.path})
    disk.fail("*000040.jpg", "EIO", ops="read", times=2)
    disk.fail("*000090.jpg", "EINTR", ops="open", times=2)
    disk.fail("*000120.jpg", "ESTALE", ops="open", times=3)
    check_whole(daemon.read("d", on_error="skip", **RANK), source)
    equal(daemon.objects("errors"), [], "damaged samples")


@case("a mount that is gone and comes back at its path: the job goes on in the new one")
def _(box):
    source = box.folder_of_files("files", N)
    disk = FailingFs(box, source)
    daemon = box.daemon({"d": disk.path})
    reader = daemon.reader("d", on_error="skip", **RANK)
    reader.wait_lines(8)
    disk.die()
    within(20, lambda: hold_of(daemon) != "", "it is on hold")
    contains(hold_of(daemon), "ENOTCONN")
    disk.unmount()
    time.sleep(0.3)  # what lies at the path now is an empty folder: not the dataset
    equal(reader.process.poll(), None, "it still waits")
    FailingFs(box, source)
    check_whole(reader.good(), source)


@case("a job on hold takes nothing from another one, and is seen, told and ended like any other")
def _(box):
    source = box.folder_of_files("files", N)
    other = box.folder_of_files("other", N)
    disk = FailingFs(box, source)
    daemon = box.daemon({"d": disk.path, "e": other}, read_depth=4)
    held = [daemon.reader("d", job=f"held{number}", on_error="skip", **RANK) for number in range(3)]
    for reader in held:
        reader.wait_lines(8)
    disk.fail("*", "EIO")
    within(20, lambda: all(job["hold"] for job in daemon.objects("jobs")), "all are on hold")
    for number in range(3):
        check_whole(daemon.read("e", job=f"other{number}", **RANK), other)
    contains(daemon.dlctl("jobs").stdout, "EIO")
    held[0].process.kill()
    held[0].finish()
    within(20, lambda: len(daemon.objects("jobs")) == 2, "a job on hold can be left")
    disk.clear()
    for reader in held[1:]:
        check_whole(reader.good(), source)


@case("a trainer hears why no batch comes: its progress function, stats() and the log; and loses nothing")
def _(box):
    need("numpy")
    source = box.folder_of_files("files", N)
    disk = FailingFs(box, source)
    daemon = box.daemon({"d": disk.path})
    run = Trainer(box, daemon, """
        logging.basicConfig(level=logging.INFO)
        told = []
        loader = dlclient.Loader("d", batch_size=4, shuffle=False, slots=2, progress=told.append, on_error="skip")
        indices, stats = [], None
        for number, batch in enumerate(loader):
            indices += batch.indices.tolist()
            if told and (not stats or stats.on_hold):  # again, if a batch that was ready before came while it is on hold
                stats = loader.stats()              # of the time in which the hold was waited for, and little else
            if number == 3:
                out("now")
                while not os.path.exists(sys.argv[1]):
                    time.sleep(0.01)
                loader.stats()
        assert stats.limit == "outage" and "can be again" in stats.verdict and "mount" in stats.advice, stats
        out([indices, told, stats.on_hold, stats.hold_s > 0])
    """, [box.path("go")])
    run.wait_lines(1)
    disk.fail("*", "EIO")
    begin = time.monotonic()
    write(box.path("go"), b"")
    within(20, lambda: hold_of(daemon) != "", "it is on hold")
    within(20, lambda: "on hold" in run.errors(), "the log")
    time.sleep(2 * (time.monotonic() - begin))  # most of what is waited for is the hold, however slow it came
    disk.clear()
    told = run.finish()[-1]
    equal(told[0], list(range(N)), "samples")
    contains(told[1][0], "on hold", disk.path, "EIO", "trying again")
    equal(told[2:], ["", True], "stats")
    contains(run.errors(), "can be read again")


@case("a read that does not come back is told: in the log once, in dlctl jobs, to the client; and nothing of it is lost")
def _(box):
    source = box.folder_of_files("files", N)
    disk = FailingFs(box, source)
    rows = Table()
    for reading in ("auto", "threads"):
        with rows.row(reading):
            daemon = box.daemon({"d": disk.path}, name=reading, reader=reading)
            reader = daemon.reader("d", **RANK)
            reader.wait_lines(8)
            equal(hold_of(daemon), "", "at first")
            disk.hang("*", ops="open,read")
            within(40, lambda: "has not come back for" in hold_of(daemon), "dlctl jobs says so")
            contains(hold_of(daemon), "d: reading class")
            within(40, lambda: "on hold: d: reading class" in reader.errors(), "the client is told")
            disk.clear()
            check_whole(reader.good(), source)
            equal(daemon.objects("errors"), [], "nothing of it is damage")
            equal(daemon.log().count("its disk or server may hang"), 1, "times in the log")
            daemon.stop()
    rows.done()


@case("while a mount hangs others attach, ask, are served and leave; who attaches to it waits and is told")
def _(box):
    source = box.folder_of_files("files", N)
    other = box.folder_of_files("other", N)
    disk = FailingFs(box, source)
    daemon = box.daemon({"d": disk.path, "e": other}, read_depth=16)
    equal(len(daemon.read("d", job="first")), N, "samples before")
    disk.hang("*")
    waiting = [daemon.reader("d", job=f"waits{number}", **RANK) for number in range(3)]
    within(20, lambda: "does not answer" in waiting[0].errors(), "it is told")
    for number in range(3):
        equal([row["name"] for row in daemon.objects("datasets")], ["d", "e"], "dlctl datasets")
        daemon.status()
        check_whole(daemon.read("e", job=f"other{number}", **RANK), other)
    waiting[2].process.kill()
    waiting[2].finish()
    daemon.signal(signal.SIGHUP)
    daemon.wait_log("configuration read again")
    disk.clear()
    for reader in waiting[:2]:
        check_whole(reader.good(), source)


main()
