#!/usr/bin/env python3
"""Which calls does no scenario reach?

    unreached.py PROGRAM REACHED LIST

PROGRAM is the test program: its code shows every call that goes through a wrapper. REACHED is what it has written with
--reached. A call is a line of the source and what it calls; inlined, it may lie at several places, and one of them is
enough. Prints for each floor how many were made to fail; LIST gets the others, line by line: "after" was passed only
after another failure, and so did not fail alone.
"""
import collections
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ALLOCATIONS = {"malloc", "calloc", "realloc", "reallocarray", "aligned_alloc", "posix_memalign"}
CALL = re.compile(r"^\s*([0-9a-f]+):.*\bcall\w*\s+[0-9a-f]+ <(?:__wrap_)?(\w+)(?:@plt)?>")
AT = re.compile(r"^\s*([0-9a-f]+):")
PRODUCT = re.compile(r"(?:^|/)((?:daemon|client/(?:lib|cuda)|proto)/[^:]+\.[ch]):(\d+)")


def wrapped():
    with open(os.path.join(ROOT, "tests", "faults", "calls.h"), encoding="utf-8") as file:
        return set(re.findall(r"^(?:ERRNO|NEGATIVE|POSITIVE|AFTER|BYTES|VALUE|HAND)\((\w+)", file.read(), re.M))


def calls_of(program):
    """Where each call returns to -> what it calls."""
    names = {f"__wrap_{name}" for name in wrapped()} | ALLOCATIONS
    found, called = {}, None
    with subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", program], stdout=subprocess.PIPE,
                          universal_newlines=True) as objdump:
        for line in objdump.stdout:
            at = AT.match(line)
            if not at:
                continue
            if called:
                found[int(at.group(1), 16)] = called
            call = CALL.match(line)
            whole = "__wrap_" + call.group(2) if call and "<__wrap_" in line else call and call.group(2)
            called = call.group(2) if call and whole in names else None
    return found


def places_of(program, addresses):
    """Each address -> (file, line) of the product; what lies elsewhere is left out."""
    text = "".join(f"{address - 1:x}\n" for address in addresses)
    out = subprocess.run(["addr2line", "-e", program], input=text, stdout=subprocess.PIPE, universal_newlines=True,
                         check=True).stdout
    places = {}
    for address, line in zip(addresses, out.splitlines()):
        place = PRODUCT.search(line)
        if place and "/tests/" not in line:
            places[address] = (place.group(1), int(place.group(2)))
    return places


def main():
    program, reached, listing = sys.argv[1:]
    with open(reached, encoding="ascii") as file:
        how_at = {int(address, 16): how for address, how in (line.split() for line in file)}
    calls = calls_of(program)
    states = {}
    for address, place in places_of(program, sorted(calls)).items():
        states.setdefault((*place, calls[address]), set()).add(how_at.get(address, "never"))
    totals, lines = collections.Counter(), []
    failed, after = collections.Counter(), collections.Counter()
    for (path, number, call), hows in sorted(states.items()):
        floor = "/".join(path.split("/")[:2]) if path.count("/") > 1 else path.split("/")[0]
        totals[floor] += 1
        failed[floor] += "failed" in hows
        if "failed" not in hows:
            after[floor] += "passed" in hows
            lines.append(f"{'after' if 'passed' in hows else 'never'} {path}:{number} {call}\n")
    with open(listing, "w", encoding="utf-8") as file:
        file.writelines(lines)
    print("calls that failed, by floor (a line of the source each):")
    for floor in sorted(totals):
        rest = f"; {after[floor]} more were passed after another failure" if after[floor] else ""
        print(f"  {floor:18} {failed[floor]:5} of {totals[floor]:5}{rest}")
    print(f"  {'all':18} {sum(failed.values()):5} of {sum(totals.values()):5}; the others: {os.path.relpath(listing, ROOT)}")


if __name__ == "__main__":
    main()
