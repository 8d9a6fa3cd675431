#!/usr/bin/env python3
"""The manual pages have what the kinds of steps say of themselves (tests/support/make_kinds_pages.py)."""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import BUILD, DLCTL, ROOT, case, contains, equal, main, patience, write

MAKER = os.path.join(ROOT, "tests", "support", "make_kinds_pages.py")
MADE = [os.path.join("client", "man"), os.path.join("client", "python", "dlclient", "_answers"), "docs"]  # folders with pages
PAGE = os.path.join("client", "man", "dataloaderd-pipeline.7")


def printed():
    done = subprocess.run([os.path.join(BUILD, "tools", "print_kinds")], check=True, stdout=subprocess.PIPE, timeout=patience(30))
    return json.loads(done.stdout)


def dlctl(*arguments, check=True):
    return subprocess.run([DLCTL, *arguments], check=check, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=patience(30))


def make(kinds, *arguments):
    return subprocess.run([sys.executable, MAKER, *arguments], input=json.dumps(kinds).encode(), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=patience(30))


@case("the pages are what the kinds say")
def _(box):
    done = make(printed(), "--check", ROOT)
    equal(done.stdout, b"")
    equal(done.returncode, 0)


@case("dlctl help says what the kinds say, and lists all of them")
def _(box):
    kinds = printed()
    done = subprocess.run([sys.executable, os.path.join(os.path.dirname(MAKER), "make_kinds_help.py")], check=True,
                          input=json.dumps(kinds), stdout=subprocess.PIPE, text=True, timeout=patience(30))
    with open(os.path.join(ROOT, "client", "dlctl", "generated", "kinds_rows.h"), encoding="utf-8") as file:
        equal(file.read(), done.stdout, "kinds_rows.h: make kinds-pages")
    listed = dlctl("help").stdout.split()
    equal([kind["name"] for family in kinds for kind in family["kinds"] if kind["name"] not in listed], [], "not listed")
    normalize = [json.loads(line) for line in dlctl("--format", "json", "help", "normalize").stdout.splitlines()]
    equal([one["of"] for one in normalize], ["Steps for pictures", "Steps for sound"])
    contains(dlctl("help", "clahe").stdout, "Example: clahe(")
    contains(dlctl("help", "read").stdout, "Usage: dlctl read")
    unknown = dlctl("help", "clahee", check=False)
    equal(unknown.returncode, 1)
    contains(unknown.stderr, 'did you mean "clahe"')


@case("a kind that changes and one that is new are seen, and what is written by hand stays")
def _(box):
    folder = box.path("pages")
    for made in MADE:
        shutil.copytree(os.path.join(ROOT, made), os.path.join(folder, made))
    kinds = printed()
    pictures = next(family["kinds"] for family in kinds if family["family"] == "pictures")
    next(kind for kind in pictures if kind["name"] == "hflip")["doc"] = "Mirrors `p` of them."
    doc = "Does `this`.\n\n- `A`, `low`: One.\n\n.And that."
    pictures.append({"name": "brand_new", "example": "brand_new()", "doc": doc, "arguments": [
        {"name": "low", "type": "number", "default": "-1", "is_optional": False},
        {"name": "fill", "type": "list", "form": "N", "is_optional": True}]})
    next(family["kinds"] for family in kinds if family["family"] == "formats").append(
        {"name": "brand", "doc": "Files of a brand.", "example": 'path = "/brand"', "keys": ["b", "a"]})
    equal(make(kinds, "--check", folder).returncode, 1)
    with open(os.path.join(folder, PAGE), encoding="utf-8") as file:
        before = file.read()
    equal(make(kinds, folder).returncode, 0)
    with open(os.path.join(folder, PAGE), encoding="utf-8") as file:
        after = file.read()
    mirrors = "RandomHorizontalFlip: mirrors \\fIp\\fP of them.\n"
    contains(after, mirrors)
    new = '.TP\n.B brand_new(low=\\-1, fill=N)\nDoes \\fBthis\\fP.\n' \
          '.RS\n.IP "\\fBA\\fP, \\fIlow\\fP"\nOne.\n.RE\n.IP\n\\&.And that.\n'
    contains(after, new)
    old = before[before.index("RandomHorizontalFlip: "):]
    equal(after.replace(new, "").replace(mirrors, old[:old.index("\n") + 1]), before)
    with open(os.path.join(folder, "client", "man", "dataloaderd-datasets.7"), encoding="utf-8") as file:
        contains(file.read(), ".SS brand\nFiles of a brand.\nKeys: \\fBa\\fP, \\fBb\\fP.\nExample: ")


@case("each kind says what it does, and its example is of itself")
def _(box):
    for family in printed():
        for kind in family["kinds"]:
            doc, example = kind.get("doc", ""), kind.get("example", "")
            equal(doc[-1:], ".", f"the end of what {kind['name']} says")
            equal(doc.count("`") % 2, 0, f"{kind['name']}: backticks that are left alone")
            equal(example.startswith(kind["name"]) or family["family"] == "formats", True, f"{kind['name']}: {example}")


@case("the example of each format is a dataset of the configuration")
def _(box):
    for kind in next(family["kinds"] for family in printed() if family["family"] == "formats"):
        config = box.path(f"{kind['name']}.conf")
        write(config, f'dataset "x" {{ {kind["example"]} }}\n'.encode())
        done = subprocess.run([os.path.join(BUILD, "dataloaderd"), "--check-config", "-c", config], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=patience(30))
        equal(done.returncode, 0, f"{kind['name']}: {done.stdout}")


main()
