"""The text of a pipeline for torchvision's transforms: what `Compose([...])` is written as here, for the error that a
program gets that gives the object. torchvision is not imported; its classes are known by their names, and how they are
written by the kinds of steps (step_text.py). Here are those that are not one step, or have a place of their own."""
from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

from .._errors import OptionError
from . import sounds, timm
from .kinds_table import CLASSES
from .step_text import numbers, step_text

EXAMPLE = "random_resized_crop(224) hflip(0.5) to(float32) layout(nchw)"


# ---- steps

def _inside(steps: Iterable[Any]) -> str:
    """The steps of a group, each of which is one step of ours. TypeError: there is none, or one that is not known."""
    texts = []
    for one in steps:
        text, others = written(one)
        if others or not text or _forms(one):
            raise TypeError(one)
        texts.append(text if _is_one(one) else f"random_apply([{_with_commas(one)}], p=1)")
    if not texts:
        raise TypeError(steps)
    return f"[{', '.join(texts)}]"


def _is_one(value: Any) -> bool:
    return len(list(_flat(value))) == 1


def _with_commas(value: Any) -> str:
    return ", ".join(written(step)[0] for step in _flat(value))


def _forms(value: Any) -> bool:
    return any(type(step).__name__ in FORMS for step in _flat(value))


def _is_v2(step: Any) -> bool:
    return type(step).__module__.startswith("torchvision.transforms.v2")


def _dtype(value: Any) -> str:
    return str(value).rpartition(".")[2]


def _to(dtype: Any, multiplies: bool) -> str:
    """torchvision's v2 multiplies levels by 1 / 255 where its first version divides by 255."""
    name = _dtype(dtype)
    return f"to({name}{', scale=multiply' if multiplies and 'float' in name else ''})"


def _to_dtype(step: Any) -> List[str]:
    """Of v2 alone. ValueError: floats that are levels, which are not scaled."""
    dtype = step.dtype
    if isinstance(dtype, Mapping):      # a type for each kind of its arrays
        dtype = next((one for kind, one in dtype.items() if getattr(kind, "__name__", kind) == "Image"),
                     dtype.get("others"))
    if dtype is None:
        return []
    if "float" in _dtype(dtype) and not step.scale:
        raise ValueError(step)
    return [_to(dtype, True)]


# These set the form of the pixels, and come last.
FORMS: Dict[str, Callable[[Any], List[str]]] = {
    "ToTensor": lambda step: ["to(float32)", "layout(nchw)"],
    "PILToTensor": lambda step: ["layout(nchw)"],
    "ToImage": lambda step: ["layout(nchw)"],
    "ToDtype": _to_dtype,
    "ConvertImageDtype": lambda step: [_to(step.dtype, _is_v2(step))],
    "Normalize": lambda step: [f"normalize(mean={numbers(step.mean)}, std={numbers(step.std)})"],
}

# ---- steps of whole batches: the last one of a part that names the label, too

def _batch(class_name: str, step: Any) -> str:
    text = step_text("collations", class_name, step)
    if "num_classes=" in text:
        return text
    return f"{text[:-1]}, num_classes=N)" if text.endswith(")") else f"{text}(num_classes=N)"


def _either(step: Any) -> str:
    """RandomChoice([CutMix(), MixUp()])"""
    alphas = {type(one).__name__: one for one in step.transforms}
    if len(step.transforms) != 2 or set(alphas) != {"MixUp", "CutMix"}:
        raise ValueError
    cut = dict(zip((type(one).__name__ for one in step.transforms), step.p))["CutMix"] if step.p else 0.5
    return _batch("Mixup", SimpleNamespace(
        mixup_alpha=alphas["MixUp"].alpha, cutmix_alpha=alphas["CutMix"].alpha, switch_prob=cut, label_smoothing=0,
        num_classes=alphas["CutMix"].num_classes, partner="previous"))


