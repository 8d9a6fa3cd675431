#!/usr/bin/env python3
"""Several views of each sample: views(N) in the text, views= of a Loader. View v of a loader has the bits of a loader
whose draws are larger by v; all views are of one read, and a sample that is damaged is damaged once."""
import json
import os
import random
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import Table, case, contains, equal, identity_pixels, indices, main, png, within, write
from pyclient import need, trainer
from tars import archive, npy, web

CUT = "random_resized_crop(16) hflip(0.5)"


def names_of(name, n):
    """image, image_2, ...; what a collation adds comes after the number: image_2_mask."""
    first, added = (name[:-5], "_mask") if name.endswith("_mask") else (name, "")
    return [name] + [f"{first}_{view}{added}" for view in range(2, n + 1)]


def pgm(numbers):
    return b"P5 40 32 255\n" + numbers


def of_field(lines, name):
    """[(epoch, index, what was delivered of this field)]"""
    return [(line["epoch"], line["index"], line["fields"][name]) for line in lines]


def check_views(daemon, dataset, part, names, n, rest="", draws=0, **options):
    """Each view of each of these fields, and all other fields, against loaders that differ in draws."""
    pipeline = f"{part} views({n}){rest}"
    lines = daemon.read(dataset, pipeline=pipeline, draws=draws, **options)
    views = [name for field in names for name in names_of(field, n)]
    others = sorted(set(lines[0]["fields"]) - set(views))
    for view in range(n):
        plain = daemon.read(dataset, pipeline=part + rest, draws=draws + view, **options)
        for field in names:
            equal(of_field(lines, names_of(field, n)[view]), of_field(plain, field), f"view {view} of {field}, {pipeline}")
        equal(sorted(set(plain[0]["fields"]) - set(names)), others, "other fields")
        for field in others:
            equal(of_field(lines, field), of_field(plain, field), field)
    return lines


@case("view v has the bits of a loader whose draws are larger by v, whatever the form, the field and its part")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 13, width=40, height=32)}, workers=3)
    table = Table()
    for part, names, n, rest, more in (
            (CUT, ["image"], 2, "", dict(batch=4, epochs=2, seed=5)),
            (CUT, ["image"], 16, "", dict(batch=5)),
            (CUT, ["image"], 3, "", dict(batch=4, draws=7, seed=2**40)),
            (CUT, ["image"], 2, "", dict(batch=4, draws=2**64 - 2)),
            (f"{CUT} to(float16) layout(nchw)", ["image"], 2, "", dict(batch=4)),
            (f"{CUT} color_jitter(0.4, 0.4, 0.4, 0.1) random_grayscale(0.2) to(float32)", ["image"], 2, "", dict(batch=4)),
            ("image: " + CUT, ["image"], 2, "; label", dict(batch=4)),
            ("label: to(float32); image: " + CUT, ["image"], 2, "", dict(batch=4)),
            ("image: random_crop(8) pad", ["image", "image_mask"], 2, "; label", dict(batch=4)),
            ("decode", ["image"], 2, "", dict(batch=1)),
            (CUT, ["image"], 2, "", dict(batch=1, sampler="random(replacement=true, n=20)"))):
        with table.row((part, n, more)):
            check_views(daemon, "p", part, names, n, rest, **more)
    table.done()
    lines = daemon.read("p", pipeline=f"{CUT} views(2)", batch=4)
    equal(list(lines[0]["fields"]), ["image", "image_2", "label"], "the sequence of fields")
    equal(sum(line["fields"]["image"] == line["fields"]["image_2"] for line in lines), 0, "samples whose views are alike")


@case("with several ranks each view is what a loader without views has, and what one rank alone has")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 21, width=40, height=32)}, workers=3)
    options = dict(world=3, batch=2, epochs=2, seed=4)
    views = sum(daemon.read_ranks("p", pipeline=f"{CUT} views(2)", **options), [])
    for view, name in enumerate(("image", "image_2")):
        plain = sum(daemon.read_ranks("p", pipeline=CUT, draws=view, **options), [])
        equal(of_field(views, name), of_field(plain, "image"), name)
    alone = {(epoch, index): sample for epoch, index, sample in
             of_field(daemon.read("p", pipeline=f"{CUT} views(2)", batch=8, epochs=2, seed=4), "image_2")}
    equal(len(alone), 42, "samples of one rank")
    equal([sample for epoch, index, sample in of_field(views, "image_2") if alone[epoch, index] != sample], [], "as one rank has them")


