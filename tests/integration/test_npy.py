#!/usr/bin/env python3
"""Arrays that numpy.save() and numpy.savez() wrote: their rows in every type, from memory and from the disk, in any order; what happens
when a file is cut meanwhile; and what is refused."""
import ctypes
import hashlib
import os
import signal
import struct
import sys
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from failing_fs import MNT_DETACH, own_mounts
from harness import LIBC, Skip, case, contains, equal, expected_order, indices, main, within, write
from pyclient import Trainer, need, trainer

MS_BIND = 4096

SCALARS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
           "float64")


def arrays(path):
    return {"path": path, "format": "npy"}


def save(path, array):
    import numpy
    os.makedirs(os.path.dirname(path), exist_ok=True)
    numpy.save(path, array)
    return path


def numbers(shape, dtype, seed=0):
    """Any bits but NaN's, which JSON has no words for."""
    import numpy
    dice = numpy.random.default_rng(seed)
    dtype = numpy.dtype(dtype)
    if dtype.kind == "f":
        return dice.standard_normal(shape).astype(dtype)
    if dtype.kind == "b":
        return dice.integers(0, 2, shape).astype(dtype)
    limits = numpy.iinfo(dtype)
    return dice.integers(limits.min, limits.max, shape, dtype=dtype.newbyteorder("="), endpoint=True).astype(dtype)


def told(row):
    """What `dlctl read` says of a row."""
    import numpy
    row = numpy.array(row, dtype=row.dtype.newbyteorder("<"))
    if row.ndim == 0:
        return {"dtype": row.dtype.name, "shape": [], "value": row.item()}
    return {"dtype": row.dtype.name, "shape": list(row.shape), "sha256": hashlib.sha256(row.tobytes()).hexdigest()}


def check(lines, fields, n, **terms):
    equal(indices(lines), expected_order(n, **terms), "order")
    for line in lines:
        equal(line["fields"], {name: told(array[line["index"]]) for name, array in fields.items()},
              f"sample {line['index']}")


def forget(*paths):
    """Takes files out of the page cache."""
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def n_bytes_read(daemon):
    return int({row["name"]: row["value"] for row in daemon.status()["counters"]}["n_bytes_read"])


@case("rows of every type, both orders of bytes, up to seven dimensions, with torch's order, for one rank and for three")
def _(box):
    need("numpy")
    n = 150
    fields = {}
    for number, name in enumerate(SCALARS):
        shape = (n,) + (2, 3, 1, 2, 1, 2, 1)[:number % 8]
        fields[name] = numbers(shape, name, seed=number)
        fields[f"{name}.big"] = numbers((n,), fields[name].dtype.newbyteorder(">"), seed=number)
    for name, array in fields.items():
        save(box.path("d", f"{name}.npy"), array)
    daemon = box.daemon({"d": arrays(box.path("d"))})
    names = list(fields)
    for first in (0, 8, 16):
        some = {name: fields[name] for name in names[first:first + 8]}
        check(daemon.read("d", batch=7 + 40 * first, pipeline=", ".join(some)), some, n)
    for rank in range(3):
        some = {name: fields[name] for name in names[3 * rank::3]}
        check(daemon.read("d", batch=100, pipeline="; ".join(some), world=3, rank=rank, seed=5), some, n, world=3,
              rank=rank, seed=5)
    check(daemon.read("d", batch=64), fields, n)  # all 24 in one batch
    equal(n_bytes_read(daemon), 0, "bytes that were read though all rows are in memory")


@case("one file is the field data; labels lie beside it; without a pipeline all arrays come")
def _(box):
    need("numpy")
    data, label = numbers((200, 33), "uint16"), numbers((200,), ">i2", seed=1)
    save(box.path("d", "tokens.npy"), data)
    save(box.path("d", "label.npy"), label)
    write(box.path("d", "README"), b"not an array")
    daemon = box.daemon({"d": arrays(box.path("d")), "one": arrays(box.path("d", "tokens.npy"))})
    check(daemon.read("d", batch=64), {"label": label, "tokens": data}, 200)
    check(daemon.read("d", batch=1, pipeline="label"), {"label": label}, 200)
    check(daemon.read("one", batch=200, shuffle=False), {"data": data}, 200, shuffle=False)
    lines = daemon.read("one", batch=3, pipeline="data: raw", limit=1)
    equal(lines[0]["fields"]["data"]["dtype"], "bytes", "raw is the stored bytes")
    for line in daemon.read("d", pipeline="label; tokens: raw", limit=1):  # bytes beside a field of another file
        equal(line["fields"]["tokens"]["sha256"], hashlib.sha256(data[line["index"]].tobytes()).hexdigest(), "bytes")
    daemon.refused("d", "the dataset has none", "label, tokens", pipeline="hflip(0.5)")
    daemon.refused("d", "field label", "is an array", pipeline="label: hflip(0.5)")
    daemon.refused("d", "no field \"labl\"", "label, tokens", pipeline="labl; tokens")


