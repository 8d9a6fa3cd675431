#!/usr/bin/env python3
"""Does anybody but the epoch plan compute positions?  check_epoch_plan.py [ROOT]

proto/order/epoch_plan.h is the one place that knows which positions a batch holds. Outside proto/order this looks, in the
product's C and Python, for

    world, world_size, batch_size, epoch_samples, dataset_samples    multiplied, divided, or taken modulo
    dlp_dealing_...()                                                called: the plan does; its names may be asked for

A batch size may be multiplied where it says how much memory a slot takes (MEMORY below), but not there either with a
world. It goes by these names: a sum over other names, or over a copy of one of them, it does not see.

Prints file:line for each offence and ends with 1 if there is one.
"""
import io
import os
import re
import sys
import tokenize

MEMORY = ("proto/layout.c", "client/lib/client_ring.c", "client/lib/client_batch.c", "daemon/collate/")  # slots and their columns
FACTORS = r"(?:world|world_size|batch_size|epoch_samples|dataset_samples)\b(?!\s*\()"
PATH = r"(?<![\w.>])(?:[A-Za-z_][\w\[\]]*(?:\.|->))*"  # what a field hangs on: stream->job->terms.
CAST = r"(?:\(\w+\)\s*)?"
# The formatter puts blanks around an operator; a pointer's star has none after it.
USED = re.compile(rf"(?:{PATH}(?P<first>{FACTORS})[\s)]*(?:\*|//?|%)=?\s)|(?:(?:\*|//?|%)=?\s+\(*{CAST}{PATH}(?P<second>{FACTORS}))|"
                  rf"(?:divmod\([^()]*?\b(?P<third>{FACTORS}))")
DEALING = re.compile(r"\b(?P<first>dlp_dealing_(?!name\b|from_name\b)\w+)\s*\(")
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def blank(text):
    """Blanks of the same shape, so that line numbers stay."""
    return re.sub(r"[^\n]", " ", text)


def code_of_c(text):
    return COMMENT.sub(lambda match: blank(match.group(0)), text)


def code_of_python(text):
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            begin, end = starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1]
            text = text[:begin] + blank(text[begin:end]) + text[end:]
    return text


def offences_of(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        text = file.read()
    code = code_of_python(text) if path.endswith(".py") else code_of_c(text)
    for pattern, what in ((USED, "computes with {}"), (DEALING, "calls {}()")):
        for match in pattern.finditer(code):
            name = next(group for group in match.groups() if group)
            if name == "batch_size" and path.startswith(MEMORY):
                continue
            line = code.count("\n", 0, match.end() - 1) + 1
            yield f"{path}:{line}: {what.format(name)}: ask proto/order/epoch_plan.h (Python: dlc_cursor_after())"


def sources(root):
    for top in ("proto", "daemon", "client"):
        for folder, folders, files in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(files):
                path = os.path.relpath(os.path.join(folder, name), root)
                if name.endswith((".c", ".h", ".py")) and not path.startswith("proto/order/"):
                    yield path


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "..")
    paths = list(sources(root))
    offences = [offence for path in paths for offence in offences_of(root, path)]
    for offence in offences:
        print(offence)
    if not paths:
        print(f"no sources below {root}")
    print(f"epoch plan: {len(paths)} files, {len(offences)} offences")
    sys.exit(1 if offences or not paths else 0)


if __name__ == "__main__":
    main()
