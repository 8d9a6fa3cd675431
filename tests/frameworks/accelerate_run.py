"""accelerate_run.py FOLDER FIRST LAST: batches FIRST to LAST of two epochs, their samples a line each; FOLDER holds the
state that Accelerate saves and loads."""
import os
import sys

import dlclient
from accelerate import Accelerator

folder, last = sys.argv[1], int(sys.argv[3])
n = int(sys.argv[2])
accelerator = Accelerator()
loader = dlclient.Loader("files", batch_size=4, pipeline="decode", seed=9)
assert accelerator.prepare(loader) is loader, "Accelerate wraps it"
accelerator.register_for_checkpointing(loader)
if os.path.exists(folder):
    accelerator.load_state(folder)
for epoch in range(loader.epoch, 2):
    loader.set_epoch(epoch)
    for batch in loader:
        n += 1
        moved = accelerator.gather(batch.to(accelerator.device)["label"])
        assert len(moved) == len(batch.indices)
        print(epoch, *batch.indices.tolist(), flush=True)
        if n == last:
            accelerator.save_state(folder)
            sys.exit(0)
