#!/usr/bin/env python3
"""Datasets of a hub: what its protocol lists and sends, beside what huggingface_hub makes of the same; and what it refuses."""
import hashlib
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import hub_server
import surveys
from harness import Skip, Table, case, check_bytes, check_sequence, contains, equal, main, patience, samples_of
from private import Home
from tars import archive
from staging import PROTOCOL, UNAVAILABLE, Staging, files_of, sha256

TOKEN = "hf_hushhushhush"
FILES = {"README.md": b"# Birds\n", "data/train-00000-of-00002.parquet": b"PAR1" + bytes(range(256)) * 40,
         "data/train-00001-of-00002.parquet": b"PAR1" + bytes(70000), "data/test.parquet": b"PAR1test",
         "data/de ep/\u00e9 #?%41.txt": b"odd", "data/de ep/.hidden.bin": b"h", "shards/x-000.tar": b"t0", "shards/x-001.tar": b"t1"}


def user_of(box, hub, **more):
    return {"HOME": box.path("home"), "HF_ENDPOINT": hub.endpoint, **more}


def environment(box, hub, **more):
    os.makedirs(box.path("home"), exist_ok=True)
    return surveys.environment_of(user_of(box, hub, **more))


def hushed(survey):
    if TOKEN in survey.text + survey.words:
        raise AssertionError(f"the token is told: {survey.text}{survey.words}")
    return survey


def plan(box, hub, *words, options=None, **more):
    """path -> entry."""
    return hushed(surveys.plan(*words, user=user_of(box, hub, **more), **(options or {}))).files


def refused(box, hub, *words, says=(), options=None, **more):
    hushed(surveys.refused(*words, says=says, user=user_of(box, hub, **more), **(options or {})))


def below(folder, files=None):
    return {path[len(folder):]: data for path, data in (files or FILES).items() if path.startswith(folder)}


# ---- listings -------------------------------------------------------------------------------------------------------

@case("a repository, a folder, a file or a pattern is what the tree lists, page by page, with digests, all of one commit")
def _(box):
    table = Table()
    with hub_server.start(page=3, link_to="http://the-hub.invalid") as hub:  # as behind a mirror
        commit = hub.commit("org/birds", FILES)
        hub.tag("org/birds", "v1", commit)
        later = hub.commit("org/birds", {"data/test.parquet": b"PAR1 another", "README.md": None})
        pull = hub.commit("org/birds", {"only.bin": b"x"}, branch="refs/pr/1")
        shards = below("shards/")
        for url, files, expected in (
                ("org/birds@v1", FILES, commit),
                ("org/birds@v1/", FILES, commit),
                (f"org/birds@{commit}/data", below("data/"), commit),
                ("org/birds", {**{path: data for path, data in FILES.items() if path != "README.md"},
                               "data/test.parquet": b"PAR1 another"}, later),
                ("org/birds@v1/data/train-*.parquet", below("data/", {path: FILES[path] for path in FILES if "train-" in path}),
                 commit),
                ("org/birds@v1/**/*.parquet", {path: data for path, data in FILES.items() if path.endswith(".parquet")}, commit),
                ("org/birds@v1/shards/x-{000..001}.tar", shards, commit),
                ("org/birds@v1/data/{test,train-00001-of-00002}.parquet",
                 {"test.parquet": FILES["data/test.parquet"],
                  "train-00001-of-00002.parquet": FILES["data/train-00001-of-00002.parquet"]}, commit),
                ("org/birds@v1/data/de ep/\u00e9 #?%41.txt", {"\u00e9 #?%41.txt": b"odd"}, commit),
                ("org/birds@v1/README.md", {"README.md": FILES["README.md"]}, commit),
                ("org/birds@refs/pr/1/only.bin", {"only.bin": b"x"}, pull),
                ("org/birds@refs%2Fpr%2F1/only.bin", {"only.bin": b"x"}, pull)):
            with table.row(url):
                found = plan(box, hub, "hf://datasets/" + url)
                equal({path: entry["size"] for path, entry in found.items()},
                      {path: len(data) for path, data in files.items()}, "sizes")
                for path, entry in found.items():
                    data = files[path]
                    contains(entry["urls"][0], f"hf://datasets/org/birds@{expected}/", path)
                    known = {"sha256": sha256(data)} if hub_server.is_lfs(path) else {"etag": f'"{hub_server.blob_id(data)}"'}
                    equal({key: entry.get(key) for key in ("sha256", "etag") if key in entry}, known, path)
        with table.row("an archive by its name is one that is unpacked"):
            equal(plan(box, hub, "hf://datasets/org/birds/shards/x-000.tar")["x-000.tar"]["unpack"], True, "unpack")
            equal(plan(box, hub, "hf://datasets/org/birds/shards/x-000.tar", "hf", "auto")["x-000.tar"]["unpack"], False, "not")
    table.done()


