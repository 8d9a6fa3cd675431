#!/usr/bin/env python3
"""The units: well-formed to systemd's eyes, hardened, and of one mind with the rest of the tree."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, Skip, case, contains, equal, main

UNITS = os.path.join(ROOT, "systemd")
SERVICE, SOCKET, STAGE = NAMES = "dataloaderd.service", "dataloaderd.socket", "dataloaderd-stage@.service"
THRESHOLDS = {SERVICE: 30, STAGE: 30}  # of 100, as systemd-analyze counts exposure


def copy_units(box):
    """The units in a folder of the box, their program replaced by one that is there: verify wants it executable."""
    if not shutil.which("systemd-analyze"):
        raise Skip("systemd-analyze is not installed")
    folder = box.path("units")
    os.makedirs(folder)
    for name in NAMES:
        with open(os.path.join(UNITS, name), encoding="utf-8") as unit:
            text = re.sub("/usr/sbin/dataloaderd(-stage)?", "/bin/true", unit.read())
        if not os.path.exists("/bin/kill"):  # of procps, which a container may lack
            text = text.replace("/bin/kill", "/bin/true")
        with open(os.path.join(folder, name), "w", encoding="utf-8") as unit:
            unit.write(text)
    return folder


def run(*command):
    return subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, timeout=300)


def verify(folder):
    return run("systemd-analyze", "verify", "--recursive-errors=yes", "--man=no",
               *(os.path.join(folder, name) for name in NAMES))


@case("systemd-analyze verify finds nothing to remark, and would find a wrong key")
def _(box):
    folder = copy_units(box)
    done = verify(folder)
    equal((done.returncode, ours(done.stdout)), (0, ""), f"verify: {done.stdout}")
    for name in (SERVICE, STAGE):
        with open(os.path.join(folder, name), "a", encoding="utf-8") as unit:
            unit.write(f"[Service]\nProtectSistem={name}\n")
    found = verify(folder).stdout
    equal([line.count("ProtectSistem") for line in found.splitlines() if "ProtectSistem" in line], [1, 1], found)


def ours(output):
    """Lines about our units; a machine's own units may be of any quality."""
    return "\n".join(line for line in output.splitlines() if "dataloaderd" in line)


@case("systemd-analyze security finds the services hardened")
def _(box):
    folder = copy_units(box)
    for name, threshold in THRESHOLDS.items():
        done = run("systemd-analyze", "security", "--offline=true", f"--threshold={threshold}",
                   os.path.join(folder, name))
        equal(done.returncode, 0, done.stdout[-300:])
        contains(done.stdout, "Overall exposure level")


@case("unit, socket, users and folders name the same user, paths and files")
def _(box):
    texts = {name: open(os.path.join(UNITS, name), encoding="utf-8").read() for name in os.listdir(UNITS)
             if name.startswith("dataloaderd.")}
    equal(sorted(texts), ["dataloaderd.service", "dataloaderd.socket", "dataloaderd.sysusers", "dataloaderd.tmpfiles"],
          "files")
    service = texts["dataloaderd.service"]
    for key, value in (("Type", "notify"), ("User", "dataloaderd"), ("LimitMEMLOCK", "infinity"),
                       ("MemoryDenyWriteExecute", "yes"), ("RestrictAddressFamilies", "AF_UNIX"),
                       ("NoNewPrivileges", "yes"), ("ProtectSystem", "strict"), ("CacheDirectory", "dataloaderd"),
                       ("Restart", "on-failure"), ("SystemCallFilter", "@system-service"),
                       ("MemoryMax", "80%"), ("TasksMax", "4096")):
        equal(re.findall(rf"^{key}=(.*)$", service, re.M), [value], key)
    with open(os.path.join(ROOT, "proto", "frame.c"), encoding="utf-8") as source:
        well_known = re.search(r'"(/run/[^"]+)"', source.read()).group(1)
    contains(texts["dataloaderd.socket"], f"ListenSequentialPacket={well_known}\n")
    contains(texts["dataloaderd.sysusers"], "u dataloaderd ")
    contains(texts["dataloaderd.tmpfiles"], os.path.dirname(well_known), "/var/cache/dataloaderd")


@case("the unit's status codes are the daemon's own")
def _(box):
    for name in (SERVICE, STAGE):
        with open(os.path.join(UNITS, name), encoding="utf-8") as unit:
            contains(unit.read(), "RestartPreventExitStatus=64 78")


@case("a staging can hang for so long and no longer, may take any time while it is at work, and runs as the daemon's user")
def _(_box):
    with open(os.path.join(UNITS, STAGE), encoding="utf-8") as unit:
        text = unit.read()
    for key, value in (("Type", "oneshot"), ("NotifyAccess", "all"), ("User", "dataloaderd"), ("KillMode", "mixed"),
                       ("TimeoutStopSec", "5"), ("Restart", "on-failure"), ("ProtectSystem", "full")):
        equal(re.findall(rf"^{key}=(.*)$", text, re.M), [value], key)
    seconds = int(re.search(r"^TimeoutStartSec=(\d+)$", text, re.M).group(1))
    with open(os.path.join(ROOT, "daemon", "staging", "run", "stage_report.c"), encoding="utf-8") as source:
        extension = int(re.search(r"#define EXTEND_US +(\d+)", source.read()).group(1))
    equal(1000000 < extension < seconds * 1000000, True, "each second's word gives more than a second")


main()
