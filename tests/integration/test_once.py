#!/usr/bin/env python3
"""dlctl once: of many processes one runs the command, whatever becomes of it."""
import os
import shutil
import signal
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import DLCTL, Skip, case, contains, equal, main, patience, within, write
from work import Work, environment, is_alive, mpirun

N_RANKS = 8


@case("of eight that start at once one runs the command, and all end well")
def _(box):
    work = Work(box)
    ranks = [work.start("echo said; sleep 0.3") for _ in range(N_RANKS)]
    said = [work.end(rank)[0] for rank in ranks]
    equal(sorted(said), [""] * (N_RANKS - 1) + ["said\n"], "what the ranks print")
    equal(len(work.marks()), 1, "runs")


@case("what is done is remembered: a later call ends at once, and --again runs it")
def _(box):
    work = Work(box)
    for scope in ("node", "cluster"):
        before = len(work.marks())
        work.run("true", scope=scope)
        work.run("true", scope=scope)
        equal(len(work.marks()), before + 1, f"runs, {scope}")
        work.run("true", "--again", scope=scope)
        equal(len(work.marks()), before + 2, f"runs with --again, {scope}")


@case("another command line, --key or content of an --input is other work; the same ones again are not")
def _(box):
    work = Work(box)
    source = box.path("input")
    def runs(script="true", *options):
        with open(source, "a", encoding="utf-8"):
            pass
        before = len(work.marks())
        work.run(script, "--input", source, *options)
        return len(work.marks()) - before
    equal(runs(), 1, "the first")
    equal(runs(), 0, "the same")
    equal(runs(": changed"), 1, "another command line")
    equal(runs(": changed", "--key", "2"), 1, "another key")
    with open(source, "w", encoding="utf-8") as file:
        file.write("new")
    equal(runs(": changed", "--key", "2"), 1, "another content")
    equal(runs(": changed", "--key", "2"), 0, "the same again")
    _, stderr = work.run("true", "--input", box.path("missing"), status=1)
    contains(stderr, "--input", "missing", "No such file")
    contains(work.run("true", "--input", box.folder, status=1)[1], "is not a regular file")


@case("a failure reaches all who waited, with status and last words; who comes later tries anew")
def _(box):
    work = Work(box)
    go = box.path("go")
    ranks = [work.start(f"until [ -e {go} ]; do sleep 0.1; done; sleep 0.4; echo no luck today >&2; exit 7") for _ in range(N_RANKS)]
    within(60, lambda: all(work.has_come(rank) for rank in ranks), "all ranks have come")
    write(go, b"")
    for rank in ranks:
        contains(work.end(rank, 7)[1], "no luck today")
    equal(len(work.marks()), 1, "runs")
    work.run("exit 7", status=7)
    equal(len(work.marks()), 2, "runs after another call")
    work.run("kill -9 $$", status=137)
    contains(work.run("", status=127, command=["no-such-program"])[1], "no-such-program", "No such file")
    work.run("", status=126, command=["/etc/passwd"])


@case("of long last words the end is kept, and what is no text is passed on")
def _(box):
    work = Work(box)
    runner = work.box.start(work.command("i=0; while [ $i -lt 999 ]; do echo line $i; i=$((i+1)); done >&2; "
                                         "printf 'a\\000b\\377\\033end\\n' >&2; exit 1"),
                            stderr=subprocess.PIPE, env=environment())
    stderr = runner.communicate(timeout=patience(60))[1]
    contains(stderr.decode("latin-1"), "line 0\n", "line 998\na\0b\xff\x1bend\n")
    with open(work.record(), "rb") as file:
        content = file.read()
    equal((b"line 0\n" in content, b"line 998\na?b\xff\x1bend" in content), (False, True), "the record has the end")