@case("rows that are not in memory are read, and are the same; a field of each file")
def _(box):
    need("numpy")
    n = 5000
    fields = {"a": numbers((n, 700), "uint16"), "b": numbers((n, 3, 5), "float32", seed=1), "c": numbers((n,), "<i8", seed=2)}
    paths = [save(box.path("d", f"{name}.npy"), array) for name, array in fields.items()]
    daemon = box.daemon({"d": arrays(box.path("d"))})
    forget(*paths)
    check(daemon.read("d", batch=257), fields, n)
    if n_bytes_read(daemon) == 0:
        raise AssertionError("nothing was read, though the files were not in memory")
    within(20, lambda: [check(daemon.read("d", batch=257, seed=2), fields, n, seed=2), True][1], "and again, from memory")


@case("a run goes on where it was, also at another world size; NumPy and torch have the arrays' own types")
def _(box):
    need("numpy")
    fields = {name: numbers((90, 2), name, seed=3) for name in SCALARS}
    for name, array in fields.items():
        save(box.path("d", f"{name}.npy"), array)
    daemon = box.daemon({"d": arrays(box.path("d"))})
    first, types, rest = trainer(box, daemon, f"""
        names = {list(fields)!r}
        with dlclient.Loader("d", batch_size=20, pipeline="int8", seed=4) as loader:
            batch = next(iter(loader))
            out(batch.indices.tolist())
            state = loader.state_dict()
        types = []
        for some in (names[:8], names[8:]):
            with dlclient.Loader("d", batch_size=20, pipeline=", ".join(some)) as loader:
                batch = next(iter(loader))
                for name in some:
                    assert (batch[name] == numpy.load({box.path("d")!r} + f"/{{name}}.npy")[batch.indices]).all(), name
                    types.append(batch[name].dtype.name)
        out(types)
        rest = []
        for rank in range(2):
            with dlclient.Loader("d", batch_size=7, pipeline="int8", seed=4, state=state, rank=rank, world_size=2,
                                 job="two") as loader:
                rest.append([n for batch in loader for n in batch.indices.tolist()])
        out(rest)
        try:
            import torch
        except ImportError:
            torch = None
        if torch:
            with dlclient.Loader("d", batch_size=4, pipeline="uint8, int16, bool, float16", framework="torch") as loader:
                batch = next(iter(loader))
                assert [batch[name].dtype for name in ("uint8", "int16", "bool", "float16")] == \\
                    [torch.uint8, torch.int16, torch.bool, torch.float16]
            with dlclient.Loader("d", batch_size=4, pipeline="uint16", framework="torch") as loader:
                if hasattr(torch, "uint16"):
                    assert next(iter(loader))["uint16"].dtype == torch.uint16     # and not bfloat16
                else:
                    refused(dlclient.FrameworkMissing, lambda: next(iter(loader))["uint16"], "uint16", "torch 2.3")
    """)
    equal(types, list(fields), "types")
    order = expected_order(90, seed=4)
    equal(first, order[:20], "the first batch")
    equal([rest[rank] for rank in range(2)], [order[20 + rank::2] for rank in range(2)], "the rest, by two ranks")


