#!/usr/bin/env python3
"""Life of the daemon: start, configuration, sockets, signals, end."""
import os
import platform
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import (DAEMON, DLCTL, ROOT, VARIANT, Skip, Table, case, check_sequence, contains, equal, few, main,
                     patience, within, write)

OK, USAGE, UNAVAILABLE, SYSTEM, CONFIG = 0, 64, 69, 71, 78


def run_daemon(*arguments, seconds=10, program=(), **keywords):
    """Runs a daemon that is expected to end by itself."""
    return subprocess.run(list(program) + [DAEMON] + list(arguments), check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                          timeout=patience(seconds), **keywords)


def config(box, text, name="c.conf"):
    write(box.path(name), text.encode())
    return box.path(name)


@case("--version, --help and wrong usage")
def _(box):
    done = run_daemon("--version")
    equal(done.returncode, OK, "--version")
    equal(bool(re.search(r"\d+\.\d+\.\d+", done.stdout)), True, "a version")
    done = run_daemon("--help")
    equal(done.returncode, OK, "--help")
    contains(done.stdout, "--check-config", "--socket")
    for arguments in (["--nonsense"], ["-c"], ["stray"]):
        equal(run_daemon(*arguments).returncode, USAGE, f"dataloaderd {arguments}")


@case("--check-config says yes to the configuration that is shipped and to a small one")
def _(box):
    shipped = os.path.join(ROOT, "config", "dataloaderd.conf")
    done = run_daemon("-c", shipped, "--check-config")
    equal(done.returncode, OK, done.stderr)
    done = run_daemon("-c", config(box, 'dataset "d" {\n path = "/nowhere"\n format = "imagefolder"\n}\n'),
                      "--check-config")
    equal(done.returncode, OK, done.stderr)


@case("a wrong configuration ends with 78 and names file, line, key and what is allowed")
def _(box):
    dataset = 'dataset "d" {\n path = "/x"\n format = "imagefolder"\n}\n'
    table = [
        ('\nworkers = -1\n', 2, ("workers",)),
        ('workers = 100000\n', 1, ("workers",)),
        ('workers = "two"\n', 1, ("workers",)),
        ('memory_limit = "8 GiBs"\n', 1, ("memory_limit", "8 GiBs", "GiB")),
        ('memory_limit = "-1GiB"\n', 1, ("memory_limit",)),
        ('memory_limit = "99999999999999GiB"\n', 1, ("memory_limit",)),
        ('memory_limit = "0"\n', 1, ("memory_limit",)),
        ('\n\nreader = "magic"\n', 3, ("reader", "auto", "io_uring", "threads")),
        ('slots = 1\n', 1, ("slots", "2", "64")),
        ('slots = 65\n', 1, ("slots", "64")),
        ('log_level = "loud"\n', 1, ("log_level",)),
        ('lock_memory = "perhaps"\n', 1, ("lock_memory",)),
        ('huge_pages = "perhaps"\n', 1, ("huge_pages",)),
        ('max_pixels = 0\n', 1, ("max_pixels",)),
        ('nonsense = 3\n', 1, ("nonsense",)),
        ('socket = "/' + "x" * 200 + '"\n', 1, ("socket", "107")),
        ('socket = ""\n', 1, ("socket",)),
        ('workers = 1\nworkers = \n', None, ()),
        ('dataset "d" {\n path = "/x"\n format = "tape"\n}\n', None, ("format", "tape", "imagefolder")),
        ('dataset "d" {\n format = "imagefolder"\n}\n', None, ("d", "path")),
        ('dataset "d" {\n path = "relative/x"\n format = "imagefolder"\n}\n', None, ("path",)),
        ('dataset "' + "n" * 300 + '" {\n path = "/x"\n format = "imagefolder"\n}\n', 4, ("127",)),
        (dataset + dataset, None, ("d",)),
        ('dataset "d" {\n path = "/x"\n', None, ()),
        ('dataset "a" {\n pth = "/x"\n}\n', 2, ("pth",)),
        ('dataset "d" {\n path = "/x-{0..1}.tar"\n format = "imagefolder"\n merge = "/y-{0..1}.tar"\n}\n', None,
         ("d", "imagefolder does not take merge")),
        ('dataset "d" {\n path = "/x"\n format = "webdataset"\n merge = "/y.tar"\n stream = "yes"\n}\n', None,
         ("d", "merge", "stream")),
        ('dataset "d" {\n path = "/x"\n format = "webdataset"\n merge = "/y.tar"\n origin = "file:///z"\n}\n', None,
         ("d", "leave out merge or origin")),
        ("\0\1\2\3", None, ()),
    ]
    rows = Table()
    for text, line, words in table:
        with rows.row(text):
            path = config(box, text)
            done = run_daemon("-c", path, "--check-config")
            equal(done.returncode, CONFIG, done.stderr)
            contains(done.stderr, path + (f":{line}" if line else ""), *words)
    rows.done()
    done = run_daemon("-c", box.path("absent.conf"))
    equal(done.returncode, CONFIG, done.stderr)
    contains(done.stderr, box.path("absent.conf"))
    os.mkdir(box.path("folder.conf"))
    equal(run_daemon("-c", box.path("folder.conf")).returncode, CONFIG, "a folder in place of a file")
    equal(run_daemon("-c", config(box, "workers = 0.5\n")).returncode, CONFIG, "without --check-config too")


