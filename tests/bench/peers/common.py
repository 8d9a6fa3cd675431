"""What the peers share: the photographs' list, an order without end, the random crop, and the consumer's look at a batch."""
import math
import os
import random

import numpy

BATCH, SIZE = 64, 224
PAGE = 4096  # bytes: the consumer looks at one byte of each page, as a copy to a GPU would at all
PREFETCH = 4


class Task:
    """What one process is to load.

    whole: no flip, and every crop is the whole picture (all pictures are then 4:3): what remains of a peer's pipeline is
    how it decodes and resizes, which is compared with Pillow."""

    def __init__(self, folder, workers=1, seed=0, rank=0, world=1, whole=False):
        self.folder, self.workers, self.seed, self.rank, self.world, self.whole = folder, workers, seed, rank, world, whole
        self.scale = (1.0, 1.0) if whole else (0.08, 1.0)
        self.ratio = (4 / 3, 4 / 3) if whole else (3 / 4, 4 / 3)
        self.flip = 0.0 if whole else 0.5
        self.paths = sorted(os.path.join(place, name) for place, _, names in os.walk(folder) for name in names
                            if name.endswith(".jpg"))

    def order(self):
        """This rank's samples, shuffled anew each epoch, without end: an epoch's end would empty the queues of some
        peers, and with few photographs that would count more than it does in life."""
        epoch = 0
        while True:
            indices = list(range(len(self.paths)))
            random.Random(self.seed * 1000 + epoch).shuffle(indices)
            yield from indices[self.rank::self.world]
            epoch += 1

    def box(self, height, width):
        """torchvision's random crop: left, top, width, height."""
        low, high = math.log(self.ratio[0]), math.log(self.ratio[1])
        for _ in range(10):
            area = height * width * random.uniform(*self.scale)
            ratio = math.exp(random.uniform(low, high))
            wide, tall = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < wide <= width and 0 < tall <= height:
                return random.randint(0, width - wide), random.randint(0, height - tall), wide, tall
        side = min(width, height)
        return (width - side) // 2, (height - side) // 2, side, side


def look(batch):
    """A byte of each page."""
    return int(numpy.asarray(batch).reshape(-1)[::PAGE].sum())


def look_at_all(batch):
    """Every byte."""
    return int(numpy.asarray(batch).reshape(-1).view(numpy.uint64).sum())


def read(path):
    with open(path, "rb") as file:
        return file.read()
