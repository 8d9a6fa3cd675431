#!/usr/bin/env python3
"""COCO's object detection: pictures with boxes, labels, areas, crowds and segmentations, as pycocotools finds them; what is refused."""
import hashlib
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, check_sequence, contains, equal, expected_order, identity_pixels, indices, main, png, within, write
from coco import FIELDS, annotations_of, f4, told
from listings import told_array
from pyclient import need, trainer

def coco(box, **more):
    return {"path": box.path("p"), "format": "coco", "annotations": box.path("a.json"), **more}


@case("each image comes with its boxes, labels and segmentations, by id, for one rank and for two")
def _(box):
    content = annotations_of(random.Random(1))
    write(box.path("a.json"), json.dumps(content).encode())
    for i, image in enumerate(content["images"]):
        write(box.path("p", image["file_name"]), png(9, 7, identity_pixels(i, 9, 7)))
        write(box.path("f", "c", f"{image['id']:013d}.png"), png(9, 7, identity_pixels(i, 9, 7)))
    expected = told(content)
    daemon = box.daemon({"d": coco(box), "f": box.path("f")})
    for world, rank in ((1, 0), (2, 0), (2, 1)):
        lines = daemon.read("d", pipeline=FIELDS, batch=7, world=world, rank=rank, seed=3)
        equal(indices(lines), expected_order(len(expected), world=world, rank=rank, seed=3), "order")
        for line in lines:
            equal(line["fields"], expected[line["index"]], f"sample {line['index']}")
    plain = daemon.read("f", pipeline="image: resize(4)", seed=9, batch=5)
    lines = daemon.read("d", pipeline="image: resize(4); boxes; labels", seed=9, batch=5)
    equal([line["fields"]["image"] for line in lines], [line["fields"]["image"] for line in plain], "pixels")


CLASSES = """
    for name, expected in json.load(open(sys.argv[1])).items():
        with dlclient.Loader(name.split("+"), 4, pipeline="labels; category_ids", job=name) as loader:
            assert loader.dataset.classes == expected, (name, loader.dataset.classes)
            assert loader.dataset.class_to_idx == {each: label for label, each in enumerate(expected)}
            names = json.loads(sys.argv[2])
            if expected and name != "named twice":
                for batch in loader:
                    assert [expected[label] for labels in batch["labels"] for label in labels.tolist()] == \\
                           [names[str(number)] for numbers in batch["category_ids"] for number in numbers.tolist()]
    with dlclient.Loader("d", 4, pipeline="image_id", sampler="repeat_factor(labels, t=0.5)") as loader:
        refused(dlclient.OptionError, lambda: list(loader.sampler), "labels", "any number of numbers", "batches")
"""


@case("loader.dataset.classes are the names of the categories in the order of the labels, where all of them have names")
def _(box):
    need("numpy")
    content = annotations_of(random.Random(4))
    categories = content["categories"]
    for each in categories:
        each["name"] = f"wörter und n{each['id']}"
    names = {each["id"]: each["name"] for each in categories}
    one = {"images": [{"id": 1, "file_name": "a.png"}], "annotations": []}
    contents = {"d": content, "other": {**content, "categories": [{**each, "name": "x" + each["name"]} for each in categories]},
                "unnamed": {**content, "categories": categories[:-1] + [{"id": categories[-1]["id"]}]},
                "no text": {**content, "categories": categories[:-1] + [{"id": categories[-1]["id"], "name": ["a"]}]},
                "none": one, "unlisted": {**content, "categories": []},
                "named twice": {**content, "categories": [{**categories[0], "name": "before"}] + categories}}
    for name, each in contents.items():
        write(box.path(f"{name}.json"), json.dumps(each).encode())
    for image in content["images"]:
        write(box.path("p", image["file_name"]), png(9, 7, identity_pixels(1, 9, 7)))
    known = [name for _, name in sorted(names.items())]
    expected = {"d": known, "unnamed": [], "no text": [], "none": [], "unlisted": [], "named twice": known, "d+d2": known,
                "d+other": [], "d+unnamed": known}
    write(box.path("expected"), json.dumps(expected).encode())
    daemon = box.daemon({**{name: {**coco(box), "annotations": box.path(f"{name}.json")} for name in contents},
                         "d2": {**coco(box), "annotations": box.path("d.json")}})
    trainer(box, daemon, CLASSES, box.path("expected"), json.dumps(names))
    equal({each["name"]: each["n_classes"] for each in daemon.objects("datasets") if each["name"] in ("d", "unnamed")},
          {"d": len(known), "unnamed": 0}, "dlctl datasets")
    digests = {each["name"]: each["digest"] for each in daemon.objects("datasets") if each["name"] in ("d", "other", "unnamed")}
    equal(len(set(digests.values())), 1, f"names are not in the digest, so states of runs stay good: {digests}")


