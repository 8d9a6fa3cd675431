"""What a batch's fields are called for those who take them by name: names="transformers" of a loader gives what models
of Hugging Face's transformers take as model(**batch)."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

import numpy

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


def _whole(mask: Any) -> Any:
    if isinstance(mask, list):  # of several views
        return [_whole(one) for one in mask]
    if _convert.is_on_device(mask):
        raise OptionError("names: these arrays lie on a device and no framework owns them: open the loader "
                          "with framework=\"torch\" or \"jax\"")
    return mask.long() if hasattr(mask, "long") else mask.astype("int64")


def _filled(labels: Any, mask: Any) -> Optional[Any]:
    """A copy of labels that holds -100 where the mask is false. None: they have no room for it."""
    kind = str(getattr(labels, "dtype", None)).rpartition(".")[2]
    if kind not in ("int8", "int16", "int32", "int64") or _convert.is_on_device(labels) or labels.shape != mask.shape:
        return None
    if hasattr(labels, "masked_fill"):
        return labels.masked_fill(~mask, -100)
    if hasattr(labels, "at"):  # of JAX
        return labels.at[~mask].set(-100)
    return numpy.where(mask, labels, labels.dtype.type(-100))


def _fields(names: List[str], masks: Dict[str, str]) -> Dict[str, Optional[str]]:
    """What fields are called there, without their masks. None: models do not take it."""
    called: Dict[str, Optional[str]] = {}
    for name in names:
        if name not in masks:
            known = _OTHERS.get(name, name)
            called[name] = name if known in names or known in called.values() else known
    if not {"tokens_positions", "input_ids_positions"}.isdisjoint(names):
        called.update((name, None) for name in _OF_PACKING if name in called)
    return called


def _masks(names: List[str], masks: Dict[str, str], called: Dict[str, Optional[str]]) -> None:
    """What the masks that pad has added are called there. One whose name another one has keeps its own, as does that of
    a field that has kept its own."""
    order = [*_MASKS, *_OTHERS, *called.values()]  # where two have one name, it is that of input_ids
    for mask, field in sorted(masks.items(), key=lambda pair: order.index(called[pair[1]])):
        known: Optional[str] = mask
        if mask == f"{field}_mask" and called[field] not in _OTHERS:
            known = _MASKS.get(called[field] or "")
        if known is not None and (known in masks or known in called.values()):
            known = None if known in names and known not in masks else mask  # None: the pipeline has made one
        called[mask] = known


def of_transformers(batch: Any) -> Dict[str, Any]:
    """Fields that have another name there are called by it, unless the batch has a field of that name. Masks are int64.
    What was added to the fields that the pipeline names, and models do not take, is left out: where there is no label,
    labels hold -100. Padded labels that cannot hold it keep their name, and their mask."""
    names = list(batch)
    masks = {mask: field for field, mask in batch._form.added_masks.items() if mask in names and field in names}
    called = _fields(names, masks)
    labels: Dict[str, Any] = {}
    for mask, field in masks.items():
        if called[field] == "labels" != field:
            labels[field] = _filled(batch[field], batch[mask])
            if labels[field] is None:
                called[field] = field
    _masks(names, masks, called)
    found: Dict[str, Any] = {}
    for name in names:
        known = called[name]
        if known is not None:
            value = labels.get(name)
            value = batch[name] if value is None else value
            found[known] = _whole(value) if known in _MASKS.values() else value
    return found
