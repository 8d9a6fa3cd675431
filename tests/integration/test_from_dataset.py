#!/usr/bin/env python3
"""dlclient.from_dataset(): a Dataset object of the trainer's as the source of a loader. Its samples are made by worker
processes; order, ranks, epochs, resume and on_error are as for a dataset of files."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, equal, main
from private import Home
from pyclient import need, trainer

HELP = """
import collections, random
L, E = dlclient.Loader, dlclient.OptionError
class Numbers:
    def __init__(self, n=21, make=None):
        self.n, self.make = n, make
    def __len__(self):
        return self.n
    def __getitem__(self, i):
        if self.make is not None:
            return self.make(i)
        return {"x": numpy.full((2, 3), i, "f4"), "noise": numpy.random.random(2), "dice": random.random(), "y": i}
def values(loader, names=("x", "noise", "dice", "y"), epochs=1):
    with loader:
        return [[loader.set_epoch(epoch)] and [(batch.indices.tolist(),) + tuple(batch[name].tobytes() for name in names)
                                               for batch in loader] for epoch in range(epochs)]
"""


def make_folder(path):
    os.makedirs(path)
    return path


def run(box, source, *arguments, **more):
    import textwrap
    home = Home(box)
    return trainer(box, None, HELP + textwrap.dedent(source), *arguments, **home.variables(), **more)


@case("order and bits are those of a loader: any number of processes, ranks, epochs, and a resumed run")
def _(box):
    run(box, """
        source = dlclient.from_dataset(Numbers())
        assert len(source) == 21 and "x float32 (2, 3)" in repr(source), repr(source)
        one = values(L(source, 4, n_workers=1, seed=3), epochs=2)
        for n in (2, 4):
            assert values(L(source, 4, n_workers=n, seed=3), epochs=2) == one
        assert values(L(source, 4, n_workers=2, seed=4), epochs=2) != one
        order = [index for batch in one[0] for index in batch[0]]
        assert sorted(order) == list(range(21)) and order != sorted(order)
        for (indices, x, noise, dice, y) in one[0]:
            assert numpy.frombuffer(y, "i8").tolist() == indices
            assert (numpy.frombuffer(x, "f4").reshape(-1, 6) == numpy.array(indices)[:, None]).all()
        draws = [numpy.frombuffer(batch[k], "f8").tolist() for batch in one[0] for k in (2, 3)]
        assert len(set(sum(draws, []))) == 21 * 3, "each sample draws its own"
        assert one[0][0][2] != one[1][0][2], "and each epoch"
        try:
            import torch
        except ImportError:
            pass
        else:
            from torch.utils.data.distributed import DistributedSampler
            sampler = DistributedSampler(range(21), 1, 0, seed=3)
            assert list(sampler) == order
        parts = []
        for rank in range(2):
            with L(source, 4, n_workers=2, seed=3, rank=rank, world_size=2, job="two", partition="exact") as loader:
                parts.append([index for batch in loader for index in batch.indices.tolist()])
        assert parts[0] == order[::2] and parts[1] == order[1::2]
        with L(source, 4, n_workers=2, seed=3) as loader:
            iterator = iter(loader)
            first = [next(iterator).indices.tolist() for _ in range(2)]
            state = loader.state_dict()
        with L(source, 4, n_workers=3, state=state) as loader:
            rest = [batch.indices.tolist() for batch in loader]
        assert first + rest == [batch[0] for batch in one[0]]
        refused(dlclient.StateError, lambda: L(dlclient.from_dataset(Numbers(22)), 4, state=state), "dataset")
        single = list(L(source, None, n_workers=1, shuffle=False, copy=True, indices=[5, 7]))
        assert [int(batch["y"]) for batch in single] == [5, 7] and single[0]["x"].shape == (2, 3)
    """, seconds=120)


@case("a batch has the structure of a sample: tuples, dicts, named tuples, numbers, tensors, pictures")
def _(box):
    run(box, """
        Pair = collections.namedtuple("Pair", "x y")
        def first(make, **more):
            with L(dlclient.from_dataset(Numbers(4, make)), 4, n_workers=1, shuffle=False, **more) as loader:
                return next(iter(loader))
        x, label = first(lambda i: (numpy.full((2, 2), i, "u1"), i))
        assert x.shape == (4, 2, 2) and x.dtype == numpy.uint8 and label.tolist() == [0, 1, 2, 3]
        tree = first(lambda i: [{"a": Pair(i, 0.5), "b c": (True, numpy.float16(i))}, Pair(numpy.arange(i, i + 3), [i])])
        assert isinstance(tree, list) and isinstance(tree[1], Pair) and isinstance(tree[0]["a"], Pair)
        assert tree[0]["a"].x.dtype == numpy.int64 and tree[0]["a"].y.dtype == numpy.float64
        assert tree[0]["b c"][0].dtype == bool and tree[0]["b c"][1].dtype == numpy.float16
        assert tree[1].x.tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5]] and tree[1].y[0].tolist() == [0, 1, 2, 3]
        assert first(lambda i: i * 10).tolist() == [0, 10, 20, 30]
        assert first(lambda i: numpy.array([i, 1], ">i4")).tolist() == [[0, 1], [1, 1], [2, 1], [3, 1]]
        batch = first(lambda i: {"a": i, "z": -i})
        assert batch["z"].tolist() == [0, -1, -2, -3] and batch.indices.tolist() == [0, 1, 2, 3]
        batch = first(lambda i: (i, -i), as_tuple=False)
        assert batch["0"].tolist() == [0, 1, 2, 3] and batch["1"].tolist() == [0, -1, -2, -3]
        with L(dlclient.from_dataset(Numbers(4, lambda i: (i, -i)), fields=["a", "b"]), 4, shuffle=False, n_workers=1,
               as_tuple=["b", "a"]) as loader:
            assert next(iter(loader))[0].tolist() == [0, -1, -2, -3]
        told = dlclient.from_dataset(Numbers(4, lambda i: {"a": numpy.zeros((2, 3), "f4") + i, "b": i}),
                                     fields={"a": ("float32", (2, 3)), "b": numpy.zeros((), "i8")})
        with L(told, 4, shuffle=False, n_workers=1) as loader:
            assert next(iter(loader))["a"][3, 1, 2] == 3
        try:
            from PIL import Image
        except ImportError:
            pass
        else:
            assert first(lambda i: (Image.new("RGB", (5, 4), (i, 0, 0)), i))[0][:, 0, 0, 0].tolist() == [0, 1, 2, 3]
    """, seconds=120)


@case("a Dataset of torch's gives torch's tensors, and changes nothing that the training process draws")
def _(box):
    need("torch")
    run(box, """
        import torch
        class Noise(torch.utils.data.Dataset):
            def __len__(self):
                return 9
            def __getitem__(self, i):
                return torch.rand(3, 4) + i, torch.tensor(i, dtype=torch.bfloat16), random.random()
        torch.manual_seed(1)
        wanted = torch.rand(2)
        torch.manual_seed(1)
        numpy.random.seed(1)
        random.seed(1)
        source = dlclient.from_dataset(Noise())
        assert torch.equal(torch.rand(2), wanted) and random.random() == random.Random(1).random()
        def read(n, **more):
            with L(source, 4, n_workers=n, copy=True, **more) as loader:
                return list(loader)
        one = read(1)
        assert isinstance(one[0][0], torch.Tensor) and one[0][1].dtype == torch.bfloat16
        assert one[0][2].dtype == torch.float64
        for a, b in zip(one, read(3)):
            assert all(torch.equal(x, y) for x, y in zip(a, b))
        assert isinstance(read(1, framework="numpy")[0][0], numpy.ndarray)
        refused(E, lambda: L(Noise(), 4), "Noise is an object of Python", "Loader(dlclient.from_dataset(dataset)")
        refused(TypeError, lambda: L(source, 4, num_workers=2, collate_fn=len), "n_workers=4", "the structure of a sample")
    """, seconds=120)


@case("a sample that raises or differs from the first is damaged, and the error names it and what to do")
def _(box):
    run(box, """
        def attempt(at, *words):
            def make(i):
                return at() if i == 7 else (numpy.zeros((3, 4), "f4"), {"y": i})
            with L(dlclient.from_dataset(Numbers(9, make)), 4, n_workers=2) as loader:
                refused(dlclient.SampleDamaged, lambda: list(loader), "sample 7 (Numbers[7])", "python(Numbers): ", *words)
        attempt(lambda: (numpy.zeros((3, 5), "f4"), {"y": 1}), "[0] is float32 (3, 5), and float32 (3, 4) is expected",
                "crop, resize, pad or convert in the dataset")
        attempt(lambda: (numpy.zeros((3, 4), "f8"), {"y": 1}), "[0] is float64 (3, 4), and float32 (3, 4)")
        attempt(lambda: (numpy.zeros((3, 4), "f4"), {"z": 1}), "has no [1]['y']")
        attempt(lambda: (numpy.zeros((3, 4), "f4"), {"y": 1, "z": 1}), "[1] has 2 items, and 1 item is expected")
        attempt(lambda: (numpy.zeros((3, 4), "f4"), {"y": "text"}), "[1]['y'] is text")
        attempt(lambda: (numpy.zeros((3, 4), "f4"), {"y": None}), "[1]['y'] is None")
        attempt(lambda: numpy.zeros((3, 4), "f4"), "it is a ndarray, and 2 items are expected")
        attempt(lambda: None, "it is a NoneType")
        attempt(lambda: [][5], "IndexError: list index out of range", "in <lambda>")
        attempt(lambda: 1 / 0, "ZeroDivisionError")
        attempt(lambda: os._exit(3), "3 worker processes ended over it")
        class Lies(Numbers):
            def __init__(self):
                self.rows = [1.5] * 5
            def __len__(self):
                return 9
            def __getitem__(self, i):
                return self.rows[i]
        with L(dlclient.from_dataset(Lies()), 4, n_workers=2, on_error="skip", copy=True) as loader:
            assert sum(len(batch) for batch in loader) == 5
        slow = Numbers(9, lambda i: time.sleep(30) if i == 7 else i)
        with L(dlclient.from_dataset(slow), 4, n_workers=1, worker_timeout=0.4, shuffle=False) as loader:
            refused(dlclient.SampleDamaged, lambda: list(loader), "Numbers[7]", "worker_timeout=0.4")
    """, seconds=180)


@case("texts are a list of str, as of torch's DataLoader, and what differs in length is ragged where fields= says so")
def _(box):
    run(box, """
        def text_of(i):
            return "\u00e4" * (i % 3) + "x" * (i * 5 % 17)
        def make(i):
            return {"caption": text_of(i), "x": numpy.full(3, i, "f4"), "more": (text_of(i + 1), i)}
        source = dlclient.from_dataset(Numbers(21, make))
        assert "caption text of up to 16384 bytes" in repr(source), repr(source)
        def taken(loader):
            with loader:
                return [(batch["caption"], batch["x"].tolist(), batch["more"][0], batch["more"][1].tolist()) for batch in loader]
        def plain(caption, x, text, number):
            return list(caption), x, list(text), number
        for n in (1, 3):
            batches = [plain(*batch) for batch in taken(L(source, 4, n_workers=n, shuffle=False))]
            assert [len(batch[0]) for batch in batches] == [4] * 5 + [1]
            for caption, x, text, numbers in batches:
                assert all(type(one) is str for one in caption + text)
                assert caption == [text_of(i) for i in numbers] and text == [text_of(i + 1) for i in numbers]
        try:
            from torch.utils.data import DataLoader
        except ImportError:
            pass
        else:
            theirs = [(batch["caption"], batch["x"].tolist(), batch["more"][0], batch["more"][1].tolist())
                      for batch in DataLoader(Numbers(21, make), 4)]
            assert [plain(*batch) for batch in theirs] == batches
        only = dlclient.from_dataset([text_of(i) for i in range(9)])
        with L(only, 4, n_workers=2, shuffle=False) as loader:
            assert [list(batch) for batch in loader] == [[text_of(i) for i in range(k, min(k + 4, 9))] for k in (0, 4, 8)]
        assert dlclient.check_steps(source, 16) == 16
        def boxes_of(i):
            return numpy.arange(i % 4 * 4, dtype="f4").reshape(-1, 4) + i
        def detection(i):
            return {"image": numpy.full((3, 4), i, "u1"), "boxes": boxes_of(i), "labels": numpy.arange(i % 4), "name": f"n{i}"}
        source = dlclient.from_dataset(Numbers(21, detection), fields={
            "image": ("uint8", (3, 4)), "boxes": ("float32", (-1, 4), 3), "labels": ("int64", -1, 3), "name": (str, 8)})
        for n in (1, 3):
            with L(source, 4, n_workers=n, seed=3) as loader:
                for batch in loader:
                    for i, sample in enumerate(batch.indices.tolist()):
                        assert (batch["boxes"][i] == boxes_of(sample)).all() and batch["boxes"][i].shape == (sample % 4, 4)
                        assert batch["labels"][i].tolist() == list(range(sample % 4)) and (batch["image"][i] == sample).all()
                    assert list(batch["name"]) == [f"n{i}" for i in batch.indices.tolist()]
        def damaged(dataset, *words, **more):
            with L(dlclient.from_dataset(dataset, **more), 1, n_workers=1, shuffle=False) as loader:
                refused(dlclient.SampleDamaged, lambda: list(loader), *words)
        damaged(["a", "b" * 20], "list[1]", "it is 20 bytes of text, and text[..16] is declared", "max_bytes=", max_bytes=16)
        damaged(["a", 5], "it is int64 (), and text of up to 16384 bytes is expected")
        damaged([(1, "a"), (1, None)], "[1] is None")
        damaged([1, "a"], "is text")
        damaged([{"x": numpy.zeros((2, 4), "f4")}, {"x": numpy.zeros((9, 4), "f4")}],
                "['x'] is float32 (9, 4), and float32[..3:4] is declared", fields={"x": ("float32", (-1, 4), 3)})
        damaged([{"x": numpy.zeros((2, 4), "f4")}, {"x": numpy.zeros((2, 4), "f8")}],
                "['x'] is float64 (2, 4), and float32[..3:4] is expected", fields={"x": ("float32", (-1, 4), 3)})
        damaged([{"x": numpy.zeros((2, 4), "f4")}, {"x": numpy.zeros(4, "f4")}],
                "['x'] is float32 (4,), and float32[..3:4] is expected", fields={"x": ("float32", (-1, 4), 3)})
        def no(form, *words):
            refused(E, lambda: dlclient.from_dataset([1], fields={"x": form}), *words)
        no(("float32", (-1, 4)), "write the most that it has after the shape")
        no(("float32", (4, -1), 5), "only the first dimension may be -1")
        no(("float32", (-1, -1), 5), "only the first dimension may be -1")
        no(("float32", (3, 4), 5), "a sample's shape is needed")
        no((str, "many"), "expected str, or (str, 1000)")
        no(("float32", (-1, 4), 0), "the most that it has")
        refused(E, lambda: dlclient.from_dataset(["a"], max_bytes=0), "max_bytes")
    """, seconds=180)


@case("tensors that NumPy cannot have are refused with their place and what to return instead")
def _(box):
    need("torch")
    run(box, """
        import torch
        quantized = torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.qint8)
        for tensor, word, advice in ((torch.zeros(3, 3).to_sparse(), "sparse", ".to_dense()"), (quantized, "quantized", "int_repr"),
                                     (torch.zeros(3, device="meta"), "meta", "no numbers")):
            refused(E, lambda: dlclient.from_dataset([(1, tensor)]), f"list[0][1] is a", word, advice)
            dataset = Numbers(3, lambda i: torch.zeros(3) if i == 0 else tensor)
            with L(dlclient.from_dataset(dataset), 1, n_workers=1, shuffle=False) as loader:
                refused(dlclient.SampleDamaged, lambda: list(loader), "Numbers[1]", "the first: is a", word, advice)
    """, seconds=120)


@case("with DATALOADERD_SOCKET the error says where an object is served, and huge samples are told by their field")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 3)})
    home = Home(box)
    trainer(box, daemon, """
        source = dlclient.from_dataset([1, 2, 3])
        refused(dlclient.PermissionDenied, lambda: dlclient.Loader(source, 1), "without DATALOADERD_SOCKET",
                "the object that from_dataset() was given is served by a daemon of your own")
        del os.environ["DATALOADERD_SOCKET"]
        huge = dlclient.from_dataset(range(9), fields={"x": ("float32", (2**30, 2**20))})
        refused(dlclient.Error, lambda: dlclient.Loader(huge, 1), "whose x has up to 4.0 PiB", "limit of 4.0 TiB a ring")
    """, **home.variables())


@case("what cannot be a dataset is refused with what is wrong")
def _(box):
    run(box, """
        def no(dataset, *words, **more):
            refused(E, lambda: dlclient.from_dataset(dataset, **more), "from_dataset" if not more else "fields", *words)
        class Long(Numbers):
            def __len__(self):
                return self.n
        no(iter([1]), "list_iterator does not have __len__ and __getitem__", "only iterated over")
        no(Numbers, "give an object, and not its class")
        no(5, "a int does not have")
        no([], "the list is empty")
        no(Long(-1), "len() of the Long fails: ValueError")
        no(Long("three"), "len() of the Long fails: TypeError")
        no(Long(2**40 + 1), "1099511627776 samples are the limit")
        no(Long(2**70), "OverflowError")
        no(Numbers(3, lambda i: 1 / 0), "the first sample, Numbers[0], fails: ZeroDivisionError")
        class Unwilling:
            def __array__(self, *more, **yet_more):
                raise RuntimeError("not today")
        no([Unwilling()], "the first sample, list[0], cannot be made into arrays: RuntimeError: not today")
        no([b"text"], "list[0] is bytes: return numbers in its place")
        no([(1, None)], "list[0][1] is None")
        no([{"a": object()}], "list[0]['a'] is a object")
        no([2**70], "more than 64 bits")
        no([numpy.array(["a"])], "list[0] is text (dtype <U1), which a batch cannot have", "its tokens", "an array of uint8")
        no([1], "'x' has 2147483653 elements in a dimension", fields={"x": ("float32", (2**31 + 5,))})
        no([1], "'x' has 9 dimensions, 7 are allowed", fields={"x": ("float32", (2,) * 9)})
        no([1], "'x' is text (dtype <U3)", fields={"x": ("<U3", (2,))})
        no([1], "'x' has the dtype complex64", "convert it to one of", fields={"x": ("complex64", (2,))})
        no([1], "names and shapes of the 32 fields are a text of", "shorter names",
           fields={"a" * 29 + str(i): ("float32", (2000000000,) * 7) for i in range(10, 42)})
        no([1j], "a complex")
        no([()], "nothing in it")
        no([(1, ())], "list[0][1] has nothing in it: leave it out")
        no([(1, numpy.zeros((0, 4)))], "list[0][1] has the shape (0, 4)", "leave it out")
        no([1], "'shape' cannot be the name", fields={"shape": ("float32", (3,))})
        no([1], "cannot be the name", fields={"x\\n": ("float32", (3,))})
        no([1], "one element or more", fields={"x": ("float32", (0, 3))})
        deep = 1
        for _ in range(20):
            deep = [deep]
        no([deep], "nested more than 8")
        no([numpy.zeros((1,) * 8)], "8 dimensions, 7 are allowed")
        no([(1, 2)], "1 names, and a sample has 2 fields", fields=["a"])
        no([(1, 2)], "each name once", fields=["a", "a"])
        no([(1, 2)], "'a b' cannot be the name", fields=["a b", "c"])
        no([(1, 2)], "expected names", fields="ab")
        no([1], "expected a dtype and a shape", fields={"a": 3})
        no([1], "expected a dtype and a shape", fields={"a": ("float33", ())})
        no([1], "without that of the batch", fields={"a": ("float32", (-2, 3))})
        no([1], "'max' cannot be the name", fields={"max": ("float32", (3,))})
        source = dlclient.from_dataset([1, 2])
        refused(E, lambda: L(source, 1, pipeline="center_crop(8)"), "pipeline: ", "what list.__getitem__ returns")
        refused(E, lambda: L(source, 1, workers={}), "workers: ")
        refused(E, lambda: L(source, 1, views=2), "views: ")
        no([tuple(range(33))], "has 33 fields, and a batch has 32 at most")
        big = dlclient.from_dataset(Long(2**40, lambda i: i))
        with L(big, 2, n_workers=1, order="tdperm") as loader:
            batch = next(iter(loader))
            assert max(batch.tolist()) > 2**30
        refused(dlclient.LimitReached, lambda: L(big, 2), "memory_limit")
    """, seconds=120)


@case("odd names, named tuples of one's own, exceptions that cannot be shown, and a function that writes everywhere")
def _(box):
    run(box, """
        import collections
        class Pair(collections.namedtuple("Pair", "a b")):
            def __new__(cls, both): return super().__new__(cls, *both)
        with L(dlclient.from_dataset(Numbers(9, lambda i: Pair((i, i + 1)))), 3, n_workers=1) as loader:
            for batch in loader: assert type(batch) is Pair and (batch.b - batch.a == 1).all()
        with L(dlclient.from_dataset(Numbers(9, lambda i: {"shape": i, "dtype": 2 * i})), 3, n_workers=1, shuffle=False) as loader:
            assert [list(batch) for batch in loader][0] == ["shape", "dtype"]
        def odd(i):
            if i == 4: raise SyntaxError("x", ("f", "nan", object(), 3))
            return i
        with L(dlclient.from_dataset(Numbers(9, odd)), 3, n_workers=1) as loader:
            refused(dlclient.SampleDamaged, lambda: [b.tolist() for b in loader], "SyntaxError")
        def writes(i):
            if i == 3:
                for fd in range(3, 64):
                    try: os.write(fd, b"\\xff" * 70000)
                    except OSError: pass
            return i
        with L(dlclient.from_dataset(Numbers(90, writes)), 3, n_workers=2, on_error="skip", copy=True) as loader:
            seen = sorted(int(n) for batch in loader for n in batch)
        assert len(seen) >= 87 and set(seen) <= set(range(90)), seen
    """, seconds=120)


@case("with spawn the dataset is sent to the processes, and processes that are killed lose nothing")
def _(box):
    with open(box.path("mine.py"), "w", encoding="utf-8") as file:
        file.write("class Squares:\n    def __len__(self):\n        return 50\n    def __getitem__(self, i):\n        return i * i\n")
    found = run(box, """
        sys.path.insert(0, os.path.dirname(sys.argv[0]))
        import mine
        with L(dlclient.from_dataset(mine.Squares()), 5, n_workers=2, worker_start="spawn", copy=True) as loader:
            out(sorted(int(n) for batch in loader for n in batch))
        def dies(i):
            if i % 9 == 4 and not os.path.exists(f"{sys.argv[0]}.{i}"):
                open(f"{sys.argv[0]}.{i}", "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            return i
        with L(dlclient.from_dataset(Numbers(50, dies)), 5, n_workers=3, copy=True) as loader:
            out(sorted(int(n) for batch in loader for n in batch))
    """, seconds=120)
    equal(found, [[i * i for i in range(50)], list(range(50))], "of a fresh interpreter, and of processes that are killed")


@case("where samples take microseconds, processes that are killed at random moments lose none, and change none")
def _(box):
    run(box, """
        import random as chance, signal, threading
        numbers = Numbers(20000)
        wanted = values(L(dlclient.from_dataset(numbers), 64, n_workers=1, seed=5))
        loader = L(dlclient.from_dataset(numbers), 64, n_workers=3, seed=5)
        kills, ended = [], threading.Event()
        foreman = loader._crews[0]._process.pid
        def workers():
            try:
                with open(f"/proc/{foreman}/task/{foreman}/children") as file:
                    return [int(pid) for pid in file.read().split()]
            except FileNotFoundError:  # the loop has ended
                return []
        def kill():
            # Every second time all have begun: where the CPUs are busy, they would never come so far.
            rng, board, wait = chance.Random(4), loader._crews[0]._board, False
            while not ended.is_set():
                time.sleep(0.01 + rng.random() * 0.03)
                if wait and not all(board.at(i)[3] for i in range(3)):
                    continue
                pids, wait = workers(), not wait
                if pids:
                    try:
                        os.kill(rng.choice(pids), signal.SIGKILL)
                        kills.append(1)
                    except ProcessLookupError:
                        pass
        thread = threading.Thread(target=kill)
        thread.start()
        try:
            found = values(loader)
        finally:
            ended.set()
            thread.join()
        for (one, other) in zip(wanted[0], found[0]):
            assert one == other, (one[0], other[0])
        assert len(found[0]) == len(wanted[0])
        assert len(kills) >= 3, kills
    """, seconds=240)


@case("samples that are quick at first and take long later are spread over the processes again")
def _(box):
    run(box, """
        import collections
        where = os.environ["WHERE"]
        def make(i):
            if i >= 6000:
                time.sleep(0.01)
                with open(os.path.join(where, str(os.getpid())), "a") as file:
                    file.write(".")
            return {"x": numpy.full((4,), i, "f4"), "y": i}
        with L(dlclient.from_dataset(Numbers(6128, make)), 64, n_workers=2, shuffle=False) as loader:
            seen = [int(y) for batch in loader for y in batch["y"]]
        assert seen == list(range(6128))
        shares = [os.path.getsize(os.path.join(where, name)) for name in os.listdir(where)]
        assert len(shares) == 2 and min(shares) >= 30, shares
    """, WHERE=make_folder(box.path("pids")))


main()
