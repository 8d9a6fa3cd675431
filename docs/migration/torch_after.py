"""torch_after.py"""
import dlclient
import torch
from torch.nn.functional import cross_entropy

from model import Net

torch.manual_seed(1)
loader = dlclient.Loader("photos", batch_size=32, pipeline="random_resized_crop(224) hflip(0.5)", framework="torch")
model = Net(len(loader.dataset.classes))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)

for epoch in range(2):
    for batch in loader:
        images = batch["image"].permute(0, 3, 1, 2).float() / 255       # ToTensor()
        loss = cross_entropy(model(images), batch["label"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.6f}")
