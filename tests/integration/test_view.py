#!/usr/bin/env python3
"""Some fields and samples of a dataset, by configuration: `fields` and `split`."""
import hashlib
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, contains, equal, expected_order, identity_pixels, indices, main, png, write
from tars import archive, web


def picture(number):
    return png(6, 5, identity_pixels(number, 6, 5))


def tars(box, n):
    """n samples, each with a picture that is called png or PNG.png, a caption, and a class."""
    members = []
    for number in range(n):
        members += [(f"{number:03d}.{'png' if number % 2 else 'big.png'}", picture(number)),
                    (f"{number:03d}.txt", f"caption {number} \u00e9".encode()), (f"{number:03d}.cls", b"%d" % number)]
    archive(box.path("w", "all.tar"), members)
    return web(box.path("w"))


@case("fields are renamed and merged: pictures of two extensions are one field, and a text is served as text")
def _(box):
    given = tars(box, 20)
    daemon = box.daemon({"all": given, "some": dict(given, fields="image=png|big.png, caption = txt,label=cls,id=__key__")})
    lines = daemon.read("some", pipeline="image: decode(); caption: text; label; id", batch=1, shuffle=False)
    equal(indices(lines), list(range(20)), "samples")
    for line in lines:
        number, fields = line["index"], line["fields"]
        equal(list(fields), ["image", "caption", "label", "id"], "fields")
        equal(fields["image"]["shape"], [5, 6, 3], "the picture's shape")
        equal(fields["image"]["sha256"], hashlib.sha256(identity_pixels(number, 6, 5)).hexdigest(), "pixels")
        equal((fields["caption"]["dtype"], fields["caption"]["text"]), ("text", f"caption {number} \u00e9"), "caption")
        equal(fields["label"]["value"], number, "label")
        equal(fields["id"]["shape"], [3], "length of the key")
    plain = daemon.read("some", pipeline="center_crop(4)", batch=4, limit=1)  # the only picture; numbers come with it
    equal(list(plain[0]["fields"]), ["image", "label"], "fields without a name")
    daemon.refused("all", "several fields", pipeline="center_crop(4)")
    daemon.refused("some", "no field \"png\"", "image, caption, label, id", pipeline="png: decode()")


