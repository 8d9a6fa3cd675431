#!/usr/bin/env python3
"""Batches on a real GPU: what other tests see with a driver of their own, seen once more with NVIDIA's, with torch, CuPy
and JAX as they are, and with compute-sanitizer. Skipped where there is no GPU, and case by case where a framework is missing."""
import os
import shutil
import struct
import subprocess
import sys
import textwrap

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import pyclient
from gpu import has_real_driver
from harness import BUILD, Skip, Table, case, contains, equal, identity_pixels, main, patience, png
from tars import archive, npy, web

PROGRAM = os.path.join(BUILD, "tools", "cuda_batches")
CROP = "random_resized_crop(33) hflip(0.5)"
PICTURES = dict(width=40, height=32)
HALF, JITTER = "to(float16) layout(nchw)", "color_jitter(0.4, 0.4, 0.4, 0.1)"
NORMALIZE = "normalize(mean=0.485:0.456:0.406, std=0.229:0.224:0.225)"

TOOLS = """\
import random
def host(tensor):
    tensor = tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor
    return tensor.cpu().numpy()
def same(got, expected, what=""):
    got, expected = numpy.asarray(got), numpy.asarray(expected)
    assert got.shape == expected.shape and got.dtype == expected.dtype, (what, got.shape, expected.shape, got.dtype, expected.dtype)
    assert got.tobytes() == expected.tobytes(), (what, got.reshape(-1)[:8], expected.reshape(-1)[:8])
"""


def need_gpu():
    if not has_real_driver():
        raise Skip("no GPU: NVIDIA's driver is not installed")


def run(daemon, pipeline, *keys, dataset="p", command=(), seconds=60):
    """cuda_batches compares each byte with what a loader without a device gives. Returns what it printed."""
    need_gpu()
    done = subprocess.run([*command, PROGRAM, daemon.socket, dataset, pipeline, *keys], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=patience(seconds), check=False)
    equal(done.returncode, 0, f"exit status: {done.stdout}")
    equal("remark" in done.stdout, False, done.stdout)
    return done.stdout


def script(box, daemon, module, source, *arguments, **environment):
    need_gpu()
    pyclient.need(module)
    return pyclient.trainer(box, daemon, f"import {module}\n" + TOOLS + textwrap.dedent(source), *arguments, seconds=120, **environment)


@case("whatever the pipeline's end, a batch on the GPU has the bytes that the CPU delivers")
def _(box):
    need_gpu()
    daemon = box.daemon({"p": box.folder_of_pictures("p", 26, **PICTURES)}, workers=2)
    table = Table()
    for pipeline in (f"{CROP} {HALF}", f"{CROP} to(float32) layout(nchw)", f"{CROP} to(bfloat16)", f"{CROP} {NORMALIZE} {HALF}",
                     f"{CROP} normalize(mean=0.5:0.4:0.3, std=0.2:0.3:0.1)", f"{CROP} layout(nchw)", CROP,
                     "decode(mode=L) center_crop(30:20) to(float16)", f"decode(mode=RGBA) center_crop(30:20) {HALF}",
                     f"{CROP} to(float16) views(2)", "image: center_crop(8) to(float32); label: to(int32)",
                     "center_crop(20) to(float32) pad(value=0.5, max=40:40)", f"random_resized_crop(224) hflip(0.5) {NORMALIZE} {HALF}"):
        with table.row(pipeline):
            contains(run(daemon, pipeline, "batch=6", "epochs=2"), "batches 10 ")
    table.done()


@case("flips and colours that are left to the GPU give the pixels of the CPU, bit for bit")
def _(box):
    need_gpu()
    daemon = box.daemon({"p": box.folder_of_pictures("p", 26, **PICTURES)}, workers=2)
    table = Table()
    crop = "random_resized_crop(32:48)"
    for pipeline in (f"{crop} hflip(0.5) {JITTER} {HALF}", f"{crop} hflip(0.5) {JITTER}", f"{crop} vflip(0.5) hflip(0.5) to(float32)",
                     "random_crop(31:33) hflip(0.5) vflip(0.5) hflip(0.3) to(float16)",
                     f"{crop} {JITTER} hflip(0.5) {JITTER} random_grayscale(0.4) layout(nchw)", f"{crop} color_jitter(hue=0.5) {HALF}",
                     f"{crop} color_jitter(contrast=0.9) {HALF}", f"{crop} color_jitter(saturation=3:9) grayscale(3) {HALF}",
                     f"decode(mode=L) {crop} color_jitter(0.4, 0.4, 0.4) vflip(0.5) {HALF}", f"{crop} {JITTER} {HALF} views(2)",
                     f"random_resized_crop(224) hflip(0.5) {JITTER} random_grayscale(0.2) {NORMALIZE} {HALF}"):
        with table.row(pipeline):
            run(daemon, pipeline, "batch=13", "epochs=6")
    table.done()


