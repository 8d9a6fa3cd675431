#!/usr/bin/env python3
"""memory_limit is a promise, both ways: the daemon has no more than it says, and whoever was admitted needs no more than
he was given, whatever others ask for meanwhile."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

from failing_fs import FailingFs
from harness import DLCTL, case, check_sequence, contains, equal, main, within
from pyclient import trainer
from resident import Resident


@case("rings that a client keeps after it has left stay charged, and who comes next is refused instead of let in")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 64)}, memory_limit="64MiB")
    before = daemon.memory_used()
    with Resident(daemon, 64):
        [refusal, n_opened, n_held] = trainer(box, daemon, f"""
            kept = []
            def attach():
                loader = dlclient.Loader("d", batch_size=16, slots=4, job=f"j{{len(kept)}}", pipeline="center_crop(224)")
                batch = next(iter(loader))
                kept.append((batch["image"], int(batch["image"].sum())))
                loader.close()
            try:
                while len(kept) < 8:
                    attach()
                out("all were let in")
            except dlclient.Error as error:
                out(str(error))
            out(len(kept))
            assert all(int(image.sum()) == total for image, total in kept)
            status = os.popen({DLCTL!r} + " --socket " + os.environ["DATALOADERD_SOCKET"] + " --format json status")
            out([fact["value"] for fact in json.load(status)["obtained"] if fact["name"] == "held_by_left_clients"])
            kept.clear()
            gc.collect()
            attach()
        """)
    contains(refusal, "memory_limit")
    equal(0 < n_opened < 8, True, f"{n_opened} were let in")
    equal(int(n_held[0]) > n_opened * 4 * 16 * 224 * 224 * 3, True, f"{n_held} bytes are shown")
    within(5, lambda: daemon.memory_used() == before, "all of it is back when the client has ended")


CHAIN = "resize(2600) hflip(1) resize(2500) hflip(1) resize(64) center_crop(32)"


@case("pixels between the steps of a pipeline are paid for before they are taken, by one worker and by sixteen")
def _(box):
    folder = box.folder_of_pictures("d", 12)
    for workers in (1, 16):
        daemon = box.daemon({"d": folder}, memory_limit="256MiB", workers=workers)
        before = daemon.memory_used()
        with Resident(daemon, 256):
            readers = [daemon.reader("d", job=f"j{i}", batch=4, epochs=1, pipeline=CHAIN) for i in range(2)]
            for reader in readers:
                check_sequence(reader.good(120), 12, batch=4, epochs=1)
        within(2, lambda used=before, asked=daemon: asked.memory_used() == used, "the memory of the jobs is back")
        waits = next(int(fact["value"]) for fact in daemon.status()["counters"] if fact["name"] == "n_scratch_waits")
        equal(waits > 0, workers > 1, f"pictures waited for each other's memory: {waits}")
        daemon.stop()


@case("a picture that needs more than all scratch is damaged, with the numbers, and takes nothing")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 8)}, memory_limit="256MiB", workers=2)
    with Resident(daemon, 256):
        _, lines = daemon.reader("d", batch=4, epochs=1, shuffle=False,
                                 pipeline="resize(6000) hflip(1) resize(5000) center_crop(32)").finish(60)
    equal(lines, [], "batches")
    within(5, lambda: "quarter of memory_limit" in daemon.log(), "the log says what is allowed")


@case("64 workers stay within memory_limit and its allowance")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 40, width=400, height=300)}, memory_limit="256MiB", workers=64)
    with Resident(daemon, 256):
        check_sequence(daemon.read("d", batch=16, epochs=3, pipeline="random_resized_crop(224) hflip(0.5)"), 40,
                       batch=16, epochs=3)


@case("a picture that needs more than its part of a slot is damaged, and the message says which word makes room for it")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 16, width=300, height=300)}, memory_limit="64MiB", workers=2)
    reader = daemon.reader("d", batch=16, epochs=1, pipeline="decode")
    reader.finish(60)
    contains(reader.errors(), "300 x 300 pixels", "decode(max_pixels=90000)")
    with Resident(daemon, 64):
        check_sequence(daemon.read("d", batch=16, epochs=2, pipeline="decode(max_pixels=90000)"), 16, batch=16, epochs=2)
    daemon.refused("d", "memory_limit", batch=16, pipeline="decode(max_pixels=900000)")


@case("large files of two jobs take turns in memory that was paid for when they came")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 24, size=6 << 20)}, memory_limit="160MiB", workers=4)
    with Resident(daemon, 160):
        readers = [daemon.reader("d", job=f"j{i}", batch=2, slots=2, epochs=3) for i in range(2)]
        for reader in readers:
            check_sequence(reader.good(120), 24, batch=2, epochs=3)


@case("who opens a large loader after another one waits until that one's samples are dropped and its memory is back")
def _(box):
    disk = FailingFs(box, box.folder_of_pictures("source", 64))
    daemon = box.daemon({"d": disk.path}, memory_limit="64MiB")
    disk.delay("*.png", 3000, ops="read")
    [waited] = trainer(box, daemon, """
        def large():
            return dlclient.Loader("d", batch_size=32, slots=4, pipeline="center_crop(224)")
        loader = large()
        refused(dlclient.LimitReached, large, "memory_limit", "raise memory_limit", "smaller batch")
        time.sleep(0.3)                                     # samples are being read
        loader.close()
        began = time.monotonic()
        with large():
            out(time.monotonic() - began)
    """)
    equal(1.5 < waited < 8, True, f"it was opened after {waited} s")


@case("a job that runs goes on through its epochs while others ask for what is left, and are refused")
def _(box):
    n = 20000
    daemon = box.daemon({"d": box.folder_of_files("d", n, size=16)}, memory_limit="64MiB", workers=2)
    with Resident(daemon, 64):
        reader = daemon.reader("d", job="first", batch=500, slots=2, epochs=3, order="torch")
        reader.wait_lines(1)
        refused = 0
        while reader.process.poll() is None and refused < 200:
            asked = daemon.dlctl("read", "d", "--job", "second", "--batch", n, "--slots", 8,
                                 "--pipeline", "raw")
            contains(asked.stderr, "memory_limit")
            refused += 1
        check_sequence(reader.good(120), n, batch=500, epochs=3)
    equal(refused > 0, True, "others were refused meanwhile")


main()
