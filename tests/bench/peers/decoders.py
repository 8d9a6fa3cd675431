"""What is done to one photograph by those who write it in Python: the fast ways that people use.

Each takes a path and gives the finished uint8 picture. torch_io: torchvision's decoder and antialiased resize on tensors.
tuned: simplejpeg's decoder, the crop cut out, torch's antialiased resize: the fastest with the same pixels. linear: OpenCV's
decoder and INTER_LINEAR, which does not antialias."""
import importlib
import random

import numpy
import torch

from common import SIZE, read


def torch_io(task):
    import torchvision
    from torchvision.transforms import v2
    steps = v2.Compose([v2.RandomResizedCrop(SIZE, task.scale, task.ratio, antialias=True),
                        v2.RandomHorizontalFlip(task.flip)])
    rgb = torchvision.io.ImageReadMode.RGB
    return lambda path: steps(torchvision.io.decode_jpeg(torchvision.io.read_file(path), mode=rgb))


def tuned(task):
    import simplejpeg

    def cut(path):
        picture = simplejpeg.decode_jpeg(read(path), "RGB")
        left, top, wide, high = task.box(*picture.shape[:2])
        crop = torch.from_numpy(picture[top:top + high, left:left + wide]).permute(2, 0, 1)[None]
        resized = torch.nn.functional.interpolate(crop, (SIZE, SIZE), mode="bilinear", antialias=True)[0]
        return resized.flip(-1) if random.random() < task.flip else resized

    return cut


def linear(task):
    import cv2
    cv2.setNumThreads(0)

    def cut(path):
        picture = cv2.imdecode(numpy.fromfile(path, numpy.uint8), cv2.IMREAD_COLOR_RGB)
        left, top, wide, high = task.box(*picture.shape[:2])
        resized = cv2.resize(picture[top:top + high, left:left + wide], (SIZE, SIZE), interpolation=cv2.INTER_LINEAR)
        return torch.from_numpy(cv2.flip(resized, 1) if random.random() < task.flip else resized)

    return cut


def pillow(task):
    from PIL import Image
    from torchvision.transforms import v2
    steps = v2.Compose([v2.RandomResizedCrop(SIZE, task.scale, task.ratio), v2.RandomHorizontalFlip(task.flip)])

    def cut(path):
        with Image.open(path) as picture:
            return torch.from_numpy(numpy.array(steps(picture.convert("RGB"))))

    return cut


MODULES = {torch_io: ("torchvision.io", "torchvision.transforms.v2"), tuned: ("simplejpeg",), linear: ("cv2",),
           pillow: ("PIL.Image", "torchvision.transforms.v2")}


def load(decoder):
    """Imports what it needs, and nothing else: before the first batch's time begins and before workers are forked."""
    for name in MODULES[decoder]:
        importlib.import_module(name)
