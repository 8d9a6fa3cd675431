#!/usr/bin/env python3
"""Libraries that are loaded when they are needed: a dataset of this machine needs none of them, and where one cannot be loaded,
what needs it says so, and nothing else suffers."""
import bz2
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import BUILD, DLCTL, Table, case, contains, equal, main, patience, write

LATE = {"libcurl.so.4": "libcurl4", "libarchive.so.13": "libarchive13", "libmicrohttpd.so.12": "libmicrohttpd12"}
LINES = b"".join(b'{"text": "line %d"}\n' % number for number in range(50))


def broken(box):
    """An environment in which the loader finds files under the libraries' names that are none."""
    for name in LATE:
        write(box.path("broken", name), b"this is no library, whatever its name says; " * 100)
    return {"LD_LIBRARY_PATH": box.path("broken")}


def auto(path):
    return {"path": path, "format": "auto"}


def maps_of(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        text = maps.read()
    return {name for name in LATE if name.partition(".so")[0] + ".so" in text}


@case("a dataset of this machine is served without them; what is compressed brings libarchive, a web server's libcurl")
def _(box):
    write(box.path("plain.jsonl"), LINES)
    write(box.path("packed.jsonl.bz2"), bz2.compress(LINES))
    table = Table()
    for path, loaded in ((box.path("plain.jsonl"), set()), (box.path("packed.jsonl.bz2"), {"libarchive.so.13"}),
                         ("http://127.0.0.1:1/x.jsonl", {"libcurl.so.4"})):
        with table.row(path):
            daemon = box.daemon({"d": auto(path)})
            if path.startswith("http"):
                daemon.refused("d", pipeline="text")
            else:
                equal(len(daemon.read("d", pipeline="text")), 50, "samples")
            equal(maps_of(daemon.pid), loaded, "what is loaded")
            daemon.stop()
    table.done()


@case("one that cannot be loaded is named by what needs it, with its package; all else goes on")
def _(box):
    write(box.path("plain.jsonl"), LINES)
    write(box.path("packed.jsonl.bz2"), bz2.compress(LINES))
    daemon = box.daemon({"there": auto("http://127.0.0.1:1/x.jsonl"), "packed": auto(box.path("packed.jsonl.bz2")),
                         "here": auto(box.path("plain.jsonl"))}, environment=broken(box))
    daemon.refused("there", "cannot load libcurl.so.4", LATE["libcurl.so.4"], pipeline="text")
    daemon.refused("packed", "cannot load libarchive.so.13", LATE["libarchive.so.13"], pipeline="text")
    equal(len(daemon.read("here", pipeline="text")), 50, "samples")


@case("dlctl web and the metrics socket say that libmicrohttpd cannot be loaded, and do not begin")
def _(box):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, **broken(box)}
    done = subprocess.run([DLCTL, "web", "--port", str(port)], env=environment, stdin=subprocess.DEVNULL, check=False,
                          capture_output=True, text=True, timeout=patience(20))
    equal(done.returncode != 0, True, "dlctl web ends")
    contains(done.stderr, "cannot load libmicrohttpd.so.12", LATE["libmicrohttpd.so.12"])
    write(box.path("conf"), f"metrics_socket = \"{box.path('metrics')}\"\n".encode())
    done = subprocess.run([os.path.join(BUILD, "dataloaderd"), "-c", box.path("conf"), "--socket", box.path("socket")],
                          env=environment, stdin=subprocess.DEVNULL, check=False, capture_output=True, text=True,
                          timeout=patience(20))
    equal(done.returncode != 0, True, "the daemon ends")
    contains(done.stdout + done.stderr, "metrics_socket: cannot load libmicrohttpd.so.12")


main()
