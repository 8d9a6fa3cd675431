"""A class that is used like torch's DataLoader and gives the batches of our Loader. What has no counterpart skips the test
that asks for it, with the reason. Other programs' own tests run against it (test_judges.py)."""
import os
import unittest

import numpy
import torch
from torch.utils.data import DistributedSampler, TensorDataset


def columns_of(dataset):
    """The arrays that the daemon would have as files."""
    if isinstance(dataset, TensorDataset):
        return [tensor.numpy() for tensor in dataset.tensors]
    if isinstance(dataset, torch.Tensor):
        return [dataset.numpy()]
    raise unittest.SkipTest(f"the samples of {type(dataset).__name__} are made in Python; the daemon reads files")


class Server:
    """Daemons of a Box, one for each dataset."""

    def __init__(self, box, package):
        self.box, self.package, self.sockets = box, package, {}
        self.datasets = []  # kept, so that no other one gets the id

    def socket_of(self, dataset, columns):
        if id(dataset) not in self.sockets:
            folder = self.box.path(f"arrays{len(self.sockets)}")
            os.mkdir(folder)
            for i, column in enumerate(columns):
                numpy.save(os.path.join(folder, f"field{i}.npy"), column)
            daemon = self.box.daemon({"data": {"path": folder, "format": "npy"}})
            self.sockets[id(dataset)] = daemon.socket
            self.datasets.append(dataset)
        return self.sockets[id(dataset)]


def order_of(shuffle, sampler, generator):
    """Keywords of Loader for the order; see docs/orders.md."""
    if isinstance(sampler, DistributedSampler):
        return {"shuffle": sampler.shuffle, "seed": sampler.seed, "rank": sampler.rank,
                "world_size": sampler.num_replicas, "partition": "drop" if sampler.drop_last else "pad",
                "job": f"job{id(sampler)}"}
    if sampler is not None:
        raise unittest.SkipTest(f"a sampler of the type {type(sampler).__name__}")
    seed = generator.initial_seed() if generator is not None else int(torch.randint(2**31, ()))
    return {"shuffle": bool(shuffle), "seed": seed, "rank": 0, "world_size": 1}


def make(server):
    """The class."""

    class DataLoader:
        def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0,
                     collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None,
                     multiprocessing_context=None, generator=None, *, prefetch_factor=None, persistent_workers=False):
            if batch_size is None or batch_sampler is not None or collate_fn is not None or worker_init_fn is not None:
                raise unittest.SkipTest("batch_size=None, batch_sampler, collate_fn and worker_init_fn have no counterpart")
            columns = columns_of(dataset)
            names = [f"field{i}" for i in range(len(columns))]
            loader = server.package.Loader(
                "data", socket=server.socket_of(dataset, columns), batch_size=batch_size, pipeline="; ".join(names) + ";",
                drop_last=drop_last, framework="torch", copy=True, persistent=persistent_workers,
                **order_of(shuffle, sampler, generator))
            vars(self).update(loader=loader, names=names)

        def __len__(self):
            return len(self.loader)

        def __iter__(self):
            for batch in self.loader:
                fields = [batch[name] for name in self.names]
                yield fields if len(fields) > 1 else fields[0]

        def __getattr__(self, name):
            return getattr(vars(self)["loader"], name)

        def __setattr__(self, name, value):
            setattr(self.loader, name, value)

    return DataLoader
