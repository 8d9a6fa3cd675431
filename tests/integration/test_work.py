#!/usr/bin/env python3
"""Worker processes as the daemon sees them, by hand: who may be one, and what the daemon makes of those that misbehave. What
the client does with them is in test_python_own.py."""
import contextlib
import json
import mmap
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import HandClient, Table, case, contains, equal, field, fields_of, main, request, varint, within
from pyclient import trainer

OTHER = 61002  # nobody's uid on any machine


@contextlib.contextmanager
def acting_as(uid):
    """Meanwhile connections of this process are the user's."""
    if uid == 0:
        yield
        return
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


def ticket_of(reply):
    attached = fields_of(fields_of(reply)[10][0])
    return attached[110][0].decode()


@case("a rank without a worker process waits and says so, and a stranger cannot be one")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 33, width=40, height=32)}, workers=2, socket_mode="0666")
    rank = HandClient(daemon.socket)
    ticket = ticket_of(rank.attach("p", batch=4, pipeline="center_crop(8) python(my)"))
    equal(len(ticket), 32, "characters of a ticket")
    within(20, lambda: "waiting for a worker process" in json.dumps(daemon.objects("jobs")), "the reason in dlctl jobs")

    def connect(ticket, uid=0):
        with acting_as(uid):
            client = HandClient(daemon.socket)
        client.send(request("work", field(1, ticket) + field(2, 1)))
        return client, fields_of(client.receive())

    stranger, reply = connect("0" * 32)
    contains(fields_of(reply[3][0])[2][0].decode(), "no rank of this user has the ticket")
    stranger.close()
    if os.getuid() == 0:
        os.chmod(box.folder, 0o755)
        stranger, reply = connect(ticket, OTHER)
        contains(fields_of(reply[3][0])[2][0].decode(), "no rank of this user has the ticket")
        equal(stranger.descriptors, [], "descriptors for a stranger")
        stranger.close()

    worker, reply = connect(ticket)
    equal(110 in reply and len(worker.descriptors), 2, "the rank's memory, and a page")
    orders = fields_of(fields_of(worker.receive())[111][0])[1]
    number = fields_of(orders[0])[1][0]
    worker.send(request("worked", field(1, number + 5)))
    equal(worker.closed(), True, "a process that answers what it was not given")
    worker, reply = connect(ticket)
    n_answered = 0
    while n_answered < 12:  # of the 16 that the ring has room for
        for order in fields_of(fields_of(worker.receive())[111][0])[1]:
            worker.send(request("worked", field(1, fields_of(order)[1][0])))
            n_answered += 1
    rank.close()
    equal(worker.closed(10), True, "its rank has left")
    daemon.wait_log("it answered an order that it was not given")
    rows = Table()
    for kind, body in (("worked", field(1, 1)), ("work_ended", field(1, 1) + field(2, "x"))):
        with rows.row(kind):
            client = HandClient(daemon.socket)
            client.send(request(kind, body))
            equal(client.closed(), True, f"{kind} of a client that is no worker process")
            client.close()
    rows.done()


