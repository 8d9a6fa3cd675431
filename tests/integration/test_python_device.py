#!/usr/bin/env python3
"""Loader(device="cuda"): the Python client with libdlclient-cuda on the tests' driver, which begins all work late, with
the real torch over that driver's memory (support/torch_on_device.py), and without a framework."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import pyclient
from gpu import STAND_IN, has_real_driver
from harness import ROOT, Skip, case, equal, identity_pixels, main, png
from pages import block
from pyclient import need
from tars import archive, web

SUPPORT = os.path.join(ROOT, "tests", "support")
PICTURES = dict(width=40, height=32)
CROP = "random_resized_crop(24) hflip(0.5)"

TOOLS = """\
import ctypes, weakref
import on_device
def busy(stream):                                         # so that the program's work is later than the library's
    if not hasattr(busy, "memory"): busy.memory = on_device.allocate(512)
    for _ in range(6): on_device.copy(busy.memory + 256, busy.memory, 256, stream)
def same(got, expected, what=""):
    got, expected = numpy.asarray(got), numpy.asarray(expected)
    assert got.shape == expected.shape and got.dtype == expected.dtype, (what, got.shape, expected.shape, got.dtype, expected.dtype)
    assert got.tobytes() == expected.tobytes(), (what, got.reshape(-1)[:8], expected.reshape(-1)[:8])
def clean():
    gc.collect()
    counts = on_device.counts()
    assert counts.n_violations == 0, counts.first_violation
    return counts
"""
WITH_TORCH = TOOLS + """\
import torch, torch_on_device
torch_on_device.install(int(os.environ.get("DLT_CUDA_DEVICES", 1)))
def host(tensor):
    on_device.wait(torch_on_device.State.current.cuda_stream)
    tensor = tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor
    return tensor.cpu().numpy()
"""


def on_device(box, daemon, source, *arguments, tools=TOOLS, driver=True, environment=None, **settings):
    """Runs a script with the tests' driver; its settings are those of DLT_CUDA_."""
    env = dict(environment or {}, PYTHONPATH=f"{pyclient.PACKAGE}:{SUPPORT}")
    if driver:
        env["LD_LIBRARY_PATH"] = STAND_IN
    env.update({f"DLT_CUDA_{name.upper()}": str(value) for name, value in settings.items()})
    import textwrap
    return pyclient.trainer(box, daemon, tools + textwrap.dedent(source), *arguments, **env)


def with_torch(box, daemon, source, *arguments, **settings):
    need("torch")
    return on_device(box, daemon, source, *arguments, tools=WITH_TORCH, **settings)


# ---- torch

@case("torch: whatever the pipeline's end, tensors on the device have the numbers, shapes and strides of those on the CPU")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 26, **PICTURES)}, workers=2)
    with_torch(box, daemon, f"""
        for end in ("", "to(float16)", "to(float32) layout(nchw)", "to(bfloat16) layout(nchw)", "layout(channels_last)",
                    "color_jitter(0.4, 0.4, 0.4, 0.1) vflip(0.5) random_grayscale(0.3) to(float16) layout(nchw)", "color_jitter(0.3)",
                    "normalize(mean=0.485:0.456:0.406, std=0.229:0.224:0.225) to(float16) layout(nchw)"):
            options = dict(batch_size=6, pipeline="{CROP} " + end, framework="torch", seed=3)
            with dlclient.Loader("p", device="cuda", **options) as there, dlclient.Loader("p", copy=True, **options) as here:
                assert there.device == "cuda:0" and here.device is None
                assert there.pipeline == here.pipeline
                for epoch in range(2):
                    n = 0
                    for a, b in zip(there, here):
                        assert list(a) == list(b) == ["image", "label"]
                        for name in a:
                            assert a[name].is_cuda and a[name].dtype == b[name].dtype, (end, name, a[name].dtype)
                            assert a[name].shape == b[name].shape and a[name].stride() == b[name].stride(), (end, a[name].stride())
                            same(host(a[name]), b[name].view(torch.int16) if b[name].dtype == torch.bfloat16 else b[name], (end, name))
                        assert a.indices.tolist() == b.indices.tolist() and a.step == b.step and a.position == b.position
                        assert a.paths == b.paths
                        n += a.n_samples
                    assert n == 26, n
        clean()
        """)


@case("torch: batches that are kept, dropped at once or used on side streams are never overwritten: 0 of 240")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, **PICTURES)}, workers=2)
    for seed, delay in ((1, 1000), (2, 5000)):
        with_torch(box, daemon, f"""
            import random
            dice = random.Random({seed})
            streams = [torch_on_device.Stream(0)] + [torch_on_device.Stream(on_device.stream()) for _ in range(3)]
            options = dict(batch_size=4, pipeline="{CROP} to(float16) layout(nchw)", framework="torch", slots=3)
            expected = []
            with dlclient.Loader("p", copy=True, epochs=5, **options) as loader:
                expected = [batch["image"].numpy() for batch in loader]
            held, results = [], []
            with dlclient.Loader("p", device="cuda", epochs=5, **options) as loader:
                batches = iter(loader)
                for i in range(80):
                    stream = dice.choice(streams)
                    with torch.cuda.stream(stream):
                        batch = next(batches)
                        image = batch["image"]
                        n_bytes = image.numel() * 2
                        result = on_device.allocate(n_bytes)
                        if stream in streams[:3]:
                            busy(stream.cuda_stream)
                        on_device.copy(result, image.data_ptr(), n_bytes, stream.cuda_stream)  # late
                        results.append((result, n_bytes, stream.cuda_stream))
                    if dice.random() < 0.3:
                        held.append(batch)
                    if dice.random() < 0.3 and held:
                        held.pop(dice.randrange(len(held)))
                    del batch, image
                    if dice.random() < 0.1:
                        gc.collect()
                assert next(batches, None) is None
            for i, (result, n_bytes, stream) in enumerate(results):
                on_device.wait(stream)
                assert on_device.read(result, n_bytes) == expected[i].tobytes(), f"batch {{i}} was overwritten"
            clean()
            """, seed=seed, delay_us=delay)


