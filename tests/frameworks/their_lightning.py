"""their_lightning.py OUT N BATCH SEED EPOCHS WORLD: Lightning's Trainer over torch's DataLoader, in WORLD processes. Writes the
samples of each batch to OUT.RANK, "epoch index index ..." a line."""
import sys

import lightning
import torch

out, n, batch, seed, epochs, world = sys.argv[1], *map(int, sys.argv[2:7])


class Module(lightning.LightningModule):
    def setup(self, stage):
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.file = open(f"{out}.{self.global_rank}", "w", encoding="utf-8")

    def training_step(self, index, _):
        print(self.current_epoch, *index.tolist(), file=self.file, flush=True)
        return (self.weight * index.float()).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


lightning.seed_everything(seed)
trainer = lightning.Trainer(max_epochs=epochs, logger=False, enable_progress_bar=False, enable_model_summary=False,
                            enable_checkpointing=False, accelerator="cpu", devices=world,
                            strategy="ddp" if world > 1 else "auto")
trainer.fit(Module(), torch.utils.data.DataLoader(range(n), batch, shuffle=True))
