#!/usr/bin/env python3
"""Folders of tar archives, written by Python's tarfile and by GNU tar: the samples that the webdataset library finds in
them, in any order; and what is refused, with archive and byte."""
import bz2
import gzip
import hashlib
import lzma
import os
import random
import struct
import subprocess
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import (Skip, case, contains, equal, expected_order, identity_bytes, identity_pixels, indices, main, png,
                     within, write)
from pyclient import trainer
from tars import archive, check_raw, npy, samples_of, web

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
WIDTH, HEIGHT = 9, 7


def picture(number):
    return png(WIDTH, HEIGHT, identity_pixels(number, WIDTH, HEIGHT))


@case("the samples of archives of all three formats, byte by byte, in torch's order, for one rank and for three")
def _(box):
    number, dice = 0, random.Random(5)
    for idx, (name, kind) in enumerate(list(FORMATS.items()) * 2):
        members = []
        for _ in range(dice.randrange(1, 12)):
            key = f"{'deep/er/' * (number % 3)}{number:05d}"
            members += [(f"{key}.jpg", identity_bytes(number, dice.randrange(1, 3000))), (f"{key}.cls", b"%d" % number),
                        (f"{key}.seg.PNG", identity_bytes(number + 1000, dice.randrange(0, 1100)))]
            number += 1
        archive(box.path("d", f"{idx}-{name}.tar"), members, kind)
    samples = samples_of(box.path("d"))
    equal(len(samples), number, "samples")
    daemon = box.daemon({"d": web(box.path("d"))})
    check_raw(daemon, "d", samples, ["jpg", "cls", "seg.png"])
    check_raw(daemon, "d", samples, ["seg.png"], seed=3)
    for rank in range(3):
        check_raw(daemon, "d", samples, ["cls", "jpg"], world=3, rank=rank)
    lines = daemon.read("d", pipeline="cls", first_position=number // 2)
    equal([line["fields"]["cls"]["value"] for line in lines],
          [int(samples[i][1]["cls"]) for i in expected_order(number, position=number // 2)], "classes, from the middle on")


@case("pictures and numbers come without being named, with the pixels of the same files in a folder")
def _(box):
    folder, members = box.folder_of_pictures("f", 30, n_classes=3), []
    paths = sorted(os.path.join(root, name) for root, _, names in os.walk(folder) for name in names)
    for number, path in enumerate(paths):
        with open(path, "rb") as file:
            members += [(f"{number:03d}.png", file.read()), (f"{number:03d}.cls", b"%d\n" % (number * 3 // 30))]
    archive(box.path("w", "all.tar"), members)
    daemon = box.daemon({"f": folder, "w": web(box.path("w"))})
    pipeline = "random_resized_crop(8) hflip(0.5)"
    theirs = daemon.read("f", pipeline=pipeline, batch=4, seed=2)
    ours = daemon.read("w", pipeline=pipeline, batch=4, seed=2)
    equal([line["fields"]["png"] for line in ours], [line["fields"]["image"] for line in theirs], "pixels")
    equal([line["fields"]["cls"] for line in ours], [line["fields"]["label"] for line in theirs], "classes")


def array(dtype, shape, data):
    return {"dtype": dtype, "shape": shape, "sha256": hashlib.sha256(data).hexdigest()}


@case("arrays in .npy files are arrays, in either byte order; files that differ in dtype are bytes until a step says which")
def _(box):
    members, small = [], [struct.pack("<3f", i, -i, 0.5) for i in range(6)]
    for i in range(6):
        swapped = struct.pack(">3f", i, -i, 0.5)
        members += [(f"{i}.emb.npy", npy(">f4", "(3,)", swapped) if i % 2 else npy("<f4", "(3,)", small[i])),
                    (f"{i}.mixed.npy", npy("<i2", "(1,)", struct.pack("<h", i)) if i % 2
                     else npy("<i4", "(1,)", struct.pack("<i", i)))]
    archive(box.path("d", "x.tar"), members)
    daemon = box.daemon({"d": web(box.path("d"))})
    for line in daemon.read("d", pipeline="emb.npy: npy; mixed.npy: npy to(float32, shape=1)", batch=2):
        i = line["index"]
        equal(line["fields"], {"emb.npy": array("float32", [3], small[i]),
                               "mixed.npy": array("float32", [1], struct.pack("<f", i))}, f"sample {i}")
    files = dict(members)
    for line in daemon.read("d", pipeline="emb.npy: raw; mixed.npy", batch=2):
        for name in ("emb.npy", "mixed.npy"):
            equal(line["fields"][name]["sha256"], hashlib.sha256(files[f"{line['index']}.{name}"]).hexdigest(), name)


@case("dlctl prints numbers that JSON does not have as words, which differ from what is absent")
def _(box):
    values = [float("nan"), float("inf"), float("-inf"), 1.5]
    archive(box.path("d", "x.tar"), [(f"{i}.v.npy", npy("<f4", "()", struct.pack("<f", value))) for i, value in enumerate(values)])
    daemon = box.daemon({"d": web(box.path("d"))})
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        lines = daemon.read("d", pipeline=f"v.npy: npy to({dtype})", shuffle=False)
        equal([line["fields"]["v.npy"]["value"] for line in lines], ["NaN", "Infinity", "-Infinity", 1.5], dtype)


@case("names as archives may have them: long ones, prefixes, what the library passes over")
def _(box):
    link = tarfile.TarInfo("linked")
    link.type, link.linkname = tarfile.SYMTYPE, "a.jpg"
    folder = tarfile.TarInfo("b.folder")
    folder.type = tarfile.DIRTYPE
    device = tarfile.TarInfo("null.jpg")
    device.type, device.devmajor, device.devminor = tarfile.CHRTYPE, 1, 3
    long = "x" * 90 + "/" + "y" * 60 + "/"
    longer = "x" * 90 + "/" + "y" * 240 + "/"
    members = [folder, ("a.jpg", b"A"), link, ("a.JSON", b"{}"), device, ("README", b"no dot"), ("__meta__/q.jpg", b"?"),
               ("__index__", b"?"), ("./b.jpg", b"B"), (long + "c.jpg", b"C"), (long + "c.txt", b""), ("d.jpg", b"D"),
               ("a.jpg", b"again, another sample"), ("e.x.y.z", b"E"), ("ümlaut.jpg", b"F")]
    for name, kind in FORMATS.items():
        more = [] if name == "ustar" else [(longer + "f.jpg", b"F"), (longer + "ü" * 90 + ".jpg", b"G")]
        archive(box.path(name, "s.tar"), members + more, kind)
    daemon = box.daemon({name: web(box.path(name)) for name in FORMATS})
    for name in FORMATS:
        samples = samples_of(box.path(name))
        check_raw(daemon, name, samples, ["jpg", "json", "txt", "x.y.z"])
    equal([sorted(fields) for _, fields in samples_of(box.path("gnu"))],
          [["jpg", "json"], ["jpg"], ["jpg", "txt"], ["jpg"], ["jpg"], ["x.y.z"], ["jpg"], ["jpg"], ["jpg"]],
          "what there is to be found")


@case("GNU tar's own archives, with its long names and from a pipe, are read")
def _(box):
    for number in range(20):
        write(box.path("in", "n" * 120, f"{number:03d}.jpg"), identity_bytes(number, 50 * number))
        write(box.path("in", f"{number:03d}.txt"), b"text %d" % number)
    os.makedirs(box.path("d"))
    names = sorted(os.path.relpath(os.path.join(root, name), box.path("in"))
                   for root, _, files in os.walk(box.path("in")) for name in files)
    for idx, kind in enumerate(("gnu", "posix", "ustar")):
        subprocess.run(["tar", "-cf", box.path("d", f"{idx}.tar"), f"--format={kind}", "-C", box.path("in")] + names, check=True)
    samples = samples_of(box.path("d"))
    equal(len(samples), 120, "samples")
    daemon = box.daemon({"d": web(box.path("d"))})
    check_raw(daemon, "d", samples, ["jpg", "txt"])


def tar_of(box, name, folder, names, *options):
    """GNU tar's own archive of files of a folder, in this sequence."""
    os.makedirs(box.path(name), exist_ok=True)
    subprocess.run(["tar", "-cf", box.path(name, "s.tar"), "-C", folder, "--no-recursion", *options, *names], check=True)


@case("hard links have the bytes of what they lead to, in the archives of GNU tar and of Python")
def _(box):
    expected = []
    for number in range(6):
        write(box.path("in", f"{number}.jpg"), identity_bytes(number, 3000 + number))
        if number in (0, 3):
            write(box.path("in", f"{number}.cls"), b"%d" % number)
        else:
            os.link(box.path("in", f"{number // 3 * 3}.cls"), box.path("in", f"{number}.cls"))
        expected.append((f"{number}", {"jpg": identity_bytes(number, 3000 + number), "cls": b"%d" % (number // 3 * 3)}))
    os.link(box.path("in", "2.jpg"), box.path("in", "6.jpg"))
    expected.append(("6", {"jpg": identity_bytes(2, 3002)}))
    names = sorted(os.listdir(box.path("in")))
    long = "y" * 150 + "/"
    for kind in ("gnu", "posix", "ustar"):
        tar_of(box, kind, box.path("in"), names, f"--format={kind}")
        if kind != "ustar":
            tar_of(box, f"{kind}-long", box.path("in"), names, f"--format={kind}", f"--transform=s,^,{long},")
    for name, kind in FORMATS.items():
        os.makedirs(box.path(f"python-{name}"))
        with tarfile.open(box.path(f"python-{name}", "s.tar"), "w", format=kind) as tar:
            for each in names:
                tar.add(box.path("in", each), each)
    found = sorted(each for each in os.listdir(box.path("")) if os.path.exists(box.path(each, "s.tar")))
    equal(len(found), 8, "archives")
    with tarfile.open(box.path("gnu", "s.tar")) as tar:
        equal(sum(member.islnk() for member in tar), 5, "links in GNU tar's archive")
    daemon = box.daemon({each: web(box.path(each)) for each in found})
    for each in found:
        check_raw(daemon, each, expected, ["jpg", "cls"])
        check_raw(daemon, each, expected, ["cls"])


def linked(name, target, kind=tarfile.LNKTYPE):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


@case("a link, hard or symbolic, may lead to a later member, to another link and to what is no sample; far away it costs no long read")
def _(box):
    big = identity_bytes(9, 900000)
    members = [linked("a.cls", "z.cls"), ("a.jpg", b"A"), linked("b.cls", "a.cls"), ("b.jpg", big), ("README", b"7"),
               linked("c.cls", "./README"), ("c.jpg", b"C"), linked("d.jpg", "c.jpg"), ("z.cls", b"5"), ("z.jpg", b"Z"),
               ("c.jpg", b"again, another sample"), linked("e.jpg", "c.jpg")]
    archive(box.path("d", "s.tar"), members)
    expected = [("a", {"cls": b"5", "jpg": b"A"}), ("b", {"cls": b"5", "jpg": big}), ("c", {"cls": b"7", "jpg": b"C"}),
                ("d", {"jpg": b"C"}), ("z", {"cls": b"5", "jpg": b"Z"}), ("c", {"jpg": b"again, another sample"}),
                ("e", {"jpg": b"again, another sample"})]
    soft = tarfile.SYMTYPE
    archive(box.path("soft", "s.tar"), [
        ("d/a.jpg", b"A"), linked("d/b.jpg", "a.jpg", soft), linked("d/c.jpg", "d/b.jpg"), linked("d/e.jpg", "./../x/y/../z.jpg", soft),
        linked("d/v.1", "../x", soft), linked("d/.latest.jpg", "/nowhere", soft), linked("d/.hidden.jpg", "nobody"),
        linked("latest", "/nowhere", soft), linked("q.jpg", "x//z.jpg", soft), ("x/z.jpg", b"Z")])
    daemon = box.daemon({"d": web(box.path("d")), "soft": web(box.path("soft"))})
    check_raw(daemon, "d", expected, ["jpg", "cls"])
    check_raw(daemon, "d", expected, ["cls"])
    check_raw(daemon, "soft", [(name, {"jpg": b"Z" if name in ("d/e", "q", "x/z") else b"A"})
                               for name in ("d/a", "d/b", "d/c", "d/e", "q", "x/z")], ["jpg"])


@case("a symbolic link leads where it leads when all is unpacked: through links to folders, to the last of a name; one that leads nowhere is counted")
def _(box):
    def soft(name, target):
        return linked(name, target, tarfile.SYMTYPE)
    nowhere = {"README.md": "../README.md", "latest.pt": "/nowhere/x", "v1.0": "dir", "alone.jpg": "nobody.jpg", "p.jpg": "q.jpg", "q.jpg": "p.jpg",
               "itself.jpg": "itself.jpg", "out.jpg": "deep/../../../c.jpg"}
    archive(box.path("d", "s.tar"), [
        ("c.jpg", b"C"), soft("c.JPG", "c.jpg"), soft("e.JPG", "e.jpg"), ("e.jpg", b"E"), ("v1/in/b.jpg", b"B"), ("v1/c.jpg", b"V"), soft("cur", "v1"),
        soft("deep", "cur/in"), soft("a.jpg", "cur/in/b.jpg"), soft("f/k.jpg", "../deep/../c.jpg"), *(soft(*each) for each in nowhere.items()),
        linked("again.md", "README.md"), ("t.jpg", b"T1"), linked("h.jpg", "t.jpg"), soft("s.jpg", "t.jpg"), ("z.txt", b"Z"), ("t.jpg", b"T2")])
    daemon = box.daemon({"d": web(box.path("d"))})
    check_raw(daemon, "d", [("c", {"jpg": b"C"}), ("e", {"jpg": b"E"}), ("v1/in/b", {"jpg": b"B"}), ("v1/c", {"jpg": b"V"}), ("a", {"jpg": b"B"}),
                            ("f/k", {"jpg": b"V"}), ("t", {"jpg": b"T1"}), ("h", {"jpg": b"T1"}), ("s", {"jpg": b"T2"}), ("z", {"txt": b"Z"}),
                            ("t", {"jpg": b"T2"})], ["jpg", "txt"])
    equal(daemon.objects("datasets", "d")[0]["n_hidden_files"], len(nowhere) + 1, "passed over")


@case("a hard link that leads nowhere, or in a circle, is refused with archive and member; so is a field twice by a link to another file")
def _(box):
    archive(box.path("gone", "s.tar"), [("a.jpg", b"A"), linked("b.jpg", "nobody.jpg")])
    archive(box.path("circle", "s.tar"), [("a.jpg", b"A"), linked("b.jpg", "c.jpg"), linked("c.jpg", "b.jpg")])
    archive(box.path("itself", "s.tar"), [("a.jpg", b"A"), linked("b.jpg", "b.jpg")])
    archive(box.path("twice", "s.tar"), [("a.jpg", b"A"), ("b.jpg", b"B"), linked("b.JPG", "a.jpg", tarfile.SYMTYPE)])
    daemon = box.daemon({name: web(box.path(name)) for name in ("gone", "circle", "itself", "twice")})
    daemon.refused("gone", "gone/s.tar", '"b.jpg" is a hard link to "nobody.jpg"', "does not have", "--hard-dereference")
    daemon.refused("circle", "circle/s.tar", "b.jpg", "leads back")
    daemon.refused("itself", "itself/s.tar", "b.jpg", "does not have")
    daemon.refused("twice", "twice/s.tar", "b.JPG", "this field twice")


@case("keys of an archive that `tar -C DIR .` made begin with ./, as the library has them; merged ones may lack it")
def _(box):
    for number in range(4):
        write(box.path("in", f"{number}.cls"), b"%d" % number)
        write(box.path("in", "deep", f"{number}.cls"), b"%d" % (10 + number))
        write(box.path("other", f"{number}.txt"), b"text %d" % number)
    os.makedirs(box.path("d"))
    subprocess.run(["tar", "-C", box.path("in"), "--sort=name", "-cf", box.path("d", "s.tar"), "."], check=True)
    archive(box.path("m", "s.tar"), [(f"{number}.txt", b"text %d" % number) for number in range(4)])
    samples = samples_of(box.path("d"))
    equal(all(key.startswith("./") for key, _ in samples), True, "keys by the library's rules")
    daemon = box.daemon({"d": web(box.path("d")),
                         "m": dict(web(box.path("d", "s.tar")), merge=box.path("m", "s.tar"))})
    for _ in range(2):
        lines = daemon.read("d", pipeline="__key__; cls", shuffle=False)
        equal([line["fields"]["__key__"]["sha256"] for line in lines],
              [hashlib.sha256(key.encode()).hexdigest() for key, _ in samples], "keys")
        equal([line["fields"]["cls"]["value"] for line in lines], [int(fields["cls"]) for _, fields in samples], "classes")
        texts = [(line["fields"]["txt"] or {}).get("text") for line in daemon.read("m", pipeline="txt: text; cls", shuffle=False)]
        equal([text for text in texts if text], [f"text {number}" for number in range(4)], "merged")
        daemon.stop()
        daemon.start()


@case("the key of a sample is a field: with others, alone without a read, and in every folder that has an index")
def _(box):
    members = []
    for number in range(40):
        key = ("", "deep/", "deep/er/" + "x" * 150 + "/", "ü/")[number % 4] + f"{number:05d}"
        members += [(f"{key}.txt", identity_bytes(number, 100 + number)), (f"{key}.cls", b"%d" % number)]
    path = archive(box.path("d", "s.tar"), members)
    samples = samples_of(box.path("d"))
    pictures = box.folder_of_pictures("f", 12, n_classes=3)
    daemon = box.daemon({"d": web(box.path("d")), "f": pictures})

    def told(text):
        return {"dtype": "bytes", "shape": [len(text)], "sha256": hashlib.sha256(text).hexdigest()}

    for pipeline in ("__key__", "__key__: raw", "txt; __key__; cls"):
        lines = daemon.read("d", pipeline=pipeline, batch=6, seed=3)
        equal(indices(lines), expected_order(40, seed=3), "order")
        for line in lines:
            equal(line["fields"]["__key__"], told(samples[line["index"]][0].encode()), f"key of {line['index']}")
            if "txt" in pipeline:
                equal(line["fields"]["cls"]["value"], line["index"], "class")
                equal(line["fields"]["txt"], told(samples[line["index"]][1]["txt"]), "text")
    equal("__key__" in daemon.read("d", pipeline="txt; cls", limit=1)[0]["fields"], False, "not where nobody asks for it")
    paths = sorted(os.path.relpath(os.path.join(root, name), pictures) for root, _, names in os.walk(pictures) for name in names)
    lines = daemon.read("f", pipeline="image: center_crop(4); label; __key__", shuffle=False)
    equal([line["fields"]["__key__"] for line in lines], [told(path.encode()) for path in paths], "paths")
    daemon.refused("d", "field __key__ has a value of its own", pipeline="__key__: center_crop(4)")
    daemon.refused("d", "its fields are txt, cls, __key__", pipeline="key; cls")
    reader = daemon.reader("d", pipeline="__key__", shuffle=False, batch=1, slots=2, delay_ms=20, limit=20)
    reader.wait_lines(2)
    os.unlink(path)
    equal(indices(reader.good()), list(range(20)), "samples without their archive")


@case("a field that a sample does not have is null where it is raw, and damage where it is decoded")
def _(box):
    members = []
    for number in range(12):
        members += [(f"{number}.png", picture(number))] if number % 3 else []
        members += [(f"{number}.txt", b"text %d" % number)] if number % 2 or number % 3 == 0 else []
        members += [(f"{number}.cls", b" %d " % -number)]
    archive(box.path("d", "s.tar"), members)
    samples = samples_of(box.path("d"))
    daemon = box.daemon({"d": web(box.path("d"))})
    check_raw(daemon, "d", samples, ["png", "txt", "cls"])
    check_raw(daemon, "d", samples, ["txt"])
    equal(indices(daemon.read("d", pipeline="png: center_crop(4); cls", shuffle=False, on_error="skip", batch=4)),
          [i for i in range(12) if i % 3], "those that have one")
    daemon.refused("d", "sample 0 (0)", "field png", "does not have it", pipeline="png: center_crop(4); cls", batch=12,
                   shuffle=False)


@case("in Python a field that a sample does not have is None, the others are arrays; a run goes on over archives where it was")
def _(box):
    members = []
    for number in range(20):
        members += [(f"{number:02d}.txt", b"text %d" % number)] if number % 3 else []
        members += [(f"{number:02d}.cls", b"%d" % number)]
    archive(box.path("d", "s.tar"), members)
    daemon = box.daemon({"d": web(box.path("d"))})
    texts, classes, rest = trainer(box, daemon, """
        with dlclient.Loader("d", batch_size=6, pipeline="txt; cls", shuffle=False) as loader:
            batch = next(iter(loader))
            out([None if text is None else bytes(text).decode() for text in batch["txt"]])
            out(batch["cls"].tolist())
            assert [text is None for text in batch["txt"].to_list()] == [text is None for text in batch["txt"]]
            assert batch["txt"].lengths[:2] == [0, 6] and "txt" in repr(batch)
            state = loader.state_dict()
        with dlclient.Loader("d", batch_size=5, pipeline="txt; cls", shuffle=False, state=state) as loader:
            out([n for batch in loader for n in batch["cls"].tolist()])
        with dlclient.Loader("d", batch_size=5, pipeline="__key__", shuffle=False) as loader:
            assert [bytes(key).decode() for batch in loader for key in batch["__key__"]] == [f"{n:02d}" for n in range(20)]
    """)
    equal(texts, [f"text {number}" if number % 3 else None for number in range(6)], "texts")
    equal((classes, rest), (list(range(6)), list(range(6, 20))), "numbers, before and after")


@case("a field that does not fit into memory does not keep the others from being served, also with substitutes")
def _(box):
    members = []
    for number in range(40):
        members += [(f"{number:03d}.cls", b"%d" % number), (f"{number:03d}.mp4", bytes(10 << 20 if number == 7 else 2000)),
                    (f"{number:03d}.txt", identity_bytes(number, 3000 + number))]
    archive(box.path("d", "all.tar"), members)
    samples = samples_of(box.path("d"))
    daemon = box.daemon({"d": web(box.path("d"))}, memory_limit="32MiB")
    check_raw(daemon, "d", samples, ["txt"])
    check_raw(daemon, "d", samples, ["cls"])
    lines = daemon.read("d", pipeline="txt: raw", batch=40, on_error="substitute")
    equal(sorted(indices(lines)), list(range(40)), "samples of one batch, whose room is that of 40 texts")
    daemon.refused("d", "10.0 MiB in the fields asked for", "memory_limit", pipeline="mp4: raw", batch=1)
    daemon.refused("d", "MiB in the fields asked for", "memory_limit", pipeline="cls; txt: raw", batch=1)  # what lies between


@case("numbers that are none are damage with the field's name")
def _(box):
    texts = [b"7", b"", b"-9223372036854775808", b"9223372036854775808", b"1.5", b"\n12\t", b"0x10", b"+3", b"1 2", b"\xff"]
    archive(box.path("d", "s.tar"), [member for number, text in enumerate(texts)
                                     for member in ((f"{number}.cls", text), (f"{number}.txt", b"t"))])
    daemon = box.daemon({"d": web(box.path("d"))})
    lines = daemon.read("d", pipeline="txt; cls", shuffle=False, on_error="skip", batch=3)
    equal({line["index"]: line["fields"]["cls"]["value"] for line in lines}, {0: 7, 2: -2 ** 63, 5: 12, 7: 3}, "numbers")
    daemon.refused("d", "field cls", "not a whole number", pipeline="txt; cls", batch=10)
    errors = daemon.objects("errors", "d")
    equal({error["index"]: error["field"] for error in errors}, {index: "cls" for index in (1, 3, 4, 6, 8, 9)}, "ledger")
    contains(errors[0]["error"], "s.tar: field cls: ")


@case("the field that is damaged is named in the error and in the ledger, also if it is the only one that is read")
def _(box):
    members = []
    for number in range(8):
        members += [(f"{number}.png", picture(number) if number != 3 else b"no picture"), (f"{number}.cls", b"%d" % number),
                    (f"{number}.json", b"{}")]
    archive(box.path("d", "s.tar"), members)
    daemon = box.daemon({"d": web(box.path("d"))})
    daemon.refused("d", "sample 3 (3)", "s.tar: field png: ", "known picture format", pipeline="png: center_crop(4)", batch=8)
    [error] = daemon.objects("errors", "d")
    equal((error["index"], error["field"], error["path"]), (3, "png", "3"), "ledger")
    contains(daemon.log(), "sample 3 (3): s.tar: field png: ")
    daemon.stop()
    daemon.start()
    within(10, lambda: daemon.objects("errors"), "the ledger is read again")
    equal(daemon.objects("errors", "d")[0]["field"], "png", "field, after a restart")


def header(name, size=0, kind=b"0", magic=b"ustar\0" + b"00", spoil=0):
    """A header block of one's own making."""
    block = bytearray(512)
    block[:len(name)] = name
    block[100:108], block[108:116], block[116:124] = b"0000644\0", b"0000000\0", b"0000000\0"
    block[124:136] = size if isinstance(size, bytes) else b"%011o\0" % size
    block[136:148], block[156:157], block[257:265] = b"00000000000\0", kind, magic
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % (sum(block) + spoil)
    return bytes(block)


def padded(content):
    return content + bytes(-len(content) % 512)


END = bytes(1024)
GOOD = header(b"a.jpg", 5) + padded(b"hello")


@case("archives that would be read wrongly are refused, with archive and byte; others go on")
def _(box):
    archive(box.path("good", "s.tar"), [("a.jpg", b"A")])
    huge = b"\x80" + bytes(10) + b"\x05"
    refused = {
        "cut in a member": (GOOD + header(b"b.jpg", 2000) + bytes(700), "at byte 1024", "was cut"),
        "cut in a header": (GOOD + header(b"b.jpg", 0)[:300], "at byte 1024", "no end mark"),
        "cut at a header": (GOOD, "at byte 1024", "no end mark"),
        "checksum": (GOOD + header(b"b.jpg", 5, spoil=1) + padded(b"hello") + END, "at byte 1024", "checksum is wrong"),
        "half signed": (header("ü.jpg".encode(), 5, spoil=-256) + padded(b"hello") + END, "at byte 0", "checksum is wrong"),
        "no tar": (b"hello, world" * 1000, "at byte 0", "checksum is wrong"),
        "appended": (GOOD + END + GOOD + END, "at byte 2048", "appended"),
        "twice": (GOOD + GOOD + END, "at byte 1024", "this field twice"),
        "climbing": (header(b"../a.jpg", 5) + padded(b"hello") + END, "at byte 0", "may not leave"),
        "absolute": (header(b"/etc/a.jpg", 5) + padded(b"hello") + END, "at byte 0", "may not leave"),
        "sparse": (header(b"a.jpg", 5, kind=b"S") + padded(b"hello") + END, "at byte 0", "sparse"),
        "negative": (header(b"a.jpg", b"\xff" * 12) + END, "at byte 0", "an invalid size"),
        "overflow": (header(b"a.jpg", b"\x80\x7f" + b"\xff" * 10) + END, "at byte 0", "an invalid size"),
        "huge": (header(b"a.jpg", b"\x80" + bytes(3) + b"\x7f" + b"\xff" * 7) + END, "at byte 0", "was cut"),
        "pax": (header(b"p", 12, kind=b"x") + padded(b"12 path=a.j\0") + END, "at byte 0", "pax header"),
        "paxes": (header(b"p", 20, kind=b"x") + padded(b"99999999 path=a.jpg\n") + END, "at byte 0", "pax header"),
        "pax size": (header(b"p", 13, kind=b"x") + padded(b"13 size=12x4\n") + END, "at byte 0", "an invalid size"),
        "global": (header(b"p", 14, kind=b"g") + padded(b"14 path=a.jpg\n") + END, "at byte 0", "global pax header"),
        "long field": (header(b"p", 309, kind=b"x") + padded(b"309 path=a." + b"x" * 297 + b"\n") + GOOD + END, "at byte 1024", "1 to 255 bytes"),
        "nothing": (END, "no sample"),
        "empty": (b"", "at byte 0", "no end mark"),
        "inner climbing": (header(b"a/../../b.jpg", 5) + padded(b"hello") + END, "at byte 0", "may not leave"),
        "long climbing": (header(b"././@LongLink", 9, kind=b"L") + padded(b"../a.jpg\0") + GOOD + END, "at byte 1024",
                          "may not leave"),
        "pax climbing": (header(b"p", 17, kind=b"x") + padded(b"17 path=../a.jpg\n") + GOOD + END, "at byte 1024",
                         "may not leave"),
        "gzip": (gzip.compress(GOOD + END), "compressed (gzip)", "gunzip"),
        "bzip2": (bz2.compress(GOOD + END), "compressed (bzip2)", "bunzip2"),
        "xz": (lzma.compress(GOOD + END), "compressed (xz)", "unxz"),
        "zstd": (b"\x28\xb5\x2f\xfd" + bytes(2000), "compressed (zstd)", "unzstd"),
        "binary size": (header(b"a.jpg", huge) + padded(b"hello") + END,),
        "devices": (b"".join(header(b"dev.jpg", 5 * (kind != 3), kind=b"%d" % kind) for kind in (3, 4, 6)) + GOOD + END,),
        "signed": (header("ü.jpg".encode(), 5, spoil=-512) + padded(b"hello") + END,),
        "called BZh": (header(b"BZh91.jpg", 5) + padded(b"hello") + END,),
    }
    for name, (content, *_) in refused.items():
        write(box.path(name, "bad.tar"), content)
    os.makedirs(box.path("without"))
    daemon = box.daemon({"good": web(box.path("good")), "without": web(box.path("without")),
                         **{name.replace(" ", "-"): web(box.path(name)) for name in refused}})
    for name, (_, *words) in refused.items():
        if words:
            message = daemon.refused(name.replace(" ", "-"), *words)
            if name != "nothing":
                contains(message, "bad.tar")
    daemon.refused("without", "has no tar archive")
    for name in ("good", "binary-size", "devices", "signed", "called-BZh"):
        equal(len(daemon.read(name, pipeline="jpg")), 1, "what is good is served")


@case("many archives are read by several threads, and fields, order and errors are those of the first archive that has them")
def _(box):
    names = ["zz", "cls", "a", "txt", "m", "npy"]
    for idx in range(40):
        members = [(f"{idx:02d}-{k:03d}.{name}", npy("<i4", "(2,)", bytes(8)) if name == "npy" else b"%d" % k) for k in range(idx % 7 + 1)
                   for name in dict.fromkeys((names[min(idx // 5, 5)], names[idx % 2]))]
        archive(box.path("d", f"{idx:02d}.tar"), members)
    seen = set()
    for turn in range(4):
        daemon = box.daemon({"d": web(box.path("d"))}, index_dir=box.path(f"index-{turn}"))
        lines = daemon.read("d", pipeline="__key__", shuffle=False, batch=64)
        keys = [f"{idx:02d}-{k:03d}".encode() for idx in range(40) for k in range(idx % 7 + 1)]
        equal([line["fields"]["__key__"]["sha256"] for line in lines], [hashlib.sha256(key).hexdigest() for key in keys], "keys")
        about = daemon.objects("datasets", "d")[0]
        seen.add((about["digest"], tuple(field["field"] for field in about["fields"])))
        daemon.stop()
    equal(len(seen), 1, "different indices")
    equal([name for name in next(iter(seen))[1] if name in names], ["zz", "cls", "a", "txt", "m", "npy"], "fields")
    for idx in (31, 17, 24):
        with open(box.path("d", f"{idx:02d}.tar"), "r+b") as file:
            file.truncate(700)
    for turn in range(4):
        daemon = box.daemon({"d": web(box.path("d"))}, index_dir=box.path(f"bad-{turn}"))
        daemon.refused("d", "17.tar", "it was cut")
        daemon.stop()


@case("what is called an archive and is compressed in another way than by its ending, a folder or a device is refused, not passed over")
def _(box):
    spoilt = {"tgz": ("s.tgz", lambda path: write(path, gzip.compress(GOOD + END)), "s.tgz: the archive is compressed (gzip)"),
              "folder": ("s.tar", os.makedirs, "s.tar: is not a regular file"),
              "pipe": ("s.tar", os.mkfifo, "s.tar: is not a regular file"),
              "broken": ("s.tar", lambda path: os.symlink("nowhere", path), "s.tar: No such file")}
    for name, (file, make, _) in spoilt.items():
        archive(box.path(name, "a.tar"), [("a.jpg", b"A")])
        make(box.path(name, file))
    archive(box.path("plain", "s.tar.gz"), [("a.jpg", b"A")])
    archive(box.path("gz", "a.tar"), [("a.jpg", b"A")])
    write(box.path("gz", "s.tar.gz"), gzip.compress(GOOD + END))
    write(box.path("gz", "t.tar.xz"), lzma.compress(GOOD + END))
    daemon = box.daemon({**{name: web(box.path(name)) for name in spoilt}, "plain": web(box.path("plain")), "gz": web(box.path("gz")),
                         "one": web(box.path("gz", "s.tar.gz")), "all": web(box.path("gz", "{a.tar,s.tar.gz}"))})
    for name, (_, _, words) in spoilt.items():
        daemon.refused(name, words)
    one = len(daemon.read("one", pipeline="raw"))
    equal([len(daemon.read(name, pipeline="raw")) for name in ("all", "gz")], [one + 1, 2 * one + 1],
          "compressed archives are unpacked, also beside plain ones")
    equal(len(daemon.read("plain", pipeline="jpg")), 1, "an archive that only bears such a name is read")


@case("GNU tar's sparse files are refused in all of its formats")
def _(box):
    path = box.path("in", "a.jpg")
    write(path, b"")
    os.truncate(path, 10 << 20)
    with open(path, "r+b") as file:
        file.seek(5 << 20)
        file.write(b"data")
    datasets = {}
    for kind in ("gnu", "posix"):
        os.makedirs(box.path(kind))
        subprocess.run(["tar", "-cSf", box.path(kind, "s.tar"), f"--format={kind}", "-C", box.path("in"), "a.jpg"], check=True)
        if os.path.getsize(box.path(kind, "s.tar")) > 5 << 20:
            raise Skip("this file system does not say where a file has holes")
        datasets[kind] = web(box.path(kind))
    daemon = box.daemon(datasets)
    for kind in datasets:
        daemon.refused(kind, "s.tar", "sparse")


@case("members without a byte: many empty members are samples like others, and are indexed once")
def _(box):
    n = 60000
    with open(box.path("d.tar"), "wb") as file:
        for number in range(n):
            file.write(header(b"%07d.txt" % number))
        file.write(END)
    os.makedirs(box.path("d"))
    os.rename(box.path("d.tar"), box.path("d", "s.tar"))
    daemon = box.daemon({"d": web(box.path("d"))})
    equal(indices(daemon.read("d", pipeline="txt", batch=5000, limit=3)), expected_order(n)[:15000], "order")
    daemon.stop()
    daemon.start()
    equal(indices(daemon.read("d", pipeline="txt", batch=5000, limit=1)), expected_order(n)[:5000], "order")
    contains(daemon.log(), "d: indexed in", "d: opened in")


@case("an archive that changes is another dataset; one that is cut while it is read is an error of its samples")
def _(box):
    members = [(f"{number:03d}.txt", identity_bytes(number, 5000)) for number in range(50)]
    path = archive(box.path("d", "s.tar"), members)
    daemon = box.daemon({"d": web(box.path("d"))})
    check_raw(daemon, "d", samples_of(box.path("d")), ["txt"])
    before = daemon.objects("datasets")[0]["digest"]
    archive(path, members + [("new.txt", b"new")])
    check_raw(daemon, "d", samples_of(box.path("d")), ["txt"])
    after = daemon.objects("datasets")[0]["digest"]
    equal(before == after, False, "the digest is another one")
    reader = daemon.reader("d", pipeline="txt", shuffle=False, batch=1, slots=2, delay_ms=20, epochs=5, on_error="skip")
    reader.wait_lines(3)
    os.truncate(path, 100000)
    reader.finish(60)
    equal(max(indices(reader.lines)) < 51, True, "what is cut off is not served")


main()
