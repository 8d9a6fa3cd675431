#!/usr/bin/env python3
"""The Python client's surface: what its loops give is what the order says, what a batch shows is what lies in the slot,
and whatever goes wrong is an exception of its own with a sentence that helps."""
import ast
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import (ROOT, Table, case, contains, equal, expected_order, identity_bytes, identity_pixels, main, patience, within,
                     write)
from private import PROGRAM, Home
from pyclient import LIBRARY, PACKAGE, environment_of, need, trainer


# ---- the contract ---------------------------------------------------------------------------------------------------

STRUCTS = {"dlc_options": "Options", "dlc_place": "Place", "dlc_tensor": "Tensor", "dlc_batch": "Batch",
           "dlc_info": "Info", "dlc_launch": "Launch", "dlc_daemon": "Daemon",
           "dlc_stats": "Stats", "dlc_diagnosis": "Diagnosis", "dlc_once_options": "OnceOptions",
           "dlc_once_info": "OnceInfo", "dlc_progress": "Progress"}
CUDA_STRUCTS = {"dlc_cuda_options": "CudaOptions", "dlc_cuda_batch": "CudaBatch", "dlc_cuda_info": "CudaInfo"}


@case("every field of the ctypes structs lies where the header puts it, and none is missing")
def _(box):
    need("numpy")
    sys.path.insert(0, PACKAGE)
    from dlclient import _library
    from dlclient._device import library as _cuda
    structs = {**{struct: getattr(_library, name) for struct, name in STRUCTS.items()},
               **{struct: getattr(_cuda, name) for struct, name in CUDA_STRUCTS.items()}}
    lines = []
    for struct, mirror in structs.items():
        lines.append(f'printf("%zu\\n", sizeof(struct {struct}));')
        for field in mirror._fields_:
            lines.append(f'printf("%zu %zu\\n", offsetof(struct {struct}, {field[0]}), '
                         f'sizeof(((struct {struct} *)0)->{field[0]}));')
    source = box.path("offsets.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write('#include <dlclient-cuda.h>\n#include <stdio.h>\nint main(void) {\n' + "\n".join(lines) + "\n}\n")
    subprocess.run(["gcc", "-I", os.path.join(ROOT, "client", "include"), "-o", box.path("offsets"), source], check=True)
    printed = subprocess.run([box.path("offsets")], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    mine = []
    for struct in structs.values():
        mine.append(str(_library.ctypes.sizeof(struct)))
        for field in struct._fields_:
            descriptor = getattr(struct, field[0])
            mine.append(f"{descriptor.offset} {descriptor.size}")
    equal(mine, printed, "sizes, and offsets with sizes")
    header = ""
    for name in ("dlclient.h", "dlclient-cuda.h"):
        with open(os.path.join(ROOT, "client", "include", name), encoding="utf-8") as file:
            header += re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    for struct, mirror in structs.items():
        body = re.search(r"struct %s \{(.*?)\n\};" % struct, header, re.S).group(1)
        fields = re.findall(r"(\w+)(?:\[\d+\])?;", body)
        equal([field[0] for field in mirror._fields_], fields, f"fields of struct {struct}")


def version():
    with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as file:
        return re.search(r"^VERSION := (.*)$", file.read(), re.M).group(1)


@case("package, Makefile and library have one version")
def _(box):
    lines = trainer(box, None, """
        from dlclient import _library
        out([dlclient.__version__, _library.load().version_text])
    """)
    equal([text.partition("+git")[0] for text in lines[0]], [version(), version()], "versions")


# ---- loops ----------------------------------------------------------------------------------------------------------

LOOPS = [
    dict(n=23, batch_size=4),
    dict(n=23, batch_size=4, drop_last=True),
    dict(n=23, batch_size=5, seed=7, shuffle=False),
    dict(n=23, batch_size=3, seed=2**40 + 3),
    dict(n=23, batch_size=2, world_size=3, rank=2),
    dict(n=23, batch_size=2, world_size=3, rank=2, partition="drop"),
    dict(n=23, batch_size=2, world_size=3, rank=2, partition="exact"),
    dict(n=23, batch_size=100),
    dict(n=23, batch_size=1, epochs=2),
]


def epochs_of(n, n_epochs, batch_size, drop_last=False, world_size=1, seed=0, epochs=1, **order):
    """What the loops of a loader give: lists of batches."""
    result = []
    for epoch in range(n_epochs):
        sequence = expected_order(n, world=world_size, seed=seed, epoch=epoch, **order)
        batches = [sequence[i:i + batch_size] for i in range(0, len(sequence), batch_size)]
        if drop_last and batches and len(batches[-1]) < batch_size:
            batches.pop()
        result.append(batches)
    return [sum(result[i:i + epochs], []) for i in range(0, n_epochs, epochs)]


@case("each loop gives the batches that the order says, len() of them, epoch after epoch")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 23)})
    table = Table()
    got = trainer(box, daemon, """
        for row in json.loads(sys.argv[1]):
            n = row.pop("n")
            loader = dlclient.Loader("f", job="loops", **row)
            loops = []
            for _ in range(2):
                assert len(loader) == len([loops.append([])] and [loops[-1].append(b.indices.tolist()) for b in loader])
            assert sum(len(x) for x in loops[0]) == len(loader.sampler) * row.get("epochs", 1) or row.get("drop_last")
            out(loops)
            loader.close()
    """, json.dumps(LOOPS))
    for row, loops in zip(LOOPS, got):
        with table.row(row):
            equal(loops, epochs_of(n_epochs=2 * row.get("epochs", 1), **row), "batches of two loops")
    equal(len(got), len(LOOPS), "rows")
    table.done()


