#!/usr/bin/env python3
"""Packs the Python client and its library as a wheel: build_wheel.py LIBRARY FOLDER; prints the wheel's path.

A wheel is a zip file with a few files of metadata, so the standard library is enough. The platform's tag names the
glibc whose symbols the library uses; pip refuses the wheel where that is older. Two runs give the same bytes."""
import base64
import hashlib
import os
import platform
import re
import subprocess
import sys
import tomllib
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SONAME = "libdlclient.so.0"
ALLOWED = re.compile(r"libc\.so\.6|libm\.so\.6|ld-linux[\w-]*\.so\.\d|libpthread\.so\.0|libgcc_s\.so\.1")


def read(*parts):
    with open(os.path.join(*parts), "rb") as file:
        return file.read()


def version():
    return re.search(rb'__version__ = "([^"]+)"', read(HERE, "dlclient", "_version.py")).group(1).decode()


def platform_tag(library):
    """manylinux_2_X of the newest symbol; refuses a library that needs more than glibc."""
    text = subprocess.run(["objdump", "-p", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    foreign = [name for name in re.findall(r"NEEDED\s+(\S+)", text) if not ALLOWED.fullmatch(name)]
    if foreign:
        sys.exit(f"build_wheel: {library} needs {', '.join(foreign)}, which a wheel cannot count on")
    newest = max(int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", text))
    return f"manylinux_2_{max(newest, 17)}_{platform.machine()}"


def metadata(project):
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version()}",
             f"Summary: {project['description']}", f"License: {project['license']['text']}",
             f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {need}" for need in project["dependencies"]]
    lines += [f"Classifier: {name}" for name in project["classifiers"]]
    lines += ["Description-Content-Type: text/markdown", "", read(HERE, project["readme"]).decode()]
    return "\n".join(lines).encode()


def members(library, info, tag):
    """(name in the wheel, bytes, mode), without the record."""
    project = tomllib.loads(read(HERE, "pyproject.toml").decode())["project"]
    for name in sorted(os.listdir(os.path.join(HERE, "dlclient"))):
        if name.endswith((".py", ".typed")):
            yield f"dlclient/{name}", read(HERE, "dlclient", name), 0o644
    yield f"dlclient/{SONAME}", read(library), 0o755
    yield f"{info}/LICENSE", read(ROOT, "LICENSE"), 0o644
    yield f"{info}/METADATA", metadata(project), 0o644
    yield (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: dataloaderd {version()}\nRoot-Is-Purelib: false\n"
           f"Tag: py3-none-{tag}\n".encode(), 0o644)


def main():
    library, folder = sys.argv[1:]
    tag, info = platform_tag(library), f"dlclient-{version()}.dist-info"
    path = os.path.join(folder, f"dlclient-{version()}-py3-none-{tag}.whl")
    record = ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(name, data, mode):
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
        for name, data, mode in members(library, info, tag):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(data)}\n"
            add(name, data, mode)
        add(f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), 0o644)
    print(os.path.relpath(path))


main()
