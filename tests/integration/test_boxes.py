#!/usr/bin/env python3
"""Boxes and points that move with their picture, and what leaves with those that `sanitize` drops; from annotations, from archives, and
from listings, where they come with another read than the picture. The arithmetic of each step is compared with torchvision in
test_boxes.c."""
import hashlib
import json
import os
import random
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import Skip, case, contains, equal, identity_pixels, indices, main, png, write
import coco  # registers float32
from listings import told_array
from tars import archive, npy, web

WIDTH, HEIGHT, WIDE, HIGH = 9, 7, 6, 5
STEPS = f"random_crop({HIGH}:{WIDE}) hflip(0.5) color_jitter(0) vflip(0.5)"
MIN_SIZE, MIN_AREA = 2, 5


def make_boxes(dice, n):
    boxes = []
    for _ in range(n):
        x, y = dice.randrange(WIDTH), dice.randrange(HEIGHT)
        boxes.append([x, y, x + dice.randint(1, WIDTH - x), y + dice.randint(1, HEIGHT - y)])
    return boxes


def moved(box, left, top, h, v):
    x0, x1 = (min(max(x - left, 0), WIDE) for x in (box[0], box[2]))
    y0, y1 = (min(max(y - top, 0), HIGH) for y in (box[1], box[3]))
    x0, x1 = (-(x1 - float(WIDE)), -(x0 - float(WIDE))) if h else (x0, x1)
    y0, y1 = (-(y1 - float(HIGH)), -(y0 - float(HIGH))) if v else (y0, y1)
    return [x0, y0, x1, y1]


def moved_point(point, left, top, h, v):
    x, y = point[0] - left, point[1] - top
    return [-(x - (WIDE - 1.0)) if h else x, -(y - (HIGH - 1.0)) if v else y]


def stays(box):
    width, height = box[2] - box[0], box[3] - box[1]
    return width >= MIN_SIZE and height >= MIN_SIZE and width * height >= MIN_AREA


def results(pixels, boxes, move=moved):
    """{hash of the pixels: boxes} of all that the steps may make of a sample."""
    rows = [[pixels[(y * WIDTH + x) * 3:][:3] for x in range(WIDTH)] for y in range(HEIGHT)]
    found = {}
    for left in range(WIDTH - WIDE + 1):
        for top in range(HEIGHT - HIGH + 1):
            for h, v in ((0, 0), (0, 1), (1, 0), (1, 1)):
                part = [row[left:left + WIDE][::-1 if h else 1] for row in rows[top:top + HIGH]][::-1 if v else 1]
                digest = hashlib.sha256(b"".join(b"".join(row) for row in part)).hexdigest()
                found[digest] = [move(box, left, top, h, v) for box in boxes]
    return found


def check_thinned(line, found, columns, n_dropped):
    """Compares the boxes and all columns, {field: (values, kind)}, of a sample. Returns how many were dropped so far."""
    boxes = found[line["fields"]["image"]["sha256"]]
    kept = [i for i, box in enumerate(boxes) if stays(box)]
    equal(line["fields"]["boxes"], told_array([boxes[i] for i in kept], "f4", [len(kept), 4]), f"boxes of sample {line['index']}")
    for name, (values, kind) in columns.items():
        equal(line["fields"][name], told_array([values[i] for i in kept], kind, [len(kept)]), f"{name} of sample {line['index']}")
    return n_dropped + len(boxes) - len(kept)


