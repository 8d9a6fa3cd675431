#!/usr/bin/env python3
"""Trainers and the daemon die or stop at bad moments; the others lose nothing."""
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import (HandClient, attach_body, case, check_sequence, contains, equal, main, request, within)

PICTURES = {"pipeline": "resize(64) center_crop(64)"}
RING_BYTES = 2 * 5 * 64 * 64 * 3  # two slots of five such pictures; the order tables of running jobs come and go below it


@case("a trainer killed while it holds a lease: its memory and its rank are free again, others lose nothing")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 100)})
    other = daemon.reader("d", job="other", epochs=30, batch=5, delay_ms=10, **PICTURES)
    other.wait_lines(5)
    memory, descriptors = daemon.memory_used(), daemon.n_descriptors()
    for _ in range(5):
        victim = daemon.reader("d", job="victim", epochs=100, batch=5, slots=2, delay_ms=50, **PICTURES)
        victim.wait_lines(10)
        equal(daemon.memory_used() > memory + RING_BYTES, True, "the victim has a ring")
        victim.process.kill()
        victim.process.wait()
        within(1, lambda: daemon.memory_used() < memory + RING_BYTES // 10 and daemon.n_descriptors() == descriptors,
               "all of it is back")
    # The rank can be taken at once again.
    equal(len(daemon.read("d", job="victim", batch=5, **PICTURES)), 100, "samples of the successor")
    check_sequence(other.good(), 100, batch=5, epochs=30)


@case("a lease that is held by hand and never released does not hold up the other rank of the job")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 100)})
    client = HandClient(daemon.socket)
    client.attach("d", job="pair", world=2, rank=0, batch=2)
    equal(len(client.descriptors), 3, "descriptors of the attach reply")
    lines = daemon.read("d", job="pair", world=2, rank=1, batch=2, epochs=5)
    check_sequence(lines, 100, batch=2, epochs=5, world=2, rank=1)
    client.close()
    within(1, lambda: daemon.objects("jobs") == [], "the job is gone with its last rank")


@case("clients that vanish in the middle of attach leave nothing behind")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 50)})
    daemon.read("d")
    before = daemon.at_rest()
    steady = daemon.reader("d", job="steady", epochs=40, batch=5, delay_ms=5)
    for number in range(60):
        client = HandClient(daemon.socket)
        client.send(request("attach", attach_body("d", job=f"m{number % 7}", rank=number % 3, world=3, batch=8,
                                                  pipeline="random_resized_crop(100)")))
        if number % 3 == 0:
            time.sleep(random.random() * 0.01)
        client.close()
    check_sequence(steady.good(), 50, batch=5, epochs=40)
    within(2, lambda: daemon.at_rest() == before, "memory and descriptors of before")
    equal(daemon.objects("jobs"), [], "jobs")


@case("readers killed at random moments, again and again")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 50)})
    fresh = daemon.memory_used()
    daemon.read("d")
    before = daemon.at_rest()
    equal(before[0], fresh, "memory without the first reader's ring")
    steady = daemon.reader("d", job="steady", epochs=60, batch=5, delay_ms=5, **PICTURES)
    for number in range(25):
        readers = [daemon.reader("d", job=f"r{number}", world=2, rank=rank, epochs=100, batch=3, **PICTURES)
                   for rank in range(2)]
        time.sleep(random.random() * 0.1)
        for reader in readers:
            reader.process.kill()
            reader.process.wait()
    check_sequence(steady.good(), 50, batch=5, epochs=60)
    within(2, lambda: daemon.at_rest() == before, "memory and descriptors of before")


@case("a stopped trainer fills its own ring and no more; when it goes on it has lost nothing")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 100)})
    terms = dict(PICTURES, job="pair", world=2, batch=5, epochs=6)
    stopped = daemon.reader("d", rank=0, delay_ms=30, **terms)
    stopped.wait_lines(10)
    stopped.process.send_signal(signal.SIGSTOP)
    time.sleep(0.3)
    memory = daemon.memory_used()
    other = daemon.reader("d", rank=1, **terms)
    check_sequence(other.good(), 100, batch=5, epochs=6, world=2, rank=1)
    within(2, lambda: daemon.memory_used() < memory + RING_BYTES // 10, "the stopped rank costs what it did")
    daemon.quiet_for(1, 100)  # a stopped rank costs no CPU; TSan has a thread of its own that wakes up
    [job] = daemon.objects("jobs")
    [rank] = job["ranks"]
    equal(rank["n_ready"] + rank["n_leased"], rank["n_slots"], "its ring is full")
    stopped.process.send_signal(signal.SIGCONT)
    check_sequence(stopped.good(), 100, batch=5, epochs=6, world=2, rank=0)


@case("when the daemon is killed, readers end with an error that names the socket")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 100)})
    readers = [daemon.reader("d", job=f"j{number}", epochs=10000, delay_ms=delay, slots=2)
               for number, delay in enumerate((0, 5, 100))]
    for reader in readers:
        reader.wait_lines(3)
    daemon.kill()
    for reader in readers:
        within(1, lambda reader=reader: reader.process.poll() is not None, "a reader ends")
        status, _ = reader.finish()
        equal(status in (1, 3), True, f"exit status {status}")
        contains(reader.errors(), daemon.socket)


@case("a reader that waits in vain for a full ring's batch hears of the daemon's death too")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 100)})
    client = HandClient(daemon.socket)
    client.attach("d", batch=2)
    daemon.kill()
    equal(client.closed(1), True, "the connection is closed")
    client.close()


@case("a daemon that is started again after kill -9 serves at the same socket, with the same index")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 30)})
    daemon.read("d")
    digest = daemon.objects("datasets")[0]["digest"]
    for _ in range(3):
        daemon.kill()
        equal(os.path.exists(daemon.socket), True, "the dead daemon's socket file is still there")
        daemon.start()
        check_sequence(daemon.read("d"), 30)
        equal(daemon.objects("datasets")[0]["digest"], digest, "digest")


main()
