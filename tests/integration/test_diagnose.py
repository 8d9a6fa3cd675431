#!/usr/bin/env python3
"""dlctl diagnose: causes are made, strong ones, and each must be named, also while the CPUs have other work."""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from failing_fs import FailingFs
from harness import DLCTL, case, contains, equal, main, photos, within
from pyclient import need, trainer

HEAVY = "resize(500:700) color_jitter(0.4,0.4,0.4,0.1)"


def diagnose(daemon, name, seconds=2):
    found = daemon.objects("diagnose", name, "--seconds", seconds)
    equal(len(found), 1, "jobs")
    for key, value in found[0].items():
        if key.endswith("_share"):
            assert 0 <= value <= 1, found[0]
    return found[0]


def steady(daemon, dataset, job, **terms):
    """A reader that goes on for the whole test, and has had some batches."""
    reader = daemon.reader(dataset, job=job, epochs=100000, **terms)
    reader.wait_lines(3 * terms["batch"], seconds=60)
    return reader


@case("a slow consumer: the training step is the limit, and there is nothing to change")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 60, width=64, height=48)})
    steady(daemon, "p", "slow", batch=4, delay_ms=150, pipeline="resize(32)")
    found = diagnose(daemon, "slow", 3)
    equal((found["limit"], found["input_bound"]), ("trainer", "not"), str(found))
    assert found["wait_share"] < 0.05 and found["predicted_samples_per_second"] < 1.06 * found["samples_per_second"], found
    contains(found["verdict"], "not input-bound")
    contains(found["advice"], "nothing to change")


@case("few workers: they are the limit, and how many are wanted is said")
def _(box):
    daemon = box.daemon({"p": photos(120, 2)}, workers=1)
    steady(daemon, "p", "few", batch=32, pipeline="resize(16:16)")
    found = diagnose(daemon, "few")
    equal((found["limit"], found["input_bound"]), ("decoding", "highly"), str(found))
    assert found["largest_stage"] == "decode" and found
    contains(found["verdict"], "highly input-bound", "1 worker is busy")
    contains(found["advice"], "dlctl workers" if found["cpus"] >= 2 else "more CPUs")


@case("a heavy step: it is named, with what would be without it")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 12, width=60, height=40)}, workers=1)
    steady(daemon, "p", "heavy", batch=8, pipeline=HEAVY)
    found = diagnose(daemon, "heavy")
    equal((found["limit"], found["input_bound"], found["largest_stage"]), ("step", "highly", "color_jitter"), str(found))
    assert found["predicted_samples_per_second"] > found["samples_per_second"], found
    contains(found["verdict"], "color_jitter")


ASKS_TWICE = """
import re, subprocess
def words(text):
    return re.sub(r"[0-9]+([.][0-9]+)?(e[+-]?[0-9]+)?", "N", text)
loader = dlclient.Loader("p", batch_size=8, pipeline=sys.argv[2], job="asked", epochs=None)
ended = threading.Event()
def loop():
    for batch in loader:
        if ended.wait(float(sys.argv[3])):
            break
thread = threading.Thread(target=loop)
thread.start()
while loader.stats().batches < 10: time.sleep(0.05)
loader.stats()
seen = json.loads(subprocess.run([sys.argv[1], "--format", "json", "diagnose", "asked", "--seconds", "3"],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout)
own = loader.stats()
ended.set()
thread.join()
out([own.limit, own.input_bound, words(own.verdict), words(own.advice)])
out([seen["limit"], seen["input_bound"], words(seen["verdict"]), words(seen["advice"])])
out([own.wait_share, seen["wait_share"]])
"""


@case("a trainer that prints stats() reads what its administrator reads: limit, share, sentence, advice", sanitized=False)
def _(box):
    need("numpy")
    daemon = box.daemon({"p": box.folder_of_pictures("p", 12, width=60, height=40)}, workers=1)
    for pipeline, pause, limit in ((HEAVY, 0, "step"), ("resize(32)", 0.15, "trainer")):
        own, seen, shares = trainer(box, daemon, ASKS_TWICE, DLCTL, pipeline, str(pause))
        equal(own, seen, "both")
        equal(own[0], limit, str(own))
        assert abs(shares[0] - shares[1]) < 0.25, shares


