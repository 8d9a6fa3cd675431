#!/usr/bin/env python3
"""What `make bench-peers` makes of what it sees: rates, ratios, losses, a document's blocks, charts. No peer is needed."""
import importlib
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from harness import ROOT, case, contains, equal, main, write

sys.path.insert(0, os.path.join(ROOT, "tests", "bench", "peers"))
bars, document, environment, figures, plan, report, trial_of = map(
    importlib.import_module, ("bars", "document", "environment", "figures", "plan", "report", "trial"))

MACHINE = {"kind": "machine", "cpu": "a machine", "cpus": 2, "kernel": "6", "load": 0.0, "memory_gib": 8, "date": "today",
           "photos": 2000, "photo_kb": 80, "dataloaderd": "1", "python": "3", "versions": {"torch": "2"}}


def trial(item, repeat, rate, **more):
    row = {"kind": "trial", "item": item, "repeat": repeat, "workers": 2, "images_per_s": rate, "images_per_cpu_s": rate / 2,
           "first_ms": 100, "next_p50_ms": 1, "next_p99_ms": 2, "pss_mib": 500, "pss_over_mib": 100}
    return {**row, **more}


def refused(name, text):
    try:
        document.replaced(text, name, "new")
    except document.BadMarkers:
        return
    raise AssertionError(f"taken: {text!r}")


def headers_of(path, seen):
    """The system headers that a source of ours includes, through our own headers and their sources as well."""
    if path in seen or not os.path.exists(os.path.join(ROOT, path)):
        return set()
    seen.add(path)
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        found = re.findall(r'^#include ([<"])([^">]+)', file.read(), re.M)
    headers = {name for kind, name in found if kind == "<"}
    for kind, name in found:
        if kind == '"':
            headers |= headers_of(name, seen) | headers_of(name[:-2] + ".c", seen)
    return headers


@case("what the measurements' programs include is installed by `make bench`, not only by `make check`")
def _(_box):
    folder = os.path.join(ROOT, "tests", "bench")
    headers = set().union(*(headers_of(f"tests/bench/{name}", set()) for name in os.listdir(folder) if name.endswith(".c")))
    equal("check.h" in headers, True, "a measurement uses the tests' helpers")
    with open(os.path.join(ROOT, "packages.list"), encoding="utf-8") as file:
        tags = {words[0]: words[1].split(",") for words in map(str.split, file) if len(words) > 1 and words[0][0] != "#"}
    equal("bench" in tags["check"], True, f"package check is installed for {tags['check']}")


@case("BENCH takes several names, between blanks or commas, and names the one that means nothing")
def _(_box):
    sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))
    bench = importlib.import_module("run")
    equal(bench.names_asked(["wake,fair  packed_read", "jpeg"]), ["wake", "fair", "packed_read", "jpeg"], "names")
    equal(bench.chosen(["packed_read", "wake", "packed"]), [bench.wake, bench.packed], "measurements, each once")
    equal(bench.kills in bench.chosen([]), False, "kills runs without being named")
    equal(bench.chosen(["kills"]), [bench.kills], "kills by its name")
    try:
        bench.chosen(["wake", "nothing"])
    except SystemExit as error:
        contains(str(error), "'nothing'", "decode_limit")
    else:
        raise AssertionError("a name that means nothing was taken")


@case("a ratio is taken within each repeat, ours over theirs, before the median")
def _(_box):
    trials = [trial("dlclient", 0, 100), trial("dlclient", 1, 400), trial("dlclient", 2, 90),
              trial("dali", 0, 50), trial("dali", 1, 100), trial("dali", 2, 30)]
    equal(figures.ratio(trials, "dlclient", "dali", "images_per_s"), (3.0, 2.0, 4.0))  # of the medians it would be 2
    equal(figures.ratio(trials, "dali", "dlclient", "images_per_s"), (1 / 3, 0.25, 0.5))


@case("a peer that failed in a repeat is compared in the others alone, and one that never ran in none")
def _(_box):
    trials = [trial("dlclient", 0, 100), trial("dlclient", 1, 900), trial("dali", 0, 50)]
    equal(figures.ratio(trials, "dlclient", "dali", "images_per_s"), (2.0, 2.0, 2.0))
    equal(figures.ratio(trials, "dlclient", "ffcv", "images_per_s"), None)
    equal(figures.figure(trials, "ffcv", "first_ms"), None)