@case("masks, boxes and points of the part have views of their own, which move with theirs")
def _(box):
    dice = random.Random(3)
    members = []
    for i in range(12):
        corner = [dice.randrange(20), dice.randrange(16)]
        boxes = b"".join(number.to_bytes(4, "little") for _ in range(2) for number in corner + [corner[0] + 9, corner[1] + 8])
        members += [(f"{i:03d}.jpg", png(40, 32, identity_pixels(i, 40, 32))),
                    (f"{i:03d}.seg.png", 
                     pgm(identity_pixels(i + 99, 40, 32)[:40 * 32])),
                    (f"{i:03d}.boxes.npy", npy("<i4", "(2, 4)", boxes)), (f"{i:03d}.cls", str(i).encode())]
    archive(box.path("w", "0.tar"), members)
    daemon = box.daemon({"w": web(box.path("w"))}, workers=3)
    steps = "random_crop(20:24) hflip(0.5) vflip(0.5)"
    for part, names in ((f"jpg: {steps}", ["jpg"]), (f"jpg, seg.png: {steps}", ["jpg", "seg.png"]),
                        (f"jpg, boxes.npy: {steps}", ["jpg", "boxes.npy"]),
                        (f"boxes.npy, seg.png, jpg: {steps}", ["boxes.npy", "seg.png", "jpg"])):
        check_views(daemon, "w", part, names, 3, "; cls", batch=4)
    before = daemon.status()["node"]["n_reads"]
    daemon.read("w", pipeline=f"jpg, seg.png: {steps} views(4); cls", batch=4)
    equal(daemon.status()["node"]["n_reads"] - before, 12, "reads of 12 samples")
    daemon.refused("w", "column 41", "sanitize", "draws=1", pipeline="jpg, boxes.npy: random_crop(8) sanitize views(2)", batch=4)


@case("a sample is read once for all of its views: from a file of its own, from a shard, and beside other files")
def _(box):
    folder = box.folder_of_pictures("p", 24, width=40, height=32)
    write(os.path.join(folder, "list.jsonl"), "".join(
        json.dumps({"a": f"class000/{i:06d}.png", "b": f"class000/{11 - i:06d}.png"}) + "\n" for i in range(12)).encode())
    archive(box.path("w", "0.tar"), [(f"{i:03d}.png", png(40, 32, identity_pixels(i, 40, 32))) for i in range(12)])
    daemon = box.daemon({"p": folder, "w": web(box.path("w")),
                         "l": {"path": os.path.join(folder, "list.jsonl"), "format": "jsonl", "files": "a=a,b=b"}},
                        workers=3)

    def cost(dataset, **options):
        before = daemon.status()["node"]
        n = len(daemon.read(dataset, batch=4, **options))
        after = daemon.status()["node"]
        return n, after["n_reads"] - before["n_reads"], after["n_bytes_read"] - before["n_bytes_read"]

    for dataset, plain, views in (("p", CUT, f"{CUT} views(3)"), ("w", CUT, f"{CUT} views(3)"),
                                  ("l", f"a: {CUT}; b: {CUT}", f"a: {CUT} views(3); b: {CUT} views(2)")):
        equal(cost(dataset, pipeline=views), cost(dataset, pipeline=plain), f"samples, reads and bytes of {dataset}")


