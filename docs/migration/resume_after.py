"""resume_after.py FOLDER CHECKPOINT: run it again after it was ended, and it goes on where it was"""
import os
import sys

import dlclient
import torch
from torch.nn.functional import cross_entropy

from model import Net

torch.manual_seed(1)
loader = dlclient.Loader(sys.argv[1], batch_size=16, pipeline="resize(256) center_crop(224) to(float32) layout(nchw)",
                         framework="torch")
model = Net(len(loader.dataset.classes))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
if os.path.exists(sys.argv[2]):
    checkpoint = torch.load(sys.argv[2])
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    loader.load_state_dict(checkpoint["loader"])        # also at another world size or batch size

for epoch in range(loader.epoch, 2):
    loader.set_epoch(epoch)                             # the epoch of the checkpoint goes on in its middle
    for batch in loader:
        loss = cross_entropy(model(batch["image"]), batch["label"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()},
                   sys.argv[2] + ".new")
        os.replace(sys.argv[2] + ".new", sys.argv[2])
        print(f"epoch {epoch} samples {batch.indices.tolist()}", flush=True)
