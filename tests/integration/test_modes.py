#!/usr/bin/env python3
"""decode(mode=...): the channels of pictures as Pillow's convert() gives them, for every kind of file and mode, and what
steps make of them."""
import hashlib
import json
import os
import shutil
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, Skip, Table, case, contains, equal, identity_pixels, main, samples_of, within
from pillow_palette import today
from pillow_resize import rows_first

VECTORS = os.path.join(ROOT, "tests", "vectors", "pictures")
MODES = ("L", "RGBA", "LA", "P", "I;16")


def pillow():
    try:
        import numpy
        from PIL import Image, ImageOps
        rows_first(Image)
        return Image, ImageOps, numpy
    except ImportError as error:
        raise Skip("Pillow and NumPy are not installed for this python3") from error


def kinds(folder):
    """Pictures with alpha, palettes, grey and 16 bits, as Pillow writes them, beside the vectors of all formats."""
    image, _, numpy = pillow()
    source = image.frombytes("RGB", (61, 47), identity_pixels(1, 61, 47)).resize((72, 54), image.BICUBIC)
    alpha = source.convert("RGBA")
    alpha.putalpha(source.transpose(image.FLIP_TOP_BOTTOM).convert("L").point(lambda v: max(0, min(255, v * 3 - 256))))
    palette = source.convert("P", palette=image.ADAPTIVE, colors=100)
    wide = image.fromarray(numpy.arange(72 * 54, dtype=numpy.uint16).reshape(54, 72) * numpy.uint16(16))
    key = source.copy()
    key.paste((7, 8, 9), (5, 6, 30, 40))
    os.makedirs(folder)
    for name, picture, keywords in (
            ("rgba.png", alpha, {}), ("rgba.webp", alpha, {"lossless": True, "exact": True}), ("rgba_lossy.webp", alpha, {}),
            ("rgba.tif", alpha, {"compression": "tiff_lzw"}), ("la.png", alpha.convert("LA"), {}), ("la.tif", alpha.convert("LA"), {}),
            ("rgba.bmp", alpha, {}), ("palette.png", palette, {}), ("palette_4.png", source.quantize(11), {"bits": 4}),
            ("one_transparent.png", palette, {"transparency": 3}),
            ("transparent.png", palette, {"transparency": bytes(range(0, 200, 2))}),
            ("key.png", key, {"transparency": (7, 8, 9)}), ("grey_key.png", key.convert("L"), {"transparency": 40}),
            ("palette.gif.jpg", palette, {}), ("transparent.gif.jpg", palette, {"transparency": 5}), ("palette.bmp", palette, {}),
            ("palette.tif", palette, {}), ("wide.png", wide, {}), ("wide.tif", wide, {}), ("wide.pgm", wide.convert("I"), {}),
            ("grey.jpg", source.convert("L"), {}), ("colours.jpg", source, {}), ("grey.png", source.convert("L"), {}),
            ("bits.png", source.convert("1"), {}), ("bits.pbm.ppm", source.convert("1"), {}), ("grey.pgm", source.convert("L"), {})):
        kind = {"pgm": "PPM", "pbm": "PPM", "tif": "TIFF", "jpg": "JPEG"}.get(name.split(".")[1], name.split(".")[1].upper())
        picture.save(os.path.join(folder, name), kind, **keywords)


def converted(picture, mode):
    """What the daemon shall deliver; None: no such numbers."""
    _, _, numpy = pillow()
    if mode == "I;16":
        wide = picture.mode.startswith("I;16") or (picture.mode == "I" and picture.format in ("PNG", "PPM"))
        return numpy.asarray(picture).astype(numpy.uint16) if wide else None
    if mode == "P":
        has_numbers = picture.mode in ("P", "L", "1") and picture.format != "JPEG"  # JPEG's levels are not exact
        return numpy.asarray(picture).astype(numpy.uint8) if has_numbers else None
    if mode == "LA" and picture.mode == "RGB":
        picture = picture.convert("RGBA")  # Pillow looks for a transparent colour among greys
    return numpy.asarray(picture.convert(mode))


def check(line, pixels):
    """Pixels are height x width (x channels)."""
    _, _, numpy = pillow()
    field = line["fields"]["image"]
    shape = list(pixels.shape) + [1] * (pixels.ndim == 2)
    equal((field["dtype"], field["shape"]), (str(pixels.dtype), shape), "form")
    equal(field["sha256"], hashlib.sha256(numpy.ascontiguousarray(pixels).tobytes()).hexdigest(), "pixels")


