#!/usr/bin/env python3
"""isolation = process: strangers' bytes are decoded in processes that have no files and no network. That these give the bits of
threads for every codec is shown by cases of other scripts, run with DLP_ISOLATION=process; here is what is about the processes."""
import os
import platform
import random
import signal
import struct
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from harness import DLCTL, ROOT, SLOWER, VARIANT, Skip, case, check_sequence, contains, equal, few, main, patience, png, within, write
from tars import archive, npy, web

OTHER = 61003  # nobody's uid on any machine
PIPELINE = "random_resized_crop(16) hflip(0.5)"


def cells(daemon):
    """Processes that the daemon has started and that are confined: pid -> their status, a dictionary."""
    found = {}
    for thread in os.listdir(f"/proc/{daemon.pid}/task"):
        try:
            with open(f"/proc/{daemon.pid}/task/{thread}/children", encoding="ascii") as file:
                pids = file.read().split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # the thread has just ended
        for pid in pids:
            try:
                with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
                    lines = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
            except (FileNotFoundError, ProcessLookupError):
                continue
            if lines.get("Seccomp") == "2":
                found[int(pid)] = lines
    return found


def isolated(box, datasets, **settings):
    return box.daemon(datasets, isolation="process", **settings)


def held(daemon):
    return next(int(fact["value"]) for fact in daemon.status()["obtained"] if fact["name"] == "held_by_left_clients")


def bits(lines):
    return [(line["index"], line["fields"]["image"]["sha256"]) for line in lines]


@case("the decoders are processes without privileges, files and network, no more than there are workers")
def _(box):
    daemon = isolated(box, {"p": box.folder_of_pictures("p", 64)}, workers=2)
    equal(cells(daemon), {}, "before there is anything to decode")
    reader = daemon.reader("p", batch=4, pipeline=PIPELINE, epochs=200)
    found = within(20, lambda: cells(daemon), "a decoder's process")
    for pid, status in found.items():
        equal((status["NoNewPrivs"], status["Threads"], status["Name"]), ("1", "1", "dataloader-cell"), "what it is")
        for fd, what in zip(sorted(os.listdir(f"/proc/{pid}/fd"), key=int), ("/dev/null", "pipe:", "pipe:", "socket:"), strict=True):
            contains(os.readlink(f"/proc/{pid}/fd/{fd}"), what)
        with open(f"/proc/{pid}/environ", "rb") as file:
            equal(b"DATALOADERD" in file.read() or b"HOME=" in file.read(), False, "an environment that tells nothing")
    equal(len(cells(daemon)) <= 2, True, "one for each worker")
    check_sequence(reader.good(60), 64, batch=4, epochs=200)
    within(20, lambda: held(daemon) == 0, "the ring's memory is given back though the processes live")
    equal(bool(cells(daemon)), True, "they live")


@case("the bits are those of threads, with fields that are placed late, left out, and drawn alike")
def _(box):
    folder = box.folder_of_pictures("p", 50, width=40, height=30)
    write(os.path.join(folder, "class000", "large.png"), large_picture())
    one, other = box.daemon({"p": folder}, workers=2), isolated(box, {"p": folder}, workers=2)
    for pipeline in (PIPELINE, "decode", "resize(20) pad(max=40:60)", "image: random_crop(8) views(3); label",
                     "random_crop(30) aug_mix", "image: random_crop(8); small=image: resize(4); label", "raw",
                     "random_crop(8) to(float32) normalize(0.5, 0.2) layout(nchw)"):
        batch = 1 if pipeline == "decode" else 7
        equal(bits(other.read("p", batch=batch, epochs=2, pipeline=pipeline)),
              bits(one.read("p", batch=batch, epochs=2, pipeline=pipeline)), pipeline)


def large_picture():
    """A file that does not fit the buffer of a task: noise hardly shrinks."""
    width, height = 400, 300
    return png(width, height, random.Random(7).randbytes(width * height * 3))


class Murder:
    """Sends signals to random decoder processes until it is ended: the next one once samples have come since the last, or on a
    busy machine all three that try a sample might be hit."""

    def __init__(self, daemon, numbers, pause):
        self.daemon, self.numbers, self.pause, self.n, self.ended = daemon, numbers, pause, 0, threading.Event()
        self.random = random.Random(time.time_ns())
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        n_before = -1
        while not self.ended.wait(self.random.uniform(*self.pause)):
            found, n_lines = list(cells(self.daemon)), sum(len(reader.lines) for reader in self.daemon.box.readers)
            if found and n_lines > n_before:
                n_before = n_lines
                try:
                    os.kill(self.random.choice(found), self.random.choice(self.numbers))
                    self.n += 1
                except ProcessLookupError:
                    pass

    def end(self):
        self.ended.set()
        self.thread.join()


