"""How far a peer's pixels are from Pillow's: pixels.py pick PHOTOS OUT | psnr FOLDER NAME=FILE...

pick copies one batch of 4:3 photographs into OUT. psnr compares the batches that trainer.py saved of that folder with what
Pillow makes of it (decoded whole, resized with its antialiasing bilinear filter), and prints {NAME: dB}; equal pixels are
null. A loader's order is its own, so each picture is compared with the one that it resembles most.
"""
import glob
import json
import os
import shutil
import sys

import numpy
from PIL import Image

N, SIZE = 64, 224


def pick(photos, out):
    """Beside, then renamed: a folder that is there is whole."""
    if os.path.isdir(out):
        return
    shutil.rmtree(out + ".new", ignore_errors=True)
    os.makedirs(os.path.join(out + ".new", "all"))
    n = 0
    for path in sorted(glob.glob(os.path.join(photos, "*", "*.jpg"))):
        with Image.open(path) as picture:
            fits = picture.width * 3 == picture.height * 4
        if fits and n < N:
            shutil.copy(path, os.path.join(out + ".new", "all", f"{n:03}.jpg"))
            n += 1
    if n < N:
        sys.exit(f"only {n} photographs are 4:3")
    os.rename(out + ".new", out)


def by_pillow(path):
    with Image.open(path) as picture:
        return numpy.asarray(picture.convert("RGB").resize((SIZE, SIZE), Image.Resampling.BILINEAR))


def psnr(pictures, references):
    """Of all pixels together; None for equal ones."""
    small = references[:, 8::16, 8::16].astype(numpy.int32)
    squares, found = 0.0, set()
    for picture in pictures:
        place = int(numpy.abs(small - picture[8::16, 8::16]).sum(axis=(1, 2, 3)).argmin())
        found.add(place)
        squares += float(((references[place].astype(numpy.float64) - picture) ** 2).mean())
    if len(found) < 0.9 * len(pictures):
        sys.exit(f"{len(pictures)} pictures resemble only {len(found)} photographs: these are others")
    return None if squares == 0 else float(10 * numpy.log10(255 ** 2 / (squares / len(pictures))))


def main():
    if sys.argv[1] == "pick":
        pick(*sys.argv[2:])
        return
    references = numpy.stack([by_pillow(path) for path in sorted(glob.glob(os.path.join(sys.argv[2], "*", "*.jpg")))])
    named = (argument.split("=", 1) for argument in sys.argv[3:])
    print(json.dumps({name: psnr(numpy.load(path), references) for name, path in named}))


if __name__ == "__main__":
    main()
