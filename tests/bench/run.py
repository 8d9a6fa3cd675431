#!/usr/bin/env python3
"""The measurements behind `make bench`: one line each, `name value unit`, and as JSON Lines under build/bench/.

    run.py [NAME...]     those whose names begin so; several names stand between blanks or commas

What is compared is measured in turns within one run (A B A B ...), and medians are printed: machines are shared and
their speed drifts. Times here are reported, never asserted.

    decode_limit_1, _2     images/s of a bare loop with the daemon's own calls and no daemon, 1 and 2 threads
    daemon_1, _2           images/s that one rank gets from a daemon with 1 and 2 workers
    *_cpu                  CPU seconds per 1,000 images; for the daemon its client included
    daemon_vs_limit_1, _2  the ratio of the two, pair by pair
    left_*                 images a CPU second of a pipeline with color_jitter: nothing is left to a device; forms and operations are,
                           _vs_nothing: over the first, in turns. What a device then does is not part of it
    own_vs_libjpeg         CPU time an image of the bare loop (one thread) with libjpeg-turbo's crop and skip, over the
                           same loop with our own decoder; mixed_vs_baseline: what is left where 1 photo of 16 is progressive
    first_batch            ms from attach to the first batch, index built
    next_ready_p50, _p99   ns of next() for a batch that is ready
    python_next_ready, _p99   us of next() in Python for a batch that is ready; python_next_cold: behind a pause;
                           python_array: of batch["image"]
    python_step_*          a function of the trainer's own that does nothing: CPU us a sample of its process (worker; seeded: without
                           rng, so that all generators are seeded) and of the daemon beside the same pipeline without it
                           (daemon); one of some 0.3 ms, two processes: images/s (rate), of torch's DataLoader with two
                           (torch), and the ratio, in turns (vs_torch); tests/bench/python_step.py
    from_dataset_*         a Dataset object of torch's as it is, by from_dataset(), two processes: samples/s of photos with torchvision on
                           Pillow, of arrays of 150 KB and of rows of 256 bytes in memory; _vs_torch: over torch's DataLoader
                           with two, in turns; _cpu_vs_torch: CPU time a sample of that over ours (tests/bench/from_dataset.py)
    python_first_batch     ms from Loader() to its first batch, the package imported, index built
    first_day              s from an empty environment to the first batch: _environment (venv), _pip, _program (three lines);
                           first_day_second: ms to the first batch of a second process; first_day_torch: that of torch's
                           DataLoader; first_day_second_vs_torch: the ratio, in turns (tests/bench/first_day.py; needs the wheel)
    wake                   us from publishing to the return of a next() that slept (p50), the worker idle behind it; wake_p99
    wake_busy              the same while the worker goes on decoding
    wake_floor, _busy      the same of a bare futex, measured in turns: what this machine can do
    fair_equal             images/s of a job beside one like it, two workers; over that: fair_heavy, beside a job with a heavy
                           pipeline (fair_heavy_floor: what bare loops beside each other make of it), fair_hung, beside
                           one whose reads hang; fair_first_hung, fair_status_hung: ms of a first batch and of
                           `dlctl status` then; fair_hostile, beside another user who floods the daemon, over beside one
                           who only uses the CPU (tests/bench/fair.py)
    pss_per_rank           bytes that a second rank adds to all processes together; ring_per_rank: its ring
    metrics_*              CPU us of the daemon's main thread for a scrape of its metrics, 16 ranks attached (tests/bench/metrics.py)
    watched_*              dlctl top, the status page and a scraper all at once: percent of a CPU at 16 ranks, and what is left of
                           the rate of one at full speed (tests/bench/watched.py)
    isolation_*            what decoding in processes of their own leaves of the rate of threads (tests/bench/isolation.py)
    confirm_*              causes that make a trainer wait, and how near its rate with ready batches is to what dlctl diagnose
                           predicted (tests/bench/confirm.py)
    resume_tdperm_1e8      ms from asking for an order of 10^8 samples to its index at a random position
    resume_torch_1e8       the same for torch's order; _vs_shuffle: over the time of torch's whole shuffle, in turns
    orders_*               orders that samplers make: weighted, grouped by length and others, beside torch and Python
                           (tests/bench/orders.py)
    resume_seek_first_batch  ms from a seek to the middle of another epoch to its first batch, the ring full before
    jpeg_whole, jpeg_box   CPU us of our own JPEG decoder for a photo and for a box of random_resized_crop; _vs_libjpeg:
                           what libjpeg-turbo takes for the same, in turns, over that
    packed_vs_fio          MB/s of the daemon's reader from packed shards, past the page cache, over fio's with the same files,
                           block size (112 KiB samples) and depth (64), in turns; packed_read, packed_fio: the two;
                           packed_cpu: CPU us a sample, submitting included; packed_fio_cpu: fio's
    packed_warm_vs_files   MB/s from shards in the page cache over the same samples as files in it, in turns; packed_warm_cpu,
                           packed_files_cpu: CPU us a sample of the two
    packs_*                packs and batches by length: what planning 10^8 documents costs, beside TRL, and how much is padding
                           (tests/bench/packs.py; only if asked for by name: minutes, and writes a part of docs/performance.md)
    webdataset_*           the same photos as tar archives over the folder: images/s, CPU, first batch; the speed of the pass
                           that makes an index, and of opening it again (tests/bench/webdataset.py)
    tfrecord_*             the same photos as TFRecord files over the folder, and over tf.data; the speed of the pass that makes an
                           index (tests/bench/tfrecord.py); needs TensorFlow, which `make check-formats` installs
    listing_*              the pass that makes an index of JSON Lines, CSV and text, over reading the file, and over the same pass
                           on one CPU (tests/bench/listings.py)
    tables_*               the same of Parquet, Arrow and MDS (tests/bench/tables.py)
    padding_*              padded batches of pictures and of tokens beside the same samples unpadded (tests/bench/padding.py)
    coco_*                 pictures with boxes and labels (resize(short=800, max=1333), hflip, sanitize) beside torchvision's reference
                           pipeline (tests/bench/coco.py); needs torch and torchvision, which `make bench-peers` installs
    npy_rows               rows/s of 2,049 uint16 out of a 4 GB array in the page cache, batches of 1,024, two workers;
                           npy_memcpy: two threads that do nothing but copy such rows, in turns; npy_vs_memcpy: over that
    megatron_rows          rows/s of 2,049 tokens (int64) in Megatron's order out of a 1 GB file of documents in the page cache,
                           batches of 1,024, two workers; _uint16: in the type of the file; _64: batches of 64;
                           megatron_memcpy: two threads that copy rows of three pieces each, which is what a sample of such
                           documents has, in turns; megatron_vs_memcpy: _uint16 over that
    arrow_rows             rows/s of a text of 1,000 bytes and two integers out of a 200 MB Arrow file in the page cache, in its order,
                           batches of 1,024, two workers; arrow_rows_64: batches of 64
    sound_*                crops of 3 s out of FLAC files of 10 s, beside torch's DataLoader with soundfile (tests/bench/sound.py)
    features_*             features of sound, beside torchaudio: CPU us of one thread (tests/bench/features.py)
    step_*                 CPU us of each step of a pipeline for a picture of 224 x 224, beside torchvision, Albumentations and Kornia
                           (tests/bench/steps.py); what is not installed is left out
    tokens_*               lines of text as padded batches of tokens, beside torch's DataLoader with tokenizers (tests/bench/tokens.py)
    torch_vs_daemon        images/s of the daemon over torch DataLoader + torchvision on Pillow at its best worker count
    recipe_*               images a CPU second of whole recipes (rand_augment and others), beside torch's DataLoader with torchvision
                           on Pillow, two workers each; recipe_*_vs_torch: the ratio
    crops_*                samples a CPU second with two views, and with DINO's ten crops, alone and with its colours; _vs_alone: CPU
                           seconds of loaders that decode each crop for itself, over that, in turns
    kills                  kill -9 of a daemon and its trainers at random moments (KILLS=10000; only if asked for by name: it
                           takes six minutes): kills_lost_or_twice, kills_wrong samples, of kills_samples
    growth_*               what a sample costs as ranks, jobs, batches, pictures and datasets grow (only if asked for by name:
                           ten minutes; tests/bench/growth/ says what each is; writes a part of docs/performance.md)
    profile_*              where the CPU time of an image goes, by stage, in us, in the daemon and in the bare loop (only if asked
                           for by name; writes a part of docs/performance.md)
    staging_vs_curl        MB/s of a staging of 1 GiB on one node, hashing included, over curl's with as many connections,
                           in turns; both from and to memory; staging_alone, staging_curl: the two; staging_vs_curl_checked:
                           over curl followed by `openssl dgst -sha256` of all files, a process a CPU, which promises as
                           much; _sha256sum: by sha256sum instead; staging_cpu: CPU seconds of both; staging_hash: what
                           SHA-256 alone allows
    staging_nodes          wall time of a staging on four nodes of 1 Gbit/s each, over size / line rate; staging_origin: what
                           left the origin's line, over size; staging_*_memory: the most that a process took
    compare_*              two training programs of two ranks in turns, torch's DataLoader with two workers a rank and dlclient:
                           first_batch of ranks that start; memory: PSS of trainers and workers, or trainers and daemon;
                           memory_over: of that, what was not there when the trainers had imported their modules;
                           restart_*: how long the trainer stands still when the daemon is ended (term) or killed (kill) and
                           started again at once, and how much of it lies behind the moment when the daemon answers again
"""
import contextlib
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, "build", "release")
OUT = os.path.join(ROOT, "build", "bench")
PHOTOS = os.environ.get("DATA") or os.path.join(OUT, "photos")
N_PHOTOS, N_CLASSES = 2000, 10
REPEATS = int(os.environ.get("REPEATS", "5"))
IMAGES = 3000        # of one throughput run
BATCH = 64
TORCH_WORKERS = (1, 2, 3)
PYTHON = "/usr/bin/python3"  # Debian's, which Debian's torch belongs to

