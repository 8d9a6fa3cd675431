#!/usr/bin/env python3
"""Writes planes.jsonl: what torchvision makes of stacks of masks, n x height x width, with steps that draw nothing, as a hash of the
bytes. Byte i of a stack is bits 16 to 23 of i * 2654435761 + n. Wide masks are height x width, of uint16; number i is bits 8 to 23
of i * 2654435761 + height. Needs torch and torchvision."""
import json
import os
import random


def fnv1a(content):
    hashed = 0xcbf29ce484222325
    for byte in content:
        hashed = (hashed ^ byte) * 0x100000001b3 % 2 ** 64
    return f"{hashed:016x}"


def step_of(functional, dice, masks):
    """One more step, and what it makes of the masks."""
    height, width = masks.shape[-2:]
    kind = dice.choice(("resize", "resize", "crop", "pad", "hflip", "vflip"))
    if kind == "resize":
        h, w = dice.randrange(1, 90), dice.randrange(1, 90)
        return f"resize({h}:{w}, interpolation={dice.choice(('bilinear', 'bicubic'))})", functional.resize(masks, [h, w])
    if kind == "crop":
        h, w = dice.randint(1, height + 10), dice.randint(1, width + 10)
        return f"center_crop({h}:{w})", functional.center_crop(masks, [h, w])
    if kind == "pad":
        mode = dice.choice(("constant", "edge", "reflect", "symmetric")) if len(masks) else "constant"
        most = min(9, height - 1, width - 1)
        sides = [dice.randint(0, most) for _ in range(4)]
        fill = dice.randrange(256) if mode == "constant" else 0
        return f"pad({':'.join(map(str, sides))}, fill={fill}, padding_mode={mode})", functional.pad(masks, sides, fill=fill, padding_mode=mode)
    return f"{kind}(1)", functional.horizontal_flip(masks) if kind == "hflip" else functional.vertical_flip(masks)


def main():
    import torch
    import torchvision
    from torchvision import tv_tensors
    from torchvision.transforms.v2 import functional
    dice, wide_dice = random.Random(14), random.Random(16)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "planes.jsonl"), "w", encoding="ascii") as file:
        file.write(json.dumps({"kind": "versions", "torch": torch.__version__, "torchvision": torchvision.__version__}) + "\n")
        for i in range(150):
            n, height, width = dice.randrange(8), dice.randrange(1, 80), dice.randrange(1, 80)
            content = bytes((k * 2654435761 + n) >> 16 & 255 for k in range(n * height * width))
            masks = tv_tensors.Mask(torch.tensor(list(content), dtype=torch.uint8).reshape(n, height, width))
            steps = []
            for _ in range(dice.randrange(6)):
                step, masks = step_of(functional, dice, masks)
                steps.append(step)
            line = {"kind": "planes", "n": n, "height": height, "width": width, "steps": " ".join(steps) or "decode",
                    "shape": list(masks.shape), "hash": fnv1a(bytes(masks.flatten().tolist()))}
            file.write(json.dumps(line) + "\n")
        for i in range(100):
            height, width = wide_dice.randrange(1, 60), wide_dice.randrange(1, 60)
            numbers = [(k * 2654435761 + height) >> 8 & 65535 for k in range(height * width)]
            mask = tv_tensors.Mask(torch.tensor(numbers, dtype=torch.int32).to(torch.uint16).reshape(height, width))
            steps = []
            for _ in range(wide_dice.randrange(6)):
                step, mask = step_of(functional, wide_dice, mask)
                steps.append(step)
            assert mask.dtype == torch.uint16
            content = b"".join(number.to_bytes(2, "little") for number in mask.flatten().tolist())
            line = {"kind": "wide", "height": height, "width": width, "steps": " ".join(steps) or "hflip(0)",
                    "shape": list(mask.shape), "hash": fnv1a(content)}
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