@case("a second daemon on the same socket gives up with a clear error, and the first one goes on")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 10)})
    done = run_daemon("-c", daemon.config)
    equal(done.returncode, UNAVAILABLE, done.stderr)
    contains(done.stderr, daemon.socket)
    check_sequence(daemon.read("d"), 10)


@case("a stale socket file is replaced; anything else in its place is left alone")
def _(box):
    path = box.path("daemon0", "s")
    os.makedirs(box.path("daemon0"))
    stale = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stale.bind(path)
    stale.close()
    daemon = box.daemon({"d": box.folder_of_files("d", 5)})
    check_sequence(daemon.read("d"), 5)
    daemon.stop()
    equal(os.path.exists(path), False, "a daemon that ends takes its socket with it")

    write(path, b"somebody's file")
    done = run_daemon("-c", daemon.config)
    equal(done.returncode, UNAVAILABLE, done.stderr)
    contains(done.stderr, path)
    with open(path, "rb") as file:
        equal(file.read(), b"somebody's file", "the file is as it was")


@case("no folder for the socket, no permission, too long a path: a clear error")
def _(box):
    for path, status in ((box.path("absent", "s"), UNAVAILABLE), ("/proc/s", UNAVAILABLE)):
        done = run_daemon("-c", config(box, ""), "--socket", path)
        equal(done.returncode, status, f"{path}: {done.stderr}")
        contains(done.stderr, path)
    done = run_daemon("-c", config(box, ""), "--socket", "/tmp/" + "x" * 150)
    equal(done.returncode in (USAGE, CONFIG, UNAVAILABLE), True, f"status {done.returncode}")
    contains(done.stderr, "107")
    if os.getuid() != 0:
        raise Skip("only root can become somebody else to try permissions")
    os.chmod(box.folder, 0o755)
    os.mkdir(box.path("roots"), 0o755)
    done = run_daemon("-c", config(box, ""), "--socket", box.path("roots", "s"),
                      program=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
    equal(done.returncode, UNAVAILABLE, done.stderr)
    contains(done.stderr, box.path("roots", "s"), "permission")


@case("a client without permission is told which socket and what to do")
def _(box):
    if os.getuid() != 0:
        raise Skip("only root can become somebody else to try permissions")
    daemon = box.daemon({"d": box.folder_of_files("d", 5)})
    os.chmod(box.folder, 0o755)
    os.chmod(daemon.folder, 0o755)
    os.chmod(daemon.socket, 0o600)
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", DLCTL, "--socket",
                           daemon.socket, "status"], check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=300)
    equal(done.returncode, 3, done.stderr)
    contains(done.stderr, daemon.socket, "permission")