@case("boxes move with their picture: the same crop and flips, found by the pixels; values as torchvision's arithmetic gives them")
def _(box):
    width, height, wide, high = 9, 7, 6, 5
    dice = random.Random(5)
    pixels = {i: identity_pixels(i, width, height) for i in range(12)}
    content = {"images": [{"id": i, "file_name": f"{i}.png"} for i in pixels], "categories": [{"id": 1}], "annotations": []}
    boxes = {i: [] for i in pixels}
    for i in pixels:
        write(box.path("p", f"{i}.png"), png(width, height, pixels[i]))
        for _ in range(dice.randrange(4)):
            x, y = dice.randrange(width), dice.randrange(height)
            w, h = dice.randint(1, width - x), dice.randint(1, height - y)
            content["annotations"].append({"image_id": i, "category_id": 1, "bbox": [x, y, w, h]})
            boxes[i].append((x, y, x + w, y + h))
    write(box.path("a.json"), json.dumps(content).encode())
    daemon = box.daemon({"d": coco(box)})

    def results(i):
        """All that the steps may make of a sample."""
        rows = [[pixels[i][(y * width + x) * 3:][:3] for x in range(width)] for y in range(height)]
        for left in range(width - wide + 1):
            for top in range(height - high + 1):
                for h, v in ((0, 0), (0, 1), (1, 0), (1, 1)):
                    part = [row[left:left + wide][::-1 if h else 1] for row in rows[top:top + high]][::-1 if v else 1]
                    corners = []
                    for x0, y0, x1, y1 in boxes[i]:
                        x0, x1 = (min(max(x - left, 0), wide) for x in (x0, x1))
                        y0, y1 = (min(max(y - top, 0), high) for y in (y0, y1))
                        x0, x1 = (-(x1 - float(wide)), -(x0 - float(wide))) if h else (x0, x1)
                        y0, y1 = (-(y1 - float(high)), -(y0 - float(high))) if v else (y0, y1)
                        corners += [x0, y0, x1, y1]
                    yield hashlib.sha256(b"".join(b"".join(row) for row in part)).hexdigest(), told_array(corners, "f4", [len(boxes[i]), 4])

    steps = "random_crop(5:6) hflip(0.5) color_jitter(0) vflip(0.5)"
    for fields in ("image, boxes", "boxes, image"):
        for line in daemon.read("d", pipeline=f"{fields}: {steps}; labels", batch=4, seed=8):
            expected = dict(results(line["index"]))
            equal(line["fields"]["boxes"], expected[line["fields"]["image"]["sha256"]], f"{fields}: sample {line['index']}")
    for line in daemon.read("d", pipeline="image, boxes: resize(short=8, max=9)", batch=3, seed=8):
        new_width, new_height = 9, 9 * 8 // 10
        corners = [f4(value * f4(new / old)) for each in boxes[line["index"]]
                   for value, new, old in zip(each, (new_width, new_height) * 2, (width, height) * 2)]
        equal(line["fields"]["image"]["shape"][:2], [new_height, new_width], "size")
        equal(line["fields"]["boxes"], told_array(corners, "f4", [len(boxes[line["index"]]), 4]), f"resized: sample {line['index']}")
    daemon.refused("d", "names none", pipeline="boxes: hflip(0.5)")


