#!/usr/bin/env python3
"""What the daemon counts for people: where workers' time goes, what trainers say of their waiting, what was read."""
import mmap
import os
import random
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import HandClient, case, contains, equal, main, within
from prometheus import Metrics
from web import Web

PAGE = 4096
PICTURES = 60
STEPS = "random_resized_crop(96) hflip(0.5) color_jitter(0.4,0.4,0.4,0.1) to(float32)"


def job_of(daemon, name):
    return next((job for job in daemon.objects("jobs") if job["name"] == name), None)


def steady(box, **terms):
    """A daemon with a reader that is slower than it."""
    daemon = box.daemon({"p": box.folder_of_pictures("p", PICTURES, width=64, height=48)})
    reader = daemon.reader("p", job="steady", batch=4, epochs=1000, delay_ms=20, **terms)
    reader.wait_lines(40)
    return daemon, reader


@case("the stages of a pipeline are named, and add up to the workers' time")
def _(box):
    daemon, _ = steady(box, pipeline=STEPS)
    job = job_of(daemon, "steady")
    taken = {stage["name"]: stage["taken_ns"] for stage in job["stages"]}
    for name in ("decode", "random_resized_crop", "color_jitter", "convert", "header", "collate"):
        assert taken.get(name, 0) > 0, f"{name} of {taken}"
    assert "hflip" not in taken and "audio" not in taken, taken
    # Looked at one after the other while workers go on: the sums may differ by what is done in between.
    samples = job["counts"]["n_samples"]
    assert abs(sum(taken.values()) - taken["collate"] - job["worker_ns"]) <= 0.2 * job["worker_ns"], (taken, job)
    assert samples >= 40 and job["counts"]["n_reads"] >= samples, job["counts"]
    assert job["counts"]["n_bytes_read"] > 0 and job["counts"]["read_ns"] > 0, job["counts"]
    node = daemon.status()["node"]
    assert node["n_samples"] >= samples and node["worker_ns"] >= job["worker_ns"] - taken["collate"], (node, job)
    assert 0 < node["worker_cpu_ns"], node
    assert node["n_workers"] >= 1 and node["cpus_milli"] >= 1 and node["now_ns"] > job["counts"]["now_ns"], node
    text = daemon.dlctl("jobs").stdout
    assert "color_jitter" in text and "histogram" not in text, text


@case("a number that no client knows is on every screen: pictures that share a decoding")
def _(box):
    daemon, _ = steady(box, pipeline="random_resized_crop(32) views(3)")
    counted = job_of(daemon, "steady")["counts"]["n_shared"]
    assert counted >= 2 * 40, counted
    top, = daemon.objects("top", "--once", "--delay", "0.2")
    assert top["jobs"][0]["n_shared"] >= counted and top["node"]["n_shared"] >= counted, top
    contains(daemon.dlctl("top", "--once").stdout, "Counted  shared ")
    key, = (key for key in Metrics(daemon.dlctl("metrics").stdout).values if key[0] == "dataloaderd_shared_pictures_total")
    contains(key[1], 'job="steady"')
    page = Web(box, daemon.socket).until(lambda it: it["jobs"], "the job")
    assert page["jobs"][0]["counts"]["n_shared"] >= counted, page["jobs"][0]["counts"]


@case("tokens of text and bytes have stages of their own")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 40)})
    reader = daemon.reader("d", job="bytes", batch=4, epochs=1000, delay_ms=5, pipeline="raw")
    reader.wait_lines(20)
    taken = {stage["name"]: stage["taken_ns"] for stage in job_of(daemon, "bytes")["stages"]}
    assert taken.get("copy", 0) > 0 and "decode" not in taken, taken


@case("a rank says how long it waited, and how long its trainer was busy")
def _(box):
    daemon, _ = steady(box, pipeline="resize(64)")
    rank = job_of(daemon, "steady")["ranks"][0]
    said = rank["waiting"]
    assert said["n_batches"] >= 10, rank
    assert said["wait_ns"] + said["busy_ns"] + said["first_wait_ns"] <= rank["age_ns"], rank
    assert said["busy_ns"] > 0, rank
    equal(sum(said["histogram"]), said["n_batches"] - 1, "batches in the histogram")
    assert rank["n_samples"] >= 4 * said["n_batches"], rank
    later = job_of(daemon, "steady")["ranks"][0]
    for name in ("n_batches", "n_waits", "wait_ns", "busy_ns", "empty_ns"):
        assert later["waiting"][name] >= said[name], (name, said, later)


@case("a rank that waits is seen waiting")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 12, width=60, height=40)}, workers=1)
    daemon.reader("p", job="hungry", batch=8, epochs=1000, pipeline="resize(500:700) color_jitter(0.4,0.4,0.4,0.1)")

    def waits():
        job = job_of(daemon, "hungry")
        if not job or not job["ranks"]:
            return False
        said = job["ranks"][0]["waiting"]
        return said["n_waits"] > 2 and said["wait_ns"] > said["busy_ns"] and said["empty_ns"] > 0

    within(30, waits, "a rank that waits longer than it is busy")


@case("what a client claims in its page is made possible, and nobody else notices")
def _(box):
    daemon, reader = steady(box, pipeline="resize(64)")
    client = HandClient(daemon.socket)
    client.attach("p", job="liar", batch=4)
    page = mmap.mmap(client.descriptors[1], PAGE)
    chance = random.Random(5)
    words = list(range(9, 16)) + list(range(80, 110))  # beside n_taken, and after released[]
    for _ in range(30):
        for word in words:
            page[word * 8:word * 8 + 8] = struct.pack("<Q", chance.choice([0, 1, 7, time.monotonic_ns(), 2**63, 2**64 - 1]))
        rank = job_of(daemon, "liar")["ranks"][0]
        said = rank["waiting"]
        assert said["n_batches"] <= rank["n_slots"] + 1 and said["n_waits"] <= said["n_batches"], rank
        assert sum(said["histogram"]) == max(said["n_batches"] - 1, 0), rank
        assert said["wait_ns"] + said["busy_ns"] <= rank["age_ns"], rank
        for name in ("wait_ns", "busy_ns", "waiting_ns", "empty_ns", "first_wait_ns"):
            assert said[name] <= rank["age_ns"], (name, rank)
    page.close()
    client.close()
    n_before = len(reader.lines)
    reader.wait_lines(n_before + 40)


main()
