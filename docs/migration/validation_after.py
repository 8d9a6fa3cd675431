"""torchrun --nproc_per_node 2 validation_after.py FOLDER"""
import sys

import dlclient
import torch
import torch.distributed as dist

from model import Net

torch.manual_seed(1)
dist.init_process_group("gloo")
loader = dlclient.Loader(sys.argv[1], batch_size=16, pipeline="resize(256) center_crop(224) to(float32) layout(nchw)",
                         shuffle=False, partition="exact", framework="torch", as_tuple=True)
model = Net(len(loader.dataset.classes)).eval()

counts = torch.zeros(2, dtype=torch.int64)      # right ones, all
with torch.no_grad():
    for images, labels in loader:
        counts += torch.tensor([(model(images).argmax(1) == labels).sum(), len(labels)])
dist.all_reduce(counts)                         # after the loop: ranks may differ by a batch
if dist.get_rank() == 0:
    print(f"accuracy {counts[0] / counts[1]:.6f} of {counts[1]} samples, of which there are {len(loader.dataset)}")
dist.destroy_process_group()