@case("a function that gets whole batches has one order a batch, by libdlclient alone, and an older one is refused")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 33, width=40, height=32)}, workers=2)
    rank = HandClient(daemon.socket)
    ticket = ticket_of(rank.attach("p", batch=4, shuffle=False, pipeline="image, y=label: center_crop(8) "
                                   "python(my, y=float32[2], batch=true); label: python(one); image: raw "
                                   "python(read, dtype=int16, shape=3, batch=true)".replace("image: raw", "file=image: raw")))
    old = Worker(daemon, ticket, takes_batches=0)
    contains(fields_of(old.reply[3][0])[2][0].decode(), "gets whole batches", "libdlclient", "too old")
    old.end()
    lines = trainer(box, daemon, """
        import ctypes
        from dlclient import _library
        from dlclient._own.worker import open_work
        library, plain = _library.load(), ctypes.CDLL(os.environ["DATALOADERD_LIBRARY"])
        work = open_work(library, sys.argv[1], sys.argv[2], 1, False)
        order, n_whole, n_single = ctypes.c_void_p(), 0, 0
        while n_whole < 2:
            assert plain.dlc_work_next(work, 10000, ctypes.byref(order)) == 0
            told = _library.Order.from_address(order.value)
            steps = [told.steps[i] for i in range(told.n_steps)]
            if told.n_samples == 0:
                n_single += 1
                assert [(step.function, step.field, step.input.n_dims) for step in steps] == [(b"one", b"label", 0)]
                assert not told.samples and not told.lists
            else:
                samples = told.samples[:told.n_samples]
                assert told.n_samples == 4 and samples[0] == told.sample, samples
                assert samples[0] % 4 == 0 and samples == list(range(samples[0], samples[0] + 4)) and n_single >= 4, samples
                forms = [(step.function.decode(), step.parameter.decode(), step.n_fields, step.output.shape[:step.output.n_dims],
                          step.input.shape[:step.input.n_dims]) for step in steps]
                assert forms[:2] == [("my", "image", 2, [4, 8, 8, 3], [4, 8, 8, 3]), ("my", "y", 0, [4, 2], [4])], forms
                assert forms[2][:4] == ("read", "file", 1, [4, 3]), forms
                assert steps[0].input.data == steps[0].output.data and steps[1].input.data != steps[1].output.data
                assert not told.lists[0] and not told.lists[1]
                for i, sample in enumerate(samples):
                    one = told.lists[2][i]
                    assert ctypes.string_at(one.data, one.shape[0])[1:4] == b"PNG" and one.n_dims == 1
                n_whole += 1
            assert plain.dlc_work_done(work, None) == 0
        out(n_whole)
    """, daemon.socket, ticket)
    equal(lines, [2], "whole batches")
    rank.close()


class Worker:
    """A worker process of the rank that has this ticket."""

    def __init__(self, daemon, ticket, number=1, supervises=0, limit_ms=0, takes_batches=1):
        self.client = HandClient(daemon.socket)
        self.client.send(request("work", field(1, ticket) + field(2, number) + field(3, supervises) + field(4, limit_ms) +
                                 field(10, takes_batches)))
        self.reply = fields_of(self.client.receive())
        self.waiting = []  # orders that have come

    def first_whole(self):
        """Answers orders until the one for the whole first batch comes: its number, and those of its samples as they are in
        the slot."""
        working = fields_of(self.reply[110][0])
        while True:
            if not self.waiting:
                self.waiting = [fields_of(order) for order in fields_of(fields_of(self.client.receive())[111][0])[1]]
            order = self.waiting.pop(0)
            if 10 in order:
                n, slot = order[10][0], order[2][0] if 2 in order else 0
                data = os.pread(self.client.descriptors[0], 8 * n,
                                working[3][0] + slot * working[4][0] + working[10][0])
                samples = list(struct.unpack(f"<{n}q", data))
                equal(order[5][0] if 5 in order else 0, samples[0], "the first one")
                if samples[0] == 0:
                    return order[1][0], samples
            self.client.send(request("worked", field(1, order[1][0])))

    def orders(self):
        """[(number, sample)] of the next packet."""
        listed = fields_of(fields_of(self.client.receive())[111][0])[1]
        return [(fields_of(order)[1][0], fields_of(order)[5][0] if 5 in fields_of(order) else 0) for order in listed]

    def orders_within(self, seconds):
        """The samples of the next packet, if it comes."""
        self.client.socket.settimeout(seconds)
        try:
            return [sample for _, sample in self.orders()]
        except TimeoutError:
            return []

    def work_until(self, sample):
        """Answers orders until that of the sample comes; None: the first one."""
        while True:
            for order, found in self.orders():
                if sample in (None, found):
                    return order, found
                self.client.send(request("worked", field(1, order)))

    def begin(self, number):
        os.pwrite(self.client.descriptors[1], struct.pack("<Q", number), 0)

    def end(self):
        self.client.close()


def attached(box, on_error="fail"):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 33, width=40, height=32)}, workers=2)
    rank = HandClient(daemon.socket)
    return daemon, rank, ticket_of(rank.attach("p", batch=4, pipeline="center_crop(8) python(my)", on_error=on_error))


@case("an order that a process had not begun is given to the next one, however often")
def _(box):
    daemon, rank, ticket = attached(box)
    first = None
    for number in range(6):
        worker = Worker(daemon, ticket, number)
        order, sample = worker.orders()[0]
        first = sample if first is None else first
        equal(sample, first, "the sample that comes first")
        worker.end()
    equal(daemon.objects("errors", "p"), [], "damaged samples")
    rank.close()


