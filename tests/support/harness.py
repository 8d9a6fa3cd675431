"""What the integration tests stand on: the real binaries, in a folder of their own, ended whatever happens.

A test script is a list of cases; each proves one sentence and gets a Box: a temporary folder and everything that was
started in it. When a case ends, the box ends its processes by their ids, asks that every daemon that was not killed on
purpose left with status 0, without a sanitizer's word in its log, and never had more memory than its memory_limit and a
stated allowance; and removes the folder.

    @case("two ranks share the samples as DistributedSampler says")
    def _(box):
        folder = box.folder_of_files("d", 10)
        daemon = box.daemon({"d": folder})
        lines = daemon.read("d", world=2, rank=0)

    main()

DLP_BUILD names the build that is tested (build/release unless set). Python's standard library is all it needs.
"""
import collections
import contextlib
import ctypes
import errno
import hashlib
import itertools
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("DLP_BUILD", "build/release"))
VARIANT = os.path.basename(BUILD)
SLOWER = {"asan": 3, "tsan": 8}.get(VARIANT, 1)  # deadlines of slow builds are longer by this factor
IS_SANITIZED = SLOWER > 1
ALLOWANCE_MIB = 64  # what a daemon may have resident beside its memory_limit
SHORTEST_WAIT = 60  # seconds: a deadline tells a hang from a machine that is busy, and nothing else
DAEMON = os.path.join(BUILD, "dataloaderd")
DLCTL = os.path.join(BUILD, "dlctl")
SANITIZER = re.compile(r"Sanitizer|runtime error:")

# torchvision's IMG_EXTENSIONS
EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


class Skip(Exception):
    """Raised by a case that cannot run here; its text is the reason."""


# ---- cases ----------------------------------------------------------------------------------------------------------

CASES = []


def few(n, sanitized):
    """How many of the same there are: n, and fewer under sanitizers, which see in them what they see at all."""
    return sanitized if IS_SANITIZED else n


def case(sentence, sanitized=True, without=()):
    """Registers a case. Its name is the sentence that it proves. With sanitized=False the sanitizers' builds leave it
    out: it compares how fast things are, and takes them minutes. `without` names builds that would see in it what they see in
    other cases: of TSan's, its threads."""
    def register(function):
        if (sanitized or not IS_SANITIZED) and VARIANT not in without:
            CASES.append((sentence, function))
        return function
    return register


def main(tells_samples=False):
    """Runs the cases; `-k WORD` those whose sentence contains it. Ends the process as tests/run.py wants it.
    tells_samples: says how many samples each case has had from a daemon."""
    wanted = sys.argv[2] if len(sys.argv) == 3 and sys.argv[1] == "-k" else ""
    counts = collections.Counter()
    for sentence, function in CASES:
        if wanted not in sentence:
            continue
        n_before = Reader.n_samples
        counts[run_case(sentence, function)] += 1
        if tells_samples and Reader.n_samples > n_before:
            print(f"        {Reader.n_samples - n_before:,} samples read", flush=True)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped", flush=True)
    if counts["failed"]:
        sys.exit(1)
    sys.exit(77 if counts["skipped"] and not counts["passed"] else 0)


def cpu_seconds():
    """Of this process and of all that it has waited for."""
    return sum(os.times()[:4])


def run_case(sentence, function):
    begin, cpu = time.monotonic(), cpu_seconds()
    box = Box()
    trouble = None
    try:
        function(box)
    except Skip as skip:
        box.close()
        print(f"skipped {sentence}: {skip}", flush=True)
        return "skipped"
    except BaseException as error:  # pylint: disable=broad-except
        trouble = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        if isinstance(error, KeyboardInterrupt):
            box.close()
            raise
    remarks = box.close()
    if trouble is None and remarks:
        trouble = "\n".join(remarks)
    if trouble is None:
        print(f"ok      {sentence} ({time.monotonic() - begin:.1f} s, {cpu_seconds() - cpu:.1f} cpu)", flush=True)
        return "passed"
    print(f"FAILED  {sentence}\n{trouble}")
    for daemon in box.daemons:
        print(f"--- log of {daemon.name} ---\n{daemon.last_log}", flush=True)
    return "failed"


def equal(got, expected, what="value"):
    """Fails with both values, cut to what a reader can take in."""
    if got != expected:
        raise AssertionError(f"{what}: got {short(got)}, expected {short(expected)}{first_difference(got, expected)}")


