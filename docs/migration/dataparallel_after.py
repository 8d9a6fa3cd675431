"""dataparallel_after.py FOLDER"""
import copy
import sys

import dlclient
import torch
from torch.nn.functional import cross_entropy

from model import Net

torch.manual_seed(1)
n_gpus = torch.cuda.device_count()
devices = [torch.device("cuda", number) for number in range(n_gpus)] if n_gpus > 1 else [torch.device("cpu")] * 2
loader = dlclient.Loader(sys.argv[1], batch_size=32 // len(devices), world_size=len(devices), drop_last=True,
                         ranks=list(range(len(devices))), device=devices, framework="torch", as_tuple=True,
                         pipeline="random_resized_crop(224) hflip(0.5) to(float32) layout(nchw)")
model = Net(len(loader.dataset.classes)).to(devices[0])
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)

for batches in loader:                          # a batch for each device, and on it
    replicas = [model] + [copy.deepcopy(model).to(device) for device in devices[1:]]
    optimizer.zero_grad()
    losses = []
    for replica, (images, labels) in zip(replicas, batches):
        losses.append(cross_entropy(replica(images), labels))
        (losses[-1] / len(devices)).backward()
    for replica in replicas[1:]:
        for parameter, other in zip(model.parameters(), replica.parameters()):
            parameter.grad += other.grad.to(devices[0])
    optimizer.step()
print(f"loss {sum(loss.item() for loss in losses) / len(losses):.6f}")
