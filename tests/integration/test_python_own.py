#!/usr/bin/env python3
"""Functions of the trainer's own in the pipeline: python(NAME) and workers= of a Loader. They run in processes beside the
daemon; any number of these gives the same bits, and whatever a function does harms nothing but its own sample."""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import tars
from harness import case, contains, equal, identity_pixels, main, png, within, write
from own_functions import BEGIN
from pyclient import Trainer, trainer

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors")
CUT = "random_resized_crop(16) hflip(0.5)"
# Samples of the campaign in which worker processes are killed: OWN_KILL_SAMPLES=10000 for the whole of it.
KILL_SAMPLES = int(os.environ.get("OWN_KILL_SAMPLES", "400"))

HELP = BEGIN + """
def load(pipeline, workers=None, batch_size=4, **more):
    return dlclient.Loader("p", batch_size=batch_size, pipeline=pipeline, workers=workers, **more)
"""


def pictures(box, n=33):
    return box.daemon({"p": box.folder_of_pictures("p", n, width=40, height=32)}, workers=2)


def run(box, daemon, source, *arguments, **more):
    import textwrap
    return trainer(box, daemon, HELP + textwrap.dedent(source), *arguments, **more)


# ---- the same bits -------------------------------------------------------------------------------------------------

@case("one, two and four processes give the bits that the function gives in the training process")
def _(box):
    run(box, pictures(box), f"""
        def invert(array):
            array[...] = 255 - array
        def noise(array, rng):
            array += rng.integers(0, 50, array.shape, dtype=numpy.uint8)
        def knows(array, epoch, sample):
            array[...] = array + numpy.uint8(epoch * 7) + numpy.uint8(sample)
        def here(pipeline, function):
            lines = []
            loader = load(pipeline, seed=5)
            for epoch in range(2):
                loader.set_epoch(epoch)
                for batch in loader:
                    for index, array in zip(batch.indices.tolist(), batch["image"]):
                        array = array.copy()
                        function(array, epoch, index)
                        lines.append((epoch, index, "uint8", list(array.shape),
                                      hashlib.sha256(array.tobytes()).hexdigest()))
            loader.close()
            return lines
        wanted = {{
            "invert": here("{CUT}", lambda array, epoch, index: invert(array)),
            "noise": here("{CUT}", lambda array, epoch, index: noise(array, dlclient.sample_rng(5, epoch, index))),
            "knows": here("{CUT}", lambda array, epoch, index: knows(array, epoch, index)),
        }}
        for name in wanted:
            for n in (1, 2, 4):
                found = hashes(load(f"{CUT} python({{name}})", {{name: globals()[name]}}, n_workers=n, seed=5), epochs=2)
                assert found == wanted[name], (name, n)
        assert len(set(map(str, wanted.values()))) == 3
    """, seconds=120)


@case("Python's, NumPy's and torch's own generators are seeded for each sample")
def _(box):
    run(box, pictures(box), f"""
        import random
        try:
            import torch
        except ImportError:
            torch = None
        def noise(array):
            array[0] = random.randrange(256)
            array[1] = numpy.random.randint(256)
            if torch is not None:
                array[2] = torch.randint(256, (1,)).item()
        found = [hashes(load("{CUT} python(noise)", {{"noise": noise}}, n_workers=n), epochs=2) for n in (1, 4)]
        assert found[0] == found[1]
        assert len(set(line[4] for line in found[0])) == len(found[0]), "each sample draws its own"
    """)


