#!/usr/bin/env python3
"""The names of a dataset's classes, as a rank asks for them: in the order of the labels, however many there are."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import HandClient, case, contains, equal, field, fields_of, main, request, write

PACKET_MAX = 65536


def ask(client, first=0):
    """Returns (names, next, number of classes) of one page."""
    client.send(request("classes", field(1, first)))
    packet = client.receive()
    equal(len(packet) <= PACKET_MAX, True, f"a page of {len(packet)} bytes fits a packet")
    reply = fields_of(fields_of(packet)[16][0])
    return reply[1], reply[2][0] if 2 in reply else 0, reply[3][0]


def ask_all(client):
    names, first, n_pages = [], 0, 0
    while True:
        page, first, n_classes = ask(client, first)
        names += page
        n_pages += 1
        if first == 0:
            return names, n_classes, n_pages


@case("a rank is told the classes of its dataset in the order of their labels, in pages that fit packets")
def _(box):
    few = box.folder_of_files("few", 6, n_classes=3)
    many = sorted(f"{number:05d}{'long name' * 20}" for number in range(2000))
    for name in many:
        write(box.path("many", name, "a.jpg"), b"a")
    write(box.path("odd", "w\xf6rter".encode("latin-1").decode("utf-8", "surrogateescape"), "a.jpg"), b"a")
    daemon = box.daemon({"few": few, "many": box.path("many"), "odd": box.path("odd")})
    for dataset, expected in (("few", ["class000", "class001", "class002"]), ("many", many)):
        client = HandClient(daemon.socket)
        client.attach(dataset, job=dataset)
        names, n_classes, n_pages = ask_all(client)
        equal([name.decode() for name in names], expected, f"classes of {dataset}")
        equal(n_classes, len(expected), "number of classes")
        equal(n_pages > 1, dataset == "many", "pages")
        equal(ask(client, n_classes), ([], 0, n_classes), "behind the last one")
        equal(ask(client, 2**32 - 1), ([], 0, n_classes), "far behind it")
        client.close()
    client = HandClient(daemon.socket)
    client.attach("odd", job="odd")
    equal(ask_all(client)[0], [b"w\xf6rter"], "a name that is no UTF-8")
    client.close()


@case("who is not attached has no classes to ask for")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 4)})
    client = HandClient(daemon.socket)
    client.send(request("classes"))
    error = fields_of(fields_of(client.receive())[3][0])
    contains(error[2][0].decode(), "attach first")
    client.close()


main()
