"""The text of a pipeline for torchvision's transforms: what `Compose([...])` is written as here, for the error that a
program gets that gives the object (torchaudio's are in sounds.py). torchvision is not imported; its classes are known
by their names."""
from __future__ import annotations

import os
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

from .._errors import OptionError
from . import sounds, timm

EXAMPLE = "random_resized_crop(224) hflip(0.5) to(float32) layout(nchw)"


# ---- arguments

def _number(value: Any) -> str:
    return f"{float(value):.12g}"


def _list(values: Any) -> str:
    return ":".join(_number(value) for value in (values if hasattr(values, "__iter__") else [values]))


def _size(value: Any, is_short: bool = False) -> str:
    """One number is a square, or, of Resize, the short side."""
    sides = list(value) if hasattr(value, "__iter__") else [value]
    if len(sides) == 2 and (is_short or sides[0] != sides[1]):
        return f"{int(sides[0])}:{int(sides[1])}"
    return str(int(sides[0]))


def _filter(step: Any) -> str:
    name = str(getattr(getattr(step, "interpolation", None), "value", "bilinear"))
    return "" if name == "bilinear" else f", interpolation={name}"


def _keys(**given: Tuple[Any, Any, Callable[[Any], str]]) -> str:
    """Arguments that differ from their defaults: name=(value, default, how it is written)."""
    return "".join(f", {name}={write(value)}" for name, (value, default, write) in given.items()
                   if value is not None and value != default)


def _word(value: Any) -> str:
    return str(value).lower()


def _dtype(value: Any) -> str:
    return str(value).rpartition(".")[2]


# ---- steps

def _random_resized_crop(step: Any) -> str:
    keys = _keys(scale=(tuple(step.scale), (0.08, 1.0), _list), ratio=(tuple(step.ratio), (3 / 4, 4 / 3), _list))
    return f"random_resized_crop({_size(step.size)}{keys}{_filter(step)})"


def _random_crop(step: Any) -> str:
    keys = _keys(padding=(step.padding, 0, _list), pad_if_needed=(step.pad_if_needed, False, _word),
                 padding_mode=(step.padding_mode, "constant", _word))
    return f"random_crop({_size(step.size)}{keys})"


def _with_p(name: str, value: float, p: float) -> str:
    return f"{name}({_number(value)}{_keys(p=(p, 0.5, _number))})"


def _color_jitter(step: Any) -> str:
    names = [name for name in ("brightness", "contrast", "saturation", "hue") if getattr(step, name, None)]
    return f"color_jitter({', '.join(f'{name}={_list(getattr(step, name))}' for name in names)})"


def _warp_keys(step: Any, default: str) -> str:
    """What the steps that turn, shear and distort have in common: the filter, the fill, the centre."""
    name = str(getattr(getattr(step, "interpolation", None), "value", default))
    fill = getattr(step, "fill", None)
    return ("" if name == default else f", interpolation={name}") + _keys(
        fill=(fill if fill else None, None, _list), center=(getattr(step, "center", None), None, _list))


def _random_affine(step: Any) -> str:
    keys = _keys(translate=(step.translate, None, _list), scale=(step.scale, None, _list),
                 shear=(step.shear, None, _list))
    return f"random_affine({_list(step.degrees)}{keys}{_warp_keys(step, 'nearest')})"


def _rand_augment(step: Any) -> str:
    if hasattr(step, "ops"):
        return timm.text_of(step)
    return (f"rand_augment({step.num_ops}, {step.magnitude}"
            f"{_keys(num_magnitude_bins=(step.num_magnitude_bins, 31, _number))}{_warp_keys(step, 'nearest')})")


def _aug_mix(step: Any) -> str:
    """Here no fill is another thing than one of 0."""
    fill = None if step.fill is None else _list(step.fill)
    keys = _keys(severity=(step.severity, 3, _number), mixture_width=(step.mixture_width, 3, _number),
                 chain_depth=(max(step.chain_depth, -1) or -1, -1, _number), alpha=(step.alpha, 1, _number),
                 all_ops=(step.all_ops, True, _word))
    keys += _filter(step) + ("" if fill is None else f", fill={fill}")
    return f"aug_mix({keys[2:]})" if keys else "aug_mix"


def _photometric_distort(step: Any) -> str:
    keys = _keys(brightness=(tuple(step.brightness), (0.875, 1.125), _list),
                 contrast=(tuple(step.contrast), (0.5, 1.5), _list),
                 saturation=(tuple(step.saturation), (0.5, 1.5), _list), hue=(tuple(step.hue), (-0.05, 0.05), _list),
                 p=(step.p, 0.5, _number))
    return f"random_photometric_distort({keys[2:]})"


