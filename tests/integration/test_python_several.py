#!/usr/bin/env python3
"""A function of the trainer's own that gets several fields of a sample: by the names of its parameters, in one call."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, identity_pixels, main, png, write
from pyclient import trainer

HELP = """
def load(pipeline, workers=None, batch_size=4, **more):
    return dlclient.Loader("p", batch_size=batch_size, pipeline=pipeline, workers=workers, **more)
def taken(loader, names):
    with loader:
        return {int(index): tuple((str(batch[name].dtype), batch[name][i].tobytes()) for name in names)
                for batch in loader for i, index in enumerate(batch.indices.tolist())}
"""


def pictures(box, n=33):
    return box.daemon({"p": box.folder_of_pictures("p", n, width=40, height=32)}, workers=2)


def run(box, daemon, source, **more):
    import textwrap
    return trainer(box, daemon, HELP + textwrap.dedent(source), **more)


@case("fields are given by the names of parameters, and changed in place, or returned as a tuple or a dict")
def _(box):
    run(box, pictures(box), """
        CROP = "image, label: random_resized_crop(16) hflip(0.5)"
        plain = taken(load(CROP.replace("image, label", "image") + "; label", seed=3), ["image", "label"])
        wanted = {}
        for sample, ((_, pixels), (_, label)) in plain.items():
            label = int(numpy.frombuffer(label, "i8")[0])
            draw = dlclient.sample_rng(3, 0, sample).integers(0, 9)
            pixels = numpy.frombuffer(pixels, "u1") + numpy.uint8(label) + numpy.uint8(draw)
            wanted[sample] = (("uint8", pixels.tobytes()), ("int64", numpy.int64(100 + label + sample).tobytes()))
        def in_place(image, label, rng, sample):
            image += numpy.uint8(int(label)) + numpy.uint8(rng.integers(0, 9))
            label[...] = 100 + int(label) + sample
        def as_tuple(label, rng, image, sample):
            return label + 100 + sample, image + numpy.uint8(int(label)) + numpy.uint8(rng.integers(0, 9))
        def as_dict(sample, rng, **fields):
            image, label = fields["image"], fields["label"]
            image += numpy.uint8(int(label)) + numpy.uint8(rng.integers(0, 9))
            return {"label": numpy.int64(100 + int(label) + sample), "image": None}
        for function in (in_place, as_tuple, as_dict):
            for n in (1, 3):
                found = taken(load(CROP + " python(f)", {"f": function}, n_workers=n, seed=3), ["image", "label"])
                assert found == wanted, (function, n)
        def of_one(image, other=5):
            assert other == 5
            image[...] = 7
        found = taken(load(CROP + " python(f)", {"f": of_one}, n_workers=2, seed=3), ["image", "label"])
        assert all(both[0][1] == bytes([7]) * len(both[0][1]) for both in found.values())
        assert all(found[i][1] == plain[i][1] for i in plain), "what it does not take stays as it is"
    """, seconds=120)


@case("what is delivered has its own dtype and shape for each field, in each view, and draws that both fields share")
def _(box):
    run(box, pictures(box), """
        def f(image, y, rng):
            return {"image": (image.transpose(2, 0, 1) / 255).astype("f4"), "y": rng.random(3)}
        text = "image, y=label: center_crop(8) python(f, image=float32[3:8:8], y=float64[3]) views(2); label"
        with load(text, {"f": f}, n_workers=2, seed=1, copy=True) as loader:
            assert loader.pipeline == text, loader.pipeline
            batches = list(loader)
        for batch in batches:
            image, y = batch["image"], batch["y"]
            assert isinstance(image, list) and image[0].shape[1:] == (3, 8, 8) and image[1].dtype == numpy.float32
            for i, sample in enumerate(batch.indices.tolist()):
                assert (y[0][i] == dlclient.sample_rng(1, 0, sample).random(3)).all()
                assert not (y[0][i] == y[1][i]).all()
    """, seconds=120)


@case("boxes and texts beside a picture may differ in length before the function")
def _(box):
    for i in range(6):
        write(box.path(f"c/{i}.png"), png(40, 32, identity_pixels(i, 40, 32)))
    with open(box.path("a.json"), "w") as file:
        json.dump({"categories": [{"id": 1, "name": "cat"}],
                   "images": [{"id": i, "file_name": f"{i}.png", "width": 40, "height": 32} for i in range(6)],
                   "annotations": [{"id": 10 * i + k, "image_id": i, "category_id": 1, "bbox": [k, 1, 10, 10], "area": 100,
                                    "iscrowd": 0} for i in range(6) for k in range(i)]}, file)
    with open(box.path("t.jsonl"), "w") as file:
        file.writelines(json.dumps({"image": f"c/{i}.png", "caption": "\u00e4" * i}) + "\n" for i in range(6))
    daemon = box.daemon({"p": {"path": box.path("c"), "format": "coco", "annotations": box.path("a.json")},
                         "t": {"path": box.path("t.jsonl"), "format": "jsonl", "files": "image=image"}})
    run(box, daemon, """
        def flip(image, boxes):
            n, padded = min(len(boxes), 4), numpy.zeros((4, 4), numpy.float32)
            padded[:n] = boxes[:n]
            image[...] = image[:, ::-1].copy()
            padded[:n, [0, 2]] = 32 - padded[:n, [2, 0]]
            return {"boxes": padded}
        with load("image, boxes: center_crop(32) python(f, boxes=float32[4:4])", {"f": flip}, shuffle=False,
                  batch_size=6) as loader, load("image, boxes: center_crop(32)", shuffle=False, batch_size=6) as plain:
            flipped, batch = next(iter(loader)), next(iter(plain))
            assert (flipped["image"] == batch["image"][:, :, ::-1]).all()
            for i in range(6):
                n = min(i, 4)
                assert (flipped["boxes"][i][:n, 0] == 32 - batch["boxes"][i][:n, 2]).all()
                assert (flipped["boxes"][i][n:] == 0).all()
        def tokens(image, caption):
            image[...] = 0
            return {"caption": numpy.array([len(caption), len(caption.tobytes().decode())])}
        with dlclient.Loader("t", 6, shuffle=False, workers={"f": tokens},
                             pipeline="image, caption: center_crop(8) python(f, caption=int64[2])") as loader:
            assert next(iter(loader))["caption"].tolist() == [[2 * i, i] for i in range(6)]
    """, seconds=120)


@case("parameters and results that do not fit are errors that name the sample, the field and what to write")
def _(box):
    run(box, pictures(box), """
        def attempt(function, *words, text="image, label: center_crop(8) python(f)"):
            with load(text, {"f": function}, n_workers=1) as loader:
                refused(dlclient.SampleDamaged, lambda: list(loader), "sample ", "python(f): ", *words)
        attempt(lambda array, label: None, "it has the parameter array", "the part names image, label",
                'as in "array=image, label: ..."')
        attempt(lambda image, /, label: None, "it has the parameter image")
        attempt(max, "parameters", "the part names image, label")
        attempt(lambda image, sample: None, "a field is called sample", '"image, its_sample=sample: ..."',
                text="image, sample=label: center_crop(8) python(f)")
        attempt(lambda image, label: image, "returned a ndarray, and gets image, label: return a tuple of as many",
                'or a dict such as {"image": array}')
        attempt(lambda image, label: (image,), "returned 1 results, and gets image, label")
        attempt(lambda image, label: {"imago": image}, "returned a dict with 'imago', and the part names image, label")
        attempt(lambda image, label: {"label": 5.0}, "field label: returned float64 (), and int64 () is declared",
                "write python(f, label=float64[])")
        attempt(lambda image, label: {"image": image[:4]}, "field image: returned uint8 (4, 8, 3)",
                "write python(f, image=uint8[4:8:3])")
        attempt(lambda image: None, "field label: it was not returned", "return uint8[3]",
                text="image, label: center_crop(8) python(f, label=uint8[3])")
        attempt(lambda image, label: {"label": label}, "field label: its input was returned", "return uint8[3]",
                text="image, label: center_crop(8) python(f, label=uint8[3])")
        attempt(lambda image, label: 1 / 0, "ZeroDivisionError: division by zero, at ", "in <lambda>")
        def attempt(text, *words):
            refused(dlclient.OptionError, lambda: load(text, {"f": print}), *words)
        attempt("image, label: center_crop(8) python(f, dtype=float32)", "dtype= and shape= are for a part that names one")
        attempt("image, label: center_crop(8) python(f, labl=float32)", '"labl" is not the name of a field', "did you mean \\"label\\"")
        attempt("image, label: decode(max_pixels=2000) python(f)", "image has samples of several shapes",
                "image=uint8[224:224:3]")
    """, seconds=120)


@case("fields may be exchanged, and one may be made of the array of another, for samples and for batches")
def _(box):
    run(box, box.daemon({"p": {"path": "/", "format": "numbers", "count": "33"}}, workers=2), """
        def fill(x, y, samples):
            x[...], y[...] = 2 * samples, 3 * samples + 1
        def exchanged(x, y, sample):
            fill(x, y, sample)
            return y, x
        def in_a_dict(x, y, sample):
            fill(x, y, sample)
            return {"y": x.reshape(()), "x": y.view()}
        def of_batch(x, y, samples):
            fill(x, y, samples)
            return {"x": y, "y": x[::-1]}
        def to_another(x, y, sample):
            fill(x, y, sample)
            return numpy.int64(3 * sample + 1), x.reshape(1)
        for function, more in ((exchanged, ""), (in_a_dict, ""), (of_batch, ", batch=true"), (to_another, ", y=int64[1]")):
            with load(f"x=index, y=index: python(f{more})", {"f": function}, n_workers=2, copy=True) as loader:
                for batch in loader:
                    samples = batch.indices
                    x, y = batch["x"].tolist(), batch["y"].reshape(-1).tolist()
                    assert x == (3 * samples + 1).tolist(), (function, x)
                    assert y == (2 * (samples[::-1] if function is of_batch else samples)).tolist(), (function, y)
    """)


@case("a process that ends over a sample of two fields loses nothing: both are made again")
def _(box):
    run(box, pictures(box), """
        import signal
        CROP = "image, label: random_resized_crop(16)"
        wanted = taken(load(CROP.replace("image, label", "image") + "; label", seed=3), ["image", "label"])
        wanted = {sample: (("uint8", bytes(255 - byte for byte in image[1])),
                           (label[0], (numpy.frombuffer(label[1], "i8") + 1).tobytes()))
                  for sample, (image, label) in wanted.items()}
        mark = os.path.join(os.environ["TMPDIR"], "died")
        def f(image, label, sample):
            image[...] = 255 - image
            if sample % 5 == 0 and not os.path.exists(mark + str(sample)):
                open(mark + str(sample), "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            label += 1
        assert taken(load(CROP + " python(f)", {"f": f}, n_workers=2, seed=3), ["image", "label"]) == wanted
        for sample in range(0, 33, 5):
            os.unlink(mark + str(sample))
    """, seconds=120)


main()
