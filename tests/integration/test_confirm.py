#!/usr/bin/env python3
"""dlctl diagnose --confirm: batches are served again, and nothing else of the run changes."""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import DLCTL, case, contains, equal, expected_order, main, patience, photos, within
from prometheus import Metrics
from pyclient import Trainer
from web import Web


def own(lines):
    """What the epochs consist of."""
    return [line for line in lines if not line.get("replay")]


def replays(lines):
    return [line for line in lines if line.get("replay")]


def begun(daemon, dataset, world=1, **terms):
    """Ranks that go on for the whole test, and have had some batches."""
    ranks = [daemon.reader(dataset, job="run", world=world, rank=rank, epochs=100000, **terms) for rank in range(world)]
    for rank in ranks:
        rank.wait_lines(3 * terms["batch"], seconds=60)
    return ranks


def ended(ranks):
    """Interrupts them; returns their lines."""
    for rank in ranks:
        rank.process.send_signal(signal.SIGINT)
    return [rank.finish()[1] for rank in ranks]


def check_run(lines, n, batch, **terms):
    """The run is as if nothing had been served again: a beginning of its epochs, in their order. What was served again
    stands at the place of the batch that came next, and is what an earlier batch was."""
    mine = own(lines)
    expected = []
    for epoch in range(mine[-1]["epoch"] + 1):
        order = expected_order(n, epoch=epoch, batch=batch, **terms)
        expected += [(epoch, place // batch, index) for place, index in enumerate(order)]
    equal([(line["epoch"], line["step"], line["index"]) for line in mine], expected[:len(mine)], "epoch, step, index")
    known, places = {}, set()
    for at, line in enumerate(lines):
        if not line.get("replay"):
            known.setdefault(line["index"], []).append(line["fields"])
            continue
        places.add((line["epoch"], line["step"]))
        assert line["fields"] in known.get(line["index"], ()), f"line {at} was not served before: {line}"
    equal(len(places), 1 if replays(lines) else 0, "places at which batches were served again")


def confirm(daemon, *arguments, status=0):
    said = daemon.dlctl("diagnose", "run", "--seconds", "1", "--confirm", *arguments, seconds=120)
    equal(said.returncode, status, said.stderr)
    return said


@case("a job that waits for its data is served batches again, and goes on where it was: every rank gets as many")
def _(box):
    daemon = box.daemon({"p": photos(64, 2)}, workers=1)
    ranks = begun(daemon, "p", world=2, batch=8, delay_ms=5, pipeline="random_resized_crop(64) color_jitter(0.4,0.4,0.4)")
    found = daemon.objects("diagnose", "run", "--seconds", "1", "--confirm")
    equal(len(found), 1, "jobs")
    equal(found[0]["input_bound"], "highly", str(found))
    assert found[0]["again_wait_share"] <= 1 and found[0]["n_batches_again"] >= 20, found
    assert found[0]["again_samples_per_second"] > found[0]["samples_per_second"], found
    contains(found[0]["confirmation"], "confirmed", "samples/s")
    within(60, lambda: all(rank.lines[-1].get("replay") is None for rank in ranks), "the run goes on")
    lines = ended(ranks)
    counts = [len(replays(rank)) for rank in lines]
    assert counts[0] == counts[1] >= 100 * 8, counts
    for rank in range(2):
        check_run(lines[rank], 64, 8, world=2, rank=rank)


@case("samples of any length and layout are served again as they were")
def _(box):
    daemon = box.daemon({"p": photos(40, 2), "t": listing(box)})
    for dataset, n, terms in (("p", 40, {"pipeline": "raw"}), ("p", 40, {"pipeline": "decode", "batch": 1}),
                              ("t", 50, {"pipeline": "tokens: pad(value=7); text: text"}),
                              ("t", 50, {"pipeline": "tokens: ragged; text"})):
        terms = {"batch": 4, "delay_ms": 3, **terms}
        ranks = begun(daemon, dataset, **terms)
        confirm(daemon)
        lines, = ended(ranks)
        assert len(replays(lines)) >= 100 * terms["batch"], terms
        check_run(lines, n, terms["batch"])


def listing(box):
    with open(box.path("t.jsonl"), "w", encoding="utf-8") as file:
        for i in range(50):
            file.write(json.dumps({"tokens": list(range(i % 7, 2 * i + 1)), "text": f"line {i} " + "\u00e4" * (i % 17)}) + "\n")
    return {"path": box.path("t.jsonl"), "format": "jsonl"}


@case("substitutes and skipped samples are told again, too")
def _(box):
    folder = box.folder_of_pictures("p", 40, width=64, height=48)
    with open(os.path.join(folder, sorted(os.listdir(folder))[0], sorted(os.listdir(os.path.join(
            folder, sorted(os.listdir(folder))[0])))[0]), "wb") as file:
        file.write(b"no picture")
    daemon = box.daemon({"p": folder})
    for on_error in ("substitute", "skip"):
        ranks = begun(daemon, "p", batch=40, delay_ms=5, pipeline="resize(16:16)", on_error=on_error)
        confirm(daemon)
        lines, = ended(ranks)
        assert len(replays(lines)) >= 100 * 39, on_error
        told = [line for line in replays(lines) if "substitute" in line]
        equal(len(told) > 0, on_error == "substitute", "substitutes that were told again")
        assert all(line["index"] != line["substitute"] and line["error"] for line in told), told[:1]


@case("an interrupt ends it at the same batch for all ranks; so does a rank that leaves")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 60, width=64, height=48)})
    for leaves in (False, True):
        ranks = begun(daemon, "p", world=3, batch=2, delay_ms=100, pipeline="resize(32)")
        said = open(box.path("said"), "w+b")
        process = box.start([DLCTL, "--socket", daemon.socket, "diagnose", "run", "--seconds", "1", "--confirm"],
                            stdout=said, stderr=said)
        within(60, lambda: all(replays(rank.lines) for rank in ranks), "all ranks are served again")
        if leaves:
            ranks[2].process.kill()
        else:
            process.send_signal(signal.SIGINT)
        status = process.wait(90)
        said.seek(0)
        text = said.read().decode()
        equal(status in ((0, 1) if leaves else (130,)), True, f"{status}: {text}")
        there = ranks[:2] if leaves else ranks
        n_own = [len(own(rank.lines)) for rank in there]
        within(60, lambda: all(len(own(rank.lines)) > n + 4 for rank, n in zip(there, n_own)), "the run goes on")
        lines = ended(there)
        equal(len({len(replays(rank)) for rank in lines}), 1, "different numbers of batches that were served again")
        assert 0 < len(replays(lines[0])) < 100 * 2, len(replays(lines[0]))
        for number, rank in enumerate(lines):
            check_run(rank, 60, 2, world=3, rank=number)
        within(60, lambda: not daemon.objects("jobs"), "the job has ended")


