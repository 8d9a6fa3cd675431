"""lightning_before.py FOLDER"""
import sys

import lightning
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from model import Net


class Module(lightning.LightningModule):
    def __init__(self, n_classes):
        super().__init__()
        self.net = Net(n_classes)

    def training_step(self, batch, _):
        images, labels = batch
        loss = cross_entropy(self.net(images), labels)
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.003)


photos = datasets.ImageFolder(sys.argv[1], transforms.Compose([
    transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(0.5), transforms.ToTensor()]))
loader = DataLoader(photos, batch_size=32, shuffle=True, num_workers=2, persistent_workers=True)
trainer = lightning.Trainer(max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(Module(len(photos.classes)), loader)
print(f"loss {trainer.callback_metrics['loss'].item():.6f}")