@case("text, ragged and absent fields arrive; kept batches, side streams, small rings, loops that are left, hasty ends")
def _(box):
    need_gpu()
    members = []
    for i in range(26):
        members += [(f"{i:03d}.png", png(12, 10, identity_pixels(i, 12, 10))), (f"{i:03d}.txt", b"caption %d" % i)]
        if i % 3:  # the others do not have it
            members.append((f"{i:03d}.boxes.npy", npy("<f4", f"({i % 7}, 4)", struct.pack(f"<{i % 7 * 4}f", *range(i % 7 * 4)))))
    archive(box.path("w", "a.tar"), members)
    daemon = box.daemon({"p": box.folder_of_pictures("p", 60, **PICTURES), "w": web(box.path("w"))}, workers=2)
    table = Table()
    with table.row("fields"):
        run(daemon, f"png: center_crop(8) {HALF}; txt: raw; boxes.npy: ragged", "batch=5", dataset="w")
    for keys in (["slots=2"], ["slots=2", "held=1"], ["held=3", "streams=4"], ["held=5", "streams=3", "slots=3"], ["streams=0"],
                 ["use=1", "held=2", "streams=3"], ["allocate=1", "held=2", "streams=2"], ["allocate=1", "break=5"],
                 ["break=3", "slots=2", "streams=2"], ["hasty=1", "held=2"], ["hasty=1", "allocate=1", "held=3", "streams=3"]):
        with table.row(" ".join(keys)):
            run(daemon, f"random_resized_crop(224) {HALF}", "batch=4", "epochs=4", *keys)
    table.done()