def folder_of_all(box):
    folder = box.path("all")
    os.makedirs(folder)
    kinds(os.path.join(folder, "kinds"))
    os.makedirs(os.path.join(folder, "vectors"))
    with open(os.path.join(VECTORS, "expected.jsonl")) as file:
        for known in map(json.loads, file):
            if "fnv" in known:  # Pillow and the daemon read it
                name = known["file"] + (".jpg" if known["file"].endswith(".gif") else "")  # which ImageFolder leaves out
                shutil.copy(os.path.join(VECTORS, known["file"]), os.path.join(folder, "vectors", name))
    return folder


@case("each mode gives the numbers of Pillow's convert() for each kind of file, and refuses those that have none")
def _(box):
    image, _, _ = pillow()
    folder = folder_of_all(box)
    daemon = box.daemon({"all": folder})
    names = [path for path, _ in samples_of(folder)]
    known = {line["index"]: line["fields"]["image"]["sha256"]
             for line in daemon.read("all", pipeline="decode", batch=1, shuffle=False)}
    rows, counts = Table(), {}
    for mode in MODES:
        lines = {line["index"]: line for line in daemon.read("all", pipeline=f"decode(mode={mode})", batch=1, shuffle=False,
                                                             on_error="skip")}
        for i in range(len(names)):
            with rows.row((mode, os.path.basename(names[i]))):
                with today(image.open(names[i])) as picture:
                    wanted = converted(picture, mode)
                    if hashlib.sha256(picture.convert("RGB").tobytes()).hexdigest() != known[i]:
                        continue  # another version of Pillow, whose colours are others
                equal(i in lines, wanted is not None, f"served as {mode}")
                if wanted is not None:
                    check(lines[i], wanted)
                    counts[mode] = counts.get(mode, 0) + 1
    print(counts)
    for mode, least in zip(MODES, (250, 250, 250, 80, 14)):
        equal(counts[mode] >= least, True, f"{counts[mode]} pictures as {mode}")
    rows.done()


TYPES = {"u1": 1, "u2": 1, "u4": 1, "i1": 2, "i2": 2, "i4": 2, "f2": 3, "f4": 3, "f8": 3}  # SampleFormat


def tiff(numbers, tile=None, separate=False, order="<", pack=None, orientation=1):
    """A TIFF of height x width x bands numbers, as instruments write them: in one strip, or in tiles; its tags are its end.
    """
    height, width, n_bands = numbers.shape
    tile_height, tile_width = tile or (height, width)
    stored = numbers.astype(numbers.dtype.newbyteorder(order))
    blocks = []
    for plane in ([stored[:, :, i:i + 1] for i in range(n_bands)] if separate else [stored]):
        for y in range(0, height, tile_height):
            for x in range(0, width, tile_width):
                block = plane[y:y + tile_height, x:x + tile_width]
                full = plane[:1, :1].repeat(tile_height, 0).repeat(tile_width, 1)
                full[:block.shape[0], :block.shape[1]] = block
                blocks.append(pack(full.tobytes()) if pack else full.tobytes())
    body = b"".join(block + bytes(len(block) % 2) for block in blocks)
    places, at = [], 8
    for block in blocks:
        places.append(at)
        at += len(block) + len(block) % 2
    lists, tags_at = b"", 8 + len(body)

    def values(kind, numbers_of_tag):  # those that do not fit into their entry are after the data
        nonlocal lists
        packed = struct.pack(f"{order}{len(numbers_of_tag)}{kind}", *numbers_of_tag)
        if len(packed) > 4:
            lists += packed + bytes(len(packed) % 2)
            return struct.pack(order + "I", tags_at + len(lists) - len(packed) - len(packed) % 2)
        return packed.ljust(4, b"\0")

    tags = [(256, "I", [width]), (257, "I", [height]), (258, "H", [8 * numbers.itemsize] * n_bands), (259, "H", [8 if pack else 1]),
            (262, "H", [1]), (274, "H", [orientation]), (277, "H", [n_bands]), (284, "H", [2 if separate else 1]),
            (339, "H", [TYPES[numbers.dtype.str[1:]]] * n_bands)]
    sizes = [len(block) for block in blocks]
    tags += ([(322, "I", [tile_width]), (323, "I", [tile_height]), (324, "I", places), (325, "I", sizes)] if tile
             else [(273, "I", places), (278, "I", [height]), (279, "I", sizes)])
    if n_bands > 1:
        tags.append((338, "H", [0] * (n_bands - 1)))
    entries = b"".join(struct.pack(order + "HHI", tag, 3 if kind == "H" else 4, len(of_tag)) + values(kind, of_tag)
                       for tag, kind, of_tag in sorted(tags))
    return (struct.pack(order + "2sHI", b"II" if order == "<" else b"MM", 42, tags_at + len(lists)) + body + lists +
            struct.pack(order + "H", len(tags)) + entries + bytes(4))


