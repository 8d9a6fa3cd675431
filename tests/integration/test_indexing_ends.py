#!/usr/bin/env python3
"""SIGTERM while an index is made that would take far longer than the daemon has to end: of each format."""
import io
import json
import os
import struct
import sys
import tarfile
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from failing_fs import FailingFs
from harness import ROOT, case, equal, main, within, write
from tfrecords import ints, member, record_file
from token_files import write_tokens

VECTORS = os.path.join(ROOT, "tests", "vectors")
PIECE = 32 << 20


def linked(box, name, ending, content, n):
    """A folder with n names of one file: as much to read as n files, and hardly any disk."""
    first = box.path(name, f"00000{ending}")
    write(first, content)
    for number in range(1, n):
        os.link(first, box.path(name, f"{number:05d}{ending}"))
    return box.path(name)


def vector(*parts):
    with open(os.path.join(VECTORS, *parts), "rb") as file:
        return file.read()


def repeated(row):
    return row * (PIECE // len(row))


def tar_of_bytes():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for number in range(5000):
            member = tarfile.TarInfo(f"{number:06d}.txt")
            member.size = 1
            tar.addfile(member, io.BytesIO(b"x"))
    return out.getvalue()


def sparse(box, ending):
    """A file of a terabyte that reads as zeros and has no bytes on the disk."""
    write(box.path("sparse", "00000" + ending), b"")
    os.truncate(box.path("sparse", "00000" + ending), 1 << 40)
    return box.path("sparse")


def ends(daemon, states):
    """SIGTERM ends it with status 0 and within the time that stop() has, and leaves no half of an index."""
    within(20, lambda: daemon.objects("datasets")[0]["state"] != "waiting", "it begins")
    state = daemon.objects("datasets")[0]["state"]
    equal(state in states, True, f"its state: {state}; {daemon.log()}")
    daemon.stop(10)
    left = [name for _, _, names in os.walk(daemon.box.path(daemon.name)) for name in names if ".new-" in name]
    equal(left, [], "drafts that are left")


def folder_of_links(box, name):
    for number in range(20):
        linked(box, os.path.join(name, f"c{number:02d}"), ".jpg", b"x", 3000)
    return box.path(name)


FORMATS = {
    "csv": lambda box: linked(box, "csv", ".csv", b"a,b\n" + repeated(b"1,2\n"), 200),
    "jsonl": lambda box: linked(box, "jsonl", ".jsonl", repeated(b'{"a":1}\n'), 200),
    "text": lambda box: linked(box, "text", ".txt", repeated(b"1\n"), 200),
    "parquet": lambda box: linked(box, "parquet", ".parquet", vector("parquet", "lists-gzip.parquet"), 20000),
    "arrow": lambda box: linked(box, "arrow", ".arrow", vector("arrow", "lists-zstd.arrow"), 20000),
    "webdataset": lambda box: linked(box, "webdataset", ".tar", tar_of_bytes(), 5000),
    "folder": lambda box: folder_of_links(box, "folder"),
    "imagefolder": lambda box: folder_of_links(box, "imagefolder"),
}


for each in FORMATS:
    @case(f"{each}: SIGTERM while its index is made ends the daemon, with nothing left")
    def _(box, name=each):
        dataset = {"path": FORMATS[name](box), "format": name}
        if name == "folder":
            dataset["pattern"] = "{class}/{name}.jpg"
        ends(box.daemon({"d": dataset}, memory_limit="8GiB"), ("indexing", "ready"))  # ready: a fast machine


# ---- what takes long because its disk does ----

FILES = 400


def records(box, name):
    linked(box, name, ".tfrecord", record_file([member(1, member(1, member(1, b"a") + member(2, ints(1))))]), FILES)


def arrays(box, name):
    linked(box, name, ".npy", npy(), 100)


def npy():
    words = b"{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }".ljust(117) + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(words)) + words + b"abc"


def archive(box, name):
    os.makedirs(box.path(name))
    with zipfile.ZipFile(box.path(name, "a.npz"), "w") as file:
        for number in range(100):
            file.writestr(f"{number}.npy", npy())


def items(box, name, ending, index):
    """Files of one item, which is an integer."""
    linked(box, name, ending, struct.pack("<IIIq", 1, 12, 20, 7), FILES)
    write(box.path(name, "index.json"), json.dumps(index).encode())


def mds(box, name):
    items(box, name, ".mds", {"version": 2, "shards": [
        {"column_names": ["x"], "column_encodings": ["int"], "column_sizes": [8], "compression": None, "format": "mds", "hashes": [],
         "raw_data": {"basename": f"{number:05d}.mds", "bytes": 20, "hashes": {}}, "samples": 1, "size_limit": 1 << 26, "version": 2,
         "zip_data": None} for number in range(FILES)]})


def litdata(box, name):
    items(box, name, ".bin", {"chunks": [{"chunk_bytes": 20, "chunk_size": 1, "dim": None, "filename": f"{number:05d}.bin"}
                                         for number in range(FILES)],
                              "config": {"chunk_size": 1, "chunk_bytes": None, "compression": None, "data_format": ["int"]}})


def tokens(box, name):
    for number in range(100):
        write_tokens(box.path(name, f"{number:03d}"), [[1, 2, 3]])


def annotations(box, name):
    write(box.path(name, "1.jpg"), b"1")
    write(box.path(name, "coco.json"), b'{"info":[' + b"0," * (2 << 20) + b'0],"images":[{"id":1,"file_name":"1.jpg"}]}')


OPTIONS = {"npz": {"format": "npy"}, "coco": {"annotations": "coco.json"},
           "megatron": {"blend": " ".join(f"1 {number:03d}" for number in range(100)), "sequence_length": "3", "num_samples": "9"}}
SLOW = {"tfrecord": records, "npy": arrays, "npz": archive, "mds": mds, "litdata": litdata, "megatron": tokens, "coco": annotations}


for each in SLOW:
    @case(f"{each}: SIGTERM while its index is made from a slow disk ends the daemon, with nothing left")
    def _(box, name=each):
        SLOW[name](box, name)
        disk = FailingFs(box, box.path(name))
        disk.delay("*", 100, ops="read")
        ends(box.daemon({"d": {"path": disk.path, "format": name, **OPTIONS.get(name, {})}}), ("indexing",))


for each, suffix in (("csv", ".csv"), ("jsonl", ".jsonl"), ("text", ".txt"), ("webdataset", ".tar"),
                     ("tfrecord", ".tfrecord"), ("npy", ".npy"), ("parquet", ".parquet"), ("arrow", ".arrow")):
    @case(f"{each}: a terabyte that is not there is refused or read in bounded memory, and SIGTERM ends it")
    def _(box, name=each, ending=suffix):
        ends(box.daemon({"d": {"path": sparse(box, ending), "format": name}}, memory_limit="256MiB"),
             ("indexing", "failed"))


main()