@case("processes that are killed at random moments: no sample is lost, there twice or wrong")
def _(box):
    folder = box.folder_of_pictures("p", 200, width=60, height=50)
    daemon = isolated(box, {"p": folder}, workers=3)
    wanted = dict(bits(box.daemon({"p": folder}).read("p", batch=8, shuffle=False, pipeline="center_crop(32)")))
    faults = (signal.SIGSEGV,) if SLOWER == 1 else ()  # a sanitizer's runtime would report it as a fault of ours
    pause = (0.03, 0.2)  # on a busy machine, too, one of three processes is to get through a sample
    murder = Murder(daemon, (signal.SIGKILL, signal.SIGABRT, signal.SIGTERM, *faults), pause)
    try:
        for number in range(1000):
            lines = daemon.read("p", batch=8, epochs=25, pipeline="center_crop(32)", job=f"run {number}")
            check_sequence(lines, 200, batch=8, epochs=25)
            for index, sha in bits(lines):
                equal(sha, wanted[index], f"sample {index}")
            if murder.n >= few(100, 30):
                break
    finally:
        murder.end()
    equal(daemon.objects("errors"), [], "damaged samples")
    contains(daemon.log(), "the decoder process", "another one takes its place")
    print(f"   {murder.n} were killed")


@case("a process that hangs is killed after isolation_timeout, and its sample is tried again")
def _(box):
    daemon = isolated(box, {"p": box.folder_of_pictures("p", 40)}, workers=1, isolation_timeout=1)
    reader = daemon.reader("p", batch=4, pipeline=PIPELINE, epochs=2000)
    pid = next(iter(within(20, lambda: cells(daemon), "a decoder's process")))
    os.kill(pid, signal.SIGSTOP)
    within(20, lambda: f"process {pid} of user {os.getuid()} did not answer and was killed" in daemon.log(), "it is noticed")
    reader.process.kill()
    reader.finish(20)
    equal(daemon.objects("errors"), [], "damaged samples")


@case("a rank that leaves while its decoder hangs takes nobody with it, and neither does the end of the daemon")
def _(box):
    daemon = isolated(box, {"p": box.folder_of_pictures("p", 40)}, workers=1, isolation_timeout=600)
    reader = daemon.reader("p", batch=4, pipeline=PIPELINE, epochs=2000)
    pid = next(iter(within(20, lambda: cells(daemon), "a decoder's process")))
    os.kill(pid, signal.SIGSTOP)
    reader.process.kill()
    reader.finish(20)
    os.kill(pid, signal.SIGKILL)  # it may have been between two samples, and hang over those of the next rank
    check_sequence(daemon.read("p", batch=4, pipeline=PIPELINE), 40, batch=4)
    reader = daemon.reader("p", batch=4, pipeline=PIPELINE, epochs=2000)
    pid = next(iter(within(20, lambda: cells(daemon), "a decoder's process")))
    os.kill(pid, signal.SIGSTOP)
    daemon.stop()
    reader.process.kill()
    reader.finish(20)


@case("nothing of a rank that leaves in the middle gets into the batches of the next one")
def _(box):
    folder = box.folder_of_pictures("p", 100, width=60, height=50)
    daemon = isolated(box, {"p": folder}, workers=1)
    wanted = bits(box.daemon({"p": folder}).read("p", batch=5, pipeline="center_crop(9)"))
    for number in range(few(25, 8)):
        reader = daemon.reader("p", batch=5, pipeline="random_resized_crop(33)", epochs=2000, job=f"left {number}")
        reader.wait_lines(1)
        reader.process.kill()
        equal(bits(daemon.read("p", batch=5, pipeline="center_crop(9)", job=f"next {number}")), wanted, "the next one")
        reader.finish(20)


@case("several samples that are ordered together need not fit the memory that one needs")
def _(box):
    folder = box.path("p")
    for number in range(60):
        write(os.path.join(folder, "a", f"{number:03d}.png"), png(260, 250, random.Random(number).randbytes(260 * 250 * 3)))
    lines = isolated(box, {"p": folder}, workers=1).read("p", batch=20, epochs=2, pipeline="center_crop(40)")
    equal(bits(lines), bits(box.daemon({"p": folder}).read("p", batch=20, epochs=2, pipeline="center_crop(40)")), "the bits")


@case("a daemon that is killed leaves no process")
def _(box):
    daemon = isolated(box, {"p": box.folder_of_pictures("p", 40)}, workers=2)
    reader = daemon.reader("p", batch=4, pipeline=PIPELINE, epochs=2000, on_restart="raise")
    pids = list(within(20, lambda: cells(daemon), "a decoder's process"))
    os.kill(pids[0], signal.SIGSTOP)  # one that could not notice by itself
    daemon.kill()
    within(20, lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), "they end with it")
    reader.process.kill()
    reader.finish(20)


