"""Detection as COCO has it: photos with boxes and labels, beside torchvision's reference pipeline, in turns. It needs torch and
torchvision, which `make bench-peers` installs (or TORCH_PYTHON=an interpreter that has them).

    coco_rate              pictures/s that one rank gets with 2 workers: resize(short=800, max=1333), hflip, sanitize; batches of 1
    coco_torchvision       the same of Pillow, torchvision.transforms.v2 and a DataLoader, at its best number of workers
    coco_vs_torchvision    the daemon over torchvision, in turns
"""
import json
import os
import random
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
WORKERS = (1, 2, 3)
BOXES = 7  # a picture: as many as COCO has


def annotate(photos, size_of, out):
    """Annotations of random boxes for all photos."""
    path, dice = os.path.join(out, "annotations.json"), random.Random(3)
    os.makedirs(out, exist_ok=True)
    names = sorted(os.path.relpath(os.path.join(folder, name), photos) for folder, _, files in os.walk(photos)
                   for name in files if name.endswith(".jpg"))
    images, annotations = [], []
    for i, name in enumerate(names):
        width, height = size_of(os.path.join(photos, name))
        images.append({"id": i, "file_name": name, "width": width, "height": height})
        for _ in range(dice.randrange(2 * BOXES + 1)):
            x, y = dice.uniform(0, width - 2), dice.uniform(0, height - 2)
            box = [x, y, dice.uniform(1, width - x), dice.uniform(1, height - y)]
            annotations.append({"id": len(annotations), "image_id": i, "category_id": dice.randrange(1, 81), "bbox": box,
                                "area": box[2] * box[3], "iscrowd": 0})
    with open(path, "w", encoding="ascii") as file:
        json.dump({"images": images, "annotations": annotations, "categories": [{"id": i} for i in range(1, 81)]}, file)
    return path


def jpeg_size(path):
    with open(path, "rb") as file:
        data = file.read()
    at = 2
    while not 0xC0 <= data[at + 1] <= 0xCF or data[at + 1] in (0xC4, 0xC8, 0xCC):
        at += 2 + int.from_bytes(data[at + 2:at + 4], "big")
    return int.from_bytes(data[at + 7:at + 9], "big"), int.from_bytes(data[at + 5:at + 7], "big")


def rate(python, environment, *arguments):
    run = subprocess.run([python, os.path.join(HERE, "coco_loader.py"), *map(str, arguments)], env=environment,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600, check=False)
    if run.returncode != 0:
        raise RuntimeError(run.stderr[-2000:])
    return json.loads(run.stdout)["images_per_s"]


def run(daemon, emit, root, build, photos, out, repeats, n_images):
    python = os.environ.get("TORCH_PYTHON") or os.path.join(root, "build", "peers", "venv", "bin", "python")
    if not os.path.exists(python):
        print("coco: left out; it needs torch and torchvision, which `make bench-peers` installs", file=sys.stderr)
        return
    annotations = annotate(photos, jpeg_size, out)
    best = max(WORKERS, key=lambda n: rate(python, os.environ, "torch", photos, annotations, n, n_images // 4))
    ours, theirs = [], []
    with daemon(2, format="coco", options=f'annotations = "{annotations}"') as it:
        environment = dict(it.environment(), PYTHONPATH=os.path.join(root, "client", "python"),
                           DATALOADERD_LIBRARY=os.path.join(build, "libdlclient.so.0"))
        for _ in range(repeats):
            theirs.append(rate(python, os.environ, "torch", photos, annotations, best, n_images))
            ours.append(rate(python, environment, "dlclient", n_images))
    emit("coco_rate", statistics.median(ours), "images/s", repeats=repeats)
    emit("coco_torchvision", statistics.median(theirs), "images/s", workers=best)
    emit("coco_vs_torchvision", statistics.median(a / b for a, b in zip(ours, theirs)), "ratio")
