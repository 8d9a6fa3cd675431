#!/usr/bin/env python3
"""Nodes that speak MPI with each other, and mpirun's launcher: four network namespaces, the real mpirun, a program on
staging/nodes/cluster.h and staging/nodes/launch.h. What happens when one of them dies, stops, hangs or is cut off: the run ends in bounded
time, and somebody says which node it was."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import BUILD, VARIANT, Skip, case, contains, equal, main, patience, within
from nodes import Nodes

TOOL = os.path.join(BUILD, "tools", "spread_chunks")
N = 4
EX_OSERR = 71


def nodes_of(box, rate=None):
    if VARIANT != "release":
        raise Skip("MPI's own leaks and races would be reported")
    if not shutil.which("mpirun"):
        raise Skip("mpirun is not installed (package openmpi-bin)")
    if not os.path.exists(TOOL) or b"MPI_Init_thread" not in open(TOOL, "rb").read():
        raise Skip("built without MPI (package libopenmpi-dev)")
    return Nodes(box, N, rate)


class Run:
    """A run of the tool over all nodes, started on node0."""

    def __init__(self, box, nodes, *arguments, launcher=("--debug",), hosts=None, env=None, command=None):
        self.nodes = nodes
        self.out, self.err = box.path("out"), box.path("err")
        self.begin = time.monotonic()
        self.end = None
        command = command or [TOOL, *launcher, "--agent", nodes.agent, "--network", nodes.network, "--launch",
                              hosts or ",".join(nodes.names), "--", *arguments]
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = nodes[0].start(command, env=env, stdout=out, stderr=err)

    def text(self, path):
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_ready(self):
        """All have joined. Returns the pid of each node's process."""
        def ready():
            if self.process.poll() is not None:
                raise AssertionError(f"it ended with {self.process.returncode}: {self.said()}")
            found = dict(re.findall(r"^ready (\w+) (\d+)$", self.text(self.out), re.M))
            return found if len(found) == N else None
        return {name: int(pid) for name, pid in within(30, ready, "all nodes have joined").items()}

    def said(self):
        """What a user sees on stderr: without the lines for debugging."""
        return "".join(line + "\n" for line in self.text(self.err).splitlines() if not line.startswith("debug"))

    def finish(self, seconds):
        """Waits for the end; returns the exit status. It must come within patience(seconds)."""
        try:
            self.process.wait(patience(seconds))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"not at its end after {patience(seconds)} s; it said: {self.text(self.err)}") from None
        return self.process.returncode

    def failed(self, seconds, *words):
        """It must end with 71, these words, nothing of MPI's long paragraphs, and without a process left on any node."""
        equal(self.finish(seconds), EX_OSERR, f"exit status; it said: {self.said()}")
        contains(self.said(), *words)
        if "-----" in self.said():
            raise AssertionError(f"MPI's own words were passed on: {self.said()}")
        self.nothing_left()

    def nothing_left(self):
        within(15, lambda: not any(node.pids() for node in self.nodes), "no process is left on any node: "
               f"{[(node.name, node.pids()) for node in self.nodes]}")


def command_line(pid):
    """Its words; nothing if it has ended meanwhile, as the shells do that the nodes were called through."""
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            return file.read().replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


@case("four nodes gather, share, meet, form groups and spread 64 MiB: all have the same bytes")
def _(box):
    with nodes_of(box) as nodes:
        run = Run(box, nodes, "check")
        equal(run.finish(60), 0, f"exit status; it said: {run.said()}")
        equal(run.said(), "", "stderr")
        lines = [json.loads(line) for line in run.text(run.out).splitlines() if line.startswith("{")]
        equal(sorted(line["name"] for line in lines), nodes.names, "names")
        for line in lines:
            equal(line["numbers"], [node * node + 5 for node in range(N)], "gathered numbers, in the nodes' order")
            equal("odd" in line, line["node"] % 2 == 1, "members of the group of odd nodes")
        for what in ("gathered", "shared", "all"):
            equal(len({line[what] for line in lines}), 1, f"digests of what was {what}")
        equal({line["odd"] for line in lines if "odd" in line}, {lines[0]["all"]}, "digests in the group")
        alone = json.loads(nodes[0].run([TOOL, "check"]).stdout.splitlines()[1])
        equal([lines[0][what] for what in ("shared", "all")], [alone[what] for what in ("shared", "all")],
              "digests of what one node has by itself")
        run.nothing_left()


