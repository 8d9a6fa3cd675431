"""their_trainer.py OUT N BATCH SEED EPOCHS DROP_LAST, under torchrun: transformers' Trainer over its own DataLoader. Appends
the samples of each batch to OUT.RANK, "epoch index index ..." a line."""
import os
import sys

import torch
from transformers import Trainer, TrainingArguments

out, n, batch, seed, epochs, drop_last = sys.argv[1], *map(int, sys.argv[2:7])


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))

    def forward(self, index, labels):
        if self.training:
            print(int(trainer.state.epoch or 0), *index.tolist(), file=file, flush=True)
        return {"loss": (self.weight * index.float()).mean()}


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return n

    def __getitem__(self, index):
        return {"index": index, "labels": 0}


with open(f"{out}.{os.environ.get('RANK', '0')}", "w", encoding="utf-8") as file:
    args = TrainingArguments(out + ".folder", num_train_epochs=epochs, per_device_train_batch_size=batch, seed=seed,
                             dataloader_drop_last=bool(drop_last), use_cpu=True, report_to=[], disable_tqdm=True,
                             save_strategy="no", logging_strategy="no")
    trainer = Trainer(Model(), args=args, train_dataset=Numbers())
    trainer.train()
