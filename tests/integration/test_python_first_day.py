#!/usr/bin/env python3
"""What a torch program gives, reads and does on its first day here: it is taken, or the sentence says what to write."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, main
from private import Home
from pyclient import trainer


# ---- parts that are paths -------------------------------------------------------------------------------------------

@case("mix() calls a part that is a path by its last word")
def _(box):
    home = Home(box)
    for name in ("cats", "dogs"):
        box.folder_of_files(name, 20)
    trainer(box, None, """
        cats, dogs = sys.argv[1] + "/cats", sys.argv[1] + "/dogs"
        loader = dlclient.Loader([cats, {"path": dogs, "split": "0:50%"}], 5, sampler="mix(cats=0.75, dogs=0.25, n=20)")
        got = numpy.concatenate([batch.indices for batch in loader])
        assert ((got < 20).sum(), (got >= 20).sum()) == (15, 5), got
        refused(dlclient.OptionError, lambda: dlclient.Loader([cats, dogs], sampler="mix(cat=1)"), "no part \\"cat\\"", "/cats")
        refused(dlclient.OptionError, lambda: dlclient.Loader([cats, {"path": cats, "split": "0:50%"}], sampler="mix(cats=1)"),
                "two parts end in \\"cats\\"")
    """, box.folder, **home.variables())


main()
