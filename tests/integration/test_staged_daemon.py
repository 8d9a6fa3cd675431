#!/usr/bin/env python3
"""A dataset with an origin, from the daemon's side: nobody is served before there is a stamp, who waits reads how far it
is, a new version is for new jobs, and a stamp that is no good stops nobody who is served. The stagings are played by
tests/tools/stamp_folder and by files that this test writes."""
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import BUILD, DLCTL, Skip, case, check_bytes, check_sequence, contains, equal, main, samples_of, within, write
from prometheus import Metrics
from pyclient import trainer

STAMP = os.path.join(BUILD, "tools", "stamp_folder")
N = 30


class Place:
    """Where a dataset is staged to, and the keys of its section."""

    def __init__(self, box, name="d"):
        if not os.path.exists(STAMP):
            raise Skip(f"{STAMP} was not built")
        self.box = box
        self.path = box.path("data", name)
        self.folder = box.path("data", f".{name}.staged")
        self.keys = {"path": self.path, "origin": "https://example.invalid/d.jsonl?token=secret"}
        os.makedirs(box.path("data"))

    def stage(self, n_files, index="index", size=200):
        """A whole version of so many files, stamped. Returns its folder."""
        source = self.box.folder_of_files(f"source{n_files}", n_files, size=size)
        digest = hashlib.sha256(f"{n_files}".encode()).hexdigest()
        version = os.path.join(self.folder, f"v-{digest[:12]}")
        if not os.path.exists(version):
            shutil.copytree(source, version)
        self.stamp(digest, index)
        return version

    def stamp(self, digest, index="index"):
        subprocess.run([STAMP, self.path, digest, index], check=True, stdout=subprocess.DEVNULL, timeout=300)

    def progress(self, **keys):
        """As the staging program writes it."""
        line = {"dataset": "d", "phase": "transferring", "n_bytes_total": 40 << 30, "n_bytes_done": 10 << 30,
                "n_bytes_origin": 10 << 30, "n_files_total": 1000, "n_files_done": 250, "bytes_per_second": 100 << 20,
                "seconds_left": 307, "n_nodes": 4,
                "nodes": [{"node": "n1", "doing": "writing a.jpg", "n_bytes_total": 10 << 30, "n_bytes_done": 2 << 30}]}
        line.update(keys)
        self.progress_bytes(json.dumps(line).encode() + b"\n")

    def progress_bytes(self, content):
        write(os.path.join(self.folder, "progress.test"), content)
        os.rename(os.path.join(self.folder, "progress.test"), os.path.join(self.folder, "progress"))


def dataset(daemon):
    return daemon.objects("datasets")[0]


def wait_state(daemon, state, seconds=10):
    within(seconds, lambda: dataset(daemon)["state"] == state, f"state {state}: {dataset(daemon)}")


@case("who attaches before there is a stamp waits, is told what for, and is served when it is there")
def _(box):
    place = Place(box)
    daemon = box.daemon({"d": place.keys})
    wait_state(daemon, "not staged")
    contains(dataset(daemon)["text"], "not staged yet", "dlctl stage d", "systemctl start dataloaderd-stage@d")
    reader = daemon.reader("d")
    within(10, lambda: "not staged yet" in reader.errors(), "the waiting rank is told")

    place.progress()
    wait_state(daemon, "staging")
    within(10, lambda: "transferring, 10.0 GiB of 40.0 GiB (25 %), 100.0 MiB/s, 5 min left, 4 nodes" in reader.errors(),
           f"progress: {reader.errors()}")
    equal(reader.process.poll(), None, "it waits")

    version = place.stage(N)
    lines = reader.good()
    check_sequence(lines, N)
    check_bytes(lines, samples_of(version))
    row = dataset(daemon)
    equal((row["state"], row["version"], row["staged_unix"]), ("ready", os.path.basename(version), 1700000000), "dlctl")
    contains(daemon.log(), "opened with the index beside it")
    equal("indexed" in daemon.log(), False, "an index was made here")
    with open(version + ".index", "rb") as staged, open(os.path.join(daemon.folder, "index", "d.index"), "rb") as ours:
        equal(ours.read() == staged.read(), True, "the copy that is served from")


