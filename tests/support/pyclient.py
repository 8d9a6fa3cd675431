"""Programs that use the Python client, as the tests run them: small scripts in processes of their own.

    lines = trainer(daemon, '''
        loader = dlclient.Loader("d", batch_size=4)
        out([batch.indices.tolist() for batch in loader])
    ''')

A script finds `dlclient`, `numpy` and out(), which prints a value as a line of JSON; trainer() gives those lines back."""
import importlib.util
import json
import os
import re
import subprocess
import sys
import textwrap
import threading

import warm
from harness import BUILD, ROOT, SLOWER, VARIANT, Skip, equal, patience

PACKAGE = os.path.join(ROOT, "client", "python")
LIBRARY = os.path.join(BUILD, "libdlclient.so.0")
CLEARED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID",
           "SLURM_JOB_ID", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID")

PRELUDE = """\
import gc, json, logging, os, signal, sys, threading, time
import numpy
import dlclient
def out(value):
    sys.stdout.write(json.dumps(value) + "\\n")        # one write: several processes may share the pipe
    sys.stdout.flush()
def refused(kind, function, *words):
    try:
        function()
    except kind as error:
        text = str(error)
        missing = [word for word in words if word.lower() not in text.lower()]
        assert type(error) is kind, (type(error), text)
        assert not missing, (missing, text)
        return text
    raise AssertionError(f"{kind.__name__} was not raised")
"""


USES_TORCH = re.compile(r"\btorch\b")
ASKS_WHAT_IT_IS = re.compile(r"sys\.modules|not imported|cmdline")  # imported, or started as


def need(module):
    """Skips the case where Python has no such module."""
    if importlib.util.find_spec(module) is None:
        raise Skip(f"{module} is not installed")


def environment_of(daemon=None, **more):
    env = {name: value for name, value in os.environ.items() if name not in CLEARED}
    env.update(PYTHONPATH=PACKAGE, DATALOADERD_LIBRARY=LIBRARY, PYTHONDONTWRITEBYTECODE="1", PYTHONUNBUFFERED="1")
    if daemon is not None:
        env["DATALOADERD_SOCKET"] = daemon.socket
    env.update(more)
    return env


class Trainer:
    """A running script; its lines are collected as they come."""

    def __init__(self, box, daemon, source, arguments=(), **environment):
        if SLOWER > 1:
            raise Skip(f"{VARIANT}: the sanitizer's runtime would have to be loaded before the interpreter")
        number = len(box.processes)
        self.path = box.path(f"trainer{number}.py")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(PRELUDE + textwrap.dedent(source))
        self.stderr_path = self.path + ".err"
        with open(self.stderr_path, "wb") as stderr:
            command = [sys.executable, self.path] + [str(argument) for argument in arguments]
            words = {"env": environment_of(daemon, **environment), "stdout": subprocess.PIPE, "stderr": stderr}
            if ASKS_WHAT_IT_IS.search(source):
                self.process = box.start(command, **words)
            else:
                self.process = warm.start(box, command, with_torch=USES_TORCH.search(source) is not None, **words)
        self.lines = []
        self.thread = threading.Thread(target=self._collect, daemon=True)
        self.thread.start()

    def _collect(self):
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    def errors(self):
        with open(self.stderr_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def finish(self, seconds=60, status=0):
        """Waits for its end with this exit status; returns the lines."""
        try:
            self.process.wait(patience(seconds))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the trainer hangs after {self.lines[-3:]}: {self.errors()}") from None
        self.thread.join(60)
        self.process.stdout.close()
        if self.process.returncode != status:
            raise AssertionError(f"the trainer ended with {self.process.returncode}: {self.errors()}")
        return self.lines

    def wait_lines(self, n_lines, seconds=20):
        from harness import within
        within(seconds, lambda: len(self.lines) >= n_lines or self.process.poll() is not None, f"{n_lines} lines")
        if len(self.lines) < n_lines:
            self.thread.join(60)
            equal(len(self.lines) >= n_lines, True, f"lines of the trainer; {self.errors()}")
        return self.lines


def trainer(box, daemon, source, *arguments, seconds=60, status=0, **environment):
    """Runs a script to its end; returns the values that it gave to out()."""
    need("numpy")
    return Trainer(box, daemon, source, arguments, **environment).finish(seconds, status)
