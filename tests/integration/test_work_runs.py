#!/usr/bin/env python3
"""Runs: several tiny samples as one order, as the daemon deals them and takes them back, by hand. What dlclient's worker
processes make of them is in test_from_dataset.py."""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import HandClient, case, equal, field, fields_of, main, request, within

N, BATCH = 2000, 500  # as many batches as a ring has slots: each sample is planned once
QUICK_NS = 5000
ALL = set(range(N))


def attached(box, **terms):
    daemon = box.daemon({"n": {"path": "/", "format": "numbers", "count": str(N)}}, workers=2)
    rank = HandClient(daemon.socket)
    reply = rank.attach("n", batch=BATCH, pipeline="x=index: python(my, x=float32[4])", on_error="skip", **terms)
    return daemon, rank, fields_of(fields_of(reply)[10][0])[110][0].decode()


class Worker:
    """A worker process by hand. `waiting`: orders that it has and has not answered, each a list of (number, sample)."""

    def __init__(self, daemon, ticket, number=1, takes_runs=1, limit_ms=0):
        self.client = HandClient(daemon.socket)
        self.client.send(request("work", field(1, ticket) + field(2, number) + field(4, limit_ms) + field(5, takes_runs)))
        self.client.receive()
        self.waiting = []

    def more(self):
        for order in fields_of(fields_of(self.client.receive())[111][0])[1]:
            found = fields_of(order)
            others = found.get(7, [b""])[0]
            samples = [found.get(5, [0])[0], *struct.unpack(f"<{len(others) // 8}Q", others)]
            self.waiting.append([(found[1][0] + k, sample) for k, sample in enumerate(samples)])

    def next(self):
        if not self.waiting:
            self.more()
        return self.waiting.pop(0)

    def answer(self, number, n=1, failed=0):
        self.client.send(request("worked", field(1, number) + (field(2, failed) + field(3, "no") if failed else b"")
                                 + field(4, n * QUICK_NS)))

    def work_until(self, want):
        """Answers orders until one comes that is wanted. Returns it, and the samples of those before."""
        done = []
        while True:
            order = self.next()
            if want(order):
                return order, done
            self.answer(order[-1][0], len(order))
            done += [sample for _, sample in order]

    def work_on(self, missing):
        """Answers orders until all of these samples have come. An answer that was sent just before the end of a process
        may be lost with it, so others may come again. Returns how many the longest order had."""
        most = 0
        while missing:
            order = self.next()
            self.answer(order[-1][0], len(order))
            missing = missing - {sample for _, sample in order}
            most = max(most, len(order))
        return most

    def begin(self, number):
        os.pwrite(self.client.descriptors[1], struct.pack("<Q", number), 0)


def is_run(order):
    return len(order) > 4


def has(sample):
    return lambda order: sample in [other for _, other in order]


@case("where functions are quick orders are runs, each sample is in one of them, and their numbers follow one another")
def _(box):
    daemon, rank, ticket = attached(box)
    worker = Worker(daemon, ticket)
    order, done = worker.work_until(is_run)
    equal([number for number, _ in order], list(range(order[0][0], order[0][0] + len(order))), "numbers")
    worker.answer(order[-1][0], len(order))
    done += [sample for _, sample in order]
    equal(len(set(done)), len(done), "samples, each once")
    equal(is_run(range(worker.work_on(ALL - set(done)))), True, "more runs")
    equal(daemon.objects("errors", "n"), [], "damaged samples")
    rank.close()


@case("if a process ends in a run, the sample that it had begun last counts an end, and the others are made again")
def _(box):
    daemon, rank, ticket = attached(box)
    worker = Worker(daemon, ticket)
    order, done = worker.work_until(is_run)
    blamed = order[3][1]
    worker.begin(order[3][0])
    worker.client.close()
    for number in range(2, 4):
        worker = Worker(daemon, ticket, number)
        found, more = worker.work_until(has(blamed))
        equal(len(found), 1, "samples of an order after an end in a run")
        done += more
        equal(daemon.objects("errors", "n"), [], f"damaged samples after {number - 1} ends")
        worker.begin(found[0][0])
        worker.client.close()
    within(20, lambda: daemon.objects("errors", "n"), "a damaged sample")
    equal([row["index"] for row in daemon.objects("errors", "n")], [blamed], "which one")
    Worker(daemon, ticket, 5).work_on(ALL - set(done) - {blamed})
    equal([row["index"] for row in daemon.objects("errors", "n")], [blamed], "no other one")
    rank.close()


@case("a run of which nothing was begun is dealt as it is, and an end before it blames no sample")
def _(box):
    daemon, rank, ticket = attached(box)
    worker = Worker(daemon, ticket)
    order, done = worker.work_until(is_run)
    worker.client.close()
    worker = Worker(daemon, ticket, 2)
    found, more = worker.work_until(has(order[0][1]))
    equal([sample for _, sample in found], [sample for _, sample in order], "the run, once more")
    worker.answer(found[-1][0], len(found))
    worker.work_on(ALL - set(done + more) - {sample for _, sample in found})
    equal(daemon.objects("errors", "n"), [], "damaged samples")
    rank.close()


@case("a sample that fails in a run is damaged, and those after it are given back, as are those after any answer")
def _(box):
    for failed in (1, 0):
        daemon, rank, ticket = attached(box)
        worker = Worker(daemon, ticket)
        order, done = worker.work_until(is_run)
        worker.answer(order[2][0], 3, failed)
        rest = [sample for _, sample in order[3:]]
        found, more = worker.work_until(has(rest[0]))
        equal(len(found), 1, "what was given back comes one by one")
        worker.answer(found[0][0])
        worker.work_on(ALL - set(done + more) - {sample for _, sample in order[:4]})
        equal([row["index"] for row in daemon.objects("errors", "n")], [order[2][1]] * failed, "damaged samples")
        rank.close()
        daemon.stop()


@case("a process that does not say that it takes runs gets none")
def _(box):
    daemon, rank, ticket = attached(box)
    worker = Worker(daemon, ticket)
    order, done = worker.work_until(is_run)
    worker.client.close()
    equal(Worker(daemon, ticket, 2, takes_runs=0).work_on(ALL - set(done)), 1, "samples of its longest order")
    rank.close()


@case("an answer to a number that is in no run of the process ends its connection")
def _(box):
    daemon, rank, ticket = attached(box)
    worker = Worker(daemon, ticket)
    order, _ = worker.work_until(is_run)
    worker.answer(order[0][0] - 1)
    equal(worker.client.closed(), True, "the connection")
    rank.close()


@case("a process that does not come back from a run ends the job, which names the sample that it had begun")
def _(box):
    daemon, rank, ticket = attached(box)
    worker = Worker(daemon, ticket, limit_ms=2000)
    order, _ = worker.work_until(is_run)
    worker.begin(order[3][0])
    within(20, lambda: "or one after it for" in json.dumps(daemon.objects("jobs")), "the reason in dlctl jobs")
    within(20, lambda: f"did not come back from sample {order[3][1]} within" in json.dumps(daemon.objects("jobs")),
           "the end of the job")
    rank.close()


main()
