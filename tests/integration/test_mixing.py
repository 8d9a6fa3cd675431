#!/usr/bin/env python3
"""Samples that are mixed with others of their batch: mixup, cutmix and mix, compared to the bit with the formulas of
torchvision and timm in torch's operations, with the same draws (tests/support/mixing.py)."""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import Table, case, contains, equal, identity_pixels, main, png, write
from pyclient import Trainer, need, trainer
from tars import archive, npy, web

SUPPORT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support")

# Reads the same batches twice, as they are and mixed, and compares.
COMPARE = f"""
    sys.path.insert(0, {SUPPORT!r})
    import torch
    import mixing

    def planes(images, is_last):
        return images.permute(0, 3, 1, 2) if is_last else images

    def same(got, expected):
        return got.dtype == expected.dtype and got.shape == expected.shape and torch.equal(got, expected)

    def differing(got, expected):
        if got.dtype != expected.dtype or got.shape != expected.shape:
            return got.dtype, got.shape, expected.dtype, expected.shape
        return int((got != expected).sum()), got[got != expected][:4], expected[got != expected][:4]

    def compare(dataset, steps, mix, mixed_as, *, batch_size, seed=0, draws=0, world=1, epochs=1, **more):
        options = dict(batch_size=batch_size, seed=seed, draws=draws, framework="torch", **more)
        is_last = "nchw" not in steps
        n_batches = 0
        for rank in range(world):
            ranks = dict(rank=rank, world_size=world)
            plain = dlclient.Loader(dataset, pipeline=f"image: {{steps}}; label", job="plain", **ranks, **options)
            mixed = dlclient.Loader(dataset, pipeline=f"image, label: {{steps}} {{mix}}", job="mixed", **ranks,
                                    **options)
            for epoch in range(epochs):
                for before, after in zip(plain, mixed):
                    assert before.indices.tolist() == after.indices.tolist()
                    step = int(before.step)
                    position = step * batch_size * world + rank
                    unit = lambda number=0: mixing.Unit(seed, epoch, position, number, draws)
                    images, labels = mixed_as(planes(before["image"], is_last), before["label"], unit)
                    got = planes(after["image"], is_last)
                    assert same(got, images), (steps, mix, rank, epoch, step, differing(got, images))
                    assert same(after["label"], labels), (steps, mix, rank, epoch, step, after["label"][:2], labels[:2])
                    n_batches += 1
            plain.close()
            mixed.close()
        return n_batches

    def mixup(alpha, n):
        return lambda images, numbers, unit: mixing.torchvision_mixup(images, mixing.one_hot(numbers, n), unit(), alpha)

    def cutmix(alpha, n):
        return lambda images, numbers, unit: mixing.torchvision_cutmix(images, mixing.one_hot(numbers, n), unit(), alpha)
"""


def compared(box, daemon, source):
    need("torch")
    return trainer(box, daemon, COMPARE + source)


NORMALIZE = "normalize(mean=0.485:0.456:0.406, std=0.229:0.224:0.225)"


def pictures(box, n=23, n_classes=5, width=40, height=32, **settings):
    return box.daemon({"p": box.folder_of_pictures("p", n, n_classes=n_classes, width=width, height=height)}, workers=3,
                      **settings)


@case("mixup and cutmix have the bits of torchvision's, in every dtype and layout, at the end of an epoch as well")
def _(box):
    lines = compared(box, pictures(box), f"""
    n = 0
    for form in ("", "to(float32)", "to(float16)", "to(bfloat16)", "{NORMALIZE} to(float32) layout(nchw)", "layout(nchw)",
                 "{NORMALIZE} to(float16) layout(nchw)"):
        steps = f"random_resized_crop(19:27) hflip(0.5) {{form}}"
        for alpha in (0.2, 1.0, 8.0):
            for batch_size in (1, 4, 23):
                n += compare("p", steps, f"mixup({{alpha}}, num_classes=5)", mixup(alpha, 5), batch_size=batch_size, seed=3)
                n += compare("p", steps, f"cutmix(alpha={{alpha}}, num_classes=5)", cutmix(alpha, 5), batch_size=batch_size,
                             draws=2)
    out(n)
    """)
    equal(lines, [7 * 3 * 2 * (23 + 6 + 1)], "batches")


