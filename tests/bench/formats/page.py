"""The results as a table and a chart, in docs/performance-formats.md."""
import os

import bars
import document
from environment import ROOT

PAGE = os.path.join(ROOT, "docs", "performance-formats.md")
CHART = os.path.join(ROOT, "docs", "performance", "formats.svg")


def table(rows):
    return document.table(
        ["", "its own reader", "its workers", "ours", "reader's", "ours over it", "lowest to highest"],
        [[row["title"], f"{row['reader']} {row['version']}", str(row["workers"]), f"{row['ours']:,.0f} {row['unit']}",
          f"{row['theirs']:,.0f}", f"{row['ratio']:.1f}", f"{row['low']:.1f} to {row['high']:.1f}"] for row in rows])


def machine(about):
    return (f"{about['cpu']}, {about['cpus']} CPUs, {about['memory_gib']:.0f} GiB, Linux {about['kernel']}, Python {about['python']}, "
            f"{about['date']}, dataloaderd {about['dataloaderd']}; median of {{n}} pairs.")


def write(about, rows):
    charted = [(row["title"], row["ratio"], row["low"], row["high"], True) for row in rows]
    with open(CHART, "w", encoding="utf-8") as file:
        file.write(bars.chart("samples per second, ours over the format's own reader", charted))
    document.write(PAGE, {"formats": machine(about).format(n=len(rows[0]["pairs"])) + "\n\n" + table(rows) +
                          "\n\n![ours over each reader](performance/formats.svg)"})
