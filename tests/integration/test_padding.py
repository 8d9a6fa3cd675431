#!/usr/bin/env python3
"""Samples of different lengths as one tensor: padded to the longest of their batch or to a length, cut, labelled; the mask says
what is real. Ragged samples that lie one after the other. What damaged samples leave behind; what is refused."""
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, equal, expected_order, indices, main, write
from listings import FORMATS, told_array
from pyclient import trainer

N = 50
FORMATS["i2"] = ("int16", "h")


def rows_of(dice, shortest=0, longest=40):
    """Tokens, and as many pairs of numbers."""
    rows = []
    for i in range(N):
        n = dice.randint(shortest, longest)
        rows.append({"tokens": [dice.randrange(1, 30000) for _ in range(n)],
                     "pairs": [[dice.random(), dice.random()] for _ in range(n)], "label": i % 7})
    return rows


def serve(box, rows, **settings):
    write(box.path("d.jsonl"), "".join(json.dumps(row) + "\n" for row in rows).encode())
    return box.daemon({"d": {"path": box.path("d.jsonl"), "format": "jsonl"}}, **settings)


def batches_of(box, daemon, pipeline, names, **options):
    """Each batch as its arrays in lists, with whether they are contiguous, and its indices."""
    return trainer(box, daemon, f"""
        loader = dlclient.Loader("d", pipeline={pipeline!r}, **{ {"batch_size": 8, "seed": 3, **options}!r})
        for batch in loader:
            assert all(batch[name].flags.c_contiguous for name in {names!r}), {names!r}
            out([batch.indices.tolist(), {{name: batch[name].tolist() for name in batch}}, list(batch),
                 [str(batch[name].dtype) for name in {names!r}]])
        loader.close()
    """)


def padded(row, length, value=0, left=False):
    row = row[:length]
    fill = [value] * (length - len(row))
    return fill + row if left else row + fill


