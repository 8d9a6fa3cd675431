"""dataparallel_after.py"""
import copy

import dlclient
import torch
from torch.nn.functional import cross_entropy

from model import Net

torch.manual_seed(1)
n_gpus = torch.cuda.device_count()
devices = [torch.device("cuda", number) for number in range(n_gpus)] if n_gpus > 1 else [torch.device("cpu")] * 2
loader = dlclient.Loader("photos", batch_size=32 // len(devices), pipeline="random_resized_crop(224) hflip(0.5)",
                         world_size=len(devices), ranks=list(range(len(devices))), drop_last=True, framework="torch")
model = Net(len(loader.dataset.classes)).to(devices[0])
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)

for batches in loader:                          # a batch for each device, from its own ring
    replicas = [model] + [copy.deepcopy(model).to(device) for device in devices[1:]]
    optimizer.zero_grad()
    losses = []
    for replica, device, batch in zip(replicas, devices, batches):
        images = batch["image"].to(device).permute(0, 3, 1, 2).float() / 255
        losses.append(cross_entropy(replica(images), batch["label"].to(device)))
        (losses[-1] / len(devices)).backward()
    for replica in replicas[1:]:
        for parameter, other in zip(model.parameters(), replica.parameters()):
            parameter.grad += other.grad.to(devices[0])
    optimizer.step()
print(f"loss {sum(loss.item() for loss in losses) / len(losses):.6f}")
