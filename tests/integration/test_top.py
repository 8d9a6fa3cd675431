#!/usr/bin/env python3
"""dlctl top: what it says of a real daemon, once and live in a terminal."""
import os
import re
import signal
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import DLCTL, HandClient, case, contains, equal, fields_of, main, within
from terminal import Terminal
from tmux import Tmux


def attached(box, daemon, name, ranks=2, **terms):
    clients = []
    for rank in range(ranks):
        client = HandClient(daemon.socket)
        box.cleanups.append(client.close)
        client.attach(name, world=ranks, rank=rank, batch=4, **terms)
        clients.append(client)
    return clients


@case("--once shows node, jobs and ranks as text, and their rates as JSON")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 60), "gone": box.path("nothing")})
    attached(box, daemon, "d", job="train")
    attached(box, daemon, "d", job="evaluate", ranks=1)
    done = daemon.dlctl("top", "--once", "--ranks", "--delay", "0.2")
    equal((done.returncode, done.stderr), (0, ""), "exit status and complaints")
    contains(done.stdout, "2 jobs, 3 ranks", "Workers", "Memory", "Reads", "gone: failed: ", "evaluate", "├─ rank 0", "└─ rank 1")
    equal("\x1b" in done.stdout, False, "escapes where there is no terminal")
    document, = daemon.objects("top", "--once", "--delay", "0.2", "--sort", "ranks")
    equal([(job["name"], [rank["rank"] for rank in job["ranks"]], job["n_slots"] > 0) for job in document["jobs"]],
          [("train", [0, 1], True), ("evaluate", [0], True)], "jobs")
    equal(document["jobs"][0]["samples_per_second"] >= 0, True, "a rate")
    equal({one["name"]: one["state"] for one in document["datasets"]}, {"d": "ready", "gone": "failed"}, "datasets")
    document, = daemon.objects("top", "--once", "--delay", "0.2", "--filter", "EVAL")
    equal([job["name"] for job in document["jobs"]], ["evaluate"], "the jobs that are wanted")


@case("what is not allowed is refused with what is")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 4)})
    for arguments, words in [(("--delay", "0"), "from 0.1 to 3600 seconds"), (("--delay", "nan"), "from 0.1 to 3600"),
                             (("--sort", "waits"), "did you mean \"wait\"?"), (("x",), "unexpected argument \"x\"")]:
        done = daemon.dlctl("top", "--once", *arguments)
        equal((done.returncode, done.stdout), (2, ""), f"top {arguments}")
        contains(done.stderr, words)
    daemon.stop()
    done = daemon.dlctl("top", "--once")
    equal((done.returncode, done.stdout), (3, ""), "without a daemon")


def live(box, daemon, *arguments, size=(100, 20), **environment):
    return Tmux(box, [DLCTL, "--socket", daemon.socket, "top", "--delay", "0.2"] + list(arguments), size, **environment)


def is_restored(screen):
    """The shell's own screen is back."""
    return "status 0" in screen and "WAIT%" not in screen


