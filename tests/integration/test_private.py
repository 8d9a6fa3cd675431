#!/usr/bin/env python3
"""Datasets that are named by their paths, and the private daemon that serves them: started, found, shared, ended."""
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import (DLCTL, ROOT, Skip, Table, case, check_bytes, check_sequence, contains, equal, identity_pixels, indices, main, patience,
                     png, samples_of, within, write)
from cgroups import Groups
from private import Home
from pyclient import Trainer, environment_of, need

REFUSED, UNREACHABLE = 1, 3


# ---- one daemon -----------------------------------------------------------------------------------------------------

@case("a path needs no configuration: the first loader starts a daemon, the next ones find it, and so does dlctl")
def _(box):
    home, folder = Home(box), box.folder_of_files("photos", 40)
    contains(home.dlctl("status").stderr, "no daemon runs for this user")
    lines = home.read(folder, batch=4, epochs=2)
    check_sequence(lines, 40, batch=4, epochs=2)
    check_bytes(lines, samples_of(folder))
    check_sequence(home.read(folder, batch=3), 40, batch=3)
    status = json.loads(home.good("--format", "json", "status"))
    equal((status["daemon"], status["serves_paths"], status["uid"]), ("private", True, os.getuid()), "which daemon")
    equal(status["socket"], home.files(".sock")[0], "its socket")
    equal((status["n_datasets"], len(home.pids()), home.n_started()), (1, 1, 1), "datasets, daemons")
    for command in (["jobs"], ["bench", folder, "--pipeline", "raw", "--seconds", "0.5"], ["datasets", folder], ["errors", folder], ["--private", "status"]):
        home.good(*command)
    contains(home.good("datasets", folder), "ready", "imagefolder", folder, "__key__")
    equal(home.good("--private", "look", box.folder_of_pictures("pictures", 3), "1").count("9 x 7") > 0, True, "a picture")


@case("dlctl datasets PATH alone starts a daemon and waits for the index")
def _(box):
    home, folder = Home(box), box.folder_of_files("photos", 10)
    contains(home.good("datasets", folder), "ready", "imagefolder", "10")
    home.refused("nothing", "no daemon", "/run/dataloaderd", "\"nothing\" is a name", "./nothing", status=UNREACHABLE)


@case("sixteen processes that start at once get one daemon, and each all of its samples")
def _(box):
    home, folder = Home(box), box.folder_of_files("photos", 64)
    readers = [home.reader(folder, batch=4, world=16, rank=rank, job="all") for rank in range(16)]
    for rank, reader in enumerate(readers):
        check_sequence(reader.good(), 64, batch=4, world=16, rank=rank)
    equal((home.n_started(), len(home.pids())), (1, 1), "daemons that were started, and that run")


@case("one dataset in other words is the same dataset, and with other options another one")
def _(box):
    home, folder = Home(box), box.folder_of_files("photos", 20)
    os.symlink(folder, box.path("link"))
    for words in (folder, folder + "/", os.path.join(box.folder, ".", "photos", "..", "photos"), box.path("link"),
                  "{path=\"" + folder + "\"}", folder + " {}"):
        equal(len(home.read(words)), 20, words)
    done = home.dlctl("--format", "json", "read", "./photos", cwd=box.folder)
    equal((done.returncode, done.stdout.count("\n")), (0, 20), done.stderr)
    done = home.dlctl("--format", "json", "read", "~/../photos")
    equal((done.returncode, done.stdout.count("\n")), (0, 20), done.stderr)
    equal(home.status()["n_datasets"], 1, "datasets")
    equal(len(home.read(folder + ' {split = "0:50%"}')), 10, "half")
    equal(len(home.read(folder + ' {split=0:50%}')), 10, "without quotes")
    equal(home.status()["n_datasets"], 2, "datasets")
    contains(home.good("datasets"), folder + ' {split="0:50%"}')


@case("a path with * or ? or ** needs no configuration either")
def _(box):
    home = Home(box)
    for number, path in enumerate(("train-0.jsonl", "train-1.jsonl", "sub/train-0.jsonl")):
        write(box.path("hub", path), b'{"n": %d}\n' % number)
    for pattern, numbers in (("train-*.jsonl", [0, 1]), ("train-?.jsonl", [0, 1]), ("**/train-0.jsonl", [2, 0])):
        lines = home.read(box.path("hub", pattern), pipeline="n;", shuffle=False)
        equal([line["fields"]["n"]["value"] for line in lines], numbers, pattern)
    home.refused(box.path("hub", "x*.jsonl"), "no file matches the pattern")