@case("a damaged sample counts once, under its field's name, and both views are of the substitute")
def _(box):
    pictures = {i: png(40, 32, identity_pixels(i, 40, 32)) for i in range(12)}
    pictures[3] = pictures[3][:300]
    archive(box.path("w", "0.tar"), [member for i in range(12)
                                     for member in ((f"{i:03d}.png", pictures[i]), (f"{i:03d}.txt", b"seen"))])
    daemon = box.daemon({"w": web(box.path("w"))}, workers=3)
    lines = daemon.read("w", pipeline=f"png: {CUT} views(2); txt: text", batch=4, shuffle=False, on_error="substitute")
    equal(indices(lines), list(range(12)), "samples")
    equal([line["index"] for line in lines if "substitute" in line], [3], "substituted")
    plain = daemon.read("w", pipeline=f"png: {CUT}; txt: text", batch=4, shuffle=False, on_error="substitute", draws=1)
    equal(of_field(lines, "png_2"), of_field(plain, "png"), "the second view, also of the substitute")
    errors = daemon.objects("errors", "w")
    equal([(each["index"], each["field"]) for each in errors], [(3, "png")], "the ledger")
    contains(lines[3]["error"], "field png", "003")
    equal(len(daemon.read("w", pipeline=f"png: {CUT} views(2)", batch=4, on_error="skip")), 11, "samples of a run that skips")


@case("a file that cannot be read is told with its field, although several views wait for it")
def _(box):
    folder = box.folder_of_pictures("p", 12, width=40, height=32)
    daemon = box.daemon({"p": folder}, workers=3)
    rank = daemon.reader("p", pipeline=f"{CUT} views(3)", batch=4, on_error="skip", epochs=100000, delay_ms=10)
    rank.wait_lines(12, seconds=60)
    os.unlink(os.path.join(folder, "class000", "000004.png"))  # a job that attaches now would have another index
    within(60, lambda: daemon.objects("errors", "p"), "the file that is gone is met")
    equal([(each["index"], each["field"]) for each in daemon.objects("errors", "p")], [(4, "image")], "the ledger")
    equal(rank.process.poll(), None, "the job goes on")


def tiff(width, height, rgb, n_strips, damaged=None):
    """In compressed strips, one of which may be damaged: crops that do not touch it can be decoded."""
    n_bytes = height // n_strips * width * 3
    strips = [zlib.compress(rgb[i * n_bytes:(i + 1) * n_bytes]) for i in range(n_strips)]
    if damaged is not None:
        strips[damaged] = b"\xff" * len(strips[damaged])
    tags = [(256, [width]), (257, [height]), (258, [8, 8, 8]), (259, [8]), (262, [2]), (273, None), (277, [3]),
            (278, [height // n_strips]), (279, [len(strip) for strip in strips])]
    begin = 8 + 2 + 12 * len(tags) + 4
    data = begin + 3 * 4 + 2 * 4 * n_strips
    values, entries = b"", b""
    for tag, numbers in tags:
        numbers = numbers or [data + sum(map(len, strips[:i])) for i in range(n_strips)]
        packed = struct.pack(f"<{len(numbers)}I", *numbers)
        if len(numbers) > 1:
            packed, values = struct.pack("<I", begin + len(values)), values + packed
        entries += struct.pack("<HHI", tag, 4, len(numbers)) + packed
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + values + b"".join(strips)


@case("a sample is damaged if one of its views is: of a file with a damaged strip, some crops can be decoded and others cannot")
def _(box):
    archive(box.path("w", "0.tar"), [member for i in range(40)
                                     for member in ((f"{i:03d}.tif", tiff(40, 32, identity_pixels(i, 40, 32), 8, 4 if i % 5 else None)),
                                                    (f"{i:03d}.txt", b"seen"))])
    daemon = box.daemon({name: web(box.path("w")) for name in ("w", "v")}, workers=3)
    options = dict(batch=4, shuffle=False, on_error="skip")
    good = [set(indices(daemon.read("w", pipeline="tif: random_crop(9); txt: text", draws=draws, **options))) for draws in (0, 1)]
    lines = daemon.read("v", pipeline="tif: random_crop(9) views(2); txt: text", **options)
    equal(indices(lines), sorted(good[0] & good[1]), "samples of which both views are good")
    assert good[0] - good[1] and good[1] - good[0], f"no sample with one good view: {good}"
    equal(sorted((each["index"], each["field"], each["n_met"]) for each in daemon.objects("errors", "v")),
          [(i, "tif", 1) for i in sorted(set(range(40)) - (good[0] & good[1]))], "the ledger")


@case("memory_limit counts the larger slots, and a text that asks for what cannot be says what is wrong")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 40, width=40, height=32)}, memory_limit="160MiB")
    big = "random_resized_crop(512) hflip(0.5)"
    before = daemon.memory_used()
    used = []
    for n in (1, 2, 4):
        reader = daemon.reader("p", pipeline=big + (f" views({n})" if n > 1 else ""), batch=8, slots=2, delay_ms=50, epochs=2)
        reader.wait_lines(8)
        used.append(daemon.memory_used() - before)
        reader.good()
    slot = 2 * 8 * 512 * 512 * 3
    equal([round((each - used[0]) / slot) for each in used], [0, 1, 3], f"slots' pictures that are counted beside the first, {used}")
    daemon.refused("p", "memory_limit", pipeline=f"{big} views(16)", batch=8, slots=2)
    for text, words in (
            ("hflip views(0)", ("column 13", '"0" is not allowed', "from 2 to 16", "leave the step out")),
            ("hflip views(1)", ("column 13", '"1" is not allowed', "from 2 to 16", "leave the step out")),
            ("hflip views(1000)", ('"1000" is not allowed', "from 2 to 16")),
            ("hflip views(99999999999999999999)", ("from 2 to 16",)), ("hflip views(-2)", ("column 13", "from 2 to 16")),
            ("hflip views(two)", ("column 13", "from 2 to 16")), ("hflip views", ("column 7", "as in views(2)")),
            ("hflip views()", ("column 7", "as in views(2)")), ("hflip views(2, 3)", ("column 16", '")"')),
            ("views(2) hflip", ("column 10", '"hflip" after views', "last step")), ("hflip views(2) pad", ('"pad" after views',)),
            ("hflip views(2) views(2)", ('"views" after views',)), ("hflip views(2) )", ("column 16", "last one")),
            ("views(2)", ("column 1", "decodes none", "field image")), ("raw views(2)", ("column 5", "decodes none")),
            ("image: views(2); label", ("column 8", "decodes none")), ("image: hflip; label: to(float32) views(2)", ("field label",)),
            ("image views(2)", ("column 7",)), ("view(2)", ("unknown step",))):
        daemon.refused("p", *words, pipeline=text, batch=4)


