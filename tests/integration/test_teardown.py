#!/usr/bin/env python3
"""Trainers that die: their ranks are free when the process is gone, whoever still holds its socket, and a run that is
started again at once gets in by itself."""
import ctypes
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import (SLOWER, HandClient, Skip, attach_body, case, contains, equal, fields_of, main, patience, request,
                     within)

EAGAIN, EINVAL, EPROTO, EADDRINUSE, ESHUTDOWN = 11, 22, 71, 98, 108

TRAINER = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from harness import HandClient
client = HandClient(sys.argv[2])
client.attach(sys.argv[3], job=sys.argv[4], world=int(sys.argv[5]))
if sys.argv[6] == "fork":
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
        os._exit(0)
    print(pid, flush=True)
else:
    print(os.getpid(), flush=True)
time.sleep(600)
"""


def start_trainer(box, daemon, job="run", world=1, fork=False):
    """A process that attaches and sleeps. Returns it, and the number of the child that it forked or its own."""
    support = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support")
    process = box.start([sys.executable, "-c", TRAINER, support, daemon.socket, "d", job, str(world),
                         "fork" if fork else "alone"], stdout=subprocess.PIPE)
    pid = int(process.stdout.readline())
    process.stdout.close()
    return process, pid


def error_of(packet):
    """(code, text, retry) of a reply, or None."""
    reply = fields_of(packet)
    if 3 not in reply:
        return None
    error = fields_of(reply[3][0])
    return error[1][0], error[2][0].decode(), bool(error[3][0]) if 3 in error else False


def attach_once(daemon, **terms):
    client = HandClient(daemon.socket)
    client.send(request("attach", attach_body("d", **terms)))
    error = error_of(client.receive())
    client.close()
    return error


def has_peer_pidfd(daemon):
    """Does the kernel tell of a process's end? Then the daemon holds a pidfd for each connection."""
    client = HandClient(daemon.socket)
    time.sleep(0.1 * SLOWER)
    kinds = [os.readlink(f"/proc/{daemon.pid}/fd/{each}") for each in os.listdir(f"/proc/{daemon.pid}/fd")]
    client.close()
    return any("pidfd" in kind for kind in kinds)


@case("a trainer that is killed leaves its rank at once, also if a child it forked holds the socket; the ring's memory is "
      "charged until the child lets go of it")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 50)})
    daemon.read("d")
    if not has_peer_pidfd(daemon):
        raise Skip("the kernel gives no pidfd of a peer")
    before = daemon.at_rest()
    trainer, child = start_trainer(box, daemon, fork=True)
    children = [child]
    box.cleanups.append(lambda: [os.kill(each, signal.SIGKILL) for each in children])
    equal(daemon.memory_used() > before[0], True, "the trainer has a ring")
    equal(attach_once(daemon, job="run")[0], EADDRINUSE, "its rank is taken")
    trainer.kill()
    trainer.wait()
    within(5, lambda: daemon.objects("jobs") == [], "the job is gone")
    os.kill(child, 0)  # it still lives
    equal(len(daemon.read("d", job="run")), 50, "samples of the successor")
    within(5, lambda: "held_by_left_clients" in {fact["name"] for fact in daemon.status()["obtained"]},
           "the child's hold on the ring is shown")
    equal(daemon.memory_used() > before[0], True, "and charged")
    os.kill(children.pop(), signal.SIGKILL)
    within(5, lambda: daemon.at_rest() == before, "memory and descriptors of before")


@case("a child that ends, or that a trainer forked before it attached, disturbs nobody")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 50)})
    _, child = start_trainer(box, daemon, fork=True)
    os.kill(child, signal.SIGKILL)
    time.sleep(0.3)
    equal(len(daemon.objects("jobs")), 1, "the rank is there")