@case("a function may deliver another dtype and shape, of decoded samples or of the bytes as they are stored")
def _(box):
    run(box, pictures(box), f"""
        import io
        def to_float(array):
            return array.astype(numpy.float32).transpose(2, 0, 1) / 255
        def length(array):
            assert array.dtype == numpy.uint8 and array.ndim == 1 and bytes(array[:4]) == b"\\x89PNG", array[:4]
            return numpy.array([len(array), int(array.sum())], dtype=numpy.int64)
        def mean(array):
            return numpy.array(array.mean(dtype=numpy.float64))
        def negative(array):
            return -array
        here = load("{CUT}", copy=True)
        wanted = [(batch.indices.tolist(), [to_float(one) for one in batch["image"]], batch["label"].tolist())
                  for batch in here]
        here.close()
        with load("{CUT} python(f, dtype=float32, shape=3:16:16)", {{"f": to_float}}, n_workers=2, copy=True) as loader:
            equal = [(batch.indices.tolist(), list(batch["image"]), batch["label"].tolist()) for batch in loader]
            out(loader.pipeline)
        assert [(a, c) for a, b, c in equal] == [(a, c) for a, b, c in wanted]
        assert all(numpy.array_equal(a, b) for (_, x, _), (_, y, _) in zip(equal, wanted) for a, b in zip(x, y))
        with load("image: raw python(length, dtype=int64, shape=2)", {{"length": length}}) as loader:
            raw = {{index: row.tolist() for batch in loader for index, row in zip(batch.indices.tolist(), batch["image"])}}
        with load("raw") as loader:
            for batch in loader:
                for index, one in zip(batch.indices.tolist(), batch["image"]):
                    assert raw[index] == [len(one), int(numpy.asarray(one).sum())]
        with load("image: center_crop(8) to(float32) python(negative); label: python(mean, dtype=float64)",
                  {{"negative": negative, "mean": mean}}) as loader:
            batch = next(iter(loader))
            assert batch["image"].max() <= 0 and batch["label"].dtype == numpy.float64
        with load("center_crop(8) python(negative) views(2)", {{"negative": negative}}) as loader:
            batch = next(iter(loader))
            assert numpy.array_equal(batch["image"][0], batch["image"][1])
        def own(array, rng):
            array[...] = rng.integers(256)
        with load("center_crop(8) python(own)", {{"own": own}}, views=2) as loader:
            first, second = next(iter(loader))["image"]
            assert not numpy.array_equal(first, second)
    """, seconds=120)


# ---- what goes wrong -----------------------------------------------------------------------------------------------

@case("an exception is a damaged sample: its name, number, place and traceback, and the policy decides")
def _(box):
    daemon = pictures(box)
    found = run(box, daemon, f"""
        def helper(sample):
            raise ValueError("no way")
        def bad(array, sample):
            if sample in (3, 20):
                helper(sample)
            array[...] = 1
        loader = load("{CUT} python(bad)", {{"bad": bad}}, n_workers=2)
        try:
            list(loader)
        except dlclient.SampleDamaged as error:
            out(str(error))
            out(str(error.__cause__))
        loader.close()
        for policy in ("skip", "substitute"):
            loader = load("{CUT} python(bad)", {{"bad": bad}}, n_workers=2, on_error=policy, copy=True)
            batches = list(loader)
            out(sorted(index for batch in batches for index in batch.indices.tolist()))
            assert all((batch["image"] == 1).all() for batch in batches)
            loader.close()
        loader = load("{CUT} python(bad)", {{"bad": bad}}, n_workers=2, on_error="raise", copy=True)
        n, iterator = 0, iter(loader)
        while True:
            try:
                next(iterator)
            except dlclient.SampleDamaged:
                n += 1
            except StopIteration:
                break
        out(n)
    """)
    contains(found[0], "sample ", ".png", "python(bad): ValueError: no way", "in helper, from ", " in bad")
    contains(found[1], "in a worker process:", "Traceback (most recent call last)", "raise ValueError(\"no way\")")
    equal(found[2], [i for i in range(33) if i not in (3, 20)], "what is left")
    equal(len(found[3]), 33, "with substitutes")
    equal(found[4], 2, "batches that raised")
    within(10, lambda: len(daemon.objects("errors", "p")) == 2, "two samples in the ledger")
    contains(json.dumps(daemon.objects("errors", "p")), "python(bad): ValueError: no way, at ", " in helper")


