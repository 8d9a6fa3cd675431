#!/usr/bin/env python3
"""Tokenizers that the installed `tokenizers` trains, on texts in all languages that the machine has (translations of programs, pages of
the manual, programs), and on characters drawn at random: every number is that of the library."""
import gettext
import glob
import gzip
import importlib.util
import os
import random
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from harness import BUILD, Skip, case, main
from pyclient import need

N_TEXTS = int(os.environ.get("TOKENIZER_TEXTS", "1000000"))  # for BERT's; a tenth of them for each other kind
N_HARD = 60000


def translations():
    for path in sorted(glob.glob("/usr/share/locale/*/LC_MESSAGES/*.mo")):
        try:
            with open(path, "rb") as file:
                yield from gettext.GNUTranslations(file)._catalog.values()
        except (OSError, UnicodeError, ValueError, IndexError):  # some are not well-formed
            pass


def manual():
    for path in sorted(glob.glob("/usr/share/man/**/*.gz", recursive=True))[::7]:
        try:
            with gzip.open(path, "rt", encoding="utf-8", errors="ignore") as file:
                yield from file.read().split("\n")
        except (OSError, EOFError):
            pass


def programs():
    for path in sorted(glob.glob("/usr/lib/python3*/**/*.py", recursive=True)):
        with open(path, encoding="utf-8", errors="ignore") as file:
            text = file.read()
        yield from (text[i:i + 500] for i in range(0, len(text), 500))


def is_text(text):
    return isinstance(text, str) and text.strip() and not any(0xD800 <= ord(c) < 0xE000 for c in text)


def collect(n):
    """Texts of the machine, and then the same pieces put together anew until there are enough."""
    texts = list({text[:2000]: None for source in (translations, manual, programs) for text in source() if is_text(text)})
    dice = random.Random(3)
    dice.shuffle(texts)
    found = texts[:n]
    while len(found) < n:
        found.append(dice.choice(texts)[:dice.randrange(1, 80)] + dice.choice(" \n-") + dice.choice(texts)[-dice.randrange(1, 80):])
    return found


def hard(vectors, n):
    """Characters of some scripts mixed with others, blanks of all kinds, and words that tokenizers treat as their own."""
    dice = random.Random(7)
    scripts = [(begin, begin + 0x100) for begin in range(0, 0x3300, 0x100)] + [(0x4E00, 0x4F00), (0xAC00, 0xAD00), (0xF900, 0xFFFE),
                                                                            (0x10000, 0x10200), (0x1D100, 0x1D200),
                                                                            (0x1F300, 0x1F700), (0x20000, 0x20100)]
    words = [text for text in vectors if text] + ["<|endoftext|>", " [MASK] ", "[CLS]", "<s>", "</s>", "'LL", "\u2581", "  \n\n "]
    for _ in range(n):
        two = dice.choice(scripts), dice.choice(scripts)
        yield "".join(dice.choice(words) if dice.random() < 0.02 else
                      chr(dice.randrange(*two[dice.random() < 0.3])) if dice.random() < 0.9 else dice.choice(" \n\r\t'\u00a0\u3000aA1.")
                      for _ in range(dice.randrange(50)))


def vectors_of(name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(HERE, "..", "support", f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ours(path, texts):
    blob = b"".join(struct.pack("<I", len(text)) + text for text in (text.encode() for text in texts))
    done = subprocess.run([os.path.join(BUILD, "tools", "tokenize_texts"), path], input=blob, stdout=subprocess.PIPE, check=True)
    found, at = [], 0
    numbers = memoryview(done.stdout).cast("I")
    for _ in texts:
        found.append(numbers[at + 1:at + 1 + numbers[at]].tolist())
        at += 1 + numbers[at]
    assert at == len(numbers)
    return found


def compare(path, texts):
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(path)
    for begin in range(0, len(texts), 50000):
        some = texts[begin:begin + 50000]
        theirs = tokenizer.encode_batch_fast(some)
        for text, ids, encoding in zip(some, ours(path, some), theirs):
            assert ids == encoding.ids, f"{path}, {text!a}: {ids}, the library has {encoding.ids}"


@case("a million texts and 60,000 hard ones have the tokens of BERT's tokenizer, and a tenth of them those of each other kind")
def _(box):
    need("tokenizers")
    import tokenizers
    make = vectors_of("make_tokenizer_vectors")
    texts = collect(N_TEXTS)
    if len(texts) < N_TEXTS:
        raise Skip("the machine has too few texts")
    print(f"        tokenizers {tokenizers.__version__}, {len(texts)} texts, {sum(map(len, texts))} characters")
    difficult = list(hard(make.texts(), N_HARD))
    make.SENTENCES = make.SENTENCES + random.Random(5).sample(texts, 20000)
    make.SIZE = 30000
    for name, tokenizer in make.kinds().items():
        path = box.path(f"{name}.json")
        tokenizer.save(path)
        compare(path, (texts if name == "bert" else texts[:N_TEXTS // 10]) + difficult)


@case("the tables of characters are those of the installed library")
def _(box):
    need("tokenizers")
    made = subprocess.run([sys.executable, os.path.join(HERE, "..", "support", "make_character_tables.py")], stdout=subprocess.PIPE,
                          check=True).stdout
    with open(os.path.join(HERE, "..", "..", "daemon", "tokenize", "characters", "character_tables.c"), "rb") as file:
        assert file.read() == made, "characters have changed: tests/support/make_character_tables.py > daemon/tokenize/generated/character_tables.c"


if __name__ == "__main__":
    main(tells_samples=False)
