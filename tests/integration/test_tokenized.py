#!/usr/bin/env python3
"""Text that leaves as tokens: the numbers of "tokenizers" (tests/vectors/tokenizers) through the real daemon, from each form that
holds text; truncation and windows; padding; what is refused, and with which words."""
import json
import os
import shutil
import signal
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from harness import DLCTL, case, contains, equal, main, within, write
from listings import FORMATS, told_array
from pyclient import trainer

FORMATS["to(int32)"] = ("int32", "i")
FORMATS["to(int64)"] = ("int64", "q")
VECTORS = os.path.join(HERE, "..", "vectors", "tokenizers")
KINDS = ("bert", "bert_cased", "gpt2", "roberta", "llama3", "qwen", "o200k", "clip", "llama2", "mistral", "meta", "added")
SPECIAL = {"bert": (1, 1), "bert_cased": (1, 1), "roberta": (1, 1), "llama3": (1, 0), "clip": (1, 1), "llama2": (1, 0),
           "mistral": (1, 0), "meta": (1, 0)}


def lines_of(name, key):
    with open(os.path.join(VECTORS, name), encoding="utf-8") as file:
        return [json.loads(line)[key] for line in file]


TEXTS = lines_of("texts.jsonl", "text")
IDS = {kind: lines_of(f"{kind}.ids.jsonl", "ids") for kind in KINDS}


def serve(box, texts=None, **settings):
    rows = [{"text": text, "meta": {"caption": text}, "label": i} for i, text in enumerate(TEXTS if texts is None else texts)]
    write(box.path("d.jsonl"), "".join(json.dumps(row) + "\n" for row in rows).encode())
    return box.daemon({"d": {"path": box.path("d.jsonl"), "format": "jsonl"}}, **{"tokenizers": VECTORS, **settings})


def arrays(values, dtype="int64"):
    return [told_array(ids, f"to({dtype})", [len(ids)]) for ids in values]


def read(daemon, pipeline, **options):
    lines = daemon.read(**{"dataset": "d", "batch": 16, "pipeline": pipeline, "shuffle": False, **options})
    return [line["fields"][pipeline.partition(":")[0]] for line in lines]


def parts(kind, ids):
    before, after = SPECIAL.get(kind, (0, 0))
    return ids[:before], ids[before:len(ids) - after], ids[len(ids) - after:]


@case("each kind of tokenizer gives the numbers of the library, with and without special tokens")
def _(box):
    daemon = serve(box)
    for kind in KINDS:
        equal(read(daemon, f"text: tokens({kind}, truncation=none)"), arrays(IDS[kind]), kind)
        equal(read(daemon, f"text: tokens({kind}, truncation=none, special=false) to(int32)"),
              arrays([parts(kind, ids)[1] for ids in IDS[kind]], "int32"), kind)


def check_arrow(box):
    """The texts of a file that pyarrow wrote, beside the same texts as JSON Lines."""
    path = os.path.join(VECTORS, "..", "arrow", "strings.arrow")
    daemon = box.daemon({"a": {"path": path, "format": "arrow"}}, name="arrow", tokenizers=VECTORS)
    lines = daemon.read("a", shuffle=False)
    names = [name for name, told in lines[0]["fields"].items() if told and told["dtype"] == "text"]
    assert names, lines[0]
    for name in names:
        chosen = [i for i, line in enumerate(lines) if line["fields"][name] and line["fields"][name]["shape"][0] < 200]
        rows = [{"text": lines[i]["fields"][name]["text"]} for i in chosen]
        write(box.path(f"{name}.jsonl"), "".join(json.dumps(row) + "\n" for row in rows).encode())
        again = box.daemon({"d": {"path": box.path(f"{name}.jsonl"), "format": "jsonl"}}, name=f"of_{name}", tokenizers=VECTORS)
        got = read(daemon, f"{name}: tokens(gpt2, truncation=none)", dataset="a")
        equal([got[i] for i in chosen], read(again, "text: tokens(gpt2, truncation=none)"), name)