def _mixes(step: Any) -> bool:
    """Is it of whole batches? Of a choice that is not, the steps are of single samples."""
    return type(step).__name__ in CLASSES["collations"] or type(step).__name__ == "RandomChoice" and any(
        type(one).__name__ in CLASSES["collations"] for one in step.transforms)


GROUPS = ("Compose", "Sequential")  # whose steps follow each other


def _flat(value: Any) -> Iterable[Any]:
    """The steps that an object is made of, those of groups within it as well."""
    if type(value).__name__ in GROUPS or isinstance(value, (list, tuple)):
        for step in getattr(value, "transforms", value):
            yield from _flat(step)
    elif value is not None:
        yield value


def _name(step: Any) -> str:
    return str(getattr(step, "__name__", type(step).__name__))


def written(value: Any) -> Tuple[str, List[str]]:
    """The text of the steps that are known here, and the names of the others."""
    steps: List[str] = []
    forms: List[str] = []
    erasing: List[str] = []  # of the numbers that the forms make
    batches: List[str] = []
    others: List[str] = []
    decoding = sounds.audio(list(_flat(value)))
    for step in _flat(value):
        name = type(step).__name__
        try:
            if isinstance(step, str):
                steps.append(step)
            elif _mixes(step):
                batches.append(_either(step) if name == "RandomChoice" else _batch(name, step))
            elif name in sounds.CLASSES:
                steps.append(sounds.sound_text(step))
            elif name == "Resample" and decoding:
                pass  # the rate of audio
            elif name == "RandAugment" and hasattr(step, "ops"):
                steps.append(timm.text_of(step))
            elif name == "Normalize" and erasing:
                others.append("Normalize after RandomErasing")
            elif name in FORMS:
                forms += [form for form in FORMS[name](step) if form not in forms]
            elif name in CLASSES["pictures"]:
                are_numbers = name == "RandomErasing" and any(not form.startswith("layout") for form in forms)
                (erasing if are_numbers else steps).append(step_text("pictures", name, step, _inside))
            else:
                others.append(_name(step))
        except (AttributeError, TypeError, ValueError, LookupError):  # another class of this name
            others.append(_name(step))
    forms = [form for form in forms if not form.startswith("layout")] + erasing + [
        form for form in forms if form.startswith("layout")]
    if decoding and not any(step.startswith("audio") for step in steps):
        steps.insert(0, decoding)
    text = " ".join(steps + forms + batches)
    return (f"image, label: {text}" if batches else text), others


# ---- the answer

def answer(value: Any) -> str:
    """What to write instead of an object, as the rest of a sentence."""
    if isinstance(value, Mapping):
        texts = [(field, written(steps)) for field, steps in value.items()]
        text = "; ".join(f"{field}: {steps.replace('image, label: ', '')}" if steps else str(field)
                         for field, (steps, _) in texts)
        others = [name for _, (_, names) in texts for name in names]
    else:
        text, others = written(value)
    written_as = (f"write the steps as text, pipeline=\"{text}\"" if text else
                  f"name the steps, such as pipeline=\"{EXAMPLE}\" (the last two are ToTensor()); "
                  f"dataloaderd-pipeline(7) lists them")
    rest = (f"; {', '.join(dict.fromkeys(others))}: not a step of the daemon, do it on the batch, in the trainer"
            if others else "")
    return f"the daemon transforms, without Python: {written_as}{rest}"


def pipeline_text(value: object) -> Optional[str]:
    """The option pipeline, which is a text."""
    if value is None:
        return None
    if not isinstance(value, str):
        kind = value.__name__ + "()" if hasattr(value, "__name__") else f"a {type(value).__name__}"
        if isinstance(value, (bytes, os.PathLike, int, float)):
            raise OptionError(f"pipeline: {value!r} is not a string; steps are written as in pipeline=\"{EXAMPLE}\"")
        raise OptionError(f"pipeline: {kind} is an object of Python; {answer(value)}")
    if "\0" in value:
        raise OptionError(f"pipeline: {value!r} contains a zero byte")
    return value
