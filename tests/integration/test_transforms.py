#!/usr/bin/env python3
"""Every step of a pipeline against torchvision on Pillow's pictures, with the same draws, to the bit: thousands of
pictures through the daemon's code alone, and some through a daemon."""
import functools
import hashlib
import io
import os
import random
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import BUILD, IS_SANITIZED, Skip, case, equal, main, photos, png, samples_of, write
from pillow_resize import begins_with_columns
from torch_calls import picture_kinds

PART = 10 if IS_SANITIZED else 1  # what is drawn at random is drawn so many times less often
FILTERS = ("box", "bilinear", "hamming", "bicubic", "lanczos")


def torchvision():
    """The support module that needs it, and Pillow's Image."""
    try:
        import replay
    except ImportError as error:
        raise Skip(f"torch, torchvision, Pillow or NumPy is not installed for this python3: {error}") from error
    return replay


class Tool:
    """build/.../tools/apply_recipe: recipes without a daemon."""
    def __init__(self):
        path = os.path.join(BUILD, "tools/apply_recipe")
        if not os.path.exists(path):
            raise Skip(f"{path} was not built")
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        equal(self.process.wait(300), 0, "how the tool ended")

    def __call__(self, text, picture, seed, epoch, sample):
        """(height, width, bytes), or (None, None, the error's sentence)."""
        text = text.encode()
        self.process.stdin.write(struct.pack("<IIIIQQ", len(text), *picture.size, epoch, seed, sample) + text +
                                 picture.tobytes())
        self.process.stdin.flush()
        error, height, width, n_bytes = struct.unpack("<iIII", self.process.stdout.read(16))
        result = self.process.stdout.read(n_bytes)
        return (None, None, result.decode()) if error else (height, width, result)


# ---- random pictures and steps ---------------------------------------------------------------------------------------

def draw_picture(rng, replay):
    """Noise, or soft colours with greys and full ones among them, of any shape."""
    width, height = rng.choice(((rng.randint(1, 12), rng.randint(1, 12)), (rng.randint(1, 90), rng.randint(1, 90)),
                                (32, 32), (rng.randint(100, 300), rng.randint(100, 300))))
    numpy = replay.numpy
    noise = numpy.random.default_rng(rng.getrandbits(32))
    if rng.random() < 0.5:
        pixels = noise.integers(0, 256, (height, width, 3), dtype=numpy.uint8)
    else:
        small = noise.integers(0, 256, (3, 4, 3), dtype=numpy.uint8)
        pixels = numpy.array(replay.Image.fromarray(small).resize((width, height), replay.Image.BICUBIC))
        pixels[noise.random((height, width)) < 0.1] = noise.integers(0, 256)
    return replay.Image.fromarray(pixels)


def draw_size(rng):
    return (rng.randint(1, 60), rng.randint(1, 60))


def draw_padding(rng, largest):
    count = rng.choice((1, 2, 4))
    return rng.randint(0, largest) if count == 1 else tuple(rng.randint(0, largest) for _ in range(count))


def draw_border(rng):
    mode = rng.choice(("constant", "constant", "edge", "reflect", "symmetric"))
    fill = rng.choice((0, rng.randint(0, 255), tuple(rng.randint(0, 255) for _ in range(3))))
    return {"fill": fill, "padding_mode": mode}


def draw_around(rng, reach):
    """As one number, or from where to where."""
    if rng.random() < 0.5:
        return round(rng.random() * reach, 3)
    center = 0 if reach <= 0.5 else 1
    return tuple(sorted(round(max(rng.uniform(center - reach, center + reach), center - 1), 3) for _ in range(2)))


WARPS = ("random_rotation", "random_affine", "random_perspective")


def draw_range(rng, reach):
    """As one number, or from where to where."""
    if rng.random() < 0.5:
        return round(rng.random() * reach, 2)
    return tuple(sorted(round(rng.uniform(-reach, reach), 2) for _ in range(2)))


