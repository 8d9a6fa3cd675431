#!/usr/bin/env python3
"""Is each lock that is taken while another one is held in the table of ARCHITECTURE.md, "Locks"?  check_locks.py [ROOT]

Finds pairs (held, taken) in the sources of daemon, client and staging: within a function, and through the functions that it calls. A
lock is named after its struct and member, `ring.lock`, or, if it is a variable of a file, after file and variable, `log_limits.c:lock`.
A lock counts as held from where it is taken to the last place of the function that gives it back. A function that ends with a lock
taken, or that only gives one back, does this for its caller. Calls through pointers are not seen: such a pair is a row whose reason
begins with "callback".

Prints each pair that the table lacks, each row that no code has, each circle, and each lock whose comment says that it is a leaf though
another one is taken under it; ends with 1 if there is one.
"""
import os
import re
import sys

TOPS = ("proto", "daemon", "client/lib", "client/dlctl", "client/cuda")
PAGE = "ARCHITECTURE.md"
FUNCTION = re.compile(r"^(?!typedef |struct \w+ \{|enum |union |extern |#)[A-Za-z_][\w \*]*?\b(\w+)\(", re.M)
MACRO = re.compile(r"^#define ([a-z]\w*)\((?:[^\n]*\\\n)*[^\n]*", re.M)
CALL = re.compile(r"\b([A-Za-z_]\w*)\(")
LOCKING = re.compile(r"\bpthread_mutex_(lock|trylock|unlock)\(([^;]*?)\)(?=[;\s)!=&|])")
LEAF = re.compile(r"\bpthread_mutex_t (\w+);\s*/\*(?:(?!\*/).)*\b(?:leaf|no other lock is)\b", re.S)
HELPERS_MAX = 3  # functions that take a lock for each other's callers
ROW = re.compile(r"^\| `([\w.:]+)` \| `([\w.:]+)` \| ([^|]*) \|$", re.M)


def stripped(text):
    """Without comments and literals; every other character stays where it was."""
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'",
                  lambda match: re.sub(r"[^\n]", " ", match.group()), text, flags=re.S)


def end_of_block(text, at):
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, at):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.start()
    return len(text)


class Function:
    def __init__(self, path, name, text, is_local):
        self.path, self.name, self.text, self.is_local = path, name, text, is_local
        self.types = {variable: kind for kind, variable in re.findall(r"\bstruct (\w+) \*{0,2}(\w+)\b", text)}
        self.events = []  # (what, name of a lock or of a function), in the sequence of the text
        self.left = []  # of these, what holds for its caller after it: a lock is taken, or given back


def left_of(events):
    first = {lock: what for what, lock in reversed(events) if what != "call"}
    last = {lock: what for what, lock in events if what != "call"}
    return [(what, lock) for lock, what in sorted(last.items()) if first[lock] == what]


