#!/usr/bin/env python3
"""Makes the kernels' images with nvcc: `make kernels`.  make_images.py [FOLDER]

The images lie in the tree, in client/cuda/kernels/generated, so that nothing but a change of a kernel needs nvcc:

    kernels.fatbin   machine code for each of ARCHITECTURES; each serves the later ones of its generation as well
    kernels.ptx      the same as text, which the driver compiles for whatever else it finds
    stamp            what the two were made from: a sum for each file, and nvcc's version

All .cu files are one program for nvcc, which becomes one module: their names, also those of static functions, differ.
"""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
IMAGES = os.path.join(HERE, "generated")
FATBIN, PTX, STAMP = "kernels.fatbin", "kernels.ptx", "stamp"

# A100, H100 and H200, B200, RTX 50
ARCHITECTURES = (80, 90, 100, 120)
# The first version of PTX that knows sm_80, and all later ones.
PTX_VERSIONS = [f"7.{i}" for i in range(9)] + [f"8.{i}" for i in range(9)] + ["9.0"]
PTX_HEAD = """\
// The kernels of client/cuda/kernels as text, made by `make kernels`: change those, not this.
//
// nvcc writes its own version of PTX here, and a driver refuses one that is newer than itself: 9.0 needs driver 580. The
// kernels use nothing new, so this is the lowest version with which ptxas takes them for each of the architectures.
"""


class Failed(Exception):
    """A tool refused; the text says why."""


def sources():
    """The files that the images are made from."""
    names = sorted(name for name in os.listdir(HERE) if name.endswith(".cu"))
    headers = sorted(name for name in os.listdir(HERE) if name.endswith(".h") and name not in ("cpu.h", "images.h"))
    return names, headers


def find_tool(name):
    """The tool's path, of $NVCC's folder, $PATH or CUDA's usual place; None if there is none."""
    folder = os.path.dirname(os.environ.get("NVCC", ""))
    return shutil.which(name, path=os.pathsep.join([folder] * bool(folder) + [os.environ.get("PATH", ""), "/usr/local/cuda/bin"]))


def run(*command):
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}:\n{done.stdout}")
    return done.stdout


def nvcc_version(nvcc):
    return re.search(r"V([0-9.]+)", run(nvcc, "--version"))[1]


# ---- the stamp ------------------------------------------------------------------------------------------------------

def sum_of(path):
    """The sum of a source without its comments and blanks: those change no image, and may be changed without nvcc."""
    with open(path, "rb") as file:
        data = file.read()
    if path.endswith((".cu", ".h")):
        text = re.sub(r'/\*.*?\*/|//[^\n]*|("(?:[^"\\\n]|\\.)*")', lambda found: found[1] or " ", data.decode(), flags=re.S)
        data = re.sub(r"\\\n|\s", "", text).encode()
    return hashlib.sha256(data).hexdigest()


def stamp_of(folder, version):
    """The stamp's text for the sources as they are and the images in a folder."""
    names, headers = sources()
    paths = [os.path.join(HERE, name) for name in names + headers] + [os.path.join(folder, name) for name in (FATBIN, PTX)]
    return f"nvcc {version}\n" + "".join(f"{sum_of(path)}  {os.path.basename(path)}\n" for path in paths)


def stamp_in(folder):
    with open(os.path.join(folder, STAMP), encoding="utf-8") as file:
        return file.read()


def version_in(folder):
    """The version of the nvcc that made the images in a folder."""
    return stamp_in(folder).split("\n", 1)[0].replace("nvcc ", "", 1)


# ---- making ---------------------------------------------------------------------------------------------------------

def compile_all(nvcc, work):
    """Compiles cubins and PTX in a folder. Returns for each (architecture, kernel) the registers and bytes of local
    memory that it takes."""
    whole = os.path.join(work, "kernels.cu")
    with open(whole, "w", encoding="utf-8") as file:
        file.writelines(f'#include "client/cuda/kernels/{name}"\n' for name in sources()[0])
    # A product and a sum that are done as one (a fused multiply-add) are rounded once, and the CPU's are rounded twice:
    # color.cu must have its bits. The text then asks for .rn everywhere, which a driver that compiles it must not fuse.
    common = (nvcc, "-std=c++17", "-O3", "-fmad=false", f"-I{ROOT}")
    usage = {}
    for architecture in ARCHITECTURES:
        told = run(*common, "-cubin", f"-arch=sm_{architecture}", "-Xptxas", "-v", "-o", f"{work}/{architecture}.cubin", whole)
        found = re.findall(r"properties for (\w+)\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\n"
                           r".*?Used (\d+) registers", told)
        for name, *local, n_registers in found:
            usage[architecture, name] = {"registers": int(n_registers), "local": sum(map(int, local))}
    run(*common, "-ptx", f"-arch=compute_{ARCHITECTURES[0]}", "-o", f"{work}/raw.ptx", whole)
    return usage


def lower_ptx(ptxas, work):
    """The text of PTX in the lowest version that does."""
    with open(f"{work}/raw.ptx", encoding="utf-8") as file:
        text = re.sub(r"^//.*\n", "", file.read(), flags=re.M)
    for version in PTX_VERSIONS:
        lowered = PTX_HEAD + re.sub(r"^\.version .*$", f".version {version}", text, flags=re.M)
        with open(f"{work}/lowered.ptx", "w", encoding="utf-8") as file:
            file.write(lowered)
        try:
            for architecture in ARCHITECTURES:
                run(ptxas, f"-arch=sm_{architecture}", "-o", f"{work}/lowered.cubin", f"{work}/lowered.ptx")
        except Failed as failed:
            reason = failed
            continue
        return re.sub(r"\n{2,}", "\n\n", lowered)
    raise reason


def make(nvcc, folder):
    """Makes the images in a folder. Returns compile_all()'s table."""
    ptxas, fatbinary = find_tool("ptxas"), find_tool("fatbinary")
    with tempfile.TemporaryDirectory() as work:
        usage = compile_all(nvcc, work)
        ptx = lower_ptx(ptxas, work)
        os.makedirs(folder, exist_ok=True)
        run(fatbinary, "-64", "--compress-all", f"--create={os.path.join(folder, FATBIN)}",
            *(f"--image3=kind=elf,sm={architecture},file={work}/{architecture}.cubin" for architecture in ARCHITECTURES))
    with open(os.path.join(folder, PTX), "w", encoding="utf-8") as file:
        file.write(ptx)
    stamp = stamp_of(folder, nvcc_version(nvcc))
    with open(os.path.join(folder, STAMP), "w", encoding="utf-8") as file:
        file.write(stamp)
    return usage


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else IMAGES
    nvcc = find_tool("nvcc")
    if nvcc is None:
        sys.exit("make kernels: nvcc is not installed (CUDA 12.8 or later): put it into PATH, or name it with NVCC=")
    try:
        usage = make(nvcc, folder)
    except Failed as failed:
        sys.exit(f"make kernels: {failed}")
    for (architecture, name), used in sorted(usage.items()):
        print(f"sm_{architecture:<4} {name:24} {used['registers']:3} registers, {used['local']} bytes of local memory")
    for name in (FATBIN, PTX):
        print(f"{os.path.getsize(os.path.join(folder, name)):7,} bytes  {name}")


if __name__ == "__main__":
    main()