def draw_warp(rng, name):
    arguments = {"interpolation": rng.choice(("nearest", "bilinear", "bicubic")),
                 "fill": rng.choice((0, rng.randint(0, 255), tuple(rng.randint(0, 255) for _ in range(3))))}
    if name == "random_perspective":
        return {**arguments, "distortion_scale": rng.choice((0.5, 1, round(rng.random(), 3))), "p": rng.choice((0, 0.5, 1))}
    if rng.random() < 0.3:
        arguments["center"] = tuple(rng.choice((rng.randint(-9, 60), round(rng.uniform(-9, 60), 2))) for _ in range(2))
    if name == "random_rotation":
        turn = rng.choice((0, 90, 180, 270, -90, 360))
        return {**arguments, "degrees": rng.choice(((turn, turn), draw_range(rng, 360))), "expand": rng.random() < 0.5}
    if rng.random() < 0.7:
        arguments["translate"] = tuple(rng.choice((0, round(rng.random(), 2))) for _ in range(2))
    if rng.random() < 0.7:
        arguments["scale"] = tuple(sorted(round(rng.uniform(0.05, 3), 2) for _ in range(2)))
    if rng.random() < 0.7:
        arguments["shear"] = rng.choice((draw_range(rng, 40), draw_range(rng, 89)))
        if isinstance(arguments["shear"], tuple) and rng.random() < 0.5:
            arguments["shear"] += tuple(sorted(round(rng.uniform(-40, 40), 2) for _ in range(2)))
    return {**arguments, "degrees": rng.choice((0, draw_range(rng, 360)))}


def draw_erasing(rng, arguments):
    if rng.random() < 0.5:
        arguments["scale"] = tuple(sorted(round(rng.uniform(0.001, 1), 3) for _ in range(2)))
    if rng.random() < 0.5:
        arguments["ratio"] = tuple(sorted(round(rng.uniform(0.1, 5), 3) for _ in range(2)))


@functools.lru_cache(maxsize=None)
def known_steps():
    """What is drawn of: each step of which the support module has a function, some more often; and the kinds of all steps."""
    from replay import STEPS
    names = sorted(set(STEPS) - {"rand_augment", "trivial_augment_wide", "auto_augment"})  # below, in draw_policy()
    kinds = picture_kinds(BUILD)
    return names + ["resize", "random_crop", "color_jitter", "color_jitter"], {kind["name"]: kind for kind in kinds}


def draw_required(rng, kind):
    """Numbers within their bounds for what has no default."""
    return {argument["name"]: rng.choice((rng.randint(argument["minimum"], argument["maximum"]),
                                          rng.uniform(argument["minimum"], argument["maximum"])))
            for argument in kind["arguments"]
            if argument["type"] == "number" and "default" not in argument and not argument["is_optional"]}


# Mirrored borders are no wider than the picture less one: beyond, NumPy's releases differ among each other.
def draw_step(rng, width, height):
    names, kinds = known_steps()
    name = rng.choice(names)
    widest = max(0, min(width, height) - 1)
    if name == "random_resized_crop":
        low = rng.uniform(0.05, 1)
        return name, {"size": draw_size(rng), "scale": (low, rng.uniform(low, 1.2)), "interpolation": rng.choice(FILTERS)}
    if name == "resize":
        return name, {"size": rng.choice((rng.randint(1, 60), draw_size(rng))), "interpolation": rng.choice(FILTERS)}
    if name == "center_crop":
        return name, {"size": draw_size(rng)}
    if name == "random_crop":
        arguments = {"size": draw_size(rng), "padding": draw_padding(rng, min(widest, 9)), **draw_border(rng)}
        if arguments["padding_mode"] == "constant" or rng.random() < 0.2:
            arguments["pad_if_needed"] = rng.random() < 0.7
        if arguments.get("pad_if_needed") and arguments["padding_mode"] != "constant":
            arguments["size"] = (min(arguments["size"][0], 2 * height - 1), min(arguments["size"][1], 2 * width - 1))
        return name, arguments
    if name == "pad":
        return name, {"padding": draw_padding(rng, min(widest, 9)), **draw_border(rng)}
    if name == "random_zoom_out":
        low = rng.uniform(1, 2)
        return name, {"fill": draw_border(rng)["fill"], "side_range": (low, rng.uniform(low, 2)), "p": rng.choice((0.5, 1))}
    if name == "scale_jitter":
        low = rng.uniform(0.2, 1)
        return name, {"target_size": draw_size(rng), "scale_range": (low, rng.uniform(low, 2)),
                      "interpolation": rng.choice(FILTERS)}
    if name == "random_shortest_size":
        arguments = {"min_size": [rng.randint(1, 60) for _ in range(rng.randint(1, 4))], "interpolation": rng.choice(FILTERS)}
        return name, arguments if rng.random() < 0.5 else {**arguments, "max_size": rng.randint(1, 90)}
    if name == "random_resize":
        least = rng.randint(1, 60)
        return name, {"min_size": least, "max_size": least + rng.randint(1, 30), "interpolation": rng.choice(FILTERS)}
    if name == "color_jitter":
        reaches = {"brightness": 1.5, "contrast": 1.5, "saturation": 1.5, "hue": 0.5}
        return name, {key: draw_around(rng, reach) for key, reach in reaches.items() if rng.random() < 0.6}
    if name in WARPS:
        return name, draw_warp(rng, name)
    if name == "grayscale":
        return name, {"num_output_channels": 3}
    if name == "random_channel_permutation":
        return name, {}
    arguments = {**draw_required(rng, kinds[name]), "p": rng.choice((0, 0.5, 1))}
    if name == "random_photometric_distort":
        reaches = {"brightness": (1, 0.5), "contrast": (1, 0.9), "saturation": (1, 0.9), "hue": (0, 0.5)}
        for key, (middle, reach) in reaches.items():
            if rng.random() < 0.5:
                arguments[key] = tuple(sorted(round(middle + rng.uniform(-reach, reach), 3) for _ in range(2)))
    if name == "coarse_dropout":
        arguments["fill"] = rng.choice((0, rng.randint(0, 255), tuple(rng.randint(0, 255) for _ in range(3)), "random"))
        if rng.random() < 0.5:
            arguments["num_holes"] = tuple(sorted(rng.randint(1, 9) for _ in range(2)))
        if rng.random() < 0.5:
            for key in ("hole_height", "hole_width"):
                arguments[key] = tuple(sorted(rng.randint(1, 60) for _ in range(2)))
    if name == "erasing":
        arguments["value"] = rng.choice((0, rng.randint(0, 255), tuple(rng.randint(0, 255) for _ in range(3)), "random"))
        draw_erasing(rng, arguments)
    if name == "posterize":
        arguments["bits"] = rng.randint(1, 8)  # 0 is refused by newer releases of Pillow
    if name == "sharpness":
        arguments["factor"] = rng.choice((0, 0.5, 1, 2, rng.uniform(0, 5)))
    return name, arguments