@case("mix has the bits of timm's Mixup, whatever its arguments are")
def _(box):
    lines = compared(box, pictures(box), f"""
    n = 0
    for form in ("to(float32) layout(nchw)", "{NORMALIZE}", "", "to(float16)"):
        for mode in ("batch", "pair", "elem"):
            for more in (dict(), dict(mixup_alpha=0.2, cutmix_alpha=1.0), dict(mixup_alpha=0, cutmix_alpha=1.0),
                         dict(mixup_alpha=0.8, cutmix_alpha=1.0, cutmix_minmax=(0.2, 0.8), switch_prob=0.7),
                         dict(mixup_alpha=0, cutmix_minmax=(0.01, 0.02), label_smoothing=0),
                         dict(mixup_alpha=0.4, cutmix_alpha=0.3, prob=0.5, label_smoothing=0.3, correct_lam=False),
                         dict(mixup_alpha=1, cutmix_alpha=1, partner="previous", label_smoothing=0)):
                if mode == "pair" and "partner" in more:
                    continue
                text = ", ".join(f"{{key}}={{value[0]}}:{{value[1]}}" if isinstance(value, tuple) else f"{{key}}={{value}}"
                                 for key, value in dict(more, mode=mode, num_classes=5).items()).lower()
                for batch_size in (2, 7, 23):
                    n += compare("p", f"random_resized_crop(16:21) {{form}}", f"mix({{text}})",
                                 mixing.Mixup(5, mode=mode, **more), batch_size=batch_size, seed=2**40 + n)
    out(n)
    """)
    equal(lines, [4 * 20 * (12 + 4 + 1)], "batches")


@case("pictures whose size the first of a batch decides are mixed by that size")
def _(box):
    lines = compared(box, pictures(box, n=10), """
    n = 0
    for mix, mixed_as in (("mixup(num_classes=5)", mixup(1.0, 5)), ("cutmix(num_classes=5)", cutmix(1.0, 5)),
                          ("mix(cutmix_alpha=1, mode=elem, num_classes=5)", mixing.Mixup(5, cutmix_alpha=1.0, mode="elem"))):
        for form in ("", "to(float32) layout(nchw)"):
            n += compare("p", f"decode {form}", mix, mixed_as, batch_size=4, seed=8)
    out(n)
    """)
    equal(lines, [6 * 3], "batches")


@case("draws follow the place in the epoch: with several ranks, over epochs, and after a run was resumed elsewhere")
def _(box):
    daemon = pictures(box)
    lines = compared(box, daemon, """
    steps, mix = "random_resized_crop(16) to(float32)", "mixup(0.5, num_classes=5)"
    out(compare("p", steps, mix, mixup(0.5, 5), batch_size=4, world=3, epochs=2, seed=9))
    """)
    equal(lines, [3 * 2 * 2], "batches")
    whole = daemon.read("p", pipeline="image, label: random_crop(16) mix(cutmix_alpha=1, num_classes=5)", batch=4, epochs=2)
    rest = daemon.read("p", pipeline="image, label: random_crop(16) mix(cutmix_alpha=1, num_classes=5)", batch=4, epochs=2,
                       first_position=8)
    fields = [line["fields"] for line in whole]
    equal([line["fields"] for line in rest[:15]], fields[8:23], "the rest of the epoch")
    equal(len({line["fields"]["label"]["sha256"] for line in whole}) > 20, True, "labels differ")


@case("a run whose daemon is killed again and again sees the batches of one that was left alone")
def _(box):
    daemon = pictures(box, n=60)
    source = """
        import hashlib
        for batch in dlclient.Loader("p", batch_size=4, epochs=4, seed=6, framework="torch", restart_timeout=60,
                                     pipeline="image, label: random_resized_crop(16) to(float32) "
                                              "mix(mixup_alpha=0.3, cutmix_alpha=1, num_classes=5)"):
            out([int(batch.epoch), int(batch.step)] +
                [hashlib.sha256(batch[name].numpy().tobytes()).hexdigest() for name in ("image", "label")])
            time.sleep(float(sys.argv[1]))
    """
    need("torch")
    expected = trainer(box, daemon, source, 0)
    disturbed = Trainer(box, daemon, source, [0.05])
    for n in (3, 17, 31):
        disturbed.wait_lines(n)
        daemon.kill()
        daemon.start()
    equal(disturbed.finish(), expected, "batches")
    equal(len(expected), 60, "batches of four epochs")


