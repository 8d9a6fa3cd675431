"""The half of tokens.py that "tokenizers" does, run by an interpreter that has it and torch. Exit 77 without them.

    tokens_loader.py make OUT LINES               lines.jsonl, and bert.json, trained on it
    tokens_loader.py rate OUT WORKERS BATCHES     lines/s of torch's DataLoader whose collate function encodes a batch and pads it
"""
import glob
import gettext
import gzip
import json
import os
import random
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its workers are processes
try:
    import numpy
    import tokenizers
    import torch
except ImportError:
    sys.exit(77)

MOST, BATCH, WARM_UP = 128, 64, 16


def texts():
    """What the machine has: the manual, and translations of programs; else words that are drawn."""
    for path in sorted(glob.glob("/usr/share/man/man*/*.gz"))[:4000]:
        with gzip.open(path, "rt", encoding="utf-8", errors="ignore") as file:
            yield from (text.strip() for text in file.read().split("\n.") if len(text) > 40)
    for path in sorted(glob.glob("/usr/share/locale/*/LC_MESSAGES/*.mo"))[::5]:
        try:
            with open(path, "rb") as file:
                yield from (text for text in gettext.GNUTranslations(file)._catalog.values()
                            if isinstance(text, str) and len(text) > 40)
        except (OSError, ValueError, IndexError):
            pass


def make(out, n_lines):
    dice = random.Random(1)
    found = list(texts())
    if len(found) < 1000:
        letters = "abcdefghijklmnopqrstuvwxyz"
        words = ["".join(dice.choices(letters, k=dice.randrange(1, 12))) for _ in range(50000)]
        found = [" ".join(dice.choices(words, k=dice.randrange(5, 60))) for _ in range(n_lines)]
    found = [dice.choice(found) for _ in range(n_lines)]
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "lines.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in found)
    made = tokenizers.BertWordPieceTokenizer(lowercase=True)
    made.train_from_iterator(found[:50000], vocab_size=30522, show_progress=False)
    made.post_processor = tokenizers.processors.BertProcessing(("[SEP]", made.token_to_id("[SEP]")), ("[CLS]", made.token_to_id("[CLS]")))
    made.save(os.path.join(out, "bert.json"))


class Lines(torch.utils.data.Dataset):
    def __init__(self, out):
        with open(os.path.join(out, "lines.jsonl"), encoding="utf-8") as file:
            self.texts = [json.loads(line)["text"] for line in file]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return self.texts[i]


class Collate:
    """As DataCollatorWithPadding does with a fast tokenizer: all of a batch at once, padded to its longest."""

    def __init__(self, out):
        self.tokenizer = tokenizers.Tokenizer.from_file(os.path.join(out, "bert.json"))
        self.tokenizer.enable_truncation(MOST)
        self.tokenizer.enable_padding()

    def __call__(self, batch):
        encodings = self.tokenizer.encode_batch_fast(batch)
        return {"input_ids": torch.tensor([encoding.ids for encoding in encodings]),
                "attention_mask": torch.tensor([encoding.attention_mask for encoding in encodings])}


def rate(out, workers, n_batches):
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Lines(out), BATCH, num_workers=workers, prefetch_factor=4, persistent_workers=True,
                                         drop_last=True, collate_fn=Collate(out))
    n_seen, begin = 0, 0
    while n_seen < WARM_UP + n_batches:
        for batch in loader:
            batch["input_ids"][:, 0].sum()
            n_seen += 1
            if n_seen == WARM_UP:
                begin = time.monotonic()
            if n_seen == WARM_UP + n_batches:
                break
    print(json.dumps({"lines_per_s": n_batches * BATCH / (time.monotonic() - begin),
                      "versions": f"torch {torch.__version__}, tokenizers {tokenizers.__version__}, numpy {numpy.__version__}"}))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]))
    else:
        rate(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
