#!/usr/bin/env python3
"""Names that are not UTF-8, as old archives leave them: two files are two names, and each name opens its file."""
import os
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import tars
from harness import case, identity_pixels, main, png, write
from private import Home
from pyclient import trainer

NAMES = [b"caf\xe8.png", b"caf\xe9.png", "caf\u00e9.png".encode(), b"plain.png"]
CLASSES = [b"cl\xe8", b"cl\xe9"]


def folder_of(box):
    folder = os.fsencode(box.path("photos"))
    number = 0
    for kind in CLASSES:
        for name in NAMES:
            path = os.path.join(folder, kind, name)
            write(path, png(4, 4, identity_pixels(number, 4, 4)))
            number += 1
    return os.fsdecode(folder)


@case("paths, samples, classes and the names of a batch are those of os.listdir(), and open")
def _(box):
    folder = folder_of(box)
    trainer(box, None, """
        folder = sys.argv[1]
        loader = dlclient.Loader(folder, 4, pipeline="decode")
        there = sorted(os.fsencode(os.path.join(kind, name)) for kind in os.listdir(folder)
                       for name in os.listdir(os.path.join(folder, kind)))
        found = list(loader.dataset.paths)
        assert [os.fsencode(path) for path in found] == there, (found, there)
        assert len(set(found)) == 8
        assert [os.fsencode(name) for name in loader.dataset.classes] == [b"cl\\xe8", b"cl\\xe9"], loader.dataset.classes
        assert sorted(loader.dataset.class_to_idx.values()) == [0, 1]
        for path, label in loader.dataset.samples:
            assert open(os.path.join(folder, path) if path[0] != "/" else path, "rb").read(4) == b"\\x89PNG"
            assert loader.dataset.classes[label] in path
        for batch in loader:
            assert batch.paths == [found[i] for i in batch.indices.tolist()], batch.paths
    """, folder, **Home(box).variables())


@case("a name in a field of text, keys of an archive, and lists of files")
def _(box):
    folder = folder_of(box)
    archive = box.path("x.tar")
    tars.archive(archive, [(os.fsdecode(name), png(4, 4, identity_pixels(i, 4, 4))) for i, name in enumerate(NAMES)],
                 tarfile.GNU_FORMAT)
    wanted = os.path.join(box.folder, "list.txt")
    with open(wanted, "wb") as file:
        file.write(b"cl\xe9/caf\xe8.png\ncl\xe8/plain.png\n")
    trainer(box, None, """
        folder, archive, wanted = sys.argv[1:]
        L = dlclient.Loader
        loader = L({"path": folder, "format": "folder", "pattern": "{class}/{name}.png"}, 8, pipeline="name: text", shuffle=False)
        names = next(iter(loader))["name"]
        assert sorted(map(os.fsencode, names)) == sorted([b"caf\\xe8", b"caf\\xe9", "caf\\u00e9".encode(), b"plain"] * 2), names
        loader = L(archive, 4, pipeline="__key__; png: decode", shuffle=False)
        batch = next(iter(loader))
        assert [bytes(key) for key in batch["__key__"]] == [b"caf\\xe8", b"caf\\xe9", "caf\\u00e9".encode(), b"plain"], batch["__key__"]
        loader = L({"path": folder, "split": f"list({wanted})"}, 2, pipeline="decode", shuffle=False)
        assert [os.fsencode(path) for path in loader.dataset.paths] == [b"cl\\xe9/caf\\xe8.png", b"cl\\xe8/plain.png"], list(loader.dataset.paths)
    """, folder, archive, wanted, **Home(box).variables())


@case("sentences about such a name tell it apart, and can be printed")
def _(box):
    folder = box.path("f")
    for kind in (b"a", b"b"):
        write(os.path.join(os.fsencode(folder), kind, b"a\xe9.png"), png(4, 4, identity_pixels(1, 4, 4)))
    write(os.path.join(os.fsencode(folder), b"b", b"bad\xe8.png"), b"\x89PNG broken")
    trainer(box, None, """
        folder = sys.argv[1]
        loader = dlclient.Loader(folder, 1, pipeline="center_crop(4)", on_error="substitute", shuffle=False)
        texts = [text for batch in loader for text in batch.errors.values()]
        assert len(texts) == 1 and "bad" in texts[0], texts
        print(texts[0], file=sys.stderr)
        texts[0].encode()           # it can be printed
        try:
            for batch in dlclient.Loader(folder, 1, pipeline="center_crop(4)", shuffle=False):
                pass
            raise AssertionError("no error")
        except dlclient.SampleDamaged as error:
            assert "bad" in str(error) and str(error).encode(), error
        def fails(image):
            raise ValueError("of \\udce9")
        try:
            next(iter(dlclient.Loader(folder, 1, pipeline="center_crop(4) python(f)", workers={"f": fails}, n_workers=1,
                                      indices=[0])))
            raise AssertionError("no error")
        except dlclient.SampleDamaged as error:
            assert "ValueError" in str(error) and str(error).encode(), error
    """, folder, **Home(box).variables())


main()
