#!/usr/bin/env python3
"""Writes tests/vectors/sound/features.jsonl: what torchaudio makes of sounds, for the steps that follow audio(...).

    make_sound_vectors.py > tests/vectors/sound/features.jsonl

Needs torch and torchaudio; the file was made with torchaudio 2.11.0 and torch 2.15.0. Kinds:

    wave        `name`, `rate`, `channels`, and its `samples`: float32, base64, channels in turns
    features    of the wave `wave`: the `steps` after audio(...), the `shape`, and the `numbers`: float32, base64
    drawn       the same for sample `sample` of epoch 0 with the seed 7: torchaudio with the daemon's own draws
"""
import base64
import json
import math
import warnings

import numpy
import torch

torch.version.cuda = None  # torchaudio insists on the CUDA with which it was built; nothing here uses one
import torchaudio.functional as F  # noqa: E402
import torchaudio.transforms as T  # noqa: E402
from harness import philox  # noqa: E402
from replay import Draws  # noqa: E402

warnings.filterwarnings("ignore", message="At least one mel filterbank")
RATE = 16000


def encode(tensor):
    return base64.b64encode(tensor.to(torch.float32).contiguous().numpy().tobytes()).decode()


def write(**line):
    print(json.dumps(line, separators=(",", ":")))


# ---- waves ------------------------------------------------------------------------------------------------------------

def noise(n, channels=1, scale=0.3):
    return (torch.rand(channels, n) * 2 - 1) * scale


def tones(n):
    t = torch.arange(n) / RATE
    return (0.4 * torch.sin(2 * torch.pi * 440 * t) + 0.2 * torch.sin(2 * torch.pi * 3100 * t))[None] + noise(n, 1, 0.01)


