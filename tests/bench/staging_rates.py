"""Staging, measured: one node beside curl, and four nodes at 1 Gbit/s beside the line. Called by run.py.

Everything lies in memory (/dev/shm), origin and nodes: four nodes of one machine would else share one disk, and curl does
not wait for it. The origin is nginx if it is installed, else static_server.py.
"""
import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from harness import Box, Skip  # noqa: E402
from nodes import Nodes  # noqa: E402
from staging import Staging, write_manifest  # noqa: E402

N_FILES, FILE_BYTES = 16, 64 << 20  # 1 GiB
CONNECTIONS = 16
ALONE = ("staging_alone", "staging_curl", "staging_vs_curl", "staging_cpu", "staging_hash")
CHECKS = {"openssl": ["openssl", "dgst", "-sha256"], "sha256sum": ["sha256sum"]}
LINE = 125e6  # bytes a second: 1 Gbit/s
SERVER = os.path.join(ROOT, "tests", "support", "faulty_server.py")
STATIC = os.path.join(HERE, "static_server.py")


def make_origin(folder):
    """Files of random bytes: nobody compresses them on the way."""
    draw = random.Random(7)
    block = draw.randbytes(1 << 20)
    for number in range(N_FILES):
        path = os.path.join(folder, "c", f"{number:02d}.jpg")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            for at in range(FILE_BYTES >> 20):
                file.write(block[at * 1000:] + block[:at * 1000][::-1] + bytes([number]))
            file.truncate(FILE_BYTES)
    write_manifest(folder)
    return N_FILES * FILE_BYTES


class Peak:
    """The most memory that any process of a name took while this was open, MiB, anonymous and all."""

    def __init__(self, name):
        self.name, self.rss, self.anonymous, self.is_over = name[:15], 0, 0, False
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join()

    def watch(self):
        while not self.is_over:
            for pid in filter(str.isdigit, os.listdir("/proc")):
                with contextlib.suppress(OSError, ValueError):
                    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
                        fields = dict(line.split(":", 1) for line in file if ":" in line)
                    if fields["Name"].strip() == self.name and "VmHWM" in fields:
                        self.rss = max(self.rss, int(fields["VmHWM"].split()[0]) / 1024)
                        self.anonymous = max(self.anonymous, int(fields["RssAnon"].split()[0]) / 1024)
            time.sleep(0.05)


@contextlib.contextmanager
def web_server(folder, box):
    """nginx over the folder on a free port; else a server of our own that is as cheap."""
    nginx = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    port = 18000 + os.getpid() % 14000
    if not nginx:
        process = box.start([sys.executable, STATIC, folder, str(port)])
        time.sleep(0.5)
        yield f"http://127.0.0.1:{port}", "static_server"
        process.terminate()
        process.wait(10)
        return
    config = box.path("nginx.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write(f"""daemon off; worker_processes 2; error_log {box.path('nginx.log')}; pid {box.path('nginx.pid')};
events {{ worker_connections 512; }}
http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000;
client_body_temp_path {box.path('t1')}; proxy_temp_path {box.path('t2')}; fastcgi_temp_path {box.path('t3')};
uwsgi_temp_path {box.path('t4')}; scgi_temp_path {box.path('t5')};
server {{ listen 127.0.0.1:{port}; root {folder}; }} }}
""")
    process = box.start([nginx, "-p", box.folder, "-c", config, "-g", "user root;" if os.getuid() == 0 else ""],
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    yield f"http://127.0.0.1:{port}", "nginx"
    process.terminate()
    process.wait(10)


def children_seconds():
    """CPU time of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def hash_rate():
    """Bytes a second of SHA-256 on one thread: no staging is faster, since a file's digest cannot be split."""
    block = bytes(64 << 20)
    begin = time.thread_time()
    hashlib.sha256(block).digest()
    return len(block) / (time.thread_time() - begin)


def curl(url, folder, check=None):
    """All files with as many connections as we use, then hashed by as many processes as there are CPUs if `check` names a
    program. Seconds."""
    os.makedirs(folder)
    command = ["curl", "-sS", "--no-progress-meter", "--fail",  # with --parallel -s alone leaves the bars
               "--parallel", "--parallel-immediate", "--parallel-max", str(CONNECTIONS)]
    for number in range(N_FILES):
        command += ["-o", os.path.join(folder, f"{number:02d}"), f"{url}/c/{number:02d}.jpg"]
    begin = time.monotonic()
    subprocess.run(command, check=True, timeout=120)
    if check:
        paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
        cpus = len(os.sched_getaffinity(0))
        checks = [subprocess.Popen(CHECKS[check] + paths[cpu::cpus], stdout=subprocess.DEVNULL) for cpu in range(cpus)]
        if any([process.wait(120) for process in checks]):
            raise AssertionError(f"{check} failed")
    seconds = time.monotonic() - begin
    shutil.rmtree(folder)
    return seconds


