#!/usr/bin/env python3
"""Runs coverage-guided fuzzers one after the other, and says what came of each.

    run.py --seconds N [--beside N] [--runs N] [NAME...]     fuzz; without names: all that there are
    run.py --keep [NAME...]                                  take what was learned into the tree's corpus

Each starts from its corpus in the tree (tests/fuzz/corpus/NAME) and from what earlier runs learned
(build/fuzzer/corpus/NAME), where it leaves what it learns. What it finds (a crash, a sanitizer's word, a hang, a leak) is
kept as build/fuzzer/found/NAME-KIND-HASH, beside the log; then it goes on for the rest of its time, with three finds at
most. The status is 1 if anything was found.
"""
import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build", "fuzzer")
TREE = os.path.join(ROOT, "tests", "fuzz", "corpus")
FINDS_MAX = 3
KEPT_BYTES = 40 << 10  # of a fuzzer's corpus in the tree
KEPT_FILES = 400
UNIT_SECONDS = 60      # an input that takes longer is a hang, also on a machine that is busy

# What a fuzzer needs beside the usual: the longest input, further seeds, libFuzzer's own options.
TERMS = {
    "arrow": {"max_len": 9000},
    "control": {"max_len": 400, "options": ["-len_control=0"]},
    "decode": {"max_len": 20000, "seeds": ["tests/vectors/pictures"]},
    "excerpt": {"max_len": 4000, "seeds": ["tests/fuzz/corpus/sound"]},
    "parquet": {"max_len": 3000},
    "recipe": {"max_len": 400},
    "sound": {"max_len": 10000},
}


# Whose words a fuzzer of texts needs, beside those of its NAME.dict: families of kinds (tests/tools/print_kinds.c).
FAMILIES = {"recipe": ("pictures", "sounds", "collations", "fields"), "sampler": ("samplers",)}


def words_of(families):
    """The names of kinds, of their classes and arguments, examples, and choices."""
    printed = subprocess.run([os.path.join(BUILD, "tools", "print_kinds")], env=environment(), check=True, stdout=subprocess.PIPE)
    for kind in (kind for family in json.loads(printed.stdout) if family["family"] in families for kind in family["kinds"]):
        class_name = re.findall(r"\.(\w+)$", kind.get("like", ""))
        yield from (name + "(" for name in [kind["name"]] + kind.get("classes", []) + class_name)
        if len(kind["example"]) <= 60:      # libFuzzer's words have at most 64 bytes
            yield kind["example"]
        for argument in kind["arguments"]:
            yield from (argument[key] + "=" for key in ("name", "other_name") if key in argument)
            yield from argument.get("choices", [])


def dictionary_of(name):
    """The path of its dictionary, which is written here. None: it has no words."""
    path = os.path.join(ROOT, "tests", "fuzz", f"{name}.dict")
    lines = []
    if os.path.exists(path):
        with open(path, encoding="ascii") as file:
            lines = file.read().splitlines()
    if name in FAMILIES:
        lines += sorted({f'"{word}"' for word in words_of(FAMILIES[name])} - set(lines))
    if not lines:
        return None
    written = os.path.join(BUILD, f"{name}.dict")
    with open(written, "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")
    return written


def names_of_all():
    sources = glob.glob(os.path.join(ROOT, "tests", "fuzz", "guided_*.c"))
    return sorted(os.path.basename(path)[len("guided_"):-len(".c")] for path in sources)


def is_learned(path):
    """libFuzzer names inputs by their digest; what has another name was put there by hand."""
    return re.fullmatch(r"[0-9a-f]{40}", os.path.basename(path)) is not None