@case("a picture that is missing is a damaged sample; annotations that changed are indexed again")
def _(box):
    content = {"images": [{"id": i, "file_name": f"{i}.png"} for i in range(3)], "categories": [{"id": 1}],
               "annotations": [{"image_id": 0, "category_id": 1, "bbox": [0, 0, 1, 1]}]}
    write(box.path("p", "a.json"), json.dumps(content).encode())
    for i in (0, 2):
        write(box.path("p", f"{i}.png"), png(3, 3, identity_pixels(i, 3, 3)))
    daemon = box.daemon({"d": {**coco(box), "annotations": "a.json"}})
    lines = daemon.read("d", pipeline="image; boxes", shuffle=False, on_error="skip", batch=3)
    equal(indices(lines), [0, 2], "samples")
    equal([line["fields"]["boxes"]["shape"] for line in lines], [[1, 4], [0, 4]], "boxes")
    contains(daemon.dlctl("errors", "d").stdout, "1.png")
    content["annotations"] *= 3
    write(box.path("p", "a.json"), json.dumps(content).encode())
    within(20, lambda: daemon.read("d", pipeline="boxes", shuffle=False, batch=3)[0]["fields"]["boxes"]["shape"] == [3, 4],
           "the annotations that changed")


@case("a value that does not fit is a damaged sample, also where no file is read")
def _(box):
    images = [{"id": i, "file_name": f"{i}.png"} for i in range(4)]
    for i in range(4):
        write(box.path("p", f"{i}.png"), png(3, 3, identity_pixels(i, 3, 3)))
    write(box.path("a.json"), json.dumps({"images": images, "annotations": [
        {"image_id": i, "category_id": 1000 if i == 2 else i, "bbox": [0, 0, 1, 1]} for i in range(4)]}).encode())
    daemon = box.daemon({"d": coco(box)})
    for fields in ("category_ids: to(uint8)", "image: raw; category_ids: to(uint8)", "category_ids: to(uint8)"):
        lines = daemon.read("d", pipeline=fields, shuffle=False, on_error="skip")
        equal([line["index"] for line in lines], [0, 1, 3], fields)
    contains(daemon.dlctl("errors", "d").stdout, "category_ids", "1000")


@case("what is wrong with annotations is refused with its place; the others are served")
def _(box):
    one = {"id": 1, "file_name": "a.png"}
    cases = {
        "none": ('{"images":[]}', "annotations"),
        "json": ('{"images":[{"id":1,}]}', "byte 19"),
        "climbs": (json.dumps({"images": [{"id": 1, "file_name": "../../etc/passwd"}], "annotations": []}), "images[0]", '".."'),
        "absolute": (json.dumps({"images": [{"id": 1, "file_name": "/etc/passwd"}], "annotations": []}), "images[0]", "absolute"),
        "twice": (json.dumps({"images": [one, one], "annotations": []}), "two images", "1"),
        "huge": ('{"images":[{"id":99999999999999999999,"file_name":"a"}],"annotations":[]}', "64 bits"),
        "cut": ('{"images":[{"id":1,"file_', "the text ends"),
    }
    write(box.path("p", "a.png"), png(3, 3, identity_pixels(1, 3, 3)))
    write(box.path("a.json"), json.dumps({"images": [one], "annotations": []}).encode())
    datasets = {"good": coco(box), "lacks": {"path": box.path("p"), "format": "coco"}}
    for name, (content, *_) in cases.items():
        write(box.path(f"{name}.json"), content.encode())
        datasets[name] = {**coco(box), "annotations": box.path(f"{name}.json")}
    daemon = box.daemon(datasets)
    for name, (_, *words) in cases.items():
        daemon.refused(name, f"{name}.json", *words)
    daemon.refused("lacks", "needs the key annotations")
    check_sequence(daemon.read("good", pipeline="image; boxes"), 1)


main()