@case("set_epoch() chooses, a break is left behind, and an iterator that is over says so")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 20)})
    orders = {epoch: expected_order(20, epoch=epoch) for epoch in range(12)}
    lines = trainer(box, daemon, """
        loader = dlclient.Loader("f", batch_size=4)
        def first(iterator):
            return next(iterator).indices.tolist()
        for batch in loader:
            break
        out(loader.epoch)                                  # 0: in its midst
        out(first(iter(loader)))                           # epoch 1, from its start
        loader.set_epoch(9); out(first(iter(loader)))      # any epoch
        loader.set_epoch(9); out(first(iter(loader)))      # the same again
        iterator = iter(loader); loader.set_epoch(5)       # nothing taken yet: it follows
        out(first(iterator))
        loader.set_epoch(2)                                # in its midst: the next loop
        out(next(iterator).epoch)
        newer = iter(loader)
        refused(dlclient.Error, lambda: next(iterator), "newer iter()")
        out(first(newer))
        ended = iter(loader)
        out(sum(1 for _ in ended))
        for _ in range(2):
            assert next(ended, None) is None               # goes on saying that it has ended
        loader.sampler.set_epoch(4)
        out([loader.epoch, loader.sampler.num_replicas, loader.sampler.rank, len(loader.sampler)])
        iterator = iter(loader)
        for _ in range(len(loader)): next(iterator)        # as many as len(), without asking once more
        out(first(iter(loader)))
    """)
    equal(lines, [0, orders[1][:4], orders[9][:4], orders[9][:4], orders[5][:4], 5, orders[2][:4], 5, [4, 1, 0, 20],
                  orders[5][:4]], "what the loops gave")


@case("after a loop that was left by break, islice or zip the next one begins the next epoch, or goes on with the stream")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 40)})
    epochs = epochs_of(40, 4, batch_size=4)
    stream = sum(epochs, [])
    lines = trainer(box, daemon, """
        import itertools
        def left_by_break(loader, n):
            for step, batch in enumerate(loader):
                if step == n - 1: break
        def left_by_islice(loader, n):
            return [batch.step for batch in itertools.islice(loader, n)]
        def left_by_zip(loader, n):
            return [number for _, number in zip(loader, range(n - 1))]     # zip takes one more of the first
        def left_by_an_exception(loader, n):
            try:
                for step, batch in enumerate(loader):
                    if step == n - 1: raise KeyError
            except KeyError:
                pass
        def first(loader):
            return next(iter(loader)).indices.tolist()
        for leave in (left_by_break, left_by_islice, left_by_zip, left_by_an_exception):
            for options in (dict(), dict(persistent=False), dict(slots=8), dict(epochs=2), dict(epochs=None)):
                for n in (1, 2, 5, 10):
                    loader = dlclient.Loader("f", batch_size=4, **options)
                    leave(loader, n)
                    place = loader.state_dict()                # a state goes on in the epoch that was left
                    assert (place["epoch"], place["position"]) == (0, 4 * n), (leave, options, n, place)
                    assert first(loader) == json.loads(sys.argv[1])[1][0], (leave, options, n)
                    leave(loader, n)
                    whole = [batch.indices.tolist() for batch in itertools.islice(loader, 10)]
                    assert whole == json.loads(sys.argv[1])[3], (leave, options, n, whole)
                    loader.close()
            loader = dlclient.Loader("f", batch_size=4, steps_per_epoch=6)
            leave(loader, 2)
            out([first(loader), loader.epoch])                     # nothing of the stream is left out
            loader.close()
        pair = dlclient.Loader("f", batch_size=2, ranks=[0, 1])
        for one, other in pair: break
        out([batch.indices.tolist() for batch in next(iter(pair))])
    """, json.dumps(epochs))
    both = epochs_of(40, 2, batch_size=2, world_size=2, rank=0)[1][0], epochs_of(40, 2, batch_size=2, world_size=2, rank=1)[1][0]
    equal(lines, [[stream[2], 1]] * 4 + [list(both)], "what came next")


