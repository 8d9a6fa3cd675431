#!/usr/bin/env python3
"""Packs: rows of one length that several samples share, with positions, segments, labels and cu_seqlens."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, contains, equal, main, write
from pyclient import trainer

N = 120


def length_of(i):
    return 1 + i * i % 23


def serve(box, n=N, **settings):
    """Sample i has the tokens 100 * i, 100 * i + 1, ..."""
    write(box.path("t.jsonl"), "".join(json.dumps({"tokens": [100 * i + k for k in range(length_of(i))], "n": i}) + "\n"
                                       for i in range(n)).encode())
    write(box.path("lengths.txt"), "".join(f"{length_of(i)}\n" for i in range(n)).encode())
    return box.daemon({"t": {"path": box.path("t.jsonl"), "format": "jsonl"}}, **settings)


CHECK = """
    import numpy as np
    lengths = np.array([1 + i * i % 23 for i in range(120)])

    def check(batch, labels, seen):
        tokens, cu = batch["tokens"].reshape(-1), batch["cu_seqlens"]
        positions, segments = batch["tokens_positions"].reshape(-1), batch["tokens_segments"].reshape(-1)
        assert cu.dtype == np.int32 and cu[0] == 0 and cu[-1] == tokens.size and (np.diff(cu) > 0).all(), cu
        assert len(batch["n"]) == len(batch.indices)
        for begin, end in zip(cu, cu[1:]):
            piece = tokens[begin:end]
            assert (segments[begin:end] == segments[begin]).all()
            if segments[begin] == 0:
                assert (piece == -7).all() and (positions[begin:end] == 0).all()
                assert labels is None or (batch["tokens_labels"].reshape(-1)[begin:end] == -100).all()
                continue
            assert (piece == piece[0] + np.arange(end - begin)).all() and (positions[begin:end] == np.arange(end - begin)).all()
            seen[piece[0] // 100] = seen.get(piece[0] // 100, 0) + end - begin
            if labels:
                same = labels == "same"
                expected = np.concatenate([[-100], piece[1:]] if same else [piece[1:], [-100]])
                assert (batch["tokens_labels"].reshape(-1)[begin:end] == expected).all()
"""


@case("each strategy puts all elements of all samples into rows, with positions, segments, labels and cu_seqlens")
def _(box):
    trainer(box, serve(box), CHECK + """
    for text, labels, whole in (("pack(32, value=-7)", None, True), ("pack(size=32, labels=same, value=-7)", "same", True),
                                ("pack(24, strategy=wrapped, labels=shifted, value=-7)", "shifted", True),
                                ("pack(40, strategy=first_fit, bins=4, value=-7)", None, True),
                                ("pack(10, long=split, value=-7)", None, True), ("pack(10, long=skip, value=-7)", None, False)):
        with dlclient.Loader("t", batch_size=3, pipeline=f"tokens: to(int32) {text}; n", columns={"tokens": lengths}) as loader:
            for epoch in range(2):
                seen = {}
                batches = [check(batch, labels, seen) for batch in loader]
                if whole:
                    assert all(seen.get(i) == lengths[i] for i in range(120)), (text, seen)
                else:
                    assert seen == {i: lengths[i] for i in range(120) if lengths[i] <= 10}, (text, seen)
    """)


@case("two ranks share the packs of an epoch, and a state continues at another world size")
def _(box):
    trainer(box, serve(box), CHECK + """
    options = dict(batch_size=1, pipeline="tokens: pack(32, value=-7)", columns={"tokens": lengths}, partition="exact", seed=5)
    seen = {}
    with dlclient.Loader("t", ranks=[0, 1], **options) as loader:
        for step, pair in enumerate(loader):
            for batch in pair:
                if batch is not None:
                    for i in batch.indices: seen[int(i)] = seen.get(int(i), 0) + 1
            if step == 4:
                state = loader.state_dict()
                break
    with dlclient.Loader("t", state=state, **options) as loader:
        for batch in loader:
            for i in batch.indices: seen[int(i)] = seen.get(int(i), 0) + 1
    assert seen == {i: 1 for i in range(120)}, seen
    """)


@case("a sample that is not as long as its column says is damage with both numbers; skipped, it leaves a gap")
def _(box):
    daemon = serve(box)
    wrong = [length_of(i) for i in range(N)]
    wrong[17] += 1
    write(box.path("wrong.txt"), "".join(f"{n}\n" for n in wrong).encode())
    terms = {"pipeline": "tokens: pack(32)", "column": f"tokens={box.path('wrong.txt')}", "batch": 2}
    reader = daemon.reader("t", **terms)
    status, _ = reader.finish(30)
    equal(status, 1, "exit status")
    contains(reader.errors(), "sample 17", f"has {length_of(17)} elements", f"but {length_of(17) + 1}")
    lines = daemon.read("t", on_error="skip", **terms)
    equal(sorted(line["index"] for line in lines), [i for i in range(N) if i != 17], "samples")
    equal(all(line["fields"]["tokens"]["shape"] == [length_of(line["index"])] for line in lines), True, "shapes")


@case("what cannot be packed is refused with a sentence")
def _(box):
    daemon = serve(box)
    column = f"tokens={box.path('lengths.txt')}"
    for text, words, options in (
            ("tokens: pack", ("pack(4096)",), {}),
            ("tokens: pack(0)", ("1",), {}),
            ("tokens: pack(16)", ("tokens", "column"), {}),
            ("tokens: pack(16, strategy=best)", ("bfd, wrapped or first_fit",), {"column": column}),
            ("tokens: pack(16, long=error)", ("sample", "elements", "16"), {"column": column}),
            ("n: pack(16)", ("dimensions",), {}),
            ("tokens: pack(16)", ("substitute", "skip"), {"column": column, "on_error": "substitute"}),
            ("tokens: pack(16)", ("cannot follow",), {"column": column, "sampler": "max_tokens(column=tokens, tokens=99)"}),
            ("tokens: pack(16) to(int32)", ("to",), {"column": column})):
        reader = daemon.reader("t", pipeline=text, **options)
        status, lines = reader.finish(30)
        equal((status, len(lines)), (1, 0), text)
        contains(reader.errors(), *words)


@case("a run with packs goes on after a restart of the daemon")
def _(box):
    daemon = serve(box)
    terms = {"pipeline": "tokens: pack(32)", "column": f"tokens={box.path('lengths.txt')}", "batch": 1, "seed": 3}
    expected = daemon.read("t", **terms)
    reader = daemon.reader("t", on_restart="wait", slots=2, delay_ms=60, **terms)
    reader.wait_lines(20)
    daemon.kill()
    daemon.start()
    equal(reader.good(60), expected, "lines")


main()