@case("a loss is a low ratio of a rate and a high one of a time or of memory")
def _(_box):
    equal([figures.is_loss("images_per_s", 0.99), figures.is_loss("images_per_s", 1.01)], [True, False])
    equal([figures.is_loss("images_per_cpu_s", 0.5), figures.is_loss("first_ms", 0.5)], [True, False])
    equal([figures.is_loss("pss_mib", 1.2), figures.is_loss("next_p99_ms", 0.9)], [True, False])


@case("a rate is that between a window's first and last batch, and too few are refused")
def _(_box):
    ends = [0.0, 0.9, 1.1, 1.6, 2.1, 2.6, 9.0]
    equal(round(trial_of.rate(ends, 1.0, 3.0), 6), 2.0)
    for begin, end in ((1.0, 2.0), (3.0, 9.5)):
        try:
            trial_of.rate(ends, begin, end)
            raise AssertionError("counted")
        except trial_of.Failed:
            pass


@case("two trainers' images add up, their waits are one heap, and the CPU time is that of all")
def _(_box):
    rows = [{"first_ms": first, "begins": [n * step for n in range(100)], "ends": [n * step + wait for n in range(100)]}
            for first, step, wait in ((50, 0.1, 0.01), (70, 0.05, 0.02))]
    row = trial_of.figures(rows, 1.0, 3.0, 4.0, 300 << 20, 100 << 20)
    equal([round(row[key], 6) for key in ("images_per_s", "images_per_cpu_s", "cpu_s_per_1000")],
          [1920, 960, 1.041667])
    equal([round(row[key], 6) for key in ("first_ms", "next_p50_ms", "next_p99_ms", "pss_mib", "pss_over_mib")],
          [70, 20, 20, 300, 100])


@case("the time and the memory of a process are those of all below it")
def _(_box):
    busy = "import os,sys,time\nif os.fork() == 0:\n    x = bytearray(64 << 20)\n    for i in range(0, len(x), 4096): x[i] = 1\n" \
           "    while time.process_time() < 0.3: pass\n    print(flush=True)\n    sys.stdin.read()\nelse: os.wait()"
    with subprocess.Popen([sys.executable, "-c", busy], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        pids = trial_of.tree(process.pid)
        cpu, memory = trial_of.cpu_seconds(pids), trial_of.pss_bytes(pids)
    equal(len(pids), 2)
    equal([cpu >= 0.25, memory >= 64 << 20], [True, True], f"{cpu} s, {memory} bytes")
    equal([trial_of.cpu_seconds(pids), trial_of.pss_bytes(pids)], [0, 0])


@case("each item is first in some repeat, and none is left out")
def _(_box):
    equal([figures.rotated([1, 2, 3], turn) for turn in range(4)], [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 2, 3]])
    equal(figures.rotated([], 4), [])
    equal(figures.best_workers({3: 10.0, 2: 12.0, 1: 12.0}), 1)


@case("what stands between markers is replaced, and not a letter besides")
def _(_box):
    text = "a\n<!-- generated: x -->\nold\n\nold\n<!-- end: x -->\n\nb\n<!-- generated: y -->\n<!-- end: y -->\n"
    done = document.replaced(text, "x", "\nnew\nlines\n")
    equal(done, text.replace("old\n\nold", "new\nlines"))
    equal(document.replaced(done, "x", "new\nlines"), done)
    contains(document.replaced(text, "y", "c"), "<!-- generated: y -->\nc\n<!-- end: y -->")


@case("markers that are missing, there twice or crossed are refused, and the file stays as it was")
def _(box):
    begin, end = "<!-- generated: x -->", "<!-- end: x -->"
    for lines in ([], [begin], [end, begin], [begin, begin, end], [begin, end, end], [begin, "<!-- generated: y -->", end]):
        refused("x", "\n".join(lines))
    text = f"{begin}\nold\n{end}\n"
    write(box.path("d.md"), text.encode())
    try:
        document.write(box.path("d.md"), {"x": "new", "y": "new"})
        raise AssertionError("a block without markers was written")
    except document.BadMarkers:
        pass
    with open(box.path("d.md"), encoding="utf-8") as file:
        equal(file.read(), text)


