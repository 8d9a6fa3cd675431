"""A function of the trainer's own in the pipeline (python_step_*): what it costs beside the same pipeline without one, and how
fast it is beside torch's DataLoader with the same function and as many processes.

    python_step.py cost SAMPLES             run by Debian's Python beside a daemon: JSON with microseconds of CPU time a
                                            sample, of the worker process (its own function included) and of the daemon;
                                            runs_: of numbers, several of which are one order
    python_step.py rate BATCHES WORKERS     images/s of a second epoch, random_resized_crop(224) hflip(0.5) and the function
    python_step.py torch FOLDER BATCHES WORKERS   the same with torchvision on Pillow in torch's DataLoader; exit 77 without it

DATALOADERD_SOCKET says where the daemon is, DAEMON_PID which process it is; the datasets are "photos" and "numbers"."""
import json
import os
import resource
import sys
import time

try:
    import numpy
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(77)

CUT = "random_resized_crop(224) hflip(0.5)"


def fade(image, rng):
    """Some 0.3 ms of NumPy, as own augmentations are."""
    image[...] = (image * numpy.float32(0.5 + 0.5 * rng.random())).astype(numpy.uint8)


def nothing(image, rng):  # pylint: disable=unused-argument
    pass


def seeded(image):  # pylint: disable=unused-argument
    pass


def daemon_us():
    with open(f"/proc/{os.environ['DAEMON_PID']}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1e6 / os.sysconf("SC_CLK_TCK")


def children_us():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e6


def total(pipeline, n_samples, dataset="photos", **more):
    """Samples, and the CPU time of the worker processes and of the daemon, which includes opening and closing."""
    import dlclient
    before = children_us(), daemon_us()
    loader = dlclient.Loader(dataset, batch_size=64, pipeline=pipeline, epochs=None, **more)
    seen = 0
    for batch in loader:
        seen += len(batch.indices)
        if seen >= n_samples:
            break
    loader.close()
    return seen, children_us() - before[0], daemon_us() - before[1]


def use(pipeline, n_samples, **more):
    """CPU time a further sample: of the worker processes, of the daemon."""
    few, many = total(pipeline, n_samples // 8, **more), total(pipeline, n_samples, **more)
    return tuple((b - a) / (many[0] - few[0]) for a, b in zip(few[1:], many[1:]))


def cost(n_samples):
    plain = use("center_crop(8)", n_samples)
    with_rng = use("center_crop(8) python(f)", n_samples, workers={"f": nothing}, n_workers=1)
    with_seeds = use("center_crop(8) python(f)", n_samples, workers={"f": seeded}, n_workers=1)
    runs = {name: use("x=index: python(f)", n_samples * 16, dataset="numbers", workers={"f": f}, n_workers=1)
            for name, f in (("rng", nothing), ("seeded", seeded))}
    return {"worker": with_rng[0], "seeded": with_seeds[0], "daemon": with_rng[1] - plain[1],
            "runs_worker": runs["rng"][0], "runs_seeded": runs["seeded"][0], "runs_daemon": runs["rng"][1]}


def timed(batches, n_batches):
    """images/s after the first few batches."""
    begin, n = 0.0, 0
    for batch in batches:
        n += 1
        if n == 8:
            begin = time.perf_counter()
        if n == 8 + n_batches:
            return {"images_per_s": n_batches * 64 / (time.perf_counter() - begin)}
        del batch
    raise RuntimeError("too few batches")


def rate(n_batches, n_workers):
    import dlclient
    with dlclient.Loader("photos", batch_size=64, pipeline=f"{CUT} python(fade)", workers={"fade": fade}, epochs=None,
                         n_workers=n_workers, drop_last=True) as loader:
        return timed(loader, n_batches)


def torch_rate(folder, n_batches, n_workers):
    try:
        import torch
        import torchvision
        from torchvision import transforms
    except ImportError:
        sys.exit(77)
    torch.set_num_threads(1)
    rng = numpy.random.default_rng(0)

    def to_array(picture):
        image = numpy.array(picture)
        fade(image, rng)
        return torch.from_numpy(image)

    steps = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(0.5), to_array])
    dataset = torchvision.datasets.ImageFolder(folder, steps)
    loader = torch.utils.data.DataLoader(dataset, 64, shuffle=True, num_workers=n_workers, persistent_workers=True,
                                         drop_last=True)

    def endless():
        while True:
            yield from loader
    return timed(endless(), n_batches)


def main():
    mode, *rest = sys.argv[1:]
    if mode == "cost":
        print(json.dumps(cost(int(rest[0]))))
    elif mode == "rate":
        print(json.dumps(rate(*map(int, rest))))
    else:
        print(json.dumps(torch_rate(rest[0], int(rest[1]), int(rest[2]))))


main()
