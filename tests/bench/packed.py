"""Reading packed shards, beside fio and beside the same samples as files."""
import json
import os
import shutil
import statistics
import subprocess

from common_bench import BUILD, OUT, REPEATS, emit, median

PACKED_SAMPLES, PACKED_BYTES, PACKED_DEPTH, PACKED_SECONDS = 5000, 112 << 10, 64, 2


def packed_folders():
    """Files of one size with bytes that no disk can compress, and the same as shards; made once."""
    files, shards = (os.path.join(OUT, "packed", kind) for kind in ("files", "shards"))
    if not os.path.exists(os.path.join(shards, "made")):
        subprocess.run(["rm", "-rf", files, shards], check=True)
        for number in range(PACKED_SAMPLES):
            folder = os.path.join(files, f"class{number // 1000}")
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, f"{number:05d}.jpg"), "wb") as file:
                file.write(os.urandom(PACKED_BYTES))
        subprocess.run([os.path.join(BUILD, "tools", "pack_folder"), files, shards], check=True, stdout=subprocess.DEVNULL)
        os.sync()
        with open(os.path.join(shards, "made"), "w", encoding="utf-8"):
            pass
    return files, shards


def read_samples(folder, kind, way, *samples):
    command = [os.path.join(BUILD, "bench", "read_samples"), folder, kind, way, str(PACKED_DEPTH), str(PACKED_SECONDS), *samples]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=120).stdout)


def fio(folder):
    """Random reads with all that makes io_uring fast: registered files and buffers."""
    shards = sorted(name for name in os.listdir(folder) if name.endswith(".shard"))
    command = ["fio", "--name=read", "--filename=" + ":".join(shards), "--rw=randread", "--readonly",
               f"--bs={PACKED_BYTES}", "--direct=1", "--ioengine=io_uring", f"--iodepth={PACKED_DEPTH}", "--fixedbufs",
               "--registerfiles", f"--runtime={PACKED_SECONDS}", "--time_based", "--norandommap", "--randrepeat=0",
               "--output-format=json"]
    run = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True, timeout=120)
    job = json.loads(run.stdout)["jobs"][0]
    read = job["read"]
    return {"mb_per_s": read["bw_bytes"] / 1e6,
            "cpu_us": (job["usr_cpu"] + job["sys_cpu"]) / 100 * read["runtime"] * 1e3 / read["total_ios"]}


def packed():
    files, shards = packed_folders()
    rows, floor, warm, plain = [], [], [], []
    has_fio = shutil.which("fio") is not None
    if not has_fio:
        print("# packed_vs_fio is skipped: fio is not installed", flush=True)
    for _ in range(REPEATS):
        rows.append(read_samples(shards, "packed", "bypass"))
        if has_fio:
            floor.append(fio(shards))
    emit("packed_read", median(rows, "mb_per_s"), "MB/s", repeats=REPEATS, depth=PACKED_DEPTH)
    emit("packed_cpu", median(rows, "cpu_us"), "us")
    emit("packed_past_cache", sum(row["direct"] for row in rows) / sum(row["samples"] for row in rows), "share")
    if has_fio:
        emit("packed_fio", median(floor, "mb_per_s"), "MB/s")
        emit("packed_fio_cpu", median(floor, "cpu_us"), "us")
        emit("packed_vs_fio", statistics.median(a["mb_per_s"] / b["mb_per_s"] for a, b in zip(rows, floor)), "ratio")
    for number in range(REPEATS + 1):  # the first turn fills the cache
        a = read_samples(shards, "packed", "use", str(2 * PACKED_SAMPLES))
        b = read_samples(files, "imagefolder", "use", str(2 * PACKED_SAMPLES))
        if number > 0:
            warm.append(a)
            plain.append(b)
    emit("packed_warm_cpu", median(warm, "cpu_us"), "us")
    emit("packed_files_cpu", median(plain, "cpu_us"), "us")
    emit("packed_warm_vs_files", statistics.median(a["mb_per_s"] / b["mb_per_s"] for a, b in zip(warm, plain)), "ratio")
