#!/usr/bin/env python3
"""Makes tests/vectors/listings: small listings as today's writers write them, and what their own readers read.

    python3 tests/support/make_listing_vectors.py [FOLDER]     needs PyPI's datasets and pandas

Each file NAME has its rows in NAME.expected.json; versions.json says what wrote them.
"""
import json
import os
import random
import sys
import tempfile

FLAT = ("id", "text", "score", "ok", "maybe")


def rows(n=40):
    dice = random.Random(7)
    words = ["café", "naïve", "\U0001F600", "quote\"s", "back\\slash", "new\nline", "tab\t", "comma, semi; colon", "中文",
             " blanks ", "\x7f", "'"]
    return [{"id": dice.randrange(-2 ** 40, 2 ** 40), "text": f"{i} " + "".join(dice.choices(words, k=3)),
             "score": dice.uniform(-10, 10) if i % 5 else float(i), "ok": bool(dice.randrange(2)),
             "maybe": i if i % 3 else None, "tokens": [dice.randrange(50000) for _ in range(dice.randrange(5))],
             "vector": [dice.random() for _ in range(4)], "boxes": [[dice.random(), float(k)] for k in range(1 + i % 3)],
             "tags": dice.choices(words, k=2), "meta": {"a": {"b": i}, "c": None}} for i in range(n)]


def main():
    import datasets
    import pandas
    here = os.path.dirname(os.path.abspath(__file__))
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "vectors", "listings")
    os.makedirs(folder, exist_ok=True)
    whole = rows()
    flat = [{name: row[name] for name in FLAT} for row in whole]

    def path(name):
        return os.path.join(folder, name)

    datasets.Dataset.from_list(whole).to_json(path("datasets.jsonl"))
    datasets.Dataset.from_list(flat).to_csv(path("datasets.csv"))
    pandas.DataFrame(whole).to_json(path("pandas.jsonl"), orient="records", lines=True, force_ascii=True)
    pandas.DataFrame(flat).to_csv(path("pandas.tsv"), index=False, sep="\t", quoting=1)
    with open(path("lines.txt"), "w", encoding="utf-8", newline="") as file:
        file.write("".join(row["text"].replace("\n", " ") + ("\n" if i % 4 else "\r\n") + ("\n" if i % 7 == 0 else "")
                           for i, row in enumerate(whole)) + "no end")
    kinds = {"datasets.jsonl": ("json", {}), "pandas.jsonl": ("json", {}), "datasets.csv": ("csv", {}),
             "pandas.tsv": ("csv", {"sep": "\t"}), "lines.txt": ("text", {})}
    with tempfile.TemporaryDirectory() as cache:
        for name, (kind, options) in kinds.items():
            read = datasets.load_dataset(kind, data_files=path(name), split="train", cache_dir=cache, **options)
            with open(path(name + ".expected.json"), "w", encoding="utf-8") as file:
                json.dump(list(read), file)
    with open(path("versions.json"), "w", encoding="utf-8") as file:
        json.dump({"datasets": datasets.__version__, "pandas": pandas.__version__}, file)


main()
