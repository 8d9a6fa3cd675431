#!/usr/bin/env python3
"""Hours of everything at once, from a printed seed: `make soak HOURS=2`.

    soak.py [--hours H | --seconds S] [--seed N] [--lose-a-batch]

Training runs of several users come, go, die, stop, change their world size; some read damaged files; the number of
workers changes, the configuration is loaded again, strangers send garbage, and for seconds at a time a hostile user does
what costs the daemon most; the daemon is stopped and killed, and so is a web server from which one of the datasets
comes, through a cache that is too small and is removed at times. All of it is drawn from the seed. What must hold:

    each sample           is the one that the order says, once, with its own bytes (runs.py); what random crops gave is
                          compared with a daemon that nobody disturbs
    nobody stands still   longer than STUCK_SECONDS without an excuse
    memory                resident memory of the daemon stays below memory_limit + 64 MiB
    nothing grows         at quiet moments, when all runs have ended, the account of memory_limit, descriptors and threads
                          are what they were at the first quiet moment of this daemon's life, and resident memory without read
                          buffers has not grown by more than GROWTH_KIB since

Eras alternate: in one the daemon lives on, so that growth would be seen; in the next it is stopped and killed as well.
It ends with status 0 and a line of counts, or with 1 and what was wrong.
"""
import argparse
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runs
from harness import ROOT, SLOWER, Box, Skip, die_with_parent, identity_bytes, patience, write
from runs import Dataset, Run, Terms, fnv1a
from web_origin import Nginx, bytes_of, list_of

MEMORY_LIMIT_MIB = 256
MEMORY_SLACK_MIB = 64
STUCK_SECONDS = 60
GROWTH_KIB = 16 << 10
N_RUNS = 4
HOSTILE_UID = 40003
HOSTILE_KINDS = "flood", "refused", "orders", "slow"  # what hostile_user.py does
HOSTILE_USER = os.path.join(ROOT, "tests", "bench", "hostile_user.py")
SLOW_PIPELINE = "resize(3000:3000) gaussian_blur(31, sigma=8) center_crop(8)"  # memory_limit leaves room for it
FIXED_PIPELINE = "resize(24) center_crop(20)"
RANDOM_PIPELINE = "random_resized_crop(20) hflip(0.5)"
REPLAYED_EPOCHS = 3  # of each run with random crops


def say(text):
    print(text, flush=True)