@case("their file system can be unmounted as soon as the dataset is out of the configuration and nobody is served")
def _(box):
    need("numpy")
    if os.geteuid() != 0:
        raise Skip("mounting takes root")
    own_mounts()
    real, seen = os.fsencode(box.path("real")), os.fsencode(box.path("seen"))
    data = numbers((3000, 10), "uint16")
    save(box.path("real", "data.npy"), data)
    os.mkdir(seen)
    if LIBC.mount(real, seen, None, MS_BIND, None) != 0:
        raise Skip(f"nothing can be mounted here: {os.strerror(ctypes.get_errno())}")
    box.cleanups.append(lambda: LIBC.umount2(seen, MNT_DETACH))

    def unmount():
        return LIBC.umount2(seen, 0) == 0

    daemon = box.daemon({"d": arrays(box.path("seen"))})
    check(daemon.read("d", batch=100), {"data": data}, 3000)
    reader = daemon.reader("d", batch=1, slots=2, delay_ms=10)
    reader.wait_lines(2)
    daemon.datasets = {}
    daemon.write_config()
    daemon.signal(signal.SIGHUP)
    within(20, lambda: not daemon.objects("datasets"), "the configuration is read again")
    equal(unmount(), False, "unmounted while a rank is served")
    reader.process.terminate()
    reader.finish()
    within(20, unmount, "it can be unmounted after the last rank has left")


@case("a trainer over a daemon that is killed twice, whose files leave the memory: each row in its turn, over threads")
def _(box):
    need("numpy")
    n, batch = 3000, 100
    data, label = numbers((n, 300), "uint16"), numbers((n,), "int64", seed=1)
    paths = [save(box.path("d", "data.npy"), data), save(box.path("d", "label.npy"), label)]
    daemon = box.daemon({"d": arrays(box.path("d"))}, reader="threads")
    run = Trainer(box, daemon, f"""
        with dlclient.Loader("d", batch_size={batch}, slots=2, seed=6) as loader:
            for epoch in range(2):
                loader.set_epoch(epoch)
                for step, batch in enumerate(loader):
                    out([epoch, batch.indices.tolist(), int(batch["data"].sum()), int((batch["label"] >> 32).sum())])
                    while step == 8 and not os.path.exists({box.path("go")!r} + str(epoch)): time.sleep(0.01)
    """)
    for epoch in range(2):
        run.wait_lines(epoch * n // batch + 9)
        daemon.kill()
        forget(*paths)
        daemon.start()
        write(box.path(f"go{epoch}"), b"")
    lines = run.finish()
    if n_bytes_read(daemon) == 0:
        raise AssertionError("nothing was read, though the files were not in memory")
    for epoch in range(2):
        order = expected_order(n, seed=6, epoch=epoch)
        rows = [order[first:first + batch] for first in range(0, n, batch)]
        equal([line[1:] for line in lines if line[0] == epoch],
              [[some, int(data[some].sum()), int((label[some] >> 32).sum())] for some in rows], f"epoch {epoch}")


@case("a file that is cut or written anew while it is served: damage is named, and what is new is opened by the next")
def _(box):
    need("numpy")
    n = 20000
    data, label = numbers((n, 512), "uint16"), numbers((n,), "int64", seed=1)
    path = save(box.path("d", "data.npy"), data)
    save(box.path("d", "label.npy"), label)
    daemon = box.daemon({"d": arrays(box.path("d"))})
    reader = daemon.reader("d", batch=100, shuffle=False, epochs=3, on_error="skip")
    reader.wait_lines(100)
    n_left = n - 40
    os.truncate(path, 128 + 1024 * n_left)
    status, lines = reader.finish(120)
    equal(status, 0, f"exit status: {reader.errors()}")
    for line in lines:
        equal(line["fields"]["label"]["value"], int(label[line["index"]]), "label")
        equal(line["fields"]["data"], told(data[line["index"]]), f"row {line['index']}")
    last = [line["index"] for line in lines if line["epoch"] == 2]
    equal(last, list(range(n_left)), "rows that are left, in the last epoch")
    contains(daemon.log(), "data.npy: changed: bytes ", " were expected, the file ends at ")
    equal({error["field"] for error in daemon.objects("errors", "d")}, {"data"}, "the field whose file was cut")
    daemon.refused("d", "data.npy is cut", "header says 20000 rows", pipeline="data")
    save(path, data[:50])
    save(box.path("d", "label.npy"), label[:50])
    check(daemon.read("d", batch=9), {"data": data[:50], "label": label[:50]}, 50)


@case("a thousand million rows take no memory that grows with their number")
def _(box):
    need("numpy")
    import numpy
    n = 1_000_000_000
    os.makedirs(box.path("d"))
    with open(box.path("d", "x.npy"), "wb") as file:
        numpy.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (n, 2)})
        at = file.tell()
        file.truncate(at + n * 8)
        file.seek(at + 8 * (n - 1))
        file.write(numpy.array([1.5, -2.5], dtype="<f4").tobytes())
    daemon = box.daemon({"d": arrays(box.path("d"))})
    before = daemon.rss_kib()
    lines = daemon.read("d", batch=2, shuffle=False, first_position=n - 3)
    equal(indices(lines), [n - 3, n - 2, n - 1], "the last rows")
    equal([line["fields"]["x"] for line in lines[1:]], [told(numpy.array(row, dtype="<f4")) for row in ([0, 0], [1.5, -2.5])],
          "the last rows")
    if daemon.rss_kib() - before > 64 << 10:
        raise AssertionError(f"{(daemon.rss_kib() - before) >> 10} MiB more for a dataset whose rows are computed")


