"""Batches that are mixed as torchvision's MixUp and CutMix and timm's Mixup mix them, with the daemon's own draws.

What is drawn, and in which sequence, is written down in daemon/collate/mix/mix.h. lam is computed here with the same
additions, multiplications, divisions and square roots as there. The rest are the formulas of torchvision and timm, in
torch's operations.

    draws = Unit(seed, epoch, position)         # of a whole batch; unit=1 + i: of sample or pair i
    torchvision_mixup(images, labels, draws, alpha=0.2)

Needs torch, which only some machines have: import it inside of a case.
"""
import math

import torch
from harness import philox

OF_BATCHES = 1 << 63
LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")


def another_seed(seed, draws):
    if draws == 0:
        return seed
    words = philox(seed, [draws & 0xffffffff, draws >> 32, 0, 0])
    return words[1] << 32 | words[0]


def logarithm(x):
    m, exponent = math.frexp(x)
    if m < 0.70710678118654752:
        m, exponent = m * 2, exponent - 1
    s = (m - 1) / (m + 1)
    square, total = s * s, 0.0
    for k in range(23, 2, -2):
        total = (total + 1.0 / k) * square
    return exponent * LN2_HIGH + (2 * s + (2 * s * total + exponent * LN2_LOW))


def exponential(x):
    k = round(x * 1.4426950408889634)
    r, total = (x - k * LN2_HIGH) - k * LN2_LOW, 1.0
    for i in range(14, 0, -1):
        total = 1 + total * r / i
    return math.ldexp(total, k)


def sine_squared(x):
    square, total = x * x, 1.0
    for k in range(16, 1, -2):
        total = 1 - total * square / (k * (k + 1))
    return square * (total * total)


class Unit:
    """The nine words of one unit. `seed` is that of the loader, with its draws; `group` numbers its parts with steps."""
    def __init__(self, seed, epoch, position, unit=0, draws=0, group=0):
        seed = another_seed(seed, draws)
        if group:
            seed = another_seed(seed, 2**64 - 1 - group)
        key = another_seed(another_seed(seed, OF_BATCHES), unit)
        self.words = []
        for block in range(3):
            self.words += philox(key, [1 << 16 | block, epoch, position & 0xffffffff, position >> 32])

    def share(self, i):
        return (self.words[i] >> 8) / 2**24

    def below(self, i, n):
        return self.words[i] * n >> 32

    def beta(self, alpha):
        u, v = ((word + 0.5) / 2**32 for word in self.words[2:4])
        exponent = logarithm(u) / alpha
        e = 0.0 if exponent < -700 else exponential(exponent)
        half_pi = 1.5707963267948966
        cosine = 1 - sine_squared(half_pi * v) if v < 0.5 else sine_squared(half_pi * (1 - v))
        q = (1 - e) * cosine
        root = math.sqrt(q / (q + e))
        return (1 - root) / 2 if self.words[4] >> 31 else (1 + root) / 2


def one_hot(labels, n_classes, on=1.0, off=0.0):
    return torch.full((len(labels), n_classes), off).scatter_(1, labels.long().view(-1, 1), on)


def times(elements, share):
    """What today's torch makes of elements * share on a CPU: one of 16 bits rounds the product alone. Torch 1 rounds the
    share as well."""
    return elements.float().mul(share).to(elements.dtype) if elements.element_size() == 2 else elements.mul(share)


# ---- torchvision.transforms.v2.MixUp, CutMix -------------------------------------------------------------------------
# Pictures are [n, channels, height, width].

def torchvision_mixup(images, labels, unit, alpha):
    lam = unit.beta(alpha)
    if images.dtype == torch.uint8:     # torch cannot multiply them in place: as timm's FastCollateMixup
        whole = images.float()
        mixed = (whole * lam + whole.roll(1, 0) * (1.0 - lam)).round().to(torch.uint8)
    else:
        mixed = times(images.roll(1, 0), 1.0 - lam).add_(times(images, lam))
    return mixed, labels.roll(1, 0).mul_(1.0 - lam).add_(labels.mul(lam))


