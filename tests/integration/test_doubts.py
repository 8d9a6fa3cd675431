#!/usr/bin/env python3
"""Files that cannot be decoded are told when a dataset is opened: in the log, by dlctl datasets, to the trainer's rank 0."""
import json
import os
import struct
import sys
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from failing_fs import FailingFs
import tfrecords
from harness import Table, case, contains, equal, main, png, within, write
from parquet_bytes import BYTE_ARRAY, column, page, texts
from parquet_bytes import file as parquet_file
from pyclient import need, trainer
from tars import archive


def spoil(folder, number, content):
    path = os.path.join(folder, "class000", f"{number:06d}.png")
    os.remove(path)
    if content is not None:
        write(path, content)
    return f"class000/{number:06d}.png"


def row_of(daemon, name):
    return daemon.objects("datasets", name)[0]


@case("empty files, pages of HTML and broken links are told with their number and the first name")
def _(box):
    folder = box.folder_of_pictures("d", 40, n_classes=1)
    empty, page = spoil(folder, 7, b""), spoil(folder, 9, b"<!DOCTYPE html><html>404 Not Found</html>")
    spoil(folder, 8, b"")
    link = spoil(folder, 30, None)
    os.symlink("nowhere.png", os.path.join(folder, link))
    whole = box.folder_of_pictures("whole", 40)
    daemon = box.daemon({"d": folder, "whole": whole, "plain": box.folder_of_files("plain", 5)})
    said = [f"of 40 samples, some can probably not be decoded: empty files: 2 (first: {empty})",
            f"; links to nothing, or not files: 1 (first: {link})", "; files that are not what their names say, as they begin with"
            f" 3c 21 44 4f 43 54 59 50: 1 of the 37 looked at (first: {page})"]
    for _ in range(2):  # with a new index, and with one that was there
        within(20, lambda: row_of(daemon, "d")["state"] == "ready", "it is open")
        contains(row_of(daemon, "d")["doubt"], *said)
        equal("doubt" in row_of(daemon, "whole"), False, "nothing is wrong with these")
        contains(row_of(daemon, "plain")["doubt"], "5 of the 5 looked at")
        contains(daemon.log(), "warning  dataset: d: " + said[0])
        contains(daemon.dlctl("datasets").stdout, said[0])
        daemon.stop()
        daemon.start()


@case("pictures of one channel with more than 8 bits are told, with the step that keeps their levels")
def _(box):
    need("PIL")
    import numpy
    from PIL import Image
    levels = (numpy.arange(64, dtype="u2") * 1000).reshape(8, 8)
    for kind, picture in (("png", Image.fromarray(levels)), ("tif", Image.fromarray(levels)), ("pgm", Image.fromarray(levels.astype("i4"))),
                          ("tiff", Image.fromarray(levels.astype("f4")))):
        os.makedirs(box.path(kind, "a"))
        picture.save(box.path(kind, "a", f"0.{kind}"))
    for number, mode in enumerate(("L", "RGB", "RGBA", "P", "1")):
        os.makedirs(box.path("plain", "a"), exist_ok=True)
        Image.fromarray((levels % 256).astype("u1")).convert(mode).save(box.path("plain", "a", f"{number}.png"))
    write(box.path("plain", "a", "alpha.png"), deep_png(4))    # of these Pillow keeps the upper 8 bits
    daemon = box.daemon({name: box.path(name) for name in ("png", "tif", "tiff", "pgm", "plain")})
    for name in ("png", "tif", "tiff", "pgm"):
        within(20, lambda: row_of(daemon, name)["state"] == "ready", "it is open")
        told = ("more than 16 bits, or of floats", "decode(mode=F)") if name == "tiff" else ("more than 8 bits", "decode(mode=I;16)")
        contains(row_of(daemon, name)["doubt"], "1 of the 1 looked at", *told)
        contains(daemon.log(), f"warning  dataset: {name}: pictures of one channel")
    equal("doubt" in row_of(daemon, "plain"), False, "nothing is lost of these")
    lines = trainer(box, daemon, """
        import warnings
        for pipeline in ("center_crop(8)", "image: decode(mode=I;16)"):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                with dlclient.Loader("png", batch_size=1, pipeline=pipeline) as loader:
                    image = next(iter(loader))["image"]
                    out([int(image.max()), [str(one.message) for one in told]])
    """)
    equal([line[0] for line in lines], [255, 63000], "greatest value")
    equal(lines[1][1], [], "nothing is lost with the step that was named")
    equal("ends the job" in lines[0][1][0], False, "no job ends over it")


