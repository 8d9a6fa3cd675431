#!/usr/bin/env python3
"""Makes tests/vectors/tokenizers: small tokenizers of each kind, as `tokenizers` trains and writes them, and its ids.

    python3 tests/support/make_tokenizer_vectors.py [FOLDER]     needs PyPI's tokenizers

NAME.json is a tokenizer; line i of NAME.ids.jsonl has the ids of the text in line i of texts.jsonl, with the special
tokens; versions.json says what wrote them. tests/formats/ compares the same kinds on a million texts.
"""
import json
import os
import random
import sys

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

LLAMA = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"

SIZE = 0  # of the vocabularies; 0: small ones

SENTENCES = [
    "The quick brown fox jumps over the lazy dog; it didn't look back, and they'll say WE'VE seen it 1,234 times.",
    "Der Zug nach Köln fährt heute außerplanmäßig um 17:45 Uhr von Gleis 12b ab.",
    "Où est la bibliothèque ? L'été dernier, nous étions à Besançon, près du château.",
    "El pingüino añil comió piñones en la montaña mientras llovía en Cádiz.",
    "Zażółć gęślą jaźń, a potem wróć do domu przed północą.", "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "İstanbul'da yağmurlu bir gün; ıspanak ve şeker almayı unutma.", "Trời hôm nay đẹp quá, chúng ta đi dạo nhé.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.", "Η γρήγορη αλεπού πηδά πάνω από τον σκύλο.",
    "שלום עולם, איזה יום יפה היום בירושלים.", "السلام عليكم، كيف حالك اليوم يا صديقي؟", "नमस्ते दुनिया, आज मौसम बहुत अच्छा है।",
    "สวัสดีชาวโลก วันนี้อากาศดีมาก", "今天天气很好，我们去公园散步吧。", "東京は今日も雨です。カタカナとひらがなも。",
    "안녕하세요 세계, 오늘 날씨가 참 좋네요.", "def f(x):\n    return [i ** 2 for i in range(x) if i % 3 == 0]  # done\n",
    "e\u0301te\u0301 n\u0303 A\u030a \u1e69 \u212b \ufb01n \u2460 \uff21\uff22 \u00bd", "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 ok \u2764\ufe0f!",
]


def texts():
    dice = random.Random(11)
    pools = [range(32, 127), range(0xa0, 0x250), list(range(0x300, 0x345)) + [97, 101, 0x915], range(0x2000, 0x2070),
             list(range(0x4e00, 0x4e40)) + [0x3000, 0xf900], list(range(0xac00, 0xac20)) + list(range(0x1100, 0x1200, 7)),
             range(0x900, 0xe00), [32, 10, 13, 9, 39, 0x2581, 97, 115, 49, 0x17f, 33, 0x85, 0xa0, 0xfffd, 0x200b],
             [point for point in range(0x110000) if not 0xd800 <= point < 0xe000]]
    words = ["<|endoftext|>", " [MASK] ", "[CLS]", "<s>", "'s", "'LL", "  \n\n ", "##a", "\u2581\u2581", "<0x0A>", "blank", "Bank"]
    made = list(SENTENCES)
    for _ in range(100):
        pool, other = dice.choice(pools), dice.choice(pools)
        made.append("".join(dice.choice(words) if dice.random() < 0.06 else
                            chr(dice.choice(pool if dice.random() < 0.7 else other)) for _ in range(dice.randrange(24))))
    return made + ["", " ", "a" * 60, "x" * 101, "ab" * 40, " " * 30, "\u0301" * 40 + "a", "a" + "\u0301\u0316\u0345" * 14]


def bert(lowercase):
    made = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.train_from_iterator(SENTENCES * 2, trainers.WordPieceTrainer(
        vocab_size=SIZE or 1400, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    made.add_special_tokens([AddedToken("[MASK]", lstrip=True)])
    return made


def byte_level(pre, normalizer=None, post=None, model=None, size=700, suffix=""):
    made = Tokenizer(model or models.BPE())
    made.pre_tokenizer = pre
    if normalizer:
        made.normalizer = normalizer
    kwargs = {"end_of_word_suffix": suffix} if suffix else {}
    made.train_from_iterator(SENTENCES * 2, trainers.BpeTrainer(
        vocab_size=SIZE or size, special_tokens=["<|endoftext|>", "<s>", "</s>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **kwargs))
    if post:
        made.post_processor = post
    return made


def cut(pattern, invert=False):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "removed" if invert else "isolated", invert=invert),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def sentencepiece(normalizer, pre):
    made = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    made.train_from_iterator(SENTENCES * 2, trainers.BpeTrainer(
        vocab_size=SIZE or 800, limit_alphabet=3000 if SIZE else 150, show_progress=False,
        special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]))
    state = json.loads(made.to_str())
    state["added_tokens"] = [token for token in state["added_tokens"] if not token["content"].startswith("<0x")]
    state["normalizer"], state["pre_tokenizer"] = None, None
    state["model"].update(byte_fallback=True, fuse_unk=True, unk_token="<unk>")
    made = Tokenizer.from_str(json.dumps(state))
    if normalizer:
        made.normalizer = normalizer
    if pre:
        made.pre_tokenizer = pre
    made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return made


def with_added_tokens():
    made = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), normalizers.NFC(), size=400)
    made.add_tokens([AddedToken("blank", single_word=True), AddedToken("an", single_word=True, normalized=False),
                     AddedToken("'s", rstrip=True), AddedToken("  ", normalized=False), AddedToken("e\u0301", lstrip=True),
                     AddedToken("<s", normalized=False), AddedToken("\u4e00\u4e01")])
    return made


def kinds():
    around = processors.RobertaProcessing(("</s>", 2), ("<s>", 1))
    begins = processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)])])
    meta = pre_tokenizers.Metaspace
    return {
        "bert": bert(True), "bert_cased": bert(False),
        "gpt2": byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), post=processors.ByteLevel()),
        "roberta": byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True), post=around),
        "llama3": byte_level(cut(LLAMA), post=begins, model=models.BPE(ignore_merges=True)),
        "qwen": byte_level(cut(LLAMA.replace("{1,3}", "")), normalizers.NFC()),
        "o200k": byte_level(cut(O200K)),
        "clip": byte_level(cut(CLIP, invert=True), normalizers.Sequence([
            normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]), around,
            models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>"), 900, "</w>"),
        "llama2": sentencepiece(normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]), None),
        "mistral": sentencepiece(None, meta(prepend_scheme="first", split=False)),
        "meta": sentencepiece(normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Strip()]),
                              pre_tokenizers.Sequence([meta(prepend_scheme="always"), pre_tokenizers.Digits(True),
                                                       pre_tokenizers.Punctuation("merged_with_next")])),
        "added": with_added_tokens(),
    }


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "vectors", "tokenizers")
    os.makedirs(folder, exist_ok=True)
    made = texts()
    with open(os.path.join(folder, "texts.jsonl"), "w") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in made)
    for name, tokenizer in kinds().items():
        path = os.path.join(folder, f"{name}.json")
        tokenizer.save(path, pretty=False)
        tokenizer = Tokenizer.from_file(path)
        with open(os.path.join(folder, f"{name}.ids.jsonl"), "w") as file:
            file.writelines(json.dumps({"ids": tokenizer.encode(text).ids}, separators=(",", ":")) + "\n" for text in made)
    with open(os.path.join(folder, "versions.json"), "w") as file:
        json.dump({"tokenizers": tokenizers.__version__}, file)


if __name__ == "__main__":
    main()
