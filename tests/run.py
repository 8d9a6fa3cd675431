#!/usr/bin/env python3
"""Runs test programs and scripts, each with a time limit, and counts.

    run.py [--jobs N] [--limit SECONDS] VARIANT:PATH[@GROUP]...

VARIANT names the build under build/ that is tested (release, asan, tsan, fallback) and goes to the test as
DLP_BUILD=build/VARIANT; "valgrind" runs the release build's program under valgrind. A GROUP is one of Check's test cases,
for a program of which a variant needs this part alone. A test passes by ending with 0. It
may say how many tests it was: by Check's "100%: Checks: 12, Failures: 0, Errors: 0", or by ending its output with
"12 passed, 0 failed, 1 skipped"; else it counts as one. One that ends with 77 was skipped, for the reason that its last
line gives.

A script may ask for its own terms in a comment among its first lines:

    # run: alone limit=900

"alone": with nothing beside it, for a test that needs something that exists once on a machine. A deadline does not count as one:
tests must also pass while all CPUs are busy. A limit tells a hang from a slow machine and nothing else.

More tests run at a time than there are CPUs (three more), since most of a test's time is waiting; and while a CPU is idle all the
same, up to MORE_MAX beside them. The longest begin first, as build/check/times.txt says, which each run keeps, or else tests/times.txt, so that no long one is left over at the end.

A process or a file in TMPDIR that a test leaves behind is a failure of that test, and is removed.

With --again, a test that failed is run once more at the end, with nothing beside it. If it passes then, it counts as passed, but is
called unsteady, with what it said at first: two CPUs that others use as well make a test of minutes fail now and then, and one such
in a thousand would hide what really broke. It is to be mended all the same, and more than UNSTEADY_MAX of them are failures.
What a sanitizer or valgrind reported, and a crash, is never tried again: such a thing is seldom, and never the machine's doing.

The last line of all is `N passed, N failed, N skipped`; the exit status is 0 only if nothing failed.
"""
import argparse
import collections
import compileall
import contextlib
import copy
import fcntl
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOGS = os.path.join(ROOT, "build", "check")
SKIPPED = 77
TAIL_LINES = 40
VALGRIND = ["valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite",
            "--fair-sched=yes", "--vgdb=no"]
SLOWER = {"asan": 3, "tsan": 5, "valgrind": 8}  # how many times the limit such a build may take
CHECK_PATIENCE = 10  # times Check's own limits, which are meant for a machine that has nothing else to do
TIMES = os.path.join(LOGS, "times.txt")  # as the last runs here took
TIMES_ELSEWHERE = os.path.join(ROOT, "tests", "times.txt")  # for the first run: a copy of such a file
COMPILED = ("client/python", "tests/support")  # Python that hundreds of processes import: compiled once, before them
NOTED_SECONDS = 5  # shorter ones are not noted: where they stand in the order makes no difference

CHECK_LINE = re.compile(r"^(\d+)%: Checks: (\d+), Failures: (\d+), Errors: (\d+)\s*$", re.M)
COUNT_LINE = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped\s*$")
CASE_SKIPPED = re.compile(r"^skipped\s+(.*)$", re.M)
TELLING = re.compile(r"\b(fail|failed|FAILED|error|Error|ERROR|bad|BAD|left|SUMMARY)\b|[a-z]Error\b|:[EF]:")
TELLING_LINES = 12
GET_FLAGS, SET_FLAGS, TOP_FOLDER = 0x80086601, 0x40086602, 0x20000  # as chattr +T
UNSTEADY_MAX = 3
MORE_MAX = 4
LOOK_SECONDS = 1  # at idle CPUs
IDLE_ENOUGH = 0.5  # CPUs, on average since the last look, for one test more
NEVER_THE_MACHINE = re.compile(r"Sanitizer|runtime error: |^==\d+== |Segmentation fault|core dumped|signal 11", re.M)


