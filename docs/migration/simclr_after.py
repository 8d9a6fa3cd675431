"""simclr_after.py FOLDER"""
import sys

import dlclient
import torch
from torch.nn.functional import cross_entropy, normalize

from model import Net

torch.manual_seed(1)
loader = dlclient.Loader(sys.argv[1], batch_size=32, views=2, framework="torch", as_tuple=True,
                         pipeline="random_resized_crop(224) hflip(0.5) to(float32) layout(nchw)")
model = Net(64)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)

for (one, other), _ in loader:
    alike = normalize(model(one)) @ normalize(model(other)).T / 0.5
    loss = cross_entropy(alike, torch.arange(len(alike)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"loss {loss.item():.6f}")