@case("a daemon that dies comes back with other memory, which is registered in place of the old one")
def _(box):
    need_gpu()
    daemon = box.daemon({"p": box.folder_of_pictures("p", 200, **PICTURES)}, workers=2)
    process = box.start([PROGRAM, daemon.socket, "p", f"{CROP} {HALF}", "batch=4", "epochs=2", "pause=10", "wait=1"],
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    equal(process.stdout.readline(), "batch 10\n", "the first line")
    daemon.kill()
    daemon.start()
    output, _ = process.communicate(timeout=patience(60))
    equal(process.returncode, 0, output)
    contains(output, "batches 100 ")


@case("compute-sanitizer finds nothing in the kernels: memory, races, memory that was never written")
def _(box):
    need_gpu()
    sanitizer = shutil.which("compute-sanitizer", path=os.environ.get("PATH", "") + ":/usr/local/cuda/bin")
    if sanitizer is None:
        raise Skip("compute-sanitizer is not installed")
    daemon = box.daemon({"p": box.folder_of_pictures("p", 12, **PICTURES)}, workers=2)
    table = Table()
    for tool in ("memcheck", "racecheck", "initcheck"):
        for pipeline in (f"random_resized_crop(32:47) hflip(0.5) {JITTER} random_grayscale(0.3) {HALF}", f"{CROP} to(float32)"):
            with table.row((tool, pipeline)):
                run(daemon, pipeline, "batch=5", "epochs=1", command=[sanitizer, "--tool", tool, "--error-exitcode", "9"], seconds=120)
    table.done()


@case("torch: tensors on the GPU have the numbers, shapes and strides of those on the CPU")
def _(box):
    need_gpu()
    daemon = box.daemon({"p": box.folder_of_pictures("p", 26, **PICTURES)}, workers=2)
    script(box, daemon, "torch", f"""
        for end in ("", "{HALF}", "to(float32) layout(nchw)", "to(bfloat16) layout(nchw)", "layout(channels_last)",
                    "{JITTER} vflip(0.5) random_grayscale(0.3) {HALF}", "{NORMALIZE} {HALF}"):
            options = dict(batch_size=6, pipeline="{CROP} " + end, framework="torch", seed=3)
            with dlclient.Loader("p", device="cuda", **options) as there, dlclient.Loader("p", copy=True, **options) as here:
                assert there.device == "cuda:0" and here.device is None
                for epoch in range(2):
                    n = 0
                    for a, b in zip(there, here):
                        for name in a:
                            assert a[name].is_cuda and a[name].dtype == b[name].dtype and a[name].shape == b[name].shape
                            assert a[name].stride() == b[name].stride(), (end, a[name].stride())
                            same(host(a[name]), host(b[name]), (end, name))
                        n += a.n_samples
                    assert n == 26, n
        """)


@case("torch: batches that are kept, dropped at once or used on side streams are never overwritten: 0 of 800")
def _(box):
    need_gpu()
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, **PICTURES)}, workers=2)
    for seed in (1, 2):
        out = script(box, daemon, "torch", f"""
            dice = random.Random({seed})
            options = dict(batch_size=4, pipeline="random_resized_crop(224) {HALF}", framework="torch", slots=3)
            with dlclient.Loader("p", copy=True, epochs=25, **options) as loader:
                expected = [batch["image"].numpy() for batch in loader]
            streams = [torch.cuda.default_stream()] + [torch.cuda.Stream() for _ in range(3)]
            held, results = [], []
            with dlclient.Loader("p", device="cuda", epochs=25, **options) as loader:
                batches = iter(loader)
                for i in range(400):
                    with torch.cuda.stream(dice.choice(streams)):
                        batch = next(batches)
                        image = batch["image"]
                        torch.cuda._sleep(dice.randrange(2000000))       # so that the program's work is late: up to 1 ms
                        results.append(image.clone())
                    if dice.random() < 0.3: held.append(batch)
                    if dice.random() < 0.3 and held: held.pop(dice.randrange(len(held)))
                    del batch, image
                    if dice.random() < 0.1: gc.collect()
                assert next(batches, None) is None
            torch.cuda.synchronize()
            out(sum(host(result).tobytes() != numbers.tobytes() for result, numbers in zip(results, expected)))
            """)
        equal(out, [0], "batches that were overwritten")


@case("torch: a stream that was not told of is where a batch is overwritten: the test above would see it")
def _(box):
    need_gpu()
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, **PICTURES)}, workers=2)
    out = script(box, daemon, "torch", f"""
        options = dict(batch_size=4, pipeline="random_resized_crop(224) {HALF}", framework="torch", slots=3, epochs=5)
        with dlclient.Loader("p", copy=True, **options) as loader: expected = [batch["image"].numpy() for batch in loader]
        for told in (True, False):
            other, results = torch.cuda.Stream(), []
            with dlclient.Loader("p", device="cuda", **options) as loader:
                for batch in loader:
                    image = batch["image"]
                    other.wait_stream(torch.cuda.current_stream())
                    with torch.cuda.stream(other):
                        torch.cuda._sleep(20000000)
                        results.append(image.clone())
                    if told: image.record_stream(other)
                    del batch, image
            torch.cuda.synchronize()
            out(sum(host(result).tobytes() != numbers.tobytes() for result, numbers in zip(results, expected)))
        """)
    equal(out[0], 0, "with record_stream()")
    equal(out[1] > 0, True, "without it some are overwritten")


