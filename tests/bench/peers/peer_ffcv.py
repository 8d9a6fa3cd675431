"""FFCV: threads in the trainer's process, from a file of its own that is written before.

It decodes each JPEG whole and resizes with OpenCV's INTER_AREA. Its writer encodes the photographs anew: at QUALITY they are
about as large as before."""
import os
import sys
import tempfile

import numpy
from ffcv.fields import RGBImageField
from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import RandomHorizontalFlip
from ffcv.writer import DatasetWriter

from common import BATCH, PREFETCH, SIZE

QUALITY = 92
EPOCHS = 50  # that are made one, so that none ends


class Pictures:
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        from PIL import Image
        with Image.open(self.paths[index]) as picture:
            return (picture.convert("RGB"),)


def written(task):
    """The file beside the photographs' folder, written once."""
    path = task.folder.rstrip("/") + ".beton"
    if not os.path.exists(path):
        with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as folder:
            new = os.path.join(folder, "new")
            writer = DatasetWriter(new, {"image": RGBImageField(write_mode="jpg", jpeg_quality=QUALITY)}, num_workers=1)
            writer.from_indexed_dataset(Pictures(task.paths))
            os.rename(new, path)
    return path


def prepare(task):
    print(f"ffcv: {os.path.getsize(written(task)) >> 20} MiB of photographs", file=sys.stderr)


def batches(name, task):
    steps = [RandomResizedCropRGBImageDecoder((SIZE, SIZE), task.scale, task.ratio)]
    if task.flip:
        steps.append(RandomHorizontalFlip(task.flip))
    indices = numpy.arange(len(task.paths)) if task.whole else numpy.tile(numpy.arange(len(task.paths)), EPOCHS)
    loader = Loader(written(task), BATCH, num_workers=task.workers, order=OrderOption.RANDOM, os_cache=True, drop_last=True,
                    indices=indices, seed=task.seed, batches_ahead=PREFETCH, pipelines={"image": steps})
    while True:
        for (pictures,) in loader:
            yield pictures