@case("a runner that is killed is replaced, and nothing of its command goes on beside the new one")
def _(box):
    work = Work(box)
    ranks = [work.start(f"test -e {box.path('second')} && exit 0; touch {box.path('second')}; "
                        f"sh -c 'echo $$ >> {box.path('child')}; sleep 1000; true'; true") for _ in range(3)]
    within(20, lambda: os.path.exists(box.path("child")), "the command's own child runs")
    with open(box.path("child"), encoding="utf-8") as file:
        child = int(within(5, file.readline, "its id"))
    shell = work.marks()[0]
    keeper = parent_of(shell)
    runner = next(rank for rank in ranks if rank.pid == parent_of(keeper))
    runner.kill()
    runner.communicate()
    remarks = [work.end(rank)[1] for rank in ranks if rank is not runner]
    equal(len(work.marks()), 2, "runs")
    equal((is_alive(shell), is_alive(child), is_alive(keeper)), (False, False, False), "what is left of the first")
    contains("".join(remarks), f"pid {runner.pid}", "died")


def parent_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rpartition(")")[2].split()[1])


@case("the keeper's death takes the command with it; the next one begins anew")
def _(box):
    work = Work(box)
    runner = work.start(f"test -e {box.path('second')} && exit 0; touch {box.path('second')}; exec sleep 1000")
    within(20, lambda: os.path.exists(box.path("second")), "the command runs")
    waiter = work.start(runner.args[-1].partition("; ")[2])
    shell = work.marks()[0]
    os.kill(parent_of(shell), signal.SIGKILL)
    contains(work.end(runner, 1)[1], "it is unknown how")
    work.end(waiter)
    within(5, lambda: not is_alive(shell), "the command is gone")
    equal(len(work.marks()), 2, "runs")


@case("SIGINT and SIGTERM reach the command; that counts as interrupted, and a waiter goes on")
def _(box):
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        work = Work(box, f"work{number}")
        flag = box.path(f"told{number}")
        script = f"trap 'touch {flag}; exit 9' INT TERM HUP; test -e {flag} && exit 0; while :; do sleep 0.05; done"
        ranks = [work.start(script)]
        within(20, work.marks, "the command runs")
        ranks.append(work.start(script))
        time.sleep(0.2)
        ranks[0].send_signal(number)
        contains(work.end(ranks[0], status)[1], "interrupted")
        work.end(ranks[1])
        equal((os.path.exists(flag), len(work.marks())), (True, 2), "told, runs")


@case("a command that ends well in spite of a signal is done")
def _(box):
    work = Work(box)
    runner = work.start("trap 'exit 0' TERM; while :; do sleep 0.05; done")
    within(20, work.marks, "the command runs")
    time.sleep(0.2)
    runner.terminate()
    work.end(runner)
    work.run("trap 'exit 0' TERM; while :; do sleep 0.05; done")
    equal(len(work.marks()), 1, "runs")


@case("what a command leaves running when it fails is killed before the next attempt")
def _(box):
    work = Work(box)
    work.run(f"sleep 1000 & echo $! > {box.path('left')}; exit 3", status=3)
    with open(box.path("left"), encoding="utf-8") as file:
        equal(is_alive(int(file.read())), False, "it goes on")


@case("what a command leaves running when it is done holds nobody up")
def _(box):
    work = Work(box)
    script = f"sleep 1000 & echo $! > {box.path('left')}; exit 0"
    first = work.box.start(work.command(script), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           env=environment())
    equal(first.wait(300), 0, "status")
    with open(box.path("left"), encoding="utf-8") as file:
        left = int(file.read())
    try:
        equal(is_alive(left), True, "it goes on")
        work.run("true", "--key", "other")
        equal(len(work.marks()), 2, "runs")
    finally:
        os.kill(left, signal.SIGKILL)


@case("who waits says for whom, and gives up after --timeout")
def _(box):
    work = Work(box)
    runner = work.start("sleep 1000")
    within(20, work.marks, "the command runs")
    begin = time.monotonic()
    contains(work.run("sleep 1000", "--timeout", "4", status=124)[1], f"waiting for pid {runner.pid} on", " s\n")
    equal(time.monotonic() - begin >= 4, True, "it waited")
    contains(work.run("sleep 1000", "--timeout", "0", status=124)[1], f"by pid {runner.pid}")
    runner.terminate()
    runner.communicate()
    equal(len(work.marks()), 1, "runs")


