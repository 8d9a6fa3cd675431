"""jax_before.py FOLDER"""
import sys

import jax
import jax.numpy as jnp
import numpy
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

photos = datasets.ImageFolder(sys.argv[1], transforms.Compose([
    transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(0.5), numpy.asarray]))


def collate(samples):
    images, labels = zip(*samples)
    return numpy.stack(images), numpy.asarray(labels)


loader = DataLoader(photos, batch_size=32, shuffle=True, drop_last=True, num_workers=2, collate_fn=collate)


@jax.jit
def step(weights, images, labels):
    def loss_of(weights):
        means = images.reshape(len(images), 14, 16, 14, 16, 3).mean((2, 4)).reshape(len(images), -1) / 255
        return -jnp.take_along_axis(jax.nn.log_softmax(means @ weights), labels[:, None], 1).mean()
    loss, gradient = jax.value_and_grad(loss_of)(weights)
    return weights - 0.03 * gradient, loss


weights = jnp.zeros((14 * 14 * 3, len(photos.classes)))
for epoch in range(2):
    for images, labels in loader:
        weights, loss = step(weights, jnp.asarray(images), jnp.asarray(labels))
    print(f"epoch {epoch} loss {loss:.6f}")