@case("mode=F and bands=N deliver the numbers of a TIFF as they are stored, whatever they are, in any layout")
def _(box):
    _, _, numpy = pillow()
    rng = numpy.random.default_rng(7)
    files, wanted = {}, {}
    for number, kind in enumerate(TYPES):
        for n_bands, layout in ((1, {}), (1, {"order": ">"}), (5, {}), (3, {"separate": True}), (7, {"tile": (16, 32), "order": ">"}),
                                (2, {"tile": (16, 16), "separate": True}), (4, {"pack": zlib.compress}), (4, {"orientation": 6})):
            numbers = rng.integers(0, 256, (21, 37, n_bands, numpy.dtype(kind).itemsize), dtype="u1").view(kind)[..., 0]
            if kind[0] == "f":
                numbers = rng.normal(0, 1000, numbers.shape).astype(kind)
            name = f"{len(files):03d}.tif"
            files[name], wanted[name] = tiff(numbers, **layout), numbers
    os.makedirs(box.path("all", "a"))
    for name, content in files.items():
        with open(box.path("all", "a", name), "wb") as file:
            file.write(content)
    daemon, names = box.daemon({"all": box.path("all")}), sorted(files)
    rows = Table()
    for n_bands in sorted({numbers.shape[2] for numbers in wanted.values()}):
        for mode, dtype in (("F", "f4"), ("I;16", "u2"), ("L", "u1")):
            text = "decode(mode=F)" if (mode, n_bands) == ("F", 1) else f"decode(mode={mode}, bands={n_bands})"
            lines = {names[line["index"]]: line for line in daemon.read("all", pipeline=text, batch=1, shuffle=False, on_error="skip")}
            for name in names:
                with rows.row((text, name, str(wanted[name].dtype))):
                    is_served = wanted[name].shape[2] == n_bands and (mode == "F" or wanted[name].dtype == dtype)
                    equal(name in lines, is_served, "served")
                    if is_served:
                        check(lines[name], wanted[name].astype(dtype))
    rows.done()
    errors = " ".join(row["error"] for row in daemon.objects("errors", "all"))
    contains(errors, "has 5 bands of uint16, 7 are expected; decode(mode=I;16, bands=5) would deliver them", "has 2 bands of int16, 7 are",
             "decode(mode=F, bands=2)", "numbers of int16, mode=L delivers uint8; with mode=F numbers of any type become float32")


@case("mode=F gives Pillow's floats; what is cut or too large is a damaged sample, and other files have no bands")
def _(box):
    image, _, numpy = pillow()
    levels = numpy.random.default_rng(3).normal(0, 1e6, (45, 61)).astype("f4")
    os.makedirs(box.path("d", "a"))
    for number, compression in enumerate((None, "tiff_lzw", "tiff_adobe_deflate", "packbits")):
        image.fromarray(levels).save(box.path("d", "a", f"{number}.tif"), compression=compression)
    with open(box.path("d", "a", "0.tif"), "rb") as file:
        whole = file.read()
    huge = tiff(numpy.zeros((1, 1, 1), "f4"))
    for tag in (256, 257):
        at = huge.index(struct.pack("<HHI", tag, 4, 1)) + 8
        huge = huge[:at] + struct.pack("<I", 30000) + huge[at + 4:]
    for name, content in (("4.tif", whole[:-500]), ("5.tif", huge)):
        with open(box.path("d", "a", name), "wb") as file:
            file.write(content)
    image.fromarray((levels % 256).astype("u1")).save(box.path("d", "a", "6.png"))
    daemon = box.daemon({"d": box.path("d")}, max_pixels=1000000)
    lines = daemon.read("d", pipeline="decode(mode=F)", batch=1, shuffle=False, on_error="skip")
    equal([line["index"] for line in lines], [0, 1, 2, 3], "served")
    for line in lines:
        with image.open(box.path("d", "a", f"{line['index']}.tif")) as picture:
            check(line, numpy.asarray(picture))
    errors = {row["index"]: row["error"] for row in daemon.objects("errors", "d")}
    contains(errors[4], "TIFF")
    contains(errors[5], "30000 x 30000", "the limit is 1000000")
    contains(errors[6], "the file is PNG", "TIFF files alone")
    for text, words in (("decode(mode=F) hflip(0.5)", '"hflip": numbers as they are stored'), ("decode(bands=4)", "bands=N needs mode=L"),
                        ("decode(mode=F, exif=transpose)", "exif and mask are for pictures"),
                        ("decode(mode=I;16, bands=9) to(float32)", '"to": numbers as they are stored')):
        contains(daemon.dlctl("bench", "d", "--pipeline", text, "--seconds", "0.1").stderr, words)


