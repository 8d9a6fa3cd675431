#!/usr/bin/env python3
"""Is what the documents say of the tree so?  check_documents.py [ROOT]

Looks at README, ARCHITECTURE, HACKING, everything below docs/, and the pages of OTHERS:

- Every path in `backticks` is a file or a folder of the tree: from the root, or, in the documents of DEEP, from one of the folders in
  FROM, or, without a slash, a file's name. Words in capitals stand for a name (`daemon/decode/NAME.c`), a star for any.
- Every name in `backticks` with an underscore, and every `function()`, stands in some source.
- Every link leads to a file, and to a heading of it.
- No document is longer than its limit. ARCHITECTURE, README and HACKING together are 60 KB, so that they are read.
- Numbers in NUMBERS are those of the sources.
- Every manual page of ours that a page, a document or a message names, as dataloaderd-pipeline(7), is there.
- Every thread that the daemon starts has a row in ARCHITECTURE, "Threads".
- Every guided fuzzer has a row in docs/internals/fuzzing.md, and every row a fuzzer.

Prints file:line for each offence and ends with 1 if there is one.
"""
import os
import re
import subprocess
import sys

TOP = ("README.md", "ARCHITECTURE.md", "HACKING.md")
DEEP = TOP + ("docs/internals/", "docs/decisions/")
OTHERS = ("client/python/README.md", "tests/frameworks/README.md")
FROM = ("", "daemon/", "client/", "client/python/", "client/python/dlclient/", "proto/", "tests/", "tests/support/", "daemon/data/",
        "daemon/augment/", "daemon/staging/", "client/dlctl/", "docs/")
LIMITS = (("README.md", 8 << 10), ("ARCHITECTURE.md", 30 << 10), ("HACKING.md", 22 << 10), ("docs/internals/", 10 << 10),
          ("docs/decisions/", 10 << 10), ("docs/support.md", 15 << 10))
TOGETHER = 60 << 10
SOURCES = (".c", ".h", ".cu", ".cuh", ".py", ".proto", ".mk", ".sh", ".js", ".conf", ".def", ".inc", ".S", ".toml", ".service", "Makefile")
# Names of other libraries, of examples, and of measurements that are put together of words.
FOREIGN = {"curl_easy_header", "archive_write_disk", "tsearch", "fts", "skip_first_batches", "gather_for_metrics", "accumulate",
           "gradient_accumulation_steps", "prefetch_size", "exported_job", "text_positions", "text_segments", "end_to_end_of_link",
           "end_to_end_slowdown", "end_to_end_paced_slowdown", "end_to_end_beside_of_link"}

PATH = re.compile(r"^[\w.-]+(?:/[\w.*-]+)*/?$")
FILE = re.compile(r"\.(?:c|h|cu|cuh|py|mk|sh|proto|S|dict|inc|def)$")
NAME = re.compile(r"^(?:[a-z]\w*_\w*|[A-Z][A-Z0-9]*_[A-Z0-9_]+)(?:\(\))?$|^[a-z]\w+\(\)$")
LINK = re.compile(r"\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")

# Numbers that are also in the sources: (document, pattern, #define or assignment, what the document's number is counted in).
NUMBERS = (
    ("README.md", r"glibc 2\.(\d+) or newer", "NEWEST_GLIBC", 1),
    ("HACKING.md", r"newer than glibc 2\.(\d+)", "NEWEST_GLIBC", 1),
    ("docs/internals/failure.md", r"bytes of (\d+) files", "DOUBTS_FILES", 1),
    ("docs/internals/failure.md", r"at (eight) other files", "LOOK_OTHERS", 1),
    ("docs/internals/fields.md", r"takes up to (\d+) samples", "TASK_ROWS_MAX", 1),
    ("docs/internals/fields.md", r"a stretch of (\d+) KiB", "STRETCH_BYTES", 1 << 10),
    ("docs/internals/formats.md", r"Up to (\d+) numbers", "SURVEY_FEW", 1),
    ("docs/internals/functions.md", r"has up to (\d+) at a time", "DLP_ORDERS_MAX", 1),
    ("docs/internals/memory.md", r"\| (\d+) KiB a task", "TASK_BUFFER_BYTES", 1 << 10),
    ("docs/internals/memory.md", r"at most (\d+) GiB", "SCRATCH_POOL_MAX", 1 << 30),
    ("docs/internals/memory.md", r"in pieces of ([\d,]+) samples", "PIECE_ELEMENTS", 1),
    ("docs/internals/numbers.md", r"its next (ten) batches", "REPLAY_KEPT_MAX", 1),
    ("docs/internals/plug-ins.md", r"\(it keeps (\d+)\)", "KEPT", 1),
    ("docs/internals/staging.md", r"multiples of (\d+) bytes", "SHARD_ALIGN", 1),
)
WRITTEN = {"three": 3, "eight": 8, "ten": 10}

