#!/usr/bin/env python3
"""Makes tests/vectors/megatron/ with Megatron-core itself (0.16.1, numpy 2.4): make_megatron_vectors.py FOLDER

Needs megatron-core, torch and packaging from PyPI. The files:
  small.*, wide.*, sentences.*, pictures.*   token files that its IndexedDatasetBuilder wrote
  fairseq.*                    the same tokens as small.*, in fairseq's layout, written here byte by byte
  gpt.jsonl                    samples of its GPTDataset and BlendedDataset, made by its own builder
  blend.jsonl                  its blends of sizes and weights alone
  shuffle.jsonl                numpy.random.RandomState.shuffle
Lists are hashed with FNV-1a over little-endian int64.
"""
import json
import os
import shutil
import struct
import sys
import tempfile
import warnings

import numpy

warnings.simplefilter("ignore")
import torch  # noqa: E402
from megatron.core.datasets import helpers  # noqa: E402
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder  # noqa: E402
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig  # noqa: E402
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder  # noqa: E402
from megatron.core.datasets.utils import normalize  # noqa: E402

PARTS = ("train", "valid", "test")


def fnv1a(numbers):
    value = 0xCBF29CE484222325
    for byte in numpy.ascontiguousarray(numbers, dtype="<i8").tobytes():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


class Tokenizer:
    """As much of one as GPTDataset asks for. Token 0 is never drawn: it replaces padding."""
    vocab_size, eod, pad = 50000, 1, -1
    unique_identifiers = {"class": "Tokenizer"}


def write(prefix, dtype, documents, modes=None):
    builder = IndexedDatasetBuilder(prefix + ".bin", dtype=dtype, multimodal=modes is not None)
    for document in documents:
        tokens = torch.tensor([token for sequence in document for token in sequence], dtype=torch.int64)
        lengths = [len(sequence) for sequence in document]
        builder.add_document(tokens, lengths, [next(modes) for _ in lengths] if modes else None)
    builder.finalize(prefix + ".idx")


def write_fairseq(prefix, dtype, code, sequences):
    pointer, pointers = 0, []
    with open(prefix + ".bin", "wb") as file:
        for sequence in sequences:
            pointers.append(pointer)
            pointer += file.write(numpy.array(sequence, dtype=dtype).tobytes())
    with open(prefix + ".idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQ", 1, code, len(sequences)))
        file.write(numpy.array([len(sequence) for sequence in sequences], dtype="<i4").tobytes())
        file.write(numpy.array(pointers, dtype="<i8").tobytes())


def sequences_of(rng, n, longest, vocabulary):
    """Lengths as they come: many short ones, a few long ones, some empty."""
    lengths = (rng.random(n) ** 3 * longest).astype(int)
    return [list(map(int, rng.integers(2, vocabulary, length))) for length in lengths]


def write_files(folder):
    rng = numpy.random.default_rng(7)
    small = sequences_of(rng, 211, 300, 50000)
    write(f"{folder}/small", numpy.uint16, [[sequence] for sequence in small])
    write_fairseq(f"{folder}/fairseq", "<u2", 8, small)
    wide = sequences_of(rng, 64, 200, 49999)
    write(f"{folder}/wide", numpy.int32, [[sequence] for sequence in wide])
    sentences = iter(sequences_of(rng, 90, 60, 50000))
    write(f"{folder}/sentences", numpy.uint16, [[next(sentences) for _ in range(n)] for n in (3, 1, 5, 20, 1, 60)])
    pictures = sequences_of(rng, 24, 80, 50000)
    write(f"{folder}/pictures", numpy.int32, [[pictures[i], pictures[i + 1]] for i in range(0, 24, 2)],
          iter([0, 1] * 12))


