"""Packs and batches by length: what planning them costs, and how much of them is padding (bench/packs, no daemon).

    packs_1e8               s in which 10^8 documents are packed into 4,096 tokens, best fit over the whole epoch, the order of the
                            samples not counted; packs_1e8_filled: the share of the packs that is tokens; packs_1e8_memory: bytes a
                            document at most, the order before it and the result included
    packs_1e8_rows          the same for 1,000 documents at a time, as TRL packs; packs_1e8_rows_filled
    packs_vs_trl            CPU time of TRL's plan (its packing without copying tokens) over ours, shuffling included, of 10^6 documents;
                            packs_rows_vs_trl: 1,000 at a time. Needs a Python with trl, as `make check-frameworks` installs it
    packs_padding_plain     share of padding in shuffled batches of 64, cut to 4,096; packs_padding_buckets: of buckets at powers of two

Everything goes into build/bench/packs.csv, a part of docs/performance.md and its plot.
"""
import csv
import json
import os
import platform
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DOCUMENT = os.path.join(ROOT, "docs", "performance.md")
sys.path.append(os.path.join(HERE, "peers"))
from growth import lines  # noqa: E402
import document  # noqa: E402

N = 10 ** 8
N_SHARES = 10 ** 6  # documents for shares that hardly depend on their number
N_TRL = 10 ** 6
WAYS = {"best fit, whole epoch": "pack({size}, column=tokens, rows=0)",
        "best fit, 1,000 at a time": "pack({size}, column=tokens, rows=1000)",
        "first fit, 64 open": "pack({size}, column=tokens, strategy=first_fit, bins=64, long=truncate)"}
EDGES = "64:128:256:512:1024:2048:4096"
BATCHES = {"shuffled": "buckets(column=tokens, edges=4096, sizes={batch}, long=truncate)",
           "buckets of a size": "buckets(column=tokens, edges=" + EDGES + ", sizes=" + ":".join(["{batch}"] * 7) + ", long=truncate)",
           "buckets of 512 tokens a sample": "buckets(column=tokens, edges=" + EDGES + ", tokens={tokens}, long=truncate)"}


class Program:
    """Runs bench/packs and keeps what it says."""

    def __init__(self, build):
        self.path, self.rows = os.path.join(build, "bench", "packs"), []

    def __call__(self, about, sampler, n):
        run = subprocess.run([self.path, sampler, str(n)], stdout=subprocess.PIPE, check=True, text=True, timeout=600)
        row = {"about": about, **json.loads(run.stdout)}
        self.rows.append(row)
        return row


def padding(row):
    """In percent; on a logarithmic axis nothing is 0."""
    return max(100 * (1 - row["filled"]), 1e-3)


def trl_us():
    """CPU microseconds a document of TRL's plan: all at once, and 1,000 at a time; None: it is not installed."""
    python = os.environ.get("TRL_PYTHON") or os.path.join(ROOT, "build", "frameworks", "bin", "python")
    if not os.path.exists(python):
        return None
    run = subprocess.run([python, os.path.join(HERE, "packs_trl.py"), str(N_TRL)], stdout=subprocess.PIPE, check=False, text=True,
                         timeout=900)
    return json.loads(run.stdout.splitlines()[-1]) if run.returncode == 0 else None


def plots(program):
    by_size = {name: [(size, padding(program("size", text.format(size=size), N_SHARES))) for size in (512, 2048, 8192, 32768)]
               for name, text in WAYS.items()}
    by_rows = {"best fit": [(rows, padding(program("rows", f"pack(4096, column=tokens, rows={rows})", N_SHARES)))
                            for rows in (100, 1000, 10000, 100000, 1000000)]}
    by_batch = {name: [(batch, padding(program("batch", text.format(batch=batch, tokens=512 * batch), N_SHARES)))
                       for batch in (8, 32, 128, 512)] for name, text in BATCHES.items()}
    by_n = {name: [(n, 1e9 * program("n", text.format(size=4096), n)["cpu_seconds"] / n) for n in (10 ** 5, 10 ** 6, 10 ** 7)]
            for name, text in WAYS.items()}
    return [("of packs, empty: % by tokens of a pack", by_size), ("of packs, empty: % by documents at a time", by_rows),
            ("of batches, padding: % by samples", by_batch), ("planning: CPU ns a document by documents", by_n)]


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), platform.machine())


def write(program, results, panels, csv_path):
    with open(csv_path, "w", encoding="utf-8", newline="") as file:
        rows = csv.DictWriter(file, ["about", "sampler", "n", "batch", "cpu_seconds", "cpu_seconds_before", "seconds",
                                     "seconds_before", "units", "positions", "filled", "peak_bytes", "planned_bytes"])
        rows.writeheader()
        rows.writerows(program.rows)
    with open(os.path.join(ROOT, "docs", "performance", "packs.svg"), "w", encoding="utf-8") as file:
        file.write(lines.chart("Packs and batches by length", panels))
    about = (f"Measured on {time.strftime('%Y-%m-%d')} with `make bench BENCH=packs`: {cpu_model()}, one thread. Documents are as long "
             "as web text: a logarithm that is normal, median 320 tokens.")
    document.write(DOCUMENT, {"packs": "\n\n".join([about, document.table(["what", "result"], results),
                                                    "![Padding and cost of packs and batches](performance/packs.svg)"])})


def run(emit, build, out, _repeats):
    os.makedirs(out, exist_ok=True)
    program, results = Program(build), []

    def tell(name, value, unit, title, shown):
        emit(name, value, unit)
        results.append([title, shown])

    for name, rows, what in (("packs_1e8", 0, "the whole epoch at once"), ("packs_1e8_rows", 1000, "1,000 at a time")):
        row = program("1e8", f"pack(4096, column=tokens, rows={rows})", N)
        tell(name, row["seconds"], "s", f"10^8 documents into 4,096 tokens, best fit, {what}",
             f"{row['seconds']:.1f} s ({row['cpu_seconds']:.1f} s of CPU), {100 * row['filled']:.3f} % filled, "
             f"{row['peak_bytes'] / N:.0f} bytes a document")
        emit(name + "_filled", row["filled"], "ratio")
        emit(name + "_memory", row["peak_bytes"] / N, "bytes")
    theirs = trl_us()
    for idx, (name, rows) in enumerate((("packs_vs_trl", 0), ("packs_rows_vs_trl", 1000))):
        if theirs:
            row = program("trl", f"pack(4096, column=tokens, rows={rows})", N_TRL)
            ours = 1e6 * (row["cpu_seconds"] + row["cpu_seconds_before"]) / N_TRL  # too short to tell the two apart
            what = "1,000 at a time" if rows else "all at once"
            tell(name, theirs[idx] / ours, "ratio", f"TRL's plan over ours (shuffling included), {what}, 10^6 documents",
                 f"{theirs[idx]:.1f} us over {ours:.3f} us: {theirs[idx] / ours:.0f} times")
    if not theirs:
        print("# packs_vs_trl: needs trl; `make check-frameworks` installs it, or name a Python with it: TRL_PYTHON", flush=True)
    for name, text, title in (("packs_padding_plain", "shuffled", "padding in shuffled batches of 64"),
                              ("packs_padding_buckets", "buckets of a size", "padding in buckets at powers of two, batches of 64")):
        share = 1 - program("batch 64", BATCHES[text].format(batch=64, tokens=0), N_SHARES)["filled"]
        tell(name, share, "ratio", title, f"{100 * share:.1f} %")
    write(program, results, plots(program), os.path.join(out, "packs.csv"))
