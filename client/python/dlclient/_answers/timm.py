"""timm's text of a RandAugment, rand-m9-mstd0.5-inc1, as the daemon's step."""
from __future__ import annotations

import re
from typing import Any, Dict, Optional, Sequence

from .._errors import OptionError

# Sections of timm's text, the step's argument, and what it is without the section.
SECTIONS = {"m": ("magnitude", "10"), "n": ("num_layers", "2"), "p": ("p", "0.5"), "mstd": ("mstd", "0"),
            "mmax": ("mmax", "10"), "inc": ("increasing", "false")}
UNIFORM = 1000  # the most that mstd may be; above 100 timm draws from 0 to the magnitude


def _refused(config: str, section: str, problem: str) -> OptionError:
    return OptionError(f"timm_rand_augment: \"{section}\" of \"{config}\" {problem}; expected timm's sections m9, n2, "
                       "p0.5, mstd0.5, mmax10, inc1 with \"-\" between them")


def _value(config: str, section: str, key: str, number: str) -> str:
    try:
        if key == "inc":
            return "true" if int(number) else "false"
        if key in ("m", "n", "mmax"):
            return str(int(number))
        return f"{min(float(number), UNIFORM):.12g}"
    except ValueError:
        raise _refused(config, section, "has no such number") from None


def step_text(given: Dict[str, str], mean: Optional[Sequence[float]], interpolation: str) -> str:
    """The step with these arguments; timm fills with the mean of the normalization, as levels."""
    shown = [f"{name}={given[name]}" for name, default in SECTIONS.values() if given.get(name, default) != default]
    if interpolation != "random":
        shown.append(f"interpolation={interpolation}")
    if mean is not None:
        shown.append("fill=" + ":".join(str(min(255, round(255 * value))) for value in mean))
    return f"timm_rand_augment({', '.join(shown)})"


def timm_rand_augment(config: str, mean: Optional[Sequence[float]] = None, interpolation: str = "random") -> str:
    """The step of a pipeline that is timm's RandAugment for its text:

        dlclient.timm_rand_augment("rand-m9-mstd0.5-inc1", mean=(0.485, 0.456, 0.406), interpolation="bicubic")

    gives "timm_rand_augment(magnitude=9, mstd=0.5, increasing=true, interpolation=bicubic, fill=124:116:104)". `mean`
    is that of normalize, with which timm fills; without it, 128. `interpolation` is timm's --train-interpolation. Texts
    with t (other sets of changes) are refused: they are not in the daemon."""
    name, *sections = config.split("-")
    given: Dict[str, str] = {}
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
        given[SECTIONS[match.group(1)][0]] = _value(config, section, match.group(1), match.group(2))
    return step_text(given, mean, interpolation)


def text_of(step: Any) -> str:
    """Of an object of timm's class. TypeError if its changes are not those of the step."""
    op = step.ops[0]
    deviation = op.magnitude_std if op.magnitude_std < UNIFORM else UNIFORM
    names = [each.name for each in step.ops]
    if step.choice_weights is not None or len(names) != 15 or names[0] != "AutoContrast":
        raise TypeError(step)
    given = {"magnitude": f"{op.magnitude:.12g}", "num_layers": str(step.num_layers), "p": f"{op.prob:.12g}",
             "mstd": f"{deviation:.12g}", "mmax": str(op.magnitude_max or 10),
             "increasing": str("PosterizeIncreasing" in names).lower()}
    filters = op.kwargs["resample"]
    filter_name = "random" if isinstance(filters, (list, tuple)) else filters.name.lower()
    return step_text(given, [level / 255 for level in op.kwargs["fillcolor"]], filter_name)
