#!/usr/bin/env python3
"""What a dataset's path may be: a folder, a file in a folder where other files come and go, a pattern of files,
several of them."""
import io
import os
import signal
import sys
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, case, contains, equal, identity_bytes, identity_pixels, indices, main, png, within, write
from tars import archive, check_raw, npy, samples_in, web
from tfrecords import example, ints, record_file


def texts(path, numbers):
    """An archive of samples that know their numbers."""
    return archive(path, [(f"{number:04d}.txt", identity_bytes(number, 300 + number)) for number in numbers])


def hidden_of(daemon, name):
    daemon.dlctl("read", name, "--limit", "1", "--job", f"open {name}")
    return daemon.objects("datasets", name)[0].get("n_hidden_files", 0)


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
                "exact": ("odd/x*.jsonl", [8]), "ending": ("*.jsonl", [2, 0, 1]), "every": ("**/*.jsonl", [3, 4, 5, 8, 2, 0, 1])}
    daemon = box.daemon({**{name: {"path": box.path("hub", pattern), "format": "auto"} for name, (pattern, _) in patterns.items()},
                         "none": {"path": box.path("hub", "nothing-*.jsonl"), "format": "auto"}})
    for name, (pattern, numbers) in patterns.items():
        equal(numbers_of(daemon.read(name, pipeline="n;", shuffle=False)), numbers, pattern)
    daemon.refused("none", "no file matches the pattern")
    equal([hidden_of(daemon, name) for name in ("star", "ending", "every")], [0, 1, 2], "hidden files")
    write(box.path("hub", "train-5.jsonl"), b'{"n": 55}\n')
    daemon.stop()
    daemon.start()
    equal(numbers_of(daemon.read("star", pipeline="n;", shuffle=False)), [0, 1, 55], "a file more")


@case("training and test side by side in a folder are not one dataset, in any format: split chooses one by its name, and a pattern names all")
def _(box):
    def put(kind, name, number):
        path = box.path(kind, name)
        if kind == "webdataset":
            archive(path, [(f"{number}.n.txt", b"%d" % number)])
        elif kind in ("parquet", "arrow"):
            write(path, vector("differing", kind, f"{number % 2}.{kind}"))
        elif kind == "tfrecord":
            write(path, record_file([example(n=ints(number))]))
        else:
            write(path, {"csv": b"n,m\n%d,1\n", "jsonl": b'{"n": %d}\n', "text": b"%d\n"}[kind] % number)

    kinds = {"csv": ("train.csv", "test.csv"), "jsonl": ("x_train.jsonl", "x_val.jsonl"), "text": ("train-0.txt", "dev.txt"),
             "webdataset": ("in1k-train-0001.tar", "in1k-validation-01.tar"), "parquet": ("train-00000-of-00001.parquet", "test.parquet"),
             "arrow": ("squad-train.arrow", "squad-validation.arrow"),
             "tfrecord": ("mnist-train.tfrecord-00000-of-00001", "mnist-test.tfrecord-00000-of-00001")}
    datasets = {}
    for kind, names in kinds.items():
        for number, name in enumerate(names):
            put(kind, name, number)
        datasets[kind] = {"path": box.path(kind), "format": kind}
        datasets[f"{kind}-auto"] = {"path": box.path(kind), "format": "auto"}
        datasets[f"{kind}-all"] = {"path": box.path(kind, "*"), "format": kind}
        datasets[f"{kind}-one"] = {"path": box.path(kind), "format": kind, "split": "mnist-train.tfrecord" if kind == "tfrecord" else "train"}
        datasets[f"{kind}-none"] = {"path": box.path(kind), "format": kind, "split": "held"}
    for number, name in enumerate(("trainees.csv", "testify.csv", "evaluate.csv", "a-train-b.csv", "validity-1.csv", "train-1.csv", "b.train.csv")):
        write(box.path("others", name), b"n,m\n%d,1\n" % number)
    for number, name in enumerate(("000000-train-00000-of-00002.tar", "000001-train-00001-of-00002.tar")):  # as a staging calls them
        archive(box.path("staged", name), [(f"{number}.n.txt", b"%d" % number)])
    for number, name in enumerate(("en-00000-of-00001.jsonl", "de-00000-of-00001.jsonl")):  # no splits
        write(box.path("languages", name), b'{"n": %d}\n' % number)
    numbered = {"dotted": "c4-{}.00000-of-00001.txt", "underscored": "x_{}_00000_of_00001.txt"}
    for kind, name in numbered.items():
        for word in ("train", "validation"):
            write(box.path(kind, name.format(word)), b"1\n")
        datasets[kind] = {"path": box.path(kind), "format": "text"}
    write(box.path("each", "train_1.txt"), b"1")
    write(box.path("each", "test_1.txt"), b"1")
    daemon = box.daemon({**datasets, "others": {"path": box.path("others"), "format": "csv"}, "staged": web(box.path("staged")),
                         "languages": {"path": box.path("languages"), "format": "jsonl"}, "rule": {"path": box.path("csv"), "format": "csv", "split": "train[0:1]"},
                         "each": {"path": box.path("each"), "format": "text", "sample": "file"}})
    for kind in numbered:
        daemon.refused(kind, "has several splits", ": train, validation;")
    for kind in kinds:
        for name in (kind, f"{kind}-auto"):
            daemon.refused(name, "has several splits", 'split = "..."', "train", box.path(kind) + "/*")
        daemon.refused(f"{kind}-none", 'no split "held"', "choose one of", "train")
    counts = {name: len(daemon.read(name, batch=1, shuffle=False)) for kind in kinds for name in (f"{kind}-one", f"{kind}-all")}
    equal(counts, {f"{kind}-{name}": counts["arrow-" + name] if kind == "parquet" else n * (2 if kind == "arrow" else 1)
                   for kind in kinds for name, n in (("one", 1), ("all", 2))}, "samples")
    equal(daemon.read("csv-one", pipeline="n;")[0]["fields"]["n"]["value"], 0, "the file of the split")
    equal([len(daemon.read(name, batch=1)) for name in ("others", "staged", "rule", "each", "languages")], [7, 2, 1, 2, 2],
          "one split, or none")


