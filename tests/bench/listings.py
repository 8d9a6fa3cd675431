"""The pass that makes an index of a listing, beside reading the file.

    listing_jsonl_index     MB/s of a file of JSON Lines that an index is made of, page cache warm: a text of 40 words, numbers, a list
    listing_jsonl_vs_read   the same over reading all of its bytes one after the other, in turns
    listing_jsonl_vs_one    over the same pass on one CPU, in turns
    listing_csv_..., listing_numbers_..., listing_text_...   the same for CSV with texts of which some have line breaks, for CSV of
                            numbers alone, and for lines of text
"""

import csv
import io
import json
import os
import random
import re
import statistics
import subprocess
import time

BLOCK, BLOCKS = 20000, 10  # records that are made, and how often they are written
WORDS = ["".join(random.Random(i).choices("abcdefghijklmnopqrstuvwxyz", k=2 + i % 9)) for i in range(2000)]


def sentence(draw, n):
    return " ".join(draw.choices(WORDS, k=n))


def jsonl(draw):
    return "", "".join(json.dumps({"id": i, "text": sentence(draw, 40), "label": i % 10, "score": draw.random(),
                                   "tags": ["a", "b"]}) + "\n" for i in range(BLOCK))


def rows_of(names, rows):
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return ",".join(names) + "\r\n", text.getvalue()


def table(draw):
    return rows_of(["id", "text", "label", "score"],
                   ([i, sentence(draw, 20) + (', "so"\nsaid' if i % 10 == 0 else ""), i % 10, draw.random()] for i in range(BLOCK)))


def numbers(draw):
    return rows_of([f"c{i}" for i in range(16)], ([i] + [round(100 * draw.random(), 4) for _ in range(15)] for i in range(BLOCK)))


def lines(draw):
    return "", "".join(sentence(draw, 20) + "\n" for _ in range(4 * BLOCK))


KINDS = {"jsonl": ("jsonl", "a.jsonl", jsonl), "csv": ("csv", "a.csv", table), "numbers": ("csv", "n.csv", numbers),
         "text": ("text", "a.txt", lines)}


def make(path, records):
    if os.path.exists(path):
        return
    head, block = records(random.Random(7))
    with open(path + ".new", "w", encoding="utf-8", newline="") as file:
        file.write(head + block * BLOCKS)
    os.rename(path + ".new", path)


def index_ms(build, name, path, cpus):
    command = [os.path.join(build, "tools", "list_index"), "--stats", f"--format={name}", path, "/proc/nowhere"]
    run = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, timeout=300,
                         preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    return float(re.match(r"\w+ ([\d.]+) ms", run.stdout).group(1))


def read_ms(path):
    buffer, begin = memoryview(bytearray(1 << 20)), time.monotonic()
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return 1000 * (time.monotonic() - begin)


def run(emit, build, out, repeats):
    os.makedirs(out, exist_ok=True)
    every = os.sched_getaffinity(0)
    for kind, (name, file, records) in KINDS.items():
        path = os.path.join(out, file)
        make(path, records)
        read_ms(path)
        read, one, built = [], [], []
        for _ in range(2 * repeats):
            read.append(read_ms(path))
            one.append(index_ms(build, name, path, {min(every)}))
            built.append(index_ms(build, name, path, every))
        n_bytes = os.path.getsize(path)
        emit(f"listing_{kind}_index", n_bytes / 1000 / statistics.median(built), "MB/s", ms=statistics.median(built), bytes=n_bytes)
        emit(f"listing_{kind}_vs_read", statistics.median(a / b for a, b in zip(read, built)), "ratio")
        emit(f"listing_{kind}_vs_one", statistics.median(a / b for a, b in zip(one, built)), "ratio")
