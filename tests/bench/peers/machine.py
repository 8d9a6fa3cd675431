"""What a result was measured on: the machine, the photographs, the versions."""
import os
import platform
import subprocess
import time

import environment
from environment import ROOT, say

SHOWN = ("torch", "torchvision", "pillow", "simplejpeg", "opencv-python-headless", "nvidia-dali-cuda130", "spdl",
         "tensorflow-cpu", "ffcv", "numba", "numpy")
BUSY = 0.5  # load that was there before us: figures beside other work are worth little


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), platform.machine())


def commit():
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout.strip() or "not from git"


def photographs(folder):
    sizes = [os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(folder) for name in names
             if name.endswith(".jpg")]
    return {"photos": len(sizes), "photo_kb": sum(sizes) / max(1, len(sizes)) / 1000}


def about(folder, load):
    """load: what ran here before the measurements."""
    if load > BUSY:
        say(f"something else ran on this machine (load {load:.1f}): the figures are worth little")
    installed = environment.versions()
    return {"cpu": cpu_model(), "cpus": len(os.sched_getaffinity(0)), "kernel": platform.release(), "load": load,
            "memory_gib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
            "date": time.strftime("%Y-%m-%d"), "dataloaderd": commit(), "python": platform.python_version(), **photographs(folder),
            "versions": {name: installed[name] for name in SHOWN if name in installed}}
