#!/usr/bin/env python3
"""README and the pages beside it: each command is run by a test, each page is reached, each figure has its source. That links,
paths and names lead somewhere is said by tests/support/check_documents.py.

The blocks that need a wheel, packages or a booted system are run by test_wheel.py, test_deb.py and test_boot.py."""
import glob
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import record
from harness import BUILD, ROOT, VARIANT, Skip, case, contains, equal, main, patience, write
from pages import block, blocks, text_of
from private import Home

PAGES = ("README.md", "docs/c.md", "docs/gpu.md", "docs/datasets.md", "docs/node.md", "docs/monitoring.md", "docs/metrics.md")

# What no test runs as it stands on the page, by page and first words, and what is tested instead.
NOT_RUN = {
    ("README.md", "make demo"): "installs packages and runs this test among all others",
    ("docs/c.md", "cc -o trainer"): "test_install.py builds examples/trainer.c with the flags of what it installed",
    ("docs/gpu.md", "cc -o cuda_trainer"): "test_install.py builds and runs examples/cuda_trainer.c",
    ("docs/node.md", "dlctl stage photos"): "the origin is nobody's: test_staging.py stages, test_systemd.py has the unit",
    ("docs/monitoring.md", "dlctl web"): "test_web.py",
    ("docs/monitoring.md", "dlctl diagnose  "): "test_diagnose.py",
    ("docs/monitoring.md", "verdict"): "what it printed for a job like this: test_verdict.c",
    ("docs/monitoring.md", "dlctl diagnose myjob"): "test_confirm.py",
    ("docs/monitoring.md", "confirmation"): "what it printed for the same job: test_confirm.py",
    ("docs/monitoring.md", "dlctl trace"): "test_trace.py",
    ("docs/monitoring.md", "with torch.profiler"): "torch is not installed for the tests",
    ("docs/monitoring.md", "import gzip, json"): "needs the file of the block before it",
    ("docs/metrics.md", "dlctl metrics"): "test_metrics.py",
    ("docs/metrics.md", "dlctl web --user"): "test_web.py lets another user in, test_metrics.py scrapes",
}


def taken():
    """{(page, first words)} that tests take."""
    found = set()
    for path in glob.glob(os.path.join(ROOT, "tests", "integration", "test_*.py")):
        with open(path, encoding="utf-8") as file:
            found |= set(re.findall(r'\bblock\("([^"]+)", "([^"]+)"\)', file.read()))
    return found


def pages():
    return [os.path.relpath(path, ROOT) for pattern in ("*.md", "docs/*.md", "docs/*/*.md", "client/python/*.md")
            for path in glob.glob(os.path.join(ROOT, pattern))]


# ---- the pages themselves -------------------------------------------------------------------------------------------

@case("each block of README and of the pages about running it is run by a test, or has the reason why not")
def _(_box):
    known = taken() | set(NOT_RUN)
    for page in PAGES:
        for _language, text in blocks(page):
            fits = [begin for where, begin in known if where == page and text.startswith(begin)]
            equal(len(fits), 1, f"{page}: who knows the block that begins with {text.splitlines()[0]!r}: {fits}")
    for page, begin in known:
        block(page, begin)


@case("each page of docs/ can be reached from README")
def _(_box):
    seen, left = set(), ["README.md"]
    while left:
        page = left.pop()
        seen.add(page)
        for link in re.findall(r"\]\(([^)#\s]+\.md)", text_of(page)):
            path = os.path.normpath(os.path.join(os.path.dirname(page), link))
            if path not in seen and os.path.exists(os.path.join(ROOT, path)):
                left.append(path)
    equal(set(pages()) - seen, set(), "pages that no link leads to")


@case("the figures at README's top stand on the page that they are said to be from")
def _(_box):
    top = text_of("README.md").partition("**What you get**")[2].partition("**Why")[0]
    page = text_of(re.search(r"\]\(([^)]+)\)", top).group(1))
    figures = re.findall(r"\d[\d,]*\d(?= ms|,? with|,? at| \||$)", "\n".join(line for line in top.splitlines() if line.startswith("| ")))
    equal(len(figures) >= 5, True, f"figures: {figures}")
    for figure in figures:
        equal(re.search(rf"(?<![\d,.]){figure}(?![\d,.])", page) is not None, True, f"{figure} is on the page")


@case("the folders that HACKING lists are there")
def _(_box):
    for line in block("HACKING.md", "proto/").splitlines():
        name = line.split()[0]
        if name.endswith("/"):
            folder = os.path.join(ROOT, name)
            equal(os.path.isdir(folder), True, f"{name} is a folder")


@case("the recording of README runs what README says, and needs nothing of another place")
def _(_box):
    text = text_of("docs/first-batch.svg")
    root = xml.etree.ElementTree.fromstring(text)
    lines = ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]
    for words in ("pip install dlclient-", "Successfully installed dlclient-", "python3 train.py"):
        equal(any(words in line for line in lines), True, f"{words!r} is seen")
    equal([line for line in lines if "Error" in line or "Traceback" in line], [], "mistakes that were recorded")
    with open(os.path.join(ROOT, "tests", "demo", "train.py"), encoding="utf-8") as program:
        for line in filter(str.strip, program):
            equal(line.strip() in [shown.strip() for shown in lines], True, f"{line!r} is seen")
    contains(text_of("tests/demo/train.py"), re.search(r'pipeline="[^"]+"', block("README.md", "-from torchvision")).group())
    equal(re.findall(r"<script|href|@import|url\(|https?:(?!//www.w3.org/2000/svg)", text), [], "what would be loaded")


