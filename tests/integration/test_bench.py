#!/usr/bin/env python3
"""dlctl bench: its figures fit together, its verdicts follow from them, and it leaves nothing behind. Times are not asserted."""
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import DLCTL, case, contains, equal, main, within

PIPELINE = "resize(64:64) to(float32)"


def measured(daemon, *arguments):
    done = daemon.dlctl("--format", "json", "bench", *arguments)
    equal(done.returncode, 0, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


@case("the figures of a measurement fit together, as JSON and for people")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 40)}, workers=2)
    row, = measured(daemon, "d", "--pipeline", "Resize([64, 64]) to(fp32)", "--batch", "8", "--seconds", "0.5")
    equal((row["dataset"], row["pipeline"], row["batch_size"], row["n_workers"], row["n_skipped"], row["n_other_jobs"]),
          ("d", "resize(64:64, interpolation=bilinear) to(float32)", 8, 2, 0, 0), "what was measured")
    equal((row["n_batches"] > 0, row["n_samples"], row["seconds"] >= 0.5), (True, 8 * row["n_batches"], True), row)
    rate = row["n_samples"] / row["seconds"]
    for key, expected in (("samples_per_second", rate), ("delivered_bytes_per_second", rate * (64 * 64 * 3 * 4 + 8)),
                          ("stored_bytes_per_second", rate * daemon.objects("datasets")[0]["n_bytes"] / 40)):
        equal(abs(row[key] / expected - 1) < 1e-4, True, f"{key}: {row[key]}, not {expected}")
    equal(0 < row["next_p50_seconds"] <= row["next_p99_seconds"] <= row["seconds"], True, row)
    equal((0 < row["worker_busy_share"] <= 1, row["first_batch_seconds"] > 0, row["samples_per_cpu_second"] > 0),
          (True, True, True), row)
    equal(row["limit"] in ("decoding", "step", "trainer", "reading", "latency"), True, row)
    equal(0 <= row["other_jobs_share"] < 0.05, True, row)
    done = daemon.dlctl("bench", "d", "--pipeline", PIPELINE, "--seconds", "0.3", "--gpus", "2", "--rate", "0.5")
    contains(done.stdout, "d: resize(64:64, interpolation=bilinear) to(float32)", "batches of 64, 2 workers", " samples/s\n",
             "per CPU", "MB/s", "first batch", "p50", "p99", "limit", "2 GPUs at 0.5 samples/s need 1 samples/s: this node")
    contains(daemon.dlctl("bench", "d", "--seconds", "0.1", "--rate", "1e11").stdout, "1 GPU at 100,000,000,000", "0 % of that")
    contains(daemon.dlctl("bench", "d", "--seconds", "0.1").stdout, "enough for", "8 that take")
    equal(done.stderr, "", "nothing but the result")
    equal(daemon.objects("jobs"), [], "no job is left")


@case("damaged samples are counted and left out, and jobs beside it are told")
def _(box):
    folder = box.folder_of_pictures("d", 12)
    name = sorted(os.listdir(os.path.join(folder, sorted(os.listdir(folder))[0])))[0]
    with open(os.path.join(folder, sorted(os.listdir(folder))[0], name), "wb") as file:
        file.write(b"not a picture")
    daemon = box.daemon({"d": folder})
    other = daemon.reader("d", batch=1, delay_ms=60000)
    within(20, lambda: daemon.objects("jobs"), "the other job")
    row, = measured(daemon, "d", "--pipeline", PIPELINE, "--batch", "4", "--seconds", "0.3")
    other.process.kill()
    other.finish()
    equal((row["n_skipped"] > 0, row["n_other_jobs"]), (True, 1), row)
    contains(row["text"], "1 other job shared the daemon")


