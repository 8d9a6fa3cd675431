#!/usr/bin/env python3
"""Batches on a device: libdlclient-cuda on a driver of the tests' own (tests/cuda), which begins all work late, so that
memory that is used again too early is seen. What arrives is compared with what a loader without a device gives."""
import itertools
import os
import random
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from gpu import STAND_IN, has_real_driver
from harness import BUILD, ROOT, VARIANT, Skip, Table, case, contains, equal, few, identity_pixels, main, patience, png
from tars import archive, npy, web

sys.path.insert(0, os.path.join(ROOT, "tests", "cuda"))
from break_rules import RULES, build

PROGRAM = os.path.join(BUILD, "tools", "cuda_batches")
CROP = "random_resized_crop(33) hflip(0.5)"


class Device:
    """What became of a run with the stand-in."""

    def __init__(self, box, arguments, driver=True, library=None, **environment):
        report = box.path("report")
        if os.path.exists(report):
            os.unlink(report)
        env = dict(os.environ, DLT_CUDA_REPORT=report)
        if driver:
            env["LD_LIBRARY_PATH"] = STAND_IN + (":" + library if library else "")
        env.update({f"DLT_CUDA_{name.upper()}": str(value) for name, value in environment.items()})
        self.done = subprocess.run([PROGRAM, *arguments], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   universal_newlines=True, timeout=patience(60), check=False)
        self.output = self.done.stdout
        self.counts = {}
        if os.path.exists(report):
            with open(report, encoding="ascii") as file:
                self.counts = dict(line.rstrip("\n").partition(" ")[::2] for line in file)

    def count(self, name):
        return int(self.counts[name])

    def check(self, **numbers):
        """It compared all batches, broke no rule of the driver and left nothing behind."""
        equal(self.done.returncode, 0, f"exit status: {self.output}")
        equal((self.count("n_violations"), self.counts.get("first_violation", "")), (0, ""), "rules of the driver that were broken")
        for left in ("contexts", "streams", "events", "modules", "allocations", "registrations", "left"):
            equal(self.count(f"n_{left}"), 0, f"{left} that are left")
        equal("remark" in self.output, False, self.output)
        words = self.output.split()
        for name, number in numbers.items():
            equal(int(words[words.index(name) + 1]), number, name)
        return self


def run(box, daemon, pipeline, *keys, dataset="p", **environment):
    return Device(box, [daemon.socket, dataset, pipeline, *keys], **environment)


@case("whatever the pipeline's end, a batch on the device has the bytes that the CPU delivers")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 26, width=40, height=32)}, workers=2)
    table = Table()
    for pipeline in (f"{CROP} to(float16) layout(nchw)",
                     f"{CROP} to(float32) layout(nchw)",
                     f"{CROP} to(bfloat16)",
                     f"{CROP} normalize(mean=0.485:0.456:0.406, std=0.229:0.224:0.225) to(float16) layout(nchw)",
                     f"{CROP} normalize(mean=0.5:0.4:0.3, std=0.2:0.3:0.1)",
                     f"{CROP} layout(nchw)",
                     CROP,
                     "decode(mode=L) center_crop(30:20) to(float16)",
                     "decode(mode=RGBA) center_crop(30:20) to(float16) layout(nchw)",
                     f"{CROP} to(float16) views(2)",
                     "image: center_crop(8) to(float32); label: to(int32)",
                     "center_crop(20) to(float32) pad(value=0.5, max=40:40)"):
        with table.row(pipeline):
            device = run(box, daemon, pipeline, "batch=6", "epochs=2").check(batches=10)
            equal(device.count("n_copies_late") % 10, 0, "copies of batches that the device made itself")
            equal(device.count("n_copies_late") >= 20, True, "there are so many")
    table.done()


