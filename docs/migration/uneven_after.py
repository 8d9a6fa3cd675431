"""torchrun --nproc_per_node 2 uneven_after.py FOLDER"""
import sys

import dlclient
import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from model import Net

torch.manual_seed(1)
dist.init_process_group("gloo")
loader = dlclient.Loader(sys.argv[1], batch_size=8, pipeline="resize(256) center_crop(224) to(float32) layout(nchw)",
                         partition="exact", framework="torch", as_tuple=True)
model = DistributedDataParallel(Net(len(loader.dataset.classes)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

n_batches = n_samples = 0
with Join([model]):                             # around each epoch: a rank that has ended answers for the others
    for images, labels in loader:
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        n_batches, n_samples = n_batches + 1, n_samples + len(labels)
print(f"rank {dist.get_rank()} had {n_samples} samples in {n_batches} batches\n", end="", flush=True)
dist.destroy_process_group()