def tracked(root):
    """The files that git knows, and those that are new and not ignored; without git, all but build/."""
    files = set()
    try:
        out = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], check=True, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True).stdout.split("\n")
        files = {path for path in out if path and os.path.exists(os.path.join(root, path))}
    except (OSError, subprocess.CalledProcessError):
        pass
    if not files:
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name not in ("build", ".git", "__pycache__")]
            files |= {os.path.relpath(os.path.join(folder, name), root) for name in names}
    return files


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def anchor(heading):
    """The name that GitHub gives to a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def prose(text):
    """(number, line) outside of fenced blocks."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


class Tree:
    def __init__(self, root):
        self.root, self.files = root, tracked(root)
        self.folders = {"/".join(path.split("/")[:n]) for path in self.files for n in range(1, path.count("/") + 1)}
        self.names = {os.path.basename(path) for path in self.files}
        self.words = set(FOREIGN)
        for path in self.files:
            if path.endswith(SOURCES) and not path.startswith("docs/") and os.path.basename(path) != "check_documents.py":
                self.words |= set(re.findall(r"\w+", read(root, path)))
        self.headings = {}

    def has(self, path, beside):
        path = path.rstrip("/")
        if re.search(r"[A-Z]{3,}|\*", re.sub(r"^(README|ARCHITECTURE|HACKING|LICENSE)\b", "", os.path.basename(path))) or "VARIANT" in path:
            return True
        if path.startswith("build/") or "/" not in path and path in self.names:
            return True
        for start in (beside, *FROM):
            whole = os.path.normpath(os.path.join(start, path))
            if whole in self.files or whole in self.folders:
                return True
        return False

    def has_heading(self, path, name):
        if path not in self.headings:
            self.headings[path] = {anchor(line.lstrip("#")) for _, line in prose(read(self.root, path)) if line.startswith("#")}
        return name in self.headings[path]


def code_offences(tree, path, line, deep):
    beside = os.path.dirname(path)
    for match in CODE.finditer(line):
        text = match.group(1).strip()
        if PATH.match(text) and "//" not in text and (("/" in text and (deep or text.split("/")[0] in tree.folders)) or (deep and FILE.search(text))):
            ours = FILE.search(text) or text.split("/")[0] in tree.folders or text.endswith("/")
            if ours and not text.startswith(".") and not tree.has(text, beside):
                yield f"`{text}` is not in the tree"
        elif path not in OTHERS and NAME.match(text) and text.rstrip("()") not in tree.words:
            yield f"`{text}` stands in no source"


def link_offences(tree, path, line):
    for match in LINK.finditer(line):
        target, _, name = match.group(1).partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        whole = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        if whole not in tree.files and whole not in tree.folders:
            yield f"the link to {match.group(1)} leads nowhere"
        elif name and whole.endswith(".md") and not tree.has_heading(whole, name):
            yield f"{whole} has no heading #{name}"


def size_offences(tree, documents):
    sizes = {path: os.path.getsize(os.path.join(tree.root, path)) for path in documents}
    for path, size in sizes.items():
        for start, limit in LIMITS:
            if path.startswith(start) and size > limit:
                yield path, 1, f"has {size} bytes; at most {limit}: move something to a page of docs/internals/"
    total = sum(sizes.get(path, 0) for path in TOP)
    if total > TOGETHER:
        yield "README.md", 1, f"has {total} bytes with ARCHITECTURE.md and HACKING.md; at most {TOGETHER}"


def fuzzer_offences(tree):
    page = "docs/internals/fuzzing.md"
    rows = set(re.findall(r"^\| `(\w+)` \|", read(tree.root, page), re.M)) if page in tree.files else set()
    there = {path[len("tests/fuzz/guided_"):-2] for path in tree.files if re.match(r"tests/fuzz/guided_\w+\.c$", path)}
    for name in sorted(there ^ rows):
        yield page, 1, f"has no row for the fuzzer {name}" if name in there else f"has a row for {name}, which is not a fuzzer"


