#!/usr/bin/env python3
"""The daemon is killed, stopped and started again under ranks that wait for it: they lose nothing and get nothing twice."""
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import (BUILD, case, check_sequence, contains, equal, expected_order, few, identity_bytes, indices, main,
                     patience, whole_order, within, write)
from pyclient import Trainer, need

CROPS = {"pipeline": "random_resized_crop(24) hflip(0.5)", "seed": 3}


def restart(daemon, ending, seconds):
    """Ends it one way or the other; it is back after this time."""
    ending(daemon)
    time.sleep(seconds)
    daemon.start(wait=False)


def disturb(daemon, readers, ending, n_restarts):
    """Restarts at random moments while these readers run. Returns how many there were."""
    for number in range(n_restarts):
        time.sleep(random.random() * 0.2)
        if any(reader.process.poll() is not None for reader in readers):
            return number
        restart(daemon, ending, random.random() * 0.2)
        if random.random() < 0.7:  # else it ends again as soon as it has begun
            daemon.wait_ready()
    return n_restarts


# On a busy machine the daemon that comes back may take a moment for its index.
WAITS = "dlctl: waiting: dataset d: its index is being built"


def by_turns(daemon):
    (type(daemon).kill if random.random() < 0.5 else type(daemon).stop)(daemon)


def whole(daemon):
    """A daemon that was ended before it had begun cannot say so; SIGTERM finds it ready."""
    daemon.wait_ready()
    by_turns(daemon)


for way, ending in (("kill -9", lambda daemon: daemon.kill()), ("SIGTERM", lambda daemon: (daemon.wait_ready(),
                                                                                           daemon.stop())),
                    ("kill -9 and SIGTERM by turns", whole)):
    @case(f"two ranks live through {way} at random moments: each line as without it, none lost, none twice")
    def _(box, ending=ending):
        random.seed()
        daemon = box.daemon({"d": box.folder_of_pictures("d", 60, width=40, height=30)})
        terms = dict(CROPS, world=2, batch=4, epochs=25)
        expected = daemon.read_ranks("d", job="undisturbed", **terms)
        readers = [daemon.reader("d", job="disturbed", rank=rank, delay_ms=15, on_restart="wait", **terms)
                   for rank in range(2)]
        for reader in readers:
            reader.wait_lines(1)
        n_restarts = disturb(daemon, readers, ending, 8)
        for rank, reader in enumerate(readers):
            lines = reader.good()
            check_sequence(lines, 60, world=2, rank=rank, batch=4, epochs=25, seed=3)
            equal(lines, expected[rank], f"lines of rank {rank}, pixels and all")
            others = [line for line in reader.errors().splitlines() if not line.startswith(WAITS)]
            equal(others, [], "messages")
        equal(n_restarts >= 4, True, f"restarts: {n_restarts}")


@case("a rank that begins past its epochs, slowly, is found again too")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 40)})
    reader = daemon.reader("d", batch=3, epochs=4, first_epoch=7, slots=2, delay_ms=30, on_restart="wait",
                           partition="exact", world=2, rank=1, order="torch")
    for lines in (2, 20, 45):
        reader.wait_lines(lines)
        restart(daemon, lambda daemon: daemon.kill(), 0.05)
        daemon.wait_ready()
    check_sequence(reader.good(), 40, batch=3, epochs=4, first_epoch=7, world=2, rank=1, partition="exact")


@case("a daemon that never comes back is waited for as long as was said, and its socket is named")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 100)})
    reader = daemon.reader("d", epochs=10000, slots=2, delay_ms=5, on_restart="wait", restart_timeout_ms=1500)
    reader.wait_lines(3)
    daemon.kill()
    status, lines = reader.finish()
    equal(status, 3, f"exit status; {reader.errors()}")
    contains(reader.errors(), "restart_timeout_ms=1500", "waited 1.5 s", daemon.socket)
    equal(indices(lines), expected_order(100)[:len(lines)], "what came before")