def draw_group(rng, depth=0):
    """A group of one to three steps; some of them are groups again. The sizes before it are not known: no mirrored
    border inside."""
    steps = []
    for _ in range(rng.randint(1, 3)):
        step = draw_group(rng, depth + 1) if depth < 3 and rng.random() < 0.3 else draw_step(rng, 1, 1)
        step[1].pop("padding_mode", None)
        steps.append(step)
    name = rng.choice(("random_apply", "random_choice", "random_order", "one_of"))
    arguments = {"steps": steps}
    weights = [rng.choice((0, 1, rng.random())) for _ in steps]
    weights = weights if sum(weights) > 0 and rng.random() < 0.7 else None
    if name == "random_choice" and weights:
        arguments["p"] = weights
    if name == "one_of" and weights:
        arguments["weights"] = weights
    if name in ("random_apply", "one_of"):
        arguments["p"] = rng.choice((0.5, 1, rng.random()))
    return name, arguments


def draw_form(rng, n_channels):
    """to, normalize and layout, or some of them, in any sequence."""
    steps = []
    if rng.random() < 0.5:
        steps.append(("to", {"dtype": rng.choice(("float32", "float16", "bfloat16"))}))
    if rng.random() < 0.5:
        count = rng.choice((1, n_channels))
        mean, std = ([rng.uniform(low, 1) for _ in range(count)] for low in (-0.5, 0.01))
        steps.append(("normalize", {"mean": mean[0] if count == 1 else mean, "std": std[0] if count == 1 else std}))
    if rng.random() < 0.5:
        steps.append(("layout", {"order": rng.choice(("nchw", "nhwc"))}))
    rng.shuffle(steps)
    return steps


def compare(tool, replay, steps, picture, place):
    """One picture both ways. Returns whether it was refused, by both."""
    text = replay.text(steps)
    what = f"{text} on {picture.size[0]} x {picture.size[1]}, (seed, epoch, sample) = {place}"
    height, width, got = tool(text, picture, *place)
    try:
        expected = replay.replay(steps, picture, *place)
    except ValueError as error:
        assert height is None and ("does not fit" in got or "raise m" in got or "raise s" in got), f"{what}: torchvision says {error}, the tool {got[:200]!r}"
        return True
    assert height is not None, f"{what}: {got}"
    shape = tuple(expected.shape)
    nchw = any(name == "layout" and arguments["order"] == "nchw" for name, arguments in steps)
    equal((height, width), shape[1:] if nchw else shape[:2], f"size of {what}")
    expected = replay.tensor_bytes(expected)
    if got != expected:
        at = next(i for i in range(min(len(got), len(expected))) if got[i] != expected[i]) if len(got) == len(expected) else -1
        raise AssertionError(f"{what}: {len(got)} bytes, {len(expected)} expected; they differ at {at}")
    return False


# ---- cases -----------------------------------------------------------------------------------------------------------

