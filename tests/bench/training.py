"""A training that goes on while something is measured (consume train)."""
import contextlib
import os
import subprocess
import time


@contextlib.contextmanager
def training(it, build, steps_ms, pipeline=None, batch=64, job="bench", in_step=False):
    """One rank for each number of milliseconds that a step takes; all are under way, and they end with the block."""
    env = dict(it.environment(), BENCH_JOB=job, BENCH_BATCH=str(batch))
    env.update({"BENCH_PIPELINE": pipeline} if pipeline else {}, **({"BENCH_IN_STEP": "1"} if in_step else {}))
    process = subprocess.Popen([os.path.join(build, "bench", "consume"), "train", str(it.process.pid), *map(str, steps_ms)],
                               env=env, stdin=subprocess.DEVNULL)
    try:
        time.sleep(3)
        yield process
        if process.poll() is not None:
            raise RuntimeError("a trainer has ended")
    finally:
        process.kill()
        process.wait()
