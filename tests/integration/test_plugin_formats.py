#!/usr/bin/env python3
"""Formats of plug-ins: they say once where the samples of a dataset lie, and the daemon does all else as ever. What
they say wrongly, or do wrongly, is the dataset's error, with file, byte and sentence."""
import hashlib
import os
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import DAEMON, Table, case, contains, equal, identity_pixels, indices, main, png, write
from plugins import PARALLEL, PER_WORKER, SERIAL, SOURCES, blk, blocks, compiled


def formats(box, threads=PARALLEL):
    return compiled(box, "formats", os.path.join(SOURCES, "formats.c"), f"-DTHREADS={threads}", "-Wall", "-Wextra",
                    "-Werror")


def album(numbers, width=20, height=12):
    """A file of the example's format, whose labels are twice the numbers."""
    pictures = [(number, blk(number, width, height)) for number in numbers]
    return b"ALB1" + b"".join(struct.pack("<II", 2 * number, len(picture)) + picture for number, picture in pictures)


def tail(rows):
    """A file of formats.tail: of rows (name, text, numbers or None)."""
    body, table = b"what comes first", b""
    for name, text, numbers in rows:
        table += name.encode().ljust(8, b"\0") + struct.pack("<QQ", len(body), len(text))
        body += text
        packed = b"" if numbers is None else struct.pack(f">{len(numbers)}h", *numbers)
        table += struct.pack("<QQ", 2**64 - 1 if numbers is None else len(body), len(packed))
        body += packed
    return body + table + struct.pack("<Q", len(rows))


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def served(daemon, name, **more):
    return daemon.read(name, shuffle=False, job=f"job{time.monotonic_ns()}", **more)


def keys_of(lines):
    return [line["fields"]["__key__"]["sha256"] for line in lines]


def digest_of(daemon, name):
    return {each["name"]: each for each in daemon.objects("datasets")}[name]["digest"]