@case("each step and each sequence of steps gives torchvision's pixels on random pictures")
def _(box):
    replay = torchvision()
    rng = random.Random(20)
    n_pictures, n_refused = 4000 // PART, 0
    with Tool() as tool:
        for _ in range(n_pictures):
            picture = draw_picture(rng, replay)
            steps = [draw_step(rng, *picture.size)]
            while rng.random() < 0.5:     # sizes behind the first step are not known here: no mirrored border there
                step = draw_step(rng, 1, 1)
                step[1].pop("padding_mode", None)
                steps.append(step)
            place = (rng.getrandbits(64), rng.getrandbits(32), rng.getrandbits(40))
            n_refused += compare(tool, replay, steps + draw_form(rng, 3), picture, place)
    print(f"    {n_pictures} pictures, {n_refused} of them refused by both")
    assert n_refused < n_pictures / 4, "most were refused: nothing was compared"


@case("a resize has the pixels of Pillow 12 and older; those of Pillow 13, too, where it begins with the rows, and nearly elsewhere")
def _(box):
    replay = torchvision()
    Image, numpy = replay.Image, replay.numpy
    new = Image.Image.resize.__closure__ and next((cell.cell_contents for cell in Image.Image.resize.__closure__
                                                   if getattr(cell.cell_contents, "__name__", "") == "resize"), None)
    direct = new or Image.Image.resize        # without tests/support/pillow_resize.py
    rng, n_columns, n = random.Random(27), 0, 400 // PART
    with Tool() as tool:
        for _ in range(n):
            small = numpy.random.default_rng(rng.getrandbits(32)).integers(0, 256, (5, 4, 3), dtype=numpy.uint8)
            old, size = (rng.randint(1, 200), rng.randint(1, 200)), (rng.randint(1, 60), rng.randint(1, 60))
            picture = direct(Image.fromarray(small), old, Image.BICUBIC)
            text = f"resize({size[1]}:{size[0]})"
            got = numpy.frombuffer(tool(text, picture, 0, 0, 0)[2], numpy.uint8).astype(int)
            expected = numpy.array(direct(picture, size, Image.BILINEAR)).reshape(-1).astype(int)
            differs = new is not None and begins_with_columns(old, size)
            n_columns += differs
            assert abs(got - expected).max() <= (1 if differs else 0), f"{text} of {old}"
    print(f"    {n} pictures, of which {n_columns} in another sequence")


@case("groups of steps give what torchvision gives for the steps that run, and move nobody's draws")
def _(box):
    replay = torchvision()
    rng = random.Random(25)
    n_pictures, n_refused = 1500 // PART, 0
    with Tool() as tool:
        for _ in range(n_pictures):
            picture = draw_picture(rng, replay)
            steps = [draw_group(rng)]
            for place in range(rng.randint(0, 2)):
                step = draw_step(rng, 1, 1)
                step[1].pop("padding_mode", None)
                steps.insert(rng.randint(0, len(steps)), step)
            if sum(replay.n_places(step) for step in steps) > 32:
                continue
            place = (rng.getrandbits(64), rng.getrandbits(32), rng.getrandbits(40))
            n_refused += compare(tool, replay, steps + draw_form(rng, 3), picture, place)
    print(f"    {n_pictures} pictures, {n_refused} of them refused by both")
    assert n_refused < n_pictures / 4, "most were refused: nothing was compared"


@case("zoom-out, scale jitter, shortest size and random resize have the sizes and places of torchvision v2")
def _(box):
    replay = torchvision()
    try:
        from torchvision.transforms import v2
    except ImportError as error:
        raise Skip(f"this torchvision has no v2: {error}") from error
    torch, rng = replay.torch, random.Random(26)
    kinds = (("random_zoom_out", lambda a: v2.RandomZoomOut(a["fill"], a["side_range"], p=1)),
             ("scale_jitter", lambda a: v2.ScaleJitter(a["target_size"], a["scale_range"])),
             ("random_shortest_size", lambda a: v2.RandomShortestSize(a["min_size"], a.get("max_size"))),
             ("random_resize", lambda a: v2.RandomResize(a["min_size"], a["max_size"])))
    steps = {name: [] for name, _ in kinds}
    while min(len(found) for found in steps.values()) < 100:
        name, arguments = draw_step(rng, 9, 9)
        steps.get(name, []).append(arguments)
    with Tool() as tool:
        for name, made in kinds:
            for arguments in steps[name]:
                arguments.pop("interpolation", None)
                place, picture = (rng.getrandbits(64), rng.getrandbits(32), rng.getrandbits(40)), draw_picture(rng, replay)
                draws = replay.Draws(*place, 1)
                if name == "random_zoom_out":
                    draws.f32()  # p, which v2 draws elsewhere
                    arguments["p"] = 1
                if isinstance(arguments.get("fill"), tuple):
                    arguments["fill"] = list(arguments["fill"])
                step = made(arguments)
                step._call_kernel = lambda kernel, inpt, **terms: terms
                torch_rand, torch_randint = torch.rand, torch.randint
                torch.rand = lambda *shape: torch.tensor([draws.f32() for _ in range(shape[0])])
                torch.randint = lambda *terms: torch.tensor(  # (n, shape) or (from, to, shape)
                    draws.below(terms[0]) if len(terms) == 2 else terms[0] + draws.below(terms[1] - terms[0]))
                try:
                    terms = step.make_params([picture])
                finally:
                    torch.rand, torch.randint = torch_rand, torch_randint
                height, width, got = tool(replay.text([(name, arguments)]), picture, *place)
                if "size" in terms and 0 in terms["size"]:
                    assert height is None, f"{arguments}: {width} x {height}"
                    continue
                if name == "random_zoom_out":
                    expected = replay.functional.pad(picture, terms["padding"], arguments["fill"] if isinstance(
                        arguments["fill"], int) else tuple(arguments["fill"]))
                    equal(got, expected.tobytes(), f"{arguments} on {picture.size}")
                    terms["size"] = expected.size[::-1]
                if name == "random_resize":
                    terms["size"] = replay.functional.resize(picture, terms["size"]).size[::-1]
                equal((height, width), tuple(terms["size"]), f"size of {name} {arguments} on {picture.size}")


