#!/usr/bin/env python3
"""A field that is delivered several times, by names of its own and with other steps: NAME=FIELD: STEPS. DINO's large and small
crops of one picture, which is read once."""
import hashlib
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, case, contains, equal, main, photos, png, write
from pyclient import need, trainer
from resident import Resident
from tars import archive, npy, web

LARGE, SMALL = "random_resized_crop(24, scale=0.4:1) hflip(0.5)", "random_resized_crop(10, scale=0.05:0.4) hflip(0.5)"
DINO = f"large=image: {LARGE} views(2); small=image: {SMALL} views(8); label"


@case("each crop has the bits that the same part has alone, in a file of its own and in a shard, with any number of workers")
def _(box):
    folder = box.folder_of_pictures("p", 13, width=40, height=32)
    dice = random.Random(4)
    path = box.path("t.tar")
    archive(path, [member for i in range(13) for member in ((f"{i:03}.png", png(40, 32, dice.randbytes(40 * 32 * 3))),
                                                            (f"{i:03}.cls", str(i).encode()))])
    for workers in (1, 3):
        daemon = box.daemon({"p": folder, "t": web(path)}, workers=workers)
        for dataset, image, label in (("p", "image", "label"), ("t", "png", "cls")):
            whole = daemon.read(dataset, pipeline=DINO.replace("image", image).replace("label", label), batch=4, seed=5)
            equal(list(whole[0]["fields"])[:3] + list(whole[0]["fields"])[-2:], ["large", "large_2", "small", "small_8", label], "names")
            # the second part with steps draws apart from the first
            alone = daemon.read(dataset, pipeline=f"other={image}: hflip; small={image}: {SMALL} views(8); {label}", batch=4, seed=5)
            first = daemon.read(dataset, pipeline=f"{image}: {LARGE}; {label}", batch=4, seed=5)
            second = daemon.read(dataset, pipeline=f"{image}: {LARGE}; {label}", batch=4, seed=5, draws=1)
            for line, small, one, two in zip(whole, alone, first, second):
                equal([line["index"]] * 3, [small["index"], one["index"], two["index"]], "order")
                equal(line["fields"]["large"], one["fields"][image], "the first large crop")
                equal(line["fields"]["large_2"], two["fields"][image], "the second large crop")
                for name in ("small", *(f"small_{k}" for k in range(2, 9))):
                    equal(line["fields"][name], small["fields"][name], name)
                hashes = {value["sha256"] for name, value in line["fields"].items() if name.startswith("small")}
                equal(len(hashes) > 4, True, f"{len(hashes)} different small crops")


def cost(daemon, pipeline):
    """Samples, reads and bytes of an epoch."""
    before = daemon.status()["node"]
    n = len(daemon.read("p", pipeline=pipeline, batch=4))
    after = daemon.status()["node"]
    return n, after["n_reads"] - before["n_reads"], after["n_bytes_read"] - before["n_bytes_read"]


@case("a sample is read once for all of its crops, and is damaged once, under its field's name")
def _(box):
    folder = box.folder_of_pictures("p", 8, width=40, height=32)
    daemon = box.daemon({"p": folder})
    equal(cost(daemon, DINO), cost(daemon, f"image: {LARGE}; label"), "samples, reads and bytes")
    write(os.path.join(folder, "zz", "broken.jpg"), b"no picture")
    daemon = box.daemon({"p": folder})
    lines = daemon.read("p", pipeline=DINO, batch=4, on_error="skip")
    equal(len(lines), 8, "samples beside the broken one")
    equal([each["field"] for each in daemon.objects("errors", "p")], ["image"], "the ledger")


def counted(daemon, name):
    return next(int(fact["value"]) for fact in daemon.status()["counters"] if fact["name"] == name)