@case("a sample over which three processes ended is damaged, with what the one that supervises says of the last")
def _(box):
    rows = Table()
    for what, mark, text in (("its own number", lambda order: order, "it was eaten"),
                             ("a number that makes no sense", lambda order: 2**64 - 1, "it was eaten"),
                             ("nobody supervises", lambda order: order, None)):
        with rows.row(what):
            daemon, rank, ticket = attached(box, "skip")
            foreman = Worker(daemon, ticket, 0, 1) if text is not None else None
            if foreman is not None:
                equal(fields_of(Worker(daemon, ticket, 0, 1).reply[3][0])[1][0], 98, "EADDRINUSE for a second one")
            samples = []
            for number in range(1, 4):
                worker = Worker(daemon, ticket, number)
                order, sample = worker.work_until(samples[0] if samples else None)
                samples.append(sample)
                worker.begin(mark(order))
                worker.end()
                if foreman is not None:
                    within(20, lambda: len(daemon.objects("jobs")) == 1, "the daemon's answer")
                    foreman.client.send(request("work_ended", field(1, number) + field(2, text)))
            within(20, lambda: daemon.objects("errors", "p"), "a damaged sample")
            contains(json.dumps(daemon.objects("errors", "p")), "python(my): 3 worker processes ended over it, the last: ",
                     text or "it ended")
            equal([row["index"] for row in daemon.objects("errors", "p")], samples[:1], "which one")
            rank.close()
            daemon.stop()
    rows.done()


@case("a sample that is not why its process ended is dealt again, however often")
def _(box):
    daemon, rank, ticket = attached(box, "skip")
    foreman = Worker(daemon, ticket, 0, 1)
    wanted = None
    for number in range(1, 9):
        worker = Worker(daemon, ticket, number)
        order, sample = worker.work_until(wanted)
        wanted = sample if wanted is None else wanted
        worker.begin(order)
        worker.end()
        within(20, lambda: len(daemon.objects("jobs")) == 1, "the daemon's answer")
        innocent = field(4, 1) if number < 6 else field(2, "it was eaten")  # three of these are its own
        foreman.client.send(request("work_ended", field(1, number) + innocent))
        if number < 8:
            equal(daemon.objects("errors", "p"), [], "damaged samples")
    within(20, lambda: daemon.objects("errors", "p"), "a damaged sample")
    equal([row["index"] for row in daemon.objects("errors", "p")], [wanted], "which one")
    rank.close()


@case("threads that end with their process before they begin with a sample count as one process")
def _(box):
    daemon, rank, ticket = attached(box, "skip")
    for number in range(29):
        worker = Worker(daemon, ticket, number)
        worker.orders()
        worker.end()
    threads = [Worker(daemon, ticket, 100 + number) for number in range(3)]
    for thread in threads[:2]:  # the third has not ended yet
        thread.orders()
        thread.end()
    time.sleep(0.2)
    equal(["30 worker processes" in json.dumps(job) for job in daemon.objects("jobs")], [False], "the job's end")
    threads[2].orders()
    threads[2].end()
    within(20, lambda: "30 worker processes" in json.dumps(daemon.objects("jobs")), "the job's reason")
    rank.close()