@case("a damaged record counts as nothing, and that is said")
def _(box):
    work = Work(box)
    work.run("true")
    with open(work.record(), "rb") as file:
        good = file.read()
    n_runs = 1
    for damage in (good[:40], good[:-1], good.replace(b"state done", b"state dine"), b"x", b"\0" * len(good),
                   b"dataloaderd-once-1 ffffffffffffffff 99999999\n" + good, b"y" * 3000000,
                   good.replace(b"attempt 1", b"attempt 9")):
        with open(work.record(), "wb") as file:
            file.write(damage)
        contains(work.run("true")[1], "was damaged")
        n_runs += 1
        equal(len(work.marks()), n_runs, f"runs after {damage[:60]}")
    open(work.record(), "w").close()
    equal(work.run("true")[1], "", "an empty file is nothing to talk about")
    os.unlink(work.record())
    work.run("true")
    equal(len(work.marks()), n_runs + 2, "runs")


@case("a file that is removed while somebody waits for it does not let two run at once")
def _(box):
    work = Work(box)
    script = f"echo begin >> {box.path('log')}; sleep 0.5; echo end >> {box.path('log')}"
    first = work.start(script)
    within(20, work.marks, "it runs")
    others = [work.start(script) for _ in range(4)]
    time.sleep(0.1)
    os.rename(work.record(), box.path("moved"))
    for rank in [first] + others:
        work.end(rank)
    # The one who had the old file did not know; of those who came to the new one, one ran.
    equal(len(work.marks()), 2, "runs")


@case("a folder or file that strangers could change is refused, with its name")
def _(box):
    work = Work(box)
    os.chmod(work.dir, 0o777)
    contains(work.run("true", status=1)[1], work.dir, "everybody")
    os.chmod(work.dir, 0o1777)
    work.run("true")
    os.unlink(work.record())
    name = f"{work.name}.once"
    target = box.path("target")
    for make in (lambda path: os.symlink(target, path), os.mkdir, os.mkfifo):
        path = os.path.join(work.dir, name)
        make(path)
        contains(work.run("true", status=1, scope="cluster")[1], path)
        shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    equal((os.path.exists(target), len(work.marks())), (False, 1), "nothing was followed, nothing ran")
    contains(work.run("true", "--dir", box.path("nowhere"), status=1)[1], box.path("nowhere"), "No such file")
    if os.geteuid() == 0:
        with open(os.path.join(work.dir, name), "w", encoding="utf-8"):
            pass
        os.chown(os.path.join(work.dir, name), 12345, 12345)
        contains(work.run("true", status=1, scope="cluster")[1], "belongs to the user 12345")


@case("without --dir a node's folder is the user's own in /tmp, and a foreign one there is refused")
def _(box):
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        raise Skip("needs root and unshare: /tmp of its own")
    done = subprocess.run(["unshare", "-m", "sh", "-ec", f"""
        exec 9<{DLCTL}; dlctl=/proc/$$/fd/9
        mount -t tmpfs none /tmp
        $dlctl once --name a -- sh -c 'echo first' 2>&1
        $dlctl once --name a -- sh -c 'echo first' 2>&1
        stat -c %a /tmp/dataloaderd-once-0
        chmod 777 /tmp/dataloaderd-once-0; $dlctl once --name a -- true 2>&1 || echo $?
        chmod 700 /tmp/dataloaderd-once-0; chown 12345 /tmp/dataloaderd-once-0; $dlctl once --name a -- true 2>&1 || echo $?
        rm -r /tmp/dataloaderd-once-0; ln -s /root /tmp/dataloaderd-once-0; $dlctl once --name a -- true 2>&1 || echo $?
        """], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment())
    if "mount:" in done.stdout or "unshare:" in done.stdout:
        raise Skip(f"no mount namespace: {done.stdout.strip()}")
    lines = done.stdout.splitlines()
    equal(lines[:2], ["first", "700"], done.stdout)
    for i, words in enumerate(("may be written to by others", "belongs to the user 12345", "is not a folder")):
        contains(lines[2 + 2 * i], words)
        equal(lines[3 + 2 * i], "1", done.stdout)