def _erasing(step: Any) -> str:
    value = getattr(step, "value", 0)
    keys = _keys(scale=(tuple(step.scale), (0.02, 0.33), _list), ratio=(tuple(step.ratio), (0.3, 3.3), _list))
    as_text = "random" if value is None or isinstance(value, str) else _list(value)
    return f"erasing({_number(step.p)}{keys}{'' if as_text == '0' else f', value={as_text}'})"


def _zoom_out(step: Any) -> str:
    keys = _keys(fill=(step.fill, 0, _list), side_range=(tuple(step.side_range), (1.0, 4.0), _list),
                 p=(step.p, 0.5, _number))
    return f"random_zoom_out({keys[2:]})" if keys else "random_zoom_out"


def _iou_crop(step: Any) -> str:
    keys = _keys(min_scale=(step.min_scale, 0.3, _number), max_scale=(step.max_scale, 1.0, _number),
                 min_aspect_ratio=(step.min_aspect_ratio, 0.5, _number),
                 max_aspect_ratio=(step.max_aspect_ratio, 2.0, _number),
                 sampler_options=(tuple(step.options), (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0), _list),
                 trials=(step.trials, 40, _number))
    return f"random_iou_crop({keys[2:]})"


STEPS: Dict[str, Callable[[Any], str]] = {
    "RandomResizedCrop": _random_resized_crop,
    "Resize": lambda step: f"resize({_size(step.size, True)}"
                           f"{_keys(max=(getattr(step, 'max_size', None), None, _number))}{_filter(step)})",
    "CenterCrop": lambda step: f"center_crop({_size(step.size)})",
    "RandomCrop": _random_crop,
    "Pad": lambda step: f"pad({_list(step.padding)}{_keys(padding_mode=(step.padding_mode, 'constant', _word))})",
    "RandomZoomOut": _zoom_out,
    "ScaleJitter": lambda step: f"scale_jitter({_size(step.target_size, True)}"
                                f"{_keys(scale_range=(tuple(step.scale_range), (0.1, 2.0), _list))}{_filter(step)})",
    "RandomShortestSize": lambda step: f"random_shortest_size({_list(step.min_size)}"
                                       f"{_keys(max_size=(step.max_size, None, _number))}{_filter(step)})",
    "RandomResize": lambda step: f"random_resize({_number(step.min_size)}, {_number(step.max_size)}{_filter(step)})",
    "RandomIoUCrop": _iou_crop,
    "FiveCrop": lambda step: f"five_crop({_size(step.size)})",
    "TenCrop": lambda step: f"ten_crop({_size(step.size)}"
                            f"{_keys(vertical_flip=(step.vertical_flip, False, _word))})",
    "RandomHorizontalFlip": lambda step: f"hflip({_number(step.p)})",
    "RandomVerticalFlip": lambda step: f"vflip({_number(step.p)})",
    "ColorJitter": _color_jitter,
    "Grayscale": lambda step: f"grayscale({step.num_output_channels})",
    "RandomGrayscale": lambda step: f"random_grayscale({_number(step.p)})",
    "RandomInvert": lambda step: f"invert({_number(step.p)})",
    "RandomPosterize": lambda step: _with_p("posterize", step.bits, step.p),
    "RandomSolarize": lambda step: _with_p("solarize", step.threshold, step.p),
    "RandomAutocontrast": lambda step: f"autocontrast({_number(step.p)})",
    "RandomEqualize": lambda step: f"equalize({_number(step.p)})",
    "RandomAdjustSharpness": lambda step: _with_p("sharpness", step.sharpness_factor, step.p),
    "RandomRotation": lambda step: f"random_rotation({_list(step.degrees)}"
                                   f"{_keys(expand=(step.expand, False, _word))}{_warp_keys(step, 'nearest')})",
    "RandomAffine": _random_affine,
    "RandomPerspective": lambda step: f"random_perspective({_number(step.distortion_scale)}"
                                      f"{_keys(p=(step.p, 0.5, _number))}{_warp_keys(step, 'bilinear')})",
    "ElasticTransform": lambda step: f"elastic({_list(dict.fromkeys(step.alpha))}"
                                     f"{_keys(sigma=(tuple(step.sigma), (5.0, 5.0), _list))}"
                                     f"{_warp_keys(step, 'bilinear')})",
    "GaussianBlur": lambda step: f"gaussian_blur({_list(dict.fromkeys(step.kernel_size))}"
                                 f"{_keys(sigma=(tuple(step.sigma), (0.1, 2.0), _list))})",
    "GaussianNoise": lambda step: f"gaussian_noise({_number(step.mean)}{_keys(sigma=(step.sigma, 0.1, _number))}"
                                  f"{_keys(clip=(step.clip, True, _word))})",
    "JPEG": lambda step: f"jpeg({_list(dict.fromkeys(step.quality))})",
    "RandomChannelPermutation": lambda step: "random_channel_permutation",
    "RandomPhotometricDistort": _photometric_distort,
    "AutoAugment": lambda step: f"auto_augment({_word(getattr(step.policy, 'value', step.policy))}"
                                f"{_warp_keys(step, 'nearest')})",
    "RandAugment": _rand_augment,
    "TrivialAugmentWide": lambda step: f"trivial_augment_wide({step.num_magnitude_bins}{_warp_keys(step, 'nearest')})",
    "AugMix": _aug_mix,
    "SanitizeBoundingBoxes": lambda step: "sanitize",
}


