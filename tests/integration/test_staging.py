#!/usr/bin/env python3
"""One node: what is at the origin comes to the disk, once, whole, and visible only then."""
import glob
import io
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import time
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

import faulty_server  # noqa: E402
from pyclient import trainer  # noqa: E402
import s3_server  # noqa: E402
from harness import (DLCTL, VARIANT, Skip, Table, case, contains, equal, main, patience, samples_of,  # noqa: E402
                     sha256_of, within, write)
from staging import (CONFIG, OK, PROTOCOL, OSERR, TEMPFAIL, UNAVAILABLE, Staging, files_of, make_files, photos_sizes,  # noqa: E402
                     write_manifest)

MIB = 1 << 20


def source_of(box, sizes=None, name="origin", seed=1):
    return make_files(box.path(name), sizes or photos_sizes(), seed)


def without(files, *names):
    return {path: digest for path, digest in files.items() if path not in names}


def size_of(folder):
    return sum(os.path.getsize(os.path.join(parent, name)) for parent, _, names in os.walk(folder) for name in names)


# ---- without a configured daemon -------------------------------------------------------------------------------------

# What one thread says or decides, and files that are fetched as in other cases: nothing for the thread sanitizer.
ONE_THREAD = ("tsan",)


@case("dlctl stage without a configuration says what to write, by the dataset's name or path, and what it says works", without=ONE_THREAD)
def _(box):
    folder = source_of(box)
    manifest = write_manifest(folder)
    env = dict(os.environ, HOME=box.path("home"), XDG_CACHE_HOME=box.path("cache"))

    def stage(config, dataset, status):
        done = subprocess.run([DLCTL, "stage", "--config", config, dataset], env=env, check=False, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=patience(60))
        equal(done.returncode, status, done.stderr)
        return done.stderr

    said = stage(box.path("none.conf"), "photos", CONFIG)
    contains(said, box.path("none.conf"), "No such file", "--config FILE")
    section = re.search(r'dataset "photos" \{.*?\}', said)[0]
    path = box.path("data", "photos")
    os.makedirs(os.path.dirname(path))
    write(box.path("c.conf"), section.replace("/data/photos", path)
          .replace("https://HOST/photos/manifest.jsonl", f"file://{manifest}").encode())
    stage(box.path("c.conf"), "photos", OK)
    equal(files_of(path), without(files_of(folder), "manifest.jsonl"), "files")
    contains(stage(box.path("none.conf"), "/some/where/birds", CONFIG), 'dataset "birds" { path = "/some/where/birds" origin = ')
    contains(stage(box.path("c.conf"), "photo", CONFIG), 'there is no dataset "photo" (did you mean "photos"?)', 'dataset "photo" {')


# ---- origins --------------------------------------------------------------------------------------------------------

@case("a manifest's files are staged once, verified, stamped, and served under the dataset's path")
def _(box):
    folder = source_of(box, dict(photos_sizes(), **{"class1/large.jpg": 9 * MIB + 5, "class0/empty.txt": 0}))
    write_manifest(folder)
    with faulty_server.start(folder) as server:
        staging = Staging(box, server.url("manifest.jsonl"))
        equal(staging.stamp(), None, "a stamp before")
        done = staging.run()
        equal(done.result, "staged", done.text)
        equal(files_of(staging.path), without(files_of(folder), "manifest.jsonl"), "files")
        stamp = staging.stamp()
        equal((stamp["dataset"], stamp["n_files"]), ("photos", 62), "the stamp")
        n_sent = server.total()["bytes"]
        if n_sent > 1.01 * size_of(folder):
            raise AssertionError(f"{n_sent} bytes left the origin for {size_of(folder)}")

        server.reset()
        before = os.stat(os.path.join(staging.state, "stamp"))
        done = staging.run()  # nothing has changed
        equal(done.result, "up-to-date", done.text)
        equal(os.stat(os.path.join(staging.state, "stamp")).st_ino, before.st_ino, "the stamp is left alone")
        os.unlink(staging.path)
        equal(staging.run().result, "staged", "the link was gone")
        server.reset()
        equal(staging.run().result, "up-to-date", "the link is there again")
        equal(server.total()["bytes"], os.path.getsize(os.path.join(folder, "manifest.jsonl")), "bytes sent again")
        equal(staging.stamp()["version"], stamp["version"], "version")


@case("who reads a dataset whose staging failed is told why, waits, and is served after the next run")
def _(box):
    folder = source_of(box)
    wrong = write_manifest(folder, "wrong.jsonl", **{"class0/0-0000.jpg": {"sha256": "0" * 64}})
    shown = {"away": "nowhere.jsonl: No such file", "sum": "SHA-256 should be 0000", "program": "command ended with status 3: no luck"}
    stagings = {"away": Staging(box, "file://" + box.path("nowhere.jsonl"), name="away"),
                "sum": Staging(box, "file://" + wrong, name="sum"),
                "program": Staging(box, "file://" + folder, name="program", format="jsonl", prepare="command: echo no luck >&2; exit 3")}
    for staging in stagings.values():
        equal(staging.run(status=None).result, "failed", staging.name)
    daemon = box.daemon({name: staging.dataset() for name, staging in stagings.items()})
    for name, words in shown.items():
        reader = daemon.reader(name)
        within(10, lambda: words in reader.errors(), f"{name}: {reader.errors()}")
        contains(reader.errors(), "its staging failed", "waits for one that succeeds", f"dlctl stage {name}")
        contains(daemon.dlctl("datasets", name).stdout, "not staged", words)
        equal(reader.process.poll(), None, "it waits")
    write_manifest(folder)
    last = daemon.reader("sum", limit=1)
    stagings["sum"].write_config(origin="file://" + os.path.join(folder, "manifest.jsonl"))
    stagings["sum"].run()
    equal(len(last.good()), 1, "batches after the staging that succeeded")


