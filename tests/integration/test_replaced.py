#!/usr/bin/env python3
"""Files that were replaced by others of equal size and time: the daemon serves what is there now, and a saved state notices
that these are other data. What touches no byte (chmod, a link, a copy) changes no digest."""
import hashlib
import io
import os
import shutil
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, contains, equal, main, write
from pyclient import trainer
from tfrecords import framed

N = 6


def jsonl(shift):
    return b"".join(b'{"x": %d, "t": "%c"}\n' % (10 + i + shift, 97 + i + shift) for i in range(N))


def csv(shift):
    return b"x,t\n" + b"".join(b"%d,%c\n" % (10 + i + shift, 97 + i + shift) for i in range(N))


def text(shift):
    """Lines whose lengths change places, so that old offsets would be wrong."""
    rows = [b"line %d" % (i + shift) + b"." * i for i in range(N)]
    return b"\n".join(rows if shift == 0 else rows[::-1]) + b"\n"


def tar(shift):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as out:
        for i in range(N):
            member = tarfile.TarInfo(f"{i}.cls")
            content = b"%d" % (10 + i + shift)
            member.size = len(content)
            out.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def npy(shift):
    import numpy
    packed = io.BytesIO()
    numpy.save(packed, numpy.arange(N, dtype="i8") + shift)
    return packed.getvalue()


def tfrecord(shift):
    return b"".join(framed(b"record %d" % (10 + i + shift)) for i in range(N))


KINDS = {"jsonl": ("d.jsonl", jsonl, "jsonl"), "csv": ("d.csv", csv, "csv"), "text": ("d.txt", text, "text"),
         "tar": ("d.tar", tar, "webdataset"), "npy": ("d.npy", npy, "npy"), "tfrecord": ("d.tfrecord", tfrecord, "tfrecord")}


def fields_of(daemon, name):
    return [line["fields"] for line in daemon.read(name, shuffle=False, job=os.urandom(4).hex())]


def digests(daemon):
    return {row["name"]: row["digest"] for row in daemon.objects("datasets")}