@case("flips and colours at a pipeline's end are left to the device, and give the pixels of the CPU, bit for bit")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 26, width=40, height=32),
                         "q": box.folder_of_pictures("q", 9, width=40, height=32)}, workers=2)
    table, datasets = Table(), itertools.cycle(("p", "p + q"))
    half, jitter = "to(float16) layout(nchw)", "color_jitter(0.4, 0.4, 0.4, 0.1)"
    crop = "random_resized_crop(32:48)"
    for pipeline, n_launches in (
            (f"{crop} hflip(0.5) {jitter} {half}", 3),
            (f"{crop} hflip(0.5) {jitter}", 3),
            (f"{crop} vflip(0.5) hflip(0.5) to(float32)", 1),
            (f"{crop} hflip(0.5) vflip(0.5) to(bfloat16) layout(nchw)", 1),
            ("random_crop(31:33) hflip(0.5) vflip(0.5) hflip(0.3) to(float16)", 1),
            (f"{crop} {jitter} hflip(0.5) {jitter} random_grayscale(0.4) layout(nchw)", 3),  # nine are too many
            (f"{crop} color_jitter(brightness=0.8) random_grayscale(0.5) {half}", 2),
            (f"{crop} color_jitter(contrast=0.9) {half}", 3),
            (f"{crop} color_jitter(hue=0.5) {half}", 2),
            (f"{crop} color_jitter(saturation=3:9) grayscale(3) {half}", 2),
            (f"{crop} random_grayscale(0) {half}", 1),
            (f"{crop} {jitter} grayscale(1) hflip(0.5) {half}", 1),
            (f"decode(mode=L) {crop} color_jitter(0.4, 0.4, 0.4) vflip(0.5) {half}", 3),
            (f"{crop} {jitter} random_crop(24) {half}", 1),  # what is not at the end is done before
            (f"{crop} {jitter} equalize(0.5) hflip(0.5) color_jitter(0.3) {half}", 2),  # no device knows equalize
            (f"{crop} {jitter} hflip(0.5) sharpness(2, p=0.7) {half}", 1),
            (f"{crop} {jitter} {jitter} {jitter} hflip(0.5) {half}", 4),  # two of them are left
            (f"{crop} {jitter} {half} views(2)", 6),
            (f"image: {crop} {jitter} vflip(0.5); label: to(int32)", 3)):
        for dataset in itertools.islice(datasets, few(2, 1)):
            with table.row((pipeline, dataset)):
                device = run(box, daemon, pipeline, "batch=13", f"epochs={few(3, 2)}", dataset=dataset).check()
                n_batches = int(device.output.split()[1])
                equal(device.count("calls.cuLaunchKernel"), n_launches * n_batches, "launches")
                run(box, daemon, pipeline, "batch=13", "epochs=1", "operations=0", dataset=dataset).check()
    table.done()


@case("what is left of a sample stays with it when damaged ones are left out, or others take their place")
def _(box):
    damaged = box.folder_of_pictures("p", 40, width=40, height=32)
    for path in sorted(os.path.join(at, name) for at, _, names in os.walk(damaged) for name in names)[3::7]:
        with open(path, "wb") as file:
            file.write(b"no picture")
    daemon = box.daemon({"p": damaged}, workers=2)
    pipeline = f"{CROP} color_jitter(0.4, 0.4, 0.4, 0.1) vflip(0.5) to(float16) layout(nchw)"
    for skip in (0, 1):
        device = run(box, daemon, pipeline, "batch=8", "epochs=3", f"skip={skip}").check()
        equal(device.count("calls.cuLaunchKernel"), 3 * int(device.output.split()[1]), "launches")


@case("boxes and masks are moved on the CPU by the draws with which the device flips their picture")
def _(box):
    dice = random.Random(7)
    members = []
    for i in range(24):
        mask = b"P5 40 32 255\n" + bytes(dice.randrange(5) for _ in range(40 * 32))
        boxes = [dice.randrange(16) + (16 if k > 1 else 0) for _ in range(3) for k in range(4)]
        members += [(f"{i:03d}.png", png(40, 32, identity_pixels(i, 40, 32))), (f"{i:03d}.seg.pgm", mask),
                    (f"{i:03d}.boxes.npy", npy("<f4", "(3, 4)", struct.pack("<12f", *boxes)))]
    archive(box.path("w", "a.tar"), members)
    daemon = box.daemon({"w": web(box.path("w"))}, workers=2)
    steps = "random_crop(20:24) color_jitter(0.4, 0.4, 0.4, 0.1) hflip(0.5) sanitize(min_size=2) vflip(0.5) to(float16)"
    for fields in ("png, seg.pgm, boxes.npy", "boxes.npy, seg.pgm, png"):
        device = run(box, daemon, f"{fields}: {steps}", "batch=6", "epochs=3", dataset="w").check(batches=12)
        equal(device.count("calls.cuLaunchKernel"), 3 * 12, "launches")