def check(batches, rows, value=0, multiple=1, to=None, most=None, left=False, labels=None):
    """Against padding as it is written down in three lines of Python."""
    n = 0
    for chosen, fields, _, _ in batches:
        tokens = [rows[i]["tokens"][:to or most] for i in chosen]
        length = to or max(1, max(len(row) for row in tokens))
        length = -(-length // multiple) * multiple
        equal(fields["tokens"], [padded(row, length, value, left) for row in tokens], "elements")
        equal(fields["tokens_mask"], [padded([True] * len(row), length, False, left) for row in tokens], "mask")
        if labels:
            shift = labels == "shifted"
            equal(fields["tokens_labels"], [padded(row[shift:] + [-100] * (shift and bool(row)), length, -100, left) for row in tokens],
                  "labels")
        n += len(chosen)
    equal(n, N, "samples")


@case("tokens of a batch are padded to its longest sample, to a multiple, to a length, on either side; cut where it is said; each with "
      "its mask and its labels")
def _(box):
    rows = rows_of(random.Random(1))
    daemon = serve(box, rows)
    names = ["tokens", "tokens_mask"]
    check(batches_of(box, daemon, "tokens: pad", names), rows)
    check(batches_of(box, daemon, "tokens: pad(value=7, multiple=16)", names), rows, value=7, multiple=16)
    check(batches_of(box, daemon, "tokens: pad(to=64, value=-1)", names), rows, value=-1, to=64)
    check(batches_of(box, daemon, "tokens: to(int32) pad(side=left)", names), rows, left=True)
    check(batches_of(box, daemon, "tokens: to(int16) pad(side=left, to=41, multiple=4)", names), rows, left=True, to=41, multiple=4)
    check(batches_of(box, daemon, "tokens: pad(to=9, truncate=true)", names), rows, to=9)
    check(batches_of(box, daemon, "tokens: pad(max=9, truncate=true, multiple=2)", names), rows, most=9, multiple=2)
    for labels in ("same", "shifted"):
        for left in (False, True):
            check(batches_of(box, daemon, f"tokens: pad(labels={labels}, side={'left' if left else 'right'})", [*names, "tokens_labels"]),
                  rows, labels=labels, left=left)
    for chosen, fields, order, dtypes in batches_of(box, daemon, "label; pairs: to(float32) pad(value=0.5)",
                                                    ["pairs", "pairs_mask"]):
        equal(order, ["label", "pairs", "pairs_mask"], "tensors")
        equal(dtypes, ["float32", "bool"], "dtypes")
        length = max(1, max(len(rows[i]["pairs"]) for i in chosen))
        equal([[len(row) for row in fields["pairs"]], {len(pair) for row in fields["pairs"] for pair in row}],
              [[length] * len(chosen), {2}], "shape")
        for i, row in zip(chosen, fields["pairs"]):
            real = rows[i]["pairs"]
            assert all(abs(a - b) < 1e-6 for got, was in zip(row, real) for a, b in zip(got, was)), (row, real)
            equal(row[len(real):], [[0.5, 0.5]] * (length - len(real)), "padding")


@case("dlctl prints what is real of each sample: the same lines whatever was padded, and the mask as long as the batch is padded")
def _(box):
    rows = rows_of(random.Random(2))
    daemon = serve(box, rows)
    plain = daemon.read("d", batch=8, pipeline="tokens; pairs", seed=5)
    for pad in ("pad", "pad(side=left)", "pad(to=64, multiple=3, side=left)", "pad(labels=same)"):
        lines = daemon.read("d", batch=8, pipeline=f"tokens: {pad}; pairs: {pad.replace('labels=same', 'value=1')}", seed=5)
        equal(indices(lines), expected_order(N, seed=5), "order")
        for line, was in zip(lines, plain):
            fields = line["fields"]
            equal({name: fields[name] for name in ("tokens", "pairs")}, was["fields"], "elements")
            equal(fields["tokens_mask"]["dtype"], "bool", "mask")
            step = [rows[index]["tokens"] for index in indices(lines)][line["step"] * 8:line["step"] * 8 + 8]
            longest = max(map(len, step))
            equal(fields["tokens_mask"]["shape"], [66 if "to=" in pad else max(1, longest)], "length")
            if "labels" in pad:
                equal(fields["tokens_labels"], was["fields"]["tokens"], "labels")


@case("a sample that is longer than it may be is damaged, with both numbers; skipped and substituted samples leave no trace in others")
def _(box):
    rows = rows_of(random.Random(3), shortest=1)
    rows[17]["tokens"] = [5] * 60
    daemon = serve(box, rows)
    for pad, has, room in (("pad(to=40)", 60, 40), ("pad(max=39, multiple=4, side=left)", 60, 39), ("pad(to=59)", 60, 59)):
        daemon.refused("d", f"{has} elements", f"room for {room}", "truncate=true", pipeline=f"tokens: {pad}", batch=64, shuffle=False)
    rows[29]["tokens"] = [70000] * 3
    write(box.path("e.jsonl"), "".join(json.dumps(row) + "\n" for row in rows).encode())
    daemon = box.daemon({"d": {"path": box.path("e.jsonl"), "format": "jsonl"}}, name="e")
    plain = {line["index"]: line["fields"] for line in daemon.read("d", batch=1, pipeline="tokens: to(int32); label", shuffle=False)}
    for pad in ("pad(max=40, labels=same)", "pad(to=40, side=left)", "pad(max=40, side=left, multiple=8)"):
        lines = daemon.read("d", batch=8, pipeline=f"label; tokens: to(int16) {pad}", on_error="skip", seed=1)
        equal(indices(lines), [i for i in expected_order(N, seed=1) if i not in (17, 29)], "samples that are left")
        for line in lines:
            n, row = len(rows[line["index"]]["tokens"]), rows[line["index"]]["tokens"]
            equal(line["fields"]["tokens"], told_array(row, "i2", [n]), "elements")
            equal(line["fields"]["label"], plain[line["index"]]["label"], "label")
            step = [i for i in expected_order(N, seed=1)[line["step"] * 8:line["step"] * 8 + 8] if i not in (17, 29)]
            longest = max(len(rows[i]["tokens"]) for i in step)
            equal(line["fields"]["tokens_mask"]["shape"], [40 if "to=" in pad else -(-longest // 8) * 8 if "multiple" in pad else longest],
                  "length")
        lines = daemon.read("d", batch=8, pipeline=f"label; tokens: to(int16) {pad}", on_error="substitute", seed=1)
        equal(sorted(line["index"] for line in lines if "substitute" in line), [17, 29], "substituted samples")
        for line in lines:
            index = line.get("substitute", line["index"])
            equal(line["fields"]["tokens"], told_array(rows[index]["tokens"], "i2", [len(rows[index]["tokens"])]), "elements")


@case("a field that some samples do not have is padded as if it were empty, and dlctl says that it is absent")
def _(box):
    rows = rows_of(random.Random(4))
    for i in range(0, N, 3):
        del rows[i]["tokens"]
    daemon = serve(box, rows)
    for line in daemon.read("d", batch=8, pipeline="tokens: to(int64) pad", seed=2):
        told = None if line["index"] % 3 == 0 else told_array(rows[line["index"]]["tokens"], int, [len(rows[line["index"]]["tokens"])])
        equal(line["fields"]["tokens"], told, f"sample {line['index']}")


@case("ragged samples that are joined lie one after the other in the sequence of the batch, also where some are left out")
def _(box):
    rows = rows_of(random.Random(5))
    rows[13]["tokens"] = [70000]
    daemon = serve(box, rows)
    plain = daemon.read("d", batch=8, pipeline="label; tokens: to(int16)", on_error="skip", seed=6)
    equal(daemon.read("d", batch=8, pipeline="label; tokens: to(int16) ragged(joined=true)", on_error="skip", seed=6), plain, "lines")
    equal(daemon.read("d", batch=8, pipeline="label: ragged; tokens: to(int16) ragged", on_error="skip", seed=6), plain, "lines")
    for chosen, ends, begins, values in trainer(box, daemon, """
        loader = dlclient.Loader("d", batch_size=8, pipeline="tokens: to(int16) ragged(joined=true)", on_error="skip", seed=6)
        for batch in loader:
            arrays = list(batch["tokens"])
            begins = [array.ctypes.data for array in arrays]
            out([batch.indices.tolist(), [array.ctypes.data + array.nbytes for array in arrays], begins,
                 [array.tolist() for array in arrays]])
            del arrays
        loader.close()
    """):
        equal(begins[1:], ends[:-1], "where samples begin")
        equal(values, [rows[i]["tokens"] for i in chosen], "elements")


@case("what cannot be collated so is refused when a rank attaches, with its column")
def _(box):
    rows = [{"text": "a" * i, **row} for i, row in enumerate(rows_of(random.Random(6)))]
    daemon = serve(box, rows)
    for pipeline, words in {
            "label: pad": ("column 8", "pad", "label", "one number"),
            "text: pad": ("column 7", "text", "numbers"),
            "text: text stack": ("column 12", "stack", "text"),
            "tokens: pad(value=1.5)": ("int64", "1.5"),
            "tokens: to(uint8) pad(value=-1)": ("column 19", "uint8", "-1"),
            "tokens: pad to(int32)": ("column 13", "to", "pad", "last"),
            "tokens: pad ragged": ("column 13", "ragged", "last"),
            "tokens: pad(lenght=3)": ("column 13", "lenght", "value, multiple, to"),
            "tokens: pad(to=shortest)": ("column 16", "longest, or a whole number"),
            "tokens: pad(to=0)": ("column 16", "1 to"),
            "tokens: pad(side=up)": ("column 18", "right or left"),
            "tokens: pad(to=8, max=9)": ("column 9", "max"),
            "tokens: pad(truncate=true)": ("to=N or max=N",),
            "tokens: pad(to=3:4)": ("one dimension", "to=3"),
            "tokens: ragged(joined=maybe)": ("column 23", "false or true"),
            "tokens: stack(2)": ("column 15", "no arguments"),
            "label; tokens: to(float32) pad(labels=same)": ("float32", "whole numbers")}.items():
        daemon.refused("d", *words, pipeline=pipeline)


main(tells_samples=True)
