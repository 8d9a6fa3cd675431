#!/usr/bin/env python3
"""Does product code call anything that may fail and that tests/faults does not know?

Reads the undefined symbols of the product's objects (the asan build's: no fortified names) and compares them with
calls.h, where they are made to fail, and harmless.txt, which says why the others need not be. A row of harmless.txt is
names, then " -- " and the reason; a name that ends in * stands for all that begin so. Names that nothing uses any more
are failures too.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.join(ROOT, "tests", "faults")
OBJECTS = os.path.join(ROOT, "build", "asan", "obj")
PRODUCT = ("daemon", "client/lib", "client/cuda", "proto", "generated")
ALLOCATIONS = {"malloc", "calloc", "realloc", "reallocarray", "aligned_alloc", "posix_memalign"}  # memory.c
COMPILERS = re.compile(r"^(__asan_|__ubsan_|__sanitizer_|_GLOBAL_OFFSET_TABLE_|__tls_get_addr|__stack_chk_fail|__cpu_model|__u?divti3|__u?modti3)")


def symbols(flag, folders):
    """symbol -> the objects that use (-u) or define it."""
    found = {}
    paths = [os.path.join(at, name) for folder in folders for at, _, names in os.walk(os.path.join(OBJECTS, folder))
             for name in names if name.endswith(".o")]
    if not paths:
        sys.exit(f"{OBJECTS} holds no objects of {folders}: make VARIANT=asan all")
    out = subprocess.run(["nm", "-A", flag] + paths, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
    for line in out.splitlines():
        path, _, rest = line.partition(":")
        found.setdefault(rest.split()[-1].partition("@")[0], []).append(os.path.relpath(path, OBJECTS))
    return found


def listed():
    with open(os.path.join(HERE, "calls.h"), encoding="utf-8") as file:
        return set(re.findall(r"^(?:ERRNO|NEGATIVE|POSITIVE|AFTER|BYTES|VALUE|HAND)\((\w+)", file.read(), re.M))


def harmless():
    names = set()
    with open(os.path.join(HERE, "harmless.txt"), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.partition("#")[0].strip()
            if line and " -- " not in line:
                sys.exit(f"tests/faults/harmless.txt:{number}: a reason is wanted after \" -- \"")
            names.update(line.partition(" -- ")[0].split())
    return names


def main():
    wrapped, known = listed(), harmless()
    ours = set(symbols("--defined-only", PRODUCT))
    used = {name: objects for name, objects in symbols("-u", PRODUCT).items()
            if (name not in ours or name in wrapped) and not COMPILERS.match(name)}
    prefixes = {name[:-1] for name in known if name.endswith("*")}
    problems = []
    for name, objects in sorted(used.items()):
        if name in wrapped | ALLOCATIONS | known or name.startswith(tuple(prefixes)):
            continue
        problems.append(f"{name} (in {', '.join(sorted(objects)[:3])}) may fail and nobody tries it: give it a row in "
                        "tests/faults/calls.h, or in harmless.txt with the reason")
    for name in sorted((wrapped | known) - set(used)):
        if not any(each.startswith(name[:-1]) for each in used) if name.endswith("*") else True:
            problems.append(f"{name} is listed and product code does not use it")
    print("\n".join(problems) or f"{len(used)} functions: {len(wrapped & set(used))} are made to fail, the others are known")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