@case("sanitize drops boxes, and their labels, areas and crowds leave with them")
def _(box):
    dice = random.Random(6)
    pixels = {i: identity_pixels(i, WIDTH, HEIGHT) for i in range(16)}
    boxes = {i: make_boxes(dice, dice.randrange(12)) for i in pixels}
    content = {"images": [{"id": i, "file_name": f"{i}.png"} for i in pixels], "categories": [{"id": 1 + k} for k in range(12)],
               "annotations": [{"image_id": i, "category_id": 1 + k, "bbox": [x0, y0, x1 - x0, y1 - y0], "area": 100 * i + k, "iscrowd": k % 2}
                               for i in pixels for k, (x0, y0, x1, y1) in enumerate(boxes[i])]}
    for i in pixels:
        write(box.path("p", f"{i}.png"), png(WIDTH, HEIGHT, pixels[i]))
    write(box.path("a.json"), json.dumps(content).encode())
    daemon = box.daemon({"d": {"path": box.path("p"), "format": "coco", "annotations": box.path("a.json")}})
    sanitize = f"sanitize(min_size={MIN_SIZE}, min_area={MIN_AREA})"
    for fields in ("image, boxes, labels, area, iscrowd", "iscrowd, labels, boxes, area, image"):
        n_dropped = 0
        for line in daemon.read("d", pipeline=f"{fields}: {STEPS} {sanitize}; category_ids", batch=4, seed=8):
            i, n = line["index"], len(boxes[line["index"]])
            n_dropped = check_thinned(line, results(pixels[i], boxes[i]), {
                "labels": (list(range(n)), int), "area": ([100 * i + k for k in range(n)], "f4"), "iscrowd": ([k % 2 for k in range(n)], int)}, n_dropped)
            equal(line["fields"]["category_ids"], told_array([1 + k for k in range(n)], int, [n]), "those of another part stay")
        equal(n_dropped > 20, True, f"{n_dropped} were dropped")
    for line in daemon.read("d", pipeline=f"image, boxes, labels: {STEPS}", batch=4, seed=8):
        n = len(boxes[line["index"]])
        equal(line["fields"]["labels"], told_array(list(range(n)), int, [n]), "without sanitize all stay")
        equal(line["fields"]["boxes"]["shape"], [n, 4], "boxes")


@case("boxes and labels of a listing, which come after the file of their picture, in any dtype; rows that do not fit are damage")
def _(box):
    dice = random.Random(7)
    pixels = {i: identity_pixels(i, WIDTH, HEIGHT) for i in range(12)}
    boxes = {i: make_boxes(dice, 1 + dice.randrange(9)) for i in pixels}
    lines = [{"labels": [50 + k for k in range(len(boxes[i]))], "path": f"{i}.png", "boxes": boxes[i],
              "points": [[dice.randrange(20) - 5, 0.5 * k] for k in range(3)]} for i in pixels]
    lines[3]["boxes"] = boxes[3] = [[1.5, 0.25, 8, 6.5]]
    lines[3]["labels"] = [50]
    for i in pixels:
        lines[i]["corners"] = [[box[:2], box[2:]] for box in boxes[i]]
    lines[5]["labels"].append(99)
    del lines[7]["boxes"]
    for i in pixels:
        write(box.path("d", f"{i}.png"), png(WIDTH, HEIGHT, pixels[i]))
    write(box.path("d", "list.jsonl"), "".join(json.dumps(line) + "\n" for line in lines).encode())
    daemon = box.daemon({"d": {"path": box.path("d"), "format": "jsonl", "files": "image=path"}})
    sanitize = f"sanitize(min_size={MIN_SIZE}, min_area={MIN_AREA})"
    for fields in ("image, boxes, labels, points, corners", "corners, labels, points, boxes, image"):
        n_dropped, seen = 0, []
        for line in daemon.read("d", pipeline=f"{fields}: {STEPS} {sanitize}", batch=4, seed=8, on_error="skip"):
            i = line["index"]
            seen.append(i)
            digest = line["fields"]["image"]["sha256"]
            points = results(pixels[i], lines[i]["points"], moved_point)[digest]
            equal(line["fields"]["points"], told_array(points, "f4", [3, 2]), f"points of sample {i}")
            kept = [k for k, each in enumerate(results(pixels[i], boxes[i])[digest]) if i == 7 or stays(each)]
            corners = [results(pixels[i], lines[i]["corners"][k], moved_point)[digest] for k in kept]
            equal(line["fields"]["corners"], told_array(corners, "f4", [len(kept), 2, 2]), f"corners of sample {i}")
            if i == 7:
                equal(line["fields"]["boxes"], None, "boxes that are absent")
                equal(line["fields"]["labels"], told_array(lines[7]["labels"], int, [len(lines[7]["labels"])]), "labels without boxes")
                continue
            n_dropped = check_thinned(line, results(pixels[i], boxes[i]), {"labels": (lines[i]["labels"], int)}, n_dropped)
        equal(sorted(seen), [i for i in pixels if i != 5], f"{fields}: samples")
        equal(n_dropped > 10, True, f"{n_dropped} were dropped")
    reader = daemon.reader("d", pipeline=f"image, boxes, labels: {STEPS} {sanitize}", shuffle=False)
    reader.finish(20)
    contains(reader.errors(), "field labels", f"has {len(boxes[5]) + 1} rows for {len(boxes[5])} boxes")
    for line in daemon.read("d", pipeline=f"image, boxes: {STEPS}", batch=4, seed=8):
        i = line["index"]
        expected = results(pixels[i], boxes[i])[line["fields"]["image"]["sha256"]]
        equal(line["fields"]["boxes"], None if i == 7 else told_array(expected, "f4", [len(expected), 4]), f"sample {i}")


