"""What a job keeps beside another user who takes what he can get, over what an equal neighbour of that user leaves it.

    hostile_equal, _gap      images/s of the job beside an equal one of another user; ms, the longest time between batches
    hostile_busy, _gap       the same where that user also keeps as many CPUs busy as `all` does, outside of the daemon
    hostile_KIND             images/s beside KIND over images/s beside the equal one, in turns; of `all`: over the busy one
    hostile_KIND_gap         the longest time between batches over that beside the equal one, or the busy one
    hostile_KIND_attach      ms of an attach meanwhile, the slowest; _status: of a status request
    hostile_KIND_term        ms from SIGTERM to the end of the daemon

KIND is what processes of the other user do (hostile_user.py): `slow` reads with the longest pipeline that is allowed, `orders`
has large orders made and seeks in them, `refused` attaches to what there is not, `flood` does what costs the main thread
most, `all` does all of it at once. Medians of all but attach and status. Only root can be several users.

Under the shipped unit the daemon has a control group of its own, and so has each user. Where such groups can be made (root,
version 1) they are: the daemon, the measured job and the other user share the CPUs as systemd's slices do."""
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "support"))
from cgroups import CPU_PLACES, Groups  # noqa: E402
from harness import Box, HandClient, Skip, end, request  # noqa: E402

UID = 61005
KINDS = {"equal": ["equal"], "busy": ["equal"] + ["spin"] * 2, "slow": ["slow"], "orders": ["orders"],
         "refused": ["refused"] * 2, "flood": ["flood"] * 2, "all": ["slow", "orders", "refused", "flood"]}
BESIDE = {"all": "busy"}  # what its ratios are to; the others: to the equal one
SETTLE_S = 3


@contextlib.contextmanager
def another_user(box, groups, it, processes):
    """Processes of that user, ended with the block."""
    command = groups.inside("other") if groups else []
    command += [sys.executable, os.path.join(HERE, "hostile_user.py")]
    running = [box.start(command + [kind, str(UID), it.socket, "photos"], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL) for kind in processes]
    time.sleep(SETTLE_S)
    try:
        yield running
    finally:
        for process in running:
            end(process)


def took_ms(act):
    begin = time.monotonic()
    act()
    return 1000 * (time.monotonic() - begin)


def attach_ms(it, number):
    client = HandClient(it.socket)
    try:
        return took_ms(lambda: client.attach("photos", job=f"probe{number}", batch=4))
    finally:
        for descriptor in client.descriptors:
            os.close(descriptor)
        client.socket.close()


def status_ms(it):
    client = HandClient(it.socket)
    try:
        return took_ms(lambda: (client.send(request("status")), client.receive()))
    finally:
        client.socket.close()


def beside(box, groups, daemon, processes, n_batches):
    """One run: rate, gap, attach, status, term. The daemon ends while the other user is still at work."""
    with daemon(2, more='socket_mode = "0666"\n') as it:
        os.chmod(it.folder, 0o711)
        if groups:
            groups.enter("service", it.process.pid)
        with another_user(box, groups, it, processes) as running:
            job = it.consume("throughput", n_batches)
            latency = [attach_ms(it, number) for number in range(10)], [status_ms(it) for _ in range(20)]
            if any(process.poll() is not None for process in running):
                raise RuntimeError(f"of {processes} one has ended")
            it.process.send_signal(signal.SIGTERM)
            return (job["images_per_s"], job["gap_ms"], *map(max, latency), took_ms(lambda: it.process.wait(60)))


def own_groups(box):
    """Control groups as under the unit, this process in that of the measured job; None where they cannot be made."""
    try:
        groups = Groups(box, CPU_PLACES)
    except Skip as reason:
        print(f"# hostile: everything in one control group: {reason}", file=sys.stderr)
        return None
    groups.enter("measured", os.getpid())
    box.cleanups.append(lambda: groups.leave(os.getpid()))
    return groups


def run(daemon, emit, repeats, n_batches):
    """`daemon`, `emit` as in run.py. Everything that was started is gone when this returns."""
    if os.getuid() != 0:
        print("# hostile: only root can be several users", file=sys.stderr)
        return
    rows = {kind: [] for kind in KINDS}
    box = Box()
    try:
        groups = own_groups(box)
        for _ in range(repeats):
            for kind, processes in KINDS.items():
                rows[kind].append(beside(box, groups, daemon, processes, n_batches))
    finally:
        box.close()
    for kind, measured in rows.items():
        rates, gaps, attaches, statuses, terms = zip(*measured)
        is_base = kind in ("equal", "busy")
        rate, gap = (1 if is_base else statistics.median(row[column] for row in rows[BESIDE.get(kind, "equal")])
                     for column in (0, 1))
        emit(f"hostile_{kind}", statistics.median(rates) / rate, "images/s" if is_base else "ratio", repeats=repeats)
        emit(f"hostile_{kind}_gap", statistics.median(gaps) / gap, "ms" if is_base else "ratio")
        emit(f"hostile_{kind}_attach", max(attaches), "ms")
        emit(f"hostile_{kind}_status", max(statuses), "ms")
        emit(f"hostile_{kind}_term", statistics.median(terms), "ms")
