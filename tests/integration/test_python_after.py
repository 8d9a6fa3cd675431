#!/usr/bin/env python3
"""What comes after a function of the trainer's: steps of the daemon's own, for the pictures that it delivers, and mixing.

What is expected is made of the pictures as they are before the function, with NumPy and torch."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, contains, equal, main
from pyclient import trainer

HELP = """
def load(pipeline, workers=None, batch_size=4, **more):
    return dlclient.Loader("p", batch_size=batch_size, pipeline=pipeline, workers=workers, copy=True, **more)
def samples(loader, name="image"):
    found = {}
    for batch in loader:
        for index, array in zip(batch.indices.tolist(), batch[name]):
            found[index] = numpy.array(array)
    loader.close()
    return found
def invert(image):
    image[...] = 255 - image
def same(one, other):
    assert sorted(one) == sorted(other)
    for index in one:
        a, b = one[index], other[index]
        assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, a.shape, b.dtype, b.shape)
        assert a.tobytes() == b.tobytes(), (index, a.ravel()[:8], b.ravel()[:8])
def formed(array, mean=(0.485, 0.456, 0.406), deviation=(0.229, 0.224, 0.225)):
    array = array.astype(numpy.float32) / numpy.float32(255)
    return ((array - numpy.array(mean, numpy.float32)) / numpy.array(deviation, numpy.float32)).transpose(2, 0, 1)
