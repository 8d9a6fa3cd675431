#!/usr/bin/env python3
"""What functions and Dataset objects draw from generators that they own: numbers that belong to the sample, whichever
process makes it; what a process begins with; and what is said of generators that cannot be seeded."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, main
from private import Home
from pyclient import need, trainer

HELP = """
import functools, random, types, warnings
L = dlclient.Loader
class Data:
    def __init__(self, draw, n=48):
        self.draw, self.n = draw, n
    def __len__(self):
        return self.n
    def __getitem__(self, i):
        return {"i": i, "drawn": numpy.float64(self.draw())}
def drawn(dataset, n_workers, epochs=2, **more):
    found = {}
    with L(dlclient.from_dataset(dataset, {"i": ("int64", ()), "drawn": ("float64", ())}), 4, n_workers=n_workers, seed=3,
           **more) as loader:
        for epoch in range(epochs):
            loader.set_epoch(epoch)
            for batch in loader:
                for i, value in zip(batch["i"].tolist(), batch["drawn"].tolist()):
                    found[epoch, i] = value
    return found
def check(name, make, distinct=True):
    # The dataset is made again for each run: what one run has drawn must not matter for the next.
    one = drawn(make(), 1)
    assert len(one) == 96 and (not distinct or len(set(one.values())) == 96), (name, len(set(one.values())))
    for n in (1, 3):
        assert drawn(make(), n) == one, (name, n)
    return one
