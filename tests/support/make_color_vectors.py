#!/usr/bin/env python3
"""Writes tests/vectors/colors.jsonl: what Pillow's ImageOps and ImageEnhance make of pictures, for the steps invert,
posterize, solarize, autocontrast, equalize and sharpness.

    make_color_vectors.py > tests/vectors/colors.jsonl

Needs Pillow alone. The file was made with 9.4.0; 13.0.0 writes the same. Kinds:

    picture     `channels` (3: RGB, 1: L), `width`, `height`, and the `pixels`, base64
    steps       the text of a pipeline, and the FNV-1a, 64 bits, of what it makes of the picture above
"""
import base64
import json
import random

from PIL import Image, ImageEnhance, ImageOps

DICE = random.Random(26)


def write(**line):
    print(json.dumps(line, separators=(",", ":")))


def fnv(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return f"{value:016x}"


# ---- pictures: (width, height, function of channel, x and y) ----------------------------------------------------------

def noise(channel, x, y):
    return DICE.randrange(256)


def soft(channel, x, y):
    """A few levels in the middle, other ones in each channel."""
    return 60 + 20 * channel + (x * (3 + channel) + y * 2) % 97 + DICE.randrange(3)


def flat(channel, x, y):
    return (200, 0, 255)[channel]


def two_levels(channel, x, y):
    return (17, 18)[(x + y) % 2] if channel < 2 else 255 * (x % 2)


def crowded(channel, x, y):
    """Of 30 x 17 pixels nearly all have the lowest level, so that equalize computes levels far above 255."""
    return {(0, 0): 200, (1, 0): 3, (2, 0): 4}.get((x, y), 0) if channel != 1 else 255 - (x == 29)


SIZES = ((1, 1), (1, 9), (9, 1), (2, 2), (2, 7), (3, 3), (3, 2), (2, 3), (3, 8), (8, 3), (5, 7), (31, 17))
PICTURES = [(width, height, noise) for width, height in SIZES]
PICTURES += [(1, 1, flat), (6, 5, flat), (21, 40, two_levels), (30, 17, crowded), (40, 30, soft), (64, 48, soft)]

# ---- steps ------------------------------------------------------------------------------------------------------------

STEPS = [("invert(1)", ImageOps.invert), ("autocontrast(1)", ImageOps.autocontrast), ("equalize(1)", ImageOps.equalize)]
STEPS += [(f"posterize({bits}, p=1)", lambda p, bits=bits: ImageOps.posterize(p, bits)) for bits in range(1, 9)]
STEPS += [("posterize(0, p=1)", lambda p: p.point(lambda level: 0))]  # as 9.4 does; 13.0 refuses it
STEPS += [(f"solarize({level}, p=1)", lambda p, level=level: ImageOps.solarize(p, level))
          for level in (0, 0.001, 1, 100, 127.5, 128, 255, 255.5, 256)]
STEPS += [(f"sharpness({factor}, p=1)", lambda p, factor=factor: ImageEnhance.Sharpness(p).enhance(factor))
          for factor in (0, 0.001, 0.3, 0.9, 1, 1.1, 2, 7.3, 1000)]

for channels, mode in ((3, "RGB"), (1, "L")):
    for width, height, function in PICTURES:
        pixels = bytes(function(channel, x, y) for y in range(height) for x in range(width) for channel in range(channels))
        picture = Image.frombytes(mode, (width, height), pixels)
        write(kind="picture", channels=channels, width=width, height=height, pixels=base64.b64encode(pixels).decode())
        for text, change in STEPS:
            write(kind="steps", text=text, fnv=fnv(change(picture).tobytes()))
        for _ in range(5):  # some, one after the other
            chosen = [DICE.choice(STEPS) for _ in range(3)]
            changed = picture
            for _, change in chosen:
                changed = change(changed)
            write(kind="steps", text=" ".join(text for text, _ in chosen), fnv=fnv(changed.tobytes()))
