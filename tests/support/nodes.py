"""A few machines on a switch, in one: for tests of what runs on several nodes.

    with Nodes(box, 4, rate="1gbit") as nodes:
        server = nodes.origin.start([...])              # a machine of its own, at the same switch
        nodes[0].run(["ping", "-c", "1", "node3"])
        nodes[2].cut()

A node is a network namespace with one interface (eth0) to the switch, a host name of its own ("node0"), and an /etc/hosts
that knows all of them. It shares files, processes and memory with this machine; `folder` is its own place for files, and
`TMPDIR` points into it. The switch is a bridge in a namespace that has nothing else. With a rate every line lets through so
much each way, and no more, as a switch's port does.

Nothing of this machine's network is touched, and nothing has a name in it: the namespaces belong to processes that do
nothing but hold them, and die with the test. Root only; Skip says what is missing. `iproute2` is all it needs.

The rate is that of Ethernet frames as the kernel counts them, without preamble and gap: 1gbit gives a TCP stream 119.6 MB/s
(real gigabit Ethernet: 117.7). It is made with tbf, since that holds it exactly and is in kernels that lack netem.
"""
import os
import shutil
import signal
import stat
import subprocess
import time

from harness import Skip, die_with_parent, end, patience

NETWORK = "10.77.0"
CIDR = NETWORK + ".0/24"
HOST_OF_ORIGIN = 200
# A burst must hold a 64 KiB packet that the card would cut (GSO), and what comes in one tick of the timer; the queue is
# that of a switch.
SHAPE = ("burst", "256kb", "latency", "20ms")
AGENT = """#!/bin/sh
# Called as ssh would be: host, command line. The environment does not come along, as with ssh.
host=$1
shift
case $host in
{cases}
*) echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255 ;;
esac
if [ -e "$folder/down" ]; then
        echo "ssh: connect to host $host port 22: Connection timed out" >&2
        exit 255
fi
if [ -e "$folder/mute" ]; then
        exec nsenter -t "$pid" -n -u -m -- sh -c 'sleep infinity; :' "$host" "$*"
fi
if [ -e "$folder/gone" ]; then
        exit 0
fi
cd "$folder" && exec env -i PATH="$PATH" HOME=/root TMPDIR="$folder/tmp" nsenter -t "$pid" -n -u -m -- sh -c "$*"
"""


def ip(holder, *arguments):
    """Runs ip or tc in a namespace. What it refuses is a reason to skip."""
    done = subprocess.run(["nsenter", "-t", str(holder.pid), "-n", *arguments], check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, timeout=300)
    if done.returncode != 0:
        raise Skip(f"no network of namespaces here: {' '.join(arguments)}: {done.stdout.strip()}")


def check_possible(rate):
    if os.getuid() != 0:
        raise Skip("only root can make network namespaces")
    for tool, package in (("ip", "iproute2"), ("tc", "iproute2"), ("unshare", "util-linux"), ("nsenter", "util-linux")):
        if (tool != "tc" or rate) and not shutil.which(tool):
            raise Skip(f"{tool} is not installed (package {package})")


