"""Training runs of the soak: each is a job whose ranks come, go, die, stop, and go on at another world size.

A run is a list of segments. In a segment the world size stays the same; each rank writes what it was served into a log
of its own (tests/bench/kill_rank.c). A segment ends at the position that all of its ranks have reached, and the next
one begins there. So two things can be checked: within a segment the lines of a rank are a beginning of exactly the
samples that are due to it, and over all segments each sample of the order comes exactly once.
"""
import collections
import os
import signal
import subprocess
import time

from harness import BUILD, LIBC, PR_SET_PDEATHSIG, patience, whole_order
from kills import fnv1a  # noqa: F401  (for soak.py: one hash, one home)

KILL_RANK = os.path.join(BUILD, "bench", "kill_rank")
EXTRA_OPTIONS = []  # for every trainer

Terms = collections.namedtuple("Terms", "dataset pipeline batch seed order partition on_error slots pause_us uid")


class Dataset:
    """What is known of a dataset's samples: how many, which are damaged, and what each hashes to under a pipeline."""

    def __init__(self, name, n, damaged=()):
        self.name, self.n, self.damaged = name, n, frozenset(damaged)
        self.hashes = {}  # pipeline -> [hash by index]; a pipeline without an entry differs from epoch to epoch

    def substitute_of(self, whole, position):
        """The sample that on_error "substitute" serves in the place of a damaged one: the next good one of the order."""
        for place in range(position + 1, position + self.n):
            if whole[place % self.n] not in self.damaged:
                return whole[place % self.n]
        return None


class Rank:
    """One process of a segment; started again after it was killed or has left."""

    def __init__(self, segment, rank):
        self.segment, self.rank = segment, rank
        self.log = os.path.join(segment.run.folder, f"segment{segment.number}.rank{rank}")
        self.process = None
        self.stopped_until = None
        self.away_until = None
        self.size, self.moved_at = 0, time.monotonic()

    def start(self, socket):
        run, terms = self.segment.run, self.segment.run.terms
        environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
        environment.update(RANK=str(self.rank), WORLD_SIZE=str(self.segment.world), DATALOADERD_SOCKET=socket)
        command = [KILL_RANK, terms.dataset, str(terms.batch), str(terms.seed), self.log, str(terms.pause_us),
                   f"job={run.name}.{self.segment.number}", f"pipeline={terms.pipeline}", f"order={terms.order}",
                   f"partition={terms.partition}", f"on_error={terms.on_error}", f"slots={terms.slots}",
                   f"epoch={self.segment.epoch}", f"position={self.segment.position}", *EXTRA_OPTIONS]

        def prepare():
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if terms.uid is not None:
                os.setgroups([])
                os.setgid(terms.uid)
                os.setuid(terms.uid)
                LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # setuid() cleared it

        with open(self.log + ".stderr", "ab") as errors:
            self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stderr=errors,
                                            preexec_fn=prepare)
        self.stopped_until = self.away_until = None
        self.moved_at = time.monotonic()

    def said(self):
        try:
            with open(self.log + ".stderr", encoding="utf-8", errors="replace") as errors:
                return errors.read()[-1000:]
        except FileNotFoundError:
            return ""

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def pause(self, seconds):
        self.process.send_signal(signal.SIGSTOP)
        self.stopped_until = time.monotonic() + seconds

    def wake(self):
        if self.stopped_until is not None and self.is_alive():
            self.process.send_signal(signal.SIGCONT)
        self.stopped_until = None
        self.moved_at = time.monotonic()

    def leave(self, seconds):
        """SIGTERM, and a good end; it comes back after this many seconds."""
        self.wake()
        self.process.terminate()
        try:
            status = self.process.wait(patience(60))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.what()} does not end: {self.said()}") from None
        if status not in (0, -signal.SIGTERM):
            raise AssertionError(f"{self.what()} ended with {status}: {self.said()}")
        self.away_until = time.monotonic() + seconds

    def what(self):
        return f"{self.segment.run.name}, segment {self.segment.number}, rank {self.rank} of {self.segment.world}"

    def check_alive(self):
        if self.process is not None and self.away_until is None and self.process.poll() is not None:
            raise AssertionError(f"{self.what()} ended by itself with {self.process.returncode}: {self.said()}")

    def check_moves(self, seconds, excuse):
        """It must not stand still, unless there is an excuse."""
        now = time.monotonic()
        size = os.path.getsize(self.log) if os.path.exists(self.log) else 0
        if excuse or size != self.size or self.away_until is not None or self.stopped_until is not None:
            self.size, self.moved_at = size, now
        elif now - self.moved_at > patience(seconds):
            raise AssertionError(f"{self.what()} has got nothing for {patience(seconds)} s: {self.said()}")

    def lines(self):
        """(epoch, step, position, [(index, substitute or None, hash)]) of each whole line."""
        try:
            with open(self.log, encoding="ascii") as log:
                text = log.read()
        except FileNotFoundError:
            return []
        lines = []
        for line in text[:text.rfind("\n") + 1].splitlines():
            words = line.split()
            samples = []
            for word in words[3:]:
                name, _, value = word.partition(":")
                index, _, substitute = name.partition("/")
                samples.append((int(index), int(substitute) if substitute else None, int(value, 16)))
            lines.append((int(words[0]), int(words[1]), int(words[2]), samples))
        return lines


