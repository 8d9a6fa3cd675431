#!/usr/bin/env python3
"""Samples of different lengths as one tensor: padded to the longest of their batch or to a length, cut, labelled; the mask says
what is real. Ragged samples that lie one after the other. What damaged samples leave behind; what is refused."""
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, equal, expected_order, identity_pixels, indices, main, png, write
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


@case("a field that is called labels is filled with -100, and mask= names the mask of the first field of its part")
def _(box):
    rows = [{"input_ids": list(range(1, 2 + i % 5)), "labels": list(range(1, 2 + i % 5)), "label": i} for i in range(N)]
    with open(box.path("d.jsonl"), "w", encoding="ascii") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    daemon = box.daemon({"d": {"path": box.path("d.jsonl"), "format": "jsonl"}})
    for text, ids, labels, mask in (("pad", 0, -100, "input_ids_mask"), ("pad(mask=attention_mask)", 0, -100, "attention_mask"),
                                    ("pad(value=7)", 7, 7, "input_ids_mask"), ("pad(value=0)", 0, 0, "input_ids_mask")):
        for chosen, fields, order, _ in batches_of(box, daemon, f"input_ids, labels: {text}", ["input_ids", "labels"]):
            length = max(len(rows[i]["labels"]) for i in chosen)
            equal(order, ["input_ids", mask, "labels", "labels_mask"], text)
            equal(fields["input_ids"], [padded(rows[i]["input_ids"], length, ids) for i in chosen], text)
            equal(fields["labels"], [padded(rows[i]["labels"], length, labels) for i in chosen], text)
            equal(fields[mask], [padded([True] * len(rows[i]["labels"]), length, False) for i in chosen], text)
    for chosen, fields, _, _ in batches_of(box, daemon, "x=input_ids, label=labels, label_ids=labels: pad", ["x"]):
        length = max(len(rows[i]["labels"]) for i in chosen)
        for name in ("x", "label", "label_ids"):
            equal(fields[name], [padded(rows[i]["labels"], length, 0) for i in chosen], name)
    columns = [len(row["labels"]) for row in rows]
    for text, fill in (("pack(16)", -100), ("pack(16, value=3)", 3)):
        last = trainer(box, daemon, f"""
            loader = dlclient.Loader("d", pipeline="labels: {text}", batch_size=4, columns={{"labels": {columns!r}}})
            out([sorted(set(batch["labels"][batch["labels_segments"] == 0].tolist())) for batch in loader])
        """)[0]
        equal({value for values in last for value in values}, {fill}, text)
    daemon.refused("d", "labels is uint8, which cannot hold value=-100", "value=", pipeline="labels: to(uint8) pad")
    trainer(box, daemon, f"""
        options = dict(pipeline="labels: to(uint8) pack(16, value=-1)", columns={{"labels": {columns!r}}})
        refused(dlclient.OptionError, lambda: list(dlclient.Loader("d", **options)), "cannot hold value=-1")
    """)
    daemon.refused("d", "mask=input_ids_mask", pipeline="input_ids: pad; labels: pad(mask=input_ids_mask)")
    daemon.refused("d", "label would come with field input_ids", pipeline="input_ids: pad(mask=label); label")


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


