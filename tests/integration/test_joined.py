#!/usr/bin/env python3
"""Several datasets in one loader, one after the other as torch's ConcatDataset has them: the samples of each part in the
order of all, whatever their formats; damage, outages, rights and versions stay those of the part."""
import grp
import hashlib
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from failing_fs import FailingFs
from harness import (HandClient, Skip, case, contains, equal, expected_order, identity_bytes, identity_pixels,
                     indices, main, png, samples_of, sha256_of, within, write)
from pyclient import need, trainer
from tars import archive, web


def joined_samples(*folders):
    """[(path, label)] of image folders, one after the other."""
    return [sample for folder in folders for sample in samples_of(folder)]


def check(lines, samples, **terms):
    """The order is torch's over all samples; each line has the bytes and the label of its own file."""
    equal(indices(lines), expected_order(len(samples), **terms), "order")
    for line in lines:
        path, label = samples[line["index"]]
        equal((line["fields"]["image"]["sha256"], line["fields"]["label"]["value"]), (sha256_of(path), label),
              f"sample {line['index']}")


def two_folders(box, n_a=31, n_b=20):
    return box.folder_of_files("files-a", n_a, size=300), box.folder_of_files("files-b", n_b, size=170)


@case("two image folders: each sample in the order of all, at any world size, batch size and place")
def _(box):
    a, b = two_folders(box)
    daemon = box.daemon({"a": a, "b": b})
    samples = joined_samples(a, b)
    check(daemon.read("a + b", batch=7), samples)
    check(daemon.read("a + b", batch=8, shuffle=False), samples, shuffle=False)
    for rank, lines in enumerate(daemon.read_ranks("a + b", 3, batch=4, seed=9)):
        check(lines, samples, world=3, rank=rank, seed=9)
    check(daemon.read("a + b", batch=4, first_position=33), samples, position=33)
    check(daemon.read("b + a", batch=7), joined_samples(b, a))
    check(daemon.read("  b   +  a ", batch=7), joined_samples(b, a))
    check(daemon.read("a + b", batch=5, order="tdperm"), samples, order="tdperm")


