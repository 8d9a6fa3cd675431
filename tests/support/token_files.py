"""Token files as Megatron writes them, read again, and the GPT samples that Megatron makes of them: an own model in plain
Python, from the description of what it does. That the model is right is shown by tests/vectors/megatron/gpt.jsonl, which
Megatron-core itself made.

    samples = blend_of([("a", None)], folder, splits="969,30,1", part="valid", length=64, wanted=100, seed=1234)
    samples[0]                                   # a list of length + 1 tokens
"""
import array
import hashlib
import json
import math
import os
import random
import re
import struct

CODES = {1: "B", 2: "b", 3: "h", 4: "i", 5: "q", 6: "d", 7: "f", 8: "H"}
NAMES = {"B": "uint8", "b": "int8", "h": "int16", "i": "int32", "q": "int64", "d": "float64", "f": "float32", "H": "uint16"}
PARTS = ("train", "valid", "test")


class Tokens:
    """A .bin and .idx: sequences, and for each document its sequences."""

    def __init__(self, prefix):
        with open(prefix + ".idx", "rb") as file:
            idx = file.read()
        with open(prefix + ".bin", "rb") as file:
            tokens = file.read()
        self.code = CODES[idx[17]]
        n, numbers = struct.unpack_from("<QQ", idx, 18)
        at = 34
        if len(idx) == 26 + 12 * n:  # fairseq's
            at, numbers = 26, 0
        lengths = struct.unpack_from(f"<{n}i", idx, at)
        pointers = struct.unpack_from(f"<{n}q", idx, at + 4 * n)
        size = struct.calcsize("<" + self.code)
        self.sequences = [list(struct.unpack_from(f"<{length}{self.code}", tokens, pointer))
                          for length, pointer in zip(lengths, pointers)]
        ends = struct.unpack_from(f"<{numbers}q", idx, at + 12 * n)
        self.documents = [sum(self.sequences[first:end], []) for first, end in zip(ends, ends[1:])]
        after = at + 12 * n + 8 * numbers
        self.modes = struct.unpack_from(f"<{n}b", idx, after) if len(idx) > after else None
        self.dtype = NAMES[self.code]
        assert len(tokens) == size * sum(lengths)


def write_tokens(prefix, sequences, code="H", documents=None, change=None):
    """A token file of these sequences, each a document unless said otherwise; `change` spoils the bytes of the .idx."""
    os.makedirs(os.path.dirname(prefix), exist_ok=True)
    pointer, pointers = 0, []
    with open(prefix + ".bin", "wb") as file:
        for sequence in sequences:
            pointers.append(pointer)
            pointer += file.write(array.array(code, sequence).tobytes())
    documents = documents or list(range(len(sequences) + 1))
    codes = {letter: number for number, letter in CODES.items()}
    idx = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, codes[code], len(sequences), len(documents))
    idx += struct.pack(f"<{len(sequences)}i", *map(len, sequences)) + struct.pack(f"<{len(pointers)}q", *pointers)
    idx += struct.pack(f"<{len(documents)}q", *documents)
    with open(prefix + ".idx", "wb") as file:
        file.write(change(idx) if change else idx)
    return prefix


class RandomState:
    """numpy.random.RandomState(seed).shuffle(): MT19937, whose words Python's own generator gives."""

    def __init__(self, seed):
        state = [seed]
        for i in range(1, 624):
            state.append((1812433253 * (state[-1] ^ state[-1] >> 30) + i) & 0xFFFFFFFF)
        self.random = random.Random()
        self.random.setstate((3, tuple(state) + (624,), None))

    def shuffle(self, items):
        for i in range(len(items) - 1, 0, -1):
            mask = (1 << i.bit_length()) - 1
            j = self.random.getrandbits(32) & mask
            while j > i:
                j = self.random.getrandbits(32) & mask
            items[i], items[j] = items[j], items[i]


def part_of(splits, part, n):
    weights = [float(word) for word in re.findall(r"[.0-9]+", splits)]
    weights += [0.0] * (3 - len(weights))
    total = (weights[0] + weights[1]) + weights[2]
    bounds = [0]
    for weight in weights:
        bounds.append(bounds[-1] + weight / total)
    k = PARTS.index(part)
    return range(int(round(bounds[k] * float(n))), int(round(bounds[k + 1] * float(n))))