def png_of_indices(palette, transparency=b""):
    """All 256 of them."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = b"".join(b"\0" + bytes(range(16 * y, 16 * y + 16)) for y in range(16))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 3, 0, 0, 0)) + chunk(b"PLTE", palette) +
            (chunk(b"tRNS", transparency) if transparency else b"") + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def bmp_of_indices(palette):
    colors = b"".join(palette[i:i + 3][::-1] + b"\0" for i in range(0, len(palette), 3))
    header = struct.pack("<IiiHHIIiiII", 40, 16, 16, 1, 8, 0, 0, 0, 0, len(palette) // 3, 0)
    begin = 14 + len(header) + len(colors)
    return b"BM" + struct.pack("<IHHI", begin + 256, 0, 0, begin) + header + colors + bytes(range(256))


def gif_of_indices(palette, transparent=None):
    """A power of two colours."""
    codes = [code for i in range(256) for code in ([256] if i % 100 == 0 else []) + [i]] + [257]
    bits = sum(code << 9 * i for i, code in enumerate(codes)).to_bytes((9 * len(codes) + 7) // 8, "little")
    blocks = b"".join(bytes([len(bits[i:i + 255])]) + bits[i:i + 255] for i in range(0, len(bits), 255))
    control = b"" if transparent is None else b"!\xf9\4\1\0\0" + bytes([transparent]) + b"\0"
    return (b"GIF89a" + struct.pack("<HHBBB", 16, 16, 0x80 | (len(palette) // 3).bit_length() - 2, 0, 0) + palette + control + b"," +
            struct.pack("<HHHHB", 0, 0, 16, 16, 0) + b"\x08" + blocks + b"\0;")


@case("an index beyond the palette is black, and its transparency is what tRNS says, as in Pillow from 10.1 on")
def _(box):
    image, _, _ = pillow()
    five, eight, ramp = bytes(range(7, 22)), bytes(range(9, 33)), bytes(i // 3 for i in range(9))
    files = {"five.png": png_of_indices(five), "ramp.png": png_of_indices(ramp), "some.png": png_of_indices(five, b"\0\x80"),
             "more.png": png_of_indices(five, bytes(range(0, 80, 10))), "all.png": png_of_indices(five, bytes(range(256))),
             "five.bmp": bmp_of_indices(five), "eight.gif.jpg": gif_of_indices(eight), "third.gif.jpg": gif_of_indices(eight, 3),
             "beyond.gif.jpg": gif_of_indices(eight, 100)}
    for name, content in files.items():
        os.makedirs(box.path("p", "a"), exist_ok=True)
        with open(box.path("p", "a", name), "wb") as file:
            file.write(content)
    daemon = box.daemon({"p": box.path("p")})
    names, rows = [path for path, _ in samples_of(box.path("p"))], Table()
    for mode in ("RGB", "RGBA", "LA", "L", "P"):
        lines = read(daemon, "p", f"decode(mode={mode})")
        equal([line["index"] for line in lines], list(range(len(files))), f"samples as {mode}: {daemon.log()}")
        for line, name in zip(lines, names):
            with rows.row((mode, os.path.basename(name))), today(image.open(name)) as picture:
                check(line, converted(picture, mode))
    rows.done()
    with open(box.path("p", "a", "zz.png"), "wb") as file:
        file.write(png_of_indices(five, bytes(300)))
    daemon.stop()
    daemon.start()
    with today(image.open(box.path("p", "a", "zz.png"))) as picture:
        check(read(daemon, "p", "decode")[-1], converted(picture, "RGB"))
    reader = daemon.reader("p", pipeline="decode(mode=RGBA)", shuffle=False)
    equal(reader.finish(60)[0], 1, "exit status")
    contains(reader.errors(), "zz.png", "tRNS has 300 entries")


def read(daemon, name, pipeline, **options):
    return daemon.read(name, pipeline=pipeline, batch=1, shuffle=False, on_error="skip", **options)


def center(picture, size):
    """torchvision's CenterCrop."""
    left, top = round((picture.width - size) / 2), round((picture.height - size) / 2)
    return picture.crop((left, top, left + size, top + size))