@case("what huggingface_hub lists and fetches from the same hub is the same")
def _(box):
    python = os.environ.get("DLP_HUB_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import huggingface_hub"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("no huggingface_hub here: make check-formats has it, and DLP_HUB_PYTHON names a Python that does")
    code = """
import json, os, sys
import huggingface_hub
from huggingface_hub import HfApi, HfFileSystem, snapshot_download
tree = {entry.path: [entry.size, entry.blob_id, entry.lfs and entry.lfs.sha256]
        for entry in HfApi().list_repo_tree("org/birds", repo_type="dataset", recursive=True) if hasattr(entry, "blob_id")}
found = {pattern: sorted(HfFileSystem().glob("datasets/org/birds/" + pattern)) for pattern in sys.argv[2:]}
snapshot_download("org/birds", repo_type="dataset", local_dir=sys.argv[1])
print(json.dumps([tree, found]))
"""
    patterns = ["data/train-*.parquet", "**/*.parquet", "data/*", "*.md"]
    with hub_server.start(page=3) as hub:
        hub.commit("org/birds", FILES)
        hub.hide("org/birds")
        hub.token = TOKEN
        process = subprocess.run([python, "-c", code, box.path("snapshot"), *patterns], check=False, capture_output=True, text=True,
                                 env=environment(box, hub, HF_TOKEN=TOKEN, HF_HUB_DISABLE_TELEMETRY="1"), timeout=patience(120))
        equal(process.returncode, 0, process.stderr[-2000:])
        tree, globs = json.loads(process.stdout)
        ours = plan(box, hub, "hf://datasets/org/birds", HF_TOKEN=TOKEN)
        equal({path: [entry["size"], entry.get("sha256")] for path, entry in ours.items()},
              {path: [size, digest] for path, (size, _, digest) in tree.items()}, "sizes and digests")
        equal({path: entry["etag"] for path, entry in ours.items() if "etag" in entry},
              {path: f'"{blob}"' for path, (_, blob, digest) in tree.items() if not digest}, "blobs")
        for pattern in patterns:
            listed = plan(box, hub, f"hf://datasets/org/birds/{pattern}", HF_TOKEN=TOKEN)
            names = sorted(entry["urls"][0].partition("@")[2].partition("/")[2] for entry in listed.values())
            files = [path.removeprefix("datasets/org/birds/") for path in globs[pattern]]
            equal(names, [path for path in files if path in FILES], pattern)
        staging = Staging(box, "hf://datasets/org/birds")
        staging.run(environment=environment(box, hub, HF_TOKEN=TOKEN))
        theirs = {path: digest for path, digest in files_of(box.path("snapshot")).items() if not path.startswith(".cache/")}
        equal(files_of(staging.path), theirs, "staged, and fetched by huggingface_hub")


# ---- staging --------------------------------------------------------------------------------------------------------

@case("a repository is staged whole, of the commit that was listed, and the token reaches nobody but the hub")
def _(box):
    large = {f"data/part-{number}.bin": os.urandom(3 << 20) for number in range(3)}
    with hub_server.start() as hub:
        commit = hub.commit("org/birds", {**FILES, **large})
        hub.gate("org/birds")
        hub.token = TOKEN
        staging = Staging(box, "hf://datasets/org/birds")
        os.makedirs(box.path("home", ".cache", "huggingface"))
        token = box.path("home", ".cache", "huggingface", "token")
        with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write(TOKEN + "\n")
        done = staging.run(environment=environment(box, hub))
        equal(files_of(staging.path), {path: sha256(data) for path, data in {**FILES, **large}.items()}, "files")
        storage = [request for request in hub.requests if "signed=yes" in request[1]]
        equal([request for request in storage if request[2]], [], "requests to the storage with a token")
        equal({request[2] for request in hub.requests if "signed=yes" not in request[1]}, {f"Bearer {TOKEN}"}, "tokens")
        equal([request for request in hub.asked("/resolve/") if commit not in request[1]], [], "files of another commit")
        for folder, _, names in os.walk(staging.folder):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    equal(TOKEN.encode() in file.read(), False, f"the token in {name}")
        hub.commit("org/birds", {"data/test.parquet": b"PAR1 another", "README.md": b"# Two\n"})
        n_before = len(hub.asked("/resolve/"))
        staging.run(environment=environment(box, hub))
        equal(files_of(staging.path)["data/test.parquet"], sha256(b"PAR1 another"), "after a push")
        equal(len(hub.asked("/resolve/")) - n_before, 2, f"files that were fetched again: {done}")


@case("a pointer in place of a file, a gated repository and a hub that has enough are told in a sentence when files are fetched")
def _(box):
    pointed = hub_server.pointer("0" * 64, 5000)
    table = Table()
    with hub_server.start() as hub:
        for name, files in (("org/pointers", {"a.txt": b"text", "b.dat": pointed}), ("org/gated", FILES), ("org/busy", FILES)):
            hub.commit(name, files)
        hub.gate("org/gated")
        hub.fault("/datasets/org/busy/resolve/*", 429, {"RateLimit": '"resolvers";r=0;t=290'})
        for name, status, says in (("pointers", PROTOCOL, ["b.dat", "Git LFS pointer", "owner"]),
                                   ("gated", None, ["GatedRepo", "is gated: ask for access", "HF_TOKEN"]),
                                   ("busy", UNAVAILABLE, ["429", "asks to wait for 290 s", "with a token", "HF_TOKEN"])):
            with table.row(name):
                staging = Staging(box, f"hf://datasets/org/{name}", name=name)
                contains(str(staging.run(status=status, environment=environment(box, hub))), *says)
    table.done()


# ---- the daemon -----------------------------------------------------------------------------------------------------

@case("a user's daemon serves a repository of the hub by its URL, with his token, and tells him what the hub refuses")
def _(box):
    folder = box.folder_of_files("photos", 30)
    files = {}
    for path in files_of(folder):
        with open(os.path.join(folder, path), "rb") as file:
            files["train/" + path] = file.read()
    with hub_server.start(page=7) as hub:
        hub.commit("org/photos", {**files, "README.md": b"# Photos\n"})
        hub.hide("org/photos")
        hub.token = TOKEN
        home = Home(box, **{"HF_ENDPOINT": hub.endpoint, "HF_TOKEN": TOKEN})
        lines = home.read("hf://datasets/org/photos/train", batch=4)
        check_sequence(lines, 30, batch=4)
        check_bytes(lines, samples_of(folder))
        home.refused("hf://datasets/org/none", "RepoNotFound", "see its name")
        equal(TOKEN in home.log(), False, "the token in the log")
        for parent, _, names in os.walk(home.folder):
            for name in names:
                path = os.path.join(parent, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    with open(path, "rb") as file:
                        equal(TOKEN.encode() in file.read(), False, f"the token in {path}")


@case("where the hub has led one part of a file the next ones go at once, without the token, until that is refused; no log has the signed URL")
def _(box):
    for shard in range(6):
        archive(box.path("shards", f"{shard}.tar"), [(f"{shard}{number:02d}.{what}", bytes([number]) * 30000 if what == "bin" else b"%d" % number)
                                                     for number in range(10) for what in ("bin", "cls")])
    content = {}
    for path in files_of(box.path("shards")):
        with open(box.path("shards", path), "rb") as file:
            content[path] = file.read()
    terms = {"pipeline": "bin; cls", "batch": 4, "seed": 5}
    with hub_server.start() as hub:
        hub.commit("org/shards", content)
        hub.hide("org/shards")
        hub.token = TOKEN
        home = Home(box, HF_ENDPOINT=hub.endpoint, HF_TOKEN=TOKEN, DATALOADERD_PRIVATE="cache_limit=100KiB")
        url = "hf://datasets/org/shards"
        here = home.read(box.path("shards"), **terms)
        equal(home.read(url, **terms), here, "lines")
        n_led, n_sent = len(hub.asked("/resolve/")), len(hub.asked("")) - len(hub.asked("/api/")) - len(hub.asked("/resolve/"))
        equal(home.read(url, **terms, job="again"), here, "lines of a second job")
        equal(len(hub.asked("/resolve/")), n_led, "requests of the hub for files that it has led elsewhere")
        equal(len(hub.asked("")) - len(hub.asked("/api/")) - len(hub.asked("/resolve/")) > n_sent, True, "requests of the storage")
        for data in content.values():
            hub.fault("*" + hashlib.sha256(data).hexdigest() + "*", 403, times=1)
        equal(home.read(url, **terms, job="expired"), here, "lines after the URLs have expired")
        equal(len(hub.asked("/resolve/")) > n_led, True, "the hub was asked again")
        equal([authorization for _, path, authorization in hub.asked("signed=yes") if authorization], [], "tokens at the storage")
        equal("signed" in home.log(), False, "the signed URL in the log")


# ---- refusals -------------------------------------------------------------------------------------------------------

@case("what is not there, hidden, renamed or not as the protocol says is named, with what to do")
def _(box):
    table = Table()
    with hub_server.start() as hub:
        for name in ("org/birds", "org/hidden", "org/old"):
            hub.commit(name, FILES)
        hub.hide("org/hidden")
        hub.rename("org/old", "new/birds")
        for url, says, token in (
                ("org/none", ["EACCES", "hf://datasets/org/none: status 401", "no such repository, or it needs a token", "HF_TOKEN"], None),
                ("org/hidden", ["EACCES", "no such repository, or it needs a token"], None),
                ("org/none", ["ENOENT", "RepoNotFound", "see its name"], TOKEN),
                ("org/birds", ["EACCES", "Invalid credentials", "the token is not valid"], "hf_of_nobody"),
                ("org/birds@nobranch/x", ["ENOENT", "RevisionNotFound", "no such revision", "after the '@'"], None),
                ("org/birds/nofolder/x", ["ENOENT", "no such file or folder"], None),
                ("org/birds/data/*.zip", ["ENOENT", "data/*.zip", "nothing matches"], None),
                ("org/old/data", ["ENOENT", 'is called "new/birds" now', "write hf://datasets/new/birds"], None)):
            with table.row((url, token)):
                hub.token = TOKEN
                refused(box, hub, "hf://datasets/" + url, says=says, **({"HF_TOKEN": token} if token else {}))
        hub.token = None
        for status, headers, body, says in (
                (200, {}, b"<html>", ["EPROTO", "does not say which commit"]),
                (404, {}, b"", ["ENOENT", "404"]),
                (429, {"Retry-After": "300"}, b"", ["EPROTO", "asks to wait for 300 s", "with a token"]),
                (503, {}, b"", ["EPROTO", "503"]),
                (302, {"Location": "file:///etc/passwd"}, b"", ["EPROTO", "http and https alone"])):
            with table.row(("commit", status, body)):
                hub.faults.clear()
                hub.fault("/api/*", status, headers, body)
                refused(box, hub, "hf://datasets/org/birds", says=says)
        for status, headers, body, says in (
                (200, {}, b"[{}]", ["EINVAL", "an entry without type or path"]),
                (200, {"Link": '<http://x/y>; rel="next"'}, b"[]", ["EPROTO", "goes on", "not how"]),
                (200, {"Link": '<http://x/y?recursive=true&expand=false>; rel="next"'}, b"[]", ["EPROTO", "goes on", "not how"]),
                (504, {}, b"", ["ETIMEDOUT", "504"])):
            with table.row(("tree", status, body)):
                hub.faults.clear()
                hub.fault("/api/*/tree/*", status, headers, body)
                refused(box, hub, "hf://datasets/org/birds", says=says)
        with table.row("a storm that passes"):
            hub.faults.clear()
            hub.fault("/api/*", 429, {"Retry-After": "1"}, times=1)
            hub.fault("/api/*/tree/*", 503, times=1)
            equal(len(plan(box, hub, "hf://datasets/org/birds", options={"n_tries": 4})), len(FILES), "files")
    table.done()


@case("the token comes from the environment, its file or the configuration; a file that others may read is refused")
def _(box):
    table = Table()
    with hub_server.start() as hub:
        hub.commit("org/hidden", FILES)
        hub.hide("org/hidden")
        hub.token = TOKEN
        url = "hf://datasets/org/hidden"
        files = {}
        for name, text in (("token", TOKEN + "\n"), ("credentials", f"[{hub.endpoint}]\ntoken = {TOKEN}\n")):
            files[name] = box.path(name)
            with open(os.open(files[name], os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
                file.write(text)
        for more in ({"HF_TOKEN": TOKEN}, {"HUGGING_FACE_HUB_TOKEN": TOKEN}, {"HF_TOKEN_PATH": files["token"]},
                     {"HF_HOME": box.folder}):
            with table.row(list(more)):
                equal(len(plan(box, hub, url, **more)), len(FILES), "files")
        with table.row("the configuration's file"):
            equal(len(plan(box, hub, url, options={"credentials": files["credentials"]})), len(FILES), "files")
        with table.row("another hub's token"):
            n_before = len(hub.requests)
            refused(box, hub, url, options={"credentials": files["credentials"], "endpoint": hub.storage},
                    says=[url, "403"])
            equal([request[2] for request in hub.requests[n_before:]], [None], "tokens")
        os.chmod(files["token"], 0o644)
        with table.row("that others may read"):
            refused(box, hub, url, HF_TOKEN_PATH=files["token"], says=["EACCES", "chmod 600", files["token"]])
        with table.row("endpoint = ... of the configuration"):
            other = {"HF_ENDPOINT": "http://127.0.0.1:9"}
            equal(len(plan(box, hub, url, options={"endpoint": hub.endpoint + "/"}, **other, HF_TOKEN=TOKEN)), len(FILES), "files")
    table.done()


@case("a list from elsewhere may not name a repository; a manifest in one may name files of that repository alone")
def _(box):
    with hub_server.start() as hub:
        hub.commit("org/other", {"a.bin": b"x"})
        hub.commit("org/birds", {"a.bin": b"x", "m.jsonl": b'{"path": "a.bin", "size": 1}\n'})
        equal(plan(box, hub, "hf://datasets/org/birds/m.jsonl", "manifest")["a.bin"]["size"], 1, "size")
        commit = hub.commit("org/birds", {"m.jsonl": b'{"path": "a", "size": 1, "urls": ["hf://datasets/org/other/a.bin"]}\n',
                                          "l.txt": f"{hub.endpoint}/datasets/org/birds/resolve/main/l.txt\n".encode()})
        refused(box, hub, "hf://datasets/org/birds/m.jsonl", "manifest", says=["EACCES", "its own bucket or repository"])
        refused(box, hub, f"{hub.endpoint}/datasets/org/birds/resolve/{commit}/m.jsonl", "manifest",
                says=["EACCES", "its own bucket or repository"])


main()
