#!/usr/bin/env python3
"""Masks of instances: an array of planes that moves with its picture, and of which those leave whose boxes `sanitize` drops; in
archives, beside pictures, in listings, and drawn from COCO's segmentations. Which pixel a resized mask takes is compared with
torchvision in test_boxes.c, whole stacks of planes in test_masks.c."""
import hashlib
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, contains, equal, identity_pixels, main, png, write
from pyclient import trainer
from tars import archive, npy, web

WIDTH, HEIGHT, WIDE, HIGH = 9, 7, 6, 5
STEPS = f"random_crop({HIGH}:{WIDE}) hflip(0.5) color_jitter(0) vflip(0.5)"


def places(left, top, h, v):
    rows = [[y * WIDTH + x for x in range(left, left + WIDE)][::-1 if h else 1] for y in range(top, top + HIGH)]
    return [place for row in rows[::-1 if v else 1] for place in row]


def moves():
    return [(left, top, h, v) for left in range(WIDTH - WIDE + 1) for top in range(HEIGHT - HIGH + 1) for h in (0, 1) for v in (0, 1)]


def found_of(pixels):
    """{hash of the pixels: where they come from} of all that the steps may make of a picture."""
    return {hashlib.sha256(b"".join(pixels[3 * place:3 * place + 3] for place in places(*move))).hexdigest(): move for move in moves()}


def told(planes, height, width):
    content = b"".join(bytes(plane) for plane in planes)
    return {"dtype": "uint8", "shape": [len(planes), height, width], "sha256": hashlib.sha256(content).hexdigest()}


def random_planes(dice, n, most=255):
    return [[dice.randint(0, most) for _ in range(WIDTH * HEIGHT)] for _ in range(n)]


def array(planes, descr="|u1", width=WIDTH, height=HEIGHT):
    data = b"".join(bytes(plane) for plane in planes)
    if descr != "|u1" and descr != "|b1":
        data = b"".join(number.to_bytes(int(descr[-1]), "little" if descr[0] == "<" else "big") for plane in planes for number in plane)
    return npy(descr, f"({len(planes)}, {height}, {width})", data)


def box_of(plane):
    """A box that a crop may leave without extent: x, y, x, y of one number of the plane."""
    place = plane.index(max(plane))
    x, y = place % WIDTH, place // WIDTH
    return [x, y, x + 1, y + 1]


def stays(box, left, top):
    return left <= box[0] < left + WIDE and top <= box[1] < top + HIGH


def check(line, pixels, planes, boxes=None, name="masks"):
    """Compares the masks of a sample. Returns how many have left."""
    i, fields = line["index"], line["fields"]
    left, top, h, v = move = found_of(pixels[i])[fields["image"]["sha256"]]
    kept = [k for k in range(len(planes[i])) if not boxes or stays(boxes[i][k], left, top)]
    equal(fields[name], told([[planes[i][k][place] for place in places(*move)] for k in kept], HIGH, WIDE), f"{name} of sample {i}")
    return len(planes[i]) - len(kept)


@case("masks in .npy files of an archive, of any whole dtype, move with their picture, and leave with their boxes")
def _(box):
    dice = random.Random(20)
    pixels = {i: identity_pixels(i, WIDTH, HEIGHT) for i in range(12)}
    for descr, most in (("|u1", 255), ("|b1", 1), ("<i8", 255), (">u2", 255)):
        name = descr.strip("|<>")
        planes = {i: random_planes(dice, i % 8, most) for i in pixels}
        boxes = {i: [box_of(plane) for plane in planes[i]] for i in pixels}
        members = []
        for i in pixels:
            corners = b"".join(x.to_bytes(4, "little") for each in boxes[i] for x in each)
            members += [(f"{i}.masks.npy", array(planes[i], descr)), (f"{i}.boxes.npy", npy("<i4", f"({len(boxes[i])}, 4)", corners)),
                        (f"{i}.png", png(WIDTH, HEIGHT, pixels[i]))]
        archive(box.path(name, "x.tar"), members)
        daemon = box.daemon({"d": {**web(box.path(name)), "fields": "image=png, boxes=boxes.npy, masks=masks.npy"}})
        for line in daemon.read("d", pipeline=f"masks, image: {STEPS}", batch=5, seed=4):
            check(line, pixels, planes)
        n_left = 0
        for line in daemon.read("d", pipeline=f"masks, boxes, image: {STEPS} sanitize", batch=5, seed=4):
            n_left += check(line, pixels, planes, boxes)
        equal(n_left > 5, True, f"{n_left} have left")
        for line in daemon.read("d", pipeline="image: hflip(0.5); masks", batch=1):
            equal(line["fields"]["masks"]["shape"], [line["index"] % 8, HEIGHT, WIDTH], "alone they are what is stored")
        daemon.stop()


