#!/usr/bin/env python3
"""One trainer of a GPU's comparison: trainer_on_gpu.py LOADER PHOTOS WORKERS alone|beside SECONDS

Prints a line of JSON a step: "imported", "warm", and what it has seen. `beside`: matrix products (bfloat16) are queued on a
stream of their own, a fifth of a second ahead, so that the device always has work; what they lose is what the loader takes.

GPU_DEVICE=cpu lets all of it run without a GPU, to see that it runs."""
import collections
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, "..", "peers")]
WARM_BATCHES, WARM_S = 16, 0.5
IN_FLIGHT = 4       # batches whose work may not be done yet
AHEAD_S = 0.2       # of products that are queued
N = 8192            # rows of their matrices


def say(value):
    print(json.dumps(value), flush=True)


class Cpu:
    """In the place of a device's streams and events."""
    rows = 64

    def record(self, _stream=None):
        return self

    def query(self):
        return True

    def synchronize(self):
        pass

    def new_stream(self):
        return None

    def on(self, _stream):
        import contextlib
        return contextlib.nullcontext()


class Gpu:
    rows = N

    def record(self, stream=None):
        import torch
        event = torch.cuda.Event()
        event.record(stream or torch.cuda.current_stream())
        return event

    def new_stream(self):
        import torch
        return torch.cuda.Stream()

    def on(self, stream):
        import torch
        return torch.cuda.stream(stream)


class Products:
    """Matrix products that never end."""

    def __init__(self, torch, where, device):
        self.torch, self.where, self.stream = torch, where, where.new_stream()
        with where.on(self.stream):
            self.a = torch.ones(where.rows, where.rows, dtype=torch.bfloat16, device=device)
            self.out = torch.empty_like(self.a)
        self.pending, self.n_done = collections.deque(), 0
        self.time_of(4)  # the first ones also load the library
        self.n_ahead = max(4, int(AHEAD_S / self.time_of(4)) + 1)

    def time_of(self, n):
        """Seconds of one, of n that are queued at once."""
        begin = time.monotonic()
        for _ in range(n):
            self.queue()
        self.pending[-1].synchronize()
        return (time.monotonic() - begin) / n

    def queue(self):
        with self.where.on(self.stream):
            self.torch.mm(self.a, self.a, out=self.out)
        self.pending.append(self.where.record(self.stream))

    def top_up(self):
        """Counts what is done and queues as many."""
        while self.pending and self.pending[0].query():
            self.pending.popleft()
            self.n_done += 1
        for _ in range(min(self.n_ahead, 200) - len(self.pending)):
            self.queue()

    def rate_alone(self, seconds):
        self.top_up()
        n, begin = self.n_done, time.monotonic()
        while time.monotonic() - begin < seconds:
            time.sleep(AHEAD_S / 4)
            self.top_up()
        return (self.n_done - n) / (time.monotonic() - begin)


class Consumer:
    """Takes batches; the work of at most IN_FLIGHT of them is not done yet."""

    def __init__(self, batches, where, products):
        self.batches, self.where, self.products = batches, where, products
        self.in_flight, self.n_images = collections.deque(), 0

    def take(self):
        batch = next(self.batches)
        if tuple(batch.shape[1:]) != (3, 224, 224) or str(batch.dtype) != "torch.float16":
            raise ValueError(f"{batch.dtype} {list(batch.shape)} is not what is compared")
        self.n_images += len(batch)
        self.in_flight.append(self.where.record())
        if len(self.in_flight) > IN_FLIGHT:
            self.in_flight.popleft().synchronize()
        if self.products:
            self.products.top_up()


def main():
    name, folder, workers, mode, seconds = sys.argv[1:]
    import torch
    torch.set_num_threads(1)
    device = torch.device(os.environ.get("GPU_DEVICE", "cuda:0"))
    where = Cpu() if device.type == "cpu" else Gpu()
    if device.type == "cuda":
        torch.cuda.init()
    import loaders_on_gpu
    from common import Task
    say("imported")
    products = Products(torch, where, device) if mode == "beside" else None
    alone = products.rate_alone(float(seconds)) if products else None
    consumer = Consumer(loaders_on_gpu.LOADERS[name](Task(folder, int(workers)), device), where, products)
    begin = time.monotonic()
    while consumer.n_images < WARM_BATCHES * 64 or time.monotonic() - begin < WARM_S:
        consumer.take()
    say("warm")
    n_images, n_products, begin = consumer.n_images, products.n_done if products else 0, time.monotonic()
    while time.monotonic() - begin < float(seconds):
        consumer.take()
    took = time.monotonic() - begin
    row = {"images_per_s": (consumer.n_images - n_images) / took}
    if products:
        row["gpu_share"] = (1 - (products.n_done - n_products) / took / alone) * 100
    say(row)
    sys.stdin.read()        # the watcher looks at our CPU time before we end
    os._exit(0)             # some loaders have threads that would be waited for


if __name__ == "__main__":
    main()
