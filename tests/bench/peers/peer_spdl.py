"""SPDL: threads in the trainer's process, each photograph through a function of decoders.py, put together at the end."""
import torch
from spdl.pipeline import PipelineBuilder

import decoders
from common import BATCH, PREFETCH

DECODERS = {"spdl": decoders.tuned, "spdl_opencv": decoders.linear}


def load(name):
    decoders.load(DECODERS[name])


def batches(name, task):
    cut = DECODERS[name](task)
    pipeline = (PipelineBuilder()
                .add_source(task.paths[index] for index in task.order())
                .pipe(cut, concurrency=task.workers)
                .aggregate(BATCH, drop_last=True)
                .pipe(torch.stack)
                .add_sink(PREFETCH)
                .build(num_threads=task.workers))
    with pipeline.auto_stop():
        yield from pipeline.get_iterator()