def hold(name, hosts_path):
    """A process in new namespaces (network, host name, mounts) that does nothing. Its mounts go nowhere else."""
    script = 'hostname "$0" && mount --bind "$1" /etc/hosts && echo held && exec sleep infinity'
    process = subprocess.Popen(["unshare", "--net", "--uts", "--mount", "--propagation", "private", "sh", "-c", script,
                                name, hosts_path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, universal_newlines=True, preexec_fn=die_with_parent)
    line = process.stdout.readline().strip()
    if line != "held":
        process.kill()
        process.wait()
        raise Skip(f"no namespaces here: {line}")
    return process


class Node:
    """A machine. Commands start in its folder."""

    def __init__(self, name, host, folder, hosts_path):
        self.name = name
        self.address = f"{NETWORK}.{host}"
        self.folder = folder
        os.makedirs(os.path.join(folder, "tmp"), exist_ok=True)
        self.holder = hold(name, hosts_path)
        self.pid = self.holder.pid
        self.port = None  # its name at the switch
        self.switch = None
        self.started = []

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def inside(self, command):
        """The command line that runs a command there."""
        return ["nsenter", "-t", str(self.pid), "-n", "-u", "-m", f"--wd={self.folder}", "--"] + \
            [str(word) for word in command]

    def environment(self, extra):
        env = dict(os.environ)
        for name in list(env):
            if name.startswith(("OMPI_", "PMIX_", "PMI_", "SLURM_")):
                del env[name]
        env["TMPDIR"] = self.path("tmp")
        env.update(extra or {})
        return env

    def start(self, command, env=None, **keywords):
        """Starts a process; `env` is added to the environment. It is ended with the nodes. Its pid is that of the
        command itself."""
        keywords.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen(self.inside(command), env=self.environment(env), preexec_fn=die_with_parent,
                                   **keywords)
        self.started.append(process)
        return process

    def run(self, command, env=None, seconds=60):
        """Runs a command to its end; returns the finished process, its output as text."""
        return subprocess.run(self.inside(command), env=self.environment(env), check=False, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                              preexec_fn=die_with_parent, timeout=patience(seconds))

    def pids(self, name=None):
        """Processes that are there, whoever started them, except the holder; `name` as top shows it."""
        mine, found = os.readlink(f"/proc/{self.pid}/ns/net"), []
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == self.pid:
                continue
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                    before, _, rest = file.read().rpartition(")")
                if os.readlink(f"/proc/{entry}/ns/net") == mine and rest.split()[0] not in "ZX" and \
                        name in (None, before.partition("(")[2]):
                    found.append(int(entry))
            except OSError:
                continue  # it ended meanwhile
        return found

    def signal(self, number, name=None):
        """Sends a signal to all that runs there, or to all processes of a name. Returns how many they were."""
        pids = self.pids(name)
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        return len(pids)

    def cut(self):
        """Pulls the cable: not a word comes or goes, and nobody is told."""
        ip(self.switch, "ip", "link", "set", self.port, "down")

    def mend(self):
        ip(self.switch, "ip", "link", "set", self.port, "up")

    def counts(self):
        """(bytes received, bytes sent) of its line since it was made, headers and all."""
        got = self.run(["cat", "/proc/net/dev"])
        for line in got.stdout.splitlines():
            if line.strip().startswith("eth0:"):
                fields = line.partition(":")[2].split()
                return int(fields[0]), int(fields[8])
        raise AssertionError(f"{self.name} has no eth0: {got.stdout}{got.stderr}")

    def close(self):
        """Ends what is there."""
        self.signal(signal.SIGCONT)
        for process in self.started:
            end(process)
        for number in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + 2
            while self.signal(number) and time.monotonic() < deadline:
                time.sleep(0.05)
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()


class Nodes:
    """Machines node0 ... and one named origin. `agent` is a program that mpirun can reach them with in place of ssh; a
    file named "down" in a node's folder makes it unreachable for that, one named "mute" makes it accept and say nothing, one named
    "gone" lets what is started there end as soon as it is in the background, as orted does if it cannot reach mpirun."""

    def __init__(self, box, n_nodes, rate=None):
        self.box = box
        self.n_nodes = n_nodes
        self.rate = rate
        self.network = CIDR
        self.nodes = []
        self.origin = None
        self.switch = None
        self.agent = box.path("nodes", "agent")

    def __getitem__(self, idx):
        return self.nodes[idx]

    def __iter__(self):
        return iter(self.nodes)

    def __len__(self):
        return len(self.nodes)

    @property
    def names(self):
        return [node.name for node in self.nodes]

    def __enter__(self):
        check_possible(self.rate)
        os.makedirs(self.box.path("nodes"), exist_ok=True)
        try:
            self.make()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind, value, trace):
        self.close()

    def make(self):
        members = [(f"node{number}", number + 1) for number in range(self.n_nodes)] + [("origin", HOST_OF_ORIGIN)]
        hosts_path = self.box.path("nodes", "hosts")
        with open(hosts_path, "w", encoding="ascii") as hosts:
            hosts.write("127.0.0.1 localhost\n")
            hosts.writelines(f"{NETWORK}.{host} {name}.cluster {name}\n" for name, host in members)
        self.switch = hold("switch", hosts_path)
        ip(self.switch, "ip", "link", "add", "bridge", "type", "bridge", "forward_delay", "0")
        ip(self.switch, "ip", "link", "set", "bridge", "up")
        for name, host in members:
            node = Node(name, host, self.box.path("nodes", name), hosts_path)
            if name == "origin":
                self.origin = node
            else:
                self.nodes.append(node)
            self.plug(node)
        self.write_agent()

    def plug(self, node):
        node.switch, node.port = self.switch, node.name
        ip(self.switch, "ip", "link", "add", node.port, "type", "veth", "peer", "name", "eth0", "netns", str(node.pid))
        ip(self.switch, "ip", "link", "set", node.port, "master", "bridge", "up")
        ip(node.holder, "ip", "address", "add", node.address + "/24", "dev", "eth0")
        ip(node.holder, "ip", "link", "set", "lo", "up")
        ip(node.holder, "ip", "link", "set", "eth0", "up")
        if self.rate:
            for holder, interface in ((node.holder, "eth0"), (self.switch, node.port)):
                ip(holder, "tc", "qdisc", "add", "dev", interface, "root", "tbf", "rate", self.rate, *SHAPE)

    def write_agent(self):
        cases = "\n".join(f"{node.name}|{node.name}.cluster|{node.address}) pid={node.pid} folder={node.folder} ;;"
                          for node in self.nodes)
        with open(self.agent, "w", encoding="ascii") as agent:
            agent.write(AGENT.format(cases=cases))
        os.chmod(self.agent, stat.S_IRWXU)

    def close(self):
        for node in self.nodes + ([self.origin] if self.origin else []):
            node.close()
        self.nodes, self.origin = [], None
        if self.switch:
            self.switch.kill()
            self.switch.wait()
            self.switch.stdout.close()
            self.switch = None
