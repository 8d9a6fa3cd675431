#!/usr/bin/env python3
"""Loader(device="cuda", into=...): batches in torch tensors of the program's own, on the tests' driver; see
test_python_device_torch.py."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from device_scripts import CROP, PICTURES, with_torch
from harness import case, identity_pixels, main, png
from tars import archive, web


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


if __name__ == "__main__":
    main()
