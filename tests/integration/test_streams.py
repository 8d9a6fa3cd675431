#!/usr/bin/env python3
"""Streams: folders of tar archives that are served while they are still being written."""
import contextlib
import glob
import gzip
import hashlib
import io
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from failing_fs import SmallDisk
from harness import (DAEMON, Skip, case, config_text, contains, equal, expected_order, identity_bytes, indices, main, within,
                     write)
from pyclient import trainer
from tars import archive, check_raw, samples_of, web


def stream(path, **keys):
    return {**web(path), "stream": "yes", **keys}


def members_of(number, size=300):
    key = f"{number:06d}"
    return [(f"{key}.bin", identity_bytes(number, size)), (f"{key}.cls", b"%d" % number)]


class Writer:
    """Writes shards into a folder as they should be written: under another name first."""

    def __init__(self, folder):
        self.folder = folder
        self.n_shards = self.n_samples = 0
        os.makedirs(folder, exist_ok=True)

    def shard(self, n_samples, name=None):
        members = []
        for _ in range(n_samples):
            members += members_of(self.n_samples)
            self.n_samples += 1
        name = name or f"x-{self.n_shards:04d}.tar"
        self.n_shards += 1
        self.place(name, members)
        return name

    def place(self, name, members):
        archive(os.path.join(self.folder, ".new"), members)
        os.rename(os.path.join(self.folder, ".new"), os.path.join(self.folder, name))

    def end(self):
        write(os.path.join(self.folder, "_SUCCESS"), b"")


def row_of(daemon, name="s"):
    return next(row for row in daemon.objects("datasets") if row["name"] == name)


def order_of(n, **terms):
    return expected_order(n, order="buffer", **terms)


@case("a folder that grows is served to two ranks as it grows; its end reaches both, and the order is the buffer's")
def _(box):
    writer = Writer(box.path("s"))
    writer.shard(40)
    daemon = box.daemon({"s": stream(box.path("s"))})
    readers = [daemon.reader("s", world=2, rank=rank, job="j", batch=4, seed=5, shuffle_buffer=20) for rank in range(2)]
    for reader in readers:
        reader.wait_lines(8)
    for _ in range(5):
        writer.shard(17)
    within(20, lambda: row_of(daemon)["n_samples"] == 125, "the shards are taken")
    writer.shard(6)
    writer.end()
    for rank, reader in enumerate(readers):
        equal(indices(reader.good()), order_of(131, world=2, rank=rank, seed=5, shuffle_buffer=20), f"rank {rank}")
    row = row_of(daemon)
    equal((row["n_samples"], row["n_shards"], row["stream"], row["ended"]), (131, 7, True, True), "dlctl datasets")
    samples = samples_of(box.path("s"))
    equal(len(samples), 131, "samples")
    check_raw(daemon, "s", samples, ["bin", "cls"], shuffle=False)


@case("every partition and dealing, with and without the last batch: the end is the same for all ranks as if it had been known")
def _(box):
    writer = Writer(box.path("s"))
    writer.shard(50)
    daemon = box.daemon({"s": stream(box.path("s"))})
    wishes = [dict(partition=partition, drop_last=drop_last, shuffle=shuffle, dealing=dealing, batch=batch, epochs=2)
              for partition, drop_last, shuffle, dealing, batch in (
                  ("pad", False, True, "strided", 4), ("drop", False, True, "chunk", 5),
                  ("exact", False, False, "strided", 3), ("pad", True, True, "strided", 7),
                  ("exact", True, True, "batch", 64), ("drop", True, False, "strided", 64),
                  ("pad", False, True, "batch", 200))]
    for wish in wishes:
        wish["shuffle_buffer"] = 20 if wish["shuffle"] else None
    jobs = [[daemon.reader("s", world=3, rank=rank, job=f"j{i}", seed=i, **wish) for rank in range(3)]
            for i, wish in enumerate(wishes)]
    for reader in jobs[0]:
        reader.wait_lines(4)
    writer.shard(0)
    writer.shard(51)
    writer.shard(9)
    writer.end()
    for i, (wish, readers) in enumerate(zip(wishes, jobs)):
        for rank, reader in enumerate(readers):
            check(reader.good(), 110, seed=i, world=3, rank=rank, **wish)