@case("it works as an ordinary user without any privilege")
def _(box):
    if os.getuid() != 0:
        raise Skip("it does already: these tests do not run as root")
    os.chmod(box.folder, 0o755)
    os.makedirs(box.path("daemon0"))
    os.chown(box.path("daemon0"), 65534, 65534)
    daemon = box.daemon({"d": box.folder_of_pictures("d", 20)},
                        program=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all",
                                 "--no-new-privs"])
    check_sequence(daemon.read("d", pipeline="resize(8) center_crop(8)"), 20)


@case("in a new home, without ~/.cache, the index is saved and used again; a folder that was configured is not made so deep")
def _(box):
    folder = box.folder_of_pictures("d", 20)
    home = {"HOME": box.path("home"), "XDG_CACHE_HOME": "", "CACHE_DIRECTORY": ""}
    os.makedirs(home["HOME"])
    for times in ("first", "second"):
        daemon = box.daemon({"d": folder}, environment=home, name=times, index_dir=None)
        daemon.read("d", pipeline="resize(8) center_crop(8)")
        equal("indexed in" in daemon.log(), times == "first", f"the index is made: {daemon.log()}")
        daemon.stop()
    equal(os.listdir(os.path.join(home["HOME"], ".cache", "dataloaderd")), ["d.index"], "what lies in the cache")
    daemon = box.daemon({"d": folder}, index_dir=box.path("not", "mounted", "index"))
    daemon.read("d", pipeline="resize(8) center_crop(8)")
    equal(os.path.exists(box.path("not")), False, "the folder of a disk that is missing was made")


@case("SIGTERM drains: readers are told, the daemon ends with 0 and takes its socket with it")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 50)})
    reader = daemon.reader("d", epochs=100000, delay_ms=2)
    reader.wait_lines(5)
    daemon.stop()
    status, _ = reader.finish(5)
    equal(status in (1, 3), True, f"exit status of the reader: {status}, {reader.errors()}")
    equal(os.path.exists(daemon.socket), False, "the socket is gone")


@case("a second SIGTERM ends it at once; SIGINT ends it as well")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 50)})
    reader = daemon.reader("d", epochs=100000, delay_ms=50)
    reader.wait_lines(2)
    daemon.signal(signal.SIGTERM)
    daemon.signal(signal.SIGTERM)
    within(2, lambda: daemon.process.poll() is not None, "the daemon ends")
    daemon.expected_status = daemon.process.returncode
    equal(daemon.process.returncode in (0, -signal.SIGTERM, 1), True, f"status {daemon.process.returncode}")
    reader.finish(5)
    other = box.daemon({})
    other.signal(signal.SIGINT)
    within(3, lambda: other.process.poll() is not None, "the other one ends")
    equal(other.process.returncode, 0, "status after SIGINT")


@case("SIGTERM ends it while samples are made that take far longer: they are given up between their steps")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 4)}, memory_limit="2GiB", workers=1, max_step_pixels=1 << 40)
    daemon.read("d", batch=1, epochs=1)
    before = daemon.cpu_ticks()
    steps = " ".join(["resize(8192:8192)"] + ["equalize(1)", "gaussian_blur(31, sigma=8)"] * 14 + ["center_crop(8)"])
    reader = daemon.reader("d", batch=1, pipeline=steps)
    within(60, lambda: daemon.cpu_ticks() > before + 50, "a sample is being made")
    daemon.stop()
    equal("ending without it" in daemon.log(), False, "it gave up waiting for its workers")
    reader.finish(10)


