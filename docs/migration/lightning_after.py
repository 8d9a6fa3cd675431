"""lightning_after.py FOLDER"""
import sys

import dlclient
import lightning
import torch
from torch.nn.functional import cross_entropy

from model import Net


class Module(lightning.LightningModule):
    def setup(self, stage):                     # Lightning has started its processes by now
        self.loader = dlclient.Loader(sys.argv[1], batch_size=32, rank=self.global_rank,
                                      world_size=self.trainer.world_size,
                                      pipeline="random_resized_crop(224) hflip(0.5) to(float32) layout(nchw)")
        self.net = Net(len(self.loader.dataset.classes))

    def train_dataloader(self):
        return self.loader

    def training_step(self, batch, _):          # a dict of tensors on the module's device
        loss = cross_entropy(self.net(batch["image"]), batch["label"])
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.003)


trainer = lightning.Trainer(max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(Module())
print(f"loss {trainer.callback_metrics['loss'].item():.6f}")
