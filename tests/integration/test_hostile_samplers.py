#!/usr/bin/env python3
"""Clients whose samplers and columns are wrong on purpose: each is refused with a sentence, or its connection is closed with a reason
in the log; nobody else notices, and no descriptor and no memory is kept."""
import fcntl
import os
import socket
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import (HandClient, attach_body, case, check_sequence, contains, equal, field, main, request, within)

N = 100
SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
FLOAT64 = 7


class Scene:
    """A daemon with a steady reader beside which somebody misbehaves."""

    def __init__(self, box, **settings):
        self.daemon = box.daemon({"d": box.folder_of_files("d", N)}, **settings)
        self.daemon.read("d")
        self.before = self.daemon.at_rest()
        self.steady = self.daemon.reader("d", job="steady", epochs=8, batch=4, delay_ms=5)
        self.steady.wait_lines(4)

    def end(self):
        check_sequence(self.steady.good(), N, batch=4, epochs=8)
        within(5, lambda: self.daemon.at_rest() == self.before,
               "memory and descriptors of before")
        equal(self.daemon.objects("jobs"), [], "jobs")

    def answer(self, body, descriptors=()):
        """The reply to a request to attach, as text; "" if the connection was closed instead."""
        client = HandClient(self.daemon.socket)
        try:
            client.send(request("attach", body), list(descriptors))
            try:
                reply = client.receive()
            except ConnectionResetError:
                reply = b""
            equal(client.descriptors, [], "descriptors that came with a refusal")
            return reply.decode("utf-8", "replace")
        finally:
            client.close()
            for descriptor in descriptors:
                os.close(descriptor)


