#!/usr/bin/env python3
"""The workers and the node: how many there are and why, changing them while ranks read, what they take of the CPUs and of
memory."""
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import DLCTL, IS_SANITIZED, VARIANT, Skip, case, check_sequence, contains, equal, main, within, write

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
OWN_NICE = os.getpriority(os.PRIO_PROCESS, 0)  # as these tests were started, and so the daemon


def threads(daemon, name="worker-"):
    """The daemon's threads of that name: id -> fields of its stat, from the state on (field 3 is 0 here)."""
    found = {}
    for thread in os.listdir(f"/proc/{daemon.pid}/task"):
        try:
            with open(f"/proc/{daemon.pid}/task/{thread}/stat", encoding="ascii", errors="replace") as stat:
                comm, _, rest = stat.read().partition("(")[2].rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just left
        if comm.startswith(name):
            found[int(thread)] = rest.split()
    return found


def faults(daemon):
    """Minor and major page faults of each thread but the one that makes the tables of coming epochs."""
    return {thread: int(stat[7]) + int(stat[9]) for thread, stat in threads(daemon, "").items()
            if thread not in threads(daemon, "order")}


def cpu_seconds(daemon):
    return sum(int(stat[11]) + int(stat[12]) for stat in threads(daemon).values()) / TICKS_A_SECOND


def nices(daemon):
    return sorted(int(stat[16]) for stat in threads(daemon).values())


def expect_workers(daemon, number):
    within(5, lambda: len(threads(daemon)) == number, f"{number} workers")
    equal(daemon.status()["n_workers"], number, "n_workers of dlctl status")


def obtained(daemon, name="workers"):
    return next(fact for fact in daemon.status()["obtained"] if fact["name"] == name)


def n_arenas(daemon):
    """Of malloc, beside the main one: each has 64 MiB of addresses that begin at a multiple of 64 MiB, the rest of which may not be
    touched yet. Other memory may begin there by chance, but does not end there as well."""
    whole = 64 << 20
    with open(f"/proc/{daemon.pid}/maps", encoding="utf-8", errors="replace") as maps:
        lines = [line.split() for line in maps]
    areas = [(*(int(number, 16) for number in words[0].split("-")), words[1]) for words in lines if len(words) == 5]
    return sum(begin % whole == 0 and mode == "rw-p" and rest_mode == "---p" and rest_begin == end and rest_end == begin + whole
               for (begin, end, mode), (rest_begin, rest_end, rest_mode) in zip(areas, areas[1:]))


def reload(daemon, **settings):
    """Writes these settings and lets the daemon read them; they are in force when this returns."""
    daemon.settings.update(settings)
    daemon.write_config()
    n_before = daemon.log().count("configuration read again")
    daemon.signal(signal.SIGHUP)
    within(5, lambda: daemon.log().count("configuration read again") > n_before, "the configuration is read again")


def counted(daemon, name):
    return int(next(fact["value"] for fact in daemon.status()["counters"] if fact["name"] == name))


# ---- how many -------------------------------------------------------------------------------------------------------

@case("workers = 0 are as many as the affinity mask has CPUs, and a reload looks again")
def _(box):
    cpus = sorted(os.sched_getaffinity(0))
    daemon = box.daemon({"d": box.folder_of_files("d", 10)}, workers=0, program=["taskset", "-c", str(cpus[0])])
    expect_workers(daemon, 1)
    contains(obtained(daemon)["text"], "as many as CPUs: affinity 1 CPU")
    contains(daemon.log(), "1: as many as CPUs: affinity 1 CPU")
    check_sequence(daemon.read("d"), 10)
    if len(cpus) < 2:
        raise Skip("the second half needs two CPUs")
    os.sched_setaffinity(daemon.pid, cpus[:2])
    reload(daemon)
    contains(obtained(daemon)["text"], "affinity 2 CPUs")
    quota = "quota" in obtained(daemon)["text"]
    expect_workers(daemon, len(threads(daemon)) if quota else 2)


def group_with_quota(box, quota):
    """A control group of version 2 with this cpu.max; its folder."""
    with open("/proc/self/mountinfo", encoding="ascii") as mounts:
        points = [line.split()[4] for line in mounts if " - cgroup2 " in line]
    if not points:
        raise Skip("no control groups of version 2 are mounted here")
    with open(os.path.join(points[0], "cgroup.controllers"), encoding="ascii") as controllers:
        if "cpu" not in controllers.read().split():
            raise Skip("version 2 of control groups has no cpu controller here")
    folder = os.path.join(points[0], f"dataloaderd-test-{os.getpid()}")
    try:
        os.mkdir(folder)
        box.cleanups.append(lambda: os.rmdir(folder))
        with open(os.path.join(folder, "cpu.max"), "w", encoding="ascii") as file:
            file.write(quota)
    except OSError as error:
        raise Skip(f"no control group can be made here: {error}") from None
    return folder


