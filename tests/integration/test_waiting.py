#!/usr/bin/env python3
"""Long work shows itself to whoever waits: an index on a disk that stands still, and orders of many samples."""
import json
import os
import signal
import subprocess
import sys
import textwrap

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from failing_fs import FailingFs
from harness import BUILD, SLOWER, VARIANT, Skip, case, contains, equal, main, patience, within, write
from pyclient import PRELUDE, environment_of, need
from tars import archive, web
from terminal import Screen, Terminal

DLCTL = os.path.join(BUILD, "dlctl")
N_ARCHIVES = 8


def halted(box, name="photos"):
    """A daemon whose dataset is being indexed and stands still: all archives but the last one were read."""
    for i in range(N_ARCHIVES):
        archive(box.path("tars", f"{i}.tar"), [(f"{i}-{k}.txt", b"x" * 5000) for k in range(20)])
    disk = FailingFs(box, box.path("tars"))
    disk.hang(f"{N_ARCHIVES - 1}.tar", ops="read")
    daemon = box.daemon({name: web(disk.path)}, wait=False)
    daemon.wait_ready()
    return daemon, disk


def dataset(daemon):
    return json.loads(daemon.dlctl("--format", "json", "datasets").stdout)


def on_terminal(box, command, n_columns=100, **environment):
    env = {"PATH": os.environ.get("PATH", ""), "TERM": "xterm", "LANG": "C.UTF-8", **environment}
    terminal = Terminal(command, n_columns, 24, env)
    box.cleanups.append(terminal.close)
    return terminal


def shows(terminal, *words):
    """Takes in what is drawn until a line has all of the words. Returns the line."""
    for _ in range(int(patience(60) * 10)):
        ended = terminal.run(0.1)
        for line in terminal.screen.lines():
            if all(word in line for word in words):
                return line
        if ended:
            break
    raise AssertionError(f"not on the screen: {words}; {terminal.screen.lines()}")


def ends(terminal):
    for _ in range(int(patience(60) * 10)):
        if terminal.run(0.1):
            return terminal.status
    raise AssertionError(f"it does not end: {terminal.screen.lines()}")


@case("an index that is built shows bytes of all files on a terminal, and the line is gone before the samples come")
def _(box):
    daemon, disk = halted(box)
    command = [DLCTL, "--socket", daemon.socket, "--format", "json", "read", "photos", "--limit", "2"]
    terminal = on_terminal(box, command)
    line = shows(terminal, "photos: indexing", "%", "KiB of", "KiB")
    contains(line, "█", "░")
    disk.clear()
    equal(ends(terminal), 0, "exit status")
    drawn, samples = terminal.data.decode().rsplit("\033[K", 1)
    equal([json.loads(line)["step"] for line in samples.splitlines()], [0, 1], "steps")
    assert drawn.endswith("\r") and "{" not in drawn, drawn[-200:]
    equal(terminal.screen.unknown, [], "sequences")


@case("without UTF-8 the bar is plain; a narrow terminal leaves out what does not fit")
def _(box):
    daemon, disk = halted(box, "a-name-that-is-longer-than-a-third-of-the-line")
    command = [DLCTL, "--socket", daemon.socket, "read", "a-name-that-is-longer-than-a-third-of-the-line"]
    plain = on_terminal(box, command, 100, LANG="C")
    contains(shows(plain, "indexing", "% "), "==", "-", "a-name-that-is-longer-than-a-third-of-the-line: ")
    narrow = on_terminal(box, command, 40)
    line = shows(narrow, "indexing", "…")
    assert len(line) < 40 and "line: indexing" in line, line
    equal(narrow.screen.n_wrapped, 0, "lines that wrapped")
    dumb = on_terminal(box, command, 100, TERM="dumb")
    shows(dumb, "dlctl: waiting: dataset")
    assert b"\r" not in dumb.data.replace(b"\r\n", b""), dumb.data
    disk.clear()


@case("elsewhere a sentence says it, without anything that only a terminal understands")
def _(box):
    daemon, disk = halted(box)
    reader = daemon.reader("photos", limit=1)
    within(10, lambda: "waiting:" in reader.errors(), f"a sentence: {reader.errors()}")
    contains(reader.errors(), "dlctl: waiting: dataset photos: its index is being built, ")
    assert "\r" not in reader.errors() and "\033" not in reader.errors(), reader.errors()
    disk.clear()
    equal(len(reader.good()), 1, "batches")


