#!/usr/bin/env python3
"""dlclient.dlio under DLIO, the benchmark of MLPerf Storage: its own program makes the files, starts the ranks with
MPI, names our class in the workload, and gets each sample once an epoch with the pixels that Pillow finds in its file."""
import collections
import glob
import hashlib
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from harness import case, contains, equal, main
from pillow_resize import rows_first
from trainers import need, python_command, run

N, SIDE = 23, 57
# A process for an accelerator, also where there are fewer CPUs; the tests may be root's.
MPIRUN = ("mpirun", "--allow-run-as-root", "--bind-to", "none", "--oversubscribe", "-np")

WORKLOAD = """
model: test
framework: pytorch
workflow: {{generate_data: {generate}, train: {train}, evaluation: {evaluation}}}
dataset:
  data_folder: {folder}
  format: {format}
  num_files_train: {n}
  num_files_eval: {n_eval}
  num_samples_per_file: 1
  record_length: {length}
  record_length_resize: {resize}
reader:
  data_loader: pytorch
  data_loader_classname: {loader}
  data_loader_sampler: {sampler}
  batch_size: 3
  batch_size_eval: 2
  read_threads: 1
  sample_shuffle: seed
train: {{epochs: 2, computation_time: 0.001, seed: 7}}
evaluation: {{eval_time: 0.001}}
output: {{folder: {out}}}
"""


def dlio(box, daemon=None, ranks=1, expected=0, **terms):
    """Runs it; returns its summary."""
    need("dlio_benchmark", "torch", "PIL")
    terms = {"generate": False, "train": True, "evaluation": False, "folder": box.path("data"), "format": "jpeg", "n": N,
             "n_eval": 6, "length": SIDE * SIDE, "resize": 0, "loader": "their_dlio.Seen", "sampler": "iterative",
             "out": box.path("out"), **terms}
    os.makedirs(box.path("workload"), exist_ok=True)
    with open(box.path("workload", "test.yaml"), "w", encoding="utf-8") as file:
        file.write(WORKLOAD.format(**terms))
    os.environ.update(SEEN=box.path("seen"))
    for path in glob.glob(box.path("seen") + ".*"):
        os.remove(path)
    run(box, [*MPIRUN, str(ranks), *python_command(os.path.join(HERE, "dlio_run.py")), "--config-dir", box.folder,
              "workload=test", f"hydra.run.dir={box.path('out')}"], daemon, 200, expected)
    if expected == 0 and terms["train"]:
        with open(box.path("out", "summary.json"), encoding="utf-8") as file:
            return json.load(file)
    return None


def daemon_with_files(box, **terms):
    """DLIO makes the files, of noise; the daemon serves both of its folders."""
    dlio(box, generate=True, train=False, loader="dlclient.dlio.Loader", **terms)
    suffix = terms.get("format", "jpeg")
    return box.daemon({kind: {"path": box.path("data", kind), "format": "folder", "pattern": "{name}." + suffix}
                       for kind in ("train", "valid")})


def rows(box, kind, ranks=1):
    """Epoch -> a row for each batch of each rank."""
    found = collections.defaultdict(list)
    for rank in range(ranks):
        with open(f"{box.path('seen')}.{kind}.{rank}", encoding="utf-8") as file:
            for line in file:
                epoch, *row = json.loads(line)
                found[epoch].append(row)
    return found


def digests(box, kind, size=None):
    from PIL import Image
    rows_first(Image)
    found = set()
    for path in glob.glob(box.path("data", kind, "*")):
        picture = Image.open(path)
        picture = picture.resize((size, size), Image.BILINEAR) if size else picture
        found.add(hashlib.sha256(picture.tobytes()).hexdigest())
    return found


def check(box, ranks, sides, size=None):
    """Two epochs, each with as many whole batches as there are; no sample twice in an epoch; another order in each."""
    orders, there = [], digests(box, "train", size)
    for epoch, found in sorted(rows(box, "train", ranks).items()):
        equal([row[:2] for row in found], [[[3, sides, sides, 1], "torch.uint8"]] * (N // ranks // 3 * ranks),
              f"batches of epoch {epoch}")
        order = [digest for row in found for digest in row[2]]
        equal(len(set(order)), len(order), "different samples")
        equal(set(order) - there, set(), "samples that no file has")
        orders.append(order)
    equal(len(orders), 2, "epochs")
    if orders[0] == orders[1]:
        raise AssertionError("both epochs have one order")


for FORMAT in ("jpeg", "png"):
    @case(f"DLIO trains on its own {FORMAT} files with two accelerators: each sample once an epoch, Pillow's pixels")
    def _(box, name=FORMAT):
        summary = dlio(box, daemon_with_files(box, format=name), ranks=2, format=name)
        check(box, 2, SIDE)
        equal(summary["num_accelerators"], 2, "accelerators")
        equal(len(summary["metric"]["train_au_percentage"]), 2, "utilisation of each epoch")


@case("record_length_resize: pictures are resized; the sampler may be index; validation reads its own files")
def _(box):
    daemon = daemon_with_files(box, evaluation=True)
    dlio(box, daemon, evaluation=True, resize=20 * 20, sampler="index")
    check(box, 1, 20, size=20)
    found = rows(box, "valid")
    equal(sorted(found), [0, 1], "epochs of validation")
    for epoch in found:
        equal([row[0] for row in found[epoch]], [[2, 20, 20, 1]] * 3, "batches of validation")
        equal({digest for row in found[epoch] for digest in row[2]}, digests(box, "valid", 20), "samples of validation")


@case("Raw yields the files' bytes")
def _(box):
    dlio(box, daemon_with_files(box), loader="their_dlio.Stored")
    with open(box.path("seen") + ".raw", encoding="utf-8") as file:
        found = {digest for line in file for digest in json.loads(line)}
    stored = set()
    for path in glob.glob(box.path("data", "train", "*")):
        with open(path, "rb") as file:
            stored.add(hashlib.sha256(file.read()).hexdigest())
    equal(found - stored, set(), "samples that no file has")
    equal(len(found) >= N // 3 * 3, True, "all but the last ones")


@case("what cannot be served is a sentence")
def _(box):
    daemon = daemon_with_files(box)
    for terms, words in (({"loader": "their_dlio.Nameless"}, ["dlclient.dlio.Loader", "with train = \"NAME\""]),
                         ({"n": N - 1}, [f"has {N} samples", f"expects {N - 1}"])):
        try:
            dlio(box, daemon, **terms)
        except AssertionError as error:
            contains(str(error), *words)
        else:
            raise AssertionError(f"{terms} was served")


main()