@case("epochs=None never ends, steps_per_epoch cuts the stream, and what makes no sense is refused")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 10)})
    stream = sum((epoch for epoch in epochs_of(10, 9, batch_size=4)), [])
    lines = trainer(box, daemon, """
        endless = dlclient.Loader("f", batch_size=4, epochs=None)
        iterator = iter(endless)
        out([next(iterator).indices.tolist() for _ in range(20)])
        refused(TypeError, lambda: len(endless), "no len")
        virtual = dlclient.Loader("f", batch_size=4, steps_per_epoch=5)
        out(len(virtual))
        out([[b.indices.tolist() for b in virtual] for _ in range(2)])
        out(virtual.epoch)
        virtual.set_epoch(4)
        out([b.indices.tolist() for b in virtual])
        virtual.set_epoch(1)
        out([b.indices.tolist() for b in virtual])
        refused(dlclient.OptionError, lambda: dlclient.Loader("f", epochs=2, steps_per_epoch=3), "exclude")
        refused(dlclient.OptionError, lambda: dlclient.Loader("f", world_size=2, rank=0, job="x", partition="exact",
                                                              steps_per_epoch=3), "exact")
        nothing = dlclient.Loader("f", batch_size=11, drop_last=True, epochs=None)
        refused(dlclient.Error, lambda: next(iter(nothing)), "no batch", "drop_last=True")
        out(list(dlclient.Loader("f", batch_size=11, drop_last=True)))
    """)
    equal(lines, [stream[:20], 5, [stream[:5], stream[5:10]], 2, stream[20:25], stream[5:10], []], "what was given")


@case("several ranks in one process come as tuples, with None for a rank that has no more")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 23)})
    lines = trainer(box, daemon, """
        def loop(**options):
            with dlclient.Loader("f", batch_size=2, **options) as loader:
                return [[None if b is None else b.indices.tolist() for b in batches] for batches in loader], len(loader)
        out(loop(ranks=[0, 1, 2], partition="exact"))
        out(loop(ranks=range(2), world_size=3, job="half"))
        refused(dlclient.OptionError, lambda: loop(ranks=[0, 1], rank=0), "exclude")
        refused(dlclient.OptionError, lambda: loop(ranks=[0, 0]), "each rank once")
        refused(dlclient.OptionError, lambda: loop(ranks=[0, 3], world_size=3), "0 to 2")
        refused(dlclient.OptionError, lambda: loop(ranks=3), "sequence")
    """)
    exact = [epochs_of(23, 1, batch_size=2, world_size=3, rank=rank, partition="exact")[0] for rank in range(3)]
    padded = [epochs_of(23, 1, batch_size=2, world_size=3, rank=rank)[0] for rank in range(2)]
    length = max(map(len, exact))
    rows = [[batches[step] if step < len(batches) else None for batches in exact] for step in range(length)]
    equal(lines, [[rows, length], [[list(row) for row in zip(*padded)], len(padded[0])]], "tuples and len()")


@case("what was settled at the opening cannot be set later, whatever torch's name for it is: ValueError, as torch's")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 20)})
    trainer(box, daemon, """
        loader = dlclient.Loader("f", batch_size=4)
        import inspect
        names = set(inspect.signature(dlclient.Loader.__init__).parameters) - {"self", "state", "job", "socket"}
        names |= {"batch_size", "sampler", "batch_sampler", "drop_last", "dataset", "num_workers", "pin_memory",
                  "collate_fn", "prefetch_factor", "worker_init_fn", "generator", "persistent_workers", "epoch",
                  "multiprocessing_context", "pin_memory_device", "in_order"}
        before = {name: getattr(loader, name) for name in names if hasattr(loader, name)}
        for name in sorted(names):
            refused(dlclient.OptionError, lambda: setattr(loader, name, 5), name + ":", "cannot be set")
        assert issubclass(dlclient.OptionError, ValueError)
        for thing, name in ((loader.dataset, "transform"), (loader.dataset, "target_transform"), (loader.dataset, "name"),
                            (loader.dataset, "samples"), (loader.sampler, "rank"), (loader.sampler, "shuffle")):
            refused(dlclient.OptionError, lambda: setattr(thing, name, None), name + ":", "cannot be set")
        assert before == {name: getattr(loader, name) for name in names if hasattr(loader, name)}
        assert not hasattr(loader, "collate_fn") and not hasattr(loader, "prefetch_factor")
        loader.note = "mine"                                # an attribute of the user's own
        class Mine(dlclient.Loader):
            def __init__(self, *arguments, **keywords):
                self.before = 1
                super().__init__(*arguments, **keywords)
                self.scale = 2
        mine = Mine("f", batch_size=10)
        assert (mine.before, mine.scale, mine.batch_size, len(list(mine))) == (1, 2, 10, 2)
        assert [len(batch.indices) for batch in loader] == [4] * 5
    """)


@case("loaders that differ in draws have the same order and other crops; the same draws, the same crops")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 24, width=60, height=60)})
    trainer(box, daemon, """
        def views(**options):
            with dlclient.Loader("p", batch_size=8, pipeline="random_resized_crop(16) hflip(0.5)", seed=3, **options) as it:
                return [(b.indices.tolist(), b.image.copy()) for _ in range(2) for b in it]
        def alike(one, other):
            assert [a[0] for a in one] == [b[0] for b in other], "the order"
            return sum(numpy.array_equal(x, y) for a, b in zip(one, other) for x, y in zip(a[1], b[1]))
        own, again, one, two = views(), views(draws=0), views(draws=1), views(draws=2)
        assert alike(own, again) == alike(one, views(draws=1)) == 48
        assert alike(own, one) == alike(own, two) == alike(one, two) == 0
        left, right = [dlclient.Loader("p", batch_size=8, pipeline="random_resized_crop(16) hflip(0.5)", seed=3, draws=draws)
                       for draws in (0, 2**63 + 5)]
        for a, b in zip(left, right):
            assert a.indices.tolist() == b.indices.tolist() and not numpy.array_equal(a.image, b.image)
        assert (left.draws, right.draws) == (0, 2**63 + 5)
        first = dlclient.Loader("p", rank=0, world_size=2, job="two", draws=1)
        refused(dlclient.JobMismatch, lambda: dlclient.Loader("p", rank=1, world_size=2, job="two", draws=2), "draws")
        state = json.loads(json.dumps(right.state_dict()))
        assert state["draws"] == 2**63 + 5 and "draws" not in left.state_dict()
        refused(dlclient.StateError, lambda: left.load_state_dict(state), "draws", str(2**63 + 5), "has 0")
        refused(dlclient.StateError, lambda: right.load_state_dict(left.state_dict()), "draws", "saved with 0")
        refused(dlclient.StateError, lambda: right.load_state_dict(dict(state, draws=None)), "draws")
        refused(dlclient.StateError, lambda: right.load_state_dict(dict(state, draws=3)), "check")
        right.load_state_dict(state)
    """)


