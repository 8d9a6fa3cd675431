#!/usr/bin/env python3
"""Writes what kinds say of themselves into the manual pages, docs/transforms.md and Python's table of classes:

    print_kinds | make_kinds_pages.py [--check] ROOT

An entry of a section of SECTIONS is its kind's arguments with their defaults, the class that does the same elsewhere, the
kind's paragraphs, in which a word in `backticks` is code and "- `TERM`: " begins one of a list, and perhaps its example.
What is between the entries is written by hand. A kind without an entry gets one after the last one of its section. With
--check nothing is written: 1 if something would be.
"""
import functools
import itertools
import json
import os
import re
import sys
import textwrap

from torch_calls import torch_call

# Page, what the section begins with, family (except kinds with a section of their own) or one kind or role of it, whether
# the example and what does the same are shown: signatures of samplers say little of their values.
SECTIONS = (("dataloaderd-pipeline.7", ".SS Fields that are not pictures", "fields", False),
            ("dataloaderd-pipeline.7", ".SS Several views of each sample", "fields views", False),
            ("dataloaderd-pipeline.7", ".SS Functions of the trainer", "fields python", False),
            ("dataloaderd-pipeline.7", ".SS Steps, codecs and collations of plug\\-ins", "fields plugin", False),
            ("dataloaderd-pipeline.7", ".SS How samples become a batch", "collations", False),
            ("dataloaderd-pipeline.7", ".SS Steps for sound", "sounds", False),
            ("dataloaderd-pipeline.7", ".SS Steps for pictures", "pictures", False),
            ("dataloaderd-samplers.7", "These choose samples:", "samplers chooser", True),
            ("dataloaderd-samplers.7", "These arrange samples:", "samplers arranger", True),
            ("dataloaderd-samplers.7", ".SS Samplers that make batches and packs", "samplers grouper", True))
ENTRY = re.compile(r"^\.TP\n\.B (\w+)[^\n]*\n(?:(?!\.TP\n|\.SS |\.SH |\.PP\n).*\n)*", re.M)


def escape(text):
    return text.replace("\\", "\\e").replace("-", "\\-")


# What stands for a value that may be left out.
PLACEHOLDERS = {"whole": "N", "number": "N", "list": "N:N", "range": "FROM:TO", "column": "COLUMN", "name": "NAME"}


def shown_argument(argument):
    """size, interpolation=bilinear, max=N"""
    value = argument.get("default") or argument.get("left_out")
    if argument["is_optional"] and not value:
        form = argument.get("form", "").partition(",")[0]
        value = form if " " not in form or re.search("[A-Z]", form) else None  # else a sentence
        value = value or PLACEHOLDERS.get(argument["type"])
    return "NAME=N" if argument["type"] == "weights" else argument["name"] + (f"={value}" if value else "")


def signature(kind):
    if not kind["arguments"]:
        return escape(kind["example"])
    return escape(f"{kind['name']}({', '.join(map(shown_argument, kind['arguments']))})")


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


def item(kind, text):
    term, _, rest = text[2:].partition(": ")
    return f".IP \"{paragraph(kind, term)}\"\n{paragraph(kind, rest)}\n"


def paragraphs(kind, doc):
    parts = []
    for is_list, texts in itertools.groupby(doc.split("\n\n"), lambda text: text.startswith("- ")):
        if is_list:
            parts.append(".RS\n" + "".join(item(kind, text) for text in texts) + ".RE\n")
        else:
            parts.append(".IP\n".join(paragraph(kind, text) + "\n" for text in texts))
    return "".join((".IP\n" if i > 0 and not part.startswith(".RS") else "") + part for i, part in enumerate(parts))


def entry(kind, has_example):
    begin = origin(kind.get("like", ""))
    doc = begin + (lowered(kind["doc"]) if begin else kind["doc"])
    if has_example:
        doc += f" Example: `{kind['example']}`." + (f" Does the same: {kind['like']}." if "like" in kind else "")
    return f".TP\n.B {signature(kind)}\n{paragraphs(kind, doc)}"


def section(heading, kinds, has_example, page):
    begin = page.index(f"\n{heading}\n")
    end = re.compile(r"^\.S[SH] " if heading.startswith(".SS") else r"^\.PP", re.M).search(page, begin + 5).start()
    body, kinds = page[begin:end], {kind["name"]: kind for kind in kinds}
    seen = [found[1] for found in ENTRY.finditer(body)]
    body = ENTRY.sub(lambda found: entry(kinds[found[1]], has_example) if found[1] in kinds else found[0], body)
    last = list(ENTRY.finditer(body))[-1].end()
    body = body[:last] + "".join(entry(kind, has_example) for name, kind in kinds.items() if name not in seen) + body[last:]
    return page[:begin] + body + page[end:]


# ---- formats of datasets

