#!/usr/bin/env python3
"""The installed units on a system that boots (tests/support/machine.py). Root only."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import (BUILD, ROOT, Skip, case, check_bytes, check_sequence, contains, equal, main, samples_of, within, write)
from machine import CONFIG, N, machine, read
from pages import block


@case("installed: socket activation, readiness, status, serving, reload, restart after kill -9, a clean stop")
def _(box):
    made, source = machine(box)

    made.systemctl("start", "dataloaderd.socket")
    equal(made.show("ActiveState"), "inactive", "nobody has asked yet")
    contains(made.inside("stat", "-c", "%U %G %a", "/run/dataloaderd/dataloaderd.sock"), "dataloaderd dataloaderd 660")
    lines = read(made, "--epochs", "2")
    check_sequence(lines, N, epochs=2)
    check_bytes(lines, samples_of(source))
    equal((made.show("ActiveState"), made.show("Type")), ("active", "notify"), "started by the first client")
    contains(made.inside("dlctl", "status"), made.show("MainPID"))
    status = json.loads(made.inside("dlctl", "--format", "json", "status"))
    contains(str(status), "io_uring")

    made.systemctl("reload", "dataloaderd")
    check_sequence(read(made), N)

    # A live upgrade: for a trainer it is a pause. None lost, none twice.
    reader = made.start_inside("dlctl", "--format", "json", "read", "d", "--epochs", "60", "--batch", "4", "--delay-ms",
                               "5", "--on-restart", "wait")
    for _ in range(3):
        time.sleep(0.4)
        pid = made.show("MainPID")
        made.systemctl("restart", "dataloaderd.service")
        equal(made.show("MainPID") != pid, True, "it is another process")
    output, _ = reader.communicate(timeout=300)
    check_sequence([json.loads(line) for line in output.splitlines()], N, batch=4, epochs=60)
    equal(reader.returncode, 0, "exit status of the reader")

    pid = made.show("MainPID")
    made.systemctl("kill", "-s", "KILL", "dataloaderd.service")
    within(10, lambda: made.show("MainPID") not in ("0", pid) and made.show("ActiveState") == "active",
           "started again after kill -9")
    check_sequence(read(made), N)
    equal(made.show("NRestarts"), "1", "restarts")

    for _ in range(6):  # systemd's own limit would be five starts in ten seconds
        pid = made.show("MainPID")
        made.systemctl("kill", "-s", "KILL", "dataloaderd.service")
        within(10, lambda: made.show("MainPID") not in ("0", pid) and made.show("ActiveState") == "active",
               "started again however often it falls")
    check_sequence(read(made), N)

    made.systemctl("stop", "dataloaderd.service", "dataloaderd.socket")
    equal((made.show("Result"), made.show("ActiveState")), ("success", "inactive"), "after stop")
    equal(made.show("ExecMainStatus"), "0", "exit status")

    made.systemctl("start", "dataloaderd.service")
    equal(made.show("StatusText") != "", True, "a status text is announced")
    check_sequence(read(made), N)

    write(os.path.join(made.root, "etc/dataloaderd/dataloaderd.conf"), b"nonsense = 1\n")
    made.systemctl("restart", "dataloaderd.service", check=False)
    within(5, lambda: made.show("ActiveState") == "failed", "a wrong configuration fails")
    equal(made.show("ExecMainStatus"), "78", "exit status of a wrong configuration")


@case("booted: what docs/metrics.md configures: the socket within the unit's sandbox, also after kill -9, and the page's service")
def _(box):
    lines = block("docs/metrics.md", "metrics_socket =")
    get = ("import re, urllib.error, urllib.request as u\ntry: r = u.urlopen('http://localhost:9750/metrics', timeout=10)\n"
           "except OSError as e: print(e)\n"
           "else: print(r.status, re.search('dataloaderd_dataset_ready(?={)', r.read().decode())[0])")
    ask = ("import socket; s = socket.socket(socket.AF_UNIX); s.connect('/run/dataloaderd/metrics.sock');"
           "s.sendall(b'GET /metrics HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n'); print(s.makefile().read())")

    def put(made):
        write(os.path.join(made.root, "etc/dataloaderd/dataloaderd.conf"), (lines + CONFIG).encode())
        write(os.path.join(made.root, "opt/ask.py"), ask.encode())
        write(os.path.join(made.root, "opt/get.py"), get.encode())
        write(os.path.join(made.root, "etc/systemd/system/dataloaderd-web.service"),
              block("docs/metrics.md", "[Unit]").replace("--user prometheus", "--user nobody").encode())

    made, _ = machine(box, put)
    made.systemctl("start", "dataloaderd.service", "dataloaderd-web.service")
    equal(made.show("ActiveState", "dataloaderd-web.service"), "active", "the page's service")
    within(20, lambda: "200 dataloaderd_dataset_ready" in made.inside("python3", "/opt/get.py"), "it is scraped")
    for _ in range(2):
        contains(made.inside("stat", "-c", "%U %G %a", "/run/dataloaderd/metrics.sock"), "dataloaderd dataloaderd 660")
        contains(made.inside("python3", "/opt/ask.py"), "200 OK", "\ndataloaderd_node_storage_read_bytes_total ", "process_open_fds")
        contains(made.inside("dlctl", "metrics"), "dataloaderd_build_info")
        pid = made.show("MainPID")
        made.systemctl("kill", "-s", "KILL", "dataloaderd.service")
        within(10, lambda: made.show("MainPID") not in ("0", pid) and made.show("ActiveState") == "active",  # pylint: disable=cell-var-from-loop
               "started again after kill -9")
    made.systemctl("stop", "dataloaderd.service", "dataloaderd.socket")
    equal(made.inside("find", "/run/dataloaderd", "-name", "metrics*"), "", "what is left")


@case("booted: the commands of docs/node.md, as they stand there, from the tree to the first batch")
def _(box):
    stubs = {"make": "", "sudo": 'exec "$@"', "sudoedit": 'cp /opt/conf "$1"'}    # make: what is installed here

    def put(made):
        write(os.path.join(made.root, "opt/conf"), CONFIG.encode())
        for name, text in stubs.items():
            write(os.path.join(made.root, "usr/local/sbin", name), f"#!/bin/sh\n{text}\n".encode())
            os.chmod(os.path.join(made.root, "usr/local/sbin", name), 0o755)

    made, _ = machine(box, put)
    made.inside("useradd", "alice")
    made.inside("env", "PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "sh", "-euxc", block("docs/node.md", "make && sudo"))
    output = made.inside("runuser", "-u", "alice", "--", "dlctl", "--format", "json", "read", "d")
    check_sequence([json.loads(line) for line in output.splitlines() if line.startswith("{")], N)


# ---- two users ----------------------------------------------------------------------------------------------------

ALICE, BOB = 61002, 61003
HOLD = """
import ctypes, os, sys, threading, time
sys.path.insert(0, "/opt/test")
from harness import HandClient
client = HandClient("/run/dataloaderd/dataloaderd.sock")
client.attach("d", job="stuck", batch=4)
print(len(client.descriptors), os.getpid(), flush=True)
if len(sys.argv) > 1:  # the first thread ends, and with it goes the memory of which the kernel tells; the process lives on
    threading.Thread(target=time.sleep, args=(120,)).start()
    ctypes.CDLL(None).syscall(60, 0)
