"""What a light job gets beside others: an equal one, one with a heavy pipeline, one whose reads hang.

    fair_equal       images/s beside a job that is the same; the share that the others are held against
    fair_heavy       images/s beside a job whose pipeline takes a hundred times as long, over fair_equal
    fair_heavy_share part of the workers' time that it has meanwhile: a half is fair
    fair_heavy_floor what no scheduler can mend, as two CPUs share caches, memory and perhaps a core: a bare loop beside
                     one with the heavy pipeline over the same beside its equal, one thread each and no daemon
    fair_heavy_vs_floor fair_heavy over that
    fair_hung        images/s beside a job whose reads do not come back, over fair_equal
    fair_first_hung  ms from attach to the first batch while that mount hangs
    fair_status_hung ms of `dlctl status` while that mount hangs, the slowest of 50; its start included
    fair_hostile     images/s while three processes of another user connect, ask, send garbage, attach and hang up as fast as
                     they can, over images/s beside three of that user that only use the CPU (hostile_user.py); above 1:
                     they wait for the daemon's main thread more than they take from its workers
    fair_hostile_alone  the same over images/s beside nobody: CPU of theirs and of the main thread included
    fair_hostile_first  ms from attach to the first batch beside the three that flood; fair_hostile_first_floor: beside the
                     three that only use the CPU

In turns; medians. The mount is tests/tools/failing_fs.c, so root and libfuse3 are needed for fair_hung and what follows;
fair_hostile needs root, to be another user."""
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from failing_fs import FailingFs  # noqa: E402
from harness import Box, Skip, end, within  # noqa: E402

HEAVY = "resize(3000) center_crop(2900) resize(3000)"
SETTLE_S = 2