@case("a slow disk: bytes are what is waited for", sanitized=False)
def _(box):
    source = box.folder_of_pictures("source", 60, width=64, height=48)
    disk = FailingFs(box, source)
    daemon = box.daemon({"d": disk.path})
    disk.delay("*", 100, ops="read")
    steady(daemon, "d", "disk", batch=8, pipeline="resize(32)")
    found = diagnose(daemon, "disk", 4)
    equal((found["limit"], found["input_bound"]), ("reading", "highly"), str(found))
    contains(found["verdict"], "for bytes")
    contains(found["advice"], "faster disk")
    assert found["read_milliseconds"] > 50, found
    disk.clear()


@case("one slow rank: it is named, also while the others wait for data")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 60, width=300, height=200)}, workers=1)
    for rank, delay_ms in enumerate((0, 400, 0)):
        daemon.reader("p", job="ranks", epochs=100000, world=3, rank=rank, batch=2, delay_ms=delay_ms, pipeline="resize(16)")
    within(60, lambda: sum(rank["n_batches"] > 2 for job in daemon.objects("jobs") for rank in job["ranks"]) == 3, "all ranks are served")
    for _ in range(6):  # while others take the CPUs, the one worker may be the limit of some seconds
        found = diagnose(daemon, "ranks", 5)
        if found["limit"] == "rank":
            break
    equal((found["limit"], found.get("rank"), found["input_bound"]), ("rank", 1, "not"), str(found))
    contains(found["verdict"], "rank 1")


@case("dlctl jobs shows all jobs or the one that is named, also one with a slash in its name; a name that none has is told")
def _(box):
    daemon = box.daemon({"p": box.folder_of_files("p", 60)})
    said = daemon.dlctl("jobs", "one")
    equal((said.returncode, said.stdout), (1, ""), said.stderr)
    contains(said.stderr, 'jobs: there is no job "one": nobody is attached')
    for name in ("one", "two", "run/3"):
        daemon.reader("p", job=name, batch=1, delay_ms=60000).wait_lines(1)
    equal({job["name"] for job in daemon.objects("jobs")}, {"one", "two", "run/3"}, "all jobs")
    for name in ("two", "run/3"):
        equal([job["name"] for job in daemon.objects("jobs", name)], [name], "the job that is named")
    said = daemon.dlctl("jobs", "two")
    equal((said.returncode, "one" in said.stdout), (0, False), said.stdout)
    said = daemon.dlctl("jobs", "twa")
    equal((said.returncode, said.stdout), (1, ""), said.stderr)
    contains(said.stderr, 'no job "twa"', 'did you mean "two"', "there are: ", "one", "run/3")


@case("text for people: the sentence, what to change, the numbers; all jobs unless one is named")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 60, width=64, height=48)})
    said = daemon.dlctl("diagnose", "--seconds", "1")
    equal((said.returncode, said.stdout.strip()), (0, "No jobs: nobody is attached."), said.stderr)
    said = daemon.dlctl("diagnose", "one")
    equal(said.returncode, 1, said.stderr)
    contains(said.stderr, 'no job "one"')
    for name in ("one", "two"):
        steady(daemon, "p", name, batch=4, delay_ms=50, pipeline="resize(32)")
    said = daemon.dlctl("diagnose", "--seconds", "1")
    equal(said.returncode, 0, said.stderr)
    contains(said.stdout, "one", "two", "verdict", "advice", "wait share", "samples per second")
    contains(said.stderr, "looking on for 1 s")
    said = daemon.dlctl("diagnose", "ona")
    equal(said.returncode, 1, said.stderr)
    contains(said.stderr, 'did you mean "one"', "two, one")
    equal(daemon.dlctl("diagnose", "--seconds", "0").returncode, 2)
    equal(daemon.dlctl("diagnose", "--seconds", "nan").returncode, 2)
    said = daemon.dlctl("jobs")
    contains(said.stdout, "any number", "wait share", "advice")


@case("an interrupt ends it, with what has been seen by then")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 60, width=64, height=48)})
    steady(daemon, "p", "one", batch=4, delay_ms=20, pipeline="resize(32)")
    for number in (signal.SIGINT, signal.SIGTERM):
        with open(box.path(f"said{number}"), "w+b") as said:
            process = box.start([DLCTL, "--socket", daemon.socket, "diagnose", "--seconds", "1000"], stdout=said, stderr=said)
            within(20, lambda: os.path.getsize(said.name) > 0, "it looks on")
            process.send_signal(number)
            equal(process.wait(30), 130, "exit status")
            said.seek(0)
            contains(said.read().decode(), "verdict", "advice")


main()
