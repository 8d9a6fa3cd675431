"""Pipelines as torchvision does them on Pillow's pictures, with the daemon's own random numbers.

What each step draws, and in which sequence, is written down in its file daemon/augment/steps/NAME.c. Here the same draws
go into torchvision's functions, so whoever compares the results compares everything but the numbers' source. Steps are
Python calls, not texts: a mistake in reading texts would show.

    steps = [("random_crop", {"size": (32, 32), "padding": 4}), ("hflip", {"p": 0.5})]
    text(steps)                                   # random_crop(32:32, padding=4) hflip(p=0.5)
    replay(steps, picture, seed, epoch, sample)   # a tensor

Needs torch, torchvision, NumPy and Pillow, which only some machines have: import it inside of a case.
"""
import math
import statistics
from fractions import Fraction
from unittest import mock

import numpy
import torch
from harness import BUILD, philox
from pillow_resize import rows_first
from torch_calls import picture_kinds
from PIL import Image
from torchvision import transforms
from torchvision.transforms import InterpolationMode, functional

rows_first(Image)

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


class Draws:
    """The random numbers of one step of one sample."""
    def __init__(self, seed, epoch, sample, step):
        self.seed, self.counter = seed, [step << 16, epoch, sample & 0xffffffff, sample >> 32]
        self.words = []

    def u32(self):
        if not self.words:
            self.words = philox(self.seed, self.counter)
            self.counter[0] += 1
        return self.words.pop(0)

    def f32(self):
        return (self.u32() >> 8) / 2**24

    def f64(self):
        high = self.u32()
        return ((high << 32 | self.u32()) >> 11) / 2**53

    def below(self, limit):
        return self.u32() * limit >> 32


# ---- steps: (picture, draws, arguments) -> picture --------------------------------------------------------------------

def random_resized_crop(picture, draws, size, scale=(0.08, 1.0), ratio=(3 / 4, 4 / 3), interpolation="bilinear"):
    width, height = picture.size
    area, log_ratio = width * height, (math.log(ratio[0]), math.log(ratio[1]))
    for _ in range(10):
        target = area * (scale[0] + (scale[1] - scale[0]) * draws.f64())
        shape = math.exp(log_ratio[0] + (log_ratio[1] - log_ratio[0]) * draws.f64())
        w, h = int(round(math.sqrt(target * shape))), int(round(math.sqrt(target / shape)))
        if 0 < w <= width and 0 < h <= height:
            top = draws.below(height - h + 1)
            left = draws.below(width - w + 1)
            break
    else:
        w, h = width, height
        if width / height < ratio[0]:
            h = max(1, int(round(width / ratio[0])))
        elif width / height > ratio[1]:
            w = max(1, int(round(height * ratio[1])))
        top, left = (height - h) // 2, (width - w) // 2
    return functional.resized_crop(picture, top, left, h, w, list(size), InterpolationMode(interpolation))


def resize(picture, draws, size, interpolation="bilinear"):
    return functional.resize(picture, size, InterpolationMode(interpolation))


def center_crop(picture, draws, size):
    return functional.center_crop(picture, size)


def random_crop(picture, draws, size, padding=0, pad_if_needed=False, fill=0, padding_mode="constant"):
    """RandomCrop itself, but that its two integers come from us."""
    crop = transforms.RandomCrop(size, padding, pad_if_needed, fill, padding_mode)
    crop.get_params = lambda padded, wanted: random_crop_place(padded, wanted, draws)
    return crop(picture)


def random_crop_place(padded, wanted, draws):
    (width, height), (h, w) = padded.size, wanted
    if h > height or w > width:
        raise ValueError("too small")
    top = draws.below(height - h + 1)
    return top, draws.below(width - w + 1), h, w


def pad(picture, draws, padding, fill=0, padding_mode="constant"):
    return functional.pad(picture, padding, fill, padding_mode)


def ranged(draws, bounds):
    """As torch computes bounds[0] + rand(1) * (bounds[1] - bounds[0]): in float32."""
    return numpy.float32(bounds[0]) + numpy.float32(draws.f32()) * numpy.float32(bounds[1] - bounds[0])


