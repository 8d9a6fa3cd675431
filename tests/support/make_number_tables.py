#!/usr/bin/env python3
"""Writes what documents list of daemon/base/number_rows.h anew: the tables of docs/metrics.md, and the counters of dlctl(1).
`make number-tables`."""
import os
import re

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ROW = re.compile(r'^ +ROW\((\w+), (COUNTER|GAUGE), "([^"]*)", \w+, "(\w*)", "([^"]*)"\)', re.M)
JOB = "`dataset` `job` `user`"

# Heading, labels, lists of rows, and metrics that have no row.
TABLES = (
    ("The daemon", "", ("NODE_STATE", "NODE_COUNTERS"), ("dataloaderd_build_info",)),
    ("Datasets", "`dataset`", ("DATASET_NUMBERS", "STAGING_NUMBERS"), ()),
    ("Jobs", JOB, ("JOB_STATE", "JOB_COUNTERS"), ("dataloaderd_stage_cpu_seconds_total",)),
    ("Ranks", JOB + " `rank`", ("RANK_COUNTERS", "WAITING_NUMBERS", "RANK_STATE"), ("dataloaderd_client_next_seconds",)),
    ("The process", "", ("PROCESS_NUMBERS",), ()),
)


def lists():
    """The text of each list of rows, by its name."""
    with open(os.path.join(ROOT, "daemon", "base", "number_rows.h"), encoding="utf-8") as file:
        return dict(re.findall(r"^#define (\w+)\(ROW\) +\\\n((?:.*\\\n)*.*\n)", file.read(), re.M))


def table(document, heading, labels, names, others):
    begin = document.index("|", document.index(f"\n## {heading}\n"))
    end = re.compile(r"^(?!\|)", re.M).search(document, begin).start()
    rows = ["| name | kind | labels | what it is |\n|---|---|---|---|\n"]
    rows += [f"| `{metric}` | {kind.lower()} | {labels} | {text} |\n"
             for name in names for _, kind, _, metric, text in ROW.findall(lists()[name]) if metric]
    rows += [line for line in document[begin:end].splitlines(True) if any(f"`{other}`" in line for other in others)]
    return document[:begin] + "".join(rows) + document[end:]


def tables(document):
    for row in TABLES:
        document = table(document, *row)
    return document


def entries(page):
    head = "The counters, since the daemon started:\n"
    begin = page.index(head) + len(head)
    rows = [f".TP\n.B {name}\n{'Nanoseconds. ' if unit == 'ns' else ''}{text}\n"
            for name, _, unit, _, text in ROW.findall(lists()["NODE_COUNTERS"])]
    return page[:begin] + "".join(rows) + page[page.index(".SS ", begin):]


def rewrite(path, change):
    path = os.path.join(ROOT, *path.split("/"))
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(change(text))


rewrite("docs/metrics.md", tables)
rewrite("client/man/dlctl.1", entries)