@case("mlm hides tokens by seed, epoch and sample alone: the same in any batch, on either side, however many ranks there are")
def _(box):
    rows = rows_of(random.Random(10), longest=300)
    rows[7]["tokens"] = [70000]
    daemon = serve(box, rows)
    mlm = "to(int16) mlm(mask=1, vocab=29000, p=0.3, special=2:3)"
    plain = None
    for pad, batch, world in (("pad", 1, 1), ("pad(side=left)", 9, 1), ("pad(to=300, side=left)", 8, 2), ("pad(multiple=8)", 16, 2)):
        mine = {}
        for lines in daemon.read_ranks("d", world, batch=batch, pipeline=f"tokens: {mlm} {pad}", epochs=2, seed=3, on_error="skip"):
            for line in lines:
                mine[line["epoch"], line["index"]] = line["fields"]["tokens"], line["fields"]["tokens_labels"]
        plain = plain or mine
        equal(mine, plain, f"{pad}, batches of {batch}, {world} ranks")
    equal(len(plain), 2 * (N - 1), "samples")
    equal(sum(plain[0, i] != plain[1, i] for i in range(N) if i != 7 and len(rows[i]["tokens"]) > 50) > 30, True, "another epoch")
    n_tokens = n_chosen = n_masked = 0
    for chosen, tokens, labels, mask in trainer(box, daemon, f"""
        loader = dlclient.Loader("d", batch_size=8, pipeline="tokens: {mlm} pad(side=left)", seed=3, on_error="skip")
        for batch in loader:
            out([batch.indices.tolist(), batch["tokens"].tolist(), batch["tokens_labels"].tolist(), batch["tokens_mask"].tolist()])
        loader.close()
    """):
        for i, token, label, real in zip(chosen, tokens, labels, mask):
            was = [0] * (len(token) - len(rows[i]["tokens"])) + rows[i]["tokens"]
            same = [a for a, b in zip(token, label) if b == -100]
            equal(same, [a for a, b in zip(was, label) if b == -100], "what was not chosen")
            equal([b for b in label if b != -100], [a for a, b in zip(was, label) if b != -100], "labels")
            equal([b for b, c in zip(label, real) if not c and b != -100], [], "labels of padding")
            n_tokens += len(rows[i]["tokens"])
            n_chosen += sum(b != -100 for b in label)
            n_masked += sum(b != -100 and a == 1 for a, b in zip(token, label))
    equal(abs(n_chosen - 0.3 * n_tokens) < 300 and abs(n_masked - 0.8 * n_chosen) < 250, True, f"{n_masked} of {n_chosen} of {n_tokens}")