# ---- batches --------------------------------------------------------------------------------------------------------

@case("a batch shows the fields by name, as attributes and as a mapping; bytes and pixels are the samples' own")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 12), "p": box.folder_of_pictures("p", 12, width=9, height=7)})
    lines = trainer(box, daemon, """
        for batch in dlclient.Loader("f", batch_size=5, shuffle=False):
            image = batch["image"]
            assert image.to_list() == [bytes(one) for one in batch.image] and len(image[1:]) == len(image) - 1
            assert image.lengths == [len(one) for one in image] and "samples of" in repr(image)
            out([one.decode() for one in image.to_list()])
        batch = next(iter(dlclient.Loader("p", batch_size=5, pipeline="decode")))
        out([list(batch), len(batch), batch.n_samples, batch.epoch, batch.step, batch.n_skipped, batch.substitutes,
             batch.errors])
        assert batch.image is batch["image"] and {**batch}["label"] is batch.label and "image" in batch
        assert batch.image.shape == (5, 7, 9, 3) and batch.image.dtype == numpy.uint8 and batch.label.dtype == numpy.int64
        assert batch.indices.dtype == numpy.int64 and batch.indices.flags.owndata and batch.indices.flags.writeable
        batch.image[:] = 7                                  # the caller's own until it is given back
        copies = batch.copy()
        assert not numpy.shares_memory(copies["image"], batch.image) and copies["image"].max() == 7
        assert numpy.shares_memory(batch.numpy()["image"], batch.image)
        refused(KeyError, lambda: batch["picture"], "picture", "image", "label")
        refused(AttributeError, lambda: batch.picture, "image")
        import pickle
        refused(TypeError, lambda: pickle.dumps(batch), "batch.copy()")
        assert "uint8 [5, 7, 9, 3]" in repr(batch) and "image" in dir(batch) and batch in [batch]
        mine = dlclient.Batch({"image": batch.image, "label": batch.label})
        assert dict(mine)["image"] is batch.image and mine.n_samples == 5 and mine.indices is None
        if hasattr(numpy, "from_dlpack"):
            assert numpy.shares_memory(numpy.from_dlpack(batch.image), batch.image)
        kept = list(dlclient.Loader("p", batch_size=1, pipeline="decode", copy=True, slots=2))
        assert len(kept) == 12 and all(one.image.flags.owndata for one in kept)
        out(sorted(int(one.indices[0]) for one in kept))
    """)
    equal(sum(lines[:3], []), [identity_bytes(number, 200).decode() for number in range(12)], "bytes")
    equal(lines[3:], [[["image", "label"], 2, 5, 0, 0, 0, None, {}], list(range(12))], "what is known of a batch")


@case("torch tensors share the memory, .to() copies, and a framework that is not there is named")
def _(box):
    need("torch")
    daemon = box.daemon({"p": box.folder_of_pictures("p", 8)})
    trainer(box, daemon, """
        import torch
        loader = dlclient.Loader("p", batch_size=4, pipeline="decode", framework="torch")
        batch = next(iter(loader))
        assert isinstance(batch["image"], torch.Tensor) and batch["label"].dtype == torch.int64
        assert batch["image"].data_ptr() == batch.numpy()["image"].ctypes.data == batch.torch()["image"].data_ptr()
        moved = batch.to("cpu", non_blocking=True)
        assert moved["image"].data_ptr() != batch["image"].data_ptr() and torch.equal(moved["image"], batch["image"])
        raw = next(iter(dlclient.Loader("p", batch_size=2, framework="torch")))
        assert all(isinstance(one, torch.Tensor) for one in raw["image"])
        from dlclient._batches import convert as _convert
        bits = numpy.array([0x3f80, 0xc000], dtype=numpy.uint16)
        half = _convert.CONVERTERS["torch"](_convert.bfloat16(bits))
        assert half.dtype == torch.bfloat16 and half.tolist() == [1.0, -2.0]
        for name in ("jax", "tensorflow"):
            sys.modules[name] = None                        # as where it is not installed
            refused(dlclient.FrameworkMissing, lambda: dlclient.Loader("p", framework=name), name)
        refused(dlclient.OptionError, lambda: dlclient.Loader("p", framework="mxnet"), "torch")
    """)