def deep_tiff():
    """One pixel of 16 bits; its tags are after it, and after what the first bytes of a file hold."""
    body = struct.pack("<2sHI", b"II", 42, 2008) + bytes(2000)
    tags = [(256, 3, 1), (257, 3, 1), (258, 3, 16), (259, 3, 1), (262, 3, 1), (273, 4, 8), (277, 3, 1), (278, 3, 1), (279, 4, 2)]
    return body + struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHIHH", tag, kind, 1, value, 0) for tag, kind, value in tags) + bytes(4)


def deep_png(kind=0):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", 1, 1, 16, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(5 if kind else 3))) + chunk(b"IEND", b"")


@case("pictures of 16 bits are told wherever they lie: archives, records, columns of bytes, and TIFFs whose tags are their end")
def _(box):
    deep = {"png": deep_png(), "tif": deep_tiff()}
    plain = png(1, 1, b"\1\2\3")
    pil = struct.pack("<3I", 1, 1, 4) + b"I;16" + bytes(2)
    for kind, content in {**deep, "plain": plain}.items():
        ending = "png" if kind == "plain" else kind
        write(box.path("file_" + kind, "a", "0." + ending), content)
        archive(box.path("tar_" + kind, "x.tar"), [(f"{i}.{end}", b"7" if end == "cls" else content) for i in range(9)
                                                   for end in (ending, "cls")])
        write(box.path("parquet_" + kind, "x.parquet"), parquet_file([column("x", page(texts([content] * 9), 9), 9, kind=BYTE_ARRAY)], 9))
        write(box.path("tfrecord_" + kind, "x.tfrecord"), tfrecords.record_file(
            tfrecords.example(picture=tfrecords.texts(content), label=tfrecords.ints(i)) for i in range(9)))
    for kind, content in (("pil", pil), ("bytes", deep["tif"])):
        shard = struct.pack("<III", 1, 12, 16 + len(content)) + struct.pack("<I", len(content)) + content
        write(box.path("mds_" + kind, "s.mds"), shard)
        write(box.path("mds_" + kind, "index.json"), json.dumps({"version": 2, "shards": [{
            "column_encodings": [kind], "column_names": ["x"], "column_sizes": [None], "compression": None, "format": "mds", "hashes": [],
            "raw_data": {"basename": "s.mds", "bytes": len(shard), "hashes": {}}, "samples": 1, "size_limit": 1 << 26, "version": 2,
            "zip_data": None}]}).encode())
    names = [f"{where}_{kind}" for where in ("file", "tar", "parquet", "tfrecord") for kind in (*deep, "plain")] + ["mds_pil", "mds_bytes"]
    formats = {"file": "imagefolder", "tar": "webdataset", "mds": "mds", "parquet": "parquet", "tfrecord": "tfrecord"}
    daemon = box.daemon({name: {"path": box.path(name), "format": formats[name.split("_")[0]]} for name in names})
    rows = Table()
    for name in names:
        with rows.row(name):
            within(20, lambda: row_of(daemon, name)["state"] == "ready", "it is open")
            n = 1 if name.startswith(("file", "mds")) else 9
            if name.endswith("plain"):
                equal("doubt" in row_of(daemon, name), False, "nothing is lost of these")
            else:
                contains(row_of(daemon, name)["doubt"], f"pictures of one channel with more than 8 bits: {n} of the {n} looked at",
                         "decode(mode=I;16)")
    rows.done()


@case("of a long name the end is told, too: it is what tells files apart")
def _(box):
    folder = box.folder_of_pictures("d", 4, n_classes=1)
    name = f"class000/{'x' * 150}_the_end.png"
    write(os.path.join(folder, name), b"")
    daemon = box.daemon({"d": folder})
    within(20, lambda: row_of(daemon, "d")["state"] == "ready", "it is open")
    contains(row_of(daemon, "d")["doubt"], "empty files: 1 (first: class000/xxx", "..." + "x" * 40, "_the_end.png)")


