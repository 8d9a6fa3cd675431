#!/usr/bin/env python3
"""dlctl check-steps: reads samples twice, by other ranks in other batches, and names what is not equal."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from failing_fs import FailingFs
from harness import DLCTL, case, contains, equal, identity_pixels, main, png, within, write

AGAIN = 1  # a reading has opened the file before
STEPS = "random_resized_crop(8) hflip(0.5) color_jitter(0.4, 0.4, 0.4, 0.1)"


def check(daemon, dataset, *options):
    return daemon.dlctl("check-steps", dataset, *options)


@case("each sample of a pipeline is equal, whatever its place, form and collation")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 41, width=40, height=32)}, workers=3)
    for pipeline in ("raw", STEPS, f"{STEPS} to(float16) layout(nchw)", "image: decode pad(max=40:50); label", STEPS + " views(2)",
                     f"image: {STEPS} views(3); label"):
        for options in ((), ("--batch", "1"), ("--same-batches",), ("--seed", "9", "--epoch", "3")):
            done = check(daemon, "p", "--pipeline", pipeline, *options)
            equal((done.returncode, done.stderr), (0, ""), f"{pipeline} {options}")
            contains(done.stdout, "41 samples read twice", "41 equal, 0 different")
    for samples in (1, 2, 17):
        done = check(daemon, "p", "--pipeline", STEPS, "--samples", samples, "--batch", 1, "--format", "json")
        equal(json.loads(done.stdout), {"n_samples": samples, "different": [], "n_equal": samples, "n_different": 0})


@case("samples that differ, and those that only one reading has, are named")
def _(box):
    source = box.folder_of_pictures("source", 12, n_classes=1)
    disk = FailingFs(box, source)
    daemon = box.daemon({"d": disk.path}, workers=2)
    daemon.read("d", pipeline="raw")  # whatever looks at the files has done so
    disk.hang("*/000003.png", ops="open", after=AGAIN)
    command = [DLCTL, "--socket", daemon.socket, "check-steps", "d", "--pipeline", "decode"]
    process = box.start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    within(60, lambda: disk.n_hanging() == 1, "the second reading wants it")
    write(os.path.join(source, "class000", "000003.png"), png(9, 7, identity_pixels(4, 9, 7)))
    disk.clear()
    output = process.communicate(timeout=60)[0]
    equal(process.returncode, 1, output)
    contains(output, "12 samples read twice: 11 equal, 1 different", "sample 3: image differs", "--same-batches")
    write(os.path.join(source, "class000", "000005.png"), b"no picture")
    done = check(daemon, "d", "--pipeline", "decode")
    equal((done.returncode, done.stdout), (0, "11 samples read twice: 11 equal, 0 different\n"), done.stderr)
    disk.hang("*/000003.png", ops="open", after=AGAIN)
    process = box.start(command, stdout=subprocess.PIPE, universal_newlines=True)
    within(60, lambda: disk.n_hanging() == 1, "the second reading wants it")
    write(os.path.join(source, "class000", "000003.png"), b"no picture either")
    disk.clear()
    contains(process.communicate(timeout=60)[0], "11 samples read twice: 10 equal, 1 different", "sample 3: damaged in the second reading only")


@case("mistakes are said before anything is read")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 3)})
    for options, code, words in ((("--pipeline", "random_crip(3)"), 1, ("column 1", "random_crop")), (("--samples", "0"), 1, ("samples: 0",)),
                                 (("--batch", "0"), 1, ("batch: 0",)), (("--batch", "x"), 2, ("batch",))):
        done = check(daemon, "p", *options)
        equal(done.returncode, code, done.stderr)
        contains(done.stderr, *words)
    done = check(daemon, "none")
    equal(done.returncode, 1, done.stderr)


if __name__ == "__main__":
    main()
