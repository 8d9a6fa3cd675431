#!/usr/bin/env python3
"""COCO's object detection: pictures with boxes, labels, areas, crowds and segmentations, as pycocotools finds them; what is refused."""
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, check_sequence, contains, equal, expected_order, identity_pixels, indices, main, png, within, write
from coco import FIELDS, annotations_of, told

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


@case("what is wrong with annotations is refused with its place; the others are served")
def _(box):
    one = {"id": 1, "file_name": "a.png"}
    cases = {
        "none": ('{"images":[]}', "annotations"),
        "json": ('{"images":[{"id":1,}]}', "byte 19"),
        "climbs": (json.dumps({"images": [{"id": 1, "file_name": "../../etc/passwd"}], "annotations": []}), "images[0]", '".."'),
        "absolute": (json.dumps({"images": [{"id": 1, "file_name": "/etc/passwd"}], "annotations": []}), "images[0]", "absolute"),
        "twice": (json.dumps({"images": [one, one], "annotations": []}), "two images", "1"),
        "box": (json.dumps({"images": [one], "annotations": [{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3]}]}),
                "annotations[0]", "four numbers"),
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
