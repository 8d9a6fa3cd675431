#!/usr/bin/env python3
"""Collations of plug-ins: they get the samples of a batch in one array and make its tensor, in processes of their own or in
the daemon, with the same bits. What they do wrong ends the job, with their sentence."""
import hashlib
import os
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import Table, case, contains, equal, expected_order, identity_pixels, indices, main, philox, write
from pyclient import need, trainer
from plugins import PARALLEL, SERIAL, SOURCES, blocks, compiled

WIDTH, HEIGHT, N = 8, 6, 13
WHOLE = f"center_crop({HEIGHT}:{WIDTH})"
CENTERED = f"{WHOLE} plugin(blocks.centered)"


def daemon_of(box, plugins="blocks collations", n=N, threads=PARALLEL, **settings):
    blocks(box)
    folder = compiled(box, "collations", os.path.join(SOURCES, "collations.c"), f"-DTHREADS={threads}", "-Wall", "-Wextra")
    data = box.path("p")
    if not os.path.exists(data):
        box.folder_of_pictures("p", n, width=WIDTH, height=HEIGHT)
    return box.daemon({"p": data}, plugins=plugins, plugin_dirs=folder, **settings)


def served(daemon, pipeline, **more):
    more.setdefault("batch", 4)
    more.setdefault("shuffle", False)
    return daemon.read("p", pipeline=pipeline, job=f"job{time.monotonic_ns()}", **more)


def hashes(lines, field="image"):
    return [line["fields"][field]["sha256"] for line in lines]


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def batches(numbers, size):
    return [numbers[at:at + size] for at in range(0, len(numbers), size)]


def centered(numbers, scale=255.0, pixels=lambda number: identity_pixels(number, WIDTH, HEIGHT)):
    """What the example makes of a batch of these pictures: the hash of each row."""
    contents = [pixels(number) for number in numbers]
    means = [sum(values) / len(numbers) for values in zip(*contents)]
    return [sha256(struct.pack(f"={len(means)}f", *((value - mean) / scale for value, mean in zip(content, means))))
            for content in contents]


def all_centered(numbers, size, **more):
    return [row for batch in batches(numbers, size) for row in centered(batch, **more)]


def shown(numbers, place, epoch=0, seed=0, kept=1):
    """What collations.shows makes of a batch that begins at a place of its epoch."""
    bits = next(philox_words(seed, epoch, place))
    return [sha256(struct.pack("=6I", len(numbers), place, epoch, bits, kept, identity_pixels(number, WIDTH, HEIGHT)[0]))
            for number in numbers]


def philox_words(seed, epoch, place):
    yield from philox(seed, (0x6000 << 16, epoch, place, 0))


# ---- what is delivered -----------------------------------------------------------------------------------------------

