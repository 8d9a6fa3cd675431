#!/usr/bin/env python3
"""The whole idea in two minutes: one daemon serves real photographs to two ranks, and every sample is accounted for.

    demo.py [--data DIR]        (make demo, make demo DATA=DIR)

Cuts photographs, starts a private daemon as the calling user, lets two rank processes read two epochs of random crops,
compares what each received with DistributedSampler's order, compares every file's bytes with what arrives, and prints a
table. Ends everything it started, also on Ctrl-C. What it keeps lies below build/demo/.
"""
import argparse
import importlib.util
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from harness import DAEMON, DLCTL, ROOT, die_with_parent, end, samples_of, sha256_of  # noqa: E402

STORE = os.path.join(ROOT, "build", "demo")
RANK = os.path.join(ROOT, "build", "release", "demo", "rank")
CUTTER = os.path.join(ROOT, "build", "release", "tools", "cut_photos")
PIPELINE = "random_resized_crop(224) hflip(0.5)"
N_PHOTOS, N_CLASSES = 2000, 10
WORLD, EPOCHS, BATCH, SEED = 2, 2, 64, 0
LARGE = 20000          # samples; of more, each epoch is cut short and only some files are hashed
LARGE_BATCHES = 150    # a rank, an epoch
LARGE_FILES = 2000
UNLIMITED = 2**64 - 1


class Trouble(Exception):
    """Something that the reader of the demonstration has to know; ends it."""


class Screen:
    """Aligned output; colours on a terminal only."""

    def __init__(self):
        self.colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def paint(self, text, code):
        return f"\033[{code}m{text}\033[0m" if self.colour else text

    def step(self, text):
        print(f"{self.paint('>', '1;34')} {text}", flush=True)

    def row(self, name, value, text=""):
        print(f"  {self.paint(f'{name:<22}', '1')} {value:>12}  {self.paint(text, '2')}", flush=True)

    def proof(self, good, text):
        mark = self.paint("yes", "1;32") if good else self.paint("NO ", "1;31")
        print(f"  {mark}  {text}", flush=True)
        return good


SCREEN = Screen()


def size(n_bytes):
    for unit in ("bytes", "KiB", "MiB"):
        if n_bytes < 1024:
            return f"{n_bytes:.0f} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.1f} GiB"


def duration(ns):
    if ns < 10000:
        return f"{ns:.0f} ns"
    if ns < 1000000:
        return f"{ns / 1000:.0f} us"
    return f"{ns / 1e6:.1f} ms" if ns < 1e9 else f"{ns / 1e9:.2f} s"


# ---- what is run ----------------------------------------------------------------------------------------------------

class Stage:
    """The private daemon and everything else that has to be ended."""

    def __init__(self, folder):
        self.run_folder = tempfile.mkdtemp(prefix="dataloaderd-demo-")  # short: a socket's path has 107 bytes
        self.socket = os.path.join(self.run_folder, "s")
        self.log_path = os.path.join(STORE, "daemon.log")
        self.processes = []
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("SLURM_", "OMPI_", "PMI", "TORCHELASTIC_"))}
        self.environment.update(DATALOADERD_SOCKET=self.socket, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(os.getpid()),
                                WORLD_SIZE=str(WORLD))
        config = os.path.join(self.run_folder, "dataloaderd.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'socket = "{self.socket}"\nindex_dir = "{os.path.join(STORE, "index")}"\n'
                       f'memory_limit = "2GiB"\ndataset "photos" {{\n    path = "{folder}"\n'
                       '    format = "imagefolder"\n}\n')
        self.begin = time.monotonic()
        with open(self.log_path, "wb") as log:
            self.daemon = self.start([DAEMON, "-c", config], stdout=log, stderr=log)

    def start(self, command, rank=None, **keywords):
        environment = dict(self.environment, RANK=str(rank)) if rank is not None else self.environment
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent,
                                   **keywords)
        self.processes.append(process)
        return process

    def dlctl(self, *arguments):
        done = subprocess.run([DLCTL, "--format", "json"] + [str(argument) for argument in arguments], check=False,
                              env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, timeout=600)
        return done

    def wait_index(self):
        """Until the daemon answers and has its index; returns what `dlctl datasets` says of it."""
        while True:
            if self.daemon.poll() is not None:
                raise Trouble(f"the daemon ended: {self.log()}")
            done = self.dlctl("datasets")
            if done.returncode == 0:
                dataset = json.loads(done.stdout.splitlines()[0])
                if dataset["state"] == "ready":
                    return dataset
                if dataset["state"] == "failed":
                    raise Trouble(dataset["text"])
            elif time.monotonic() - self.begin > 10:
                raise Trouble(f"the daemon does not answer: {done.stderr}{self.log()}")
            time.sleep(0.02)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def close(self):
        for process in reversed(self.processes):
            end(process)
        shutil.rmtree(self.run_folder, ignore_errors=True)


