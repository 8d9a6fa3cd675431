"""trainer_before.py FOLDER"""
import sys
import tempfile

import torch
from torchvision import datasets, transforms
from transformers import ResNetConfig, ResNetForImageClassification, Trainer, TrainingArguments

photos = datasets.ImageFolder(sys.argv[1], transforms.Compose([
    transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(0.5), transforms.ToTensor()]))
model = ResNetForImageClassification(ResNetConfig(
    embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic", num_labels=len(photos.classes)))


def collate(samples):
    images, labels = zip(*samples)
    return {"pixel_values": torch.stack(images), "labels": torch.tensor(labels)}


with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(
        model, train_dataset=photos, data_collator=collate,
        args=TrainingArguments(folder, num_train_epochs=1, per_device_train_batch_size=32, learning_rate=0.003,
                               dataloader_num_workers=2, save_strategy="no", report_to=[], disable_tqdm=True))
    print(f"loss {trainer.train().training_loss:.6f}")
