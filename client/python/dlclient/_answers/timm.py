"""timm's text of a RandAugment, rand-m9-mstd0.5-inc1, as the daemon's step."""
from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, Dict, Optional, Sequence

from .._errors import OptionError
from .step_text import step_text

# Sections of timm's text, and the step's argument.
SECTIONS = {"m": "magnitude", "n": "num_layers", "p": "p", "mstd": "mstd", "mmax": "mmax", "inc": "increasing"}
UNIFORM = 1000  # the most that mstd may be; above 100 timm draws from 0 to the magnitude


def _refused(config: str, section: str, problem: str) -> OptionError:
    return OptionError(f"timm_rand_augment: \"{section}\" of \"{config}\" {problem}; expected timm's sections m9, n2, "
                       "p0.5, mstd0.5, mmax10, inc1 with \"-\" between them")


def _value(config: str, section: str, key: str, number: str) -> Any:
    try:
        if key == "inc":
            return bool(int(number))
        return int(number) if key in ("m", "n", "mmax") else min(float(number), UNIFORM)
    except ValueError:
        raise _refused(config, section, "has no such number") from None


def _text(given: Dict[str, Any], mean: Optional[Sequence[float]], interpolation: str) -> str:
    """The step with these arguments; timm fills with the mean of the normalization, as levels."""
    fill = {} if mean is None else {"fill": [min(255, round(255 * value)) for value in mean]}
    return step_text("pictures", "rand_augment_transform", SimpleNamespace(
        **{"magnitude": 10, **given}, **fill, interpolation=interpolation))


def timm_rand_augment(config: str, mean: Optional[Sequence[float]] = None, interpolation: str = "random") -> str:
    """The step of a pipeline that is timm's RandAugment for its text:

        dlclient.timm_rand_augment("rand-m9-mstd0.5-inc1", mean=(0.485, 0.456, 0.406), interpolation="bicubic")

    gives "timm_rand_augment(9, mstd=0.5, increasing=true, interpolation=bicubic, fill=124:116:104)". `mean`
    is that of normalize, with which timm fills; without it, 128. `interpolation` is timm's --train-interpolation. Texts
    with t (other sets of changes) are refused: they are not in the daemon."""
    name, *sections = config.split("-")
    given: Dict[str, Any] = {}
    if name == "augmix":
        raise OptionError(f"timm_rand_augment: \"{config}\" is timm's AugMix, whose changes and mixing are not in the "
                          "daemon; torchvision's are: write aug_mix(severity, mixture_width=W, chain_depth=D)")
    if name != "rand":
        raise OptionError(f"timm_rand_augment: \"{config}\" is not a RandAugment of timm; expected one such as "
                          "rand-m9-mstd0.5-inc1")
    for section in sections:
        match = re.fullmatch(r"([a-z]+)(\d.*)", section)
        if section.startswith("t"):
            raise _refused(config, section, "chooses other changes, which the daemon does not have")
        if not match or match.group(1) not in SECTIONS:
            raise _refused(config, section, "is unknown")
        given[SECTIONS[match.group(1)]] = _value(config, section, match.group(1), match.group(2))
    return _text(given, mean, interpolation)


def text_of(step: Any) -> str:
    """Of an object of timm's class. TypeError if its changes are not those of the step."""
    op = step.ops[0]
    deviation = op.magnitude_std if op.magnitude_std < UNIFORM else UNIFORM
    names = [each.name for each in step.ops]
    if step.choice_weights is not None or len(names) != 15 or names[0] != "AutoContrast":
        raise TypeError(step)
    given = {"magnitude": op.magnitude, "num_layers": step.num_layers, "p": op.prob, "mstd": deviation,
             "mmax": op.magnitude_max or 10, "increasing": "PosterizeIncreasing" in names}
    filters = op.kwargs["resample"]
    filter_name = "random" if isinstance(filters, (list, tuple)) else filters.name.lower()
    return _text(given, [level / 255 for level in op.kwargs["fillcolor"]], filter_name)
