#!/usr/bin/env python3
"""Twenty seconds of the soak (`make soak` is the long form of it), and that it sees what it is there to see."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, case, equal, few, main, patience


def soak(box, seconds, *arguments):
    """Runs it; returns its exit status and its output."""
    os.chmod(box.folder, 0o711)  # its own box is in here, and its other users must get there
    process = box.start([sys.executable, os.path.join(ROOT, "tests", "soak", "soak.py"), "--seconds", str(seconds),
                         *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    output, _ = process.communicate(timeout=patience(240))
    return process.returncode, output


@case(f"{few(20, 10)} seconds of everything at once: nothing is lost, twice or wrong, nothing grows")
def _(box):
    status, output = soak(box, few(20, 10))
    print("   " + output.splitlines()[0])
    equal(status, 0, f"exit status; {output[-6000:]}")
    samples = int(re.search(r"samples=(\d+)", output).group(1))
    equal(samples > few(1000, 300), True, f"samples that were compared: {samples}")


@case("a trainer that passes over a batch is found out", sanitized=False)
def _(box):
    status, output = soak(box, 20, "--lose-a-batch")
    equal(status, 1, f"exit status; {output[-3000:]}")
    equal("expected" in output, True, f"what was wrong is said: {output[-3000:]}")


main()
