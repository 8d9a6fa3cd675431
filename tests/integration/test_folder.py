#!/usr/bin/env python3
"""Folders by pattern: the layouts of known datasets, with labels and targets from paths, names and files beside them."""
import hashlib
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import (case, check_sequence, contains, equal, expected_order, identity_pixels, indices, main, png, sha256_of, within, write)


def folder(path, pattern, **more):
    return {"path": path, "format": "folder", "pattern": pattern, **more}


def picture(number):
    return png(9, 7, identity_pixels(number, 9, 7))


def fields_of(lines, *names):
    """What each line has in these fields, by its index."""
    def told(entry):
        return entry["value"] if "value" in entry else entry.get("text", entry.get("sha256"))
    return {line["index"]: tuple(told(line["fields"][name]) for name in names) for line in lines}


@case("a folder for each class has the labels, the order and the pixels that imagefolder gives")
def _(box):
    dice = random.Random(5)
    for i in range(30):
        write(box.path("d", f"n{dice.randrange(4):02d}", f"{dice.choice('abXYZ')}{i}.png"), picture(i))
    daemon = box.daemon({"f": folder(box.path("d"), "{class}/{name}.png"),
                         "auto": {**folder(box.path("d"), "{class}/{name}.png"), "format": "auto"},
                         "i": {"path": box.path("d"), "format": "imagefolder"}})
    pipeline = "random_resized_crop(4) hflip(0.5)"
    told = daemon.read("i", pipeline=pipeline, seed=3, batch=4)
    for name in ("f", "auto"):
        lines = daemon.read(name, pipeline=f"image: {pipeline}; label", seed=3, batch=4)
        equal([line["fields"] for line in lines], [line["fields"] for line in told], "pixels and labels")
        equal(indices(lines), expected_order(30, seed=3), "order")
    check_sequence(daemon.read("f", pipeline="image: center_crop(7); class", world=3, rank=2), 30, world=3, rank=2)


@case("a picture without its optional file is no damage: the field is absent there, until the file comes")
def _(box):
    for i in range(6):
        write(box.path("d", "images", f"{i}.png"), picture(i))
        if i not in (0, 3, 4):
            write(box.path("d", "labels", f"{i}.txt"), b"%d 0.5 0.5 1 1" % i)
    described = folder(box.path("d"), "images/{name}.png", files="boxes?=labels/{name}.txt")
    daemon = box.daemon({"optional": described, "needed": {**described, "files": "boxes=labels/{name}.txt"},
                         "far": {**described, "files": "boxes ? = labels/{name}.txt, more?=nowhere/{name}.txt"}})

    def boxes(name, field="boxes"):
        lines = daemon.read(name, pipeline=f"image: center_crop(7); {field}", shuffle=False, batch=2)
        return [(line["fields"][field] or {}).get("sha256") for line in lines]

    told = [None if i in (0, 3, 4) else hashlib.sha256(b"%d 0.5 0.5 1 1" % i).hexdigest() for i in range(6)]
    equal(boxes("optional"), told, "files that are there")
    equal(boxes("far"), told, "blanks around the question mark")
    equal(boxes("far", "more"), [None] * 6, "a folder that is not there")
    daemon.refused("needed", "sample 0 (images/0.png): labels/0.txt: No such file", pipeline="image: center_crop(7); boxes", shuffle=False, batch=2)

    daemon.stop()
    write(box.path("d", "labels", "3.txt"), b"3")
    write(box.path("d", "nowhere", "5.txt"), b"5")
    daemon.start()
    told[3] = hashlib.sha256(b"3").hexdigest()
    equal(boxes("optional"), told, "a file that came")
    equal(boxes("far", "more"), [None] * 5 + [hashlib.sha256(b"5").hexdigest()], "a folder that came")


@case("of a sample with several files the one is named that is missing or damaged, and of a record of a list the file that it names")
def _(box):
    for i in range(5):
        if i != 3:
            write(box.path("d", "images", f"{i}.png"), picture(i))
        if i != 1:
            write(box.path("d", "masks", f"{i}.png"), picture(10 + i) if i != 2 else b"<html>")
    write(box.path("d", "list.csv"), b"id,n\n" + b"".join(b"%d,%d\n" % (i, 300 * (i == 4)) for i in range(5)))
    files = "image=images/{id}.png, mask=masks/{id}.png"
    daemon = box.daemon({"folder": folder(box.path("d"), "images/{id}.png", files="mask=masks/{id}.png"),
                         "list": {"path": box.path("d", "list.csv"), "format": "csv", "files": files}})
    told = {}
    for name, extra in (("folder", ""), ("list", "; n: to(uint8)")):
        daemon.read(name, pipeline="image: center_crop(7); mask: center_crop(7)" + extra, on_error="skip", batch=5)
        told[name] = {error["index"]: error["error"] for error in daemon.objects("errors", name)}
    contains(told["folder"][1], "masks/1.png: No such file")
    contains(told["folder"][2], "masks/2.png: field mask: ")
    equal(sorted(told["folder"]), [1, 2], "damaged samples")
    for i, words in ((1, "masks/1.png: No such file"), (2, "masks/2.png: field mask: "), (3, "images/3.png: No such file"), (4, "field n: ")):
        contains(told["list"][i], words)
        equal(told["list"][i].startswith(words), True, told["list"][i])


