"""torch_loader.py DIR WORKERS BATCHES: what people use today, on the same photographs with the same pipeline and batch.

DataLoader + ImageFolder + torchvision's transforms on Pillow, uint8 batches, persistent workers, one thread a worker.
BENCH_TRANSFORMS has others than a crop and a flip, as an expression in which `t` is torchvision.transforms and `array`
makes a uint8 tensor of a picture. Prints images/s of a second epoch, the time to the first batch, and the CPU seconds
of all processes for 1000 images. Exit 77 without torch or torchvision.
"""
import json
import os
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


def cpu_seconds(pids):
    """That these processes have used."""
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            ticks += sum(map(int, file.read().rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def chosen_steps():
    names = {"t": transforms, "array": to_array}
    return eval(os.environ.get("BENCH_TRANSFORMS", "[t.RandomResizedCrop(224), t.RandomHorizontalFlip(0.5), array]"), names)


def main():
    folder, workers, n_batches = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    dataset = torchvision.datasets.ImageFolder(folder, transforms.Compose(chosen_steps()))
    sampler = torch.utils.data.DistributedSampler(dataset, 1, 0, shuffle=True)
    loader = torch.utils.data.DataLoader(dataset, 64, sampler=sampler, num_workers=workers, prefetch_factor=4,
                                         persistent_workers=True, drop_last=True)
    begin = time.monotonic()
    iterator = iter(loader)
    next(iterator)
    first_ms = (time.monotonic() - begin) * 1000

    pids = [os.getpid()] + [worker.pid for worker in iterator._workers]  # pylint: disable=protected-access
    n_warm, n_seen, epoch = 8, 0, 0
    while n_seen < n_warm + n_batches:
        for pictures, _ in iterator:
            pictures[:, 0, 0, 0].sum()
            n_seen += 1
            if n_seen == n_warm:
                start, cpu = time.monotonic(), cpu_seconds(pids)
            if n_seen == n_warm + n_batches:
                break
        epoch += 1
        sampler.set_epoch(epoch)
        if n_seen < n_warm + n_batches:
            iterator = iter(loader)
    print(json.dumps({"images_per_s": n_batches * 64 / (time.monotonic() - start), "first_ms": first_ms,
                      "cpu_s_per_1000": (cpu_seconds(pids) - cpu) / (n_batches * 64) * 1000,
                      "versions": f"torch {torch.__version__}, torchvision {torchvision.__version__}"}))


if __name__ == "__main__":
    main()
