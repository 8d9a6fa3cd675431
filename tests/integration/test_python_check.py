#!/usr/bin/env python3
"""dlclient.check_steps(): compares two runs of a pipeline with functions of the trainer's own, and finds those that do not depend
on their sample alone."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, main
from private import Home
from pyclient import trainer


def run(box, source):
    import textwrap
    daemon = box.daemon({"p": box.folder_of_pictures("p", 33, width=40, height=32)}, workers=2)
    trainer(box, daemon, textwrap.dedent(source), seconds=120)


@case("what depends on its sample alone is equal: with rng, seeded generators, several fields, steps after it, and mixing")
def _(box):
    run(box, """
        def noise(image, rng):
            image += rng.integers(0, 9, image.shape, dtype=numpy.uint8)
        def old(image):
            image[0] = numpy.random.randint(256)
        def both(image, label):
            image += label.astype(numpy.uint8)
        crop = "random_resized_crop(8)"
        check = dlclient.check_steps
        assert check("p", pipeline=f"{crop} python(noise) hflip(0.5) to(float32)", workers={"noise": noise}) == 33
        assert check("p", 20, pipeline=f"{crop} python(old)", workers={"old": old}, n_workers=2, epoch=3, seed=4) == 20
        assert check("p", 1, pipeline=f"image, label: {crop} python(both)", workers={"both": both}) == 1
        assert check("p", pipeline=f"{crop} python(noise) mixup(alpha=1.0, num_classes=4)", workers={"noise": noise}) == 33
        assert check("p", pipeline="image: raw; label") == 33
        assert check("p", pipeline=f"image: {crop} python(noise) views(2)", workers={"noise": noise}, shuffle=False) == 33
    """)
    trainer(box, None, """class Squares:
    def __len__(self):
        return 21
    def __getitem__(self, i):
        return numpy.full(4, i * i), i
assert dlclient.check_steps(dlclient.from_dataset(Squares())) == 21
assert dlclient.check_steps(dlclient.from_dataset(Squares()), drop_last=True) == 20
class Holes(Squares):
    def __getitem__(self, i):
        return 1 // (i % 5 - 1), i
assert dlclient.check_steps(dlclient.from_dataset(Holes()), on_error="skip") == 17
refused(dlclient.OptionError, lambda: dlclient.check_steps(dlclient.from_dataset(Squares()), batch_size=None), "batch_size")
""", **Home(box).variables())


@case("a function that counts its calls, or draws from nowhere, is found, with sample and field")
def _(box):
    run(box, """
        calls = []
        def counts(image):
            calls.append(1)
            image[...] = len(calls)
        def anywhere(image):
            image[...] = os.urandom(1)[0]
        def at_seven(image, sample):
            if sample == 7:
                image[...] = os.urandom(3)[0]
                image[0, 0] = list(os.urandom(3))
        for function in (counts, anywhere):
            refused(AssertionError, lambda: dlclient.check_steps("p", pipeline="center_crop(8) python(f)",
                    workers={"f": function}), "samples differ between two runs", ": field image", "more")
        refused(AssertionError, lambda: dlclient.check_steps("p", pipeline="center_crop(8) python(f)",
                workers={"f": at_seven}), "1 of 33 samples differ", "sample 7: field image")
        refused(dlclient.OptionError, lambda: dlclient.check_steps("p", rank=1), "check_steps: rank is set by")
        refused(dlclient.OptionError, lambda: dlclient.check_steps("p", 0), "n_samples: 0; expected a number from 1 on")
    """)
    trainer(box, None, """class Tuples:
    def __len__(self):
        return 5
    def __getitem__(self, i):
        return i, {"noise": os.urandom(2)[0] + (i << 8)}
refused(AssertionError, lambda: dlclient.check_steps(dlclient.from_dataset(Tuples())),
        ": [1]['noise'] of what Tuples.__getitem__ returns")
named = dlclient.from_dataset(Tuples(), fields=["number", "noise"])
refused(AssertionError, lambda: dlclient.check_steps(named), ": field noise")
""", **Home(box).variables())


main()
