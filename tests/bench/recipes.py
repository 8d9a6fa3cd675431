"""Whole recipes beside torch's DataLoader, and several crops of a picture beside a loader for each."""
import json
import os
import statistics
import subprocess

from common_bench import BATCH, HERE, IMAGES, PYTHON, daemon, emit, median, photos

TORCH_WORKERS = (1, 2, 3)


def torch_rate(workers, n_batches=None, transforms=None):
    run = subprocess.run([PYTHON, os.path.join(HERE, "torch_loader.py"), photos(), str(workers), str(n_batches or IMAGES // BATCH)],
                         env=dict(os.environ, **({"BENCH_TRANSFORMS": transforms} if transforms else {})), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600, check=False)
    if run.returncode == 77:
        return None
    if run.returncode != 0:
        raise RuntimeError(run.stderr)
    return json.loads(run.stdout)


def torch_vs_daemon():
    ours, theirs = [], {workers: [] for workers in TORCH_WORKERS}
    with daemon(2) as it:
        for _ in range(3):
            for workers in TORCH_WORKERS:
                rate = torch_rate(workers)
                if rate is None:
                    print("torch_vs_daemon skipped: torch and torchvision are not installed", flush=True)
                    return
                theirs[workers].append(rate)
            ours.append(it.consume("throughput", IMAGES // BATCH))
    best = max(TORCH_WORKERS, key=lambda workers: median(theirs[workers], "images_per_s"))
    emit("torch", median(theirs[best], "images_per_s"), "images/s", workers=best, versions=theirs[best][0]["versions"])
    emit("torch_first_batch", median(theirs[best], "first_ms"), "ms")
    emit("torch_vs_daemon", median(ours, "images_per_s") / median(theirs[best], "images_per_s"), "ratio", workers=best)

# The daemon's text, and the same of torchvision for a DataLoader.
NORMALIZED = "normalize(mean=0.485:0.456:0.406, std=0.229:0.224:0.225)"
NORMALIZE = "t.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))"
RECIPES = {
    "crop": ("random_resized_crop(224) hflip(0.5)", "[t.RandomResizedCrop(224), t.RandomHorizontalFlip(), array]"),
    "rand_augment": ("random_resized_crop(224) hflip(0.5) rand_augment(2, 9)",
                     "[t.RandomResizedCrop(224), t.RandomHorizontalFlip(), t.RandAugment(2, 9), array]"),
    "whole": (f"random_resized_crop(224) hflip(0.5) rand_augment(2, 9) to(float32) {NORMALIZED} erasing(0.25) layout(nchw)",
              "[t.RandomResizedCrop(224), t.RandomHorizontalFlip(), t.RandAugment(2, 9), t.ToTensor(), "
              f"{NORMALIZE}, t.RandomErasing(0.25)]"),
    "trivial_augment": ("random_resized_crop(224) hflip(0.5) trivial_augment_wide",
                        "[t.RandomResizedCrop(224), t.RandomHorizontalFlip(), t.TrivialAugmentWide(), array]"),
}


def recipes():
    """Whole recipes, by CPU seconds of all processes: what is left for another one on a shared node."""
    with daemon(2) as it:
        for name, (text, transforms) in RECIPES.items():
            ours, theirs = [], []
            for _ in range(3):
                rate = torch_rate(2, IMAGES // BATCH // 4, transforms)
                if rate is None:
                    print("recipe skipped: torch and torchvision are not installed", flush=True)
                    return
                theirs.append(rate)
                ours.append(it.consume("throughput", IMAGES // BATCH // 2, environment={"BENCH_PIPELINE": text}))
            emit(f"recipe_{name}", 1000 / median(ours, "cpu_s_per_1000"), "images/CPU-s", repeats=3)
            emit(f"recipe_{name}_torch", 1000 / median(theirs, "cpu_s_per_1000"), "images/CPU-s",
                 versions=theirs[0]["versions"])
            emit(f"recipe_{name}_vs_torch", median(theirs, "cpu_s_per_1000") / median(ours, "cpu_s_per_1000"), "ratio")

# Several crops of each picture: (the whole text, each part of it alone and how often it comes).
LARGE = "random_resized_crop(224, scale=0.4:1, interpolation=bicubic)"
SMALL = "random_resized_crop(96, scale=0.05:0.4, interpolation=bicubic)"
DINO_COLORS = ("hflip(0.5) random_apply([color_jitter(brightness=0.4, contrast=0.4, saturation=0.2, hue=0.1)], p=0.8) "
               "random_grayscale(0.2) random_apply([gaussian_blur(23)], p=0.5)")
CROPS = {
    "views2": ((RECIPES["crop"][0], 2),),
    "dino": ((f"{LARGE} hflip(0.5)", 2), (f"{SMALL} hflip(0.5)", 8)),
    "dino_colors": ((f"{LARGE} {DINO_COLORS} {NORMALIZED}", 2), (f"{SMALL} {DINO_COLORS} {NORMALIZED}", 8)),
}


def crops():
    """One decoding for several crops, beside a loader for each of them."""
    with daemon(2) as it:
        def cost(text):
            return it.consume("throughput", IMAGES // BATCH // 4, environment={"BENCH_PIPELINE": text})["cpu_s_per_1000"]

        for name, parts in CROPS.items():
            text = "; ".join(f"crop{i}=image: {part} views({n})" for i, (part, n) in enumerate(parts))
            rows = [(cost(text), sum(n * cost(part) for part, n in parts)) for _ in range(3)]
            together, alone = (statistics.median(row[i] for row in rows) for i in range(2))
            emit(f"crops_{name}", 1000 / together, "samples/CPU-s", repeats=3)
            emit(f"crops_{name}_vs_alone", alone / together, "ratio")