def check(lines, n, batch, epochs=1, drop_last=False, first_position=0, **terms):
    """As check_sequence() of the harness, for the order of a stream."""
    expected = []
    for epoch in range(epochs):
        sequence = order_of(n, epoch=epoch, position=0 if epoch else first_position, batch=batch, **terms)
        if drop_last:
            sequence = sequence[:len(sequence) // batch * batch]
        expected += [(epoch, place // batch, index) for place, index in enumerate(sequence)]
    equal([(line["epoch"], line["step"], line["index"]) for line in lines], expected, "epoch, step, index")


@case("after a restart a run goes on at another world size where it was, and a shard that came too late stays out")
def _(box):
    writer = Writer(box.path("s"))
    writer.shard(40, "a.tar")
    writer.shard(40, "c.tar")
    daemon = box.daemon({"s": stream(box.path("s"))})
    first = [daemon.reader("s", world=2, rank=rank, job="j", batch=5, limit=4, shuffle_buffer=16) for rank in range(2)]
    for rank, reader in enumerate(first):
        equal(indices(reader.good()), order_of(200, world=2, rank=rank, shuffle_buffer=16)[:20], f"rank {rank} of two")
    writer.place("b.tar", members_of(7777))
    daemon.wait_log("b.tar came too late", 20)
    row = row_of(daemon)
    equal((row["n_late"], row["n_samples"]), (1, 80), "late shards, samples")
    contains(row["text"], "b.tar", "c.tar")
    daemon.stop()
    daemon.start()
    rest = [daemon.reader("s", world=3, rank=rank, job="k", batch=4, first_position=40, shuffle_buffer=16)
            for rank in range(3)]
    within(20, lambda: row_of(daemon).get("n_samples", 0) == 80, "the shards are taken again")
    writer.shard(40, "d.tar")
    writer.end()
    for rank, reader in enumerate(rest):
        equal(indices(reader.good()), order_of(120, world=3, rank=rank, position=40, shuffle_buffer=16),
              f"rank {rank} of three")
    contains(daemon.refused("s", "121", first_position=121, job="x"), "ended with 120 samples")


@case("the thread that goes on with a stream has not the nice value of the many that waited for their streams' first shards")
def _(box):
    writers = [Writer(box.path(f"s{i}")) for i in range(12)]
    daemon = box.daemon({f"s{i}": stream(writer.folder) for i, writer in enumerate(writers)},
                        program=["taskset", "-c", str(min(os.sched_getaffinity(0)))])  # of one, so that a few threads are many
    readers = [daemon.reader(f"s{i}", shuffle=False, batch=1) for i in range(len(writers))]
    within(30, lambda: len(daemon.nice_of("background")) == len(writers), "all wait")
    usual = daemon.nice_of("worker-0")[0]
    if max(daemon.nice_of("background")) == usual or os.getuid() != 0:
        raise Skip("only root may lower a nice value again")
    for writer in writers:
        writer.shard(2)
    for reader in readers:
        reader.wait_lines(1)
    within(30, lambda: set(daemon.nice_of("stream")) == {usual}, "nice values of the streams' threads")


@case("a shard that is not whole is waited for; jobs, status and the trainer say so, and an interrupt works meanwhile")
def _(box):
    writer = Writer(box.path("s"))
    writer.shard(20)
    whole = archive(box.path("whole.tar"), [member for i in range(20, 40) for member in members_of(i)])
    with open(whole, "rb") as file:
        content = file.read()
    half = box.path("s", "x-0001.tar")
    write(half, content[:9000])
    daemon = box.daemon({"s": stream(box.path("s"))})
    reader = daemon.reader("s", shuffle=False, batch=4, job="j")
    other = daemon.reader("s", shuffle=False, batch=4, job="k")
    reader.wait_lines(20)
    within(20, lambda: "x-0001.tar" in (daemon.objects("jobs") or [{}])[0].get("hold", ""), "dlctl jobs tells it")
    contains(row_of(daemon)["text"], "the end of the shard x-0001.tar", "9000 bytes")
    within(20, lambda: "x-0001.tar" in reader.errors(), "the trainer is told")
    os.kill(other.pid, 2)
    equal(other.finish()[0], 130, "exit status after an interrupt")
    write(half, content[:20 * 2048])  # all samples, and no end mark
    time.sleep(1.2)
    equal(len(reader.lines), 20, "nothing of a half shard")
    write(half, content)
    reader.wait_lines(40)
    within(20, lambda: "waits for a shard after x-0001.tar" in row_of(daemon)["text"], "what it waits for now")
    writer.end()
    equal(indices(reader.good()), list(range(40)), "samples")
    daemon.stop()


@case("a damaged shard ends there, is named, and on_error decides; so is a sample without a field, or with too long a one")
def _(box):
    writer = Writer(box.path("s"))
    writer.shard(10)
    path = archive(box.path("bad.tar"), [member for i in range(10, 20) for member in members_of(i)])
    with open(path, "r+b") as file:
        file.seek(5 * 2 * 1024 + 100)  # within the header of the sixth sample
        file.write(b"garbage")
    os.rename(path, box.path("s", "x-0001.tar"))
    writer.place("x-0002.tar", members_of(20)[:1] + members_of(21) + [("000022.bin", bytes(20000)), ("000022.cls", b"2")] +
                 members_of(23) + [("000023.new", b"x")])
    writer.end()
    daemon = box.daemon({"s": stream(box.path("s"))})
    lines = daemon.read("s", shuffle=False, on_error="skip", pipeline="cls", batch=4)
    good = list(range(14)) + [16, 18]  # the sample before the damage may lack a field that lies in it
    equal(indices(lines), good, "samples that were served")
    equal([line["fields"]["cls"]["value"] for line in lines], list(range(14)) + [21, 23], "labels")
    rows = sorted(daemon.objects("errors"), key=lambda row: row["index"])  # two workers find them in any sequence
    equal([row["index"] for row in rows], [14, 15, 17], "damaged samples")
    contains(rows[0]["error"], "checksum", "what comes after", "left out")
    equal(rows[0]["path"], "x-0001.tar", "path of the damage")
    contains(rows[1]["error"], "x-0002.tar", "no cls")
    contains(rows[2]["error"], "20000 bytes", "16384", "field_limit")
    daemon.refused_after(14, "s", "x-0001.tar", "checksum")
    contains(daemon.log(), "the field new is not served")
    daemon.stop()
    daemon = box.daemon({"s": stream(box.path("s"), field_limit="20000")})
    equal(indices(daemon.read("s", shuffle=False, on_error="skip", batch=4)), good[:-1] + [17, 18], "with another limit")


@case("a pattern: each shard is waited for in turn, and the last one is the end")
def _(box):
    writer = Writer(box.path("s"))
    daemon = box.daemon({"s": stream(box.path("s", "x-{0000..0003}.tar"))})
    reader = daemon.reader("s", shuffle=False, batch=3)
    within(20, lambda: "first whole shard" in row_of(daemon)["text"], "nothing is there yet")
    within(20, lambda: "first whole shard" in reader.errors(), "the trainer is told")
    writer.shard(10)
    reader.wait_lines(9)
    writer.n_shards = 2
    name = writer.shard(10)
    within(20, lambda: "waits for the shard x-0001.tar" in row_of(daemon)["text"], "x-0002.tar is not its turn")
    equal(len(reader.lines), 9, "lines")
    writer.n_shards, writer.n_samples = 1, 100
    writer.shard(5)
    writer.n_shards, writer.n_samples = 3, 200
    reader.wait_lines(24)
    writer.shard(5)
    equal(indices(reader.good()), list(range(30)), "samples")
    keys = [line["fields"]["cls"]["value"] for line in daemon.read("s", shuffle=False, pipeline="cls")]
    equal(keys, list(range(10)) + list(range(100, 105)) + list(range(10, 20)) + list(range(200, 205)), "in the pattern's order")


@case("a path of several parts: the archives of each are waited for in turn")
def _(box):
    writers = {name: Writer(box.path(name)) for name in ("s", "t")}
    daemon = box.daemon({"s": stream(box.path("t", "x-{0000..0001}.tar") + "::" + box.path("s", "x-0000.tar"))})
    reader = daemon.reader("s", shuffle=False, batch=3)
    writers["s"].shard(4)
    writers["t"].n_samples = 20
    writers["t"].shard(5)
    reader.wait_lines(3)
    within(20, lambda: "waits for the shard t/x-0001.tar" in row_of(daemon)["text"], "s/x-0000.tar is not its turn")
    writers["t"].shard(2)
    equal(indices(reader.good()), list(range(11)), "samples")
    keys = [line["fields"]["cls"]["value"] for line in daemon.read("s", shuffle=False, pipeline="cls")]
    equal(keys, list(range(20, 27)) + list(range(4)), "in the order of the parts")


@case("compressed shards are unpacked as they come, by gzip and zstd; the spool has a limit, and is gone afterwards")
def _(box):
    writer = Writer(box.path("s"))
    members = [[member for i in range(10 * k, 10 * k + 10) for member in members_of(i, 3000)] for k in range(6)]
    tars = [archive(box.path(f"t{k}.tar"), members[k]) for k in range(6)]
    contents = []
    for path in tars:
        with open(path, "rb") as file:
            contents.append(file.read())
    half = len(contents[1]) // 2
    packed = [gzip.compress(contents[0]), gzip.compress(contents[1][:half]) + gzip.compress(contents[1][half:]),
              gzip.compress(contents[2]), contents[3],
              gzip.compress(contents[4])]
    names = ["x-0.tar.gz", "x-1.tgz", "x-2.tar.zst", "x-3.tar", "x-4.tar.gz"]
    if shutil.which("zstd"):
        packed[2] = subprocess.run(["zstd", "-q", "-c", tars[2]], capture_output=True, check=True).stdout
    os.makedirs(box.path("spool"))
    for name, content in list(zip(names, packed))[:3]:
        write(box.path("s", name), content)
    daemon = box.daemon({"s": stream(box.path("s"), spool=box.path("spool"), spool_limit="120KiB")})
    reader = daemon.reader("s", shuffle=False, batch=5, pipeline="cls; bin: raw")
    reader.wait_lines(20)
    contains(row_of(daemon)["text"], "x-2.tar.zst", "spool_limit")
    daemon.stop()
    equal(os.listdir(box.path("spool")), [], "the spool afterwards")
    reader.finish()
    daemon = box.daemon({"s": stream(box.path("s"), spool=box.path("spool"))})
    reader = daemon.reader("s", shuffle=False, batch=5, pipeline="cls; bin: raw", epochs=2)
    reader.wait_lines(30)
    write(box.path("s", names[3]), packed[3])
    write(box.path("s", names[4]), packed[4][:len(packed[4]) // 2])
    within(20, lambda: "the end of the shard x-4.tar.gz" in row_of(daemon)["text"], "a half file is waited for")
    write(box.path("s", names[4]), packed[4])
    reader.wait_lines(50)
    damaged = bytearray(gzip.compress(contents[5]))
    damaged[len(damaged) // 2:len(damaged) // 2 + 40] = bytes(40)
    write(box.path("s", "x-5.tar.gz"), bytes(damaged))
    with lzma.open(box.path("s", "x-6.tar.xz"), "w") as file:
        file.write(contents[5])
    writer.end()
    status, lines = reader.finish()
    contains(reader.errors(), "x-5.tar.gz", "compressed data are damaged")
    equal(status, 1, "exit status")
    lines = daemon.read("s", shuffle=False, batch=7, pipeline="cls; bin: raw", on_error="skip", epochs=2)
    first = [line for line in lines if line["epoch"] == 0]
    equal([line["fields"]["cls"]["value"] for line in first][:50], list(range(50)), "labels")
    for line in first[:50]:
        number = line["fields"]["cls"]["value"]
        equal(line["fields"]["bin"]["sha256"], hashlib.sha256(identity_bytes(number, 3000)).hexdigest(), "bytes")
    equal(indices(lines, 1), indices(lines, 0), "the second epoch")
    contains(daemon.dlctl("errors", "s").stdout, "xz")
    daemon.kill()
    equal(len(os.listdir(box.path("spool"))), 1, "left by a kill")
    daemon.start()
    within(20, lambda: row_of(daemon).get("ended"), "it is unpacked again")
    daemon.stop()
    equal(os.listdir(box.path("spool")), [], "the spool after all")


def write_pipe(path, numbers, size=700, pauses=(), wait=None, cut=0, linked=()):
    """A tar archive into a pipe, as tar does it; after the samples of these numbers it calls wait(number). `linked` are
    those whose file is a symbolic link to that of the first."""
    whole = io.BytesIO()
    with contextlib.suppress(BrokenPipeError), open(path, "wb", buffering=0) as pipe:
        with tarfile.open(fileobj=whole, mode="w") as tar:
            for number in numbers:
                for name, content in members_of(number, size(number) if callable(size) else size):
                    info = tarfile.TarInfo(name)
                    info.size = len(content)
                    if number in linked and name.endswith(".bin"):
                        info.type, info.linkname, info.size = tarfile.SYMTYPE, "000000.bin", 0
                    tar.addfile(info, io.BytesIO(content))
                if number in pauses:
                    pipe.write(whole.getvalue())
                    whole.seek(0)
                    whole.truncate()
                    wait(number)
        content = whole.getvalue()
        pipe.write(content[:len(content) - cut])


@case("a pipe: its samples are served as they come, in every epoch, until the writer closes it")
def _(box):
    os.mkfifo(box.path("p"))
    os.makedirs(box.path("spool"))
    daemon = box.daemon({"s": stream(box.path("p"), spool=box.path("spool"))})
    readers = [daemon.reader("s", world=2, rank=rank, job="j", batch=8, seed=3, shuffle_buffer=50, epochs=2,
                             pipeline="cls; bin: raw") for rank in range(2)]

    def taken(number):
        """The last sample may go on, so all but that one are there after a pause."""
        within(20, lambda: row_of(daemon)["n_samples"] >= number, f"{number} samples after a pause")

    writing = threading.Thread(target=write_pipe, args=(box.path("p"), range(2500)),
                               kwargs={"pauses": (1400, 1401, 2200), "wait": taken})
    writing.start()
    readers[0].wait_lines(500)
    writing.join()
    for rank, reader in enumerate(readers):
        lines = reader.good()
        for epoch in range(2):
            equal(indices(lines, epoch), order_of(2500, world=2, rank=rank, seed=3, epoch=epoch, shuffle_buffer=50), f"rank {rank}")
        for line in lines:
            equal(line["fields"]["cls"]["value"], line["index"], "label")
            equal(line["fields"]["bin"]["sha256"], hashlib.sha256(identity_bytes(line["index"], 700)).hexdigest(), "bytes")
    row = row_of(daemon)
    equal((row["n_samples"], row["ended"]), (2500, True), "dlctl datasets")
    if row["n_shards"] < 5:  # the first MiB, one for each pause, the rest
        raise AssertionError(f"pauses made no shards of their own: {row}")
    daemon.stop()
    equal(os.listdir(box.path("spool")), [], "the spool afterwards")


@case("a pipe that is cut, one with a sample longer than a shard, and one for which the spool is too small; a link to an earlier part")
def _(box):
    for name in ("cut", "linked", "long", "small", "plain", "auto"):
        os.mkfifo(box.path(name))
    daemon = box.daemon({
        "cut": stream(box.path("cut")), "linked": stream(box.path("linked")), "long": stream(box.path("long"), field_limit="8MiB"),
        "small": stream(box.path("small"), spool_limit="1500KiB"), "plain": web(box.path("plain")),
        "auto": {"path": box.path("auto"), "format": "auto"}}, memory_limit="512MiB")
    daemon.refused("plain", "is a pipe", "stream = yes")
    daemon.refused("auto", "is a pipe", 'format = "webdataset"')
    sizes = {"cut": 700, "linked": 700, "long": lambda number: 3 << 20 if number % 3 == 1 else 10, "small": 700}
    numbers = {"cut": range(1600), "linked": range(1600), "long": range(9), "small": range(3000)}
    writers = [threading.Thread(target=write_pipe, args=(box.path(name), numbers[name]), daemon=True,
                                kwargs={"size": sizes[name], "cut": 12000 * (name == "cut"),
                                        "linked": (9, 1500) if name == "linked" else ()}) for name in sizes]
    for writer in writers:
        writer.start()
    lines = daemon.reader("cut", shuffle=False, batch=16, on_error="skip", pipeline="cls; bin: raw").good()
    equal([line["fields"]["cls"]["value"] for line in lines], list(range(len(lines))), "labels")
    if not 1590 <= len(lines) < 1600:
        raise AssertionError(f"{len(lines)} samples of a pipe that lacks the last ones")
    contains(daemon.dlctl("errors", "cut").stdout, "cut")
    lines = daemon.reader("linked", shuffle=False, batch=16, on_error="skip", pipeline="cls; bin: raw").good()
    equal([line["fields"]["cls"]["value"] for line in lines], [i for i in range(1600) if i != 1500], "labels")
    equal(lines[9]["fields"]["bin"], lines[0]["fields"]["bin"], "bytes of a link within a part")
    contains(row_of(daemon, "linked")["text"], '"001500.bin" is a symbolic link to "000000.bin"', "--dereference")
    lines = daemon.reader("long", shuffle=False, batch=1, pipeline="cls; bin: raw").good()
    equal([line["fields"]["bin"]["sha256"] for line in lines],
          [hashlib.sha256(identity_bytes(i, sizes["long"](i))).hexdigest() for i in range(9)], "bytes")
    reader = daemon.reader("small", shuffle=False, batch=16)
    reader.wait_lines(100)
    within(20, lambda: "spool_limit" in row_of(daemon, "small")["text"], "the reason is told")
    daemon.stop()
    reader.process.kill()
    reader.finish()
    writers[2].join(20)
    equal(writers[2].is_alive(), False, "a writer whose reader is gone")


@case("a disk that is full for a while: nothing of what a pipe has said is lost")
def _(box):
    disk = SmallDisk(box, 32 << 20)
    os.mkfifo(box.path("p"))
    daemon = box.daemon({"s": stream(box.path("p"), spool=disk.path)})
    reader = daemon.reader("s", shuffle=False, batch=10, pipeline="cls; bin: raw")
    full = threading.Event()

    def fill(_):
        within(20, lambda: row_of(daemon)["n_samples"] >= 1000, "the first shard is taken")
        disk.fill(300 << 10)
        full.set()

    writing = threading.Thread(target=write_pipe, args=(box.path("p"), range(4000)), kwargs={"pauses": (1500, ), "wait": fill})
    writing.start()
    full.wait(60)
    within(20, lambda: "No space left" in row_of(daemon)["text"], "the reason is told")
    disk.empty()
    lines = reader.good()
    writing.join()
    equal([line["fields"]["cls"]["value"] for line in lines], list(range(4000)), "labels")
    equal([line["fields"]["bin"]["sha256"] for line in lines],
          [hashlib.sha256(identity_bytes(i, 700)).hexdigest() for i in range(4000)], "bytes")


@case("a daemon that is told to end does not first unpack what would take long")
def _(box):
    zeroes = gzip.compress(bytes(64 << 20), 1)
    info = tarfile.TarInfo("0.bin")
    info.size = 48 * (64 << 20)
    os.makedirs(box.path("spool"))
    os.makedirs(box.path("s"))
    write(box.path("s", "x-0.tar.gz"), gzip.compress(info.tobuf()) + 48 * zeroes + gzip.compress(bytes(1024)))
    daemon = box.daemon({"s": stream(box.path("s"), spool=box.path("spool"))})
    reader = daemon.reader("s", shuffle=False)
    within(20, lambda: glob.glob(box.path("spool", "*", "*")), "it is being unpacked")
    daemon.stop()
    equal("a stream, digest" in daemon.log(), False, "it was unpacked and opened")
    equal(os.listdir(box.path("spool")), [], "the spool afterwards")
    reader.process.kill()
    reader.finish()


@case("what cannot be of a stream is refused with the reason")
def _(box):
    writer = Writer(box.path("s"))
    writer.shard(5)
    daemon = box.daemon({"s": stream(box.path("s")), "f": box.folder_of_files("f", 3),
                         "p": stream(box.path("s"), split="0:50%")})
    daemon.refused("s", "tdperm", "stream", order="tdperm")
    daemon.refused("s", "max_errors", "share", on_error="skip", max_errors=0.5)
    daemon.refused("f", "shuffle_buffer", "streams", shuffle_buffer=5)
    within(20, lambda: row_of(daemon, "p")["state"] == "failed", "a split fails")
    contains(row_of(daemon, "p")["text"], "split", "stream")
    equal(daemon.read("f", order="buffer", shuffle_buffer=2)[0]["epoch"], 0, "a buffer for other datasets")
    for keys, words in (({"stream": "perhaps"}, ("perhaps", "yes or no")), ({"field_limit": "7"}, ("stream = yes",)),
                        ({"spool_limit": "4 GB", "stream": "yes"}, ("4 GB", "4GiB")),
                        ({"stream": "yes", "origin": "file:///there"}, ("complete",))):
        write(box.path("conf"), config_text({"socket": box.path("sock")}, {"s": {**web(box.path("s")), **keys}}).encode())
        run = subprocess.run([DAEMON, "-c", box.path("conf"), "--check-config"], capture_output=True, text=True,
                             check=False)
        equal(run.returncode, 78, "exit status")
        contains(run.stderr, next(iter(keys)), *words)


@case("a folder of another format, or of files of it, is refused at once instead of being waited for; an empty one is waited for")
def _(box):
    lines = b"".join(b'{"a": %d}\n' % i for i in range(200))
    write(box.path("packed", "x.jsonl.zst"), subprocess.run(["zstd", "-c"], input=lines, capture_output=True, check=True).stdout)
    write(box.path("plain", "x.jsonl"), lines)
    write(box.path("short", "x.jsonl"), b'{"a": 1}\n')
    write(box.path("short", "_SUCCESS"), b"")
    os.makedirs(box.path("empty"))
    paths = {"packed": (box.path("packed"), ("tar archives", "x.jsonl.zst", "convert")),
             "plain": (box.path("plain"), ("tar archives", "jsonl", "leave out stream")),
             "short": (box.path("short"), ("tar archives", "jsonl", "leave out stream")),
             "file": (box.path("short", "x.jsonl"), ("tar archives", "jsonl", "leave out stream")),
             "pattern": (box.path("plain", "*.jsonl"), ("tar archives", "jsonl", "leave out stream"))}
    daemon = box.daemon({**{name: stream(path) for name, (path, _) in paths.items()},
                         **{f"{name}-auto": {**stream(path), "format": "auto"} for name, (path, _) in paths.items()},
                         "empty": stream(box.path("empty"))})
    for name, (_, words) in paths.items():
        daemon.refused(name, *words)
        daemon.refused(f"{name}-auto", *words)
    reader = daemon.reader("empty")
    writer = Writer(box.path("empty"))
    write(box.path("empty", "README"), b"archives to come")
    writer.shard(3)
    writer.end()
    equal(len(reader.good()), 3, "samples of a folder that was empty")


@case("a daemon that is killed comes back under a run that waits for it, in the middle of a stream")
def _(box):
    writer = Writer(box.path("s"))
    writer.shard(60)
    daemon = box.daemon({"s": stream(box.path("s"))})
    readers = [daemon.reader("s", world=2, rank=rank, job="j", batch=4, seed=1, shuffle_buffer=10, on_restart="wait",
                             delay_ms=20) for rank in range(2)]
    for reader in readers:
        reader.wait_lines(8)
    daemon.kill()
    writer.shard(60)
    daemon.start()
    within(20, lambda: row_of(daemon).get("n_samples", 0) == 120, "all shards")
    writer.end()
    for rank, reader in enumerate(readers):
        equal(indices(reader.good()), order_of(120, world=2, rank=rank, seed=1, shuffle_buffer=10), f"rank {rank}")


@case("another first shard is another stream; a later one that has changed stops the stream until it is as it was")
def _(box):
    writer = Writer(box.path("s"))
    writer.shard(10)
    writer.shard(10)
    daemon = box.daemon({"s": stream(box.path("s"))})
    within(20, lambda: row_of(daemon).get("n_samples", 0) == 20, "two shards")
    digest = row_of(daemon)["digest"]
    daemon.stop()
    with open(box.path("s", "x-0001.tar"), "rb") as file:
        content = file.read()
    writer.place("x-0001.tar", members_of(5) + members_of(6))
    daemon.start()
    within(20, lambda: "x-0001.tar to be as it was" in row_of(daemon)["text"], "the change is told")
    equal((row_of(daemon)["n_samples"], row_of(daemon)["digest"]), (10, digest), "what is served")
    write(box.path("s", "x-0001.tar"), content)
    within(20, lambda: row_of(daemon)["n_samples"] == 20, "it goes on")
    writer.place("x-0000.tar", members_of(1) + members_of(2))
    daemon.read("s", limit=1, shuffle=False)
    within(20, lambda: row_of(daemon)["n_samples"] == 12, "another stream")
    assert row_of(daemon)["digest"] != digest


@case("Python: no len() before the end, then the right one; states are loaded at another world size; timeouts work")
def _(box):
    writer = Writer(box.path("s"))
    writer.shard(40)
    daemon = box.daemon({"s": stream(box.path("s"), fields="data=bin, label=cls")})
    trainer(box, daemon, f"""
        import os
        loader = dlclient.Loader("s", batch_size=4, pipeline="label", shuffle_buffer=10, seed=3)
        for what in (loader, loader.dataset, loader.sampler):
            refused(TypeError, lambda: len(what), "stream", "len()")
        assert loader.dataset.is_stream and "stream" in repr(loader.dataset)
        seen, states = [], []
        for batch in loader:
            seen += batch.indices.tolist()
            states.append(loader.state_dict())
            if len(seen) == 20:
                break
        loader.close()
        assert states[-1]["samples"] == -1
        two = [dlclient.Loader("s", batch_size=3, pipeline="label", shuffle_buffer=10, seed=3, rank=rank, world_size=2,
                               job="two", state=states[-1], timeout=2.0) for rank in range(2)]
        its = [iter(loader) for loader in two]
        first = [next(it).indices.tolist() for it in its]
        seen += [index for pair in zip(*first) for index in pair]
        assert seen == {order_of(200, seed=3, shuffle_buffer=10)[:26]}, seen
        refused(dlclient.DaemonTimeout, lambda: next(its[0]), "timeout")
        open(os.path.join({box.path('s')!r}, "_SUCCESS"), "w").close()
    """)
    writer.end()
    within(20, lambda: row_of(daemon)["ended"], "the end")
    trainer(box, daemon, """
        loader = dlclient.Loader("s", batch_size=4, pipeline="label", shuffle=False)
        assert len(loader) == 10 and len(loader.dataset) == 40 == len(loader.sampler), len(loader)
        for epoch in range(2):
            loader.set_epoch(epoch)
            assert [i for batch in loader for i in batch["label"].tolist()] == list(range(40))
        state = loader.state_dict()
        loader.close()
        loader = dlclient.Loader("s", batch_size=4, pipeline="label", shuffle=False, state=state)
        assert loader.epoch == 2, loader.epoch
        assert sum(1 for _ in loader) == 10
    """)


main()
