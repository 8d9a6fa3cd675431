"""Parquet files byte by byte, so that any part of them can be wrong: what no writer writes.

A value is (type, bytes) of Thrift's compact protocol, a struct a dictionary {number of the field: value}; the numbers are those of
parquet.thrift. Whatever is given as `more` replaces what would be right."""
import struct as _struct

I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12
BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED = range(8)
REQUIRED, OPTIONAL, REPEATED = range(3)
PLAIN, RLE, RLE_DICTIONARY = 0, 3, 8
UNCOMPRESSED, SNAPPY, GZIP, ZSTD = 0, 1, 2, 6
DATA, DICTIONARY, DATA_2 = 0, 2, 3


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def zigzag(number):
    return varint((number << 1 ^ number >> 63) & (1 << 64) - 1)


def i32(number):
    return I32, zigzag(number)


def i64(number):
    return I64, zigzag(number)


def binary(text):
    raw = text.encode() if isinstance(text, str) else text
    return BINARY, varint(len(raw)) + raw


def record(fields):
    out, before = bytearray(), 0
    for number in sorted(fields):
        if fields[number] is None:
            continue
        kind, raw = fields[number]
        out += bytes([number - before << 4 | kind]) if number - before < 16 else bytes([kind]) + zigzag(number)
        out += raw
        before = number
    return STRUCT, bytes(out) + b"\0"


def row(values, kind=STRUCT, n=None):
    n = len(values) if n is None else n
    head = bytes([n << 4 | kind]) if n < 15 else bytes([0xf0 | kind]) + varint(n)
    return LIST, head + b"".join(raw for _, raw in values)


def numbers(values, form="<q"):
    return b"".join(_struct.pack(form, value) for value in values)


def texts(values):
    return b"".join(_struct.pack("<I", len(value)) + value for value in values)


def run(value, n, width=1):
    """`n` times the same value, of up to 8 * width bits."""
    return varint(n << 1) + value.to_bytes(width, "little")


def counted(levels):
    return _struct.pack("<I", len(levels)) + levels


def page(raw, n, encoding=PLAIN, kind=DATA, packed=None, more=None, inner=None):
    """A page of `raw` bytes, which are `packed` in the file."""
    packed = raw if packed is None else packed
    about = {DATA: {1: i32(n), 2: i32(encoding), 3: i32(RLE), 4: i32(RLE)}, DICTIONARY: {1: i32(n), 2: i32(encoding)},
             DATA_2: {1: i32(n), 2: i32(0), 3: i32(n), 4: i32(encoding), 5: i32(0), 6: i32(0)}}[kind]
    number = {DATA: 5, DICTIONARY: 7, DATA_2: 8}[kind]
    return record({1: i32(kind), 2: i32(len(raw)), 3: i32(len(packed)), number: record({**about, **(inner or {})}), **(more or {})})[1] + packed


def element(name, kind, repetition=REQUIRED, **more):
    return {1: i32(kind), 3: i32(repetition), 4: binary(name), **{int(key[1:]): value for key, value in more.items()}}


def column(name, pages, n, kind=INT64, repetition=REQUIRED, codec=UNCOMPRESSED, about=None, chunk=None, schema=None):
    """A leaf and its chunk. `schema`: its elements, if there are groups above it."""
    return {"name": name, "pages": pages, "n": n, "kind": kind, "codec": codec, "about": about or {}, "chunk": chunk or {},
            "schema": schema or [element(name, kind, repetition)]}


def file(columns, n_rows, footer=None, group=None, n_columns=None):
    """A file of one row group."""
    body, chunks, elements = b"PAR1", [], []
    for one in columns:
        about = record({1: i32(one["kind"]), 2: row([(I32, zigzag(PLAIN))], I32), 3: row([binary(one["name"])], BINARY),
                        4: i32(one["codec"]), 5: i64(one["n"]), 6: i64(len(one["pages"])), 7: i64(len(one["pages"])),
                        9: i64(len(body)), **one["about"]})
        chunks.append(record({2: i64(len(body)), 3: about, **one["chunk"]}))
        body += one["pages"]
        elements += [record(fields) for fields in one["schema"]]
    root = record({4: binary("schema"), 5: i32(len(columns) if n_columns is None else n_columns)})
    groups = row([record({1: row(chunks), 2: i64(len(body)), 3: i64(n_rows), **(group or {})})])
    tail = record({1: i32(2), 2: row([root] + elements), 3: i64(n_rows), 4: groups, **(footer or {})})[1]
    return body + tail + _struct.pack("<I", len(tail)) + b"PAR1"