@case("workers = 0 are no more than the quota of the control group, rounded up")
def _(box):
    folder = group_with_quota(box, "50000 100000")
    daemon = box.daemon({"d": box.folder_of_files("d", 10)}, workers=0,
                        program=["sh", "-c", f"echo $$ >{folder}/cgroup.procs && exec \"$@\"", "sh"])
    expect_workers(daemon, 1)
    contains(obtained(daemon)["text"], "cgroup quota 0.5", os.path.basename(folder))
    check_sequence(daemon.read("d"), 10)
    with open(os.path.join(folder, "cpu.max"), "w", encoding="ascii") as file:
        file.write("max")
    reload(daemon)
    expect_workers(daemon, len(os.sched_getaffinity(daemon.pid)))
    daemon.stop()


# ---- more and fewer -------------------------------------------------------------------------------------------------

@case("one to eight workers, by reload and by hand, while two ranks read: each sample in its place")
def _(box):
    draw = random.Random(20)
    daemon = box.daemon({"d": box.folder_of_pictures("d", 97)}, workers=2)
    ranks = [daemon.reader("d", rank=rank, world=2, batch=4, epochs=100000, job="long", seed=3,
                           pipeline="random_resized_crop(8)") for rank in range(2)]
    for rank in ranks:
        rank.wait_lines(1)
    for _ in range(20):
        number = draw.randint(1, 8)
        if draw.random() < 0.3:
            reload(daemon, workers=number)
            expect_workers(daemon, number)
        else:
            equal(daemon.objects("workers", str(number))[0]["n_workers"], number, "answer")
    for rank in ranks:
        rank.wait_lines(len(rank.lines) + 100)  # they go on
    if not IS_SANITIZED:
        arenas, cpus = n_arenas(daemon), os.cpu_count()
        assert arenas <= cpus + 1, f"{arenas} arenas of malloc beside the main one, {cpus} CPUs: memory that nobody is charged for"
    for rank, reader in enumerate(ranks):
        reader.process.send_signal(signal.SIGINT)
        equal(reader.finish()[0], 130, reader.errors())
        n_epochs = len(reader.lines) // 49
        check_sequence(reader.lines[:49 * n_epochs], 97, batch=4, epochs=n_epochs, world=2, rank=rank, seed=3)


@case("dlctl workers shows, changes until the next reload, and refuses what cannot be")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 10)}, workers=2)
    shown = daemon.objects("workers")[0]
    equal(shown["n_workers"], 2, "n_workers")
    contains(shown["text"], "a fixed number: affinity")
    contains(daemon.objects("workers", "5")[0]["text"], "asked for at run time")
    expect_workers(daemon, 5)
    contains(daemon.log(), "2 -> 5: a fixed number, asked for at run time")
    check_sequence(daemon.read("d", epochs=3), 10, epochs=3)
    reload(daemon)
    expect_workers(daemon, 2)

    done = daemon.dlctl("workers", "4097")
    equal(done.returncode, 1, done.stderr)
    contains(done.stderr, "4097", "0 to 4096")
    expect_workers(daemon, 2)
    check_sequence(daemon.read("d"), 10)


@case("whoever may be served may ask how many there are, but not change it")
def _(box):
    if os.getuid() != 0:
        raise Skip("only root can become somebody else to try permissions")
    daemon = box.daemon({}, workers=2, socket_mode="0666")
    os.chmod(box.folder, 0o755)
    os.chmod(daemon.folder, 0o755)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

    def ask(*arguments):
        return subprocess.run(nobody + [DLCTL, "--socket", daemon.socket, "workers", *arguments], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=300)
    done = ask()
    equal(done.returncode, 0, done.stderr)
    done = ask("8")
    equal(done.returncode, 1, done.stderr)
    contains(done.stderr, "workers", "only admins may change", "the daemon's own user")
    within(10, lambda: "nobody" in ask("8").stderr, "the user's name, once it is looked up")
    expect_workers(daemon, 2)


# ---- what they take of the CPUs -------------------------------------------------------------------------------------

@case("nice is that of the workers alone, and follows a reload")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 10)}, workers=3, nice=7)
    equal(nices(daemon), [7, 7, 7], "nice values at the start")
    equal({int(stat[16]) for stat in threads(daemon, "planner").values()}, {OWN_NICE}, "of the planner")
    contains(obtained(daemon)["text"], "nice 7")
    reload(daemon, nice=12, workers=4)
    within(5, lambda: nices(daemon) == [12] * 4, "nice 12")
    check_sequence(daemon.read("d"), 10)


