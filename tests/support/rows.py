"""Rows as Python has them, beside samples as `dlctl read` prints them."""
import hashlib
import os

from harness import equal, expected_order, indices
from pyclient import need


def library(box):
    """datasets, with its caches in the case's folder and no network."""
    need("datasets")
    os.environ.update(HF_HOME=box.path("cache"), HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")
    import datasets
    datasets.config.HF_DATASETS_CACHE = box.path("cache", "datasets")  # it has looked at HF_HOME once, in the first case
    datasets.disable_progress_bars()
    return datasets


def told(value, dtype):
    """What `dlctl read` says of a value, except the text itself."""
    import numpy
    if value is None:
        return None
    if isinstance(value, (str, bytes)):
        raw = value.encode() if isinstance(value, str) else value
        return {"dtype": dtype, "shape": [len(raw)], "sha256": hashlib.sha256(raw).hexdigest()}
    array = numpy.array(value, dtype)
    if array.ndim == 0:
        return {"dtype": dtype, "shape": [], "value": array.item()}
    return {"dtype": dtype, "shape": list(array.shape), "sha256": hashlib.sha256(array.tobytes()).hexdigest()}


def without_text(fields):
    return {name: field and {key: field[key] for key in field if key != "text"} for name, field in fields.items()}


def check(lines, rows, dtypes, **terms):
    equal(indices(lines), expected_order(len(rows), **terms), "order")
    for line in lines:
        row = rows[line["index"]]
        equal(without_text(line["fields"]), {name: told(row[name], dtype) for name, dtype in dtypes.items()},
              f"sample {line['index']}")
