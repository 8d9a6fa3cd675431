#!/usr/bin/env python3
"""Writes what `dlctl help` says of kinds, as rows for the compiler: print_kinds | make_kinds_help.py > kinds_rows.h"""
import json
import sys
import textwrap

from make_kinds_pages import signature

WIDTH = 79  # of a terminal's line
PAGES = {"samplers": "dataloaderd-samplers(7)", "formats": "dataloaderd-datasets(7)", "preparation": "dataloaderd-stage(8)"}


def wrapped(text, begin="", rest=""):
    return textwrap.fill(text, WIDTH, initial_indent=begin, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)


def argument_line(argument, width):
    what = argument["allowed"]
    default = argument.get("default") or argument.get("left_out")
    if default:
        what += f"; default {default}"
    elif argument["is_optional"]:
        what += "; may be left out"
    return wrapped(what, f"  {argument['name']:{width}}  ", " " * (width + 4))


def kind_text(family, kind):
    """A head, paragraphs, a line for each argument, an example, and where more is said."""
    head = kind["name"] if family == "formats" else signature(kind).replace("\\-", "-").replace("\\e", "\\")
    parts = [wrapped(head, rest="    ")]
    for text in kind["doc"].split("\n\n"):
        parts.append(wrapped(text.replace("`", ""), rest="  " if text.startswith("- ") else ""))
    arguments = kind.get("arguments", [])
    if arguments:
        width = max(len(argument["name"]) for argument in arguments)
        parts.append("\n".join(argument_line(argument, width) for argument in arguments))
    if kind.get("keys"):
        parts.append("Keys: " + ", ".join(sorted(kind["keys"])))
    example = f"dataset \"x\" {{ {kind['example']} }}" if family == "formats" else kind["example"]
    last = f"Example: {example}\n" + (f"Does the same: {kind['like']}\n" if "like" in kind else "")
    return "\n\n".join(parts) + f"\n\n{last}More: {PAGES.get(family, 'dataloaderd-pipeline(7)')}\n"


def literal(line):
    return '"' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"'


def main():
    print("/* What `dlctl help` says of each kind, by family and name: made by `make kinds-pages`. */\n/* clang-format off */")
    for family in json.load(sys.stdin):
        for kind in sorted(family["kinds"], key=lambda kind: kind["name"]):
            lines = "\n     ".join(map(literal, kind_text(family["family"], kind)[:-1].split("\n")))
            print(f"KIND({family['family']}, \"{kind['name']}\",\n     {lines})")


main()
