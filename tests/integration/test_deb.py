#!/usr/bin/env python3
"""make deb: the packages are as Debian wants them; installed, upgraded under load and purged on a system that boots."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, Skip, case, check_bytes, check_sequence, contains, equal, main, patience, samples_of, within, write
from machine import CONFIG, N, machine, read
from pages import block

PACKAGES = {"dataloaderd", "dataloaderd-stage", "libdlclient0", "libdlclient-cuda0", "libdlclient-dev", "python3-dlclient"}
TOOLS = {"dh": "debhelper", "dpkg-buildpackage": "dpkg-dev", "dh_python3": "dh-python"}
UNIT_LINKS = "etc/systemd/system/*/dataloaderd*"
_built = {}


def run(*command, seconds=300):
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=patience(seconds))
    equal(done.returncode, 0, f"{' '.join(command)}: {done.stdout}")
    return done.stdout


def packages():
    """Paths of the packages of this tree by their names, built once."""
    for tool, package in TOOLS.items():
        if not shutil.which(tool):
            raise Skip(f"{package} is not installed")
    if not _built:
        env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "VARIANT")}
        # What is packed is looked at, not how small it gets.
        env.update(DPKG_DEB_COMPRESSOR_TYPE="gzip", DPKG_DEB_COMPRESSOR_LEVEL="1")
        done = subprocess.run(["make", "-s", "-C", ROOT, "deb"], env=env, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=patience(600))
        equal(done.returncode, 0, done.stdout)
        _built.update({os.path.basename(path).partition("_")[0]: os.path.join(ROOT, path)
                       for path in re.findall(r"^build/deb/\S+\.deb$", done.stdout, re.MULTILINE)})
        equal(set(_built), PACKAGES, "packages")
    return _built


def as_version(box, paths, version):
    """The same packages with another version. Returns their paths."""
    os.makedirs(box.path("repacked"))
    made = []
    for path in paths:
        folder = box.path("repacked", os.path.basename(path))
        run("dpkg-deb", "-R", path, folder)
        control = os.path.join(folder, "DEBIAN", "control")
        with open(control, encoding="utf-8") as file:
            text = file.read()
        ours = re.search(r"^Version: (\S+)$", text, re.MULTILINE)[1]
        with open(control, "w", encoding="utf-8") as file:
            file.write(text.replace(f"Version: {ours}\n", f"Version: {version}\n").replace(f"= {ours})", f"= {version})"))
        made.append(f"{folder}.deb")
        run("dpkg-deb", "-Znone", "-b", folder, made[-1])
    return made


@case("the packages have the tree's version, lintian finds nothing in them, and they ask nothing")
def _(box):
    version = run("make", "-s", "-C", ROOT, "version").strip()
    for name, path in packages().items():
        equal(run("dpkg-deb", "-f", path, "Version").strip(), version, f"version of {name}")
        run("dpkg-deb", "-e", path, box.path(name))
        equal({"config", "templates"} & set(os.listdir(box.path(name))), set(), f"questions of {name}")
    if not shutil.which("lintian"):
        raise Skip("lintian is not installed")
    said = run("lintian", "--allow-root", "--fail-on", "error,warning", *glob.glob(os.path.join(ROOT, "build/deb/*.changes")))
    equal(said.strip(), "", "lintian")


def can_be_installed(path):
    """Is all there that this package depends on, beside our own packages?"""
    for name in re.findall(r"(?:^|, )([a-z0-9][a-z0-9+.-]+)", run("dpkg-deb", "-f", path, "Depends").strip()):
        known = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}", name], check=False, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
        if name not in PACKAGES and known.stdout != "installed":
            return False
    return True


@case("installed, they serve; an upgrade under load loses no sample and keeps the configuration; purged, nothing is left")
def _(box):
    chosen = [path for path in packages().values() if can_be_installed(path)]
    names = [os.path.basename(path).partition("_")[0] for path in chosen]
    if not {"dataloaderd", "libdlclient0"} <= set(names):
        raise Skip("what the packages depend on is not installed here")
    newer = as_version(box, chosen, "0.99.0")

    def put(made):
        policy = os.path.join(made.root, "usr/sbin/policy-rc.d")  # images of containers forbid packages to start anything
        if os.path.lexists(policy):
            os.remove(policy)
        for folder, paths in (("old", chosen), ("new", newer)):
            os.makedirs(os.path.join(made.root, "opt", folder))
            for path in paths:
                shutil.copy(path, os.path.join(made.root, "opt", folder))

    made, source = machine(box, put, install=False)

    def dpkg(words):
        return made.inside("sh", "-c", f"DEBIAN_FRONTEND=teletype dpkg {words} </dev/null", seconds=600)

    dpkg("-i /opt/old/*.deb")
    within(20, lambda: made.show("ActiveState") == "active", "the daemon runs after the installation")
    equal(made.inside("systemctl", "is-enabled", "dataloaderd.service", "dataloaderd.socket").split(), ["enabled"] * 2, "units")
    write(os.path.join(made.root, "etc/dataloaderd/dataloaderd.conf"), CONFIG.encode())
    made.systemctl("restart", "dataloaderd")
    lines = read(made)
    check_sequence(lines, N)
    check_bytes(lines, samples_of(source))

    pid, started = made.show("MainPID"), made.show("ActiveEnterTimestampMonotonic", "dataloaderd.socket")
    reader = made.start_inside("sh", "-c", "i=0; while [ $i -lt 10000 ]; do i=$((i+1)); [ -e /run/enough ] && exit 0; "
                               "dlctl --format json read d --epochs 20 --batch 4 --delay-ms 5 --on-restart wait || exit 1; done")
    time.sleep(0.4)
    dpkg("-i /opt/new/*.deb")
    within(20, lambda: made.show("MainPID") not in ("0", pid), "the new daemon runs")
    made.inside("touch", "/run/enough")
    output, _ = reader.communicate(timeout=patience(300))
    equal(reader.returncode, 0, "exit status of the readers")
    lines = [json.loads(line) for line in output.splitlines()]
    equal(len(lines) % (20 * N), 0, f"{len(lines)} samples in whole runs")
    for begin in range(0, len(lines), 20 * N):
        check_sequence(lines[begin:begin + 20 * N], N, batch=4, epochs=20)
    equal(made.show("ActiveEnterTimestampMonotonic", "dataloaderd.socket"), started, "the socket stays during the upgrade")
    contains(made.inside("cat", "/etc/dataloaderd/dataloaderd.conf"), 'path = "/srv/d"')

    files = [line for line in dpkg(f"-L {' '.join(names)}").splitlines()
             if os.path.isfile(made.root + line)]
    equal(len(files) > 20, True, f"{len(files)} files")
    dpkg(f"-P {' '.join(names)}")
    left = [path for path in files if os.path.lexists(made.root + path)]
    left += [path for path in ("/etc/dataloaderd", "/var/cache/dataloaderd", "/run/dataloaderd") if made.inside(
        "sh", "-c", f"[ -e {path} ] && echo there || true").strip()]
    left += glob.glob(os.path.join(made.root, UNIT_LINKS))
    equal(left, [], "left after the purge")
    equal(made.systemctl("is-active", "dataloaderd.service", "dataloaderd.socket", check=False).split(), ["inactive"] * 2, "units")



SUDO = """#!/bin/sh
[ "$1" != apt-get ] || export DEBIAN_FRONTEND=noninteractive
exec "$@"
"""
EDIT = """#!/bin/sh
cp /opt/conf "$1"
"""
MAKE = """#!/bin/sh
[ "$*" = deb ] && mkdir -p build/deb && cp /opt/deb/*.deb build/deb/
"""


@case("README's commands for those who run nodes, as they stand there: packages, configuration, who may connect")
def _(box):
    chosen = [path for path in packages().values() if can_be_installed(path)]
    names = {os.path.basename(path).partition("_")[0] for path in chosen}
    if not {"dataloaderd", "libdlclient0"} <= names:
        raise Skip("what the packages depend on is not installed here")

    def put(made):
        policy = os.path.join(made.root, "usr/sbin/policy-rc.d")
        if os.path.lexists(policy):
            os.remove(policy)
        os.makedirs(os.path.join(made.root, "opt", "deb"))
        for path in chosen:
            shutil.copy(path, os.path.join(made.root, "opt", "deb"))
        write(os.path.join(made.root, "opt/conf"), CONFIG.encode())
        for name, text in (("sudo", SUDO), ("sudoedit", EDIT), ("make", MAKE)):
            write(os.path.join(made.root, "usr/local/sbin", name), text.encode())
            os.chmod(os.path.join(made.root, "usr/local/sbin", name), 0o755)

    made, source = machine(box, put, install=False)
    made.inside("useradd", "alice")
    path = "PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
    said = made.inside("env", path, "sh", "-euxc", "mkdir /opt/tree; cd /opt/tree\n" + block("README.md", "make deb"), seconds=600)
    contains(said, "serving", "/run/dataloaderd/dataloaderd.sock")
    output = made.inside("runuser", "-u", "alice", "--", "dlctl", "--format", "json", "read", "d")
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    check_sequence(lines, N)
    check_bytes(lines, samples_of(source))


main()
