"""python -m dlclient: which versions are here, which daemon serves this user, which frameworks, and what is missing.
Nothing is started for the answer, and no framework is imported."""
from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import os
import platform
import sys
from typing import List, NamedTuple, Tuple

from . import _library
from ._errors import Error, error_of
from ._version import __version__

FRAMEWORKS = ("numpy", "torch", "jax", "tensorflow")


def main() -> int:
    """0: a loader with a path can be served; 3: it cannot; 1: the library is missing."""
    row("dlclient", f"{__version__}, {os.path.dirname(os.path.abspath(__file__))}")
    row("python", f"{platform.python_version()}, {sys.executable}")
    try:
        library = _library.load()
        row("library", f"libdlclient {library.version_text}, {library.path}")
        missing, can_serve = daemons(library)
    except Error as error:
        row("library", "not found")
        row("missing", str(error))
        return 1
    row("frameworks", frameworks())
    for sentence in missing or ["nothing"]:
        row("missing", sentence)
    return 0 if can_serve else 3


def row(name: str, *lines: str) -> None:
    for line in lines:
        print(f"{name:<16}{line}")
        name = ""


# ---- daemons

class Daemon(NamedTuple):
    """A daemon that answers, or why none does."""

    absence: str
    socket: str
    log: str
    program: str
    serves_paths: bool
    summary: str

    def rows(self) -> List[str]:
        return [self.summary, f"socket {self.socket}"] + ([f"log    {self.log}"] if self.log else [])


def ask(library: _library.Library, is_private: bool) -> Daemon:
    found = _library.Daemon()
    result = library.get_daemon(is_private, ctypes.byref(found), ctypes.sizeof(found))
    if result < 0:
        raise error_of(result, library.error_text())
    summary = (f"runs: pid {found.pid}, dataloaderd {_library.text_of(found.version)}, for "
               f"{duration(found.up_seconds)}; {counted(found.n_datasets, 'dataset')}, {counted(found.n_jobs, 'job')}")
    return Daemon(_library.text_of(found.absence), _library.text_of(found.socket), _library.text_of(found.log),
                  _library.text_of(found.program), bool(found.serves_paths), summary)


def daemons(library: _library.Library) -> Tuple[List[str], bool]:
    """Shows them. Returns what is missing, and whether a loader with a path can be served."""
    named = os.environ.get("DATALOADERD_SOCKET")
    node = ask(library, False)
    if named:
        row("daemon", *(node.rows() if not node.absence else [f"none: {node.absence}"]))
        row("", "DATALOADERD_SOCKET names it: all loaders ask it, and no private daemon is started")
        if node.absence:
            return [f"a daemon at {named}: start it there, or unset DATALOADERD_SOCKET for a private one"], False
        if not node.serves_paths:
            row("", "serves the datasets of its configuration, by name; no paths of this user")
        return [], True
    missing, can_serve = private(library)
    absence = node.absence if node.absence.startswith("no permission") else f"none at {node.socket}"
    row("system daemon", *(node.rows() if not node.absence else [
        f"{absence}; only Loader(\"NAME\"), for datasets of a configuration, needs it"]))
    if not node.absence and node.serves_paths:
        row("", "serves this user's paths too, so that no private daemon is started")
        return [], True
    return missing, can_serve


def private(library: _library.Library) -> Tuple[List[str], bool]:
    daemon = ask(library, True)
    if not daemon.absence:
        row("private daemon", *daemon.rows(), "it ends when nobody has needed it for ten minutes, or with `dlctl stop`")
        return [], True
    if not daemon.socket or not daemon.program:
        row("private daemon", "none runs, and none can be started")
        return [daemon.absence], False
    row("private daemon", "none runs; one starts with the first Loader(path), such as Loader(\"/data/photos\")",
        f"program {daemon.program}", f"log     {daemon.log}")
    return [], True


def counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def duration(seconds: int) -> str:
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            return counted(seconds // length, unit)
    return counted(seconds, "second")


# ---- frameworks

def frameworks() -> str:
    found, absent = [], []
    for name in FRAMEWORKS:
        if importlib.util.find_spec(name) is None:
            absent.append(name)
            continue
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:  # a package of another name, such as tensorflow-cpu
            found.append(name)
    return ", ".join(found) + (f"; not installed: {', '.join(absent)}" if absent else "")


if __name__ == "__main__":
    sys.exit(main())