@case("a raw memory map: type, rows and offset from the configuration; a rest is not left out silently")
def _(box):
    need("numpy")
    data, floats = numbers((500, 2049), "uint16"), numbers((40, 3, 5), ">f4", seed=1)
    write(box.path("x.bin"), data.tobytes())
    write(box.path("f.dat"), b"a header of its own" + floats.tobytes() + b"and more")
    tokens, other = {"format": "npy", "path": box.path("x.bin")}, {"format": "npy", "path": box.path("f.dat"), "dtype": ">f4"}
    daemon = box.daemon({
        "rows": {**tokens, "dtype": "uint16", "shape": "-1,2049"}, "some": {**tokens, "dtype": "<u2", "shape": "7,2049"},
        "each": {**tokens, "dtype": "uint8"}, "floats": {**other, "shape": "40, 3, 5", "offset": "19"},
        "rest": {**tokens, "dtype": "uint16", "shape": "-1,2048"}, "more": {**tokens, "dtype": "uint16", "shape": "501,2049"},
        "far": {**other, "offset": "10000"}, "object": {**tokens, "dtype": "|O8"}, "word": {**tokens, "dtype": "u2'"},
        "shape": {**tokens, "dtype": "u2", "shape": "-1,x"}, "alone": {**tokens, "shape": "-1,2049"},
        "folder": {"format": "npy", "path": box.path(), "dtype": "uint16"},
        "large": {**tokens, "dtype": "u2", "shape": "9223372036854775807,9223372036854775807"}})
    check(daemon.read("rows", batch=64, seed=1), {"data": data}, 500, seed=1)
    check(daemon.read("some", batch=3), {"data": data[:7]}, 7)
    check(daemon.read("floats", batch=9), {"data": floats}, 40)
    equal([line["fields"]["data"]["value"] for line in daemon.read("each", batch=5, limit=1, shuffle=False)],
          list(data.tobytes()[:5]), "bytes")
    equal(n_bytes_read(daemon), 0, "bytes that were read though all rows are in memory")
    daemon.refused("rest", "500 rows of 4096 bytes and 1000 bytes more", 'shape = "500,2048"')
    daemon.refused("more", "501 rows of 4098 bytes are more")
    daemon.refused("far", "offset is 10000, the file has 2427 bytes")
    daemon.refused("object", "Python objects")
    daemon.refused("word", "is not a type")
    daemon.refused("shape", "is not the number of rows")
    daemon.refused("alone", "dtype is missing")
    daemon.refused("folder", "is a folder", "leave dtype out")
    daemon.refused("large", "x.bin: ")


def packed(path, arrays_of, save=None):
    import numpy
    os.makedirs(os.path.dirname(path), exist_ok=True)
    (save or numpy.savez)(path, **arrays_of)
    return path


