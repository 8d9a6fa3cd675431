"""trainer_run.py FOLDER RESUME STOP_AFTER: transformers' Trainer over two epochs; samples a line a batch. It saves every 5
steps, dies in step STOP_AFTER (0: never), and with RESUME = 1 goes on from the last checkpoint."""
import json
import os
import sys

import dlclient
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

folder, resume, stop_after = sys.argv[1], sys.argv[2] == "1", int(sys.argv[3])
loader = dlclient.Loader("files", batch_size=4, pipeline="decode", seed=9, framework="torch")
n = 0


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(7 * 9 * 3, 2)

    def forward(self, pixels, labels):
        scores = self.linear(pixels.flatten(1).float() / 255)
        return {"loss": torch.nn.functional.cross_entropy(scores, labels), "logits": scores}


class Batches:
    def __init__(self):
        self.dataset, self.set_epoch = loader.dataset, loader.set_epoch

    def __len__(self):
        return len(loader)

    def __iter__(self):
        global n
        for batch in loader:
            n += 1
            print(batch.epoch, *batch.indices.tolist(), flush=True)
            if n == stop_after:
                os._exit(3)
            yield {"pixels": batch["image"], "labels": batch["label"]}


class KeepPlace(TrainerCallback):
    """Trainer skips batches by making a DataLoader of its own of ours; so the place in the epoch is kept beside."""

    def on_save(self, args, state, control, **_):
        with open(os.path.join(folder, f"checkpoint-{state.global_step}", "loader.json"), "w", encoding="utf-8") as file:
            json.dump(loader.state_dict(), file)


class OurTrainer(Trainer):
    def get_train_dataloader(self):
        return Batches()


args = TrainingArguments(folder, num_train_epochs=2, per_device_train_batch_size=4, save_steps=5, report_to=[],
                         disable_tqdm=True, ignore_data_skip=True)
checkpoint = get_last_checkpoint(folder) if resume else None
if checkpoint:
    with open(os.path.join(checkpoint, "loader.json"), encoding="utf-8") as file:
        loader.load_state_dict(json.load(file))
OurTrainer(Model(), args=args, callbacks=[KeepPlace()]).train(resume_from_checkpoint=checkpoint)