@case("rank 0 of a trainer is warned, once; others are not, and nobody is of a whole dataset")
def _(box):
    folder = box.folder_of_pictures("d", 20)
    name = spoil(folder, 4, b"")
    daemon = box.daemon({"d": folder, "whole": box.folder_of_pictures("whole", 20)})
    lines = trainer(box, daemon, """
        import warnings
        for name, rank, on_error in (("d", 0, "fail"), ("d", 1, "fail"), ("d", 0, "skip"), ("whole", 0, "fail"),
                                     ("whole + d", 0, "fail"), ("d", 0, "substitute")):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                dlclient.Loader(name, batch_size=4, pipeline="raw" if on_error == "substitute" else "center_crop(4)", rank=rank, world_size=2, on_error=on_error,
                                job=f"{name}{rank}{on_error}").close()
            out([str(one.message) for one in caught])
    """)
    sentence = f"dataset d: of 20 samples, some can probably not be decoded: empty files: 1 (first: {name})"
    ends = "; the first one that is needed ends the job, unless on_error says otherwise"
    equal(lines, [[sentence + ends], [], [sentence], [], [sentence + ends], []], "warnings")
    contains(daemon.dlctl("bench", "d", "--pipeline", "center_crop(4)", "--seconds", "0.1").stderr, "warning: " + sentence)


@case("a disk that hangs while files are looked at does not keep a dataset from being opened; the log says which file", sanitized=False)
def _(box):
    source = box.folder_of_pictures("source", 20, n_classes=1)
    spoil(source, 3, b"")
    disk = FailingFs(box, source)
    disk.hang("*.png", ops="open,read")
    daemon = box.daemon({"d": disk.path})
    within(60, lambda: row_of(daemon, "d")["state"] == "ready", "it is open without the look")
    daemon.wait_log("d: whether its files can be decoded is not known: reading class000/")
    contains(daemon.log(), "has not come back", "its disk or server may hang")
    equal("doubt" in row_of(daemon, "d"), False, "nothing was found")
    disk.clear()
    equal(len(daemon.read("d", batch=2, pipeline="center_crop(2)", on_error="skip", drop_last=False)), 19, "samples")
    daemon.stop()                                           # with the look ended
    equal(daemon.process.returncode, 0, "the end")
    disk.hang("*.png", ops="open,read")
    daemon.start()
    within(60, lambda: disk.n_hanging() > 0, "it hangs again")
    disk.clear()
    within(60, lambda: row_of(daemon, "d").get("doubt"), "a look that comes back in time")
    contains(row_of(daemon, "d")["doubt"], "empty files: 1")


@case("a dataset that could not be opened is tried again by whoever asks for it")
def _(box):
    folder = box.path("later")
    daemon = box.daemon({"later": folder})
    within(20, lambda: daemon.objects("datasets")[0]["state"] == "failed", "it is not there")
    write(os.path.join(folder, "a", "0.png"), png(4, 4, b"\1\2\3" * 16))
    time.sleep(1)  # what failed less than a second ago is not tried again
    within(20, lambda: daemon.dlctl("datasets", "later").returncode == 0, "it has not failed: it is opened, or is about to be")
    within(20, lambda: row_of(daemon, "later")["state"] == "ready", "it is there")
    equal(daemon.dlctl("look", "later").returncode, 0, "a look")


@case("dlctl errors has those of several datasets together")
def _(box):
    folders = [box.folder_of_pictures(name, 6) for name in "abc"]
    for folder in folders:
        spoil(folder, 2, b"")
    daemon = box.daemon(dict(zip("abc", folders)))
    for name in "abc":
        daemon.read(name, batch=2, pipeline="center_crop(2)", on_error="skip", drop_last=True)
    for text, names in (("a + c", ["a", "c"]), ("c+a", None), ("b", ["b"]), ("a + b + c", ["a", "b", "c"])):
        done = daemon.dlctl("--format", "json", "errors", text)
        if names is None:
            contains(done.stderr, 'there is no "c+a"')
        else:
            equal([row["dataset"] for row in daemon.objects("errors", text)], names, text)
    contains(daemon.dlctl("errors", "a + x").stderr, 'there is no "x"')


main()