class Sources:
    def __init__(self, root):
        self.members, self.variables, self.functions, self.leaves = {}, {}, [], {}
        for top in TOPS:
            for folder, _, names in os.walk(os.path.join(root, top)):
                for name in sorted(names):
                    if name.endswith((".c", ".h")):
                        path = os.path.join(folder, name)
                        with open(path, encoding="utf-8", errors="replace") as source:
                            text = source.read()
                        self.read(os.path.relpath(path, root), stripped(text), text)
        self.local = {(f.path, f.name): f for f in self.functions}
        self.shared = {f.name: f for f in self.functions if not f.is_local}
        events = {function: self.events(function) for function in self.functions}
        for _ in range(HELPERS_MAX):
            for function in self.functions:
                function.events = [event for one in events[function]
                                   for event in [one] + (one[1].left if one[0] == "call" else [])]
            for function in self.functions:
                function.left = left_of(function.events)

    def read(self, path, text, whole):
        for match in re.finditer(r"\bstruct (\w+) \{", text):
            end = end_of_block(text, match.end() - 1)
            body = text[match.end():end]
            self.leaves.update((f"{match.group(1)}.{name}", path) for name in LEAF.findall(whole, match.end(), end))
            self.members.setdefault(match.group(1), {}).update(
                (name, kind) for kind, name in re.findall(r"\bstruct (\w+) \**(\w+)(?:\[[^\]]*\])?;", body))
        for kind, name in re.findall(r"^static struct (\w+) (\w+)(?: =|;)", text, re.M):
            self.variables[path, name] = kind
        for match in MACRO.finditer(text):
            self.functions.append(Function(path, match.group(1), match.group(), path.endswith(".c")))
        for match in FUNCTION.finditer(text):
            opening, end = text.find("{", match.end()), text.find(";", match.end())
            if opening >= 0 and not 0 <= end < opening:
                is_local = path.endswith(".c") and "static" in match.group().split("(")[0].split()
                self.functions.append(Function(path, match.group(1), text[match.start():end_of_block(text, opening) + 1], is_local))

    def lock(self, expression, function):
        parts = [re.sub(r"\[.*?\]", "", part) for part in re.split(r"->|\.", re.sub(r"^[&(\s]+|[)\s]+$", "", expression))]
        kind = function.types.get(parts[0]) or self.variables.get((function.path, parts[0]))
        if len(parts) == 1 or kind is None:
            return f"{os.path.basename(function.path)}:{'.'.join(parts)}"
        for part in parts[1:-1]:
            kind = self.members.get(kind, {}).get(part, f"{kind}.{part}")
        return f"{kind}.{parts[-1]}"

    def events(self, function):
        found, spans = [], []
        for match in LOCKING.finditer(function.text):
            found.append((match.start(), "give" if match.group(1) == "unlock" else "take", self.lock(match.group(2), function)))
            spans.append(match.span())
        for match in CALL.finditer(function.text):
            callee = self.local.get((function.path, match.group(1))) or self.shared.get(match.group(1))
            if callee and callee is not function and not any(start <= match.start() < end for start, end in spans):
                found.append((match.start(), "call", callee))
        return [(what, which) for _, what, which in sorted(found, key=lambda event: event[0])]

    def under(self, held, function, seen):
        """The locks that a function takes, itself or through others, while its caller holds `held`. A function that gives it back
        and takes it again does what lies between without it."""
        key = held, id(function)
        if key not in self.known:
            self.known[key] = set()  # of a function that calls itself
            events, out = function.events, False
            for at, (what, which) in enumerate(events):
                if which == held:
                    out = what == "give" and ("take", held) in events[at + 1:]
                elif not out and what == "take":
                    self.known[key].add(which)
                elif not out and what == "call" and id(which) not in seen:
                    self.known[key] |= self.under(held, which, seen | {id(function)})
        return self.known[key]

    def pairs(self):
        self.known, pairs = {}, {}
        for function in self.functions:
            for at, (what, held) in enumerate(function.events):
                if what != "take":
                    continue
                last = at
                for i in range(at + 1, len(function.events)):
                    if function.events[i] == ("take", held):
                        break
                    if function.events[i] == ("give", held):
                        last = i
                for then, which in function.events[at + 1:last if last > at else None]:
                    if then == "take" and which != held:
                        pairs.setdefault((held, which), f"{function.path}: {function.name}()")
                    for lock in sorted(self.under(held, which, frozenset({id(function)}))) if then == "call" else ():
                        pairs.setdefault((held, lock), f"{function.path}: {function.name}() through {which.name}()")
        return pairs


def circles(pairs):
    below = {}
    for held, lock in pairs:
        below.setdefault(held, set()).add(lock)
    for start in sorted(below):
        seen, todo = set(), [start]
        while todo:
            for lock in below.get(todo.pop(), ()):
                if lock == start:
                    yield start
                    todo.clear()
                    break
                if lock not in seen:
                    seen.add(lock)
                    todo.append(lock)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    with open(os.path.join(root, PAGE), encoding="utf-8") as page:
        section = page.read().partition("\n## Locks\n")[2].partition("\n## ")[0]
    rows = {(held, lock): why for held, lock, why in ROW.findall(section)}
    sources = Sources(root)
    pairs = sources.pairs()
    found = [f"{where}: takes {lock} while it holds {held}: not in {PAGE}, Locks" for (held, lock), where in sorted(pairs.items())
             if (held, lock) not in rows]
    found += [f"{PAGE}: {held} -> {lock}: no code takes them so" for (held, lock), why in sorted(rows.items())
              if (held, lock) not in pairs and not why.startswith("callback")]
    found += [f"{PAGE}: {lock} is in a circle of locks" for lock in circles(set(pairs) | set(rows))]
    found += [f"{sources.leaves[held]}: {held} is not a leaf: {lock} is taken under it" for held, lock in sorted(set(pairs) | set(rows))
              if held in sources.leaves]
    for text in found:
        print(text)
    print(f"{len(pairs)} pairs of locks, {len(found)} offences")
    return 1 if found or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