@case("a snapshot in the hub's cache, whose files are links to blobs beside it, needs no configuration")
def _(box):
    home, snapshot = Home(box), box.path("datasets--org--name", "snapshots", "8f3a")
    for name in ("train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001"):
        with open(os.path.join(ROOT, "tests", "vectors", "parquet", "hub", "data", f"{name}.parquet"), "rb") as file:
            write(box.path("datasets--org--name", "blobs", name), file.read())
        os.makedirs(os.path.join(snapshot, "data"), exist_ok=True)
        os.symlink(f"../../../blobs/{name}", os.path.join(snapshot, "data", f"{name}.parquet"))
    equal(len(home.read(snapshot + ' {split="train"}', pipeline="label")), 12, "samples")
    home.refused(snapshot, "several splits", "test, train")


@case("several paths are one dataset after the other, with a plus and braces in their names too")
def _(box):
    home = Home(box)
    one, other = box.folder_of_files("cats + dogs", 10), box.folder_of_files("b {x}", 6)
    equal(len(home.read(one)), 10, "a path that exists needs no quotes")
    lines = home.read('{path="%s"} + {path="%s" split="0:50%%"}' % (one, other), shuffle=False)
    equal(indices(lines), list(range(13)), "samples")
    check_bytes(lines[:10], samples_of(one))
    contains(home.good("datasets"), "cats \\+ dogs", "b {x}")


@case("what is no path, no key and no dataset is refused with what to write")
def _(box):
    home, folder = Home(box), box.folder_of_files("photos", 4)
    os.makedirs(box.path("empty"))
    table = Table()
    for words, parts in [
            (box.path("nothing", "there"), ("there is no", "nothing/there", box.folder)),
            (box.path("photos", "class0", "x"), ("there is no", "exists, and has nothing of that name")),
            ("ftp://host/photos", ("URL", "s3://")),
            ("/dev/null", ("neither a folder nor a file",)),
            (box.path("empty"), ("empty",)),
            (folder + " {", ("'}' is missing",)),
            (folder + ' {split="0:50%', ("quote is not closed",)),
            (folder + " {splits: 3}", ("KEY=\"VALUE\"", "dataloaderd.conf")),
            (folder + " {color=red}", ("color", "not a key", "dataloaderd.conf(5)")),
            (folder + " {origin=x}", ("origin", "only a dataset of the configuration")),
            (folder + " {allow=x}", ("allow", "only a dataset of the configuration")),
            (folder + " {split=0:5 split=0:6}", ("split", "twice")),
            (folder + " {path=/x}", ("path is given twice",)),
            (folder + " {format=nonsense}", ("format", "nonsense")),
            (folder + " {delimiter=tab format=imagefolder}", ("imagefolder", "delimiter")),
            (folder + " {delimiter=tab}", ("csv",)),
            (folder + " + ", ("name is empty",)),
            (folder + " + " + folder, ("twice",)),
            ("photos {split=0:5}", ("is a name", "./photos {...}")),
            ("{split=0:5}", ("path is missing",)),
            ("~nobody/x", ("only ~/",)),
            (folder + " photos", ("there is no",))]:
        with table.row(words):
            home.refused(words, *parts)
    table.done()
    done = home.dlctl("read", "photos", cwd=box.folder)
    equal(done.returncode, UNREACHABLE, done.stderr)
    contains(done.stderr, "There is a folder photos here", "write ./photos")
    message = home.refused("photos + " + folder, "is a name", "private daemon has no names", "./photos")
    contains(message, "write a path")
    home.set(HOME=None)
    home.refused("~/photos", "HOME is not set")


@case("a message about a path says the path once")
def _(box):
    home = Home(box)
    for i in range(3):
        write(box.path("flat", f"{i}.png"), png(4, 4, identity_pixels(i, 4, 4)))
    write(box.path("tables", "a.jsonl"), b'{"a": 1,}\n')
    message = home.refused(box.path("flat"), "pictures such as", '"pattern": "{name}.png"}')
    equal(message.count(f"{box.path('flat')}: "), 1, message)
    equal(len(home.read(box.path("flat") + ' {format="folder" pattern="{name}.png"}', pipeline="image: center_crop(4)")), 3,
          "what it says to write")
    message = home.refused(box.path("tables"), "a.jsonl: line 1")
    equal(message.count(box.path("tables")), 1, message)