@case("dlctl shows origin without its query, progress in numbers, and each node that was heard of")
def _(box):
    place = Place(box)
    place.progress(seconds_left=None)
    daemon = box.daemon({"d": place.keys, "plain": box.folder_of_files("plain", 3)})
    wait_state(daemon, "staging")
    row = dataset(daemon)
    equal(row["origin"], "https://example.invalid/d.jsonl", "origin")
    equal("secret" in daemon.dlctl("datasets").stdout + daemon.log(), False, "the token is shown")
    staging = row["staging"][0]
    equal((staging["phase"], staging["at_work"], staging["percent"], staging["done_bytes"], staging["total_bytes"],
           staging["per_second_bytes"], staging["n_nodes"]), ("transferring", True, 25, 10 << 30, 40 << 30, 100 << 20, 4), "it")
    equal("left_seconds" in staging, False, "nobody knows how long")
    equal(row["staging_nodes"], [{"node": "n1", "done_bytes": 2 << 30, "total_bytes": 10 << 30, "origin_bytes": 0,
                                  "n_retries": 0, "n_errors": 0, "doing": "writing a.jpg"}], "nodes")
    text = daemon.dlctl("datasets").stdout
    contains(text, "staging", "40.0 GiB", "100.0 MiB", "writing a.jpg")
    status = daemon.status()["staging"]
    equal([(fact["name"], fact["value"]) for fact in status], [("d", "staging")], "dlctl status")
    contains(status[0]["text"], "25 %")
    contains(daemon.dlctl("status").stdout, "being staged: transferring")
    equal("staging" in daemon.objects("datasets")[1], False, "a dataset without an origin")
    seen = Metrics(daemon.dlctl("metrics").stdout)
    equal([seen.one(f"dataloaderd_staging_{name}", 'dataset="d"') for name in ("active", "failed", "bytes", "done_bytes", "done_files", "nodes")],
          [1, 0, 40 << 30, 10 << 30, 250, 4], "metrics")
    equal([key for key in seen.values if "staging" in key[0] and "plain" in key[1]], [], "metrics of one without an origin")

    place.progress(result="failed", text="n3: disk full")
    wait_state(daemon, "not staged")
    contains(dataset(daemon)["text"], "its staging failed: n3: disk full", "dlctl stage d")
    equal(Metrics(daemon.dlctl("metrics").stdout).one("dataloaderd_staging_failed", 'dataset="d"'), 1, "metrics")
    reader = daemon.reader("d")
    within(10, lambda: "disk full" in reader.errors(), "who attaches is told")
    place.stage(N)  # the next try
    check_sequence(reader.good(), N)


@case("a progress file of any content harms nobody")
def _(box):
    place = Place(box)
    place.progress()
    daemon = box.daemon({"d": place.keys})
    wait_state(daemon, "staging")
    nodes = [{"node": "n" * 1000, "doing": "\u001b[2J", "n_bytes_done": -1}] * 5000
    for content in (b"[" * 50000, b"x" * 70000,  # test_progress.c has many more
                    json.dumps({"phase": "\u001b[31m\n", "n_bytes_total": 1e300, "nodes": nodes[:20]}).encode()):
        place.progress_bytes(content)
        time.sleep(1.2)
        row = dataset(daemon)
        equal(row["state"] in ("staging", "not staged"), True, f"state after {content[:40]}: {row}")
        equal("\u001b" in json.dumps(row, ensure_ascii=False), False, "control characters")
    os.unlink(os.path.join(place.folder, "progress"))
    os.mkfifo(os.path.join(place.folder, "progress"))
    time.sleep(1.2)
    wait_state(daemon, "not staged")
    place.stage(N)
    check_sequence(daemon.read("d"), N)