@case("a pipeline whose steps make more pixels of a sample than max_step_pixels is refused, and a sample where that is seen late")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 4)}, max_step_pixels=100000)
    refusal = ("max_step_pixels", "100000", "equalize", "180000")
    daemon.refused("d", *refusal, pipeline="resize(300:300) equalize(1)")
    daemon.refused("d", "max_step_pixels", "center_crop",
                   pipeline="resize(160:160) random_apply([equalize(1), invert(1)], p=0.1) center_crop(160)")
    daemon.refused("d", "max_step_pixels", pipeline="a=image: resize(250:250); b=image: resize(250:250)")
    daemon.refused("d", "max_step_pixels", pipeline="resize(200:200) views(3)")
    daemon.read("d", pipeline="resize(160:160) one_of([invert(1), equalize(1), vflip(1)]) center_crop(160)")
    daemon.refused("d", "max_step_pixels", "100000", pipeline="resize(300) equalize(1) center_crop(8)", on_error="fail")
    daemon.read("d", pipeline="resize(100) equalize(1) center_crop(8)")


@case("SIGHUP takes up a new dataset, and lets go of one without disturbing who reads it")
def _(box):
    first, second = box.folder_of_files("d", 50), box.folder_of_files("e", 7)
    daemon = box.daemon({"d": first})
    reader = daemon.reader("d", job="long", epochs=6, batch=2, delay_ms=10)
    reader.wait_lines(2)
    daemon.refused("e", "e")
    daemon.datasets = {"e": second}
    daemon.write_config()
    daemon.signal(signal.SIGHUP)
    within(3, lambda: [dataset["name"] for dataset in daemon.objects("datasets")] == ["e"], "the new configuration")
    check_sequence(daemon.read("e"), 7)
    daemon.refused("d", "d", job="late")
    check_sequence(reader.good(), 50, batch=2, epochs=6)


@case("SIGHUP with a broken configuration keeps the old one and says so")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 10)})
    for broken in ("workers = ???\n", 'memory_limit = "much"\n', 'dataset "d" {\n'):
        n_before = len(daemon.log())
        write(daemon.config, broken.encode())
        daemon.signal(signal.SIGHUP)
        within(3, lambda n_before=n_before: daemon.config in daemon.log()[n_before:], "the reason in the log")
        check_sequence(daemon.read("d"), 10)
    os.unlink(daemon.config)
    daemon.signal(signal.SIGHUP)
    check_sequence(daemon.read("d"), 10)
    daemon.write_config()
    daemon.signal(signal.SIGHUP)
    check_sequence(daemon.read("d"), 10)


@case("an idle daemon uses no CPU: before anybody came, with rings that are full and leased, and after all left")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 200)}, slots=4)

    def slots():
        return [(rank["n_ready"], rank["n_filling"], rank["n_leased"]) for job in daemon.objects("jobs")
                for rank in job["ranks"]]

    daemon.quiet_for(2)  # before anybody came
    reader = daemon.reader("d", batch=10, epochs=3, pipeline="decode")
    reader.good()
    readers = [daemon.reader("d", batch=10, delay_ms=20000, pipeline="decode", world=2, rank=rank, job="slow")
               for rank in range(2)]
    for reader in readers:
        reader.wait_lines(10)
    within(5, lambda: slots() == [(3, 0, 1)] * 2, "three ready and one leased of each ring's four")
    daemon.quiet_for(2)  # with full rings, one batch of each leased
    for reader in readers:
        reader.process.kill()
        reader.finish()
    daemon.quiet_for(2)  # after they left