def first_difference(got, expected):
    if isinstance(got, list) and isinstance(expected, list):
        for place, (one, other) in enumerate(zip(got, expected)):
            if one != other:
                return f"; first difference at {place}: {short(one)} and {short(other)}"
        return f"; lengths {len(got)} and {len(expected)}"
    return ""


def short(value):
    text = repr(value)
    return text if len(text) < 400 else text[:400] + "..."


def contains(text, *parts):
    """All parts are in the text, whatever their case."""
    for part in parts:
        if str(part).lower() not in text.lower():
            raise AssertionError(f"{part!r} is not in: {text.strip()}")


class Table:
    """Goes through rows of a table to the end, also past those that fail; then fails with all of them.

        table = Table()
        for row in rows:
            with table.row(row):
                equal(...)
        table.done()
    """

    def __init__(self):
        self.failures = []

    @contextlib.contextmanager
    def row(self, what):
        try:
            yield
        except AssertionError as error:
            self.failures.append(f"{short(what)}: {error}")

    def done(self):
        if self.failures:
            raise AssertionError(f"{len(self.failures)} rows fail\n  " + "\n  ".join(self.failures))


def patience(seconds):
    """How long a test waits for what takes up to `seconds` on an idle machine, before it calls it a hang."""
    return max(seconds, SHORTEST_WAIT) * SLOWER


def within(seconds, condition, what):
    """Waits until condition() is true and returns its value; fails after patience(seconds)."""
    end = time.monotonic() + patience(seconds)
    pause = 0.01
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {patience(seconds)} s: {what}")
        time.sleep(pause)
        pause = min(pause * 1.3, 0.1)  # a look often starts a program: waiting must not keep the CPUs busy


# ---- processes ------------------------------------------------------------------------------------------------------

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1


def die_with_parent():
    """In the child, before exec: whatever becomes of the test, its processes do not outlive it."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def end(process, seconds=5):
    """Ends a process that we started and reaps it; by force if it takes longer than `seconds`."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(seconds * SLOWER)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Reader:
    """A running `dlctl read`: a rank. Its lines are collected as they come."""

    n_samples = 0  # that all of them have had together

    def __init__(self, command, env, stderr_path):
        self.stderr_path = stderr_path
        with open(stderr_path, "wb") as stderr:
            self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                            stderr=stderr, preexec_fn=die_with_parent)
        self.pid = self.process.pid
        self.lines = []
        self.thread = threading.Thread(target=self._collect, daemon=True)
        self.thread.start()

    def _collect(self):
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    def finish(self, seconds=60):
        """Waits for its end. Returns (exit status, lines)."""
        try:
            self.process.wait(patience(seconds))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"dlctl read hangs after {len(self.lines)} lines: {self.errors()}") from None
        self.thread.join(patience(10))
        return self.process.returncode, self.lines

    def good(self, seconds=60):
        """Waits for its end, which must be a good one. Returns the lines."""
        status, lines = self.finish(seconds)
        if status != 0:
            raise AssertionError(f"dlctl read ended with {status}: {self.errors()}")
        Reader.n_samples += len(lines)
        return lines

    def wait_lines(self, n_lines, seconds=20):
        within(seconds, lambda: len(self.lines) >= n_lines or self.process.poll() is not None,
               f"{n_lines} lines (there are {len(self.lines)})")
        if len(self.lines) < n_lines:
            self.thread.join(60)
        if len(self.lines) < n_lines:
            raise AssertionError(f"dlctl read ended after {len(self.lines)} lines: {self.errors()}")

    def errors(self):
        with open(self.stderr_path, encoding="utf-8", errors="replace") as stderr:
            return stderr.read()


def answers(path):
    """Does a daemon answer at this socket? Much cheaper than dlctl, above all with a sanitizer in it."""
    try:
        with contextlib.closing(HandClient(path)) as client:
            client.send(request("status"))
            return client.receive() != b""
    except OSError:
        return False