@case("a damaged sample is told: which one, what took its place, and why; or it ends the job")
def _(box):
    folder = box.folder_of_pictures("p", 12)
    write(os.path.join(folder, "class000", "000002.png"), b"no picture at all")
    daemon = box.daemon({"p": folder})
    lines = trainer(box, daemon, """
        loader = dlclient.Loader("p", batch_size=4, pipeline="decode", shuffle=False, on_error="substitute")
        batch = next(iter(loader))
        out([batch.indices.tolist(), batch.substitutes.tolist(), list(batch.errors)])
        assert "000002.png" in batch.errors[2]
        assert loader.stats().substituted == 1
        copy = next(iter(dlclient.Loader("p", batch_size=4, pipeline="decode", shuffle=False, on_error="substitute",
                                         copy=True)))
        out([batch.served.tolist(), copy.served.tolist()])
        from_pixels = [int(pixel) for pixel in sys.argv[1].split()]
        assert [int(image[0, 0, 0]) for image in batch.image] == [from_pixels[i] for i in batch.served]
        assert [b.served.tolist() == b.indices.tolist() and b.substitutes is None for b in loader] == [False, True, True]
        assert copy.errors == batch.errors and copy.substitutes.tolist() == batch.substitutes.tolist()
        loader = dlclient.Loader("p", batch_size=1, pipeline="decode", shuffle=False)
        iterator = iter(loader)
        out([next(iterator).indices.tolist() for _ in range(2)])
        refused(dlclient.SampleDamaged, lambda: next(iterator), "000002.png")
        for _ in range(2):                                  # the job has ended: going on after SampleDamaged ends too
            refused(dlclient.JobFailed, lambda: next(iterator), "has ended", "000002.png")
    """, " ".join(str(identity_pixels(number, 9, 7)[0]) for number in range(12)))
    equal(lines, [[[0, 1, 2, 3], [-1, -1, 3, -1], [2]], [[0, 1, 3, 3]] * 2, [[0], [1]]], "what was told")


@case("skipped samples leave smaller batches, ranks= keeps its steps together, and max_errors bounds them")
def _(box):
    folder = box.folder_of_pictures("p", 12)
    for number in (1, 4, 5):
        write(os.path.join(folder, "class000", f"{number:06d}.png"), b"no picture at all")
    daemon = box.daemon({"p": folder})
    lines = trainer(box, daemon, """
        options = dict(pipeline="decode", shuffle=False, on_error="skip")
        loader = dlclient.Loader("p", batch_size=2, **options)
        out([[batch.indices.tolist(), batch.n_samples, batch.n_skipped, len(batch.image)] for batch in loader])
        assert loader.stats().skipped == 3, loader.stats()     # a batch that was left out whole counts too
        pair = dlclient.Loader("p", batch_size=2, ranks=[0, 1], **dict(options, shuffle=False))
        out([[None if batch is None else batch.indices.tolist() for batch in batches] for batches in pair])
        steps = dlclient.Loader("p", batch_size=1, ranks=[0, 1], **options)
        out([[None if batch is None else batch.indices.tolist() for batch in batches] for batches in steps])
        bounded = iter(dlclient.Loader("p", batch_size=2, max_errors=2, **options))
        for _ in range(2):
            refused(dlclient.TooManyErrors, lambda: list(batch.n_samples for batch in bounded), "3 damaged samples", "allows 2")
    """)
    equal(lines[0], [[[0], 1, 1, 1], [[2, 3], 2, 0, 2], [[6, 7], 2, 0, 2], [[8, 9], 2, 0, 2], [[10, 11], 2, 0, 2]], "skipped")
    equal(lines[1:], [[[[0, 2], [3]], [[6], [7]], [[8, 10], [9, 11]]],
                      [[[0], None], [[2], [3]], [[6], [7]], [[8], [9]], [[10], [11]]]], "two ranks")


@case("the dataset says its size, digest and classes; the loader says what it is")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 12, n_classes=3)})
    lines = trainer(box, daemon, """
        with dlclient.Loader("f", batch_size=5, seed=3, job="it") as loader:
            out([len(loader.dataset), loader.dataset.name, len(loader.dataset.digest), loader.batch_size, loader.drop_last,
                 loader.seed, loader.shuffle, loader.rank, loader.world_size, loader.job, loader.pipeline, loader.order,
                 loader.partition, loader.num_workers, loader.pin_memory, loader.closed])
            out([loader.dataset.classes, loader.dataset.class_to_idx])
            assert "rank 0 of 1" in repr(loader) and "12 samples" in repr(loader.dataset)
        assert loader.closed and "closed" in repr(loader)
    """)
    equal(lines, [[12, "f", 64, 5, False, 3, True, 0, 1, "it", "raw", "torch", "pad", 0, False, False],
                  [["class000", "class001", "class002"], {"class000": 0, "class001": 1, "class002": 2}]], "what it says")