def prepare_photos():
    """Cuts the photographs, unless they are there from last time. Returns their folder."""
    folder = os.path.join(STORE, "photos")
    command = [os.path.join(ROOT, "tests", "support", "photos.sh"), folder, str(N_PHOTOS), str(N_CLASSES), CUTTER]
    if subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode != 0:
        raise Trouble("no photographs to show; DATA=DIR takes an image folder of yours (one folder a class)")
    return folder


class RankResult:
    """What a rank process told."""

    def __init__(self, text):
        self.batches = []  # (epoch, step, wait_ns, indices)
        self.n_substituted = 0
        self.open_ns = self.total_ns = 0
        for line in text.splitlines():
            kind, *numbers = line.split()
            if kind == "open":
                self.open_ns = int(numbers[0])
            elif kind == "end":
                self.total_ns = int(numbers[0])
            elif kind == "batch":
                epoch, step, wait_ns, n_substituted, *indices = map(int, numbers)
                self.batches.append((epoch, step, wait_ns, indices))
                self.n_substituted += n_substituted

    def indices(self, epoch):
        return [index for each, _, _, indices in self.batches if each == epoch for index in indices]

    def n_samples(self):
        return sum(len(indices) for _, _, _, indices in self.batches)

    def first_batch_ns(self):
        return self.open_ns + self.batches[0][2]


def run_ranks(stage, limit):
    """Two rank processes beside each other. Returns (results, seconds, memory of all processes in bytes)."""
    outputs = [os.path.join(stage.run_folder, f"rank{rank}") for rank in range(WORLD)]
    begin = time.monotonic()
    ranks = []
    for rank, output in enumerate(outputs):
        with open(output, "wb") as file:
            ranks.append(stage.start([RANK, "photos", PIPELINE, str(BATCH), str(SEED), str(EPOCHS), str(limit)],
                                     rank=rank, stdout=file))
    memory = 0
    while any(rank.poll() is None for rank in ranks):
        if all(rank.poll() is None for rank in ranks):
            memory = max(memory, sum(pss(process.pid) for process in [stage.daemon] + ranks))
        time.sleep(0.02)
    seconds = time.monotonic() - begin
    results = []
    for rank, output in zip(ranks, outputs):
        if rank.returncode != 0:
            raise Trouble(f"a rank ended with {rank.returncode}; the daemon says: {stage.log()}")
        with open(output, encoding="ascii") as file:
            results.append(RankResult(file.read()))
    return results, seconds, memory


def pss(pid):
    """Bytes of memory of a process, what it shares counted by its part."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
            return int(re.search(r"^Pss:\s+(\d+) kB", rollup.read(), re.M).group(1)) * 1024
    except (OSError, AttributeError):
        return 0


# ---- what is proven -------------------------------------------------------------------------------------------------

def reference_order(n_samples, rank, epoch):
    """The indices of DistributedSampler: the real one's if torch is here, else those of `dlctl order`."""
    if importlib.util.find_spec("torch"):
        from torch.utils.data.distributed import DistributedSampler
        sampler = DistributedSampler(range(n_samples), num_replicas=WORLD, rank=rank, seed=SEED)
        sampler.set_epoch(epoch)
        return list(sampler)
    return dlctl_order(n_samples, rank, epoch)


def dlctl_order(n_samples, rank, epoch):
    output = subprocess.run([DLCTL, "order", "--samples", str(n_samples), "--world", str(WORLD), "--rank", str(rank),
                             "--seed", str(SEED), "--epoch", str(epoch)], check=True, stdout=subprocess.PIPE).stdout
    return [int(line) for line in output.split()]


def prove_order(results, n_samples, limit):
    whose = "the real torch's DistributedSampler" if importlib.util.find_spec("torch") else \
        "dlctl order (torch is not installed; the tests compare it with torch's golden vectors)"
    n_compared = n_wrong = 0
    for rank, result in enumerate(results):
        for epoch in range(EPOCHS):
            expected = reference_order(n_samples, rank, epoch)
            if limit != UNLIMITED:
                expected = expected[:limit * BATCH]
            got = result.indices(epoch)
            n_compared += len(expected)
            n_wrong += sum(one != other for one, other in zip(got, expected)) + abs(len(got) - len(expected))
            n_wrong += dlctl_order(n_samples, rank, epoch)[:len(expected)] != expected
    return SCREEN.proof(n_wrong == 0, f"{n_compared - n_wrong:,} of {n_compared:,} samples came to the rank, epoch and "
                        f"place that {whose} gives")


