#!python
"""Runs the program of this name that lies in the package dlclient, which is not imported for that: it needs NumPy."""
import importlib.util
import os
import sys

NAME = os.path.basename(__file__)
package = importlib.util.find_spec("dlclient")
folders = package.submodule_search_locations if package else ()
for folder in folders:
    program = os.path.join(folder, "bin", NAME)
    if os.path.exists(program):
        try:
            os.execv(program, [program, *sys.argv[1:]])
        except OSError as error:
            sys.exit(f"{NAME}: {program} cannot be run: {error.strerror}")
sys.exit(f"{NAME}: the package dlclient of this Python ({sys.executable}) has no {NAME}; install dataloaderd's wheel again")
