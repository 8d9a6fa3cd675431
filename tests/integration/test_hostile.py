#!/usr/bin/env python3
"""Clients that send garbage, too much, descriptors, or scribble over their page: their connection is closed with a
reason in the log, and nobody else notices."""
import contextlib
import json
import mmap
import os
import random
import signal
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import (HandClient, Table, attach_body, case, check_sequence, contains, equal, field, main, patience, request, varint,
                     within, write)

N = 100
PAGE = 4096
RELEASED_OFFSET = 128  # of struct dlp_client_page: waiting, n_taken, released[], a cache line each


class Scene:
    """A daemon with a steady reader beside which somebody misbehaves."""

    def __init__(self, box):
        self.daemon = box.daemon({"d": box.folder_of_files("d", N)})
        self.daemon.read("d")
        self.before = self.daemon.at_rest()
        self.steady = self.daemon.reader("d", job="steady", epochs=8, batch=4, delay_ms=5)
        self.steady.wait_lines(4)

    def end(self):
        """The steady reader got everything; nothing is left of the others."""
        check_sequence(self.steady.good(), N, batch=4, epochs=8)
        within(2, lambda: self.daemon.at_rest() == self.before,
               "memory and descriptors of before")
        equal(self.daemon.objects("jobs"), [], "jobs")


def expect_closed(scene, client, what, *words):
    log_before = len(scene.daemon.log())
    equal(client.closed(), True, f"closed after {what}")
    client.close()
    within(2, lambda: len(scene.daemon.log()) > log_before or words == (), f"a reason in the log after {what}")


@case("packets that are no message close the connection with a reason")
def _(box):
    scene = Scene(box)
    chance = random.Random()
    packets = [b"\xff" * 100, b"\n", b"garbage", bytes(2), varint(2**64 - 1) * 10, field(1, 1) + b"\x52\xff\xff\xff\x7f",
               request("attach", b"\xff\xff"), bytes(range(256)) * 200]
    packets += [bytes(chance.randrange(256) for _ in range(chance.randrange(2, 200))) for _ in range(40)]
    log_before = scene.daemon.log()
    for packet in packets:
        client = HandClient(scene.daemon.socket)
        client.send(packet)
        # Random bytes may happen to be a message; then there is an answer, else the end. Never silence.
        client.socket.settimeout(60)
        client.receive()
        client.close()
    new = scene.daemon.log()[len(log_before):]
    contains(new, "pid")
    scene.end()