@case("a name that a view would share with another field is refused with both, and so is one that is too long")
def _(box):
    picture = png(40, 32, identity_pixels(1, 40, 32))
    archive(box.path("w", "0.tar"), [("0.x", picture), ("0.x_2", b"seen"), ("0.t", b"seen"), ("0." + "n" * 30, picture), ("0.wav", b"RIFF")])
    daemon = box.daemon({"w": dict(web(box.path("w")), fields="x=x, x_2=x_2, t=t, long_name_of_thirty_characters=" + "n" * 30 + ", wav=wav")})
    for text, words in (
            (f"x: {CUT} views(2); x_2: text", ("view 2 of field x would be called x_2", "field x_2 of the dataset", "fields=")),
            (f"x: {CUT} views(2); t: text views(2)", ("field t decodes none",)),
            (f"x: {CUT}; wav: audio(rate=16000, seconds=1) views(2)", ("field wav decodes none",)),
            (f"long_name_of_thirty_characters: {CUT} views(2)", ("long_name_of_thirty_characters_2", "31 characters"))):
        daemon.refused("w", *words, pipeline=text, batch=1)
    check_views(daemon, "w", f"x: {CUT}", ["x"], 2, "; t: text", batch=1)


# ---- Python ---------------------------------------------------------------------------------------------------------

