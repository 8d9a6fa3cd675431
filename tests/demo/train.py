import time

import dlclient
import torch

loader = dlclient.Loader("photos/train", batch_size=64, framework="torch", as_tuple=True,
                         pipeline="random_resized_crop(224) hflip(0.5) to(float32) layout(nchw)")
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 7, stride=4), torch.nn.BatchNorm2d(16), torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(16, len(loader.dataset.classes)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

for epoch in range(4):
    begin = time.monotonic()
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    rate = len(loader.dataset) / (time.monotonic() - begin)
    print(f"epoch {epoch}  loss {loss.item():.3f}  {rate:.0f} images/s")
print(loader.stats().advice)