@case("photos are decoded once for all of their crops, which have the bits of crops that are decoded alone")
def _(box):
    daemon = box.daemon({"p": photos(50, 3)})
    large = "random_resized_crop(224, scale=0.4:1, interpolation=bicubic) hflip(0.5)"
    small = "random_resized_crop(96, scale=0.05:0.4, interpolation=bicubic) hflip(0.5)"
    whole = daemon.read("p", pipeline=f"large=image: {large} views(2); small=image: {small} views(8)", batch=5, seed=9)
    equal([len(whole), counted(daemon, "n_shared")], [50, 450], "photos, and crops of them that were not decoded again")
    equal(counted(daemon, "n_jpeg_own") + counted(daemon, "n_jpeg_libjpeg"), 50, "decoded photos")
    for view, name in enumerate(("large", "large_2")):
        alone = daemon.read("p", pipeline=f"image: {large}", batch=5, seed=9, draws=view)
        equal([line["fields"][name] for line in whole], [line["fields"]["image"] for line in alone], name)
    for view, name in enumerate(["small", *(f"small_{k}" for k in range(2, 9))]):
        alone = daemon.read("p", pipeline=f"label: to(int32); image: {small}", batch=5, seed=9, draws=view)
        equal([line["fields"][name] for line in whole], [line["fields"]["image"] for line in alone], name)
    equal(counted(daemon, "n_shared"), 450, "crops that share nothing")


