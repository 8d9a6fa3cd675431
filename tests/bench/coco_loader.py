"""The trainers of coco.py: a loop that takes pictures with boxes and labels, and prints images/s.

    coco_loader.py torch PHOTOS ANNOTATIONS WORKERS IMAGES    torchvision's references/detection, with Pillow's pixels
    coco_loader.py dlclient IMAGES                            the dataset "photos" of the daemon that DATALOADERD_SOCKET names
"""
import json
import os
import sys
import time

WARM_UP = 50


def torch_samples(photos, annotations, workers):
    import PIL.Image
    import torch
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    with open(annotations, encoding="ascii") as file:
        content = json.load(file)
    of = {image["id"]: [] for image in content["images"]}
    for each in content["annotations"]:
        of[each["image_id"]].append(each)
    images = [image for image in content["images"] if of[image["id"]]]

    class Detection(torch.utils.data.Dataset):
        """What torchvision's CocoDetection gives, wrapped for transforms.v2, without pycocotools."""
        steps = v2.Compose([v2.Resize(800, max_size=1333), v2.RandomHorizontalFlip(0.5), v2.ToImage(), v2.SanitizeBoundingBoxes()])

        def __len__(self):
            return len(images)

        def __getitem__(self, i):
            mine = of[images[i]["id"]]
            picture = PIL.Image.open(os.path.join(photos, images[i]["file_name"])).convert("RGB")
            corners = [[x, y, x + width, y + height] for x, y, width, height in (each["bbox"] for each in mine)]
            boxes = tv_tensors.BoundingBoxes(corners, format="XYXY", canvas_size=(picture.height, picture.width))
            return self.steps(picture, {"boxes": boxes, "labels": torch.tensor([each["category_id"] for each in mine])})

    loader = torch.utils.data.DataLoader(Detection(), 1, shuffle=True, num_workers=workers, prefetch_factor=4, persistent_workers=True,
                                         collate_fn=lambda batch: batch)
    while True:
        for batch in loader:
            image, target = batch[0]
            yield image[0, 0, 0], target["boxes"], target["labels"]


def our_samples():
    import dlclient

    loader = dlclient.Loader("photos", batch_size=1, epochs=None, rank=0, world_size=1,
                             pipeline="image, boxes, labels: resize(short=800, max=1333) hflip(0.5) sanitize")
    for batch in loader:
        yield batch["image"][0, 0, 0, 0], batch["boxes"][0], batch["labels"][0]


def main():
    if sys.argv[1] == "torch":
        samples, n = torch_samples(sys.argv[2], sys.argv[3], int(sys.argv[4])), int(sys.argv[5])
    else:
        samples, n = our_samples(), int(sys.argv[2])
    for _ in range(WARM_UP):
        next(samples)
    begin = time.monotonic()
    for _ in range(n):
        _, boxes, labels = next(samples)
        assert len(boxes) == len(labels)
    print(json.dumps({"images_per_s": n / (time.monotonic() - begin)}))


if __name__ == "__main__":
    main()
