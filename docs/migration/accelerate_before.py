"""accelerate launch accelerate_before.py FOLDER"""
import sys

import torch
from accelerate import Accelerator
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from model import Net

torch.manual_seed(1)
accelerator = Accelerator()
photos = datasets.ImageFolder(sys.argv[1], transforms.Compose([
    transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(0.5), transforms.ToTensor()]))
loader = DataLoader(photos, batch_size=16, shuffle=True, num_workers=2)
model = Net(len(photos.classes))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

for epoch in range(2):
    for images, labels in loader:
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
    accelerator.print(f"epoch {epoch} loss {loss.item():.6f}")
accelerator.end_training()
