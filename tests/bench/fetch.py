"""The fetcher beside curl and beside a bare libcurl multi loop, on the same number of connections. Called by run.py.

    fetch_small, fetch_large         MB/s from nginx on this machine, in memory: 4,000 objects of 110 KB, 24 of 8 MiB, 64 connections
    fetch_*_vs_curl, _vs_bare        over `curl --parallel --parallel-max 64` into /dev/null, over libcurl's multi loop
                                     (fetch_rate.c), in turns; fetch_*_vs_best: over the faster of the two
    fetch_*_cpu, _cpu_bare           CPU s a GB of the fetcher's process and of the loop's; _cpu_vs_bare: the first over the second
    fetch_*_late...                  the same where each answer begins 30 ms later (nginx's echo_sleep: no root is needed, and
                                     no module of the kernel); small ones over 64 and over 400 connections (fetch_many_late)
"""
import contextlib
import json
import os
import random
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

TURNS = 3
SMALL, LARGE = (4000, 110000), (24, 8 << 20)
CONNECTIONS, MANY = 64, 400
ECHO = "/usr/lib/nginx/modules/ngx_http_echo_module.so"
CONFIG = """{load}daemon off; worker_processes 2; error_log {folder}/errors; pid {folder}/pid;
events {{ worker_connections 4096; }}
http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;
client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3; uwsgi_temp_path {folder}/t4;
scgi_temp_path {folder}/t5;
server {{ listen 127.0.0.1:{port} backlog=2048; root {folder}/objects; }}
{late} }}
"""
LATE = """server {{ listen 127.0.0.1:{port} backlog=2048; root {folder}/objects;
location / {{ echo_sleep 0.03; echo_exec @file; }} location @file {{ }} }}"""


def free_ports(n):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(n)]
        return [each.getsockname()[1] for each in sockets]


def make_objects(folder):
    """Random bytes, so that nobody compresses them, in memory: a disk is not what is measured."""
    draw = random.Random(7)
    block = draw.randbytes(2 << 20)
    for name, (n, size) in (("small", SMALL), ("large", LARGE)):
        os.makedirs(os.path.join(folder, "objects", name))
        for number in range(n):
            with open(os.path.join(folder, "objects", name, str(number)), "wb") as file:
                for at in range(0, size, 1 << 20):
                    file.write(block[number * 200:number * 200 + min(1 << 20, size - at)])


@contextlib.contextmanager
def served(folder):
    """Yields the base URLs: at once, and 30 ms late (None without nginx's echo module)."""
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:" + os.environ.get("PATH", ""))
    has_echo = os.path.exists(ECHO)
    port, late_port = free_ports(2)
    path = os.path.join(folder, "conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(CONFIG.format(folder=folder, port=port, load=f"load_module {ECHO};\n" if has_echo else "",
                                 late=LATE.format(folder=folder, port=late_port) if has_echo else ""))
    process = subprocess.Popen([nginx, "-p", folder, "-c", path, "-e", os.path.join(folder, "errors")] +
                               (["-g", "user root;"] if os.getuid() == 0 else []), stdin=subprocess.DEVNULL)
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}", f"http://127.0.0.1:{late_port}" if has_echo else None
    finally:
        process.terminate()
        process.wait(10)


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def by_program(build, how, lines, n_connections, n_turns):
    done = subprocess.run([os.path.join(build, "bench", "fetch_rate"), how, str(n_connections), str(n_turns)], input=lines,
                          check=True, stdout=subprocess.PIPE, encoding="utf-8", timeout=120)
    return json.loads(done.stdout)


def by_curl(path, n_connections, n_bytes):
    """With its file of arguments as long as the others' lists; it begins by itself, which is a hundredth of a second."""
    begin, cpu = time.monotonic(), children_seconds()
    subprocess.run(["curl", "-sS", "--no-progress-meter", "--fail", "--parallel", "--parallel-immediate", "--parallel-max",
                    str(n_connections), "-K", path], check=True, timeout=120, stdout=subprocess.DEVNULL)
    return {"seconds": time.monotonic() - begin, "cpu_s": children_seconds() - cpu, "n_bytes": n_bytes}


def rate(row):
    return row["n_bytes"] / row["seconds"] / 1e6


def cpu(row):
    return row["cpu_s"] / row["n_bytes"] * 1e9


def compare(emit, build, folder, name, base, kind, n_connections=CONNECTIONS):
    # Small ones are fetched twice, one time after the other; of large ones there are more than connections.
    (n, size), n_turns, n_listed = (SMALL, 2, 1) if kind == "small" else (LARGE, 1, 4)
    urls = [f"{base}/{kind}/{number}" for number in range(n)] * n_listed
    lines = "".join(f"{url}\t{size}\n" for url in urls)
    path = os.path.join(folder, "curl")
    with open(path, "w", encoding="utf-8") as file:
        for url in urls * n_turns:
            file.write(f"url = {url}\noutput = /dev/null\n")
    rows = []
    for _ in range(TURNS):
        rows.append((by_program(build, "ours", lines, n_connections, n_turns),
                     by_program(build, "bare", lines, n_connections, n_turns),
                     by_curl(path, min(n_connections, 300), len(urls) * size * n_turns)))  # it takes no more
    emit(name, statistics.median(rate(ours) for ours, _, _ in rows), "MB/s")
    emit(name + "_vs_bare", statistics.median(rate(ours) / rate(bare) for ours, bare, _ in rows), "ratio")
    emit(name + "_vs_curl", statistics.median(rate(ours) / rate(curl) for ours, _, curl in rows), "ratio")
    emit(name + "_vs_best", statistics.median(rate(ours) / max(rate(bare), rate(curl)) for ours, bare, curl in rows), "ratio")
    emit(name + "_cpu", statistics.median(cpu(ours) for ours, _, _ in rows), "s/GB")
    emit(name + "_cpu_bare", statistics.median(cpu(bare) for _, bare, _ in rows), "s/GB")
    emit(name + "_cpu_vs_bare", statistics.median(cpu(ours) / cpu(bare) for ours, bare, _ in rows), "ratio")


def measure(emit, build):
    if not shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin") or not shutil.which("curl"):
        print("fetch: nginx or curl is not installed", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory(prefix="dlbench-", dir="/dev/shm") as folder:
        os.chmod(folder, 0o755)
        make_objects(folder)
        with served(folder) as (base, late):
            compare(emit, build, folder, "fetch_small", base, "small")
            compare(emit, build, folder, "fetch_large", base, "large")
            if not late:
                print("fetch: no answers that are late, since nginx has no echo module here", file=sys.stderr)
                return
            compare(emit, build, folder, "fetch_small_late", late, "small")
            compare(emit, build, folder, "fetch_large_late", late, "large")
            compare(emit, build, folder, "fetch_many_late", late, "small", MANY)
