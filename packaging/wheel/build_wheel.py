#!/usr/bin/env python3
"""Packs the Python client, libdlclient and the programs as a wheel: build_wheel.py BUILT FOLDER; prints the wheel's path.

BUILT has libdlclient.so.0 and bin/, as make linked them. The shared libraries that the programs need beyond glibc come
from this machine and go into dlclient/lib. A wheel is a zip file with a few files of metadata, so the standard library is
enough. The platform's tag names the glibc whose symbols the files use; pip refuses the wheel where that is older. Two
runs give the same bytes."""
import base64
import functools
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
CLIENT = os.path.join(ROOT, "client", "python")
SONAME = "libdlclient.so.0"
LIBRARIES = (SONAME, "libdlclient-cuda.so.0")  # the second one needs the first, which Python has loaded before
NEWEST_GLIBC = 34  # of Ubuntu 21.10 and RHEL 9; Debian 12 has 2.36
# What every Linux with glibc has. libgcc_s is what glibc itself loads to unwind.
SYSTEM = re.compile(r"libc\.so\.6|libm\.so\.6|ld-linux[\w-]*\.so\.\d|libgcc_s\.so\.1")


def read(*parts):
    with open(os.path.join(*parts), "rb") as file:
        return file.read()


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def refuse(text):
    sys.exit(f"build_wheel: {text}")


@functools.lru_cache()
def version():
    """With the commit: a wheel of a later one is another version."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(["make", "-s", "--no-print-directory", "-C", ROOT, "version"], check=True, stdout=subprocess.PIPE,
                          text=True, env=environment)
    return done.stdout.strip()


# ---- what the files need -------------------------------------------------------------------------------------------

def needed(path):
    return [name for name in re.findall(r"NEEDED\s+(\S+)", output("objdump", "-p", path)) if not SYSTEM.fullmatch(name)]


def library_path(name):
    """Where the compiler would find a shared library, by its soname."""
    path = output(os.environ.get("CC", "gcc").split()[-1], f"-print-file-name={name}").strip()
    if not os.path.isabs(path):
        refuse(f"{name} is needed and not to be found; install what packages.list names, or link it statically (wheel.mk)")
    return os.path.realpath(path)


def carried(programs):
    """The shared libraries to pack, {soname: path}: what programs need, and what that needs."""
    libraries, ahead = {}, [name for program in programs for name in needed(program)]
    while ahead:
        name = ahead.pop()
        if name not in libraries:
            libraries[name] = library_path(name)
            ahead += needed(libraries[name])
    return dict(sorted(libraries.items()))


def platform_tag(paths):
    """manylinux_2_X of the newest glibc that a file needs; what is newer than we promise ends the build."""
    newest = 17
    for path in paths:
        for minor, symbol in re.findall(r"\(?GLIBC_2\.(\d+)\S*\s+(\S+)", output("objdump", "-T", path)):
            newest = max(newest, int(minor))
            if int(minor) > NEWEST_GLIBC:
                refuse(f"{path} needs {symbol} of glibc 2.{minor}, and the wheel is for 2.{NEWEST_GLIBC}: do without it, "
                       "or write it in packaging/wheel/glibc.c")
    return f"manylinux_2_{newest}_{platform.machine()}"


# ---- licences ------------------------------------------------------------------------------------------------------

def archives(built):
    """The archives of the system that were linked into the programs, as the linker listed them."""
    found = set()
    for name in sorted(os.listdir(os.path.join(built, "bin"))):
        text = read(built, f"{name}.archives").decode()
        found |= {os.path.realpath(path) for path in re.findall(r"^(/\S+\.a)(?=\(|\s|$)", text, re.MULTILINE)}
    return sorted(found)


def package_of(path):
    """Debian's package of a library, (package, version)."""
    for place in (path, re.sub("^/usr/lib/", "/lib/", path)):
        done = subprocess.run(["dpkg-query", "-S", place], check=False, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.DEVNULL)
        if done.returncode == 0:
            package = done.stdout.rpartition(": ")[0]
            return package.partition(":")[0], output("dpkg-query", "-W", "-f", "${Version}", package)
    return refuse(f"no package of this machine has {path}, so its licence is not known")