@case("an archive of numpy.savez() is the same dataset as a folder of its arrays")
def _(box):
    need("numpy")
    n = 3000
    fields = {"y": numbers((n,), ">i2"), "image": numbers((n, 8, 9, 3), "uint8", seed=1), "w": numbers((n,), "float64", seed=2)}
    path = packed(box.path("d.npz"), fields)
    for name, array in fields.items():
        save(box.path("d", f"{name}.npy"), array)
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"made by hand" * 1000
    daemon = box.daemon({"d": arrays(path), "folder": arrays(box.path("d"))})
    check(daemon.read("d", batch=100), fields, n)
    equal(n_bytes_read(daemon), 0, "bytes that were read though all rows are in memory")
    forget(path)
    check(daemon.read("d", batch=64, pipeline="w; image", seed=3, world=2, rank=1),
          {name: fields[name] for name in ("w", "image")}, n, seed=3, world=2, rank=1)
    equal(len(daemon.read("folder", batch=100, limit=1)), 100, "samples of the folder")
    digests = {row["name"]: row["digest"] for row in daemon.objects("datasets")}
    equal(digests["d"], digests["folder"], "digest")


def entry(name, n_bytes, local, method=0, flags=0, more=b""):
    """Of a zip's directory, with its numbers in a zip64 field."""
    extra = struct.pack("<HHQQQ", 1, 24, n_bytes, n_bytes, local) if not more else more
    return struct.pack("<4s6H3I5H2I", b"PK\1\2", 45, 45, flags, method, 0, 0, 0, 0xFFFFFFFF, 0xFFFFFFFF, len(name), len(extra),
                       0, 0, 0, 0, 0xFFFFFFFF) + name + extra


def ending(directory, at, n=1):
    """A zip's directory that begins at this byte, and what follows it."""
    end = at + len(directory)
    return (directory + struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, n, n, len(directory), at) +
            struct.pack("<4sIQI", b"PK\6\7", 0, end, 1) + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, n, n, 0xFFFFFFFF, 0xFFFFFFFF, 0))


def local(name, extra=b""):
    return struct.pack("<4s5H3I2H", b"PK\3\4", 45, 0, 0, 0, 0, 0, 0, 0, len(name), len(extra)) + name + extra


@case("an archive of more than 4 GiB: arrays before and after that byte")
def _(box):
    need("numpy")
    import numpy
    n, path = 1 << 16, box.path("large.npz")
    rows = numpy.arange(3 * n, dtype="<i4").reshape(n, 3)
    large = header(f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({n}, 10240), }}\n")
    small = header(f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({n}, 3), }}\n") + rows.tobytes()
    n_large = len(large) + n * 81920
    with open(path, "wb") as file:
        file.write(local(b"a.npy") + large)
        second = file.seek(len(local(b"a.npy")) + n_large)
        file.write(local(b"b.npy", struct.pack("<HHQQ", 1, 16, len(small), len(small))) + small)
        at = file.tell()
        file.write(ending(entry(b"a.npy", n_large, 0) + entry(b"b.npy", len(small), second), at, 2))
    equal(sorted(numpy.load(path).files), ["a", "b"], "arrays that numpy finds")
    daemon = box.daemon({"d": arrays(path)})
    for line in daemon.read("d", batch=256, pipeline="b", limit=4) + daemon.read("d", batch=1, first_position=n - 1):
        equal(line["fields"]["b"], told(rows[line["index"]]), f"row {line['index']}")