time.sleep(120)
"""


def prepare_users(made):
    """Two users in the group of the socket, and a client of our own for them."""
    with open(os.path.join(made.root, "etc/group"), encoding="utf-8") as groups:
        lines = groups.read().splitlines()
    made.group = next(int(line.split(":")[2]) for line in lines if line.startswith("dataloaderd:"))
    for name, uid in (("alice", ALICE), ("bob", BOB)):
        with open(os.path.join(made.root, "etc/passwd"), "a", encoding="utf-8") as users:
            users.write(f"{name}:x:{uid}:{uid}::/nonexistent:/bin/sh\n")
    with open(os.path.join(ROOT, "tests", "support", "harness.py"), "rb") as harness:
        write(os.path.join(made.root, "opt/test/harness.py"), harness.read())
    write(os.path.join(made.root, "opt/test/hold.py"), HOLD.encode())


def as_user(made, uid, *command):
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", f"--groups={made.group}", *command]


def jobs_of(made, uid):
    lines = made.inside(*as_user(made, uid, "dlctl", "--format", "json", "jobs")).splitlines()
    return [json.loads(line) for line in lines]


def hold(made, uid, *arguments):
    """A process of the user that is rank 0 of the job "stuck"; returns its pid in the container."""
    holder = made.start_inside(*as_user(made, uid, "/usr/bin/python3", "/opt/test/hold.py", *arguments))
    words = holder.stdout.readline().split()
    equal(words[:1], ["3"], "descriptors that came with the ring")
    return words[1]


@case("booted: two users under the shipped unit are apart, and a rank whose process is ending is waited for")
def _(box):
    if not os.path.exists("/usr/bin/python3"):
        raise Skip("no /usr/bin/python3")
    made, _ = machine(box, prepare_users)
    made.systemctl("start", "dataloaderd.service")
    for key in ("MemoryMax", "TasksMax"):
        equal(made.show(key) not in ("infinity", ""), True, f"{key} is set: {made.show(key)}")

    alive = hold(made, ALICE)
    bobs = hold(made, BOB)
    (job,) = jobs_of(made, ALICE)
    within(10, lambda: [rank["user"] for job in jobs_of(made, ALICE) for rank in job["ranks"]] == ["alice"], "her name")
    equal((job["name"], [rank["pid"] for rank in job["ranks"]]), ("stuck", [int(alive)]), "what Alice sees")
    equal([rank["pid"] for job in jobs_of(made, BOB) for rank in job["ranks"]], [int(bobs)], "what Bob sees")
    equal(len(jobs_of(made, 0)), 2, "what root sees")
    contains(made.inside(*as_user(made, BOB, "dlctl", "workers", "1"), check=False), "only admins")
    contains(made.inside("setpriv", "--bounding-set=-sys_admin", "dlctl", "workers", "1", check=False), "only admins", "container")
    refused = made.inside(*as_user(made, ALICE, "dlctl", "read", "d", "--job", "stuck", "--batch", "4", "--pipeline", "raw"),
                          check=False)
    contains(refused, "attached already", alive)  # it is alive, which is not taken for ending
    made.inside("kill", "-9", alive)

    ending = within(10, lambda: hold(made, ALICE, "ending"), "the rank is free again")
    reader = made.start_inside(*as_user(made, ALICE, "dlctl", "--format", "json", "read", "d", "--job", "stuck", "--batch",
                                        "4", "--pipeline", "raw"))
    time.sleep(2)
    equal(reader.poll(), None, "the reader waits for the process that is ending")
    made.inside("kill", "-9", ending)
    output, _ = reader.communicate(timeout=300)
    check_sequence([json.loads(line) for line in output.splitlines()], N, batch=4)


# ---- staging --------------------------------------------------------------------------------------------------------

STAGED = CONFIG + 'dataset "staged" {\n    path = "/data/staged"\n    origin = "file:///srv/d"\n}\n'


def prepare_staging(made):
    """A dataset whose origin is the folder of the other one, and a place that the daemon's user may write to."""
    write(os.path.join(made.root, "etc/dataloaderd/dataloaderd.conf"), STAGED.encode())
    os.makedirs(os.path.join(made.root, "data"), exist_ok=True)
    uid, gid = next((int(fields[2]), int(fields[3])) for fields in
                    (line.split(":") for line in open(os.path.join(made.root, "etc/passwd"), encoding="utf-8"))
                    if fields[0] == "dataloaderd")
    os.chown(os.path.join(made.root, "data"), uid, gid)