def gpt_samples(tokens, splits, part, length, wanted, seed):
    """All samples of one file, in Megatron's order."""
    ids = list(part_of(splits, part, len(tokens.sequences)))
    epoch = sum(len(tokens.sequences[i]) for i in ids)
    epochs = 1
    while wanted is not None and epochs * epoch < wanted * length + 1:
        epochs += 1
    n = n_first = (epochs * epoch - 1) // length
    if epochs > 1:
        before = ((epochs - 1) * epoch - 1) // length
        if wanted - before < int(0.8 * ((epoch - 1) // length)):
            n_first = before
    state = RandomState(seed)
    first = ids * (epochs if n_first == n else epochs - 1)
    last = [] if n_first == n else list(ids)
    state.shuffle(first)
    state.shuffle(last)
    flat = [token for i in first + last for token in tokens.sequences[i]]
    one, other = list(range(n_first)), list(range(n_first, n))
    state.shuffle(one)
    state.shuffle(other)
    return [flat[i * length:i * length + length + 1] for i in one + other]


def blend_of(files, folder, splits="1", part="train", length=64, wanted=None, seed=1234):
    """The samples of files [(prefix, weight)]; a weight of None for all: blended by size, or alone."""
    tokens = [Tokens(os.path.join(folder, prefix)) for prefix, _ in files]
    weights = [weight for _, weight in files]
    if weights[0] is None:
        made = [gpt_samples(each, splits, part, length, wanted if len(files) == 1 else None, seed) for each in tokens]
        if len(files) == 1:
            return made[0]
        sizes = [len(each) for each in made]
        size = min(wanted, sum(sizes)) if wanted else None
        weights = [one / sum(sizes) for one in sizes]
    else:
        weights = [weight / sum(weights) for weight in weights]
        made = [gpt_samples(each, splits, part, length, math.ceil(math.ceil(wanted * weight) * (1 + 0.005)), seed)
                for each, weight in zip(tokens, weights)]
        sizes = None
        size = sum(math.ceil(wanted * weight) for weight in weights)
        weights = [weight / sum(weights) for weight in weights]
    taken, samples = [0] * len(files), []
    for k in range(size if size is not None else sum(sizes)):
        open_files = [i for i in range(len(files)) if size is not None or taken[i] < sizes[i]]
        i = max(open_files, key=lambda i: (weights[i] * max(k, 1) - taken[i], -i))
        samples.append(made[i][taken[i]])
        taken[i] += 1
    return samples


def told(tokens, code="q", dtype="int64"):
    """What `dlctl read` says of an array of tokens."""
    return {"dtype": dtype, "shape": [len(tokens)], "sha256": hashlib.sha256(array.array(code, tokens).tobytes()).hexdigest()}


def fnv1a(numbers):
    value = 0xCBF29CE484222325
    for byte in array.array("q", numbers).tobytes():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def lines_of_gpt(folder):
    """What make_megatron_vectors.py said about the datasets that it made there."""
    with open(os.path.join(folder, "gpt.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def samples_of(line, folder):
    files = list(zip(line["prefixes"], line["weights"] or [None] * len(line["prefixes"])))
    samples = blend_of(files, folder, line["splits"], line["part"], line["sequence_length"], line["num_samples"], line["seed"])
    assert fnv1a([token for sample in samples for token in sample]) == line["fnv"], f"the model is not Megatron's: {line}"
    return samples


def dataset_of(line, folder):
    """The line as a dataset's configuration."""
    keys = {"path": folder, "format": "megatron", "sequence_length": line["sequence_length"], "seed": line["seed"]}
    if line["splits"] != "1" or line["part"] != "train":
        keys.update(splits=line["splits"], part=line["part"])
    if line["num_samples"]:
        keys["num_samples"] = line["num_samples"]
    if line["weights"] or len(line["prefixes"]) > 1:
        words = zip(line["weights"], line["prefixes"]) if line["weights"] else [[prefix] for prefix in line["prefixes"]]
        keys["blend"] = " ".join(str(word) for pair in words for word in pair)
    else:
        keys["path"] = os.path.join(folder, line["prefixes"][0])
    return {name: str(value) for name, value in keys.items()}