def random_zoom_out(picture, draws, fill=0, side_range=(1.0, 4.0), p=0.5):
    yes, side = happens(draws, p), ranged(draws, side_range)
    more = [int(numpy.float32(length) * side) - length for length in picture.size]
    left, top = (int(numpy.float32(length) * numpy.float32(draws.f32())) for length in more)
    return functional.pad(picture, [left, top, more[0] - left, more[1] - top], fill) if yes else picture


def resize_whole(picture, width, height, interpolation):
    if 0 in (width, height):
        raise ValueError("nothing is left")
    return functional.resize(picture, [height, width], InterpolationMode(interpolation))


def scale_jitter(picture, draws, target_size, scale_range=(0.1, 2.0), interpolation="bilinear"):
    width, height = picture.size
    r = numpy.float32(min(target_size[1] / height, target_size[0] / width)) * ranged(draws, scale_range)
    return resize_whole(picture, int(numpy.float32(width) * r), int(numpy.float32(height) * r), interpolation)


def random_shortest_size(picture, draws, min_size, max_size=None, interpolation="bilinear"):
    width, height = picture.size
    r = min_size[draws.below(len(min_size))] / min(height, width)
    if max_size is not None:
        r = min(r, max_size / max(height, width))
    return resize_whole(picture, int(width * r), int(height * r), interpolation)


def random_resize(picture, draws, min_size, max_size, interpolation="bilinear"):
    return functional.resize(picture, [min_size + draws.below(max_size - min_size)], InterpolationMode(interpolation))


def color_jitter(picture, draws, **ranges):
    """ColorJitter itself, but that its permutation and factors come from us."""
    jitter = transforms.ColorJitter(**ranges)
    sequence = [0, 1, 2, 3]
    for i in range(3):
        other = i + draws.below(4 - i)
        sequence[i], sequence[other] = sequence[other], sequence[i]
    factors = []
    for wanted in (jitter.brightness, jitter.contrast, jitter.saturation, jitter.hue):
        u = draws.f32()
        factors.append(None if wanted is None else float(numpy.float32(wanted[0] + (wanted[1] - wanted[0]) * u)))
    jitter.get_params = lambda *_: (torch.tensor(sequence), *factors)
    return jitter(picture)


def grayscale(picture, draws, num_output_channels=1):
    return functional.to_grayscale(picture, num_output_channels)


def random_grayscale(picture, draws, p=0.1):
    if draws.f32() < numpy.float32(p):
        return functional.rgb_to_grayscale(picture, len(picture.getbands()))
    return picture


def happens(draws, p):
    return draws.f32() < numpy.float32(p)


def with_chance(function):
    def step(picture, draws, *arguments, p=0.5, **others):
        return function(picture, *arguments, **others) if happens(draws, p) else picture
    return step


def sharpness(picture, draws, factor, p=0.5):
    return functional.adjust_sharpness(picture, factor) if happens(draws, p) else picture


def number(draws, low, high):
    """f32 of the stream between two numbers, rounded to float32."""
    return float(numpy.float32(low + (high - low) * draws.f32()))


def reach(value):
    """One number is the distance to both sides."""
    return value if isinstance(value, tuple) else (-value, value)


def random_rotation(picture, draws, degrees, interpolation="nearest", expand=False, center=None, fill=0):
    angle = number(draws, *reach(degrees))
    return functional.rotate(picture, angle, InterpolationMode(interpolation), expand, center, fill)


def warp(picture, method, numbers, interpolation, fill):
    """Pillow's transform, as torchvision calls it."""
    fill = (fill,) * 3 if isinstance(fill, int) and picture.mode == "RGB" else fill
    return picture.transform(picture.size, method, numbers, getattr(Image, interpolation.upper()), fillcolor=fill)