@case("torch: a stream that was not told of is where a batch is overwritten: the test above sees it")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, **PICTURES)}, workers=2)
    out = with_torch(box, daemon, f"""
        torch.Tensor.record_stream = lambda tensor, used: None
        streams = [torch_on_device.Stream(on_device.stream()) for _ in range(2)]
        options = dict(batch_size=4, pipeline="{CROP} to(float16)", framework="torch", slots=3)
        with dlclient.Loader("p", copy=True, epochs=5, **options) as loader:
            expected = [batch["image"].numpy() for batch in loader]
        def run():
            results = []
            with dlclient.Loader("p", device="cuda", epochs=5, **options) as loader:
                batches = iter(loader)
                for i in range(80):
                    stream = streams[i % 5 == 4]                       # memory is mostly asked for on the first one, which is idle
                    with torch.cuda.stream(stream):
                        image = next(batches)["image"]
                        results.append(on_device.allocate(image.numel() * 2))
                        for _ in range(4 * (i % 5 == 4)): busy(stream.cuda_stream)
                        on_device.copy(results[-1], image.data_ptr(), image.numel() * 2, stream.cuda_stream)
                        del image
            on_device.check(on_device.cuda.cuCtxSynchronize())
            return sum(on_device.read(result, len(bytes.tobytes())) != bytes.tobytes() for result, bytes in zip(results, expected))
        out(any(run() > 0 for _ in range(5)))                  # seldom not seen the first time
        """, delay_us=5000)
    equal(out, [True], "some were overwritten")


@case("torch: into= writes to the program's own tensors, one set with a copy and two in turn without, the last batch as long as it is")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 26, **PICTURES)}, workers=2)
    with_torch(box, daemon, f"""
        def buffers(): return {{"image": torch.empty(6, 3, 24, 24, dtype=torch.float16, device="cuda"),
                               "label": torch.empty(6, dtype=torch.int64, device="cuda")}}
        options = dict(batch_size=6, pipeline="{CROP} to(float16) layout(nchw)", framework="torch", epochs=3)
        with dlclient.Loader("p", copy=True, **dict(options, epochs=4)) as loader:
            expected = [{{name: batch[name].numpy() for name in batch}} for batch in loader]
        for into in (buffers(), [buffers()], (buffers(), buffers())):
            sets = [into] if isinstance(into, dict) else list(into)
            before = on_device.counts().bytes_on_device
            with dlclient.Loader("p", device="cuda", into=into, **options) as loader:
                results, at = [], None
                for i, batch in enumerate(loader):
                    n = batch.n_samples
                    number = [one["image"].data_ptr() for one in sets].index(batch["image"].data_ptr())
                    assert number != at or len(sets) == 1, "in turn"
                    at = number
                    assert (batch["image"] is sets[number]["image"]) == (n == 6), "the tensor itself if it is full"
                    assert batch["label"].data_ptr() == sets[number]["label"].data_ptr()
                    result = on_device.allocate(batch["image"].numel() * 2)
                    on_device.copy(result, batch["image"].data_ptr(), batch["image"].numel() * 2)
                    results.append(result)
                    labels = host(batch["label"]) if i % 3 == 0 else None
                    assert labels is None or labels.tolist() == expected[i]["label"].tolist()
                for i, result in enumerate(results):
                    assert on_device.read(result, expected[i]["image"].nbytes) == expected[i]["image"].tobytes(), i
                assert len(results) == 15 and len(expected) == 20
            for break_at in (1, 2, 3):     # a seek in between
                with dlclient.Loader("p", device="cuda", into=into, **options) as loader:
                    for i, batch in enumerate(loader):
                        if i == break_at: break
                    loader.set_epoch(1)
                    for i, batch in enumerate(loader):
                        same(host(batch["image"]), expected[5 + i]["image"], (break_at, i))
        clean()
        wide = buffers(); wide["image"] = torch.empty(6, 3, 25, 24, dtype=torch.float16, device="cuda")
        half = buffers(); half["image"] = torch.empty(6, 3, 24, 24, dtype=torch.float32, device="cuda")
        few = buffers(); few["image"] = torch.empty(4, 3, 24, 24, dtype=torch.float16, device="cuda")
        other = (buffers(), buffers())
        other[1]["image"] = torch.empty(6, 3, 24, 24, dtype=torch.bfloat16, device="cuda")     # of the same size
        with dlclient.Loader("p", device="cuda", into=other, **options) as loader:
            refused(dlclient.OptionError, lambda: [batch for batch in loader], "into: image is torch.bfloat16", "torch.float16")
        last = [torch.empty(6, 24, 24, 3, dtype=torch.float16, device="cuda").permute(0, 3, 1, 2) for _ in range(2)]
        for into in ({{"image": last[0]}}, tuple({{"image": one}} for one in last)):
            with dlclient.Loader("p", device="cuda", into=into, **dict(options, pipeline="{CROP} to(float16) layout(channels_last)")) as loader:
                for i, batch in enumerate(loader):
                    n = batch.n_samples
                    assert batch["image"].shape == (n, 3, 24, 24) and batch["image"].stride() == last[0].stride()
                    assert batch["image"].data_ptr() in [one.data_ptr() for one in last]
                    same(numpy.ascontiguousarray(host(batch["image"])), expected[i]["image"], i)
        for into, words in ((wide, ("into: image", "[6, 3, 25, 24]", "[6, 3, 24, 24]")), (half, ("into: image", "float32", "float16")),
                            (few, ("into: image", "[4, 3, 24, 24]")), ((wide, buffers()), ("into: image", "[6, 3, 25, 24]"))):
            with dlclient.Loader("p", device="cuda", into=into, **options) as loader:
                refused(dlclient.OptionError, lambda: [batch for batch in loader], *words)
        one = buffers()
        for into, words in (([], "two of them"), ("x", "two of them"), (({{}}, {{}}), "two of them"), ({{"image": 3}}, "image: expected a torch tensor"),
                            ({{"image": torch.empty(3)}}, "on the device"), ((one, one), "the same memory"),
                            ((buffers(), {{"image": buffers()["image"]}}), "the other image")):
            refused(dlclient.OptionError, lambda: dlclient.Loader("p", device="cuda", into=into, **options), "into: ", words)
        refused(dlclient.OptionError, lambda: dlclient.Loader("p", into=buffers(), **options), "into: ", "device=\\"cuda\\"")
        """)