def licences(info, static, shared):
    """A list of what is inside, and the licence of each."""
    lines, texts = [], {}
    for kind, paths in (("linked into the programs", static), ("dlclient/lib, replaceable", shared)):
        for path in paths:
            package, its_version = package_of(path)
            text = f"/usr/share/doc/{package}/copyright"
            if not os.path.exists(text):
                refuse(f"{text} is missing: install {package} again, with its documents")
            texts[f"{info}/licenses/{package}.txt"] = read(text)
            lines.append(f"{os.path.basename(path)}: {package} {its_version}, {kind}; {package}.txt")
    head = "Libraries of Debian inside this wheel; their sources are Debian's source packages of these versions.\n\n"
    yield f"{info}/licenses/LIBRARIES.txt", (head + "\n".join(lines) + "\n").encode(), 0o644
    for name, text in sorted(texts.items()):
        yield name, text, 0o644


# ---- the wheel -----------------------------------------------------------------------------------------------------

def metadata(project):
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version()}",
             f"Summary: {project['description']}", f"License: {project['license']['text']}",
             f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {need}" for need in project["dependencies"]]
    lines += [f"Classifier: {name}" for name in project["classifiers"]]
    lines += ["Description-Content-Type: text/markdown", "", read(CLIENT, project["readme"]).decode()]
    return "\n".join(lines).encode()


def members(built, info, tag, shared):
    """(name in the wheel, bytes, mode), without the record."""
    project = tomllib.loads(read(CLIENT, "pyproject.toml").decode())["project"]
    for folder, folders, names in os.walk(os.path.join(CLIENT, "dlclient")):
        folders.sort()
        for name in sorted(names):
            if name.endswith((".py", ".typed")):
                data = read(folder, name)
                if name == "_version.py":
                    data = re.sub(rb'(?<=__version__ = ")[^"]+', version().encode(), data)
                yield os.path.relpath(os.path.join(folder, name), CLIENT), data, 0o644
    for name in LIBRARIES:
        yield f"dlclient/{name}", read(built, name), 0o755
    for name in sorted(os.listdir(os.path.join(built, "bin"))):
        yield f"dlclient/bin/{name}", read(built, "bin", name), 0o755
        yield f"dlclient-{version()}.data/scripts/{name}", read(HERE, "script.py"), 0o755
    for name, path in shared.items():
        yield f"dlclient/lib/{name}", read(path), 0o755
    yield f"{info}/licenses/LICENSE", read(ROOT, "LICENSE"), 0o644
    yield from licences(info, archives(built), shared.values())
    yield f"{info}/METADATA", metadata(project), 0o644
    yield (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: dataloaderd {version()}\nRoot-Is-Purelib: false\n"
           f"Tag: py3-none-{tag}\n".encode(), 0o644)


def main():
    built, folder = sys.argv[1:]
    programs = [os.path.join(built, "bin", name) for name in sorted(os.listdir(os.path.join(built, "bin")))]
    libraries = [os.path.join(built, name) for name in LIBRARIES]
    for library in libraries:
        others = [name for name in needed(library) if name != SONAME]
        if others:
            refuse(f"{library} needs {', '.join(others)}: Python loads it without a path to dlclient/lib")
    shared = carried(programs)
    tag = platform_tag([*programs, *libraries, *shared.values()])
    info = f"dlclient-{version()}.dist-info"
    path = os.path.join(folder, f"dlclient-{version()}-py3-none-{tag}.whl")
    record = ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(name, data, mode):
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
        for name, data, mode in members(built, info, tag, shared):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(data)}\n"
            add(name, data, mode)
        add(f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), 0o644)
    print(os.path.relpath(path))


main()