@case("the bits are the same with any number of workers, and in a loader that opens the pipeline's normal text")
def _(box):
    folder = box.folder_of_pictures("p", 40, n_classes=5, width=40, height=32)
    steps = "random_resized_crop(16) hflip(0.5) to(float32) mix(mixup_alpha=0.2, cutmix_alpha=1, mode=elem, num_classes=5)"
    read = [box.daemon({"p": folder}, name=f"w{n}", workers=n).read("p", pipeline=f"image, label: {steps}", batch=8)
            for n in (1, 2, 7)]
    equal(read[1], read[0], "two workers and one")
    equal(read[2], read[0], "seven workers and one")


@case("a sample that is skipped or substituted leaves partners as the batch that is served has them")
def _(box):
    folder = box.folder_of_pictures("p", 24, n_classes=3, width=40, height=32)
    for number in (5, 6, 20):
        write(os.path.join(folder, f"class{number // 8:03d}", f"{number:06d}.png"), b"\x89PNG\r\n\x1a\nbad")
    lines = compared(box, box.daemon({"p": folder}, workers=3), """
    for on_error in ("skip", "substitute"):
        for batch_size in (1, 4, 6):
            more = dict(batch_size=batch_size, on_error=on_error, max_errors=20, shuffle=False)
            out(compare("p", "random_crop(16) to(float32)", "mixup(num_classes=3)", mixup(1.0, 3), **more))
            out(compare("p", "random_crop(16) to(float32)", "mix(num_classes=3, mode=elem)", mixing.Mixup(3, mode="elem"), **more))
    """)
    equal(lines, [21, 21, 6, 6, 4, 4, 24, 24, 6, 6, 4, 4], "batches")


@case("views are mixed with draws of their own, and without names the label is found")
def _(box):
    daemon = pictures(box)
    for mix in ("mixup(0.4, num_classes=5)", "cutmix(num_classes=5)", "mix(cutmix_alpha=1, mode=elem, num_classes=5)"):
        steps = f"random_resized_crop(16) to(float32) {mix}"
        views = daemon.read("p", pipeline=f"image, label: {steps} views(3)", batch=6)
        bare = daemon.read("p", pipeline=f"{steps} views(3)", batch=6)
        equal(list(views[0]["fields"]), ["image", "label", "image_2", "label_2", "image_3", "label_3"], "fields")
        equal(list(bare[0]["fields"]), ["image", "image_2", "image_3", "label", "label_2", "label_3"], "fields without names")
        for view, end in enumerate(("", "_2", "_3")):
            plain = daemon.read("p", pipeline=f"image, label: {steps}", batch=6, draws=view)
            for field in ("image", "label"):
                equal([line["fields"][field + end] for line in views], [line["fields"][field] for line in plain], field)
                equal([line["fields"][field + end] for line in bare], [line["fields"][field] for line in plain], field)


@case("a field may be mixed by one name and stay as it is by another")
def _(box):
    daemon = pictures(box)
    steps = "random_resized_crop(16) to(float32)"
    both = daemon.read("p", pipeline=f"mixed=image, soft=label: {steps} mixup(num_classes=5); image: {steps}; label", batch=6)
    mixed = daemon.read("p", pipeline=f"image, label: {steps} mixup(num_classes=5)", batch=6)
    plain = daemon.read("p", pipeline=f"label: to(int64); image: {steps}", batch=6)     # also the second part with steps
    equal(list(both[0]["fields"]), ["mixed", "soft", "image", "label"], "fields")
    for name, lines, field in (("mixed", mixed, "image"), ("soft", mixed, "label"), ("image", plain, "image"), ("label", plain, "label")):
        equal([line["fields"][name] for line in both], [line["fields"][field] for line in lines], name)


