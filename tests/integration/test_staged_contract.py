#!/usr/bin/env python3
"""docs/staged-datasets.md: what follows that page is served by the daemon. A small program that was written from the page
alone stages, is stopped after each of its steps, and is followed by dataloaderd-stage."""
import fcntl
import importlib.util
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, case, check_bytes, check_sequence, contains, equal, main, samples_of, within, write
from staging import Staging, files_of, write_manifest

PAGE = os.path.join(ROOT, "docs", "staged-datasets.md")
PROGRAM = os.path.join(ROOT, "docs", "staged-datasets", "stage_folder.py")
N = 30


def load_program():
    spec = importlib.util.spec_from_file_location("stage_folder", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


stage_folder = load_program()


class Place:
    def __init__(self, box):
        self.box = box
        self.path = box.path("data", "photos")
        self.state = box.path("data", ".photos.staged")
        os.makedirs(box.path("data"))
        self.keys = {"path": self.path, "origin": "file:///somewhere/photos"}

    def source(self, n_files):
        """A dataset; those of more files have all files of the smaller ones."""
        return self.box.folder_of_files(f"source{n_files}", n_files)

    def stage(self, n_files, steps=stage_folder.Staging.STEPS):
        """Returns the version."""
        staging = stage_folder.Staging("photos", self.source(n_files), self.path)
        staging.run(steps)
        return staging.version

    def versions(self):
        return sorted(name for name in os.listdir(self.state) if re.fullmatch("v-[0-9a-f]{12}", name))


def row(daemon):
    return daemon.objects("datasets")[0]


def wait_version(daemon, version):
    within(20, lambda: (row(daemon)["state"], row(daemon).get("version")) == ("ready", version), f"{version}: {row(daemon)}")


@case("what a program of somebody else staged is served, and its progress is shown before")
def _(box):
    place = Place(box)
    daemon = box.daemon({"photos": place.keys})
    reader = daemon.reader("photos")
    within(10, lambda: "not staged yet" in reader.errors(), "the waiting rank is told")
    place.stage(N, steps=("copy",))
    within(10, lambda: "copying" in reader.errors(), f"progress: {reader.errors()}")
    equal(reader.process.poll(), None, "it waits")
    done = subprocess.run([sys.executable, PROGRAM, "photos", place.source(N), place.path], check=False, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    equal((done.returncode, done.stdout), (0, ""), "the program")
    lines = reader.good()
    check_sequence(lines, N)
    check_bytes(lines, samples_of(place.source(N)))
    equal(files_of(place.path), files_of(place.source(N)), "the link at the path")


@case("a run that ends after any of its steps leaves the version before served, or the new one, and can be repeated")
def _(box):
    place = Place(box)
    served, n_served = place.stage(N), N
    daemon = box.daemon({"photos": place.keys})
    wait_version(daemon, served)
    steps = stage_folder.Staging.STEPS
    for n_steps in range(1, len(steps) + 1):
        n_files = N + n_steps
        version = place.stage(n_files, steps[:n_steps])
        if "write_stamp" in steps[:n_steps]:
            served, n_served = version, n_files
        wait_version(daemon, served)
        check_sequence(daemon.read("photos", job=f"after{n_steps}"), n_served)
    wait_version(daemon, place.stage(N + 1))
    check_sequence(daemon.read("photos", job="again"), N + 1)


@case("a version that a job reads is not removed by a later staging, and is by the one after the job")
def _(box):
    place = Place(box)
    first = place.stage(N)
    daemon = box.daemon({"photos": place.keys})
    wait_version(daemon, first)
    reader = daemon.reader("photos", job="long", epochs=100000, delay_ms=20)
    reader.wait_lines(3)
    others = [place.stage(N + more) for more in (1, 2)]
    wait_version(daemon, others[-1])
    equal(place.versions(), sorted([first] + others), "the first one is read")
    others.append(place.stage(N + 3))
    wait_version(daemon, others[-1])
    equal(place.versions(), sorted([first] + others[1:]), "nobody reads the second")
    reader.process.kill()
    reader.finish()
    readers = os.path.join(place.state, first + ".readers")

    def is_free():
        with open(readers, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True
    within(20, is_free, "the daemon lets go of the version")
    others.append(place.stage(N + 4))
    equal(place.versions(), sorted(others[-2:]), "all but the stamped one and the one before")


@case("one staging at a time, whoever does it")
def _(box):
    place = Place(box)
    source = place.source(N)
    write_manifest(source)
    ours = Staging(box, "file://" + os.path.join(source, "manifest.jsonl"), path=place.path)
    mine = stage_folder.Staging("photos", source, place.path)
    done = ours.run(status=75)
    contains(done.text, "another staging is at work", "stage_folder.py")
    mine.lock.close()
    equal(ours.run().result, "staged", "once it has ended")


@case("dataloaderd-stage adds an index to what another program staged, and takes its files for the next version")
def _(box):
    place = Place(box)
    source = place.source(N)
    first = place.stage(N)
    write_manifest(source)
    staging = Staging(box, "file://" + os.path.join(source, "manifest.jsonl"), path=place.path)
    inodes = {path: os.stat(os.path.join(place.path, path)).st_ino for path in files_of(place.path)}
    equal(staging.run().result, "staged", "an index is made")
    equal(staging.stamp()["version"], first, "the same version")
    equal({path: os.stat(os.path.join(place.path, path)).st_ino for path in files_of(place.path)}, inodes, "the same files")
    equal(staging.run().result, "up-to-date", "with the index")
    write(os.path.join(source, sorted(os.listdir(source))[0], "another"), b"one more")
    write_manifest(source)
    equal(staging.run().result, "staged", "one more file")
    second = staging.stamp()["version"]
    equal(second != first, True, "another version")
    path = sorted(files_of(os.path.join(place.state, first)))[0]
    equal(os.stat(os.path.join(place.state, first, path)).st_ino, os.stat(os.path.join(place.state, second, path)).st_ino,
          "a file that did not change is the same file")


def documented_fields(heading):
    with open(PAGE, encoding="utf-8") as file:
        section = re.search(rf"^## {heading}$(.*?)(?=^## )", file.read(), re.M | re.S).group(1)
    names = set()
    for line in section.splitlines():
        if line.startswith("|"):
            names.update(re.findall(r"`([a-z_]+)`", line))
    return names


def source_text(name):
    with open(os.path.join(ROOT, "daemon", "store", "record", name), encoding="utf-8") as file:
        return file.read()


@case("the page has each field of the stamp and of the progress, and no other")
def _(box):
    stamp = set(re.findall(r"\bFIELD\((\w+), FIELD_", source_text("stamp.c")))
    equal(len(stamp) > 10, True, "fields of the stamp are found")
    equal(documented_fields("The stamp"), stamp, "fields of the stamp")
    progress = set(re.findall(r"\b(?:TEXT|NUMBER)\((?:progress|node_progress), (\w+)\)", source_text("record_progress.c")))
    equal(documented_fields("Progress"), progress | {"n_nodes", "nodes"}, "fields of the progress")
    example = re.search(r"```json\n(.*?)\n```", open(PAGE, encoding="utf-8").read(), re.S).group(1)
    equal(set(json.loads(example)), stamp, "the example")


main()
