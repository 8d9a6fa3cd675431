"""A dataset on a real web server, and what a rank must get of it."""
import json
import os
import shutil
import socket
import struct
import subprocess
import urllib.parse

from harness import Skip, check_sequence, die_with_parent, end, equal, samples_of, sha256_of, within, write

NGINX = """daemon off; master_process off; pid {folder}/pid; error_log {folder}/errors warn;
events {{ worker_connections 512; }}
http {{
    log_format seen '$request_method $status $body_bytes_sent $request_uri';
    access_log {folder}/seen seen;
    client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
    uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
    server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
"""


class Nginx:
    """A real web server, which is ended with the box."""

    def __init__(self, box, root, name="nginx"):
        program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin")
        if not program:
            raise Skip("nginx is not installed")
        self.home = box.path(name)
        os.makedirs(self.home)
        os.chmod(box.folder, 0o755)  # its worker is another user
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        write(os.path.join(self.home, "conf"), NGINX.format(folder=self.home, port=self.port, root=root).encode())
        self.command = [program, "-p", self.home, "-c", os.path.join(self.home, "conf"), "-e", os.path.join(self.home, "errors")]
        self.process = None
        self.start()
        box.releases.append(self.stop)

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)
        within(10, self.answers, "nginx listens")

    def answers(self):
        if self.process.poll() is not None:
            with open(os.path.join(self.home, "errors"), encoding="utf-8") as errors:
                raise Skip("nginx does not start here: " + errors.read()[-200:])
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        end(self.process)

    def url(self, path):
        return f"http://127.0.0.1:{self.port}/{urllib.parse.quote(path)}"

    def seen(self):
        """(method, status, bytes, path) of each request."""
        try:
            with open(os.path.join(self.home, "seen"), encoding="utf-8") as log:
                rows = [line.split(None, 3) for line in log]
        except FileNotFoundError:
            return []
        return [(method, int(status), int(n), path.strip()) for method, status, n, path in rows]


def paths_below(folder):
    return sorted(os.path.relpath(os.path.join(root, name), folder) for root, _, names in os.walk(folder) for name in names)


def list_of(server, root, name):
    """A list of the URLs of all files of this folder. Returns its own URL."""
    lines = [server.url(f"{name}/{path}") + "\n" for path in paths_below(os.path.join(root, name))]
    write(os.path.join(root, f"{name}.txt"), "".join(lines).encode())
    return server.url(f"{name}.txt")


def bytes_of(folder):
    return sum(os.path.getsize(os.path.join(folder, path)) for path in paths_below(folder))


def noise(number, size):
    """Bytes that do not repeat, of which each place tells what it is of."""
    return b"".join(b"%015d\n" % (number << 32 | at) for at in range(0, size, 16))[:size]


def make_images(root, n=40, size=3000):
    """Names as users have them: blanks, percent signs, other alphabets."""
    for number in range(n):
        write(os.path.join(root, "images", ["a cat", "b%41", "c\u00e9\u6f22"][number % 3], f"{number:04d} x%.jpg"), noise(number, size + number))


def make_mds(root, n_shards, n, size, name="mds"):
    """Shards of n items each, which are a little longer than `size` bytes."""
    shards = []
    for shard in range(n_shards):
        items = [struct.pack("<I", size + i) + noise(shard * n + i, size + i) + struct.pack("<q", i) for i in range(n)]
        begins = [4 * (n + 2)]
        for item in items:
            begins.append(begins[-1] + len(item))
        content = struct.pack(f"<{n + 2}I", n, *begins) + b"".join(items)
        write(os.path.join(root, name, f"shard.{shard:05d}.mds"), content)
        shards.append({"column_encodings": ["bytes", "int"], "column_names": ["x", "y"], "column_sizes": [None, 8],
                       "compression": None, "format": "mds", "hashes": [], "samples": n, "version": 2, "zip_data": None,
                       "raw_data": {"basename": f"shard.{shard:05d}.mds", "bytes": len(content), "hashes": {}}})
    write(os.path.join(root, name, "index.json"), json.dumps({"version": 2, "shards": shards}).encode())


def check_images(lines, folder, epochs=1, **terms):
    """Exactly these epochs, each sample with its own bytes."""
    samples = samples_of(folder)
    check_sequence(lines, len(samples), epochs=epochs, **terms)
    digests = [sha256_of(path) for path, _ in samples]
    equal([line["fields"]["image"]["sha256"] for line in lines], [digests[line["index"]] for line in lines], "bytes")