def affine(picture, angle, translate, scale, shear, interpolation, fill, center=None):
    """transforms.v2.functional.affine, whose matrix differs from that of transforms.functional in its last digits."""
    (width, height), angle, shear_x, shear_y = picture.size, *map(math.radians, (angle, *shear))
    x, y = center or (width * 0.5, height * 0.5)
    moved_x, moved_y = x + translate[0], y + translate[1]
    a = math.cos(angle - shear_y) / math.cos(shear_y)
    b = -(a * math.tan(shear_x) + math.sin(angle))
    c = math.sin(angle - shear_y) / math.cos(shear_y)
    d = math.cos(angle) - c * math.tan(shear_x)
    m = [d / scale, -b / scale, 0.0, -c / scale, a / scale, 0.0]
    m[2] += x - m[0] * moved_x - m[1] * moved_y
    m[5] += y - m[3] * moved_x - m[4] * moved_y
    return warp(picture, Image.AFFINE, m, interpolation, fill)


def random_affine(picture, draws, degrees, translate=(0, 0), scale=(1, 1), shear=0, interpolation="nearest", fill=0,
                  center=None):
    shears = (*reach(shear), 0, 0)[:4]
    angle = number(draws, *reach(degrees))
    moves = [round(number(draws, -share * side, share * side)) for share, side in zip(translate, picture.size)]
    factor = number(draws, *scale)
    shear = number(draws, *shears[:2]), number(draws, *shears[2:])
    return affine(picture, angle, moves, factor, shear, interpolation, fill, center)


def perspective_of(corners, width, height):
    """The eight numbers for which torchvision solves equations in float64 and rounds to float32: exactly, and rounded
    once. None: there are none."""
    rows = []
    for (x, y), (to_x, to_y) in zip(corners, ((0, 0), (width - 1, 0), (width - 1, height - 1), (0, height - 1))):
        rows.append([Fraction(number) for number in (x, y, 1, 0, 0, 0, -to_x * x, -to_x * y, to_x)])
        rows.append([Fraction(number) for number in (0, 0, 0, x, y, 1, -to_y * x, -to_y * y, to_y)])
    for column in range(8):
        pivot = next((row for row in rows[column:] if row[column]), None)
        if pivot is None:
            return None
        rows.remove(pivot)
        rows.insert(column, [each / pivot[column] for each in pivot])
        for row in rows:
            if row is not rows[column] and row[column]:
                row[:] = [a - row[column] * b for a, b in zip(row, rows[column])]
    numbers = [float(numpy.float32(float(row[8]))) for row in rows]
    return numbers if width > 1 and height > 1 and numbers[0] * numbers[4] - numbers[1] * numbers[3] else None


