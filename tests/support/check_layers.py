#!/usr/bin/env python3
"""Do includes go downward only?  check_layers.py [ROOT]

The floors, from the ground up:

    proto <- base/machine <- base
      <- plugin, data, io, decode, tokenize, augment, sound, collate, ring, store/record
      <- codec <- pipeline <- ctl <- core <- main

A file may include its own folder and the floors below it; the siblings of one floor never include each other. What
fetches bytes from elsewhere, what keeps them, and staging, a program of its own, are rooms (ROOMS says who includes
whom). The daemon sees two of them, store/record and store/cache. The client's library stands on proto and on the public header, dlctl
above it (it is linked with the library's own connection, so that there is one), the examples on the public header
alone. The library for GPUs stands on proto, on the public header and on the kernels, which stand on nothing. daemon and
client never meet, and nothing of the product includes tests. What is made of proto/dataloader.proto counts as proto.
Every include of our own is written from the root.

What reads the files of a dataset opens them and looks at them by base/machine/beneath.h alone, which keeps links from
leading out of the dataset's folder: all of data and io but OTHER_FILES.

Inside a floor units may include each other, but not in a large circle: whoever wants to understand one of them would
have to understand all. A unit is a .c file with its header; a circle of more than CIRCLE_MAX is an offence.

Prints file:line for each offence and ends with 1 if there is one.
"""
import os
import re
import sys

SIBLINGS = ("plugin", "data", "io", "decode", "tokenize", "augment", "sound", "collate", "ring", "store/record",
            "store/cache")
DAEMON_FLOORS = [("base/machine",), ("base",), SIBLINGS, ("codec",), ("pipeline",), ("ctl",), ("core",)]
# store/record <- store/plan <- { fetch <- fetch/origin <- store/cache, store/tree } <- nodes <- run; what is made of samples is prepared from
# store/record alone.
ROOMS = {
    "store/plan": ("store/record",),
    "fetch": ("store/record", "store/plan"),
    "store/tree": ("store/record", "store/plan"),
    "fetch/origin": ("store/record", "store/plan", "fetch"),
    "store/cache": ("store/record", "store/plan", "fetch", "fetch/origin"),
    "staging/nodes": ("store/record", "store/plan", "fetch", "store/tree"),
    "staging/prepare": ("store/record", "data", "decode", "augment"),
    "staging/run": ("store/record", "store/plan", "fetch", "store/tree", "fetch/origin", "staging/nodes",
            "staging/prepare", "data", "core"),
}
CLIENT = {
    "client/include": (),
    "client/lib": ("proto", "client/include"),
    "client/cuda": ("proto", "client/include", "client/cuda/kernels"),
    "client/cuda/kernels": (),
    "client/dlctl": ("proto", "client/include", "client/lib"),
    "client/examples": ("client/include",),
}
CIRCLE_MAX = 4
PRODUCT = ("proto", "daemon", "client")
GENERATED = (".pb-c.h", "proto/version.h")  # by the Makefile, below build/
READS_DATASETS = ("daemon/data/", "daemon/io/")
OTHER_FILES = (  # the daemon's own, and what the configuration names
    "daemon/data/index/index.c", "daemon/data/index/index_given.c", "daemon/data/index/index_sweep.c",
    "daemon/data/ledger/", "daemon/data/intake/roll.c", "daemon/data/intake/spool.c",
    "daemon/data/files/files.c", "daemon/data/files/named.c")
OPENS = re.compile(r"(?<![\w.>])(?:(?:open|openat|opendir|fopen|faccessat|access|l?stat|readlink|realpath)\(|fstatat\((?!.*NOFOLLOW))")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def unit_of(path):
    """The folder of a file, as the rules name it: "proto", "daemon/io", "daemon/staging/run", "client/lib", "daemon/main.c"."""
    parts = path.split("/")
    if parts[0] == "proto":
        return "proto"
    inner = "/".join(parts[:3])
    is_room = inner.startswith(("daemon/store/", "daemon/staging/")) or inner in ("daemon/fetch/origin", "daemon/base/machine",
                                                                                  "client/cuda/kernels")
    return inner if is_room else "/".join(parts[:2])


def allowed(unit):
    """What files of this folder may include beside their own; None for a folder that no rule knows."""
    if unit == "proto":
        return ()
    if unit in CLIENT:
        return CLIENT[unit]
    room = unit.removeprefix("daemon/")
    if room in ROOMS:
        return ("proto", "daemon/base", "daemon/base/machine") + tuple(f"daemon/{name}" for name in ROOMS[room])
    below = ["proto"]
    for floor in DAEMON_FLOORS:
        names = [f"daemon/{name}" for name in floor]
        if unit in names:
            return tuple(below)
        below += names
    return tuple(below) if unit == "daemon/main.c" else None