@case("text of JSON Lines, CSV, plain files, Arrow files and members of JSON gives the same tokens")
def _(box):
    plain = [i for i, text in enumerate(TEXTS) if text.strip() and len(text.splitlines()) == 1 and "\0" not in text]
    daemon = serve(box)
    wanted = arrays(IDS["bert"])
    for steps in ("json(caption) text", "json(caption)"):
        equal(read(daemon, f"meta: {steps} tokens(bert, truncation=none)"), wanted, steps)
    folder = box.path("w")
    os.makedirs(folder)
    for i in plain:
        write(os.path.join(folder, f"{i:04}.txt"), TEXTS[i].encode())
    write(box.path("lines.txt"), "".join(TEXTS[i] + "\n" for i in plain).encode())
    write(box.path("c.csv"), ("text,label\n" + "".join('"' + TEXTS[i].replace('"', '""') + f'",{i}\n' for i in plain)).encode())
    other = box.daemon({"lines": {"path": box.path("lines.txt"), "format": "text"},
                        "csv": {"path": box.path("c.csv"), "format": "csv"},
                        "files": {"path": folder, "format": "text"}}, name="other", tokenizers=VECTORS)
    check_arrow(box)
    for name in ("lines", "csv", "files"):
        equal(read(other, "text: tokens(bert, truncation=none)", dataset=name), [wanted[i] for i in plain], name)


def windows(tokens, most, stride, left):
    """The encodings that "tokenizers" makes when it truncates: the first one, and those that overflow."""
    step, found = most - stride, []
    if not left:
        for begin in range(0, max(1, len(tokens)), step):
            found.append(tokens[begin:begin + most])
            if begin + most >= len(tokens):
                return found
    for end in range(len(tokens), 0, -step):
        found.append(tokens[max(0, end - most):end])
        if end <= most:
            return found
    return found or [[]]


@case("a longer text loses its end or its beginning, or becomes one of its windows, another one in each epoch")
def _(box):
    daemon = serve(box)
    seen = set()
    for kind in ("bert", "gpt2"):
        for side in ("right", "left"):
            wanted = []
            for ids in IDS[kind]:
                before, tokens, after = parts(kind, ids)
                most = 12 - len(before) - len(after)
                wanted.append(before + windows(tokens, most, 0, side == "left")[0] + after)
            equal(read(daemon, f"text: tokens({kind}, max_length=12, truncation={side})"), arrays(wanted), f"{kind}, {side}")
            allowed = []
            for ids in IDS[kind]:
                before, tokens, after = parts(kind, ids)
                allowed.append([before + window + after for window in
                                windows(tokens, 12 - len(before) - len(after), 3, side == "left")])
            pipeline = f"text: tokens({kind}, max_length=12, stride=3, window=random, truncation={side})"
            lines = daemon.read(dataset="d", batch=16, pipeline=pipeline, epochs=3, seed=5)
            for line in lines:
                got, may = line["fields"]["text"], arrays(allowed[line["index"]])
                assert got in may, f"{got} is none of the {len(may)} windows of sample {line['index']}"
                if len(may) > 4:
                    seen.add((kind, side, line["index"], may.index(got)))
            again = daemon.read(dataset="d", batch=5, pipeline=pipeline, epochs=3, seed=5)
            equal([line["fields"] for line in again], [line["fields"] for line in lines], "another batch size draws the same")
    assert len(seen) > 1.5 * len({key[:3] for key in seen}), f"{len(seen)} windows were drawn"


@case("with truncation=none every token is there, and a text that is longer than max_length is a damaged sample")
def _(box):
    texts = ["short", "word " * 3000, "", "also short"]
    daemon = serve(box, texts)
    shapes = [field["shape"] for field in read(daemon, "text: tokens(bert, truncation=none)", batch=4)]
    assert shapes[1][0] > 3000, shapes
    equal(shapes[2], [2])
    lines = daemon.read(dataset="d", batch=2, pipeline="text: tokens(bert, max_length=64, truncation=none)", shuffle=False,
                        on_error="skip")
    equal([line["index"] for line in lines], [0, 2, 3], "samples")
    errors = daemon.dlctl("errors", "d").stdout
    contains(errors, "has more than 64 tokens; raise max_length, or let truncation shorten it")