@case("a new version is for new jobs; a job that runs keeps the old one, a rank that comes late included")
def _(box):
    place = Place(box)
    old = place.stage(N)
    daemon = box.daemon({"d": place.keys})
    wait_state(daemon, "ready")
    first = daemon.reader("d", job="long", world=2, rank=0, epochs=3, delay_ms=50, shuffle=False)
    first.wait_lines(3)
    place.stage(N + 10)
    daemon.wait_log(" replaces ", 10)
    second = daemon.reader("d", job="long", world=2, rank=1, epochs=3, shuffle=False)
    fresh = daemon.read("d", job="new")
    check_sequence(fresh, N + 10)
    lines = first.good() + second.good()
    equal(sorted({line["index"] for line in lines}), list(range(N)), "samples of the old version")
    check_bytes(lines, samples_of(old))
    check_sequence(daemon.read("d", job="long"), N + 10)  # the name is free again, and with it the old version


@case("a daemon that begins anew serves each job the version that it had, however old, and new jobs the newest")
def _(box):
    place = Place(box)
    old = place.stage(N)
    daemon = box.daemon({"d": place.keys})
    wait_state(daemon, "ready")
    first = daemon.reader("d", job="long", world=2, rank=0, epochs=3, delay_ms=50, shuffle=False, on_restart="wait")
    first.wait_lines(3)
    first.process.send_signal(signal.SIGSTOP)  # it would be through before all this has happened
    for more in (10, 20):
        newest = place.stage(N + more)
        daemon.wait_log(f"version {os.path.basename(newest)} replaces", 10)
    daemon.kill()
    daemon.start()
    wait_state(daemon, "ready")
    first.process.send_signal(signal.SIGCONT)
    daemon.wait_log("is open for a job that had it before", 20)
    within(20, lambda: daemon.log().count("rank attached job=long rank=0") == 2, "the job is there again")
    second = daemon.reader("d", job="long", world=2, rank=1, epochs=3, shuffle=False)  # one that comes late
    check_sequence(daemon.read("d", job="new"), N + 20)
    lines = first.good() + second.good()
    equal(sorted({line["index"] for line in lines}), list(range(N)), "samples of the old version")
    check_bytes(lines, samples_of(old))


@case("where it is one of several datasets, a late rank and a daemon that begins anew serve the same versions of all")
def _(box):
    place = Place(box)
    old = place.stage(N)
    other = box.folder_of_files("other", 20, size=90)
    daemon = box.daemon({"d": place.keys, "o": other})
    within(20, lambda: all(row["state"] == "ready" for row in daemon.objects("datasets")), "both are ready")
    terms = {"job": "long", "world": 2, "epochs": 2, "shuffle": False}
    first = daemon.reader("o + d", rank=0, delay_ms=50, on_restart="wait", **terms)
    first.wait_lines(3)
    first.process.send_signal(signal.SIGSTOP)  # it would be through before all this has happened
    newest = place.stage(N + 10)
    daemon.wait_log(f"version {os.path.basename(newest)} replaces", 10)
    check_sequence(daemon.read("o + d", job="new"), 20 + N + 10)
    second = daemon.reader("o + d", rank=1, **terms)  # one that comes late
    second.wait_lines(3)
    daemon.kill()
    daemon.start()
    second.finish()
    first.process.send_signal(signal.SIGCONT)
    daemon.wait_log("is open for a job that had it before", 20)
    within(20, lambda: daemon.log().count("rank attached job=long rank=0") == 2, "the job is there again")
    second = daemon.reader("o + d", rank=1, **terms)  # while the job is there
    lines = first.good() + second.good()
    equal(sorted(line["index"] for line in lines), sorted(2 * list(range(20 + N))), "samples of the old version, twice")
    check_bytes(lines, samples_of(other) + samples_of(old))