def perspective_corners(draws, width, height, distortion_scale):
    n_x, n_y = (int(distortion_scale * (side // 2)) + 1 for side in (width, height))
    return [(left + draws.below(n_x), top + draws.below(n_y)) for left, top in (
        (0, 0), (width - n_x, 0), (width - n_x, height - n_y), (0, height - n_y))]


def random_perspective(picture, draws, distortion_scale=0.5, p=0.5, interpolation="bilinear", fill=0):
    is_done = happens(draws, p)
    numbers = perspective_of(perspective_corners(draws, *picture.size, distortion_scale), *picture.size)
    return warp(picture, Image.PERSPECTIVE, numbers, interpolation, fill) if is_done and numbers else picture


def seed(draws):
    high = draws.u32()
    return high << 32 | draws.u32()


def permuted(picture, draws):
    sequence = [0, 1, 2]
    for i in range(2):
        other = i + draws.below(3 - i)
        sequence[i], sequence[other] = sequence[other], sequence[i]
    bands = picture.split()
    return sequence, picture if len(bands) == 1 else Image.merge(picture.mode, [bands[place] for place in sequence])


def random_channel_permutation(picture, draws):
    return permuted(picture, draws)[1]


def random_photometric_distort(picture, draws, brightness=(0.875, 1.125), contrast=(0.5, 1.5), saturation=(0.5, 1.5),
                               hue=(-0.05, 0.05), p=0.5):
    """The adjustments of torchvision's class, in its sequence, with our numbers."""
    factors = []
    for low, high in (brightness, contrast, saturation, hue):
        chosen, u = happens(draws, p), draws.f32()
        factors.append(float(numpy.float32(low + (high - low) * u)) if chosen else None)
    contrast_first, is_permuted = draws.f32() < 0.5, happens(draws, p)
    adjustments = [(functional.adjust_brightness, factors[0]), (functional.adjust_saturation, factors[2]),
                   (functional.adjust_hue, factors[3])]
    adjustments.insert(1 if contrast_first else 3, (functional.adjust_contrast, factors[1]))
    for adjust, factor in adjustments:
        picture = picture if factor is None else adjust(picture, factor)
    return permuted(picture, draws)[1] if is_permuted else picture


def erased_box(size, draws, p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0):
    """(left, top, width, height) or None, and the seed of random values. As torchvision's RandomErasing."""
    (width, height), is_done = size, happens(draws, p)
    noise, log_ratio = seed(draws), (math.log(ratio[0]), math.log(ratio[1]))
    for _ in range(10):
        area = width * height * (scale[0] + (scale[1] - scale[0]) * draws.f64())
        shape = math.exp(log_ratio[0] + (log_ratio[1] - log_ratio[0]) * draws.f64())
        h, w = int(round(math.sqrt(area * shape))), int(round(math.sqrt(area / shape)))
        if h < height and w < width:
            top = draws.below(height - h + 1)
            return (draws.below(width - w + 1), top, w, h) if is_done else None, noise
    return None, noise


def erasing(picture, draws, value=0, **arguments):
    """Of a picture of levels."""
    box, noise = erased_box(picture.size, draws, **arguments)
    if not box:
        return picture
    left, top, width, height = box
    pixels = numpy.array(picture)
    if value == "random":
        value = noise_levels(Draws(noise, 0, 0, 0), pixels[top:top + height, left:left + width].shape)
    pixels[top:top + height, left:left + width] = value
    return Image.fromarray(pixels)


def coarse_dropout(picture, draws, num_holes=(1, 2), hole_height=(0.1, 0.2), hole_width=(0.1, 0.2), fill=0, p=0.5):
    """Albumentations' CoarseDropout; its numbers come from a stream of their own, float32 as the daemon's."""
    is_done, stream = happens(draws, p), Draws(seed(draws), 0, 0, 0)
    pixels, f32 = numpy.array(picture), numpy.float32
    height, width = pixels.shape[:2]

    def length(limits, side):
        low, high = limits
        if hole_height[1] < 1:
            return int(f32(side) * (f32(low) + (f32(high) - f32(low)) * f32(stream.f32())))
        high = min(int(high), side)
        low = min(int(low), high)
        return low + stream.below(high - low + 1)

    for _ in range((num_holes[0] + stream.below(num_holes[1] - num_holes[0] + 1)) if is_done else 0):
        h, w = length(hole_height, height), length(hole_width, width)
        top = stream.below(height - h + 1)
        left = stream.below(width - w + 1)
        hole = pixels[top:top + h, left:left + w]
        hole[:] = noise_levels(stream, hole.shape) if fill == "random" else fill
    return Image.fromarray(pixels)


def noise_levels(stream, shape):
    words = numpy.array([stream.u32() for _ in range((math.prod(shape) + 3) // 4)], "<u4")
    return words.view(numpy.uint8)[:math.prod(shape)].reshape(shape)


def erase_numbers(numbers, draws, value=0, **arguments):
    """Of a tensor of floats, channels first, as torchvision's class does it."""
    box, noise = erased_box((numbers.shape[2], numbers.shape[1]), draws, **arguments)
    if not box:
        return numbers
    left, top, width, height = box
    if value == "random":
        stream, quantile = Draws(noise, 0, 0, 0), statistics.NormalDist().inv_cdf
        value = torch.tensor([quantile((stream.u32() + 0.5) / 2**32) for _ in range(width * height * len(numbers))])
        value = value.reshape(height, width, len(numbers)).permute(2, 0, 1)
    else:
        value = torch.tensor(value, dtype=torch.float32).reshape(-1, 1, 1)
    return functional.erase(numbers, top, left, height, width, value)


def blur_arguments(draws, kernel_size, sigma=(0.1, 2.0)):
    """(kernel_size, sigma) of torchvision's function."""
    low, high = sigma if isinstance(sigma, tuple) else (sigma, sigma)
    return kernel_size, float(numpy.float32(low + (high - low) * draws.f32()))


def elastic_displacement(draws, width, height, alpha=50.0, sigma=5.0):
    """torchvision's, of our numbers: 1 x height x width x 2."""
    alpha, sigma = (value if isinstance(value, tuple) else (value, value) for value in (alpha, sigma))
    parts = []
    for side, strength, deviation, noise in zip((width, height), alpha, sigma, (seed(draws), seed(draws))):
        stream, kernel = Draws(noise, 0, 0, 0), int(8 * deviation + 1) | 1
        numbers = torch.tensor([stream.f32() for _ in range(width * height)]).reshape(1, 1, height, width) * 2 - 1
        parts.append(functional.gaussian_blur(numbers, [kernel, kernel], list(sigma)) * strength / side)
    return torch.concat(parts, 1).permute([0, 2, 3, 1])


# ---- policies ---------------------------------------------------------------------------------------------------------

CHANGES = ("Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast",
           "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize")
# tangent, degrees, distance from 1, pixels or part of a side, bits
NARROW, WIDE = (0.3, 30.0, 0.9, 150.0 / 331.0, 4), (0.99, 135.0, 0.99, 32.0, 6)


def on_scale(low, high, number, count):
    """torch.linspace(low, high, count)[number], as torch 2 computes it; torch 1.13 rounds otherwise."""
    low, high = numpy.float32(low), numpy.float32(high)
    step = (high - low) / numpy.float32(count - 1)
    near, distance = (low, step * 1.0) if number < count // 2 else (high, -step)
    return float(numpy.float32(float(distance) * (number if number < count // 2 else count - 1 - number) + float(near)))


def change(picture, name, reach, number, count, negative, interpolation, fill):
    """What transforms.v2's _apply_image_or_video_transform does, for a magnitude."""
    sign, (shear, turn, blend, move, bits) = -1 if negative else 1, reach
    if name in ("ShearX", "ShearY"):
        angle = math.degrees(math.atan(sign * on_scale(0, shear, number, count)))
        return affine(picture, 0.0, (0, 0), 1.0, (angle, 0.0) if name == "ShearX" else (0.0, angle), interpolation, fill, (0, 0))
    if name in ("TranslateX", "TranslateY"):
        side = picture.size[name == "TranslateY"] if move < 1 else 1
        pixels = int(sign * on_scale(0, move * side, number, count))
        return affine(picture, 0.0, (pixels, 0) if name == "TranslateX" else (0, pixels), 1.0, (0.0, 0.0), interpolation, fill)
    if name == "Rotate":
        return functional.rotate(picture, sign * on_scale(0, turn, number, count), InterpolationMode(interpolation), fill=fill)
    factors = {"Brightness": functional.adjust_brightness, "Color": functional.adjust_saturation,
               "Contrast": functional.adjust_contrast, "Sharpness": functional.adjust_sharpness}
    if name in factors:
        return factors[name](picture, 1.0 + sign * on_scale(0, blend, number, count))
    if name == "Posterize":
        taken = numpy.float32(number) / numpy.float32((count - 1) / bits)
        return functional.posterize(picture, int(numpy.rint(numpy.float32(8) - taken)))
    if name == "Solarize":
        return functional.solarize(picture, 255.0 * on_scale(1, 0, number, count))
    whole = {"AutoContrast": functional.autocontrast, "Equalize": functional.equalize, "Invert": functional.invert}
    return whole[name](picture) if name in whole else picture


def rand_augment(picture, draws, num_ops=2, magnitude=9, num_magnitude_bins=31, interpolation="nearest", fill=0):
    for _ in range(num_ops):
        name, negative = CHANGES[draws.below(14)], draws.f32() <= 0.5
        picture = change(picture, name, NARROW, magnitude, num_magnitude_bins, negative, interpolation, fill)
    return picture


def trivial_augment_wide(picture, draws, num_magnitude_bins=31, interpolation="nearest", fill=0):
    name, magnitude, negative = CHANGES[draws.below(14)], draws.below(num_magnitude_bins), draws.f32() <= 0.5
    return change(picture, name, WIDE, magnitude, num_magnitude_bins, negative, interpolation, fill)


def auto_augment(picture, draws, policy="imagenet", interpolation="nearest", fill=0):
    policies = transforms.AutoAugment()._get_policies(transforms.AutoAugmentPolicy(policy))
    for name, probability, magnitude in policies[draws.below(25)]:
        happens, negative = draws.f32() <= numpy.float32(probability), draws.f32() <= 0.5
        if happens:
            picture = change(picture, name, NARROW, magnitude or 0, 10, negative, interpolation, fill)
    return picture


def log_gamma(draws, alpha):
    """The logarithm of a gamma variate."""
    shape = alpha + 1 if alpha < 1 else alpha
    d = shape - 1 / 3
    c = 1 / math.sqrt(9 * d)
    while True:
        normal = float(numpy.float32(statistics.NormalDist().inv_cdf((draws.u32() + 0.5) / 2**32)))
        root, u = 1 + c * normal, (draws.u32() + 0.5) / 2**32
        if root > 0 and math.log(u) < 0.5 * normal * normal + d - d * root**3 + 3 * d * math.log(root):
            break
    log = math.log(d) + 3 * math.log(root)
    return log + math.log((draws.u32() + 0.5) / 2**32) / alpha if alpha < 1 else log


def dirichlet(draws, alphas):
    """A row of weights, of alphas that are all the same."""
    logs = [log_gamma(draws, alpha) for alpha in alphas]
    parts = [math.exp(log - max(logs)) for log in logs]
    return torch.tensor([[part / sum(parts) for part in parts]], dtype=torch.float32)


class Fed:
    """torch's two functions, which hand out what AugMix would be given: numbers that it does not ask for are drawn all the
    same."""
    def __init__(self, step, noise):
        self.whole, self.parts = [], []
        space = step._AUGMENTATION_SPACE if step.all_ops else step._PARTIAL_AUGMENTATION_SPACE
        for i in range(step.mixture_width):
            stream = Draws(noise, 0, 1 + i, 0)
            depth = 1 + stream.below(3)
            self.whole += [] if step.chain_depth > 0 else [depth]
            for _ in range(step.chain_depth if step.chain_depth > 0 else depth):
                number, magnitude, sign = stream.below(len(space)), stream.below(step.severity), stream.f32()
                scale, is_signed = list(space.values())[number]
                self.whole += [number] if scale(10, 1, 1) is None else [number, magnitude]
                self.parts += [sign] if is_signed else []

    def randint(self, *_, **terms):
        return torch.tensor(self.whole.pop(0))

    def rand(self, _):
        return torch.tensor(self.parts.pop(0), dtype=torch.float32)


def aug_mix(picture, draws, **arguments):
    """torchvision's class itself, of a version that has it in transforms.v2."""
    from torchvision.transforms import v2
    step, noise = v2.AugMix(**arguments), seed(draws)
    weights, fed = Draws(noise, 0, 0, 0), Fed(step, noise)
    step._sample_dirichlet = lambda alphas: dirichlet(weights, [float(numpy.float32(alpha)) for alpha in alphas[0].tolist()])
    with mock.patch("torch.randint", fed.randint), mock.patch("torch.rand", fed.rand):
        made = step(picture)
    assert not fed.whole and not fed.parts
    return made


STEPS = {function.__name__: function for function in (
    random_resized_crop, resize, center_crop, random_crop, pad, random_zoom_out, scale_jitter, random_shortest_size,
    random_resize, color_jitter, grayscale, random_grayscale, sharpness, random_rotation, random_affine, random_perspective, random_channel_permutation,
    random_photometric_distort, erasing, rand_augment, trivial_augment_wide, auto_augment, coarse_dropout)}
# Those that do a function of torchvision of their own name where their probability, the last argument, says so.
STEPS.update((kind["name"], with_chance(getattr(functional, kind["name"]))) for kind in picture_kinds(BUILD)
             if hasattr(functional, kind["name"]) and kind["arguments"][-1]["name"] == "p")


# ---- groups of steps: (steps that run, in their sequence) of (inside, draws, arguments) --------------------------------

def choose(weights, draws):
    total, place, end, chosen = 0.0, 0.0, 0.0, 0
    for weight in weights:
        total += weight
    place = total * draws.f32()
    for number, weight in enumerate(weights):
        if end > place:
            break
        end += weight
        chosen = number if weight > 0 else chosen
    return chosen


def random_apply(steps, draws, p=0.5):
    return list(range(len(steps))) if happens(draws, p) else []


def random_choice(steps, draws, p=None):
    return [choose(p or [1] * len(steps), draws)]


def random_order(steps, draws):
    sequence = list(range(len(steps)))
    for i in range(len(steps) - 1):
        other = i + draws.below(len(steps) - i)
        sequence[i], sequence[other] = sequence[other], sequence[i]
    return sequence


def one_of(steps, draws, weights=None, p=0.5):
    runs = happens(draws, p)
    chosen = choose(weights or [1] * len(steps), draws)
    return [chosen] if runs else []


GROUPS = {function.__name__: function for function in (random_apply, random_choice, random_order, one_of)}


# ---- the form in which samples leave ----------------------------------------------------------------------------------

def tensor(steps, picture, change=lambda numbers: numbers):
    """What to, normalize and layout at the end of a pipeline make of a picture: numbers in float32, which
    are changed, and rounded at last."""
    forms = dict(steps)
    normalized = forms.get("normalize")
    dtype = forms["to"]["dtype"] if "to" in forms else "float32" if normalized else "uint8"
    numbers = functional.pil_to_tensor(picture) if dtype == "uint8" else functional.to_tensor(picture)
    if normalized:
        numbers = functional.normalize(numbers, *([value] if isinstance(value, float) else list(value)
                                                  for value in (normalized["mean"], normalized["std"])))
    if dtype != "uint8":
        numbers = change(numbers).to(DTYPES[dtype])
    return numbers if forms.get("layout", {}).get("order") == "nchw" else numbers.permute(1, 2, 0)


def tensor_bytes(numbers):
    """A tensor's elements as they lie in memory, in the sequence of its dimensions."""
    numbers = numbers.contiguous()
    return (numbers.view(torch.int16) if numbers.element_size() == 2 else numbers).numpy().tobytes()


# ---- pipelines --------------------------------------------------------------------------------------------------------

def argument_text(name, value):
    if name == "steps":
        return f"[{', '.join(text([step]) for step in value)}]"
    if isinstance(value, bool):
        return f"{name}={str(value).lower()}"
    if isinstance(value, (list, tuple)):
        return f"{name}={':'.join(repr(part) for part in value)}"
    return f"{name}={value}"


def text(steps):
    """The pipeline's text, each argument by its name."""
    return " ".join(f"{name}({', '.join(argument_text(*pair) for pair in arguments.items())})"
                    for name, arguments in steps) or "decode"


FORMS = ("to", "normalize", "layout")


def makes_floats(steps):
    return any(name == "normalize" or (name == "to" and arguments["dtype"] != "uint8") for name, arguments in steps)


def n_places(step):
    """How many a step takes in the text, with those inside of it."""
    return 1 + sum(n_places(inside) for inside in step[1].get("steps", ()))


def run(steps, picture, first, draws_of):
    """Steps of which the first one has this place."""
    place = first
    for name, arguments in steps:
        if name in GROUPS:
            inside = arguments["steps"]
            places = [place + 1 + sum(n_places(step) for step in inside[:i]) for i in range(len(inside))]
            for i in GROUPS[name](draws=draws_of(place), **arguments):
                picture = run([inside[i]], picture, places[i], draws_of)
        elif name not in FORMS:
            picture = STEPS[name](picture, draws_of(place), **arguments)
        place += n_places((name, arguments))
    return picture


def replay(steps, picture, seed, epoch, sample):
    """What torchvision makes of a picture, as a tensor; ValueError where it refuses."""
    late, place = [], 1
    for number, step in enumerate(steps):
        if step[0] == "erasing" and makes_floats(steps[:number]):
            late.append((Draws(seed, epoch, sample, place), step[1]))
        else:
            picture = run([step], picture, place, lambda at: Draws(seed, epoch, sample, at))
        place += n_places(step)

    def change(numbers):
        for draws, arguments in late:
            numbers = erase_numbers(numbers, draws, **arguments)
        return numbers
    return tensor([step for step in steps if step[0] in FORMS], picture, change)