@case("a whole batch over which a process ends is made again, without the samples that were left out; three ends are the job's")
def _(box):
    folder = box.folder_of_pictures("p", 33, width=40, height=32)
    files = sorted(os.path.join(root, name) for root, _, names in os.walk(folder) for name in names)
    rows = Table()
    for what, pipeline in (("in place", "image: center_crop(8) python(my, batch=true); label"),
                           ("of any size", "image: raw python(my, dtype=int32, shape=5, batch=true); label"),
                           ("beside one for samples", "image: center_crop(8) python(my, shape=3, batch=true); label: python(one)"),
                           ("mixed", "image, label: center_crop(8) python(my, batch=true) mixup(alpha=1.0, num_classes=9)")):
        with rows.row(what):
            wanted = [0, 1, 2, 3, 4]
            if "raw" not in pipeline:
                with open(files[1], "r+b") as file:
                    file.truncate(40)
                wanted.remove(1)
            daemon = box.daemon({"p": folder}, workers=2)
            rank = HandClient(daemon.socket)
            ticket = ticket_of(rank.attach("p", batch=5, pipeline=pipeline, on_error="skip", shuffle=0))
            for number in range(1, 4):
                worker = Worker(daemon, ticket, number)
                order, samples = worker.first_whole()
                equal(samples, wanted, "its samples")
                if number == 2:  # it had not begun: this is not counted
                    worker.end()
                    worker = Worker(daemon, ticket, 9)
                    order, samples = worker.first_whole()
                    equal(samples, wanted, "its samples")
                worker.begin(order)
                worker.end()
            within(20, lambda: [row for row in daemon.objects("errors", "p") if row["index"] == 0], "a line of it")
            row, = [row for row in daemon.objects("errors", "p") if row["index"] == 0]
            contains(json.dumps(row), f"the batch of {len(wanted)} samples that begins with it (batch 0 of epoch 0): ",
                     "python(my): 3 worker processes ended over it, the last: it ended")
            worker = Worker(daemon, ticket)
            contains(daemon.log(), "the job ends")
            rank.close()
            daemon.stop()
    rows.done()


@case("steps after a function are applied when its answer has come, to pictures of all kinds")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 33, width=40, height=32)}, workers=2)
    rows = Table()
    for pipeline in ("center_crop(9:8) python(my) color_jitter(0.5, 0.5, 0.5, 0.1) equalize(1) gaussian_blur(3) resize(12:11) to(float16)",
                     "decode(mode=L) center_crop(9:8) python(my) random_rotation(30) random_crop(5) erasing(1) layout(nchw)",
                     "image: raw python(my, dtype=uint8, shape=7:5:3) vflip(1) to(float32) normalize(mean=0.5:0.5:0.5, std=0.5:0.5:0.5)", "center_crop(8) python(my) hflip(0)",
                     "image, label: center_crop(8) python(my) to(float32) mix(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=4)"):
        with rows.row(pipeline):
            rank = HandClient(daemon.socket)
            worker = Worker(daemon, ticket_of(rank.attach("p", batch=4, pipeline=pipeline)))
            n_answered = 0
            while n_answered < 12:
                for order, _ in worker.orders():
                    worker.client.send(request("worked", field(1, order)))
                    n_answered += 1
            equal(daemon.objects("errors", "p"), [], "damaged samples")
            rank.close()
            equal(worker.client.closed(10), True, "its rank has left")
    rows.done()


def packed(*numbers):
    """A repeated number, as sizes= of an answer is."""
    return field(5, b"".join(map(varint, numbers)))


@case("what a process says of the size of a result is believed within what is declared, and an answer says all sizes")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 33, width=40, height=32)}, workers=2)
    rows = Table()
    # What is right comes first: the workers still tell the damaged samples of a row when the next one has begun.
    for sizes, text in (((8,), None), ((0,), None),
                        ((9,), "python(my): field label: dimension 0 has 9 elements, and int32[..8:2] is declared"),
                        ((2**64 - 1,), "dimension 0 has -1 elements"), ((2**63,), "dimension 0 has -1 elements"),
                        ((2**32,), "has 4294967296 elements")):
        with rows.row(str(sizes)):
            rank = HandClient(daemon.socket)
            worker = Worker(daemon, ticket_of(rank.attach("p", batch=4, pipeline="label: python(my, dtype=int32, shape=..8:2)",
                                                          on_error="skip")))
            before = daemon.log()
            for _ in range(2):
                for number, _ in worker.orders():
                    worker.client.send(request("worked", field(1, number) + packed(*sizes)))
            if text:
                within(20, lambda: daemon.log().count(text) > before.count(text), "the reason in the log")
            rank.close()
            equal(worker.client.closed(10), True, "its rank has left")
            equal(daemon.log().count("it is left out") > before.count("it is left out"), text is not None, "is a sample damaged")
    rows.done()
    for sizes in ((), (1, 2), (1,) * 900):
        with rows.row(f"{len(sizes)} sizes"):
            rank = HandClient(daemon.socket)
            worker = Worker(daemon, ticket_of(rank.attach("p", batch=4, pipeline="label: python(my, dtype=int32, shape=..8:2)")))
            number, _ = worker.orders()[0]
            worker.client.send(request("worked", field(1, number) + packed(*sizes)))
            equal(worker.client.closed(10), True, "an answer without the sizes that it must have")
            rank.close()
    rows.done()
    with rows.row("sizes of what does not vary"):
        rank = HandClient(daemon.socket)
        worker = Worker(daemon, ticket_of(rank.attach("p", batch=4, pipeline="center_crop(8) python(my)")))
        number, _ = worker.orders()[0]
        worker.client.send(request("worked", field(1, number) + packed(1)))
        equal(worker.client.closed(10), True, "an answer with a size")
        rank.close()
    with rows.row("bytes that are no text"):
        rank = HandClient(daemon.socket)
        worker = Worker(daemon, ticket_of(rank.attach("p", batch=1, pipeline="label: python(my, dtype=text, shape=..8)",
                                                      on_error="skip")))
        with mmap.mmap(worker.client.descriptors[0], 0) as memory:
            begin, end = (fields_of(worker.reply[110][0])[k][0] for k in (3, 2))
            memory[begin:end] = b"\xff" * (end - begin)
        for number, _ in worker.orders():
            worker.client.send(request("worked", field(1, number) + packed(3)))
        within(10, lambda: "python(my): field label: byte 0 is not UTF-8" in daemon.log(), "the reason in the log")
        rank.close()
    rows.done()


