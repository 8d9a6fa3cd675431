#!/usr/bin/env python3
"""What `make help` lists works in a fresh clone: each target installs what it needs, and its Python asks for nothing else."""
import ast
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, case, equal, main

# These install nothing, and why. Compiling alone is what README's `make deps` is for.
INSTALLS_NOTHING = {
    "all": "compiles", "lib": "compiles", "install": "compiles", "uninstall": "removes files", "clean": "removes files",
    "help": "reads the Makefiles", "version": "asks git", "dist": "packs files", "check-layers": "reads sources", "check-kernels": "reads sources",
    "kinds-pages": "writes pages, for who changes sources", "number-tables": "writes pages, for who changes sources",
    "settings-page": "writes pages, for who changes sources",
    "kernels": "needs nvcc, which is not Debian's", "format": "needs clang-format, for who changes sources",
    "format-check": "needs clang-format, for who changes sources", "tidy": "needs clang-tidy, for who changes sources",
}

# The Python program that a target starts in the system's own interpreter.
PROGRAMS = {"bench": "tests/bench/run.py", "demo": "tests/demo/demo.py", "soak": "tests/soak/soak.py", "fuzz": "tests/fuzz/run.py",
            "fuzz-keep": "tests/fuzz/run.py"}

# Where else a program finds modules of this tree.
FOLDERS = ("tests/bench", "tests/support", "tests/soak", "tests/demo", "tests/fuzz", "tests/bench/peers", "tests/integration",
           "tests/formats", "client/python")

PACKAGES = {"numpy": "python3-numpy", "PIL": "python3-pil", "torch": "python3-torch", "torchvision": "python3-torchvision",
            "soundfile": "python3-soundfile", "tqdm": "python3-tqdm"}


def targets():
    """The targets that `make help` lists, by name."""
    output = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  ([a-z][a-z-]*) ", output, re.M)


def rules():
    """The Makefile and what it includes."""
    texts = []
    for path in ("Makefile", "tests/tests.mk", "client/python/python.mk", "systemd/packaging.mk", "packaging/wheel/wheel.mk",
                 "packaging/deb.mk"):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            texts.append(file.read())
    return "".join(texts)


def tags_of(target):
    """The tags with which the recipe of a target, or of one that it needs, calls deps.sh. Read from the Makefiles: make's -n
    would run what their recipes mark with a plus."""
    rule = re.search(rf"^{target}:([^#\n]*).*\n((?:\t.*\n)*)", rules(), re.M)
    if not rule:
        return set()  # a file
    own = {tag for call in re.findall(r"\$\(DEPS\) ([^$\n]+)", rule.group(2)) for tag in call.split()}
    return own.union(*(tags_of(name) for name in rule.group(1).split() if re.fullmatch("[a-z-]+", name) and name != target))


def packages():
    """{package: its tags, the wishes among them without their mark}"""
    found = {}
    with open(os.path.join(ROOT, "packages.list"), encoding="utf-8") as lines:
        for line in lines:
            words = line.split()
            if words and not line.startswith("#"):
                found.setdefault(words[0], set()).update(tag.rstrip("?") for tag in words[1].split(","))
    return found


def imported(tree):
    """The modules that a file imports, but those that it tries and does without."""
    names, open_nodes = set(), [tree]
    while open_nodes:
        node = open_nodes.pop()
        if isinstance(node, ast.Try):
            open_nodes += [inner for handler in node.handlers for inner in handler.body] + node.orelse + node.finalbody
            continue
        if isinstance(node, ast.Import):
            names.update(name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module.split(".")[0])
        # What a function imports is needed where it is called, which this cannot know.
        open_nodes += [child for child in ast.iter_child_nodes(node)
                       if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))]
    return names


def strangers(program):
    """{module that is neither Python's nor this tree's: the file that imports it} of a program and all modules of the tree
    that it imports."""
    found, seen, left = {}, set(), [program]
    while left:
        path = left.pop()
        if path in seen:
            continue
        seen.add(path)
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            tree = ast.parse(file.read(), path)
        for name in imported(tree):
            here = [candidate for folder in (os.path.dirname(path), *FOLDERS)
                    for candidate in (f"{folder}/{name}.py", f"{folder}/{name}/__init__.py")
                    if os.path.exists(os.path.join(ROOT, candidate))]
            if here:
                left.append(here[0])
            elif name not in sys.stdlib_module_names:
                found[name] = path
    return found


@case("each target that needs more than compiling installs it")
def _(_box):
    names = targets()
    equal(len(names) > 30, True, f"targets: {names}")
    equal([name for name in names if name not in INSTALLS_NOTHING and not tags_of(name)], [], "targets that install nothing")
    equal([name for name in INSTALLS_NOTHING if name not in names], [], "targets that are gone")


@case("without a name make fuzz and make fuzz-keep take every fuzzer")
def _(_box):
    output = subprocess.run(["make", "-s", "-f", "-", "said"], cwd=ROOT, capture_output=True, text=True, check=True,
                            input="include Makefile\nsaid:\n\t@echo said [$(FUZZ)]\n").stdout
    equal(output.strip(), "said []", "the names that are taken where none is given")


@case("what a target's program imports comes with the target's packages")
def _(_box):
    tags = packages()
    missing = []
    for target, program in PROGRAMS.items():
        has = tags_of(target)
        missing += [f"make {target}: {path} imports {name}" for name, path in strangers(program).items()
                    if not tags.get(PACKAGES.get(name), set()) & has]
    equal(missing, [], "imports without a package")


if __name__ == "__main__":
    main()