@case("a batch is what the plug-in makes of its samples, the short last one as well")
def _(box):
    daemon, table = daemon_of(box, workers=3), Table()
    for size in (1, 4, 5, 13, 20):
        with table.row(size):
            lines = served(daemon, CENTERED, batch=size, epochs=2)
            equal(hashes(lines), all_centered(list(range(N)), size) * 2)
            equal({(line["fields"]["image"]["dtype"], tuple(line["fields"]["image"]["shape"])) for line in lines},
                  {("float32", (HEIGHT, WIDTH, 3))})
            equal([line["fields"]["label"]["value"] for line in lines[:N]], [number * 2 // N for number in range(N)])
    equal(hashes(served(daemon, f"{WHOLE} plugin(blocks.centered, scale=3)")),
          all_centered(list(range(N)), 4, scale=3.0))
    daemon.stop()
    table.done()


@case("a collation knows the batch: its number of samples, its place in the epoch, and draws that belong to it")
def _(box):
    for threads in (PARALLEL, SERIAL):
        daemon = daemon_of(box, threads=threads, workers=4)
        lines = served(daemon, f"{WHOLE} plugin(collations.shows, 77)", epochs=3, seed=5)
        for epoch in range(3):
            wanted = [row for batch in batches(list(range(N)), 4)
                      for row in shown(batch, batch[0], epoch, seed=5, kept=77)]
            equal(hashes(line for line in lines if line["epoch"] == epoch), wanted, f"epoch {epoch}")
        daemon.stop()


@case("ranks of a world have batches of their own, and places of the epoch's order that differ")
def _(box):
    daemon = daemon_of(box, workers=2)
    for pipeline, make in ((CENTERED, None), (f"{WHOLE} plugin(collations.shows)", shown)):
        found = daemon.read_ranks("p", 2, pipeline=pipeline, batch=4, seed=3, job=f"world{time.monotonic_ns()}")
        for rank, lines in enumerate(found):
            order = expected_order(N, world=2, rank=rank, seed=3)
            equal(indices(lines), order)
            if make:
                places = [8 * number + rank for number in range(2)]
                equal(hashes(lines), [row for batch, place in zip(batches(order, 4), places)
                                      for row in shown(batch, place, seed=3)], f"rank {rank}")
            else:
                equal(hashes(lines), all_centered(order, 4), f"rank {rank}")


@case("samples that are left out are not there: the plug-in gets the others without gaps")
def _(box):
    daemon = daemon_of(box, workers=3)
    folder = box.path("p")
    for number in (0, 2, 6, 7, 12):
        write(os.path.join(folder, f"class{number * 2 // N:03d}", f"{number:06d}.png"), b"no picture")
    good = [[1, 3], [4, 5], [8, 9, 10, 11]]
    daemon.stop()
    daemon = daemon_of(box, workers=3)
    lines = served(daemon, CENTERED, on_error="skip", epochs=2)
    equal(indices(lines), [number for batch in good for number in batch] * 2)
    equal(hashes(lines), [row for batch in good for row in centered(batch)] * 2)
    lines = served(daemon, f"{WHOLE} plugin(collations.shows)", on_error="skip")
    equal(hashes(lines), [row for place, batch in zip((0, 4, 8), good) for row in shown(batch, place)])


@case("samples of joined datasets are collated together")
def _(box):
    daemon = daemon_of(box, workers=2)
    daemon.stop()
    daemon = box.daemon({"p": box.path("p"), "q": box.folder_of_pictures("q", 5, width=WIDTH, height=HEIGHT)},
                        plugins="blocks", plugin_dirs=box.path("plugins"))
    lines = daemon.read("p + q", pipeline=CENTERED, batch=4, shuffle=False)
    equal(hashes(lines), all_centered(list(range(N)) + list(range(5)), 4))


@case("steps, codecs and views stand before it, other fields beside it, and the text that is printed means the same")
def _(box):
    daemon, table = daemon_of(box, workers=2), Table()
    plain = all_centered(list(range(N)), 4)
    lines = served(daemon, f"a=image: {WHOLE} plugin(blocks.centered); b=image: {WHOLE}; "
                           f"c=image: {WHOLE} plugin(blocks.mosaic, 1) plugin( blocks.centered ,scale = 255.0 ); label")
    equal(hashes(lines, "a"), plain)
    equal(hashes(lines, "b"), [sha256(identity_pixels(number, WIDTH, HEIGHT)) for number in range(N)])
    equal(hashes(lines, "c"), plain)
    lines = served(daemon, f"{WHOLE} hflip(0.5) plugin(collations.shows) views(2)", seed=9)
    assert all(line["fields"]["image"]["sha256"] != line["fields"]["image_2"]["sha256"] for line in lines)
    lines = served(daemon, f"image: {WHOLE} plugin(blocks.centered) views(2); label")
    equal((hashes(lines), hashes(lines, "image_2")), (plain, plain))
    for text, printed in ((f"{WHOLE} plugin(blocks.centered) views(2)", f"{WHOLE} plugin(blocks.centered, scale=255) views(2)"),
                          ("image: resize([4, 4]) plugin(blocks.mosaic) plugin(blocks.centered, 3); label",
                           "image: resize([4, 4], interpolation=bilinear, max_size=0) plugin(blocks.mosaic, size=8) "
                           "plugin(blocks.centered, scale=3); label"),
                          ("label: plugin(collations.shows)", "label: plugin(collations.shows, kept=1)")):
        with table.row(text):
            reader = daemon.reader("p", pipeline=text, epochs=1000, shuffle=False, batch=4, job=f"text{time.monotonic_ns()}")
            reader.wait_lines(1)
            found = daemon.objects("jobs")[0]["pipeline"]
            reader.process.terminate()
            reader.finish()
            if "resize" not in text:
                equal(found, printed)
            first, again = (served(daemon, each, seed=4) for each in (text, found))
            equal([line["fields"] for line in first], [line["fields"] for line in again])
    table.done()


@case("mixing, padding and functions are for other fields of a pipeline with a collation of a plug-in")
def _(box):
    daemon = daemon_of(box, workers=2)
    lines = served(daemon, f"a=image: {WHOLE} plugin(blocks.centered); image: {WHOLE} to(float32) mixup(alpha=1.0); "
                           "label", seed=2)
    equal(hashes(lines, "a"), all_centered(list(range(N)), 4))
    alone = served(daemon, f"a=image: {WHOLE}; image: {WHOLE} to(float32) mixup(alpha=1.0); label", seed=2)
    equal(len(lines), len(alone))


@case("a trainer gets it as one array, also beside functions that get samples and whole batches, and whose processes end")
def _(box):
    need("numpy")
    daemon = daemon_of(box, workers=2)
    trainer(box, daemon, f"""
        STEPS = "{WHOLE}"
        def checked(batch, begin, name="image", plain="b"):
            image, other = batch[name], batch[plain].astype(numpy.float64)
            assert image.dtype == numpy.float32 and image.shape == (len(other), {HEIGHT}, {WIDTH}, 3), image.shape
            wanted = ((other - other.sum(axis=0) / len(other)) / 255.0).astype(numpy.float32)
            assert image.tobytes() == wanted.tobytes(), (begin, abs(image - wanted).max())
        def load(text, **more):
            return dlclient.Loader("p", batch_size=4, pipeline=text, copy=True, as_tuple=False, shuffle=False, **more)
        with load(f"image: {{STEPS}} plugin(blocks.centered); b=image: {{STEPS}}") as loader:
            sizes = [(checked(batch, 0), len(batch["b"]))[1] for batch in loader]
        assert sizes == [4, 4, 4, 1], sizes
        def whole(c):
            if c[0, 0, 0, 0] % 2 and not os.path.exists("{box.path('ended')}"):
                open("{box.path('ended')}", "w").close()
                os._exit(3)
            c[...] = 255 - c
        def single(d):
            d[...] = d // 2
        text = (f"image: {{STEPS}} plugin(blocks.centered); b=image: {{STEPS}}; c=image: {{STEPS}} python(whole, batch=true); "
                f"d=image: {{STEPS}} python(single)")
        for _ in range(2):
            with load(text, workers={{"whole": whole, "single": single}}, n_workers=2) as loader:
                sizes = []
                for batch in loader:
                    checked(batch, sizes)
                    assert (batch["c"] == 255 - batch["b"]).all() and (batch["d"] == batch["b"] // 2).all()
                    sizes.append(len(batch["b"]))
            assert sizes == [4, 4, 4, 1], sizes
        assert os.path.exists("{box.path('ended')}"), "no process has ended"
        """)


@case("bits do not depend on workers that come and go, nor on where decoders are")
def _(box):
    text = f"random_resized_crop({HEIGHT}:{WIDTH}) hflip(0.5) plugin(blocks.salt, 0.2) plugin(blocks.centered)"
    wanted = None
    for settings in ({"workers": 1}, {"workers": 4}, {"workers": 2, "isolation": "process"}):
        daemon = daemon_of(box, **settings)
        lines = hashes(served(daemon, text, epochs=4, seed=6, shuffle=True))
        wanted = wanted or lines
        equal(lines, wanted, str(settings))
        equal(daemon.dlctl("check-steps", "p", "--pipeline", text, "--same-batches", "--batch", 4).returncode, 0)
        daemon.stop()


# ---- what goes wrong -------------------------------------------------------------------------------------------------

@case("a collation that fails, crashes, hangs or exits ends its own job, with its sentence and the batch; others go on")
def _(box):
    daemon, table = daemon_of(box, workers=2, plugin_timeout=1), Table()
    plain = [sha256(identity_pixels(number, WIDTH, HEIGHT)) for number in range(N)]
    for does, part in (("crash", "has ended its process, which was ended by signal 11"),
                       ("exit", "has ended its process, which exited with status 7"),
                       ("hang", "did not come back within 1 seconds"),
                       ("scribbles", "was ended by signal 11"), ("beyond", "was ended by signal"),
                       ("fails", "collations.bad: has 4 pictures, more are needed"),
                       ("silent", "collations.bad: failed without saying why")):
        for on_error in ("fail", "skip"):
            with table.row((does, on_error)):
                beside = daemon.reader("p", pipeline=f"{WHOLE} plugin(collations.bad)", shuffle=False, epochs=20, batch=4,
                                       job=f"beside {does} {on_error}")
                reader = daemon.reader("p", pipeline=f"{WHOLE} plugin(collations.bad, {does}, at=4)", shuffle=False, batch=4,
                                       on_error=on_error, job=f"{does} {on_error}")
                status, lines = reader.finish()
                equal((status, indices(lines)), (1, [0, 1, 2, 3]))
                equal(hashes(lines), plain[:4])
                contains(reader.errors(), "sample 4", "the batch of 4 samples that begins with it", "plug-in collation collations.bad",
                         part)
                equal(hashes(beside.good()), plain * 20, "the job beside it")
    table.done()


@case("a process that is killed over a batch gets it once more, and the bits stay")
def _(box):
    daemon = daemon_of(box, workers=1, environment={"PLUGIN_MARK": box.path("mark")})
    lines = served(daemon, f"{WHOLE} plugin(collations.bad, killed_once)")
    equal(hashes(lines), [sha256(identity_pixels(number, WIDTH, HEIGHT)) for number in range(N)])
    assert os.path.islink(box.path("mark")), "nothing was killed"


@case("a form that is impossible, or too large for a batch, is refused when the client attaches")
def _(box):
    daemon, table = daemon_of(box, workers=1, memory_limit="256MiB"), Table()
    for form, *parts in (("negative", "column 25", "collations.odd: wants to deliver an array that is impossible or too large"),
                         ("huge", "impossible or too large"), ("unknown", "impossible or too large"),
                         ("dims", "impossible or too large"), ("refuses", "collations.odd: does not like these samples"),
                         ("large", "batch_size: 4 samples"), ("crash", "signal 6"),
                         ("hang", "did not come back within 5 seconds")):
        with table.row(form):
            daemon.refused("p", *parts, pipeline=f"{WHOLE} plugin(collations.odd, {form})", batch=4)
    with table.row("batch"):
        daemon.refused("p", "batch_size: 300 samples and what collations of plug-ins make of them take",
                       "64.0 MiB are allowed", "smaller batch", pipeline="resize([128, 128]) plugin(blocks.centered)", batch=300)
    table.done()
    equal(len(served(daemon, CENTERED)), N)


@case("a batch that needs more memory than a worker has waits for it, and has the same bits")
def _(box):
    daemon = daemon_of(box, workers=3, memory_limit="256MiB", n=N)
    text = "resize([420, 420]) plugin(blocks.centered)"  # 33 MiB a batch, of 64 that workers may borrow together
    wanted = hashes(served(daemon, text, batch=N, epochs=12))
    equal(wanted[N:], wanted[:N] * 11)
    waits = next(int(fact["value"]) for fact in daemon.status()["counters"] if fact["name"] == "n_scratch_waits")
    assert waits > 0, "no batch has waited"
    daemon.stop()
    daemon = daemon_of(box, workers=1)
    equal(hashes(served(daemon, text, batch=N)), wanted[:N])


@case("what cannot stand together with a collation of a plug-in is refused with a sentence")
def _(box):
    daemon, table = daemon_of(box), Table()
    for text, *parts in (
            (f"{WHOLE} to(float32) mixup(alpha=1.0) plugin(blocks.centered)", "mixup and the collation blocks.centered", "leave one of them out"),
            (f"{WHOLE} plugin(blocks.centered) mixup(alpha=1.0)", "blocks.centered is a collation", "it stands last in its part"),
            (f"{WHOLE} plugin(blocks.centered) pad", "column 25", "blocks.centered is a collation", "it stands last"),
            (f"{WHOLE} pad plugin(blocks.centered)", "pad and the collation blocks.centered"),
            (f"{WHOLE} plugin(blocks.centered) plugin(blocks.mosaic)", "column 25", "it stands last"),
            (f"{WHOLE} plugin(blocks.centered) plugin(blocks.centered)", "column 25", "it stands last"),
            ("plugin(blocks.centered) center_crop(4)", "column 8", "it stands last"),
            (f"{WHOLE} python(f) plugin(blocks.centered)", "the collation blocks.centered", "not what python(f) delivers"),
            (f"{WHOLE} plugin(blocks.centered) python(f)", "it stands last"),
            (f"a=image, b=image: {WHOLE} plugin(blocks.centered)", "column 43", "for one field", "a with b"),
            (f"image, label: {WHOLE} plugin(blocks.centered)", "label"),
            ("plugin(blocks.centered)", "samples of several shapes"),
            (f"{WHOLE} to(float32) plugin(blocks.centered)", "column 37", "blocks.centered: works on pictures of uint8"),
            (f"{WHOLE} plugin(blocks.centered, scale=0)", 'scale: "0" is not allowed'),
            (f"{WHOLE} plugin(blocks.centred)", 'did you mean "centered"'),
            (f"{WHOLE} blocks.centered(3)", "write plugin(blocks.centered)")):
        with table.row(text):
            daemon.refused("p", *parts, pipeline=text, batch=4)
    table.done()


main()