results = []


def emit(name, value, unit, **details):
    """Prints a result's line and keeps it for the JSON Lines."""
    text = f"{value:.0f}"
    if isinstance(value, float) and value < 100:
        text = f"{value:.3f}" if value >= 0.01 else f"{value:.2g}"
    print(f"{name} {text} {unit}", flush=True)
    results.append({"name": name, "value": value, "unit": unit, **details})


def cut(folder, *more):
    subprocess.run(["tests/support/photos.sh", folder, str(N_PHOTOS), str(N_CLASSES),
                    os.path.join(BUILD, "tools", "cut_photos"), *more], cwd=ROOT, check=True, stdout=sys.stderr)
    return folder


def photos():
    """The photographs, cut once. None is progressive, as good as none in training sets is: see decode_limit_mixed."""
    return PHOTOS if "DATA" in os.environ else cut(PHOTOS, "--baseline")


class Daemon:
    """A private daemon with its own folder; ended with the block."""

    def __init__(self, workers, memory="2GiB", more="", path=None, format="imagefolder", options=""):  # pylint: disable=redefined-builtin
        self.folder = tempfile.mkdtemp(prefix="dlbench-")
        self.socket = os.path.join(self.folder, "s")
        config = os.path.join(self.folder, "c")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'socket = "{self.socket}"\nindex_dir = "{self.folder}/i"\nworkers = {workers}\n'
                       f'memory_limit = "{memory}"\ndataset "photos" {{ path = "{path or photos()}" format = "{format}" {options} }}\n{more}')
        self.start()
        self.wait_ready()
        self.consume("first")  # waits for the index

    def start(self):
        with open(os.path.join(self.folder, "log"), "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([os.path.join(BUILD, "dataloaderd"), "-c", os.path.join(self.folder, "c")],
                                            stderr=log)

    def wait_ready(self):
        """Until it answers; returns when that was."""
        command = [os.path.join(BUILD, "dlctl"), "--socket", self.socket, "status"]
        while subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            time.sleep(0.002)
        return time.monotonic()

    def environment(self, rank=0, world=1):
        return dict(os.environ, DATALOADERD_SOCKET=self.socket, RANK=str(rank), WORLD_SIZE=str(world))

    def consume(self, mode, *more, rank=0, world=1, environment=None):
        for _ in range(100):
            run = subprocess.run([os.path.join(BUILD, "bench", "consume"), mode, str(self.process.pid), *map(str, more)],
                                 env={**self.environment(rank, world), **(environment or {})}, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True,
                                 timeout=300, check=False)
            if run.returncode == 0:
                return json.loads(run.stdout)
            if not os.path.exists(self.socket) and self.process.poll() is None:
                time.sleep(0.05)
                continue
            raise RuntimeError(run.stderr)
        raise RuntimeError("the daemon does not listen")

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        subprocess.run(["rm", "-rf", self.folder], check=False)


