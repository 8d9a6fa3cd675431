"""dino.py: two large crops of each picture and four small ones, as DINO's; a student learns what its teacher sees"""
import copy

import dlclient
import torch
from torch.nn.functional import log_softmax, softmax

BATCH, N_OUT = 8, 32
COLOURS = ("hflip(0.5) random_apply([color_jitter(brightness=0.4, contrast=0.4, saturation=0.2, hue=0.1)], p=0.8) "
           "random_grayscale(0.2)")
BLUR, FORM = "gaussian_blur(5)", "normalize(mean=0.485:0.456:0.406, std=0.229:0.224:0.225) to(float32) layout(nchw)"
LARGE = f"random_resized_crop(48, scale=0.4:1, interpolation=bicubic) {COLOURS}"
SMALL = f"random_resized_crop(24, scale=0.05:0.4, interpolation=bicubic) {COLOURS}"

torch.manual_seed(1)
loader = dlclient.Loader(
    "photos", BATCH, framework="torch", drop_last=True,
    pipeline=f"one=image: {LARGE} {BLUR} {FORM}; "
             f"two=image: {LARGE} random_apply([{BLUR}], p=0.1) solarize(128, p=0.2) {FORM}; "
             f"small=image: {SMALL} random_apply([{BLUR}], p=0.5) {FORM} views(4)")
student = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 7, stride=4, padding=3), torch.nn.GELU(),
    torch.nn.Conv2d(16, 32, 3, stride=2, padding=1), torch.nn.GELU(),
    torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(32, N_OUT))
teacher = copy.deepcopy(student).requires_grad_(False)
optimizer = torch.optim.AdamW(student.parameters(), lr=0.001)
centre = torch.zeros(N_OUT)

for epoch in range(2):
    n_pictures = n_crops = 0
    for batch in loader:
        crops = [batch["one"], batch["two"], *batch["small"]]
        seen = [teacher(crop) for crop in crops[:2]]
        told = [log_softmax(student(crop) / 0.1, 1) for crop in crops]
        loss = -sum((softmax((seen[i] - centre) / 0.04, 1) * told[k]).sum(1).mean()
                    for i in range(2) for k in range(len(crops)) if i != k) / (2 * len(crops) - 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            centre = 0.9 * centre + 0.1 * torch.cat(seen).mean(0)
            for mine, own in zip(teacher.parameters(), student.parameters()):
                mine.mul_(0.99).add_(own, alpha=0.01)
        n_pictures, n_crops = n_pictures + len(seen[0]), n_crops + sum(len(crop) for crop in crops)
    print(f"epoch {epoch} {n_pictures} pictures {n_crops} crops loss {loss.item():.6f}")
