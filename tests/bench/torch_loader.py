"""torch_loader.py DIR WORKERS BATCHES: what people use today, on the same photographs with the same pipeline and batch.

DataLoader + ImageFolder + torchvision's transforms on Pillow, uint8 batches, persistent workers, one thread a worker.
Prints images/s of a second epoch and the time to the first batch. Exit 77 without torch or torchvision.
"""
import json
import sys
import time

try:
    import numpy
    import torch
    import torchvision
    from torchvision import transforms
except ImportError:
    sys.exit(77)


def to_array(picture):
    return torch.from_numpy(numpy.array(picture))


def main():
    folder, workers, n_batches = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    steps = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(0.5), to_array])
    dataset = torchvision.datasets.ImageFolder(folder, steps)
    sampler = torch.utils.data.DistributedSampler(dataset, 1, 0, shuffle=True)
    loader = torch.utils.data.DataLoader(dataset, 64, sampler=sampler, num_workers=workers, prefetch_factor=4,
                                         persistent_workers=True, drop_last=True)
    begin = time.monotonic()
    iterator = iter(loader)
    next(iterator)
    first_ms = (time.monotonic() - begin) * 1000

    n_warm, n_seen, epoch = 8, 0, 0
    while n_seen < n_warm + n_batches:
        for pictures, _ in iterator:
            pictures[:, 0, 0, 0].sum()
            n_seen += 1
            if n_seen == n_warm:
                start = time.monotonic()
            if n_seen == n_warm + n_batches:
                break
        epoch += 1
        sampler.set_epoch(epoch)
        if n_seen < n_warm + n_batches:
            iterator = iter(loader)
    print(json.dumps({"images_per_s": n_batches * 64 / (time.monotonic() - start), "first_ms": first_ms,
                      "versions": f"torch {torch.__version__}, torchvision {torchvision.__version__}"}))


if __name__ == "__main__":
    main()