def with_nan(n):
    wave = noise(n)
    wave[0, n // 2] = float("nan")
    return wave


torch.manual_seed(26)
WAVES = {"noise": noise(1600), "tones": tones(1999), "stereo": noise(900, 2), "silence": torch.zeros(1, 800),
         "one": torch.tensor([[0.5]]), "short": noise(201), "nan": with_nan(1200), "quiet": noise(700, 1, 1e-4)}

# ---- steps ------------------------------------------------------------------------------------------------------------


def spectrogram(text, **words):
    return f"spectrogram({text})", T.Spectrogram(**words)


def mel(text, **words):
    return f"mel_spectrogram({text})", T.MelSpectrogram(RATE, **words)


def mfcc(text, n_mfcc=40, norm="ortho", log_mels=False, mel_norm=None, **words):
    words["norm"] = mel_norm
    return f"mfcc({text})", T.MFCC(RATE, n_mfcc=n_mfcc, norm=norm, log_mels=log_mels, melkwargs=words)


def db(steps, stype="power", top_db=None):
    """The same, in decibels."""
    text, transform = steps
    to_db = T.AmplitudeToDB(stype, top_db)
    return f"{text} amplitude_to_db({stype}{'' if top_db is None else f', top_db={top_db}'})", lambda x: to_db(transform(x))


def log(steps, offset):
    text, transform = steps
    return f"{text} log({offset})", lambda x: torch.log(transform(x) + offset)


def whisper(x):
    """As whisper/audio.py does it, with torchaudio's bands."""
    power = T.MelSpectrogram(RATE, n_fft=400, hop_length=160, n_mels=80, norm="slaney", mel_scale="slaney")(x)[..., :-1]
    logs = torch.clamp(power, min=1e-10).log10()
    return (torch.maximum(logs, logs.max() - 8.0) + 4.0) / 4.0


CASES = {
    "noise": [
        spectrogram(""), spectrogram("n_fft=512, hop_length=128", n_fft=512, hop_length=128),
        spectrogram("200, power=1", n_fft=200, power=1.0), spectrogram("255", n_fft=255),
        spectrogram("n_fft=322, hop_length=150", n_fft=322, hop_length=150),
        spectrogram("n_fft=210, win_length=105, hop_length=300", n_fft=210, win_length=105, hop_length=300),
        spectrogram("128, power=0.5", n_fft=128, power=0.5), spectrogram("97", n_fft=97),
        spectrogram("1024, hop_length=400", n_fft=1024, hop_length=400),
        spectrogram("240, center=false", n_fft=240, center=False),
        spectrogram("250, pad=100", n_fft=250, pad=100),
        spectrogram("64, hop_length=200, normalized=window", n_fft=64, hop_length=200, normalized=True),
        spectrogram("64, hop_length=200, normalized=frame_length", n_fft=64, hop_length=200, normalized="frame_length"),
        spectrogram("64, hop_length=200, pad_mode=constant", n_fft=64, hop_length=200, pad_mode="constant"),
        spectrogram("64, hop_length=200, pad_mode=replicate", n_fft=64, hop_length=200, pad_mode="replicate"),
        spectrogram("64, hop_length=200, window_fn=hamming", n_fft=64, hop_length=200, window_fn=torch.hamming_window),
        spectrogram("64, hop_length=200, window_fn=blackman", n_fft=64, hop_length=200, window_fn=torch.blackman_window),
        spectrogram("1, hop_length=100", n_fft=1, hop_length=100), spectrogram("2, hop_length=100", n_fft=2, hop_length=100),
        spectrogram("3, hop_length=100", n_fft=3, hop_length=100), spectrogram("12, hop_length=100", n_fft=12, hop_length=100),
        mel(""), mel("hop_length=160, n_mels=80", hop_length=160, n_mels=80),
        mel("n_mels=64, norm=slaney, mel_scale=slaney", n_mels=64, norm="slaney", mel_scale="slaney"),
        mel("n_mels=23, f_min=20, f_max=7600, power=1", n_mels=23, f_min=20.0, f_max=7600.0, power=1.0),
        mel("n_mels=30, norm=slaney", n_mels=30, norm="slaney"), mel("n_mels=30, mel_scale=slaney", n_mels=30, mel_scale="slaney"),
        mel("1024, n_mels=40, hop_length=256", n_fft=1024, n_mels=40, hop_length=256),
        db(mel("n_mels=40", n_mels=40)), db(mel("n_mels=40, power=1", n_mels=40, power=1.0), "magnitude", 20),
        log(mel("n_mels=40", n_mels=40), 1e-6),
        mfcc("n_mels=64", n_mels=64), mfcc("13, n_mels=23, hop_length=160", 13, n_mels=23, hop_length=160),
        mfcc("20, norm=none, n_mels=40", 20, norm=None, n_mels=40),
        mfcc("20, log_mels=true, n_mels=40, mel_norm=slaney", 20, log_mels=True, n_mels=40, mel_norm="slaney"),
        ("mel_spectrogram(400, hop_length=160, n_mels=80, norm=slaney, mel_scale=slaney) columns(10) "
         "amplitude_to_db(top_db=80) normalize(-40, 40)", whisper),
        ("mel_spectrogram(n_mels=20) transpose", lambda x: T.MelSpectrogram(RATE, n_mels=20)(x).transpose(-1, -2)),
        ("mel_spectrogram(n_mels=20) columns(12, value=-1) columns(11)",
         lambda x: torch.nn.functional.pad(T.MelSpectrogram(RATE, n_mels=20)(x), (0, 2), value=-1.0)),
    ],
    "tones": [mel("n_mels=80", n_mels=80), db(mel("n_mels=32", n_mels=32), top_db=60), mfcc("13, n_mels=32", 13, n_mels=32)],
    "stereo": [spectrogram("200", n_fft=200), db(mel("n_mels=20", n_mels=20), top_db=10), mfcc("7, n_mels=20", 7, n_mels=20),
               ("mel_spectrogram(n_mels=20) transpose", lambda x: T.MelSpectrogram(RATE, n_mels=20)(x).transpose(-1, -2))],
    "silence": [mel("n_mels=20", n_mels=20), db(mel("n_mels=20", n_mels=20), top_db=80), mfcc("13, n_mels=20", 13, n_mels=20)],
    "one": [spectrogram("8, pad_mode=constant", n_fft=8, pad_mode="constant")],
    "short": [spectrogram(""), mel("n_mels=20", n_mels=20)],
    "nan": [mel("n_mels=20", n_mels=20), db(mel("n_mels=20", n_mels=20)), db(mel("n_mels=20", n_mels=20), top_db=80)],
    "quiet": [db(mel("n_mels=20", n_mels=20), top_db=80), mfcc("13, n_mels=20", 13, n_mels=20)],
}


# ---- steps that draw: (numbers, draws, arguments) -> numbers ----------------------------------------------------------

def happens(draws, p):
    return draws.f32() < p


def uniform(draws, low, high):
    return low + (high - low) * draws.f64()


def gain(x, draws, low, high, p=1.0, clamp=False):
    applies, db = happens(draws, p), uniform(draws, low, high)
    if not applies:
        return x
    return T.Vol(db, "db")(x) if clamp else F.gain(x, db)


def normals(key, n):
    """The noise of steps/sound_noise.c, in float64."""
    blocks = [philox(key, [block, 0, 0, 0]) for block in range(-(-n // 32) * 8)]
    words = numpy.array(blocks, dtype=numpy.uint64).reshape(-1, 8, 4).swapaxes(1, 2).reshape(-1, 2, 8)
    radius = numpy.sqrt(-2 * numpy.log(((words[:, 0] >> 8) + 1) / 2**24))
    angle = ((words[:, 1] >> 30) + (((words[:, 1] & 0x3fffffff) >> 6) / 2**24 - 0.5)) * (math.pi / 2)
    return torch.tensor(numpy.stack([radius * numpy.cos(angle), radius * numpy.sin(angle)], 1).ravel()[:n], dtype=torch.float32)


def noise_at(x, draws, low, high, p=1.0):
    applies, snr = happens(draws, p), uniform(draws, low, high)
    key = draws.u32() | draws.u32() << 32
    waves = x if x.dim() > 1 else x[None]
    noises = normals(key, waves.numel()).reshape(-1, len(waves)).T
    return F.add_noise(waves, noises, torch.full((len(waves),), snr)).reshape(x.shape) if applies else x


def with_draws(transform):
    """torchaudio takes what it draws from the daemon's draws."""
    def run(x, draws):
        original = torch.rand
        torch.rand = lambda *shape, **_: torch.tensor([draws.f32() for _ in range(math.prod(shape[0]) if isinstance(shape[0], torch.Size)
                                                                                   else shape[0])])
        try:
            return transform(x)
        finally:
            torch.rand = original
    return run


def steps_of(x, sample, steps):
    for i, step in enumerate(steps):
        x = step(x, Draws(7, 0, sample, i + 1))
    return x


BANDS = ("mel_spectrogram(n_mels=20) ", lambda x, _: T.MelSpectrogram(RATE, n_mels=20)(x))
DRAWN = {
    "noise": [
        ("gain(6)", [lambda x, d: gain(x, d, 6, 6)]), ("gain(-6:6)", [lambda x, d: gain(x, d, -6, 6)]),
        ("gain(0:30, p=0.5, clamp=true)", [lambda x, d: gain(x, d, 0, 30, 0.5, True)]),
        ("noise(10:30)", [lambda x, d: noise_at(x, d, 10, 30)]),
        ("gain(-20) noise(-5, p=0.5)", [lambda x, d: gain(x, d, -20, -20), lambda x, d: noise_at(x, d, -5, -5, 0.5)]),
        (BANDS[0] + "time_mask(6)", [BANDS[1], with_draws(T.TimeMasking(6))]),
        (BANDS[0] + "time_mask(30)", [BANDS[1], with_draws(lambda x: F.mask_along_axis(x, 30, 0.0, 1))]),
        (BANDS[0] + "time_mask(8, p=0.5, mask_value=-3)", [BANDS[1], with_draws(lambda x: T.TimeMasking(8, p=0.5)(x, -3.0))]),
        (BANDS[0] + "freq_mask(15)", [BANDS[1], with_draws(T.FrequencyMasking(15))]),
        (BANDS[0] + "spec_augment(2, 3, 2, 5)", [BANDS[1], with_draws(T.SpecAugment(2, 3, 2, 5))]),
        (BANDS[0] + "spec_augment(1, 8, 1, 5, p=0.3, zero_masking=true)",
         [BANDS[1], with_draws(T.SpecAugment(1, 8, 1, 5, p=0.3, zero_masking=True))]),
    ],
    "stereo": [
        ("noise(10)", [lambda x, d: noise_at(x, d, 10, 10)]), ("gain(-3:3, clamp=true)", [lambda x, d: gain(x, d, -3, 3, 1.0, True)]),
        (BANDS[0] + "time_mask(4, iid_masks=true)", [BANDS[1], with_draws(T.TimeMasking(4, iid_masks=True))]),
        (BANDS[0] + "freq_mask(9)", [BANDS[1], with_draws(T.FrequencyMasking(9))]),
        (BANDS[0] + "spec_augment(2, 3, 2, 5)", [BANDS[1], with_draws(T.SpecAugment(2, 3, 2, 5))]),
        (BANDS[0] + "spec_augment(1, 3, 1, 5, iid_masks=false)", [BANDS[1], with_draws(T.SpecAugment(1, 3, 1, 5, iid_masks=False))]),
    ],
    "silence": [("noise(10)", [lambda x, d: noise_at(x, d, 10, 10)])],
    "one": [("noise(10) gain(3)", [lambda x, d: noise_at(x, d, 10, 10), lambda x, d: gain(x, d, 3, 3)])],
    "nan": [("gain(20, clamp=true)", [lambda x, d: gain(x, d, 20, 20, 1.0, True)]), ("noise(10)", [lambda x, d: noise_at(x, d, 10, 10)])],
}


def main():
    for name, wave in WAVES.items():
        write(kind="wave", name=name, rate=RATE, channels=len(wave), samples=encode(wave.T))
        for steps, transform in CASES[name]:
            features = transform(wave if len(wave) > 1 else wave[0])
            write(kind="features", wave=name, steps=steps, shape=list(features.shape), numbers=encode(features))
        for text, steps in DRAWN.get(name, []):
            for sample in range(2):
                numbers = steps_of(wave if len(wave) > 1 else wave[0], sample, steps)
                numbers = numbers.T if len(wave) > 1 and numbers.dim() == 2 else numbers  # a wave of two channels
                write(kind="drawn", wave=name, steps=text, sample=sample, shape=list(numbers.shape), numbers=encode(numbers))


main()
