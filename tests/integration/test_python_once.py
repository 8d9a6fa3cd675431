#!/usr/bin/env python3
"""dlclient.once(): of many processes one runs the function, and all get what it returned or why it failed."""
import os
import signal
import subprocess
import sys
import textwrap
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, equal, main, within
from pyclient import LIBRARY, PACKAGE, Trainer, need
from trainers import torchrun_command
from work import Work, environment, is_alive, mpirun

N_RANKS = 8


class PythonWork(Work):
    """Its functions find mark(), which notes that they ran, and `folder`."""

    def python(self, source, **more):
        return Trainer(self.box, None, textwrap.dedent(f"""
            marks, folder = {self.marks_path!r}, {self.dir!r}
            def mark():
                with open(marks, "a") as file:
                    print(os.getpid(), file=file)
            """) + textwrap.dedent(source), **more)


# ---- launchers ------------------------------------------------------------------------------------------------------

@case("four ranks of mpirun: one runs the function, all have what it returned")
def _(box):
    need("numpy")
    launch_python(box, mpirun() + [sys.executable])


@case("four ranks of torchrun: one runs the function, all have what it returned")
def _(box):
    need("torch")
    launch_python(box, torchrun_command(box, "", processes=4)[:-1])


def launch_python(box, head):
    program, marks = box.path("program.py"), box.path("launched.marks")
    os.makedirs(box.path("launched"))
    with open(program, "w", encoding="utf-8") as file:
        file.write(f"""
import os, sys, time
import dlclient

@dlclient.once(name="launched", scope="cluster", timeout=60)
def prepare(number):
    with open({marks!r}, "a") as file:
        print(os.getpid(), file=file)
    time.sleep(0.3)
    return dict(number=number, pid=os.getpid())

answer = prepare(17)
with open({box.path('answers')!r} + str(os.getpid()), "w") as file:
    print(answer["number"], answer["pid"], file=file)
""")
    done = subprocess.run(head + [program], check=False, timeout=300, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, env=environment(PYTHONPATH=PACKAGE, DATALOADERD_LIBRARY=LIBRARY, TMPDIR=box.folder,
                                                     PYTHONDONTWRITEBYTECODE="1",
                                                     DATALOADERD_ONCE_DIR=box.path("launched")))
    equal(done.returncode, 0, done.stderr)
    with open(marks, encoding="utf-8") as file:
        pids = file.read().split()
    equal(len(pids), 1, "runs")
    answers = []
    for name in os.listdir(box.folder):
        if name.startswith("answers"):
            with open(box.path(name), encoding="utf-8") as file:
                answers.append(file.read())
    equal(answers, [f"17 {pids[0]}\n"] * 4, "what the ranks got")


# ---- functions ------------------------------------------------------------------------------------------------------

@case("a function's result reaches all ranks, and is remembered with its arguments")
def _(box):
    work = PythonWork(box)
    source = """
        import pathlib
        @dlclient.once(name="f", dir=folder)
        def f(*arguments, **keywords):
            mark()
            time.sleep(0.3)
            return {"sum": sum(arguments), "pid": os.getpid(), "pair": (1, None), "text": "ä\\0\\u20ac"}
        out(f(1, 2))
        out(f(1, 2))
        first = f(1, 3, path=pathlib.Path("a"))
        out(first["sum"])
    """
    ranks = [work.python(source) for _ in range(N_RANKS)]
    lines = [rank.finish() for rank in ranks]
    equal(len(work.marks()), 2, "runs: one for each list of arguments")
    for line in lines:
        equal(line, [{"sum": 3, "pid": work.marks()[0], "pair": [1, None], "text": "ä\0€"}] * 2 + [4], "results")


@case("an exception is itself where it was raised, and an OnceError with its traceback for who waited; later, anew")
def _(box):
    work = PythonWork(box)
    source = """
        class Mine(Exception): pass
        def broken():
            mark()
            while len(open(begun).readlines()) < 4: time.sleep(0.05)
            time.sleep(1)                                   # by then the last one waits, too
            raise Mine("no such luck \\ud800")
        begun = marks + ".begun"
        with open(begun, "a") as file: file.write("x\\n")
        try:
            dlclient.once(broken, name="broken", dir=folder)
        except Mine:
            out("mine")
        except dlclient.OnceError as error:
            assert "Mine" in error.traceback and "no such luck" in str(error) and "in broken" in str(error), str(error)
            assert error.pid in [int(line) for line in open(marks)] and error.host and error.attempt == 1, vars(error)
            out("other")
    """
    ranks = [work.python(source) for _ in range(4)]
    equal(sorted(rank.finish()[0] for rank in ranks), ["mine", "other", "other", "other"], "exceptions")
    equal(len(work.marks()), 1, "runs")
    equal(work.python(source).finish(), ["mine"], "later")


