"""The way of a finished batch of 64x224x224x3 bytes from whoever made it to the trainer, and nothing else.

torch: a worker returns an array that lies ready; DataLoader brings it over. spdl: a process yields it through SPDL's pool of
shared segments. dlclient: ready_batches copies it into the ring's slots. The consumer looks at every byte of each."""
import numpy

from common import BATCH, PREFETCH, SIZE

SHAPE = (BATCH, SIZE, SIZE, 3)


class Ready:
    """The array of a batch, again and again; in a process of its own, where its memory is its own."""

    def __init__(self):
        self.array = None

    def __len__(self):
        return 1 << 40

    def __getitem__(self, _):
        if self.array is None:
            self.array = numpy.random.default_rng(1).integers(0, 256, SHAPE, numpy.uint8)
        return self.array

    def __iter__(self):
        while True:
            yield self[0]


def torch_batches(task):
    import torch

    def forever():
        while True:
            yield 0

    return iter(torch.utils.data.DataLoader(Ready(), batch_size=None, sampler=forever(), num_workers=task.workers,
                                            prefetch_factor=PREFETCH, persistent_workers=True))


def spdl_batches(_):
    from spdl.pipeline import SharedMemorySegmentPool, iterate_in_subprocess
    pool = SharedMemorySegmentPool(numpy.prod(SHAPE).item() + (1 << 16), PREFETCH + 2)
    yield from iterate_in_subprocess(Ready, buffer_size=PREFETCH, arena=pool)


def dlclient_batches(task):
    import dlclient
    loader = dlclient.Loader("photos", batch_size=BATCH, pipeline="decode", seed=task.seed, epochs=None, drop_last=True,
                             shuffle=False)
    for batch in loader:
        yield batch["image"]

WAYS = {"transport_torch": torch_batches, "transport_spdl": spdl_batches, "transport_dlclient": dlclient_batches}


def batches(name, task):
    return WAYS[name](task)