@case("a function that sets the shape, the dtype or the strides of its array changes nothing of what is declared")
def _(box):
    run(box, pictures(box, 5), """
        def refuses(text, *functions):
            for function in functions:
                make = lambda: [0 for _ in load(text, {"f": function}, n_workers=1)]
                refused(dlclient.SampleDamaged, make, "is declared")
        def other_shape(image):
            image.shape = image.shape[:-3] + (3, 8, 8)
            return numpy.zeros(image.shape, "u1")
        def own_shape(image):
            image.shape = image.shape[:-3] + (3, 8, 8)
            return image
        def dtype(image):
            image.dtype = "i1"
            return -numpy.ones(image.shape, "i1")
        def both(image, label):
            image.shape = image.shape[:-3] + (3, 8, 8)
            return {"image": image if int(label.flat[0]) else numpy.zeros(image.shape, "u1")}
        for more in ("", ", batch=true"):
            refuses(f"center_crop(8) python(f{more})", other_shape, own_shape, dtype)
            refuses(f"image, label: center_crop(8) python(f{more})", both)
        def row(image):
            image.shape = (-1,)
            image[:] = 5
        def strides(image):
            image.strides = (0,) * image.ndim
            return numpy.full(image.shape, 5, "u1")
        for more in ("", ", batch=true"):
            for function in (row, strides):
                with load(f"center_crop(8) python(f{more})", {"f": function}, n_workers=1) as loader:
                    assert all((batch["image"] == 5).all() for batch in loader), function
    """)


@case("what a function returns must be what is declared, and the error says what to write")
def _(box):
    run(box, pictures(box), """
        def attempt(function, *words, pipeline="center_crop(8) python(f)"):
            loader = load(pipeline, {"f": function}, n_workers=1)
            refused(dlclient.SampleDamaged, lambda: list(loader), *words)
            loader.close()
        attempt(lambda array: array.astype(numpy.float32), "returned float32 (8, 8, 3), and uint8 (8, 8, 3) is declared",
                "python(f, dtype=float32, shape=8:8:3)")
        attempt(lambda array: array[:4], "returned uint8 (4, 8, 3)")
        attempt(lambda array: None, "returned None, and what it delivers has another form than its input", "float32",
                pipeline="center_crop(8) python(f, dtype=float32)")
        attempt(lambda array: array, "returned its input", pipeline="center_crop(8) python(f, shape=64:3)")
        attempt(lambda: None, "TypeError")
        attempt(lambda array: numpy.array(["abc"]), "is text (dtype <U3), which a batch cannot have", "array of uint8")
        attempt(lambda array: b"abc", "is bytes (dtype |S3)", "return numbers in its place")
        attempt(lambda array: [object()], "is objects of Python", "an array of numbers")
        attempt(lambda array: numpy.array([1j]), "has the dtype complex128, which a field cannot have: convert it to one of")
        attempt(lambda array: [[1], [1, 2]], "what it returned, a list, cannot be an array")
        attempt(lambda array: numpy.zeros((0, 3)), "an array without elements cannot be delivered")
        attempt(lambda array: exit(3), "SystemExit: 3")
        attempt(lambda array: 1 / 0, "ZeroDivisionError: division by zero, at ", "in <lambda>")
    """, seconds=120)


@case("what does not fit before a function is told in pixels or frames of the sample, and harms nothing else")
def _(box):
    daemon = pictures(box)
    run(box, daemon, """
        def f(array):
            return numpy.zeros(3, numpy.uint8)
        def attempt(*words, pipeline):
            loader = load(pipeline, {"f": f}, n_workers=1)
            refused(dlclient.SampleDamaged, lambda: list(loader), *words)
            loader.close()
        attempt("is 40 x 32 pixels", "room for 100 pixels a picture", "decode(max_pixels=1280)",
                pipeline="decode(max_pixels=100) python(f, shape=3)")
        attempt("room for 1 pixel a picture", pipeline="decode(max_pixels=1) python(f, shape=3)")
    """)
    write(box.path("d", "a.wav"), open(os.path.join(VECTORS, "sound", "s16.wav"), "rb").read())
    write(box.path("d", "l.jsonl"), b'{"path": "a.wav"}\n')
    run(box, box.daemon({"d": {"path": box.path("d"), "format": "jsonl", "files": "audio=path"}}), """
        pipeline = "audio: audio(max_seconds=0.01) python(f, dtype=float32, shape=3)"
        loader = dlclient.Loader("d", 1, pipeline=pipeline, workers={"f": lambda a: numpy.zeros(3, "f4")}, n_workers=1)
        refused(dlclient.SampleDamaged, lambda: list(loader), "frames, there is room for 480; raise audio(max_seconds=")
    """)