def manual_offences(tree):
    """Pages that are named by manual pages (.BR dlctl (1)), and in texts (dlctl(1))."""
    there = {os.path.basename(path) for path in tree.files if path.startswith("client/man/")}
    for path in sorted(tree.files):
        if path.startswith("client/man/"):
            pattern = r"^\.[BIR]+ \(?((?:dataloaderd|dlctl|libdlclient)[\w\\.-]*) \(?\(([1-8])\)"
        elif path.startswith(("daemon/", "client/", "docs/", "systemd/", "config/")) and path.endswith((".c", ".h", ".py", ".md", ".service", ".conf")):
            pattern = r"\b((?:dataloaderd|dlctl|libdlclient)[\w.-]*)\(([1-8])\)"
        else:
            continue
        text = read(tree.root, path)
        for match in re.finditer(pattern, text, re.M):
            page = match.group(1).replace("\\", "") + "." + match.group(2)
            if page not in there:
                yield path, text.count("\n", 0, match.start()) + 1, f"{page} is not a manual page of ours"


def thread_offences(tree):
    """Names of threads of the daemon, "worker-%u" included; staging is a program of its own."""
    section = read(tree.root, "ARCHITECTURE.md").partition("\n## Threads\n")[2].partition("\n## ")[0] if "ARCHITECTURE.md" in tree.files else ""
    rows = set(re.findall(r"^\| ([\w-]+) \|", section, re.M)) - {"thread"}
    names = {}
    for path in sorted(tree.files):
        if path.startswith("daemon/") and not path.startswith(("daemon/staging/", "daemon/store/tree/")) and path.endswith(".c"):
            for name in re.findall(r'(?:thread_start|crew_run)\([^;"]*"([\w -]+)"', read(tree.root, path)):
                names.setdefault(name, path)
    for name in sorted(set(names) - rows):
        yield names[name], 1, f"starts a thread {name!r}, which has no row in ARCHITECTURE.md, Threads"
    for name in sorted(rows - set(names) - {"main", "worker-N"}):
        yield "ARCHITECTURE.md", 1, f"has a row for a thread {name!r}, which nobody starts"


def constant(tree, name):
    """The values that sources give to a name; only sums, products and shifts of numbers."""
    values = set()
    for path in tree.files:
        if path.startswith(("proto/", "daemon/", "client/", "packaging/")) and path.endswith((".c", ".h", ".py")):
            for text in re.findall(rf"^(?:#define {name} +|{name} = )([^/#\n]+)", read(tree.root, path), re.M):
                text = re.sub(r"(?<=[\da-fA-F])[uUlL]+", "", text).strip()
                if re.fullmatch(r"[\d\sx()<*+]+", text):
                    values.add(eval(text))  # noqa: digits, brackets and operators
    return values


def number_offences(tree):
    for path, pattern, name, unit in NUMBERS:
        said = re.search(pattern.replace(" ", r"\s+"), read(tree.root, path)) if path in tree.files else None
        found = constant(tree, name) if path in tree.files else set()
        if not said and not found:
            continue
        if not said or not found:
            yield path, 1, f"/{pattern}/ or {name} is not found: mend NUMBERS in tests/support/check_documents.py"
        elif WRITTEN.get(said.group(1), 0) * unit not in found and \
                int(re.sub(r"\D", "", said.group(1)) or 0) * unit not in found:
            yield path, 1, f"says {said.group(0)!r}, but {name} is {sorted(found)}"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    tree = Tree(root)
    documents = sorted(path for path in tree.files if path in TOP + OTHERS or (path.startswith("docs/") and path.endswith(".md")))
    n_offences = 0
    found = [*size_offences(tree, documents), *fuzzer_offences(tree), *number_offences(tree), *manual_offences(tree), *thread_offences(tree)]
    for path in documents:
        deep = path.startswith(DEEP)
        for number, line in prose(read(root, path)):
            found += [(path, number, text) for text in (*code_offences(tree, path, line, deep), *link_offences(tree, path, line))]
    for path, number, text in found:
        print(f"{path}:{number}: {text}")
        n_offences += 1
    print(f"{len(documents)} documents, {n_offences} offences")
    return 1 if n_offences or not documents else 0


if __name__ == "__main__":
    sys.exit(main())
