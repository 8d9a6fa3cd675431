"""The same for torchaudio's transforms, which follow the step audio. Classes are known by their names."""
from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Optional, Tuple

REFLECT = "reflect"


def _number(value: Any) -> str:
    return f"{float(value):.12g}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else value if isinstance(value, str) else _number(value)


def _step(name: str, *first: Any, **others: Tuple[Any, Any]) -> str:
    """NAME(FIRST, KEY=VALUE): keys are (value, default), and shown where these differ."""
    shown = [_value(value) for value in first]
    shown += [f"{key}={_value(value)}" for key, (value, default) in others.items() if value != default]
    return f"{name}({', '.join(shown)})" if shown else name


def _window(step: Any) -> str:
    """Which window its numbers are; ValueError for one that the daemon does not have."""
    numbers = [float(number) for number in step.window]
    angles = [2 * math.pi * i / len(numbers) for i in range(len(numbers))]
    for name, a, b, c in (("hann", 0.5, 0.5, 0.0), ("hamming", 0.54, 0.46, 0.0), ("blackman", 0.42, 0.5, 0.08)):
        if len(numbers) == 1 or all(abs(number - (a - b * math.cos(angle) + c * math.cos(2 * angle))) < 1e-5
                                    for number, angle in zip(numbers, angles)):
            return name
    raise ValueError("another window")


def _of_spectrum(step: Any) -> Dict[str, Tuple[Any, Any]]:
    """The arguments of a Spectrogram; those of a mel spectrogram are attributes of the one in it."""
    if step.power is None:
        raise ValueError("complex numbers")
    normalized = "window" if step.normalized is True else step.normalized or False
    return {"win_length": (step.win_length, step.n_fft), "hop_length": (step.hop_length, step.win_length // 2),
            "pad": (step.pad, 0), "window_fn": (_window(step), "hann"), "power": (step.power, 2),
            "normalized": (normalized, False), "center": (step.center, True), "pad_mode": (step.pad_mode, REFLECT)}


def _of_bands(step: Any, norm: str) -> Dict[str, Tuple[Any, Any]]:
    bands = step.mel_scale
    return {**_of_spectrum(step.spectrogram), "f_min": (step.f_min, 0), "n_mels": (step.n_mels, 128),
            "f_max": (bands.f_max, float(step.sample_rate // 2)), norm: (bands.norm, None),
            "mel_scale": (bands.mel_scale, "htk")}


def _mfcc(step: Any) -> str:
    bands = step.MelSpectrogram
    return _step("mfcc", step.n_mfcc, norm=(step.norm, "ortho"), log_mels=(step.log_mels, False),
                 n_fft=(bands.n_fft, 400), **_of_bands(bands, "mel_norm"))


def _gain(step: Any) -> str:
    gain = float(step.gain)
    db = gain if step.gain_type == "db" else (10 if step.gain_type == "power" else 20) * math.log10(gain)
    return _step("gain", db, clamp=(True, False))


STEPS: Dict[str, Callable[[Any], str]] = {
    "Spectrogram": lambda step: _step("spectrogram", step.n_fft, **_of_spectrum(step)),
    "MelSpectrogram": lambda step: _step("mel_spectrogram", step.n_fft, **_of_bands(step, "norm")),
    "MFCC": _mfcc,
    "AmplitudeToDB": lambda step: _step("amplitude_to_db", stype=(step.stype, "power"), top_db=(step.top_db, None)),
    "TimeMasking": lambda step: _step("time_mask", step.mask_param, iid_masks=(step.iid_masks, False), p=(step.p, 1)),
    "FrequencyMasking": lambda step: _step("freq_mask", step.mask_param, iid_masks=(step.iid_masks, False)),
    "SpecAugment": lambda step: _step(
        "spec_augment", step.n_time_masks, step.time_mask_param, step.n_freq_masks, step.freq_mask_param,
        iid_masks=(step.iid_masks, True), p=(step.p, 1), zero_masking=(step.zero_masking, False)),
    "Vol": _gain,
}


def audio(steps: List[Any]) -> Optional[str]:
    """The step that decodes for these objects, at the rate that one of them names; None: none of them is for sound."""
    if not any(type(step).__name__ in STEPS for step in steps):
        return None
    rates = [getattr(step, "new_freq" if type(step).__name__ == "Resample" else "sample_rate", None) for step in steps]
    return _step("audio", rate=(next((rate for rate in reversed(rates) if isinstance(rate, int)), None), None))
