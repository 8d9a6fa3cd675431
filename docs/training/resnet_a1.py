"""torchrun --nproc_per_node 2 resnet_a1.py N_CLASSES: augmentation of timm's ResNet-50, recipe A1, for two epochs"""
import sys

import dlclient
import torch
import torch.distributed as dist
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.nn.parallel import DistributedDataParallel

N_CLASSES, SIZE, BATCH = int(sys.argv[1]), 32, 16

torch.manual_seed(1)
dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
with dlclient.Loader("photos", BATCH, rank=0, world_size=1, job=f"count {rank}") as whole:
    n_samples = len(whole.dataset)
n_positions = world_size * (n_samples // 256 * 256 // world_size)      # timm's --aug-repeats: an epoch stays as long
loader = dlclient.Loader(
    "photos", BATCH, framework="torch", drop_last=True, sampler=f"repeat(3, n={n_positions})",
    pipeline=f"image, label: random_resized_crop({SIZE}, interpolation=bicubic) hflip(0.5) "
             f"{dlclient.timm_rand_augment('rand-m7-mstd0.5-inc1', mean=(0.485, 0.456, 0.406))} "
             "normalize(mean=0.485:0.456:0.406, std=0.229:0.224:0.225) to(float32) erasing(0.25, value=random) "
             "layout(nchw) "
             f"mix(mixup_alpha=0.2, cutmix_alpha=1.0, label_smoothing=0.1, num_classes={N_CLASSES})")
model = DistributedDataParallel(torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 7, stride=4, padding=3), torch.nn.ReLU(),
    torch.nn.Conv2d(16, 32, 3, stride=2, padding=1), torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(32, N_CLASSES)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.005)

for epoch in range(2):
    served, n_soft = [], 0
    for batch in loader:
        loss = binary_cross_entropy_with_logits(model(batch["image"]), batch["label"])  # float32 [16, N_CLASSES]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        served += batch.served.tolist()
        n_soft += int(((batch["label"] > 0.3).sum(1) > 1).sum())                        # two classes in one picture
    print(f"rank {rank} epoch {epoch} {len(served)} samples {len(set(served))} different {n_soft} mixed "
          f"loss {loss.item():.6f}\n", end="", flush=True)
dist.destroy_process_group()
