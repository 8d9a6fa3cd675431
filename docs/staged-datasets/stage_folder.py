#!/usr/bin/env python3
"""Stages a folder on this machine for dataloaderd, as docs/staged-datasets.md says: a tool of one's own in small.

    stage_folder.py NAME SOURCE PATH      # copies SOURCE and publishes it at PATH, the dataset's path
"""
import fcntl
import hashlib
import json
import os
import shutil
import sys
import time

LEASE_STALE_S = 900


def paths_below(source):
    found = []
    for parent, _, names in os.walk(source):
        found += [os.path.relpath(os.path.join(parent, name), source) for name in names]
    return sorted(found, key=os.fsencode)


def sha256_of(path):
    sha = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            sha.update(block)
    return sha.digest()


def digest_of(files):
    sha = hashlib.sha256()
    for path, size, file_sha256 in files:
        sha.update(path.encode() + b"\0" + str(size).encode() + b"\0s" + file_sha256 + b"-")
    return sha.hexdigest()


def sync(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def replace(path, text, durable=True):
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    os.rename(path + ".new", path)
    if durable:
        sync(os.path.dirname(path))


class Staging:
    """One run. Its steps are those of the page, in its sequence; each may be the last one that happens."""

    STEPS = ("copy", "write_manifest", "sync", "make_readers", "swap_link", "write_stamp", "remove_old")

    def __init__(self, name, source, path):
        self.name, self.source, self.path = name, os.path.abspath(source), os.path.abspath(path)
        parent, last = os.path.split(self.path)
        self.state = os.path.join(parent, f".{last}.staged")
        os.makedirs(self.state, mode=0o755, exist_ok=True)
        # pylint: disable=consider-using-with
        self.lock = open(os.path.join(self.state, "lock"), "a+", encoding="utf-8")
        fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: another staging is at work
        self.lock.truncate(0)
        self.lock.write(f"stage_folder.py, process {os.getpid()}\n")
        self.lock.flush()
        self.files = [(path, os.path.getsize(os.path.join(source, path)), sha256_of(os.path.join(source, path)))
                      for path in paths_below(source)]
        self.digest = digest_of(self.files)
        self.version = "v-" + self.digest[:12]
        self.root = os.path.join(self.state, self.version)
        try:
            with open(os.path.join(self.state, "stamp"), encoding="utf-8") as file:
                self.before = json.load(file)["version"]
        except FileNotFoundError:
            self.before = ""

    def run(self, steps=STEPS):
        for step in steps:
            getattr(self, step)()
        self.lock.close()

    def tell(self, n_files, n_bytes, **ending):
        total = sum(size for _, size, _ in self.files)
        line = {"dataset": self.name, "phase": "copying", "n_bytes_total": total, "n_bytes_done": n_bytes,
                "n_files_total": len(self.files), "n_files_done": n_files, "n_nodes": 1, **ending}
        replace(os.path.join(self.state, "progress"), json.dumps(line) + "\n", durable=False)

    def copy(self):
        n_bytes = 0
        told = time.monotonic() - 1
        for number, (path, size, file_sha256) in enumerate(self.files):
            if time.monotonic() - told >= 1:
                self.tell(number, n_bytes)
                told = time.monotonic()
            target = os.path.join(self.root, path)
            if not os.path.exists(target) or sha256_of(target) != file_sha256:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                unfinished = os.path.join(self.root, ".dlstage-part")
                shutil.copyfile(os.path.join(self.source, path), unfinished)
                os.rename(unfinished, target)
            n_bytes += size
        self.tell(len(self.files), n_bytes)

    def write_manifest(self):
        lines = [json.dumps({"path": path, "size": size, "sha256": file_sha256.hex(),
                             "urls": ["file://" + os.path.join(self.source, path)]}) + "\n"
                 for path, size, file_sha256 in self.files]
        replace(self.root + ".manifest", "".join(lines))

    def sync(self):
        for parent, _, names in os.walk(self.root):
            for name in names:
                sync(os.path.join(parent, name))
            sync(parent)

    def make_readers(self):
        os.close(os.open(self.root + ".readers", os.O_RDWR | os.O_CREAT, 0o644))

    def swap_link(self):
        if os.path.islink(self.path):
            if not os.readlink(self.path).startswith(os.path.basename(self.state) + "/"):
                raise SystemExit(f"{self.path} is a link to somewhere else")
        elif os.path.exists(self.path):
            os.rmdir(self.path)  # OSError: it is not an empty folder
        new = os.path.join(self.state, "link.new")
        if os.path.lexists(new):
            os.unlink(new)
        os.symlink(os.path.join(os.path.basename(self.state), self.version), new)
        os.rename(new, self.path)

    def write_stamp(self):
        stamp = {"dataset": self.name, "manifest": self.digest, "version": self.version, "source": self.digest,
                 "source_version": self.version, "prepare": "", "index": "", "format": "", "n_files": len(self.files),
                 "n_bytes": sum(size for _, size, _ in self.files), "n_nodes": 1, "when": int(time.time())}
        replace(os.path.join(self.state, "stamp"), json.dumps(stamp) + "\n")
        self.tell(len(self.files), stamp["n_bytes"], result="staged")

    def remove_old(self):
        names = os.listdir(self.state)
        for version in {name[:14] for name in names if name.startswith("v-")} - {self.version, self.before}:
            with open(os.path.join(self.state, version + ".readers"), "a", encoding="utf-8") as readers:
                folder = os.path.join(self.state, version)
                root = os.open(folder, os.O_RDONLY) if os.path.isdir(folder) else readers.fileno()
                try:
                    fcntl.flock(readers, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    fcntl.flock(root, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.utime(readers.fileno())
                    now = os.fstat(readers.fileno()).st_mtime
                    leases = [name for name in names if name.startswith(version + ".lease-")]
                    if any(os.stat(os.path.join(self.state, name)).st_mtime + LEASE_STALE_S > now for name in leases):
                        continue
                    shutil.rmtree(folder, ignore_errors=True)
                    beside = [name for name in names if name.startswith(version + ".") and not name.endswith(".readers")]
                    for name in beside + [version + ".readers"]:
                        os.unlink(os.path.join(self.state, name))
                except BlockingIOError:
                    pass  # somebody reads it: a later staging removes it
                finally:
                    if root != readers.fileno():
                        os.close(root)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    Staging(*sys.argv[1:]).run()