@case("a stamp that vanishes or is damaged ends nobody's job, lets nobody in, and is said once")
def _(box):
    place = Place(box)
    place.stage(N)
    daemon = box.daemon({"d": place.keys})
    wait_state(daemon, "ready")
    stamp = os.path.join(place.folder, "stamp")
    running = daemon.reader("d", job="long", epochs=4, delay_ms=50)
    running.wait_lines(2)

    whole = open(stamp, "rb").read()
    os.unlink(stamp)
    wait_state(daemon, "not staged")
    write(stamp, whole[:len(whole) // 2])
    wait_state(daemon, "failed")
    contains(dataset(daemon)["text"], "stamp")
    time.sleep(2.5)
    daemon.refused("d", "stamp", job="other")
    errors = [line for line in daemon.log().splitlines() if line.startswith("error")]
    equal(len(errors), 2, f"each is said once: {errors}")
    contains(errors[0], "its stamp is gone")
    contains(errors[1], "is not the stamp")
    equal(running.process.poll(), None, "the running job goes on")
    write(stamp, whole)
    wait_state(daemon, "ready")
    check_sequence(daemon.read("d", job="other"), N)
    check_sequence(running.good(), N, epochs=4)


@case("an index that is no good, or was not staged, is made here; and that is said")
def _(box):
    place = Place(box)
    version = place.stage(N)
    with open(version + ".index", "r+b") as index:
        index.truncate(100)
    daemon = box.daemon({"d": place.keys})
    check_sequence(daemon.read("d"), N)
    contains(daemon.log(), "the index beside it cannot be used")
    place.stage(N + 1, index="none")
    daemon.wait_log(" replaces ", 10)
    check_sequence(daemon.read("d", job="next"), N + 1)
    shutil.copy(os.path.join(place.folder, os.path.basename(version) + ".index"), box.path("other"))
    newest = place.stage(N + 2)
    daemon.wait_log(f"version {os.path.basename(newest)} replaces", 10)
    check_sequence(daemon.read("d", job="last"), N + 2)


@case("an index that is cut or written over in the staged folder harms nobody who is served from it")
def _(box):
    place = Place(box)
    version = place.stage(N)
    index = version + ".index"
    whole = open(index, "rb").read()
    os.chmod(index, 0o666)
    daemon = box.daemon({"d": place.keys})
    wait_state(daemon, "ready")
    running = daemon.reader("d", job="long", epochs=4, delay_ms=30)
    running.wait_lines(2)
    rows = len(whole) - 240
    with open(index, "r+b") as file:  # every name and every row points elsewhere
        file.seek(240)
        file.write(os.urandom(rows))
    running.wait_lines(N)
    with open(index, "r+b") as file:
        file.truncate(0)
    daemon.read("d", job="other")
    lines = running.good()
    check_sequence(lines, N, epochs=4)
    check_bytes(lines, samples_of(version))
    equal(daemon.log().count("opened with the index beside it"), 1, "it was opened once")

    write(index, whole)
    daemon.kill()
    daemon.start()
    check_sequence(daemon.read("d"), N)
    equal(daemon.log().count("opened with the index beside it"), 2, "after a restart the copy is taken again")


@case("a shard of a served version that is mended, with the same bytes in another file, goes on being served")
def _(box):
    place = Place(box)
    digest = hashlib.sha256(b"shards").hexdigest()
    version = os.path.join(place.folder, f"v-{digest[:12]}")
    for shard in range(3):
        write(os.path.join(version, f"{shard}.csv"), b"x,t\n" + b"".join(b"%d,t\n" % (10 * shard + i) for i in range(6)))
    place.stamp(digest, "none")
    daemon = box.daemon({"d": dict(place.keys, format="csv")})
    wait_state(daemon, "ready")
    trainer(box, daemon, """
        batches = iter(dlclient.Loader("d", batch_size=1, shuffle=False, slots=2, on_error="skip"))
        found = [next(batches)["x"].item()]
        path = os.path.join(sys.argv[1], "2.csv")
        with open(path, "rb") as old, open(path + ".new", "wb") as new:
            new.write(old.read())
        os.replace(path + ".new", path)
        found += [batch["x"].item() for batch in batches]
        assert found == [10 * shard + i for shard in range(3) for i in range(6)], found
    """, version)


@case("where the staged index cannot be copied to a disk it is copied into memory, within memory_limit")
def _(box):
    place = Place(box)
    version = place.stage(N)
    daemon = box.daemon({"d": place.keys}, index_dir="/proc/nowhere")
    running = daemon.reader("d", job="long", epochs=4, delay_ms=30)
    running.wait_lines(2)
    n_bytes = os.path.getsize(version + ".index")
    used = daemon.memory_used()
    os.truncate(version + ".index", 0)
    lines = running.good()
    check_sequence(lines, N, epochs=4)
    check_bytes(lines, samples_of(version))
    place.stage(N + 400)
    daemon.wait_log(" replaces ", 10)
    within(10, lambda: daemon.memory_used() > n_bytes + 100 * 40, f"the copy is counted: {daemon.memory_used()}")
    equal(used > n_bytes, True, "memory in use covers the copy")


@case("a version that cannot be opened leaves the one before in place; the daemon may start at any time")
def _(box):
    place = Place(box)
    place.stage(N)
    daemon = box.daemon({"d": place.keys})
    wait_state(daemon, "ready")
    digest = hashlib.sha256(b"empty").hexdigest()
    os.makedirs(os.path.join(place.folder, f"v-{digest[:12]}"))
    place.stamp(digest, "none")  # a folder without classes
    daemon.wait_log("the previous version is still served", 10)
    check_sequence(daemon.read("d"), N)
    daemon.kill()
    daemon.start()
    wait_state(daemon, "failed")
    place.stage(N)
    wait_state(daemon, "ready")
    check_sequence(daemon.read("d"), N)


@case("a reload gives a dataset an origin, changes it, and takes it away again")
def _(box):
    place = Place(box)
    place.stage(N)
    plain = box.folder_of_files("plain", 5)
    daemon = box.daemon({"d": plain})
    check_sequence(daemon.read("d", job="a"), 5)
    for keys, n in ((place.keys, N), ({**place.keys, "origin": "file:///elsewhere"}, N), (plain, 5)):
        daemon.datasets = {"d": keys}
        daemon.write_config()
        daemon.signal(1)
        within(10, lambda n=n: dataset(daemon)["n_samples"] == n and dataset(daemon).get("origin") ==
               (None if n == 5 else keys["origin"].partition("?")[0]), "reload")
        check_sequence(daemon.read("d", job=f"b{n}"), n)


@case("dlctl stage becomes the staging program that lies beside it or in ../sbin, with its options and its exit code")
def _(box):
    program = '#!/bin/sh\necho "$0" "$@"; trap "" PIPE; echo "shell $?"; exit 78\n'
    for folder in ("bin", "sbin"):
        os.makedirs(box.path(folder))
    shutil.copy(DLCTL, box.path("bin", "dlctl"))

    def stage(*arguments):
        return subprocess.run([box.path("bin", "dlctl"), *arguments], env={"PATH": "/nowhere"}, check=False, timeout=300,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True)
    if not os.path.exists("/usr/sbin/dataloaderd-stage"):
        done = stage("stage", "d")
        equal(done.returncode, 1, "exit status without the program")
        contains(done.stderr, "dataloaderd-stage is not installed", box.path("bin"))
    for folder in ("sbin", "bin"):
        path = box.path(folder, "dataloaderd-stage")
        write(path, program.encode())
        os.chmod(path, 0o755)
        done = stage("--format", "json", "stage", "-c", "a.conf", "--dry-run", "--verify", "-d")
        equal(done.returncode, 2, f"an option that nobody knows: {done.stderr}")
        done = stage("--format", "json", "stage", "-c", "a.conf", "--dry-run", "--verify", "--", "-d")
        equal((done.returncode, done.stderr), (78, ""), "its exit status")
        contains(done.stdout, f"{folder}/dataloaderd-stage --config a.conf --verify --dry-run --format json -- -d\n")
    os.chmod(box.path("bin", "dataloaderd-stage"), 0o644)
    equal(stage("stage", "d").returncode, 1, "one that cannot be run")
    equal(stage("stage").returncode, 2, "no dataset")


main()