@case("parts of one folder: ranges, hashes, lists, torch's random_split; each with an order and a resume of its own")
def _(box):
    folder = box.folder_of_pictures("f", 30, n_classes=3)
    names = sorted(os.path.relpath(os.path.join(root, name), folder) for root, _, found in os.walk(folder)
                   for name in found)
    hashed = [i for i, name in enumerate(names)
              if int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") / 2**64 < 0.8]
    write(box.path("list.txt"), (names[7] + "\n" + names[3] + "\n").encode())
    splits = {"train": "0:80%", "val": "80%:", "hash": "hash(0:80%)", "rest": "hash(80%:)", "list": f"list({box.path('list.txt')})",
              "random": "random_split(0.3,0.3,0.4; seed=0)[1]"}
    wanted = {"train": list(range(24)), "val": list(range(24, 30)), "hash": hashed,
              "rest": [i for i in range(30) if i not in hashed], "list": [7, 3],
              "random": [21, 11, 12, 18, 22, 20, 26, 0, 10]}  # what torch 2.x gives
    daemon = box.daemon(dict({name: {"path": folder, "split": text} for name, text in splits.items()}, all=folder))
    pictures = {line["index"]: line["fields"]["image"]["sha256"] for line in daemon.read("all", pipeline="raw")}
    for name, samples in wanted.items():
        lines = daemon.read(name, pipeline="raw", seed=3)
        equal(indices(lines), expected_order(len(samples), seed=3), f"{name}: torch's order of as many samples")
        for line in lines:
            equal(line["fields"]["image"]["sha256"], pictures[samples[line["index"]]], f"{name}: sample {line['index']}")
    for rank in range(2):
        lines = daemon.read("val", pipeline="raw", world=2, rank=rank, seed=1, first_position=2)
        equal(indices(lines), expected_order(6, seed=1, world=2, rank=rank, position=2), "after a resume, of two ranks")


@case("a list that changes while the daemon runs is another dataset at the next attach")
def _(box):
    folder = box.folder_of_pictures("f", 6, n_classes=1)
    names = sorted(os.listdir(os.path.join(folder, "class000")))
    write(box.path("list.txt"), "".join(f"class000/{names[i]}\n" for i in (1, 2)).encode())
    daemon = box.daemon({"d": {"path": folder, "split": f"list({box.path('list.txt')})"}, "all": folder})
    pictures = [line["fields"]["image"]["sha256"] for line in daemon.read("all", pipeline="raw", shuffle=False)]

    def served():
        lines = daemon.read("d", pipeline="raw", shuffle=False)
        return [pictures.index(line["fields"]["image"]["sha256"]) for line in lines]

    def digest():
        return next(row["digest"] for row in daemon.objects("datasets") if row["name"] == "d")

    equal(served(), [1, 2], "samples of the list")
    before = digest()
    write(box.path("list.txt"), "".join(f"class000/{names[i]}\n" for i in (4, 3)).encode())
    equal(served(), [4, 3], "samples of the changed list")
    equal(digest() == before, False, "the digest is the same, so a state of the old samples would be taken")


@case("what is wrong with fields or split is said with what is allowed")
def _(box):
    given = tars(box, 4)
    folder = box.folder_of_pictures("f", 4)
    daemon = box.daemon({"far": {"path": folder, "split": "0:5"}, "odd": {"path": folder, "split": "some"},
                         "kinds": dict(given, fields="x=png|txt"), "typo": dict(given, fields="image=pgn"),
                         "wraps": {"path": folder, "split": "random_split(9223372036854775808,9223372036854775808,4; seed=0)[0]"}})
    daemon.refused("wraps", "lengths with the sum 4")
    daemon.refused("far", "0 to 5 of 4 samples", "there are fewer")
    daemon.refused("odd", "\"some\" is not understood", "0:90%")
    daemon.refused("kinds", "png and txt differ in kind")
    daemon.refused("typo", "no field \"pgn\"", "png, txt, cls")


@case("dlctl look says which fields it cannot show, and shows them under another name")
def _(box):
    write(box.path("d.csv"), b"a b,c\n1,x\n2,y\n")
    daemon = box.daemon({"d": {"path": box.path("d.csv"), "format": "csv"},
                         "named": {"path": box.path("d.csv"), "format": "csv", "fields": "ab=a b, c"}})
    for name, said in (("d", True), ("named", False)):
        daemon.read(name, limit=1, pipeline="c")
        done = daemon.dlctl("look", name, "1")
        equal((done.returncode, "\"a b\" is not shown" in done.stderr, "fields = \"NAME=a b\"" in done.stderr), (0, said, said), name)
        equal(("  ab " in done.stdout, "\"y\"" in done.stdout), (not said, True), done.stdout)


@case("known values are converted also if nothing else of a sample is asked for")
def _(box):
    write(box.path("d.jsonl"), b'{"n": 7, "t": "x"}\n{"n": 300, "t": "y"}\n')
    daemon = box.daemon({"d": {"path": box.path("d.jsonl"), "format": "jsonl"}})
    for pipeline in ("n: to(float32)", "n: to(float32); t"):
        lines = daemon.read("d", pipeline=pipeline, batch=2, shuffle=False)
        equal([(line["fields"]["n"]["dtype"], line["fields"]["n"]["value"]) for line in lines], [("float32", 7), ("float32", 300)], pipeline)
    daemon.refused("d", "300 does not fit uint8", pipeline="n: to(uint8)", batch=2, shuffle=False)


@case("dlctl look shows the first texts of a list, and their number")
def _(box):
    rows = [[], ["one"], ["a", "\u00e9\n\"", ""], [f"t{i}" for i in range(9)], ["x" * 300]]
    write(box.path("d.jsonl"), "".join(json.dumps({"t": row}) + "\n" for row in rows).encode())
    daemon = box.daemon({"d": {"path": box.path("d.jsonl"), "format": "jsonl"}})
    done = daemon.dlctl("look", "d")
    equal((done.returncode, done.stderr), (0, ""), "dlctl look")
    shown = [line.split("t  ", 1)[1].strip() for line in done.stdout.splitlines() if line.startswith("  t ")]
    equal(shown, ["0 texts: []", '1 text: ["one"]', '3 texts: ["a", "\u00e9\\u000a\\"", ""]',
                  "9 texts: [" + ", ".join(f'"t{i}"' for i in range(8)) + ", ...]", '1 text: ["' + "x" * 200 + '"]'], "texts")
    equal([line["fields"]["t"]["texts"] for line in daemon.objects("look", "d", "2", "3")], [rows[2], rows[3][:8]], "as JSON")


@case("dlctl look shows a picture for which slots have no room by default, and what follows a damaged sample")
def _(box):
    for number in range(4):
        side = 4800 if number == 2 else 8
        content = png(side, side, bytes(3 * side * side))
        write(box.path("d", "c", f"{number}.png"), content[:40] if number == 1 else content)
    daemon = box.daemon({"d": box.path("d")})
    done = daemon.dlctl("look", "d", "0", "1", "2", "9", "3")  # perhaps while it is indexed
    equal(done.returncode, 1, "status")
    contains(done.stderr, "sample 1: ", "1.png", 'there is no sample "9"')
    equal([line.split("picture, ")[1] for line in done.stdout.splitlines() if "picture" in line],
          ["8 x 8", "4800 x 4800", "8 x 8"], "sizes")


@case("dlctl datasets NAME shows the fields, dlctl look shows samples and saves their files")
def _(box):
    given = tars(box, 20)
    daemon = box.daemon({"d": dict(given, fields="image=png|big.png, caption=txt, label=cls"), "other": given})
    daemon.read("d", limit=1, pipeline="label")
    rows = daemon.objects("datasets", "d")
    equal([row["name"] for row in rows], ["d"], "datasets")
    equal([(field["field"], field["kind"], field["dtype"], field["shape"], field["stored"]) for field in rows[0]["fields"]],
          [("image", "picture", "bytes", "[-1]", True), ("caption", "bytes", "bytes", "[-1]", True),
           ("label", "number", "int64", "[]", True)], "fields")
    equal((rows[0]["n_shards"], "fields" in daemon.objects("datasets")[0]), (1, False), "shards; no fields without a name")
    done = daemon.dlctl("look", "d", "3", "--save", box.path("saved"), "17")
    equal((done.returncode, done.stderr), (0, ""), "dlctl look")
    contains(done.stdout, "sample 3\n", "picture, 6 x 5", "bytes, 12: \"caption 3 \u00e9\"", "sample 17\n", " 17\n")
    equal(sorted(os.listdir(box.path("saved"))), ["17.caption", "17.image.png", "3.caption", "3.image.png"], "files")
    with open(box.path("saved", "3.image.png"), "rb") as file:
        equal(file.read() == picture(3), True, "the picture's own bytes")
    equal(daemon.dlctl("look", "d").stdout.count("sample "), 5, "samples without INDEX")
    lines = daemon.objects("look", "d", "4")
    equal(lines[0]["fields"]["label"]["value"], 4, "as JSON")
    for arguments, said in ((("d", "20"), "no sample \"20\": their numbers are 0 to 19"), (("none",), 'there is no "none"'),
                            (("d", "-1"), "")):
        done = daemon.dlctl("look", *arguments)
        equal(done.returncode != 0, True, f"look {arguments} is refused")
        contains(done.stderr, said)


if __name__ == "__main__":
    main()
