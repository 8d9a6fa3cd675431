"""What a batch's fields are called for those who take them by name: names="transformers" of a loader gives what models
of Hugging Face's transformers take as model(**batch)."""
from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from .._errors import OptionError
from . import convert as _convert

_OTHERS = {"image": "pixel_values", "image_mask": "pixel_mask", "label": "labels"}
_MASKS = ("attention_mask", "pixel_mask")


def check(value: object, has_structure: bool) -> Optional[Callable[[Any], Dict[str, Any]]]:
    """The loader's option names. `has_structure`: another option says what a batch is."""
    if value is None:
        return None
    if value != "transformers":
        raise OptionError(f"names: {value!r}; \"transformers\" is allowed, or None for the fields' own names")
    if has_structure:
        raise OptionError("names: \"transformers\" makes dicts of batches, and as_tuple and from_dataset() make "
                          "something else of them: leave one out")
    return of_transformers


def _renamed(names: Any) -> Dict[str, str]:
    tokens = next((name for name in ("input_ids", "tokens") if name in names), None)
    renamed = dict(_OTHERS)
    if tokens is not None:
        renamed.update({tokens: "input_ids", f"{tokens}_mask": "attention_mask", f"{tokens}_labels": "labels",
                        f"{tokens}_positions": "position_ids"})
    return renamed


def of_transformers(batch: Any) -> Dict[str, Any]:
    """Fields that have another name there are called by it, unless the batch has a field of that name. Masks are int64.
    The mask of labels is left out: where there is none, labels hold -100."""
    names = list(batch)
    renamed = _renamed(names)
    found: Dict[str, Any] = {}
    for name in names:
        known = renamed.get(name, name)
        known = name if known != name and known in names else known
        if name == "labels_mask":
            continue
        value = batch[name]
        if known in _MASKS:
            if _convert.is_on_device(value):
                raise OptionError("names: these arrays lie on a device and no framework owns them: open the loader "
                                  "with framework=\"torch\" or \"jax\"")
            value = value.long() if hasattr(value, "long") else value.astype("int64")
        found[known] = value
    return found
