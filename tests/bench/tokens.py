"""Text to padded batches of tokens: lines of JSON Lines in the page cache, a vocabulary of 30,522 as bert-base-uncased has, at most 128
tokens, batches of 64.

    tokens_lines           lines/s that one rank gets with 2 workers: text: tokens(bert, max_length=128) pad
    tokens_ragged          the same without padding
    tokens_tokenizers      lines/s of torch's DataLoader with "tokenizers" in its collate function, at its best number of workers
    tokens_vs_tokenizers   the first over that, in turns
"""
import json
import os
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
WORKERS = (1, 2, 3)
LINES = 200000


def interpreter():
    """One that has tokenizers and torch, which Debian's has not both: that of `make check-frameworks`, if it is there."""
    found = os.environ.get("TOKENS_PYTHON") or os.path.join(HERE, "..", "..", "build", "frameworks", "bin", "python")
    return found if os.path.exists(found) else "/usr/bin/python3"


def theirs(python, *arguments):
    run = subprocess.run([python, os.path.join(HERE, "tokens_loader.py"), *map(str, arguments)], stdout=subprocess.PIPE, check=False,
                         text=True, timeout=900)
    if run.returncode not in (0, 77):
        raise RuntimeError(f"tokens_loader.py ended with {run.returncode}")
    return run


def make(python, out):
    """Lines and the tokenizer that is trained on them, once. Returns false where tokenizers or torch is missing."""
    if os.path.exists(os.path.join(out, "made")):
        return True
    shutil.rmtree(out, ignore_errors=True)
    if theirs(python, "make", out, LINES).returncode == 77:
        return False
    with open(os.path.join(out, "made"), "w", encoding="utf-8"):
        pass
    return True


def run(daemon, emit, build, out, repeats, n_batches):
    python = interpreter()
    if not make(python, out):
        print("tokens: left out; it needs tokenizers and torch: run make check-frameworks once, or name an interpreter that has them "
              "in TOKENS_PYTHON", file=sys.stderr)
        return

    def loader(workers):
        return json.loads(theirs(python, "rate", out, workers, n_batches).stdout)

    def ours(it, pipeline):
        done = subprocess.run([os.path.join(build, "bench", "rows"), "serve", str(20 * n_batches), "64", pipeline], check=True,
                              stdout=subprocess.PIPE, text=True, timeout=300, env=it.environment())
        return json.loads(done.stdout)["rows_per_s"]

    lines, ragged, peers = [], [], []
    best = max(WORKERS, key=lambda n: loader(n)["lines_per_s"])
    more = f'tokenizers = "{out}"\ndataset "tokens" {{ path = "{out}/lines.jsonl" format = "jsonl" }}\n'
    with daemon(2, more=more) as it:
        for _ in range(repeats):
            lines.append(ours(it, "text: tokens(bert, max_length=128) pad(value=0)"))
            ragged.append(ours(it, "text: tokens(bert, max_length=128)"))
            peers.append(loader(best))
    emit("tokens_lines", statistics.median(lines), "lines/s", repeats=repeats)
    emit("tokens_ragged", statistics.median(ragged), "lines/s", repeats=repeats)
    emit("tokens_tokenizers", statistics.median(peer["lines_per_s"] for peer in peers), "lines/s", workers=best,
         versions=peers[0]["versions"])
    emit("tokens_vs_tokenizers", statistics.median(a / b["lines_per_s"] for a, b in zip(lines, peers)), "ratio")
