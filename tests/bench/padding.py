"""Padded batches beside the same samples unpadded, in turns.

    padding_pictures           pictures/s of resize(short=800, max=1333) pad in batches of 8, which one rank gets with 2 workers
    padding_vs_single          the same over batches of one picture, which need no padding
    padding_vs_one_size        the same over batches of 8 pictures of one size, 1067x800
    padding_waste_B            share of the padded pictures' pixels that are padding, in batches of B
    padding_tokens             tokens/s of lists of 1 to 512 tokens (JSON), padded in batches of 64
    padding_tokens_vs_ragged   the same over ragged batches
"""
import json
import os
import random
import statistics
import subprocess
import sys

STEPS = "image: resize(short=800, max=1333) hflip(0.5)"
RATE = """
import json, sys, time
import numpy
import dlclient
dataset, pipeline, batch, slots, n, counts = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
field = pipeline.partition(":")[0]
with dlclient.Loader(dataset, batch_size=batch, pipeline=pipeline, slots=slots, epochs=None, job=f"{pipeline} {batch}") as loader:
    begin, seen, real, total = None, 0, 0, 0
    for batch in loader:
        if begin is None and seen >= n // 8:
            begin, seen = time.monotonic(), 0
        seen += batch.n_samples
        if counts:                          # takes as long as making the mask
            real += int(numpy.count_nonzero(batch[field + "_mask"]))
            total += batch[field + "_mask"].size
        if begin is not None and seen >= n:
            break
    print(json.dumps([seen / (time.monotonic() - begin), 1 - real / total if total else 0]))
"""


def token_lists(path, n=20000):
    dice = random.Random(1)
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "w", encoding="ascii") as file:
            for _ in range(n):
                file.write(json.dumps({"tokens": [dice.randrange(50000) for _ in range(dice.randint(1, 512))]}) + "\n")
        os.rename(path + ".new", path)
    return path


def run(daemon, emit, root, build, out, repeats, n_pictures, n_lists):
    with daemon(2, more=f'dataset "lists" {{ path = "{token_lists(os.path.join(out, "lists.jsonl"))}" }}\n') as it:
        environment = dict(it.environment(), PYTHONPATH=os.path.join(root, "client", "python"),
                           DATALOADERD_LIBRARY=os.path.join(build, "libdlclient.so.0"))

        def rate(*arguments, counts=0):
            done = subprocess.run([sys.executable, "-c", RATE, *map(str, arguments), str(counts)], env=environment, stdout=subprocess.PIPE,
                                  text=True, timeout=600, check=True)
            return json.loads(done.stdout)

        padded, single, alike = [], [], []
        for _ in range(repeats):
            alike.append(rate("photos", "image: resize(800:1067) hflip(0.5)", 8, 4, n_pictures)[0])
            single.append(rate("photos", STEPS, 1, 32, n_pictures)[0])
            padded.append(rate("photos", f"{STEPS} pad", 8, 4, n_pictures)[0])
        emit("padding_pictures", statistics.median(padded), "images/s", repeats=repeats)
        emit("padding_vs_single", statistics.median(a / b for a, b in zip(padded, single)), "ratio")
        emit("padding_vs_one_size", statistics.median(a / b for a, b in zip(padded, alike)), "ratio")
        for batch in (2, 8, 32):
            emit(f"padding_waste_{batch}", rate("photos", f"{STEPS} pad", batch, 2, n_pictures, counts=1)[1], "share")
        padded, ragged = [], []
        for _ in range(repeats):
            ragged.append(rate("lists", "tokens", 64, 4, n_lists)[0])
            padded.append(rate("lists", "tokens: pad(max=512)", 64, 4, n_lists)[0])
        emit("padding_tokens", statistics.median(padded) * 256.5, "tokens/s", repeats=repeats)
        emit("padding_tokens_vs_ragged", statistics.median(a / b for a, b in zip(padded, ragged)), "ratio")