@case("a Loader without a progress function says what it waits for, and for how long")
def _(box):
    staging = Staging(box, "file://" + box.path("nowhere.jsonl"), name="away")
    equal(staging.run(status=None).result, "failed", "staging")
    for said in trainer(box, box.daemon({"away": staging.dataset()}), """
            class Lines(logging.Handler):
                def emit(self, record):
                    raise RuntimeError(record.getMessage())
            logging.getLogger("dlclient").addHandler(Lines(logging.WARNING))
            try:
                dlclient.Loader("away", open_timeout=100)
            except RuntimeError as warning:
                out(str(warning))
            refused(dlclient.DaemonTimeout, lambda: dlclient.Loader("away", open_timeout=0.5), "staging failed", "nowhere.jsonl")
        """):
        contains(said, "waiting (open_timeout=100 s)", "nowhere.jsonl: No such file", "dlctl stage away")


@case("large files come in turns, so that several are hashed side by side; beside an archive, one after the other")
def _(box):
    folder = source_of(box, {f"class0/{name}.jpg": 8 * MIB + 5 for name in "abcde"})  # three chunks each
    write_manifest(folder)
    with faulty_server.start(folder) as server:
        def order(**settings):
            server.reset()
            staging = Staging(box, server.url("manifest.jsonl"), connections=1, **settings)
            staging.run()
            return staging, "".join(path[len("/class0/")] for _, _, path, _, _ in server.requests() if path.endswith("jpg"))

        staging, came = order(name="turns")
        equal(came, "abcdabcdabcdeee", "the order of requests")
        equal(files_of(staging.path), without(files_of(folder), "manifest.jsonl"), "files")
        with tarfile.open(os.path.join(folder, "class1.tar"), "w") as tar:
            tar.add(os.path.join(folder, "class0", "a.jpg"), "class1/f.jpg")
        write_manifest(folder)
        staging, came = order(name="archive", unpack="yes")
        equal(came, "aaabbbcccdddeee", "the order of requests beside an archive")
        equal(len(files_of(staging.path)), 6, "files")


@case("a folder, a list of URLs, a tar, a tar.gz, a tar.xz and a zip give the same files")
def _(box):
    folder = source_of(box)
    files = files_of(folder)
    with tarfile.open(box.path("a.tar"), "w") as tar:
        tar.add(folder, ".")
    for kind in ("gz", "xz", "bz2"):
        with tarfile.open(box.path(f"a.tar.{kind}"), f"w:{kind}") as tar:
            tar.add(folder, ".")
    with zipfile.ZipFile(box.path("a.zip"), "w") as archive:
        for path in files:
            archive.write(os.path.join(folder, path), path)
    table = Table()
    with faulty_server.start(box.folder) as server:
        with open(box.path("urls.txt"), "w", encoding="utf-8") as lines:
            lines.writelines(server.url("origin/" + path) + "\n" for path in files)
        origins = {"folder": "file://" + folder, "list": server.url("urls.txt"), "manifest by file": None}
        write_manifest(folder)
        origins["manifest by file"] = "file://" + os.path.join(folder, "manifest.jsonl")
        for name in ("a.tar", "a.tar.gz", "a.tar.xz", "a.tar.bz2", "a.zip"):
            origins[name] = server.url(name)
            origins["file " + name] = "file://" + box.path(name)
        for number, (what, origin) in enumerate(origins.items()):
            with table.row(what):
                staging = Staging(box, origin, name=f"d{number}")
                done = staging.run()
                equal(done.result, "staged", done.text)
                found = without(files_of(staging.path), "manifest.jsonl")
                equal(found, files, "files")
    table.done()


@case("files that are no dataset of the configured format are staged all the same, with a word about it", without=ONE_THREAD)
def _(box):
    folder = source_of(box, {"a.bin": 10, "b/c.bin": 5 * MIB, "b/d/e.txt": 0})
    staging = Staging(box, "file://" + folder)
    done = staging.run()
    equal((done.result, files_of(staging.path), staging.stamp()["index"]), ("staged", files_of(folder), ""), "files")
    contains(done.text, "without an index")
    equal(staging.run().result, "up-to-date", "the second run")
    daemon = box.daemon({"photos": staging.dataset()})
    daemon.refused("photos", "class")