class Segment:
    def __init__(self, run, number, world, epoch, position):
        self.run, self.number, self.world = run, number, world
        self.epoch, self.position = epoch, position  # where it begins
        self.ranks = [Rank(self, rank) for rank in range(world)]

    def reached(self, lines_of_ranks):
        """(epoch, position) up to which all ranks have been served."""
        n = self.run.dataset.n
        reached = []
        for lines in lines_of_ranks:
            if not lines:
                return self.epoch, self.position
            epoch, _, position, _ = lines[-1]
            reached.append((epoch + 1, 0) if position >= n else (epoch, position))
        return min(reached)

    def due(self, rank, n_lines):
        """The lines that are due to a rank: (epoch, position after it, [(position, index), ...]), n_lines of them."""
        run, n, world = self.run, self.run.dataset.n, self.world
        epoch, first, due = self.epoch, self.position, []
        while len(due) < n_lines:
            whole = run.whole(epoch)
            left = n - first
            n_rank = {"pad": (left + world - 1) // world, "drop": left // world,
                      "exact": (left + world - 1 - rank) // world}[run.terms.partition]
            for step in range(0, n_rank, run.terms.batch):
                places = [(first + place * world + rank) % n for place in range(step, min(step + run.terms.batch, n_rank))]
                due.append((epoch, first + (step + run.terms.batch) * world, [(place, whole[place]) for place in places]))
            epoch, first = epoch + 1, 0
        return due[:n_lines]


class Run:
    """One training run. `check()` compares what its last segment was served and begins to count it."""

    def __init__(self, name, folder, dataset, terms):
        self.name, self.folder, self.dataset, self.terms = name, folder, dataset, terms
        self.orders = {}
        self.segment = None
        self.n_segments = 0
        self.n_samples = self.n_batches = 0
        self.at = (0, 0)
        self.seen = {}  # epoch -> [(index, hash)] where hashes are not known before
        os.makedirs(folder)
        if terms.uid is not None:
            os.chown(folder, terms.uid, terms.uid)

    def whole(self, epoch):
        if epoch not in self.orders:
            if len(self.orders) > 8:
                self.orders.clear()
            self.orders[epoch] = whole_order(self.dataset.n, self.terms.seed, epoch, True, self.terms.order)
        return self.orders[epoch]

    def begin(self, world, socket):
        self.segment = Segment(self, self.n_segments, world, *self.at)
        self.n_segments += 1
        for rank in self.segment.ranks:
            rank.start(socket)

    def end(self):
        """All ranks leave; then what they were served is checked."""
        for rank in self.segment.ranks:
            if rank.is_alive():
                rank.leave(0)
        self.check()
        self.segment = None

    def check_sample(self, epoch, place, index, sample):
        """Is it the sample that is due at this position of the epoch, with its own bytes?"""
        got, substitute, value = sample
        if got != index:
            raise AssertionError(f"index {got}, expected {index}")
        served = index
        if index in self.dataset.damaged:
            served = self.dataset.substitute_of(self.whole(epoch), place)
            if substitute != served:
                raise AssertionError(f"damaged sample {index} was replaced by {substitute}, expected {served}")
        elif substitute is not None:
            raise AssertionError(f"good sample {index} was replaced by {substitute}")
        known = self.dataset.hashes.get(self.terms.pipeline)
        if known is None:
            self.seen.setdefault(epoch, set()).add((served, value))
        elif value != known[served]:
            raise AssertionError(f"sample {served} has other bytes")

    def check(self):
        segment = self.segment
        lines_of_ranks = [rank.lines() for rank in segment.ranks]
        end = segment.reached(lines_of_ranks)
        counts = collections.Counter()
        for rank, lines in zip(segment.ranks, lines_of_ranks):
            if self.terms.on_error == "skip":
                due = self.due_after_skipping(segment, rank.rank, lines)
            else:
                due = segment.due(rank.rank, len(lines))
            for number, (line, (epoch, position, places)) in enumerate(zip(lines, due)):
                where = f"{rank.what()}, line {number}"
                if line[0] != epoch or len(line[3]) != len(places):
                    raise AssertionError(f"{where}: epoch {line[0]} with {len(line[3])} samples, "
                                         f"expected epoch {epoch} with {len(places)}")
                for sample, (place, index) in zip(line[3], places):
                    try:
                        self.check_sample(epoch, place, index, sample)
                    except AssertionError as error:
                        raise AssertionError(f"{where}: {error}") from None
                    if (epoch, position) <= end or epoch < end[0]:
                        counts[epoch, place] += 1
                self.n_batches += 1
                self.n_samples += len(places)
        self.check_union(segment, end, counts)
        for rank in segment.ranks:  # a soak of hours must not fill the disk
            for name in (rank.log, rank.log + ".stderr"):
                if os.path.exists(name):
                    os.unlink(name)
        self.at = end

    def due_after_skipping(self, segment, rank, lines):
        """Batches without their damaged samples; a batch that has none left is not served."""
        due, n_lines = [], len(lines)
        while True:
            due = [(epoch, position, [(place, index) for place, index in places if index not in self.dataset.damaged])
                   for epoch, position, places in segment.due(rank, n_lines)]
            due = [line for line in due if line[2]]
            if len(due) >= len(lines):
                return due
            n_lines += len(lines) - len(due) + 8

    def check_union(self, segment, end, counts):
        """Each position between the segment's begin and its end was served once: none lost, none twice. With the
        partition "pad" the last ranks repeat some, with "drop" the rest of an epoch is left out."""
        n = self.dataset.n
        for epoch in range(segment.epoch, end[0] + 1):
            first = segment.position if epoch == segment.epoch else 0
            last = min(end[1], n) if epoch == end[0] else n
            if epoch < end[0] and self.terms.partition == "drop":
                last = first + (n - first) // segment.world * segment.world
            whole = self.whole(epoch)
            for place in range(first, last):
                times = counts[epoch, place]
                if self.terms.on_error == "skip" and whole[place] in self.dataset.damaged:
                    if times:
                        raise AssertionError(f"{self.name}: epoch {epoch}: damaged sample {whole[place]} was served")
                elif times == 0:
                    raise AssertionError(f"{self.name}: epoch {epoch}, position {place}: sample {whole[place]} is lost")
                elif times > 1 and self.terms.partition != "pad":
                    raise AssertionError(f"{self.name}: epoch {epoch}, position {place}: sample {whole[place]} came "
                                         f"{times} times")
