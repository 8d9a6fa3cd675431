#!/usr/bin/env python3
"""Batches as the collators of others make them: torch's default_collate, pad_sequence and nested tensors; transformers'
DataCollatorWithPadding and DataCollatorForLanguageModeling."""
import json
import os
import random
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from harness import case, equal, main, write
from pyclient import trainer
from trainers import need

N = 60

PRELUDE = """
import torch
rows = [json.loads(line) for line in open({path!r})]
def loader(pipeline, **more):
    return dlclient.Loader("d", batch_size=8, pipeline=pipeline, seed=4, framework="torch", **more)
def same(mine, theirs):
    return mine.dtype == theirs.dtype and torch.equal(mine, theirs)
"""


def serve(box):
    dice = random.Random(1)
    rows = [{"tokens": [dice.randrange(1, 90) for _ in range(dice.randint(1, 30))], "label": i % 5, "weight": i / 7,
             "text": "a" * i} for i in range(N)]
    path = box.path("d.jsonl")
    write(path, "".join(json.dumps(row) + "\n" for row in rows).encode())
    return box.daemon({"d": {"path": path, "format": "jsonl"}}), PRELUDE.format(path=path)


def check(box, source, n_batches=8):
    daemon, prelude = serve(box)
    lines = trainer(box, daemon, prelude + textwrap.dedent(source))
    equal(lines, [True] * n_batches, "equal batches")


@case("values, text and lists are torch's default_collate of the same samples")
def _(box):
    need("torch")
    check(box, """
        from torch.utils.data import default_collate
        for batch in loader("label; weight; text; tokens: pad(to=32)"):
            mine = [rows[i] for i in batch.indices.tolist()]
            theirs = default_collate([{**row, "tokens": torch.tensor(row["tokens"] + [0] * (32 - len(row["tokens"])))} for row in mine])
            out(all(same(batch[name], theirs[name]) for name in ("label", "weight", "tokens")) and list(batch["text"]) == theirs["text"])
    """)


@case("padded tokens are pad_sequence's, on both sides")
def _(box):
    need("torch")
    check(box, """
        from torch.nn.utils.rnn import pad_sequence
        for side in ("right", "left"):
            for batch in loader(f"tokens: pad(value=9, side={side})"):
                mine = [torch.tensor(rows[i]["tokens"]) for i in batch.indices.tolist()]
                out(same(batch["tokens"], pad_sequence(mine, batch_first=True, padding_value=9, padding_side=side)) and
                    batch["tokens_mask"].sum(1).tolist() == [len(row) for row in mine])
    """, 16)


@case("ragged samples are torch's jagged nested tensor, without a copy if they are joined")
def _(box):
    need("torch")
    check(box, """
        for batch in loader("tokens: ragged(joined=true)"):
            mine = [torch.tensor(rows[i]["tokens"]) for i in batch.indices.tolist()]
            nested = batch["tokens"].nested()
            theirs = torch.nested.nested_tensor(mine, layout=torch.jagged)
            out(nested.layout == torch.jagged and same(nested.values(), theirs.values()) and same(nested.offsets(), theirs.offsets()) and
                nested.values().data_ptr() == batch["tokens"][0].data_ptr() and
                all(same(a, b) for a, b in zip(nested.unbind(), mine)))
            del nested
    """)
    check(box, """
        for batch in loader("tokens"):
            mine = [torch.tensor(rows[i]["tokens"]) for i in batch.indices.tolist()]
            moved = batch.to("cpu")["tokens"]
            out(all(same(a, b) for a, b in zip(moved.nested().unbind(), mine)))
    """)


@case("model_inputs() is what DataCollatorWithPadding and DataCollatorForLanguageModeling(mlm=False) return")
def _(box):
    need("transformers")
    check(box, """
        from transformers import DataCollatorForLanguageModeling, DataCollatorWithPadding, PreTrainedTokenizerFast
        from tokenizers import Tokenizer, models
        words = {str(i): i for i in range(100)}
        for side in ("right", "left"):
            tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, "0")), pad_token="0", mask_token="99",
                                                padding_side=side)
            padding = DataCollatorWithPadding(tokenizer, pad_to_multiple_of=4)
            modeling = DataCollatorForLanguageModeling(tokenizer, mlm=False, pad_to_multiple_of=4)
            for batch in loader(f"tokens: pad(side={side}, multiple=4, labels=same)"):
                mine = [{"input_ids": rows[i]["tokens"]} for i in batch.indices.tolist()]
                inputs = batch.model_inputs()
                theirs = padding(mine)
                good = all(same(inputs[name], theirs[name]) for name in ("input_ids", "attention_mask"))
                theirs = modeling(mine)
                out(good and all(same(inputs[name], theirs[name]) for name in theirs))
    """, 16)


main()
