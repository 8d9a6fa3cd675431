#!/usr/bin/env python3
"""Writes what kinds say of themselves into the manual pages:  print_kinds | make_kinds_pages.py [--check] FOLDER

An entry of a section of SECTIONS is its kind's arguments with their defaults, the class that does the same elsewhere, the
kind's paragraphs, in which a word in `backticks` is code, and perhaps its example. What is between the entries, and the entries
of BY_HAND, are written by hand. A kind without an entry gets one after the last one of its section. With --check nothing is
written: 1 if something would be.
"""
import json
import os
import re
import sys
import textwrap

# Page, what the section begins with, family, whether the example is shown: signatures of samplers say little of their values.
SECTIONS = (("dataloaderd-pipeline.7", ".SS Steps for sound", "sounds", False),
            ("dataloaderd-pipeline.7", ".SS Steps for pictures", "pictures", False),
            ("dataloaderd-samplers.7", ".SH SAMPLERS", "samplers", True))
BY_HAND = {"decode", "raw", "mix", "pack"}  # they have lists, or are not written with all of their arguments
ENTRY = re.compile(r"^\.TP\n\.BI? \"?(\w+)[^\n]*\n(?:(?!\.TP\n|\.SS |\.SH |\.PP\n).*\n)*", re.M)


def escape(text):
    return text.replace("\\", "\\e").replace("-", "\\-")


def signature(kind):
    """As tests/unit/test_documents.c wants it: resize(size, interpolation=bilinear, max=N)."""
    arguments = []
    for argument in kind["arguments"]:
        value = argument.get("form") if argument["is_optional"] else argument.get("default")
        arguments.append(argument["name"] + (f"={value}" if value else ""))
    is_bare = not arguments and not kind.get("example", "").endswith("()")
    return escape(kind["name"] + ("" if is_bare else f"({', '.join(arguments)})"))


def origin(like):
    """ "Resize: ", "OneOf of Albumentations: ", "functional.gain: " """
    module, _, name = like.rpartition(".")
    return {"torchvision.transforms.v2": f"{name}: ", "albumentations": f"{name} of Albumentations: ",
            "torchaudio.transforms": f"{name}: ", "torchaudio.functional": f"functional.{name}: "}.get(module, "")


def lowered(text):
    """After a colon: but not what is a name."""
    return text[0].lower() + text[1:] if text[:2].istitle() else text


def paragraph(kind, text):
    """A line a sentence, so that a change shows in few lines."""
    names = {argument["name"] for argument in kind["arguments"]}
    lines = []
    for sentence in re.split(r"(?<=\.) (?=[A-Z`])", text):
        lines += textwrap.wrap(sentence, 128, break_long_words=False, break_on_hyphens=False)
    roff = re.sub(r"`([^`]*)`", lambda code: ("\\fI" if code[1] in names else "\\fB") + code[1] + "\\fP", escape("\n".join(lines)))
    return re.sub(r"^(?=[.'])", r"\\&", roff, flags=re.M)


def entry(kind, has_example):
    begin = origin(kind.get("like", ""))
    doc = begin + (lowered(kind["doc"]) if begin else kind["doc"]) + (f" Example: `{kind['example']}`." if has_example else "")
    return f".TP\n.B {signature(kind)}\n" + "\n.IP\n".join(paragraph(kind, text) for text in doc.split("\n\n")) + "\n"


def section(page, heading, kinds, has_example):
    begin = page.index(f"\n{heading}\n")
    end = re.compile(r"^\.SH " if heading.startswith(".SH") else r"^\.S[SH] ", re.M).search(page, begin + 5).start()
    body, kinds = page[begin:end], {kind["name"]: kind for kind in kinds if kind["name"] not in BY_HAND}
    seen = [found[1] for found in ENTRY.finditer(body)]
    body = ENTRY.sub(lambda found: entry(kinds[found[1]], has_example) if found[1] in kinds else found[0], body)
    last = list(ENTRY.finditer(body))[-1].end()
    body = body[:last] + "".join(entry(kind, has_example) for name, kind in kinds.items() if name not in seen) + body[last:]
    return page[:begin] + body + page[end:]


def main():
    check, folder = "--check" in sys.argv, sys.argv[-1]
    families = {family["family"]: family["kinds"] for family in json.load(sys.stdin)}
    n_stale = 0
    for name, heading, family, has_example in SECTIONS:
        path = os.path.join(folder, name)
        with open(path, encoding="utf-8") as file:
            page = file.read()
        made = section(page, heading, families[family], has_example)
        if made == page:
            continue
        n_stale += 1
        if check:
            print(f"{path}: \"{heading}\" is not what the kinds say: make kinds-pages")
            continue
        with open(path, "w", encoding="utf-8") as file:
            file.write(made)
    sys.exit(1 if check and n_stale else 0)


if __name__ == "__main__":
    main()
