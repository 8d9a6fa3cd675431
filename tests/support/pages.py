"""The fenced blocks of README and of the pages of docs/, for the tests that run them.

A test takes a block by its page and by words that it begins with:

    script = block("README.md", "make deb")

test_readme.py looks for such calls: a block of its PAGES that no test takes has to be in its list, with the reason."""
import os
import re

from harness import ROOT

FENCE = re.compile(r"^```([a-z]*)\n(.*?)^```$", re.M | re.S)


def text_of(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return file.read()


def blocks(page):
    """(language, text) of each fenced block, in their sequence."""
    return FENCE.findall(text_of(page))


def block(page, begin):
    """The text of the one block that begins so."""
    found = [text for _, text in blocks(page) if text.startswith(begin)]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} blocks of {page} begin with {begin!r}")
    return found[0]


def halves(diff):
    """The programs before and after a block of a difference."""
    lines = [(line[:1], line[1:]) for line in diff.splitlines()]
    return tuple("\n".join(line for sign, line in lines if sign != other) + "\n" for other in "+-")
