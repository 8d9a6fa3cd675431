#!/usr/bin/env python3
"""Loader(device="cuda", framework="torch"): the Python client with libdlclient-cuda on the tests' driver, which begins all
work late, and with the real torch over that driver's memory (support/torch_on_device.py)."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from device_scripts import CROP, PICTURES, with_torch
from harness import case, equal, identity_pixels, main, png
from pages import block
from tars import archive, web


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


if __name__ == "__main__":
    main()
