"""Private daemons, as programs that name a dataset by its path start them: one user's place, and who runs there."""
import glob
import json
import os
import signal
import subprocess

from harness import BUILD, DLCTL, SANITIZER, Reader, equal, patience, read_arguments, within

PROGRAM = os.path.join(BUILD, "dataloaderd")


def is_running(pid):
    """A zombie does not run: nobody may be there to collect it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Home:
    """A user's environment within a box: runtime folder, home, and the private daemons that were started there. What
    still runs is ended with the box. `uid`: another user, for root."""

    n_homes = 0

    def __init__(self, box, uid=None, **environment):
        self.box = box
        self.uid = uid
        Home.n_homes += 1
        self.folder = box.path(f"home{Home.n_homes}")
        self.runtime = os.path.join(self.folder, "run")
        os.makedirs(self.runtime, 0o700)
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("DATALOADERD_", "XDG_"))}
        self.env.update(XDG_RUNTIME_DIR=self.runtime, HOME=self.folder, TMPDIR=box.folder, HOME_OF_TEST=self.folder)
        self.set(**environment)
        self.n_readers = 0
        if uid is not None:
            os.chmod(box.folder, 0o755)
            for path in (self.folder, self.runtime):
                os.chown(path, uid, uid)
        box.cleanups.append(self.close)

    def set(self, **environment):
        """None removes a variable."""
        for name, value in environment.items():
            if value is None:
                self.env.pop(name, None)
            else:
                self.env[name] = value

    def variables(self):
        """Of the environment, for a program that is to find this home's daemons and starts what environment_of() says."""
        return {name: self.env[name] for name in ("XDG_RUNTIME_DIR", "HOME", "HOME_OF_TEST")}

    def command(self, *words):
        if self.uid is None:
            return list(words)
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", *words]

    def dlctl(self, *arguments, seconds=60, **keywords):
        """Runs dlctl to its end."""
        keywords.setdefault("env", self.env)
        return subprocess.run(self.command(DLCTL, *arguments), check=False, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                              timeout=patience(seconds), **keywords)

    def good(self, *arguments, **keywords):
        """The same, and it must end well; returns its output."""
        done = self.dlctl(*arguments, **keywords)
        equal(done.returncode, 0, f"dlctl {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def reader(self, dataset, env=None, **options):
        """A running `dlctl read`."""
        self.n_readers += 1
        options.setdefault("job", f"job{self.n_readers}")
        command = self.command(DLCTL, "--format", "json", "read", dataset, *read_arguments(options))
        reader = Reader(command, env or self.env, os.path.join(self.box.folder, f"reader{id(self)}-{self.n_readers}"))
        self.box.readers.append(reader)
        return reader

    def read(self, dataset, seconds=60, **options):
        return self.reader(dataset, **options).good(seconds)

    def refused(self, dataset, *words, status=1, **options):
        """A rank that must be refused, with all these words."""
        reader = self.reader(dataset, **options)
        got, lines = reader.finish()
        message = reader.errors()
        equal((got, lines), (status, []), f"exit status and lines of reading {dataset}: {message}")
        missing = [word for word in words if word.lower() not in message.lower()]
        if missing:
            raise AssertionError(f"{missing} is missing in: {message}")
        return message

    def status(self):
        done = self.dlctl("--private", "--format", "json", "status")
        equal(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def pids(self):
        """The daemons that run in this box, whoever started them."""
        found = []
        for number in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{number}/comm", encoding="ascii", errors="replace") as comm:
                    if comm.read().strip() != "dataloaderd" or not is_running(int(number)):
                        continue
                with open(f"/proc/{number}/environ", "rb") as environ:
                    variables = environ.read().split(b"\0")
            except OSError:
                continue
            if b"HOME_OF_TEST=" + self.folder.encode() in variables:
                found.append(int(number))
        return found

    def places(self):
        """The folders in which a daemon may have its files."""
        return [os.path.join(self.runtime, "dataloaderd"), *glob.glob(os.path.join(self.box.folder, "dataloaderd-*")),
                *glob.glob(os.path.join(self.box.folder, "*", "dataloaderd-*"))]

    def files(self, ending):
        return [path for place in self.places() for path in glob.glob(os.path.join(place, "private-*" + ending))]

    def log(self):
        texts = []
        for path in self.files(".log.1") + self.files(".log"):
            with open(path, encoding="utf-8", errors="replace") as log:
                texts.append(log.read())
        return "".join(texts)

    def n_started(self):
        """How many daemons have begun to serve here."""
        return self.log().count(" serves 0 datasets ")

    def stop(self):
        self.dlctl("--private", "stop", "--now")
        within(20, lambda: not self.pids(), "the end of the private daemon")

    def close(self):
        for pid in self.pids():
            os.kill(pid, signal.SIGTERM)
        within(30, lambda: not self.pids(), "the end of what was started")
        if SANITIZER.search(self.log()):
            raise AssertionError(self.log())