@case("a chart is well-formed whatever the labels, and its bars are as long as the values say")
def _(_box):
    root = xml.etree.ElementTree.fromstring(bars.chart('a "title" & <more>', [("ours & <x>", 200.0, 150.0, 250.0, True),
                                                                            ("theirs", 50.0, 50.0, 50.0, False)]))
    space = "{http://www.w3.org/2000/svg}"
    ours, theirs = root.findall(f"{space}rect")
    equal([ours.get("class"), theirs.get("class")], ["ours", "bar"])
    equal(round(float(ours.get("width")) / float(theirs.get("width")), 2), 4.0)
    texts = [element.text for element in root.findall(f"{space}text")]
    equal(texts, ['a "title" & <more>', "ours & <x>", "200", "theirs", "50"])
    contains(bars.STYLE, "prefers-color-scheme: dark")
    xml.etree.ElementTree.fromstring(bars.chart("nothing", []))
    xml.etree.ElementTree.fromstring(bars.chart("zero", [("a", 0.0, 0.0, 0.0, True)]))


@case("the document takes the blocks of a run: losses are marked, missing peers are named")
def _(box):
    rows = [MACHINE, {"kind": "skipped", "item": "ffcv", "why": "no compiler"},
            {"kind": "psnr", "item": "dali", "db": 56.1},
            {"kind": "psnr", "item": "dlclient", "db": None}]
    rows.append({"kind": "skipped", "item": "ranks_torch_pil", "why": "no memory"})
    for repeat in range(3):
        rows += [trial("dlclient", repeat, 1500, pss_over_mib=50), trial("dali", repeat, 1000), trial("opencv", repeat, 3000),
                 trial("ranks_dlclient", repeat, 1600), trial("ranks_dali", repeat, 800)]
    write(box.path("r.jsonl"), "".join(json.dumps(row) + "\n" for row in rows).encode())
    with open(os.path.join(ROOT, "docs", "performance.md"), "rb") as file:
        write(box.path("d.md"), file.read())
    report.write(box.path("r.jsonl"), box.path("d.md"))
    with open(box.path("d.md"), encoding="utf-8") as file:
        text = file.read()
    contains(text, "3 repeats", "| DALI, whole picture | 2 | 1,000 | 1,000 to 1,000 | 1.50 | 500 | 1.50 |",
             "| torch: OpenCV, linear | 2 | 3,000 | 3,000 to 3,000 | **0.50, worse** |",
             "Not measured: FFCV, jpg: no compiler", "| dataloaderd | A | equal |", "| DALI, whole picture | A | 56.1 |",
             "Not measured: torch: v2 on Pillow: no memory", "Ours over one rank of ours: 1.07.")
    for name in ("rate_a", "rate_b", "first_batch", "ranks"):
        contains(text, f"](d/{name}.svg)")
        xml.etree.ElementTree.parse(os.path.join(box.path("d"), name + ".svg"))
    with open(os.path.join(box.path("d"), "rate_b.svg"), encoding="utf-8") as file:
        chart = file.read()
    equal(chart.index("OpenCV, linear") < chart.index("dataloaderd"), True, "the better one stands first")


@case("every result names items that are measured, and a prefix takes those along that it needs")
def _(_box):
    items = {item.name: item for item in plan.items()}
    for result in plan.results():
        equal([name for name in (result.ours, result.theirs) if name and name not in items], [], result.name)
    names = [result.name for result in plan.results()]
    equal(len(names), len(set(names)))
    equal([item.name for item in plan.chosen("ratio_dali_roi")[1]], ["dlclient", "dali_roi"])
    equal([item.name for item in plan.chosen("ratio_jobs_dali")[1]], ["dlclient", "ranks_dali", "jobs_dlclient", "jobs_dali"])
    equal(plan.chosen("no such")[:2], ([], []))
    for item in items.values():
        equal(item.group in environment.SIZES and os.path.exists(environment.requirements(item.group)), True, item.name)


main()
