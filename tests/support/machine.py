"""A system that boots: a container of systemd-nspawn over an overlay of this machine, in which nothing of this machine is
changed. Root only; where it cannot be had, the case is skipped with the reason.

    made, source = machine(box)                  # with what `make install` installs, and a dataset "d" of N files
    made.systemctl("start", "dataloaderd.socket")
    check_sequence(read(made), N)
"""
import json
import os
import shutil
import signal
import subprocess
import time

from harness import BUILD, ROOT, Skip, die_with_parent, within, write

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

    def prepare(self, install):
        """The overlay, with our files installed if they are to be, and nothing else that starts at boot."""
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
        if not install:
            return
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
            # Not the box's to end, which has less patience: processes of a container that is killed stay.
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

    def inside(self, *command, check=True, seconds=60):
        return run("nsenter", "-a", "-t", self.init, *command, check=check, seconds=seconds)

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


def machine(box, prepare=None, install=True):
    """Boots one. prepare(made) may change it before; install=False leaves out what `make install` brings."""
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
        made.prepare(install)
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