# blend (prefixes and weights), splits, part, wanted samples, sequence length, seed
GPT = [
    (["small"], None, "1", "train", None, 64, 1234),
    (["small"], None, "969,30,1", "train", None, 64, 1234),
    (["small"], None, "80,15,5", "valid", None, 16, 1234),
    (["small"], None, "80,15,5", "test", 40, 8, 42),
    (["small"], None, "1", "train", 280, 64, 1234),   # a little more than an epoch: the last one is separate
    (["small"], None, "1", "train", 490, 64, 1234),   # nearly all of the last epoch is used: shuffled with the others
    (["small"], None, "1", "train", 2000, 64, 99),
    (["small"], None, "1", "train", 500, 1, 0),
    (["small"], None, "1", "train", None, 3000, 4294967295),
    (["small"], None, "0.5,0.25,0.25", "valid", 100, 31, 5),
    (["wide"], None, "99,1", "train", 300, 32, 1234),
    (["sentences"], None, "1", "train", 100, 20, 1234),
    (["small", "wide"], [0.3, 0.7], "1", "train", 100, 64, 1234),
    (["small", "wide", "sentences"], [30, 20, 50], "90,10", "train", 1000, 16, 7),
    (["small", "wide", "sentences"], [30, 20, 50], "90,10", "valid", 77, 16, 7),
    (["wide", "small"], None, "1", "train", None, 32, 1234),
    (["wide", "small", "sentences"], None, "1", "train", 150, 32, 3),
    (["small"], [1.0], "1", "train", 50, 64, 1234),   # a blend of one file is not the file alone
]


def gpt_samples(folder, prefixes, weights, splits, part, wanted, length, seed):
    config = GPTDatasetConfig(
        random_seed=seed, sequence_length=length, split=splits, tokenizer=Tokenizer(),
        blend=([f"{folder}/{prefix}" for prefix in prefixes], weights), path_to_cache=tempfile.mkdtemp(),
        reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False, create_attention_mask=False)
    sizes = [wanted if name == part else (None if wanted is None or weights is None else 1) for name in PARTS]
    dataset = BlendedMegatronDatasetBuilder(GPTDataset, sizes, lambda: True, config).build()[PARTS.index(part)]
    samples = []
    for i in range(len(dataset)):
        sample = dataset[i]
        samples.append(numpy.append(sample["tokens"].numpy(), sample["labels"].numpy()[-1]))
    shutil.rmtree(config.path_to_cache)
    return numpy.array(samples)


def write_gpt(folder):
    with open(f"{folder}/gpt.jsonl", "w") as file:
        for prefixes, weights, splits, part, wanted, length, seed in GPT:
            samples = gpt_samples(folder, prefixes, weights, splits, part, wanted, length, seed)
            line = {"prefixes": prefixes, "weights": weights, "splits": splits, "part": part, "num_samples": wanted,
                    "sequence_length": length, "seed": seed, "n_samples": len(samples),
                    "sum_first": int(samples[0].sum()), "fnv": fnv1a(samples)}
            file.write(json.dumps(line) + "\n")


def write_blends(folder):
    rng = numpy.random.default_rng(11)
    blends = [([0.3, 0.7], 1000), ([1.0], 10), ([1 / 3, 1 / 3, 1 / 3], 999), ([5, 3, 2], 1), ([1e-6, 1.0], 5000)]
    blends += [(list(map(float, rng.random(n))), size) for n, size in ((7, 5000), (8, 3000), (9, 3000), (17, 4000),
                                                                      (130, 6000), (300, 9000))]
    with open(f"{folder}/blend.jsonl", "w") as file:
        for weights, size in blends:
            once = normalize(weights)
            files, samples = numpy.zeros(size, dtype=numpy.int16), numpy.zeros(size, dtype=numpy.int64)
            helpers.build_blending_indices(files, samples, normalize(once), len(weights), size, False)
            file.write(json.dumps({"weights": weights, "size": size, "last_weight": once[-1].hex(),
                                   "files": fnv1a(files), "samples": fnv1a(samples)}) + "\n")
        for sizes in ([3], [10, 1], [100, 37, 5], list(map(int, rng.integers(1, 300, 40)))):
            total = sum(sizes)
            files, samples = numpy.zeros(total, dtype=numpy.int16), numpy.zeros(total, dtype=numpy.int64)
            helpers.build_exhaustive_blending_indices(files, samples, sizes, len(sizes))
            file.write(json.dumps({"sizes": sizes, "size": total, "files": fnv1a(files), "samples": fnv1a(samples)})
                       + "\n")


def write_shuffles(folder):
    with open(f"{folder}/shuffle.jsonl", "w") as file:
        for seed, n in ((0, 1), (0, 2), (1, 10), (1234, 33), (1234, 1000), (2**32 - 1, 65537), (7, 70000)):
            table = numpy.arange(n, dtype=numpy.uint32)
            numpy.random.RandomState(seed).shuffle(table)
            file.write(json.dumps({"seed": seed, "n": n, "first": table[:5].tolist(), "fnv": fnv1a(table)}) + "\n")


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    write_files(sys.argv[1])
    write_gpt(sys.argv[1])
    write_blends(sys.argv[1])
    write_shuffles(sys.argv[1])