@case("a program in C says the size of what it delivers; if it says nothing, it is the largest")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 33, width=40, height=32)}, workers=2)
    rank = HandClient(daemon.socket)
    ticket = ticket_of(rank.attach("p", batch=4, shuffle=False,
                                   pipeline="image, label: center_crop(8) python(my, label=int32[..8:2])"))
    lines = trainer(box, daemon, """
        import ctypes, errno
        from dlclient import _library
        from dlclient._own.worker import open_work
        library = _library.load()
        plain = ctypes.CDLL(library.path)
        plain.dlc_work_next.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
        plain.dlc_work_done.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        work = open_work(library, os.environ["DATALOADERD_SOCKET"], sys.argv[1], 1, False)
        def shape(*numbers):
            return (ctypes.c_int64 * len(numbers))(*numbers)
        assert library.work_deliver(work, 1, shape(1, 2)) == -errno.EINVAL, "no sample yet"
        taken = []
        for i in range(3):
            order = ctypes.c_void_p()
            assert plain.dlc_work_next(work, 5000, ctypes.byref(order)) == 0
            order = _library.Order.from_address(order.value)
            output = order.steps[1].output
            assert output.shape[:2] == [8, 2] and output.n_dims == 2 and order.steps[0].n_fields == 2
            varies = [[library.work_varies(work, step, dim) for dim in range(3)] for step in range(3)]
            assert varies == [[False] * 3, [True, False, False], [False] * 3], varies
            for wrong, text in ((shape(9, 2), "field label: dimension 0 has 9 elements; 0 to 8 are allowed"),
                                (shape(-1, 2), "dimension 0 has -1 elements"), (shape(3, 1), "dimension 1 has 1 elements; 2 are"),
                                (None, "shape must not be NULL")):
                assert library.work_deliver(work, 1, wrong) == -errno.EINVAL
                assert text in library.error_text(), library.error_text()
            assert library.work_deliver(work, 2, shape(1, 2)) == -errno.EINVAL
            assert library.work_deliver(work, 0, shape(8, 8, 3)) == 0, "of what does not vary, its own shape"
            ctypes.memset(output.data, 7, 64)
            if i != 1:
                assert library.work_deliver(work, 1, shape(i, 2)) == 0
            assert plain.dlc_work_done(work, None) == 0
        library.work_close(work)
        out("done")
    """, ticket)
    equal(lines, ["done"], "the program's lines")
    equal(daemon.objects("errors", "p"), [], "damaged samples")
    rank.close()


@case("a process whose child has its socket has ended when the one that supervises says so")
def _(box):
    daemon, rank, ticket = attached(box, "skip")
    foreman = Worker(daemon, ticket, 0, 1)
    sample = None
    for number in range(1, 4):
        worker = Worker(daemon, ticket, number)
        order, sample = worker.work_until(sample)
        worker.begin(order)
        foreman.client.send(request("work_ended", field(1, number) + field(2, "it was eaten")))
        equal(worker.client.closed(), True, "its connection")
    within(20, lambda: daemon.objects("errors", "p"), "a damaged sample")
    contains(json.dumps(daemon.objects("errors", "p")), "3 worker processes ended over it, the last: it was eaten")
    rank.close()


