#!/usr/bin/env python3
"""Writes daemon/tokenize/generated/character_tables.c: make_character_tables.py > daemon/tokenize/generated/character_tables.c

What characters are to Hugging Face's tokenizers follows several versions of Unicode at once: letters and numbers are those
of its regular expressions, lower case is Rust's, normal forms and BERT's categories are older ones. So each property is
asked of the installed `tokenizers` (0.23), character by character. Only the order of combining marks comes from Python's
unicodedata, for those that `tokenizers` reorders.
"""
import sys
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

POINTS = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]
HANGUL = range(0xAC00, 0xAC00 + 11172)


def of_pattern(pattern):
    """The characters that a class of the regular expressions matches."""
    split = pre_tokenizers.Split(Regex(pattern), "removed")
    found = set()
    for i in range(0, len(POINTS), 256):
        some = POINTS[i:i + 256]
        kept = set("".join(text for text, _ in split.pre_tokenize_str("".join(map(chr, some)))))
        found |= {point for point in some if chr(point) not in kept}
    return found


def changed_by(normalizer):
    texts = {point: normalizer.normalize_str(chr(point)) for point in POINTS}
    return {point: text for point, text in texts.items() if text != chr(point)}


def pieces_between(pre_tokenizer):
    return {point: len(pre_tokenizer.pre_tokenize_str("a" + chr(point) + "b")) for point in POINTS}


def bert(**asked):
    return normalizers.BertNormalizer(**{**dict(clean_text=False, handle_chinese_chars=False, strip_accents=False,
                                                lowercase=False), **asked})


def ranks_of_marks(nfd):
    """Of canonical combining classes only the order counts. A mark that `tokenizers` does not know is not reordered."""
    low, high = "\u0334", "\u0345"  # classes 1 and 240
    known = {}
    for point in POINTS:
        order = unicodedata.combining(chr(point))
        if order == 0 or point in nfd:
            continue
        other = high if order < 240 else low
        pair = other + chr(point) if order < 240 else chr(point) + other
        if order == 240 or order == 1 or normalizers.NFD().normalize_str("a" + pair) == "a" + pair[::-1]:
            known[point] = order
    ranks = {order: i + 1 for i, order in enumerate(sorted(set(known.values())))}
    assert len(ranks) < 64
    return {point: ranks[order] for point, order in known.items()}


def compositions(nfd):
    """Pairs that NFC makes one character; those of Hangul are computed."""
    for point, text in sorted(nfd.items()):
        once = unicodedata.decomposition(chr(point)).split()
        if point in HANGUL or len(once) != 2:
            continue
        pair = chr(int(once[0], 16)) + chr(int(once[1], 16))
        if normalizers.NFC().normalize_str(pair) == chr(point):
            yield ord(pair[0]), ord(pair[1]), point


def collect():
    nfd, nfkd, nfc, nfkc = (changed_by(getattr(normalizers, name)()) for name in ("NFD", "NFKD", "NFC", "NFKC"))
    lower = changed_by(normalizers.Lowercase())
    clean = changed_by(bert(clean_text=True))
    marks = changed_by(bert(strip_accents=True))
    between = pieces_between(pre_tokenizers.BertPreTokenizer())
    words = pieces_between(pre_tokenizers.Whitespace())
    digits = pieces_between(pre_tokenizers.Digits())
    ranks = ranks_of_marks(nfd)
    pairs = sorted(compositions(nfd))
    seconds = {pair[1] for pair in pairs} | set(range(0x1161, 0x1176)) | set(range(0x11A7, 0x11C3))
    sets = [
        ("LETTER", of_pattern(r"\p{L}")),
        ("NUMBER", of_pattern(r"\p{N}")),
        ("SPACE", of_pattern(r"\s")),
        ("MARK", of_pattern(r"\p{M}")),
        ("PUNCTUATION", of_pattern(r"\p{P}")),
        ("SYMBOL", of_pattern(r"\p{S}")),
        ("UPPER", of_pattern(r"\p{Lu}")),
        ("LOWER", of_pattern(r"\p{Ll}")),
        ("TITLE", of_pattern(r"\p{Lt}")),
        ("MODIFIER", of_pattern(r"\p{Lm}")),
        ("OTHER_LETTER", of_pattern(r"\p{Lo}")),
        ("BERT_PUNCTUATION", {point for point, n in between.items() if n == 3}),
        ("BERT_CONTROL", {point for point, text in clean.items() if text == ""}),
        ("BERT_SPACE", {point for point, text in clean.items() if text == " "} | {0x20}),
        ("BERT_MARK", {point for point, text in marks.items() if text == ""}),
        ("CHINESE", set(changed_by(bert(handle_chinese_chars=True)))),
        ("ACCENT", {point for point, text in changed_by(normalizers.StripAccents()).items() if text == ""}),
        ("BLANK", {point for point, n in between.items() if n == 2}),
        ("NUMERIC", {point for point, n in digits.items() if n == 3}),
        ("WORD", {point for point, n in words.items() if n == 1}),
        ("LOWERS", set(lower)),
        ("DECOMPOSES", set(nfd)),
        ("DECOMPOSES_MORE", set(nfkd)),
        ("NFC_UNSAFE", set(nfc) | set(ranks) | seconds),
        ("NFKC_UNSAFE", set(nfkc) | set(ranks) | seconds),
        ("DECIMAL", of_pattern(r"\p{Nd}")),
    ]
    return sets, ranks, nfd, nfkd, lower, pairs


