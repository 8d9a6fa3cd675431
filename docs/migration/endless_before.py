"""endless_before.py FOLDER"""
import itertools
import sys

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from model import Net

torch.manual_seed(1)
photos = datasets.ImageFolder(sys.argv[1], transforms.Compose([
    transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(0.5), transforms.ToTensor()]))
loader = DataLoader(photos, batch_size=32, shuffle=True, num_workers=2, persistent_workers=True)
model = Net(len(photos.classes))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)


def forever():
    while True:
        yield from loader


stream = forever()
for part in range(4):                           # 10 steps, then whatever is done between them
    for images, labels in itertools.islice(stream, 10):
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"part {part} loss {loss.item():.6f}")