@case("archives that cannot be served are refused with the file, the member, and what to do")
def _(box):
    need("numpy")
    import numpy
    good, ten = open(packed(box.path("good.npz"), {"a": numpy.arange(10), "b": numpy.ones((10, 2))}), "rb").read(), numpy.arange(10)
    array = lying("(3,)") + bytes(12)

    def crafted(directory, n=1, before=local(b"a.npy") + array):
        return before + ending(directory, len(before), n)

    packed(box.path("compressed.npz"), {"a": ten}, numpy.savez_compressed)
    packed(box.path("lengths.npz"), {"a": ten, "b": ten[:9]})
    packed(box.path("objects.npz"), {"a": numpy.array([{}, None])})
    packed(box.path("names.npz"), {"a\x01b": ten})
    with zipfile.ZipFile(box.path("other.npz"), "w") as archive:
        archive.writestr("readme.txt", "not an array")
    with zipfile.ZipFile(box.path("empty.npz"), "w") as archive:
        pass
    contents = {
        "cut": good[:-1], "half": good[:len(good) // 2], "nothing": b"", "before": b"x" + good, "garbage": b"PK\5\6" + bytes(40),
        "middle": good[:300] + good[301:],
        "twice": crafted(entry(b"a.npy", len(array), 0) * 2, 2),
        "locked": crafted(entry(b"a.npy", len(array), 0, flags=1)),
        "away": crafted(entry(b"a.npy", len(array), 1 << 62)),
        "beyond": crafted(entry(b"a.npy", (1 << 64) - 1, 0)),
        "elsewhere": crafted(entry(b"a.npy", len(array), 7)),
        "shorter": crafted(entry(b"a.npy", len(array) - 1, 0)),
        "longer": crafted(entry(b"a.npy", len(array) + 1, 0), before=local(b"a.npy") + array + b"x"),
        "fewer": crafted(entry(b"a.npy", len(array), 0) * 2, 1), "more": crafted(entry(b"a.npy", len(array), 0), 2),
        "extra": crafted(entry(b"a.npy", len(array), 0, more=struct.pack("<HH", 1, 24))),
        "field": crafted(entry(b"a.npy", len(array), 0, more=struct.pack("<HHQ", 1, 8, 5))),
        "name": crafted(entry(b"a" * 300 + b".npy", len(array), 0)),
    }
    for name, content in contents.items():
        write(box.path(f"{name}.npz"), content)
    words = {
        "compressed": ("a.npy", "savez()"), "lengths": ("10 (a), 9 (b)", 'fields = "a"'),
        "objects": ("a.npy", "Python objects"), "names": ("a?b.npy", "name of a field"), "other": ("readme.txt", "not an array"),
        "empty": ("no array in it",), "cut": ("no end of a zip archive",), "half": ("no end of a zip archive",),
        "nothing": ("no end of a zip archive",), "before": ("bytes are missing or were added",), "garbage": ("no end of a zip",),
        "middle": ("bytes are missing or were added",), "twice": ("a.npy is in it twice",), "locked": ("a.npy", "compressed or encrypted"),
        "away": ("cut here",), "beyond": ("a.npy has 18446744073709551615 bytes", "directory"), "elsewhere": ("no file begins here",),
        "shorter": ("a.npy is cut",), "longer": ("goes on after",), "fewer": ("goes on after its last entry",),
        "more": ("no entry of the directory",), "extra": ("extra field", "is cut"), "field": ("zip64 field", "is cut"),
        "name": ("more than 255 bytes",),
    }
    equal(sorted(words), sorted(set(contents) | {"compressed", "lengths", "objects", "names", "other", "empty"}), "names")
    daemon = box.daemon({name: arrays(box.path(f"{name}.npz")) for name in [*words, "good"]})
    for name, some in words.items():
        daemon.refused(name, f"{name}.npz", *some)
    equal(len(daemon.read("good", batch=3)), 10, "samples of another one")


@case("a folder with one archive is that archive; with several, the path has to name one")
def _(box):
    need("numpy")
    import numpy
    fields = {"a": numpy.arange(10), "b": numpy.arange(20, dtype=numpy.int16).reshape(10, 2)}
    os.makedirs(box.path("one"))
    packed(box.path("one", "x.npz"), fields)
    write(box.path("one", "about.txt"), b"ten rows")
    daemon = box.daemon({"folder": {"path": box.path("one"), "format": "auto"}, "file": arrays(box.path("one", "x.npz"))})
    got, wanted = (daemon.read(name, pipeline="raw", batch=3) for name in ("folder", "file"))
    equal([line["fields"] for line in got], [line["fields"] for line in wanted], "rows")
    daemon.dlctl("status")
    packed(box.path("one", "y.npz"), fields)
    within(30, lambda: daemon.reader("folder").finish(20)[0] == 1, "the new archive is noticed")
    daemon.refused("folder", "2 archives NAME.npz", "name it in path")
    os.unlink(box.path("one", "y.npz"))
    packed(box.path("one", "x.npz"), fields, numpy.savez_compressed)
    within(30, lambda: "savez_compressed" in refusal(daemon, "folder"), "the compressed archive is noticed")


def refusal(daemon, name):
    reader = daemon.reader(name)
    reader.finish(20)
    return reader.errors()


def header(text, version=(1, 0), n_bytes=None):
    text = text.encode("latin1")
    form = "<H" if version[0] == 1 else "<I"
    return b"\x93NUMPY" + bytes(version) + struct.pack(form, len(text) if n_bytes is None else n_bytes) + text


def lying(shape, descr="'<f4'", order="False", more=""):
    return header(f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, {more}}}\n")