def prove_bytes(stage, folder, n_samples):
    """Every file through the daemon untouched: SHA-256 of what arrives against that of the file."""
    samples = samples_of(folder)
    n_files = n_samples if n_samples <= LARGE else LARGE_FILES
    done = stage.dlctl("read", "photos", "--job", "bytes", "--world", 1, "--rank", 0, "--pipeline", "raw", "--limit",
                       n_files)
    if done.returncode != 0:
        raise Trouble(done.stderr)
    n_good = n_lines = 0
    seen = set()
    for line in map(json.loads, done.stdout.splitlines()):
        path, label = samples[line["index"]]
        n_lines += 1
        seen.add(line["index"])
        n_good += line["fields"]["image"]["sha256"] == sha256_of(path) and line["fields"]["label"]["value"] == label
    good = n_good == n_lines == len(seen) == n_files
    return SCREEN.proof(good, f"{n_good:,} of {n_files:,} files arrive byte for byte (SHA-256), each with its label")


def table(results, seconds, memory, dataset, index_seconds, status):
    n_images = sum(result.n_samples() for result in results)
    waits = sorted(wait for result in results for _, _, wait, _ in result.batches[1:])
    ready = [wait for wait in waits if wait < 5000]
    first = max(result.first_batch_ns() for result in results)
    print()
    SCREEN.row("images/s", f"{n_images / seconds:,.0f}",
               f"{n_images:,} crops of 224x224 in {seconds:.2f} s, {WORLD} ranks, {status['n_workers']} workers")
    SCREEN.row("first batch", duration(first), "from dlc_open() to the first batch of the slower rank")
    if waits:
        SCREEN.row("wait of next(), p50", duration(statistics.median(waits)),
                   "nothing is trained here, so the ranks wait for the decoders")
        SCREEN.row("wait of next(), p99", duration(waits[min(len(waits) - 1, len(waits) * 99 // 100)]))
    if ready:
        SCREEN.row("next(), batch ready", duration(statistics.median(ready)),
                   f"{len(ready)} of {len(waits)} batches were there before they were asked for")
    SCREEN.row("memory", size(memory), "daemon and both ranks together, shared pages counted once")
    SCREEN.row("memory_limit", size(status["memory_limit_bytes"]), "what the daemon may take for rings and buffers")
    SCREEN.row("index", f"{index_seconds * 1000:.0f} ms",
               f"start of the daemon until {dataset['n_samples']:,} samples were indexed, or their index was found")
    n_substituted = sum(result.n_substituted for result in results)
    if n_substituted:
        SCREEN.row("damaged", f"{n_substituted:,}", "samples, replaced by the next good one; see dlctl datasets")
    print()


# ---- all of it ------------------------------------------------------------------------------------------------------

def show(folder, stage):
    dataset = stage.wait_index()
    index_seconds = time.monotonic() - stage.begin
    n_samples = dataset["n_samples"]
    limit = LARGE_BATCHES if n_samples > LARGE else UNLIMITED
    SCREEN.step(f"dataset: {n_samples:,} pictures in {dataset['n_classes']:,} classes, {size(dataset['n_bytes'])}, "
                f"digest {dataset['digest'][:12]}")
    SCREEN.step(f"{WORLD} ranks read {EPOCHS} epochs in batches of {BATCH}: {PIPELINE}" +
                (f", {limit} batches of each" if limit != UNLIMITED else ""))
    results, seconds, memory = run_ranks(stage, limit)
    status = json.loads(stage.dlctl("status").stdout.splitlines()[0])
    table(results, seconds, memory, dataset, index_seconds, status)
    good = prove_order(results, n_samples, limit)
    good = prove_bytes(stage, folder, n_samples) and good
    print()
    if not good:
        raise Trouble(f"what arrived is not what was to arrive; the daemon's log: {stage.log_path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="an image folder of yours, one folder a class")
    options = parser.parse_args()
    os.makedirs(STORE, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    stage = None
    try:
        if options.data:
            folder = os.path.abspath(options.data)
        else:
            SCREEN.step(f"photographs: {N_PHOTOS:,}, about 500x375, {N_CLASSES} classes (cut once, kept in build/demo)")
            folder = prepare_photos()
        stage = Stage(folder)
        show(folder, stage)
        SCREEN.step("done; the daemon and the ranks have ended. Your own pictures: make demo DATA=DIR")
        return 0
    except Trouble as trouble:
        print(f"demo: {trouble}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ndemo: stopped", file=sys.stderr)
        return 130
    finally:
        if stage:
            stage.close()


if __name__ == "__main__":
    sys.exit(main())
