#!/usr/bin/env python3
"""Makes tests/vectors/arrow_indices/: what "datasets" before 1.15 saved, whose rows are in the sequence of an indices file.

    python3.8 make_arrow_indices_vectors.py FOLDER

It needs datasets==1.14.0 and what that needs of its time (pyarrow 5, numpy below 1.24, pandas 1, huggingface_hub 0.0); today's
versions write the rows in their sequence. FOLDER/NAME.jsonl has the rows as that version loads them again."""
import json
import os
import sys

import datasets

N = 25


def main(folder):
    if tuple(map(int, datasets.__version__.split(".")[:2])) >= (1, 15):
        sys.exit(f"datasets {datasets.__version__} writes no indices files; install datasets==1.14.0")
    os.makedirs(folder)
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["a", "b", "c"]),
                                  "score": datasets.Value("float64"), "ids": datasets.Sequence(datasets.Value("int32"))})
    whole = datasets.Dataset.from_dict({
        "text": [f"row {i} " + "äöü€𝄞"[i % 5] * (i % 9) for i in range(N)], "label": [i % 3 for i in range(N)],
        "score": [i / 4 for i in range(N)], "ids": [list(range(i % 5)) for i in range(N)]}, features=features)
    sets = {"shuffled": whole.shuffle(seed=3), "selected": whole.select([4, 4, 0, 24, 7]),
            "splits": datasets.DatasetDict({"train": whole.shuffle(seed=5).select(range(9)), "test": whole})}
    for name, dataset in sets.items():
        dataset.save_to_disk(os.path.join(folder, name))
        loaded = datasets.load_from_disk(os.path.join(folder, name))
        for split, rows in loaded.items() if name == "splits" else [(None, loaded)]:
            with open(os.path.join(folder, f"{split or name}.jsonl"), "w", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
    with open(os.path.join(folder, "WRITER"), "w", encoding="utf-8") as file:
        file.write(f"datasets {datasets.__version__}\n")


if __name__ == "__main__":
    main(sys.argv[1])
