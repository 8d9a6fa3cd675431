#!/usr/bin/env python3
"""What a step of a pipeline costs, beside the same in torchvision, Albumentations and Kornia.

    steps.py [--table]   --table: as the table of docs/transforms.md

    step_NAME            CPU us a picture of 224 x 224 RGB, one thread, pixels in and out included
    step_NAME_pil        torchvision on Pillow's pictures; _tensor: on a uint8 tensor
    step_NAME_albumentations   on an array; _kornia: on a float32 tensor of one picture

Only what this Python can import is measured: `make bench BENCH=steps PYTHON=...` gives another one. All of a step are
measured in turns, each with its own draws of the same ranges, and medians are given.
"""
import importlib
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from torch_calls import picture_kinds, sure, torch_call

SIDE, ROUNDS, BUDGET = 224, 7, 0.05  # seconds of one measurement
OTHERS = ("pil", "tensor", "albumentations", "kornia")

# The same in Albumentations and in Kornia, by the class that a step is like; None: it has none.
PEERS = {
    "RandomHorizontalFlip": ("HorizontalFlip(p=1)", "RandomHorizontalFlip(p=1)"),
    "RandomRotation": ("Rotate(15, interpolation=0, p=1)", "RandomRotation(15, resample='nearest', p=1)"),
    "RandomAffine": ("Affine(scale=(0.9, 1.1), translate_percent=0.1, rotate=(-10, 10), interpolation=0, p=1)",
                     "RandomAffine(10, (0.1, 0.1), (0.9, 1.1), resample='nearest', p=1)"),
    "RandomPerspective": ("Perspective(p=1)", "RandomPerspective(p=1)"),
    "ElasticTransform": ("ElasticTransform(50, 5, p=1)", "RandomElasticTransform((41, 41), (5, 5), (0.4, 0.4), p=1)"),
    "ColorJitter": ("ColorJitter((0.6, 1.4), (0.6, 1.4), (0.6, 1.4), (0, 0), p=1)", "ColorJitter(0.4, 0.4, 0.4, 0, p=1)"),
    "Grayscale": ("ToGray(p=1)", "RandomGrayscale(p=1)"),
    "RandomInvert": ("InvertImg(p=1)", "RandomInvert(p=1)"),
    "RandomPosterize": ("Posterize(4, p=1)", "RandomPosterize(4, p=1)"),
    "RandomSolarize": ("Solarize((0.5, 0.5), p=1)", "RandomSolarize(0.1, 0.1, p=1)"),
    "RandomAutocontrast": ("AutoContrast(p=1)", "RandomAutoContrast(p=1)"),
    "RandomEqualize": ("Equalize(p=1)", "RandomEqualize(p=1)"),
    "RandomAdjustSharpness": (None, "RandomSharpness((2, 2), p=1)"),
    "GaussianBlur": ("GaussianBlur((23, 23), (0.1, 2), p=1)", "RandomGaussianBlur((23, 23), (0.1, 2), p=1)"),
    "GaussianNoise": ("GaussNoise((0.1, 0.1), p=1)", "RandomGaussianNoise(0, 0.1, p=1)"),
    "RandomErasing": ("Erasing(p=1)", "RandomErasing(p=1)"),
    "RandomChannelPermutation": ("ChannelShuffle(p=1)", "RandomChannelShuffle(p=1)"),
    "CLAHE": ("CLAHE(p=1)", "RandomClahe((1, 4), p=1)"),
    "CoarseDropout": ("CoarseDropout(p=1)", None),
    "JPEG": ("ImageCompression(quality_range=(50, 90), p=1)", "RandomJPEG((50, 90), p=1)"),
    "MotionBlur": ("MotionBlur(p=1)", "RandomMotionBlur((3, 7), 180, 1, p=1)"),
    "RandomBrightnessContrast": ("RandomBrightnessContrast(p=1)", None),
}
# Further texts of steps whose cost depends on what is asked of them.
OTHER_TEXTS = (
    ("random_rotation(30, bilinear)", "Rotate(30, p=1)", "RandomRotation(30, p=1)"),
    ("color_jitter(brightness=0.4)", "ColorJitter((0.6, 1.4), (1, 1), (1, 1), (0, 0), p=1)",
     "ColorJitter(0.4, 0, 0, 0, p=1)"),
    ("color_jitter(contrast=0.4)", "ColorJitter((1, 1), (0.6, 1.4), (1, 1), (0, 0), p=1)",
     "ColorJitter(0, 0.4, 0, 0, p=1)"),
    ("color_jitter(saturation=0.4)", "ColorJitter((1, 1), (1, 1), (0.6, 1.4), (0, 0), p=1)",
     "ColorJitter(0, 0, 0.4, 0, p=1)"),
    ("color_jitter(hue=0.1)", "ColorJitter((1, 1), (1, 1), (1, 1), (-0.1, 0.1), p=1)",
     "ColorJitter(0, 0, 0, 0.1, p=1)"),
    ("gaussian_blur(5)", "GaussianBlur((5, 5), (0.1, 2), p=1)",
     "RandomGaussianBlur((5, 5), (0.1, 2), p=1)"),
)
# What step_time cannot give the part of a file that they read, or what they need beside pixels.
NOT_MEASURED = {"raw", "random_crop", "random_resized_crop", "random_iou_crop"}