@case("what max_length cuts is counted: texts, and about how many tokens, for the trainer and for dlctl jobs")
def _(box):
    texts = ["word " * (10 if i % 2 else 3) for i in range(200)]  # of four tokens each
    daemon = serve(box, texts, workers=2)
    for steps, is_exact in (("truncation=left", True), ("truncation=right", False), ("window=random", None)):
        told = trainer(box, daemon, f"""
            import subprocess
            with dlclient.Loader("d", pipeline="text: tokens(bert, special=false, max_length=16, {steps})", batch_size=4,
                                 job="cut") as loader:
                for batch in loader:
                    assert len(batch["text"]) == 4
                stats = loader.stats()
                jobs = subprocess.run({[DLCTL, "--socket", daemon.socket, "--format", "json", "jobs", "cut"]!r}, stdout=subprocess.PIPE)
                out([stats.texts_cut, stats.tokens_cut, jobs.stdout.decode()])
        """)
        n_texts, n_tokens, jobs = told[0]
        counts = json.loads(jobs)["counts"]
        assert counts["n_texts_cut"] >= n_texts and counts["n_tokens_cut"] >= n_tokens, (counts, told)
        if is_exact is None:
            equal((n_texts, n_tokens), (0, 0), steps)
            continue
        assert 100 <= n_texts <= 300, f"{n_texts}, and those of the epoch that was begun"
        # A thread has 15 texts to come in the number of every sixteenth, and counts are read one after the other.
        more = (0, 8) if is_exact else (0, 2 * 15 + 8)
        assert 24 * (n_texts + more[0] - 8) <= n_tokens <= 24 * (n_texts + more[1]), (steps, n_texts, n_tokens)


@case("of long texts that are cut, one in fifteen is encoded whole, although the memory for it is not kept")
def _(box):
    surplus = 1_000_000 - 16  # more than a worker keeps the memory for
    daemon = serve(box, [f"{letter} " + "a " * 999_999 for letter in "abcdefghijklmnopqrst"], workers=1)
    told = trainer(box, daemon, """
        with dlclient.Loader("d", pipeline="text: tokens(bert, special=false, max_length=16)", batch_size=4, epochs=1) as loader:
            n = sum(len(batch["text"]) for batch in loader)
            out([n, loader.stats().texts_cut, loader.stats().tokens_cut])
    """)
    equal(told[0], [20, 20, (15 + 15) * surplus], "the first fifteen are counted, and the sixteenth for fifteen")


@case("tokens are padded in the slot with their mask, and Python gets lists of arrays without padding")
def _(box):
    daemon = serve(box)
    got = trainer(box, daemon, """
        for pipeline in ("text: tokens(bert, max_length=20) pad(value=0)", "text: tokens(gpt2, max_length=20)"):
            loader = dlclient.Loader("d", pipeline=pipeline, batch_size=8, shuffle=False)
            for batch in loader:
                value = batch["text"]
                out([batch.indices.tolist(), [row.tolist() for row in value],
                     batch["text_mask"].sum(axis=1).tolist() if "pad(" in pipeline else None])
            loader.close()
    """)
    assert len(got) > 10, len(got)
    for chosen, rows, lengths in got:
        for k, i in enumerate(chosen):
            kind = "gpt2" if lengths is None else "bert"
            before, tokens, after = parts(kind, IDS[kind][i])
            wanted = before + tokens[:20 - len(before) - len(after)] + after
            if lengths is not None:
                equal(lengths[k], len(wanted), "mask")
                wanted = wanted + [0] * (max(lengths) - len(wanted))
            equal(rows[k], wanted, f"sample {i}")


@case("tokens/s are told where there are tokens, of real ones: padded, packed, ragged, and a column input_ids")
def _(box):
    write(box.path("ids.jsonl"), "".join(json.dumps({"input_ids": list(range(1 + 7 * i % 50)), "labels": list(range(1 + 7 * i % 50)),
                                                     "n": 1 + 7 * i % 50}) + "\n" for i in range(64)).encode())
    daemon = serve(box)
    other = box.daemon({"i": {"path": box.path("ids.jsonl"), "format": "jsonl"}}, name="ids")
    script = f"""
        import json, subprocess
        for pipeline in PIPELINES:
            with dlclient.Loader(NAME, pipeline=pipeline, batch_size=8, shuffle=False, drop_last=False,
                                 columns={{"input_ids": [1 + 7 * i % 50 for i in range(64)]}} if "pack" in pipeline else None) as loader:
                n = []
                for batch in loader:
                    field = next(name for name in ("text", "input_ids", "n") if name in batch)
                    mask = batch[field + "_mask"] if field + "_mask" in batch else None
                    segments = batch[field + "_segments"] if field + "_segments" in batch else None
                    n.append(int(mask.sum() if mask is not None else (segments > 0).sum() if segments is not None
                             else 0 if field == "n" else sum(len(row) for row in batch[field])))
                    del batch
                stats = loader.stats()
                told = subprocess.run([{DLCTL!r}, "--format", "json", "jobs"], stdout=subprocess.PIPE, check=True).stdout
                job = json.loads(told)
                out([n, job["counts"]["n_tokens"], job.get("tokens_per_second", 0) > 0, stats.tokens_per_second > 0])
    """
    cases = ((daemon, "d", ["text: tokens(bert, max_length=20) pad(value=0)", "text: tokens(gpt2, max_length=20)"]),
             (other, "i", ["input_ids, labels: pad", "input_ids: pack(64)", "input_ids; labels", "n"]))
    for served, name, pipelines in cases:
        lines = trainer(box, served, f"        PIPELINES, NAME = {pipelines!r}, {name!r}\n" + script.lstrip("\n"))
        for pipeline, (n, counted, is_told, is_in_stats) in zip(pipelines, lines):
            # Batches of the next epoch, which has the same sequence, are prepared ahead.
            equal(counted in [sum((n + n)[:k]) for k in range(len(n), 2 * len(n) + 1)], True, f"{pipeline}: {counted} tokens, of {n}")
            has_tokens = pipeline != "n"
            equal((counted > 0, is_told, is_in_stats), (has_tokens,) * 3, pipeline)


