#!/usr/bin/env python3
"""Links in a dataset's folder: who may write there reads nothing else of what the daemon may read, unless the configuration
says `links = "follow"`. Every format, since each finds its files in its own way."""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import DLCTL, ROOT, Skip, case, contains, equal, identity_bytes, identity_pixels, main, patience, png, within, write
from packing import pack
from tars import archive, npy
from tfrecords import example, ints, record_file

VECTORS = os.path.join(ROOT, "tests", "vectors")
ALICE, BOB = 40001, 40002
SECRET = "only-of-alice"  # in the names and contents of her files
LEADS_OUT = ("a link leads out of the dataset's folder", 'links = "follow"')


def pictures(folder, n=4):
    for i in range(n):
        write(os.path.join(folder, f"class{i % 2}", f"{SECRET}-{i}.png"), png(9, 7, identity_pixels(i, 9, 7)))


def tars(folder):
    for k in range(2):
        archive(os.path.join(folder, f"x-{k}.tar"), [(f"{SECRET}-{k}{i}.txt", SECRET.encode()) for i in range(2)])


def jsonl(folder):
    write(os.path.join(folder, "rows.jsonl"), b"".join(json.dumps({"text": f"{SECRET} {i}"}).encode() + b"\n" for i in range(4)))


def table(folder):
    write(os.path.join(folder, "rows.csv"), b"text,id\n" + b"".join(b"%s,%d\n" % (SECRET.encode(), i) for i in range(4)))


def lines(folder):
    write(os.path.join(folder, "rows.txt"), f"{SECRET}\n".encode() * 4)


def records(folder):
    write(os.path.join(folder, "x.tfrecord"), record_file(example(n=ints(i)) for i in range(4)))


def array(folder):
    write(os.path.join(folder, "x.npy"), npy("<i8", "(4, 2)", bytes(64)))


def vectors(*names):
    def copy(folder):
        for name in names:
            source = os.path.join(VECTORS, name)
            if os.path.isdir(source):
                shutil.copytree(source, folder)
            else:
                os.makedirs(folder, exist_ok=True)
                shutil.copy(source, folder)
    return copy


def shards(folder):
    pictures(folder + "-source")
    pack(folder + "-source", folder)
    shutil.rmtree(folder + "-source")


