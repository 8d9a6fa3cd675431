#!/usr/bin/env python3
"""The runner counts right: a test that fails, hangs, leaves processes behind or runs nothing is never called passed."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, case, contains, equal, main, write

RUNNER = os.path.join(ROOT, "tests", "run.py")


def run(box, script, *options, name="planted.sh", variant="release", limit=20):
    """Runs one planted script. Returns (exit status, last line, all output)."""
    write(box.path(name), ("#!/bin/bash\n" + script + "\n").encode())
    os.chmod(box.path(name), 0o755)
    done = subprocess.run([sys.executable, RUNNER, *options, "--limit", str(limit), f"{variant}:{box.path(name)}"], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, timeout=300)
    return done.returncode, done.stdout.splitlines()[-1], done.stdout


def expect(box, script, status, count, *words, options=(), **keywords):
    got_status, last, output = run(box, script, *options, **keywords)
    equal((got_status, last), (status, count), f"{script!r}: {output}")
    contains(output, *words)


@case("what passes, fails and is skipped is counted so")
def _(box):
    expect(box, "echo fine", 0, "1 passed, 0 failed, 0 skipped")
    expect(box, "echo the reason why; exit 3", 1, "0 passed, 1 failed, 0 skipped", "the reason why")
    expect(box, "echo no such machine; exit 77", 0, "0 passed, 0 failed, 1 skipped", "no such machine")
    expect(box, "echo '100%: Checks: 12, Failures: 0, Errors: 0'", 0, "12 passed, 0 failed, 0 skipped")
    expect(box, "echo '83%: Checks: 12, Failures: 1, Errors: 1'; exit 1", 1, "10 passed, 2 failed, 0 skipped")
    expect(box, "echo 'skipped this: no network'; echo '3 passed, 0 failed, 1 skipped'", 0,
           "3 passed, 0 failed, 1 skipped", "no network")


@case("a program that dies after its tests, or ran none, has failed")
def _(box):
    expect(box, "echo '100%: Checks: 12, Failures: 0, Errors: 0'; exit 23", 1, "12 passed, 1 failed, 0 skipped")
    expect(box, "echo '100%: Checks: 3, Failures: 0, Errors: 0'; kill -SEGV $$", 1, "3 passed, 1 failed, 0 skipped")
    expect(box, "echo '100%: Checks: 0, Failures: 0, Errors: 0'", 1, "0 passed, 1 failed, 0 skipped")
    expect(box, "echo '0 passed, 0 failed, 0 skipped'", 1, "0 passed, 1 failed, 0 skipped")


@case("what failed is said once more at the end, with its telling lines")
def _(box):
    for name, text in (("good.sh", "exit 0"), ("wrong.sh", "echo 'step 3: bad'; seq 100; echo '0 bad'; exit 1")):
        write(box.path(name), f"#!/bin/bash\n{text}\n".encode())
        os.chmod(box.path(name), 0o755)
    done = subprocess.run([sys.executable, RUNNER, f"release:{box.path('wrong.sh')}", f"release:{box.path('good.sh')}"],
                          check=False, stdout=subprocess.PIPE, universal_newlines=True, timeout=300)
    equal(done.stdout.splitlines()[-4:-2], ["FAILED release wrong.sh", "        | step 3: bad"], done.stdout)


@case("with --again what fails and then passes is called unsteady; what fails twice, crashes or was found by a sanitizer has failed")
def _(box):
    once = f"[ -e {box.path('mark')} ] && echo '2 passed, 0 failed, 0 skipped' && exit 0; touch {box.path('mark')}; "

    def first_fails(how, *expected):
        if os.path.exists(box.path("mark")):
            os.unlink(box.path("mark"))
        expect(box, once + how, *expected, options=["--again"])

    first_fails("echo 'failed: too late'; echo '1 passed, 1 failed, 0 skipped'; exit 1", 0, "2 passed, 0 failed, 0 skipped",
                "again, alone: release planted.sh", "failed: too late")
    first_fails("echo 'ERROR: AddressSanitizer: heap-use-after-free'; exit 1", 1, "0 passed, 1 failed, 0 skipped")
    first_fails("kill -SEGV $$", 1, "0 passed, 1 failed, 0 skipped")
    expect(box, once + "exit 1", 0, "2 passed, 0 failed, 0 skipped")  # the mark is there
    os.unlink(box.path("mark"))
    expect(box, once + "exit 1", 1, "0 passed, 1 failed, 0 skipped")
    expect(box, "exit 1", 1, "0 passed, 1 failed, 0 skipped", "again, alone", options=["--again"])


@case("more than three unsteady tests are failures")
def _(box):
    paths = []
    for number in range(4):
        paths.append(f"release:{box.path(f't{number}.sh')}")
        write(box.path(f"t{number}.sh"), f"#!/bin/bash\n[ -e {box.path(f'm{number}')} ] && exit 0; touch {box.path(f'm{number}')}; exit 1\n".encode())
        os.chmod(box.path(f"t{number}.sh"), 0o755)
    for n_tests, count in ((3, "3 passed, 0 failed, 0 skipped"), (4, "4 passed, 4 failed, 0 skipped")):
        for number in range(4):
            if os.path.exists(box.path(f"m{number}")):
                os.unlink(box.path(f"m{number}"))
        done = subprocess.run([sys.executable, RUNNER, "--again"] + paths[:n_tests], check=False, stdout=subprocess.PIPE,
                              universal_newlines=True, timeout=300)
        equal(done.stdout.splitlines()[-1], count, done.stdout)
        contains(done.stdout, "UNSTEADY release t2.sh")


@case("a program that is not there has failed")
def _(box):
    done = subprocess.run([sys.executable, RUNNER, "release:build/release/tests/no_such_test"], check=False,
                          stdout=subprocess.PIPE, universal_newlines=True, timeout=300)
    equal((done.returncode, done.stdout.splitlines()[-1]), (1, "0 passed, 1 failed, 0 skipped"), done.stdout)


@case("a test that hangs is ended at its limit, its children with it")
def _(box):
    expect(box, f"sleep 300 & echo $! >{box.path('pid')}; trap '' TERM; sleep 300; sleep 300", 1,
           "0 passed, 1 failed, 0 skipped", "limit of 1 s", limit=1)
    with open(box.path("pid"), encoding="ascii") as file:
        equal(os.path.exists(f"/proc/{file.read().strip()}"), False, "the child is gone")


@case("a process that a test leaves behind is its failure, and is ended")
def _(box):
    expect(box, f"sleep 300 & echo $! >{box.path('pid')}", 1, "0 passed, 1 failed, 0 skipped", "left behind: processes")
    with open(box.path("pid"), encoding="ascii") as file:
        equal(os.path.exists(f"/proc/{file.read().strip()}"), False, "the child is gone")


@case("a temporary file that a test leaves behind is its failure, and is removed")
def _(box):
    expect(box, f'echo "$TMPDIR" >{box.path("folder")}; mkdir "$TMPDIR/pymp-x"; echo "1 passed, 0 failed, 0 skipped"', 1,
           "1 passed, 1 failed, 0 skipped", "left behind: a temporary file, pymp-x")
    with open(box.path("folder"), encoding="ascii") as file:
        equal(os.path.exists(file.read().strip()), False, "the folder is gone")


@case("the variant reaches the test, and slow variants get more time")
def _(box):
    expect(box, 'test "$DLP_BUILD" = build/asan && test "$CK_FORK" = no && sleep 5', 0,
           "1 passed, 0 failed, 0 skipped", variant="asan", limit=4)


@case("tests that are to be alone run alone")
def _(box):
    lock = box.path("lock")
    script = f"#!/bin/bash\n# run: alone\nmkdir {lock} || exit 1\nsleep 0.3\nrmdir {lock}\n"
    paths = []
    for number in range(4):
        write(box.path(f"t{number}.sh"), script.encode())
        os.chmod(box.path(f"t{number}.sh"), 0o755)
        paths.append(f"release:{box.path(f't{number}.sh')}")
    done = subprocess.run([sys.executable, RUNNER, "--jobs", "4"] + paths, check=False, stdout=subprocess.PIPE,
                          universal_newlines=True, timeout=300)
    equal(done.stdout.splitlines()[-1], "4 passed, 0 failed, 0 skipped", done.stdout)


BESIDE = """
import sys, time
sys.path.insert(0, sys.argv[1])
import run
run.LOOK_SECONDS, is_idle = 0.1, float(sys.argv[2])
run.idle_seconds = lambda: time.monotonic() * is_idle
report = run.Report()
run.run_beside([run.Test(path, 20) for path in sys.argv[3:]], 1, report, 1)
print(report.passed, report.failed)
"""


@case("while CPUs are idle one more test runs beside the others; while they are busy none does")
def _(box):
    for is_idle, script in ((1, "touch $0.here; until [ $(ls *.here | wc -l) -ge 2 ]; do sleep 0.1; done"),
                            (0, "mkdir once || exit 1; sleep 0.5; rmdir once")):
        paths = [box.path(f"idle{is_idle}-{number}.sh") for number in range(2)]
        for path in paths:
            write(path, f"#!/bin/bash\ncd {box.folder}\n{script}\n".encode())
            os.chmod(path, 0o755)
        done = subprocess.run([sys.executable, "-c", BESIDE, os.path.dirname(RUNNER), str(is_idle), *(f"release:{path}" for path in paths)],
                              check=True, stdout=subprocess.PIPE, universal_newlines=True, timeout=300)
        equal(done.stdout.splitlines()[-1], "2 0", done.stdout)


@case("the last line is the count, and long output is cut to its end")
def _(box):
    _, last, output = run(box, "for i in $(seq 1000); do echo line $i; done; exit 1")
    equal(bool(re.match(r"^\d+ passed, \d+ failed, \d+ skipped$", last)), True, last)
    contains(output, "line 1000", "line 990")
    equal("line 900" in output, False, "only the end is shown")


main()
