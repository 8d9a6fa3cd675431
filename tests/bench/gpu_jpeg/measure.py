#!/usr/bin/env python3
"""The trial of docs/gpu-jpeg.md on a GPU: measure.py FOLDER

FOLDER: photographs below it. Prints a line a result: the bits, each kernel's time, pictures a second, and what a training step of
torchvision's ResNet-50 loses while pictures are decoded beside it. PARTS="bits rates training" chooses. Needs nvcc,
and torch for the last part."""
import ctypes
import glob
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.path.join(ROOT, os.environ.get("DLP_BUILD", "build/release"))
BATCHES = (64, 256, 1024)
STEPS = ("upload", "clear", "entropy", "blocks", "colours", "across", "down")
SIDE, REPEATS, SECONDS, TURNS = 224, 31, float(os.environ.get("SECONDS", "2")), 3


def library():
    lib = ctypes.CDLL(os.path.join(BUILD, "bench", "libgpu_jpeg.so"))
    lib.gj_open.restype, lib.gj_run.restype, lib.gj_upload_bytes.restype = ctypes.c_void_p, ctypes.c_double, ctypes.c_double
    lib.gj_open.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p)] + [ctypes.c_uint32] * 4 + [ctypes.c_int, ctypes.c_uint32]
    lib.gj_time.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_double)]
    lib.gj_run.argtypes = [ctypes.c_void_p, ctypes.c_double, ctypes.c_double]
    for function in (lib.gj_close, lib.gj_check, lib.gj_upload_bytes):
        function.argtypes = [ctypes.c_void_p]
    return lib


def image(folder):
    """The kernels, compiled for the machine's own GPU."""
    nvcc = os.environ.get("NVCC") or "/usr/local/cuda/bin/nvcc"
    source, path = os.path.join(folder, "all.cu"), os.path.join(folder, "all.fatbin")
    with open(source, "w", encoding="utf-8") as file:
        file.write("".join(f'#include "client/cuda/jpeg/{name}.cu"\n' for name in ("entropy", "pixels", "resize")))
    subprocess.run([nvcc, "-std=c++17", "-O3", "-fmad=false", f"-I{ROOT}", "-fatbin", "-arch=native", "-o", path, source], check=True)
    return path


class Trial:
    def __init__(self, lib, path, files, n_batches, batch, is_whole=False):
        self.lib, self.batch = lib, batch
        names = (ctypes.c_char_p * len(files))(*[name.encode() for name in files])
        self.gj = lib.gj_open(path.encode(), names, len(files), n_batches, batch, SIDE, is_whole, 1)

    def check(self):
        return self.lib.gj_check(self.gj)

    def times(self):
        us = (ctypes.c_double * len(STEPS))()
        self.lib.gj_time(self.gj, REPEATS, us)
        return {name: round(value, 1) for name, value in zip(STEPS, us)}

    def run(self, seconds=SECONDS, pace=0.0):
        return self.lib.gj_run(self.gj, seconds, pace)

    def close(self):
        self.lib.gj_close(self.gj)


def training(torch):
    """A step of ResNet-50 in bfloat16, channels last; and the pictures that it takes."""
    import torchvision
    model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    x = torch.randn(256, 3, SIDE, SIDE, device="cuda").to(memory_format=torch.channels_last)
    y = torch.randint(1000, (256,), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()

    def rate(seconds):
        n, begin = 0, time.monotonic()
        while time.monotonic() - begin < seconds:
            step()
            n += 1
            if n % 4 == 0:
                torch.cuda.synchronize()
        torch.cuda.synchronize()
        return 256 * n / (time.monotonic() - begin)

    rate(3)
    return rate


def beside(trial, rate):
    """What the training loses beside a decoder that delivers what the training takes, or another number of pictures a second,
    in turns. decoded: how many it delivered."""
    rows = []
    for _ in range(TURNS):
        alone, row = rate(SECONDS), {}
        for name, pace in (("as_consumed", alone), ("8000", 8000.0), ("12500", 12500.0), ("25000", 25000.0)):
            box = {}
            thread = threading.Thread(target=lambda pace=pace, box=box: box.update(rate=trial.run(SECONDS + 0.3, pace)))
            thread.start()
            time.sleep(0.15)
            row[name] = 1 - rate(SECONDS) / alone
            thread.join()
            row[name + "_decoded"] = box["rate"]
        rows.append({"alone": alone, **row})
    return {name: round(statistics.median(row[name] for row in rows), 4) for name in rows[0]}


def bits(lib, path, files):
    for is_whole in (True, False):
        trial = Trial(lib, path, files, 2, 200, is_whole)
        print(json.dumps({"part": "bits", "whole": is_whole, "pictures": 800, "differ": trial.check()}), flush=True)
        trial.close()


def rates(lib, path, files):
    for batch in BATCHES:
        trial = Trial(lib, path, files, 2, batch)
        times, before = trial.times(), resource.getrusage(resource.RUSAGE_SELF)
        found = [trial.run() for _ in range(TURNS)]
        after = resource.getrusage(resource.RUSAGE_SELF)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(json.dumps({"part": "rates", "batch": batch, "us": times, "pictures_per_s": round(statistics.median(found)),
                          "upload_bytes": round(lib.gj_upload_bytes(trial.gj)), "cpus": round(used / SECONDS / TURNS, 3)}), flush=True)
        trial.close()


def beside_training(lib, path, files):
    import torch
    trial = Trial(lib, path, files, 4, 256)
    for priority in (0, -1):    # of the training: -1 goes first
        with torch.cuda.stream(torch.cuda.Stream(priority=priority)):
            print(json.dumps({"part": "training", "priority": priority, **beside(trial, training(torch))}), flush=True)
    trial.close()


PARTS = {"bits": bits, "rates": rates, "training": beside_training}


def main():
    files = sorted(glob.glob(os.path.join(sys.argv[1], "**", "*.jpg"), recursive=True))[:400]
    lib = library()
    with tempfile.TemporaryDirectory() as folder:
        path = image(folder)
        for part in PARTS if not os.environ.get("PARTS") else os.environ["PARTS"].split():
            PARTS[part](lib, path, files)


if __name__ == "__main__":
    main()
