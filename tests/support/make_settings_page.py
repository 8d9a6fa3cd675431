#!/usr/bin/env python3
"""Writes what the rows of settings say into dataloaderd.conf(5):  dataloaderd --print-config | make_settings_page.py PAGE

Each key has an entry of the page. It begins with what the commented configuration says of the key; what follows from
the entry's first .IP on is written by hand, and stays. A key without an entry gets one after the key before it.
"""
import re
import sys

KEY = re.compile(r"#(?: {4})?(\w+) = (.*)")
COMMENT = re.compile(r"#(?: {4}#)? (.*)")


def read_rows(text):
    """(key, default, sentences) of each key, in order."""
    words = []
    for line in text.split("\n"):
        key, comment = KEY.fullmatch(line), COMMENT.fullmatch(line)
        if key:
            yield key[1], key[2], re.split(r"(?<=\.) (?=[A-Z0-9\"])", " ".join(words))
        words = words + [comment[1]] if comment and not key else []


def escape(text):
    text = text.replace("\\", "\\e").replace('"', "\\(dq")
    return "\\&" + text if text[:1] in (".", "'") else text


def read_blocks(text):
    """The page, cut where entries and sections begin."""
    blocks, depth = [[]], 0
    for line in text.split("\n"):
        if depth == 0 and line.startswith((".TP", ".SH", ".SS")):
            blocks.append([])
        depth += line.startswith(".RS") - line.startswith(".RE")
        blocks[-1].append(line)
    return blocks


def key_of(block):
    found = re.match(r"\.BI? (\w+)", block[1]) if block[0] == ".TP" and " = " in block[1] else None
    return found[1] if found else None


def main():
    path = sys.argv[1]
    with open(path, encoding="utf-8") as file:
        blocks = read_blocks(file.read())
    at = 0
    for key, value, sentences in read_rows(sys.stdin.read()):
        places = [place for place, block in enumerate(blocks) if key_of(block) == key]
        if not places:
            blocks.insert(at + 1, [])
        at = places[0] if places else at + 1
        old = blocks[at]
        by_hand = old[old.index(".IP"):] if ".IP" in old else []
        blocks[at] = [".TP", f".B {key} = {escape(value)}"] + [escape(sentence) for sentence in sentences] + by_hand
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(line for block in blocks for line in block))


if __name__ == "__main__":
    main()
