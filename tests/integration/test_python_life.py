#!/usr/bin/env python3
"""Lives of the Python client's objects: arrays outlive everything they came from, nothing that ends early or oddly leaks a
slot or a rank, and signals, threads, forks, restarts and the interpreter's end find a loader that keeps its word."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, contains, equal, expected_order, identity_bytes, main, within, write
from pyclient import Trainer, need, trainer


def has_left(daemon):
    within(5, lambda: not daemon.objects("jobs"), "every rank is gone")


# ---- arrays ---------------------------------------------------------------------------------------------------------

@case("arrays outlive their batch, their loader and the daemon, and hold no more than their slot")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 40)})
    need("numpy")
    run = Trainer(box, daemon, """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        loader = dlclient.Loader("f", batch_size=2, slots=3, shuffle=False)
        iterator = iter(loader)
        kept = next(iterator)["image"][1][5:25]             # a slice of a view of a sample
        also = memoryview(next(iterator)["image"][0])
        for i in range(10): next(iterator)                  # two slots of three are held: it goes on
        loader.close()
        gc.collect()
        out("closed")
        signal.sigwait({signal.SIGUSR1})
        out([bytes(kept).decode(), bytes(also).decode()])
        del kept
        out(also[0])
    """)
    run.wait_lines(1)
    has_left(daemon)
    daemon.kill()
    run.process.send_signal(signal.SIGUSR1)
    run.finish()
    equal(run.lines[1:], [[identity_bytes(1, 200)[5:25].decode(), identity_bytes(2, 200).decode()], ord("<")], "bytes")


@case("a batch that is held can be looked into after the loop, after with and after close(), also one read ahead")
def _(box):
    folder = box.folder_of_pictures("p", 20)
    write(os.path.join(folder, "class001", "000019.png"), b"no picture at all")
    daemon = box.daemon({"p": folder})
    trainer(box, daemon, """
        options = dict(batch_size=4, pipeline="decode", shuffle=False, on_error="substitute")
        def look(batch):
            assert batch.indices.tolist() == list(range(16, 20)), batch.indices
            assert len(batch["label"]) == len(batch.image) == 4 and set(batch) == {"image", "label"}
            assert "000019" in batch.errors[3], batch.errors
            assert batch.copy()["label"].tolist() == batch.label.tolist()
            assert batch.state_dict()["epoch"] == 0
            batch.release()
        def ahead(iterable):                                # as prefetchers do it, and Lightning, to know the last one
            iterator = iter(iterable)
            one = next(iterator)
            for following in iterator:
                yield one
                one = following
            yield one
        for persistent in (True, False):
            loader = dlclient.Loader("p", persistent=persistent, **options)
            for batch in ahead(loader): pass
            look(batch)
            loader.close()
            loader = dlclient.Loader("p", persistent=persistent, **options)
            for batch in loader: pass
            loader.close()
            look(batch)
            with dlclient.Loader("p", persistent=persistent, **options) as loader:
                for batch in loader: pass
            look(batch)
            with dlclient.Loader("p", persistent=persistent, **options) as loader:
                for batch in loader: pass
            del loader
            gc.collect()
            look(batch)
    """)


@case("a slot goes back when the last array of it dies, in whichever thread, and not before")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 200)})
    trainer(box, daemon, """
        import queue
        loader = dlclient.Loader("f", batch_size=2, slots=4, epochs=None, copy=False)
        def held():
            return loader.stats().held
        iterator = iter(loader)
        batch = next(iterator)
        label, image = batch.label, batch["image"][0]
        half = label[:1]
        assert held() == 1
        del batch, label; assert held() == 1
        del image; assert held() == 1
        del half; assert held() == 0
        batch = next(iterator)
        indices = batch.indices                             # a copy holds nothing
        batch.label
        batch.release(); assert held() == 0
        batch = next(iterator); label = batch.label
        refused(dlclient.StillInUse, batch.release, "label"); assert held() == 1
        del label; assert held() == 0
        with next(iterator) as batch:
            label = batch.label
        assert held() == 1
        del label; assert held() == 0
        work = queue.Queue(2)
        def consume():
            while True:
                item = work.get()
                if item is None: return
                item["label"].sum()
        threads = [threading.Thread(target=consume) for _ in range(1)]
        for thread in threads: thread.start()
        for i in range(300):
            while True:
                try:
                    work.put(next(iterator)); break
                except dlclient.RingFull:
                    time.sleep(0.001)
        for thread in threads: work.put(None)
        for thread in threads: thread.join()
        del batch
        gc.collect()
        assert held() == 0, held()
        for i in range(20):                                 # garbage in cycles is found before a ring is called full
            batch = next(iterator)
            knot = [batch["image"][0]]; knot.append(knot)
            del knot
        del batch
        assert len([1 for _, batch in zip(range(50), dlclient.Loader("f", copy=True, slots=2))]) == 50
    """)


@case("a slot that two threads give back goes back once: the other one leaves the batch that has it by then alone")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 200)})
    trainer(box, daemon, """
        from dlclient._lease import give_back
        loader = dlclient.Loader("f", batch_size=2, slots=2, epochs=None, copy=False)
        iterator = iter(loader)
        batch = next(iterator)
        handle, token, address = batch._source.lease.handle, batch._source.lease.token, batch._source.lease.address
        batch.release()
        for batch in iterator:
            if batch._source.lease.address == address: break
            batch.release()
        give_back(handle, token, address)                              # of a thread that was slow, without the GIL
        assert loader.stats().held == 1
        label = batch.label.copy()
        assert batch.label.tolist() == label.tolist()
        batch.release()
        assert loader.stats().held == 0
        assert len([1 for _, batch in zip(range(20), iterator)]) == 20
    """)


@case("a loader and its batches that only the garbage collector finds end in whichever sequence")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 20)})
    lines = trainer(box, daemon, """
        import functools
        given_back = []
        def leave():
            loader = dlclient.Loader("f", batch_size=2, copy=False)
            for batch in loader:
                break
            loader.close()
            handle = batch._source.lease.handle
            handle.ending = handle.ending_by(functools.partial(given_back.append))
            cycle = [loader, batch]
            cycle.append(cycle)
        def end_first():
            with dlclient.Loader("f", batch_size=2, copy=False) as loader:
                batch = next(iter(loader))
                handle = batch._source.lease.handle
            handle.ending = handle.ending_by(functools.partial(given_back.append))
            handle.__del__()                            # as the collector does, whichever sequence it finds them in
            handle.pointer = None
            batch.release()
        gc.disable()
        leave()
        gc.collect()
        end_first()
        assert given_back == [], "slots of a rank that has ended"
        out("alive")
    """)
    equal(lines, ["alive"], "the trainer")
    within(20, lambda: daemon.objects("jobs") == [], "the ranks are given back")


@case("a loader that nobody refers to any more gives its rank back")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 20)})
    run = Trainer(box, daemon, """
        def loop():
            for batch in dlclient.Loader("f", job="here", batch_size=3):
                if batch.step == 2: return batch["label"]
        label = loop()
        out("left")
        sys.stdin.readline()
    """)
    run.wait_lines(1)
    run.finish()
    trainer(box, daemon, """
        import weakref
        loader = dlclient.Loader("f", job="there")
        next(iter(loader))
        seen = weakref.ref(loader)
        del loader
        assert seen() is None                               # without the garbage collector's help
        again = dlclient.Loader("f", job="there")
    """)
    has_left(daemon)


@case("persistent=False gives the rank back between loops, and goes on in the same job and sequence")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 20)})
    run = Trainer(box, daemon, """
        loader = dlclient.Loader("f", batch_size=4, persistent=False, job="val")
        def pause():
            out(0)
            try: sys.stdin.readline(); signal.pause()
            except KeyboardInterrupt: pass
        for epoch in range(2):
            out([batch.indices.tolist() for batch in loader])
            pause()
        assert len(loader) == 5 and loader.job == "val" and len(loader.dataset.classes) == 2
        loader.set_epoch(7)
        out([batch.indices.tolist() for batch in loader])
        loader.close()
    """)
    for n_lines in (2, 4):
        run.wait_lines(n_lines)
        has_left(daemon)
        run.process.send_signal(signal.SIGINT)
    run.finish()
    for line, epoch in ((0, 0), (2, 1), (4, 7)):
        equal(sum(run.lines[line], []), expected_order(20, epoch=epoch), f"epoch {epoch}")


# ---- ends -----------------------------------------------------------------------------------------------------------

ENDS = {
    "os._exit()": "os._exit(0)",
    "an exception in the loop": "try:\n        raise ValueError('in the loop')\n    finally:\n        atexit.register(os._exit, 0)",
    "sys.exit()": "sys.exit(0)",
    "the end with live arrays": "",
    "a cycle at the end": "knot = [batch, loader]; knot.append(knot); sys.modules['knot'] = knot",
    "a daemon thread in next()": "threading.Thread(target=lambda: [None for _ in endless], daemon=True).start(); "
                                 "time.sleep(0.2)",
    "a closed loader with live arrays": "loader.close()",
}


@case("however the interpreter ends, it ends well and at once, and the daemon has everything back")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 20)})
    for what, code in ENDS.items():
        run = Trainer(box, daemon, f"""
