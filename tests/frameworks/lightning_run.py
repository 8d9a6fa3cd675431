"""lightning_run.py TERMS: trains with Lightning and writes which samples every batch held. TERMS is JSON:

    out           file for a line a batch, "epoch index index ..."; the rank is appended to its name
    checkpoints   folder; every: steps between them, or epochs: one at each epoch's end
    resume        checkpoint to go on from, or null
    stop_after    batches after which the program dies, or null
    devices       processes
"""
import json
import os
import sys

import dlclient
import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

terms = json.loads(sys.argv[1])


class Module(lightning.LightningModule):
    def setup(self, stage):
        self.loader = dlclient.Loader("files", batch_size=4, pipeline="decode", seed=9, rank=self.global_rank,
                                      world_size=self.trainer.world_size)
        self.valid = dlclient.Loader("files", batch_size=4, pipeline="decode", shuffle=False, partition="exact",
                                     rank=self.global_rank, world_size=self.trainer.world_size)
        self.net = torch.nn.LazyLinear(2)
        self.net(torch.zeros(1, 7 * 9 * 3))
        self.n_batches = 0
        self.out = open(f"{terms['out']}.{self.global_rank}", "a", encoding="utf-8")

    def train_dataloader(self):
        return self.loader

    def val_dataloader(self):
        return self.valid

    def on_before_batch_transfer(self, batch, _):  # the batch itself; the steps see what its to() makes
        if self.trainer.training:
            self.out.write(" ".join(map(str, [batch.epoch] + batch.indices.tolist())) + "\n")
            self.out.flush()
        return batch

    def loss(self, batch):
        return torch.nn.functional.cross_entropy(self.net(batch["image"].flatten(1).float() / 255), batch["label"])

    def training_step(self, batch, _):
        self.n_batches += 1
        if self.n_batches == terms["stop_after"]:
            os._exit(3)
        return self.loss(batch)

    def validation_step(self, batch, _):
        self.log("valid", self.loss(batch), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


keep = {"every_n_train_steps": terms["every"]} if terms["every"] else {"every_n_epochs": 1}
trainer = lightning.Trainer(
    max_epochs=3, logger=False, enable_progress_bar=False, enable_model_summary=False, accelerator="cpu",
    devices=terms["devices"], strategy="ddp" if terms["devices"] > 1 else "auto", num_sanity_val_steps=2,
    callbacks=[ModelCheckpoint(terms["checkpoints"], filename="{step}", save_top_k=-1, **keep)])
trainer.fit(Module(), ckpt_path=terms["resume"])
