#!/usr/bin/env python3
"""How dlctl ends when its output cannot be written: lost output is an error, and a reader that has gone is none."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import DLCTL, Table, case, contains, equal, main, patience

ORDER = ("order", "--samples", "100000", "--no-shuffle")  # more than a pipe holds
# Each command that prints something, so that a new one with its own way of printing has to pass here as well.
PRINTING = [("status",), ("datasets",), ("datasets", "d"), ("jobs",), ("jobs", "--format", "json"), ("errors",), ("metrics",),
            ("workers",), ("diagnose", "--seconds", "0.1"), ("order", "--samples", "3"), ORDER,
            ("plan", "d"), ("plan", "d", "--format", "json"), ("order", "--samples", "3", "--sampler", "subset(i)", "--column", "i=column"), ("read", "d"), ("read", "d", "--batch", "8"),
            ("look", "d"), ("bench", "d", "--seconds", "0.1"), ("bench", "d", "--seconds", "0.1", "--format", "json"),
            ("bench", "d", "--seconds", "0.1", "--workers", "1,2"), ("top", "--once", "--delay", "0.1"),
            ("top", "--once", "--delay", "0.1", "--format", "json"), ("trace", "--seconds", "0.1", "-o", "-"),
            ("web", "--port", "0"), ("web", "--port", "0", "--format", "json"), ("completion", "bash"), ("--help",), ("--version",),
            ("jobs", "--help")]


def run(daemon, arguments, stdout):
    """Runs dlctl with this standard output, which belongs to it alone from now on."""
    try:
        return subprocess.run([DLCTL, "--socket", daemon.socket, *arguments], env=daemon.client_environment(), check=False,
                              stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, universal_newlines=True,
                              timeout=patience(30), cwd=daemon.folder)
    finally:
        os.close(stdout)


def pipe_without_reader():
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def daemon_of(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 40)})
    with open(os.path.join(daemon.folder, "column"), "w", encoding="ascii") as file:
        file.write("2\n0\n1\n")
    daemon.reader("d", job="train", batch=1, delay_ms=60000).wait_lines(1)
    return daemon


@case("whatever is printed to a full disk is an error with its reason, of every command")
def _(box):
    daemon = daemon_of(box)
    table = Table()
    for arguments in PRINTING:
        with table.row(arguments):
            done = run(daemon, arguments, os.open("/dev/full", os.O_WRONLY))
            equal(done.returncode, 1, f"exit code; it said: {done.stderr}")
            contains(done.stderr, "dlctl: cannot write to standard output: No space left on device")
    table.done()
    equal([job["name"] for job in daemon.objects("jobs")], ["train"], "no other job is left")


@case("a reader that has gone ends every command silently, as SIGPIPE ends others")
def _(box):
    daemon = daemon_of(box)
    table = Table()
    for arguments in PRINTING:
        with table.row(arguments):
            done = run(daemon, arguments, pipe_without_reader())
            said = done.stderr.replace("dlctl: looking on for 0.1 s\n", "")  # that is before it prints
            equal((done.returncode, said), (-signal.SIGPIPE, ""), "status and message")
    table.done()
    equal([job["name"] for job in daemon.objects("jobs")], ["train"], "no other job is left")
    equal(daemon.status()["n_workers"], 2, "workers: bench has set back what it changed")


@case("so it is in a shell's pipe, with more output than the pipe holds")
def _(box):
    daemon = daemon_of(box)
    for command in (f"{' '.join(ORDER)}", "metrics", "read d --epochs 3000"):
        script = f"set -o pipefail; {DLCTL} --socket {daemon.socket} {command} | head -1 > /dev/null"
        done = subprocess.run(["bash", "-c", script], env=daemon.client_environment(), check=False, universal_newlines=True,
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=patience(30), cwd=daemon.folder)
        equal(done.stderr, "", command)
        equal(done.returncode in (0, 128 + signal.SIGPIPE), True, f"{command}: {done.returncode}")
    equal([job["name"] for job in daemon.objects("jobs")], ["train"], "no other job is left")


@case("without a standard output nothing is written into the daemon's socket, and that is an error")
def _(box):
    daemon = daemon_of(box)
    for command in ("status", "metrics", "read d"):
        done = subprocess.run(["sh", "-c", f"exec {DLCTL} --socket {daemon.socket} {command} >&-"], check=False, universal_newlines=True,
                              env=daemon.client_environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=patience(30))
        equal(done.returncode, 1, command)
        contains(done.stderr, "cannot write to standard output: Bad file descriptor")


@case("another error stays what it was, wherever the output goes")
def _(box):
    daemon = daemon_of(box)
    for stdout in (os.open("/dev/full", os.O_WRONLY), pipe_without_reader()):
        done = run(daemon, ("--socket", box.path("nobody"), "status"), stdout)
        equal(done.returncode, 3, done.stderr)
        contains(done.stderr, "no daemon at")


main()
