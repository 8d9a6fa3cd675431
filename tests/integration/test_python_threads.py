#!/usr/bin/env python3
"""Functions of the trainer's own in threads of one process (worker_start="threads"): the bits are those of processes, and
of several samples that a process was at when it ended, the one that ended it is damaged and no other."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, contains, equal, main, within
from private import Home
from own_functions import BEGIN
from pyclient import Trainer, trainer

CUT = "random_resized_crop(16) hflip(0.5)"
# Samples of the campaign in which the process is killed: OWN_KILL_SAMPLES=10000 for the whole of it.
KILL_SAMPLES = int(os.environ.get("OWN_KILL_SAMPLES", "400"))

HELP = BEGIN + """
import ctypes, tempfile
def load(pipeline, workers=None, batch_size=4, n_workers=4, worker_start="threads", **more):
    return dlclient.Loader("p", batch_size=batch_size, pipeline=pipeline, workers=workers, n_workers=n_workers,
                           worker_start=worker_start, **more)
"""


def pictures(box, n=33):
    return box.daemon({"p": box.folder_of_pictures("p", n, width=40, height=32)}, workers=2)


def run(box, daemon, source, *arguments, **more):
    import textwrap
    return trainer(box, daemon, HELP + textwrap.dedent(source), *arguments, **more)


@case("one process, four processes and four threads give the same bits, for one field and for several")
def _(box):
    run(box, pictures(box), f"""
        def noise(array, rng, sample, epoch):
            time.sleep(0.002 * rng.random())  # so that threads overtake one another
            array += rng.integers(0, 50, array.shape, dtype=numpy.uint8) + numpy.uint8(sample + epoch)
        def both(image, label, rng):
            image[...] = image[:, ::-1].copy()
            return image, label + rng.integers(0, 9)
        def mean(array, rng):
            return numpy.float32(array.mean() + rng.random()).reshape(1)
        def whole(images, rng):
            images += rng.integers(0, 50, images.shape, dtype=numpy.uint8)
        for pipeline, function in (("{CUT} python(f) color_jitter(0.4)", noise), ("image, label: {CUT} python(f)", both),
                                   ("{CUT} python(f, dtype=float32, shape=1)", mean),
                                   ("{CUT} python(f, batch=true)", whole)):
            found = [hashes(load(pipeline, {{"f": function}}, n_workers=n, worker_start=start, seed=5), epochs=2)
                     for n, start in ((1, "fork"), (4, "fork"), (1, "threads"), (4, "threads"))]
            assert found[0] == found[1] == found[2] == found[3], pipeline
            assert len(found[0]) == 66
    """, seconds=120)


@case("threads share the memory of one process, and functions without rng draw from what they share")
def _(box):
    run(box, pictures(box, 60), f"""
        import random
        kept, barrier = [], threading.Barrier(4)
        def f(array, rng, sample):
            kept.append(sample)
            if len(kept) <= 4:
                barrier.wait(30)  # passes only if four threads are at a sample at the same time
            array[0, 0] = os.getpid() % 251, len(set(kept)) % 251, threading.active_count()
        with load("center_crop(16) python(f)", {{"f": f}}, copy=True) as loader:
            pixels = numpy.concatenate([batch["image"][:, 0, 0] for batch in loader])
        assert len(set(pixels[:, 0].tolist())) == 1 and pixels[:, 1].max() == 60 and pixels[:, 2].max() >= 5, pixels
        assert kept == [], "it is beside the trainer"
        def seeds(array):
            array[0] = random.randrange(256)
            array[1] = random.getstate()[1][0] % 256
        random.seed(1)
        first = random.Random(1).getstate()[1][0] % 256
        with load("center_crop(16) python(f)", {{"f": seeds}}, copy=True) as loader:
            rows = numpy.concatenate([batch["image"] for batch in loader])
        assert (rows[:, 1, 0, 0] == rows[0, 1, 0, 0]).sum() > 1, "nobody seeds it for each sample"
        def shared(array):
            array[...] = numpy.random.randint(0, 256, array.shape)
        def own(array, rng):
            array[...] = rng.integers(0, 256, array.shape)
        def check(function):
            return dlclient.check_steps("p", pipeline="center_crop(16) python(f)", workers={{"f": function}}, worker_start="threads")
        assert check(own) == 60
        refused(AssertionError, lambda: check(shared), "samples differ between two runs")
    """)


@case("a sample that raises is damaged with its traceback, and no other")
def _(box):
    run(box, pictures(box), f"""
        def bad(array, sample, rng):
            time.sleep(0.002)
            if sample in (7, 20):
                raise KeyError(f"of sample {{sample}}")
            array[...] = sample
        loader = load("{CUT} python(bad)", {{"bad": bad}}, on_error="skip", copy=True)
        seen = {{index: int(array.max()) for batch in loader for index, array in zip(batch.indices.tolist(), batch["image"])}}
        assert seen == {{i: i for i in range(33) if i not in (7, 20)}}, seen
        loader.close()
        loader = load("{CUT} python(bad)", {{"bad": bad}})
        try:
            list(loader)
            raise AssertionError
        except dlclient.SampleDamaged as error:
            assert any(f"sample {{i}} " in str(error) and f"KeyError: 'of sample {{i}}'" in str(error) for i in (7, 20)), error
            assert "in bad" in str(error.__cause__), error.__cause__
    """)


@case("of the samples that threads are at when their process ends, the one that ends it is damaged, and no other")
def _(box):
    found = run(box, pictures(box, 60), f"""
        def attempt(end, bad=(47,), n_workers=4, **more):
            pids = tempfile.mkdtemp(dir=os.path.dirname(sys.argv[0]))
            def f(array, sample):
                open(os.path.join(pids, str(os.getpid())), "w").close()
                time.sleep(0.01)
                if sample in bad:
                    end()
                array[...] = sample
            loader = load("{CUT} python(f)", {{"f": f}}, n_workers=n_workers, on_error="skip", copy=True, shuffle=False,
                          slots=2, **more)  # in this order none of them is made again for the next epoch
            seen = {{}}
            for batch in loader:
                for index, array in zip(batch.indices.tolist(), batch["image"]):
                    assert (array == index).all()
                    seen[index] = seen.get(index, 0) + 1
            loader.close()
            assert seen == {{i: 1 for i in range(60) if i not in bad}}, seen
            assert len(os.listdir(pids)) <= 1 + 4 * len(bad), "each ends one process with others, and three alone"
        attempt(lambda: os._exit(9))
        attempt(lambda: os._exit(75))  # as a process ends whose rank has left
        attempt(lambda: os.closerange(3, 4096))
        attempt(lambda: os.kill(os.getpid(), signal.SIGKILL))
        attempt(lambda: ctypes.string_at(0))
        attempt(lambda: os._exit(9), bad=(43, 44, 45, 58))
        attempt(lambda: os._exit(9), n_workers=16)
        loader = load("{CUT} python(bad)", {{"bad": lambda array: os._exit(9)}})
        try:
            list(loader)
        except dlclient.SampleDamaged as error:
            out(str(error))
    """, seconds=240)
    contains(found[0], "python(bad): 3 worker processes ended over it, the last: it ended with exit status 9")


@case("a function that hangs is told with its place, also where it keeps the interpreter, and others come through")
def _(box):
    found = run(box, pictures(box), f"""
        def deep():
            time.sleep(1000)
        def slow(array, sample):
            time.sleep(0.01)
            if sample == 7:
                deep()
            array[...] = sample
        sleep = ctypes.PyDLL(None).usleep  # which does not release a global lock
        def keeps(array, sample):
            time.sleep(0.01)
            if sample == 7:
                for _ in range(10000):
                    sleep(900000)
            array[...] = sample
        lock, other = threading.Lock(), threading.Lock()
        def crossed(array, sample):
            first, second = (lock, other) if sample % 2 else (other, lock)
            if sample in (7, 8):  # each waits for the other one if they are made at the same time
                with first:
                    time.sleep(0.3)
                    with second:
                        pass
            array[...] = sample
        def read(function, **more):
            loader = load("{CUT} python(f)", {{"f": function}}, on_error="skip", copy=True, shuffle=False, **more)
            seen = {{index: int(array.max()) for batch in loader for index, array in zip(batch.indices.tolist(), batch["image"])}}
            loader.close()
            return seen
        rest = {{i: i for i in range(33) if i != 7}}
        assert read(slow, worker_timeout=0.5) == rest
        assert read(keeps, worker_timeout=3) == rest
        assert read(crossed, worker_timeout=2) == {{i: i for i in range(33)}}
        loader = load("{CUT} python(slow)", {{"slow": slow}}, worker_timeout=0.5)
        try:
            list(loader)
        except dlclient.SampleDamaged as error:
            out(str(error))
        loader.close()
    """, seconds=240)
    contains(found[0], "sample 7 ", "it did not come back within worker_timeout=0.5 s and was at ", "in deep, from ", "in slow")
    equal([word for word in ("threads.py", "threading", "_attached", "<module>") if word in found[0]], [], found[0])


@case("a process that is killed at random moments costs no sample, none comes twice and none is wrong")
def _(box):
    n = KILL_SAMPLES
    found = run(box, pictures(box, n), """
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
        wanted = hashes(load("center_crop(16) python(work)", {"work": work}, n_workers=2, worker_start="fork", batch_size=8))
        kills, ended = [], threading.Event()
        def kill():
            rng, wait_for = random.Random(4), 0
            while not ended.is_set():
                time.sleep(rng.random() * 0.002)
                if os.fstat(done).st_size < wait_for:  # else a slow machine would do little but start processes
                    continue
                wait_for = os.fstat(done).st_size + rng.randrange(3, 40)
                for pid in [int(name) for name in os.listdir(where) if name.isdigit()]:
                    os.unlink(os.path.join(where, str(pid)))
                    try:
                        os.kill(pid, signal.SIGKILL)
                        kills.append(pid)
                    except ProcessLookupError:
                        pass
        loader = load("center_crop(16) python(note)", {"note": note}, n_workers=4, batch_size=8)
        thread = threading.Thread(target=kill)
        thread.start()
        found = hashes(loader)
        ended.set()
        thread.join()
        assert found == wanted, [(a, b) for a, b in zip(found, wanted) if a != b][:3]
        out(len(kills))
    """, seconds=max(120, n // 10), WHERE=box.path("p"))
    equal(found[0] >= 3, True, f"kills: {found[0]}")


@case("a notebook's functions work, and Ctrl-C, a loop that is left and a trainer that is killed leave no process")
def _(box):
    daemon = pictures(box)
    run(box, daemon, f"""
        names = {{"__name__": "__main__"}}
        exec(compile("amount = 4\\ndef function(array):\\n    array[...] = amount\\n", "<ipython-input-1>", "exec"), names)
        with load("{CUT} python(f)", {{"f": names["function"]}}) as loader:
            assert int(next(iter(loader))["image"].max()) == 4
        os.setpgid(0, 0)
        def gone():
            end = time.monotonic() + 20
            while len(processes()) > 1 and time.monotonic() < end:
                time.sleep(0.02)
            return len(processes()) == 1
        loader = load("{CUT} python(f)", {{"f": lambda array: time.sleep(0.01)}})
        for batch in loader:
            break
        assert len(processes()) == 3, "the foreman and one process"
        loader.close()
        assert gone()
        loader = load("{CUT} python(slow)", {{"slow": lambda array: time.sleep(30)}})
        threading.Timer(1, lambda: os.killpg(0, signal.SIGINT)).start()
        try:
            next(iter(loader))
            raise AssertionError
        except KeyboardInterrupt:
            pass
        loader.close()
        assert gone(), "Ctrl-C"
    """, seconds=120)
    program = Trainer(box, daemon, HELP + f"""
