#!/usr/bin/env python3
"""Does a name stand once?  check_names.py [ROOT]

Whoever looks for a name finds one place: no two files of proto, daemon and client have the same name, and no two
functions. A function's name may stand again in two cases only:

  - the function implements a member of a struct of functions under the member's name (`.plan = plan`): one in the file of
    each kind of a family
  - the file stands in for another one on another machine or in another build (ALTERNATIVES), so that the two are never
    linked together

Looked at are the sources alone, without comments: a definition begins in the first column of a line. Prints file:line for
each offence and ends with 1 if there is one.
"""
import collections
import os
import re
import sys

from check_unused import sources, without_comments

ALTERNATIVES = re.compile(r"(_absent|_linked|_portable|neon|_avx2)\.c$|\.cu$|/vector_\w+\.h$|client/examples/")
DEFINED = re.compile(r"^(?!#|typedef|return|else|extern)(?:[A-Za-z_][\w*]*[ *]+)+\**([A-Za-z_]\w*)\([^;{}]*\)\s*\{", re.M)
ATTRIBUTE = re.compile(r"__attribute__\(\(.*?\)\)")


def definitions(text):
    text = ATTRIBUTE.sub("", text)
    for found in DEFINED.finditer(text):
        if not found[1].endswith("_loop"):  # the portable version of a function that AVX2_FUNCTION() declares
            yield found[1], text.count("\n", 0, found.start()) + 1


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "..")
    files, functions, offences = collections.defaultdict(list), collections.defaultdict(list), []
    for path in sources(root):
        files[os.path.basename(path)].append(path)
        if ALTERNATIVES.search(path):
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = without_comments(file.read())
        for name, line in definitions(text):
            if name != "main" and not re.search(rf"\.{name}\s*=\s*{name}\b", text):
                functions[name].append(f"{path}:{line}")
    for name, paths in sorted(files.items()):
        if len(paths) > 1:
            offences.append(f"{paths[1]}:1: there is a {paths[0]}: put its room's word before its name")
    for name, places in sorted(functions.items()):
        if len(set(place.split(":")[0] for place in places)) > 1:
            offences.append(f"{places[1]}: {name}() stands in {places[0]} as well: put its file's word before its name")
    for offence in offences:
        print(offence)
    print(f"names: {len(files)} files, {len(functions)} functions, {len(offences)} offences")
    sys.exit(1 if offences or not functions else 0)


if __name__ == "__main__":
    main()
