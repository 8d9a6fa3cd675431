"""instruction_packing.py LENGTHS.npy: a file that is made by the first run"""
import os
import sys

import dlclient
import numpy
import torch
from torch.nn.functional import cross_entropy

from model import Transformer

SIZE, VOCABULARY = 256, 1024
TOKENS = f"tokens(chat, max_length={SIZE})"

torch.manual_seed(1)
if not os.path.exists(sys.argv[1]):                             # once: how many tokens each text has
    with dlclient.Loader("chats", batch_size=16, pipeline=f"text: {TOKENS}", shuffle=False) as texts:
        numpy.save(sys.argv[1], numpy.concatenate([batch["text"].lengths for batch in texts]))
loader = dlclient.Loader(
    "chats", batch_size=2, pipeline=f"text: {TOKENS} pack({SIZE}, labels=same); prompt: {TOKENS}",
    columns={"text": numpy.load(sys.argv[1])}, framework="torch")
model = Transformer(VOCABULARY, SIZE)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)

later = torch.triu(torch.ones(SIZE, SIZE, dtype=torch.bool), 1)
for epoch in range(2):
    n_rows = n_samples = n_pieces = n_tokens = n_answers = 0
    for batch in loader:
        positions = batch["text_positions"]                     # [2, 256]: from 0 in each sample
        segments = batch["text_segments"].long()                # [2, 256]: 1, 2, ... in each row; 0 where nothing is
        # Other fields have an entry a sample, in the sequence of the rows. Only answers are learned.
        prompts = torch.tensor(batch["prompt"].lengths)
        in_row = segments.amax(1, keepdim=True)
        sample = (in_row.cumsum(0) - in_row + segments - 1).clamp(min=0)
        labels = batch["text_labels"].masked_fill(positions < prompts[sample], -100)

        hidden = (segments[:, :, None] != segments[:, None, :]) | later     # a token looks at its own sample only
        logits = model(batch["text"], positions, hidden)
        loss = cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        n_rows, n_samples = n_rows + len(segments), n_samples + len(batch.served)
        n_pieces += len(batch["cu_seqlens"]) - 1                # where flash_attn_varlen_func() is to begin anew
        n_tokens, n_answers = n_tokens + int((segments > 0).sum()), n_answers + int((labels != -100).sum())
    print(f"epoch {epoch} {n_samples} samples {n_tokens} tokens {n_answers} learned {n_rows} rows {n_pieces} pieces "
          f"filled {n_tokens / n_rows / SIZE:.4f} loss {loss.item():.6f}")
