"""accelerate launch accelerate_after.py FOLDER"""
import sys

import dlclient
import torch
from accelerate import Accelerator
from torch.nn.functional import cross_entropy

from model import Net

torch.manual_seed(1)
accelerator = Accelerator()
loader = dlclient.Loader(sys.argv[1], batch_size=16,
                         pipeline="random_resized_crop(224) hflip(0.5) to(float32) layout(nchw)")
model = Net(len(loader.dataset.classes))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
model, optimizer = accelerator.prepare(model, optimizer)
accelerator.register_for_checkpointing(loader)          # save_state() and load_state() take its place in the epoch along

for epoch in range(2):
    loader.set_epoch(epoch)
    for batch in loader:
        batch = batch.to(accelerator.device)            # a dict of tensors
        loss = cross_entropy(model(batch["image"]), batch["label"])
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
    accelerator.print(f"epoch {epoch} loss {loss.item():.6f}")
accelerator.end_training()