def format_sections(kinds, page):
    """The first paragraph of each format's section is the format's own; what follows is written by hand."""
    for kind in kinds:
        keys = f" Keys: {', '.join(f'`{key}`' for key in sorted(kind['keys']))}." if kind["keys"] else ""
        doc = paragraph({"arguments": []}, kind["doc"] + keys + f" Example: `dataset \"x\" {{ {kind['example']} }}`.")
        made = f".SS {kind['name']}\n{doc}\n"
        found = re.search(rf"^\.SS {kind['name']}\n(?:(?!\.PP\n|\.S[SH] ).*\n)*", page, re.M)
        begin, end = found.span() if found else 2 * (page.index("\n.SS Listings\n") + 1,)
        page = page[:begin] + made + page[end:]
    return page


# ---- Python's table

# Whose objects a program may hand over, as they are in a kind's `like`.
MODULES = {"torchvision.transforms.v2", "torchaudio.transforms", "timm.data", "timm.data.auto_augment"}
TABLE = os.path.join("client", "python", "dlclient", "_answers", "kinds_table.py")


def table_row(argument):
    """What step_text.py asks of an argument."""
    row = {key: argument[key] for key in ("name", "attribute", "other_name", "default", "word") if key in argument}
    if "choices" in argument:
        row["choices"] = " ".join(argument["choices"])
    if argument["type"] in ("size", "flag", "steps"):
        row["type"] = argument["type"]
    if argument.get("form", "").startswith(("N or", "W:W")):
        row["form"] = argument["form"]
    return f"            {row},\n"


def n_bare(kind):
    """How many values the example has without a key."""
    values = re.sub(r"\[.*\]", "steps", kind["example"]).partition("(")[2].rstrip(")")
    return sum("=" not in value for value in values.split(",")) if values else 0


def python_table(families):
    text = ('"""The classes of torchvision, torchaudio and timm that are kinds of steps, by family: `make kinds-pages`."""\n'
            "from __future__ import annotations\n\nfrom typing import Any, Dict\n\nCLASSES: Dict[str, Dict[str, Dict[str, Any]]] = {\n")
    for family in ("pictures", "sounds", "collations"):
        text += f"    '{family}': {{\n"
        for kind in families[family]:
            module, _, name = kind.get("like", "").rpartition(".")
            if module in MODULES:
                text += f"        '{name}': {{'name': '{kind['name']}', 'n_bare': {n_bare(kind)}, 'arguments': [\n"
                text += "".join(map(table_row, kind["arguments"])) + "        ]},\n"
        text += "    },\n"
    text += "}\n\n# Collations that mix samples, and all in which what a sample becomes depends on its batch.\n"
    for names, word in (("MIXES", "mixes"), ("OF_BATCHES", "is_of_batch")):
        text += f"{names} = {[kind['name'] for kind in families['collations'] if kind[word]]}\n"
    return text


# ---- the table of docs/transforms.md

def class_rows(families):
    kinds = families["pictures"] + families["collations"]
    for kind in kinds:
        module, _, name = kind.get("like", "").rpartition(".")
        if module and not name.islower():  # a class
            call = (torch_call(kind["example"], kinds, module) or f"{name}()").replace("module.", "")
            yield f"| {module.partition('.')[0].replace('alb', 'Alb')} | `{call}` | `{kind['example']}` |\n"


def class_table(families, page):
    begin = page.index("|\n", page.index("|---", page.index("\n## Classes and steps\n"))) + 2
    end = re.compile(r"^(?!\|)", re.M).search(page, begin).start()
    return page[:begin] + "".join(class_rows(families)) + page[end:]


def pages(families):
    """The path of each page, from the root of the tree, and what makes its text of the text that it has."""
    alone = [chosen for _, _, chosen, _ in SECTIONS]
    for name, heading, chosen, has_example in SECTIONS:
        family = chosen.partition(" ")[0]
        kinds = [kind for kind in families[family]
                 if chosen in (f"{family} {kind['name']}", f"{family} {kind.get('role')}") or
                 chosen == family and f"{family} {kind['name']}" not in alone]
        yield os.path.join("client", "man", name), functools.partial(section, heading, kinds, has_example)
    yield os.path.join("client", "man", "dataloaderd-datasets.7"), functools.partial(format_sections, families["formats"])
    yield TABLE, lambda _: python_table(families)
    yield os.path.join("docs", "transforms.md"), functools.partial(class_table, families)


def main():
    check, root = "--check" in sys.argv, sys.argv[-1]
    n_stale = 0
    for name, make in pages({family["family"]: family["kinds"] for family in json.load(sys.stdin)}):
        path = os.path.join(root, name)
        with open(path, encoding="utf-8") as file:
            page = file.read()
        made = make(page)
        if made == page:
            continue
        n_stale += 1
        if check:
            print(f"{path}: is not what the kinds say: make kinds-pages")
            continue
        with open(path, "w", encoding="utf-8") as file:
            file.write(made)
    sys.exit(1 if check and n_stale else 0)


if __name__ == "__main__":
    main()