def daemon_of_nobody(box, nice_limit, **settings):
    """A daemon without privileges; nice_limit as prlimit writes it: 0 allows nothing, 20 as far as nice 0."""
    if os.getuid() != 0:
        raise Skip("only root can become somebody without privileges")
    limit = f"--nice={nice_limit}:{nice_limit}"
    if subprocess.run(["prlimit", limit, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("this root may not raise RLIMIT_NICE (no CAP_SYS_RESOURCE)")
    os.chmod(box.folder, 0o755)
    os.makedirs(box.path("daemon0"))
    os.chown(box.path("daemon0"), 65534, 65534)
    return box.daemon({"d": box.folder_of_files("d", 10)}, workers=2,
                      program=["prlimit", limit, "setpriv", "--reuid=65534",
                               "--regid=65534", "--clear-groups", "--bounding-set=-all", "--no-new-privs"], **settings)


@case("workers that may not come forward again stay as they are, and the log says so")
def _(box):
    daemon = daemon_of_nobody(box, 0, nice=5)
    reload(daemon, nice=0)
    contains(daemon.log(), "nice:", "RLIMIT_NICE")
    equal(nices(daemon), [5, 5], "nice values of those that run")
    daemon.objects("workers", "3")
    within(5, lambda: nices(daemon) == sorted([OWN_NICE, 5, 5]), "the new one's is that of the daemon")
    check_sequence(daemon.read("d"), 10)


@case("with the limit that the systemd unit sets they come forward without privileges")
def _(box):
    daemon = daemon_of_nobody(box, 20, nice=5)
    reload(daemon, nice=0)
    equal(nices(daemon), [0, 0], "nice values")
    equal("RLIMIT_NICE" in daemon.log(), False, "nothing to complain of")


def share_taken(daemon, seconds):
    """CPU time of the workers for wall time, over a while."""
    begin, taken = time.monotonic(), cpu_seconds(daemon)
    time.sleep(seconds)
    return (cpu_seconds(daemon) - taken) / (time.monotonic() - begin)


@case("under a ceiling the workers together take no more CPU time than it says, and batches go on coming")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 40, width=160, height=120)}, workers=3, cpu_ceiling="30")
    contains(obtained(daemon)["text"], "ceiling 0.3 CPUs")
    reader = daemon.reader("d", batch=8, epochs=100000, pipeline="resize(96) center_crop(96)")
    reader.wait_lines(8)
    share = share_taken(daemon, 3)
    n_before = counted(daemon, "n_samples")
    equal(share < 0.40, True, f"share of a CPU: {share:.2f}")
    time.sleep(0.5)
    equal(counted(daemon, "n_samples") > n_before, True, "samples go on coming")

    reload(daemon, cpu_ceiling="1%")  # of all CPUs: hardly anything
    share = share_taken(daemon, 2)
    equal(share < 0.01 * len(os.sched_getaffinity(daemon.pid)) + 0.1, True, f"share of a CPU: {share:.2f}")
    reload(daemon, cpu_ceiling="0")  # who rests under the old one goes on at once
    n_before = counted(daemon, "n_samples")
    within(5, lambda: counted(daemon, "n_samples") > n_before + 100, "many samples without a ceiling")
    reader.process.send_signal(signal.SIGINT)
    reader.finish()


# ---- what they take of memory ---------------------------------------------------------------------------------------

def folder_of_jpegs(box, name, n_pictures):
    """Pictures as training sets have them: of many sizes, some progressive, one large."""
    try:
        from PIL import Image
    except ImportError:
        raise Skip("Pillow, which makes the pictures, is not installed") from None
    draw = random.Random(5)
    noise = Image.effect_noise((2000, 1500), 60).convert("RGB")
    for number in range(n_pictures):
        size = (2000, 1500) if number == 0 else (draw.randint(200, 640), draw.randint(200, 640))
        path = box.path(name, "a", f"{number:04d}.jpg")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        noise.crop((0, 0) + size).save(path, "JPEG", quality=85, progressive=number % 8 == 1)
    return box.path(name)


MAY_FAULT = 5  # in a thousand pictures: none is seen once each worker has met all sizes, some ten thousand pictures


@case("in the steady state no thread that serves a picture touches new memory")
def _(box):
    if VARIANT != "release":
        raise Skip("sanitizers have an allocator of their own")
    daemon = box.daemon({"d": folder_of_jpegs(box, "d", 60)}, workers=3)
    reader = daemon.reader("d", batch=12, epochs=100000, pipeline="random_resized_crop(224) hflip(0.5)", order="tdperm")
    n_pictures, least = 0, None
    reader.wait_lines(60 * 8, 60)  # each worker has met the large one, most likely
    for _ in range(40):  # a worker that meets a picture of a new size still grows: the first quiet look counts
        before, n_before = faults(daemon), counted(daemon, "n_samples")
        within(60, lambda n=n_before: counted(daemon, "n_samples") >= n + 1000, "a thousand pictures")
        after, n_pictures = faults(daemon), counted(daemon, "n_samples") - n_before
        here = sum(after[thread] - count for thread, count in before.items() if thread in after and thread != daemon.pid)
        here = here * 1000 / n_pictures
        least = here if least is None else min(least, here)
        if least <= MAY_FAULT:
            break
    equal(least <= MAY_FAULT, True, f"page faults in a thousand pictures: {least:.1f}")
    reader.process.send_signal(signal.SIGINT)
    reader.finish()


# ---- descriptors ----------------------------------------------------------------------------------------------------

def limit_of_descriptors(daemon):
    with open(f"/proc/{daemon.pid}/limits", encoding="ascii") as limits:
        return next(line.split()[3:5] for line in limits if line.startswith("Max open files"))


@case("it takes as many descriptors as it is allowed, not as a shell's habit says")
def _(box):
    daemon = box.daemon({}, program=["prlimit", "--nofile=100:5000"])
    equal(limit_of_descriptors(daemon), ["5000", "5000"], "soft and hard limit")


main()