class Dying:
    """Kills a trainer and holds it in the middle of its end, as a large one is held by its own memory: killed, its
    sockets still open."""
    SEIZE, CONTINUE, TRACE_EXIT = 0x4206, 7, 0x40

    def __init__(self, process):
        self.process = process
        libc = ctypes.CDLL(None, use_errno=True)
        self.ptrace = libc.ptrace
        self.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        if self.ptrace(self.SEIZE, process.pid, None, self.TRACE_EXIT) != 0:
            raise Skip(f"ptrace: {os.strerror(ctypes.get_errno())}")
        process.kill()
        os.waitpid(process.pid, 0)  # it has come to its end, and stands there

    def finish(self):
        self.ptrace(self.CONTINUE, self.process.pid, None, None)
        self.process.wait()


@case("a healthy holder of a rank is named at once; one that is being torn down is waited for")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 50)})
    trainer, pid = start_trainer(box, daemon)
    daemon.refused("d", f"process {pid}", "attached already", job="run", world=1, rank=0)
    daemon.refused("d", "batch_size", job="run", world=1, rank=0, batch=2)

    dying = Dying(trainer)
    for terms in ({}, {"batch": 2}, {"seed": 5, "world": 3, "rank": 2}):
        code, text, retry = attach_once(daemon, job="run", **terms)
        equal((code, retry), (EAGAIN, True), f"told to come again with {terms}")
        contains(text, f"process {pid}", "ending")
    successor = daemon.reader("d", job="run", world=1, rank=0, batch=2)
    within(5, lambda: "is ending" in successor.errors(), "the successor says what it waits for")
    dying.finish()
    equal(len(successor.good()), 50, "samples of the successor")


@case("a job of which one rank is ending and one is healthy keeps its terms")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 50)})
    other = HandClient(daemon.socket)
    equal(error_of(other.attach("d", job="two", world=2, rank=1)), None, "the healthy one")
    second, _ = start_trainer(box, daemon, job="two", world=2)
    dying = Dying(second)
    equal(attach_once(daemon, job="two", world=2, rank=0)[2], True, "the rank that is ending is waited for")
    equal(attach_once(daemon, job="two", world=2, rank=0, seed=1)[0], EINVAL, "other terms are not")
    dying.finish()
    other.close()


@case("a run that resumes elsewhere waits for ranks of its old self that are being torn down")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 50)})
    trainer, _ = start_trainer(box, daemon, world=3)
    terms = {"job": "run", "world": 3, "rank": 1, "first_position": 10}
    code, text, retry = attach_once(daemon, **terms)
    equal((code, retry), (EINVAL, False), text)
    contains(text, "position", "same state")
    dying = Dying(trainer)
    code, text, retry = attach_once(daemon, **terms)
    equal((code, retry), (EAGAIN, True), text)
    dying.finish()
    within(2, lambda: attach_once(daemon, **terms) is None, "it gets in")


@case("a run that is killed and started again at once gets in by itself, ranks in any order")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 60)})
    for _ in range(5):
        old = [daemon.reader("d", job="run", world=3, rank=rank, epochs=1000, delay_ms=5) for rank in range(3)]
        for reader in old:
            reader.wait_lines(2)
        for reader in old:
            reader.process.kill()
        new = [daemon.reader("d", job="run", world=2, rank=rank, limit=3, partition="exact") for rank in (1, 0)]
        for reader in new:
            equal(len(reader.good()), 3, "samples of a restarted rank")
        for reader in old:
            reader.process.wait()


@case("the daemon's last word tells a restart from the client's own fault")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 240)}, workers=1)
    client = HandClient(daemon.socket)
    client.send(b"\xff\xff\xff")
    equal(error_of(client.receive())[0], EPROTO, "code for rubbish")
    client.close()
    waiting, late = HandClient(daemon.socket), HandClient(daemon.socket)
    waiting.attach("d", batch=60, pipeline="resize(800) center_crop(800)")  # being filled, for seconds, when the end comes
    daemon.signal(signal.SIGTERM)
    daemon.wait_log("completing the batches")
    late.send(b"\xff\xff\xff")
    equal(error_of(late.receive())[0], ESHUTDOWN, "code for whatever ends while the daemon stops")
    late.close()
    waiting.close()
    daemon.process.wait(patience(10))


main()