@case("torch: a buffer of into= that no field fits is refused, and each one is written: targets too, and other strides in turn")
def _(box):
    members = []
    for i in range(12):
        members += [(f"{i:03d}.png", png(12, 10, identity_pixels(i, 12, 10))), (f"{i:03d}.txt", b"caption %d" % i)]
    archive(box.path("w", "a.tar"), members)
    daemon = box.daemon({"p": box.folder_of_pictures("p", 26, **PICTURES), "w": web(box.path("w"))}, workers=2)
    with_torch(box, daemon, f"""
        options = dict(batch_size=6, pipeline="{CROP} to(float16) layout(nchw)", framework="torch", epochs=2)
        def image(dtype=torch.float16): return torch.empty(6, 3, 24, 24, dtype=dtype, device="cuda")
        def label(dtype=torch.int64, *more): return torch.empty(6, *more, dtype=dtype, device="cuda")
        def wrong(into, *words, dataset="p", **more):
            with dlclient.Loader(dataset, device="cuda", into=into, **dict(options, **more)) as loader:
                batches = iter(loader)
                for _ in range(2): refused(dlclient.OptionError, lambda: next(batches), "into: ", *words)
        for dtype in (torch.bfloat16, torch.int16):                  # as wide as float16
            wrong(dict(image=image(dtype)), "image", str(dtype), "float16")
            wrong((dict(image=image(dtype)), dict(image=image(dtype))), "image", str(dtype), "float16")
        wrong(dict(imgae=image()), "'imgae' is not a field", "image, label")
        wrong((dict(image=image(), lable=label()), dict(image=image(), lable=label())), "'lable' is not a field")
        wrong(dict(txt=label()), "'txt'", "text", dataset="w", pipeline="txt: text")
        for more in (dict(device="cuda"), dict(copy=True), dict()):
            with dlclient.Loader("w", **dict(options, pipeline="txt: text", targets=dict(txt=numpy.arange(12)), **more)) as loader:
                refused(dlclient.OptionError, lambda: next(iter(loader)), "targets: 'txt' is a field of the dataset")

        targets = numpy.arange(52, dtype="float32").reshape(26, 2)
        with dlclient.Loader("p", copy=True, targets=targets, **options) as loader:
            expected = [(batch["image"].numpy(), batch["label"].numpy()) for batch in loader]
        def strange():                                               # other strides than the batches have
            memory = torch.empty(6 * 3 * 24 * 32, dtype=torch.float16, device="cuda")
            return memory.as_strided((6, 3, 24, 24), (3 * 24 * 32, 24 * 32, 32, 1))
        def copy_(tensor, source):
            on_device.wait(torch_on_device.State.current.cuda_stream)
            return torch_on_device._real_copy(tensor, source)
        torch.Tensor.copy_ = copy_
        for make in (image, strange):
            for n_sets in (1, 2):
                sets = [dict(image=make(), label=label(torch.float32, 2)) for _ in range(n_sets)]
                with dlclient.Loader("p", device="cuda", into=sets, targets=targets, **options) as loader:
                    at = None
                    for i, batch in enumerate(loader):
                        numbers = [[one[name].data_ptr() for one in sets].index(batch[name].data_ptr()) for name in ("image", "label")]
                        assert numbers[0] == numbers[1] and (n_sets == 1 or numbers[0] != at), (i, numbers, at)
                        at = numbers[0]
                        same(host(batch["image"]), expected[i][0]); same(host(batch["label"]), expected[i][1])
                    assert i == 9
        torch.Tensor.copy_ = torch_on_device._copy

        sets = [dict(image=image(), label=label()) for _ in range(2)]
        with dlclient.Loader("p", device="cuda", into=sets, **options) as loader:
            seen, n_full = [], 0
            batches = iter(loader)
            memory = loader._team.ranks[0]._device.memory
            real = memory._buffers.give
            def give(*arguments):                                    # what is copied ahead fails, and so does the next try
                give.n += 1
                if give.n % 7 in (3, 4): raise dlclient.DeviceMemoryFull("full")
                return real(*arguments)
            give.n, memory._buffers.give = 0, give
            while True:
                try: batch = next(batches, None)
                except dlclient.DeviceMemoryFull: n_full += 1; continue
                if batch is None: break
                seen.append([[one[name].data_ptr() for one in sets].index(batch[name].data_ptr()) for name in ("image", "label")])
                same(host(batch["image"]), expected[len(seen) - 1][0])
            assert n_full > 1 and len(seen) == 10 and all(a == b for a, b in seen), seen
            assert all(a[0] != b[0] for a, b in zip(seen, seen[1:])), seen
        clean()
        """)


@case("torch: a signal's exception anywhere within next() ends it; no batch comes twice, and no memory is lost")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, **PICTURES)}, workers=2)
    with_torch(box, daemon, f"""
        import random
        class Alarm(Exception): pass
        n_signals, where, ignored = [0], set(), []
        def alarm(_, frame):
            inner, names = frame, []
            while frame is not None:
                names.append(frame.f_code.co_filename)
                frame = frame.f_back
            if any("on_device.py" in name or "weakref" in name for name in names) or not any("dlclient/" in name for name in names):
                signal.setitimer(signal.ITIMER_REAL, 0.00003)           # within what stands in for torch, or the program: later
                return
            n_signals[0] += 1
            where.add(inner.f_code.co_name)
            raise Alarm
        signal.signal(signal.SIGALRM, alarm)
        sys.unraisablehook = lambda told: ignored.append(repr(told.object))
        options = dict(batch_size=4, pipeline="{CROP} to(float16)", framework="torch", epochs=None)
        dice, seen = random.Random(7), []
        loader = dlclient.Loader("p", device="cuda", **options)
        batches = iter(loader)
        end = time.monotonic() + 5
        while time.monotonic() < end:
            try:
                signal.setitimer(signal.ITIMER_REAL, dice.uniform(0.00005, 0.003))
                for _ in range(30):
                    batch = next(batches)
                    seen.append((batch.epoch, batch.step, batch.indices.tolist()))
            except Alarm: pass
            finally: signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        assert n_signals[0] > 50 and "_allocate_all" in where, (n_signals, where)
        assert len(seen) > 50 and all(a[:2] < b[:2] for a, b in zip(seen, seen[1:])), "one after the other"
        n_lost = seen[-1][0] * 16 + seen[-1][1] + 1 - len(seen)        # those that next() was about to return
        assert n_lost <= n_signals[0] // 10, (n_lost, n_signals)
        assert not [name for name in ignored if "__del__" not in name], ignored
        next(batches)
        assert not loader._team.ranks[0]._device.memory._leaving and len(loader._team.ranks[0]._device.memory._given) <= 2
        del batch
        loader.close()
        gc.collect()
        assert not torch_on_device.State.blocks, len(torch_on_device.State.blocks)
        with dlclient.Loader("p", copy=True, batch_size=4, pipeline="center_crop(2)", epochs=None) as here:
            expected = {{}}
            for batch in here:
                expected[batch.epoch, batch.step] = batch.indices.tolist()
                if (batch.epoch, batch.step) == seen[-1][:2]: break
        assert all(expected[epoch, step] == indices for epoch, step, indices in seen)
        clean()
        """)


