#!/usr/bin/env python3
"""Archives that have further fields of the samples of other archives, merged with them by key."""
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, contains, equal, identity_bytes, indices, main, within
from pyclient import trainer
from tars import archive, check_raw, samples_in, web


def numbers_of(shard):
    return range(100 * shard, 100 * shard + 8 + shard)


def merged(box, base, *lists):
    return {"path": box.path("a", base), "merge": ", ".join(box.path(item) for item in lists), "format": "webdataset"}


def photos(box, shards=3):
    """Archives a/x-N.tar with a picture's bytes and a class. Returns the samples."""
    paths = [archive(box.path("a", f"x-{shard}.tar"), [member for n in numbers_of(shard) for member in (
        (f"d/{n:04d}.bin", identity_bytes(n, 200 + n)), (f"d/{n:04d}.cls", b"%d" % n))]) for shard in range(shards)]
    return samples_in(paths)


def add(path, samples, field, content, keep=lambda n: True, mix=None):
    """An archive with one field of these samples; adds it to what is expected of them."""
    members = []
    for key, fields in samples:
        n = int(fields["cls"])
        if keep(n):
            fields[field] = content(n)
            members.append((f"{key}.{field}", fields[field]))
    if mix is not None:
        random.Random(mix).shuffle(members)
    return archive(path, members)


def of_shard(samples, shard):
    return [sample for sample in samples if int(sample[1]["cls"]) in numbers_of(shard)]


@case("fields of other archives come to the samples of the same keys, in any sequence; a key that is missing is an absent field")
def _(box):
    samples = photos(box)
    for shard in range(3):
        here = of_shard(samples, shard)
        add(box.path("b", f"captions-{shard}.tar"), here, "txt", lambda n: b"caption %d" % n, mix=shard)
        add(box.path("c/deep", f"y-{shard}.tar"), here, "emb", lambda n: identity_bytes(n, 64), keep=lambda n: n % 3, mix=7)
    several = {"path": "::".join(box.path("a", f"x-{shard}.tar") for shard in range(3)), "format": "auto",
               "merge": box.path("b/captions-{0..1}.tar") + "::" + box.path("b/captions-2.tar")}
    daemon = box.daemon({"d": merged(box, "x-{0..2}.tar", "b/captions-{0..2}.tar", "c/deep/y-{0..2}.tar"), "auto": several})
    for _ in range(2):
        check_raw(daemon, "d", samples, ["bin", "txt", "emb", "cls"], seed=3)
        check_raw(daemon, "auto", samples, ["txt", "bin"], shuffle=False)
        check_raw(daemon, "d", samples, ["emb"])
        for rank in range(3):
            check_raw(daemon, "d", samples, ["txt", "cls"], world=3, rank=rank)
        lines = daemon.read("d", pipeline="txt; __key__", shuffle=False, batch=4)
        equal(len(lines), len(samples), "samples")
        first = [daemon.reader("d", pipeline="txt: raw; bin: raw", batch=4, seed=6, world=2, rank=rank, job="a", limit=2)
                 for rank in range(2)]
        seen = [index for reader in first for index in indices(reader.good())]
        for rank in range(3):
            seen += indices(daemon.read("d", pipeline="txt: raw; bin: raw", batch=2, seed=6, world=3, rank=rank, job="b",
                                        first_position=16, partition="exact"))
        equal(sorted(seen), list(range(len(samples))), "each sample once, at two world sizes")
        daemon.stop()
        daemon.start()
    for name in ("d", "auto"):
        equal(daemon.log().count(f" {name}: indexed"), 1, f"times that {name} was indexed")


@case("in Python the fields of merged archives are fields like others, and None where the key is missing")
def _(box):
    samples = photos(box, 1)
    add(box.path("b", "y-0.tar"), samples, "txt", lambda n: b"caption %d" % n, keep=lambda n: n != 3)
    daemon = box.daemon({"d": {**merged(box, "x-0.tar", "b/y-0.tar"), "fields": "number=cls, caption=txt"}})
    numbers, captions, rest = trainer(box, daemon, """
        with dlclient.Loader("d", batch_size=5, pipeline="number; caption", shuffle=False) as loader:
            batch = next(iter(loader))
            out(batch["number"].tolist())
            out([None if text is None else bytes(text).decode() for text in batch["caption"]])
            state = loader.state_dict()
        with dlclient.Loader("d", batch_size=2, pipeline="number; caption", shuffle=False, state=state) as loader:
            out([[int(n), bytes(text).decode()] for batch in loader for n, text in zip(batch["number"], batch["caption"])])
    """)
    equal(numbers, list(range(5)), "numbers")
    equal(captions, [None if n == 3 else f"caption {n}" for n in range(5)], "captions")
    equal(rest, [[n, f"caption {n}"] for n in range(5, 8)], "after a resume")


@case("merged archives and one archive with all fields are the same dataset, with the same digest")
def _(box):
    samples = photos(box, 2)
    for shard in range(2):
        add(box.path("b", f"y-{shard}.tar"), of_shard(samples, shard), "txt", lambda n: b"caption %d" % n, mix=1)
        archive(box.path("all", f"x-{shard}.tar"), [(f"{key}.{field}", content) for key, fields in of_shard(samples, shard)
                                                    for field, content in fields.items()])
    daemon = box.daemon({"merged": merged(box, "x-{0..1}.tar", "b/y-{0..1}.tar"), "all": web(box.path("all")),
                         "base": web(box.path("a"))})
    for name in ("merged", "all"):
        check_raw(daemon, name, samples, ["txt", "bin"])
    daemon.read("base", pipeline="cls")
    digests = {dataset["name"]: dataset["digest"] for dataset in daemon.objects("datasets")}
    equal(digests["merged"], digests["all"], "digest")
    equal(digests["merged"] == digests["base"], False, "the digest without the captions is the same")