import atexit
class AtTheEnd:
    def __init__(self, array): self.array = array
    def __del__(self): assert int(self.array[0]) >= 0       # still readable
loader = dlclient.Loader("f", batch_size=3, slots=8)
endless = dlclient.Loader("f", batch_size=3, epochs=None)
kept = []
for batch in loader:
    kept.append(batch["image"][0]); label = batch.label; last = AtTheEnd(label)
    if batch.step < 2: continue
    {code or 'break'}
    break
""")
        run.finish(20, status=0)
        if "exception" not in what:
            equal(run.errors(), "", f"{what}: what it said")
        has_left(daemon)


@case("an exception in the loop's body leaves a loader that can be used, and no slot behind")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 20)})
    trainer(box, daemon, """
        loader = dlclient.Loader("f", batch_size=2, slots=2)
        for epoch in range(20):
            try:
                for batch in loader:
                    view = batch["image"]
                    if batch.step == epoch % 9: raise ValueError("in the loop")
            except ValueError as error:
                state = loader.state_dict()
                assert (state["epoch"], state["position"]) == (epoch, 2 * (epoch % 9) + 2), (state, epoch)
        del batch, view
        loader.set_epoch(0)
        assert len([None for batch in loader]) == 10
    """)


@case("fork: the child is told, its garbage collector harms nobody, and it can open loaders of its own")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 60)})
    lines = trainer(box, daemon, """
        import multiprocessing
        loader = dlclient.Loader("f", batch_size=2, job="parent")
        iterator = iter(loader)
        batch = next(iterator)
        def child():
            global batch, loader, iterator
            for call in (lambda: next(iterator), lambda: next(iter(loader)), lambda: loader.set_epoch(3),
                         lambda: loader.stats(), lambda: loader.load_state_dict({}), lambda: batch["image"]):
                refused(dlclient.ForkedLoader, call, "fork")
            loader.close()
            del batch, iterator, loader
            gc.collect()
            mine = dlclient.Loader("f", batch_size=30, job="child")
            assert [b.n_samples for b in mine] == [30, 30]
        context = multiprocessing.get_context("fork")
        lock = loader._lock
        for i in range(3):
            if i == 2: lock.acquire()                       # held by a thread at the fork: the child does not hang
            process = context.Process(target=child)
            process.start(); process.join(300)
            assert process.exitcode == 0, process.exitcode
            if i == 2: lock.release()
        pid = os.fork()
        if pid == 0:
            sys.exit(0)                                     # through atexit and all destructors
        assert os.waitpid(pid, 0)[1] == 0
        assert int(batch.label[0]) >= 0
        out([batch.step] + [b.step for b in iterator])
    """)
    equal(lines, [list(range(30))], "steps of the parent")


# ---- signals and threads --------------------------------------------------------------------------------------------

@case("Ctrl-C ends a next() that waits within a moment, and the next call goes on with the same batch")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 60)})
    need("numpy")
    run = Trainer(box, daemon, """
        loader = dlclient.Loader("f", batch_size=2, slots=2, job="it")
        seen, iterator, count = [], iter(loader), 0
        signal.signal(signal.SIGUSR1, lambda *_: out("heard"))   # a handler that raises nothing: the wait goes on
        while True:
            try:
                batch = next(iterator, None)
                if batch is None: break
                seen.append(batch.indices.tolist())
                if len(seen) == 2: out("begun"); time.sleep(1)
            except KeyboardInterrupt:
                out("interrupted")
        out(seen)
    """)
    run.wait_lines(1)
    daemon.signal(signal.SIGSTOP)
    try:
        time.sleep(1.5)                                     # the ring is empty by then
        for n_lines, number in ((2, signal.SIGINT), (3, signal.SIGUSR1), (4, signal.SIGINT)):
            run.process.send_signal(number)
            run.wait_lines(n_lines)
    finally:
        daemon.signal(signal.SIGCONT)
    run.finish()
    equal(run.lines[:4], ["begun", "interrupted", "heard", "interrupted"], "what was heard")
    equal(sum(run.lines[4], []), expected_order(60), "all batches, none twice")


@case("exceptions of signal handlers at any moment lose no slot, and no batch but one that was on its way to the loop")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 4000, size=20)})
    lines = trainer(box, daemon, """
        class Alarm(Exception): pass
        def ring(_, frame):
            if "dlclient" in frame.f_code.co_filename: raise Alarm
        signal.signal(signal.SIGALRM, ring)
        loader = dlclient.Loader("f", batch_size=2, slots=2, shuffle=False)
        iterator, seen, alarms, batch = iter(loader), [], 0, None
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0007)
        while True:
            try:
                batch = None
                batch = next(iterator, None)
                if batch is None: break
                seen.append(batch.indices.tolist())
            except Alarm:
                alarms += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        flat = [i for indices in seen for i in indices]
        assert flat == sorted(set(flat)), "in order, none twice"
        missing = (4000 - len(flat)) // 2
        print(f"{alarms} alarms, {missing} batches did not arrive", file=sys.stderr)
        assert missing <= alarms, "an exception costs one batch at most: how often it does is the machine's affair"
        out([alarms > 20, loader.state_dict()["epoch"]])
        assert loader.stats().held == 0
    """)
    equal(lines, [[True, 1]], "alarms, epoch")


@case("a batch whose destructor a signal's exception ended is not shown as held")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 40, size=20)})
    lines = trainer(box, daemon, """
        def ring(frame, event, _):
            if event == "call" and frame.f_code.co_qualname == "Lease.__del__": raise KeyboardInterrupt
        loader = dlclient.Loader("f", batch_size=2, slots=2)
        batch = next(iter(loader))
        out(loader.stats().held)
        sys.settrace(ring)
        del batch
        sys.settrace(None)
        out(loader.stats().held)
    """)
    equal(lines, [1, 0], "held while it lives, and after")


@case("several threads may share a loader; one that closes it wakes another one that waits")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 200)})
    trainer(box, daemon, """
        loader = dlclient.Loader("f", batch_size=2, slots=16)
        iterator, seen, lock = iter(loader), [], threading.Lock()
        def pull():
            for batch in iterator:
                with lock: seen.extend(batch.indices.tolist())
        threads = [threading.Thread(target=pull) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert sorted(seen) == list(range(200)), len(seen)
        told = []
        waiting = dlclient.Loader("f", batch_size=2, slots=2, job="w")
        def wait():
            try:
                for batch in iterate: pass
            except dlclient.LoaderClosed as error:
                told.append(str(error))
        iterate = iter(waiting)
        os.kill(int(sys.argv[1]), signal.SIGSTOP)
        try:
            thread = threading.Thread(target=wait)
            thread.start()
            time.sleep(0.3)
            waiting.close()
            thread.join(60)
            assert told, "the thread that waited is awake"
        finally:
            os.kill(int(sys.argv[1]), signal.SIGCONT)
    """, daemon.pid)


@case("a notebook's cell that runs again replaces its own loader, whatever it changed; the older one says so")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 40)})
    trainer(box, daemon, """
        def cell(**options):
            return dlclient.Loader("f", job="notebook", **options)
        older = cell(batch_size=4)
        iterator = iter(older)
        label = next(iterator)["label"]
        newer = cell(batch_size=5)
        for call in (lambda: next(iterator), lambda: iter(older), lambda: older.stats()):
            refused(dlclient.LoaderClosed, call, "newer Loader of the same job and rank")
        assert older.closed and label.sum() >= 0            # its arrays are alive
        assert sum(batch.n_samples for batch in newer) == 40
        third = cell(batch_size=5)
        assert newer.closed and not third.closed
        refused(dlclient.OptionError, lambda: cell(batch_size=5, pipeline="turn(3)"), "turn")
        assert not third.closed                             # a cell that fails replaces nothing
        for i in range(50):
            loader = dlclient.Loader("f", batch_size=4)     # without a name of its own: by counting references
            next(iter(loader))
        pair = [dlclient.Loader("f", job="pair", world_size=2, rank=rank) for rank in range(2)]
        assert not pair[0].closed
    """)


# ---- a daemon that goes away ----------------------------------------------------------------------------------------

@case("a daemon's restart is waited for and told once; the loop goes on behind the last batch, arrays stay")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 60)})
    need("numpy")
    run = Trainer(box, daemon, """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        logging.basicConfig(format="%(levelname)s %(message)s", level=logging.INFO)
        loader = dlclient.Loader("f", batch_size=2, slots=3)
        seen, kept = [], None
        for batch in loader:
            if kept is None: kept = batch["image"][0]; text = bytes(kept)
            seen.append(batch.indices.tolist())
            if batch.step == 9: out("now"); signal.sigwait({signal.SIGUSR1})
        assert bytes(kept) == text
        out(seen)
        out(loader.stats().restarts)
        assert loader.stats().restart_s > 0
    """)
    run.wait_lines(1)
    daemon.kill()
    run.process.send_signal(signal.SIGUSR1)
    within(20, lambda: "gone" in run.errors(), "it waits")
    daemon.start()
    run.finish()
    equal(sum(run.lines[1], []), expected_order(60), "all batches, none twice")
    equal(run.lines[2], 1, "restarts")
    told = [line for line in run.errors().splitlines() if line.startswith(("WARNING", "INFO"))]
    equal([line.split()[0] for line in told], ["WARNING", "INFO"], f"what was logged: {told}")
    contains(told[0], "gone")
    contains(told[1], "back after")


@case("dataset.classes first asked for while the daemon is away waits for it, and the loop loses nothing by that")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 60)})
    need("numpy")
    runs = [Trainer(box, daemon, """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        loader = dlclient.Loader("f", batch_size=2, **eval(sys.argv[1]))
        seen = []
        for batch in loader:
            seen += batch.indices.tolist()
            if batch.step == int(sys.argv[2]):
                out("now")
                signal.sigwait({signal.SIGUSR1})
                out(loader.dataset.classes)
        out(seen)
    """, [options, step]) for options, step in (("{}", 0), ("{}", 9), ("dict(slots=8)", 29), ("dict(on_restart='raise')", 3),
                                                ("dict(restart_timeout=0.5)", 3))]
    for run in runs:
        run.wait_lines(1)
    daemon.kill()
    for run in runs:
        run.process.send_signal(signal.SIGUSR1)
    for run in runs[3:]:
        contains(failure(run), "DaemonGone")
    time.sleep(0.5)
    equal([run.lines for run in runs[:3]], [["now"]] * 3, "they wait")
    daemon.start()
    for run in runs[:3]:
        run.finish()
        equal(run.lines[1:], [["class000", "class001"], expected_order(60)], "classes and samples")


def failure(run):
    """The text of the exception that ended it."""
    run.finish(status=1)
    return run.errors()


@case("with persistent=False a daemon that is away between two loops is waited for, by one rank and by several")
def _(box):
    folder = box.folder_of_files("f", 20)
    daemon = box.daemon({"f": folder})
    need("numpy")
    runs = [Trainer(box, daemon, """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        logging.basicConfig(format="%(levelname)s %(message)s", level=logging.INFO)
        options = eval(sys.argv[1])
        loader = dlclient.Loader("f", batch_size=5, persistent=False, **options)
        def loop():
            return [(one.epoch, one.indices.tolist()) for step in loader
                    for one in (step if isinstance(step, tuple) else (step,))]
        first = loop()
        out("now")
        signal.sigwait({signal.SIGUSR1})
        if "restart_timeout" in options or "on_restart" in options:
            time.sleep(0.5)
            refused(dlclient.DaemonGone, loop, "between two loops", "no daemon")
            out("gone")
            signal.sigwait({signal.SIGUSR1})
        out([first, loop()])
    """, [options]) for options in ("{}", "dict(ranks=[0, 1])", "dict(rank=0, world_size=2, job='two')",
                                    "dict(rank=1, world_size=2, job='two')", "dict(restart_timeout=1)",
                                    "dict(on_restart='raise')")]
    for run in runs:
        run.wait_lines(1)
    within(10, lambda: not daemon.objects("jobs"), "all have given their ranks back")
    daemon.kill()
    for run in runs:
        run.process.send_signal(signal.SIGUSR1)
    for run in runs[4:]:
        run.wait_lines(2)
    for run in runs[:4]:
        within(20, lambda: "waiting for its return" in run.errors(), "it waits")
        equal(run.lines, ["now"], "lines")
    daemon.start()
    for run in runs:
        run.process.send_signal(signal.SIGUSR1)
    for run in runs[:4]:
        first, second = run.finish()[-1]
        equal([len(first), len(second)], [len(first)] * 2, "batches")
        equal([{epoch for epoch, _ in first}, {epoch for epoch, _ in second}], [{0}, {1}], "epochs")
    one = [index for _, indices in runs[0].lines[-1][1] for index in indices]
    equal(one, expected_order(20, epoch=1), "the second loop")
    for run in runs[4:]:
        equal(run.finish()[-1][1][0][0], 1, "the loop that failed comes later")


@case("with persistent=False files that changed between two loops are DatasetChanged, not other batches under the old name")
def _(box):
    folder = box.folder_of_files("f", 20)
    daemon = box.daemon({"f": folder})
    need("numpy")
    run = Trainer(box, daemon, """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        loader = dlclient.Loader("f", batch_size=5, persistent=False)
        out(len(list(batch.n_samples for batch in loader)))
        signal.sigwait({signal.SIGUSR1})
        text = refused(dlclient.DatasetChanged, lambda: next(iter(loader)), loader.dataset.digest, "20 samples", "with 21")
        refused(dlclient.DatasetChanged, lambda: next(iter(loader)))
        out(dlclient.Loader("f").dataset.digest in text)
    """)
    run.wait_lines(1)
    daemon.stop()
    write(os.path.join(folder, "class000", "zzz.png"), b"one more")
    daemon.start()
    run.process.send_signal(signal.SIGUSR1)
    equal(run.finish()[1:], [True], "both digests are named")


@case("a daemon that does not come back is DaemonGone, at once with on_restart=\"raise\", and can be interrupted")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 60)})
    need("numpy")
    runs = [Trainer(box, daemon, """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        options = eval(sys.argv[1])
        loader = dlclient.Loader("f", batch_size=2, **options)
        iterator = iter(loader)
        next(iterator)
        out("now")
        signal.sigwait({signal.SIGUSR1})
        def rest():
            for batch in iterator: pass
        kind = dlclient.DaemonTimeout if "timeout" in options else dlclient.DaemonGone
        refused(kind, rest, "daemon" if kind is dlclient.DaemonGone else "timeout")
        if kind is dlclient.DaemonGone: refused(kind, rest)
        assert loader.state_dict()["position"] > 0          # can still be saved
    """, [options]) for options in ("dict(on_restart='raise')", "dict(restart_timeout=1.5)", "dict(timeout=0.4)")]
    for run in runs:
        run.wait_lines(1)
    daemon.kill()
    for run in runs:
        run.process.send_signal(signal.SIGUSR1)
    for run in runs:
        run.finish()


@case("a daemon that comes back with other files is DatasetChanged, with both digests")
def _(box):
    folder = box.folder_of_files("f", 60)
    daemon = box.daemon({"f": folder})
    need("numpy")
    run = Trainer(box, daemon, """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        loader = dlclient.Loader("f", batch_size=2)
        iterator = iter(loader)
        next(iterator)
        out("now")
        signal.sigwait({signal.SIGUSR1})
        digest = loader.dataset.digest
        def rest():
            for batch in iterator: pass
        refused(dlclient.DatasetChanged, rest, digest)
        out(loader.state_dict()["digest"] == digest)        # of the files that it was trained on
    """)
    run.wait_lines(1)
    daemon.kill()
    write(os.path.join(folder, "class000", "another.jpg"), b"another")
    daemon.start()
    run.process.send_signal(signal.SIGUSR1)
    equal(run.finish()[1], True, "the state is that of the old files")


main()