@case("torch: a batch that an exception kept from being handed out is not that of another place; the loader dies without the collector")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, **PICTURES)}, workers=2)
    with_torch(box, daemon, f"""
        import weakref
        from dlclient._batches.batch import Batch
        options = dict(batch_size=4, pipeline="{CROP} to(float16)", framework="torch")
        real = Batch.__dict__["_of"]
        def broken(cls, *arguments): raise KeyboardInterrupt
        for device in ("cuda", None):
            loader = dlclient.Loader("p", device=device, **options)
            batches = iter(loader)
            for _ in range(2): next(batches)
            for places in ([5, 0], [0, 3]):
                Batch._of = classmethod(broken)
                refused(KeyboardInterrupt, lambda: next(batches))
                Batch._of = real
                if places[1]: loader.load_state_dict(state)
                else: loader.set_epoch(places[0])
                batches = iter(loader)
                batch = next(batches)
                assert [batch.epoch, batch.position // 4 - 1] == places and loader.epoch == places[0], (batch, places)
                if not places[1]:
                    loader.set_epoch(0)
                    for i, batch in enumerate(loader):
                        if i == 2: state = loader.state_dict(); break
                    batches = iter(loader)
                    next(batches)
            del batch, batches
            gc.collect()
            assert len(torch_on_device.State.blocks) <= 2, len(torch_on_device.State.blocks)
            gc.disable()
            batches = iter(loader)
            if device:
                torch_on_device.State.full = True
                def rest():
                    for _ in batches: pass
                refused(dlclient.DeviceMemoryFull, rest)
                torch_on_device.State.full = False
            handle = weakref.ref(loader._team.ranks[0].handle)
            del batches, loader
            assert handle() is None, "a cycle"
            gc.enable()
            gc.collect()
            assert not torch_on_device.State.blocks
        with dlclient.Loader("p", device="cuda", **options) as loader:      # allocated ahead within a block of inference
            batches = iter(loader)
            with torch.inference_mode(): next(batches)
            assert not next(batches)["image"].is_inference()
            with torch.inference_mode(): next(batches)
        clean()
        """)


@case("torch: tuples, views, single samples, targets, ragged and joined fields, text and bytes, damaged samples")
def _(box):
    members = []
    for i in range(12):
        members += [(f"{i:03d}.png", png(12, 10, identity_pixels(i, 12, 10))), (f"{i:03d}.txt", b"caption %d" % i),
                    (f"{i:03d}.json", b'{"numbers": [%s]}' % b", ".join(b"%d" % k for k in range(i % 4)))]
    archive(box.path("w", "a.tar"), members)
    damaged = box.folder_of_pictures("d", 24, **PICTURES)
    with open(sorted(os.path.join(at, name) for at, _, names in os.walk(damaged) for name in names)[5], "wb") as file:
        file.write(b"no picture")
    daemon = box.daemon({"w": web(box.path("w")), "d": damaged}, workers=2)
    with_torch(box, daemon, f"""
        half = "center_crop(8) to(float16) layout(nchw)"
        def both(dataset, **options):
            options = dict(dict(framework="torch", batch_size=4), **options)
            with dlclient.Loader(dataset, device="cuda", **options) as there, dlclient.Loader(dataset, copy=True, **options) as here:
                yield from zip(there, here)
        n = 0
        for a, b in both("w", pipeline=f"png: {{half}}; txt: text; json: json(numbers) to(int64, shape=-1) ragged(joined=true)"):
            same(host(a.png), b.png)
            assert a.txt == b.txt and isinstance(a.txt, dlclient.Texts)
            assert a.json.lengths == b.json.lengths
            for i in range(4):
                assert a.json[i].is_cuda or a.json[i].numel() == 0
                same(host(a.json[i]), b.json[i])
            same(host(a.json.values), b.json.values)
            same(host(a.json.offsets), b.json.offsets)
            for mine, theirs in zip(a.json.padded(7), b.json.padded(7)):
                assert mine.is_cuda
                same(host(mine), theirs)
            n += 1
        assert n == 3
        for a, b in both("w", pipeline="txt: raw; png: raw"):
            assert a.txt.to_list() == b.txt.to_list() and not a.txt[0].is_cuda
        for a, b in both("d", pipeline=f"{{half}} views(2)", as_tuple=True, on_error="substitute"):
            (a0, a1), labels = a
            (b0, b1), expected = b
            same(host(a0), b0); same(host(a1), b1); same(host(labels), expected)
        for a, b in both("d", pipeline=half, batch_size=None, on_error="substitute"):
            same(host(a.image), b.image)
            assert a.image.shape == (3, 8, 8) and int(host(a.label)) == int(b.label)
        targets = numpy.arange(24, dtype="float32").reshape(24, 1)
        n_errors = 0
        for a, b in both("d", pipeline=half, targets=targets, on_error="substitute"):
            assert a.label.is_cuda
            same(host(a.label), b.label)
            assert a.errors == b.errors and a.served.tolist() == b.served.tolist()
            n_errors += len(a.errors)
            moved = a.to("cuda")
            assert moved["image"].data_ptr() == a["image"].data_ptr(), "it is there already"
            same(a.numpy()["image"], b.numpy()["image"])
            same(a.copy()["image"], b.copy()["image"])
        assert n_errors == 1
        clean()
        """)


@case("torch: a loop that is left, a state that is loaded, epochs that are chosen: the same batches as on the CPU")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 30, **PICTURES)}, workers=2)
    with_torch(box, daemon, f"""
        options = dict(batch_size=4, pipeline="{CROP} to(float16)", framework="torch", seed=1)
        with dlclient.Loader("p", copy=True, **options) as loader:
            def epoch(k):
                loader.set_epoch(k)
                return [batch["image"].numpy() for batch in loader]
            expected = {{k: epoch(k) for k in (0, 1, 5)}}
        with dlclient.Loader("p", device="cuda", **options) as loader:
            for i, batch in enumerate(loader):
                same(host(batch["image"]), expected[0][i])
                if i == 2: break
            state = loader.state_dict()
            assert state == batch.state_dict()
            del batch
            loader.set_epoch(5)
            for i, batch in enumerate(loader): same(host(batch["image"]), expected[5][i])
            assert i == 7
            loader.load_state_dict(state)
            assert loader.step == 3 and loader.remaining == 5
            seen = [host(batch["image"]) for batch in loader]
            for got, wanted in zip(seen, expected[0][3:]): same(got, wanted)
            assert len(seen) == 5
            for i, batch in enumerate(loader): same(host(batch["image"]), expected[1][i])
            assert loader.stats().batches >= 20
            for _ in range(12):                  # what was copied ahead and nobody gets is given back
                loader.set_epoch(5)
                batch = next(iter(loader))
            del batch
            gc.collect()
            assert len(torch_on_device.State.blocks) <= 4, len(torch_on_device.State.blocks)
        gc.collect()
        assert not torch_on_device.State.blocks
        with dlclient.Loader("p", device="cuda", state=state, persistent=False, **options) as loader:
            for got, wanted in zip(loader, expected[0][3:]): same(host(got["image"]), wanted)
            for i, batch in enumerate(loader): same(host(batch["image"]), expected[1][i])
        with dlclient.Loader("p", device=["cuda:0", torch.device("cuda", 0)], ranks=[0, 1], **options) as loader:
            assert loader.device == ["cuda:0", "cuda:0"]
            n = 0
            for batches in loader:
                n += sum(batch.n_samples for batch in batches if batch is not None)
                assert all(batch["image"].is_cuda for batch in batches if batch is not None)
            assert n == 30
        gc.collect()
        counts = clean()
        assert (counts.n_registrations, counts.n_streams, counts.n_events, counts.n_modules) == (0, 0, 0, 0), "what is left"
        """)


