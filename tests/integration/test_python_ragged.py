#!/usr/bin/env python3
"""Functions of the trainer's own whose results differ in size from sample to sample: collated as fields of the dataset
whose samples do."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, identity_pixels, main, png, write
from pyclient import trainer

N = 33

HELP = """
import os, signal
N = 33
def text_of(sample):
    return "".join(chr(97 + (sample + k) % 26) for k in range(sample * 7 % 40)) + "\\u00e4" * (sample % 3)
def tokens_of(sample):
    return numpy.frombuffer(text_of(sample).encode(), "u1").astype("i4") * 3 + sample
def load(pipeline, functions, batch_size=4, dataset="t", **more):
    return dlclient.Loader(dataset, batch_size=batch_size, pipeline=pipeline, workers=functions, **more)
def tokens(text, sample):
    return text.astype("i4") * 3 + sample
def samples_of(loader, name):
    with loader:
        return {index: (batch[name][i].dtype.name, batch[name][i].shape, batch[name][i].tobytes())
                for batch in loader for i, index in enumerate(batch.indices.tolist())}
def is_damaged(make, *needles):
    try:
        with make as loader:
            for batch in loader:
                pass
    except dlclient.Error as error:
        for needle in needles:
            assert needle in str(error), (needle, str(error))
        return error
    raise AssertionError("no error")
