"""What to write instead of torch's words: keywords of DataLoader, DistributedSampler and ImageFolder, a Dataset object,
a sampler object. Each of them gets the sentence that says how the same is had here."""
from __future__ import annotations

import difflib
import functools
import inspect
import os
from typing import Any, Callable, Dict, List, TypeVar, cast

from .._errors import OptionError
from . import transforms

F = TypeVar("F", bound=Callable[..., Any])

# keyword -> what to write instead
ANSWERS: Dict[str, str] = {
    # DataLoader
    "num_workers": "leave it out: the daemon's workers decode for all loaders; `dlctl workers N` sets how many there "
                   "are, or `workers` of its configuration, or, for the private daemon that serves a path, "
                   "DATALOADERD_PRIVATE=\"workers=8\" in the environment of the program that starts it. The "
                   "processes for functions of your own, and for from_dataset(), are n_workers=4",
    "batch_sampler": "say how batches are made in sampler=, such as sampler=\"buckets(column=length, edges=64:128, "
                     "tokens=8192)\"; for batches of one size, batch_size and drop_last are enough",
    "collate_fn": "leave it out: a batch has one array a field; samples that differ in size need a step at the end of "
                  "their part of the pipeline (pad, pack or ragged), and as_tuple=True gives (image, label) instead of "
                  "a mapping. With from_dataset() a batch has the structure of a sample: what collate_fn does for each "
                  "sample (padding to one length) belongs into the dataset, what it does for a batch into the loop",
    "pin_memory": "leave it out: with device=\"cuda\" batches come to the GPU by themselves, from memory that is "
                  "registered with it; tensor.to(device) copies from the daemon's memory as well",
    "pin_memory_device": "device=\"cuda:1\": batches come to that GPU by themselves",
    "multiprocessing_context": "leave it out: there are no worker processes, and nothing is forked",
    "generator": "give its seed: seed=generator.initial_seed(), or seed=\"torch\" for the seed of torch.manual_seed()",
    "prefetch_factor": "slots=8 is how many batches are prepared ahead or held at once",
    "persistent_workers": "leave it out: the daemon's workers always stay; persistent=False gives the loader's memory "
                          "back between two loops",
    "in_order": "leave it out: batches always come in order",
    "snapshot_every_n_steps": "leave it out: state_dict() is exact after every batch and costs nothing",
    # DistributedSampler
    "num_replicas": "world_size; without it the ranks are those of torch.distributed, torchrun, MPI or Slurm",
    # ImageFolder and other datasets
    "root": "the dataset is the first argument: Loader(\"/data/photos\", ...)",
    "transform": transforms.answer(None),   # of an object: with its steps, see _answer()
    "transforms": transforms.answer(None),
    "target_transform": "targets=ARRAY with one number for each sample replaces the labels, such as "
                        "targets=[f(t) for t in loader.dataset.targets]; or change the batch's labels",
    "loader": "leave it out: the daemon decodes JPEG, PNG, WebP, BMP, PNM, TIFF and GIF by their contents",
    "is_valid_file": "choose samples by number with indices=ARRAY, or by name: Loader({\"path\": \"/data/photos\", "
                     "\"format\": \"folder\", \"pattern\": \"{class}/{name}.jpg\"})",
    "allow_empty": "leave it out: a folder without samples is refused when it is opened",
    "download": "leave it out: `dlctl stage` fetches a dataset that has an origin in the daemon's configuration",
    "train": "name the folder of the part, such as Loader(\"/data/photos/train\"), or the split: Loader({\"path\": "
             "\"/data/photos\", \"split\": \"train\"})",
    # of other loaders, and of models
    "dtype": "a step of the pipeline: to(float32), to(float16), to(bfloat16)",
    "image_size": "a step of the pipeline: random_resized_crop(224), or resize(256) center_crop(224)",
    "path": "the dataset is the first argument: Loader(\"/data/photos\", ...)",
    "split": "a key of the dataset: Loader({\"path\": \"/data/photos\", \"split\": \"0:90%\"})",
    "format": "a key of the dataset: Loader({\"path\": \"/data/photos\", \"format\": \"folder\", \"pattern\": "
              "\"{class}/{name}.jpg\"})",
    # samplers
    "weights": "sampler=\"weighted(column=w, n=N)\", columns={\"w\": weights}",
    "replacement": "sampler=\"random(replacement=true, n=N)\"",
    "num_samples": "the n of a sampler, such as sampler=\"random(n=N)\"; indices=ARRAY chooses samples by number",
}