@case("policies give the pixels of torchvision's functions in the same sequence, with the same magnitudes")
def _(box):
    replay = torchvision()
    rng = random.Random(25)
    n_pictures = 1500 // PART
    with Tool() as tool:
        for number in range(n_pictures):
            picture = draw_picture(rng, replay)
            arguments = {"interpolation": rng.choice(("nearest", "nearest", "bilinear", "bicubic")),
                         "fill": rng.choice((0, rng.randint(0, 255), tuple(rng.randint(0, 255) for _ in range(3))))}
            name = ("rand_augment", "trivial_augment_wide", "auto_augment")[number % 3]
            bins = rng.choice((31, 31, rng.randint(2, 40)))
            if name == "auto_augment":
                arguments["policy"] = rng.choice(("imagenet", "cifar10", "svhn"))
            else:
                arguments["num_magnitude_bins"] = bins
            if name == "rand_augment":
                arguments.update(num_ops=rng.randint(0, 4), magnitude=rng.choice((min(9, bins - 1), rng.randrange(bins))))
            steps = [(name, arguments)]
            while rng.random() < 0.3:
                steps.append(rng.choice((("hflip", {"p": 1}), ("pad", {"padding": 2}), ("center_crop", {"size": (20, 30)}),
                                         ("color_jitter", {"contrast": (1.3, 1.3)}))))
            place = (rng.getrandbits(64), rng.getrandbits(32), rng.getrandbits(40))
            compare(tool, replay, steps + draw_form(rng, 3), picture, place)
    print(f"    {n_pictures} pictures")


@case("all 256 levels leave as torch's numbers, whatever type, mean and deviation")
def _(box):
    replay = torchvision()
    rng = random.Random(21)
    levels = replay.Image.fromarray(replay.numpy.arange(256, dtype=replay.numpy.uint8).repeat(3).reshape(16, 16, 3))
    n = 300 // PART
    with Tool() as tool:
        for _ in range(n):
            compare(tool, replay, draw_form(rng, 3), levels, (0, 0, 0))
    print(f"    {n} forms of 256 levels")


@case("pictures of one channel are those of torchvision's Grayscale()")
def _(box):
    replay = torchvision()
    rng = random.Random(22)
    n = 500 // PART
    with Tool() as tool:
        for _ in range(n):
            picture = draw_picture(rng, replay)
            steps = [("grayscale", {})] + [draw_step(rng, *picture.size) for _ in range(rng.randint(0, 2))]
            for _, arguments in steps:
                for key in ("fill", "value"):
                    if isinstance(arguments.get(key), tuple):     # refused: a test of its own
                        arguments[key] = arguments[key][0]
                if len(steps) > 2:
                    arguments.pop("padding_mode", None)
            steps = [step for step in steps if step != ("grayscale", {"num_output_channels": 3})]
            place = (rng.getrandbits(64), rng.getrandbits(32), rng.getrandbits(40))
            compare(tool, replay, steps + draw_form(rng, 1), picture, place)
    print(f"    {n} pictures")


