#!/usr/bin/env python3
"""The installed units on a system that boots: a container of systemd-nspawn over an overlay of this machine, in which
nothing of this machine is changed. Root only."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import (BUILD, ROOT, Skip, case, check_bytes, check_sequence, contains, die_with_parent, equal, main,
                     samples_of, within, write)

NAME = f"dataloaderd-test-{os.getpid()}"
N = 40
CGROUPS = ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup")
CONFIG = 'memory_limit = "256MiB"\nworkers = 2\ndataset "d" {\n    path = "/srv/d"\n    format = "imagefolder"\n}\n'


def run(*command, check=True, seconds=60):
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, timeout=seconds)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(command)} ended with {done.returncode}: {done.stdout}")
    return done.stdout


class Machine:
    """A booted container. Everything it took from this machine is given back by close()."""

    def __init__(self, box):
        self.box = box
        self.base = box.path("machine")
        self.root = os.path.join(self.base, "root")
        self.cgroups = []
        self.process = None
        self.init = None
        box.cleanups.append(self.close)

    def prepare(self):
        """The overlay, with our files installed and nothing else that starts at boot."""
        os.makedirs(self.base)
        run("mount", "-t", "tmpfs", "tmpfs", self.base)
        for name in ("root", "upper", "work"):
            os.mkdir(os.path.join(self.base, name))
        run("mount", "-t", "overlay", "overlay", "-o",
            f"lowerdir=/,upperdir={self.base}/upper,workdir={self.base}/work", self.root)
        for name in ("etc/machine-id", "etc/fstab"):
            write(os.path.join(self.root, name), b"")
        for folder in ("etc/systemd/system", "lib/systemd/system"):
            for name in os.listdir(os.path.join(self.root, folder)):
                if name.endswith(".wants"):
                    shutil.rmtree(os.path.join(self.root, folder, name))
        wants = os.path.join(self.root, "etc/systemd/system/sockets.target.wants")
        os.makedirs(wants)
        os.symlink("/lib/systemd/system/dbus.socket", os.path.join(wants, "dbus.socket"))
        run("make", "-s", "-C", ROOT, "install", f"DESTDIR={self.root}", seconds=300)
        write(os.path.join(self.root, "etc/dataloaderd/dataloaderd.conf"), CONFIG.encode())
        run("systemd-sysusers", f"--root={self.root}")
        run("systemd-tmpfiles", f"--root={self.root}", "--create", "--prefix=/var/cache/dataloaderd")

    def boot(self):
        for controller in CGROUPS:
            if os.path.exists(os.path.join(controller, "cgroup.procs")):
                path = os.path.join(controller, NAME)
                os.mkdir(path)
                self.cgroups.append(path)
        entered = "; ".join(f"echo $$ >{path}/cgroup.procs" for path in self.cgroups)
        command = f"{entered}; exec systemd-nspawn --quiet -D {self.root} -M {NAME} --register=no --keep-unit " \
            "--private-network --capability=CAP_IPC_LOCK --boot --console=pipe"
        with open(self.box.path("console"), "wb") as console:
            # Not the box's to end, which has less patience: a container that is killed leaves its processes behind.
            self.process = subprocess.Popen(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=console, stderr=console,
                                            preexec_fn=die_with_parent)
        try:
            within(20, self.find_init, "systemd in the container")
            within(30, lambda: self.systemctl("is-system-running", check=False).strip() in ("running", "degraded"),
                   "the container has booted")
        except AssertionError as error:
            with open(self.box.path("console"), encoding="utf-8", errors="replace") as console:
                raise Skip(f"systemd-nspawn does not boot here: {console.read()[-300:]!r}") from error

    def find_init(self):
        if self.process.poll() is not None:
            raise AssertionError(f"systemd-nspawn ended with {self.process.returncode}")
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as children:
            for pid in children.read().split():
                with open(f"/proc/{pid}/comm", encoding="ascii") as comm:
                    if comm.read().strip() == "systemd":
                        self.init = pid
                        return True
        return False

    def inside(self, *command, check=True):
        return run("nsenter", "-a", "-t", self.init, *command, check=check)

    def start_inside(self, *command):
        return self.box.start(["nsenter", "-a", "-t", self.init, *command], stdout=subprocess.PIPE, text=True)

    def systemctl(self, *arguments, check=True):
        return self.inside("systemctl", *arguments, check=check)

    def show(self, what, unit="dataloaderd.service"):
        return self.systemctl("show", "-P", what, unit).strip()

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)  # nspawn asks the container to power off
            try:
                self.process.wait(300)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for path in (self.root, self.base):
            if os.path.ismount(path):
                subprocess.run(["umount", path], check=False)
            if os.path.ismount(path):
                subprocess.run(["umount", "-l", path], check=False)
        for path in self.cgroups:
            for folder, _, _ in os.walk(path, topdown=False):
                for _ in range(100):  # what was killed in there may take a moment to end
                    try:
                        os.rmdir(folder)
                        break
                    except OSError:
                        time.sleep(0.05)


def machine(box, prepare=None):
    if os.getuid() != 0:
        raise Skip("only root can boot a container")
    if not shutil.which("systemd-nspawn"):
        raise Skip("systemd-nspawn is not installed (package systemd-container)")
    if os.path.basename(BUILD) != "release":
        raise Skip("what is installed is the release build")
    if not any(os.path.exists(os.path.join(path, "cgroup.procs")) for path in CGROUPS):
        raise Skip("no control groups")
    made = Machine(box)
    try:
        made.prepare()
    except AssertionError as error:
        if "mount" in str(error):
            raise Skip(f"no overlay can be mounted here: {error}") from error
        raise
    folder = os.path.join(made.root, "srv", "d")
    source = box.folder_of_files("d", N)
    shutil.copytree(source, folder)
    if prepare:
        prepare(made)
    made.boot()
    return made, source


def read(made, *arguments):
    output = made.inside("dlctl", "--format", "json", "read", "d", *arguments)
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


@case("installed: socket activation, readiness, status, serving, reload, restart after kill -9, a clean stop")
def _(box):
    made, source = machine(box)

    made.systemctl("start", "dataloaderd.socket")
    equal(made.show("ActiveState"), "inactive", "nobody has asked yet")
    contains(made.inside("stat", "-c", "%U %G %a", "/run/dataloaderd/dataloaderd.sock"), "dataloaderd dataloaderd 660")
    lines = read(made, "--epochs", "2")
    check_sequence(lines, N, epochs=2)
    check_bytes(lines, samples_of(source))
    equal((made.show("ActiveState"), made.show("Type")), ("active", "notify"), "started by the first client")
    contains(made.inside("dlctl", "status"), made.show("MainPID"))
    status = json.loads(made.inside("dlctl", "--format", "json", "status"))
    contains(str(status), "io_uring")

    made.systemctl("reload", "dataloaderd")
    check_sequence(read(made), N)

    # A live upgrade: for a trainer it is a pause. None lost, none twice.
    reader = made.start_inside("dlctl", "--format", "json", "read", "d", "--epochs", "60", "--batch", "4", "--delay-ms",
                               "5", "--on-restart", "wait")
    for _ in range(3):
        time.sleep(0.4)
        pid = made.show("MainPID")
        made.systemctl("restart", "dataloaderd.service")
        equal(made.show("MainPID") != pid, True, "it is another process")
    output, _ = reader.communicate(timeout=300)
    check_sequence([json.loads(line) for line in output.splitlines()], N, batch=4, epochs=60)
    equal(reader.returncode, 0, "exit status of the reader")

    pid = made.show("MainPID")
    made.systemctl("kill", "-s", "KILL", "dataloaderd.service")
    within(10, lambda: made.show("MainPID") not in ("0", pid) and made.show("ActiveState") == "active",
           "started again after kill -9")
    check_sequence(read(made), N)
    equal(made.show("NRestarts"), "1", "restarts")

    made.systemctl("stop", "dataloaderd.service", "dataloaderd.socket")
    equal((made.show("Result"), made.show("ActiveState")), ("success", "inactive"), "after stop")
    equal(made.show("ExecMainStatus"), "0", "exit status")

    made.systemctl("start", "dataloaderd.service")
    equal(made.show("StatusText") != "", True, "a status text is announced")
    check_sequence(read(made), N)

    write(os.path.join(made.root, "etc/dataloaderd/dataloaderd.conf"), b"nonsense = 1\n")
    made.systemctl("restart", "dataloaderd.service", check=False)
    within(5, lambda: made.show("ActiveState") == "failed", "a wrong configuration fails")
    equal(made.show("ExecMainStatus"), "78", "exit status of a wrong configuration")


# ---- two users ----------------------------------------------------------------------------------------------------

ALICE, BOB = 61002, 61003
HOLD = """
import ctypes, os, sys, threading, time
sys.path.insert(0, "/opt/test")
from harness import HandClient
client = HandClient("/run/dataloaderd/dataloaderd.sock")
client.attach("d", job="stuck", batch=4)
print(len(client.descriptors), os.getpid(), flush=True)
if len(sys.argv) > 1:  # the first thread ends, and with it goes the memory of which the kernel tells; the process lives on
    threading.Thread(target=time.sleep, args=(120,)).start()
    ctypes.CDLL(None).syscall(60, 0)
