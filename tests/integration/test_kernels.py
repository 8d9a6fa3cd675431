#!/usr/bin/env python3
"""The images of the GPU's kernels, which lie in the tree, were made of the kernels as they are now."""
import os
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "..", "client", "cuda", "kernels")]
import make_images
from harness import Skip, Table, case, equal, main

MOST_REGISTERS = 40  # of a thread: 6 blocks of 256 threads fit a multiprocessor, which finish.c counts on
MADE = {}


def images_of_now(box):
    """A folder with images that nvcc has made of the kernels just now, and what each kernel takes; made once."""
    nvcc = make_images.find_tool("nvcc")
    if nvcc is None:
        raise Skip("nvcc is not installed: whether the images are what it makes of the kernels is not known")
    if not MADE:
        MADE["usage"] = make_images.make(nvcc, box.path("images"))
        with open(box.path("images/" + make_images.PTX), encoding="utf-8") as file:
            MADE["ptx"] = file.read()
        MADE["version"] = make_images.version_in(box.path("images"))
    return MADE


def kernel_names():
    """The kernels of the lists in the headers."""
    names = set()
    for name in make_images.sources()[1]:
        with open(os.path.join(make_images.HERE, name), encoding="utf-8") as file:
            names.update(re.findall(r"\bX\((dlk_\w+)", file.read()))
    return names


@case("the images are of the kernels as they are")
def _(box):
    version = make_images.version_in(make_images.IMAGES)
    stamped = make_images.stamp_in(make_images.IMAGES).splitlines()
    now = make_images.stamp_of(make_images.IMAGES, version).splitlines()
    changed = sorted({line.split()[-1] for line in set(stamped) ^ set(now)})
    if changed:
        raise AssertionError(f"{', '.join(changed)}: not what the images were made of, or changed since: run make kernels")


@case("a comment, a blank and a broken line may be changed without nvcc, and nothing else")
def _(box):
    def sum_of(text):
        path = box.path("a.cu")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return make_images.sum_of(path)

    same = sum_of('#define A(x) x\nint a = 1; char *b = "/* b */";\n')
    equal(sum_of('#define A(x) \\\n   x\nint a =  1; /* why\n */ char * b = "/* b */"; // so\n'), same)
    equal(sum_of('#define A(x) x\nint a = 2; char *b = "/* b */";\n') == same, False)
    equal(sum_of('#define A(x) x\nint a = 1; char *b = "/* c */";\n') == same, False)


@case("the text of the images holds all kernels, and asks for nothing newer than PTX 7.0, which driver 450 knows")
def _(box):
    with open(os.path.join(make_images.IMAGES, make_images.PTX), encoding="utf-8") as file:
        text = file.read()
    equal(set(re.findall(r"^\.visible \.entry (\w+)\(", text, re.M)), kernel_names())
    equal(re.findall(r"^\.version (.*)$", text, re.M), ["7.0"])
    equal(re.findall(r"^\.target (.*)$", text, re.M), ["sm_80"])
    equal(re.findall(r".*\.local.*", text), [])


@case("no product and sum are one operation, which would round once where the CPU rounds twice")
def _(box):
    with open(os.path.join(make_images.IMAGES, make_images.PTX), encoding="utf-8") as file:
        text = file.read()
    equal(re.findall(r".*\b(?:fma|mad)\.[a-z.]*f(?:32|64)\b.*", text), [], "fused")
    equal(re.findall(r".*\b(?:add|sub|mul|div)\.(?:ftz\.|approx\.|full\.)?f(?:32|64)\b.*", text), [],
          "without .rn, so that a driver may fuse or approximate them")
    equal(len(re.findall(r"\bmul\.rn\.f32\b", text)) > 0, True, "there is arithmetic to look at")


@case("no kernel keeps anything in local memory, or takes so many registers that fewer threads fit")
def _(box):
    usage = images_of_now(box)["usage"]
    equal(sorted(usage), sorted((a, name) for a in make_images.ARCHITECTURES for name in kernel_names()))
    table = Table()
    for (architecture, name), used in usage.items():
        with table.row(f"{name} of sm_{architecture}"):
            equal(used["local"], 0, "bytes of local memory")
            equal(used["registers"] <= MOST_REGISTERS, True, f"{used['registers']} registers are few enough")
    table.done()


@case("nvcc makes the same text of the kernels again")
def _(box):
    made = images_of_now(box)
    version = make_images.version_in(make_images.IMAGES)
    if made["version"] != version:
        raise Skip(f"nvcc {made['version']} is installed, the images are from {version}")
    with open(os.path.join(make_images.IMAGES, make_images.PTX), encoding="utf-8") as file:
        equal(made["ptx"].splitlines(), file.read().splitlines(), "the text")


@case("the fatbin has machine code for each architecture, and nothing else")
def _(box):
    with open(os.path.join(make_images.IMAGES, make_images.FATBIN), "rb") as file:
        data = file.read()
    mark, _, header_bytes, n_bytes = struct.unpack_from("<IHHQ", data)
    equal((mark, header_bytes + n_bytes), (0xba55ed50, len(data)))
    at, found = header_bytes, []
    while at < len(data):
        kind, _, header_bytes, n_bytes = struct.unpack_from("<HHIQ", data, at)
        found.append((kind, struct.unpack_from("<I", data, at + 28)[0]))
        at += header_bytes + n_bytes
    equal(found, [(2, architecture) for architecture in make_images.ARCHITECTURES], "kinds (2: machine code) and architectures")


main()