class Fuzzer:
    """One of them, and what is known of its run."""

    def __init__(self, name):
        self.name = name
        self.terms = TERMS.get(name, {})
        self.program = os.path.join(BUILD, "fuzz", f"guided_{name}")
        self.learned = os.path.join(BUILD, "corpus", name)
        self.kept = os.path.join(TREE, name)
        self.log_path = os.path.join(BUILD, "found", f"{name}.log")
        self.n_runs = self.n_edges = self.n_inputs = 0
        self.n_edges_all = 0
        self.finds = []
        os.makedirs(self.learned, exist_ok=True)
        os.makedirs(os.path.dirname(self.log_path), exist_ok=True)
        self.dictionary = None

    def command(self, seconds, runs):
        command = [self.program, f"-max_len={self.terms.get('max_len', 4096)}", f"-timeout={UNIT_SECONDS}",
                   f"-max_total_time={seconds}", "-print_final_stats=1", "-rss_limit_mb=4096",
                   f"-artifact_prefix={BUILD}/found/{self.name}-"]
        if runs:
            command.append(f"-runs={runs}")
        if self.dictionary:
            command.append(f"-dict={self.dictionary}")
        seeds = [self.kept] if os.path.isdir(self.kept) else []
        return command + self.terms.get("options", []) + [self.learned] + seeds + self.seeds()

    def seeds(self):
        return [os.path.join(ROOT, seed) for seed in self.terms.get("seeds", [])]

    def run(self, seconds, runs):
        end = time.monotonic() + seconds
        self.dictionary = dictionary_of(self.name)
        with open(self.log_path, "wb") as log:
            while True:
                left = max(1, round(end - time.monotonic()))
                begin = log.tell()
                status = subprocess.call(self.command(left, runs), cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL,
                                         stdout=log, stderr=subprocess.STDOUT)
                self.read_log(begin, status)
                if status == 0 or len(self.finds) >= FINDS_MAX or time.monotonic() + 1 > end:
                    return

    def read_log(self, begin, status):
        with open(self.log_path, "rb") as log:
            log.seek(begin)
            text = log.read().decode(errors="replace")
        runs = re.findall(r"number_of_executed_units: (\d+)", text) or re.findall(r"^#(\d+)\t", text, re.M)
        states = re.findall(r"cov: (\d+) .*corp: (\d+)/", text)
        loaded = re.search(r"Loaded 1 PC tables \((\d+) PCs\)", text)
        self.n_runs += int(runs[-1]) if runs else 0
        if states:
            self.n_edges, self.n_inputs = (int(number) for number in states[-1])
        if loaded:
            self.n_edges_all = int(loaded.group(1))
        if status != 0:
            path = re.findall(r"Test unit written to (\S+)", text)
            word = re.findall(r"^SUMMARY: (.*)$", text, re.M) or re.findall(r"^==\d+== ?ERROR: (.*)$", text, re.M)
            self.finds.append((os.path.relpath(path[-1], ROOT) if path else "no input left",
                               word[-1] if word else f"exit status {status}"))

    def keep(self):
        """The smallest inputs that reach what all of them reach, as far as there is room for them."""
        merged = os.path.join(BUILD, "merged", self.name)
        shutil.rmtree(merged, ignore_errors=True)
        os.makedirs(merged)
        os.makedirs(self.kept, exist_ok=True)
        lasting = [path for path in glob.glob(os.path.join(self.kept, "*")) if not is_learned(path)]
        for path in lasting + [path for seed in self.seeds() for path in glob.glob(os.path.join(seed, "*"))]:
            shutil.copy(path, os.path.join(merged, "lasting-" + os.path.basename(path)))  # what they reach is reached
        with open(self.log_path, "wb") as log:
            subprocess.call([self.program, "-merge=1", "-set_cover_merge=1", f"-timeout={UNIT_SECONDS}", merged, self.learned,
                             self.kept], cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, stdout=log,
                            stderr=subprocess.STDOUT)
        for path in glob.glob(os.path.join(self.kept, "*")):
            if is_learned(path):
                os.remove(path)
        room = KEPT_BYTES - sum(os.path.getsize(path) for path in lasting)
        paths = sorted(filter(is_learned, glob.glob(os.path.join(merged, "*"))), key=os.path.getsize)
        n_kept = 0
        for path in paths[:KEPT_FILES]:
            room -= os.path.getsize(path)
            if room < 0:
                break
            n_kept += 1
            shutil.copy(path, self.kept)
        print(f"{self.name:<10} {n_kept} of {len(paths)} inputs kept, beside {len(lasting)} that have names", flush=True)

    def line(self, seconds):
        return (f"{self.name:<10} {self.n_runs:>10} runs {self.n_runs / max(seconds, 1):>8.0f}/s   "
                f"{self.n_edges:>6} of {self.n_edges_all} edges   {self.n_inputs:>5} inputs   {len(self.finds)} finds")


def environment():
    env = dict(os.environ)
    env["ASAN_OPTIONS"] = "detect_leaks=1:allocator_may_return_null=1:handle_abort=1"
    env["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1"
    return env


def fuzz(fuzzer, options):
    begin = time.monotonic()
    fuzzer.run(options.seconds, options.runs)
    print(fuzzer.line(time.monotonic() - begin), flush=True)
    for path, word in fuzzer.finds:
        print(f"           found: {word}\n                  {path}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60, help="for each of them")
    parser.add_argument("--runs", type=int, default=0, help="inputs of each at most; 0: as many as the time allows")
    parser.add_argument("--beside", type=int, default=1, help="how many at a time")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()

    known = names_of_all()
    for name in options.names:
        if name not in known:
            sys.exit(f"run.py: {name} is unknown; there are {', '.join(known)}")
    fuzzers = [Fuzzer(name) for name in options.names or known]
    if options.keep:
        for fuzzer in fuzzers:
            fuzzer.keep()
        return
    with ThreadPoolExecutor(options.beside) as pool:
        list(pool.map(lambda fuzzer: fuzz(fuzzer, options), fuzzers))
    sys.exit(1 if any(fuzzer.finds for fuzzer in fuzzers) else 0)


if __name__ == "__main__":
    main()