@case("boxes and labels in .npy files of an archive")
def _(box):
    dice = random.Random(9)
    pixels = {i: identity_pixels(i, WIDTH, HEIGHT) for i in range(8)}
    boxes = {i: make_boxes(dice, i % 5) for i in pixels}
    members = []
    for i in pixels:
        n = len(boxes[i])
        members += [(f"{i}.boxes.npy", npy(">i4", f"({n}, 4)", struct.pack(f">{4 * n}i", *(x for each in boxes[i] for x in each)))),
                    (f"{i}.labels.npy", npy("<i8", f"({n},)", struct.pack(f"<{n}q", *range(n)))), (f"{i}.png", png(WIDTH, HEIGHT, pixels[i]))]
    archive(box.path("d", "x.tar"), members)
    daemon = box.daemon({"d": {**web(box.path("d")), "fields": "image=png, boxes=boxes.npy, labels=labels.npy"}})
    n_dropped = 0
    for line in daemon.read("d", pipeline=f"labels, boxes, image: {STEPS} sanitize(min_size={MIN_SIZE}, min_area={MIN_AREA})", batch=3):
        i = line["index"]
        n_dropped = check_thinned(line, results(pixels[i], boxes[i]), {"labels": (list(range(len(boxes[i]))), int)}, n_dropped)
    equal(n_dropped > 3, True, f"{n_dropped} were dropped")


