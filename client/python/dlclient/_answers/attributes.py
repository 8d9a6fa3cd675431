"""What programs read of torch's DataLoader, and of ImageFolder, that there is not here: what to read instead."""
from __future__ import annotations

from typing import Dict

# of a Loader
LOADER: Dict[str, str] = {
    "collate_fn": "the daemon makes batches, and nothing is collated here; loader.pipeline has its steps",
    "generator": "nothing is drawn here: the order follows from loader.seed and the epoch, which set_epoch() chooses",
    "multiprocessing_context": "there are no worker processes",
    "persistent_workers": "there are no worker processes; the daemon's workers stay",
    "prefetch_factor": "loader.stats().slots is how many batches are prepared ahead or held at once",
    "pin_memory_device": "loader.device is where the batches are",
    "in_order": "batches always come in order",
    "transform": "the daemon transforms: loader.pipeline has the steps",
    "to": "open it with device=\"cuda\" for batches on a GPU, or move its batches: batch.to(device)",
    "cuda": "open it with device=\"cuda\" for batches on a GPU, or move its batches: batch.to(\"cuda\")",
    "classes": "loader.dataset.classes has them",
    "class_to_idx": "loader.dataset.class_to_idx has it",
    "samples": "loader.dataset.samples has them",
    "targets": "loader.dataset.targets has the labels of the dataset; those of targets= are in each batch",
}

# of a batch
BATCH: Dict[str, str] = {
    "cuda": "batch.to(\"cuda\") gives its fields as tensors there",
    "cpu": "batch.numpy() gives its fields in the CPU's memory",
    "device": "each field has its own; loader.device is where those of a loader are",
    "pin_memory": "nothing is pinned here: a loader with device=\"cuda\" brings batches to the GPU by itself",
}

_ONE_ARRAY = ("its samples differ in length, so that they are not one array: field[i] is that of sample i, and "
              "padded() makes one of all. Stored pictures are bytes until a step decodes them, as in "
              "pipeline=\"resize(256) center_crop(224)\"")

# of a field whose samples differ in length
RAGGED: Dict[str, str] = dict.fromkeys(("shape", "dtype", "ndim", "size", "to", "cuda", "numpy", "float", "permute",
                                        "device", "mean"), _ONE_ARRAY)

# of a loader's dataset
DATASET: Dict[str, str] = {
    "transform": "the daemon transforms: loader.pipeline has the steps, and Loader(pipeline=...) chooses others",
    "transforms": "the daemon transforms: loader.pipeline has the steps, and Loader(pipeline=...) chooses others",
    "target_transform": "labels are as they are stored: Loader(targets=array) gives others, or change the batch's",
    "loader": "the daemon reads and decodes the files",
    "extensions": "the daemon tells files by their contents",
    "data": "samples stay in their files; the loader delivers them, and dataset.numbers(\"NAME\") has the numbers of a "
            "field that are known without reading them",
    "indices": "indices= of the loader chose them; list(loader.sampler) has those of this epoch",
    "datasets": "dataset.parts has the datasets that it is made of",
    "cumulative_sizes": "dataset.parts says where each begins",
}


def missing(thing: str, name: str, answers: Dict[str, str]) -> AttributeError:
    known = answers.get(name)
    return AttributeError(f"{thing} has no attribute {name!r}{': ' + known if known else ''}")