@case("a message that ends in the middle, and every flipped bit of a good one")
def _(box):
    scene = Scene(box)
    good = request("attach", attach_body("d", job="flip", batch=2))
    for length in range(1, len(good), 3):
        client = HandClient(scene.daemon.socket)
        client.send(good[:length])
        client.receive()
        client.close()
    for bit in range(0, len(good) * 8, 5):
        client = HandClient(scene.daemon.socket)
        flipped = bytearray(good)
        flipped[bit // 8] ^= 1 << bit % 8
        client.send(bytes(flipped))
        client.receive()
        client.close()
    scene.end()


@case("a packet over the limit closes the connection with a reason")
def _(box):
    scene = Scene(box)
    for n_bytes in (65537, 100000):
        client = HandClient(scene.daemon.socket)
        try:
            client.send(field(3, b"x" * n_bytes))
        except OSError:
            client.close()  # the socket's own buffer is the smaller limit
            continue
        equal(client.closed(), True, f"closed after {n_bytes} bytes")
        client.close()
    contains(scene.daemon.log(), "65,536")
    scene.end()


@case("descriptors that nobody asked for are not kept, and the connection is closed with a reason")
def _(box):
    scene = Scene(box)
    before = scene.daemon.n_descriptors()
    for n_descriptors in (1, 4, 200):
        client = HandClient(scene.daemon.socket)
        descriptors = [os.open("/dev/null", os.O_RDONLY) for _ in range(n_descriptors)]
        client.send(request("status"), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        equal(client.closed(), True, f"closed after {n_descriptors} descriptors")
        client.close()
    within(1, lambda: scene.daemon.n_descriptors() <= before, "no descriptor is kept")
    contains(scene.daemon.log(), "descriptor")
    scene.end()


@case("another version of the protocol is refused, naming both")
def _(box):
    scene = Scene(box)
    for version in (0, 1, 4000000000):
        client = HandClient(scene.daemon.socket)
        client.send(request("status", protocol=version))
        contains(client.receive().decode("utf-8", "replace"), version, "version 3")
        client.close()
    scene.end()


@case("a device that is no PCI bus id never becomes a path, and one that is not there is no error")
def _(box):
    scene = Scene(box)
    table = Table()
    for device in ("../../../../etc/passwd", "0000:00:00.0/..", "0000:00:00.0\n", "cuda:0", "0" * 5000, "0000:1b:00.0" * 400):
        with table.row(device[:40]):
            client = HandClient(scene.daemon.socket)
            client.send(request("attach", attach_body("d", job="near") + field(101, device)))
            reply = client.receive()
            contains(reply.decode(errors="replace"), "near_device", "is not a PCI bus id")
            equal(client.descriptors, [], "descriptors")
            client.close()
    for device in ("", "0000:00:00.0", "00000000:FF:1F.7"):
        with table.row(device):
            client = HandClient(scene.daemon.socket)
            client.send(request("attach", attach_body("d", job="near") + field(101, device)))
            client.receive()
            equal(len(client.descriptors), 3, "descriptors")
            client.close()
    table.done()
    scene.end()


@case("requests out of place are refused: seek before attach, attach twice, an empty request, one of the future")
def _(box):
    scene = Scene(box)
    client = HandClient(scene.daemon.socket)
    client.send(request("seek", field(1, 3)))
    equal(len(client.receive()) > 10, True, "an answer to seek before attach")
    client.close()
    client = HandClient(scene.daemon.socket)
    client.attach("d", job="twice")
    equal(len(client.descriptors), 3, "descriptors of the first attach")
    client.send(request("attach", attach_body("d", job="twice2")))
    client.receive()
    equal(len(client.descriptors), 3, "no more descriptors for the second")
    client.close()
    for packet in (field(1, 1) + field(2, 7), field(1, 1) + field(2, 8) + field(4000, b"later")):
        client = HandClient(scene.daemon.socket)
        client.send(packet)
        client.receive()
        client.close()
    client = HandClient(scene.daemon.socket)
    client.attach("d", job="seeker", batch=4)
    for epoch, step in ((2**40, 0), (0, 2**63), (0, 26), (2**64 - 1, 2**64 - 1)):
        client.send(request("seek", field(1, epoch) + field(2, step)))
        equal(len(client.receive()) > 10, True, f"an answer to seek {epoch} {step}")
    client.close()
    scene.end()


def scribbled(scene, job, write):
    """Attaches, waits for batches, lets `write` do something to the page, rings the daemon's bell."""
    client = HandClient(scene.daemon.socket)
    client.attach("d", job=job, batch=4)
    control, payload, bell = client.descriptors
    control_map = mmap.mmap(control, os.fstat(control).st_size, prot=mmap.PROT_READ)
    page = mmap.mmap(payload, PAGE)
    time.sleep(0.1)
    write(page, control_map)
    os.write(bell, struct.pack("<Q", 1))
    return client, page, control_map


@case("scribbling over the page closes the connection with a reason")
def _(box):
    scene = Scene(box)
    chance = random.Random()

    def ones(page, _):
        page[:] = b"\xff" * PAGE

    def noise(page, _):
        page[:] = bytes(chance.randrange(1, 256) for _ in range(PAGE))

    def future(page, _):
        page[RELEASED_OFFSET:RELEASED_OFFSET + 8] = struct.pack("<Q", 1000000)

    for number, write in enumerate((ones, noise, future)):
        client, page, control = scribbled(scene, f"scribble{number}", write)
        equal(client.closed(), True, f"closed after {write.__name__}")
        page.close()
        control.close()
        client.close()
    contains(scene.daemon.log(), "pid")
    scene.end()


@case("a page that changes all the time does no harm")
def _(box):
    scene = Scene(box)
    for number in range(5):
        client, page, control = scribbled(scene, f"restless{number}", lambda page, _: None)
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            place = random.randrange(PAGE // 8) * 8
            page[place:place + 8] = struct.pack("<Q", random.choice([0, 1, 2, 3, 2**63, 2**64 - 1]))
        try:
            os.write(client.descriptors[2], struct.pack("<Q", 1))
        except OSError:
            pass
        page.close()
        control.close()
        client.close()
    scene.end()


N_SLOTS_OFFSET, QUEUE_OFFSET, N_PUBLISHED_OFFSET = 40, 128, 384  # of struct dlp_control


def scribble_over_slots(client, n_batches):
    """Takes and releases so many batches as it should, and writes anything into their slots all the time."""
    control, payload, bell = client.descriptors
    noise, n_bytes, n_taken = os.urandom(1 << 16), os.fstat(payload).st_size, 0
    with mmap.mmap(control, os.fstat(control).st_size, prot=mmap.PROT_READ) as told, mmap.mmap(payload, n_bytes) as slots:
        n_slots = struct.unpack_from("<I", told, N_SLOTS_OFFSET)[0]

        deadline = time.monotonic() + patience(60)
        while n_taken < n_batches:
            equal(time.monotonic() < deadline, True, f"batches, {n_taken} so far")
            n = random.choice((8, 64, 4096))
            at = random.randrange(PAGE, n_bytes - n)
            slots[at:at + n] = random.choice((noise[:n], b"\xff" * n))
            for sequence in range(n_taken, struct.unpack_from("<Q", told, N_PUBLISHED_OFFSET)[0]):
                slot = struct.unpack_from("<I", told, QUEUE_OFFSET + 4 * (sequence % n_slots))[0]
                slots[RELEASED_OFFSET + 8 * slot:RELEASED_OFFSET + 8 * slot + 8] = struct.pack("<Q", sequence + 1)
                os.write(bell, struct.pack("<Q", 1))
                n_taken = sequence + 1


@case("a client that writes into its slots all the time, also while they are filled, mixed, padded and hidden, harms itself alone")
def _(box):
    rows = [{"tokens": [7] * (i % 60 + 1)} for i in range(80)]
    write(box.path("t.jsonl"), "".join(json.dumps(row) + "\n" for row in rows).encode())
    daemon = box.daemon({"d": box.folder_of_files("d", N), "p": box.folder_of_pictures("p", 40),
                         "t": {"path": box.path("t.jsonl"), "format": "jsonl"}})
    steady = daemon.reader("d", job="steady", epochs=8, batch=4, delay_ms=2)
    for dataset, pipeline in (("p", "image, label: random_resized_crop(32) to(float32) mixup(alpha=0.2, num_classes=9)"), ("p", "decode()"),
                              ("t", "tokens: to(int16) mlm(mask=1, vocab=29000, p=0.3) pad"), ("t", "tokens")):
        client = HandClient(daemon.socket)
        client.attach(dataset, job="scribbler", pipeline=pipeline, batch=8)
        scribble_over_slots(client, 100)
        client.close()
    check_sequence(steady.good(), N, batch=4, epochs=8)


@case("the control memory cannot be written, the payload neither shrunk nor grown")
def _(box):
    scene = Scene(box)
    client = HandClient(scene.daemon.socket)
    client.attach("d", job="sealed", batch=4)
    control, payload, _ = client.descriptors
    for action in (lambda: mmap.mmap(control, PAGE), lambda: os.pwrite(control, b"x", 0),
                   lambda: os.ftruncate(control, 0), lambda: os.ftruncate(payload, 0),
                   lambda: os.ftruncate(payload, 2**30)):
        try:
            action()
        except OSError:
            continue
        raise AssertionError("a sealed memory gave way")
    client.close()
    scene.end()


@case("a bell that rings without end, and one that is full, cost the others nothing")
def _(box):
    scene = Scene(box)
    client = HandClient(scene.daemon.socket)
    client.attach("d", job="bell", batch=4)
    for _ in range(2000):
        os.write(client.descriptors[2], struct.pack("<Q", 1))
    os.set_blocking(client.descriptors[2], False)
    try:
        os.write(client.descriptors[2], struct.pack("<Q", 2**64 - 3000))
    except OSError:
        pass
    client.close()
    scene.end()


@case("a client that never reads its replies is let go, or at least stops nobody")
def _(box):
    scene = Scene(box)
    client = HandClient(scene.daemon.socket)
    client.socket.settimeout(0.2)
    n_sent = 0
    try:
        for _ in range(20000):
            client.send(request("datasets"))
            n_sent += 1
    except OSError:
        pass
    equal(scene.daemon.dlctl("status").returncode, 0, f"dlctl status after {n_sent} unread replies")
    client.close()
    scene.end()


@contextlib.contextmanager
def stopped(daemon):
    """The daemon stands still meanwhile, so that what is sent is all there when it looks."""
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        daemon.process.send_signal(signal.SIGCONT)


def every_request():
    """One of each kind, as a client of this version would write it, and what is refused in each way."""
    packets = [request(kind) for kind in ("status", "datasets", "jobs", "errors", "classes", "seek")]
    packets += [request("attach", attach_body("d", job="gone")), request("attach", attach_body("nosuch")),
                request("attach", b""), request("status", protocol=1), request("seek", field(1, 2**40)),
                field(1, 2) + field(2, 1) + field(20, b""), field(1, 2) + field(2, 1) + field(20, field(1, 1)),
                field(1, 2) + field(2, 7), b"\xff" * 9]
    return packets


@case("a client that hangs up before it is answered, whatever it asked for and however often, ends only its connection")
def _(box):
    scene = Scene(box)
    for packet in every_request():
        with stopped(scene.daemon):
            clients = [HandClient(scene.daemon.socket) for _ in range(4)]
            for number, client in enumerate(clients):
                for _ in range(1 + number * 3):
                    client.send(packet)
                client.close()
        equal(scene.daemon.dlctl("status").returncode, 0, f"dlctl status after {packet!r}")
    for packet in every_request():  # the same from a rank that is attached
        client = HandClient(scene.daemon.socket)
        client.attach("d", job="hangs up", batch=4)
        with stopped(scene.daemon):
            client.send(packet)
            client.send(packet)
            client.close()
        equal(scene.daemon.dlctl("status").returncode, 0, f"dlctl status after {packet!r}, attached")
    scene.end()


@case("a client of another version that does not read its refusals ends only its connection")
def _(box):
    scene = Scene(box)
    client = HandClient(scene.daemon.socket)
    client.socket.settimeout(0.2)
    n_sent = 0
    try:
        for _ in range(20000):
            client.send(request("status", protocol=1))
            n_sent += 1
    except OSError:
        pass
    equal(scene.daemon.dlctl("status").returncode, 0, f"dlctl status after {n_sent} unread refusals")
    client.close()
    scene.end()


@case("hundreds of connections that say nothing stop nobody")
def _(box):
    scene = Scene(box)
    clients = []
    for _ in range(300):
        clients.append(HandClient(scene.daemon.socket))
    check_sequence(scene.daemon.read("d", job="beside", batch=9), N, batch=9)
    for client in clients:
        client.close()
    scene.end()


main()