@case("what cannot be served is refused with the file's name and what to do")
def _(box):
    need("numpy")
    import numpy
    good = lying("(3, 2)") + bytes(24)
    rows = {
        "objects": (numpy.array([{}, None]), "Python objects"), "text": (numpy.array(["a", "bc"]), "text"),
        "bytes": (numpy.array([b"a"]), "byte strings"), "dates": (numpy.array(["2026-01-01"], dtype="M8[D]"), "dates"),
        "spans": (numpy.array([1], dtype="m8[s]"), "time spans"), "complex": (numpy.zeros((2, 2), "c8"), "complex"),
        "long": (numpy.zeros((2, 2), "longdouble"), "unusual size"),
        "records": (numpy.zeros(2, dtype=[("a", "i4")]), "records"), "void": (numpy.zeros(2, dtype="V5"), "bytes without a type"),
        "bfloat16": (numpy.zeros(2, dtype="V2"), "bfloat16", "numpy.uint16"),
        "fortran": (numpy.asfortranarray(numpy.zeros((3, 2))), "numpy.ascontiguousarray()", 'prepare = "convert"'),
        "single": (numpy.float32(3), "single number"), "empty": (numpy.zeros((0, 3)), "no rows"),
        "thin": (numpy.zeros((3, 0)), "without elements"), "nine": (numpy.zeros((2,) * 9), "more than 8 dimensions"),
        "not": (b"GIF89a", "does not begin with"), "nothing": (b"", "does not begin with"),
        "version": (header("{}", (9, 1)), "version 9"), "short": (good[:40], "cut within its header"),
        "length": (header("{}", (2, 0), 1 << 31), "2147483648 bytes"), "cut": (good[:-1], "is cut", "3 rows of 8 bytes"),
        "more": (good + b"x", "goes on after the array"), "huge": (lying("(4294967296, 4294967296, 4294967296)"), "overflows"),
        "many": (lying("(9223372036854775807, 1)"), "overflows"), "digits": (lying("(99999999999999999999, 1)"), "number of elements"),
        "negative": (lying("(-3, 2)"), "not negative"), "twice": (lying("(3,)", more="'shape': (3,)"), "twice"),
        "other": (lying("(3,)", more="'x': 1"), "entry \"x\""), "missing": (header("{'shape': (3,)}"), "lacks 'descr'"),
        "garbage": (header("{'descr': <f4}"), "a type such as"), "tail": (header("{} x"), "the end was expected"),
        "maybe": (lying("(3,)", order="None"), "True or False"), "unknown": (lying("(3,)", descr="'<q7'"), "unknown"),
    }
    datasets = {}
    for name, (content, *_) in rows.items():
        path = box.path("d", f"{name}.npy")
        if isinstance(content, bytes):
            write(path, content)
        elif content.dtype.hasobject:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            numpy.save(path, content, allow_pickle=True)
        else:
            save(path, content)
        datasets[name] = arrays(path)
    save(box.path("lengths", "a.npy"), numpy.zeros(5))
    save(box.path("lengths", "b.npy"), numpy.zeros(6))
    save(box.path("name", "a\x01b.npy"), numpy.zeros(5))
    write(box.path("none", "a.npy.txt"), b"PK")
    os.makedirs(box.path("fifo"))
    os.mkfifo(box.path("fifo", "a.npy"))
    for number in range(131):
        save(box.path("full", f"{number}.npy"), numpy.zeros(5))
    folders = {"lengths": ("5 (a), 6 (b)", 'fields = "b"'), "name": ("a?b.npy", "name of a field"), "none": ("no file NAME.npy or NAME.npz",),
               "fifo": ("a.npy", "not a regular file"), "full": ("more than 32 fields", "limit of a batch")}
    datasets.update({name: arrays(box.path(name)) for name in folders})
    save(box.path("good", "x.npy"), numpy.zeros((4, 2)))
    daemon = box.daemon({**datasets, "good": arrays(box.path("good"))})
    for name, (_, *words) in rows.items():
        daemon.refused(name, f"{name}.npy", *words)
    for name, words in folders.items():
        daemon.refused(name, *words)
    equal(len(daemon.read("good", batch=3)), 4, "samples of another one")


main()