@case("a full disk is an error before the command runs, or after it: then another one would run it again")
def _(box):
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        raise Skip("needs root and unshare: a small file system")
    done = subprocess.run(["unshare", "-m", "sh", "-c", f"""
        mount -t tmpfs -o size=16k none {box.folder} || exit 3
        head -c 100000 /dev/zero >{box.path('fill')} 2>/dev/null
        {DLCTL} once --name a --dir {box.folder} -- echo ran 2>&1; echo $?
        rm {box.path('fill')}
        {DLCTL} once --name a --dir {box.folder} -- echo ran 2>&1; echo $?
        """], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment())
    if done.returncode == 3 or "unshare:" in done.stdout:
        raise Skip(f"no mount namespace: {done.stdout.strip()}")
    lines = done.stdout.splitlines()
    contains(lines[0], "No space left", box.folder)
    equal(lines[1:], ["1", "ran", "0"], done.stdout)


@case("wrong options are refused with what is allowed")
def _(box):
    def refused(*arguments):
        done = subprocess.run([DLCTL, "once"] + list(arguments), check=False, stderr=subprocess.PIPE, text=True,
                              stdout=subprocess.PIPE, env=environment())
        equal(done.returncode, 2, f"{arguments}: {done.stderr}")
        return done.stderr
    contains(refused("--", "true"), "--name")
    contains(refused("--name", "a"), "COMMAND", "missing")
    for name in ("", "../a", ".a", "a/b", "a b", "x" * 65, "ä", "-a"):
        contains(refused("--name", name, "--", "true"), "name:", "letters")
    contains(refused("--name", "a", "--scope", "world", "--", "true"), "scope", "cluster")
    contains(refused("--name", "a", "--scope", "cluster", "--", "true"), "DATALOADERD_ONCE_DIR")
    contains(refused("--name", "a", "--timeout", "soon", "--", "true"), "--timeout")
    work = Work(box)
    equal(work.run("", command=["echo", "--name", "x", "--help"])[0], "--name x --help\n",
          "what stands behind COMMAND is the command's")
    done = subprocess.run([DLCTL, "once", "--name", "a", "--scope", "cluster", "echo", "--from-environment"],
                          check=True, stdout=subprocess.PIPE, text=True, env=environment(DATALOADERD_ONCE_DIR=work.dir))
    equal(done.stdout, "--from-environment\n", "-- may be left out")
    equal(sorted(os.listdir(work.dir))[0], "a.once", "where it is remembered")


@case("one hundred short runs by many ranks, killed at random: never two at once, and all ranks end")
def _(box):
    work = Work(box)
    inside, trouble = box.path("inside"), box.path("trouble")
    script = f"mkdir {inside} || echo two >> {trouble}; sleep 0.02; rmdir {inside}"
    for round_number in range(12):
        ranks = [work.start(script, "--key", str(round_number)) for _ in range(N_RANKS)]
        time.sleep(0.005 * round_number)
        if round_number % 3 == 0:
            ranks[round_number % N_RANKS].kill()
            ranks[round_number % N_RANKS].communicate()
            ranks.pop(round_number % N_RANKS)
        for rank in ranks:
            rank.communicate(timeout=patience(60))
            # a killed run leaves its folder: the next one finds it there, which is no second runner
            if rank.returncode not in (0, 1):
                raise AssertionError(f"round {round_number}: {rank.returncode}")
        if round_number % 3 == 0:
            for path in (inside, trouble):
                shutil.rmtree(path, ignore_errors=True)
                if os.path.exists(path):
                    os.unlink(path)
        equal(os.path.exists(trouble), False, "two at once")


@case("four ranks of mpirun: one runs the command")
def _(box):
    work = Work(box)
    done = subprocess.run(mpirun() + work.command("echo ran; sleep 0.3", scope="cluster"), check=False, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(TMPDIR=box.folder))
    equal((done.returncode, done.stdout), (0, "ran\n"), done.stderr)
    equal(len(work.marks()), 1, "runs")


@case("dlctl once needs neither daemon nor library path, and leaves no file but its own")
def _(box):
    work = Work(box)
    work.run("true")
    equal(os.listdir(work.dir), [os.path.basename(work.record())], "files")
    equal(stat.S_IMODE(os.stat(work.record()).st_mode), 0o600, "mode")
    with open(work.record(), encoding="utf-8") as file:
        contains(file.read(), "state done", "attempt 1")


main()