@case("a dataset that changed while the daemon was away is refused with both digests")
def _(box):
    folder = box.folder_of_files("d", 100)
    daemon = box.daemon({"d": folder})
    reader = daemon.reader("d", epochs=10000, slots=2, delay_ms=5, on_restart="wait")
    reader.wait_lines(3)
    before = daemon.objects("datasets")[0]["digest"]
    daemon.kill()
    write(os.path.join(folder, "class000", "000000a.jpg"), identity_bytes(1000, 300))
    daemon.start()
    status, _ = reader.finish()
    equal(status, 1, f"exit status; {reader.errors()}")
    after = within(5, lambda: daemon.objects("datasets")[0]["digest"], "the new digest")
    contains(reader.errors(), "changed while the daemon was away", f"was {before}", "100 samples", f"is {after}", "101")


@case("a dataset that is not there any more is refused")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 100)})
    reader = daemon.reader("d", epochs=10000, slots=2, delay_ms=5, on_restart="wait")
    reader.wait_lines(3)
    daemon.kill()
    daemon.datasets = {"other": daemon.datasets["d"]}
    daemon.write_config()
    daemon.start()
    status, _ = reader.finish()
    equal(status, 1, f"exit status; {reader.errors()}")
    contains(reader.errors(), "d", "other")


@case("unless it is told to wait, dlctl read ends when the daemon does")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 100)})
    reader = daemon.reader("d", epochs=10000, slots=2, delay_ms=5)
    reader.wait_lines(3)
    daemon.stop()
    status, _ = reader.finish(3)
    equal(status, 3, f"exit status; {reader.errors()}")
    contains(reader.errors(), daemon.socket)


@case("a seek while the daemon has been asked to attach again, and has not answered yet, is where the loader continues")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 60)})
    source = """
        loader = dlclient.Loader("d", batch_size=5, seed=3, job="run", timeout=0.3)
        batches = iter(loader)
        taken = [next(batches).indices.tolist()]
        state = loader.state_dict()
        taken += [next(batches).indices.tolist() for _ in range(3)]
        out(taken)
        while not os.path.exists(sys.argv[1]):
            time.sleep(0.01)
        try:
            while True:
                next(batches)
        except dlclient.DaemonTimeout:
            pass
        loader.load_state_dict(state)
        out("moved")
        batches = iter(loader)
        while len(taken) < 15:
            try:
                taken.append(next(batches).indices.tolist())
            except dlclient.DaemonTimeout:
                pass
        out(taken[4:])
        """
    need("numpy")
    trainer = Trainer(box, daemon, source, [box.path("go")])
    trainer.wait_lines(1)
    daemon.kill()
    daemon.start()
    daemon.signal(signal.SIGSTOP)
    write(box.path("go"), b"")
    trainer.wait_lines(2)
    daemon.signal(signal.SIGCONT)
    order = whole_order(60, 3)
    rest = trainer.finish()[2]
    equal(sum(rest, []), order[5:], "the samples behind the place of the state")


@case("a trainer of two ranks that knows nothing of restarts computes the same over them")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 200, width=40, height=30)})

    def train(name):
        processes = []
        for rank in range(2):
            env = dict(daemon.client_environment(), DATALOADERD_SOCKET=daemon.socket, RANK=str(rank), WORLD_SIZE="2",
                       TORCHELASTIC_RUN_ID=name)
            processes.append(box.start([os.path.join(BUILD, "examples", "trainer"), "d", str(few(25, 12))], env=env,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True))
        return processes

    def results(processes):
        return [(process.communicate(timeout=patience(120))[0], process.returncode) for process in processes]

    expected = results(train("undisturbed"))
    equal([status for _, status in expected], [0, 0], f"exit statuses: {expected}")
    disturbed = train("disturbed")
    within(60, lambda: [len(job["ranks"]) for job in daemon.objects("jobs")] == [2],
           "both ranks are there: who comes while a daemon stops is refused")
    for number in range(6):
        time.sleep(0.05 + random.random() * 0.15)
        restart(daemon, (lambda daemon: daemon.kill()) if number % 2 else (lambda daemon: daemon.stop()), 0.1)
        daemon.wait_ready()
    equal(results(disturbed), expected, "what they print")


main()