@case("ranks that do not wait for each other and have drifted apart: that nothing can be said, and the run goes on")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 60, width=64, height=48)})
    ranks = [daemon.reader("p", job="run", world=2, rank=rank, epochs=100000, batch=2, delay_ms=delay_ms, pipeline="resize(32)")
             for rank, delay_ms in ((0, 5), (1, 40))]
    within(60, lambda: len(ranks[0].lines) > len(ranks[1].lines) + 200, "the first is far ahead of the second")
    said = confirm(daemon, status=1)
    contains(said.stderr, "cannot be confirmed", "drifted apart")
    for number, lines in enumerate(ended(ranks)):
        check_run(lines, 60, 2, world=2, rank=number)


@case("while batches are served again, all that show the job say so, and their samples are counted apart")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 60, width=64, height=48)})
    rank, = begun(daemon, "p", batch=2, delay_ms=100, pipeline="resize(32)")
    web = Web(box, daemon.socket)
    with open(box.path("said"), "wb") as said:
        process = box.start([DLCTL, "--socket", daemon.socket, "diagnose", "run", "--seconds", "1", "--confirm"], stdout=said, stderr=said)

    def counts():
        metrics = Metrics(daemon.dlctl("metrics").stdout)
        return [metrics.one(f"dataloaderd_{name}_total", 'job="run"', 'rank="0"') for name in ("samples", "replayed_samples")]

    equal(counts()[1], 0, "samples that were served again before")
    within(60, lambda: "were served again" in daemon.objects("jobs")[0].get("confirming", ""), "batches are served again")
    before = counts()
    contains(daemon.dlctl("jobs").stdout, "confirming", "batches were served again")
    contains(daemon.dlctl("top", "--once", "--delay", "0.1").stdout, "confirming: ", "batches were served again")
    document, = daemon.objects("top", "--once", "--delay", "0.1")
    contains(document["jobs"][0]["confirming"], "of 100 batches were served again")
    web.until(lambda it: "were served again" in it["jobs"][0].get("confirming", ""), "the page's document says so")
    later = counts()
    assert later[1] > before[1] > 0, (before, later)
    equal(later[0], before[0], "the run's own samples meanwhile")
    equal(process.wait(patience(60)), 0, "exit status")
    within(20, lambda: "confirming" not in daemon.objects("jobs")[0], "the job trains on")
    within(20, lambda: counts()[0] > later[0], "its own samples are counted on")
    lines, = ended([rank])
    equal(len(replays(lines)), 2 * 100, "samples that were served again")
    check_run(lines, 60, 2)