@case("colours from everywhere have torchvision's brightness, contrast, saturation, hue and grey")
def _(box):
    replay = torchvision()
    numpy = replay.numpy
    number = numpy.arange(0, 2**24, 7 * PART, dtype=numpy.uint32)
    colours = numpy.stack((number >> 16, number >> 8 & 255, number & 255), -1).astype(numpy.uint8)
    picture = replay.Image.fromarray(colours[:len(colours) // 64 * 64].reshape(64, -1, 3))
    rng = random.Random(23)
    with Tool() as tool:
        for key, value in (("hue", rng.uniform(-0.5, 0.5)), ("saturation", rng.uniform(0, 1)), ("brightness", 1.37),
                           ("saturation", rng.uniform(1, 2)), ("contrast", rng.uniform(1, 2)), ("hue", 1e-9)):
            compare(tool, replay, [("color_jitter", {key: (value, value)})], picture, (0, 0, 0))
        compare(tool, replay, [("grayscale", {"num_output_channels": 3})], picture, (0, 0, 0))
    print(f"    {picture.size[0] * picture.size[1]} colours, 7 ways")


@case("a blur is torchvision's, of any size and shape, with one level in 20,000 rounded to the other side at most")
def _(box):
    replay = torchvision()
    numpy, torch = replay.numpy, replay.torch
    rng, n, n_values, n_other = random.Random(28), 300 // PART, 0, 0
    with Tool() as tool:
        for _ in range(n):
            picture = draw_picture(rng, replay)
            kernel = [1 + 2 * rng.randint(0, min(15, side - 1)) for side in picture.size]
            arguments = {"kernel_size": tuple(kernel), "sigma": rng.choice((0.1, 1.5, (0.1, 2.0), (1.0, rng.uniform(1, 9))))}
            place = (rng.getrandbits(64), rng.getrandbits(32), rng.getrandbits(40))
            _, _, got = tool(replay.text([("gaussian_blur", arguments)]), picture, *place)
            kernel, sigma = replay.blur_arguments(replay.Draws(*place, 1), **arguments)
            pixels = torch.from_numpy(numpy.array(picture)).permute(2, 0, 1)
            expected = replay.functional.gaussian_blur(pixels, list(kernel), [sigma, sigma]).permute(1, 2, 0).numpy()
            apart = abs(numpy.frombuffer(got, numpy.uint8).reshape(expected.shape).astype(int) - expected)
            assert apart.max() <= 1, f"{arguments} of {picture.size}, sigma {sigma}: {apart.max()} levels apart"
            n_values, n_other = n_values + apart.size, n_other + int(apart.sum())
    print(f"    {n} pictures, {n_values} levels, of which {n_other} are the next one")
    assert n_other <= n_values / 50000


@case("an elastic picture is torchvision's, with one level in 5,000 that is another at most")
def _(box):
    replay = torchvision()
    numpy, torch = replay.numpy, replay.torch
    rng, n, n_values, n_other = random.Random(30), max(6, 20 // PART), 0, 0
    with Tool() as tool:
        for _ in range(n):
            picture = draw_picture(rng, replay)
            widest = (min(picture.size) - 1) / 4 - 0.5   # torch mirrors no more than the picture
            sigma = tuple(round(rng.uniform(0.1, max(0.1, min(4, widest))), 2) for _ in range(2))
            fill = rng.choice((0, 128, (1, 99, 255)))
            arguments = {"alpha": rng.choice((50, 0, (3, 700))), "sigma": rng.choice((sigma, sigma[0]))}
            if int(8 * max(sigma) + 1) // 2 >= min(picture.size):
                continue
            place = (rng.getrandbits(64), rng.getrandbits(32), rng.getrandbits(40))
            for interpolation in ("bilinear", "nearest"):
                text = [("elastic", {**arguments, "interpolation": interpolation, "fill": fill})]
                _, _, got = tool(replay.text(text), picture, *place)
                displacement = replay.elastic_displacement(replay.Draws(*place, 1), *picture.size, **arguments)
                pixels = torch.from_numpy(numpy.array(picture)).permute(2, 0, 1)
                mode = replay.InterpolationMode(interpolation)
                colour = [float(value) for value in (fill if isinstance(fill, tuple) else (fill,) * 3)]
                expected = replay.functional.elastic_transform(pixels, displacement, mode, colour)
                expected = expected.permute(1, 2, 0).numpy().astype(int)
                apart = abs(numpy.frombuffer(got, numpy.uint8).reshape(expected.shape) - expected)
                if interpolation == "bilinear":
                    assert apart.max() <= 1, f"{arguments} of {picture.size}: {apart.max()} levels apart"
                n_values, n_other = n_values + apart.size, n_other + int((apart > 0).sum())
    print(f"    {n} pictures, {n_values} levels, of which {n_other} are others")
    assert n_other <= n_values / 5000


@case("a rectangle that is erased after to or normalize has the numbers of torchvision's class, in each type and layout")
def _(box):
    replay = torchvision()
    rng, n = random.Random(29), 400 // PART
    with Tool() as tool:
        for _ in range(n):
            picture = draw_picture(rng, replay)
            n_channels = rng.choice((1, 3))
            steps = [("grayscale", {"num_output_channels": n_channels})] if n_channels == 1 or rng.random() < 0.2 else []
            form = draw_form(rng, n_channels)
            if not replay.makes_floats(form):
                form.append(("to", {"dtype": "float32"}))
            first = max(i for i, (name, _) in enumerate(form) if name == "normalize" or (
                name == "to" and not any(other == "normalize" for other, _ in form)))
            for _ in range(rng.choice((1, 1, 2))):
                value = rng.choice((0, rng.uniform(-3, 3), tuple(rng.uniform(-3, 3) for _ in range(n_channels))))
                arguments = {"p": rng.choice((0.5, 1)), "value": value}
                draw_erasing(rng, arguments)
                form.insert(rng.randint(first + 1, len(form)), ("erasing", arguments))
            place = (rng.getrandbits(64), rng.getrandbits(32), rng.getrandbits(40))
            compare(tool, replay, steps + form, picture, place)
        for dtype in ("float32", "float16"):   # random values: rounded from float64 in two ways
            numpy, place = replay.numpy, (7, 0, 3)
            steps = [("to", {"dtype": dtype}), ("erasing", {"p": 1, "value": "random", "scale": (0.5, 0.9)})]
            picture = draw_picture(rng, replay).resize((70, 60))
            got = numpy.frombuffer(tool(replay.text(steps), picture, *place)[2], dtype).astype(float)
            expected = replay.replay(steps, picture, *place).numpy().reshape(-1).astype(float)
            assert abs(got - expected).max() < (1e-5 if dtype == "float32" else 5e-3)
            assert expected.max() > 3 and (expected != numpy.array(picture).reshape(-1) / 255).mean() > 0.45
    print(f"    {n} pictures")


@case("jpeg leaves what Pillow's save() and open() leave, of colours and of grey, whatever the size and the quality")
def _(box):
    replay = torchvision()
    rng, n = random.Random(30), 300 // PART
    with Tool() as tool:
        for _ in range(n):
            picture, quality = draw_picture(rng, replay), rng.randint(1, 100)
            for before, saved in (("", picture), ("grayscale() ", replay.functional.to_grayscale(picture, 1))):
                file = io.BytesIO()
                saved.save(file, "JPEG", quality=quality)
                got = tool(f"{before}jpeg({quality})", picture, 0, 0, 0)[2]
                assert got == replay.Image.open(file).tobytes(), f"{before}jpeg({quality}) of {picture.size}"
    print(f"    {n} pictures, twice")


@case("clahe and random_brightness_contrast have the bits of OpenCV and Albumentations, where these are installed")
def _(box):
    replay = torchvision()
    try:
        import albucore
        import cv2
    except ImportError as error:
        raise Skip(f"OpenCV or Albumentations is not installed for this python3: {error}; the vectors of test_colors.c are "
                   "compared anyway") from error
    numpy, rng, n = replay.numpy, random.Random(31), 200 // PART
    with Tool() as tool:
        for _ in range(n):
            picture = draw_picture(rng, replay)
            pixels, tiles, limit = numpy.array(picture), (rng.randint(1, 9), rng.randint(1, 9)), rng.randint(64, 640) / 64
            lab = cv2.cvtColor(pixels, cv2.COLOR_RGB2LAB)
            lab[:, :, 0] = cv2.createCLAHE(clipLimit=limit, tileGridSize=tiles).apply(lab[:, :, 0])
            text = f"clahe({limit}:{limit}, tile_grid_size={tiles[0]}:{tiles[1]}, p=1)"
            equal(tool(text, picture, 0, 0, 0)[2], cv2.cvtColor(lab, cv2.COLOR_LAB2RGB).tobytes(), f"{text} of {picture.size}")
            brightness, contrast = (rng.randint(-64, 64) / 64 for _ in range(2))
            text = f"random_brightness_contrast({brightness}:{brightness}, contrast_limit={contrast}:{contrast}, p=1)"
            equal(tool(text, picture, 0, 0, 0)[2],
                  albucore.multiply_add(pixels.copy(), 1.0 + contrast, brightness * 255).tobytes(), text)
    print(f"    {n} pictures")


@case("noise is normal, truncated, the same for a seed, and added to the three channels one by one")
def _(box):
    replay = torchvision()
    numpy = replay.numpy
    middle = replay.Image.new("RGB", (100, 50), (128, 128, 128))
    quantile, count = replay.statistics.NormalDist().inv_cdf, 0
    with Tool() as tool:
        for text, mean, sigma in (("gaussian_noise()", 0, 0.1), ("gaussian_noise(0.1, 0.05)", 0.1, 0.05),
                                  ("gaussian_noise(-0.2, sigma=0.5, clip=true)", -0.2, 0.5),
                                  ("gaussian_noise(sigma=1, clip=false)", 0, 1)):
            place = (5, 1, 2)
            got = numpy.frombuffer(tool(text, middle, *place)[2], numpy.uint8).astype(int)
            stream = replay.Draws(replay.seed(replay.Draws(*place, 1)), 0, 0, 0)
            noise = numpy.array([quantile((stream.u32() + 0.5) / 2**32) for _ in range(got.size)])
            expected = 128 + numpy.trunc(mean * 255 + noise * sigma * 255).astype(int)
            expected = expected % 256 if "false" in text else numpy.clip(expected, 0, 255)
            count += (got != expected).sum()
            assert ((got - expected + 128) % 256 - 128).max() <= 1
    assert count <= 3, f"{count} of {4 * got.size} levels are others"    # float32 against float64, at a whole number


def tensors_of(lines):
    return [(line["index"], line["fields"]["image"]) for line in lines]


@case("a daemon serves floats, channels first, as torch computes them; also where samples are left out")
def _(box):
    replay = torchvision()
    folder = photos(24, 3)
    broken = box.path("broken")
    os.makedirs(broken)
    for name in sorted(os.listdir(folder)):
        os.symlink(os.path.join(folder, name), os.path.join(broken, name))
    write(os.path.join(broken, "a class of its own", "x.jpg"), b"no picture")
    daemon = box.daemon({"photos": folder, "broken": {"path": broken, "links": "follow"}})
    usual = [("random_resized_crop", {"size": (96, 80)}), ("hflip", {"p": 0.5}),
             ("color_jitter", {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1}),
             ("random_grayscale", {"p": 0.2})]
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    normalize, nchw = ("normalize", {"mean": mean, "std": std}), ("layout", {"order": "nchw"})
    forms = [
        ("uint8", []),
        ("uint8", [("grayscale", {}), nchw]),
        ("float16", [normalize, ("to", {"dtype": "float16"}), nchw]),
        ("bfloat16", [("to", {"dtype": "bfloat16"})]),
        ("float32", [nchw, normalize]),
    ]
    for dataset, root in (("photos", folder), ("broken", broken)):
        samples = samples_of(root)
        for dtype, form in forms:
            steps = usual + form
            lines = daemon.read(dataset, pipeline=replay.text(steps), seed=9, batch=5, on_error="skip")
            equal(len(lines), 24, f"samples of {dataset}")
            for index, field in tensors_of(lines):
                with replay.Image.open(samples[index][0]) as picture:
                    expected = replay.replay(steps, picture.convert("RGB"), 9, 0, index)
                equal((field["dtype"], field["shape"]), (dtype, list(expected.shape)), f"{dtype}, sample {index}")
                equal(field["sha256"], hashlib.sha256(replay.tensor_bytes(expected)).hexdigest(), f"{dtype}, sample {index}")


@case("pictures of varying size leave as floats too, and a batch of two sizes is still refused")
def _(box):
    replay = torchvision()
    folder = box.path("varying")
    rng = random.Random(24)
    for number in range(6):
        width, height = 20 + number // 3, 30
        write(os.path.join(folder, "c", f"{number}.png"), png(width, height, rng.randbytes(width * height * 3)))
    daemon = box.daemon({"d": folder})
    samples = samples_of(folder)
    steps = [("pad", {"padding": (1, 2), "fill": 7}), ("to", {"dtype": "float32"}), ("layout", {"order": "nchw"})]
    for index, field in tensors_of(daemon.read("d", pipeline=replay.text(steps), shuffle=False, batch=3)):
        with replay.Image.open(samples[index][0]) as picture:
            expected = replay.replay(steps, picture.convert("RGB"), 0, 0, index)
        equal((field["dtype"], field["shape"]), ("float32", [3, 34, 22 + index // 3]), f"sample {index}")
        equal(field["sha256"], hashlib.sha256(replay.tensor_bytes(expected)).hexdigest(), f"sample {index}")
    daemon.refused("d", "34", "22", "23", pipeline=replay.text(steps), shuffle=False, batch=4)


@case("a crop that does not fit is that sample's error, with both sizes")
def _(box):
    folder = box.folder_of_pictures("d", 4, width=9, height=7)
    daemon = box.daemon({"d": folder})
    daemon.refused("d", "8 x 8", "9 x 7", "pad_if_needed", pipeline="random_crop(8)")
    equal(len(daemon.read("d", pipeline="random_crop(8, pad_if_needed=true)")), 4, "samples that were padded")


main()
