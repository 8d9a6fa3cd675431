"""What one rank gets from a daemon, beside a bare loop with the same calls: rates, first batch, next(), waking, memory."""
import json
import os
import statistics
import subprocess
import time

from common_bench import BATCH, BUILD, IMAGES, PHOTOS, REPEATS, bare_loop, cut, daemon, emit, median, photos, pss


def daemon_vs_limit():
    """One rank against the bare loop, at one and at two threads, in turns."""
    for workers in (1, 2):
        ours, limit = [], []
        with daemon(workers) as it:
            it.consume("throughput", 10)
            for _ in range(REPEATS):
                limit.append(bare_loop(workers))
                ours.append(it.consume("throughput", IMAGES // BATCH))
        emit(f"decode_limit_{workers}", median(limit, "images_per_s"), "images/s", repeats=REPEATS)
        emit(f"decode_limit_{workers}_cpu", median(limit, "cpu_s_per_1000"), "s/1000")
        emit(f"daemon_{workers}", median(ours, "images_per_s"), "images/s", repeats=REPEATS)
        emit(f"daemon_{workers}_cpu", median(ours, "cpu_s_per_1000"), "s/1000")
        emit(f"daemon_vs_limit_{workers}",
             statistics.median(a["images_per_s"] / b["images_per_s"] for a, b in zip(ours, limit)), "ratio")
        emit(f"daemon_vs_limit_{workers}_cpu",
             statistics.median(b["cpu_s_per_1000"] / a["cpu_s_per_1000"] for a, b in zip(ours, limit)), "ratio")


def vs_libjpeg():
    """The bare loop with our own decoder against the same loop with libjpeg-turbo's crop and skip, in turns."""
    ours, theirs, mixed = [], [], []
    folder = cut(PHOTOS + "-mixed")
    for _ in range(REPEATS):
        ours.append(bare_loop(1))
        theirs.append(bare_loop(1, decoder="libjpeg"))
        mixed.append(bare_loop(1, folder))
    for name, rows in ("libjpeg", theirs), ("mixed", mixed):
        emit(f"decode_limit_{name}", 1000 / median(rows, "cpu_s_per_1000"), "images/CPU-s", repeats=REPEATS)
    emit("decode_limit_cpu_rate", 1000 / median(ours, "cpu_s_per_1000"), "images/CPU-s", repeats=REPEATS)
    emit("own_vs_libjpeg", statistics.median(b["cpu_s_per_1000"] / a["cpu_s_per_1000"] for a, b in zip(ours, theirs)),
         "ratio")
    emit("mixed_vs_baseline", statistics.median(a["cpu_s_per_1000"] / b["cpu_s_per_1000"] for a, b in zip(ours, mixed)),
         "ratio")


def left():
    """Steps that a device does: a worker's rate with them, and what is left of its time without."""
    pipeline = "random_resized_crop(224) hflip(0.5) color_jitter(0.4, 0.4, 0.4, 0.1) to(float16) layout(nchw)"
    rows = {"nothing": [], "forms": [], "operations": []}
    with daemon(1) as it:
        it.consume("throughput", 10)
        for _ in range(REPEATS):
            for leave, found in rows.items():
                more = {} if leave == "nothing" else {"BENCH_LEAVE": leave}
                found.append(it.consume("throughput", IMAGES // BATCH // 2, environment={"BENCH_PIPELINE": pipeline, **more}))
    for leave, found in rows.items():
        emit(f"left_{leave}", 1000 / median(found, "cpu_s_per_1000"), "images/CPU-s", repeats=REPEATS)
    for leave in ("forms", "operations"):
        emit(f"left_{leave}_vs_nothing", statistics.median(
            a["cpu_s_per_1000"] / b["cpu_s_per_1000"] for a, b in zip(rows["nothing"], rows[leave])), "ratio")


def first_batch():
    with daemon(2) as it:
        times = []
        for _ in range(4 * REPEATS):
            times.append(it.consume("first")["ms"])
            time.sleep(0.3)  # the daemon takes the last one's ring down
    emit("first_batch", statistics.median(times), "ms", repeats=len(times))


def next_ready():
    with daemon(2) as it:
        runs = [it.consume("ready") for _ in range(3)]
    emit("next_ready_p50", median(runs, "p50"), "ns", n=runs[0]["n"])
    emit("next_ready_p99", median(runs, "p99"), "ns")


def wake():
    # One worker, so that the client has a CPU of its own. A bare futex runs in turns with it: that is the floor.
    rows = {mode: [] for mode in ("wake", "floor", "wake_busy", "floor_busy")}
    with daemon(1) as it:
        for _ in range(REPEATS):
            for mode, runs in rows.items():
                runs.append(it.consume(mode, 120))
    for mode, runs in rows.items():
        name = mode.replace("floor", "wake_floor")
        emit(name, median(runs, "p50"), "us", n=runs[0]["n"] * len(runs))
    emit("wake_p99", median(rows["wake"], "p99"), "us")


def pss_per_rank():
    with daemon(2) as it:
        held, sums = [], []
        ring = 0
        try:
            for rank in range(2):
                held.append(subprocess.Popen([os.path.join(BUILD, "bench", "consume"), "hold", str(it.process.pid)],
                                             env=it.environment(rank, 2), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
                ring = json.loads(held[-1].stdout.readline())["ring_bytes"]
                sums.append(pss(it.process.pid) + sum(pss(process.pid) for process in held))
        finally:
            for process in held:
                process.stdin.close()
                process.wait(20)
    emit("pss_per_rank", sums[1] - sums[0], "bytes")
    emit("ring_per_rank", ring, "bytes")
    emit("pss_one_rank", sums[0], "bytes")


def resume():
    def measure(mode, environment=None):
        run = subprocess.run([os.path.join(BUILD, "bench", "resume"), mode], check=True, stdout=subprocess.PIPE, text=True,
                             timeout=300, env=environment)
        return json.loads(run.stdout)

    order = measure("order")
    emit("resume_tdperm_1e8", order["tdperm_ms"], "ms")
    emit("resume_torch_1e8", order["torch_ms"], "ms")
    emit("resume_torch_1e8_vs_shuffle", order["torch_vs_shuffle"], "ratio")
    with daemon(2) as it:
        seek = measure("seek", it.environment())
    emit("resume_seek_first_batch", seek["ms"], "ms", n=seek["n"])


def jpeg():
    run = subprocess.run([os.path.join(BUILD, "bench", "jpeg_decode"), photos()], check=True, stdout=subprocess.PIPE, text=True,
                         timeout=300)
    us = json.loads(run.stdout)
    for part in "whole", "box":
        emit(f"jpeg_{part}", us[f"baseline_{part}_us"], "us", n=us["photos"])
        emit(f"jpeg_{part}_vs_libjpeg", us[f"libjpeg_{part}_us"] / us[f"baseline_{part}_us"], "ratio")