@case("a rank that is killed in the function is replaced, also if it left children of a fork behind")
def _(box):
    work = PythonWork(box)
    source = """
        def work():
            mark()
            if len(open(marks).readlines()) == 1:
                child = os.fork()
                if child == 0:
                    time.sleep(1000)
                out(child)
                time.sleep(1000)
            return "second"
        out(dlclient.once(work, name="work", dir=folder))
    """
    ranks = [work.python(source) for _ in range(3)]
    pid = within(30, work.marks, "one runs")[0]
    first = next(rank for rank in ranks if rank.process.pid == pid)
    child = within(10, lambda: list(first.lines), "it forked")[0]
    try:
        os.kill(pid, signal.SIGKILL)
        for rank in ranks:
            if rank is not first:
                equal(rank.finish(), ["second"], "result")
        equal((len(work.marks()), is_alive(child)), (2, True), "runs, and the child is still there")
    finally:
        os.kill(child, signal.SIGKILL)
    first.finish(status=-signal.SIGKILL)


@case("Ctrl-C ends who waits, and who runs is replaced")
def _(box):
    work = PythonWork(box)
    source = """
        def work():
            mark()
            if len(open(marks).readlines()) == 1:
                time.sleep(1000)
            return 5
        try:
            out("begun")
            out(dlclient.once(work, name="work", dir=folder))
        except KeyboardInterrupt:
            out("interrupted")
    """
    ranks = [work.python(source) for _ in range(3)]
    for rank in ranks:
        rank.wait_lines(1)
    pid = within(30, work.marks, "one runs")[0]
    runner = next(rank for rank in ranks if rank.process.pid == pid)
    waiters = [rank for rank in ranks if rank is not runner]
    time.sleep(1)
    os.kill(waiters[0].process.pid, signal.SIGINT)
    equal(waiters[0].finish(), ["begun", "interrupted"], "who waited")
    os.kill(pid, signal.SIGINT)
    equal(runner.finish(), ["begun", "interrupted"], "who ran")
    equal(waiters[1].finish(), ["begun", 5], "the last one")


@case("the interpreter is free while a thread waits, and a timeout is a TimeoutError")
def _(box):
    work = PythonWork(box)
    work.python("""
        import dlclient as other
        go = threading.Event()
        def slow():
            mark()
            assert go.wait(30)
            return 1
        first = threading.Thread(target=lambda: out(other.once(slow, name="slow", dir=folder)))
        first.start()
        while not os.path.exists(marks): time.sleep(0.01)
        refused(other.OnceTimeout, lambda: other.once(slow, name="slow", dir=folder, timeout=0.3), "timeout=0.3",
                f"pid {os.getpid()}")
        assert issubclass(other.OnceTimeout, TimeoutError)
        waiter = threading.Thread(target=lambda: out(other.once(slow, name="slow", dir=folder)))
        waiter.start()
        time.sleep(0.2)
        go.set()
        waiter.join()
        first.join()
    """).finish()
    equal(len(work.marks()), 1, "runs")


@case("what cannot be is refused with what to do")
def _(box):
    work = PythonWork(box)
    work.python("""
        def f(*arguments): return object() if not arguments else "x" * 2000000
        refused(dlclient.OptionError, lambda: dlclient.once(f, 1), "set name=")
        refused(dlclient.OptionError, lambda: dlclient.once(f, name="a/b"), "letters")
        refused(dlclient.OptionError, lambda: dlclient.once(f, name="a", scope="world"), "cluster")
        refused(dlclient.OptionError, lambda: dlclient.once(f, name="a", scope="cluster"), "DATALOADERD_ONCE_DIR")
        refused(dlclient.OptionError, lambda: dlclient.once(f, object(), name="a", dir=folder), "key=")
        refused(dlclient.OptionError, lambda: dlclient.once(lambda: 1), "name=")
        refused(dlclient.OptionError, lambda: dlclient.once(f, name="a", inputs="file"), "list")
        refused(dlclient.OnceError, lambda: dlclient.once(f, name="a", dir=folder), "JSON", "return")
        refused(dlclient.OnceError, lambda: dlclient.once(f, 1, name="a", dir=folder), "2000002 bytes", "file")
        refused(dlclient.OnceError, lambda: dlclient.once(f, name="a", dir=folder + "/none"), "No such file")
        refused(dlclient.OptionError,
                lambda: dlclient.once(lambda: dlclient.once(f, name="b", dir=folder), name="b", dir=folder), "itself")
        assert dlclient.once(len, "abc", name="len", dir=folder, key="any", inputs=[__file__]) == 3
    """).finish()


main()
