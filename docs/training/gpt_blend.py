"""torchrun --nproc_per_node 2 gpt_blend.py CHECKPOINT STEPS: ends after STEPS steps; run again, it goes on where it was"""
import os
import sys

import dlclient
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from model import Transformer

LENGTH, VOCABULARY = 64, 512

torch.manual_seed(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
loader = dlclient.Loader(
    "web + books", batch_size=4, pipeline="tokens; __dataset__", framework="torch",
    sampler="mix(web=0.7, books=0.3, n=240, how=blend)",        # of any 10 samples in a row 7 are of the web
    dealing="chunk", partition="drop")                          # micro-batches, and what is left over, as Megatron has it
model = DistributedDataParallel(Transformer(VOCABULARY, LENGTH))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
if os.path.exists(sys.argv[1]):
    checkpoint = torch.load(sys.argv[1])
    model.module.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    loader.load_state_dict(checkpoint["loader"])                # also with more processes, or fewer

positions = torch.arange(LENGTH)
hidden = torch.triu(torch.ones(LENGTH, LENGTH, dtype=torch.bool), 1)
for step, batch in enumerate(loader, 1):
    tokens = batch["tokens"]                                    # int64 [4, 65]: a sample has one token more
    logits = model(tokens[:, :-1], positions, hidden)
    loss = cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"rank {rank} parts {batch['__dataset__'].tolist()} samples {batch.served.tolist()} loss {loss.item():.6f}\n",
          end="", flush=True)
    if step == int(sys.argv[2]):
        break
if rank == 0:
    torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()},
               sys.argv[1] + ".new")
    os.replace(sys.argv[1] + ".new", sys.argv[1])
dist.destroy_process_group()