@case("what does not belong together is refused, with both names")
def _(box):
    samples = photos(box, 2)
    for shard in range(2):
        add(box.path("b", f"y-{shard}.tar"), of_shard(samples, shard), "txt", lambda n: b"caption %d" % n)
        add(box.path("swapped", f"y-{1 - shard}.tar"), of_shard(samples, shard), "json", lambda n: b"{}")
        add(box.path("same", f"y-{shard}.tar"), of_shard(samples, shard), "cls", lambda n: b"%d" % n)
        archive(box.path("empty", f"y-{shard}.tar"), [])
    archive(box.path("late", "y-0.tar"), [("d/0003.txt", b"x")])
    archive(box.path("late", "y-1.tar"), [("d/0100.cls", b"1")])
    archive(box.path("twice", "y-0.tar"), [("d/0003.txt", b"x"), ("d/0004.txt", b"x"), ("d/0003.json", b"{}")])
    archive(box.path("a", "twice.tar"), [("d/0003.bin", b"x"), ("d/0004.bin", b"x"), ("d/0003.cls", b"1")])
    with open(box.path("cut.tar"), "wb") as file, open(box.path("b", "y-0.tar"), "rb") as whole:
        file.write(whole.read()[:1300])
    with open(box.path("list.json"), "w", encoding="utf-8") as file:
        file.write('{"shardlist": [{"url": "a/x-0.tar"}]}')
    base, one = "x-{0..1}.tar", "x-0.tar"
    pictures = box.folder_of_pictures("f", 4, n_classes=2)
    refused = {
        "swapped": (merged(box, base, "swapped/y-{0..1}.tar"), "swapped/y-0.tar: has the key \"d/0100\", which a/x-0.tar does not"),
        "fields": (merged(box, base, "same/y-{0..1}.tar"), "the field cls is both in a/x-0.tar and in same/y-0.tar"),
        "late": (merged(box, base, "late/y-{0..1}.tar"), "the field cls is both in a/x-0.tar and in late/y-1.tar"),
        "lists": (merged(box, base, "b/y-{0..1}.tar", "late/y-{0..1}.tar"), "the field"),
        "twice": (merged(box, one, "twice/y-0.tar"), "twice/y-0.tar: has the key \"d/0003\" twice"),
        "base": (merged(box, "twice.tar", "b/y-0.tar"), "a/twice.tar: has the key \"d/0003\" twice"),
        "fewer": (merged(box, base, "b/y-0.tar"), "the path names 2 files, and the list"),
        "missing": (merged(box, base, "b/y-{0,9}.tar"), "b/y-9.tar, one of 4 files that the path names: No such file"),
        "empty": (merged(box, base, "empty/y-{0..1}.tar"), "nothing can be merged from empty/y-0.tar"),
        "list": ({"path": box.path("list.json"), "merge": box.path("b/y-0.tar"), "format": "webdataset"},
                 "list.json: nothing can be merged with a list of archives"),
        "cut": (merged(box, one, "cut.tar"), "cut.tar: "),
        "folder": (merged(box, "", "b/y-0.tar"), "is a folder; with merge, the path names the archives"),
        "pictures": ({"path": pictures, "merge": box.path("b/y-0.tar"), "format": "auto"}, "is a folder; with merge"),
    }
    daemon = box.daemon({"good": merged(box, base, "b/y-{0..1}.tar"), **{name: section for name, (section, _) in refused.items()}})
    for name, (_, words) in refused.items():
        daemon.refused(name, words)
    check_raw(daemon, "good", samples, ["bin"])


@case("a merged archive that goes away holds its jobs up, one that changes is another dataset, one that is cut is damage")
def _(box):
    samples = photos(box)
    for shard in range(3):
        add(box.path("b", f"y-{shard}.tar"), of_shard(samples, shard), "txt", lambda n: identity_bytes(n, 700))
    daemon = box.daemon({"d": merged(box, "x-{0..2}.tar", "b/y-{0..2}.tar")})
    first = daemon.reader("d", pipeline="txt: raw; cls", shuffle=False, batch=1, slots=2, delay_ms=50, limit=len(samples),
                          on_error="skip")
    first.wait_lines(2)
    os.rename(box.path("b", "y-1.tar"), box.path("away"))
    within(20, lambda: any(job["hold"] for job in daemon.objects("jobs")), "it is on hold")
    contains(daemon.log(), "y-1.tar: No such file")
    os.rename(box.path("away"), box.path("b", "y-1.tar"))
    equal(indices(first.good(60)), list(range(len(samples))), "samples")
    check_raw(daemon, "d", samples, ["txt", "bin"])
    add(box.path("b", "y-2.tar"), of_shard(samples, 2), "txt", lambda n: identity_bytes(n, 900))
    check_raw(daemon, "d", samples, ["txt", "bin"])
    contains(daemon.log(), "b/y-2.tar has changed")
    last = daemon.reader("d", pipeline="txt: raw; cls", shuffle=False, batch=1, slots=2, delay_ms=30, limit=len(samples),
                         on_error="skip")
    last.wait_lines(1)
    os.truncate(box.path("b", "y-2.tar"), 3000)
    lines = last.good(60)
    equal(indices(lines)[:8 + 9], list(range(8 + 9)), "those of whole archives")
    equal(len(lines) < len(samples), True, "samples without their bytes came, too")


main()
