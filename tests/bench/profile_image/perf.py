"""Samples of running processes by `perf record`, with the names of inlined functions by addr2line."""
import collections
import os
import re
import subprocess

from profile_image import stages

HZ = 1999  # not a multiple of what timers like
MMAP = re.compile(r"PERF_RECORD_MMAP2? (-?\d+)/\d+: \[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (?:0x)?([0-9a-f]+) .*: (\S+) (\S+)$")
SAMPLE = re.compile(r"^\s*(.+?)\s+(\d+)/(\d+)\s+([0-9a-f]+)\s+(.*)\s+\((.*)\)$")


def works(folder):
    """May and can we? None, or why not."""
    try:
        done = subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-o", os.path.join(folder, "try"), "true"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    except FileNotFoundError:
        return "perf is not installed"
    return None if done.returncode == 0 else done.stdout.strip().split("\n")[-1]


def record(path, pids, seconds):
    subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HZ), "-o", path, "-p", ",".join(map(str, pids)), "--",
                    "sleep", str(seconds)], check=True)


def record_command(path, command):
    """Runs it; returns what it prints."""
    done = subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HZ), "-o", path, "--", *command], check=True,
                          stdout=subprocess.PIPE, text=True)
    return done.stdout


def script(path):
    """(thread's name, pid, is it the first thread, address, symbol, file) of each sample, and where each process mapped
    which file."""
    done = subprocess.run(["perf", "script", "-i", path, "--show-mmap-events", "-F", "comm,pid,tid,ip,sym,dso"], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    samples, maps = [], collections.defaultdict(list)
    for line in done.stdout.split("\n"):
        mapped = MMAP.search(line)
        if mapped:
            pid, start, length, offset, flags, file = mapped.groups()
            if "x" in flags:
                maps[file].append((int(pid), int(start, 16), int(start, 16) + int(length, 16), int(offset, 16)))
            continue
        sample = SAMPLE.match(line)
        if sample:
            thread, pid, tid, address, symbol, file = sample.groups()
            samples.append((thread, int(pid), pid == tid, int(address, 16), symbol, file))
    return samples, maps


def offset_in(maps, pid, file, address):
    """Address -> place in the file; our programs are linked such that this is what addr2line wants."""
    for owner, start, end, offset in maps.get(file, ()):
        if owner in (pid, -1) and start <= address < end:
            return address - start + offset
    return None


def chains(program, offsets, root):
    """offset -> ["file:function", ...], what was inlined first."""
    done = subprocess.run(["addr2line", "-a", "-i", "-f", "-e", program], input="\n".join(map(hex, offsets)), check=True,
                          stdout=subprocess.PIPE, text=True)
    found, at = {}, None
    lines = iter(done.stdout.split("\n"))
    for line in lines:
        if line.startswith("0x"):
            at = int(line, 16)
            found[at] = []
        elif line:
            file = os.path.relpath(os.path.normpath(next(lines).partition(":")[0]), root)
            found[at].append(f"{file}:{line}")
    return found


def library_of(file):
    """As the table of stages calls code that is not ours."""
    return "kernel" if file.startswith("[") and file != "[vdso]" else os.path.basename(file)


def shares(path, root, but_first=False):
    """stage -> share of the recorded CPU time, and the same of each (stage, place). but_first: without the processes' first
    threads."""
    samples, maps = script(path)
    samples = [sample for sample in samples if not (but_first and sample[2])]
    places = {}
    ours = collections.defaultdict(set)
    for _, pid, _, address, _, file in samples:
        offset = offset_in(maps, pid, file, address)
        if file.startswith(root) and offset is not None:
            ours[file].add(offset)
    for file, offsets in ours.items():
        places[file] = chains(file, sorted(offsets), root)
    by_stage, by_place = collections.Counter(), collections.Counter()
    for thread, pid, _, address, symbol, file in samples:
        if file in places:
            chain = places[file].get(offset_in(maps, pid, file, address), [])
        else:
            chain = [f"{library_of(file)}:{symbol}"]
        stage = stages.stage_of(thread, chain)
        by_stage[stage] += 1 / len(samples)
        by_place[(stage, stages.place_of(chain))] += 1 / len(samples)
    return by_stage, by_place
