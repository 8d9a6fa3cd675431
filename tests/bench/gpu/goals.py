"""What `make bench-gpu` measures: each result's part, name, unit, goal and meaning; and the table that shows them.

No process and no device: docs/performance.md's table before anything was measured comes from here as well."""
import collections
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))
import document

# key: in what the program prints, or None; goal: ("at least" or "at most", number), or None.
Result = collections.namedtuple("Result", "part name key unit goal means")
NOT_RUN = "not run: no GPU"
ABOUT_NOTHING = "Nothing here was measured yet: dataloaderd was built on machines without a GPU."
NOT_MEASURED = "over the tests' driver, not a measurement"


def result(part, name, key, unit, goal, means):
    return Result(part, f"{part}_{name}", key, unit, goal, means)


RESULTS = [
    result("link", "registered", "registered", "GB/s", None,
           "copies to the device out of the memory of the loader's batches, which the library has registered, a batch each"),
    result("link", "allocated", "allocated", "GB/s", None, "the same out of as much memory of cuMemHostAlloc()"),
    result("link", "pageable", "pageable", "GB/s", None, "the same out of ordinary memory, which the driver copies once more"),
    result("link", "ratio", "ratio", "ratio", ("at least", 0.98), "link_registered over link_allocated, in turns"),
    result("kernel", "f16_nchw", "f16_nchw", "TB/s", ("at least", 3.5),
           "read and written by the kernel that makes float16 planes of uint8 pixels; the goal is an H200's"),
    result("kernel", "bf16_nchw", "bf16_nchw", "TB/s", ("at least", 3.5), "the same kernel with the table of bfloat16"),
    result("kernel", "f32_nchw", "f32_nchw", "TB/s", ("at least", 3.5), "the same for float32"),
    result("kernel", "f16_nhwc", "f16_nhwc", "TB/s", ("at least", 3.5), "float16, channels last"),
    result("kernel", "f32_nhwc", "f32_nhwc", "TB/s", ("at least", 3.5), "float32, channels last"),
    result("kernel", "copy", "copy", "TB/s", None, "the driver's copy within the device: what its memory does"),
    result("next", "ready", "p50", "us", ("at most", 50), "dlc_cuda_next() of a batch that is ready, the median"),
    result("next", "ready_p99", "p99", "us", None, "the 99th of 100"),
    result("end_to_end", "rate", "alone", "images/s", None, "loader to GPU at full speed, uint8 made float16 there"),
    result("end_to_end", "link", "link", "GB/s", None, "copies out of the same memory, in turns with it"),
    result("end_to_end", "of_link", "alone_of_link", "ratio", ("at least", 0.95),
           "its bytes a second over the link's, measured in turns"),
    result("end_to_end", "beside", "beside", "images/s", None, "the same while matrix products keep the device busy"),
    result("end_to_end", "beside_of_link", "beside_of_link", "ratio", ("at least", 0.95), "that over the link's"),
    result("end_to_end", "slowdown", "slowdown", "%", None, "how much slower the products are then, with the link full"),
    result("end_to_end", "paced_slowdown", "paced_slowdown", "%", ("at most", 2),
           "how much slower they are when the loader brings 20,000 images/s"),
    result("end_to_end", "client_cpu", "client_cpu", "s/1000", None, "CPU seconds of the client's process for 1,000 images"),
    result("end_to_end", "gpu_share", "gpu_share", "%", None,
           "time of the device's that our kernels take at end_to_end_rate: batches a second times a kernel's time alone"),
    result("daemon", "rate", "alone", "images/s", None, "photographs through the daemon, with a worker for each CPU"),
    result("daemon", "link", "link", "GB/s", None, "copies out of the daemon's own ring, in the pages that it got for it"),
    result("daemon", "cpu", "daemon_cpu", "s/1000", None, "CPU seconds of the daemon for 1,000 images"),
    result("daemon", "client_cpu", "client_cpu", "s/1000", None, "CPU seconds of the client for 1,000 images"),
    result("daemon", "slowdown", "slowdown", "%", ("at most", 2), "how much slower the products are beside it"),
    result("lifetime", "wrong", "wrong", "batches", ("at most", 0),
           "of 200, those whose sum, read after 100 ms of queued work, is not that of what was sent; "
           "on four streams, half of them kept"),
    result("lifetime", "control", "control_wrong", "batches", ("at least", 1),
           "of 41, the same with a rule broken on purpose: wrong sums must be seen"),
]

PEER_KINDS = (("rate", "images_per_s", "images/s", "images/s on the GPU, float16, channels first"),
              ("cpu", "cores", "cores", "CPUs taken meanwhile, by all processes"),
              ("gpu", "gpu_share", "%", "what a trainer's matrix products lose while it loads"),
              ("beside", "beside_images_per_s", "images/s", "images/s beside those products"))
PEERS = {
    "dlclient": "dataloaderd, dlclient.Loader(device=\"cuda\")",
    "torch": "torch's DataLoader, pin_memory, non_blocking",
    "torch_gpu": "torchvision's decoder on the GPU",
    "dali": "DALI, mixed decoder",
    "spdl": "SPDL, threads, pinned memory",
    "ffcv": "FFCV, ToDevice(non_blocking)",
}
for peer, title in PEERS.items():
    RESULTS += [Result("peers", f"peers_{peer}_{kind}", key, unit, None, f"{title}: {means}")
                for kind, key, unit, means in PEER_KINDS]

PARTS = list(dict.fromkeys(one.part for one in RESULTS))


def of_part(part):
    return [one for one in RESULTS if one.part == part]


def chosen(names):
    """The parts that these names mean: of a part, of a result, or of what begins so. Ends the program where one means
    nothing."""
    if not names:
        return PARTS
    for name in names:
        if not any(one.name.startswith(name) or name.startswith(one.part) for one in RESULTS):
            sys.exit(f"bench-gpu: nothing begins with {name!r}; there are: {', '.join(PARTS)}")
    return [part for part in PARTS
            if any(name.startswith(part) or one.name.startswith(name) for name in names for one in of_part(part))]


def is_met(one, value):
    """None if there is no goal."""
    if one.goal is None:
        return None
    return value >= one.goal[1] if one.goal[0] == "at least" else value <= one.goal[1]


def goal_text(one):
    return f"{one.goal[0]} {one.goal[1]:g}" if one.goal else ""


def number(value):
    """As `make bench` prints them."""
    if isinstance(value, float) and value < 100:
        return f"{value:.3f}" if abs(value) >= 0.01 or value == 0 else f"{value:.2g}"
    return f"{value:.0f}"


def table(values):
    """Markdown. values: name -> number, or a text that says why there is none."""
    rows = []
    for one in RESULTS:
        value = values.get(one.name, NOT_RUN)
        shown = value if isinstance(value, str) else number(value)
        if not isinstance(value, str) and is_met(one, value) is False:
            shown = f"**{shown}, missed**"
        rows.append([one.name, one.means, one.unit, goal_text(one), shown])
    lines = ["| `BENCH=` | what it is | unit | goal | measured |", "|---|---|---|---|---|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def block(about, values):
    """The generated part of docs/performance.md."""
    return about + "\n\n" + table(values)


def write(path, about, values):
    document.write(path, {"gpu": block(about, values)})
