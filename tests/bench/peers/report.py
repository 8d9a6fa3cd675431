#!/usr/bin/env python3
"""docs/performance.md from a file of results: report.py RESULTS [DOCUMENT]. Only the blocks between markers are written.

Where we lose, the ratio stands in bold with the word: a table that hides it would be worth nothing.
"""
import json
import os
import sys

import bars
import document
import figures
import machine
import plan

DOCUMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "docs", "performance.md")


def load(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def text(value, digits=0):
    return "–" if value is None else f"{value[0]:,.{digits}f}"


def spread(value):
    return "–" if value is None else f"{value[1]:,.0f} to {value[2]:,.0f}"


def ratio_text(key, value):
    """A ratio of ours over theirs, marked where we are the worse."""
    if value is None:
        return "–"
    return f"**{value[0]:.2f}, worse**" if figures.is_loss(key, value[0]) else f"{value[0]:.2f}"


class Report:
    """Of the rows of a file; charts lie in a folder beside the document."""

    def __init__(self, rows, folder):
        self.folder = folder
        self.trials = [row for row in rows if row["kind"] == "trial"]
        self.skipped = {row["item"]: row["why"] for row in rows if row["kind"] == "skipped"}
        self.db = {row["item"]: row["db"] for row in rows if row["kind"] == "psnr"}
        self.machine = next(row for row in rows if row["kind"] == "machine")
        self.charts = {}

    def of(self, item, key):
        return figures.figure(self.trials, item, key)

    def over(self, ours, theirs, key):
        return "" if ours == theirs else ratio_text(key, figures.ratio(self.trials, ours, theirs, key))

    def workers(self, item):
        return next((str(row["workers"]) for row in self.trials if row["item"] == item), "–")

    def missing(self, items):
        """A line for each (item, peer) that was given up."""
        return "".join(f"\n\nNot measured: {plan.TITLES[peer]}: {self.skipped[item]}" for item, peer in items
                       if item in self.skipped)

    def chart(self, name, title, items, key):
        """Makes one from the best down; returns the line that shows it."""
        rows = [(plan.TITLES[peer], *value, peer == "dlclient") for item, peer in items
                for value in [self.of(item, key)] if value]
        if not rows:
            return ""
        self.charts[name] = bars.chart(title, sorted(rows, key=lambda row: row[1], reverse=key in figures.MORE_IS_BETTER))
        return f"![{title}]({self.folder}/{name}.svg)\n\n"

    # -- blocks

    def about(self):
        it, repeats = self.machine, max((row["repeat"] + 1 for row in self.trials), default=0)
        versions = ", ".join(f"{name} {version}" for name, version in it["versions"].items())
        busy = ""
        if it["load"] > machine.BUSY:
            busy = (f" The load average before it began was {it['load']:.1f}: something had run until then, or ran beside it, "
                    "and then these figures are worth little.")
        return (f"Measured on {it['date']} with `make bench-peers`: {it['cpu']}, {it['cpus']} CPUs, "
                f"{it['memory_gib']:.0f} GiB, Linux {it['kernel']}; {it['photos']:,} photos of {it['photo_kb']:.0f} KB; "
                f"{repeats} repeat{'s' * (repeats != 1)}.{busy}\n\n"
                f"dataloaderd {it['dataloaderd']}; Python {it['python']}; {versions}.")

    def loaders(self, row):
        """The table and the chart of row A or B. Ours stands in both, to be compared."""
        names = [peer.name for peer in plan.PEERS if peer.row == row or peer.name == "dlclient"]
        names.sort(key=lambda name: -(self.of(name, "images_per_s") or (0,))[0])
        lines = [[plan.TITLES[name], self.workers(name), text(self.of(name, "images_per_s")),
                  spread(self.of(name, "images_per_s")), self.over("dlclient", name, "images_per_s"),
                  text(self.of(name, "images_per_cpu_s")), self.over("dlclient", name, "images_per_cpu_s")]
                 for name in names if name not in self.skipped]
        head = ["", "workers", "images/s", "lowest to highest", "ours over it", "images per CPU second", "ours over it"]
        title = {"A": "Images per second, same pixels", "B": "Images per second, as usual for speed"}[row]
        chart = self.chart(f"rate_{row.lower()}", title, [(name, name) for name in names], "images_per_s")
        return chart + document.table(head, lines) + self.missing(zip(names, names))

    def waiting(self):
        names = [peer.name for peer in plan.PEERS if peer.name not in self.skipped]
        lines = [[plan.TITLES[name], text(self.of(name, "first_ms")), self.over("dlclient", name, "first_ms"),
                  text(self.of(name, "next_p50_ms"), 1), text(self.of(name, "next_p99_ms"), 1),
                  self.over("dlclient", name, "next_p99_ms"), text(self.of(name, "pss_mib")),
                  text(self.of(name, "pss_over_mib")), self.over("dlclient", name, "pss_over_mib")] for name in names]
        head = ["", "first batch, ms", "ours over it", "next() p50, ms", "p99, ms", "ours over it (p99)", "memory, MiB",
                "of that, beyond imports", "ours over it (beyond imports)"]
        # FFCV compiles for many seconds: on its scale nothing else would be seen.
        chart = self.chart("first_batch", "Milliseconds to the first batch (FFCV: see the table)",
                           [(name, name) for name in names if name != "ffcv"], "first_ms")
        return chart + document.table(head, lines)

    def pairs(self, kind):
        """Two ranks or two jobs; the total of both."""
        items = [(f"{kind}_{name}", name) for name in ("dlclient",) + plan.PAIRED]
        ours = items[0][0]
        lines = [[plan.TITLES[name], self.workers(item), text(self.of(item, "images_per_s")),
                  self.over(ours, item, "images_per_s"), text(self.of(item, "images_per_cpu_s")),
                  text(self.of(item, "pss_mib")), self.over(ours, item, "pss_mib")]
                 for item, name in items if self.of(item, "images_per_s")]
        head = ["", "workers (each; the daemon's: in all)", "images/s of both", "ours over it",
                "images per CPU second", "memory, MiB", "ours over it (memory)"]
        title = {"ranks": "Two ranks of one run", "jobs": "Two jobs on the same data"}[kind] + ", images per second"
        one = figures.ratio(self.trials, ours, "dlclient", "images_per_s")
        tail = f"\n\nOurs over one rank of ours: {one[0]:.2f}." if one else ""
        if kind == "ranks":
            tail += self.bare()
        return self.chart(kind, title, items, "images_per_s") + document.table(head, lines) + self.missing(items) + tail

    def bare(self):
        """Memory of trainers that import nothing but their loader; torch's is torch."""
        theirs = self.of("ranks_torch_pil", "pss_mib")
        said = [f"{plan.TITLES[name]} {text(self.of(f'bare_{name}', 'pss_mib'))} MiB" for name in plan.BARE
                if self.of(f"bare_{name}", "pss_mib")]
        if not said or not theirs:
            return ""
        return (f"\n\nTrainers that import nothing but their loader, memory of all processes: {', '.join(said)}; "
                f"torch {text(theirs)} MiB. Ours over torch's: {self.over('bare_dlclient', 'ranks_torch_pil', 'pss_mib')}.")

    def transport(self):
        names = [f"transport_{name}" for name in ("dlclient", "torch", "spdl")]
        lines = []
        for name in names:
            rate = self.of(name, "images_per_s")
            if rate:
                lines.append([plan.TITLES[name], self.workers(name), f"{64e6 / rate[0]:,.0f}",
                              f"{rate[0] * 224 * 224 * 3 / 1e6:,.0f}",
                              self.over("transport_dlclient", name, "images_per_s"),
                              self.over("transport_dlclient", name, "images_per_cpu_s")])
        head = ["", "workers", "us a batch", "MB/s", "ours over it (batches/s)", "ours over it (batches per CPU second)"]
        return document.table(head, lines) + self.missing(zip(names, names))

    def pixels(self):
        rows = {peer.name: peer.row for peer in plan.PEERS}
        lines = [[plan.TITLES[name], rows[name], "equal" if db is None else f"{db:.1f}"] for name, db in self.db.items()]
        return document.table(["", "table", "PSNR to Pillow, dB"], lines)

    def blocks(self):
        return {"about": self.about(), "same pixels": self.loaders("A"), "as usual": self.loaders("B"),
                "waiting and memory": self.waiting(), "two ranks": self.pairs("ranks"), "two jobs": self.pairs("jobs"),
                "transport": self.transport(), "pixels": self.pixels()}


def write(path, target=DOCUMENT):
    """The blocks into the document, the charts into the folder beside it that is named like it."""
    folder = os.path.splitext(os.path.abspath(target))[0]
    report = Report(load(path), os.path.basename(folder))
    blocks = report.blocks()
    os.makedirs(folder, exist_ok=True)
    for name, svg in report.charts.items():
        with open(os.path.join(folder, name + ".svg"), "w", encoding="utf-8") as file:
            file.write(svg)
    document.write(target, blocks)
    print(f"# written: {os.path.relpath(target)}", file=sys.stderr)


if __name__ == "__main__":
    write(*sys.argv[1:3])
