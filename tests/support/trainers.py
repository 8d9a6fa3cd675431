"""Training programs that are files, such as those of docs/migration/, started beside a daemon of the harness: with the
interpreter that runs the test, so that the same tests look at Debian's torch and at that of build/frameworks."""
import os
import socket
import subprocess
import sys

import pyclient
import warm
from harness import patience
from private import Home


def need(*modules):
    """Skips the case unless all of them are installed."""
    for module in modules:
        pyclient.need(module)


def environment(daemon=None):
    """What a trainer's process needs to find the package, the library and the daemon, or the home of a private one."""
    if isinstance(daemon, Home):
        return pyclient.environment_of(None, OMP_NUM_THREADS="1", **daemon.variables())
    return pyclient.environment_of(daemon, OMP_NUM_THREADS="1")


def dlclient():
    """The package, imported into the test itself."""
    need("numpy")
    os.environ["DATALOADERD_LIBRARY"] = pyclient.LIBRARY
    if pyclient.PACKAGE not in sys.path:
        sys.path.insert(0, pyclient.PACKAGE)
    import dlclient as package
    return package


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def python_command(path, *arguments):
    return [sys.executable, path] + [str(argument) for argument in arguments]


def torchrun_command(box, path, *arguments, processes=2):
    """As `torchrun` starts it. The detour of stderr over files is what keeps torch 1.13 alive under Python 3.11, whose
    flags of value 0 cannot be iterated over any more."""
    return [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(processes), "--master_port",
            str(free_port()), "--redirects", "2", "--tee", "2", "--log_dir", box.path("torchrun")] + \
        python_command(path, *arguments)[1:]


def start_torch(box, command, daemon=None, **variables):
    """Begins a program that uses torch, without its import."""
    return warm.start(box, command, env={**environment(daemon), **variables}, cwd=box.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                      universal_newlines=True)


def run_torch(box, path, *arguments, daemon=None, processes=0):
    """The same to its end; with `processes` as the ranks of one node, in the environment in which torchrun starts them."""
    command, port = python_command(path, *arguments), free_port()
    ranks = [{"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(processes), "LOCAL_WORLD_SIZE": str(processes),
              "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "none"} for rank in range(processes)]
    started = [start_torch(box, command, daemon, **variables) for variables in ranks or [{}]]
    return [line for process in started for line in finish(process, command, 120, 0)]


def run(box, command, daemon=None, seconds=120, expected=0):
    """Runs a trainer to its end; returns the lines of its output. Fails with both outputs unless it ends as expected."""
    process = box.start(command, env=environment(daemon), cwd=box.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                        universal_newlines=True)
    return finish(process, command, seconds, expected)


def finish(process, command, seconds, expected):
    try:
        out, err = process.communicate(timeout=patience(seconds))
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"{command} hangs\n{out[-3000:]}\n{err[-3000:]}") from None
    if process.returncode != expected:
        raise AssertionError(f"{command} ended with {process.returncode}\n{out[-3000:]}\n{err[-5000:]}")
    return out.splitlines()