def _inside(step: Any) -> str:
    """The steps of a group, each of which is one step of ours. TypeError: there is none, or one that is not known."""
    texts = []
    for one in step.transforms:
        text, others = written(one)
        if others or not text or _forms(one):
            raise TypeError(step)
        texts.append(text if _is_one(one) else f"random_apply([{_with_commas(one)}], p=1)")
    if not texts:
        raise TypeError(step)
    return f"[{', '.join(texts)}]"


def _is_one(value: Any) -> bool:
    return len(list(_flat(value))) == 1


def _with_commas(value: Any) -> str:
    return ", ".join(written(step)[0] for step in _flat(value))


def _forms(value: Any) -> bool:
    return any(type(step).__name__ in FORMS for step in _flat(value))


def _random_choice(step: Any) -> str:
    weights = getattr(step, "p", None)
    equal = weights is None or len(set(weights)) == 1
    return f"random_choice({_inside(step)}{'' if equal else f', p={_list(weights)}'})"


STEPS.update({
    "RandomApply": lambda step: f"random_apply({_inside(step)}{_keys(p=(step.p, 0.5, _number))})",
    "RandomChoice": _random_choice,
    "RandomOrder": lambda step: f"random_order({_inside(step)})",
})

def _is_v2(step: Any) -> bool:
    return type(step).__module__.startswith("torchvision.transforms.v2")


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
    "Normalize": lambda step: [f"normalize(mean={_list(step.mean)}, std={_list(step.std)})"],
}

# These are of whole batches: the last step of a part that names the label, too.

def _mixed(name: str, step: Any) -> str:
    return f"{name}({_number(step.alpha)}{_classes(step)})"


def _classes(step: Any) -> str:
    return f", num_classes={int(step.num_classes)}" if step.num_classes else ", num_classes=N"


def _timm(step: Any) -> str:
    """timm.data.Mixup."""
    keys = _keys(mixup_alpha=(step.mixup_alpha, 1, _number), cutmix_alpha=(step.cutmix_alpha, 0, _number),
                 cutmix_minmax=(step.cutmix_minmax, None, _list), prob=(step.mix_prob, 1, _number),
                 switch_prob=(step.switch_prob, 0.5, _number), mode=(step.mode, "batch", _word),
                 correct_lam=(step.correct_lam, True, _word), label_smoothing=(step.label_smoothing, 0.1, _number))
    return f"mix({(keys + _classes(step))[2:]})"


def _either(step: Any) -> str:
    """RandomChoice([CutMix(), MixUp()])"""
    alphas = {type(one).__name__: one for one in step.transforms}
    if len(step.transforms) != 2 or set(alphas) != {"MixUp", "CutMix"}:
        raise ValueError
    cutmix, mixup = alphas["CutMix"], alphas["MixUp"]
    cut = dict(zip((type(one).__name__ for one in step.transforms), step.p))["CutMix"] if step.p else 0.5
    keys = _keys(mixup_alpha=(mixup.alpha, 1, _number), cutmix_alpha=(cutmix.alpha, 0, _number),
                 switch_prob=(cut, 0.5, _number))
    return f"mix({keys[2:]}, label_smoothing=0{_classes(cutmix)}, partner=previous)"


BATCHES: Dict[str, Callable[[Any], str]] = {
    "MixUp": lambda step: _mixed("mixup", step),
    "CutMix": lambda step: _mixed("cutmix", step),
    "Mixup": _timm,
    "RandomChoice": _either,
}


def _mixes(step: Any) -> bool:
    """Is it of whole batches? Of a choice that is not, the steps are of single samples."""
    name = type(step).__name__
    return name in BATCHES and (name != "RandomChoice" or any(type(one).__name__ in BATCHES for one in step.transforms))


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
                batches.append(BATCHES[name](step))
            elif name in STEPS:
                steps.append(STEPS[name](step))
            elif name in sounds.STEPS:
                steps.append(sounds.STEPS[name](step))
            elif name == "Resample" and decoding:
                pass  # the rate of audio
            elif name == "RandomErasing":
                (erasing if any(not form.startswith("layout") for form in forms) else steps).append(_erasing(step))
            elif name == "Normalize" and erasing:
                others.append("Normalize after RandomErasing")
            elif name in FORMS:
                forms += [form for form in FORMS[name](step) if form not in forms]
            else:
                others.append(_name(step))
        except (AttributeError, TypeError, ValueError, IndexError):  # another class of this name
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