@case("dlctl datasets has the numbers while a dataset is indexed, and not after")
def _(box):
    daemon, disk = halted(box)
    within(10, lambda: dataset(daemon).get("progress", [{}])[0].get("done", 0) > 0, f"numbers: {dataset(daemon)}")
    record = dataset(daemon)
    progress = record["progress"][0]
    equal((record["state"], progress["phase"], progress["unit"]), ("indexing", "indexing", "B"), "what is done")
    assert 0 < progress["done"] < progress["total"] < 2 * N_ARCHIVES * (20 * 6144 + 10240), progress
    contains(record["text"], "KiB of", "%")
    disk.clear()
    within(10, lambda: dataset(daemon)["state"] == "ready", "it is ready")
    equal("progress" in dataset(daemon), False, "progress afterwards")


@case("folders show the files that were found so far, and listings how much of all bytes was read")
def _(box):
    disk = FailingFs(box, box.folder_of_files("files", 9000, n_classes=3, size=10))
    disk.hang("class002*")
    daemon = box.daemon({"f": disk.path}, wait=False)
    daemon.wait_ready()
    within(10, lambda: dataset(daemon).get("progress", [{}])[0].get("done", 0) > 0, f"files: {dataset(daemon)}")
    progress = dataset(daemon)["progress"][0]
    equal((progress["unit"], progress["total"]), ("files", 0), "files whose number is not known")
    disk.clear()
    daemon.stop()

    for name in "ab":
        write(box.path("lines", f"{name}.jsonl"), b'{"text": "%s"}\n' % (b"x" * 200) * 20000)
    disk = FailingFs(box, box.path("lines"), name="second")
    disk.hang("b.jsonl", ops="read")
    daemon = box.daemon({"l": {"path": disk.path, "format": "jsonl"}}, wait=False)
    daemon.wait_ready()
    within(10, lambda: dataset(daemon).get("progress", [{}])[0].get("done", 0) > 1 << 20, f"bytes: {dataset(daemon)}")
    progress = dataset(daemon)["progress"][0]
    equal(progress["unit"], "B", "unit of a listing")
    assert progress["done"] < progress["total"], progress
    disk.clear()


@case("Ctrl-C ends a wait at once; the daemon indexes to the end")
def _(box):
    daemon, disk = halted(box)
    terminal = on_terminal(box, [DLCTL, "--socket", daemon.socket, "read", "photos", "--limit", "1"])
    shows(terminal, "photos: indexing")
    terminal.signal(signal.SIGINT)
    equal(ends(terminal), 130, "exit status")
    equal([line for line in terminal.screen.lines() if "indexing" in line], [], "what is left of the line")
    equal(dataset(daemon)["state"], "indexing", "the daemon's work")
    disk.clear()
    within(10, lambda: dataset(daemon)["state"] == "ready", "it is ready")


@case("dlctl look waits with the same line")
def _(box):
    daemon, disk = halted(box)
    terminal = on_terminal(box, [DLCTL, "--socket", daemon.socket, "look", "photos", "0"])
    shows(terminal, "photos: indexing", "%")
    disk.clear()
    equal(ends(terminal), 0, "exit status")


