"""Scripts that use Loader(device="cuda") with the driver of the tests' own: what they find, and how they are run."""
import os
import textwrap

import pyclient
from gpu import STAND_IN
from harness import ROOT
from pyclient import need

SUPPORT = os.path.join(ROOT, "tests", "support")
PICTURES = dict(width=40, height=32)
CROP = "random_resized_crop(24) hflip(0.5)"

TOOLS = """\
import ctypes, weakref
import on_device
def busy(stream):                                         # so that the program's work is later than the library's
    if not hasattr(busy, "memory"): busy.memory = on_device.allocate(512)
    for _ in range(6): on_device.copy(busy.memory + 256, busy.memory, 256, stream)
def same(got, expected, what=""):
    got, expected = numpy.asarray(got), numpy.asarray(expected)
    assert got.shape == expected.shape and got.dtype == expected.dtype, (what, got.shape, expected.shape, got.dtype, expected.dtype)
    assert got.tobytes() == expected.tobytes(), (what, got.reshape(-1)[:8], expected.reshape(-1)[:8])
def clean():
    gc.collect()
    counts = on_device.counts()
    assert counts.n_violations == 0, counts.first_violation
    return counts
"""
WITH_TORCH = TOOLS + """\
import torch, torch_on_device
torch_on_device.install(int(os.environ.get("DLT_CUDA_DEVICES", 1)))
def host(tensor):
    on_device.wait(torch_on_device.State.current.cuda_stream)
    tensor = tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor
    return tensor.cpu().numpy()
"""


def on_device(box, daemon, source, *arguments, tools=TOOLS, driver=True, environment=None, **settings):
    """Runs a script with the tests' driver; its settings are those of DLT_CUDA_."""
    env = dict(environment or {}, PYTHONPATH=f"{pyclient.PACKAGE}:{SUPPORT}")
    if driver:
        env["LD_LIBRARY_PATH"] = STAND_IN
    env.update({f"DLT_CUDA_{name.upper()}": str(value) for name, value in settings.items()})
    return pyclient.trainer(box, daemon, tools + textwrap.dedent(source), *arguments, **env)


def with_torch(box, daemon, source, *arguments, **settings):
    need("torch")
    return on_device(box, daemon, source, *arguments, tools=WITH_TORCH, **settings)