@case("a batch has a list of the views under the field's name, in each form that a loader can give it")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 12, width=40, height=32)}, workers=3)
    trainer(box, daemon, """
        cut = "random_resized_crop(16) hflip(0.5)"
        def load(**options):
            return dlclient.Loader("p", 4, **dict(dict(pipeline=cut, seed=3, slots=8), **options))
        plain = [[batch.copy() for batch in load(draws=draws)] for draws in (0, 1, 2)]
        def check(batches, n=2):
            assert len(batches) == 3
            for step, batch in enumerate(batches):
                assert list(batch) == ["image", "label"] and len(batch) == 2, list(batch)
                assert type(batch["image"]) is list and len(batch["image"]) == n
                assert numpy.array_equal(batch["label"], plain[0][step]["label"])
                for view, image in enumerate(batch["image"]):
                    assert numpy.array_equal(numpy.asarray(image), plain[view][step]["image"]), (step, view)
        def whole(loader, n=2):
            check([batch.copy() for batch in loader], n)
            loader.set_epoch(0)
            check([batch.numpy() for batch in loader], n)
            for step, batch in enumerate(loader):
                assert batch["image_2"] is batch["image"][1] and "image_2" in batch and batch.image_2 is batch["image_2"]
                assert batch["image_2"].dtype == numpy.uint8 and batch["image_2"].shape == (4, 16, 16, 3)
                assert f"image: {n} views, uint8 [4, 16, 16, 3]" in repr(batch), repr(batch)
                refused(KeyError, lambda: batch[f"image_{n + 1}"], "'image'", "'label'")
        whole(load(views=2))
        whole(load(views=3), 3)
        whole(load(pipeline=cut + " views(2)"))
        whole(load(pipeline=cut + " views( n = 2 )", views=2))
        whole(load(pipeline="image: " + cut + "; label", views=2))
        whole(load(views=2, copy=True))
        whole(load(views=2, copy=False))
        assert load(views=2).pipeline.endswith(" views(2)") and "views(2)" in repr(load(views=2))
        for options in (dict(), dict(copy=True), dict(as_tuple=["label", "image"])):
            first = options.get("as_tuple", [""])[0] == "label"
            for step, fields in enumerate(load(views=2, **dict(dict(as_tuple=True), **options))):
                (labels, (a, b)) = fields if first else fields[::-1]
                assert numpy.array_equal(a, plain[0][step]["image"]) and numpy.array_equal(b, plain[1][step]["image"])
                assert numpy.array_equal(labels, plain[0][step]["label"])
        n = 0
        for (a, b), target in load(views=2, as_tuple=True):
            n += len(target)
        assert n == 12
        singles = list(dlclient.Loader("p", None, pipeline=cut, seed=3, views=2, copy=True))
        for i, single in enumerate(singles):
            for view in range(2):
                assert numpy.array_equal(single["image"][view], plain[view][i // 4]["image"][i % 4]), (i, view)
        pair = dlclient.Loader("p", 2, pipeline=cut, seed=3, views=2, ranks=[0, 1])
        for one, other in pair:
            assert [image.shape for batch in (one, other) for image in batch["image"]] == [(2, 16, 16, 3)] * 4
        batch = next(iter(load(views=2, targets={"age": numpy.arange(12) * 2})))
        assert list(batch) == ["image", "label", "age"] and batch["age"].tolist() == (batch.served * 2).tolist()
        assert numpy.array_equal(batch["image"][1], plain[1][0]["image"])
        for name in ("image", "image_2"):
            refused(dlclient.OptionError, lambda: next(iter(load(views=2, targets={name: numpy.arange(12)}))), name)
        padded = next(iter(load(pipeline="image: random_crop(8) pad; label", views=2)))
        assert list(padded) == ["image", "image_mask", "label"] and [mask.all() for mask in padded["image_mask"]] == [True, True]
        gone = next(iter(load(views=2)))
        del batch, padded
        gone.release()
        refused(dlclient.BatchReleased, lambda: gone["image_2"], "released")
    """)


