"""trainer_after.py FOLDER"""
import sys
import tempfile

import dlclient
from transformers import ResNetConfig, ResNetForImageClassification, Trainer, TrainingArguments


class Batches:
    """The loader with the names that the model's forward() wants."""

    def __init__(self, loader):
        self.loader, self.dataset, self.set_epoch = loader, loader.dataset, loader.set_epoch

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        for batch in self.loader:
            yield {"pixel_values": batch["image"], "labels": batch["label"]}


class PhotosTrainer(Trainer):
    def get_train_dataloader(self):
        return Batches(loader)


with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(folder, num_train_epochs=1, per_device_train_batch_size=32, learning_rate=0.003,
                             save_strategy="no", report_to=[], disable_tqdm=True)
    loader = dlclient.Loader(sys.argv[1], batch_size=args.train_batch_size, framework="torch",
                             pipeline="random_resized_crop(224) hflip(0.5) to(float32) layout(nchw)")
    model = ResNetForImageClassification(ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic",
        num_labels=len(loader.dataset.classes)))
    trainer = PhotosTrainer(model, args=args)
    print(f"loss {trainer.train().training_loss:.6f}")
