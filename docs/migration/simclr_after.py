"""simclr_after.py FOLDER"""
import sys

import dlclient
import torch
from torch.nn.functional import cross_entropy, normalize

from model import Net

torch.manual_seed(1)
pipeline = "random_resized_crop(224) hflip(0.5) to(float32) layout(nchw)"
ones, others = [dlclient.Loader(sys.argv[1], batch_size=32, pipeline=pipeline, draws=draws, framework="torch")
                for draws in (0, 1)]            # the same order, other crops
model = Net(64)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)

for one, other in zip(ones, others):
    assert (one.served == other.served).all()
    alike = normalize(model(one["image"])) @ normalize(model(other["image"])).T / 0.5
    loss = cross_entropy(alike, torch.arange(len(alike)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"loss {loss.item():.6f}")
