#!/usr/bin/python3
"""Random trees: our index against torchvision.datasets.ImageFolder (classes, files, labels, sizes, order; and errors).

usage: imagefolder_vs_torchvision.py LIST_INDEX [TREES] [SEED]

LIST_INDEX is the program built from tests/tools/list_index.c. Exit 0: all equal; 1: a difference, with the seed that
shows it; 77: torchvision is not installed. Where ours is an error on purpose (loops of links) no such tree is made. Files
"._x.jpg" are no samples of ours, so ImageFolder is told to leave them out.
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile

try:
    from torchvision.datasets import ImageFolder
    from torchvision.datasets.folder import IMG_EXTENSIONS, has_file_allowed_extension
except ImportError:
    print("SKIP: torchvision is not installed")
    sys.exit(77)

EXTENSIONS = [b".jpg", b".jpeg", b".png", b".ppm", b".bmp", b".pgm", b".tif", b".tiff", b".webp"]
OTHER = [b"", b".txt", b".jpg.bak", b".gif", b"jpg", b".tif "]
# Pieces that meet at the borders of Python's string order: ASCII round '/', valid UTF-8 of all lengths, code points
# round the surrogates and beyond the first plane, and bytes that are no UTF-8 (cut, overlong, encoded surrogates).
PIECES = [b"a", b"b", b"A", b"Z", b"-", b".", b"0", b"10", b"9", b" ", b"\n", b"\t", b"_", b"~", b"\x7f", b"\x01",
          "é".encode(), "ß".encode(), "İ".encode(), "中".encode(), "\ud7ff".encode(), "\ue000".encode(),
          "\uffff".encode(), "\U00010000".encode(), "\U0001f600".encode(), "\U0010ffff".encode(),
          b"\xff", b"\xfe", b"\x80", b"\xbf", b"\xc3", b"\xe4\xb8", b"\xf0\x9f\x98", b"\xc0\xaf", b"\xed\xa0\x80",
          b"\xe0\x80\x80", b"\xf4\x90\x80\x80", b"\xf0\x80\x80\x80"]


def name(rng):
    while True:
        made = b"".join(rng.choice(PIECES) for _ in range(rng.randint(1, 4)))
        if made not in (b".", b".."):
            return made


def any_case(rng, extension):
    return bytes(rng.choice((c, ord(chr(c).upper()))) for c in extension)


def fill(rng, folder, depth, elsewhere):
    for _ in range(rng.choice((0, 1, 2, 5, 12))):
        extension = any_case(rng, rng.choice(EXTENSIONS)) if rng.random() < 0.8 else rng.choice(OTHER)
        path = os.path.join(folder, (name(rng) if rng.random() < 0.95 else b"") + extension)
        if os.path.lexists(path) or os.path.basename(path) in (b"", b".", b".."):
            continue
        kind = rng.random()
        if kind < 0.8:
            with open(path, "wb") as file:
                file.write(b"x" * rng.randint(0, 2000))
        elif kind < 0.85:
            os.symlink(b"nowhere", path)
        elif kind < 0.9:
            os.symlink(os.path.basename(path), path)  # to itself
        elif kind < 0.95:
            os.symlink(os.path.join(elsewhere, b"file"), path)
        else:
            os.mkfifo(path)
    if depth > 0:
        for _ in range(rng.choice((0, 0, 1, 2, 3))):
            path = os.path.join(folder, name(rng) + (b".jpg" if rng.random() < 0.1 else b""))
            if os.path.lexists(path):
                continue
            if rng.random() < 0.15:
                os.symlink(os.path.join(elsewhere, b"folder"), path)
            else:
                os.mkdir(path)
                fill(rng, path, depth - 1, elsewhere)


def make_tree(rng, base):
    elsewhere, root = os.path.join(base, b"elsewhere"), os.path.join(base, b"root")
    os.makedirs(os.path.join(elsewhere, b"folder", b"deeper"))
    os.mkdir(root)
    for path, size in ((b"file", 11), (b"folder/linked.png", 22), (b"folder/deeper/linked.jpg", 33)):
        with open(os.path.join(elsewhere, path), "wb") as file:
            file.write(b"y" * size)
    for _ in range(rng.randint(0, 6)):
        path = os.path.join(root, name(rng))
        if os.path.lexists(path):
            continue
        kind = rng.random()
        if kind < 0.8:
            os.mkdir(path)
            fill(rng, path, 3, elsewhere)
            if rng.random() < 0.9:  # else perhaps a class without a file
                with open(os.path.join(path, b"one.jpg"), "wb"):
                    pass
        elif kind < 0.9:
            os.symlink(os.path.join(elsewhere, b"folder"), path)
        elif kind < 0.95:
            os.symlink(b"nowhere", path)
        else:
            with open(path, "wb"):
                pass
    return root


def is_sample(path):
    return has_file_allowed_extension(path, IMG_EXTENSIONS) and not os.path.basename(path).startswith("._")


def theirs(root):
    try:
        folder = ImageFolder(os.fsdecode(root), is_valid_file=is_sample)
    except FileNotFoundError:
        return None
    listed = []
    for path, label in folder.samples:
        try:
            status = os.stat(path)
            flags, size = (0, status.st_size) if os.path.isfile(path) else (1, 0)
        except OSError:
            flags, size = 2, 0
        listed.append((label, flags, size, os.path.relpath(os.fsencode(path), root)))
    return [os.fsencode(c) for c in folder.classes], listed


def ours(program, root):
    done = subprocess.run([program, root], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    if done.returncode == 1:
        return None
    assert done.returncode == 0, (done.returncode, done.stderr)
    classes, listed = [], []
    for record in done.stdout.split(b"\0")[:-1]:
        if record.startswith(b"C\t"):
            classes.append(record[2:])
        else:
            _, label, flags, size, path = record.split(b"\t", 4)
            listed.append((int(label), int(flags), int(size), path))
    return classes, listed


def main():
    program, trees = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 300
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    n_samples = n_errors = 0
    for seed in range(first, first + trees):
        base = os.fsencode(tempfile.mkdtemp())
        try:
            root = make_tree(random.Random(seed), base)
            a, b = theirs(root), ours(program, root)
        finally:
            shutil.rmtree(base)
        if a != b:
            print(f"FAIL: seed {seed}\ntorchvision: {a}\nours:        {b}")
            return 1
        n_errors += a is None
        n_samples += len(a[1]) if a else 0
    print(f"PASS: {trees} trees equal, {n_samples} samples, {n_errors} refused by both")
    return 0


sys.exit(main())