@case("SUN397's classes are paths, UTKFace's targets are in names, Cityscapes' masks lie in another folder")
def _(box):
    places = ["a/abbey/sun_a1.jpg", "a/abbey/sun_a2.jpg", "a/apartment_building/outdoor/sun_b1.jpg", "s/street/sun_c1.jpg"]
    faces = ["1_0_0_20161219140530307.jpg", "100_1_2_20170112213001988.jpg", "25_0_4_20170104.jpg"]
    cities = [("train", "aachen", "000000_000019"), ("train", "bochum", "000000_000313"), ("val", "munster", "000167_000019")]
    for i, path in enumerate(places):
        write(box.path("SUN397", *path.split("/")), picture(i))
    for i, name in enumerate(faces):
        write(box.path("UTKFace", name), picture(i))
    for i, (part, city, frame) in enumerate(cities):
        write(box.path("city", "leftImg8bit", part, city, f"{city}_{frame}_leftImg8bit.png"), picture(i))
        write(box.path("city", "gtFine", part, city, f"{city}_{frame}_gtFine_labelIds.png"), picture(100 + i))
        write(box.path("city", "gtFine", part, city, f"{city}_{frame}_gtFine_color.png"), b"another file")
    daemon = box.daemon({
        "sun": folder(box.path("SUN397"), "*/{class:**}/*.jpg"),
        "faces": folder(box.path("UTKFace"), "{age}_{gender}_{race}_{time}.jpg"),
        "city": folder(box.path("city"), "leftImg8bit/{set}/{city}/{frame}_leftImg8bit.png",
                       files="mask=gtFine/{set}/{city}/{frame}_gtFine_labelIds.png")})
    equal(fields_of(daemon.read("sun", pipeline="image: raw; class; label"), "image", "class", "label"),
          {i: (sha256_of(box.path("SUN397", path)), name, label) for i, (path, name, label) in enumerate(
              zip(places, ["abbey", "abbey", "apartment_building/outdoor", "street"], [0, 0, 1, 2]))}, "SUN397")
    equal(fields_of(daemon.read("faces", pipeline="image: raw; age: to(float32); gender; race; time"), "image", "age", "gender", "race",
                    "time"),
          {0: (sha256_of(box.path("UTKFace", faces[1])), 100.0, 1, 2, 20170112213001988),
           1: (sha256_of(box.path("UTKFace", faces[0])), 1.0, 0, 0, 20161219140530307),
           2: (sha256_of(box.path("UTKFace", faces[2])), 25.0, 0, 4, 20170104)}, "UTKFace")
    lines = daemon.read("city", pipeline="image: raw; mask: raw; set; __key__")
    equal(fields_of(lines, "image", "mask", "set"),
          {i: (sha256_of(box.path("city", "leftImg8bit", part, city, f"{city}_{frame}_leftImg8bit.png")),
               sha256_of(box.path("city", "gtFine", part, city, f"{city}_{frame}_gtFine_labelIds.png")), part)
           for i, (part, city, frame) in enumerate(cities)}, "Cityscapes")
    plain = daemon.read("city", pipeline="image: center_crop(7); mask: center_crop(7)", batch=2)
    equal(indices(plain), expected_order(3), "order of pictures and masks in one batch")


@case("a file that comes, also into a folder that had none, becomes a sample; one that goes is none any more")
def _(box):
    for i in range(4):
        write(box.path("d", "a", f"{i}.png"), picture(i))
    os.makedirs(box.path("d", "b"))
    daemon = box.daemon({"d": folder(box.path("d"), "{class}/{id}.png")})
    equal(len(daemon.read("d", pipeline="image: raw; label")), 4, "samples")
    write(box.path("d", "b", "9.png"), picture(9))
    within(60, lambda: [line["fields"]["label"]["value"] for line in daemon.read(
        "d", pipeline="image: raw; id; label", shuffle=False)] == [0, 0, 0, 0, 1], "the file that came")
    os.unlink(box.path("d", "a", "2.png"))
    within(60, lambda: [line["fields"]["id"]["value"] for line in daemon.read(
        "d", pipeline="image: raw; id", shuffle=False, on_error="skip", batch=5)] == [0, 1, 3, 9] and
        len(daemon.read("d", pipeline="id")) == 4, "the file that went")


@case("a name that is not UTF-8 is text of these bytes, and its label is as good as others")
def _(box):
    for i in range(3):
        write(box.path("d", "ok", f"{i}.png"), picture(i))
    write(os.path.join(os.fsencode(box.path("d")), b"\xe9t\xe9", b"3.png"), picture(3))
    daemon = box.daemon({"d": folder(box.path("d"), "{class}/{id}.png")})
    names = {line["index"]: line["fields"]["class"]["sha256"] for line in daemon.read("d", pipeline="class; label")}
    equal(names, {i: hashlib.sha256(b"ok" if i < 3 else b"\xe9t\xe9").hexdigest() for i in range(4)}, "texts")
    equal(fields_of(daemon.read("d", pipeline="id; label"), "id", "label"), {i: (i, i // 3) for i in range(4)}, "labels")


@case("what cannot be served is refused with the folder, and what to do")
def _(box):
    write(box.path("d", "x", "1.jpeg"), picture(1))
    daemon = box.daemon({"none": folder(box.path("d"), "{class}/{id}.jpg"), "bad": folder(box.path("d"), "{class}{id}"),
                         "no": {"path": box.path("d"), "format": "folder"}})
    for name, words in {"none": "no file in it fits the pattern; there is, for example, x/1.jpeg",
                        "bad": "a text is needed between two names", "no": "the format folder needs pattern"}.items():
        daemon.refused(name, words)


main()
