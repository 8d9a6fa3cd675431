"""jax_after.py FOLDER"""
import sys

import dlclient
import jax
import jax.numpy as jnp

loader = dlclient.Loader(sys.argv[1], batch_size=32, pipeline="random_resized_crop(224) hflip(0.5)", drop_last=True,
                         framework="jax")


@jax.jit
def step(weights, images, labels):
    def loss_of(weights):
        means = images.reshape(len(images), 14, 16, 14, 16, 3).mean((2, 4)).reshape(len(images), -1) / 255
        return -jnp.take_along_axis(jax.nn.log_softmax(means @ weights), labels[:, None], 1).mean()
    loss, gradient = jax.value_and_grad(loss_of)(weights)
    return weights - 0.03 * gradient, loss


weights = jnp.zeros((14 * 14 * 3, len(loader.dataset.classes)))
for epoch in range(2):
    for batch in loader:
        weights, loss = step(weights, batch["image"], batch["label"])
    print(f"epoch {epoch} loss {loss:.6f}")
