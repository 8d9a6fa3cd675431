"""What it costs to decode in processes of their own (`isolation = process`): two daemons with the same photos, in turns.

    isolation_1, _2        images/s of one rank with processes, over those with threads, at 1 and 2 workers: random_resized_crop(224)
                           hflip(0.5), medians of the ratios of pairs
    isolation_1_cpu, _2_cpu  CPU time of daemon and processes for an image with threads, over that with processes
    isolation_padded       the same as isolation_2 for pictures of any size, which are placed when their headers are known
    isolation_small        the same for pictures of 64 x 64, of which a worker makes thousands a second: the worst case"""
import os
import statistics

CASES = (  # name, workers, pipeline
    ("1", 1, "random_resized_crop(224) hflip(0.5)"),
    ("2", 2, "random_resized_crop(224) hflip(0.5)"),
    ("padded", 2, "resize(short=256, max=512) pad"),
    ("small", 2, "center_crop(16)"),
)


def cpu_ticks(pid):
    """Of a process and of the children that it has now, as clock ticks."""
    total = 0
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        pids = [str(pid), *file.read().split()]
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
            pids += file.read().split()
    for one in set(pids):
        with open(f"/proc/{one}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total


def measure(it, pipeline, n_batches):
    before = cpu_ticks(it.process.pid)
    rate = it.consume("throughput", n_batches, environment={"BENCH_PIPELINE": pipeline})["images_per_s"]
    return rate, cpu_ticks(it.process.pid) - before


def run(daemon, emit, repeats, n_batches, small_photos):
    for name, workers, pipeline in CASES:
        path = small_photos() if name == "small" else None
        with daemon(workers, path=path) as threads, daemon(workers, path=path, more='isolation = "process"\n') as cells:
            rates, times = [], []
            for it in (threads, cells):
                measure(it, pipeline, 5)
            for number in range(repeats):
                pair = {}
                for it in (threads, cells) if number % 2 else (cells, threads):
                    pair[it] = measure(it, pipeline, n_batches)
                rates.append(pair[cells][0] / pair[threads][0])
                times.append(pair[threads][1] / max(pair[cells][1], 1))
        emit(f"isolation_{name}", statistics.median(rates), "ratio", repeats=repeats)
        emit(f"isolation_{name}_cpu", statistics.median(times), "ratio")
