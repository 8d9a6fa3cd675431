"""Folders of shards for the tests."""
import os
import subprocess

from harness import ROOT, Skip, equal

TOOL = os.path.join(ROOT, "build", "release", "tools", "pack_folder")


def pack(folder, out, shard_bytes=20000):
    """Returns the number of shards and the digest of what was packed."""
    if not os.path.exists(TOOL):
        raise Skip("build/release/tools/pack_folder was not built")
    done = subprocess.run([TOOL, folder, out, str(shard_bytes)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=300, check=False)
    equal(done.returncode, 0, f"pack_folder: {done.stderr}")
    _, n_shards, digest = done.stdout.split()
    return int(n_shards), digest


def packed(path):
    return {"path": path, "format": "packed"}