def compare(daemon, folder, mode, steps, function):
    """`function` does with Pillow what `steps` say. Returns how many pictures were compared."""
    image, _, numpy = pillow()
    names = [path for path, _ in samples_of(folder)]
    lines = read(daemon, "d", f"decode(mode={mode}) {steps}")
    for line in lines:
        with image.open(names[line["index"]]) as picture:
            pixels = converted(picture, mode)
        try:
            check(line, numpy.asarray(function(image.fromarray(pixels))))
        except AssertionError as error:
            raise AssertionError(f"decode(mode={mode}) {steps}: {os.path.basename(names[line['index']])}: {error}") from error
    return len(lines)


@case("steps move the channels of each mode as Pillow does: alpha weighs pixels that are mixed, numbers are never mixed")
def _(box):
    image, operations, _ = pillow()
    folder = box.path("d")
    os.makedirs(folder)
    kinds(os.path.join(folder, "kinds"))
    daemon = box.daemon({"d": folder})
    filters = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
    n = 0

    for mode in MODES:
        chosen = filters if mode not in ("P", "I;16") else ("nearest",)
        channels = {"RGBA": 4, "LA": 2}.get(mode, 1)
        fill = (9,) * channels if channels > 1 else 9
        flip, flop = image.FLIP_LEFT_RIGHT, image.FLIP_TOP_BOTTOM
        for interpolation in chosen:
            how = getattr(image, interpolation.upper())
            n += compare(daemon, folder, mode, f"resize(33:50, interpolation={interpolation})",
                         lambda p: p.resize((50, 33), how))
            n += compare(daemon, folder, mode, f"center_crop(40) resize(23:31, interpolation={interpolation}) pad(3, fill=9) hflip(1)",
                         lambda p: operations.expand(center(p, 40).resize((31, 23), how), 3, fill).transpose(flip))
            n += compare(daemon, folder, mode, f"pad(4, fill=9) resize(90:70, interpolation={interpolation}) vflip(1) "
                         f"resize(41:43, interpolation={interpolation}) center_crop(20)",
                         lambda p: center(operations.expand(p, 4, fill).resize((70, 90), how).transpose(flop).resize((43, 41), how), 20))
        n += compare(daemon, folder, mode, "hflip(1) center_crop(30) vflip(1)",
                     lambda p: center(p.transpose(flip), 30).transpose(flop))
        n += compare(daemon, folder, mode, "pad(3, fill=200) center_crop(100)",
                     lambda p: padded(operations.expand(p, 3, (200,) * channels if channels > 1 else 200), 100, operations))
        n += compare(daemon, folder, mode, "resize(54:72) center_crop(54:72)" if channels > 1 else "center_crop(54:72)", lambda p: p)
    print(f"{n} pictures compared")
    equal(n > 1000, True, f"{n} pictures")


def padded(picture, size, operations):
    """What center_crop does with pictures that are too small."""
    left, top = (size - picture.width) // 2, (size - picture.height) // 2
    return operations.expand(picture, (left, top, size - picture.width - left, size - picture.height - top), 0)


@case("colours change in pictures with alpha and in grey as torchvision's functions on Pillow's pictures do")
def _(box):
    _, _, _ = pillow()
    from PIL import ImageEnhance, ImageOps
    folder = box.path("d")
    os.makedirs(folder)
    kinds(os.path.join(folder, "kinds"))
    daemon = box.daemon({"d": folder})
    for mode in ("L", "RGBA", "LA"):
        for name, enhance in (("brightness", ImageEnhance.Brightness), ("contrast", ImageEnhance.Contrast),
                              ("saturation", ImageEnhance.Color)):
            for factor in (0.5, 1.5):
                n = compare(daemon, folder, mode, f"color_jitter({name}={factor}:{factor})", lambda p: enhance(p).enhance(factor))
                equal(n, 26, "pictures")
        for factor in (0, 0.7, 2.5):
            n = compare(daemon, folder, mode, f"sharpness({factor}, p=1)", lambda p: ImageEnhance.Sharpness(p).enhance(factor))
            equal(n, 26, "pictures")
    for steps, function in (("invert(1)", ImageOps.invert), ("posterize(3, p=1)", lambda p: ImageOps.posterize(p, 3)),
                            ("autocontrast(1)", ImageOps.autocontrast), ("equalize(1)", ImageOps.equalize)):
        equal(compare(daemon, folder, "L", steps, function), 26, "pictures")


