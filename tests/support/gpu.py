"""The stand-in for CUDA's driver, for tests in other processes, and whether there is a real one."""
import ctypes
import os

from harness import BUILD

STAND_IN = os.path.join(BUILD, "cuda")  # for LD_LIBRARY_PATH


def has_real_driver():
    """Then nothing says that there is none."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True