@case("fields of every layout arrive: text and bytes on the host, ragged and absent ones, damaged samples, several datasets")
def _(box):
    dice = random.Random(5)
    members = []
    for i in range(23):
        members.append((f"{i:03d}.png", png(12, 10, identity_pixels(i, 12, 10))))
        members.append((f"{i:03d}.txt", b"caption " + b"x" * dice.randrange(300)))
        members.append((f"{i:03d}.cls", b"%d" % (i % 3)))
        if i % 4:  # the others do not have it
            n = dice.randrange(7)
            members.append((f"{i:03d}.boxes.npy", npy("<f4", f"({n}, 4)", struct.pack(f"<{4 * n}f", *range(4 * n)))))
    archive(box.path("w", "a.tar"), members)
    damaged = box.folder_of_pictures("p", 24, width=40, height=32)
    with open(sorted(os.path.join(at, name) for at, _, names in os.walk(damaged) for name in names)[5], "wb") as file:
        file.write(b"no picture")
    daemon = box.daemon({"w": web(box.path("w")), "p": damaged,
                         "q": box.folder_of_pictures("q", 9, width=40, height=32)}, workers=2)
    half = "center_crop(8) to(float16) layout(nchw)"
    table = Table()
    for dataset, pipeline, n_host in (
            ("w", f"png: {half}; txt: text; cls; boxes.npy", 12),
            ("w", f"png: {half}; txt: raw; boxes.npy: ragged", 12),
            ("w", "boxes.npy; png: center_crop(8)", 0),
            ("p", f"image: {half}; label", 0),
            ("p + q", f"image: {half}; label; __dataset__", 0)):
        for keys in ([], ["held=2"]):
            with table.row((dataset, pipeline, keys)):
                run(box, daemon, pipeline, "batch=4", "epochs=2", *keys, dataset=dataset).check(host=n_host)
    table.done()


@case("why samples were substituted is told as long as a batch is kept, although its slot was filled again")
def _(box):
    pictures = box.folder_of_pictures("p", 60, width=40, height=32)
    files = sorted(os.path.join(at, name) for at, _, names in os.walk(pictures) for name in names)
    damaged = files[2::7]
    for number, name in enumerate(damaged):
        with open(name, "wb") as file:
            file.write(b"no picture" if number % 2 else b"")
    daemon = box.daemon({"p": pictures}, workers=2)
    for keys in ([], ["held=3", "slots=2"], ["held=2", "allocate=1"]):
        run(box, daemon, f"{CROP} to(float16)", "batch=4", "epochs=2", *keys).check(batches=30, errors=2 * len(damaged))


@case("only uint8 crosses the link, in copies that the device makes itself, one batch ahead")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, width=40, height=32)}, workers=2)
    device = run(box, daemon, "center_crop(32) to(float32) layout(nchw)", "batch=8", "epochs=1", "pause=20").check(batches=8)
    small, whole = device.count("bytes_to_device"), 64 * 32 * 32 * 3
    equal(whole <= small <= whole + 64 * 8 + 4096, True, f"bytes to the device: {small}, of pixels {whole}")
    ahead = int(device.output.split()[5])
    # All but the first, where the daemon always has the next one by then. How fast it is, is not asked here.
    equal(1 <= ahead <= 7, True, f"copied ahead of the question: {ahead} of 8")
    device = run(box, daemon, "center_crop(32) to(float32) layout(nchw)", "batch=8", "epochs=1", "forms=0").check()
    equal(device.count("bytes_to_device") >= 4 * whole, True, "the daemon finishes pictures for who does not ask")


@case("slots, stages and outputs are never used again too early: kept batches, side streams, a small ring, long delays")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 60, width=40, height=32)}, workers=2)
    table, delays = Table(), itertools.cycle(((1, 1000), (2, 6000)))
    pipeline = f"{CROP} to(float16) layout(nchw)"
    for keys in (["slots=2"], ["slots=2", "held=1"], ["held=3", "streams=4"], ["held=5", "streams=3", "slots=3"],
                 ["streams=0"], ["use=1"], ["use=1", "held=2", "streams=3"], ["allocate=1"], ["allocate=1", "held=2", "streams=2"],
                 ["allocate=1", "break=5"], ["break=7", "held=2"],
                 ["break=3", "slots=2", "streams=2"]):
        for seed, delay in itertools.islice(delays, few(2, 1)):
            with table.row((*keys, f"delays up to {delay} us")):
                run(box, daemon, pipeline, "batch=4", "epochs=2", *keys, seed=seed, delay_us=delay).check()
    table.done()


