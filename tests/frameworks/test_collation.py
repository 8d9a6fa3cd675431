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


@case("a model of transformers takes the loader's batches, and its loss is that of the texts without padding")
def _(box):
    need("transformers")
    check(box, """
        import transformers
        torch.manual_seed(3)
        config = transformers.GPT2Config(vocab_size=90, n_positions=32, n_embd=8, n_layer=1, n_head=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
        model = transformers.GPT2LMHeadModel(config).eval()
        with torch.no_grad():
            for batch in loader("tokens: pad(labels=same)", names="transformers"):
                alone, n = 0, 0
                for ids, mask in zip(batch["input_ids"], batch["attention_mask"]):
                    ids = ids[mask.bool()][None]
                    if ids.shape[1] > 1:
                        alone += model(input_ids=ids, labels=ids).loss.item() * (ids.shape[1] - 1)
                        n += ids.shape[1] - 1
                loss = model(**batch).loss.item()
                masked = batch["labels"][~batch["attention_mask"].bool()]
                out(abs(loss - alone / n) < 1e-4 and bool((masked == -100).all()))
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


# Batches as they are, and the same mixed; the draws of torch and NumPy are replaced with the daemon's.
MIXED = f"""
import torch
sys.path.insert(0, {os.path.join(HERE, "..", "support")!r})
import mixing

def batches(mix):
    steps, options = "random_resized_crop(24:32) to(float32) layout(nchw)", dict(seed=4, drop_last=True, framework="torch")
    plain = dlclient.Loader("p", 8, pipeline=f"image: {{steps}}; label", job="plain", **options)
    mixed = dlclient.Loader("p", 8, pipeline=f"image, label: {{steps}} {{mix}}", **options)
    for before, after in zip(plain, mixed):
        position = int(before.step) * 8
        yield before, after, lambda number=0: mixing.Unit(4, 0, position, number)
    plain.close()
    mixed.close()

def same_pair(theirs, batch):
    return all(same(batch[name], one) for name, one in zip(("image", "label"), theirs))
"""


def check_mixed(box, source, n_batches):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 32, n_classes=4, width=48, height=40)})
    lines = trainer(box, daemon, PRELUDE.format(path=os.devnull) + MIXED + textwrap.dedent(source))
    equal(lines, [True] * n_batches, "equal batches")


@case("mixup and cutmix are torchvision's classes, with our draws in place of theirs")
def _(box):
    need("torch", "torchvision")
    check_mixed(box, """
        from torchvision.transforms import v2
        class Lam:
            def __init__(self, lam):
                self.lam = lam
            def sample(self, shape):
                return torch.tensor(self.lam, dtype=torch.float64)
        for name, kind in (("mixup", v2.MixUp), ("cutmix", v2.CutMix)):
            for alpha in (0.2, 1.0):
                for before, after, unit in batches(f"{name}({alpha}, num_classes=4)"):
                    transform = kind(alpha=alpha, num_classes=4)
                    transform._dist = Lam(unit().beta(alpha))
                    words = [5, 6]
                    randint, torch.randint = torch.randint, lambda n, size: torch.tensor([unit().below(words.pop(0), n)])
                    theirs = transform(before["image"], before["label"])
                    torch.randint = randint
                    out(same_pair(theirs, after))
    """, 2 * 2 * 4)


@case("mix is timm's Mixup, with our draws in place of NumPy's")
def _(box):
    need("torch", "timm")
    check_mixed(box, """
        from timm.data import Mixup

        class Draws:        # what Mixup asks of numpy.random, in its sequence
            def __init__(self, mode, unit, prob, alphas):
                self.is_batch = mode == "batch"
                self.units = [unit()] if self.is_batch else [unit(1 + i) for i in range(4 if mode == "pair" else 8)]
                self.shares = [0, 1] if self.is_batch else [1, 0]
                if 0 in alphas:
                    self.shares.remove(1)
                self.cut = [one for one in self.units
                            if one.share(0) < prob and alphas[1] > 0 and (alphas[0] == 0 or one.share(1) < 0.5)]
                self.box = []
            def of_all(self, values):
                return values[0] if self.is_batch else numpy.array(values)
            def rand(self, *size):
                i = self.shares.pop(0)
                return self.of_all([one.share(i) for one in self.units])
            def beta(self, alpha, _, size=None):
                return self.of_all([one.beta(alpha) for one in self.units])
            def randint(self, low, high, size=None):
                if not self.box:      # the row first, or height, width, top and left
                    words = self.cut.pop(0).words
                    self.box = words[5:9] if "cutmix_minmax" in more else [words[6], words[5]]
                return low + (self.box.pop(0) * (high - low) >> 32)

        for mode in ("batch", "pair", "elem"):
            for more in (dict(), dict(mixup_alpha=0.3, cutmix_alpha=1.0, prob=0.8, label_smoothing=0.2),
                         dict(mixup_alpha=0.0, cutmix_alpha=0.7), dict(mixup_alpha=0.0, cutmix_minmax=(0.2, 0.8))):
                text = ", ".join(f"{key}={value[0]}:{value[1]}" if key == "cutmix_minmax" else f"{key}={value}" for key, value in dict(more, mode=mode, num_classes=4).items())
                for before, after, unit in batches(f"mix({text})"):
                    draws = Draws(mode, unit, more.get("prob", 1.0), (more.get("mixup_alpha", 1.0), more.get("cutmix_alpha", float("cutmix_minmax" in more))))
                    kept = {name: getattr(numpy.random, name) for name in ("rand", "beta", "randint")}
                    for name in kept:
                        setattr(numpy.random, name, getattr(draws, name))
                    theirs = Mixup(num_classes=4, mode=mode, **more)(before["image"].clone(), before["label"])
                    for name, function in kept.items():
                        setattr(numpy.random, name, function)
                    out(same_pair(theirs, after))
    """, 3 * 4 * 4)


main()
