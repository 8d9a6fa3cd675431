#!/usr/bin/env python3
"""on_error=skip: damaged samples are left out, and nothing but which ones they are decides what a rank gets; max_errors
says how many a job bears."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import HandClient, Table, case, contains, equal, expected_order, main, samples_of, within

N = 60
BAD = (0, 7, 8, 9, 31, 59)
PIPELINES = {"center_crop(8)": "dense", "decode": "of one size that the pictures decide", "raw": "ragged"}
# (world, batch, workers)
SHAPES = [(1, 1, 2), (1, 4, 1), (1, 60, 4), (2, 5, 2), (3, 4, 3), (3, 1, 1)]


def spoil(folder, numbers):
    """These samples are links to nothing: damaged whatever is done to them. Returns their names."""
    paths = [samples_of(folder)[number][0] for number in numbers]
    for path in paths:
        os.unlink(path)
        os.symlink("/nowhere/at/all", path)
    return [os.path.basename(path) for path in paths]


def hashes(lines):
    return {line["index"]: line["fields"]["image"]["sha256"] for line in lines}


def survivors(world, rank, batch, seed, bad=BAD, n=N):
    """(step, index) of what is left."""
    order = expected_order(n, world=world, rank=rank, seed=seed)
    return [(place // batch, index) for place, index in enumerate(order) if index not in bad]


@case("the same damaged folder gives the same surviving sequence at every world, batch size and number of workers")
def _(box):
    folder = box.folder_of_pictures("d", N)
    clean = box.daemon({"d": folder}, name="clean")
    good = {pipeline: hashes(clean.read("d", pipeline=pipeline, batch=4)) for pipeline in PIPELINES}
    clean.stop()
    spoil(folder, BAD)
    rows = Table()
    for number, (world, batch, workers) in enumerate(SHAPES):
        daemon = box.daemon({"d": folder}, workers=workers)
        for pipeline, kind in PIPELINES.items():
            ranks = daemon.read_ranks("d", world, pipeline=pipeline, batch=batch, seed=number, on_error="skip",
                                      job=pipeline)
            for rank, lines in enumerate(ranks):
                with rows.row(f"world {world} rank {rank} batch {batch} workers {workers}, {kind}"):
                    equal([(line["step"], line["index"]) for line in lines], survivors(world, rank, batch, number),
                          "step, index")
                    for line in lines:
                        equal(line["fields"]["image"]["sha256"], good[pipeline][line["index"]],
                              f"bytes of sample {line['index']}")
                        equal(line["fields"]["label"]["value"], line["index"] * 2 // N, "label")
                        equal("substitute" in line, False, "nothing stands for anything")
        daemon.stop()
    rows.done()


@case("what is skipped is counted: of the job, of the rank, in status; the log says so with the name")
def _(box):
    folder = box.folder_of_pictures("d", N)
    names = spoil(folder, BAD)
    daemon = box.daemon({"d": folder})
    reader = daemon.reader("d", on_error="skip", batch=6, epochs=3, delay_ms=2, slots=2)
    equal(len(reader.good()), 3 * (N - len(BAD)), "samples of three epochs")
    client = HandClient(daemon.socket)
    client.attach("d", on_error="skip", batch=N, pipeline="decode")
    [job] = within(5, lambda: [job for job in daemon.objects("jobs") if job["n_errors"] == len(BAD)], "the counts")
    equal((job["on_error"], job["errors_allowed"], job["failure"]), ("skip", 0, ""), "the job")
    within(5, lambda: daemon.objects("jobs")[0]["ranks"][0]["n_skipped"] >= len(BAD), "the rank's count")
    client.close()
    counters = {counter["name"]: int(counter["value"]) for counter in daemon.status()["counters"]}
    equal(counters["n_skipped"] >= 4 * len(BAD), True, f"counted in status: {counters['n_skipped']}")
    for name in names:
        contains(daemon.log(), name)
    contains(daemon.log(), "left out of its batch")


@case("max_errors: so many damaged samples are borne, one more ends the job with the number and the name of the last")
def _(box):
    folder = box.folder_of_pictures("d", N)
    spoil(folder, BAD)
    daemon = box.daemon({"d": folder})
    rows = Table()
    for policy in ("skip", "substitute"):
        for max_errors, allowed in ((0, None), (len(BAD), len(BAD)), (0.1, 6), (5, 5), (0.08, 5), (1, 1)):
            with rows.row(f"{policy} {max_errors}"):
                client = HandClient(daemon.socket)
                client.attach("d", on_error=policy, batch=15, max_errors=max_errors, pipeline="decode")
                [job] = daemon.objects("jobs")
                equal(job["errors_allowed"], allowed or 0, "allowed")
                if allowed is None or allowed >= len(BAD):
                    within(5, lambda: daemon.objects("jobs")[0]["ranks"][0]["n_ready"] == 4, "four batches are ready")
                    equal(daemon.objects("jobs")[0]["failure"], "", "no failure")
                else:
                    failure = within(5, lambda: daemon.objects("jobs")[0]["failure"], "the job fails")
                    contains(failure, f"{allowed + 1} damaged samples, max_errors allows {allowed}", ".png",
                             "dlctl errors d")
                client.close()
                within(5, lambda: daemon.objects("jobs") == [], "the job is gone")
    rows.done()


@case("ranks that bear different numbers are refused, and the same sample counts once for all of them")
def _(box):
    folder = box.folder_of_pictures("d", N)
    spoil(folder, BAD)
    daemon = box.daemon({"d": folder})
    clients = []
    for rank in range(2):
        client = HandClient(daemon.socket)
        client.attach("d", on_error="skip", batch=1, world=2, rank=rank, max_errors=len(BAD), pipeline="decode",
                      shuffle=False)
        clients.append(client)
    daemon.refused("d", "max_errors", "6", job="hand", world=2, rank=0, on_error="skip", pipeline="decode",
                   shuffle=False)
    within(5, lambda: daemon.objects("jobs")[0]["n_errors"] >= 1, "they meet some")
    for client in clients:
        client.close()


@case("dlctl read passes over batches of which nothing is left, and its text form says how many samples a batch lacks")
def _(box):
    folder = box.folder_of_files("d", 12)
    spoil(folder, (2, 4, 5, 6, 7))
    daemon = box.daemon({"d": folder})
    lines = daemon.read("d", on_error="skip", batch=4, shuffle=False, epochs=2)
    left = [(0, 0), (0, 1), (0, 3), (2, 8), (2, 9), (2, 10), (2, 11)]
    equal([(line["step"], line["index"]) for line in lines], 2 * left, "step, index")
    text = daemon.dlctl("read", "d", "--on-error", "skip", "--batch", 4, "--no-shuffle").stdout.splitlines()
    equal(len(text), 8, "lines of the text form")
    equal(text[3], "epoch 0 step 0 without 1 damaged sample", "the fourth one")


@case("dlctl read --max-errors: so many are passed over, one more ends it with exit 1, the number and the name")
def _(box):
    folder = box.folder_of_files("d", 40)
    names = spoil(folder, (3, 20, 30))
    daemon = box.daemon({"d": folder})
    for policy in ("skip", "substitute"):
        for enough in (3, 0.075, 0):
            lines = daemon.read("d", on_error=policy, max_errors=enough, batch=8, epochs=3)
            equal(len(lines), 3 * (37 if policy == "skip" else 40), f"samples with {enough}")
        reader = daemon.reader("d", on_error=policy, max_errors=2, batch=1, shuffle=False, slots=2)
        status, lines = reader.finish()
        equal((status, len(lines) < 40), (1, True), "ends early")
        contains(reader.errors(), "3 damaged samples, max_errors allows 2", names[2], "dlctl errors d lists them")
    for wrong in ("-1", "1.5", "nan", "inf"):
        daemon.refused("d", "max_errors", on_error="skip", max_errors=wrong)
    daemon.refused("d", "max_errors", max_errors=5)


main()
