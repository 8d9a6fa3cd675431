"""A trainer that does nothing but load: trainer.py PEER FOLDER WORKERS SEED RANK WORLD MODE. Lines of JSON on stdout.

    "imported"              every module is there; a line on stdin, and it makes its loader
    {"first_ms"}            from making the loader to the first batch, looked at
    "warm"                  WARM batches later: every queue has found its level; it goes on taking batches
    "enough"                ENOUGH batches later: there is something to count even where a window was too short
    {"begins", "ends"}      once stdin ends: of each next(), seconds of CLOCK_MONOTONIC

MODE pixels: {"pictures": FILE}: instead, one batch saved as an array [n, height, width, 3].
MODE prepare: what the peer has to write to disk before it can begin, is written.
"""
import importlib
import json
import os
import sys
import tempfile
import threading
import time

MODULES = {"torch": "peer_torch", "opencv": "peer_torch", "dali": "peer_dali", "spdl": "peer_spdl", "tfdata": "peer_tfdata",
           "ffcv": "peer_ffcv", "dlclient": "peer_dlclient", "transport": "peer_transport"}
WARM, ENOUGH = 16, 8


def say(value):
    print(json.dumps(value), flush=True)


def consume(name, peer, task, look):
    begin = time.monotonic()
    batches = peer.batches(name, task)
    look(next(batches))
    say({"first_ms": (time.monotonic() - begin) * 1000})
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    begins, ends = [], []
    while not ended.is_set():
        begins.append(time.monotonic())
        batch = next(batches)
        ends.append(time.monotonic())
        look(batch)
        if len(ends) == WARM:
            say("warm")
        if len(ends) == WARM + ENOUGH:
            say("enough")
    say({"begins": begins, "ends": ends})
    if hasattr(batches, "close"):
        batches.close()  # shared memory with a name would outlive us


def save_pixels(name, peer, task):
    import numpy
    pictures = numpy.asarray(next(peer.batches(name, task)))
    if pictures.shape[1] == 3:
        pictures = pictures.transpose(0, 2, 3, 1)
    handle, path = tempfile.mkstemp(suffix=".npy", dir=os.environ.get("PEER_FOLDER"))
    os.close(handle)
    numpy.save(path, pictures)
    say({"pictures": path})


def main():
    name, folder, workers, seed, rank, world, mode = sys.argv[1:]
    if not name.startswith("tfdata") and not os.environ.get("PEER_BARE"):
        import torch  # the trainer's, whoever loads; TensorFlow's trainers have no torch
        torch.set_num_threads(1)
    peer = importlib.import_module(MODULES[name.split("_")[0]])
    if hasattr(peer, "load"):
        peer.load(name)
    from common import Task, look, look_at_all
    task = Task(folder, int(workers), int(seed), int(rank), int(world), whole=mode == "pixels")
    if mode == "prepare":
        peer.prepare(task)
        return
    say("imported")
    sys.stdin.readline()
    if mode == "pixels":
        save_pixels(name, peer, task)
    else:
        consume(name, peer, task, look_at_all if name.startswith("transport") else look)
    sys.stdout.flush()
    os._exit(0)  # some loaders have threads that would be waited for


if __name__ == "__main__":
    main()