@case("what is wrong is said with its column, and only names of the folder are taken")
def _(box):
    folder = box.path("tokenizers")
    os.makedirs(os.path.join(folder, "org", "model"))
    shutil.copy(os.path.join(VECTORS, "bert.json"), os.path.join(folder, "org", "model", "tokenizer.json"))
    shutil.copy(os.path.join(VECTORS, "bert.json"), box.path("outside.json"))
    os.makedirs(os.path.join(folder, "folder.json"))
    write(os.path.join(folder, "bad.json"), b'{"model":{"type":"Unigram"}}')
    write(os.path.join(folder, "cut.json"), b'{"model":')
    daemon = serve(box, ["one", "two"], tokenizers=folder)
    equal(len(read(daemon, "text: tokens(org/model, truncation=none)")), 2)
    for pipeline, *words in (
            ("text: tokens", "column 7: tokens needs its tokenizer, as in tokens(bert, max_length=512)"),
            ("text: tokens()", "tokens needs its tokenizer"),
            ("text: tokens(../outside)", "column 14", "no part of which begins with \".\""),
            ("text: tokens(/etc/passwd)", "column 14"),
            ("text: tokens(org/../../outside)", "column 14"),
            ("text: tokens(other, max_length=8)", "column 14: there is no tokenizer other: neither other.json nor other/tokenizer.json is in"),
            ("text: tokens(folder, max_length=8)", "is not a file of at most"),
            ("text: tokens(bad, max_length=8)", "column 14", "bad.json: model: the type \"Unigram\" is not supported; supported: BPE, WordPiece"),
            ("text: tokens(cut, max_length=8)", "column 14", "cut.json: byte 9"),
            ("text: tokens(org/model)", "tokens(org/model) does not say what becomes of long texts: write max_length=N",
             "truncation=none"),
            ("text: tokens(org/model, truncation=left)", "does not say what becomes of long texts"),
            ("text: tokens(org/model, max_length=2)", "2 special tokens leave no room for the text"),
            ("text: tokens(org/model, max_length=0)", "max_length: \"0\" is not allowed; expected a whole number from 1"),
            ("text: tokens(org/model, max_length=8, stride=6, window=random)", "a window has 6 tokens of the text, stride must be less"),
            ("text: tokens(org/model, max_length=8, stride=6)", "is for window=random"),
            ("text: tokens(org/model, truncation=none, window=random)", "needs truncation=right or left"),
            ("text: tokens(org/model, truncation=middle)", "expected right, left or none"),
            ("text: tokens(org/model, speed=1)", "has no argument \"speed\"; it has tokenizer, max_length,"),
            ("text: tokens(org/model, max_length=8) to(float32)", "expected to(int32), to(int64)"),
            ("text: tokens(org/model, max_length=8, digest=0123456789abcdef)", "the file has changed"),
            ("label: tokens(org/model, max_length=8)", "field label is not text")):
        refused = daemon.dlctl("read", "d", "--pipeline", pipeline)
        equal(refused.returncode, 1, pipeline)
        contains(refused.stderr, *words)
    contains(daemon.dlctl("status").stdout, "tokenizers")