def torchvision_cutmix(images, labels, unit, alpha):
    lam = unit.beta(alpha)
    height, width = images.shape[-2:]
    x, y = unit.below(5, width), unit.below(6, height)
    r = 0.5 * math.sqrt(1.0 - lam)
    half_width, half_height = int(r * width), int(r * height)
    x1, y1 = max(x - half_width, 0), max(y - half_height, 0)
    x2, y2 = min(x + half_width, width), min(y + half_height, height)
    mixed = images.clone()
    mixed[..., y1:y2, x1:x2] = images.roll(1, 0)[..., y1:y2, x1:x2]
    lam = float(1.0 - (x2 - x1) * (y2 - y1) / (width * height))
    return mixed, labels.roll(1, 0).mul_(1.0 - lam).add_(labels.mul(lam))


# ---- timm.data.Mixup, 1.0.31 -----------------------------------------------------------------------------------------

def timm_box(unit, lam, height, width, minmax, kept):
    """Of a side of odd length timm keeps the last row or column, torchvision does not."""
    if minmax is not None:
        cut_height, cut_width = (low + (unit.below(i, high - low) if high > low else 0) for i, low, high in (
            (5, int(height * minmax[0]), int(height * minmax[1])), (6, int(width * minmax[0]), int(width * minmax[1]))))
        top = unit.below(7, height - cut_height + 1)
        left = unit.below(8, width - cut_width + 1)
        return top, top + cut_height, left, left + cut_width
    ratio = math.sqrt(1 - lam)
    cut_height, cut_width = int(height * ratio), int(width * ratio)
    x, y = unit.below(5, width), unit.below(6, height)
    return (max(y - cut_height // 2, 0), min(y + (cut_height + kept) // 2, height),
            max(x - cut_width // 2, 0), min(x + (cut_width + kept) // 2, width))


class Mixup:
    """timm's Mixup; with partner="previous" it is torchvision's RandomChoice([CutMix(), MixUp()])."""
    def __init__(self, num_classes, mixup_alpha=1.0, cutmix_alpha=0.0, cutmix_minmax=None, prob=1.0, switch_prob=0.5,
                 mode="batch", correct_lam=True, label_smoothing=0.1, partner="mirrored"):
        self.__dict__.update(locals())
        if cutmix_minmax is not None:
            self.cutmix_alpha = 1.0

    def drawn(self, unit, height, width):
        """(lam, box or None) of a unit; lam 1: it stays as it is."""
        if not unit.share(0) < self.prob:
            return 1.0, None
        is_cut = self.cutmix_alpha > 0 and (self.mixup_alpha <= 0 or unit.share(1) < self.switch_prob)
        lam = self.rounded(unit.beta(self.cutmix_alpha if is_cut else self.mixup_alpha))
        if not is_cut or lam == 1.0:
            return lam, None
        top, bottom, left, right = box = timm_box(unit, lam, height, width, self.cutmix_minmax, self.partner == "mirrored")
        if self.correct_lam or self.cutmix_minmax is not None:
            lam = self.rounded(1.0 - (bottom - top) * (right - left) / float(height * width))
        return lam, box

    def rounded(self, lam):
        """lam of elements and pairs is float32 there."""
        return lam if self.mode == "batch" else float(torch.tensor(lam, dtype=torch.float32))

    def __call__(self, images, numbers, unit_of):
        n, (height, width) = len(images), images.shape[-2:]
        partner = [n - 1 - i if self.partner == "mirrored" else (i - 1) % n for i in range(n)]
        off = self.label_smoothing / self.num_classes
        labels = one_hot(numbers, self.num_classes, 1.0 - self.label_smoothing + off, off)
        mixed, soft = images.clone(), labels.clone()
        for i in range(n):
            pair = min(i, n - 1 - i)
            unit = {"batch": 0, "elem": 1 + i, "pair": 1 + pair}[self.mode]
            lam, box = self.drawn(unit_of(unit), height, width)
            if self.mode == "pair" and n % 2 == 1 and i == n // 2:
                lam, box = 1.0, None
            if box:
                top, bottom, left, right = box
                mixed[i][:, top:bottom, left:right] = images[partner[i]][:, top:bottom, left:right]
            elif lam != 1.0 and images.dtype == torch.uint8:
                mixed[i] = (images[i].float() * lam + images[partner[i]].float() * (1.0 - lam)).round().to(torch.uint8)
            elif lam != 1.0:
                mixed[i] = times(images[i], lam) + times(images[partner[i]], 1.0 - lam)
            if lam != 1.0:
                soft[i] = labels[i] * lam + labels[partner[i]] * (1.0 - lam)
        return mixed, soft
