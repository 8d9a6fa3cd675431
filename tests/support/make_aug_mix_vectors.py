#!/usr/bin/env python3
"""Writes tests/vectors/aug_mix.jsonl: what torchvision's own class AugMix of transforms.v2 makes of pictures of Pillow, if
torch's functions give it the numbers that the daemon draws.

    make_aug_mix_vectors.py > tests/vectors/aug_mix.jsonl

Needs torch, torchvision and Pillow, and a CPU with AVX2; the file was made with torch 2.15.0, torchvision 0.29.2 and Pillow
13.0.0. Kinds are those of make_policy_vectors.py.
"""
import base64
import json
import random

import torch
from PIL import Image

import replay
from make_warp_vectors import fnv

DICE = random.Random(31)
SEED, EPOCH = 1, 0


def write(**line):
    print(json.dumps(line, separators=(",", ":")))


def draw_arguments(channels):
    fill = DICE.choice((None, None, 0, DICE.randrange(256), tuple(DICE.randrange(256) for _ in range(channels))))
    given = {"severity": DICE.choice((3, 3, 1, 6, 10)), "mixture_width": DICE.choice((3, 3, 1, 2, 5, 16)),
             "chain_depth": DICE.choice((-1, -1, -1, 1, 2, 4)), "alpha": DICE.choice((1.0, 1.0, 0.25, 0.01, 4.0, 100.0)),
             "all_ops": DICE.random() < 0.7, "interpolation": DICE.choice(("bilinear", "bilinear", "nearest"))}
    return given if fill is None or (isinstance(fill, tuple) and channels == 1) else {**given, "fill": fill}


def write_all():
    torch.set_num_threads(1)
    number = 0
    for channels, mode in ((3, "RGB"), (1, "L")):
        for width, height in ((1, 1), (2, 9), (7, 5), (32, 32), (40, 23), (61, 97), (300, 20)):
            small = Image.frombytes(mode, (3, 4), DICE.randbytes(12 * channels))
            picture = small.resize((width, height), Image.BICUBIC)
            write(kind="picture", channels=channels, width=width, height=height,
                  pixels=base64.b64encode(picture.tobytes()).decode())
            for _ in range(90 if channels == 3 else 30):
                arguments = draw_arguments(channels)
                made = replay.aug_mix(picture, replay.Draws(SEED, EPOCH, number, 1), **arguments)
                write(kind="policy", text=replay.text([("aug_mix", arguments)]), sample=number, fnv=fnv(made.tobytes()))
                number += 1


if __name__ == "__main__":
    write_all()