def lines(numbers, width=20, form="%d"):
    numbers = list(numbers)
    for i in range(0, len(numbers), width):
        yield "        " + ", ".join(form % n for n in numbers[i:i + width]) + ","


def write_classes(sets, ranks):
    records, record_of = [], {}
    blocks, block_of, index = [], {}, []
    values = [0] * 0x110000
    for i, (_, points) in enumerate(sets):
        for point in points:
            values[point] |= 1 << i
    for point, rank in ranks.items():
        values[point] |= rank << 26
    for value in sorted(set(values)):
        record_of[value] = len(records)
        records.append(value)
    assert len(records) <= 256
    for begin in range(0, 0x110000, 128):
        block = tuple(record_of[value] for value in values[begin:begin + 128])
        if block not in block_of:
            block_of[block] = len(blocks)
            blocks.append(block)
        index.append(block_of[block])
    print(f"const uint32_t CHARACTER_CLASSES[{len(records)}] = {{")
    print("\n".join(lines(records, 10, "0x%08x")))
    print("};\n")
    print(f"const uint16_t CHARACTER_BLOCKS[{len(index)}] = {{")
    print("\n".join(lines(index)))
    print("};\n")
    print(f"const uint8_t CHARACTER_PLACES[{len(blocks)}][128] = {{")
    for block in blocks:
        print("        {\n" + "\n".join(lines(block, 32)) + "\n        },")
    print("};\n")


def write_map(name, texts):
    pool, rows = [], []
    for point, text in sorted(texts.items()):
        rows.append(f"{{ 0x{point:x}, {len(pool)}, {len(text)} }}")
        pool += [ord(c) for c in text]
    assert len(pool) < 65536
    print(f"static const uint32_t {name}_POINTS[] = {{")
    print("\n".join(lines(pool, 14, "0x%x")))
    print("};\n")
    print(f"static const struct character_row {name}_ROWS[] = {{")
    for i in range(0, len(rows), 6):
        print("        " + ", ".join(rows[i:i + 6]) + ",")
    print("};\n")
    print(f"const struct character_map CHARACTER_{name} = {{ {name}_ROWS, {len(rows)}, {name}_POINTS }};\n")


def main():
    sets, ranks, nfd, nfkd, lower, pairs = collect()
    if sys.argv[1:] == ["--names"]:
        for i, (name, _) in enumerate(sets):
            print(f"#define CHARACTER_{name} (1u << {i})")
        return
    print("/* Made by tests/support/make_character_tables.py; do not edit. */\n")
    print("/* clang-format off */")
    print('#include "daemon/tokenize/generated/character_tables.h"\n')
    write_classes(sets, ranks)
    write_map("DECOMPOSED", {point: text for point, text in nfd.items() if point not in HANGUL})
    write_map("DECOMPOSED_MORE",
              {point: text for point, text in nfkd.items() if point not in HANGUL and nfd.get(point) != text})
    write_map("LOWERED", lower)
    print(f"const struct character_pair CHARACTER_PAIRS[{len(pairs)}] = {{")
    for i in range(0, len(pairs), 5):
        print("        " + ", ".join("{ 0x%x, 0x%x, 0x%x }" % pair for pair in pairs[i:i + 5]) + ",")
    print("};\n")
    print(f"const size_t N_CHARACTER_PAIRS = {len(pairs)};")


if __name__ == "__main__":
    main()