def steps(build):
    """Text of the step; torchvision's v2, Albumentations' and Kornia's class with its arguments, or None."""
    kinds = picture_kinds(build)
    for kind in kinds:
        if kind["name"] not in NOT_MEASURED and "[" not in kind["example"]:
            text = sure(kind)
            yield (text, torch_call(text, kinds), *PEERS.get(kind.get("like", "").rpartition(".")[2], (None, None)))
    for text, *others in OTHER_TEXTS:
        yield (text, torch_call(text, kinds), *others)


def picture_bytes():
    """Slopes with some noise, as photos have them."""
    draw = random.Random(5)
    return bytes(min(255, max(0, 128 + 90 * ((x * (1 + c) + y) % 200 - 100) // 100 + draw.randint(-8, 8)))
                 for y in range(SIDE) for x in range(SIDE) for c in range(3))


def imported(name):
    try:
        return importlib.import_module(name)
    except Exception:  # pylint: disable=broad-except  (not installed, or not for this Python)
        return None


class Others:
    """What this Python has of the other libraries: functions that change the picture, by step."""
    def __init__(self, pixels):
        self.torch, self.numpy = imported("torch"), imported("numpy")
        self.v2, self.pil = imported("torchvision.transforms.v2"), imported("PIL.Image")
        os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")
        self.albumentations, self.kornia = imported("albumentations"), imported("kornia.augmentation")
        if self.torch:
            self.torch.set_num_threads(1)
        if self.albumentations:
            imported("cv2").setNumThreads(1)
        if self.numpy:
            self.array = self.numpy.frombuffer(pixels, self.numpy.uint8).reshape(SIDE, SIDE, 3).copy()
        if self.pil:
            self.picture = self.pil.frombytes("RGB", (SIDE, SIDE), pixels)
        if self.torch and self.numpy:
            self.tensor = self.torch.from_numpy(self.array).permute(2, 0, 1).contiguous()
            self.floats = (self.tensor / 255)[None]

    def made(self, module, text):
        if not module or not text:
            return None
        try:
            return eval(f"module.{text.removeprefix('module.')}", {"module": module})  # pylint: disable=eval-used  (the texts above)
        except (AttributeError, TypeError, ValueError):
            return None     # another version of it has no such class

    def functions(self, torchvision, albumentations, kornia):
        step, array = self.made(self.v2, torchvision), self.made(self.albumentations, albumentations)
        floats = self.made(self.kornia, kornia)
        return {"pil": step and self.pil and (lambda: step(self.picture)),
                "tensor": step and (lambda: step(self.tensor)),
                "albumentations": array and (lambda: array(image=self.array)),
                "kornia": floats and (lambda: floats(self.floats))}


def works(function):
    try:
        function()
        return True
    except Exception:  # pylint: disable=broad-except  (not for this kind of picture)
        return False


def timed(function):
    """CPU us of a call."""
    n, begin = 0, time.process_time()
    while time.process_time() - begin < BUDGET:
        function()
        n += 1
    return 1e6 * (time.process_time() - begin) / n


def ours(process, text, n):
    process.stdin.write(f"{n} {text}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def measured(build, rounds=ROUNDS):
    """For each step (text, {"": us, "pil": us, ...}); an absent one is not there."""
    pixels = picture_bytes()
    others = Others(pixels)
    with tempfile.NamedTemporaryFile() as file:
        file.write(pixels)
        file.flush()
        with subprocess.Popen([os.path.join(build, "bench", "step_time"), str(SIDE), str(SIDE), file.name],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            for text, *names in steps(build):
                functions = {name: function for name, function in others.functions(*names).items()
                             if function and works(function)}
                times = {name: [] for name in ("", *functions)}
                n = max(3, int(1e6 * BUDGET / max(1, ours(process, text, 5))))
                for _ in range(rounds):
                    times[""].append(ours(process, text, n))
                    for name, function in functions.items():
                        times[name].append(timed(function))
                yield text, {name: statistics.median(values) for name, values in times.items()}
            process.stdin.close()


def report(build, result):
    """For run.py: `result(name, value, unit)`."""
    for text, times in measured(build):
        name = text.replace("(1)", "").replace("()", "").replace("(p=1)", "").replace(", p=1", "")
        for other, us in times.items():
            result(f"step_{name}{'_' if other else ''}{other}".replace(" ", ""), us, "us")


def version(name):
    module = imported(name)
    return f"{name} {module.__version__}" if module else f"{name} -"


def table(build):
    print("| step | dataloaderd | torchvision on PIL | on a tensor | Albumentations | Kornia |")
    print("|---|---|---|---|---|---|")
    for text, times in measured(build):
        cells = [f"{times[name]:,.0f}" if name in times else "-" for name in ("", *OTHERS)]
        print(f"| `{text}` | {' | '.join(cells)} |", flush=True)
    names = ("torch", "torchvision", "PIL", "albumentations", "cv2", "kornia")
    print(f"\nPython {sys.version.split()[0]}; {', '.join(version(name) for name in names)}.")


if __name__ == "__main__":
    BUILD = os.environ.get("DLP_BUILD", os.path.join(ROOT, "build", "release"))
    if "--table" in sys.argv[1:]:
        table(BUILD)
    else:
        report(BUILD, lambda name, value, unit: print(f"{name} {value:.1f} {unit}"))
