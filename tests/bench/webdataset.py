"""The same photos as a folder of files and as tar archives, in turns.

    webdataset_N_vs_folder      images/s that one rank gets from the archives with N workers, over the folder's
    webdataset_N_cpu_vs_folder  CPU seconds per 1,000 images of the archives (daemon and client), over the folder's
    webdataset_first_batch      ms from attach to the first batch from the archives, index built; _vs_folder: over the folder's
    webdataset_index            MB/s of archives that an index is made of, page cache warm; only headers are read
    webdataset_index_vs_read    the same over reading all of their bytes one after the other, in turns
    webdataset_reopen           ms to open the index that was made, all of it checked
    webdataset_members          members a second that an index is made of, if they are empty: a million of them
"""
import io
import os
import re
import statistics
import subprocess
import tarfile
import tempfile
import time

PHOTOS_A_SHARD = 250
PAIRS, FIRSTS = 4, 16  # for each repeat: single pairs differ by 10 %, and 2 % are to be told
N_MEMBERS = 1000000


def photos_of(folder):
    """(path, label), in the folder's own sequence."""
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    return [(os.path.join(folder, name, file), label) for label, name in enumerate(classes)
            for file in sorted(os.listdir(os.path.join(folder, name)))]


def pack(folder, out):
    """The folder's photos with their labels, as archives; made once."""
    if os.path.exists(os.path.join(out, "made")):
        return out
    os.makedirs(out, exist_ok=True)
    photos = photos_of(folder)
    for first in range(0, len(photos), PHOTOS_A_SHARD):
        with tarfile.open(os.path.join(out, f"photos-{first // PHOTOS_A_SHARD:04d}.tar"), "w") as tar:
            for number, (path, label) in enumerate(photos[first:first + PHOTOS_A_SHARD], first):
                with open(path, "rb") as file:
                    for ending, content in (("jpg", file.read()), ("cls", b"%d" % label)):
                        info = tarfile.TarInfo(f"{number:08d}.{ending}")
                        info.size = len(content)
                        tar.addfile(info, io.BytesIO(content))
    with open(os.path.join(out, "made"), "w", encoding="utf-8"):
        pass
    return out


def index(build, path, index_dir="/proc/nowhere"):
    """How long an open takes, and what it found."""
    run = subprocess.run([os.path.join(build, "tools", "list_index"), "--stats", "--format=webdataset", path, index_dir],
                         stdout=subprocess.PIPE, check=True, text=True, timeout=300)
    how, ms = re.match(r"(\w+) ([\d.]+) ms", run.stdout).groups()
    return how, float(ms)


def read_all(folder):
    """ms to read all archives, one after the other."""
    buffer = memoryview(bytearray(1 << 20))
    n_bytes, begin = 0, time.monotonic()
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb", buffering=0) as file:
            while True:
                n = file.readinto(buffer)
                if n == 0:
                    break
                n_bytes += n
    return 1000 * (time.monotonic() - begin), n_bytes


def measure_index(build, emit, shards, repeats):
    built, read, n_bytes = [], [], 0
    for number in range(repeats + 1):  # the first turn fills the cache
        ms, n_bytes = read_all(shards)
        how, index_ms = index(build, shards)
        assert how == "built_unsaved", how
        if number > 0:
            built.append(index_ms)
            read.append(ms)
    emit("webdataset_index", n_bytes / 1000 / statistics.median(built), "MB/s", ms=statistics.median(built), bytes=n_bytes)
    emit("webdataset_index_vs_read", statistics.median(b / a for a, b in zip(built, read)), "ratio")
    with tempfile.TemporaryDirectory(prefix="dlbench-") as folder:
        index(build, shards, folder)
        opened = [index(build, shards, folder) for _ in range(repeats)]
    assert all(how == "loaded" for how, _ in opened), opened
    emit("webdataset_reopen", statistics.median(ms for _, ms in opened), "ms")


def measure_members(build, emit, out):
    """Half a gigabyte of headers; removed at once."""
    path = os.path.join(out, "empty.tar")
    try:
        with open(path, "wb", buffering=1 << 20) as file:
            for number in range(N_MEMBERS):
                file.write(tarfile.TarInfo(f"{number:07d}.txt").tobuf(tarfile.USTAR_FORMAT))
            file.write(bytes(1024))
        with tempfile.TemporaryDirectory(prefix="dlbench-") as folder:
            _, ms = index(build, path, folder)
            _, opened_ms = index(build, path, folder)
    finally:
        if os.path.exists(path):
            os.unlink(path)
    emit("webdataset_members", N_MEMBERS / (ms / 1000), "members/s", ms=ms)
    emit("webdataset_members_reopen", opened_ms, "ms")


def measure_serving(daemon, emit, shards, repeats, n_batches):
    tars = {"path": shards, "format": "webdataset"}
    for workers in (1, 2):
        files, archives = [], []
        with daemon(workers) as it, daemon(workers, **tars) as other:
            it.consume("throughput", 10)
            other.consume("throughput", 10)
            for number in range(PAIRS * repeats):
                turn = [(it, files), (other, archives)]
                for of, rows in turn if number % 2 == 0 else reversed(turn):  # neither always has the other's wake
                    rows.append(of.consume("throughput", n_batches))
            if workers == 2:
                firsts = []
                for number in range(FIRSTS * repeats):
                    turn = [it, other] if number % 2 == 0 else [other, it]
                    ms = {of: of.consume("first")["ms"] for of in turn}
                    firsts.append([ms[it], ms[other]])
                    time.sleep(0.3)  # the daemons take the last rings down
        pairs = list(zip(files, archives))
        emit(f"webdataset_{workers}", statistics.median(b["images_per_s"] for _, b in pairs), "images/s", repeats=len(pairs))
        emit(f"webdataset_{workers}_vs_folder",
             statistics.median(b["images_per_s"] / a["images_per_s"] for a, b in pairs), "ratio")
        emit(f"webdataset_{workers}_cpu_vs_folder",
             statistics.median(b["cpu_s_per_1000"] / a["cpu_s_per_1000"] for a, b in pairs), "ratio")
    emit("webdataset_first_batch", statistics.median(b for _, b in firsts), "ms", repeats=len(firsts))
    emit("webdataset_first_batch_vs_folder", statistics.median(b / a for a, b in firsts), "ratio")


def run(daemon, emit, build, photos, out, repeats, n_batches):
    shards = pack(photos, out)
    measure_index(build, emit, os.path.join(shards), repeats)
    measure_members(build, emit, os.path.dirname(shards))
    measure_serving(daemon, emit, shards, repeats, n_batches)
