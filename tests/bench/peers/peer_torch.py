"""torch's DataLoader with worker processes, around one of decoders.py."""
import torch

import decoders
from common import BATCH, PREFETCH

DECODERS = {"torch_pil": decoders.pillow, "torch_io": decoders.torch_io, "torch_tuned": decoders.tuned,
            "opencv": decoders.linear}


class Photos(torch.utils.data.Dataset):
    def __init__(self, task, make_decoder):
        self.task, self.make_decoder, self.decoder = task, make_decoder, None

    def __len__(self):
        return len(self.task.paths)

    def __getitem__(self, index):
        if self.decoder is None:  # made in the worker, where it is used
            torch.set_num_threads(1)
            self.decoder = self.make_decoder(self.task)
        return self.decoder(self.task.paths[index])


class Order(torch.utils.data.Sampler):
    def __init__(self, task):
        self.task = task

    def __iter__(self):
        return self.task.order()


def load(name):
    decoders.load(DECODERS[name])


def batches(name, task):
    return iter(torch.utils.data.DataLoader(
        Photos(task, DECODERS[name]), BATCH, sampler=Order(task), num_workers=task.workers, prefetch_factor=PREFETCH,
        persistent_workers=True, drop_last=True))