loader = load("{CUT} python(f)", {{"f": lambda array: time.sleep(0.01)}})
next(iter(loader))
os.setpgid(0, 0)
out([pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if group_of(pid) == group_of(os.getppid())
     and open(f"/proc/{{pid}}/cmdline").read() == open("/proc/self/cmdline").read()])
time.sleep(1000)
""")
    program.wait_lines(1)
    pids = [pid for pid in program.lines[0] if pid != program.process.pid]
    program.process.kill()
    program.process.wait()
    within(10, lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), "their end")


@case("a daemon that restarts in the middle of an epoch costs nothing")
def _(box):
    daemon = pictures(box, 200)
    program = Trainer(box, daemon, HELP + """
def f(array, sample):
    time.sleep(0.002)
    array[...] = sample
loader = load("center_crop(16) python(f)", {"f": f})
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


@case("of several quick samples that a thread takes together, the one that ends the process is damaged, and no other")
def _(box):
    home = Home(box)
    trainer(box, None, HELP + """
class Rows:
    def __init__(self, end): self.end = end
    def __len__(self): return 3000
    def __getitem__(self, i):
        if i in (1700, 1703): self.end()
        return i
def read(end, **more):
    source = dlclient.from_dataset(Rows(end))
    with dlclient.Loader(source, 50, n_workers=4, worker_start="threads", shuffle=False, copy=True, on_error="skip", **more) as loader:
        seen = [int(i) for batch in loader for i in batch]
    assert seen == [i for i in range(3000) if i not in (1700, 1703)], seen
read(lambda: os._exit(3))
read(lambda: time.sleep(1000), worker_timeout=0.5)
""", seconds=120, **home.variables())