@case("names stay whole in a message, and of names that do not fit the beginning and the end are seen")
def _(box):
    home = Home(box)
    os.makedirs(box.path("a" * 90, "b" * 80))
    message = home.refused(box.path("a" * 90, "b" * 80, "not-there"), box.path("a" * 90, "b" * 80, "not-there"))
    equal("..." in message, False, f"nothing is left out of: {message}")
    os.makedirs(box.path("a" * 200, "b" * 200, "c" * 200))
    home.refused(box.path("a" * 200, "b" * 200, "c" * 200, "not-there"), box.folder, "aaa...", "ccc/not-there", "nothing of that name")


@case("Python takes a path, a pathlib.Path, a dict, and several in a list")
def _(box):
    need("numpy")
    home, folder, other = Home(box), box.folder_of_files("photos", 10), box.folder_of_files("a + {b} \"c\"", 6)
    trainer = Trainer(box, None, f"""
        import pathlib
        folder, other = {folder!r}, {other!r}
        os.chdir(os.path.dirname(folder))
        def read(dataset):
            with dlclient.Loader(dataset, batch_size=4, shuffle=False) as loader:
                return [loader.dataset.name, len(loader.dataset), sum(len(batch.indices) for batch in loader)]
        for dataset in (folder, "./photos", pathlib.Path("photos"), {{"path": folder}},
                        {{"path": pathlib.Path(folder), "split": "0:50%", "format": "imagefolder", "label": None}},
                        pathlib.Path(other), [folder, pathlib.Path(other)], [folder, {{"path": other, "split": "0:50%"}}]):
            out(read(dataset))
        refused(dlclient.OptionError, lambda: dlclient.Loader({{"split": "0:50%"}}), "has no \\"path\\"", "dataloaderd.conf")
        refused(dlclient.OptionError, lambda: dlclient.Loader({{"path": folder, "a b": "x"}}), "'a b'", "not a key")
        refused(dlclient.OptionError, lambda: dlclient.Loader({{"path": folder, "color": "red"}}), "color", "not a key")
        refused(dlclient.DatasetNotFound, lambda: dlclient.Loader("./nothing"), "there is no", "nothing")
        refused(dlclient.DaemonNotRunning, lambda: dlclient.Loader("photos"), "There is a folder photos", "./photos")
        with dlclient.Loader("./photos", batch_size=2) as loader:
            next(iter(loader))
            state = loader.state_dict()
        os.chdir("/")
        with dlclient.Loader(folder, batch_size=2, state=state) as loader:
            out(sum(len(batch.indices) for batch in loader))
    """, **home.env)
    lines = trainer.finish()
    half = folder + ' {format="imagefolder" split="0:50%"}'
    quoted = other.replace(" + ", " \\+ ")
    equal(lines, [[folder, 10, 10]] * 4 + [[half, 5, 5], [quoted, 6, 6], [f"{folder} + {quoted}", 16, 16],
                                           [f'{folder} + {quoted} {{split="0:50%"}}', 13, 13], 8], "name and samples")


# ---- how it lives ---------------------------------------------------------------------------------------------------

@case("the daemon is no child, has nothing of its starter but the environment, and all CPUs")
def _(box):
    home, folder = Home(box, NOTIFY_SOCKET="/nowhere", CACHE_DIRECTORY="/nowhere"), box.folder_of_files("photos", 4)
    cpus = sorted(os.sched_getaffinity(0))
    reader, writer = os.pipe()
    source = f"""
import os, signal, subprocess, sys
os.sched_setaffinity(0, [{cpus[0]}])
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.set_inheritable({writer}, True)
sys.exit(subprocess.run({[DLCTL, "read", folder]!r}, close_fds=False).returncode)
"""
    done = subprocess.run([sys.executable, "-c", source], env=home.env, check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, pass_fds=[writer], timeout=patience(60))
    equal(done.returncode, 0, "the reader")
    os.close(writer)
    pid, = home.pids()
    within(20, lambda: os.read(reader, 1) == b"", "the end of the pipe: nobody holds it")
    os.close(reader)
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        text = status.read()
    equal(re.search(r"^PPid:\s*(\d+)", text, re.M).group(1) != str(os.getpid()), True, "its parent")
    equal(int(re.search(r"^SigBlk:\s*(\w+)", text, re.M).group(1), 16), 0, "blocked signals")
    equal(sorted(os.sched_getaffinity(pid)), cpus, "its CPUs")
    equal(os.getsid(pid) != os.getsid(0), True, "its session")
    equal(os.readlink(f"/proc/{pid}/cwd"), "/", "its folder")
    equal({os.stat(path).st_mode & 0o777 for path in home.files(".sock") + home.files(".log")}, {0o600}, "modes")


