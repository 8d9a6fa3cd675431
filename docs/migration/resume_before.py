"""resume_before.py FOLDER CHECKPOINT: run it again after it was ended, and it goes on where it was"""
import os
import sys

import torch
from torch.nn.functional import cross_entropy
from torchdata.stateful_dataloader import StatefulDataLoader
from torchvision import datasets, transforms

from model import Net

torch.manual_seed(1)
photos = datasets.ImageFolder(sys.argv[1], transforms.Compose([
    transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()]))
loader = StatefulDataLoader(photos, batch_size=16, shuffle=True, num_workers=2)
model = Net(len(photos.classes))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
first_epoch = 0
if os.path.exists(sys.argv[2]):
    checkpoint = torch.load(sys.argv[2])
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    loader.load_state_dict(checkpoint["loader"])
    first_epoch = checkpoint["epoch"]

for epoch in range(first_epoch, 2):
    for images, labels in loader:
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict(),
                    "epoch": epoch}, sys.argv[2] + ".new")
        os.replace(sys.argv[2] + ".new", sys.argv[2])
        print(f"epoch {epoch} labels {labels.tolist()}", flush=True)
