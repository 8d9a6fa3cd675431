"""jax_trainer.py FOLDER [--epochs N] [--batch-size N]: trains with JAX on a folder of photographs, in one process.

On a GPU if there is one, else on the CPU."""
import argparse
import sys

import dlclient
import jax
import jax.numpy as jnp


def logits_of(weights, images):
    """A convolution, the mean of its outputs, a matrix."""
    maps = jax.lax.conv(images, weights["filters"].astype(images.dtype), (4, 4), "VALID")
    return jax.nn.relu(maps).mean((2, 3)).astype(jnp.float32) @ weights["matrix"]


@jax.jit
def step(weights, images, labels):
    def loss_of(weights):
        chances = jax.nn.log_softmax(logits_of(weights, images))
        return -jnp.take_along_axis(chances, labels[:, None], 1).mean()

    loss, gradient = jax.value_and_grad(loss_of)(weights)
    return jax.tree.map(lambda value, slope: value - 0.1 * slope, weights, gradient), loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=256)
    wish = parser.parse_args()

    gpus = [device for device in jax.local_devices() if device.platform == "gpu"]
    if not gpus:
        print("JAX finds no GPU: training on the CPU", file=sys.stderr)
    dtype = "bfloat16" if gpus else "float32"
    # A step is compiled for each shape, so the last, smaller batch is left out.
    loader = dlclient.Loader(
        wish.folder, batch_size=wish.batch_size, framework="jax", drop_last=True, device=gpus[0] if gpus else None,
        pipeline=f"random_resized_crop(224) hflip(0.5) normalize(0.45, std=0.225) to({dtype}) layout(nchw)")
    first, second = jax.random.split(jax.random.key(1))
    weights = {"filters": 0.1 * jax.random.normal(first, (16, 3, 7, 7)),
               "matrix": 0.1 * jax.random.normal(second, (16, len(loader.dataset.classes)))}
    loss = None
    for epoch in range(wish.epochs):
        loader.set_epoch(epoch)
        for batch in loader:
            # JAX runs ahead, and on the CPU each step that is to come holds a batch's memory: one step at most.
            if loss is not None:
                loss.block_until_ready()
            weights, loss = step(weights, batch["image"], batch["label"])
        if loss is None:
            sys.exit(f"{wish.folder} has fewer than {wish.batch_size} pictures: choose a smaller --batch-size")
        print(f"epoch {epoch} loss {loss:.6f}", flush=True)
    loader.close()


if __name__ == "__main__":
    main()
