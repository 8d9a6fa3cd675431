#!/usr/bin/env python3
"""memory_limit is a promise, both ways: the daemon has no more than it says, and whoever was admitted needs no more than
he was given, whatever others ask for meanwhile."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

from harness import DLCTL, case, contains, equal, main, within
from pyclient import trainer
from resident import Resident


@case("rings that a client keeps after it has left stay charged, and who comes next is refused instead of let in")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 64)}, memory_limit="64MiB")
    before = daemon.memory_used()
    with Resident(daemon, 64):
        [refusal, n_opened, n_held] = trainer(box, daemon, f"""
            kept = []
            def attach():
                loader = dlclient.Loader("d", batch_size=16, slots=4, job=f"j{{len(kept)}}", pipeline="center_crop(224)")
                batch = next(iter(loader))
                kept.append((batch["image"], int(batch["image"].sum())))
                loader.close()
            try:
                while len(kept) < 8:
                    attach()
                out("all were let in")
            except dlclient.Error as error:
                out(str(error))
            out(len(kept))
            assert all(int(image.sum()) == total for image, total in kept)
            status = os.popen({DLCTL!r} + " --socket " + os.environ["DATALOADERD_SOCKET"] + " --format json status")
            out([fact["value"] for fact in json.load(status)["obtained"] if fact["name"] == "held_by_left_clients"])
            kept.clear()
            gc.collect()
            attach()
        """)
    contains(refusal, "memory_limit")
    equal(0 < n_opened < 8, True, f"{n_opened} were let in")
    equal(int(n_held[0]) > n_opened * 4 * 16 * 224 * 224 * 3, True, f"{n_held} bytes are shown")
    within(5, lambda: daemon.memory_used() == before, "all of it is back when the client has ended")


main()