@case("torch gets the views as tensors of their own")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 12, width=40, height=32)}, workers=3)
    need("torch")
    trainer(box, daemon, """
        import torch
        cut = "random_resized_crop(16) hflip(0.5) to(float16) layout(nchw)"
        plain = [[batch.copy()["image"] for batch in dlclient.Loader("p", 4, pipeline=cut, draws=draws)] for draws in (0, 1)]
        for step, ((a, b), labels) in enumerate(dlclient.Loader("p", 4, pipeline=cut, views=2, framework="torch", as_tuple=True)):
            assert a.dtype == b.dtype == torch.float16 and a.shape == b.shape == (4, 3, 16, 16) and labels.dtype == torch.int64
            assert numpy.array_equal(a.numpy(), plain[0][step]) and numpy.array_equal(b.numpy(), plain[1][step])
        for options in (dict(), dict(framework="torch"), dict(framework="torch", copy=True)):
            for step, batch in enumerate(dlclient.Loader("p", 4, pipeline=cut, views=2, **options)):
                moved = batch.to("cpu")
                assert [type(image) for image in moved["image"]] == [torch.Tensor] * 2 and list(moved) == ["image", "label"]
                assert all(numpy.array_equal(image.numpy(), plain[view][step]) for view, image in enumerate(moved["image"]))
                assert [type(image) for image in batch.torch()["image"]] == [torch.Tensor] * 2
    """)


@case("JAX gets the views as arrays of their own, which its trees walk into")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 12, width=40, height=32)}, workers=3)
    need("jax")
    trainer(box, daemon, """
        import jax
        loader = dlclient.Loader("p", 4, pipeline="random_resized_crop(16)", views=2, framework="jax")
        for batch in loader:
            assert all(isinstance(image, jax.Array) and image.shape == (4, 16, 16, 3) for image in batch["image"])
            assert len(jax.tree_util.tree_leaves(dict(batch))) == 3
    """)


@case("a state in the middle of an epoch goes on with the same views, also at another world and batch size")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 24, width=40, height=32)}, workers=3)
    trainer(box, daemon, """
        options = dict(pipeline="random_resized_crop(16) hflip(0.5)", seed=3, views=2)
        def samples(batch):
            return {(batch.epoch, int(index)): (one.tobytes(), other.tobytes())
                    for index, one, other in zip(batch.indices, *batch["image"])}
        whole = {}
        for batch in dlclient.Loader("p", 4, epochs=2, **options):
            whole.update(samples(batch))
        assert len(whole) == 48
        loader, seen = dlclient.Loader("p", 4, **options), {}
        for step, batch in enumerate(loader):
            seen.update(samples(batch))
            if step == 2:
                break
        state = json.loads(json.dumps(loader.state_dict()))
        for batch in dlclient.Loader("p", 4, state=state, **options):
            seen.update(samples(batch))
        assert seen == {key: whole[key] for key in whole if key[0] == 0}
        again = {}
        for batches in dlclient.Loader("p", 3, ranks=[0, 1], state=state, **options):
            for batch in batches:
                again.update(samples(batch))
        assert len(again) == 12 and all(whole[key] == again[key] for key in again)
        plain = dlclient.Loader("p", 4, **dict(options, views=None))
        refused(dlclient.StateError, lambda: plain.load_state_dict(state), "pipeline", "views(2)")
    """)


@case("options that contradict each other, and numbers that are none, are refused with what to write")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 12, width=40, height=32)})
    trainer(box, daemon, """
        def load(**options):
            return lambda: dlclient.Loader("p", 4, **options)
        E = dlclient.OptionError
        refused(E, load(pipeline="hflip views(3)", views=2), "views: 2", "views(3)", "one of them")
        refused(E, load(pipeline="hflip", views=1), "views: 1", "2 to 16")
        refused(E, load(pipeline="hflip", views=0), "views: 0", "2 to 16")
        refused(E, load(pipeline="hflip", views=17), "views: 17", "2 to 16")
        refused(E, load(pipeline="hflip", views="2"), "views", "whole number")
        refused(E, load(pipeline="hflip", views=True), "views", "whole number")
        refused(E, load(views=2), "views", "pipeline=")
        refused(E, load(pipeline="image; label", views=2), "views", "0 parts", "views(2)")
        refused(E, load(pipeline="image: hflip; label: to(float32)", views=2), "views", "2 parts", "views(2)")
        refused(E, load(pipeline="raw", views=2), "decodes none")
        refused(E, load(pipeline="hflip views(2) vflip"), "last step")
        refused(TypeError, load(pipeline="hflip", view=2), "did you mean views?")
        loader = load(pipeline="hflip", views=2)()
        def change():
            loader.views = 3
        refused(E, change, "views", "another one")
    """)


main()
