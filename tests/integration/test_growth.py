#!/usr/bin/env python3
"""A thousand epochs of a tiny dataset: every one in its order, and not a byte of growth."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import VARIANT, case, check_sequence, equal, main, patience, within

N_SAMPLES, PER_RANK = 7, 4
N_EPOCHS = 1000 if VARIANT == "release" else 200
WARM_EPOCHS = 50
REST_EPOCHS = 600  # so that the readers are still there when the last look is taken: a pipe holds a hundred of them
# What the allocator's own habits may add. One leaked block of 1,024 bytes an epoch would be 950 KiB.
MAY_GROW_KIB = 256


def look(daemon, ranks, n_epochs):
    """Stops the readers after so many epochs; memory, descriptors and resident KiB once all rings are full."""
    running = list(ranks)
    end = time.monotonic() + patience(120)
    while running and time.monotonic() < end:
        for reader in list(running):
            if len(reader.lines) >= PER_RANK * n_epochs:
                reader.process.send_signal(signal.SIGSTOP)
                running.remove(reader)
        time.sleep(0.001)
    equal(running, [], f"readers that have not come as far as epoch {n_epochs}")

    def full():
        return [rank["n_ready"] + rank["n_leased"] == rank["n_slots"] for job in daemon.objects("jobs")
                for rank in job["ranks"]] == [True, True]
    within(5, full, "two ranks are stopped in front of full rings")
    time.sleep(0.1)
    seen = (daemon.memory_used(), daemon.n_descriptors(), daemon.rss_kib())
    for reader in ranks:
        reader.process.send_signal(signal.SIGCONT)
    return seen


def check_growth(box, pipeline, folder):
    daemon = box.daemon({"d": folder})
    all_epochs = N_EPOCHS + REST_EPOCHS
    ranks = [daemon.reader("d", rank=rank, world=2, batch=2, epochs=all_epochs, job="long", pipeline=pipeline)
             for rank in range(2)]
    before = look(daemon, ranks, WARM_EPOCHS)
    after = look(daemon, ranks, N_EPOCHS)
    for rank, reader in enumerate(ranks):
        check_sequence(reader.good(120), N_SAMPLES, batch=2, epochs=all_epochs, world=2, rank=rank)
    # The order tables of the epochs in sight come and go, 28 bytes each; one kept of each epoch would be 26 KB.
    equal(abs(after[0] - before[0]) < 1024, True, f"accounted memory {before[0]} -> {after[0]}")
    equal(after[1], before[1], "descriptors")
    if VARIANT == "release":  # sanitizers keep freed memory for a while
        equal(after[2] - before[2] <= MAY_GROW_KIB, True, f"resident {before[2]} -> {after[2]} KiB")
    within(2, lambda: daemon.objects("jobs") == [], "the job is gone")


@case("a thousand epochs of raw files leave memory, descriptors and resident size as they were")
def _(box):
    check_growth(box, "raw", box.folder_of_files("d", N_SAMPLES))


@case("a thousand epochs of decoded and augmented pictures likewise")
def _(box):
    check_growth(box, "random_resized_crop(8) hflip(0.5)", box.folder_of_pictures("d", N_SAMPLES))


main()
