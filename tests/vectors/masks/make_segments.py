#!/usr/bin/env python3
"""Writes segments.jsonl: segmentations as COCO's annotations have them, and the masks that pycocotools' annToMask() makes of them, as a
hash of the bytes row by row.  make_segments.py [N [SEED [FILE]]]; needs pycocotools and numpy."""
import json
import math
import os
import random
import sys

import numpy
import pycocotools.mask as tools
from pycocotools.coco import COCO

from make_planes import fnv1a


def polygon_of(dice, height, width):
    kind = dice.randrange(5)
    n = dice.choice((3, 3, 4, 5, 8, 20))
    if kind == 0:  # a shape around a point
        x, y, size = dice.uniform(0, width), dice.uniform(0, height), dice.uniform(0.2, max(height, width))
        turns = sorted(dice.uniform(0, 2 * math.pi) for _ in range(n))
        corners = [(x + dice.uniform(.5, 1) * size * math.cos(turn), y + dice.uniform(.5, 1) * size * math.sin(turn)) for turn in turns]
    elif kind == 1:  # anything, also outside of the picture
        corners = [(dice.uniform(-width, 2 * width), dice.uniform(-height, 2 * height)) for _ in range(n)]
    elif kind == 2:  # on the places where rounding decides
        corners = [(dice.randint(-5, 10 * width + 5) / 10, dice.randint(-5, 10 * height + 5) / 10) for _ in range(n)]
    elif kind == 3:  # whole numbers, some corners twice
        corners = [(dice.randint(0, width), dice.randint(0, height)) for _ in range(n)]
        corners.insert(dice.randrange(n), corners[dice.randrange(n)])
        corners.insert(1, corners[0])
    else:  # smaller than a pixel
        x, y = dice.uniform(0, width), dice.uniform(0, height)
        corners = [(x + dice.uniform(0, 1.5), y + dice.uniform(0, 1.5)) for _ in range(n)]
    digits = dice.choice((0, 1, 2, 2, 2, 15))
    return [round(each, digits) for corner in corners for each in corner]


def runs_of(dice, height, width):
    if dice.randrange(2):
        mask = numpy.array([dice.random() < dice.choice((.1, .5, .9)) for _ in range(height * width)], dtype=numpy.uint8)
        mask = mask.reshape(height, width)
    else:
        mask = tools.decode(tools.merge(tools.frPyObjects([polygon_of(dice, height, width)], height, width)))
    if dice.randrange(2):
        rle = tools.encode(numpy.asfortranarray(mask))
        return {"size": rle["size"], "counts": rle["counts"].decode()}
    counts, last = [0], 0
    for value in mask.flatten(order="F").tolist():
        if value != last:
            counts.append(0)
            last = value
        counts[-1] += 1
    return {"counts": counts, "size": [height, width]}


def mask_of(segmentation, height, width):
    coco = COCO()
    coco.imgs = {1: {"height": height, "width": width}}
    return coco.annToMask({"image_id": 1, "segmentation": segmentation})


def main():
    n, seed = int(sys.argv[1]) if sys.argv[1:] else 150, int(sys.argv[2]) if sys.argv[2:] else 15
    path = sys.argv[3] if sys.argv[3:] else os.path.join(os.path.dirname(os.path.abspath(__file__)), "segments.jsonl")
    dice = random.Random(seed)
    with open(path, "w", encoding="ascii") as file:
        for i in range(n):
            height, width = dice.randrange(1, 20 if i % 3 else 60), dice.randrange(1, 20 if i % 3 else 60)
            segmentation = runs_of(dice, height, width) if i % 5 == 0 else [polygon_of(dice, height, width) for _ in range(dice.choice((1, 1, 2, 4)))]
            mask = mask_of(segmentation, height, width)
            file.write(json.dumps({"kind": "segments", "height": height, "width": width, "segmentation": json.dumps([segmentation]),
                                   "n": int(mask.sum()), "hash": fnv1a(mask.tobytes())}) + "\n")


main()