@case("if the process that supervises says nothing, the client is told, and after a while the sample is dealt again")
def _(box):
    daemon, rank, ticket = attached(box, "skip")
    foreman = Worker(daemon, ticket, 0, 1)
    busy, worker = Worker(daemon, ticket, 9), Worker(daemon, ticket, 1)
    busy.orders()  # else no process at all would be what is waited for
    order, sample = worker.work_until(None)
    worker.begin(order)
    worker.end()
    within(20, lambda: "it has not been said how" in json.dumps(daemon.objects("jobs")), "the reason in dlctl jobs")
    worker = Worker(daemon, ticket, 2)
    equal(worker.work_until(sample)[1], sample, "the sample, once more")
    foreman.client.send(request("work_ended", field(1, 1) + field(2, "too late")))
    rank.close()


@case("a process whose connection the daemon closed may still be at work: its samples wait for its end")
def _(box):
    daemon, rank, ticket = attached(box, "skip")
    foreman = Worker(daemon, ticket, 0, 1)
    sample = None
    for number in range(1, 4):
        worker = Worker(daemon, ticket, number)
        order, sample = worker.work_until(sample)
        worker.begin(order)
        worker.client.socket.send(b"\xff" * 9)
        equal(worker.client.closed(), True, "its connection")
        other = Worker(daemon, ticket, 100 + number)
        equal(sample in other.orders_within(0.5), False, "while it may live, another process gets its sample")
        other.end()
        foreman.client.send(request("work_ended", field(1, number) + field(2, "exit status 74")))
    within(20, lambda: daemon.objects("errors", "p"), "a damaged sample")
    contains(json.dumps(daemon.objects("errors", "p")), "python(my): 3 worker processes ended over it, the last: the daemon "
             "closed its connection: its packet is not a request")
    rank.close()


@case("processes that all end before they begin with a sample end the job, and no sample is damaged")
def _(box):
    daemon, rank, ticket = attached(box, "skip")
    for number in range(30):
        worker = Worker(daemon, ticket, number)
        worker.orders()
        worker.end()
    within(20, lambda: "30 worker processes, one after the other, ended before they began" in
           json.dumps(daemon.objects("jobs")), "the job's reason")
    equal(daemon.objects("errors", "p"), [], "damaged samples")
    rank.close()


@case("a process that nobody supervises ends the job if it does not come back from a sample")
def _(box):
    daemon, rank, ticket = attached(box, "skip")
    worker = Worker(daemon, ticket, 1, limit_ms=2000)
    worker.orders()
    within(20, lambda: "it may for 2 s" in json.dumps(daemon.objects("jobs")), "the reason in dlctl jobs")
    within(20, lambda: "did not come back from sample" in json.dumps(daemon.objects("jobs")), "the end of the job")
    rank.close()
    rank = HandClient(daemon.socket)
    ticket = ticket_of(rank.attach("p", batch=4, pipeline="center_crop(8) python(my)"))
    foreman, worker = Worker(daemon, ticket, 0, 1), Worker(daemon, ticket, 1, limit_ms=100)
    order, _ = worker.work_until(None)
    time.sleep(1)
    worker.client.send(request("worked", field(1, order)))
    worker.orders()
    equal("did not come back" in json.dumps(daemon.objects("jobs")), False, "one that is supervised")
    rank.close()


@case("however many processes do not read, the daemon finds one that does")
def _(box):
    daemon, rank, ticket = attached(box)
    holding = []
    while len(holding) < 16:  # one each, all that the ring has room for
        holding.append(Worker(daemon, ticket))
        holding[-1].orders()
    deaf = [Worker(daemon, ticket) for _ in range(600)]  # none is left for them
    reading = Worker(daemon, ticket)
    for worker in deaf:
        worker.client.socket.shutdown(socket.SHUT_RD)
    holding[0].end()
    equal(len(reading.orders()), 1, "orders")
    equal(daemon.objects("errors", "p"), [], "damaged samples")
    rank.close()


main()