@case("a folder, an archive and a folder of another size: pixels and labels, wherever a label comes from")
def _(box):
    folder = box.folder_of_pictures("f", 12, n_classes=3)
    members, expected = [], []
    for number in range(9):
        picture = png(9, 7, identity_pixels(100 + number, 9, 7))
        members += [(f"{number:03d}.png", picture), (f"{number:03d}.cls", b"%d\n" % (number % 3))]
        expected.append((hashlib.sha256(identity_pixels(100 + number, 9, 7)).hexdigest(), number % 3))
    archive(box.path("w", "all.tar"), members)
    before = [(hashlib.sha256(identity_pixels(number, 9, 7)).hexdigest(), number * 3 // 12) for number in range(12)]
    daemon = box.daemon({"f": folder, "w": dict(web(box.path("w")), fields="image=png, label=cls")})
    for pipeline in ("center_crop(size=7:9)", "image: center_crop(size=7:9); label", "image: decode; label"):
        for name, rows in (("f + w", before + expected), ("w + f", expected + before)):
            lines = daemon.read(name, pipeline=pipeline, batch=1 if "decode" in pipeline else 5)
            equal(indices(lines), expected_order(21), "order")
            for line in lines:
                told = line["fields"]
                equal((told["image"]["sha256"], told["label"]["value"], told["label"]["dtype"]),
                      (*rows[line["index"]], "int64"), f"{name}, {pipeline}: sample {line['index']}")


@case("shards of two parts have the same numbers and are never taken for one another")
def _(box):
    samples = []
    for name, size in (("v", 900), ("w", 500)):
        for shard in range(3):
            members = [(f"{number:03d}.bin", identity_bytes(1000 * shard + number, size)) for number in range(20)]
            archive(box.path(name, f"{shard}.tar"), members)
            samples += [hashlib.sha256(content).hexdigest() for _, content in members]
    daemon = box.daemon({"v": web(box.path("v")), "w": web(box.path("w"))})
    lines = daemon.read("v + w", pipeline="bin: raw", batch=16, epochs=2)
    equal(indices(lines, 0), expected_order(120), "order")
    equal([line["fields"]["bin"]["sha256"] for line in lines], [samples[line["index"]] for line in lines], "bytes")


@case("random draws are those of the sample's number among all: equal pictures of two parts get crops of their own")
def _(box):
    pictures = box.folder_of_pictures("f", 12)
    daemon = box.daemon({"a": pictures, "b": pictures})
    lines = daemon.read("a + b", pipeline="random_crop(3)", shuffle=False, batch=6)
    crops = [line["fields"]["image"]["sha256"] for line in lines]
    equal(sum(one != other for one, other in zip(crops[:12], crops[12:])) > 6, True, "most crops differ")
    equal(crops[:12], [line["fields"]["image"]["sha256"] for line in
                       daemon.read("a", pipeline="random_crop(3)", shuffle=False, batch=6)], "the first part's are its own")


@case("__dataset__ says which part a sample is of, where it is named and not otherwise")
def _(box):
    a, b = two_folders(box)
    daemon = box.daemon({"a": a, "b": b})
    lines = daemon.read("a + b", pipeline="__dataset__; label", batch=8)
    equal(indices(lines), expected_order(51), "order")
    for line in lines:
        equal(line["fields"]["__dataset__"], {"dtype": "int64", "shape": [], "value": int(line["index"] >= 31)}, "part")
    equal(list(daemon.read("a + b", batch=8)[0]["fields"]), ["image", "label"], "without names")
    daemon.refused("a", "has no field", "__dataset__", pipeline="__dataset__; label")


@case("rows of arrays are copied from the mappings of their parts; one in another type of element is refused")
def _(box):
    need("numpy")
    import numpy
    dice = numpy.random.default_rng(0)
    parts = {"x": dice.standard_normal((40, 3, 5)).astype("<f4"), "y": dice.standard_normal((70, 3, 5)).astype(">f4"),
             "z": dice.integers(0, 9, (30, 3, 5)).astype("int16"), "long": dice.standard_normal((6, 4, 5)).astype("<f4"),
             "flat": dice.standard_normal((6, 5)).astype("<f4"), "wide": dice.standard_normal((6, 3, 6)).astype("<f4")}
    for name, array in parts.items():
        os.makedirs(box.path("arrays"), exist_ok=True)
        numpy.save(box.path("arrays", f"{name}.npy"), array)
    daemon = box.daemon({name: {"path": box.path("arrays", f"{name}.npy"), "format": "npy"} for name in parts})
    def n_bytes_read():
        return int({row["name"]: row["value"] for row in daemon.status()["counters"]}["n_bytes_read"])

    for names in (("x", "y"), ("y", "x"), ("x", "long"), ("long", "y", "x")):
        rows = [row.astype("<f4") for name in names for row in parts[name]]
        lines = daemon.read(" + ".join(names), batch=64)
        equal(indices(lines), expected_order(len(rows)), "order")
        for line in lines:
            row = rows[line["index"]]
            equal(line["fields"]["data"], {"dtype": "float32", "shape": list(row.shape),
                                           "sha256": hashlib.sha256(row.tobytes()).hexdigest()}, f"row of {names}")
        equal(n_bytes_read() == 0, "long" not in names, "rows of one size are copied, others are read")
    for line in daemon.read("x + long", pipeline="data: pad(value=0)", batch=64):
        row = (list(parts["x"]) + list(parts["long"]))[line["index"]]
        equal((line["fields"]["data"]["shape"], line["fields"]["data"]["sha256"]),
              (list(row.shape), hashlib.sha256(row.tobytes()).hexdigest()), f"padded: row {line['index']}")
    daemon.refused("x + z", "data", "float32 [3, 5] in x", "int16 [3, 5] in z", "to(")
    daemon.refused("x + flat", "float32 [3, 5] in x", "float32 [5] in flat")
    daemon.refused("x + wide", "float32 [3, 5] in x", "float32 [3, 6] in wide")
    equal(len(daemon.read("x + z", pipeline="data: to(float64)", batch=16)), 70, "converted")


@case("an array that is cut while it is served never gives rows of zeroes, whichever part it is")
def _(box):
    need("numpy")
    import numpy
    parts = [numpy.arange(1, 1 + 400 * 256, dtype="<i4").reshape(400, 256) * (k + 1) for k in range(2)]
    rows = [hashlib.sha256(row.tobytes()).hexdigest() for part in parts for row in part]
    for cut in range(2):
        paths = [box.path(f"{name}{cut}.npy") for name in "xy"]
        for path, part in zip(paths, parts):
            numpy.save(path, part)
        daemon = box.daemon({name: {"path": path, "format": "npy"} for name, path in zip("xy", paths)})
        reader = daemon.reader("x + y", batch=8, slots=2, delay_ms=2, on_error="skip", epochs=2)
        reader.wait_lines(16)
        os.truncate(paths[cut], 128 + 397 * 1024 + 100)  # within a page: no touch of a row that is gone would be noticed
        lines = reader.good()
        equal([line["fields"]["data"]["sha256"] for line in lines], [rows[line["index"]] for line in lines], "rows")
        equal(1590 < len(lines) < 1600, True, f"{len(lines)} rows came")
        equal({row["dataset"] for row in daemon.objects("errors")}, {"xy"[cut]}, "whose damage it is")
        daemon.stop()


@case("tables: a field that only some have is absent in the others, and texts are stored as their format has them")
def _(box):
    one = [{"text": f"ä {number} \"quoted\"", "score": number / 2, "only": f"only {number}"} for number in range(11)]
    other = [(f"csv, {number}", number) for number in range(7)]
    write(box.path("one.jsonl"), "".join(json.dumps(row) + "\n" for row in one).encode())
    write(box.path("other.csv"), ("text,score\n" + "".join(f'"{text}",{score}.0\n' for text, score in other)).encode())
    daemon = box.daemon({"one": {"path": box.path("one.jsonl"), "format": "jsonl"},
                         "other": {"path": box.path("other.csv"), "format": "csv"}})
    rows = one + [{"text": text, "score": float(score), "only": None} for text, score in other]
    for name, order in (("one + other", rows), ("other + one", rows[11:] + rows[:11])):
        lines = daemon.read(name, pipeline="text; score; only; __dataset__", batch=4)
        equal(indices(lines), expected_order(18), "order")
        for line in lines:
            told, row = line["fields"], order[line["index"]]
            equal((told["text"]["text"], told["score"]["value"] if told["score"]["shape"] == [] else None),
                  (row["text"], row["score"]), f"sample {line['index']} of {name}")
            equal(told["only"]["text"] if told["only"] else None, row["only"], "the field of one part alone")


@case("dlctl shows what several are together: fields, samples, and single ones")
def _(box):
    a, b = box.folder_of_pictures("a", 31), box.folder_of_pictures("b", 20)
    daemon = box.daemon({"a": a, "b": b})
    within(20, lambda: all(row["state"] == "ready" for row in daemon.objects("datasets")), "both are ready")
    rows = daemon.objects("datasets", "b  +  a")
    equal([(row["name"], row["format"], row["state"], row["n_samples"], row["n_classes"]) for row in rows],
          [("b + a", "joined", "ready", 51, 2)], "the row")
    equal([field["field"] for field in rows[0]["fields"]], ["image", "label", "__key__", "__dataset__"], "fields")
    equal([row["name"] for row in daemon.objects("datasets")], ["a", "b"], "the list")
    contains(daemon.dlctl("datasets", "a + nowhere").stderr, 'there is no "nowhere"')
    contains(daemon.dlctl("datasets", "a + a").stderr, "named twice")
    shown = daemon.dlctl("look", "a + b", "40").stdout
    contains(shown, os.path.basename(samples_of(b)[9][0]), "__dataset__")


@case("what cannot be joined is refused with a sentence: names, classes, fields of other types, streams")
def _(box):
    a, b = two_folders(box)
    dogs = box.path("dogs")
    for name in ("dogs", "foxes"):
        write(os.path.join(dogs, name, "1.jpg"), identity_bytes(1, 50))
    third = box.folder_of_files("third", 9, n_classes=3)
    os.makedirs(box.path("stream"))
    archive(box.path("stream", "0.tar"), [("1.jpg", b"x"), ("2.jpg", b"y")])
    daemon = box.daemon({"a": a, "b": b, "dogs": dogs, "third": third,
                         "s": dict(web(box.path("stream")), stream="yes")})
    daemon.refused("a + nowhere", 'there is no "nowhere"', "the configuration has")
    daemon.refused("a+b", 'there is no "a+b"')
    daemon.refused("a + a", "named twice")
    daemon.refused("a +  + b", "empty")
    daemon.refused("a + " + " + ".join(f"n{number}" for number in range(64)), "more than 64")
    daemon.refused("a + dogs", "label", 'class 0 is "class000" in a and "dogs" in dogs', "without it")
    daemon.refused("third + a", "third has 3 classes and a has 2")
    daemon.refused("a + s", "s is a stream")
    equal(len(daemon.read("a + dogs", pipeline="image: raw")), 33, "without labels")
    equal(len(daemon.read("a + b", pipeline="label")), 51, "with the same classes")


@case("damage is entered where it is: the part's ledger, its name and its own number; substitutes cross parts")
def _(box):
    a, b = two_folders(box)
    for folder, number in ((a, 30), (b, 0), (b, 7)):
        path = samples_of(folder)[number][0]
        os.unlink(path)
        os.symlink("/nowhere/at/all", path)
    daemon = box.daemon({"a": a, "b": b})
    lines = daemon.read("a + b", shuffle=False, on_error="substitute", batch=4)
    equal({line["index"]: line["substitute"] for line in lines if "substitute" in line}, {30: 32, 31: 32, 38: 39},
          "substitutes")
    for line in lines:
        path = joined_samples(a, b)[line.get("substitute", line["index"])][0]
        equal(line["fields"]["image"]["sha256"], sha256_of(path), f"bytes of sample {line['index']}")
    contains(next(line["error"] for line in lines if line["index"] == 38), "b: sample 7", "number 38 of a + b")
    equal(sorted((row["dataset"], row["index"]) for row in daemon.objects("errors")), [("a", 30), ("b", 0), ("b", 7)],
          "ledgers")
    equal(len(daemon.read("a + b", on_error="skip", batch=4, job="skips")), 48, "left out")
    status, _ = daemon.reader("a + b", on_error="skip", max_errors=2, batch=4, job="strict").finish()
    equal(status, 1, "more than two")
    equal(len(daemon.read("a", on_error="skip", job="alone")), 30, "what is known of a part counts alone, too")


@case("while one part cannot be read all wait, and go on where they were; the other part alone goes on")
def _(box):
    a, b = two_folders(box, 120, 120)
    disk = FailingFs(box, b)
    daemon = box.daemon({"a": a, "b": disk.path})
    reader = daemon.reader("a + b", batch=4, slots=2, delay_ms=5, on_error="skip")
    reader.wait_lines(8)
    disk.fail("*", "EIO")
    held = within(20, lambda: daemon.objects("jobs") and daemon.objects("jobs")[0]["hold"], "it is on hold")
    contains(held, disk.path, "EIO")
    equal(len(daemon.read("a", job="alone")), 120, "the other part")
    disk.clear()
    check(reader.good(), joined_samples(a, b))
    equal(daemon.objects("errors"), [], "nothing of it is damage")


@case("a job shows all its datasets; its ranks agree on them, and a part that changes is indexed again for new jobs only")
def _(box):
    a, b = two_folders(box)
    daemon = box.daemon({"a": a, "b": b})
    first = daemon.reader("a + b", world=2, rank=0, batch=4, job="j", delay_ms=20)
    first.wait_lines(4)
    first.process.send_signal(signal.SIGSTOP)  # so that it does not end before the others have asked
    equal(daemon.objects("jobs")[0]["dataset"], "a + b", "dataset")
    daemon.refused("b + a", "dataset", "a + b", world=2, rank=1, batch=4, job="j")
    write(os.path.join(b, "class000", "zzz.jpg"), identity_bytes(7, 99))
    check(daemon.read("a + b", world=2, rank=1, batch=4, job="j"), joined_samples(a, box.path("files-b"))[:31] +
          [sample for sample in samples_of(b) if "zzz" not in sample[0]], world=2, rank=1)
    first.process.send_signal(signal.SIGCONT)
    first.good()
    within(20, lambda: not daemon.objects("jobs"), "the job has ended")
    check(daemon.read("a + b", batch=4), joined_samples(a, b))


@case("a daemon that is stopped or killed: each rank goes on where it was, on the same parts")
def _(box):
    a, b = two_folders(box, 200, 150)
    daemon = box.daemon({"a": a, "b": b})
    for number in (signal.SIGTERM, signal.SIGKILL):
        reader = daemon.reader("a + b", batch=4, delay_ms=3, seed=4, on_restart="wait")
        reader.wait_lines(40)
        daemon.kill() if number == signal.SIGKILL else daemon.stop()
        daemon.start()
        check(reader.good(), joined_samples(a, b), seed=4)


@case("a configuration that drops a part: attached ranks stay, new ones are refused; a name with a plus is a name")
def _(box):
    a, b = two_folders(box)
    daemon = box.daemon({"a": a, "b": b, "x + y": b})
    reader = daemon.reader("a + b", batch=4, delay_ms=20)
    reader.wait_lines(4)
    daemon.datasets = {"a": a, "x + y": b}
    daemon.write_config()
    daemon.signal(signal.SIGHUP)
    within(20, lambda: len(daemon.objects("datasets")) == 2, "the new configuration is in force")
    check(reader.good(), joined_samples(a, b))
    daemon.refused("a + b", 'there is no "b"')
    check(daemon.read("x + y"), samples_of(b))


@case("a user must be allowed to use each part")
def _(box):
    if os.getuid() != 0:
        raise Skip("only root can be several users")
    a, b = two_folders(box)
    group = next(entry.gr_name for entry in grp.getgrall() if entry.gr_gid not in (0, 65534))
    os.chmod(box.folder, 0o755)
    daemon = box.daemon({"a": a, "b": {"path": b, "allow": group}})
    equal(len(daemon.read("a + b")), 51, "root may use both")
    os.chmod(daemon.socket, 0o666)
    before = os.getgroups()
    os.setgroups([])
    os.setegid(61002)
    os.seteuid(61002)
    try:
        client = HandClient(daemon.socket)
        try:
            reply = client.attach("a + b", seconds=0)
        finally:
            client.close()
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(before)
    contains(str(reply), "b", "for members of these groups")


@case("Python: a list of names, the parts with their places, and batches that say where a sample is from")
def _(box):
    need("numpy")
    a, b = two_folders(box)
    daemon = box.daemon({"a": a, "b": b})
    lines = trainer(box, daemon, '''
        with dlclient.Loader(["a", "b"], batch_size=8, pipeline="label; __dataset__") as loader:
            out([list(part) for part in loader.dataset.parts])
            out([[batch.indices.tolist(), batch["__dataset__"].tolist()] for batch in loader])
            out([loader.dataset.name, loader.dataset.classes, len(loader.dataset)])
        with dlclient.Loader("b") as loader:
            out([part.name for part in loader.dataset.parts])
        refused(dlclient.OptionError, lambda: dlclient.Loader([]), "no name")
        refused(dlclient.OptionError, lambda: dlclient.Loader(["a", 7]), "7")
    ''')
    equal([part[0] for part in lines[0]] + [part[2:] for part in lines[0]], ["a", "b", [0, 31], [31, 20]], "parts")
    equal(lines[0][0][1], next(row["digest"] for row in daemon.objects("datasets") if row["name"] == "a"), "digest")
    order = [index for batch in lines[1] for index in batch[0]]
    equal(order, expected_order(51), "order")
    equal([part for batch in lines[1] for part in batch[1]], [int(index >= 31) for index in order], "parts of samples")
    equal(lines[2], ["a + b", ["class000", "class001"], 51], "the whole")
    equal(lines[3], ["b"], "one dataset is its only part")


@case("a state names all parts: it goes on at any place; with another part, or other files in one, it is refused by name")
def _(box):
    need("numpy")
    a, b = two_folders(box)
    daemon = box.daemon({"a": a, "b": b, "c": b})
    first, rest, saved, ended, between = trainer(box, daemon, '''
        with dlclient.Loader(["a", "b"], batch_size=4, pipeline="label") as loader:
            iterator = iter(loader)
            first = [i for _ in range(9) for i in next(iterator).indices.tolist()]
            saved = json.loads(json.dumps(loader.state_dict()))
            rest = [i for batch in iterator for i in batch.indices.tolist()]
            ended = loader.state_dict()
            loader.set_epoch(7)
            last = None
            for batch in loader:
                last = batch.state_dict()
            for value in (first, rest, saved, ended, last):
                out(value)
    ''')
    equal(first + rest, expected_order(51), "order")
    equal([part[0::2] for part in saved["parts"]], [["a", 31], ["b", 20]], "parts of the state")
    equal((ended["epoch"], ended["position"], between["epoch"], between["position"]), (1, 0, 7, 51), "places")
    trainer(box, daemon, f'''
        with dlclient.Loader("  a  +  b", batch_size=3, world_size=2, rank=1, job="w", partition="exact",
                             pipeline="label", state={saved!r}) as loader:
            assert loader.state_dict() == {saved!r}
        with dlclient.Loader("a + c", pipeline="label") as loader:
            refused(dlclient.StateError, lambda: loader.load_state_dict({saved!r}), "dataset", "'a + b'", "'a + c'")
            refused(dlclient.StateError, lambda: loader.load_state_dict({ended!r}, allow_growth=True), "'a + b'")
        with dlclient.Loader("a", pipeline="label") as loader:
            refused(dlclient.StateError, lambda: loader.load_state_dict({saved!r}), "dataset", "'a + b'", "'a'")
    ''')
    for number in range(5):
        write(os.path.join(b, "class000", f"later{number}.jpg"), identity_bytes(number, 99))
    lines = trainer(box, daemon, f'''
        with dlclient.Loader("a + b", batch_size=4, pipeline="label") as loader:
            assert len(loader.dataset) == 56
            refused(dlclient.StateError, lambda: loader.load_state_dict({saved!r}), "dataset b had 20 samples",
                    "now it has 25", "allow_growth")
            refused(dlclient.StateError, lambda: loader.load_state_dict({saved!r}, allow_growth=True), "at an epoch's end",
                    "36 of the 51")
            for state in ({ended!r}, {between!r}):
                loader.load_state_dict(state, allow_growth=True)
                out([loader.epoch, [i for batch in loader for i in batch.indices.tolist()]])
        with dlclient.Loader("b", batch_size=4, pipeline="label") as loader:
            loader.load_state_dict(loader.state_dict(), allow_growth=True)
    ''')
    equal(lines, [[1, expected_order(56, epoch=1)], [8, expected_order(56, epoch=8)]], "the next epoch, of what there is now")


@case("torch's DistributedSampler over a ConcatDataset gives the same indices")
def _(box):
    need("torch")
    a, b = two_folders(box)
    daemon = box.daemon({"a": a, "b": b})
    lines = trainer(box, daemon, '''
        import torch
        from torch.utils.data import ConcatDataset, DistributedSampler
        whole = ConcatDataset([range(31), range(20)])
        for epoch in range(2):
            for rank in range(3):
                sampler = DistributedSampler(whole, num_replicas=3, rank=rank, seed=5)
                sampler.set_epoch(epoch)
                with dlclient.Loader("a + b", batch_size=4, rank=rank, world_size=3, seed=5, job=f"{epoch}{rank}",
                                     pipeline="label") as loader:
                    loader.set_epoch(epoch)
                    out([i for batch in loader for i in batch.indices.tolist()] == list(sampler))
    ''')
    equal(lines, [True] * 6, "as torch")


main()