@case("torch: no memory on the device is a MemoryError, after which the same batch comes; a failed call is final for the loader")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 30, **PICTURES)}, workers=2)
    source = f"""
        options = dict(batch_size=4, pipeline="{CROP} to(float16)", framework="torch", seed=1)
        loader = dlclient.Loader("p", device="cuda", **options)
        batches = iter(loader)
        first = next(batches)
        """
    with_torch(box, daemon, source + """
        seen = [first.indices.tolist(), next(batches).indices.tolist()]
        torch_on_device.State.full = True
        try:
            for _ in range(2): seen.append(next(batches).indices.tolist())     # one may have been copied ahead
            raise AssertionError("it was full")
        except dlclient.DeviceMemoryFull as error:
            assert isinstance(error, MemoryError) and "no memory on cuda:0 for 'image'" in str(error), error
        refused(dlclient.DeviceMemoryFull, lambda: next(batches), "CUDA out of memory")
        torch_on_device.State.full = False
        seen += [batch.indices.tolist() for batch in batches]
        with dlclient.Loader("p", copy=True, batch_size=4, seed=1, pipeline="center_crop(2)") as here:
            assert seen == [batch.indices.tolist() for batch in here], "no batch was lost"
        loader.close()
        clean()
        """)
    out = with_torch(box, daemon, source + """
        def rest():
            for _ in batches: pass
        text = refused(dlclient.DeviceFailed, rest, "CUDA_ERROR_ILLEGAL_ADDRESS")
        assert refused(dlclient.DeviceFailed, lambda: next(batches)) == text
        refused(dlclient.DeviceFailed, lambda: next(iter(loader)))
        loader.close()
        with dlclient.Loader("p", batch_size=4, pipeline="center_crop(2)") as here:
            out(sum(1 for _ in here))
        os._exit(0)
        """, fail="cuMemcpyHtoDAsync_v2:7:700:sticky")
    equal(out, [8], "batches on the CPU after that")


@case("torch: the device is torch's current one, or that of the process's place on the node; each rank may have its own")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 16, **PICTURES)}, workers=2)
    source = """
        options = dict(batch_size=4, pipeline="center_crop(8)", framework="torch")
        def device(**more):
            with dlclient.Loader("p", **options, **more) as loader:
                for batch in loader: pass
                return loader.device
        """
    out = with_torch(box, daemon, source + """
        out([device(device="cuda"), device(device="cuda:2"), device(device=torch.device("cuda", 1)), device(device=1), device(device="cpu")])
        torch_on_device.State.index = 2
        out(device(device="cuda"))
        out([device(device="cuda", ranks=[0, 1, 2]), device(device=["cuda:2", "cuda:0"], ranks=[0, 1])])
        refused(dlclient.OptionError, lambda: device(device="cuda:7"), "device 7 does not exist", "sees 3")
        refused(dlclient.OptionError, lambda: device(device="cuda", ranks=[0, 1, 2, 3]), "device 3 does not exist")
        refused(dlclient.OptionError, lambda: device(device=["cuda:0"], ranks=[0, 1]), "1 are named", "2 ranks")
        refused(dlclient.OptionError, lambda: device(device=["cuda:0", "cpu"], ranks=[0, 1]), "two loaders")
        for wrong in ("mps", "cuda:x", True, -1, 2.5): refused(dlclient.OptionError, lambda: device(device=wrong), "device: ", "\\"cuda\\"")
        loader = dlclient.Loader("p", device="cuda:1", **options)
        for name in ("device", "into"): refused(dlclient.OptionError, lambda: setattr(loader, name, 1), name)
        loader.close()
        clean()
        """, devices=3)
    equal(out, [["cuda:0", "cuda:2", "cuda:1", "cuda:1", None], "cuda:2", [["cuda:0", "cuda:1", "cuda:2"], ["cuda:2", "cuda:0"]]])
    out = with_torch(box, daemon, source + "out(device(device=\"cuda\"))", devices=3, environment={"LOCAL_RANK": "1"})
    equal(out, ["cuda:1"], "by LOCAL_RANK")


@case("docs/gpu.md: the lines at its top train as they stand")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 26, width=240, height=230)}, workers=2)
    lines = block("docs/gpu.md", "loader = dlclient.Loader").replace("/data/photos/train", "p").replace("batch_size=256", "batch_size=8")
    out = with_torch(box, daemon, f"""
        n = []
        def model(images):
            assert images.is_cuda and images.dtype == torch.bfloat16 and images.shape[1:] == (3, 224, 224), images.shape
            return images
        def cross_entropy(images, labels):
            assert labels.is_cuda
            n.append(len(labels))
        exec({lines!r})
        out(n)
        loader.close()
        clean()
        """)
    equal(out, [[8, 8, 8, 2]])


# ---- without a framework

@case("arrays on the device: CUDA's array interface and DLPack have the numbers of the CPU, and hold their batch")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 26, **PICTURES)}, workers=2)
    on_device(box, daemon, f"""
        on_device.begin()
        from dlclient._device.array import _DLTensor, _capsule_pointer
        options = dict(batch_size=6, pipeline="{CROP} to(float16) layout(nchw)", seed=3)
        with dlclient.Loader("p", device="cuda", **options) as there, dlclient.Loader("p", copy=True, **options) as here:
            for epoch in range(2):
                for a, b in zip(there, here):
                    for name in ("image", "label"):
                        array = a[name]
                        assert isinstance(array, dlclient.DeviceArray) and array.device == "cuda:0"
                        assert array.dtype == b[name].dtype and array.shape == b[name].shape and len(array) == len(b[name])
                        assert array.strides == b[name].strides and array.nbytes == b[name].nbytes and array.ndim == b[name].ndim
                        interface = array.__cuda_array_interface__
                        assert interface["version"] == 3 and interface["stream"] == 1 and interface["data"][1] is False
                        same(on_device.values(array), b[name])
                        same(on_device.values(array[-1]) if name == "image" else b[name][-1], b[name][-1])
                    assert a.indices.tolist() == b.indices.tolist()
                    side = on_device.stream()
                    capsule = a["image"].__dlpack__(stream=side)      # the stream waits for the batch
                    assert a["image"].__dlpack_device__() == (2, 0)
                    tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
                    assert (tensor.device_type, tensor.device_id, tensor.code, tensor.bits, tensor.lanes, tensor.ndim) == (2, 0, 2, 16, 1, 4)
                    same(numpy.frombuffer(on_device.read(tensor.data, b["image"].nbytes, side), "<f2").reshape(b["image"].shape), b["image"])
                    repr(a), repr(a["image"])
                    del a, array, tensor
            refused(TypeError, lambda: numpy.asarray(next(iter(there))["image"]), "cuda:0", "cupy")
            image = next(iter(there))["image"]
            for wrong in (lambda: image.__dlpack__(copy=True), lambda: image.__dlpack__(dl_device=(1, 0))): refused(BufferError, wrong, "where it lies")
            refused(TypeError, lambda: image["x"], "framework")
            refused(IndexError, lambda: image[6])
            refused(TypeError, lambda: image.used_on("x"), "not a stream")
            del image, capsule
        gc.collect()
        counts = clean()
        assert counts.n_allocations == counts.n_registrations == 0, "what is left"
        """)


