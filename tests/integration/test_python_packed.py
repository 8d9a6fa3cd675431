#!/usr/bin/env python3
"""A run that began on a folder goes on with the same folder packed, and with no other."""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, equal, expected_order, main, samples_of, write
from packing import pack, packed
from pyclient import trainer

STATE = """
    name, path = sys.argv[1], sys.argv[2]
    state = json.load(open(path)) if os.path.exists(path) else None
    with dlclient.Loader(name, batch_size=4, pipeline="raw", seed=11, state=state) as loader:
        seen = []
        for batch in loader:
            seen += batch.indices.tolist()
            if state is None and len(seen) == 20:
                break
        out(seen)
        out(loader.dataset.digest)
        json.dump(loader.state_dict(), open(path, "w"))
"""


OTHER_CONTENT = """
    state = json.load(open(sys.argv[2]))
    refused(dlclient.StateError, lambda: dlclient.Loader(sys.argv[1], batch_size=4, pipeline="raw", seed=11, state=state),
            "digest", state["digest"][:12])
"""


@case("the resume token of the folder is taken by the packed dataset of the same name, and only if it is the same content")
def _(box):
    folder = box.folder_of_files("plain", 50, size=3000)
    pack(folder, box.path("p"))
    daemon = box.daemon({"d": folder})
    first, digest = trainer(box, daemon, STATE, "d", box.path("state"))
    shutil.copy(box.path("state"), box.path("kept"))
    daemon.stop()
    daemon.datasets = {"d": packed(box.path("p"))}
    daemon.write_config()
    daemon.start()
    rest, digest_packed = trainer(box, daemon, STATE, "d", box.path("state"))
    equal(digest_packed, digest, "digest")
    equal(first + rest, expected_order(50, seed=11), "both parts")
    daemon.stop()
    write(samples_of(folder)[3][0], b"another length")
    shutil.rmtree(box.path("p"))
    pack(folder, box.path("p"))
    daemon.start()
    trainer(box, daemon, OTHER_CONTENT, "d", box.path("kept"))


main()
