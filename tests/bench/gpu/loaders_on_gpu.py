"""Each loader as its users end it on a GPU: a function of (task, device) that yields float16 pictures, [64, 3, 224, 224],
without end. All crop, mirror and divide by 255; decoding, cropping and the last steps are done where the loader is best."""
import torch

from common import BATCH, PREFETCH, SIZE, read


def finished(pictures, device):
    """uint8 planes, in pinned memory or on the device, to what a model takes."""
    return pictures.to(device, non_blocking=True).to(torch.float16).div_(255)


def dlclient(task, device):
    import dlclient as client
    where = {} if device.type == "cpu" else {"device": str(device)}
    loader = client.Loader("photos", batch_size=BATCH, seed=task.seed, epochs=None, drop_last=True, framework="torch",
                           pipeline=f"random_resized_crop({SIZE}) hflip(0.5) to(float16) layout(nchw)", **where)
    for batch in loader:
        yield batch["image"]


def torch_pinned(task, device):
    """The decoder that was fastest among those with the same pixels on the CPU."""
    import decoders
    import peer_torch
    loader = torch.utils.data.DataLoader(
        peer_torch.Photos(task, decoders.tuned), BATCH, sampler=peer_torch.Order(task), num_workers=task.workers,
        prefetch_factor=PREFETCH, persistent_workers=True, drop_last=True, pin_memory=device.type == "cuda")
    for pictures in loader:
        yield finished(pictures, device)


def torch_gpu(task, device):
    """Files are read by threads, a batch ahead; decoded at once; each picture is cut and resized on the device."""
    import concurrent.futures
    import random

    import torchvision
    from torchvision.transforms.v2 import functional
    order = task.order()

    def cut(picture):
        left, top, wide, high = task.box(*picture.shape[1:])
        resized = functional.resized_crop(picture, top, left, high, wide, [SIZE, SIZE], antialias=True)
        return functional.horizontal_flip(resized) if random.random() < task.flip else resized

    def files(pool):
        return [pool.submit(lambda path: torch.frombuffer(bytearray(read(path)), dtype=torch.uint8),
                            task.paths[next(order)]) for _ in range(BATCH)]

    with concurrent.futures.ThreadPoolExecutor(task.workers) as pool:
        coming = files(pool)
        while True:
            here, coming = [one.result() for one in coming], files(pool)
            pictures = torchvision.io.decode_jpeg(here, mode=torchvision.io.ImageReadMode.RGB, device=str(device))
            yield finished(torch.stack([cut(picture) for picture in pictures]), device)


def dali(task, device):
    """Its hardware or hybrid decoder; the crop alone is decoded."""
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.plugin.pytorch import DALIGenericIterator

    @pipeline_def(batch_size=BATCH, device_id=device.index or 0, num_threads=task.workers,
                  prefetch_queue_depth=2, seed=task.seed + 1)
    def photos():
        encoded, _ = fn.readers.file(files=task.paths, random_shuffle=True, seed=task.seed, name="files")
        pictures = fn.decoders.image_random_crop(encoded, device="mixed", random_area=task.scale,
                                                  random_aspect_ratio=task.ratio)
        pictures = fn.resize(pictures, size=(SIZE, SIZE))
        return fn.crop_mirror_normalize(pictures, dtype=types.FLOAT16, output_layout="CHW", mean=[0.0] * 3,
                                        std=[255.0] * 3, mirror=fn.random.coin_flip(probability=task.flip))

    pipe = photos()
    pipe.build()
    for batch in DALIGenericIterator([pipe], ["image"]):    # without a size: it never ends
        yield batch[0]["image"]


def spdl(task, device):
    """Threads decode; one more puts batches into pinned memory, sends them on a stream of its own, and waits for that."""
    import decoders
    from spdl.pipeline import PipelineBuilder
    cut = decoders.tuned(task)
    stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def send(pictures):
        batch = torch.stack(pictures)
        if stream is None:
            return finished(batch, device)
        with torch.cuda.stream(stream):
            batch = finished(batch.pin_memory(), device)
        stream.synchronize()
        batch.record_stream(torch.cuda.default_stream(device))  # else its memory may be used again under the trainer's work
        return batch

    pipeline = (PipelineBuilder()
                .add_source(task.paths[index] for index in task.order())
                .pipe(cut, concurrency=task.workers)
                .aggregate(BATCH, drop_last=True)
                .pipe(send)
                .add_sink(PREFETCH)
                .build(num_threads=task.workers + 1))
    with pipeline.auto_stop():
        for batch in pipeline.get_iterator():
            yield batch


def ffcv(task, device):
    import numpy
    import peer_ffcv
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import Convert, RandomHorizontalFlip, ToDevice, ToTensor, ToTorchImage
    steps = [peer_ffcv.RandomResizedCropRGBImageDecoder((SIZE, SIZE), task.scale, task.ratio), RandomHorizontalFlip(task.flip),
             ToTensor(), ToDevice(device, non_blocking=True), ToTorchImage(), Convert(torch.float16)]
    indices = numpy.tile(numpy.arange(len(task.paths)), peer_ffcv.EPOCHS)
    loader = Loader(peer_ffcv.written(task), BATCH, num_workers=task.workers, order=OrderOption.RANDOM, os_cache=True,
                    drop_last=True, indices=indices, seed=task.seed, batches_ahead=PREFETCH, pipelines={"image": steps})
    while True:
        for (pictures,) in loader:
            yield pictures.div_(255)


LOADERS = {"dlclient": dlclient, "torch": torch_pinned, "torch_gpu": torch_gpu, "dali": dali, "spdl": spdl, "ffcv": ffcv}