@case("a recording shows what was typed and what came, at its time, and the last screen where nothing moves")
def _(box):
    terminal = record.Recording(record.SHELL, record.shell_environment(HOME=box.folder), 60, 12)
    terminal.play(["echo 'a < b'", "sleep 1; seq 3"])
    terminal.terminal.close()
    equal(terminal.terminal.screen.unknown, [], "sequences")
    equal(terminal.terminal.screen.lines(), ["$ echo 'a < b'", "a < b", "$ sleep 1; seq 3", "1", "2", "3", "$"], "the last screen")
    spans = {"".join(cell for cell, _ in row).rstrip(): span for (_, row), span in record.stretches(terminal.frames).items()}
    times = record.shown_at(terminal.frames, 0.5)
    began = {text: terminal.frames[span[0][0]][0] for text, span in spans.items()}
    equal(began["3"] - began["$ sleep 1; seq 3"] >= 1, True, "the pause in the run's own time")
    equal(all(later - earlier <= 0.5 + 1e-9 for earlier, later in zip(times, times[1:])), True, "pauses as they are shown")
    drawn = xml.etree.ElementTree.fromstring(record.svg(terminal, "a & b", 0.5))
    hidden = {name for style in drawn.iter("{http://www.w3.org/2000/svg}style")
              for name in re.findall(r"\.(k\d+)\{visibility:hidden", style.text)}
    last = [text for group in drawn.iter("{http://www.w3.org/2000/svg}g") if group.get("class") and
            group.get("class").split()[1] not in hidden for text in group.itertext()]
    equal(("3" in last, "a < b" in last, "$ sleep 1; seq" in last), (True, True, False), f"seen where nothing moves: {last}")


# ---- blocks ---------------------------------------------------------------------------------------------------------

def release_only():
    if VARIANT != "release":
        raise Skip("the pages run what is in build/release")


def shell(box, script, env, cwd):
    """Runs a block: each of its commands has to succeed."""
    done = subprocess.run(["bash", "-euxc", script], env=env, cwd=cwd, check=False, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=patience(120))
    equal(done.returncode, 0, done.stdout)
    return done.stdout


@case("docs/datasets.md: a configuration of one's own serves, and the commands that look at a dataset take its path")
def _(box):
    release_only()
    home, folder = Home(box), box.folder_of_pictures("photos", 70, width=260, height=260)
    os.symlink(os.path.dirname(BUILD), box.path("build"))
    write(box.path("bin", "make"), b"#!/bin/sh\n")      # what it would build is what is tested
    os.chmod(box.path("bin", "make"), 0o755)
    env = dict(home.env, PATH=f"{box.path('bin')}:{BUILD}:{os.environ['PATH']}")

    def here(text):
        return text.replace("/tmp/", box.folder + "/").replace("/data/photos/train", folder)

    script = block("docs/datasets.md", "make")
    script = script.replace(" &\n", " & trap 'kill $!; wait' EXIT\nuntil [ -e /tmp/dl.sock ]; do sleep 0.1; done\n")
    equal(shell(box, here(script), env, box.folder).count("image uint8[224,224,3]"), 70, "samples that were read")
    commands = re.findall(r"\| `(dlctl .*?)` \|", text_of("docs/datasets.md"))
    equal(len(commands), 3, "commands of the table")
    for command in commands:
        shell(box, here(command) + (" --seconds 0.5" if " bench " in command else ""), env, box.folder)


@case("docs/node.md: the daemon is content with the configuration of a dataset that is staged")
def _(box):
    text = block("docs/node.md", "dataset")
    write(box.path("conf"), text.replace("/data/photos", box.path("photos")).encode())
    done = subprocess.run([os.path.join(BUILD, "dataloaderd"), "--check-config", "-c", box.path("conf")], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=patience(60))
    equal(done.returncode, 0, done.stdout)


@case("docs/c.md: the program builds without a warning and trains on a path")
def _(box):
    release_only()
    home, folder = Home(box), box.folder_of_pictures("photos", 70, width=260, height=260)
    code = block("docs/c.md", "struct dlc_loader")
    source = "#include <err.h>\n#include <stdio.h>\n#include \"dlclient.h\"\nstatic unsigned n;\n" \
        "static void train(const void *images, const void *labels, unsigned n_samples)\n{\n" \
        "        n += images && labels ? n_samples : 0;\n}\nint main(void)\n{\n" + code + "printf(\"%u\\n\", n);\nreturn 0;\n}\n"
    write(box.path("trainer.c"), source.replace("/data/photos/train", folder).encode())
    shell(box, f"gcc -std=c11 -Wall -Wextra -Werror -I{ROOT}/client/include -o trainer trainer.c {BUILD}/libdlclient.so.0",
          dict(os.environ), box.folder)
    equal(shell(box, "set +x; ./trainer", dict(home.env, LD_LIBRARY_PATH=BUILD), box.folder).splitlines()[-1], str(90 * 70), "samples")


main()
