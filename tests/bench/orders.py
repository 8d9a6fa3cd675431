"""Orders that steps of a sampler make, without a daemon.

    orders_weighted_first, _whole   s to the first index and to the last one of weighted(n=10^8) over 10^8 float64 weights; _cpu: CPU s;
                                    orders_weighted_bytes: memory a sample, the order's 4 included
    orders_weighted_vs_torch        time of torch.multinomial over ours, in turns, for the 2^24 weights that it takes at most
    orders_grouped_vs_python        time of Hugging Face's way to group by length, in Python, over length_grouped's, in turns, for 10^7
                                    samples in batches of 32; orders_grouped_whole, _cpu, _bytes: s, CPU s and memory a sample for 10^8
    orders_stratified, orders_repeat_factor, orders_class_balanced   s for 10^7 samples
"""
import json
import os
import statistics
import subprocess
import time

TURNS = 3


def run(build, sampler, column, n, batch=32):
    done = subprocess.run([os.path.join(build, "bench", "orders"), sampler, column, str(n), str(batch)], check=True,
                          stdout=subprocess.PIPE, text=True, timeout=600)
    return json.loads(done.stdout)


def grouped_in_python(torch, lengths, batch):
    """As transformers does it: slices of 50 batches, each sorted with Python's sort."""
    began = time.perf_counter()
    order, size = torch.randperm(len(lengths)), 50 * batch
    slices = [sorted(order[i:i + size].tolist(), key=lambda sample: lengths[sample], reverse=True)
              for i in range(0, len(lengths), size)]
    longest = max(range(len(slices)), key=lambda i: lengths[slices[i][0]])
    slices[0][0], slices[longest][0] = slices[longest][0], slices[0][0]
    flat = [sample for each in slices for sample in each]
    assert len(flat) == len(lengths)
    return time.perf_counter() - began


def drawn_by_torch(torch, weights):
    began = time.perf_counter()
    torch.multinomial(weights, len(weights), True).tolist()
    return time.perf_counter() - began


def measure(emit, build):
    weighted = [run(build, "weighted(column=weights)", "weights", 10**8) for _ in range(TURNS)]
    emit("orders_weighted_first", statistics.median(each["first_s"] for each in weighted), "s")
    emit("orders_weighted_whole", statistics.median(each["whole_s"] for each in weighted), "s")
    emit("orders_weighted_cpu", statistics.median(each["cpu_s"] for each in weighted), "s")
    emit("orders_weighted_bytes", weighted[0]["bytes_a_sample"], "bytes")
    grouped = [run(build, "length_grouped(column=lengths)", "lengths", 10**8) for _ in range(TURNS)]
    emit("orders_grouped_whole", statistics.median(each["whole_s"] for each in grouped), "s")
    emit("orders_grouped_cpu", statistics.median(each["cpu_s"] for each in grouped), "s")
    emit("orders_grouped_bytes", grouped[0]["bytes_a_sample"], "bytes")
    for name, sampler, column in (("stratified", "stratified(labels)", "labels"),
                                  ("repeat_factor", "repeat_factor(labels, t=0.01)", "labels"),
                                  ("class_balanced", "class_balanced(labels)", "labels")):
        emit(f"orders_{name}", run(build, sampler, column, 10**7)["whole_s"], "s")
    try:
        import torch
    except ImportError:
        print("orders_weighted_vs_torch: torch is not installed for this python3", flush=True)
        return
    lengths = torch.randint(1, 2049, (10**7,)).tolist()
    emit("orders_grouped_vs_python",
         statistics.median(grouped_in_python(torch, lengths, 32) /
                           run(build, "length_grouped(column=lengths)", "lengths", 10**7)["whole_s"] for _ in range(TURNS)),
         "ratio")
    weights = torch.rand(2**24, dtype=torch.float64)
    emit("orders_weighted_vs_torch",
         statistics.median(drawn_by_torch(torch, weights) /
                           run(build, "weighted(column=weights)", "weights", 2**24)["whole_s"] for _ in range(TURNS)), "ratio")