@case("what cannot be confirmed is refused with the reason, and the verdict is given all the same")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 60, width=64, height=48)})
    one = daemon.reader("p", job="run", world=2, rank=0, epochs=100000, batch=2, delay_ms=20, pipeline="resize(32)")
    one.wait_lines(6, seconds=60)
    said = confirm(daemon, status=1)
    contains(said.stderr, "1 rank on this node, and 2 in all")
    contains(said.stdout, "verdict", "advice")
    other = daemon.reader("p", job="other", epochs=100000, batch=2, delay_ms=20, pipeline="resize(32)")
    other.wait_lines(6, seconds=60)
    said = daemon.dlctl("diagnose", "--confirm")
    equal(said.returncode, 2, said.stderr)
    contains(said.stderr, "--confirm", "2 jobs")
    equal(len(replays(one.lines) + replays(other.lines)), 0, "served again")


@case("a run at its end is left as it is")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 24, width=64, height=48)})
    rank = daemon.reader("p", job="run", epochs=4, batch=2, delay_ms=150, pipeline="resize(32)")
    rank.wait_lines(64, seconds=60)
    said = confirm(daemon, status=1)
    if "no job" not in said.stderr and "ended meanwhile" not in said.stderr:  # a slow dlctl comes too late
        contains(said.stderr, "cannot be confirmed", "at its end")
    check_run(rank.good(120), 24, 2)
    equal(len(replays(rank.lines)), 0, "served again")


@case("trainers in Python: the place in the epoch stays, changes in place do not come again, a mark says what it is")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 40, width=64, height=48)})
    trainer = Trainer(box, daemon, """
        loader = dlclient.Loader("p", batch_size=4, job="run", epochs=100000, pipeline="resize(32:32)", shuffle=False)
        seen, places, n_again, n_after = {}, set(), 0, 0
        for number, batch in enumerate(loader):
            key, total = tuple(batch.indices.tolist()), int(batch["image"].astype("int64").sum())
            assert seen.setdefault(key, total) == total, "what was changed in place came again"
            batch["image"][...] = 0
            if batch.is_replay:
                n_again += 1
                state = loader.state_dict()
                places.add((batch.epoch, batch.step, batch.position, state["epoch"], state["position"]))
            elif n_again:
                n_after += 1
            if number == 10:
                out("ready")
            if n_after == 15:
                break
            time.sleep(0.005)
        out({"n_again": n_again, "places": sorted(places), "next": [batch.epoch, batch.step]})
    """)
    trainer.wait_lines(1, 60)
    confirm(daemon)
    told = trainer.finish(60)[1]
    assert told["n_again"] >= 100, told
    equal(len(told["places"]), 1, "places")
    (epoch, step, position, state_epoch, state_position), = told["places"]
    equal((state_epoch, state_position, position), (epoch, 4 * step, 4 * step), "the place that a state says")
    equal(told["next"], [epoch + (step + 14) // 10, (step + 14) % 10], "the batch after fifteen of the epochs' own")


main()
