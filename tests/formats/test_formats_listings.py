#!/usr/bin/env python3
"""Listings that the installed datasets and pandas write, and COCO's annotations, as the installed readers read them."""
import hashlib
import itertools
import json
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from harness import ROOT, case, equal, identity_pixels, main, png, write
from coco import FIELDS, annotations_of, told
from listings import read_jsonl, told_array, told_bytes, told_json, told_text, without_text
from pyclient import need, trainer


@case("listings of today's datasets and pandas hold what their readers read")
def _(box):
    need("datasets")
    need("pandas")
    folder = box.path("v")
    subprocess.run([sys.executable, os.path.join(ROOT, "tests", "support", "make_listing_vectors.py"), folder], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env={**os.environ, "HF_HOME": box.path("cache"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"})
    kinds = {"datasets.jsonl": "jsonl", "pandas.jsonl": "jsonl", "datasets.csv": "csv", "pandas.tsv": "csv", "lines.txt": "text"}
    daemon = box.daemon({name: {"path": os.path.join(folder, name), "format": kind} for name, kind in kinds.items()})
    for name, kind in kinds.items():
        with open(os.path.join(folder, name + ".expected.json"), encoding="utf-8") as file:
            rows = json.load(file)
        if name == "datasets.csv":
            rows = [{**row, "maybe": row["maybe"] and int(row["maybe"])} for row in rows]
        raw = read_jsonl(os.path.join(folder, name)) if kind == "jsonl" else [{} for _ in rows]
        wanted = told_json([{key: (value, raw[i][key][1] if key in raw[i] else "") for key, value in row.items()}
                          for i, row in enumerate(rows)])
        for line in daemon.read(name, pipeline="; ".join(wanted[0]), batch=8):
            equal(without_text(line["fields"]), wanted[line["index"]], f"{name}, sample {line['index']}")


@case("pictures and captions of a folder that datasets reads as an imagefolder with metadata")
def _(box):
    need("datasets")
    import datasets
    for i in range(8):
        write(box.path("d", f"{i}.png"), png(9, 7, identity_pixels(i, 9, 7)))
    rows = [{"file_name": f"{i}.png", "text": f"caption {i} é", "n": i} for i in range(8)]
    write(box.path("d", "metadata.jsonl"), "".join(json.dumps(row) + "\n" for row in rows).encode())
    os.environ["HF_HOME"] = box.path("cache")
    read = datasets.load_dataset("imagefolder", data_dir=box.path("d"), split="train", cache_dir=box.path("cache"))
    texts = {row["text"] for row in read.remove_columns("image")}
    lines = box.daemon({"d": {"path": box.path("d"), "format": "jsonl"}}).read("d", pipeline="image: resize(4); text; n", batch=3)
    equal({line["fields"]["text"]["text"] for line in lines}, texts, "captions")
    for line in lines:
        equal(without_text(line["fields"])["text"], told_text(rows[line["index"]]["text"]), "caption")


@case("boxes, labels and segmentations are those of pycocotools")
def _(box):
    need("pycocotools")
    from pycocotools.coco import COCO
    content = annotations_of(random.Random(2), n_images=100, n=2000)
    write(box.path("a.json"), json.dumps(content).encode())
    for i, image in enumerate(content["images"]):
        write(box.path("p", image["file_name"]), png(9, 7, identity_pixels(i, 9, 7)))
    coco = COCO(box.path("a.json"))
    ranks = {each: rank for rank, each in enumerate(sorted(coco.getCatIds()))}
    ids = sorted(coco.imgs)
    daemon = box.daemon({"d": {"path": box.path("p"), "format": "coco", "annotations": box.path("a.json")}})
    for line in daemon.read("d", pipeline=FIELDS, batch=16):
        mine = coco.loadAnns(coco.getAnnIds(ids[line["index"]]))
        n, fields = len(mine), line["fields"]
        equal(fields["image_id"]["value"], ids[line["index"]], "image")
        equal(fields["labels"], told_array([ranks[each["category_id"]] for each in mine], int, [n]), "labels")
        equal(fields["category_ids"], told_array([each["category_id"] for each in mine], int, [n]), "categories")
        equal(fields["iscrowd"], told_array([each["iscrowd"] for each in mine], int, [n]), "crowds")
        equal(fields["area"], told_array([each["area"] for each in mine], "f4", [n]), "areas")
        raw = "[" + ", ".join(json.dumps(each["segmentation"]) for each in mine) + "]"
        equal(fields["segmentation"], told_bytes(raw.encode()), "segmentations")
        equal(fields["boxes"], told({**content, "images": [coco.imgs[ids[line["index"]]]]})[0]["boxes"], "boxes")
    names = [each["name"] for each in coco.loadCats(sorted(coco.getCatIds()))]
    equal(trainer(box, daemon, 'out(dlclient.Loader("d", 4, pipeline="labels").dataset.classes)'), [names], "classes")


@case("masks of COCO's segmentations are those of pycocotools, alone and beside boxes")
def _(box):
    need("pycocotools")
    import numpy
    from pycocotools import mask as tools
    from pycocotools.coco import COCO
    dice = random.Random(3)
    content = {"images": [], "annotations": [], "categories": [{"id": 1}]}
    for i in range(60):
        width, height = dice.randint(1, 300), dice.randint(1, 200)
        write(box.path("p", f"{i}.png"), png(width, height, bytes(width * height * 3)))
        content["images"].append({"id": i, "file_name": f"{i}.png", "width": width, "height": height})
        for _ in range(dice.randrange(12)):
            polygons = [[round(dice.uniform(-.2, 1.2) * (width, height)[k % 2], dice.choice((0, 1, 2, 2, 9))) for k in range(2 * dice.choice((3, 4, 9, 40)))]
                        for _ in range(dice.choice((1, 1, 3)))]
            packed = tools.merge(tools.frPyObjects(polygons, height, width))
            runs = [sum(1 for _ in run) for _, run in itertools.groupby([0] + tools.decode(packed).flatten(order="F").tolist())]
            runs[0] -= 1
            packed["counts"] = packed["counts"].decode()
            content["annotations"].append({"id": len(content["annotations"]), "image_id": i, "category_id": 1, "bbox": [0, 0, width, height],
                                           "iscrowd": 0, "segmentation": dice.choice((polygons, polygons, packed, {"counts": runs, "size": [height, width]}))})
    write(box.path("a.json"), json.dumps(content).encode())
    coco = COCO(box.path("a.json"))
    daemon = box.daemon({"d": {"path": box.path("p"), "format": "coco", "annotations": box.path("a.json")}})
    for fields in ("image, masks", "image, boxes, masks"):
        lines = daemon.read("d", pipeline=f"{fields}: decode(max_pixels=60000)", batch=1)
        equal(len(lines), 60, "samples")
        for line in lines:
            image = coco.imgs[line["index"]]
            masks = [coco.annToMask(each) for each in coco.loadAnns(coco.getAnnIds(line["index"]))]
            told = hashlib.sha256(numpy.array(masks, dtype=numpy.uint8).tobytes()).hexdigest()
            equal(line["fields"]["masks"], {"dtype": "uint8", "shape": [len(masks), image["height"], image["width"]], "sha256": told},
                  f"{fields}: sample {line['index']}")


main(tells_samples=True)