@case("a function that ends its process is tried three times, and then its sample is damaged")
def _(box):
    found = run(box, pictures(box), f"""
        import ctypes
        def attempt(end, n=33):
            def bad(array, sample):
                if sample == 7:
                    end()
                array[...] = sample
            loader = load("{CUT} python(bad)", {{"bad": bad}}, n_workers=2, on_error="skip", copy=True)
            seen = sorted(index for batch in loader for index in batch.indices.tolist())
            loader.close()
            assert seen == [i for i in range(33) if i != 7], seen
        attempt(lambda: os._exit(9))
        attempt(lambda: os._exit(75))  # as a process ends whose rank has left
        attempt(lambda: os.closerange(3, 4096))
        attempt(lambda: os.kill(os.getpid(), signal.SIGKILL))
        attempt(lambda: ctypes.string_at(0))
        loader = load("{CUT} python(bad)", {{"bad": lambda array: os._exit(9)}}, n_workers=2)
        try:
            list(loader)
        except dlclient.SampleDamaged as error:
            out(str(error))
    """, seconds=120)
    contains(found[0], "python(bad): 3 worker processes ended over it, the last: it ended with exit status 9")


@case("a field of varying length beside a function's stays what it is when samples are rendered again or replaced")
def _(box):
    tars.archive(box.path("t/0.tar"), [(f"{i:03}.{end}", data) for i in range(6) for end, data in
                                       (("png", png(40, 32, identity_pixels(i, 40, 32))), ("bin", b"%d" % i * 9000))])
    run(box, box.daemon({"t": {"path": box.path("t"), "format": "webdataset"}}, workers=2), """
        where = os.environ["WHERE"]
        def f(image, sample):
            image[...] = 3
            if sample == 3 and len(os.listdir(where)) < 2:
                open(os.path.join(where, str(len(os.listdir(where)))), "w").close()
                os._exit(3)
            if sample == 5:
                raise ValueError
        for policy in ("substitute", "skip"):
            with dlclient.Loader("t", 6, shuffle=False, workers={"f": f}, n_workers=1, as_tuple=False, on_error=policy,
                                 pipeline="png: center_crop(8) python(f); bin") as loader:
                for batch in loader:
                    found = [bytes(one) for one in batch["bin"]]
                    wanted = [b"%d" % i * 9000 for i in (0, 1, 2, 3, 4, 0)[:len(batch.indices)]]
                    assert found == wanted, [(one[:1], len(one)) for one in found]
                    assert (batch["png"] == 3).all() and len(batch.indices) == (6 if policy == "substitute" else 5)
    """, seconds=60, WHERE=make(box.path("where")))


@case("a function that writes to the daemon's socket, or shuts it down, ends its process, and the error says so")
def _(box):
    found = run(box, pictures(box), f"""
        import socket
        def sockets():
            for name in os.listdir("/proc/self/fd"):
                try:
                    if os.readlink("/proc/self/fd/" + name).startswith("socket:"):
                        yield socket.socket(fileno=os.dup(int(name)))
                except OSError:
                    pass
        def junk(array, sample):
            if sample == 7:
                for each in sockets():
                    each.send(b"\\xff" * 9)
            array[...] = sample
        def shut(array, sample):
            if sample == 7:
                for each in sockets():
                    each.shutdown(socket.SHUT_RDWR)
            array[...] = sample
        for function in (junk, shut):
            loader = load("{CUT} python(f)", {{"f": function}}, n_workers=2, on_error="skip", copy=True)
            assert sorted(index for batch in loader for index in batch.indices.tolist()) == [i for i in range(33) if i != 7]
            loader.close()
            loader = load("{CUT} python(f)", {{"f": function}}, n_workers=2)
            try:
                list(loader)
            except dlclient.SampleDamaged as error:
                out(str(error))
            loader.close()
    """, seconds=120)
    contains(found[0], "3 worker processes ended over it, the last: the daemon closed its connection: its packet is not a request")
    contains(found[1], "3 worker processes ended over it, the last: its connection ended: a function may have closed it")


