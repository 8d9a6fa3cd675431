"""torchrun --nproc_per_node 2 torchrun_before.py FOLDER"""
import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import datasets, transforms

from model import Net

torch.manual_seed(1)
dist.init_process_group("gloo")
photos = datasets.ImageFolder(sys.argv[1], transforms.Compose([
    transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()]))
sampler = DistributedSampler(photos, seed=3)
loader = DataLoader(photos, batch_size=16, sampler=sampler, num_workers=2, pin_memory=torch.cuda.is_available())
model = DistributedDataParallel(Net(len(photos.classes)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)

for epoch in range(3):
    sampler.set_epoch(epoch)
    for images, labels in loader:
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"rank {dist.get_rank()} epoch {epoch} loss {loss.item():.9f}\n", end="", flush=True)
dist.destroy_process_group()