@case("2,000 idle datasets hold no descriptors: whoever attaches gets in under a small limit, and leaves none behind")
def _(box):
    folder = box.folder_of_files("f", 12)
    n = few(2000, 500)
    daemon = box.daemon({f"d{number:04d}": folder for number in range(n)})
    descriptors = f"/proc/{daemon.process.pid}/fd"

    within(100, lambda: all(row["state"] == "ready" for row in daemon.objects("datasets")), "all are open")
    equal(daemon.status()["n_datasets"], n, "datasets")
    idle = len(os.listdir(descriptors))
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (256, 256))
    for name in ("d0000", "d0377", f"d{n - 1:04d}", "d0000"):
        check_sequence(daemon.read(name, batch=5, epochs=2), 12, batch=5, epochs=2)
    within(10, lambda: not daemon.objects("jobs"), "all have left")
    within(10, lambda: len(os.listdir(descriptors)) <= idle + 4, "nothing was left behind")
    equal(idle < 128, True, f"{idle} descriptors while nobody is served")
    shutil.rmtree(os.path.join(folder, "class001"))                 # a change is seen also while nothing is held
    within(10, lambda: len(daemon.read("d0377")) < 12, "the folder's change")


@case("status tells version, settings and what was obtained; in text and as JSON")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 10)}, workers=1, reader="threads")
    status = daemon.status()
    equal(status["pid"], daemon.pid, "pid")
    equal(status["memory_limit_bytes"], 1 << 30, "memory_limit")
    contains(str(status), "threads", daemon.socket)
    contains(daemon.dlctl("status").stdout, str(daemon.pid), "threads")


@case("io_uring that is not to be had is said once, and reading goes on with threads")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 50)}, reader="auto")
    check_sequence(daemon.read("d"), 50)
    if "io_uring" not in str(daemon.status()):
        raise AssertionError("status says nothing about io_uring")
    probe = box.path("seccomp.py")
    write(probe, refusing(425, EPERM).encode())
    refused = box.daemon({"d": box.path("d")}, reader="auto", program=[sys.executable, probe])
    check_sequence(refused.read("d", epochs=2), 50, epochs=2)
    equal(len(re.findall(r"io_uring.*(refused|not)", refused.log())), 1, f"said once:\n{refused.log()}")
    contains(str(refused.status()), "threads")
    strict = run_daemon("-c", config(box, f'socket = "{box.path("s2")}"\nreader = "io_uring"\n'),
                        program=[sys.executable, probe])
    equal(strict.returncode, UNAVAILABLE, strict.stderr)
    contains(strict.stderr, "io_uring")


@case("a sandbox that tells nothing of CPUs, or gives no shared memory: the daemon serves, or says what is refused", sanitized=False)
def _(box):
    if platform.machine() not in CALLS:
        raise Skip("the numbers of the system calls are not known here")
    folder, probe = box.folder_of_files("d", 50), box.path("seccomp.py")
    affinity, memfd = CALLS[platform.machine()]
    for error in (EPERM, ENOSYS, EINVAL):
        write(probe, refusing(affinity, error).encode())
        daemon = box.daemon({"d": folder}, program=[sys.executable, probe])
        check_sequence(daemon.read("d"), 50)
        contains(daemon.log(), "topology cannot be read")
    write(probe, refusing(memfd, EPERM).encode())
    daemon = box.daemon({"d": folder}, program=[sys.executable, probe])
    daemon.refused("d", "memfd_create is refused", "seccomp", "container")


EPERM, EINVAL, ENOSYS = 1, 22, 38
CALLS = {"x86_64": (204, 319), "aarch64": (123, 279)}  # sched_getaffinity, memfd_create


def refusing(number, error):
    """A script that starts a program under a seccomp filter, which refuses this system call with that error."""
    return f'''
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
code = [(0x20, 0, 0, 0), (0x15, 0, 1, {number}), (0x06, 0, 0, 0x00050000 | {error}), (0x06, 0, 0, 0x7fff0000)]
program = b"".join(struct.pack("HBBI", *each) for each in code)
buffer = ctypes.create_string_buffer(program)
class Filter(ctypes.Structure):
    _fields_ = [("n", ctypes.c_ushort), ("code", ctypes.c_void_p)]
filter = Filter(len(code), ctypes.addressof(buffer))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(filter), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
'''