def annotated(folder):
    write(os.path.join(folder, "p", "1.png"), png(9, 7, identity_pixels(1, 9, 7)))
    write(os.path.join(folder, "a.json"), json.dumps({"images": [{"id": 1, "file_name": "1.png"}], "annotations": [
        {"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1]}], "categories": [{"id": 1}]}).encode())


# What fills a folder; the keys of the dataset, in which {} is the folder; how many samples it has.
KINDS = {
    "imagefolder": (pictures, {"format": "imagefolder"}, 4),
    "auto": (pictures, {"format": "auto"}, 4),
    "folder": (pictures, {"format": "folder", "pattern": "{class}/{name}.png"}, 4),
    "webdataset": (tars, {"format": "webdataset"}, 4),
    "glob": (tars, {"format": "webdataset", "path": "{}/*.tar"}, 4),
    "braces": (tars, {"format": "webdataset", "path": "{}/x-{0,1}.tar"}, 4),
    "file": (tars, {"format": "webdataset", "path": "{}/x-0.tar"}, 2),
    "jsonl": (jsonl, {"format": "jsonl"}, 4),
    "csv": (table, {"format": "csv"}, 4),
    "text": (lines, {"format": "text"}, 4),
    "tfrecord": (records, {"format": "tfrecord"}, 4),
    "npy": (array, {"format": "npy"}, 4),
    "parquet": (vectors("parquet/lists-delta.parquet"), {"format": "parquet"}, None),
    "hub": (vectors("parquet/hub"), {"format": "parquet", "split": "train"}, 12),
    "arrow": (vectors("arrow/texts.arrow"), {"format": "arrow"}, None),
    "saved": (vectors("arrow/saved"), {"format": "arrow"}, None),
    "mds": (vectors("mds/fixed"), {"format": "mds"}, None),
    "litdata": (vectors("litdata/numbers"), {"format": "litdata"}, None),
    "megatron": (vectors("megatron/small.bin", "megatron/small.idx"), {"format": "megatron", "path": "{}/small"}, None),
    "blend": (vectors("megatron/small.bin", "megatron/small.idx"), {"format": "megatron", "blend": "{}/small", "sequence_length": "2"}, None),
    "packed": (shards, {"format": "packed"}, 4),
    "coco": (annotated, {"format": "coco", "path": "{}/p", "annotations": "{}/a.json"}, 1),
}


def keys_of(kind, folder, **more):
    keys = {key: value.replace("{}", folder) for key, value in KINDS[kind][1].items()}
    return {"path": folder, **keys, **more}


def mirror(source, target, link):
    """The same tree, each file of it a link that link(file's path, path of the link) names."""
    for root, _, names in os.walk(source):
        there = os.path.normpath(os.path.join(target, os.path.relpath(root, source)))
        os.makedirs(there, exist_ok=True)
        for name in names:
            os.symlink(link(os.path.join(root, name), there), os.path.join(there, name))


LINKS = {
    "absolute": lambda path, there: path,
    "relative": os.path.relpath,
    "of-proc": lambda path, there: f"/proc/self/root{path}",
}


def own(folder, uid, mode):
    for root, _, names in os.walk(folder):
        for path in (root, *(os.path.join(root, name) for name in names)):
            os.chown(path, uid, uid, follow_symlinks=False)
    os.chmod(folder, mode)


def two_users(box):
    if os.getuid() != 0:
        raise Skip("only root can be several users")
    os.chmod(box.folder, 0o755)


def as_bob(daemon, *arguments):
    return subprocess.run([DLCTL, "--socket", daemon.socket, "--format", "json", *arguments], check=False, user=BOB, group=BOB,
                          extra_groups=[], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=patience(60), env=daemon.client_environment())


def told_to_bob(daemon, name):
    """All that Bob can learn of a dataset that he cannot read."""
    done = as_bob(daemon, "read", name, "--job", name, "--no-shuffle")
    equal((done.returncode, done.stdout), (1, ""), f"Bob reads {name}: {done.stderr[:600]}")
    contains(done.stderr, *LEADS_OUT)
    return done.stderr + as_bob(daemon, "datasets", name).stdout + \
        as_bob(daemon, "errors", name).stdout + as_bob(daemon, "look", name).stdout


@case("each format that reads files has a row here")
def _(_box):
    told = subprocess.run([DLCTL, "help"], check=True, stdout=subprocess.PIPE, universal_newlines=True, timeout=patience(20)).stdout
    formats = told.partition("Formats of datasets\n")[2].partition("\n\n")[0].split()
    equal(len(formats) > 10 and set(formats) - {keys["format"] for _, keys, _ in KINDS.values()}, {"numbers"}, "formats without a row")


@case("links in a folder that a user may write lead to no file of another user's, in any format, whatever the link is like")
def _(box):
    two_users(box)
    datasets = {}
    for kind, (fill, _, _) in KINDS.items():
        fill(box.path("alice", kind))
        datasets[f"alice-{kind}"] = keys_of(kind, box.path("alice", kind), allow=str(ALICE))
        for word, link in LINKS.items():
            mirror(box.path("alice", kind), box.path("bob", word, kind), link)
            datasets[f"{word}-{kind}"] = keys_of(kind, box.path("bob", word, kind))
    own(box.path("alice"), ALICE, 0o700)
    own(box.path("bob"), BOB, 0o755)
    daemon = box.daemon(datasets, socket_mode="0666")
    for kind in KINDS:
        for word in LINKS:
            told_to_bob(daemon, f"{word}-{kind}")
        equal(as_bob(daemon, "read", f"alice-{kind}").returncode, 1, "Alice's own is not for Bob")


@case("a link to a folder is not entered: no name and no size in it is told, in whatever place a format looks for folders")
def _(box):
    two_users(box)
    alice = box.path("alice")
    pictures(os.path.join(alice, "pictures"))
    tars(os.path.join(alice, "tars"))
    vectors("parquet/hub")(os.path.join(alice, "hub"))
    vectors("arrow/splits")(os.path.join(alice, "splits"))
    bob = {}
    for name in ("class", "deep", "pattern", "star", "hub", "rows", "coco"):
        bob[name] = box.path("bob", name)
        os.makedirs(bob[name])
    os.symlink(os.path.join(alice, "pictures", "class0"), os.path.join(bob["class"], "c"))
    pictures(os.path.join(bob["deep"], "class0"), 2)
    os.symlink(os.path.join(alice, "pictures"), os.path.join(bob["deep"], "class0", "d"))
    os.symlink(os.path.join(alice, "pictures", "class0"), os.path.join(bob["pattern"], "c"))
    os.symlink(os.path.join(alice, "tars"), os.path.join(bob["star"], "t"))
    os.symlink(os.path.join(alice, "hub", "data"), os.path.join(bob["hub"], "data"))
    write(os.path.join(bob["rows"], "rows.jsonl"), json.dumps({"image": f"p/{SECRET}-0.png"}).encode())
    os.symlink(os.path.join(alice, "pictures", "class0"), os.path.join(bob["rows"], "p"))
    write(os.path.join(bob["coco"], "a.json"), json.dumps({"images": [{"id": 1, "file_name": f"p/{SECRET}-0.png"}],
                                                           "annotations": []}).encode())
    os.symlink(os.path.join(alice, "pictures", "class0"), os.path.join(bob["coco"], "p"))
    own(alice, ALICE, 0o700)
    own(box.path("bob"), BOB, 0o755)
    daemon = box.daemon({"class": bob["class"], "deep": bob["deep"],
                         "pattern": {"path": bob["pattern"], "format": "folder", "pattern": "{class}/{name}.png"},
                         "star": {"path": bob["star"] + "/*/*.tar", "format": "webdataset"},
                         "hub": {"path": bob["hub"], "format": "parquet", "split": "train"},
                         "rows": {"path": bob["rows"], "format": "jsonl", "files": "image"},
                         "coco": {"path": bob["coco"], "format": "coco", "annotations": "a.json"}}, socket_mode="0666")
    for name in bob:
        said = told_to_bob(daemon, name)
        if name not in ("deep", "rows", "coco"):  # where Bob has written the name himself
            equal(SECRET in said, False, f"a name in Alice's folder: {said}")


@case("files that the configuration names, of a split, a join, annotations: a link in their place tells nothing of what it leads to")
def _(box):
    two_users(box)
    write(box.path("alice", "secret"), f"{SECRET}\n".encode())
    for folder in ("in", "beside"):
        table(box.path("bob", folder))
        annotated(box.path("bob", folder, "c"))
    for place in ("in", "beside"):
        os.symlink(box.path("alice", "secret"), box.path("bob", place, "l"))
    own(box.path("alice"), ALICE, 0o700)
    own(box.path("bob"), BOB, 0o755)
    datasets = {}
    for place in ("in", "beside"):
        file, rows = box.path("bob", place, "l"), {"path": box.path("bob", "in", "rows.csv"), "format": "csv"}
        datasets[f"split-{place}"] = {**rows, "split": f"list({file})"}
        datasets[f"coco-{place}"] = {"path": box.path("bob", "in", "c", "p"), "format": "coco", "annotations": file}
    datasets["join"] = {**rows, "join": "l(id, class)"}
    daemon = box.daemon(datasets, socket_mode="0666")
    for name in datasets:
        equal(SECRET in told_to_bob(daemon, name), False, f"{name}: what is in Alice's file")


@case("a file or a folder that is replaced by a link while it is served is refused where it is read, by io_uring and by threads")
def _(box):
    two_users(box)
    pictures(box.path("alice"))
    for reader in ("auto", "threads"):
        replaced = {name: box.path(f"bob-{reader}", name) for name in ("class0", f"class1/{SECRET}-1.png")}
        shutil.copytree(box.path("alice"), box.path(f"bob-{reader}"))
        own(box.path(f"bob-{reader}"), BOB, 0o755)
        daemon = box.daemon({"d": box.path(f"bob-{reader}")}, reader=reader)
        held = daemon.reader("d", job="held", shuffle=False, slots=2, delay_ms=50, epochs=1000000, on_error="skip")
        held.wait_lines(4)
        for name, path in replaced.items():
            os.rename(path, box.path("away"))
            os.symlink(box.path("alice", name), path)
            reader = daemon.reader("d", job=name, shuffle=False)
            equal(reader.finish()[0], 1, "exit status")
            contains(reader.errors(), *LEADS_OUT)
            os.unlink(path)
            os.rename(box.path("away"), path)
        held.process.terminate()


@case("a stream waits for a shard that is a link out of its folder, says so, and goes on when it is a file")
def _(box):
    tars(box.path("elsewhere"))
    os.makedirs(box.path("d"))
    shutil.copy(box.path("elsewhere", "x-0.tar"), box.path("d"))
    os.symlink(box.path("elsewhere", "x-1.tar"), box.path("d", "x-1.tar"))
    write(box.path("d", "_SUCCESS"), b"")
    daemon = box.daemon({"d": {"path": box.path("d"), "format": "webdataset", "stream": "yes"}})
    reader = daemon.reader("d", pipeline="txt", shuffle=False)
    within(20, lambda: LEADS_OUT[0] in daemon.objects("datasets")[0]["text"], "what it waits for")
    os.unlink(box.path("d", "x-1.tar"))
    shutil.copy(box.path("elsewhere", "x-1.tar"), box.path("d"))
    equal(len(reader.good()), 4, "samples")


@case("with links = \"follow\" every link is followed; without it those that stay inside are, and the folder itself may be a link")
def _(box):
    datasets, wanted = {}, {}
    for kind, (fill, _, n) in KINDS.items():
        fill(box.path("there", kind))
        mirror(box.path("there", kind), box.path("linked", kind), LINKS["relative"])
        datasets[f"follow-{kind}"] = keys_of(kind, box.path("linked", kind), links="follow")
        os.symlink(box.path("there", kind), box.path(f"to-{kind}"))
        datasets[f"root-{kind}"] = keys_of(kind, box.path(f"to-{kind}"))
        wanted[f"follow-{kind}"] = wanted[f"root-{kind}"] = n
    pictures(box.path("inside", "class0"))
    os.symlink("class0/class1", box.path("inside", "c1"))
    os.symlink(f"../class0/class1/../class1/{SECRET}-1.png", box.path("inside", "class0", "up.png"))
    tars(box.path("inside-tars", ".store"))
    os.symlink(".store/x-0.tar", box.path("inside-tars", "x-0.tar"))
    datasets.update({"inside": box.path("inside"), "inside-tars": {"path": box.path("inside-tars"), "format": "webdataset"}})
    wanted.update({"inside": 7, "inside-tars": 2})
    os.symlink(box.path("inside", "class0"), box.path("inside", "absolute"))
    daemon = box.daemon(datasets)
    daemon.refused("inside", *LEADS_OUT, box.path("inside", "absolute"), "or is absolute", "make the link relative (ln -sr)")
    os.unlink(box.path("inside", "absolute"))
    for name, n in wanted.items():
        daemon.dlctl("read", name, "--job", name, "--limit", "1")  # opens it
        told = daemon.objects("datasets", name)[0]
        equal((told["state"], told["n_samples"] if n is None else n), ("ready", told["n_samples"]), f"{name}: {told}")
        if name in ("follow-imagefolder", "root-imagefolder", "inside", "inside-tars", "follow-webdataset", "follow-hub"):
            pipeline = {"hub": "label", "tars": "txt", "webdataset": "txt"}.get(name.rpartition("-")[2], "raw")
            equal(len(daemon.read(name, pipeline=pipeline)), n, f"samples of {name}")


main()
