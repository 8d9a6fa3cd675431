"""torch_before.py FOLDER"""
import sys

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from model import Net

torch.manual_seed(1)
photos = datasets.ImageFolder(sys.argv[1], transforms.Compose([
    transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(0.5), transforms.ToTensor()]))
loader = DataLoader(photos, batch_size=32, shuffle=True, num_workers=2, persistent_workers=True,
                    pin_memory=torch.cuda.is_available())
model = Net(len(photos.classes))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)

for epoch in range(2):
    for images, labels in loader:
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.6f}")
