#!/usr/bin/env python3
"""The Python client beside the real torch and torchvision: the same samples in the same batches, the same pixels."""
import importlib
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, equal, main, photos, png, write
from trainers import dlclient, need

N_PHOTOS, N_CLASSES = 61, 4
ROUNDS = 200
SIZES = (1, 2, 3, 7, 10, 37, 96)


def random_terms(rng):
    world = rng.choice((1, 1, 2, 3, 4, 7))
    return {"n": rng.choice(SIZES), "world": world, "rank": rng.randrange(world), "batch": rng.choice((1, 2, 3, 5, 8, 64)),
            "seed": rng.choice((0, 1, 42, 2**31, rng.getrandbits(32))), "epoch": rng.choice((0, 1, 2, 17, 1000)),
            "drop_last": rng.random() < 0.5, "partition": rng.choice(("pad", "drop")), "shuffle": rng.random() < 0.8}


def batches_of_torch(folder, terms):
    """(indices, labels) of every batch of two epochs, as torch's DataLoader makes them."""
    from torch.utils.data import DataLoader, DistributedSampler
    from torchvision.datasets import ImageFolder

    dataset = ImageFolder(folder, loader=lambda path: path)
    number = {path: index for index, (path, _) in enumerate(dataset.samples)}
    dataset.loader = number.__getitem__  # a sample is its own number
    sampler = DistributedSampler(dataset, terms["world"], terms["rank"], terms["shuffle"], terms["seed"],
                                 drop_last=terms["partition"] == "drop")
    loader = DataLoader(dataset, terms["batch"], sampler=sampler, drop_last=terms["drop_last"])
    batches = []
    for epoch in (terms["epoch"], terms["epoch"] + 1):
        sampler.set_epoch(epoch)
        batches.append([(indices.tolist(), labels.tolist()) for indices, labels in loader])
    return batches


def batches_of_daemon(daemon, terms):
    batches = []
    with dlclient().Loader(f"n{terms['n']}", socket=daemon.socket, job="one", rank=terms["rank"],
                           world_size=terms["world"], batch_size=terms["batch"], seed=terms["seed"],
                           shuffle=terms["shuffle"], drop_last=terms["drop_last"], partition=terms["partition"],
                           pipeline="raw") as loader:
        for epoch in (terms["epoch"], terms["epoch"] + 1):
            loader.set_epoch(epoch)
            batches.append([(batch.indices.tolist(), batch["label"].tolist()) for batch in loader])
            equal(len(loader), len(batches[-1]), "len(loader)")
    return batches


@case("batches hold the samples that DataLoader and DistributedSampler put there, whatever the terms")
def _(box):
    need("torch", "torchvision")
    folders = {f"n{n}": box.folder_of_files(f"n{n}", n, n_classes=min(3, n), size=20) for n in SIZES}
    daemon = box.daemon(folders)
    rng = random.Random(4)
    for _ in range(ROUNDS):
        terms = random_terms(rng)
        equal(batches_of_daemon(daemon, terms), batches_of_torch(folders[f"n{terms['n']}"], terms), f"{terms}")


@case("resize(256) center_crop(224) gives torchvision's pixels bit for bit, and ImageFolder's labels")
def _(box):
    need("torch", "torchvision")
    import numpy
    import torch
    import torchvision
    from torch.utils.data import DataLoader, DistributedSampler

    transform = torchvision.transforms.Compose([
        torchvision.transforms.Resize(256), torchvision.transforms.CenterCrop(224), numpy.asarray, torch.tensor])
    folder = photos(N_PHOTOS, N_CLASSES)
    dataset = torchvision.datasets.ImageFolder(folder, transform)
    sampler = DistributedSampler(dataset, 2, 1, seed=5)
    sampler.set_epoch(3)
    daemon = box.daemon({"photos": folder})
    with dlclient().Loader("photos", socket=daemon.socket, job="one", rank=1, world_size=2, batch_size=8, seed=5,
                           pipeline="resize(256) center_crop(224)", framework="torch") as loader:
        equal(loader.dataset.classes, dataset.classes, "classes")
        equal(loader.dataset.class_to_idx, dataset.class_to_idx, "numbers of the classes")
        equal(len(loader.dataset), len(dataset), "samples")
        loader.set_epoch(3)
        n_batches = 0
        for batch, (images, labels) in zip(loader, DataLoader(dataset, 8, sampler=sampler)):
            equal((batch["image"].dtype, tuple(batch["image"].shape)), (torch.uint8, tuple(images.shape)), "images")
            equal((batch["label"].dtype, batch["label"].tolist()), (torch.int64, labels.tolist()), "labels")
            for place, index in enumerate(batch.indices):
                equal(torch.equal(batch["image"][place], images[place]), True, f"pixels of {dataset.samples[index][0]}")
            n_batches += 1
        equal(n_batches, 4, "batches")


