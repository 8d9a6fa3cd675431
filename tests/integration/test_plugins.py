#!/usr/bin/env python3
"""Plug-ins: compiled against dlplugin.h alone, loaded by the name that the configuration has, and run in processes of
their own. What they do wrong costs the sample that they had."""
import hashlib
import os
import random
import shutil
import signal
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import (Table, case, contains, equal, identity_pixels, indices, main, philox, png, within,
                     write)
from plugins import PARALLEL, PER_WORKER, SERIAL, SOURCES, blk, blocks, compiled

WIDTH, HEIGHT = 20, 12
WHOLE = f"center_crop({HEIGHT}:{WIDTH})"
ODD = {"no symbol": 1, "future": 2, "wrong size": 3, "small": 4, "other name": 5, "no threads": 6, "bad step": 7,
       "twice": 8, "fails": 9, "crashes": 10, "hangs": 11, "no run": 12, "bad default": 13, "no version": 14, "no collate": 15,
       "nowhere": 16, "changes": 17}


def daemon_of(box, folder, plugins, n=12, **settings):
    data = box.path("p")
    if not os.path.exists(data):
        box.folder_of_pictures("p", n, width=WIDTH, height=HEIGHT)
    return box.daemon({"p": data}, plugins=plugins, plugin_dirs=folder, **settings)


def hashes(lines):
    return [line["fields"]["image"]["sha256"] for line in lines]


def served(daemon, pipeline, **more):
    return daemon.read("p", pipeline=pipeline, shuffle=False, job=f"job{time.monotonic_ns()}", **more)


# ---- what the example's steps do, in Python ------------------------------------------------------------------------

