#!/usr/bin/env python3
"""Makes kernels.ptx of kernels.cu with nvcc, as a part of `make kernels`. The text alone: a measurement can wait until the
driver has compiled it."""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(ROOT, "client", "cuda", "kernels"))
import make_images

PTX = os.path.join(HERE, "kernels.ptx")
# Not kernel.h of the product, which may grow without changing anything here.
SOURCES = [os.path.join(HERE, "kernels.h"), os.path.join(HERE, "kernels.cu")]
HEAD = """\
// The kernels of tests/bench/gpu as text, made by `make kernels`: change those, not this. Made from:
"""


def head():
    """The lines that say from what it was made."""
    return HEAD + "".join(f"// {make_images.sum_of(path)}  {os.path.basename(path)}\n" for path in SOURCES)


def is_current():
    with open(PTX, encoding="utf-8") as file:
        return file.read().startswith(head())


def main():
    nvcc, ptxas = make_images.find_tool("nvcc"), make_images.find_tool("ptxas")
    if nvcc is None:
        sys.exit("make kernels: nvcc is not installed (CUDA 12.8 or later): put it into PATH, or name it with NVCC=")
    with tempfile.TemporaryDirectory() as work:
        make_images.run(nvcc, "-std=c++17", "-O3", f"-I{ROOT}", "-ptx", f"-arch=compute_{make_images.ARCHITECTURES[0]}",
                        "-o", f"{work}/raw.ptx", os.path.join(HERE, "kernels.cu"))
        text = make_images.lower_ptx(ptxas, work)
    with open(PTX, "w", encoding="utf-8") as file:
        file.write(head() + text.replace(make_images.PTX_HEAD, ""))
    print(f"{os.path.getsize(PTX):7,} bytes  {os.path.relpath(PTX, ROOT)}")


if __name__ == "__main__":
    main()
