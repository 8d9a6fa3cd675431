#!/usr/bin/env python3
"""The ledger of damaged samples: what was met is listed with name, reason, number and times, and survives the daemon."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, contains, equal, main, samples_of, within, write

N = 60
BAD = (0, 7, 8, 9, 31, 59)


def spoil(folder, numbers):
    """These samples are links to nothing. Returns their paths within the folder."""
    paths = [samples_of(folder)[number][0] for number in numbers]
    for path in paths:
        os.unlink(path)
        os.symlink("nowhere", path)
    return [os.path.relpath(path, folder) for path in paths]


def ledger_path(daemon, name):
    return os.path.join(daemon.settings["index_dir"], name + ".errors")


def content(path):
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def read_all(daemon, name="d", **terms):
    terms.setdefault("on_error", "skip")
    return daemon.read(name, batch=12, **terms)


@case("each damaged sample is listed once, with its path, reason, how often and when it was met; whatever the policy")
def _(box):
    folder = box.folder_of_files("d", N)
    paths = spoil(folder, BAD)
    daemon = box.daemon({"d": folder})
    equal(daemon.objects("errors"), [], "at first")
    contains(daemon.dlctl("errors").stdout, "No damaged samples")
    begin = int(time.time())
    read_all(daemon)
    read_all(daemon, on_error="substitute", epochs=2, job="again")
    errors = daemon.objects("errors", "d")
    equal(sorted(error["index"] for error in errors), list(BAD), "which")
    for error in errors:
        equal(error["path"], paths[BAD.index(error["index"])], "path")
        equal((error["dataset"], error["field"]), ("d", "image"), "dataset and field")
        contains(error["error"], "No such file")
        equal(error["n_met"] >= 3, True, f"times met: {error['n_met']}")
        equal(begin <= error["first_unix"] <= error["last_unix"] <= time.time(), True, "times")
    equal(daemon.objects("errors"), errors, "of all datasets")
    equal(daemon.objects("datasets")[0]["n_errors"], len(BAD), "distinct ones, in dlctl datasets")
    text = daemon.dlctl("errors").stdout
    contains(text, paths[0], "No such file", time.strftime("%Y-%m-%d"))
    equal(daemon.dlctl("errors", "nothing").returncode, 1, "of an unknown dataset")
    contains(daemon.dlctl("errors", "nothing").stderr, "nothing", "the configuration has: d")
    equal(daemon.dlctl("errors", "d", "e").returncode, 2, "too many arguments")


@case("the ledger survives kill -9, a torn line and a stop; counts go on; a healthy dataset has none")
def _(box):
    folder = box.folder_of_files("d", N)
    spoil(folder, BAD)
    daemon = box.daemon({"d": folder, "good": box.folder_of_files("good", 10)})
    read_all(daemon)
    read_all(daemon, "good")
    path = ledger_path(daemon, "d")
    within(1, lambda: len(content(path).splitlines()) == 3 + len(BAD), "the file has them")
    daemon.kill()
    with open(path, "a", encoding="utf-8") as file:
        file.write("31\t1000\t2026-11-2")
    daemon.start()
    within(5, lambda: len(daemon.objects("errors")) == len(BAD), "they are listed again")
    first = {error["index"]: error["first_unix"] for error in daemon.objects("errors")}
    time.sleep(1.1)
    read_all(daemon)
    daemon.stop()
    daemon.start()
    within(5, lambda: daemon.objects("datasets")[0]["state"] == "ready", "open")
    for error in daemon.objects("errors", "d"):
        equal((error["n_met"], error["first_unix"]), (2, first[error["index"]]), "met twice, first when it was")
        equal(error["last_unix"] > error["first_unix"], True, "last later")
    equal(os.path.exists(ledger_path(daemon, "good")), False, "a file for the healthy one")


@case("a folder that changed begins a new ledger; the old one lies beside it")
def _(box):
    folder = box.folder_of_files("d", N)
    [path] = spoil(folder, [5])
    daemon = box.daemon({"d": folder})
    read_all(daemon)
    daemon.stop()
    time.sleep(0.02)
    write(os.path.join(folder, "class000", "000000a.jpg"), b"moves all numbers up")
    daemon.start()
    within(5, lambda: daemon.objects("datasets")[0]["state"] == "ready", "indexed again")
    equal(daemon.objects("errors"), [], "of the new content")
    contains(content(ledger_path(daemon, "d") + ".old"), path)
    contains(daemon.log(), "d.errors.old")
    read_all(daemon)
    equal([error["index"] for error in daemon.objects("errors")], [6], "met under its new number")


@case("thousands of damaged samples in several datasets are listed page by page, each once")
def _(box):
    folders, expected = {}, []
    for name, n in (("a", 700), ("b", 3), ("c", 300)):
        folders[name] = box.folder_of_files(name, n + 20, size=20)
        spoil(folders[name], range(n))
        expected += [(name, index) for index in range(n)]
    long_name = "x" * 120
    folders[long_name] = box.path("long")
    for number in range(80):
        os.makedirs(box.path("long", *["d" * 200] * 15, f"{number:03d}"))
        os.symlink("nowhere", box.path("long", *["d" * 200] * 15, f"{number:03d}", "e" * 200 + ".jpg"))
    write(box.path("long", "z", "good.jpg"), b"good")
    expected += [(long_name, index) for index in range(80)]
    daemon = box.daemon(folders)
    for name in folders:
        daemon.reader(name, on_error="skip", batch=1024, job=name).finish(60)
    errors = [(error["dataset"], error["index"]) for error in daemon.objects("errors")]
    equal(sorted(errors), sorted(expected), "all of them")
    equal(sorted(error["index"] for error in daemon.objects("errors", "c")), list(range(300)), "of one dataset")


@case("a ledger that cannot be written is said once, kept in memory, and nobody is held up")
def _(box):
    folder = box.folder_of_files("d", N)
    spoil(folder, BAD)
    daemon = box.daemon({"d": folder})
    within(5, lambda: daemon.objects("datasets")[0]["state"] == "ready", "the ledger was looked for")
    os.symlink("/dev/full", ledger_path(daemon, "d"))
    for number in range(3):
        equal(len(read_all(daemon, job=str(number))), N - len(BAD), "samples")
        time.sleep(0.4)
    equal(len(daemon.objects("errors")), len(BAD), "listed all the same")
    daemon.wait_log("cannot be saved")
    equal(daemon.log().count("cannot be saved"), 1, "said")
    contains(daemon.log(), "No space left")
    os.unlink(ledger_path(daemon, "d"))
    daemon.stop()
    equal(len(content(ledger_path(daemon, "d")).splitlines()), 3 + len(BAD), "written at the end")


main()