@case("arrays on the device: those that are kept hold memory, and a sentence says so; closing a loader leaves them as they are")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, **PICTURES)}, workers=2)
    on_device(box, daemon, f"""
        on_device.begin()
        options = dict(batch_size=4, pipeline="{CROP} to(float16)", seed=3)
        with dlclient.Loader("p", copy=True, **options) as here: expected = [batch["image"] for batch in here]
        loader = dlclient.Loader("p", device="cuda", **options)
        batches = iter(loader)
        kept = [next(batches)["image"] for _ in range(4)]
        refused(dlclient.RingFull, lambda: next(batches), "4 of 4 batches on the device", "image", "framework=\\"torch\\"")
        for i in range(4): same(on_device.values(kept[i]), expected[i])
        del kept[1]
        batch = next(batches)
        same(on_device.values(batch["image"]), expected[4])
        batch.release()
        refused(dlclient.BatchReleased, lambda: batch["image"], "released")
        cycle = [next(batches)["image"]]; cycle.append(cycle); del cycle        # garbage that only the collector finds
        gc.disable()
        same(on_device.values(next(batches)["image"]), expected[6])
        gc.enable()
        on_device.check(on_device.cuda.cuCtxSynchronize())
        loader.close()
        refused(dlclient.LoaderClosed, lambda: next(batches), "closed")
        for i, number in enumerate((0, 2, 3)): same(on_device.values(kept[i]), expected[number], "after close()")
        assert on_device.counts().n_allocations > 0
        del kept, batch
        gc.collect()
        counts = clean()
        assert counts.n_allocations == counts.n_registrations == counts.n_streams == 0, "given back with the last array"
        refused(dlclient.OptionError, lambda: dlclient.Loader("p", device="cuda", copy=True, **options), "copy: True", "torch")
        refused(dlclient.OptionError, lambda: dlclient.Loader("p", device="cuda", framework="numpy", into={{}}, **options), "into: ")
        """)


@case("arrays on the device: streams that do not block are waited for, by used_on() and by DLPack: 0 of 160, and without them some")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, **PICTURES)}, workers=2)
    source = f"""
        on_device.begin()
        class Theirs: pass                                       # as torch, CuPy and Numba have streams
        options = dict(batch_size=4, pipeline="{CROP} to(float16)", epochs=5)
        with dlclient.Loader("p", copy=True, **options) as here: expected = [batch["image"].tobytes() for batch in here]
        def run(tell):
            streams, results = [on_device.stream() for _ in range(3)], []
            with dlclient.Loader("p", device="cuda", **options) as loader:
                for i, batch in enumerate(loader):
                    image, stream = batch["image"], streams[i % 3]
                    if tell == "used_on":
                        theirs = Theirs(); setattr(theirs, ("cuda_stream", "ptr", "handle")[i % 3], stream)
                        image.used_on(theirs)
                    elif tell == "dlpack": capsule = image.__dlpack__(stream=stream)
                    result = on_device.allocate(image.nbytes)
                    busy(stream)
                    on_device.copy(result, image.pointer, image.nbytes, stream)
                    results.append(result)
                    del batch, image
                    capsule = None
            on_device.check(on_device.cuda.cuCtxSynchronize())
            return sum(on_device.read(result, len(bytes)) != bytes for result, bytes in zip(results, expected))
        """
    out = on_device(box, daemon, source + "out([run('used_on'), run('dlpack'), any(run(None) for _ in range(5))]); clean()", delay_us=4000)
    equal(out[0], [0, 0, True], "batches that were overwritten; without it some are")


@case("arrays on the device: single samples and joined fields without a framework; pieces; what cannot be copied or pickled says so")
def _(box):
    members = [(f"{i:03d}.json", b'{"numbers": [%s]}' % b", ".join(b"%d" % k for k in range(i % 4))) for i in range(12)]
    archive(box.path("w", "a.tar"), members)
    daemon = box.daemon({"w": web(box.path("w"))}, workers=2)
    on_device(box, daemon, """
        import copy, pickle
        on_device.begin()
        for end in ("", " ragged(joined=true)"):
            options = dict(pipeline="json: json(numbers) to(int64, shape=-1)" + end, seed=1)
            for batch_size in (4, None):
                with dlclient.Loader("w", device="cuda", batch_size=batch_size, **options) as there, \\
                        dlclient.Loader("w", copy=True, batch_size=batch_size, **options) as here:
                    for a, b in zip(there, here):
                        if batch_size is None: same(on_device.values(a.json), b.json)
                        else:
                            for mine, theirs in zip(a.json, b.json): same(on_device.values(mine), theirs)
                            assert a.json.lengths == b.json.lengths
                            if a.json._joined is not None: same(on_device.values(a.json.values), b.json.values)
        with dlclient.Loader("w", device="cuda", pipeline="json: json(numbers) to(int64, shape=-1) pad", batch_size=4, shuffle=False) as there:
            batch = next(iter(there))
            array = batch["json"]
            whole = on_device.values(array)
            for place in (slice(1, 3), slice(None), slice(-2, None), slice(3, 1), slice(9, None)): same(on_device.values(array[place]), whole[place])
            refused(TypeError, lambda: array[::2], "framework")
            refused(TypeError, lambda: batch.model_inputs("json"), "framework=\\"torch\\"")
            for function in (copy.copy, copy.deepcopy, pickle.dumps): refused(TypeError, lambda: function(array), "cuda:0", "clone")
        clean()
        class OnCpu: platform, id = "cpu", 0                  # as a jax.Device
        for device, name in ((numpy.int64(0), "cuda:0"), ("GPU:0", "cuda:0"), (OnCpu(), None)):
            with dlclient.Loader("w", device=device, pipeline="raw") as loader: assert loader.device == name
        for device in ("", "cuda:", "cuda:-1", b"cuda", numpy.bool_(True), 99999): refused(dlclient.OptionError, lambda: dlclient.Loader("w", device=device), "device: ")
        """)