def alone(repeats, emit, box):
    folder = box.path("origin")
    size = make_origin(folder)
    ours, theirs, peaks, cpu = [], [], [], {"ours": [], "curl": []}
    checked = {check: [] for check in CHECKS if shutil.which(check)}
    with web_server(folder, box) as (url, server):
        for number in range(repeats):
            staging = Staging(box, f"{url}/manifest.jsonl", name=f"d{number}", connections=CONNECTIONS)
            with Peak("dataloaderd-stage") as peak:
                begin, used = time.monotonic(), children_seconds()
                staging.run()
                ours.append(time.monotonic() - begin)
                cpu["ours"].append(children_seconds() - used)
            peaks.append(peak)
            shutil.rmtree(staging.folder)
            used = children_seconds()
            theirs.append(curl(url, box.path(f"curl{number}")))
            cpu["curl"].append(children_seconds() - used)
            for check, seconds in checked.items():
                used = children_seconds()
                seconds.append(curl(url, box.path(f"{check}{number}"), check))
                cpu.setdefault(check, []).append(children_seconds() - used)
    emit("staging_alone", size / statistics.median(ours) / 1e6, "MB/s", repeats=repeats, server=server, bytes=size)
    emit("staging_curl", size / statistics.median(theirs) / 1e6, "MB/s", connections=CONNECTIONS)
    emit("staging_vs_curl", statistics.median(b / a for a, b in zip(ours, theirs)), "ratio")
    for check, seconds in checked.items():
        name = "checked" if check == "openssl" else check
        emit(f"staging_curl_{name}", size / statistics.median(seconds) / 1e6, f"MB/s, then hashed with {check}")
        emit(f"staging_vs_curl_{name}", statistics.median(b / a for a, b in zip(ours, seconds)), "ratio",
             cpu=round(statistics.median(cpu[check]) / (size / 1e9), 3))
    emit("staging_cpu", statistics.median(cpu["ours"]) / (size / 1e9), "CPU s a GB",
         curl=round(statistics.median(cpu["curl"]) / (size / 1e9), 3), cpus=len(os.sched_getaffinity(0)))
    emit("staging_hash", hash_rate() / 1e6, "MB/s of SHA-256 on one thread")
    emit("staging_alone_memory", max(peak.anonymous for peak in peaks), "MiB anonymous", rss=max(p.rss for p in peaks))


def four_nodes(repeats, emit, box):
    folder = box.path("origin")
    size = N_FILES * FILE_BYTES
    walls, shares, peaks = [], [], []
    for number in range(repeats):
        with Nodes(box, 4, rate="1gbit") as nodes:
            process = nodes.origin.start([sys.executable, SERVER, "--root", folder, "--host", nodes.origin.address],
                                         stdout=subprocess.PIPE, stdin=subprocess.PIPE)
            url = json.loads(process.stdout.readline())["url"].rstrip("/")
            common = box.path(f"common{number}")
            os.makedirs(common)
            for node in nodes:
                os.makedirs(node.path("data"))
                node.run(["mount", "--bind", node.path("data"), common])
            staging = Staging(box, f"{url}/manifest.jsonl", name=f"n{number}", path=os.path.join(common, "photos"),
                              sharing="local")
            command = staging.command("--nodes", ",".join(nodes.names), "--network", nodes.network, "--agent",
                                      nodes.agent)
            with Peak("dataloaderd-stage") as peak:
                begin = time.monotonic()
                done = nodes[0].run(command, seconds=300)
                walls.append(time.monotonic() - begin)
            if done.returncode != 0:
                raise AssertionError(done.stdout + done.stderr)
            shares.append(nodes.origin.counts()[1] / size)
            peaks.append(peak)
            for node in nodes:
                shutil.rmtree(node.path("data"))
    emit("staging_nodes", statistics.median(walls) / (size / LINE), "of size / line rate", repeats=repeats, bytes=size)
    emit("staging_nodes_rate", size / statistics.median(walls) / 1e6, "MB/s a node")
    emit("staging_origin", statistics.median(shares), "of size on the origin's line, headers and all")
    emit("staging_nodes_memory", max(peak.anonymous for peak in peaks), "MiB anonymous", rss=max(p.rss for p in peaks))


def run(repeats, emit, wanted):
    folder = tempfile.mkdtemp(prefix="dlp-staging-", dir="/dev/shm")
    box = Box()
    shutil.rmtree(box.folder)
    box.folder = folder
    try:
        alone(repeats, emit, box)
        if wanted in ("", "staging") or not any(name.startswith(wanted) or wanted.startswith(name) for name in ALONE):
            four_nodes(min(repeats, 3), emit, box)
    except Skip as reason:
        print(f"# skipped: {reason}", flush=True)
    finally:
        box.close()