@case("a loader is closed while the trainer's streams are still busy with its batches")
def _(box):
    archive(box.path("w", "a.tar"), [(f"{i:03d}.txt", b"caption %d" % i) for i in range(26)])
    daemon = box.daemon({"p": box.folder_of_pictures("p", 26, width=40, height=32), "w": web(box.path("w"))}, workers=2)
    table = Table()
    for dataset, pipeline in (("p", f"{CROP} to(float16)"), ("w", "txt: text")):  # of the latter nothing is on the device
        for keys in ([], ["held=2"], ["allocate=1"], ["allocate=1", "held=2", "streams=3"], ["break=3"], ["break=3", "allocate=1"]):
            with table.row((pipeline, *keys)):
                run(box, daemon, pipeline, "batch=4", "epochs=1", "hasty=1", *keys, dataset=dataset, delay_us=20000).check()
    table.done()


@case("the ring is bound to the memory node of the device, also that of the next daemon; where none is known, to none")
def _(box):
    pictures = box.folder_of_pictures("p", 16, width=40, height=32)
    plain = box.daemon({"p": pictures}, workers=2)
    device = run(box, plain, f"{CROP} to(float16)", "batch=4", "near=1").check()
    if not os.path.exists("/sys/devices/system/node/node1"):  # else the process may have a node
        equal("node" in device.output.splitlines()[0], False, f"memory of a device that is not there: {device.output}")
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        raise Skip("needs root and unshare: a device in sysfs")
    devices = box.path("devices")
    os.makedirs(os.path.join(devices, "0000:c0:00.0"))  # the stand-in's
    with open(os.path.join(devices, "0000:c0:00.0", "numa_node"), "w", encoding="ascii") as file:
        file.write("0\n")
    script = f"mount --bind {devices} /sys/bus/pci/devices || exit 77; exec \"$@\""
    if subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", "true"], check=False).returncode != 0:
        raise Skip("sysfs cannot be covered here")
    bound = box.daemon({"p": pictures}, workers=2, program=["unshare", "-m", "sh", "-c", script, "sh"])
    for _ in range(2):
        device = run(box, bound, f"{CROP} to(float16)", "batch=4", "near=1").check()
        contains(device.output.splitlines()[0], "memory: ", "node 0")
        if "not bound" not in device.output:  # a container may forbid it
            contains(bound.log(), "job=device", ", node 0")
        bound.kill()
        bound.start()


@case("each rule that keeps a batch from being overwritten is needed: without it, wrong bytes are seen")
def _(box):
    if VARIANT != "release":
        raise Skip("the libraries without a rule are built once, in release")
    daemon = box.daemon({"p": box.folder_of_pictures("p", 60, width=40, height=32)}, workers=2)
    table = Table()
    for rule in RULES:
        folder = box.path(rule[0])
        os.mkdir(folder)
        build(ROOT, BUILD, folder, rule)
        with table.row(rule[0]):
            caught = None
            for seed in range(1, 21):
                keys = ["batch=4", "epochs=2", ["slots=2", "held=1", "streams=2"][seed % 3], *(["use=1"] if "other stream" in rule[0] else [])]
                device = run(box, daemon, f"{CROP} to(float16) layout(nchw)", *keys, library=folder, seed=seed, delay_us=3000)
                if device.done.returncode == 1:
                    caught = device.output
                    break
            equal(caught is not None, True, f"seen in 20 runs, of which the last says {device.output}")
            contains(caught, "byte ")
    table.done()