@case("each number of workers is measured, and the daemon has its own again")
def _(box):
    for asked in (0, 2):
        daemon = box.daemon({"d": box.folder_of_pictures(f"d{asked}", 10)}, workers=asked)
        before = daemon.objects("workers")[0]
        rows = measured(daemon, "d", "--pipeline", PIPELINE, "--seconds", "0.1", "--batch", "2", "--workers", "3,1")
        equal([row["n_workers"] for row in rows], [3, 1], "numbers of workers")
        after = daemon.objects("workers")[0]
        equal((after["n_workers"], after["text"].replace(", asked for at run time", "")), (before["n_workers"], before["text"]),
              "as before")


@case("beside a job that keeps the workers busy the limit is what dlctl diagnose says, with what each takes")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 40, width=160, height=120)}, workers=1)
    heavy = "resize(500:700) color_jitter(0.4,0.4,0.4,0.1) gaussian_blur(23) color_jitter(0.4,0.4,0.4,0.1)"
    other = daemon.reader("d", job="other", batch=4, epochs=100000, pipeline=heavy)
    other.wait_lines(8)
    row, = measured(daemon, "d", "--pipeline", heavy, "--batch", "4", "--seconds", "3")
    equal((row["limit"] in ("decoding", "step"), row["n_other_jobs"]), (True, 1), row)
    equal((row["other_jobs_share"] > 0.2, row["worker_busy_share"] > 0.2), (True, True), row)
    equal(0.85 <= row["worker_busy_share"] + row["other_jobs_share"] < 1.2, True, row)
    contains(row["text"], f"other jobs take {row['other_jobs_share'] * 100:.0f} % of the workers' time",
             f"this one takes {row['worker_busy_share'] * 100:.0f} %")
    said = daemon.dlctl("bench", "d", "--pipeline", heavy, "--batch", "4", "--seconds", "1").stdout
    contains(said, "; other jobs take")


@case("SIGINT prints what there is, ends with 130 and leaves no job")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 10)}, workers=2)
    process = subprocess.Popen([DLCTL, "--socket", daemon.socket, "--format", "json", "bench", "d", "--pipeline", PIPELINE,
                                "--seconds", "600", "--batch", "2", "--workers", "1"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, universal_newlines=True)
    try:
        within(60, lambda: any(rank["n_batches"] > 0 for job in daemon.objects("jobs") for rank in job["ranks"]), "batches")
        equal(daemon.objects("workers")[0]["n_workers"], 1, "workers while it runs")
        time.sleep(1.5)  # most likely past the warming up
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    said = [line for line in errors.splitlines() if not line.startswith("dlctl: waiting:")]  # for the index, if that is slow
    equal((process.returncode, said), (130, []), output)
    for line in output.splitlines():
        equal(0 < json.loads(line)["seconds"] < 600, True, line)
    equal((daemon.objects("jobs"), daemon.objects("workers")[0]["n_workers"]), ([], 2), "what is left")


@case("what it cannot measure is refused")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 3)})
    for arguments, code, said in ((["nothing"], 1, 'there is no "nothing"'), (["d", "--seconds", "0"], 2, "above 0"),
                                  (["d", "--seconds", "nan"], 2, "above 0"), (["d", "--gpus", "8"], 2, "--gpus needs --rate"),
                                  (["d", "--gpus", "8", "--rate", "-1"], 2, "--gpus needs --rate"), (["d", "--batch", "0"], 1, "batch"),
                                  (["d", "--workers", "1,,2"], 2, "write numbers"), (["d", "--workers", "0"], 2, "write numbers"),
                                  (["d", "--workers", "1000000"], 1, "workers"), (["d", "--pipeline", "resiez(3)"], 1, '"resize"'),
                                  ([], 2, "DATASET is missing")):
        done = daemon.dlctl("bench", *arguments)
        equal((done.returncode, done.stdout), (code, ""), f"{arguments}: {done.stderr}")
        contains(done.stderr, said)
    equal(daemon.dlctl("--socket", box.path("nobody"), "bench", "d").returncode in (2, 3), True, "no daemon")


main()