@case("what is unpacked leaves no archive behind, and a second run fetches nothing")
def _(box):
    folder = source_of(box)
    with tarfile.open(box.path("photos.tar.gz"), "w:gz") as tar:
        tar.add(folder, ".")
    with faulty_server.start(box.folder) as server:
        staging = Staging(box, server.url("photos.tar.gz"))
        staging.run()
        n_left = size_of(staging.state)
        if n_left > 1.2 * size_of(folder) + MIB:
            raise AssertionError(f"{n_left} bytes are kept for {size_of(folder)}")
        server.reset()
        equal(staging.run().result, "up-to-date", "the second run")
        equal(server.total()["bytes"], 0, "bytes sent again")


@case("a file that is swapped for a link to somebody else's while the folder is staged is never published")
def _(box):
    secret, private, n = "private words of somebody else. ", box.path("private"), 8 * MIB
    sizes = {f"class0/{number:02d}.bin": n for number in range(40)}
    folder = make_files(box.path("origin"), sizes)
    with open(private, "w", encoding="ascii") as file:
        file.write(secret * (n // len(secret)))
    for path in [private] + [os.path.join(folder, name) for name in sizes]:
        os.utime(path, ns=(1, 1))  # the same size and time, as an attacker would make it
    staging, process = stopped_half_way(box, "file://" + folder, n, n * len(sizes) // 2)
    for name in sizes:
        os.symlink(private, box.path("link"))
        os.rename(box.path("link"), os.path.join(folder, name))
    process.send_signal(signal.SIGCONT)
    done = staging.finish(process, status=None)
    equal(that_hold(secret, box.path("data"), staging.folder), [], "files with another user's words")
    equal(done.returncode != 0, True, str(done))
    contains(done.text, "class0/", "it leads out of the folder of the origin")


def stopped_half_way(box, origin, n_least, n_most):
    """A staging that is stopped with more than n_least and less than n_most bytes on the disk. A busy machine can take the
    moment away from us, so that it is through before it is stopped: then the next one begins."""
    for number in range(20):
        staging = Staging(box, origin, name=f"photos{number}")
        process = staging.start()
        within(60, lambda: size_of(staging.state) > n_least or process.poll() is not None, "the first files are there")
        if process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            if size_of(staging.state) < n_most:
                return staging, process
            process.send_signal(signal.SIGCONT)
        staging.finish(process)
        shutil.rmtree(staging.folder)
    raise AssertionError("the staging was never seen half way")


def that_hold(secret, *folders):
    """The files below the folders that hold these bytes."""
    found = []
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for name in names:
                with open(os.path.join(parent, name), "rb") as file:
                    if secret.encode() in file.read():
                        found.append(os.path.join(parent, name))
    return found


@case("what signs a URL is in no file that a staging leaves, in no message, and in nothing that the daemon says", without=ONE_THREAD)
def _(box):
    secret = "hush-7f3a"
    folder = source_of(box)
    files = files_of(folder)
    with tarfile.open(os.path.join(folder, "more.tar"), "w") as tar:
        tar.add(os.path.join(folder, next(iter(files))), "more/one.jpg")
    with faulty_server.start(folder) as server:
        changes = {path: {"urls": [f"{server.url(path)}?X-Amz-Signature={secret}", f"{server.url(path)}?sig={secret}#{secret}"]}
                   for path in [*files, "more.tar"]}
        write_manifest(folder, **changes)
        origin = f"{server.url('manifest.jsonl')}?token={secret}"
        table = Table()
        for name, keys in (("plain", {"unpack": "yes"}), ("packed", {"pack": True})):
            with table.row(name):
                staging = Staging(box, origin, name=name, **keys)
                kept = (os.path.dirname(staging.path), )
                server.fault("/" + next(iter(files)), "status", code=404)
                failed = staging.run(status=None)
                equal(secret in failed.text, False, f"a failed run says {failed.text}")
                equal(that_hold(secret, *kept), [], "files of a failed run")
                server.clear()
                process = staging.start()
                within(60, lambda: process.poll() is not None or glob.glob(os.path.join(staging.state, "*.journal")),
                       "the run is under way")
                process.kill()
                process.wait()
                equal(that_hold(secret, *kept), [], "files of a killed run")
                done = staging.run()
                equal(secret in done.text, False, f"a run says {done.text}")
                server.reset()
                equal(staging.run("--verify").result, "up-to-date", "the second run")
                equal(server.total()["requests"], 1, "requests of the second run: the manifest's")
                equal(that_hold(secret, *kept), [], "files")
                daemon = box.daemon({name: staging.dataset()})
                within(10, lambda: daemon.objects("datasets")[0]["state"] == "ready", "it is served")
                equal([secret in text for text in (daemon.dlctl("datasets").stdout, daemon.dlctl("status").stdout,
                                                   daemon.log())], [False] * 3, "what the daemon says")
    table.done()


@case("an object store's prefix, signed, in pages; credentials that others may read are refused", without=ONE_THREAD)
def _(box):
    try:
        server = s3_server.start(box.path("store"))
    except s3_server.Absent as reason:
        raise Skip(str(reason)) from None
    box.cleanups.append(server.stop)
    folder = source_of(box)
    for path in files_of(folder):
        with open(os.path.join(folder, path), "rb") as file:
            server.put("bucket", "my train/" + path, file.read())
    server.put("bucket", "other/x.jpg", b"not of the dataset")
    secrets = box.path("credentials")
    server.credentials(secrets)
    staging = Staging(box, "s3://bucket/my train/", endpoint=server.endpoint, credentials=secrets)
    os.chmod(secrets, 0o644)
    contains(staging.run(status=None).text, secrets, "chmod 600")
    os.chmod(secrets, 0o600)
    done = staging.run()
    equal((done.result, files_of(staging.path)), ("staged", files_of(folder)), "files")
    for text in (done.text, json.dumps(staging.stamp()), open(staging.config, encoding="utf-8").read()):
        equal(server.secret_key in text, False, "the secret is shown")
    equal(staging.run().result, "up-to-date", "the second run")


@case("a blank is a part of a key; in other URLs it is refused with how to write it", without=ONE_THREAD)
def _(box):
    staging = Staging(box, "s3://bucket/my train/", endpoint="http://127.0.0.1:1")
    equal("blank" in staging.run(status=None).text, False, "a key")
    for url in ("http://host/my train/x.tar", "file:///my train", "s3:// bucket/x"):
        staging.write_config(origin=url)
        contains(staging.run(status=78).text, "blank")


@case("root stages as the user whose folder it is, so that this user's next staging finds its own files", without=ONE_THREAD)
def _(box):
    if os.getuid() != 0:
        raise Skip("only root can stage for somebody else")
    user = 61001
    os.chmod(box.folder, 0o755)
    staging = Staging(box, "file://" + source_of(box))
    os.chown(os.path.dirname(staging.path), user, user)
    contains(staging.run().text, str(user), os.path.dirname(staging.path))
    equal(staging.run().result, "up-to-date", "root's")
    for folder, names, files in os.walk(os.path.dirname(staging.path)):
        for name in names + files:
            equal(os.lstat(os.path.join(folder, name)).st_uid, user, f"who has {os.path.join(folder, name)}")
    write(os.path.join(box.path("origin"), "class0", "new.jpg"), b"new")
    equal(staging.run(program=["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]).result, "staged", "the user's")
    equal(staging.run().result, "up-to-date", "root's again")


@case("what is staged of a dataset with `allow` is for its user alone, also what an earlier run left open; else for everybody", without=ONE_THREAD)
def _(box):
    os.makedirs(box.path("origin"))
    with tarfile.open(box.path("origin", "x.tar"), "w") as tar:
        for name, mode in (("a/program", 0o755), ("a/text", 0o644)):
            info = tarfile.TarInfo(name)
            info.size, info.mode = 4, mode
            tar.addfile(info, io.BytesIO(b"text"))
    folder = source_of(box, name="pictures")
    origins = {"archive": dict(origin="file://" + box.path("origin", "x.tar")),
               "files": dict(origin="file://" + write_manifest(folder)),
               "packed": dict(origin="file://" + write_manifest(folder), pack="yes")}

    def modes(staging):
        state = os.path.join(os.path.dirname(staging.path), f".{staging.name}.staged")
        return {path: stat.S_IMODE(os.lstat(path).st_mode) for parent, folders, files in os.walk(state)
                for path in (parent, *(os.path.join(parent, name) for name in files))}

    for name, origin in origins.items():
        staging = Staging(box, name=name, **origin)
        before = os.umask(0o022)
        staging.run()
        open_to_all = modes(staging)
        equal(set(open_to_all.values()) <= {0o755, 0o644}, True, f"{name}: {open_to_all}")
        staging.write_config(allow="4242")
        staging.run()
        equal(min(modes(staging).items())[1], 0o700, f"{name}: the state folder of an earlier run")
        closed = Staging(box, name=name, folder=box.path("closed-" + name), allow="4242", **origin)
        closed.run()
        os.umask(before)
        secret = modes(closed)
        equal({mode & 0o077 for path, mode in secret.items() if not path.endswith(".readers")}, {0}, f"{name}: {secret}")
        equal(len(secret) > 4, True, "files")
        if name == "archive":
            equal(next(mode for path, mode in secret.items() if path.endswith("/program")), 0o700, "a program of the user")


@case("links of an archive become files, also where they come before what they lead to, and below a path with links")
def _(box):
    folder = source_of(box)
    link = os.path.join(folder, "class0", "0-aaaa.jpg")
    os.symlink("../" + BAD, link)
    with tarfile.open(box.path("photos.tar"), "w") as tar:
        tar.add(link, "class0/0-aaaa.jpg")
        for path in files_of(folder):
            if path != "class0/0-aaaa.jpg":
                tar.add(os.path.join(folder, path), path)
    os.makedirs(box.path("disk", "deep"))
    os.symlink(box.path("disk", "deep"), box.path("data"))
    staging = Staging(box, "file://" + box.path("photos.tar"), path=box.path("data", "photos"))
    staging.run()
    equal(files_of(staging.path), files_of(folder), "files")
    equal(os.path.islink(os.path.join(staging.path, "class0/0-aaaa.jpg")), False, "a link is left")


@case("what was unpacked is mended, too: the archive comes again if nobody has the file")
def _(box):
    folder = source_of(box)
    with tarfile.open(box.path("photos.tar"), "w") as tar:
        tar.add(folder, ".")
    with faulty_server.start(box.folder) as server:
        staging = Staging(box, server.url("photos.tar"))
        staging.run()
        with open(os.path.join(staging.path, BAD), "r+b") as file:
            file.write(b"damage")
        done = staging.run("--verify")
        contains(done.text, os.path.basename(BAD))
        equal(files_of(staging.path), files_of(folder), "files")


# ---- what goes wrong at the origin ----------------------------------------------------------------------------------

BAD = "class1/1-0007.jpg"


@case("whatever is wrong with a file: it is named, nothing is stamped, the rest is kept, and running again continues", without=ONE_THREAD)
def _(box):
    folder = source_of(box)
    write_manifest(folder)
    expected = without(files_of(folder), "manifest.jsonl")
    faults = [("wrong-bytes", {"at": 100}, "SHA-256"), ("short", {"by": 10}, ""), ("longer", {"by": 10}, ""),
              ("status", {"code": 404}, "404"), ("status", {"code": 403}, "403"),
              ("html", {}, "html"), ("status", {"code": 500}, "500"), ("gzip", {}, "")]
    table = Table()
    with faulty_server.start(folder) as server:
        for number, (kind, how, word) in enumerate(faults):
            with table.row((kind, how)):
                server.clear()
                server.fault("/" + BAD, kind, **how)
                staging = Staging(box, server.url("manifest.jsonl"), name=f"d{number}", stall_timeout=10)
                done = staging.run(status=None)
                equal(done.returncode in (PROTOCOL, UNAVAILABLE), True, f"exit code {done.returncode}: {done}")
                contains(done.text, os.path.basename(BAD), word)
                equal((staging.stamp(), staging.version()), (None, None), "stamp and version after a fault")
                server.clear()
                server.reset()
                equal(staging.run().result, "staged", "the second run")
                equal(files_of(staging.path), expected, "files")
                most = os.path.getsize(os.path.join(folder, "manifest.jsonl")) + 5 * MIB
                if server.total()["bytes"] > most:
                    raise AssertionError(f"{server.total()['bytes']} bytes were sent again")
    table.done()


@case("an origin that fails now and then costs time, not the run")
def _(box):
    folder = source_of(box)
    write_manifest(folder)
    with faulty_server.start(folder) as server:
        server.fault("*", "status", code=500, times=5)
        server.fault("/class0/*", "status", code=429, retry_after="1", times=3)
        server.fault("/class1/*", "cut", at=1000, times=10)
        server.fault("/class2/*", "reset", at=10, times=4)
        staging = Staging(box, server.url("manifest.jsonl"))
        equal(staging.run().result, "staged", "result")
        equal(files_of(staging.path), without(files_of(folder), "manifest.jsonl"), "files")


@case("a file that is bad at one mirror is taken from the next")
def _(box):
    folder = source_of(box)
    mirror = box.path("mirror")
    shutil.copytree(folder, mirror)
    with faulty_server.start(folder) as one, faulty_server.start(mirror) as other:
        write_manifest(folder, **{BAD: {"urls": [one.url(BAD), other.url(BAD)]}})
        one.fault("/" + BAD, "wrong-bytes", at=5)
        staging = Staging(box, one.url("manifest.jsonl"))
        equal(staging.run().result, "staged", "result")
        equal(files_of(staging.path), without(files_of(folder), "manifest.jsonl"), "files")


@case("an origin that says nothing ends the run in bounded time, with a word about it")
def _(box):
    folder = source_of(box)
    write_manifest(folder)
    with faulty_server.start(folder) as server:
        server.fault("/class*", "hang", seconds=600)
        staging = Staging(box, server.url("manifest.jsonl"), stall_timeout=5)
        done = staging.run(status=UNAVAILABLE, seconds=110)
        contains(done.text, "class")
        equal(staging.stamp(), None, "stamp")


@case("a manifest that is no manifest is refused, with the line", without=ONE_THREAD)
def _(box):
    folder = source_of(box, {"a/1.jpg": 10})
    table = Table()
    rows = [('{"path": "../x", "size": 1}', "../x"), ('{"path": "/etc/passwd", "size": 1}', "/etc/passwd"),
            ('{"path": "a", "size": -1}', "size"), ('{"size": 1}', "path"), ("<html>no</html>", "line"),
            ('{"path": "a/1.jpg", "size": 10}\n{"path": "a/1.jpg", "size": 10}', "a/1.jpg"),
            ('{"path": "a/1.jpg", "size": 10}\n{"path": "a/1.JPG", "size": 10}', "1.JPG"),
            ('{"path": "a", "size": 10}\n{"path": "a/1.jpg", "size": 10}', "a/1.jpg"),
            ('{"path": "a/1.jpg", "size": 10, "sha256": "12"}', "sha256"), ("", "")]
    with faulty_server.start(folder) as server:
        for number, (text, word) in enumerate(rows):
            with table.row(text):
                with open(os.path.join(folder, "manifest.jsonl"), "w", encoding="utf-8") as file:
                    file.write(text)
                staging = Staging(box, server.url("manifest.jsonl"), name=f"d{number}")
                done = staging.run(status=None)
                equal(done.returncode != 0 and done.result == "failed", True, str(done))
                contains(done.text, word)
                equal(os.path.exists(staging.path), False, "something was made")
    table.done()


# ---- resume, repair, difference -------------------------------------------------------------------------------------

@case("a run that is killed at any moment goes on where it was: at most 64 MiB are fetched twice", without=ONE_THREAD)
def _(box):
    sizes = {f"part/{i}.jpg": 37 * MIB for i in range(6)}
    sizes.update(photos_sizes(2, 50))
    folder = source_of(box, sizes)
    write_manifest(folder)
    total = size_of(folder)
    n_kills = 0
    with faulty_server.start(folder) as server:
        staging = Staging(box, server.url("manifest.jsonl"))
        for share in (0.1, 0.3, 0.45, 0.6, 0.8):
            goal = share * total
            already = server.total()["bytes"]
            n_kills += staging.kill_when(lambda at=goal, b=already: server.total()["bytes"] - b >= at * 0.3)
            equal(staging.stamp(), None, "a stamp after a kill")
        equal(staging.run().result, "staged", "the last run")
        equal(n_kills >= 3, True, f"{n_kills} of 5 runs were killed")
        again = server.total()["bytes"] - total - 5 * os.path.getsize(os.path.join(folder, "manifest.jsonl"))
        print(f"        fetched twice in {n_kills} kills: {again / MIB:.1f} MiB", flush=True)
        equal(again <= n_kills * 64 * MIB, True, f"{again} bytes fetched twice in {n_kills} kills")
        equal(files_of(staging.path), without(files_of(folder), "manifest.jsonl"), "files")


@case("without ETags a file that changes while it is downloaded, or before the next run, is not put together of both")
def _(box):
    folder = source_of(box, {"big.bin": 10 * MIB})
    big = os.path.join(folder, "big.bin")
    os.utime(big, (10 ** 9, 10 ** 9))
    with faulty_server.start(folder) as server:
        with open(os.path.join(folder, "list.txt"), "w", encoding="utf-8") as file:
            file.write(server.url("big.bin") + "\n")
        staging = Staging(box, server.url("list.txt"), connections=1)
        server.fault("/big.bin", "header", headers={"ETag": None})
        server.fault("/big.bin", "hang", ranged=True, after=2)
        journals = os.path.join(staging.state, "*.journal")
        equal(staging.kill_when(lambda: [os.path.getsize(path) for path in glob.glob(journals)] == [64 + 2 * 32]), True,
              "killed after two chunks")
        make_files(folder, {"big.bin": 10 * MIB}, seed=2)
        os.utime(big, (10 ** 9 + 1, 10 ** 9 + 1))
        server.clear()
        server.fault("/big.bin", "header", headers={"ETag": None})
        equal(staging.run().result, "staged", "the second run")
        equal(files_of(staging.path), {"big.bin": files_of(folder)["big.bin"]}, "files")


@case("--verify finds what was damaged behind our back, and fetches just that")
def _(box):
    folder = source_of(box, dict(photos_sizes(), **{"class1/large.jpg": 12 * MIB}))
    write_manifest(folder)
    with faulty_server.start(folder) as server:
        staging = Staging(box, server.url("manifest.jsonl"))
        staging.run()
        large = os.path.join(staging.path, "class1/large.jpg")
        small = os.path.join(staging.path, BAD)
        with open(large, "r+b") as file:
            file.seek(5 * MIB)
            file.write(b"damage")
        with open(small, "r+b") as file:
            file.seek(100)
            file.write(b"damage")
        server.reset()
        equal(staging.run().result, "up-to-date", "without --verify nothing is read again")
        done = staging.run("--verify")
        contains(done.text, "large.jpg", "1-0007.jpg")
        equal(files_of(staging.path), without(files_of(folder), "manifest.jsonl"), "files")
        if server.total()["bytes"] > 17 * MIB:
            raise AssertionError(f"{server.total()['bytes']} bytes were fetched to mend two files")


@case("a disk that lost a thousand files and more is mended in one run", without=ONE_THREAD)
def _(box):
    folder = source_of(box, photos_sizes(2, 700, size=200))
    staging = Staging(box, "file://" + folder)
    staging.run()
    for path in files_of(staging.path):
        with open(os.path.join(staging.path, path), "r+b") as file:
            file.write(b"damage")
    equal(staging.run("--verify").result, "staged", "result")
    equal(files_of(staging.path), files_of(folder), "files")


@case("a changed manifest fetches the difference; the old version is served until the new one is whole")
def _(box):
    folder = source_of(box, dict(photos_sizes(), **{"class1/large.jpg": 20 * MIB}))
    write_manifest(folder)
    before = without(files_of(folder), "manifest.jsonl")
    with faulty_server.start(folder) as server:
        staging = Staging(box, server.url("manifest.jsonl"))
        staging.run()
        old = staging.stamp()
        make_files(folder, {"class0/new.jpg": 30000, BAD: 25000}, seed=2)
        os.unlink(os.path.join(folder, "class2/2-0003.jpg"))
        write_manifest(folder)
        after = without(files_of(folder), "manifest.jsonl")
        server.reset()
        server.fault("/class0/new.jpg", "status", code=404)
        staging.run(status=None)
        equal((staging.stamp(), files_of(staging.path)), (old, before), "what is served while the new one is not whole")
        server.clear()
        equal(staging.run().result, "staged", "the new version")
        equal(files_of(staging.path), after, "files of the new version")
        if server.total()["bytes"] > MIB:
            raise AssertionError(f"{server.total()['bytes']} bytes for a difference of 55,000")
        equal(files_of(os.path.join(staging.state, old["version"])), before, "the version before is kept for its readers")


# ---- the disk -------------------------------------------------------------------------------------------------------

@case("two stagings of one dataset: the second is told who is at work")
def _(box):
    folder = source_of(box, {"a/1.jpg": 8 * MIB})
    write_manifest(folder)
    with faulty_server.start(folder) as server:
        server.fault("/a/*", "drip", rate=200000)
        staging = Staging(box, server.url("manifest.jsonl"))
        process = staging.start()
        try:
            while not server.count("/a/1.jpg")["requests"]:
                time.sleep(0.01)
            done = staging.run(status=TEMPFAIL)
            contains(done.text, str(process.pid))
        finally:
            process.kill()
            process.wait()
        server.clear()
        equal(staging.run().result, "staged", "after the first one's end")


@case("a disk that is read-only, or full in the middle, is named; what is there is kept")
def _(box):
    if os.getuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode != 0:
        raise Skip("only root can mount a disk of its own")
    folder = source_of(box, {f"a/{i}.jpg": 8 * MIB for i in range(6)})
    staging = Staging(box, "file://" + folder)
    place = os.path.dirname(staging.path)
    for options, words in (("ro", ("read-only",)), ("size=30m", ("30",))):
        mounted = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o {options} tmpfs {place} && exec "$0" "$@"']
        done = staging.run(status=OSERR, program=mounted)
        contains(done.text, place, *words)
    equal(staging.run().result, "staged", "with room")


@case("a clock that jumps by years decides nothing")
def _(box):
    if not shutil.which("faketime"):
        raise Skip("faketime is not installed")
    if VARIANT in ("asan", "tsan"):
        raise Skip("faketime loads itself in front of the sanitizers' runtime, which will not have it")
    folder = source_of(box)
    write_manifest(folder)
    with faulty_server.start(folder) as server:
        server.fault("/class0/*", "status", code=503, retry_after="1", times=2)
        staging = Staging(box, server.url("manifest.jsonl"))
        equal(staging.run(program=["faketime", "-f", "+9000d"]).result, "staged", "in the far future")
        equal(staging.run(program=["faketime", "-f", "-9000d"]).result, "up-to-date", "in the past")
        server.reset()
        make_files(folder, {"class0/new.jpg": 1000}, seed=3)
        write_manifest(folder)
        equal(staging.run(program=["faketime", "-f", "-3000d"]).result, "staged", "the next version")
        equal(server.total()["bytes"] < 100000, True, "the difference alone")


@case("a path that is a folder of somebody else's is left alone", without=ONE_THREAD)
def _(box):
    folder = source_of(box, {"a/1.jpg": 10})
    staging = Staging(box, "file://" + folder)
    make_files(staging.path, {"mine.txt": 5})
    done = staging.run(status=OSERR)
    contains(done.text, staging.path)
    equal(list(files_of(staging.path)), ["mine.txt"], "files")


@case("--dry-run says what would be moved, and makes nothing", without=ONE_THREAD)
def _(box):
    folder = source_of(box)
    staging = Staging(box, "file://" + folder)
    done = staging.run("--dry-run")
    equal(done.result, "planned", done.text)
    contains(done.text, str(size_of(folder)), "60 files")
    equal(os.listdir(os.path.dirname(staging.path)), [], "what was made")


@case("Ctrl-C leaves what is there for the next run, and ends with 130")
def _(box):
    folder = source_of(box, {f"a/{i}.jpg": 10 * MIB for i in range(4)})
    write_manifest(folder)
    with faulty_server.start(folder) as server:
        server.fault("/a/3.jpg", "drip", rate=500000)
        staging = Staging(box, server.url("manifest.jsonl"))
        process = staging.start()
        while server.total()["bytes"] < 20 * MIB:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        done = staging.finish(process, status=130, seconds=20)
        contains(done.text, "kept")
        server.clear()
        equal(staging.run().result, "staged", "the next run")


# ---- prepared -------------------------------------------------------------------------------------------------------

def pictures(box, n=30):
    try:
        from PIL import Image
    except ImportError:
        raise Skip("Pillow, which makes the pictures, is not installed") from None
    folder = box.path("pictures")
    for number in range(n):
        path = os.path.join(folder, f"class{number % 3}", f"{number:03d}.jpg")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Image.effect_noise((400 + number, 300), 50).convert("RGB").save(path, "JPEG")
    return folder


@case("packed: the daemon serves the shards as it served the folder: same order, labels and bytes")
def _(box):
    folder = pictures(box)
    staging = Staging(box, "file://" + folder, pack=True, shard_size="1MiB")
    staging.run()
    equal(all(path.endswith(".shard") for path in files_of(staging.path)), True, "files")
    plain = box.daemon({"photos": folder})
    expected = plain.read("photos", pipeline="raw", seed=3)
    daemon = box.daemon({"photos": staging.dataset()}, name="staged")
    equal(daemon.read("photos", pipeline="raw", seed=3), expected, "samples")


@case("prepared: pictures are resized once, and labels and order stay")
def _(box):
    folder = pictures(box)
    staging = Staging(box, "file://" + folder, prepare="resize(short=128) jpeg(90)")
    staging.run()
    plain = box.daemon({"photos": folder})
    daemon = box.daemon({"photos": staging.dataset()}, name="staged")
    expected = plain.read("photos", pipeline="decode", batch=1, seed=3)
    got = daemon.read("photos", pipeline="decode", batch=1, seed=3)
    equal([(line["index"], line["fields"]["label"]) for line in got],
          [(line["index"], line["fields"]["label"]) for line in expected], "order and labels")
    equal({min(line["fields"]["image"]["shape"][:2]) for line in got}, {128}, "the shorter side")
    equal(staging.run().result, "up-to-date", "the second run")


@case("prepared for a GPU: every picture keeps its pixels to the bit, and what cannot be transcoded is named", without=ONE_THREAD)
def _(box):
    folder = pictures(box)
    from PIL import Image  # pylint: disable=import-outside-toplevel
    for number, options in enumerate(({"progressive": True}, {"subsampling": 0}, {"subsampling": 1}, {"optimize": True})):
        Image.effect_noise((200 + number, 151), 50).convert("RGB").save(
            os.path.join(folder, "class1", f"kind{number}.jpg"), "JPEG", **options)
    Image.effect_noise((99, 77), 50).save(os.path.join(folder, "class2", "grey.jpg"), "JPEG")
    Image.effect_noise((99, 77), 50).convert("CMYK").save(os.path.join(folder, "class2", "ink.jpg"), "JPEG")
    Image.effect_noise((99, 77), 50).save(os.path.join(folder, "class0", "000.png"))
    staging = Staging(box, "file://" + folder, prepare="gpu_jpeg")
    contains(staging.run().text, "2 samples could not be prepared and are packed as they are",
             "class0/000.png: cannot be transcoded: not a JPEG")
    plain = box.daemon({"photos": folder})
    daemon = box.daemon({"photos": staging.dataset()}, name="staged")
    expected = plain.read("photos", pipeline="decode", batch=1, seed=3)
    equal(len(expected), 37, "samples")
    equal(daemon.read("photos", pipeline="decode", batch=1, seed=3), expected, "digests of pixels, order and labels")
    stored = [(line["index"], line["fields"]["image"]) for line in daemon.read("photos", pipeline="raw", batch=1)]
    before = dict((line["index"], line["fields"]["image"]) for line in plain.read("photos", pipeline="raw", batch=1))
    equal(sum(before[index] == image for index, image in stored), 2, "samples whose bytes stay")


@case("prepared: a second and a third version fetch the difference from the origin, though shards are what is served")
def _(box):
    folder = pictures(box, 60)
    write_manifest(folder)
    with faulty_server.start(folder) as server:
        staging = Staging(box, server.url("manifest.jsonl"), pack=True)
        staging.run()
        for number in (3, 7):  # nothing is new in the second version, so nothing of it is fetched
            os.unlink(os.path.join(folder, f"class{number % 3}", f"{number:03d}.jpg"))
            write_manifest(folder)
            server.reset()
            equal(staging.run().result, "staged", "result")
            equal(server.total()["bytes"], os.path.getsize(os.path.join(folder, "manifest.jsonl")), "bytes sent")


@case("versions that a job reads are left alone by stagings, and removed by one after the job has ended")
def _(box):
    folder = source_of(box, photos_sizes(n_classes=2, n_each=30, size=300))
    write_manifest(folder)
    with faulty_server.start(folder) as server:
        staging = Staging(box, server.url("manifest.jsonl"))
        equal(staging.run().result, "staged", "the first version")
        first = os.path.basename(staging.version())
        samples = [sha256_of(path) for path, _ in samples_of(os.path.realpath(staging.path))]
        daemon = box.daemon({"photos": {"path": staging.path, "origin": server.url("manifest.jsonl")}})
        reader = daemon.reader("photos", shuffle=False, on_error="skip", slots=2, delay_ms=100)
        reader.wait_lines(3)
        for number in range(3):
            write(os.path.join(folder, "class0", f"more{number}.jpg"), b"more" * (number + 1))
            write_manifest(folder)
            equal(staging.run().result, "staged", "another version")
            equal(os.path.isdir(os.path.join(staging.state, first)), True, f"{first} is there")
        lines = reader.good()
        equal([line["index"] for line in lines], list(range(60)), "samples")
        equal([line["fields"]["image"]["sha256"] for line in lines], samples, "bytes")
        equal(daemon.objects("errors"), [], "damaged samples")
        daemon.stop()
        write(os.path.join(folder, "class0", "last.jpg"), b"last")
        write_manifest(folder)
        equal(staging.run().result, "staged", "the last version")
        left = {name[:14] for name in os.listdir(staging.state) if name.startswith("v-")}
        equal((len(left), first in left), (2, False), "versions left")


if __name__ == "__main__":
    main()
