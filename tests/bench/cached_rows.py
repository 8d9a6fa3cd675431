"""Rows of big files in the page cache, beside threads that do nothing but copy them."""
import array
import json
import os
import random
import statistics
import struct
import subprocess

from common_bench import BUILD, OUT, REPEATS, ROOT, daemon, emit


def token_rows(path, n_bytes=4_000_000_000, row=4098):
    """Rows of 2,049 uint16, as numpy.save() writes them; made once."""
    n_rows = n_bytes // row
    head = f"{{'descr': '<u2', 'fortran_order': False, 'shape': ({n_rows}, {row // 2}), }}".encode()
    head = b"\x93NUMPY\x01\x00\x76\x00" + head.ljust(117) + b"\n"
    if not os.path.exists(path) or os.path.getsize(path) != len(head) + n_rows * row:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(head)
            for at in range(0, n_rows * row, 1 << 24):
                file.write(os.urandom(min(1 << 24, n_rows * row - at)))
    with open(path, "rb", buffering=0) as file:  # into the page cache
        while file.read(1 << 24):
            pass
    return path


def rows_rate(*arguments, **keywords):
    """What tests/bench/rows.c measures."""
    program = os.path.join(BUILD, "bench", "rows")
    run = subprocess.run([program, *arguments], check=True, stdout=subprocess.PIPE, text=True, timeout=300, **keywords)
    return json.loads(run.stdout)["rows_per_s"]


def npy():
    """Rows of a 4 GB array in the page cache, against threads that do nothing but copy them, in turns."""
    path = token_rows(os.path.join(OUT, "tokens.npy"))
    ours, limit = [], []
    with daemon(2, more=f'dataset "tokens" {{ path = "{path}" format = "npy" }}\n') as it:
        for _ in range(REPEATS):
            limit.append(rows_rate("copy", path, "4098", "2"))
            ours.append(rows_rate("serve", "2000", env=it.environment()))
    emit("npy_rows", statistics.median(ours), "rows/s", repeats=REPEATS)
    emit("npy_memcpy", statistics.median(limit), "rows/s", repeats=REPEATS)
    emit("npy_vs_memcpy", statistics.median(a / b for a, b in zip(ours, limit)), "ratio")


def token_file(prefix, n_tokens=500_000_000, longest=2000):
    """Documents of 0 to `longest` tokens (uint16), as Megatron writes them; made once."""
    dice, lengths = random.Random(1), []
    for _ in range(2 * n_tokens // longest):
        lengths.append(dice.randrange(longest + 1))
    size = 2 * sum(lengths)
    if not os.path.exists(prefix + ".bin") or os.path.getsize(prefix + ".bin") != size:
        os.makedirs(os.path.dirname(prefix), exist_ok=True)
        with open(prefix + ".bin", "wb") as file:
            for at in range(0, size, 1 << 24):
                file.write(os.urandom(min(1 << 24, size - at)))
    pointers = [0]
    for length in lengths[:-1]:
        pointers.append(pointers[-1] + 2 * length)
    with open(prefix + ".idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(lengths), len(lengths) + 1))
        for code, numbers in ("i", lengths), ("q", pointers), ("q", range(len(lengths) + 1)):
            file.write(array.array(code, numbers).tobytes())
    with open(prefix + ".bin", "rb", buffering=0) as file:  # into the page cache
        while file.read(1 << 24):
            pass
    return prefix


def megatron():
    """GPT samples of a file in the page cache, against threads that copy as many pieces of it, in turns."""
    prefix = token_file(os.path.join(OUT, "megatron"))
    rates = {"megatron_rows": ("300", "1024"), "megatron_rows_uint16": ("300", "1024", "tokens: to(uint16)"),
             "megatron_rows_64": ("4000", "64")}
    turns = []
    with daemon(2, more=f'dataset "tokens" {{ path = "{prefix}" format = "megatron" sequence_length = "2048" }}\n') as it:
        for _ in range(REPEATS):
            turns.append({name: rows_rate("serve", *arguments, env=it.environment()) for name, arguments in rates.items()})
            turns[-1]["megatron_memcpy"] = rows_rate("copy", prefix + ".bin", "4098", "2", "3")
    for name in turns[0]:
        emit(name, statistics.median(turn[name] for turn in turns), "rows/s", repeats=REPEATS)
    emit("megatron_vs_memcpy", statistics.median(turn["megatron_rows_uint16"] / turn["megatron_memcpy"] for turn in turns), "ratio")


def arrow_file(path, n_batches=3000):
    """The batch of a small file that pyarrow wrote, many times."""
    with open(os.path.join(ROOT, "tests", "vectors", "arrow", "kilobytes.arrow"), "rb") as file:
        stream = file.read()
    at = 8 + struct.unpack_from("<i", stream, 4)[0]  # the schema has no body
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(stream[:at] + stream[at:-8] * n_batches + stream[-8:])
    return path


def arrow():
    """Text and integers of a file in the page cache."""
    path = arrow_file(os.path.join(OUT, "rows.arrow"))
    with daemon(2, more=f'dataset "tokens" {{ path = "{path}" format = "arrow" }}\n') as it:
        for name, arguments in {"arrow_rows": ("300", "1024"), "arrow_rows_64": ("4000", "64")}.items():
            runs = [rows_rate("serve", *arguments, env=it.environment()) for _ in range(REPEATS)]
            emit(name, statistics.median(runs), "rows/s", repeats=REPEATS)