@case("mpirun by hand, with nothing but hosts, works the same")
def _(box):
    with nodes_of(box) as nodes:
        run = Run(box, nodes, command=["mpirun", "--allow-run-as-root", "--host", ",".join(nodes.names), "--mca",
                                       "plm_rsh_agent", nodes.agent, TOOL, "--chunks", "4", "check"])
        equal(run.finish(60), 0, f"exit status; it said: {run.said()}")
        equal(len(set(re.findall(r'"all":"(\w+)"', run.text(run.out)))), 1, "digests")


@case("started alone it is one node, and starts nothing of MPI's")
def _(box):
    with nodes_of(box) as nodes:
        done = nodes[1].start([TOOL, "beat"], stdout=subprocess.PIPE, text=True)
        equal(done.stdout.readline(), f"ready node1 {done.pid}\n", "first line")
        equal(nodes[1].pids(), [done.pid], "processes of the node")
        checked = nodes[2].run([TOOL, "--chunks", "4", "check"])
        equal((checked.returncode, checked.stderr), (0, ""), "status and stderr")
        equal(json.loads(checked.stdout.splitlines()[1])["numbers"], [5], "gathered")


@case("a process that is killed ends all, and its node is named")
def _(box):
    with nodes_of(box) as nodes:
        run = Run(box, nodes, "beat")
        os.kill(run.wait_ready()["node2"], signal.SIGKILL)
        run.failed(20, "node2", "signal 9")


@case("a process that is stopped is named and ends all")
def _(box):
    with nodes_of(box) as nodes:
        run = Run(box, nodes, "--stall", "10", "beat")
        os.kill(run.wait_ready()["node2"], signal.SIGSTOP)
        run.failed(60, "no word from node2")


@case("if it is the first node that is stopped the others name it")
def _(box):
    with nodes_of(box) as nodes:
        run = Run(box, nodes, "--stall", "10", "beat")
        os.kill(run.wait_ready()["node0"], signal.SIGSTOP)
        run.failed(60, "no word from node0")


@case("two that are stopped are both named")
def _(box):
    with nodes_of(box) as nodes:
        run = Run(box, nodes, "--stall", "10", "beat")
        pids = run.wait_ready()
        os.kill(pids["node1"], signal.SIGSTOP)
        os.kill(pids["node3"], signal.SIGSTOP)
        run.failed(60, "no word from ", "node1", "node3")


@case("at a standstill the one that others wait for is named, and what it does")
def _(box):
    with nodes_of(box) as nodes:
        run = Run(box, nodes, "--stall", "10", "late")
        run.failed(60, "all wait for node3 (writing slowly)")


@case("a node that does not come to a barrier is named")
def _(box):
    with nodes_of(box) as nodes:
        run = Run(box, nodes, "--stall", "10", "freeze")
        run.failed(60, "all wait for node0 (dreaming)")


@case("a cable that is pulled is noticed long before the deadline of progress, and the node named")
def _(box):
    with nodes_of(box) as nodes:
        run = Run(box, nodes, "--stall", "100", "beat")
        run.wait_ready()
        nodes[2].cut()
        run.failed(30, "lost node2")


@case("a cable that is pulled in the middle of 400 MB ends the run, too, though mpirun itself would hang")
def _(box):
    with nodes_of(box, rate="200mbit") as nodes:
        run = Run(box, nodes, "--stall", "10", "--chunks", "100", "rate")
        run.wait_ready()
        time.sleep(1)
        nodes[3].cut()
        run.failed(60, "node3")


@case("a node that cannot be reached is named, and nothing stays behind on the others")
def _(box):
    with nodes_of(box) as nodes:
        open(nodes[2].path("down"), "wb").close()
        run = Run(box, nodes, "beat")
        run.failed(20, "cannot be reached", "node2")


@case("ssh is what nodes are called with if nothing else is said, and what it says is passed on")
def _(box):
    if not shutil.which("ssh"):
        raise Skip("ssh is not installed (package openssh-client)")
    with nodes_of(box) as nodes:
        run = Run(box, nodes, command=[TOOL, "--launch", "node0 node1", "--", "beat"])
        run.failed(20, "cannot be reached: ssh: connect to host node1 port 22: Connection refused")


@case("a node that can be called but says nothing is named, though mpirun would wait for ever")
def _(box):
    with nodes_of(box) as nodes:
        for node in (nodes[1], nodes[3]):
            open(node.path("mute"), "wb").close()
        run = Run(box, nodes, "beat", launcher=("--startup", "2"))
        run.failed(20, "node1, node3 did not come up")


@case("a node on which orted was started, but from where it does not find mpirun, ends the run in bounded time")
def _(box):
    with nodes_of(box) as nodes:
        open(nodes[2].path("gone"), "wb").close()
        run = Run(box, nodes, "beat", launcher=("--startup", "2"))
        run.failed(40, "not all nodes have found mpirun", "stage_network")


