#!/usr/bin/env python3
"""Lines reached, by floor: coverage.py BUILD. Reads what gcov says of every object of a --coverage build."""
import collections
import json
import os
import subprocess
import sys


def lines_of(build):
    """(file, line) -> was it reached, over all objects: headers are in many of them."""
    reached = collections.defaultdict(bool)
    for folder, _, files in os.walk(build):
        for name in files:
            if not name.endswith(".gcda"):
                continue
            done = subprocess.run(["gcov", "--json-format", "--stdout", os.path.join(folder, name)], check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            for text in done.stdout.splitlines():
                for source in json.loads(text)["files"]:
                    path = os.path.relpath(source["file"])
                    if path.startswith(("proto/", "daemon/", "client/")):
                        for line in source["lines"]:
                            reached[path, line["line_number"]] |= line["count"] > 0
    return reached


def main():
    reached = lines_of(sys.argv[1])
    by_file = collections.defaultdict(lambda: [0, 0])
    for (path, _), hit in reached.items():
        by_file[path][0] += hit
        by_file[path][1] += 1
    floors = collections.defaultdict(lambda: [0, 0])
    for path, (n_hit, n_all) in sorted(by_file.items()):
        print(f"{n_hit:6d} of {n_all:6d}  {100 * n_hit / n_all:5.1f} %  {path}")
        for floor in (os.path.dirname(path), "all"):
            floors[floor][0] += n_hit
            floors[floor][1] += n_all
    print()
    for floor, (n_hit, n_all) in sorted(floors.items()):
        print(f"{n_hit:6d} of {n_all:6d}  {100 * n_hit / n_all:5.1f} %  {floor}")


if __name__ == "__main__":
    main()