"""


def text_of(sample):
    return "".join(chr(97 + (sample + k) % 26) for k in range(sample * 7 % 40)) + "\u00e4" * (sample % 3)


def daemon_of(box, **more):
    for i in range(N):
        write(box.path(f"pictures/{i:02}.png"), png(40, 32, identity_pixels(i, 40, 32)))
    with open(box.path("t.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"image": f"pictures/{i:02}.png", "text": text_of(i), "y": i}) + "\n"
                        for i in range(N))
    return box.daemon({"t": {"path": box.path("t.jsonl"), "format": "jsonl", "files": "image=image"}}, workers=2, **more)


def run(box, daemon, source, **more):
    import textwrap
    return trainer(box, daemon, HELP + textwrap.dedent(source), seconds=180, **more)


@case("each sample is as long as the function made it: ragged and joined, the same bits with any number of processes")
def _(box):
    run(box, daemon_of(box), """
        wanted = {i: ("int32", tokens_of(i).shape, tokens_of(i).tobytes()) for i in range(N)}
        for ending, shown in (("", ""), (" ragged", " ragged(joined=false)"),
                              (" ragged(joined=true)", " ragged(joined=true)")):
            for n in (1, 3):
                loader = load("text: python(f, dtype=int32, shape=..64)" + ending, {"f": tokens}, n_workers=n)
                assert loader.pipeline == "text: python(f, dtype=int32, shape=..64)" + shown, loader.pipeline
                assert samples_of(loader, "text") == wanted, (ending, n)
        with load("text: python(f, dtype=int32, shape=-1, max=64) ragged(joined=true)", {"f": tokens}, shuffle=False,
                  n_workers=2) as loader:
            assert "shape=..64" in loader.pipeline
            for batch in loader:
                field = batch["text"]
                assert (field.values == numpy.concatenate([tokens_of(i) for i in batch.indices.tolist()])).all()
                assert field.lengths == [len(tokens_of(i)) for i in batch.indices.tolist()]
    """)


@case("results of the other byte order are taken as the numbers that they are, of any size, one size, and whole batches")
def _(box):
    run(box, daemon_of(box), """
        def other(text, sample):
            return tokens(text, sample).astype(">i4")
        wanted = {i: ("int32", tokens_of(i).shape, tokens_of(i).tobytes()) for i in range(N)}
        assert samples_of(load("text: python(f, dtype=int32, shape=..64)", {"f": other}, n_workers=2), "text") == wanted
        def two(y, sample):
            return numpy.array([y, sample], ">i4")
        def of_batch(y, samples):
            return numpy.stack([y, samples], 1).astype(">i4")
        for function, more in ((two, ""), (of_batch, ", batch=true")):
            found = samples_of(load(f"y: python(f, dtype=int32, shape=2{more})", {"f": function}, n_workers=2), "y")
            assert found == {i: ("int32", (2,), numpy.array([i, i], "i4").tobytes()) for i in range(N)}, found
    """)


@case("pad fills what the function did not make: to the longest of the batch, to a length, on the left, cut")
def _(box):
    run(box, daemon_of(box), """
        def check(ending, length_of, most=64, left=False, cut=64):
            text = f"text: python(f, dtype=int32, shape=..{most}) pad({ending})"
            with load(text, {"f": tokens}, n_workers=2, seed=5) as loader:
                n = 0
                for batch in loader:
                    field, mask = batch["text"], batch["text_mask"]
                    rows = [tokens_of(i)[:cut] for i in batch.indices.tolist()]
                    length = length_of(max(map(len, rows)))
                    assert field.shape == mask.shape == (len(rows), length), (field.shape, length)
                    for got, real, row in zip(field, mask, rows):
                        place = slice(length - len(row), None) if left else slice(0, len(row))
                        expected = numpy.full(length, -7, "i4")
                        expected[place] = row
                        assert (got == expected).all() and int(real.sum()) == len(row) and real[place].all()
                        n += 1
                assert n == N
        check("value=-7", lambda n: max(n, 1))
        check("value=-7, multiple=8", lambda n: -(-max(n, 1) // 8) * 8)
        check("value=-7, to=50", lambda n: 50)
        check("value=-7, to=50, side=left", lambda n: 50, left=True)
        check("value=-7, side=left", lambda n: max(n, 1), left=True)
        check("value=-7, max=10, truncate=true", lambda n: max(n, 1), cut=10)
        is_damaged(load("text: python(f, dtype=int32, shape=..64) pad(max=10)", {"f": tokens}, n_workers=1,
                        shuffle=False, on_error="fail"), "python(f): field text: has 18 elements; pad has room for 10")
        with load("text: python(f, dtype=int64, shape=..64) mlm(mask=1, vocab=9) pad", {
                "f": lambda text: text.astype("i8") % 9}, n_workers=3, seed=1) as loader, load(
                "text: python(f, dtype=int64, shape=..64) mlm(mask=1, vocab=9) pad", {
                "f": lambda text: text.astype("i8") % 9}, n_workers=1, seed=1) as other:
            for one, two in zip(loader, other):
                assert all((one[name] == two[name]).all() for name in ("text", "text_labels", "text_mask"))
                assert (one["text_labels"] != -100).any()
    """)


@case("several fields of a part vary, each in its own way, beside some that do not")
def _(box):
    run(box, daemon_of(box), """
        def boxes_of(sample):
            return (numpy.arange(sample % 5 * 4, dtype="f4") + sample).reshape(-1, 4)
        def f(image, text, y, sample):
            image += numpy.uint8(1)
            return {"text": tokens(text, sample), "y": boxes_of(sample)}
        plain = {}
        with dlclient.Loader("t", 4, pipeline="image: center_crop(16)") as loader:
            for batch in loader:
                plain.update((i, image.tobytes()) for i, image in zip(batch.indices.tolist(), batch["image"].copy() + 1))
        base = "image, text, y: center_crop(16) python(f, text=int32[..64], y=float32[..4:4])"
        for n in (1, 3):
            with load(base, {"f": f}, n_workers=n, seed=2) as loader:
                assert loader.pipeline == base, loader.pipeline
                for batch in loader:
                    for i, sample in enumerate(batch.indices.tolist()):
                        assert batch["image"][i].tobytes() == plain[sample]
                        assert (batch["text"][i] == tokens_of(sample)).all()
                        assert batch["y"][i].shape == (sample % 5, 4) and (batch["y"][i] == boxes_of(sample)).all()
            with load(base + " pad(value=-1)", {"f": f}, n_workers=n, seed=2) as loader:
                for batch in loader:
                    samples = batch.indices.tolist()
                    assert batch["image"].shape == (len(samples), 16, 16, 3) and "image_mask" not in batch
                    assert batch["text"].shape[1] == max(1, *(len(tokens_of(i)) for i in samples))
                    for i, sample in enumerate(samples):
                        k = sample % 5
                        assert (batch["y"][i][:k] == boxes_of(sample)).all() and (batch["y"][i][k:] == -1).all()
                        assert batch["y_mask"][i].sum() == k
        with load("image, y: center_crop(16) python(f, y=float32[..4:4]) views(2)", {
                "f": lambda image, y, sample: {"y": boxes_of(sample)}}, n_workers=2) as loader:
            for batch in loader:
                for i, sample in enumerate(batch.indices.tolist()):
                    assert (batch["y"][0][i] == boxes_of(sample)).all() and (batch["y"][1][i] == boxes_of(sample)).all()
    """)


@case("a text becomes a text, a picture one of another size, and features vary in their last dimension")
def _(box):
    run(box, daemon_of(box), """
        def louder(text, sample):
            return bytes(text).decode().upper() + "!" * (sample % 4)
        for n in (1, 3):
            with load("text: python(f, dtype=text, shape=..200)", {"f": louder}, n_workers=n) as loader:
                for batch in loader:
                    assert list(batch["text"]) == [text_of(i).upper() + "!" * (i % 4) for i in batch.indices.tolist()]
        def cut(image, sample):
            return image[:8 + sample % 9, :9 + sample % 4]
        with load("image: center_crop(16) python(f, shape=..16:..16:3) pad(value=9, multiple=4)", {"f": cut}, n_workers=2,
                  shuffle=False) as loader, load("image: center_crop(16)", None, shuffle=False) as plain:
            for batch, whole in zip(loader, plain):
                samples = batch.indices.tolist()
                height, width = max(8 + i % 9 for i in samples), max(9 + i % 4 for i in samples)
                assert batch["image"].shape[1:] == (-(-height // 4) * 4, -(-width // 4) * 4, 3), batch["image"].shape
                for i, sample in enumerate(samples):
                    h, w = 8 + sample % 9, 9 + sample % 4
                    assert (batch["image"][i][:h, :w] == whole["image"][i][:h, :w]).all()
                    assert (batch["image"][i][h:] == 9).all() and (batch["image"][i][:, w:] == 9).all()
                    assert batch["image_mask"][i].sum() == h * w
        def features(text, sample):
            return (numpy.arange(3 * (sample % 6 + 1), dtype="f4") + sample).reshape(3, -1)
        with load("text: python(f, dtype=float32, shape=3:..6) pad(value=-2)", {"f": features}, n_workers=2) as loader:
            for batch in loader:
                for i, sample in enumerate(batch.indices.tolist()):
                    n = sample % 6 + 1
                    assert (batch["text"][i][:, :n] == features(None, sample)).all()
                    assert (batch["text"][i][:, n:] == -2).all()
        with load("text: python(f, dtype=float32, shape=3:..6)", {"f": lambda text: numpy.ones((3, 5), "f4")},
                  n_workers=2) as loader:
            assert all(batch["text"].shape[1:] == (3, 5) for batch in loader)
        is_damaged(load("text: python(f, dtype=float32, shape=3:..6)", {"f": features}, n_workers=1, on_error="fail"),
                   "python(f): field text: dimension 1 has", "in another sample of its batch")
    """)


@case("what is too large, of another dtype or another number of dimensions is the sample's error, and names both")
def _(box):
    run(box, daemon_of(box), """
        def bad(result, *needles, form="dtype=int32, shape=..8"):
            def f(text, sample):
                return result if sample == 5 else numpy.zeros((3, 4)[:1 + form.count(":")], form.split(",")[0][6:])
            with load(f"text: python(f, {form})", {"f": f}, n_workers=1, on_error="skip", shuffle=False) as loader:
                assert sorted(i for batch in loader for i in batch.indices.tolist()) == [i for i in range(N) if i != 5]
            error = is_damaged(load(f"text: python(f, {form})", {"f": f}, n_workers=1, on_error="fail",
                                    shuffle=False), "sample 5", "python(f): ", *needles)
        bad(numpy.zeros(9, "i4"), "what was returned is int32 (9,), and int32[..8] is declared: declare more")
        bad(numpy.zeros(3, "i8"), "is int64 (3,), and int32[..8] is declared: write python(f, dtype=int64")
        bad(numpy.zeros((2, 2), "i4"), "is int32 (2, 2), and int32[..8] is declared")
        bad(numpy.zeros((2, 5), "f4"), "is float32 (2, 5), and float32[..8:4] is declared",
            form="dtype=float32, shape=..8:4")
        bad("text", "is text, and int32[..8] is declared: write dtype=text, or return an array")
        bad(None, "returned None", "return an array of int32[..8]")
        bad(7, "int64 ()")
        with load("text: python(f, dtype=text, shape=..8)", {"f": lambda text, sample: "x" * (sample + 3)},
                  n_workers=2, on_error="skip") as loader:
            assert sorted(i for batch in loader for i in batch.indices.tolist()) == list(range(6))
        is_damaged(load("text: python(f, dtype=text, shape=..8)", {"f": lambda text: "\\ud800"}, n_workers=1,
                        on_error="fail"), "is text that UTF-8 does not have")
        is_damaged(load("text: python(f, dtype=text, shape=..8)", {"f": lambda text: text}, n_workers=1,
                        on_error="fail"), "is a ndarray, and text[..8] is declared: return a str")
    """)


@case("a text that cannot be is refused when the loader opens, and says what to write")
def _(box):
    run(box, daemon_of(box), """
        def no(pipeline, *needles):
            try:
                load(pipeline, {"f": tokens}).close()
            except dlclient.Error as error:
                for needle in needles:
                    assert needle in str(error), (needle, str(error))
            else:
                raise AssertionError(pipeline)
        no("text: python(f, dtype=int32, shape=-1)", "say how many elements it has at most, as in shape=..512")
        no("text: python(f, dtype=int32, shape=5, max=7)", "max= is for a dimension of -1")
        no("text: python(f, dtype=int32, shape=5) pad", "column 39: what python(f) delivers has one shape")
        no("text: python(f, dtype=int32, shape=..5) pack(9)", "pack fills rows before a sample is read")
        no("text: python(f, dtype=text, shape=5)", "is text, whose length varies")
        no("text: python(f, dtype=text)", "is text, whose length varies")
        no("text: python(f, dtype=text, shape=..5) pad", "only numbers can be padded")
        no("image: center_crop(8) python(f, shape=..8:8:3) hflip", "varies in size, and steps after a function are for")
        no("image, y: center_crop(8) python(f, image=float32[..8:8:3]) mixup(alpha=1, num_classes=99)",
           "only what all samples have in one size can be mixed")
        no("text: python(f, dtype=uint8, shape=..2000000000:2000000000)", "is declared larger than a batch may be")
        no("text: python(f, dtype=uint8, shape=..0)", "of 1 to")
        no("text: python(f, dtype=uint8, shape=..)", "..512 is one that varies")
    """)


@case("with decoders in processes of their own the bits are the same, also where what varies is padded")
def _(box):
    run(box, daemon_of(box, isolation="process"), """
        def cut(image, sample):
            return image[:8 + sample % 9, :9 + sample % 4]
        whole = {}
        with load("image: center_crop(16)", None, batch_size=1) as loader:
            whole.update((int(batch.indices[0]), batch["image"][0].copy()) for batch in loader)
        with load("image: decode(max_pixels=2000) python(f, shape=..40:..40:3) pad", {"f": lambda image: image[:, :20]},
                  n_workers=2) as loader:
            assert all(batch["image"].shape[1:] == (32, 20, 3) for batch in loader)
        with load("image: center_crop(16) python(f, shape=..16:..16:3) pad", {"f": cut}, n_workers=2) as loader:
            for batch in loader:
                for i, sample in enumerate(batch.indices.tolist()):
                    h, w = 8 + sample % 9, 9 + sample % 4
                    assert (batch["image"][i][:h, :w] == whole[sample][:h, :w]).all()
        wanted = {i: ("int32", tokens_of(i).shape, tokens_of(i).tobytes()) for i in range(N)}
        assert samples_of(load("text: python(f, dtype=int32, shape=..64)", {"f": tokens}, n_workers=3), "text") == wanted
    """)


@case("kill -9 in the middle of a sample, functions that fail, and two runs that are compared: the same bits")
def _(box):
    run(box, daemon_of(box), """
        import random
        wanted = {i: ("int32", tokens_of(i).shape, tokens_of(i).tobytes()) for i in range(N)}
        flag = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"killed-{os.getpid()}-")
        def f(text, sample, epoch):
            mark = flag + f"{epoch}-{sample}"
            if epoch == 0 and sample % 6 == 2 and not os.path.exists(mark):
                open(mark, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            return tokens(text, sample)
        loader = load("text: python(f, dtype=int32, shape=..64) ragged", {"f": f}, n_workers=3)
        assert samples_of(loader, "text") == wanted
        import glob
        assert len(glob.glob(flag + "*")) == 6
        for path in glob.glob(flag + "*"):
            os.unlink(path)
        def g(text, sample):
            if sample % 4 == 1:
                raise ValueError("no")
            return tokens(text, sample)
        for ending in (" ragged", " ragged(joined=true)"):
            loader = load("text: python(f, dtype=int32, shape=..64)" + ending, {"f": g}, n_workers=3, on_error="skip")
            assert samples_of(loader, "text") == {i: wanted[i] for i in range(N) if i % 4 != 1}
        n = 0
        with load("text: python(f, dtype=int32, shape=..64) pad", {"f": g}, n_workers=3, on_error="substitute"
                  ) as loader:
            for batch in loader:
                for i in range(batch.n_samples):
                    sample = int(batch.indices[i])
                    if batch.substitutes is not None and int(batch.substitutes[i]) >= 0:
                        sample, n = int(batch.substitutes[i]), n + 1
                    assert (batch["text"][i][batch["text_mask"][i]] == tokens_of(sample)).all()
        assert n == 8, n
        assert dlclient.check_steps("t", 24, pipeline="text: python(f, dtype=int32, shape=..64)",
                                    workers={"f": tokens}) == 24
        assert dlclient.check_steps("t", 24, pipeline="text: python(f, dtype=text, shape=..99)",
                                    workers={"f": lambda text: bytes(text).decode()}) == 24
    """)


main()
