#!/usr/bin/env python3
"""The failing file system itself: does it fail as it is told, and only so?"""
import errno
import mmap
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from harness import case, equal, main, within, write  # noqa: E402
from failing_fs import FailingFs  # noqa: E402


def read(path):
    with open(path, "rb", buffering=0) as file:
        return file.read()


def error_of(function, *arguments):
    """The errno that a call fails with; 0 if it does not."""
    try:
        function(*arguments)
    except OSError as error:
        return error.errno
    return 0


def two_folders(box):
    for folder in "ab":
        for number in range(3):
            write(box.path("source", folder, f"{number}.jpg"), f"{folder}{number}".encode() * 1000)
    return FailingFs(box, box.path("source"))


@case("a folder is passed through: names, bytes, changes")
def _(box):
    disk = two_folders(box)
    equal(sorted(os.listdir(disk.path)), ["a", "b"])
    equal(sorted(os.listdir(disk.path + "/b")), ["0.jpg", "1.jpg", "2.jpg"])
    equal(read(disk.path + "/b/1.jpg"), b"b1" * 1000)
    write(disk.path + "/c/new", b"123")
    os.rename(disk.path + "/c", disk.path + "/d")
    os.link(disk.path + "/d/new", disk.path + "/d/linked")
    os.truncate(disk.path + "/d/new", 2)
    equal(read(box.path("source", "d", "linked")), b"12")
    os.unlink(disk.path + "/d/new")
    write(disk.path + "/d/new", b"other")
    equal(read(disk.path + "/d/new"), b"other")
    equal(error_of(read, disk.path + "/d/none"), errno.ENOENT)
    with open(disk.path + "/a/2.jpg", "rb") as file:
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            equal(mapped[:4], b"a2a2")


@case("what hangs goes on when the rule is cleared, and nothing else hangs meanwhile")
def _(box):
    disk = two_folders(box)
    disk.hang("a/*", ops="open")
    got = []
    threads = [threading.Thread(target=lambda n=n: got.append(read(f"{disk.path}/a/{n}.jpg"))) for n in range(3)]
    for thread in threads:
        thread.start()
    within(10, lambda: disk.n_hanging() == 3, "three hang")
    equal(read(disk.path + "/b/0.jpg"), b"b0" * 1000)
    equal(got, [])
    disk.clear("a/*")
    for thread in threads:
        thread.join(60)
    equal(sorted(got), [f"a{n}".encode() * 1000 for n in range(3)])
    equal(disk.n_hanging(), 0)


@case("errors are those that were asked for, as often as was asked for")
def _(box):
    disk = two_folders(box)
    disk.fail("a/0.jpg", "EACCES", ops="open", after=1, times=2)
    equal([error_of(read, disk.path + "/a/0.jpg") for _ in range(4)], [0, errno.EACCES, errno.EACCES, 0])
    disk.fail("a/2.jpg", "ESTALE", ops="open")  # the kernel tries such an open twice
    equal(error_of(read, disk.path + "/a/2.jpg"), errno.ESTALE)
    disk.fail("b/*", "EIO", ops="read")
    equal([error_of(read, f"{disk.path}/{name}.jpg") for name in ("a/1", "b/1")], [0, errno.EIO])
    disk.fail(".", "EACCES")
    equal(error_of(os.listdir, disk.path), errno.EACCES)
    disk.clear()
    equal(sorted(os.listdir(disk.path)), ["a", "b"])
    disk.fail("*", "ENOSPC", ops="write,create")
    equal(error_of(write, disk.path + "/a/new", b"1"), errno.ENOSPC)


@case("reads are short, answers late, and counted")
def _(box):
    disk = two_folders(box)
    disk.short("a/*", 7)
    with open(disk.path + "/a/0.jpg", "rb", buffering=0) as file:
        equal((file.read(100), file.read(100)), (b"a0a0a0a", b"0a0a0a0"))
    n_opened = disk.count("open")
    disk.delay("b/*", 50, ops="open")
    equal(read(disk.path + "/b/0.jpg"), b"b0" * 1000)
    equal(disk.count("open"), n_opened + 1)


@case("without its server a mount answers with ENOTCONN, and what hung ends")
def _(box):
    disk = two_folders(box)
    disk.hang("a/0.jpg")
    got = []
    thread = threading.Thread(target=lambda: got.append(error_of(read, disk.path + "/a/0.jpg")))
    thread.start()
    within(10, lambda: disk.n_hanging() == 1, "one hangs")
    disk.die()
    thread.join(60)
    equal((len(got), got[0] != 0), (1, True))
    equal(error_of(os.listdir, disk.path), errno.ENOTCONN)


@case("a case that ends while something hangs leaves nothing behind")
def _(box):
    disk = two_folders(box)
    disk.hang("*")
    process = box.start(["cat", disk.path + "/a/0.jpg"], stdout=-3)
    within(10, lambda: disk.n_hanging() == 1, "one hangs")
    equal(process.poll(), None)


main()
