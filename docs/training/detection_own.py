"""detection_own.py: the same, with augmentation and targets of your own, made beside the daemon"""
import dlclient
import numpy
import torch
from torch.nn.functional import cross_entropy, l1_loss

SIDE, CELL, N_CLASSES = 128, 8, 80
CELLS = SIDE // CELL


def erase_one(image, boxes, rng):
    """Grey noise in place of one object: a model has to do with the others."""
    if len(boxes) > 1 and rng.random() < 0.5:
        x0, y0, x1, y1 = boxes[rng.integers(len(boxes))].astype(int)
        image[y0:y1, x0:x1] = rng.integers(0, 256, (y1 - y0, x1 - x0, 1), dtype=numpy.uint8)


def targets(image, boxes, labels, rng):
    """For each cell: the class of the object whose centre it is, from 1, or 0; and the object's width and height."""
    erase_one(image, boxes, rng)
    classes, sizes = numpy.zeros((CELLS, CELLS), numpy.int64), numpy.zeros((2, CELLS, CELLS), numpy.float32)
    x, y = ((boxes[:, :2] + boxes[:, 2:]) / 2 / CELL).astype(int).clip(0, CELLS - 1).T
    classes[y, x] = labels + 1
    sizes[:, y, x] = (boxes[:, 2:] - boxes[:, :2]).T / CELL
    return {"boxes": sizes, "labels": classes}


torch.manual_seed(1)
loader = dlclient.Loader(
    "coco", batch_size=4, framework="torch", on_error="skip", max_errors=10, workers={"targets": targets}, n_workers=2,
    pipeline=f"image, boxes, labels: resize({SIDE}:{SIDE}) hflip(0.5) sanitize "
             f"python(targets, boxes=float32[2:{CELLS}:{CELLS}], labels=int64[{CELLS}:{CELLS}]) "
             f"to(float32) normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)) layout(nchw)")
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 7, stride=4, padding=3), torch.nn.ReLU(),
    torch.nn.Conv2d(16, 32, 3, stride=2, padding=1), torch.nn.ReLU(),
    torch.nn.Conv2d(32, 1 + N_CLASSES + 2, 3, padding=1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)

for epoch in range(2):
    n_pictures = n_skipped = n_cells = 0
    for batch in loader:        # all stacked: image [n, 3, 128, 128], labels [n, 16, 16], boxes [n, 2, 16, 16]
        classes, sizes = model(batch["image"]).split([1 + N_CLASSES, 2], 1)
        wanted = batch["labels"]
        is_object = (wanted > 0)[:, None]
        loss = cross_entropy(classes, wanted) + l1_loss(sizes * is_object, batch["boxes"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        n_pictures, n_skipped = n_pictures + len(wanted), n_skipped + batch.n_skipped
        n_cells += int(is_object.sum())
    print(f"epoch {epoch} {n_pictures} pictures {n_skipped} skipped {n_cells} cells loss {loss.item():.6f}")
