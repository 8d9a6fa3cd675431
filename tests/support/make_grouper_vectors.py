#!/usr/bin/env python3
"""Writes tests/vectors/groupers.jsonl: what others make of given lengths: packs of TRL and Grain, batches of fairseq.

    pip install trl==1.16.0 datasets transformers grain==0.2.18 cython numpy
    # fairseq's wheel needs an old torch; its batches come from one Cython file of fairseq==0.12.2, built alone:
    #     cythonize -i --3plus fairseq/data/data_utils_fast.pyx
    PYTHONPATH=FOLDER_OF_data_utils_fast tests/support/make_grouper_vectors.py

A line is a sampler's text, the samples' lengths (aspect ratios for `grouped`), and the units that must come of them if the
epoch is not shuffled: samples, the starts of units, and of packs what each piece begins with and how long it is. Tokens bear
their document and place, so that pieces are read from what was packed, not from what was meant to be packed.

The sampler of torchvision's references is in no wheel: it is modelled below (group_by_aspect_ratio.py of 2025).
"""
import bisect
import json
import os
import random

import numpy as np
from datasets import Dataset, disable_progress_bars
from grain._src.python.dataset import dataset as grain_dataset
from grain._src.python.dataset.transformations.packing import FirstFitPackIterDataset
from trl import pack_dataset

import data_utils_fast

PLACE = 1 << 20  # tokens: document * PLACE + place in it
TARGET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors", "groupers.jsonl")


def documents(lengths):
    return [[i * PLACE + k for k in range(length)] for i, length in enumerate(lengths)]


