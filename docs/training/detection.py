"""detection.py: says for each cell of 8 x 8 pixels whether it is the centre of an object, of which class and of which size"""
import dlclient
import torch
from torch.nn.functional import cross_entropy, l1_loss

CELL, N_CLASSES = 8, 80

torch.manual_seed(1)
loader = dlclient.Loader(
    "coco", batch_size=4, framework="torch", on_error="skip", max_errors=10,        # damaged pictures are left out
    pipeline=f"image, boxes, labels: resize(short=128, max=224) hflip(0.5) sanitize pad(multiple={CELL})")
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 7, stride=4, padding=3), torch.nn.ReLU(),
    torch.nn.Conv2d(16, 32, 3, stride=2, padding=1), torch.nn.ReLU(),
    torch.nn.Conv2d(32, 1 + N_CLASSES + 2, 3, padding=1))       # nothing, each class, width and height
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)

for epoch in range(2):
    n_pictures = n_skipped = n_boxes = 0
    for batch in loader:
        images = batch["image"].permute(0, 3, 1, 2).float() / 255               # as large as the largest of the batch
        real = batch["image_mask"][:, ::CELL, ::CELL]                           # false where it is padding
        classes, sizes = model(images).split([1 + N_CLASSES, 2], 1)

        targets = torch.where(real, 0, -100)
        loss = torch.zeros(())
        for i, (boxes, labels) in enumerate(zip(batch["boxes"], batch["labels"])):      # lists: [n, 4] and [n]
            x, y = ((boxes[:, :2] + boxes[:, 2:]) / 2 / CELL).long().T
            targets[i, y, x] = labels + 1
            if len(boxes):
                loss = loss + l1_loss(sizes[i, :, y, x].T, (boxes[:, 2:] - boxes[:, :2]) / CELL) / len(images)
            n_boxes += len(boxes)
        loss = loss + cross_entropy(classes, targets, ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        n_pictures, n_skipped = n_pictures + len(images), n_skipped + batch.n_skipped
    print(f"epoch {epoch} {n_pictures} pictures {n_skipped} skipped {n_boxes} boxes loss {loss.item():.6f}")