@case("pictures with alpha, grey and indices are turned as EXIF says before any other step")
def _(box):
    image, operations, numpy = pillow()
    folder = box.path("d")
    os.makedirs(os.path.join(folder, "kinds"))
    source = image.frombytes("RGB", (61, 47), identity_pixels(1, 61, 47))
    alpha = source.convert("RGBA")
    alpha.putalpha(source.convert("L"))
    for number in range(1, 9):
        exif = image.Exif()
        exif[0x0112] = number
        for name, picture in ("rgba", alpha), ("palette", source.quantize(90)):
            picture.save(os.path.join(folder, "kinds", f"{name}_{number}.png"), exif=exif)
    daemon = box.daemon({"d": folder})
    names = [path for path, _ in samples_of(folder)]
    for mode in "RGBA", "LA", "L", "P":
        lines = read(daemon, "d", f"decode(mode={mode}, exif=transpose) center_crop(30) hflip(1)")
        equal(len(lines), 8 if mode == "P" else 16, "pictures")
        for line in lines:
            with image.open(names[line["index"]]) as picture:
                picture.load()
                upright = image.fromarray(converted(operations.exif_transpose(picture), mode))
            check(line, numpy.asarray(center(upright, 30).transpose(image.FLIP_LEFT_RIGHT)))


@case("16 bits and alpha leave as float32, channels first")
def _(box):
    image, _, numpy = pillow()
    folder = box.path("d")
    os.makedirs(folder)
    kinds(os.path.join(folder, "kinds"))
    daemon = box.daemon({"d": folder})
    names = [path for path, _ in samples_of(folder)]
    for mode, steps, largest, mean, deviation in (
            ("I;16", "to(float32)", 65535, 0, 1), ("I;16", "normalize(0.5, 0.25)", 65535, 0.5, 0.25), ("L", "to(float32)", 255, 0, 1),
            ("RGBA", "normalize(0.1:0.2:0.3:0.4, 0.5:0.6:0.7:0.8)", 255, (0.1, 0.2, 0.3, 0.4), (0.5, 0.6, 0.7, 0.8)),
            ("LA", "normalize(0.1:0.2, 0.5:0.6)", 255, (0.1, 0.2), (0.5, 0.6))):
        lines = read(daemon, "d", f"decode(mode={mode}) center_crop(20) {steps} layout(nchw)")
        equal(len(lines), 3 if mode == "I;16" else 26, "pictures")
        for line in lines:
            with image.open(names[line["index"]]) as picture:
                pixels = converted(picture, mode)
            top, left = (pixels.shape[0] - 20) // 2, (pixels.shape[1] - 20) // 2
            part = pixels[top:top + 20, left:left + 20].astype(numpy.float32) / numpy.float32(largest)
            if "normalize" in steps:
                part = (part - numpy.array(mean, numpy.float32)) / numpy.array(deviation, numpy.float32)
            part = part.reshape(20, 20, -1).transpose(2, 0, 1)
            field = line["fields"]["image"]
            equal((field["dtype"], field["shape"]), ("float32", list(part.shape)), "form")
            equal(field["sha256"], hashlib.sha256(numpy.ascontiguousarray(part).tobytes()).hexdigest(), f"{mode} {steps}")


@case("files without the numbers of the mode are damaged samples that say what they have")
def _(box):
    folder = box.path("d")
    os.makedirs(folder)
    kinds(os.path.join(folder, "kinds"))
    for mode, words in (("I;16", {"grey.png": "grey of 8 bits, not grey of 16 bits", "colours.jpg": "has JPEG, not grey of 16"}),
                        ("P", {"wide.png": "grey of 16 bits, not numbers", "rgba.webp": "not numbers of at most 8 bits"})):
        daemon = box.daemon({"d": folder})
        read(daemon, "d", f"decode(mode={mode})")
        errors = {os.path.basename(error["path"]): error["error"] for error in within(10, lambda: damaged(daemon), "errors")}
        for name, said in words.items():
            contains(errors[name], said)


def damaged(daemon):
    """The ledger is written by a thread of its own."""
    errors = daemon.objects("errors", "d")
    return errors if len(errors) > 5 else None


main()