"""


def run(box, source, *arguments, **more):
    import textwrap
    home = Home(box)
    return trainer(box, None, HELP + textwrap.dedent(source), *arguments, **home.variables(), **more)


@case("generators that a Dataset owns draw what belongs to the sample, of each kind, with any number of processes")
def _(box):
    run(box, """
        R = numpy.random
        def owner(generator, draw):
            class Owner(Data):
                def __init__(self):
                    super().__init__(None)
                    self.rng = generator()
                def __getitem__(self, i):
                    return {"i": i, "drawn": numpy.float64(draw(self.rng))}
            return Owner
        kinds = {kind.__name__: owner(lambda kind=kind: R.Generator(kind(7)), lambda rng: rng.random())
                 for kind in (R.PCG64, R.PCG64DXSM, R.MT19937, R.Philox, R.SFC64)}
        kinds["RandomState"] = owner(lambda: R.RandomState(7), lambda rng: rng.normal())
        kinds["RandomState of PCG64"] = owner(lambda: R.RandomState(R.PCG64(7)), lambda rng: rng.normal())
        kinds["bits"] = owner(lambda: R.PCG64(7), lambda bits: bits.random_raw() >> 11)
        kinds["Random"] = owner(lambda: random.Random(7), lambda rng: rng.gauss(0, 1))
        try:
            import torch
        except ImportError:
            pass
        else:
            kinds["torch"] = owner(lambda: torch.Generator().manual_seed(7),
                                   lambda rng: torch.randn((), generator=rng, dtype=torch.float64).item())
        found = {name: check(name, kind) for name, kind in kinds.items()}
        assert len(set(map(str, found.values()))) == len(found)
    """, seconds=180)


@case("generators are found wherever a function or a Dataset has them: attributes, closures, defaults, globals, methods")
def _(box):
    with open(os.path.join(box.folder, "augment.py"), "w", encoding="utf-8") as file:
        file.write("import numpy\nrng = numpy.random.default_rng(1)\ndef draw():\n    return rng.random()\n"
                   "class Slotted:\n    __slots__ = ('inner',)\n    def __init__(self):\n"
                   "        self.inner = numpy.random.default_rng(2)\n")
    run(box, """
        sys.path.insert(0, sys.argv[1])
        import augment
        new = lambda: numpy.random.default_rng(7)
        RNG = None
        def named():
            return RNG.random()
        def by_name():
            global RNG
            RNG = new()
            return Data(lambda: named())
        def by_module():
            augment.rng = new()
            return Data(lambda: augment.rng.random())
        def by_modules_function():
            augment.rng = new()
            return Data(augment.draw)
        def by_closure():
            rng = new()
            return Data(lambda: [rng.random() for _ in range(2)][1])
        def by_default():
            return Data(lambda rng=new(): rng.random())
        def by_method():
            return Data(new().random)
        def by_partial():
            return Data(functools.partial(lambda rng: rng.random(), new()))
        def by_slots():
            slotted = augment.Slotted()
            return Data(lambda: slotted.inner.random())
        class Compose:          # as Albumentations: each transform has generators of its own, in lists and dicts
            def __init__(self, *transforms):
                self.transforms, self.py_random = list(transforms), random.Random(3)
            def __call__(self):
                return self.py_random.random() + sum(one["it"].random() for one in self.transforms)
        def by_containers():
            return Data(Compose({"it": new()}, {"it": new()}))
        class Shared:
            rng = new()
            def draw(self):
                return self.rng.random()
        def by_class():
            Shared.rng = new()
            return Data(Shared().draw)
        def by_subset():
            inner = Data(by_default().draw)
            class Subset(Data):
                def __getitem__(self, i):
                    return inner[i]
            return Subset(None)
        class Lazy(Data):       # made in the process that uses it, with the first sample
            rng = None
            def __getitem__(self, i):
                if self.rng is None:
                    self.rng = new()
                return {"i": i, "drawn": numpy.float64(self.rng.random())}
        def when_first_used():
            return Lazy(None)
        def by_what_holds_it():     # all at once: one that is not seeded changes the sum
            held, array, kept = frozenset([new()]), numpy.array([new()], dtype=object), functools.lru_cache(None)(new)
            def stream():
                rng = new()
                while True:
                    yield rng.random()
            numbers = stream()
            def draw():
                import augment_here as here
                return (next(iter(held)).random() + array[0].random() + kept().random() + next(numbers)) + here.rng.random()
            return Data(draw)
        sys.modules["augment_here"] = types.ModuleType("augment_here")
        sys.modules["augment_here"].rng = new()
        class Walked(set):          # as one that another thread changes
            def __iter__(self):
                raise RuntimeError("Set changed size during iteration")
        class Array(numpy.ndarray):
            def ravel(self):
                raise KeyError("code of the program's is run")
        def by_sets():
            rng, held, walked = new(), set(map(str, range(50))), Walked([new()])
            held.add(rng)
            array = numpy.array([new()], dtype=object).view(Array)
            def draw():
                one, = (one for one in held if type(one) is not str)
                return one.random() + next(set.__iter__(walked)).random() + array[0].random()
            return Data(draw)
        for make in (by_sets, by_name, by_module, by_modules_function, by_closure, by_default, by_method, by_partial, by_slots,
                     by_containers, by_class, by_subset, when_first_used, by_what_holds_it):
            check(make.__name__, make)
        two = new(), new()      # equal ones draw different numbers
        one = check("two", lambda: Data(lambda: two[0].random() - two[1].random()))
        assert 0.0 not in one.values()
    """, box.folder, seconds=240)


@case("functions of a pipeline, with and without rng, for samples, several fields and whole batches")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 33, width=16, height=16)}, workers=2)
    import textwrap
    trainer(box, daemon, HELP + textwrap.dedent("""
        class Noise:
            def __init__(self):
                self.state = numpy.random.RandomState(5)
            def one(self, image):
                image[...] = self.state.randint(0, 256, image.shape)
            def given(self, image, rng):
                image[...] = self.state.randint(0, 256, image.shape)
                image[0, 0, 0] = rng.integers(256)
            def named(self, image, label):
                image[...] = self.state.randint(0, 256, image.shape)
        for name, text in (("one", "python(f)"), ("given", "python(f)"), ("named", "python(f)"),
                           ("one", "python(f, batch=true)")):
            part = "image, label: " if name == "named" else ""
            def run(n):
                with L("p", 3, pipeline=part + "center_crop(8) " + text, workers={"f": getattr(Noise(), name)},
                       n_workers=n) as loader:
                    return {index: image.tobytes() for batch in loader
                            for index, image in zip(batch.indices.tolist(), batch["image"])}
            alone = run(1)
            assert len(set(alone.values())) == 33, (name, text, len(set(alone.values())))
            assert run(3) == alone, (name, text)
    """), seconds=120)


@case("what the first sample draws changes no generator of the training process")
def _(box):
    run(box, """
        rng, dice = numpy.random.default_rng(1), random.Random(1)
        dlclient.from_dataset(Data(lambda: rng.random() + dice.random()))
        assert rng.random() == numpy.random.default_rng(1).random() and dice.random() == random.Random(1).random()
    """)


@case("generators that cannot be seeded are told when the loader opens, with where they are")
def _(box):
    run(box, """
        class RandomGenerator:          # of some library, in C: nothing of it can be seen
            __slots__ = ()
            def seed(self, n): pass
            def random(self): return 0.5
        def told(make, **more):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                L(dlclient.from_dataset(make), 4, n_workers=2, **more).close()
            return [str(one.message) for one in caught if one.category is dlclient.LoaderWarning]
        new, cached = lambda i: numpy.random.default_rng(i), functools.lru_cache(maxsize=8)(lambda i: numpy.random.default_rng(i))
        held = {new(1), new(2)}
        for i in range(2):
            cached(i)
        assert not told(Data(lambda held={new(1)}: next(iter(held)).random()))
        for make in (Data(lambda: sum(one.random() for one in held)), Data(lambda: cached(1).random())):
            text, = told(make)      # which of them is which differs between processes
            assert "Generator" in text and "{...}" in text, text
        unknown = Data(RandomGenerator().random)
        text, = told(unknown)
        for word in ("RandomGenerator", "Data.draw", "rng", "sample_rng"):
            assert word in text, (word, text)
        text, = told(Data(random.SystemRandom().random))
        assert "SystemRandom" in text, text
        rng = numpy.random.default_rng(1)
        text, = told(Data(rng.random), worker_start="threads")
        assert "threads" in text and "rng" in text, text
        assert told(Data(rng.random)) == [] == told(Data(numpy.random.random)) == told(Data(random.random))
        assert told(Data(lambda: numpy.random.default_rng().random())) == []
    """)


@case("worker_init_fn is called in each process before its first sample, and get_worker_info() says which it is")
def _(box):
    run(box, """
        try:
            import torch
        except ImportError:
            torch = None
        class Told(Data):
            me = None
            def __getitem__(self, i):
                info = dlclient.get_worker_info()
                assert info.dataset is self and self.me == info.id and info.num_workers == 3, (self.me, info)
                if torch is not None:
                    theirs = torch.utils.data.get_worker_info()
                    assert (theirs.id, theirs.num_workers, theirs.seed) == (info.id, 3, info.seed), theirs
                    assert theirs.dataset is self
                time.sleep(0.002)
                return {"i": i, "drawn": numpy.float64(info.id), "seed": numpy.uint64(info.seed)}
        def begin(number):
            info = dlclient.get_worker_info()
            assert number == info.id
            info.dataset.me = number
            if torch is not None:
                assert torch.initial_seed() == info.seed
        assert dlclient.get_worker_info() is None
        fields = {"i": ("int64", ()), "drawn": ("float64", ()), "seed": ("uint64", ())}
        with L(dlclient.from_dataset(Told(None, 300), fields), 4, n_workers=3, worker_init_fn=begin) as loader:
            found = {(id, seed) for batch in loader for id, seed in zip(batch["drawn"].tolist(), batch["seed"].tolist())}
        assert 1 < len(found) <= 3 and len({seed for _, seed in found}) == len(found), found
        class Own(Data):        # what it makes in a process is seeded like all others
            def __getitem__(self, i):
                return {"i": i, "drawn": numpy.float64(self.rng.random())}
        def make(number):
            dlclient.get_worker_info().dataset.rng = numpy.random.default_rng(number)
        one = drawn(Own(None), 1, worker_init_fn=make)
        assert len(set(one.values())) == 96 and drawn(Own(None), 3, worker_init_fn=make) == one
        def fails(number):
            raise KeyError("no such shard")
        loader = L(dlclient.from_dataset(Data(random.random)), 4, n_workers=2, worker_init_fn=fails)
        refused(dlclient.OptionError, lambda: next(iter(loader)), "worker_init_fn", "KeyError", "no such shard")
        refused(dlclient.OptionError, lambda: L("d", worker_init_fn=3), "worker_init_fn", "called")
        refused(dlclient.OptionError, lambda: L("d", worker_init_fn=begin), "worker_init_fn", "workers")
    """, seconds=120)


main()
