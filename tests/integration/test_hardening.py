#!/usr/bin/env python3
"""What is installed was built hard: position-independent, nothing writable that is executable or need not be, and with checks of
the stack and of copies. Read from the built files, so that a flag that is lost on the way is seen."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import BUILD, VARIANT, Skip, Table, case, contains, equal, main

PROGRAMS = ("dataloaderd", "dataloaderd-stage", "dlctl", "libdlclient.so.0")


def readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], check=True, stdout=subprocess.PIPE, text=True, timeout=300).stdout


@case("programs and library are position-independent, bound at the start, without an executable stack, and checked")
def _(box):
    if VARIANT not in ("release", "fallback"):
        raise Skip(f"{VARIANT} is not what is installed")
    if shutil.which("readelf") is None:
        raise Skip("readelf is not installed (binutils)")
    table = Table()
    for name in PROGRAMS:
        path = os.path.join(BUILD, name)
        if not os.path.exists(path):
            continue
        with table.row(name):
            contains(readelf(path, "-h"), "DYN (")
            segments = readelf(path, "-l").splitlines()
            stack = [line for line in segments if "GNU_STACK" in line]
            equal([("RWE" in line, " E " in line) for line in stack], [(False, False)], "an executable stack")
            equal(sum("GNU_RELRO" in line for line in segments), 1, "RELRO")
            equal(any("LOAD" in line and "RWE" in line for line in segments), False, "memory to write and execute")
            dynamic = readelf(path, "-d")
            contains(dynamic, "BIND_NOW", "Flags: NOW")
            equal("TEXTREL" in dynamic, False, "relocations of code")
            if not name.startswith("lib"):
                contains(dynamic, "PIE")
            symbols = readelf(path, "--dyn-syms")
            contains(symbols, "__stack_chk_fail", "snprintf_chk")
    table.done()


main()