@case("a capsule that dies in a thread that is not Python's holds its batch until then, also after the loader is gone")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 26, **PICTURES)}, workers=2)
    on_device(box, daemon, """
        on_device.begin()
        import _thread
        from dlclient._device.array import _capsule_pointer
        class Managed(ctypes.Structure):
            _fields_ = [("tensor", ctypes.c_char * 48), ("context", ctypes.c_void_p), ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]
        rename = ctypes.pythonapi.PyCapsule_SetName; rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
        def taken(array):
            '''What a consumer does with a capsule: from here on its deleter has to be called.'''
            capsule = array.__dlpack__()
            pointer = _capsule_pointer(capsule, b"dltensor")
            rename(capsule, b"used_dltensor")
            return pointer
        def deleted_elsewhere(pointer):
            done = threading.Event()
            def run():
                Managed.from_address(pointer).deleter(pointer)
                done.set()
            _thread.start_new_thread(run, ())
            assert done.wait(20)
        loader = dlclient.Loader("p", device="cuda", batch_size=4, pipeline="center_crop(8)")
        batches = iter(loader)
        pointers = [taken(next(batches)["image"]) for _ in range(4)]
        refused(dlclient.RingFull, lambda: next(batches), "an export")
        deleted_elsewhere(pointers.pop())
        n_calls = on_device.counts().n_calls
        next(batches)
        loader.close()
        del loader, batches
        gc.collect()
        assert on_device.counts().n_allocations > 0, "three are held"
        for pointer in pointers: deleted_elsewhere(pointer)
        gc.collect()
        with dlclient.Loader("p", device="cuda", batch_size=4, pipeline="center_crop(8)") as loader:    # closes what the thread left
            assert sum(1 for _ in loader) == 7
        gc.collect()
        counts = clean()
        assert counts.n_allocations == counts.n_registrations == 0, "what is left"
        """)


# ---- JAX

JAX = """\
# What the client asks of JAX, on the tests' driver: JAX itself runs on a real one.
import sys, types
class JaxArray:
    def __init__(self, pointer, shape, dtype, source=None):
        self.pointer, self.shape, self.dtype, self.source, self.event = pointer, shape, dtype, source, None
    @property
    def nbytes(self): return int(numpy.prod(self.shape)) * self.dtype.itemsize
    def is_ready(self): return self.event is None or on_device.cuda.cuEventQuery(ctypes.c_void_p(self.event)) == 0
    def block_until_ready(self): on_device.check(on_device.cuda.cuEventSynchronize(ctypes.c_void_p(self.event)))
    def devices(self): return set()
streams = []                                              # it takes memory over on one stream, and computes on another
def ordered(first, second):
    event = on_device.event()
    on_device.check(on_device.cuda.cuEventRecord(ctypes.c_void_p(event), ctypes.c_void_p(first)))
    on_device.check(on_device.cuda.cuStreamWaitEvent(ctypes.c_void_p(second), ctypes.c_void_p(event), 0))
def from_dlpack(array):
    capsule = array.__dlpack__(stream=streams[0])
    ordered(*streams)
    return JaxArray(array.pointer, array.shape, array.dtype, capsule)
def jax_array(theirs, copy):
    mine = JaxArray(on_device.allocate(theirs.nbytes), theirs.shape, theirs.dtype)
    busy(streams[1])
    on_device.copy(mine.pointer, theirs.pointer, theirs.nbytes, streams[1])
    mine.event = on_device.event()
    on_device.check(on_device.cuda.cuEventRecord(ctypes.c_void_p(mine.event), ctypes.c_void_p(streams[1])))
    return mine
jax, jnp = types.ModuleType("jax"), types.ModuleType("jax.numpy")
class GPU: platform, id, local_hardware_id = "gpu", 0, 0
jax.local_devices = lambda backend: [GPU]
jax.device_put = lambda array, device: array
jax.numpy, jnp.from_dlpack, jnp.array, jnp.asarray = jnp, from_dlpack, jax_array, lambda array: array
sys.modules["jax"], sys.modules["jax.numpy"] = jax, jnp
"""


@case("JAX: each field becomes an array of JAX's own, and its batch is held until JAX has read it: 0 of 80")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, **PICTURES)}, workers=2)
    on_device(box, daemon, f"""
        on_device.begin()
        streams.extend([on_device.stream(), on_device.stream()])
        options = dict(batch_size=4, pipeline="{CROP} to(float16)", epochs=5)
        with dlclient.Loader("p", copy=True, **options) as here: expected = [batch["image"].tobytes() for batch in here]
        with dlclient.Loader("p", device=GPU(), framework="jax", **options) as loader:
            collected, real = [], gc.collect
            gc.collect = lambda *_: collected.append(real())
            kept = [batch["image"] for batch in loader]              # they are JAX's: all may be kept
            gc.collect = real
        on_device.check(on_device.cuda.cuCtxSynchronize())
        assert [on_device.read(array.pointer, array.nbytes) for array in kept] == expected
        assert not collected, "JAX's own reading is waited for, and no garbage looked for"
        clean()
        def no_gpu(backend): raise RuntimeError("Unknown backend gpu")
        jax.local_devices = no_gpu
        refused(dlclient.DeviceNotFound, lambda: dlclient.Loader("p", device="cuda", framework="jax"), "JAX finds no GPU", "Unknown backend")
        """, tools=TOOLS + JAX, delay_us=4000)


# ---- what is not there, and what ends

@case("no driver, no device, a framework without CUDA: DeviceNotFound says what to do, before anything is attached, and the CPU goes on")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 16, **PICTURES)}, workers=2)
    source = """
        text = refused(dlclient.DeviceNotFound, lambda: dlclient.Loader("p", device="cuda", pipeline="center_crop(8)"), "device: no GPU", *sys.argv[1:])
        assert text.count("device: ") == 1, text
        with dlclient.Loader("p", batch_size=4, pipeline="center_crop(8)") as loader: out(sum(1 for _ in loader))
        """
    for settings, words in ((dict(devices=0), ["CUDA_VISIBLE_DEVICES"]), (dict(version=10020), ["too old", "11.0"])):
        equal(on_device(box, daemon, source, *words, **settings), [4])
    if not has_real_driver():
        equal(on_device(box, daemon, "", driver=False, tools=source, ), [4])
    need("torch")
    equal(on_device(box, daemon, """
        refused(dlclient.DeviceNotFound, lambda: dlclient.Loader("p", device="cuda", framework="torch"), "torch", "without CUDA", "leave device= out")
        refused(dlclient.OptionError, lambda: dlclient.Loader("p", device="cuda", framework="tensorflow"), "TensorFlow", "from_dlpack") if __import__("importlib.util").util.find_spec("tensorflow") else None
        out(1)
        """), [1])
    equal("attached" in daemon.log() and "no GPU" not in daemon.log(), True, "the log")


