"""Data sets that a format's own writer wrote, with what its own reader read from them: a .jsonl file with a line a sample,
whose fields look as `dlctl read` prints them."""
import json

from harness import equal, expected_order, indices


def expected_in(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def pipeline_of(expected):
    """Bytes as they are stored; everything else in its own form."""
    names = sorted({name for line in expected for name in line})
    is_bytes = {name: any(line[name] and line[name]["dtype"] == "bytes" for line in expected) for name in names}
    return "; ".join(f"{name}: raw" if is_bytes[name] else name for name in names)


def check_set(daemon, dataset, expected, batch=1, **terms):
    """Every field of every sample that a rank gets, in torch's order."""
    lines = daemon.read(dataset, pipeline=pipeline_of(expected), batch=batch, **terms)
    equal(indices(lines), expected_order(len(expected), **terms), "order")
    for line in lines:
        for name, entry in expected[line["index"]].items():
            equal(line["fields"][name], entry, f"{dataset}: sample {line['index']}, field {name}")


def check_set_in_full(daemon, dataset, expected):
    check_set(daemon, dataset, expected)
    check_set(daemon, dataset, expected, seed=7, batch=3)
    for rank in range(3):
        check_set(daemon, dataset, expected, world=3, rank=rank)
