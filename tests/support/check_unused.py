#!/usr/bin/env python3
"""Is each function of the product called by the product?  check_unused.py [ROOT]

What a header of proto, daemon or client declares and nothing but tests calls is built, read and kept alive for nothing:
it belongs to the tests, or it goes. Looked at are the sources alone, without comments: a declaration or a definition
begins in the first column of a line, a use does not, and neither does a name in a table or in _cleanup_().

The public header is for others, kernel.h is what kernels may be written with, and EXCEPTIONS says why of each further one. Prints file:line for each offence and ends with 1
if there is one; also if an exception is none any more.
"""
import collections
import os
import re
import sys

PRODUCT = ("proto", "daemon", "client")
PUBLIC = ("client/include/", "client/cuda/kernels/kernel.h")
EXCEPTIONS = {
    "fetcher_cancel": "the same, when nobody needs any more what is to be fetched",
}
DECLARED = re.compile(r"^(?!#|typedef|static_assert|_Static_assert)[A-Za-z_].*?\b([a-z_][a-z0-9_]*)\(")
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SYMBOL = re.compile(r"DLP_SYMBOL\(\w+\)|__attribute__\(\(.*?\)\)")


def sources(root):
    for top in PRODUCT:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".cu")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def without_comments(text):
    """The same lines, with blanks where comments and the contents of strings were."""
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"', lambda found: re.sub(r"[^\n]", " ", found.group()), text,
                  flags=re.S)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "..")
    declared, used = {}, collections.Counter()
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = without_comments(file.read())
        for number, line in enumerate(text.split("\n"), 1):
            line = SYMBOL.sub("", line)
            found = DECLARED.match(line)
            used.update(WORD.findall(line))
            if found:
                used[found[1]] -= 1
                if path.endswith(".h") and not path.startswith(PUBLIC):
                    declared.setdefault(found[1], f"{path}:{number}")
    offences = [(where, name) for name, where in declared.items() if used[name] <= 0 and name not in EXCEPTIONS]
    for where, name in sorted(offences):
        print(f"{where}: nothing but tests calls {name}(): it goes to the tests, or it goes")
    is_ours = len(sys.argv) < 2  # elsewhere none of them need be
    stale = [name for name in EXCEPTIONS if used[name] > 0 and name in declared or name not in declared and is_ours]
    for name in stale:
        print(f"{name} can be taken off the list of exceptions: the product calls it, or it is gone")
    print(f"unused: {len(declared)} functions, {len(offences)} offences")
    sys.exit(1 if offences or stale or not declared else 0)


if __name__ == "__main__":
    main()
