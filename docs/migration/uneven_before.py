"""torchrun --nproc_per_node 2 uneven_before.py FOLDER"""
import sys

import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from model import Net

torch.manual_seed(1)
dist.init_process_group("gloo")
photos = datasets.ImageFolder(sys.argv[1], transforms.Compose([
    transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()]))
mine = range(dist.get_rank(), len(photos), dist.get_world_size())
loader = DataLoader(photos, batch_size=8, sampler=mine, num_workers=2)
model = DistributedDataParallel(Net(len(photos.classes)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

n_batches = n_samples = 0
with Join([model]):
    for images, labels in loader:
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        n_batches, n_samples = n_batches + 1, n_samples + len(labels)
print(f"rank {dist.get_rank()} had {n_samples} samples in {n_batches} batches\n", end="", flush=True)
dist.destroy_process_group()
