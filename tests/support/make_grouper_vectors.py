#!/usr/bin/env python3
"""Writes tests/vectors/groupers.jsonl: what others make of given lengths: packs of TRL and Grain, batches of fairseq.

    pip install trl==1.16.0 datasets transformers grain==0.2.18 cython numpy
    # fairseq's wheel needs an old torch; its batches come from one Cython file of fairseq==0.12.2, built alone:
    #     cythonize -i --3plus fairseq/data/data_utils_fast.pyx
    PYTHONPATH=FOLDER_OF_data_utils_fast tests/support/make_grouper_vectors.py

A line is a sampler's text, the samples' lengths (aspect ratios for `grouped`), and the units that must come of them if the
epoch is not shuffled: samples, the starts of units, and of packs what each piece begins with and how long it is.

The sampler of torchvision's references is in no wheel: it is modelled in group_models.py (group_by_aspect_ratio.py of 2025).
"""
import bisect
import json
import os
import random

import numpy as np

from group_models import bucket_batches, fairseq_batches, grain_packs, grouped_batches, trl_packs

TARGET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors", "groupers.jsonl")


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


def some_lengths(chance, n, size, how):
    if how == "even":
        return [chance.randrange(0, size + 1) for _ in range(n)]
    if how == "long":
        return [chance.randrange(0, 4 * size + 1) for _ in range(n)]
    if how == "few":
        return [chance.choice([1, size // 3, size // 2, size]) for _ in range(n)]
    return [int(min(3 * size, max(0, chance.lognormvariate(0, 1) * size / 6))) for _ in range(n)]


def main():
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
        for how in ("even", "few", "text"):
            for keys in ({"tokens": 200}, {"tokens": 300, "most": 5}, {"tokens": 256, "multiple": 8}, {"sizes": [9, 4, 1]}, {},
                         {"tokens": 50, "multiple": 16, "on_long": "truncate"}, {"sizes": [3, 3, 2], "on_long": "truncate"},
                         {"tokens": 150, "keeps": False}):
                lengths = some_lengths(chance, 90, 64, how)
                terms = {"long": keys.get("on_long", "skip"), "multiple": keys.get("multiple", 1), "tokens": keys.get("tokens"),
                         "max": keys.get("most"), "sizes": ":".join(map(str, keys.get("sizes", []))),
                         "last": "keep" if keys.get("keeps", True) else "drop"}
                text = "".join(f", {name}={value}" for name, value in terms.items() if value)
                line(out, "our definition, modelled", f"buckets(column=c, edges=8:24:60{text})", lengths,
                     bucket_batches(lengths, [8, 24, 60], **keys))
    print(f"{os.path.relpath(TARGET)}: {os.path.getsize(TARGET)} bytes")


main()
