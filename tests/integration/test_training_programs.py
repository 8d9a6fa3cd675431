#!/usr/bin/env python3
"""docs/training.md: its programs are the files of docs/training/, and each of them trains on what the page says.

They run with the interpreter that runs this test. What is not installed is skipped."""
import collections
import json
import math
import os
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, case, equal, identity_pixels, main, png, write
from token_files import write_tokens
from trainers import need, run, run_torch, torchrun_command

PAGE = os.path.join(ROOT, "docs", "training.md")
PROGRAMS = os.path.join(ROOT, "docs", "training")
TOKENIZER = os.path.join(ROOT, "tests", "vectors", "tokenizers", "gpt2.json")


def program(name):
    return os.path.join(PROGRAMS, name + ".py")


def finite(lines):
    """Each line ends with a loss that is a number."""
    for line in lines:
        match = re.search(r" loss (\S+)$", line)
        assert match and math.isfinite(float(match.group(1))), line


def numbers(line):
    """{"samples": 60, ...} of a line such as "epoch 0 60 samples 12 rows loss 0.5"."""
    return {name: int(value) for value, name in re.findall(r"(\d+) ([a-z]+)", line)}


@case("every program of the page is a file of docs/training/, and every file stands on the page")
def _(_box):
    with open(PAGE, encoding="utf-8") as page:
        blocks = re.findall(r"^```python\n(.*?)^```$", page.read(), re.M | re.S)
    files = []
    for name in os.listdir(PROGRAMS):
        if name.endswith(".py"):
            with open(os.path.join(PROGRAMS, name), encoding="utf-8") as file:
                files.append(file.read())
    equal(sorted(blocks), sorted(files), "programs")


@case("GPT pre-training: two token files in the shares that are said, each sample once over a stop and another world size")
def _(box):
    need("torch")
    dice = random.Random(1)
    for name, n_documents in (("web", 161), ("books", 73)):  # 201 samples and 91
        write_tokens(box.path("tokens", name), [[dice.randrange(512) for _ in range(80)] for _ in range(n_documents)])
    daemon = box.daemon({name: {"path": box.path("tokens", name), "format": "megatron", "sequence_length": "64"}
                         for name in ("web", "books")})
    checkpoint = box.path("checkpoint")
    lines = run_torch(box, program("gpt_blend"), checkpoint, 10, daemon=daemon, processes=2)
    equal(len(lines), 20, "steps of two ranks")
    rest = run_torch(box, program("gpt_blend"), checkpoint, 1000, daemon=daemon, processes=1)
    equal(len(rest), 40, "steps of one rank")
    finite(lines + rest)
    samples, parts = ([int(word) for line in lines + rest for word in re.search(name + r" \[(.*?)\]", line).group(1).split(",")]
                      for name in ("samples", "parts"))
    equal(len(set(samples)), 240, "samples, each once")
    equal(collections.Counter(parts), {0: 168, 1: 72}, "shares")
    equal(collections.Counter(parts[:80]), {0: 56, 1: 24}, "shares of the first part")
    equal(all((sample >= 201) == part for sample, part in zip(samples, parts)), True, "each sample is of its part")


