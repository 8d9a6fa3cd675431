"""A document that people and programs write together: blocks between markers are a program's, all else is left alone.

    <!-- generated: NAME -->
    ...
    <!-- end: NAME -->
"""
import os
import re


class BadMarkers(Exception):
    """A block's markers are missing, twice there, or crossed."""


def replaced(text, name, body):
    """The document with this block's lines."""
    begin, end = f"<!-- generated: {name} -->", f"<!-- end: {name} -->"
    lines = text.split("\n")
    if lines.count(begin) != 1 or lines.count(end) != 1:
        raise BadMarkers(f"{name}: the lines {begin!r} and {end!r} must be there once each")
    first, last = lines.index(begin), lines.index(end)
    between = lines[first + 1:last]
    if last < first or any(re.match(r"<!-- (generated|end): ", line) for line in between):
        raise BadMarkers(f"{name}: its markers are crossed with others")
    return "\n".join(lines[:first + 1] + body.strip("\n").split("\n") + lines[last:])


def write(path, blocks):
    """All of these blocks or none: the file is renamed into its place."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for name, body in blocks.items():
        text = replaced(text, name, body)
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".new", path)


def table(head, rows):
    """Markdown; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
