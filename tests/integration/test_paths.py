#!/usr/bin/env python3
"""What a dataset's path may be: a folder, or a file in a folder where other files come and go."""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, contains, equal, identity_bytes, main, within
from tars import archive, check_raw, samples_in, web


def texts(path, numbers):
    """An archive of samples that know their numbers."""
    return archive(path, [(f"{number:04d}.txt", identity_bytes(number, 300 + number)) for number in numbers])


def reload(daemon, datasets):
    n_reloads = daemon.log().count("configuration read again")
    daemon.datasets = datasets
    daemon.write_config()
    daemon.signal(signal.SIGHUP)
    within(10, lambda: daemon.log().count("configuration read again") > n_reloads, "the configuration is taken up")


@case("one archive alone, whatever else comes and goes in its folder; the index of it is found again")
def _(box):
    path = texts(box.path("d", "b.tar"), range(40))
    texts(box.path("d", "a.tar"), range(40, 60))
    os.symlink("b.tar", box.path("d", "link"))
    daemon = box.daemon({"d": web(path), "link": web(box.path("d", "link"))})
    samples = samples_in([path])
    for name in ("d", "link"):
        check_raw(daemon, name, samples, ["txt"], seed=1)
        for rank in range(3):
            check_raw(daemon, name, samples, ["txt"], world=3, rank=rank)
    os.unlink(box.path("d", "a.tar"))
    texts(box.path("d", "c.tar"), range(3))
    check_raw(daemon, "d", samples, ["txt"])
    daemon.stop()
    daemon.start()
    check_raw(daemon, "d", samples, ["txt"])
    equal(daemon.log().count("d: indexed"), 1, "times that it was indexed")
    contains(daemon.log(), "d: opened in")


@case("an archive that changes, is another one, or is named by another path is indexed again")
def _(box):
    one, other = texts(box.path("d", "one.tar"), range(30)), texts(box.path("d", "other.tar"), range(50, 80))
    same_time = os.stat(one)
    os.utime(other, ns=(same_time.st_atime_ns, same_time.st_mtime_ns))
    daemon = box.daemon({"d": web(one)})
    check_raw(daemon, "d", samples_in([one]), ["txt"])
    reload(daemon, {"d": web(other)})
    check_raw(daemon, "d", samples_in([other]), ["txt"])
    texts(other, range(10))
    check_raw(daemon, "d", samples_in([other]), ["txt"])
    reload(daemon, {"d": web(box.path("d"))})
    check_raw(daemon, "d", samples_in([one, other]), ["txt"])
    reload(daemon, {"d": web(one)})
    check_raw(daemon, "d", samples_in([one]), ["txt"])
    contains(daemon.log(), "it was made of other files")


@case("what is no folder is refused where a format reads folders; what is neither, everywhere")
def _(box):
    path = texts(box.path("d", "s.tar"), range(3))
    os.mkfifo(box.path("pipe"))
    daemon = box.daemon({"pictures": path, "packed": {"path": path, "format": "packed"}, "pipe": web(box.path("pipe")),
                         "gone": web(box.path("d", "t.tar"))})
    daemon.refused("pictures", "s.tar is a file", "the format imagefolder is a folder")
    daemon.refused("packed", "s.tar is a file", "the format packed is a folder")
    daemon.refused("pipe", "pipe is neither a folder nor a file")
    daemon.refused("gone", "t.tar cannot be opened: No such file")
    texts(box.path("d", "t.tar"), range(5))
    within(20, lambda: daemon.reader("gone", pipeline="txt").finish(20)[0] == 0, "the archive that came later is served")


main()