def stored_zip(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as out:
        for name, content in files.items():
            out.writestr(name, content)
    return packed.getvalue()


def vector(*path):
    with open(os.path.join(ROOT, "tests", "vectors", *path), "rb") as file:
        return file.read()


@case("what is passed over because it is hidden is counted, in each format, and found in its index again")
def _(box):
    array = npy("<i8", "(4,)", bytes(32))
    kinds = {"imagefolder": ("c/1.png", png(4, 3, identity_pixels(1, 4, 3)), {}), "jsonl": ("x.jsonl", b'{"n": 1}\n', {}),
             "folder": ("c/1.png", png(4, 3, identity_pixels(1, 4, 3)), {"pattern": "{class}/{name}.png"}),
             "csv": ("x.csv", b"n,m\n1,2\n", {}), "text": ("x.txt", b"line\n", {}), "npy": ("x.npy", array, {}),
             "tfrecord": ("x.tfrecord", record_file([b"record"]), {}), "parquet": ("x.parquet", vector("parquet", "scalars-plain.parquet"), {}),
             "arrow": ("x.arrow", vector("arrow", "lists.arrow"), {}), "megatron": ("x.idx", vector("megatron", "small.idx"), {})}
    datasets, wanted = {}, {}
    for kind, (path, content, keys) in kinds.items():
        folder, name = os.path.split(path)
        write(box.path(kind, path), content)
        for hidden in (f"._{name}", ".DS_Store", ".nfs0001", "._elsewhere"):
            write(box.path(kind, folder, hidden), b"\0\5\x16\7")
        datasets[kind] = {"path": box.path(kind), "format": kind, **keys}
        wanted[kind] = 1
    write(box.path("megatron", "x.bin"), vector("megatron", "small.bin"))
    write(box.path("npz", "x.npz"), stored_zip({"x.npy": array, "._x.npy": b"\0\5", "__MACOSX/._x.npy": b"\0\5"}))
    datasets["npz"], wanted["npz"] = {"path": box.path("npz", "x.npz"), "format": "npy"}, 2
    archive(box.path("webdataset", "x.tar"), [("1.txt", b"1"), ("._1.txt", b"\0\5"), (".DS_Store", b"\0\5")])
    archive(box.path("webdataset", "._x.tar"), [("1.txt", b"1")])
    datasets["webdataset"], wanted["webdataset"] = {"path": box.path("webdataset"), "format": "webdataset"}, 2
    daemon = box.daemon(datasets)
    for _ in range(2):
        equal({kind: hidden_of(daemon, kind) for kind in datasets}, wanted, "hidden files")
        equal([row["state"] for row in daemon.objects("datasets") if row["state"] != "ready"], [], "states")
        contains(daemon.dlctl("datasets", "imagefolder").stdout, "hidden files")
        daemon.stop()
        daemon.start()
    for kind in kinds:
        folder, name = os.path.split(kinds[kind][0])
        os.unlink(box.path(kind, folder, f"._{name}"))
    daemon.stop()
    daemon.start()
    equal({kind: hidden_of(daemon, kind) for kind in kinds}, dict.fromkeys(kinds, 0), "nothing is hidden any more")


@case("a folder is no file of macOS, whatever its name: it is entered as torchvision enters it")
def _(box):
    for path in ("._class/1.png", "cat/._deep/2.png", "cat/3.png", "cat/._3.png"):
        write(box.path("d", path), png(4, 3, identity_pixels(int(path[-5]), 4, 3)))
    daemon = box.daemon({"d": {"path": box.path("d"), "format": "imagefolder"}})
    equal([line["fields"]["label"]["value"] for line in daemon.read("d", shuffle=False)], [0, 1, 1], "labels")
    equal(hidden_of(daemon, "d"), 1, "hidden files")


@case("AppleDouble files and other hidden ones are no samples, in archives and in folders of pictures")
def _(box):
    double = b"\x00\x05\x16\x07" + bytes(60)
    path = archive(box.path("w", "a.tar"), [(name, double if "/." in name or name[0] == "." else identity_bytes(number, 50)) for number, name in
                                            enumerate(("._d", "d/._0.txt", "d/0.txt", "d/.DS_Store", "d/1.txt", "._2.txt", "2.txt"))])
    for number in range(3):
        write(box.path("p", "cat", f"{number}.png"), png(4, 3, identity_pixels(number, 4, 3)))
        write(box.path("p", "cat", f"._{number}.png"), double)
    write(box.path("p", "__MACOSX", "cat", "._0.png"), double)
    daemon = box.daemon({"w": web(path), "p": box.path("p")})
    equal([line["fields"]["txt"]["shape"] for line in daemon.read("w", pipeline="txt: raw", shuffle=False)], [[52], [54], [56]], "samples")
    equal((hidden_of(daemon, "w"), hidden_of(daemon, "p")), (2, 4), "hidden files")
    equal(len(daemon.read("p", pipeline="decode", batch=1)), 3, "pictures")


main()
