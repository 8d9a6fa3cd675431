"""What a batch's fields are called for those who take them by name: names="transformers" of a loader gives what models
of Hugging Face's transformers take as model(**batch)."""
from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from .._errors import OptionError
from . import convert as _convert

_OTHERS = {"image": "pixel_values", "label": "labels", "label_ids": "labels", "tokens": "input_ids",
           "tokens_labels": "labels", "input_ids_labels": "labels", "tokens_positions": "position_ids",
           "input_ids_positions": "position_ids"}
_MASKS = {"input_ids": "attention_mask", "input_values": "attention_mask", "input_features": "attention_mask",
          "decoder_input_ids": "decoder_attention_mask", "pixel_values": "pixel_mask"}
_OF_PACKING = ("tokens_segments", "input_ids_segments", "cu_seqlens")  # no model takes them


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


def _name_of_mask(field: str, mask: str) -> Optional[str]:
    """What the mask that pad has added to a field is called there. None: models take no such mask."""
    return _MASKS.get(_OTHERS.get(field, field)) if mask == f"{field}_mask" else mask


def _whole(mask: Any) -> Any:
    if isinstance(mask, list):  # of several views
        return [_whole(one) for one in mask]
    if _convert.is_on_device(mask):
        raise OptionError("names: these arrays lie on a device and no framework owns them: open the loader "
                          "with framework=\"torch\" or \"jax\"")
    return mask.long() if hasattr(mask, "long") else mask.astype("int64")


def of_transformers(batch: Any) -> Dict[str, Any]:
    """Fields that have another name there are called by it, unless the batch has a field of that name. Masks are int64.
    What was added to the fields that the pipeline names, and models do not take, is left out: where there is no label,
    labels hold -100."""
    names = list(batch)
    fields = {mask: field for field, mask in batch._form.added_masks.items()}
    found: Dict[str, Any] = {}
    for name in names:
        known: Optional[str] = _OTHERS.get(name, name)
        if name in fields:
            known = _name_of_mask(fields[name], name)
        elif name in _OF_PACKING and not {"tokens_positions", "input_ids_positions"}.isdisjoint(names):
            known = None
        elif known in names or known in found:
            known = name
        if known is None or (name in fields and known != name and known in names):
            continue
        found[known] = _whole(batch[name]) if known in _MASKS.values() else batch[name]
    return found