@case("fields that are no pictures are mixed, too: arrays of one size, and labels that are numbers in a file or soft")
def _(box):
    archive(box.path("w", "0.tar"), [member for i in range(10) for member in (
        (f"{i}.feature.npy", npy("<f4", "(3, 2)", b"".join(struct.pack("<f", i + k / 8) for k in range(6)))),
        (f"{i}.soft.npy", npy("<f4", "(4,)", b"".join(struct.pack("<f", k == i % 4) for k in range(4)))),
        (f"{i}.cls", str(i % 4).encode()), (f"{i}.png", png(8, 8, identity_pixels(i, 8, 8))))])
    lines = compared(box, box.daemon({"w": web(box.path("w"))}, workers=3), """
    def read(text):
        return list(dlclient.Loader("w", batch_size=4, seed=1, framework="torch", pipeline=text, copy=True))
    plain = read("feature.npy; soft.npy; cls; png: decode to(float32)")
    for mix in ("mixup(0.3, num_classes=4)", "mix(mixup_alpha=0.3, label_smoothing=0, partner=previous, num_classes=4)"):
        for before, after, labels in zip(plain, read(f"feature.npy, cls, soft.npy: {mix}"), read(f"png, cls, soft.npy: decode to(float32) {mix}")):
            unit = mixing.Unit(1, 0, int(before.step) * 4)
            expected, soft = mixing.torchvision_mixup(before["feature.npy"], before["soft.npy"], unit, 0.3)
            out([same(after["feature.npy"], expected), same(after["cls"], soft), same(after["soft.npy"], soft),
                 same(labels["cls"], soft), same(labels["soft.npy"], soft)])
    """)
    equal(lines, [[True] * 5] * 6, "batches")


@case("rows of a mapped array are mixed after they were copied")
def _(box):
    write(box.path("n", "feature.npy"), npy("<f4", "(90, 3)", b"".join(struct.pack("<f", i / 7) for i in range(270))))
    lines = compared(box, box.daemon({"n": {"path": box.path("n"), "format": "npy"}}, workers=3), """
    def read(text):
        return list(dlclient.Loader("n", batch_size=40, seed=1, framework="torch", pipeline=text, copy=True))
    for before, after in zip(read("feature"), read("feature: mixup(0.3)")):
        unit = mixing.Unit(1, 0, int(before.step) * 40)
        rows = before["feature"]
        out(same(after["feature"], mixing.torchvision_mixup(rows, rows, unit, 0.3)[0]))
    """)
    equal(lines, [True] * 3, "batches")


@case("what cannot be mixed is refused with what to do")
def _(box):
    archive(box.path("w", "0.tar"), [member for i in range(6) for member in (
        (f"{i}.png", png(8, 8, identity_pixels(i, 8, 8))), (f"{i}.cls", b"1"), (f"{i}.other.cls", b"2"),
        (f"{i}.boxes.npy", npy("<i4", "(1, 4)", bytes(16))), (f"{i}.ids.npy", npy("<i4", "(3,)", bytes(12))),
        (f"{i}.seg.png", png(8, 8, bytes(192))))])
    daemon = box.daemon({"w": web(box.path("w")), "p": box.folder_of_pictures("p", 12, n_classes=5)}, workers=2)
    table = Table()
    for dataset, pipeline, words in (
            ("p", "image, label: center_crop(8) mixup(0, num_classes=5)", ["alpha is 0"]),
            ("p", "image, label: center_crop(8) mixup(alpha=-1, num_classes=5)", ["alpha:", "0 or more"]),
            ("p", "image, label: center_crop(8) mixup(nan, num_classes=5)", ["column 36", "finite number"]),
            ("p", "image, label: center_crop(8) mixup(num_classes=0)", ["from 1 to"]),
            ("p", "image, label: center_crop(8) mixup(0.2)", ["field label", "num_classes=N"]),
            ("p", "center_crop(8) mixup", ["field label", "num_classes=N"]),
            ("p", "image: center_crop(8) mixup(num_classes=5); label", ["name the label with the picture", "image, label:"]),
            ("p", "image, label: center_crop(8) mixup(num_classes=4)", ["num_classes=4", "has 5 classes"]),
            ("p", "image, label: resize(short=20) mixup(num_classes=5) pad", ['"pad" after mixup', "last step"]),
            ("p", "image, label: mixup(num_classes=5) center_crop(8)", ['"center_crop" after mixup']),
            ("p", "image, label: mixup(num_classes=5)", ["field image is bytes", "let steps make a picture"]),
            ("p", "image, label: center_crop(8) mixup(alpha=1, beta=2, num_classes=5)", ['no argument "beta"', "it has alpha, num_classes"]),
            ("p", "image, label: center_crop(8) mix(mixup_alpha=0, num_classes=5)", ["more than 0 for one of them"]),
            ("p", "image, label: center_crop(8) mix(prob=1.5, num_classes=5)", ["prob:", "0 to 1"]),
            ("p", "image, label: center_crop(8) mix(label_smoothing=2, num_classes=5)", ["label_smoothing:", "0 to 1"]),
            ("p", "image, label: center_crop(8) mix(mode=pairs, num_classes=5)", ["pair", "batch, pair or elem"]),
            ("p", "image, label: center_crop(8) mix(mode=pair, partner=previous, num_classes=5)", ["leave partner=previous out"]),
            ("p", "image, label: center_crop(8) mix(cutmix_alpha=1, cutmix_minmax=0.8:0.2, num_classes=5)", ["0.8:0.2", "FROM <= TO"]),
            ("p", "image, label: center_crop(8) mix(cutmix_alpha=1, cutmix_minmax=0.8, num_classes=5)", ["FROM:TO"]),
            ("w", "png, boxes.npy, cls: center_crop(8) mixup(num_classes=5)", ["boxes.npy moves with its picture"]),
            ("w", "png, seg.png, cls: center_crop(8) mixup(num_classes=5)", ["seg.png moves with its picture"]),
            ("w", "png, ids.npy, cls: center_crop(8) mixup(num_classes=5)", ["ids.npy is int32", "part of its own"]),
            ("w", "boxes.npy, cls: cutmix(num_classes=5)", ["names none"]),
            ("w", "png, seg.png, cls: center_crop(8) cutmix(num_classes=5)", ["seg.png moves"]),
            ("w", "png: center_crop(8) mixup(num_classes=5)", ["name the label"])):
        with table.row(pipeline):
            daemon.refused(dataset, *words, pipeline=pipeline, batch=2)
    table.done()


