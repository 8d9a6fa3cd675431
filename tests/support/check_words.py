#!/usr/bin/env python3
"""Are pages, messages and comments in plain English?  check_words.py [ROOT]

Looks for a few phrases that are easily written and have to be read twice, each with the reason why. It reads all text of
a file: a page's prose, comments, messages. A sentence may run over several lines of a comment, and a message over several
literals. Only files below CLEAN are looked at; a folder is added here once it has been gone through.

Prints file:line for each offence and ends with 1 if there is one. A phrase that is right in its place is told apart by
its neighbours in the pattern, not by a list of exceptions.
"""
import os
import re
import sys

CLEAN = (
    "README.md", "ARCHITECTURE.md", "HACKING.md", "docs/", "config/", "systemd/", "client/", "proto/", "daemon/base/",
    "daemon/io/", "daemon/decode/", "daemon/augment/", "daemon/ring/", "daemon/codec/", "daemon/collate/",
    "daemon/pipeline/", "daemon/ctl/", "daemon/core/", "daemon/main.c", "daemon/data/",
    "tests/run.py", "tests/cuda/", "tests/bench/gpu/", "tests/bench/growth/", "tests/bench/peers/", "tests/bench/profile_image/", "tests/demo/",
    "tests/faults/", "tests/frameworks/", "tests/fuzz/", "tests/soak/", "tests/support/", "tests/tools/", "tests/unit/",
)

ITSELF = "tests/support/check_words.py"  # it quotes them

PHRASES = (
    # "12x is no number" reads as a pun; the usual negation is with the verb.
    (r"(?<!here )\b(?:is|are|was|were) no (?!longer\b|more\b|need\b|further\b|room\b)", "write: is not a ..., unknown"),
    # A word-for-word translation.
    (r"\b(?:to be had|to be found)\b", "write: available, found"),
    # "behind" is a place; for time and sequence the field says "after". A node may lag behind, a file be left behind.
    (r"(?<!left )(?<!leave )(?<!leaves )(?<!leaving )(?<!furthest )(?<!group )(?<!lags )(?<!falls )\bbehind\b", "write: after"),
    # Reads as the verb of bears.
    (r"\b(?:borne|bears)\b", "write: tolerated, tolerates"),
    # "ends after so many batches": how many?
    (r"\bso many\b(?! that)", "say which number"),
    # Stops the reader, who expects "but".
    (r"\bbut for\b", "write: except"),
    (r"\btill\b", "write: until"),
    (r"\bmidst\b", "write: in the middle of"),
    (r"\bmore seldom\b", "write: less often"),
    (r"\bNULL is nothing\b", "write: takes NULL"),
    # "Who waits has ...": a question that turns out to be none.
    (r"(?:^|(?<=[.;:] ))Who [a-z]+ [^?.*|]*\.", "name the one who does it: a rank that waits ..."),
)

# What stands at the beginning of a continued line of a comment or between two literals, and the ends of a text.
JOINT = re.compile(r'"\s*\n\s*"|\n[ \t]*(?:\*(?!/)|#|//|\.\\")?[ \t]*')
# In C these are for people; what lies between them is code, where names may be as they like.
PROSE = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
TEXT = (".c", ".h", ".cu", ".py", ".md", ".proto", ".conf", ".1", ".3", ".5", ".7", ".8")


def joined(text):
    """The text with its line breaks taken out, and for each character of it the line where it came from."""
    parts, lines, at, line = [], [], 0, 1
    for joint in JOINT.finditer(text):
        parts.append(text[at:joint.start()])
        lines += [line] * (joint.start() - at)
        parts.append("" if joint.group(0).startswith('"') else "\n" if is_paragraph(text, joint) else " ")
        lines += [line] * len(parts[-1])
        line += joint.group(0).count("\n")
        at = joint.end()
    parts.append(text[at:])
    lines += [line] * (len(text) - at)
    return "".join(parts), lines


def is_paragraph(text, joint):
    """Is a new paragraph, a list's item, a table's row or code to follow?"""
    return text[joint.end():joint.end() + 2].strip() in ("", "-", "|", "/*") or text[joint.start() - 1:joint.start()] == "\n"


def prose_of_c(text):
    """The text with its code blanked out, so that line numbers stay."""
    parts, at = [], 0
    for match in PROSE.finditer(text):
        parts += [re.sub(r"[^\n]", " ", text[at:match.start()]), match.group(0)]
        at = match.end()
    return "".join(parts)


def offences_of(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        text = file.read()
    text, lines = joined(prose_of_c(text) if path.endswith((".c", ".h", ".cu")) else text)
    for pattern, advice in PHRASES:
        for match in re.finditer(pattern, text, re.M):
            yield lines[match.start()], text[match.start():match.start() + 60].split("\n")[0], advice


def paths_of(root):
    for entry in CLEAN:
        if os.path.isfile(os.path.join(root, entry)):
            yield entry
        for folder, _, names in os.walk(os.path.join(root, entry)):
            yield from (os.path.relpath(os.path.join(folder, name), root) for name in names if name.endswith(TEXT))


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
    paths = sorted(set(paths_of(root)) - {ITSELF})
    n_offences = 0
    for path in paths:
        for line, found, advice in sorted(offences_of(root, path)):
            print(f'{path}:{line}: "{found}...": {advice}')
            n_offences += 1
    print(f"{len(paths)} files, {n_offences} phrases that are hard to read")
    return 1 if n_offences or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