def replace(path, content, way):
    """Other bytes, of the same length, at the same path and with the same time."""
    status = os.stat(path)
    equal(len(content), status.st_size, "bytes")
    folder = os.stat(os.path.dirname(path))
    if way == "renamed":
        write(path + ".new", content)
        os.replace(path + ".new", path)
    else:
        with open(path, "r+b") as file:
            file.write(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.utime(os.path.dirname(path), ns=(folder.st_atime_ns, folder.st_mtime_ns))
    equal(os.stat(path).st_mtime_ns, status.st_mtime_ns, "time")


def make_all(box, shift):
    return {kind: write(box.path(f"{shift}-{kind}", name), make(shift)) or
            {"path": box.path(f"{shift}-{kind}", name), "format": form} for kind, (name, make, form) in KINDS.items()}


for WAY in ("renamed", "in place"):
    @case(f"a file that is replaced by one of equal size and time ({WAY}) is served as it is now, and is another dataset")
    def _(box, way=WAY):
        files, others = make_all(box, 0), make_all(box, 1)
        daemon = box.daemon(files, name="first")
        wanted = box.daemon(others, name="second")
        for kind in files:
            fields_of(daemon, kind)
        before = digests(daemon)
        for kind, (_, make, _) in KINDS.items():
            replace(files[kind]["path"], make(1), way)
        expected = {kind: fields_of(wanted, kind) for kind in files}
        for kind in files:
            equal(fields_of(daemon, kind), expected[kind], f"{kind} of the running daemon")
        after = digests(daemon)
        daemon.stop()
        daemon.start()
        for kind in files:
            equal(fields_of(daemon, kind), expected[kind], f"{kind} after a restart")
            equal(after[kind] != before[kind], True, f"another digest of {kind}")
        equal(digests(daemon), after, "digests after a restart")


@case("a state of a run does not go on with a file that was replaced by one of equal size and time")
def _(box):
    files = make_all(box, 0)
    daemon = box.daemon(files)
    names = sorted(files)
    states = trainer(box, daemon, """
        for name in sys.argv[1:]:
            with dlclient.Loader(name, batch_size=2, shuffle=False) as loader:
                next(iter(loader))
                out(loader.state_dict())
    """, *names)
    for kind, (_, make, _) in KINDS.items():
        replace(files[kind]["path"], make(1), "renamed")
    trainer(box, daemon, """
        for state in eval(sys.argv[1]):
            refused(dlclient.StateError, lambda: dlclient.Loader(state["dataset"], batch_size=2, shuffle=False, state=state), "digest")
    """, repr(states))


@case("a shard that another file replaces while a run has not read it yet is damage, and not read at the old places; one that grows is read")
def _(box):
    for name in ("replaced", "grown", "touched"):
        for shard in range(3):
            write(box.path(name, f"{shard}.csv"), csv(10 * shard))
    daemon = box.daemon({name: {"path": box.path(name), "format": "csv"} for name in ("replaced", "grown", "touched")})
    trainer(box, daemon, """
        def begun(name):
            loader = dlclient.Loader(name, batch_size=1, shuffle=False, slots=2, on_error="skip")
            batches = iter(loader)
            return loader, batches, [next(batches)["x"].item()]
        old = list(range(10, 16)) + list(range(20, 26))
        for name, last in (("replaced", []), ("grown", list(range(30, 36))), ("touched", list(range(30, 36)))):
            loader, batches, found = begun(name)
            path = os.path.join(sys.argv[1], name, "2.csv")
            if name == "replaced":
                with open(path + ".new", "w") as file:
                    file.write("x,t\\n" + "7,longer\\n" * 9)
                os.replace(path + ".new", path)
            elif name == "grown":
                with open(path, "a") as file:
                    file.write("99,z\\n")
            else:
                os.chmod(path, 0o600)
            found += [batch["x"].item() for batch in batches]
            assert found == old + last, (name, found)
    """, box.folder)
    contains(daemon.dlctl("errors", "replaced").stdout, "2.csv: changed: it was written to, or another file has taken its place")


@case("a shard that is written to while it is read ends its jobs with its name; one that is only touched, linked or given another mode does not")
def _(box):
    names = ("rewritten", "copied", "moved", "touched", "mode")
    for name in names:
        for shard in range(2):
            write(box.path(name, f"{shard}.csv"), csv(10 * shard).replace(b"\n", b"\r\n" if name == "moved" else b"\n"))
    daemon = box.daemon({name: {"path": box.path(name), "format": "csv"} for name in names})
    trainer(box, daemon, """
        import shutil, time
        loaders = {name: dlclient.Loader(name, batch_size=1, shuffle=False, slots=2) for name in ("rewritten", "copied", "moved", "touched", "mode")}
        batches = {name: iter(loader) for name, loader in loaders.items()}
        old = list(range(10, 16)) + list(range(20, 26))
        def epoch(name):
            found = []
            for batch in batches[name]:
                found.append(batch["x"].item())
                del batch
            batches[name] = iter(loaders[name])
            return found
        for name in loaders:
            assert epoch(name) == old, name
        shards = {name: os.path.join(sys.argv[1], name, "1.csv") for name in loaders}
        new = b"x,t\\n" + b"".join(b"%d,%c\\n" % (99 - i, 97 + i) for i in range(6))
        assert len(new) == os.path.getsize(shards["rewritten"])
        with open(shards["rewritten"], "r+b") as file:
            file.write(new)
        with open(shards["copied"] + ".new", "wb") as file:
            file.write(new[:-10])
        shutil.copyfile(shards["copied"] + ".new", shards["copied"])
        with open(shards["moved"], "r+b") as file:  # the same samples, each nearer to the beginning
            content = file.read().replace(b"\\r\\n", b"\\n")
            file.seek(0)
            file.write(content)
            file.truncate()
        os.utime(shards["touched"])
        os.chmod(shards["mode"], 0o600)
        os.link(shards["mode"], shards["mode"] + ".link")
        def noticed(name, seconds=60):
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                try:
                    epoch(name)
                except dlclient.Error as error:
                    assert "1.csv: changed: it was written to" in str(error), error
                    return True
            return False
        for name in ("rewritten", "copied", "moved"):
            assert noticed(name), name
        end = time.monotonic() + 60
        is_compared = False
        while not is_compared and time.monotonic() < end:
            for name in ("touched", "mode"):
                assert epoch(name) == old, name
            with open(sys.argv[2]) as log:
                is_compared = "touched: it is the same; its jobs continue" in log.read()
        assert is_compared
        for loader in loaders.values():
            loader.close()
    """, box.folder, daemon.log_path)


@case("what touches no byte changes no digest: another mode, a second link, a copy with its time")
def _(box):
    files = make_all(box, 0)
    daemon = box.daemon(files)
    expected = {kind: fields_of(daemon, kind) for kind in files}
    before = digests(daemon)
    for kind in files:
        path = files[kind]["path"]
        for touch in (lambda: os.chmod(path, 0o640), lambda: os.link(path, box.path(f"{kind}-link")),
                      lambda: (shutil.copy2(path, path + ".new"), os.replace(path + ".new", path))):
            touch()
            equal(fields_of(daemon, kind), expected[kind], kind)
    equal(digests(daemon), before, "digests")
    daemon.stop()
    daemon.start()
    for kind in files:
        equal(fields_of(daemon, kind), expected[kind], f"{kind} after a restart")
    equal(digests(daemon), before, "digests after a restart")


@case("a file of one sample that is rewritten with its length is served as it is, under the old digest; with another length it is damage")
def _(box):
    for i in range(3):
        write(box.path("d", "data", f"{i}.bin"), b"old %d" % i)
        write(box.path("d", "labels", f"{i}.txt"), b"%d" % i)
    keys = {"format": "folder", "pattern": "data/{name}.bin", "files": "label=labels/{name}.txt"}
    daemon = box.daemon({"d": {"path": box.path("d"), **keys}})

    def served(**terms):
        return [tuple(line["fields"][name]["sha256"] for name in ("file", "label"))
                for line in daemon.read("d", pipeline="file: raw; label: raw", shuffle=False, job=os.urandom(4).hex(), **terms)]

    def told(*rows):
        return [tuple(hashlib.sha256(content).hexdigest() for content in row) for row in rows]

    old = [(b"old %d" % i, b"%d" % i) for i in range(3)]
    equal(served(), told(*old), "at first")
    before = digests(daemon)
    for way in ("in place", "renamed"):
        content = b"new " if way == "in place" else b"NEW "
        for i in range(2):
            replace(box.path("d", "data", f"{i}.bin"), content + b"%d" % i, way)
            replace(box.path("d", "labels", f"{i}.txt"), b"%d" % (8 - i), way)
        now = [(content + b"%d" % i, b"%d" % (8 - i)) for i in range(2)] + old[2:]
        equal(served(), told(*now), f"rewritten {way}")
        daemon.stop()
        daemon.start()
        equal(served(), told(*now), f"rewritten {way}, after a restart")
        equal(digests(daemon), before, "digest")
    with open(box.path("d", "data", "1.bin"), "ab") as file:
        file.write(b"more")
    equal(served(on_error="skip"), told(now[0], now[2]), "without the one that has grown")


@case("a class whose folder was replaced by one of equal time has its new pictures")
def _(box):
    folder = box.folder_of_files("f", 6)
    daemon = box.daemon({"f": folder})
    first = sorted(os.listdir(folder))[0]
    name = sorted(os.listdir(os.path.join(folder, first)))[0]
    equal(len(fields_of(daemon, "f")), 6, "samples")
    status = os.stat(os.path.join(folder, first))
    os.unlink(os.path.join(folder, first, name))
    os.utime(os.path.join(folder, first), ns=(status.st_atime_ns, status.st_mtime_ns))
    equal(len(fields_of(daemon, "f")), 5, "samples without the one that is gone")


main()
