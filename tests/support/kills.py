"""Kills a daemon and its trainers at random moments, again and again, and then looks for a sample that is lost, there
twice, or wrong.

Each trainer writes a line a batch (tests/bench/kill_rank.c, kill_rank.py) and begins anew after its last line. Whatever
was killed when, the lines of a rank must be the order of its epochs, without a gap and without a repetition, and each
sample must have its own bytes.
"""
import os
import random
import signal
import subprocess
import time

from harness import BUILD, ROOT, SLOWER, die_with_parent, expected_order, identity_bytes, patience

STUCK_SECONDS = 30


def fnv1a(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return value


class Trainer:
    """One rank, started again after each kill."""

    def __init__(self, campaign, rank, command):
        self.campaign = campaign
        self.rank = rank
        self.command = command
        self.log = os.path.join(campaign.folder, f"rank{rank}")
        self.errors = self.log + ".stderr"
        self.process = None
        self.size = 0
        self.moved_at = time.monotonic()

    def start(self):
        campaign = self.campaign
        environment = dict(campaign.daemon.client_environment(), RANK=str(self.rank), WORLD_SIZE=str(campaign.world),
                           DATALOADERD_SOCKET=campaign.daemon.socket,
                           PYTHONPATH=os.path.join(ROOT, "client", "python"),
                           DATALOADERD_LIBRARY=os.path.join(BUILD, "libdlclient.so.0"))
        with open(self.errors, "ab") as errors:
            self.process = subprocess.Popen(
                self.command + [campaign.dataset, str(campaign.batch), str(campaign.seed), self.log,
                                str(campaign.pause_us), *campaign.options], env=environment, stdin=subprocess.DEVNULL, stderr=errors,
                preexec_fn=die_with_parent)

    def kill(self):
        self.process.kill()
        status = self.process.wait()
        if status != -signal.SIGKILL:
            raise AssertionError(f"rank {self.rank} had ended with {status}: {self.what_it_said()}")

    def what_it_said(self):
        with open(self.errors, encoding="utf-8", errors="replace") as errors:
            return errors.read()[-2000:]

    def check_alive(self):
        """It must not have ended by itself, nor stand still."""
        now = time.monotonic()
        size = os.path.getsize(self.log) if os.path.exists(self.log) else 0
        if size != self.size:
            self.size, self.moved_at = size, now
        if self.process.poll() is not None:
            raise AssertionError(f"rank {self.rank} ended with {self.process.returncode}: {self.what_it_said()}")
        if now - self.moved_at > patience(STUCK_SECONDS):
            raise AssertionError(f"rank {self.rank} has got nothing for {STUCK_SECONDS} s: {self.what_it_said()}")

    def finish(self):
        self.process.terminate()
        status = self.process.wait(patience(30))
        if status not in (0, -signal.SIGTERM):  # one that had just begun has not said yet what SIGTERM means to it
            raise AssertionError(f"rank {self.rank} ended with {status}: {self.what_it_said()}")

    def batches(self):
        """(epoch, step, position, [(index, hash)]) of each line that is whole."""
        with open(self.log, encoding="ascii") as log:
            for line in log:
                if line.endswith("\n"):
                    words = line.split()
                    yield (*map(int, words[:3]), [(int(i), int(h, 16)) for i, _, h in (w.partition(":") for w in words[3:])])


class Campaign:
    """A daemon with `world` trainers over a folder of `n` small files."""

    def __init__(self, box, commands, n=397, batch=5, seed=0, pause_us=500, mean_seconds=0.03, options=(), daemons=0.2):
        """`mean_seconds` lie between two kills on average, of which `daemons` is the share of the daemon."""
        self.options, self.daemons = options, daemons
        self.n, self.batch, self.seed, self.world = n, batch, seed, len(commands)
        self.pause_us, self.mean_seconds = pause_us, mean_seconds
        self.dataset = "d"
        self.folder = box.path("kills")
        os.makedirs(self.folder, exist_ok=True)
        self.daemon = box.daemon({"d": box.folder_of_files("d", n)})
        self.daemon.read("d")  # the index is there
        self.trainers = [Trainer(self, rank, command) for rank, command in enumerate(commands)]
        self.hashes = [fnv1a(identity_bytes(number, 200)) for number in range(n)]
        self.kills = {"daemon": 0, "trainer": 0}

    def run(self, n_kills, seed):
        """Kills so often; the moments come from `seed`, and from the machine's noise."""
        moments = random.Random(seed)
        for trainer in self.trainers:
            trainer.start()
        while sum(self.kills.values()) < n_kills:
            time.sleep(moments.expovariate(1 / (self.mean_seconds * SLOWER)))
            for trainer in self.trainers:
                trainer.check_alive()
            if moments.random() < self.daemons:
                self.daemon.kill()
                self.daemon.start(wait=False)
                self.kills["daemon"] += 1
            else:
                trainer = moments.choice(self.trainers)
                trainer.kill()
                trainer.start()
                self.kills["trainer"] += 1
        self.daemon.wait_ready()
        for trainer in self.trainers:
            trainer.finish()

    def faults(self):
        """Compares all that was written with the order; returns counts, and sentences about the first few faults."""
        counts = {"batches": 0, "samples": 0, "epochs": 0, "seeks": 0, "out_of_order": 0, "wrong": 0}
        sentences = []
        for trainer in self.trainers:
            expected = self.order_of(trainer.rank, 0, 0)
            for number, (epoch, _, position, samples) in enumerate(trainer.batches()):
                if not samples:
                    counts["seeks"] += 1
                    expected = self.order_of(trainer.rank, epoch, position)
                    continue
                counts["batches"] += 1
                counts["samples"] += len(samples)
                counts["epochs"] = max(counts["epochs"], epoch + 1)
                for index, value in samples:
                    if value != self.hashes[index]:
                        counts["wrong"] += 1
                        sentences.append(f"rank {trainer.rank}: sample {index} of epoch {epoch} has other bytes")
                have, want = (epoch, [index for index, _ in samples]), next(expected)
                if have != want:
                    counts["out_of_order"] += 1
                    sentences.append(f"rank {trainer.rank}, its line {number + 1}: got {have}, expected {want}")
                    break
        return counts, sentences[:10]

    def order_of(self, rank, epoch, position):
        """(epoch, indices) of each batch from this place on, without an end."""
        while True:
            left = expected_order(self.n, self.world, rank, self.seed, epoch, position=position)
            for begin in range(0, len(left), self.batch):
                yield epoch, left[begin:begin + self.batch]
            epoch, position = epoch + 1, 0


def c_rank():
    return [os.path.join(BUILD, "bench", "kill_rank")]


def python_rank():
    return ["/usr/bin/python3", os.path.join(ROOT, "tests", "bench", "kill_rank.py")]
