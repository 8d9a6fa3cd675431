#!/usr/bin/env python3
"""Writes tests/vectors/pixels.jsonl: what Pillow, OpenCV and Albumentations make of pictures, for the steps jpeg, clahe,
motion_blur and random_brightness_contrast.

    make_pixel_vectors.py > tests/vectors/pixels.jsonl

Needs Pillow, opencv-python-headless, albumentations and NumPy. The file was made with 13.0.0, 5.0.0.93, 2.0.8 (with
albucore 0.0.24) and 2.4.6; Pillow 9.4.0 gives the same. Kinds:

    picture     `channels` (3: RGB, 1: L), `width`, `height`, and the `pixels`, base64
    steps       the text of a pipeline, and the FNV-1a, 64 bits, of what it makes of the picture above

Lines are Albumentations' (create_motion_kernel), and its mean of pixels is computed here, exactly and rounded half to even:
OpenCV's filter2D() must not be further than one level from it, and not differ except where the exact mean is a half. All
else is what the library gives.
"""
import base64
import io
import json
import os
import random
import sys

import albucore
import cv2
import numpy
from albumentations.augmentations.blur.functional import create_motion_kernel
from PIL import Image

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import philox

DICE = random.Random(27)


def write(**line):
    print(json.dumps(line, separators=(",", ":")))


def fnv(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return f"{value:016x}"


def picture(width, height, channels, is_soft):
    noise = numpy.random.default_rng(DICE.getrandbits(32))
    shape = (4, 5, channels) if is_soft else (height, width, channels)
    pixels = noise.integers(0, 256, shape, dtype=numpy.uint8)
    if is_soft:
        pixels = numpy.array(Image.fromarray(pixels.squeeze()).resize((width, height), Image.BICUBIC))
    return pixels.squeeze(-1) if pixels.ndim == 3 and channels == 1 else pixels


# ---- steps: (text, pixels) ----------------------------------------------------------------------------------------------

def jpeg(pixels, quality):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=quality)
    return f"jpeg({quality})", numpy.array(Image.open(file))


def clahe(pixels, limit, across, down):
    transform = cv2.createCLAHE(clipLimit=limit, tileGridSize=(across, down))
    text = f"clahe({limit}:{limit}, tile_grid_size={across}:{down}, p=1)"
    if pixels.ndim == 2:
        return text, transform.apply(pixels)
    lab = cv2.cvtColor(pixels, cv2.COLOR_RGB2LAB)
    lab[:, :, 0] = transform.apply(lab[:, :, 0])
    return text, cv2.cvtColor(lab, cv2.COLOR_LAB2RGB)


def brightness_contrast(pixels, brightness, contrast):
    text = f"random_brightness_contrast({brightness}:{brightness}, contrast_limit={contrast}:{contrast}, p=1)"
    return text, albucore.multiply_add(pixels.copy(), 1.0 + contrast, brightness * 255)


class Shifts:
    """In place of Python's random numbers: the fifth and the sixth that the first step of sample 0 draws, of seed 0."""
    def __init__(self):
        self.words = philox(0, [1 << 16, 0, 0, 0]) + philox(0, [1 << 16 | 1, 0, 0, 0])
        self.words = list(self.words)[4:6]

    def uniform(self, low, high):
        return low + (high - low) * (self.words.pop(0) >> 8) / 2**24


def motion_blur(pixels, size, angle, direction, is_shifted):
    kernel = create_motion_kernel(size, angle, direction, is_shifted, Shifts())
    height, width, half = *pixels.shape[:2], size // 2
    around = [numpy.pad(numpy.arange(length), half, mode="reflect") if length > 1 else numpy.zeros(size, int)
              for length in (height, width)]
    total = numpy.zeros(pixels.shape, int)
    for y, x in zip(*numpy.nonzero(kernel)):
        total += pixels[around[0][y:y + height]][:, around[1][x:x + width]]
    count = int(kernel.sum())
    mean = numpy.rint(total / count).astype(numpy.uint8)
    other = cv2.filter2D(pixels, -1, kernel / kernel.sum())
    assert abs(mean.astype(int) - other).max() <= 1 and (2 * total % (2 * count) == count)[mean != other].all()
    return (f"motion_blur({size}:{size}, allow_shifted={str(is_shifted).lower()}, angle_range={angle}:{angle}, "
            f"direction_range={direction}:{direction}, p=1)", mean)


def halves(low, high):
    """Numbers that float32 has."""
    return DICE.randint(int(low * 64), int(high * 64)) / 64


def steps(pixels):
    for quality in (1, 2, 25, 49, 50, 75, 90, 95, 99, 100, *(DICE.randint(1, 100) for _ in range(4))):
        yield jpeg(pixels, quality)
    for limit, across, down in ((1, 8, 8), (4, 8, 8), (40, 8, 8), (2, 1, 1), (1.5, 3, 2), (10000, 2, 3), (3, 64, 64),
                                *((halves(1, 9), DICE.randint(1, 9), DICE.randint(1, 9)) for _ in range(3))):
        yield clahe(pixels, limit, across, down)
    for brightness, contrast in ((0, 0), (0.5, -1), (-1, 10), (1, 10), *((halves(-1, 1), halves(-1, 1)) for _ in range(3))):
        yield brightness_contrast(pixels, brightness, contrast)
    for size in (3, 5, 7, 15, 31):
        for direction in (0, -1, 1, halves(-1, 1)):
            yield motion_blur(pixels, size, halves(0, 360), direction, False)
    for size in (3, 7, 21):
        yield motion_blur(pixels, size, DICE.choice((0, 45, 90, 180, halves(0, 360))), halves(-1, 1), True)


for channels, mode in ((3, "RGB"), (1, "L")):
    for width, height in ((1, 1), (1, 7), (9, 1), (2, 2), (3, 4), (4, 3), (5, 33), (8, 8), (16, 16), (17, 15), (40, 31), (64, 48)):
        pixels = picture(width, height, channels, DICE.random() < 0.5)
        write(kind="picture", channels=channels, width=width, height=height,
              pixels=base64.b64encode(pixels.tobytes()).decode())
        for text, changed in steps(pixels):
            write(kind="steps", text=text, fnv=fnv(changed.tobytes()))