def datasets(made):
    lines = made.inside("dlctl", "--format", "json", "datasets").splitlines()
    return {row["name"]: row for row in (json.loads(line) for line in lines)}


@case("booted: the daemon waits for the stamp, the staging unit brings the dataset, and a waiting reader gets its samples")
def _(box):
    if not os.path.exists(os.path.join(BUILD, "dataloaderd-stage")):
        raise Skip("build/release/dataloaderd-stage was not built")
    made, source = machine(box, prepare_staging)
    made.systemctl("start", "dataloaderd.service")
    within(10, lambda: datasets(made)["staged"]["state"] == "not staged", "the daemon waits")
    contains(datasets(made)["staged"]["text"], "dlctl stage staged")
    reader = made.start_inside("dlctl", "--format", "json", "read", "staged", "--epochs", "2")
    time.sleep(1)
    equal(reader.poll(), None, "a reader waits, too")

    made.systemctl("start", "dataloaderd-stage@staged.service")
    equal((made.show("Result", "dataloaderd-stage@staged.service"),
           made.show("ExecMainStatus", "dataloaderd-stage@staged.service")), ("success", "0"), "the unit")
    output, _ = reader.communicate(timeout=300)
    lines = [json.loads(line) for line in output.splitlines()]
    check_sequence(lines, N, epochs=2)
    check_bytes(lines, samples_of(source))
    row = datasets(made)["staged"]
    equal((row["state"], row["n_samples"], row["origin"]), ("ready", N, "file:///srv/d"), "dlctl datasets")
    contains(made.inside("stat", "-c", "%U", "/data/.staged.staged/stamp"), "dataloaderd")

    made.systemctl("start", "dataloaderd-stage@staged.service")  # there is nothing to do
    equal(made.show("Result", "dataloaderd-stage@staged.service"), "success", "again")
    made.systemctl("start", "dataloaderd-stage@nosuch.service", check=False)
    equal((made.show("Result", "dataloaderd-stage@nosuch.service"),
           made.show("ExecMainStatus", "dataloaderd-stage@nosuch.service")), ("exit-code", "78"), "no such dataset")


main()