"""


def run(box, source, n=33, **more):
    import textwrap
    daemon = box.daemon({"p": box.folder_of_pictures("p", n, width=40, height=32)}, workers=2)
    return trainer(box, daemon, HELP + textwrap.dedent(source), **more)


@case("steps after a function do to its pictures what they do, with one process and with three")
def _(box):
    run(box, """
        before = samples(load("random_resized_crop(16) hflip(0.5)"))
        wanted = {index: formed(255 - array) for index, array in before.items()}
        form = "to(float32) normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)) layout(nchw)"
        for n in (1, 3):
            same(samples(load(f"random_resized_crop(16) hflip(0.5) python(invert) {form}", {"invert": invert}, n_workers=n)),
                 wanted)
        same(samples(load("random_resized_crop(16) hflip(0.5) python(invert) center_crop(8)", {"invert": invert})),
             {index: 255 - array[4:12, 4:12] for index, array in before.items()})
        same(samples(load("random_resized_crop(16) hflip(0.5) python(invert) hflip(1) vflip(1)", {"invert": invert})),
             {index: 255 - array[::-1, ::-1] for index, array in before.items()})
        same(samples(load("random_resized_crop(16) hflip(0.5) python(invert) hflip(0)", {"invert": invert})),
             {index: 255 - array for index, array in before.items()})
    """, seconds=120)


@case("what a function returns in another form, and what it makes of stored bytes, gets the steps after it")
def _(box):
    run(box, """
        def twice(image):
            return image.repeat(2, axis=0).repeat(2, axis=1)
        before = samples(load("center_crop(16)"))
        same(samples(load("center_crop(16) python(twice, shape=32:32:3) center_crop(10) to(float32) layout(nchw)",
                          {"twice": twice})),
             {index: (array.repeat(2, axis=0).repeat(2, axis=1)[11:21, 11:21].astype(numpy.float32) / numpy.float32(255))
              .transpose(2, 0, 1) for index, array in before.items()})
        def first(raw):
            return numpy.resize(raw[:48], (4, 4, 3))
        loader = load("image: raw python(first, dtype=uint8, shape=4:4:3) vflip(1) to(float32)", {"first": first})
        for array in samples(loader).values():
            assert array.dtype == numpy.float32 and (array[3, 0] * 255).round().tolist() == [137, 80, 78]
        before = samples(load("decode(mode=L) center_crop(16)"))
        assert before[0].shape == (16, 16, 1)
        same(samples(load("decode(mode=L) center_crop(16) python(invert) vflip(1) to(float32)", {"invert": invert})),
             {index: (255 - array)[::-1].astype(numpy.float32) / numpy.float32(255) for index, array in before.items()})
    """, seconds=120)


@case("steps after a function draw apart from those before it, and the same in every run and view")
def _(box):
    found = run(box, """
        one = samples(load("hflip(0.5) resize(16:16) python(invert) hflip(0.5)", {"invert": invert}))
        two = samples(load("hflip(0.5) resize(16:16) python(invert) hflip(0.5)", {"invert": invert}, n_workers=2))
        same(one, two)
        before, plain = samples(load("hflip(0.5) resize(16:16)")), samples(load("resize(16:16)"))
        first = [(before[index] != plain[index]).any() for index in plain]
        second = [((255 - before[index]) != one[index]).any() for index in plain]
        out([[bool(x) for x in each] for each in (first, second)])
        with load("resize(16:16) python(invert) random_crop(8) views(2)", {"invert": invert}) as loader:
            batch = next(iter(loader))
            assert (batch["image"][0] != batch["image"][1]).any()
        with load("resize(16:16) python(invert) five_crop(8)", {"invert": invert}) as loader:
            batch = next(iter(loader))
            for k, (y, x) in enumerate(((0, 0), (0, 8), (8, 0), (8, 8), (4, 4))):
                for index, array in zip(batch.indices.tolist(), batch["image"][k]):
                    assert (array == 255 - plain[index][y:y + 8, x:x + 8]).all(), k
    """, seconds=120)
    first, second = found[0]
    equal(first != second and any(second) and not all(second), True, "another coin is thrown after the function")


@case("samples are mixed when all functions of a batch have come back: with the bits of mixing alone")
def _(box):
    run(box, """
        def nothing(image, label):
            time.sleep(0.001 * (label.argmax() % 2))
        mix = "mix(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=4, label_smoothing=0.1)"
        form = "to(float32) normalize((0.5, 0.5, 0.5), (0.25, 0.25, 0.25)) layout(nchw)"
        head = "image, label: random_resized_crop(16)"
        for tail in (mix, f"{form} {mix}"):
            def both(loader):
                return [(batch.indices.tolist(), batch["image"].tobytes(), batch["label"].tobytes()) for batch in loader]
            with load(f"{head} {tail}") as loader:
                wanted = both(loader)
            for n in (1, 3):
                with load(f"{head} python(nothing) {tail}", {"nothing": nothing}, n_workers=n) as loader:
                    assert both(loader) == wanted, (tail, n)
        before = samples(load("resize(16:16)"))
        with load("resize(16:16) python(invert) mixup(alpha=0.5, num_classes=4)", {"invert": invert}) as loader:
            assert next(iter(loader))["image"].dtype == numpy.uint8
        def planes(image):
            return {"image": image.transpose(2, 0, 1).astype(numpy.float32)}
        with load("image, label: resize(16:16) python(planes, image=float32[3:16:16]) cutmix(alpha=1.0, num_classes=4)",
                  {"planes": planes}) as loader:
            batch = next(iter(loader))
            assert batch["image"].shape == (4, 3, 16, 16)
            alone = {index: planes(array)["image"] for index, array in before.items()}
            for index, array in zip(batch.indices.tolist(), batch["image"]):
                assert (array == alone[index]).mean() > 0
    """, seconds=120)


@case("a sample whose function fails, or whose process dies, is not mixed nor finished, and the others are")
def _(box):
    found = run(box, """
        def bad(image, sample):
            if sample == 7:
                raise ValueError("no")
            if sample == 9 and not os.path.exists(os.environ["ONCE"]):
                open(os.environ["ONCE"], "w").close()
                os._exit(1)
            image[...] = 255 - image
        before = samples(load("resize(16:16)"))
        found = samples(load("resize(16:16) python(bad) to(float32)", {"bad": bad}, n_workers=2, on_error="skip"))
        assert sorted(found) == [i for i in range(33) if i != 7]
        same(found, {index: (255 - before[index]).astype(numpy.float32) / numpy.float32(255) for index in found})
    """, seconds=120, ONCE=box.path("once"))
    equal(found, [], "output")


@case("a process that writes into its samples for ever harms nothing but their pixels")
def _(box):
    run(box, """
        kept = []
        def wild(image):
            kept.append(image)
            if len(kept) == 1:
                def scribble():
                    rng = numpy.random.default_rng(1)
                    while True:
                        for array in kept[-8:]:
                            array[...] = rng.integers(0, 256, array.shape, dtype=numpy.uint8)
                threading.Thread(target=scribble, daemon=True).start()
        steps = "color_jitter(0.5, 0.5, 0.5, 0.2) equalize(0.5) autocontrast(0.5) gaussian_blur(5) resize(24:24) to(float16)"
        n = 0
        with load(f"resize(16:16) python(wild) {steps}", {"wild": wild}, n_workers=2) as loader:
            for epoch in range(3):
                loader.set_epoch(epoch)
                for batch in loader:
                    assert batch["image"].shape[1:] == (24, 24, 3) and numpy.isfinite(batch["image"]).all()
                    n += len(batch.indices)
        assert n == 99
    """, seconds=120)


@case("what cannot come after a function is refused, with what to write")
def _(box):
    found = run(box, """
        f = lambda image: None
        def no(pipeline, *words):
            refused(dlclient.OptionError, lambda: load(pipeline, {"f": f}), *words)
        no("center_crop(8) python(f) hfilp(0.5)", "column 26", "hflip")
        no("center_crop(8) python(f) decode", "column 26", "decode")
        no("center_crop(8) python(f) raw", "column 26", "raw")
        no("center_crop(8) python(f) sanitize", "sanitize drops boxes", "before the function")
        no("center_crop(8) python(f) random_iou_crop center_crop(4)", "random_iou_crop looks at boxes", "before the function")
        no("center_crop(8) python(f) python(f)", "column 26", "twice")
        no("center_crop(8) python(f)hflip", "column 25", "a blank")
        no("center_crop(8) to(float32) python(f) normalize", "are for pictures, uint8 height x width x 3")
        no("center_crop(8) python(f, dtype=float32) to(float16)", "are for pictures, uint8 height x width x 3")
        no("label: python(f) to(float32)", "and it delivers none")
        no("center_crop(8) python(f) random_shortest_size(8:16, 32)", "pictures of several sizes")
        no("image: center_crop(8) python(f) pad", "has one shape and is stacked")
        no("image: center_crop(8) python(f, dtype=float32, shape=8:8) cutmix(alpha=1.0)", "a box is cut out of pictures")
        loader = load("center_crop(8)  python(f)  layout( nchw )  views(2)", {"f": f})
        out(loader.pipeline)
        loader.close()
    """, seconds=120)
    equal(found[0], "center_crop(8) python(f) layout(nchw) views(2)", "the normal text")
    contains(found[0], "python")


main()