@case("stats() counts, and says what the loop waits for")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 40, width=200, height=200)}, workers=1)
    lines = trainer(box, daemon, """
        loader = dlclient.Loader("p", batch_size=4, pipeline="random_resized_crop(224)", epochs=None, slots=9)
        first = loader.stats()
        assert (first.limit, first.batches, first.wait_share, first.input_bound) == ("nothing yet", 0, 0.0, "not"), first
        iterator = iter(loader)
        for _ in range(60): next(iterator)
        eager = loader.stats()
        out([eager.batches, eager.samples, eager.slots, eager.restarts, eager.held])
        assert eager.limit in ("decoding", "reading", "latency"), eager
        assert eager.wait_share >= 0.05 and eager.waits > 0 and "input-bound" in eager.verdict and eager.advice, eager
        while loader.stats().ready < 8: time.sleep(0.01)
        for _ in range(8):  # all ready: however busy the machine is, there is nothing to wait for
            next(iterator); time.sleep(0.2)
        idle = loader.stats()
        assert (idle.limit, idle.input_bound) == ("trainer", "not") and idle.wait_share < 0.05 and idle.advice, idle
    """)
    equal(lines, [[60, 240, 9, 0, 0]], "what was counted")


# ---- what goes wrong ------------------------------------------------------------------------------------------------

OPTIONS = [
    ("batch_size=0", "OptionError", "batch_size"),
    ("batch_size=65537", "OptionError", "batch_size"),
    ("batch_size='4'", "OptionError", "batch_size"),
    ("batch_size=True", "OptionError", "batch_size"),
    ("batch_size=2.0", "OptionError", "batch_size"),
    ("bach_size=4", "TypeError", "did you mean batch_size?"),
    ("whatever=4", "TypeError", "there are dataset"),
    ("pipeline='turn(3)'", "OptionError", "turn"),
    ("pipeline=3", "OptionError", "pipeline"),
    ("pipeline='hflip\\0'", "OptionError", "pipeline"),
    ("seed=-2**63-1", "OptionError", "seed"),
    ("seed=2**64", "OptionError", "seed"),
    ("draws=-1", "OptionError", "draws"),
    ("draws=2**64", "OptionError", "draws"),
    ("draws='other'", "OptionError", "draws"),
    ("shuffle_buffer=0", "OptionError", "shuffle_buffer"),
    ("shuffle_buffer=5", "OptionError", "streams"),
    ("shuffle='no'", "OptionError", "shuffle"),
    ("drop_last=2", "OptionError", "drop_last"),
    ("partition='half'", "OptionError", "partition"),
    ("dealing='cards'", "OptionError", "strided chunk batch"),
    ("dealing=2", "OptionError", "dealing"),
    ("order='other'", "OptionError", "order"),
    ("rank=1", "OptionError", "rank"),
    ("rank=-1", "OptionError", "rank"),
    ("world_size=0", "OptionError", "world_size"),
    ("job=''", "OptionError", "job"),
    ("job='x' * 200", "OptionError", "job"),
    ("socket='/' + 'x' * 200", "OptionError", "socket"),
    ("epochs=0", "OptionError", "epochs"),
    ("steps_per_epoch=0", "OptionError", "steps_per_epoch"),
    ("on_error='ignore'", "OptionError", "fail substitute skip raise"),
    ("on_error='rais'", "OptionError", "did you mean raise"),
    ("max_errors=-1", "OptionError", "max_errors"),
    ("max_errors=1.5", "OptionError", "max_errors"),
    ("max_errors=float('nan')", "OptionError", "max_errors"),
    ("on_restart='hope'", "OptionError", "on_restart"),
    ("restart_timeout=-1", "OptionError", "restart_timeout"),
    ("slots=1", "OptionError", "slots"),
    ("slots=65", "OptionError", "slots"),
    ("timeout='soon'", "OptionError", "timeout"),
    ("timeout=float('nan')", "OptionError", "timeout"),
    ("open_timeout=-0.5", "OptionError", "open_timeout"),
    ("progress=3", "OptionError", "progress"),
    ("framework='abacus'", "OptionError", "framework"),
    ("copy=None", "OptionError", "copy"),
    ("state={}", "StateError", "version"),
    ("state=7", "StateError", "dict"),
]


@case("tqdm knows how long a loop is, also one that a state continues")
def _(box):
    need("tqdm")
    lines = trainer(box, box.daemon({"d": box.folder_of_files("d", 41)}), """
        import io, tqdm
        loader = dlclient.Loader("d", batch_size=4)
        def count(loop):
            bar = tqdm.tqdm(loop, file=io.StringIO())
            return [sum(1 for _ in bar), bar.n, bar.total]
        out(count(loader))
        out(count(dlclient.Loader("d", batch_size=4, epochs=2)))
        out(count(dlclient.Loader("d", batch_size=4, steps_per_epoch=5)))
        for batch in loader:
            if batch.step == 2:
                state = loader.state_dict()
                break
        bar = tqdm.tqdm(dlclient.Loader("d", batch_size=4, state=state), initial=3, file=io.StringIO())
        out([sum(1 for _ in bar), bar.n, bar.total])
    """)
    equal(lines, [[11, 11, 11], [22, 22, 22], [5, 5, 5], [8, 11, 11]], "batches, those shown, and those announced")


