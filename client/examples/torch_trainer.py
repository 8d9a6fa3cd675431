"""torch_trainer.py FOLDER [--epochs N] [--batch-size N]: trains on a folder of photographs, on the GPUs that there are.

    python torch_trainer.py /data/photos/train
    torchrun --nproc_per_node 8 torch_trainer.py /data/photos/train

Each process takes the GPU of its LOCAL_RANK. There is nothing to copy and nothing to wait for: a batch's tensors are on
that GPU, and what is queued on torch's current stream runs after they are complete. Without a GPU it trains on the CPU."""
import argparse
import os
import sys

import dlclient
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

# What the last three steps do is done on the GPU, so that a picture crosses the link as uint8.
PIPELINE = ("random_resized_crop(224) hflip(0.5) "
            "normalize(mean=0.485:0.456:0.406, std=0.229:0.224:0.225) to({dtype}) layout(nchw)")


def own_device():
    if not torch.cuda.is_available():
        print("torch finds no GPU: training on the CPU", file=sys.stderr)
        return torch.device("cpu")
    # A launcher that shows each process one GPU numbers them all 0.
    index = int(os.environ.get("LOCAL_RANK", "0")) if torch.cuda.device_count() > 1 else 0
    torch.cuda.set_device(index)
    return torch.device("cuda", index)


def make_model(n_classes):
    def block(n_in, n_out):
        return [torch.nn.Conv2d(n_in, n_out, 3, stride=2), torch.nn.BatchNorm2d(n_out), torch.nn.ReLU()]

    return torch.nn.Sequential(*block(3, 16), *block(16, 32), *block(32, 64), torch.nn.AdaptiveAvgPool2d(1),
                               torch.nn.Flatten(), torch.nn.Linear(64, n_classes))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=256)
    wish = parser.parse_args()

    device = own_device()
    on_gpu = device.type == "cuda"
    is_torchrun = "TORCHELASTIC_RUN_ID" in os.environ
    if is_torchrun:
        dist.init_process_group("nccl" if on_gpu else "gloo")
    torch.manual_seed(1)

    loader = dlclient.Loader(wish.folder, batch_size=wish.batch_size, framework="torch", device=device,
                             pipeline=PIPELINE.format(dtype="bfloat16" if on_gpu else "float32"))
    model = make_model(len(loader.dataset.classes)).to(device)
    if is_torchrun:
        model = DistributedDataParallel(model, device_ids=[device.index] if on_gpu else None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)

    for epoch in range(wish.epochs):
        loader.set_epoch(epoch)
        for batch in loader:
            with torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
                loss = cross_entropy(model(batch["image"]), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"rank {loader.rank} epoch {epoch} loss {loss.item():.6f}\n", end="", flush=True)
    loader.close()
    if is_torchrun:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