@case("ToTensor() and Normalize() are to, layout and normalize: the same tensors, of the same type and shape")
def _(box):
    need("torch", "torchvision")
    import replay
    import torch
    import torchvision

    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    transform = torchvision.transforms.Compose([
        torchvision.transforms.Resize(64), torchvision.transforms.CenterCrop(48), torchvision.transforms.ToTensor(),
        torchvision.transforms.Normalize(mean, std)])
    folder = photos(N_PHOTOS, N_CLASSES)
    dataset = torchvision.datasets.ImageFolder(folder, transform)
    daemon = box.daemon({"photos": folder})
    steps = "resize(64) center_crop(48) normalize(mean=0.485:0.456:0.406, std=0.229:0.224:0.225)"
    for form, dtype in (("layout(nchw)", torch.float32), ("to(float32)", torch.float32),
                        ("to(float16) layout(nchw)", torch.float16), ("layout(nchw) to(bfloat16)", torch.bfloat16)):
        for framework in ("torch", "numpy"):
            with dlclient().Loader("photos", socket=daemon.socket, job=f"{form} {framework}", batch_size=8, epochs=1,
                                   pipeline=f"{steps} {form}", framework=framework) as loader:
                batch = next(iter(loader))
                expected = torch.stack([dataset[index][0] for index in batch.indices]).to(dtype)
                if "nchw" not in form:
                    expected = expected.permute(0, 2, 3, 1).contiguous()
                image = batch["image"]
                name = str(dtype)[len("torch."):]
                if framework == "torch":
                    equal((image.dtype, image.shape), (dtype, expected.shape), f"{form} in {framework}")
                    assert image.is_contiguous() and torch.equal(image, expected), f"{form} in {framework}"
                else:                       # NumPy has no bfloat16: its bits, unless ml_dtypes is there
                    assert image.dtype.name in (name, "uint16" if name == "bfloat16" else name), image.dtype
                    equal(image.shape, tuple(expected.shape), f"{form} in {framework}")
                    equal(image.tobytes() == replay.tensor_bytes(expected), True, f"{form} in {framework}")


@case("classes that divide levels by 255 and those that multiply by 1 / 255 are told apart, and each gives its own numbers")
def _(box):
    need("torch", "torchvision")
    import torch
    import torchvision
    written = importlib.import_module(dlclient().__name__ + "._answers.transforms").written

    def v2(name, **attributes):     # torchvision before 0.15 has no v2
        return type(name, (), {"__module__": "torchvision.transforms.v2._misc", **attributes})()
    v1, half = torchvision.transforms, torch.float16
    levels = bytes(level for level in range(256) for _ in range(3))
    write(os.path.join(box.path("levels"), "a", "levels.png"), png(16, 16, levels))
    daemon = box.daemon({"levels": box.path("levels")})
    whole = torch.arange(256, dtype=torch.uint8).reshape(16, 16)
    scaled = v2("ToDtype", dtype=torch.float32, scale=True)
    mean, std = 0.25, 0.5
    for steps, text, expected in (
            ([v1.ToTensor()], "to(float32) layout(nchw)", whole.float() / 255),
            ([v2("ToTensor")], "to(float32) layout(nchw)", whole.float() / 255),
            ([v1.ConvertImageDtype(torch.float32)], "to(float32)", whole.float() / 255),
            ([v1.ConvertImageDtype(half)], "to(float16)", (whole.float() / 255).to(half)),
            ([v2("ConvertImageDtype", dtype=torch.float32)], "to(float32, scale=multiply)", whole.float() * (1 / 255)),
            ([v2("ToImage"), scaled], "to(float32, scale=multiply) layout(nchw)", whole.float() * (1 / 255)),
            ([v2("ToDtype", dtype=half, scale=True)], "to(float16, scale=multiply)",
             (whole.float() * (1 / 255)).to(half)),     # as torch has it from 2.0 on
            ([v2("ToDtype", dtype={type("Image", (), {}): torch.float32, "others": None}, scale=True)],
             "to(float32, scale=multiply)", whole.float() * (1 / 255)),
            ([scaled, v1.Normalize([mean] * 3, [std] * 3)],
             "to(float32, scale=multiply) normalize(mean=0.25:0.25:0.25, std=0.5:0.5:0.5)",
             (whole.float() * (1 / 255) - mean) / std)):
        equal(written(steps), (text, []), "the text")
        with dlclient().Loader("levels", 1, socket=daemon.socket, job=text, pipeline=text, framework="torch") as loader:
            equal(loader.pipeline, text.replace("normalize(mean=", "normalize("), "the normal spelling")
            image = next(iter(loader))["image"][0]
            image = image[0] if "nchw" in text else image[..., 0]
            assert image.dtype == expected.dtype and torch.equal(image, expected), (text, (image != expected).sum())
    equal(torch.equal(whole.float() / 255, whole.float() * (1 / 255)), False, "half of the numbers differ")
    equal(written([v2("ToDtype", dtype=torch.float32, scale=False)]), ("", ["ToDtype"]), "floats that are not scaled")
    equal(written([v2("ToDtype", dtype=torch.uint8, scale=True)]), ("to(uint8)", []), "no floats")
    with dlclient().Loader("levels", 1, socket=daemon.socket, job="said", pipeline="to(float32, scale=divide)") as loader:
        equal(loader.pipeline, "to(float32)", "what is the default is not shown")


main()
