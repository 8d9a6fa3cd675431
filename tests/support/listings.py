"""What listings hold, as Python's own readers see it, in the words of `dlctl --format json read`."""
import csv
import hashlib
import json
import struct
from json.decoder import scanstring

FORMATS = {bool: ("bool", "?"), int: ("int64", "q"), float: ("float64", "d")}


def raw_members(line):
    """{name: (value, its JSON as written)} of an object; of a name that comes twice the last one."""
    members, at, decoder = {}, line.index("{") + 1, json.JSONDecoder()

    def skip(at, blanks=" \t\r\n"):
        while line[at] in blanks:
            at += 1
        return at

    at = skip(at)
    while line[at] != "}":
        name, at = scanstring(line, at + 1)
        at = skip(at, " \t\r\n:")
        value, end = decoder.raw_decode(line, at)
        members[name] = (value, line[at:end])
        at = skip(end, " \t\r\n,")
    return members


def shape_of(value):
    """Of nested lists of numbers; None if they are something else."""
    if type(value) in FORMATS:
        return []
    if not isinstance(value, list):
        return None
    shapes = [shape_of(element) for element in value]
    if None in shapes or any(shape != shapes[0] for shape in shapes):
        return None
    return [len(value)] + (shapes[0] if shapes else [])


def flat(value):
    return [element for part in value for element in flat(part)] if isinstance(value, list) else [value]


def told_bytes(content):
    return {"dtype": "bytes", "shape": [len(content)], "sha256": hashlib.sha256(content).hexdigest()}


def told_text(text):
    return {**told_bytes(text.encode()), "dtype": "text"}


def told_texts(texts):
    """A list of text: the hash is over the texts, each with a NUL after it."""
    return {**told_bytes(b"".join(text.encode() + b"\0" for text in texts)), "dtype": "texts", "shape": [len(texts)]}


def is_texts(value):
    return isinstance(value, list) and all(isinstance(element, str) for element in value)


def told_array(value, kind, shape):
    dtype, letter = FORMATS[kind]
    content = b"".join(struct.pack("<" + letter, element) for element in flat(value))
    return {"dtype": dtype, "shape": shape, "sha256": hashlib.sha256(content).hexdigest()}


def kind_of(values):
    """The type of a column's numbers."""
    kinds = {type(element) for value in values for element in flat(value)}
    return float if kinds == {int, float} else kinds.pop() if kinds else int


def told_json(rows):
    """What is expected of rows as raw_members() has them: a list of {name: told}."""
    names = {name for row in rows for name in row}
    told = [{} for _ in rows]
    for name in names:
        cells = [row.get(name, (None, "null")) for row in rows]
        values = [value for value, _ in cells if value is not None]
        if not values:
            continue  # null in all lines
        shapes = [shape_of(value) for value in values]
        longest = max((shape for shape in shapes if shape is not None), key=len, default=[])
        is_even = None not in shapes and all(shape[1:] == longest[1:] or 0 in shape for shape in shapes)
        kind = kind_of(values) if is_even else None
        for row, (value, raw) in zip(told, cells):
            if value is None:
                row[name] = None
            elif all(isinstance(value, str) for value in values):
                row[name] = told_text(value)
            elif all(map(is_texts, values)) and any(values):
                row[name] = told_texts(value)
            elif is_even and longest:
                row[name] = told_array(value, kind, shape_of(value)[:1] + longest[1:])
            elif is_even:
                row[name] = {"dtype": FORMATS[kind][0], "shape": [], "value": kind(value)}
            else:
                row[name] = told_bytes(raw.encode())
    return told


def number_of(text):
    """A cell as pandas would read it; a str if it is not a number."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            if str(int(text)) == text if kind is int else not text.lstrip("-").isdigit():  # "007" is a text
                return kind(text)
        except ValueError:
            pass
    return text


def told_csv(rows):
    """The same for rows of csv.DictReader."""
    told = [{} for _ in rows]
    for name in rows[0]:
        values = [number_of(row[name]) for row in rows if row[name] != ""]
        kinds = {type(value) for value in values}
        kind = float if kinds == {int, float} else kinds.pop() if len(kinds) == 1 else str
        for row, cells in zip(told, rows):
            if kind is str:
                row[name] = told_text(cells[name])
            elif cells[name] == "":
                row[name] = None
            else:
                row[name] = {"dtype": FORMATS[kind][0], "shape": [], "value": kind(number_of(cells[name]))}
    return told


def read_jsonl(path):
    with open(path, encoding="utf-8", newline="\n") as file:
        return [raw_members(line) for line in file if line.strip()]


def read_csv(path, **terms):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, **terms))


def without_text(fields):
    """`dlctl read` shows the beginning of a text too."""
    return {name: {key: part for key, part in field.items() if key not in ("text", "texts")} if field else field
            for name, field in fields.items()}