@case("memory is a quarter of what may be used, and DATALOADERD_PRIVATE changes settings")
def _(box):
    home, folder = Home(box), box.folder_of_files("photos", 4)
    home.read(folder)
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    limit = home.status()["memory_limit_bytes"]
    equal(64 << 20 <= limit <= total // 4, True, f"memory_limit {limit} of {total}")
    home.stop()
    home.set(DATALOADERD_PRIVATE="memory_limit=100MiB workers=1", DATALOADERD_IDLE="1000")
    home.read(folder)
    status = home.status()
    settings = {fact["name"]: fact["value"] for fact in status["settings"]}
    equal((status["memory_limit_bytes"], status["n_workers"], settings["idle_timeout"]), (100 << 20, 1, "1000"),
          "settings")
    home.stop()
    for text, part in (("color=red", "color"), ("workers", "KEY=VALUE"), ("workers=many", "workers"),
                       ("socket=/x", "socket")):
        home.set(DATALOADERD_PRIVATE=text)
        home.refused(folder, "could not be started", "DATALOADERD_PRIVATE", part, "log:", status=UNREACHABLE)
    home.set(DATALOADERD_PRIVATE="memory_limit=8TiB")
    home.good("datasets", folder)
    contains(home.log(), "memory_limit: 8.0 TiB", "more than", "lower it in DATALOADERD_PRIVATE")
    fact, = [fact for fact in home.status()["obtained"] if fact["name"] == "memory_limit"]
    equal((fact["value"], "has only" in fact["text"]), ("too high", True), "what status says")


@case("who needs more memory than a private daemon has reads which variable gives it more")
def _(box):
    home, folder = Home(box, DATALOADERD_PRIVATE="memory_limit=64MiB"), box.folder_of_pictures("photos", 8)
    large = {"batch": 64, "slots": 8, "pipeline": "center_crop(224)"}
    message = home.refused(folder, "memory_limit", "dlctl stop", "DATALOADERD_PRIVATE=\"memory_limit=", **large)
    home.good("stop")
    home.set(DATALOADERD_PRIVATE=re.search(r'PRIVATE="(memory_limit=\w+)"', message).group(1))
    check_sequence(home.read(folder, **large), 8, batch=64)


@case("it ends when nobody has been connected for a while, and the next loader starts another one")
def _(box):
    home, folder = Home(box, DATALOADERD_IDLE="1"), box.folder_of_files("photos", 10)
    for n in (1, 2):
        check_sequence(home.read(folder), 10)
        within(30, lambda: not home.pids(), "the end of the daemon")
        equal((home.n_started(), home.files(".sock"), home.files(".lock")), (n, [], []), "daemons, what is left")
    contains(home.log(), "nobody has been connected")


@case("what a private daemon's user reads is about that daemon: its log, its tokenizers, its variable")
def _(box):
    home, folder = Home(box, XDG_CONFIG_HOME=None), box.folder_of_files("photos", 40)
    reader = home.reader(folder, batch=2, epochs=50, slots=2, on_restart="raise", delay_ms=3)
    reader.wait_lines(10)
    log = home.files(".log")[0]
    os.kill(home.pids()[0], signal.SIGKILL)
    equal(reader.finish()[0], UNREACHABLE, reader.errors())
    contains(reader.errors(), "private daemon", log, "starts another one")
    equal("journalctl" in reader.errors(), False, reader.errors())
    write(box.path("lines.jsonl"), b'{"text": "a"}\n')
    if not os.path.exists("/etc/dataloaderd/tokenizers"):
        home.refused(box.path("lines.jsonl"), "no tokenizer bert", home.folder + "/.config/dataloaderd/tokenizers",
                     pipeline="text: tokens(bert, truncation=none)")
    home.stop()
    write(box.path("broken"), b"#!/nowhere\n")
    home.set(DATALOADERD_PROGRAM=box.path("broken"))
    os.chmod(box.path("broken"), 0o755)
    message = home.refused(folder, "running " + box.path("broken"), "No such file", status=UNREACHABLE)
    equal("refused" in message, False, message)


@case("dlctl stop ends it; not under ranks, unless --now, and then their loaders go on with another one")
def _(box):
    home, folder = Home(box), box.folder_of_files("photos", 40)
    contains(home.dlctl("stop").stderr, "no private daemon")
    reader = home.reader(folder, batch=2, epochs=50, slots=2, on_restart="wait", delay_ms=3)
    reader.wait_lines(20)
    done = home.dlctl("stop")
    equal(done.returncode, REFUSED, done.stderr)
    contains(done.stderr, "1 ranks are attached", "--now")
    first, = home.pids()
    home.good("stop", "--now")
    check_sequence(reader.good(), 40, batch=2, epochs=50)
    equal((home.n_started(), first in home.pids()), (2, False), "daemons")
    home.good("stop")
    within(20, lambda: not home.pids(), "its end")
    equal(home.files(".sock"), [], "sockets")


@case("while another process holds a daemon's lock, none is started, and loaders end with its number; so does dlctl stop")
def _(box):
    home, folder = Home(box), box.folder_of_files("photos", 10)
    home.read(folder)
    lock = home.files(".sock.lock")[0]
    home.good("stop")
    within(20, lambda: not home.pids(), "its end")
    before = home.log()
    holder = (lock, f"is locked by process {os.getpid()} (")
    with open(lock, "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        readers = [home.reader(folder) for _ in range(4)]
        for arguments in (["stop"], ["stop", "--now"], ["--private", "status"]):
            done = home.dlctl(*arguments)
            equal(done.returncode, UNREACHABLE, done.stderr)
            contains(done.stderr, *holder, "end that process")
        for reader in readers:
            equal(reader.finish(50), (UNREACHABLE, []), reader.errors())
            contains(reader.errors(), *holder, "end that process", home.files(".log")[0])
        equal((home.log(), home.pids()), (before, []), "what was started meanwhile")
    check_sequence(home.read(folder), 10)


@case("a daemon that is stopped and cannot be reached is named as the holder of its lock")
def _(box):
    home, folder = Home(box), box.folder_of_files("photos", 10)
    home.read(folder)
    pid, = home.pids()
    os.kill(pid, signal.SIGSTOP)
    try:
        os.unlink(home.files(".sock")[0])
        contains(home.dlctl("stop", "--now").stderr, f".sock.lock is locked by process {pid} (dataloaderd)")
    finally:
        os.kill(pid, signal.SIGCONT)
    within(20, lambda: not home.pids(), "its end: its socket is gone")


@case("a daemon that is killed in the middle of a run is started again, and no sample is lost or comes twice")
def _(box):
    home, folder = Home(box), box.folder_of_files("photos", 40)
    readers = [home.reader(folder, batch=2, epochs=60, world=2, rank=rank, job="run", slots=2, on_restart="wait", delay_ms=3)
               for rank in range(2)]
    for n in range(3):
        for reader in readers:
            reader.wait_lines(100 * (n + 1))
        pid, = home.pids()
        os.kill(pid, signal.SIGKILL)
        within(30, lambda pid=pid: home.pids() and home.pids() != [pid], "another daemon")
    for rank, reader in enumerate(readers):
        check_sequence(reader.good(), 40, batch=2, epochs=60, world=2, rank=rank)
    equal(len(home.pids()), 1, "daemons")


@case("a daemon whose socket is removed serves those that it has, and ends; others get another one")
def _(box):
    home, folder = Home(box), box.folder_of_files("photos", 40)
    reader = home.reader(folder, batch=2, epochs=50, slots=2, on_restart="raise", delay_ms=3)
    reader.wait_lines(10)
    first, = home.pids()
    for path in home.files(".sock") + home.files(".lock"):
        os.unlink(path)
    check_sequence(home.read(folder), 40)
    second = [pid for pid in home.pids() if pid != first]
    equal(len(second), 1, "another daemon")
    check_sequence(reader.good(), 40, batch=2, epochs=50)
    within(30, lambda: home.pids() == second, "the end of the first one")
    equal(home.status()["pid"], second[0], "who answers")


@case("each job of a batch system has a daemon of its own, which all of its steps and tasks share")
def _(box):
    groups, home, folder = Groups(box), Home(box), box.folder_of_files("photos", 12)

    def ask(group, *words):
        done = subprocess.run([*groups.inside(group), DLCTL, *words], check=False, stdin=subprocess.DEVNULL, env=home.env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=patience(60))
        equal(done.returncode, 0, f"{group}: {words}: {done.stderr}")
        return done.stdout

    for n_daemons, group in enumerate(["slurmstepd.scope/job_7/step_0/user/task_0", "slurmstepd.scope/job_8/step_0/user/task_0"], 1):
        ask(group, "read", folder)
        equal((home.n_started(), len(home.pids())), (n_daemons, n_daemons), f"daemons after {group}")
    for step in ("step_0/user/task_1", "step_1/user/task_0", "step_extern/user/task_special"):
        ask("slurmstepd.scope/job_8/" + step, "read", folder)
    equal(home.n_started(), 2, "steps and tasks of one job have one daemon")
    ask("slurmstepd.scope/job_7/step_extern", "stop", "--now")
    within(20, lambda: len(home.pids()) == 1, "the end of the first job's daemon")
    ask("slurmstepd.scope/job_8/step_0/user/task_0", "read", folder)
    equal((home.n_started(), len(home.pids())), (2, 1), "the second job goes on with its own")
    ask("slurmstepd.scope/job_8/step_extern", "stop", "--now")
    within(20, lambda: not home.pids(), "the end of the second job's daemon")


@case("the log stays within its bounds")
def _(box):
    home, folder = Home(box, DATALOADERD_PRIVATE="log_level=debug"), box.folder_of_files("photos", 4)
    home.read(folder)
    path = home.files(".log")[0]
    for n in (1, 2):
        with open(path, "ab") as log:
            log.write((b"x" * 1023 + b"\n") * 1025)
        within(20, lambda: os.path.getsize(path) < 1 << 20, "a shorter log")
    equal(sorted(os.path.basename(name).rpartition("log")[2] for name in home.files(".log*")), ["", ".1"], "logs")
    home.good("stop")
    within(20, lambda: not home.pids(), "its end")
    contains(home.log(), "ended")


# ---- who may ask ----------------------------------------------------------------------------------------------------

@case("a configured daemon serves paths if it is told to, to its own user alone")
def _(box):
    folder = box.folder_of_files("photos", 12)
    home, closed = Home(box), box.daemon({})
    for daemon in (closed, box.daemon({}, paths="yes")):
        home.set(DATALOADERD_SOCKET=daemon.socket)
        if daemon is closed:
            home.refused(folder, "datasets of its configuration only", "DATALOADERD_SOCKET")
            continue
        check_sequence(home.read(folder), 12)
        contains(home.good("status"), "configured", daemon.socket)
        contains(home.dlctl("--socket", daemon.socket, "stop").stderr, "not started by its users")
        if os.getuid() == 0:
            os.chmod(daemon.socket, 0o666)
            stranger = Home(box, uid=12345, DATALOADERD_SOCKET=daemon.socket)
            stranger.refused(folder, "to its own user only")
            equal("photos" in stranger.good("datasets"), False, "a stranger sees the path")
    equal(home.pids(), [], "private daemons")


@case("a client that sees another folder than the daemon is told so")
def _(box):
    if os.getuid() != 0:
        raise Skip("a mount namespace needs root")
    folder, other = box.folder_of_files("photos", 12), box.folder_of_files("other", 3)
    daemon = box.daemon({}, paths="yes")
    script = f"mount --bind {other} {folder} && exec {DLCTL} read {folder}"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, timeout=patience(30),
                          env=dict(os.environ, DATALOADERD_SOCKET=daemon.socket))
    equal(done.returncode, REFUSED, done.stderr)
    contains(done.stderr, "sees another", folder, "container")


@case("where /proc is hidden a loader is refused, and reads what is missing and what to do", sanitized=False)
def _(box):
    if os.getuid() != 0:
        raise Skip("a mount namespace needs root")
    need("numpy")
    home, folder = Home(box), box.folder_of_files("photos", 12)
    python = f"""import dlclient
try:
    dlclient.Loader({folder!r})
except dlclient.Error as error:
    print(type(error).__name__, error)"""
    for words in ([DLCTL, "read", folder], [sys.executable, "-c", python]):
        done = subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh", *words],
                              check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                              timeout=patience(60), env=environment_of(**home.env))
        contains(done.stdout + done.stderr, "/proc is not there", "mount -t proc", "DATALOADERD_SOCKET")
    contains(done.stdout, "NotSupported")


main()