def _is_torchs(value: object, name: str) -> bool:
    """Is it of a class that this name is in the ancestry of? torch is not imported to find out."""
    return any(kind.__name__ == name for kind in type(value).__mro__)


def sampler_answer(value: Any) -> str:
    """What to write instead of a sampler that is an object."""
    seed = f", seed={value.seed}" if isinstance(getattr(value, "seed", None), int) and value.seed else ""
    if _is_torchs(value, "DistributedSampler"):
        order = "shuffle=False" if getattr(value, "shuffle", True) is False else f"its order is the usual one{seed}"
        drop = ", partition=\"drop\"" if getattr(value, "drop_last", False) else ""
        return f"leave it out: {order}{drop}, and rank and world size are found by themselves"
    if _is_torchs(value, "WeightedRandomSampler"):
        replacement = "" if getattr(value, "replacement", True) else ", replacement=false"
        return (f"sampler=\"weighted(column=w, n={getattr(value, 'num_samples', 'N')}{replacement})\", "
                f"columns={{\"w\": weights}}")
    if _is_torchs(value, "SubsetRandomSampler"):
        return "indices=INDICES, the list that the sampler was made of"
    if _is_torchs(value, "SequentialSampler"):
        return "shuffle=False"
    if _is_torchs(value, "RandomSampler"):
        if getattr(value, "replacement", False):
            return f"sampler=\"random(replacement=true, n={getattr(value, 'num_samples', 'N')})\""
        return "leave it out: shuffle=True is the default"
    if _is_torchs(value, "BatchSampler"):
        return "batch_size and drop_last; batches of other kinds have steps such as buckets and max_tokens"
    return ("the daemon makes the order: give its steps as text, such as sampler=\"weighted(column=w)\" with "
            "columns={\"w\": array}, or indices=list(sampler) for a list of samples")


def is_map_style(value: object) -> bool:
    """Has it samples with numbers? By its class: so an attribute that a __getattr__ makes up does not count."""
    return hasattr(type(value), "__len__") and hasattr(type(value), "__getitem__")


def _refuse_dataset(value: object) -> None:
    """A Dataset object, an array, ...: what the daemon cannot read."""
    if isinstance(value, (str, bytes, os.PathLike, list, tuple, dict)) or value is None:
        return  # checked where the other options are
    kind = type(value).__name__
    if kind == "Loader" and hasattr(value, "load_state_dict"):
        raise OptionError("dataset: this is a Loader already: iterate over it, or give the path that it was opened "
                          "with")
    if _is_torchs(value, "DataLoader"):
        value = getattr(value, "dataset", value)
    if not (hasattr(value, "__getitem__") or hasattr(value, "__iter__")):
        return
    where = getattr(value, "root", None)
    folder = f" (this one's files are in {os.fspath(where)})" if isinstance(where, (str, os.PathLike)) else ""
    as_it_is = (f" Or as it is, in processes of its own: Loader(dlclient.from_dataset(dataset), batch_size=64, "
                f"n_workers=4)" if is_map_style(value) else "")
    raise OptionError(f"dataset: a {kind} is an object of Python, which the daemon cannot read: give its path, or the "
                      f"name of "
                      f"a dataset of its configuration{folder}. What __getitem__ did is said by the pipeline; "
                      f"docs/datasets.md has a table of what can be read.{as_it_is}")


def _answer(name: str, value: Any) -> str:
    return transforms.answer(value) if name in ("transform", "transforms") else ANSWERS[name]


def _known_keywords(function: Callable[..., Any]) -> List[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def answers_torch(function: F) -> F:
    """For a keyword that does not exist the error says what to write instead, or which one was probably meant. All of
    torch's are answered at once, so that a program is changed once."""
    known = _known_keywords(function)

    @functools.wraps(function)
    def checked(self: Any, *arguments: Any, **keywords: Any) -> Any:
        unknown = [name for name in keywords if name not in known]
        answered = [name for name in unknown if name in ANSWERS]
        for name in unknown:
            if name not in ANSWERS:
                near = difflib.get_close_matches(name, known, 1)
                meant = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"
                raise TypeError(f"Loader() has no keyword {name!r}{meant}")
        if answered:
            raise TypeError("Loader() has no keyword " + "\n  ".join(f"{name}: {_answer(name, keywords[name])}"
                                                                     for name in answered))
        if len(arguments) > 2:
            raise TypeError(f"Loader() takes dataset and batch_size by their places, and {len(arguments)} values were "
                            f"given so: write the others with their names, such as shuffle=False")
        _refuse_dataset(arguments[0] if arguments else keywords.get("dataset"))
        return function(self, *arguments, **keywords)
    return cast(F, checked)
