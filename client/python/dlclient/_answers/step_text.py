"""The text of a step for an object of the class that it is like: by what the kinds of steps say of their arguments
(kinds_table.py), so a new step is known here without a line."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

from .kinds_table import CLASSES


def listed(value: Any) -> List[Any]:
    return list(value) if hasattr(value, "__iter__") and not isinstance(value, str) else [value]


def numbers(value: Any) -> str:
    return ":".join(f"{float(one):.12g}" for one in listed(value))


def _numbers(argument: Dict[str, Any], value: Any) -> Optional[str]:
    """Equal ones once, if one means all of them. None: these are what is meant without them."""
    form, many = argument.get("form", ""), listed(value)
    if form == "W:W" and len(set(many)) == 1:
        return None
    is_once = len(set(many)) == 1 and (argument.get("type") == "size" or form.startswith("N or"))
    return numbers(many[:1] if is_once else many)


def _text(argument: Dict[str, Any], value: Any, inside: Callable[[Any], str]) -> Optional[str]:
    """How a value is written. None: it is not there. ValueError, TypeError: it cannot be written."""
    value = getattr(value, "value", value)  # of an enumeration
    if "word" in argument and (value is None or isinstance(value, str)):
        return str(argument["word"])
    if str(value).lower() in argument.get("choices", "").split():
        return str(value).lower()
    if value is None:
        return None
    if "choices" in argument:
        raise ValueError(value)
    if argument.get("type") == "flag":
        return str(bool(value)).lower()
    return inside(value) if argument.get("type") == "steps" else _numbers(argument, value)


def _default(argument: Dict[str, Any]) -> Optional[str]:
    text: Optional[str] = argument.get("default")
    is_word = text is None or "choices" in argument or argument.get("type") == "flag" or text == argument.get("word")
    return text if is_word else _numbers(argument, str(text).split(":"))


def _value(argument: Dict[str, Any], step: Any, is_needed: bool) -> Any:
    names = [argument[key] for key in ("attribute", "name", "other_name") if key in argument]
    name = next((name for name in names if hasattr(step, name)), None)
    if name is None and is_needed:
        raise AttributeError(names[0])
    return None if name is None else getattr(step, name)


def step_text(family: str, class_name: str, step: Any, inside: Callable[[Any], str] = str) -> str:
    """NAME(VALUE, KEY=VALUE): without keys what the example of the kind has without keys, always; of the others those
    that differ from their defaults. `inside` writes the steps of a group."""
    kind = CLASSES[family][class_name]
    shown: List[str] = []
    for i, argument in enumerate(kind["arguments"]):
        is_bare = i < kind["n_bare"] and len(shown) == i
        text = _text(argument, _value(argument, step, is_bare), inside)
        if text is not None and is_bare:
            shown.append(text)
        elif text is not None and text != _default(argument):
            shown.append(f"{argument['name']}={text}")
    return f"{kind['name']}({', '.join(shown)})" if shown else str(kind["name"])
