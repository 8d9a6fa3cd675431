"""What a new user waits for: from an empty environment to the first batch, and the first batch of a second process.

    environment   s that `python3 -m venv` takes
    pip           s of `pip install` of the wheel in build/ and of NumPy from wherever pip has it
    program       s of a program of three lines, from its start to its first batch: Python, NumPy, the private daemon that
                  it starts, the index that this one makes
    (total)       the sum
    second        ms from Loader() to the first batch in another process, while the daemon runs; torch: from DataLoader() to
                  the first batch of the same crops with two workers, its modules imported, in turns; second_vs_torch: the
                  ratio, turn by turn

Every trial has an environment, a runtime folder and a cache of its own, so that nothing is there before it."""
import glob
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PIPELINE = "random_resized_crop(224) hflip(0.5)"
THREE_LINES = """
import dlclient
for batch in dlclient.Loader({folder!r}, batch_size=64, pipeline={pipeline!r}):
    print(batch["image"].shape, flush=True); break
"""
SECOND = """
import time, dlclient
begin = time.perf_counter()
batch = next(iter(dlclient.Loader({folder!r}, batch_size=64, pipeline={pipeline!r})))
print(1000 * (time.perf_counter() - begin))
"""
TORCH = """
import time, numpy, torch
from torchvision import datasets, transforms
def to_tensor(picture):
    return torch.from_numpy(numpy.array(picture))
begin = time.perf_counter()
photos = datasets.ImageFolder({folder!r}, transforms.Compose([
    transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(0.5), to_tensor]))
batch = next(iter(torch.utils.data.DataLoader(photos, batch_size=64, shuffle=True, num_workers=2)))
print(1000 * (time.perf_counter() - begin))
"""


class Home:
    """A user who has nothing yet."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(dir=os.path.join(ROOT, "build"))
        self.environment = {"HOME": self.folder, "XDG_RUNTIME_DIR": self.folder, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8",
                            "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        self.scripts = os.path.join(self.folder, "venv", "bin")

    def run(self, *command):
        """Returns the seconds and the output."""
        begin = time.perf_counter()
        done = subprocess.run(command, env=self.environment, cwd=self.folder, check=False, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(f"{command}: {done.stdout[-500:]}{done.stderr[-1000:]}")
        return time.perf_counter() - begin, done.stdout

    def close(self):
        program = os.path.join(self.scripts, "dlctl")
        if os.path.exists(program):
            subprocess.run([program, "--private", "stop", "--now"], env=self.environment, check=False, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder, ignore_errors=True)


def trial(wheel, folder, seconds):
    """One new user."""
    home = Home()
    try:
        parts = [home.run("/usr/bin/python3", "-m", "venv", os.path.join(home.folder, "venv"))[0],
                 home.run(os.path.join(home.scripts, "pip"), "install", "--quiet", wheel)[0],
                 home.run(os.path.join(home.scripts, "python"), "-c", THREE_LINES.format(folder=folder, pipeline=PIPELINE))[0]]
        for name, value in zip(("environment", "pip", "program"), parts):
            seconds.setdefault(name, []).append(value)
        seconds.setdefault("total", []).append(sum(parts))
        return second_processes(home, folder)
    finally:
        home.close()


def second_processes(home, folder, turns=5):
    """[(ours, torch's or None), ...] in ms."""
    pairs = []
    has_torch = importlib.util.find_spec("torchvision") is not None
    for _ in range(turns):
        ours = float(home.run(os.path.join(home.scripts, "python"), "-c", SECOND.format(folder=folder, pipeline=PIPELINE))[1])
        theirs = float(home.run(sys.executable, "-c", TORCH.format(folder=folder))[1]) if has_torch else None
        pairs.append((ours, theirs))
    return pairs


def run(emit, folder, repeats):
    wheels = glob.glob(os.path.join(ROOT, "build", "dlclient-*.whl"))
    if not wheels:
        print("first_day skipped: make wheel first", flush=True)
        return
    seconds, pairs = {}, []
    for _ in range(repeats):
        pairs += trial(wheels[0], folder, seconds)
    for name, values in seconds.items():
        emit("first_day" if name == "total" else f"first_day_{name}", statistics.median(values), "s", repeats=repeats,
             highest=max(values))
    ours = [pair[0] for pair in pairs]
    emit("first_day_second", statistics.median(ours), "ms", repeats=len(ours), lowest=min(ours), highest=max(ours))
    pairs = [pair for pair in pairs if pair[1] is not None]
    if pairs:
        emit("first_day_torch", statistics.median(pair[1] for pair in pairs), "ms", repeats=len(pairs))
        emit("first_day_second_vs_torch", statistics.median(pair[0] / pair[1] for pair in pairs), "ratio")


if __name__ == "__main__":
    run(lambda name, value, unit, **details: print(json.dumps(dict(details, name=name, value=round(value, 4), unit=unit)), flush=True),
        sys.argv[1], int(sys.argv[2]))
