"""torchrun --nproc_per_node 2 validation_before.py FOLDER"""
import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import datasets, transforms

from model import Net

torch.manual_seed(1)
dist.init_process_group("gloo")
photos = datasets.ImageFolder(sys.argv[1], transforms.Compose([
    transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()]))
loader = DataLoader(photos, batch_size=16, sampler=DistributedSampler(photos, shuffle=False), num_workers=2)
model = Net(len(photos.classes)).eval()

counts = torch.zeros(2, dtype=torch.int64)      # right ones, all
with torch.no_grad():
    for images, labels in loader:
        counts += torch.tensor([(model(images).argmax(1) == labels).sum(), len(labels)])
dist.all_reduce(counts)
if dist.get_rank() == 0:
    print(f"accuracy {counts[0] / counts[1]:.6f} of {counts[1]} samples, of which there are {len(photos)}")
dist.destroy_process_group()