@contextlib.contextmanager
def daemon(workers, **more):
    it = Daemon(workers, **more)
    try:
        yield it
    finally:
        it.end()


def bare_loop(threads, folder=None, decoder="auto"):
    run = subprocess.run([os.path.join(BUILD, "bench", "bare_loop"), folder or photos(), str(threads), str(IMAGES), decoder],
                         check=True, stdout=subprocess.PIPE, text=True, timeout=300)
    return json.loads(run.stdout)


def median(rows, key):
    return statistics.median(row[key] for row in rows)


# ---- the measurements -----------------------------------------------------------------------------------------------

def daemon_vs_limit():
    """One rank against the bare loop, at one and at two threads, in turns."""
    for workers in (1, 2):
        ours, limit = [], []
        with daemon(workers) as it:
            it.consume("throughput", 10)
            for _ in range(REPEATS):
                limit.append(bare_loop(workers))
                ours.append(it.consume("throughput", IMAGES // BATCH))
        emit(f"decode_limit_{workers}", median(limit, "images_per_s"), "images/s", repeats=REPEATS)
        emit(f"decode_limit_{workers}_cpu", median(limit, "cpu_s_per_1000"), "s/1000")
        emit(f"daemon_{workers}", median(ours, "images_per_s"), "images/s", repeats=REPEATS)
        emit(f"daemon_{workers}_cpu", median(ours, "cpu_s_per_1000"), "s/1000")
        emit(f"daemon_vs_limit_{workers}",
             statistics.median(a["images_per_s"] / b["images_per_s"] for a, b in zip(ours, limit)), "ratio")
        emit(f"daemon_vs_limit_{workers}_cpu",
             statistics.median(b["cpu_s_per_1000"] / a["cpu_s_per_1000"] for a, b in zip(ours, limit)), "ratio")


def vs_libjpeg():
    """The bare loop with our own decoder against the same loop with libjpeg-turbo's crop and skip, in turns."""
    ours, theirs, mixed = [], [], []
    folder = cut(PHOTOS + "-mixed")
    for _ in range(REPEATS):
        ours.append(bare_loop(1))
        theirs.append(bare_loop(1, decoder="libjpeg"))
        mixed.append(bare_loop(1, folder))
    for name, rows in ("libjpeg", theirs), ("mixed", mixed):
        emit(f"decode_limit_{name}", 1000 / median(rows, "cpu_s_per_1000"), "images/CPU-s", repeats=REPEATS)
    emit("decode_limit_cpu_rate", 1000 / median(ours, "cpu_s_per_1000"), "images/CPU-s", repeats=REPEATS)
    emit("own_vs_libjpeg", statistics.median(b["cpu_s_per_1000"] / a["cpu_s_per_1000"] for a, b in zip(ours, theirs)),
         "ratio")
    emit("mixed_vs_baseline", statistics.median(a["cpu_s_per_1000"] / b["cpu_s_per_1000"] for a, b in zip(ours, mixed)),
         "ratio")


def left():
    """Steps that a device does: a worker's rate with them, and what is left of its time without."""
    pipeline = "random_resized_crop(224) hflip(0.5) color_jitter(0.4, 0.4, 0.4, 0.1) to(float16) layout(nchw)"
    rows = {"nothing": [], "forms": [], "operations": []}
    with daemon(1) as it:
        it.consume("throughput", 10)
        for _ in range(REPEATS):
            for leave, found in rows.items():
                more = {} if leave == "nothing" else {"BENCH_LEAVE": leave}
                found.append(it.consume("throughput", IMAGES // BATCH // 2, environment={"BENCH_PIPELINE": pipeline, **more}))
    for leave, found in rows.items():
        emit(f"left_{leave}", 1000 / median(found, "cpu_s_per_1000"), "images/CPU-s", repeats=REPEATS)
    for leave in ("forms", "operations"):
        emit(f"left_{leave}_vs_nothing", statistics.median(
            a["cpu_s_per_1000"] / b["cpu_s_per_1000"] for a, b in zip(rows["nothing"], rows[leave])), "ratio")


def first_batch():
    with daemon(2) as it:
        times = []
        for _ in range(4 * REPEATS):
            times.append(it.consume("first")["ms"])
            time.sleep(0.3)  # the daemon takes the last one's ring down
    emit("first_batch", statistics.median(times), "ms", repeats=len(times))


def next_ready():
    with daemon(2) as it:
        runs = [it.consume("ready") for _ in range(3)]
    emit("next_ready_p50", median(runs, "p50"), "ns", n=runs[0]["n"])
    emit("next_ready_p99", median(runs, "p99"), "ns")


def fair():
    """What a light job gets beside others."""
    import fair as measurement  # pylint: disable=import-outside-toplevel
    measurement.run(daemon, emit, BUILD, photos(), min(REPEATS, 3), IMAGES // 2 // BATCH)


def python_client(it, mode):
    """None where there is no NumPy."""
    env = dict(it.environment(), PYTHONPATH=os.path.join(ROOT, "client", "python"),
               DATALOADERD_LIBRARY=os.path.join(BUILD, "libdlclient.so.0"))
    run = subprocess.run([PYTHON, os.path.join(HERE, "python_next.py"), mode], env=env, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    if run.returncode == 77:
        print(f"python_next skipped: {run.stderr.strip()}", flush=True)
        return None
    if run.returncode != 0:
        raise RuntimeError(run.stderr)
    return json.loads(run.stdout)


def python_next():
    with daemon(2) as it:
        runs = [python_client(it, "ready") for _ in range(2)]
        if None in runs:
            return
        times = []
        for _ in range(2 * REPEATS):
            times.append(python_client(it, "first")["ms"])
            time.sleep(0.3)  # the daemon takes the last one's ring down
    emit("python_next_ready", median(runs, "p50"), "us", n=runs[0]["n"])
    emit("python_next_ready_p99", median(runs, "p99"), "us")
    emit("python_next_cold", median(runs, "cold"), "us")
    emit("python_array", median(runs, "array"), "us")
    emit("python_first_batch", statistics.median(times), "ms", repeats=len(times))


def run_step(it, *arguments):
    """python_step.py; None where what it needs is not installed."""
    env = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "client", "python"),
               DATALOADERD_LIBRARY=os.path.join(BUILD, "libdlclient.so.0"))
    if it is not None:
        env.update(it.environment(), DAEMON_PID=str(it.process.pid))
    run = subprocess.run([PYTHON, os.path.join(HERE, "python_step.py"), *map(str, arguments)], env=env, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, check=False)
    if run.returncode == 77:
        print(f"python_step {arguments[0]} skipped: {run.stderr.strip() or 'torch and torchvision are not installed'}",
              flush=True)
        return None
    if run.returncode != 0:
        raise RuntimeError(run.stderr)
    return json.loads(run.stdout)


def python_step():
    costs, pairs = [], []
    with daemon(2) as it:
        for _ in range(REPEATS):
            costs.append(run_step(it, "cost", 12800))
        if None in costs:
            return
        for _ in range(REPEATS):
            ours = run_step(it, "rate", IMAGES // 2 // BATCH, 2)
            theirs = run_step(None, "torch", photos(), IMAGES // 2 // BATCH, 2)
            pairs.append((ours, theirs))
    for name in ("worker", "seeded", "daemon"):
        emit(f"python_step_{name}", median(costs, name), "us", repeats=len(costs))
    emit("python_step_rate", median([ours for ours, _ in pairs], "images_per_s"), "images/s")
    if all(theirs for _, theirs in pairs):
        emit("python_step_torch", median([theirs for _, theirs in pairs], "images_per_s"), "images/s")
        emit("python_step_vs_torch", statistics.median(ours["images_per_s"] / theirs["images_per_s"]
                                                       for ours, theirs in pairs), "", repeats=len(pairs))


def run_from_dataset(folder, *arguments):
    """from_dataset.py; None where what it needs is not installed."""
    env = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "client", "python"), HOME=folder, XDG_RUNTIME_DIR=folder,
               DATALOADERD_LIBRARY=os.path.join(BUILD, "libdlclient.so.0"), DATALOADERD_IDLE="5",
               DATALOADERD_PROGRAM=os.path.join(BUILD, "dataloaderd"))
    env.pop("DATALOADERD_SOCKET", None)
    run = subprocess.run([PYTHON, os.path.join(HERE, "from_dataset.py"), *map(str, arguments)], env=env, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, check=False)
    if run.returncode == 77:
        print(f"from_dataset skipped: {run.stderr.strip()}", flush=True)
        return None
    if run.returncode != 0:
        raise RuntimeError(run.stderr)
    return json.loads(run.stdout)


def from_dataset():
    with tempfile.TemporaryDirectory() as folder:
        for kind, n_samples, *more in (("photos", IMAGES // 2, photos()), ("arrays", 20000), ("rows", 60000)):
            pairs = []
            for _ in range(REPEATS):
                pairs.append([run_from_dataset(folder, whose, kind, n_samples, 2, *more) for whose in ("ours", "torch")])
                if None in pairs[-1]:
                    return
            emit(f"from_dataset_{kind}", median([ours for ours, _ in pairs], "samples_per_s"), "samples/s", repeats=REPEATS)
            emit(f"from_dataset_{kind}_vs_torch",
                 statistics.median(ours["samples_per_s"] / theirs["samples_per_s"] for ours, theirs in pairs), "ratio")
            emit(f"from_dataset_{kind}_cpu_vs_torch",
                 statistics.median(theirs["cpu_us"] / ours["cpu_us"] for ours, theirs in pairs), "ratio")


def first_day():
    import first_day as measurement  # pylint: disable=import-outside-toplevel
    measurement.run(emit, photos(), min(REPEATS, 3))


def wake():
    # One worker, so that the client has a CPU of its own. A bare futex runs in turns with it: that is the floor.
    rows = {mode: [] for mode in ("wake", "floor", "wake_busy", "floor_busy")}
    with daemon(1) as it:
        for _ in range(REPEATS):
            for mode, runs in rows.items():
                runs.append(it.consume(mode, 120))
    for mode, runs in rows.items():
        name = mode.replace("floor", "wake_floor")
        emit(name, median(runs, "p50"), "us", n=runs[0]["n"] * len(runs))
    emit("wake_p99", median(rows["wake"], "p99"), "us")


def pss(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("Pss:"))


def pss_per_rank():
    with daemon(2) as it:
        held, sums = [], []
        ring = 0
        try:
            for rank in range(2):
                held.append(subprocess.Popen([os.path.join(BUILD, "bench", "consume"), "hold", str(it.process.pid)],
                                             env=it.environment(rank, 2), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
                ring = json.loads(held[-1].stdout.readline())["ring_bytes"]
                sums.append(pss(it.process.pid) + sum(pss(process.pid) for process in held))
        finally:
            for process in held:
                process.stdin.close()
                process.wait(20)
    emit("pss_per_rank", sums[1] - sums[0], "bytes")
    emit("ring_per_rank", ring, "bytes")
    emit("pss_one_rank", sums[0], "bytes")


def orders():
    from orders import measure

    measure(emit, BUILD)


def resume():
    def measure(mode, environment=None):
        run = subprocess.run([os.path.join(BUILD, "bench", "resume"), mode], check=True, stdout=subprocess.PIPE, text=True,
                             timeout=300, env=environment)
        return json.loads(run.stdout)

    order = measure("order")
    emit("resume_tdperm_1e8", order["tdperm_ms"], "ms")
    emit("resume_torch_1e8", order["torch_ms"], "ms")
    emit("resume_torch_1e8_vs_shuffle", order["torch_vs_shuffle"], "ratio")
    with daemon(2) as it:
        seek = measure("seek", it.environment())
    emit("resume_seek_first_batch", seek["ms"], "ms", n=seek["n"])


def torch_rate(workers, n_batches=None, transforms=None):
    run = subprocess.run([PYTHON, os.path.join(HERE, "torch_loader.py"), photos(), str(workers), str(n_batches or IMAGES // BATCH)],
                         env=dict(os.environ, **({"BENCH_TRANSFORMS": transforms} if transforms else {})), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600, check=False)
    if run.returncode == 77:
        return None
    if run.returncode != 0:
        raise RuntimeError(run.stderr)
    return json.loads(run.stdout)


def torch_vs_daemon():
    ours, theirs = [], {workers: [] for workers in TORCH_WORKERS}
    with daemon(2) as it:
        for _ in range(3):
            for workers in TORCH_WORKERS:
                rate = torch_rate(workers)
                if rate is None:
                    print("torch_vs_daemon skipped: torch and torchvision are not installed", flush=True)
                    return
                theirs[workers].append(rate)
            ours.append(it.consume("throughput", IMAGES // BATCH))
    best = max(TORCH_WORKERS, key=lambda workers: median(theirs[workers], "images_per_s"))
    emit("torch", median(theirs[best], "images_per_s"), "images/s", workers=best, versions=theirs[best][0]["versions"])
    emit("torch_first_batch", median(theirs[best], "first_ms"), "ms")
    emit("torch_vs_daemon", median(ours, "images_per_s") / median(theirs[best], "images_per_s"), "ratio", workers=best)


# The daemon's text, and the same of torchvision for a DataLoader.
NORMALIZED = "normalize(mean=0.485:0.456:0.406, std=0.229:0.224:0.225)"
NORMALIZE = "t.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))"
RECIPES = {
    "crop": ("random_resized_crop(224) hflip(0.5)", "[t.RandomResizedCrop(224), t.RandomHorizontalFlip(), array]"),
    "rand_augment": ("random_resized_crop(224) hflip(0.5) rand_augment(2, 9)",
                     "[t.RandomResizedCrop(224), t.RandomHorizontalFlip(), t.RandAugment(2, 9), array]"),
    "whole": (f"random_resized_crop(224) hflip(0.5) rand_augment(2, 9) to(float32) {NORMALIZED} erasing(0.25) layout(nchw)",
              "[t.RandomResizedCrop(224), t.RandomHorizontalFlip(), t.RandAugment(2, 9), t.ToTensor(), "
              f"{NORMALIZE}, t.RandomErasing(0.25)]"),
    "trivial_augment": ("random_resized_crop(224) hflip(0.5) trivial_augment_wide",
                        "[t.RandomResizedCrop(224), t.RandomHorizontalFlip(), t.TrivialAugmentWide(), array]"),
}


def recipes():
    """Whole recipes, by CPU seconds of all processes: what is left for another one on a shared node."""
    with daemon(2) as it:
        for name, (text, transforms) in RECIPES.items():
            ours, theirs = [], []
            for _ in range(3):
                rate = torch_rate(2, IMAGES // BATCH // 4, transforms)
                if rate is None:
                    print("recipe skipped: torch and torchvision are not installed", flush=True)
                    return
                theirs.append(rate)
                ours.append(it.consume("throughput", IMAGES // BATCH // 2, environment={"BENCH_PIPELINE": text}))
            emit(f"recipe_{name}", 1000 / median(ours, "cpu_s_per_1000"), "images/CPU-s", repeats=3)
            emit(f"recipe_{name}_torch", 1000 / median(theirs, "cpu_s_per_1000"), "images/CPU-s",
                 versions=theirs[0]["versions"])
            emit(f"recipe_{name}_vs_torch", median(theirs, "cpu_s_per_1000") / median(ours, "cpu_s_per_1000"), "ratio")


# Several crops of each picture: (the whole text, each part of it alone and how often it comes).
LARGE = "random_resized_crop(224, scale=0.4:1, interpolation=bicubic)"
SMALL = "random_resized_crop(96, scale=0.05:0.4, interpolation=bicubic)"
DINO_COLORS = ("hflip(0.5) random_apply([color_jitter(brightness=0.4, contrast=0.4, saturation=0.2, hue=0.1)], p=0.8) "
               "random_grayscale(0.2) random_apply([gaussian_blur(23)], p=0.5)")
CROPS = {
    "views2": ((RECIPES["crop"][0], 2),),
    "dino": ((f"{LARGE} hflip(0.5)", 2), (f"{SMALL} hflip(0.5)", 8)),
    "dino_colors": ((f"{LARGE} {DINO_COLORS} {NORMALIZED}", 2), (f"{SMALL} {DINO_COLORS} {NORMALIZED}", 8)),
}


def crops():
    """One decoding for several crops, beside a loader for each of them."""
    with daemon(2) as it:
        def cost(text):
            return it.consume("throughput", IMAGES // BATCH // 4, environment={"BENCH_PIPELINE": text})["cpu_s_per_1000"]

        for name, parts in CROPS.items():
            text = "; ".join(f"crop{i}=image: {part} views({n})" for i, (part, n) in enumerate(parts))
            rows = [(cost(text), sum(n * cost(part) for part, n in parts)) for _ in range(3)]
            together, alone = (statistics.median(row[i] for row in rows) for i in range(2))
            emit(f"crops_{name}", 1000 / together, "samples/CPU-s", repeats=3)
            emit(f"crops_{name}_vs_alone", alone / together, "ratio")


# ---- two training programs side by side -----------------------------------------------------------------------------

class Trainer:
    """A rank of tests/bench/compare_torch.py; `None` for its first line where torch is not installed."""

    def __init__(self, kind, mode, it, rank, world):
        env = dict(it.environment(rank, world), PYTHONPATH=os.path.join(ROOT, "client", "python"), OMP_NUM_THREADS="1",
                   DATALOADERD_LIBRARY=os.path.join(BUILD, "libdlclient.so.0"), MASTER_ADDR="compare",
                   MASTER_PORT=str(os.getpid()), PYTHONDONTWRITEBYTECODE="1")
        self.process = subprocess.Popen([PYTHON, os.path.join(HERE, "compare_torch.py"), kind, photos(), mode], env=env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def line(self):
        text = self.process.stdout.readline()
        if not text and self.process.wait(20) != 77:
            raise RuntimeError("a trainer failed")
        return json.loads(text) if text else None

    def go(self):
        """It has imported everything and makes its loader now."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def processes(self):
        """It and the workers that it forked."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as children:
            return [self.process.pid] + [int(pid) for pid in children.read().split()]

    def end(self):
        """Its last line, if it says one at its end."""
        self.process.stdin.close()
        rest = self.process.stdout.read()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return json.loads(rest) if rest else None


def compare_trainers(kind, it):
    """Two ranks; the later one's first batch and the memory of all. None without torch."""
    trainers = []
    try:
        for rank in range(2):
            trainers.append(Trainer(kind, "hold", it, rank, 2))
        if None in [trainer.line() for trainer in trainers]:
            return None
        imported = sum(pss(trainer.process.pid) for trainer in trainers)
        for trainer in trainers:
            trainer.go()
        rows = [trainer.line() for trainer in trainers]
        pids = [pid for trainer in trainers for pid in trainer.processes()]
        if kind == "dlclient":
            pids.append(it.process.pid)
        total = sum(map(pss, pids))
        return {"first_ms": max(row["first_ms"] for row in rows), "pss": total, "over": total - imported,
                "processes": len(pids), "versions": rows[0]["versions"]}
    finally:
        for trainer in trainers:
            trainer.end()


def restart_stall(it, number):
    """A trainer's longest stop around a restart, the daemon's own start, and what lies behind that; seconds."""
    trainer = Trainer("dlclient", "loop", it, 0, 1)
    try:
        trainer.line()
        trainer.go()
        trainer.line()
        time.sleep(1)
        it.process.send_signal(number)
        it.process.wait()
        gone = time.monotonic()
        it.start()
        ready = it.wait_ready()
        time.sleep(2)
    finally:
        last = trainer.end()
    times = last["times"]
    stop, begin = max((later - sooner, sooner) for sooner, later in zip(times, times[1:]) if later > gone)
    return {"stall": stop, "start": ready - gone, "behind": max(0.0, begin + stop - ready)}


def compare():
    rows = {"torch": [], "dlclient": []}
    stalls = {signal.SIGTERM: [], signal.SIGKILL: []}
    with daemon(2) as it:
        for _ in range(3):
            for kind, runs in rows.items():
                run = compare_trainers(kind, it)
                if run is None:
                    print("compare skipped: torch and torchvision are not installed", flush=True)
                    return
                runs.append(run)
        for _ in range(3):
            for number, runs in stalls.items():
                runs.append(restart_stall(it, number))
    for kind, runs in rows.items():
        emit(f"compare_first_batch_{kind}", median(runs, "first_ms"), "ms", versions=runs[0]["versions"])
    for kind, runs in rows.items():
        emit(f"compare_memory_{kind}", median(runs, "pss") / 2**20, "MiB", processes=runs[0]["processes"])
        emit(f"compare_memory_over_{kind}", median(runs, "over") / 2**20, "MiB")
    for name, number in (("term", signal.SIGTERM), ("kill", signal.SIGKILL)):
        emit(f"compare_restart_{name}_stall", median(stalls[number], "stall"), "s", start_s=median(stalls[number], "start"))
        emit(f"compare_restart_{name}_behind_start", median(stalls[number], "behind"), "s",
             worst=max(row["behind"] for row in stalls[number]))


def kills():
    """Two trainers in C, then one of them in Python."""
    sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
    from harness import Box
    from kills import Campaign, c_rank, python_rank
    total = int(os.environ.get("KILLS", "10000"))
    sums = {"samples": 0, "out_of_order": 0, "wrong": 0, "daemon": 0, "trainer": 0}
    for commands, share, mean_seconds in (([c_rank(), c_rank()], 0.95, 0.03), ([python_rank(), c_rank()], 0.05, 0.25)):
        seed = time.time_ns()
        box = Box()
        try:
            campaign = Campaign(box, commands, mean_seconds=mean_seconds)
            campaign.run(round(total * share), seed)
            counts, sentences = campaign.faults()
        finally:
            box.close()
        for sentence in sentences:
            print(f"# {sentence} (moments from seed {seed})", flush=True)
        for name, value in {**counts, **campaign.kills}.items():
            if name in sums:
                sums[name] += value
    emit("kills", sums["daemon"] + sums["trainer"], "kills", daemon=sums["daemon"], trainer=sums["trainer"])
    emit("kills_samples", sums["samples"], "samples")
    emit("kills_lost_or_twice", sums["out_of_order"], "samples")
    emit("kills_wrong", sums["wrong"], "samples")


def jpeg():
    run = subprocess.run([os.path.join(BUILD, "bench", "jpeg_decode"), photos()], check=True, stdout=subprocess.PIPE, text=True,
                         timeout=300)
    us = json.loads(run.stdout)
    for part in "whole", "box":
        emit(f"jpeg_{part}", us[f"baseline_{part}_us"], "us", n=us["photos"])
        emit(f"jpeg_{part}_vs_libjpeg", us[f"libjpeg_{part}_us"] / us[f"baseline_{part}_us"], "ratio")


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


def coco():
    import coco as measurement
    measurement.run(daemon, emit, ROOT, BUILD, photos(), os.path.join(OUT, "coco"), REPEATS, 200)


def padding():
    import padding as measurement
    measurement.run(daemon, emit, ROOT, BUILD, OUT, REPEATS, 600, 60000)


def tfrecord():
    import tfrecord as measurement
    measurement.run(daemon, emit, ROOT, BUILD, photos(), os.path.join(OUT, "tfrecord"), REPEATS, IMAGES // BATCH)


def listing():
    import listings as measurement
    measurement.run(emit, BUILD, os.path.join(OUT, "listings"), REPEATS)


def steps():
    import steps as measurement
    measurement.report(BUILD, emit)


def metrics():
    import metrics as measurement
    measurement.run(daemon, emit, REPEATS)


def watched():
    import watched as measurement
    measurement.run(daemon, emit, BUILD, REPEATS, IMAGES // BATCH, bare_loop)


def small_photos():
    """Photographs as thumbnails of 64 x 64."""
    folder = PHOTOS + "-64"
    for path, _, names in [] if os.path.isdir(folder) else os.walk(photos()):
        for name in (name for name in names if name.endswith(".jpg")):
            target = os.path.join(folder, os.path.basename(path), name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with Image.open(os.path.join(path, name)) as picture:
                picture.resize((64, 64)).save(target, quality=90)
    return folder


def isolation():
    import isolation as measurement
    measurement.run(daemon, emit, REPEATS, IMAGES // BATCH, small_photos)


def confirm():
    import confirm as measurement
    measurement.run(daemon, emit, BUILD, photos(), REPEATS)


def tables():
    import tables as measurement
    measurement.run(emit, BUILD, os.path.join(OUT, "tables"), REPEATS)


def packs():
    import packs as measurement
    measurement.run(emit, BUILD, OUT, REPEATS)


def webdataset():
    import webdataset as measurement
    measurement.run(daemon, emit, BUILD, photos(), os.path.join(OUT, "webdataset"), REPEATS, IMAGES // BATCH)


def staging():
    import staging_rates as measured
    for name in names_for("staging") or [""]:
        measured.run(REPEATS, emit, name)


def tokens(path, n_bytes=4_000_000_000, row=4098):
    """Rows of 2,049 uint16, as numpy.save() writes them; made once."""
    n_rows = n_bytes // row
    head = f"{{'descr': '<u2', 'fortran_order': False, 'shape': ({n_rows}, {row // 2}), }}".encode()
    head = b"\x93NUMPY\x01\x00\x76\x00" + head.ljust(117) + b"\n"
    if not os.path.exists(path) or os.path.getsize(path) != len(head) + n_rows * row:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(head)
            for at in range(0, n_rows * row, 1 << 24):
                file.write(os.urandom(min(1 << 24, n_rows * row - at)))
    with open(path, "rb", buffering=0) as file:  # into the page cache
        while file.read(1 << 24):
            pass
    return path


def rows_rate(*arguments, **keywords):
    """What tests/bench/rows.c measures."""
    program = os.path.join(BUILD, "bench", "rows")
    run = subprocess.run([program, *arguments], check=True, stdout=subprocess.PIPE, text=True, timeout=300, **keywords)
    return json.loads(run.stdout)["rows_per_s"]


def npy():
    """Rows of a 4 GB array in the page cache, against threads that do nothing but copy them, in turns."""
    path = tokens(os.path.join(OUT, "tokens.npy"))
    ours, limit = [], []
    with daemon(2, more=f'dataset "tokens" {{ path = "{path}" format = "npy" }}\n') as it:
        for _ in range(REPEATS):
            limit.append(rows_rate("copy", path, "4098", "2"))
            ours.append(rows_rate("serve", "2000", env=it.environment()))
    emit("npy_rows", statistics.median(ours), "rows/s", repeats=REPEATS)
    emit("npy_memcpy", statistics.median(limit), "rows/s", repeats=REPEATS)
    emit("npy_vs_memcpy", statistics.median(a / b for a, b in zip(ours, limit)), "ratio")


def token_file(prefix, n_tokens=500_000_000, longest=2000):
    """Documents of 0 to `longest` tokens (uint16), as Megatron writes them; made once."""
    import array
    import random
    import struct
    dice, lengths = random.Random(1), []
    for _ in range(2 * n_tokens // longest):
        lengths.append(dice.randrange(longest + 1))
    size = 2 * sum(lengths)
    if not os.path.exists(prefix + ".bin") or os.path.getsize(prefix + ".bin") != size:
        os.makedirs(os.path.dirname(prefix), exist_ok=True)
        with open(prefix + ".bin", "wb") as file:
            for at in range(0, size, 1 << 24):
                file.write(os.urandom(min(1 << 24, size - at)))
    pointers = [0]
    for length in lengths[:-1]:
        pointers.append(pointers[-1] + 2 * length)
    with open(prefix + ".idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(lengths), len(lengths) + 1))
        for code, numbers in ("i", lengths), ("q", pointers), ("q", range(len(lengths) + 1)):
            file.write(array.array(code, numbers).tobytes())
    with open(prefix + ".bin", "rb", buffering=0) as file:  # into the page cache
        while file.read(1 << 24):
            pass
    return prefix


def megatron():
    """GPT samples of a file in the page cache, against threads that copy as many pieces of it, in turns."""
    prefix = token_file(os.path.join(OUT, "megatron"))
    rates = {"megatron_rows": ("300", "1024"), "megatron_rows_uint16": ("300", "1024", "tokens: to(uint16)"),
             "megatron_rows_64": ("4000", "64")}
    turns = []
    with daemon(2, more=f'dataset "tokens" {{ path = "{prefix}" format = "megatron" sequence_length = "2048" }}\n') as it:
        for _ in range(REPEATS):
            turns.append({name: rows_rate("serve", *arguments, env=it.environment()) for name, arguments in rates.items()})
            turns[-1]["megatron_memcpy"] = rows_rate("copy", prefix + ".bin", "4098", "2", "3")
    for name in turns[0]:
        emit(name, statistics.median(turn[name] for turn in turns), "rows/s", repeats=REPEATS)
    emit("megatron_vs_memcpy", statistics.median(turn["megatron_rows_uint16"] / turn["megatron_memcpy"] for turn in turns), "ratio")


def arrow_file(path, n_batches=3000):
    """The batch of a small file that pyarrow wrote, many times."""
    import struct
    with open(os.path.join(ROOT, "tests", "vectors", "arrow", "kilobytes.arrow"), "rb") as file:
        stream = file.read()
    at = 8 + struct.unpack_from("<i", stream, 4)[0]  # the schema has no body
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(stream[:at] + stream[at:-8] * n_batches + stream[-8:])
    return path


def arrow():
    """Text and integers of a file in the page cache."""
    path = arrow_file(os.path.join(OUT, "rows.arrow"))
    with daemon(2, more=f'dataset "tokens" {{ path = "{path}" format = "arrow" }}\n') as it:
        for name, arguments in {"arrow_rows": ("300", "1024"), "arrow_rows_64": ("4000", "64")}.items():
            runs = [rows_rate("serve", *arguments, env=it.environment()) for _ in range(REPEATS)]
            emit(name, statistics.median(runs), "rows/s", repeats=REPEATS)


def sound():
    """Crops of FLAC files, beside soundfile in torch's DataLoader."""
    import sound as measurement  # pylint: disable=import-outside-toplevel
    measurement.run(daemon, emit, PYTHON, BUILD, os.path.join(OUT, "sound"), REPEATS, 30)


def features():
    """Spectrograms, MFCC and noise, beside torchaudio."""
    import features as measurement  # pylint: disable=import-outside-toplevel
    measurement.run(emit, PYTHON, BUILD, REPEATS)


def tokens():
    """Batches of tokens of text, beside "tokenizers" in torch's DataLoader."""
    import tokens as measurement  # pylint: disable=import-outside-toplevel
    measurement.run(daemon, emit, BUILD, os.path.join(OUT, "tokens"), REPEATS, 200)


def growth():
    from growth import run
    for name in names_for("growth"):
        run(BUILD, OUT, photos(), emit, name)


def profile():
    import profile_image
    profile_image.run(BUILD, OUT, photos(), emit)


MEASUREMENTS = [
    (("decode_limit", "daemon", "daemon_vs_limit"), daemon_vs_limit),
    (("left",), left),
    (("own_vs_libjpeg", "decode_limit_libjpeg", "decode_limit_mixed", "mixed_vs_baseline"), vs_libjpeg),
    (("first_batch",), first_batch),
    (("next_ready",), next_ready),
    (("fair",), fair),
    (("python_next", "python_array", "python_first_batch"), python_next),
    (("python_step",), python_step),
    (("from_dataset",), from_dataset),
    (("first_day",), first_day),
    (("wake",), wake),
    (("pss_per_rank", "ring_per_rank", "pss_one_rank"), pss_per_rank),
    (("metrics",), metrics),
    (("watched",), watched),
    (("confirm",), confirm),
    (("isolation",), isolation),
    (("resume_tdperm_1e8", "resume_torch_1e8", "resume_seek_first_batch"), resume),
    (("orders",), orders),
    (("jpeg_whole", "jpeg_box"), jpeg),
    (("packed",), packed),
    (("tfrecord",), tfrecord),
    (("webdataset",), webdataset),
    (("listing",), listing),
    (("tables",), tables),
    (("coco",), coco),
    (("padding",), padding),
    (("npy",), npy),
    (("megatron",), megatron),
    (("arrow",), arrow),
    (("sound",), sound),
    (("features",), features),
    (("steps", "step"), steps),
    (("tokens",), tokens),
    (("staging",), staging),
    (("torch_vs_daemon", "torch"), torch_vs_daemon),
    (("recipe",), recipes),
    (("crops",), crops),
    (("compare",), compare),
    (("kills",), kills),
    (("packs",), packs),
    (("growth",), growth),
    (("profile",), profile),
]
NAMED_ONLY = (kills, packs, growth, profile)


def names_asked(arguments):
    """What was asked for: "a,b c" are three names."""
    return [name for argument in arguments for name in argument.replace(",", " ").split()]


def is_meant(asked, name):
    return name.startswith(asked) or asked.startswith(name)


def names_for(name):
    """The names that were asked for and mean this measurement, or a part of it."""
    return [asked for asked in names_asked(sys.argv[1:]) if is_meant(asked, name)]


def chosen(asked):
    """The measurements to make, each once, in the table's sequence. Ends the program where a name means none."""
    if not asked:
        return [run for _, run in MEASUREMENTS if run not in NAMED_ONLY]
    for one in asked:
        if not any(is_meant(one, name) for names, _ in MEASUREMENTS for name in names):
            sys.exit(f"bench: nothing begins with {one!r}; there are: {', '.join(names[0] for names, _ in MEASUREMENTS)}")
    return [run for names, run in MEASUREMENTS if any(is_meant(one, name) for one in asked for name in names)]


def main():
    runs = chosen(names_asked(sys.argv[1:]))
    try:
        for run in runs:
            run()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        if results:
            os.makedirs(OUT, exist_ok=True)
            path = os.path.join(OUT, time.strftime("%Y%m%d-%H%M%S.jsonl"))
            with open(path, "w", encoding="utf-8") as file:
                for row in results:
                    file.write(json.dumps(dict(row, machine=platform.processor() or platform.machine(),
                                               cpus=os.cpu_count(), kernel=platform.release())) + "\n")
            print(f"# results: {os.path.relpath(path, ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