@case("they are the default without a global lock, for functions that draw from rng alone")
def _(box):
    home = Home(box)
    trainer(box, None, HELP + """
from dlclient._own.functions import start_of
def draws(image, rng): pass
def plain(image): pass
source = dlclient.from_dataset([1, 2, 3])
for is_locked in (True, False):
    sys._is_gil_enabled = lambda: is_locked
    starts = [start_of(None, functions) for functions in ({}, {"a": draws}, {"a": draws, "b": plain}, {"a": len}, source.workers)]
    assert starts == ["fork", "fork" if is_locked else "threads", "fork", "fork", "fork"], starts
    assert [start_of(value, {"a": draws}) for value in ("fork", "spawn", "threads")] == ["fork", "spawn", "threads"]
refused(dlclient.OptionError, lambda: start_of("thread", {}), '"threads" are allowed')
class Lists:  # of the user's own word
    rows = [numpy.full(3, i) for i in range(40)]
    def __len__(self): return len(self.rows)
    def __getitem__(self, i): return self.rows[i]
with dlclient.Loader(dlclient.from_dataset(Lists()), 4, n_workers=4, worker_start="threads", shuffle=False, copy=True) as loader:
    assert [batch[:, 0].tolist() for batch in loader] == [list(range(i, i + 4)) for i in range(0, 40, 4)]
""", **home.variables())


main()