@case("torch: into= for CUDA graphs, targets, ragged fields, a loop that is left, a fork, a process that ends in the middle")
def _(box):
    need_gpu()
    members = []
    for i in range(12):
        members += [(f"{i:03d}.png", png(12, 10, identity_pixels(i, 12, 10))), (f"{i:03d}.txt", b"caption %d" % i),
                    (f"{i:03d}.json", b'{"numbers": [%s]}' % b", ".join(b"%d" % k for k in range(i % 4)))]
    archive(box.path("w", "a.tar"), members)
    daemon = box.daemon({"p": box.folder_of_pictures("p", 26, **PICTURES), "w": web(box.path("w"))}, workers=2)
    script(box, daemon, "torch", f"""
        options = dict(batch_size=6, pipeline="{CROP} {HALF}", framework="torch", epochs=3, drop_last=True)
        with dlclient.Loader("p", copy=True, **options) as loader: expected = [batch["image"].float().sum().item() for batch in loader]
        image, total = torch.empty(6, 3, 33, 33, dtype=torch.float16, device="cuda"), torch.zeros((), device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph): total.copy_(image.float().sum())
        with dlclient.Loader("p", device="cuda", into={{"image": image}}, **options) as loader:
            seen = []
            for batch in loader:
                graph.replay()
                seen.append(total.item())
        assert len(seen) == len(expected) == 12 and all(abs(a - b) < 1e-2 * abs(b) for a, b in zip(seen, expected)), (seen, expected)

        options = dict(batch_size=4, framework="torch", pipeline="png: center_crop(8) {HALF}; txt: text; json: json(numbers) to(int64, shape=-1) ragged(joined=true)")
        with dlclient.Loader("w", device="cuda", **options) as there, dlclient.Loader("w", copy=True, **options) as here:
            for a, b in zip(there, here):
                same(host(a.png), b.png); same(host(a.json.values), b.json.values); assert a.txt == b.txt
        targets = numpy.arange(52, dtype="float32").reshape(26, 2)
        options = dict(batch_size=6, pipeline="{CROP} {HALF}", framework="torch", targets=targets)
        with dlclient.Loader("p", device="cuda", **options) as there, dlclient.Loader("p", copy=True, **options) as here:
            for a, b in zip(there, here): same(host(a.label), b.label)
            for batch in there: break
            state = there.state_dict()
            there.load_state_dict(state)
            assert there.step == 1
        child = os.fork()
        if child == 0:
            try: refused(dlclient.ForkedLoader, lambda: dlclient.Loader("p", device="cuda", **options))
            except BaseException as error: print(error, file=sys.stderr); os._exit(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        left = iter(dlclient.Loader("p", device="cuda", **options))
        next(left)                                              # and the interpreter ends
        """)


@case("arrays without a framework: CuPy and torch take them by DLPack and CUDA's array interface; JAX has arrays of its own")
def _(box):
    need_gpu()
    daemon = box.daemon({"p": box.folder_of_pictures("p", 26, **PICTURES)}, workers=2)
    source = f"""
        options = dict(batch_size=6, pipeline="{CROP} to(float16) layout(nchw)", epochs=2)
        with dlclient.Loader("p", copy=True, **options) as here: expected = [batch["image"].copy() for batch in here]
        with dlclient.Loader("p", device="cuda", framework=FRAMEWORK, **options) as loader:
            for i, batch in enumerate(loader): same(read(batch["image"]), expected[i], i)
            assert i == 9
        """
    table = Table()
    for name, module, framework, read in (
            ("CuPy, array interface", "cupy", "numpy", "cupy.asnumpy(cupy.asarray(array))"),
            ("CuPy, DLPack", "cupy", "numpy", "cupy.asnumpy(cupy.from_dlpack(array))"),
            ("torch, DLPack", "torch", "numpy", "torch.from_dlpack(array).cpu().numpy()"),
            ("torch, array interface", "torch", "numpy", "torch.as_tensor(array, device='cuda').cpu().numpy()"),
            ("JAX", "jax", "jax", "numpy.asarray(array)")):
        with table.row(name):
            script(box, daemon, module, f"""
        FRAMEWORK = "{framework}"
        def read(array): return {read}
        """ + source, XLA_PYTHON_CLIENT_PREALLOCATE="false")
    table.done()


@case("docs/gpu.md and the examples train on the GPU as they stand")
def _(box):
    need_gpu()
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, **PICTURES)}, workers=2)
    table = Table()
    for name, module in (("torch_trainer.py", "torch"), ("torch_graph_trainer.py", "torch"), ("jax_trainer.py", "jax")):
        with table.row(name):
            pyclient.need(module)
            path = os.path.join(os.path.dirname(pyclient.PACKAGE), "examples", name)
            done = subprocess.run([sys.executable, path, "p", "--batch-size", "16"], env=pyclient.environment_of(daemon, XLA_PYTHON_CLIENT_PREALLOCATE="false"),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=patience(120), check=False)
            equal(done.returncode, 0, done.stdout)
            contains(done.stdout, "epoch 1 loss ")
            equal("no GPU" in done.stdout, False, done.stdout)
    table.done()


if __name__ == "__main__":
    main()