@case("live: jobs, ranks, keys, a window of any size, and the terminal as it was")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 60), "gone": box.path("nothing")})
    attached(box, daemon, "d", job="train")
    attached(box, daemon, "d", job="evaluate", ranks=1)
    terminal = live(box, daemon)
    screen = terminal.until(lambda it: "2 jobs, 3 ranks" in it and "WAIT%" in it, "the jobs")  # rates need two looks
    contains(screen, "WAIT%", "gone: failed: ", "F10Quit")
    equal("rank 0" in screen, False, "ranks are not shown yet")
    terminal.keys("F5")
    terminal.until("└─ rank 1", "the ranks")
    terminal.keys("t")
    terminal.until(lambda it: "rank 1" not in it, "the jobs alone")
    terminal.keys("\\", "evalu")
    terminal.until(lambda it: "train" not in it and "Filter: evalu_" in it, "what is filtered")
    terminal.keys("Escape")
    terminal.until("train", "all of it again")
    terminal.keys("F6")
    terminal.until(lambda it: it.startswith("Sort by\n  JOB"), "the columns")
    terminal.keys("Home", "Enter")
    terminal.until(lambda it: 0 < it.find("evaluate") < it.find("train"), "jobs by their names")
    terminal.keys("I")
    terminal.until(lambda it: 0 < it.find("train") < it.find("evaluate"), "and the other way round")
    terminal.keys("Down", "Enter")
    contains(terminal.until("job train", "a job"), "dataset     d", "order       shuffled, torch", "Ranks", "└─ rank 1")
    terminal.keys("Escape")
    for key in ("h", "?", "F1"):
        terminal.keys(key)
        contains(terminal.until("Space Z", "the help"), "quit")
        terminal.keys(key)
        terminal.until("F10Quit", "the table again")
    for key in ("/", "F3"):
        terminal.keys(key, "EVAL")
        terminal.until("Search: EVAL_  F3 goes on", "what is searched")
        terminal.keys("nothing")
        terminal.until("Search: EVALnothing_  no job has that", "that it is missing")
        terminal.keys("Enter", "Enter")
        terminal.until("job evaluate", "the job that was found")
        terminal.keys("Escape")
        terminal.until("F10Quit", "the table again")
        terminal.keys("Home")
    terminal.resize(20, 5)
    terminal.until(lambda it: re.search(r"^JOB +WAIT%", it, re.M) and "evaluate" in it, "a tiny window")
    terminal.resize(2, 1)
    terminal.resize(130, 40)
    terminal.until("MEMORY DAMAGED STATUS", "a large window")
    terminal.keys("q")
    terminal.until(is_restored, "the end")


class Between:
    """A socket between dlctl and a daemon. `before` is called once with the answer that ends a look (that to the question
    for datasets), and passes it on itself."""

    DATASETS = 13  # Request.datasets

    def __init__(self, box, daemon):
        self.path, self.daemon, self.before = box.path("between"), daemon, None
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen()
        box.cleanups.append(self.listener.close)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
                server.connect(self.daemon.socket)
                while question := client.recv(1 << 20):
                    server.send(question)
                    answer = server.recv(1 << 20)
                    before = self.before if self.DATASETS in fields_of(question) else None
                    if before:
                        self.before = None
                    (before or socket.socket.send)(client, answer)


@case("live: keys that come together with an answer are pressed on the jobs that are seen")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 60)})
    attached(box, daemon, "d", job="train")
    attached(box, daemon, "d", job="evaluate", ranks=1)
    between = Between(box, daemon)
    terminal = Terminal([DLCTL, "--socket", between.path, "top", "--delay", "0.2"], 100, 20)
    box.cleanups.append(terminal.close)

    def shows(text):
        terminal.run(0.1)
        return text in terminal.data

    def both_at_once(client, answer):
        terminal.signal(signal.SIGSTOP)
        os.write(terminal.fd, b"/TRAI\r\r")
        client.send(answer)
        terminal.signal(signal.SIGCONT)

    within(20, lambda: shows(b"evaluate"), "the jobs")
    between.before = both_at_once
    within(20, lambda: shows(b"shuffled, torch"), "the page of the job that was searched for")
    equal(re.search(rb"job (?:\x1b\S+?m)*(\w+)", terminal.data)[1], b"train", "the job of the page")


