"""A piece of work that many processes come to and one does, as the tests of `dlctl once` and dlclient.once() see it: each
run leaves a line in a file, so that what ran twice or not at all is seen."""
import os
import shutil
import subprocess

from harness import DLCTL, SANITIZER, Skip, equal, patience


def environment(**more):
    env = {name: value for name, value in os.environ.items() if name != "DATALOADERD_ONCE_DIR"}
    env.update(more)
    return env


class Work:
    """A folder to remember things in, and the file that each run adds its line to."""

    def __init__(self, box, name="work"):
        self.box = box
        self.name = name
        self.dir = box.path(name)
        self.marks_path = box.path(name + ".marks")
        os.mkdir(self.dir)

    def command(self, script, *options, scope=None, command=None):
        """The command line of a rank. `script` is the shell's; it finds mark, which notes that it ran."""
        head = [DLCTL, "once", "--name", self.name, "--dir", self.dir] + (["--scope", scope] if scope else [])
        return head + list(options) + ["--"] + (command or ["sh", "-c", f'echo "$$" >> {self.marks_path}; {script}'])

    def start(self, script, *options, **keywords):
        return self.box.start(self.command(script, *options, **keywords), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True, env=environment())

    def run(self, script, *options, status=0, **keywords):
        return self.end(self.start(script, *options, **keywords), status)

    def end(self, process, status=0):
        """Its output, once it has ended with this status."""
        stdout, stderr = process.communicate(timeout=patience(60))
        if SANITIZER.search(stderr):
            raise AssertionError(stderr)
        equal(process.returncode, status, f"exit status; stderr: {stderr}")
        return stdout, stderr

    def marks(self):
        """Process ids of the runs so far."""
        if not os.path.exists(self.marks_path):
            return []
        with open(self.marks_path, encoding="utf-8") as file:
            return [int(line) for line in file.read().split()]

    def has_come(self, process):
        """Has it opened the record of the work? It reads it at once then."""
        try:
            fds = os.listdir(f"/proc/{process.pid}/fd")
            return any(os.readlink(f"/proc/{process.pid}/fd/{fd}").endswith(".once") for fd in fds)
        except FileNotFoundError:  # one that was just closed
            return False

    def record(self):
        files = [name for name in os.listdir(self.dir) if name.endswith(".once")]
        equal(len(files), 1, f"files in {self.dir}: {files}")
        return os.path.join(self.dir, files[0])


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def mpirun(n=4):
    """The beginning of a command line that starts n ranks on this machine."""
    if shutil.which("mpirun") is None:
        raise Skip("mpirun is not installed")
    return ["mpirun", "-np", str(n), "--oversubscribe"] + (["--allow-run-as-root"] if os.geteuid() == 0 else [])