def mds_of_json(box):
    sample = struct.pack("<I", 8) + b'{"a": 1}'
    header = b"{}"
    begin = 4 + 4 * 2 + len(header)
    content = struct.pack("<3I", 1, begin, begin + len(sample)) + header + sample
    write(box.path("mds", "s.mds"), content)
    shard = {"column_encodings": ["json"], "column_names": ["messages"], "column_sizes": [None], "compression": None, "format": "mds",
             "hashes": [], "raw_data": {"basename": "s.mds", "bytes": len(content), "hashes": {}}, "samples": 1,
             "size_limit": 1 << 26, "version": 2, "zip_data": None}
    write(box.path("mds", "index.json"), json.dumps({"version": 2, "shards": [shard]}).encode())
    return {"path": box.path("mds"), "format": "mds"}


@case("no model learns brackets by accident: JSON that is not a string has no tokens, whether the column or a member is such")
def _(box):
    rows = [{"messages": [{"role": "user", "content": "one"}], "raw": "one", "text": "one"},
            {"messages": [], "raw": "two", "text": "two"}]
    write(box.path("d.jsonl"), "".join(json.dumps(row) + "\n" for row in rows).encode())
    daemon = box.daemon({"d": {"path": box.path("d.jsonl"), "format": "jsonl", "raw": "raw"},
                         "m": mds_of_json(box),
                         "renamed": {"path": box.path("d.jsonl"), "format": "jsonl", "fields": "text = messages"}}, tokenizers=VECTORS)
    for dataset, pipeline in (("d", "messages: tokens(bert, max_length=8)"), ("d", "messages: text tokens(bert, max_length=8)"),
                              ("d", "raw: tokens(bert, max_length=8)"), ("m", "messages: tokens(bert, max_length=8)"),
                              ("renamed", "text: tokens(bert, max_length=8)")):
        daemon.refused(dataset, "is JSON", "json(PATH)", "column of its own", pipeline=pipeline)
    equal(daemon.read("d", pipeline="raw: json tokens(bert, max_length=8)", shuffle=False)[0]["fields"]["raw"]["shape"], [5], "a string")
    daemon.refused("d", "sample 0", "an object", "tokens are made of strings", shuffle=False,
                   pipeline="messages: json([0]) text tokens(bert, max_length=8)")
    lines = daemon.read("d", pipeline="messages: json([0].content) tokens(bert, max_length=8)", shuffle=False)
    equal([line["fields"]["messages"] and line["fields"]["messages"]["shape"] for line in lines], [[5], None], "a member that is absent")


@case("how many tokens a text becomes is not known before it is read: without a column of lengths pack is refused with what to write")
def _(box):
    daemon = serve(box, ["one", "one two"])
    daemon.refused("d", "pack", 'field text', "column", "text=", pipeline="text: tokens(bert, max_length=8) pack(16)")
    write(box.path("lengths.txt"), b"5\n8\n")
    lines = daemon.read("d", pipeline="text: tokens(bert, max_length=8) pack(16)", column=f"text={box.path('lengths.txt')}", batch=1)
    equal(len(lines), 2, "samples")


@case("a tokenizer that is replaced is read again by the next job, ranks of one job must have the same, and a reload changes the folder")
def _(box):
    folder = box.path("tokenizers")
    os.makedirs(folder)
    shutil.copy(os.path.join(VECTORS, "bert.json"), os.path.join(folder, "t.json"))
    daemon = serve(box, tokenizers=folder)
    equal(read(daemon, "text: tokens(t, truncation=none)"), arrays(IDS["bert"]))
    of_a_job = dict(pipeline="text: tokens(t, truncation=none)", job="j", world=2, batch=4, epochs=1000000)
    held = daemon.reader("d", rank=0, **of_a_job)
    held.wait_lines(1)
    shutil.copy(os.path.join(VECTORS, "gpt2.json"), os.path.join(folder, "new"))
    os.rename(os.path.join(folder, "new"), os.path.join(folder, "t.json"))
    equal(read(daemon, "text: tokens(t, truncation=none)"), arrays(IDS["gpt2"]), "the new file")
    daemon.refused("d", "pipeline", "digest=", rank=1, **of_a_job)
    held.process.kill()
    held.process.wait()
    daemon.settings["tokenizers"] = VECTORS
    daemon.write_config()
    daemon.signal(signal.SIGHUP)
    within(10, lambda: daemon.dlctl("read", "d", "--pipeline", "text: tokens(qwen, truncation=none)", "--limit", "1").returncode == 0, "the new folder")


if __name__ == "__main__":
    main()
