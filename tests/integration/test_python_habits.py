#!/usr/bin/env python3
"""What who comes from torch's DataLoader writes by habit: it works, or the error says what to write instead."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, case, equal, expected_order, identity_pixels, main, png, write
from private import Home
from pyclient import need, trainer


def served(path):
    return {"path": path, "format": "auto"}


# ---- words ----------------------------------------------------------------------------------------------------------

@case("each keyword of torch's DataLoader, DistributedSampler and ImageFolder is ours too, or is answered")
def _(box):
    need("torch")
    need("torchvision")
    trainer(box, None, """
        import inspect
        from torch.utils.data import DataLoader, DistributedSampler
        from torchvision.datasets import ImageFolder
        from dlclient._answers.keywords import ANSWERS
        ours = set(inspect.signature(dlclient.Loader.__init__).parameters)
        for kind in (DataLoader, DistributedSampler, ImageFolder):
            theirs = set(inspect.signature(kind.__init__).parameters) - {"self"}
            assert not theirs - ours - set(ANSWERS), (kind, theirs - ours - set(ANSWERS))
        assert not ours & set(ANSWERS), ours & set(ANSWERS)
        for name in ANSWERS:
            refused(TypeError, lambda: dlclient.Loader("p", **{name: 4}), "no keyword", name + ":")
    """)


@case("several of torch's keywords are answered at once, and objects of torch by what they are")
def _(box):
    need("torch")
    daemon = box.daemon({"p": box.folder_of_pictures("p", 12)})
    trainer(box, daemon, """
        import torch
        from torch.utils import data
        L = dlclient.Loader
        refused(TypeError, lambda: L("p", 4, num_workers=2, pin_memory=True, collate_fn=len), "num_workers: leave it out",
                'DATALOADERD_PRIVATE="workers=8"', "pin_memory: leave it out", "as_tuple=True")
        refused(TypeError, lambda: L("p", transform=len), "pipeline=", "layout(nchw)")
        refused(TypeError, lambda: L("p", 4, True), "batch_size", "names", "shuffle=False")
        things = data.TensorDataset(torch.zeros(9))
        things.root = "/data/things"
        refused(dlclient.OptionError, lambda: L(things, 4), "TensorDataset", "/data/things", "name of a dataset")
        refused(dlclient.OptionError, lambda: L(dataset=numpy.zeros(3)), "ndarray")
        for sampler, words in [
                (data.DistributedSampler(things, 2, 0, seed=3, drop_last=True), "leave it out seed=3 partition=\\"drop\\""),
                (data.DistributedSampler(things, 2, 0, shuffle=False), "shuffle=False"),
                (data.WeightedRandomSampler([1.0, 2.0], 70), "weighted(column=w, n=70)"),
                (data.WeightedRandomSampler([1.0, 2.0], 2, False), "n=2, replacement=false"),
                (data.SubsetRandomSampler([1, 2]), "indices="), (data.SequentialSampler(things), "shuffle=False"),
                (data.RandomSampler(things, True, 5), "random(replacement=true, n=5)"),
                (data.RandomSampler(things), "leave it out"), (data.BatchSampler([1], 1, False), "batch_size"),
                ([1, 2, 3], "indices=list(sampler)"), (len, "indices=list(sampler)")]:
            refused(dlclient.OptionError, lambda: L("p", sampler=sampler), "sampler", *words.split(" ", 0 if "(" in words else -1))
        assert len(next(iter(L("p", 5))).indices) == 5
    """)


@case("seed=\"torch\" is the seed of torch.manual_seed()")
def _(box):
    need("torch")
    daemon = box.daemon({"f": box.folder_of_files("f", 20)})
    lines = trainer(box, daemon, """
        refused(dlclient.OptionError, lambda: dlclient.Loader("f", seed="torch"), "not imported")
        refused(dlclient.OptionError, lambda: dlclient.Loader("f", seed="best"), "best")
        import torch
        torch.manual_seed(77)
        loader = dlclient.Loader("f", 20, seed="torch")
        out([loader.seed, next(iter(loader)).indices.tolist()])
    """)
    equal(lines, [[77, expected_order(20, seed=77)]], "seed and order")


# ---- batches --------------------------------------------------------------------------------------------------------

@case("a batch that is unpacked says what to write; as_tuple=True gives the fields in their order, or in the one asked for")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 12)})
    trainer(box, daemon, """
        def unpacked(loader):
            for images, labels in loader:
                pass
        def starred(loader):
            first, *others = next(iter(loader))
        def numbered(loader):
            for step, (images, labels, more) in enumerate(loader):
                pass
        loader = dlclient.Loader("p", 4, pipeline="decode")
        for use in (unpacked, starred, numbered):
            refused(TypeError, lambda: use(loader), "image, label", "batch['image']", "as_tuple=True")
        refused(KeyError, lambda: next(iter(loader))[0], "image", "as_tuple=True")
        batch = next(iter(loader))
        assert list(batch) == [name for name in batch] == sorted({**batch}) == list(dict(batch)) == ["image", "label"]
        names = list(batch.keys()); (a, b), c = batch.items(), {name: 1 for name in batch}
        assert len(c) == 2 and names == ["image", "label"]
        mine = dlclient.Batch({"a": numpy.zeros(3)})
        assert list(mine) == ["a"]
        for loader in (dlclient.Loader("p", 4, pipeline="decode", as_tuple=True, shuffle=False),
                       dlclient.Loader("p", 4, pipeline="decode", as_tuple=True, shuffle=False, copy=True)):
            n = 0
            for images, labels in loader:
                assert type((images, labels)) is tuple and images.shape[0] == labels.shape[0] == 4 and images.ndim == 4
                n += len(labels)
            assert n == 12
        (labels,) = next(iter(dlclient.Loader("p", 4, pipeline="decode", as_tuple=["label"])))
        assert labels.ndim == 1
        pair = dlclient.Loader("p", 2, pipeline="decode", as_tuple=("label", "image"), ranks=[0, 1])
        for (label, image), (_, other) in pair:
            assert label.ndim == 1 and image.shape == other.shape
        refused(dlclient.OptionError, lambda: next(iter(dlclient.Loader("p", as_tuple=["label", "box"]))), "box", "not a field", "image")
        for wrong in ("label", 3, [], [1]):
            refused(dlclient.OptionError, lambda: dlclient.Loader("p", as_tuple=wrong), "as_tuple")
    """)


@case("labels and short rows are copies, so that collecting them holds no slot; pictures share memory; copy= says otherwise")
def _(box):
    import numpy
    numpy.save(box.path("rows.npy"), numpy.arange(400, dtype="float32").reshape(100, 4))
    numpy.save(box.path("long.npy"), numpy.zeros((100, 30000), dtype="uint8"))
    daemon = box.daemon({"p": box.folder_of_pictures("p", 40), "rows": served(box.path("rows.npy")),
                         "long": served(box.path("long.npy"))})
    trainer(box, daemon, """
        def L(name="p", **options):
            return dlclient.Loader(name, 4, slots=3, shuffle=False, **({"pipeline": "decode"} if name == "p" else
                                                                       {"pipeline": "data"}), **options)
        labels = [batch["label"] for batch in L()]
        assert len(numpy.concatenate(labels)) == 40
        kept = [batch.numpy()["label"] for batch in L()] + [label for _, label in L(as_tuple=True)]
        assert len(kept) == 20
        rows = numpy.concatenate([batch["data"] for batch in L("rows")])
        assert rows.tolist() == numpy.arange(400).reshape(100, 4).tolist()
        refused(dlclient.RingFull, lambda: [batch["label"] for batch in L(copy=False)], "label", "copy=True")
        refused(dlclient.RingFull, lambda: [batch["data"] for batch in L("long")], "data")
        refused(dlclient.RingFull, lambda: [batch["image"] for batch in L()], "image")
        refused(dlclient.RingFull, lambda: list(L()), "list(loader)", "copy=True")
        assert len(list(L(copy=True))) == len([batch.copy() for batch in L()]) == 10
        batch = next(iter(L()))
        batch["label"][:] = 9                               # its own until it is gone, as before
        assert batch.label.tolist() == [9] * 4
        for wrong in (None, "big", 2):
            refused(dlclient.OptionError, lambda: L(copy=wrong), "copy", "small")
    """)


@case("batch_size=None gives single samples, whatever their fields are, in the order of batches of one")
def _(box):
    write(box.path("lines.jsonl"), "".join('{"text": "t%d", "n": %d, "words": ["a", "b%d"], "data": %s}\n' %
                                           (n, n, n, list(range(n))) for n in range(7)).encode())
    daemon = box.daemon({"p": box.folder_of_pictures("p", 5), "lines": served(box.path("lines.jsonl"))})
    lines = trainer(box, daemon, """
        for copy in ("small", True, False):
            loader = dlclient.Loader("lines", None, pipeline="text; n; words; data", seed=2, copy=copy)
            assert loader.batch_size is None and len(loader) == 7
            out([[s["text"], int(s["n"]), s["words"], s["data"].tolist(), s.indices.tolist()] for s in loader])
        image, label = next(iter(dlclient.Loader("p", batch_size=None, pipeline="decode", as_tuple=True)))
        assert image.ndim == 3 and label.ndim == 0
        kept = list(dlclient.Loader("p", batch_size=None, pipeline="decode", copy=True))
        assert [s.image.ndim for s in kept] == [3] * 5 and kept[0].copy()["image"].ndim == 3
    """)
    order = expected_order(7, seed=2)
    expected = [[f"t{n}", n, ["a", f"b{n}"], list(range(n)), [n]] for n in order]
    equal(lines, [expected] * 3, "samples")


@case("layout(channels_last) is torch's memory format of that name: [n, c, h, w] with strides, without a copy; elsewhere it is nhwc")
def _(box):
    need("torch")
    daemon = box.daemon({"p": box.folder_of_pictures("p", 6, width=9, height=7)})
    trainer(box, daemon, """
        import torch
        half = "center_crop(5:4) to(float32) "
        def first(end, **more):
            with dlclient.Loader("p", **dict(dict(batch_size=6, pipeline=half + end, framework="torch", shuffle=False, copy=True), **more)) as loader:
                return next(iter(loader))
        planes = first("layout(nchw)")["image"]
        for copy in (True, False):
            image = first("layout(channels_last)", copy=copy)["image"]
            assert image.shape == (6, 3, 5, 4) and image.is_contiguous(memory_format=torch.channels_last)
            assert torch.equal(image, planes)
        views = first("layout(channels_last) views(2)")
        assert all(view.is_contiguous(memory_format=torch.channels_last) for view in views["image"]) and torch.equal(views["image_2"], planes)
        one = first("layout(channels_last)", batch_size=None)["image"]
        assert torch.equal(one, planes[0])
        named = first("", pipeline="image: " + half + "layout(channels_last); label")
        assert torch.equal(named["image"], planes) and named["label"].shape == (6,)
        padded = first("", pipeline="resize(short=5, max=9) layout(channels_last) pad(max=9:9)")
        assert padded["image"].shape == (6, 3, 5, 6) and padded["image_mask"].shape == (6, 5, 6), padded
        assert first("layout(channels_last)", framework="numpy")["image"].shape == (6, 5, 4, 3)
        batch = first("layout(channels_last)", copy=False)
        assert batch.numpy()["image"].shape == batch.copy()["image"].shape == (6, 3, 5, 4)
        """)


@case("batch_size=None in torch: tensors without a batch's dimension, also moved to a device")
def _(box):
    need("torch")
    daemon = box.daemon({"p": box.folder_of_pictures("p", 5)})
    trainer(box, daemon, """
        import torch
        for copy in ("small", True):
            sample = next(iter(dlclient.Loader("p", None, pipeline="decode", framework="torch", copy=copy)))
            assert sample["image"].ndim == 3 and sample["label"].ndim == 0 and sample["label"].dtype == torch.int64
            moved = sample.to("cpu")
            assert moved["image"].shape == sample["image"].shape and moved["label"] == sample["label"]
            plain = next(iter(dlclient.Loader("p", None, pipeline="decode", copy=copy)))
            assert plain.torch()["label"].ndim == 0 and torch.equal(plain.torch()["image"], sample["image"])
    """)


@case("targets= are the labels, in each form and order; a wrong number of them is refused")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 10)})
    trainer(box, daemon, """
        mine = numpy.arange(100, 110)
        L = lambda **options: dlclient.Loader("p", 4, pipeline="decode", **options)
        for batch in L(targets=mine, seed=3):
            assert list(batch) == ["image", "label"]
            assert batch["label"].tolist() == (100 + batch.served).tolist() and batch.label.dtype == mine.dtype
        for image, label in L(targets=list(mine), as_tuple=True):
            assert label.min() >= 100
        more = {"box": numpy.ones((10, 4), "float32"), "age": range(10)}
        batch = next(iter(L(targets=more)))
        assert list(batch) == ["image", "label", "box", "age"] and batch.box.shape == (4, 4)
        assert batch.age.tolist() == batch.served.tolist() and "box" in batch and len(batch) == 4
        loader = L(targets=mine)
        mine[:] = 0                                         # a copy was taken
        assert next(iter(loader)).label.min() >= 100
        chosen = numpy.concatenate([b.label for b in L(targets=numpy.arange(10), indices=[7, 3, 3], shuffle=False)])
        assert chosen.tolist() == [7, 3, 3]
        refused(dlclient.OptionError, lambda: L(targets=[1, 2, 3]), "3 rows", "10 samples")
        for wrong in (5, ["a"] * 10, {3: range(10)}):
            refused(dlclient.OptionError, lambda: L(targets=wrong), "targets")
    """)


@case("len(loader.dataset) is that of indices=, and what belongs to the dataset's own samples keeps their number")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 12, width=8, height=8)})
    trainer(box, daemon, """
        def opened(indices=None, **more):
            return dlclient.Loader("p", 2, pipeline="decode", indices=indices, **more)
        whole, some = opened(), opened([7, 2, 2, 9, 11], targets=numpy.arange(12))
        assert (len(whole.dataset), len(some.dataset), len(opened(numpy.arange(3)).dataset)) == (12, 5, 3)
        assert sum(len(batch.indices) for batch in some) == 5 and len(some.sampler) == 5
        assert len(some.dataset.paths) == 12 == some.dataset.n_samples and list(some.dataset.paths) == list(whole.dataset.paths)
        assert some.dataset.targets.tolist() == whole.dataset.targets.tolist() and "12" in repr(some.dataset)
        assert some.state_dict()["samples"] == 12 == whole.state_dict()["samples"], some.state_dict()
        opened([7, 2, 2, 9, 11], state=some.state_dict())
        refused(dlclient.OptionError, lambda: opened([1], targets=[5]), "12 samples")
    """)


@case("indices= is torch's Subset: shuffled, in its own sequence, over ranks; what is no list of samples is refused")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 30)})
    lines = trainer(box, daemon, """
        L = lambda **options: dlclient.Loader("f", 4, **options)
        chosen = [3, 29, 0, 7, 7]
        out(sum([b.indices.tolist() for b in L(indices=chosen, shuffle=False)], []))
        out(sum([b.indices.tolist() for b in L(indices=numpy.array(chosen), seed=4)], []))
        out(len(L(indices=range(10))))
        out([sum([b.indices.tolist() for b in L(indices=range(9), rank=r, world_size=2, job="two", shuffle=False)], [])
             for r in range(2)])
        out(next(iter(L(indices=numpy.array([2, 3]), columns={"w": numpy.ones(30)}, shuffle=False))).indices.tolist())
        for wrong in (5, [1.5], [[1]], [], "abc"):
            refused(dlclient.OptionError, lambda: L(indices=wrong), "indices")
        refused(dlclient.OptionError, lambda: L(indices=numpy.ones(30, bool)), "flatnonzero")
        refused(dlclient.OptionError, lambda: L(indices=[1], sampler="random(n=5)"), "exclude")
        refused(dlclient.OptionError, lambda: next(iter(L(indices=[30]))), "30")
    """)
    chosen = [3, 29, 0, 7, 7]
    equal(lines, [chosen, [chosen[place] for place in expected_order(5, seed=4)], 3, [[0, 2, 4, 6, 8], [1, 3, 5, 7, 0]],
                  [2, 3]], "what was served")


@case("dataset.paths, .targets and .samples are ImageFolder's, below the folder; batch.paths are those of its samples")
def _(box):
    need("torchvision")
    folder = box.folder_of_pictures("p", 30, n_classes=4)
    daemon = box.daemon({"p": folder})
    trainer(box, daemon, """
        from torchvision.datasets import ImageFolder
        theirs = ImageFolder(sys.argv[1])
        names = [os.path.relpath(path, sys.argv[1]) for path, _ in theirs.samples]
        loader = dlclient.Loader("p", 4, pipeline="decode", seed=5)
        mine = loader.dataset
        assert list(mine.paths) == names and len(mine.paths) == 30 and mine.paths[-1] == names[-1]
        assert mine.paths[3:9:2] == names[3:9:2] and names[7] in mine.paths and mine.paths[30:] == []
        assert mine.targets.tolist() == theirs.targets and mine.targets.dtype == numpy.int64
        assert mine.samples == list(zip(names, theirs.targets)) and mine.classes == theirs.classes
        assert mine.numbers("label", [5, 5, 29]).tolist() == [theirs.targets[n] for n in (5, 5, 29)]
        assert mine.names_of([]) == [] and mine.names_of([2, 2]) == [names[2]] * 2
        for batch in loader:
            assert batch.paths == [names[n] for n in batch.served]
        assert batch.step == 7
        refused(IndexError, lambda: mine.paths[30])
        refused(dlclient.OptionError, lambda: mine.names_of([30]), "no sample 30", "has 30")
        refused(dlclient.OptionError, lambda: mine.names_of([-1]), "numbers of samples")
        refused(dlclient.OptionError, lambda: mine.numbers("image"), "image", "these are: label")
        refused(dlclient.BatchReleased, lambda: dlclient.Batch({"a": [1]}).paths)
        loader.close()
        refused(dlclient.LoaderClosed, lambda: mine.paths[0], "closed")
    """, folder)


@case("all names and numbers of more samples than one answer holds, of a table and of several datasets")
def _(box):
    import numpy
    n = 10000
    os.makedirs(box.path("d"))
    numpy.save(box.path("d", "age.npy"), numpy.arange(n, dtype="int16"))
    numpy.save(box.path("d", "score.npy"), numpy.arange(n) / 7)
    write(box.path("t.csv"), ("age,score,word\n" + "".join(f"{i % 90},{i / 4},w{i}\n" for i in range(n))).encode())
    long = box.path("long")
    for i in range(300):
        write(os.path.join(long, "c" * 200, "n" * 200 + f"{i:04d}.png"), b"")
    daemon = box.daemon({"t": served(box.path("t.csv")), "long": long, "again": long})
    trainer(box, daemon, """
        with dlclient.Loader("t", 8, pipeline="age") as loader:
            assert loader.dataset.numbers("age").tolist() == [i % 90 for i in range(10000)]
            assert loader.dataset.numbers("score").tolist() == [i / 4 for i in range(10000)]
            assert len(set(loader.dataset.paths)) == len(list(loader.dataset.paths)) == 10000
            refused(dlclient.OptionError, lambda: loader.dataset.targets, "label", "age score")
        with dlclient.Loader(["long", "again"], 8) as loader:
            names = list(loader.dataset.paths)
            assert len(names) == 600 and names[:300] == names[300:] and names[299].endswith("0299.png"), names[299]
    """)


@case("loader.sampler gives this rank's samples of the epoch, as DistributedSampler does, and knows its sizes")
def _(box):
    need("torch")
    daemon = box.daemon({"f": box.folder_of_files("f", 23)})
    trainer(box, daemon, """
        from torch.utils.data import DistributedSampler
        for world, rank, partition, shuffle in ((1, 0, "pad", True), (3, 2, "pad", True), (3, 1, "drop", True),
                                                (2, 1, "pad", False)):
            loader = dlclient.Loader("f", 4, world_size=world, rank=rank, partition=partition, shuffle=shuffle, seed=6,
                                     job=f"{world} {partition} {shuffle}", drop_last=True)
            theirs = DistributedSampler(range(23), world, rank, shuffle, 6, drop_last=partition == "drop")
            for epoch in (0, 5):
                loader.sampler.set_epoch(epoch); theirs.set_epoch(epoch)
                assert list(loader.sampler) == list(theirs)
                assert sum([b.indices.tolist() for b in loader], []) == list(theirs)[:len(theirs) // 4 * 4]
            assert (loader.sampler.num_samples, loader.sampler.total_size) == (theirs.num_samples, theirs.total_size)
            assert list(loader.sampler) != list(theirs) or not shuffle      # the next epoch
        for order in ("tdperm", "buffer"):
            loader = dlclient.Loader("f", 4, order=order, seed=2)
            assert list(loader.sampler) == sum([b.indices.tolist() for b in loader], [])
        both = [dlclient.Loader("f", 4, rank=r, world_size=2, job="e", partition="exact") for r in (0, 1)]
        exact = [loader.sampler for loader in both]
        assert [(s.num_samples, s.total_size) for s in exact] == [(12, 23), (11, 23)]
        assert sorted(sum(map(list, exact), [])) == list(range(23))
        made = dlclient.Loader("f", 4, indices=[1, 20, 2], shuffle=False)
        assert (list(made.sampler), made.sampler.num_samples, made.sampler.total_size) == ([1, 20, 2], 3, 3)
    """)


@case("after a resume loader.step and .remaining say where the loop is, for tqdm's initial=; len() stays the whole")
def _(box):
    need("tqdm")
    daemon = box.daemon({"f": box.folder_of_files("f", 43)})
    trainer(box, daemon, """
        import io, operator, tqdm
        for options, whole, done in ((dict(), 11, 3), (dict(epochs=2), 22, 14), (dict(steps_per_epoch=6), 6, 4),
                                     (dict(indices=range(43)), 11, 3), (dict(drop_last=True), 10, 3)):
            loader = dlclient.Loader("f", 4, **options)
            assert (loader.step, loader.remaining, len(loader)) == (0, whole, whole), (options, loader.step)
            for n, batch in enumerate(loader, 1):
                assert loader.step == n
                if n == done: break
            state = loader.state_dict()
            again = dlclient.Loader("f", 4, state=state, **options)
            assert (again.step, again.remaining, len(again)) == (done, whole - done, whole), (options, again.step)
            bar = tqdm.tqdm(again, initial=again.step, file=io.StringIO())
            assert [sum(1 for _ in bar), bar.n, bar.total] == [whole - done, whole, whole]
            assert again.step == 0                              # of the loop that comes
            again.load_state_dict(state)
            assert operator.length_hint(iter(again)) == whole - done
        endless = dlclient.Loader("f", 4, epochs=None)
        refused(TypeError, lambda: endless.remaining, "no end")
        assert len([batch for batch, _ in zip(iter(endless), range(20)) if batch is None]) == 0
    """)


# ---- docs/which-loader.md ---------------------------------------------------------------------------------------------

@case("each call of docs/which-loader.md on pictures opens a loader that gives batches")
def _(box):
    with open(os.path.join(ROOT, "docs", "which-loader.md"), encoding="utf-8") as page:
        calls = re.findall(r"Loader\((?:[^()]|\([^()]*\))*\)", page.read())
    calls = [call.replace(", ...", "").replace("/data/", box.folder + "/") for call in calls if call != "Loader()"]
    calls = [call for call in calls if "/corpus" not in call         # tokens: test_training_programs.py
             and '"photos"' not in call]                             # a name
    home = Home(box)
    for name in ("photos", "val", "a", "b"):
        box.folder_of_pictures(name, 40, width=260, height=260)
    lines = trainer(box, None, """
        from dlclient import Loader
        array, targets, weights = numpy.arange(20), numpy.arange(40), numpy.ones(40)
        my, dataset = lambda image: None, [{"image": numpy.zeros((3, 8, 8)), "label": 1}] * 70
        for call in json.loads(sys.argv[1]):
            with eval(call) as loader:
                out([len(next(iter(loader))["image"]) > 0, call])
    """, json.dumps(calls), **home.variables())
    equal([line[0] for line in lines], [True] * len(calls), "calls")
    equal(len(calls) >= 12, True, f"{calls}")


# ---- loops ----------------------------------------------------------------------------------------------------------

@case("a loop within a loop over one loader says to open a second; a loader that is pickled or copied says why not")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 30)})
    trainer(box, daemon, """
        import copy, pickle
        loader = dlclient.Loader("f", 4)
        def nested():
            for one in loader:
                for other in loader:
                    break
        refused(dlclient.Error, nested, "second loader")
        for thing in (loader, loader.dataset, loader.sampler):
            for use in (pickle.dumps, copy.copy, copy.deepcopy):
                refused(TypeError, lambda: use(thing), "in the other process")
    """)


@case("a thread that prefetches waits while all slots are held, goes on with a release, and one alone gets RingFull")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 60)})
    lines = trainer(box, daemon, """
        import collections, queue
        from dlclient import _slots
        grace, _slots.GRACE_SECONDS = _slots.GRACE_SECONDS, 0.1
        _slots.AGAIN_SECONDS = 1e9                          # a release is what wakes
        def ahead(loader, things):
            for batch in loader:
                things.append(batch)
            things.append(None)
        loader = dlclient.Loader("f", 4, slots=2, seed=1)
        things, got = collections.deque(), []
        thread = threading.Thread(target=ahead, args=(loader, things))
        thread.start()
        while len(things) < 2: time.sleep(0.01)
        time.sleep(0.5)                                     # it waits: nothing is lost, nothing raised
        assert thread.is_alive() and len(things) == 2
        assert loader.stats().held == 2                     # and holds no lock meanwhile
        while True:
            if not things: time.sleep(0.005); continue
            batch = things.popleft()
            if batch is None: break
            got += batch.indices.tolist()
            del batch
        thread.join()
        out(got)
        # whoever closes the loader wakes it
        loader = dlclient.Loader("f", 4, slots=2)
        things, said = [], []
        def waits():
            try:
                ahead(loader, things)
            except dlclient.LoaderClosed as error:
                said.append(str(error))
        thread = threading.Thread(target=waits); thread.start()
        while len(things) < 2: time.sleep(0.01)
        time.sleep(0.3)
        loader.close(); thread.join()
        assert len(said) == 1 and len(things) == 2, said
        # timeout= ends the wait
        loader = dlclient.Loader("f", 4, slots=2, timeout=0.4)
        said = []
        def full():
            try:
                list(loader)
            except dlclient.RingFull as error:
                said.append(str(error))
        thread = threading.Thread(target=full); thread.start(); thread.join()
        assert "2 of 2 slots" in said[0], said
        # the main thread: workers release what it gave them, and collecting in spite of them is an error
        _slots.GRACE_SECONDS = grace
        loader = dlclient.Loader("f", 4, slots=2)
        work, done = queue.Queue(), []
        def worker():
            while True:
                batch = work.get()
                if batch is None: return
                time.sleep(0.02)
                done.append(batch.indices.tolist())
                del batch
        thread = threading.Thread(target=worker); thread.start()
        for batch in loader:
            work.put(batch)
            del batch
        work.put(None); thread.join()
        out(sum(done, []))
        _slots.GRACE_SECONDS = 0.1
        stop = threading.Event()
        idle = threading.Thread(target=stop.wait); idle.start()
        loader = dlclient.Loader("f", 4, slots=2)
        refused(dlclient.RingFull, lambda: list(loader), "2 of 2 slots")
        stop.set(); idle.join()
        refused(dlclient.RingFull, lambda: list(loader), "2 of 2 slots")
    """)
    equal(lines, [expected_order(60, seed=1), expected_order(60)], "what was taken ahead")


@case("timeout=0 is no limit, as with torch")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 40, width=300, height=300)}, workers=1)
    lines = trainer(box, daemon, """
        out(sum(b.n_samples for b in dlclient.Loader("p", 8, pipeline="resize(600)", slots=2, timeout=0)))
    """)
    equal(lines, [40], "samples")


@case("Loader(state=...) takes seed and order from the state, and refuses what the program says otherwise")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 40)})
    lines = trainer(box, daemon, """
        for options in (dict(seed=9), dict(shuffle=False), dict(seed=3, draws=2, order="tdperm"),
                        dict(order="buffer", shuffle_buffer=7, seed=1), dict(sampler="random(n=40)", seed=5)):
            with dlclient.Loader("f", 4, **options) as loader:
                iterator = iter(loader)
                for _ in range(3): next(iterator)
                state = json.loads(json.dumps(loader.state_dict()))
                rest = [batch.indices.tolist() for batch in iterator]
            with dlclient.Loader("f", 4, state=state) as loader:
                out([[batch.indices.tolist() for batch in loader] == rest, len(rest)])
        refused(dlclient.StateError, lambda: dlclient.Loader("f", 4, state=state, seed=6), "seed", "5", "6")
        refused(dlclient.StateError, lambda: dlclient.Loader("f", 4, state=state, seed=0), "seed")
        refused(dlclient.StateError, lambda: dlclient.Loader("f", 4, state=dict(state, seed=6)), "check")
    """)
    equal(lines, [[True, 7]] * 5, "what is left")


@case("on_error=\"raise\" raises for the batch with the damaged sample's name, and goes on after it")
def _(box):
    folder = box.folder_of_pictures("p", 12)
    write(os.path.join(folder, "class000", "000005.png"), b"no picture at all")
    daemon = box.daemon({"p": folder})
    lines = trainer(box, daemon, """
        def all_of(loader):
            iterator, rows = iter(loader), []
            while True:
                try:
                    batch = next(iterator)
                    rows.append(batch.indices.tolist())
                except StopIteration:
                    return rows
                except dlclient.SampleDamaged as error:
                    assert "000005.png" in str(error) and list(error.errors) == [1], (error, error.errors)
                    state = loader.state_dict()
                    rows.append("damaged")
        options = dict(pipeline="decode", shuffle=False, on_error="raise")
        for more in (dict(), dict(copy=True), dict(as_tuple=False), dict(slots=2)):
            out(all_of(dlclient.Loader("p", 4, **options, **more)))
        pairs = iter(dlclient.Loader("p", 2, ranks=[0, 1], **options))
        out([batch.indices.tolist() for batch in next(pairs)])
        refused(dlclient.SampleDamaged, lambda: next(pairs), "000005.png")
        out([batch.indices.tolist() for batch in next(pairs)])
        state = None
        loader = dlclient.Loader("p", 4, **options)
        iterator = iter(loader); next(iterator)
        refused(dlclient.SampleDamaged, lambda: next(iterator), "batch 1 of epoch 0", "1 of its 4 samples")
        assert loader.state_dict()["position"] == 8         # after the batch that was left out
    """)
    equal(lines[:4], [[[0, 1, 2, 3], "damaged", [8, 9, 10, 11]]] * 4, "batches")
    equal(lines[4:], [[[0, 2], [1, 3]], [[8, 10], [9, 11]]], "batches of two ranks")


@case("pictures of different shapes in a batch: the pipeline is at fault, and the error says which step makes them one size")
def _(box):
    folder = box.folder_of_pictures("p", 6)
    write(os.path.join(folder, "class000", "000002.png"), png(30, 10, identity_pixels(2, 30, 10)))
    daemon = box.daemon({"p": folder})
    trainer(box, daemon, """
        for on_error in ("fail", "substitute", "skip", "raise"):
            refused(dlclient.OptionError, lambda: list(dlclient.Loader("p", 6, pipeline="resize(16)", on_error=on_error)),
                    "different shapes cannot be stacked", "center_crop(224)", "resize([256, 256])", "batch_size 1")
        assert [len(batch.indices) for batch in dlclient.Loader("p", 6, pipeline="resize([16, 16])")] == [6]
    """)


@case("exceptions that a program keeps hold no batch: the loop goes on, however many of them there are")
def _(box):
    folder = box.folder_of_pictures("p", 32)
    for number in range(0, 32, 4):
        write(os.path.join(folder, "class000", f"{number:06d}.png"), b"no picture at all")
    daemon = box.daemon({"p": folder})
    lines = trainer(box, daemon, """
        gc.disable()                                        # what is held is held, not waiting to be collected
        def kept(ranks=None, **more):
            loader = dlclient.Loader("p", 2, pipeline="decode", shuffle=False, slots=2, ranks=ranks, **more)
            iterator, bad, n = iter(loader), [], 0
            while True:
                try:
                    next(iterator)
                    n += 1
                except StopIteration:
                    return [n, len(bad)]
                except dlclient.Error as error:
                    assert type(error) in (dlclient.SampleDamaged, dlclient.OptionError), error
                    bad.append(error)
        out(kept(on_error="raise"))
        out(kept(on_error="raise", ranks=[0, 1]))
        out(kept(on_error="substitute", as_tuple=["image", "absent"]))
        iterator, bad = iter(dlclient.Loader("p", 2, pipeline="decode", shuffle=False, slots=2, copy=False,
                                             on_error="substitute")), []
        for batch in iterator:
            array = batch["image"]
            try:
                batch.release()
            except dlclient.StillInUse as error:
                bad.append(error)
            del array, batch
        out(len(bad))
    """)
    equal(lines, [[12, 6], [4, 5], [0, 18], 18], "batches and exceptions")


@case("a loop that goes on after SampleDamaged ends when the job does, with max_errors and without")
def _(box):
    folder = box.folder_of_pictures("p", 12)
    for number in (2, 5, 7):
        write(os.path.join(folder, "class000", f"{number:06d}.png"), b"no picture at all")
    daemon = box.daemon({"p": folder})
    lines = trainer(box, daemon, """
        def go_on(**more):
            iterator, damaged = iter(dlclient.Loader("p", 2, pipeline="decode", shuffle=False, **more)), 0
            while damaged < 100:
                try:
                    next(iterator)
                except dlclient.SampleDamaged:
                    damaged += 1
                except (dlclient.Error, StopIteration) as end:
                    return [damaged, type(end).__name__]
            return "it does not end"
        out(go_on(on_error="raise"))
        out(go_on(on_error="raise", max_errors=1)[1])         # how many batches come first is the workers' affair
        out(go_on(on_error="fail"))
        out([issubclass(dlclient.TooManyErrors, dlclient.JobFailed), issubclass(dlclient.JobFailed, dlclient.SampleDamaged)])
    """)
    equal(lines, [[3, "StopIteration"], "TooManyErrors", [1, "JobFailed"], [True, False]], "how each loop ended")


main()
