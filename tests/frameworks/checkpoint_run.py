"""checkpoint_run.py FOLDER FIRST LAST: as accelerate_run.py, with torch.distributed.checkpoint."""
import os
import sys

import dlclient
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.stateful import Stateful

folder, last = sys.argv[1], int(sys.argv[3])
n = int(sys.argv[2])
loader = dlclient.Loader("files", batch_size=4, pipeline="decode", seed=9, framework="torch")
assert isinstance(loader, Stateful)
if os.path.exists(folder):
    dcp.load({"loader": loader}, checkpoint_id=folder)
for epoch in range(loader.epoch, 2):
    loader.set_epoch(epoch)
    for batch in loader:
        n += 1
        print(epoch, *batch.indices.tolist(), flush=True)
        if n == last:
            dcp.save({"loader": loader}, checkpoint_id=folder)
            sys.exit(0)
