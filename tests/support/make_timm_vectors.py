#!/usr/bin/env python3
"""Writes tests/vectors/timm.jsonl: what timm's own RandAugment makes of pictures of Pillow, if the functions of the modules
random and numpy.random give it the numbers that the daemon draws.

    make_timm_vectors.py > tests/vectors/timm.jsonl

Needs timm, torchvision and Pillow; the file was made with timm 1.0.31 and Pillow 13.0.0. Kinds are those of
make_policy_vectors.py.
"""
import base64
import json
import random
import re
import statistics
from unittest import mock

import numpy
from PIL import Image
from timm.data import auto_augment

import replay
from make_warp_vectors import fnv

DICE = random.Random(30)
SEED, EPOCH = 1, 0
QUANTILE = statistics.NormalDist().inv_cdf


def write(**line):
    print(json.dumps(line, separators=(",", ":")))


class Fed:
    """In place of timm's modules: the numbers of a layer, of which each is taken at most once."""
    def __init__(self, draws):
        self.draws, self.layers = draws, []

    def choice(self, ops, n=None, replace=True, p=None):
        if n is None:       # random.choice() of two filters
            return ops[0 if self.filter < 0.5 else 1]
        assert p is None and replace
        for _ in range(n):
            op, happens, word, sign = self.draws.below(15), self.draws.f32(), self.draws.u32(), self.draws.f32()
            self.layers.append((op, happens, word, sign, self.draws.f32()))
        self.at = iter(self.layers)
        return [Layer(self, ops[layer[0]]) for layer in self.layers]

    def random(self):
        return self.parts.pop(0)

    def gauss(self, mean, deviation):
        return mean + deviation * float(numpy.float32(QUANTILE((self.word + 0.5) / 2**32)))

    def uniform(self, low, high):
        return low + (high - low) * ((self.word >> 8) / 2**24)


class Layer:
    def __init__(self, fed, op):
        self.fed, self.op = fed, op

    def __call__(self, picture):
        _, happens, self.fed.word, sign, self.fed.filter = next(self.fed.at)
        self.fed.parts = ([happens] if self.op.prob < 1 else []) + [sign]
        return self.op(picture)


class Numpy:
    """numpy.random, of which timm takes choice()."""
    def __init__(self, fed):
        self.random = fed


def draw_step():
    """timm's text, its parameters, and the arguments of our step."""
    magnitude, layers, chance = DICE.choice((9, 7, 10, 3, 15)), DICE.choice((2, 2, 1, 3, 4)), DICE.choice((0.5, 1.0, 0.8))
    deviation, most, increasing = DICE.choice((0, 0.5, 1.0, 101)), DICE.choice((10, 10, 20)), DICE.random() < 0.7
    filter_name, fill = DICE.choice(("random", "bicubic", "bilinear", "nearest")), tuple(DICE.choices(range(256), k=3))
    config = f"rand-m{magnitude}-n{layers}-p{chance}-mstd{deviation}-mmax{most}-inc{int(increasing)}"
    arguments = {"magnitude": magnitude, "num_layers": layers, "p": chance, "mstd": deviation, "mmax": most,
                 "increasing": increasing, "interpolation": filter_name, "fill": fill}
    return config, arguments


def made_by_timm(picture, config, arguments, draws):
    params = {"translate_const": 100, "img_mean": arguments["fill"]}
    if picture.mode == "L":
        params["img_mean"] = arguments["fill"] = arguments["fill"][0]
    if arguments["interpolation"] != "random":
        params["interpolation"] = getattr(Image.Resampling, arguments["interpolation"].upper())
    step, fed = auto_augment.rand_augment_transform(config, params), Fed(draws)
    with mock.patch.object(auto_augment, "random", fed), mock.patch.object(auto_augment, "np", Numpy(fed)):
        return step(picture)


def write_all():
    number = 0
    for channels, mode in ((3, "RGB"), (1, "L")):
        for width, height in ((1, 1), (7, 5), (32, 32), (40, 23)):
            picture = Image.frombytes(mode, (3, 4), DICE.randbytes(12 * channels)).resize((width, height), Image.BICUBIC)
            write(kind="picture", channels=channels, width=width, height=height,
                  pixels=base64.b64encode(picture.tobytes()).decode())
            for _ in range(150 if channels == 3 else 50):
                config, arguments = draw_step()
                try:
                    made = made_by_timm(picture, config, arguments, replay.Draws(SEED, EPOCH, number, 1))
                except ValueError as error:     # Pillow 13 keeps at least one bit
                    assert re.search("bits", str(error)), error
                    number += 1
                    continue
                write(kind="policy", text=replay.text([("timm_rand_augment", arguments)]), sample=number,
                      fnv=fnv(made.tobytes()))
                number += 1


if __name__ == "__main__":
    write_all()