@case("a daemon that dies comes back with other memory, which is registered in place of the old one")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 200, width=40, height=32)}, workers=2)
    env = dict(os.environ, LD_LIBRARY_PATH=STAND_IN, DLT_CUDA_REPORT=box.path("report"), DLT_CUDA_DELAY_US="3000")
    process = box.start([PROGRAM, daemon.socket, "p", f"{CROP} to(float16)", "batch=4", "epochs=2", "pause=10", "wait=1"],
                        env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    first = process.stdout.readline()
    equal(first, "batch 10\n", "the first line")
    daemon.kill()
    daemon.start()
    output, _ = process.communicate(timeout=patience(60))
    equal(process.returncode, 0, output)
    contains(output, "batches 100 ")
    with open(box.path("report"), encoding="ascii") as file:
        counts = dict(line.rstrip("\n").partition(" ")[::2] for line in file)
    equal((counts["n_violations"], counts["n_registrations"], counts["n_left"]), ("0", "0", "0"), "violations, and what is left")
    equal(int(counts["calls.cuMemHostRegister"]) >= 2, True, "registrations")


@case("a trainer that is killed in the middle of a copy leaves the daemon as it was")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, width=40, height=32)}, workers=2)
    for number in range(5):
        device = run(box, daemon, f"{CROP} to(float16)", "batch=4", f"kill={2 + number}", delay_us=20000)
        equal(device.done.returncode, 0, device.output)
    run(box, daemon, f"{CROP} to(float16)", "batch=4").check()


@case("no driver, an old one, no device, a wrong one, no memory: a sentence that says what to do")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 16, width=40, height=32)}, workers=2)
    table = Table()
    for environment, keys, words in (
            (dict(driver=False), [], ("no GPU", "libcuda.so.1", "--gpus", "on the CPU")),
            (dict(devices=0), [], ("no GPU", "CUDA_VISIBLE_DEVICES")),
            (dict(version=10020), [], ("too old", "10.2", "11.0")),
            (dict(fail="cuInit:1:999"), [], ("no GPU", "cannot be initialised", "CUDA_ERROR_UNKNOWN")),
            ({}, ["device=7"], ("device 7 does not exist", "sees 1")),
            (dict(devices=2, memory=4096), [], ("memory", "CUDA_ERROR_OUT_OF_MEMORY")),
            (dict(fail="cuDevicePrimaryCtxRetain:1:2"), [], ("opening the device", "out of memory")),
            (dict(fail="cuStreamCreate:1:2"), [], ("making a stream",)),
            (dict(fail="cuModuleLoadData:1:209,cuModuleLoadData:2:222"), [], ("loading the kernels",)),
            (dict(fail="cuMemcpyHtoDAsync_v2:6:700"), [], ("copying a batch", "CUDA_ERROR_ILLEGAL_ADDRESS")),
            (dict(fail="cuMemcpyHtoDAsync_v2:6:2"), [], ("copying a batch", "out of memory")),
            (dict(fail="cuMemcpyHtoDAsync_v2:6:700:sticky"), [], ("CUDA_ERROR_ILLEGAL_ADDRESS",)),
            (dict(fail="cuLaunchKernel:2:719"), [], ("finishing a batch",)),
            (dict(fail="cuLaunchKernel:2:719:sticky"), [], ("CUDA_ERROR_",)),
            (dict(fail="cuEventQuery:1:700:sticky"), [], ("CUDA_ERROR_ILLEGAL_ADDRESS",))):
        if "driver" in environment and has_real_driver():
            continue
        with table.row((environment, keys)):
            device = run(box, daemon, f"{CROP} to(float16)", "batch=4", *keys, **environment)
            equal(device.done.returncode, 3, f"exit status: {device.output}")
            contains(device.output, "refused: ", *words)
    table.done()
    equal(daemon.dlctl("status").returncode, 0, "the daemon")


@case("memory that cannot be registered is copied from all the same, and the reason is told; PTX stands in for a fatbin")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 16, width=40, height=32)}, workers=2)
    device = run(box, daemon, f"{CROP} to(float16)", "batch=4", fail="cuMemHostRegister_v2:1:801")
    equal(device.done.returncode, 0, device.output)
    contains(device.output, "registered 0 host 0 errors 0 remark: CUDA: registering the memory of the batches", "CUDA_ERROR_NOT_SUPPORTED")
    equal(device.count("n_violations"), 0, "rules that were broken")
    run(box, daemon, f"{CROP} to(float16)", "batch=4", fail="cuModuleLoadData:1:209").check(batches=8)


if __name__ == "__main__":
    main()
