#!/usr/bin/env python3
"""What a dataset's path may be: a folder, a file in a folder where other files come and go, a pattern of files,
several of them."""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, contains, equal, identity_bytes, identity_pixels, indices, main, png, within, write
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


@case("the archives of a pattern, in the sequence in which it expands; the index of it is found again")
def _(box):
    for part in ("a", "b"):
        for shard in range(4):
            texts(box.path("d", part, f"x-{shard:03d}.tar"), range(100 * shard, 100 * shard + 7 + shard))
    datasets = {"range": (["a/x-000", "a/x-001", "a/x-002", "a/x-003"], "a/x-{000..003}.tar"),
                "list": (["a/x-003", "a/x-001"], "a/x-{003,001}.tar"),
                "folders": (["b/x-002", "b/x-001", "a/x-002", "a/x-001"], "{b,a}/x-{002..001}.tar")}
    daemon = box.daemon({"folder": web(box.path("d", "a")),
                         **{name: web(box.path("d", pattern)) for name, (_, pattern) in datasets.items()}})
    for _ in range(2):
        for name, (paths, _) in datasets.items():
            samples = samples_in(box.path("d", path + ".tar") for path in paths)
            check_raw(daemon, name, samples, ["txt"], seed=4)
            check_raw(daemon, name, samples, ["txt"], world=3, rank=1, shuffle=False)
        daemon.stop()
        daemon.start()
    for name in datasets:
        equal(daemon.log().count(f" {name}: indexed"), 1, f"times that {name} was indexed")
    within(20, lambda: all(dataset["digest"] for dataset in daemon.objects("datasets")), "all are opened again")
    digests = {dataset["name"]: dataset["digest"] for dataset in daemon.objects("datasets")}
    equal(digests["range"], digests["folder"], "digest of the same archives")
    equal(len(set(digests.values())), 3, "digests")
    reload(daemon, {"range": web(box.path("d", "a/x-{000..002}.tar"))})
    check_raw(daemon, "range", samples_in(box.path("d", "a", f"x-{shard:03d}.tar") for shard in range(3)), ["txt"])
    contains(daemon.log(), "range: indexed again because it was made of other files")


@case("a pattern that names a missing file, means nothing or means too much is refused with what is allowed")
def _(box):
    for shard in range(4):
        texts(box.path("d", f"x-{shard}.tar"), range(3))
    os.mkdir(box.path("d", "x-9.tar"))
    patterns = {"missing": ("x-{0..5}.tar", "d/x-4.tar, one of 6 files that the path names: No such file"),
                "folder": ("x-{0,9}.tar", "d/x-9.tar is a folder, not a regular file"),
                "open": ("x-{0..3.tar", "a brace is not closed"),
                "huge": ("x-{0..99999999}.tar", "more than 1000000 names"),
                "letters": ("x-{a..C}.tar", "neither a list such as {a,b} nor a range such as {000..127}"),
                "outside": ("{x,../x}-0.tar", "after its first brace it names files"),
                "twice": ("x-{0,0}.tar", "names x-0.tar twice")}
    daemon = box.daemon({"pictures": box.path("d", "x-{0..3}.tar"),
                         **{name: web(box.path("d", pattern)) for name, (pattern, _) in patterns.items()}})
    for name, (_, words) in patterns.items():
        daemon.refused(name, words)
    daemon.refused("pictures", "x-0.tar is a file or a pattern", "format imagefolder is a folder")
    texts(box.path("d", "x-4.tar"), range(3))
    texts(box.path("d", "x-5.tar"), range(3))
    within(20, lambda: daemon.reader("missing", pipeline="txt").finish(20)[0] == 0, "it is served when they are there")


