#!/usr/bin/env python3
"""Writes tests/vectors/warps.jsonl: what torchvision's transforms.v2.functional makes of pictures of Pillow, of masks, of
boxes and of points, for the steps random_rotation, random_affine and random_perspective.

    make_warp_vectors.py > tests/vectors/warps.jsonl

Needs torch, torchvision and Pillow; the file was made with torch 2.15.0, torchvision 0.29.2 and Pillow 13.0.0. What a
step draws is drawn here as well (replay.py). A line has

    mode, width, height, pixels   a picture; base64
    sample, text                  its number, with seed 1 and epoch 0, and the pipeline
    out, fnv                      width, height and FNV-1a, 64 bits, of the result's bytes
    mask, mask_fnv                numbers of 8 bits, base64, and the digest of what becomes of them
    in, boxes, points             float32 as int32: coordinates, what they become as boxes, and as points
"""
import base64
import json
import random
import struct
import sys

import numpy
import torch
from PIL import Image
from torchvision import tv_tensors
from torchvision.transforms.functional import _get_perspective_coeffs
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional

import replay

DICE = random.Random(27)
SEED, EPOCH = 1, 0
MODES = {"RGB": 3, "L": 1, "RGBA": 4, "LA": 2, "P": 1, "I;16": 2}  # bytes of a pixel


def fnv(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return f"{value:016x}"


def bits(numbers):
    data = numpy.asarray(numbers, dtype=numpy.float32).tobytes()
    return list(struct.unpack(f"<{len(data) // 4}i", data))


# ---- steps: the function, and its arguments except those of pictures alone ---------------------------------------------

def rotation(draws, size, arguments):
    angle = replay.number(draws, *arguments["degrees"])
    return functional.rotate, {"angle": angle, "expand": arguments["expand"], "center": arguments.get("center")}


def affine(draws, size, arguments):
    angle = replay.number(draws, *arguments["degrees"])
    translate = [round(replay.number(draws, -share * side, share * side)) for share, side in zip(arguments["translate"], size)]
    scale = replay.number(draws, *arguments["scale"])
    shear = [replay.number(draws, *arguments["shear"][i:i + 2]) for i in (0, 2)]
    return functional.affine, {"angle": angle, "translate": translate, "scale": scale, "shear": shear,
                               "center": arguments.get("center")}


def perspective(draws, size, arguments):
    (width, height), _ = size, draws.f32()
    corners = replay.perspective_corners(draws, *size, arguments["distortion_scale"])
    return functional.perspective, {"startpoints": [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]],
                                    "endpoints": [list(corner) for corner in corners]}


STEPS = {"random_rotation": rotation, "random_affine": affine, "random_perspective": perspective}


def draw_pair(low, high):
    return tuple(sorted(round(DICE.uniform(low, high), 2) for _ in range(2)))


def draw_arguments(name, mode):
    arguments = {"interpolation": "nearest" if mode == "I;16" else DICE.choice(("nearest", "bilinear", "bicubic")),
                 "fill": DICE.choice((0, DICE.randrange(256)))}
    if name == "random_perspective":
        return {**arguments, "distortion_scale": DICE.choice((0.5, 1, round(DICE.random(), 2))), "p": 1}
    turn = DICE.choice((0, 90, 180, 270, -90))
    arguments["degrees"] = DICE.choice(((turn, turn), draw_pair(-360, 360), draw_pair(-30, 30)))
    if DICE.random() < 0.3:
        arguments["center"] = (DICE.randint(-3, 20), round(DICE.uniform(-3, 20), 1))
    if name == "random_rotation":
        return {**arguments, "expand": DICE.random() < 0.4}
    flat = DICE.random() < 0.3
    if flat:
        arguments["degrees"] = (0, 0)
    return {**arguments, "translate": (DICE.choice((0, 0.3)), DICE.choice((0, 0.4))),
            "scale": DICE.choice(((1, 1), draw_pair(0.2, 3))),
            "shear": (0, 0, 0, 0) if flat else (*draw_pair(-40, 40), *draw_pair(-20, 20))}


