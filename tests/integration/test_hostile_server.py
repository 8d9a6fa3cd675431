#!/usr/bin/env python3
"""A staging from a server that does everything wrong: what is staged is what the server has, or nothing is, with a reason.

DLP_HOSTILE_SEEDS=1000 plays so many seeds, and some of them for ever (a minute each); DLP_HOSTILE_FIRST=N begins at N."""
import concurrent.futures
import hashlib
import json
import os
import random
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import SANITIZER, VARIANT, case, main, patience
from hostile_server import SECRET, HostileServer
from staging import CONFIG, OK, OSERR, PROTOCOL, UNAVAILABLE, Staging, files_of, sha256

N_SEEDS = int(os.environ.get("DLP_HOSTILE_SEEDS", "64"))
FIRST = int(os.environ.get("DLP_HOSTILE_FIRST", "0"))
KINDS = ("manifest", "list", "s3", "file")
MEMORY_KB = 400 << 10  # of a staging: 24 chunks of 4 MiB, and what a program takes
SIZES = {"a/small.bin": 700, "a/empty.bin": 0, "b/more.bin": 70000, "b/large.bin": (4 << 20) + 99999}
FILES = {path: (hashlib.sha256(path.encode()).digest() * (size // 32 + 1))[:size] for path, size in SIZES.items()}
EXPECTED = {path: sha256(data) for path, data in FILES.items()}


def served(kind, base):
    """(contents, path of the document) of such an origin."""
    contents = {f"/d/{path}": data for path, data in FILES.items()}
    if kind == "manifest":
        lines = [json.dumps({"path": path, "size": len(data), "sha256": sha256(data)}) for path, data in FILES.items()]
        contents["/d/m.jsonl"] = "\n".join(lines).encode()
    if kind == "list":
        contents["/d/l.txt"] = "\n".join(f"{base}/d/{path}" for path in FILES).encode()
    return contents


def play(box, seed):
    """One seed. Returns what is wrong, or None."""
    kind = KINDS[(seed + seed // 4) % len(KINDS)]
    for_ever = "DLP_HOSTILE_SEEDS" in os.environ and random.Random(f"long {seed}").random() < 0.1
    with HostileServer(seed, {}, documents=("/d/m.jsonl", "/d/l.txt"), buckets={"d": list(FILES)}, hashed=kind == "manifest",
                       for_ever=for_ever) as server:
        server.contents = served(kind, server.base)
        origin = {"manifest": "/d/m.jsonl", "list": "/d/l.txt", "file": "/d/b/large.bin"}.get(kind)
        expected = EXPECTED if kind != "file" else {"large.bin": EXPECTED["b/large.bin"]}
        staging = Staging(box, server.base + origin if origin else "s3://d", name=f"d{seed}", stall_timeout=5,
                          endpoint=server.base if kind == "s3" else None)
        named = (f"127.0.0.1:{server.port}", f"localhost:{server.port}", "s3://d", *(f"{path}: its SHA-256" for path in FILES),
                 "are needed")  # bytes, of a disk: as many as the server says
        for is_calm in (False, True):
            if is_calm:
                server.calm()
            process = staging.start()
            _, status, usage = wait(process)
            done = staging.finish(process, status=None)
            says = f"{server}, {kind}, {'calm' if is_calm else 'hostile'}: exit {status}: {done}"
            if status not in ((OK,) if is_calm else (OK, PROTOCOL, UNAVAILABLE, CONFIG, OSERR)) or SANITIZER.search(done.errors):
                return says
            if SECRET in done.text:
                return "a secret is told: " + says
            if VARIANT == "release" and usage.ru_maxrss > MEMORY_KB:
                return f"{usage.ru_maxrss >> 10} MiB: {says}"
            if status == OK:
                there = files_of(staging.path)
                return None if there == expected else f"other files ({sorted(set(there.items()) ^ set(expected.items()))}): {says}"
            if staging.version() or staging.stamp() or not any(name in done.text for name in named):
                return "published, or without its origin: " + says
    return None


def wait(process):
    """Its pid, exit code and usage, once it has ended; Popen knows the code then, too."""
    killer = threading.Timer(patience(300), process.kill)
    killer.start()
    pid, status, usage = os.wait4(process.pid, 0)
    killer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return pid, process.returncode, usage


@case("whatever a server answers, exactly its files are staged, or nothing and a reason that names it; then the rest comes")
def _(box):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        wrong = [text for text in pool.map(lambda seed: play(box, seed), range(FIRST, FIRST + N_SEEDS)) if text]
    if wrong:
        raise AssertionError(f"{len(wrong)} of {N_SEEDS} seeds:\n" + "\n\n".join(wrong[:20]))


main()
