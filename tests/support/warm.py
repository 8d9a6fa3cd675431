"""Starts Python programs out of a process that has imported what they use: torch takes two seconds of CPU time for that, NumPy
a sixth of one, and the tests run hundreds of small programs.

    process = warm.start(box, [sys.executable, path, "argument"], env=..., stdout=...)     # as box.start()

What comes is a process as any other: our child, with its own environment, descriptors and __main__. It is not for programs
that look at what is imported or at their command line in /proc. What is read when a process or a library begins (LD_*, OMP_*,
PYTHON*) is that of the importing process, of which there is one for each such environment."""
import atexit
import contextlib
import ctypes
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

READ_AT_START = ("LD_", "OMP_", "PYTHON", "TORCH", "MALLOC_", "LC_", "LANG")
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LIBC = ctypes.CDLL(None, use_errno=True)
MOST = 1 << 20  # bytes of a request

_nurseries = {}
_lock = threading.Lock()


# ---- the test's side ------------------------------------------------------------------------------------------------

class _Nursery:
    """The process that has imported some modules, for one environment."""

    def __init__(self, modules, env):
        self.connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), str(theirs.fileno()), *modules], env=env, pass_fds=[theirs.fileno()],
                                        stdin=subprocess.DEVNULL)
        theirs.close()
        atexit.register(self.close)

    def close(self):
        self.connection.close()
        self.process.wait()

    def birth(self, order, files):
        """The child's parent ends before it does, so that it becomes ours: for this moment we take in whoever is left alone."""
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
        try:
            socket.send_fds(self.connection, [json.dumps(order).encode()], files)
            return int(self.connection.recv(64))
        finally:
            LIBC.prctl(PR_SET_CHILD_SUBREAPER, 0)


class _Process(subprocess.Popen):
    """A Popen of which only the birth is another one."""

    modules = ()

    def _execute_child(self, args, _executable, _preexec_fn, _close_fds, _pass_fds, cwd, env, _startupinfo, _creationflags, _shell,
                       p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, *_more):
        key = self.modules, *sorted((name, value) for name, value in env.items() if name.startswith(READ_AT_START))
        order = {"argv": args[1:], "env": env, "cwd": cwd or os.getcwd()}
        files = [given if given >= 0 else own for own, given in enumerate((p2cread, c2pwrite, errwrite))]
        with _lock:
            if key not in _nurseries:
                _nurseries[key] = _Nursery(self.modules, env)
            self.pid = _nurseries[key].birth(order, files)
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)


class _NumpyProcess(_Process):
    modules = ("numpy",)


class _TorchProcess(_Process):
    modules = ("numpy", "torch", "torch.multiprocessing", "torchvision")


def start(box, command, env, with_torch=True, **keywords):
    """Starts [sys.executable, path of a script, arguments ...]."""
    process = (_TorchProcess if with_torch else _NumpyProcess)(command, env=env, stdin=subprocess.DEVNULL, **keywords)
    box.processes.append(process)
    return process


# ---- the side of the process that has imported -------------------------------------------------------------------------

def serve(connection):
    """Returns in each child, with its order."""
    tester = os.getppid()
    while True:
        message, files, _, _ = socket.recv_fds(connection, MOST, 3)
        if not message:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            if os.fork() != 0:
                os._exit(0)
            settle(tester, files)
            connection.send(str(os.getpid()).encode())
            connection.close()
            return json.loads(message)
        os.waitpid(pid, 0)
        for file in files:
            os.close(file)


def settle(tester, files):
    """Waits for the new parent, and becomes a process of its own."""
    end = time.monotonic() + 60
    while os.getppid() != tester:
        if time.monotonic() > end:
            os._exit(1)
        time.sleep(0.001)
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for place, file in enumerate(files):
        os.dup2(file, place)
        os.close(file)


def become(order):
    """The rest of this process is the program: as `python3 path arguments` would be, to its last breath."""
    path = order["argv"][0]
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["cwd"])
    sys.argv = order["argv"]
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    tempfile.tempdir = None
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # as torch's generator, it would be the same in all of them; that one is so anyway
    main = type(sys)("__main__")
    main.__file__ = path
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    exec(code, main.__dict__)  # pylint: disable=exec-used


if __name__ == "__main__":
    for module in sys.argv[2:]:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    become(serve(socket.socket(fileno=int(sys.argv[1]))))