def target_of(root, name, quoted, path):
    """What an include names: a folder of ours, None for a system header, or a text that says what is wrong."""
    if name.startswith("proto/") and (name.endswith(GENERATED) or os.path.exists(os.path.join(root, name))):
        return "proto"
    if name.startswith("kinds/"):
        return None  # a list that the Makefile makes, of kinds in the folder of who includes it
    if os.path.exists(os.path.join(root, name)):
        return unit_of(name)
    if os.path.basename(name) in ("dlclient.h", "dlclient-cuda.h") and unit_of(path).startswith("client/"):
        return "client/include"  # as its users write it
    if quoted:
        return f'"{name}" is not below the root: write includes from there'
    return None


def offences_of(root, path):
    unit = unit_of(path)
    may = allowed(unit)
    if may is None:
        yield f"{path}:1: no rule knows {unit}: give it a floor in tests/support/check_layers.py"
        return
    reads_datasets = path.startswith(READS_DATASETS) and not path.startswith(OTHER_FILES) and path.endswith(".c")
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as source:
        for number, line in enumerate(source, 1):
            match = INCLUDE.match(line)
            if not match and reads_datasets and not line.lstrip().startswith("*"):
                opens = OPENS.search(re.sub(r'"(?:[^"\\]|\\.)*"', '""', line).partition("/*")[0])
                if opens:
                    yield f"{path}:{number}: {opens.group(0)}) follows links out of a dataset's folder: see base/machine/beneath.h"
            if not match:
                continue
            target = target_of(root, match.group(2), match.group(1) == '"', path)
            if target is None or target == unit or target in may:
                continue
            if " " in target:
                yield f"{path}:{number}: {target}"
            else:
                yield f"{path}:{number}: {unit} must not include {target} ({match.group(2)})"


def sources(root):
    for top in PRODUCT:
        for folder, folders, files in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(files):
                if name.endswith((".c", ".h", ".cpp", ".cu")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def units_of(paths):
    """What each file belongs to: a header lies beside its .c file, or in the folder above, if the floor sees it."""
    units = {path: os.path.splitext(path)[0] for path in paths}
    for path in paths:
        folder, name = os.path.split(units[path])
        above = os.path.join(os.path.dirname(folder), name)
        if path.endswith(".c") and units[path] + ".h" not in units and above + ".h" in units:
            units[path] = above
    return units


def circles(includes):
    """The sets of units that include each other, by Tarjan's algorithm, without recursion."""
    number, low, path, on_path, found = {}, {}, [], set(), []
    work = []

    def enter(unit):
        number[unit] = low[unit] = len(number)
        path.append(unit)
        on_path.add(unit)
        work.append((unit, iter(sorted(includes[unit]))))

    for first in list(includes):
        if first not in number:
            enter(first)
        while work:
            unit, rest = work[-1]
            other = next(rest, None)
            if other is not None and other not in number:
                enter(other)
            elif other is not None:
                low[unit] = min(low[unit], number[other]) if other in on_path else low[unit]
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[unit])
                if low[unit] == number[unit]:
                    circle = path[path.index(unit):]
                    del path[path.index(unit):]
                    on_path.difference_update(circle)
                    found.append(circle)
    return found


def circle_offences(root, paths):
    units = units_of(paths)
    includes = {unit: set() for unit in units.values()}
    for path in paths:
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as source:
            for line in source:
                match = INCLUDE.match(line)
                if match and units.get(match.group(2), units[path]) != units[path]:
                    includes[units[path]].add(units[match.group(2)])
    for circle in circles(includes):
        if len(circle) > CIRCLE_MAX:
            yield f"{min(circle)}.c:1: {len(circle)} units include each other in a circle, {CIRCLE_MAX} may: {' '.join(sorted(circle))}"


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "..")
    paths = list(sources(root))
    offences = [offence for path in paths for offence in offences_of(root, path)] + list(circle_offences(root, paths))
    for offence in offences:
        print(offence)
    if not paths:
        print(f"no sources below {root}")
    print(f"layers: {len(paths)} files, {len(offences)} offences")
    sys.exit(1 if offences or not paths else 0)


if __name__ == "__main__":
    main()