@case("a ragged field in Python: values, offsets and a padded array, without a copy where samples are joined")
def _(box):
    rows = rows_of(random.Random(9))
    del rows[20]["tokens"]
    daemon = serve(box, rows)
    for pipeline in ("tokens", "tokens: ragged(joined=true)"):
        n = 0
        for chosen, values, offsets, seqlens, dtypes, lists, joined, left, mask, copied, doubled in trainer(box, daemon, f"""
            def addresses(array):
                return [array.ctypes.data, array.ctypes.data + array.nbytes]
            loader = dlclient.Loader("d", batch_size=8, pipeline={pipeline!r}, seed=6)
            for batch in loader:
                field = batch["tokens"]
                values, (left, mask) = field.values, field.padded(value=-1, side="left", multiple=4)
                kept = batch.copy()["tokens"]
                assert kept.values.tolist() == values.tolist() and kept.offsets.tolist() == field.offsets.tolist()
                doubled = field.map(lambda array: array - array.sum()).values.tolist()
                lists = [None if array is None else array.tolist() for array in field]
                real = [array for array in field if array is not None and len(array)]
                out([batch.indices.tolist(), values.tolist(), field.offsets.tolist(), field.cu_seqlens.tolist(),
                     [str(field.offsets.dtype), str(field.cu_seqlens.dtype)], lists, addresses(values)[0] == addresses(real[0])[0],
                     left.tolist(), mask.tolist(), bool(addresses(kept.values)[0] != addresses(values)[0]), doubled])
                del field, values, real
            loader.close()
        """):
            real = [rows[i].get("tokens") for i in chosen]
            some = [row or [] for row in real]
            equal(lists, real, "a list of arrays")
            equal(values, sum(some, []), "values")
            equal(doubled, [each - sum(row) for row in some for each in row], "a function of each sample")
            equal(offsets, [sum(map(len, some[:i])) for i in range(len(some) + 1)], "offsets")
            equal((seqlens, dtypes, copied), (offsets, ["int64", "int32"], True), "cu_seqlens")
            equal(joined, "joined" in pipeline and None not in real, "whether it is a copy")
            length = -(-max(map(len, some)) // 4) * 4
            equal(left, [padded(row, length, -1, left=True) for row in some], "padded")
            equal(mask, [padded([True] * len(row), length, False, left=True) for row in some], "mask")
            n += len(chosen)
        equal(n, N, "samples")
    for names, dtype in trainer(box, daemon, """
        loader = dlclient.Loader("d", batch_size=8, pipeline="tokens: pad(labels=same); label")
        batch = next(iter(loader))
        inputs = batch.model_inputs()
        assert (inputs["labels"] == batch["tokens_labels"]).all() and inputs["attention_mask"].sum() == batch["tokens_mask"].sum()
        refused(KeyError, lambda: batch.model_inputs("label"), "label_mask", "not padded")
        named = next(iter(dlclient.Loader("d", batch_size=8, pipeline="tokens: pad(mask=attention_mask); label")))
        assert (named.model_inputs()["attention_mask"] == named["attention_mask"]).all() and "tokens_mask" not in named
        out([list(inputs), str(inputs["attention_mask"].dtype)])
    """):
        equal((names, dtype), (["input_ids", "attention_mask", "labels"], "int64"), "names")


@case("names=\"transformers\" makes dicts for model(**batch): tokens, masks as int64, labels with -100, pictures")
def _(box):
    from pyclient import need
    need("torch")
    rows = rows_of(random.Random(5))
    daemon = serve(box, [{**row, "labels": row.get("tokens") or [1], "input_ids": row.get("tokens") or [1],
                          "small": [token % 100 for token in row.get("tokens") or [1]]} for row in rows])
    pictures = box.daemon({"p": box.folder_of_pictures("p", 6, width=8, height=8)})
    trainer(box, daemon, """
        import torch
        def first(pipeline, dataset="d", **more):
            return next(iter(dlclient.Loader(dataset, batch_size=8, pipeline=pipeline, names="transformers", **more)))
        batch = first("tokens: pad(labels=same)")
        assert type(batch) is dict and list(batch) == ["input_ids", "attention_mask", "labels"], batch
        assert batch["attention_mask"].dtype is torch.int64 and (batch["labels"][batch["attention_mask"] == 0] == -100).all()
        batch = first("input_ids, labels: pad; label")
        assert set(batch) == {"input_ids", "attention_mask", "labels", "label"} and (batch["labels"] == -100).any(), set(batch)
        assert (batch["labels"][batch["attention_mask"] == 1] >= 0).all()
        batch = first("input_ids, attention_mask=input_ids, token_type_ids=tokens, loss=labels, label_ids=labels: pad(value=3)")
        assert set(batch) == {"input_ids", "attention_mask", "token_type_ids", "loss", "labels"}, set(batch)
        assert (batch["attention_mask"] == batch["input_ids"]).all() and batch["loss"].dtype is torch.int64
        batch = first("x=input_ids: pad; x_labels=labels: ragged; pixel_values_mask=label; token_mask=label; label")
        assert set(batch) == {"x", "x_labels", "pixel_values_mask", "token_mask", "labels"}, set(batch)
        batch = first("input_ids: pack(64, labels=same)", columns={"input_ids": [len(row) for row in json.loads(sys.argv[1])]})
        assert set(batch) == {"input_ids", "position_ids", "labels"}, set(batch)
        batch = first("input_ids: pad(mask=attention_mask)", framework="numpy")
        assert list(batch) == ["input_ids", "attention_mask"] and batch["attention_mask"].dtype == numpy.int64
        for framework in ("torch", "numpy"):    # padding is not the class 0
            for name in ("label", "label_ids", "tokens_labels"):
                batch = first(f"x=small; input_ids; {name}=small: to(int8) pad", framework=framework)
                assert set(batch) == {"x", "input_ids", "labels"} and str(batch["labels"].dtype).endswith("int8"), batch
                for label, real in zip(batch["labels"].tolist(), batch["x"]):
                    assert label == real.tolist() + [-100] * (len(label) - len(real)), (label, real)
            for dtype in ("uint8", "float32"):
                batch = first(f"label=small: to({dtype}) pad; label_ids=labels: pad; x=labels: pad", framework=framework)
                assert set(batch) == {"label", "label_mask", "label_ids", "label_ids_mask", "x"}, set(batch)
        for pipeline in ("input_ids: pad(to=80); input_features=labels: pad(to=81)", "input_features=labels: pad(to=81); input_ids: pad(to=80)"):
            batch = first(pipeline)
            assert set(batch) == {"input_ids", "attention_mask", "input_features", "input_features_mask"}, set(batch)
            assert batch["attention_mask"].shape == (8, 80)
        batch = first("input_ids: pad(to=80); tokens: pad(to=81)")
        assert set(batch) == {"input_ids", "attention_mask", "tokens", "tokens_mask"} and batch["attention_mask"].shape == (8, 80)
        refused(dlclient.OptionError, lambda: first("tokens: pad", as_tuple=True), "names", "as_tuple")
        refused(dlclient.OptionError, lambda: dlclient.Loader("d", names="jax"), "names", "transformers")
    """, json.dumps([row.get("tokens") or [1] for row in rows]))
    trainer(box, pictures, """
        pad = "image: random_resized_crop(4) to(float32) pad(max=8:8) views(2)"
        batch = next(iter(dlclient.Loader("p", 3, pipeline=pad, names="transformers")))
        assert list(batch) == ["pixel_values", "pixel_mask"] and len(batch["pixel_mask"]) == 2, batch
        batch = next(iter(dlclient.Loader("p", 3, pipeline="to(float32) layout(nchw)", names="transformers")))
        assert list(batch) == ["pixel_values", "labels"] and tuple(batch["pixel_values"].shape) == (3, 3, 8, 8), batch
    """)


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
            "tokens: mlm(mask=1, vocab=9)": ("column 9", "the next step is pad"),
            "tokens: mlm(mask=1, vocab=9) pad(labels=same)": ("leave labels out",),
            "tokens: pad to(int32)": ("column 13", "to", "pad", "last"),
            "tokens: pad ragged": ("column 13", "ragged", "last"),
            "tokens: pad(lenght=3)": ("column 13", "lenght", "value, multiple, to"),
            "tokens: pad(to=shortest)": ("column 16", "N or HEIGHT:WIDTH", "or the word longest"),
            "tokens: pad(to=0)": ("column 16", "1 to"),
            "tokens: pad(side=up)": ("column 18", "right or left"),
            "tokens: pad(to=8, max=9)": ("column 9", "max"),
            "tokens: pad(truncate=true)": ("to=N or max=N",),
            "tokens: pad(to=3:4)": ("one dimension", "to=3"),
            "tokens: ragged(joined=maybe)": ("column 23", "true or false"),
            "tokens: stack(2)": ("column 15", "no arguments"),
            "label; tokens: to(float32) pad(labels=same)": ("float32", "whole numbers")}.items():
        daemon.refused("d", *words, pipeline=pipeline)


