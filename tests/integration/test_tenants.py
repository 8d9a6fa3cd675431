#!/usr/bin/env python3
"""Two users of one daemon, which runs as a third: neither sees, joins, squats or starves the other. docs/tenants.md says
what is promised. Root only: the users are real uids."""
import contextlib
import errno
import grp
import json
import mmap
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cgroups import Groups
from harness import (BUILD, DLCTL, HandClient, Skip, attach_body, case, check_sequence, contains, end, equal, field, fields_of,
                     main, patience, request, within, write)

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors", "tokenizers")
PROGRAM = os.path.join(BUILD, "dataloaderd")
N = 60
OWNER, ALICE, BOB = 61001, 61002, 61003  # nobody's on any machine; the kernel does not mind
TEAM = 61010                             # a group of both, where a case says so


@contextlib.contextmanager
def acting_as(uid, *groups):
    """Meanwhile connections of this process are the user's: the kernel notes who it is at connect()."""
    before = os.getgroups()
    os.setgroups(groups)
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(before)


class House:
    """A daemon under its own uid, whose socket all may write to, and its users."""

    def __init__(self, box, datasets=None, program=(), **settings):
        if os.getuid() != 0:
            raise Skip("only root can be several users")
        self.box = box
        os.chmod(box.folder, 0o755)
        folder = box.path("daemon0")
        os.makedirs(folder)
        os.chown(folder, OWNER, OWNER)
        self.source = box.folder_of_files("d", N)
        command = ["setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--clear-groups"]
        self.daemon = box.daemon(datasets or {"d": self.source}, program=list(program) + command, socket_mode="0666",
                                 **settings)
        self.clients = []
        box.cleanups.append(lambda: [client.close() for client in self.clients])

    def client(self, uid, *groups):
        with acting_as(uid, *groups):
            client = HandClient(self.daemon.socket)
        self.clients.append(client)
        return client

    def command(self, uid, *arguments, groups=()):
        return {"args": [DLCTL, "--socket", self.daemon.socket, "--format", "json", *map(str, arguments)],
                "user": uid, "group": uid, "extra_groups": list(groups), "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "universal_newlines": True,
                "env": self.daemon.client_environment()}

    def start(self, uid, *arguments, **more):
        words = {**self.command(uid, *arguments), **more}
        return self.box.start(words.pop("args"), **words)

    def dlctl(self, uid, *arguments, groups=()):
        return subprocess.run(**self.command(uid, *arguments, groups=groups), check=False, timeout=patience(60))

    def objects(self, uid, *arguments, groups=()):
        done = self.dlctl(uid, *arguments, groups=groups)
        equal(done.returncode, 0, f"dlctl {arguments} of {uid}: {done.stderr}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def refused(self, uid, *arguments, groups=(), words=()):
        done = self.dlctl(uid, *arguments, groups=groups)
        equal((done.returncode, done.stdout), (1, ""), f"dlctl {arguments} of {uid}: {done.stderr}")
        contains(done.stderr, *words)
        return done.stderr

    def read(self, uid, *arguments, groups=()):
        return self.objects(uid, "read", "d", *arguments, groups=groups)


def error_of(reply):
    """(errno, text) of a reply; (0, "") if it is none."""
    errors = fields_of(reply)[3]
    if not errors:
        return 0, ""
    fields = fields_of(errors[0])
    return (fields[1] or [0])[0], (fields[2] or [b""])[0].decode()


def must_attach(client, dataset="d", **terms):
    reply = client.attach(dataset, **terms)
    equal((error_of(reply), len(client.descriptors)), ((0, ""), 3), f"attach {terms}")


# ---- apart ----------------------------------------------------------------------------------------------------------

@case("two users have a job of the same name at once, each its own, with other terms")
def _(box):
    house = House(box)
    alice, bob = house.client(ALICE), house.client(BOB)
    must_attach(alice, job="train", world=2, rank=0, batch=4)
    must_attach(bob, job="train", world=8, rank=0, batch=3, seed=5, pipeline="raw")
    check_sequence(house.read(ALICE, "--job", "train2"), N)
    other = house.client(ALICE)
    must_attach(other, job="train", world=2, rank=1, batch=4)
    equal([job["world"] for job in house.objects(ALICE, "jobs")], [2], "Alice's jobs")
    equal([job["world"] for job in house.objects(BOB, "jobs")], [8], "Bob's jobs")
    equal(sorted(job["world"] for job in house.objects(OWNER, "jobs")), [2, 8], "the daemon's user sees all")
    equal(sorted(job["world"] for job in house.daemon.objects("jobs")), [2, 8], "root sees all")


@case("a user's long trace does not keep root from tracing: it ends, with what there was so far")
def _(box):
    house = House(box)
    tracer = house.start(ALICE, "trace", "--seconds", "3600", "-o", "-")
    within(30, lambda: "begins job=(all)" in house.daemon.log(), "the trace")
    equal(house.daemon.dlctl("trace", "--seconds", "0.2", "-o", box.path("t.json")).returncode, 0, "root's")
    text, errors = tracer.communicate(timeout=patience(60))
    equal((tracer.returncode, text[:1]), (0, "{"), errors)
    contains(errors, "another one was asked for")


@case("traces of two users, one after the other and both at once: each has its own job alone, and no number of the other's")
def _(box):
    house = House(box)
    readers = [house.start(uid, "read", "d", "--job", job, "--batch", "4", "--epochs", "1000000", "--delay-ms", "5", "--pipeline", "raw",
                           stdout=subprocess.DEVNULL)
               for uid, job in ((ALICE, "secret-of-alice"), (BOB, "secret-of-bob"))]
    within(30, lambda: len(house.daemon.objects("jobs")) == 2, "both jobs")
    tracers = [house.start(uid, "trace", "--seconds", "1", "-o", "-") for uid in (ALICE, BOB)]
    said = [tracer.communicate(timeout=patience(60)) for tracer in tracers]
    statuses = [tracer.returncode for tracer in tracers]
    equal(sorted(statuses), [0, 1], f"one of two traces at once: {[errors for _, errors in said]}")
    refused = said[statuses.index(1)]
    equal(refused[0], "", "what the refused one wrote")
    contains(refused[1], "one at a time")
    texts = {}
    for uid, (text, errors) in zip((ALICE, BOB), said):
        texts[uid] = text or house.dlctl(uid, "trace", "--seconds", "1", "-o", "-").stdout
        for secret in (f"secret-of-{'bob' if uid == ALICE else 'alice'}", str(BOB if uid == ALICE else ALICE)):
            equal(secret in errors, False, f"{secret} in what {uid} was told: {errors}")
    alice, bob = readers
    for uid, own, other, pid in ((ALICE, "secret-of-alice", "secret-of-bob", bob.pid), (BOB, "secret-of-bob", "secret-of-alice", alice.pid)):
        trace = json.loads(texts[uid])
        events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        equal({event["args"]["job"] for event in events if "job" in event["args"]}, {own}, f"jobs in the trace of {uid}")
        equal(other in texts[uid], False, f"the other's job in the trace of {uid}")
        equal(pid in {event["pid"] for event in trace["traceEvents"]}, False, f"the other's process in the trace of {uid}")
        equal({event["name"] for event in events} & {"turn", "order"}, set(), "what is of no job")


@case("nothing that a stranger can ask for tells of another's job, process, user or pipeline")
def _(box):
    house = House(box)
    alice = house.client(ALICE)
    must_attach(alice, job="secret-job", batch=7, seed=424242, pipeline="raw")
    secrets = ("secret-job", "424242", str(ALICE), str(os.getpid()))
    for arguments in (["jobs"], ["status"], ["datasets"], ["errors"], ["errors", "d"]):
        done = house.dlctl(BOB, *arguments)
        equal(done.returncode, 0, f"dlctl {arguments}: {done.stderr}")
        for secret in secrets:
            said = re.search(rf"(?<!\d){secret}(?!\d)", done.stdout)  # four digits may also be some of a longer number
            equal(said, None, f"{secret} in what dlctl {arguments} tells Bob: {done.stdout}")
    bob = house.client(BOB)
    for first in range(4):
        bob.send(request("jobs", field(1, first)))
        equal(b"secret" in bob.receive(), False, f"page {first} of the jobs tells of another's")
    bob.send(request("attach", attach_body("d", job="secret-job", world=3, rank=1, seed=1)))
    equal(error_of(bob.receive()), (0, ""), "the same name is free for Bob, with any terms")
    contains(str(house.objects(ALICE, "jobs")), "secret-job", "424242")


@case("a rank or a name that one user holds is not taken for another user")
def _(box):
    house = House(box)
    squatters = []
    for rank in range(8):
        squatters.append(house.client(BOB))
        must_attach(squatters[-1], job="wanted", world=8, rank=rank, seed=9)
    lines = house.read(ALICE, "--job", "wanted", "--batch", "5", "--epochs", "2")
    check_sequence(lines, N, batch=5, epochs=2)


@case("only root and the daemon's own user change the number of workers")
def _(box):
    house = House(box)
    for uid in (ALICE, BOB):
        contains(house.refused(uid, "workers", "1"), "admins", "root")
    equal(house.dlctl(OWNER, "workers", "1").returncode, 0, "the daemon's own user")
    equal(house.daemon.dlctl("workers", "2").returncode, 0, "root")


# Root where it has no power over this machine: in a user namespace of its own, or without what containers are not given.
CONTAINERS = (["unshare", "-Ur"],
              ["setpriv", "--bounding-set=-sys_admin"],
              ["setpriv", "--bounding-set=-dac_override"],
              ["setpriv", "--bounding-set=-sys_admin", f"--reuid={OWNER}", f"--regid={OWNER}", "--clear-groups"],
              ["setpriv", "--securebits=+noroot", "--inh-caps=-all"])  # which root alone needs: whom it becomes is himself


def containers():
    """Those that can be made here. In a container that has less itself, nobody is asked for more."""
    with open("/proc/1/status", encoding="utf-8", errors="replace") as status:
        bounding = int(re.search(r"^CapBnd:\s*(\w+)", status.read(), re.MULTILINE)[1], 16)
    made = [words for words in CONTAINERS if subprocess.run([*words, "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0]
    made = [words for words in made if bounding & 1 << 21 or "--bounding-set=-sys_admin" not in words]
    if not made:
        raise Skip("neither a user namespace can be made here, nor a capability be dropped")
    return made


def contained(house, container, *arguments):
    words = house.command(0, *arguments)
    return subprocess.run([*container, *words.pop("args")], check=False, timeout=patience(60), **words)


@case("root of a container, and whom it becomes, is a plain user: without capabilities, or in another user namespace")
def _(box):
    house = shared_house(box, str(TEAM))
    must_attach(house.client(ALICE), job="secret")
    for container in containers():
        done = contained(house, container, "workers", "1")
        equal((done.returncode, done.stdout), (1, ""), f"{container}: {done.stderr}")
        contains(done.stderr, "admins", "container")
        equal([json.loads(line)["name"] for line in contained(house, container, "datasets").stdout.splitlines()], ["d"],
              f"{container}: datasets")
        equal(contained(house, container, "jobs").stdout, "", f"{container}: jobs")
        contains(contained(house, container, "read", "t").stderr, str(TEAM))
        equal(len(contained(house, container, "read", "d", "--job", "own").stdout.splitlines()), N, f"{container}: samples")
    equal(house.daemon.dlctl("workers", "1").returncode, 0, "root")
    equal([row["name"] for row in house.objects(0, "datasets")], ["d", "t"], "what root sees")


@case("root of a container has a user's limits")
def _(box):
    house = House(box, user_jobs=1)
    must_attach(house.client(0), job="first")
    equal(house.objects(0, "read", "d", "--job", "second") != [], True, "root has no limit")
    for container in containers()[:2]:
        contains(contained(house, container, "read", "d", "--job", "third").stderr, "user_jobs")


@case("where /proc is hidden nobody is taken for root, and the log says so")
def _(box):
    hidden = ["unshare", "-m", "sh", "-c", "mount -t proc -o hidepid=invisible proc /proc && exec \"$@\"", "sh"]
    if os.getuid() == 0 and subprocess.run([*hidden, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("/proc cannot be mounted here")
    house = House(box, program=hidden)
    contains(house.daemon.log(), "/proc", "admins")
    contains(house.refused(0, "workers", "1"), "admins")
    check_sequence(house.read(0), N)


@case("admins names who may administer, users and groups; they get no paths, and a reload changes who it is")
def _(box):
    house = House(box, admins=f"{ALICE}, @{TEAM}", paths="yes")
    path = box.folder_of_files("of_owner", 5)
    equal(house.dlctl(ALICE, "workers", "1").returncode, 0, "a named user")
    equal(house.dlctl(BOB, "workers", "1", groups=[TEAM]).returncode, 0, "a member of a named group")
    equal(house.dlctl(OWNER, "workers", "1").returncode, 0, "the daemon's own user")
    for uid in (BOB, 0):
        contains(house.refused(uid, "workers", "1"), "admins")
    house.refused(ALICE, "read", path, words=("path",))
    equal(len(house.objects(OWNER, "read", path)), 5, "of its own user")
    equal([row["name"] for row in house.objects(ALICE, "datasets")], ["d"], "what an admin sees of paths")
    texts = {error_of(house.client(BOB).attach(text, seconds=0))[1].replace(text, "PATH") for text in (path, path + "x")}
    equal(len(texts), 1, f"what a stranger learns of a path that is in use: {texts}")
    house.daemon.settings["admins"] = f"root {BOB}"
    house.daemon.write_config()
    house.daemon.signal(signal.SIGHUP)
    within(10, lambda: house.dlctl(BOB, "workers", "1").returncode == 0, "the reload")
    equal(house.dlctl(0, "workers", "1").returncode, 0, "root")
    contains(house.refused(ALICE, "workers", "1"), "admins")


@case("who cannot be an admin is a wrong configuration")
def _(box):
    path = box.path("wrong.conf")
    for text, words in (("nosuch", ("user", "nosuch")), ("@nosuch", ("group", "nosuch")), ("@", ("@",)), ("65534", ("65534", "nobody")),
                        ("@65534", ("65534",)), ("4294967295", ("4294967294",)), ("", ("admins",)), (" , ", ("names",))):
        write(path, f'admins = "{text}"\n'.encode())
        done = subprocess.run([PROGRAM, "-c", path, "--check-config"], check=False, stderr=subprocess.PIPE,
                              universal_newlines=True, timeout=300)
        equal(done.returncode, 78, f"exit status of {text!r}")
        contains(done.stderr, *words)


# ---- groups ---------------------------------------------------------------------------------------------------------

def shared_house(box, allow):
    source = box.folder_of_files("team", N)
    return House(box, {"d": box.path("d"), "t": {"path": source, "allow": allow}})


@case("a dataset of a group: strangers neither see nor use it, members do; groups by number and by name")
def _(box):
    named = grp.getgrgid(100).gr_name if any(entry.gr_gid == 100 for entry in grp.getgrall()) else ""
    house = shared_house(box, f"{TEAM}, {named}".rstrip(", "))
    equal([row["name"] for row in house.objects(BOB, "datasets")], ["d"], "what Bob sees")
    equal(house.objects(BOB, "status")[0]["n_datasets"], 1, "what is counted for Bob")
    contains(house.refused(BOB, "read", "t", words=("group", str(TEAM))), "\"t\"")
    house.refused(BOB, "errors", "t", words=("group",))
    equal("t" in house.refused(BOB, "read", "nosuch").rpartition("has:")[2].split(), False, "named to Bob")
    equal([row["name"] for row in house.objects(BOB, "datasets", groups=[TEAM])], ["d", "t"], "what a member sees")
    check_sequence(house.objects(BOB, "read", "t", groups=[TEAM]), N)
    if named:
        check_sequence(house.objects(BOB, "read", "t", groups=[7, 8, 100]), N)
    for uid in (0, OWNER):
        check_sequence(house.objects(uid, "read", "t"), N)


@case("what the daemon writes about a dataset is for the daemon's user alone: its folder, indexes, the ledger of damage")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 6)})
    equal(len(daemon.read("d", batch=2)), 6, "samples")
    daemon.reader("d", batch=2, pipeline="center_crop(8)").finish()  # no file is a picture: the first one ends it
    index = daemon.settings["index_dir"]
    within(10, lambda: len(os.listdir(index)) > 1, "an index and a ledger are written")
    for name in [index, *(os.path.join(index, name) for name in os.listdir(index))]:
        equal(oct(os.stat(name).st_mode & 0o077), "0o0", f"what others may do with {os.path.basename(name)}")


@case("a folder of indices that is readable for others, and what is in it, is closed to them at the start; one with other things stays")
def _(box):
    source, index = box.folder_of_files("d", 6), box.path("kept")
    before = os.umask(0)

    def restart(*others):
        daemon = box.daemon({"d": source}, index_dir=index)
        equal(len(daemon.read("d", batch=2)), 6, "samples")
        daemon.reader("d", batch=2, pipeline="center_crop(8)").finish()
        daemon.stop()
        names = os.listdir(index)
        equal({"d.index", "d.errors"} <= set(names), True, f"files: {names}")
        for name in names:
            os.chmod(os.path.join(index, name), 0o666)
        os.chmod(index, 0o777)
        for name in others:
            write(os.path.join(index, name), b"")
        box.daemon({}, index_dir=index)
        return {name: os.stat(os.path.join(index, name)).st_mode & 0o777 for name in [".", *names, *others]}

    try:
        equal(set(restart().values()), {0o600, 0o700}, "modes of the folder and of what is in it")
        modes = restart("somebody's notes")
    finally:
        os.umask(before)
    equal((modes.pop("."), modes.pop("somebody's notes")), (0o777, 0o666), "a folder with other things")
    equal(set(modes.values()), {0o600}, f"our files in it: {modes}")


@case("members of the group that `allow` names see each other's jobs on that dataset and join them; nobody else's")
def _(box):
    house = shared_house(box, str(TEAM))
    alice = house.client(ALICE, TEAM)
    must_attach(alice, "t", job="ours", world=2, rank=0)
    apart = house.client(ALICE, TEAM)
    must_attach(apart, "d", job="mine", world=2, rank=0)
    equal([job["name"] for job in house.objects(BOB, "jobs", groups=[TEAM])], ["ours"], "what a member sees")
    equal(house.objects(BOB, "jobs"), [], "what a stranger sees")
    bob = house.client(BOB, TEAM)
    bob.send(request("attach", attach_body("t", job="ours", world=2, rank=0)))
    contains(error_of(bob.receive())[1], "attached already")
    must_attach(bob, "t", job="ours", world=2, rank=1)
    (job,) = house.objects(BOB, "jobs", groups=[TEAM])
    equal(sorted(rank["rank"] for rank in job["ranks"]), [0, 1], "ranks of the joined job")
    own = house.client(BOB, TEAM)
    must_attach(own, "d", job="mine", world=5, rank=0)  # allow of another dataset opens nothing here
    root = house.client(0)
    must_attach(root, "d", job="mine", world=1, rank=0, seed=99)  # a name alone is root's own
    joined = house.client(0)
    joined.send(request("attach", attach_body("d", job=f"{ALICE}/mine", world=2, rank=1, seed=99)))
    contains(error_of(joined.receive())[1], "seed")
    must_attach(joined, "d", job=f"{ALICE}/mine", world=2, rank=1)
    equal([len(job["ranks"]) for job in house.objects(ALICE, "jobs") if job["name"] == "mine"], [2], "ranks of Alice's")
    spoofed = house.client(BOB)
    must_attach(spoofed, "d", job=f"{ALICE}/mine", world=3, rank=0)  # for others it is a name like any
    equal([len(job["ranks"]) for job in house.objects(ALICE, "jobs") if job["name"] == "mine"], [2], "ranks of Alice's")


@case("an unknown group is a wrong configuration: file, line, key and name are said, and a reload keeps the old one")
def _(box):
    house = shared_house(box, str(TEAM))
    daemon = house.daemon
    daemon.datasets["t"]["allow"] = "no-such-group-here"
    daemon.write_config()
    done = subprocess.run([daemon.command[-3], "-c", daemon.config, "--check-config"], check=False,
                          stderr=subprocess.PIPE, universal_newlines=True, timeout=300)
    equal(done.returncode, 78, "exit status of --check-config")
    with open(daemon.config, encoding="utf-8") as file:
        line = next(number for number, text in enumerate(file, 1) if "no-such-group" in text)
    contains(done.stderr, f"{daemon.config}:{line}", "allow", "no-such-group-here")
    daemon.signal(signal.SIGHUP)
    daemon.wait_log("old configuration stays")
    equal([row["name"] for row in house.objects(BOB, "datasets")], ["d"], "as before")
    daemon.datasets["t"]["allow"] = str(BOB)
    daemon.write_config()
    daemon.signal(signal.SIGHUP)
    within(10, lambda: len(house.objects(BOB, "datasets")) == 2, "the new group counts")


# ---- limits ---------------------------------------------------------------------------------------------------------

def status_of(client):
    """(errno, text) of what is answered to a client that asks; it may be sent away before it has asked."""
    with contextlib.suppress(BrokenPipeError):
        client.send(request("status"))
    return error_of(client.receive())


def fill(house, uid, at_most=1200):
    """Opens connections of a user until one is refused. Returns (how many stay, errno, text of the refusal)."""
    for n_taken in range(at_most):
        code, text = status_of(house.client(uid))
        if code:
            return n_taken, code, text
    raise AssertionError(f"{at_most} connections and no refusal")


@case("one user's idle connections leave room: for another user, for root, for the daemon's own user")
def _(box):
    house = House(box)
    n_alice, code, text = fill(house, ALICE)
    equal((n_alice, code), (512, errno.EDQUOT), "Alice's connections: half of 1,024")
    contains(text, "user_connections", str(ALICE), "50 %")
    check_sequence(house.read(BOB, "--batch", "4", "--epochs", "2"), N, batch=4, epochs=2)
    n_bob, code, _ = fill(house, BOB)
    equal((n_bob, code), (256, errno.EDQUOT), "Bob's: half of what Alice leaves")
    fill(house, 61099)  # and a third hog
    check_sequence(house.read(61098), N)
    equal(house.daemon.dlctl("status").returncode, 0, "root")
    equal(house.dlctl(OWNER, "status").returncode, 0, "the daemon's own user")
    refused = house.dlctl(ALICE, "status")
    equal(refused.returncode == 0, False, "Alice has enough")
    contains(refused.stderr, "user_connections")
    for client in house.clients:
        client.close()
    house.clients.clear()
    within(5, lambda: house.dlctl(ALICE, "status").returncode == 0, "Alice gets in again")


@case("short of descriptors: who knocks is told, an admin gets in, and all goes on when some are free")
def _(box):
    house = House(box, program=["prlimit", "--nofile=512:512"], user_connections=100)
    n_alice, code, text = fill(house, ALICE)
    equal(code in (errno.EDQUOT, errno.EMFILE), True, f"errno {code}: {text}")
    equal(n_alice < 256, True, f"{n_alice} connections of 512 descriptors")
    equal(house.daemon.dlctl("status").returncode, 0, "root gets in")
    check_sequence(house.daemon.read("d", job="root's"), N)
    for client in house.clients:
        client.close()
    house.clients.clear()
    within(5, lambda: house.dlctl(ALICE, "status").returncode == 0, "Alice gets in again")


@case("without any descriptor left who knocks is told so at once, and the daemon accepts again by itself")
def _(box):
    house = House(box, program=["prlimit", "--nofile=160:160"])
    n_told = 0
    for _ in range(200):  # as root, whom no share stops: to the very last descriptor
        n_told += status_of(house.client(0))[0] == errno.EMFILE
    equal(n_told > 40, True, f"{n_told} of 200 were told")
    for client in house.clients:
        client.close()
    house.clients.clear()
    within(5, lambda: house.dlctl(ALICE, "status").returncode == 0, "a client gets in again")
    check_sequence(house.read(BOB), N)


@case("user_jobs limits the jobs of a user, not the ranks of one, and not other users'; a reload raises it")
def _(box):
    house = House(box, user_jobs=3)
    for number in range(3):
        must_attach(house.client(ALICE), job=f"job{number}", world=2)
    must_attach(house.client(ALICE), job="job1", world=2, rank=1)
    one_more = house.client(ALICE)
    one_more.send(request("attach", attach_body("d", job="job3")))
    code, text = error_of(one_more.receive())
    equal(code, errno.EDQUOT, text)
    contains(text, "user_jobs", "3 jobs", str(ALICE))
    must_attach(house.client(BOB), job="job3")
    must_attach(house.client(0), job="job3", rank=0)
    house.daemon.settings["user_jobs"] = 4
    house.daemon.write_config()
    house.daemon.signal(signal.SIGHUP)
    house.daemon.wait_log("read again")
    must_attach(one_more, job="job3")


def ring_bytes(house, uid):
    return sum(rank["ring_bytes"] for job in house.objects(uid, "jobs") for rank in job["ranks"])


@case("user_memory: one user's rings never take more than the share of what others leave, and the other gets a ring")
def _(box):
    folder = box.folder_of_pictures("pictures", N)
    house = House(box, {"d": folder}, memory_limit="256MiB", user_memory=50)
    terms = {"pipeline": "resize(224) center_crop(224)", "batch": 32}  # some 19 MB a ring
    n_rings, text = 0, ""
    while not text and n_rings < 64:
        client = house.client(ALICE)
        reply = client.attach("d", job=f"job{n_rings}", seconds=2, **terms)
        text = error_of(reply)[1]
        n_rings += not text
    contains(text, "user_memory", str(ALICE), "50 %")
    used, alice = house.daemon.memory_used(), ring_bytes(house, ALICE)
    left = 256 << 20
    equal(alice <= (left - (used - alice)) // 2, True, f"{alice} bytes of rings in {used} that are used")
    equal(n_rings > 1, True, f"{n_rings} rings")
    must_attach(house.client(BOB), job="job0", **terms)
    must_attach(house.client(0), job="job0", **terms)
    for client in house.clients[:n_rings]:
        client.close()
        house.clients.remove(client)
    within(10, lambda: len(house.client(ALICE).attach("d", job="again", seconds=2, **terms)) > 0 and
           ring_bytes(house, ALICE) > 0, "what Alice gave back she may take again")


@case("memory that a user's clients keep after they have left still counts for that user, until they let go")
def _(box):
    folder = box.folder_of_pictures("pictures", N)
    house = House(box, {"d": folder}, memory_limit="256MiB", user_memory=50)
    terms = {"pipeline": "resize(224) center_crop(224)", "batch": 32}
    text = ""
    while not text:
        keeper = house.client(ALICE)
        text = error_of(keeper.attach("d", job=f"job{len(house.clients)}", seconds=2, **terms))[1]
        keeper.socket.close()  # it leaves, and keeps the descriptors
        equal(len(house.clients) < 64, True, "rings that were kept")
    contains(text, "user_memory")
    within(10, lambda: house.daemon.objects("jobs") == [], "all have left")
    again = house.client(ALICE)
    contains(error_of(again.attach("d", job="more", seconds=2, **terms))[1], "user_memory")
    must_attach(house.client(BOB), job="more", **terms)
    for client in house.clients:
        if client.descriptors and client.socket.fileno() < 0:
            client.close()
    must_attach(again, job="more", **terms)


@case("rings that a user's clients keep after leaving count as connections, so they do not use up the descriptors")
def _(box):
    house = House(box, program=["prlimit", "--nofile=512:512"])
    n_kept, code, text = 0, 0, ""
    while not code and n_kept < 300:
        keeper = house.client(ALICE)
        code, text = status_of(keeper)
        if code:
            break
        must_attach(keeper, job=f"kept{n_kept}", batch=1)
        keeper.socket.close()  # it leaves, and keeps the descriptors
        n_kept += 1
        within(10, lambda: house.daemon.objects("jobs") == [], "it has left")
    equal((code, 56 <= n_kept <= 60), (errno.EDQUOT, True), f"half of 112 connections, not {n_kept}: {text}")
    contains(text, "user_connections", str(ALICE), "rings", "release their arrays")
    equal(house.daemon.n_descriptors() < 256, True, "descriptors of the daemon")
    check_sequence(house.read(BOB), N)
    for client in house.clients:
        client.close()
    house.clients.clear()
    within(10, lambda: house.dlctl(ALICE, "status").returncode == 0, "Alice gets in again")


# ---- fair -----------------------------------------------------------------------------------------------------------

# Work for workers, but little of it at a time: what is shared is told when a sample is done, and of a few that take a second
# each beside other tests nothing can be told.
STEPS = "resize(90) color_jitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1) resize(32) center_crop(32)"
MANY = 600  # samples


def ns_of_jobs(house):
    return {job["name"]: job["worker_ns"] for job in house.daemon.objects("jobs")}


def n_made(house):
    return sum(job["counts"]["n_samples"] for job in house.daemon.objects("jobs"))


def took(house):
    """The time that each job has of the workers while they make many samples."""
    before, n_before = ns_of_jobs(house), n_made(house)
    within(300, lambda: n_made(house) > n_before + MANY and sum(ns_of_jobs(house).values()) > sum(before.values()) + 1e9,
           "the workers are at work")
    return {name: ns - before[name] for name, ns in ns_of_jobs(house).items()}


@case("a user with one job keeps half of the workers beside a user with six, and the six have all when alone")
def _(box):
    house = House(box, {"d": box.folder_of_pictures("pictures", N)}, workers=2)
    readers = {}
    for uid, job in [(ALICE, "one")] + [(BOB, f"many{number}") for number in range(6)]:
        command = house.command(uid, "read", "d", "--job", job, "--epochs", "100000", "--batch", "32", "--slots", "16",
                                "--pipeline", STEPS)  # rings that are not full soon: all want all the time
        readers[job] = subprocess.Popen(**dict(command, stdout=subprocess.DEVNULL))
        box.processes.append(readers[job])
    within(60, lambda: sum(job["worker_ns"] > 0 for job in house.daemon.objects("jobs")) == 7, "all seven run")
    shares = took(house)
    # Shared by jobs it would be a seventh; a half is measured.
    equal(0.3 < shares["one"] / sum(shares.values()) < 0.75, True, f"Alice's part of the workers' time: {shares}")
    end(readers["one"])
    within(20, lambda: len(house.daemon.objects("jobs")) == 6, "Alice has left")
    took(house)  # Bob's go on alone


@case("a job in a pod keeps half of its user's workers beside six in another pod; limits are of the user")
def _(box):
    groups = Groups(box)
    house = House(box, {"d": box.folder_of_pictures("pictures", N)}, workers=2, user_jobs=7)

    def inside(pod, *arguments, **more):
        words = house.command(BOB, "read", "d", *arguments)
        for word in ("user", "group", "extra_groups"):
            words.pop(word)
        command = [*groups.inside(pod), "setpriv", f"--reuid={BOB}", f"--regid={BOB}", "--clear-groups", *words.pop("args")]
        return box.start(command, **{**words, **more})

    for pod, job in [("one", "one")] + [("other", f"many{number}") for number in range(6)]:
        inside(pod, "--job", job, "--epochs", "100000", "--batch", "32", "--slots", "16", "--pipeline", STEPS, stdout=subprocess.DEVNULL)
    within(60, lambda: sum(job["worker_ns"] > 0 for job in house.daemon.objects("jobs")) == 7, "all seven run")
    shares = took(house)
    # Shared by jobs it would be a seventh; a half is measured.
    equal(0.3 < shares["one"] / sum(shares.values()) < 0.75, True, f"one job's part of the workers' time: {shares}")
    refused = inside("third", "--job", "eighth")
    contains(refused.communicate(timeout=patience(60))[1], "user_jobs")


@case("who comes when another user's long samples have all workers does not wait for the first of them")
def _(box):
    house = House(box, {"d": box.folder_of_pictures("pictures", N)}, workers=2, memory_limit="2GiB", max_step_pixels=1 << 40)
    house.daemon.read("d", batch=1, epochs=1)  # indexed
    steps = " ".join(["resize(4096:4096)"] + ["equalize(1)", "gaussian_blur(31, sigma=8)"] * 14 + ["center_crop(8)"])
    before = house.daemon.cpu_ticks()
    slow = subprocess.Popen(**dict(house.command(BOB, "read", "d", "--job", "slow", "--batch", "2", "--pipeline", steps),
                                   stdout=subprocess.DEVNULL))
    box.processes.append(slow)
    within(60, lambda: house.daemon.cpu_ticks() > before + 30, "Bob's samples are being made")
    house.daemon.read("d", batch=2, limit=1)
    job = next(job for job in house.daemon.objects("jobs") if job["name"] == "slow")
    equal(job["counts"]["n_samples"], 0, "samples of Bob's that were made before the first batch of another user")


def main_thread_ns(daemon):
    """CPU time of the thread that answers."""
    with open(f"/proc/{daemon.pid}/task/{daemon.pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0])


@case("what a user's requests make threads do is charged to him, and to nobody else; what serves all to nobody")
def _(box):
    house = House(box, paths="yes")
    house.daemon.read("d", batch=1, epochs=1)  # indexed

    def other_ns():
        return {job["name"]: job["other_ns"] for job in house.daemon.objects("jobs")}

    for number in range(N, N + 3000):
        write(os.path.join(house.source, f"{number:06}.bin"), b"another one")
    before = main_thread_ns(house.daemon)
    house.client(ALICE).attach("d", job="indexed", shuffle=False)
    house.client(BOB).attach("d", job="plain", shuffle=False)
    contains(house.daemon.log(), "indexing it again")
    took, answering_ns = other_ns(), main_thread_ns(house.daemon) - before
    for job, ns in took.items():
        equal(0 < ns < answering_ns, True, f"{job}: {ns} of {answering_ns}: not for an index that the configuration asks for")
    house.start(OWNER, "read", box.folder_of_files("of_owner", 500), "--job", "own", "--epochs", "1000000", "--delay-ms", "5",
                stdout=subprocess.DEVNULL)
    within(60, lambda: other_ns().get("own", 0) > 0, "the user who named a path pays for its index")
    box.processes.append(subprocess.Popen(**dict(
        house.command(BOB, "read", "d", "--job", "made", "--sampler", "random(replacement=true)", "--pipeline", "raw"),
        stdout=subprocess.DEVNULL)))
    within(60, lambda: other_ns()["plain"] > took["plain"], "Bob pays for an order")
    equal(other_ns()["indexed"], took["indexed"], "what Alice was charged")


def texts_of(box, *names):
    """Datasets of one text each, and a folder of tokenizers: one that takes long to read, and then is none."""
    write(box.path("texts.jsonl"), b'{"text": "a"}\n')
    os.makedirs(box.path("tokenizers"))
    with open(box.path("tokenizers", "hostile.json"), "wb") as file:
        file.write(b'{"version": [')
        for _ in range(12):
            file.write(b"1," * (1 << 20))
        file.write(b"1]}")
    for name in ("bert", "gpt2"):
        shutil.copy(os.path.join(VECTORS, name + ".json"), box.path("tokenizers"))
    return {name: {"path": box.path("texts.jsonl"), "format": "jsonl"} for name in names}


HOSTILE = {"pipeline": "text: tokens(hostile, truncation=none)"}


@case("a tokenizer that takes long to read holds nobody up, is paid for, and is dropped with whoever asked; threads of who has many asked for weigh less")
def _(box):
    cpu = str(min(os.sched_getaffinity(0)))  # of one, so that a few threads are many
    house = House(box, texts_of(box, "t"), program=["taskset", "-c", cpu], tokenizers=box.path("tokenizers"), memory_limit="64GiB",
                  user_memory=50)
    must_attach(house.client(ALICE), "t", job="own", pipeline="text")
    before, ticks = house.daemon.memory_used(), house.daemon.cpu_ticks()
    usual = house.daemon.nice_of("worker-0")[0]
    alice = house.client(ALICE)
    alice.send(request("attach", attach_body("t", job="one", **HOSTILE)))
    must_attach(house.client(BOB), "t", job="plain",
                pipeline="text: tokens(bert, truncation=none); other=text: tokens(gpt2, truncation=none)")
    equal(status_of(house.client(BOB))[0], 0, "status")
    equal(select.select([alice.socket], [], [], 0)[0], [], "replies to who waits for the tokenizer")
    code, text = error_of(alice.receive())
    equal(code, errno.EINVAL, text)
    contains(text, "column 14", "hostile.json", "model", "is missing")
    once = house.daemon.cpu_ticks() - ticks
    paid = {job["name"]: job["other_ns"] for job in house.daemon.objects("jobs")}
    equal((paid["own"] > 10**7, paid["plain"] < paid["own"]), (True, True), f"what was charged: {paid}")
    within(10, lambda: house.daemon.memory_used() < before + (1 << 28), "what the reading took is given back")

    def ask(n):
        for number in range(n):
            client = house.client(ALICE)
            if number % 2:  # with a reply that she does not read
                client.send(request("status"))
            client.send(request("attach", attach_body("t", job=f"many{number}", **HOSTILE)))
        within(30, lambda: house.daemon.memory_used() > before + (1 << 30), "one is being read")
        return house.clients[-n:]

    ticks = house.daemon.cpu_ticks()
    clients = ask(24)
    within(30, lambda: max(house.daemon.nice_of("background"), default=0) >= min(usual + 8, 19), "nice values of 24 threads")
    for client in clients:
        client.close()
    within(30, lambda: not house.daemon.nice_of("background"), "all have left")
    ticks = house.daemon.cpu_ticks() - ticks
    equal(ticks < 8 * once, True, f"what nobody waited for was not read to the end: {ticks} ticks, {once} for each")
    ask(24)
    house.start(ALICE, "read", "t", "--job", "made", "--pipeline", "text", "--sampler", "random(replacement=true, n=20000000)",
                stdout=subprocess.DEVNULL)
    within(60, lambda: set(house.daemon.nice_of("sampler")) == {min(usual + 5, 19)}, "an order is being made, and gives way to samples")
    house.daemon.signal(signal.SIGTERM)
    equal(house.daemon.process.wait(timeout=patience(30)), 0, "exit status")


# ---- hostile --------------------------------------------------------------------------------------------------------

def misbehave(house, round_number):
    """Alice does what a client must not, at another point of the protocol each time."""
    client = house.client(ALICE)
    kind = round_number % 8
    try:
        if kind == 0:
            client.send(os.urandom(200))
        elif kind == 1:
            client.send(request("attach", attach_body("d", job=f"bad{round_number}", batch=4)))  # and hangs up at once
        elif kind == 2:
            client.attach("d", job=f"bad{round_number}", batch=4)  # hangs up with a ring
        elif kind == 3:
            client.socket.settimeout(0.05)
            for _ in range(300):
                client.send(request("datasets"))  # reads nothing
        elif kind == 4:
            pipes = os.pipe()
            client.send(request("jobs"), pipes)
            for descriptor in pipes:
                os.close(descriptor)
        elif kind == 5:
            client.send(request("status", protocol=1))
        elif kind == 6:
            client.attach("d", job=f"bad{round_number}", batch=4)
            with mmap.mmap(client.descriptors[1], 4096) as page:
                page[:] = b"\xff" * 4096
            os.write(client.descriptors[2], struct.pack("<Q", 1))
        else:
            client.attach("d", job=f"bad{round_number}", batch=4)
            client.send(request("seek", field(1, 2**40)))
    except OSError:
        pass
    client.close()
    house.clients.remove(client)


@case("who keeps the main thread busy waits for his turn while others have ranks, and then no more")
def _(box):
    house = House(box)
    ends = threading.Event()
    n_answers = [0]
    client = house.client(ALICE)

    def ask():
        while not ends.is_set():
            for act in (lambda: client.send(request("status")), client.receive):  # much at once: it never waits for us
                for _ in range(10):  # replies, of 11 KB each, that fit into a socket's buffer
                    act()
            n_answers[0] += 10

    def share(seconds):
        """Of a CPU, that it takes: what others do can only make it less."""
        before, begin = main_thread_ns(house.daemon), time.monotonic_ns()
        time.sleep(seconds)
        return (main_thread_ns(house.daemon) - before) / (time.monotonic_ns() - begin)

    bob = house.client(BOB)
    must_attach(bob, job="steady", batch=4)
    thread = threading.Thread(target=ask)
    thread.start()
    try:
        within(60, lambda: n_answers[0] > 0, "Alice is answered")
        time.sleep(0.5)  # her credit
        n = n_answers[0]
        taken = share(3)
        equal(taken < 0.16, True, f"of a CPU for Alice, beside Bob: {taken}")
        within(60, lambda: n_answers[0] > n, "she is answered nevertheless")
        bob.close()
        within(60, lambda: share(0.3) > 0.25, "nobody else is there: she has it all")
    finally:
        ends.set()
        thread.join()


@case("whatever one user's clients do, another's batches come complete, in order and all the time")
def _(box):
    house = House(box, user_jobs=1000)
    house.daemon.read("d", batch=4, epochs=1)  # indexed: else Bob may be told that he waits for that
    reader = subprocess.Popen(**house.command(BOB, "read", "d", "--job", "steady", "--epochs", "40", "--batch", "4",
                                              "--delay-ms", "2"))
    box.processes.append(reader)
    n_rounds = 0
    while reader.poll() is None and n_rounds < 400:
        misbehave(house, n_rounds)
        n_rounds += 1
        if n_rounds == 24:
            equal([job["name"] for job in house.objects(BOB, "jobs")], ["steady"], "what Bob sees meanwhile")
    output, errors = reader.communicate(timeout=patience(120))
    equal((reader.returncode, errors), (0, ""), "Bob's reader")
    check_sequence([json.loads(line) for line in output.splitlines()], N, batch=4, epochs=40)
    equal(n_rounds > 24, True, f"{n_rounds} rounds of misbehaviour")
    within(10, lambda: house.daemon.objects("jobs") == [], "nothing of it is left")


main()