@case("a host that does not exist is named")
def _(box):
    with nodes_of(box) as nodes:
        run = Run(box, nodes, "beat", hosts="node0 node1,nowhere")
        run.failed(20, "cannot be reached", "nowhere")


@case("a program that is not on all nodes is named with the node")
def _(box):
    with nodes_of(box) as nodes:
        run = Run(box, nodes, command=[TOOL, "--agent", nodes.agent, "--launch", "node0,node1", "--", "beat"],
                  env={"SPREAD_CHUNKS_PROGRAM": "/nowhere/program"})
        run.failed(20, "/nowhere/program", "node")


@case("the limit of time ends it")
def _(box):
    with nodes_of(box) as nodes:
        run = Run(box, nodes, "beat", launcher=("--timeout", "3"))
        run.failed(30, "limit", "3 s")


@case("Ctrl-C, and SIGTERM, leave no process on any node")
def _(box):
    with nodes_of(box) as nodes:
        for number in (signal.SIGINT, signal.SIGTERM):
            run = Run(box, nodes, "beat")
            run.wait_ready()
            run.process.send_signal(number)
            equal(run.finish(20), 128 + number, f"exit status; it said: {run.said()}")
            run.nothing_left()


@case("SIGTERM while a cable is out: mpirun would never end, so it is killed")
def _(box):
    with nodes_of(box) as nodes:
        run = Run(box, nodes, "--stall", "100", "beat")
        run.wait_ready()
        nodes[1].cut()
        run.process.send_signal(signal.SIGTERM)
        equal(run.finish(20), 128 + signal.SIGTERM, f"exit status; it said: {run.said()}")
        run.nothing_left()


@case("a launcher that is killed leaves no process on any node")
def _(box):
    with nodes_of(box) as nodes:
        run = Run(box, nodes, "beat")
        run.wait_ready()
        run.process.kill()
        run.process.wait()
        run.nothing_left()


@case("an exit status of the processes is the launcher's")
def _(box):
    with nodes_of(box) as nodes:
        run = Run(box, nodes, "no-such-mode")
        equal(run.finish(30), 64, f"exit status; it said: {run.said()}")
        equal(run.said(), "", "stderr")
        run.nothing_left()


@case("two processes on one host are refused by its name")
def _(box):
    with nodes_of(box) as nodes:
        done = nodes[1].run(["mpirun", "--allow-run-as-root", "--host", "node1:2", "-n", "2", TOOL, "beat"])
        equal(done.returncode, EX_OSERR, f"exit status; {done.stderr}")
        contains(done.stderr, "two processes are on node1", "--map-by ppr:1:node")


@case("processes that were started as several but do not find each other are refused, as srun without MPI starts them")
def _(box):
    with nodes_of(box) as nodes:
        done = nodes[1].run([TOOL, "beat"], env={"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "3"})
        equal(done.returncode, EX_OSERR, f"exit status; {done.stderr}")
        contains(done.stderr, "3 processes were started, but MPI knows of 1", "srun --mpi=pmix")


@case("proxies go to all nodes; credentials to no other node, and nothing of them onto a command line")
def _(box):
    with nodes_of(box) as nodes:
        secret, proxy = f"secret-{os.getpid()}", f"http://proxy-{os.getpid()}:3128"
        run = Run(box, nodes, "beat", env={"https_proxy": proxy, "AWS_SECRET_ACCESS_KEY": secret})
        pid = run.wait_ready()["node2"]
        with open(f"/proc/{pid}/environ", encoding="utf-8") as environ:
            words = environ.read().split("\0")
        equal((f"https_proxy={proxy}" in words, [word for word in words if secret in word]), (True, []),
              "environment of node2's process")
        lines = [line for node in nodes for line in map(command_line, node.pids())]
        equal([line for line in lines if secret in line or proxy in line], [], "command lines with a secret")
        contains("\n".join(lines), "orted", "beat")


@case("without mpirun the launcher says what is missing")
def _(box):
    with nodes_of(box) as nodes:
        done = nodes[0].run(["env", "PATH=/nowhere", TOOL, "--launch", "node0,node1", "--", "beat"])
        equal(done.returncode, 69, f"exit status; {done.stderr}")
        contains(done.stderr, "mpirun", "openmpi-bin")


@case("what is no host is refused")
def _(box):
    with nodes_of(box) as nodes:
        for hosts in ("", " ,", "node0,--prefix", "node0;reboot", "a b$(c)"):
            done = nodes[0].run([TOOL, "--launch", hosts, "--", "beat"])
            equal(done.returncode, 69, f"exit status for {hosts!r}; {done.stderr}")
            contains(done.stderr, "hosts:")


main()
