"""simclr_before.py FOLDER: two views of each picture are drawn, and those of one picture are to be alike"""
import sys

import torch
from torch.nn.functional import cross_entropy, normalize
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from model import Net

torch.manual_seed(1)
view = transforms.Compose([
    transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(0.5), transforms.ToTensor()])
photos = datasets.ImageFolder(sys.argv[1], lambda picture: (view(picture), view(picture)))
loader = DataLoader(photos, batch_size=32, shuffle=True, num_workers=2)
model = Net(64)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)

for (one, other), _ in loader:
    alike = normalize(model(one)) @ normalize(model(other)).T / 0.5
    loss = cross_entropy(alike, torch.arange(len(alike)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"loss {loss.item():.6f}")