class Soak:
    def __init__(self, box, seed):
        self.box = box
        self.draw = random.Random(seed)
        self.runs = []
        self.n_runs = 0
        self.counts = {name: 0 for name in ("samples", "batches", "runs", "worlds", "killed", "stopped", "left", "garbage", *HOSTILE_KINDS,
                                            "reloads", "workers", "daemon_kills", "daemon_stops", "origin_kills", "caches", "quiet",
                                            "replayed")}
        self.replays = []  # (dataset, terms, epoch, {(index, hash)})
        self.restarts = False
        self.disturbed_until = 0.0  # the daemon is on its way back until then: nobody has to move
        self.baseline = None  # of this daemon's life: figures at its first quiet moment
        self.uids = [None, None, 40001, 40002] if os.getuid() == 0 else [None]
        self.worst_rss_kib = 0
        self.hostile, self.hostile_until = None, 0.0
        self.origin, self.origin_until = None, None  # a web server; until when it is away

    # -- what is served

    def prepare(self):
        """Folders, hashes, the daemon."""
        os.chmod(self.box.folder, 0o711)
        runs.KILL_RANK = shutil.copy(runs.KILL_RANK, self.box.path("kill_rank"))  # other users must be able to run it
        files = Dataset("files", 397)
        files.hashes["raw"] = [fnv1a(identity_bytes(number, 200)) for number in range(files.n)]
        pictures = Dataset("pictures", 251)
        damaged = Dataset("damaged", 211, damaged=(3, 40, 41, 42, 100, 170, 210))
        folders = {"files": self.box.folder_of_files("files", files.n),
                   "pictures": self.box.folder_of_pictures("pictures", pictures.n, width=40, height=30),
                   "damaged": self.box.folder_of_pictures("damaged", damaged.n, width=40, height=30)}
        for number in damaged.damaged:
            path = os.path.join(folders["damaged"], f"class{number * 2 // damaged.n:03d}", f"{number:06d}.png")
            write(path, b"\x89PNG\r\n\x1a\n and no picture")
        self.datasets = [files, pictures, damaged]
        settings = self.prepare_origin(folders)
        self.daemon = self.box.daemon(folders, memory_limit=f"{MEMORY_LIMIT_MIB}MiB", socket_mode="0666", **settings)
        os.chmod(self.daemon.folder, 0o711)
        self.learn(pictures, "fail")
        self.learn(damaged, "substitute")

    def prepare_origin(self, folders):
        """A dataset of a web server, and a cache that has room for a third of it. Returns settings of the daemon."""
        remote = Dataset("remote", 331)
        remote.hashes["raw"] = [fnv1a(identity_bytes(number, 4000)) for number in range(remote.n)]
        root = self.box.path("origin")
        os.makedirs(root)
        os.rename(self.box.folder_of_files("remote", remote.n, size=4000), os.path.join(root, "remote"))
        try:
            self.origin = Nginx(self.box, root)
        except Skip as reason:
            say(f"soak: without a dataset that lies elsewhere: {reason}")
            return {}
        self.datasets.append(remote)
        folders["remote"] = {"path": list_of(self.origin, root, "remote"), "format": "imagefolder"}
        return {"cache_limit": f"{bytes_of(os.path.join(root, 'remote')) // 3 >> 10}KiB"}

    def learn(self, dataset, on_error):
        """What each good sample hashes to: an epoch that nobody disturbs."""
        seen = self.read_epoch(dataset, Terms(dataset.name, FIXED_PIPELINE, 7, 0, "torch", "pad", on_error, 4, 0, None), 0)
        known = dict(seen)
        dataset.hashes[FIXED_PIPELINE] = [known.get(number) for number in range(dataset.n)]

    def read_epoch(self, dataset, terms, epoch):
        """{(sample, hash)} of one epoch, read by a single rank."""
        run = Run(f"read{self.n_runs}", self.box.path(f"read{self.n_runs}"), dataset, terms._replace(uid=None))
        self.n_runs += 1
        run.at = (epoch, 0)
        run.begin(1, self.daemon.socket)
        rank, seen = run.segment.ranks[0], set()
        end = time.monotonic() + patience(120)
        while not any(line[0] > epoch for line in rank.lines()):
            rank.check_alive()
            if time.monotonic() > end:
                raise AssertionError(f"{rank.what()}: an epoch takes too long: {rank.said()}")
            time.sleep(0.05)
        rank.leave(0)
        for line in rank.lines():
            if line[0] == epoch:
                seen |= {(index if substitute is None else substitute, value) for index, substitute, value in line[3]}
        shutil.rmtree(run.folder)
        return seen

    # -- what happens

    def new_run(self):
        dataset = self.draw.choice(self.datasets)
        pipeline = "raw" if dataset.name in ("files", "remote") else self.draw.choice((FIXED_PIPELINE, RANDOM_PIPELINE))
        on_error = self.draw.choice(("substitute", "skip")) if dataset.damaged else "fail"
        batch = self.draw.choice((1, 3, 8, 32))
        terms = Terms(dataset.name, pipeline, batch, self.draw.randrange(1 << 32),
                      self.draw.choice(("torch", "tdperm")), self.draw.choice(("pad", "drop", "exact")), on_error,
                      self.draw.choice((2, 4, 8)), batch * self.draw.choice((300, 1000, 5000)), self.draw.choice(self.uids))
        run = Run(f"run{self.n_runs}", self.box.path(f"run{self.n_runs}"), dataset, terms)
        self.n_runs += 1
        self.counts["runs"] += 1
        run.begin(self.draw.randint(1, 4), self.daemon.socket)
        self.runs.append(run)

    def end_run(self, run):
        run.end()
        self.runs.remove(run)
        self.account(run)

    def account(self, run):
        self.counts["samples"] += run.n_samples
        self.counts["batches"] += run.n_batches
        for epoch in sorted(run.seen)[:REPLAYED_EPOCHS]:
            self.replays.append((run.dataset, run.terms, epoch, run.seen[epoch]))
        shutil.rmtree(run.folder)

    def a_rank(self):
        """One that runs now, or None."""
        ranks = [rank for run in self.runs for rank in run.segment.ranks
                 if rank.is_alive() and rank.stopped_until is None and rank.away_until is None]
        return self.draw.choice(ranks) if ranks else None

    def kill_rank(self):
        rank = self.a_rank()
        if rank:
            rank.kill()
            rank.away_until = time.monotonic() + self.draw.choice((0, 0, 0.5, 3))
            self.counts["killed"] += 1

    def stop_rank(self):
        rank = self.a_rank()
        if rank:
            rank.pause(self.draw.uniform(0.1, 4))
            self.counts["stopped"] += 1

    def let_rank_leave(self):
        rank = self.a_rank()
        if rank:
            rank.leave(self.draw.uniform(0, 3))
            self.counts["left"] += 1

    def change_world(self):
        if self.runs:
            run = self.draw.choice(self.runs)
            run.end()
            run.begin(self.draw.randint(1, 4), self.daemon.socket)
            self.counts["worlds"] += 1

    def end_a_run(self):
        if len(self.runs) > 1:
            self.end_run(self.draw.choice(self.runs))

    def garbage(self):
        """A stranger who connects, says something that nobody understands, and goes, or stays a moment."""
        for _ in range(self.draw.randint(1, 10)):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
                stranger.setblocking(False)
                try:
                    stranger.connect(self.daemon.socket)
                    for _ in range(self.draw.randint(0, 3)):
                        stranger.send(self.draw.randbytes(self.draw.randint(1, 300)))
                except OSError:  # it is not there just now, or has hung up on us
                    pass
        self.counts["garbage"] += 1

    def reload(self):
        self.daemon.settings["nice"] = self.draw.randint(0, 5)
        self.daemon.settings["slots"] = self.draw.randint(2, 6)
        self.daemon.write_config()
        self.daemon.signal(signal.SIGHUP)
        self.counts["reloads"] += 1

    def change_workers(self):
        self.daemon.dlctl("workers", self.draw.randint(1, 6))
        self.counts["workers"] += 1

    def invite_hostile_user(self):
        if self.hostile or os.getuid() != 0:
            return
        kind = self.draw.choice(HOSTILE_KINDS)
        command = [sys.executable, HOSTILE_USER, kind, str(HOSTILE_UID), self.daemon.socket, "pictures", SLOW_PIPELINE]
        self.hostile = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, preexec_fn=die_with_parent)
        self.hostile_until = time.monotonic() + self.draw.uniform(1, 6)
        self.counts[kind] += 1

    def end_hostile_user(self):
        if self.hostile:
            self.hostile.kill()
            self.hostile.wait()
            self.hostile = None

    def restart_daemon(self):
        if not self.restarts:
            return
        if self.draw.random() < 0.5:
            self.daemon.kill()
            self.counts["daemon_kills"] += 1
        else:
            self.daemon.stop(60)
            self.counts["daemon_stops"] += 1
        time.sleep(self.draw.choice((0, 0, 0.2, 1)))
        if self.origin and self.draw.random() < 0.3:
            shutil.rmtree(os.path.join(self.daemon.folder, "index", "remote"), ignore_errors=True)
            self.counts["caches"] += 1
        self.bring_origin_back()  # who begins without it finds what was listed last, or nothing
        self.daemon.start()
        self.disturbed_until = time.monotonic() + 5
        self.baseline = None

    def kill_origin(self):
        if self.origin and self.origin_until is None:
            self.origin.process.kill()
            self.origin.process.wait()
            self.origin_until = time.monotonic() + self.draw.choice((0, 0.1, 1, 3))
            self.disturbed_until = max(self.disturbed_until, self.origin_until + 5)
            self.counts["origin_kills"] += 1

    def bring_origin_back(self):
        if self.origin_until is not None:
            self.origin.start()
            self.origin_until = None

    ACTIONS = ((kill_rank, 10), (stop_rank, 5), (let_rank_leave, 4), (change_world, 3), (end_a_run, 2), (garbage, 3),
               (invite_hostile_user, 3), (reload, 2), (change_workers, 2), (restart_daemon, 2), (kill_origin, 3))

    def act(self):
        action = self.draw.choices([action for action, _ in self.ACTIONS], [weight for _, weight in self.ACTIONS])[0]
        action(self)

    # -- what must hold

    def look(self):
        """At everything that must hold at any moment; brings back who was to come back."""
        if self.daemon.process.poll() is not None:
            raise AssertionError(f"the daemon ended with {self.daemon.process.returncode}")
        now = time.monotonic()
        if now >= self.hostile_until:
            self.end_hostile_user()
        if self.origin_until is not None and now >= self.origin_until:
            self.bring_origin_back()
        for run in self.runs:
            ranks = run.segment.ranks
            for rank in ranks:
                if rank.stopped_until is not None and now >= rank.stopped_until:
                    rank.wake()
                if rank.away_until is not None and now >= rank.away_until:
                    rank.start(self.daemon.socket)
                rank.check_alive()
                rank.check_moves(STUCK_SECONDS, now < self.disturbed_until)
        rss = self.daemon.rss_kib()
        self.worst_rss_kib = max(self.worst_rss_kib, rss)
        if rss > (MEMORY_LIMIT_MIB + MEMORY_SLACK_MIB) << 10 and SLOWER == 1:  # sanitizers need memory of their own
            raise AssertionError(f"the daemon has {rss >> 10} MiB resident, memory_limit is {MEMORY_LIMIT_MIB} MiB")

    def figures(self):
        status = self.daemon.status()
        names = self.thread_names()
        obtained = {fact["name"]: fact["value"] for fact in status["obtained"]}
        # Without what workers paid for when they began: that depends on how many there were to be then.
        n_bytes = int(status["memory_used_bytes"]) - int(obtained["worker_scratch"])
        return {"memory_used_bytes": n_bytes, "descriptors": self.daemon.n_descriptors() - self.n_connections(), "threads": len(names),
                "heap_kib": self.resident_kib() - self.resident_kib(int(obtained["read_buffers"])), "names": names}

    def n_connections(self):
        """To the origin, which are kept as long as it likes."""
        with open("/proc/net/tcp", encoding="ascii") as table:
            inodes = {line.split()[9] for line in table if line.split()[0] != "sl"}
        links = set()
        for name in os.listdir(f"/proc/{self.daemon.pid}/fd"):
            with contextlib.suppress(OSError):
                links.add(os.readlink(f"/proc/{self.daemon.pid}/fd/{name}"))
        return sum(f"socket:[{inode}]" in links for inode in inodes)

    def resident_kib(self, n_bytes=None):
        """What is resident of the daemon, or of its one mapping of about n_bytes: buffers become resident as more of them
        are used at a time, which does not count as growth."""
        total, size = 0, None
        with open(f"/proc/{self.daemon.pid}/smaps", encoding="utf-8", errors="replace") as file:
            for line in file:
                word = line.split()
                if word[0] == "Size:":
                    size = int(word[1]) << 10
                elif word[0] == "Rss:" and (n_bytes is None or abs(size - n_bytes) < 2 << 20):
                    total += int(word[1])
        return total

    def thread_names(self):
        """Without the kernel's workers of io_uring, which come and go as it sees fit: it keeps one or two when idle."""
        names = []
        for task in os.listdir(f"/proc/{self.daemon.pid}/task"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                with open(f"/proc/{self.daemon.pid}/task/{task}/comm", encoding="utf-8") as file:
                    names.append(file.read().strip())
        return sorted(name for name in names if not name.startswith("iou-"))

    def be_quiet(self):
        """Ends all runs and compares what the daemon holds with its first quiet moment."""
        self.end_hostile_user()
        self.bring_origin_back()
        for run in list(self.runs):
            self.end_run(run)
        self.replay()
        self.daemon.dlctl("workers", 2)
        end = time.monotonic() + patience(60)
        first = self.baseline
        while True:
            now = self.figures()
            if first is None:
                time.sleep(1)  # nothing to compare with: what is about to go, goes
                if self.daemon.objects("jobs") == []:
                    self.baseline = self.figures()
                    break
            elif all(now[name] <= first[name] for name in ("memory_used_bytes", "descriptors", "threads")):
                break
            if time.monotonic() > end:
                raise AssertionError(f"with nobody attached the daemon holds {now}, at its first quiet moment {first}")
            time.sleep(0.2)
        # Sanitizers keep what was freed for a while, hundreds of MiB, and find what is lost by themselves.
        if first and SLOWER == 1 and now["heap_kib"] > first["heap_kib"] + GROWTH_KIB:
            raise AssertionError(f"resident memory grew: {now}, at the first quiet moment {first}")
        self.counts["quiet"] += 1

    def replay(self):
        """What random crops gave, once more, from a daemon that nobody disturbs just now."""
        for dataset, terms, epoch, seen in self.replays:
            again = self.read_epoch(dataset, terms._replace(pause_us=0, slots=4, partition="exact"), epoch)
            wrong = seen - again
            if wrong:
                raise AssertionError(f"{terms}: epoch {epoch}: {len(wrong)} samples had other pixels: {sorted(wrong)[:5]}")
            self.counts["replayed"] += len(seen)
        self.replays = []

    # -- the whole

    def run(self, seconds):
        begin = time.monotonic()
        era_seconds = max(10, min(300, seconds / 6))
        next_quiet, next_line = begin + era_seconds, begin + 60
        while time.monotonic() < begin + seconds:
            while len(self.runs) < N_RUNS:
                self.new_run()
            time.sleep(self.draw.expovariate(1 / (0.15 * SLOWER)))
            self.look()
            self.act()
            now = time.monotonic()
            if now >= next_quiet:
                self.be_quiet()
                self.restarts = not self.restarts
                next_quiet = time.monotonic() + era_seconds
            if now >= next_line:
                next_line = now + 60
                say(f"{(now - begin) / 60:6.1f} min  " + "  ".join(f"{name}={value}" for name, value in self.counts.items()) +
                    f"  rss={self.daemon.rss_kib() >> 10} MiB")
        self.be_quiet()


def main():
    parser = argparse.ArgumentParser(description="hours of everything at once, from a seed")
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=time.time_ns() & 0xffffffff)
    parser.add_argument("--lose-a-batch", action="store_true", help="for a test: trainers pass over their third batch")
    options = parser.parse_args()
    seconds = options.seconds if options.seconds is not None else options.hours * 3600
    say(f"soak: {seconds:.0f} s, seed {options.seed}")
    box, trouble = Box(), None
    soak = Soak(box, options.seed)
    try:
        soak.prepare()
        runs.EXTRA_OPTIONS = ["lose=3"] if options.lose_a_batch else []
        soak.run(seconds)
    except AssertionError as error:
        trouble = str(error)
    finally:
        soak.end_hostile_user()
        for run in soak.runs:
            for rank in run.segment.ranks:
                if rank.is_alive():
                    rank.kill()
        remarks = box.close()
    for daemon in box.daemons if trouble or remarks else []:
        say(f"--- the end of the daemon's log ---\n{daemon.last_log[-4000:]}")
    for remark in ([trouble] if trouble else []) + remarks:
        say(f"WRONG: {remark} (seed {options.seed})")
    say("soak: " + "  ".join(f"{name}={value}" for name, value in soak.counts.items()) +
        f"  most resident={soak.worst_rss_kib >> 10} MiB")
    sys.exit(1 if trouble or remarks else 0)


main()
