#!/usr/bin/env python3
"""Writes boxes.jsonl: random boxes, what torchvision's functions for bounding boxes make of them, those for
keypoints of their corners, and which pixels it takes when it resizes masks. Needs torch and torchvision."""
import json
import os
import random

import torch
import torchvision
from torchvision import tv_tensors
from torchvision.transforms.v2 import functional


def step_of(dice, boxes):
    height, width = boxes.canvas_size
    kind = dice.choice(("scale", "crop", "pad", "hflip", "vflip", "sanitize"))
    if kind == "sanitize":
        return [kind, dice.randrange(0, 40), dice.choice((0, 1, dice.randrange(2000))), width, height], boxes
    if kind == "scale":
        to = [dice.randrange(1, 1500), dice.randrange(1, 1500)]
        return [kind, width, height, to[1], to[0]], functional.resize(boxes, to)
    if kind == "crop":
        h, w = dice.randint(1, height), dice.randint(1, width)
        y, x = dice.randint(0, height - h), dice.randint(0, width - w)
        return [kind, x, y, w, h], functional.crop(boxes, y, x, h, w)
    if kind == "pad":
        left, top, right, bottom = (dice.randrange(40) for _ in range(4))
        return [kind, left, top, width + left + right, height + top + bottom], functional.pad(boxes, [left, top, right, bottom])
    if kind == "hflip":
        return [kind, width], functional.horizontal_flip(boxes)
    return [kind, height], functional.vertical_flip(boxes)


def moved(points, step):
    """What the step makes of points."""
    kind, rest = step[0], step[1:]
    if kind == "scale":
        return functional.resize(points, [rest[3], rest[2]])
    if kind == "crop":
        return functional.crop(points, rest[1], rest[0], rest[3], rest[2])
    if kind == "pad":
        height, width = points.canvas_size
        return functional.pad(points, [rest[0], rest[1], rest[2] - width - rest[0], rest[3] - height - rest[1]])
    if kind == "sanitize":
        return points
    return functional.horizontal_flip(points) if kind == "hflip" else functional.vertical_flip(points)


def bits(boxes):
    return boxes.as_subclass(torch.Tensor).view(torch.int32).flatten().tolist()


dice = random.Random(13)
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "boxes.jsonl"), "w", encoding="ascii") as file:
    file.write(json.dumps({"kind": "versions", "torch": torch.__version__, "torchvision": torchvision.__version__}) + "\n")
    for i in range(200):
        height, width = dice.randrange(1, 900), dice.randrange(1, 900)
        reach = 1.2 if i % 4 == 0 else 1  # some lie outside of their picture
        corners = [[dice.uniform(1 - reach, reach) * width, dice.uniform(1 - reach, reach) * height] * 2 for _ in range(dice.randrange(8))]
        corners = [[x, y, x + dice.uniform(0, 1) * (width - x), y + dice.uniform(0, 1) * (height - y)] for x, y, _, _ in corners]
        boxes = tv_tensors.BoundingBoxes(torch.tensor(corners, dtype=torch.float32).reshape(-1, 4), format="XYXY", canvas_size=(height, width))
        line = {"kind": "boxes", "in": bits(boxes), "steps": []}
        points = tv_tensors.KeyPoints(boxes.as_subclass(torch.Tensor).reshape(-1, 2), canvas_size=(height, width))
        stays = [True] * len(boxes)
        for _ in range(dice.randrange(1, 6)):
            step, boxes = step_of(dice, boxes)
            line["steps"].append(step)
            points = moved(points, step)
            if step[0] == "sanitize":  # all boxes are moved on, also those that it drops: each is compared
                valid = functional.sanitize_bounding_boxes(boxes, min_size=float(step[1]), min_area=float(step[2]))[1]
                stays = [one and bool(other) for one, other in zip(stays, valid)]
        file.write(json.dumps({**line, "out": bits(boxes), "kept": [int(one) for one in stays], "points": bits(points)}) + "\n")
    for i in range(60):
        n, to = dice.randrange(1, 400), dice.randrange(1, 200)
        mask = tv_tensors.Mask(torch.arange(n, dtype=torch.int32).reshape(1, 1, n))
        file.write(json.dumps({"kind": "mask", "n": n, "places": functional.resize(mask, [1, to]).flatten().tolist()}) + "\n")