def mask_png(width, height, depth, kind, numbers):
    """A PNG of grey levels (kind 0) or of a palette (3)."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    rows = b""
    for y in range(height):
        bits = "".join(format(number, f"0{depth}b") for number in numbers[y * width:(y + 1) * width])
        rows += b"\0" + int(bits.ljust(-(-len(bits) // 8) * 8, "0"), 2).to_bytes(-(-len(bits) // 8), "big")
    palette = chunk(b"PLTE", bytes(255 - i // 3 for i in range(3 << depth))) if kind == 3 else b""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)) + palette + \
        chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def told_mask(numbers, height, width):
    return {"dtype": "uint8", "shape": [height, width], "sha256": hashlib.sha256(bytes(numbers)).hexdigest()}


@case("masks move with their picture: numbers of a palette or of grey, never mixed; others are damaged samples")
def _(box):
    dice = random.Random(10)
    pixels = {i: identity_pixels(i, WIDTH, HEIGHT) for i in range(10)}
    # bits, kind, and what a number becomes: grey of 2 and 4 bits is scaled, as Pillow's "L"
    kinds = [(8, 3, 1), (8, 0, 1), (1, 0, 1), (1, 3, 1), (4, 3, 1), (4, 0, 17), (2, 0, 85)]
    numbers, members = {}, []
    for i in pixels:
        depth, kind, scale = kinds[i % len(kinds)]
        stored = [dice.randrange(1 << depth) for _ in range(WIDTH * HEIGHT)]
        numbers[i] = [number * scale for number in stored]
        members += [(f"{i}.png", png(WIDTH, HEIGHT, pixels[i])), (f"{i}.seg.png", mask_png(WIDTH, HEIGHT, depth, kind, stored))]
    members += [("a.png", png(WIDTH, HEIGHT, pixels[0])), ("a.seg.png", png(WIDTH, HEIGHT, pixels[0])),
                ("b.png", png(WIDTH, HEIGHT, pixels[0])), ("b.seg.png", mask_png(HEIGHT, WIDTH, 8, 0, numbers[0]))]
    archive(box.path("d", "x.tar"), members)
    daemon = box.daemon({"d": web(box.path("d")), "r": {**web(box.path("d")), "fields": "image=png, mask=seg.png"}})

    def places(left, top, h, v):
        rows = [[y * WIDTH + x for x in range(left, left + WIDE)][::-1 if h else 1] for y in range(top, top + HIGH)]
        return [place for row in rows[::-1 if v else 1] for place in row]

    def found_of(i):
        """{hash of the pixels: mask} of all that the steps may make of a sample."""
        found = {}
        for where in ((left, top, h, v) for left in range(WIDTH - WIDE + 1) for top in range(HEIGHT - HIGH + 1) for h in (0, 1) for v in (0, 1)):
            pixel = b"".join(pixels[i][3 * place:3 * place + 3] for place in places(*where))
            found[hashlib.sha256(pixel).hexdigest()] = [numbers[i][place] for place in places(*where)]
        return found

    for name, fields in ("d", "png, seg.png"), ("r", "mask, image"):
        seen = []
        for line in daemon.read(name, pipeline=f"{fields}: {STEPS}", batch=4, seed=3, on_error="skip"):
            i, parts = line["index"], line["fields"]
            seen.append(i)
            mask, image = parts.get("mask") or parts["seg.png"], parts.get("image") or parts["png"]
            equal(mask, told_mask(found_of(i)[image["sha256"]], HIGH, WIDE), f"mask of sample {i}")
        equal(sorted(seen), list(range(10)), f"{name}: samples")
    for new_height, new_width in ((4, 20), (15, 5), (HEIGHT, WIDTH)):
        pipeline = f"png, seg.png: resize({new_height}:{new_width}) color_jitter(0.5) grayscale pad(1, fill=9) to(float32) layout(nchw)"
        for line in daemon.read("d", pipeline=pipeline, batch=2, on_error="skip"):
            i = line["index"]
            mask = [9] * (new_width + 2)
            for y in range(new_height):
                mask += [9, *(numbers[i][(y * HEIGHT // new_height) * WIDTH + x * WIDTH // new_width] for x in range(new_width)), 9]
            mask += [9] * (new_width + 2)
            equal(line["fields"]["seg.png"], told_mask(mask, new_height + 2, new_width + 2), f"resized mask of sample {i}")
            equal(line["fields"]["png"]["shape"], [1, new_height + 2, new_width + 2], "picture")
    for bad, words in (10, ("field seg.png", "red, green and blue")), (11, ("mask of 7 x 9", "picture of 9 x 7")):
        reader = daemon.reader("d", pipeline="png, seg.png: hflip(0.5)", shuffle=False, batch=1, job=f"bad {bad}",
                               **({} if bad == 10 else {"on_error": "skip", "max_errors": 1}))
        reader.finish(20)
        contains(reader.errors() if bad == 10 else daemon.log(), *words)
    reader = daemon.reader("d", pipeline="png, seg.png: pad(1, fill=1:2:3)", shuffle=False)
    reader.finish(20)
    contains(reader.errors(), "fill one number")


@case("masks of 16 bits beside pictures of 8: in the dtype that decode names, with masks of 8 bits in the same batches")
def _(box):
    dice = random.Random(11)
    pixels = {i: identity_pixels(i, WIDTH, HEIGHT) for i in range(9)}
    numbers, members = {}, []
    for i in pixels:
        depth, kind = ((16, 0), (8, 3), (16, 0))[i % 3]
        numbers[i] = [dice.randrange(1 << depth) for _ in range(WIDTH * HEIGHT)]
        members += [(f"{i}.png", png(WIDTH, HEIGHT, pixels[i])), (f"{i}.seg.png", mask_png(WIDTH, HEIGHT, depth, kind, numbers[i]))]
    archive(box.path("d", "x.tar"), members)
    daemon = box.daemon({"d": {**web(box.path("d")), "fields": "image=png, seg=seg.png"}})
    places = [y * WIDTH + x for y in range(HEIGHT) for x in range(WIDTH)]
    for dtype, size in (("uint16", 2), ("int32", 4), ("int64", 8)):
        seen = set()
        for line in daemon.read("d", pipeline=f"image, seg: decode(mask={dtype}) hflip(0.5) pad(0:1, fill=200)", batch=4):
            i, image = line["index"], line["fields"]["image"]
            border = [200] * WIDTH
            for mirrored in (False, True):
                taken = [y * WIDTH + (WIDTH - 1 - x if mirrored else x) for y in range(HEIGHT) for x in range(WIDTH)]
                pixel = b"".join(pixels[i][3 * place:3 * place + 3] for place in taken)
                if hashlib.sha256(bytes(3 * border) + pixel + bytes(3 * border)).hexdigest() == image["sha256"]:
                    made = border + [numbers[i][place] for place in taken] + border
                    break
            else:
                raise AssertionError(f"sample {i}: no such picture")
            seen.add(mirrored)
            equal(line["fields"]["seg"], {"dtype": dtype, "shape": [HEIGHT + 2, WIDTH], "sha256": hashlib.sha256(
                b"".join(number.to_bytes(size, "little") for number in made)).hexdigest()}, f"mask of sample {i}")
        equal(seen, {False, True}, "mirrored or not")
    for line in daemon.read("d", pipeline="image, seg: decode(max_pixels=63, mask=uint16)", batch=1):
        i = line["index"]
        equal(line["fields"]["seg"]["sha256"], hashlib.sha256(b"".join(numbers[i][place].to_bytes(2, "little") for place in places)).hexdigest(), "as stored")
    daemon.refused("d", "sample 0", "field seg", "16 bits", "decode(mask=uint16)", pipeline="image, seg: hflip(0.5)", shuffle=False)
    daemon.refused("d", "max_pixels=63", pipeline="image, seg: decode(max_pixels=62, mask=uint16)", batch=1)
    for pipeline in ("image: decode(mask=uint16) hflip(0.5); seg", "seg: decode(mask=int32)"):
        daemon.refused("d", "its part names none", pipeline=pipeline)


def iou_terms(replay, draws, width, height, boxes, options=(0, 0.1, 0.3, 0.5, 0.7, 0.9, 1), trials=40, scale=(0.3, 1)):
    """RandomIoUCrop's (left, top, width, height) with our draws; None: as it is."""
    f32 = replay.numpy.float32
    boxes = replay.numpy.array(boxes, "f4").reshape(-1, 4)
    for _ in range(100):
        wanted = options[draws.below(len(options))]
        if wanted >= 1:
            return None
        for _ in range(trials):
            r = [f32(scale[0]) + f32(scale[1] - scale[0]) * f32(draws.f32()) for _ in range(2)]
            w, h = int(f32(width) * r[0]), int(f32(height) * r[1])
            if 0 in (w, h) or not 0.5 <= w / h <= 2:
                continue
            r = [f32(draws.f32()) for _ in range(2)]
            left, top = int(f32(width - w) * r[0]), int(f32(height - h) * r[1])
            inside = boxes[is_inside(boxes, left, top, w, h)]
            if len(inside) == 0:
                continue
            sides = [(replay.numpy.minimum(inside[:, i + 2], f32(end)) - replay.numpy.maximum(inside[:, i], f32(begin))).clip(0)
                     for i, begin, end in ((0, left, left + w), (1, top, top + h))]
            both = sides[0] * sides[1]
            areas = (inside[:, 2] - inside[:, 0]) * (inside[:, 3] - inside[:, 1])
            if (both / (areas + f32(w * h) - both)).max() >= f32(wanted):
                return left, top, w, h
    return None