def pictures(box, dice, n=30):
    """COCO's, of any size, with boxes and a semantic mask each."""
    content = {"images": [], "categories": [{"id": 1}], "annotations": []}
    for i in range(n):
        width, height = dice.randint(6, 40), dice.randint(6, 40)
        write(box.path("p", f"{i}.png"), png(width, height, identity_pixels(i, width, height)))
        write(box.path("m", f"{i}.pgm"), b"P5\n%d %d\n255\n" % (width, height) + identity_pixels(i, width, height)[::3])
        content["images"].append({"id": i, "file_name": f"{i}.png"})
        for _ in range(dice.randrange(4)):
            content["annotations"].append({"image_id": i, "category_id": 1, "bbox": [0, 0, width / 2, height]})
    write(box.path("a.json"), json.dumps(content).encode())
    write(box.path("m.jsonl"), "".join(json.dumps({"image": f"p/{i}.png", "mask": f"m/{i}.pgm"}) + "\n" for i in range(n)).encode())
    return {"d": {"path": box.path("p"), "format": "coco", "annotations": box.path("a.json")},
            "m": {"path": box.path("m.jsonl"), "format": "jsonl", "files": "image, mask"}}


@case("pictures are padded to the largest of their batch in both layouts, with a pixel mask; boxes and labels stay lists")
def _(box):
    daemon = box.daemon(pictures(box, random.Random(7)))
    for steps in ("resize(short=12, max=20)", "resize(short=12, max=20) hflip(0.5) color_jitter(0.4)", "decode(mode=L) resize(short=9, max=30)",
                  "resize(short=8, max=31) normalize(0.5, std=0.25) layout(nchw)", "resize(short=8, max=31) to(float16)",
                  "decode(mode=RGBA) resize(short=9, max=14) layout(nchw)", "resize(short=7, max=9) pad(2, fill=3)"):
        parts = "image, boxes, labels: {}" if "RGBA" not in steps and "mode=L" not in steps else "image: {}; boxes; labels"
        plain = {line["index"]: line["fields"] for line in daemon.read("d", batch=1, pipeline=parts.format(steps), seed=1)}
        for pad in ("pad", "pad(multiple=32)", "pad(value=1, max=64:48)", "pad(to=40)"):
            lines = daemon.read("d", batch=7, pipeline=parts.format(f"{steps} {pad}"), seed=1)
            equal(indices(lines), expected_order(30, seed=1), "order")
            for line in lines:
                mask = line["fields"].pop("image_mask")
                equal(line["fields"], plain[line["index"]], f"{steps} {pad}: sample {line['index']}")
                equal((mask["dtype"], len(mask["shape"])), ("bool", 2), "mask")
                if "to=" in pad:
                    equal(mask["shape"], [40, 40], "size")
                if "multiple" in pad:
                    equal([each % 32 for each in mask["shape"]], [0, 0], "size")
    plain = daemon.read("m", batch=1, pipeline="image, mask: decode(mask=int32) resize(short=12, max=20) hflip(0.5)", seed=1)
    lines = daemon.read("m", batch=8, pipeline="image, mask: decode(mask=int32) resize(short=12, max=20) hflip(0.5) pad(value=255)", seed=1)
    equal([{name: line["fields"][name] for name in ("image", "mask")} for line in lines], [line["fields"] for line in plain], "masks")
    daemon.refused("d", "any size", "max=HEIGHT:WIDTH", pipeline="image: decode pad")
    daemon.refused("d", "any size", "resize(short=800, max=1333)", pipeline="image: resize(9) pad")
    daemon.refused("d", "leave side out", pipeline="image: resize(9, max=12) pad(side=left)")
    daemon.refused("d", "pad has room for 8 x 9", "height x width", pipeline="image: resize(9, max=12) pad(to=8:9)")
    lines = daemon.read("d", batch=7, pipeline="image: resize(9, max=12) pad(to=8:9)", on_error="skip")
    equal(all(line["fields"]["image"]["shape"][0] <= 8 and line["fields"]["image"]["shape"][1] <= 9 for line in lines), True, "skipped")