@case("every option that is wrong is refused with its name and what is allowed, and nothing stays behind")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 12)})
    lines = trainer(box, daemon, """
        import ast
        for text, kind, word in ast.literal_eval(sys.argv[1]):
            try:
                eval(f"dlclient.Loader('f', {text})")
                out("not refused")
            except (dlclient.Error, TypeError) as error:
                out("" if type(error).__name__ == kind and word in str(error) else f"{type(error).__name__}: {error}")
        out(dlclient.Loader("f", batch_size=numpy.int32(4), seed=-1, timeout=5, max_errors=None).batch_size)
    """, repr(OPTIONS))
    table = Table()
    for row, line in zip(OPTIONS, lines):
        with table.row(row):
            equal(line, "", "what came instead")
    equal(lines[len(OPTIONS):], [4], "a good one")
    table.done()
    within(5, lambda: not daemon.objects("jobs"), "no job is left")


@case("each trouble has an exception of its own, which is one of Python's kinds too, and keeps the daemon's words")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 12)})
    closed = box.path("closed")
    os.mkdir(closed)
    trainer(box, daemon, """
        L = dlclient.Loader
        refused(dlclient.DaemonNotRunning, lambda: L("f", socket="/nobody/is/here"), "/nobody/is/here", "systemctl")
        refused(dlclient.DatasetNotFound, lambda: L("g"), "there is no", "f")
        a = L("f", batch_size=2, world_size=2, rank=0, job="j")
        refused(dlclient.JobMismatch, lambda: L("f", batch_size=3, world_size=2, rank=1, job="j"), "batch_size", "2", "3")
        b = L("f", world_size=1, rank=0, job="mine")
        pid = os.fork()
        if pid == 0:                                        # another process: the older loader is not its own
            try:
                refused(dlclient.RankTaken, lambda: L("f", rank=0, world_size=1, job="mine"), "rank 0")
                for call in (lambda: next(iter(b)), lambda: b.set_epoch(1), lambda: b.stats(), lambda: iter(b)):
                    refused(dlclient.ForkedLoader, call, "fork")
                os._exit(0)
            except BaseException as error:
                print(repr(error), file=sys.stderr)
                os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
        full = L("f", batch_size=2, slots=2, shuffle=False)
        iterator = iter(full)
        held = [next(iterator)["image"] for _ in range(2)]
        text = refused(dlclient.RingFull, lambda: next(iterator), "2 of 2 slots", "batch 0 of epoch 0", "batch 1 of epoch 0",
                       "image", "copy=True", "slots=4")
        del held
        assert next(iterator).step == 2                     # goes on
        batch = next(iterator)
        image = batch["image"][0]
        refused(dlclient.StillInUse, batch.release, "arrays of it are alive: image", "batch.copy()")
        refused(dlclient.BatchReleased, lambda: batch["image"], "batch 3 of epoch 0")
        refused(dlclient.BatchReleased, lambda: batch.indices, "released")
        batch.release()
        del image
        with next(iterator) as batch:
            first = int(batch.label[0])
        refused(dlclient.BatchReleased, lambda: batch.label, "released")
        batch = next(iterator)
        full.close()
        for call in (lambda: next(iterator), lambda: full.stats(), lambda: iter(full), lambda: full.set_epoch(1),
                     lambda: full.load_state_dict({})):
            refused(dlclient.LoaderClosed, call, "closed")
        assert batch.n_samples == len(batch["label"])       # a batch that is held stays
        waiting = L("f", batch_size=1, timeout=0.3, slots=2)
        import subprocess
        os.kill(int(sys.argv[1]), signal.SIGSTOP)
        try:
            iterator = iter(waiting)
            def empty():
                for batch in iterator: pass
            refused(dlclient.DaemonTimeout, empty, "timeout=0.3")
        finally:
            os.kill(int(sys.argv[1]), signal.SIGCONT)
        assert next(iterator).epoch == 0                    # and goes on
        refused(dlclient.StateError, lambda: a.load_state_dict({"version": 9}), "9", "1")
        builtin = {"DaemonNotRunning": ConnectionError, "PermissionDenied": PermissionError, "DaemonGone": ConnectionError,
                   "DaemonTimeout": TimeoutError, "OptionError": ValueError, "DatasetNotFound": LookupError,
                   "StateError": ValueError, "LibraryNotFound": ImportError, "FrameworkMissing": ImportError,
                   "StillInUse": BufferError}
        for name in dlclient.__all__:
            kind = getattr(dlclient, name)
            if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning):
                error = kind("a sentence", 5)
                assert isinstance(error, (dlclient.Error, RuntimeError)) and str(error) == "a sentence" and error.errno == 5
                assert isinstance(error, builtin.get(name, RuntimeError)), name
                assert kind.__doc__
    """, daemon.pid)