@case("where memory_limit has no room for a decoded picture, each crop is decoded alone, with the same bits")
def _(box):
    folder = box.path("p")
    for i in range(4):
        write(os.path.join(folder, "a", f"{i}.png"), png(2400, 1800, (bytes(range(i, 251)) * (2400 * 1800 * 3 // 200))[:2400 * 1800 * 3]))
    text = "random_resized_crop(40, scale=0.95:1) views(3)"
    seen = []
    for limit, n_shared in (("48MiB", 0), ("1GiB", 8)):
        daemon = box.daemon({"p": folder}, memory_limit=limit, workers=2)
        with Resident(daemon, 1024 if n_shared else 48):
            lines = daemon.read("p", pipeline=text, batch=2, seed=1)
            seen.append([[line["index"], *(line["fields"][name] for name in ("image", "image_2", "image_3"))] for line in lines])
        equal(counted(daemon, "n_shared"), n_shared, f"pictures that were cut from another one, {limit}")
        daemon.stop()
    equal(len(seen[0]), 4, "samples")
    equal(seen[0], seen[1], "samples without and with memory")


def pgm(width, height, grey):
    return f"P5\n{width} {height}\n255\n".encode() + grey


def mirrored(rows, vertical):
    return rows[::-1] if vertical else [row[::-1] for row in rows]


def corners(rows, height, width):
    """The five crops of a picture, which is a list of rows of pixels."""
    top, left = len(rows) - height, len(rows[0]) - width
    places = ((0, 0), (0, left), (top, 0), (top, left), (round(top / 2), round(left / 2)))
    return [[row[x:x + width] for row in rows[y:y + height]] for y, x in places]


def digest(rows):
    return hashlib.sha256(b"".join(b"".join(row) for row in rows)).hexdigest()


def pixels_of(data, width, height, n=3):
    return [[data[(y * width + x) * n:(y * width + x + 1) * n] for x in range(width)] for y in range(height)]


@case("five and ten crops are corners and center of the picture, as views that share their draws; masks and boxes go along")
def _(box):
    dice, members, pictures = random.Random(8), [], []
    for i in range(6):
        width, height = dice.randint(12, 40), dice.randint(9, 30)
        data, numbers = dice.randbytes(width * height * 3), dice.randbytes(width * height)
        pictures.append((pixels_of(data, width, height), pixels_of(numbers, width, height, 1)))
        members += [(f"{i:03}.png", png(width, height, data)), (f"{i:03}.seg.png", pgm(width, height, numbers)),
                    (f"{i:03}.boxes.npy", npy("<f4", "(1, 4)", struct.pack("<4f", 1, 2, 9, 8)))]
    path = box.path("t.tar")
    archive(path, members)
    daemon = box.daemon({"t": web(path)})
    for step, flips in (("five_crop(9:11)", [False]), ("ten_crop(9:11)", [False, False]), ("TenCrop((9, 11), vertical_flip=True)", [False, True])):
        lines = daemon.read("t", pipeline=f"png, seg.png, boxes.npy: {step}", batch=1, shuffle=False)
        n = 5 * len(flips)
        equal(list(lines[0]["fields"])[::3], ["png", *(f"png_{k}" for k in range(2, n + 1))], "views")
        for line, (rows, numbers) in zip(lines, pictures):
            expected = [(a, b) for place, vertical in enumerate(flips) for a, b in zip(
                corners(mirrored(rows, vertical) if place else rows, 9, 11),
                corners(mirrored(numbers, vertical) if place else numbers, 9, 11))]
            for k, (picture, mask) in enumerate(expected):
                end = f"_{k + 1}" if k else ""
                equal(line["fields"]["png" + end]["sha256"], digest(picture), f"crop {k} of {line['index']}")
                equal(line["fields"]["seg.png" + end]["sha256"], digest(mask), f"mask {k} of {line['index']}")
        moved = daemon.read("t", pipeline=f"png, boxes.npy: {step}", batch=1, shuffle=False)
        for line, (rows, _) in zip(moved, pictures):
            left = max(0, min(11, 1 - (len(rows[0]) - 11))), max(0, min(11, 9 - (len(rows[0]) - 11)))
            equal(line["fields"]["boxes.npy_2"]["sha256"],
                  hashlib.sha256(struct.pack("<4f", left[0], 2, left[1], 8)).hexdigest(), f"box of the second crop, {len(rows[0])} wide")
    for text in ("png: random_crop(9:11) five_crop(5) color_jitter(0.5)", "png: color_jitter(0.5) five_crop(9) random_crop(5)"):
        lines = daemon.read("t", pipeline=text, batch=1, shuffle=False, seed=3)
        whole = daemon.read("t", pipeline=text.replace("five_crop", "center_crop"), batch=1, shuffle=False, seed=3)
        equal([line["fields"]["png_5"] for line in lines], [line["fields"]["png"] for line in whole], "the center has the draws of a step alone")
    reader = daemon.reader("t", pipeline="png: five_crop(200)", batch=1, on_error="fail")
    reader.finish(60)
    contains(reader.errors(), "five_crop: crops of 200 x 200 pixels do not fit into")
    for text, words in (("png: five_crop(8) views(2)", ("column 19", "five_crop makes 5 pictures", "leave views out")),
                        ("png, boxes.npy: ten_crop(8) sanitize", ("sanitize",)), ("png: random_apply([ten_crop(8)])", ("group",)),
                        ("png: five_crop(8) five_crop(4)", ("only one step",))):
        daemon.refused("t", *words, pipeline=text, batch=1)
    daemon.read("t", pipeline="png: transforms.v2.FiveCrop(8) views(5)", batch=1)


@case("in Python a batch has a list of large and a list of small crops")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 12, width=40, height=32)})
    need("torch")
    trainer(box, daemon, f"""
        loader = dlclient.Loader("p", 4, pipeline={DINO!r}, seed=3)
        for batch in loader:
            assert list(batch) == ["large", "small", "label"], list(batch)
            assert [x.shape for x in batch["large"]] == [(4, 24, 24, 3)] * 2
            assert [x.shape for x in batch["small"]] == [(4, 10, 10, 3)] * 8
            assert batch["small_3"] is batch["small"][2] and batch["label"].shape == (4,)
        for batch in dlclient.Loader("p", 4, framework="torch",
                                     pipeline="a=image: center_crop(8) layout(channels_last); image: center_crop(6)"):
            assert batch["a"].shape == (4, 3, 8, 8) and batch["image"].shape == (4, 6, 6, 3), batch
        refused(dlclient.OptionError, lambda: dlclient.Loader("p", 4, pipeline="image: hflip; image: vflip"),
                "named twice", "small=image")
    """)


@case("the recipe of DINO in docs/migration.md gives ten crops")
def _(box):
    with open(os.path.join(ROOT, "docs", "migration.md"), encoding="utf-8") as file:
        page = file.read()
    recipe = page[page.index('colors = "hflip(0.5) random_apply'):]
    recipe = recipe[:recipe.index("```")].replace("/data/imagenet/train", "p").replace("64, framework", "4, framework")
    daemon = box.daemon({"p": box.folder_of_pictures("p", 8, width=40, height=32)})
    need("torch")
    trainer(box, daemon, recipe + """
    assert [tuple(crop.shape) for crop in crops] == [(4, 3, 224, 224)] * 2 + [(4, 3, 96, 96)] * 8
    assert all(crop.dtype == __import__("torch").float32 for crop in crops)
""")


main()