@case("a path of several parts: their archives one after the other, in whatever folders they lie, also of a resumed run")
def _(box):
    for folder, n in (("one/train", 4), ("two", 3)):
        for shard in range(n):
            texts(box.path(folder, f"x-{shard:03d}.tar"), range(100 * shard, 100 * shard + 9 + n))
    path = "::".join(box.path(part) for part in ("two/x-00{2,{0..1}}.tar", "one/train/x-003.tar", "one/train/x-{000..001}.tar"))
    samples = samples_in(box.path(name + ".tar") for name in (
        "two/x-002", "two/x-000", "two/x-001", "one/train/x-003", "one/train/x-000", "one/train/x-001"))
    lines = {"one": 4, "two": 3}
    for name, n in lines.items():
        with open(box.path(name, "lines.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(f'{{"id": {100 * n + i}}}\n' for i in range(n))
    daemon = box.daemon({"d": web(path), "auto": {"path": path, "format": "auto"},
                         "lines": {"path": box.path("two/lines.jsonl::") + box.path("one/lines.jsonl"), "format": "jsonl"}})
    for _ in range(2):
        for name in ("d", "auto"):
            check_raw(daemon, name, samples, ["txt"], seed=4)
        first = [daemon.reader("d", pipeline="txt", batch=5, seed=6, world=2, rank=rank, job="a", limit=3) for rank in range(2)]
        seen = [index for reader in first for index in indices(reader.good())]
        for rank in range(3):
            seen += indices(daemon.read("d", pipeline="txt", batch=2, seed=6, world=3, rank=rank, job="b", first_position=30,
                                        partition="exact"))
        equal(sorted(seen), list(range(len(samples))), "each sample once, at two world sizes")
        equal([line["fields"]["id"]["value"] for line in daemon.read("lines", pipeline="id", shuffle=False)],
              [300, 301, 302, 400, 401, 402, 403], "lines of two files")
        daemon.stop()
        daemon.start()
    for name in ("d", "auto", "lines"):
        equal(daemon.log().count(f" {name}: indexed"), 1, f"times that {name} was indexed")
    reload(daemon, {"d": web("::".join(reversed(path.split("::"))))})
    daemon.read("d", pipeline="txt")
    contains(daemon.log(), "d: indexed again because it was made of other files")


@case("a part that is empty, missing, a folder or not absolute is refused with what is allowed")
def _(box):
    path = texts(box.path("a", "x.tar"), range(3))
    texts(box.path("b", "x.tar"), range(3))
    parts = {"empty": ("::", "is empty; write :: only between two parts"), "missing": ("::" + box.path("b/x-{0..1}.tar"), "b/x-0.tar, one of 3 files"),
             "folder": ("::" + box.path("b"), "b is a folder, not a regular file; name its files"),
             "relative": ("::b/x.tar", "does not begin with /"), "twice": ("::" + path, "names x.tar twice"),
             "url": ("::https://h/x.tar", "does not begin with /")}
    daemon = box.daemon({name: web(path + rest) for name, (rest, _) in parts.items()})
    for name, (_, words) in parts.items():
        daemon.refused(name, words)


@case("an archive of a pattern that goes away holds its jobs up; they go on when it is back, without a loss")
def _(box):
    for shard in range(3):
        texts(box.path("d", f"x-{shard}.tar"), range(20))
    daemon = box.daemon({"d": web(box.path("d", "x-{0..2}.tar"))})
    first = daemon.reader("d", pipeline="txt", shuffle=False, batch=1, slots=2, delay_ms=50, limit=40, on_error="skip")
    first.wait_lines(2)  # from now on the dataset is in use, and nobody looks whether its files have changed
    os.rename(box.path("d", "x-1.tar"), box.path("away"))
    within(20, lambda: any(job["hold"] for job in daemon.objects("jobs")), "it is on hold")
    contains(daemon.log(), "x-1.tar: No such file")
    os.rename(box.path("away"), box.path("d", "x-1.tar"))
    lines = first.good(60)
    equal(indices(lines), list(range(40)), "samples")
    check_raw(daemon, "d", samples_in(box.path("d", f"x-{shard}.tar") for shard in range(3)), ["txt"])


@case("what is no folder is refused where a format reads folders; what is neither, everywhere")
def _(box):
    path = texts(box.path("d", "s.tar"), range(3))
    os.mkfifo(box.path("pipe"))
    daemon = box.daemon({"pictures": path, "packed": {"path": path, "format": "packed"}, "pipe": web(box.path("pipe")),
                         "device": web("/dev/null"),
                         "gone": web(box.path("d", "t.tar"))})
    daemon.refused("pictures", "s.tar is a file", "format imagefolder is a folder")
    daemon.refused("packed", "s.tar is a file", "format packed is a folder")
    daemon.refused("pipe", "pipe is a pipe: its data come once", "stream = yes")
    daemon.refused("device", "/dev/null is neither a folder nor a file")
    daemon.refused("gone", "t.tar cannot be opened: No such file")
    texts(box.path("d", "t.tar"), range(5))
    within(20, lambda: daemon.reader("gone", pipeline="txt").finish(20)[0] == 0, "the archive that came later is served")


def numbers_of(lines):
    return [line["fields"]["n"]["value"] for line in lines]


@case("*, ? and ** name the files that are there, in the order of their paths; hidden ones and AppleDouble members do not count")
def _(box):
    for number, path in enumerate(("train-0.jsonl", "train-1.jsonl", "test-0.jsonl", "a/train-0.jsonl", "b/x/train-0.jsonl", "b/y/deep/train-7.jsonl")):
        write(box.path("hub", path), b'{"n": %d}\n' % number)
    for path in ("._train-0.jsonl", ".hidden/train-9.jsonl", "a/._train-0.jsonl"):
        write(box.path("hub", path), b"\x00\x05\x16\x07")
    write(box.path("hub", "odd", "x*.jsonl"), b'{"n": 8}\n')
    os.makedirs(box.path("hub", "train-2.jsonl"))
    os.symlink("..", box.path("hub", "a", "loop"))
    patterns = {"star": ("train-*.jsonl", [0, 1]), "question": ("t???-?.jsonl", [2]), "folders": ("*/train-*.jsonl", [3]),
                "all": ("**/train-*.jsonl", [3, 4, 5, 0, 1]), "deep": ("b/**/train-?.jsonl", [4, 5]), "braces": ("{test,train}-*.jsonl", [2, 0, 1]),
                "exact": ("odd/x*.jsonl", [8])}
    daemon = box.daemon({**{name: {"path": box.path("hub", pattern), "format": "auto"} for name, (pattern, _) in patterns.items()},
                         "none": {"path": box.path("hub", "nothing-*.jsonl"), "format": "auto"}})
    for name, (pattern, numbers) in patterns.items():
        equal(numbers_of(daemon.read(name, pipeline="n;", shuffle=False)), numbers, pattern)
    daemon.refused("none", "no file matches the pattern")
    write(box.path("hub", "train-5.jsonl"), b'{"n": 55}\n')
    daemon.stop()
    daemon.start()
    equal(numbers_of(daemon.read("star", pipeline="n;", shuffle=False)), [0, 1, 55], "a file more")


@case("AppleDouble files and other hidden ones are no samples, in archives and in folders of pictures")
def _(box):
    double = b"\x00\x05\x16\x07" + bytes(60)
    path = archive(box.path("w", "a.tar"), [(name, double if "/." in name or name[0] == "." else identity_bytes(number, 50)) for number, name in
                                            enumerate(("._d", "d/._0.txt", "d/0.txt", "d/.DS_Store", "d/1.txt", "._2.txt", "2.txt"))])
    for number in range(3):
        write(box.path("p", "cat", f"{number}.png"), png(4, 3, identity_pixels(number, 4, 3)))
        write(box.path("p", "cat", f"._{number}.png"), double)
    daemon = box.daemon({"w": web(path), "p": box.path("p")})
    equal([line["fields"]["txt"]["shape"] for line in daemon.read("w", pipeline="txt: raw", shuffle=False)], [[52], [54], [56]], "samples")
    equal(len(daemon.read("p", pipeline="decode", batch=1)), 3, "pictures")


main()
