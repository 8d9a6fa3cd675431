#!/usr/bin/env python3
"""Writes tests/vectors/policies.jsonl: what torchvision's own classes AutoAugment, RandAugment and TrivialAugmentWide of
transforms.v2 make of pictures of Pillow, if torch.randint() and torch.rand() give them the numbers that the daemon draws.

    make_policy_vectors.py > tests/vectors/policies.jsonl

Needs torch, torchvision and Pillow; the file was made with torch 2.15.0, torchvision 0.29.2 and Pillow 13.0.0. Kinds:

    picture     `channels` (3: RGB, 1: L), `width`, `height`, and the `pixels`, base64
    policy      the `text` of a pipeline, a `sample` (seed 1, epoch 0), and the FNV-1a, 64 bits, of the result
"""
import base64
import json
import random
from unittest import mock

import numpy
import torch
from PIL import Image
from torchvision.transforms import v2

import replay
from make_warp_vectors import fnv

DICE = random.Random(28)
SEED, EPOCH = 1, 0


def write(**line):
    print(json.dumps(line, separators=(",", ":")))


class Fed:
    """torch's two functions, which hand out what the step of a policy would be given: numbers that torchvision does not
    ask for are drawn all the same."""
    def __init__(self, step, draws):
        self.step, self.draws, self.whole, self.parts = step, draws, [], []

    def randint(self, limit, size):
        if isinstance(self.step, v2.RandAugment):
            self.whole, self.parts = [self.draws.below(limit)], [self.draws.f32()]
        elif isinstance(self.step, v2.AutoAugment):
            self.whole = [self.draws.below(limit)]
            for name, probability, _ in self.step._policies[self.whole[0]]:
                happens, sign = self.draws.f32(), self.draws.f32()
                is_signed = self.step._AUGMENTATION_SPACE[name][1]
                self.parts += [happens, sign] if happens <= numpy.float32(probability) and is_signed else [happens]
        elif not self.whole:
            self.whole = [self.draws.below(limit), self.draws.below(self.step.num_magnitude_bins)]
            self.parts = [self.draws.f32()]
        return torch.tensor(self.whole.pop(0))

    def rand(self, size):
        return torch.tensor(self.parts.pop(0), dtype=torch.float32)


def draw_step():
    interpolation = DICE.choice(("nearest", "nearest", "bilinear", "bicubic"))
    look, bins = {"interpolation": interpolation, "fill": DICE.choice((0, DICE.randrange(256)))}, DICE.choice((31, 31, 2, 10, 40))
    kind = DICE.randrange(3)
    if kind == 0:
        policy = DICE.choice(("imagenet", "cifar10", "svhn"))
        return v2.AutoAugment(v2.AutoAugmentPolicy(policy), **look), ("auto_augment", {"policy": policy, **look})
    if kind == 1:
        return v2.TrivialAugmentWide(bins, **look), ("trivial_augment_wide", {"num_magnitude_bins": bins, **look})
    count, magnitude = DICE.choice((2, 2, 1, 3, 4)), min(DICE.choice((9, 15, 30)), bins - 1)
    return v2.RandAugment(count, magnitude, bins, **look), (
        "rand_augment", {"num_ops": count, "magnitude": magnitude, "num_magnitude_bins": bins, **look})


def write_all():
    torch.set_num_threads(1)
    number = 0
    for channels, mode in ((3, "RGB"), (1, "L")):
        for width, height in ((1, 1), (7, 5), (32, 32), (40, 23)):
            small = Image.frombytes(mode, (3, 4), DICE.randbytes(12 * channels))
            picture = small.resize((width, height), Image.BICUBIC)
            write(kind="picture", channels=channels, width=width, height=height,
                  pixels=base64.b64encode(picture.tobytes()).decode())
            for _ in range(150 if channels == 3 else 50):
                step, text = draw_step()
                fed = Fed(step, replay.Draws(SEED, EPOCH, number, 1))
                with mock.patch("torch.randint", fed.randint), mock.patch("torch.rand", fed.rand):
                    made = step(picture)
                write(kind="policy", text=replay.text([text]), sample=number, fnv=fnv(made.tobytes()))
                number += 1


write_all()