def memory(n_bytes=8 * N, seals=SEALS, content=None):
    descriptor = os.memfd_create("columns", os.MFD_ALLOW_SEALING)
    os.write(descriptor, struct.pack("<d", 1.0) * (n_bytes // 8) + bytes(n_bytes % 8) if content is None else content)
    if seals:
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


def column(name="w", dtype=FLOAT64, offset=0, n_values=N):
    return field(25, field(1, name) + field(2, dtype) + field(3, offset) + field(4, n_values))


def wish(sampler="weighted(column=w)", columns=None, digest="d", **terms):
    return attach_body("d", job="bad", **terms) + field(24, sampler) + \
        (column() if columns is None else columns) + field(26, digest)


def with_holes(n_bytes):
    """One page is there, the others are not."""
    descriptor = os.memfd_create("columns", os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, n_bytes)
    os.pwrite(descriptor, b"\1", 0)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
    return descriptor


def with_holes_and_pages_behind_its_end(n_bytes):
    """As many blocks as bytes, but in the wrong place."""
    import ctypes
    descriptor = os.memfd_create("columns", os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, n_bytes)
    keep_size = 1
    r = ctypes.CDLL(None, use_errno=True).fallocate(descriptor, keep_size, ctypes.c_long(n_bytes), ctypes.c_long(2 * n_bytes))
    equal(r, 0, "fallocate")
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
    return descriptor


def huge_pages():
    """Pages of hugetlbfs: none of them is there, and the kernel does not call that a hole."""
    try:
        descriptor = os.memfd_create("columns", os.MFD_ALLOW_SEALING | os.MFD_HUGETLB)
    except OSError:  # a kernel without hugetlbfs
        return with_holes(1 << 20), "holes"
    os.ftruncate(descriptor, 1 << 30)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
    return descriptor, "hugetlb"


def plain_file():
    descriptor, path = tempfile.mkstemp()
    os.unlink(path)
    os.write(descriptor, bytes(8 * N))
    return descriptor


@case("memory that is not sealed, has holes, is too short or is no memory at all is refused with a sentence")
def _(box):
    scene = Scene(box)
    unix, other = socket.socketpair()
    other.close()
    reader, writer = os.pipe()
    os.close(writer)
    contains(scene.answer(wish()), "columns", "memory did not come")
    for descriptor, words in ((memory(seals=0), "sealed"),
                              (memory(seals=fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW), "sealed"),
                              (memory(seals=fcntl.F_SEAL_WRITE), "sealed"),
                              (plain_file(), "sealed"),
                              (os.open("/", os.O_RDONLY | os.O_DIRECTORY), "sealed"),
                              (os.open("/", os.O_PATH), "sealed"),
                              (os.open("/dev/zero", os.O_RDONLY), "sealed"),
                              (unix.detach(), "sealed"),
                              (reader, "sealed"),
                              (with_holes(1 << 20), "holes"),
                              (with_holes_and_pages_behind_its_end(1 << 20), "holes"),
                              huge_pages(),
                              (memory(8 * N - 1), "799 bytes"),
                              (memory(0), "0 bytes")):
        contains(scene.answer(wish(), [descriptor]), "columns", words)
    scene.end()


@case("columns that lie outside of their memory, or are not columns, are refused with their name and the numbers")
def _(box):
    scene = Scene(box)
    for columns, *words in ((column(offset=8), "\"w\"", "100 values at 8"), (column(offset=4, n_values=1), "at 4"),
                            (column(offset=2**64 - 8), "at 18446744073709551608"), (column(n_values=2**61), str(2**61)),
                            (column(n_values=2**61 + 1), str(2**61 + 1)), (column(n_values=2**64 - 1), str(2**64 - 1)),
                            (column(offset=2**63, n_values=2**60), str(2**63)), (column(dtype=99), "dtype"),
                            (column(dtype=0), "dtype"), (column(dtype=2**32 - 1), "dtype"), (column(name=""), "name"),
                            (column(name="n" * 128), "name"), (column(name="n" * 5000), "name"),
                            (column(name="\x1b[31mw"), "name"), (column() + column(), "twice"),
                            (column(n_values=0), "no values"), (column() * 17, "17", "16"), (column() * 1000, "1000")):
        contains(scene.answer(wish(columns=columns), [memory()]), "columns", *words)
    contains(scene.answer(wish(digest="d" * 4000), [memory()]), "digest")
    contains(scene.answer(wish(columns=column(name="\xff".encode("latin-1"))), [memory()]) + scene.daemon.log(), "")
    scene.end()


@case("more than one descriptor, or one with another request, closes the connection with a reason")
def _(box):
    scene = Scene(box)
    for n in (2, 3, 100, 253):
        contains(scene.answer(wish(), [memory() for _ in range(n)]), "descriptors", "more than a request has")
    contains(scene.daemon.log(), "descriptors")
    for kind in ("seek", "status", "datasets", "jobs", "errors", "classes"):
        client, descriptor = HandClient(scene.daemon.socket), memory()
        client.send(request(kind), [descriptor])
        os.close(descriptor)
        equal(client.closed(), True, f"closed after {kind} with a descriptor")
        client.close()
    for _ in range(20):
        client, descriptor = HandClient(scene.daemon.socket), memory()
        client.send(b"", [descriptor])  # a packet without a byte
        os.close(descriptor)
        equal(client.closed(), True, "closed after an empty packet with a descriptor")
        client.close()
    client = HandClient(scene.daemon.socket)
    for descriptor in (memory(), memory()):  # with the next requests, before the first one is answered
        client.send(request("attach", wish()), [descriptor])
        os.close(descriptor)
    client.receive()
    client.close()
    scene.end()


@case("samplers of any text and any size are refused with a sentence")
def _(box):
    scene = Scene(box, memory_limit="64MiB")
    chance = b"weighted(column=w,n=) \x01\xff64:128{}\"%s%n"
    for sampler, *words in (("weighted(column=w, n=1000000000)", "memory"), ("random(n=1000000000)", "memory"),
                            ("random(n=1000000000000000000)", "n"), ("weighted(column=w, n=1e300)", "n"),
                            ("weighted(column=w, n=-1)", "n"), ("repeat(1000000000000)", "times", "from 1 to 65536"),
                            ("random(replacement=true, n=1000000000)", "memory"), ("x" * 60000, "longer"),
                            ("repeat(2) " * 6000, "longer"), ("repeat(2) " * 20, "first"), ("(" * 2000, "sampler"),
                            ("weighted(column=" + "w" * 2000 + ")", ""), ("weighted(column=w, n=99999999999999999999)", "n")):
        contains(scene.answer(wish(sampler), [memory()]), *words)
    for i in range(len(chance)):
        scene.answer(wish(chance[i:] + chance[:i]), [memory()])
    scene.end()


@case("columns whose values cannot be used end their own job with a sentence")
def _(box):
    scene = Scene(box)
    for i, (value, word) in enumerate(((float("nan"), "nan"), (-1.0, "-1"), (float("inf"), "inf"), (0.0, "0"))):
        path = box.path(f"w{i}.txt")
        with open(path, "w", encoding="ascii") as file:
            file.write(f"{value}\n" * N)
        message = scene.daemon.refused("d", "w", sampler="weighted(column=w)", column=f"w={path}")
        contains(message.lower(), word)
    scene.end()


@case("a client that leaves at once while its sampler's order is being made leaves nothing behind")
def _(box):
    scene = Scene(box)
    for sampler in ("weighted(column=w, n=30000000)", "random(n=30000000)", "length_grouped(column=w)", "repeat(100000)") * 3:
        client, descriptor = HandClient(scene.daemon.socket), memory()
        client.send(request("attach", wish(sampler, batch=4)), [descriptor])
        os.close(descriptor)
        if sampler.startswith("w"):
            client.receive()
        client.close()
    scene.end()


main()