@case("a function that hangs is ended with its process, and the error says where it was")
def _(box):
    found = run(box, pictures(box), f"""
        def deep():
            time.sleep(1000)
        def slow(array, sample):
            if sample == 7:
                deep()
        loader = load("{CUT} python(slow)", {{"slow": slow}}, n_workers=2, worker_timeout=0.5)
        try:
            list(loader)
        except dlclient.SampleDamaged as error:
            out(str(error))
        loader.close()
        loader = load("{CUT} python(slow)", {{"slow": slow}}, n_workers=2, worker_timeout=0.5, on_error="skip")
        assert sum(batch.n_samples if hasattr(batch, "n_samples") else len(batch.indices) for batch in loader) == 32
    """, seconds=120)
    contains(found[0], "it did not come back within worker_timeout=0.5 s and was at ", "in deep, from ", "in slow")
    equal([word for word in ("_attached", "worker.py", "<module>", "_loader") if word in found[0]], [], found[0])


@case("a function that hangs in every call is told at the first process that is killed, and ends the job after a few")
def _(box):
    run(box, pictures(box, 400), """
        import warnings
        def stuck(array):
            time.sleep(1000)
        loader = load("center_crop(16) python(stuck)", {"stuck": stuck}, n_workers=2, worker_timeout=0.2, on_error="skip")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            text = refused(dlclient.OptionError, lambda: list(loader), "python(stuck)", "hangs", "no sample was made",
                           "trainer0.py", "in stuck")
        text, = [str(one.message) for one in caught if one.category is dlclient.LoaderWarning]
        for word in ("python(stuck)", "worker_timeout=0.2", "trainer0.py:", "in stuck"):
            assert word in text, (word, text)
        slow = {"n": 0}
        def sometimes(array, sample):        # two in a row hang, and all others come through
            if sample in (5, 6):
                time.sleep(1000)
        loader = load("center_crop(16) python(sometimes)", {"sometimes": sometimes}, n_workers=2, worker_timeout=0.2,
                      on_error="skip", shuffle=False, indices=range(12))
        assert sorted(i for batch in loader for i in batch.indices.tolist()) == [i for i in range(12) if i not in (5, 6)]
    """, seconds=120)


@case("a wait that has not ended is a wait for `dlctl jobs` and `dlctl diagnose`, also that for the first batch")
def _(box):
    daemon = pictures(box)
    held = Trainer(box, daemon, HELP + """
def stuck(array):
    time.sleep(1000)
loader = load("center_crop(16) python(stuck)", {"stuck": stuck}, n_workers=1)
out("open")
next(iter(loader))
""")
    held.wait_lines(1)
    within(20, lambda: "100 %" in daemon.dlctl("jobs").stdout, "the share in dlctl jobs")
    told = json.loads(daemon.dlctl("--format", "json", "diagnose", "--seconds", "2").stdout.splitlines()[-1])
    equal((told["input_bound"], round(told["wait_share"], 1)), ("highly", 1.0), f"what dlctl diagnose says: {told}")
    contains(told["advice"], "look at the function python(stuck)")
    held.process.kill()
    held.process.wait()


@case("children that a function forks, a view that it keeps, floods of text and truncated files harm nothing")
def _(box):
    run(box, pictures(box), f"""
        kept = []
        def forks(array):
            pid = os.fork()
            if pid:
                os.waitpid(pid, 0)
            array[...] = 3
        def keeps(array):
            kept.append(array)
            array[...] = 3
        def prints(array):
            sys.stderr.write("x" * 20000)
            array[...] = 3
        def truncates(array):
            for name in os.listdir("/proc/self/fd"):
                try:
                    os.ftruncate(int(name), 0)
                except OSError:
                    pass
            array[...] = 3
        for function in (forks, keeps, prints, truncates):
            loader = load("{CUT} python(f)", {{"f": function}}, n_workers=2)
            n = 0
            for batch in loader:
                assert (batch["image"] == 3).all()
                n += len(batch.indices)
            assert n == 33, (function, n)
            loader.close()
    """, seconds=120)