def is_inside(boxes, left, top, w, h):
    x, y = (boxes[:, 0] + boxes[:, 2]) / 2, (boxes[:, 1] + boxes[:, 3]) / 2
    return (left < x) & (x < left + w) & (top < y) & (y < top + h)


def theirs(replay, draws, width, height, boxes, **more):
    """The same of torchvision v2 itself, where it is installed."""
    from torchvision import tv_tensors
    from torchvision.transforms import v2
    torch, step = replay.torch, v2.RandomIoUCrop(**more)
    boxes = tv_tensors.BoundingBoxes(torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4), format="XYXY", canvas_size=(height, width))
    kept = torch.rand, torch.randint
    torch.rand = lambda n: torch.tensor([draws.f32() for _ in range(n)])
    torch.randint = lambda low, high, size: torch.tensor([low + draws.below(high - low)])
    try:
        terms = step.make_params([torch.zeros(3, height, width), boxes])
    finally:
        torch.rand, torch.randint = kept
    return (terms["left"], terms["top"], terms["width"], terms["height"]) if terms else None


@case("random_iou_crop has torchvision's crops: pixels, masks, boxes, and what leaves with those that sanitize drops")
def _(box):
    try:
        import replay
    except ImportError as error:
        raise Skip(f"torch, torchvision, Pillow or NumPy is not installed for this python3: {error}") from error
    numpy, dice, members, samples = replay.numpy, random.Random(5), [], []
    for i in range(80):
        width, height = dice.randint(20, 60), dice.randint(20, 60)
        boxes = []
        for _ in range(dice.randint(0, 5)):
            x, y = dice.uniform(0, width - 4), dice.uniform(0, height - 4)
            boxes.append([x, y, dice.uniform(x + 2, width), dice.uniform(y + 2, height)])
        boxes = numpy.array(boxes, "f4").reshape(-1, 4)
        pixels = numpy.frombuffer(dice.randbytes(width * height * 3), "u1").reshape(height, width, 3)
        samples.append((pixels, boxes))
        grey = pixels[:, :, 0].tobytes()
        members += [(f"{i:03}.png", png(width, height, pixels.tobytes())),
                    (f"{i:03}.seg.png", b"P5 %d %d 255\n" % (width, height) + grey),
                    (f"{i:03}.boxes.npy", npy("<f4", f"({len(boxes)}, 4)", boxes.tobytes())),
                    (f"{i:03}.labels.npy", npy("<i8", f"({len(boxes)},)", numpy.arange(len(boxes)).tobytes()))]
    archive(box.path("w", "0.tar"), members)
    daemon = box.daemon({"w": web(box.path("w"))}, workers=2)

    def digest(array):
        return hashlib.sha256(numpy.ascontiguousarray(array).tobytes()).hexdigest()

    has_v2, n_cropped, n_dropped = True, 0, 0
    try:
        from torchvision.transforms import v2  # noqa: F401
    except ImportError:
        has_v2 = False
    for text, terms in (("random_iou_crop", {}),
                        ("random_iou_crop(min_scale=0.1, max_scale=0.8, sampler_options=0.2:0.4:2, trials=10)",
                         {"options": (0.2, 0.4, 2), "trials": 10, "scale": (0.1, 0.8)})):
        lines = daemon.read("w", pipeline=f"png, seg.png, boxes.npy: {text}", batch=1, seed=9, epochs=2)
        kept = daemon.read("w", pipeline=f"png, boxes.npy, labels.npy: {text} sanitize", batch=1, seed=9, epochs=2)
        equal([len(lines), len(kept)], [160, 160], "samples")
        for line, other in zip(lines, kept):
            pixels, boxes = samples[line["index"]]
            height, width = pixels.shape[:2]
            draws = lambda: replay.Draws(9, line["epoch"], line["index"], 1)
            crop = iou_terms(replay, draws(), width, height, boxes, **terms)
            if has_v2 and (len(boxes) > 0 or crop is None):
                names = {"options": "sampler_options", "trials": "trials"}
                more = {names[key]: value for key, value in terms.items() if key in names}
                if "scale" in terms:
                    more.update(min_scale=terms["scale"][0], max_scale=terms["scale"][1])
                equal(crop, theirs(replay, draws(), width, height, boxes, **more), f"torchvision's crop of {line['index']}")
            n_cropped += crop is not None
            left, top, w, h = crop or (0, 0, width, height)
            moved_boxes = boxes.copy()
            if crop:
                moved_boxes[~is_inside(boxes, left, top, w, h)] = 0
                moved_boxes = numpy.stack([(moved_boxes[:, i] - numpy.float32((left, top)[i % 2])).clip(0, (w, h)[i % 2]) for i in range(4)], 1)
            part = pixels[top:top + h, left:left + w]
            stay = ((moved_boxes[:, 2:] - moved_boxes[:, :2]) >= 1).all(1)
            stay &= (moved_boxes[:, 2] - moved_boxes[:, 0]) * (moved_boxes[:, 3] - moved_boxes[:, 1]) >= 1
            n_dropped += int((~stay).sum())
            for name, expected in (("png", part), ("seg.png", part[:, :, 0]), ("boxes.npy", moved_boxes.astype("f4"))):
                equal(line["fields"][name]["sha256"], digest(expected), f"{name} of {line['index']}: {crop}")
            for name, expected in (("png", part), ("boxes.npy", moved_boxes[stay].astype("f4")), ("labels.npy", numpy.arange(len(boxes))[stay])):
                equal(other["fields"][name]["sha256"], digest(expected), f"{name} of {line['index']}, sanitized: {crop}")
    print(f"    {n_cropped} of 320 cropped, {n_dropped} boxes dropped, compared with torchvision itself: {has_v2}")
    assert 100 < n_cropped < 300 and n_dropped > 50
    for text, words in (("png: random_iou_crop", ("looks at boxes", "names none")),
                        ("png, boxes.npy: random_iou_crop(0.5, 0.3)", ("min_scale 0.5 is above max_scale 0.3",))):
        daemon.refused("w", *words, pipeline=text, batch=1)


