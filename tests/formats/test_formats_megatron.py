#!/usr/bin/env python3
"""Megatron: token files that the installed megatron-core writes, and the samples of its own GPTDataset and BlendedDataset. The script
that made tests/vectors/megatron makes them."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from harness import case, equal, indices, main
from token_files import Tokens, dataset_of, lines_of_gpt, samples_of, told
from pyclient import need


@case("megatron-core: documents and GPT samples, alone and in blends")
def _(box):
    need("megatron")
    from importlib.metadata import version
    folder = box.path("megatron")
    subprocess.run([sys.executable, os.path.join(HERE, "..", "support", "make_megatron_vectors.py"), folder], check=True, timeout=500,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(f"        megatron-core {version('megatron-core')}")
    lines = lines_of_gpt(folder)
    datasets = {f"d{i}": dataset_of(line, folder) for i, line in enumerate(lines)}
    datasets["sentences"] = {"path": os.path.join(folder, "sentences"), "format": "megatron"}
    daemon = box.daemon(datasets)
    for i, line in enumerate(lines):
        samples = samples_of(line, folder)
        served = daemon.read(f"d{i}", batch=50, shuffle=False)
        equal(indices(served), list(range(len(samples))), "order")
        equal([one["fields"]["tokens"] for one in served], [told(sample) for sample in samples], f"samples of {line}")
    tokens = Tokens(os.path.join(folder, "sentences"))
    equal([one["fields"]["tokens"] for one in daemon.read("sentences", batch=4, shuffle=False)],
          [told(document, tokens.code, tokens.dtype) for document in tokens.documents], "documents")


main(tells_samples=True)
