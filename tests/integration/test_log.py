#!/usr/bin/env python3
"""The log holds up nobody: one that is not read, and one user who causes many lines. What is left out is counted."""
import fcntl
import os
import pwd
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import DAEMON, HandClient, attach_body, case, check_sequence, contains, die_with_parent, equal, main, patience, request, within

N_REFUSED = 3000
F_SETPIPE_SZ = 1031
LEFT_OUT = re.compile(r'(\d+) more lines "refused: \.\.\." were left out user=(\d+)')
NOBODY_READ = re.compile(r"(\d+) lines were left out: nobody read the log")


def refused_attaches(path, n):
    """Each asks for another dataset that does not exist, so that no two lines are the same."""
    client = HandClient(path)
    for i in range(n):
        client.send(request("attach", attach_body(f"none{i}" + "x" * 100), number=i + 1))
        contains(client.receive().decode(errors="replace"), f"none{i}")
    client.close()


def start_with_pipe(box, daemon):
    """Stops the daemon and starts it again with a pipe as its log. Returns the end that is read."""
    daemon.stop()
    read, write = os.pipe()
    fcntl.fcntl(write, F_SETPIPE_SZ, 4096)
    daemon.process = subprocess.Popen(daemon.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=write,
                                      preexec_fn=die_with_parent, cwd=daemon.folder)
    os.close(write)
    box.cleanups.append(lambda: os.close(read))
    daemon.wait_ready()
    return read


def read_all(read):
    """What comes until the writers are gone."""
    with os.fdopen(os.dup(read), "rb") as file:
        return file.read().decode(errors="replace")


def cause_lines(daemon, n):
    """Lines of several kinds."""
    refused_attaches(daemon.socket, n)
    for i in range(n):
        client = HandClient(daemon.socket)
        client.send(b"\xff" * 100)
        client.receive()
        client.close()
        client = HandClient(daemon.socket)
        client.attach("d", job=f"run{i}" + "x" * 100)
        client.close()


@case("a burst of refusals of one user gives few lines with the user's name, and one that says how many were left out")
def _(box):
    daemon = box.daemon({})
    refused_attaches(daemon.socket, N_REFUSED)
    within(30, lambda: sum(int(found[1]) for found in LEFT_OUT.finditer(daemon.log())) +
           daemon.log().count("ctl: refused: ") == N_REFUSED, "each refusal is a line or counted")
    equal(daemon.log().count("ctl: refused: ") <= N_REFUSED // 10, True, "few lines")
    for line in daemon.log().splitlines():
        if "ctl: refused: " in line:
            contains(line, "client=a test", "pid=", "user=")  # the name, or the number as long as it is looked up
    contains(daemon.log(), f"user={pwd.getpwuid(os.getuid()).pw_name}")


@case("what is left out until the end is counted as well")
def _(box):
    daemon = box.daemon({})
    refused_attaches(daemon.socket, 200)
    daemon.stop()
    equal(sum(int(found[1]) for found in LEFT_OUT.finditer(daemon.log())) + daemon.log().count("ctl: refused: "), 200,
          "refusals in the log")


@case("a log that nobody reads stops nobody: the daemon answers, ends when it is told, and counts what it left out")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 20)})
    read = start_with_pipe(box, daemon)
    cause_lines(daemon, 60)  # more than the pipe and the daemon hold together
    equal(daemon.dlctl("status").returncode, 0, "dlctl status")
    check_sequence(daemon.read("d"), 20)
    daemon.signal(signal.SIGTERM)
    equal(daemon.process.wait(patience(60)), 0, "how it ends")
    contains(read_all(read), "serves 1 datasets")


@case("a log that is read again later says how many lines are missing, and goes on")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 20)})
    read = start_with_pipe(box, daemon)
    cause_lines(daemon, 60)
    text = ""
    os.set_blocking(read, False)

    def reads_on():
        nonlocal text
        try:
            text += os.read(read, 65536).decode(errors="replace")
        except BlockingIOError:
            pass
        return NOBODY_READ.search(text)
    within(30, reads_on, "the number of missing lines")
    daemon.signal(signal.SIGTERM)
    equal(daemon.process.wait(patience(60)), 0, "how it ends")
    os.set_blocking(read, True)
    contains(read_all(read), "core: ended")


@case("what was logged before the end is in the log, also when the daemon is killed")
def _(box):
    daemon = box.daemon({})
    refused_attaches(daemon.socket, 5)
    daemon.kill()
    equal(daemon.log().count("ctl: refused: "), 5, "lines of a killed daemon")
    daemon.start()
    refused_attaches(daemon.socket, 5)
    daemon.stop()
    equal(daemon.log().count("ctl: refused: "), 10, "lines of both")
    contains(daemon.log().splitlines()[-1], "core: ended")


main()