@case("what is outside of a padded picture is the value, and its mask is false, for who trains on it")
def _(box):
    daemon = box.daemon(pictures(box, random.Random(8)))
    for layout, dtype in (("nhwc", "uint8"), ("nchw", "float32")):
        steps = f"resize(short=12, max=20) to({dtype}) layout({layout})"
        for good, n in trainer(box, daemon, f"""
            def rows(pipeline, batch_size):
                loader = dlclient.Loader("d", batch_size=batch_size, pipeline=pipeline, seed=2)
                for batch in loader:
                    yield batch.copy()
                loader.close()
            plain = [batch["image"][0] for batch in rows("image: {steps}", 1)]
            at = 0
            for batch in rows("image, boxes: {steps} pad(value=7, multiple=4)", 8):
                images, masks, n = batch["image"], batch["image_mask"], len(batch["image"])
                mine = plain[at:at + n]
                at += n
                if "{layout}" == "nchw":
                    images, mine = images.transpose(0, 2, 3, 1), [image.transpose(1, 2, 0) for image in mine]
                size = [-(-max(image.shape[k] for image in mine) // 4) * 4 for k in range(2)]
                expected = numpy.full((n, *size, 3), 7, images.dtype)
                real = numpy.zeros((n, *size), bool)
                for i, image in enumerate(mine):
                    expected[i, :image.shape[0], :image.shape[1]] = image
                    real[i, :image.shape[0], :image.shape[1]] = True
                out([bool(numpy.array_equal(images, expected) and numpy.array_equal(masks, real) and len(batch["boxes"]) == n), n])
        """):
            equal(good, True, f"a batch of {n}")


main(tells_samples=True)
