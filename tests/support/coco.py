"""Annotations as COCO's object detection has them, and the samples that they make."""
import collections
import json
import struct

from listings import FORMATS, told_array, told_bytes

FIELDS = "boxes; labels; category_ids; area; iscrowd; image_id; segmentation"
FORMATS["f4"] = ("float32", "f")


def f4(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def annotations_of(dice, n_images=40, n=300):
    """Images and annotations in any order, categories with holes, some images without any."""
    ids = dice.sample(range(10 ** 12), n_images)
    categories = dice.sample(range(1, 91), 12)
    images = [{"license": 3, "file_name": f"{i % 3}/{i:012d}.png", "height": 7, "width": 9, "id": number}
              for i, number in enumerate(ids)]
    annotations = []
    for i in range(n):
        polygons = [[round(dice.uniform(0, 640), 2) for _ in range(6)] for _ in range(1 + i % 3)]
        rle = {"counts": [dice.randrange(99) for _ in range(4)], "size": [7, 9]}
        annotations.append({"segmentation": polygons if i % 5 else rle, "area": dice.uniform(0, 10 ** 5), "iscrowd": int(i % 5 == 0),
                            "image_id": dice.choice(ids[:n_images * 3 // 4]), "bbox": [round(dice.uniform(0, 640), 2) for _ in range(4)],
                            "category_id": dice.choice(categories), "id": i})
    return {"info": {"year": 2017}, "licenses": [{"id": 3}], "images": images, "annotations": annotations,
            "categories": [{"supercategory": "x", "id": each, "name": f"n{each}"} for each in categories]}


def told(content):
    """The samples as torchvision's CocoDetection has them: images by id, the annotations of each in the order of the file."""
    of = collections.defaultdict(list)
    for annotation in content["annotations"]:
        of[annotation["image_id"]].append(annotation)
    ranks = {each: rank for rank, each in enumerate(sorted(each["id"] for each in content["categories"]))}
    samples = []
    for image in sorted(content["images"], key=lambda image: image["id"]):
        mine = of[image["id"]]
        corners = []
        for x, y, width, height in (map(f4, each["bbox"]) for each in mine):
            corners += [x, y, f4(x + width), f4(y + height)]
        raw = "[" + ", ".join(json.dumps(each["segmentation"]) for each in mine) + "]"
        n = len(mine)
        samples.append({"boxes": told_array(corners, "f4", [n, 4]), "labels": told_array([ranks[each["category_id"]] for each in mine], int, [n]),
                        "category_ids": told_array([each["category_id"] for each in mine], int, [n]),
                        "area": told_array([each["area"] for each in mine], "f4", [n]),
                        "iscrowd": told_array([each["iscrowd"] for each in mine], int, [n]),
                        "image_id": {"dtype": "int64", "shape": [], "value": image["id"]}, "segmentation": told_bytes(raw.encode())})
    return samples
