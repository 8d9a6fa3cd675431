#!/usr/bin/env python3
"""What a path names elsewhere: one object of each kind of origin, whatever it is called; and what it is taken for."""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import hub_server
import s3_server
from harness import Skip, Table, case, contains, equal, main, write
from private import Home
from tars import archive
from web_origin import Nginx, noise

VECTORS = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors"))


def make_files(folder):
    """One of each: name -> (path, the pipeline that reads it)."""
    write(os.path.join(folder, "x.jsonl"), b"".join(json.dumps({"text": f"line {n}", "path": f"{n}.wav"}).encode() + b"\n" for n in range(50)))
    shutil.copy(os.path.join(VECTORS, "parquet", "nested-plain.parquet"), os.path.join(folder, "x.parquet"))
    archive(os.path.join(folder, "x.tar"), [(f"{n:03d}.{what}", noise(n, 2000) if what == "bin" else b"%d" % n)
                                            for n in range(20) for what in ("bin", "cls")])
    return {"x.jsonl": {"pipeline": "text"}, "x.parquet": {}, "x.tar": {"pipeline": "bin; cls"}}


def read(home, path, terms):
    return home.read(path, batch=4, seed=7, epochs=2, **terms)


@case("one object is a dataset: of a web server, of a store, of a hub, and JSON Lines are data unless they are a manifest")
def _(box):
    folder = box.path("origin", "d")
    os.makedirs(folder)
    files, table = make_files(folder), Table()
    server = Nginx(box, box.path("origin"))
    try:
        store = s3_server.start(box.path("store"))
    except s3_server.Absent as absent:
        raise Skip(str(absent)) from None
    box.releases.append(store.stop)
    content = {}
    for name in files:
        with open(os.path.join(folder, name), "rb") as file:
            content[name] = file.read()
        store.put("bucket", "d/" + name, content[name])
    with hub_server.start() as hub:
        hub.commit("org/x", content)
        home = Home(box, AWS_ENDPOINT_URL=store.endpoint, AWS_ACCESS_KEY_ID=store.access_key,
                    AWS_SECRET_ACCESS_KEY=store.secret_key, AWS_REGION="us-east-1", HF_ENDPOINT=hub.endpoint)
        for name, terms in files.items():
            with table.row(name):
                here = read(home, os.path.join(folder, name), terms)
                for url in (server.url("d/" + name), "s3://bucket/d/" + name, "hf://datasets/org/x/" + name):
                    equal(read(home, url, terms), here, "what is read of " + url)
        with table.row("a manifest"):
            write(box.path("origin", "m.jsonl"), json.dumps({"path": "d/x.jsonl", "size": len(content["x.jsonl"])}).encode() + b"\n")
            equal(read(home, server.url("m.jsonl"), files["x.jsonl"]),
                  read(home, os.path.join(folder, "x.jsonl"), files["x.jsonl"]), "what it names")
        with table.row("what is not there"):
            contains(home.refused("s3://bucket/d/y.parquet"), "there is no such object, and nothing below it")
            write(box.path("origin", "no.jsonl"), b"<html>\n")
            contains(home.refused(server.url("no.jsonl")), "HTML")
    table.done()


main()