time.sleep(120)
"""


def prepare_users(made):
    """Two users in the group of the socket, and a client of our own for them."""
    with open(os.path.join(made.root, "etc/group"), encoding="utf-8") as groups:
        lines = groups.read().splitlines()
    made.group = next(int(line.split(":")[2]) for line in lines if line.startswith("dataloaderd:"))
    for name, uid in (("alice", ALICE), ("bob", BOB)):
        with open(os.path.join(made.root, "etc/passwd"), "a", encoding="utf-8") as users:
            users.write(f"{name}:x:{uid}:{uid}::/nonexistent:/bin/sh\n")
    with open(os.path.join(ROOT, "tests", "support", "harness.py"), "rb") as harness:
        write(os.path.join(made.root, "opt/test/harness.py"), harness.read())
    write(os.path.join(made.root, "opt/test/hold.py"), HOLD.encode())


def as_user(made, uid, *command):
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", f"--groups={made.group}", *command]


def jobs_of(made, uid):
    lines = made.inside(*as_user(made, uid, "dlctl", "--format", "json", "jobs")).splitlines()
    return [json.loads(line) for line in lines]


def hold(made, uid, *arguments):
    """A process of the user that is rank 0 of the job "stuck"; returns its pid in the container."""
    holder = made.start_inside(*as_user(made, uid, "/usr/bin/python3", "/opt/test/hold.py", *arguments))
    words = holder.stdout.readline().split()
    equal(words[:1], ["3"], "descriptors that came with the ring")
    return words[1]


@case("booted: two users under the shipped unit are apart, and a rank whose process is ending is waited for")
def _(box):
    if not os.path.exists("/usr/bin/python3"):
        raise Skip("no /usr/bin/python3")
    made, _ = machine(box, prepare_users)
    made.systemctl("start", "dataloaderd.service")
    for key in ("MemoryMax", "TasksMax"):
        equal(made.show(key) not in ("infinity", ""), True, f"{key} is set: {made.show(key)}")

    alive = hold(made, ALICE)
    bobs = hold(made, BOB)
    (job,) = jobs_of(made, ALICE)
    within(10, lambda: [rank["user"] for job in jobs_of(made, ALICE) for rank in job["ranks"]] == ["alice"], "her name")
    equal((job["name"], [rank["pid"] for rank in job["ranks"]]), ("stuck", [int(alive)]), "what Alice sees")
    equal([rank["pid"] for job in jobs_of(made, BOB) for rank in job["ranks"]], [int(bobs)], "what Bob sees")
    equal(len(jobs_of(made, 0)), 2, "what root sees")
    contains(made.inside(*as_user(made, BOB, "dlctl", "workers", "1"), check=False), "only root")
    refused = made.inside(*as_user(made, ALICE, "dlctl", "read", "d", "--job", "stuck", "--batch", "4", "--pipeline", "raw"),
                          check=False)
    contains(refused, "attached already", alive)  # it is alive, which is not taken for ending
    made.inside("kill", "-9", alive)

    ending = within(10, lambda: hold(made, ALICE, "ending"), "the rank is free again")
    reader = made.start_inside(*as_user(made, ALICE, "dlctl", "--format", "json", "read", "d", "--job", "stuck", "--batch",
                                        "4", "--pipeline", "raw"))
    time.sleep(2)
    equal(reader.poll(), None, "the reader waits for the process that is ending")
    made.inside("kill", "-9", ending)
    output, _ = reader.communicate(timeout=300)
    check_sequence([json.loads(line) for line in output.splitlines()], N, batch=4)


# ---- staging --------------------------------------------------------------------------------------------------------

STAGED = CONFIG + 'dataset "staged" {\n    path = "/data/staged"\n    origin = "file:///srv/d"\n}\n'


def prepare_staging(made):
    """A dataset whose origin is the folder of the other one, and a place that the daemon's user may write to."""
    write(os.path.join(made.root, "etc/dataloaderd/dataloaderd.conf"), STAGED.encode())
    os.makedirs(os.path.join(made.root, "data"))
    uid, gid = next((int(fields[2]), int(fields[3])) for fields in
                    (line.split(":") for line in open(os.path.join(made.root, "etc/passwd"), encoding="utf-8"))
                    if fields[0] == "dataloaderd")
    os.chown(os.path.join(made.root, "data"), uid, gid)


