"""DALI on CPUs alone, its pipeline run in the trainer's process; the batch is its own memory, not copied.

dali decodes the whole picture as libjpeg does by default and resizes with an antialiasing filter; dali_roi is DALI's fused
decoder as it is shipped, which decodes the crop only and upsamples colours in its plain way."""
import numpy
from nvidia.dali import fn, pipeline_def, types

from common import BATCH, SIZE


@pipeline_def(batch_size=BATCH, device_id=None, prefetch_queue_depth=2)
def photos(name, task):
    files, _ = fn.readers.file(files=task.paths, random_shuffle=True, shard_id=task.rank, num_shards=task.world,
                               seed=task.seed)
    if name == "dali_roi":
        pictures = fn.decoders.image_random_crop(files, random_area=task.scale, random_aspect_ratio=task.ratio)
        pictures = fn.resize(pictures, size=(SIZE, SIZE))
    else:
        pictures = fn.decoders.image(files, jpeg_fancy_upsampling=True)
        pictures = fn.random_resized_crop(pictures, size=(SIZE, SIZE), random_area=task.scale,
                                          random_aspect_ratio=task.ratio, interp_type=types.INTERP_TRIANGULAR)
    return fn.flip(pictures, horizontal=fn.random.coin_flip(probability=task.flip))


def batches(name, task):
    pipe = photos(name, task, num_threads=task.workers, seed=task.seed + 1)
    pipe.build()
    while True:
        yield numpy.asarray(pipe.run()[0].as_tensor())