def resized(planes, width, height, new_width, new_height, fill):
    made = []
    for plane in planes:
        made.append([fill] * (new_width + 2))
        for y in range(new_height):
            row = plane[(y * height // new_height) * width:][:width]
            made[-1] += [fill, *(row[x * width // new_width] for x in range(new_width)), fill]
        made[-1] += [fill] * (new_width + 2)
    return made


@case("planes of pictures of different sizes: resized to one size in batches, else one by one; other sizes than the picture's are damage")
def _(box):
    dice = random.Random(21)
    sizes = {i: (5 + i % 4, 4 + i % 3) for i in range(9)}
    planes = {i: [[dice.randint(0, 255) for _ in range(w * h)] for _ in range(1 + i % 5)] for i, (w, h) in sizes.items()}
    members, lines = [], []
    for i, (w, h) in sizes.items():
        parts = {"png": png(w, h, identity_pixels(i, w, h)), "masks.npy": array(planes[i], width=w, height=h)}
        members += [(f"{i}.{name}", content) for name, content in parts.items()]
        write(box.path("p", "img", f"{i}.png"), parts["png"])
        write(box.path("p", "masks", f"{i}.npy"), parts["masks.npy"])
        lines.append(json.dumps({"image": f"img/{i}.png", "planes": f"masks/{i}.npy"}) + "\n")
    archive(box.path("w", "x.tar"), members)
    write(box.path("p", "list.jsonl"), "".join(lines).encode())
    daemon = box.daemon({
        "w": {**web(box.path("w")), "fields": "image=png, masks=masks.npy"},
        "f": {"path": box.path("p"), "format": "folder", "pattern": "img/{id}.png", "files": "masks=masks/{id}.npy"},
        "j": {"path": box.path("p", "list.jsonl"), "format": "jsonl", "files": "image=image, masks=planes"}})
    for name in ("w", "f", "j"):
        for new_width, new_height in ((20, 4), (5, 15)):
            pipeline = f"image, masks: resize({new_height}:{new_width}) grayscale pad(1, fill=9) to(float32) layout(nchw)"
            for line in daemon.read(name, pipeline=pipeline, batch=4):
                i = line["index"]
                made = resized(planes[i], *sizes[i], new_width, new_height, 9)
                equal(line["fields"]["masks"], told(made, new_height + 2, new_width + 2), f"{name}: sample {i}")
        for line in daemon.read(name, pipeline="image, masks: resize(short=8, max=11)", batch=1):
            i, (w, h) = line["index"], sizes[line["index"]]
            height, width = line["fields"]["image"]["shape"][:2]
            made = [plane for plane in resized(planes[i], w, h, width, height, 9)]
            inner = [[plane[(y + 1) * (width + 2) + x + 1] for y in range(height) for x in range(width)] for plane in made]
            equal(line["fields"]["masks"], told(inner, height, width), f"{name}: sample {i} in its own size")
        reader = daemon.reader(name, pipeline="masks, image: hflip(0.5)", batch=2, shuffle=False)
        reader.finish(20)
        contains(reader.errors(), "use batch_size 1")
    archive(box.path("b", "x.tar"), [("0.png", png(4, 4, identity_pixels(0, 4, 4))), ("0.masks.npy", npy("|u1", "(2, 4, 5)", bytes(40))),
                                     ("1.png", png(4, 4, identity_pixels(1, 4, 4))), ("1.masks.npy", npy("|u1", "(4, 4)", bytes(16))),
                                     ("2.png", png(4, 4, identity_pixels(2, 4, 4))), ("2.masks.npy", npy("<i4", "(1, 4, 4)", bytes(60) + b"\0\1\0\0")),
                                     ("3.png", png(4, 4, identity_pixels(3, 4, 4))), ("3.masks.npy", npy("<f4", "(1, 4, 4)", bytes(64))),
                                     ("4.png", png(4, 4, identity_pixels(4, 4, 4))), ("4.masks.npy", npy("|u1", "(0, 4, 4)", b""))])
    daemon = box.daemon({"b": {**web(box.path("b")), "fields": "image=png, masks=masks.npy"}})
    reader = daemon.reader("b", pipeline="image, masks: hflip(0.5)", batch=1, shuffle=False, on_error="skip")
    equal([line["index"] for line in reader.good(20)], [4], "samples that are served")
    for words in (("masks of 5 x 4 pixels", "picture of 4 x 4"), ("2 dimensions", "decode(mask=uint8)"), ("256",), ("float32", "masks are")):
        contains(daemon.log(), "field masks", *words)


@case("one mask of height x width in a .npy file or a list is a mask of the dtype that decode names")
def _(box):
    dice = random.Random(12)
    pixels = {i: identity_pixels(i, WIDTH, HEIGHT) for i in range(6)}
    for descr, most in ("|b1", 1), ("|u1", 255), ("<u2", 65535), (">i4", 2 ** 31 - 1), ("<i8", 2 ** 62):
        planes = {i: random_planes(dice, 1, most)[0] for i in pixels}
        name, size = descr[1:], int(descr[-1])
        dtype, wide = {"b1": ("uint8", 1), "u1": ("uint8", 1), "u2": ("uint16", 2), "i4": ("int32", 4), "i8": ("int64", 8)}[name]
        members, lines = [], []
        for i in pixels:
            order = "big" if descr[0] == ">" else "little"
            content = npy(descr, f"({HEIGHT}, {WIDTH})", b"".join(number.to_bytes(size, order) for number in planes[i]))
            members += [(f"{i}.png", png(WIDTH, HEIGHT, pixels[i])), (f"{i}.npy", content)]
            write(box.path(name, "img", f"{i}.png"), members[-2][1])
            write(box.path(name, "gt", f"{i}.npy"), content)
            lines.append({"image": f"img/{i}.png", "seg": [planes[i][y * WIDTH:(y + 1) * WIDTH] for y in range(HEIGHT)]})
        archive(box.path("w" + name, "x.tar"), members)
        write(box.path(name, "list.jsonl"), "".join(json.dumps(line) + "\n" for line in lines).encode())
        daemon = box.daemon({
            "w": {**web(box.path("w" + name)), "fields": "image=png, seg=npy"},
            "f": {"path": box.path(name), "format": "folder", "pattern": "img/{id}.png", "files": "seg=gt/{id}.npy"},
            "j": {"path": box.path(name, "list.jsonl"), "format": "jsonl", "files": "image=image"}})
        for dataset, (asked, n) in ((dataset, form) for dataset in "wfj" for form in ((dtype, wide), ("int64", 8))):
            for line in daemon.read(dataset, pipeline=f"image, seg: decode(mask={asked}) {STEPS} pad(1:0, fill=3)", batch=3):
                i, found = line["index"], found_of_padded(pixels[line["index"]])
                taken = places(*found[line["fields"]["image"]["sha256"]])
                rows = [[3, *(planes[i][place] for place in taken[y * WIDE:(y + 1) * WIDE]), 3] for y in range(HIGH)]
                content = b"".join(number.to_bytes(n, "little") for row in rows for number in row)
                equal(line["fields"]["seg"], {"dtype": asked, "shape": [HIGH, WIDE + 2], "sha256": hashlib.sha256(content).hexdigest()},
                      f"{descr}, {dataset}: mask of sample {i}")
        daemon.refused("w", "field seg", "decode(mask=D)", pipeline="image, seg: hflip(0.5)")


def found_of_padded(pixels):
    def padded(move):
        taken = places(*move)
        rows = [taken[y * WIDE:(y + 1) * WIDE] for y in range(HIGH)]
        border = b"\3" * 3
        return b"".join(border + b"".join(pixels[3 * place:3 * place + 3] for place in row) + border for row in rows)
    return {hashlib.sha256(padded(move)).hexdigest(): move for move in moves()}


@case("masks of height x width for pictures of any size; what is none is a damaged sample")
def _(box):
    sizes = [(4 + i, 9 - i) for i in range(5)]
    members = []
    for i, (w, h) in enumerate(sizes):
        numbers = [1000 * i + k for k in range(w * h)]
        members += [(f"{i}.png", png(w, h, identity_pixels(i, w, h))),
                    (f"{i}.mask.npy", npy("<u2", f"({h}, {w})", b"".join(number.to_bytes(2, "little") for number in numbers)))]
    good = png(4, 4, identity_pixels(0, 4, 4))
    members += [("5.png", good), ("5.mask.npy", npy("<u2", "(4, 5)", bytes(40))), ("6.png", good), ("6.mask.npy", npy("|u1", "(1, 4, 4)", bytes(16))),
                ("7.png", good), ("7.mask.npy", npy("<f4", "(4, 4)", bytes(64))), ("8.png", good), ("8.mask.npy", npy("<i4", "(4, 4)", bytes(60) + b"\0\0\1\0")),
                ("9.png", good), ("9.mask.npy", npy("<u2", "(4, 4)", bytes(32))[:-3])]
    archive(box.path("d", "x.tar"), members)
    daemon = box.daemon({"d": {**web(box.path("d")), "fields": "image=png, mask=mask.npy"}})
    seen = []
    for line in daemon.read("d", pipeline="image, mask: decode(mask=uint16) hflip(1)", batch=1, on_error="skip"):
        i = line["index"]
        w, h = sizes[i]
        seen.append(i)
        numbers = [1000 * i + y * w + w - 1 - x for y in range(h) for x in range(w)]
        equal(line["fields"]["mask"], {"dtype": "uint16", "shape": [h, w], "sha256": hashlib.sha256(
            b"".join(number.to_bytes(2, "little") for number in numbers)).hexdigest()}, f"mask of sample {i}")
    equal(sorted(seen), list(range(5)), "samples that are served")
    for words in (("mask of 5 x 4 pixels", "picture of 4 x 4"), ("uint8 with 3 dimensions",), ("float32", "whole numbers"),
                  ("65536 does not fit uint16",), ("ends at byte",)):
        contains(daemon.log(), "field mask", *words)
    for line in daemon.read("d", pipeline="image, mask: decode(mask=int32) resize(6)", batch=1, on_error="skip", job="short"):
        equal(min(line["fields"]["mask"]["shape"]), 6, "short side")


def listing(box, planes):
    """Pictures, and their masks as lists in a listing."""
    pixels = {i: identity_pixels(i, WIDTH, HEIGHT) for i in planes}
    for i in pixels:
        write(box.path("d", f"{i}.png"), png(WIDTH, HEIGHT, pixels[i]))
    rows = [{"path": f"{i}.png", "seg": [[plane[y * WIDTH:(y + 1) * WIDTH] for y in range(HEIGHT)] for plane in planes[i]],
             "mask.soft": [[[0.5] * WIDTH] * HEIGHT]} for i in pixels]
    write(box.path("d", "list.jsonl"), "".join(json.dumps(row) + "\n" for row in rows).encode())
    return pixels, box.daemon({"d": {"path": box.path("d"), "format": "jsonl", "files": "image=path"}})


@case("lists of a listing are masks, too; floats and masks without their picture are refused")
def _(box):
    dice = random.Random(22)
    planes = {i: random_planes(dice, 1 + i % 4) for i in range(6)}
    pixels, daemon = listing(box, planes)
    for line in daemon.read("d", pipeline=f"image, seg: {STEPS}", batch=4, seed=2):
        check(line, pixels, planes, name="seg")
    for pipeline, word in (("seg: hflip(0.5)", "names none"), ("image, seg: decode(mask=uint16)", "masks of instances"), ("image, mask.soft: hflip(0.5)", "array of float64"),
                           ("image, seg: decode(exif=transpose) hflip(0.5)", "exif")):
        daemon.refused("d", word, pipeline=pipeline)


@case("a batch in Python holds an array for each sample, with as many masks as it has")
def _(box):
    dice = random.Random(23)
    planes = {i: random_planes(dice, 1 + i % 4) for i in range(6)}
    _, daemon = listing(box, planes)
    counts = trainer(box, daemon, f"""
        planes = {planes!r}
        loader = dlclient.Loader("d", batch_size=3, pipeline="image, seg: hflip(0)", shuffle=False)
        for batch in loader:
            for i, masks in zip(batch.indices.tolist(), batch["seg"]):
                assert masks.shape == (len(planes[i]), {HEIGHT}, {WIDTH}) and masks.dtype == numpy.uint8, masks
                assert masks.tobytes() == b"".join(bytes(plane) for plane in planes[i])
                out(len(masks))
    """)
    equal(counts, [len(planes[i]) for i in planes], "masks of each sample")


def runs_of(plane):
    """Column by column: a run of zeroes, one of ones, ..."""
    counts, last = [0], 0
    for x in range(WIDTH):
        for y in range(HEIGHT):
            if plane[y * WIDTH + x] != last:
                last = 1 - last
                counts.append(0)
            counts[-1] += 1
    return {"size": [HEIGHT, WIDTH], "counts": counts}


def rectangle(dice):
    """A polygon, its plane and its bbox."""
    x0, y0 = dice.randrange(WIDTH), dice.randrange(HEIGHT)
    x1, y1 = dice.randint(x0 + 1, WIDTH), dice.randint(y0 + 1, HEIGHT)
    plane = [int(x0 <= x < x1 and y0 <= y < y1) for y in range(HEIGHT) for x in range(WIDTH)]
    return [[x0, y0, x1, y0, x1, y1, x0, y1]], plane


def coco(box, planes, segmentations):
    content = {"images": [{"id": i, "file_name": f"{i}.png"} for i in planes], "categories": [{"id": 7}], "annotations": []}
    for i in planes:
        write(box.path("p", f"{i}.png"), png(WIDTH, HEIGHT, identity_pixels(i, WIDTH, HEIGHT)))
        for plane, segmentation in zip(planes[i], segmentations[i]):
            x0, y0, x1, y1 = box_of(plane)
            more = {} if segmentation == "none" else {"segmentation": segmentation}
            content["annotations"].append({"image_id": i, "category_id": 7, "bbox": [x0, y0, x1 - x0, y1 - y0], **more})
    write(box.path("a.json"), json.dumps(content).encode())
    return {"path": box.path("p"), "format": "coco", "annotations": box.path("a.json")}


@case("COCO's segmentations become masks when a pipeline names them with their picture")
def _(box):
    dice = random.Random(24)
    planes, segmentations = {}, {}
    for i in range(14):
        planes[i], segmentations[i] = [], []
        for k in range(i % 6):
            polygon, plane = rectangle(dice)
            if k % 2:
                plane = random_planes(dice, 1, 1)[0]
                plane[dice.randrange(len(plane))] = 1
            planes[i].append(plane)
            segmentations[i].append(runs_of(plane) if k % 2 else polygon)
    pixels = {i: identity_pixels(i, WIDTH, HEIGHT) for i in planes}
    boxes = {i: [box_of(plane) for plane in planes[i]] for i in planes}
    dataset = coco(box, planes, segmentations)
    daemon = box.daemon({"d": dataset, "r": {**dataset, "fields": "image, boxes, labels, m=masks, segmentation", "split": "2:12"}})
    for line in daemon.read("d", pipeline=f"image, masks: {STEPS}", batch=4, seed=5):
        check(line, pixels, planes)
    n_left = 0
    for line in daemon.read("d", pipeline=f"labels, masks, boxes, image: {STEPS} sanitize", batch=4, seed=5):
        left = check(line, pixels, planes, boxes)
        equal(line["fields"]["labels"]["shape"], [len(planes[line["index"]]) - left], "labels leave with them")
        n_left += left
    equal(n_left > 3, True, f"{n_left} have left")
    for line in daemon.read("d", pipeline="image, masks, boxes: resize(short=11, max=40)", batch=1):
        i, (height, width) = line["index"], line["fields"]["image"]["shape"][:2]
        made = resized(planes[i], WIDTH, HEIGHT, width, height, 0)
        inner = [[plane[(y + 1) * (width + 2) + x + 1] for y in range(height) for x in range(width)] for plane in made]
        equal(line["fields"]["masks"], told(inner, height, width), f"resized masks of sample {i}")
    renamed = {i: planes[i + 2] for i in range(10)}
    for line in daemon.read("r", pipeline=f"image, m: {STEPS}; segmentation", batch=4, seed=5):
        check(line, {i: pixels[i + 2] for i in range(10)}, renamed, name="m")
        text = "[" + ", ".join(json.dumps(each) for each in segmentations[line["index"] + 2]) + "]"
        equal(line["fields"]["segmentation"]["sha256"], hashlib.sha256(text.encode()).hexdigest(), "segmentations stay what they are")
    for pipeline, words in (("masks", "drawn for its picture"), ("image; masks", "drawn for its picture"), ("masks: hflip(0.5)", "names none"),
                            ("boxes, masks: hflip(0.5)", "names none"), ("image, masks: decode(exif=transpose)", "exif")):
        daemon.refused("d", words, pipeline=pipeline)
    described = [each for each in daemon.objects("datasets", "d")[0]["fields"] if each["field"] == "masks"]
    equal([(each["kind"], each["dtype"], each["shape"], each["stored"]) for each in described], [("masks", "uint8", "[-1,-1,-1]", False)], "datasets")
    done = daemon.dlctl("look", "d", "3")
    equal(done.returncode, 0, "look")
    contains(done.stdout, "segmentation", "boxes")
    contains(done.stderr, '"masks" is not shown')
    digests = {line["index"]: line["fields"]["image"]["sha256"] for line in daemon.read("d", pipeline=f"image: {STEPS}", batch=4, seed=5)}
    equal({line["index"]: line["fields"]["image"]["sha256"] for line in
           daemon.read("d", pipeline=f"image, boxes, masks: {STEPS} sanitize", batch=4, seed=5)}, digests, "pictures are the same with masks")


@case("segmentations that cannot be drawn are damaged samples, named with their reason")
def _(box):
    polygon, plane = rectangle(random.Random(25))
    bad = [("none", "mask 1: the annotation has no segmentation"), ([], "no polygons"), ([[1, 1, 5, 5]], "2 corners"),
           ([[1, 1, 5, 5, 3]], "5 numbers"), ([[1, 1, 5, 5, 3, 1e30]], "cannot be"), ([[1, 1, 5, 5, 3, float("nan")]], "cannot be"),
           ({"size": [HEIGHT, WIDTH], "counts": [60, 4]}, "where 3 pixels of 9 x 7 are left"),
           ({"size": [HEIGHT, WIDTH], "counts": "0000"}, "those of 0 pixels"), ({"size": [WIDTH, HEIGHT], "counts": [63]}, "size [9, 7]"),
           ({"size": [HEIGHT, WIDTH], "counts": [-1]}, "one of -1"), ("x", "array of polygons or an object of run lengths")]
    planes = {i: [plane, plane] for i in range(len(bad))}
    segmentations = {i: [polygon, bad[i][0]] for i in planes}
    planes[len(bad)], segmentations[len(bad)] = [plane] * 60, [polygon] * 60
    dataset = coco(box, planes, segmentations)
    daemon = box.daemon({"d": dataset}, memory_limit="64MiB")
    lines = daemon.read("d", pipeline="image, masks: hflip(0.5)", batch=2, shuffle=False, on_error="skip")
    equal([line["index"] for line in lines], [len(bad)], "samples that are served")
    for i, (_, words) in enumerate(bad):
        contains(daemon.log(), f"sample {i} (", "field masks: mask 1: ", words)
    equal(len(daemon.read("d", pipeline="image, boxes: hflip(0.5); segmentation", batch=2)), len(planes), "who names no masks gets all samples")
    reader = daemon.reader("d", pipeline="image, masks: resize(500)", batch=1, on_error="skip", job="large")
    reader.finish(20)
    contains(daemon.log(), "has 60 masks of 642 x 500 pixels after the pipeline", "slots have room for", "raise memory_limit")


main()