# ---- cases -------------------------------------------------------------------------------------------------------------

def singular(name, size, step):
    """No such perspective: torchvision makes something of it, or fails."""
    return name == "random_perspective" and not replay.perspective_of(step["endpoints"], *size)


def clamped(boxes, picture):
    """To the picture that there is. The canvas that torchvision computes for boxes which were turned onto a larger one is
    often larger or smaller by a pixel than the canvas of the picture."""
    return functional.clamp_bounding_boxes(boxes.as_subclass(torch.Tensor), format=boxes.format, canvas_size=picture.size[::-1],
                                           clamping_mode="soft")


def solved_alike(picture, out, arguments, step):
    """Do the exact coefficients of a perspective give torchvision's picture? Its own are the same in float32, but where
    one is exactly 0, they have up to 1e-12; levels that are exactly whole numbers then become the next lower ones."""
    exact = replay.perspective_of(step["endpoints"], *picture.size)
    solved = _get_perspective_coeffs(**step)
    assert all(a == b or (a == 0 and abs(b) < 1e-12) for a, b in zip(exact, solved)), (exact, solved)
    fill = (arguments["fill"],) * len(picture.getbands())
    return out.tobytes() == replay.warp(picture, Image.PERSPECTIVE, exact, arguments["interpolation"],
                                        fill if len(fill) > 1 else fill[0]).tobytes()


def make(number):
    name, mode = DICE.choice(list(STEPS)), DICE.choice(("RGB", *MODES))
    size = DICE.choice(((DICE.randint(1, 9), DICE.randint(1, 9)), (DICE.randint(10, 24), DICE.randint(10, 24)), (17, 17)))
    arguments = draw_arguments(name, mode)
    function, step = STEPS[name](replay.Draws(SEED, EPOCH, number, 1), size, arguments)
    look = {"interpolation": InterpolationMode(arguments["interpolation"]), "fill": arguments["fill"]}
    if singular(name, size, step):
        return None
    pixels = DICE.randbytes(size[0] * size[1] * MODES[mode])
    picture = Image.frombytes(mode, size, pixels)
    out = function(picture, **step, **look)
    if name == "random_perspective" and not solved_alike(picture, out, arguments, step):
        return None
    mask = numpy.frombuffer(DICE.randbytes(size[0] * size[1]), dtype=numpy.uint8).reshape(size[1], size[0])
    moved = function(tv_tensors.Mask(torch.tensor(mask)), **step, **look).numpy()
    corners = [[DICE.uniform(-2, side + 2) for side in size] for _ in range(4)]
    boxes = [[min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]), max(a[1], b[1])] for a, b in (corners[:2], corners[2:])]
    coordinates = torch.tensor(boxes, dtype=torch.float32)
    canvas = {"canvas_size": size[::-1]}
    new_boxes = clamped(function(tv_tensors.BoundingBoxes(coordinates, format="XYXY", clamping_mode=None, **canvas), **step), out)
    new_points = function(tv_tensors.KeyPoints(coordinates.reshape(-1, 2), **canvas), **step)
    if moved.shape != out.size[::-1]:
        return None  # torch and Pillow expand to canvases of different sizes: there is none for both
    text = ("" if mode == "RGB" else f"decode(mode={mode}) ") + replay.text([(name, arguments)])
    return {"kind": "warp", "mode": mode, "width": size[0], "height": size[1], "pixels": base64.b64encode(pixels).decode(),
            "sample": number, "text": text, "out": list(out.size), "fnv": fnv(out.tobytes()),
            "mask": base64.b64encode(mask.tobytes()).decode(), "mask_fnv": fnv(moved.tobytes()), "in": bits(coordinates),
            "boxes": bits(new_boxes.numpy()), "points": bits(new_points.numpy())}


def write_all():
    torch.set_num_threads(1)
    lines = [make(number) for number in range(450)]
    print(f"{lines.count(None)} left out", file=sys.stderr)
    for line in lines:
        if line:
            print(json.dumps(line, separators=(",", ":")))


if __name__ == "__main__":
    write_all()
