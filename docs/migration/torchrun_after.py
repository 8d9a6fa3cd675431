"""torchrun --nproc_per_node 2 torchrun_after.py FOLDER"""
import sys

import dlclient
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from model import Net

torch.manual_seed(1)
dist.init_process_group("gloo")
loader = dlclient.Loader(sys.argv[1], batch_size=16, pipeline="resize(256) center_crop(224) to(float32) layout(nchw)",
                         seed=3, framework="torch", as_tuple=True)
model = DistributedDataParallel(Net(len(loader.dataset.classes)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)

for epoch in range(3):
    loader.set_epoch(epoch)
    for images, labels in loader:
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"rank {dist.get_rank()} epoch {epoch} loss {loss.item():.9f}\n", end="", flush=True)
dist.destroy_process_group()