DEAD_DIRECTORY = """
#include <pwd.h>
#include <unistd.h>
struct passwd *getpwuid(uid_t uid) {
        for (;;)
                pause();
        return 0;
}
int getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t capacity, struct passwd **found) {
        getpwuid(uid);
        return 0;
}
"""


@case("a directory service that never names a user holds up nobody: numbers stand in, also at the end")
def _(box):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        raise Skip("no C compiler")
    if VARIANT != "release":
        raise Skip("a sanitizer's runtime wants to be loaded first")
    write(box.path("dead.c"), DEAD_DIRECTORY.encode())
    subprocess.run([compiler, "-shared", "-fPIC", "-o", box.path("dead.so"), box.path("dead.c")], check=True)
    daemon = box.daemon({"d": box.folder_of_files("d", 40)}, environment={"LD_PRELOAD": box.path("dead.so")})
    reader = daemon.reader("d", job="nameless", epochs=1000000, batch=4, delay_ms=2)
    reader.wait_lines(8)
    (job,) = daemon.objects("jobs")
    equal([rank["user"] for rank in job["ranks"]], [str(os.getuid())], "who it is")
    check_sequence(daemon.read("d", job="beside"), 40)
    reader.process.kill()
    reader.finish()
    daemon.stop()


@case("it is started by the first connection to a socket that systemd holds")
def _(box):
    if not shutil.which("systemd-socket-activate"):
        raise Skip("systemd-socket-activate is not installed")
    daemon = box.daemon({"d": box.folder_of_files("d", 10)}, wait=False,
                        program=["systemd-socket-activate", "--seqpacket", "-l", box.path("daemon0", "s")])
    within(5, lambda: os.path.exists(daemon.socket), "the socket")
    check_sequence(daemon.read("d"), 10)
    contains(str(daemon.status()), daemon.socket)
    daemon.stop()
    equal(os.path.exists(daemon.socket), True, "a socket that is not ours is left alone")


@case("a daemon that is stopped is told by its process with the command that lets it go on; another silent program is not")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 10)})
    daemon.signal(signal.SIGSTOP)
    done = daemon.dlctl("status")
    equal((done.returncode, done.stdout), (3, ""), done.stderr)
    contains(done.stderr, daemon.socket, "does not answer", f"its process {daemon.pid} is stopped")
    cure = re.search(r"kill -CONT \d+", done.stderr)[0]
    equal(subprocess.run(cure.split(), check=False).returncode, 0, cure)
    equal(daemon.status()["pid"], daemon.pid, "it answers again")
    daemon.signal(signal.SIGSTOP)
    reader = daemon.reader("d", batch=1)  # a loader waits longer than dlctl, and says soon what for
    within(20, lambda: f"its process {daemon.pid} is stopped" in reader.errors(), "that it waits for a process that is stopped")
    daemon.signal(signal.SIGCONT)
    equal(len(reader.good()), 10, "samples after all")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
        other.bind(box.path("other"))
        other.listen(5)
        done = daemon.dlctl("--socket", box.path("other"), "status")
    equal(done.returncode, 3, done.stderr)
    contains(done.stderr, box.path("other"), "does not answer: it is stopped or overloaded")
    equal(str(os.getpid()) in done.stderr, False, "this test is no daemon")


@case("readiness is announced to who asked for it, and the end too")
def _(box):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind(box.path("notify"))
    listener.settimeout(patience(10))
    daemon = box.daemon({}, environment={"NOTIFY_SOCKET": box.path("notify"), "WATCHDOG_USEC": "400000"})
    words = ""
    while "READY=1" not in words:
        words += listener.recv(4096).decode() + "\n"
    while "WATCHDOG=1" not in words:
        words += listener.recv(4096).decode() + "\n"
    daemon.signal(signal.SIGHUP)
    daemon.process.terminate()
    while "STOPPING=1" not in words:
        words += listener.recv(4096).decode() + "\n"
    daemon.process.wait(patience(10))
    listener.close()


main()