def pieces_of(tokens, bounds=None):
    """Pieces of a pack: runs of consecutive tokens, cut also where a piece is said to end."""
    pieces, ends = [], set(np.cumsum(bounds)) if bounds is not None else set()
    for k, token in enumerate(tokens):
        if pieces and token == tokens[k - 1] + 1 and k not in ends:
            pieces[-1][2] += 1
        else:
            pieces.append([token // PLACE, token % PLACE, 1])
    return pieces


def line(out, source, sampler, lengths, units, batch=4):
    """units: lists of pieces (sample, begin, elements), or of samples."""
    flat = [piece for unit in units for piece in unit]
    record = {"of": source, "sampler": sampler, "batch": batch, "lengths": lengths,
              "starts": [0] + [int(n) for n in np.cumsum([len(unit) for unit in units])]}
    if flat and isinstance(flat[0], list):
        record["samples"], record["begins"], record["elements"] = ([int(p[i]) for p in flat] for i in range(3))
    else:
        record["samples"] = [int(sample) for sample in flat]
    out.write(json.dumps(record, separators=(",", ":")) + "\n")


def trl_packs(lengths, size, strategy, rows):
    packed = pack_dataset(Dataset.from_dict({"input_ids": documents(lengths)}), size, strategy,
                          {"batch_size": rows if rows else len(lengths)})
    bounds = packed["seq_lengths"] if strategy != "wrapped" else [None] * len(packed)
    units = [pieces_of(tokens, ends) for tokens, ends in zip(packed["input_ids"], bounds)]
    return [unit for unit in units if unit]


class Documents(grain_dataset.IterDataset):
    def __init__(self, lengths):
        super().__init__()
        self.lengths = lengths

    def __iter__(self):
        return Walk(self.lengths)


class Walk(grain_dataset.DatasetIterator):
    def __init__(self, lengths):
        super().__init__()
        self.documents, self.at = documents(lengths), 0

    def __next__(self):
        if self.at == len(self.documents):
            raise StopIteration
        self.at += 1
        return {"x": np.array(self.documents[self.at - 1], dtype=np.int64)}

    def get_state(self):
        return {"at": self.at}

    def set_state(self, state):
        self.at = state["at"]


def grain_packs(lengths, size, bins, max_samples):
    rows = FirstFitPackIterDataset(Documents(lengths), length_struct={"x": size}, num_packing_bins=bins,
                                   shuffle_bins=False, max_sequences_per_bin=max_samples)
    units = []
    for row in rows:
        n = int((row["x_segment_ids"] > 0).sum())
        bounds = [int((row["x_segment_ids"] == k + 1).sum()) for k in range(int(row["x_segment_ids"].max()))]
        units.append(pieces_of([int(token) for token in row["x"][:n]], bounds))
    return units


def fairseq_batches(lengths, tokens, sentences, multiple):
    return [list(batch) for batch in data_utils_fast.batch_by_size_vec(
        np.arange(len(lengths)), np.array(lengths, dtype=np.int64), tokens, sentences, multiple)]


def grouped_batches(groups, batch):
    """The batches of one group as they are full; then, up to n div batch of them, what is left, the most first, each
    filled from the beginning of its group. A group's place in the dictionary is that of its last batch."""
    left, members, batches = {}, {}, []
    for sample, group in enumerate(groups):
        left.setdefault(group, []).append(sample)
        members.setdefault(group, []).append(sample)
        if len(left[group]) == batch:
            batches.append(left.pop(group))
            left[group] = []
    n_more = len(groups) // batch - len(batches)
    for group, samples in sorted(left.items(), key=lambda item: len(item[1]), reverse=True)[:n_more]:
        n_lacking = batch - len(samples)
        batches.append(samples + (members[group] * n_lacking)[:n_lacking])
    return batches


def some_lengths(chance, n, size, how):
    if how == "even":
        return [chance.randrange(0, size + 1) for _ in range(n)]
    if how == "long":
        return [chance.randrange(0, 4 * size + 1) for _ in range(n)]
    if how == "few":
        return [chance.choice([1, size // 3, size // 2, size]) for _ in range(n)]
    return [int(min(3 * size, max(0, chance.lognormvariate(0, 1) * size / 6))) for _ in range(n)]


def main():
    disable_progress_bars()
    chance = random.Random(14)
    with open(TARGET, "w", encoding="utf-8") as out:
        for how in ("even", "long", "few", "text"):
            for n, size, rows in ((1, 8, 0), (40, 8, 0), (70, 16, 7), (60, 100, 25), (50, 63, 1), (90, 64, 0), (45, 1, 9)):
                least = 0 if n > 1 and rows != 1 and size > 1 else 1  # TRL fails where all of `rows` are empty
                lengths = [max(least, length) for length in some_lengths(chance, n, size, how)]
                for strategy, text in (("bfd", ""), ("bfd_split", ", long=split"), ("wrapped", ", strategy=wrapped")):
                    line(out, f"trl 1.16.0 {strategy}", f"pack({size}, column=c, rows={rows}{text})", lengths,
                         trl_packs(lengths, size, strategy, rows))
        lengths = some_lengths(chance, 2100, 512, "text")
        line(out, "trl 1.16.0 bfd", "pack(512, column=c)", lengths, trl_packs(lengths, 512, "bfd", 1000))
        for how in ("even", "few"):
            for n, size, bins, most in ((1, 8, 1, None), (80, 16, 1, None), (80, 16, 3, None), (90, 100, 8, None),
                                        (90, 100, 5, 2), (60, 64, 64, 3)):
                lengths = [max(1, length) for length in some_lengths(chance, n, size, how)]
                line(out, "grain 0.2.18 first fit", f"pack({size}, column=c, strategy=first_fit, bins={bins}" +
                     (f", max_samples={most})" if most else ")"), lengths, grain_packs(lengths, size, bins, most))
        for how in ("even", "few", "text", "sorted"):
            for tokens, sentences, multiple in ((100, -1, 1), (100, 4, 1), (400, -1, 8), (300, 24, 8), (-1, 7, 3), (128, 5, 8),
                                                (1000, 100, 3), (90, -1, 8)):
                lengths = [max(1, min(length, 64)) for length in some_lengths(chance, 120, 64, how)]
                lengths = sorted(lengths) if how == "sorted" else lengths
                text = "".join([f", tokens={tokens}" if tokens > 0 else "", f", sentences={sentences}" if sentences > 0 else "",
                                f", multiple={multiple}"])
                line(out, "fairseq 0.12.2", f"max_tokens(column=c{text})", lengths,
                     fairseq_batches(lengths, tokens, sentences, multiple))
        for k in (0, 1, 3):
            for n, batch in ((5, 2), (40, 4), (41, 8), (90, 7), (30, 1), (17, 16)):
                ratios = [round(chance.choice([0.5, 1.0, 2.0, 0.75, chance.uniform(0.2, 4)]), 4) for _ in range(n)]
                bins = (2 ** np.linspace(-1, 1, 2 * k + 1)).tolist() if k > 0 else [1.0]
                line(out, "torchvision's references, modelled", f"grouped(column=c, k={k})", ratios,
                     grouped_batches([bisect.bisect_right(bins, ratio) for ratio in ratios], batch), batch)
    print(f"{os.path.relpath(TARGET)}: {os.path.getsize(TARGET)} bytes")


main()