class Test:
    """One program in one build, and what became of it."""

    def __init__(self, spec, limit):
        self.variant, _, path = spec.partition(":")
        self.path, _, self.group = path.partition("@")
        if not self.path:
            sys.exit(f"run.py: {spec}: VARIANT:PATH is wanted")
        self.name = os.path.basename(self.path)
        self.alone = False
        self.limit = limit
        if self.path.endswith((".py", ".sh")):
            self.read_terms()
        self.limit *= SLOWER.get(self.variant, 1)
        self.passed = self.failed = self.skipped = 0
        self.seconds = self.cpu_seconds = 0.0
        self.output = ""
        self.notes = []
        self.crashed = False

    def read_terms(self):
        with open(os.path.join(ROOT, self.path), encoding="utf-8") as script:
            for line in list(script)[:30]:
                match = re.match(r"# run: (.*)", line)
                if match:
                    words = match.group(1).split()
                    self.alone = "alone" in words
                    for word in words:
                        if word.startswith("limit="):
                            self.limit = float(word[6:])

    def command(self):
        path = os.path.join(ROOT, self.path)
        if self.path.endswith(".py"):
            return [sys.executable, path]
        if self.variant == "valgrind":
            return VALGRIND + [path]
        return [path]

    def environment(self, folder):
        """Temporary files go into `folder`, which has to be empty again after the test."""
        env = dict(os.environ)
        env["TMPDIR"] = folder
        build = "release" if self.variant == "valgrind" else self.variant
        env["DLP_BUILD"] = os.path.join("build", build)
        env["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(ROOT, "build", "check", "torchinductor")  # torch makes it when imported
        env["PYTHONUNBUFFERED"] = "1"
        env["PYTHONDONTWRITEBYTECODE"] = "1"  # main() has compiled what many import
        if self.group:
            env["CK_RUN_CASE"] = self.group
        env["CK_TIMEOUT_MULTIPLIER"] = str(CHECK_PATIENCE)
        if self.variant in SLOWER:
            env["CK_FORK"] = "no"
            env["SUITE_ROUNDS_PART"] = "10"
        env["ASAN_OPTIONS"] = "abort_on_error=0:detect_leaks=1:allocator_may_return_null=1"
        env["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1"
        env["TSAN_OPTIONS"] = "halt_on_error=1:second_deadlock_stack=1"
        for name in ("DATALOADERD_SOCKET", "RANK", "WORLD_SIZE", "NOTIFY_SOCKET", "LISTEN_FDS", "MAKEFLAGS", "MAKELEVEL"):
            env.pop(name, None)
        return env


RUNNING = {}  # process group -> Test, so that Ctrl-C leaves nothing
LOCK = threading.Lock()


def end_group(group):
    """Ends a process group that we started. Returns whether anything was left in it."""
    left = False
    for number in (signal.SIGTERM, signal.SIGKILL):
        for _ in range(20):
            try:
                os.killpg(group, 0)
            except (ProcessLookupError, PermissionError):
                return left
            if not only_zombies(group):
                left = True
                os.killpg(group, number)
            time.sleep(0.1)
    return left


def only_zombies(group):
    """Are all processes of the group dead already, waiting for their parent?"""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as stat:
                    fields = stat.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] != "Z":
                return False
    return True


def wait(process, seconds):
    """Waits for a process' end. Returns its exit status and the CPU seconds of it and of all children that it waited for;
    the status is None if it has not ended in time."""
    end = time.monotonic() + seconds
    pause = 0.002
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage.ru_utime + usage.ru_stime
        if time.monotonic() > end:
            return None, 0.0
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


def default_signals():
    """A shell starts what runs in the background with SIGINT ignored, nohup ignores SIGHUP, and what is ignored stays so
    through exec(): tests of these signals would wait for ever."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def spread(folder):
    """Folders in this one are to lie far from each other: when ext4 makes a file, it passes one by one over the inodes of its
    neighbourhood that were deleted in the last minutes, which took a seventh of the CPU time of all tests."""
    descriptor = os.open(folder, os.O_RDONLY)
    with contextlib.suppress(OSError):  # of other file systems
        flags, = struct.unpack("i", fcntl.ioctl(descriptor, GET_FLAGS, bytes(4)))
        fcntl.ioctl(descriptor, SET_FLAGS, struct.pack("i", flags | TOP_FOLDER))
    os.close(descriptor)


def run(test):
    if not os.path.exists(os.path.join(ROOT, test.path)):
        test.failed = 1
        test.output = f"{test.path} is not there: it was not built"
        return
    log_path = os.path.join(LOGS, f"{test.variant}-{test.name}.log")
    folder = tempfile.mkdtemp(prefix="dlp-check-")
    os.chmod(folder, 0o755)  # daemons that tests start for other users get to their own folders in it
    spread(folder)
    begin = time.monotonic()
    with open(log_path, "wb") as log:
        process = subprocess.Popen(test.command(), cwd=ROOT, env=test.environment(folder), stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                                   preexec_fn=default_signals)
        with LOCK:
            RUNNING[process.pid] = test
        status, test.cpu_seconds = wait(process, test.limit)
        left = ["processes (ended now)"] if end_group(process.pid) else []
        process.wait()
        with LOCK:
            RUNNING.pop(process.pid, None)
    left += [f"a temporary file, {name}" for name in sorted(os.listdir(folder))]
    shutil.rmtree(folder, ignore_errors=True)
    test.seconds = time.monotonic() - begin
    with open(log_path, encoding="utf-8", errors="replace") as log:
        test.output = log.read()
    judge(test, status, left)


def judge(test, status, left):
    """Turns an exit status and an output into counts."""
    lines = test.output.rstrip().splitlines()
    last = lines[-1] if lines else ""
    check = CHECK_LINE.findall(test.output)
    count = COUNT_LINE.match(last)
    test.notes = CASE_SKIPPED.findall(test.output)
    test.crashed = status is not None and status < 0
    if status is None:
        test.output += f"\nended after its limit of {test.limit:.0f} s"
    elif left:
        test.output += "\nleft behind: " + "; ".join(left)
    elif status == SKIPPED:
        test.skipped = int(count.group(3)) if count else 1
        test.notes = test.notes or [last or "no reason given"]
        return
    if check:
        n_bad = sum(int(failures) + int(errors) for _, _, failures, errors in check)
        test.passed = sum(int(checks) for _, checks, _, _ in check) - n_bad
        test.failed = n_bad
    elif count:
        test.passed, test.failed, test.skipped = (int(number) for number in count.groups())
    elif status == 0 and not left:
        test.passed = 1
    if (status != 0 or left) and test.failed == 0:
        test.failed = 1
        test.output += f"\nexit status {status}" if status is not None else ""
    if status == 0 and test.passed + test.failed + test.skipped == 0:
        test.failed = 1
        test.output += "\nran no test at all"


class Report:
    """Prints a line a test; knows the sums."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.seconds = collections.Counter()  # by variant
        self.cpu_seconds = collections.Counter()
        self.bad = []  # the tests that failed
        self.unsteady = []  # those that failed and then passed, as they were at first
        self.colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ

    def paint(self, text, number):
        return f"\033[{number}m{text}\033[0m" if self.colour else text

    def line(self, test):
        self.passed += test.passed
        self.failed += test.failed
        self.skipped += test.skipped
        self.seconds[test.variant] += test.seconds
        self.cpu_seconds[test.variant] += test.cpu_seconds
        if test.failed:
            word = self.paint("FAILED ", 31)
        elif test.passed == 0:
            word = self.paint("skipped", 33)
        else:
            word = self.paint("ok     ", 32)
        counts = f"{test.passed} passed" + (f", {test.failed} failed" if test.failed else "") + \
            (f", {test.skipped} skipped" if test.skipped else "")
        print(f"{word} {test.seconds:6.1f} s {test.cpu_seconds:6.1f} cpu  {test.variant:<9} {test.name:<28} {counts}", flush=True)
        for note in test.notes:
            print(f"            skipped: {note}", flush=True)
        if test.failed:
            for line in test.output.rstrip().splitlines()[-TAIL_LINES:]:
                print(f"        | {line}")
            print(f"        (all of it: build/check/{test.variant}-{test.name}.log)", flush=True)
            self.bad.append(test)

    def try_again(self):
        """Runs what failed once more, if it may be the machine's doing."""
        for first in [test for test in self.bad if not test.crashed and not NEVER_THE_MACHINE.search(test.output)][:UNSTEADY_MAX + 1]:
            print(f"again, alone: {first.variant} {first.name}", flush=True)
            second = copy.copy(first)
            second.passed = second.failed = second.skipped = 0
            run(second)
            self.line(second)
            if second.failed:
                self.bad.remove(second)  # it is there already
            else:
                self.bad.remove(first)
                self.unsteady.append(first)
            for count in ("passed", "failed", "skipped"):
                setattr(self, count, getattr(self, count) - getattr(first, count))
        if len(self.unsteady) > UNSTEADY_MAX:
            self.failed += len(self.unsteady)
            print(f"more than {UNSTEADY_MAX} tests are unsteady: they count as failed")

    def tell_again(self):
        """What failed, once more: a long log is often cut in its middle, and its end is what is read first."""
        for test in self.unsteady + self.bad:
            word = self.paint("FAILED", 31) if test in self.bad else self.paint("UNSTEADY", 33)
            print(f"{word} {test.variant} {test.name}")
            lines = [line for line in test.output.splitlines() if TELLING.search(line) and not re.search(r"\b0 (bad|failed)", line)]
            for line in lines[:TELLING_LINES]:
                print(f"        | {line[:160]}")

    def times(self, wall_seconds):
        """Where the time went: a sentence."""
        parts = [f"{variant} {self.cpu_seconds[variant]:.0f}" for variant in self.seconds]
        print(f"{wall_seconds:.0f} s; CPU seconds: {sum(self.cpu_seconds.values()):.0f} ({', '.join(parts)})")


def read_times():
    """How long tests took once: "VARIANT:NAME" -> seconds."""
    times = {}
    for path in (TIMES_ELSEWHERE, TIMES):
        with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
            times.update((name, float(seconds)) for seconds, name in (line.split() for line in file if not line.startswith("#")))
    return times


def note_times(tests):
    """Keeps how long these tests took, beside what is known of others."""
    times = read_times()
    times.update((f"{test.variant}:{test.name}", test.seconds) for test in tests if test.seconds > 0)
    with open(f"{TIMES}.{os.getpid()}", "w", encoding="utf-8") as file:
        file.write("# Seconds that the longer tests take in `make check`; the longest begin first. A copy of run.py's build/check/times.txt.\n")
        for name, seconds in sorted(times.items(), key=lambda item: (-round(item[1]), item[0])):
            if seconds >= NOTED_SECONDS:
                file.write(f"{seconds:.0f} {name}\n")
    os.replace(file.name, TIMES)


def longest_first(tests):
    times = read_times()
    return sorted(tests, key=lambda test: -times.get(f"{test.variant}:{test.name}", 0))


def idle_seconds():
    """Of the CPUs that are ours, since the machine began."""
    with open("/proc/stat", encoding="ascii") as stat:
        lines = dict(line.split(None, 1) for line in stat)
    return sum(int(lines[f"cpu{number}"].split()[3]) for number in os.sched_getaffinity(0)) / os.sysconf("SC_CLK_TCK")


def run_beside(tests, n_jobs, report, n_more=0):
    """Runs tests n_jobs at a time, in order, and up to n_more beside them while CPUs are idle."""
    todo = list(reversed(tests))

    def work(goes_on):
        while True:
            with LOCK:
                if not todo:
                    return
                test = todo.pop()
            run(test)
            with LOCK:
                report.line(test)
            if not goes_on:
                return

    def begin(goes_on):
        thread = threading.Thread(target=work, args=(goes_on,), daemon=True)
        thread.start()
        return thread

    threads = [begin(True) for _ in range(n_jobs)]
    idle = idle_seconds()
    while threads:
        threads[0].join(LOOK_SECONDS)  # so that Ctrl-C arrives here
        threads = [thread for thread in threads if thread.is_alive()]
        before, idle = idle, idle_seconds()
        if todo and len(threads) < n_jobs + n_more and idle - before > IDLE_ENOUGH * LOOK_SECONDS:
            threads.append(begin(False))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, help="tests at a time, exactly")
    parser.add_argument("--limit", type=float, default=600, help="seconds, unless a script asks for its own")
    parser.add_argument("--again", action="store_true", help="what fails is run once more at the end, alone")
    parser.add_argument("tests", nargs="+", metavar="VARIANT:PATH")
    options = parser.parse_args()

    os.makedirs(LOGS, exist_ok=True)
    for folder in COMPILED:
        compileall.compile_dir(os.path.join(ROOT, folder), quiet=2)
    tests = [Test(spec, options.limit) for spec in options.tests]
    report = Report()
    begin = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run_beside(longest_first([test for test in tests if not test.alone]),
                   options.jobs or min(8, len(os.sched_getaffinity(0))) + 3, report, 0 if options.jobs else MORE_MAX)
        run_beside([test for test in tests if test.alone], 1, report)
        if options.again:
            report.try_again()
    except (KeyboardInterrupt, SystemExit):
        for group in list(RUNNING):
            end_group(group)
        print("interrupted")
        report.failed += 1
    note_times(tests)
    if len(tests) > 1:
        report.tell_again()
        report.times(time.monotonic() - begin)
    print(f"{report.passed} passed, {report.failed} failed, {report.skipped} skipped")
    sys.stdout.flush()
    os._exit(1 if report.failed else 0)


if __name__ == "__main__":
    main()
