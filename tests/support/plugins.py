"""Plug-ins for tests: compiled as their users do, and files of the example's formats."""
import os
import struct
import subprocess

from harness import ROOT, identity_pixels

HEADER = os.path.join(ROOT, "daemon", "plugin", "include")
EXAMPLE = os.path.join(ROOT, "docs", "plugins", "blocks.c")
SOURCES = os.path.join(ROOT, "tests", "plugins")
PARALLEL, SERIAL, PER_WORKER = 1, 2, 3


def compiled(box, name, source, *flags, header=HEADER):
    """Compiles a plug-in against the header alone; returns its folder."""
    folder = box.path("plugins")
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["cc", "-std=gnu11", "-O2", "-fPIC", "-shared", "-I", header, *flags,
                    "-o", os.path.join(folder, f"{name}.so"), source], check=True)
    os.chmod(folder, 0o755)
    os.chmod(os.path.join(folder, f"{name}.so"), 0o644)
    return folder


def blocks(box):
    return compiled(box, "blocks", EXAMPLE, "-Wall", "-Wextra", "-Werror")


def blk(number, width, height):
    """A picture of the example's codec."""
    return b"BLK1" + struct.pack("<II", height, width) + identity_pixels(number, width, height)
