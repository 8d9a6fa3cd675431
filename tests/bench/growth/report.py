"""The block "how cost grows" of docs/performance.md, and its plots, from the results of all points."""
import os
import platform
import sys
import time

from growth import axes, lines

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(HERE), "peers"))
import document  # noqa: E402  (of the folder beside this one)

DOCUMENT = os.path.join(HERE, "..", "..", "..", "docs", "performance.md")
SHOWN = (("cpu_us", "CPU a sample, us"), ("time_us", "time a sample, us"), ("attach_ms", "attach, ms"),
         ("first_ms", "first batch, ms"), ("memory_mib", "memory without rings, MiB"))
PLOTTED = (("cpu_us", "CPU time a sample, us"), ("memory_mib", "memory without rings, MiB"),
           ("first_ms", "first batch, ms"), ("attach_ms", "attach, ms"))


def series(results, axis, figure):
    """kind -> [(value, figure)], in the order of the points."""
    found = {}
    for point, row in results.items():
        if point.axis == axis:
            found.setdefault(point.kind, []).append((point.value, max(row[figure], 1e-3)))
    return found


def from_to(points):
    """First and last value and what lies between them: "812 to 820 (x 1.01)"."""
    (_, first), (_, last) = points[0], points[-1]
    digits = 0 if max(first, last) >= 100 else 1
    return f"{first:,.{digits}f} to {last:,.{digits}f} (× {last / first:.2g})"


def table(results):
    head = ["from, to", *(title for _, title in SHOWN)]
    rows = []
    for axis, title in axes.TITLES.items():
        for kind, points in series(results, axis, "cpu_us").items():
            cells = [from_to(series(results, axis, figure)[kind]) for figure, _ in SHOWN]
            rows.append([f"{lines.number(points[0][0])} to {lines.number(points[-1][0])} {title} ({kind})", *cells])
    return document.table(head, rows)


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), platform.machine())


def block(results):
    about = (f"Measured on {time.strftime('%Y-%m-%d')} with `make bench BENCH=growth`: {cpu_model()}, {os.cpu_count()} CPUs, "
             f"Linux {platform.release()}; two workers.")
    plots = [f"![What a sample costs by {title}](performance/growth_{axis}.svg)" for axis, title in axes.TITLES.items()]
    return "\n\n".join([about, table(results), *plots])


def write(results, target=DOCUMENT):
    """The block into the document, the plots into the folder beside it that is named like it."""
    folder = os.path.splitext(os.path.abspath(target))[0]
    os.makedirs(folder, exist_ok=True)
    for axis, title in axes.TITLES.items():
        panels = [(name, series(results, axis, figure)) for figure, name in PLOTTED]
        with open(os.path.join(folder, f"growth_{axis}.svg"), "w", encoding="utf-8") as file:
            file.write(lines.chart(f"By {title}", panels))
    document.write(target, {"growth": block(results)})
    print(f"# written: {os.path.relpath(target)}", file=sys.stderr)