@case("an order of many samples is drawn while it is made, and Ctrl-C ends it at once; a small one shows nothing")
def _(box):
    write(box.path("w"), b"1\n" * 10)
    few = on_terminal(box, [DLCTL, "order", "--samples", "10", "--sampler", f"weighted(column={box.path('w')})"])
    equal(ends(few), 0, "exit status")
    assert "making" not in few.data.decode(), few.data
    script = f"exec {DLCTL} order --samples {10**8 // SLOWER} --world 1000 > {box.path('out')}"
    terminal = on_terminal(box, ["sh", "-c", script])
    shows(terminal, "making the order", "%", " of ", " M samples")
    terminal.signal(signal.SIGINT)
    equal(ends(terminal), -signal.SIGINT, "how it ended")
    done = subprocess.run([DLCTL, "order", "--samples", str(10**7), "--world", "1000"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=True)
    equal(done.stderr, b"", "stderr that is no terminal")


def python(box, daemon, source, n_columns=100, **environment):
    """A program of Python on a terminal."""
    need("numpy")
    if SLOWER > 1:
        raise Skip(f"{VARIANT}: the sanitizer's runtime would have to be loaded before the interpreter")
    path = box.path(f"program{len(box.processes)}-{n_columns}.py")
    write(path, (PRELUDE + textwrap.dedent(source)).encode())
    environment = {**environment_of(daemon), "TERM": "xterm", "LANG": "C.UTF-8", **environment}
    return on_terminal(box, [sys.executable, path], n_columns, **environment)


@case("the terminal of these tests shows the same wherever its reads begin and end, also within a character")
def _(_box):
    drawn = "\r\u2588\u2588\u258e\u2591 87 %\033[K\r\033[Kh\u00e4t 40\r\n".encode()
    for at in range(len(drawn) + 1):
        screen = Screen(10, 3)
        screen.feed(drawn[:at])
        screen.feed(drawn[at:])
        equal([line.rstrip() for line in screen.lines() if line.strip()], ["h\u00e4t 40"], f"cut at {at}")
        equal((screen.unknown, screen.n_wrapped), ([], 0), f"cut at {at}")


@case("Loader(...) in Python draws the same bar on a terminal, rank 0 alone, and leaves a clean screen")
def _(box):
    daemon, disk = halted(box)
    terminal = python(box, daemon, """
        with dlclient.Loader("photos", batch_size=4) as loader:
            print("has", len(loader), "batches")
    """)
    contains(shows(terminal, "photos: indexing", "%", "KiB of"), "█", "░")
    quiet = python(box, daemon, """
        try:
            dlclient.Loader("photos", rank=1, world_size=2, job="two", open_timeout=1.5)
        except dlclient.DaemonTimeout as error:
            print("rank 1 gave up")
        try:
            dlclient.Loader("photos", progress=False, open_timeout=1.5)
        except dlclient.DaemonTimeout as error:
            print("no bar either")
    """)
    equal(ends(quiet), 0, "exit status of ranks without a bar")
    assert b"\r\x1b" not in quiet.data and b"indexing \xe2" not in quiet.data and b"\x1b[K" not in quiet.data, quiet.data
    contains(quiet.data.decode(), "rank 1 gave up", "no bar either")
    disk.clear()
    equal(ends(terminal), 0, "exit status")
    equal([line for line in terminal.screen.lines() if line.strip()], ["has 40 batches"], "what stays on the screen")


@case("Ctrl-C ends Python's wait with KeyboardInterrupt and takes the bar away; so does open_timeout")
def _(box):
    daemon, disk = halted(box)
    terminal = python(box, daemon, """
        try:
            dlclient.Loader("photos", batch_size=4, open_timeout=1)
        except dlclient.DaemonTimeout:
            print("given up")
        try:
            dlclient.Loader("photos", batch_size=4)
        except KeyboardInterrupt:
            print("interrupted")
    """)
    shows(terminal, "given up")
    shows(terminal, "photos: indexing", "%")
    terminal.signal(signal.SIGINT)
    equal(ends(terminal), 0, "exit status")
    equal([line for line in terminal.screen.lines() if line.strip()], ["given up", "interrupted"], "the screen")
    disk.clear()


@case("a trainer on a terminal sees how far the order of its epoch is")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 300, n_classes=1, size=1)}, memory_limit="6GiB")
    terminal = python(box, daemon, """
        try:
            loader = dlclient.Loader("f", sampler="random(n=40000000, replacement=true) grouped(column=w, k=3)",
                                     columns={"w": numpy.arange(300) % 3 + 1})
            next(iter(loader))
            print("a batch")
        except KeyboardInterrupt:
            print("interrupted")
    """)
    shows(terminal, "f: making the order", "%", " of ")
    terminal.signal(signal.SIGINT)
    equal(ends(terminal), 0, "exit status")
    equal([line for line in terminal.screen.lines() if line.strip()], ["interrupted"], "what stays on the screen")


main()