def mosaic(pixels, size):
    out = bytearray(pixels)
    for top in range(0, HEIGHT, size):
        for left in range(0, WIDTH, size):
            places = [(y * WIDTH + x) * 3 for y in range(top, min(top + size, HEIGHT))
                      for x in range(left, min(left + size, WIDTH))]
            for channel in range(3):
                mean = (sum(pixels[at + channel] for at in places) + len(places) // 2) // len(places)
                for at in places:
                    out[at + channel] = mean
    return bytes(out)


def words(seed, epoch, sample, place):
    for block in range(1 << 16):
        yield from philox(seed, (place << 16 | block, epoch, sample, 0))


def salt(pixels, p, seed, epoch, sample, place):
    out, drawn = bytearray(pixels), words(seed, epoch, sample, place)
    for at in range(0, len(pixels), 3):
        is_hit = ((next(drawn) << 32 | next(drawn)) >> 11) * 2.0 ** -53 < p
        value = 255 if next(drawn) >> 31 else 0
        if is_hit:
            out[at:at + 3] = bytes([value]) * 3
    return bytes(out)


def luma(pixels):
    return struct.pack(f"={len(pixels) // 3}f", *((299 * pixels[at] + 587 * pixels[at + 1] + 114 * pixels[at + 2]) /
                                                 1000.0 / 255.0 for at in range(0, len(pixels), 3)))


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@case("the example's steps do what they say, and draw by seed, epoch and sample")
def _(box):
    folder = blocks(box)
    pixels = [identity_pixels(number, WIDTH, HEIGHT) for number in range(12)]
    daemon = daemon_of(box, folder, "blocks", workers=3)
    equal(hashes(served(daemon, f"{WHOLE} plugin(blocks.mosaic, 5)")), [sha256(mosaic(each, 5)) for each in pixels])
    equal(hashes(served(daemon, f"{WHOLE} plugin(blocks.luma)")), [sha256(luma(each)) for each in pixels])
    for epoch in range(2):
        wanted = [sha256(salt(mosaic(each, 8), 0.3, 7, epoch, number, 0x9000)) for number, each in enumerate(pixels)]
        lines = served(daemon, f"{WHOLE} plugin(blocks.mosaic) plugin(blocks.salt, p=0.3)", seed=7, epochs=2)
        equal(hashes(line for line in lines if line["epoch"] == epoch), wanted, f"epoch {epoch}")
    daemon.stop()


@case("the shape and the type that a step delivers are those of the batch, and several views draw differently")
def _(box):
    daemon = daemon_of(box, blocks(box), "blocks")
    field = served(daemon, f"{WHOLE} plugin(blocks.luma)")[0]["fields"]["image"]
    equal((field["dtype"], field["shape"]), ("float32", [HEIGHT, WIDTH]))
    lines = served(daemon, f"{WHOLE} plugin(blocks.salt, p=0.5) views(2)")
    assert all(line["fields"]["image"]["sha256"] != line["fields"]["image_2"]["sha256"] for line in lines)
    lines = served(daemon, f"image: {WHOLE} plugin(blocks.mosaic, 3); small=image: resize(4:4) plugin(blocks.luma); label")
    equal(sorted(lines[0]["fields"]), ["image", "label", "small"])


@case("plug-ins follow other fields and other steps, whatever makes arrays of one shape")
def _(box):
    folder = compiled(box, "states", os.path.join(SOURCES, "states.c"), f"-DTHREADS={PARALLEL}", '-DNAME="states"')
    daemon = daemon_of(box, folder, "states")
    for steps in ("resize(8:8)", "random_resized_crop(8) rand_augment()", "center_crop(8) layout(nchw)", "decode(mode=L) resize(9:9)"):
        equal(len(served(daemon, f"{steps} plugin(states.shift)")), 12, steps)


@case("a field with a plug-in beside others of the same picture, which share their decoding, has its own pixels")
def _(box):
    daemon = daemon_of(box, blocks(box), "blocks")
    lines = served(daemon, "image: random_crop(8) views(2); b=image: random_crop(8) plugin(blocks.mosaic, 1); "
                           "c=image: random_crop(8); d=image: random_crop(8) plugin(blocks.mosaic, 1) views(2)", seed=3)
    alone = served(daemon, "image: random_crop(8) views(2); b=image: random_crop(8); c=image: random_crop(8); "
                           "d=image: random_crop(8) views(2)", seed=3)
    for name in ("image", "image_2", "b", "c", "d", "d_2"):
        equal([line["fields"][name]["sha256"] for line in lines], [line["fields"][name]["sha256"] for line in alone], name)


@case("the pictures of five_crop and ten_crop go through plug-ins one by one")
def _(box):
    folder, table = blocks(box), Table()
    contents = [blk(number, WIDTH, HEIGHT) for number in range(6)]
    daemon = daemon_of_files(box, folder, "blocks", contents)
    for first, steps, last in (("", "five_crop(8)", "plugin(blocks.mosaic, 1)"), ("plugin(blocks.unpack) ", "ten_crop(8)", ""),
                               ("plugin(blocks.unpack) ", "five_crop(7)", "plugin(blocks.mosaic, 1)")):
        with table.row((first, steps, last)):
            name = "p" if first else "same"
            found = daemon.read(name, pipeline=f"{first}{steps} {last}", shuffle=False, job=f"f{time.monotonic_ns()}")
            wanted = daemon.read("same", pipeline=steps, shuffle=False, job=f"w{time.monotonic_ns()}")
            for field in wanted[0]["fields"]:
                if field != "label":
                    equal([line["fields"][field]["sha256"] for line in found],
                          [line["fields"][field]["sha256"] for line in wanted], field)
    table.done()


@case("plug-ins of any thread model are opened, prepared and closed as dlplugin.h says")
def _(box):
    for name, threads in (("parallel", PARALLEL), ("serial", SERIAL), ("perworker", PER_WORKER)):
        folder = compiled(box, name, os.path.join(SOURCES, "states.c"), f"-DTHREADS={threads}", f'-DNAME="{name}"')
    expected = None
    daemon = daemon_of(box, folder, "parallel, serial perworker", workers=4)
    for name in ("parallel", "serial", "perworker"):
        found = hashes(served(daemon, f"{WHOLE} plugin({name}.shift, by=3)", epochs=3, seed=9))
        expected = expected or states_of(epochs=3, seed=9, by=3)
        equal(found, expected, name)
    daemon.stop()


def states_of(epochs, seed, by):
    """What states.c makes of all samples."""
    out = []
    for epoch in range(epochs):
        for number in range(12):
            pixels = bytes((value + by) % 256 for value in identity_pixels(number, WIDTH, HEIGHT))
            head = struct.pack("=IBBBB", next(words(seed, epoch, number, 0x8000)), number, epoch, 1, 1)
            out.append(sha256(head + pixels[8:]))
    return out


@case("a plug-in of version 1 runs in this daemon as it is, beside new ones")
def _(box):
    folder = compiled(box, "old", os.path.join(SOURCES, "v1", "old.c"), header=os.path.join(SOURCES, "v1"))
    blocks(box)
    pixels = [identity_pixels(number, WIDTH, HEIGHT) for number in range(12)]
    daemon = daemon_of(box, folder, "old blocks")
    equal(hashes(served(daemon, f"{WHOLE} plugin(old.exclusive, 170) plugin(blocks.mosaic, 1)")),
          [sha256(bytes(value ^ 170 for value in each)) for each in pixels])
    daemon.stop()


@case("a plug-in of version 2 runs in this daemon as it is, its codec too")
def _(box):
    folder = compiled(box, "old2", os.path.join(SOURCES, "v2", "old2.c"), header=os.path.join(SOURCES, "v2"))
    pixels = [identity_pixels(number, WIDTH, HEIGHT) for number in range(12)]
    daemon = daemon_of(box, folder, "old2")
    equal(hashes(served(daemon, f"{WHOLE} plugin(old2.exclusive, 170)")),
          [sha256(bytes(value ^ 170 for value in each)) for each in pixels])
    lengths = [len(png(WIDTH, HEIGHT, each)) for each in pixels]
    equal(hashes(served(daemon, "plugin(old2.lengths, n=3)")),
          [sha256(struct.pack("=I", length) * 3) for length in lengths])
    daemon.stop()


# ---- codecs --------------------------------------------------------------------------------------------------------

def daemon_of_files(box, folder, plugins, contents, **settings):
    """A dataset of these files, whatever they are, called pictures; another of the same pixels as PNG, if they are BLK1."""
    data, same = box.path("files"), box.path("same")
    for number, content in enumerate(contents):
        write(os.path.join(data, "c", f"{number:03d}.png"), content)
        if content[:4] == b"BLK1":
            height, width = struct.unpack("<II", content[4:12])
            write(os.path.join(same, "c", f"{number:03d}.png"), png(width, height, content[12:]))
    os.makedirs(os.path.join(same, "c"), exist_ok=True)
    return box.daemon({"p": data, "same": same}, plugins=plugins, plugin_dirs=folder, **settings)


@case("pictures that a plug-in decodes go through the daemon's steps as the same pictures in a known format")
def _(box):
    folder, table = blocks(box), Table()
    contents = [blk(number, 30 + number, 40 - number) for number in range(12)]
    daemon = daemon_of_files(box, folder, "blocks", contents)
    for steps in ("random_resized_crop(16) hflip(0.5)", "resize(20) center_crop(16) to(float32) normalize([0.5, 0.5, 0.5], [0.2, 0.2, 0.2]) "
                  "layout(nchw)", "center_crop(8)", "random_rotation(30) resize([9, 9])", "center_crop(12) plugin(blocks.mosaic, 3)",
                  "random_crop(12) views(2)", "resize([12, 12]) rand_augment"):
        with table.row(steps):
            found = served(daemon, f"plugin(blocks.unpack) {steps}", seed=3, epochs=2)
            wanted = daemon.read("same", pipeline=steps, seed=3, epochs=2, shuffle=False, job=f"same{time.monotonic_ns()}")
            equal(hashes(found), hashes(wanted))
            if "views" in steps:
                equal([line["fields"]["image_2"]["sha256"] for line in found],
                      [line["fields"]["image_2"]["sha256"] for line in wanted])
    lines = served(daemon, "plugin(blocks.unpack)", batch=1)
    equal([line["fields"]["image"]["shape"] for line in lines], [[40 - number, 30 + number, 3] for number in range(12)])
    equal(hashes(lines), [sha256(content[12:]) for content in contents])
    daemon.stop()
    table.done()


@case("arrays that a plug-in decodes have the shape that it says, and further plug-ins may follow")
def _(box):
    folder = compiled(box, "codecs", os.path.join(SOURCES, "codecs.c"), f"-DTHREADS={SERIAL}")
    compiled(box, "states", os.path.join(SOURCES, "states.c"), f"-DTHREADS={PARALLEL}", '-DNAME="states"')
    contents = [b"x" * (100 + number) for number in range(9)]
    daemon = daemon_of_files(box, folder, "codecs states", contents)
    lines = served(daemon, "image: plugin(codecs.count, n=3); label")
    equal({(line["fields"]["image"]["dtype"], tuple(line["fields"]["image"]["shape"])) for line in lines}, {("uint16", (3, 2))})
    equal(hashes(lines), [sha256(struct.pack("=H", 100 + number) * 6) for number in range(9)])
    equal(len(served(daemon, "plugin(codecs.count, n=3) plugin(states.shift)")), 9)
    daemon.stop()


@case("a file that a plug-in's codec refuses, measures wrongly or crashes over is damaged, with its name")
def _(box):
    folder, table = compiled(box, "codecs", os.path.join(SOURCES, "codecs.c"), f"-DTHREADS={PARALLEL}"), Table()
    blocks(box)
    bad = {1: (b"crash", "plug-in codec codecs.squares has ended its process", "signal 7"),
           3: (b"abort", "plug-in codec codecs.squares has ended its process", "signal 6"),
           4: (b"bad", "plug-in codec codecs.squares: is bad"), 5: (b"empty", "measures 4 x 0 pixels"),
           7: (b"huge", "4000000000 x 4000000000 pixels", "max_pixels allows")}
    daemon = daemon_of_files(box, folder, "codecs blocks", [bad.get(number, (b"good",))[0] for number in range(9)])
    equal(indices(served(daemon, "plugin(codecs.squares) resize([3, 3])", on_error="skip")), [0, 2, 6, 8])
    message = errors_of(daemon)
    for number, (_, *parts) in bad.items():
        with table.row(number):
            contains(message, f"{number:03d}.png", *parts)
    table.done()
    daemon.stop()
    contents = [blk(0, 9, 9), blk(1, 9, 9)[:-1], b"", b"BLK", blk(4, 0, 9), blk(5, 9, 9)]
    daemon = daemon_of_files(box, folder, "blocks", contents)
    equal(indices(served(daemon, "plugin(blocks.unpack) center_crop(4)", on_error="skip")), [0, 5])
    contains(errors_of(daemon), "ends after 242 of 243 bytes", "does not begin with BLK1", "measures 0 x 9 pixels")
    daemon.stop()


@case("a mistake with a codec of a plug-in is named")
def _(box):
    folder, table = compiled(box, "codecs", os.path.join(SOURCES, "codecs.c"), f"-DTHREADS={PARALLEL}"), Table()
    blocks(box)
    daemon = daemon_of_files(box, folder, "codecs blocks", [b"x"] * 3)
    for text, *parts in (
            ("center_crop(4) plugin(blocks.unpack)", "column 23", "blocks.unpack is a codec", "it stands first"),
            ("plugin(blocks.unpack) plugin(codecs.count)", "column 30", "codecs.count is a codec", "it stands first"),
            ("plugin(codecs.count) resize(4)", "column 8", "is an array", "only further steps of plug-ins"),
            ("plugin(blocks.unpack) resise(4)", "column 23", 'unknown step "resise"', 'did you mean "resize"'),
            ("plugin(blocks.unpack) raw", "leave raw out"),
            ("plugin(blocks.unpack) decode(mode=L)", "leave mode and exif out"),
            ("plugin(codecs.count, 1001)", "a whole number from 1 to 1000"),
            ("label: plugin(blocks.unpack)", "is not stored bytes"),
            ("plugin(blocks.unpack) plugin(blocks.mosaic)", "samples of several shapes"),
            ("image: plugin(blocks.unpac) resize(4)", 'did you mean "unpack"')):
        with table.row(text):
            daemon.refused("p", *parts, pipeline=text)
    table.done()


# ---- texts ---------------------------------------------------------------------------------------------------------

@case("a mistake in the text of a plug-in's step is named, with what was meant")
def _(box):
    folder = blocks(box)
    compiled(box, "odd", os.path.join(SOURCES, "odd.c"), f"-DKIND={ODD['bad default']}")
    daemon, table = daemon_of(box, folder, "blocks odd"), Table()
    for text, *parts in (
            (f"{WHOLE} plugin(block.mosaic)", "column 27", 'there is no plug-in "block"', 'did you mean "blocks"', "has blocks"),
            (f"{WHOLE} plugin(blocks.mosiac)", "column 34", 'nothing called "mosiac"', 'did you mean "mosaic"', "mosaic, salt, luma, unpack, album"),
            (f"{WHOLE} plugin(blocks.mosaic, sice=3)", 'no argument "sice"', 'did you mean "size"'),
            (f"{WHOLE} plugin(blocks.mosaic, size=0)", 'size: "0"', "a whole number from 1 to 256"),
            (f"{WHOLE} plugin(blocks.mosaic, size=2.5)", 'size: "2.5"', "a whole number from 1 to 256"),
            (f"{WHOLE} plugin(blocks.mosaic, size=)", 'size: ")"', "a whole number"),
            (f"{WHOLE} plugin(blocks.salt, p=nan)", 'p: "nan"', "a number from 0 to 1"),
            (f"{WHOLE} plugin(blocks.salt, p=1e999)", 'p: "1e999"', "a number from 0 to 1"),
            (f"{WHOLE} plugin(blocks.salt, color=blak)", 'color: "blak"', "both, black or white", 'did you mean "black"'),
            (f"{WHOLE} plugin(blocks.salt, 0.1, white, 3)", "no more arguments"),
            (f"{WHOLE} plugin(blocks.salt, p=0.1, p=0.2)", "p of salt is given twice"),
            (f"{WHOLE} plugin(blocks.salt, color=white, 0.2)", "key=value"),
            (f"{WHOLE} plugin(blocks)", '"."', "the name of one of its steps"),
            (f"{WHOLE} plugin(blocks.)", 'nothing called ""'),
            (f"{WHOLE} plugin()", "the names of a plug-in and its step"),
            (f"{WHOLE} plugin", "blocks.mosaic, size=8"),
            (f"{WHOLE} plugin(blocks.mosaic", '"," or ")"'),
            (f"{WHOLE} plugin(/etc/blocks.mosaic)", "the names of a plug-in"),
            (f"{WHOLE} plugin(blocks.mosaic) hflip(0.5)", "steps of the daemon stand before"),
            (f"{WHOLE} plugin(odd.step)", "a default for size that it does not allow", '"many"'),
            (f"{WHOLE} to(float32) plugin(blocks.mosaic)", "blocks.mosaic: works on pictures of uint8"),
            (f"{WHOLE} " + "plugin(blocks.mosaic) " * 9, "up to 8 steps of plug-ins"),
            (f"{WHOLE} blocks.mosaic(8)", "column 20", "blocks.mosaic is a step of a plug-in: write plugin(blocks.mosaic)"),
            ("image: blocks.unpack resize(4)", "column 8", "write plugin(blocks.unpack)"),
            (f"{WHOLE} block.mosaic(8)", 'unknown step "block.mosaic"'),
            ("plugin(blocks.mosaic)", "samples of several shapes"),
            ("raw plugin(blocks.mosaic)", "samples of several shapes"),
            (f"image, label: {WHOLE} plugin(blocks.mosaic)", "field label has a value of its own"),
            ("label: plugin(blocks.mosaic)", "works on pictures")):
        with table.row(text):
            daemon.refused("p", *parts, pipeline=text)
    table.done()


@case("the text that is printed has all arguments, and means the same")
def _(box):
    daemon = daemon_of(box, blocks(box), "blocks")
    reader = daemon.reader("p", pipeline=f"{WHOLE} plugin( blocks.salt ,0.10, color = WHITE)", epochs=1000, shuffle=False)
    reader.wait_lines(1)
    text = daemon.objects("jobs")[0]["pipeline"]
    equal(text, f"{WHOLE} plugin(blocks.salt, p=0.1, color=white)")
    reader.process.terminate()
    equal(hashes(served(daemon, text)), hashes(served(daemon, f"{WHOLE} plugin(blocks.salt, 0.1, white)")))


# ---- what is refused ----------------------------------------------------------------------------------------------

@case("a plug-in that cannot be used is refused with a sentence; the daemon and other plug-ins go on", sanitized=False)
def _(box):
    folder, table = blocks(box), Table()
    for kind, *parts in (
            ("no symbol", 'has no variable "dlplugin"', "DLPLUGIN_EXPORT"),
            ("future", "compiled with version 8 of dlplugin.h", "knows versions up to 3", "update the daemon"),
            ("wrong size", "which no version has", "DLPLUGIN_HEAD"),
            ("no version", "version 0", "which no version has"),
            ("small", "smaller than the"),
            ("other name", 'calls itself "somebody"'),
            ("no threads", "how many threads"),
            ("bad step", 'a step called "no name"'),
            ("twice", "two things called step"),
            ("no run", "a step step that cannot be run"),
            ("no collate", "a collation batch that cannot collate"),
            ("nowhere", "says how many steps, codecs, formats or collations it has, and not where they are"),
            ("fails", "could not begin: the licence of 1999 has run out"),
            ("crashes", "has ended its process, which was ended by signal 6"),
            ("changes", "has changed since the daemon began", "odd.so", "restart the daemon"),
            ("hangs", "did not come back within 5 seconds")):
        compiled(box, "odd", os.path.join(SOURCES, "odd.c"), f"-DKIND={ODD[kind]}")
        with table.row(kind):
            daemon = daemon_of(box, folder, "odd blocks")
            contains(daemon.log(), "the plug-in odd", *parts)
            daemon.refused("p", "column 27", "the plug-in odd", *parts, pipeline=f"{WHOLE} plugin(odd.step)")
            equal({fact["name"]: fact["value"] for fact in daemon.status()["plugins"]},
                  {"odd": "refused", "blocks": "loaded", "blocks.mosaic": "size=8", "blocks.luma": "scale=255",
                   "blocks.salt": "p=0.02, color=both", "blocks.unpack": "",
                   "blocks.album": "", "blocks.centered": "scale=255"})
            served(daemon, f"{WHOLE} plugin(blocks.mosaic)")
            daemon.stop()
    table.done()


@case("only files that no stranger can write are loaded, and only from the folders of the configuration")
def _(box):
    folder, table = blocks(box), Table()
    other = box.path("other")
    os.makedirs(other)
    shutil.copy(os.path.join(folder, "blocks.so"), os.path.join(other, "elsewhere.so"))
    library, rows = os.path.join(folder, "blocks.so"), [
        ("writable file", lambda: os.chmod(library, 0o666), "others than its owner may write to", "blocks.so"),
        ("writable by its group", lambda: os.chmod(library, 0o664), "others than its owner may write to"),
        ("writable folder", lambda: os.chmod(folder, 0o777), "others than its owner may write to", "plugins"),
        ("not a library", lambda: open(library, "w", encoding="ascii").write("no"), "cannot be loaded", "blocks.so"),
        ("a folder", lambda: (os.remove(library), os.makedirs(library)), "is not a file"),
        ("none", lambda: (os.rmdir(library)), "was not found", folder),
    ]
    if os.geteuid() == 0:
        rows[:0] = [("a stranger's file", lambda: os.chown(library, 12345, 0), "belongs to user 12345", "blocks.so"),
                    ("a stranger's folder", lambda: (os.chown(library, 0, 0), os.chown(folder, 12345, 0)),
                     "belongs to user 12345", "plugins")]
    for what, spoil, *parts in rows:
        spoil()
        with table.row(what):
            daemon = daemon_of(box, folder, "blocks")
            contains(daemon.log(), "the plug-in blocks", *parts)
            daemon.refused("p", "the plug-in blocks", *parts, pipeline=f"{WHOLE} plugin(blocks.mosaic)")
            daemon.stop()
        if os.geteuid() == 0:
            os.chown(folder, 0, 0)
            if os.path.exists(library):
                os.chown(library, 0, 0)
        os.chmod(folder, 0o755)
        if os.path.isfile(library):
            os.chmod(library, 0o644)
    table.done()
    folder = blocks(box)
    os.symlink(os.path.join(other, "elsewhere.so"), os.path.join(folder, "linked.so"))
    daemon = daemon_of(box, f"{other}:{folder}", "blocks, ../other/elsewhere linked")
    for text, *parts in (("elsewhere.mosaic", 'no plug-in "elsewhere"'), ("linked.mosaic", 'calls itself "blocks"')):
        daemon.refused("p", *parts, pipeline=f"{WHOLE} plugin({text})")
    contains(daemon.log(), '"../other/elsewhere" is not the name of a plug-in')
    served(daemon, f"{WHOLE} plugin(blocks.mosaic)")


@case("links are followed if no stranger can change the way: the folders, the links, and what lies beside them")
def _(box):
    folder, table, places = blocks(box), Table(), {}
    library = os.path.join(folder, "blocks.so")
    for name in ("file", "chain", "middle", "folder", "deep/plugins"):
        places[name] = box.path("ways", name)
        os.makedirs(places[name])
    os.symlink(library, os.path.join(places["file"], "blocks.so"))
    os.symlink("../file/blocks.so", os.path.join(places["chain"], "blocks.so"))
    os.symlink("../file", os.path.join(places["middle"], "way"))
    os.symlink("way/../file/blocks.so", os.path.join(places["middle"], "blocks.so"))
    os.symlink(folder, os.path.join(places["folder"], "way"))
    shutil.copy(library, os.path.join(places["deep/plugins"], "blocks.so"))
    through = os.path.join(places["folder"], "way")
    for what, where, open_folder in (
            ("a link", places["file"], places["file"]), ("a link to a link", places["chain"], places["file"]),
            ("a link on the way of a link", places["middle"], places["middle"]),
            ("a folder that is a link", through, places["folder"]),
            ("the folder above the folder", places["deep/plugins"], box.path("ways", "deep"))):
        with table.row(what):
            daemon = daemon_of(box, where, "blocks")
            served(daemon, f"{WHOLE} plugin(blocks.mosaic)")
            daemon.stop()
        os.chmod(open_folder, 0o777)
        with table.row((what, "others may replace it")):
            daemon = daemon_of(box, where, "blocks")
            daemon.refused("p", "the plug-in blocks", "others than its owner may write to",
                           os.path.basename(open_folder),
                           pipeline=f"{WHOLE} plugin(blocks.mosaic)")
            daemon.stop()
        os.chmod(open_folder, 0o1777)
        if os.geteuid() == 0 and where != places["deep/plugins"]:
            link = through if where == through else os.path.join(open_folder, "blocks.so")
            os.chown(link, 12345, 0, follow_symlinks=False)
            with table.row((what, "a stranger's, where others can only add")):
                daemon = daemon_of(box, where, "blocks")
                daemon.refused("p", "the plug-in blocks", os.path.basename(link), "belongs to user 12345",
                               pipeline=f"{WHOLE} plugin(blocks.mosaic)")
                daemon.stop()
            os.chown(link, 0, 0, follow_symlinks=False)
        os.chmod(open_folder, 0o755)
    table.done()


@case("a file that was replaced is not run beside the old one")
def _(box):
    folder = blocks(box)
    daemon = daemon_of(box, folder, "blocks", workers=1)
    blocks(box)
    for pid in plugin_processes(daemon):
        os.kill(pid, signal.SIGKILL)
    daemon.refused("p", "has changed since the daemon began", "restart the daemon", pipeline=f"{WHOLE} plugin(blocks.mosaic)")
    daemon.stop()
    equal(len(served(daemon_of(box, folder, "blocks"), f"{WHOLE} plugin(blocks.mosaic)")), 12)


# ---- processes -----------------------------------------------------------------------------------------------------

def plugin_processes(daemon):
    """The processes with plug-ins in them that the daemon has started."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
                name, _, rest = stat.read().partition("(")[2].rpartition(")")
                if name.startswith("plugin-") and int(rest.split()[1]) == daemon.pid:
                    found.append(int(pid))
        except OSError:
            continue
    return found


def bad(box, **settings):
    mark = box.path("mark")
    folder = compiled(box, "bad", os.path.join(SOURCES, "bad.c"))
    blocks(box)
    return daemon_of(box, folder, "bad blocks", environment={"PLUGIN_MARK": mark}, **settings)


@case("a plug-in that crashes, exits, hangs or fails costs its own sample, with its name; others go on")
def _(box):
    daemon, table = bad(box, workers=2, plugin_timeout=1), Table()
    good = [number for number in range(12) if number != 3]
    plain = hashes(served(daemon, WHOLE))
    for does, part in (("crash", "has ended its process, which was ended by signal 11"),
                       ("exit", "has ended its process, which exited with status 7"),
                       ("hang", "did not come back within 1 seconds"),
                       ("hangs_up", "has ended its process, which hung up"),
                       ("scribbles", "was ended by signal 11"),
                       ("fails", "bad.step: has 3 corners, four are needed"),
                       ("silent", "bad.step: failed without saying why")):
        with table.row(does):
            beside = daemon.reader("p", pipeline=f"{WHOLE} plugin(bad.step)", shuffle=False, epochs=20, job=f"beside {does}")
            lines = served(daemon, f"{WHOLE} plugin(bad.step, {does}, sample=3)", on_error="skip")
            equal(indices(lines), good, "samples")
            equal(hashes(lines), [plain[number] for number in good], "bits")
            equal(hashes(beside.good()), plain * 20, "the job beside it")
            contains(errors_of(daemon), "plug-in step bad.step", part)
    table.done()


def errors_of(daemon):
    return "\n".join(str(entry) for entry in daemon.objects("errors", "p"))


@case("a process that ends and leaves others behind it is noticed at once, and they end with it")
def _(box):
    daemon = bad(box, workers=2, plugin_timeout=600)
    lines = served(daemon, f"{WHOLE} plugin(bad.step, orphans)", on_error="skip")
    equal(indices(lines), [number for number in range(12) if number != 3])
    contains(errors_of(daemon), "has ended its process, which exited with status 5")
    with open(box.path("mark"), encoding="ascii") as mark:
        pids = [int(line) for line in mark]
    equal(len(pids), 3, "tries")
    within(5, lambda: not any(is_running(pid) for pid in pids), "nobody is left of them")


@case("workers that leave take their processes with them, and the bits stay")
def _(box):
    folder = compiled(box, "states", os.path.join(SOURCES, "states.c"), f"-DTHREADS={SERIAL}", '-DNAME="states"')
    blocks(box)
    daemon = daemon_of(box, folder, "states blocks", workers=4)
    text = f"{WHOLE} plugin(states.shift) plugin(blocks.salt, 0.3)"
    wanted = hashes(served(daemon, text, epochs=40))
    reader = daemon.reader("p", pipeline=text, epochs=40, shuffle=False, job="changing")
    for n in (1, 4, 2, 3, 1):
        equal(daemon.dlctl("workers", n).returncode, 0)
        time.sleep(0.1)
    equal(hashes(reader.good()), wanted)
    served(daemon, text)
    within(5, lambda: len(plugin_processes(daemon)) <= 4, "processes: two that answer, one of all, one of the worker")


@case("with on_error = fail the job ends with the sentence of the sample")
def _(box):
    daemon = bad(box, workers=2)
    reader = daemon.reader("p", pipeline=f"{WHOLE} plugin(bad.step, crash)", shuffle=False)
    status, lines = reader.finish()
    equal((status, indices(lines)), (1, [0, 1, 2]))
    contains(reader.errors(), "sample 3", "000003.png", "plug-in step bad.step has ended its process", "signal 11")


@case("what a plug-in in a process does else harms nobody: it forks, prints a gigabyte, is killed once")
def _(box):
    daemon = bad(box, workers=2)
    plain = hashes(served(daemon, WHOLE))
    for does in ("forks", "prints", "killed_once"):
        equal(hashes(served(daemon, f"{WHOLE} plugin(bad.step, {does})")), plain, does)
    assert os.path.exists(box.path("mark")), "nothing was killed"
    assert len(daemon.log()) < 10000, "what it prints is in the log"
    equal(daemon.objects("errors", "p"), [])


@case("an impossible form is refused when the client attaches, and so is a plug-in that crashes then")
def _(box):
    daemon, table = bad(box, workers=1), Table()
    for form, part in (("negative", "impossible or too large"), ("huge", "impossible or too large"),
                       ("unknown", "impossible or too large"), ("dims", "impossible or too large"), ("none", "impossible or too large"),
                       ("refuses", "bad.odd: does not like this input"), ("crash", "signal 6"),
                       ("hang", "did not come back within 5 seconds")):
        with table.row(form):
            daemon.refused("p", "column 27", part, pipeline=f"{WHOLE} plugin(bad.odd, {form})")
    table.done()
    served(daemon, f"{WHOLE} plugin(bad.step)")


@case("kill -9 of plug-ins' processes at random moments: every sample comes once, with its bits", sanitized=False)
def _(box):
    daemon = daemon_of(box, blocks(box), "blocks", workers=3, n=60)
    text = f"{WHOLE} plugin(blocks.mosaic, 4) plugin(blocks.salt, 0.2)"
    wanted = hashes(served(daemon, text, epochs=30, batch=4))
    n_killed = 0
    for again in range(50):
        reader = daemon.reader("p", pipeline=text, epochs=30, batch=4, shuffle=False, job=f"killed {again}")
        while reader.process.poll() is None:
            time.sleep(0.15)  # a sample is given up after its third process, and starting one takes a while on a busy machine
            pids = plugin_processes(daemon)
            if pids:
                os.kill(random.choice(pids), signal.SIGKILL)
                n_killed += 1
        equal(hashes(reader.good()), wanted)
        if n_killed >= 10:
            break
    assert n_killed >= 10, n_killed


@case("processes are as many as workers use, and end with the daemon, however it ends")
def _(box):
    daemon = bad(box, workers=2, plugin_timeout=600)
    served(daemon, f"{WHOLE} plugin(blocks.mosaic)", epochs=5)
    assert 2 <= len(plugin_processes(daemon)) <= 4, plugin_processes(daemon)
    for pid in plugin_processes(daemon):
        with open(f"/proc/{pid}/oom_score_adj", encoding="ascii") as score:
            equal(score.read().strip(), "1000", "which process the kernel ends first when memory is short")
        equal(sorted(int(fd) for fd in os.listdir(f"/proc/{pid}/fd")), [0, 1, 2, 3], "what it has open")
    reader = daemon.reader("p", pipeline=f"{WHOLE} plugin(bad.step, hang)", shuffle=False)
    reader.wait_lines(3)
    pids = plugin_processes(daemon)
    daemon.stop()
    within(5, lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), "all processes have ended")
    daemon.start()
    served(daemon, f"{WHOLE} plugin(blocks.mosaic)")
    pids = plugin_processes(daemon)
    daemon.kill()
    within(5, lambda: not any(is_running(pid) for pid in pids), "all processes have ended")
    daemon.start()


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@case("a daemon without plug-ins says so, and --check-config knows the keys")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 3)})
    daemon.refused("p", 'there is no plug-in "blocks"', "this daemon has none", pipeline="center_crop(4) plugin(blocks.mosaic)")
    equal(daemon.status()["plugins"], [])


main()