@case("a pipeline that names no boxes for sanitize, or several, or arrays without boxes, is refused")
def _(box):
    write(box.path("d", "0.png"), png(WIDTH, HEIGHT, identity_pixels(0, WIDTH, HEIGHT)))
    write(box.path("d", "list.jsonl"), (json.dumps({"path": "0.png", "boxes": [[0, 0, 2, 2]], "more": [[0, 0, 2, 2]], "labels": [1]}) + "\n").encode())
    daemon = box.daemon({"d": {"path": box.path("d"), "format": "jsonl", "files": "image=path"}})
    for pipeline, word in (("hflip(0.5) sanitize", "names none"), ("image: sanitize", "names none"), ("image, labels: sanitize", "names none"),
                           ("image, boxes, more: sanitize", "several"), ("boxes, labels: sanitize", "its part names none"),
                           ("image, labels: hflip(0.5)", "is an array"), ("labels: hflip(0.5)", "is an array"),
                           ("image, boxes: to(float32) sanitize", "sets the form"), ("image, boxes: sanitize(min_size=-1)", "min_size")):
        daemon.refused("d", word, pipeline=pipeline)
    daemon.read("d", pipeline="image, boxes, more, labels: hflip(0.5)")
    daemon.read("d", pipeline="image, boxes: random_rotation(30) random_affine(9) random_perspective")
    for policy in ("auto_augment", "rand_augment(2, 9)", "trivial_augment_wide", "aug_mix"):
        daemon.refused("d", "field boxes", policy.partition("(")[0], "not for pictures with masks, boxes or points",
                       pipeline=f"image, boxes: {policy}")
        daemon.read("d", pipeline=f"image: {policy}; boxes")


main()
