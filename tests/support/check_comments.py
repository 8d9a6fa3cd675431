#!/usr/bin/env python3
"""Are comments whole, and where they belong?  check_comments.py [ROOT]

A formatter flows a comment's lines together when it takes a list or a table for prose, and it says nothing. This finds what it leaves:

- an indented line, and right after it, in the same paragraph, one that is not indented;
- three blanks or more within a line that is not indented: columns that have lost their line;
- a comment right after another one: what stood between them has been moved, or it describes something else;
- a comment of a #define that was broken with backslashes.

It also finds names of files that are not in the tree.

A list is safe if a line of its comment is indented by more than a blank (.clang-format, CommentPragmas). Prints file:line for each and ends
with 1 if there is one.
"""
import os
import re
import sys

PATH = re.compile(r'(?<![\w/.<>"-])((?:[a-z_0-9]+/)*[a-z_0-9]+\.(?:h|c|cu|py))\b(?![\w/])')
FROM = ("", "daemon/", "client/", "client/python/", "client/python/dlclient/", "client/cuda/", "client/dlctl/", "proto/", "tests/",
        "tests/support/", "daemon/data/", "daemon/augment/", "daemon/staging/")
FOREIGN = {"sysexits.h", "jpeglib.h", "negative.c"}  # of the system, of a library, of an example

TOPS = ("proto", "daemon", "client", "tests/support", "tests/unit", "tests/fuzz", "tests/faults", "tests/cuda", "tests/tools")
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|(/\*.*?\*/)', re.S)
RULE = re.compile(r"^/\* (?:-{4,}|clang-format o)")  # a heading within a file, a word to the formatter
QUOTED = re.compile(r'"[^"]*"|\[[^\]]*\]')


def lines_of(comment):
    """Its lines without the frame, each with the blanks that it begins with."""
    for i, line in enumerate(comment[2:-2].split("\n")):
        yield line if i == 0 else re.sub(r"^\s*\*? ?", " ", line) if not re.match(r"^\s*\*", line) else re.sub(r"^\s*\*", "", line)


class Files:
    def __init__(self, root):
        self.paths, self.names = set(), set(FOREIGN)
        for top in ("daemon", "client", "proto", "tests", "packaging", "docs", "systemd"):
            for folder, _, names in os.walk(os.path.join(root, top)):
                self.names |= set(names)
                self.paths |= {os.path.relpath(os.path.join(folder, name), root) for name in names}

    def has(self, name, path):
        if "/" not in name:
            return name in self.names
        folders = ["/".join(path.split("/")[:n]) + "/" for n in range(1, path.count("/") + 1)]
        return any(start + name in self.paths for start in (*FROM, *folders))


def offences_of(text, path, files):
    previous_end = None
    for match in COMMENT.finditer(text):
        comment = match.group(1)
        if not comment:
            continue
        number = text.count("\n", 0, match.start()) + 1
        for named in PATH.finditer(comment):
            if not files.has(named.group(1), path):
                yield number + comment.count("\n", 0, named.start()), f"{named.group(1)} is not in the tree"
        begins_line = text[text.rfind("\n", 0, match.start()) + 1:match.start()].strip() == ""
        if begins_line and previous_end is not None and not RULE.match(comment) and re.fullmatch(r"\n[ \t]*", text[previous_end:match.start()]):
            yield number, "right after another comment: which declaration is the first one of?"
        previous_end = match.end() if begins_line and not RULE.match(comment) and text[match.end():match.end() + 1] == "\n" else None
        if "\\\n" in comment and text[:match.start()].rpartition("\n")[0].endswith("\\"):
            yield number, "broken with backslashes: put it above the #define"
        indented = False
        for i, line in enumerate(lines_of(comment)):
            body = line.rstrip()
            if not body.strip():
                indented = False
                continue
            deep = len(body) - len(body.lstrip()) > 2
            if i > 0 and indented and not deep:
                yield number + i, "not indented, after a line that is: a list that was flowed together?"
            if not deep and re.search(r"\S {3,}\S", QUOTED.sub("x", body)):
                yield number + i, "columns within a line: a table that was flowed together?"
            indented = deep and i > 0


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    files = Files(root)
    n_files = n_offences = 0
    for top in TOPS:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(names):
                if not name.endswith((".c", ".h", ".cu", ".cuh")):
                    continue
                path = os.path.relpath(os.path.join(folder, name), root)
                with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
                    text = file.read()
                n_files += 1
                for number, what in offences_of(text, path, files):
                    print(f"{path}:{number}: {what}")
                    n_offences += 1
    print(f"{n_files} files, {n_offences} comments that are broken or name what is not there")
    return 1 if n_offences or not n_files else 0


if __name__ == "__main__":
    sys.exit(main())
