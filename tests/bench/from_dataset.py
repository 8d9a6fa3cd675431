"""A Dataset object of torch's as it is (from_dataset_*): batches of 64 by dlclient.from_dataset(), beside torch's DataLoader with the
same object and as many worker processes, in turns.

    from_dataset.py ours|torch KIND SAMPLES WORKERS [FOLDER]   run by Debian's Python: JSON with the samples/s after some batches,
                                            and CPU us a sample of all processes together; exit 77 without torch

KIND: photos (an image folder, torchvision on Pillow), arrays (uint8 [3, 224, 224] in memory), rows (float32 [64] in memory). The
daemon is a private one of XDG_RUNTIME_DIR, whose CPU time is counted, too."""
import glob
import json
import os
import resource
import sys
import time

try:
    import torch
    import torchvision
    from torchvision import transforms
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(77)

BATCH, WARM = 64, 8  # batches before the time begins


class Arrays(torch.utils.data.Dataset):
    def __init__(self, n, shape, dtype):
        self.arrays = torch.arange(n).reshape((n,) + (1,) * len(shape)).expand((n,) + shape).to(dtype).contiguous()
        self.labels = torch.arange(n)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.arrays[i], self.labels[i]


def dataset_of(kind, folder):
    if kind == "arrays":
        return Arrays(1000, (3, 224, 224), torch.uint8)
    if kind == "rows":
        return Arrays(50000, (64,), torch.float32)
    steps = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    return torchvision.datasets.ImageFolder(folder, transforms.Compose(steps))


def of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def daemons_seconds():
    """CPU time of the private daemon: the one with this runtime folder."""
    for path in glob.glob("/proc/[0-9]*"):
        try:
            with open(path + "/comm", encoding="utf-8") as comm, open(path + "/environ", "rb") as environ:
                if comm.read().strip() == "dataloaderd" and os.environ["XDG_RUNTIME_DIR"].encode() in environ.read():
                    return of(os.path.basename(path))
        except OSError:
            pass
    return 0.0


def children():
    """The processes of this one, and theirs."""
    found, parents = [os.getpid()], {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8") as file:
                parents[int(path.split("/")[2])] = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            pass
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(of(pid) for pid in children()) + used.ru_utime + used.ru_stime + daemons_seconds()


def timed(batches, n_samples):
    begin = cpu = 0.0
    for n, batch in enumerate(batches):
        if n == WARM:
            begin, cpu = time.perf_counter(), seconds()
        if n == WARM + n_samples // BATCH:
            n_samples = (n - WARM) * BATCH
            return {"samples_per_s": n_samples / (time.perf_counter() - begin), "cpu_us": (seconds() - cpu) / n_samples * 1e6}
        del batch
    raise RuntimeError("too few batches")


def ours(dataset, n_samples, n_workers):
    import dlclient
    with dlclient.Loader(dlclient.from_dataset(dataset), BATCH, n_workers=n_workers, drop_last=True, epochs=None) as loader:
        return timed(loader, n_samples)


def theirs(dataset, n_samples, n_workers):
    loader = torch.utils.data.DataLoader(dataset, BATCH, shuffle=True, num_workers=n_workers, persistent_workers=True,
                                         drop_last=True)

    def endless():
        while True:
            yield from loader
    return timed(endless(), n_samples)


def main():
    whose, kind, n_samples, n_workers, *folder = sys.argv[1:]
    torch.set_num_threads(1)
    run = ours if whose == "ours" else theirs
    print(json.dumps(run(dataset_of(kind, *folder or [None]), int(n_samples), int(n_workers))))


main()
