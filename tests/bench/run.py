#!/usr/bin/env python3
"""The measurements of `make bench`: one line each, `name value unit`, and as JSON Lines under build/bench/.

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
    python_next_ready, _p99   us of next() in Python for a batch that is ready; python_next_cold: after a pause;
                           python_array: of batch["image"]
    python_step_*          a function of the trainer's own that does nothing: CPU us a sample of its process (worker; seeded: without
                           rng, so that all generators are seeded) and of the daemon beside the same pipeline without it
                           (daemon); the same of numbers, which come in runs (runs_worker, runs_seeded, runs_daemon; the daemon's
                           own work included); one of some 0.3 ms, two processes: images/s (rate), of torch's DataLoader with two
                           (torch), and the ratio, in turns (vs_torch); tests/bench/python_step.py
    from_dataset_*         a Dataset object of torch's as it is, by from_dataset(), two processes: samples/s of photos with torchvision on
                           Pillow, of arrays of 150 KB and of rows of 256 bytes in memory; _vs_torch: over torch's DataLoader
                           with two, in turns; _cpu_vs_torch: CPU time a sample of that over ours (tests/bench/from_dataset.py)
    hostile_*              images/s beside another user who reads with slow pipelines, has orders made, is refused, floods, or does
                           all of it, over images/s beside an equal one; longest gap, attach, status, SIGTERM (tests/bench/hostile.py)
    python_first_batch     ms from Loader() to its first batch, the package imported, index built
    first_day              s from an empty environment to the first batch: _environment (venv), _pip, _program (three lines);
                           first_day_second: ms to the first batch of a second process; first_day_torch: that of torch's
                           DataLoader; first_day_second_vs_torch: the ratio, in turns (tests/bench/first_day.py; needs the wheel)
    wake                   us from publishing to the return of a next() that slept (p50), the worker idle after it; wake_p99
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
    fetch_*                the fetcher beside curl and a bare libcurl multi loop: objects of 110 KB and of 8 MiB, at once and 30 ms late
                           (tests/bench/fetch.py)
    remote_*               datasets whose path is a URL, cold, 30 ms away, beside local files and other libraries (only if asked for by
                           name: minutes, and an environment from PyPI; tests/bench/remote.py)
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
                           started again at once, and how much of it lies after the moment when the daemon answers again
"""
import json
import os
import platform
import sys
import time

from cached_rows import arrow, megatron, npy
from common_bench import BATCH, BUILD, IMAGES, OUT, PYTHON, REPEATS, ROOT, bare_loop, daemon, emit, photos, results, small_photos
from packed import packed
from python_client import from_dataset, python_next, python_step
from recipes import crops, recipes, torch_vs_daemon
from serving import daemon_vs_limit, first_batch, jpeg, left, next_ready, pss_per_rank, resume, vs_libjpeg, wake
from trainers import compare, kills


# ---- measurements with a file of their own, which may need what is not installed -------------------------------------

def fair():
    """What a light job gets beside others."""
    import fair as measurement  # pylint: disable=import-outside-toplevel
    measurement.run(daemon, emit, BUILD, photos(), min(REPEATS, 3), IMAGES // 2 // BATCH)


def hostile():
    """What a job keeps beside another user who takes what he can get."""
    import hostile as measurement  # pylint: disable=import-outside-toplevel
    measurement.run(daemon, emit, min(REPEATS, 3), IMAGES // BATCH)


def first_day():
    import first_day as measurement  # pylint: disable=import-outside-toplevel
    measurement.run(emit, photos(), min(REPEATS, 3))


def orders():
    from orders import measure

    measure(emit, BUILD)


def fetch():
    from fetch import measure

    measure(emit, BUILD)


def remote():
    """Datasets whose path is a URL."""
    from remote import measure

    measure(emit, BUILD, OUT, photos(), names_for("remote") or ["remote"])


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
    (("hostile",), hostile),
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
    (("fetch",), fetch),
    (("remote",), remote),
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
NAMED_ONLY = (kills, packs, growth, profile, remote)


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
