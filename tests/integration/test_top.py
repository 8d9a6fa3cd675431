#!/usr/bin/env python3
"""dlctl top: what it says of a real daemon, once and live in a terminal."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import HandClient, case, contains, equal, main


def attached(box, daemon, name, ranks=2, **terms):
    clients = []
    for rank in range(ranks):
        client = HandClient(daemon.socket)
        box.cleanups.append(client.close)
        client.attach(name, world=ranks, rank=rank, batch=4, **terms)
        clients.append(client)
    return clients


@case("--once shows node, jobs and ranks as text, and their rates as JSON")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 60), "gone": box.path("nothing")})
    attached(box, daemon, "d", job="train")
    attached(box, daemon, "d", job="evaluate", ranks=1)
    done = daemon.dlctl("top", "--once", "--ranks", "--delay", "0.2")
    equal((done.returncode, done.stderr), (0, ""), "exit status and complaints")
    contains(done.stdout, "2 jobs, 3 ranks", "Workers", "Memory", "Reads", "gone: failed: ", "evaluate", "├─ rank 0", "└─ rank 1")
    equal("\x1b" in done.stdout, False, "escapes where there is no terminal")
    document, = daemon.objects("top", "--once", "--delay", "0.2", "--sort", "ranks")
    equal([(job["name"], [rank["rank"] for rank in job["ranks"]], job["n_slots"] > 0) for job in document["jobs"]],
          [("train", [0, 1], True), ("evaluate", [0], True)], "jobs")
    equal(document["jobs"][0]["samples_per_second"] >= 0, True, "a rate")
    equal({one["name"]: one["state"] for one in document["datasets"]}, {"d": "ready", "gone": "failed"}, "datasets")
    document, = daemon.objects("top", "--once", "--delay", "0.2", "--filter", "EVAL")
    equal([job["name"] for job in document["jobs"]], ["evaluate"], "the jobs that are wanted")


@case("what is not allowed is refused with what is")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 4)})
    for arguments, words in [(("--delay", "0"), "from 0.1 to 3600 seconds"), (("--delay", "nan"), "from 0.1 to 3600"),
                             (("--sort", "waits"), "did you mean \"wait\"?"), (("x",), "unexpected argument \"x\"")]:
        done = daemon.dlctl("top", "--once", *arguments)
        equal((done.returncode, done.stdout), (2, ""), f"top {arguments}")
        contains(done.stderr, words)
    daemon.stop()
    done = daemon.dlctl("top", "--once")
    equal((done.returncode, done.stdout), (3, ""), "without a daemon")


main()
