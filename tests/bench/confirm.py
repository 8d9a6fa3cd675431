"""How well `dlctl diagnose` predicts: causes are made, each job is served its batches again (--confirm), and the rate that was
seen then is divided by the one that was predicted.

    confirm_trainer    nothing is slow but the training step
    confirm_workers    one worker for a trainer that takes more than it gives
    confirm_step       the same because of a heavy step of the pipeline
    confirm_disk       reads take 100 ms (only where a file system may be mounted)
    confirm_ranks      four ranks that wait for each other after each step, and for one worker
    confirm_named      of all trials, and of those of one slow rank beside another (which is served as it takes, so there is
                       nothing to confirm): how many were given the right cause, in percent
    confirm_furthest   of all trials: how far the rate was from the prediction, in percent

A trainer sleeps for its step, as one does whose GPU computes."""
import json
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from harness import Box, Skip  # noqa: E402
from training import training  # noqa: E402

HEAVY = "random_resized_crop(224) hflip(0.5) color_jitter(0.4,0.4,0.4,0.1)"
# cause: workers of the daemon, ms of each rank's step for a batch of 64, pipeline, limit that must be named
SLOW_RANK = (2, [40, 80], None, "rank")
CAUSES = {
    "trainer": (2, [60], None, "trainer"),
    "workers": (1, [16], None, "decoding"),
    "step": (1, [50], HEAVY, "step"),
    "disk": (2, [20], None, "reading"),
    "ranks": (1, [60] * 4, None, "decoding"),
}


def ask(build, it, *more):
    run = subprocess.run([os.path.join(build, "dlctl"), "--socket", it.socket, "--format", "json", "diagnose", "made", "--seconds",
                          "6", *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=240, check=False)
    if run.returncode != 0:
        raise RuntimeError(run.stderr)
    return json.loads(run.stdout)


def trial(daemon, build, terms, *more, path=None):
    """What is said of a job; "right": it is the cause that was made."""
    workers, steps, pipeline, limit = terms
    with daemon(workers, path=path) as it:
        with training(it, build, steps, pipeline, job="made", in_step=terms != SLOW_RANK):
            found = ask(build, it, *more)
    print(f"# {found['verdict']}", flush=True)
    return dict(found, right=found["limit"] == limit)


def slow_disk(box, photos):
    from failing_fs import FailingFs  # pylint: disable=import-outside-toplevel
    disk = FailingFs(box, photos)
    disk.delay("*", 100, ops="read")
    return disk


def run(daemon, emit, build, photos, repeats):
    rows, named = {cause: [] for cause in CAUSES}, []
    box = Box()
    try:
        disk = slow_disk(box, photos)
    except Skip as reason:
        print(f"# confirm_disk is skipped: {reason}", flush=True)
        disk, rows = None, {cause: found for cause, found in rows.items() if cause != "disk"}
    try:
        for _ in range(repeats):
            for cause, found in rows.items():
                found.append(trial(daemon, build, CAUSES[cause], "--confirm", path=disk.path if cause == "disk" else None))
            named.append(trial(daemon, build, SLOW_RANK))
    finally:
        if disk:
            disk.clear()
        box.close()
    for cause, found in rows.items():
        ratios = [row["again_to_predicted"] for row in found]
        emit(f"confirm_{cause}", statistics.median(ratios), "ratio", repeats=repeats, lowest=min(ratios), highest=max(ratios),
             wait_share=statistics.median(row["wait_share"] for row in found))
    confirmed = [row for found in rows.values() for row in found]
    emit("confirm_named", 100 * statistics.mean(row["right"] for row in confirmed + named), "percent",
         n=len(confirmed) + len(named))
    emit("confirm_furthest", 100 * max(abs(row["again_to_predicted"] - 1) for row in confirmed), "percent", n=len(confirmed))