@case("instruction tuning: all tokens of all samples are in packs, and of each sample the answer is learned")
def _(box):
    need("torch", "numpy")
    dice = random.Random(2)
    words = [f"w{i}" for i in range(50)]
    rows = []
    for _ in range(60):
        prompt = "Question: " + " ".join(dice.choices(words, k=dice.randrange(1, 5))) + "\n"
        rows.append({"prompt": prompt, "text": prompt + "Answer: " + " ".join(dice.choices(words, k=dice.randrange(1, 16)))})
    write(box.path("chats.jsonl"), "".join(json.dumps(row) + "\n" for row in rows).encode())
    with open(TOKENIZER, "rb") as file:
        write(box.path("tokenizers", "chat.json"), file.read())
    daemon = box.daemon({"chats": {"path": box.path("chats.jsonl"), "format": "jsonl"}}, tokenizers=box.path("tokenizers"))
    n_tokens = {name: sum(line["fields"][name]["shape"][0] for line in daemon.read("chats", pipeline=f"{name}: tokens(chat, truncation=none)"))
                for name in ("text", "prompt")}
    least_rows = -(-n_tokens["text"] // 256)
    for _ in range(2):      # the second run finds the lengths
        lines = run_torch(box, program("instruction_packing"), box.path("lengths.npy"), daemon=daemon)
        equal(len(lines), 2, "epochs")
        finite(lines)
        for line in lines:
            told = numbers(line)
            equal((told["samples"], told["tokens"], told["learned"]), (60, n_tokens["text"], n_tokens["text"] - n_tokens["prompt"]), line)
            assert least_rows <= told["rows"] <= least_rows + 1, f"{line}: {least_rows} rows are enough"
            assert 60 <= told["pieces"] <= 60 + told["rows"], line


def coco(box):
    """A daemon with 30 pictures, of which one is damaged, and how many boxes the others have."""
    dice = random.Random(3)
    content = {"images": [], "annotations": [], "categories": [{"id": number, "name": f"c{number}"} for number in (3, 8, 17)]}
    n_boxes = 0
    for i in range(30):
        width, height = dice.randint(20, 60), dice.randint(20, 60)
        picture = png(width, height, identity_pixels(i, width, height))
        write(box.path("pictures", f"{i}.png"), picture[:len(picture) // 2] if i == 13 else picture)
        content["images"].append({"id": i, "file_name": f"{i}.png", "width": width, "height": height})
        for _ in range(dice.randrange(4)):      # some pictures have none
            x, y = dice.randrange(width - 9), dice.randrange(height - 9)
            content["annotations"].append({"id": len(content["annotations"]), "image_id": i, "category_id": dice.choice((3, 8, 17)),
                                           "bbox": [x, y, dice.randint(4, 9), dice.randint(4, 9)]})
            n_boxes += i != 13
    write(box.path("a.json"), json.dumps(content).encode())
    return box.daemon({"coco": {"path": box.path("pictures"), "format": "coco", "annotations": box.path("a.json")}}), n_boxes


@case("detection: pictures of any size are padded, a damaged one is left out, and boxes come with their pictures")
def _(box):
    need("torch")
    daemon, n_boxes = coco(box)
    lines = run_torch(box, program("detection"), daemon=daemon)
    equal(len(lines), 2, "epochs")
    finite(lines)
    for line in lines:
        told = numbers(line)
        equal((told["pictures"], told["skipped"], told["boxes"]), (29, 1, n_boxes), line)


@case("detection with own code: its function makes stacked targets of lists of boxes")
def _(box):
    need("torch", "numpy")
    daemon, n_boxes = coco(box)
    lines = run_torch(box, program("detection_own"), daemon=daemon)
    equal(len(lines), 2, "epochs")
    finite(lines)
    for line in lines:
        told = numbers(line)
        equal((told["pictures"], told["skipped"]), (29, 1), line)
        assert 0.8 * n_boxes <= told["cells"] <= n_boxes, line     # two objects may have their centre in one cell


@case("recipe A1: pictures come three times in a row and mixed, and an epoch is as long as timm's")
def _(box):
    need("torch", "numpy")
    daemon = box.daemon({"photos": box.folder_of_pictures("photos", 530, n_classes=7, width=40, height=36)})
    lines = run(box, torchrun_command(box, program("resnet_a1"), 7), daemon)
    equal(len(lines), 4, "epochs of two ranks")
    finite(lines)
    for line in lines:
        told = numbers(line)
        equal(told["samples"], 256, line)                   # half of 512, all of them in whole batches
        assert 85 <= told["different"] <= 256, line         # of three in a row a rank gets one or two
        assert 0 < told["mixed"] < 256, line


@case("DINO: two large crops and four small ones of the same pictures")
def _(box):
    need("torch", "numpy")
    daemon = box.daemon({"photos": box.folder_of_pictures("photos", 60, n_classes=3, width=64, height=56)})
    lines = run_torch(box, program("dino"), daemon=daemon)
    equal(len(lines), 2, "epochs")
    finite(lines)
    for line in lines:
        told = numbers(line)
        equal((told["pictures"], told["crops"]), (56, 56 * 6), line)


main()