@contextlib.contextmanager
def neighbour(box, command, env):
    """Another job, ended with the block."""
    process = box.start(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(SETTLE_S)
    try:
        yield
    finally:
        end(process)


def status_ms(it, program):
    begin = time.monotonic()
    subprocess.run([program, "--socket", it.socket, "status"], stdout=subprocess.DEVNULL, check=True, timeout=60)
    return 1000 * (time.monotonic() - begin)


def asked(it, program, *command):
    done = subprocess.run([program, "--socket", it.socket, "--format", "json", *command], stdout=subprocess.PIPE, check=True,
                          timeout=60)
    return [json.loads(line) for line in done.stdout.splitlines()]


def worker_ns(it, program):
    """Of all jobs together, and of the one named "heavy"."""
    total = next(fact["value"] for fact in asked(it, program, "status")[0]["counters"] if fact["name"] == "decode_ns")
    return int(total), sum(job["worker_ns"] for job in asked(it, program, "jobs") if job["name"] == "heavy")


def bare_rates(box, build, folder, n_images):
    """Images/s of a bare loop on one thread beside its equal, and beside one with the heavy pipeline."""
    def command(n, *more):
        return [os.path.join(build, "bench", "bare_loop"), folder, "1", str(n), *more]

    rates = []
    for beside in command(1 << 30), command(1 << 30, "auto", HEAVY):
        with neighbour(box, beside, None):
            done = subprocess.run(command(n_images), stdout=subprocess.PIPE, check=True, timeout=300)
            rates.append(json.loads(done.stdout)["images_per_s"])
    return rates


def measure(box, daemon, emit, build, folder, repeats, n_batches):
    """`daemon`, `emit` as in run.py; `folder`: of photos."""
    dlctl = os.path.join(build, "dlctl")
    rates = {"equal": [], "heavy": [], "hung": []}
    first, status, shares, floors = [], [], [], []
    try:
        disk = FailingFs(box, folder)
    except Skip as skip:
        print(f"# fair_hung: {skip}", file=sys.stderr)
        disk = None
    more = f'dataset "hanging" {{ path = "{disk.path}" }}\n' if disk else ""
    with daemon(2, more=more) as it:
        def read(dataset, *options):
            return [dlctl, "--socket", it.socket, "read", dataset, "--epochs", "1000", *options]

        # The neighbours' clients only look at their batches: what a client computes does not concern the daemon.
        consume = [os.path.join(build, "bench", "consume"), "throughput", str(it.process.pid), "1000000"]
        commands = {"equal": consume, "heavy": consume}
        if disk:
            commands["hung"] = read("hanging", "--batch", "64", "--pipeline", "random_resized_crop(224)")
        more_env = {"heavy": {"BENCH_HEAVY": HEAVY}}
        for _ in range(repeats):
            equal, heavy = bare_rates(box, build, folder, n_batches * 64)
            floors.append(heavy / equal)
            for kind, command in commands.items():
                if kind == "hung":
                    disk.hang("*.jpg", ops="open,read")
                with neighbour(box, command, dict(it.environment(), BENCH_JOB=kind, **more_env.get(kind, {}))):
                    if kind == "hung":
                        within(30, lambda: disk.n_hanging() > 0, "a read hangs")
                    before = worker_ns(it, dlctl)
                    rates[kind].append(it.consume("throughput", n_batches)["images_per_s"])
                    took, took_heavy = (b - a for a, b in zip(before, worker_ns(it, dlctl)))
                    if kind == "heavy":
                        shares.append(1 - took_heavy / took)
                    if kind == "hung":
                        first.append(it.consume("first")["ms"])
                        status += [status_ms(it, dlctl) for _ in range(50 // repeats)]
                    if disk:
                        disk.clear()
    equal = statistics.median(rates["equal"])
    emit("fair_equal", equal, "images/s", repeats=repeats)
    heavy, floor = statistics.median(rates["heavy"]) / equal, statistics.median(floors)
    emit("fair_heavy", heavy, "ratio")
    emit("fair_heavy_share", statistics.median(shares), "ratio")
    emit("fair_heavy_floor", floor, "ratio")
    emit("fair_heavy_vs_floor", heavy / floor, "ratio")
    if disk:
        emit("fair_hung", statistics.median(rates["hung"]) / equal, "ratio")
        emit("fair_first_hung", statistics.median(first), "ms")
        emit("fair_status_hung", max(status), "ms", n=len(status))


HOSTILE_UID, N_HOSTILE = 61004, 3


@contextlib.contextmanager
def another_user(box, kind, it):
    """Its processes, ended with the block."""
    n = 0 if kind == "alone" else N_HOSTILE
    command = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "hostile_user.py"), kind,
               str(HOSTILE_UID), it.socket, "photos"]
    processes = [box.start(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(n)]
    time.sleep(SETTLE_S)
    try:
        yield
        if any(process.poll() is not None for process in processes):
            raise RuntimeError(f"a process that was to {kind} has ended")
    finally:
        for process in processes:
            end(process)


def measure_hostile(box, daemon, emit, repeats, n_batches):
    if os.getuid() != 0:
        print("# fair_hostile: only root can be several users", file=sys.stderr)
        return
    rates, first = {"alone": [], "spin": [], "flood": []}, {"alone": [], "spin": [], "flood": []}
    with daemon(2, more='socket_mode = "0666"\n') as it:
        os.chmod(it.folder, 0o711)
        for _ in range(repeats):
            for kind in rates:
                with another_user(box, kind, it):
                    rates[kind].append(it.consume("throughput", n_batches)["images_per_s"])
                    first[kind] += [it.consume("first")["ms"] for _ in range(5)]
    emit("fair_hostile", statistics.median(rates["flood"]) / statistics.median(rates["spin"]), "ratio", repeats=repeats)
    emit("fair_hostile_alone", statistics.median(rates["flood"]) / statistics.median(rates["alone"]), "ratio")
    emit("fair_hostile_first", statistics.median(first["flood"]), "ms", n=len(first["flood"]))
    emit("fair_hostile_first_floor", statistics.median(first["spin"]), "ms", n=len(first["spin"]))


def run(daemon, emit, build, folder, repeats, n_batches):
    """Everything that was started or mounted is gone when this returns."""
    box = Box()
    try:
        measure(box, daemon, emit, build, folder, repeats, n_batches)
        measure_hostile(box, daemon, emit, repeats, n_batches)
    finally:
        box.close()