@case("worker processes that are killed at random moments cost no sample, none comes twice and none is wrong")
def _(box):
    n = KILL_SAMPLES
    found = run(box, pictures(box, n), f"""
        import random
        where = os.environ["WHERE"]
        def work(array, rng, sample):
            before = array.copy()
            array[...] = 0
            time.sleep(0.0005)
            array[...] = before + rng.integers(0, 9, array.shape, dtype=numpy.uint8)
        done = os.open(os.path.join(where, "done"), os.O_CREAT | os.O_APPEND | os.O_RDWR)
        def note(array, rng, sample):
            open(os.path.join(where, str(os.getpid())), "w").close()
            work(array, rng, sample)
            os.write(done, b".")
        wanted = hashes(load("center_crop(16) python(work)", {{"work": work}}, n_workers=2, batch_size=8))
        kills, ended = [], threading.Event()
        def kill():
            rng, wait_for = random.Random(4), 0
            while not ended.is_set():
                time.sleep(rng.random() * 0.002)
                if os.fstat(done).st_size < wait_for:  # else a slow machine would do little but start processes
                    continue
                wait_for = os.fstat(done).st_size + rng.randrange(3, 40)
                pids = [int(name) for name in os.listdir(where) if name.isdigit()]
                if pids:
                    pid = rng.choice(pids)
                    os.unlink(os.path.join(where, str(pid)))
                    try:
                        os.kill(pid, signal.SIGKILL)
                        kills.append(pid)
                    except ProcessLookupError:
                        pass
        loader = load("center_crop(16) python(note)", {{"note": note}}, n_workers=3, batch_size=8)
        thread = threading.Thread(target=kill)
        thread.start()
        found = hashes(loader)
        ended.set()
        thread.join()
        assert found == wanted, [(a, b) for a, b in zip(found, wanted) if a != b][:3]
        out(len(kills))
    """, seconds=max(120, n // 10), WHERE=make(box.path("pids")))
    equal(found[0] >= 3, True, f"processes were killed: {found[0]}")


def make(folder):
    os.makedirs(folder)
    return folder


# ---- the trainer's side --------------------------------------------------------------------------------------------

@case("functions of a notebook's kind, with closures, and of a module in fresh interpreters")
def _(box):
    with open(box.path("mine.py"), "w", encoding="utf-8") as file:
        file.write("def three(array):\n    array[...] = 3\n")
    run(box, pictures(box), f"""
        sys.path.insert(0, {box.folder!r})
        import functools, mine
        cell = "amount = 4\\ndef function(array):\\n    array[...] = amount\\n"
        names = {{"__name__": "__main__"}}
        exec(compile(cell, "<ipython-input-1>", "exec"), names)
        def first(**more):
            with load("{CUT} python(f)", **more) as loader:
                return int(next(iter(loader))["image"].max())
        assert first(workers={{"f": names["function"]}}) == 4
        five = 5
        assert first(workers={{"f": lambda array: array.fill(five)}}) == 5
        class Fill:
            def __call__(self, array):
                array.fill(6)
        assert first(workers={{"f": Fill()}}) == 6
        assert first(workers={{"f": mine.three}}, worker_start="spawn") == 3
        assert first(workers={{"f": functools.partial(mine.three)}}, worker_start="spawn") == 3
        sys.modules["cloudpickle"] = None  # then pickle sends them
        def mine_here(array):
            array[...] = 7
        for function, name in ((mine_here, "mine_here"), (Fill(), "Fill"), (functools.partial(mine_here), "mine_here")):
            refused(dlclient.OptionError, lambda: first(workers={{"f": function}}, worker_start="spawn"), name,
                    "is defined in the program itself", "install cloudpickle", "in a module", "worker_start=\\"fork\\"")
        refused(dlclient.OptionError, lambda: first(workers={{"f": lambda array: None}}, worker_start="spawn"), "<lambda>")
    """, seconds=120)


@case("a loop that is left early, a loader that is dropped and Ctrl-C leave no process behind")
def _(box):
    daemon = pictures(box)
    run(box, daemon, f"""
        def f(array):
            time.sleep(0.01)
        def gone():
            end = time.monotonic() + 20
            while len(processes()) > n_before and time.monotonic() < end:
                time.sleep(0.02)
            return len(processes()) == n_before
        os.setpgid(0, 0)
        n_before = len(processes())
        loader = load("{CUT} python(f)", {{"f": f}}, n_workers=3)
        next(iter(loader))
        end = time.monotonic() + 20
        while len(processes()) < n_before + 4 and time.monotonic() < end:  # the first batch may need one of them alone
            time.sleep(0.02)
        assert len(processes()) == n_before + 4
        loader.close()
        assert gone()
        loader = load("{CUT} python(f)", {{"f": f}}, n_workers=3)
        for batch in loader:
            break
        del loader, batch
        gc.collect()
        assert gone(), "a loader that is dropped"
        def slow(array):
            time.sleep(30)
        loader = load("{CUT} python(slow)", {{"slow": slow}}, n_workers=3)
        threading.Timer(1, lambda: os.killpg(0, signal.SIGINT)).start()
        try:
            next(iter(loader))
            raise AssertionError
        except KeyboardInterrupt:
            pass
        loader.close()
        assert gone(), "Ctrl-C"
    """, seconds=120)


@case("worker processes end with their trainer, however it ends")
def _(box):
    daemon = pictures(box)
    program = Trainer(box, daemon, HELP + f"""
def f(array):
    open(os.path.join(os.environ["WHERE"], str(os.getpid())), "w").close()
    end = time.monotonic() + 30
    while len(os.listdir(os.environ["WHERE"])) < 2 and time.monotonic() < end:  # else one may take all samples
        time.sleep(0.01)
loader = load("{CUT} python(f)", {{"f": f}}, n_workers=2)
for batch in loader:
    break
out(1)
time.sleep(1000)
""", WHERE=make(box.path("pids")))
    program.wait_lines(1)
    within(40, lambda: len(os.listdir(box.path("pids"))) == 2, "two worker processes")
    pids = [int(pid) for pid in os.listdir(box.path("pids"))]
    program.process.kill()
    program.process.wait()
    within(10, lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), "their end")


@case("a foreman that is killed is told in the loop, and a new loader goes on")
def _(box):
    run(box, pictures(box), f"""
        def f(array):
            time.sleep(0.01)
        loader = load("{CUT} python(f)", {{"f": f}}, n_workers=2, job="one", slots=2)
        iterator = iter(loader)
        next(iterator)
        os.kill(loader._crews[0]._process.pid, signal.SIGKILL)
        def rest():
            for batch in iterator:
                pass
        refused(dlclient.WorkersGone, rest, "has ended", "Open a new loader")
        loader.close()
        loader = load("{CUT} python(f)", {{"f": f}}, n_workers=2, job="one")
        assert sum(len(batch.indices) for batch in loader) == 33
    """)


@case("two jobs at once, and epochs one after the other, each with functions of its own")
def _(box):
    run(box, pictures(box), f"""
        one = load("center_crop(16) python(f)", {{"f": lambda array: array.fill(1)}}, n_workers=2)
        two = load("center_crop(16) python(f)", {{"f": lambda array: array.fill(2)}}, n_workers=2, persistent=False)
        for epoch in range(3):
            one.set_epoch(epoch), two.set_epoch(epoch)
            n = 0
            for a, b in zip(one, two):
                assert (a["image"] == 1).all() and (b["image"] == 2).all()
                n += len(a.indices)
            assert n == 33
        one.close()
        two.close()
    """, seconds=120)


@case("a daemon that restarts in the middle of an epoch costs nothing")
def _(box):
    daemon = pictures(box, 200)
    program = Trainer(box, daemon, HELP + """
def f(array, sample):
    time.sleep(0.002)
    array[...] = sample
loader = load("center_crop(16) python(f)", {"f": f}, n_workers=2)
seen = []
for batch in loader:
    for index, array in zip(batch.indices.tolist(), batch["image"]):
        assert (array == index).all()
        seen.append(index)
    if len(seen) == 40:
        out("now")
        time.sleep(1)
out(sorted(seen))
""")
    program.wait_lines(1)
    daemon.kill()
    daemon.start()
    equal(program.finish(120)[1], list(range(200)), "samples, each once")


@case("parts of a joined dataset have room for the largest sample of all, and a function is told one form of what it gets")
def _(box):
    files = {}
    for name, dtype, code in ("i", "<i4", "i"), ("f", "<f4", "f"):
        head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': (6, 4), }}".encode()
        files[name] = {"path": box.path(f"{code}.npy"), "format": "npy"}
        write(files[name]["path"], b"\x93NUMPY\x01\x00\x76\x00" + head.ljust(117) + b"\n" +
              struct.pack(f"<24{code}", *range(24)))
    daemon = box.daemon({"small": box.folder_of_files("small", 6, size=100),
                         "large": box.folder_of_files("large", 6, size=50000), **files})
    trainer(box, daemon, """
        import numpy as np
        def f(image):
            return np.array([len(image), int(image.sum())], np.int64)
        def sums(*names):
            return [row for batch in dlclient.Loader(list(names), 4, pipeline="image: raw python(f, dtype=int64, shape=2)",
                                                     workers={"f": f}, n_workers=2, shuffle=False, copy=True)
                    for row in batch["image"].tolist()]
        small, large = sums("small"), sums("large")
        assert small[0][0] < 1000 and large[0][0] == 50000, (small, large)
        assert sums("small", "large") == small + large and sums("large", "small") == large + small
    """)
    trainer(box, daemon, f"""
        import numpy as np
        refused(dlclient.OptionError, lambda: dlclient.Loader(["i", "f"], 2, workers={{"f": lambda x: x.astype(float)}},
            pipeline="data: python(f, dtype=float64)"), "a function gets field data as int32 [4] in", "and as float32 [4] in")
        found = [batch["data"].tolist() for batch in dlclient.Loader(["i", "f"], 12, shuffle=False, copy=True,
            workers={{"f": lambda x: x.astype(float)}}, pipeline="data: to(float32) python(f, dtype=float64)")]
        assert found == [2 * np.arange(24.).reshape(6, 4).tolist()], found
    """)


@case("a number alone in its part is converted before its function; beside a picture the steps are for that")
def _(box):
    run(box, pictures(box), """
        import numpy as np
        def f(label):
            return np.array([label.dtype == dtype, label.dtype.itemsize], np.int64)
        for text, dtype in ("", "int64"), ("to(float32) ", "float32"), ("to(float64) ", "float64"):
            got = next(iter(load(f"label: {text}python(f, dtype=int64, shape=2)", workers={"f": f}, copy=True)))["label"]
            assert got.tolist() == [[1, np.dtype(dtype).itemsize]] * len(got), (text, got.tolist())
        def both(image, label):
            assert image.dtype == np.float32 and label.dtype == np.int64, (image.dtype, label.dtype)
        next(iter(load("image, label: center_crop(8) to(float32) python(both)", workers={"both": both})))
    """)


@case("options and texts that make no sense are refused with what to write")
def _(box):
    run(box, pictures(box), f"""
        f = lambda array: None
        def no(*words, pipeline="center_crop(8) python(f)", kind=dlclient.OptionError, **more):
            refused(kind, lambda: load(pipeline, **more), *words)
        no("python(f) needs a function", "workers={{\\"f\\": function}}")
        no("python(f) needs a function", "did you mean ff?", workers={{"ff": f}})
        no("'f' is not in the pipeline", pipeline="center_crop(8)", workers={{"f": f}})
        no("cannot be called", workers={{"f": 3}})
        no("cannot be the name", workers={{"f g": f}})
        no("expected the functions", workers=4)
        no("n_workers", workers={{"f": f}}, n_workers=0)
        no("worker_timeout", workers={{"f": f}}, worker_timeout=-1)
        no("worker_start", workers={{"f": f}}, worker_start="thread")
        no("column 26", "hflip", pipeline="center_crop(8) python(f) hfilp", workers={{"f": f}})
        no("python needs its function", pipeline="center_crop(8) python()", workers={{"f": f}})
        no("dtype= or shape=", pipeline="center_crop(8) python(f, size=3)", workers={{"f": f}})
        no("expected bool, int8", pipeline="center_crop(8) python(f, dtype=complex)", workers={{"f": f}})
        no("say how many elements it has at most", pipeline="center_crop(8) python(f, shape=-1:3)", workers={{"f": f}})
        no("are for a part that names one field", pipeline="label, image: center_crop(8) python(f, dtype=int8)",
           workers={{"f": f}})
        no("has one shape and is stacked", pipeline="image: center_crop(8) python(f) pad", workers={{"f": f}})
        no("samples of several shapes", pipeline="image: decode python(f)", workers={{"f": f}})
        no("decode(max_pixels=N)", pipeline="image: decode python(f, shape=3)", workers={{"f": f}})
    """, seconds=120)


main()