@case("the example's albums are a dataset like the same pictures in a known format")
def _(box):
    folder, files = blocks(box), {"b.alb": range(4, 9), "a.alb": range(4), "c.alb": [], "d.alb": [9], "no.txt": [77]}
    for name, numbers in files.items():
        write(box.path("albums", name), album(numbers))
    os.makedirs(box.path("albums", "more.alb"))
    for number in range(10):
        write(box.path("same", "c", f"{number}.png"), png(20, 12, identity_pixels(number, 20, 12)))
    steps = "random_resized_crop(8) hflip(0.5)"
    digests = set()
    daemon = box.daemon({"albums": {"path": box.path("albums"), "format": "plugin(blocks.album)"},
                         "one": {"path": box.path("albums", "{b,a}.alb"), "format": "plugin( blocks.album )"},
                         "same": box.path("same")}, plugins="blocks", plugin_dirs=folder, workers=3)
    found = served(daemon, "albums", pipeline=f"image: plugin(blocks.unpack) {steps}; label", seed=5, epochs=2)
    wanted = served(daemon, "same", pipeline=steps, seed=5, epochs=2)
    equal([line["fields"]["image"]["sha256"] for line in found],
          [line["fields"]["image"]["sha256"] for line in wanted])
    equal([line["fields"]["label"]["value"] for line in found], [2 * number for number in range(10)] * 2)
    lines = served(daemon, "one", pipeline="image: plugin(blocks.unpack) center_crop(4); label")
    equal([line["fields"]["label"]["value"] // 2 for line in lines], [4, 5, 6, 7, 8, 0, 1, 2, 3])
    shuffled = daemon.read_ranks("albums", world=3, epochs=2, seed=1, batch=2,
                                 pipeline="image: plugin(blocks.unpack) center_crop(4); label")
    equal(sorted(index for lines in shuffled for index in indices(lines)),
          sorted(index for lines in daemon.read_ranks("same", world=3, epochs=2, seed=1, batch=2,
                                                      pipeline="center_crop(4)", job="other")
                 for index in indices(lines)))
    digests.add(digest_of(daemon, "albums"))
    daemon.stop()
    equal(len(digests), 1, "digests")


@case("fields of every kind, names, and what a format keeps from one window and one file to the next")
def _(box):
    rows = [(f"n{number}", f"text {number} ü".encode(), None if number % 3 == 1 else range(number)) for number in range(9)]
    write(box.path("t", "1.tail"), tail(rows[:4]))
    write(box.path("t", "2.tl"), tail([]))
    write(box.path("t", "3.tail"), tail(rows[4:]))
    for threads in (PARALLEL, SERIAL):
        folder = formats(box, threads)
        daemon = box.daemon({"t": {"path": box.path("t"), "format": "plugin(formats.tail, yes)"},
                             "plain": {"path": box.path("t"), "format": "plugin(formats.tail)"}},
                            plugins="formats", plugin_dirs=folder)
        lines = served(daemon, "t", pipeline="text; pair; numbers: ragged; file; bag: raw; row; ups; __key__", batch=1)
        equal([line["fields"]["text"]["text"] for line in lines], [text.decode() for _, text, _ in rows])
        equal([line["fields"]["row"]["value"] for line in lines], list(range(9)), "state over files")
        equal([line["fields"]["file"]["text"] for line in lines], ["1.tail"] * 4 + ["3.tail"] * 5)
        equal(keys_of(lines), [sha256(f"rows/n{number}".encode()) for number in range(9)])
        for number, line in enumerate(lines):
            fields, values = line["fields"], rows[number][2]
            equal(fields["pair"]["sha256"], sha256(struct.pack("<2f", number, -0.5)))
            if values is None:
                equal(fields["numbers"], None)
            else:
                equal((fields["numbers"]["dtype"], fields["numbers"]["shape"], fields["numbers"]["sha256"]),
                      ("int16", [len(values)], sha256(struct.pack(f"<{len(values)}h", *values))))
            equal(fields["bag"] and fields["bag"]["sha256"], None if number % 2 else sha256(b"bag"))
            equal((fields["ups"]["dtype"], fields["ups"]["shape"]), ("uint8", [number % 4, 2]))
        names = [f"1.tail:{row}" for row in range(4)] + [f"3.tail:{row}" for row in range(5)]
        equal(keys_of(served(daemon, "plain", pipeline="__key__")), [sha256(name.encode()) for name in names])
        daemon.stop()


@case("what a format says or does wrongly is the dataset's error, with the file, the byte and a sentence")
def _(box):
    folder, table = formats(box), Table()
    write(box.path("d", "a"), b"0123456789")
    write(box.path("d", "b"), b"0123456789")
    here = "/d/a: at byte 0: plug-in format formats.bad: "
    rows = (
        ("fails", "/d/b: at byte 0: plug-in format formats.bad: has the number 1"),
        ("silent", here + "failed without saying why"),
        ("outside", here + 'the field "bytes" lies at byte 0, 11 bytes long, and the file has 10 bytes'),
        ("far", 'the field "bytes" lies at byte 18446744073709551613'),
        ("noname", 'the field "": the name of a field has 1 to 31 bytes'),
        ("longname", "the name of a field has 1 to 31 bytes"),
        ("late", 'the field "late" after a sample'),
        ("cells", "adds a sample of 1 cells, and 2 fields"),
        ("few", "adds a sample of 4000000000 cells, and 2 fields"),
        ("missing", "gives a value of 2 bytes, of which there is none"),
        ("rows", here + "adds more than 64 MiB of samples"),
        ("circles", "plugin(formats.bad, does=circles) reads the file again and again"),
        ("same", "asks for the same bytes again"),
        ("wants", "asks for 67108865 bytes at once, up to 67108864 are possible"),
        ("beyond", "asks for 11 bytes, and the file ends after 10"),
        ("mixed", "gives names to some samples"),
        ("badname", "gives a sample a name that cannot be"),
        ("longest", "gives a sample a name that cannot be"),
        ("none", "/d: plugin(formats.bad, does=none) finds no sample in its 2 files"),
        ("ignores", 'the name of a field has 1 to 31 bytes'),
        ("heaps", "gives a sample more than 4 MiB of values"),
    )
    rows += (("crash", "/d/b: at byte 0: plug-in format formats.bad has ended its process, which was ended by signal 6"),
             ("exits", "has ended its process, which exited with status 7"))
    hangs = (("hang", "did not come back within 2 seconds"),)
    # What adds gigabytes takes longer than that on a busy machine, and is no hang.
    for chosen, seconds in ((rows, 60), (hangs, 2)):
        daemon = box.daemon({**{does: {"path": box.path("d"), "format": f"plugin(formats.bad, {does})"} for does, _ in chosen},
                             "fine": {"path": box.path("d"), "format": "plugin(formats.bad, fine)"}},
                            plugins="formats", plugin_dirs=folder, plugin_timeout=seconds, memory_limit="2GiB")
        for does, part in chosen:
            with table.row(does):
                daemon.refused(does, part, pipeline="bytes: raw; title")
        for does in ("fine", "forks", "prints") if chosen != hangs else ("fine",):
            with table.row(does):
                lines = daemon.read("fine", pipeline="bytes: raw; title", shuffle=False, job=f"j{does}")
                equal([line["fields"]["title"]["text"] for line in lines], ["hi"] * 2)
        daemon.stop()
    table.done()


@case("a field that cannot be served is left out and listed, and the others are served; who names it is refused")
def _(box):
    folder, table = formats(box), Table()
    write(box.path("d", "a"), b"0123456789")
    write(box.path("d", "b"), b"0123456789")
    rows = {
        "twice": ("bytes", 'the field "bytes" comes twice'),
        "control": ("a?b", 'the field "a?b" cannot be called so'),
        "key": ("__key__", 'the field "__key__" cannot be called so'),
        "kind": ("x", 'adds the field "x" of an unknown kind'),
        "flags": ("x", 'adds the field "x" of an unknown kind'),
        "stored": ("x", 'the field "x" cannot be a value'),
        "dtype": ("x", 'adds the field "x" of an unknown type'),
        "dims": ("x", 'adds the field "x" of 4000000000 dimensions'),
        "shape": ("x", 'the field "x" has an impossible shape'),
        "zero": ("x", 'the field "x" has an impossible shape'),
        "huge": ("x", 'the field "x" has an impossible shape'),
        "size": ("x", '/d/a: at byte 0: plug-in format formats.bad: the field "x" has 9 bytes, which its shape and type cannot'),
        "absent": ("bytes", 'the field "bytes" is absent, which it may not be'),
        "notext": ("title", 'the field "title" is text that is not UTF-8'),
        "named": ("bytes", 'the field "bytes" is absent, which it may not be'),
    }
    daemon = box.daemon({does: {"path": box.path("d"), "format": f"plugin(formats.bad, {does})"} for does in rows},
                        plugins="formats", plugin_dirs=folder)
    for does, (field, reason) in rows.items():
        with table.row(does):
            other = "bytes" if field == "title" else "title"
            lines = daemon.read(does, pipeline="bytes: raw" if other == "bytes" else "title", shuffle=False)
            equal([line["fields"][other].get("text", line["fields"][other]["sha256"]) for line in lines],
                  [sha256(b"0123") if other == "bytes" else "hi"] * 2)
            contains(daemon.dlctl("datasets", does).stdout, field, reason)
            if does not in ("control", "key"):  # no pipeline can name the one, and the other is the sample's name
                daemon.refused(does, f'field "{field}" cannot be served', reason, pipeline=f"{field};")
    daemon.stop()
    table.done()


@case("files that are not of the format are named with the byte, and so is a folder without any")
def _(box):
    folder, table = blocks(box), Table()
    good = album(range(3))
    for name, content, part in (("head", b"ALB2....", "does not begin with ALB1"), ("empty", b"", "does not begin with ALB1"),
                                ("cut", good[:-1], "ends within the picture at byte"),
                                ("record", good + b"123", "ends within a record"),
                                ("length", b"ALB1" + struct.pack("<II", 1, 2**32 - 1), "ends within the picture at byte 12")):
        write(box.path(name, "0.alb"), good)
        write(box.path(name, "1.alb"), content)
        with table.row(name):
            daemon = box.daemon({"p": {"path": box.path(name), "format": "plugin(blocks.album)"}}, plugins="blocks",
                                plugin_dirs=folder)
            daemon.refused("p", f"/{name}/1.alb: at byte 0: plug-in format blocks.album: ", part)
            daemon.stop()
    table.done()
    write(box.path("other", "x.txt"), b"")
    daemon = box.daemon({"p": {"path": box.path("other"), "format": "plugin(blocks.album)"}}, plugins="blocks",
                        plugin_dirs=folder)
    daemon.refused("p", "there is no file in it that plugin(blocks.album) takes: their names end with .alb")


@case("many samples and large files come in many messages, and records longer than a window are whole")
def _(box):
    folder = formats(box)
    blocks(box)
    content = bytes(range(256)) * 300
    write(box.path("e", "x"), content)
    pixels = [bytes([number, 7, number]) * (900 * 1500 if number < 3 else 12) for number in range(6)]
    pictures = [b"BLK1" + struct.pack("<II", 900, 1500) + each if len(each) > 36 else
                b"BLK1" + struct.pack("<II", 4, 3) + each for each in pixels]
    write(box.path("big", "x.alb"), b"ALB1" + b"".join(struct.pack("<II", 0, len(each)) + each for each in pictures))
    daemon = box.daemon({"e": {"path": box.path("e"), "format": "plugin(formats.each)"},
                         "big": {"path": box.path("big"), "format": "plugin(blocks.album)"}},
                        plugins="formats blocks", plugin_dirs=folder)
    lines = served(daemon, "e", pipeline="byte: raw", batch=256)
    equal(indices(lines), list(range(len(content))))
    equal([line["fields"]["byte"]["sha256"] for line in lines],
          [sha256(content[line["index"]:line["index"] + 1]) for line in lines])
    lines = served(daemon, "big", pipeline="image: plugin(blocks.unpack); label", batch=1)
    equal([line["fields"]["image"]["sha256"] for line in lines], [sha256(each) for each in pixels])
    daemon.stop()


@case("an index is kept while files, arguments and the plug-in are the same, and is made anew when one of them is not")
def _(box):
    folder = blocks(box)
    write(box.path("p", "a.alb"), album(range(4)))
    dataset = {"p": {"path": box.path("p"), "format": "plugin(blocks.album)"}}
    indices_at = box.path("indices")

    def start():
        daemon = box.daemon(dataset, plugins="blocks", plugin_dirs=folder, index_dir=indices_at)
        n = len(served(daemon, "p", pipeline="label"))
        text, digest = daemon.log(), digest_of(daemon, "p")
        daemon.stop()
        return n, digest, "indexed again" in text, "indexed in" in text

    n, digest, *how = start()
    equal((n, how), (4, [False, True]))
    equal(start(), (4, digest, False, False), "as it was")
    with open(os.path.join(folder, "blocks.so"), "ab") as library:
        library.write(b"\0")
    equal(start(), (4, digest, True, False), "another plug-in, the same samples")
    blocks(box)
    equal(start(), (4, digest, True, False), "the first one again")
    equal(start(), (4, digest, False, False), "as it was")
    write(box.path("p", "b.alb"), album([7]))
    n, other, *how = start()
    equal((n, other != digest, how), (5, True, [True, False]), "another file")
    write(box.path("q", "0.tail"), tail([("a", b"a", None)]))
    dataset["p"] = {"path": box.path("q"), "format": "plugin(formats.tail)"}
    formats(box)
    daemon = box.daemon(dataset, plugins="formats blocks", plugin_dirs=folder, index_dir=indices_at)
    equal(keys_of(served(daemon, "p", pipeline="__key__")), [sha256(b"0.tail:0")])
    daemon.stop()
    dataset["p"]["format"] = "plugin(formats.tail, names=yes)"
    daemon = box.daemon(dataset, plugins="formats blocks", plugin_dirs=folder, index_dir=indices_at)
    equal(keys_of(served(daemon, "p", pipeline="__key__")), [sha256(b"rows/a")])
    contains(daemon.log(), "it was made with other options")


@case("clients name formats of the plug-ins that there are, by path too, and a mistake is named")
def _(box):
    folder, table = blocks(box), Table()
    formats(box)
    write(box.path("p", "a.alb"), album(range(4)))
    daemon = box.daemon({"none": {"path": box.path("p"), "format": "plugin(blocks.albums)"},
                         "step": {"path": box.path("p"), "format": "plugin(blocks.mosaic)"},
                         "plug": {"path": box.path("p"), "format": "plugin(block.album)"},
                         "more": {"path": box.path("p"), "format": "plugin(blocks.album) x"},
                         "key": {"path": box.path("p"), "format": "plugin(formats.tail, nam=yes)"},
                         "auto": {"path": box.path("p"), "format": "auto"}},
                        plugins="blocks formats", plugin_dirs=folder, paths="yes")
    for name, *parts in (("none", "format, column 15", 'nothing called "albums"', 'did you mean "album"'),
                         ("step", "format, column 8", "blocks.mosaic is a step, which a pipeline names"),
                         ("plug", "format, column 8", 'there is no plug-in "block"', 'did you mean "blocks"'),
                         ("more", "format, column 22", "a dataset has one format"),
                         ("key", "format, column 22", 'no argument "nam"', 'did you mean "names"'),
                         ("auto", "no format recognises it")):
        with table.row(name):
            daemon.refused(name, *parts)
    table.done()
    path = box.path("p", "a.alb")
    for text in (path + " {format=plugin(blocks.album)}", path + ' {format="plugin(blocks.album)"}'):
        lines = daemon.read(text, pipeline="label", shuffle=False, job=text[-25:])
        equal([line["fields"]["label"]["value"] for line in lines], [0, 2, 4, 6])
    daemon.refused(path + " {format=plugin(blocks.nothing)}", "nothing called")
    daemon.refused(path + " {format=plugin(blocks.album)}", "blocks.album is a format: a dataset names it",
                   pipeline="plugin(blocks.album)")


@case("a daemon ends at once, and a dataset is taken back, while a format hangs")
def _(box):
    folder = formats(box)
    write(box.path("d", "a"), b"0123456789")
    daemon = box.daemon({"d": {"path": box.path("d"), "format": "plugin(formats.bad, hang)"}}, plugins="formats",
                        plugin_dirs=folder, plugin_timeout=600)
    equal(daemon.objects("datasets")[0]["state"], "indexing")
    time.sleep(0.5)
    begin = time.monotonic()
    daemon.stop()
    assert time.monotonic() - begin < 5, "it waited for the plug-in"


@case("a dataset with an origin cannot have a plug-in's format, and says so before the daemon begins")
def _(box):
    text = f'dataset "p" {{\n path = "{box.path("p")}"\n format = "plugin(blocks.album)"\n origin = "file:///data"\n}}\n'
    write(box.path("conf"), text.encode())
    checked = subprocess.run([DAEMON, "-c", box.path("conf"), "--check-config"], capture_output=True, text=True, check=False)
    equal(checked.returncode != 0, True)
    contains(checked.stderr, "a plug-in's format by the daemon")


main()
