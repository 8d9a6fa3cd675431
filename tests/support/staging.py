"""Runs the real dataloaderd-stage in tests: a configuration of its own, its progress as JSON lines, what lies where.

    staging = Staging(box, origin=server.url("manifest.jsonl"))
    done = staging.run()                       # to its end, which must be a good one; status=76 expects that exit code
    equal(files_of(staging.path), files_of(folder))
    staging.stamp()["manifest"]
"""
import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess

from harness import BUILD, Skip, config_text, die_with_parent, patience, within

STAGE = os.path.join(BUILD, "dataloaderd-stage")

# What sysexits(3) calls them.
OK, USAGE, UNAVAILABLE, OSERR, TEMPFAIL, PROTOCOL, CONFIG, INTERRUPTED = 0, 64, 69, 71, 75, 76, 78, 130


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def files_of(folder):
    """relative path -> SHA-256 of all files below a folder; links are followed at the top only."""
    found = {}
    for parent, folders, names in os.walk(os.path.realpath(folder)):
        folders.sort()
        for name in names:
            path = os.path.join(parent, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, os.path.realpath(folder))] = sha256(file.read())
    return found


def make_files(folder, sizes, seed=1):
    """Files of random bytes: path -> size. The bytes differ from file to file."""
    draw = random.Random(seed)
    for path, size in sizes.items():
        whole = os.path.join(folder, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "wb") as file:
            file.write(draw.randbytes(size) if hasattr(draw, "randbytes") else os.urandom(size))
    return folder


def photos_sizes(n_classes=3, n_each=20, size=20000):
    """As an imagefolder has them: a folder a class."""
    return {f"class{c}/{c}-{i:04d}.jpg": size + 37 * i for c in range(n_classes) for i in range(n_each)}


def write_manifest(folder, name="manifest.jsonl", paths=None, **changes):
    """A manifest of all files of the folder beside them; changes: path -> dict of what the line says instead (None: the
    key is left out)."""
    lines = []
    for path, digest in sorted(files_of(folder).items()):
        if path == name or path.endswith(".jsonl") or (paths is not None and path not in paths):
            continue
        line = {"path": path, "size": os.path.getsize(os.path.join(folder, path)), "sha256": digest}
        line.update(changes.get(path, {}))
        lines.append(json.dumps({key: value for key, value in line.items() if value is not None}) + "\n")
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.writelines(lines)
    return os.path.join(folder, name)


class Staging:
    """A dataset that is staged, and the program that does it."""

    def __init__(self, box, origin, name="photos", folder=None, path=None, config=None, **settings):
        if not os.path.exists(STAGE):
            raise Skip("dataloaderd-stage was not built")
        self.name = name
        self.box = box
        self.folder = folder or box.path(f"staging-{name}")
        os.makedirs(self.folder, exist_ok=True)
        self.path = path or os.path.join(self.folder, "data", name)
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self.config = config or os.path.join(self.folder, "stage.conf")
        self.settings = dict(origin=origin, **settings)
        self.write_config()
        self.n_runs = 0

    def write_config(self, **settings):
        self.settings.update(settings)
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(config_text({"index_dir": self.folder + "/index"}, {self.name: self.dataset()}))

    def dataset(self):
        """Its section of a configuration, for a daemon that is to serve it."""
        settings = {key: value for key, value in self.settings.items() if value is not None}
        return {"path": self.path, **{key: {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value
                                      for key, value in settings.items()}}

    def command(self, *arguments, program=()):
        return [*program, STAGE, "-c", self.config, "--format", "json", *arguments, self.name]

    def start(self, *arguments, program=(), environment=None):
        """Begins a run; its output goes to files. Returns the process."""
        self.n_runs += 1
        base = os.path.join(self.folder, f"run{self.n_runs}")
        env = dict(os.environ, **(environment or {}))
        with open(base + ".out", "wb") as out, open(base + ".err", "wb") as err:
            process = subprocess.Popen(self.command(*arguments, program=program), env=env, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err, preexec_fn=die_with_parent)
        process.base = base
        self.box.processes.append(process)
        return process

    def finish(self, process, status=OK, seconds=300):
        """Waits for its end. Returns a Done."""
        try:
            process.wait(patience(seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"dataloaderd-stage hangs: {Done(process)}") from None
        done = Done(process)
        if status is not None and process.returncode != status:
            raise AssertionError(f"dataloaderd-stage ended with {process.returncode}, not {status}: {done}")
        return done

    def run(self, *arguments, status=OK, seconds=300, program=(), environment=None):
        return self.finish(self.start(*arguments, program=program, environment=environment), status, seconds)

    def kill_when(self, condition, *arguments, seconds=60, number=signal.SIGKILL):
        """Begins a run and kills it once the condition holds. Returns whether it was killed before its end."""
        process = self.start(*arguments)
        within(seconds, lambda: process.poll() is not None or condition(), "the moment to kill")
        process.send_signal(number)
        process.wait(patience(30))
        return process.returncode == -number

    @property
    def state(self):
        return os.path.join(os.path.dirname(self.path), f".{os.path.basename(self.path)}.staged")

    def stamp(self):
        """The stamp's fields; None if there is none."""
        with contextlib.suppress(FileNotFoundError):
            with open(os.path.join(self.state, "stamp"), encoding="utf-8") as file:
                return json.load(file)
        return None

    def version(self):
        """The folder that the path leads to now; None if there is nothing."""
        return os.path.realpath(self.path) if os.path.islink(self.path) else None


class Done:
    """How a run ended: `result`, `text` and all of its lines."""

    def __init__(self, process):
        self.returncode = process.returncode
        with open(process.base + ".out", encoding="utf-8") as file:
            text = file.read()
        try:
            self.lines = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise AssertionError(f"{error} in {text[:2000]!r}") from None
        with open(process.base + ".err", encoding="utf-8", errors="replace") as file:
            self.errors = file.read()
        last = self.lines[-1] if self.lines else {}
        self.result = last.get("result")
        said = [line for line in self.lines if "message" in line or "result" in line]
        self.text = "\n".join(json.dumps(line, ensure_ascii=False) for line in said[-30:]) + self.errors

    def __str__(self):
        return f"{self.result}: {self.text[-3000:]}"
