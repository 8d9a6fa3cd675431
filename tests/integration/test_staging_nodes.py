#!/usr/bin/env python3
"""Four nodes, real mpirun: each byte leaves the origin once, every node ends up with all of them, or none is stamped."""
import contextlib
import json
import os
import shutil
import signal
import sys
import tarfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

import faulty_server  # noqa: E402
from harness import ROOT, Skip, case, contains, equal, main, patience, within, write  # noqa: E402
from nodes import Nodes  # noqa: E402
from staging import STAGE, Staging, files_of, make_files, photos_sizes, write_manifest  # noqa: E402

MIB = 1 << 20
SERVER = os.path.join(ROOT, "tests", "support", "faulty_server.py")


class Cluster:
    """Nodes with a dataset each: its path is the same on all of them, and leads to a folder of each node's own."""

    def __init__(self, box, nodes, folder, is_shared=False, **settings):
        if not shutil.which("mpirun"):
            raise Skip("mpirun is not installed (package openmpi-bin)")
        self.box, self.nodes, self.folder = box, nodes, folder
        process = nodes.origin.start([sys.executable, SERVER, "--root", folder, "--host", nodes.origin.address],
                                     stdout=-1, stdin=-1)
        self.url = json.loads(process.stdout.readline())["url"].rstrip("/")
        self.origin = RemoteInside(nodes.origin, self.url)
        self.common = box.path("common")
        os.makedirs(self.common, exist_ok=True)
        if not is_shared:
            for node in nodes:
                os.makedirs(node.path("data"), exist_ok=True)
                done = node.run(["mount", "--bind", node.path("data"), self.common])
                if done.returncode != 0:
                    raise Skip(f"no mounts of its own for a node: {done.stderr}")
        settings.setdefault("origin", self.url + "/manifest.jsonl")
        settings.setdefault("stall_timeout", 10)
        self.staging = Staging(box, path=os.path.join(self.common, "photos"), **settings)
        self.n_runs = 0

    def start(self, *arguments, n_nodes=None, program=(), stdout=None):
        """Begins a run from the first node over the first n_nodes. `stdout`: a descriptor in place of the file."""
        self.n_runs += 1
        base = self.box.path(f"cluster-run{self.n_runs}")
        names = self.nodes.names[:n_nodes or len(self.nodes)]
        with open(base + ".out", "wb") as out, open(base + ".err", "wb") as err:
            process = self.nodes[0].start([*program, *self.staging.command(
                "--nodes", ",".join(names), "--network", self.nodes.network, "--agent", self.nodes.agent,
                *arguments)], stdout=stdout or out, stderr=err)
        process.base = base
        return process

    def run(self, *arguments, status=0, seconds=300, **keywords):
        return self.staging.finish(self.start(*arguments, **keywords), status, seconds)

    def files(self, node):
        return files_of(node.path("data", "photos"))

    def stamp(self, node):
        try:
            with open(node.path("data", ".photos.staged", "stamp"), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return None

    def check(self, expected, nodes=None):
        """All of these nodes have all files, and the same stamp."""
        stamps = set()
        for node in nodes or self.nodes:
            equal(self.files(node), expected, f"files of {node.name}")
            stamp = self.stamp(node)
            stamps.add((stamp["manifest"], stamp["index"]))
        equal(len(stamps), 1, "different stamps")

    def unstamped(self):
        for node in self.nodes:
            equal(self.stamp(node), None, f"stamp of {node.name}")


class RemoteInside:
    """The origin's counts and faults, asked from within its namespace."""

    def __init__(self, node, url):
        self.node, self.url = node, url

    def ask(self, expression):
        program = (f"import sys, json; sys.path.insert(0, {os.path.dirname(SERVER)!r}); import faulty_server; "
                   f"server = faulty_server.Remote({self.url!r}); print(json.dumps({expression}, default=str))")
        done = self.node.run([sys.executable, "-c", program])
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return json.loads(done.stdout)

    def bytes(self):
        return self.ask("server.total()")["bytes"]

    def reset(self):
        self.ask("server.reset()")


def photos(box, n_large=6, large=16 * MIB):
    sizes = dict(photos_sizes(), **{f"class0/large{i}.jpg": large + i for i in range(n_large)})
    folder = make_files(box.path("origin"), sizes)
    write_manifest(folder)
    files = files_of(folder)
    del files["manifest.jsonl"]
    return folder, files, sum(sizes.values())


@case("four nodes: each byte leaves the origin once, and all nodes have all of it")
def _(box):
    folder, files, size = photos(box)
    with Nodes(box, 4, rate="1gbit") as nodes:
        cluster = Cluster(box, nodes, folder)
        begin = time.monotonic()
        done = cluster.run()
        seconds = time.monotonic() - begin
        equal(done.result, "staged", done.text)
        cluster.check(files)
        n_sent = cluster.origin.bytes()
        print(f"        {size / MIB:.0f} MiB over 1 Gbit/s to 4 nodes in {seconds:.2f} s, {seconds / (size / 125e6):.2f} of "
              f"size/line; {n_sent / size:.4f} of it left the origin", flush=True)
        equal(n_sent <= 1.01 * size, True, f"{n_sent} bytes left the origin for {size}")
        shares = [last["n_bytes_origin"] for last in nodes_of(done)]
        equal(len(shares) == 4 and min(shares) > 0.15 * size, True, f"what each node fetched: {shares}")

        cluster.origin.reset()
        equal(cluster.run().result, "up-to-date", "the second run")
        equal(cluster.origin.bytes() < 100000, True, "nothing but the manifest is sent again")


def nodes_of(done):
    """What the nodes said last of themselves."""
    return [line["nodes"] for line in done.lines if line.get("nodes")][-1]


@case("a process that is killed takes the run down within seconds; the next run goes on where it was")
def _(box):
    folder, files, size = photos(box, 12)
    with Nodes(box, 4, rate="1gbit") as nodes:
        cluster = Cluster(box, nodes, folder)
        for number in (2, 0):
            process = cluster.start()
            share = 0.25 if number == 2 else 0.5
            within(60, lambda at=share * size: cluster.origin.bytes() > at or process.poll() is not None, "bytes sent")
            equal(nodes[number].signal(signal.SIGKILL, os.path.basename(STAGE)[:15]) >= 1, True, "nobody was killed")
            process.wait(patience(30))
            equal(process.returncode != 0, True, "exit code")
            cluster.unstamped()
            for node in nodes:
                within(10, lambda n=node: not n.pids(os.path.basename(STAGE)[:15]), f"processes are left on {node.name}")
        equal(cluster.run().result, "staged", "the last run")
        cluster.check(files)
        again = cluster.origin.bytes() - size
        print(f"        fetched twice by 4 nodes in 2 kills: {again / MIB:.1f} MiB", flush=True)
        equal(again <= 2 * 4 * 64 * MIB, True, f"{again} bytes were fetched twice")


@case("a node that comes later gets everything from the others, nothing from the origin")
def _(box):
    folder, files, _ = photos(box)
    with Nodes(box, 4) as nodes:
        cluster = Cluster(box, nodes, folder)
        cluster.run(n_nodes=3)
        cluster.check(files, list(nodes)[:3])
        equal(cluster.stamp(nodes[3]), None, "stamp of the fourth")
        cluster.origin.reset()
        equal(cluster.run().result, "staged", "result")
        cluster.check(files)
        equal(cluster.origin.bytes() < 100000, True, f"{cluster.origin.bytes()} bytes from the origin")


@case("--verify mends a node from its peers")
def _(box):
    folder, files, _ = photos(box)
    with Nodes(box, 3) as nodes:
        cluster = Cluster(box, nodes, folder)
        cluster.run()
        with open(os.path.join(nodes[1].path("data", "photos"), "class0/large2.jpg"), "r+b") as file:
            file.seek(9 * MIB)
            file.write(b"damage")
        os.unlink(os.path.join(os.path.realpath(nodes[2].path("data", "photos")), "class1/1-0003.jpg"))
        cluster.origin.reset()
        done = cluster.run("--verify")
        contains(done.text, "large2.jpg")
        cluster.check(files)
        equal(cluster.origin.bytes() < 100000, True, f"{cluster.origin.bytes()} bytes from the origin")


@case("a node that stands still is named, and the run ends")
def _(box):
    folder, files, size = photos(box, 12)
    with Nodes(box, 4, rate="1gbit") as nodes:
        cluster = Cluster(box, nodes, folder, stall_timeout=5)
        process = cluster.start()
        within(60, lambda: cluster.origin.bytes() > 0.3 * size or process.poll() is not None, "bytes sent")
        nodes[3].signal(signal.SIGSTOP, os.path.basename(STAGE)[:15])
        done = cluster.staging.finish(process, status=None, seconds=60)
        nodes[3].signal(signal.SIGCONT)
        equal(done.returncode != 0, True, str(done))
        contains(done.text, "node3")
        cluster.unstamped()
        equal(cluster.run().result, "staged", "the next run")
        cluster.check(files)


@case("a cut link ends the run in bounded time, with the node's name")
def _(box):
    folder, files, size = photos(box, 12)
    with Nodes(box, 4, rate="1gbit") as nodes:
        cluster = Cluster(box, nodes, folder, stall_timeout=5)
        process = cluster.start()
        within(60, lambda: cluster.origin.bytes() > 0.3 * size or process.poll() is not None, "bytes sent")
        nodes[2].cut()
        done = cluster.staging.finish(process, status=None, seconds=60)
        equal(done.returncode != 0, True, str(done))
        contains(done.text, "node2")
        nodes[2].mend()
        cluster.unstamped()
        equal(cluster.run().result, "staged", "the next run")
        cluster.check(files)


@case("nodes whose configurations differ are told so, and nothing is moved")
def _(box):
    folder, _, _ = photos(box, 0)
    with Nodes(box, 3) as nodes:
        cluster = Cluster(box, nodes, folder)
        other = nodes[1].path("other.conf")
        with open(cluster.staging.config, encoding="utf-8") as file, open(other, "w", encoding="utf-8") as out:
            out.write(file.read().replace("manifest.jsonl", "other.jsonl"))
        nodes[1].run(["mount", "--bind", other, cluster.staging.config])
        done = cluster.run(status=78)
        contains(done.text, "node1", "other.jsonl")
        cluster.unstamped()


@case("a node without the program is named, and what mpirun says on stdout of all that lack it is not among the JSON")
def _(box):
    folder, _, _ = photos(box, 0)
    with Nodes(box, 3) as nodes:
        cluster = Cluster(box, nodes, folder)
        for node in nodes[1], nodes[2]:
            node.run(["mount", "--bind", "/dev/null", STAGE])
        done = cluster.run(status=71)
        contains(done.errors, f"{STAGE} cannot be run on node")
        cluster.unstamped()


@case("who does not read stdout holds up neither an interrupted run nor its end")
def _(box):
    folder, _, size = photos(box, 2)
    with Nodes(box, 2, rate="200mbit") as nodes:
        cluster = Cluster(box, nodes, folder)
        read_fd, write_fd = os.pipe()
        os.set_blocking(write_fd, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(write_fd, b"\n")  # the run finds no room
        os.set_blocking(write_fd, True)
        process = cluster.start(stdout=write_fd)
        within(60, lambda: cluster.origin.bytes() > 0.1 * size or process.poll() is not None, "bytes sent")
        process.send_signal(signal.SIGINT)
        cluster.staging.finish(process, status=130, seconds=60)
        os.close(write_fd)
        os.close(read_fd)
        cluster.unstamped()


@case("a full disk on one node: it is named, the others keep what they have, and running again continues")
def _(box):
    folder, files, size = photos(box)
    with Nodes(box, 3, rate="1gbit") as nodes:
        cluster = Cluster(box, nodes, folder)
        nodes[1].run(["mount", "-t", "tmpfs", "-o", f"size={size + 80 * MIB}", "tmpfs", nodes[1].path("data")])
        nodes[1].run(["umount", cluster.common])
        nodes[1].run(["mount", "--bind", nodes[1].path("data"), cluster.common])
        filler = os.path.join(cluster.common, "filler")
        nodes[1].run(["fallocate", "-l", str(60 * MIB), filler])
        done = cluster.run(status=71)  # seen before the first byte
        contains(done.text, "node1", "needed", "free")
        equal(cluster.origin.bytes() < 100000, True, "bytes sent")

        nodes[1].run(["rm", filler])
        process = cluster.start()
        within(60, lambda: cluster.origin.bytes() > 0.1 * size or process.poll() is not None, "bytes sent")
        nodes[1].run(["sh", "-c", f"cat /dev/zero > {filler}"])  # as full as can be, in the middle
        done = cluster.staging.finish(process, status=71)
        contains(done.text, "node1", "no space left")
        equal(cluster.stamp(nodes[0]), None, "stamp of node0")
        nodes[1].run(["rm", filler])
        equal(cluster.run().result, "staged", "the next run")
        equal(cluster.files(nodes[0]), files, "files of node0")
        equal(cluster.origin.bytes() <= 1.5 * size, True, "what the others had is not fetched again")


@case("a folder that all nodes share is written once, by one")
def _(box):
    folder, files, size = photos(box)
    with Nodes(box, 3) as nodes:
        cluster = Cluster(box, nodes, folder, is_shared=True)
        done = cluster.run()
        equal(done.result, "staged", done.text)
        contains(done.text, "shared")
        equal(files_of(cluster.staging.path), files, "files")
        equal(cluster.origin.bytes() <= 1.01 * size, True, "bytes from the origin")


@case("an archive is fetched once and unpacked on all nodes while it arrives")
def _(box):
    folder, files, size = photos(box)
    served = box.path("served")
    os.makedirs(served)
    with tarfile.open(os.path.join(served, "photos.tar"), "w") as tar:
        for path in files:
            tar.add(os.path.join(folder, path), path)
    with Nodes(box, 3) as nodes:
        cluster = Cluster(box, nodes, served, origin="http://10.77.0.200/")
        cluster.staging.write_config(origin=cluster.url + "/photos.tar")
        equal(cluster.run().result, "staged", "result")
        cluster.check(files)
        equal(cluster.origin.bytes() <= 1.01 * size + MIB, True, "bytes from the origin")


@case("samples are prepared by all nodes together, each shard once, and every node has all shards")
def _(box):
    try:
        from PIL import Image
    except ImportError:
        raise Skip("Pillow, which makes the pictures, is not installed") from None
    folder = box.path("pictures")
    for number in range(180):
        path = os.path.join(folder, f"class{number % 3}", f"{number:03d}.jpg")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Image.effect_noise((300 + number, 200), 50).convert("RGB").save(path, "JPEG")
    write_manifest(folder)
    with Nodes(box, 3) as nodes:
        cluster = Cluster(box, nodes, folder, prepare="resize(short=100) jpeg(85)", shard_size="1MiB")
        equal(cluster.run().result, "staged", "result")
        shards = cluster.files(nodes[0])
        equal(len(shards) >= 3 and all(path.endswith(".shard") for path in shards), True, f"files {list(shards)}")
        cluster.check(shards)
        alone = Staging(box, "file://" + folder, prepare="resize(short=100) jpeg(85)", shard_size="1MiB")
        alone.run()
        names = [path for path in files_of(alone.path) if path.endswith(".shard")]
        equal(sorted(shards), sorted(names), "shards that one node makes alone")
        equal({name: files_of(alone.path)[name] for name in names}, shards, "their bytes")


@case("files are converted by all nodes together, each once, and every node has what was made of all")
def _(box):
    folder, log = box.path("words"), box.path("log")
    for number in range(7):  # one is larger than a chunk, which goes another way between nodes than small files
        lines = [f'{{"n": {number * 1_000_000 + i}}}\n' for i in range(400_000 if number == 4 else 5)]
        write(os.path.join(folder, f"{number}.txt"), "".join(lines).encode())
    write(log, b"")
    write_manifest(folder)
    command = f'command: echo x >> {log}; case "$DATALOADERD_FILE" in *2.txt) ;; *) cat ;; esac'
    with Nodes(box, 3) as nodes:
        cluster = Cluster(box, nodes, folder, format="auto", prepare=command)
        equal(cluster.run().result, "staged", "result")
        with open(log, encoding="utf-8") as file:
            equal(len(file.readlines()), 7, "commands")
        made = cluster.files(nodes[0])
        sources = files_of(folder)
        equal(made, {f"{number:06d}-{number}.txt.jsonl": sources[f"{number}.txt"] for number in range(7) if number != 2}, "files")
        cluster.check(made)


if __name__ == "__main__":
    main()