@case("live: Ctrl-C ends it, SIGTERM too, and Ctrl-Z stops it until it is continued; the terminal is as it was each time")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 60)})
    attached(box, daemon, "d", job="train")
    terminal = live(box, daemon)
    terminal.until("train", "the job")
    terminal.keys("C-z")
    terminal.until(lambda it: "WAIT%" not in it and "$" in it, "the shell")
    terminal.keys("stty -a | tr ' ' '\\n' | grep -c -e '^icanon' -e '^echo$' -e '^echo;'", "Enter")
    terminal.until(lambda it: re.search(r"^2$", it, re.M), "a terminal that echoes lines")
    terminal.keys("fg", "Enter")
    terminal.until(lambda it: "WAIT%" in it and "train" in it, "the table again")
    terminal.keys("C-c")
    terminal.until(lambda it: "WAIT%" not in it and "$" in it, "the end")
    terminal.keys("clear; stty -a | tr ' ' '\\n' | grep -c -e '^icanon' -e '^echo$' -e '^echo;'", "Enter")
    terminal.until(lambda it: re.search(r"^2$", it, re.M), "a terminal that echoes lines, again")
    other = live(box, daemon)
    other.until("train", "the job")
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit() and is_top(name, daemon.socket)]
    equal(len(pids), 1, "processes")
    os.kill(pids[0], signal.SIGTERM)
    other.until(is_restored, "the end by SIGTERM")
    last = live(box, daemon)
    last.until("train", "the job")
    last.close()
    within(20, lambda: not [name for name in os.listdir("/proc") if name.isdigit() and is_top(name, daemon.socket)],
           "its end when the terminal has gone")


def is_top(pid, socket):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return False
    return words[:1] == [DLCTL.encode()] and socket.encode() in words and b"top" in words


@case("live: without a daemon it says so and waits for one; what no daemon makes good is an error")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 60)})
    daemon.stop()
    terminal = live(box, daemon)
    contains(terminal.until("no daemon at", "that there is none"), "no daemon has answered yet: looking again every 0.2 s")
    terminal.keys("h")
    terminal.until("Space Z", "keys are heard")
    terminal.keys("h")
    daemon.start()
    terminal.until(lambda it: "0 jobs, 0 ranks" in it and "no daemon" not in it, "the daemon")
    attached(box, daemon, "d", job="train")
    terminal.until("train", "its job")
    terminal.keys("q")
    terminal.until(is_restored, "the end")
    wrong = Tmux(box, [DLCTL, "--socket", "/" + "x" * 200, "top"])
    contains(wrong.until("status 1", "the end"), "the path must have")


@case("live: a daemon that ends and comes back is told of, and watched on")
def _(box):
    folder = box.folder_of_files("d", 60)
    daemon = box.daemon({"d": folder})
    attached(box, daemon, "d", job="train")
    terminal = live(box, daemon)
    terminal.until("1 job, 2 ranks", "the job")
    daemon.stop()
    terminal.until("no daemon at", "that it has ended")
    contains(terminal.screen(), "train")
    daemon.start()
    terminal.until(lambda it: "0 jobs, 0 ranks" in it and "no daemon at" not in it, "the new daemon")
    attached(box, daemon, "d", job="again")
    terminal.until("again", "its job")
    terminal.keys("q")
    terminal.until(is_restored, "the end")


@case("live: without colours and UTF-8 it draws with what there is")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 60)})
    attached(box, daemon, "d", job="train \u8bad\u7ec3")
    terminal = live(box, daemon, "--ranks")
    screen = terminal.until("└─ rank 1", "lines")
    contains(screen, "train \u8bad\u7ec3")
    equal("\x1b[3" in terminal.screen(styles=True) or "\x1b[4" in terminal.screen(styles=True), True, "colours")
    terminal.keys("q")
    plain = live(box, daemon, "--ranks", LANG="C", NO_COLOR="1")
    screen = plain.until("`- rank 1", "plain lines")
    contains(screen, "train ??")
    equal(re.findall(r"\x1b\[[0-9;]*[34][0-7][;m]", plain.screen(styles=True)), [], "colours in spite of NO_COLOR")
    plain.keys("q")
    unknown = live(box, daemon, TERM="no-such-terminal")
    contains(unknown.until("status 1", "the end"), 'terminals of the type "no-such-terminal"', "--once")


@case("live: where there is no terminal, --once is named")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 4)})
    done = daemon.dlctl("top")
    equal((done.returncode, done.stdout), (2, ""), "no terminal")
    contains(done.stderr, "--once")


main()