@case("each user has processes of his own")
def _(box):
    if os.getuid() != 0:
        raise Skip("only root can be two users")
    os.chmod(box.folder, 0o755)
    daemon = isolated(box, {"p": box.folder_of_pictures("p", 40)}, workers=1, socket_mode="0666")
    check_sequence(daemon.read("p", batch=4, pipeline=PIPELINE), 40, batch=4)
    (first,) = cells(daemon)
    other = subprocess.run(["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", DLCTL, "--socket", daemon.socket,
                            "--format", "json", "read", "p", "--batch", "4", "--pipeline", PIPELINE], check=True,
                           stdout=subprocess.PIPE, timeout=60)
    equal(len(other.stdout.splitlines()), 40, "samples of another user")
    found = set(cells(daemon))
    equal(len(found), 2, "processes for two users")
    check_sequence(daemon.read("p", batch=4, pipeline=PIPELINE), 40, batch=4)
    equal((set(cells(daemon)), first in found), (found, True), "they stay")


@case("boxes that a crop depends on go to the process with their picture: from an archive, with several views, or none")
def _(box):
    dice, members = random.Random(3), []
    for number in range(20):
        width, height = dice.randint(20, 60), dice.randint(20, 60)
        boxes = [(x, y, x + dice.uniform(2, 15), y + dice.uniform(2, 15))
                 for x, y in ((dice.uniform(0, width - 18), dice.uniform(0, height - 18)) for _ in range(dice.randrange(4)))]
        members += [(f"{number:03d}.png", png(width, height, dice.randbytes(width * height * 3))),
                    (f"{number:03d}.boxes.npy", npy("<f4", f"({len(boxes)}, 4)", b"".join(struct.pack("<4f", *each) for each in boxes)))]
    archive(box.path("w", "a.tar"), members)
    datasets = {"w": web(box.path("w"))}
    one, other = box.daemon(datasets, workers=2), isolated(box, datasets, workers=2)
    for text in ("png, boxes.npy: random_iou_crop resize(8:8)", "png, boxes.npy: random_iou_crop(trials=3) resize(9:9) sanitize",
                 "png, boxes.npy: random_iou_crop resize(8:8) views(2)"):
        wanted, found = (daemon.read("w", pipeline=text, batch=1, epochs=3, seed=5) for daemon in (one, other))
        for name in wanted[0]["fields"]:
            equal([line["fields"][name]["sha256"] for line in found], [line["fields"][name]["sha256"] for line in wanted], f"{text}: {name}")


# (script, the part of a sentence that its cases have; "": all of them). The other cases of these scripts look at what is the same
# wherever pictures are decoded: refusals, files that change, states.
ELSEWHERE = (("sound", ""), ("decoders", ""), ("npy", "rows of every type"), ("views", "has the bits of a loader"),
             ("boxes", "masks move"), ("boxes", "boxes and labels"), ("plugins", "plug-in decodes"),
             ("plugins", "costs its own sample"))


@case("every codec has the same bits there: cases of its own script pass over such processes")
def _(box):
    if SLOWER > 1:
        raise Skip(f"{VARIANT}: the scripts run by themselves")
    for name, words in ELSEWHERE:
        done = subprocess.run([sys.executable, os.path.join(HERE, f"test_{name}.py"), "-k", words],
                              env=dict(os.environ, DLP_ISOLATION="process"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=patience(300), check=False)
        equal(done.returncode, 0, f"{name}: {done.stdout[-3000:]}")
        contains(done.stdout, " passed, 0 failed")
        equal(done.stdout.startswith("0 passed"), False, f"test_{name} has no case with {words!r}")


# Makes seccomp() and prctl(PR_SET_SECCOMP) fail, as a container's runtime may, and then becomes its arguments.
REFUSING = r"""
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 317), (0x06, 0, 0, 0x50001), (0x15, 0, 3, 157), (0x20, 0, 0, 16), (0x15, 0, 1, 22),
         (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(steps), ctypes.addressof(code)))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
    sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])
"""


@case("where the kernel refuses to confine a process, the daemon does not start, and says what to do")
def _(box):
    if platform.machine() != "x86_64":
        raise Skip("the numbers of system calls are those of x86-64")
    daemon = box.daemon({}, isolation="process", program=["/usr/bin/python3", "-c", REFUSING], wait=False)
    status = daemon.process.wait(60)
    if status == 77:
        raise Skip("seccomp is not available here")
    daemon.expected_status = status
    equal(status, 69, "EX_UNAVAILABLE")
    contains(daemon.log(), "isolation", "the kernel refuses a filter of system calls (seccomp)", "set isolation to threads")
    box.daemon({"p": box.folder_of_pictures("p", 4)}, program=["/usr/bin/python3", "-c", REFUSING]).read("p", batch=2)


main()