@case("memory that cannot be registered is a LoaderWarning at the program's own line, and the batches are the same")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 16, **PICTURES)}, workers=2)
    on_device(box, daemon, """
        import warnings
        on_device.begin()
        options = dict(batch_size=4, pipeline="center_crop(8) to(float16)")
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with dlclient.Loader("p", device="cuda", **options) as there, dlclient.Loader("p", **options) as here:
                for a, b in zip(there, here): same(on_device.values(a.image), b.image)
        assert [(w.category, w.filename) for w in told] == [(dlclient.LoaderWarning, __file__)], told
        assert "cannot" in str(told[0].message) or "NOT_SUPPORTED" in str(told[0].message), told[0].message
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            refused(dlclient.LoaderWarning, lambda: dlclient.Loader("p", device="cuda", **options), "is waited for")
        del a, b
        counts = clean()
        assert counts.n_registrations == counts.n_streams == counts.n_allocations == 0, "what is left"
        """, fail="cuMemHostRegister_v2:1:801,cuMemHostRegister_v2:2:801")


@case("several threads: one takes ahead of the others, three take in turns, and loaders of one device close in any order")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, **PICTURES)}, workers=2)
    with_torch(box, daemon, f"""
        import queue
        options = dict(batch_size=4, pipeline="{CROP} to(float16)", epochs=2, slots=2)
        with dlclient.Loader("p", copy=True, **options) as here: expected = [batch["image"].tobytes() for batch in here]
        def content(batch):
            return (host(batch["image"]) if torch.is_tensor(batch["image"]) else on_device.values(batch["image"])).tobytes()
        def started(function):
            def run():
                on_device.begin()
                function()
            thread = threading.Thread(target=run)
            thread.start()
            return thread
        for framework in ("torch", "numpy"):
            with dlclient.Loader("p", device="cuda", framework=framework, **options) as loader:
                taken = queue.Queue(8)                       # more than the four that numpy's may hold
                def ahead():
                    for batch in loader: taken.put(batch)
                    taken.put(None)
                thread, seen = started(ahead), []
                while True:
                    batch = taken.get(timeout=30)
                    if batch is None: break
                    seen.append(content(batch))
                    del batch
                thread.join()
                assert seen == expected
                found, batches = {{}}, iter(loader)
                loader.set_epoch(0)
                batches = iter(loader)
                def work():
                    for batch in batches:
                        found[batch.epoch, batch.step] = content(batch)
                        del batch
                for thread in [started(work) for _ in range(3)]: thread.join()
                assert [found[key] for key in sorted(found)] == expected
            loaders = [dlclient.Loader("p", device="cuda", framework=framework, **options) for _ in range(4)]
            for i, step in enumerate(zip(*loaders)): assert all(content(batch) == expected[i] for batch in step)
            for i in (2, 0, 3, 1): loaders[i].close()
            if framework == "numpy": assert [content(batch) for batch in step] == [expected[-1]] * 4
            del step, loaders, loader, batches
        counts = clean()
        assert counts.n_registrations == counts.n_streams == 0 and not torch_on_device.State.blocks, "what is left"
        """)


@case("a fork, a signal in the middle, an exception in the loop, an interpreter that ends: nothing hangs, nothing is left")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, **PICTURES)}, workers=2)
    on_device(box, daemon, f"""
        on_device.begin()
        options = dict(batch_size=4, pipeline="{CROP} to(float16)", epochs=None)
        loader = dlclient.Loader("p", device="cuda", **options)
        batches = iter(loader)
        batch = next(batches)
        image = batch["image"]
        child = os.fork()
        if child == 0:
            try:
                refused(dlclient.ForkedLoader, lambda: next(batches), "fork")
                refused(dlclient.ForkedLoader, lambda: image.__dlpack__(), "fork")
                refused(dlclient.ForkedLoader, lambda: dlclient.Loader("p", device="cuda", **options), "fork")
                del batch, image, batches, loader
                gc.collect()
                os._exit(7)
            except BaseException as error:
                sys.stderr.write(repr(error)); os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        n = 0
        class Alarm(Exception): pass
        def alarm(*_): raise Alarm
        signal.signal(signal.SIGALRM, alarm)
        for round in range(60):
            signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.0004 * (round % 9))
            try:
                while True:
                    batch = next(batches); n += 1
            except Alarm: pass
            finally: signal.setitimer(signal.ITIMER_REAL, 0)
        assert n > 30, n
        position = next(batches).position
        assert position % 4 == 0
        del batch, image
        loader.close()
        gc.collect()
        counts = clean()
        assert counts.n_allocations == counts.n_registrations == 0, "what is left"
        with dlclient.Loader("p", device="cuda", **options) as loader:
            order = []
            for batch in loader:
                order.append(batch.indices.tolist())
                if len(order) == 40: break
        with dlclient.Loader("p", **options) as loader:
            for wanted, batch in zip(order, loader): assert batch.indices.tolist() == wanted
        left = dlclient.Loader("p", device="cuda", **options)
        last = next(iter(left))["image"]       # open at the end
        """)


@case("a daemon that dies comes back, and the loop on the device goes on with the next batch")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, **PICTURES)}, workers=2)
    running = pyclient.Trainer(box, daemon, TOOLS + f"""
on_device.begin()
options = dict(batch_size=4, pipeline="{CROP} to(float16)", seed=3, epochs=3)
with dlclient.Loader("p", device="cuda", **options) as loader:
    seen = []
    for i, batch in enumerate(loader):
        seen.append((batch.indices.tolist(), on_device.values(batch["image"]).tobytes()))
        if i == 10:
            out("ten"); sys.stdin.readline() if False else time.sleep(0.5)
with dlclient.Loader("p", **options) as here:
    for (indices, image), batch in zip(seen, here):
        assert indices == batch.indices.tolist() and image == batch["image"].tobytes()
out(len(seen)); clean()
""", PYTHONPATH=f"{pyclient.PACKAGE}:{SUPPORT}", LD_LIBRARY_PATH=STAND_IN)
    running.wait_lines(1)
    daemon.kill()
    daemon.start()
    equal(running.finish(), ["ten", 48])


if __name__ == "__main__":
    main()
