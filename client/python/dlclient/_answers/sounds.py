"""The same for torchaudio's transforms, which follow the step audio. Classes are known by their names."""
from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, Iterable, List, Optional, Set

from . import kinds_table
from .step_text import numbers, step_text

CLASSES = {"Vol", *kinds_table.CLASSES["sounds"]}


def _window(window: Iterable[Any]) -> str:
    """Which window these numbers are; ValueError for one that the daemon does not have."""
    given = [float(number) for number in window]
    angles = [2 * math.pi * i / len(given) for i in range(len(given))]
    for name, a, b, c in (("hann", 0.5, 0.5, 0.0), ("hamming", 0.54, 0.46, 0.0), ("blackman", 0.42, 0.5, 0.08)):
        if len(given) == 1 or all(abs(number - (a - b * math.cos(angle) + c * math.cos(2 * angle))) < 1e-5
                                    for number, angle in zip(given, angles)):
            return name
    raise ValueError("another window")


def _spectrum(step: Any, names: Set[str]) -> SimpleNamespace:
    """The arguments of a spectrogram, and of what is made of one, which torchaudio keeps in objects within each other;
    without those that follow from others."""
    mel = getattr(step, "MelSpectrogram", step)
    spectrum, bands = getattr(mel, "spectrogram", mel), getattr(mel, "mel_scale", None)
    if spectrum.power is None:
        raise ValueError("complex numbers")
    values = {name: getattr(part, name)
              for part in (bands, spectrum, mel, step) for name in names if hasattr(part, name)}
    values.update(window_fn=_window(spectrum.window), mel_scale=getattr(bands, "mel_scale", None),
                  mel_norm=getattr(bands, "norm", None))
    if values["hop_length"] == values["win_length"] // 2:
        del values["hop_length"]
    if values["win_length"] == values["n_fft"]:
        del values["win_length"]
    if bands and values["f_max"] == mel.sample_rate // 2:
        del values["f_max"]
    if values["normalized"] is True:
        values["normalized"] = "window"
    return SimpleNamespace(**values)


def _gain(step: Any) -> str:
    gain = float(step.gain)
    db = gain if step.gain_type == "db" else (10 if step.gain_type == "power" else 20) * math.log10(gain)
    return f"gain({numbers(db)}, clamp=true)"


def sound_text(step: Any) -> str:
    name = type(step).__name__
    if name == "Vol":
        return _gain(step)
    names = {argument["name"] for argument in kinds_table.CLASSES["sounds"][name]["arguments"]}
    return step_text("sounds", name, _spectrum(step, names) if "window_fn" in names else step)


def audio(steps: List[Any]) -> Optional[str]:
    """The step that decodes for these objects, at the rate that one of them names; None: none of them is for sound."""
    if not any(type(step).__name__ in CLASSES for step in steps):
        return None
    rates = [getattr(step, "new_freq" if type(step).__name__ == "Resample" else "sample_rate", None) for step in steps]
    rate = next((rate for rate in reversed(rates) if isinstance(rate, int)), None)
    return "audio" if rate is None else f"audio(rate={rate})"