def datasets(made):
    lines = made.inside("dlctl", "--format", "json", "datasets").splitlines()
    return {row["name"]: row for row in (json.loads(line) for line in lines)}


@case("booted: the daemon waits for the stamp, the staging unit brings the dataset, and a waiting reader gets its samples")
def _(box):
    if not os.path.exists(os.path.join(BUILD, "dataloaderd-stage")):
        raise Skip("build/release/dataloaderd-stage was not built")
    made, source = machine(box, prepare_staging)
    made.systemctl("start", "dataloaderd.service")
    within(10, lambda: datasets(made)["staged"]["state"] == "not staged", "the daemon waits")
    contains(datasets(made)["staged"]["text"], "dlctl stage staged")
    reader = made.start_inside("dlctl", "--format", "json", "read", "staged", "--epochs", "2")
    time.sleep(1)
    equal(reader.poll(), None, "a reader waits, too")

    made.systemctl("start", "dataloaderd-stage@staged.service")
    equal((made.show("Result", "dataloaderd-stage@staged.service"),
           made.show("ExecMainStatus", "dataloaderd-stage@staged.service")), ("success", "0"), "the unit")
    output, _ = reader.communicate(timeout=300)
    lines = [json.loads(line) for line in output.splitlines()]
    check_sequence(lines, N, epochs=2)
    check_bytes(lines, samples_of(source))
    row = datasets(made)["staged"]
    equal((row["state"], row["n_samples"], row["origin"]), ("ready", N, "file:///srv/d"), "dlctl datasets")
    contains(made.inside("stat", "-c", "%U", "/data/.staged.staged/stamp"), "dataloaderd")

    made.systemctl("start", "dataloaderd-stage@staged.service")  # there is nothing to do
    equal(made.show("Result", "dataloaderd-stage@staged.service"), "success", "again")
    made.systemctl("start", "dataloaderd-stage@nosuch.service", check=False)
    equal((made.show("Result", "dataloaderd-stage@nosuch.service"),
           made.show("ExecMainStatus", "dataloaderd-stage@nosuch.service")), ("exit-code", "78"), "no such dataset")


main()
