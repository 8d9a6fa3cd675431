"""Crops of 3 s out of FLAC files of 10 s at 16 kHz, in the page cache, batches of 64, float32.

    sound_crops        crops/s that one rank gets with 2 workers: audio(rate=16000, seconds=3)
    sound_soundfile    crops/s of torch's DataLoader with soundfile, which seeks and reads 3 s, at its best number of workers
    sound_vs_soundfile the daemon over that, in turns
"""
import json
import os
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
WORKERS = (1, 2, 3)
FILES = 1000


def soundfile(python, *arguments):
    run = subprocess.run([python, os.path.join(HERE, "sound_loader.py"), *map(str, arguments)], stdout=subprocess.PIPE,
                         check=False, text=True, timeout=600)
    if run.returncode not in (0, 77):
        raise RuntimeError(f"sound_loader.py ended with {run.returncode}")
    return run


def make(python, out):
    """The files, written once. Returns false where soundfile or torch is missing."""
    if os.path.exists(os.path.join(out, "made")):
        return True
    shutil.rmtree(out, ignore_errors=True)
    if soundfile(python, "make", out, FILES).returncode == 77:
        return False
    with open(os.path.join(out, "made"), "w", encoding="utf-8"):
        pass
    return True


def run(daemon, emit, python, build, out, repeats, n_batches):
    if not make(python, out):
        print("sound: left out; it needs python3-soundfile and python3-torch", file=sys.stderr)
        return

    def theirs(workers):
        return json.loads(soundfile(python, "rate", out, workers, n_batches).stdout)

    def ours(it):
        done = subprocess.run([os.path.join(build, "bench", "rows"), "serve", str(2 * n_batches), "64",
                               "audio: audio(rate=16000, seconds=3)"], check=True, stdout=subprocess.PIPE, text=True,
                              timeout=300, env=it.environment())
        return json.loads(done.stdout)["rows_per_s"]

    crops, peers = [], []
    best = max(WORKERS, key=lambda n: theirs(n)["crops_per_s"])
    with daemon(2, more=f'dataset "tokens" {{ path = "{out}/metadata.jsonl" format = "jsonl" }}\n') as it:
        for _ in range(repeats):
            crops.append(ours(it))
            peers.append(theirs(best))
    emit("sound_crops", statistics.median(crops), "crops/s", repeats=repeats)
    emit("sound_soundfile", statistics.median(peer["crops_per_s"] for peer in peers), "crops/s", workers=best,
         versions=peers[0]["versions"])
    emit("sound_vs_soundfile", statistics.median(a / b["crops_per_s"] for a, b in zip(crops, peers)), "ratio")
