"""dataloaderd's client in Python; the daemon is started beside it (trial.py) and found through DATALOADERD_SOCKET."""
import os

import dlclient

from common import BATCH


def batches(name, task):
    pipeline = "random_resized_crop(224) hflip(0.5)"
    if task.whole:
        pipeline = "random_resized_crop(224, scale=1:1, ratio=1.3333333:1.3333333)"
    loader = dlclient.Loader("photos", batch_size=BATCH, pipeline=pipeline, seed=task.seed, epochs=None, drop_last=True,
                             framework="numpy" if os.environ.get("PEER_BARE") else "torch", rank=task.rank,
                             world_size=task.world, job=os.environ.get("PEER_JOB"))
    for batch in loader:
        yield batch["image"]