class Daemon:
    """A private daemon with its own socket, index folder and log."""

    def __init__(self, box, name, datasets, settings, arguments, environment, program, wait):
        self.box = box
        self.name = name
        self.folder = box.path(name)
        os.makedirs(self.folder, exist_ok=True)
        self.socket = os.path.join(self.folder, "s")
        self.config = os.path.join(self.folder, "dataloaderd.conf")
        self.log_path = os.path.join(self.folder, "log")
        self.last_log = ""
        self.expected_status = 0
        self.n_readers = 0
        self.environment = environment
        self.command = list(program) + [DAEMON, "-c", self.config] + list(arguments)
        self.settings = {"socket": self.socket, "index_dir": os.path.join(self.folder, "index"), "workers": 2,
                         "memory_limit": "1GiB"}
        if os.environ.get("DLP_ISOLATION"):  # the whole suite over decoders in processes of their own
            self.settings["isolation"] = os.environ["DLP_ISOLATION"]
        self.settings.update(settings)
        self.datasets = datasets
        self.largest_limit_mib = 0
        self.is_wrapped = bool(program)  # then our child is not the daemon itself
        self.write_config()
        self.process = None
        self.start(wait)

    def write_config(self):
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(config_text(self.settings, self.datasets))
        limit = re.fullmatch(r"(\d+)(M|G)iB", str(self.settings["memory_limit"]))
        self.largest_limit_mib = max(self.largest_limit_mib, int(limit[1]) << (10 if limit[2] == "G" else 0)) if limit else 1 << 40

    def memory_remark(self):
        """memory_limit is a promise in every case: the most that the process ever had, or None if that is allowed."""
        if self.is_wrapped or IS_SANITIZED or self.process.poll() is not None:
            return None
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            peak = re.search(r"VmHWM:\s+(\d+)", status.read())
        if not peak or int(peak[1]) <= (self.largest_limit_mib + ALLOWANCE_MIB) << 10:
            return None
        return (f"{self.name} had {int(peak[1]) >> 10} MiB resident, memory_limit is {self.largest_limit_mib} MiB and "
                f"{ALLOWANCE_MIB} MiB are allowed beside it")

    def start(self, wait=True):
        """Starts it (again); waits until it answers."""
        env = dict(os.environ)
        env.update(self.environment)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            preexec_fn=die_with_parent, cwd=self.folder)
        self.expected_status = 0
        if wait:
            self.wait_ready()

    def wait_ready(self, seconds=10):
        def is_ready():
            if self.process.poll() is not None:
                raise AssertionError(f"the daemon ended with {self.process.returncode}: {self.log()}")
            return answers(self.socket)
        within(seconds, is_ready, f"{self.name} answers a request")

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        """All that it has logged until now: a thread of its own writes the lines, and is waited for."""
        within(10, self._has_written, "a log that is written")
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def _has_written(self):
        """Whether the thread that writes the log is gone or sleeps; with a line to write it does not."""
        for task in os.listdir(f"/proc/{self.pid}/task") if self.process and os.path.exists(f"/proc/{self.pid}/task") else ():
            with contextlib.suppress(OSError), open(f"/proc/{self.pid}/task/{task}/stat", encoding="ascii", errors="replace") as stat:
                name, state = re.match(r"\d+ \((.*)\) (.)", stat.read()).groups()
                if name == "log":
                    return state not in "RD"
        return True

    def wait_log(self, part, seconds=5):
        within(seconds, lambda: part.lower() in self.log().lower(), f"{part!r} in the log")

    def signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        """kill -9, on purpose."""
        self.expected_status = -signal.SIGKILL
        self.process.kill()
        self.process.wait()

    def stop(self, seconds=10):
        """SIGTERM; it must leave with status 0."""
        equal(self.memory_remark(), None, "memory")
        self.process.terminate()
        self.process.wait(patience(seconds))
        equal(self.process.returncode, 0, f"exit status of {self.name}")

    # -- asking it

    def client_environment(self):
        env = {name: value for name, value in os.environ.items()
               if name not in ("RANK", "WORLD_SIZE", "DATALOADERD_SOCKET")}
        return env

    def dlctl(self, *arguments, seconds=30):
        """Runs dlctl; returns the finished process, its output as text."""
        command = [DLCTL, "--socket", self.socket] + [str(argument) for argument in arguments]
        return subprocess.run(command, env=self.client_environment(), stdin=subprocess.DEVNULL, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                              timeout=patience(seconds))

    def objects(self, *arguments):
        """Runs dlctl with JSON output; returns its objects."""
        done = self.dlctl("--format", "json", *arguments)
        if done.returncode != 0:
            raise AssertionError(f"dlctl {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def status(self):
        return self.objects("status")[0]

    def memory_used(self):
        """Bytes accounted against memory_limit, once no index is being made, which is charged for its memory."""
        end = time.monotonic() + patience(10)
        while any(dataset["state"] == "indexing" for dataset in self.objects("datasets")) and time.monotonic() < end:
            time.sleep(0.01)
        return self.status()["memory_used_bytes"]

    def rss_kib(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))

    def cpu_ticks(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def quiet_for(self, seconds, n_wake_ups=10):
        """Waits until it sleeps for this time: a tick of CPU time and n_wake_ups are ignored. What it had to do before may
        take a while on a busy machine; one that never sleeps never gets there. The main thread's look at the machine, once a
        second, is up to four: libevent's clock is 4 ms coarse, so it sleeps again, for a millisecond, until that clock is there."""
        def is_quiet():
            ticks, n_before, begin = self.cpu_ticks(), self.wake_ups(), time.monotonic()
            time.sleep(seconds)
            took = time.monotonic() - begin  # on a busy machine more than asked for
            n_allowed = -(-n_wake_ups * took // seconds)
            return self.cpu_ticks() - ticks <= 1 and self.wake_ups() - n_before <= n_allowed
        within(60, is_quiet, f"{seconds} s in which {self.name} sleeps")

    def wake_ups(self):
        """Times that any of its threads went to sleep since the start. One that others only push off the CPU stays awake."""
        n = 0
        for thread in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{thread}/status", encoding="ascii", errors="replace") as status:
                n += sum(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt_switches"))
        return n

    def at_rest(self):
        """(bytes of memory_limit, descriptors) once nobody is attached and what others left is given back: its threads close
        and free after the answer."""
        seen = [None, (0, 0)]

        def is_at_rest():
            seen[:] = seen[1], (self.memory_used(), self.n_descriptors())
            return seen[0] == seen[1] and self.objects("jobs") == []
        within(10, is_at_rest, "a daemon at rest")
        return seen[1]

    def n_descriptors(self):
        """Open descriptors; the least of a few looks, since dlctl's own connection is closed a moment after it ended."""
        counts = []
        for _ in range(5):
            counts.append(len(os.listdir(f"/proc/{self.pid}/fd")))
            time.sleep(0.01)
        return min(counts)

    def nice_of(self, name):
        """The nice values of the threads of this name."""
        values, folder = [], f"/proc/{self.pid}/task"
        for thread in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError), \
                 open(f"{folder}/{thread}/stat", encoding="ascii", errors="replace") as stat:
                before, _, after = stat.read().rpartition(")")
                if before.partition("(")[2] == name:
                    values.append(int(after.split()[16]))
        return values

    def reader(self, dataset, **options):
        """Starts a rank; see read_arguments() for the options."""
        self.n_readers += 1
        command = [DLCTL, "--socket", self.socket, "--format", "json", "read", dataset] + read_arguments(options)
        reader = Reader(command, self.client_environment(), os.path.join(self.folder, f"reader{self.n_readers}"))
        self.box.readers.append(reader)
        return reader

    def read(self, dataset, seconds=60, **options):
        """Runs a rank to its end; returns its lines."""
        return self.reader(dataset, **options).good(seconds)

    def read_ranks(self, dataset, world, seconds=120, **options):
        """Runs all ranks of a world beside each other; returns a list of their lines."""
        options.setdefault("job", f"job{self.n_readers}")
        readers = [self.reader(dataset, world=world, rank=rank, **options) for rank in range(world)]
        return [reader.good(seconds) for reader in readers]

    def refused(self, dataset, *words, **options):
        """Runs a rank that must be refused with exit status 1 and all these words. Returns the message."""
        reader = self.reader(dataset, **options)
        status, lines = reader.finish(20)
        message = reader.errors()
        if status != 1 or lines:
            raise AssertionError(f"{options}: exit status {status} after {len(lines)} lines: {message}")
        contains(message, *words)
        return message

    def refused_after(self, index, dataset, *words):
        """Reads files in their order; the job must end at this sample with these words."""
        reader = self.reader(dataset, shuffle=False, job=f"until {index}")
        status, lines = reader.finish(20)
        equal((status, indices(lines)), (1, list(range(index))), f"exit status and samples; {reader.errors()}")
        contains(reader.errors(), *words)


def read_arguments(options):
    """world=2 -> --world 2, drop_last=True -> --drop-last, shuffle=False -> --no-shuffle"""
    arguments = []
    for name, value in options.items():
        if name == "shuffle":
            arguments += [] if value else ["--no-shuffle"]
        elif value is True:
            arguments.append("--" + name.replace("_", "-"))
        elif value is not False and value is not None:
            arguments += ["--" + name.replace("_", "-"), str(value)]
    return arguments


def config_value(value):
    """As the configuration writes it. Between single quotes a text is taken as it is, except these and backslashes."""
    if isinstance(value, int):
        return str(value)
    if '"' not in value and "$" not in value:
        return f'"{value}"'
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def config_text(settings, datasets):
    lines = []
    for name, value in settings.items():
        if value is not None:
            lines.append(f"{name} = {config_value(value)}")
    for name, keys in datasets.items():  # a path, or all keys of the section
        keys = {"format": "imagefolder", **(keys if isinstance(keys, dict) else {"path": keys})}
        lines.append(f'dataset "{name}" {{')
        lines += [f"    {key} = {config_value(value)}" for key, value in keys.items()]
        lines.append("}")
    return "\n".join(lines) + "\n"


class Box:
    """A temporary folder and all that was started in it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="dlp-")
        self.tmpdir = os.environ.get("TMPDIR")
        os.environ["TMPDIR"] = self.folder  # what a killed trainer leaves (Python's pymp-...) goes with the folder
        self.daemons = []
        self.readers = []
        self.processes = []
        self.releases = []  # called first when the box is closed: what would keep processes from ending
        self.cleanups = []

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def daemon(self, datasets=None, name=None, arguments=(), environment=None, program=(), wait=True, **settings):
        """Starts a private daemon. `program` goes in front of its command line, such as ["setpriv", ...]."""
        daemon = Daemon(self, name or f"daemon{len(self.daemons)}", datasets or {}, settings, arguments,
                        environment or {}, program, wait=False)
        self.daemons.append(daemon)
        if wait:
            daemon.wait_ready()
        return daemon

    def start(self, command, **keywords):
        """Starts any other process."""
        keywords.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen(command, preexec_fn=die_with_parent, **keywords)
        self.processes.append(process)
        return process

    def close(self):
        """Ends and removes everything. Returns remarks about daemons that did not end well."""
        remarks = []
        for release in reversed(self.releases):
            release()
        for reader in self.readers:
            if reader.process.poll() is None:
                reader.process.kill()
                reader.process.wait()
            reader.thread.join(60)
            reader.process.stdout.close()
            if SANITIZER.search(reader.errors()):
                remarks.append(f"dlctl read: {reader.errors()}")
        for daemon in self.daemons:
            remarks += filter(None, [daemon.memory_remark()])
            if daemon.process.poll() is None:
                daemon.process.send_signal(signal.SIGCONT)
            end(daemon.process, SHORTEST_WAIT)
            daemon.last_log = daemon.log()
            if daemon.process.returncode != daemon.expected_status:
                remarks.append(f"{daemon.name} ended with {daemon.process.returncode}, not {daemon.expected_status}")
            if SANITIZER.search(daemon.last_log):
                remarks.append(f"{daemon.name}: a sanitizer spoke")
        for process in self.processes:
            end(process)
        for cleanup in reversed(self.cleanups):
            cleanup()
        if self.tmpdir is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = self.tmpdir
        shutil.rmtree(self.folder, ignore_errors=True)
        return remarks

    # -- data that carries its identity

    def folder_of_files(self, name, n_files, n_classes=2, size=200):
        """An image folder whose files hold bytes that tell which one they are; for the pipeline `raw`, which looks at
        no pixel. Returns its path."""
        folder = self.path(name)
        for number in range(n_files):
            label = number * n_classes // n_files
            write(os.path.join(folder, f"class{label:03d}", f"{number:06d}.jpg"), identity_bytes(number, size))
        os.makedirs(folder, exist_ok=True)
        return folder

    def folder_of_pictures(self, name, n_pictures, n_classes=2, width=9, height=7):
        """An image folder of PNGs whose pixels tell which one they are."""
        folder = self.path(name)
        for number in range(n_pictures):
            label = number * n_classes // n_pictures
            write(os.path.join(folder, f"class{label:03d}", f"{number:06d}.png"),
                  png(width, height, identity_pixels(number, width, height)))
        return folder


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def identity_bytes(number, size):
    """Bytes of a sample: its number again and again; the length differs too."""
    text = f"<sample {number}>".encode()
    return (text * (size // len(text) + 1))[:size + number % 7]


def identity_pixels(number, width, height):
    """RGB pixels of a picture: each is a hash of the picture's number and its place."""
    n = width * height * 3
    return b"".join(hashlib.sha256(struct.pack("<QQ", number, block)).digest() for block in range(n // 32 + 1))[:n]


def png(width, height, rgb):
    """The smallest PNG that holds these pixels."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + rgb[row * width * 3:(row + 1) * width * 3] for row in range(height))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + \
        chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")


def samples_of(folder):
    """(path, label) of each sample, in the order of torchvision's ImageFolder."""
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    samples = []
    for label, name in enumerate(classes):
        for root, _, files in sorted(os.walk(os.path.join(folder, name), followlinks=True)):
            for file in sorted(files):
                if file.lower().endswith(EXTENSIONS):
                    samples.append((os.path.join(root, file), label))
    return samples


def sha256_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def photos(n_photos, n_classes):
    """Real photographs, cut once and kept below build/. Returns the folder."""
    folder = os.path.join(ROOT, "build", "photos", f"{n_photos}x{n_classes}")
    cutter = os.path.join(ROOT, "build", "release", "tools", "cut_photos")
    if not os.path.exists(cutter):
        raise Skip("build/release/tools/cut_photos was not built")
    done = subprocess.run([os.path.join(ROOT, "tests", "support", "photos.sh"), folder, str(n_photos), str(n_classes),
                           cutter], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, timeout=300)
    if done.returncode == 77:
        raise Skip(done.stdout.strip().splitlines()[-1])
    if done.returncode != 0:
        raise AssertionError(f"photos.sh ended with {done.returncode}: {done.stdout}")
    return folder


# ---- torch's order, in Python ---------------------------------------------------------------------------------------

class TorchGenerator:
    """torch's CPU generator: the Mersenne Twister that Python has too, with another seeding."""

    def __init__(self, seed):
        words = [seed & 0xffffffff]
        for number in range(1, 624):
            words.append((1812433253 * (words[-1] ^ (words[-1] >> 30)) + number) & 0xffffffff)
        self.random = random.Random()
        self.random.setstate((3, tuple(words) + (624,), None))

    def word(self):
        return self.random.getrandbits(32)


def randperm(n, seed):
    """torch.randperm(n) after manual_seed(seed), for n < 214748364."""
    generator = TorchGenerator(seed)
    values = list(range(n))
    for place in range(n - 1):
        other = place + generator.word() % (n - place)
        values[place], values[other] = values[other], values[place]
    return values


MASK64 = 2**64 - 1


def philox(key, counter):
    """Philox4x32-10: four words of a 64-bit key and four words of a counter."""
    words, keys = list(counter), [key & 0xffffffff, key >> 32 & 0xffffffff]
    for _ in range(10):
        product0, product1 = words[0] * 0xd2511f53, words[2] * 0xcd9e8d57
        words = [product1 >> 32 ^ words[1] ^ keys[0], product1 & 0xffffffff,
                 product0 >> 32 ^ words[3] ^ keys[1], product0 & 0xffffffff]
        keys = [(keys[0] + 0x9e3779b9) & 0xffffffff, (keys[1] + 0xbb67ae85) & 0xffffffff]
    return words


def tdperm(n, seed, epoch, stream=0):
    """TDPERM-1, the order "tdperm": a Feistel network over the next power of two, sent through until it is below n."""
    bits = max(8, (n - 1).bit_length())
    high, low = bits // 2, bits - bits // 2
    blocks = [philox(seed, (0xffff0000 | number, epoch, stream & 0xffffffff, stream >> 32)) for number in range(5)]
    keys = [block[place + 1] << 32 | block[place] for block in blocks[:4] for place in (0, 2)]
    flip = blocks[4][0] & 1 if n >= 2 else 0

    def mixed(half, key, n_bits):
        value = (half ^ key) * 0x9e3779b97f4a7c15 & MASK64
        value = (value ^ value >> 32) * 0xd6e8feb86659fd93 & MASK64
        value = (value ^ value >> 32) * 0xd6e8feb86659fd93 & MASK64
        return value >> 64 - n_bits

    def once(value):
        left, right = value >> low, value & (1 << low) - 1
        for number in range(0, 8, 2):
            left ^= mixed(right, keys[number], high)
            right ^= mixed(left, keys[number + 1], low)
        return left << low | right

    values = []
    for value in range(n):
        value = once(value)
        while value >= n:
            value = once(value)
        values.append(value ^ flip if value < 2 else value)
    return values


def block_order(sizes, seed, epoch, window=8):
    """BLOCKS-1, the order "blocks(window=N)" of blocks of these sizes, as docs/orders.md defines it."""
    firsts = [0] + list(itertools.accumulate(sizes))
    sequence, order = tdperm(len(sizes), seed, epoch), []
    for group in range(-(-len(sizes) // window)):
        blocks = sequence[group * window:(group + 1) * window]
        share = window * 1024 // len(blocks)
        for number in range(-(-max(sizes[block] for block in blocks) // share)):
            row = [firsts[block] + place for block in blocks
                   for place in range(number * share, min((number + 1) * share, sizes[block]))]
            order += [row[place] for place in tdperm(len(row), seed, epoch, 1 + (group << 32 | number))]
    return order


def shuffled_by_buffer(samples, size, seed):
    """WebDataset's shuffle(size) of an iterable of samples, word for word its meaning: with torch.randint() instead of
    Python's random."""
    generator, buffer, initial = TorchGenerator(seed), [], min(100, size)
    samples = iter(samples)

    def pick():
        place = generator.word() % len(buffer)
        buffer[place], buffer[-1] = buffer[-1], buffer[place]
        return buffer.pop()

    for sample in samples:
        buffer.append(sample)
        if len(buffer) < size:
            try:
                buffer.append(next(samples))
            except StopIteration:
                pass
        if len(buffer) >= initial:
            yield pick()
    while buffer:
        yield pick()


def whole_order(n, seed=0, epoch=0, shuffle=True, order="torch", shuffle_buffer=1000, blocks=None):
    """An epoch's samples by their global position."""
    if not shuffle:
        return list(range(n))
    if order.startswith("blocks"):
        sizes = blocks or [min(1024, n - first) for first in range(0, n, 1024)]
        return block_order(sizes, seed, epoch, int(order[len("blocks(window="):-1] or 8))
    if order == "buffer":
        return list(shuffled_by_buffer(range(n), shuffle_buffer, seed + epoch))
    return tdperm(n, seed, epoch) if order == "tdperm" else randperm(n, seed + epoch)


def expected_order(n, world=1, rank=0, seed=0, epoch=0, shuffle=True, partition="pad", order="torch", position=0,
                   shuffle_buffer=1000, dealing="strided", batch=1, blocks=None):
    """The indices that DistributedSampler gives a rank, or, with another dealing, Accelerate; "exact" is our own: each
    once. With a position, what is left of the epoch after it is dealt out."""
    whole, block = whole_order(n, seed, epoch, shuffle, order, shuffle_buffer, blocks), 1 if dealing == "strided" else batch
    left, turn = whole[position:], world * block  # what is dealt to all ranks in turn
    if partition == "pad":
        left += [whole[place % n] for place in range(-len(left) % turn)]
    elif partition == "drop":
        left = left[:len(left) // turn * turn]
    return [index for begin in range(rank * block, len(left), turn) for index in left[begin:begin + block]]


def indices(lines, epoch=None):
    return [line["index"] for line in lines if epoch is None or line["epoch"] == epoch]


def check_sequence(lines, n, batch=1, epochs=1, first_epoch=0, first_position=0, drop_last=False, **terms):
    """Lines of a rank must be exactly these epochs, in order, with the steps counted."""
    expected = []
    for epoch in range(first_epoch, first_epoch + epochs):
        sequence = expected_order(n, epoch=epoch, position=first_position if epoch == first_epoch else 0, batch=batch,
                                  **terms)
        if drop_last:
            sequence = sequence[:len(sequence) // batch * batch]
        expected += [(epoch, place // batch, index) for place, index in enumerate(sequence)]
    equal([(line["epoch"], line["step"], line["index"]) for line in lines], expected, "epoch, step, index")


def check_bytes(lines, samples):
    """Each line's bytes and label are those of the file that its index names; for the pipeline `raw`."""
    known = {}
    for line in lines:
        index = line["index"]
        path, label = samples[index]
        if index not in known:
            known[index] = (sha256_of(path), os.path.getsize(path))
        field = line["fields"]["image"]
        equal((field["sha256"], field["shape"]), (known[index][0], [known[index][1]]), f"bytes of sample {index}")
        equal((field["dtype"], line["fields"]["label"]["value"]), ("bytes", label), f"label of sample {index}")


# ---- the control protocol, by hand: for clients that misbehave ------------------------------------------------------

def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """One protobuf field: an integer, or bytes, a text or a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def fields_of(message):
    """The other way round: field number -> list of values, in their sequence; no fixed-width fields."""
    fields, place = collections.defaultdict(list), 0

    def take_varint():
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while place < len(message):
        tag = take_varint()
        value = take_varint()
        if tag & 7 == 2:
            place, value = place + value, message[place:place + value]
        fields[tag >> 3].append(value)
    return fields


def request(kind, body=b"", protocol=3, number=1):
    """A Request of proto/dataloader.proto; kind: attach, seek, status, datasets, jobs, errors, classes, metrics, work,
    worked, work_ended."""
    kinds = {"attach": 10, "seek": 11, "status": 12, "datasets": 13, "jobs": 14, "errors": 15, "classes": 16, "metrics": 44,
             "work": 110, "worked": 111, "work_ended": 112}
    return field(1, protocol) + field(2, number) + field(3, "a test") + field(kinds[kind], body)


def attach_body(dataset, job="hand", world=1, rank=0, batch=1, pipeline="raw", seed=0, shuffle=True, partition="pad",
                order="torch", on_error="fail", pid=None, max_errors=None, first_epoch=0, first_position=0, first_step=0):
    return field(1, dataset) + field(2, job) + field(3, world) + field(4, rank) + field(5, batch) + \
        field(6, pipeline) + field(7, seed) + field(8, int(shuffle)) + field(9, partition) + field(11, order) + \
        field(12, on_error) + field(13, first_epoch) + field(16, os.getpid() if pid is None else pid) + \
        field(17, first_position) + field(18, first_step) + \
        (b"" if max_errors is None else varint(19 << 3 | 1) + struct.pack("<d", max_errors))


class HandClient:
    """A connection without libdlclient, for what libdlclient would never do."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(path)  # blocking: with a timeout it would fail at once when others stand in line
        self.socket.settimeout(patience(5))
        self.descriptors = []

    def send(self, packet, descriptors=()):
        if descriptors:
            within(5, lambda: self._has_sent(packet, descriptors), "room for descriptors under way")
        else:
            self.socket.send(packet)

    def _has_sent(self, packet, descriptors):
        """The kernel limits how many a user has under way, and the tests beside this one are the same user's."""
        try:
            socket.send_fds(self.socket, [packet], descriptors)
        except OSError as error:
            if error.errno != errno.ETOOMANYREFS:
                raise
            return False
        return True

    def receive(self):
        """One packet; b"" at the end. Descriptors that came with it are kept. Wake-ups are passed over."""
        while True:
            data, descriptors, _, _ = socket.recv_fds(self.socket, 65536, 4)
            self.descriptors += descriptors
            if data != b"\0":
                return data

    def attach(self, dataset, seconds=SHORTEST_WAIT, **terms):
        """Attaches, waiting for an index that is being built; returns the reply's bytes (three descriptors are kept).
        One that is to be refused says how many `seconds` it tries."""
        deadline = time.monotonic() + seconds * SLOWER
        while True:
            self.send(request("attach", attach_body(dataset, **terms)))
            reply = self.receive()
            if len(self.descriptors) == 3 or time.monotonic() > deadline:
                return reply
            time.sleep(0.05)

    def closed(self, seconds=2):
        """Does the daemon close the connection within this time?"""
        self.socket.settimeout(patience(seconds))
        try:
            while True:
                data, descriptors, _, _ = socket.recv_fds(self.socket, 65536, 4)
                self.descriptors += descriptors
                if not data:
                    return True
        except ConnectionResetError:
            return True
        except socket.timeout:
            return False

    def close(self):
        self.socket.close()
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = []
