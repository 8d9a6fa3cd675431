#!/usr/bin/env python3
"""How a staging is reported: bars on a terminal, which is left as it was; lines and JSON where there is none; systemd's
status and the progress file beside. A program that plays a staging (tests/tools/show_progress) stands in for the real
one, a small terminal emulator for the terminal."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import BUILD, Skip, case, contains, equal, main, patience, within
from terminal import Screen, Terminal, svg

TOOL = os.path.join(BUILD, "tools", "show_progress")


def show(box, *arguments, n_columns=100, n_rows=12, **environment):
    if not os.path.exists(TOOL):
        raise Skip(f"{TOOL} was not built")
    env = {"TERM": "xterm", "LANG": "C.UTF-8"}
    env.update(environment)
    terminal = Terminal([TOOL] + [str(argument) for argument in arguments], n_columns, n_rows, env)
    box.cleanups.append(terminal.close)
    return terminal


def plain(*arguments, **keywords):
    if not os.path.exists(TOOL):
        raise Skip(f"{TOOL} was not built")
    return subprocess.run([TOOL] + [str(argument) for argument in arguments], check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=patience(60),
                          **keywords)


@case("on a terminal each node has a bar, messages stay above them, and at the end a sentence and the cursor are left")
def _(box):
    terminal = show(box, "auto", 4, 4)
    equal(terminal.run(1.5), False, "it is at work")
    lines = terminal.screen.lines()
    equal(len(lines), 5, f"lines: {lines}")
    contains(lines[0], "photos", "transferring", "of 48.0 GiB")
    for number in range(1, 5):
        contains(lines[number], f"node{number}", "█", "░", "%", "writing n0144")
    equal((terminal.screen.cursor_shown, terminal.screen.is_coloured()), (True, True), "cursor, colours")
    equal(terminal.run(patience(30)), True, "it ends")
    screen = terminal.screen
    equal([line[:40] for line in screen.lines()], ["warning  stage: photos: node1: n01440764", "info     stage: photos: "
                                                   "staged: 48.0 GiB"], "what stays")
    equal((screen.cursor_shown, screen.unknown, screen.n_wrapped, terminal.status), (True, [], 0, 0), "the terminal")


@case("a frame is one write, ten of them a second, and each fits into 20 columns as well as with 1,000 nodes")
def _(box):
    for n_columns, n_rows, n_nodes in ((20, 8, 3), (100, 12, 1000), (7, 3, 50), (300, 60, 1000)):
        terminal = show(box, "auto", n_nodes, 1.5, "none", n_columns=n_columns, n_rows=n_rows)
        terminal.run(1.0)
        screen = terminal.screen
        equal((screen.unknown, screen.scrolled), ([], []), f"sequences, rows that left, at {n_columns} columns")
        equal(screen.n_wrapped, 0, f"wrapped lines at {n_columns} columns: {screen.lines()}")
        equal(len(screen.lines()) < n_rows, True, f"{len(screen.lines())} lines of {n_rows}")
        n_frames = terminal.data.count(b"\x1b[J")
        n_begun = terminal.data.count(b"\r") - terminal.data.count(b"\r\n")
        equal(n_begun - n_frames in (0, 1), True, f"{n_begun} begun, {n_frames} whole: the last may be on its way")
        equal(n_frames <= 12, True, f"{n_frames} frames in a second")
        if n_nodes == 1000:
            contains(screen.lines()[-1], "nodes more")
        terminal.signal(signal.SIGKILL)


@case("Ctrl-C, SIGTERM, SIGKILL and a sudden exit() leave the cursor shown")
def _(box):
    for number, last in ((signal.SIGINT, "none"), (signal.SIGTERM, "none"), (signal.SIGKILL, "none"), (None, "crash")):
        terminal = show(box, "auto", 2, 0.5, last)
        terminal.run(1.0)
        if number is not None:
            equal(terminal.screen.cursor_shown, True, "never hidden")
            terminal.signal(number)
        equal(terminal.run(patience(10)), True, "it ends")
        equal((terminal.screen.cursor_shown, terminal.status), (True, -number if number else 70), f"after {number}")


@case("NO_COLOR, another locale and a dumb terminal are respected")
def _(box):
    terminal = show(box, "auto", 2, 1, NO_COLOR="1")
    terminal.run(patience(20))
    equal(terminal.screen.is_coloured(), False, "colours")
    terminal = show(box, "auto", 2, 1.5, "none", LANG="C")
    terminal.run(1)
    contains(terminal.screen.lines()[1], "node1  ", "---")
    equal(all(ord(character) < 128 for line in terminal.screen.lines() for character in line), True, "ASCII alone")
    terminal.signal(signal.SIGKILL)
    terminal = show(box, "auto", 2, 1, TERM="dumb")
    terminal.run(patience(20))
    equal(b"\x1b[J" in terminal.data, False, "bars on a dumb terminal")
    contains("\n".join(terminal.screen.lines()), "transferring")


@case("a terminal that was lent through a pipe gets its bars, too")
def _(_box):
    if not os.path.exists(TOOL):
        raise Skip(f"{TOOL} was not built")
    done = subprocess.run([TOOL, "auto", "3", "1"], check=True, env={"DATALOADERD_STAGE_TERMINAL": "110x20 utf8"},
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=patience(60))
    screen = Screen(110, 20)
    screen.feed(done.stderr.replace(b"\n", b"\r\n"))  # what the terminal's driver does
    equal((screen.n_wrapped, len(screen.lines()), screen.cursor_shown), (0, 2, True), f"{screen.lines()}")
    contains(done.stderr.decode(), "█", "node3")
    contains(screen.lines()[-1], "staged")


@case("without a terminal there are lines, one for each phase and message and one at the end; quiet has errors alone")
def _(_box):
    done = plain("auto", 2, 1.5)
    equal(re.sub(r"\d+\.\d \w+ of (.*)\(\d+ %", r"X of \1(Y %", done.stderr).splitlines()[:2],
          ["info     stage: photos: surveying", "info     stage: photos: transferring, X of 24.0 GiB (Y %), 2 nodes"],
          "lines")
    equal([line.split()[0] for line in done.stderr.splitlines()], ["info", "info", "warning", "info"], "levels")
    equal((done.stdout, plain("quiet", 2, 0.5).stderr), ("", ""), "stdout; quiet")
    contains(plain("quiet", 2, 0.5, "failed").stderr, "error", "failed: node2: /data is full")


@case("JSON lines tell phases, progress of each node, messages and the result, and nothing else is on stdout")
def _(_box):
    done = plain("json", 100, 2.5)
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    equal([entry["phase"] for entry in objects if "phase" in entry][:2], ["surveying", "transferring"], "phases")
    equal([entry for entry in objects if "message" in entry],
          [{"dataset": "photos", "level": "warning",
            "message": "node1: n01440764/a.jpg: is not what the manifest says; again"}], "messages")
    middle = [entry for entry in objects if entry.get("phase") == "transferring" and "result" not in entry][-1]
    equal((len(middle["nodes"]), middle["n_nodes"], middle["n_bytes_total"]), (100, 100, 1200 << 30), "nodes")
    equal(middle["nodes"][1]["node"], "node2", "a node")
    last = objects[-1]
    equal((last["result"], last["n_bytes_done"], last["text"]), ("staged", 1200 << 30, "48.0 GiB, version v-8f3a09b2c4d1"),
          "the result")
    equal(done.stderr, "", "stderr")


@case("systemd hears a status each second, and is asked for time")
def _(box):
    path = box.path("notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(path)
        listener.settimeout(60)
        plain("quiet", 2, 1.5, env={"NOTIFY_SOCKET": path})
        listener.setblocking(False)
        heard = []
        try:
            while True:
                heard.append(listener.recv(65536).decode())
        except BlockingIOError:
            pass
    contains(heard[1], "STATUS=photos: transferring, ", " of 24.0 GiB", "\nEXTEND_TIMEOUT_USEC=")
    contains(heard[-1], "STATUS=photos: staged: 48.0 GiB")


@case("the progress file is always whole, bounded with 1,000 nodes, gone after success, and keeps the error of a failure")
def _(box):
    path = box.path("photos")
    file = box.path(".photos.staged", "progress")
    process = box.start([TOOL, "quiet", "1000", "3", "staged", path]) if os.path.exists(TOOL) else None
    if not process:
        raise Skip(f"{TOOL} was not built")
    seen = []

    def look():
        try:
            with open(file, "rb") as progress:
                seen.append(progress.read())
        except FileNotFoundError:
            pass
        return process.poll() is not None
    within(20, look, "the end")
    equal(process.returncode, 0, "exit status")
    equal(max(len(content) for content in seen) <= 65536, True, "its length")
    parsed = [json.loads(content) for content in seen]
    equal(len({content["n_bytes_done"] for content in parsed}) >= 3, True, "it changes")
    equal((parsed[-1]["n_nodes"], len(parsed[-1]["nodes"])), (1000, 16), "nodes")
    least = min(node["n_bytes_done"] for node in parsed[-1]["nodes"])
    equal(all(node["n_bytes_done"] == least for node in parsed[-1]["nodes"]), True, "those furthest behind")
    equal(os.listdir(os.path.dirname(file)), [], "files that are left")

    plain("quiet", 2, 0.5, "failed", path)
    with open(file, encoding="utf-8") as progress:
        content = json.load(progress)
    equal((content["result"], content["text"]), ("failed", "node2: /data is full"), "the error")


@case("a terminal that takes nothing does not hold up the staging")
def _(box):
    terminal = show(box, "auto", 40, 2, n_rows=50)
    begin = time.monotonic()
    while terminal.status is None and time.monotonic() < begin + patience(60):
        pid, status = os.waitpid(terminal.pid, os.WNOHANG)  # nobody reads
        if pid:
            terminal.status = status
        time.sleep(0.05)
    equal(terminal.status, 0, "it ended though nobody read what it drew")


@case("the picture of a screen shows its text and colours, and is well-formed")
def _(_box):
    import xml.dom.minidom  # pylint: disable=import-outside-toplevel
    screen = Screen(30, 4)
    screen.feed("\x1b[1mphotos\x1b[0m <&>\r\n\x1b[36m██\x1b[0m\x1b[2m░░\x1b[0m".encode())
    picture = xml.dom.minidom.parseString(svg(screen, "a title"))
    texts = ["".join(node.data for node in text.childNodes) for text in picture.getElementsByTagName("text")]
    equal([text.rstrip() for text in texts], ["photos", " <&>", "██", "░░"], "runs of cells")


main()
