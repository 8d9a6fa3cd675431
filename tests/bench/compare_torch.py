"""A trainer of the recorded comparison: compare_torch.py torch|dlclient FOLDER MODE, one rank of RANK, WORLD_SIZE.

Both import torch, say "imported", wait for a line, then take 64 photographs a batch, cropped and flipped at random, and
print a JSON line:

    hold    {"first_ms"}: from making the loader to its first batch; then 20 batches, then waits for the end of stdin with
            everything in place, so that memory can be looked at
    loop    steps of 20 ms until stdin ends; then {"times"}: when each batch was there, seconds of CLOCK_MONOTONIC

The trainer of torch has two worker processes, as is usual; dlclient's has none. Exit 77 without torch or torchvision.
"""
import json
import os
import sys
import threading
import time

try:
    import numpy
    import torch
    import torchvision
except ImportError:
    sys.exit(77)

BATCH, WORKERS, STEP_S = 64, 2, 0.02


def to_tensor(picture):
    return torch.from_numpy(numpy.array(picture))


class Torch:
    """ImageFolder, DistributedSampler and DataLoader; uint8 pictures."""

    def __init__(self, folder):
        transforms = torchvision.transforms
        dataset = torchvision.datasets.ImageFolder(folder, transforms.Compose([
            transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(0.5), to_tensor]))
        self.sampler = torch.utils.data.DistributedSampler(dataset, int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"]))
        self.loader = torch.utils.data.DataLoader(dataset, BATCH, sampler=self.sampler, num_workers=WORKERS, drop_last=True,
                                                  persistent_workers=True)

    def batches(self):
        epoch = 0
        while True:
            self.sampler.set_epoch(epoch)
            for pictures, _ in self.loader:
                yield pictures
            epoch += 1


class Dlclient:
    def __init__(self, _):
        import dlclient
        self.loader = dlclient.Loader("photos", batch_size=BATCH, pipeline="random_resized_crop(224) hflip(0.5)",
                                      drop_last=True, epochs=None, framework="torch")

    def batches(self):
        for batch in self.loader:
            yield batch["image"]


def main():
    kind, folder, mode = sys.argv[1:]
    if kind == "dlclient":
        import dlclient  # pylint: disable=unused-import
    torch.set_num_threads(1)
    print(json.dumps("imported"), flush=True)
    sys.stdin.readline()
    begin = time.monotonic()
    batches = (Torch if kind == "torch" else Dlclient)(folder).batches()
    next(batches)[:, 0, 0, 0].sum()
    first_ms = (time.monotonic() - begin) * 1000
    if mode == "hold":
        for _ in range(20):
            next(batches)[:, 0, 0, 0].sum()
        print(json.dumps({"first_ms": first_ms, "versions": f"torch {torch.__version__}"}), flush=True)
        sys.stdin.read()
        return
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    times = []
    print(json.dumps({"first_ms": first_ms}), flush=True)
    while not ended.is_set():
        next(batches)[:, 0, 0, 0].sum()
        times.append(time.monotonic())
        time.sleep(STEP_S)
    print(json.dumps({"times": times}), flush=True)


if __name__ == "__main__":
    main()