@case("a socket that is closed to this user is PermissionDenied; a library that is missing or old says where and which")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 12)})
    trainer(box, daemon, """
        from dlclient import _errors, _library
        assert type(_errors.error_of(-111, "no permission for the daemon's socket x: join its group y")) is \\
            dlclient.PermissionDenied
        refused(dlclient.VersionMismatch, lambda: _library.check_versions("0.0.9", "/x.so"), "0.0.9", dlclient.__version__,
                "/x.so")
        refused(dlclient.VersionMismatch, lambda: _library.check_versions("1.0.0", "/x.so"), "1.0.0")
        refused(dlclient.VersionMismatch, lambda: _library.check_versions("what", "/x.so"), "what")
        _library.check_versions("0.9.9", "/x.so")
        ours, _library.__version__ = _library.__version__, "0.1.0+git20261128010203.0123abcd"
        for text in ("0.1.0", "0.1.0+git20261128010203.0123abcd", "0.1.0+git20270101000000.0", "0.2.0+git20250101000000.0"):
            _library.check_versions(text, "/x.so")
        refused(dlclient.VersionMismatch, lambda: _library.check_versions("0.1.0+git20261128010202.ffff", "/x.so"), "ffff")
        refused(dlclient.VersionMismatch, lambda: _library.check_versions("0.0.9+git20301128010202.ffff", "/x.so"), "ffff")
        _library.__version__ = ours
        import ctypes.util
        os.environ["DATALOADERD_LIBRARY"] = "/not/there.so"
        refused(dlclient.LibraryNotFound, lambda: dlclient.Loader("f"), "/not/there.so", "DATALOADERD_LIBRARY")
        os.environ["DATALOADERD_LIBRARY"] = ctypes.util.find_library("z") or ctypes.util.find_library("c")
        refused(dlclient.VersionMismatch, lambda: dlclient.Loader("f"), "dlc_open", dlclient.__version__)
    """)
    if os.getuid() == 0:
        os.chmod(daemon.socket, 0o600)
        trainer(box, daemon, """
            os.setgroups([]); os.setgid(65534); os.setuid(65534)
            refused(dlclient.PermissionDenied, lambda: dlclient.Loader("f"), "permission")
        """)


@case("an index that is being built is waited for: progress is told, its exceptions come through, a timeout ends it")
def _(box):
    folder = box.folder_of_files("f", 3000, size=20)
    daemon = box.daemon({"f": folder, "g": folder, "h": folder}, workers=1)
    trainer(box, daemon, """
        told = []
        loader = dlclient.Loader("f", progress=told.append)
        assert len(loader.dataset) == 3000 and all(isinstance(text, str) for text in told)
        def stop(text):
            raise ZeroDivisionError(text)
        try:
            dlclient.Loader("g", progress=stop)
        except ZeroDivisionError as error:
            assert "g" in str(error)
        try:
            dlclient.Loader("h", open_timeout=0)
        except dlclient.DaemonTimeout as error:
            assert "open_timeout=0 s" in str(error) and "h" in str(error), error
        assert len(dlclient.Loader("h").dataset) == 3000
    """)


# ---- around it ------------------------------------------------------------------------------------------------------

NOTHING_MISSING = "missing         nothing"


def tell(environment):
    """What python -m dlclient says, and its exit status."""
    done = subprocess.run([sys.executable, "-m", "dlclient"], env=environment, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=patience(60))
    equal(".no-dataset" in done.stdout or "Traceback" in done.stdout, False, done.stdout)
    return done.returncode, done.stdout


@case("python -m dlclient says which versions, which daemon, which frameworks, and what is missing")
def _(box):
    need("numpy")
    home, folder = Home(box), box.folder_of_files("f", 3)

    def here(**environment):
        return tell({**home.env, **environment_of(), "XDG_RUNTIME_DIR": home.runtime, "HOME_OF_TEST": home.folder,
                     "DATALOADERD_SOCKET": "", **environment})
    status, text = here()
    equal((status, home.pids()), (0, []), text)
    contains(text, LIBRARY, "private daemon  none runs; one starts with the first Loader(path)", f"program {PROGRAM}",
             "frameworks      numpy ", NOTHING_MISSING, "system daemon   none at /run/dataloaderd")
    home.read(folder)
    status, text = here()
    equal(status, 0, text)
    contains(text, f"private daemon  runs: pid {home.pids()[0]}, dataloaderd {version()}", "1 dataset, 0 jobs",
             f"socket {home.files('.sock')[0]}", f"log    {home.files('.log')[0]}", NOTHING_MISSING)
    home.stop()
    status, text = here(DATALOADERD_PROGRAM="/not/there")
    equal(status, 3, text)
    contains(text, "none can be started", "missing         a private daemon could not be started: DATALOADERD_PROGRAM")
    equal(home.pids(), [], "daemons that were started")


@case("python -m dlclient asks the daemon that DATALOADERD_SOCKET names, and no other")
def _(box):
    need("numpy")
    daemon = box.daemon({"f": box.folder_of_files("f", 3)})
    status, text = tell(environment_of(daemon))
    equal(status, 0, text)
    contains(text, f"runs: pid {daemon.process.pid}", daemon.socket, "DATALOADERD_SOCKET names it", NOTHING_MISSING)
    status, text = tell(environment_of(daemon, DATALOADERD_SOCKET="/nobody/is/here"))
    equal(status, 3, text)
    contains(text, "none: no daemon at /nobody/is/here", "or unset DATALOADERD_SOCKET")
    status, text = tell(environment_of(daemon, DATALOADERD_LIBRARY="/not/there.so"))
    equal(status, 1, text)
    contains(text, "missing         libdlclient cannot be loaded", "/not/there.so", "DATALOADERD_LIBRARY")


main()
