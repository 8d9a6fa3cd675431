"""What the measurements share: the photographs, a daemon of their own, the bare loop, and results."""
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, "build", "release")
OUT = os.path.join(ROOT, "build", "bench")
PHOTOS = os.environ.get("DATA") or os.path.join(OUT, "photos")
N_PHOTOS, N_CLASSES = 2000, 10
REPEATS = int(os.environ.get("REPEATS", "5"))
IMAGES = 3000        # of one throughput run
BATCH = 64
PYTHON = "/usr/bin/python3"  # Debian's, which Debian's torch belongs to
results = []


def emit(name, value, unit, **details):
    """Prints a result's line and keeps it for the JSON Lines."""
    text = f"{value:.0f}"
    if isinstance(value, float) and value < 100:
        text = f"{value:.3f}" if value >= 0.01 else f"{value:.2g}"
    print(f"{name} {text} {unit}", flush=True)
    results.append({"name": name, "value": value, "unit": unit, **details})


def cut(folder, *more):
    subprocess.run(["tests/support/photos.sh", folder, str(N_PHOTOS), str(N_CLASSES),
                    os.path.join(BUILD, "tools", "cut_photos"), *more], cwd=ROOT, check=True, stdout=sys.stderr)
    return folder


def photos():
    """The photographs, cut once. None is progressive, as good as none in training sets is: see decode_limit_mixed."""
    return PHOTOS if "DATA" in os.environ else cut(PHOTOS, "--baseline")


def small_photos():
    """Photographs as thumbnails of 64 x 64."""
    folder = PHOTOS + "-64"
    for path, _, names in [] if os.path.isdir(folder) else os.walk(photos()):
        for name in (name for name in names if name.endswith(".jpg")):
            target = os.path.join(folder, os.path.basename(path), name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with Image.open(os.path.join(path, name)) as picture:
                picture.resize((64, 64)).save(target, quality=90)
    return folder


class Daemon:
    """A private daemon with its own folder; ended with the block."""

    def __init__(self, workers, memory="2GiB", more="", path=None, format="imagefolder", options=""):  # pylint: disable=redefined-builtin
        self.folder = tempfile.mkdtemp(prefix="dlbench-")
        self.socket = os.path.join(self.folder, "s")
        config = os.path.join(self.folder, "c")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'socket = "{self.socket}"\nindex_dir = "{self.folder}/i"\nworkers = {workers}\n'
                       f'memory_limit = "{memory}"\ndataset "photos" {{ path = "{path or photos()}" format = "{format}" {options} }}\n{more}')
        self.start()
        self.wait_ready()
        self.consume("first")  # waits for the index

    def start(self):
        with open(os.path.join(self.folder, "log"), "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([os.path.join(BUILD, "dataloaderd"), "-c", os.path.join(self.folder, "c")],
                                            stderr=log)

    def wait_ready(self):
        """Until it answers; returns when that was."""
        command = [os.path.join(BUILD, "dlctl"), "--socket", self.socket, "status"]
        while subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            time.sleep(0.002)
        return time.monotonic()

    def environment(self, rank=0, world=1):
        return dict(os.environ, DATALOADERD_SOCKET=self.socket, RANK=str(rank), WORLD_SIZE=str(world))

    def consume(self, mode, *more, rank=0, world=1, environment=None):
        for _ in range(100):
            run = subprocess.run([os.path.join(BUILD, "bench", "consume"), mode, str(self.process.pid), *map(str, more)],
                                 env={**self.environment(rank, world), **(environment or {})}, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True,
                                 timeout=300, check=False)
            if run.returncode == 0:
                return json.loads(run.stdout)
            if not os.path.exists(self.socket) and self.process.poll() is None:
                time.sleep(0.05)
                continue
            raise RuntimeError(run.stderr)
        raise RuntimeError("the daemon does not listen")

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        subprocess.run(["rm", "-rf", self.folder], check=False)


@contextlib.contextmanager
def daemon(workers, **more):
    it = Daemon(workers, **more)
    try:
        yield it
    finally:
        it.end()


def bare_loop(threads, folder=None, decoder="auto"):
    run = subprocess.run([os.path.join(BUILD, "bench", "bare_loop"), folder or photos(), str(threads), str(IMAGES), decoder],
                         check=True, stdout=subprocess.PIPE, text=True, timeout=300)
    return json.loads(run.stdout)


def median(rows, key):
    return statistics.median(row[key] for row in rows)


def pss(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("Pss:"))