@case("a sample whose label is not one of the classes is damaged")
def _(box):
    archive(box.path("w", "0.tar"), [member for i in range(6) for member in (
        (f"{i}.png", png(8, 8, identity_pixels(i, 8, 8))), (f"{i}.cls", str(i if i != 3 else -1).encode()))])
    daemon = box.daemon({"w": web(box.path("w"))}, workers=2)
    text = "png, cls: center_crop(8) mixup(num_classes=6)"
    reader = daemon.reader("w", pipeline=text, batch=2)
    equal(reader.finish()[0], 1, "exit status")
    contains(reader.errors(), "cls", "class -1", "num_classes=6 allows 0 to 5")
    equal(sorted(line["index"] for line in daemon.read("w", pipeline=text, batch=2, on_error="skip")), [0, 1, 2, 4, 5], "samples")


@case("repeat(3) is DeiT's RASampler, and each time a sample comes it looks different, on whichever rank")
def _(box):
    n, world = 530, 3
    daemon = box.daemon({"p": box.folder_of_pictures("p", n, n_classes=5, width=12, height=10)}, workers=3)
    lines = compared(box, daemon, f"""
    import hashlib
    n, world = {n}, {world}
    per_rank = n // 256 * 256 // world
    ranks = []
    for rank in range(world):
        order = torch.randperm(n, generator=torch.Generator().manual_seed(1)).repeat_interleave(3).tolist()
        theirs = order[rank::world][:per_rank]
        mine = []
        loader = dlclient.Loader("p", 10, rank=rank, world_size=world, sampler=f"repeat(3, n={{per_rank * world}})",
                                 pipeline="image: random_resized_crop(8) color_jitter(0.4)", job=f"one of {{world}}")
        loader.set_epoch(1)
        for batch in loader:
            mine += [(index, hashlib.sha256(image.tobytes()).hexdigest())
                     for index, image in zip(batch.indices.tolist(), batch["image"])]
            if len(mine) >= per_rank:
                break
        assert [index for index, _ in mine] == theirs, (mine[:9], theirs[:9])
        ranks.append(mine)
    different = [len({{ranks[rank][i] for rank in range(world)}}) for i in range(per_rank)]
    assert all(len({{ranks[rank][i][0] for rank in range(world)}}) == 1 for i in range(per_rank))
    out([per_rank, different.count(3)])
    """)
    equal(lines, [[170, 170]], "positions of a rank, and those at which three ranks have three pictures of one sample")


main()
