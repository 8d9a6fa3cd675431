"""Two training programs beside each other, and daemons and trainers that are killed."""
import json
import os
import signal
import subprocess
import sys
import time

from common_bench import BUILD, HERE, PYTHON, ROOT, daemon, emit, median, photos, pss


class Trainer:
    """A rank of tests/bench/compare_torch.py; `None` for its first line where torch is not installed."""

    def __init__(self, kind, mode, it, rank, world):
        env = dict(it.environment(rank, world), PYTHONPATH=os.path.join(ROOT, "client", "python"), OMP_NUM_THREADS="1",
                   DATALOADERD_LIBRARY=os.path.join(BUILD, "libdlclient.so.0"), MASTER_ADDR="compare",
                   MASTER_PORT=str(os.getpid()), PYTHONDONTWRITEBYTECODE="1")
        self.process = subprocess.Popen([PYTHON, os.path.join(HERE, "compare_torch.py"), kind, photos(), mode], env=env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def line(self):
        text = self.process.stdout.readline()
        if not text and self.process.wait(20) != 77:
            raise RuntimeError("a trainer failed")
        return json.loads(text) if text else None

    def go(self):
        """It has imported everything and makes its loader now."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def processes(self):
        """It and the workers that it forked."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as children:
            return [self.process.pid] + [int(pid) for pid in children.read().split()]

    def end(self):
        """Its last line, if it says one at its end."""
        self.process.stdin.close()
        rest = self.process.stdout.read()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return json.loads(rest) if rest else None


def compare_trainers(kind, it):
    """Two ranks; the later one's first batch and the memory of all. None without torch."""
    trainers = []
    try:
        for rank in range(2):
            trainers.append(Trainer(kind, "hold", it, rank, 2))
        if None in [trainer.line() for trainer in trainers]:
            return None
        imported = sum(pss(trainer.process.pid) for trainer in trainers)
        for trainer in trainers:
            trainer.go()
        rows = [trainer.line() for trainer in trainers]
        pids = [pid for trainer in trainers for pid in trainer.processes()]
        if kind == "dlclient":
            pids.append(it.process.pid)
        total = sum(map(pss, pids))
        return {"first_ms": max(row["first_ms"] for row in rows), "pss": total, "over": total - imported,
                "processes": len(pids), "versions": rows[0]["versions"]}
    finally:
        for trainer in trainers:
            trainer.end()


def restart_stall(it, number):
    """A trainer's longest stop around a restart, the daemon's own start, and what lies after that; seconds."""
    trainer = Trainer("dlclient", "loop", it, 0, 1)
    try:
        trainer.line()
        trainer.go()
        trainer.line()
        time.sleep(1)
        it.process.send_signal(number)
        it.process.wait()
        gone = time.monotonic()
        it.start()
        ready = it.wait_ready()
        time.sleep(2)
    finally:
        last = trainer.end()
    times = last["times"]
    stop, begin = max((later - sooner, sooner) for sooner, later in zip(times, times[1:]) if later > gone)
    return {"stall": stop, "start": ready - gone, "behind": max(0.0, begin + stop - ready)}


def compare():
    rows = {"torch": [], "dlclient": []}
    stalls = {signal.SIGTERM: [], signal.SIGKILL: []}
    with daemon(2) as it:
        for _ in range(3):
            for kind, runs in rows.items():
                run = compare_trainers(kind, it)
                if run is None:
                    print("compare skipped: torch and torchvision are not installed", flush=True)
                    return
                runs.append(run)
        for _ in range(3):
            for number, runs in stalls.items():
                runs.append(restart_stall(it, number))
    for kind, runs in rows.items():
        emit(f"compare_first_batch_{kind}", median(runs, "first_ms"), "ms", versions=runs[0]["versions"])
    for kind, runs in rows.items():
        emit(f"compare_memory_{kind}", median(runs, "pss") / 2**20, "MiB", processes=runs[0]["processes"])
        emit(f"compare_memory_over_{kind}", median(runs, "over") / 2**20, "MiB")
    for name, number in (("term", signal.SIGTERM), ("kill", signal.SIGKILL)):
        emit(f"compare_restart_{name}_stall", median(stalls[number], "stall"), "s", start_s=median(stalls[number], "start"))
        emit(f"compare_restart_{name}_behind_start", median(stalls[number], "behind"), "s",
             worst=max(row["behind"] for row in stalls[number]))


def kills():
    """Two trainers in C, then one of them in Python."""
    sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
    from harness import Box
    from kills import Campaign, c_rank, python_rank
    total = int(os.environ.get("KILLS", "10000"))
    sums = {"samples": 0, "out_of_order": 0, "wrong": 0, "daemon": 0, "trainer": 0}
    for commands, share, mean_seconds in (([c_rank(), c_rank()], 0.95, 0.03), ([python_rank(), c_rank()], 0.05, 0.25)):
        seed = time.time_ns()
        box = Box()
        try:
            campaign = Campaign(box, commands, mean_seconds=mean_seconds)
            campaign.run(round(total * share), seed)
            counts, sentences = campaign.faults()
        finally:
            box.close()
        for sentence in sentences:
            print(f"# {sentence} (moments from seed {seed})", flush=True)
        for name, value in {**counts, **campaign.kills}.items():
            if name in sums:
                sums[name] += value
    emit("kills", sums["daemon"] + sums["trainer"], "kills", daemon=sums["daemon"], trainer=sums["trainer"])
    emit("kills_samples", sums["samples"], "samples")
    emit("kills_lost_or_twice", sums["out_of_order"], "samples")
    emit("kills_wrong", sums["wrong"], "samples")
